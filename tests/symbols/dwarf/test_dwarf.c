// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dwarf: the inlined functions and lines of this very program at known spots,
 * and against addr2line at many; files that must not be read.
 * Live: takes about a second of CPU time, or more.
 */
#include "symbols/dwarf/dwarf.c"
#include "symbols/dwarf/lines.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/image/image.h"
#include "tests/makers/elf.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/elf/elf.h"
#include "symbols/elf/internal.h"

#define OVERLAP_MAX 64

/* A spot inside of three functions that are one in the code. */
extern const char test_dwarf_spot[];
enum { LINE_INNER = __LINE__ + 4, LINE_MIDDLE = __LINE__ + 9, LINE_OUTER = __LINE__ + 14 };

static inline __attribute__((always_inline)) int innermost(int x)
{
	__asm__ volatile(".globl test_dwarf_spot\ntest_dwarf_spot: nop" : "+r"(x));
	return x + 1;
}
static inline __attribute__((always_inline)) int between(int x)
{
	x = innermost(x);
	return x * 3;
}
__attribute__((noinline, noclone)) static int outermost(int x)
{
	return between(x) + 7;
}

/* Open the DWARF of a file, after the look at its sections that a helper has. */
static int open_dwarf(struct dwarf **out, const struct elffile *f, uint64_t bias)
{
	struct elffacts facts;

	elffacts_collect(&facts, f);
	return facts.dwarf ? facts.dwarf : dwarf_open_fds(out, f, bias, -1, false);
}

static uint64_t dwarf_size(const struct elffile *f)
{
	struct elffacts facts;

	elffacts_collect(&facts, f);
	return facts.dwarf_size;
}

static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the first is the program */
}

struct fixture {
	struct elffile f;
	struct image *image;
	struct dwarf *d;
	uint64_t base;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(elffile_open(&f->f, fd, NULL, (uint64_t)st.st_size, NULL), 0);
	assert_int_equal(image_read_fd(&f->image, fd, (uint64_t)st.st_size, NULL), 0);
	assert_int_equal(open_dwarf(&f->d, &f->f, 0), 0);
	dl_iterate_phdr(find_base, &f->base);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dwarf_close(f->d);
	close(f->f.fd);
	elffile_close(&f->f);
	image_free(f->image);
	free(f);
	return 0;
}

static void assert_frame(const struct dwarf_frame *f, const char *name, uint32_t line)
{
	if (name)
		assert_string_equal(f->name, name);
	else
		assert_null(f->name);
	assert_int_equal(f->line, line);
	assert_non_null(f->file);
	assert_non_null(strstr(f->file, "test_dwarf.c"));
}

TEST(test_known_spot, setup, teardown)
{
	struct fixture *f = *state;
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	uint64_t vaddr = (uint64_t)(uintptr_t)test_dwarf_spot - f->base;

	assert_int_equal(outermost(1), 13);
	assert_int_equal(dwarf_chain(f->d, vaddr, frames), 3);
	assert_frame(&frames[0], "innermost", LINE_INNER);
	assert_frame(&frames[1], "between", LINE_MIDDLE);
	assert_frame(&frames[2], NULL, LINE_OUTER);
	assert_int_equal(dwarf_chain(f->d, vaddr | DWARF_NAMELESS, frames), 3);
	assert_frame(&frames[1], "between", LINE_MIDDLE);
	assert_frame(&frames[2], "outermost", LINE_OUTER);
	assert_int_equal(frames[2].identity, (uint64_t)(uintptr_t)outermost - f->base);
	assert_int_equal(dwarf_chain(f->d, 1, frames), 0);
	assert_int_equal(dwarf_chain(f->d, UINT64_MAX, frames), 0);
	assert_true(dwarf_size(&f->f) > 10000);
}

/* Assert the chain of the known spot, without lines. */
static void assert_functions(struct dwarf *d, uint64_t vaddr)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX];

	assert_int_equal(dwarf_chain(d, vaddr, frames), 3);
	assert_string_equal(frames[0].name, "innermost");
	assert_string_equal(frames[1].name, "between");
	assert_null(frames[2].name);
	for (int i = 0; i < 3; i++)
		assert_true(!frames[i].file && !frames[i].line);
}

TEST(test_no_lines, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t vaddr = (uint64_t)(uintptr_t)test_dwarf_spot - f->base;
	struct dwarf *d;

	assert_int_equal(dwarf_open_fds(&d, &f->f, 0, -1, true), 0);
	assert_functions(d, vaddr);
	dwarf_close(d);
}

/* Addresses of another file: moved by a bias. */
TEST(test_bias, setup, teardown)
{
	struct fixture *f = *state;
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	uint64_t vaddr = (uint64_t)(uintptr_t)test_dwarf_spot - f->base;
	struct dwarf *moved;

	assert_int_equal(open_dwarf(&moved, &f->f, 0x10000000), 0);
	assert_int_equal(dwarf_chain(moved, vaddr + 0x10000000, frames), 3);
	assert_string_equal(frames[0].name, "innermost");
	assert_int_equal(dwarf_chain(moved, vaddr, frames), 0);
	dwarf_close(moved);
}

/* The output of addr2line -i -f -e for one address: a name line and a place line for each frame. */
struct oracle_frame {
	char name[1024], place[1024];
};

static void cut_line(char *line)
{
	line[strcspn(line, "\n")] = '\0';
}

/* "dir/file.c:12" or "...:12 (discriminator 3)": the line, and the file without its folder. */
static unsigned int line_of(const char *place, const char **file)
{
	const char *slash = strrchr(place, '/');
	const char *colon;

	*file = slash ? slash + 1 : place;
	colon = strchr(*file, ':');
	return colon ? (unsigned int)strtoul(colon + 1, NULL, 10) : 0;
}

/* Compare name and line; return whether the file is another one. */
static bool differs(const struct dwarf_frame *is, const struct oracle_frame *want, uint64_t vaddr)
{
	const char *file, *slash = is->file ? strrchr(is->file, '/') : NULL;
	unsigned int line = line_of(want->place, &file);
	const char *own = slash ? slash + 1 : is->file;

	if (is->name && strcmp(is->name, want->name))
		fail_msg("0x%" PRIx64 ": %s, not %s", vaddr, want->name, is->name);
	if (line != is->line)
		fail_msg("0x%" PRIx64 " %s: line %u, not %u", vaddr, want->name, line, is->line);
	return line && (!own || strncmp(own, file, strlen(own)) != 0);
}

/* Ten thousand addresses of this program, each frame of each. */
TEST(test_against_addr2line, setup, teardown)
{
	enum { NR = 10000 };
	struct fixture *f = *state;
	char in[] = "/tmp/test_dwarf.XXXXXX", command[512], line[2100];
	uint64_t *vaddrs;
	struct oracle_frame *want;
	unsigned int seed = 1, nr_inlined = 0, nr_frames = 0, nr_files = 0;
	FILE *file, *oracle;

	if (system("command -v addr2line >/dev/null 2>&1"))
		skip_test("not installed: addr2line");
	vaddrs = calloc(NR, sizeof(*vaddrs));
	want = calloc(OVERLAP_MAX, sizeof(*want));
	file = fdopen(mkstemp(in), "w");
	assert_true(vaddrs && want && file);
	for (unsigned int i = 0; i < NR; i++) {
		const struct image_symbol *s =
			&f->image->symbols[(unsigned int)rand_r(&seed) % f->image->nr_symbols];

		vaddrs[i] = s->vaddr + (unsigned int)rand_r(&seed) % MAX(s->size, 1UL);
		/* A marker line ends the lines of one address. */
		fprintf(file, "0x%" PRIx64 "\n0xfffffffffffffff0\n", vaddrs[i]);
	}
	fclose(file);
	snprintf(command, sizeof(command), "addr2line -i -f -e /proc/%d/exe <%s", getpid(), in);
	oracle = popen(command, "r");
	assert_non_null(oracle);
	for (unsigned int i = 0; i < NR; i++) {
		struct dwarf_frame frames[DWARF_FRAMES_MAX];
		int nr, nr_want = 0;

		while (fgets(want[nr_want].name, sizeof(want[0].name), oracle)) {
			assert_non_null(fgets(want[nr_want].place, sizeof(want[0].place), oracle));
			cut_line(want[nr_want].name);
			cut_line(want[nr_want].place);
			if (!strcmp(want[nr_want].name, "??") &&
			    !strncmp(want[nr_want].place, "??:", 3))
				break;
			nr_want = MIN(nr_want + 1, OVERLAP_MAX - 1);
		}
		nr = dwarf_chain(f->d, vaddrs[i], frames);
		if (!nr_want) { /* nothing there: it printed the same as for the marker */
			assert_non_null(fgets(line, sizeof(line), oracle));
			assert_non_null(fgets(line, sizeof(line), oracle));
			continue;
		}
		if (!nr && nr_want == 1)
			continue; /* a name of the symbol table only; counted below */
		if (nr != nr_want)
			fail_msg("0x%" PRIx64 ": %d frames, not %d", vaddrs[i], nr_want, nr);
		for (int j = 0; j < nr; j++)
			nr_files += differs(&frames[j], &want[j], vaddrs[i]);
		nr_inlined += nr > 1;
		nr_frames += (unsigned int)nr;
	}
	pclose(oracle);
	unlink(in);
	free(want);
	free(vaddrs);
	assert_true(nr_inlined > NR / 20 && nr_frames > NR / 2);
	/* binutils 2.40 has the file of the unit for some; LLVM 14 has ours there. */
	assert_in_range(nr_files, 0, NR / 400);
}

/* Overwrite the middle of a section. */
static void damage(const struct elffile *f, const char *section)
{
	const Elf64_Shdr *s = elffile_section(f, section);

	assert_true(s->sh_flags & SHF_COMPRESSED);
	assert_int_equal(pwrite(f->fd, "damaged", 7, (off_t)(s->sh_offset + s->sh_size / 2)), 7);
}

/* Open a copy of this program with debug sections compressed @how; -1: objcopy does not know it. */
static int open_packed(const char *how, struct elffile *packed)
{
	char path[] = "/tmp/test_dwarf.XXXXXX", command[160];
	struct stat st;
	int fd = mkstemp(path), rc;

	close(fd);
	snprintf(command, sizeof(command),
		 "objcopy --compress-debug-sections=%s /proc/%d/exe %s 2>/dev/null", how, getpid(),
		 path);
	rc = system(command);
	fd = rc ? -1 : open(path, O_RDWR);
	unlink(path);
	if (fd < 0)
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(elffile_open(packed, fd, NULL, (uint64_t)st.st_size, NULL), 0);
	return fd;
}

static void skip_without_objcopy(void)
{
	/* The guests of the lab have no binutils. */
	if (system("command -v objcopy >/dev/null"))
		skip();
}

/* The ways to compress that came before and after zlib with a flag. */
TEST(test_compressed_otherwise, setup, teardown)
{
	static const char *const ways[] = { "zlib-gnu", "zstd" };
	struct fixture *f = *state;
	uint64_t vaddr = (uint64_t)(uintptr_t)test_dwarf_spot - f->base;
	struct dwarf_frame frames[DWARF_FRAMES_MAX];

	skip_without_objcopy();
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct elffile packed;
		struct dwarf *d;
		int fd = open_packed(ways[i], &packed);

		if (fd < 0 && i)
			continue; /* binutils before 2.40 */
		assert_true(fd >= 0);
		assert_int_equal(open_dwarf(&d, &packed, 0), 0);
		assert_int_equal(dwarf_chain(d, vaddr, frames), 3);
		assert_frame(&frames[0], "innermost", LINE_INNER);
		assert_frame(&frames[2], NULL, LINE_OUTER);
		assert_true(dwarf_size(&packed) == dwarf_size(&f->f));
		dwarf_close(d);
		elffile_close(&packed);
		close(fd);
	}
}

/* Compressed debug sections: by zlib, then by libdeflate if it is installed; then damaged. */
TEST(test_compressed, setup, teardown)
{
	struct fixture *f = *state;
	uint64_t vaddr = (uint64_t)(uintptr_t)test_dwarf_spot - f->base;
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	const Elf64_Shdr *info;
	struct elffile packed;
	struct dwarf *d;
	int fd;

	skip_without_objcopy();
	fd = open_packed("zlib-gabi", &packed);
	assert_true(fd >= 0);
	info = elffile_section(&packed, ".debug_info");
	assert_true(info->sh_flags & SHF_COMPRESSED);
	for (int fast = 0; fast < 2; fast++) {
		if (fast)
			dwarf_sandbox_reader.prepare();
		assert_int_equal(open_dwarf(&d, &packed, 0), 0);
		assert_int_equal(dwarf_chain(d, vaddr, frames), 3);
		assert_frame(&frames[0], "innermost", LINE_INNER);
		assert_frame(&frames[2], NULL, LINE_OUTER);
		assert_true(dwarf_size(&packed) == dwarf_size(&f->f));
		dwarf_close(d);
	}
	/* Functions alone: the lines are not inflated. */
	damage(&packed, ".debug_line");
	assert_int_equal(open_dwarf(&d, &packed, 0), -EBADMSG);
	assert_int_equal(dwarf_open_fds(&d, &packed, 0, -1, true), 0);
	assert_functions(d, vaddr);
	dwarf_close(d);
	damage(&packed, ".debug_info");
	assert_int_equal(open_dwarf(&d, &packed, 0), -EBADMSG);
	assert_int_equal(dwarf_open_fds(&d, &packed, 0, -1, true), -EBADMSG);
	elffile_close(&packed);
	close(fd);
}

TEST(test_refused, setup, teardown)
{
	struct fixture *f = *state;
	char path[] = "/tmp/test_dwarf.XXXXXX";
	const Elf64_Chdr bomb = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1ULL << 40 };
	struct elfmake m;
	struct elffile other;
	struct dwarf *d;
	struct stat st;
	int fd = mkstemp(path);

	/* No debug information. */
	elfmake_init(&m, EM_X86_64, 0x1000, 0x1000);
	elfmake_code(&m, ".text", 0x1000, 0x1000, 0x1000, 0, NULL);
	elfmake_finish(&m);
	assert_int_equal(write(fd, m.bytes, m.size), m.size);
	assert_int_equal(elffile_open(&other, fd, NULL, m.size, NULL), 0);
	assert_int_equal(open_dwarf(&d, &other, 0), -ENODATA);
	elffile_close(&other);
	elfmake_fini(&m);
	/* A section that says it would be a terabyte. */
	elfmake_init(&m, EM_X86_64, 0x1000, 0x1000);
	elfmake_section(&m, ".debug_info",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_COMPRESSED,
				      .sh_size = sizeof(bomb) },
			&bomb);
	elfmake_finish(&m);
	assert_int_equal(pwrite(fd, m.bytes, m.size, 0), m.size);
	assert_int_equal(elffile_open(&other, fd, NULL, m.size, NULL), 0);
	assert_int_equal(open_dwarf(&d, &other, 0), -EFBIG);
	elffile_close(&other);
	elfmake_fini(&m);
	/* A stranger's file. */
	if (!geteuid()) {
		struct dwarf_sandbox *none;
		struct elffacts facts;
		char buf[4096];
		ssize_t nr;

		assert_int_equal(ftruncate(fd, 0), 0);
		lseek(fd, 0, SEEK_SET);
		lseek(f->f.fd, 0, SEEK_SET);
		while ((nr = read(f->f.fd, buf, sizeof(buf))) > 0)
			assert_int_equal(write(fd, buf, (size_t)nr), nr);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(elffile_open(&other, fd, NULL, (uint64_t)st.st_size, NULL), 0);
		assert_int_equal(open_dwarf(&d, &other, 0), 0);
		dwarf_close(d);
		assert_int_equal(fchown(fd, 12345, 12345), 0);
		elffacts_collect(&facts, &other);
		assert_int_equal(dwarf_sandbox_open(&none,
						    &(struct untrusted_file){
							    .fd = fd,
							    .size = (uint64_t)st.st_size },
						    &facts, NULL, 0, false),
				 -EPERM);
		elffile_close(&other);
	}
	close(fd);
	unlink(path);
}

/* Sections that are not read may have any size. */
TEST(test_sizes)
{
	static const struct {
		const char *section;
		int rc;
	} cases[] = { { ".debug_macro", 0 }, { ".debug_more", 0 }, { ".debug_str", -EFBIG } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elfmake m;
		struct elffile f;
		struct elffacts facts;

		elfmake_init(&m, EM_X86_64, 0x1000, 0x1000);
		elfmake_section(&m, ".debug_info",
				(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = 16 },
				"0123456789abcdef");
		elfmake_section(&m, cases[i].section, (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, "");
		elfmake_finish(&m);
		assert_int_equal(elffile_open(&f, -1, m.bytes, m.size, NULL), 0);
		f.shdrs[f.nr_shdrs - 2].sh_size = 2ULL << 30;
		elffacts_collect(&facts, &f);
		assert_int_equal(facts.dwarf, cases[i].rc);
		assert_true(cases[i].rc || facts.dwarf_size == 16);
		elffile_close(&f);
		elfmake_fini(&m);
	}
}

/* DWARF 4 in the making. */
struct info {
	uint8_t bytes[1024];
	uint32_t size;
};

static void info_put(struct info *i, uint64_t value, unsigned int size)
{
	memcpy(i->bytes + i->size, &value, size);
	i->size += size;
}

static void info_name(struct info *i, uint8_t abbreviation, const char *name)
{
	info_put(i, abbreviation, 1);
	memcpy(i->bytes + i->size, name, strlen(name) + 1);
	i->size += (uint32_t)strlen(name) + 1;
}

/* Add a function that is inlined elsewhere; @line: of its declaration, 0: none. Return its offset.
 */
static uint32_t info_abstract(struct info *i, uint32_t unit, const char *name, uint8_t line)
{
	uint32_t at = i->size - unit;

	info_name(i, line ? 3 : 2, name);
	info_put(i, 1, 1);
	if (line)
		info_put(i, line, 1);
	return at;
}

/* Add the same with a linkage name. */
static uint32_t info_linked(struct info *i, uint32_t unit, uint8_t abbreviation, const char *name,
			    uint8_t line)
{
	uint32_t at = i->size - unit;

	info_name(i, abbreviation, name);
	info_put(i, 1, 1);
	info_put(i, line, 1);
	return at;
}

/*
 * Add a unit at @start with functions run, run, alone, put of two lines, and, with linkage names,
 * near of this file and far of all; where each is inlined.
 */
static void info_unit(struct info *i, uint64_t start, bool twins)
{
	uint32_t unit = i->size, functions[7], order[] = { 0, 1, 0, 2, 3, 2, 4, 5, 6 }, size;

	info_put(i, 0, 4);
	info_put(i, 4, 2);
	info_put(i, 0, 4);
	info_put(i, 8, 1);
	info_put(i, 1, 1);
	info_put(i, start, 8);
	info_put(i, 0x1000, 4);
	functions[0] = info_abstract(i, unit, "run", 0);
	functions[1] = info_abstract(i, unit, twins ? "run" : "other", 0);
	functions[2] = info_abstract(i, unit, "put", 10);
	functions[3] = info_abstract(i, unit, "put", 20);
	functions[4] = info_abstract(i, unit, "alone", 0);
	functions[5] = info_linked(i, unit, 6, "_ZL4nearv", twins ? 30 : 31);
	functions[6] = info_linked(i, unit, 7, "_Z3farv", twins ? 40 : 41);
	info_put(i, 4, 1);
	info_put(i, start, 8);
	info_put(i, 0x1000, 4);
	for (uint32_t k = 0; k < ARRAY_SIZE(order); k++) {
		info_put(i, 5, 1);
		info_put(i, functions[order[k]], 4);
		info_put(i, start + k * 0x100, 8);
		info_put(i, 0x100, 4);
	}
	info_put(i, 0, 2); /* no more children of the function, and of the unit */
	size = i->size - unit - 4;
	memcpy(i->bytes + unit, &size, 4);
}

static const uint8_t abbreviations[] = {
	1, 0x11, 1, 0x11, 1,	0x12, 6,   0,	 0,	       /* compile_unit: low_pc, high_pc */
	2, 0x2e, 0, 3,	  8,	0x20, 0xb, 0,	 0,	       /* subprogram: name, inline */
	3, 0x2e, 0, 3,	  8,	0x20, 0xb, 0x3b, 0xb, 0,    0, /* the same with decl_line */
	4, 0x2e, 1, 0x11, 1,	0x12, 6,   0,	 0,	       /* subprogram: low_pc, high_pc */
	5, 0x1d, 0, 0x31, 0x13, 0x11, 1,   0x12, 6,   0,    0, /* inlined_subroutine */
	6, 0x2e, 0, 0x6e, 8,	0x20, 0xb, 0x3b, 0xb, 0,    0, /* subprogram: linkage_name, ... */
	7, 0x2e, 0, 0x6e, 8,	0x20, 0xb, 0x3b, 0xb, 0x3f, 0x19, 0, 0, /* and external */
	0,
};

static int make_twins(struct elfmake *m)
{
	struct info i = { .size = 0 };
	int fd;

	info_unit(&i, 0x1000, true);
	info_unit(&i, 0x3000, false);
	elfmake_init(m, EM_X86_64, 0x1000, 0x4000);
	elfmake_section(m, ".debug_info",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = i.size }, i.bytes);
	elfmake_section(m, ".debug_abbrev",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = sizeof(abbreviations) },
			abbreviations);
	elfmake_finish(m);
	fd = memfd_create("twins", 0);
	assert_int_equal(write(fd, m->bytes, m->size), m->size);
	return fd;
}

/* Return the identity of the function that is inlined at @vaddr. */
static uint64_t inlined_at(struct dwarf *d, uint64_t vaddr, const char *name, uint32_t start)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX];

	assert_int_equal(dwarf_chain(d, vaddr, frames), 2);
	assert_string_equal(frames[0].name, name);
	assert_int_equal(frames[0].start, start);
	return frames[0].identity;
}

/* Functions of one name are different by their line; without one, in a unit that has two. */
TEST(test_twins)
{
	struct elfmake m;
	struct elffile f;
	struct dwarf *d;
	int fd = make_twins(&m);
	uint64_t run, other, put, put_later, alone;

	assert_int_equal(elffile_open(&f, fd, NULL, m.size, NULL), 0);
	assert_int_equal(dwarf_open_fds(&d, &f, 0, -1, false), 0);
	run = inlined_at(d, 0x1010, "run", 0);
	other = inlined_at(d, 0x1110, "run", 0);
	put = inlined_at(d, 0x1310, "put", 10);
	put_later = inlined_at(d, 0x1410, "put", 20);
	alone = inlined_at(d, 0x1610, "alone", 0);
	assert_true(run != other && put != put_later);
	assert_true(run == inlined_at(d, 0x1210, "run", 0));
	assert_true(put == inlined_at(d, 0x1510, "put", 10));
	/* Another unit with the same functions, as from a header. */
	assert_true(put == inlined_at(d, 0x3310, "put", 10));
	assert_true(put_later == inlined_at(d, 0x3410, "put", 20));
	assert_true(alone == inlined_at(d, 0x3610, "alone", 0));
	assert_true(inlined_at(d, 0x3010, "run", 0) != other);
	/* Another file's function with the same linkage name, as clang has it. */
	assert_true(inlined_at(d, 0x1710, "_ZL4nearv", 30) !=
		    inlined_at(d, 0x3710, "_ZL4nearv", 31));
	assert_true(inlined_at(d, 0x1810, "_Z3farv", 40) == inlined_at(d, 0x3810, "_Z3farv", 41));
	dwarf_close(d);
	elffile_close(&f);
	elfmake_fini(&m);
	close(fd);
}

/* gdc gives nested functions no linkage name: they have the names of the functions around them. */
TEST(test_nested_in_d)
{
	static const uint8_t nested[] = {
		1, 0x11, 1, 0x13, 0xb,	0x11, 1,   0x12, 6, 0, 0, /* compile_unit: language */
		2, 0x1e, 1, 3,	  8,	0,    0,		  /* module: name */
		3, 0x2e, 1, 3,	  8,	0x11, 1,   0x12, 6, 0, 0, /* subprogram: name, place */
		4, 0x2e, 0, 3,	  8,	0x20, 0xb, 0,	 0,	  /* the same, inlined */
		5, 0x1d, 0, 0x31, 0x13, 0x11, 1,   0x12, 6, 0, 0, /* inlined_subroutine */
		0,
	};
	struct info i = { .size = 0 };
	struct elfmake m;
	struct elffile f;
	struct dwarf *d;
	uint32_t parse, size;
	int fd = memfd_create("nested", 0);

	info_put(&i, 0, 4);
	info_put(&i, 4, 2);
	info_put(&i, 0, 4);
	info_put(&i, 8, 1);
	info_put(&i, 1, 1);
	info_put(&i, 0x13, 1); /* D */
	info_put(&i, 0x1000, 8);
	info_put(&i, 0x1000, 4);
	info_name(&i, 2, "shop");
	info_name(&i, 3, "D main");
	info_put(&i, 0x1000, 8);
	info_put(&i, 0x1000, 4);
	parse = i.size;
	info_name(&i, 4, "parse");
	info_put(&i, 1, 1);
	info_put(&i, 5, 1);
	info_put(&i, parse, 4);
	info_put(&i, 0x1100, 8);
	info_put(&i, 0x100, 4);
	info_put(&i, 0, 3);
	size = i.size - 4;
	memcpy(i.bytes, &size, 4);
	elfmake_init(&m, EM_X86_64, 0x1000, 0x4000);
	elfmake_section(&m, ".debug_info",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = i.size }, i.bytes);
	elfmake_section(&m, ".debug_abbrev",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = sizeof(nested) }, nested);
	elfmake_finish(&m);
	assert_int_equal(write(fd, m.bytes, m.size), m.size);
	assert_int_equal(elffile_open(&f, fd, NULL, m.size, NULL), 0);
	assert_int_equal(dwarf_open_fds(&d, &f, 0, -1, false), 0);
	inlined_at(d, 0x1110, "shop.main.parse", 0);
	dwarf_close(d);
	elffile_close(&f);
	elfmake_fini(&m);
	close(fd);
}

#define NR_UNITS     16U
#define ROWS_OF_UNIT (1U << 20)
#define RSS_MAX_KIB  (200L << 10)

static long rss_kib(void)
{
	long total, resident;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &total, &resident), 2);
	fclose(f);
	return resident * (getpagesize() / 1024);
}

static void put(FILE *f, uint64_t value, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		fputc((int)(value >> 8 * i & 0xff), f);
}

/* The line program of one unit: each byte is a row. */
static void put_line_program(FILE *f, uint64_t start)
{
	static const uint8_t operands[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };
	const uint32_t header = 5 + sizeof(operands) + 1 + sizeof("a.c") + 3 + 1;

	put(f, 2 + 4 + header + 11 + ROWS_OF_UNIT + 6, 4);
	put(f, 2, 2);
	put(f, header, 4);
	fwrite((const uint8_t[]){ 1, 1, 0xfb, 14, 13 }, 1, 5, f); /* line base -5, range 14 */
	fwrite(operands, 1, sizeof(operands), f);
	fwrite("\0a.c\0\0\0\0\0", 1, 1 + sizeof("a.c") + 3 + 1, f);
	fwrite((const uint8_t[]){ 0, 9, 2 }, 1, 3, f); /* set the address */
	put(f, start, 8);
	for (uint32_t i = 0; i < ROWS_OF_UNIT; i++)
		fputc(13 + 5, f);				   /* address and line stay */
	fwrite((const uint8_t[]){ 2, 0x80, 1, 0, 1, 1 }, 1, 6, f); /* 128 bytes on, the end */
}

static void put_unit(FILE *f, unsigned int i, uint32_t lines)
{
	put(f, 2 + 4 + 1 + 1 + 4 + 8 + 8, 4);
	put(f, 2, 2);
	put(f, 0, 4);
	put(f, 8, 1);
	put(f, 1, 1); /* abbreviation 1 */
	put(f, lines, 4);
	put(f, 0x1000 + i * 0x100, 8);
	put(f, 0x1000 + i * 0x100 + 0x100, 8);
}

/* Make a file of units with a million lines each. */
static int make_line_bomb(uint64_t *size)
{
	static const uint8_t abbrev[] = { 1, 0x11, 0, 0x10, 6, 0x11, 1, 0x12, 1, 0, 0, 0 };
	static const char names[] = "\0.debug_line\0.debug_info\0.debug_abbrev\0.shstrtab";
	static const unsigned int name_at[] = { 0, 1, 13, 25, 39 };
	Elf64_Shdr sections[5] = { { .sh_type = SHT_NULL } };
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = 1,
			  .e_ehsize = sizeof(eh),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 5,
			  .e_shstrndx = 4 };
	FILE *f = tmpfile();
	uint32_t lines = 0;
	int fd;

	assert_non_null(f);
	fwrite(&eh, sizeof(eh), 1, f);
	for (unsigned int i = 1; i < 5; i++) {
		sections[i] = (Elf64_Shdr){ .sh_name = name_at[i],
					    .sh_type = SHT_PROGBITS,
					    .sh_offset = (uint64_t)ftell(f),
					    .sh_addralign = 1 };
		for (unsigned int u = 0; u < NR_UNITS && i < 3; u++) {
			if (i == 1)
				put_line_program(f, 0x1000 + u * 0x100);
			else
				put_unit(f, u, u * lines);
			if (!lines)
				lines = (uint32_t)((uint64_t)ftell(f) - sections[i].sh_offset);
		}
		if (i == 3)
			fwrite(abbrev, sizeof(abbrev), 1, f);
		if (i == 4)
			fwrite(names, sizeof(names), 1, f);
		sections[i].sh_size = (uint64_t)ftell(f) - sections[i].sh_offset;
	}
	sections[4].sh_type = SHT_STRTAB;
	eh.e_shoff = (uint64_t)ftell(f);
	fwrite(sections, sizeof(sections), 1, f);
	*size = (uint64_t)ftell(f);
	rewind(f);
	fwrite(&eh, sizeof(eh), 1, f);
	fflush(f);
	fd = dup(fileno(f));
	fclose(f);
	return fd;
}

/* Units with a million lines each: libdw keeps them all, so they are copied, and it opens again. */
TEST(test_line_bomb)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	long before = rss_kib(), most = 0;
	struct elffile f;
	struct dwarf *d;
	uint64_t size;
	int fd = make_line_bomb(&size);

	assert_int_equal(elffile_open(&f, fd, NULL, size, NULL), 0);
	assert_int_equal(dwarf_open_fds(&d, &f, 0, -1, false), 0);
	for (unsigned int u = 0; u < NR_UNITS; u++) {
		int nr = dwarf_chain(d, 0x1000 + u * 0x100, frames);

		/* Late on a slow machine, but read. */
		if (nr != -ETIME) {
			assert_int_equal(nr, 1);
			assert_int_equal(frames[0].line, 1);
			assert_string_equal(frames[0].file, "a.c");
		}
		most = MAX(most, rss_kib() - before);
	}
	print_message("%ld MiB\n", most >> 10);
	/* A sanitizer keeps freed memory. */
	assert_true(SANITIZED || most < RSS_MAX_KIB);
	dwarf_close(d);
	elffile_close(&f);
	close(fd);
}

static int request(const struct dwarf_wire_request *r, int fd, void *answer, size_t size)
{
	struct sandbox_call c = { .request = r, .size = sizeof(*r), .fds = { fd, -1 } };
	int rc = dwarf_sandbox_reader.serve(&c);

	assert_true(rc || c.reply.size >= size);
	if (!rc && size)
		memcpy(answer, c.reply.bytes, size);
	free(c.reply.bytes);
	return rc;
}

/* Files that were read once and are still open: the worker frees what libdw keeps of them. */
TEST(test_many_open)
{
	enum { NR = 6 };
	struct dwarf_wire_opened opened[NR];
	struct dwarf_wire_request r;
	struct dwarf_wire_head head;
	uint64_t size;
	long before;

	malloc_trim(0);
	before = rss_kib();
	for (uint32_t i = 0; i < NR; i++) {
		int fd = make_line_bomb(&size);

		r = (struct dwarf_wire_request){ .kind = DWARF_WIRE_OPEN, .size = size };
		assert_int_equal(request(&r, fd, &opened[i], sizeof(opened[i])), 0);
	}
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < NR; i++) {
			r = (struct dwarf_wire_request){ .kind = DWARF_WIRE_CHAINS,
							 .handle = opened[i].handle,
							 .nr = 1,
							 .vaddrs = { 0x1000 } };
			assert_int_equal(request(&r, -1, &head, sizeof(head)), 0);
			assert_int_equal(head.nr, 1);
		}
	}
	print_message("%ld MiB\n", (rss_kib() - before) >> 10);
	assert_true(SANITIZED || rss_kib() - before < 20 << 10);
	for (uint32_t i = 0; i < NR; i++) {
		r = (struct dwarf_wire_request){ .kind = DWARF_WIRE_CLOSE,
						 .handle = opened[i].handle };
		assert_int_equal(request(&r, -1, NULL, 0), 0);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

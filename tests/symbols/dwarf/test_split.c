// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Split DWARF: every address of a program has the chain of the same program with usual DWARF.
 * Live: takes about a second of CPU time, or more.
 */
#include "tests/prelude.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/dwarf/lines.c"
#include "symbols/base/file.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"

static const char header[] = "extern volatile unsigned long s;\n"
			     "static inline __attribute__((always_inline)) void inner(int n)\n"
			     "{ for (int i = 0; i < n; i++)\n"
			     "    if (s & 1) s += i * s; else s--; }\n"
			     "static inline __attribute__((always_inline)) void middle(int n)\n"
			     "{ if (n & 8) inner(n); s++;\n"
			     "  if (n & 16) inner(n + 1); }\n";
static const char one[] = "#include \"../a/../h/h.h\"\n"
			  "__attribute__((noinline)) void first(int n) { middle(n); s += 3; }\n"
			  "__attribute__((noinline, cold)) void second(int n) { inner(n); s += 4; "
			  "}\n";
static const char two[] = "#include \"../h/h.h\"\n"
			  "volatile unsigned long s;\n"
			  "void first(int n); void second(int n);\n"
			  "static inline __attribute__((always_inline)) void own(int n)\n"
			  "{ middle(n); middle(n + 5); }\n"
			  "int main(void) { own(3); first(1); second(2); own(4); return 0; }\n";

static char folder[] = "/tmp/test_splitXXXXXX";

static int __attribute__((format(printf, 1, 2))) sh(const char *format, ...)
{
	char command[1024];
	va_list args;
	int at = snprintf(command, sizeof(command), "exec 2>/dev/null; cd %s && ", folder);

	va_start(args, format);
	vsnprintf(command + at, sizeof(command) - (size_t)at, format, args);
	va_end(args);
	return system(command);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int set_up(void **state)
{
	assert_non_null(mkdtemp(folder));
	assert_int_equal(sh("mkdir h a b"), 0);
	write_file("h/h.h", header);
	write_file("a/one.c", one);
	write_file("b/two.c", two);
	return 0;
}

static int tear_down(void **state)
{
	return sh("rm -rf %s", folder);
}

static int open_program(const char *name, struct dwarf_sandbox **out)
{
	char path[128];
	struct load_where w = { .identity.kind = OBJECT_FILE, .seen.path = path };

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return dwarf_object_open(&w, false, NULL, out);
}

/* Get the code: [*start, *end) of the segment that is executable. */
static void find_code(const char *name, uint64_t *start, uint64_t *end)
{
	struct elffile f;
	char path[128];
	struct stat st;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	assert_int_equal(elffile_open(&f, fileno(file), NULL, (uint64_t)st.st_size, NULL), 0);
	for (uint32_t i = 0; i < f.nr_phdrs; i++) {
		if (f.phdrs[i].p_flags & PF_X && f.phdrs[i].p_type == PT_LOAD) {
			*start = f.phdrs[i].p_vaddr;
			*end = *start + f.phdrs[i].p_memsz;
		}
	}
	elffile_close(&f);
	fclose(file);
}

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

static void assert_frames(const struct dwarf_frame *a, const struct dwarf_frame *b)
{
	assert_string_equal(a->name ? a->name : "", b->name ? b->name : "");
	assert_string_equal(last_part(a->file), last_part(b->file));
	assert_int_equal(a->line, b->line);
	assert_int_equal(a->start, b->start);
	/* Of a header in two folders: one function in both units, split or not. */
	assert_true(!a->identity == !b->identity);
}

/* Compare all chains of two programs with the same code. Return how many frames are inlined. */
static unsigned int compare(struct dwarf_sandbox *a, struct dwarf_sandbox *b, uint64_t start,
			    uint64_t end)
{
	unsigned int nr_inlined = 0;

	for (uint64_t at = start; at < end;) {
		uint64_t list[DWARF_SANDBOX_PLACES];
		struct dwarf_chains x, y;
		uint32_t nr = 0;

		while (nr < DWARF_SANDBOX_PLACES && at + nr < end) {
			list[nr] = at + nr;
			nr++;
		}
		assert_int_equal(dwarf_sandbox_chains(a, list, nr, &x), 0);
		assert_int_equal(dwarf_sandbox_chains(b, list, x.nr, &y), 0);
		for (uint32_t k = 0; k < y.nr; k++) {
			assert_int_equal(x.nr_frames[k], y.nr_frames[k]);
			for (int i = 0; i < x.nr_frames[k]; i++)
				assert_frames(&x.frames[(int)x.first[k] + i],
					      &y.frames[(int)y.first[k] + i]);
			nr_inlined += x.nr_frames[k] > 1;
		}
		at += y.nr;
		dwarf_chains_free(&x);
		dwarf_chains_free(&y);
	}
	return nr_inlined;
}

static void check(const char *flags)
{
	struct dwarf_sandbox *plain, *split;
	uint64_t start = 0, end = 0;
	unsigned int nr;

	assert_int_equal(open_program("plain", &plain), 0);
	assert_int_equal(open_program("split", &split), 0);
	find_code("plain", &start, &end);
	nr = compare(plain, split, start, end);
	print_message("%s: %u inlined\n", flags, nr);
	assert_true(nr > 100);
	assert_int_equal(dwarf_sandbox_split(plain), 0);
	assert_int_equal(dwarf_sandbox_split(split), 0);
	dwarf_sandbox_close(plain);
	dwarf_sandbox_close(split);
}

/* Build both programs. @after: a command then. */
static bool build(const char *cc, const char *flags, const char *after)
{
	static const char plain[] = "for f in a/one b/two; do %s -O2 -g %s -c "
				    "$f.c -o $f.o || exit 1; done; %s %s a/one.o b/two.o -o %s";

	assert_int_equal(sh("rm -f plain split split.dwp a/*o b/*o"), 0);
	if (sh(plain, cc, strstr(flags, "-gdwarf-4") ? "-gdwarf-4" : "-gdwarf-5", cc, "", "plain"))
		return false;
	assert_int_equal(sh("rm a/*.o b/*.o"), 0);
	return !sh(plain, cc, flags, cc, "-gsplit-dwarf", "split") && !sh("%s", after);
}

static const struct {
	const char *cc, *flags, *after;
	bool rare; /* only with TEST_SPLIT=all: a build takes long */
} variants[] = {
	{ "gcc", "-gdwarf-4 -gsplit-dwarf", ":", true },
	{ "gcc", "-gdwarf-5 -gsplit-dwarf", ":", true },
	/* The folder of the compilation is relative, or another one by now. */
	{ "gcc", "-gdwarf-5 -gsplit-dwarf -fdebug-prefix-map=$PWD=.", ":", true },
	{ "gcc", "-gdwarf-5 -gsplit-dwarf -fdebug-prefix-map=$PWD=/nowhere", ":", false },
	{ "gcc", "-gdwarf-5 -gsplit-dwarf",
	  "for f in a/one b/two; do objcopy --compress-debug-sections=zlib-gabi $f.dwo; done",
	  true },
	{ "gcc", "-gdwarf-4 -gsplit-dwarf",
	  "for f in a/one b/two; do objcopy --compress-debug-sections=zlib-gnu $f.dwo; done",
	  true },
	{ "gcc", "-gdwarf-4 -gsplit-dwarf", "dwp -e split -o split.dwp && rm a/*.dwo b/*.dwo",
	  false },
	{ "clang", "-gdwarf-4 -gsplit-dwarf", ":", true },
	{ "clang", "-gdwarf-5 -gsplit-dwarf", ":", true },
	{ "clang", "-gdwarf-5 -gsplit-dwarf=single", ":", true },
	{ "clang", "-gdwarf-5 -gsplit-dwarf -ffunction-sections", ":", false },
	{ "clang", "-gdwarf-4 -gsplit-dwarf",
	  "llvm-dwp -e split -o split.dwp && rm a/*.dwo b/*.dwo", true },
	{ "clang", "-gdwarf-5 -gsplit-dwarf",
	  "llvm-dwp -e split -o split.dwp && rm a/*.dwo b/*.dwo", false },
};

TEST(same_as_usual_dwarf)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		char flags[256];

		if (variants[i].rare && !getenv("TEST_SPLIT"))
			continue;
		snprintf(flags, sizeof(flags), "%s %s; %s", variants[i].cc, variants[i].flags,
			 variants[i].after);
		if (!build(variants[i].cc, variants[i].flags, variants[i].after)) {
			print_message("%s: no such tool\n", flags);
			continue;
		}
		check(flags);
		nr++;
	}
	if (!nr)
		skip();
}

/* Return dwarf_sandbox_split() after all addresses were looked up. */
static int state_of_split(void)
{
	struct dwarf_sandbox *split;
	uint64_t start = 0, end = 0;
	int rc;

	assert_int_equal(open_program("split", &split), 0);
	find_code("split", &start, &end);
	for (uint64_t at = start; at < end; at += 16) {
		struct dwarf_chains chains;

		rc = dwarf_sandbox_chains(split, &at, 1, &chains);
		assert_true(!rc);
		/* There is a line at least, in the units of both. */
		dwarf_chains_free(&chains);
	}
	rc = dwarf_sandbox_split(split);
	dwarf_sandbox_close(split);
	return rc;
}

/* Lines that have no known version, and strings that are no text, are reported as well. */
static void damaged_sections(void)
{
	static const char *const sections[] = { "line", "str" };

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		assert_int_equal(sh("objcopy --dump-section .debug_%s=x plain && "
				    "tr '\\0-\\377' '[\\1*]' <x >y && "
				    "objcopy --update-section .debug_%s=y plain split",
				    sections[i], sections[i]),
				 0);
		assert_int_equal(state_of_split(), -EUCLEAN);
	}
	assert_non_null(strstr(dwarf_object_words(-EUCLEAN), "damaged"));
}

/* A split file that is not read is reported. */
TEST(refused_files)
{
	if (!build("gcc", "-gdwarf-5 -gsplit-dwarf", "cp a/one.dwo saved"))
		skip();
	assert_int_equal(state_of_split(), 0);
	assert_int_equal(sh("cp b/two.dwo a/one.dwo"), 0);
	assert_int_equal(state_of_split(), -ELIBBAD);
	assert_int_equal(sh("head -c 3000 /dev/zero >a/one.dwo"), 0);
	assert_int_equal(state_of_split(), -ELIBBAD);
	assert_int_equal(sh("rm a/one.dwo; mkfifo a/one.dwo"), 0);
	assert_int_equal(state_of_split(), -ENOTSUP);
	assert_int_equal(sh("rm a/one.dwo"), 0);
	assert_int_equal(state_of_split(), -ENOTSUP);
	if (!geteuid()) {
		assert_int_equal(sh("cp saved a/one.dwo; chown nobody a/one.dwo"), 0);
		assert_int_equal(state_of_split(), -EACCES);
	}
	assert_non_null(strstr(dwarf_object_words(-EACCES), "another user"));
	damaged_sections();
}

/* A file that is no ELF file, as SBCL's core with its code, cannot lack debug information. */
TEST(no_elf_file)
{
	struct dwarf_sandbox *d;
	int rc;

	assert_int_equal(sh("head -c 30000 /dev/zero >core"), 0);
	rc = open_program("core", &d);
	assert_true(rc < 0);
	assert_null(dwarf_object_words(rc));
	assert_non_null(dwarf_object_words(-EIO));
}

/* Every byte may be anything. */
TEST(damaged_files)
{
	char path[128], *bytes;
	size_t size;
	FILE *f;

	if (!build("gcc", "-gdwarf-5 -gsplit-dwarf", ":"))
		skip();
	snprintf(path, sizeof(path), "%s/a/one.dwo", folder);
	f = fopen(path, "r+");
	assert_non_null(f);
	bytes = malloc(1U << 16);
	size = fread(bytes, 1, 1U << 16, f);
	srand(1);
	for (int i = 0; i < 30; i++) {
		rewind(f);
		assert_int_equal(fwrite(bytes, 1, size, f), size);
		for (int k = 0; k < 8; k++) {
			fseek(f, rand() % (long)size, SEEK_SET);
			fputc(rand(), f);
		}
		fflush(f);
		state_of_split();
	}
	free(bytes);
	fclose(f);
}

int main(void)
{
	return run_unit_tests(set_up, tear_down);
}

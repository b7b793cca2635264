// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * image: real objects against libelf as the oracle, ELF files made here for
 * every rule, and damaged ones.
 * Live: waits for threads or processes.
 */
#include "symbols/elf/elf.c"

#include "tests/prelude.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/image/internal.h"
#include "tests/makers/elf.h"
#include "tests/symbols/imagewalk.h"
#include "tests/yardstick.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

#define TEXT_VADDR 0x201000ULL
#define TEXT_SIZE  0x1000ULL

/* A whole file, and its descriptor. */
struct whole {
	int fd;
	uint64_t size;
	uint8_t *bytes;
};

static void whole_open(struct whole *w, const char *path)
{
	struct stat st;

	w->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(w->fd >= 0 && !fstat(w->fd, &st));
	w->size = (uint64_t)st.st_size;
	w->bytes = malloc(w->size);
	assert_non_null(w->bytes);
	assert_int_equal(pread(w->fd, w->bytes, w->size, 0), w->size);
}

static void whole_close(struct whole *w)
{
	close(w->fd);
	free(w->bytes);
}

static const char *libc_path(void)
{
	Dl_info info;

	/* The address of a function of libc; AddressSanitizer has others of many. */
	assert_true(dladdr((void *)(uintptr_t)&gnu_get_libc_version, &info));
	return info.dli_fname;
}

static bool name_is(const struct image *image, const struct image_symbol *s, const char *name)
{
	return s && image_symbol_is(image, s, name);
}

__attribute__((noinline)) static int function_of_the_test(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* Address in memory -> vaddr in the file, for this program. */
static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_addr;
	return 1; /* the first is the program */
}

TEST(test_own_program)
{
	uint64_t base = 0, vaddr, offset, back;
	const struct image_symbol *s;
	struct ehframe_fde fde;
	struct image *image;
	struct whole w;
	struct err e;

	whole_open(&w, "/proc/self/exe");
	assert_int_equal(image_read_fd(&image, w.fd, w.size, &e), 0);
	dl_iterate_phdr(find_base, &base);
	vaddr = (uint64_t)(uintptr_t)&function_of_the_test - base;
	s = image_find(image, vaddr);
	assert_true(name_is(image, s, "function_of_the_test"));
	assert_true(s->vaddr == vaddr && s->size > 0);
	assert_string_equal(image->source, ".symtab");
	assert_true(image_offset(image, vaddr, &offset));
	assert_true(image_vaddr(image, offset, &back) && back == vaddr);
	assert_true(image->machine != 0 && image->elf_class == ELFCLASS64);
	assert_true(image->eh.nr_fdes > 10 && image->eh.nr_refused == 0);
	assert_true(ehframe_find(&image->eh, vaddr, &fde) && fde.start == vaddr);
	assert_int_equal(function_of_the_test(1), 2);
	image_free(image);
	whole_close(&w);
}

/* Is @name one of the names libelf gives for @value in @data? */
static bool oracle_has(Elf *elf, Elf_Data *data, size_t nr, size_t link, uint64_t value,
		       const struct image *image, const struct image_symbol *s)
{
	GElf_Sym sym;

	for (size_t i = 0; i < nr; i++) {
		gelf_getsym(data, (int)i, &sym);
		if (sym.st_value == value && name_is(image, s, elf_strptr(elf, link, sym.st_name)))
			return true;
	}
	return false;
}

/* libelf's view of a section by type. */
static Elf_Data *oracle_section(Elf *elf, GElf_Word type, GElf_Shdr *shdr)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		if (gelf_getshdr(scn, shdr) && shdr->sh_type == type)
			return elf_getdata(scn, NULL);
	}
	return NULL;
}

/* A thousand functions of libc, each by an address inside it. */
TEST(test_libc_against_libelf)
{
	struct image *image;
	unsigned int seed = 1, tried = 0;
	GElf_Shdr shdr;
	struct whole w;
	size_t nr;

	whole_open(&w, libc_path());
	assert_int_equal(image_read_fd(&image, w.fd, w.size, NULL), 0);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(w.fd, ELF_C_READ, NULL);
	Elf_Data *data = oracle_section(elf, SHT_DYNSYM, &shdr);

	assert_non_null(data);
	nr = shdr.sh_size / shdr.sh_entsize;
	while (tried < 1000) {
		const struct image_symbol *s;
		GElf_Sym sym;

		gelf_getsym(data, (int)((unsigned int)rand_r(&seed) % nr), &sym);
		if ((GELF_ST_TYPE(sym.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC) ||
		    !sym.st_size || !sym.st_shndx)
			continue;
		tried++;
		s = image_find(image, sym.st_value);
		assert_non_null(s);
		assert_true(s->vaddr == sym.st_value);
		if (!strcmp(image->source, ".dynsym"))
			assert_true(
				oracle_has(elf, data, nr, shdr.sh_link, sym.st_value, image, s));
	}
	elf_end(elf);
	image_free(image);
	whole_close(&w);
}

TEST(test_libc_unwind_tables)
{
	struct whole w;
	struct image *image;
	GElf_Shdr shdr = { 0 };
	const char *name;
	size_t names;

	whole_open(&w, libc_path());
	assert_int_equal(image_read_fd(&image, w.fd, w.size, NULL), 0);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(w.fd, ELF_C_READ, NULL);

	elf_getshdrstrndx(elf, &names);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		gelf_getshdr(scn, &shdr);
		name = elf_strptr(elf, names, shdr.sh_name);
		if (!strcmp(name, ".eh_frame"))
			break;
	}
	assert_true(image->eh.vaddr == shdr.sh_addr && image->eh.size == shdr.sh_size);
	assert_true(image->eh.nr_fdes > 1000);
	assert_memory_equal(image->eh.bytes, w.bytes + shdr.sh_offset, shdr.sh_size);
	elf_end(elf);
	image_free(image);
	whole_close(&w);
}

/* Without section headers: dynamic symbols, all segments and unwind tables. */
TEST(test_sectionless)
{
	struct image *with, *without;
	Elf64_Ehdr *eh;
	struct whole w;

	whole_open(&w, libc_path());
	assert_int_equal(image_read_memory(&with, w.bytes, w.size, NULL), 0);
	eh = (Elf64_Ehdr *)w.bytes;
	eh->e_shoff = 0;
	eh->e_shnum = 0;
	eh->e_shstrndx = 0;
	assert_int_equal(image_read_memory(&without, w.bytes, w.size, NULL), 0);
	assert_int_equal(without->nr_segments, with->nr_segments);
	assert_int_equal(without->eh.nr_fdes, with->eh.nr_fdes);
	assert_true(without->eh.vaddr == with->eh.vaddr);
	assert_in_range(without->nr_symbols, 1500, with->nr_symbols);
	assert_string_equal(without->source, ".dynsym");
	assert_int_equal(without->build_id_size, 20);
	assert_memory_equal(without->build_id, with->build_id, 20);
	image_free(with);
	image_free(without);
	whole_close(&w);
}

/* A file of the dynamic symbol "work" of .hash, with section headers of zeros. */
static void old_hash(struct elfmake *m)
{
	static const Elf64_Sym syms[] = { { 0 },
					  { .st_name = 1,
					    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					    .st_shndx = 1,
					    .st_value = 0x1040,
					    .st_size = 16 } };
	static const char names[] = "\0work";
	static const uint32_t hash[] = { 1, ARRAY_SIZE(syms), 1, 0, 0 };
	const Elf64_Dyn dynamic[] = { { DT_SYMTAB, { 0x1100 } },
				      { DT_STRTAB, { 0x1200 } },
				      { DT_STRSZ, { sizeof(names) } },
				      { DT_HASH, { 0x1300 } },
				      { DT_NULL, { 0 } } };
	Elf64_Ehdr *eh;

	elfmake_init(m, EM_X86_64, 0x1000, 0x1000);
	memcpy(m->bytes + 0x1100, syms, sizeof(syms));
	memcpy(m->bytes + 0x1200, names, sizeof(names));
	memcpy(m->bytes + 0x1300, hash, sizeof(hash));
	memcpy(m->bytes + 0x1400, dynamic, sizeof(dynamic));
	eh = (Elf64_Ehdr *)m->bytes;
	((Elf64_Phdr *)(eh + 1))[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
						    .p_offset = 0x1400,
						    .p_vaddr = 0x1400,
						    .p_filesz = sizeof(dynamic) };
	eh->e_phnum = 2;
	elfmake_finish(m);
	memset(m->bytes + eh->e_shoff, 0, m->nr * sizeof(Elf64_Shdr));
}

/* Section headers of zeros, and symbols that only DT_HASH counts (--hash-style=sysv). */
TEST(test_sectionless_old_hash)
{
	struct elfmake m;
	struct image *image;

	old_hash(&m);
	assert_int_equal(image_read_memory(&image, m.bytes, m.size, NULL), 0);
	assert_int_equal(image->nr_symbols, 1);
	assert_string_equal(image->names + image->symbols[0].name, "work");
	image_free(image);
	elfmake_fini(&m);
}

/* ---- ELF files made here ---- */

#define MADE_SIZE 0x4000

struct made {
	uint8_t bytes[MADE_SIZE];
	uint32_t nr_syms;
	uint32_t names; /* bytes of names so far */
};

/* Offsets in a made file; .text is at 0x1000 and is loaded at TEXT_VADDR. */
enum {
	AT_SECTIONS = 0x400,
	AT_SYMTAB = 0x800,
	AT_TEXT = 0x1000,
	AT_EH = 0x2000,
	AT_HDR = 0x2800,
	AT_NAMES = 0x3000
};

static Elf64_Shdr *made_section(struct made *m, unsigned int i)
{
	return (Elf64_Shdr *)(m->bytes + AT_SECTIONS) + i;
}

static Elf64_Phdr *made_segment(struct made *m, unsigned int i)
{
	return (Elf64_Phdr *)(m->bytes + sizeof(Elf64_Ehdr)) + i;
}

/* Sections: 1 .text, 2 .symtab, 3 names. One segment that holds text and unwind tables. */
static void made_init(struct made *m)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m->bytes;

	memset(m, 0, sizeof(*m));
	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = EM_X86_64;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(Elf64_Phdr);
	eh->e_phnum = 2;
	eh->e_shoff = AT_SECTIONS;
	eh->e_shentsize = sizeof(Elf64_Shdr);
	eh->e_shnum = 4;
	*made_segment(m, 0) = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = AT_TEXT,
		.p_vaddr = TEXT_VADDR,
		.p_filesz = 0x2000,
		.p_memsz = 0x2000,
	};
	*made_section(m, 1) = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = TEXT_VADDR,
		.sh_offset = AT_TEXT,
		.sh_size = TEXT_SIZE,
	};
	*made_section(m, 2) = (Elf64_Shdr){
		.sh_type = SHT_SYMTAB,
		.sh_offset = AT_SYMTAB,
		.sh_link = 3,
		.sh_entsize = sizeof(Elf64_Sym),
	};
	*made_section(m, 3) = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = AT_NAMES };
	m->names = 1;
}

static void made_symbol(struct made *m, const char *name, uint64_t offset, uint64_t size,
			unsigned int bind, unsigned int type)
{
	Elf64_Sym *sym = (Elf64_Sym *)(m->bytes + AT_SYMTAB) + m->nr_syms++;

	*sym = (Elf64_Sym){
		.st_name = m->names,
		.st_info = ELF64_ST_INFO(bind, type),
		.st_shndx = 1,
		.st_value = TEXT_VADDR + offset,
		.st_size = size,
	};
	memcpy(m->bytes + AT_NAMES + m->names, name, strlen(name) + 1);
	m->names += (uint32_t)strlen(name) + 1;
	made_section(m, 2)->sh_size = m->nr_syms * sizeof(*sym);
	made_section(m, 3)->sh_size = m->names;
}

static struct image *made_image(const struct made *m)
{
	struct image *image;
	struct err e = { "" };

	if (image_read_memory(&image, m->bytes, sizeof(m->bytes), &e))
		fail_msg("%s", e.text);
	return image;
}

static void assert_name(const struct image *image, uint64_t offset, const char *name)
{
	const struct image_symbol *s = image_find(image, TEXT_VADDR + offset);

	if (!name) {
		assert_null(s);
		return;
	}
	assert_non_null(s);
	if (!name_is(image, s, name))
		fail_msg("%s, not %s", name, image->names + s->name);
}

TEST(test_best_name_of_an_address)
{
	struct made m;
	struct image *image;

	made_init(&m);
	made_symbol(&m, "local", 0x10, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "weak", 0x10, 16, STB_WEAK, STT_FUNC);
	made_symbol(&m, "__global", 0x10, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "global", 0x10, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "label", 0x10, 0, STB_GLOBAL, STT_NOTYPE);
	made_symbol(&m, "weak2", 0x40, 16, STB_WEAK, STT_FUNC);
	made_symbol(&m, "local2", 0x40, 16, STB_LOCAL, STT_GNU_IFUNC);
	made_symbol(&m, "label3", 0x60, 0, STB_GLOBAL, STT_NOTYPE);
	made_symbol(&m, "data", 0x80, 16, STB_GLOBAL, STT_OBJECT);
	image = made_image(&m);
	assert_name(image, 0x10, "global");
	assert_name(image, 0x40, "weak2");
	assert_name(image, 0x60, "label3");
	assert_int_equal(image->nr_symbols, 3);
	image_free(image);
}

TEST(test_sizes_and_gaps)
{
	struct made m;
	struct image *image;

	made_init(&m);
	made_symbol(&m, "sized", 0x100, 0x10, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "open", 0x200, 0, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "outer", 0x300, 0x100, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "inner", 0x340, 0x10, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "label_inside", 0x380, 0, STB_LOCAL, STT_NOTYPE);
	made_symbol(&m, "last", 0xf00, 0, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "outside", 0x1800, 8, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "huge", 0xf80, UINT64_MAX, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "$x", 0x500, 0, STB_LOCAL, STT_NOTYPE);
	made_symbol(&m, "$d.1", 0x510, 0, STB_LOCAL, STT_NOTYPE);
	made_symbol(&m, ".Lloop", 0x520, 0, STB_LOCAL, STT_NOTYPE);
	image = made_image(&m);
	assert_name(image, 0xff, NULL);
	assert_name(image, 0x100, "sized");
	assert_name(image, 0x10f, "sized");
	assert_name(image, 0x110, NULL);
	assert_name(image, 0x200, "open");
	assert_name(image, 0x2ff, "open");
	assert_name(image, 0x345, "inner");
	assert_name(image, 0x350, "outer");
	assert_name(image, 0x390, "outer");
	assert_name(image, 0x500, NULL);
	assert_name(image, 0x520, NULL);
	assert_name(image, 0xf7f, "last");
	assert_name(image, 0xfff, "huge");
	assert_name(image, 0x1000, NULL); /* the section's end */
	assert_name(image, 0x1800, NULL);
	assert_null(image_find(image, 0));
	assert_null(image_find(image, UINT64_MAX));
	image_free(image);
}

static void assert_whole(const struct image *image, uint64_t offset, const char *name,
			 uint64_t start)
{
	const struct image_symbol *s = image_whole(image, image_find(image, TEXT_VADDR + offset));

	assert_non_null(s);
	if (!name_is(image, s, name) || s->vaddr != TEXT_VADDR + start)
		fail_msg("0x%x: %s, not %s", (unsigned int)offset, image->names + s->name, name);
}

/* A part that a function jumps to is of that function; a clone is not. */
TEST(test_parts_of_functions)
{
	struct image *image;
	struct made m;

	made_init(&m);
	made_symbol(&m, "one.c", 0, 0, STB_LOCAL, STT_FILE);
	made_symbol(&m, "top.cold", 0x100, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "same", 0x110, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "same.cold", 0x120, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "top.isra.0.cold", 0x130, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "top.isra.0", 0x140, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "top.part.0", 0x150, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "two.c", 0, 0, STB_LOCAL, STT_FILE);
	made_symbol(&m, "same.cold.3", 0x160, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "same", 0x170, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "three.c", 0, 0, STB_LOCAL, STT_FILE);
	made_symbol(&m, "top", 0x180, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "same.cold", 0x190, 16, STB_LOCAL, STT_FUNC); /* of neither */
	made_symbol(&m, "lone.cold", 0x1a0, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, ".cold", 0x1b0, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "lto.cold", 0x1c0, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "four.c", 0, 0, STB_LOCAL, STT_FILE);
	made_symbol(&m, "lto", 0x1d0, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "top", 0x200, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "_Z3topv", 0x210, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "_Z3topv.__part.12", 0x220, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "_Z3topv.eh", 0x230, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "_Z3topv.warm", 0x240, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "_Z3topv.cold.0.__part.1", 0x250, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "_Z3topv.colder", 0x260, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "better", 0x270, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "worse", 0x270, 16, STB_WEAK, STT_FUNC);
	made_symbol(&m, "worse.cold", 0x280, 16, STB_LOCAL, STT_FUNC);
	/* Packages and functions of Go have such names too. */
	made_symbol(&m, "go.go", 0, 0, STB_LOCAL, STT_FILE);
	made_symbol(&m, "top.eh", 0x290, 16, STB_LOCAL, STT_FUNC);
	made_symbol(&m, "five.c", 0, 0, STB_LOCAL, STT_FILE);
	made_symbol(&m, "top.cold", 0x2a0, 16, STB_LOCAL, STT_FUNC);
	image = made_image(&m);
	assert_whole(image, 0x10f, "top", 0x200);
	assert_whole(image, 0x12f, "same", 0x110);
	assert_whole(image, 0x13f, "top.isra.0", 0x140);
	assert_whole(image, 0x15f, "top.part.0", 0x150);
	assert_whole(image, 0x16f, "same", 0x170);
	assert_whole(image, 0x19f, "same.cold", 0x190);
	assert_whole(image, 0x1af, "lone.cold", 0x1a0);
	assert_whole(image, 0x1bf, ".cold", 0x1b0);
	assert_whole(image, 0x1cf, "lto", 0x1d0);
	for (uint64_t part = 0x210; part < 0x260; part += 0x10)
		assert_whole(image, part, "_Z3topv", 0x210);
	assert_whole(image, 0x260, "_Z3topv.colder", 0x260);
	assert_whole(image, 0x280, "better", 0x270);
	assert_whole(image, 0x290, "top.eh", 0x290);
	assert_whole(image, 0x2a0, "top", 0x200);
	assert_whole(image, 0x18f, "top", 0x180);
	image_free(image);
}

/* A second table with its addresses moved, as of a debug file that was prelinked apart. */
TEST(test_bias_and_merge)
{
	struct elfsym t = { 0 };
	struct elffile f;
	struct made m;

	made_init(&m);
	made_symbol(&m, "one", 0x100, 0x10, STB_GLOBAL, STT_FUNC);
	assert_int_equal(elffile_open(&f, -1, m.bytes, sizeof(m.bytes), NULL), 0);
	assert_int_equal(elfsym_add(&t, &f, SHT_SYMTAB, 0), 0);
	assert_int_equal(elfsym_add(&t, &f, SHT_SYMTAB, 0x100), 0);
	assert_int_equal(elfsym_add(&t, &f, SHT_SYMTAB, 0), 0);
	assert_int_equal(elfsym_add(&t, &f, SHT_DYNSYM, 0), -ENOENT);
	assert_int_equal(elfsym_finish(&t, &f), 0);
	assert_int_equal(t.nr, 2);
	assert_true(t.symbols[0].vaddr == TEXT_VADDR + 0x100);
	assert_true(t.symbols[1].vaddr == TEXT_VADDR + 0x200);
	elfsym_fini(&t);
	elffile_close(&f);
}

/* Many symbols in any order. */
TEST(test_order_of_many)
{
	struct elfsym t = { 0 };
	struct elffile f;
	struct made m;
	bool seen[0x400] = { false };
	uint32_t nr = 0;

	made_init(&m);
	srand(6);
	assert_int_equal(elffile_open(&f, -1, m.bytes, sizeof(m.bytes), NULL), 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t at = (uint64_t)rand() % ARRAY_SIZE(seen);
		char name[8];
		int size = snprintf(name, sizeof(name), "f%x", (unsigned int)at);

		/* Addresses outside the code differ in all bytes, and are left out. */
		assert_int_equal(elfsym_add_named(&t, (uint64_t)rand() * (uint64_t)rand() << 20, 1,
						  "far", 3),
				 0);
		assert_int_equal(elfsym_add_named(&t, TEXT_VADDR + at, 1, name, (size_t)size), 0);
		nr += !seen[at];
		seen[at] = true;
	}
	assert_int_equal(elfsym_finish(&t, &f), 0);
	assert_int_equal(t.nr, nr);
	for (uint32_t i = 0; i < t.nr; i++) {
		uint64_t at = t.symbols[i].vaddr - TEXT_VADDR;

		assert_true(at < ARRAY_SIZE(seen) && seen[at]);
		assert_true(!i || t.symbols[i].vaddr > t.symbols[i - 1].vaddr);
		assert_int_equal(strtoul(t.names + t.symbols[i].name + 1, NULL, 16), at);
	}
	elfsym_fini(&t);
	elffile_close(&f);
}

/* The image says how its compiler encodes names that could be of C; a stub of that name does not.
 */
TEST(test_dialects)
{
	static const struct {
		const char *function;
		char dialect;
	} marks[] = { { "hs_main", 'h' },
		      { "adainit", 'a' },
		      { "NimMain", 'n' },
		      { "SHARES__MAIN_module_init", 'c' },
		      { "nft_flow_module_init", 0 },
		      { "hs_main_loop", 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		struct image *image;
		struct made m;

		made_init(&m);
		made_symbol(&m, "main", 0x100, 0x10, STB_GLOBAL, STT_FUNC);
		made_symbol(&m, marks[i].function, 0x200, 0x10, STB_GLOBAL, STT_FUNC);
		image = made_image(&m);
		assert_int_equal(image->dialect, marks[i].dialect);
		image_free(image);
	}
}

/* A file of many functions with long names costs its size, not its square. */
TEST(test_time_of_many)
{
	enum { NR = 200000, NAME = 60 };
	const size_t size = MADE_SIZE + NR * (sizeof(Elf64_Sym) + NAME);
	uint8_t *bytes = malloc(size);
	Elf64_Sym *syms = (Elf64_Sym *)(bytes + MADE_SIZE);
	char *names = (char *)(syms + NR);
	struct image *image;
	struct made m;
	struct err e = { "" };
	uint64_t begin;

	assert_non_null(bytes);
	made_init(&m);
	made_section(&m, 1)->sh_size = NR * 16;
	made_section(&m, 2)->sh_offset = MADE_SIZE;
	made_section(&m, 2)->sh_size = NR * sizeof(*syms);
	made_section(&m, 3)->sh_offset = MADE_SIZE + NR * sizeof(*syms);
	made_section(&m, 3)->sh_size = NR * NAME;
	memcpy(bytes, m.bytes, MADE_SIZE);
	for (uint32_t i = 0; i < NR; i++) {
		uint32_t at = (uint32_t)(i * 77777ULL % NR); /* in no order */

		snprintf(names + (size_t)i * NAME, NAME, "%052u_%06u", 0, at);
		syms[i] = (Elf64_Sym){ .st_name = i * NAME,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				       .st_shndx = 1,
				       .st_value = TEXT_VADDR + at * 16,
				       .st_size = 16 };
	}
	begin = yardstick_cpu_ns();
	assert_int_equal(image_read_memory(&image, bytes, size, &e), 0);
	assert_true(yardstick_within(begin, 500));
	assert_int_equal(image->nr_symbols, NR);
	for (uint32_t i = 0; i < NR; i += 999) {
		char name[NAME];

		snprintf(name, sizeof(name), "%052u_%06u", 0, i);
		assert_true(name_is(image, image_find(image, TEXT_VADDR + i * 16 + 5), name));
	}
	image_free(image);
	free(bytes);
}

/* A CIE and one FDE that covers TEXT_VADDR + 0x100 to 0x180; .eh_frame at AT_EH. */
static void made_eh_frame(struct made *m)
{
	static const uint8_t cie[] = {
		20, 0,	  0,  0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
		1,  0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0,
	};
	uint8_t *fde = m->bytes + AT_EH + sizeof(cie);
	uint64_t vaddr = TEXT_VADDR + (AT_EH - AT_TEXT) + sizeof(cie);
	uint32_t words[4] = { 16, sizeof(cie) + 4, (uint32_t)(TEXT_VADDR + 0x100 - (vaddr + 8)),
			      0x80 };

	memcpy(m->bytes + AT_EH, cie, sizeof(cie));
	memcpy(fde, words, sizeof(words)); /* then: no augmentation data, nops, a terminator */
}

/* PT_GNU_EH_FRAME with a pointer of encoding @enc and @size bytes of value @value. */
static void made_header(struct made *m, uint8_t enc, uint64_t value, size_t size)
{
	*made_segment(m, 1) = (Elf64_Phdr){
		.p_type = PT_GNU_EH_FRAME,
		.p_offset = AT_HDR,
		.p_vaddr = TEXT_VADDR + (AT_HDR - AT_TEXT),
		.p_filesz = 4 + size,
		.p_memsz = 4 + size,
	};
	m->bytes[AT_HDR] = 1;
	m->bytes[AT_HDR + 1] = enc;
	memcpy(m->bytes + AT_HDR + 4, &value, size);
}

/* FDE number @i, of 7 bytes of instructions, for @size bytes at @offset of the text. */
static void made_fde(struct made *m, uint32_t i, uint32_t offset, uint32_t size,
		     const uint8_t insns[7])
{
	uint32_t at = 24 + 24 * i;
	uint64_t vaddr = TEXT_VADDR + (AT_EH - AT_TEXT) + at;
	uint32_t words[4] = { 20, at + 4, (uint32_t)(TEXT_VADDR + offset - (vaddr + 8)), size };

	memcpy(m->bytes + AT_EH + at, words, sizeof(words));
	memcpy(m->bytes + AT_EH + at + 17, insns, 7);
}

/* The loop of an interpreter jumps to its cold part, which has an FDE and no symbol (gcc 16). */
TEST(test_cold_loop)
{
	static const uint8_t loop[7] = { 0x44, 0x0e, 32, 0x44, 0x0e, 8 }, /* +4: 32, +8: 8 */
		part[7] = { 0x0e, 32 }, function[7] = { 0x44, 0x0e, 32 }, deeper[7] = { 0x0e, 48 };
	static const struct {
		uint8_t jump[2];
		uint32_t at, target;
		const uint8_t *rows;
		const char *name;
		bool found;
	} cases[] = {
		{ { 0x0f, 0x84 }, 5, 0x300, part, "_PyEval_EvalFrameDefault", true },
		{ { 0x0f, 0x8f }, 5, 0x300, part, "Perl_runops_standard", true },
		{ { 0x90, 0xe9 }, 4, 0x300, part, "execute_ex", true },
		{ { 0x0f, 0x84 }, 5, 0x300, part, "any_function", false },
		/* Another function, which is called; another frame; not a begin; no frame yet. */
		{ { 0x0f, 0x84 }, 5, 0x300, function, "execute_ex", false },
		{ { 0x0f, 0x84 }, 5, 0x300, deeper, "execute_ex", false },
		{ { 0x0f, 0x84 }, 5, 0x304, part, "execute_ex", false },
		{ { 0x0f, 0x84 }, 1, 0x300, part, "execute_ex", false },
		{ { 0x0f, 0x84 }, 12, 0x300, part, "execute_ex", false },
		{ { 0x0f, 0x14 }, 5, 0x300, part, "execute_ex", false }, /* no jump */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint32_t from = 0x100 + cases[i].at;
		uint32_t by = cases[i].target - (from + 6);
		char name[64];
		struct image *image;
		struct made m;

		made_init(&m);
		made_eh_frame(&m);
		made_fde(&m, 0, 0x100, 0x20, loop);
		made_fde(&m, 1, 0x300, 0x80, cases[i].rows);
		made_header(&m, 0x1b, AT_EH - (AT_HDR + 4), 4);
		memcpy(m.bytes + AT_TEXT + from, cases[i].jump, 2);
		memcpy(m.bytes + AT_TEXT + from + 2, &by, 4);
		made_symbol(&m, cases[i].name, 0x100, 0x20, STB_GLOBAL, STT_FUNC);
		image = made_image(&m);
		assert_int_equal(image->eh.nr_fdes, 2);
		assert_int_equal(image->loop != 0, strcmp(cases[i].name, "any_function") != 0);
		snprintf(name, sizeof(name), "%s.cold", cases[i].name);
		assert_name(image, 0x100, cases[i].name);
		assert_name(image, 0x37f, cases[i].found ? name : NULL);
		image_free(image);
	}
}

/*
 * A stripped program: the code at its entry tells where main() is. The FDEs are of main() at 0x100
 * and of the entry at 0x300; 0x200 and 0x240 are other code.
 */
struct made_entry {
	uint16_t machine;
	uint8_t start[24], then[16], wrapper[8]; /* the code at 0x300, 0x200 and 0x240 */
	const char *other;			 /* a symbol at 0x100 */
	const char *main, *begin;
};

static void check_entry(const struct made_entry *c)
{
	static const uint8_t none[7] = { 0 };
	const uint64_t slot = TEXT_VADDR + 0x100;
	struct image *image;
	struct made m;

	made_init(&m);
	made_eh_frame(&m);
	made_fde(&m, 0, 0x100, 0x20, none);
	made_fde(&m, 1, 0x300, 0x40, none);
	made_header(&m, 0x1b, AT_EH - (AT_HDR + 4), 4);
	memcpy(m.bytes + AT_TEXT + 0x200, c->then, sizeof(c->then));
	memcpy(m.bytes + AT_TEXT + 0x240, c->wrapper, sizeof(c->wrapper));
	memcpy(m.bytes + AT_TEXT + 0x300, c->start, sizeof(c->start));
	memcpy(m.bytes + AT_TEXT + 0x800, &slot, sizeof(slot));
	m.bytes[AT_EH + 14] = c->machine == EM_AARCH64 ? 30 : 16; /* has the return address */
	((Elf64_Ehdr *)m.bytes)->e_machine = c->machine;
	((Elf64_Ehdr *)m.bytes)->e_entry = TEXT_VADDR + 0x300;
	if (c->other)
		made_symbol(&m, c->other, 0x100, 0x20, STB_GLOBAL, STT_FUNC);
	image = made_image(&m);
	assert_int_equal(image->eh.nr_fdes, 2);
	assert_name(image, 0xff, NULL);
	assert_name(image, 0x100, c->main);
	assert_name(image, 0x11f, c->main);
	assert_name(image, 0x120, NULL);
	assert_name(image, 0x300, c->begin);
	image_free(image);
}

TEST(test_main_of_stripped)
{
#define LEA(n) 0x48, 0x8d, 0x3d, (n)&0xff, (n) >> 8 & 0xff, 0xff, 0xff /* lea n(%rip),%rdi */
#define CALL   0xff, 0x15, 0, 1, 0, 0				       /* call *0x100(%rip) */
	static const struct made_entry cases[] = {
		/* glibc: dynamic; without PIE, which has the address as a number; static. */
		{ EM_X86_64, { 0x31, 0xed, LEA(-0x209), CALL }, .main = "main", .begin = "_start" },
		{ EM_X86_64,
		  { 0x48, 0xc7, 0xc7, TEXT_VADDR >> 0 & 0xff, (TEXT_VADDR >> 8 & 0xff) + 1,
		    TEXT_VADDR >> 16 & 0xff, TEXT_VADDR >> 24, CALL },
		  .main = "main",
		  .begin = "_start" },
		{ EM_X86_64,
		  { LEA(-0x207), 0x67, 0xe8, 0xf0, 0xfe, 0xff, 0xff },
		  .main = "main",
		  .begin = "_start" },
		/* musl: _start() calls another function, which jumps. */
		{ EM_X86_64,
		  { 0x48, 0x89, 0xe7, 0xe8, 0xf8, 0xfe, 0xff, 0xff },
		  .then = { 0x8b, 0x37, LEA(-0x109), 0xe9, 0, 1, 0, 0 },
		  .main = "main",
		  .begin = "_start" },
		{ EM_X86_64,
		  { LEA(-0x207), CALL },
		  .other = "start_it",
		  .main = "start_it",
		  .begin = "_start" },
		/* Not a begin; no call; a branch before it; nothing passed on; calls of calls. */
		{ .machine = EM_X86_64, .start = { LEA(-0x206), CALL } },
		{ .machine = EM_X86_64, .start = { LEA(-0x207), 0xc3 } },
		{ .machine = EM_X86_64, .start = { 0x74, 0x10, LEA(-0x209), CALL } },
		{ .machine = EM_X86_64, .start = { 0x31, 0xed, CALL } },
		{ EM_X86_64,
		  { 0xe8, 0xfb, 0xfe, 0xff, 0xff },
		  .then = { 0xe8, 0xfb, 0xff, 0xff, 0xff } },
		/* AArch64: adrp, add x0; the same of a wrapper; adrp, ldr x0; bl. */
		{ EM_AARCH64,
		  { 0, 0, 0, 0x90, 0, 0, 4, 0x91, 0, 0, 0, 0x94 },
		  .main = "main",
		  .begin = "_start" },
		{ EM_AARCH64,
		  { 0, 0, 0, 0x90, 0, 0, 9, 0x91, 0, 0, 0, 0x94 },
		  .wrapper = { 0x1f, 0x20, 3, 0xd5, 0xaf, 0xff, 0xff, 0x17 },
		  .main = "main",
		  .begin = "_start" },
		{ EM_AARCH64,
		  { 0, 0, 0, 0x90, 0, 0, 0x44, 0xf9, 0, 0, 0, 0x94 },
		  .main = "main",
		  .begin = "_start" },
		{ .machine = EM_AARCH64,
		  .start = { 0, 0, 0, 0x90, 0, 0, 0x48, 0xf9, 0, 0, 0, 0x94 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_entry(&cases[i]);
#undef LEA
#undef CALL
}

TEST(test_eh_frame_pointer_encodings)
{
	const uint64_t eh = TEXT_VADDR + (AT_EH - AT_TEXT), hdr = TEXT_VADDR + (AT_HDR - AT_TEXT);
	const struct {
		uint8_t enc;
		uint64_t value;
		size_t size;
		bool good;
	} cases[] = {
		{ 0x1b, eh - (hdr + 4), 4, true }, /* pcrel sdata4: the usual encoding of linkers */
		{ 0x1c, eh - (hdr + 4), 8, true }, /* pcrel sdata8 */
		{ 0x1a, eh - (hdr + 4), 2, true }, /* pcrel sdata2 */
		{ 0x3b, eh - hdr, 4, true },	   /* datarel sdata4 */
		{ 0x03, eh, 4, true },		   /* udata4 */
		{ 0x00, eh, 8, true },		   /* absptr */
		{ 0x04, eh, 8, true },
		{ 0x13, eh - (hdr + 4), 4, false }, /* a negative distance, unsigned */
		{ 0x9b, eh - (hdr + 4), 4, false }, /* indirect */
		{ 0x01, eh, 8, false },		    /* uleb128 */
		{ 0xff, 0, 4, false },		    /* omitted */
		{ 0x00, eh, 7, false },		    /* cut */
		{ 0x03, 0x10, 4, false },	    /* outside all segments */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ehframe_fde fde;
		struct image *image;
		struct made m;

		made_init(&m);
		made_eh_frame(&m);
		made_header(&m, cases[i].enc, cases[i].value, cases[i].size);
		image = made_image(&m);
		if (image->eh.nr_fdes != cases[i].good)
			fail_msg("case %zu: %u FDEs", i, image->eh.nr_fdes);
		if (cases[i].good) {
			assert_true(image->eh.vaddr == eh);
			assert_true(ehframe_find(&image->eh, TEXT_VADDR + 0x17f, &fde));
			assert_false(ehframe_find(&image->eh, TEXT_VADDR + 0x180, &fde));
			/* Without a known end: it stops at the terminator. */
			assert_int_equal(image->eh.size, 24 + 20 + 4);
		}
		image_free(image);
	}
}

/* Behind the pointer: a table of @nr, of which there is one entry, for the function at @start. */
static void made_table(struct made *m, uint32_t nr, uint64_t start)
{
	const uint64_t hdr = TEXT_VADDR + (AT_HDR - AT_TEXT);
	const uint32_t words[] = { nr, (uint32_t)(start - hdr), AT_EH + 24 - AT_HDR };

	made_header(m, 0x1b, TEXT_VADDR + (AT_EH - AT_TEXT) - (hdr + 4), 4);
	m->bytes[AT_HDR + 2] = 0x03;
	m->bytes[AT_HDR + 3] = 0x3b;
	memcpy(m->bytes + AT_HDR + 8, words, sizeof(words));
}

/* The file's table is used as far as its FDEs agree; else all records are read.
 */
/* A symbol without a size ends at the next function of the tables; one with a size does not. */
TEST(test_ends_at_next_function)
{
	for (uint64_t size = 0; size < 0x100; size += 0x80) {
		struct made m;
		struct image *image;

		made_init(&m);
		made_symbol(&m, "frame_dummy", 0xf0, size, STB_LOCAL, STT_FUNC);
		made_symbol(&m, "main", 0x140, 0x10, STB_GLOBAL, STT_FUNC);
		made_eh_frame(&m);
		made_header(&m, 0, TEXT_VADDR + (AT_EH - AT_TEXT), 8);
		image = made_image(&m);
		assert_name(image, 0xff, "frame_dummy");
		assert_name(image, 0x100, size ? "frame_dummy" : NULL);
		assert_name(image, 0x13f, size ? "frame_dummy" : NULL);
		assert_name(image, 0x140, "main");
		image_free(image);
	}
}

TEST(test_eh_frame_table)
{
	const struct {
		uint32_t nr;
		uint64_t start, size;
		bool found;
	} cases[] = {
		{ 1, TEXT_VADDR + 0x100, 20, true },
		{ 1, TEXT_VADDR + 0x101, 20, false }, /* used, but different from the FDE */
		{ 1, TEXT_VADDR + 0x101, 19, true }, /* not used: the segment ends before it does */
		{ 2, TEXT_VADDR + 0x101, 20, true },
		{ UINT32_MAX, TEXT_VADDR + 0x101, UINT64_MAX, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ehframe_fde fde;
		struct image *image;
		struct made m;

		made_init(&m);
		made_eh_frame(&m);
		made_table(&m, cases[i].nr, cases[i].start);
		made_segment(&m, 1)->p_filesz = cases[i].size;
		image = made_image(&m);
		assert_int_equal(image->eh.nr_fdes, 1);
		if (ehframe_find(&image->eh, TEXT_VADDR + 0x17f, &fde) != cases[i].found)
			fail_msg("case %zu", i);
		image_free(image);
	}
}

/* No PT_GNU_EH_FRAME: the section is good enough, unless it has no bytes in the file. */
TEST(test_eh_frame_by_section)
{
	const uint32_t types[] = { SHT_PROGBITS, SHT_X86_64_UNWIND, SHT_NOBITS };
	Elf64_Ehdr *eh;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct image *image;
		struct made m;

		made_init(&m);
		made_eh_frame(&m);
		made_symbol(&m, ".eh_frame", 0x10, 4, STB_LOCAL, STT_OBJECT);
		eh = (Elf64_Ehdr *)m.bytes;
		eh->e_shnum = 5;
		eh->e_shstrndx = 3;
		*made_section(&m, 4) = (Elf64_Shdr){
			.sh_name = 1,
			.sh_type = types[i],
			.sh_flags = SHF_ALLOC,
			.sh_addr = TEXT_VADDR + (AT_EH - AT_TEXT),
			.sh_offset = AT_EH,
			.sh_size = 44,
		};
		image = made_image(&m);
		assert_int_equal(image->eh.nr_fdes, types[i] != SHT_NOBITS);
		if (image->eh.bytes)
			assert_int_equal(image->eh.size, 44);
		image_free(image);
	}
}

/* Offsets and addresses that differ, and addresses in no segment. */
TEST(test_segments)
{
	struct made m;
	struct image *image;
	uint64_t v;

	made_init(&m);
	made_segment(&m, 0)->p_memsz = 0x3000;
	image = made_image(&m);
	assert_int_equal(image->nr_segments, 1);
	assert_true(image->segments[0].exec);
	assert_true(image_vaddr(image, AT_TEXT, &v) && v == TEXT_VADDR);
	assert_true(image_vaddr(image, AT_TEXT + 0x1fff, &v) && v == TEXT_VADDR + 0x1fff);
	assert_false(image_vaddr(image, AT_TEXT + 0x2000, &v));
	assert_false(image_vaddr(image, AT_TEXT - 1, &v));
	assert_true(image_offset(image, TEXT_VADDR + 5, &v) && v == AT_TEXT + 5);
	assert_false(image_offset(image, TEXT_VADDR + 0x2000, &v)); /* .bss has no bytes */
	assert_false(image_offset(image, TEXT_VADDR - 1, &v));
	image_free(image);
}

TEST(test_elf32_has_symbols)
{
	uint8_t bytes[0x2000] = { 0 };
	Elf32_Ehdr *eh = (Elf32_Ehdr *)bytes;
	Elf32_Phdr *ph = (Elf32_Phdr *)(bytes + sizeof(*eh));
	Elf32_Shdr *sh = (Elf32_Shdr *)(bytes + 0x200);
	Elf32_Sym *sym = (Elf32_Sym *)(bytes + 0x400);
	struct image *image;

	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	eh->e_ident[EI_DATA] = ELFDATA2LSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_machine = EM_386;
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = 1;
	eh->e_shoff = 0x200;
	eh->e_shentsize = sizeof(*sh);
	eh->e_shnum = 4;
	*ph = (Elf32_Phdr){ PT_LOAD, 0x1000, 0x8048000, 0, 0x1000, 0x1000, PF_R | PF_X, 0 };
	sh[1] = (Elf32_Shdr){ .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			      .sh_addr = 0x8048000,
			      .sh_offset = 0x1000,
			      .sh_size = 0x1000 };
	sh[2] = (Elf32_Shdr){ .sh_type = SHT_SYMTAB,
			      .sh_offset = 0x400,
			      .sh_size = sizeof(*sym),
			      .sh_link = 3,
			      .sh_entsize = sizeof(*sym) };
	sh[3] = (Elf32_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = 0x500, .sh_size = 6 };
	*sym = (Elf32_Sym){ .st_name = 1,
			    .st_value = 0x8048010,
			    .st_size = 4,
			    .st_shndx = 1,
			    .st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC) };
	memcpy(bytes + 0x501, "four", 5);
	assert_int_equal(image_read_memory(&image, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(image->elf_class, ELFCLASS32);
	assert_true(name_is(image, image_find(image, 0x8048013), "four"));
	assert_null(image_find(image, 0x8048014));
	assert_null(image->eh.bytes);
	image_free(image);
}

TEST(test_refused)
{
	struct image *image = NULL;
	struct made m;
	struct err e;
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m.bytes;

	assert_int_equal(image_read_memory(&image, "", 0, &e), -ENOEXEC);
	assert_int_equal(image_read_memory(&image, "#!/bin/sh\n", 10, &e), -ENOEXEC);
	assert_true(strlen(e.text) > 0);
	made_init(&m);
	eh->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(image_read_memory(&image, m.bytes, sizeof(m.bytes), &e), -ENOEXEC);
	made_init(&m);
	eh->e_phnum = 0;
	assert_int_equal(image_read_memory(&image, m.bytes, sizeof(m.bytes), &e), -ENOEXEC);
	made_init(&m);
	eh->e_phnum = PN_XNUM; /* "see section 0": a million program headers */
	made_section(&m, 0)->sh_info = 1000000;
	assert_int_equal(image_read_memory(&image, m.bytes, sizeof(m.bytes), &e), -E2BIG);
	assert_null(image);
}

static long rss_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* A sparse file of 2 GiB with the largest numbers of sections and symbols. */
TEST(test_sparse_overflow)
{
	const uint64_t size = 2ULL << 30;
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	struct image *image;
	struct made m;
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m.bytes;
	uint64_t start = yardstick_cpu_ns();
	long before = rss_kib();

	made_init(&m);
	eh->e_shnum = 0;
	made_section(&m, 0)->sh_size = (size - AT_SECTIONS) / sizeof(Elf64_Shdr);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, m.bytes, sizeof(m.bytes), 0), sizeof(m.bytes));
	assert_int_equal(image_read_fd(&image, fd, size, NULL), 0);
	assert_int_equal(image->nr_symbols, 0);
	image_free(image);
	eh->e_shnum = 4;
	made_section(&m, 2)->sh_size = size - AT_SYMTAB;
	made_section(&m, 3)->sh_size = size - AT_NAMES;
	assert_int_equal(pwrite(fd, m.bytes, sizeof(m.bytes), 0), sizeof(m.bytes));
	assert_int_equal(image_read_fd(&image, fd, size, NULL), 0);
	assert_int_equal(image->nr_symbols, 0);
	image_free(image);
	made_section(&m, 2)->sh_size = UINT64_MAX;
	made_section(&m, 3)->sh_offset = UINT64_MAX - 2;
	assert_int_equal(pwrite(fd, m.bytes, sizeof(m.bytes), 0), sizeof(m.bytes));
	assert_int_equal(image_read_fd(&image, fd, size, NULL), 0);
	image_free(image);
	close(fd);
	assert_true(yardstick_within(start, 1000));
	assert_true(rss_kib() - before < 64 << 10);
}

#define NR_READERS 8
#define LARGE_SIZE (96ULL << 20)

static void *read_large(void *arg)
{
	struct image_input in = { .fd = *(int *)arg,
				  .size = LARGE_SIZE + AT_NAMES,
				  .memory_max = LARGE_SIZE + (32 << 20) };
	struct image *image = NULL;
	int rc;

	while ((rc = image_read(&image, &in, NULL)) == -EAGAIN)
		usleep(1000);
	assert_int_equal(rc, 0);
	image_free(image);
	return NULL;
}

/*
 * Sparse files with large tables, read by one thread for each load: one after another.
 * One that cannot fit has no symbols, and the reason.
 */
TEST(test_large_together)
{
	int fd = memfd_create("large", MFD_CLOEXEC);
	struct image_input in = { .fd = fd, .size = LARGE_SIZE + AT_NAMES, .memory_max = 20 << 20 };
	pthread_t threads[NR_READERS];
	struct image *image;
	struct made m;
	long before;

	made_init(&m);
	made_section(&m, 2)->sh_size = sizeof(Elf64_Sym);
	made_section(&m, 3)->sh_size = LARGE_SIZE;
	assert_int_equal(ftruncate(fd, (off_t)in.size), 0);
	assert_int_equal(pwrite(fd, m.bytes, sizeof(m.bytes), 0), sizeof(m.bytes));
	before = rss_kib();
	assert_int_equal(image_read(&image, &in, NULL), 0);
	assert_string_equal(image->trouble, "symbols are larger than --symbol-memory: not read");
	image_free(image);
	assert_true(rss_kib() - before < 8 << 10);
	for (int i = 0; i < NR_READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_large, &fd), 0);
	for (int i = 0; i < NR_READERS; i++)
		pthread_join(threads[i], NULL);
#ifndef __SANITIZE_ADDRESS__ /* which keeps freed memory */
	/* Table, reply and image, which are in two processes and a memfd with the sandbox. */
	assert_true(rss_kib() - before < 4 * (long)(LARGE_SIZE >> 10));
#endif
	close(fd);
}

/* More sections than the header can count: their number, and the index of their names, are in
 * section 0. */
TEST(test_extended_numbers)
{
	struct elffile f;
	struct made m;
	struct image *image;
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m.bytes;

	made_init(&m);
	made_symbol(&m, ".text", 0x10, 8, STB_GLOBAL, STT_FUNC);
	made_section(&m, 1)->sh_name = 1;
	eh->e_shnum = 0;
	eh->e_shstrndx = SHN_XINDEX;
	made_section(&m, 0)->sh_size = 4;
	made_section(&m, 0)->sh_link = 3;
	image = made_image(&m);
	assert_int_equal(image->nr_symbols, 1);
	image_free(image);
	assert_int_equal(elffile_open(&f, -1, m.bytes, sizeof(m.bytes), NULL), 0);
	assert_int_equal(f.nr_shdrs, 4);
	assert_non_null(elffile_section(&f, ".text"));
	elffile_close(&f);
	/* Names from nowhere: no names, but all else. */
	made_section(&m, 0)->sh_link = UINT32_MAX;
	assert_int_equal(elffile_open(&f, -1, m.bytes, sizeof(m.bytes), NULL), 0);
	assert_int_equal(f.nr_shdrs, 4);
	assert_null(elffile_section(&f, ".text"));
	elffile_close(&f);
	/* A number that the file is too small for. */
	made_section(&m, 0)->sh_size = ELFFILE_SHDRS_MAX;
	assert_int_equal(elffile_open(&f, -1, m.bytes, sizeof(m.bytes), NULL), 0);
	assert_int_equal(f.nr_shdrs, 0);
	elffile_close(&f);
}

/* A file without section headers, with a dynamic section: AT_EH and TEXT_VADDR + 0x1000 on. */
static void made_dynamic(struct made *m)
{
	static const char names[] = "\0imported\0one\0two";
	const uint64_t vaddr = TEXT_VADDR + (AT_EH - AT_TEXT);
	const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { .d_ptr = vaddr + 0x200 } },
		{ DT_STRTAB, { .d_ptr = vaddr + 0x400 } },
		{ DT_STRSZ, { .d_val = sizeof(names) } },
		{ DT_GNU_HASH, { .d_ptr = vaddr + 0x600 } },
		{ DT_NULL, { .d_val = 0 } },
	};
	const Elf64_Sym symbols[] = {
		{ 0 },
		{ .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) },
		{ .st_name = 10,
		  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		  .st_shndx = 9,
		  .st_value = TEXT_VADDR + 0x100,
		  .st_size = 16 },
		{ .st_name = 14,
		  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		  .st_shndx = 9,
		  .st_value = TEXT_VADDR + 0x200,
		  .st_size = 16 },
	};
	/* Two chains, the first symbol in one, a word of the filter; the chains' begins; they end.
	 */
	const uint32_t hash[] = { 2, 2, 1, 0, 0, 0, 2, 3, 1, 1 };
	Elf64_Ehdr *eh = (Elf64_Ehdr *)m->bytes;

	made_init(m);
	eh->e_shoff = eh->e_shnum = 0;
	*made_segment(m, 1) = (Elf64_Phdr){
		.p_type = PT_DYNAMIC,
		.p_offset = AT_EH,
		.p_vaddr = vaddr,
		.p_filesz = sizeof(dynamic),
	};
	memcpy(m->bytes + AT_EH, dynamic, sizeof(dynamic));
	memcpy(m->bytes + AT_EH + 0x200, symbols, sizeof(symbols));
	memcpy(m->bytes + AT_EH + 0x400, names, sizeof(names));
	memcpy(m->bytes + AT_EH + 0x600, hash, sizeof(hash));
}

/* As after sstrip(1): the dynamic symbols are found as the loader of programs finds them. */
TEST(test_no_section_headers)
{
	static const struct {
		uint32_t word, value;
	} damages[] = {
		{ 0, UINT32_MAX }, /* chains */
		{ 0, 1U << 20 },   /* the same, less than the limit */
		{ 1, 4 },	   /* the first symbol is behind the last */
		{ 2, UINT32_MAX }, /* the filter */
		{ 7, UINT32_MAX }, /* the begin of a chain */
		{ 9, 0 },	   /* a chain without an end */
	};
	struct made m;
	struct image *image;

	made_dynamic(&m);
	image = made_image(&m);
	assert_string_equal(image->source, ".dynsym");
	assert_name(image, 0x10f, "one");
	assert_name(image, 0x20f, "two");
	assert_int_equal(image->nr_symbols, 2);
	image_free(image);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		made_dynamic(&m);
		memcpy(m.bytes + AT_EH + 0x600 + damages[i].word * sizeof(uint32_t),
		       &damages[i].value, sizeof(uint32_t));
		image = made_image(&m);
		assert_int_equal(image->nr_symbols, 0);
		image_free(image);
	}
}

/* A string table has names that no function has: only the others are kept, a shared end once. */
TEST(test_unused_names)
{
	struct image *image;
	struct made m;

	made_init(&m);
	made_symbol(&m, "variable", 0x80, 16, STB_GLOBAL, STT_OBJECT);
	made_symbol(&m, "outer_one", 0x10, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "another", 0x90, 16, STB_GLOBAL, STT_OBJECT);
	made_symbol(&m, "one", 0x20, 16, STB_GLOBAL, STT_FUNC);
	made_symbol(&m, "two", 0x30, 16, STB_GLOBAL, STT_FUNC);
	/* The fourth is the end of the second, as linkers write it. */
	((Elf64_Sym *)(void *)(m.bytes + AT_SYMTAB))[3].st_name =
		((Elf64_Sym *)(void *)(m.bytes + AT_SYMTAB))[1].st_name + 6;
	image = made_image(&m);
	image_walk(image);
	assert_int_equal(image->nr_symbols, 3);
	assert_string_equal(image->names + image->symbols[0].name, "outer_one");
	assert_string_equal(image->names + image->symbols[1].name, "one");
	assert_string_equal(image->names + image->symbols[2].name, "two");
	assert_int_equal(image->names_size, sizeof("outer_one") + sizeof("two"));
	image_free(image);
}

/* Sections upon each other, upon the headers, and around the end of all numbers. */
TEST(test_overlapping_sections)
{
	const struct {
		uint64_t symtab, symtab_size, names, names_size;
	} cases[] = {
		{ 0, MADE_SIZE, 0, MADE_SIZE },		    /* the whole file, twice */
		{ AT_SECTIONS, 0x400, AT_SECTIONS, 0x400 }, /* the section headers themselves */
		{ AT_NAMES, 0x1000, AT_SYMTAB, 0x800 },	    /* each in the other's place */
		{ AT_SYMTAB, UINT64_MAX, AT_NAMES, 16 },
		{ AT_SYMTAB, UINT64_MAX - AT_SYMTAB + 1, AT_NAMES, 16 },
		{ UINT64_MAX - 23, 24, AT_NAMES, 16 },
		{ AT_SYMTAB, 24, UINT64_MAX, 2 },
		{ AT_SYMTAB, 24, AT_NAMES, UINT64_MAX - AT_NAMES + 1 },
		{ MADE_SIZE, 24, MADE_SIZE, 1 },
	};
	struct made m;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct image *image;

		made_init(&m);
		made_symbol(&m, "one", 0x10, 8, STB_GLOBAL, STT_FUNC);
		made_section(&m, 2)->sh_offset = cases[i].symtab;
		made_section(&m, 2)->sh_size = cases[i].symtab_size;
		made_section(&m, 3)->sh_offset = cases[i].names;
		made_section(&m, 3)->sh_size = cases[i].names_size;
		image = made_image(&m);
		image_walk(image);
		assert_true(image->nr_symbols <= MADE_SIZE / sizeof(Elf64_Sym));
		assert_true(image->names_size <= 2 * MADE_SIZE);
		if (i > 2)
			assert_int_equal(image->nr_symbols, 0);
		image_free(image);
	}
}

/* The file is shorter than it was when its size was taken. */
TEST(test_file_shrinks)
{
	int fd = memfd_create("shrinks", MFD_CLOEXEC);
	struct image *image = NULL;
	struct made m;

	made_init(&m);
	made_symbol(&m, "gone", 0x10, 8, STB_GLOBAL, STT_FUNC);
	assert_int_equal(pwrite(fd, m.bytes, sizeof(m.bytes), 0), sizeof(m.bytes));
	assert_int_equal(ftruncate(fd, AT_NAMES), 0);
	assert_int_equal(image_read_fd(&image, fd, sizeof(m.bytes), NULL), 0);
	assert_int_equal(image->nr_symbols, 0);
	image_free(image);
	assert_int_equal(ftruncate(fd, 10), 0);
	assert_int_equal(image_read_fd(&image, fd, sizeof(m.bytes), NULL), -ENOEXEC);
	close(fd);
}

/* Damage a file of many sections in a thousand ways: mostly its headers. */
TEST(test_mutations)
{
	unsigned int seed = 7, built = 0;
	uint64_t sum = 0;
	struct whole w;
	uint8_t *copy;

	whole_open(&w, "/proc/self/exe");
	copy = malloc(w.size);
	for (int round = 0; round < 1000; round++) {
		const Elf64_Ehdr *eh = (const Elf64_Ehdr *)w.bytes;
		struct image *image;

		memcpy(copy, w.bytes, w.size);
		for (int i = 0; i < 8; i++) {
			uint64_t area = (unsigned int)rand_r(&seed) % 3, at;

			at = area == 0	 ? (unsigned int)rand_r(&seed) % 1024
			     : area == 1 ? eh->e_shoff + (unsigned int)rand_r(&seed) %
								 (eh->e_shnum * sizeof(Elf64_Shdr))
					 : (unsigned int)rand_r(&seed) % w.size;
			copy[at] = (uint8_t)rand_r(&seed);
		}
		if (!image_read_memory(&image, copy, w.size - (round & 1 ? 0 : (uint64_t)round * 8),
				       NULL)) {
			sum += image_walk(image);
			image_free(image);
			built++;
		}
	}
	assert_true(built > 100 && sum > 0);
	free(copy);
	whole_close(&w);
}

/* Every length of a small file. */
TEST(test_truncations)
{
	struct made m;

	made_init(&m);
	made_eh_frame(&m);
	made_header(&m, 0x03, TEXT_VADDR + (AT_EH - AT_TEXT), 4);
	made_symbol(&m, "one", 0x100, 0x10, STB_GLOBAL, STT_FUNC);
	for (size_t size = 0; size <= sizeof(m.bytes); size += size < 0x900 ? 1 : 61) {
		uint8_t *exact = malloc(size ? size : 1); /* so that ASan sees one byte more */
		struct image *image;

		memcpy(exact, m.bytes, size);
		if (!image_read_memory(&image, exact, size, NULL)) {
			image_walk(image);
			image_free(image);
		}
		free(exact);
	}
}

/* Compare an image that came back as one block with the one that was made in pieces. */
static void same_image(const struct image *block, const struct image *image)
{
	struct ehframe_fde a, b;

	assert_true(!image->block && block->block);
	assert_true(block->names_in_file ||
		    image_memory(block) ==
			    image_memory(image) - (block->frames.at ? block->eh.in_file : 0));
	assert_string_equal(block->source, image->source);
	assert_int_equal(block->complete, image->complete);
	assert_int_equal(block->machine, image->machine);
	assert_memory_equal(block->build_id, image->build_id, sizeof(image->build_id));
	assert_int_equal(block->sigreturn, image->sigreturn);
	assert_int_equal(block->sigreturn_size, image->sigreturn_size);
	assert_int_equal(block->nr_symbols, image->nr_symbols);
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		struct image_symbol own = image->symbols[i];

		assert_string_equal(block->names + block->symbols[i].name, image->names + own.name);
		own.name = block->symbols[i].name;
		assert_memory_equal(&block->symbols[i], &own, sizeof(own));
	}
	assert_memory_equal(block->segments, image->segments,
			    image->nr_segments * sizeof(*image->segments));
	assert_true(image->eh.nr_fdes > 10 && block->eh.nr_fdes == image->eh.nr_fdes);
	for (uint32_t i = 0; i < image->eh.nr_fdes; i++) {
		assert_true(ehframe_at(&image->eh, i, &a) && ehframe_at(&block->eh, i, &b));
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

/* The image of a file that is read in parts, or from a copy of them, is that of all its bytes. */
TEST(test_parts_and_whole)
{
	const char *const paths[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
				      "/lib/aarch64-linux-gnu/libc.so.6", "/usr/bin/perf" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct image *image, *block;
		struct elffile f;
		struct whole w;

		if (access(paths[i], R_OK))
			continue;
		whole_open(&w, paths[i]);
		assert_int_equal(image_read_memory(&image, w.bytes, w.size, NULL), 0);
		/* Only files have derived tables. */
		assert_int_equal(elffile_open(&f, -1, w.bytes, w.size, NULL), 0);
		assert_int_equal(derive_image(image, &f, NULL), 0);
		elffile_close(&f);
		for (int copied = 0; copied < 2; copied++) {
			const struct image_input in = {
				.fd = w.fd, .size = w.size, .no_debug_files = true, .copied = copied
			};

			assert_int_equal(image_read(&block, &in, NULL), 0);
			same_image(block, image);
			image_free(block);
		}
		image_free(image);
		whole_close(&w);
	}
}

/* A list of parts is sorted and without overlaps, and has what was added. */
TEST(test_parts)
{
	const uint64_t size = 64 * ELFPARTS_ALIGNED + 100;
	static struct elfparts p;
	unsigned int seed = 3;

	for (int round = 0; round < 300; round++) {
		bool there[65] = { false };

		p.nr = 0;
		for (int i = 0; i < round % 40; i++) {
			uint64_t start = (uint64_t)rand_r(&seed) % size;
			uint64_t end = start + 1 + (uint64_t)rand_r(&seed) % 50000;

			end = MIN(size, end);
			elfparts_add(&p, start, end, size);
			assert_true(elfparts_has(&p, start, end));
			for (uint64_t k = start / ELFPARTS_ALIGNED;
			     k <= (end - 1) / ELFPARTS_ALIGNED; k++)
				there[k] = true;
		}
		for (uint32_t i = 0; i < p.nr; i++)
			assert_true(p.list[i].start < p.list[i].end &&
				    (!i || p.list[i].start > p.list[i - 1].end));
		for (uint64_t k = 0; k < 65; k++)
			assert_int_equal(elfparts_has(&p, k * ELFPARTS_ALIGNED,
						      MIN(size, (k + 1) * ELFPARTS_ALIGNED)),
					 there[k]);
	}
	assert_false(p.full);
	p.nr = 0;
	for (uint64_t k = 0; k <= ELFPARTS_MAX; k++)
		elfparts_add(&p, 2 * k * ELFPARTS_ALIGNED, 2 * k * ELFPARTS_ALIGNED + 1,
			     UINT64_MAX);
	assert_true(p.nr == ELFPARTS_MAX && p.full);
}

TEST(test_debug_path)
{
	const uint8_t id[4] = { 0xab, 0x01, 0x02, 0xff };
	char buf[64];

	assert_true(debugfile_path(id, 4, buf, sizeof(buf)));
	assert_string_equal(buf, "/usr/lib/debug/.build-id/ab/0102ff.debug");
	assert_false(debugfile_path(id, 1, buf, sizeof(buf)));
	assert_false(debugfile_path(id, 4, buf, 30));
}

/*
 * The bytes of .eh_frame are pages of a file that only root may change: nothing is copied, and a
 * file that becomes shorter is an end of its records, not of this process. A file of others is
 * copied.
 */
/* Give the file another build ID: a debug file that may be installed has more names. */
static void change_build_id(struct whole *w)
{
	static const char note[16] = "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU";
	uint8_t *at = memmem(w->bytes, w->size, note, sizeof(note));

	assert_non_null(at);
	at[sizeof(note)] ^= 1;
}

TEST(test_mapped)
{
	char path[] = "build/test-image-XXXXXX";
	struct image *image = NULL;
	struct ehframe_fde fde;
	struct whole w;
	bool found = false;
	uint64_t start;
	int fd;

	if (geteuid())
		skip();
	whole_open(&w, libc_path());
	change_build_id(&w);
	fd = mkstemp(path);
	assert_true(fd >= 0 && !fchmod(fd, 0666));
	assert_int_equal(pwrite(fd, w.bytes, w.size, 0), w.size);
	assert_int_equal(image_read_fd(&image, fd, w.size, NULL), 0);
	assert_true(!image->frames.at && image_memory(image) > image->eh.size);
	image_free(image);
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_int_equal(image_read_fd(&image, fd, w.size, NULL), 0);
	/* Of another mount than the root folder it is copied. */
	if (image->frames.at) {
		assert_true(image->eh.in_file > 100000 && image_memory(image) < w.size / 8);
		assert_memory_equal(image->eh.bytes, w.bytes + image->eh.file_at,
				    image->eh.in_file);
		start = ehframe_start(&image->eh, image->eh.nr_fdes / 2);
		assert_true(ehframe_find(&image->eh, start, &fde) && fde.start == start);
		assert_true(image->names_in_file == w.size && image->names_size - w.size < 30000);
		for (uint32_t i = 0; i < image->nr_symbols; i++)
			found |= !strcmp(image->names + image->symbols[i].name, "qsort_r");
		assert_true(found);
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_false(ehframe_find(&image->eh, start, &fde));
		for (uint32_t i = 0; i < image->nr_symbols; i++)
			assert_string_not_equal(image->names + image->symbols[i].name, "qsort_r");
	}
	image_free(image);
	close(fd);
	unlink(path);
	whole_close(&w);
}

/* Copy libc, as a file that root alone may change, to @path. */
static void copy_libc(const char *path)
{
	int from = open(libc_path(), O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	assert_true(from >= 0 && to >= 0 && !fstat(from, &st));
	assert_true(sendfile(to, from, &(off_t){ 0 }, (size_t)st.st_size) == st.st_size);
	close(from);
	close(to);
}

/*
 * In a mount namespace: a file of a bind mount is mapped, and its mount can be unmounted then.
 * Returns an exit status, 77: without the right.
 */
static int read_in_mount(const char *from, const char *mount_at)
{
	struct image *image = NULL;
	struct stat st;
	char path[64];
	bool mapped;
	int fd;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) ||
	    mount(from, mount_at, NULL, MS_BIND, NULL))
		return 77;
	snprintf(path, sizeof(path), "%s/file", mount_at);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || image_read_fd(&image, fd, (uint64_t)st.st_size, NULL))
		return 1;
	mapped = image->frames.at && image->name_pages.at;
	close(fd);
	if (umount(mount_at))
		return 2;
	image_free(image);
	return mapped ? 0 : 3;
}

TEST(test_mapped_in_mount)
{
	char folder[] = "build/test-image-XXXXXX", path[64], below[64];
	struct statx root, here;
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	assert_non_null(mkdtemp(folder));
	/* The file system of the root folder. */
	assert_true(!statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &root) &&
		    !statx(AT_FDCWD, folder, 0, STATX_MNT_ID, &here));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(below, sizeof(below), "%s/mount", folder);
	assert_int_equal(mkdir(below, 0700), 0);
	copy_libc(path);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(root.stx_mnt_id == here.stx_mnt_id ? read_in_mount(folder, below) : 77);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	rmdir(below);
	rmdir(folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

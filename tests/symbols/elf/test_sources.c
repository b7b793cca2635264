// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sources: names of an image from beyond its tables: debug files by link, compressed tables (and
 * bombs), stubs of a PLT.
 * Live: waits for threads or processes and takes about a second of CPU time, or more.
 */
#include "symbols/elf/elf.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_LZMA
#include <lzma.h>
#endif

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/elf/elf.h"
#include "symbols/image/internal.h"
#include "tests/makers/elf.h"
#include "tests/makers/go.h"

#define VADDR 0x10000ULL
#define FUNC  ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)

/* Assert the symbol that covers @vaddr; @name NULL: none. */
static void assert_name(const struct image *image, uint64_t vaddr, const char *name)
{
	const struct image_symbol *s = image_find(image, vaddr);

	if (!name) {
		assert_null(s);
		return;
	}
	assert_non_null(s);
	if (!image_symbol_is(image, s, name))
		fail_msg("%s, not %s", name, image->names + s->name);
}

/* ---- stubs ---- */

static const char strings[] = "\0alpha\0beta\0gamma\0ifunc";
enum { ALPHA = 1, BETA = 7, GAMMA = 12, IFUNC = 18 };

static const Elf64_Sym dynsyms[] = {
	{ 0 },
	{ .st_name = ALPHA, .st_info = FUNC },
	{ .st_name = BETA, .st_info = FUNC },
	{ .st_name = GAMMA, .st_info = FUNC },
	{ .st_name = IFUNC,
	  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC),
	  .st_shndx = 1,
	  .st_value = VADDR + 0x800,
	  .st_size = 0x20 },
};

/* "jmp *disp(%rip)" at @at of @code, which is loaded at @vaddr, through slot @got. */
static void put_jump(uint8_t *code, size_t at, uint64_t vaddr, uint64_t got)
{
	int32_t disp = (int32_t)(got - (vaddr + at + 6));

	code[at] = 0xff;
	code[at + 1] = 0x25;
	memcpy(code + at + 2, &disp, 4);
}

static struct image *image_of(struct elfmake *m)
{
	struct image *image;
	struct err e = { "" };

	elfmake_finish(m);
	if (image_read_memory(&image, m->bytes, m->size, &e))
		fail_msg("%s", e.text);
	return image;
}

TEST(test_stubs_x86_64)
{
	const uint64_t plt = VADDR + 0x100, sec = VADDR + 0x200, got_plt = VADDR + 0x300;
	const uint64_t got = 0x50000;
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const Elf64_Rela lazy[] = {
		/* not in the order of the stubs */
		{ .r_offset = got + 0x20, .r_info = ELF64_R_INFO(2, R_X86_64_JUMP_SLOT) },
		{ .r_offset = got + 0x18, .r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT) },
		{ .r_offset = got + 0x28,
		  .r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE),
		  .r_addend = VADDR + 0x800 },
	};
	const Elf64_Rela eager[] = {
		{ .r_offset = got + 0x40, .r_info = ELF64_R_INFO(3, R_X86_64_GLOB_DAT) },
		{ .r_offset = got + 0x48, .r_info = ELF64_R_INFO(99, R_X86_64_GLOB_DAT) },
		{ .r_offset = got + 0x50, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE) },
	};
	uint8_t a[0x40] = { 0 }, b[0x30] = { 0 }, c[0x10] = { 0 };
	struct elfmake m;
	struct image *image;
	unsigned int syms;

	put_jump(a, 0x06, plt, got + 0x10); /* the stub that calls the linker: no name */
	put_jump(a, 0x10, plt, got + 0x18);
	put_jump(a, 0x20, plt, got + 0x20);
	put_jump(a, 0x30, plt, got + 0x28);
	memcpy(b + 0x10, endbr, 4);
	put_jump(b, 0x14, sec, got + 0x18);
	put_jump(b, 0x20, sec, got + 0x48); /* a symbol out of range */
	put_jump(c, 0x00, got_plt, got + 0x40);
	put_jump(c, 0x08, got_plt, got + 0x50); /* an unused slot */
	elfmake_init(&m, EM_X86_64, VADDR, 0x1000);
	elfmake_code(&m, ".text", VADDR, VADDR + 0x800, 0x800, 0, NULL);
	elfmake_code(&m, ".plt", VADDR, plt, sizeof(a), 16, a);
	elfmake_code(&m, ".plt.sec", VADDR, sec, sizeof(b), 16, b);
	elfmake_code(&m, ".plt.got", VADDR, got_plt, sizeof(c), 8, c);
	syms = elfmake_symbols(&m, SHT_DYNSYM, dynsyms, 5, strings, sizeof(strings));
	elfmake_section(&m, ".rela.plt",
			(Elf64_Shdr){ .sh_type = SHT_RELA,
				      .sh_link = syms,
				      .sh_size = sizeof(lazy),
				      .sh_entsize = sizeof(Elf64_Rela) },
			lazy);
	elfmake_section(&m, ".rela.dyn",
			(Elf64_Shdr){ .sh_type = SHT_RELA,
				      .sh_link = syms,
				      .sh_size = sizeof(eager),
				      .sh_entsize = sizeof(Elf64_Rela) },
			eager);
	image = image_of(&m);
	assert_name(image, plt, NULL);
	assert_name(image, plt + 0x10, "alpha@plt");
	assert_name(image, plt + 0x1f, "alpha@plt");
	assert_name(image, plt + 0x20, "beta@plt");
	assert_name(image, plt + 0x30, "ifunc@plt");
	assert_name(image, sec + 0x00, NULL);
	assert_name(image, sec + 0x1a, "alpha@plt");
	assert_name(image, sec + 0x20, NULL);
	assert_name(image, got_plt + 0x04, "gamma@plt");
	assert_name(image, got_plt + 0x08, NULL);
	assert_name(image, VADDR + 0x810, "ifunc");
	image_free(image);
	elfmake_fini(&m);
}

TEST(test_stubs_aarch64)
{
	/* As disassemblers show them: the slots are at 0x20000, 0x20008, 0x1f008. */
	static const uint32_t code[] = {
		0xa9bf7bf0, /* stp x16, x30, [sp, #-16]! */
		/* adrp x16, +0x10000; ldr x17, [x16] */
		0x90000090,
		0xf9400211,
		0x91000210,
		0xd61f0220,
		0xd503245f, /* bti c */
		0x90000090,
		0xf9400611,
		0x91002210,
		0xd61f0220, /* ldr x17, [x16, #8] */
		0xf0000070,
		0xf9400611,
		0x91002210,
		0xd61f0220, /* adrp x16, +0xf000 */
		0xd503201f,
	};
	const Elf64_Rela rela[] = {
		{ .r_offset = 0x20000, .r_info = ELF64_R_INFO(1, R_AARCH64_JUMP_SLOT) },
		{ .r_offset = 0x20008, .r_info = ELF64_R_INFO(2, R_AARCH64_JUMP_SLOT) },
		{ .r_offset = 0x1f008, .r_info = ELF64_R_INFO(3, R_AARCH64_GLOB_DAT) },
	};
	struct elfmake m;
	struct image *image;
	unsigned int syms;

	elfmake_init(&m, EM_AARCH64, VADDR, 0x1000);
	elfmake_code(&m, ".text", VADDR, VADDR + 0x800, 0x800, 0, NULL);
	elfmake_code(&m, ".plt", VADDR, VADDR, sizeof(code), 16, code);
	syms = elfmake_symbols(&m, SHT_DYNSYM, dynsyms, 5, strings, sizeof(strings));
	elfmake_section(&m, ".rela.plt",
			(Elf64_Shdr){ .sh_type = SHT_RELA,
				      .sh_link = syms,
				      .sh_size = sizeof(rela),
				      .sh_entsize = sizeof(Elf64_Rela) },
			rela);
	image = image_of(&m);
	assert_name(image, VADDR, NULL);
	assert_name(image, VADDR + 0x04, "alpha@plt");
	assert_name(image, VADDR + 0x13, "alpha@plt");
	assert_name(image, VADDR + 0x14, "beta@plt");
	assert_name(image, VADDR + 0x27, "beta@plt");
	assert_name(image, VADDR + 0x28, "gamma@plt");
	image_free(image);
	elfmake_fini(&m);
}

/* The n-th stub of this program's .plt belongs to the n-th relocation, as linkers do it. */
TEST(test_own_stubs)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	uint64_t plt = 0, plt_size = 0, nr_named = 0;
	size_t names, nr_rela = 0, nr_dynsym = 0;
	Elf_Data *rela = NULL, *dynsym = NULL;
	size_t strtab = 0;
	struct image *image;
	struct stat st;
	bool sec = false;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(image_read_fd(&image, fd, (uint64_t)st.st_size, NULL), 0);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);

	elf_getshdrstrndx(elf, &names);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr s;
		const char *name;

		gelf_getshdr(scn, &s);
		name = elf_strptr(elf, names, s.sh_name);
		if (!strcmp(name, ".plt.sec") || (!strcmp(name, ".plt") && !sec)) {
			sec = !strcmp(name, ".plt.sec");
			plt = s.sh_addr;
			plt_size = s.sh_size;
		} else if (!strcmp(name, ".rela.plt")) {
			rela = elf_getdata(scn, NULL);
			nr_rela = s.sh_size / s.sh_entsize;
		} else if (s.sh_type == SHT_DYNSYM) {
			dynsym = elf_getdata(scn, NULL);
			nr_dynsym = s.sh_size / s.sh_entsize;
			strtab = s.sh_link;
		}
	}
	if (image->machine != EM_X86_64 || !rela || !dynsym || !plt_size)
		skip_test(
			"not on this machine: a PLT that is bound lazily"); /* linked with -z now */
	for (size_t i = 0; i < nr_rela; i++) {
		char expected[512];
		GElf_Rela r;
		GElf_Sym sym;

		gelf_getrela(rela, (int)i, &r);
		assert_true(GELF_R_SYM(r.r_info) < nr_dynsym);
		gelf_getsym(dynsym, (int)GELF_R_SYM(r.r_info), &sym);
		snprintf(expected, sizeof(expected), "%s@plt",
			 elf_strptr(elf, strtab, sym.st_name));
		assert_name(image, plt + 16 * (i + !sec) + 3, expected);
		nr_named++;
	}
	assert_true(nr_named > 10);
	elf_end(elf);
	image_free(image);
	close(fd);
}

/* ---- Go's own table ---- */

static struct image *go_image(const uint8_t *table, size_t size)
{
	struct elfmake m;
	struct image *image;

	elfmake_init(&m, EM_X86_64, VADDR, 0x1000);
	elfmake_code(&m, ".text", VADDR, VADDR + 0x100, 0xf00, 0, NULL);
	elfmake_section(&m, ".gopclntab",
			(Elf64_Shdr){
				.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_size = size },
			table);
	image = image_of(&m);
	elfmake_fini(&m);
	return image;
}

/*
 * The depth of the stack at each instruction is an unwind table: of main.main; main.leaf changes to
 * another stack.
 */
TEST(test_go_frames)
{
	enum { STEPS = 0x180, MAIN = 0x240, LEAF = 0x280, PCSP = 16, FLAGS = 41, SP_WRITE = 2 };
	enum { CALLBACK = 0x20 };
	/* Depth 0 for 4 bytes, 24 for 32, 0 for 12. */
	static const uint8_t steps[] = { 0, 2, 4, 48, 32, 47, 12, 0 };
	/* After 4: CFA is rsp + 32. After 5 more: the frame pointer is in its slot. */
	static const uint8_t deeper[] = { 4, 4, 0, 0, 0, 0x0e, 32, 4, 5, 0, 0, 0, 0x86, 2 };
	static const uint32_t functions[] = { 0x0, 0x40, 0x30, 0x80, 0x50, 0 };
	const uint32_t first = 1;
	const uint64_t at = STEPS;
	struct ehframe_fde fde;
	uint8_t table[GO_SIZE];
	struct image *image;

	make_go(table, VADDR + 0x100);
	memcpy(table + 8 + 6 * 8, &at, sizeof(at));
	memcpy(table + STEPS, steps, sizeof(steps));
	memcpy(table + GO_FUNCTIONS, functions, sizeof(functions));
	memset(table + MAIN, 0, 0x80);
	memcpy(table + MAIN + PCSP, &first, 4);
	memcpy(table + LEAF + PCSP, &first, 4);
	memcpy(table + LEAF + 4, &(uint32_t){ 10 }, 4);
	table[LEAF + FLAGS] = SP_WRITE;
	image = go_image(table, sizeof(table));
	assert_true(ehframe_find(&image->eh, VADDR + 0x110, &fde));
	assert_int_equal(fde.start, VADDR + 0x100);
	assert_int_equal(fde.size, 0x30);
	/* Its caller is on another stack: neither that nor sp is known. */
	assert_true(ehframe_find(&image->eh, VADDR + 0x130, &fde));
	assert_non_null(memmem(image->eh.bytes, image->eh.size, "\x07\x10\x07\x07", 4));
	assert_non_null(memmem(image->eh.bytes, image->eh.size, deeper, sizeof(deeper)));
	image_free(image);
	/* The function by which C calls Go has a frame of one size on both stacks. */
	memcpy(table + LEAF + 4, &(uint32_t){ CALLBACK }, 4);
	memcpy(table + GO_NAMES + CALLBACK, "runtime.cgocallback", 20);
	image = go_image(table, sizeof(table));
	assert_true(ehframe_find(&image->eh, VADDR + 0x130, &fde));
	assert_int_equal(fde.start, VADDR + 0x130);
	assert_null(memmem(image->eh.bytes, image->eh.size, "\x07\x10\x07\x07", 4));
	image_free(image);
	/* A depth below zero is no table. */
	table[STEPS + 5] = 51;
	image = go_image(table, sizeof(table));
	assert_false(ehframe_find(&image->eh, VADDR + 0x110, &fde));
	image_free(image);
}

/* ---- V8's builtins ---- */

enum { V8_NR_BUILTINS = 300, V8_ENTRY = 28, V8_CODE = 0x1000, V8_DATA = 0x8000 };
enum { V8_NAMES = 0xb000, V8_TEXT = 0xe000, V8_SIZE = 0x10000 };

/* A function that loads @word by @code and returns. */
static uint64_t v8_function(uint8_t *bytes, uint64_t at, const char *code, int32_t word)
{
	size_t n = strlen(code);

	memcpy(bytes + at, code, n);
	memcpy(bytes + at + n, &word, 4);
	bytes[at + n + 4] = 0xc3;
	return at;
}

/* A stripped file: functions that return the tables, places of builtins, and their names. */
static void make_v8(uint8_t *bytes, struct elfsym *t)
{
	const struct {
		const char *name, *code;
		int32_t word;
	} functions[] = {
		{ "_ZN2v88internal23DefaultEmbeddedBlobCodeEv", "\x48\x8d\x05", V8_CODE - 7 },
		{ "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv", "\xb8", V8_NR_BUILTINS * 64 },
		{ "_ZN2v88internal23DefaultEmbeddedBlobDataEv", "\x48\x8d\x05", V8_DATA - 7 },
		{ "_ZN2v88internal27DefaultEmbeddedBlobDataSizeEv", "\xb8", 0x2800 },
		{ "_ZN2v88internal8Builtins4nameENS0_7BuiltinE", "\x48\x8b\x04\xfd", V8_NAMES },
	};

	memset(bytes, 0, V8_SIZE);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		int32_t from = functions[i].code[1] == '\x8d' ? (int32_t)(64 * i + 64) : 0;

		elfsym_add_named(t,
				 v8_function(bytes, 64 * i + 64, functions[i].code,
					     functions[i].word - from),
				 16, functions[i].name, strlen(functions[i].name));
	}
	for (uint32_t i = 0; i < V8_NR_BUILTINS; i++) {
		const uint32_t place[2] = { 64 * i, 40 };
		uint64_t name = V8_TEXT + 8ULL * i;

		memcpy(bytes + V8_DATA + 24 + (size_t)V8_ENTRY * i, place, sizeof(place));
		memcpy(bytes + V8_NAMES + 24ULL * i, &name, sizeof(name));
		snprintf((char *)bytes + name, 8, "Add%u", i);
	}
}

static uint32_t v8_builtins(uint8_t *bytes, struct elfsym *t)
{
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_filesz = V8_SIZE, .p_memsz = V8_SIZE };
	const struct elffile f = { .fd = -1,
				   .memory = bytes,
				   .size = V8_SIZE,
				   .elf_class = ELFCLASS64,
				   .machine = EM_X86_64,
				   .phdrs = &segment,
				   .nr_phdrs = 1 };
	uint32_t before = t->nr;

	assert_int_equal(elfv8_add(t, &f), 0);
	return t->nr - before;
}

/* All builtins have names, or none: the tables have to agree. */
TEST(test_v8)
{
	static uint8_t bytes[V8_SIZE];
	struct elfsym t = { .nr = 0 };
	unsigned int seed = 1;
	uint32_t last;

	make_v8(bytes, &t);
	assert_int_equal(v8_builtins(bytes, &t), V8_NR_BUILTINS);
	last = t.nr - 1;
	assert_string_equal(t.names + t.symbols[last].name, "Builtins_Add299");
	assert_int_equal(t.symbols[last].vaddr, V8_CODE + 64 * 299);
	assert_int_equal(t.symbols[last].size, 40);
	elfsym_fini(&t);
	t = (struct elfsym){ .nr = 0 };
	make_v8(bytes, &t);
	bytes[V8_TEXT + 8 * 77] = '-'; /* no name */
	assert_int_equal(v8_builtins(bytes, &t), 0);
	bytes[V8_TEXT + 8 * 77] = 'A';
	bytes[V8_DATA + 24 + V8_ENTRY * 77] ^= 1; /* no place of a builtin */
	assert_int_equal(v8_builtins(bytes, &t), 0);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 20; i++)
			bytes[rand_r(&seed) % V8_SIZE] = (uint8_t)rand_r(&seed);
		v8_builtins(bytes, &t);
	}
	elfsym_fini(&t);
}

/*
 * V8 in a stripped file: the builtins by their form, behind 40 MB of other constants, as in the
 * official Node.js, in .rodata or in a file without section headers.
 */
TEST(test_v8_stripped)
{
	enum { CODE = 40 << 20, DATA = CODE - 0x4000, SIZE = CODE + 0x6000 };
	uint8_t *bytes = calloc(1, SIZE);
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0x10000, .p_filesz = CODE },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = CODE,
		  .p_vaddr = 0x10000 + CODE,
		  .p_filesz = SIZE - CODE },
	};
	Elf64_Shdr sections[] = {
		{ 0 },
		{ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_addr = 0x10000, .sh_size = CODE }
	};
	char names[] = "\0.rodata";
	struct elffile f = { .fd = -1,
			     .memory = bytes,
			     .size = SIZE,
			     .elf_class = ELFCLASS64,
			     .machine = EM_X86_64,
			     .phdrs = segments,
			     .nr_phdrs = 2,
			     .shdrs = sections,
			     .shstr = names,
			     .shstr_size = sizeof(names) };
	struct elfv8_blob b;

	assert_non_null(bytes);
	memset(bytes + CODE + 0x1000, 0xcc, 64 * V8_NR_BUILTINS);
	for (uint32_t i = 0; i < V8_NR_BUILTINS; i++) {
		const uint32_t place[2] = { 64 * i, 40 };

		memcpy(bytes + DATA + 24 + (size_t)V8_ENTRY * i, place, sizeof(place));
		memset(bytes + CODE + 0x1000 + (size_t)64 * i, 0x90, 40);
	}
	for (f.nr_shdrs = 0; f.nr_shdrs <= 2; f.nr_shdrs += 2) {
		assert_true(elfv8_find(&b, &f));
		assert_int_equal(b.code, segments[1].p_vaddr + 0x1000);
		assert_int_equal(b.code_size, 64 * (V8_NR_BUILTINS - 1) + 40);
		assert_int_equal(b.data, 0x10000 + DATA);
		/* Beyond the end of the file: nothing is read. */
		segments[1].p_filesz = UINT64_MAX / 2;
		assert_false(elfv8_find(&b, &f));
		segments[1].p_filesz = SIZE - CODE;
	}
	bytes[CODE + 0x1000 + 50] = 0;
	assert_false(elfv8_find(&b, &f));
	free(bytes);
}

/* All relocations are missed in one call: there are not enough calls for each piece. */
TEST(test_v8_relocated)
{
	enum { NR = 20000, SIZE = V8_SIZE + NR * sizeof(Elf64_Rela), DYNAMIC = 0xf000 };
	static struct elfparts there, missed;
	static uint8_t bytes[SIZE];
	const Elf64_Dyn dynamic[] = { { DT_RELA, { V8_SIZE } },
				      { DT_RELASZ, { NR * sizeof(Elf64_Rela) } },
				      { DT_RELACOUNT, { NR } },
				      { DT_NULL, { 0 } } };
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_filesz = SIZE, .p_memsz = SIZE },
		{ .p_type = PT_DYNAMIC, .p_offset = DYNAMIC, .p_filesz = sizeof(dynamic) },
	};
	const struct elffile f = { .fd = -1,
				   .memory = bytes,
				   .size = SIZE,
				   .elf_class = ELFCLASS64,
				   .machine = EM_X86_64,
				   .phdrs = segments,
				   .nr_phdrs = 2,
				   .there = &there,
				   .missed = &missed };
	struct elfsym t = { .nr = 0 };
	uint32_t before;

	make_v8(bytes, &t);
	memcpy(bytes + DYNAMIC, dynamic, sizeof(dynamic));
	before = t.nr;
	elfparts_add(&there, 0, V8_SIZE, SIZE);
	assert_int_equal(elfv8_add(&t, &f), 0);
	assert_int_equal(t.nr, before);
	assert_true(elfparts_has(&missed, V8_SIZE, SIZE));
	elfparts_add(&there, V8_SIZE, SIZE, SIZE);
	missed.nr = 0;
	assert_int_equal(elfv8_add(&t, &f), 0);
	assert_int_equal(t.nr - before, V8_NR_BUILTINS);
	assert_int_equal(missed.nr, 0);
	elfsym_fini(&t);
}

/* So are the names, which a linker has put anywhere in a large section. */
TEST(test_v8_names_apart)
{
	enum { NR = 40, PART = 16384, SIZE = V8_SIZE + NR * PART, ROUNDS = 4 };
	static struct elfparts there, missed;
	static uint8_t bytes[SIZE];
	Elf64_Phdr segment = { .p_type = PT_LOAD, .p_filesz = SIZE, .p_memsz = SIZE };
	const struct elffile f = { .fd = -1,
				   .memory = bytes,
				   .size = SIZE,
				   .elf_class = ELFCLASS64,
				   .machine = EM_X86_64,
				   .phdrs = &segment,
				   .nr_phdrs = 1,
				   .there = &there,
				   .missed = &missed };
	struct elfsym t = { .nr = 0 };
	uint32_t before, rounds = 0;

	make_v8(bytes, &t);
	before = t.nr;
	for (uint64_t i = 0; i < V8_NR_BUILTINS; i++) {
		uint64_t name = V8_SIZE + i % NR * PART + 64 * (i / NR);

		memcpy(bytes + V8_NAMES + 24 * i, &name, sizeof(name));
		memcpy(bytes + name, "Add", 4);
	}
	do {
		for (uint32_t i = 0; i < missed.nr; i++)
			elfparts_add(&there, missed.list[i].start, missed.list[i].end, SIZE);
		missed.nr = 0;
		assert_int_equal(elfv8_add(&t, &f), 0);
		assert_in_range(++rounds, 1, ROUNDS);
	} while (missed.nr);
	assert_int_equal(t.nr - before, V8_NR_BUILTINS);
	elfsym_fini(&t);
}

/*
 * A stripped file that exports nothing that leads to the tables: they are found by their form. The
 * builtins in C++ have no names in it.
 */
TEST(test_v8_searched)
{
	enum { FIRST = 6, SIZE = V8_SIZE + V8_NR_BUILTINS * sizeof(Elf64_Rela), DYNAMIC = 0xf000 };
	static uint8_t bytes[SIZE];
	static char sections[] = "\0.text\0.rodata";
	const Elf64_Dyn dynamic[] = { { DT_RELA, { V8_SIZE } },
				      { DT_RELASZ, { V8_NR_BUILTINS * sizeof(Elf64_Rela) } },
				      { DT_RELACOUNT, { V8_NR_BUILTINS } },
				      { DT_NULL, { 0 } } };
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = SIZE, .p_memsz = SIZE },
		{ .p_type = PT_DYNAMIC, .p_offset = DYNAMIC, .p_filesz = sizeof(dynamic) },
	};
	Elf64_Shdr shdrs[] = {
		{ 0 },
		{ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_size = V8_DATA },
		{ .sh_name = 7,
		  .sh_type = SHT_PROGBITS,
		  .sh_addr = V8_DATA,
		  .sh_offset = V8_DATA,
		  .sh_size = V8_SIZE - V8_DATA },
	};
	const struct elffile f = { .fd = -1,
				   .memory = bytes,
				   .size = SIZE,
				   .elf_class = ELFCLASS64,
				   .machine = EM_X86_64,
				   .phdrs = segments,
				   .nr_phdrs = 2,
				   .shdrs = shdrs,
				   .nr_shdrs = 3,
				   .shstr = sections,
				   .shstr_size = sizeof(sections) };
	static const char exported[] = "_ZN2v82V810GetVersionEv";
	struct elfsym t = { .nr = 0 };

	make_v8(bytes, &t);
	elfsym_fini(&t);
	t = (struct elfsym){ .nr = 0 };
	elfsym_add_named(&t, 64, 11, exported, strlen(exported));
	memcpy(bytes + DYNAMIC, dynamic, sizeof(dynamic));
	memset(bytes + V8_NAMES, 0, 24 * V8_NR_BUILTINS);
	for (uint32_t i = 0; i < V8_NR_BUILTINS; i++) {
		const Elf64_Rela r = { V8_NAMES + 24 * i, R_X86_64_RELATIVE, V8_TEXT + 8 * i };

		memset(bytes + V8_CODE + (size_t)64 * i + 40, 0xcc, 24);
		if (!i || i >= FIRST)
			memcpy(bytes + V8_SIZE + i * sizeof(r), &r, sizeof(r));
	}
	assert_int_equal(elfv8_add(&t, &f), 0);
	assert_int_equal(t.nr, 1 + V8_NR_BUILTINS - (FIRST - 1));
	assert_string_equal(t.names + t.symbols[2].name, "Builtins_Add6");
	assert_int_equal(t.symbols[2].vaddr, V8_CODE + 64 * 6);
	/* The table does not begin there. */
	memset(bytes + V8_SIZE, 0, sizeof(Elf64_Rela));
	t.nr = 1;
	assert_int_equal(elfv8_add(&t, &f), 0);
	assert_int_equal(t.nr, 1);
	elfsym_fini(&t);
}

TEST(test_go)
{
	uint8_t table[GO_SIZE];
	unsigned int seed = 1;
	struct image *image;

	make_go(table, VADDR + 0x100);
	image = go_image(table, sizeof(table));
	assert_string_equal(image->source, ".gopclntab");
	assert_true(image->complete);
	assert_name(image, VADDR + 0x100, "main.main");
	assert_name(image, VADDR + 0x12f, "main.main");
	assert_name(image, VADDR + 0x130, "main.leaf");
	assert_name(image, VADDR + 0x150, NULL);
	image_free(image);
	/* A function of that name is no part of another one, as with gcc. */
	memcpy(table + GO_NAMES, "main\0\0\0\0\0\0main.cold", 20);
	image = go_image(table, sizeof(table));
	assert_name(image, VADDR + 0x100, "main");
	assert_ptr_equal(image_whole(image, image_find(image, VADDR + 0x130)),
			 image_find(image, VADDR + 0x130));
	image_free(image);
	/* Damaged in each way that chance finds; the sanitisers watch. */
	for (int i = 0; i < 20000; i++) {
		make_go(table, VADDR + 0x100);
		for (int j = 0; j < 3; j++)
			table[4 + (unsigned int)rand_r(&seed) % (GO_SIZE - 4)] =
				(uint8_t)(rand_r(&seed) % 3 ? rand_r(&seed) : 0xff);
		image_free(go_image(table,
				    i % 2 ? sizeof(table) : (size_t)rand_r(&seed) % GO_SIZE + 1));
	}
}

enum { GO_TEXT = 0x180, GO_TABLE = 0x400, GO_MODULE = 0x700, GO_RELA = 0x800, GO_DYNAMIC = 0x900 };

static void go_section(struct elfmake *m, const char *name, uint64_t at, uint64_t size,
		       const void *data)
{
	elfmake_section(m, name,
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_addr = VADDR + at,
				      .sh_offset = 0x1000 + at,
				      .sh_size = size },
			data);
}

/*
 * As an external linker writes it, with startup code before Go's. Of Go 1.26 the address of the
 * latter is in the @module, as it is or @relocated. In a position-independent program of an older
 * Go the table is @inside of a section, and the loader writes the address into its header.
 */
static struct image *go_linked(bool module, bool relocated, bool inside)
{
	const uint64_t text = VADDR + GO_TEXT;
	const uint64_t at = inside ? GO_TABLE + 3 * 8 : GO_MODULE + 22 * 8;
	const uint64_t type = ELF64_R_INFO(0ULL, R_X86_64_RELATIVE);
	const Elf64_Rela rela[] = { { VADDR + GO_DYNAMIC, type, 1 }, { VADDR + at, type, text } };
	const Elf64_Dyn dynamic[] = { { DT_RELA, { VADDR + GO_RELA } },
				      { DT_RELASZ, { sizeof(rela) } },
				      { DT_RELACOUNT, { 2 } },
				      { DT_NULL, { 0 } } };
	static const uint8_t zeros[0x100];
	uint8_t table[GO_SIZE], around[0x40 + GO_SIZE] = { 0 };
	struct image *image;
	struct elfmake m;
	Elf64_Phdr *phdr;

	make_go(table, 0);
	memcpy(around + 0x20, table, 8); /* a magic number alone is no table */
	memcpy(around + 0x40, table, GO_SIZE);
	elfmake_init(&m, EM_X86_64, VADDR, 0x1000);
	phdr = (Elf64_Phdr *)(m.bytes + ((Elf64_Ehdr *)m.bytes)->e_phoff);
	elfmake_code(&m, ".text", VADDR, VADDR + 0x100, 0x300, 0, NULL);
	if (inside) {
		go_section(&m, ".data.rel.ro", GO_TABLE - 0x40, sizeof(around), around);
		go_section(&m, ".go.buildinfo", GO_MODULE, 16, zeros);
	} else {
		go_section(&m, ".gopclntab", GO_TABLE, sizeof(table), table);
	}
	if (module)
		go_section(&m, ".go.module", GO_MODULE, sizeof(zeros), zeros);
	if (relocated) {
		go_section(&m, ".rela.dyn", GO_RELA, sizeof(rela), rela);
		go_section(&m, ".dynamic", GO_DYNAMIC, sizeof(dynamic), dynamic);
		phdr[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
					.p_offset = 0x1000 + GO_DYNAMIC,
					.p_filesz = sizeof(dynamic) };
		((Elf64_Ehdr *)m.bytes)->e_phnum = 2;
	} else if (module) {
		memcpy(m.bytes + 0x1000 + at, &text, sizeof(text));
	}
	image = image_of(&m);
	elfmake_fini(&m);
	return image;
}

TEST(test_go_linked)
{
	struct image *image;

	for (int relocated = 0; relocated < 2; relocated++) {
		image = go_linked(true, relocated, false);
		assert_string_equal(image->source, ".gopclntab");
		assert_name(image, VADDR + 0x100, NULL);
		assert_name(image, VADDR + GO_TEXT, "main.main");
		assert_name(image, VADDR + GO_TEXT + 0x30, "main.leaf");
		image_free(image);
	}
	image = go_linked(false, true, true);
	assert_string_equal(image->source, ".gopclntab");
	assert_name(image, VADDR + GO_TEXT, "main.main");
	assert_name(image, VADDR + GO_TEXT + 0x30, "main.leaf");
	image_free(image);
	/* No name is better than a wrong one. */
	image = go_linked(false, false, true);
	assert_string_equal(image->source, "none");
	image_free(image);
	image = go_linked(false, false, false);
	assert_string_equal(image->source, "none");
	image_free(image);
}

/*
 * Without headers of sections, as after some packers: a note tells that it is Go's, and the table
 * is in a segment; of Go 1.26 the @module is too, and has the begin of the code.
 */
static struct image *go_stripped(bool note, bool module)
{
	enum { NOTE = 0x100, ELSEWHERE = 0x10000 };
	static const uint32_t bytes[] = { 4, 4, 4, 0x6f47, 0 };
	const uint64_t text = VADDR + GO_TEXT, at = VADDR + ELSEWHERE + GO_TABLE;
	uint8_t table[GO_SIZE];
	struct err e = { "" };
	struct image *image;
	struct elfmake m;
	Elf64_Ehdr *eh;

	make_go(table, module ? 0 : text);
	elfmake_init(&m, EM_X86_64, VADDR, 0x1000);
	eh = (Elf64_Ehdr *)m.bytes;
	eh->e_phnum = 3;
	memcpy((Elf64_Phdr *)(m.bytes + eh->e_phoff) + 1,
	       (Elf64_Phdr[]){ { .p_type = PT_NOTE,
				 .p_offset = 0x1000 + NOTE,
				 .p_filesz = note ? sizeof(bytes) : 0 },
			       { .p_type = PT_LOAD,
				 .p_flags = PF_R | PF_W,
				 .p_offset = 0x1000 + GO_TABLE - 8,
				 .p_vaddr = at - 8,
				 .p_filesz = 0x800 } },
	       2 * sizeof(Elf64_Phdr));
	memcpy(m.bytes + 0x1000 + NOTE, bytes, sizeof(bytes));
	memcpy(m.bytes + 0x1000 + GO_TABLE, table, sizeof(table));
	memcpy(m.bytes + 0x1000 + GO_MODULE, &at, sizeof(at));
	memcpy(m.bytes + 0x1000 + GO_MODULE + 22 * 8, &text, sizeof(text));
	assert_int_equal(image_read_memory(&image, m.bytes, m.size, &e), 0);
	elfmake_fini(&m);
	return image;
}

TEST(test_go_stripped)
{
	for (int module = 0; module < 2; module++) {
		struct image *image = go_stripped(true, module);

		assert_string_equal(image->source, ".gopclntab");
		assert_name(image, VADDR + GO_TEXT, "main.main");
		assert_name(image, VADDR + GO_TEXT + 0x30, "main.leaf");
		image_free(image);
		image = go_stripped(false, module);
		assert_string_equal(image->source, "none");
		image_free(image);
	}
}

/* ---- debug files by link ---- */

/* Bit by bit, apart from the table-driven one. */
static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
	uint32_t crc = ~0U;

	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320U : crc >> 1;
	}
	return ~crc;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

/* A debug file that names VADDR + 0x10. */
static void make_debug(struct elfmake *m, uint64_t vaddr)
{
	const Elf64_Sym syms[] = { { 0 },
				   { .st_name = 1,
				     .st_info = FUNC,
				     .st_shndx = 1,
				     .st_value = vaddr + 0x10,
				     .st_size = 0x10 } };

	elfmake_init(m, EM_X86_64, vaddr, 0x1000);
	elfmake_code(m, ".text", vaddr, vaddr, 0x1000, 0, NULL);
	elfmake_symbols(m, SHT_SYMTAB, syms, 2, "\0from_debug", 12);
	elfmake_finish(m);
}

/* Try the link @name with @crc against the files @at some place; the bias, or -1 when refused. */
static int64_t try_at(struct debugfile_where at, const char *name, uint32_t crc)
{
	size_t size = (strlen(name) + 4) & ~3UL;
	struct elffacts_input in = { .watch = at.watch };
	struct elffacts facts, found;
	struct untrusted_file file;
	struct elffile debug;
	char data[512] = "";
	struct elfmake m;
	uint64_t bias = 0;
	int rc;

	strcpy(data, name);
	memcpy(data + size, &crc, 4);
	elfmake_init(&m, EM_X86_64, VADDR, 0x1000);
	elfmake_section(&m, ".gnu_debuglink",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = size + 4 }, data);
	elfmake_finish(&m);
	in.fd = sandbox_wrap(m.bytes, m.size);
	in.size = m.size;
	assert_int_equal(elffacts_read(&facts, &in), 0);
	at.fd = in.fd;
	rc = elffacts_open_debug(&in, &facts, &at, &file, &found, &bias);
	if (!rc) {
		struct elfsym t = { 0 };

		assert_int_equal(elffile_open(&debug, file.fd, NULL, file.size, NULL), 0);
		assert_int_equal(elfsym_add(&t, &debug, SHT_SYMTAB, bias), 0);
		assert_int_equal(t.nr, 1);
		assert_true(t.symbols[0].vaddr == VADDR + 0x10);
		elfsym_fini(&t);
		elffile_close(&debug);
		close(file.fd);
	}
	close(in.fd);
	elfmake_fini(&m);
	return rc ? -1 : (int64_t)bias;
}

/* The same for a file installed below @root. */
static int64_t try_watched(const char *root, const char *path, const char *name, uint32_t crc,
			   struct watch *watch)
{
	return try_at((struct debugfile_where){ .folder = root, .path = path, .watch = watch },
		      name, crc);
}

static int64_t try_link(const char *root, const char *path, const char *name, uint32_t crc)
{
	return try_watched(root, path, name, crc, NULL);
}

TEST(test_link)
{
	char root[] = "/tmp/test_sources.XXXXXX", path[128];
	struct elfmake m, moved;
	uint32_t crc, crc_moved;

	assert_non_null(mkdtemp(root));
	make_debug(&m, VADDR);
	make_debug(&moved, VADDR - 0x4000);
	crc = crc_of(m.bytes, m.size);
	crc_moved = crc_of(moved.bytes, moved.size);
	snprintf(path, sizeof(path), "%s/x.debug", root);
	write_file(path, m.bytes, m.size);
	assert_int_equal(try_link(root, NULL, "x.debug", crc), 0);
	assert_int_equal(try_link(root, NULL, "x.debug", crc + 1), -1);
	assert_int_equal(try_link(root, NULL, "y.debug", crc), -1);
	/* In the folder that the object has. */
	snprintf(path, sizeof(path), "%s/usr", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/usr/y.debug", root);
	write_file(path, moved.bytes, moved.size);
	assert_int_equal(try_link(root, "/usr/y", "y.debug", crc_moved), 0x4000);
	assert_int_equal(try_link(root, "/lib/y", "y.debug", crc_moved), -1);
	/* No name may climb out of the folder. */
	assert_int_equal(try_link(root, NULL, "usr/y.debug", crc_moved), -1);
	assert_int_equal(try_link(root, "/x/../usr/y", "y.debug", crc_moved), -1);
	assert_int_equal(try_link(root, NULL, "../../etc/passwd", crc), -1);
	assert_int_equal(try_link(root, NULL, "..", crc), -1);
	assert_int_equal(try_link(root, NULL, "", crc), -1);
	unlink(path);
	snprintf(path, sizeof(path), "%s/usr", root);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/x.debug", root);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(try_link(root, NULL, "x.debug", crc), -1);
	unlink(path);
	rmdir(root);
	elfmake_fini(&m);
	elfmake_fini(&moved);
}

/* Beside the object and in .debug/ there, as gdb looks; also in the root of a container. */
TEST(test_link_beside)
{
	char root[] = "/tmp/test_sources.XXXXXX", object[64], path[64], folder[64];
	struct debugfile_where here = { .folder = "/nowhere", .path = object };
	struct debugfile_where below = { .folder = "/nowhere", .path = "/x", .root = root };
	struct debugfile_where of_process = { .folder = "/nowhere",
					      .path = object,
					      .pid = getpid() };
	struct elfmake m;
	uint32_t crc;

	assert_non_null(mkdtemp(root));
	snprintf(object, sizeof(object), "%s/x", root);
	make_debug(&m, VADDR);
	crc = crc_of(m.bytes, m.size);
	for (int i = 0; i < 2; i++) {
		snprintf(folder, sizeof(folder), "%s/.debug", root);
		if (i)
			assert_int_equal(mkdir(folder, 0700), 0);
		snprintf(path, sizeof(path), "%s/%sx.debug", root, i ? ".debug/" : "");
		write_file(path, m.bytes, m.size);
		assert_int_equal(try_at(here, "x.debug", crc), 0);
		assert_int_equal(try_at(here, "x.debug", crc + 1), -1);
		assert_int_equal(try_at(below, "x.debug", crc), 0);
		assert_int_equal(try_at(of_process, "x.debug", crc), 0);
		/* A stranger may not rename the functions of a program. */
		if (!geteuid()) {
			assert_int_equal(chown(path, 12345, 12345), 0);
			assert_int_equal(try_at(here, "x.debug", crc), -1);
		}
		unlink(path);
	}
	rmdir(folder);
	rmdir(root);
	elfmake_fini(&m);
}

/* A process that called chroot(): its maps have paths below our root, its debug files are below its
 * own. */
TEST(test_link_after_chroot)
{
	char root[] = "/tmp/test_sources.XXXXXX", object[64], path[64];
	struct debugfile_where where = { .folder = "/debug", .path = object };
	struct elfmake m;
	int ready[2];
	char byte;

	assert_non_null(mkdtemp(root));
	snprintf(object, sizeof(object), "%s/bin/x", root);
	snprintf(path, sizeof(path), "%s/debug", root);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/bin");
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/x.debug");
	make_debug(&m, VADDR);
	write_file(path, m.bytes, m.size);
	assert_int_equal(pipe(ready), 0);
	where.pid = fork();
	if (!where.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = (char)chroot(root);
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	/* Without rights there is no chroot(). */
	assert_int_equal(try_at(where, "x.debug", crc_of(m.bytes, m.size)), byte ? -1 : 0);
	kill(where.pid, SIGKILL);
	waitpid(where.pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	unlink(path);
	for (int i = 0; i < 3; i++) {
		*strrchr(path, '/') = '\0';
		assert_int_equal(rmdir(path), 0);
	}
	elfmake_fini(&m);
}

/* Make a large debug file, with @byte at its end. Return its CRC. */
static uint32_t make_large(const char *path, size_t size, uint8_t byte)
{
	uint8_t *bytes = calloc(1, size);
	struct elfmake m;
	uint32_t crc;

	assert_non_null(bytes);
	make_debug(&m, VADDR);
	memcpy(bytes, m.bytes, m.size);
	bytes[size - 1] = byte;
	write_file(path, bytes, size);
	crc = crc_of(bytes, size);
	elfmake_fini(&m);
	free(bytes);
	return crc;
}

/* Objects that have no build-id and name one debug file: it is read once, and when it changes. */
TEST(test_link_is_read_once)
{
	enum { SIZE = 32 << 20 };
	char root[] = "/tmp/test_sources.XXXXXX", path[64];
	struct watch watch = { 0 };
	uint32_t crc, other;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/x.debug", root);
	crc = make_large(path, SIZE, 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(try_watched(root, NULL, "x.debug", crc + i % 2, &watch), -(i % 2));
	assert_in_range(atomic_load(&watch.done), SIZE, SIZE * 3 / 2);
	usleep(20000);
	other = make_large(path, SIZE, 1);
	assert_int_equal(try_link(root, NULL, "x.debug", crc), -1);
	assert_int_equal(try_link(root, NULL, "x.debug", other), 0);
	unlink(path);
	rmdir(root);
}

/* ---- compressed tables ---- */

#ifdef HAVE_LZMA

static void *pack(const void *bytes, size_t size, size_t *out_size)
{
	size_t max = lzma_stream_buffer_bound(size), at = 0;
	uint8_t *out = malloc(max);

	assert_non_null(out);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, bytes, size, out, &at,
						 max),
			 LZMA_OK);
	*out_size = at;
	return out;
}

/* An object with @packed as its .gnu_debugdata. */
static struct image *with_debugdata(const void *packed, size_t size)
{
	struct elfmake m;
	struct image *image;

	elfmake_init(&m, EM_X86_64, VADDR, 0x1000);
	elfmake_code(&m, ".text", VADDR, VADDR, 0x1000, 0, NULL);
	elfmake_section(&m, ".gnu_debugdata",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = size }, packed);
	image = image_of(&m);
	elfmake_fini(&m);
	return image;
}

TEST(test_debugdata)
{
	struct elfmake m;
	struct image *image;
	size_t size;
	uint8_t *packed;

	make_debug(&m, VADDR);
	packed = pack(m.bytes, m.size, &size);
	image = with_debugdata(packed, size);
	assert_string_equal(image->source, ".gnu_debugdata");
	assert_true(image->complete);
	assert_null(image->trouble);
	assert_name(image, VADDR + 0x18, "from_debug");
	image_free(image);
	/* Damaged, cut, and not xz at all: an image without these names. */
	packed[size / 2] ^= 0x55;
	image = with_debugdata(packed, size);
	assert_string_equal(image->source, "none");
	image_free(image);
	packed[size / 2] ^= 0x55;
	image = with_debugdata(packed, size / 2);
	assert_string_equal(image->source, "none");
	image_free(image);
	image = with_debugdata("no xz", 5);
	assert_string_equal(image->source, "none");
	image_free(image);
	free(packed);
	elfmake_fini(&m);
}

static long peak_kib(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_maxrss;
}

/* A quarter of a GiB of zeros, packed into 40 kB: refused at the limit, and said so. */
TEST(test_bomb)
{
	const size_t zeros = 256UL << 20;
	lzma_stream s = LZMA_STREAM_INIT;
	size_t max = 1UL << 20;
	uint8_t *packed = malloc(max), *block = calloc(1, 1 << 20);
	long before;
	struct image *image;

	assert_int_equal(lzma_easy_encoder(&s, 0, LZMA_CHECK_NONE), LZMA_OK);
	s.next_out = packed;
	s.avail_out = max;
	for (size_t done = 0; done < zeros; done += 1 << 20) {
		s.next_in = block;
		s.avail_in = 1 << 20;
		while (s.avail_in)
			assert_int_equal(lzma_code(&s, LZMA_RUN), LZMA_OK);
	}
	while (lzma_code(&s, LZMA_FINISH) == LZMA_OK)
		;
	before = peak_kib();
	image = with_debugdata(packed, s.total_out);
	assert_string_equal(image->source, "none");
	assert_string_equal(image->trouble, ".gnu_debugdata is too large");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(peak_kib() - before < (long)(2 * XZ_OUTPUT_MAX >> 10));
#else
	assert_true(peak_kib() > before - 1);
#endif
	image_free(image);
	lzma_end(&s);
	free(packed);
	free(block);
}

#endif

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

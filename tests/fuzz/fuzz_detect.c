// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over made-up files of interpreters without symbols: their text, loop and builtins are
 * found by searches in the constants, the code and the relocations, within their bounds.
 * FUZZ: symbols
 * LIBFUZZER: -max_len=512
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/makers/detect.h"
#include "tests/makers/eh_frame.h"
#include "tests/makers/elf.h"
#include "symbols/base/base.h"
#include "symbols/image/internal.h"
#include "symbols/script/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One segment: code, an unwind table, constants and relocations. */
enum { EH = 0x8000, BASE = EH_VADDR - EH, CODE = 0x1000, SEGMENT = 0x9000 };

/* In the segment: builtins of V8, with a table of places, names, and pointers to these. */
enum { NR_BUILTINS = 260, ENTRY = 28, BUILTINS = 0x1000 };
enum { PLACES = 0x5200, NAMES = 0x7200, CONSTANTS = 0x5200 };
enum { POINTERS = 0x8000000 }; /* of the program, without bytes in the file */

/* Made files. */
static struct made {
	struct elfmake m;
	enum lang_kind kind;
} files[5];

static const struct {
	enum lang_kind kind;
	const char *text; /* in the constants; NULL: V8's builtins */
	bool sections;
} kinds[ARRAY_SIZE(files)] = {
	{ LANG_LUA, "$LuaVersion: Lua 5.4.4  Copyright", true },
	{ LANG_LUA, "$LuaVersion: Lua 5.4.6  Copyright", false },
	{ LANG_LUAJIT, "LuaJIT 2.1.0-beta3", false },
	{ LANG_BEAM, "Erlang/OTP 25 [erts-13.1.5]", true },
	{ LANG_NODE, NULL, true },
};

/* A function that stores a register again and again, and others that call into its middle. */
static void make_loop(uint8_t *segment)
{
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t call = 0x3000 + 16 * i, to = 0x40 - (call + 5);

		memcpy(segment + 0x100 + (size_t)16 * i, "\x48\x89\x58\x20", 4);
		segment[call] = 0xe8;
		memcpy(segment + call + 1, &to, sizeof(to));
	}
}

/* Builtins behind each other, the places of all in a table, names and relocated pointers to them.
 */
static void make_builtins(uint8_t *segment)
{
	for (uint32_t i = 0; i < NR_BUILTINS; i++) {
		const uint32_t place[2] = { 64 * i, 40 };

		memset(segment + BUILTINS + (size_t)64 * i + 40, 0xcc, 24);
		memcpy(segment + PLACES + 24 + (size_t)ENTRY * i, place, sizeof(place));
		snprintf((char *)segment + NAMES + (size_t)8 * i, 8, "Add%u", i);
	}
}

/* Add relocations, which lead to the names, in a segment behind the others. */
static void add_relocations(struct elfmake *m)
{
	static Elf64_Rela rela[NR_BUILTINS];
	static Elf64_Dyn dynamic[] = { { DT_RELA, { 0 } },
				       { DT_RELASZ, { sizeof(rela) } },
				       { DT_RELACOUNT, { NR_BUILTINS } },
				       { DT_NULL, { 0 } } };
	Elf64_Phdr *ph = (Elf64_Phdr *)(m->bytes + sizeof(Elf64_Ehdr)) + 1;
	uint64_t at = (m->size + 15) & ~15ULL;

	for (uint32_t i = 0; i < NR_BUILTINS; i++)
		rela[i] =
			(Elf64_Rela){ POINTERS + 24 * i, R_X86_64_RELATIVE, BASE + NAMES + 8 * i };
	dynamic[0].d_un.d_ptr = BASE + 0x100000;
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_W,
			      .p_offset = at,
			      .p_vaddr = BASE + 0x100000,
			      .p_filesz = sizeof(rela),
			      .p_memsz = sizeof(rela) };
	ph[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
			      .p_offset = at + sizeof(rela),
			      .p_filesz = sizeof(dynamic) };
	/* Entries of the table that the program fills. */
	ph[2] = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_W,
			      .p_offset = at + sizeof(rela) + sizeof(dynamic),
			      .p_vaddr = POINTERS,
			      .p_filesz = 24 * NR_BUILTINS,
			      .p_memsz = 24 * NR_BUILTINS + 4096 };
	((Elf64_Ehdr *)m->bytes)->e_phnum = 4;
	memcpy(m->bytes + at, rela, sizeof(rela));
	memcpy(m->bytes + at + sizeof(rela), dynamic, sizeof(dynamic));
	m->size = ph[2].p_offset + ph[2].p_filesz;
}

static void add_symbols(struct elfmake *m)
{
	static const char names[] = "\0_ZN2v82V810GetVersionEv\0v8dbg_off_fp_function\0"
				    "_ZN2v816WasmModuleObject18FromCompiledModuleEPNS_"
				    "7IsolateERKNS_"
				    "18CompiledWasmModuleE";
	const uint8_t type = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	const Elf64_Sym syms[] = {
		{ 0 },
		{ .st_name = 1,
		  .st_info = type,
		  .st_shndx = 1,
		  .st_value = BASE + 64,
		  .st_size = 11 },
		{ .st_name = 25,
		  .st_info = type,
		  .st_shndx = 1,
		  .st_value = BASE + 96,
		  .st_size = 4 },
		{ .st_name = 47,
		  .st_info = type,
		  .st_shndx = 1,
		  .st_value = BASE + 128,
		  .st_size = 32 },
	};

	elfmake_symbols(m, SHT_DYNSYM, syms, ARRAY_SIZE(syms), names, sizeof(names));
}

static void make(struct made *f, uint32_t i)
{
	static struct eh_section eh;
	struct elfmake *m = &f->m;
	uint32_t cie;

	f->kind = kinds[i].kind;
	elfmake_init(m, EM_X86_64, BASE, SEGMENT);
	if (kinds[i].text) {
		make_loop(m->bytes + CODE);
		strcpy((char *)m->bytes + CODE + CONSTANTS, kinds[i].text);
	} else {
		make_builtins(m->bytes + CODE);
		/* The function that imports a module calls the one for the engine. */
		memcpy(m->bytes + CODE + 128, "\x55\x48\x89\xe5\xe8\xf7\0\0\0", 9);
		memcpy(m->bytes + CODE + 384, "\x48\x8b\x05\xf9\0\0\0\x48\x05\xd0\0\0\0\xc3", 14);
	}
	add_relocations(m);
	eh.size = 0;
	cie = eh_cie(&eh, false, eh_usual, sizeof(eh_usual));
	eh_fde(&eh, cie, BASE, 0x2000, "", 0);
	eh_fde(&eh, cie, BASE + 0x3000, 0x200, "", 0);
	if (kinds[i].sections) {
		elfmake_section(m, ".text",
				(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					      .sh_addr = BASE,
					      .sh_offset = CODE,
					      .sh_size = CONSTANTS },
				NULL);
		elfmake_section(m, ".rodata",
				(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
					      .sh_flags = SHF_ALLOC,
					      .sh_addr = BASE + CONSTANTS,
					      .sh_offset = CODE + CONSTANTS,
					      .sh_size = SEGMENT - CONSTANTS },
				NULL);
	}
	if (!kinds[i].text)
		add_symbols(m);
	elfmake_section(m, ".eh_frame",
			(Elf64_Shdr){ .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_addr = EH_VADDR,
				      .sh_offset = CODE + EH,
				      .sh_size = eh.size },
			eh.bytes);
	elfmake_finish(m);
}

/* Each 7 bytes: 3 of an offset and how, 4 to write there. Undo: the ones before. */
static void lay_over(uint8_t *bytes, size_t file, const uint8_t *data, size_t size, uint32_t *old,
		     bool undo)
{
	const size_t nr = size / 7;

	for (size_t n = 0; n < nr; n++) {
		size_t i = undo ? nr - 1 - n : n;
		const uint8_t *d = data + 7 * i;
		uint32_t at = (d[0] | (uint32_t)d[1] << 8 | (d[2] & 15U) << 16) % (file - 4);

		if (d[2] & 16)
			at &= ~3U;
		if (!undo)
			memcpy(&old[i], bytes + at, 4);
		memcpy(bytes + at, undo ? (const void *)&old[i] : d + 3, d[2] & 32 ? 4 : 1);
		if (undo)
			memcpy(bytes + at, &old[i], 4);
	}
}

/* Describe the file, and read its image: bounded. @true_file: nothing was laid over it. */
static void look(const struct made *made, uint64_t code, bool true_file)
{
	struct detect_file out;
	struct image *image;
	struct elffile f;
	int rc;

	if (elffile_open(&f, -1, made->m.bytes, made->m.size, NULL))
		return;
	rc = detect_read_file(&out, &f, made->kind, "service", code);
	if (out.nr_eval > LANG_EVAL_MAX || out.nr_main > LANG_MAIN_MAX ||
	    (out.kind && out.kind != (uint32_t)made->kind))
		abort();
	for (uint32_t i = 0; !rc && i < out.nr_eval; i++)
		if (out.eval[i].end < out.eval[i].start)
			abort();
	/* The searches find all. */
	if (true_file && (rc || (made->kind == LANG_NODE   ? !out.code_type || !out.blob_size
				 : made->kind == LANG_BEAM ? !out.version
							   : !out.runtime)))
		abort();
	if (!image_build(&image, &(struct image_parts){ .file = &f }) && image) {
		bool found = false;

		for (uint32_t i = 0; i < image->nr_symbols; i++)
			found |= !strcmp(image->names + image->symbols[i].name, "Builtins_Add7");
		if (true_file && made->kind == LANG_NODE && !found)
			abort();
		image_free(image);
	}
	elffile_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t old[512 / 7 + 1];
	struct made *f;

	if (size < 2 || size > 512)
		return 0;
	f = &files[data[0] % ARRAY_SIZE(files)];
	if (!f->m.bytes) {
		make(f, data[0] % ARRAY_SIZE(files));
		look(f, 0, true);
	}
	lay_over(f->m.bytes, f->m.size, data + 2, size - 2, old, false);
	look(f, data[1] & 1 ? BASE + 64ULL * data[1] : 0, false);
	lay_over(f->m.bytes, f->m.size, data + 2, size - 2, old, true);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Search for {load the number of rt_sigreturn, system call}: at symbols that
 * name it, and in all code of a small object.
 *
 * Runs on: the loader. Invariant: at most CODE_SIZE_MAX bytes are read.
 */
#include "symbols/object/elfsig.h"

#include <stdlib.h>
#include <string.h>

#define CODE_SIZE_MAX (1u << 20) /* libc of musl has 600 KiB, a vdso 8 KiB */
#define SIZE_MAX_SIG  16u
#define FUNCTION_MAX  64u

struct trampoline {
	uint16_t machine;
	uint8_t size;
	uint8_t code[SIZE_MAX_SIG];
};

static const struct trampoline trampolines[] = {
	/* mov $__NR_rt_sigreturn,%rax; syscall */
	{ EM_X86_64, 9, { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
	/* mov x8,#__NR_rt_sigreturn; svc #0 */
	{ EM_AARCH64, 8, { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 } },
};

static bool found(struct image *image, uint64_t vaddr, const struct trampoline *t)
{
	image->sigreturn = vaddr;
	image->sigreturn_size = t->size;
	return true;
}

/*
 * Search all code of a libc or a vdso, which are small. Objects linked with others
 * use the handler return of their libc.
 */
static bool find_by_code(struct image *image, const struct elffile *f, const struct trampoline *t)
{
	struct elffile_dynamic dynamic;
	uint64_t total = 0;

	elffile_dynamic(f, &dynamic);
	if (dynamic.needs_others)
		return false;
	for (uint32_t i = 0; i < image->nr_segments; i++) {
		const struct image_segment *s = &image->segments[i];
		const uint8_t *at;
		void *bytes;

		if (!s->exec || s->file_size > CODE_SIZE_MAX ||
		    (total += s->file_size) > CODE_SIZE_MAX ||
		    elffile_read_alloc(f, s->offset, s->file_size, &bytes))
			continue;
		at = memmem(bytes, s->file_size, t->code, t->size);
		if (at)
			found(image, s->vaddr + (uint64_t)(at - (const uint8_t *)bytes), t);
		free(bytes);
		if (at)
			return true;
	}
	return false;
}

static bool names_it(const char *name)
{
	static const char *const names[] = {
		"__restore_rt",
		"__kernel_rt_sigreturn",
		"runtime.sigreturn__sigaction",
		"runtime.sigreturn",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (name[0] == names[i][0] && name[1] == names[i][1] && !strcmp(name, names[i]))
			return true;
	return false;
}

/*
 * Check the functions that a symbol names: the instructions and their padding must
 * be all of the function.
 */
static bool find_by_name(struct image *image, const struct elffile *f, const struct trampoline *t)
{
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		uint8_t code[SIZE_MAX_SIG];
		uint64_t offset;

		if (s->size <= FUNCTION_MAX && !s->stub && names_it(image->names + s->name) &&
		    image_offset(image, s->vaddr, &offset) &&
		    !elffile_read(f, offset, code, t->size) && !memcmp(code, t->code, t->size))
			return found(image, s->vaddr, t);
	}
	return false;
}

bool elfsig_find(struct image *image, const struct elffile *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(trampolines); i++)
		if (f->machine == trampolines[i].machine && f->elf_class == ELFCLASS64)
			return find_by_name(image, f, &trampolines[i]) ||
			       find_by_code(image, f, &trampolines[i]);
	return false;
}

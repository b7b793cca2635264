// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers and builtins of V8, from its file.
 *
 * Runs on: a helper.
 */
#include "symbols/lang/describe_v8.h"

#include <string.h>

#include "symbols/base/base.h"

void describe_v8_symbol(struct v8_symbols *s, const char *name, uint64_t address)
{
	enum v8_number number = v8layout_number(name);
	static const struct {
		const char *name;
		size_t at;
	} others[] = {
		{ "_ZN2v88internal7Version6major_E", offsetof(struct v8_symbols, major) },
		{ "_ZN2v88internal7Version6minor_E", offsetof(struct v8_symbols, minor) },
	};

	elfv8_symbol(&s->builtins, name, address);
	if (number != V8_NR)
		s->number[number] = address;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i].name))
			memcpy((char *)s + others[i].at, &address, sizeof(address));
}

/* Return whether @address is in memory that the file leaves zero. */
static bool is_zero(const struct elffile *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr >= p->p_filesz && address - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Get a number of the file: -1 where there is none. */
static int32_t number_at(const struct elffile *f, uint64_t address)
{
	int32_t value;

	if (!address)
		return -1;
	if (elffile_read_at(f, address, &value, sizeof(value)))
		return value;
	return is_zero(f, address) ? 0 : -1;
}

void describe_v8(struct describe_file *out, const struct v8_symbols *s, const struct elffile *f)
{
	int32_t major = number_at(f, s->major), minor = number_at(f, s->minor);
	struct elfv8_blob blob;

	for (int i = 0; i < V8_NR; i++) {
		int32_t value = number_at(f, s->number[i]);

		out->v8.number[i] = (int16_t)(value < INT16_MIN || value > INT16_MAX ? -1 : value);
	}
	out->v8_version = (uint32_t)major << 24 | ((uint32_t)minor & 255) << 16;
	if (elfv8_blob(&blob, &s->builtins, f) &&
	    elffile_offset(f, blob.code, blob.code_size, &out->blob_offset))
		out->blob_size = blob.code_size;
}

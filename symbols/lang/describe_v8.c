// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers and builtins of V8, from its file.
 *
 * Runs on: a helper. The addresses of the builtins are in no symbol of a
 * stripped file, but in functions of one load and a return, which are exported.
 */
#include "symbols/lang/describe_v8.h"

#include <string.h>

#include "symbols/base/base.h"

#define RELA_MAX   (1U << 20)
#define RELA_PIECE 512U
#define BLOB_MAX   (64U << 20)

void describe_v8_symbol(struct v8_symbols *s, const char *name, uint64_t address)
{
	enum v8_number number = v8layout_number(name);
	static const struct {
		const char *name;
		size_t at;
	} others[] = {
		{ "_ZN2v88internal7Version6major_E", offsetof(struct v8_symbols, major) },
		{ "_ZN2v88internal7Version6minor_E", offsetof(struct v8_symbols, minor) },
		{ "_ZN2v88internal23DefaultEmbeddedBlobCodeEv",
		  offsetof(struct v8_symbols, blob_code) },
		{ "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv",
		  offsetof(struct v8_symbols, blob_code_size) },
		{ "_ZN2v88internal23DefaultEmbeddedBlobDataEv",
		  offsetof(struct v8_symbols, blob_data) },
		{ "_ZN2v88internal27DefaultEmbeddedBlobDataSizeEv",
		  offsetof(struct v8_symbols, blob_data_size) },
	};

	if (number != V8_NR)
		s->number[number] = address;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i].name))
			memcpy((char *)s + others[i].at, &address, sizeof(address));
}

/* Get the file offset of @size bytes at @address; false: they are not in the file. */
static bool offset_of(const struct elffile *f, uint64_t address, uint64_t size, uint64_t *offset)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];
		uint64_t at = address - p->p_vaddr;

		if (p->p_type != PT_LOAD || address < p->p_vaddr || at > p->p_filesz ||
		    size > p->p_filesz - at)
			continue;
		*offset = p->p_offset + at;
		return true;
	}
	return false;
}

static bool read_at(const struct elffile *f, uint64_t address, void *out, size_t size)
{
	uint64_t offset;

	memset(out, 0, size);
	return offset_of(f, address, size, &offset) && !elffile_read(f, offset, out, size);
}

/* Is @address in memory that the file leaves zero? */
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
	if (read_at(f, address, &value, sizeof(value)))
		return value;
	return is_zero(f, address) ? 0 : -1;
}

/* Get the value that a relative relocation puts at @address. */
static bool relocated(const struct elffile *f, uint64_t address, uint64_t *value)
{
	struct elffile_dynamic dynamic;
	Elf64_Rela rela[RELA_PIECE];

	elffile_dynamic(f, &dynamic);
	dynamic.nr_relative = MIN(dynamic.nr_relative, (uint64_t)RELA_MAX);
	for (uint64_t i = 0; i < dynamic.nr_relative; i += RELA_PIECE) {
		size_t nr = (size_t)MIN(dynamic.nr_relative - i, (uint64_t)RELA_PIECE);

		if (!read_at(f, dynamic.rela + i * sizeof(rela[0]), rela, nr * sizeof(rela[0])))
			return false;
		for (size_t k = 0; k < nr; k++) {
			if (rela[k].r_offset != address)
				continue;
			*value = (uint64_t)rela[k].r_addend;
			return true;
		}
	}
	return false;
}

/* Get the pointer at @address: as it is in the file, or as it is relocated. */
static bool pointer_at(const struct elffile *f, uint64_t address, uint64_t *value)
{
	return relocated(f, address, value) ||
	       (read_at(f, address, value, sizeof(*value)) && *value);
}

/*
 * Get the value that the function at @address returns: an address that is loaded into rax, the
 * pointer or the number there. @size: of a number; 0: an address.
 */
static bool returned(const struct elffile *f, uint64_t address, size_t size, uint64_t *value)
{
	uint8_t code[12];
	int32_t word;

	*value = 0;
	if (!address || !read_at(f, address, code, sizeof(code)))
		return false;
	memcpy(&word, code + 1, sizeof(word));
	if (code[0] == 0xb8 && code[5] == 0xc3) { /* mov $word,%eax */
		*value = (uint32_t)word;
		return true;
	}
	memcpy(&word, code + 2, sizeof(word));
	if (size && code[0] == 0x8b && code[1] == 0x05) /* mov word(%rip),%eax */
		return read_at(f, address + 6 + (uint64_t)(int64_t)word, value, size);
	memcpy(&word, code + 3, sizeof(word));
	address += 7 + (uint64_t)(int64_t)word;
	if (!memcmp(code, "\x48\x8b\x05", 3)) /* mov word(%rip),%rax */
		return pointer_at(f, address, value);
	if (memcmp(code, "\x48\x8d\x05", 3) != 0) /* lea word(%rip),%rax */
		return false;
	if (size && !memcmp(code + 7, "\x8b\x00", 2)) /* mov (%rax),%eax */
		return read_at(f, address, value, size);
	if (!memcmp(code + 7, "\x48\x8b\x00", 3)) /* mov (%rax),%rax */
		return pointer_at(f, address, value);
	*value = address;
	return code[7] == 0xc3;
}

bool describe_v8_blob(struct v8_blob *out, const struct v8_symbols *s, const struct elffile *f)
{
	return f->machine == EM_X86_64 && returned(f, s->blob_code, 0, &out->code) &&
	       returned(f, s->blob_code_size, 4, &out->code_size) &&
	       returned(f, s->blob_data, 0, &out->data) &&
	       returned(f, s->blob_data_size, 4, &out->data_size) && out->code_size &&
	       out->code_size <= BLOB_MAX && out->data_size <= BLOB_MAX;
}

void describe_v8(struct v8_file *out, const struct v8_symbols *s, const struct elffile *f)
{
	int32_t major = number_at(f, s->major), minor = number_at(f, s->minor);
	struct v8_blob blob;

	for (int i = 0; i < V8_NR; i++) {
		int32_t value = number_at(f, s->number[i]);

		out->layout.number[i] =
			(int16_t)(value < INT16_MIN || value > INT16_MAX ? -1 : value);
	}
	out->reason = v8layout_check(&out->layout);
	out->version = (uint32_t)major << 24 | ((uint32_t)minor & 255) << 16;
	out->tried = v8layout_tried(major, minor);
	out->blob_size = 0;
	if (!describe_v8_blob(&blob, s, f) ||
	    !offset_of(f, blob.code, blob.code_size, &out->blob_offset))
		out->reason = out->reason ? out->reason : "its builtins cannot be found";
	else
		out->blob_size = blob.code_size;
}

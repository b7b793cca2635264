// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find the builtins by short functions that return the addresses of the tables.
 *
 * Runs on: a helper.
 */
#include "symbols/object/elfv8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/bytes.h"

#define BLOB_MAX (64U << 20)
/* Code is aligned to this, with a gap behind each builtin. */
#define CODE_ALIGN 64U
#define GAP_MAX	   128U
/* Builtins; the head of the table of places, and an entry: offset, size, and others. */
#define BUILTINS_MIN 256U
#define BUILTINS_MAX 8192U
#define PLACES_HEAD  24U
#define ENTRY_MIN    8U
#define ENTRY_MAX    48U
/* An entry of the table of names: name, kind, and data. */
#define NAME_ENTRY 24U
#define NAME_MAX   128U
#define PREFIX	   "Builtins_"
/* The functions that elfv8_symbol() wants are smaller. */
#define FUNCTION_MAX 64U

void elfv8_symbol(struct elfv8_symbols *s, const char *name, uint64_t address)
{
	static const char prefix[] = "_ZN2v88internal";
	static const struct {
		const char *name; /* behind the prefix */
		size_t at;
	} functions[] = {
		{ "23DefaultEmbeddedBlobCodeEv", offsetof(struct elfv8_symbols, code) },
		{ "27DefaultEmbeddedBlobCodeSizeEv", offsetof(struct elfv8_symbols, code_size) },
		{ "23DefaultEmbeddedBlobDataEv", offsetof(struct elfv8_symbols, data) },
		{ "27DefaultEmbeddedBlobDataSizeEv", offsetof(struct elfv8_symbols, data_size) },
		{ "8Builtins4nameENS0_7BuiltinE", offsetof(struct elfv8_symbols, name) },
	};

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(name + sizeof(prefix) - 1, functions[i].name))
			memcpy((char *)s + functions[i].at, &address, sizeof(address));
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
	if (!address || !elffile_read_at(f, address, code, sizeof(code)))
		return false;
	memcpy(&word, code + 1, sizeof(word));
	if (code[0] == 0xb8 && code[5] == 0xc3) { /* mov $word,%eax */
		*value = (uint32_t)word;
		return true;
	}
	memcpy(&word, code + 2, sizeof(word));
	if (size && code[0] == 0x8b && code[1] == 0x05) /* mov word(%rip),%eax */
		return elffile_read_at(f, address + 6 + (uint64_t)(int64_t)word, value, size);
	memcpy(&word, code + 3, sizeof(word));
	address += 7 + (uint64_t)(int64_t)word;
	if (!memcmp(code, "\x48\x8b\x05", 3)) /* mov word(%rip),%rax */
		return elffile_pointer(f, address, value);
	if (memcmp(code, "\x48\x8d\x05", 3) != 0) /* lea word(%rip),%rax */
		return false;
	if (size && !memcmp(code + 7, "\x8b\x00", 2)) /* mov (%rax),%eax */
		return elffile_read_at(f, address, value, size);
	if (!memcmp(code + 7, "\x48\x8b\x00", 3)) /* mov (%rax),%rax */
		return elffile_pointer(f, address, value);
	*value = address;
	return code[7] == 0xc3;
}

bool elfv8_blob(struct elfv8_blob *out, const struct elfv8_symbols *s, const struct elffile *f)
{
	return f->machine == EM_X86_64 && returned(f, s->code, 0, &out->code) &&
	       returned(f, s->code_size, 4, &out->code_size) &&
	       returned(f, s->data, 0, &out->data) &&
	       returned(f, s->data_size, 4, &out->data_size) && out->code_size &&
	       out->code_size <= BLOB_MAX && out->data_size <= BLOB_MAX;
}

/* ---- names ---- */

struct builtin {
	uint32_t offset, size;
};

/*
 * Read the table of places with entries of @entry bytes: they are in order, without large gaps, up
 * to the end of the code. Returns how many; 0: it has other entries.
 */
static uint32_t read_places(const uint8_t *data, const struct elfv8_blob *b, uint32_t entry,
			    struct builtin *out)
{
	uint64_t end = 0;
	uint32_t nr = 0;

	for (uint64_t at = PLACES_HEAD; at + entry <= b->data_size && nr < BUILTINS_MAX;
	     at += entry) {
		struct builtin p = { bytes_u32(data + at), bytes_u32(data + at + 4) };

		if (p.offset < end || p.offset - end > GAP_MAX || p.offset % CODE_ALIGN ||
		    !p.size || p.size > b->code_size - MIN((uint64_t)p.offset, b->code_size))
			break;
		end = (uint64_t)p.offset + p.size;
		out[nr++] = p;
	}
	return nr >= BUILTINS_MIN && b->code_size - end <= GAP_MAX ? nr : 0;
}

/* Get the table of names: the address that the function loads. */
static bool find_names(const struct elffile *f, uint64_t function, uint64_t *table)
{
	uint8_t code[32];
	int32_t word;

	if (!function || !elffile_read_at(f, function, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + 8 <= sizeof(code); i++) {
		if (code[i] != 0x48)
			continue;
		if (code[i + 1] == 0x8d && (code[i + 2] & 0xc7) == 5) { /* lea word(%rip),%reg */
			memcpy(&word, code + i + 3, sizeof(word));
			*table = function + i + 7 + (uint64_t)(int64_t)word;
			return true;
		}
		/* mov word(,%reg,8),%reg */
		if (code[i + 1] == 0x8b && (code[i + 2] & 0xc7) == 4 &&
		    (code[i + 3] & 0xc7) == 0xc5) {
			memcpy(&word, code + i + 4, sizeof(word));
			*table = (uint64_t)(int64_t)word;
			return true;
		}
	}
	return false;
}

/* The pointers of the table of names, while they are read. */
struct pointers {
	uint64_t table, size;
	uint64_t *out;
};

static bool put_pointer(const Elf64_Rela *r, void *ctx)
{
	const struct pointers *p = ctx;
	uint64_t at = r->r_offset - p->table;

	if (at < p->size && at % NAME_ENTRY == 0)
		p->out[at / NAME_ENTRY] = (uint64_t)r->r_addend;
	return true;
}

/* Read the pointers of @nr entries of the table of names, as they are relocated. */
static bool read_pointers(const struct elffile *f, uint64_t table, uint32_t nr, uint64_t *out)
{
	struct pointers p = { table, (uint64_t)nr * NAME_ENTRY, out };

	for (uint32_t i = 0; i < nr; i++)
		if (!elffile_read_at(f, table + (uint64_t)i * NAME_ENTRY, &out[i], sizeof(out[i])))
			return false;
	return elffile_relative(f, put_pointer, &p);
}

/* Read the name of a builtin: letters, digits and '_'. Returns its length; 0: it is none. */
static size_t read_name(const struct elffile *f, uint64_t address, char *out)
{
	size_t size;

	if (!elffile_read_at(f, address, out, NAME_MAX))
		return 0;
	size = strnlen(out, NAME_MAX);
	if (size == NAME_MAX)
		return 0;
	for (size_t i = 0; i < size; i++)
		if (!isalnum((unsigned char)out[i]) && out[i] != '_')
			return 0;
	return size;
}

/* Add the builtins: all with a name each, or none. */
static int add_builtins(struct elfsym *t, const struct elffile *f, const struct elfv8_blob *b,
			const struct builtin *places, uint32_t nr, const uint64_t *names)
{
	char name[sizeof(PREFIX) + NAME_MAX] = PREFIX;
	const size_t prefix = sizeof(PREFIX) - 1;
	int rc = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (!read_name(f, names[i], name + prefix))
			return 0;
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = elfsym_add_named(t, b->code + places[i].offset, places[i].size, name,
				      prefix + read_name(f, names[i], name + prefix));
	return rc;
}

static void find_functions(const struct elfsym *t, struct elfv8_symbols *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < t->nr; i++)
		if (t->symbols[i].size <= FUNCTION_MAX)
			elfv8_symbol(s, t->names + t->symbols[i].name, t->symbols[i].vaddr);
}

int elfv8_add(struct elfsym *t, const struct elffile *f)
{
	struct builtin *places = NULL;
	uint64_t *names = NULL, table;
	struct elfv8_symbols s;
	struct elfv8_blob b;
	uint32_t nr = 0;
	void *data;
	int rc = 0;

	find_functions(t, &s);
	if (!s.code || !elfv8_blob(&b, &s, f) || !find_names(f, s.name, &table) ||
	    !elffile_offset(f, b.data, b.data_size, &b.data) ||
	    elffile_read_alloc(f, b.data, b.data_size, &data))
		return 0;
	places = calloc(BUILTINS_MAX, sizeof(*places));
	names = calloc(BUILTINS_MAX, sizeof(*names));
	for (uint32_t entry = ENTRY_MIN; places && names && !nr && entry <= ENTRY_MAX; entry += 4)
		nr = read_places(data, &b, entry, places);
	if (nr && read_pointers(f, table, nr, names))
		rc = add_builtins(t, f, &b, places, nr, names);
	free(places);
	free(names);
	free(data);
	return rc;
}

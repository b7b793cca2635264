/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The symbol tables of an ELF file -> one sorted array of functions.
 *
 * Collect any number of tables, then finish once. Any thread; slow. Pure except
 * for reading the file.
 */
#ifndef SYMBOLS_OBJECT_ELFSYM_H
#define SYMBOLS_OBJECT_ELFSYM_H

#include "symbols/elf/elf.h"
#include "symbols/object/image.h"

#define ELFSYM_SYMBOLS_MAX (8U << 20)
#define ELFSYM_NAMES_MAX   (512U << 20)

struct elfsym {
	struct image_symbol *symbols;
	uint32_t nr, max;
	char *names;
	size_t names_size, names_max;
	uint32_t dynstr; /* offset of the names of the dynamic symbols */
	size_t dynstr_size;
	uint64_t nr_bytes_scanned; /* of names: a limit for tables with overlapping names */
};

void elfsym_fini(struct elfsym *t);
/* Expect the table of @type and its names. 0, or -EAGAIN: they are not there yet. */
int elfsym_expect(const struct elffile *f, uint32_t type);
/*
 * Add the functions of the table of @type (SHT_SYMTAB or SHT_DYNSYM), @bias added to
 * each address. 0, -ENOENT without such a table, -E2BIG, -ERANGE, -EIO, -ENOMEM;
 * symbols collected before are kept.
 */
int elfsym_add(struct elfsym *t, const struct elffile *f, uint32_t type, uint64_t bias);
/* Add one function that is in no table; copies the name. 0, -E2BIG, -ENOMEM. */
int elfsym_add_named(struct elfsym *t, uint64_t vaddr, uint64_t size, const char *name,
		     size_t name_size);
/*
 * Add a stub that calls @function, an offset in the names of the dynamic symbols;
 * ignored without a name.
 */
int elfsym_add_stub(struct elfsym *t, uint64_t vaddr, uint64_t size, uint32_t function);
/*
 * Sort, keep the best symbol of each address, set missing sizes. The executable sections (or
 * segments) of @f bound them.
 */
int elfsym_finish(struct elfsym *t, const struct elffile *f);

#endif

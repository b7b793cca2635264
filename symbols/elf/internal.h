/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/elf/, and by tests; no other room includes it. */
#ifndef SYMBOLS_ELF_INTERNAL_H
#define SYMBOLS_ELF_INTERNAL_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/sandbox/sandbox.h"

struct ehhdr;
struct elffile;
struct elfpart;
struct elfparts;
struct elfsym;
struct elfvar;

/*
 * perf's cache of files by build-id, ~/.debug: the programs of recordings as perf record saw them.
 *
 * Threads: helpers.
 */

/* Write the path of the cached file with this build-id. @old: as perf wrote it before Linux 4.9. */
bool buildidcache_path(const char *home, const uint8_t *build_id, size_t size, bool old, char *buf,
		       size_t buf_size);

/*
 * Turn the @entries of the table into the index of an .eh_frame of @size bytes at
 * h->eh_frame: the high half of each number is the start of the function (above
 * ehhdr_base()), the low half the offset of its FDE. False: the starts do not
 * ascend, or an FDE is outside.
 */
bool ehhdr_index(const struct ehhdr *h, uint64_t *entries, size_t size);

/* Return the base of all starts: no table reaches further than 2 GiB either way. */
static inline uint64_t ehhdr_base(uint64_t eh_frame)
{
	return eh_frame - (1ULL << 31);
}

/*
 * The parts of a file that a reader in the cage has. A helper, which may hang, copies them; the
 * reader goes as far as it can, notes the missed ones, and is called again with them.
 *
 * Pure; one thread.
 */

#define ELFPARTS_ALIGNED (16U << 10)

/* Test whether all bytes from @start to before @end are there. */
bool elfparts_has(const struct elfparts *p, uint64_t start, uint64_t end);
/* Return the bytes from @start to before @end <= @size, the size of the file, and the ones around.
 */
struct elfpart elfparts_round(uint64_t start, uint64_t end, uint64_t size);
/* Add them. */
void elfparts_add(struct elfparts *p, uint64_t start, uint64_t end, uint64_t size);
/* Return the sum of all bytes. */
uint64_t elfparts_sum(const struct elfparts *p);

/*
 * xz streams -> bytes, under limits (the .gnu_debugdata section of stripped
 * objects). Built without liblzma: always -EOPNOTSUPP.
 *
 * Pure; any thread. Hostile input: 50 kB can expand to gigabytes.
 */

#define XZ_OUTPUT_MAX (64UL << 20)

#define ELFFILE_SHDRS_MAX 65536U

/* Read the headers of @fd, of which some parts are there. */
int elffile_open_parts(struct elffile *f, int fd, uint64_t size, const struct elfparts *there,
		       struct elfparts *missed, struct err *e);

/* Some values of the dynamic section; all zero where there is none. */
struct elffile_dynamic {
	bool needs_others;    /* linked with other objects */
	uint64_t rela;	      /* vaddr of its relocations */
	uint64_t nr_relative; /* number of relative relocations, which are first */
};

void elffile_dynamic(const struct elffile *f, struct elffile_dynamic *out);
/*
 * Call @fn for each relative relocation until it returns false. False: some are not in the file, or
 * not there yet.
 */
bool elffile_relative(const struct elffile *f, bool (*fn)(const Elf64_Rela *r, void *ctx),
		      void *ctx);
/* Get the pointer at @address: as it is relocated, or as it is in the file. False: none. */
bool elffile_pointer(const struct elffile *f, uint64_t address, uint64_t *value);

#define ELFCAGE_TIME_NS 10000000000ULL

/* Sum up the sizes. 0, -ENODATA: no debug information, or -EFBIG. */
int elfdwarf_size(const struct elffile *f, uint64_t *size);

/*
 * Addresses of data symbols of an ELF file by name (System V gABI, chapter 4):
 * the tables that language runtimes export.
 *
 * Any thread; slow. Bounded by the limits of elfsym.h.
 */

/*
 * Look up @nr symbols of any type but undefined ones, in .dynsym, then in
 * .symtab. How many were found, or -errno.
 */
int elfvar_find(const struct elffile *f, struct elfvar *vars, uint32_t nr);
/*
 * Find the variable that @vaddr is in, in .symtab, else in .dynsym: its name, cut at @size - 1
 * bytes, foreign text, and its begin. False: none.
 */
bool elfvar_at(const struct elffile *f, uint64_t vaddr, char *name, size_t size, uint64_t *begin);
/* The vaddr of the byte at file offset @offset, by the PT_LOAD segments; false outside of all. */
bool elfvar_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr);

/* Add one function that is in no table; copies the name. 0, -E2BIG, -ENOMEM. */
int elfsym_add_named(struct elfsym *t, uint64_t vaddr, uint64_t size, const char *name,
		     size_t name_size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ELF file's headers, read strictly, and a bounded reader of its bytes
 * (System V gABI, chapters 4 and 5; elf(5)).
 *
 * Not libelf: elf_begin() allocates and touches one descriptor for each
 * section that the file claims to have, gigabytes for a sparse file. Here
 * every count is checked before memory is taken. 32-bit headers are widened.
 * Nothing is ever mapped. Any thread; slow.
 */
#ifndef SYMBOLS_OBJECT_ELFFILE_H
#define SYMBOLS_OBJECT_ELFFILE_H

#include <elf.h>

#include "symbols/base/watch.h"

#define ELFFILE_PHDRS_MAX 4096U
#define ELFFILE_SHDRS_MAX 65536U

struct elffile {
	int fd; /* -1: memory */
	const uint8_t *memory;
	uint64_t size;
	struct watch *watch; /* borrowed; told of every read; may be NULL */
	const char *path;    /* borrowed, a hint only (whose debug file); NULL: unknown */
	uint8_t elf_class;
	uint16_t machine;
	Elf64_Phdr *phdrs;
	uint32_t nr_phdrs;
	Elf64_Shdr *shdrs; /* none when the file's are absent or unusable */
	uint32_t nr_shdrs;
	char *shstr; /* section names; NUL-terminated as a whole; may be NULL */
	size_t shstr_size;
	uint8_t build_id[20];
	uint8_t build_id_size;
};

/*
 * Read the headers of @fd, or of @memory when @fd is -1 (both borrowed). 0,
 * -ENOEXEC (no ELF of this machine's byte order), -E2BIG, -EIO, -ENOMEM with a
 * sentence. After a failure there is nothing to close.
 */
int elffile_open(struct elffile *f, int fd, const void *memory, uint64_t size, struct err *e);
/* The same of a file, with somebody who looks on; further errors: -ECANCELED. */
int elffile_open_watched(struct elffile *f, int fd, uint64_t size, struct watch *watch,
			 struct err *e);
void elffile_close(struct elffile *f);

/* All of @size bytes or an error: -ERANGE beyond the end, -EIO when the file shrank, -ECANCELED. */
int elffile_read(const struct elffile *f, uint64_t offset, void *buf, size_t size);
/* The same into new memory of @size + 1 bytes, the last one NUL. */
int elffile_read_alloc(const struct elffile *f, uint64_t offset, size_t size, void **out);

/* The GNU build-id among notes, at most @max bytes of it into @id: how many; 0: there is none. */
size_t elffile_notes_build_id(const uint8_t *notes, size_t size, uint8_t *id, size_t max);

/* What the dynamic section tells a loader; all zero where there is none. */
struct elffile_dynamic {
	bool needs_others;    /* it is linked with other objects */
	uint64_t rela;	      /* vaddr of its relocations */
	uint64_t nr_relative; /* how many of them, the first, are but additions */
};
void elffile_dynamic(const struct elffile *f, struct elffile_dynamic *out);

/* The first section with this name or type, with bytes in the file; or NULL. */
const Elf64_Shdr *elffile_section(const struct elffile *f, const char *name);
const Elf64_Shdr *elffile_section_of_type(const struct elffile *f, uint32_t type);

#endif

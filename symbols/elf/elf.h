/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The headers of an ELF file, read strictly, and a bounded reader of its bytes
 * (System V gABI, chapters 4 and 5; elf(5)).
 *
 * Not libelf: elf_begin() allocates one descriptor for each section that the
 * file claims to have, gigabytes for a sparse file. Here every count is checked
 * before memory is allocated. 32-bit headers are widened. Nothing is ever
 * mapped. Any thread; slow.
 */
#ifndef SYMBOLS_OBJECT_ELFFILE_H
#define SYMBOLS_OBJECT_ELFFILE_H

#include <elf.h>

#include "symbols/base/watch.h"
#include "symbols/object/elfparts.h"

#define ELFFILE_PHDRS_MAX 4096U
#define ELFFILE_SHDRS_MAX 65536U

struct elffile {
	int fd; /* -1: memory */
	const uint8_t *memory;
	uint64_t size;
	struct watch *watch; /* borrowed; watches every read; may be NULL */
	const char *path;    /* borrowed, a hint for debug files; NULL: unknown */
	/* Borrowed: the parts of the file that are there, and the missed ones; NULL: all are
	 * there. */
	const struct elfparts *there;
	struct elfparts *missed;
	uint8_t elf_class;
	uint16_t machine;
	Elf64_Phdr *phdrs;
	uint32_t nr_phdrs;
	Elf64_Shdr *shdrs; /* none when absent or unusable */
	uint32_t nr_shdrs;
	char *shstr; /* section names; NUL-terminated as a whole; may be NULL */
	size_t shstr_size;
	uint8_t build_id[20];
	uint8_t build_id_size;
};

/*
 * Read the headers of @fd, or of @memory when @fd is -1 (both borrowed). 0, -ENOEXEC
 * (not ELF, or another byte order), -E2BIG, -EIO, -ENOMEM with a message. After an
 * error there is nothing to close.
 */
int elffile_open(struct elffile *f, int fd, const void *memory, uint64_t size, struct err *e);
/* Read the headers of @fd, of which some parts are there. */
int elffile_open_parts(struct elffile *f, int fd, uint64_t size, const struct elfparts *there,
		       struct elfparts *missed, struct err *e);
void elffile_close(struct elffile *f);

/*
 * Read exactly @size bytes. -ERANGE beyond the end, -EIO when the file shrank,
 * -ECANCELED, -EAGAIN: they are not there yet.
 */
int elffile_read(const struct elffile *f, uint64_t offset, void *buf, size_t size);
/* Test for bytes that are going to be read in pieces. 0, or -EAGAIN: they are not there yet. */
int elffile_expect(const struct elffile *f, uint64_t offset, uint64_t size);
/* Test whether bytes were missed: a result is not used then. */
static inline bool elffile_waits(const struct elffile *f)
{
	return f->missed && f->missed->nr;
}
/* Read into malloc'ed memory of @size + 1 bytes, the last one NUL. */
int elffile_read_alloc(const struct elffile *f, uint64_t offset, size_t size, void **out);

/*
 * Copy the GNU build-id among the notes, at most @max bytes, to @id; return its
 * size, 0: none.
 */
size_t elffile_notes_build_id(const uint8_t *notes, size_t size, uint8_t *id, size_t max);

/* Some values of the dynamic section; all zero where there is none. */
struct elffile_dynamic {
	bool needs_others;    /* linked with other objects */
	uint64_t rela;	      /* vaddr of its relocations */
	uint64_t nr_relative; /* number of relative relocations, which are first */
};
void elffile_dynamic(const struct elffile *f, struct elffile_dynamic *out);

/* Get the file offset of @size bytes at @address; false: they are not in the file. */
bool elffile_offset(const struct elffile *f, uint64_t address, uint64_t size, uint64_t *offset);
/* Read bytes at @address; zeros and false if they are not there. */
bool elffile_read_at(const struct elffile *f, uint64_t address, void *out, size_t size);
/*
 * Call @fn for each relative relocation until it returns false. False: some are not in the file, or
 * not there yet.
 */
bool elffile_relative(const struct elffile *f, bool (*fn)(const Elf64_Rela *r, void *ctx),
		      void *ctx);
/* Get the pointer at @address: as it is relocated, or as it is in the file. False: none. */
bool elffile_pointer(const struct elffile *f, uint64_t address, uint64_t *value);

/* Find the first section with this name or type and with bytes in the file; NULL: none. */
const Elf64_Shdr *elffile_section(const struct elffile *f, const char *name);
const Elf64_Shdr *elffile_section_of_type(const struct elffile *f, uint32_t type);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of an object file in memory: load segments, unwind tables, symbols.
 *
 * Built by image_read.c, then immutable. Everything in an image is bounded and
 * checked; the bytes of eh_frame are still hostile (see unwind/cfi).
 */
#ifndef SYMBOLS_OBJECT_IMAGE_H
#define SYMBOLS_OBJECT_IMAGE_H

#include "symbols/base/base.h"
#include "symbols/object/ehframe.h"

#define IMAGE_NESTED_MAX 63U   /* symbols inside a symbol that a look-up skips */
#define IMAGE_NAME_MAX	 4096U /* bytes of one name; longer names are cut */
#define IMAGE_STUB_MAX	 (IMAGE_NAME_MAX + 4)

/* Values of image->trouble. */
#define IMAGE_TOO_MANY_SYMBOLS	  "too many symbols: not read"
#define IMAGE_TOO_LARGE		  "symbols are larger than --symbol-memory: not read"
#define IMAGE_DEBUGDATA_TOO_LARGE ".gnu_debugdata is too large"

struct image_segment { /* PT_LOAD */
	uint64_t offset, vaddr, file_size, mem_size;
	bool exec;
};

struct image_symbol { /* sorted by vaddr, then by preference; one per address */
	uint64_t vaddr;
	uint64_t size; /* up to the next symbol when the table has 0 */
	uint32_t name; /* offset in names; NUL-terminated there */
	uint16_t rank; /* among symbols of one address; see elfsym.c */
	uint8_t back;  /* number of symbols before this one that may cover its start */
	bool stub;     /* of a PLT: named after the function it calls, and "@plt" */
};

struct image {
	uint16_t machine;  /* e_machine */
	uint8_t elf_class; /* ELFCLASS64 or ELFCLASS32 */
	struct image_segment *segments;
	uint32_t nr_segments;
	struct ehframe eh; /* eh.bytes owned by the image */
	struct image_symbol *symbols;
	uint32_t nr_symbols;
	uint8_t sigreturn_size; /* 0: unknown */
	uint64_t sigreturn;	/* vaddr of the code that returns from a signal handler */
	char *names;		/* foreign bytes */
	size_t names_size;
	/*
	 * Source of the names, static text, in the order tried: ".symtab", "debug
	 * file" (by build-id), "debug link", ".gnu_debugdata", ".gopclntab" (Go);
	 * ".dynsym" and PLT stubs are added to each; "none".
	 */
	const char *source;
	const char *trouble; /* why a source was not used; static text, mostly NULL */
	uint8_t loop;	     /* of an interpreter: elfloop_find(); 0: none */
	bool complete;	     /* the symbols include all functions, not only exported ones */
	bool away;	     /* a stub: loaded again on request */
	uint32_t serial;     /* unique: a cache for one image is not used for another */
	uint8_t build_id[20];
	uint8_t build_id_size;
	/* Mapped pages, which have all arrays but the CIEs of eh; NULL: each is allocated. */
	void *block;
	size_t block_size;
};

/* Make the stub of @image, with its load segments. NULL when out of memory. */
struct image *image_stub(const struct image *image);
/* Return the bytes of an image. */
size_t image_memory(const struct image *image);
void image_free(struct image *image);

/* Find the segment with @vaddr in its file-backed part, executable ones first; NULL: none. */
const struct image_segment *image_segment_at(const struct image *image, uint64_t vaddr);
/* Convert a file offset to a vaddr by its segment; false: in none. */
bool image_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr);
/* Convert a vaddr to a file offset; false: in no file-backed part of a segment. */
bool image_offset(const struct image *image, uint64_t vaddr, uint64_t *offset);
/* Find the symbol that covers @vaddr; NULL: none. */
const struct image_symbol *image_find(const struct image *image, uint64_t vaddr);
/*
 * Return the name, *@size foreign bytes: borrowed from the image, or for a stub
 * written to @buf.
 */
const char *image_symbol_name(const struct image *image, const struct image_symbol *s,
			      char buf[IMAGE_STUB_MAX], size_t *size);
bool image_symbol_is(const struct image *image, const struct image_symbol *s, const char *name);

#endif

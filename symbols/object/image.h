/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What we keep of an object file: load segments, unwind tables, symbols.
 *
 * Built by a helper of the loader from a file descriptor and nothing else
 * (pread, never a mapping: the file can be truncated under us), then
 * immutable. Everything in it is bounded and checked; the bytes of
 * eh_frame are still hostile (see unwind/cfi).
 */
#ifndef SYMBOLS_OBJECT_IMAGE_H
#define SYMBOLS_OBJECT_IMAGE_H

#include "symbols/base/base.h"
#include "symbols/object/ehframe.h"

#define IMAGE_NESTED_MAX 63U   /* symbols inside a symbol that a look-up steps over */
#define IMAGE_NAME_MAX	 4096U /* bytes of one name; the rest is cut */
#define IMAGE_STUB_MAX	 (IMAGE_NAME_MAX + 4)

struct image_segment { /* PT_LOAD */
	uint64_t offset, vaddr, file_size, mem_size;
	bool exec;
};

struct image_symbol { /* sorted by vaddr, then by preference; one per address */
	uint64_t vaddr;
	uint64_t size; /* up to the next symbol where the table says 0 */
	uint32_t name; /* offset in names; NUL-terminated there */
	uint16_t rank; /* among those of one address; elfsym's */
	uint8_t back;  /* how many before it may reach behind its start */
	bool stub;     /* of a PLT: called as the function it leads to, and "@plt" */
};

struct image {
	uint16_t machine;  /* e_machine */
	uint8_t elf_class; /* ELFCLASS64 or ELFCLASS32 */
	struct image_segment *segments;
	uint32_t nr_segments;
	struct ehframe eh; /* eh.bytes owned by the image */
	struct image_symbol *symbols;
	uint32_t nr_symbols;
	uint8_t sigreturn_size; /* 0: none is known */
	uint64_t sigreturn;	/* vaddr of the code that returns from a signal handler */
	char *names;		/* raw, foreign bytes */
	size_t names_size;
	/*
	 * Where its names come from, static text, in the order they are tried:
	 * ".symtab", "debug file" (by build-id), "debug link", ".gnu_debugdata",
	 * ".gopclntab" (Go); ".dynsym" and PLT stubs are added to each; "none".
	 */
	const char *source;
	const char *trouble; /* why a source was not used; static text, mostly NULL */
	bool complete;	     /* its symbols name all functions, not only exported ones */
	bool away;	     /* a stub: the rest comes when it is asked for again */
	uint32_t serial;     /* no other image has it: what was learnt of one holds for no other */
	uint8_t build_id[20];
	uint8_t build_id_size;
};

struct watch;

/* An ELF file to read. */
struct image_input {
	int fd;
	uint64_t size;
	const char *path; /* tells where a debug file of it may be; a hint, may be NULL */
	bool no_debug_files;
	struct watch *watch; /* how far it came; may be NULL */
};

/* Build from an ELF file. 0 or -errno with a sentence. Any thread, slow; may hang. */
int image_read(struct image **out, const struct image_input *in, struct err *e);
/* The same of a descriptor alone. */
int image_from_fd(struct image **out, int fd, uint64_t file_size, struct err *e);
/* What stays of @image when it leaves: its load segments. NULL when memory is out. */
struct image *image_stub(const struct image *image);
/* Bytes that it takes. */
size_t image_memory(const struct image *image);
/* Build from ELF bytes in memory (the vdso). */
int image_from_memory(struct image **out, const void *bytes, size_t size, struct err *e);
void image_free(struct image *image);

/* File offset -> vaddr through the segment that holds it; false outside all. */
bool image_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr);
/* vaddr -> file offset; false outside the file-backed part of all segments. */
bool image_offset(const struct image *image, uint64_t vaddr, uint64_t *offset);
/* The symbol that covers @vaddr, or NULL. */
const struct image_symbol *image_find(const struct image *image, uint64_t vaddr);
/* Its name, *@size raw bytes: borrowed from the image or, of a stub, made in @buf. */
const char *image_symbol_name(const struct image *image, const struct image_symbol *s,
			      char buf[IMAGE_STUB_MAX], size_t *size);
bool image_symbol_is(const struct image *image, const struct image_symbol *s, const char *name);

#endif

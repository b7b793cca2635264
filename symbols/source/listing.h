/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function for people to read: its instructions as text, where they jump
 * and whom they call, and the lines of source that they were made of.
 *
 * Made by the loader, then immutable and shared: whoever shows it holds a
 * reference. All texts are clean. Any thread.
 */
#ifndef SYMBOLS_SOURCE_LISTING_H
#define SYMBOLS_SOURCE_LISTING_H

#include <stdatomic.h>

#include "symbols/base/base.h"

#define LISTING_NONE UINT32_MAX

struct listing_insn {
	uint64_t vaddr;
	uint32_t text;	 /* offset in texts */
	uint32_t target; /* instruction that it may jump to; LISTING_NONE: none in here */
	uint32_t callee; /* symbol that it goes to, outside of here; LISTING_NONE */
	uint32_t file;	 /* index in files; LISTING_NONE: its source is not known */
	uint32_t line;	 /* 0: of no line */
	uint8_t size;	 /* bytes */
	bool jump, call;
};

/* A source file, of which the lines that the function covers are here. */
struct listing_file {
	uint32_t path;	   /* offset in texts */
	uint32_t first;	   /* number of the first line that is here */
	uint32_t lines;	   /* its index in lines */
	uint32_t nr_lines; /* 0: see why */
	const char *why;   /* static: why its text is not here; NULL */
	bool newer;	   /* changed since the program was built */
};

struct listing {
	atomic_uint refs; /* acquire and release in listing_put() */
	uint32_t symbol;
	uint64_t vaddr, size;	    /* in its object; @size 0: not known */
	struct listing_insn *insns; /* in order of address, without gaps; none: see why */
	uint32_t nr_insns, max_insns;
	uint32_t nr_bytes; /* that are here; less than @size if that is long */
	struct listing_file *files;
	uint32_t nr_files;
	uint32_t *lines; /* offsets in texts */
	uint32_t nr_lines;
	char *texts; /* NUL-terminated each; the first is "" */
	uint32_t texts_size, texts_max;
	/* For people; static, may be NULL. */
	const char *why, *fix; /* why there are no instructions; what would help */
	const char *origin;    /* where the code was read, unless that is the file */
	const char *no_source; /* why no instruction has a line */
};

/* A new one, with one reference; NULL without memory. */
struct listing *listing_new(uint32_t symbol);
struct listing *listing_get(struct listing *l);
/* NULL is fine. */
void listing_put(struct listing *l);

/* Add clean text; its offset, 0 ("") without memory. */
uint32_t listing_add_text(struct listing *l, const char *text, size_t size);
/* A new instruction; NULL without memory. */
struct listing_insn *listing_add_insn(struct listing *l, uint64_t vaddr, uint8_t size);
/* The instruction that @vaddr is in; LISTING_NONE outside. */
uint32_t listing_at(const struct listing *l, uint64_t vaddr);

static inline const char *listing_text(const struct listing *l, uint32_t text)
{
	return text < l->texts_size ? l->texts + text : "";
}

#endif

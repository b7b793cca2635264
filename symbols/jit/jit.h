/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code in the memory of one process over time: the function at each address, and
 * replaced functions.
 *
 * Code that overlaps older code is one layer above it, so that the code of one
 * layer never overlaps and (layer, address) always means the same function. Layer
 * 0 is the first code at its address. When all layers are used up, the top one
 * forgets replaced code.
 *
 * Pure; one thread. Numbers and texts are foreign, all is bounded.
 */
#ifndef SYMBOLS_JIT_JITCODE_H
#define SYMBOLS_JIT_JITCODE_H

#include "symbols/base/base.h"

#define JITCODE_LAYERS	      64U
#define JITCODE_FUNCTIONS_MAX (1U << 20)
#define JITCODE_NAMES_MAX     (64UL << 20) /* bytes of names and of files */
#define JITCODE_NAME_MAX      512U	   /* bytes of one; the rest is cut */
#define JITCODE_LINES_MAX     (4U << 20)
#define JITCODE_SIZE_MAX      (64U << 20) /* bytes of one function */

struct jitcode;

/* The code from @offset bytes after the function's start is of @line of @file. */
struct jitcode_line {
	uint32_t offset;
	uint32_t line;
	uint32_t file; /* jitcode_add_file() */
};

struct jitcode_function {
	uint64_t start;
	uint32_t size;
	uint32_t layer;
	uint64_t time_ns;	  /* time of loading */
	uint64_t bytes_at;	  /* position of the instructions: an offset in the file */
	uint32_t serial;	  /* differs for code that was made again; 0: not known */
	uint32_t name, name_size; /* jitcode_text() */
	uint32_t first_line, nr_lines;
};

int jitcode_new(struct jitcode **out);
void jitcode_free(struct jitcode *c);

/* Add a file's name for lines. UINT32_MAX when the table is full. */
uint32_t jitcode_add_file(struct jitcode *c, const char *name, size_t size);

struct jitcode_load {
	uint64_t start, size, time_ns, bytes_at;
	uint32_t serial;
	const char *name; /* borrowed for the call */
	size_t name_size;
	const struct jitcode_line *lines; /* sorted by offset */
	uint32_t nr_lines;
};

/*
 * Add one function. The same function again (same range, name, serial) changes
 * nothing. 0, -EINVAL (impossible code), -ENOSPC, -ENOMEM.
 */
int jitcode_add(struct jitcode *c, const struct jitcode_load *load);

/*
 * Find the function with @addr in @layer; NULL when none. Borrowed until the next
 * call that adds.
 */
const struct jitcode_function *jitcode_find(const struct jitcode *c, uint32_t layer, uint64_t addr);
/* Find the newest function at @addr, of any layer. */
const struct jitcode_function *jitcode_latest(const struct jitcode *c, uint64_t addr);
/* Find the source of @addr, inside @f; NULL when unknown. */
const struct jitcode_line *jitcode_line(const struct jitcode *c, const struct jitcode_function *f,
					uint64_t addr);
/* Return the name of a function or file: NUL-terminated, foreign bytes. */
const char *jitcode_text(const struct jitcode *c, uint32_t at);

/* Return the next function that replaced other code, each once, or NULL. */
const struct jitcode_function *jitcode_next_over(struct jitcode *c);

uint32_t jitcode_nr(const struct jitcode *c);
size_t jitcode_memory(const struct jitcode *c);
/* Return the bytes that a function with a name of @name_size bytes needs; 0: they are there. */
size_t jitcode_growth(const struct jitcode *c, size_t name_size);

#endif

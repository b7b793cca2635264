/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instructions of one function, for people: read by the loader when they
 * are asked for, never kept with the image.
 *
 * One question at a time; the newest replaces those before it.
 */
#ifndef SYMBOLS_CODE_H
#define SYMBOLS_CODE_H

#include <pthread.h>

#include "symbols/dso.h"
#include "symbols/symtab.h"

#define CODE_SIZE_MAX (64u << 10)

struct code {
	uint32_t symbol;		/* that was asked for; SYMBOL_NONE: nothing yet */
	uint64_t vaddr;			/* of the first byte */
	uint64_t size;			/* of the function; more than @nr_bytes if that is long */
	uint8_t *bytes;			/* malloc'ed; NULL: see why */
	uint32_t nr_bytes;
	uint16_t machine;		/* e_machine */
	bool wide;			/* 64 bits */
	const char *why;		/* static; why there are no bytes, NULL if there are */
};

struct jitdumps;

struct code_desk {
	pthread_mutex_t lock;		/* asker and loader; held for copies only */
	uint32_t wanted;
	struct code done;
	struct dsos *dsos;
	const struct symtab *symtab;
	struct jitdumps *jitdumps;	/* where the code of a JIT is kept; NULL: nowhere */
	const atomic_bool *stop;
	bool no_proc;			/* as in struct objects */
	const char *root;
};

void code_init(struct code_desk *d, struct dsos *dsos, const struct symtab *symtab,
	       const atomic_bool *stop);
void code_fini(struct code_desk *d);
/* Any thread: have it read. */
void code_want(struct code_desk *d, uint32_t symbol);
/* Any thread: a copy of what was read; -EAGAIN: not yet. The caller frees out->bytes. */
int code_copy(struct code_desk *d, uint32_t symbol, struct code *out);
/* Loader: read what is wanted, if anything is. */
void code_serve(struct code_desk *d);

#endif

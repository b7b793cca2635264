/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instructions and lines of one function, for people: read when they are
 * asked for, never kept with the image.
 *
 * One question at a time; the newest replaces those before it. A helper reads
 * (code_read.h), the loader puts names to it.
 */
#ifndef SYMBOLS_SOURCE_CODE_H
#define SYMBOLS_SOURCE_CODE_H

#include <pthread.h>

#include "symbols/source/lines.h"
#include "symbols/source/listing.h"
#include "symbols/name/naming.h"
#include "symbols/name/symtab.h"

struct reading;

struct code_desk {
	pthread_mutex_t lock; /* asker and loader; held for a few words only */
	uint32_t wanted;
	struct listing *done; /* a reference; NULL: nothing yet */
	/* The loader's. */
	struct reading *reading; /* under way; or NULL */
	uint64_t began_ns;
	const struct image_cache *images;
	const struct symtab *symtab;
	struct naming *naming;
	const struct lines *lines;
	const char *kcore_path;
};

/* All borrowed. */
void code_init(struct code_desk *d, const struct image_cache *images, const struct symtab *symtab,
	       struct naming *naming, const struct lines *lines);
/* What is being read is left to its helper. */
void code_fini(struct code_desk *d);
/* Any thread: have it read. */
void code_want(struct code_desk *d, uint32_t symbol);
/* Any thread: what was read of it, the caller's reference; NULL: not yet. */
struct listing *code_take(struct code_desk *d, uint32_t symbol);
/* Loader: take up what was read, have read what is wanted. Never waits. */
void code_serve(struct code_desk *d);
/* Something is wanted, and may come. */
bool code_busy(struct code_desk *d);

#endif

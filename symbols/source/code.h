/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The instructions and lines of one function, read on request, never kept with
 * the image.
 *
 * One request at a time; a new one replaces the older ones. A helper reads
 * (code_read.h), the loader adds names.
 */
#ifndef SYMBOLS_SOURCE_CODE_H
#define SYMBOLS_SOURCE_CODE_H

#include <pthread.h>

#include "symbols/dwarf/dwarf.h"
#include "symbols/code/code.h"
#include "symbols/name/naming.h"
#include "symbols/name/symtab.h"

struct reading;

struct code_desk {
	pthread_mutex_t lock; /* process reader and loader; held for a few words only */
	uint32_t wanted;
	struct listing_instance instance; /* of it */
	bool by_line;			  /* with lines_wanted */
	struct listing_lines lines_wanted;
	struct listing *done; /* a reference; NULL: none yet */
	/* Used by the loader. */
	struct reading *reading; /* running; or NULL */
	uint64_t began_ns;
	const struct image_cache *images;
	const struct symtab *symtab;
	struct naming *naming;
	const struct lines *lines;
	const char *kcore_path;
	bool kcore_below; /* it is below the root of the recorded machine */
};

/* All borrowed. */
void code_init(struct code_desk *d, const struct image_cache *images, const struct symtab *symtab,
	       struct naming *naming, const struct lines *lines);
/* Free. A running job is left to its helper. */
void code_fini(struct code_desk *d);
/* Any thread: request the code of @symbol, in @instance if many processes have it. */
void code_want(struct code_desk *d, uint32_t symbol, const struct listing_instance *instance);
/* The same for a function of a language. */
void code_want_lines(struct code_desk *d, uint32_t symbol, const struct listing_lines *lines);
/* Any thread: return the code, the caller's reference; NULL: not yet. */
struct listing *code_take(struct code_desk *d, uint32_t symbol);
/* Loader: take the result, start a wanted job. Never waits. */
void code_serve(struct code_desk *d);
/* Return true if code is wanted and not read yet. */
bool code_busy(struct code_desk *d);

#endif

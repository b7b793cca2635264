/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Demangled names from the cage: many in one call, and a memo of them.
 *
 * Names that are wanted soon are collected with demangler_want(), so that one call to the worker
 * is enough for a thousand of them. A name that ends the worker is shown raw, the others of its
 * call are not. After many lost workers in a short time all names are raw.
 *
 * One thread for each struct; a call may wait for the worker.
 */
#ifndef SYMBOLS_NAME_DEMANGLER_H
#define SYMBOLS_NAME_DEMANGLER_H

#include "symbols/base/hashset.h"
#include "symbols/sandbox/sandbox.h"

struct demangler_name {
	uint32_t raw, raw_size; /* in the texts */
	uint32_t clean, clean_size;
};

/* All zero is an empty memo. */
struct demangler {
	struct hashset set; /* of names by keyhash_name() of the raw one */
	struct demangler_name *names;
	uint32_t nr, max;
	uint32_t nr_done; /* names from here on have no answer yet */
	char *texts;
	uint32_t texts_size, texts_max;
	uint32_t nr_lost; /* workers lost lately */
	uint64_t lost_ns; /* time of that count */
};

void demangler_fini(struct demangler *d);
/* Add @name to the next call, if it may be mangled and is not in the memo. */
void demangler_want(struct demangler *d, const char *name, size_t size);
/* Demangle all wanted names. */
void demangler_run(struct demangler *d);
/*
 * Return the size of the demangled name and set *out to it (valid until the next call), or
 * return 0: show it raw.
 */
size_t demangler_get(struct demangler *d, const char *name, size_t size, const char **out);

/* The worker: a sequence of names in, the same number of names out. */
extern const struct cage_reader demangler_reader;

#endif

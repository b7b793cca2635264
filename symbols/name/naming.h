/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Name one place: from its object's symbols, unwind tables, or address.
 *
 * One thread: the loader; only kallsyms_memory is read by any.
 */
#ifndef SYMBOLS_NAME_NAMING_H
#define SYMBOLS_NAME_NAMING_H

#include "symbols/object/object.h"
#include "symbols/object/image.h"
#include "symbols/jit/hotspots.h"
#include "symbols/jit/jitdumps.h"
#include "symbols/kernel/kallsyms.h"
#include "symbols/kernel/recorded_kernel.h"
#include "symbols/kernel/recorded_modules.h"
#include "symbols/kernel/ksyms.h"
#include "symbols/lang/codes.h"
#include "symbols/jit/perfmaps.h"
#include "symbols/name/demangler.h"
#include "symbols/name/places.h"
#include "symbols/name/symtab.h"

struct helpers;
struct kallsyms_job;

struct naming {
	struct objects *objects;
	struct symtab *symtab;
	const char *kallsyms_path;
	struct kallsyms *kallsyms;     /* NULL: not read yet, or unreadable */
	struct recorded_kernel kernel; /* the kernel of these addresses */
	struct recorded_modules modules;
	struct codes *codes;	       /* borrowed; NULL: none */
	struct ksyms *ksyms;	       /* NULL: no source */
	struct kallsyms_job *ahead;    /* reading it for the first time; NULL: not reading */
	uint64_t kallsyms_ns;	       /* time of the last read; 0: never */
	uint64_t kallsyms_cost_ns;     /* duration of the last read */
	uint64_t kallsyms_interval_ns; /* not read again before; the interval doubles while a read
					  finds nothing new */
	atomic_ulong kallsyms_memory;
	struct hotspots hotspots;
	struct jitreads jitreads;
	struct jitdumps jitdumps;
	struct perfmaps perfmaps;
	struct demangler demangler;
	struct ksyms_symbol ksym;
	char stub[IMAGE_STUB_MAX]; /* a name under construction */
	char raw[TEXT_MAX + 64];   /* under construction; longer, so that the arena marks a cut */
	char marked[CODES_TEXT_MAX + 16]; /* a name in the making */
};

/* @stop: set while the tables may be freed. */
void naming_init(struct naming *n, struct objects *objects, struct symtab *symtab,
		 const atomic_bool *stop);
void naming_fini(struct naming *n);

/*
 * Start to read the kernel's symbols by a helper, ahead of the first request. The
 * helpers must outlive it.
 */
void naming_expect_kernel(struct naming *n, struct helpers *helpers);

/* A recording: the addresses of its kernel's code, and one known symbol. */
void naming_kernel_was(struct naming *n, const struct recorded_kernel *told);

/* A place to name. */
struct naming_question {
	uint32_t object;
	uint64_t offset;
	uint64_t since_ns; /* time of the first try */
	bool now;	   /* do not wait for a better name */
};

/*
 * @q is asked next: want the name of a new symbol of a file demangled. naming_ready() demangles
 * all of them in one call.
 */
void naming_prepare(struct naming *n, const struct naming_question *q);
void naming_ready(struct naming *n);
/*
 * Find the symbol of @q: 0; -EAGAIN while its object is not loaded (it is
 * requested) or a better name may follow; -ECANCELED when stopping: then touch
 * nothing borrowed; -ENOMEM when the table is full. *by_name: false when the name
 * is only an address.
 */
int naming_find(struct naming *n, const struct naming_question *q, uint32_t *symbol, bool *by_name);

#endif

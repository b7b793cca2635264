/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The name of one place: from its object's symbols, unwind tables, or address.
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
#include "symbols/kernel/ksyms.h"
#include "symbols/jit/perfmaps.h"
#include "symbols/name/places.h"
#include "symbols/name/symtab.h"

struct helpers;
struct kallsyms_job;

struct naming {
	struct objects *objects;
	struct symtab *symtab;
	const char *kallsyms_path;
	struct kallsyms *kallsyms;     /* NULL: not read yet, or not readable */
	struct recorded_kernel kernel; /* whose addresses these are */
	struct ksyms *ksyms;	       /* NULL: nobody tells */
	struct kallsyms_job *ahead;    /* reading it for the first time; NULL: nobody is at it */
	uint64_t kallsyms_ns;	       /* when it was read last; 0: never */
	uint64_t kallsyms_cost_ns;     /* of reading it */
	uint64_t kallsyms_interval_ns; /* not read again before; doubles while it brings nothing */
	atomic_ulong kallsyms_memory;
	struct hotspots hotspots;
	struct jitdumps jitdumps;
	struct perfmaps perfmaps;
	struct ksyms_symbol ksym;
	char stub[IMAGE_STUB_MAX]; /* a name under construction */
	char raw[TEXT_MAX + 64];   /* under construction; longer: so the arena marks a cut */
};

/* @stop: set while the tables may be going. */
void naming_init(struct naming *n, struct objects *objects, struct symtab *symtab,
		 const atomic_bool *stop);
void naming_fini(struct naming *n);

/* Have the kernel's list read by a helper, for when it is asked for. The helpers must outlive it.
 */
void naming_expect_kernel(struct naming *n, struct helpers *helpers);

/* A recording: where its kernel's code was, and one mark in it. */
void naming_kernel_was(struct naming *n, const struct recorded_kernel *told);

/* One place to name. */
struct naming_question {
	uint32_t object;
	uint64_t offset;
	uint64_t since_ns; /* when it was first looked at */
	bool now;	   /* do not wait for a better answer */
};

/*
 * The symbol of @q: 0; -EAGAIN while its object is not loaded (it is asked
 * for) or a better answer may come; -ECANCELED when stopping: then touch
 * nothing borrowed; -ENOMEM when the table is full. *by_name: false when the
 * answer is but an address.
 */
int naming_find(struct naming *n, const struct naming_question *q, uint32_t *symbol, bool *by_name);

#endif

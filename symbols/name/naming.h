/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Name one place: from its object's symbols, unwind tables, or address.
 *
 * Each kind of object has its rule; naming_jit.c and naming_kernel.c have one each.
 * Runs on: the loader; kernel.memory is read by any.
 */
#ifndef SYMBOLS_NAME_NAMING_H
#define SYMBOLS_NAME_NAMING_H

#include "symbols/lang/codes.h"
#include "symbols/name/demangler.h"
#include "symbols/name/naming_jit.h"
#include "symbols/name/naming_kernel.h"

struct naming {
	struct objects *objects;
	struct symtab *symtab;
	struct codes *codes; /* borrowed; NULL: none */
	struct naming_kernel kernel;
	struct naming_jit jit;
	struct demangler demangler;
	char stub[IMAGE_STUB_MAX]; /* a name under construction */
	char raw[TEXT_MAX + 64];   /* under construction; longer, so that the arena marks a cut */
	char marked[CODES_TEXT_MAX + 16]; /* likewise, with its mark */
};

struct naming_answer {
	uint32_t symbol;
	bool by_name;	/* false: the name is only an address */
	uint64_t start; /* of the code at this place; of a script's function its line */
};

/* @stop: set while the tables may be freed. */
void naming_init(struct naming *n, struct objects *objects, struct symtab *symtab,
		 const atomic_bool *stop);
void naming_fini(struct naming *n);

/*
 * Prepare naming_find() of @q: note the name of a new symbol of a file for demangling.
 * naming_ready() demangles all noted names in one call.
 */
void naming_prepare(struct naming *n, const struct naming_question *q);
void naming_ready(struct naming *n);
/*
 * Find the symbol of @q: 0; -EAGAIN while its object is not loaded (it is
 * requested) or a better name may follow; -ECANCELED when stopping: then touch
 * nothing borrowed; -ENOMEM when the table is full.
 */
int naming_find(struct naming *n, const struct naming_question *q, struct naming_answer *out);

#endif

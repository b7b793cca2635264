/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Name places in anonymous memory: code of a JIT, heap, stack.
 *
 * Sources, in this order: the code cache of a JVM, the jitdump of the process, its perf map.
 * One thread: the loader.
 */
#ifndef SYMBOLS_NAME_NAMING_JIT_H
#define SYMBOLS_NAME_NAMING_JIT_H

#include "symbols/jit/hotspots.h"
#include "symbols/jit/jitdumps.h"
#include "symbols/jit/perfmaps.h"
#include "symbols/name/naming_found.h"

struct naming_jit {
	struct objects *objects;
	struct hotspots hotspots;
	struct jitreads reads;
	struct jitdumps jitdumps;
	struct perfmaps perfmaps;
};

/* @stop: set while the tables may be freed. */
void naming_jit_init(struct naming_jit *n, struct objects *objects, const atomic_bool *stop);
void naming_jit_fini(struct naming_jit *n);

/*
 * Find the symbol of @q, a place in @object, which is anonymous: by a source, else one symbol a
 * page. All layers of its code are shown as one object. 0; -EAGAIN while a source is read;
 * -ECANCELED when stopping.
 */
int naming_jit_find(struct naming_jit *n, struct object *object, const struct naming_question *q,
		    struct naming_found *f);

#endif

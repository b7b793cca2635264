/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The name of one place: of a file, of the kernel, of code in anonymous memory.
 *
 * The caller owes: one thread, the loader's; images that are loaded.
 *
 * The room does: finds the symbol of a place by its kind of object, or says that it is not known
 * yet.
 *
 * Not for: places and symbols that have an id (name.h).
 */
#ifndef SYMBOLS_NAME_NAMING_H
#define SYMBOLS_NAME_NAMING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/script/script.h"

struct helpers;
struct kallsyms;
struct kallsyms_job;
struct ksyms;
struct objects;
struct script_functions;
struct symtab;

/*
 * A place to name, and the symbol found for it, before that has an id.
 *
 * One thread: the loader.
 */

/* A place to name. */
struct naming_question {
	uint32_t object;
	uint64_t offset;
	uint64_t since_ns; /* time of the first try */
	bool now;	   /* do not wait for a better name */
};

/*
 * A symbol as found, before it has an id. Most places are in functions with an
 * id: the text of the name is made for the others only.
 */
struct naming_found {
	struct symtab_key key;
	struct symtab_text text; /* complete, or with a name from the fields below */
	const struct image *image;
	const struct image_symbol *symbol; /* one of the image's symbols; NULL: see below */
	struct safe_text head; /* a made-up name begins with this; .str NULL: not made up */
	const char *join;      /* and continues with this and the start; or NULL */
	uint64_t start;	       /* of a shared function: of its code at this place; 0: none */
	bool by_name;
	bool shared; /* one function in all processes that have it; see naming_share() */
	bool plain;  /* the name is as its author wrote it: not mangled */
};

/* Make @f a function of @object in all processes: its texts identify it. */
void naming_share(struct naming_found *f, uint32_t object, const char *name, size_t size);
/* Return the object of the functions that JITs report in @source, "[java]" or other. */
uint32_t naming_shared_object(struct objects *objects, const char *source);
/* The module as shown; the bytes are borrowed until the symbol is added. */
void naming_found_module(struct naming_found *f, const char *module, size_t size);

/*
 * Name places in anonymous memory: code of a JIT, heap, stack.
 *
 * Sources, in this order: the code cache of a JVM, the jitdump of the process, its perf map.
 * One thread: the loader.
 */

struct naming_jit {
	struct objects *objects;
	struct jvm_table hotspots;
	struct jitreads reads;
	struct jitdumps jitdumps;
	struct perfmaps perfmaps;
	char reported[TEXT_MAX + 64]; /* the last name; longer, so that the arena marks a cut */
};

void naming_jit_fini(struct naming_jit *n);

/*
 * Name places in the kernel: KSYMBOL records, else /proc/kallsyms; a recorded kernel by its list.
 *
 * One thread: the loader; only memory is read by any.
 */

struct naming_kernel {
	const char *root, *path;	 /* of the list; @root NULL: of this machine */
	const char *modules_path;	 /* of the loaded modules */
	struct kallsyms *kallsyms;	 /* NULL: not read yet, or unreadable */
	struct recorded_kernel recorded; /* the kernel of these addresses */
	struct recorded_modules modules;
	struct ksyms *ksyms;	    /* NULL: no source */
	struct kallsyms_job *ahead; /* reading it for the first time; NULL: not reading */
	uint64_t read_ns;	    /* time of the last read; 0: never */
	uint64_t cost_ns;	    /* duration of the last read */
	uint64_t interval_ns; /* not read again before; doubles while a read finds nothing new */
	uint64_t loaded;      /* hash of the modules that are loaded, as the list has them */
	uint64_t look_ns;     /* time of the last look at them */
	uint64_t rest_ns;     /* time of the last kallsyms_rest() */
	bool has_changed;     /* they are others now */
	bool core;	      /* modules are not in the list: read it whole for their addresses */
	bool has_news;	      /* names of modules may be others */
	atomic_ulong memory;  /* bytes of the list */
	struct ksyms_symbol ksym;
};

/*
 * Start to read the kernel's symbols by a helper, ahead of the first request. The
 * helpers must outlive it.
 */
void naming_kernel_expect(struct naming_kernel *n, struct helpers *helpers);
/* A recording: the addresses of its kernel's code, and one known symbol. */
void naming_kernel_was(struct naming_kernel *n, const struct recorded_kernel *recorded);
/*
 * Called in each pass: pages of the list are unmapped now and then. Return, once, whether modules
 * were loaded or removed, so that names in them may be wrong.
 */
bool naming_kernel_take_news(struct naming_kernel *n);

/*
 * Name one place: from its object's symbols, unwind tables, or address.
 *
 * Each kind of object has its rule.
 * Runs on: the loader; kernel.memory is read by any.
 */

struct naming {
	struct objects *objects;
	struct symtab *symtab;
	struct script_functions *codes; /* borrowed; NULL: none */
	struct naming_kernel kernel;
	struct naming_jit jit;
	struct demangler demangler;
	char stub[IMAGE_STUB_MAX]; /* a name under construction */
	char raw[TEXT_MAX + 64];   /* under construction; longer, so that the arena marks a cut */
	char marked[SCRIPT_FUNCTIONS_TEXT_MAX + 16]; /* likewise, with its mark */
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One sampled JVM: shared by hotspots.c, hotspots_chain.c, hotspots_memory.c, hotspots_turn.c and
 * hotspots_replay.c. One thread: the loader, or a replay.
 */
#ifndef SYMBOLS_JIT_HOTSPOTS_PRIVATE_H
#define SYMBOLS_JIT_HOTSPOTS_PRIVATE_H

#include "symbols/jit/codemap.h"
#include "symbols/jit/hotspot_job.h"
#include "symbols/jit/hotspots_record.h"
#include "symbols/jit/jitreads.h"

#define HOTSPOTS_CALLS_MAX   65536U
#define HOTSPOTS_INTERVAL_NS 100000000ULL /* at least between two scans */

/* A call at look-up pc @pc that the code with this compile id describes. */
struct hotspots_call {
	uint64_t pc;
	uint32_t compile_id;
};

struct hotspots_entry {
	uint32_t object;	     /* the memory, layer 0 */
	uint32_t methods_object;     /* OBJECT_ID_UNKNOWN: not made yet */
	struct hotspot_job *reading; /* NULL: barred, or not Java */
	bool runs;		     /* a helper has the reading */
	bool news, wanted;	     /* new names; some places have none */
	unsigned int tries;
	uint64_t due_ns;      /* of the next look-up */
	uint64_t scan_due_ns; /* of the whole code cache */
	uint64_t check_ns;    /* of the process's end */
	pid_t pid;
	uint32_t uid; /* of the process */
	struct jitreads_end end;
	uint64_t began_ns;
	uint64_t scanned_ns;	       /* code that a look-up finds new is younger than this */
	struct jitcode *code;	       /* compiled code */
	struct jitcode *methods;       /* by address of the method, one byte each */
	struct codemap_method *ranges; /* sorted by method */
	uint32_t nr_ranges;
	uint64_t *queue; /* methods to be read */
	uint32_t nr_queue;
	uint64_t *pcs; /* code to be read */
	uint32_t nr_pcs, max_pcs;
	struct hotspot_job_chain *chains; /* to be read */
	uint32_t nr_chains, max_chains;
	struct hotspot_job_chain *found; /* to be handed out, from the end */
	uint32_t nr_found, max_found;
	struct hotspots_call *calls; /* sorted by pc */
	uint32_t nr_calls, max_calls;
	bool new_calls; /* since the map was made */
	const struct codemap *map;
	size_t memory;	    /* as it is in the sum of all */
	size_t code_memory; /* of the reading */
	size_t found_memory;
	int refused; /* -errno of code that was left out for its memory; 0: none */
	struct object *layers[JITCODE_LAYERS]; /* also with that map; NULL: not used */
	/* Of a replay: */
	struct hotspot_job_chain *recorded; /* the first nr_sorted ones are sorted */
	uint32_t nr_recorded, max_recorded, nr_settled, nr_sorted;
	uint64_t recorded_size, methods_size;	 /* in bytes: frames; names that are not settled */
	uint32_t max_blobs, max_methods;	 /* in the reading */
	uint64_t nr_taken;			 /* records */
	int64_t spent_inserting, spent_settling; /* see hotspots_replay.c */
	bool left_out;				 /* there was more than is kept */
	bool pending; /* something was recorded since hotspots_settle() */
};

#define HOTSPOTS_METHODS_MAX 65536U

struct hotspots;

/* Find the JVM with the memory @object; NULL: none. */
struct hotspots_entry *hotspots_find_entry(const struct hotspots *h, const struct object *object);
struct hotspots_entry *hotspots_add_entry(struct hotspots *h, const struct object *object);
/* Set when @e, whose reading has ended, is read again. */
void hotspots_rest(struct hotspots_entry *e, uint64_t now_ns);
/* Return whether @e may be read now, beside the readings that run. */
bool hotspots_has_turn(const struct hotspots *h, const struct hotspots_entry *e);
/* Count the bytes of @e in the sum of all. */
void hotspots_count(struct hotspots *h, struct hotspots_entry *e);
/* Take @e, which leaves, out of that sum. */
void hotspots_discount(struct hotspots *h, struct hotspots_entry *e);
/* Return 0 if @e may take @more bytes; -ENOSPC: all JVMs, or the ones of its user, are full. */
int hotspots_admit(struct hotspots *h, struct hotspots_entry *e, size_t more);
/* Add a function to @code of @e; -E2BIG, -ENOSPC: there is no memory for it. */
int hotspots_add_code(struct hotspots *h, struct hotspots_entry *e, struct jitcode *code,
		      const struct jitcode_load *load);
/* Take the code and the methods of the reading that are new at @time_ns. */
void hotspots_take_code(struct hotspots *h, struct hotspots_entry *e, uint64_t time_ns);
/* Return whether @layer is the newest at @addr: only chains of the newest code can be read. */
bool hotspots_is_latest(const struct hotspots_entry *e, uint32_t layer, uint64_t addr);
/* Keep the chains that @r has read, to be returned, except of replaced code. */
void hotspots_keep_chains(struct hotspots_entry *e, struct hotspot_job *r);
/* Note that the newest code at look-up pc @pc describes the call there. */
void hotspots_take_call(struct hotspots_entry *e, uint64_t pc);
/* Copy the calls of code that is still there; returns their number. */
uint32_t hotspots_put_calls(const struct hotspots_entry *e, const struct hotspot *vm,
			    uint64_t *calls);
/* Put the recorded chain of @place at @addr, if there is one, among the found ones. */
void hotspots_find_recorded(struct hotspots_entry *e, uint32_t layer, uint64_t addr,
			    uint32_t place);

#endif

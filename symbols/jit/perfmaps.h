/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The perf maps of the processes with sampled JIT code.
 *
 * A map is searched in the process's root, by its innermost pid
 * (pid_namespaces(7)), and trusted only if it is a regular file with one name,
 * owned by the process's user or by root. It is read when the first address of a
 * process is looked up, and again when it changed, at most once a second and only
 * while addresses are missing. It is freed ten minutes after the end of its process: the
 * places of its code have their names by then.
 *
 * One thread: the loader. Files are read by jobs. Without helpers they are read here
 * and may hang; afterwards check @stop before touching anything borrowed.
 */
#ifndef SYMBOLS_JIT_PERFMAPS_H
#define SYMBOLS_JIT_PERFMAPS_H

#include "symbols/image/image.h"
#include "symbols/jit/jitreads.h"
#include "symbols/jit/perfmap.h"

#define PERFMAPS_MAX	    4096U /* processes */
#define PERFMAPS_MEMORY_MAX (256UL << 20)

struct perfmaps_entry;

struct perfmaps {
	struct objects *objects;
	struct jitreads *reads;
	const atomic_bool *stop;
	bool no_proc;	  /* a recording: /tmp/perf-PID.map here, owned by this user or root */
	const char *root; /* below this folder, as in struct images */
	struct perfmaps_entry **entries;
	uint32_t nr_entries;
	uint32_t *by_object; /* index in entries + 1; 0: none */
	uint32_t nr_by_object;
	uint32_t next;	     /* next entry to check */
	atomic_ulong memory; /* written here, relaxed */
};

void perfmaps_init(struct perfmaps *p, struct objects *objects, struct jitreads *reads,
		   const atomic_bool *stop);
void perfmaps_fini(struct perfmaps *p);

/*
 * Find the entry with @addr in the memory of @object (OBJECT_ANON), borrowed until
 * the next call. 0; -EAGAIN until the process's map was searched once; -ENOENT: then
 * the object has the reason.
 */
int perfmaps_find(struct perfmaps *p, struct object *object, uint64_t addr,
		  struct perfmap_symbol *out);
/* Take or start reads. Return the object with a new or changed map, or OBJECT_ID_UNKNOWN. */
uint32_t perfmaps_refresh(struct perfmaps *p, uint64_t now_ns);

#endif

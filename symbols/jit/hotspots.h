/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Follow the sampled Java processes: names of compiled and interpreted
 * methods, and frame layouts for the unwinder (codemap.h).
 *
 * A process is a JVM if it maps libjvm.so; its code cache is read by a helper
 * at the first sample in its memory and again while there are samples. Code that
 * replaces other code gets another layer, as for jitdumps.
 *
 * A replay takes their code from the recording (hotspots_record.h).
 *
 * One thread: the loader; a replay before the loader starts.
 */
#ifndef SYMBOLS_JIT_HOTSPOTS_H
#define SYMBOLS_JIT_HOTSPOTS_H

#include "symbols/jit/hotspot_job.h"
#include "symbols/base/helper.h"
#include "symbols/jit/hotspots_record.h"
#include "symbols/process/maps.h"

#define HOTSPOTS_MAX 512U /* processes */
/*
 * Bytes of all JVMs, of the ones of one user, and of the names of one, old code included. The code
 * that one has now is limited by HOTSPOT_MEMORY_MAX, so that one takes 96 MiB at most.
 */
#define HOTSPOTS_MEMORY_MAX   (512UL << 20)
#define HOTSPOTS_USER_MEMORY  (HOTSPOTS_MEMORY_MAX / 4 * 3)
#define HOTSPOTS_NAMES_MEMORY (32UL << 20)
/* The layer of an object with addresses of interpreted methods as offsets. */
#define HOTSPOTS_METHODS (JITCODE_LAYERS + 1)

struct code_log;
struct code_text;
struct hotspots_entry;
struct hotspots_kept;

struct hotspots {
	struct objects *objects;
	struct maps *maps;	 /* NULL: no process is read */
	struct helpers *helpers; /* NULL: no process is read */
	struct code_log *log;	 /* keeps all code for recordings; NULL: not kept */
	bool off;
	bool recorded; /* a replay: no process is read */
	struct hotspots_entry **entries;
	uint32_t nr_entries;
	atomic_ulong memory;		  /* written here, relaxed */
	struct hotspot_job_chain *result; /* the chain that was handed out last */
};

struct hotspots_symbol {
	uint64_t start;
	const char *name; /* foreign bytes, NUL-terminated; borrowed until the next call */
	uint32_t name_size;
};

void hotspots_init(struct hotspots *h, struct objects *objects);
/* Jobs in progress are left. */
void hotspots_fini(struct hotspots *h);

/*
 * Find the method at @addr of @object (OBJECT_ANON, memory or methods of a
 * process). 0, -EAGAIN: it is being read; -ENOENT: not Java, or not known.
 */
int hotspots_find(struct hotspots *h, struct object *object, uint64_t addr,
		  struct hotspots_symbol *out);
struct hotspots_chain {
	uint32_t place;
	uint64_t addr;				/* of the place */
	uint32_t object;			/* the memory, layer 0 */
	const struct hotspot_job_frame *frames; /* the last one: the compiled method */
	uint32_t nr;
};

/* Have the source of @place looked up, which is at @addr of @object. */
void hotspots_want_chain(struct hotspots *h, const struct object *object, uint64_t addr,
			 uint32_t place);
/* The next one that was found; false: none. Borrowed until the next call. */
bool hotspots_take_chain(struct hotspots *h, struct hotspots_chain *out);

/* Replay: take @kept, the code or chain of @text, for the JVM with @memory. */
void hotspots_replay(struct hotspots *h, const struct object *memory, const struct code_text *text,
		     const struct hotspots_kept *kept);
/* Replay: before the next sample. True: the maps changed. */
bool hotspots_settle(struct hotspots *h, uint64_t time_ns);

/* Take finished readings, start due ones. The object with new names, or OBJECT_ID_UNKNOWN. */
uint32_t hotspots_refresh(struct hotspots *h, uint64_t now_ns);

#endif

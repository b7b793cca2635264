/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jitdumps of the processes with sampled JIT code.
 *
 * A JIT maps its jitdump executable only to make profilers notice it: an object
 * named jit-PID.dump, jit-TID-PID.dump or jit-TID-PID-XXXXXX that the process mapped is its
 * jitdump, if PID is the process's pid in its namespace. It is trusted by the rules of perf maps,
 * kept open, and read as it grows, all the time: code that replaces other code must be known before
 * it is sampled, so that counts of both are separate (maps_on_code()). Its code is freed ten
 * minutes after the end of its process: the places have their names by then.
 *
 * One thread: the loader. Files are read by jobs. Without helpers they are read here
 * and may hang; afterwards check @stop before touching anything borrowed.
 */
#ifndef SYMBOLS_JIT_JITDUMPS_H
#define SYMBOLS_JIT_JITDUMPS_H

#include "symbols/jit/jitdump_job.h"
#include "symbols/process/maps.h"

#define JITDUMPS_MAX	    4096U /* processes */
#define JITDUMPS_OPEN_MAX   256U  /* processes with a jitdump */
#define JITDUMPS_MEMORY_MAX (512UL << 20)

struct jitdumps_entry;

struct jitdumps {
	struct objects *objects;
	struct maps *maps; /* notified of reused memory; NULL: none */
	struct jitreads *reads;
	const atomic_bool *stop;
	bool no_proc;	  /* a recording: read immediately, and only files of this user or root */
	const char *root; /* below this folder, as in struct images */
	bool other_clock; /* sample times are not of CLOCK_MONOTONIC */
	struct jitdump_name *files;  /* objects that may be jitdumps, each with a reference */
	uint32_t nr_files, nr_found; /* listed; ever listed */
	struct jitdumps_entry **entries;
	uint32_t nr_entries, nr_open;
	uint32_t *by_object; /* index in entries + 1; 0: none */
	uint32_t nr_by_object;
	uint32_t next;	     /* next entry to check */
	atomic_ulong memory; /* written here, relaxed */
};

struct jitdumps_symbol {
	uint64_t start, size;
	const char *name; /* foreign bytes, NUL-terminated; borrowed until the next call */
	uint32_t name_size;
};

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   struct jitreads *reads, const atomic_bool *stop);
void jitdumps_fini(struct jitdumps *j);

/* Return the object of the memory that @object is a layer of: the same for all layers. */
struct object *jitdumps_base(struct jitdumps *j, struct object *object);
/*
 * Find the code at @addr in @object (OBJECT_ANON). 0; -EAGAIN while its jitdump is
 * being read; -ENOENT: no jitdump has it.
 */
int jitdumps_find(struct jitdumps *j, struct object *object, uint64_t addr,
		  struct jitdumps_symbol *out);
/* Find the source of @addr in the jitdump. */
bool jitdumps_line(struct jitdumps *j, struct object *object, uint64_t addr, const char **file,
		   uint32_t *line);
/*
 * Read the instructions of the function @variant at @start, at most @max bytes,
 * into *bytes (malloc'ed): return their size, or -errno. *size: all; *machine:
 * e_machine.
 */
int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine);
/* Find the source of @addr in the function @variant at @start. */
bool jitdumps_code_line(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
			uint64_t addr, const char **file, uint32_t *line);
/* Continue reading the jitdumps. Return the object that got new names, or OBJECT_ID_UNKNOWN. */
uint32_t jitdumps_refresh(struct jitdumps *j, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jitdumps of the processes whose JIT code was sampled.
 *
 * A JIT maps its dump executable for no other reason than that profilers are
 * told of it: an object called jit-PID.dump that the process mapped is its
 * dump, if PID is what the process calls itself. It is trusted by the rules of
 * perf maps, kept open, and read on as it grows, all the while: code that takes
 * the place of other code must be known before it is sampled, so that counts
 * of both stay apart (maps_on_code()).
 *
 * One thread: the loader. Any file here may hang; afterwards nothing borrowed
 * is touched before @stop was looked at.
 */
#ifndef SYMBOLS_JIT_JITDUMPS_H
#define SYMBOLS_JIT_JITDUMPS_H

#include "symbols/jit/jitdump.h"
#include "symbols/process/maps.h"

#define JITDUMPS_MAX	    4096U /* processes */
#define JITDUMPS_OPEN_MAX   256U  /* of them with a dump */
#define JITDUMPS_MEMORY_MAX (512UL << 20)

struct jitdumps_entry;
struct jitdumps_file;

struct jitdumps {
	struct objects *objects;
	struct maps *maps; /* who is told of memory used anew; NULL: nobody */
	const atomic_bool *stop;
	bool no_proc;	  /* a recording: read at once, and files of ours or root's only */
	const char *root; /* below this folder, as in struct images */
	bool other_clock; /* the samples' times are not of CLOCK_MONOTONIC */
	uint32_t seen;	  /* objects looked at */
	struct jitdumps_file *files; /* objects that may be dumps */
	uint32_t nr_files;
	struct jitdumps_entry **entries;
	uint32_t nr_entries, nr_open;
	uint32_t *by_object; /* index in entries + 1; 0: none */
	uint32_t nr_by_object;
	uint32_t next;	     /* which entry is looked at next */
	atomic_ulong memory; /* written here, relaxed */
};

struct jitdumps_symbol {
	uint64_t start, size;
	const char *name; /* foreign bytes, NUL-terminated; borrowed until the next call */
	uint32_t name_size;
};

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   const atomic_bool *stop);
void jitdumps_fini(struct jitdumps *j);

/* The object of the memory of which @object is a layer: the same for all layers. */
struct object *jitdumps_base(struct jitdumps *j, struct object *object);
/* What is at @addr in @object (OBJECT_ANON); false when no dump tells. */
bool jitdumps_find(struct jitdumps *j, struct object *object, uint64_t addr,
		   struct jitdumps_symbol *out);
/* Has the process of @object a dump that can be read? */
bool jitdumps_has(const struct jitdumps *j, const struct object *object);
/* The source of @addr, as the dump tells it. */
bool jitdumps_line(struct jitdumps *j, struct object *object, uint64_t addr, const char **file,
		   uint32_t *line);
/*
 * The instructions of the function called @name at @start, at most @max bytes of
 * them into *bytes (malloc'ed): how many, or -errno. *size: all; *machine: e_machine.
 */
int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine);
/* The source of @addr in the function called so at @start. */
bool jitdumps_code_line(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
			uint64_t addr, const char **file, uint32_t *line);
/* Read on in the dumps. The object that got new names, or OBJECT_ID_UNKNOWN. */
uint32_t jitdumps_refresh(struct jitdumps *j, uint64_t now_ns);

#endif

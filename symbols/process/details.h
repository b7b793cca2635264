/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Details of a process from /proc beyond its mappings: command line, parent,
 * cgroup, start; also of its ancestors, sampled or not.
 *
 * The builder requests the processes of a profile and gets the details read so
 * far; the process reader reads. Entries that are not requested are dropped after ten to
 * twenty minutes, or earlier when there are too many.
 *
 * Threads: all functions take one mutex, never held while /proc is read.
 */
#ifndef SYMBOLS_PROCESS_DETAILS_H
#define SYMBOLS_PROCESS_DETAILS_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"

#define DETAILS_COMMAND_MAX 512 /* bytes kept of a command line */

struct maps;
struct details;

struct process_details {
	pid_t parent;					   /* 0: none or unknown */
	uid_t uid;					   /* (uid_t)-1: unknown */
	uint64_t start_ns;				   /* CLOCK_BOOTTIME; 0: unknown */
	struct safe_text comm, command, cgroup, container; /* "": unknown or none */
	struct safe_text program; /* the name of its file, else of argv[0]; the same */
	uint32_t nr;		  /* processes; 0: one */
};

/*
 * Make an empty table; NULL when out of memory. @maps is borrowed: it knows the
 * incarnation of each pid.
 */
struct details *details_new(struct maps *maps);
/* Before the start: keep details for @span_ns without a request, or ten minutes if that is longer.
 */
void details_keep(struct details *d, uint64_t span_ns);
void details_free(struct details *d);

/*
 * Builder: copy the details of an incarnation (@process 0: of the present process
 * with this pid, an ancestor), with texts in @arena. False: not read yet. Requests
 * missing and old details.
 */
bool details_get(struct details *d, uint32_t process, pid_t pid, uint64_t now_ns,
		 struct text_arena *arena, struct process_details *out);
/* Builder: the same without a request: the details that are known. False: none. */
bool details_known(struct details *d, uint32_t process, struct text_arena *arena,
		   struct process_details *out);
/* Builder: test for requests; then wake the process reader. */
bool details_wanted(struct details *d);

/*
 * Return the name of a process: @comm, or that of its program where @comm says only that it is the
 * main thread. Runtimes name their main thread so: "MainThread", "node-MainThread" (Node.js 24,
 * 26).
 */
struct safe_text details_name(struct safe_text comm, struct safe_text program);

/* Asker: read at most @max requested processes; returns their number. */
unsigned int details_serve(struct details *d, unsigned int max);

#endif

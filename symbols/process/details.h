/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc tells of a process beyond its mappings: command line, parent,
 * cgroup, when it began; the same of its ancestors, sampled or not.
 *
 * The builder asks for the processes of a profile, and gets what is known by
 * then; the asker reads. What was not asked for lately is forgotten when
 * there are too many.
 *
 * Threads: everything takes one mutex, never held while /proc is read.
 */
#ifndef SYMBOLS_PROCESS_DETAILS_H
#define SYMBOLS_PROCESS_DETAILS_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"

#define DETAILS_COMMAND_MAX 512 /* bytes of a command line that are kept */

struct maps;
struct details;

struct process_details {
	pid_t parent;					   /* 0: none, or not known */
	uid_t uid;					   /* (uid_t)-1: not known */
	uint64_t start_ns;				   /* CLOCK_BOOTTIME; 0: not known */
	struct safe_text comm, command, cgroup, container; /* "": not known, or none */
};

/* NULL when memory is out. @maps is borrowed: it says which incarnation a pid is now. */
struct details *details_new(struct maps *maps);
void details_free(struct details *d);

/*
 * Builder: what is known of an incarnation (@process 0: of whoever has this
 * pid, an ancestor); texts are copied into @arena. False: nothing yet. Asks
 * for it if that, or if it is old.
 */
bool details_get(struct details *d, uint32_t process, pid_t pid, uint64_t now_ns,
		 struct text_arena *arena, struct process_details *out);
/* Builder: is there something to be read? Then wake the asker. */
bool details_wanted(struct details *d);

/* Asker: read what was asked for, at most @max; returns how many were read. */
unsigned int details_serve(struct details *d, unsigned int max);

#endif

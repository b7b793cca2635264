/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task, and the table of tasks as its readers see it (tasks.h is for the writer).
 */
#ifndef SYMBOLS_PROCESS_TASK_H
#define SYMBOLS_PROCESS_TASK_H

#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/text.h"

/*
 * A task as shown: one thread under one name (comm). Ids are dense, given at the
 * first sample of a task, in a table that may be replaced (tasks.h). Task 0 is the
 * unknown task (pid -1).
 */
struct task {
	pid_t pid, tid;
	uint32_t number;    /* of this name, in all tables: the later the higher */
	uint32_t process;   /* dense id of the process incarnation (by exec and pid reuse) */
	uid_t uid;	    /* real uid, (uid_t)-1: unknown */
	pid_t parent;	    /* pid of the parent process; 0: unknown */
	uint64_t start_ns;  /* begin of this name; 0: before the start of proftop */
	uint8_t jvm_thread; /* if the process is a JVM: lang_jvm_thread() */
	struct safe_text comm;
	struct safe_text process_comm; /* the main thread's, at the first sample; "": unknown */
};

#define TASK_UNKNOWN 0

struct tasks;

/* Return the number of ids given out, wasted ones and TASK_UNKNOWN included. */
uint32_t tasks_nr(const struct tasks *t);

#endif

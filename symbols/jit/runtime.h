/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recognise the language runtime of a process or of a file, and name the fix of a problem with it:
 * one table of problems and runtimes for all messages.
 *
 * Pure except for reading /proc/PID. Any thread.
 */
#ifndef SYMBOLS_JIT_RUNTIME_H
#define SYMBOLS_JIT_RUNTIME_H

#include "symbols/base/base.h"

enum runtime_problem {
	RUNTIME_NO_MAP,	 /* code generated at run time has no names */
	RUNTIME_NO_CFI,	 /* a file of the runtime has no unwind tables */
	RUNTIME_SCRIPTS, /* functions of scripts are not read: the reason, for runtimes without a
			    reader */
	/* Functions of scripts are guesses: */
	RUNTIME_CUT,	    /* the native stack is not whole, or has guesses */
	RUNTIME_UNALIGNED,  /* they do not match the native frames one to one */
	RUNTIME_UNTRIED,    /* of a version that was never compared with the truth */
	RUNTIME_LATE,	    /* the thread may have run on before it was read */
	RUNTIME_LATE_FIRST, /* the same, though the readers have a real-time priority */
	RUNTIME_NR_PROBLEMS,
};

/*
 * Return static words: the fix of @problem in a process with the program @exe, a path, and the
 * text @maps of /proc/PID/maps. Never NULL, but of RUNTIME_SCRIPTS.
 */
const char *runtime_fix(enum runtime_problem problem, const char *exe, const char *maps,
			size_t maps_size);
/* Return the words for the process with the /proc directory @dir_fd. */
const char *runtime_fix_of(enum runtime_problem problem, int dir_fd);
/* Return the words for code of the file @path, or of the language @path (lang_name()). */
const char *runtime_fix_in(enum runtime_problem problem, const char *path);

#endif

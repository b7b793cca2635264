/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Find running processes with code made at run time and without names for it: for
 * proftop --check.
 *
 * Reads /proc of all processes. Any one thread that may wait.
 */
#ifndef SYMBOLS_JIT_JITCHECK_H
#define SYMBOLS_JIT_JITCHECK_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct jitcheck {
	pid_t pid;
	char program[32]; /* name of the process, clean */
	const char *fix;  /* static words: the option of its runtime */
};

/* Return the number of processes, the first @max of them in @out. @root: "" except in tests. */
uint32_t jitcheck_find(const char *root, struct jitcheck *out, uint32_t max);

#endif

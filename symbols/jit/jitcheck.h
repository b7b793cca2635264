/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which running processes have code made at run time, and tell nobody its
 * names: for proftop --check.
 *
 * Reads /proc of all processes. Any one thread that may wait.
 */
#ifndef SYMBOLS_JIT_JITCHECK_H
#define SYMBOLS_JIT_JITCHECK_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct jitcheck {
	pid_t pid;
	char program[32]; /* as the process is called: foreign bytes */
	const char *fix;  /* static words: the switch of its runtime */
};

/* Returns how many there are, the first @max of them in @out. @root: "" but in tests. */
uint32_t jitcheck_find(const char *root, struct jitcheck *out, uint32_t max);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule of a trap: SUBJECT [> PERCENT] [for TIME], as in 'total:burst > 50 for 100ms'. Pure; any
 * thread.
 */
#ifndef SAMPLER_TRAP_RULE_H
#define SAMPLER_TRAP_RULE_H

#include "symbols/base/base.h"

#define TRAP_RULES_MAX 16
#define TRAP_TEXT_MAX  128

enum trap_subject {
	TRAP_CPU,   /* busy CPUs, percent of all; with a name: of one CPU, by its threads */
	TRAP_SELF,  /* percent of the samples in a function */
	TRAP_TOTAL, /* in it or its callees */
	TRAP_NEW,   /* the first sample of a function */
	TRAP_LOST,  /* percent of the samples of a tick */
	TRAP_WAIT,  /* waiting time of all threads, or the ones of the name; 100: of one thread */
};

struct trap_rule {
	enum trap_subject subject;
	char name[TRAP_TEXT_MAX]; /* of the function or thread; "": none */
	bool below;		  /* "<" */
	double percent;
	uint64_t for_ns;
	char text[TRAP_TEXT_MAX]; /* as typed */
};

/* 0, or -EINVAL with a sentence. */
int trap_rule_parse(struct trap_rule *out, const char *text, struct err *e);

#endif

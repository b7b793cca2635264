/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traps: rules that are tested with each slice of the history, as in
 * 'total:burst > 50 for 100ms'. A rule that matches marks the slice; it matches again after it did
 * not.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_TRAP_H
#define SAMPLER_TRAP_H

#include "sampler/count/slices.h"
#include "sampler/profile/assemble_input.h"
#include "sampler/trap_rule.h"

struct trap {
	struct trap_rule rule;
	struct trap_functions {
		uint64_t *bits; /* by symbol id: it has the name */
		uint32_t nr_words;
		bool any;
	} functions;
	uint64_t begin_ns; /* it has matched since then; 0: it does not */
	bool fired;	   /* and was reported */
	bool seen;	   /* TRAP_NEW: there was a sample */
};

struct traps {
	struct trap list[TRAP_RULES_MAX];
	uint32_t nr;
	uint32_t nr_symbols; /* compared with the names so far */
	uint64_t tested_ns;  /* end of the last slice that was tested */
	/* The matches reported since the last tick, which has one message. */
	char said[256];
	uint64_t said_seq; /* of that tick */
};

/* Add a rule; it is armed now. 0 or -ENOSPC. */
int traps_add(struct traps *t, const struct trap_rule *rule);
void traps_clear(struct traps *t);
/* Write the number of rules, and the first rules that fit. Return @buf. */
const char *traps_list(const struct traps *t, char *buf, size_t size);
/* Forget all matches: the next slices may be of any time. */
void traps_rearm(struct traps *t);

struct trap_input {
	const struct assemble_input *tables; /* without counts */
	const struct slice *slice;
	bool clock; /* weights are ns */
	double hz;  /* of the event, else */
	uint32_t nr_cpus;
	int wait_slot; /* event of waits; -1: none */
};

/* A match of a rule. */
struct trap_hit {
	const struct trap_rule *rule; /* borrowed */
	uint64_t begin_ns, end_ns;
	double percent;
	/* Other rules that began to match in the same slice. */
	struct trap_also {
		const struct trap_rule *rule;
		double percent;
	} also[TRAP_RULES_MAX];
	uint32_t nr_also;
};

/* Test all rules with the next slice. True: rules match, they are in @hit. */
bool traps_test(struct traps *t, const struct trap_input *in, struct trap_hit *hit);

#endif

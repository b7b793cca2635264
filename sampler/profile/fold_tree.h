/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile folded into a call tree, and into the callers and callees of one
 * function. Pure; any thread.
 *
 * In a tree the sums are exact: total = self + hidden + the children's totals.
 * Frames that the filter hides are left out of a stack; its weight goes to the nearest frame that
 * is shown.
 */
#ifndef SAMPLER_PROFILE_FOLD_TREE_H
#define SAMPLER_PROFILE_FOLD_TREE_H

#include "sampler/profile/fold.h"

#define FOLD_NONE UINT32_MAX

enum fold_order {
	FOLD_BY_WEIGHT, /* hottest first; equal ones by function id */
	FOLD_BY_ID,	/* by function id: the same from profile to profile */
};

/* The first level below the root. */
enum fold_first {
	FOLD_FUNCTIONS,
	FOLD_PROCESSES, /* not bottom-up: functions, then */
	FOLD_TASKS,
};

struct fold_tree_config {
	struct fold_filter filter;
	enum fold_order order;
	bool bottom_up; /* below a function its callers, not its callees */
	enum fold_first first;
	/*
	 * By index in tasks (FOLD_TASKS) or processes (FOLD_PROCESSES), the one that represents its
	 * group; NULL: no groups. FOLD_PROCESSES: of each, the id of the group.
	 */
	const uint32_t *leaders;
	const uint64_t *ids;
	bool fold_recursion; /* back to a function that is on the path: back to its node */
	/* Share, 0..1: lighter nodes are only summed in @hidden. Not 0: more than 2^20 nodes raise
	 * it. */
	double limit;
};

/* Node 0 is the root. Children lie side by side, in order. */
struct fold_tree_node {
	uint32_t function;	      /* index in functions; FOLD_NONE: root, process or task */
	uint32_t process;	      /* index in processes; FOLD_NONE: root or function */
	uint32_t task;		      /* index in tasks; FOLD_NONE: no task */
	uint32_t parent, child, next; /* nodes; FOLD_NONE: none */
	uint32_t nr_children;
	uint32_t nr_hidden;	    /* children under the limit */
	uint32_t depth;		    /* of the root: 0 */
	double self, total, hidden; /* weight; hidden: of children under the limit */
	double count;		    /* samples, of all */
};

struct fold_tree {
	struct fold_tree_node *nodes;
	uint32_t nr_nodes;
	double count, weight; /* of all samples that passed the event and process filter */
};

/* 0 or -ENOMEM. Free with the fini. */
int fold_tree(const struct profile *p, const struct fold_tree_config *config,
	      struct fold_tree *out);
void fold_tree_fini(struct fold_tree *out);

struct fold_neighbour {
	uint32_t function; /* index in functions; FOLD_NONE: none, the stack ends there */
	double count, weight;
};

/*
 * The callers and callees of a function, each sample counted once: its caller
 * is that of the outermost call, its callee that of the innermost. So the
 * callers sum to the total, and self and callees do.
 */
struct fold_callers {
	struct fold_neighbour *callers, *callees; /* hottest first; equal ones by id */
	uint32_t nr_callers, nr_callees;
	double self, total;	      /* weight */
	double count;		      /* samples with the function on the stack */
	double recursive;	      /* weight of the stacks that have it more than once */
	uint32_t depth_max;	      /* how often a stack has it at most */
	double all_count, all_weight; /* of all samples that passed the event and process filter */
};

/* Find callers and callees of functions[@function]. 0 or -ENOMEM. Free with the fini. */
int fold_callers(const struct profile *p, const struct fold_filter *f, uint32_t function,
		 struct fold_callers *out);
void fold_callers_fini(struct fold_callers *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Match rows or nodes of two profiles: by id; else by name, so that a rebuilt file and a restarted
 * process compare with their predecessors. Pure; any thread.
 */
#ifndef UI_VIEW_BASELINE_MATCH_H
#define UI_VIEW_BASELINE_MATCH_H

#include "ui/fold/fold.h"

#define BASELINE_NONE UINT32_MAX

/* A row of either profile. */
struct baseline_key {
	uint64_t id, name; /* @name: hash of all that survives a rebuild */
	uint32_t index;	   /* of the row */
	uint32_t other;	   /* index of its row in the other profile; BASELINE_NONE: none */
};

/*
 * Set @other of all keys; sorts both arrays. Rows of one name are matched in order. @ids: both are
 * of one session, so that equal ids are the same function.
 */
void baseline_match_rows(struct baseline_key *old, uint32_t nr_old, struct baseline_key *now,
			 uint32_t nr_now, bool ids);

/* Hash a name. */
uint64_t baseline_match_text(struct safe_text text);
/* Hash a function's name with that of its module. */
uint64_t baseline_match_name(const struct profile *p, uint32_t function);

/*
 * Match the nodes of two trees: nodes match if their parents match. Set by node the node of the
 * other tree in @to_now and @to_old; BASELINE_NONE: none. @ids: as above. Without memory nodes are
 * matched by id alone.
 */
void baseline_match_nodes(const struct profile *old_profile, const struct folds_tree *old,
			  const struct profile *now_profile, const struct folds_tree *now, bool ids,
			  uint32_t *to_now, uint32_t *to_old);

#endif

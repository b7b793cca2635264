/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The annotated function, and the view to go back to. Runs on: the main thread.
 */
#ifndef UI_STATE_ANNOTATED_H
#define UI_STATE_ANNOTATED_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/state/view_id.h"

/* The mode of the annotate view. */
enum annotate_mode { ANNOTATE_BOTH, ANNOTATE_SOURCE, ANNOTATE_ASSEMBLY, ANNOTATE_NR_MODES };

/* A caller to go back to. */
struct annotate_level {
	uint32_t function;
	uint64_t selected;
	char name[256]; /* clean text */
};
#define ANNOTATE_LEVELS 16

struct arrows;
struct annotated {
	uint32_t function;			     /* its id; UINT32_MAX: none */
	char name[256];				     /* clean text */
	enum view_id from;			     /* where to go back to, */
	struct annotate_level back[ANNOTATE_LEVELS]; /* but first to these */
	uint32_t nr_back;
	enum annotate_mode mode;
	struct arrows *arrows; /* of its jumps; owned; NULL before the first */
	bool hottest;	       /* put the cursor there once there is one */
};

#endif

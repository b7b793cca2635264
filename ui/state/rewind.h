/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The position in the past: the heat strip, and the range that the views show.
 */
#ifndef UI_STATE_REWIND_H
#define UI_STATE_REWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/profile/strip.h"

/* The samples that the strip shows. */
enum rewind_subject {
	REWIND_ALL, /* all in the scope: of the process drilled into, matching the filter */
	REWIND_ROW, /* of the selected row */
	REWIND_OFF, /* no strip */
	REWIND_NR,
};

struct rewind {
	struct strip *strip;	   /* the newest; owned; NULL: none yet */
	struct strip_query *query; /* of the last request; owned; NULL: none */
	enum rewind_subject subject;
	uint64_t span_ns;  /* of the strip; 0: all the past */
	uint32_t trap_seq; /* the last match of a trap that was seen */
	bool said_merged;  /* the merge of old slices was reported */
	bool said_kept;	   /* the times of --keep were */
	uint32_t seq;	   /* of the last request */
	bool peak_wanted;  /* by a key, when the strip of the last request arrives */
	bool on;	   /* the views show, or wait for, this range: */
	uint64_t begin_ns, end_ns;
	/* The strip as it was drawn, for the mouse. */
	uint16_t row, col, cols;
	bool dragging; /* a press in column @from is held */
	uint32_t from;
};

#endif

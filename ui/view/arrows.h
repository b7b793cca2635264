/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layout of the arrows of jumps beside the instructions of a listing: short
 * ones inside long ones, none crossing another. Pure; the main thread.
 */
#ifndef UI_VIEW_ARROWS_H
#define UI_VIEW_ARROWS_H

#include "sampler/profile/profile.h"

#define ARROW_LANES 4u /* 0 is next to the instructions */
#define ARROW_NONE  UINT8_MAX

enum arrow_cell {
	ARROW_ABOVE = 1, /* goes on to the instruction above */
	ARROW_BELOW = 2,
	ARROW_FROM = 4, /* the jump is here */
	ARROW_TO = 8,	/* the target of the jump */
};

struct arrows {
	const struct listing *of; /* borrowed, only compared */
	uint32_t nr;
	uint8_t (*cells)[ARROW_LANES]; /* by instruction: enum arrow_cell */
	uint8_t *lane;		       /* of the jump in an instruction; ARROW_NONE */
};

/* Lay out the arrows of @l, unless that is done. Return 0 or -ENOMEM (then there are none). */
int arrows_update(struct arrows *a, const struct listing *l);
void arrows_fini(struct arrows *a);

#endif

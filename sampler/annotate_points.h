/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The points of an annotated function: samples by address or line. Runs on: the builder. */
#ifndef SAMPLER_ANNOTATE_POINTS_H
#define SAMPLER_ANNOTATE_POINTS_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/* Return the number of task @id in profiles. */
uint32_t points_task(const struct assemble_input *in, uint32_t id);
/* Return the innermost place of a stack; PLACE_NONE: it has none. */
uint32_t points_place(const struct assemble_input *in, uint32_t stack);
/* Append @point to a->points; @max: elements allocated. 0 or -ENOMEM. */
int points_add(struct profile_annotate *a, uint32_t *max, const struct profile_point *point);
/* Sort the points, and add up all of one event, address and task. */
void points_sum(struct profile_annotate *a);

#endif

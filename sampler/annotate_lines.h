/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The samples of a function of a language by source line. Runs on: the builder. */
#ifndef SAMPLER_ANNOTATE_LINES_H
#define SAMPLER_ANNOTATE_LINES_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"

/* Return whether it is a function of a language, with source lines instead of instructions. */
bool annotate_lines_has(const struct symbol *symbol);

/*
 * Fill a->points with the counts of the function a->function by line: its own, and in the total
 * also the ones of its calls; the innermost frame counts. Get the process with the heaviest count,
 * and the lines seen, into @lines. 0 or -ENOMEM.
 */
int annotate_lines(struct profile_annotate *a, const struct assemble_input *in,
		   struct listing_lines *lines);

#endif

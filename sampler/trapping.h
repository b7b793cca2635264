/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The traps of a session: tested with each slice as it ends, or with the slices of a recording.
 *
 * Runs on: the builder.
 */
#ifndef SAMPLER_TRAPPING_H
#define SAMPLER_TRAPPING_H

#include "sampler/profile/assemble_input.h"

struct sampler;

/* Test the new slices of the past but the newest: the names of its functions may follow. */
void trapping_test(struct sampler *s, const struct assemble_input *tables);
/* Test the slices of a recording that were not tested. */
void trapping_replay(struct sampler *s, const struct assemble_input *tables);
/* Test all slices of a recording again, with the next profile. */
void trapping_again(struct sampler *s);

#endif

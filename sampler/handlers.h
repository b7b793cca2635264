/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The handler of each control. Runs on: the builder.
 */
#ifndef SAMPLER_HANDLERS_H
#define SAMPLER_HANDLERS_H

#include <stdbool.h>

struct control;
struct sampler;

/* Apply a control to a live session; it is consumed. */
void handlers_apply(struct sampler *s, const struct control *c);
/* The same for a replay, where most controls are refused. */
void handlers_apply_replay(struct sampler *s, const struct control *c);
/*
 * Set all rates to the governor's part of the requested ones. Return whether one was changed. At
 * the start of a session also by the thread that starts the builder.
 */
bool handlers_apply_governor(struct sampler *s);
/* After each tick: lower the rate while proftop costs too much, raise it when that is over. */
void handlers_govern(struct sampler *s);
/* After each tick, --stack-size=auto: larger stack copies while too many stacks are truncated. */
void handlers_adapt_stacks(struct sampler *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks that join the target while it is sampled. Runs on: the builder.
 */
#ifndef SAMPLER_FOLLOW_H
#define SAMPLER_FOLLOW_H

#include <stdint.h>

struct sampler;

/* Once a tick: open events on new tasks of the target, note the ends of others. */
void follow_target(struct sampler *s, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hottest function of a CPU during a tick, from the places that its thread noted (struct
 * pipeline_hot).
 */
#ifndef SAMPLER_PIPELINE_HOTTEST_H
#define SAMPLER_PIPELINE_HOTTEST_H

#include "sampler/hot/hot.h"

/* Fill hot, hot_samples and kernel of @cpu. Runs on: the builder. */
void hottest_fill(struct profile_cpu *cpu, const struct pipeline_stats *stats,
		  const struct places *places);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile of the arrays of a test: functions, processes, tasks, stacks, frames. */
#ifndef TESTS_SAMPLER_PROFILE_OF_H
#define TESTS_SAMPLER_PROFILE_OF_H

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"

#define PROFILE_OF(its_counts, its_nr, its_nr_events)                                              \
	{                                                                                          \
		.functions = functions, .nr_functions = ARRAY_SIZE(functions),                     \
		.processes = processes, .nr_processes = ARRAY_SIZE(processes), .tasks = tasks,     \
		.nr_tasks = ARRAY_SIZE(tasks), .stacks = stacks, .nr_stacks = ARRAY_SIZE(stacks),  \
		.frames = frames, .nr_frames = ARRAY_SIZE(frames), .counts = (its_counts),         \
		.nr_counts = (its_nr), .nr_events = (its_nr_events)                                \
	}

#endif

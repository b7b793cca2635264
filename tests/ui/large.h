/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile of 200 000 distinct stacks, or of LARGE_STACKS. For one test program each.
 */
#ifndef TESTS_UI_LARGE_H
#define TESTS_UI_LARGE_H

#include "fake.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

#ifndef LARGE_STACKS
#define LARGE_STACKS 200000u
#endif
#define LARGE_FUNCTIONS 4000u
#ifndef LARGE_DEPTH
#define LARGE_DEPTH 24u
#endif

static inline uint32_t large_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Stacks that share their outer frames, as real ones do. */
static inline void large_fill(struct profile *p, uint32_t seed)
{
	for (uint32_t i = 0; i < LARGE_STACKS; i++) {
		p->stacks[i] = (struct profile_stack){ i * LARGE_DEPTH, LARGE_DEPTH };
		for (uint32_t d = 0; d < LARGE_DEPTH; d++) {
			uint32_t outer = LARGE_DEPTH - 1 - d;
			uint32_t shared = outer < 8 ? i >> (16 - 2 * outer) : large_next(&seed);

			p->frames[i * LARGE_DEPTH + d] =
				(shared * 31 + outer * 97) % LARGE_FUNCTIONS;
		}
		p->counts[i] = (struct profile_count){ i, i % 64, 0, 1 + i % 3, 1e6 };
	}
	p->nr_stacks = p->nr_counts = LARGE_STACKS;
	p->nr_frames = LARGE_STACKS * LARGE_DEPTH;
}

static inline struct profile *large_profile(uint32_t seed)
{
	struct profile *p = calloc(1, sizeof(*p));
	struct text_arena *arena = text_arena_new();
	char name[64];

	p->names = arena;
	p->sampling = true;
	p->running_ns = p->window_ns = 5000000000ull;
	p->interval_ns = 1000000000ull;
	strcpy(p->target, "system");
	fake_account(p);
	fake_cpus(p, 8);
	fake_event(p, 0, "cpu-clock", 4000, 3990);
	p->functions = calloc(LARGE_FUNCTIONS, sizeof(*p->functions));
	p->processes = calloc(16, sizeof(*p->processes));
	p->tasks = calloc(64, sizeof(*p->tasks));
	p->stacks = calloc(LARGE_STACKS, sizeof(*p->stacks));
	p->counts = calloc(LARGE_STACKS, sizeof(*p->counts));
	p->frames = calloc((size_t)LARGE_STACKS * LARGE_DEPTH, sizeof(*p->frames));
	p->modules = calloc(1, sizeof(*p->modules));
	p->modules[0] = (struct profile_module){
		.id = 5,
		.name = TEXT("big"),
		.path = TEXT("/big"),
		.state = PROFILE_MODULE_READY,
		.source = ".symtab",
		.reason = "",
		.fix = "",
		.nr_symbols = LARGE_FUNCTIONS,
	};
	p->nr_modules = 1;
	for (uint32_t i = 0; i < LARGE_FUNCTIONS; i++) {
		int n = snprintf(name, sizeof(name), "ns::Class%u::method_%u(int)", i % 97, i);

		p->functions[i] =
			(struct profile_function){ .id = i,
						   .name = text_arena_add(arena, name, (size_t)n),
						   .module = TEXT("big"),
						   .kind = i % 5 ? 'u' : 'k',
						   .kernel = !(i % 5) };
	}
	for (uint32_t i = 0; i < 16; i++)
		p->processes[i] = (struct profile_process){ .id = i,
							    .pid = (pid_t)(100 + i),
							    .comm = TEXT("server") };
	for (uint32_t i = 0; i < 64; i++)
		p->tasks[i] = (struct profile_task){ .id = 1000 + i,
						     .tid = (pid_t)(100 + i),
						     .process = i % 16,
						     .comm = TEXT("worker") };
	p->nr_functions = LARGE_FUNCTIONS;
	p->nr_processes = 16;
	p->nr_tasks = 64;
	large_fill(p, seed);
	return p;
}

/* All but the outer frames are one of two functions, by chance: no path is walked twice. */
static inline struct profile *large_bush(uint32_t seed)
{
	struct profile *p = large_profile(seed);

	for (uint32_t i = 0; i < LARGE_STACKS; i++) {
		uint32_t way = large_next(&seed);

		for (uint32_t d = 0; d < LARGE_DEPTH; d++)
			p->frames[i * LARGE_DEPTH + d] = d < 21 ? way >> d & 1 : d;
	}
	return p;
}

#endif

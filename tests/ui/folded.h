/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles from folded lines: "process;root;…;leaf samples", a name's kind, unless it is u, behind
 * a '|'. For one test program each.
 */
#ifndef TESTS_UI_FOLDED_H
#define TESTS_UI_FOLDED_H

#include "fake.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

#define FOLDED_MAX 512

static inline struct safe_text folded_text(struct profile *p, const char *s, size_t n)
{
	return text_arena_add(p->names, s, n);
}

/* Index of the function called that; ids are hashes of names, so that profiles agree. */
static inline uint32_t folded_function(struct profile *p, const char *s, size_t n)
{
	char kind = n > 2 && s[n - 2] == '|' ? s[n - 1] : 'u';
	uint32_t id = 5381;

	if (n > 2 && s[n - 2] == '|')
		n -= 2;
	for (size_t i = 0; i < n; i++)
		id = id * 33 + (unsigned char)s[i];
	for (uint32_t i = 0; i < p->nr_functions; i++)
		if (p->functions[i].id == id)
			return i;
	assert_true(p->nr_functions < FOLDED_MAX);
	p->functions[p->nr_functions] = (struct profile_function){
		.id = id,
		.name = folded_text(p, s, n),
		.module = kind == 'k' ? TEXT("[kernel]") : TEXT("api-server"),
		.kind = kind,
		.kernel = kind == 'k',
	};
	return p->nr_functions++;
}

static inline uint32_t folded_process(struct profile *p, const char *s, size_t n)
{
	for (uint32_t i = 0; i < p->nr_processes; i++)
		if (p->processes[i].comm.size == n && !memcmp(p->processes[i].comm.str, s, n))
			return i;
	p->processes[p->nr_processes] = (struct profile_process){
		.id = 500 + p->nr_processes,
		.pid = (pid_t)(4242 + p->nr_processes),
		.uid = 33,
		.comm = folded_text(p, s, n),
	};
	p->tasks[p->nr_tasks++] =
		(struct profile_task){ 900 + p->nr_processes, (pid_t)(4242 + p->nr_processes),
				       p->nr_processes, p->processes[p->nr_processes].comm, 0 };
	return p->nr_processes++;
}

static inline void folded_line(struct profile *p, const char *line, size_t size)
{
	size_t names = size;
	uint32_t stack[64], nr = 0, process = 0, first = p->nr_frames;
	double n;

	while (names && line[names - 1] != ' ')
		names--;
	n = atof(line + names);
	for (size_t at = 0, field = 0; at < names; field++) {
		size_t len = 0;

		while (at + len < names - 1 && line[at + len] != ';')
			len++;
		if (!field)
			process = folded_process(p, line + at, len);
		else
			stack[nr++] = folded_function(p, line + at, len);
		at += len + 1;
	}
	for (uint32_t i = nr; i-- > 0;)
		p->frames[p->nr_frames++] = stack[i];
	p->stacks[p->nr_stacks] = (struct profile_stack){ first, nr };
	p->counts[p->nr_counts++] = (struct profile_count){ p->nr_stacks++, process, 0, n, n };
}

static inline struct profile *folded_profile(const char *text)
{
	struct profile *p = calloc(1, sizeof(*p));

	p->names = text_arena_new();
	p->sampling = true;
	p->running_ns = 192 * 1000000000ull;
	p->window_ns = 5 * 1000000000ull;
	p->interval_ns = 1000000000ull;
	strcpy(p->target, "system");
	fake_account(p);
	fake_cpus(p, 2);
	fake_event(p, 0, "cpu-clock", 997, 996.4);
	p->functions = calloc(FOLDED_MAX, sizeof(*p->functions));
	p->processes = calloc(16, sizeof(*p->processes));
	p->tasks = calloc(16, sizeof(*p->tasks));
	p->stacks = calloc(FOLDED_MAX, sizeof(*p->stacks));
	p->frames = calloc(FOLDED_MAX * 64, sizeof(*p->frames));
	p->counts = calloc(FOLDED_MAX, sizeof(*p->counts));
	while (*text) {
		size_t size = strcspn(text, "\n");

		if (size)
			folded_line(p, text, size);
		text += size + (text[size] == '\n');
	}
	return p;
}

#endif

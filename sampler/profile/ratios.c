// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ratios of events that are sampled together.
 *
 * Pure; any thread. A sample weighs its period, so the weights of a function estimate the counts
 * of its instructions, of events with separate rates and of members of a group that is read.
 */
#include "sampler/profile/ratios.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sampler/event/event.h"

/* Fewer samples of the divisor say little: 10 are exact to a third. */
#define SAMPLES_MIN 10

#define RATE(key, title, help, part, whole)                                                        \
	{                                                                                          \
		key, title, help, part, NULL, whole, NULL, 100, 1                                  \
	}
#define PER_1000(key, title, help, part)                                                           \
	{                                                                                          \
		key, title, help, part, NULL, "instructions", NULL, 1000, 1                        \
	}

/* The most useful first. */
static const struct ratio table[] = {
	{ "insn_per_cycle", "IPC", "instructions per cycle", "instructions", NULL, "cycles", NULL,
	  1, 2 },
	RATE("retiring", "RETIRE%", "share of slots with work that was needed", "topdown-retiring",
	     "slots"),
	RATE("bad_speculation", "BADSPEC%", "share of slots with work for nothing",
	     "topdown-bad-spec", "slots"),
	RATE("frontend_bound", "FRONT%", "share of slots without instructions", "topdown-fe-bound",
	     "slots"),
	RATE("backend_bound", "BACK%", "share of slots that waited for data or units",
	     "topdown-be-bound", "slots"),
	/* Arm: a slot has an operation, or it stalls. */
	{ "retiring", "RETIRE%", "share of slots with work that was needed", "op_retired", NULL,
	  "op_spec", "stall_slot", 100, 1 },
	{ "bad_speculation", "BADSPEC%", "share of slots with work for nothing", "op_spec",
	  "op_retired", "op_spec", "stall_slot", 100, 1 },
	{ "frontend_bound", "FRONT%", "share of slots without instructions", "stall_slot_frontend",
	  NULL, "op_spec", "stall_slot", 100, 1 },
	{ "backend_bound", "BACK%", "share of slots that waited for data or units",
	  "stall_slot_backend", NULL, "op_spec", "stall_slot", 100, 1 },
	RATE("cache_miss_rate", "MISS%", "misses of the last-level cache, of its accesses",
	     "cache-misses", "cache-references"),
	RATE("branch_miss_rate", "BRMISS%", "mispredicted branches", "branch-misses", "branches"),
	RATE("l1d_miss_rate", "L1DMISS%", "loads that miss the level 1 data cache",
	     "L1-dcache-load-misses", "L1-dcache-loads"),
	RATE("llc_miss_rate", "LLCMISS%", "loads that miss the last-level cache", "LLC-load-misses",
	     "LLC-loads"),
	RATE("dtlb_miss_rate", "DTLB%", "loads that miss the data TLB", "dTLB-load-misses",
	     "dTLB-loads"),
	RATE("itlb_miss_rate", "ITLB%", "misses of the instruction TLB", "iTLB-load-misses",
	     "iTLB-loads"),
	RATE("frontend_cycles_idle", "FEIDLE%", "cycles in which no instruction could be issued",
	     "stalled-cycles-frontend", "cycles"),
	RATE("backend_cycles_idle", "BEIDLE%", "cycles in which no instruction could retire",
	     "stalled-cycles-backend", "cycles"),
	PER_1000("cache_mpki", "MISS/1K", "last-level cache misses per 1000 instructions",
		 "cache-misses"),
	PER_1000("branch_mpki", "BRMIS/1K", "mispredicted branches per 1000 instructions",
		 "branch-misses"),
	PER_1000("l1d_mpki", "L1D/1K", "level 1 data cache load misses per 1000 instructions",
		 "L1-dcache-load-misses"),
	PER_1000("llc_mpki", "LLC/1K", "last-level cache load misses per 1000 instructions",
		 "LLC-load-misses"),
	PER_1000("dtlb_mpki", "DTLB/1K", "data TLB load misses per 1000 instructions",
		 "dTLB-load-misses"),
};

/* Names of the same events at PMUs. */
static const struct {
	const char *pmu, *name;
} aliases[] = {
	{ "cpu_cycles", "cycles" },
	{ "cpu-cycles", "cycles" },
	{ "inst_retired", "instructions" },
	{ "br_retired", "branches" },
	{ "branch-instructions", "branches" },
	{ "br_mis_pred_retired", "branch-misses" },
	{ "l1d_cache", "L1-dcache-loads" },
	{ "l1d_cache_refill", "L1-dcache-load-misses" },
	{ "ll_cache_rd", "LLC-loads" },
	{ "ll_cache_miss_rd", "LLC-load-misses" },
};

/* Return whether @ev is the event @name, at any PMU: "cpu_core/slots/", "cycles:u", "slots:u". */
static bool is_event(const struct event *ev, const char *name)
{
	const struct event_info *info = event_info(ev);
	const char *word = strchr(ev->name, '/');
	size_t size;

	if (info)
		return !strcmp(info->name, name);
	word = word ? word + 1 : ev->name;
	size = strcspn(word, "/,:");
	if (strlen(name) == size && !strncasecmp(word, name, size))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strlen(aliases[i].pmu) == size && !strncasecmp(word, aliases[i].pmu, size))
			return !strcmp(aliases[i].name, name);
	return false;
}

/* Return whether both count the same code, on the same CPUs. */
static bool are_alike(const struct event *a, const struct event *b)
{
	const struct event_info *x = event_info(a), *y = event_info(b);

	return a->user == b->user && a->kernel == b->kernel && a->hv == b->hv &&
	       a->host == b->host && a->guest == b->guest && !x == !y && (x || a->type == b->type);
}

/* Find the event @name that is like @like (NULL: any). RATIO_NONE also without a name. */
static uint8_t find(const struct profile_event *events, uint32_t nr, const char *name,
		    const struct event *like)
{
	for (uint32_t i = 0; name && i < nr; i++)
		if (is_event(&events[i].event, name) &&
		    (!like || are_alike(&events[i].event, like)))
			return (uint8_t)i;
	return RATIO_NONE;
}

/* Find the events of @m. False: one is missing. */
static bool find_all(const struct profile_event *events, uint32_t nr, const struct ratio *m,
		     struct ratio_use *use)
{
	const struct event *like;

	*use = (struct ratio_use){ m, find(events, nr, m->part, NULL), RATIO_NONE, RATIO_NONE,
				   RATIO_NONE };
	if (use->part == RATIO_NONE)
		return false;
	like = &events[use->part].event;
	use->minus = find(events, nr, m->minus, like);
	use->whole = find(events, nr, m->whole, like);
	use->plus = find(events, nr, m->plus, like);
	return use->whole != RATIO_NONE && !m->minus == (use->minus == RATIO_NONE) &&
	       !m->plus == (use->plus == RATIO_NONE);
}

uint32_t ratios_find(const struct profile_event *events, uint32_t nr,
		     struct ratio_use uses[static RATIOS_MAX])
{
	uint32_t found = 0;

	assert(nr <= EVENTS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(table) && found < RATIOS_MAX; i++) {
		/* Per 1000 instructions only without the number of accesses. */
		bool known = false;

		for (uint32_t k = 0; k < found; k++)
			known |= !strcmp(uses[k].ratio->part, table[i].part) &&
				 table[i].scale == 1000;
		found += !known && find_all(events, nr, &table[i], &uses[found]);
	}
	return found;
}

bool ratios_has_event(const struct ratio_use *uses, uint32_t nr, uint32_t index)
{
	for (uint32_t i = 0; i < nr; i++)
		if (uses[i].part == index || uses[i].minus == index || uses[i].whole == index ||
		    uses[i].plus == index)
			return true;
	return false;
}

/* Compute the metric from the counts of events; NAN if the divisor is 0 or a count is not known. */
static double compute(const struct ratio_use *use, const double *counts)
{
	double part = counts[use->part], whole = counts[use->whole];

	if (use->minus != RATIO_NONE)
		part -= counts[use->minus];
	if (use->plus != RATIO_NONE)
		whole += counts[use->plus];
	/* Written so that NAN fails. */
	if (!(whole > 0) || !isfinite(part))
		return NAN;
	return use->ratio->scale * MAX(part, 0) / whole;
}

double ratios_of_tick(const struct profile *p, const struct ratio_use *use)
{
	double counts[EVENTS_MAX];

	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		counts[i] = i < p->nr_events ? p->events[i].count : NAN;
	/* An event that never counted is not supported: a rate of 0 would be false. */
	return counts[use->part] > 0 ? compute(use, counts) : NAN;
}

/* The samples in one function. */
struct sums {
	double weight[EVENTS_MAX], count[EVENTS_MAX];
};

static void add_count(const struct profile *p, const struct profile_count *c, struct sums *sums,
		      bool *seen)
{
	const struct profile_stack *stack = &p->stacks[c->stack];
	struct sums *of;

	if (c->event >= p->nr_events || !stack->nr)
		return;
	of = &sums[p->frames[stack->first]];
	of->weight[c->event] += c->weight;
	of->count[c->event] += c->count;
	seen[c->event] = true;
}

void ratios_fold(const struct profile *p, const struct fold_filter *f, const struct ratio_use *uses,
		 uint32_t nr, double *values)
{
	struct sums *sums = calloc(p->nr_functions + 1ULL, sizeof(*sums));
	bool seen[EVENTS_MAX] = { false };

	assert(nr <= RATIOS_MAX);
	for (uint32_t i = 0; sums && i < p->nr_counts; i++)
		if (fold_passes_task(p, f, p->counts[i].task))
			add_count(p, &p->counts[i], sums, seen);
	for (size_t i = 0; i < (size_t)p->nr_functions * RATIOS_MAX; i++) {
		const struct sums *of = sums ? &sums[i / RATIOS_MAX] : NULL;
		uint32_t n = i % RATIOS_MAX;

		values[i] = of && n < nr && seen[uses[n].part] &&
					    of->count[uses[n].whole] >= SAMPLES_MIN
				    ? compute(&uses[n], of->weight)
				    : NAN;
	}
	free(sums);
}

void ratios_count_samples(struct profile *p)
{
	for (uint32_t i = 0; i < p->nr_events; i++)
		p->events[i].count = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (p->counts[i].event < p->nr_events)
			p->events[p->counts[i].event].count += p->counts[i].weight;
}

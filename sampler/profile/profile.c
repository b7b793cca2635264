// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The immutable result for the UI: its names and its end; ratios of events, branches and accesses
 * to memory, the heat strip.
 *
 * Runs on: any thread, that of the profile's owner.
 */
#include "sampler/profile/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

const char *profile_broken_name(unsigned int reason)
{
	return reason < UNWIND_NR_STOPS ? unwind_stop_name((enum unwind_stop)reason) : "?";
}

const char *profile_drop_name(enum profile_drop reason)
{
	static const char *const names[DROP_NR] = {
		[DROP_STACKS_FULL] = "stack table full",
		[DROP_CELLS_FULL] = "count table full",
		[DROP_PLACES_FULL] = "place table full",
		[DROP_BAD_RECORD] = "record that makes no sense",
		[DROP_UNKNOWN_EVENT] = "sample of an unknown event",
		[DROP_EVENT_LIMIT] = "event beyond the limit of 8",
		[DROP_EVENT_GONE] = "event that is no longer sampled",
	};

	return (unsigned int)reason < DROP_NR ? names[reason] : "?";
}

const char *profile_lang_status_name(unsigned int reason)
{
	return lang_status_name((enum lang_status)reason);
}

const char *profile_language_name(char kind)
{
	if (kind == LANG_JAVA)
		return "java";
	for (int i = LANG_NONE + 1; i < LANG_NR; i++)
		if (lang_letter((enum lang_kind)i) == kind)
			return lang_name((enum lang_kind)i);
	return NULL;
}

const char *profile_language_prefix(const char *text, size_t *size)
{
	/* The name of the language, which --languages and NDJSON have by its interpreter. */
	*size = sizeof("javascript:") - 1;
	if (!strncmp(text, "javascript:", *size) && text[*size] != ':')
		return lang_name(LANG_NODE);
	for (int i = LANG_NONE + 1; i <= LANG_NR; i++) {
		char kind = i < LANG_NR ? lang_letter((enum lang_kind)i) : LANG_JAVA;
		const char *name = profile_language_name(kind);

		*size = strlen(name) + 1;
		/* "java::foo" is a name of C++. */
		if (!strncmp(text, name, *size - 1) && text[*size - 1] == ':' && text[*size] != ':')
			return name;
	}
	return NULL;
}

const char *profile_call_graph_name(enum call_graph mode)
{
	static const char *const names[CALL_GRAPH_NR] = {
		[CALL_GRAPH_DWARF] = "dwarf",
		[CALL_GRAPH_FP] = "fp",
		[CALL_GRAPH_OFF] = "off",
		[CALL_GRAPH_DEFER] = "defer",
	};

	return (unsigned int)mode < CALL_GRAPH_NR ? names[mode] : "?";
}

const char *profile_frames_name(enum profile_frames frames)
{
	static const char *const names[FRAMES_NR] = {
		[FRAMES_LANGUAGE] = "language",
		[FRAMES_BOTH] = "both",
		[FRAMES_NATIVE] = "native",
	};

	return (unsigned int)frames < FRAMES_NR ? names[frames] : "?";
}

const char *profile_module_state_name(enum profile_module_state state)
{
	static const char *const names[] = {
		[PROFILE_MODULE_LOADING] = "loading", [PROFILE_MODULE_READY] = "ready",
		[PROFILE_MODULE_FAILED] = "failed",   [PROFILE_MODULE_ASIDE] = "aside",
		[PROFILE_MODULE_AWAY] = "away",	      [PROFILE_MODULE_KEPT] = "kept",
	};

	return (unsigned int)state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *profile_message_action(const struct profile_message *n)
{
	static const char *const words[] = {
		[MESSAGE_NONE] = "",
		[MESSAGE_RATE] = "lower the rate",
		[MESSAGE_STACK_SIZE] = "larger stack copies",
		[MESSAGE_RING_SIZE] = "larger rings",
		[MESSAGE_CALL_GRAPH] = "use frame pointers",
		[MESSAGE_RESET] = "count from zero",
		[MESSAGE_EVENTS] = "choose events",
		[MESSAGE_MODULES] = "show by module",
		[MESSAGE_CPUS] = "show by CPU",
	};

	if (n->control == MESSAGE_CALL_GRAPH && n->value == CALL_GRAPH_DWARF)
		return "use DWARF unwinding";
	return (unsigned int)n->control < ARRAY_SIZE(words) ? words[n->control] : "";
}

struct profile *profile_keep(struct profile *p)
{
	/* Relaxed: the caller is an owner already. */
	atomic_fetch_add_explicit(&p->nr_keepers, 1, memory_order_relaxed);
	return p;
}

void profile_free(struct profile *p)
{
	/* Acquire and release: all reads of the other owners happen before the free. */
	if (!p || atomic_fetch_sub_explicit(&p->nr_keepers, 1, memory_order_acq_rel))
		return;
	free(p->cpus);
	free(p->cpu_events);
	free(p->functions);
	free(p->processes);
	free(p->ancestors);
	free(p->tasks);
	free(p->stacks);
	free(p->stack_waits);
	free(p->stack_idle);
	free(p->frames);
	free(p->frame_lines);
	free(p->lines);
	free(p->files);
	free(p->counts);
	free(p->modules);
	free(p->branches);
	free(p->accesses);
	free(p->messages);
	if (p->annotate) {
		free(p->annotate->points);
		listing_put(p->annotate->listing);
		free(p->annotate);
	}
	text_arena_free(p->names);
	free(p->pool);
	free(p);
}

/*
 * Ratios of events that are sampled together.
 *
 * Pure; any thread. A sample weighs its period, so the weights of a function estimate the counts
 * of its instructions, of events with separate rates and of members of a group that is read.
 */

#define RATIO_NONE UINT8_MAX

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
	assert(uses || !nr);
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

	assert(use->part < EVENTS_MAX && p->nr_events <= EVENTS_MAX);
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		counts[i] = i < p->nr_events ? p->events[i].count : NAN;
	/* An event that never counted is not supported: a rate of 0 would be false. */
	return counts[use->part] > 0 ? compute(use, counts) : NAN;
}

/* The samples in one function. */
struct ratios_sums {
	double weight[EVENTS_MAX], count[EVENTS_MAX];
};

static void add_count(const struct profile *p, const struct profile_count *c,
		      struct ratios_sums *sums, bool *seen)
{
	const struct profile_stack *stack = &p->stacks[c->stack];
	struct ratios_sums *of;

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
	struct ratios_sums *sums = calloc(p->nr_functions + 1ULL, sizeof(*sums));
	bool seen[EVENTS_MAX] = { false };

	assert(nr <= RATIOS_MAX);
	for (uint32_t i = 0; sums && i < p->nr_counts; i++)
		if (fold_passes_task(p, f, p->counts[i].task))
			add_count(p, &p->counts[i], sums, seen);
	for (size_t i = 0; i < (size_t)p->nr_functions * RATIOS_MAX; i++) {
		const struct ratios_sums *of = sums ? &sums[i / RATIOS_MAX] : NULL;
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
	assert(p->nr_events <= EVENTS_MAX);
	for (uint32_t i = 0; i < p->nr_events; i++)
		p->events[i].count = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (p->counts[i].event < p->nr_events)
			p->events[p->counts[i].event].count += p->counts[i].weight;
}

/*
 * Branches by address, accesses by function and kind, most frequent first. Runs on: the builder.
 */

/* Rows of each kind in a profile: the most frequent ones. */
#define HARDWARE_ROWS_MAX 4096

static int by_count(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->place != y->place)
		return x->place > y->place ? 1 : -1;
	return COMPARE(x->other, y->other);
}

/* Return a copy of the pairs, most frequent first; NULL: none, or out of memory. */
static struct pair *sorted(const struct pairs *pairs, uint32_t *nr)
{
	const struct pair *all = pairs_all(pairs, nr);
	struct pair *copy = *nr ? malloc(*nr * sizeof(*copy)) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, all, *nr * sizeof(*copy));
	qsort(copy, *nr, sizeof(*copy), by_count);
	return copy;
}

/* Return the offset of a place in its function; UINT64_MAX: not known. */
static uint64_t offset_of(const struct assemble_input *in, uint32_t id)
{
	const struct place *place = places_at(in->places, id);
	const struct object *object = place ? objects_at(in->objects, place->object) : NULL;
	const struct symbol *symbol;
	const struct image *image;
	uint64_t vaddr;

	if (!object)
		return UINT64_MAX;
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	symbol =
		symbols_at(in->symbols, atomic_load_explicit(&place->symbol, memory_order_acquire));
	if (!symbol || symbol->kind == '?' || !symbol->start)
		return UINT64_MAX;
	vaddr = place->offset;
	image = atomic_load_explicit(&object->image, memory_order_acquire);
	if (object->identity.kind != OBJECT_KERNEL &&
	    (!image ||
	     (object->identity.kind == OBJECT_FILE && !image_vaddr(image, place->offset, &vaddr))))
		return UINT64_MAX;
	return vaddr >= symbol->start ? vaddr - symbol->start : UINT64_MAX;
}

static int fill_branches(struct profile *p, const struct assemble_input *in,
			 hardware_function_fn function, void *ctx)
{
	uint32_t nr;
	struct pair *all = sorted(in->branches, &nr);
	int code = 0;

	if (!nr)
		return 0;
	p->branches = calloc(MIN(nr, HARDWARE_ROWS_MAX), sizeof(*p->branches));
	p->branches_all = (double)pairs_left_out(in->branches);
	for (uint32_t i = 0; i < nr && all; i++)
		p->branches_all += (double)all[i].count;
	for (uint32_t i = 0; i < MIN(nr, HARDWARE_ROWS_MAX) && all && p->branches && !code; i++) {
		struct profile_branch *b = &p->branches[p->nr_branches++];

		*b = (struct profile_branch){
			.from = function(ctx, all[i].place),
			.to = function(ctx, all[i].other),
			.from_offset = offset_of(in, all[i].place),
			.to_offset = offset_of(in, all[i].other),
			.count = all[i].count,
			.mispredicted = all[i].sums[0],
			.predicted = all[i].sums[1],
			.cycles = all[i].sums[2],
		};
		if (b->from == UINT32_MAX || b->to == UINT32_MAX)
			code = -ENOMEM;
	}
	if (!all || !p->branches)
		code = -ENOMEM;
	free(all);
	return code;
}

/* Find the row of a function and kind, or begin one. NULL: there are enough. */
static struct profile_access *access_row(struct profile *p, uint32_t function, uint32_t kind)
{
	struct profile_access *a = p->accesses;

	for (uint32_t i = 0; i < p->nr_accesses; i++, a++)
		if (a->function == function && a->kind == kind)
			return a;
	if (p->nr_accesses == HARDWARE_ROWS_MAX)
		return NULL;
	p->nr_accesses++;
	*a = (struct profile_access){ .function = function, .kind = kind };
	return a;
}

static int fill_accesses(struct profile *p, const struct assemble_input *in,
			 hardware_function_fn function, void *ctx)
{
	uint32_t nr;
	struct pair *all = sorted(in->accesses, &nr);
	int code = 0;

	if (!nr)
		return 0;
	p->accesses = calloc(HARDWARE_ROWS_MAX, sizeof(*p->accesses));
	p->accesses_all = (double)pairs_left_out(in->accesses);
	for (uint32_t i = 0; i < nr && all && p->accesses && !code; i++) {
		uint32_t f = i < HARDWARE_ROWS_MAX ? function(ctx, all[i].place) : 0;
		struct profile_access *a;

		p->accesses_all += (double)all[i].count;
		if (f == UINT32_MAX)
			code = -ENOMEM;
		a = !code && i < HARDWARE_ROWS_MAX ? access_row(p, f, all[i].other) : NULL;
		if (!a)
			continue;
		a->count += all[i].count;
		a->latency += all[i].sums[0];
	}
	if (!all || !p->accesses)
		code = -ENOMEM;
	free(all);
	return code;
}

int hardware_fill(struct profile *p, const struct assemble_input *in, hardware_function_fn function,
		  void *ctx)
{
	int code = fill_branches(p, in, function, ctx);

	return code ? code : fill_accesses(p, in, function, ctx);
}

/*
 * Look-ups in a heat strip, and queries for one. Pure; any thread.
 */

#define PEAK 1.5 /* times the mean of the columns */

uint32_t strip_column_at(const struct strip *s, uint64_t time_ns)
{
	uint64_t at;

	assert(!s->nr || s->column_ns);
	if (!s->nr || time_ns < s->begin_ns)
		return 0;
	at = (time_ns - s->begin_ns) / s->column_ns;
	return (uint32_t)MIN(at, s->nr - 1ULL);
}

static double peak_at(const struct strip *s, uint32_t i)
{
	return i < s->nr ? s->columns[i].peak : 0;
}

/* Return the least amount of a peak: far above the mean, or an even load has peaks of noise. */
static double least_peak(const struct strip *s)
{
	uint32_t nr = 0;
	double sum = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		sum += s->columns[i].peak;
		nr += s->columns[i].end_ns > 0;
	}
	return MAX(s->max / 2, nr ? PEAK * sum / nr : 0);
}

static bool is_peak(const struct strip *s, uint32_t i, double least)
{
	double peak = peak_at(s, i);

	return peak > 0 && peak >= least && peak >= peak_at(s, i - 1) && peak > peak_at(s, i + 1);
}

uint32_t strip_peak(const struct strip *s, uint64_t time_ns, bool later)
{
	double least = least_peak(s);

	if (later) {
		for (uint32_t i = 0; i < s->nr; i++)
			if (is_peak(s, i, least) && s->columns[i].begin_ns > time_ns)
				return i;
		return s->nr;
	}
	for (uint32_t i = s->nr; i-- > 0;)
		if (is_peak(s, i, least) && s->columns[i].end_ns < time_ns)
			return i;
	return s->nr;
}

struct strip_query *strip_copy_query(const struct strip_query *q)
{
	struct strip_query *copy = malloc(sizeof(*copy));

	return copy ? memcpy(copy, q, sizeof(*q)) : NULL;
}

bool strip_same_samples(const struct strip_query *a, const struct strip_query *b)
{
	return a->event == b->event && a->process == b->process && a->thread == b->thread &&
	       a->function == b->function && !strcmp(a->filter, b->filter) &&
	       a->matcher == b->matcher && a->inverted == b->inverted &&
	       a->only_tasks == b->only_tasks;
}

bool strip_same_query(const struct strip_query *a, const struct strip_query *b)
{
	return a->columns == b->columns && a->span_ns == b->span_ns && a->grid == b->grid &&
	       a->until_ns == b->until_ns && strip_same_samples(a, b);
}

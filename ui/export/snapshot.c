// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The exported part of a profile: frames, stacks, weights, functions, root first; numbers, texts
 * and locations of the protobuf formats.
 */
#include "ui/export/internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "ui/text/text.h"

/* Scratch memory. */
struct making {
	struct snapshot *s;
	struct dense frames; /* (function, line) -> index in frames */
	uint32_t *lines;     /* by line, the first one that is the same; NULL: each is */
	uint8_t *wanted;     /* by function: matches the filter; NULL: no filter */
	bool negate;
	double *self, *total; /* by function */
	uint32_t *stamps;     /* by function: last stack that has it */
};

static bool is_hidden(const struct profile_function *fn, const struct fold_filter *f)
{
	return fn->kernel || fn->kind == 'k' ? f->hide_kernel : f->hide_user;
}

/* Mark the functions that the filter is about. Return 0 or -ENOMEM. */
static int mark_wanted(struct making *m)
{
	const struct snapshot_scope *scope = &m->s->scope;
	const struct profile *p = m->s->profile;
	struct match match;

	if (!scope->find[0] && scope->module == UINT32_MAX)
		return 0;
	m->wanted = calloc(p->nr_functions + 1ULL, 1);
	if (!m->wanted)
		return -ENOMEM;
	match_init(&match);
	match_set(&match, scope->find);
	m->negate = match_active(&match) && match.negate;
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		const struct profile_function *fn = &p->functions[i];
		bool of_module = scope->module == UINT32_MAX ||
				 (fn->module_index < p->nr_modules &&
				  p->modules[fn->module_index].id == scope->module);

		m->wanted[i] = of_module &&
			       (!match_active(&match) || match_finds_function(&match, fn));
	}
	match_fini(&match);
	return 0;
}

/* Return whether the stack passes the filter. With '!': no function of the stack matches. */
static bool passes(const struct making *m, const struct profile_stack *stack)
{
	const uint32_t *frames = &m->s->profile->frames[stack->first];

	if (!m->wanted)
		return true;
	for (uint32_t i = 0; i < stack->nr; i++)
		if (m->wanted[frames[i]])
			return !m->negate;
	return m->negate;
}

static void tally(struct making *m, uint32_t function, uint32_t stamp, bool leaf, double weight)
{
	assert(function < m->s->profile->nr_functions);
	if (leaf)
		m->self[function] += weight;
	if (m->stamps[function] == stamp)
		return;
	m->stamps[function] = stamp;
	m->total[function] += weight;
}

/* Add the frames of a count, root first, and its sums by function. */
static int add_stack(struct making *m, const struct profile_count *c)
{
	struct snapshot *s = m->s;
	const struct profile *p = s->profile;
	const struct profile_stack *from = &p->stacks[c->stack];
	struct snapshot_stack *to = &s->stacks[s->nr_stacks++];

	*to = (struct snapshot_stack){ s->nr_calls, 0, c->task, c->count, c->weight };
	s->count += c->count;
	s->weight += c->weight;
	for (uint32_t i = from->nr; i-- > 0;) {
		uint32_t function = p->frames[from->first + i], frame;
		uint32_t line = p->frame_lines ? p->frame_lines[from->first + i] : PROFILE_NO_LINE;
		bool is_new;

		if (m->lines && line != PROFILE_NO_LINE)
			line = m->lines[line];
		if (is_hidden(&p->functions[function], &s->scope.filter))
			continue;
		frame = dense_add(&m->frames, (uint64_t)function << 32 | line, &is_new);
		if (frame == DENSE_NONE)
			return -ENOMEM;
		s->calls[s->nr_calls++] = frame;
		tally(m, function, s->nr_stacks, !i, c->weight);
	}
	to->nr = s->nr_calls - to->first;
	return 0;
}

static void note_file(struct snapshot *s, uint32_t line)
{
	const struct profile *p = s->profile;

	if (line < p->nr_lines && p->lines[line].file < p->nr_files)
		s->has_file[p->lines[line].file] = 1;
}

/* Note the entries of the profile that the stacks have: an export may be of one process. */
static int note_entries(struct snapshot *s)
{
	const struct profile *p = s->profile;

	s->has_function = calloc(p->nr_functions + 1ULL, 1);
	s->has_module = calloc(p->nr_modules + 1ULL, 1);
	s->has_file = calloc(p->nr_files + 1ULL, 1);
	s->has_process = calloc(p->nr_processes + 1ULL, 1);
	if (!s->has_function || !s->has_module || !s->has_file || !s->has_process)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nr_frames; i++) {
		uint32_t function = s->frames[i].function;

		s->has_function[function] = 1;
		if (p->functions[function].module_index < p->nr_modules)
			s->has_module[p->functions[function].module_index] = 1;
		note_file(s, s->frames[i].line);
		note_file(s, s->lines[function]);
	}
	for (uint32_t i = 0; i < s->nr_processes; i++)
		s->has_process[s->processes[i].process] = 1;
	return 0;
}

/* Find equal lines: each instruction has one. */
static int merge_lines(struct making *m)
{
	const struct profile *p = m->s->profile;
	struct dense seen = { 0 };
	uint32_t *first = calloc(p->nr_lines + 1ULL, sizeof(*first));
	bool failed = !first, is_new;

	m->lines = calloc(p->nr_lines + 1ULL, sizeof(*m->lines));
	failed |= !m->lines;
	for (uint32_t i = 0; i < p->nr_lines && !failed; i++) {
		const struct profile_line *line = &p->lines[i];
		uint32_t n = dense_add(&seen, (uint64_t)line->file << 32 | line->line, &is_new);

		failed = n == DENSE_NONE;
		if (failed)
			break;
		if (is_new)
			first[n] = i;
		m->lines[i] = first[n];
	}
	dense_fini(&seen);
	free(first);
	return failed ? -ENOMEM : 0;
}

/* Count the stacks and frames that pass. */
static void measure(const struct making *m, uint64_t *stacks, uint64_t *calls)
{
	const struct snapshot *s = m->s;
	const struct profile *p = s->profile;

	*stacks = *calls = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (fold_passes(p, &s->scope.filter, &p->counts[i]) &&
		    passes(m, &p->stacks[p->counts[i].stack])) {
			++*stacks;
			*calls += p->stacks[p->counts[i].stack].nr;
		}
}

static int add_stacks(struct making *m)
{
	struct snapshot *s = m->s;
	const struct profile *p = s->profile;
	uint64_t stacks, calls;

	measure(m, &stacks, &calls);
	if (calls >= UINT32_MAX)
		return -ENOMEM;
	s->stacks = calloc(stacks + 1, sizeof(*s->stacks));
	s->calls = calloc(calls + 1, sizeof(*s->calls));
	if (!s->stacks || !s->calls)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];

		if (!fold_passes(p, &s->scope.filter, c))
			continue;
		s->all_count += c->count;
		s->all_weight += c->weight;
		if (passes(m, &p->stacks[c->stack]) && add_stack(m, c))
			return -ENOMEM;
	}
	return 0;
}

static int copy_frames(struct making *m)
{
	struct snapshot *s = m->s;

	s->frames = calloc(m->frames.nr + 1ULL, sizeof(*s->frames));
	if (!s->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->frames.nr; i++)
		s->frames[i] = (struct snapshot_frame){ (uint32_t)(m->frames.keys[i] >> 32),
							(uint32_t)m->frames.keys[i] };
	s->nr_frames = m->frames.nr;
	return 0;
}

static int compare_rows(const void *pa, const void *pb, void *functions)
{
	const struct snapshot_row *a = pa, *b = pb;
	const struct profile_function *all = functions;

	if (a->self != b->self)
		return (a->self < b->self) - (a->self > b->self);
	if (a->total != b->total)
		return (a->total < b->total) - (a->total > b->total);
	return (all[a->function].id > all[b->function].id) -
	       (all[a->function].id < all[b->function].id);
}

static int make_rows(struct making *m)
{
	struct snapshot *s = m->s;
	const struct profile *p = s->profile;

	s->rows = calloc(p->nr_functions + 1ULL, sizeof(*s->rows));
	if (!s->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_functions; i++)
		if (m->stamps[i])
			s->rows[s->nr_rows++] = (struct snapshot_row){ i, m->self[i], m->total[i] };
	qsort_r(s->rows, s->nr_rows, sizeof(*s->rows), compare_rows, p->functions);
	return 0;
}

/* The order of stacks: processes by weight, then tasks, then weight. */
struct order {
	const struct profile *profile;
	const double *weights; /* by process */
};

static int compare_stacks(const void *pa, const void *pb, void *arg)
{
	const struct snapshot_stack *a = pa, *b = pb;
	const struct order *o = arg;
	uint32_t x = o->profile->tasks[a->task].process, y = o->profile->tasks[b->task].process;

	if (x != y && o->weights[x] != o->weights[y])
		return o->weights[x] < o->weights[y] ? 1 : -1;
	if (x != y)
		return x < y ? -1 : 1;
	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return COMPARE(a->first, b->first);
}

static int make_processes(struct snapshot *s)
{
	const struct profile *p = s->profile;
	double *weights = calloc(p->nr_processes + 1ULL, sizeof(*weights));
	struct order order = { p, weights };

	s->processes = calloc(p->nr_processes + 1ULL, sizeof(*s->processes));
	if (!weights || !s->processes) {
		free(weights);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->nr_stacks; i++)
		weights[p->tasks[s->stacks[i].task].process] += s->stacks[i].weight;
	qsort_r(s->stacks, s->nr_stacks, sizeof(*s->stacks), compare_stacks, &order);
	for (uint32_t i = 0; i < s->nr_stacks; i++) {
		uint32_t process = p->tasks[s->stacks[i].task].process;

		if (!s->nr_processes || s->processes[s->nr_processes - 1].process != process)
			s->processes[s->nr_processes++] =
				(struct snapshot_process){ process, i, 0, weights[process] };
		s->processes[s->nr_processes - 1].nr++;
	}
	free(weights);
	return 0;
}

/* Name the weights: of a clock and of waits they are time. */
static void name_value(struct snapshot *s)
{
	const struct event *ev = &s->event->event;

	s->nanoseconds = ev->clock || ev->wait;
	s->unit = s->nanoseconds ? TEXT("nanoseconds") : TEXT("count");
	s->type = text_format(s->event_name, sizeof(s->event_name), "%s",
			      s->scope.filter.also ? "wall"
			      : ev->wait	   ? "off_cpu"
			      : ev->clock	   ? "cpu"
						   : ev->name);
	s->shown_event = text_format(s->shown_event_text, sizeof(s->shown_event_text), "%s%s",
				     ev->name, s->scope.filter.also ? " + " EVENT_WAITS : "");
}

int snapshot_make(struct snapshot *s, const struct profile *p, const struct snapshot_scope *scope,
		  bool by_address)
{
	struct making m = { .s = s };
	int code = -ENOMEM;

	*s = (struct snapshot){ .profile = p, .scope = *scope };
	if (scope->filter.event >= p->nr_events)
		return -ENODATA;
	s->event = &p->events[scope->filter.event];
	name_value(s);
	m.self = calloc(p->nr_functions + 1ULL, sizeof(*m.self));
	m.total = calloc(p->nr_functions + 1ULL, sizeof(*m.total));
	m.stamps = calloc(p->nr_functions + 1ULL, sizeof(*m.stamps));
	s->lines = calloc(p->nr_functions + 1ULL, sizeof(*s->lines));
	if (!m.self || !m.total || !m.stamps || !s->lines)
		goto out;
	for (uint32_t i = 0; i < p->nr_functions; i++)
		s->lines[i] = PROFILE_NO_LINE;
	if (fold_all_lines(p, &scope->filter, s->lines))
		goto out;
	if (p->frame_lines && !by_address && merge_lines(&m))
		goto out;
	if (mark_wanted(&m) || add_stacks(&m) || copy_frames(&m) || make_rows(&m) ||
	    make_processes(s) || note_entries(s))
		goto out;
	code = 0;
out:
	dense_fini(&m.frames);
	free(m.lines);
	free(m.wanted);
	free(m.self);
	free(m.total);
	free(m.stamps);
	if (code)
		snapshot_fini(s);
	return code;
}

void snapshot_fini(struct snapshot *s)
{
	free(s->frames);
	free(s->calls);
	free(s->stacks);
	free(s->processes);
	free(s->rows);
	free(s->lines);
	free(s->has_function);
	free(s->has_module);
	free(s->has_file);
	free(s->has_process);
	*s = (struct snapshot){ 0 };
}

struct safe_text snapshot_source(const struct snapshot *s, uint32_t function, uint32_t *number)
{
	assert(function < s->profile->nr_functions);
	return snapshot_line(s, s->has_function[function] ? s->lines[function] : PROFILE_NO_LINE,
			     number);
}

struct safe_text snapshot_line(const struct snapshot *s, uint32_t line, uint32_t *number)
{
	const struct profile *p = s->profile;

	*number = 0;
	if (line >= p->nr_lines || p->lines[line].file >= p->nr_files)
		return TEXT("");
	*number = p->lines[line].line;
	return p->files[p->lines[line].file];
}

const struct profile_process *snapshot_process_of(const struct snapshot *s, uint32_t task)
{
	const struct profile *p = s->profile;
	uint32_t process = task < p->nr_tasks ? p->tasks[task].process : UINT32_MAX;

	return process < p->nr_processes ? &p->processes[process] : NULL;
}

int64_t snapshot_whole(double value, double *rest)
{
	double all = MIN(value + *rest, (double)(1ULL << 62));
	int64_t whole = llround(all);

	*rest = all - (double)whole;
	return whole;
}

int64_t snapshot_period_whole(const struct snapshot *s)
{
	double rest = 0;

	return snapshot_whole(MAX(snapshot_period(s), 1), &rest);
}

double snapshot_period(const struct snapshot *s)
{
	const struct profile_event *ev = s->event;

	if (ev->event.wait || s->scope.filter.also)
		return 0;
	if (ev->event.clock && ev->want_hz > 0)
		return 1e9 / ev->want_hz;
	return ev->want_hz > 0 ? 0 : (double)ev->event.period;
}

/*
 * Locations by their frames.
 */

void locations_fini(struct locations *l)
{
	dense_fini(&l->chains);
	dense_fini(&l->ids);
}

uint32_t locations_add(struct locations *l, const struct snapshot *s, uint32_t first, uint32_t *at,
		       bool *is_new)
{
	uint32_t chain = 0;

	for (uint32_t i = *at;; i--) {
		uint32_t n = dense_add(&l->chains, (uint64_t)chain << 32 | s->calls[i], is_new);

		*at = i;
		if (n == DENSE_NONE)
			return n;
		chain = n + 1;
		if (i == first || !snapshot_function(s, s->calls[i])->inlined)
			break;
	}
	return dense_add(&l->ids, chain, is_new);
}

/*
 * Numbers for texts, by their hashes.
 */

void strings_init(struct strings *s, int field)
{
	*s = (struct strings){ .field = field };
	strings_add(s, TEXT(""));
}

void strings_fini(struct strings *s)
{
	out_fini(&s->out);
	dense_fini(&s->hashes);
	free(s->texts);
}

/* Return the number of @t, or DENSE_NONE. */
static uint32_t find(struct strings *s, struct safe_text t, bool *is_new)
{
	uint64_t key = t.size ? keyhash_name(t.str, t.size) : 0;
	uint32_t n;

	/* Another text may have the same hash. */
	for (;; key++) {
		n = dense_add(&s->hashes, key, is_new);
		if (*is_new || n == DENSE_NONE ||
		    (s->texts[n].size == t.size &&
		     (!t.size || !memcmp(s->texts[n].str, t.str, t.size))))
			return n;
	}
}

/* Make space for text @n. */
static bool reserve(struct strings *s, uint32_t n)
{
	uint32_t nr = s->nr_texts * 2 + 64;
	struct safe_text *texts;

	if (n < s->nr_texts)
		return true;
	texts = reallocarray(s->texts, nr, sizeof(*texts));
	if (!texts)
		return false;
	s->texts = texts;
	s->nr_texts = nr;
	return true;
}

uint64_t strings_add(struct strings *s, struct safe_text t)
{
	bool is_new;
	uint32_t n = s->out.failed ? DENSE_NONE : find(s, t, &is_new);

	if (n == DENSE_NONE || (is_new && !reserve(s, n))) {
		s->out.failed = true;
		return 0;
	}
	if (!is_new)
		return n;
	s->texts[n] = t;
	proto_bytes(&s->out, s->field, t.str, t.size);
	return n;
}

/*
 * A hash table with linear probing, at most half full. The author of a recording chooses the keys.
 */

#define SLOTS_MIN 256u

void dense_fini(struct dense *d)
{
	free(d->keys);
	free(d->slots);
	*d = (struct dense){ 0 };
}

/* Return the slot of @key, or the empty one for it. */
static uint32_t *slot_of(const struct dense *d, uint64_t key)
{
	uint32_t mask = d->nr_slots - 1, at = (uint32_t)keyhash_number(key) & mask;

	while (d->slots[at] && d->keys[d->slots[at] - 1] != key)
		at = (at + 1) & mask;
	return &d->slots[at];
}

static bool grow(struct dense *d)
{
	uint32_t nr_slots = d->nr_slots ? d->nr_slots * 2 : SLOTS_MIN;
	uint32_t *slots = nr_slots ? calloc(nr_slots, sizeof(*slots)) : NULL;
	uint64_t *keys = slots ? reallocarray(d->keys, nr_slots / 2, sizeof(*keys)) : NULL;

	if (!keys) {
		free(slots);
		return false;
	}
	free(d->slots);
	d->keys = keys;
	d->slots = slots;
	d->nr_slots = nr_slots;
	for (uint32_t i = 0; i < d->nr; i++)
		*slot_of(d, keys[i]) = i + 1;
	return true;
}

uint32_t dense_add(struct dense *d, uint64_t key, bool *is_new)
{
	uint32_t *slot;

	*is_new = false;
	if (d->nr >= d->nr_slots / 2 && !grow(d))
		return DENSE_NONE;
	slot = slot_of(d, key);
	if (!*slot) {
		d->keys[d->nr] = key;
		*slot = ++d->nr;
		*is_new = true;
	}
	return *slot - 1;
}

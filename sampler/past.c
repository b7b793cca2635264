// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events and incidents of the slices of the history; traps, tested with each slice; files of their
 * matches. Runs on: the builder.
 */
#include "sampler/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/profile/profile.h"
#include "sampler/record/record.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

void past_close(struct past *p)
{
	strip_filter_fini(&p->strip);
	free(p->sets);
	*p = (struct past){ 0 };
}

void past_slots(const struct past *p, const struct event *wanted, uint8_t *slots)
{
	for (uint32_t i = 0; i < p->nr_sets; i++) {
		slots[i] = STRIP_NO_EVENT;
		for (uint32_t k = 0; k < p->sets[i].nr; k++)
			if (event_same(&p->sets[i].events[k], wanted))
				slots[i] = (uint8_t)k;
	}
}

void past_use_events(struct past *p, struct history *h, const struct sampler_config *config)
{
	uint32_t i = 0;

	while (i < p->nr_sets && !event_same_list(p->sets[i].events, p->sets[i].nr, config->events,
						  config->nr_events))
		i++;
	if (i == PAST_SETS_MAX) {
		history_reset(h);
		i = p->nr_sets = 0;
	}
	if (i == p->nr_sets) {
		p->sets = xrealloc_array(p->sets, p->nr_sets + 1, sizeof(*p->sets));
		memcpy(p->sets[i].events, config->events, sizeof(p->sets[i].events));
		p->sets[i].nr = config->nr_events;
		p->nr_sets++;
	}
	history_set_events(h, (uint16_t)i);
}

void past_restart(struct past *p, struct history *h, const struct sampler_config *config,
		  uint64_t now_ns)
{
	history_restart(h);
	past_use_events(p, h, config);
	history_begin(h, now_ns);
}

void past_note(struct history *h, const struct profile *p)
{
	uint64_t throttled = 0;
	unsigned int marks;

	for (uint32_t i = 0; i < p->nr_cpus; i++)
		throttled += p->cpus[i].throttled;
	marks = (p->account.lost ? SLICE_LOST : 0) | (throttled ? SLICE_THROTTLED : 0);
	history_note(h, marks, p->account.lost, throttled);
}

/*
 * Files of matches of a trap.
 *
 * Runs on: the builder; the writer of the recorder writes them.
 */

#define AFTER_NS 2000000000ULL

/* Request a file of the records until @end_ns and 2 s more. Write a sentence to @text. */
static void saving_begin(const struct saving *s, const struct saving_config *config,
			 struct recorder *r, uint64_t end_ns, char *text, size_t size)
{
	time_t now = time(NULL);
	char stamp[32], path[PATH_MAX], *copy;
	struct tm tm;

	if (s->nr >= config->max_files) {
		snprintf(text, size, "not saved: %u of %u files are written (--save-files)", s->nr,
			 config->max_files);
		return;
	}
	/* A file has at most the records of the memory, and records of running processes. */
	if (s->bytes + config->memory > config->max_bytes) {
		snprintf(text, size,
			 "not saved: a file takes up to %llu MiB (--trap-memory), %llu of %llu MiB "
			 "are used (--save-size)",
			 (unsigned long long)config->memory >> 20,
			 (unsigned long long)s->bytes >> 20,
			 (unsigned long long)config->max_bytes >> 20);
		return;
	}
	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	if (snprintf(path, sizeof(path), "%s/trap-%s.data", config->dir, stamp) >=
	    (int)sizeof(path))
		return;
	copy = strdup(path);
	if (!copy || recorder_save(r, copy, end_ns + AFTER_NS)) {
		free(copy);
		snprintf(text, size, "not saved: the match before is being saved");
		return;
	}
	snprintf(text, size, "saving to %.*s", (int)(size - sizeof("saving to ")), path);
}

bool saving_check(struct saving *s, struct recorder *r, char *text, size_t size)
{
	struct recorder_saved saved;
	struct err e;
	char unmapped[80], dropped[80] = "";

	if (!r || !recorder_saved(r, &saved, &e))
		return false;
	if (saved.bytes < 0) {
		snprintf(text, size, "%s", e.text);
		return true;
	}
	s->nr++;
	s->bytes += (uint64_t)saved.bytes;
	if (saved.unsaved)
		snprintf(dropped, sizeof(dropped),
			 "; %llu KiB of earlier records dropped: no memory",
			 (unsigned long long)(saved.unsaved + 1023) >> 10);
	snprintf(text, size, "saved %.1f MiB around the match%s%s", (double)saved.bytes / (1 << 20),
		 recording_unmapped(saved.nr_unmapped, unmapped), dropped);
	return true;
}

/*
 * Rules on the slices of the history.
 *
 * Runs on: the builder. Functions are found by name once, in the symbols that are new; a slice is
 * then tested by ids.
 */

/* Of fewer samples no share is computed. */
#define SAMPLES_MIN 10

int traps_add(struct traps *t, const struct trap_rule *rule)
{
	if (t->nr == TRAP_RULES_MAX)
		return -ENOSPC;
	t->list[t->nr++] = (struct trap){ .rule = *rule };
	/* Compare all names again. */
	for (uint32_t i = 0; i < t->nr; i++) {
		struct trap_functions *f = &t->list[i].functions;

		free(f->bits);
		*f = (struct trap_functions){ .any = false };
	}
	t->nr_symbols = 0;
	return 0;
}

void traps_clear(struct traps *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		free(t->list[i].functions.bits);
	*t = (struct traps){ .tested_ns = t->tested_ns };
}

const char *traps_list(const struct traps *t, char *buf, size_t size)
{
	size_t n;

	if (!t->nr) {
		snprintf(buf, size, "no traps are set; ':trap total:parse > 50 for 1s' sets one");
		return buf;
	}
	n = (size_t)snprintf(buf, size, "%u trap%s (':trap off' removes all): ", t->nr,
			     t->nr > 1 ? "s" : "");
	for (uint32_t i = 0; i < t->nr && n < size; i++) {
		const char *rule = t->list[i].rule.text;

		if (n + strlen(rule) + sizeof("; ; ...") > size) {
			snprintf(buf + n, size - n, "; ...");
			break;
		}
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? "; " : "", rule);
	}
	return buf;
}

void traps_rearm(struct traps *t)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		t->list[i].begin_ns = 0;
		t->list[i].fired = t->list[i].seen = false;
	}
}

/* ---- names ---- */

/* Report whether a function has the name, or the name followed by its arguments. */
static bool is_named(const struct symbol *symbol, const char *name)
{
	size_t size = strlen(name);

	return !strncmp(symbol->name.str, name, size) &&
	       (!symbol->name.str[size] || symbol->name.str[size] == '(');
}

/* Report whether the rule is of functions with a name. */
static bool is_of_functions(const struct trap_rule *rule)
{
	return rule->name[0] && rule->subject != TRAP_CPU && rule->subject != TRAP_WAIT;
}

/* Add @id: a bit, since a process may have any number of functions with one name. */
static void add_id(struct trap_functions *f, uint32_t id)
{
	uint32_t nr = MAX(id / 64 + 1, 2 * f->nr_words);

	if (id / 64 >= f->nr_words) {
		f->bits = xrealloc_array(f->bits, nr, sizeof(*f->bits));
		memset(f->bits + f->nr_words, 0, (nr - f->nr_words) * sizeof(*f->bits));
		f->nr_words = nr;
	}
	f->bits[id / 64] |= 1ULL << id % 64;
	f->any = true;
}

static bool has_id(const struct trap_functions *f, uint32_t id)
{
	return id / 64 < f->nr_words && f->bits[id / 64] >> id % 64 & 1;
}

static void find_functions(struct traps *t, const struct symbols *symbols)
{
	uint32_t nr = symbols_nr(symbols);

	for (uint32_t id = t->nr_symbols; id < nr; id++) {
		const struct symbol *symbol = symbols_at(symbols, id);

		for (uint32_t i = 0; symbol && i < t->nr; i++) {
			struct trap *trap = &t->list[i];

			if (is_of_functions(&trap->rule) && is_named(symbol, trap->rule.name))
				add_id(&trap->functions, id);
		}
	}
	t->nr_symbols = nr;
}

/* Report whether the function, or one inlined at the place, is wanted; @self: the innermost. */
static bool at_place(const struct trap *t, const struct assemble_input *in, uint32_t id, bool self)
{
	const struct place *place = places_at(in->places, id);
	const struct symbol_frame *frames;
	uint32_t symbol, nr = 0;

	if (!place)
		return false;
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	frames = symbols_source(in->symbols, id, &nr);
	if (frames && nr && self)
		return has_id(&t->functions,
			      frames[0].symbol == SYMBOL_NONE ? symbol : frames[0].symbol);
	for (uint32_t i = 0; frames && i < nr; i++)
		if (has_id(&t->functions, frames[i].symbol))
			return true;
	return has_id(&t->functions, symbol);
}

static bool in_stack(const struct trap *t, const struct assemble_input *in, uint32_t stack)
{
	bool self = t->rule.subject == TRAP_SELF;
	const uint32_t *places;
	uint32_t nr = 0;

	if (!t->functions.any || stack == STACK_NONE)
		return false;
	places = stacks_at(in->stacks, stack, &nr);
	for (uint32_t i = 0; places && i < (self ? MIN(nr, 1u) : nr); i++)
		if (at_place(t, in, places[i], self))
			return true;
	return false;
}

static bool counts_for(const struct trap *t, const struct assemble_input *in, const struct count *c)
{
	const struct task *task;

	if (t->rule.subject != TRAP_CPU && t->rule.subject != TRAP_WAIT)
		return in_stack(t, in, c->stack);
	if (!t->rule.name[0])
		return true;
	task = maps_task(in->maps, c->task);
	return task && (!strcmp(task->comm.str, t->rule.name) ||
			!strcmp(task->process_comm.str, t->rule.name));
}

/* ---- slices ---- */

/* Return the busy CPUs that samples stand for. */
static double cpus_of(const struct trap_input *in, double count, double weight)
{
	double seconds = (double)(in->slice->end_ns - in->slice->begin_ns) / 1e9;

	if (in->clock)
		return weight / 1e9 / seconds;
	return in->hz > 0 ? count / (in->hz * seconds) : 0;
}

/* Return the percent of TRAP_WAIT: 100 is one task that waits. */
static double percent_waiting(const struct trap *t, const struct trap_input *in)
{
	uint64_t span_ns = in->slice->end_ns - in->slice->begin_ns;
	struct slice_reader r;
	struct count c;
	double weight = 0;

	for (slice_read_begin(&r, in->slice); slice_read(&r, &c);)
		if ((int)c.event == in->wait_slot && counts_for(t, in->tables, &c))
			weight += (double)c.weight;
	return 100 * weight / (double)MAX(span_ns, 1ULL);
}

/* Return the percent of the rule's subject in a slice; -1: there are too few samples. */
static double percent_of(struct trap *t, const struct trap_input *in)
{
	double count = 0, weight = 0, all = 0, all_weight = 0;
	struct slice_reader r;
	struct count c;

	if (t->rule.subject == TRAP_LOST)
		return 100.0 * (double)in->slice->lost /
		       (double)MAX(in->slice->lost + in->slice->count, 1ULL);
	if (t->rule.subject == TRAP_WAIT)
		return percent_waiting(t, in);
	for (slice_read_begin(&r, in->slice); slice_read(&r, &c);) {
		if (c.event)
			continue;
		all += (double)c.count;
		all_weight += (double)c.weight;
		if (!counts_for(t, in->tables, &c))
			continue;
		count += (double)c.count;
		weight += (double)c.weight;
	}
	if (t->rule.subject == TRAP_NEW)
		return count > 0 ? 100 : 0;
	if (t->rule.subject == TRAP_CPU)
		return 100 * cpus_of(in, count, weight) /
		       (t->rule.name[0] ? 1 : MAX(in->nr_cpus, 1u));
	return all < SAMPLES_MIN || !(all_weight > 0) ? -1 : 100 * weight / all_weight;
}

/* Test one rule. True: it begins to match. */
static bool test(struct trap *t, const struct trap_input *in, double percent)
{
	bool match = percent >= 0 &&
		     (t->rule.below ? percent < t->rule.percent : percent > t->rule.percent);

	if (t->rule.subject == TRAP_NEW) {
		match = match && !t->seen;
		t->seen |= percent > 0;
	}
	if (!match) {
		t->begin_ns = 0;
		t->fired = false;
		return false;
	}
	if (!t->begin_ns)
		t->begin_ns = in->slice->begin_ns;
	if (t->fired || in->slice->end_ns - t->begin_ns < t->rule.for_ns)
		return false;
	t->fired = true;
	return true;
}

bool traps_test(struct traps *t, const struct trap_input *in, struct trap_hit *hit)
{
	bool any = false;

	if (!t->nr || in->slice->end_ns - in->slice->begin_ns < 1000000)
		return false;
	find_functions(t, in->tables->symbols);
	for (uint32_t i = 0; i < t->nr; i++) {
		struct trap *trap = &t->list[i];
		double percent = percent_of(trap, in);

		if (!test(trap, in, percent))
			continue;
		if (any) {
			hit->also[hit->nr_also++] = (struct trap_also){ &trap->rule, percent };
			continue;
		}
		any = true;
		*hit = (struct trap_hit){ .rule = &trap->rule,
					  .begin_ns = trap->begin_ns,
					  .end_ns = in->slice->end_ns,
					  .percent = percent };
	}
	return any;
}

/*
 * The traps of a session.
 *
 * Runs on: the builder.
 */

/* Return the input of a test, except for the slice. */
static struct trap_input input_of(const struct sampler *s, const struct assemble_input *tables)
{
	const struct event *event = &s->config.events[0];

	return (struct trap_input){
		.tables = tables,
		.clock = event->clock,
		.hz = s->source->hz(s, 0),
		.nr_cpus = s->source->nr_cpus(s),
		.wait_slot = config_wait_slot(&s->config),
	};
}

/* Show the slices of a match. */
static void show(struct sampler *s, const struct trap_hit *hit)
{
	s->trapped.seq++;
	s->trapped.begin_ns = hit->begin_ns;
	s->trapped.end_ns = hit->end_ns;
}

/* Write the time of the day at @time_ns; in a recording the time from its start. */
static void write_moment(const struct sampler *s, uint64_t time_ns, char *buf, size_t size)
{
	uint64_t real_ns = s->source->real_ns(s, time_ns), first_ns;
	struct tm tm;
	time_t seconds;

	if (!real_ns) {
		first_ns = slices_at(history_slices(s->store.history), 0)->begin_ns;
		snprintf(buf, size, "+%.1f s", (double)(time_ns - first_ns) / 1e9);
		return;
	}
	seconds = (time_t)(real_ns / 1000000000);
	if (!localtime_r(&seconds, &tm) || !strftime(buf, size, "%H:%M:%S", &tm))
		snprintf(buf, size, "?");
}

/* Keep the last match for the list of messages, and count @nr more. */
static void count_matches(struct sampler *s, const struct trap_hit *last, uint32_t nr)
{
	struct profile_trap *t = &s->trapped;

	t->nr += nr;
	write_moment(s, last->begin_ns, t->at, sizeof(t->at));
	snprintf(t->what, sizeof(t->what), "%s: %.1f%%", last->rule->text, last->percent);
}

/* Report the matches of a slice and their time. */
static void say(struct sampler *s, const struct trap_hit *hit, const char *saved)
{
	char text[512];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "%s: %.1f%%", hit->rule->text, hit->percent);
	for (uint32_t i = 0; i < hit->nr_also && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "; %s: %.1f%%",
				      hit->also[i].rule->text, hit->also[i].percent);
	if (n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, " at %s%s%s", s->trapped.at,
			 saved[0] ? "; " : "", saved);
	mailbox_add(&s->mailbox, "trap: %s", text);
}

/* Test slice @i, which is that of @in. */
static void test_trapping(struct sampler *s, const struct trap_input *in, uint32_t i)
{
	struct trap_hit hit;
	char text[256] = "";

	if (!s->traps.nr || !traps_test(&s->traps, in, &hit))
		return;
	slices_mark(history_slices(s->store.history), i, SLICE_TRAP);
	if (s->config.saving.dir)
		saving_begin(&s->saving, &s->config.saving, s->recording.recorder, hit.end_ns, text,
			     sizeof(text));
	else
		show(s, &hit);
	count_matches(s, &hit, 1);
	say(s, &hit, text);
}

void trapping_test(struct sampler *s, const struct assemble_input *tables)
{
	struct slices *slices = history_slices(s->store.history);
	struct trap_input in = input_of(s, tables);

	/* Also without a trap: one that is set later is for the slices from then on. */
	for (uint32_t i = slices_find(slices, s->traps.tested_ns); i + 1 < slices_nr(slices); i++) {
		in.slice = slices_at(slices, i);
		s->traps.tested_ns = in.slice->end_ns;
		test_trapping(s, &in, i);
	}
}

/* Report the first match in a recording, and how many there are. */
static void report(struct sampler *s, const struct trap_hit *first, uint32_t nr)
{
	char at[32], more[48] = "";

	write_moment(s, first->begin_ns, at, sizeof(at));
	if (nr > 1)
		snprintf(more, sizeof(more), ", the first of %u matches", nr);
	mailbox_add(&s->mailbox, "trap: %s: %.1f%% at %s%s", first->rule->text, first->percent, at,
		    more);
}

void trapping_replay(struct sampler *s, const struct assemble_input *tables)
{
	struct slices *slices = history_slices(s->store.history);
	struct trap_input in = input_of(s, tables);
	struct trap_hit first = { .rule = NULL }, last, hit;
	uint32_t nr = 0;

	for (uint32_t i = slices_find(slices, s->traps.tested_ns);
	     s->traps.nr && i < slices_nr(slices); i++) {
		in.slice = slices_at(slices, i);
		s->traps.tested_ns = in.slice->end_ns;
		if (!traps_test(&s->traps, &in, &hit))
			continue;
		slices_mark(slices, i, SLICE_TRAP);
		if (!nr++)
			first = hit;
		last = hit;
	}
	if (!nr)
		return;
	show(s, &first);
	count_matches(s, &last, nr);
	report(s, &first, nr);
}

void trapping_again(struct sampler *s)
{
	traps_rearm(&s->traps);
	s->trapped.nr = 0;
	s->traps.tested_ns = 0;
}

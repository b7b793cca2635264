// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The traps of a session.
 *
 * Runs on: the builder.
 */
#include "sampler/trapping.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sampler/session.h"
#include "unwind/unwind.h"

/* Return the input of a test, except for the slice. */
static struct trap_input input_of(const struct sampler *s, const struct assemble_input *tables)
{
	const struct event *event = &s->config.events[0];

	return (struct trap_input){
		.tables = tables,
		.clock = event->clock,
		.hz = s->replay ? event->hz : s->rates.hz[0],
		.nr_cpus = s->replay ? replay_nr_cpus(s->replay) : s->live.nr_threads,
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
	uint64_t real_ns = time_ns, first_ns;
	struct tm tm;
	time_t seconds;

	if (s->replay && !replay_is_kept(s->replay)) {
		first_ns = slices_at(history_slices(s->store.history), 0)->begin_ns;
		snprintf(buf, size, "+%.1f s", (double)(time_ns - first_ns) / 1e9);
		return;
	}
	if (!s->replay)
		real_ns = time_real_ns(time_ns);
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

/* Report matches and their time; with the ones of the same tick: their message is replaced. */
static void say(struct sampler *s, const struct trap_hit *hit, const char *saved)
{
	struct traps *t = &s->traps;
	size_t n;

	if (t->said_seq != s->ticks.seq)
		t->said[0] = '\0';
	t->said_seq = s->ticks.seq;
	n = strlen(t->said);
	n += (size_t)snprintf(t->said + n, sizeof(t->said) - n, "%s%s: %.1f%%", n ? "; " : "",
			      hit->rule->text, hit->percent);
	for (uint32_t i = 0; i < hit->nr_also && n < sizeof(t->said); i++)
		n += (size_t)snprintf(t->said + n, sizeof(t->said) - n, "; %s: %.1f%%",
				      hit->also[i].rule->text, hit->also[i].percent);
	if (n < sizeof(t->said))
		n += (size_t)snprintf(t->said + n, sizeof(t->said) - n, " at %s", s->trapped.at);
	if (saved[0] && n < sizeof(t->said))
		snprintf(t->said + n, sizeof(t->said) - n, "; %s", saved);
	mailbox_add(&s->mailbox, "trap: %s", t->said);
}

/* Test slice @i, which is that of @in. */
static void test(struct sampler *s, const struct trap_input *in, uint32_t i)
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
		test(s, &in, i);
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

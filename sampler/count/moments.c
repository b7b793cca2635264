// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices that are open: a short list in order of time, without gaps.
 *
 * Runs on: the builder. Invariant: each count that was added is in an open slice, or in a slice of
 * the past, or among its dropped ones.
 */
#include "sampler/count/moments.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"

#define SLICE COUNTS_SLICE_NS
/* A sample is in its ring so long after its time. */
#define MARGIN_NS 2000000ULL
/* A longer time without counts, in which proftop did not run, is one slice. */
#define GAP_NS (20 * SLICE)
/* Counts may be read a little later than the time they are added at. */
#define AHEAD 100u
/* Of all open slices: beyond that the oldest are closed. */
#define COUNTS_MAX (1u << 20)

struct open_slice {
	struct slice about;
	struct count *counts;
	uint32_t nr, room;
};

struct moments {
	struct slices *past;
	struct open_slice *list;
	uint32_t nr, room;
	uint64_t next_ns; /* begin of the slice that is opened next */
	uint64_t nr_counts;
	uint16_t events;
};

int moments_new(struct moments **out, struct slices *past)
{
	struct moments *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->past = past;
	*out = m;
	return 0;
}

void moments_reset(struct moments *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < m->nr; i++)
		free(m->list[i].counts);
	m->nr = 0;
	m->nr_counts = 0;
	m->next_ns = slices_nr(m->past) ? MAX(now_ns, m->next_ns) : now_ns / SLICE * SLICE;
}

void moments_free(struct moments *m)
{
	if (!m)
		return;
	moments_reset(m, 0);
	free(m->list);
	free(m);
}

void moments_set_events(struct moments *m, uint16_t events, uint64_t now_ns)
{
	struct open_slice *last = m->nr ? &m->list[m->nr - 1] : NULL;

	if (events == m->events)
		return;
	m->events = events;
	/* No slice is of two sets. */
	while (last && last->about.begin_ns >= now_ns && m->nr > 1 && !last->nr) {
		m->nr--;
		last--;
		m->next_ns = last->about.end_ns;
	}
	if (last && last->about.begin_ns < now_ns && last->about.end_ns > now_ns)
		m->next_ns = last->about.end_ns = now_ns;
}

/* Open a slice up to @end_ns. 0 or -ENOMEM. */
static int open_until(struct moments *m, uint64_t end_ns, const struct slice *about)
{
	if (!array_reserve(&m->list, &m->room, m->nr + 1ULL))
		return -ENOMEM;
	m->list[m->nr++] = (struct open_slice){
		.about = { .begin_ns = m->next_ns,
			   .end_ns = end_ns,
			   .epoch = about->epoch,
			   .events = m->events },
	};
	m->next_ns = end_ns;
	return 0;
}

/* Return the end of a slice from @begin_ns on: the grid, but not of a part that is too short. */
static uint64_t end_after(uint64_t begin_ns)
{
	uint64_t end_ns = (begin_ns / SLICE + 1) * SLICE;

	return end_ns - begin_ns < SLICE / 2 ? end_ns + SLICE : end_ns;
}

/* Open the slices up to the one of @time_ns. 0 or -ENOMEM. */
static int open_for(struct moments *m, uint64_t time_ns, const struct slice *about)
{
	uint64_t begin_ns = time_ns / SLICE * SLICE;
	int code = 0;

	/* Samples of the moments before the first slice. */
	if (!m->nr && !slices_nr(m->past) && begin_ns < m->next_ns)
		m->next_ns = begin_ns;
	if (begin_ns > m->next_ns + GAP_NS)
		code = open_until(m, begin_ns, about);
	while (!code && m->next_ns <= time_ns)
		code = open_until(m, end_after(m->next_ns), about);
	return code;
}

/* Return the first open slice of the present events; NULL: there is none. */
static struct open_slice *first_present(const struct moments *m)
{
	uint32_t i = m->nr;

	while (i && m->list[i - 1].about.events == m->events)
		i--;
	return i < m->nr ? &m->list[i] : NULL;
}

/* Find the open slice of @time_ns; NULL: it is over. */
static struct open_slice *find(const struct moments *m, uint64_t time_ns)
{
	struct open_slice *first = first_present(m), *last = &m->list[m->nr - 1];

	if (!first || first->about.begin_ns > time_ns)
		return NULL;
	while (last->about.begin_ns > time_ns)
		last--;
	return last;
}

/* Return the slice for counts of a time when other events were sampled; NULL: no memory. */
static struct open_slice *nearest(struct moments *m, const struct slice *about)
{
	struct open_slice *first = first_present(m);

	return first || open_for(m, m->next_ns, about) ? first : &m->list[m->nr - 1];
}

static int append(struct moments *m, struct open_slice *to, const struct count *counts, uint32_t nr)
{
	if (!array_reserve(&to->counts, &to->room, (uint64_t)to->nr + nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		to->counts[to->nr++] = counts[i];
	m->nr_counts += nr;
	return 0;
}

/* Add the counts of one slice, which has @time_ns. 0 or -ENOMEM. */
static int add_group(struct moments *m, uint64_t time_ns, struct count *counts, uint32_t nr,
		     const struct slice *about)
{
	int code = open_for(m, time_ns, about);
	struct open_slice *to = code ? NULL : find(m, time_ns);

	if (code || to)
		return code ? code : append(m, to, counts, nr);
	code = slices_add_late(m->past, time_ns, m->events, counts, nr);
	if (code != -ENOENT)
		return code;
	to = nearest(m, about);
	return to ? append(m, to, counts, nr) : -ENOMEM;
}

static int by_age(const void *a, const void *b)
{
	return -COMPARE(((const struct count *)a)->slice, ((const struct count *)b)->slice);
}

/* Number the slices of counts back from the newest possible one. Report whether they differ. */
static bool set_ages(struct count *counts, uint32_t nr, uint32_t newest)
{
	bool differ = false;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t age = (newest - counts[i].slice) & (COUNTS_SLICES - 1);

		counts[i].slice = age;
		differ |= age != counts[0].slice;
	}
	return differ;
}

int moments_add(struct moments *m, struct count *counts, uint32_t nr, uint64_t now_ns,
		const struct slice *about)
{
	uint64_t newest = now_ns / SLICE + AHEAD;
	int code = 0;

	if (now_ns > m->next_ns + MOMENTS_STOP_NS)
		code = open_until(m, (now_ns - MOMENTS_STOP_NS / 2) / SLICE * SLICE, about);
	if (set_ages(counts, nr, tables_slice(newest * SLICE)))
		qsort(counts, nr, sizeof(*counts), by_age);
	for (uint32_t i = 0, to; i < nr; i = to) {
		uint64_t slice = newest - MIN(newest, counts[i].slice);
		int failed;

		for (to = i + 1; to < nr && counts[to].slice == counts[i].slice;)
			to++;
		failed = add_group(m, slice * SLICE + SLICE / 2, counts + i, to - i, about);
		code = code ? code : failed;
	}
	if (!code)
		code = open_for(m, now_ns, about);
	if (m->nr)
		m->list[m->nr - 1].about.marks |= about->marks;
	return code;
}

bool moments_note(struct moments *m, unsigned int marks, uint64_t lost, uint64_t throttled)
{
	struct slice *about = m->nr ? &m->list[m->nr - 1].about : NULL;

	if (!about)
		return false;
	about->marks |= (uint16_t)marks;
	about->lost += lost;
	about->throttled += throttled;
	return true;
}

/* Close the first @nr slices. 0, or -ENOMEM: some are lost. */
static int close_first(struct moments *m, uint32_t nr)
{
	int code = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct open_slice *slice = &m->list[i];
		int failed = slices_add(m->past, slice->counts, slice->nr, &slice->about);

		code = code ? code : failed;
		m->nr_counts -= slice->nr;
		free(slice->counts);
	}
	m->nr -= nr;
	for (uint32_t i = 0; nr && i < m->nr; i++)
		m->list[i] = m->list[nr + i];
	return code;
}

int moments_close(struct moments *m, uint64_t complete_ns)
{
	uint64_t left = m->nr_counts;
	uint32_t nr = 0;

	while (nr < m->nr && (m->list[nr].about.end_ns + MARGIN_NS <= complete_ns ||
			      (left > COUNTS_MAX && nr + 1 < m->nr)))
		left -= m->list[nr++].nr;
	return close_first(m, nr);
}

int moments_finish(struct moments *m)
{
	return close_first(m, m->nr);
}

void moments_map_tasks(struct moments *m, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < m->nr; i++)
		for (uint32_t k = 0; k < m->list[i].nr; k++) {
			struct count *c = &m->list[i].counts[k];

			c->task = ids->task(ids->ctx, c->task);
		}
}

void moments_map_stacks(struct moments *m, const struct history_ids *ids)
{
	for (uint32_t i = 0; i < m->nr; i++)
		for (uint32_t k = 0; k < m->list[i].nr; k++) {
			struct count *c = &m->list[i].counts[k];

			if (c->stack != STACK_NONE)
				c->stack = ids->stack(ids->ctx, c->stack);
		}
}

size_t moments_memory(const struct moments *m)
{
	size_t size = sizeof(*m) + m->room * sizeof(*m->list);

	for (uint32_t i = 0; i < m->nr; i++)
		size += m->list[i].room * sizeof(struct count);
	return size;
}

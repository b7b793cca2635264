// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The heat strip from the slices.
 *
 * Runs on: the builder. Whether a stack counts is computed once for each query, from its places.
 */
#include "sampler/profile/strip_make.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

/* A slice that was ended early has samples of the moment before: it counts as a whole one. */
#define SLICE_MIN_NS 100000000ULL

enum { UNKNOWN, NO, YES };

static void forget(struct strip_filter *f)
{
	free(f->stacks);
	free(f->places);
	free(f->tasks);
	free(f->names);
	f->stacks = f->places = f->tasks = f->names = NULL;
	f->nr_stacks = f->nr_places = f->nr_tasks = f->nr_names = 0;
}

/* Free the compiled filter of the query. */
static void drop_made(struct strip_filter *f)
{
	if (f->made)
		f->query->matcher->free(f->made);
	f->made = NULL;
}

void strip_filter_fini(struct strip_filter *f)
{
	forget(f);
	drop_made(f);
	free(f->query);
	f->query = NULL;
}

void strip_filter_set(struct strip_filter *f, struct strip_query *query)
{
	if (!f->query || !query || !strip_same_samples(f->query, query)) {
		forget(f);
		drop_made(f);
		f->seq++;
		if (query && query->filter[0])
			f->made = query->matcher->make(query->filter);
	}
	free(f->query);
	f->query = query;
}

/* Grow an array of answers to @nr. False: no memory. */
static bool grow(uint8_t **list, uint32_t *nr, uint32_t wanted)
{
	uint8_t *larger;

	if (wanted <= *nr)
		return true;
	wanted += wanted / 2 + 64;
	larger = realloc(*list, wanted);
	if (!larger)
		return false;
	memset(larger + *nr, UNKNOWN, wanted - *nr);
	*list = larger;
	*nr = wanted;
	return true;
}

/* Return whether functions are compared. */
static bool has_functions(const struct strip_filter *f)
{
	return f->query->function != STRIP_ALL || (f->made && !f->query->only_tasks);
}

static bool is_wanted(const struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct symbol *symbol;

	if (!f->made)
		return id == f->query->function;
	symbol = symbols_at(in->symbols, id);
	return symbol &&
	       f->query->matcher->finds(f->made, &(struct strip_name){ symbol->name, symbol->module,
								       symbol->kind });
}

static bool test_place(const struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct place *place = places_at(in->places, id);
	const struct symbol_frame *frames;
	uint32_t symbol = SYMBOL_NONE, nr = 0;

	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	if (place)
		symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	if (symbol >= symbols_nr(in->symbols))
		return !f->made && f->query->function == (ASSEMBLE_PLACE | id);
	if (is_wanted(f, in, symbol))
		return true;
	frames = symbols_source(in->symbols, id, &nr);
	for (uint32_t i = 0; frames && i < nr; i++)
		if (frames[i].symbol != SYMBOL_NONE && is_wanted(f, in, frames[i].symbol))
			return true;
	return false;
}

static bool has_place(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	if (!grow(&f->places, &f->nr_places, id + 1))
		return false;
	if (f->places[id] == UNKNOWN)
		f->places[id] = test_place(f, in, id) ? YES : NO;
	return f->places[id] == YES;
}

static bool has_stack(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const uint32_t *places;
	uint32_t nr;

	if (id == STACK_NONE || !grow(&f->stacks, &f->nr_stacks, id + 1))
		return false;
	if (f->stacks[id] != UNKNOWN)
		return f->stacks[id] == YES;
	places = stacks_at(in->stacks, id, &nr);
	f->stacks[id] = NO;
	for (uint32_t i = 0; places && i < nr && f->stacks[id] == NO; i++)
		if (has_place(f, in, places[i]))
			f->stacks[id] = YES;
	return f->stacks[id] == YES;
}

static bool has_task(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct strip_query *q = f->query;
	const struct task *t;

	if (q->process == STRIP_ALL && q->thread == STRIP_ALL)
		return true;
	if (!grow(&f->tasks, &f->nr_tasks, id + 1))
		return false;
	if (f->tasks[id] == UNKNOWN) {
		t = maps_task(in->maps, id);
		f->tasks[id] = t && (q->process == STRIP_ALL || t->process == q->process) &&
					       (q->thread == STRIP_ALL || t->number == q->thread)
				       ? YES
				       : NO;
	}
	return f->tasks[id] == YES;
}

/* Report whether the filter finds the name of a task or of its process. */
static bool is_named(struct strip_filter *f, const struct assemble_input *in, uint32_t id)
{
	const struct strip_matcher *m = f->query->matcher;
	const struct task *t;

	if (!grow(&f->names, &f->nr_names, id + 1))
		return false;
	if (f->names[id] == UNKNOWN) {
		t = maps_task(in->maps, id);
		f->names[id] =
			t && (m->finds(f->made, &(struct strip_name){ .name = t->comm }) ||
			      m->finds(f->made, &(struct strip_name){ .name = t->process_comm }))
				? YES
				: NO;
	}
	return f->names[id] == YES;
}

/* Report whether the function or the filter of the query selects a sample. */
static bool is_selected(struct strip_filter *f, const struct assemble_input *in,
			const struct count *c)
{
	if (!f->made)
		return f->query->function == STRIP_ALL || has_stack(f, in, c->stack);
	return f->query->inverted !=
	       ((has_functions(f) && has_stack(f, in, c->stack)) || is_named(f, in, c->task));
}

/* Return the weight per second of the selected samples of a slice. */
static double amount(struct strip_filter *f, const struct strip_input *in,
		     const struct slice *slice)
{
	uint8_t event = slice->events < in->nr_events ? in->events[slice->events] : STRIP_NO_EVENT;
	uint64_t ns = MAX(slice->end_ns - slice->begin_ns, SLICE_MIN_NS);
	struct slice_reader r;
	struct count c;
	double weight = 0;

	if (event == STRIP_NO_EVENT)
		return 0;
	for (slice_read_begin(&r, slice); slice_read(&r, &c);)
		if (c.event == event && has_task(f, in->tables, c.task) &&
		    is_selected(f, in->tables, &c))
			weight += (double)c.weight;
	return weight * 1e9 / (double)ns;
}

/* Add a slice to the column of its middle; one longer than a column, to all that it covers. */
static void add_slice(struct strip *s, const struct slice *slice, double peak)
{
	uint64_t length = slice->end_ns - slice->begin_ns;
	uint32_t middle = strip_column_at(s, slice->begin_ns + length / 2);
	bool is_long = length > s->column_ns;
	uint32_t first = is_long ? strip_column_at(s, slice->begin_ns) : middle;
	uint32_t last = is_long ? strip_column_at(s, slice->end_ns - 1) : middle;

	s->columns[middle].marks |= slice->marks;
	for (uint32_t i = first; i <= last; i++) {
		struct strip_column *c = &s->columns[i];

		if (c->end_ns && peak <= c->peak)
			continue;
		c->peak = peak;
		c->begin_ns = slice->begin_ns;
		c->end_ns = slice->end_ns;
		s->max = MAX(s->max, peak);
	}
}

/* Return a round length of columns of which @columns cover @span_ns. */
static uint64_t column_length(uint64_t span_ns, uint32_t columns)
{
	static const unsigned int steps[] = { 2, 5, 10 };
	uint64_t unit = 100000000ULL, length = unit;

	for (unsigned int i = 0; length * columns < span_ns && length < UINT64_MAX / 100; i++) {
		length = unit * steps[i % 3];
		if (i % 3 == 2)
			unit *= 10;
	}
	return length;
}

/* Set the times of the columns: the last one has the newest slice, and they move in whole columns.
 */
static void lay_out(struct strip *s, const struct strip_query *q)
{
	uint64_t span = s->last_ns - s->first_ns, end;

	if (q->span_ns)
		span = MIN(span, q->span_ns);
	/* The first and the last column are cut by the grid. */
	s->column_ns = column_length(span, q->columns > 1 ? q->columns - 1 : 1);
	end = (s->last_ns + s->column_ns - 1) / s->column_ns * s->column_ns;
	s->nr = (uint32_t)MIN((end - s->first_ns + s->column_ns - 1) / s->column_ns,
			      (uint64_t)q->columns);
	s->nr = MAX(s->nr, 1u);
	s->begin_ns = end - s->nr * s->column_ns;
}

/* Forget answers that other tables or new names made wrong. */
static void refresh(struct strip_filter *f, const struct strip_input *in)
{
	uint32_t of = stacks_serial(in->tables->stacks);

	if (f->of == of && (f->nr_named == in->nr_named || !has_functions(f)))
		return;
	forget(f);
	f->of = of;
	f->nr_named = in->nr_named;
}

struct strip *strip_make(struct strip_filter *f, const struct strip_input *in)
{
	const struct strip_query *q = f->query;
	uint32_t nr = slices_nr(in->slices);
	uint64_t count, weight;
	struct strip *s;

	if (!q || !q->columns || !nr)
		return NULL;
	assert(q->columns <= STRIP_COLUMNS_MAX);
	s = calloc(1, sizeof(*s) + q->columns * sizeof(s->columns[0]));
	if (!s)
		return NULL;
	refresh(f, in);
	s->first_ns = slices_at(in->slices, 0)->begin_ns;
	s->last_ns = slices_at(in->slices, nr - 1)->end_ns;
	s->dropped = slices_dropped(in->slices, &count, &weight);
	s->merged = slices_merged(in->slices);
	lay_out(s, q);
	for (uint32_t i = slices_find(in->slices, s->begin_ns); i < nr; i++) {
		const struct slice *slice = slices_at(in->slices, i);

		if (slice->amount_seq != f->seq)
			slices_set_amount(in->slices, i, amount(f, in, slice), f->seq);
		add_slice(s, slice, slice->amount);
	}
	return s;
}

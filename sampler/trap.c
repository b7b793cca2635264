// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules on the slices of the history.
 *
 * Runs on: the builder. Functions are found by name once, in the symbols that are new; a slice is
 * then tested by ids.
 */
#include "sampler/trap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nodes of two trees, matched by name: each once, in order where several have one name, and in time
 * for names that others chose.
 * Live: reads a clock.
 */
#include "ui/view/baseline.c"

#include <stdio.h>
#include <stdlib.h>

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "ui/state/state.h"
#include "ui/fold/fold.h"

#define NAME_SIZE 400

/* A profile with functions, and a tree with a root and one child for each, in their order. */
struct side {
	struct profile p;
	struct folds_tree t;
	char *texts;
};

static void init_side(struct side *s, uint32_t nr)
{
	*s = (struct side){ .p = { .nr_functions = nr } };
	s->p.functions = xcalloc(nr, sizeof(*s->p.functions));
	s->t.fold.nodes = xcalloc(nr + 1, sizeof(*s->t.fold.nodes));
	s->t.fold.nr_nodes = nr + 1;
	s->texts = xcalloc(nr, NAME_SIZE);
	for (uint32_t i = 0; i <= nr; i++)
		s->t.fold.nodes[i] = (struct fold_tree_node){
			.function = i ? i - 1 : FOLD_NONE,
			.process = FOLD_NONE,
			.task = FOLD_NONE,
			.parent = i ? 0 : FOLD_NONE,
			.child = i || !nr ? FOLD_NONE : 1,
			.next = i && i < nr ? i + 1 : FOLD_NONE,
		};
}

static void fini_side(struct side *s)
{
	free(s->p.functions);
	free(s->t.fold.nodes);
	free(s->texts);
}

/* Name a function by a number with zeros before it, which fill @width letters. */
static void set_name(struct side *s, uint32_t function, int width, uint32_t number)
{
	char *text = s->texts + (size_t)function * NAME_SIZE;
	int size = snprintf(text, NAME_SIZE, "%0*u", width, number);

	s->p.functions[function].name = (struct safe_text){ text, (uint32_t)size, (uint32_t)size };
}

static void match(const struct side *old, const struct side *now, uint32_t *to_now,
		  uint32_t *to_old)
{
	baseline_match_nodes(&old->p, &old->t, &now->p, &now->t, false, to_now, to_old);
}

TEST(test_names)
{
	static const uint32_t old_names[] = { 7, 8, 7, 9 };
	static const uint32_t now_names[] = { 9, 7, 5, 7, 7 };
	static const uint32_t want[] = { 4, 1, BASELINE_NONE, 3, BASELINE_NONE };
	uint32_t to_now[5], to_old[6];
	struct side old, now;

	init_side(&old, ARRAY_SIZE(old_names));
	init_side(&now, ARRAY_SIZE(now_names));
	for (uint32_t i = 0; i < ARRAY_SIZE(old_names); i++)
		set_name(&old, i, 1, old_names[i]);
	for (uint32_t i = 0; i < ARRAY_SIZE(now_names); i++)
		set_name(&now, i, 1, now_names[i]);
	match(&old, &now, to_now, to_old);
	assert_int_equal(to_old[0], 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(to_old[i + 1], want[i]);
		if (want[i] != BASELINE_NONE)
			assert_int_equal(to_now[want[i]], i + 1);
	}
	assert_int_equal(to_now[2], BASELINE_NONE);
	fini_side(&old);
	fini_side(&now);
}

/* Many functions of one caller, which are others in each phase of a program, with long names. */
TEST(test_many)
{
	const uint32_t nr = 10000;
	uint32_t *to_now = xcalloc(nr + 1, sizeof(*to_now));
	uint32_t *to_old = xcalloc(nr + 1, sizeof(*to_old));
	struct side old, now;
	uint64_t begin_ns;

	init_side(&old, nr);
	init_side(&now, nr);
	for (uint32_t i = 0; i < nr; i++) {
		set_name(&old, i, 390, i);
		set_name(&now, i, 390, nr - 1 + i);
	}
	begin_ns = time_thread_ns();
	match(&old, &now, to_now, to_old);
	assert_true(time_thread_ns() - begin_ns < 2000000000);
	assert_int_equal(to_old[1], nr);
	assert_int_equal(to_now[nr], 1);
	for (uint32_t i = 2; i <= nr; i++)
		assert_int_equal(to_old[i], BASELINE_NONE);
	fini_side(&old);
	fini_side(&now);
	free(to_now);
	free(to_old);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Callers and callees of one function; parts that tree and flame graph share.
 *
 * Runs on: the main thread.
 *
 * The callers' shares sum to the function's total; so do its self share and the callees'.
 * Identities: 0 the function, odd a caller, even a callee.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/* The kind of a row, in its @nr. */
enum part { CALLER, CENTRE, CALLEE };

static uint32_t centre_of(const struct ui_state *st)
{
	const struct folds *s = st->folds;

	return s && s->nr_centres ? folds_function(st->shown, s->centres[s->nr_centres - 1])
				  : FOLD_NONE;
}

static uint64_t id_of(const struct ui_state *st, enum part part, const struct fold_neighbour *n)
{
	uint64_t id = n->function == FOLD_NONE ? 1ull << 32 : st->shown->functions[n->function].id;

	return (id + 1) << 1 | (part == CALLER);
}

static int add(const struct ui_state *st, struct list *list, enum part part,
	       const struct fold_neighbour *n, double all)
{
	struct row *row = list_add(list);

	if (!row)
		return -ENOMEM;
	row->id = id_of(st, part, n);
	row->index = n->function;
	row->nr = part;
	row->count = n->count;
	row->total = all > 0 ? n->weight / all : 0;
	return 0;
}

/* Add callers or callees, in the order of the profile before where noise alone changed it. */
static int add_part(const struct ui_state *st, struct list *list, enum part part,
		    const struct fold_neighbour *neighbours, uint32_t nr, double all)
{
	struct order_sibling *siblings = calloc(nr + 1ull, sizeof(*siblings));
	uint32_t *order = calloc(nr + 1ull, sizeof(*order));
	int rc = siblings && order ? 0 : -ENOMEM;

	assert(!nr || neighbours);
	for (uint32_t i = 0; i < nr && !rc; i++)
		siblings[i] = (struct order_sibling){ id_of(st, part, &neighbours[i]),
						      all > 0 ? neighbours[i].weight / all : 0,
						      neighbours[i].count };
	if (!rc)
		order_siblings(st, list, siblings, nr, part == CALLER, order);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = add(st, list, part, &neighbours[order[part == CALLER ? nr - 1 - i : i]], all);
	free(siblings);
	free(order);
	return rc;
}

/* Add the rows, the lightest caller first: the hottest callers and callees are next to the
 * function. */
static int build(const struct ui_state *st, struct list *list)
{
	uint32_t centre = centre_of(st);
	const struct fold_callers *c;
	int rc = 0;
	struct row *row;

	if (centre == FOLD_NONE) {
		/* The function has no samples in this profile. */
		const struct fold_functions *all = folds_functions(st);

		list->count = all ? all->count : 0;
		return 0;
	}
	c = folds_callers(st);
	if (!c)
		return 0;
	list->count = c->all_count;
	order_begin(st, list, c->all_weight > 0 ? st->shown->functions[centre].id : 0);
	rc = add_part(st, list, CALLER, c->callers, c->nr_callers, c->all_weight);
	row = rc ? NULL : list_add(list);
	if (!row)
		return -ENOMEM;
	row->index = centre;
	row->nr = CENTRE;
	row->count = c->count;
	row->self = c->all_weight > 0 ? c->self / c->all_weight : 0;
	row->total = c->all_weight > 0 ? c->total / c->all_weight : 0;
	rc = add_part(st, list, CALLEE, c->callees, c->nr_callees, c->all_weight);
	order_end(list);
	return rc;
}

static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return row->index;
}

static struct safe_text name_of(const struct ui_state *st, const struct row *row)
{
	return row->index == FOLD_NONE ? TEXT("(none: the stack starts here)")
				       : st->shown->functions[row->index].name;
}

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	return name_of(st, row);
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	/* A filter never hides the function. */
	if (row->nr == CENTRE && m == &st->lists[VIEW_CALLERS].filter)
		return !m->negate;
	return row->index == FOLD_NONE ? match_finds(m, name_of(st, row))
				       : match_finds_name(m, &st->shown->functions[row->index]);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	uint32_t centre = centre_of(st);
	const struct fold_callers *all = centre == FOLD_NONE ? NULL : folds_callers(st);
	double total = all && all->all_weight > 0 ? all->total / all->all_weight : 0;

	/* Draw the share of the function's total. */
	view_draw_bar(st, c, at, total > 0 ? row->total / total : 0,
		      row->nr == CENTRE ? ROLE_BAR_HOT : ROLE_BAR);
}

static void draw_part(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[FORMAT_MAX + 8], share[FORMAT_MAX];

	if (row->nr == CENTRE)
		canvas_text(c, at.row, at.col, at.cols,
			    text_format(buf, sizeof(buf), "self %s",
					format_percent(share, row->self).str),
			    (struct style){ ROLE_VALUE, 0 });
	else
		canvas_text(c, at.row, at.col, at.cols,
			    row->nr == CALLER ? TEXT("caller") : TEXT("callee"),
			    (struct style){ ROLE_DIM, 0 });
}

static void draw_name(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	const struct list *list = &st->lists[VIEW_CALLERS];
	bool found = match_active(&list->search) && !list->search.negate &&
		     finds(st, row, &list->search);
	struct style style = { row->index == FOLD_NONE
				       ? ROLE_DIM
				       : theme_kind(st->shown->functions[row->index].kind),
			       found ? CELL_UNDERLINE | CELL_BOLD : 0 };

	char buf[TEXT_MAX];

	if (row->nr == CENTRE)
		style.flags |= CELL_BOLD;
	canvas_elide(c, at.row, at.col, at.cols, ui_state_name(st, buf, name_of(st, row)), style);
}

/* Explain recursion. */
static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	uint32_t centre = centre_of(st);
	const struct fold_callers *c = centre == FOLD_NONE ? NULL : folds_callers(st);
	char buf[160], share[FORMAT_MAX];

	if (!c || !(c->recursive > 0))
		return 0;
	text_format(buf, sizeof(buf),
		    "in %s%% of all samples, up to %u times; counted with the outermost caller and "
		    "the innermost callee",
		    format_percent(share, c->recursive / c->all_weight).str, c->depth_max);
	foot_text(f, TEXT("recursive"), buf);
	return f->used;
}

/* Go back to the previous function, or to the view before. */
static void back(struct ui_state *st)
{
	struct folds *s = st->folds;

	st->lists[VIEW_CALLERS].selected = 0;
	st->lists[VIEW_CALLERS].pinned = true;
	if (s->nr_centres > 1) {
		s->nr_centres--;
		table_rebuild(st, VIEW_CALLERS);
		return;
	}
	s->nr_centres = 0;
	navigate_to(st, s->callers_from);
}

static bool act(struct ui_state *st, enum action action, uint32_t code)
{
	uint32_t fn;

	if (action == ACT_OPEN || action == ACT_CALLERS) {
		fn = view_function(st);
		if (fn != FOLD_NONE)
			navigate_to_callers(st, st->shown->functions[fn].id);
		return true;
	}
	if (action != ACT_BACK || !st->folds)
		return false;
	back(st);
	return true;
}

enum { TOTAL, CHANGE, BAR, PART, SAMPLES, KIND, NAME, MODULE };

static const struct view_column columns[] = {
	[TOTAL] = { .title = TEXT("TOTAL%"), .width = 6, .right = true, .draw = table_total },
	[CHANGE] = TABLE_CHANGE("TOTAL%"),
	[BAR] = { .title = TEXT(""),
		  .name = "bar",
		  .help = "the share as a bar",
		  .width = 8,
		  .wide = 16,
		  .from = 60,
		  .draw = draw_bar },
	[PART] = { .title = TEXT("IS"), .width = 10, .draw = draw_part },
	[SAMPLES] = TABLE_SAMPLES(10, 120),
	[KIND] = { .title = TEXT(" "), .name = "kind", .width = 1, .draw = table_kind },
	[NAME] = { .title = TEXT("FUNCTION"), .draw = draw_name },
	[MODULE] = { .title = TEXT("MODULE"),
		     .width = 14,
		     .wide = 18,
		     .from = 76,
		     .ascending = true,
		     .extra = true,
		     .draw = table_module },
};

static uint64_t identity(const struct ui_state *st, const struct row *row)
{
	uint32_t fn = function(st, row);

	return hash_u64(row->nr) + (fn == FOLD_NONE ? 0 : baseline_match_name(st->shown, fn));
}

static const struct view_label labels[] = { { ACT_OPEN, "Centre" }, { ACT_NONE, NULL } };

const struct view view_callers = {
	.title = TEXT("Callers"),
	.context = CTX_LIST,
	.scoped = true,
	.when_shown = true,
	.labels = labels,
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.build = build,
	.own_order = true,
	.compared = COMPARED_TOTAL,
	.name = name,
	.identity = identity,
	.finds = finds,
	.foot = foot,
	.function = function,
	.act = act,
};

/*
 * Code shared by the call tree and the flame graph. Runs on: the main thread.
 */

void callers_stacks_turn(struct ui_state *st, enum action action)
{
	struct folds *s = st->folds;

	if (!s)
		return;
	if (action == ACT_INVERT) {
		s->bottom_up = !s->bottom_up;
		ui_state_say(st, false,
			     s->bottom_up ? "bottom-up: callers below each function"
					  : "top-down: callees below each function");
	} else {
		s->fold_recursion = !s->fold_recursion;
		ui_state_say(st, false,
			     s->fold_recursion ? "recursive calls folded"
					       : "recursive calls shown");
	}
	st->lists[st->view].pinned = false;
	table_rebuild(st, st->view);
}

bool *callers_stacks_keep_found(const struct ui_state *st, const struct list *list,
				const struct folds_tree *t)
{
	const struct match *m = &list->filter;
	bool *keep, *found;

	if (!match_active(m))
		return NULL;
	keep = calloc(t->fold.nr_nodes, sizeof(*keep));
	found = calloc(st->shown->nr_functions + 1ULL, sizeof(*found));
	if (!keep || !found) {
		free(keep);
		free(found);
		return NULL;
	}
	/* Match once per function: there may be thousands of nodes. */
	for (uint32_t i = 0; i < st->shown->nr_functions; i++)
		found[i] = match_finds_function(m, &st->shown->functions[i]) != m->negate;
	for (uint32_t n = t->fold.nr_nodes; n-- > 0;) {
		const struct fold_tree_node *node = &t->fold.nodes[n];
		char buf[TEXT_MAX];

		if (node->function != FOLD_NONE)
			keep[n] |= found[node->function];
		else if (node->depth)
			keep[n] |= match_finds(m, folds_text(st, node, buf, sizeof(buf))) !=
				   m->negate;
		if (keep[n] && node->parent != FOLD_NONE)
			keep[node->parent] = true;
	}
	free(found);
	return keep;
}

/* Return whether the node matches. @found: by function, so that each name is searched once. */
static bool is_found(const struct ui_state *st, const struct fold_tree_node *node,
		     const struct match *m, const bool *found)
{
	/* Without a match there is always a process: of functions alone. */
	return node->function != FOLD_NONE ? found[node->function]
					   : !m->negate && folds_finds(st, node, m);
}

double callers_stacks_found_share(const struct ui_state *st, const struct folds_tree *of,
				  const struct match *m)
{
	const struct fold_tree *t = &of->fold;
	bool *found = calloc(st->shown->nr_functions + 1ULL, sizeof(*found));
	double sum = 0;
	uint32_t n = 0;

	if (!found)
		return 0;
	for (uint32_t i = 0; i < st->shown->nr_functions; i++)
		found[i] = match_finds_name(m, &st->shown->functions[i]) != m->negate;
	while (n != FOLD_NONE) {
		bool here = is_found(st, &t->nodes[n], m, found);

		if (here)
			sum += t->nodes[n].total;
		if (!here && t->nodes[n].child != FOLD_NONE) {
			n = t->nodes[n].child;
			continue;
		}
		while (n != FOLD_NONE && t->nodes[n].next == FOLD_NONE)
			n = t->nodes[n].parent;
		if (n != FOLD_NONE)
			n = t->nodes[n].next;
	}
	free(found);
	return t->weight > 0 ? sum / t->weight : 0;
}

size_t callers_stacks_options(const struct ui_state *st, char *buf, size_t size)
{
	bool folded = st->folds && st->folds->fold_recursion;

	const char *by = st->by_thread				  ? "  by thread (H)"
			 : st->scope.drilled			  ? ""
			 : st->set.grouping == GROUPING_PID	  ? "  by PID (=)"
			 : st->set.grouping == GROUPING_CONTAINER ? "  by container (=)"
			 : st->set.grouping == GROUPING_UNIT	  ? "  by unit (=)"
								  : "";

	return (size_t)snprintf(buf, size, "%s%s", by, folded ? "  recursion folded (X)" : "");
}

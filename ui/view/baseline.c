// SPDX-License-Identifier: GPL-2.0-or-later
/* Compare the rows with the rows of a kept profile. Runs on: the main thread. */
#include "ui/view/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/fold/fold.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

/*
 * Rows and nodes of two profiles, matched by id, then by name. Any thread.
 */

/* A row of either profile. */
struct baseline_key {
	uint64_t id, name; /* @name: hash of all that survives a rebuild */
	uint32_t index;	   /* of the row */
	uint32_t other;	   /* index of its row in the other profile; BASELINE_NONE: none */
};

/* Append a name to a hash; names that are compared are many, and as long as others chose. */
static uint64_t add_name(uint64_t h, struct safe_text text)
{
	return hash_u64(h + keyhash_name(text.str, text.str ? text.size : 0));
}

uint64_t baseline_match_text(struct safe_text text)
{
	return add_name(0, text);
}

uint64_t baseline_match_name(const struct profile *p, uint32_t function)
{
	const struct profile_function *f = &p->functions[function];

	assert(function < p->nr_functions);
	return add_name(add_name(1, f->module) + f->inlined, f->name);
}

/* ---- rows ---- */

static int by_id(const void *pa, const void *pb)
{
	const struct baseline_key *a = pa, *b = pb;

	return COMPARE(a->id, b->id);
}

/* Matched ones last; equal names in order of their ids. */
static int compare_names(const void *pa, const void *pb)
{
	const struct baseline_key *a = pa, *b = pb;
	bool a_done = a->other != BASELINE_NONE, b_done = b->other != BASELINE_NONE;

	if (a_done != b_done)
		return a_done - b_done;
	return a->name != b->name ? COMPARE(a->name, b->name) : by_id(a, b);
}

static void pair(struct baseline_key *old, struct baseline_key *now)
{
	old->other = now->index;
	now->other = old->index;
}

/*
 * Set @other of all keys; sorts both arrays. Rows of one name are matched in order. @ids: both are
 * of one session, so that equal ids are the same function.
 */
static void baseline_match_rows(struct baseline_key *old, uint32_t nr_old, struct baseline_key *now,
				uint32_t nr_now, bool ids)
{
	for (uint32_t i = 0; i < nr_old; i++)
		old[i].other = BASELINE_NONE;
	for (uint32_t i = 0; i < nr_now; i++)
		now[i].other = BASELINE_NONE;
	if (!nr_old || !nr_now)
		return;
	qsort(old, nr_old, sizeof(*old), by_id);
	qsort(now, nr_now, sizeof(*now), by_id);
	for (uint32_t i = 0, k = 0; ids && i < nr_now && k < nr_old;) {
		if (old[k].id == now[i].id)
			pair(&old[k++], &now[i++]);
		else if (old[k].id < now[i].id)
			k++;
		else
			i++;
	}
	qsort(old, nr_old, sizeof(*old), compare_names);
	qsort(now, nr_now, sizeof(*now), compare_names);
	for (uint32_t i = 0, k = 0; i < nr_now && k < nr_old && now[i].other == BASELINE_NONE &&
				    old[k].other == BASELINE_NONE;) {
		if (old[k].name == now[i].name)
			pair(&old[k++], &now[i++]);
		else if (old[k].name < now[i].name)
			k++;
		else
			i++;
	}
}

/* ---- nodes ---- */

/* Hash the name of one node, without its path. */
static uint64_t node_name(const struct profile *p, const struct fold_tree_node *node)
{
	if (node->function != FOLD_NONE)
		return baseline_match_name(p, node->function);
	if (node->task != FOLD_NONE)
		return add_name(2, p->tasks[node->task].comm);
	return node->process != FOLD_NONE ? add_name(3, p->processes[node->process].comm) : 4;
}

/* A node without a match. */
struct child {
	uint64_t name;
	uint32_t parent, order; /* order: among its siblings */
	uint32_t node;
	uint32_t nr_taken; /* of the first of its parent and name: matched since */
};

static int by_parent(const void *pa, const void *pb)
{
	const struct child *a = pa, *b = pb;

	if (a->parent != b->parent)
		return COMPARE(a->parent, b->parent);
	return a->name != b->name ? COMPARE(a->name, b->name) : COMPARE(a->order, b->order);
}

/* List the nodes without a match, sorted; NULL: no memory. */
static struct child *list_children(const struct profile *p, const struct fold_tree *t,
				   const uint32_t *matches, uint32_t *nr)
{
	struct child *list = malloc((t->nr_nodes + 1ULL) * sizeof(*list));

	*nr = 0;
	for (uint32_t parent = 0; list && parent < t->nr_nodes; parent++)
		for (uint32_t n = t->nodes[parent].child; n != FOLD_NONE; n = t->nodes[n].next) {
			if (matches[n] != BASELINE_NONE)
				continue;
			list[*nr] = (struct child){ node_name(p, &t->nodes[n]), parent, *nr, n, 0 };
			++*nr;
		}
	if (list)
		qsort(list, *nr, sizeof(*list), by_parent);
	return list;
}

/* Take the next child of @parent of that name out of @list; FOLD_NONE: none is left. */
static uint32_t take_child(struct child *list, uint32_t nr, uint32_t parent, uint64_t name)
{
	const struct child key = { .name = name, .parent = parent };
	size_t first = search_split(nr, i, by_parent(&list[i], &key) < 0), at;

	if (first == nr)
		return FOLD_NONE;
	at = first + list[first].nr_taken;
	if (at >= nr || list[at].parent != parent || list[at].name != name)
		return FOLD_NONE;
	list[first].nr_taken++;
	return list[at].node;
}

/*
 * Match the nodes of two trees: nodes match if their parents match. Set by node the node of the
 * other tree in @to_now and @to_old; BASELINE_NONE: none. @ids: as above. Without memory nodes are
 * matched by id alone.
 */
static void baseline_match_nodes(const struct profile *old_profile, const struct folds_tree *old,
				 const struct profile *now_profile, const struct folds_tree *now,
				 bool ids, uint32_t *to_now, uint32_t *to_old)
{
	struct child *list;
	uint32_t nr;

	for (uint32_t n = 0; n < old->fold.nr_nodes; n++) {
		to_now[n] = ids ? folds_node(now, old->ids[n]) : n ? BASELINE_NONE : 0;
		assert(to_now[n] == BASELINE_NONE || to_now[n] < now->fold.nr_nodes);
	}
	for (uint32_t n = 0; n < now->fold.nr_nodes; n++)
		to_old[n] = ids ? folds_node(old, now->ids[n]) : n ? BASELINE_NONE : 0;
	list = list_children(old_profile, &old->fold, to_now, &nr);
	/* Parents are before their children. */
	for (uint32_t n = 1; list && n < now->fold.nr_nodes; n++) {
		const struct fold_tree_node *node = &now->fold.nodes[n];
		uint32_t parent = to_old[node->parent], match;

		if (to_old[n] != BASELINE_NONE || parent == BASELINE_NONE)
			continue;
		match = take_child(list, nr, parent, node_name(now_profile, node));
		if (match == FOLD_NONE)
			continue;
		to_old[n] = match;
		to_now[match] = n;
	}
	free(list);
}

#define GONE_MAX 5 /* more are only counted */

/* Classify the change from @k0 of @n0 samples to @k1 of @n1. */
static enum row_change baseline_change(double k0, double n0, double k1, double n1)
{
	if ((!(k0 > 0) && !(k1 > 0)) || !(n0 > 0))
		return CHANGE_UNKNOWN;
	if (!text_shares_differ(k0, n0, k1, n1))
		return CHANGE_UNSURE;
	return k0 > 0 ? CHANGE_SURE : CHANGE_NEW;
}

static const char *event_of(const struct ui_state *st)
{
	return st->shown->nr_events ? st->shown->events[ui_state_event(st, st->shown)].event.name
				    : "";
}

/* Return whether a process of that name is in the baseline. */
static bool has_process(const struct profile *b, const char *name)
{
	for (uint32_t i = 0; i < b->nr_processes; i++)
		if (!strcmp(b->processes[i].comm.str, name))
			return true;
	return false;
}

/* Return the name of the open process, or group of one name, by which a file has it; NULL: it has
 * none. Ids, containers and units are not those of a file. */
static const char *name_in_file(const struct ui_state *st)
{
	uint32_t process = ui_state_process(st, st->shown);
	const char *name = st->scope.group[0]	   ? st->scope.group
			   : process != UINT32_MAX ? st->shown->processes[process].comm.str
						   : NULL;

	if (st->scope.in_thread || st->scope.thread_group[0] || !name ||
	    (st->scope.group[0] && st->scope.group_by != GROUPING_NAME))
		return NULL;
	return has_process(st->baseline, name) ? name : NULL;
}

bool baseline_is_on(const struct ui_state *st)
{
	const struct profile *b = st->baseline;

	if (!b || !st->shown || !st->folds)
		return false;
	/* A module or a function that is chosen by its id is not known in a file. */
	if (st->baseline_path &&
	    ((st->scope.drilled && !name_in_file(st)) || st->only.on || st->view == VIEW_CALLERS))
		return false;
	for (uint32_t i = 0; i < b->nr_events; i++)
		if (!strcmp(b->events[i].event.name, event_of(st)))
			return true;
	return !b->nr_events && !st->shown->nr_events;
}

/* The fields of the state that differ while the baseline is shown. */
struct baseline_swap {
	struct profile *shown;
	char event_name[EVENT_NAME_MAX];
	double percent_limit;
	char group[sizeof(((struct scope *)0)->group)];
	enum grouping group_by;
};

/* Show the baseline in the place of the shown profile, until show_again(). */
static void show_baseline(struct ui_state *st, struct baseline_swap *swap)
{
	*swap = (struct baseline_swap){ .shown = st->shown,
					.percent_limit = st->set.percent_limit };
	memcpy(swap->event_name, st->scope.event_name, sizeof(swap->event_name));
	/* "" would be the baseline's first event: perhaps another one. */
	snprintf(st->scope.event_name, sizeof(st->scope.event_name), "%s", event_of(st));
	memcpy(swap->group, st->scope.group, sizeof(swap->group));
	swap->group_by = st->scope.group_by;
	if (st->baseline_path && st->scope.drilled && !st->scope.group[0]) {
		snprintf(st->scope.group, sizeof(st->scope.group), "%s", name_in_file(st));
		st->scope.group_by = GROUPING_NAME;
	}
	st->shown = st->baseline;
	/* A profile that is its own baseline has one fold of each kind: another limit would replace
	 * the one that the rows are of. */
	if (swap->shown == st->baseline)
		return;
	/* Rows below the limit did exist: they have not risen from zero. */
	st->set.percent_limit = 0;
	if (st->folds)
		st->folds->comparing = true;
}

static void show_again(struct ui_state *st, const struct baseline_swap *swap)
{
	st->shown = swap->shown;
	if (st->folds)
		st->folds->comparing = false;
	st->set.percent_limit = swap->percent_limit;
	memcpy(st->scope.event_name, swap->event_name, sizeof(swap->event_name));
	memcpy(st->scope.group, swap->group, sizeof(swap->group));
	st->scope.group_by = swap->group_by;
}

/* Rows of the baseline that disappeared, merged by name. */
struct gone_row {
	double share;
	uint32_t nr; /* rows of that name */
	char name[64];
};

struct gone {
	struct gone_row *rows;
	uint32_t nr, capacity;
};

/* Return the compared share of a row of @list. */
static double share_of(const struct view *v, const struct list *list, const struct row *row)
{
	if (v->compared == COMPARED_WEIGHT)
		return list->weight > 0 ? row->self / list->weight : 0;
	return v->compared == COMPARED_SELF ? row->self : row->total;
}

static void add_gone(struct gone *gone, double share, struct safe_text name)
{
	if (!array_reserve(&gone->rows, &gone->capacity, gone->nr + 1ULL))
		return;
	gone->rows[gone->nr] = (struct gone_row){ .share = share, .nr = 1 };
	snprintf(gone->rows[gone->nr].name, sizeof(gone->rows[0].name), "%s", name.str);
	gone->nr++;
}

static int baseline_by_name(const void *pa, const void *pb)
{
	const struct gone_row *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

/* Compare by weight, then by name. */
static int by_share(const void *pa, const void *pb)
{
	const struct gone_row *a = pa, *b = pb;

	return a->share != b->share ? (a->share < b->share) - (a->share > b->share)
				    : baseline_by_name(a, b);
}

/* Shares of one name are added up in one order: the sums are then the same after each start. */
static int by_name_and_share(const void *pa, const void *pb)
{
	const struct gone_row *a = pa, *b = pb;
	int order = baseline_by_name(a, b);

	return order ? order : COMPARE(a->share, b->share);
}

static void merge_gone(struct gone *gone)
{
	uint32_t nr = 0;

	if (!gone->nr)
		return;
	qsort(gone->rows, gone->nr, sizeof(*gone->rows), by_name_and_share);
	for (uint32_t i = 1; i < gone->nr; i++) {
		if (!baseline_by_name(&gone->rows[i], &gone->rows[nr])) {
			gone->rows[nr].share += gone->rows[i].share;
			gone->rows[nr].nr++;
		} else {
			gone->rows[++nr] = gone->rows[i];
		}
	}
	assert(nr < gone->nr);
	gone->nr = nr + 1;
	qsort(gone->rows, gone->nr, sizeof(*gone->rows), by_share);
}

/* "parse 3.1%, cc* (14) 1.2%, and 3 more" */
static void report_gone(struct gone *gone, struct list *list)
{
	char share[FORMAT_MAX], times[16], text[sizeof(list->gone)];
	size_t n = 0;

	merge_gone(gone);
	for (uint32_t i = 0; i < MIN(gone->nr, (uint32_t)GONE_MAX); i++) {
		snprintf(times, sizeof(times), " (%u)", gone->rows[i].nr);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s %s%%", i ? ", " : "",
				      gone->rows[i].name, gone->rows[i].nr > 1 ? times : "",
				      format_percent(share, gone->rows[i].share).str);
	}
	if (gone->nr > GONE_MAX)
		snprintf(text + n, sizeof(text) - n, ", and %u more", gone->nr - GONE_MAX);
	/* A cut name may end within a character: clean it. */
	if (gone->nr)
		ui_state_clean(list->gone, sizeof(list->gone), text);
}

/* Compare a row of @list with the one of @before; @old NULL: it was not there. */
static void compare_row(const struct view *v, const struct list *list, struct row *row,
			const struct list *before, const struct row *old)
{
	double was = old ? share_of(v, before, old) : 0;

	row->change = (uint8_t)baseline_change(old ? old->count : 0, before->count, row->count,
					       list->count);
	row->delta = row->change == CHANGE_UNKNOWN ? 0 : (float)(share_of(v, list, row) - was);
}

/* Return the keys of rows; NULL: no memory. */
static struct baseline_key *keys_of(const struct ui_state *st, const struct view *v,
				    const struct list *list)
{
	struct baseline_key *keys = calloc(list->nr + 1ULL, sizeof(*keys));

	for (uint32_t i = 0; keys && i < list->nr; i++)
		keys[i] = (struct baseline_key){ .id = list->rows[i].id,
						 .name = v->identity(st, &list->rows[i]),
						 .index = i };
	return keys;
}

/* Compare rows with rows: the view also builds the rows of the baseline. @now: keys of @list. */
static void compare_rows(const struct ui_state *st, const struct view *v, struct list *list,
			 struct baseline_key *now, struct gone *gone)
{
	struct list old = { 0 };
	struct baseline_key *keys;
	char buf[TEXT_MAX];

	v->build(st, &old);
	/* Without all folds of the baseline nothing is known to have changed. */
	keys = folds_is_late(st) ? NULL : keys_of(st, v, &old);
	if (!keys || !now)
		goto out;
	baseline_match_rows(keys, old.nr, now, list->nr, !st->baseline_path);
	for (uint32_t i = 0; i < list->nr; i++)
		compare_row(v, list, &list->rows[now[i].index], &old,
			    now[i].other == BASELINE_NONE ? NULL : &old.rows[now[i].other]);
	for (uint32_t i = 0; i < old.nr; i++) {
		const struct row *row = &old.rows[keys[i].index];

		if (keys[i].other == BASELINE_NONE &&
		    text_shares_differ(row->count, old.count, 0, list->count))
			add_gone(gone, share_of(v, &old, row), v->name(st, row, buf, sizeof(buf)));
	}
out:
	free(keys);
	list_fini(&old);
}

/* Return whether node @n of the old tree disappeared, but not its parent. Lighter ones may exist
 * unseen. */
static bool is_gone(const struct folds_tree *old, uint32_t n, const struct folds_tree *now,
		    const uint32_t *to_now)
{
	const struct fold_tree_node *node = &old->fold.nodes[n];
	uint32_t parent = to_now[node->parent];
	double light;

	assert(n < old->fold.nr_nodes);
	if (parent == BASELINE_NONE || to_now[n] != BASELINE_NONE)
		return false;
	light = now->fold.nodes[parent].nr_hidden ? now->config.limit : 0;
	return node->count > light * old->fold.count &&
	       text_shares_differ(node->count, old->fold.count, light * now->fold.count,
				  now->fold.count);
}

/* Name a node, with its process or thread if it is in one. */
static struct safe_text gone_name(const struct ui_state *st, const struct folds_tree *old,
				  uint32_t n, char *buf, size_t size)
{
	const struct fold_tree_node *nodes = old->fold.nodes;
	char text[TEXT_MAX], first[TEXT_MAX];
	struct safe_text name = folds_text(st, &nodes[n], text, sizeof(text));
	uint32_t top = n;

	assert(n < old->fold.nr_nodes);
	while (nodes[top].depth > 1)
		top = nodes[top].parent;
	if (top == n || nodes[top].function != FOLD_NONE)
		return text_format(buf, size, "%s", name.str);
	return text_format(buf, size, "%s %s",
			   folds_text(st, &nodes[top], first, sizeof(first)).str, name.str);
}

/* Compare rows that are nodes of @now: by the whole trees of both profiles. */
static void compare_nodes(const struct ui_state *st, const struct view *v,
			  const struct profile *shown, const struct folds_tree *now,
			  struct list *list, struct gone *gone)
{
	const struct folds_tree *old = v->tree(st);
	const struct list before = { .count = old ? old->fold.count : 0 };
	uint32_t *to_now = NULL, *to_old = NULL;
	char buf[TEXT_MAX];

	if (!old || !now)
		return;
	to_now = malloc(old->fold.nr_nodes * sizeof(*to_now));
	to_old = malloc(now->fold.nr_nodes * sizeof(*to_old));
	if (!to_now || !to_old)
		goto out;
	baseline_match_nodes(st->shown, old, shown, now, !st->baseline_path, to_now, to_old);
	for (uint32_t i = 0; i < list->nr; i++) {
		uint32_t n = folds_node(now, (uint32_t)list->rows[i].id);
		struct row row = { 0 };

		/* Several nodes in one row. */
		if (n == FOLD_NONE)
			continue;
		n = to_old[n];
		if (n != BASELINE_NONE)
			folds_row(old, n, &row);
		compare_row(v, list, &list->rows[i], &before, n == BASELINE_NONE ? NULL : &row);
	}
	for (uint32_t n = 1; n < old->fold.nr_nodes; n++)
		if (is_gone(old, n, now, to_now))
			add_gone(gone, old->fold.nodes[n].total / old->fold.weight,
				 gone_name(st, old, n, buf, sizeof(buf)));
out:
	free(to_now);
	free(to_old);
}

void baseline_compare(struct ui_state *st, const struct view *v, struct list *list)
{
	const struct folds_tree *now;
	struct baseline_key *keys;
	struct baseline_swap swap;
	struct gone gone = { .nr = 0 };

	list->gone[0] = '\0';
	if (!v->compared || !baseline_is_on(st))
		return;
	assert(v->tree || (v->name && v->identity));
	now = v->tree ? v->tree(st) : NULL;
	keys = v->tree ? NULL : keys_of(st, v, list);
	show_baseline(st, &swap);
	if (v->tree)
		compare_nodes(st, v, swap.shown, now, list, &gone);
	else
		compare_rows(st, v, list, keys, &gone);
	show_again(st, &swap);
	report_gone(&gone, list);
	free(gone.rows);
	free(keys);
}

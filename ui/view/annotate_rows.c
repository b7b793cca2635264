// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rows of an annotated function: instructions and source lines. The main
 * thread; reads the state.
 */
#include "ui/view/view_annotate.h"

#include <errno.h>
#include <stdlib.h>

#include "ui/view/arrows.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"

#define GAP_MAX 6u /* lines without code that are shown between lines with it */

static struct row *add_row(struct list *list, enum annotate_kind kind, uint64_t low, uint32_t index)
{
	struct row *row = list_add(list);

	if (!row)
		return NULL;
	row->id = (uint64_t)kind << ANNOTATE_SHIFT | low;
	row->index = index;
	/* The limit concerns shares of all samples, not of one function. */
	row->total = 1;
	return row;
}

/* Count samples of the process or thread drilled into, as in other views. */
struct seen {
	bool all;
	uint32_t *tasks; /* ids, in order; owned */
	uint32_t nr;
};

static int by_task(const void *pa, const void *pb)
{
	return COMPARE(*(const uint32_t *)pa, *(const uint32_t *)pb);
}

static int seen_make(struct seen *seen, const struct ui_state *st)
{
	const struct profile *p = st->shown;
	struct fold_filter filter;
	bool any = folds_filter(st, &filter);

	*seen = (struct seen){ .all = any && filter.process == UINT32_MAX &&
				      filter.task == UINT32_MAX && !filter.tasks };
	if (seen->all || !any)
		return 0;
	seen->tasks = malloc((p->nr_tasks + 1ULL) * sizeof(*seen->tasks));
	if (!seen->tasks)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (fold_passes_task(p, &filter, i))
			seen->tasks[seen->nr++] = p->tasks[i].id;
	qsort(seen->tasks, seen->nr, sizeof(*seen->tasks), by_task);
	return 0;
}

static bool counts(const struct seen *seen, const struct profile_point *pt, uint32_t event)
{
	return pt->event == event &&
	       (seen->all || (seen->nr && bsearch(&pt->task, seen->tasks, seen->nr,
						  sizeof(*seen->tasks), by_task)));
}

/*
 * Sum the samples of the shown event by instruction or line. Shares are of all samples with the
 * function on the stack, so that the share of a line itself is part of the line's total.
 */
static void add_points(const struct profile_annotate *a, const struct seen *seen, uint32_t event,
		       struct row *insns, struct list *list)
{
	double total = 0;

	for (uint32_t i = 0; i < a->nr_points; i++) {
		const struct profile_point *pt = &a->points[i];
		uint32_t at;

		if (!counts(seen, pt, event))
			continue;
		total += pt->total;
		list->count += pt->count;
		at = listing_at(a->listing, pt->vaddr);
		if (at == LISTING_NONE)
			continue;
		insns[at].count += pt->count;
		insns[at].self += pt->weight;
		insns[at].other[0] += (float)pt->total;
	}
	for (uint32_t i = 0; i < a->listing->nr_insns; i++) {
		insns[i].self /= total > 0 ? total : 1;
		insns[i].other[0] /= total > 0 ? (float)total : 1;
	}
}

/* Add the instructions, each below its source line if that changes. */
static int add_insns(const struct ui_state *st, const struct listing *l, const struct row *insns,
		     struct list *list)
{
	bool source = annotate_shown(st) == ANNOTATE_BOTH && annotate_in_order(st);
	uint32_t file = LISTING_NONE, line = 0;

	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];
		uint64_t offset = insn->vaddr - l->vaddr;
		struct row *row;

		if (source && insn->line && (insn->file != file || insn->line != line)) {
			if (!add_row(list, ANNOTATE_ABOVE, offset, i))
				return -ENOMEM;
			file = insn->file;
			line = insn->line;
		}
		row = add_row(list, ANNOTATE_INSN, offset, i);
		if (!row)
			return -ENOMEM;
		row->self = insns[i].self;
		row->count = insns[i].count;
	}
	return 0;
}

static int by_id(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	return COMPARE(a->id, b->id);
}

/* Add a source line, and the lines without code before it. */
static int add_line(const struct ui_state *st, const struct listing *l, const struct row *line,
		    struct list *list)
{
	const struct row *last = list->nr ? &list->rows[list->nr - 1] : NULL;
	uint64_t id = line->id;
	struct row *row;

	if (last && last->id == id) {
		row = &list->rows[list->nr - 1];
		row->self += line->self;
		row->other[0] += line->other[0];
		row->count += line->count;
		return 0;
	}
	if (!last || last->index != line->index) {
		if (!add_row(list, ANNOTATE_FILE, (uint64_t)line->index << 32, line->index))
			return -ENOMEM;
	} else if (annotate_in_order(st) && id - last->id <= GAP_MAX &&
		   l->files[line->index].nr_lines) {
		for (uint64_t between = last->id + 1; between < id; between++)
			if (!add_row(list, ANNOTATE_LINE, annotate_low(between), line->index))
				return -ENOMEM;
	}
	row = add_row(list, ANNOTATE_LINE, annotate_low(id), line->index);
	if (!row)
		return -ENOMEM;
	row->self = line->self;
	row->other[0] = line->other[0];
	row->count = line->count;
	return 0;
}

/* Add the source lines, file by file. */
static int add_lines(const struct ui_state *st, const struct listing *l, struct row *insns,
		     struct list *list)
{
	uint32_t nr = 0;
	int rc = 0;

	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];

		if (insn->file >= l->nr_files || !insn->line)
			continue;
		insns[nr] = insns[i];
		insns[nr].id = (uint64_t)ANNOTATE_LINE << ANNOTATE_SHIFT |
			       (uint64_t)insn->file << 32 | insn->line;
		insns[nr++].index = insn->file;
	}
	qsort(insns, nr, sizeof(*insns), by_id);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = add_line(st, l, &insns[i], list);
	return rc;
}

/* Add rows by address: the code is unknown. */
static int add_bare_points(const struct profile_annotate *a, const struct seen *seen,
			   uint32_t event, struct list *list)
{
	double total = 0;

	for (uint32_t i = 0; i < a->nr_points; i++) {
		const struct profile_point *pt = &a->points[i];
		struct row *row = list->nr ? &list->rows[list->nr - 1] : NULL;

		if (!counts(seen, pt, event))
			continue;
		/* Samples of several threads at one address are adjacent. */
		if (!row || a->points[row->index].vaddr != pt->vaddr)
			row = add_row(list, ANNOTATE_POINT, pt->vaddr - a->listing->vaddr, i);
		if (!row)
			return -ENOMEM;
		row->self += pt->weight;
		row->other[0] += (float)pt->total;
		row->count += pt->count;
		total += pt->total;
		list->count += pt->count;
	}
	for (uint32_t i = 0; i < list->nr; i++) {
		list->rows[i].self /= total > 0 ? total : 1;
		list->rows[i].other[0] /= total > 0 ? (float)total : 1;
	}
	return 0;
}

/* Add rows by instruction or line: the code is known. */
static int add_code(const struct ui_state *st, const struct profile_annotate *a,
		    const struct seen *seen, uint32_t event, struct list *list)
{
	struct row *insns = calloc(a->listing->nr_insns, sizeof(*insns));
	int rc;

	if (!insns)
		return -ENOMEM;
	if (st->annotate.arrows)
		arrows_update(st->annotate.arrows, a->listing);
	add_points(a, seen, event, insns, list);
	if (annotate_shown(st) == ANNOTATE_SOURCE && a->listing->nr_files)
		rc = add_lines(st, a->listing, insns, list);
	else
		rc = add_insns(st, a->listing, insns, list);
	free(insns);
	return rc;
}

int annotate_rows_build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = annotate_profile(st);
	const struct profile_annotate *a = p ? p->annotate : NULL;
	struct seen seen;
	int rc;

	if (!a || !a->listing)
		return 0;
	rc = seen_make(&seen, st);
	if (!rc && a->listing->nr_insns)
		rc = add_code(st, a, &seen, ui_state_event(st, p), list);
	else if (!rc)
		rc = add_bare_points(a, &seen, ui_state_event(st, p), list);
	free(seen.tasks);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions of the selected row. Runs on: the main thread.
 */
#include "ui/actions_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/invoker.h"
#include "ui/dialog.h"
#include "ui/ui.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"
#include "ui/view/view_annotate.h"

/* ---- the path of the source ---- */

/* Sum the weight of each line of @function: of self samples or (@any) also of calls. */
static bool weigh_lines(const struct profile *p, uint32_t event, uint32_t function, bool any,
			double *weights)
{
	bool found = false;

	for (uint32_t i = 0; i < p->nr_counts; i++) {
		const struct profile_count *c = &p->counts[i];
		const struct profile_stack *s = &p->stacks[c->stack];

		if (c->event != event)
			continue;
		for (uint32_t n = 0; n < (any ? s->nr : MIN(s->nr, 1u)); n++) {
			uint32_t line = p->frame_lines[s->first + n];

			if (p->frames[s->first + n] != function || line >= p->nr_lines ||
			    p->lines[line].file >= p->nr_files)
				continue;
			weights[line] += c->weight;
			found = true;
		}
	}
	return found;
}

/* Find the hottest line of a function; NULL: unknown source. */
static const struct profile_line *hottest_line(const struct ui_state *st, uint32_t function)
{
	const struct profile *p = st->shown;
	uint32_t event = ui_state_event(st, p), best = 0;
	double *weights = p->frame_lines ? calloc(p->nr_lines + 1ULL, sizeof(*weights)) : NULL;
	bool found = weights && (weigh_lines(p, event, function, false, weights) ||
				 weigh_lines(p, event, function, true, weights));

	for (uint32_t i = 1; found && i < p->nr_lines; i++)
		if (weights[i] > weights[best])
			best = i;
	free(weights);
	return found ? &p->lines[best] : NULL;
}

/* Find the source line of the selected row in the annotate view. */
static bool annotated_source(const struct ui_state *st, char *path, size_t size, uint32_t *line)
{
	const struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct listing *l = annotate_listing(st);
	uint32_t file;

	if (!l || !row || !annotate_source(st, row, &file, line))
		return false;
	if (!*line)
		*line = MAX(l->files[file].first, 1u);
	snprintf(path, size, "%s", listing_text(l, l->files[file].path));
	return true;
}

bool actions_source(const struct ui_state *st, char *path, size_t size, uint32_t *line)
{
	const struct profile_line *found;
	uint32_t function;

	if (st->view == VIEW_ANNOTATE)
		return annotated_source(st, path, size, line);
	function = view_function(st);
	found = function == FOLD_NONE ? NULL : hottest_line(st, function);
	if (!found)
		return false;
	snprintf(path, size, "%s", st->shown->files[found->file].str);
	*line = found->line;
	return true;
}

static void edit(struct ui_state *st, uint32_t code)
{
	if (!actions_source(st, st->edit.path, sizeof(st->edit.path), &st->edit.line)) {
		st->edit.path[0] = '\0';
		ui_state_say(st, false, "%s", actions_row_refusal(st, ACT_EDITOR));
	} else if (editor_refusal(st->edit.path)) {
		ui_state_say(st, true, "source not opened: %.400s: %s", st->edit.path,
			     editor_refusal(st->edit.path));
		st->edit.path[0] = '\0';
	} else if (invoker_is_unprivileged()) {
		ui_state_say(st, true,
			     "no editor is started with file capabilities (source: %s:%u)",
			     st->edit.path, st->edit.line);
		st->edit.path[0] = '\0';
	} else if (!editor_program()) {
		ui_state_say(st, true, "no editor: set VISUAL or EDITOR (source: %s:%u)",
			     st->edit.path, st->edit.line);
		st->edit.path[0] = '\0';
	}
}

const char *actions_row_refusal(const struct ui_state *st, enum action action)
{
	bool none = st->view != VIEW_ANNOTATE && view_function(st) == FOLD_NONE;
	char path[EDITOR_PATH_MAX], name[TEXT_MAX];
	uint32_t line;

	switch (action) {
	case ACT_ANNOTATE:
		return st->view == VIEW_ANNOTATE ? "already shown"
		       : none			 ? "this row is not a function"
						 : NULL;
	case ACT_CALLERS:
	case ACT_FLAME_HERE:
		return view_function(st) == FOLD_NONE ? "this row is not a function" : NULL;
	case ACT_MODULE_ONLY:
		return !st->only.on && view_module(st) == UINT32_MAX ? "this row has no module"
								     : NULL;
	case ACT_FETCH:
		return view_module(st) == UINT32_MAX ? "this row has no module" : NULL;
	case ACT_COPY:
		return *view_row_name(st, name) ? NULL : "this row has no name";
	case ACT_EDITOR:
		return actions_source(st, path, sizeof(path), &line) ? NULL
		       : none					     ? "this row is not a function"
			      : "unknown source: needs debug information (-g, -dbgsym)";
	default:
		return NULL;
	}
}

static void menu(struct ui_state *st, uint32_t code)
{
	if (st->lists[st->view].cursor >= st->lists[st->view].nr)
		ui_state_say(st, false, "no row selected");
	else
		dialog_open(st, &dialog_menu);
}

void (*actions_row(enum action action))(struct ui_state *st, uint32_t code)
{
	return action == ACT_MENU ? menu : action == ACT_EDITOR ? edit : NULL;
}

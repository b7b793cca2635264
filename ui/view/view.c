// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The views by number, the shown one and its row, and the parts of a screen that views share:
 * shares, bars, the lines below the rows.
 *
 * Runs on: the main thread.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

static const struct view *const views[VIEW_NR] = {
	[VIEW_FUNCTIONS] = &view_functions, [VIEW_PROCESSES] = &view_processes,
	[VIEW_TREE] = &view_tree,	    [VIEW_FLAME] = &view_flame,
	[VIEW_CALLERS] = &view_callers,	    [VIEW_CPUS] = &view_cpus,
	[VIEW_MODULES] = &view_modules,	    [VIEW_MESSAGES] = &view_messages,
	[VIEW_BRANCHES] = &view_branches,   [VIEW_MEMORY] = &view_memory,
	[VIEW_ANNOTATE] = &view_annotate,   [VIEW_HELP] = &view_help,
};

const struct view *view_of(enum view_id id)
{
	assert((unsigned int)id < VIEW_NR && views[id]);
	return views[id];
}

const struct view *view_shown(const struct ui_state *st)
{
	return view_of(st->view);
}

enum view_scope view_scope(const struct ui_state *st)
{
	if (!st->scope.drilled)
		return VIEW_ALL;
	if (st->view == VIEW_PROCESSES && st->by_thread)
		return VIEW_ALL_THREADS;
	return view_shown(st)->scoped ? VIEW_DRILLED : VIEW_ALL;
}

bool view_is_whole(const struct ui_state *st)
{
	/* The others show all samples, of any user. */
	bool chosen = view_shown(st)->scoped || st->view == VIEW_PROCESSES;

	return view_scope(st) == VIEW_ALL && !(chosen && scope_chooses(&st->scope));
}

bool view_filter(const struct ui_state *st, struct fold_filter *f)
{
	switch (view_scope(st)) {
	case VIEW_DRILLED:
		return folds_filter(st, f);
	case VIEW_ALL_THREADS:
		return folds_filter_threads(st, f);
	default:
		folds_filter_all(st, f);
		return st->shown;
	}
}

enum key_context view_context(const struct ui_state *st)
{
	assert(st->prompt.kind <= PROMPT_REPLACE);
	return st->dialog.ops ? CTX_PICKER : st->prompt.kind ? CTX_PROMPT : view_shown(st)->context;
}

const struct row *view_row(const struct ui_state *st)
{
	assert((unsigned int)st->view < VIEW_NR);
	return list_current(&st->lists[st->view]);
}

uint32_t view_function(const struct ui_state *st)
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);

	return st->shown && v->function && row ? v->function(st, row) : UINT32_MAX;
}

const char *view_row_name(const struct ui_state *st, char buf[static TEXT_MAX])
{
	const struct view *v = view_shown(st);
	const struct row *row = view_row(st);
	uint32_t function = view_function(st);

	if (row && v->copied)
		return v->copied(st, row, buf);
	assert(function == UINT32_MAX || function < st->shown->nr_functions);
	return function == UINT32_MAX ? "" : st->shown->functions[function].name.str;
}

void view_draw_percent(struct canvas *c, struct view_field at, double share)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_percent(buf, share),
		     (struct style){ share >= 0.005 ? ROLE_NORMAL : ROLE_DIM, 0 });
}

void view_draw_bar(const struct ui_state *st, struct canvas *c, struct view_field at, double share,
		   enum theme_role role)
{
	unsigned int eighths = (unsigned int)(MIN(MAX(share, 0), 1) * at.cols * 8 + 0.5);

	for (unsigned int i = 0; i < at.cols && eighths; i++) {
		unsigned int part = MIN(eighths, 8);

		canvas_text(c, at.row, at.col + i, 1, st->glyphs->bar[part],
			    (struct style){ role, 0 });
		eighths -= part;
	}
}

/*
 * Lines below the rows of a view. Runs on: the main thread.
 */

#define LABEL_COLS 10u

static void draw(struct foot *f, struct safe_text label, struct safe_text value)
{
	unsigned int at = f->row + f->used;

	if (!f->c || f->used >= f->rows)
		return;
	canvas_text(f->c, at, 1, LABEL_COLS, label, (struct style){ ROLE_DIM, 0 });
	if (f->cols > LABEL_COLS + 2)
		canvas_elide(f->c, at, 1 + LABEL_COLS, f->cols - LABEL_COLS - 2, value,
			     (struct style){ ROLE_NORMAL, 0 });
}

void foot_line(struct foot *f, struct safe_text label, struct safe_text value)
{
	assert(f->used < UINT_MAX && label.width <= LABEL_COLS);
	draw(f, label, value);
	f->used++;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t foot_line_bytes(const char *text, unsigned int cols)
{
	size_t size = strlen(text), cut = MIN(size, (size_t)cols);

	assert(cols);
	if (cut == size)
		return size;
	for (size_t i = cut; i > cut / 2; i--)
		if (text[i] == ' ' && text[i + 1] == ' ')
			return i;
	for (size_t i = cut; i > cut / 2; i--)
		if (text[i] == ' ' && !(is_digit(text[i - 1]) && is_digit(text[i + 1])))
			return i;
	/* Not within a code point. */
	while (cut > 1 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	return MAX(cut, (size_t)1);
}

void foot_text(struct foot *f, struct safe_text label, const char *text)
{
	unsigned int cols = f->cols > LABEL_COLS + 12 ? f->cols - LABEL_COLS - 2 : 10;
	char buf[512];

	do {
		size_t n = foot_line_bytes(text, cols);

		foot_line(f, label, text_sanitise(buf, sizeof(buf), text, n));
		label = TEXT("");
		text += n;
		text += strspn(text, " ");
	} while (*text);
}

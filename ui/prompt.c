// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line of input at the bottom of the screen. Runs on: the main thread.
 */
#include "ui/prompt.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void prompt_open(struct ui_state *st, enum prompt_kind kind)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);
	char text[32] = "";

	assert(kind != PROMPT_NONE);
	memset(p, 0, sizeof(*p));
	p->kind = kind;
	/* A longer text would be cut. */
	if (kind == PROMPT_FILTER || kind == PROMPT_SEARCH)
		p->line.max = MATCH_MAX - 1;
	p->position_before = list_position(list);
	p->fresh = kind == PROMPT_DELAY || kind == PROMPT_LIMIT;
	switch (kind) {
	case PROMPT_FILTER:
		snprintf(p->before, sizeof(p->before), "%s", list->filter.text);
		line_set(&p->line, p->before);
		break;
	case PROMPT_SEARCH:
		snprintf(p->before, sizeof(p->before), "%s", list->search.text);
		break;
	case PROMPT_DELAY:
		snprintf(text, sizeof(text), "%g", (double)st->tick_ns / 1e9);
		line_set(&p->line, text);
		break;
	case PROMPT_COMMAND:
	case PROMPT_REWIND:
		break;
	default:
		snprintf(text, sizeof(text), "%g", st->percent_limit);
		line_set(&p->line, text);
		break;
	}
}

/* Return a hint for an empty line. */
static struct safe_text hint_of(const struct prompt *p)
{
	if (p->kind == PROMPT_FILTER)
		return TEXT("text or regex; a leading ! hides matches");
	return p->before[0] ? TEXT("text or regex; Enter repeats the last search")
			    : TEXT("text or regex; then n next, N previous");
}

unsigned int prompt_draw_line(const struct line *l, struct canvas *c, unsigned int row,
			      unsigned int col, unsigned int cols, struct style style)
{
	char head[LINE_SIZE], buf[LINE_SIZE];
	unsigned int at, first;
	struct safe_text text, rest;

	memcpy(head, l->text, l->at);
	head[l->at] = '\0';
	at = ui_state_clean(buf, sizeof(buf), head).width;
	text = ui_state_clean(buf, sizeof(buf), l->text);
	/* The end of the text, with a cell for the cursor behind it. */
	rest = text_skip(text, at + 1 > cols ? at + 1 - cols : 0);
	first = (unsigned int)text.width - rest.width;
	c->cursor_row = (int)row;
	c->cursor_col = (int)MIN(col + at - first, c->cols - 1);
	return canvas_text(c, row, col, cols, rest, style);
}

static void draw_candidates(const struct prompt *p, struct canvas *c, unsigned int row,
			    unsigned int col)
{
	char clean[PROMPT_CANDIDATES];

	if (col + 1 < c->cols)
		canvas_elide(c, row, col, c->cols - col - 1,
			     ui_state_clean(clean, sizeof(clean), p->candidates),
			     (struct style){ ROLE_DIM, 0 });
}

void prompt_draw(struct ui_state *st, struct canvas *c, unsigned int row)
{
	static const struct safe_text labels[] = {
		[PROMPT_SEARCH] = TEXT("Search: "),
		[PROMPT_FILTER] = TEXT("Filter: "),
		[PROMPT_DELAY] = TEXT("Seconds between refreshes: "),
		[PROMPT_LIMIT] = TEXT("Hide rows under percent: "),
		[PROMPT_COMMAND] = TEXT(":"),
		[PROMPT_REWIND] = TEXT("Rewind to: "),
	};
	const struct prompt *p = &st->prompt;
	const struct list *list = ui_state_list(st);
	const struct match *m = p->kind == PROMPT_FILTER ? &list->filter : &list->search;
	bool text = p->kind == PROMPT_FILTER || p->kind == PROMPT_SEARCH;
	bool missing = text && p->line.size && (!list->nr || p->missed);
	char clean[sizeof(p->candidates)];
	unsigned int col;

	assert(p->kind != PROMPT_NONE && p->kind < ARRAY_SIZE(labels));
	col = canvas_text(c, row, 0, c->cols, labels[p->kind], (struct style){ ROLE_KEY, 0 });
	col += prompt_draw_line(&p->line, c, row, col, c->cols - MIN(col, c->cols),
				(struct style){
					text && (m->bad || missing) ? ROLE_WARN : ROLE_NORMAL, 0 });
	if (p->kind == PROMPT_COMMAND || p->kind == PROMPT_REWIND)
		draw_candidates(p, c, row, col + 2);
	else if (text && m->bad && p->line.size)
		canvas_text(c, row, col + 2, c->cols, TEXT("invalid regex: used as plain text"),
			    (struct style){ ROLE_WARN, 0 });
	else if (missing)
		canvas_text(c, row, col + 2, c->cols,
			    p->missed ? ui_state_clean(clean, sizeof(clean), p->candidates)
				      : TEXT("no match"),
			    (struct style){ ROLE_WARN, 0 });
	else if (text && !p->line.size)
		canvas_text(c, row, col + 2, c->cols, hint_of(p), (struct style){ ROLE_DIM, 0 });
}

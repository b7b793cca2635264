// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One line of input: search and filter take effect while one types, Esc goes
 * back to what was before. The main thread.
 */
#include "ui/prompt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "ui/command.h"
#include "ui/command_table.h"
#include "ui/screen.h"
#include "ui/view/view.h"

void line_set(struct line *l, const char *text)
{
	char clean[MATCH_MAX];
	struct safe_text t = ui_clean(clean, sizeof(clean), text);

	memcpy(l->text, t.str, t.size + 1u);
	l->size = l->at = t.size;
}

/* Bytes of the code point before or after @at. */
static size_t before(const struct line *l)
{
	size_t n = 0;

	while (n < l->at && (l->text[l->at - ++n] & 0xc0) == 0x80)
		;
	return n;
}

static size_t after(const struct line *l)
{
	size_t n = l->at < l->size;

	while (l->at + n < l->size && (l->text[l->at + n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void erase(struct line *l, size_t from, size_t n)
{
	memmove(l->text + from, l->text + from + n, l->size - from - n + 1);
	l->size -= n;
	l->at = from;
}

static bool insert(struct line *l, uint32_t code)
{
	char bytes[8], clean[16];
	utf8proc_ssize_t n =
		utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)bytes);
	struct safe_text t;

	if (n <= 0 || l->size + (size_t)n >= sizeof(l->text))
		return false;
	t = text_sanitise(clean, sizeof(clean), bytes, (size_t)n);
	/* What text.c refuses, a terminal should not be shown either. */
	if (t.size != (size_t)n || memcmp(t.str, bytes, (size_t)n))
		return false;
	memmove(l->text + l->at + n, l->text + l->at, l->size - l->at + 1);
	memcpy(l->text + l->at, bytes, (size_t)n);
	l->at += (size_t)n;
	l->size += (size_t)n;
	return true;
}

static void erase_word(struct line *l)
{
	size_t from = l->at;

	while (from && l->text[from - 1] == ' ')
		from--;
	while (from && l->text[from - 1] != ' ')
		from--;
	erase(l, from, l->at - from);
}

bool line_key(struct line *l, uint32_t code, bool *changed)
{
	size_t size = l->size;

	*changed = false;
	switch (code) {
	case K_LEFT:
		l->at -= before(l);
		return true;
	case K_RIGHT:
		l->at += after(l);
		return true;
	case K_BACKSPACE:
		erase(l, l->at - before(l), before(l));
		break;
	case K_DELETE:
		erase(l, l->at, after(l));
		break;
	case K_CTRL('u'):
		erase(l, 0, l->at);
		break;
	case K_CTRL('w'):
		erase_word(l);
		break;
	default:
		if (code < 32 || code >= 0x110000)
			return false;
		*changed = insert(l, code);
		return true;
	}
	*changed = size != l->size;
	return true;
}

void prompt_open(struct ui_state *st, enum prompt_kind kind)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);
	char text[32] = "";

	memset(p, 0, sizeof(*p));
	p->kind = kind;
	p->cursor_before = list->cursor;
	p->selected_before = list->selected;
	p->pinned_before = list->pinned;
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
		break;
	default:
		snprintf(text, sizeof(text), "%g", st->percent_limit);
		line_set(&p->line, text);
		break;
	}
}

/* Search and filter follow what is typed. */
static void follow_typing(struct ui_state *st, const char *text)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);

	if (p->kind == PROMPT_FILTER) {
		match_set(&list->filter, text);
		list_reorder(st);
	} else if (p->kind == PROMPT_SEARCH) {
		match_set(&list->search, text);
		list_restore(list, p->selected_before, p->cursor_before, p->pinned_before);
		p->missed = *text && !list_search(st, list->cursor, false);
	}
}

/* Closed first: a command may draw the screen, or open another prompt. */
static void accept_command(struct ui_state *st)
{
	char text[MATCH_MAX];

	snprintf(text, sizeof(text), "%s", st->prompt.line.text);
	st->prompt.kind = PROMPT_NONE;
	command_run(st, text);
}

static void complete(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	char text[MATCH_MAX];

	if (p->kind != PROMPT_COMMAND)
		return;
	command_gather(st, p->line.text);
	if (command_complete(st, p->line.text, text, sizeof(text)))
		line_set(&p->line, text);
}

static void accept(struct ui_state *st)
{
	struct list *list = ui_state_list(st);

	if (st->prompt.kind == PROMPT_DELAY)
		command_find("delay")->run(st, st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_LIMIT)
		command_find("limit")->run(st, st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_SEARCH && !st->prompt.line.size &&
		 st->prompt.before[0]) {
		/* Enter on nothing: once more, as in less. */
		match_set(&list->search, st->prompt.before);
		st->prompt.missed = !list_search(st, list->cursor + 1, false);
	}
	if (st->prompt.kind == PROMPT_SEARCH && st->prompt.missed)
		ui_state_say(st, true, "%s: not found", list->search.text);
	st->prompt.kind = PROMPT_NONE;
}

void prompt_key(struct ui_state *st, const struct key *key)
{
	bool changed;

	switch (keys_find(CTX_PROMPT, key->code)) {
	case ACT_ACCEPT:
		if (st->prompt.kind == PROMPT_COMMAND)
			accept_command(st);
		else
			accept(st);
		return;
	case ACT_COMPLETE:
		complete(st);
		return;
	case ACT_CANCEL:
		follow_typing(st, st->prompt.before);
		st->prompt.kind = PROMPT_NONE;
		return;
	default:
		break;
	}
	if (st->prompt.fresh && key->code > ' ' && key->code < K_BACKSPACE)
		line_set(&st->prompt.line, "");
	st->prompt.fresh = false;
	if (line_key(&st->prompt.line, key->code, &changed)) {
		if (changed)
			follow_typing(st, st->prompt.line.text);
		else if (key->code == K_BACKSPACE && !st->prompt.line.size)
			st->prompt.kind = PROMPT_NONE;
	}
}

/* What can be typed into an empty line. */
static struct safe_text hint_of(const struct prompt *p)
{
	if (p->kind == PROMPT_FILTER)
		return TEXT("text or regex; ! first hides what matches");
	return p->before[0] ? TEXT("text or regex; Enter: the same once more")
			    : TEXT("text or regex; then n next, N previous");
}

/* What can be typed on, as far as there is room; else what kind of word that is. */
static void draw_candidates(const struct ui_state *st, struct canvas *c, unsigned int row,
			    unsigned int col)
{
	const char *text = st->prompt.line.text, *hint = command_hint(text);
	char all[512], clean[512];

	if (col + 1 >= c->cols)
		return;
	if (!command_candidates(st, text, all, sizeof(all)) && hint)
		snprintf(all, sizeof(all), "%s", hint);
	canvas_elide(c, row, col, c->cols - col - 1, ui_clean(clean, sizeof(clean), all),
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
	};
	const struct prompt *p = &st->prompt;
	const struct list *list = ui_state_list(st);
	const struct match *m = p->kind == PROMPT_FILTER ? &list->filter : &list->search;
	bool text = p->kind == PROMPT_FILTER || p->kind == PROMPT_SEARCH;
	bool missing = text && p->line.size && (!list->nr || p->missed);
	char buf[MATCH_MAX], head[MATCH_MAX];
	unsigned int col, width;

	col = canvas_text(c, row, 0, c->cols, labels[p->kind], (struct style){ ROLE_KEY, 0 });
	memcpy(head, p->line.text, p->line.at);
	head[p->line.at] = '\0';
	width = ui_clean(buf, sizeof(buf), head).width;
	c->cursor_row = (int)row;
	c->cursor_col = (int)MIN(col + width, c->cols - 1);
	col += canvas_text(c, row, col, c->cols - MIN(col, c->cols),
			   ui_clean(buf, sizeof(buf), p->line.text),
			   (struct style){ text && (m->bad || missing) ? ROLE_WARN : ROLE_NORMAL,
					   0 });
	if (p->kind == PROMPT_COMMAND)
		draw_candidates(st, c, row, col + 2);
	else if (text && m->bad && p->line.size)
		canvas_text(c, row, col + 2, c->cols, TEXT("not a regex: taken literally"),
			    (struct style){ ROLE_WARN, 0 });
	else if (missing)
		canvas_text(c, row, col + 2, c->cols,
			    p->missed ? TEXT("not found") : TEXT("nothing matches"),
			    (struct style){ ROLE_WARN, 0 });
	else if (text && !p->line.size)
		canvas_text(c, row, col + 2, c->cols, hint_of(p), (struct style){ ROLE_DIM, 0 });
}

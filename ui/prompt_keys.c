// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keys in the prompt: search and filter take effect while one types; Esc
 * restores the state of before. Runs on: the main thread.
 */
#include "ui/prompt_keys.h"

#include <stdio.h>
#include <string.h>

#include "ui/command.h"
#include "ui/command_table.h"
#include "ui/rewind_time.h"
#include "ui/view/table.h"

/* Apply the typed search or filter. */
static void follow_typing(struct ui_state *st, const char *text)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);

	if (p->kind == PROMPT_FILTER) {
		match_set(&list->filter, text);
		table_reorder(st);
	} else if (p->kind == PROMPT_SEARCH) {
		match_set(&list->search, text);
		list_restore(list, &p->position_before);
		p->missed = *text && !table_search(st, list->cursor, false);
		if (p->missed)
			table_missed(st, p->candidates, sizeof(p->candidates));
	}
}

/* Close the prompt; search or filter, cursor and screen are as before. */
static void cancel(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	struct list *list = ui_state_list(st);

	if (p->kind == PROMPT_FILTER) {
		match_set(&list->filter, p->before);
		table_reorder(st);
	} else if (p->kind == PROMPT_SEARCH) {
		match_set(&list->search, p->before);
	}
	if (p->kind == PROMPT_FILTER || p->kind == PROMPT_SEARCH)
		list_restore(list, &p->position_before);
	p->kind = PROMPT_NONE;
}

/* Close the prompt first: a command may draw the screen, or open another prompt. */
static void accept_command(struct ui_state *st)
{
	char text[LINE_SIZE];

	snprintf(text, sizeof(text), "%s", st->prompt.line.text);
	st->prompt.kind = PROMPT_NONE;
	command_run(st, text);
}

static void complete(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	char text[LINE_SIZE];

	if (command_complete(st, p->line.text, text, sizeof(text)))
		line_set(&p->line, text);
}

void prompt_keys_words(struct ui_state *st)
{
	struct prompt *p = &st->prompt;

	if (p->kind != PROMPT_COMMAND || !st->words.of)
		return;
	if (*p->tabbed && !strcmp(p->line.text, p->tabbed))
		complete(st);
	p->tabbed[0] = '\0';
	prompt_keys_refresh(st);
}

static void accept(struct ui_state *st)
{
	struct list *list = ui_state_list(st);
	char outcome[TEXT_MAX];

	/* Until then Esc restores the row that was selected. */
	if (st->prompt.kind == PROMPT_FILTER)
		table_select_shown(st);
	else if (st->prompt.kind == PROMPT_DELAY)
		command_find("delay")->run(st, st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_LIMIT)
		command_find("limit")->run(st, st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_REWIND && st->prompt.line.size)
		command_find("rewind")->run(st, st->prompt.line.text);
	else if (st->prompt.kind == PROMPT_SEARCH && !st->prompt.line.size &&
		 st->prompt.before[0]) {
		/* Enter on an empty line repeats the search, as in less. */
		match_set(&list->search, st->prompt.before);
		st->prompt.missed = !table_search(st, list->cursor + 1, false);
	}
	if (st->prompt.kind == PROMPT_SEARCH && st->prompt.missed) {
		table_missed(st, outcome, sizeof(outcome));
		ui_state_say(st, true, "%.100s: %s", list->search.text, outcome);
	}
	st->prompt.kind = PROMPT_NONE;
}

void prompt_keys_press(struct ui_state *st, const struct key *key)
{
	bool changed;

	switch (key_find(CTX_PROMPT, key->code)) {
	case ACT_ACCEPT:
		if (st->prompt.kind == PROMPT_COMMAND)
			accept_command(st);
		else
			accept(st);
		return;
	case ACT_COMPLETE:
		if (st->prompt.kind != PROMPT_COMMAND)
			return;
		snprintf(st->prompt.tabbed, sizeof(st->prompt.tabbed), "%s", st->prompt.line.text);
		command_gather(st, st->prompt.line.text);
		complete(st);
		if (st->words.of)
			st->prompt.tabbed[0] = '\0';
		return;
	case ACT_CANCEL:
		cancel(st);
		return;
	default:
		break;
	}
	if (st->prompt.fresh && key->code > ' ' && key->code < K_BACKSPACE)
		line_set(&st->prompt.line, "");
	st->prompt.fresh = false;
	if (line_key(&st->prompt.line, key->code, &changed)) {
		if (st->prompt.line.full)
			ui_state_say(st, true, "the line is full");
		if (changed)
			follow_typing(st, st->prompt.line.text);
		else if (key->code == K_BACKSPACE && !st->prompt.line.size)
			st->prompt.kind = PROMPT_NONE;
	}
}

void prompt_keys_refresh(struct ui_state *st)
{
	struct prompt *p = &st->prompt;
	const char *hint;

	if (p->kind == PROMPT_REWIND)
		rewind_time_hint(st, p->line.text, p->candidates, sizeof(p->candidates));
	if (p->kind != PROMPT_COMMAND)
		return;
	hint = command_hint(p->line.text);
	if (!command_candidates(st, p->line.text, p->candidates, sizeof(p->candidates)) && hint)
		snprintf(p->candidates, sizeof(p->candidates), "%s", hint);
}

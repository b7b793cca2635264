// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keys and the mouse: which part of the screen gets them. Runs on: the main thread.
 */
#include "ui/input.h"

#include <assert.h>

#include "ui/actions.h"
#include "ui/dialog.h"
#include "ui/prompt_keys.h"
#include "ui/rewind.h"
#include "ui/fold/fold.h"
#include "ui/view/navigate.h"
#include "ui/view/table.h"
#include "ui/view/view.h"

#define CLICK_NS   400000000ull /* between two presses of a double click */
#define WHEEL_ROWS 3

/* Find the topmost zone at a cell. */
static const struct zone *zone_at(const struct ui_state *st, const struct key *key)
{
	for (uint32_t i = st->nr_zones; i-- > 0;) {
		const struct zone *z = &st->zones[i];

		if (key->row >= z->row && key->row - z->row < z->rows && key->col >= z->col &&
		    key->col - z->col < z->cols)
			return z;
	}
	return NULL;
}

static void click_row(struct ui_state *st, const struct key *key, const struct zone *z)
{
	const struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	uint32_t row = list->top + key->row - z->row;
	bool twice = st->now_ns - st->click_ns < CLICK_NS && st->click_row == key->row &&
		     !(v->click && key->col != st->press.col);

	if (v->click) {
		if (!v->click(st, key->row - z->row, key->col))
			return;
	} else if (row < list->nr) {
		table_move_to(st, row);
	} else {
		return;
	}
	st->press.on = true;
	st->press.row = key->row;
	st->press.col = key->col;
	st->click_ns = twice ? 0 : st->now_ns;
	st->click_row = key->row;
	if (twice && v->context == CTX_LIST)
		actions_do(st, ACT_OPEN, K_ENTER);
}

static void wheel(struct ui_state *st, const struct key *key, const struct zone *z, bool over)
{
	const struct view *v = view_of(st->view);
	struct key arrow = { .code = key->button == BUTTON_UP ? K_UP : K_DOWN };

	if (!over && v->wheel && z && z->kind == ZONE_ROWS) {
		v->wheel(st, key->button == BUTTON_UP, key->row - z->row, key->col);
		return;
	}
	for (int i = 0; i < WHEEL_ROWS; i++)
		input_key(st, &arrow);
}

/* Handle a release: at another cell than the press, the view was dragged. */
static void release(struct ui_state *st, const struct key *key, bool over)
{
	const struct view *v = view_of(st->view);
	int rows = (int)key->row - st->press.row, cols = (int)key->col - st->press.col;

	rewind_release(st, key->col);
	if (st->press.on && !over && v->drag && (rows || cols))
		v->drag(st, rows, cols);
	st->press.on = false;
}

static void mouse(struct ui_state *st, const struct key *key)
{
	const struct zone *z = zone_at(st, key);
	bool over = st->dialog.ops || st->prompt.kind;

	assert(key->code == K_MOUSE);
	if (key->button == BUTTON_RELEASED) {
		release(st, key, over);
		return;
	}
	st->press.on = false;
	if (key->button != BUTTON_LEFT) {
		wheel(st, key, z, over);
		return;
	}
	if (!z)
		return;
	if (z->kind == ZONE_ENTRIES)
		dialog_click(st, key->row - z->row);
	else if (z->kind == ZONE_ACTION)
		input_key(st, &(struct key){ .code = user_keys_first(st->user_keys,
								     view_context(st), z->value) });
	else if (over)
		return;
	else if (z->kind == ZONE_STRIP)
		rewind_press(st, key->col);
	else if (z->kind == ZONE_COLUMN)
		table_sort_by(st, (uint8_t)z->value);
	else if (z->kind == ZONE_VIEW)
		navigate_to(st, z->value);
	else
		click_row(st, key, z);
}

/* Return whether the action is about rows. Changing the view, going back and quitting are not. */
static bool is_about_rows(enum action action)
{
	return action != ACT_QUIT && action != ACT_BACK && action != ACT_HELP &&
	       action != ACT_REDRAW && action != ACT_SUSPEND &&
	       !(action >= ACT_VIEW_FUNCTIONS && action <= ACT_PREVIOUS_VIEW);
}

bool input_waits(const struct ui_state *st, const struct key *key)
{
	enum key_context context = view_context(st);

	return context == CTX_LIST && folds_is_late(st) && !st->lists[st->view].nr &&
	       is_about_rows(user_keys_find(st->user_keys, context, key->code));
}

void input_key(struct ui_state *st, const struct key *key)
{
	enum key_context context = view_context(st);
	enum action action = user_keys_find(st->user_keys, context, key->code);

	if (key->code == K_MOUSE) {
		mouse(st, key);
		return;
	}
	/* Clear the message of the key before. */
	st->message[0] = '\0';
	/* Actions that are the same in all contexts. */
	if (action == ACT_QUIT || action == ACT_REDRAW || action == ACT_SUSPEND)
		actions_do(st, action, key->code);
	else if (context == CTX_PICKER)
		dialog_key(st, key);
	else if (context == CTX_PROMPT)
		prompt_keys_press(st, key);
	else if (action)
		actions_do(st, action, key->code);
	else if (key->code)
		ui_state_say(st, false, "no such key here (F1 lists them)");
	prompt_keys_refresh(st);
}

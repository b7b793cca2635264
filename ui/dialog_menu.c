// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The menu of a row: its actions, and why some of them are not possible. The
 * main thread.
 */
#include <stdio.h>
#include <string.h>

#include "ui/actions.h"
#include "ui/actions_row.h"
#include "ui/dialog.h"
#include "ui/view/view.h"

static void add_entry(struct ui_state *st, const struct key_binding *b)
{
	const char *refusal = actions_row_refusal(st, b->action);
	struct dialog_entry *entry = dialog_add(&st->dialog);
	char key[8];

	if (!entry)
		return;
	entry->value = b->action;
	entry->refused = refusal;
	snprintf(entry->name, sizeof(entry->name), "%-6s %s",
		 key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, b->action)), b->name);
	snprintf(entry->detail, sizeof(entry->detail), "%s", refusal ? refusal : b->help);
}

/* Add why the row's function has no name, and how to fix it. */
static void add_reason(struct ui_state *st)
{
	uint32_t function = view_function(st);
	const struct profile_function *f = function == UINT32_MAX ? NULL
								  : &st->shown->functions[function];
	struct dialog_entry *entry;

	if (!f || !f->reason || !*f->reason || !(entry = dialog_add(&st->dialog)))
		return;
	snprintf(entry->name, sizeof(entry->name), "why it has no name");
	snprintf(entry->detail, sizeof(entry->detail), "%s", f->reason);
	if (!f->fix || !*f->fix || !(entry = dialog_add(&st->dialog)))
		return;
	snprintf(entry->name, sizeof(entry->name), "how to fix it");
	snprintf(entry->detail, sizeof(entry->detail), "%s", f->fix);
}

/* Add all actions on rows of the key table. */
static void fill(struct ui_state *st)
{
	for (const struct key_binding *b = key_table(); b->action; b++)
		if (b->action == ACT_OPEN || (b->group == GROUP_ROW && b->action != ACT_MENU))
			add_entry(st, b);
	add_reason(st);
}

static bool use(struct ui_state *st, const struct dialog_entry *entry, bool add)
{
	enum action action = entry ? (enum action)entry->value : ACT_NONE;

	if (!entry) {
		ui_state_say(st, true, "no matching action");
		return false;
	}
	if (action == ACT_NONE) {
		ui_state_say(st, false, "%s: %s", entry->name, entry->detail);
		return true;
	}
	/* Close it first: the action may open another one. */
	dialog_close(st);
	actions_do(st, action, key_first(CTX_LIST, action));
	return false;
}

/* Handle keys as without the menu; after a slash they are text. */
static bool key(struct ui_state *st, uint32_t code)
{
	enum action action = user_keys_find(st->user_keys, CTX_LIST, code);
	const struct dialog *d = &st->dialog;

	if (d->typing || code <= ' ' || code >= K_BACKSPACE)
		return false;
	if (code == '/') {
		st->dialog.typing = true;
		return true;
	}
	for (uint32_t i = 0; i < d->nr; i++)
		if (action && d->entries[i].value == action && !d->entries[i].refused) {
			use(st, &d->entries[i], false);
			return true;
		} else if (action && d->entries[i].value == action) {
			ui_state_say(st, true, "%s", d->entries[i].detail);
			return true;
		}
	ui_state_say(st, false, "no such key in this menu (/ filters it)");
	return true;
}

const struct dialog_ops dialog_menu = {
	.title = "m Actions of this row",
	.hint = "press a key on the left; / filters",
	.foot = "Enter run the selected action   Esc close",
	.key = key,
	.fill = fill,
	.use = use,
};

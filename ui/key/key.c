// SPDX-License-Identifier: GPL-2.0-or-later
/* Keys and actions: the table (key.h), and keys of the user's settings, which override it. */
#include "ui/key/key.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"
#include "ui/text/text.h"

#undef KEY_ACTION

#define KEY_BINDING(id, name, group, label, help, ctx, codes, typing, typing_codes)                \
	{ ACT_##id, name, GROUP_##group, label, help, ctx, codes, typing, typing_codes },

static const struct key_binding table[] = {
	KEY_TABLE(KEY_BINDING){ .action = ACT_NONE },
};

static const char *const groups[GROUP_NR] = {
	[GROUP_VIEW] = "VIEWS",		[GROUP_MOVE] = "MOVE",
	[GROUP_FIND] = "FIND",		[GROUP_ORDER] = "SORT AND SHAPE",
	[GROUP_ROW] = "ACT ON THE ROW", [GROUP_SAMPLED] = "SAMPLING",
	[GROUP_TIME] = "TIME",		[GROUP_PROGRAM] = "PROGRAM",
};

static const struct {
	uint32_t code;
	const char *name;
} names[] = {
	{ K_TAB, "Tab" },     { K_ENTER, "Enter" }, { K_ESC, "Esc" },	    { K_BACKSPACE, "Bksp" },
	{ ' ', "Space" },     { K_UP, "Up" },	    { K_DOWN, "Down" },	    { K_LEFT, "Left" },
	{ K_RIGHT, "Right" }, { K_PGUP, "PgUp" },   { K_PGDN, "PgDn" },	    { K_HOME, "Home" },
	{ K_END, "End" },     { K_DELETE, "Del" },  { K_BACKTAB, "S-Tab" }, { K_MOUSE, "Mouse" },
};

const struct key_binding *key_table(void)
{
	return table;
}

const char *key_group(enum key_group group)
{
	assert((unsigned int)group < GROUP_NR);
	return groups[group];
}

const char *key_where(const struct key_binding *binding)
{
	return binding->contexts ? "" : " (in a picker or prompt)";
}

enum action key_find(enum key_context context, uint32_t code)
{
	if (!code)
		return ACT_NONE;
	for (const struct key_binding *b = table; b->action; b++) {
		for (int i = 0; i < KEYS_MAX; i++) {
			if ((b->contexts & context) && b->codes[i] == code)
				return b->action;
			if ((b->typing & context) && b->typing_codes[i] == code)
				return b->action;
		}
	}
	return ACT_NONE;
}

/* Return the key to show for an action: 0 if it has none in @context. */
static uint32_t key_first(enum key_context context, enum action action)
{
	for (const struct key_binding *b = table; b->action; b++) {
		if (b->action != action)
			continue;
		if (b->contexts & context)
			return b->codes[0];
		return b->typing & context ? b->typing_codes[0] : 0;
	}
	return 0;
}

const char *key_name_of(char buf[static 8], uint32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].code == code)
			return names[i].name;
	if (code > K_F0)
		snprintf(buf, 8, "F%u", (code - K_F0) % 100);
	else if (code < 32)
		snprintf(buf, 8, "^%c", (char)(code + '@'));
	else
		snprintf(buf, 8, "%c", (char)code);
	return buf;
}

uint32_t key_code(const char *name, size_t size)
{
	if (size == 1 && *name > ' ' && *name <= '~')
		return (uint32_t)*name;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i].name) == size && !strncasecmp(names[i].name, name, size) &&
		    names[i].code != K_MOUSE)
			return names[i].code;
	if (size == 2 && name[0] == '^' && name[1] >= '@' && name[1] <= '~')
		return K_CTRL((uint32_t)name[1]);
	if ((size == 2 || size == 3) && (*name == 'F' || *name == 'f')) {
		uint64_t n;

		if (!number_u64(name + 1, size - 1, 1, 12, &n))
			return K_F((uint32_t)n);
	}
	return K_NONE;
}

const char *key_names_of(char *buf, size_t size, const struct key_binding *binding)
{
	const uint32_t *codes = binding->contexts ? binding->codes : binding->typing_codes;
	size_t at = 0;
	char name[8];

	*buf = '\0';
	for (int i = 0; i < KEYS_MAX && codes[i] && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? " " : "",
				       key_name_of(name, codes[i]));
	return buf;
}

/*
 * Bind keys to actions by the settings. Pure; any thread.
 *
 * Invariant: a key code is in the items once.
 */

static const struct key_binding *action_named(const char *name)
{
	for (const struct key_binding *k = key_table(); k->action; k++)
		if (k->contexts && !strcmp(k->name, name))
			return k;
	return NULL;
}

static const struct user_key *find(const struct user_keys *b, uint32_t code)
{
	for (uint32_t i = 0; b && i < b->nr; i++)
		if (b->items[i].code == code)
			return &b->items[i];
	return NULL;
}

/* Keys that cannot be bound: the way out. */
static bool is_fixed(uint32_t code)
{
	return code == K_ESC || code == K_ENTER || code == K_CTRL('c') || code == K_F(10);
}

/* Return the table's entry of an action: the table is in the order of enum action. */
static const struct key_binding *binding_of(enum action action)
{
	const struct key_binding *k = &key_table()[action - 1];

	assert(k->action == action);
	return k;
}

static int add_key(struct user_keys *b, const struct key_binding *action, const char *name,
		   uint32_t file, struct err *e)
{
	uint32_t code = key_code(name, strlen(name));
	struct user_key *there = (struct user_key *)find(b, code);

	if (!code)
		return err_set(e, -EINVAL,
			       "unknown key '%s'\n  see proftop --list-keys: x, F12, ^T, Space, "
			       "PgUp",
			       name);
	if (is_fixed(code))
		return err_set(e, -EINVAL, "key '%s' cannot be bound", name);
	if (there && there->file == file && there->action != action->action)
		return err_set(e, -EINVAL, "key '%s' is already bound to %s", name,
			       binding_of(there->action)->name);
	if (!there && b->nr == USER_KEYS_MAX)
		return err_set(e, -EINVAL, "too many bound keys: at most %d", USER_KEYS_MAX);
	if (!there)
		there = &b->items[b->nr++];
	*there = (struct user_key){ code, action->action, file };
	return 0;
}

int user_keys_add(struct user_keys *b, const char *action, const char *keys, uint32_t file,
		  struct err *e)
{
	const struct key_binding *k = action_named(action);
	int code = 0;

	if (!k)
		return err_set(e, -EINVAL,
			       "unknown action '%s'\n"
			       "  see proftop --list-keys",
			       action);
	for (keys += strspn(keys, " \t"); *keys && !code; keys += strspn(keys, " \t")) {
		size_t size = strcspn(keys, " \t");
		char name[16];

		snprintf(name, sizeof(name), "%.*s", (int)size, keys);
		code = add_key(b, k, name, file, e);
		keys += size;
	}
	return code;
}

int user_keys_check(const struct user_keys *b, struct err *e)
{
	static const enum action needed[] = { ACT_BACK, ACT_QUIT, ACT_HELP, ACT_COMMAND };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!user_keys_first(b, CTX_LIST, needed[i]))
			return err_set(e, -EINVAL, "[keys]: no key left for %s",
				       binding_of(needed[i])->name);
	return 0;
}

enum action user_keys_find(const struct user_keys *b, enum key_context context, uint32_t code)
{
	const struct user_key *mine = context & CTX_PAGES ? find(b, code) : NULL;
	const struct key_binding *k = mine ? binding_of(mine->action) : NULL;

	return k && (k->contexts & context) ? mine->action
	       : mine			    ? ACT_NONE
					    : key_find(context, code);
}

/* Return key @i of the action outside of text input: bound keys first; 0: no more. */
static uint32_t key_at(const struct user_keys *b, const struct key_binding *k, unsigned int i)
{
	for (uint32_t n = 0; b && n < b->nr; n++)
		if (b->items[n].action == k->action && i-- == 0)
			return b->items[n].code;
	for (unsigned int n = 0; n < KEYS_MAX && k->codes[n]; n++)
		if (!find(b, k->codes[n]) && i-- == 0)
			return k->codes[n];
	return 0;
}

uint32_t user_keys_first(const struct user_keys *b, enum key_context context, enum action action)
{
	const struct key_binding *k = action ? &key_table()[action - 1] : NULL;

	if (!k || !(context & CTX_PAGES))
		return key_first(context, action);
	return k->contexts & context ? key_at(b, k, 0) : 0;
}

const char *user_keys_names(const struct user_keys *b, char *buf, size_t size,
			    const struct key_binding *binding)
{
	size_t at = 0;
	uint32_t code;
	char name[8];

	if (!binding->contexts)
		return key_names_of(buf, size, binding);
	*buf = '\0';
	for (unsigned int i = 0; (code = key_at(b, binding, i)) && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? " " : "",
				       key_name_of(name, code));
	/* Find an action by name. */
	if (!at)
		snprintf(buf, size, ":%s", binding->name);
	return buf;
}

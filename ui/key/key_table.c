// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Look up keys and actions in the table, which is in key_table.h. Constant; any thread.
 */
#include "ui/key/key.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"
#include "ui/text/number.h"

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

uint32_t key_first(enum key_context context, enum action action)
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

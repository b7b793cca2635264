/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys of the settings ([keys]), which take precedence over the key table.
 * They apply in views and the help page, not in text input. Pure; any thread.
 */
#ifndef UI_KEY_USER_KEYS_H
#define UI_KEY_USER_KEYS_H

#include "symbols/base/base.h"
#include "ui/key/key.h"

#define USER_KEYS_MAX 64

struct user_key {
	uint32_t code;
	enum action action;
	uint32_t file; /* number of its file */
};

struct user_keys {
	struct user_key items[USER_KEYS_MAX];
	uint32_t nr;
};

/*
 * Bind keys to an action, "threads = x ^T", both by the names of --list-keys. A later
 * @file takes keys from an earlier one. Return 0; -EINVAL with a message: unknown action
 * or key, a key bound twice in one file, or a key that cannot be bound.
 */
int user_keys_add(struct user_keys *b, const char *action, const char *keys, uint32_t file,
		  struct err *e);
/* Check that back, help and quit have a key. Return 0 or -EINVAL with a message. */
int user_keys_check(const struct user_keys *b, struct err *e);

/* Do as key_find(), key_first() and key_names_of(), with the keys of the user first. @b NULL: none.
 */
enum action user_keys_find(const struct user_keys *b, enum key_context context, uint32_t code);
uint32_t user_keys_first(const struct user_keys *b, enum key_context context, enum action action);
const char *user_keys_names(const struct user_keys *b, char *buf, size_t size,
			    const struct key_binding *binding);

#endif

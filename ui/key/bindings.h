/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys of the settings ([keys]), which take precedence over the key table.
 * They apply in views and the help page, not in text input. Pure; any thread.
 */
#ifndef UI_KEY_BINDINGS_H
#define UI_KEY_BINDINGS_H

#include "symbols/base/base.h"
#include "ui/key/keys.h"

#define BINDINGS_MAX 64

struct binding {
	uint32_t code;
	enum action action;
	uint32_t file; /* number of its file */
};

struct bindings {
	struct binding items[BINDINGS_MAX];
	uint32_t nr;
};

/*
 * Bind keys to an action, "threads = x ^T", both by the names of --list-keys. A later
 * @file takes keys from an earlier one. Return 0; -EINVAL with a message: unknown action
 * or key, a key bound twice in one file, or a key that cannot be bound.
 */
int bindings_add(struct bindings *b, const char *action, const char *keys, uint32_t file,
		 struct err *e);
/* Check that back, help and quit have a key. Return 0 or -EINVAL with a message. */
int bindings_check(const struct bindings *b, struct err *e);

/* Do as keys_find(), keys_first() and keys_names(), with bindings. @b NULL: none. */
enum action bindings_find(const struct bindings *b, enum key_context context, uint32_t code);
uint32_t bindings_first(const struct bindings *b, enum key_context context, enum action action);
const char *bindings_names(const struct bindings *b, char *buf, size_t size,
			   const struct key_binding *binding);

#endif

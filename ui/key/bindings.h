/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys that a person bound to actions, over those of the key table: the
 * [keys] of the settings. They count where keys are no text: in the views and
 * the help page. Pure; any thread.
 */
#ifndef UI_KEY_BINDINGS_H
#define UI_KEY_BINDINGS_H

#include "symbols/base/base.h"
#include "ui/key/keys.h"

#define BINDINGS_MAX 64

struct binding {
	uint32_t code;
	enum action action;
	uint32_t file; /* which file it is from */
};

struct bindings {
	struct binding items[BINDINGS_MAX];
	uint32_t nr;
};

/*
 * "threads = x ^T": an action by its name, keys by theirs, as the help page has
 * them. A key of an earlier @file goes to the new action. 0; -EINVAL with a
 * sentence: no such action or key, a key that one file binds twice, or one
 * that always means what it means.
 */
int bindings_add(struct bindings *b, const char *action, const char *keys, uint32_t file,
		 struct err *e);
/* After all files: can one still get back, help and out? 0 or -EINVAL with a sentence. */
int bindings_check(const struct bindings *b, struct err *e);

/* As keys_find(), keys_first() and keys_names(), with these. @b NULL: none. */
enum action bindings_find(const struct bindings *b, enum key_context context, uint32_t code);
uint32_t bindings_first(const struct bindings *b, enum key_context context, enum action action);
const char *bindings_names(const struct bindings *b, char *buf, size_t size,
			   const struct key_binding *binding);

#endif

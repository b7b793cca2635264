/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of users from /etc/passwd only: a look-up by the network could block
 * the screen. Read once; the main thread.
 */
#ifndef UI_TEXT_USERS_H
#define UI_TEXT_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "symbols/base/text.h"

struct users;

/* Read @path (NULL: /etc/passwd). Return NULL if unreadable: all users are then numbers. */
struct users *users_load(const char *path);
void users_free(struct users *u);
/* Return the name (clean), the number if there is no name, "?" for (uid_t)-1. @u may be NULL. */
struct safe_text users_name(const struct users *u, uid_t uid, char *buf, size_t size);

/* Find the number of a name. Return false if unknown. @u may be NULL. */
bool users_find(const struct users *u, const char *name, uid_t *uid);

#endif

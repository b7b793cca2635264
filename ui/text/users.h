/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of users, from /etc/passwd alone: no look-up that could ask a network
 * while the screen waits. Read once; the main thread.
 */
#ifndef UI_TEXT_USERS_H
#define UI_TEXT_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "symbols/base/text.h"

struct users;

/* All of @path (NULL: /etc/passwd). NULL if it cannot be read: then all are numbers. */
struct users *users_load(const char *path);
void users_free(struct users *u);
/* Clean; the number where there is no name, "?" for (uid_t)-1. @u may be NULL. */
struct safe_text users_name(const struct users *u, uid_t uid, char *buf, size_t size);

/* The number of a name. False: not there. @u may be NULL. */
bool users_find(const struct users *u, const char *name, uid_t *uid);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Look up names of users in /etc/passwd. Runs on: the main thread.
 */
#include "ui/text/users.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define USERS_MAX 65536u
#define NAME_SIZE 32

struct user {
	uid_t uid;
	char name[NAME_SIZE];
};

struct users {
	struct user *items;
	size_t nr;
};

static int by_uid(const void *pa, const void *pb)
{
	const struct user *a = pa, *b = pb;

	return COMPARE(a->uid, b->uid);
}

static void read_all(struct users *u, FILE *f)
{
	size_t capacity = 0;
	struct passwd *pw;

	while (u->nr < USERS_MAX && (pw = fgetpwent(f))) {
		if (u->nr == capacity) {
			capacity = capacity ? capacity * 2 : 64;
			u->items = xrealloc_array(u->items, capacity, sizeof(*u->items));
		}
		u->items[u->nr].uid = pw->pw_uid;
		text_sanitise(u->items[u->nr].name, NAME_SIZE, pw->pw_name, strlen(pw->pw_name));
		u->nr++;
	}
}

struct users *users_load(const char *path)
{
	FILE *f = fopen(path ? path : "/etc/passwd", "re");
	struct users *u;

	if (!f)
		return NULL;
	u = xcalloc(1, sizeof(*u));
	read_all(u, f);
	fclose(f);
	if (u->nr)
		qsort(u->items, u->nr, sizeof(*u->items), by_uid);
	return u;
}

void users_free(struct users *u)
{
	if (!u)
		return;
	free(u->items);
	free(u);
}

struct safe_text users_name(const struct users *u, uid_t uid, char *buf, size_t size)
{
	const struct user key = { .uid = uid }, *found = NULL;

	if (uid == (uid_t)-1)
		return TEXT("?");
	if (u && u->nr)
		found = bsearch(&key, u->items, u->nr, sizeof(*u->items), by_uid);
	if (found)
		return text_sanitise(buf, size, found->name, strlen(found->name));
	return text_format(buf, size, "%u", (unsigned int)uid);
}

bool users_find(const struct users *u, const char *name, uid_t *uid)
{
	for (size_t i = 0; u && i < u->nr; i++) {
		if (strcmp(u->items[i].name, name))
			continue;
		*uid = u->items[i].uid;
		return true;
	}
	return false;
}

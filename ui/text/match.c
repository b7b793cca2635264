// SPDX-License-Identifier: GPL-2.0-or-later
/* Search and filter; names of users, read from a file. */
#include "ui/text/text.h"

#include <assert.h>
#include <ctype.h>
#include <pwd.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

void match_init(struct match *m)
{
	memset(m, 0, sizeof(*m));
}

void match_fini(struct match *m)
{
	if (m->is_regex)
		regfree(&m->regex);
	memset(m, 0, sizeof(*m));
}

/*
 * Nested repeats ("a{9}{9}{9}") make regcomp(3) allocate gigabytes, and back references
 * make regexec(3) exponential: match such text literally.
 */
static bool affordable(const char *s)
{
	unsigned int repeats = 0;

	for (const char *p = s; *p; p++)
		repeats += *p == '{' && isdigit((unsigned char)p[1]);
	if (repeats > 1)
		return false;
	for (; (s = strchr(s, '\\')); s += 2) {
		if (!s[1])
			return false;
		if (isdigit((unsigned char)s[1]))
			return false;
	}
	return true;
}

/* Compile @pattern. A brace without a number behind it is text: "{closure#0}". */
static int compile(struct match *m, const char *pattern)
{
	char text[2 * MATCH_MAX];
	bool escaped = false;
	size_t size = 0;

	for (const char *p = pattern; *p; p++) {
		if (*p == '{' && !escaped && !isdigit((unsigned char)p[1]))
			text[size++] = '\\';
		escaped = *p == '\\' && !escaped;
		text[size++] = *p;
	}
	text[size] = '\0';
	return regcomp(&m->regex, text,
		       REG_EXTENDED | REG_NOSUB | (m->ignore_case ? REG_ICASE : 0));
}

void match_set(struct match *m, const char *text)
{
	const char *pattern;
	int code = -1;
	size_t size;

	match_fini(m);
	snprintf(m->text, sizeof(m->text), "%s", text);
	m->negate = m->text[0] == '!';
	m->language = profile_language_prefix(m->text + m->negate, &size);
	m->begin = m->negate + (m->language ? size : 0);
	pattern = m->text + m->begin;
	m->ignore_case = true;
	for (const char *p = pattern; *p; p++)
		if (isupper((unsigned char)*p))
			m->ignore_case = false;
	if (!strpbrk(pattern, "^$*+?()[]{}|\\."))
		return;
	snprintf(m->why, sizeof(m->why), "repeats too much, or goes back");
	if (affordable(pattern)) {
		code = compile(m, pattern);
		regerror(code, &m->regex, m->why, sizeof(m->why));
	}
	m->is_regex = !code;
	m->bad = !m->is_regex;
}

/* A name as it is shown is found also where its characters are operators: "main.(*Tree).Insert". */
static bool finds_text(const struct match *m, struct safe_text t)
{
	const char *pattern = m->text + m->begin;

	if (m->ignore_case ? strcasestr(t.str, pattern) != NULL : strstr(t.str, pattern) != NULL)
		return true;
	return m->is_regex && !regexec(&m->regex, t.str, 0, NULL, 0);
}

/* The same, and a name as it is shown without its template arguments: "Box<>::run". */
static bool finds(const struct match *m, struct safe_text t)
{
	char buf[TEXT_MAX];

	return finds_text(m, t) || (strstr(m->text + m->begin, "<>") && strchr(t.str, '<') &&
				    finds_text(m, text_short_name(buf, t)));
}

/* Test if @f is in the language that is searched for. */
static bool speaks(const struct match *m, const struct profile_function *f)
{
	return !m->language || profile_language_name(f->kind) == m->language;
}

bool match_finds(const struct match *m, struct safe_text t)
{
	return !m->language && finds(m, t);
}

bool match_finds_name(const struct match *m, const struct profile_function *f)
{
	return speaks(m, f) && finds(m, f->name);
}

bool match_finds_function(const struct match *m, const struct profile_function *f)
{
	return speaks(m, f) && (finds(m, f->name) || finds(m, f->module));
}

static void *match_strip_make(const char *text)
{
	struct match *m = calloc(1, sizeof(*m));

	if (m)
		match_set(m, text);
	return m;
}

static bool strip_finds(const void *made, const struct strip_name *n)
{
	const struct profile_function f = { .name = n->name, .module = n->module, .kind = n->kind };

	return n->kind ? match_finds_function(made, &f) : match_finds(made, n->name);
}

static void strip_free(void *made)
{
	match_fini(made);
	free(made);
}

const struct strip_matcher match_strip = { match_strip_make, strip_finds, strip_free };

/*
 * Look up names of users in /etc/passwd. Runs on: the main thread.
 */

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

	assert(buf && size);
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of containers. Runs on: the asker.
 *
 * The files are JSON. Only the name is looked for, at the place where the tool writes it: a wrong
 * one would be another text of root's file, which is then no name by its letters, or a wrong label.
 */
#include "symbols/process/container_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"

#define FILE_MAX (1u << 20)
#define OLD_NS	 10000000000ULL /* containers are renamed */

static bool is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

const char *container_name_id(const char *path, size_t size)
{
	size_t run = 0;

	for (size_t i = 0; i < size; i++) {
		run = is_digit(path[i]) ? run + 1 : 0;
		if (run == CONTAINER_NAME_ID && (i + 1 == size || !is_digit(path[i + 1])))
			return path + i + 1 - CONTAINER_NAME_ID;
	}
	return NULL;
}

/* Copy the name that begins at @at and ends at a quote. Return false if it is none. */
static bool take(const char *at, char *name)
{
	size_t n = 0;

	at += *at == '/';
	while (isalnum((unsigned char)at[n]) || (n && at[n] && strchr("_.-", at[n])))
		n++;
	if (!n || n >= CONTAINER_NAME_MAX || at[n] != '"')
		return false;
	memcpy(name, at, n);
	name[n] = '\0';
	return true;
}

/* Find the value of a member of the outermost object: @key with quotes and colon. */
static const char *member(const char *text, const char *key)
{
	size_t size = strlen(key);
	int depth = 0;

	for (const char *at = text; *at; at++) {
		if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		if (*at != '"')
			continue;
		if (depth == 1 && !strncmp(at, key, size))
			return at + size;
		for (at++; *at && *at != '"'; at++)
			at += *at == '\\' && at[1];
		if (!*at)
			break;
	}
	return NULL;
}

/* Read a file of root, or of the user of proftop; NULL: there is none. The caller frees it. */
static char *read_file(const char *root, const char *path)
{
	const struct foreign_want want = { .path = path,
					   .root = root,
					   .size_max = FILE_MAX,
					   .owned = true,
					   .linked = true,
					   .uid = geteuid() };
	struct foreign_file file;
	char *text = NULL;
	struct err e;
	size_t size;

	if (foreign_open(&want, &file, &e))
		return NULL;
	if (foreign_read(file.fd, FILE_MAX, &text, &size))
		text = NULL;
	close(file.fd);
	return text;
}

/* docker: a file for each container, {"ID":...,"Name":"/web",...}. */
static bool from_docker(const char *root, const char *id, char *name)
{
	char path[160], *text;
	const char *at;
	bool found;

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%s/config.v2.json", id);
	text = read_file(root, path);
	at = text ? member(text, "\"Name\":\"") : NULL;
	found = at && take(at, name);
	free(text);
	return found;
}

/* podman: a file of all containers, [{"id":"3fa1...","names":["web"],...},...]. */
static bool from_podman(const char *root, const char *id, char *name)
{
	static const char names[] = "\"names\":[\"";
	char key[CONTAINER_NAME_ID + 16];
	char *text = read_file(root, "/var/lib/containers/storage/overlay-containers/"
				     "containers.json");
	const char *at, *next;
	bool found;

	snprintf(key, sizeof(key), "\"id\":\"%s\"", id);
	at = text ? strstr(text, key) : NULL;
	next = at ? strstr(at + strlen(key), "\"id\":\"") : NULL;
	at = at ? strstr(at, names) : NULL;
	found = at && (!next || at < next) && take(at + sizeof(names) - 1, name);
	free(text);
	return found;
}

static struct container_memo *memo_of(struct container_names *n, const char *id)
{
	for (unsigned int i = 0; i < CONTAINER_NAME_MEMO; i++)
		if (n->memo[i].read_ns && !memcmp(n->memo[i].id, id, CONTAINER_NAME_ID))
			return &n->memo[i];
	return NULL;
}

const char *container_name(struct container_names *n, const char *root, const char *id,
			   uint64_t now_ns)
{
	struct container_memo *m = memo_of(n, id);

	if (m && now_ns < m->read_ns + OLD_NS)
		return m->name;
	if (!m) {
		m = &n->memo[n->next];
		n->next = (n->next + 1) % CONTAINER_NAME_MEMO;
		memcpy(m->id, id, CONTAINER_NAME_ID);
		m->id[CONTAINER_NAME_ID] = '\0';
	}
	m->read_ns = now_ns ? now_ns : 1;
	if (!from_docker(root, m->id, m->name) && !from_podman(root, m->id, m->name))
		m->name[0] = '\0';
	return m->name;
}

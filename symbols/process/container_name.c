// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of containers, from JSON. Runs on: the process reader.
 */
#include "symbols/process/container_name.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"

#define FILE_MAX (1u << 20)
#define OLD_NS	 10000000000ULL /* containers are renamed */

/* Copy a name, docker's without its slash. Return false if it has other letters than a name. */
static bool take(const json_t *value, char *name)
{
	const char *text = json_string_value(value);
	size_t n = 0;

	if (!text)
		return false;
	text += *text == '/';
	while (isalnum((unsigned char)text[n]) || (n && text[n] && strchr("_.-", text[n])))
		n++;
	if (!n || n >= CONTAINER_NAME_MAX || text[n])
		return false;
	memcpy(name, text, n + 1);
	return true;
}

/* Read a file of root, or of the user of proftop; NULL: there is none. */
static json_t *read_file(const char *root, const char *path)
{
	const struct foreign_want want = { .path = path,
					   .root = root,
					   .size_max = FILE_MAX,
					   .owned = true,
					   .linked = true,
					   .uid = geteuid() };
	struct foreign_file file;
	json_t *json = NULL;
	char *text;
	struct err e;
	size_t size;

	if (foreign_open(&want, &file, &e))
		return NULL;
	if (!foreign_read(file.fd, FILE_MAX, &text, &size)) {
		json = json_loadb(text, size, 0, NULL);
		free(text);
	}
	close(file.fd);
	return json;
}

/* docker: a file for each container, {"ID":...,"Name":"/web",...}. */
static bool from_docker(const char *root, const char *id, char *name)
{
	char path[160];
	json_t *json;
	bool found;

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%s/config.v2.json", id);
	json = read_file(root, path);
	found = take(json_object_get(json, "Name"), name);
	json_decref(json);
	return found;
}

/* podman: a file of all containers, [{"id":"3fa1...","names":["web"],...},...]. */
static bool from_podman(const char *root, const char *id, char *name)
{
	json_t *list = read_file(root, "/var/lib/containers/storage/overlay-containers/"
				       "containers.json");
	const json_t *one;
	bool found = false;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *of = json_string_value(json_object_get(one, "id"));

		if (of && !strcmp(of, id)) {
			found = take(json_array_get(json_object_get(one, "names"), 0), name);
			break;
		}
	}
	json_decref(list);
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

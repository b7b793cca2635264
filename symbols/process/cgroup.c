// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recognise the container of a cgroup by the names that container tools use.
 *
 * Runs on: any thread (the process reader).
 */
#include "symbols/process/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"

#define ID_SHOWN 12 /* digits of a container id */
#define ID_LEAST 12
#define ID_WHOLE 64

struct part {
	const char *str;
	size_t size;
};

/* Text before and after the id or name of a container, and its kind. */
static const struct {
	const char *before, *after, *kind;
	bool is_id; /* hexadecimal digits; else a name */
} forms[] = {
	{ "docker-", ".scope", "docker", true },
	{ "libpod-", ".scope", "podman", true },
	{ "libpod-", "", "podman", true },
	{ "cri-containerd-", ".scope", "k8s", true },
	{ "crio-", ".scope", "k8s", true },
	{ "systemd-nspawn@", ".service", "nspawn", false },
	{ "machine-", ".scope", "machine", false },
	{ "lxc.payload.", "", "lxc", false },
};

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_id(struct part p, size_t least)
{
	for (size_t i = 0; i < p.size; i++)
		if (!is_hex(p.str[i]))
			return false;
	return p.size >= least;
}

static bool begins(struct part p, const char *with)
{
	return p.size >= strlen(with) && !memcmp(p.str, with, strlen(with));
}

static bool equals(struct part p, const char *text)
{
	return p.size == strlen(text) && begins(p, text);
}

/* Parse the line of one hierarchy: "ID:CONTROLLERS:PATH". */
static bool parse_line(const char *at, const char *end, struct part *name, struct part *path)
{
	const char *a = memchr(at, ':', (size_t)(end - at));
	const char *b = a ? memchr(a + 1, ':', (size_t)(end - a - 1)) : NULL;

	if (!b || b + 1 == end || b[1] != '/')
		return false;
	*name = (struct part){ a + 1, (size_t)(b - a - 1) };
	*path = (struct part){ b + 1, (size_t)(end - b - 1) };
	return true;
}

bool cgroup_path(const char *text, size_t size, const char **path, size_t *path_size)
{
	const char *end = text + size;
	struct part best = { NULL, 0 };

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct part name, found;

		if (!newline)
			break;
		if (parse_line(text, newline, &name, &found) &&
		    (!name.size || equals(name, "name=systemd")) && (!best.str || best.size == 1))
			best = found;
		text = newline + 1;
	}
	*path = best.str;
	*path_size = best.size;
	return best.str;
}

/* Take the last part off @path; false: none left. */
static bool last_part(struct part *path, struct part *out)
{
	size_t from;

	while (path->size && path->str[path->size - 1] == '/')
		path->size--;
	for (from = path->size; from && path->str[from - 1] != '/'; from--)
		;
	*out = (struct part){ path->str + from, path->size - from };
	path->size = from;
	return out->size;
}

/* Copy an id; systemd writes '-' as \x2d in names. */
static size_t put(char *out, const char *kind, struct part id)
{
	size_t n = (size_t)snprintf(out, CGROUP_CONTAINER_MAX, "%s:", kind);

	for (size_t i = 0; i < id.size && n + 1 < CGROUP_CONTAINER_MAX; i++) {
		bool dash = id.size - i >= 4 && !memcmp(id.str + i, "\\x2d", 4);

		out[n++] = dash ? '-' : id.str[i];
		i += dash ? 3 : 0;
	}
	out[n] = '\0';
	return n;
}

/* Recognise a container by the last part of the path alone. */
static size_t by_form(struct part p, char *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		size_t before = strlen(forms[i].before), after = strlen(forms[i].after);
		struct part id = { p.str + before, p.size - before - after };

		if (p.size <= before + after || !begins(p, forms[i].before) ||
		    memcmp(p.str + p.size - after, forms[i].after, after))
			continue;
		if (!forms[i].is_id)
			return put(out, forms[i].kind, id);
		if (!is_id(id, ID_LEAST))
			continue;
		id.size = ID_SHOWN;
		return put(out, forms[i].kind, id);
	}
	return 0;
}

size_t cgroup_container(const char *path, size_t size, char out[static CGROUP_CONTAINER_MAX])
{
	struct part rest = { path, size }, p;

	out[0] = '\0';
	while (last_part(&rest, &p)) {
		struct part above = rest, parent = { "", 0 };
		size_t n = by_form(p, out);

		if (n)
			return n;
		last_part(&above, &parent);
		if (equals(parent, "lxc") || equals(parent, "lxc.payload"))
			return put(out, "lxc", p);
		if (p.size != ID_WHOLE || !is_id(p, ID_WHOLE))
			continue;
		p.size = ID_SHOWN;
		return put(out,
			   equals(parent, "docker")				 ? "docker"
			   : begins(parent, "pod") || begins(parent, "kubepods") ? "k8s"
			   : begins(parent, "libpod")				 ? "podman"
										 : "container",
			   p);
	}
	return 0;
}

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

#define ID_SHOWN   12 /* digits of a container id */
#define ID_LEAST   12
#define ID_WHOLE   64
#define USER_SHOWN ((size_t)10)

struct part {
	const char *str;
	size_t size;
};

/* Prefix and suffix of the id or name of a container, and its kind. */
static const struct {
	const char *prefix, *suffix, *kind;
	bool is_id;    /* hexadecimal digits; else a name */
	bool rootless; /* also below the systemd of a user */
} forms[] = {
	{ "docker-", ".scope", "docker", true, false },
	{ "libpod-", ".scope", "podman", true, true },
	{ "libpod-", "", "podman", true, false },
	{ "cri-containerd-", ".scope", "k8s", true, false },
	{ "crio-", ".scope", "k8s", true, false },
	{ "systemd-nspawn@", ".service", "nspawn", false, false },
	{ "machine-", ".scope", "machine", false, false },
	{ "lxc.payload.", "", "lxc", false, false },
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

/* Take the first part off @path; false: none left. */
static bool first_part(struct part *path, struct part *out)
{
	const char *slash;

	while (path->size && *path->str == '/') {
		path->str++;
		path->size--;
	}
	slash = memchr(path->str, '/', path->size);
	*out = (struct part){ path->str, slash ? (size_t)(slash - path->str) : path->size };
	path->str += out->size;
	path->size -= out->size;
	return out->size;
}

/* Set @out to @p without the prefix and the suffix. False: @p lacks one, or has nothing between. */
static bool strip(struct part p, const char *prefix, const char *suffix, struct part *out)
{
	size_t nr_prefix = strlen(prefix), nr_suffix = strlen(suffix);

	if (p.size <= nr_prefix + nr_suffix || !begins(p, prefix) ||
	    memcmp(p.str + p.size - nr_suffix, suffix, nr_suffix))
		return false;
	*out = (struct part){ p.str + nr_prefix, p.size - nr_prefix - nr_suffix };
	return true;
}

/* Copy an id; systemd writes '-' as \x2d in names. Of a user: "podman@1000:3fa1c2d4e5f6". */
static size_t put(char *out, const char *kind, struct part user, struct part id)
{
	size_t n = (size_t)snprintf(out, CGROUP_CONTAINER_MAX, "%s%s%.*s:", kind,
				    user.size ? "@" : "", (int)MIN(user.size, USER_SHOWN),
				    user.str);

	for (size_t i = 0; i < id.size && n + 1 < CGROUP_CONTAINER_MAX; i++) {
		bool dash = id.size - i >= 4 && !memcmp(id.str + i, "\\x2d", 4);

		out[n++] = dash ? '-' : id.str[i];
		i += dash ? 3 : 0;
	}
	out[n] = '\0';
	return n;
}

/* Copy the start of an id. *@whole: the complete id; NULL: shorter, or of a user, any text. */
static size_t put_id(char *out, const char *kind, struct part user, struct part id,
		     const char **whole)
{
	*whole = user.size || id.size != ID_WHOLE ? NULL : id.str;
	id.size = ID_SHOWN;
	return put(out, kind, user, id);
}

/* Recognise a container by one part of the path alone. */
static size_t by_form(struct part p, struct part user, char *out, const char **whole)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct part id;

		if ((user.size && !forms[i].rootless) ||
		    !strip(p, forms[i].prefix, forms[i].suffix, &id))
			continue;
		if (!forms[i].is_id)
			return put(out, forms[i].kind, user, id);
		if (is_id(id, ID_LEAST))
			return put_id(out, forms[i].kind, user, id, whole);
	}
	return 0;
}

/* Recognise a container of the system by its name and the one above. */
static size_t by_parent(struct part p, struct part parent, char *out, const char **whole)
{
	static const struct part system = { "", 0 };

	if (equals(parent, "lxc") || equals(parent, "lxc.payload"))
		return put(out, "lxc", system, p);
	if (p.size != ID_WHOLE || !is_id(p, ID_WHOLE))
		return 0;
	return put_id(out,
		      equals(parent, "docker")				    ? "docker"
		      : begins(parent, "pod") || begins(parent, "kubepods") ? "k8s"
		      : begins(parent, "libpod")			    ? "podman"
									    : "container",
		      system, p, whole);
}

size_t cgroup_container(const char *path, size_t size, char out[static CGROUP_CONTAINER_MAX],
			const char **id)
{
	struct part rest = { path, size }, parent = { "", 0 }, user = { "", 0 }, p;
	size_t n = 0;

	out[0] = '\0';
	*id = NULL;
	/* The outermost one: users in it may choose the names of cgroups below. */
	for (; !n && first_part(&rest, &p); parent = p) {
		/* Users choose the names below their systemd. */
		if (!user.size && strip(p, "user@", ".service", &user))
			continue;
		n = by_form(p, user, out, id);
		if (!n && !user.size)
			n = by_parent(p, parent, out, id);
	}
	return n;
}

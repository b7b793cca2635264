// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Command line, parent, cgroup and service of processes, names of containers, users with trusted
 * files.
 *
 * Invariant: a key in the queue has an entry with queued set.
 *
 * Runs on: the builder (get, wanted) and the process reader (serve).
 */
#include "symbols/process/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/sandbox/sandbox.h"

#define DETAILS_COMMAND_MAX 512		    /* bytes kept of a command line */
#define OLD_NS		    10000000000ULL  /* programs change their command lines */
#define SWEEP_NS	    5000000000ULL   /* shortest time between sweeps of a full table */
#define KEEP_NS		    600000000000ULL /* of entries that are not requested */
#define ENTRIES_MIN	    256u
#define ENTRIES_SWEPT	    16384u /* smallest table that is swept when full */
#define ENTRIES_MAX	    65536u /* a power of two */
#define QUEUE_MAX	    1024u
#define TEXT_SIZE_MAX	    4096u
#define STATUS_MAX	    (16u << 10)
#define SERVICE_MAX	    256u /* bytes kept of each text of a service */

/* Flag in the key of an ancestor; the rest is its pid. */
#define BY_PID (1u << 31)

/* The process context of a process, where it was read last. */
struct context_seen {
	uint64_t at;	       /* 0: none was found */
	uint64_t published_ns; /* its number; another one after each change */
	uint64_t search_ns,
		pause_ns; /* when its mappings are searched again; before that, how long */
};

struct entry {
	uint32_t key; /* 0: free */
	pid_t pid;
	uint64_t read_ns; /* 0: never */
	bool queued;
	bool used; /* since the last sweep */
	bool gone; /* the process has ended; its details are kept */
	struct context_seen seen;
	struct process_details *known; /* with its texts after it; NULL: none */
};

struct details {
	struct maps *maps;
	pthread_mutex_t lock; /* of all fields below */
	struct entry *entries;
	uint32_t nr, capacity;
	uint64_t swept_ns, keep_ns;
	uint32_t queue[QUEUE_MAX]; /* keys */
	uint32_t nr_queued, first;
	struct container_names names; /* of the process reader; not under the lock */
};

struct details *details_new(struct maps *maps)
{
	struct details *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->maps = maps;
	d->capacity = ENTRIES_MIN;
	d->keep_ns = KEEP_NS;
	d->entries = alloc_sparse(d->capacity * sizeof(*d->entries));
	if (!d->entries) {
		free(d);
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

void details_keep(struct details *d, uint64_t span_ns)
{
	d->keep_ns = MAX(span_ns, KEEP_NS);
}

void details_free(struct details *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->capacity; i++)
		free(d->entries[i].known);
	free_sparse(d->entries, d->capacity * sizeof(*d->entries));
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Return the entry of @key, or the free one for it. */
static struct entry *entry_at(struct entry *entries, uint32_t capacity, uint32_t key)
{
	uint32_t i = (uint32_t)keyhash_number(key) & (capacity - 1);

	while (entries[i].key && entries[i].key != key)
		i = (i + 1) & (capacity - 1);
	return &entries[i];
}

/* Move the wanted entries to a table of @capacity; unchanged when out of memory. */
static void rebuild(struct details *d, uint32_t capacity, bool used_only)
{
	struct entry *entries = alloc_sparse(capacity * sizeof(*entries));
	uint32_t nr = 0;

	if (!entries)
		return;
	for (uint32_t i = 0; i < d->capacity; i++) {
		struct entry *e = &d->entries[i];

		if (!e->key)
			continue;
		if (used_only && !e->used && !e->queued) {
			free(e->known);
			continue;
		}
		e->used &= !used_only;
		*entry_at(entries, capacity, e->key) = *e;
		nr++;
	}
	free_sparse(d->entries, d->capacity * sizeof(*d->entries));
	d->entries = entries;
	d->capacity = capacity;
	d->nr = nr;
}

/* Drop the entries that were not requested since the last time. */
static void sweep(struct details *d, uint64_t now_ns)
{
	d->swept_ns = now_ns;
	rebuild(d, d->capacity, true);
}

/* Sweep a large table; then enlarge it. */
static void make_room(struct details *d, uint64_t now_ns)
{
	if (d->capacity >= ENTRIES_SWEPT && now_ns >= d->swept_ns + SWEEP_NS)
		sweep(d, now_ns);
	if (d->nr >= d->capacity / 2 && d->capacity < ENTRIES_MAX)
		rebuild(d, d->capacity * 2, false);
}

/* Return the entry of @key, made if there is room; NULL: none. */
static struct entry *entry_of(struct details *d, uint32_t key, pid_t pid, uint64_t now_ns)
{
	struct entry *e = entry_at(d->entries, d->capacity, key);

	if (e->key)
		return e;
	/* A machine may have started a moment ago; one that is full is swept now. */
	if (!d->swept_ns)
		d->swept_ns = now_ns - SWEEP_NS;
	if (now_ns >= d->swept_ns + d->keep_ns && d->nr) {
		sweep(d, now_ns);
		e = entry_at(d->entries, d->capacity, key);
	}
	if (d->nr >= d->capacity / 4 * 3) {
		make_room(d, now_ns);
		if (d->nr >= d->capacity / 4 * 3)
			return NULL;
		e = entry_at(d->entries, d->capacity, key);
	}
	*e = (struct entry){ .key = key, .pid = pid };
	d->nr++;
	return e;
}

static void want(struct details *d, struct entry *e, uint64_t now_ns)
{
	if (e->queued || e->gone || d->nr_queued == QUEUE_MAX ||
	    (e->read_ns && now_ns < e->read_ns + OLD_NS))
		return;
	e->queued = true;
	d->queue[(d->first + d->nr_queued++) % QUEUE_MAX] = e->key;
}

static void copy(struct text_arena *arena, struct safe_text *text)
{
	*text = text->size ? text_arena_add(arena, text->str, text->size) : TEXT("");
}

/* Copy what is known, with its texts in @arena. */
static bool give(const struct entry *e, struct text_arena *arena, struct process_details *out)
{
	if (!e || !e->known)
		return false;
	*out = *e->known;
	copy(arena, &out->comm);
	copy(arena, &out->command);
	copy(arena, &out->cgroup);
	copy(arena, &out->container);
	copy(arena, &out->program);
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		copy(arena, &out->service[i]);
	return true;
}

bool details_known(struct details *d, uint32_t process, struct text_arena *arena,
		   struct process_details *out)
{
	bool known;

	pthread_mutex_lock(&d->lock);
	known = give(entry_at(d->entries, d->capacity, process & ~BY_PID), arena, out);
	pthread_mutex_unlock(&d->lock);
	return known;
}

bool details_get(struct details *d, uint32_t process, pid_t pid, uint64_t now_ns,
		 struct text_arena *arena, struct process_details *out)
{
	uint32_t key = process ? process & ~BY_PID : (uint32_t)pid | BY_PID;
	struct entry *e;
	bool known;

	if (pid <= 0)
		return false;
	pthread_mutex_lock(&d->lock);
	e = entry_of(d, key, pid, now_ns);
	if (e) {
		e->used = true;
		want(d, e, now_ns);
	}
	known = give(e, arena, out);
	pthread_mutex_unlock(&d->lock);
	return known;
}

/* Return whether @comm ends in "main thread", in any spelling. */
static bool is_main_thread(struct safe_text comm)
{
	static const char words[] = "mainthread";
	size_t at = comm.size, left = sizeof(words) - 1;

	while (left && at) {
		char c = comm.str[--at];

		if (left < sizeof(words) - 1 && (c == ' ' || c == '-' || c == '_'))
			continue;
		if (tolower((unsigned char)c) != words[left - 1])
			return false;
		left--;
	}
	return !left;
}

struct safe_text details_name(struct safe_text comm, struct safe_text program)
{
	return program.size && is_main_thread(comm) ? program : comm;
}

bool details_wanted(struct details *d)
{
	bool wanted;

	pthread_mutex_lock(&d->lock);
	wanted = d->nr_queued > 0;
	pthread_mutex_unlock(&d->lock);
	return wanted;
}

/* Details of a process while they are read, with buffers for the texts. */
struct details_reading {
	struct process_details d;
	char comm[TASK_COMM_SIZE * 3];
	char command[DETAILS_COMMAND_MAX];
	char cgroup[TEXT_MAX], container[CGROUP_CONTAINER_MAX * 3];
	char program[TEXT_MAX];
	char service[SERVICE_NR][SERVICE_MAX];
	struct context_seen seen;
	uint8_t *context; /* bytes of a process context that has changed; NULL: it has not */
	size_t context_size;
};

static int read_stat(struct details_reading *r, int dir_fd)
{
	const char *open, *close;
	uint64_t ticks;
	char *text;
	size_t size;
	int code = untrusted_read_at(dir_fd, "stat", TEXT_SIZE_MAX, &text, &size);

	if (code)
		return code;
	open = memchr(text, '(', size);
	close = memrchr(text, ')', size);
	if (open && close > open)
		r->d.comm = text_sanitise(r->comm, sizeof(r->comm), open + 1,
					  (size_t)(close - open - 1));
	if (procfs_stat_field(text, size, 22, &ticks) && ticks < UINT64_MAX / 1000000000)
		r->d.start_ns = ticks * 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	free(text);
	return 0;
}

static int read_status(struct details_reading *r, int dir_fd)
{
	uint64_t n;
	char *text;
	size_t size;
	int code = untrusted_read_at(dir_fd, "status", STATUS_MAX, &text, &size);

	if (code)
		return code;
	if (procfs_status_number(text, size, "PPid", &n) && n <= INT32_MAX)
		r->d.parent = (pid_t)n;
	if (procfs_status_number(text, size, "Uid", &n))
		r->d.uid = (uid_t)n;
	free(text);
	return 0;
}

/* Keep the last part of a path. */
static void keep_program(struct details_reading *r, const char *path, size_t size)
{
	const char *slash = memrchr(path, '/', size);
	size_t from = slash ? (size_t)(slash + 1 - path) : 0;

	r->d.program = text_sanitise(r->program, sizeof(r->program), path + from, size - from);
}

/* Read the name of the program; without the right to it, argv[0] is known later. */
static void read_program(struct details_reading *r, int dir_fd)
{
	static const char deleted[] = " (deleted)";
	const size_t end = sizeof(deleted) - 1;
	char path[PATH_MAX];
	ssize_t size = readlinkat(dir_fd, "exe", path, sizeof(path));

	if (size <= 0)
		return;
	if ((size_t)size > end && !memcmp(path + (size_t)size - end, deleted, end))
		size -= (ssize_t)end;
	keep_program(r, path, (size_t)size);
}

/* Read the arguments, separated by blanks. */
static void read_command(struct details_reading *r, int dir_fd)
{
	char *text;
	size_t size;

	if (untrusted_read_at(dir_fd, "cmdline", DETAILS_COMMAND_MAX, &text, &size))
		return;
	while (size && (!text[size - 1] || text[size - 1] == ' '))
		size--;
	if (!r->d.program.size && size)
		keep_program(r, text, strnlen(text, size));
	for (size_t i = 0; i < size; i++)
		if (!text[i])
			text[i] = ' ';
	r->d.command = text_sanitise(r->command, sizeof(r->command), text, size);
	free(text);
}

/*
 * Recognise the container of a cgroup by the names that container tools use.
 *
 * Runs on: any thread (the process reader).
 */

#define ID_SHOWN   12 /* digits of a container id */
#define ID_LEAST   12
#define ID_WHOLE   64
#define USER_SHOWN ((size_t)10)

struct cgroup_part {
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

static bool is_id(struct cgroup_part p, size_t least)
{
	for (size_t i = 0; i < p.size; i++)
		if (!is_hex(p.str[i]))
			return false;
	return p.size >= least;
}

static bool begins(struct cgroup_part p, const char *with)
{
	return p.size >= strlen(with) && !memcmp(p.str, with, strlen(with));
}

static bool equals(struct cgroup_part p, const char *text)
{
	return p.size == strlen(text) && begins(p, text);
}

/* Parse the line of one hierarchy: "ID:CONTROLLERS:PATH". */
static bool parse_line(const char *at, const char *end, struct cgroup_part *name,
		       struct cgroup_part *path)
{
	const char *a = memchr(at, ':', (size_t)(end - at));
	const char *b = a ? memchr(a + 1, ':', (size_t)(end - a - 1)) : NULL;

	if (!b || b + 1 == end || b[1] != '/')
		return false;
	*name = (struct cgroup_part){ a + 1, (size_t)(b - a - 1) };
	*path = (struct cgroup_part){ b + 1, (size_t)(end - b - 1) };
	return true;
}

/*
 * Find the most useful path in the text: that of the unified hierarchy, or if empty
 * that of systemd. False: none.
 */
static bool cgroup_path(const char *text, size_t size, const char **path, size_t *path_size)
{
	const char *end = text + size;
	struct cgroup_part best = { NULL, 0 };

	assert(text || !size);
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct cgroup_part name, found;

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
static bool first_part(struct cgroup_part *path, struct cgroup_part *out)
{
	const char *slash;

	while (path->size && *path->str == '/') {
		path->str++;
		path->size--;
	}
	slash = memchr(path->str, '/', path->size);
	*out = (struct cgroup_part){ path->str, slash ? (size_t)(slash - path->str) : path->size };
	path->str += out->size;
	path->size -= out->size;
	return out->size;
}

/* Set @out to @p without the prefix and the suffix. False: @p lacks one, or has nothing between. */
static bool strip(struct cgroup_part p, const char *prefix, const char *suffix,
		  struct cgroup_part *out)
{
	size_t nr_prefix = strlen(prefix), nr_suffix = strlen(suffix);

	if (p.size <= nr_prefix + nr_suffix || !begins(p, prefix) ||
	    memcmp(p.str + p.size - nr_suffix, suffix, nr_suffix))
		return false;
	*out = (struct cgroup_part){ p.str + nr_prefix, p.size - nr_prefix - nr_suffix };
	return true;
}

/* Copy an id; systemd writes '-' as \x2d in names. Of a user: "podman@1000:3fa1c2d4e5f6". */
static size_t cgroup_put(char *out, const char *kind, struct cgroup_part user,
			 struct cgroup_part id)
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
static size_t put_id(char *out, const char *kind, struct cgroup_part user, struct cgroup_part id,
		     const char **whole)
{
	*whole = user.size || id.size != ID_WHOLE ? NULL : id.str;
	id.size = ID_SHOWN;
	return cgroup_put(out, kind, user, id);
}

/* Recognise a container by one part of the path alone. */
static size_t by_form(struct cgroup_part p, struct cgroup_part user, char *out, const char **whole)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct cgroup_part id;

		if ((user.size && !forms[i].rootless) ||
		    !strip(p, forms[i].prefix, forms[i].suffix, &id))
			continue;
		if (!forms[i].is_id)
			return cgroup_put(out, forms[i].kind, user, id);
		if (is_id(id, ID_LEAST))
			return put_id(out, forms[i].kind, user, id, whole);
	}
	return 0;
}

/* Recognise a container of the system by its name and the one above. */
static size_t by_parent(struct cgroup_part p, struct cgroup_part parent, char *out,
			const char **whole)
{
	static const struct cgroup_part system = { "", 0 };

	if (equals(parent, "lxc") || equals(parent, "lxc.payload"))
		return cgroup_put(out, "lxc", system, p);
	if (p.size != ID_WHOLE || !is_id(p, ID_WHOLE))
		return 0;
	return put_id(out,
		      equals(parent, "docker")				    ? "docker"
		      : begins(parent, "pod") || begins(parent, "kubepods") ? "k8s"
		      : begins(parent, "libpod")			    ? "podman"
									    : "container",
		      system, p, whole);
}

/*
 * Write the outermost container: "docker:3fa1c2d4e5f6", "podman:…", "k8s:…", "lxc:NAME" or
 * "nspawn:NAME" to @out; ids have 12 digits, as in these tools. Below the systemd of a user only
 * podman's form counts, as "podman@1000:3fa1c2d4e5f6". @id: all 64 digits in @path, of the system's
 * containers only; NULL: none. Returns the size, 0: no known container. Not sanitised.
 */
static size_t cgroup_container(const char *path, size_t size, char out[static CGROUP_CONTAINER_MAX],
			       const char **id)
{
	struct cgroup_part rest = { path, size }, parent = { "", 0 }, user = { "", 0 }, p;
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

/*
 * Names of containers, from JSON. Runs on: the process reader.
 */

#define FILE_MAX (1u << 20)

/* Copy a name, docker's without its slash. Return false if it has other letters than a name. */
static bool container_name_take(const json_t *value, char *name)
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
	const struct untrusted_want want = { .path = path,
					     .root = root,
					     .size_max = FILE_MAX,
					     .owned = true,
					     .linked = true,
					     .uid = geteuid() };
	struct untrusted_file file;
	json_t *json = NULL;
	char *text;
	struct err e;
	size_t size;

	if (untrusted_open(&want, &file, &e))
		return NULL;
	if (!untrusted_read(file.fd, FILE_MAX, &text, &size)) {
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
	found = container_name_take(json_object_get(json, "Name"), name);
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
			found = container_name_take(json_array_get(json_object_get(one, "names"),
								   0),
						    name);
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

/*
 * Get the name of the container with the 64 digits of @id, "web"; "": unknown. @root: instead of /;
 * NULL: ours. Borrowed until the next call.
 */
static const char *container_name(struct container_names *n, const char *root, const char *id,
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

/* Put the name of the container in the place of its id: "docker:web". */
static size_t name_container(struct container_names *names, const char *id,
			     char container[static CGROUP_CONTAINER_MAX], size_t n)
{
	const char *name = id ? container_name(names, NULL, id, time_now_ns()) : "";
	const char *colon = *name ? strchr(container, ':') : NULL;
	size_t kind = colon ? (size_t)(colon + 1 - container) : 0;

	if (!kind || kind + strlen(name) >= CGROUP_CONTAINER_MAX)
		return n;
	memcpy(container + kind, name, strlen(name) + 1);
	return kind + strlen(name);
}

static void read_cgroup(struct container_names *names, struct details_reading *r, int dir_fd)
{
	char *text, container[CGROUP_CONTAINER_MAX];
	const char *path, *id;
	size_t size, n;

	if (untrusted_read_at(dir_fd, "cgroup", STATUS_MAX, &text, &size))
		return;
	if (cgroup_path(text, size, &path, &size)) {
		n = cgroup_container(path, size, container, &id);
		n = name_container(names, id, container, n);
		r->d.cgroup = text_sanitise(r->cgroup, sizeof(r->cgroup), path, size);
		r->d.container = text_sanitise(r->container, sizeof(r->container), container, n);
	}
	free(text);
}

/*
 * Process contexts: names that a program publishes in its memory for readers outside, OpenTelemetry
 * OTEP 4719 (https://github.com/open-telemetry/opentelemetry-specification, oteps/profiles). A head
 * is at the start of a mapping with that name; it points to a message of protobuf: ProcessContext
 * { Resource resource = 1 { KeyValue attributes = 1 { key = 1, AnyValue value = 2 } } }.
 *
 * Hostile: the process writes all bytes. They are read here, bounded, and parsed in the
 * sandbox. Runs on: the process reader.
 */

#define CONTEXT_VERSION	   2
#define CONTEXT_MAX	   SANDBOX_REQUEST_MAX /* bytes of the message: the limit of the OTEP */
#define CONTEXT_TRIES	   3u
#define CONTEXT_TIMEOUT_NS 1000000000ull
/* A program publishes soon after its start, or never. */
#define SEARCH_FIRST_NS OLD_NS
#define SEARCH_LAST_NS	(64 * OLD_NS)

struct context_head {
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns; /* 0: it is being written */
	uint64_t message;
};

/* The worker's answer. Of a text that is missing the size is 0. */
struct context_answer {
	uint16_t sizes[SERVICE_NR];
	char texts[SERVICE_NR][SERVICE_MAX];
};

struct message {
	const uint8_t *at, *end;
};

static bool message_varint(struct message *w, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
		uint8_t byte = *w->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Read a field; @out: its bytes, none if it is a number. False: the end, or an invalid one. */
static bool message_next(struct message *w, uint64_t *field, struct message *out)
{
	uint64_t tag, size = 0;

	if (!message_varint(w, &tag))
		return false;
	*field = tag >> 3;
	*out = (struct message){ w->at, w->at };
	switch (tag & 7) {
	case 0:
		return message_varint(w, &size);
	case 1:
		size = 8;
		break;
	case 2:
		if (!message_varint(w, &size))
			return false;
		break;
	case 5:
		size = 4;
		break;
	default:
		return false;
	}
	if (size > (uint64_t)(w->end - w->at))
		return false;
	if ((tag & 7) == 2)
		*out = (struct message){ w->at, w->at + size };
	w->at += size;
	return true;
}

/* Find the last field @wanted of a message, as protobuf reads one. */
static struct message message_find(struct message message, uint64_t wanted)
{
	struct message found = { NULL, NULL }, value;
	uint64_t field;

	while (message_next(&message, &field, &value))
		if (field == wanted)
			found = value;
	return found;
}

/* Keep the text of an attribute if it is one of ours. */
static void take_attribute(struct context_answer *a, struct message attribute)
{
	struct message key = message_find(attribute, 1),
		       text = message_find(message_find(attribute, 2), 1);
	size_t size = MIN((size_t)(text.end - text.at), (size_t)SERVICE_MAX);

	for (unsigned int i = 0; i < SERVICE_NR; i++)
		if ((size_t)(key.end - key.at) == strlen(service_key(i)) &&
		    !memcmp(key.at, service_key(i), strlen(service_key(i)))) {
			a->sizes[i] = (uint16_t)size;
			if (size)
				memcpy(a->texts[i], text.at, size);
		}
}

static int serve_context(struct sandbox_call *c)
{
	struct message context = { c->request, (const uint8_t *)c->request + c->size };
	struct message resource = message_find(context, 1), value;
	struct context_answer a;
	uint64_t field;

	memset(&a, 0, sizeof(a));
	while (message_next(&resource, &field, &value))
		if (field == 1)
			take_attribute(&a, value);
	sandbox_put(&c->reply, &a, sizeof(a));
	return 0;
}

const struct sandbox_reader service_reader = {
	.kind = SANDBOX_SERVICE,
	.name = "proftop-service",
	.serve = serve_context,
	.memory_max = 256ULL << 20,
};

static bool is_context(const struct procfs_map *m)
{
	static const char *const names[] = { "[anon:OTEL_CTX]", "[anon_shmem:OTEL_CTX]",
					     "/memfd:OTEL_CTX", "/memfd:OTEL_CTX (deleted)" };

	for (unsigned int i = 0; i < ARRAY_SIZE(names) && !m->exec; i++)
		if (m->path_size == strlen(names[i]) && !memcmp(m->path, names[i], m->path_size))
			return true;
	return false;
}

/* Find the mapping; at each search without one the time until the next is doubled. */
static void search_context(struct context_seen *seen, int dir_fd)
{
	uint64_t now_ns = time_now_ns();
	struct procfs_text text;
	struct procfs_map m;
	char *maps;
	size_t size;

	if (seen->search_ns > now_ns ||
	    untrusted_read_at(dir_fd, "maps", PROCFS_MAPS_SIZE_MAX, &maps, &size))
		return;
	seen->pause_ns = seen->pause_ns ? MIN(seen->pause_ns * 2, SEARCH_LAST_NS) : SEARCH_FIRST_NS;
	seen->search_ns = now_ns + seen->pause_ns;
	text = (struct procfs_text){ .at = maps, .end = maps + size };
	while (!seen->at && procfs_next_map(&text, &m))
		if (is_context(&m))
			seen->at = m.start;
	free(maps);
}

/* Read the head: 0, -EAGAIN: it is being written, or another errno: there is none. */
static int read_head(struct remote *memory, uint64_t at, struct context_head *head)
{
	int code = remote_read(memory, at, head, sizeof(*head));

	if (code)
		return code;
	if (memcmp(head->signature, "OTEL_CTX", sizeof(head->signature)) != 0 ||
	    head->version != CONTEXT_VERSION || head->size > CONTEXT_MAX)
		return -EBADMSG;
	return head->published_ns ? 0 : -EAGAIN;
}

/* Read a context that has changed. 0, also if it has not, -EAGAIN, or another errno: none. */
static int read_message(struct details_reading *r, struct remote *memory)
{
	struct context_head head, after;
	int code = read_head(memory, r->seen.at, &head);

	if (code || head.published_ns == r->seen.published_ns)
		return code;
	r->context = malloc(head.size + 1ul);
	if (!r->context)
		return -EAGAIN;
	code = remote_read(memory, head.message, r->context, head.size);
	if (!code)
		code = read_head(memory, r->seen.at, &after);
	if (!code && memcmp(&head, &after, sizeof(head)) != 0)
		code = -EAGAIN;
	if (!code) {
		r->seen.published_ns = head.published_ns;
		r->context_size = head.size;
		return 0;
	}
	free(r->context);
	r->context = NULL;
	return code;
}

static void forget_service(struct details_reading *r)
{
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		r->d.service[i] = TEXT("");
}

/* Read the context into r->context; the texts that are known stay while it is being written. */
static void read_context(struct details_reading *r, int dir_fd)
{
	struct remote memory = { .fd = -1 };
	int code = -EAGAIN;

	if (!r->seen.at)
		search_context(&r->seen, dir_fd);
	if (r->seen.at)
		memory.fd = remote_open(dir_fd);
	if (memory.fd < 0)
		return;
	for (unsigned int i = 0; i < CONTEXT_TRIES && code == -EAGAIN; i++)
		code = read_message(r, &memory);
	if (code && code != -EAGAIN) {
		/* One that was never right is no reason to search often. */
		if (r->seen.published_ns)
			r->seen.search_ns = r->seen.pause_ns = 0;
		r->seen.at = r->seen.published_ns = 0;
		forget_service(r);
	}
	close(memory.fd);
}

/* Set the texts of the context that was read; of an invalid one there are none. */
static void parse_context(struct details_reading *r)
{
	struct sandbox_answer answer = { .bytes = NULL };
	const struct context_answer *a;

	if (!r->context)
		return;
	forget_service(r);
	if (!sandbox_call(&service_reader, r->context, r->context_size, NULL, 0, CONTEXT_TIMEOUT_NS,
			  &answer) &&
	    answer.size == sizeof(*a)) {
		a = (const struct context_answer *)answer.bytes;
		for (unsigned int i = 0; i < SERVICE_NR; i++)
			r->d.service[i] = text_sanitise(r->service[i], SERVICE_MAX, a->texts[i],
							MIN(a->sizes[i], (uint16_t)SERVICE_MAX));
	}
	free(answer.bytes);
	free(r->context);
	r->context = NULL;
}

/* Read the files that the process itself may hold up. */
static int read_own(struct details_reading *r, int dir_fd)
{
	int code = dir_fd < 0 ? dir_fd : read_stat(r, dir_fd);

	if (!code)
		code = read_status(r, dir_fd);
	if (!code) {
		read_program(r, dir_fd);
		read_command(r, dir_fd);
		read_context(r, dir_fd);
	}
	return code;
}

static int read_process(struct container_names *names, struct details_reading *r, pid_t pid)
{
	int dir_fd, code;

	if (!proc_watch_begin(pid))
		return -EAGAIN;
	dir_fd = untrusted_open_proc(pid);
	code = read_own(r, dir_fd);
	/* Container names are of the thread that has the work. */
	if (!proc_watch_end())
		code = -EAGAIN;
	if (!code) {
		read_cgroup(names, r, dir_fd);
		parse_context(r);
	}
	free(r->context);
	if (dir_fd >= 0)
		close(dir_fd);
	return code;
}

static void put(char **pool, struct safe_text *text)
{
	memcpy(*pool, text->str, text->size);
	(*pool)[text->size] = '\0';
	text->str = *pool;
	*pool += text->size + 1;
}

/* Copy the details and texts to one block; NULL when out of memory. */
static struct process_details *keep(const struct process_details *read)
{
	size_t size = read->comm.size + read->command.size + (size_t)read->cgroup.size +
		      read->container.size + (size_t)read->program.size + 5;
	struct process_details *kept;
	char *pool;

	for (unsigned int i = 0; i < SERVICE_NR; i++)
		size += read->service[i].size + 1ul;
	kept = malloc(sizeof(*kept) + size);
	pool = (char *)(kept + 1);

	if (!kept)
		return NULL;
	*kept = *read;
	put(&pool, &kept->comm);
	put(&pool, &kept->command);
	put(&pool, &kept->cgroup);
	put(&pool, &kept->container);
	put(&pool, &kept->program);
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		put(&pool, &kept->service[i]);
	return kept;
}

/* Test whether the pid still belongs to the requested incarnation. */
static bool is_present(struct details *d, uint32_t key, pid_t pid)
{
	const struct process *p;
	bool same;

	if (key & BY_PID)
		return true;
	pthread_mutex_lock(&d->maps->lock);
	p = process_find(&d->maps->procs, pid, UINT64_MAX);
	same = p && p->id == key;
	pthread_mutex_unlock(&d->maps->lock);
	return same;
}

/* Store the details (@r NULL: the process has ended) and request its parent's. */
static void store(struct details *d, uint32_t key, const struct details_reading *r, bool gone)
{
	const struct process_details *read = r ? &r->d : NULL;
	struct process_details *kept = read ? keep(read) : NULL;
	uint64_t now_ns = time_now_ns();
	struct entry *e;

	pthread_mutex_lock(&d->lock);
	e = entry_at(d->entries, d->capacity, key);
	if (e->key) {
		e->queued = false;
		e->read_ns = now_ns;
		e->gone = gone;
		if (kept) {
			free(e->known);
			e->known = kept;
			e->seen = r->seen;
			kept = NULL;
		}
	}
	if (read && read->parent > 0) {
		e = entry_of(d, (uint32_t)read->parent | BY_PID, read->parent, now_ns);
		if (e)
			want(d, e, now_ns);
	}
	pthread_mutex_unlock(&d->lock);
	free(kept);
}

/* Begin a reading with the service that is known. */
static void begin(struct details_reading *r, const struct entry *e)
{
	*r = (struct details_reading){ .seen = e->seen };
	r->d = (struct process_details){ .uid = (uid_t)-1,
					 .comm = TEXT(""),
					 .command = TEXT(""),
					 .cgroup = TEXT(""),
					 .container = TEXT(""),
					 .program = TEXT("") };
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		r->d.service[i] = e->known ? text_sanitise(r->service[i], SERVICE_MAX,
							   e->known->service[i].str,
							   e->known->service[i].size)
					   : TEXT("");
}

/* Take the oldest request; 0: none. */
static uint32_t take(struct details *d, pid_t *pid, struct details_reading *r)
{
	const struct entry *e;
	uint32_t key = 0;

	pthread_mutex_lock(&d->lock);
	if (d->nr_queued) {
		key = d->queue[d->first];
		d->first = (d->first + 1) % QUEUE_MAX;
		d->nr_queued--;
		e = entry_at(d->entries, d->capacity, key);
		*pid = e->pid;
		begin(r, e);
	}
	pthread_mutex_unlock(&d->lock);
	return key;
}

unsigned int details_serve(struct details *d, unsigned int max)
{
	struct details_reading r;
	unsigned int nr = 0;
	uint32_t key;
	pid_t pid;

	assert(max);
	for (; nr < max && proc_watch_is_mine() && (key = take(d, &pid, &r)); nr++) {
		int code = read_process(&d->names, &r, pid);
		/*
		 * Checked after reading: the details are of the process that was
		 * there all the time.
		 */
		bool present = is_present(d, key, pid);

		/* The pid of an ancestor may be reused. */
		store(d, key, !code && present ? &r : NULL,
		      !(key & BY_PID) && (!present || code == -ESRCH));
	}
	return nr;
}

/*
 * The user and pid of a process, for the files that it writes.
 *
 * Runs on: the loader.
 */

#define PROC_TEXT_MAX (64U << 10)

/*
 * Return the effective user in /proc/PID/status; the directory belongs to root after
 * a setuid(2).
 */
static uid_t uid_of(const char *text)
{
	const char *line = strstr(text, "\nUid:\t");
	const char *second = line ? strchr(line + 6, '\t') : NULL;

	return second ? (uid_t)strtoul(second, NULL, 10) : 0;
}

static int read_start(int dir_fd, uint64_t *start)
{
	char *text;
	size_t size;
	int rc = untrusted_read_at(dir_fd, "stat", PROC_TEXT_MAX, &text, &size);

	if (rc)
		return rc;
	if (!procfs_stat_field(text, size, 22, start))
		*start = 0;
	free(text);
	return 0;
}

int code_owner_ask(pid_t pid, struct code_owner *o)
{
	char *text;
	size_t size;
	int rc;

	o->dir_fd = untrusted_open_proc(pid);
	if (o->dir_fd < 0)
		return o->dir_fd;
	rc = read_start(o->dir_fd, &o->start);
	if (!rc)
		rc = untrusted_read_at(o->dir_fd, "status", PROC_TEXT_MAX, &text, &size);
	if (rc) {
		code_owner_done(o);
		return rc;
	}
	o->uid = uid_of(text);
	o->inner_pid = (uint64_t)pid;
	procfs_status_inner(text, size, &o->inner_pid);
	free(text);
	return 0;
}

void code_owner_ours(pid_t pid, struct code_owner *o)
{
	*o = (struct code_owner){ .dir_fd = -1,
				  .uid = geteuid(),
				  .inner_pid = (uint64_t)MAX(pid, 0) };
}

bool code_owner_lives(const struct code_owner *o)
{
	uint64_t start;

	return !read_start(o->dir_fd, &start) && start == o->start;
}

void code_owner_done(struct code_owner *o)
{
	if (o->dir_fd >= 0)
		close(o->dir_fd);
	o->dir_fd = -1;
}

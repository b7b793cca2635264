// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find, trust, read and re-read the perf maps of processes.
 *
 * Runs on: the loader.
 */
#include "symbols/jit/perfmaps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/process/code_owner.h"
#include "symbols/jit/runtime.h"

#define INTERVAL_MIN_NS 1000000000ULL
#define INTERVAL_MAX_NS (8 * INTERVAL_MIN_NS)
#define COST_FACTOR	20ULL	     /* reading takes at most 1/20 of the time */
#define STALE_NS	2000000000LL /* possible difference of the clocks of files and processes */
#define NOT_IN_MAP	"code missing in its perf map"

/* Version of a file that was read. */
struct stamp {
	uint64_t ino, size;
	int64_t mtime_ns;
	uint32_t maj, min;
};

struct perfmaps_entry {
	struct perfmap *map; /* NULL: none yet */
	struct stamp stamp;
	uint32_t object;
	uint64_t process_start; /* of /proc/PID/stat: identifies the process */
	uint64_t due_ns;	/* not looked at before */
	uint64_t rest_ns;	/* not read before, however urgent */
	uint64_t interval_ns;	/* grows while searches find nothing */
	bool wanted;		/* addresses are missing */
};

void perfmaps_init(struct perfmaps *p, struct objects *objects, const atomic_bool *stop)
{
	memset(p, 0, sizeof(*p));
	p->objects = objects;
	p->stop = stop;
}

void perfmaps_fini(struct perfmaps *p)
{
	for (uint32_t i = 0; i < p->nr_entries; i++) {
		perfmap_free(p->entries[i]->map);
		free(p->entries[i]);
	}
	free(p->entries);
	free(p->by_object);
	memset(p, 0, sizeof(*p));
}

static bool is_stopping(const struct perfmaps *p)
{
	/* Pairs with the release in loader_stop(). */
	return atomic_load_explicit(p->stop, memory_order_acquire);
}

/* Return true if the process of @e is still the same. */
static bool is_same_process(const struct perfmaps_entry *e, const struct code_owner *o)
{
	return code_owner_lives(o) && (!e->process_start || e->process_start == o->start);
}

static int open_map(const struct perfmaps *p, pid_t pid, const struct code_owner *o,
		    struct foreign_file *out)
{
	char path[64];
	struct foreign_want want = {
		.pid = pid,
		.path = path,
		.root = p->root,
		.size_max = PERFMAP_SIZE_MAX,
		.owned = true,
		.uid = o->uid,
	};

	snprintf(path, sizeof(path), "/tmp/perf-%llu.map", (unsigned long long)o->inner_pid);
	return foreign_open(&want, out, NULL);
}

/* Read the whole file and parse it. */
static int read_map(const struct foreign_file *file, struct perfmap **out)
{
	char *text = malloc(file->size + 1);
	size_t size = 0;
	int rc;

	if (!text)
		return -ENOMEM;
	while (size < file->size) {
		ssize_t nr = pread(file->fd, text + size, MIN(file->size - size, 1UL << 24),
				   (off_t)size);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			break;
		size += (size_t)nr;
	}
	rc = perfmap_parse(out, text, size);
	free(text);
	return rc;
}

/* Put @map into @e, within the memory limit. */
static int replace(struct perfmaps *p, struct perfmaps_entry *e, struct perfmap *map,
		   const struct stamp *stamp)
{
	size_t before = e->map ? perfmap_memory(e->map) : 0, after = perfmap_memory(map);
	size_t total = atomic_load_explicit(&p->memory, memory_order_relaxed) - before + after;

	if (total > PERFMAPS_MEMORY_MAX) {
		perfmap_free(map);
		return -ENOSPC;
	}
	perfmap_free(e->map);
	e->map = map;
	e->stamp = *stamp;
	atomic_store_explicit(&p->memory, total, memory_order_relaxed);
	return 0;
}

/* Read the map of @e if it is a new version (else -EALREADY). */
static int load_from(struct perfmaps *p, struct perfmaps_entry *e, pid_t pid,
		     const struct code_owner *o)
{
	struct foreign_file file;
	struct perfmap *map;
	struct stamp stamp;
	int rc = open_map(p, pid, o, &file);

	if (rc)
		return rc;
	memset(&stamp, 0, sizeof(stamp));
	stamp.ino = file.ino;
	stamp.size = file.size;
	stamp.mtime_ns = file.mtime_ns;
	stamp.maj = file.maj;
	stamp.min = file.min;
	if (file.mtime_ns + STALE_NS < code_owner_began_ns(o))
		rc = -ESTALE; /* of an earlier process with that pid */
	else
		rc = e->map && !memcmp(&stamp, &e->stamp, sizeof(stamp)) ? -EALREADY : 0;
	if (!rc)
		rc = read_map(&file, &map);
	close(file.fd);
	if (rc)
		return rc;
	if (o->dir_fd >= 0 && !is_same_process(e, o)) {
		perfmap_free(map);
		return -ESRCH;
	}
	e->process_start = o->start;
	return replace(p, e, map, &stamp);
}

/* Search the map of the process of @e; *fix: how to get one. */
static int load(struct perfmaps *p, struct perfmaps_entry *e, const char **fix)
{
	struct code_owner o;
	struct object_sighting seen;
	pid_t pid;
	int rc = 0;

	objects_sighting(p->objects, objects_at(p->objects, e->object), &seen);
	free(seen.path);
	pid = p->no_proc ? 0 : seen.pid;
	code_owner_ours(seen.pid, &o);
	if (pid)
		rc = code_owner_ask(pid, &o);
	if (rc)
		return rc;
	if (e->process_start && o.start != e->process_start)
		rc = -ESRCH;
	else
		rc = load_from(p, e, pid, &o);
	*fix = rc == -ENOENT && o.dir_fd >= 0 ? runtime_fix_of(o.dir_fd) : runtime_fix("", "", 0);
	code_owner_done(&o);
	return rc;
}

/* Return true if the object has names of another source. */
static bool has_source(const struct object *object)
{
	return atomic_load_explicit(&object->source, memory_order_relaxed);
}

/* Set the state of the names of @object. @fix: for a process without a map. */
static void explain(struct object *object, const struct perfmaps_entry *e, int code,
		    const char *fix)
{
	static const struct {
		int code;
		const char *reason, *fix;
	} words[] = {
		{ -ESRCH, "process ended before its perf map was read", NULL },
		{ -EPERM, "its perf map belongs to another user",
		  "the process's user or root must own /tmp/perf-PID.map" },
		{ -ESTALE, "its perf map is older than the process",
		  "an earlier process left /tmp/perf-PID.map: remove it" },
		{ -EMLINK, "its perf map is a hard link", "remove the other name" },
		{ -EINVAL, "its perf map is not a regular file", NULL },
		{ -EFBIG, "its perf map is too large", "the limit is 64 MiB" },
		{ -ENODATA, "its perf map has no entry yet", NULL },
		{ -ENOSPC, "perf maps take too much memory", "profile fewer processes" },
		{ -EACCES, "no permission to read its perf map",
		  "run proftop as root or with cap_sys_ptrace" },
	};

	if (!e->map && code == -ENOENT && has_source(object))
		return; /* a jitdump: a perf map is not needed */
	if (e->map)
		object_credit(object, "perf map", perfmap_nr(e->map));
	if (!code || code == -EALREADY) {
		object_explain(object, e->wanted ? NOT_IN_MAP : NULL, NULL);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].code == code) {
			object_explain(object, words[i].reason, words[i].fix);
			return;
		}
	}
	object_explain(object,
		       code == -ENOENT ? "JIT code without a perf map" : "cannot read its perf map",
		       fix);
}

/* Search the map of @e and set the time of the next search. True: there is a new one. */
static bool look(struct perfmaps *p, struct perfmaps_entry *e)
{
	uint64_t start_ns = time_now_ns(), end_ns;
	const char *fix = NULL;
	int rc = load(p, e, &fix);

	if (is_stopping(p))
		return false;
	end_ns = time_now_ns();
	e->interval_ns = rc ? MIN(e->interval_ns * 2, INTERVAL_MAX_NS) : INTERVAL_MIN_NS;
	e->rest_ns = end_ns + MAX(INTERVAL_MIN_NS, (end_ns - start_ns) * COST_FACTOR);
	e->due_ns = MAX(e->rest_ns, end_ns + e->interval_ns);
	if (!rc)
		e->wanted = false; /* until the next look-up fails */
	if (rc == -ESRCH)
		e->due_ns = UINT64_MAX;
	explain(objects_at(p->objects, e->object), e, rc, fix);
	return !rc;
}

/* Make the index reach object @id. */
static int reserve(struct perfmaps *p, uint32_t id)
{
	uint32_t nr = MAX(id + 1, p->nr_by_object * 2);
	uint32_t *by_object;

	if (id < p->nr_by_object)
		return 0;
	by_object = reallocarray(p->by_object, nr, sizeof(*by_object));
	if (!by_object)
		return -ENOMEM;
	memset(by_object + p->nr_by_object, 0, (nr - p->nr_by_object) * sizeof(*by_object));
	p->by_object = by_object;
	p->nr_by_object = nr;
	return 0;
}

/*
 * Return the entry of @object, added and searched at the first look-up; NULL when
 * there are too many.
 */
static struct perfmaps_entry *entry_of(struct perfmaps *p, struct object *object)
{
	struct perfmaps_entry **entries, *e;

	if (object->id < p->nr_by_object && p->by_object[object->id])
		return p->entries[p->by_object[object->id] - 1];
	if (p->nr_entries == PERFMAPS_MAX || reserve(p, object->id))
		return NULL;
	entries = reallocarray(p->entries, p->nr_entries + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	p->entries = entries;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->object = object->id;
	e->interval_ns = INTERVAL_MIN_NS / 2;
	p->entries[p->nr_entries++] = e;
	p->by_object[object->id] = p->nr_entries;
	look(p, e);
	return e;
}

bool perfmaps_find(struct perfmaps *p, struct object *object, uint64_t addr,
		   struct perfmap_symbol *out)
{
	struct perfmaps_entry *e = entry_of(p, object);

	if (!e || is_stopping(p))
		return false;
	if (e->map && perfmap_find(e->map, addr, out))
		return true;
	if (!e->wanted && e->map)
		object_explain(object, NOT_IN_MAP, NULL);
	/* A new address is missing: shorten a long wait. */
	if (e->due_ns != UINT64_MAX)
		e->due_ns = e->rest_ns;
	e->wanted = true;
	return false;
}

uint32_t perfmaps_refresh(struct perfmaps *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < p->nr_entries; i++) {
		struct perfmaps_entry *e = p->entries[(p->next + i) % p->nr_entries];

		if (!e->wanted || e->due_ns > now_ns)
			continue;
		p->next = (p->next + i + 1) % p->nr_entries;
		/* One a call: names of other objects are looked up in between. */
		return look(p, e) ? e->object : OBJECT_ID_UNKNOWN;
	}
	return OBJECT_ID_UNKNOWN;
}

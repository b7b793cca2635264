// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find, trust, read and re-read the perf maps of processes.
 *
 * Runs on: the loader; the files are read by helpers.
 */
#include "symbols/jit/perfmaps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/foreign.h"
#include "symbols/process/code_owner.h"
#include "symbols/process/procfs.h"
#include "symbols/jit/jitcopy.h"
#include "symbols/jit/perfmap_cage.h"
#include "symbols/jit/runtime.h"

#define INTERVAL_MIN_NS 1000000000ULL
#define INTERVAL_MAX_NS (8 * INTERVAL_MIN_NS)
#define COST_FACTOR	20ULL	     /* reading takes at most 1/20 of the time */
#define STALE_NS	2000000000LL /* possible difference of the clocks of files and processes */
#define NOT_IN_MAP	"code missing in its perf map"
#define CAGE_BARRED	"its perf map ended its reader: not read"

/* Version of a file that was read. */
struct stamp {
	uint64_t ino, size;
	int64_t mtime_ns;
	uint32_t maj, min;
};

/* A job: one look at the map of one process. It uses nothing but this. */
struct reading {
	struct jitread read;
	pid_t pid;		/* of the process */
	bool no_proc;		/* as in struct perfmaps */
	char *root;		/* owned */
	bool has_map;		/* @stamp is of the map that was read last */
	uint64_t process_start; /* 0: any process with this pid */
	struct stamp stamp;
	/* Results: */
	int rc;		     /* -EALREADY: the version of @stamp */
	struct perfmap *map; /* NULL when rc is not 0 */
	const char *fix;     /* how to get a map; static */
	uint64_t cost_ns;
};

struct perfmaps_entry {
	struct perfmap *map;	 /* NULL: none yet */
	struct reading *reading; /* NULL: none runs */
	struct stamp stamp;
	uint32_t object;
	uint64_t process_start; /* of /proc/PID/stat: identifies the process */
	uint64_t due_ns;	/* not looked at before */
	uint64_t rest_ns;	/* not read before, however urgent */
	uint64_t interval_ns;	/* grows while searches find nothing */
	bool wanted;		/* addresses are missing */
	bool looked;		/* the first search has ended, or hangs */
	pid_t pid;
	uint32_t uid; /* of the process */
	struct jitreads_end end;
};

void perfmaps_init(struct perfmaps *p, struct objects *objects, struct jitreads *reads,
		   const atomic_bool *stop)
{
	memset(p, 0, sizeof(*p));
	p->objects = objects;
	p->reads = reads;
	p->stop = stop;
}

void perfmaps_fini(struct perfmaps *p)
{
	for (uint32_t i = 0; i < p->nr_entries; i++) {
		if (p->entries[i]->reading)
			jitreads_leave(p->reads, &p->entries[i]->reading->read);
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

static int open_map(struct reading *r, const struct code_owner *o, struct foreign_file *out)
{
	char path[64];
	struct foreign_want want = {
		.pid = r->no_proc ? 0 : r->pid,
		.path = path,
		.root = r->root,
		.size_max = PERFMAP_SIZE_MAX,
		.owned = true,
		.uid = o->uid,
	};
	int rc = watch_begin(&r->read.job.watch);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/tmp/perf-%llu.map", (unsigned long long)o->inner_pid);
	rc = foreign_open(&want, out, NULL);
	watch_end(&r->read.job.watch, 0);
	return rc;
}

/* Copy the whole file and have it parsed. */
static int read_map(struct reading *r, const struct foreign_file *file)
{
	size_t size;
	int fd = jitcopy(file->fd, 0, file->size, &r->read.job.watch, &size), rc;

	if (fd < 0)
		return fd;
	rc = perfmap_cage_parse(&r->map, fd, size);
	close(fd);
	return rc;
}

/* Read the map of process @o if it is a new version (else -EALREADY). */
static int load_from(struct reading *r, const struct code_owner *o)
{
	struct foreign_file file;
	struct stamp stamp;
	int rc = open_map(r, o, &file);

	if (rc)
		return rc;
	memset(&stamp, 0, sizeof(stamp));
	stamp.ino = file.ino;
	stamp.size = file.size;
	stamp.mtime_ns = file.mtime_ns;
	stamp.maj = file.maj;
	stamp.min = file.min;
	if (file.mtime_ns + STALE_NS < procfs_start_ns(o->start))
		rc = -ESTALE; /* of an earlier process with that pid */
	else if (r->has_map && !memcmp(&stamp, &r->stamp, sizeof(stamp)))
		rc = -EALREADY;
	else
		rc = read_map(r, &file);
	close(file.fd);
	if (!rc && o->dir_fd >= 0 && !code_owner_lives(o))
		rc = -ESRCH;
	if (rc)
		return rc;
	r->process_start = o->start;
	r->stamp = stamp;
	return 0;
}

/* Search the map of the process. */
static int load(struct reading *r)
{
	struct code_owner o;
	int rc = 0;

	code_owner_ours(r->pid, &o);
	if (!r->no_proc && r->pid)
		rc = code_owner_ask(r->pid, &o);
	if (rc)
		return rc;
	if (r->process_start && o.start != r->process_start)
		rc = -ESRCH;
	else
		rc = load_from(r, &o);
	r->fix = rc == -ENOENT && o.dir_fd >= 0 ? runtime_fix_of(RUNTIME_NO_MAP, o.dir_fd)
						: runtime_fix(RUNTIME_NO_MAP, "", "", 0);
	code_owner_done(&o);
	return rc;
}

static void run(struct job *job)
{
	struct reading *r = (struct reading *)job;
	uint64_t start_ns = time_now_ns();

	r->rc = load(r);
	if (r->rc) {
		perfmap_free(r->map);
		r->map = NULL;
	}
	r->cost_ns = time_now_ns() - start_ns;
}

static void drop(struct job *job)
{
	struct reading *r = (struct reading *)job;

	perfmap_free(r->map);
	free(r->root);
	free(r);
}

/* Make the job for @e; NULL: out of memory. */
static struct reading *new_reading(const struct perfmaps *p, struct perfmaps_entry *e)
{
	struct reading *r = calloc(1, sizeof(*r));
	struct object_sighting seen;

	if (!r)
		return NULL;
	r->read.job.run = run;
	r->read.job.drop = drop;
	objects_sighting(p->objects, objects_at(p->objects, e->object), &seen);
	free(seen.path);
	r->pid = e->pid = seen.pid;
	r->no_proc = p->no_proc;
	r->root = p->root ? strdup(p->root) : NULL;
	r->has_map = e->map;
	r->process_start = e->process_start;
	r->stamp = e->stamp;
	if (!r->no_proc)
		jitreads_namespace(&r->read, r->pid);
	return r;
}

/* Return the bytes of the maps of @uid. */
static size_t memory_of_user(const struct perfmaps *p, uint32_t uid)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < p->nr_entries; i++)
		if (p->entries[i]->uid == uid && p->entries[i]->map)
			sum += perfmap_memory(p->entries[i]->map);
	return sum;
}

/* Put the map of @r into @e, within the memory limits. */
static int replace(struct perfmaps *p, struct perfmaps_entry *e, struct reading *r)
{
	size_t before = e->map ? perfmap_memory(e->map) : 0, after = perfmap_memory(r->map);
	size_t total = atomic_load_explicit(&p->memory, memory_order_relaxed) - before + after;

	e->process_start = r->process_start;
	if (total > PERFMAPS_MEMORY_MAX ||
	    (!p->no_proc &&
	     memory_of_user(p, e->uid) - before + after > JITREADS_USER(PERFMAPS_MEMORY_MAX)))
		return -ENOSPC;
	perfmap_free(e->map);
	e->map = r->map;
	r->map = NULL;
	e->stamp = r->stamp;
	atomic_store_explicit(&p->memory, total, memory_order_relaxed);
	return 0;
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
		{ -EPIPE, CAGE_BARRED, NULL },
		{ -ETIME, CAGE_BARRED, NULL },
		{ -EBADMSG, CAGE_BARRED, NULL },
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

/* Return true if the map ended its reader: it is not read again. */
static bool is_barred(int rc)
{
	return rc == -EPIPE || rc == -ETIME || rc == -EBADMSG;
}

/* Take the result of the finished job of @e and set the time of the next search. True: a new map.
 */
static bool take(struct perfmaps *p, struct perfmaps_entry *e)
{
	struct reading *r = e->reading;
	uint64_t now_ns = time_now_ns();
	int rc = r->rc ? r->rc : replace(p, e, r);

	e->reading = NULL;
	e->looked = true;
	e->interval_ns = rc ? MIN(e->interval_ns * 2, INTERVAL_MAX_NS) : INTERVAL_MIN_NS;
	e->rest_ns = now_ns + MAX(INTERVAL_MIN_NS, r->cost_ns * COST_FACTOR);
	e->due_ns = MAX(e->rest_ns, now_ns + e->interval_ns);
	if (!rc)
		e->wanted = false; /* until the next look-up fails */
	if (rc == -ESRCH || is_barred(rc))
		e->due_ns = UINT64_MAX;
	explain(objects_at(p->objects, e->object), e, rc, r->fix);
	r->read.job.drop(&r->read.job);
	return !rc;
}

/* Report that the file system of @e hangs. */
static void set_aside(struct perfmaps *p, struct perfmaps_entry *e)
{
	struct object *object = objects_at(p->objects, e->object);

	e->looked = true;
	if (!has_source(object))
		object_explain(object, JITREADS_NO_REPLY, NULL);
}

/* Start to search the map of @e. */
static void start(struct perfmaps *p, struct perfmaps_entry *e, uint64_t now_ns)
{
	int rc;

	if (!jitreads_has_room(p->reads))
		return;
	e->reading = new_reading(p, e);
	rc = e->reading ? jitreads_start(p->reads, &e->reading->read) : -ENOMEM;
	if (!rc)
		return;
	if (e->reading)
		e->reading->read.job.drop(&e->reading->read.job);
	e->reading = NULL;
	if (rc == -EAGAIN)
		return;
	set_aside(p, e);
	e->due_ns = now_ns + INTERVAL_MIN_NS;
}

/* Go on with the search of @e. True: there is a new map. */
static bool look(struct perfmaps *p, struct perfmaps_entry *e, uint64_t now_ns)
{
	if (!e->reading && e->wanted && e->due_ns <= now_ns)
		start(p, e, now_ns);
	if (!e->reading || is_stopping(p))
		return false;
	if (jitreads_ended(p->reads, &e->reading->read))
		return take(p, e);
	if (jitread_hangs(&e->reading->read, now_ns))
		set_aside(p, e);
	return false;
}

/* Free entry @i, which is not being read. */
static void remove_entry(struct perfmaps *p, uint32_t i)
{
	struct perfmaps_entry *e = p->entries[i];

	if (e->map)
		atomic_fetch_sub_explicit(&p->memory, perfmap_memory(e->map), memory_order_relaxed);
	p->entries[i] = p->entries[--p->nr_entries];
	p->by_object[p->entries[i]->object] = i + 1;
	p->by_object[e->object] = 0;
	perfmap_free(e->map);
	free(e);
}

/* Make room for a process of @uid: it, or others, may have thousands. */
static bool evict(struct perfmaps *p, uint32_t uid)
{
	struct jitreads_candidate *candidates = calloc(p->nr_entries, sizeof(*candidates));
	uint32_t oldest;

	for (uint32_t i = 0; candidates && i < p->nr_entries; i++) {
		const struct perfmaps_entry *e = p->entries[i];
		const struct object *object = objects_at(p->objects, e->object);

		candidates[i] = (struct jitreads_candidate){
			e->uid, atomic_load_explicit(&object->used, memory_order_relaxed),
			e->reading != NULL
		};
	}
	oldest = candidates ? jitreads_victim(candidates, p->nr_entries, uid) : UINT32_MAX;
	free(candidates);
	if (oldest != UINT32_MAX)
		remove_entry(p, oldest);
	return oldest != UINT32_MAX;
}

/* Return the entry of @object, added at the first look-up; NULL when there are too many. */
static struct perfmaps_entry *entry_of(struct perfmaps *p, struct object *object)
{
	struct perfmaps_entry **entries, *e;
	uint32_t uid;

	if (object->id < p->nr_by_object && p->by_object[object->id])
		return p->entries[p->by_object[object->id] - 1];
	uid = p->no_proc ? UINT32_MAX : jitreads_user_with(p->objects, object);
	if ((p->nr_entries == PERFMAPS_MAX && (p->no_proc || !evict(p, uid))) ||
	    !array_reserve_zeroed(&p->by_object, &p->nr_by_object, object->id + 1ULL))
		return NULL;
	entries = reallocarray(p->entries, p->nr_entries + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	p->entries = entries;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->object = object->id;
	e->uid = uid;
	e->interval_ns = INTERVAL_MIN_NS / 2;
	p->entries[p->nr_entries++] = e;
	p->by_object[object->id] = p->nr_entries;
	e->wanted = true;
	look(p, e, time_now_ns());
	return e;
}

int perfmaps_find(struct perfmaps *p, struct object *object, uint64_t addr,
		  struct perfmap_symbol *out)
{
	struct perfmaps_entry *e = entry_of(p, object);

	if (!e || is_stopping(p))
		return -ENOENT;
	if (!e->looked)
		return -EAGAIN;
	if (e->map && perfmap_find(e->map, addr, out))
		return 0;
	if (!e->wanted && e->map)
		object_explain(object, NOT_IN_MAP, NULL);
	/* A new address is missing: shorten a long wait. */
	if (e->due_ns != UINT64_MAX)
		e->due_ns = e->rest_ns;
	e->wanted = true;
	return -ENOENT;
}

/* Free the maps of processes that ended long ago. */
static void drop_expired(struct perfmaps *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < p->nr_entries && !p->no_proc;) {
		struct perfmaps_entry *e = p->entries[i];

		if (e->reading || !jitreads_expired(&e->end, e->pid, now_ns)) {
			i++;
			continue;
		}
		remove_entry(p, i);
	}
}

uint32_t perfmaps_refresh(struct perfmaps *p, uint64_t now_ns)
{
	drop_expired(p, now_ns);
	for (uint32_t i = 0; i < p->nr_entries; i++) {
		uint32_t at = (p->next + i) % p->nr_entries;
		struct perfmaps_entry *e = p->entries[at];
		bool busy = e->reading || (e->wanted && e->due_ns <= now_ns);

		if (busy && look(p, e, now_ns)) {
			p->next = at + 1;
			return e->object;
		}
		/* Without helpers, one a call: names of other objects are looked up in between. */
		if (busy && !p->reads->helpers) {
			p->next = at + 1;
			break;
		}
	}
	return OBJECT_ID_UNKNOWN;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find, trust and follow the jitdumps of processes.
 *
 * Runs on: the loader; the files are read by helpers.
 */
#include "symbols/jit/jitdumps.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/keyhash.h"
#include "symbols/jit/jitdumps_private.h"

#define FILES_MAX   4096U
#define FILES_EACH  16U /* of one process: older ones are forgotten */
#define POLL_NS	    25000000ULL
#define COST_FACTOR 10ULL	   /* reading takes at most a tenth of the time */
#define RETRY_NS    1000000000ULL  /* while its device does not answer */
#define SETTLE_NS   300000000ULL   /* a listing waits for a job */
#define TELL_NS	    1000000000ULL  /* at least between two reports of better names */
#define ASK_NS	    10000000000ULL /* whether a process has ended */
#define KEEP_NS	    60000000000ULL /* the file of an ended one, for its instructions */

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   struct jitreads *reads, const atomic_bool *stop)
{
	memset(j, 0, sizeof(*j));
	j->objects = objects;
	j->maps = maps;
	j->reads = reads;
	j->stop = stop;
	objects_list_new(objects);
}

void jitdumps_fini(struct jitdumps *j)
{
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		struct jitdumps_entry *e = j->entries[i];

		if (e->runs)
			jitreads_leave(j->reads, &e->r->read);
		else
			jitdump_job_drop(&e->r->read.job);
		free(e);
	}
	free(j->entries);
	for (uint32_t i = 0; i < j->nr_files; i++)
		object_put(objects_at(j->objects, j->files[i].object));
	free(j->files);
	free(j->by_object);
	memset(j, 0, sizeof(*j));
}

static bool is_stopping(const struct jitdumps *j)
{
	/* Pairs with the release in loader_stop(). */
	return atomic_load_explicit(j->stop, memory_order_acquire);
}

/* Return true at the end of the name of a file that is mapped. */
static bool ends_name(const char *p)
{
	return !*p || *p == ' '; /* " (deleted)" */
}

/*
 * Return true if @path is named jit-PID.dump, or as JavaScriptCore does: jit-TID-PID.dump, without
 * a folder of its own jit-TID-PID-XXXXXX.
 */
static bool is_dump(const char *path, uint64_t *pid)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *end;

	if (strncmp(name, "jit-", 4) || name[4] < '0' || name[4] > '9')
		return false;
	*pid = strtoull(name + 4, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
		*pid = strtoull(end + 1, &end, 10);
		if (*end == '-' && strcspn(end + 1, " ") == 6)
			return ends_name(end + 7);
	}
	return !strncmp(end, ".dump", 5) && ends_name(end + 5);
}

/* Test whether the process that mapped a file may still run. */
static bool has_owner(const struct jitdump_name *file)
{
	return file->first_pid <= 0 || !kill(file->first_pid, 0) || errno != ESRCH;
}

/* The list is full: forget the files of processes that have ended; if few, the oldest quarter. */
static void make_room(struct jitdumps *j)
{
	uint32_t kept = 0, skip;

	for (uint32_t i = 0; i < j->nr_files; i++) {
		if (j->no_proc || has_owner(&j->files[i]))
			j->files[kept++] = j->files[i];
		else
			object_put(objects_at(j->objects, j->files[i].object));
	}
	skip = kept > FILES_MAX / 4 * 3 ? kept - FILES_MAX / 4 * 3 : 0;
	for (uint32_t i = 0; i < skip; i++)
		object_put(objects_at(j->objects, j->files[i].object));
	memmove(j->files, j->files + skip, (kept - skip) * sizeof(*j->files));
	j->nr_files = kept - skip;
}

/* Forget the oldest of FILES_EACH files of @pid: any user can map many with such names. */
static void make_room_of(struct jitdumps *j, pid_t pid)
{
	uint32_t nr = 0, oldest = 0;

	for (uint32_t i = j->nr_files; i-- > 0;) {
		if (j->files[i].first_pid == pid) {
			oldest = i;
			nr++;
		}
	}
	if (nr < FILES_EACH)
		return;
	object_put(objects_at(j->objects, j->files[oldest].object));
	j->nr_files--;
	memmove(j->files + oldest, j->files + oldest + 1,
		(j->nr_files - oldest) * sizeof(*j->files));
}

/* List @object if it is a jitdump by its name. */
static void add_file(struct jitdumps *j, struct object *object)
{
	struct jitdump_name *files, file = { .object = object->id };
	struct object_sighting seen;
	bool dump;

	objects_sighting(j->objects, object, &seen);
	dump = seen.path && is_dump(seen.path, &file.inner_pid);
	free(seen.path);
	if (!dump)
		return;
	file.first_pid = seen.pid;
	if (!j->no_proc)
		make_room_of(j, seen.pid);
	if (j->nr_files == FILES_MAX)
		make_room(j);
	files = reallocarray(j->files, j->nr_files + 1, sizeof(*files));
	if (!files)
		return;
	j->files = files;
	object_get(object);
	files[j->nr_files++] = file;
	j->nr_found++;
}

static struct jitdumps_entry *entry_at(const struct jitdumps *j, uint32_t object)
{
	return object < j->nr_by_object && j->by_object[object]
		       ? j->entries[j->by_object[object] - 1]
		       : NULL;
}

static struct jitdumps_entry *new_entry(const struct jitdumps *j, const struct object *object)
{
	struct jitdumps_entry *e = calloc(1, sizeof(*e));
	struct object_sighting seen;

	if (!e)
		return NULL;
	objects_sighting(j->objects, object, &seen);
	free(seen.path);
	e->r = jitdump_job_new(seen.pid, j->no_proc, j->root);
	if (!e->r) {
		free(e);
		return NULL;
	}
	e->object = object->id;
	e->uid = j->no_proc ? UINT32_MAX : jitreads_user_of(seen.pid);
	return e;
}

/* Make an entry for the memory @object; NULL when there are too many. */
static struct jitdumps_entry *add_entry(struct jitdumps *j, const struct object *object)
{
	struct jitdumps_entry **entries, *e;

	if ((j->nr_entries == JITDUMPS_MAX &&
	     (j->no_proc || !jitdumps_evict(j, jitreads_user_with(j->objects, object)))) ||
	    !array_reserve_zeroed(&j->by_object, &j->nr_by_object, object->id + 1ULL))
		return NULL;
	entries = reallocarray(j->entries, j->nr_entries + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	j->entries = entries;
	e = new_entry(j, object);
	if (!e)
		return NULL;
	j->entries[j->nr_entries++] = e;
	j->by_object[object->id] = j->nr_entries;
	return e;
}

/* Look at the new objects: jitdumps, and in a recording all memory. */
static void collect(struct jitdumps *j)
{
	struct object *object;

	while ((object = objects_next_new(j->objects))) {
		bool memory = object->identity.kind == OBJECT_ANON && !object->identity.layer;

		/* An entry keeps the id. */
		if (memory && j->no_proc && add_entry(j, object))
			continue;
		if (object->identity.kind == OBJECT_FILE)
			add_file(j, object);
		object_put(object);
	}
}

struct object *jitdumps_base(struct jitdumps *j, struct object *object)
{
	struct object_identity identity = object->identity;
	struct object_sighting seen;
	struct object *base;

	if (!identity.layer)
		return object;
	identity.layer = 0;
	objects_sighting(j->objects, object, &seen);
	base = objects_intern(j->objects, &identity, seen.path, seen.path ? strlen(seen.path) : 0,
			      seen.pid, seen.start, seen.end);
	free(seen.path);
	return base;
}

/* Report to the maps the code that replaced other code. */
static void tell_layers(struct jitdumps *j, struct jitdumps_entry *e)
{
	const struct object *base = objects_at(j->objects, e->object);
	bool timed = e->r->dump.state.has_times && !j->other_clock;
	const struct jitcode_function *f;
	bool any = false;

	while ((f = jitcode_next_over(e->r->dump.code))) {
		/* A recording without times has no order: the first name is kept. */
		if (!j->maps || (!timed && j->no_proc))
			continue;
		maps_on_code(j->maps, base, f->layer, f->start, f->start + f->size,
			     timed ? f->time_ns : time_now_ns());
		any = true;
	}
	if (any)
		maps_settle(j->maps);
}

/* Set the state of the names of @object. */
static void explain(struct object *object, const struct jitdumps_entry *e, int code)
{
	static const struct object_reason words[] = {
		{ -EPERM, "its jitdump belongs to another user",
		  "the process's user or root must own jit-PID.dump" },
		{ -EMLINK, "its jitdump has no name, or more than one", NULL },
		{ -EINVAL, "its jitdump is not a regular file", NULL },
		{ -EFBIG, "its jitdump is too large", NULL },
		{ -ENOTSUP, "its jitdump has another byte order or version", NULL },
		{ -EBADMSG, "its jitdump is damaged", NULL },
		{ -EPIPE, "its jitdump ended its reader: not read", NULL },
		{ -ETIME, "its jitdump ended its reader: not read", NULL },
		{ -ESTALE, "its jitdump was replaced", "restart the program" },
		{ -EACCES, "no permission to read its jitdump",
		  "run proftop as root or with cap_sys_ptrace" },
	};

	if (e->opened && jitcode_nr(e->r->dump.code))
		object_credit(object, "jitdump", jitcode_nr(e->r->dump.code));
	object_explain_code(object, code, words, ARRAY_SIZE(words));
	if (code || !e->opened)
		return;
	if (e->wanted && !e->r->dump.state.ended && e->r->dump.state.at < e->r->size)
		object_explain(object, "the end of its jitdump is not written yet",
			       "wait: it is written in blocks; or have the program write a perf "
			       "map");
	else
		object_explain(object, e->wanted ? "code missing in its jitdump" : NULL, NULL);
}

/* Copy file @i into the list of the job, if the process may own it. */
static void add_candidate(const struct jitdumps *j, struct jitdump_job *r, uint32_t i)
{
	const struct jitdump_name *file = &j->files[i];
	const struct object *object = objects_at(j->objects, file->object);
	struct jitdump_candidate *list, c = { .file = *file, .identity = object->identity };

	objects_sighting(j->objects, object, &c.seen);
	list = c.seen.pid == r->pid || file->first_pid == r->pid
		       ? reallocarray(r->candidates, r->nr_candidates + 1, sizeof(*list))
		       : NULL;
	if (!list) {
		free(c.seen.path);
		return;
	}
	r->candidates = list;
	list[r->nr_candidates++] = c;
}

/* List the files that may be the jitdump of @e. False: there are none. */
static bool find_candidates(const struct jitdumps *j, struct jitdumps_entry *e)
{
	struct jitdump_job *r = e->r;

	jitdump_job_forget(r);
	e->nr_found = j->nr_found;
	if (!jitdumps_may_open(j, e))
		return false;
	/* The newest first: older ones may be of an earlier process with this pid. */
	for (uint32_t i = j->nr_files; i-- > 0;)
		add_candidate(j, r, i);
	if (r->nr_candidates)
		jitreads_device(&r->read, r->candidates[0].identity.maj,
				r->candidates[0].identity.min);
	return r->nr_candidates;
}

/* Report that the file system of @e hangs. */
static void set_aside(struct jitdumps *j, struct jitdumps_entry *e)
{
	if (!e->looked || e->wanted)
		object_explain(objects_at(j->objects, e->object), JITREADS_NO_REPLY, NULL);
	e->looked = true;
}

/* Take the result of the finished job of @e. */
static void take(struct jitdumps *j, struct jitdumps_entry *e, uint64_t now_ns)
{
	struct jitdump_job *r = e->r;
	bool held = r->fd >= 0, opened = held || r->closed;
	size_t memory = opened ? jitcode_memory(r->dump.code) : 0;

	e->runs = false;
	e->looked = true;
	j->nr_open += held;
	j->nr_open -= e->held;
	e->held = held;
	e->opened = opened;
	if (opened)
		tell_layers(j, e);
	e->news |= r->news;
	atomic_fetch_add_explicit(&j->memory, memory - e->memory, memory_order_relaxed);
	e->memory = memory;
	e->due_ns = time_now_ns() + MAX(POLL_NS, r->cost_ns * COST_FACTOR);
	if (r->gone) {
		e->gone_ns = now_ns;
		e->due_ns = now_ns + KEEP_NS;
	}
	if (r->rc != -EAGAIN && r->rc != -ENOENT)
		explain(objects_at(j->objects, e->object), e, r->rc);
}

/* Start to search the jitdump of @e, or to continue reading it. */
static void start(struct jitdumps *j, struct jitdumps_entry *e, uint64_t now_ns)
{
	int rc;

	if (!jitreads_has_room(j->reads))
		return;
	if (!e->opened && !find_candidates(j, e)) {
		e->looked = true;
		e->due_ns = now_ns + POLL_NS;
		return;
	}
	e->r->full = jitdumps_is_full(j, e);
	e->r->asks = !j->no_proc && e->held && now_ns >= e->ask_ns;
	e->r->closes = e->gone_ns;
	if (e->r->asks)
		e->ask_ns = now_ns + ASK_NS;
	rc = jitreads_start(j->reads, &e->r->read);
	e->runs = !rc;
	if (rc == -ETIME) {
		set_aside(j, e);
		e->due_ns = now_ns + RETRY_NS;
	}
}

/* Go on with the jitdump of @e. */
static void look(struct jitdumps *j, struct jitdumps_entry *e, uint64_t now_ns)
{
	if (!e->runs && (j->no_proc || e->due_ns <= now_ns) && e->held == e->opened)
		start(j, e, now_ns);
	if (!e->runs || is_stopping(j))
		return;
	if (jitreads_ended(j->reads, &e->r->read))
		take(j, e, now_ns);
	else if (jitread_hangs(&e->r->read, now_ns))
		set_aside(j, e);
}

/* Return the entry of the memory that @object is a layer of, added and searched if new. */
static struct jitdumps_entry *entry_of(struct jitdumps *j, struct object *object)
{
	struct object *base = jitdumps_base(j, object);
	struct jitdumps_entry *e = entry_at(j, base->id);

	if (e)
		return e;
	collect(j);
	e = entry_at(j, base->id);
	if (!e)
		e = add_entry(j, base);
	if (e)
		look(j, e, time_now_ns());
	return e;
}

/* Test whether the jitdump of @e can be used now. */
static bool is_readable(const struct jitdumps_entry *e)
{
	return e && e->opened && !e->runs;
}

static const struct jitcode_function *function_at(const struct jitdumps *j,
						  const struct jitdumps_entry *e,
						  const struct object *object, uint64_t addr)
{
	if (is_stopping(j) || !is_readable(e))
		return NULL;
	return jitcode_find(e->r->dump.code, object->identity.layer, addr);
}

/* Test whether a look-up should be repeated: the jitdump is being read, and does not hang. */
static bool is_being_read(const struct jitdumps_entry *e)
{
	return !e->looked || (e->runs && !jitread_hangs(&e->r->read, time_now_ns()));
}

int jitdumps_find(struct jitdumps *j, struct object *object, uint64_t addr,
		  struct jitdumps_symbol *out)
{
	struct jitdumps_entry *e = entry_of(j, object);
	const struct jitcode_function *f = function_at(j, e, object, addr);

	if (!f) {
		if (!e || is_stopping(j))
			return -ENOENT;
		if (is_being_read(e))
			return -EAGAIN;
		if (!e->wanted)
			e->news = false; /* a look-up has just failed */
		e->wanted = true;
		return -ENOENT;
	}
	*out = (struct jitdumps_symbol){
		.start = f->start,
		.size = f->size,
		.name_size = f->name_size,
		.name = jitcode_text(e->r->dump.code, f->name),
	};
	return 0;
}

bool jitdumps_line(struct jitdumps *j, struct object *object, uint64_t addr, const char **file,
		   uint32_t *line)
{
	/* Not searched again: places of processes that ended long ago move with their names. */
	const struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f = function_at(j, e, object, addr);
	const struct jitcode_line *found = f ? jitdump_line(&e->r->dump, f, addr) : NULL;

	if (!found)
		return false;
	*file = jitcode_text(e->r->dump.code, found->file);
	*line = found->line;
	return true;
}

/* Find the function with @variant at @start, of any layer. */
static const struct jitcode_function *function_named(const struct jitdumps_entry *e, uint64_t start,
						     uint64_t variant)
{
	for (uint32_t layer = JITCODE_LAYERS; layer-- > 0;) {
		const struct jitcode_function *f = jitcode_find(e->r->dump.code, layer, start);

		if (f && f->start == start &&
		    keyhash_name(jitcode_text(e->r->dump.code, f->name), f->name_size) == variant)
			return f;
	}
	return NULL;
}

bool jitdumps_code_line(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
			uint64_t addr, const char **file, uint32_t *line)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f = is_readable(e) ? function_named(e, start, variant)
							  : NULL;
	const struct jitcode_line *found = f ? jitdump_line(&e->r->dump, f, addr) : NULL;

	if (!found)
		return false;
	*file = jitcode_text(e->r->dump.code, found->file);
	*line = found->line;
	return true;
}

/* Wait a little for the job of @e: a listing needs its result now. */
static void settle(struct jitdumps *j, struct jitdumps_entry *e)
{
	if (e && e->runs && j->reads->helpers &&
	    helpers_wait(j->reads->helpers, &e->r->read.job, time_now_ns() + SETTLE_NS))
		look(j, e, time_now_ns());
}

int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f;

	settle(j, e);
	f = is_readable(e) && e->held ? function_named(e, start, variant) : NULL;
	if (!f)
		return -ENOENT;
	*size = f->size;
	*machine = e->r->dump.state.machine;
	return jitdump_job_code(j->reads->helpers, e->r->fd, f, MIN(f->size, max), bytes);
}

/* Return true if it is time to report new names of @e. */
static bool has_told(struct jitdumps_entry *e, uint64_t now_ns, bool at_once)
{
	if (!e->news || !e->wanted || (e->tell_ns > now_ns && !at_once))
		return false;
	e->news = e->wanted = false; /* until the next look-up fails */
	e->tell_ns = now_ns + TELL_NS;
	return true;
}

/* Free the code of processes that ended long ago. */
static void drop_expired(struct jitdumps *j, uint64_t now_ns)
{
	for (uint32_t i = 0; i < j->nr_entries && !j->no_proc;) {
		struct jitdumps_entry *e = j->entries[i];

		if (e->runs || !jitreads_expired(&e->end, e->r->pid, now_ns)) {
			i++;
			continue;
		}
		jitdumps_remove(j, i);
	}
}

uint32_t jitdumps_refresh(struct jitdumps *j, uint64_t now_ns)
{
	collect(j);
	drop_expired(j, now_ns);
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		uint32_t at = (j->next + i) % j->nr_entries;
		struct jitdumps_entry *e = j->entries[at];

		if (!e->opened && !e->runs && e->looked && e->nr_found == j->nr_found)
			continue;
		look(j, e, now_ns);
		if (is_stopping(j))
			return OBJECT_ID_UNKNOWN;
		if (has_told(e, now_ns, j->no_proc)) {
			j->next = at + 1;
			return e->object;
		}
	}
	return OBJECT_ID_UNKNOWN;
}

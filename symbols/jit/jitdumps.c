// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find, trust and follow the jitdumps of processes.
 *
 * Runs on: the loader.
 */
#include "symbols/jit/jitdumps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/process/code_owner.h"

#define FILES_MAX   4096U
#define POLL_NS	    25000000ULL
#define COST_FACTOR 10ULL	  /* reading takes at most a tenth of the time */
#define SLICE_NS    50000000ULL	  /* of reading one jitdump before the next one */
#define TELL_NS	    1000000000ULL /* at least between two reports of better names */

/* An object with the name of a jitdump. */
struct jitdumps_file {
	uint32_t object;
	pid_t first_pid;    /* first process that mapped it: later ones do not change it */
	uint64_t inner_pid; /* the one in its name */
};

struct jitdumps_entry {
	struct jitdump dump;
	int fd;		   /* -1: no jitdump yet */
	uint32_t object;   /* the memory, layer 0 */
	uint32_t file;	   /* object of the jitdump */
	uint32_t nr_files; /* number of jitdumps at the last search without a result */
	uint64_t size;	   /* of the jitdump when it was last checked */
	uint64_t due_ns;   /* not checked before */
	uint64_t tell_ns;  /* not reported before */
	size_t memory;
	bool wanted; /* addresses are missing */
	bool news;   /* sampled code is not in the jitdump */
};

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   const atomic_bool *stop)
{
	memset(j, 0, sizeof(*j));
	j->objects = objects;
	j->maps = maps;
	j->stop = stop;
}

static void close_dump(struct jitdumps *j, struct jitdumps_entry *e)
{
	if (e->fd < 0)
		return;
	close(e->fd);
	e->fd = -1;
	j->nr_open--;
	jitdump_fini(&e->dump);
	e->size = 0;
}

void jitdumps_fini(struct jitdumps *j)
{
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		close_dump(j, j->entries[i]);
		free(j->entries[i]);
	}
	free(j->entries);
	free(j->files);
	free(j->by_object);
	memset(j, 0, sizeof(*j));
}

static bool is_stopping(const struct jitdumps *j)
{
	/* Pairs with the release in loader_stop(). */
	return atomic_load_explicit(j->stop, memory_order_acquire);
}

/* Return true if @path is named jit-PID.dump. */
static bool is_dump(const char *path, uint64_t *pid)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *end;

	if (strncmp(name, "jit-", 4) || name[4] < '0' || name[4] > '9')
		return false;
	*pid = strtoull(name + 4, &end, 10);
	return !strncmp(end, ".dump", 5) && (!end[5] || end[5] == ' ');
}

static void add_file(struct jitdumps *j, const struct object *object)
{
	struct jitdumps_file *files, file = { .object = object->id };
	struct object_sighting seen;
	bool dump;

	objects_sighting(j->objects, object, &seen);
	dump = seen.path && is_dump(seen.path, &file.inner_pid);
	free(seen.path);
	if (!dump || j->nr_files == FILES_MAX)
		return;
	file.first_pid = seen.pid;
	files = reallocarray(j->files, j->nr_files + 1, sizeof(*files));
	if (!files)
		return;
	j->files = files;
	files[j->nr_files++] = file;
}

/* Make the index reach object @id. */
static int reserve(struct jitdumps *j, uint32_t id)
{
	uint32_t nr = MAX(id + 1, j->nr_by_object * 2);
	uint32_t *by_object;

	if (id < j->nr_by_object)
		return 0;
	by_object = reallocarray(j->by_object, nr, sizeof(*by_object));
	if (!by_object)
		return -ENOMEM;
	memset(by_object + j->nr_by_object, 0, (nr - j->nr_by_object) * sizeof(*by_object));
	j->by_object = by_object;
	j->nr_by_object = nr;
	return 0;
}

static struct jitdumps_entry *entry_at(const struct jitdumps *j, uint32_t object)
{
	return object < j->nr_by_object && j->by_object[object]
		       ? j->entries[j->by_object[object] - 1]
		       : NULL;
}

/* Make an entry for the memory @object; NULL when there are too many. */
static struct jitdumps_entry *add_entry(struct jitdumps *j, const struct object *object)
{
	struct jitdumps_entry **entries, *e;

	if (j->nr_entries == JITDUMPS_MAX || reserve(j, object->id))
		return NULL;
	entries = reallocarray(j->entries, j->nr_entries + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	j->entries = entries;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->fd = -1;
	e->object = object->id;
	j->entries[j->nr_entries++] = e;
	j->by_object[object->id] = j->nr_entries;
	return e;
}

/* Look at the new objects: jitdumps, and in a recording all memory. */
static void collect(struct jitdumps *j)
{
	uint32_t nr = objects_nr(j->objects);

	for (; j->seen < nr; j->seen++) {
		const struct object *object = objects_at(j->objects, j->seen);

		if (object->identity.kind == OBJECT_FILE)
			add_file(j, object);
		else if (object->identity.kind == OBJECT_ANON && !object->identity.layer &&
			 j->no_proc)
			add_entry(j, object);
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

/* Open @file as the jitdump of process @pid, if it belongs to it. */
static int open_file(const struct jitdumps *j, const struct jitdumps_file *file, pid_t pid,
		     const struct code_owner *o, int *fd)
{
	const struct object *object = objects_at(j->objects, file->object);
	struct foreign_want want = {
		.pid = j->no_proc ? 0 : pid,
		.root = j->root,
		.size_max = JITDUMP_FILE_MAX,
		.maj = object->identity.maj,
		.min = object->identity.min,
		.ino = object->identity.ino,
		.owned = true,
		.uid = o->uid,
	};
	struct foreign_file opened;
	struct object_sighting seen;
	int rc = -ENOENT;

	objects_sighting(j->objects, object, &seen);
	if (seen.pid == pid && !j->no_proc) {
		want.start = seen.start;
		want.end = seen.end;
	}
	want.path = seen.path && *seen.path ? seen.path : NULL;
	/* A recording of a container has pids that cannot be translated here. */
	if ((seen.pid == pid || file->first_pid == pid) &&
	    (j->no_proc || file->inner_pid == o->inner_pid))
		rc = foreign_open(&want, &opened, NULL);
	free(seen.path);
	if (!rc)
		*fd = opened.fd;
	return rc;
}

/* Search the jitdump of the process with the memory @e. 0, -ENOENT, -errno. */
static int open_dump(struct jitdumps *j, struct jitdumps_entry *e)
{
	struct object_sighting seen;
	struct code_owner o;
	int rc = 0, found = -ENOENT;

	objects_sighting(j->objects, objects_at(j->objects, e->object), &seen);
	free(seen.path);
	code_owner_ours(seen.pid, &o);
	if (!j->no_proc)
		rc = code_owner_ask(seen.pid, &o);
	if (rc)
		return rc;
	/* The newest first: older ones may be of an earlier process with this pid. */
	for (uint32_t i = j->nr_files; i-- > 0 && found == -ENOENT;) {
		found = open_file(j, &j->files[i], seen.pid, &o, &e->fd);
		e->file = j->files[i].object;
	}
	code_owner_done(&o);
	if (found)
		return found;
	j->nr_open++;
	rc = jitdump_init(&e->dump);
	if (rc)
		close_dump(j, e);
	return rc;
}

/* Report to the maps the code that replaced other code. */
static void tell_layers(struct jitdumps *j, struct jitdumps_entry *e)
{
	const struct object *base = objects_at(j->objects, e->object);
	bool timed = e->dump.has_times && !j->other_clock;
	const struct jitcode_function *f;

	bool any = false;

	while ((f = jitcode_next_over(e->dump.code))) {
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

/* Read the new records of the open jitdump of @e. */
static int read_on(struct jitdumps *j, struct jitdumps_entry *e)
{
	struct jitdump_file file = { .fd = e->fd };
	uint32_t before = jitcode_nr(e->dump.code);
	struct stat st;
	bool more = false;
	int rc = 0;

	if (fstat(e->fd, &st))
		return -errno;
	file.size = (uint64_t)MAX(st.st_size, 0);
	if (file.size < e->dump.at) { /* started again */
		jitdump_fini(&e->dump);
		if (jitdump_init(&e->dump))
			return -ENOMEM;
		before = 0;
		e->size = 0;
	}
	if (file.size == e->size || e->dump.ended)
		return 0;
	if (atomic_load_explicit(&j->memory, memory_order_relaxed) < JITDUMPS_MEMORY_MAX)
		rc = jitdump_read(&e->dump, &file, j->no_proc ? 0 : SLICE_NS, &more);
	e->size = more ? e->dump.at : file.size;
	if (is_stopping(j))
		return -ECANCELED;
	tell_layers(j, e);
	e->news |= jitcode_nr(e->dump.code) != before;
	return rc;
}

/* Set the state of the names of @object. */
static void explain(struct object *object, const struct jitdumps_entry *e, int code)
{
	static const struct {
		int code;
		const char *reason, *fix;
	} words[] = {
		{ -EPERM, "its jitdump belongs to another user",
		  "the process's user or root must own jit-PID.dump" },
		{ -EMLINK, "its jitdump has no name, or more than one", NULL },
		{ -EINVAL, "its jitdump is not a regular file", NULL },
		{ -EFBIG, "its jitdump is too large", NULL },
		{ -ENOTSUP, "its jitdump has another byte order or version", NULL },
		{ -EBADMSG, "its jitdump is damaged", NULL },
		{ -ESTALE, "its jitdump was replaced", "restart the program" },
		{ -EACCES, "no permission to read its jitdump",
		  "run proftop as root or with cap_sys_ptrace" },
	};

	if (e->fd >= 0 && jitcode_nr(e->dump.code))
		object_credit(object, "jitdump", jitcode_nr(e->dump.code));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].code == code)
			object_explain(object, words[i].reason, words[i].fix);
	}
	if (code || e->fd < 0)
		return;
	if (e->wanted && !e->dump.ended && e->dump.at < e->size)
		object_explain(object, "the end of its jitdump is not written yet",
			       "wait, or use a perf map (node: --perf-basic-prof)");
	else
		object_explain(object, e->wanted ? "code missing in its jitdump" : NULL, NULL);
}

/* Search the jitdump of @e, or continue reading it. */
static void look(struct jitdumps *j, struct jitdumps_entry *e)
{
	uint64_t start_ns = time_now_ns(), end_ns;
	size_t memory = 0;
	int rc = 0;

	if (e->fd < 0) {
		e->nr_files = j->nr_files;
		rc = j->nr_files && j->nr_open < JITDUMPS_OPEN_MAX ? open_dump(j, e) : -ENOENT;
	}
	if (is_stopping(j))
		return;
	if (e->fd >= 0)
		rc = read_on(j, e);
	if (is_stopping(j))
		return;
	if (e->fd >= 0)
		memory = jitcode_memory(e->dump.code);
	atomic_fetch_add_explicit(&j->memory, memory - e->memory, memory_order_relaxed);
	e->memory = memory;
	end_ns = time_now_ns();
	e->due_ns = end_ns + MAX(POLL_NS, (end_ns - start_ns) * COST_FACTOR);
	if (rc != -EAGAIN && rc != -ENOENT)
		explain(objects_at(j->objects, e->object), e, rc);
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
		look(j, e);
	return e;
}

static const struct jitcode_function *function_at(struct jitdumps *j, struct object *object,
						  uint64_t addr, struct jitdumps_entry **entry)
{
	struct jitdumps_entry *e = entry_of(j, object);

	*entry = e;
	if (!e || is_stopping(j) || e->fd < 0)
		return NULL;
	return jitcode_find(e->dump.code, object->identity.layer, addr);
}

bool jitdumps_find(struct jitdumps *j, struct object *object, uint64_t addr,
		   struct jitdumps_symbol *out)
{
	struct jitdumps_entry *e;
	const struct jitcode_function *f = function_at(j, object, addr, &e);

	if (!f) {
		if (e && !e->wanted)
			e->news = false; /* a look-up has just failed */
		if (e)
			e->wanted = true;
		return false;
	}
	*out = (struct jitdumps_symbol){
		.start = f->start,
		.size = f->size,
		.name_size = f->name_size,
		.name = jitcode_text(e->dump.code, f->name),
	};
	return true;
}

bool jitdumps_has(const struct jitdumps *j, const struct object *object)
{
	const struct jitdumps_entry *e = entry_at(j, object->id);

	return e && e->fd >= 0;
}

bool jitdumps_line(struct jitdumps *j, struct object *object, uint64_t addr, const char **file,
		   uint32_t *line)
{
	struct jitdumps_entry *e;
	const struct jitcode_function *f = function_at(j, object, addr, &e);
	const struct jitcode_line *found = f ? jitdump_line(&e->dump, f, addr) : NULL;

	if (!found)
		return false;
	*file = jitcode_text(e->dump.code, found->file);
	*line = found->line;
	return true;
}

/* Find the function with @variant at @start, of any layer. */
static const struct jitcode_function *function_named(const struct jitdumps_entry *e, uint64_t start,
						     uint64_t variant)
{
	for (uint32_t layer = JITCODE_LAYERS; layer-- > 0;) {
		const struct jitcode_function *f = jitcode_find(e->dump.code, layer, start);

		if (f && f->start == start &&
		    hash_name(jitcode_text(e->dump.code, f->name), f->name_size) == variant)
			return f;
	}
	return NULL;
}

bool jitdumps_code_line(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
			uint64_t addr, const char **file, uint32_t *line)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f = e && e->fd >= 0 ? function_named(e, start, variant)
							   : NULL;
	const struct jitcode_line *found = f ? jitdump_line(&e->dump, f, addr) : NULL;

	if (!found)
		return false;
	*file = jitcode_text(e->dump.code, found->file);
	*line = found->line;
	return true;
}

int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f;
	uint32_t want, got = 0;

	f = e && e->fd >= 0 ? function_named(e, start, variant) : NULL;
	if (!f)
		return -ENOENT;
	*size = f->size;
	*machine = e->dump.machine;
	want = MIN(f->size, max);
	*bytes = malloc(MAX(want, 1U));
	if (!*bytes)
		return -ENOMEM;
	while (got < want) {
		ssize_t nr = pread(e->fd, *bytes + got, want - got, (off_t)(f->bytes_at + got));

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			break;
		got += (uint32_t)nr;
	}
	return (int)got;
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

uint32_t jitdumps_refresh(struct jitdumps *j, uint64_t now_ns)
{
	collect(j);
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		uint32_t at = (j->next + i) % j->nr_entries;
		struct jitdumps_entry *e = j->entries[at];

		if (e->fd < 0 && e->nr_files == j->nr_files)
			continue;
		if (j->no_proc || e->due_ns <= now_ns)
			look(j, e);
		if (is_stopping(j))
			return OBJECT_ID_UNKNOWN;
		if (has_told(e, now_ns, j->no_proc)) {
			j->next = at + 1;
			return e->object;
		}
	}
	return OBJECT_ID_UNKNOWN;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find, trust and follow the jitdumps of processes.
 *
 * Runs on: the loader; the files are read by helpers.
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

#define FILES_MAX    4096U
#define POLL_NS	     25000000ULL
#define COST_FACTOR  10ULL	   /* reading takes at most a tenth of the time */
#define SLICE_NS     50000000ULL   /* of reading one jitdump before the next one */
#define RETRY_NS     1000000000ULL /* while its device does not answer */
#define CODE_WAIT_NS 300000000ULL  /* for the instructions of one function */
#define TELL_NS	     1000000000ULL /* at least between two reports of better names */

/* An object with the name of a jitdump. */
struct jitdumps_file {
	uint32_t object;
	pid_t first_pid;    /* first process that mapped it: later ones do not change it */
	uint64_t inner_pid; /* the one in its name */
};

/* A file that may be the jitdump of a process: what the job needs to open it. */
struct candidate {
	struct jitdumps_file file;
	struct object_identity identity;
	struct object_sighting seen; /* seen.path is owned */
};

/* A job: search a jitdump, or continue reading it. It uses nothing but this. */
struct reading {
	struct jitread read;
	pid_t pid;
	bool no_proc; /* as in struct jitdumps */
	bool full;    /* no memory for more code */
	char *root;   /* owned */
	struct candidate *candidates;
	uint32_t nr_candidates;
	struct jitdump dump;
	int fd;	       /* -1: no jitdump yet */
	uint64_t size; /* of the jitdump when it was last checked */
	/* Results of one run: */
	int rc;
	bool news; /* code was added */
	uint64_t cost_ns;
};

struct jitdumps_entry {
	struct reading *r; /* the job's while it runs */
	uint32_t object;   /* the memory, layer 0 */
	uint32_t nr_files; /* number of jitdumps at the last search without a result */
	uint64_t due_ns;   /* not checked before */
	uint64_t tell_ns;  /* not reported before */
	size_t memory;
	bool runs;   /* the job; it may hang */
	bool looked; /* the first search has ended, or hangs */
	bool opened; /* there is a jitdump */
	bool wanted; /* addresses are missing */
	bool news;   /* sampled code is not in the jitdump */
};

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   struct jitreads *reads, const atomic_bool *stop)
{
	memset(j, 0, sizeof(*j));
	j->objects = objects;
	j->maps = maps;
	j->reads = reads;
	j->stop = stop;
}

static void free_candidates(struct reading *r)
{
	for (uint32_t i = 0; i < r->nr_candidates; i++)
		free(r->candidates[i].seen.path);
	free(r->candidates);
	r->candidates = NULL;
	r->nr_candidates = 0;
}

static void close_dump(struct reading *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	jitdump_fini(&r->dump);
	r->size = 0;
}

static void drop(struct job *job)
{
	struct reading *r = (struct reading *)job;

	close_dump(r);
	free_candidates(r);
	free(r->root);
	free(r);
}

void jitdumps_fini(struct jitdumps *j)
{
	for (uint32_t i = 0; i < j->nr_entries; i++) {
		struct jitdumps_entry *e = j->entries[i];

		if (e->runs)
			jitreads_leave(j->reads, &e->r->read);
		else
			drop(&e->r->read.job);
		free(e);
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

static void run(struct job *job);

static struct jitdumps_entry *new_entry(const struct jitdumps *j, const struct object *object)
{
	struct jitdumps_entry *e = calloc(1, sizeof(*e));
	struct reading *r = calloc(1, sizeof(*r));
	struct object_sighting seen;

	if (!e || !r) {
		free(e);
		free(r);
		return NULL;
	}
	objects_sighting(j->objects, object, &seen);
	free(seen.path);
	r->read.job.run = run;
	r->read.job.drop = drop;
	r->pid = seen.pid;
	r->no_proc = j->no_proc;
	r->root = j->root ? strdup(j->root) : NULL;
	r->fd = -1;
	e->r = r;
	e->object = object->id;
	return e;
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

/* Open @c as the jitdump of the process with owner @o, if it belongs to it. */
static int open_file(const struct reading *r, const struct candidate *c, const struct code_owner *o,
		     int *fd)
{
	struct foreign_want want = {
		.pid = r->no_proc ? 0 : r->pid,
		.root = r->root,
		.size_max = JITDUMP_FILE_MAX,
		.maj = c->identity.maj,
		.min = c->identity.min,
		.ino = c->identity.ino,
		.path = c->seen.path && *c->seen.path ? c->seen.path : NULL,
		.owned = true,
		.uid = o->uid,
	};
	struct foreign_file opened;
	int rc;

	if (c->seen.pid == r->pid && !r->no_proc) {
		want.start = c->seen.start;
		want.end = c->seen.end;
	}
	/* A recording of a container has pids that cannot be translated here. */
	if (!r->no_proc && c->file.inner_pid != o->inner_pid)
		return -ENOENT;
	rc = foreign_open(&want, &opened, NULL);
	if (!rc)
		*fd = opened.fd;
	return rc;
}

/* Search the jitdump of the process. 0, -ENOENT, -errno. */
static int open_dump(struct reading *r)
{
	struct code_owner o;
	int rc = 0, found = -ENOENT;

	code_owner_ours(r->pid, &o);
	if (!r->no_proc)
		rc = code_owner_ask(r->pid, &o);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < r->nr_candidates && found == -ENOENT; i++)
		found = open_file(r, &r->candidates[i], &o, &r->fd);
	code_owner_done(&o);
	if (found)
		return found;
	rc = jitdump_init(&r->dump);
	if (rc)
		close_dump(r);
	return rc;
}

/* Get the size of the open jitdump. */
static int size_of(struct reading *r, uint64_t *size)
{
	int rc = watch_begin(&r->read.job.watch);
	struct stat st;

	if (rc)
		return rc;
	rc = fstat(r->fd, &st) ? -errno : 0;
	watch_end(&r->read.job.watch, 0);
	if (!rc)
		*size = (uint64_t)MAX(st.st_size, 0);
	return rc;
}

/* Read the new records of the open jitdump. */
static int read_on(struct reading *r)
{
	struct jitdump_file file = { .fd = r->fd, .watch = &r->read.job.watch };
	uint32_t before = jitcode_nr(r->dump.code);
	bool more = false;
	int rc = size_of(r, &file.size);

	if (rc)
		return rc;
	if (file.size < r->dump.state.at) { /* started again */
		jitdump_fini(&r->dump);
		if (jitdump_init(&r->dump)) {
			close(r->fd);
			r->fd = -1;
			return -ENOMEM;
		}
		before = 0;
		r->size = 0;
	}
	if (file.size == r->size || r->dump.state.ended)
		return 0;
	if (!r->full)
		rc = jitdump_read(&r->dump, &file, r->no_proc ? 0 : SLICE_NS, &more);
	r->size = more ? r->dump.state.at : file.size;
	r->news = jitcode_nr(r->dump.code) != before;
	return rc;
}

static void run(struct job *job)
{
	struct reading *r = (struct reading *)job;
	uint64_t start_ns = time_now_ns();

	r->news = false;
	r->rc = watch_begin(&job->watch);
	if (r->rc)
		return;
	if (r->fd < 0)
		r->rc = open_dump(r);
	watch_end(&job->watch, 0);
	if (!r->rc)
		r->rc = read_on(r);
	r->cost_ns = time_now_ns() - start_ns;
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
		{ -EPIPE, "its jitdump ended its reader: not read", NULL },
		{ -ETIME, "its jitdump ended its reader: not read", NULL },
		{ -ESTALE, "its jitdump was replaced", "restart the program" },
		{ -EACCES, "no permission to read its jitdump",
		  "run proftop as root or with cap_sys_ptrace" },
	};

	if (e->opened && jitcode_nr(e->r->dump.code))
		object_credit(object, "jitdump", jitcode_nr(e->r->dump.code));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].code == code)
			object_explain(object, words[i].reason, words[i].fix);
	}
	if (code || !e->opened)
		return;
	if (e->wanted && !e->r->dump.state.ended && e->r->dump.state.at < e->r->size)
		object_explain(object, "the end of its jitdump is not written yet",
			       "wait, or use a perf map (node: --perf-basic-prof)");
	else
		object_explain(object, e->wanted ? "code missing in its jitdump" : NULL, NULL);
}

/* Copy what the job needs to know of file @i into its list, if the process may own it. */
static void add_candidate(const struct jitdumps *j, struct reading *r, uint32_t i)
{
	const struct jitdumps_file *file = &j->files[i];
	const struct object *object = objects_at(j->objects, file->object);
	struct candidate *list, c = { .file = *file, .identity = object->identity };

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
	struct reading *r = e->r;

	free_candidates(r);
	e->nr_files = j->nr_files;
	if (j->nr_open >= JITDUMPS_OPEN_MAX)
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
static void take(struct jitdumps *j, struct jitdumps_entry *e)
{
	struct reading *r = e->r;
	bool opened = r->fd >= 0;
	size_t memory = opened ? jitcode_memory(r->dump.code) : 0;

	e->runs = false;
	e->looked = true;
	j->nr_open += opened;
	j->nr_open -= e->opened;
	e->opened = opened;
	if (opened)
		tell_layers(j, e);
	e->news |= r->news;
	atomic_fetch_add_explicit(&j->memory, memory - e->memory, memory_order_relaxed);
	e->memory = memory;
	e->due_ns = time_now_ns() + MAX(POLL_NS, r->cost_ns * COST_FACTOR);
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
	e->r->full = atomic_load_explicit(&j->memory, memory_order_relaxed) >= JITDUMPS_MEMORY_MAX;
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
	if (!e->runs && (j->no_proc || e->due_ns <= now_ns))
		start(j, e, now_ns);
	if (!e->runs || is_stopping(j))
		return;
	if (jitreads_ended(j->reads, &e->r->read))
		take(j, e);
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

static const struct jitcode_function *function_at(struct jitdumps *j, struct object *object,
						  uint64_t addr, struct jitdumps_entry **entry)
{
	struct jitdumps_entry *e = entry_of(j, object);

	*entry = e;
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
	struct jitdumps_entry *e;
	const struct jitcode_function *f = function_at(j, object, addr, &e);

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
	struct jitdumps_entry *e;
	const struct jitcode_function *f = function_at(j, object, addr, &e);
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
		    hash_name(jitcode_text(e->r->dump.code, f->name), f->name_size) == variant)
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

/* A job: read instructions of one function. */
struct code_reading {
	struct job job;
	int fd; /* owned */
	uint64_t at;
	uint8_t *bytes; /* owned */
	uint32_t want, got;
};

static void run_code(struct job *job)
{
	struct code_reading *c = (struct code_reading *)job;

	while (c->got < c->want) {
		ssize_t nr =
			pread(c->fd, c->bytes + c->got, c->want - c->got, (off_t)(c->at + c->got));

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0)
			break;
		c->got += (uint32_t)nr;
	}
}

static void drop_code(struct job *job)
{
	struct code_reading *c = (struct code_reading *)job;

	close(c->fd);
	free(c->bytes);
	free(c);
}

/* Read @want bytes of @f from the jitdump @fd. Return their number, or -errno. */
static int read_code(struct jitdumps *j, int fd, const struct jitcode_function *f, uint32_t want,
		     uint8_t **bytes)
{
	struct code_reading *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	c->job.run = run_code;
	c->job.drop = drop_code;
	c->fd = dup(fd);
	c->bytes = malloc(MAX(want, 1U));
	c->at = f->bytes_at;
	c->want = c->bytes ? want : 0;
	rc = helpers_call(j->reads->helpers, &c->job, time_now_ns() + CODE_WAIT_NS);
	if (rc)
		return rc;
	rc = c->bytes ? (int)c->got : -ENOMEM;
	*bytes = c->bytes;
	c->bytes = NULL;
	drop_code(&c->job);
	return rc;
}

/* Wait a little for the job of @e: a listing needs its result now. */
static void settle(struct jitdumps *j, struct jitdumps_entry *e)
{
	if (e && e->runs && j->reads->helpers &&
	    helpers_wait(j->reads->helpers, &e->r->read.job, time_now_ns() + CODE_WAIT_NS))
		look(j, e, time_now_ns());
}

int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine)
{
	struct jitdumps_entry *e = entry_at(j, jitdumps_base(j, object)->id);
	const struct jitcode_function *f;

	settle(j, e);
	f = is_readable(e) ? function_named(e, start, variant) : NULL;
	if (!f)
		return -ENOENT;
	*size = f->size;
	*machine = e->r->dump.state.machine;
	return read_code(j, e->r->fd, f, MIN(f->size, max), bytes);
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

		if (!e->opened && !e->runs && e->looked && e->nr_files == j->nr_files)
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /tmp/perf-PID.map: one parsed in the sandbox; all found, checked and read again.
 *
 * Runs on: a worker of the sandbox; find on the loader. A sweep over the starts of the entries,
 * with a heap of the open ones, cuts them into spans of one entry each.
 */
#include "symbols/jit/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"

/*
 * The text in which JIT compilers write the names of their code,
 * /tmp/perf-PID.map: "START SIZE name" a line, numbers in hex (Linux,
 * tools/perf/Documentation/jit-interface.txt).
 *
 * Hostile: the user of the process writes it. Of overlapping entries the later
 * one wins: code was compiled again, or its memory reused. A last line without a
 * newline is still being written and is ignored.
 *
 * Pure: bytes in, table out; immutable once made. Any thread.
 */

#define PERFMAP_SIZE_MAX    (64U << 20)
#define PERFMAP_NAME_MAX    512U /* bytes of one name; the rest is cut */
#define PERFMAP_ENTRIES_MAX (2U << 20)
#define OPEN_SIZE_MAX	    (1U << 20) /* of an entry without a size */

/* Bytes of a table: names, entries, and two spans for each entry. */
#define PERFMAP_FLAT_MAX (64U + PERFMAP_SIZE_MAX + PERFMAP_ENTRIES_MAX * 3U * 24U)

struct entry { /* in order of the text: a later one has a higher index */
	uint64_t start, end;
	uint32_t name; /* offset in names */
	uint32_t name_size;
};

struct perfmap_span { /* sorted; disjoint */
	uint64_t start, end;
	uint32_t entry, unused;
};

/* The table of a map in one piece: this, the entries, the spans, the names. */
struct flat {
	uint32_t nr_entries, nr_spans, nr_bad, unused;
	uint64_t names_size;
};

_Static_assert(sizeof(struct entry) == 24 && sizeof(struct perfmap_span) == 24 &&
		       sizeof(struct flat) == 24,
	       "see PERFMAP_FLAT_MAX");

struct perfmap {
	struct sandbox_answer flat; /* has entries, spans and names; empty: each has its memory */
	struct entry *entries;
	uint32_t nr_entries, max_entries;
	struct perfmap_span *spans;
	uint32_t nr_spans;
	char *names;
	size_t names_size;
	uint32_t nr_bad;
};

/*
 * Read a hex number, with or without 0x, and the blanks after it; NULL: none, or
 * more than 64 bits.
 */
static const char *read_hex(const char *p, const char *end, uint64_t *out)
{
	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	p = fields_hex(p, end, out);
	if (!p || p == end || !fields_is_blank(*p))
		return NULL;
	return fields_skip_blanks(p, end);
}

static int reserve(struct perfmap *map)
{
	if (map->nr_entries >= PERFMAP_ENTRIES_MAX)
		return -E2BIG;
	return array_reserve(&map->entries, &map->max_entries, map->nr_entries + 1ULL) ? 0
										       : -ENOMEM;
}

/* Parse the line [p, end). map->names has space: it is as large as all input. */
static int add_line(struct perfmap *map, const char *p, const char *end)
{
	struct entry e;
	uint64_t size;
	int rc;

	while (end > p && (end[-1] == '\r' || fields_is_blank(end[-1])))
		end--;
	p = read_hex(fields_skip_blanks(p, end), end, &e.start);
	p = p ? read_hex(p, end, &size) : NULL;
	if (!p || p == end || (!size && e.start > UINT64_MAX - OPEN_SIZE_MAX) ||
	    __builtin_add_overflow(e.start, size, &e.end)) {
		map->nr_bad++;
		return 0;
	}
	rc = reserve(map);
	if (rc)
		return rc;
	e.name = (uint32_t)map->names_size;
	e.name_size = (uint32_t)MIN((size_t)(end - p), (size_t)PERFMAP_NAME_MAX);
	memcpy(map->names + map->names_size, p, e.name_size);
	map->names_size += e.name_size;
	map->entries[map->nr_entries++] = e;
	return 0;
}

/* Parse all complete lines of @text. */
static int parse_lines(struct perfmap *map, const char *text, size_t size)
{
	const char *end = text + size;
	const char *eol;
	int rc = 0;

	for (const char *p = text; !rc && p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			break;
		if (eol > p)
			rc = add_line(map, p, eol);
	}
	/* A map that is too long still names the first part. */
	if (rc && rc != -E2BIG)
		return rc;
	return map->nr_entries ? 0 : -ENODATA;
}

/* State of the sweep. */
struct sweep {
	const struct entry *entries;
	uint32_t *order; /* entries by start */
	uint32_t nr;	 /* of them */
	uint32_t *heap;	 /* open entries; the latest on top */
	uint32_t nr_heap;
};

static int compare_starts(const void *a, const void *b, void *arg)
{
	const struct entry *entries = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (entries[i].start != entries[j].start)
		return entries[i].start < entries[j].start ? -1 : 1;
	return COMPARE(i, j);
}

static void heap_push(struct sweep *s, uint32_t entry)
{
	uint32_t i = s->nr_heap++;

	for (; i && s->heap[(i - 1) / 2] < entry; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = entry;
}

static void heap_pop(struct sweep *s)
{
	uint32_t last = s->heap[--s->nr_heap], i = 0, child;

	while ((child = 2 * i + 1) < s->nr_heap) {
		if (child + 1 < s->nr_heap && s->heap[child + 1] > s->heap[child])
			child++;
		if (s->heap[child] < last)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
}

/* Add [start, end) of @entry; extend the last span if it has the same entry. */
static void add_span(struct perfmap *map, uint64_t start, uint64_t end, uint32_t entry)
{
	struct perfmap_span *last = map->nr_spans ? &map->spans[map->nr_spans - 1] : NULL;

	if (last && last->entry == entry && last->end == start)
		last->end = end;
	else
		map->spans[map->nr_spans++] = (struct perfmap_span){ start, end, entry, 0 };
}

/*
 * End entries of size 0 at the next start, at the latest after OPEN_SIZE_MAX or at the end of the
 * last page; one inside another entry is only a label. Leave labels out of the order.
 */
static void end_open(struct perfmap *map, struct sweep *s)
{
	const uint32_t nr = map->nr_entries;
	uint64_t reach = 0;

	for (uint32_t i = 0, end = 0; i < nr;) {
		uint64_t start = map->entries[s->order[i]].start, next;

		for (; end < nr && map->entries[s->order[end]].start == start; end++)
			reach = MAX(reach, map->entries[s->order[end]].end);
		next = end < nr ? map->entries[s->order[end]].start : (start | 4095) + 1;
		for (; i < end; i++) {
			struct entry *e = &map->entries[s->order[i]];
			bool open = e->end == start;

			if (open)
				e->end = reach > start ? start + 1
						       : MIN(next, start + OPEN_SIZE_MAX);
			if (!open || reach <= start)
				s->order[s->nr++] = s->order[i];
		}
	}
}

/* Each start and each end begins at most one span, so twice the entries are enough. */
static void run_sweep(struct perfmap *map, struct sweep *s)
{
	const struct entry *entries = map->entries;
	uint32_t next = 0;
	uint64_t at = 0, to;

	for (;;) {
		while (s->nr_heap && entries[s->heap[0]].end <= at)
			heap_pop(s);
		if (!s->nr_heap) {
			if (next == s->nr)
				return;
			at = entries[s->order[next]].start;
		} else {
			to = entries[s->heap[0]].end;
			if (next < s->nr)
				to = MIN(to, entries[s->order[next]].start);
			add_span(map, at, to, s->heap[0]);
			at = to;
		}
		while (next < s->nr && entries[s->order[next]].start <= at)
			heap_push(s, s->order[next++]);
	}
}

/* Cut the entries into spans. */
static int make_spans(struct perfmap *map)
{
	struct sweep s = { .entries = map->entries };
	struct perfmap_span *fit;
	int rc = -ENOMEM;

	s.order = calloc(map->nr_entries, sizeof(*s.order));
	s.heap = calloc(map->nr_entries, sizeof(*s.heap));
	map->spans = calloc(map->nr_entries * 2ULL, sizeof(*map->spans));
	if (s.order && s.heap && map->spans) {
		for (uint32_t i = 0; i < map->nr_entries; i++)
			s.order[i] = i;
		qsort_r(s.order, map->nr_entries, sizeof(*s.order), compare_starts, map->entries);
		end_open(map, &s);
		run_sweep(map, &s);
		fit = reallocarray(map->spans, map->nr_spans, sizeof(*fit));
		map->spans = fit ? fit : map->spans;
		rc = 0;
	}
	free(s.order);
	free(s.heap);
	return rc;
}

/* Free the memory that parsing did not use. */
static void shrink(struct perfmap *map)
{
	void *entries = reallocarray(map->entries, map->nr_entries, sizeof(*map->entries));
	char *names = realloc(map->names, MAX(map->names_size, 1UL));

	map->entries = entries ? entries : map->entries;
	map->names = names ? names : map->names;
	map->max_entries = map->nr_entries;
}

/* Parse a map. 0, -ENODATA (no entry), -E2BIG, -ENOMEM. */
static void perfmap_free(struct perfmap *map)
{
	if (!map)
		return;
	if (!map->flat.bytes) {
		free(map->entries);
		free(map->spans);
		free(map->names);
	}
	sandbox_answer_free(&map->flat);
	free(map);
}

/* Parse a map. 0, -ENODATA (no entry), -E2BIG, -ENOMEM. */
static int perfmap_parse(struct perfmap **out, const char *text, size_t size)
{
	struct perfmap *map;
	int rc = -ENOMEM;

	assert(text || !size);
	if (size > PERFMAP_SIZE_MAX)
		return -E2BIG;
	map = calloc(1, sizeof(*map));
	if (map)
		map->names = malloc(size + 1);
	if (map && map->names)
		rc = parse_lines(map, text, size);
	if (!rc)
		rc = make_spans(map);
	if (rc) {
		perfmap_free(map);
		return rc;
	}
	shrink(map);
	*out = map;
	return 0;
}

/* Append the table of @map to @reply. */
static void perfmap_put(const struct perfmap *map, struct sandbox_reply *reply)
{
	const struct flat flat = {
		.nr_entries = map->nr_entries,
		.nr_spans = map->nr_spans,
		.nr_bad = map->nr_bad,
		.names_size = map->names_size,
	};

	sandbox_put(reply, &flat, sizeof(flat));
	sandbox_put(reply, map->entries, map->nr_entries * sizeof(*map->entries));
	sandbox_put(reply, map->spans, map->nr_spans * sizeof(*map->spans));
	sandbox_put(reply, map->names, map->names_size);
}

/* Test the entries and spans of a foreign table. */
static bool is_valid(const struct perfmap *map)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < map->nr_entries; i++) {
		const struct entry *e = &map->entries[i];

		if (e->start >= e->end || e->name_size > PERFMAP_NAME_MAX ||
		    e->name > map->names_size || e->name_size > map->names_size - e->name)
			return false;
	}
	for (uint32_t i = 0; i < map->nr_spans; i++) {
		const struct perfmap_span *s = &map->spans[i];

		if (s->start < last || s->start >= s->end || s->entry >= map->nr_entries ||
		    s->start < map->entries[s->entry].start || s->end > map->entries[s->entry].end)
			return false;
		last = s->end;
	}
	return true;
}

/*
 * Make a map of the table in @answer, which is foreign: every offset and the order are checked.
 * 0: the map owns its bytes; -EBADMSG, -ENOMEM.
 */
static int perfmap_adopt(struct perfmap **out, const struct sandbox_answer *answer)
{
	uint8_t *bytes = answer->bytes;
	size_t size = answer->size;
	struct perfmap *map;
	struct flat flat;
	uint64_t tables;

	if (size < sizeof(flat))
		return -EBADMSG;
	memcpy(&flat, bytes, sizeof(flat));
	tables = sizeof(flat) + (uint64_t)flat.nr_entries * sizeof(struct entry) +
		 (uint64_t)flat.nr_spans * sizeof(struct perfmap_span);
	if (flat.names_size > PERFMAP_SIZE_MAX || tables > size || flat.names_size != size - tables)
		return -EBADMSG;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->nr_entries = map->max_entries = flat.nr_entries;
	map->nr_spans = flat.nr_spans;
	map->nr_bad = flat.nr_bad;
	map->names_size = flat.names_size;
	map->entries = (struct entry *)(void *)(bytes + sizeof(flat));
	map->spans = (struct perfmap_span *)(void *)(map->entries + map->nr_entries);
	map->names = (char *)(map->spans + map->nr_spans);
	if (!is_valid(map)) {
		free(map);
		return -EBADMSG;
	}
	map->flat = *answer;
	*out = map;
	return 0;
}

/* Find the entry with @addr; false when there is none. */
static bool perfmap_find(const struct perfmap *map, uint64_t addr, struct perfmap_symbol *out)
{
	const struct entry *e;
	uint32_t lo = search_split(map->nr_spans, i, map->spans[i].start <= addr);

	if (!lo || addr >= map->spans[lo - 1].end)
		return false;
	e = &map->entries[map->spans[lo - 1].entry];
	*out = (struct perfmap_symbol){
		.start = e->start,
		.size = e->end - e->start,
		.name = map->names + e->name,
		.name_size = e->name_size,
	};
	return true;
}

static uint32_t perfmap_nr(const struct perfmap *map)
{
	return map->nr_entries;
}

static size_t perfmap_memory(const struct perfmap *map)
{
	return sizeof(*map) + map->max_entries * sizeof(*map->entries) +
	       map->nr_spans * sizeof(*map->spans) + map->names_size;
}

/*
 * The text of a perf map to a worker, its table back.
 *
 * Runs on: a helper; serve() in the worker.
 */

#define TIMEOUT_NS 15000000000ULL /* 64 MiB of text on a busy machine */
#define MEMORY	   (1536ULL << 20)

/*
 * Perf maps in the sandbox: a worker parses the text, its table is checked here.
 *
 * Any thread that may wait: one call runs at a time.
 */

/* As perfmap_parse() for the first @size bytes of @fd; also the errors of sandbox_call(). */
static int perfmap_sandbox_parse(struct perfmap **out, int fd, size_t size)
{
	const int fds[SANDBOX_FDS_MAX] = { fd, -1 };
	uint64_t request = size;
	struct sandbox_answer a;
	int rc = sandbox_call(&perfmap_reader, &request, sizeof(request), fds, 0, TIMEOUT_NS, &a);

	assert(fd >= 0);
	if (rc)
		return rc;
	rc = perfmap_adopt(out, &a);
	if (rc)
		sandbox_answer_free(&a);
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct perfmap *map;
	uint64_t size;
	void *text = NULL;
	int rc;

	if (c->size != sizeof(size) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&size, c->request, sizeof(size));
	if (size > PERFMAP_SIZE_MAX)
		return -E2BIG;
	if (size) /* a copy: it cannot become shorter */
		text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, c->fds[0], 0);
	if (text == MAP_FAILED)
		return -ENOMEM;
	rc = perfmap_parse(&map, text, size);
	if (size)
		munmap(text, size);
	if (rc)
		return rc;
	perfmap_put(map, &c->reply);
	perfmap_free(map);
	return 0;
}

const struct sandbox_reader perfmap_reader = {
	.kind = SANDBOX_PERFMAP,
	.name = "proftop-perfmap",
	.serve = serve,
	.memory_max = MEMORY,
	.reply_max = PERFMAP_FLAT_MAX,
	.map_reply = true,
};

/*
 * Find, trust, read and re-read the perf maps of processes.
 *
 * Runs on: the loader; the files are read by helpers.
 */

#define INTERVAL_MIN_NS 1000000000ULL
#define INTERVAL_MAX_NS (8 * INTERVAL_MIN_NS)
#define COST_FACTOR	20ULL	     /* reading takes at most 1/20 of the time */
#define STALE_NS	2000000000LL /* possible difference of the clocks of files and processes */
#define NOT_IN_MAP	"code missing in its perf map"
#define SANDBOX_BARRED	"its perf map ended its reader: not read"

/* Version of a file that was read. */
struct stamp {
	uint64_t ino, size;
	int64_t mtime_ns;
	uint32_t maj, min;
};

/* A job: one look at the map of one process. It uses nothing but this. */
struct perfmaps_reading {
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
	struct perfmap *map;		  /* NULL: none yet */
	struct perfmaps_reading *reading; /* NULL: none runs */
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
	/* Pairs with the release in symbols_stop(). */
	return atomic_load_explicit(p->stop, memory_order_acquire);
}

static int open_map(struct perfmaps_reading *r, const struct code_owner *o,
		    struct untrusted_file *out)
{
	char path[64];
	struct untrusted_want want = {
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
	rc = untrusted_open(&want, out, NULL);
	watch_end(&r->read.job.watch, 0);
	return rc;
}

/* Copy the whole file and have it parsed. */
static int read_map(struct perfmaps_reading *r, const struct untrusted_file *file)
{
	size_t size;
	int fd = jitcopy(file->fd, 0, file->size, &r->read.job.watch, &size), rc;

	if (fd < 0)
		return fd;
	rc = perfmap_sandbox_parse(&r->map, fd, size);
	close(fd);
	return rc;
}

/* Read the map of process @o if it is a new version (else -EALREADY). */
static int load_from(struct perfmaps_reading *r, const struct code_owner *o)
{
	struct untrusted_file file;
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
static int load(struct perfmaps_reading *r)
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
	struct perfmaps_reading *r = (struct perfmaps_reading *)job;
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
	struct perfmaps_reading *r = (struct perfmaps_reading *)job;

	perfmap_free(r->map);
	free(r->root);
	free(r);
}

/* Make the job for @e; NULL: out of memory. */
static struct perfmaps_reading *new_reading(const struct perfmaps *p, struct perfmaps_entry *e)
{
	struct perfmaps_reading *r = calloc(1, sizeof(*r));
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
static int replace(struct perfmaps *p, struct perfmaps_entry *e, struct perfmaps_reading *r)
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
		{ -ENODATA, "its perf map has no entry yet", JIT_LAST_BLOCK },
		{ -ENOSPC, "perf maps take too much memory", "profile fewer processes" },
		{ -EPIPE, SANDBOX_BARRED, NULL },
		{ -ETIME, SANDBOX_BARRED, NULL },
		{ -EBADMSG, SANDBOX_BARRED, NULL },
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
	struct perfmaps_reading *r = e->reading;
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

	assert(i < p->nr_entries);
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

		if (e->reading || !jitreads_expired(&e->end, e->pid, now_ns, JITREADS_KEEP_NS)) {
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

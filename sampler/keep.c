// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The history on disk: segments written by --keep with the rights of the user, the folder, read by
 * --open.
 *
 * Threads: the builder packs, a thread with the rights of the invoking user writes. A segment has
 * the ids of the tables; other tables or events begin another segment.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"

/*
 * The segments of --keep: slices with the stacks, functions and tasks that they refer to. A segment
 * is a header and records, each with its size and a checksum, only ever appended to: one that was
 * cut short is read as far as it goes. A later record with the same id replaces the one
 * before. Reading treats all bytes as hostile.
 *
 * Pure; any thread.
 */

#define KEEPFILE_DEPTH_MAX 4096 /* functions of a stack */

/* Bytes that grow. Zero-initialised is empty. */
struct keepfile_out {
	uint8_t *bytes;
	size_t size, capacity;
	size_t begin; /* of the record that is written */
	bool failed;  /* no memory: the bytes are incomplete */
};

struct keepfile_text {
	const char *str;
	size_t size;
};

/* One event of the slices that follow. */
struct keepfile_event {
	struct keepfile_text name;
	double hz;
	bool clock;
};

struct keepfile_function {
	uint32_t id;
	char kind; /* of the profile: u k j v ? ... */
	bool inlined, made_up;
	struct keepfile_text name, module;
};

struct keepfile_task {
	uint32_t id;
	uint32_t pid, tid;
	struct keepfile_text comm, process_comm;
	uint32_t uid; /* UINT32_MAX: unknown */
};

/* Called for each record of a segment; texts and arrays are borrowed. */
struct keepfile_reader {
	void (*events)(void *ctx, const struct keepfile_event *events, uint32_t nr);
	void (*function)(void *ctx, const struct keepfile_function *f);
	void (*stack)(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr);
	void (*interpreter)(void *ctx, struct keepfile_text module);
	void (*task)(void *ctx, const struct keepfile_task *t);
	/* Its bytes were checked: the counts are in order, and their number is @slice->nr. */
	void (*slice)(void *ctx, const struct slice *slice);
	void *ctx;
	/* Called before each record: true ends the reading. NULL: it is read to the end. */
	bool (*stopped)(void *ctx);
};

#define KEEPFILE_RECORD_MAX ((size_t)1 << 20) /* bytes of one record */
#define KEEPFILE_TEXT_MAX   4096
#define HEAD		    9 /* of a record: size, checksum, type */
#define VARINT_MAX	    10
#define COUNTS_MAX	    (1u << 20)

static const char magic[16] = "proftop keep 1\n";

enum { EVENTS = 1, FUNCTION, STACK, TASK, SLICE, INTERPRETER };

/* CRC-32 (polynomial 0xedb88320), four bits at a time. */
static uint32_t checksum(const uint8_t *bytes, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

static void put32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* ---- writing ---- */

static void keepfile_fini(struct keepfile_out *out)
{
	free(out->bytes);
	*out = (struct keepfile_out){ .bytes = NULL };
}

static void put_bytes(struct keepfile_out *out, const void *bytes, size_t size)
{
	if (out->size + size > out->capacity) {
		size_t capacity = 2 * out->capacity + size + 4096;
		uint8_t *larger = out->failed ? NULL : realloc(out->bytes, capacity);

		out->failed |= !larger;
		if (!larger)
			return;
		out->bytes = larger;
		out->capacity = capacity;
	}
	if (size)
		memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

static void put(struct keepfile_out *out, uint64_t v)
{
	uint8_t buf[VARINT_MAX];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		buf[n++] = (uint8_t)(v | 0x80);
	buf[n++] = (uint8_t)v;
	put_bytes(out, buf, n);
}

static void put_text(struct keepfile_out *out, struct keepfile_text text)
{
	size_t size = MIN(text.size, (size_t)KEEPFILE_TEXT_MAX);

	put(out, size);
	put_bytes(out, text.str, size);
}

static void begin(struct keepfile_out *out, uint8_t type)
{
	uint8_t head[HEAD] = { [HEAD - 1] = type };

	out->begin = out->size;
	put_bytes(out, head, sizeof(head));
}

/* Complete the head of a record; one that is too large is left out. Return whether it is there. */
static bool end(struct keepfile_out *out)
{
	size_t size = out->size - out->begin - HEAD;

	if (out->failed)
		return false;
	if (size > KEEPFILE_RECORD_MAX) {
		out->size = out->begin;
		return false;
	}
	put32(out->bytes + out->begin, (uint32_t)size);
	put32(out->bytes + out->begin + 4, checksum(out->bytes + out->begin + 8, size + 1));
	return true;
}

static void keepfile_header(struct keepfile_out *out)
{
	put_bytes(out, magic, sizeof(magic));
}

static void keepfile_put_events(struct keepfile_out *out, const struct keepfile_event *events,
				uint32_t nr)
{
	assert(events || !nr);
	begin(out, EVENTS);
	put(out, nr);
	for (uint32_t i = 0; i < nr; i++) {
		put_text(out, events[i].name);
		put(out, (uint64_t)(events[i].hz * 1000 + 0.5));
		put(out, events[i].clock);
	}
	end(out);
}

static void keepfile_put_function(struct keepfile_out *out, const struct keepfile_function *f)
{
	begin(out, FUNCTION);
	put(out, f->id);
	put(out, (uint8_t)f->kind);
	put(out, (f->inlined ? 1u : 0u) | (f->made_up ? 2u : 0u));
	put_text(out, f->name);
	put_text(out, f->module);
	end(out);
}

/* The functions of @module are of an interpreter. */
static void keepfile_put_interpreter(struct keepfile_out *out, struct keepfile_text module)
{
	begin(out, INTERPRETER);
	put_text(out, module);
	end(out);
}

static void keepfile_put_stack(struct keepfile_out *out, uint32_t id, const uint32_t *functions,
			       uint32_t nr)
{
	assert(functions || !nr);
	nr = MIN(nr, (uint32_t)KEEPFILE_DEPTH_MAX);
	begin(out, STACK);
	put(out, id);
	put(out, nr);
	for (uint32_t i = 0; i < nr; i++)
		put(out, functions[i]);
	end(out);
}

static void keepfile_put_task(struct keepfile_out *out, const struct keepfile_task *t)
{
	begin(out, TASK);
	put(out, t->id);
	put(out, t->pid);
	put(out, t->tid);
	put_text(out, t->comm);
	put_text(out, t->process_comm);
	put(out, t->uid + 1); /* 0: unknown */
	end(out);
}

/* @slice: times are CLOCK_REALTIME. False: it is too large for a record, and left out. */
static bool keepfile_put_slice(struct keepfile_out *out, const struct slice *slice)
{
	assert(slice->begin_ns <= slice->end_ns);
	begin(out, SLICE);
	put(out, slice->begin_ns);
	put(out, slice->end_ns - slice->begin_ns);
	put(out, slice->lost);
	put(out, slice->throttled);
	put(out, slice->marks);
	put_bytes(out, slice->bytes, slice->size);
	return end(out);
}

/* ---- reading ---- */

/* The payload of one record. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; c->at < c->end && shift < 64; shift += 7) {
		v |= (uint64_t)(*c->at & 0x7f) << shift;
		if (!(*c->at++ & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static uint64_t get_max(struct cursor *c, uint64_t max)
{
	uint64_t v = get(c);

	c->bad |= v > max;
	return c->bad ? 0 : v;
}

static struct keepfile_text get_text(struct cursor *c)
{
	size_t size = get_max(c, KEEPFILE_TEXT_MAX);
	struct keepfile_text text = { (const char *)c->at, size };

	if (c->bad || size > (size_t)(c->end - c->at)) {
		c->bad = true;
		return (struct keepfile_text){ "", 0 };
	}
	c->at += size;
	return text;
}

static bool is_whole(const struct cursor *c)
{
	return !c->bad && c->at == c->end;
}

static bool read_events(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_event events[EVENTS_MAX];
	uint32_t nr = (uint32_t)get_max(c, EVENTS_MAX);

	for (uint32_t i = 0; i < nr; i++) {
		events[i].name = get_text(c);
		events[i].hz = (double)get_max(c, 1000000000000) / 1000;
		events[i].clock = get_max(c, 1);
	}
	if (!is_whole(c) || !nr)
		return false;
	r->events(r->ctx, events, nr);
	return true;
}

static bool read_function(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_function f = { .id = (uint32_t)get_max(c, UINT32_MAX) };
	uint64_t flags;

	f.kind = (char)get_max(c, 126);
	flags = get_max(c, 3);
	f.inlined = flags & 1;
	f.made_up = flags & 2;
	f.name = get_text(c);
	f.module = get_text(c);
	if (!is_whole(c) || f.kind < 32)
		return false;
	r->function(r->ctx, &f);
	return true;
}

static bool read_interpreter(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_text module = get_text(c);

	if (!is_whole(c))
		return false;
	r->interpreter(r->ctx, module);
	return true;
}

static bool read_stack(struct cursor *c, const struct keepfile_reader *r)
{
	uint32_t functions[KEEPFILE_DEPTH_MAX];
	uint32_t id = (uint32_t)get_max(c, STACK_NONE - 1);
	uint32_t nr = (uint32_t)get_max(c, KEEPFILE_DEPTH_MAX);

	for (uint32_t i = 0; i < nr && !c->bad; i++)
		functions[i] = (uint32_t)get_max(c, UINT32_MAX);
	if (!is_whole(c))
		return false;
	r->stack(r->ctx, id, functions, nr);
	return true;
}

static bool read_task(struct cursor *c, const struct keepfile_reader *r)
{
	struct keepfile_task t = { .id = (uint32_t)get_max(c, COUNTS_TASKS_MAX - 1) };

	t.pid = (uint32_t)get_max(c, INT32_MAX);
	t.tid = (uint32_t)get_max(c, INT32_MAX);
	t.comm = get_text(c);
	t.process_comm = get_text(c);
	/* Older files have no users. */
	t.uid = c->at < c->end ? (uint32_t)(get_max(c, UINT32_MAX) - 1) : UINT32_MAX;
	if (!is_whole(c))
		return false;
	r->task(r->ctx, &t);
	return true;
}

static bool read_slice(struct cursor *c, const struct keepfile_reader *r)
{
	struct slice s = { .begin_ns = get_max(c, UINT64_MAX / 4) };
	int64_t nr;

	s.end_ns = s.begin_ns + get_max(c, UINT64_MAX / 4);
	s.lost = get_max(c, SLICE_COUNT_MAX);
	s.throttled = get_max(c, SLICE_COUNT_MAX);
	s.marks = (uint16_t)get_max(c, UINT16_MAX);
	s.size = (uint32_t)(c->end - c->at);
	s.bytes = (uint8_t *)(uintptr_t)c->at;
	nr = c->bad ? -EINVAL : slice_check(s.bytes, s.size, COUNTS_MAX, &s.count);
	if (nr < 0 || s.end_ns <= s.begin_ns)
		return false;
	s.nr = (uint32_t)nr;
	r->slice(r->ctx, &s);
	return true;
}

static bool read_record(uint8_t type, struct cursor *c, const struct keepfile_reader *r)
{
	switch (type) {
	case EVENTS:
		return read_events(c, r);
	case FUNCTION:
		return read_function(c, r);
	case INTERPRETER:
		return read_interpreter(c, r);
	case STACK:
		return read_stack(c, r);
	case TASK:
		return read_task(c, r);
	case SLICE:
		return read_slice(c, r);
	default:
		return false;
	}
}

/*
 * Read a segment up to its end, the first damaged record, or where @reader stops. Return the bytes
 * that were read; -EINVAL: it is no segment.
 */
static int64_t keepfile_read(const uint8_t *bytes, size_t size,
			     const struct keepfile_reader *reader)
{
	size_t at = sizeof(magic);

	if (size < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)))
		return -EINVAL;
	while (size - at >= HEAD && !(reader->stopped && reader->stopped(reader->ctx))) {
		uint32_t length = get32(bytes + at);
		struct cursor c = { bytes + at + HEAD, NULL, false };

		if (length > KEEPFILE_RECORD_MAX || length > size - at - HEAD ||
		    get32(bytes + at + 4) != checksum(bytes + at + 8, length + 1ULL))
			break;
		c.end = c.at + length;
		if (!read_record(bytes[at + 8], &c, reader))
			break;
		at += HEAD + length;
	}
	return (int64_t)at;
}

/* ---- the folder of kept files ---- */

/*
 * The segments in the folder of --keep.
 */

#define KEEP_SEGMENT_MAX ((uint64_t)1 << 30) /* bytes of one segment that are read */
#define KEEP_NUMBER_MAX	 0xfff00000u	     /* with room for one session */
#define LOCK		 "lock"

/* Open a folder. 0 or -errno with a sentence. */
static int keep_dir_open(int *fd, const char *path, struct err *e)
{
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return err_set(e, -errno,
			       "cannot open %.300s: %s\n"
			       "  --keep and --open take a folder: create it first",
			       path, strerror(errno));
	return 0;
}

/*
 * The folder of --keep: its segments, in order of their numbers. Other files in it are left alone.
 *
 * One thread at a time: the builder, or that of the replay.
 */

#define KEEP_DIR_NAME	  24
#define KEEP_SEGMENTS_MAX 65536

/* Return whether no other user can open the file: to lock it, it is enough to read it. */
static bool is_private(int dir, int fd)
{
	struct stat st, folder;

	return !fstat(fd, &st) && !fstat(dir, &folder) && S_ISREG(st.st_mode) &&
	       !(st.st_mode & 077) && (st.st_uid == invoker_uid() || st.st_uid == folder.st_uid);
}

/*
 * Lock the folder @dir, of @path, for one session, until @lock is closed: by a file that no other
 * user can open. The folder itself could be locked by any user that may read it. 0 or -errno with a
 * sentence.
 */
static int keep_dir_lock(int *lock, int dir, const char *path, struct err *e)
{
	*lock = openat(dir, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		       0600);
	if (*lock < 0)
		return err_set(e, -errno,
			       "cannot open %.300s/" LOCK ": %s\n"
			       "  --keep takes a folder in which you may create files",
			       path, strerror(errno));
	if (!is_private(dir, *lock))
		err_set(e, -EBUSY,
			"%.300s/" LOCK ": another user can open it\n"
			"  remove it, or give another folder",
			path);
	else if (!flock(*lock, LOCK_EX | LOCK_NB))
		return 0;
	else
		err_set(e, -EBUSY,
			"%.300s: another proftop keeps its samples there\n"
			"  give another folder",
			path);
	close(*lock);
	*lock = -1;
	return -EBUSY;
}

static void keep_dir_name(char name[static KEEP_DIR_NAME], uint32_t number)
{
	snprintf(name, KEEP_DIR_NAME, "%08x.keep", number);
}

/* Return the number of a segment by its name; 0: it is another file. */
static uint32_t number_of(const char *name)
{
	char again[KEEP_DIR_NAME];
	uint32_t number = (uint32_t)strtoul(name, NULL, 16);

	keep_dir_name(again, number);
	return strcmp(name, again) ? 0 : number;
}

static int ascending(const void *a, const void *b)
{
	return COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

/*
 * List the numbers of all segments in order; malloc'ed. Return how many there are, or -errno with a
 * sentence: also for more than KEEP_SEGMENTS_MAX.
 */
static int keep_dir_list(int fd, uint32_t **numbers, struct err *e)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), nr = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	*numbers = NULL;
	if (!dir) {
		nr = err_set(e, -errno, "cannot read the folder: %s", strerror(errno));
		if (copy >= 0)
			close(copy);
		return nr;
	}
	while (nr <= KEEP_SEGMENTS_MAX && (entry = readdir(dir))) {
		uint32_t number = number_of(entry->d_name);

		if (!number)
			continue;
		*numbers = xrealloc_array(*numbers, (size_t)nr + 1, sizeof(**numbers));
		(*numbers)[nr++] = number;
	}
	closedir(dir);
	if (nr > KEEP_SEGMENTS_MAX) {
		free(*numbers);
		*numbers = NULL;
		return err_set(e, -E2BIG, "the folder has more than %d files named *.keep",
			       KEEP_SEGMENTS_MAX);
	}
	if (nr)
		qsort(*numbers, (size_t)nr, sizeof(**numbers), ascending);
	return nr;
}

/* Get the highest number; 0: none. -EOVERFLOW with a sentence: no session can follow. */
static int keep_dir_last(int fd, uint32_t *last, struct err *e)
{
	uint32_t *numbers;
	int nr = keep_dir_list(fd, &numbers, e);

	*last = nr > 0 ? numbers[nr - 1] : 0;
	free(numbers);
	if (nr < 0)
		return nr;
	if (*last >= KEEP_NUMBER_MAX)
		return err_set(e, -EOVERFLOW, "%08x.keep: there are no higher numbers", *last);
	return 0;
}

/*
 * Remove the oldest segments until the rest has @size bytes, and all older than @time_ns. 0, or
 * -errno with a sentence: one is still there.
 */
static int keep_dir_shrink(int fd, uint64_t size, uint64_t time_ns, struct err *e)
{
	uint32_t *numbers;
	int nr = keep_dir_list(fd, &numbers, e), code = MIN(nr, 0);
	time_t oldest = time(NULL) - (time_t)(time_ns / 1000000000);
	uint64_t used = 0;
	char name[KEEP_DIR_NAME];
	struct stat st;

	/* From the newest on: the rest is too much. */
	for (int i = nr; i-- > 0;) {
		keep_dir_name(name, numbers[i]);
		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		used += (uint64_t)st.st_size;
		if ((used > size || st.st_mtime < oldest) && unlinkat(fd, name, 0) &&
		    errno != ENOENT)
			code = err_set(e, -errno, "cannot remove %s: %s", name, strerror(errno));
	}
	free(numbers);
	return code;
}

#define SEGMENTS     16			/* of the size */
#define QUEUED_MAX   ((size_t)64 << 20) /* bytes that wait for a slow disk */
#define UNNAMED_MAX  4096
#define NUMBER_TRIES 4

/* Bits by id: written to the segment. */
struct bits {
	uint8_t *list;
	uint32_t nr;
};

struct keep {
	struct keep_config config;
	int dir, lock_fd;

	/* The builder's. */
	struct keepfile_out out;
	uint64_t segment_bytes, segment_begin_ns, last_ns;
	uint32_t stacks; /* serial of the table that the ids of the segment are of */
	struct event events[EVENTS_MAX];
	double hz[EVENTS_MAX]; /* as last written */
	uint32_t nr_events;
	struct bits tasks, wrote, functions, places, interpreters;
	uint32_t unnamed[UNNAMED_MAX]; /* stacks with a place without a name yet */
	uint32_t nr_unnamed;
	uint64_t missing; /* samples */
	bool failed;	  /* reported */

	pthread_t thread;
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	struct keepfile_out queued;
	bool rotate, stop;
	int error;
	struct err why; /* if @error */

	/* The thread's. */
	int segment;
	uint32_t number;
};

/* Test and set a bit. Without memory: set already. */
static bool was_set(struct bits *b, uint32_t id)
{
	uint32_t byte = id / 8;

	if (byte >= b->nr) {
		uint32_t nr = byte + byte / 2 + 64;
		uint8_t *larger = realloc(b->list, nr);

		if (!larger)
			return true;
		memset(larger + b->nr, 0, nr - b->nr);
		b->list = larger;
		b->nr = nr;
	}
	if (b->list[byte] & 1u << id % 8)
		return true;
	b->list[byte] |= (uint8_t)(1u << id % 8);
	return false;
}

static void clear_bits(struct bits *b)
{
	free(b->list);
	*b = (struct bits){ .list = NULL };
}

/* ---- packing ---- */

static struct keepfile_text text_of(struct safe_text t)
{
	return (struct keepfile_text){ t.str, t.size };
}

static void put_symbol(struct keep *k, const struct symbols *symbols, uint32_t id)
{
	const struct symbol *s = symbols_at(symbols, id);

	if (s && !was_set(&k->functions, id))
		keepfile_put_function(&k->out,
				      &(struct keepfile_function){ .id = id,
								   .kind = s->kind,
								   .inlined = s->inlined,
								   .made_up = s->made_up,
								   .name = text_of(s->name),
								   .module = text_of(s->module) });
}

/* Add the frame of a wait: the name of the place, which is less of its kind, is not enough. */
static void put_wait(struct keep *k, uint32_t id, const struct place *place)
{
	const char *name = wait_kind_name((enum wait_kind)place->offset);

	if (!was_set(&k->functions, id))
		keepfile_put_function(&k->out,
				      &(struct keepfile_function){ .id = id,
								   .kind = 'w',
								   .name = { name, strlen(name) },
								   .module = { "[wait]", 6 } });
}

/* Add a place without a name as a function: "libfoo.so+0x1234". */
static void put_place(struct keep *k, const struct assemble_input *in, uint32_t id,
		      const struct place *place)
{
	const struct object *object = objects_at(in->objects, place ? place->object : 0);
	struct keepfile_text module = object ? text_of(object->name)
					     : (struct keepfile_text){ "?", 1 };
	char name[64];
	int size;

	if (was_set(&k->places, id))
		return;
	size = snprintf(name, sizeof(name), "%.30s+0x%llx", module.str,
			place ? (unsigned long long)place->offset : 0ULL);
	keepfile_put_function(&k->out, &(struct keepfile_function){ .id = ASSEMBLE_PLACE | id,
								    .kind = '?',
								    .made_up = true,
								    .name = { name, (size_t)size },
								    .module = module });
}

/* Note the object of an interpreter, which may be described after its functions were written. */
static void put_interpreter(struct keep *k, const struct assemble_input *in,
			    const struct place *place)
{
	const struct object *object = place ? objects_at(in->objects, place->object) : NULL;

	if (object && atomic_load_explicit(&object->interpreter, memory_order_relaxed) &&
	    !was_set(&k->interpreters, object->id))
		keepfile_put_interpreter(&k->out, text_of(object->name));
}

/* Add the functions at a place to @list, innermost first. False: it has no name yet. */
static bool add_functions(struct keep *k, const struct assemble_input *in, uint32_t id,
			  uint32_t *list, uint32_t *nr)
{
	const struct place *place = places_at(in->places, id);
	const struct symbol_frame *frames;
	uint32_t symbol = SYMBOL_NONE, nr_frames = 0;

	put_interpreter(k, in, place);
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	if (place)
		symbol = atomic_load_explicit(&place->symbol, memory_order_acquire);
	if (symbol == SYMBOL_NONE) {
		put_place(k, in, id, place);
		if (*nr < KEEPFILE_DEPTH_MAX)
			list[(*nr)++] = ASSEMBLE_PLACE | id;
		return false;
	}
	if (place->object == in->wait)
		put_wait(k, symbol, place);
	frames = symbols_source(in->symbols, id, &nr_frames);
	for (uint32_t i = symbol_frames_begin(frames, nr_frames, *nr ? list[*nr - 1] : SYMBOL_NONE);
	     i < nr_frames && *nr < KEEPFILE_DEPTH_MAX; i++) {
		uint32_t inlined = frames[i].symbol;

		if (inlined == SYMBOL_NONE)
			continue;
		put_symbol(k, in->symbols, inlined);
		list[(*nr)++] = inlined;
	}
	put_symbol(k, in->symbols, symbol);
	if (*nr < KEEPFILE_DEPTH_MAX)
		list[(*nr)++] = symbol;
	return true;
}

/* Add a stack. False: some of its places have no name yet. */
static bool put_stack(struct keep *k, const struct assemble_input *in, uint32_t id)
{
	uint32_t list[KEEPFILE_DEPTH_MAX], nr = 0, nr_places = 0;
	struct stacks_room room;
	const uint32_t *places = stacks_at(in->stacks, id, &room, &nr_places);
	bool named = true;

	for (uint32_t i = 0; places && i < nr_places; i++)
		named &= add_functions(k, in, places[i], list, &nr);
	keepfile_put_stack(&k->out, id, list, nr);
	return named;
}

static void put_task(struct keep *k, const struct assemble_input *in, uint32_t id)
{
	const struct task *t = maps_task(in->maps, id);

	if (t && t->pid >= 0 && t->tid >= 0)
		keepfile_put_task(&k->out,
				  &(struct keepfile_task){
					  id, (uint32_t)t->pid, (uint32_t)t->tid, text_of(t->comm),
					  text_of(t->process_comm), (uint32_t)t->uid });
}

/* Add a slice, and everything that it is the first to refer to. */
static void put_slice(struct keep *k, const struct keep_input *in, const struct slice *slice)
{
	struct slice real = *slice;
	struct slice_reader r;
	struct count c;

	for (slice_read_begin(&r, slice); slice_read(&r, &c);) {
		if (!was_set(&k->tasks, c.task))
			put_task(k, in->tables, c.task);
		if (c.stack == STACK_NONE || was_set(&k->wrote, c.stack))
			continue;
		if (!put_stack(k, in->tables, c.stack) && k->nr_unnamed < UNNAMED_MAX)
			k->unnamed[k->nr_unnamed++] = c.stack;
	}
	real.begin_ns += in->real_ns;
	real.end_ns += in->real_ns;
	if (!keepfile_put_slice(&k->out, &real))
		k->missing += slice->count;
}

/* Report whether all places of a stack have a name. */
static bool is_named(const struct assemble_input *in, uint32_t id)
{
	struct stacks_room room;
	uint32_t nr = 0;
	const uint32_t *places = stacks_at(in->stacks, id, &room, &nr);

	for (uint32_t i = 0; places && i < nr; i++) {
		const struct place *place = places_at(in->places, places[i]);

		/* Relaxed: only whether there is one. */
		if (!place ||
		    atomic_load_explicit(&place->symbol, memory_order_relaxed) == SYMBOL_NONE)
			return false;
	}
	return true;
}

/* Write the stacks again of which all names are known now. */
static void put_named(struct keep *k, const struct assemble_input *in)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < k->nr_unnamed; i++) {
		if (is_named(in, k->unnamed[i]))
			put_stack(k, in, k->unnamed[i]);
		else
			k->unnamed[kept++] = k->unnamed[i];
	}
	k->nr_unnamed = kept;
}

/* Add the events with their rates, of the slices that follow. */
static void put_events(struct keep *k, const struct keep_input *in)
{
	struct keepfile_event events[EVENTS_MAX];

	memmove(k->hz, in->hz, in->nr_events * sizeof(k->hz[0])); /* maybe the same */
	for (uint32_t i = 0; i < in->nr_events; i++)
		events[i] =
			(struct keepfile_event){ { in->events[i].name, strlen(in->events[i].name) },
						 in->hz[i],
						 in->events[i].clock };
	keepfile_put_events(&k->out, events, in->nr_events);
}

/* Return the size at which the next segment begins: a larger one could not be read again. */
static uint64_t segment_size(const struct keep *k)
{
	return MIN(k->config.size / SEGMENTS, KEEP_SEGMENT_MAX / 2);
}

/* Return whether the segment has its part of the size, or a sixteenth of the time. */
static bool is_full(const struct keep *k, const struct keep_input *in)
{
	uint64_t end_ns = slices_at(in->slices, slices_nr(in->slices) - 1)->end_ns;

	return k->segment_bytes > segment_size(k) ||
	       end_ns - k->segment_begin_ns > k->config.time_ns / SEGMENTS;
}

static void begin_segment(struct keep *k, const struct keep_input *in)
{
	clear_bits(&k->tasks);
	clear_bits(&k->wrote);
	clear_bits(&k->functions);
	clear_bits(&k->places);
	clear_bits(&k->interpreters);
	k->nr_unnamed = 0;
	k->segment_bytes = 0;
	k->segment_begin_ns = slices_at(in->slices, slices_nr(in->slices) - 1)->end_ns;
	k->stacks = stacks_serial(in->tables->stacks);
	k->nr_events = in->nr_events;
	memcpy(k->events, in->events, in->nr_events * sizeof(k->events[0]));
	keepfile_header(&k->out);
	put_events(k, in);
}

/* Hand the packed records to the thread. */
static void queue(struct keep *k, bool rotate)
{
	struct keepfile_out *q = &k->queued;

	pthread_mutex_lock(&k->lock);
	if (k->out.failed) {
		k->error = err_set(&k->why, -ENOMEM, "%s", strerror(ENOMEM));
		keepfile_fini(&k->out);
	} else {
		*q = k->out;
		k->out = (struct keepfile_out){ .bytes = NULL };
		k->rotate |= rotate;
	}
	pthread_cond_signal(&k->changed);
	pthread_mutex_unlock(&k->lock);
}

/* Return whether the thread is still writing the records before. */
static bool is_behind(struct keep *k)
{
	bool behind;

	pthread_mutex_lock(&k->lock);
	behind = k->queued.bytes != NULL;
	pthread_mutex_unlock(&k->lock);
	return behind;
}

/* Find the first slice that is not written. */
static uint32_t first_new(const struct keep *k, const struct slices *slices)
{
	return slices_find(slices, k->last_ns);
}

/*
 * Return the input with the events of set @set: these were replaced while the disk was behind.
 * Their rates are the ones that were written last.
 */
static struct keep_input input_before(const struct keep *k, const struct keep_input *in,
				      uint16_t set)
{
	struct keep_input before = *in;

	before.events = in->sets[set].events;
	before.nr_events = in->sets[set].nr;
	before.hz = k->hz;
	return before;
}

/* Pack the slices from @first on, up to one of other events. Return whether in a new segment. */
static bool pack(struct keep *k, const struct keep_input *in, uint32_t first)
{
	uint32_t nr = slices_nr(in->slices);
	bool rotate = k->stacks != stacks_serial(in->tables->stacks) ||
		      !event_same_list(k->events, k->nr_events, in->events, in->nr_events) ||
		      is_full(k, in);

	if (rotate)
		begin_segment(k, in);
	put_named(k, in->tables);
	for (uint32_t i = first; i < nr && k->out.size < QUEUED_MAX; i++) {
		const struct slice *slice = slices_at(in->slices, i);

		if (slice->events != slices_at(in->slices, first)->events ||
		    slice->end_ns > in->settled_ns)
			break;
		if (slice->marks & SLICE_RATE &&
		    memcmp(k->hz, in->hz, in->nr_events * sizeof(k->hz[0])))
			put_events(k, in);
		put_slice(k, in, slice);
		k->last_ns = slice->end_ns;
	}
	return rotate;
}

/* Queue the slices that are new. */
static void put_new(struct keep *k, const struct keep_input *in)
{
	uint32_t nr = slices_nr(in->slices), first;
	struct keep_input before;
	uint16_t set;
	bool rotate;

	first = first_new(k, in->slices);
	set = slices_at(in->slices, MIN(first, nr - 1))->events;
	if (in->sets && set != slices_at(in->slices, nr - 1)->events) {
		before = input_before(k, in, set);
		in = &before;
	}
	rotate = pack(k, in, first);
	k->segment_bytes += k->out.size;
	queue(k, rotate);
}

void keep_tick(struct keep *k, const struct keep_input *in)
{
	if (!k)
		return;
	/* The history keeps slices until the disk is ready again. */
	if (slices_nr(in->slices) && !is_behind(k))
		put_new(k, in);
	k->missing += slices_keep(in->slices, k->failed ? UINT64_MAX : k->last_ns);
}

uint64_t keep_missing(const struct keep *k)
{
	return k ? k->missing : 0;
}

int keep_check(struct keep *k, struct err *e)
{
	int code;

	if (!k || k->failed)
		return 0;
	pthread_mutex_lock(&k->lock);
	code = k->error;
	*e = k->why;
	pthread_mutex_unlock(&k->lock);
	k->failed = code != 0;
	return code;
}

/* ---- the thread ---- */

/* Create the next segment. Another file may have got its number since they were listed. */
static int create_segment(struct keep *k, struct err *e)
{
	static const int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
	char name[KEEP_DIR_NAME];
	int code;

	for (int i = 0; i < NUMBER_TRIES; i++) {
		if (k->number == UINT32_MAX)
			return err_set(e, -EOVERFLOW, "no number is left for a file");
		keep_dir_name(name, ++k->number);
		k->segment = openat(k->dir, name, flags, 0600);
		if (k->segment >= 0)
			return 0;
		if (errno != EEXIST)
			break;
		code = keep_dir_last(k->dir, &k->number, e);
		if (code)
			return code;
	}
	return err_set(e, -errno, "cannot create %s: %s", name, strerror(errno));
}

/* Open the next segment, which grows by @tick bytes beyond its part, and remove the oldest ones. 0
 * or -errno. */
static int next_segment(struct keep *k, uint64_t tick, struct err *e)
{
	uint64_t needed = segment_size(k) + tick;
	int code;

	if (k->segment >= 0)
		close(k->segment);
	k->segment = -1;
	code = keep_dir_shrink(k->dir, k->config.size - MIN(needed, k->config.size),
			       k->config.time_ns - k->config.time_ns / SEGMENTS, e);
	return code ? code : create_segment(k, e);
}

static int write_queued(struct keep *k, const struct keepfile_out *q, bool rotate, struct err *e)
{
	int code = rotate ? next_segment(k, q->size, e) : 0;

	if (code)
		return code;
	code = fd_write_all(k->segment, q->bytes, q->size);
	return code ? err_set(e, code, "cannot write: %s", strerror(-code)) : 0;
}

static void *keep_main(void *arg)
{
	struct keep *k = arg;

	prctl(PR_SET_NAME, "keep");
	invoker_stay();
	pthread_mutex_lock(&k->lock);
	while (!k->stop || k->queued.bytes) {
		struct keepfile_out q = k->queued;
		bool rotate = k->rotate;
		int code = k->error;
		struct err why = k->why;

		if (!q.bytes) {
			pthread_cond_wait(&k->changed, &k->lock);
			continue;
		}
		k->rotate = false;
		pthread_mutex_unlock(&k->lock);
		/* After a failure nothing is written any more: a segment has no gaps. */
		if (!code)
			code = write_queued(k, &q, rotate, &why);
		pthread_mutex_lock(&k->lock);
		k->error = code;
		k->why = why;
		keepfile_fini(&k->queued);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

/* Number the segments from the last one in the folder on. */
static int begin_numbers(struct keep *k, struct err *e)
{
	struct err why;
	int code = keep_dir_last(k->dir, &k->number, &why);

	return code ? err_set(e, code,
			      "--keep=%.300s: %.200s\n"
			      "  move its files away, or give another folder",
			      k->config.dir, why.text)
		    : 0;
}

/* Open the folder and start the thread, both with the rights of the invoking user. */
static int open_folder(struct keep *k, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e);

	if (code)
		return code;
	code = keep_dir_open(&k->dir, k->config.dir, e);
	if (!code)
		code = keep_dir_lock(&k->lock_fd, k->dir, k->config.dir, e);
	if (!code)
		code = begin_numbers(k, e);
	if (!code && thread_start(&k->thread, 0, keep_main, k))
		code = err_set(e, -EAGAIN, "cannot start a thread for --keep");
	invoker_end(&saved);
	return code;
}

int keep_open(struct keep **out, const struct keep_config *config, struct err *e)
{
	struct keep *k;
	int code;

	*out = NULL;
	if (!config->dir)
		return 0;
	k = xcalloc(1, sizeof(*k));
	k->config = *config;
	k->dir = k->lock_fd = k->segment = -1;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->changed, NULL);
	code = open_folder(k, e);
	if (code) {
		if (k->lock_fd >= 0)
			close(k->lock_fd);
		if (k->dir >= 0)
			close(k->dir);
		free(k);
		return code;
	}
	*out = k;
	return 0;
}

int keep_finish(struct keep *k, struct err *e)
{
	if (!k)
		return 0;
	if (!k->stop) {
		pthread_mutex_lock(&k->lock);
		k->stop = true;
		pthread_cond_signal(&k->changed);
		pthread_mutex_unlock(&k->lock);
		pthread_join(k->thread, NULL);
	}
	*e = k->why;
	return k->error;
}

void keep_close(struct keep *k)
{
	struct err e;

	if (!k)
		return;
	keep_finish(k, &e);
	if (k->segment >= 0)
		close(k->segment);
	close(k->lock_fd);
	close(k->dir);
	clear_bits(&k->tasks);
	clear_bits(&k->wrote);
	clear_bits(&k->functions);
	clear_bits(&k->places);
	clear_bits(&k->interpreters);
	keepfile_fini(&k->out);
	keepfile_fini(&k->queued);
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->changed);
	free(k);
}

/*
 * Kept segments into the tables. Each is read twice: first the stacks, functions and tasks, of
 * which later records are better, then the slices.
 */

#define IDS_MAX	 (1u << 22)	    /* of stacks, functions and places in one segment */
#define COMMS	 (1u << 16)	    /* names of processes, by pid */
#define PIECE	 ((size_t)4 << 20)  /* bytes that are read at a time */
#define HEAD_MAX ((size_t)64 << 10) /* of a segment, with its events */
#define SUM_MAX	 (1ULL << 50)	    /* samples of all slices, the lost ones included */
#define NO_EVENT 255

/* Ids of the segment -> ids of the tables + 1; 0: unknown. */
struct ids {
	uint32_t *list;
	uint32_t nr;
};

struct keep_read {
	int dir;
	uint32_t *numbers;
	int nr;
	char names[EVENTS_MAX][EVENT_NAME_MAX]; /* as in the files */
	uint32_t nr_events;
	bool waits;    /* one of them is the waits */
	uint64_t size; /* of all segments */
	/* Relaxed: only shown. */
	_Atomic uint64_t done;

	/* While it runs. */
	const uint8_t *bytes; /* of the segment */
	uint64_t before;      /* bytes of the segments before it */
	struct store *st;
	struct keep_read_result *result;
	const atomic_bool *stopped; /* by another thread */
	struct ids stacks, symbols, places, tasks;
	uint64_t weight;       /* of the slices, SLICE_WEIGHT_MAX at most */
	uint64_t comms[COMMS]; /* hash of pid and name */
	uint64_t now_ns;       /* of the side-band, counts up */
	uint8_t slots[EVENTS_MAX];
	double hz[EVENTS_MAX]; /* of the slices that follow, by slot of the session */
	uint32_t list[KEEPFILE_DEPTH_MAX];
	int code;
};

static bool set_id(struct ids *ids, uint32_t id, uint32_t value)
{
	if (id >= IDS_MAX)
		return false;
	if (id >= ids->nr) {
		uint32_t nr = MIN(id + id / 2 + 1024, IDS_MAX);
		uint32_t *larger = realloc(ids->list, nr * sizeof(*larger));

		if (!larger)
			return false;
		memset(larger + ids->nr, 0, (nr - ids->nr) * sizeof(*larger));
		ids->list = larger;
		ids->nr = nr;
	}
	ids->list[id] = value + 1;
	return true;
}

/* Return the id + 1; 0: unknown. */
static uint32_t get_id(const struct ids *ids, uint32_t id)
{
	return id < ids->nr ? ids->list[id] : 0;
}

static void forget(struct ids *ids)
{
	if (ids->nr)
		memset(ids->list, 0, ids->nr * sizeof(*ids->list));
}

/* Report whether reading ends here: its result is set. */
static bool is_stopped(void *ctx)
{
	struct keep_read *k = ctx;

	/* Relaxed: the owner waits for the thread. */
	if (!k->code && k->stopped && atomic_load_explicit(k->stopped, memory_order_relaxed))
		k->code = -ECANCELED;
	return k->code != 0;
}

/* ---- records ---- */

/* Find the slots of the segment's events among the events of the session. */
static void on_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	struct keep_read *k = ctx;

	memset(k->slots, NO_EVENT, sizeof(k->slots));
	memset(k->hz, 0, sizeof(k->hz));
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = 0; j < k->nr_events; j++)
			if (strlen(k->names[j]) == events[i].name.size &&
			    !memcmp(k->names[j], events[i].name.str, events[i].name.size)) {
				k->slots[i] = (uint8_t)j;
				k->hz[j] = events[i].hz;
			}
}

static void on_function(void *ctx, const struct keepfile_function *f)
{
	struct keep_read *k = ctx;
	const struct symbols_kept kept = { f->name.str, f->module.str, f->name.size, f->module.size,
					   f->kind,	f->inlined,    f->made_up };
	uint32_t place = f->kind == 'w'
				 ? symbols_keep_wait(k->st->symbols, k->st->places,
						     wait_kind_named(kept.name, kept.name_size))
				 : symbols_keep_function(k->st->symbols, k->st->places,
							 k->st->objects, &kept);
	bool of_place = f->id & ASSEMBLE_PLACE;

	if (place != PLACE_NONE)
		set_id(of_place ? &k->places : &k->symbols, f->id & ~ASSEMBLE_PLACE, place);
}

static void on_interpreter(void *ctx, struct keepfile_text module)
{
	struct keep_read *k = ctx;

	symbols_keep_interpreter(k->st->objects, module.str, module.size);
}

static void on_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
	struct keep_read *k = ctx;
	uint32_t filled = 0, stack;

	for (uint32_t i = 0; i < nr && filled < STACKS_PLACES_MAX; i++) {
		const struct ids *ids = functions[i] & ASSEMBLE_PLACE ? &k->places : &k->symbols;
		uint32_t place = get_id(ids, functions[i] & ~ASSEMBLE_PLACE);

		if (place)
			k->list[filled++] = place - 1;
	}
	if (!filled)
		return;
	stack = stacks_intern(k->st->stacks, k->list, filled);
	if (stack == STACK_NONE) {
		/* False is also little space: for this stack it may be enough. */
		stacks_grow(k->st->stacks);
		stack = stacks_intern(k->st->stacks, k->list, filled);
	}
	if (stack != STACK_NONE)
		set_id(&k->stacks, id, stack);
}

/* Begin the process again if its name is another one. */
static void name_process(struct keep_read *k, pid_t pid, struct keepfile_text comm)
{
	uint64_t hash = keyhash_name(comm.str, comm.size) ^ hash_u64((uint64_t)pid);
	uint64_t *slot = &k->comms[(uint32_t)pid % COMMS];

	if (*slot == hash)
		return;
	*slot = hash;
	maps_on_comm(k->st->maps, pid, pid, comm.str, comm.size, true, ++k->now_ns);
}

static void on_task(void *ctx, const struct keepfile_task *t)
{
	struct keep_read *k = ctx;
	pid_t pid = (pid_t)t->pid, tid = (pid_t)t->tid;
	struct maps_hit hit;

	name_process(k, pid, t->process_comm.size ? t->process_comm : t->comm);
	if (tid != pid)
		maps_on_comm(k->st->maps, pid, tid, t->comm.str, t->comm.size, false, ++k->now_ns);
	maps_publish(k->st->maps, ++k->now_ns, UINT64_MAX);
	if (t->uid != UINT32_MAX)
		maps_set_user(k->st->maps, pid, (uid_t)t->uid, k->now_ns);
	maps_find(k->st->maps, maps_tasks(k->st->maps), pid, tid, k->now_ns, &hit);
	set_id(&k->tasks, t->id, hit.task);
}

/* Translate the counts of a slice. Return how many there are. */
static uint32_t translate(struct keep_read *k, const struct slice *slice, struct count *out)
{
	struct slice_reader r;
	struct count c;
	uint32_t nr = 0;

	for (slice_read_begin(&r, slice); nr < slice->nr && slice_read(&r, &c);) {
		uint32_t stack = c.stack == STACK_NONE ? 0 : get_id(&k->stacks, c.stack);
		uint32_t task = get_id(&k->tasks, c.task);
		bool cpu = c.event == PROFILE_CPU || c.event == PROFILE_CPU_REST;
		uint8_t event = cpu		       ? (uint8_t)c.event
				: c.event < EVENTS_MAX ? k->slots[c.event]
						       : NO_EVENT;

		if (event == NO_EVENT) {
			k->result->other_events += c.count;
			continue;
		}
		k->result->samples += c.count;
		if (task == TASK_UNKNOWN + 1 && c.task != TASK_UNKNOWN)
			k->result->nameless += c.count;
		out[nr++] = (struct count){ stack ? stack - 1 : STACK_NONE,
					    task ? task - 1 : TASK_UNKNOWN,
					    event,
					    c.count,
					    c.weight,
					    0 };
	}
	return nr;
}

static uint64_t weight_of(const struct slice *slice)
{
	struct slice_reader r;
	uint64_t weight = 0;
	struct count c;

	for (slice_read_begin(&r, slice); slice_read(&r, &c);)
		weight += c.weight;
	return weight;
}

/* Report whether @slice can be added: sums of more samples or weight would overflow somewhere. */
static bool fits(const struct keep_read *k, const struct slice *slice)
{
	const struct keep_read_result *r = k->result;

	return weight_of(slice) <= SLICE_WEIGHT_MAX - k->weight &&
	       slice->count + slice->lost + slice->throttled <=
		       SUM_MAX - r->samples - r->other_events - r->back - r->lost - r->throttled;
}

static void on_slice(void *ctx, const struct slice *slice)
{
	struct keep_read *k = ctx;
	struct keep_read_result *r = k->result;
	struct count *counts;
	uint32_t nr;

	atomic_store_explicit(&k->done, k->before + (uint64_t)(slice->bytes - k->bytes),
			      memory_order_relaxed);
	if (k->code)
		return;
	if (!fits(k, slice)) {
		r->nr_damaged++;
		return;
	}
	/* A clock that was set back: the time is in the history already. */
	if (slice->end_ns <= r->last_ns) {
		r->back += slice->count;
		return;
	}
	k->weight += weight_of(slice);
	counts = malloc(MAX(slice->nr, 1u) * sizeof(*counts));
	if (!counts) {
		k->code = -ENOMEM;
		return;
	}
	nr = translate(k, slice, counts);
	if (!r->last_ns) {
		r->first_ns = r->last_ns = slice->begin_ns;
		history_begin(k->st->history, slice->begin_ns);
	} else if (slice->begin_ns > r->last_ns) {
		/* proftop did not run. */
		k->code = history_add(k->st->history, NULL, 0, slice->begin_ns - r->last_ns);
		r->last_ns = slice->begin_ns;
	}
	history_set_rates(k->st->history, k->hz, k->nr_events);
	if (!k->code)
		k->code = history_add(k->st->history, counts, nr, slice->end_ns - r->last_ns);
	else
		free(counts);
	history_note(k->st->history, slice->marks, slice->lost, slice->throttled);
	r->last_ns = slice->end_ns;
	r->lost += slice->lost;
	r->throttled += slice->throttled;
}

static void no_function(void *ctx, const struct keepfile_function *f)
{
}

static void no_stack(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr)
{
}

static void no_interpreter(void *ctx, struct keepfile_text module)
{
}

static void no_task(void *ctx, const struct keepfile_task *t)
{
}

static void no_slice(void *ctx, const struct slice *slice)
{
}

/* ---- segments ---- */

/* Read a file, or its first @max bytes. NULL: not readable, or too large; malloc'ed. */
static uint8_t *read_segment(struct keep_read *k, int i, size_t max, size_t *size)
{
	char name[KEEP_DIR_NAME];
	uint8_t *bytes = NULL;
	struct stat st;
	size_t got = 0, wanted = 0;
	int fd;

	keep_dir_name(name, k->numbers[i]);
	fd = openat(k->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size <= KEEP_SEGMENT_MAX) {
		wanted = MIN((size_t)st.st_size, max);
		bytes = malloc(wanted);
	}
	/* A disk may need longer for a segment than a user waits. */
	while (bytes && got < wanted && !is_stopped(k)) {
		ssize_t n = read(fd, bytes + got, MIN(wanted - got, PIECE));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	close(fd);
	*size = got;
	return bytes;
}

static void run_segment(struct keep_read *k, const uint8_t *bytes, size_t size)
{
	const struct keepfile_reader first = { on_events, on_function, on_stack, on_interpreter,
					       on_task,	  no_slice,    k,	 is_stopped };
	const struct keepfile_reader second = { on_events, no_function, no_stack, no_interpreter,
						no_task,   on_slice,	k,	  is_stopped };
	int64_t read;

	k->bytes = bytes;
	read = keepfile_read(bytes, size, &first);
	k->result->nr_damaged += read != (int64_t)size;
	if (read > 0)
		keepfile_read(bytes, (size_t)read, &second);
	k->before += size;
	forget(&k->stacks);
	forget(&k->symbols);
	forget(&k->places);
	forget(&k->tasks);
}

/* Name the frames of all kinds of waits: the kind is found in the other frames of a stack. */
static int begin_waits(struct store *st)
{
	int code = st->waits ? 0 : store_open_waits(st, 0, -1);

	for (unsigned int kind = WAIT_NO + 1; kind < WAIT_NR && !code; kind++)
		symbols_keep_wait(st->symbols, st->places, (enum wait_kind)kind);
	return code;
}

/* Report the segments and samples of a folder that are left out. */
static void note_left_out(struct keep_read_result *k)
{
	char *text = k->note;
	size_t size = 0, max = sizeof(k->note);

	if (k->nr_damaged)
		size += (size_t)snprintf(text, max, "segments that are damaged or cut short: %u",
					 k->nr_damaged);
	if (k->other_events)
		size += (size_t)snprintf(text + size, max - size,
					 "%s%" PRIu64 " samples of other events are left out",
					 size ? "; " : "", k->other_events);
	if (k->back)
		snprintf(text + size, max - size,
			 "%s%" PRIu64 " samples are left out: the clock was set back",
			 size ? "; " : "", k->back);
}

int keep_read_run(struct keep_read *k, struct store *st, const atomic_bool *stopped,
		  struct keep_read_result *out)
{
	*out = (struct keep_read_result){ .samples = 0 };
	k->st = st;
	k->result = out;
	k->stopped = stopped;
	k->code = k->waits ? begin_waits(st) : 0;
	k->before = k->weight = 0;
	history_stop_by(st->history, stopped);
	for (int i = 0; i < k->nr && !is_stopped(k); i++) {
		size_t size;
		uint8_t *bytes = read_segment(k, i, KEEP_SEGMENT_MAX, &size);

		/* Between segments: the ids of the tables may change. */
		store_keep_room(st);
		if (bytes)
			run_segment(k, bytes, size);
		else
			out->nr_damaged++;
		free(bytes);
	}
	history_stop_by(st->history, NULL);
	note_left_out(out);
	return k->code;
}

uint32_t keep_read_permille(const struct keep_read *k)
{
	uint64_t done = atomic_load_explicit(&k->done, memory_order_relaxed);

	return k->size ? (uint32_t)MIN(1000 * done / k->size, 1000) : 0;
}

/* Add the sizes of all segments. */
static uint64_t folder_size(const struct keep_read *k)
{
	uint64_t sum = 0;

	for (int i = 0; i < k->nr; i++) {
		char name[KEEP_DIR_NAME];
		struct stat st;

		keep_dir_name(name, k->numbers[i]);
		if (!fstatat(k->dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
		    (uint64_t)st.st_size <= KEEP_SEGMENT_MAX)
			sum += (uint64_t)st.st_size;
	}
	return sum;
}

/* Take the events of a segment for the session. */
static void take_events(void *ctx, const struct keepfile_event *events, uint32_t nr)
{
	struct sampler_config *config = ctx;

	for (uint32_t i = 0; i < nr; i++) {
		struct event *ev = &config->events[i];
		char name[EVENT_NAME_MAX];
		size_t size = MIN(events[i].name.size, sizeof(name) - 1);

		memcpy(name, events[i].name.str, size);
		name[size] = '\0';
		*ev = (struct event){ .user = true, .kernel = true };
		if (strcmp(name, EVENT_WAITS) || event_parse(ev, EVENT_WAITS, NULL))
			text_sanitise(ev->name, sizeof(ev->name), name, size);
		ev->clock = events[i].clock;
		ev->hz = events[i].hz;
	}
	config->nr_events = nr;
}

/* Take the events of the newest segment that has any. */
static void find_events(struct keep_read *k, struct sampler_config *config)
{
	const struct keepfile_reader reader = { take_events, no_function, no_stack, no_interpreter,
						no_task,     no_slice,	  config,   NULL };

	config->nr_events = 0;
	config->hz = 0;
	config->period = 1;
	for (int i = k->nr; i-- > 0 && !config->nr_events;) {
		size_t size;
		uint8_t *bytes = read_segment(k, i, HEAD_MAX, &size);

		if (bytes)
			keepfile_read(bytes, size, &reader);
		free(bytes);
	}
	k->nr_events = config->nr_events;
	for (uint32_t i = 0; i < k->nr_events; i++) {
		memcpy(k->names[i], config->events[i].name, sizeof(k->names[i]));
		k->waits |= config->events[i].wait;
	}
}

/* Return the error for a folder without a segment. */
static int refuse_folder(const char *path, struct err *e)
{
	char data[PATH_MAX];

	if (snprintf(data, sizeof(data), "%s/data", path) < (int)sizeof(data) &&
	    !access(data, F_OK))
		return perfdata_refuse_folder(e, path);
	return err_set(e, -ENODATA,
		       "%.300s: no kept samples\n"
		       "  a folder for --open is written with --keep",
		       path);
}

static int refuse_list(const char *path, int code, const struct err *why, struct err *e)
{
	return err_set(e, code,
		       "%.300s: %.200s\n"
		       "  a folder for --open is written with --keep",
		       path, why->text);
}

int keep_read_open(struct keep_read **out, struct sampler_config *config, struct err *e)
{
	struct keep_read *k = xcalloc(1, sizeof(*k));
	struct err why;
	int code = keep_dir_open(&k->dir, config->replay, e);

	if (!code) {
		k->nr = keep_dir_list(k->dir, &k->numbers, &why);
		if (k->nr < 0)
			code = refuse_list(config->replay, k->nr, &why, e);
		k->nr = MAX(k->nr, 0);
	}
	if (!code) {
		k->size = folder_size(k);
		find_events(k, config);
		if (!config->nr_events)
			code = refuse_folder(config->replay, e);
	}
	if (code) {
		keep_read_close(k);
		return code;
	}
	*out = k;
	return 0;
}

void keep_read_close(struct keep_read *k)
{
	if (!k)
		return;
	if (k->dir >= 0)
		close(k->dir);
	free(k->numbers);
	free(k->stacks.list);
	free(k->symbols.list);
	free(k->places.list);
	free(k->tasks.list);
	free(k);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reader of a recording in the sandbox: header, then records part by part, compressed blocks
 * inflated.
 *
 * Runs in the worker, or in the thread of the call. Offsets and sizes of the file are checked in
 * one place, perfdata_bytes_at(), which all reads use.
 */
#include "sampler/perfdata/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/kernel/kernel.h"
#include "symbols/sandbox/sandbox.h"

int perfdata_refuse_folder(struct err *e, const char *path)
{
	return err_set(e, -EISDIR,
		       "cannot replay %.300s: a directory\n"
		       "  perf record --threads writes one; record without it",
		       path);
}

/*
 * A window over a file: most reads are in it.
 *
 * Records are read twice, a small part of the file at a time: their heads in
 * the order of the file, then each record in the order of time. Both use one small buffer that fits
 * into the CPU's cache.
 */

/* Least bytes of a read: a read in order has many small records, after a jump often only a head is
 * used. */
#define WINDOW_NEXT 4096u

#define WINDOW_JUMP 512u

/* The heads of records lie too far apart for the kernel to see that the file is read through. */
#define AHEAD (16ULL << 20)

/* How long to wait for data between two calls of the step function. */
#define STEP_MS 100

/* A pipe, while it is read. */
struct pipe_reading {
	uint64_t used;
	uint64_t step_ns; /* time of the next call */
	bool stopped;
};

/* Wait for data. Return 1: read it, 0: stop here, -ECANCELED. */
static int wait_for_data(struct pipe_reading *in, int fd, file_reading_fn step)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	enum file_reading how;
	bool ready;

	for (;;) {
		ready = poll(&pfd, 1, STEP_MS) > 0;
		if (ready && time_now_ns() < in->step_ns)
			return 1;
		how = step(in->used);
		in->step_ns = time_now_ns() + STEP_MS * 1000000ULL;
		if (how == FILE_READING_CANCEL)
			return -ECANCELED;
		in->stopped = how == FILE_READING_STOP || (how == FILE_READING_DRAIN && !ready);
		if (in->stopped || ready)
			return !in->stopped;
	}
}

/* Return the message for a failed read. */
static int refuse_read(const char *path, int code, struct err *e)
{
	if (code == -EFBIG)
		return err_set(e, code,
			       "cannot replay %.300s: the pipe has more than %llu GiB\n"
			       "  write it to a file and replay the file",
			       path, PERFDATA_MEMORY_MAX >> 30);
	if (code == -EISDIR)
		return perfdata_refuse_folder(e, path);
	return err_set(e, code, "cannot read %.300s: %s", path,
		       code == -ECANCELED ? "interrupted" : strerror(-code));
}

/*
 * Make room for @room bytes in a memfd, which another process can be given. They are mapped, and
 * keep their contents.
 */
static int grow_memory(struct perfdata_bytes *b, size_t room)
{
	int fd = b->memory < 0 ? sandbox_file() : b->memory;
	void *p;

	if (fd < 0)
		return fd;
	b->memory = fd;
	if (ftruncate(fd, (off_t)room))
		return -errno;
	if (b->own)
		p = mremap(b->own, b->room, room, MREMAP_MAYMOVE);
	else
		p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, b->memory, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	b->own = p;
	b->room = room;
	return 0;
}

/* Read a pipe behind the @used bytes that are there, to its end or as far as @step allows. */
static int read_all(struct perfdata_bytes *b, uint64_t used, int fd, file_reading_fn step)
{
	struct pipe_reading in = { .used = used };
	ssize_t got;
	int code;

	for (;;) {
		code = in.used < b->room ? 0 : grow_memory(b, MAX(2 * b->room, (size_t)1 << 20));
		if (code)
			return code;
		code = step ? wait_for_data(&in, fd, step) : 1;
		if (code < 0)
			return code;
		if (!code)
			break;
		got = read(fd, b->own + in.used, b->room - in.used);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		/* The signal that ended the writer is for this pipe, not for the screen after it.
		 */
		if (!got && step && step(in.used) == FILE_READING_CANCEL)
			return -ECANCELED;
		if (!got)
			break;
		in.used += (uint64_t)got;
		if (in.used > PERFDATA_MEMORY_MAX)
			return -EFBIG;
	}
	b->window = b->own;
	b->size = b->window_size = in.used;
	b->stopped = in.stopped;
	return 0;
}

/*
 * Take over @fd, which is @path. 0 or -errno with a message; then @fd is closed. @step: called
 * while a pipe is read, or NULL.
 */
int perfdata_bytes_open(struct perfdata_bytes *b, int fd, const char *path, file_reading_fn step,
			struct err *e)
{
	struct stat st;
	int code;

	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		b->fd = fd;
		b->size = (uint64_t)st.st_size;
		b->date_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
		return 0;
	}
	code = read_all(b, 0, fd, step);
	close(fd);
	if (code) {
		perfdata_bytes_close(b);
		return refuse_read(path, code, e);
	}
	return 0;
}

int perfdata_bytes_copy(struct perfdata_bytes *b, const void *bytes, size_t size)
{
	int code;

	assert(bytes || !size);
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
	code = grow_memory(b, MAX(size, (size_t)1));
	if (code)
		return code;
	memcpy(b->own, bytes, size);
	b->window = b->own;
	b->size = b->window_size = size;
	return 0;
}

/* Open the bytes once more, for reading only. Return a descriptor, which the caller closes, or
 * -errno. */
int perfdata_bytes_share(const struct perfdata_bytes *b)
{
	int fd = b->fd >= 0 ? b->fd : b->memory;
	char path[64];

	assert(b->fd >= 0 || b->memory >= 0);
	/* Standard input may also be open for writing. */
	if (b->fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

void perfdata_bytes_borrow(struct perfdata_bytes *b, const void *memory, size_t size)
{
	*b = (struct perfdata_bytes){
		.size = size,
		.fd = -1,
		.pipe = -1,
		.memory = -1,
		.window = memory,
		.window_size = size,
	};
}

void perfdata_bytes_close(struct perfdata_bytes *b)
{
	if (b->memory >= 0 && b->own)
		munmap(b->own, b->room);
	else
		free(b->own);
	if (b->fd >= 0)
		close(b->fd);
	if (b->pipe >= 0)
		close(b->pipe);
	if (b->memory >= 0)
		close(b->memory);
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = -1, .memory = -1 };
}

/*
 * Begin to read @fd, a pipe, as far as it has data: perfdata_bytes_more() reads on. @fd is closed
 * by perfdata_bytes_close().
 */
void perfdata_bytes_begin(struct perfdata_bytes *b, int fd)
{
	*b = (struct perfdata_bytes){ .fd = -1, .pipe = fd, .memory = -1 };
}

/* Move the bytes from offset @keep on to the front, once they are the smaller part. */
static void forget(struct perfdata_bytes *b, uint64_t keep)
{
	uint64_t gone = keep - b->window_at;

	assert(keep >= b->window_at && gone <= b->window_size);
	if (gone < b->window_size - gone || !gone)
		return;
	memmove(b->own, b->own + gone, b->window_size - gone);
	b->window_at = keep;
	b->window_size -= gone;
}

/*
 * Forget all bytes before offset @keep, and read the bytes that are there, or wait for them. Return
 * the number of new bytes, 0: the end, -EFBIG or other -errno.
 */
int64_t perfdata_bytes_more(struct perfdata_bytes *b, uint64_t keep)
{
	ssize_t got;

	assert(b->pipe >= 0 && b->window_size <= b->room);
	forget(b, keep);
	if (b->window_size == b->room) {
		if (b->room >= PERFDATA_MEMORY_MAX)
			return -EFBIG;
		b->room = MAX(2 * b->room, (size_t)1 << 20);
		b->own = xrealloc_array(b->own, b->room, 1);
	}
	do
		got = read(b->pipe, b->own + b->window_size, b->room - b->window_size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	b->window = b->own;
	b->window_size += (uint64_t)got;
	b->size = b->window_at + b->window_size;
	return got;
}

/* Wait until a pipe has data. Return 1: it has, 0: @step stops here, -ECANCELED. */
int perfdata_bytes_wait(const struct perfdata_bytes *b, file_reading_fn step)
{
	struct pipe_reading in = { .used = b->size };

	return wait_for_data(&in, b->pipe, step);
}

/* Read the rest of a pipe, as perfdata_bytes_open(). */
int perfdata_bytes_finish(struct perfdata_bytes *b, const char *path, file_reading_fn step,
			  struct err *e)
{
	struct perfdata_bytes first = *b;
	int code;

	assert(!b->window_at);
	code = perfdata_bytes_copy(b, first.own, first.window_size);
	if (!code)
		code = read_all(b, b->size, first.pipe, step);
	perfdata_bytes_close(&first);
	return code ? refuse_read(path, code, e) : 0;
}

/* Add @size bytes, and forget all before offset @keep. */
static void perfdata_bytes_append(struct perfdata_bytes *b, const uint8_t *bytes, size_t size,
				  uint64_t keep)
{
	assert(bytes && size);
	if (b->own)
		forget(b, keep);
	if (b->room - b->window_size < size) {
		b->room = 2 * b->room + size;
		b->own = xrealloc_array(b->own, b->room, 1);
	}
	memcpy(b->own + b->window_size, bytes, size);
	b->window = b->own;
	b->window_size += size;
	b->size = b->window_at + b->window_size;
	assert(b->window_size <= b->room);
}

/* Let the kernel read on behind @offset, for the reader of a file that is shared. */
void perfdata_bytes_ahead(struct perfdata_bytes *b, uint64_t offset)
{
	if (b->fd < 0 || offset + AHEAD / 2 < b->ahead || b->ahead >= b->size)
		return;
	b->ahead = MAX(b->ahead, offset);
	posix_fadvise(b->fd, (off_t)b->ahead, AHEAD, POSIX_FADV_WILLNEED);
	b->ahead += AHEAD;
}

static void window_make_room(struct perfdata_bytes *b, uint64_t size)
{
	if (size <= b->room)
		return;
	free(b->own);
	b->room = 2 * size;
	b->own = xcalloc(1, b->room);
}

/* Read from @offset to @to until there are @least bytes; at most @most. Returns their number; 0:
 * fewer.
 */
static uint64_t read_at(const struct perfdata_bytes *b, uint8_t *to, uint64_t offset,
			uint64_t least, uint64_t most)
{
	uint64_t have = 0;

	while (have < least) {
		ssize_t got = pread(b->fd, to + have, most - have, (off_t)(offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) /* shorter than it was, or it cannot be read */
			return 0;
		have += (uint64_t)got;
	}
	return have;
}

bool perfdata_bytes_move(struct perfdata_bytes *b, uint64_t offset, uint64_t size)
{
	bool next = offset - b->window_at <= b->window_size;
	uint64_t want = MAX(size, next ? WINDOW_NEXT : WINDOW_JUMP);

	if (b->fd < 0 || offset > b->size || size > b->size - offset)
		return false;
	window_make_room(b, want);
	perfdata_bytes_ahead(b, offset);
	assert(b->room >= size);
	b->window = b->own;
	b->window_at = offset;
	b->window_size = read_at(b, b->own, offset, size, MIN(want, b->size - offset));
	return b->window_size >= size;
}

/*
 * { header, i32 pid, u8 id[20], u8 size, u8[3], name[] }: a table sorted by name.
 *
 * One thread, that of the replay. Invariant: ids[].name and name_size lie in
 * names; both are limited, however large the file is.
 */

/* Return whether the object is the kernel, not a module. */
static bool is_kernel(const char *name, size_t size)
{
	static const char kallsyms[] = "[kernel.kallsyms]", file[] = "vmlinux";
	const char *slash = memrchr(name, '/', size);

	if (size >= sizeof(kallsyms) - 1 && !memcmp(name, kallsyms, sizeof(kallsyms) - 1))
		return true;
	size -= slash ? (size_t)(slash + 1 - name) : 0;
	return size >= sizeof(file) - 1 &&
	       !memcmp(slash ? slash + 1 : name, file, sizeof(file) - 1);
}

static void add(struct perfdata_build_ids *t, const char *name, size_t size, const uint8_t *id,
		uint8_t id_size)
{
	struct perfdata_build_id *entry;

	if (t->nr == PERFDATA_BUILD_IDS_MAX || size > PERFDATA_NAMES_MAX - t->names_size)
		return;
	if (t->nr == t->room) {
		t->room = MAX(2 * t->room, 64u);
		t->ids = xrealloc_array(t->ids, t->room, sizeof(*t->ids));
	}
	if (t->names_room - t->names_size < size) {
		t->names_room = 2 * t->names_room + size;
		t->names = xrealloc_array(t->names, t->names_room, 1);
	}
	entry = &t->ids[t->nr++];
	*entry = (struct perfdata_build_id){
		(uint32_t)t->names_size, (uint32_t)size, { 0 }, id_size
	};
	memcpy(entry->id, id, id_size);
	memcpy(t->names + t->names_size, name, size);
	t->names_size += size;
	t->sorted = false;
}

/* Add the build-id of a record of @size bytes: of a file, or of the kernel. False: not valid.
 */
static bool perfdata_build_ids_add(struct perfdata_build_ids *t, struct kernel_identity *kernel,
				   const uint8_t *record, size_t size)
{
	const size_t id_at = offsetof(struct perfdata_build_id_record, id);
	struct perfdata_build_id_record r;
	const char *name = (const char *)record + sizeof(r);
	uint8_t id_size = sizeof(r.id);
	size_t name_size;

	if (size < sizeof(r))
		return false;
	memcpy(&r, record, sizeof(r));
	name_size = strnlen(name, size - sizeof(r));
	/* Before perf 5.10 there was no size: SHA-1 it was, or something shorter and zeros. */
	if (r.h.misc & PERFDATA_MISC_BUILD_ID_SIZE)
		id_size = MIN(r.size, id_size);
	if ((r.h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
		if (name_size && id_size)
			add(t, name, name_size, record + id_at, id_size);
	} else if ((r.h.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
		   is_kernel(name, name_size)) {
		kernel->build_id_size = id_size;
		memcpy(kernel->build_id, r.id, id_size);
	}
	return true;
}

static int compare_names(const char *a, size_t a_size, const char *b, size_t b_size)
{
	if (a_size != b_size)
		return a_size < b_size ? -1 : 1;
	return memcmp(a, b, a_size);
}

static int compare_build_ids(const void *a, const void *b, void *names)
{
	const struct perfdata_build_id *x = a, *y = b;
	const char *text = names;

	return compare_names(text + x->name, x->name_size, text + y->name, y->name_size);
}

/* Of a name with several build-ids none is kept, unless all are the same. */
static void sort(struct perfdata_build_ids *t)
{
	uint32_t kept = 0;

	t->sorted = true;
	if (!t->nr)
		return;
	qsort_r(t->ids, t->nr, sizeof(*t->ids), compare_build_ids, t->names);
	for (uint32_t i = 1; i < t->nr; i++) {
		struct perfdata_build_id *last = &t->ids[kept];

		if (compare_build_ids(last, &t->ids[i], t->names))
			t->ids[++kept] = t->ids[i];
		else if (memcmp(last->id, t->ids[i].id, sizeof(last->id)))
			last->size = 0;
	}
	t->nr = kept + 1;
}

bool perfdata_build_ids_find(struct perfdata_build_ids *t, const char *name, size_t size,
			     struct object_identity *id)
{
	uint32_t lo = 0, hi;

	assert(name || !size);
	if (!t->sorted)
		sort(t);
	for (hi = t->nr; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct perfdata_build_id *e = &t->ids[mid];
		int order = compare_names(t->names + e->name, e->name_size, name, size);

		if (!order) {
			if (!e->size)
				return false;
			memcpy(id->build_id, e->id, sizeof(id->build_id));
			id->build_id_size = e->size;
			return true;
		}
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

static void perfdata_build_ids_fini(struct perfdata_build_ids *t)
{
	free(t->ids);
	free(t->names);
	*t = (struct perfdata_build_ids){ 0 };
}

/*
 * perf_event_attr of a file -> how its records are decoded and counted.
 */

/* Name an event that has no name in the file. */
static void name_event(struct perfdata_event *ev, const struct perf_event_attr *attr)
{
	const struct event known = { .type = attr->type, .config = attr->config };
	const struct event_info *info = event_info(&known);

	if (info)
		snprintf(ev->event.name, sizeof(ev->event.name), "%s", info->name);
	else
		snprintf(ev->event.name, sizeof(ev->event.name), "%u:%#llx", attr->type,
			 (unsigned long long)attr->config);
}

/* Make room for one more event. */
static void events_make_room(struct perfdata_events *t)
{
	if (t->nr < t->room)
		return;
	t->room = MAX(2 * t->room, 4U);
	t->events = xrealloc_array(t->events, t->room, sizeof(*t->events));
	t->attrs = xrealloc_array(t->attrs, t->room, sizeof(*t->attrs));
	t->hashes = xrealloc_array(t->hashes, t->room, sizeof(*t->hashes));
}

int perfdata_events_add(struct perfdata_events *t, const uint8_t *bytes, size_t size,
			uint32_t *index)
{
	struct perf_event_attr attr = { 0 };
	struct perfdata_event *ev;

	assert(t->nr <= PERFDATA_EVENTS_MAX);
	if (size < PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	if (t->nr == PERFDATA_EVENTS_MAX)
		return -E2BIG;
	memcpy(&attr, bytes, MIN(size, sizeof(attr)));
	events_make_room(t);
	*index = t->nr++;
	t->attrs[*index] = attr;
	t->hashes[*index] = keyhash_name((const char *)bytes, size);
	ev = &t->events[*index];
	*ev = (struct perfdata_event){ .nr_samples = 0 };
	ev->layout = (struct record_layout){
		.sample_type = attr.sample_type,
		.regs_mask = attr.sample_type & PERF_SAMPLE_REGS_USER ? attr.sample_regs_user : 0,
		.branch_type = attr.branch_sample_type,
		.intr_mask = attr.sample_type & PERF_SAMPLE_REGS_INTR ? attr.sample_regs_intr : 0,
		.read_format = attr.read_format,
		.id_all = attr.sample_id_all,
	};
	ev->event.type = attr.type;
	ev->event.config = attr.config;
	ev->event.user = !attr.exclude_user;
	ev->event.kernel = !attr.exclude_kernel;
	ev->event.read = attr.sample_type & PERF_SAMPLE_READ &&
			 attr.read_format & PERF_FORMAT_GROUP;
	ev->event.hardware = attr.type != PERF_TYPE_SOFTWARE;
	ev->event.clock = attr.type == PERF_TYPE_SOFTWARE &&
			  attr.config <= PERF_COUNT_SW_TASK_CLOCK;
	ev->stack_size = attr.sample_type & PERF_SAMPLE_STACK_USER ? attr.sample_stack_user : 0;
	ev->user_chain = attr.sample_type & PERF_SAMPLE_CALLCHAIN && !attr.exclude_callchain_user;
	ev->switches = attr.context_switch;
	/* Since Linux 6.13; older ones refuse such an event. */
	ev->by_task = attr.inherit && attr.sample_type & PERF_SAMPLE_READ &&
		      attr.sample_type & PERF_SAMPLE_TID;
	ev->monotonic = attr.use_clockid && attr.clockid == CLOCK_MONOTONIC;
	ev->dummy = attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
	ev->hz = attr.freq ? (double)attr.sample_freq : 0;
	ev->period = attr.freq ? 0 : attr.sample_period;
	name_event(ev, &attr);
	return 0;
}

/* Find the event of this attribute. 0 or -ENOENT. */
static int perfdata_events_find(const struct perfdata_events *t, const uint8_t *bytes, size_t size,
				uint32_t *index)
{
	uint64_t hash = keyhash_name((const char *)bytes, size);

	for (*index = 0; *index < t->nr; ++*index)
		if (t->hashes[*index] == hash)
			return 0;
	return -ENOENT;
}

/* Return whether the @size bytes of an event's ids fit. */
static bool perfdata_events_room(const struct perfdata_events *t, uint64_t size)
{
	return size / 8 <= PERFDATA_IDS_MAX - t->nr_ids;
}

static void perfdata_events_add_ids(struct perfdata_events *t, const uint8_t *bytes, uint64_t size,
				    uint32_t event)
{
	uint32_t nr = (uint32_t)(size / 8);

	t->ids = xrealloc_array(t->ids, t->nr_ids + nr, sizeof(*t->ids));
	for (uint32_t i = 0; i < nr; i++) {
		struct perfdata_id *id = &t->ids[t->nr_ids++];

		id->event = event;
		memcpy(&id->id, bytes + 8 * (size_t)i, sizeof(id->id));
	}
}

static int compare_ids(const void *a, const void *b)
{
	const struct perfdata_id *x = a, *y = b;

	return COMPARE(x->id, y->id);
}

void perfdata_events_sort(struct perfdata_events *t)
{
	if (t->nr_ids)
		qsort(t->ids, t->nr_ids, sizeof(*t->ids), compare_ids);
}

int perfdata_events_of(const struct perfdata_events *t, uint64_t id)
{
	const struct perfdata_id key = { .id = id }, *found;

	assert(t->ids || !t->nr_ids);
	if (!t->nr_ids || t->nr == 1)
		return 0;
	found = bsearch(&key, t->ids, t->nr_ids, sizeof(key), compare_ids);
	return found ? (int)found->event : -1;
}

void perfdata_events_name(struct perfdata_event *ev, const void *name, size_t size)
{
	text_sanitise(ev->event.name, EVENT_NAME_MAX, name,
		      strnlen(name, MIN(size, EVENT_NAME_MAX - 1u)));
}

/* Set the name of the event with that id. */
static void perfdata_events_rename(struct perfdata_events *t, uint64_t id, const char *name,
				   size_t size)
{
	int event = perfdata_events_of(t, id);

	if (event >= 0 && (uint32_t)event < t->nr)
		perfdata_events_name(&t->events[event], name, size);
}

void perfdata_events_fini(struct perfdata_events *t)
{
	perfdata_build_ids_fini(&t->build_ids);
	free(t->ids);
	free(t->events);
	free(t->attrs);
	free(t->hashes);
	*t = (struct perfdata_events){ .nr = 0 };
}

/* An attribute grows by a few fields with each kernel. */
#define ATTR_SIZE_MAX 4096

/* One attribute, followed by the section of its ids. */
static int read_attr(struct perfdata_bytes *b, struct perfdata_events *events, uint64_t at,
		     uint64_t size)
{
	const uint8_t *entry = perfdata_bytes_at(b, at, size), *ids;
	struct perfdata_section s;
	uint32_t event;
	int code = entry ? perfdata_events_add(events, entry, size - sizeof(s), &event) : -EINVAL;

	if (code)
		return code;
	memcpy(&s, entry + size - sizeof(s), sizeof(s));
	if (!perfdata_events_room(events, s.size))
		return -EINVAL;
	ids = perfdata_bytes_at(b, s.offset, s.size);
	if (!ids)
		return -EINVAL;
	perfdata_events_add_ids(events, ids, s.size, event);
	return 0;
}

static int read_attrs(struct perfdata_bytes *b, struct perfdata_events *events,
		      const struct perfdata_header *h)
{
	uint64_t size = h->attr_size;

	if (size < PERF_ATTR_SIZE_VER0 + sizeof(struct perfdata_section) || size > ATTR_SIZE_MAX)
		return -EINVAL;
	for (uint64_t at = 0; at + size <= h->attrs.size; at += size) {
		int code = read_attr(b, events, h->attrs.offset + at, size);

		if (code)
			return code;
	}
	return events->nr ? 0 : -EINVAL;
}

/*
 * Find the events in front of the records: proftop --record writes them there at the start, and at
 * the end again, missing from a file cut short. The ids of the first event follow
 * the header.
 */
static void find_first_attrs(struct perfdata_bytes *b, struct perfdata_header *h)
{
	const uint64_t size = h->attr_size;
	uint64_t at = h->data.offset;

	if (size < PERF_ATTR_SIZE_VER0 + sizeof(struct perfdata_section) || size > ATTR_SIZE_MAX ||
	    h->attrs.offset < at || h->attrs.offset + h->attrs.size <= b->size)
		return;
	while (at >= sizeof(*h) + size) {
		struct perfdata_section ids;
		const uint8_t *entry = perfdata_bytes_at(b, at -= size, size);

		if (!entry || bytes_u32(entry + 4) != size - sizeof(ids))
			return;
		memcpy(&ids, entry + size - sizeof(ids), sizeof(ids));
		if (ids.offset == sizeof(*h)) {
			h->attrs = (struct perfdata_section){ at, h->data.offset - at };
			return;
		}
	}
}

/* EVENT_DESC: u32 nr, u32 attr_size, { attr, u32 nr_ids, u32 len, name[len], ids[] }. */
static void read_event_desc(struct perfdata_bytes *b, struct perfdata_events *events,
			    const struct perfdata_section *s)
{
	const uint8_t *p = s->size < 8 ? NULL : perfdata_bytes_at(b, s->offset, 8);
	uint32_t nr, attr_size, nr_ids, size;
	uint64_t at = s->offset + 8;

	if (!p)
		return;
	nr = bytes_u32(p);
	attr_size = bytes_u32(p + 4);
	for (uint32_t i = 0; i < nr && i < events->nr; i++) {
		p = perfdata_bytes_at(b, at + attr_size, 8);
		if (!p)
			return;
		nr_ids = bytes_u32(p);
		size = bytes_u32(p + 4);
		at += (uint64_t)attr_size + 8;
		p = perfdata_bytes_at(b, at, MIN(size, EVENT_NAME_MAX - 1u));
		if (!p)
			return;
		perfdata_events_name(&events->events[i], p, size);
		at += size + 8ULL * nr_ids;
	}
}

/* GROUP_DESC: u32 nr, { u32 len, name[len], u32 leader, u32 members }. */
static void read_group_desc(struct perfdata_bytes *b, struct perfdata_events *events,
			    const struct perfdata_section *s)
{
	const uint8_t *p = s->size < 4 ? NULL : perfdata_bytes_at(b, s->offset, 4);
	uint32_t nr = p ? bytes_u32(p) : 0;
	uint64_t at = s->offset + 4;

	/* Each group has an event. */
	for (uint32_t i = 0; i < nr && i < events->nr; i++) {
		uint32_t first, members;

		p = perfdata_bytes_at(b, at, 4);
		at += p ? 4ULL + bytes_u32(p) : 0;
		p = p ? perfdata_bytes_at(b, at, 8) : NULL;
		if (!p)
			return;
		at += 8;
		first = bytes_u32(p);
		members = bytes_u32(p + 4);
		for (uint32_t k = first; k < events->nr && k - first < members; k++)
			events->events[k].event.group = first + 1;
	}
}

/* ARCH, OSRELEASE: u32 len, text[len]; into @out of @max bytes. */
static void read_text(struct perfdata_bytes *b, const struct perfdata_section *s, char *out,
		      size_t max)
{
	const uint8_t *p = s->size < 4 ? NULL : perfdata_bytes_at(b, s->offset, 4);
	size_t size = p ? MIN(bytes_u32(p), max - 1) : 0;

	p = p ? perfdata_bytes_at(b, s->offset + 4, size) : NULL;
	if (p)
		memcpy(out, p, strnlen((const char *)p, size));
}

/* BUILD_ID: one record after the other. */
static void read_build_ids(struct perfdata_bytes *b, struct perfdata_events *events,
			   const struct perfdata_section *s)
{
	struct perf_event_header h;
	const uint8_t *p;

	for (uint64_t at = 0; at < s->size; at += h.size) {
		p = perfdata_bytes_at(b, s->offset + at, sizeof(h));
		if (!p)
			return;
		memcpy(&h, p, sizeof(h));
		p = perfdata_bytes_at(b, s->offset + at, h.size);
		if (!p || !perfdata_build_ids_add(&events->build_ids, &events->kernel, p, h.size))
			return;
	}
}

/* Read one feature at @s: a section of a file, or the body of a pipe's record. */
static void read_feature(struct perfdata_bytes *b, struct perfdata_events *events, uint64_t feature,
			 const struct perfdata_section *s)
{
	switch (feature) {
	case PERFDATA_EVENT_DESC:
		read_event_desc(b, events, s);
		break;
	case PERFDATA_ARCH:
		read_text(b, s, events->machine, sizeof(events->machine));
		break;
	case PERFDATA_HOSTNAME:
		read_text(b, s, events->host, sizeof(events->host));
		break;
	case PERFDATA_OSRELEASE:
		read_text(b, s, events->kernel.release, sizeof(events->kernel.release));
		break;
	case PERFDATA_BUILD_ID:
		read_build_ids(b, events, s);
		break;
	case PERFDATA_GROUP_DESC:
		read_group_desc(b, events, s);
		break;
	}
}

/*
 * The sections of the features are behind the data, one for each bit set, in order. Return whether
 * all are there.
 */
static bool read_features(struct perfdata_bytes *b, struct perfdata_events *events,
			  const struct perfdata_header *h)
{
	uint64_t at = h->data.offset + h->data.size;
	bool whole = true;

	for (unsigned int bit = 0; bit < PERFDATA_FEATURE_WORDS * 64; bit++) {
		struct perfdata_section s;
		const uint8_t *p;

		if (!(h->features[bit / 64] >> (bit % 64) & 1))
			continue;
		p = perfdata_bytes_at(b, at, sizeof(s));
		if (!p)
			return false;
		memcpy(&s, p, sizeof(s));
		whole &= s.offset <= b->size && s.size <= b->size - s.offset;
		read_feature(b, events, bit, &s);
		at += sizeof(s);
	}
	return whole;
}

static int read_file(struct perfdata_bytes *b, struct perfdata_events *events,
		     struct perfdata_extent *extent)
{
	const uint8_t *p = perfdata_bytes_at(b, 0, sizeof(struct perfdata_header));
	struct perfdata_section *data = &extent->data;
	struct perfdata_header h;
	int code;

	if (!p)
		return -EINVAL;
	memcpy(&h, p, sizeof(h));
	find_first_attrs(b, &h);
	code = h.size < sizeof(h) ? -EINVAL : read_attrs(b, events, &h);
	if (code)
		return code;
	perfdata_events_sort(events);
	*data = h.data;
	if (data->offset > b->size)
		return -EINVAL;
	extent->unfinished = !data->size;
	if (extent->unfinished || data->size > b->size - data->offset)
		data->size = b->size - data->offset;
	else
		extent->cut = !read_features(b, events, &h);
	extent->missing = extent->unfinished ? 0 : h.data.size - data->size;
	return 0;
}

/* Read the header. Events are added, except in pipe mode. 0,
 * -E2BIG or -EINVAL. */
static int perfdata_header_read(struct perfdata_bytes *b, struct perfdata_events *events,
				struct perfdata_extent *extent)
{
	const uint8_t *p = perfdata_bytes_at(b, 0, PERFDATA_PIPE_HEADER);
	uint64_t size;

	*extent = (struct perfdata_extent){ .missing = 0 };
	if (!p || memcmp(p, PERFDATA_MAGIC, 8))
		return -EINVAL;
	memcpy(&size, p + 8, sizeof(size));
	if (size != PERFDATA_PIPE_HEADER)
		return read_file(b, events, extent);
	extent->data =
		(struct perfdata_section){ PERFDATA_PIPE_HEADER, b->size - PERFDATA_PIPE_HEADER };
	return 0;
}

static int perfdata_header_attr(struct perfdata_events *events, const uint8_t *at, size_t size,
				bool late, bool fixed)
{
	const size_t body = sizeof(struct perf_event_header);
	/* Ours is continued in another record after this number of ids, and when events are added.
	 */
	bool found = late || fixed || events->last_ids == PERFDATA_STREAM_IDS;
	uint32_t attr_size, event;
	int code;

	if (size < body + PERF_ATTR_SIZE_VER0)
		return -EINVAL;
	attr_size = bytes_u32(at + body + 4);
	if (attr_size < PERF_ATTR_SIZE_VER0 || attr_size > size - body)
		return -EINVAL;
	code = found ? perfdata_events_find(events, at + body, attr_size, &event) : -ENOENT;
	if (code && fixed)
		return 0;
	if (code)
		code = perfdata_events_add(events, at + body, attr_size, &event);
	if (code)
		return code;
	size -= body + attr_size;
	if (!perfdata_events_room(events, size))
		return -EINVAL;
	events->last_ids = size / 8;
	perfdata_events_add_ids(events, at + body + attr_size, size, event);
	perfdata_events_sort(events);
	return 0;
}

static void perfdata_header_piped_feature(struct perfdata_events *events, const uint8_t *at,
					  size_t size)
{
	const size_t body = sizeof(struct perf_event_header) + 8;
	const struct perfdata_section s = { 0, size - MIN(size, body) };
	struct perfdata_bytes bytes;
	uint64_t bit;

	if (size < body)
		return;
	memcpy(&bit, at + sizeof(struct perf_event_header), sizeof(bit));
	perfdata_bytes_borrow(&bytes, at + body, s.size);
	read_feature(&bytes, events, bit, &s);
}

/*
 * Records of pipe mode. An attribute with the ids of one event: @late: behind other records,
 * @fixed: no event can be added any more; 0, -E2BIG or -EINVAL. A feature. A later addition to an
 * event.
 */
static void perfdata_header_update(struct perfdata_events *events, const uint8_t *at, size_t size)
{
	const size_t body = sizeof(struct perf_event_header), name = body + 16;
	uint64_t update[2];

	if (size <= name)
		return;
	memcpy(update, at + body, sizeof(update));
	if (update[0] == PERFDATA_UPDATE_NAME)
		perfdata_events_rename(events, update[1], (const char *)at + name, size - name);
}

/*
 * Compressed blocks of perf.data (perf record -z): one zstd stream over all
 * PERF_RECORD_COMPRESSED and _COMPRESSED2 records of a file. Without libzstd at build time every
 * block fails.
 *
 * One thread. Bytes are borrowed until the next call.
 *
 * Compressed blocks of perf.data, through libzstd, if it was found at build time.
 *
 * One buffer: bytes that were walked but not taken, then bytes that were not walked.
 */

#ifdef HAVE_ZSTD
#include <zstd.h>

#define ROOM_MIN ((size_t)1 << 16)

struct perfdata_zstd {
	ZSTD_DStream *stream;
	uint8_t *bytes;
	size_t size, room;
	size_t walked;	  /* of these, from the start */
	uint64_t at;	  /* offset of the first one in all decompressed bytes */
	uint64_t in, out; /* bytes of all blocks */
};

static int make(struct perfdata_zstd **zp)
{
	struct perfdata_zstd *z = xcalloc(1, sizeof(*z));

	z->stream = ZSTD_createDStream();
	if (!z->stream) {
		free(z);
		return -ENOMEM;
	}
	*zp = z;
	return 0;
}

static void zstd_make_room(struct perfdata_zstd *z, size_t more)
{
	if (z->room - z->size >= more)
		return;
	z->room = z->size + MAX(more, z->size);
	z->bytes = xrealloc_array(z->bytes, z->room, 1);
}

/*
 * Decompress the next block, behind the bytes that are there. *@z is made at the first call.
 * -EBADMSG: damaged, or larger than any recording; -EFBIG: all blocks are larger than @max bytes;
 * -ENOTSUP: built without libzstd; -ENOMEM.
 */
static int perfdata_zstd_add(struct perfdata_zstd **zp, const uint8_t *block, size_t size,
			     uint64_t max)
{
	ZSTD_inBuffer in = { .src = block, .size = size };
	int rc = *zp ? 0 : make(zp);
	struct perfdata_zstd *z = *zp;
	bool full;

	if (rc)
		return rc;
	z->in += size;
	zstd_make_room(z, MAX(8 * size, ROOM_MIN));
	do { /* a full buffer: the stream may hold more even if all input was taken */
		ZSTD_outBuffer o = { .dst = z->bytes + z->size, .size = z->room - z->size };
		size_t code = ZSTD_decompressStream(z->stream, &o, &in);

		z->out += o.pos;
		z->size += o.pos;
		full = o.pos == o.size;
		if (ZSTD_isError(code) || z->out > perfdata_zstd_limit(z->in) ||
		    (!o.pos && in.pos < in.size))
			return -EBADMSG;
		if (z->out > max) {
			/* The caller takes no more than @max bytes. */
			z->out -= o.pos;
			z->size -= o.pos;
			return -EFBIG;
		}
		if (full)
			zstd_make_room(z, ROOM_MIN);
	} while (in.pos < in.size || full);
	return 0;
}

static void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b)
{
	perfdata_bytes_borrow(b, z->bytes + z->walked, z->size - z->walked);
	b->window_at = z->at + z->walked;
	b->size += b->window_at;
}

static void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size)
{
	assert(size <= z->size - z->walked);
	z->walked += size;
}

static size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return z ? z->size - z->walked : 0;
}

static const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size)
{
	*size = z ? z->walked : 0;
	return z ? z->bytes : NULL;
}

static void perfdata_zstd_clear(struct perfdata_zstd *z)
{
	if (!z)
		return;
	memmove(z->bytes, z->bytes + z->walked, z->size - z->walked);
	z->at += z->walked;
	z->size -= z->walked;
	z->walked = 0;
}

static void perfdata_zstd_free(struct perfdata_zstd *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z->bytes);
	free(z);
}

#else

static int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size,
			     uint64_t max)
{
	return -ENOTSUP;
}

static void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b)
{
	perfdata_bytes_borrow(b, NULL, 0);
}

static void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size)
{
}

static size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return 0;
}

static const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size)
{
	*size = 0;
	return NULL;
}

static void perfdata_zstd_clear(struct perfdata_zstd *z)
{
}

static void perfdata_zstd_free(struct perfdata_zstd *z)
{
}
#endif

/*
 * The records of a perf.data file, noted in one bounded walk, and all that a scan knows.
 *
 * The walk over the records of a perf.data file: time, event and place of each that counts.
 *
 * One thread. Offsets and sizes of the file are checked in perfdata_bytes_at().
 */

/* The bytes of a sample that are read to sort it: the header, its event, its time. */
#define SAMPLE_HEAD (sizeof(struct perf_event_header) + 7 * 8)

/* Offset of the protection in MMAP2: behind the header, ids, range, and the file's identity. */
#define MMAP2_PROT_AT 64
#define MMAP2_NAME_AT 72

/* CPUs are read one after another in a round: its last records may have earlier ones behind. */
#define FIRST_NS 50000000ULL

/* The bytes that records are read from. */
struct perfdata_source {
	struct perfdata_bytes *bytes;
	bool inflated;
};

/* Note the first damage, for the user, and read no further. */
__attribute__((format(printf, 2, 3))) static void perfdata_damage(struct perfdata_scan *s,
								  const char *fmt, ...)
{
	va_list ap;

	if (!s->found.stop) {
		va_start(ap, fmt);
		vsnprintf(s->found.note, sizeof(s->found.note), fmt, ap);
		va_end(ap);
	}
	s->found.stop = true;
}

/* Return the offset of the time in a sample, from the header's end; SIZE_MAX: it has none. */
static size_t sample_time_offset(uint64_t type)
{
	if (!(type & PERF_SAMPLE_TIME))
		return SIZE_MAX;
	return 8 * (size_t)(!!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) +
			    !!(type & PERF_SAMPLE_TID));
}

/* Return the offset of the time in the id block of other records, back from the record's end. */
static size_t other_time_offset(uint64_t type)
{
	if (!(type & PERF_SAMPLE_TIME))
		return SIZE_MAX;
	return 8 * (size_t)(1 + !!(type & PERF_SAMPLE_ID) + !!(type & PERF_SAMPLE_STREAM_ID) +
			    !!(type & PERF_SAMPLE_CPU) + !!(type & PERF_SAMPLE_IDENTIFIER));
}

/* Return the event of a record: by its identifier where there is one. */
static uint32_t event_of_record(const struct perfdata_scan *s, const uint8_t *at, uint32_t type,
				size_t size)
{
	uint64_t id;
	int event;

	if (s->events.nr <= 1 ||
	    !(s->events.events[0].layout.sample_type & PERF_SAMPLE_IDENTIFIER) ||
	    size < sizeof(struct perf_event_header) + 8)
		return 0;
	id = bytes_u64(type == PERF_RECORD_SAMPLE ? at + sizeof(struct perf_event_header)
						  : at + size - 8);
	event = perfdata_events_of(&s->events, id);
	return event < 0 ? 0 : (uint32_t)event;
}

/*
 * Return whether the record is a mapping of data: no address is ever looked up in it, so it is not
 * sorted. Mappings of the kernel's image may be marked as data also, and are kept: they have its
 * address.
 */
static bool is_data(const uint8_t *at, const struct perf_event_header *h)
{
	if ((h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		return false;
	if (h->type == PERF_RECORD_MMAP)
		return h->misc & PERF_RECORD_MISC_MMAP_DATA;
	return h->type == PERF_RECORD_MMAP2 && h->size >= MMAP2_PROT_AT + sizeof(uint32_t) &&
	       !(record_prot(bytes_u32(at + MMAP2_PROT_AT)) & PROT_EXEC);
}

/* Return the record's time; a record without one follows the one before. */
static uint64_t time_of(const struct perfdata_scan *s, const struct record_layout *layout,
			const uint8_t *at, uint32_t type, size_t size)
{
	size_t offset, body = sizeof(struct perf_event_header);
	uint64_t time_ns;

	if (type == PERF_RECORD_SAMPLE) {
		offset = sample_time_offset(layout->sample_type);
		if (offset <= size && size - offset >= body + 8) {
			time_ns = bytes_u64(at + body + offset);
			return time_ns < PERFDATA_TIME_NONE ? time_ns : s->found.max_ns;
		}
	} else if (layout->id_all) {
		offset = other_time_offset(layout->sample_type);
		if (offset <= size - body)
			return bytes_u64(at + size - offset);
	}
	return s->last_time_ns;
}

/* Count the sample for its event: by the id, which old recordings have behind other fields. */
static void count_sample(struct perfdata_scan *s, const uint8_t *at, size_t size)
{
	uint64_t type = s->events.events[0].layout.sample_type;
	size_t offset = sizeof(struct perf_event_header);
	int event = 0;

	if (!(type & PERF_SAMPLE_IDENTIFIER))
		offset += 8 * (size_t)(!!(type & PERF_SAMPLE_IP) + !!(type & PERF_SAMPLE_TID) +
				       !!(type & PERF_SAMPLE_TIME) + !!(type & PERF_SAMPLE_ADDR));
	if (type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID) && size >= offset + 8)
		event = perfdata_events_of(&s->events, bytes_u64(at + offset));
	assert(event < (int)s->events.nr);
	if (event >= 0)
		s->events.events[event].nr_samples++;
}

static void append_ref(struct perfdata_scan *s, const struct perfdata_ref *ref)
{
	if (s->nr_refs == s->room_refs) {
		s->room_refs = s->room_refs ? 2 * s->room_refs : 1024;
		s->refs = xrealloc_array(s->refs, s->room_refs, sizeof(*s->refs));
	}
	assert(s->nr_refs < s->room_refs);
	s->refs[s->nr_refs++] = *ref;
	s->has_refs = true;
}

/* @at: all of the record, or SAMPLE_HEAD of a sample. */
static void add_record(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		       const uint8_t *at, const struct perf_event_header *h)
{
	uint32_t event = event_of_record(s, at, h->type, h->size);
	struct perfdata_ref ref = { .event = (uint16_t)event,
				    .size = h->size,
				    .inflated = src->inflated };

	ref.at = offset;
	ref.time_ns = MIN(time_of(s, &s->events.events[event].layout, at, h->type, h->size),
			  PERFDATA_TIME_MAX);
	s->last_time_ns = ref.time_ns;
	s->found.max_ns = MAX(s->found.max_ns, ref.time_ns);
	s->found.begun |= h->type == PERF_RECORD_SAMPLE;
	if (h->type == PERF_RECORD_SAMPLE) {
		count_sample(s, at, h->size);
		s->found.has_kernel |= (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				       PERF_RECORD_MISC_KERNEL;
		if (!s->found.first_sample_ns || ref.time_ns < s->found.first_sample_ns)
			s->found.first_sample_ns = ref.time_ns;
		s->found.last_sample_ns = MAX(s->found.last_sample_ns, ref.time_ns);
	}
	s->has_refs = true;
	/* Of others only the time counts: places of them may need more memory than the file. */
	if (record_is_known(h->type))
		append_ref(s, &ref);
}

/* Note a record with frames of a language: a function is needed before all samples. */
static void add_lang_record(struct perfdata_scan *s, const struct perfdata_source *src,
			    uint64_t offset, const uint8_t *at, const struct perf_event_header *h)
{
	struct perfdata_ref ref = { .size = h->size, .inflated = src->inflated };

	if (lang_record_kind(at, h->size, &ref.time_ns) == LANG_RECORD_NONE)
		return;
	ref.at = offset;
	append_ref(s, &ref);
}

static uint64_t walk(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		     uint64_t size, int *code);

/* Note the records of decompressed bytes; one that is cut goes on in the next block. */
static int walk_inflated(struct perfdata_scan *s)
{
	struct perfdata_bytes inner;
	const struct perfdata_source src = { &inner, true };
	int code = 0;

	if (!s->zstd)
		return 0;
	perfdata_zstd_bytes(s->zstd, &inner);
	perfdata_zstd_walked(s->zstd, walk(s, &src, inner.window_at, inner.window_size, &code));
	return code;
}

static int inflate(struct perfdata_scan *s, const uint8_t *block, size_t size)
{
	bool stream = s->found.kind == PERFDATA_KIND_STREAM;
	int code =
		perfdata_zstd_add(&s->zstd, block, size, stream ? UINT64_MAX : PERFDATA_ZSTD_MAX);

	if (code == -EFBIG) {
		perfdata_damage(s, "not all is read: more than %llu GiB of decompressed records",
				PERFDATA_ZSTD_MAX >> 30);
		return 0;
	}
	if (code == -EBADMSG) {
		perfdata_damage(s, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	return code ? code : walk_inflated(s);
}

/* A block that gives its size, since the record is padded. */
static int inflate_sized(struct perfdata_scan *s, const uint8_t *body, size_t size)
{
	if (size < 8 || bytes_u64(body) > size - 8) {
		perfdata_damage(s, "recording damaged: a compressed block cannot be read");
		return 0;
	}
	return inflate(s, body + 8, bytes_u64(body));
}

/*
 * Handle one of perf's own records. *@extra: bytes behind it that belong to it. A compressed block
 * has no record with such bytes, and no compressed one.
 */
static int user_record(struct perfdata_scan *s, const struct perfdata_source *src,
		       const uint8_t *at, const struct perf_event_header *h, uint64_t *extra)
{
	const size_t body = sizeof(*h);

	if (src->inflated && (h->type == PERFDATA_COMPRESSED || h->type == PERFDATA_COMPRESSED2 ||
			      h->type == PERFDATA_TRACING_DATA || h->type == PERFDATA_AUXTRACE)) {
		perfdata_damage(s, "recording damaged: record %u in a compressed block", h->type);
		return 0;
	}
	switch (h->type) {
	case PERFDATA_HEADER_ATTR:
		s->found.version++;
		return perfdata_header_attr(&s->events, at, h->size, s->has_refs, s->fixed);
	case PERFDATA_HEADER_BUILD_ID:
		s->found.version++;
		perfdata_build_ids_add(&s->events.build_ids, &s->events.kernel, at, h->size);
		return 0;
	case PERFDATA_TRACING_DATA:
		*extra = h->size >= body + 4 ? (bytes_u32(at + body) + 7ULL) & ~7ULL : 0;
		return 0;
	case PERFDATA_AUXTRACE:
		s->aux = true;
		*extra = h->size >= body + 8 ? bytes_u64(at + body) : 0;
		return 0;
	case PERFDATA_HEADER_FEATURE:
		s->found.version++;
		perfdata_header_piped_feature(&s->events, at, h->size);
		return 0;
	case PERFDATA_FINISHED_ROUND:
		/* A CPU's ring may have had records of the last round, but none of earlier ones. */
		s->found.flush_ns = s->next_flush_ns;
		/* The first rows soon: a late record is late for a few samples only. */
		if (!s->found.flush_ns)
			s->found.flush_ns = s->found.max_ns - MIN(s->found.max_ns, FIRST_NS);
		s->next_flush_ns = s->found.max_ns;
		s->found.begun = true;
		return 0;
	case PERFDATA_EVENT_UPDATE:
		s->found.version++;
		perfdata_header_update(&s->events, at, h->size);
		return 0;
	case PERFDATA_COMPRESSED:
		return inflate(s, at + body, h->size - body);
	case PERFDATA_COMPRESSED2:
		return inflate_sized(s, at + body, h->size - body);
	default:
		return 0;
	}
}

/* The header of the record at @at; false: it does not fit into @left bytes. */
static bool read_header(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t at,
			uint64_t left, struct perf_event_header *h)
{
	const uint8_t *p = left < sizeof(*h) ? NULL : perfdata_bytes_at(src->bytes, at, sizeof(*h));

	if (!p)
		return false;
	memcpy(h, p, sizeof(*h));
	if (h->size < sizeof(*h))
		perfdata_damage(s, "recording damaged: record of %u bytes at %s %" PRIu64, h->size,
				src->inflated ? "decompressed byte" : "byte", at);
	return h->size >= sizeof(*h) && h->size <= left;
}

/* Test whether a part is complete: the caller takes it before the walk goes on. */
static bool is_full(const struct perfdata_scan *s, const struct perfdata_source *src,
		    uint64_t offset)
{
	size_t inflated;

	if (src->inflated)
		return s->nr_refs >= PERFDATA_PART_REFS;
	perfdata_zstd_new(s->zstd, &inflated);
	return s->nr_refs >= PERFDATA_PART_REFS || offset >= s->pause ||
	       inflated >= PERFDATA_PART_INFLATED;
}

/*
 * Return whether a record is kept: mappings of data are not, but for parts of a file on both sides
 * of executable memory, to which the program moved its text (perfdata_identify()). *@bytes are of
 * the record, read again if others were read.
 */
static bool is_kept(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		    const uint8_t **bytes, const struct perf_event_header *h)
{
	const struct perfdata_near last = s->near;
	const uint8_t *at = *bytes, *below;
	bool next, kept = !is_data(at, h), memory;

	if (h->type != PERF_RECORD_MMAP2 || h->size <= MMAP2_NAME_AT)
		return kept;
	s->near = (struct perfdata_near){ .at = offset, .pid = bytes_u32(at + 8), .size = h->size };
	s->near.end = bytes_u64(at + 16) + bytes_u64(at + 24);
	next = last.pid == s->near.pid && last.end == bytes_u64(at + 16);
	memory = kept && next &&
		 perfdata_is_memory((const char *)at + MMAP2_NAME_AT, h->size - MMAP2_NAME_AT);
	s->near.base = memory ? last.base : bytes_u64(at + 16) - bytes_u64(at + 32);
	kept |= next && last.memory && s->near.base == last.base;
	s->near.memory = memory;
	s->near.left_out = !kept;
	below = memory && last.left_out ? perfdata_bytes_at(src->bytes, last.at, last.size) : NULL;
	if (below) {
		const struct perf_event_header file = { h->type, h->misc, last.size };

		add_record(s, src, last.at, below, &file);
		*bytes = perfdata_bytes_at(src->bytes, offset, h->size);
	}
	return kept && *bytes;
}

/* Note the records in @size bytes from @offset. Return how many bytes were whole records. */
static uint64_t walk(struct perfdata_scan *s, const struct perfdata_source *src, uint64_t offset,
		     uint64_t size, int *code)
{
	uint64_t done = 0, extra;
	struct perf_event_header h;

	while (!*code && !s->full && !s->found.stop &&
	       read_header(s, src, offset + done, size - done, &h)) {
		const uint8_t *at;

		s->full = is_full(s, src, offset + done);
		if (s->full)
			break;
		at = perfdata_bytes_at(src->bytes, offset + done,
				       h.type == PERF_RECORD_SAMPLE ? MIN(h.size, SAMPLE_HEAD)
								    : h.size);
		if (!at)
			break;
		extra = 0;
		if (h.type == LANG_RECORD_TYPE && s->events.nr)
			add_lang_record(s, src, offset + done, at, &h);
		else if (h.type >= PERFDATA_USER_FIRST)
			*code = user_record(s, src, at, &h, &extra);
		else if (s->events.nr && is_kept(s, src, offset + done, &at, &h))
			add_record(s, src, offset + done, at, &h);
		if (extra > size - done - h.size)
			break;
		done += h.size + extra;
	}
	return done;
}

/*
 * Note the records from found.walked on, up to the end of a part. A record cut at the end is left.
 * 0 or -errno; s->full: there is more.
 */
static int perfdata_walk(struct perfdata_scan *s)
{
	const struct perfdata_source file = { &s->bytes, false };
	int code;

	s->full = false;
	s->pause = s->found.walked + PERFDATA_PART_SIZE;
	code = walk_inflated(s);
	if (!code && !s->full)
		s->found.walked += walk(s, &file, s->found.walked, s->end - s->found.walked, &code);
	return code;
}

/* Make @s empty. */
static void perfdata_scan_init(struct perfdata_scan *s)
{
	*s = (struct perfdata_scan){ .bytes = { .fd = -1, .pipe = -1, .memory = -1 } };
}

static void perfdata_scan_fini(struct perfdata_scan *s)
{
	perfdata_zstd_free(s->zstd);
	perfdata_events_fini(&s->events);
	perfdata_bytes_close(&s->bytes);
	free(s->refs);
	s->refs = NULL;
	s->zstd = NULL;
}

/* Note missing data, unless damage was met. */
static void check_whole(struct perfdata_scan *s)
{
	const struct perfdata_extent *extent = &s->extent;
	uint64_t left = s->found.nr_bad + perfdata_zstd_left(s->zstd);

	if (s->found.stop)
		return;
	if (s->stopped)
		perfdata_damage(s, "stopped while it was read: %" PRIu64 " bytes of the pipe",
				s->bytes.size);
	else if (extent->missing)
		perfdata_damage(s,
				"recording cut short: %" PRIu64 " of %" PRIu64 " bytes are "
				"missing",
				extent->missing, extent->missing + extent->data.size);
	else if (extent->cut)
		perfdata_damage(s, "recording cut short: all samples are there, but not the "
				   "facts behind them, such as build-ids");
	else if (left)
		perfdata_damage(s, "recording cut short: it ends in the middle of a record");
	else if (extent->unfinished)
		perfdata_damage(s, "recording not finished: its writer was killed");
	else if (s->aux)
		perfdata_damage(s, "AUX traces (Intel PT, SPE, CoreSight) are not decoded: "
				   "see perf script");
}

/* Read the header; s->bytes are there. 0, -E2BIG: too many events, or -EINVAL. */
static int perfdata_scan_open(struct perfdata_scan *s)
{
	int code = perfdata_header_read(&s->bytes, &s->events, &s->extent);

	assert(!s->opened);
	s->opened = true;
	s->found.version++;
	s->found.walked = s->extent.data.offset;
	s->end = s->extent.data.offset + s->extent.data.size;
	return code;
}

/*
 * Find more records, until found.done. 0, -ENOTSUP: compressed, and built without libzstd, -ENOMEM,
 * -E2BIG or -EINVAL.
 */
static int perfdata_scan_more(struct perfdata_scan *s)
{
	int code = perfdata_walk(s);

	s->found.done = code || !s->full;
	if (code || !s->found.done || s->found.kind == PERFDATA_KIND_STREAM)
		return code;
	s->found.nr_bad = s->end - s->found.walked;
	check_whole(s);
	return s->events.nr ? 0 : -EINVAL;
}

/* Note a record that is cut at the end of a pipe. */
static void end_stream(struct perfdata_scan *s)
{
	s->found.done = true;
	s->found.nr_bad = s->bytes.size - s->found.walked;
	if (s->found.nr_bad || perfdata_zstd_left(s->zstd))
		perfdata_damage(s, "recording cut short: it ends in the middle of a record");
}

/*
 * Add bytes of a pipe, and find their records. @size 0: this was the end. As perfdata_scan_more();
 * found.kind and found.stop tell whether to go on.
 */
static int perfdata_scan_feed(struct perfdata_scan *s, const uint8_t *bytes, size_t size)
{
	int code;

	if (!size) {
		end_stream(s);
		return 0;
	}
	perfdata_bytes_append(&s->bytes, bytes, size, s->found.walked);
	if (!s->opened) {
		if (s->bytes.size < sizeof(struct perfdata_header))
			return 0;
		code = perfdata_scan_open(s);
		s->found.kind = !code && s->extent.data.offset == PERFDATA_PIPE_HEADER
					? PERFDATA_KIND_STREAM
					: PERFDATA_KIND_WHOLE;
	}
	s->end = s->bytes.size;
	return s->found.kind == PERFDATA_KIND_STREAM ? perfdata_scan_more(s) : 0;
}

/*
 * Return the decompressed bytes of the records since perfdata_scan_clear(), whole ones; *@size may
 * be 0.
 */
static const uint8_t *perfdata_scan_inflated(const struct perfdata_scan *s, size_t *size)
{
	return perfdata_zstd_new(s->zstd, size);
}

/* Forget the refs and the decompressed bytes. */
static void perfdata_scan_clear(struct perfdata_scan *s)
{
	s->nr_refs = 0;
	perfdata_zstd_clear(s->zstd);
}

/*
 * Scan a recording, and send what was found since the last call.
 *
 * Runs in the worker, or in the thread of the call. A worker has one recording, for all its life.
 */

/* The recordings that are open, by reader. */
static struct perfdata_scan *scans[PERFDATA_READERS];

static void close_scan(uint32_t slot)
{
	assert(slot < ARRAY_SIZE(scans));
	if (!scans[slot])
		return;
	perfdata_scan_fini(scans[slot]);
	free(scans[slot]);
	scans[slot] = NULL;
}

static struct perfdata_scan *new_scan(uint32_t slot)
{
	assert(slot < ARRAY_SIZE(scans) && !scans[slot]);
	close_scan(slot);
	scans[slot] = xcalloc(1, sizeof(*scans[slot]));
	perfdata_scan_init(scans[slot]);
	return scans[slot];
}

static int put_found(struct sandbox_reply *reply, struct perfdata_scan *s)
{
	struct perfdata_answer a = { .nr_refs = s->nr_refs, .found = s->found };
	const uint8_t *inflated;
	size_t size;

	inflated = perfdata_scan_inflated(s, &size);
	a.inflated = size;
	sandbox_put(reply, inflated, size);
	sandbox_put(reply, s->refs, s->nr_refs * sizeof(*s->refs));
	sandbox_put(reply, &a, sizeof(a));
	perfdata_scan_clear(s);
	return 0;
}

static void put_event(struct sandbox_reply *reply, const struct perfdata_events *t, uint32_t i)
{
	struct perfdata_fact_event ev = {
		.attr = t->attrs[i],
		.nr_samples = t->events[i].nr_samples,
		.group = t->events[i].event.group,
	};

	assert(i < t->nr);
	memcpy(ev.name, t->events[i].event.name, sizeof(ev.name));
	sandbox_put(reply, &ev, sizeof(ev));
}

static int put_facts(struct sandbox_reply *reply, const struct perfdata_events *t)
{
	struct perfdata_facts f = {
		.nr_events = t->nr,
		.nr_ids = t->nr_ids,
		.nr_build_ids = t->build_ids.nr,
		.names_size = (uint32_t)t->build_ids.names_size,
		.kernel = t->kernel,
	};

	memcpy(f.machine, t->machine, sizeof(f.machine));
	memcpy(f.host, t->host, sizeof(f.host));
	sandbox_put(reply, &f, sizeof(f));
	for (uint32_t i = 0; i < t->nr; i++)
		put_event(reply, t, i);
	sandbox_put(reply, t->ids, t->nr_ids * sizeof(*t->ids));
	sandbox_put(reply, t->build_ids.ids, t->build_ids.nr * sizeof(*t->build_ids.ids));
	sandbox_put(reply, t->build_ids.names, t->build_ids.names_size);
	return 0;
}

/* Keep the file of the call, and read its header. */
static int open_file(struct sandbox_call *c, const struct perfdata_request *r)
{
	struct perfdata_scan *s = new_scan(r->slot);

	if (c->fds[0] < 0)
		return -EINVAL;
	s->bytes.fd = c->fds[0];
	s->bytes.size = r->size;
	/* To read ahead is up to the caller. */
	s->bytes.ahead = r->size;
	c->fds[0] = -1;
	s->stopped = r->stopped;
	return perfdata_scan_open(s);
}

static int serve_scan(struct sandbox_call *c, const struct perfdata_request *r)
{
	struct perfdata_scan *s = scans[r->slot];
	int code;

	switch (r->call) {
	case PERFDATA_OPEN:
		return open_file(c, r);
	case PERFDATA_CLOSE:
		close_scan(r->slot);
		return 0;
	case PERFDATA_FACTS:
		return s ? put_facts(&c->reply, &s->events) : -EINVAL;
	case PERFDATA_FEED:
		s = s ? s : new_scan(r->slot);
		s->fixed = r->fixed;
		code = perfdata_scan_feed(s, (const uint8_t *)c->request + sizeof(*r),
					  c->size - sizeof(*r));
		break;
	case PERFDATA_MORE:
		code = s ? perfdata_scan_more(s) : -EINVAL;
		break;
	default:
		code = -EINVAL;
	}
	return code ? code : put_found(&c->reply, s);
}

static int serve(struct sandbox_call *c)
{
	struct perfdata_request r;

	if (c->size < sizeof(r))
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	return r.slot < PERFDATA_READERS ? serve_scan(c, &r) : -EINVAL;
}

#define READER(nr)                                                                                 \
	{                                                                                          \
		.kind = SANDBOX_RECORDING + (nr), .name = "proftop-record", .serve = serve,        \
		.memory_max = 4ULL << 30, .reply_max = 1UL << 30, .stateful = true,                \
	}

const struct sandbox_reader perfdata_readers[PERFDATA_READERS] = { READER(0), READER(1), READER(2),
								   READER(3) };

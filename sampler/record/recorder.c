// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --record: raw records through a lane for each CPU to the writer thread, which never delays a
 * sampler; the newest ones in memory, for the files of traps.
 *
 * Threads: producers (one a lane), the builder. The file is written under a lock that no producer
 * takes.
 */
#include "sampler/record/record.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/process/process.h"

struct blackbox;
struct script_functions;
struct iovec;
struct perf_event_header;
struct perfdata_writer;
struct slow_reads;

/* Reads that hang in processes of one real user; then its other ones are left out. */
#define SLOW_READS_OF_USER 8U
/* A read that hung counts for SLOW_READS_REST * @hang_ns at least, also if it ends before. */
#define SLOW_READS_REST 40U

/* Read a file up to @max bytes: malloc'ed, its size in *@size; NULL: not there. */
typedef char *(*slow_reads_fn)(const char *path, size_t max, size_t *size);

/*
 * Bytes on their way from one thread to another: a ring for whole records,
 * one producer, one consumer, no lock. A record that does not fit is refused, and the producer
 * counts it.
 */

struct spool {
	uint8_t *data;
	uint64_t size;				/* a power of two */
	_Alignas(CACHELINE) atomic_ullong head; /* producer: release; consumer: acquire */
	uint64_t seen_tail;			/* producer's: tail as it last read it */
	_Alignas(CACHELINE) atomic_ullong tail; /* consumer: release; producer: acquire */
};

/*
 * Records of the existing state: the kernel's code, the names and mappings of running processes,
 * from /proc, as perf record puts them in front.
 *
 * Reads files, allocates: never on a sampler thread. A process controls the content of /proc/PID:
 * names are cut, padded and copied, no more.
 */

/* The id block of all our records (sample_id_all), in the order of perf_event_open(2). */
struct synth_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Takes one whole record. */
typedef void (*synth_fn)(void *ctx, const void *record, size_t size);

struct synth {
	const char *root; /* "": /proc; else a folder of a test */
	uint64_t time_ns; /* in the id block; 0: before everything, as perf has it */
	synth_fn fn;
	void *ctx;
	struct slow_reads *reads; /* of mappings, made with synth_read_file(); it counts the ones
				   * that hang, which are left out */
};

/*
 * The members of a recorder, for its thread, sampler threads and the builder.
 */

struct lost_record {
	struct perf_event_header h;
	uint64_t id, lost;
	struct synth_id trailer;
};

/* The producer's, but for the spool's tail; read by others when it is gone. */
struct recorder_lane {
	struct spool spool;
	struct lost_record lost; /* lost.lost: refused since the last record that went in */
	uint64_t nr_samples, nr_kernel_lost, nr_dropped;
	uint64_t unsaved;	     /* the writer's: bytes without memory, since the last file */
	bool side;		     /* no samples here: each record counts */
	_Atomic uint64_t drained_ns; /* release: earlier records are in; acquire by the writer */
};

/* A file that is written beside the black box: who does the next step. */
enum also {
	ALSO_NONE,
	ALSO_BEGINS, /* the writer; the builder may end it before */
	ALSO_ON,     /* the builder, or the writer after a failure */
	ALSO_ENDS,   /* the writer, which may have to begin it first */
	ALSO_ENDED,  /* the builder takes the result */
};

struct recorder {
	struct perfdata_writer *file;
	pthread_mutex_t file_lock;
	struct perfdata_attrs attrs; /* builder; the writer before it starts and after it ended */
	struct recorder_lane *lanes;
	uint32_t nr_lanes; /* CPUs; the last one is the side-band's */
	const char *root;
	uint64_t lost;	   /* set before the writer is stopped */
	uint64_t every_ns; /* the shortest round */
	uint64_t round_ns; /* the writer's: the last round ended then */
	const struct script_functions *codes;
	struct lang_record_cursor functions; /* the writer's: in the file */

	struct slow_reads *reads;      /* the writer's */
	struct slow_reads *task_reads; /* the builder's */

	pthread_t writer;
	bool runs;
	int stop_fd;
	sem_t ready;		/* posted once: existing processes are in the file */
	atomic_int error;	/* relaxed: a flag for the builder */
	_Atomic uint64_t bytes; /* relaxed: of records in the file */
	bool stream;
	atomic_bool identified; /* relaxed: a build-id is in the stream */
	uint64_t start_ns;	/* the writer's */

	struct blackbox *blackbox; /* the writer's; @file: also written, while it is wanted */
	/* Recursive, for recorder_hold(). */
	pthread_mutex_t save_lock; /* of the members below, and of @attrs with a blackbox */
	bool noted;		   /* events of @attrs are not in the stream yet */
	uint8_t *queued;	   /* the builder's records, for a file */
	uint32_t queued_size, queued_room;
	uint64_t nr_unqueued; /* the builder's: too many for the queue */
	enum also also;	      /* of the file beside the black box */
	char *also_path;
	int also_code; /* the first failure to write it, -errno; the writer's */
	struct err also_err;
	char *save_path; /* NULL: none is wanted, or it is done */
	uint64_t save_ns;
	bool saved;
	int64_t saved_bytes;
	uint64_t saved_unmapped; /* processes */
	uint64_t saved_without;	 /* bytes that are missing */
	struct err saved_err;
};

/*
 * Records made from /proc of running processes and the kernel; mappings that may hang are read by
 * helpers.
 *
 * Runs on: the recorder's writer, or the builder. Invariant: a record is as long as its header
 * says, a multiple of 8, its name ends in a NUL.
 */

#define NAME_MAX_BYTES 4096
#define PATH_ROOM      512

/* If this fails, struct synth_id does not match the attributes. */
_Static_assert(ATTR_SIDE_TYPE == (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				  PERF_SAMPLE_CPU) &&
		       sizeof(struct synth_id) == 32,
	       "id block");

_Static_assert((RECORD_SAMPLE_TYPE & (ATTR_SIDE_TYPE | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID)) ==
		       ATTR_SIDE_TYPE,
	       "one id block for all records");

struct comm_head {
	struct perf_event_header h;
	uint32_t pid, tid;
};

struct mmap_head {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t start, size, pgoff;
};

struct mmap2_head {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t start, size, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

/* Append head, name, and id block. @head begins with the header; its size is set here. */
static void emit(const struct synth *s, void *head, size_t head_size, const char *name,
		 size_t name_size)
{
	uint8_t record[sizeof(struct mmap2_head) + NAME_MAX_BYTES + 8 + sizeof(struct synth_id)];
	struct perf_event_header *h = head;
	const struct synth_id id = { .time_ns = s->time_ns };
	size_t padded;

	name_size = MIN(name_size, (size_t)NAME_MAX_BYTES);
	padded = (name_size + 8) & ~(size_t)7; /* a NUL at least */
	h->size = (uint16_t)(head_size + padded + sizeof(id));
	memcpy(record, head, head_size);
	memset(record + head_size, 0, padded);
	memcpy(record + head_size, name, name_size);
	memcpy(record + head_size + padded, &id, sizeof(id));
	s->fn(s->ctx, record, h->size);
}

/* The kernel's mapping, if its addresses may be seen. */
static void synth_kernel(const struct synth *s)
{
	static const char name[] = "[kernel.kallsyms]_text";
	struct mmap_head m = {
		.h = { .type = PERF_RECORD_MMAP, .misc = PERF_RECORD_MISC_KERNEL },
		.pid = UINT32_MAX,
	};
	char path[PATH_ROOM], line[512], symbol[16];
	unsigned long long address;
	uint64_t end = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/kallsyms", s->root);
	f = fopen(path, "re");
	if (!f)
		return;
	while (!end && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*c %15s", &address, symbol) != 2)
			continue;
		if (!strcmp(symbol, "_text"))
			m.start = address;
		else if (!strcmp(symbol, "_etext"))
			end = address;
	}
	fclose(f);
	if (!m.start || end <= m.start)
		return; /* hidden: kernel.kptr_restrict */
	m.pgoff = m.start;
	m.size = end - m.start;
	emit(s, &m, sizeof(m), name, sizeof(name) - 1);
}

/* All of a file up to @max bytes; malloc'ed. NULL: not there. */
static char *synth_read_file(const char *path, size_t max, size_t *size)
{
	size_t room = 4096;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	ssize_t nr;

	assert(max);
	if (fd < 0)
		return NULL;
	text = xcalloc(1, room);
	*size = 0;
	while (*size < max && (nr = read(fd, text + *size, room - *size)) > 0) {
		*size += (size_t)nr;
		if (*size == room)
			text = xrealloc_array(text, room *= 2, 1);
	}
	close(fd);
	return text;
}

static void synth_comm(const struct synth *s, pid_t pid, pid_t tid)
{
	struct comm_head c = {
		.h = { .type = PERF_RECORD_COMM },
		.pid = (uint32_t)pid,
		.tid = (uint32_t)tid,
	};
	char path[PATH_ROOM], *name;
	size_t size;

	snprintf(path, sizeof(path), "%s/proc/%d/task/%d/comm", s->root, (int)pid, (int)tid);
	name = synth_read_file(path, 64, &size);
	if (!name)
		return;
	if (size && name[size - 1] == '\n')
		size--;
	/* As the kernel's: TASK_COMM_LEN with its NUL. */
	emit(s, &c, sizeof(c), name, MIN(size, (size_t)15));
	free(name);
}

static void synth_map(const struct synth *s, pid_t pid, const struct procfs_map *map)
{
	struct mmap2_head m = {
		.h = { .type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER },
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.start = map->start,
		.size = map->end - map->start,
		.pgoff = map->offset,
		.maj = map->maj,
		.min = map->min,
		.ino = map->ino,
		.prot = PROT_READ | (map->exec ? PROT_EXEC : 0),
		.flags = MAP_PRIVATE,
	};
	char name[NAME_MAX_BYTES];
	size_t size = procfs_unescape(name, sizeof(name), map->path, map->path_size);

	if (!map->exec)
		m.h.misc |= PERF_RECORD_MISC_MMAP_DATA;
	if (size)
		emit(s, &m, sizeof(m), name, size);
	else
		emit(s, &m, sizeof(m), "//anon", 6);
}

/* Unwinders read an object's tables through its mappings that hold no code. */
static bool is_object(const struct procfs_map *map)
{
	return map->path_size && map->path[0] == '/';
}

/* Return whether @map is memory of no file on the disk. */
static bool is_memory(const struct procfs_map *map)
{
	static const char memfd[] = "/memfd:";

	return !is_object(map) ||
	       (map->path_size >= sizeof(memfd) && !memcmp(map->path, memfd, sizeof(memfd) - 1));
}

static bool continues(const struct procfs_map *file, const struct procfs_map *map)
{
	return map->maj == file->maj && map->min == file->min && map->ino == file->ino &&
	       map->offset - file->offset == map->start - file->start;
}

/*
 * Make @map, executable memory of no file, a mapping of @file, which is below it, if the lines
 * behind it, @at, go on with that file: the program has moved its text there (huge pages).
 */
static void restore_text(struct procfs_map *map, const struct procfs_map *file,
			 struct procfs_text at)
{
	struct procfs_map next = *map, text = *file;
	uint64_t end = map->end;

	while (procfs_next_map(&at, &next) && next.start == end && next.exec && is_memory(&next))
		end = next.end;
	if (next.start != end || is_memory(&next) || !continues(file, &next))
		return;
	text.offset += map->start - file->start;
	text.start = map->start;
	text.end = map->end;
	text.exec = true;
	*map = text;
}

static char *slow_reads_maps(struct slow_reads *r, const char *process, size_t *size);

static void synth_maps(const struct synth *s, pid_t pid)
{
	char path[PATH_ROOM], *text;
	struct procfs_text at = { 0 };
	struct procfs_map map, file = { .end = 0 };
	size_t size;

	snprintf(path, sizeof(path), "%s/proc/%d", s->root, (int)pid);
	text = slow_reads_maps(s->reads, path, &size);
	if (!text)
		return;
	at.at = text;
	at.end = text + size;
	while (procfs_next_map(&at, &map)) {
		if (map.exec && is_memory(&map) && file.end && file.end == map.start)
			restore_text(&map, &file, at);
		file = is_memory(&map) ? (struct procfs_map){ .end = 0 } : map;
		if (map.exec || is_object(&map))
			synth_map(s, pid, &map);
	}
	free(text);
}

/* Call @fn for each entry of @path that is a number. */
static void each_number(const struct synth *s, const char *path, pid_t pid,
			void (*fn)(const struct synth *s, pid_t pid, pid_t number))
{
	DIR *dir = opendir(path);
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]))
			fn(s, pid, (pid_t)atoi(d->d_name));
	closedir(dir);
}

/* Names of the threads and code mappings of one process; nothing if it is gone. */
static void put_process(const struct synth *s, pid_t pid)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/proc/%d/task", s->root, (int)pid);
	each_number(s, path, pid, synth_comm);
	synth_maps(s, pid);
}

/* The process of a task, or if the task is not its first, the task's name alone. */
static void synth_task(const struct synth *s, pid_t tid)
{
	char path[PATH_ROOM], *text;
	uint64_t tgid = 0;
	size_t size;

	snprintf(path, sizeof(path), "%s/proc/%d/status", s->root, (int)tid);
	text = synth_read_file(path, 4096, &size);
	if (!text)
		return;
	if (!procfs_status_number(text, size, "Tgid", &tgid) || tgid == (uint64_t)tid)
		put_process(s, tid);
	else
		synth_comm(s, (pid_t)tgid, tid);
	free(text);
}

static void one_process(const struct synth *s, pid_t pid, pid_t number)
{
	put_process(s, number);
}

/* All of them. */
static void synth_processes(const struct synth *s)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/proc", s->root);
	each_number(s, path, 0, one_process);
}

/*
 * Mappings of processes in /proc, read by helpers: an exec holds up each reader of the mappings of
 * its process for as long as a file system of any user does not respond.
 *
 * Threads: one owner at a time.
 */

/*
 * One job for each process; one that hangs is kept until its read ends, and its thread is lost for
 * as long. Of one user only some are: others have the rest of the helpers.
 */

#define END_NS	   50000000ULL
#define STATUS_MAX 4096

/* Of a name in the folder, with its slash. */
#define NAME_ROOM 8

struct slow_job {
	struct job job;
	slow_reads_fn read;
	uint64_t began_ns;
	uint64_t user; /* its real uid, once it hangs; UINT64_MAX: unknown */
	char process[PATH_ROOM];
	char *text;
	size_t size;
};

struct slow_reads {
	slow_reads_fn read;
	uint64_t hang_ns;
	struct helpers *helpers;
	struct slow_job *hung[HELPERS_MAX]; /* some have ended, but not long ago */
	unsigned int nr_hung;
	uint64_t nr_left_out;
};

static void run(struct job *job)
{
	struct slow_job *j = (struct slow_job *)job;
	char path[PATH_ROOM + NAME_ROOM];

	snprintf(path, sizeof(path), "%s/maps", j->process);
	j->text = j->read(path, PROCFS_MAPS_SIZE_MAX, &j->size);
	/* Mappings that arrive late are not kept: they may have 16 MiB. */
	if (!atomic_load_explicit(&job->watch.cancel, memory_order_relaxed))
		return;
	free(j->text);
	j->text = NULL;
}

static void drop(struct job *job)
{
	struct slow_job *j = (struct slow_job *)job;

	free(j->text);
	free(j);
}

/* @hang_ns: a read that takes longer hangs. NULL: out of memory. */
static struct slow_reads *slow_reads_new(slow_reads_fn read, uint64_t hang_ns)
{
	struct slow_reads *r = calloc(1, sizeof(*r));

	assert(read && hang_ns);
	if (!r || helpers_new(&r->helpers, -1)) {
		free(r);
		return NULL;
	}
	r->read = read;
	r->hang_ns = hang_ns;
	return r;
}

/* Return the real uid of a process, from its status, which does not hang; UINT64_MAX: unknown. */
static uint64_t user_of(const struct slow_reads *r, const char *process)
{
	char path[PATH_ROOM + NAME_ROOM], *text;
	uint64_t user;
	size_t size;

	snprintf(path, sizeof(path), "%s/status", process);
	text = r->read(path, STATUS_MAX, &size);
	if (!text || !procfs_status_number(text, size, "Uid", &user))
		user = UINT64_MAX;
	free(text);
	return user;
}

/* Free the reads that have ended, but not soon: else a user could end and begin them in a loop. */
static void tidy(struct slow_reads *r)
{
	uint64_t now_ns = time_now_ns();
	unsigned int kept = 0;

	for (unsigned int i = 0; i < r->nr_hung; i++) {
		struct slow_job *j = r->hung[i];

		if (helper_job_done(&j->job) &&
		    now_ns >= j->began_ns + SLOW_READS_REST * r->hang_ns)
			drop(&j->job);
		else
			r->hung[kept++] = j;
	}
	r->nr_hung = kept;
}

/* Test whether a process is left out: it hangs, or too many of its user or of all do. */
static bool is_left_out(const struct slow_reads *r, const char *process)
{
	unsigned int nr_of_user = 0;
	uint64_t user;

	for (unsigned int i = 0; i < r->nr_hung; i++)
		if (!helper_job_done(&r->hung[i]->job) && !strcmp(r->hung[i]->process, process))
			return true;
	if (r->nr_hung < SLOW_READS_OF_USER)
		return false;
	user = user_of(r, process);
	for (unsigned int i = 0; i < r->nr_hung; i++)
		nr_of_user += r->hung[i]->user == user;
	return nr_of_user >= SLOW_READS_OF_USER || r->nr_hung == HELPERS_MAX;
}

/* Start a read; NULL: out of memory, or of threads. */
static struct slow_job *start(struct slow_reads *r, const char *process)
{
	struct slow_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop;
	j->read = r->read;
	j->began_ns = time_now_ns();
	snprintf(j->process, sizeof(j->process), "%s", process);
	if (helpers_start(r->helpers, &j->job)) {
		drop(&j->job);
		return NULL;
	}
	return j;
}

/* Wait for a read; false: it hangs, and is kept aside. */
static bool wait_for(struct slow_reads *r, struct slow_job *j)
{
	if (helpers_wait(r->helpers, &j->job, j->began_ns + r->hang_ns))
		return true;
	atomic_store_explicit(&j->job.watch.cancel, true, memory_order_relaxed);
	j->user = user_of(r, j->process);
	r->hung[r->nr_hung++] = j;
	return false;
}

/*
 * Read the mappings of a process, of which @process is the folder: malloc'ed, their size in *@size.
 * NULL: not there, or left out: that hangs, or too many of its user or of all do.
 */
static char *slow_reads_maps(struct slow_reads *r, const char *process, size_t *size)
{
	struct slow_job *j;
	char *text;

	tidy(r);
	j = is_left_out(r, process) ? NULL : start(r, process);
	if (!j || !wait_for(r, j)) {
		r->nr_left_out++;
		return NULL;
	}
	text = j->text;
	*size = j->size;
	j->text = NULL;
	drop(&j->job);
	return text;
}

/* Return how many were left out. */
static uint64_t slow_reads_left_out(const struct slow_reads *r)
{
	return r->nr_left_out;
}

/* Reads that hang are left behind. NULL is allowed. */
static void slow_reads_free(struct slow_reads *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < r->nr_hung; i++)
		helper_job_leave(&r->hung[i]->job);
	helpers_free(r->helpers, time_now_ns() + END_NS);
	free(r);
}

/*
 * A byte ring between two threads.
 *
 * Positions only grow; head - tail is the number of bytes in it, at most size. The head moves by
 * whole records, so the consumer peeks whole records.
 */

/* @size is a power of two; its pages are touched now, not by the producer later. 0 or -errno. */
static int spool_init(struct spool *s, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	assert(size && !(size & (size - 1)));
	if (p == MAP_FAILED)
		return -errno;
	memset(s, 0, sizeof(*s));
	s->data = p;
	s->size = size;
	return 0;
}

static void spool_fini(struct spool *s)
{
	if (s->data)
		munmap(s->data, s->size);
	s->data = NULL;
}

static void copy_in(struct spool *s, uint64_t pos, const void *p, size_t size)
{
	uint64_t at = pos & (s->size - 1);
	size_t first = MIN(size, s->size - at);

	memcpy(s->data + at, p, first);
	memcpy(s->data, (const uint8_t *)p + first, size - first);
}

/* Producer: put both pieces in, or nothing. */
static bool spool_put(struct spool *s, const void *first, size_t first_size, const void *second,
		      size_t second_size)
{
	uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
	uint64_t need = first_size + second_size;

	assert(head - s->seen_tail <= s->size);
	if (need > s->size - (head - s->seen_tail)) {
		/* Acquire: pairs with spool_drop(); the consumer has read the bytes we overwrite.
		 */
		s->seen_tail = atomic_load_explicit(&s->tail, memory_order_acquire);
		if (need > s->size - (head - s->seen_tail))
			return false;
	}
	if (first_size)
		copy_in(s, head, first, first_size);
	copy_in(s, head + first_size, second, second_size);
	/* Release: pairs with spool_peek(); the bytes are there before the head says so. */
	atomic_store_explicit(&s->head, head + need, memory_order_release);
	return true;
}

/* Consumer: get the bytes in it, in up to two pieces; returns their number. */
static int spool_peek(struct spool *s, struct iovec pieces[2])
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
	uint64_t nr = atomic_load_explicit(&s->head, memory_order_acquire) - tail;
	uint64_t at = tail & (s->size - 1), first = MIN(nr, s->size - at);

	assert(nr <= s->size);
	pieces[0] = (struct iovec){ s->data + at, first };
	pieces[1] = (struct iovec){ s->data, nr - first };
	return !nr ? 0 : nr > first ? 2 : 1;
}

/* Consumer: these have been used. */
static void spool_drop(struct spool *s, const struct iovec *pieces, int nr)
{
	uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);

	assert(nr >= 0 && nr <= 2);
	for (int i = 0; i < nr; i++)
		tail += pieces[i].iov_len;
	assert(atomic_load_explicit(&s->head, memory_order_relaxed) - tail <= s->size);
	atomic_store_explicit(&s->tail, tail, memory_order_release);
}

/*
 * The newest raw records in memory, and a perf.data file of them. Side-band records have a quarter
 * of the memory for themselves, so that the mappings of processes that have ended are older than
 * the samples.
 *
 * Runs on: the writer of the recorder.
 */

struct block {
	struct block *next; /* newer */
	size_t size;
	uint8_t data[];
};

/* Blocks in order of time. */
struct queue {
	struct block *first, *last;
	size_t used, max;
};

struct blackbox {
	struct queue samples, side_band;
};

/* @memory: bytes of all records. 0 or -ENOMEM. */
static int blackbox_new(struct blackbox **out, size_t memory)
{
	struct blackbox *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->side_band.max = memory / 4;
	s->samples.max = memory - memory / 4;
	*out = s;
	return 0;
}

static void drop_first(struct queue *q)
{
	struct block *b = q->first;

	q->used -= sizeof(*b) + b->size;
	q->first = b->next;
	if (!q->first)
		q->last = NULL;
	free(b);
}

static void blackbox_free(struct blackbox *s)
{
	if (!s)
		return;
	while (s->samples.first)
		drop_first(&s->samples);
	while (s->side_band.first)
		drop_first(&s->side_band);
	free(s);
}

/* Add whole records; the oldest are dropped. 0, or -ENOMEM: these are dropped. */
static int blackbox_add(struct blackbox *s, bool side_band, const struct iovec *pieces, int nr)
{
	struct queue *q = side_band ? &s->side_band : &s->samples;
	struct block *b;
	size_t size = 0;

	for (int i = 0; i < nr; i++)
		size += pieces[i].iov_len;
	if (!size)
		return 0;
	/* It does not fit: the others stay. */
	if (sizeof(*b) + size > q->max)
		return -ENOMEM;
	while (q->first && q->used + sizeof(*b) + size > q->max)
		drop_first(q);
	b = malloc(sizeof(*b) + size);
	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->size = 0;
	for (int i = 0; i < nr; i++) {
		memcpy(b->data + b->size, pieces[i].iov_base, pieces[i].iov_len);
		b->size += pieces[i].iov_len;
	}
	if (q->last)
		q->last->next = b;
	else
		q->first = b;
	q->last = b;
	q->used += sizeof(*b) + size;
	return 0;
}

static void append_record(void *ctx, const void *record, size_t size)
{
	const struct iovec piece = { (void *)(uintptr_t)record, size };

	/* Its first failure is the result of perfdata_finish(). */
	if (perfdata_append(ctx, &piece, 1))
		return;
}

/* Hand all records to @fn, whole ones in pieces of any size, of the side-band first. */
static void blackbox_each(const struct blackbox *s, synth_fn fn, void *ctx)
{
	for (const struct block *b = s->side_band.first; b; b = b->next)
		fn(ctx, b->data, b->size);
	for (const struct block *b = s->samples.first; b; b = b->next)
		fn(ctx, b->data, b->size);
}

/*
 * Write a new file @path: the kernel and the running processes, from /proc below @root, their
 * mappings with @reads, functions of scripts (@codes: NULL: none), then all records. *bytes: its
 * size. 0 or -errno with a sentence; a part of the file is removed.
 */
static int blackbox_write(const struct blackbox *s, const char *path, const char *root,
			  struct slow_reads *reads, const struct script_functions *codes,
			  const struct perfdata_attrs *attrs, uint64_t *bytes, struct err *e)
{
	struct perfdata_writer *file;
	struct synth synth = { .root = root, .fn = append_record, .reads = reads };
	struct lang_record_cursor functions = { 0 };
	int code = perfdata_create(&file, path, e);

	if (code)
		return code;
	synth.ctx = file;
	code = perfdata_begin(file, attrs);
	if (!code) {
		synth_kernel(&synth);
		synth_processes(&synth);
		lang_record_each_function(codes, &functions, append_record, file);
		blackbox_each(s, append_record, file);
		code = perfdata_finish(file, attrs);
	}
	*bytes = perfdata_written(file);
	perfdata_writer_close(file);
	if (!code)
		return 0;
	perfdata_remove(path);
	return err_set(e, code, "cannot save %.400s: %s", path, strerror(-code));
}

/*
 * The writer of a recording: moves the records of all lanes to the file, the stream or the black
 * box. Signals are blocked in its thread: a file-size limit is an error there, not a SIGXFSZ.
 */

/* How often the writer looks: a lane of 8 MiB takes 400 MB/s then. */
#define WRITE_EVERY_MS 20

/* The first one waits for build-ids, so that its mappings have them; not longer. */
#define STREAM_HOLD_NS 1500000000ULL

struct lost_samples_record {
	struct perf_event_header h;
	uint64_t lost;
	struct synth_id trailer;
};

/* Under the lock. */
static void append(struct recorder *r, const struct iovec *pieces, int nr)
{
	int code = perfdata_append(r->file, pieces, nr);

	if (code && r->blackbox)
		r->also_code = code;
	else if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
	atomic_store_explicit(&r->bytes, perfdata_written(r->file), memory_order_relaxed);
}

/* Append records to the file, on the writer; @ctx: the recorder. Ignored with a black box. */
static void recorder_writer_append(void *ctx, const void *record, size_t size)
{
	const struct iovec piece = { (void *)(uintptr_t)record, size };
	struct recorder *r = ctx;

	pthread_mutex_lock(&r->file_lock);
	if (r->file)
		append(r, &piece, 1);
	pthread_mutex_unlock(&r->file_lock);
}

/* Copy the events; under the lock. */
static void copy_attrs(const struct recorder *r, struct perfdata_attrs *out)
{
	*out = (struct perfdata_attrs){ 0 };
	for (uint32_t i = 0; i < r->attrs.nr; i++) {
		const struct perfdata_attr *a = &r->attrs.events[i];

		perfdata_attrs_add(out, a->name, &a->attr, a->ids, a->nr_ids);
	}
}

/* Write the builder's records to the file. */
static void write_queued(struct recorder *r)
{
	uint8_t *records;
	uint32_t size;

	pthread_mutex_lock(&r->save_lock);
	records = r->queued;
	size = r->queued_size;
	r->queued = NULL;
	r->queued_size = r->queued_room = 0;
	pthread_mutex_unlock(&r->save_lock);
	if (size)
		recorder_writer_append(r, records, size);
	free(records);
}

/*
 * Find the records of a lane. Write the builder's records first, and in a stream noted events.
 */
static int peek(struct recorder *r, struct recorder_lane *lane, struct iovec pieces[2])
{
	struct perfdata_attrs attrs = { 0 };
	struct perfdata_queued queued;
	int nr;

	if (!r->stream) {
		write_queued(r);
		return spool_peek(&lane->spool, pieces);
	}
	pthread_mutex_lock(&r->save_lock);
	nr = spool_peek(&lane->spool, pieces);
	if (r->noted)
		copy_attrs(r, &attrs);
	r->noted = false;
	perfdata_take_queue(r->file, &queued);
	pthread_mutex_unlock(&r->save_lock);
	perfdata_add_attrs(r->file, &attrs);
	perfdata_write_queue(r->file, &queued);
	perfdata_attrs_fini(&attrs);
	return nr;
}

/* Write the records of a lane to the file; after a failure discard them. */
static void write_lane(struct recorder *r, struct recorder_lane *lane)
{
	struct iovec pieces[2];
	int nr = peek(r, lane, pieces);

	if (!nr)
		return;
	if (r->blackbox && blackbox_add(r->blackbox, lane->side, pieces, nr))
		for (int i = 0; i < nr; i++)
			lane->unsaved += pieces[i].iov_len;
	pthread_mutex_lock(&r->file_lock);
	if (r->file)
		append(r, pieces, nr);
	pthread_mutex_unlock(&r->file_lock);
	spool_drop(&lane->spool, pieces, nr);
}

/* Everything older than this has been put into some lane. */
static uint64_t all_drained(const struct recorder *r)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < r->nr_lanes; i++)
		/* Acquire: the records put before; pairs with the release in recorder_drained(). */
		least = MIN(least,
			    atomic_load_explicit(&r->lanes[i].drained_ns, memory_order_acquire));
	return least;
}

/* Write the functions of scripts that are new. */
static void write_functions(struct recorder *r)
{
	if (r->file)
		lang_record_each_function(r->codes, &r->functions, recorder_writer_append, r);
}

/* Return whether it is too early for the first round of a stream. */
static bool is_held(const struct recorder *r, uint64_t now_ns)
{
	return r->stream && now_ns < r->start_ns + STREAM_HOLD_NS &&
	       !atomic_load_explicit(&r->identified, memory_order_relaxed);
}

/*
 * Write the records of all lanes. A FINISHED_ROUND marks that no later record is older than the
 * round before: readers need not keep the whole file to sort it.
 */
static void write_lanes(struct recorder *r)
{
	const struct perf_event_header round = { .type = PERFDATA_FINISHED_ROUND,
						 .size = sizeof(round) };
	uint64_t drained_ns = all_drained(r), now_ns;

	for (uint32_t i = 0; i < r->nr_lanes; i++)
		write_lane(r, &r->lanes[i]);
	write_functions(r);
	now_ns = time_now_ns();
	if (drained_ns < r->round_ns || now_ns < r->round_ns + r->every_ns || is_held(r, now_ns))
		return;
	recorder_writer_append(r, &round, sizeof(round));
	r->round_ns = now_ns;
}

/* The refusals that no record followed; then the sum of lost samples. */
static void write_lost(struct recorder *r)
{
	struct lost_samples_record sum = {
		.h = { PERF_RECORD_LOST_SAMPLES, 0, sizeof(sum) },
		.trailer = { .time_ns = time_now_ns() },
	};
	uint64_t told = 0, dropped = 0;

	for (uint32_t i = 0; i < r->nr_lanes; i++) {
		const struct recorder_lane *lane = &r->lanes[i];

		if (lane->lost.lost)
			recorder_writer_append(r, &lane->lost, sizeof(lane->lost));
		if (lane->side)
			continue;
		told += lane->nr_kernel_lost;
		dropped += lane->nr_dropped;
	}
	sum.lost = MAX(r->lost, told) + dropped;
	if (!sum.lost)
		return;
	if (r->attrs.nr && r->attrs.events[0].nr_ids)
		sum.trailer.id = r->attrs.events[0].ids[0];
	recorder_writer_append(r, &sum, sizeof(sum));
}

/* The writer's thread: to a file or stream, or (@blackbox) to memory; @arg: the recorder. */
static void *recorder_writer_main(void *arg)
{
	struct recorder *r = arg;
	const struct synth s = { r->root, 0, recorder_writer_append, r, r->reads };
	struct pollfd stop = { .fd = r->stop_fd, .events = POLLIN };
	int code = perfdata_begin(r->file, &r->attrs);
	prctl(PR_SET_NAME, "record");
	if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
	synth_kernel(&s);
	synth_processes(&s);
	sem_post(&r->ready);
	r->start_ns = r->round_ns = time_now_ns();
	do
		write_lanes(r);
	while (poll(&stop, 1, WRITE_EVERY_MS) <= 0);
	/* The records of the producers are visible from here on. */
	wake_clear(r->stop_fd);
	for (uint32_t i = 0; i < r->nr_lanes; i++)
		write_lane(r, &r->lanes[i]);
	write_functions(r);
	write_lost(r);
	code = perfdata_finish(r->file, &r->attrs);
	if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
	return NULL;
}

/* Return the bytes of records that are missing from a file. */
static uint64_t take_unsaved(struct recorder *r)
{
	uint64_t unsaved = 0;

	for (uint32_t i = 0; i < r->nr_lanes; i++) {
		unsaved += r->lanes[i].unsaved;
		r->lanes[i].unsaved = 0;
	}
	return unsaved;
}

/* Write a file of the black box that is due. */
static void save_due(struct recorder *r, bool now)
{
	struct perfdata_attrs attrs;
	struct err e = { "" };
	uint64_t bytes = 0, left_out = slow_reads_left_out(r->reads);
	char *path = NULL;
	int code;

	pthread_mutex_lock(&r->save_lock);
	if (r->save_path && !r->saved && (now || time_now_ns() >= r->save_ns))
		path = r->save_path;
	pthread_mutex_unlock(&r->save_lock);
	if (!path)
		return;
	pthread_mutex_lock(&r->save_lock);
	copy_attrs(r, &attrs);
	pthread_mutex_unlock(&r->save_lock);
	code = blackbox_write(r->blackbox, path, r->root, r->reads, r->codes, &attrs, &bytes, &e);
	perfdata_attrs_fini(&attrs);
	pthread_mutex_lock(&r->save_lock);
	r->saved_err = e;
	r->saved_bytes = code ? code : (int64_t)bytes;
	r->saved_unmapped = slow_reads_left_out(r->reads) - left_out;
	r->saved_without = take_unsaved(r);
	r->saved = true;
	pthread_mutex_unlock(&r->save_lock);
}

static void blackbox_each(const struct blackbox *s, synth_fn fn, void *ctx);

/* Leave the file beside the black box; @e: why, "": it is complete. */
static void leave_also(struct recorder *r, const struct err *e)
{
	struct perfdata_writer *file;

	pthread_mutex_lock(&r->file_lock);
	file = r->file;
	r->file = NULL;
	pthread_mutex_unlock(&r->file_lock);
	perfdata_writer_close(file);
	pthread_mutex_lock(&r->save_lock);
	r->also_err = *e;
	r->also = ALSO_ENDED;
	free(r->also_path);
	r->also_path = NULL;
	pthread_mutex_unlock(&r->save_lock);
}

/* Create the file, with the events so far. 0 or -errno with a sentence. */
static int create_also(struct recorder *r, struct err *e)
{
	struct perfdata_writer *file;
	struct perfdata_attrs attrs;
	int code = perfdata_create(&file, r->also_path, e);

	if (code)
		return code;
	pthread_mutex_lock(&r->save_lock);
	copy_attrs(r, &attrs);
	pthread_mutex_unlock(&r->save_lock);
	code = perfdata_begin(file, &attrs);
	perfdata_attrs_fini(&attrs);
	pthread_mutex_lock(&r->file_lock);
	r->file = file;
	pthread_mutex_unlock(&r->file_lock);
	return code ? err_set(e, code, "cannot record to %.400s: %s", r->also_path, strerror(-code))
		    : 0;
}

/* Begin the file: running processes, then the records in memory. */
static void begin_also(struct recorder *r)
{
	const struct synth s = { r->root, 0, recorder_writer_append, r, r->reads };
	struct err e = { "" };

	atomic_store_explicit(&r->bytes, 0, memory_order_relaxed);
	r->also_code = create_also(r, &e);
	if (r->also_code) {
		leave_also(r, &e);
		return;
	}
	r->functions = (struct lang_record_cursor){ 0 };
	synth_kernel(&s);
	synth_processes(&s);
	write_functions(r);
	blackbox_each(r->blackbox, recorder_writer_append, r);
	r->round_ns = time_now_ns();
	pthread_mutex_lock(&r->save_lock);
	/* The builder may have ended it already. */
	if (r->also == ALSO_BEGINS)
		r->also = ALSO_ON;
	pthread_mutex_unlock(&r->save_lock);
}

/* Complete the file. */
static void end_also(struct recorder *r)
{
	struct perfdata_attrs attrs;
	struct err e = { "" };
	int code;

	pthread_mutex_lock(&r->save_lock);
	copy_attrs(r, &attrs);
	pthread_mutex_unlock(&r->save_lock);
	pthread_mutex_lock(&r->file_lock);
	code = perfdata_finish(r->file, &attrs);
	atomic_store_explicit(&r->bytes, perfdata_written(r->file), memory_order_relaxed);
	pthread_mutex_unlock(&r->file_lock);
	perfdata_attrs_fini(&attrs);
	if (!r->also_code)
		r->also_code = code;
	if (r->also_code)
		err_set(&e, r->also_code, "the recording %.400s is not complete: %s", r->also_path,
			strerror(-r->also_code));
	leave_also(r, &e);
}

static enum also also_now(struct recorder *r)
{
	enum also also;

	pthread_mutex_lock(&r->save_lock);
	also = r->also;
	pthread_mutex_unlock(&r->save_lock);
	return also;
}

/* Begin or end the file beside the black box, or both; @end: of the session. */
static void step_also(struct recorder *r, bool end)
{
	enum also also = also_now(r);

	if (!r->file && (also == ALSO_BEGINS || also == ALSO_ENDS)) {
		begin_also(r);
		also = also_now(r);
	}
	if (also == ALSO_ENDS || (also == ALSO_ON && (end || r->also_code)))
		end_also(r);
}

static void *recorder_writer_keep(void *arg)
{
	struct recorder *r = arg;
	struct pollfd stop = { .fd = r->stop_fd, .events = POLLIN };
	bool end = false;

	prctl(PR_SET_NAME, "record");
	sem_post(&r->ready);
	while (!end) {
		end = poll(&stop, 1, WRITE_EVERY_MS) > 0;
		write_lanes(r);
		step_also(r, end);
		save_due(r, end);
	}
	return NULL;
}

#define LANE_SIZE     ((size_t)8 << 20)
#define LANE_SIZE_MIN ((size_t)1 << 20)
#define LANES_SIZE    ((size_t)256 << 20)

/* Of a KSYMBOL record with a name of 512 bytes. */
#define SHORT_WORDS 80

/* Bytes of the builder's records that wait for a slow disk. */
#define QUEUED_MAX (16U << 20)

/* Not more often: tasks that are added bring records that are a little older. */
#define ROUND_EVERY_NS 2000000000ULL

/* Mappings that take longer hang. */
#define MAPS_HANG_NS 500000000ULL

/* Of a stream: a live reader shows a round when the next one ends. */
#define STREAM_ROUND_NS 250000000ULL

static size_t lane_size(const struct recorder_config *config)
{
	size_t size = LANE_SIZE;

	if (config->lane_size)
		return config->lane_size;
	while (size > LANE_SIZE_MIN && size * config->nr_cpus > LANES_SIZE)
		size /= 2;
	return size;
}

int recorder_open(struct recorder **out, const struct recorder_config *config, struct err *e)
{
	struct recorder *r = xcalloc(1, sizeof(*r));
	pthread_mutexattr_t recursive;
	int code = 0;

	pthread_mutex_init(&r->file_lock, NULL);
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&r->save_lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	sem_init(&r->ready, 0, 0);
	r->root = config->root ? config->root : "";
	r->codes = config->codes;
	r->every_ns = config->round_ns ? config->round_ns : ROUND_EVERY_NS;
	r->stop_fd = wake_new();
	r->reads = slow_reads_new(synth_read_file, MAPS_HANG_NS);
	r->task_reads = slow_reads_new(synth_read_file, MAPS_HANG_NS);
	r->lanes = aligned_alloc(CACHELINE, (config->nr_cpus + 1) * sizeof(*r->lanes));
	if (r->stop_fd < 0 || !r->reads || !r->task_reads || !r->lanes)
		code = err_set(e, -ENOMEM,
			       "cannot record: no memory or no file descriptor is left");
	while (!code && r->nr_lanes <= config->nr_cpus) {
		struct recorder_lane *lane = &r->lanes[r->nr_lanes];

		memset(lane, 0, sizeof(*lane));
		code = spool_init(&lane->spool, lane_size(config));
		if (code)
			err_set(e, code, "cannot record: no memory for buffers: %s",
				strerror(-code));
		lane->side = r->nr_lanes == config->nr_cpus;
		r->nr_lanes += !code;
	}
	if (!code && config->memory)
		code = blackbox_new(&r->blackbox, config->memory);
	else if (!code)
		code = perfdata_create(&r->file, config->path, e);
	r->stream = !code && r->file && perfdata_is_stream(r->file);
	if (r->stream && !config->round_ns)
		r->every_ns = STREAM_ROUND_NS;
	if (code) {
		recorder_close(r);
		return code;
	}
	*out = r;
	return 0;
}

void recorder_note(void *recorder, const char *name, const struct perf_event_attr *attr,
		   const uint64_t *ids, size_t nr_ids)
{
	struct recorder *r = recorder;

	assert(ids || !nr_ids);
	pthread_mutex_lock(&r->save_lock);
	perfdata_attrs_add(&r->attrs, name, attr, ids, nr_ids);
	r->noted = true;
	pthread_mutex_unlock(&r->save_lock);
}

void recorder_hold(struct recorder *r)
{
	if (!r->stream)
		return;
	pthread_mutex_lock(&r->save_lock);
}

void recorder_release(struct recorder *r)
{
	if (r->stream)
		pthread_mutex_unlock(&r->save_lock);
}

struct recorder_lane *recorder_lane(struct recorder *r, uint32_t index)
{
	assert(index < r->nr_lanes);
	return &r->lanes[index];
}

/* Count a record that did not fit. */
static void refuse(struct recorder_lane *lane, const struct record *decoded)
{
	struct lost_record *lost = &lane->lost;

	if (decoded->type == PERF_RECORD_LOST) {
		lost->lost += decoded->lost;
	} else if (decoded->type == PERF_RECORD_SAMPLE || lane->side) {
		lost->lost++;
		lane->nr_dropped++;
	}
	lost->id = lost->trailer.id = decoded->id;
	lost->trailer.time_ns = decoded->time_ns;
	lost->trailer.cpu = decoded->cpu;
	if (decoded->type == PERF_RECORD_SAMPLE) {
		lost->trailer.pid = decoded->sample.pid;
		lost->trailer.tid = decoded->sample.tid;
	}
	lost->h = (struct perf_event_header){ PERF_RECORD_LOST, 0, sizeof(*lost) };
}

/* A copy of a record that is shorter than its header says. */
struct short_record {
	struct perf_event_header h;
	uint64_t words[SHORT_WORDS];
};

/* Return @h with its true size, in @copy if the kernel's is another one. */
static const struct perf_event_header *with_size(const struct perf_event_header *h, uint16_t size,
						 struct short_record *copy)
{
	if (size == h->size || size < sizeof(*h) || size > sizeof(*copy))
		return h;
	memcpy(copy, h, size);
	copy->h.size = size;
	return &copy->h;
}

void recorder_put(struct recorder_lane *lane, const struct perf_event_header *h,
		  const struct record *decoded)
{
	size_t first = lane->lost.lost ? sizeof(lane->lost) : 0;
	struct short_record copy;

	assert(h->size >= sizeof(*h));
	if (decoded->type == PERF_RECORD_LOST)
		lane->nr_kernel_lost += decoded->lost;
	/* As the kernel does: recorded when records fit again, for rounds have ended since. */
	lane->lost.trailer.time_ns = decoded->time_ns;
	h = with_size(h, decoded->size, &copy);
	if (!spool_put(&lane->spool, &lane->lost, first, h, h->size)) {
		refuse(lane, decoded);
		return;
	}
	lane->lost.lost = 0;
	lane->nr_samples += decoded->type == PERF_RECORD_SAMPLE;
}

void recorder_put_bytes(struct recorder_lane *lane, const void *record, size_t size)
{
	assert(record && size);
	spool_put(&lane->spool, NULL, 0, record, size);
}

void recorder_drained(struct recorder_lane *lane, uint64_t now_ns)
{
	atomic_store_explicit(&lane->drained_ns, now_ns, memory_order_release);
}

bool recorder_is_stream(const struct recorder *r)
{
	return r->stream;
}

void recorder_build_id(struct recorder *r, bool kernel, const char *name, const uint8_t *id,
		       uint8_t id_size)
{
	pthread_mutex_t *lock = r->stream ? &r->save_lock : &r->file_lock;

	assert(id_size <= 20);
	/* Of a stream they are queued: its reader may stall the writer, never the builder. */
	pthread_mutex_lock(lock);
	if (r->file)
		perfdata_put_build_id(r->file, kernel, name, id, id_size);
	if (!kernel)
		atomic_store_explicit(&r->identified, true, memory_order_relaxed);
	pthread_mutex_unlock(lock);
}

/* Queue a record for the file. Under the lock. */
static void queue_for_file(struct recorder *r, const void *record, size_t size)
{
	if (r->queued_size + size > QUEUED_MAX ||
	    !array_reserve(&r->queued, &r->queued_room, r->queued_size + size)) {
		r->nr_unqueued++;
		return;
	}
	memcpy(r->queued + r->queued_size, record, size);
	r->queued_size += (uint32_t)size;
}

/* Queue a record on the builder, which does not wait for a slow disk or reader. */
static void queue_record(void *ctx, const void *record, size_t size)
{
	struct recorder *r = ctx;

	pthread_mutex_lock(&r->save_lock);
	if (r->stream)
		perfdata_queue(r->file, record, size);
	else
		queue_for_file(r, record, size);
	pthread_mutex_unlock(&r->save_lock);
}

void recorder_add_task(struct recorder *r, pid_t tid, uint64_t time_ns)
{
	const struct synth s = { r->root, time_ns, queue_record, r, r->task_reads };
	bool writes;

	pthread_mutex_lock(&r->save_lock);
	/* The black box reads /proc when it is written. */
	writes = !r->blackbox || r->also == ALSO_BEGINS || r->also == ALSO_ON;
	pthread_mutex_unlock(&r->save_lock);
	if (writes)
		synth_task(&s, tid);
}

int recorder_also(struct recorder *r, const char *path)
{
	int code = 0;

	pthread_mutex_lock(&r->save_lock);
	if (path && r->also == ALSO_NONE) {
		r->also_path = xstrndup(path, strlen(path));
		r->also = ALSO_BEGINS;
	} else if (!path && (r->also == ALSO_BEGINS || r->also == ALSO_ON)) {
		r->also = ALSO_ENDS;
	} else {
		code = -EBUSY;
	}
	pthread_mutex_unlock(&r->save_lock);
	return code;
}

bool recorder_also_ended(struct recorder *r, struct recorder_saved *out, struct err *e)
{
	bool ended;

	pthread_mutex_lock(&r->save_lock);
	ended = r->also == ALSO_ENDED;
	if (ended) {
		*out = (struct recorder_saved){ .bytes = (int64_t)recorder_bytes(r) };
		*e = r->also_err;
		r->also = ALSO_NONE;
	}
	pthread_mutex_unlock(&r->save_lock);
	return ended;
}

uint64_t recorder_bytes(const struct recorder *r)
{
	return atomic_load_explicit(&r->bytes, memory_order_relaxed);
}

int recorder_save(struct recorder *r, char *path, uint64_t when_ns)
{
	int code = 0;

	pthread_mutex_lock(&r->save_lock);
	if (r->save_path || !r->blackbox) {
		code = -EBUSY;
	} else {
		r->save_path = path;
		r->save_ns = when_ns;
	}
	pthread_mutex_unlock(&r->save_lock);
	return code;
}

bool recorder_saved(struct recorder *r, struct recorder_saved *out, struct err *e)
{
	bool saved;

	pthread_mutex_lock(&r->save_lock);
	saved = r->saved;
	if (saved) {
		*out = (struct recorder_saved){ r->saved_bytes, r->saved_unmapped,
						r->saved_without };
		*e = r->saved_err;
		free(r->save_path);
		r->save_path = NULL;
		r->saved = false;
	}
	pthread_mutex_unlock(&r->save_lock);
	return saved;
}

int recorder_start(struct recorder *r, struct err *e)
{
	int code = thread_start(&r->writer, 0,
				r->blackbox ? recorder_writer_keep : recorder_writer_main, r);

	assert(!r->runs);
	if (code)
		return err_set(e, code, "cannot start the recorder's thread: %s", strerror(-code));
	r->runs = true;
	while (sem_wait(&r->ready) && errno == EINTR)
		;
	code = recorder_error(r);
	/* The reader of a pipe that has exited ends the session. */
	return !code || code == -EPIPE
		       ? 0
		       : err_set(e, code, "cannot write the recording: %s", strerror(-code));
}

int recorder_error(const struct recorder *r)
{
	return atomic_load_explicit(&r->error, memory_order_relaxed);
}

static void stop_writer(struct recorder *r)
{
	if (!r->runs)
		return;
	/* The file beside a black box is no stream, and its writer may be closing it. */
	if (!r->blackbox)
		perfdata_stop(r->file);
	wake_send(r->stop_fd);
	pthread_join(r->writer, NULL);
	r->runs = false;
}

int recorder_finish(struct recorder *r, uint64_t lost, struct recorder_stats *stats)
{
	r->lost = lost;
	stop_writer(r);
	*stats = (struct recorder_stats){ .bytes = recorder_bytes(r) };
	for (uint32_t i = 0; i < r->nr_lanes; i++) {
		stats->nr_samples += r->lanes[i].nr_samples;
		if (!r->lanes[i].side)
			stats->nr_kernel_lost += r->lanes[i].nr_kernel_lost;
		stats->nr_dropped += r->lanes[i].nr_dropped;
	}
	stats->nr_dropped += r->nr_unqueued;
	stats->nr_unmapped = slow_reads_left_out(r->reads) + slow_reads_left_out(r->task_reads);
	return r->also_code ? r->also_code : recorder_error(r);
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	stop_writer(r);
	for (uint32_t i = 0; i < r->nr_lanes; i++)
		spool_fini(&r->lanes[i].spool);
	free(r->lanes);
	perfdata_attrs_fini(&r->attrs);
	perfdata_writer_close(r->file);
	blackbox_free(r->blackbox);
	slow_reads_free(r->reads);
	slow_reads_free(r->task_reads);
	free(r->also_path);
	free(r->queued);
	free(r->save_path);
	pthread_mutex_destroy(&r->file_lock);
	pthread_mutex_destroy(&r->save_lock);
	sem_destroy(&r->ready);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	free(r);
}

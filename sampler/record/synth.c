// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records made from /proc of running processes and the kernel; mappings that may hang are read by
 * helpers.
 *
 * Runs on: the recorder's writer, or the builder. Invariant: a record is as long as its header
 * says, a multiple of 8, its name ends in a NUL.
 */
#include "sampler/record/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"

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

void synth_kernel(const struct synth *s)
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
char *synth_read_file(const char *path, size_t max, size_t *size)
{
	size_t room = 4096;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	ssize_t nr;

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

static void synth_maps(const struct synth *s, pid_t pid)
{
	char path[PATH_ROOM], *text;
	struct procfs_text at = { 0 };
	struct procfs_map map;
	size_t size;

	snprintf(path, sizeof(path), "%s/proc/%d", s->root, (int)pid);
	text = slow_reads_maps(s->reads, path, &size);
	if (!text)
		return;
	at.at = text;
	at.end = text + size;
	while (procfs_next_map(&at, &map))
		if (map.exec || is_object(&map))
			synth_map(s, pid, &map);
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

void synth_task(const struct synth *s, pid_t tid)
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

void synth_processes(const struct synth *s)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/proc", s->root);
	each_number(s, path, 0, one_process);
}

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

struct slow_reads *slow_reads_new(slow_reads_fn read, uint64_t hang_ns)
{
	struct slow_reads *r = calloc(1, sizeof(*r));

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

char *slow_reads_maps(struct slow_reads *r, const char *process, size_t *size)
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

uint64_t slow_reads_left_out(const struct slow_reads *r)
{
	return r->nr_left_out;
}

void slow_reads_free(struct slow_reads *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < r->nr_hung; i++)
		helper_job_leave(&r->hung[i]->job);
	helpers_free(r->helpers, time_now_ns() + END_NS);
	free(r);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Read /proc/PID: without the lock, merged under it.
 *
 * A reading belongs to the incarnation of its begin. Later side-band events win;
 * mappings of earlier events that /proc contradicts were lost or unmapped, and
 * are replaced.
 *
 * Runs on: the loader (or set-up).
 */
#include "symbols/process/maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/foreign.h"
#include "symbols/process/maps_state.h"
#include "symbols/process/proc_watch.h"
#include "symbols/process/procfs.h"

#define THREADS_MAX	65536u
#define PATH_SIZE_MAX	4096u
#define STATUS_SIZE_MAX (64u << 10)
#define OTHERS_MAX	8u /* threads to try for maps when the leader has ended */

struct found_thread {
	pid_t tid;
	size_t size;
	char comm[TASK_COMM_SIZE];
};

struct reading {
	pid_t pid;
	int dir_fd; /* of /proc/PID: refers to one process also if the pid is reused */
	uint64_t began_ns;
	unsigned int epoch;
	uint32_t uid;
	bool kernel;
	int maps_code;	      /* errno of reading maps; 0 */
	struct mapping *maps; /* executable ones; object NULL: anonymous */
	uint32_t nr_maps, room_maps;
	struct found_thread *threads; /* with names to merge */
	uint32_t nr_threads, room_threads;
};

static int read_status(struct reading *r)
{
	uint64_t uid, flags;
	char *text;
	size_t size;
	int code = foreign_read_at(r->dir_fd, "status", STATUS_SIZE_MAX, &text, &size);

	if (code)
		return code;
	r->uid = procfs_status_number(text, size, "Uid", &uid) ? (uint32_t)uid : UINT32_MAX;
	if (procfs_status_number(text, size, "Kthread", &flags)) {
		r->kernel = flags == 1;
		free(text);
		return 0;
	}
	free(text);
	/* Before kernel 6.8. */
	code = foreign_read_at(r->dir_fd, "stat", STATUS_SIZE_MAX, &text, &size);
	if (code)
		return code;
	r->kernel = procfs_stat_flags(text, size, &flags) && (flags & PROCFS_PF_KTHREAD);
	free(text);
	return 0;
}

static void add_map(struct maps *m, struct reading *r, const struct procfs_map *line)
{
	struct object_identity identity = { .maj = line->maj, .min = line->min, .ino = line->ino };
	struct mapping mapping = { .start = line->start, .end = line->end, .exec = true };
	char path[PATH_SIZE_MAX];
	size_t size = procfs_unescape(path, sizeof(path), line->path, line->path_size);

	if (!array_reserve(&r->maps, &r->room_maps, r->nr_maps + 1ull))
		return;
	identity.kind = procfs_kind(path, size, line->start, line->is_private);
	mapping.offset = identity.kind == OBJECT_FILE	? line->offset
			 : identity.kind == OBJECT_VDSO ? 0
							: line->start;
	if (identity.kind != OBJECT_ANON)
		mapping.object = objects_hold(m->objects, &identity, path, size, r->pid,
					      line->start, line->end);
	r->maps[r->nr_maps++] = mapping;
}

/* Read the executable mappings of one maps file; *@lines counts all lines. */
static int read_maps(struct maps *m, struct reading *r, const char *name, uint32_t *lines)
{
	struct procfs_text text;
	struct procfs_map line;
	char *bytes;
	size_t size;
	int code = foreign_read_at(r->dir_fd, name, PROCFS_MAPS_SIZE_MAX, &bytes, &size);

	if (code)
		return code;
	text = (struct procfs_text){ .at = bytes, .end = bytes + size };
	while (r->nr_maps < SPACE_MAPPINGS_MAX && procfs_next_map(&text, &line)) {
		(*lines)++;
		if (line.exec)
			add_map(m, r, &line);
	}
	free(bytes);
	return 0;
}

/* Read the maps of other threads: the maps of a leader that has ended are empty. */
static void read_maps_of_threads(struct maps *m, struct reading *r, const pid_t *tids, uint32_t nr)
{
	uint32_t lines = 0;
	char name[64];

	for (uint32_t i = 0; i < MIN(nr, OTHERS_MAX) && !lines; i++) {
		snprintf(name, sizeof(name), "task/%d/maps", tids[i]);
		read_maps(m, r, name, &lines);
	}
}

/* List the ids of all threads in *@tids, malloc'ed; return their number. */
static uint32_t list_threads(struct reading *r, pid_t **tids)
{
	int fd = openat(r->dir_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint32_t nr = 0, room = 0;
	struct dirent *entry;

	*tids = NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (nr < THREADS_MAX && (entry = readdir(dir))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0 && array_reserve(tids, &room, nr + 1ull))
			(*tids)[nr++] = (pid_t)tid;
	}
	closedir(dir);
	return nr;
}

/* Read the name of a thread. */
static void read_thread(struct reading *r, pid_t tid)
{
	struct found_thread *t;
	char name[64], *text;
	size_t size;

	snprintf(name, sizeof(name), "task/%d/comm", tid);
	if (!array_reserve(&r->threads, &r->room_threads, r->nr_threads + 1ull) ||
	    foreign_read_at(r->dir_fd, name, TASK_COMM_SIZE, &text, &size))
		return;
	if (size && text[size - 1] == '\n')
		size--;
	t = &r->threads[r->nr_threads++];
	t->tid = tid;
	t->size = MIN(size, sizeof(t->comm));
	memcpy(t->comm, text, t->size);
	free(text);
}

/*
 * Keep the @tids without a record, and of a process that is read again the main thread: an exec may
 * be among the lost records. Return their number.
 */
static uint32_t keep_unknown(struct maps *m, const struct reading *r, pid_t *tids, uint32_t nr)
{
	const struct process *p;
	uint32_t kept = 0;
	bool again;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, r->pid, r->began_ns);
	again = p && (atomic_load_explicit(&p->flags, memory_order_relaxed) & PROCESS_KNOWN);
	for (uint32_t i = 0; i < nr; i++)
		if ((again && tids[i] == r->pid) ||
		    !process_thread_present(&m->procs, r->pid, tids[i]))
			tids[kept++] = tids[i];
	pthread_mutex_unlock(&m->lock);
	return kept;
}

/* Read all that is used of /proc/PID. 0, or why the process cannot be read. */
static int read_process(struct maps *m, struct reading *r)
{
	uint32_t nr, lines = 0;
	pid_t *tids;
	int code = read_status(r);

	if (code)
		return code;
	if (!r->kernel)
		r->maps_code = read_maps(m, r, "maps", &lines);
	nr = list_threads(r, &tids);
	if (!r->kernel && !r->maps_code && !lines && nr > 1)
		read_maps_of_threads(m, r, tids, nr);
	nr = keep_unknown(m, r, tids, nr);
	for (uint32_t i = 0; i < nr; i++)
		read_thread(r, tids[i]);
	free(tids);
	return r->maps_code == -ESRCH ? -ESRCH : 0;
}

/* Set the user; tasks named before it was known get new ids. */
static void set_uid(struct maps *m, struct process *p, uint32_t uid)
{
	if (atomic_load_explicit(&p->uid, memory_order_relaxed) == uid)
		return;
	atomic_store_explicit(&p->uid, uid, memory_order_relaxed);
	for (struct process_thread *th = p->threads; th; th = th->next_sibling)
		process_thread_forget_tasks(th);
}

void maps_set_user(struct maps *m, pid_t pid, uid_t uid, uint64_t time_ns)
{
	struct process *p;

	pthread_mutex_lock(&m->lock);
	p = process_find(&m->procs, pid, time_ns);
	if (p)
		set_uid(m, p, uid);
	pthread_mutex_unlock(&m->lock);
}

static void merge_maps(struct maps *m, struct process *p, struct reading *r)
{
	struct space_edit *edit = r->nr_maps ? maps_draft(m, p) : NULL;

	for (uint32_t i = 0; edit && i < r->nr_maps; i++) {
		struct mapping *mapping = &r->maps[i];

		if (!mapping->object)
			mapping->object = maps_anon(m, p, mapping->start, mapping->end);
		space_edit_merge(edit, mapping, r->began_ns);
		maps_note_interpreter(m, p, mapping);
	}
	maps_freeze(m, p);
}

/* Name the threads of the reading; events after its begin know more. */
static void merge_threads(struct maps *m, struct process *p, const struct reading *r)
{
	for (uint32_t i = 0; i < r->nr_threads; i++) {
		const struct found_thread *t = &r->threads[i];
		struct process_thread *th = process_thread_present(&m->procs, r->pid, t->tid);

		if (!th)
			process_thread_add(&m->procs, p, t->tid, p->birth_ns,
					   (struct safe_text){ t->comm, (uint16_t)t->size, 0 });
		else if (process_thread_name(th, UINT64_MAX)->birth_ns < r->began_ns)
			maps_rename_thread(m, th, r->began_ns, t->comm, t->size);
	}
}

/* Merge the reading into its process. Under the lock. */
static int merge(struct maps *m, struct reading *r)
{
	struct process *p = process_find(&m->procs, r->pid, r->began_ns);

	/* A newer image has begun: its events know more. */
	if (p && p->birth_ns > r->began_ns)
		return maps_process_known(m, p) ? 0 : -EAGAIN;
	/* Ended: /proc has a zombie. */
	if (p && p->doomed.is_doomed && !r->kernel && !r->nr_maps && !r->maps_code)
		return -ESRCH;
	p = maps_process_at(m, r->pid, r->began_ns);
	if (!p)
		return -ENOMEM;
	merge_maps(m, p, r);
	merge_threads(m, p, r);
	set_uid(m, p, r->uid);
	atomic_store_explicit(&p->epoch, r->epoch, memory_order_relaxed);
	/* Release: the space and its threads; pairs with maps_process_known(). */
	atomic_store_explicit(&p->flags, PROCESS_KNOWN | (r->kernel ? PROCESS_KERNEL : 0),
			      memory_order_release);
	return r->maps_code;
}

/* End a process that is gone: its samples need not wait. */
static void merge_gone(struct maps *m, const struct reading *r)
{
	struct process *p = process_find(&m->procs, r->pid, r->began_ns);

	if (p && (p->birth_ns > r->began_ns || maps_process_known(m, p)))
		return;
	if (!p)
		p = maps_process_at(m, r->pid, r->began_ns);
	if (!p)
		return;
	atomic_store_explicit(&p->epoch, r->epoch, memory_order_relaxed);
	atomic_fetch_or_explicit(&p->flags, PROCESS_KNOWN, memory_order_release);
	process_end(&m->procs, p, r->began_ns);
}

int maps_load(struct maps *m, pid_t pid)
{
	struct reading r = { .pid = pid, .uid = UINT32_MAX };
	int code;

	r.began_ns = time_now_ns();
	r.epoch = atomic_load_explicit(&m->epoch, memory_order_acquire);
	r.dir_fd = foreign_open_proc(pid);
	code = r.dir_fd < 0 ? r.dir_fd : read_process(m, &r);
	atomic_fetch_add_explicit(&m->nr_reads, 1, memory_order_relaxed);
	pthread_mutex_lock(&m->lock);
	if (!code)
		code = merge(m, &r);
	else if (code == -ESRCH)
		merge_gone(m, &r);
	tasks_grow(maps_tasks(m));
	pthread_mutex_unlock(&m->lock);
	if (code)
		atomic_fetch_add_explicit(&m->nr_read_failed, 1, memory_order_relaxed);
	if (r.dir_fd >= 0)
		close(r.dir_fd);
	for (uint32_t i = 0; i < r.nr_maps; i++)
		object_put(r.maps[i].object);
	free(r.maps);
	free(r.threads);
	return code;
}

/* Exits were lost: end the processes that are gone. */
static void sweep(struct maps *m)
{
	uint32_t nr = 0, room = 0;
	pid_t *pids = NULL;
	char path[32];

	pthread_mutex_lock(&m->lock);
	m->sweep = false;
	for (uint32_t i = 0; i < PROCS_BUCKETS; i++)
		for (struct process *p =
			     atomic_load_explicit(&m->procs.processes[i], memory_order_relaxed);
		     p; p = atomic_load_explicit(&p->next, memory_order_relaxed))
			if (p->pid && !p->doomed.is_doomed &&
			    array_reserve(&pids, &room, nr + 1ull))
				pids[nr++] = p->pid;
	pthread_mutex_unlock(&m->lock);
	for (uint32_t i = 0; i < nr; i++) {
		struct process *p;
		uint64_t now_ns = time_now_ns();

		snprintf(path, sizeof(path), "/proc/%d", pids[i]);
		if (!access(path, F_OK) || errno != ENOENT)
			continue;
		pthread_mutex_lock(&m->lock);
		p = process_find(&m->procs, pids[i], now_ns);
		if (p && p->birth_ns <= now_ns)
			process_end(&m->procs, p, now_ns);
		pthread_mutex_unlock(&m->lock);
	}
	free(pids);
}

unsigned int maps_load_asked(struct maps *m)
{
	unsigned int nr = 0;
	uint32_t pos = 0;
	bool lost;
	pid_t pid;

	while ((pid = requests_take(&m->requests, &pos))) {
		nr++;
		if (!proc_watch_begin(pid))
			continue;
		maps_load(m, pid);
		if (!proc_watch_end())
			return nr;
	}
	pthread_mutex_lock(&m->lock);
	lost = m->sweep;
	pthread_mutex_unlock(&m->lock);
	if (lost)
		sweep(m);
	return nr;
}

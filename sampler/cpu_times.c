// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPU time of tasks from clocks of the kernel, as counts of a slice. Runs on: the builder.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/file.h"
#include "symbols/base/table.h"

/* A task without samples for so long is forgotten. */
#define FORGET_NS 60000000000ULL

/* Clocks of threads that are read in one slice, 4 us each; others share by samples. */
#define THREADS_MAX 256

/* Clocks may be read later than the events of the same tasks; and events miss forks and exits. */
#define AHEAD_MAX_NS 10000000.0

/* The times of ended children are whole clock ticks: of user and of system. */
#define CHILDREN_MIN_NS 20000000.0

/* The begin of a fork and the end of an exit are as long as all else of a short process. */
#define MISSED_MAX 2

/* Parents that are read in one tick. */
#define PARENTS_MAX 256

/* Processes that are noted at the begin, 10 us each, and afterwards. */
#define LOOKED_MAX 4096

#define NOTES_MAX 8192

/* For that: some 10 us each. One of them may hang. */
#define LOOK_NS 200000000ULL

#define ANCESTORS_MAX 64

/* Slices back from now that have a limit. */
#define SLICES_LIMITED 512u

/* Of a shorter piece no count is made: hundreds of tasks that run for a moment in each second would
 * have one in each slice. */
#define PIECE_NS 2000000ULL

/* Counts of a tick that are usual: memory for more is freed after it. */
#define OUT_USUAL (1u << 14)

/* The clock of a process (tid 0) or of a thread. */
struct cpu_clock {
	pid_t pid, tid;
	uint32_t task, generation; /* where time without samples is counted */
	uint64_t ns;		   /* as last read */
	uint64_t sampled_ns;	   /* end of the last slice with a sample */
	uint64_t seen_ns;	   /* up to then its time is counted */
	uint64_t read_ns;	   /* when @ns was read */
	uint64_t late_ns;	   /* of a process that has ended: counted by samples since @ns */
	uint64_t forked_ns;	   /* of a process: end of the last slice with a fork; 0: none */
	uint64_t children_ns;	   /* then: time of ended children, counted or of before */
	double missing_ns;	   /* then, in a tick: time of children that is not counted */
	pid_t parent;		   /* of a process with samples; 0: not known */
	pid_t heir;		   /* of an ended process: the parent that has its time; 0: none */
	int64_t rest_ns;	   /* of a process: not in the times of its threads; < 0: ahead */
	bool running;		   /* @ns is known */
	bool several;		   /* of a process: threads are read one by one */
	bool young;		   /* began in this tick, and was first sampled in this slice */
};

/* The times of a process that is not sampled: none of them is counted. */
struct process_note {
	pid_t pid;
	uint64_t read_ns;     /* it was this process */
	uint64_t ns, seen_ns; /* its clock, and when it was read */
	uint64_t children_ns; /* as of @read_ns: it has not forked since */
};

/* The samples of a slice in one task. */
struct part {
	pid_t pid, tid;
	uint32_t task;
	double count, ns; /* samples, and the time that they stand for */
};

struct cpu_times {
	struct cpu_times_clocks clocks;
	struct cpu_clock *list;
	uint32_t nr, room;
	struct hashset set;
	struct helpers *helpers;    /* read what may hang; NULL: the caller does */
	struct process_note *notes; /* by @noted */
	uint32_t nr_notes, room_notes;
	struct hashset noted;
	/* Of the slice at hand. */
	const struct cpu_times_input *in;
	struct part *parts;
	uint32_t nr_parts, room_parts;
	struct part *left; /* of a process: threads without a clock */
	uint32_t room_left;
	struct count *out;
	uint32_t nr_out, room_out;
	uint32_t turn;		 /* of a time in one of several slices */
	unsigned int nr_threads; /* read */
	uint64_t since_ns;	 /* begin and end of the time that is counted */
	uint64_t until_ns;
	uint64_t tick_ns;  /* end of the last tick; 0: none */
	uint64_t floor_ns; /* begin of all time, and of that after a restart */
	bool restarted;
	/* The time that slices have, by their number. */
	struct {
		uint64_t number, ns;
	} slices[SLICES_LIMITED];
	/* Of the tick at hand: the samples of tasks that have ended, and all time that was counted.
	 */
	struct part *ended;
	uint32_t nr_ended, room_ended;
	uint32_t generation;
	double counted_ns;
	double left_ns; /* of the time of all tasks; < 0: ahead */
};

/* ---- clocks of the kernel ---- */

/* Read the clock of a process, with its threads that have ended; it needs no right and no file. */
static bool read_process(void *ctx, pid_t pid, uint64_t *ns)
{
	struct timespec ts;
	/* clock_getcpuclockid(3) without its check that the process exists. */
	clockid_t clock = (clockid_t)(~(unsigned int)pid << 3 | 2);

	if (clock_gettime(clock, &ts))
		return false;
	*ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	return true;
}

/* Read the clock of a thread: the first number of schedstat, without CONFIG_SCHED_INFO zero. */
static bool read_thread(void *ctx, pid_t pid, pid_t tid, uint64_t *ns)
{
	char text[96], *end;
	size_t size = untrusted_read_task(text, sizeof(text) - 1, pid, tid, "schedstat");

	text[size] = '\0';
	*ns = strtoull(text, &end, 10);
	return end != text && *ns;
}

/* Read the time of ended children. */
static bool read_children(void *ctx, pid_t pid, uint64_t *ns)
{
	char text[1024], *at;
	unsigned long long user, system;
	size_t size = untrusted_read_task(text, sizeof(text) - 1, pid, pid, "stat");

	text[size] = '\0';
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu",
			  &user, &system) != 2)
		return false;
	*ns = (uint64_t)(user + system) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}

/* Fill @pids with processes that run now. Return their number, @max at most. */
static uint32_t list_processes(void *ctx, pid_t *pids, uint32_t max)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	uint32_t nr = 0;

	while (dir && nr < max && (entry = readdir(dir)))
		if ((pids[nr] = (pid_t)strtoul(entry->d_name, NULL, 10)) > 0)
			nr++;
	if (dir)
		closedir(dir);
	return nr;
}

static uint64_t read_now(void *ctx)
{
	return time_now_ns();
}

static uint64_t now_of(const struct cpu_times *t)
{
	uint64_t now_ns = t->clocks.now ? t->clocks.now(t->clocks.ctx) : 0;

	return MAX(now_ns, t->in->now_ns);
}

/* ---- the tasks ---- */

static uint64_t hash_of(pid_t pid, pid_t tid)
{
	return keyhash_number((uint64_t)pid << 32 | (uint32_t)tid);
}

static struct cpu_clock *find(const struct cpu_times *t, pid_t pid, pid_t tid)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&t->set, hash_of(pid, tid), &at)) != HASHSET_NONE)
		if (t->list[id].pid == pid && t->list[id].tid == tid)
			return &t->list[id];
	return NULL;
}

/* Find a clock, or add it; NULL: out of memory. */
static struct cpu_clock *obtain(struct cpu_times *t, pid_t pid, pid_t tid)
{
	struct cpu_clock *c = find(t, pid, tid);

	if (c)
		return c;
	if (!array_reserve(&t->list, &t->room, t->nr + 1ULL) || hashset_reserve(&t->set, 1))
		return NULL;
	hashset_add(&t->set, hash_of(pid, tid), t->nr);
	c = &t->list[t->nr++];
	*c = (struct cpu_clock){ .pid = pid, .tid = tid };
	return c;
}

static void index_again(struct cpu_times *t)
{
	hashset_clear(&t->set);
	for (uint32_t i = 0; i < t->nr; i++)
		hashset_add(&t->set, hash_of(t->list[i].pid, t->list[i].tid), i);
}

static struct process_note *find_note(const struct cpu_times *t, pid_t pid)
{
	uint32_t at = 0, id;

	while ((id = hashset_next(&t->noted, keyhash_number((uint64_t)pid), &at)) != HASHSET_NONE)
		if (t->notes[id].pid == pid)
			return &t->notes[id];
	return NULL;
}

/* Note the times of a process. */
static void note_process(struct cpu_times *t, pid_t pid, uint64_t children_ns)
{
	struct process_note *note = find_note(t, pid);
	uint64_t now_ns = t->clocks.now ? t->clocks.now(t->clocks.ctx) : 0, ns;

	if (!t->clocks.process(t->clocks.ctx, pid, &ns))
		return;
	if (!note) {
		if (t->nr_notes >= NOTES_MAX ||
		    !array_reserve(&t->notes, &t->room_notes, t->nr_notes + 1ULL) ||
		    hashset_reserve(&t->noted, 1))
			return;
		hashset_add(&t->noted, keyhash_number((uint64_t)pid), t->nr_notes);
		note = &t->notes[t->nr_notes++];
	}
	*note = (struct process_note){ pid, now_ns, ns, now_ns, children_ns };
}

/* Read the clocks of noted processes again: their time up to now belongs to no later tick. */
static void renew_notes(struct cpu_times *t)
{
	for (uint32_t i = 0; i < t->nr_notes; i++) {
		struct process_note *note = &t->notes[i];

		note->seen_ns = t->clocks.now ? t->clocks.now(t->clocks.ctx) : 0;
		if (!t->clocks.process(t->clocks.ctx, note->pid, &note->ns))
			note->ns = UINT64_MAX;
	}
}

/* Times of the children of all processes: the stat of one that hangs in an exec is not to be had.
 */
struct look {
	struct job job;
	struct cpu_times_clocks clocks;
	atomic_uint nr; /* how many of these; with release */
	struct {
		pid_t pid;
		uint64_t children_ns;
	} of[LOOKED_MAX];
	pid_t pids[LOOKED_MAX];
};

static void run_look(struct job *job)
{
	struct look *l = (struct look *)job;
	uint32_t all = l->clocks.list(l->clocks.ctx, l->pids, LOOKED_MAX), nr = 0;

	for (uint32_t i = 0;
	     i < all && !atomic_load_explicit(&job->watch.cancel, memory_order_relaxed); i++) {
		l->of[nr].pid = l->pids[i];
		if (l->clocks.children(l->clocks.ctx, l->pids[i], &l->of[nr].children_ns))
			atomic_store_explicit(&l->nr, ++nr, memory_order_release);
	}
}

static void drop_look(struct job *job)
{
	free(job);
}

/* Note the times of all processes, as far as they can be read in time. */
static void look_at_processes(struct cpu_times *t)
{
	struct look *l = t->clocks.list ? calloc(1, sizeof(*l)) : NULL;
	bool started = false, left;
	uint32_t nr;

	if (!l)
		return;
	l->job.run = run_look;
	l->job.drop = drop_look;
	l->clocks = t->clocks;
	if (!t->helpers)
		run_look(&l->job);
	else
		started = !helpers_start(t->helpers, &l->job);
	left = started && !helpers_wait(t->helpers, &l->job, time_now_ns() + LOOK_NS);
	nr = atomic_load_explicit(&l->nr, memory_order_acquire);
	for (uint32_t i = 0; i < nr; i++)
		note_process(t, l->of[i].pid, l->of[i].children_ns);
	renew_notes(t);
	if (left)
		helper_job_leave(&l->job);
	else
		free(l);
}

/* Forget tasks that ended, or have no samples any more. */
static void forget_old(struct cpu_times *t)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->nr; i++) {
		const struct cpu_clock *c = &t->list[i];

		if (c->running && MAX(c->sampled_ns, c->forked_ns) + FORGET_NS > t->in->now_ns)
			t->list[kept++] = *c;
		else if (c->running && c->forked_ns)
			note_process(t, c->pid, c->children_ns);
	}
	if (kept == t->nr)
		return;
	t->nr = kept;
	index_again(t);
}

/* Add time of a task in one slice; without memory it is missing. */
static void count_piece(struct cpu_times *t, uint32_t task, uint32_t event, uint64_t ns,
			uint64_t time_ns)
{
	if (!ns || !array_reserve(&t->out, &t->room_out, t->nr_out + 1ULL))
		return;
	t->out[t->nr_out++] = (struct count){
		.stack = STACK_NONE,
		.task = task,
		.event = event,
		.weight = ns,
		.slice = tables_slice(time_ns),
	};
}

/*
 * Return how much of @ns the slice of @time_ns may have: of all its CPUs, its whole time at most,
 * as far as it is after the begin and before now.
 */
static uint64_t claim(struct cpu_times *t, uint64_t time_ns, uint64_t ns)
{
	uint64_t number = time_ns / COUNTS_SLICE_NS;
	uint64_t begin_ns = MAX(number * COUNTS_SLICE_NS, t->floor_ns);
	uint64_t end_ns = MIN((number + 1) * COUNTS_SLICE_NS, t->until_ns);
	uint64_t most = end_ns > begin_ns ? t->in->nr_cpus * (end_ns - begin_ns) : 0;
	uint32_t i = number % SLICES_LIMITED;

	if (!t->in->nr_cpus)
		return ns;
	if (t->slices[i].number != number) {
		t->slices[i].number = number;
		t->slices[i].ns = 0;
	}
	ns = MIN(ns, most - MIN(most, t->slices[i].ns));
	t->slices[i].ns += ns;
	return ns;
}

/* Return the first moment that time may be counted in. */
static uint64_t first_ns(const struct cpu_times *t)
{
	return MAX(t->floor_ns, t->until_ns - MIN(t->until_ns, MOMENTS_STOP_NS));
}

/*
 * Return the slices that have one piece of @ns in @nr_slices, and *@which of the first ones has it:
 * another one each time, so that all have the same share of many short times.
 */
static uint64_t piece_slices(struct cpu_times *t, uint64_t ns, uint64_t nr_slices, uint64_t *which)
{
	uint64_t nr_pieces = MIN(MAX(ns / PIECE_NS, 1ULL), nr_slices);
	uint64_t nr = (nr_slices + nr_pieces - 1) / nr_pieces;

	*which = t->turn++ % nr;
	return nr;
}

/*
 * Add time of a task between @since_ns and @until_ns, evenly to the slices. Clocks are read one
 * after the other, so a slice may be full: the rest goes to the nearest earlier one.
 */
static void count_ns(struct cpu_times *t, uint32_t task, uint32_t event, double ns)
{
	uint64_t end_ns = t->until_ns, begin_ns, to;
	uint64_t all = (uint64_t)(ns + 0.5), given = 0, until, piece, slices, which, in_ns;

	if (!(ns >= 0.5))
		return;
	t->counted_ns += ns;
	begin_ns = MIN(MAX(first_ns(t), t->since_ns), end_ns - MIN(end_ns, 1ULL));
	slices = (end_ns - 1) / COUNTS_SLICE_NS - begin_ns / COUNTS_SLICE_NS + 1;
	slices = piece_slices(t, all, slices, &which);
	for (uint64_t at = begin_ns; at < end_ns; at = to) {
		to = MIN((at / COUNTS_SLICE_NS + slices) * COUNTS_SLICE_NS, end_ns);
		in_ns = MIN(MAX(at, (at / COUNTS_SLICE_NS + which) * COUNTS_SLICE_NS), to - 1);
		until = (uint64_t)((unsigned __int128)all * (to - begin_ns) / (end_ns - begin_ns));
		piece = until > given ? claim(t, in_ns, until - given) : 0;
		count_piece(t, task, event, piece, in_ns);
		given += piece;
	}
	for (uint64_t at = end_ns - 1; given < all; at -= COUNTS_SLICE_NS) {
		piece = claim(t, at, all - given);
		count_piece(t, task, event, piece, at);
		given += piece;
		if (at < first_ns(t) + COUNTS_SLICE_NS)
			break;
	}
}

/* Add time of a clock without samples in this slice; the id of its task may be an old one. */
static void count_unsampled(struct cpu_times *t, const struct cpu_clock *c, uint32_t event,
			    double ns)
{
	if (c->generation == t->in->generation)
		count_ns(t, c->task, event, ns);
}

/* Return the time that is not counted yet of a process that runs and is sampled for the first time:
 * all of one that began in this tick, else up to a note; @ns: its clock; < 0: not known. */
static double first_time(struct cpu_times *t, pid_t pid, uint64_t ns, bool *young)
{
	const struct process_note *note = find_note(t, pid);
	uint64_t birth_ns, since_ns = t->tick_ns ? t->tick_ns : t->floor_ns;
	pid_t parent;

	/* A program began with the fork. */
	if (!maps_birth(t->in->maps, pid, t->in->now_ns, &birth_ns, &parent))
		birth_ns = 0;
	if (birth_ns >= since_ns && birth_ns) {
		*young = true;
		t->since_ns = birth_ns;
		return (double)MIN(ns, t->until_ns - MIN(birth_ns, t->until_ns));
	}
	if (!note || birth_ns > note->read_ns || ns < note->ns)
		return -1;
	t->since_ns = note->seen_ns;
	return (double)(ns - note->ns);
}

/*
 * Read a clock. Return the time since it was last read; if it is new, or another task has the
 * number, all that is not counted, if known, else the time of its samples, @sampled.
 */
static double take(struct cpu_times *t, struct cpu_clock *c, double sampled)
{
	bool was = c->running;
	uint64_t ns, before = c->ns;
	double first;

	c->running = c->tid ? t->clocks.thread(t->clocks.ctx, c->pid, c->tid, &ns)
			    : t->clocks.process(t->clocks.ctx, c->pid, &ns);
	t->since_ns = was ? c->seen_ns : t->in->begin_ns;
	t->until_ns = now_of(t);
	c->seen_ns = t->until_ns;
	c->late_ns += c->running ? 0 : (uint64_t)sampled;
	if (!c->running)
		return sampled;
	c->late_ns = 0;
	c->read_ns = t->until_ns;
	c->ns = ns;
	if (was && ns >= before)
		return (double)(ns - before);
	/* Threads have no births. */
	first = c->tid ? -1 : first_time(t, c->pid, ns, &c->young);
	return first >= 0 ? first : MIN(sampled, (double)ns);
}

/* ---- the samples of a slice ---- */

static int by_task(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->pid != y->pid	  ? COMPARE(x->pid, y->pid)
	       : x->tid != y->tid ? COMPARE(x->tid, y->tid)
				  : COMPARE(x->task, y->task);
}

static int by_heir(const void *a, const void *b)
{
	return COMPARE(((const struct part *)a)->tid, ((const struct part *)b)->tid);
}

static int by_id(const void *a, const void *b)
{
	return COMPARE(((const struct part *)a)->task, ((const struct part *)b)->task);
}

/* Add up the parts of one task. */
static void merge_parts(struct cpu_times *t)
{
	uint32_t kept = 0;

	if (t->nr_parts)
		qsort(t->parts, t->nr_parts, sizeof(*t->parts), by_id);
	for (uint32_t i = 0; i < t->nr_parts; i++) {
		struct part *last = kept ? &t->parts[kept - 1] : NULL;

		if (!last || last->task != t->parts[i].task) {
			t->parts[kept++] = t->parts[i];
			continue;
		}
		last->count += t->parts[i].count;
		last->ns += t->parts[i].ns;
	}
	t->nr_parts = kept;
}

/*
 * Report whether the clock of its process has the time of a sample, which is read late. The slice
 * of the sample is all that is known.
 */
static bool is_counted(const struct cpu_times *t, const struct count *c)
{
	const struct task *task = t->in->threads ? NULL : maps_task(t->in->maps, c->task);
	const struct cpu_clock *clock = task ? find(t, task->pid, 0) : NULL;
	uint32_t age;

	if (!clock || !clock->read_ns)
		return false;
	age = (tables_slice(clock->read_ns) - c->slice) & (COUNTS_SLICES - 1);
	return age && age < COUNTS_SLICES / 2;
}

/* Sum the samples of the slice by task, in order of process and thread. */
static void collect(struct cpu_times *t, const struct count *counts, uint32_t nr)
{
	uint32_t kept = 0;

	t->nr_parts = 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct count *c = &counts[i];
		bool stands = (int)c->event == t->in->event;
		double weight = t->in->sample_ns > 0 ? (double)c->count * t->in->sample_ns
						     : (double)c->weight;

		if (c->event >= EVENTS_MAX || (int)c->event == t->in->wait_slot)
			continue;
		if (!array_reserve(&t->parts, &t->room_parts, t->nr_parts + 1ULL))
			return;
		stands = stands && !is_counted(t, c);
		t->parts[t->nr_parts++] = (struct part){ .task = c->task,
							 .count = (double)c->count,
							 .ns = stands ? weight : 0 };
	}
	merge_parts(t);
	for (uint32_t i = 0; i < t->nr_parts; i++) {
		const struct task *task = maps_task(t->in->maps, t->parts[i].task);

		/* Not the idle task, nor tasks of which nothing is known. */
		if (!task || task->pid <= 0 || task->tid <= 0)
			continue;
		t->parts[kept] = t->parts[i];
		t->parts[kept].pid = task->pid;
		t->parts[kept++].tid = task->tid;
	}
	if (!array_reserve(&t->left, &t->room_left, kept))
		kept = 0;
	t->nr_parts = kept;
	if (kept)
		qsort(t->parts, kept, sizeof(*t->parts), by_task);
}

/* Share time to tasks by their samples: the names that a thread had in the slice, or threads. */
static void share_out(struct cpu_times *t, const struct part *parts, uint32_t nr, double ns)
{
	double all = 0;

	for (uint32_t i = 0; i < nr; i++)
		all += parts[i].count;
	for (uint32_t i = 0; i < nr && all > 0; i++)
		count_ns(t, parts[i].task, PROFILE_CPU, ns * parts[i].count / all);
}

static double sampled_ns(const struct part *parts, uint32_t nr)
{
	double ns = 0;

	for (uint32_t i = 0; i < nr; i++)
		ns += parts[i].ns;
	return ns;
}

static uint32_t same_thread(const struct part *parts, uint32_t nr)
{
	uint32_t n = 1;

	while (n < nr && parts[n].tid == parts[0].tid)
		n++;
	return n;
}

/* Note a clock as sampled in this slice. */
static void note_sampled(const struct cpu_times *t, struct cpu_clock *c, const struct part *part)
{
	c->task = part->task;
	c->generation = t->in->generation;
	c->sampled_ns = t->in->now_ns;
}

/*
 * Note samples that also count the time of processes which ended without a sample. These are all
 * samples of a process that has ended. Of one that began in this tick, it is the part beyond its
 * own time, @ns.
 */
static void note_ended(struct cpu_times *t, const struct part *parts, uint32_t nr, double ns)
{
	double all = sampled_ns(parts, nr), share = all > ns ? (all - ns) / all : 0;

	if (share <= 0 || !array_reserve(&t->ended, &t->room_ended, (uint64_t)t->nr_ended + nr))
		return;
	for (uint32_t i = 0; i < nr; i++) {
		t->ended[t->nr_ended] = parts[i];
		t->ended[t->nr_ended].count *= share;
		t->ended[t->nr_ended++].ns *= share;
	}
}

/* Read the clock of a sampled thread. False: it says nothing, as the thread is new or has ended. */
static bool take_thread(struct cpu_times *t, const struct part *parts, double *ns)
{
	struct cpu_clock *c = t->nr_threads < THREADS_MAX ? obtain(t, parts->pid, parts->tid)
							  : NULL;
	bool was = c && c->running;

	if (!c)
		return false;
	t->nr_threads++;
	note_sampled(t, c, parts);
	*ns = take(t, c, 0);
	return was && c->running;
}

/*
 * Count the time of the sampled threads of a process, @ns or less: without a clock, by samples, of
 * what clocks leave. Return the sum.
 */
static double count_threads(struct cpu_times *t, const struct part *parts, uint32_t nr, double ns)
{
	double sum = 0, share;
	uint32_t nr_left = 0;

	for (uint32_t i = 0, n; i < nr; i += n) {
		double clock_ns;

		n = same_thread(parts + i, nr - i);
		if (take_thread(t, parts + i, &clock_ns)) {
			share_out(t, parts + i, n, clock_ns);
			sum += clock_ns;
			continue;
		}
		memcpy(t->left + nr_left, parts + i, n * sizeof(*parts));
		nr_left += n;
	}
	share = MAX(ns - sum, 0.0);
	/* Other threads may have run, which have no samples. */
	if (sum > 0 || t->in->threads)
		share = MIN(share, sampled_ns(t->left, nr_left));
	share_out(t, t->left, nr_left, share);
	return nr_left ? sum + share : sum;
}

/* Note the parent of a sampled process: thousands that end in a tick are forgotten before it. */
static void note_parent(const struct cpu_times *t, struct cpu_clock *c)
{
	const struct task *task = maps_task(t->in->maps, c->task);

	if (task && task->parent > 0)
		c->parent = task->parent;
}

/* Count the time of a process with samples in the slice. */
static void count_process(struct cpu_times *t, const struct part *parts, uint32_t nr)
{
	struct cpu_clock *c;
	bool several;
	double ns;

	if (t->in->threads) {
		count_threads(t, parts, nr, INFINITY);
		return;
	}
	c = obtain(t, parts->pid, 0);
	if (!c)
		return;
	note_sampled(t, c, parts);
	note_parent(t, c);
	ns = take(t, c, sampled_ns(parts, nr));
	c->several |= parts->tid != parts->pid || same_thread(parts, nr) < nr;
	if (!c->running || c->young)
		note_ended(t, parts, nr, c->running ? ns : 0);
	c->young = false;
	several = c->several && c->running;
	if (!several) {
		share_out(t, parts, nr, ns);
		return;
	}
	/* The list may move. */
	ns += (double)c->rest_ns;
	ns -= count_threads(t, parts, nr, ns);
	c = find(t, parts->pid, 0);
	c->rest_ns = (int64_t)ns;
}

/* ---- time without samples ---- */

/* Count the time of threads that slept, or had no luck, in this slice. */
static void count_other_threads(struct cpu_times *t)
{
	for (uint32_t i = 0; i < t->nr && t->nr_threads < THREADS_MAX; i++) {
		struct cpu_clock *c = &t->list[i], *process;
		double ns;

		if (!c->tid || c->seen_ns >= t->in->now_ns)
			continue;
		t->nr_threads++;
		ns = take(t, c, 0);
		count_unsampled(t, c, PROFILE_CPU, ns);
		process = find(t, c->pid, 0);
		if (process)
			process->rest_ns -= (int64_t)ns;
	}
}

/* The same of processes, and the time of threads without a sample. */
static void count_other_processes(struct cpu_times *t)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		struct cpu_clock *c = &t->list[i];

		if (c->tid)
			continue;
		if (c->seen_ns < t->in->now_ns) {
			double ns = take(t, c, 0);

			if (c->several)
				c->rest_ns += (int64_t)ns;
			else
				count_unsampled(t, c, PROFILE_CPU, ns);
		}
		if (c->rest_ns > 0 && c->generation == t->in->generation) {
			t->since_ns = t->tick_ns ? t->tick_ns : t->in->begin_ns;
			count_unsampled(t, c, PROFILE_CPU_REST, (double)c->rest_ns);
			c->rest_ns = 0;
		}
	}
}

/* ---- time of ended children ---- */

/* Find the process that waits for the children of this one: the nearest parent that has not ended.
 */
static struct cpu_clock *heir_of(const struct cpu_times *t, const struct cpu_clock *of)
{
	pid_t pid = of->pid;

	for (unsigned int i = 0; i < ANCESTORS_MAX; i++) {
		pid_t parent = of ? of->parent : 0;
		struct cpu_clock *c;
		uint64_t birth_ns;

		if (!parent && !maps_birth(t->in->maps, pid, t->in->now_ns, &birth_ns, &parent))
			return NULL;
		if (parent <= 0)
			return NULL;
		c = find(t, parent, 0);
		if (c && c->running)
			return c->forked_ns ? c : NULL;
		of = c;
		pid = parent;
	}
	return NULL;
}

/* Give the time that was counted of processes that have ended to the ones that waited for them. */
static void inherit(struct cpu_times *t)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		struct cpu_clock *c = &t->list[i], *heir;

		if (c->tid || c->running)
			continue;
		heir = heir_of(t, c);
		if (!heir)
			continue;
		c->heir = heir->pid;
		heir->children_ns += c->ns + c->late_ns + (c->forked_ns ? c->children_ns : 0);
	}
	for (uint32_t i = 0; i < t->nr_ended; i++) {
		const struct cpu_clock *c = find(t, t->ended[i].pid, 0), *heir;

		heir = c && c->running ? heir_of(t, c) : NULL;
		t->ended[i].tid = heir ? heir->pid : c ? c->heir : 0;
	}
	if (t->nr_ended)
		qsort(t->ended, t->nr_ended, sizeof(*t->ended), by_heir);
}

/* Read the time of ended children. Return the sum that is not counted. */
static double read_missing(struct cpu_times *t)
{
	uint32_t nr = 0;
	double sum = 0;

	for (uint32_t i = 0; i < t->nr; i++) {
		struct cpu_clock *c = &t->list[i];
		uint64_t ns;

		c->missing_ns = 0;
		if (c->tid || !c->forked_ns || !c->running || nr++ >= PARENTS_MAX ||
		    !t->clocks.children || !t->clocks.children(t->clocks.ctx, c->pid, &ns))
			continue;
		c->missing_ns = ns > c->children_ns ? (double)(ns - c->children_ns) : 0;
		if (c->missing_ns > CHILDREN_MIN_NS)
			sum += c->missing_ns;
	}
	return sum;
}

/* Share time to the ended children of a parent by their samples; without any it is of none. */
static void share_children(struct cpu_times *t, pid_t parent, double ns)
{
	uint32_t from = 0, nr = 0;

	while (from < t->nr_ended && t->ended[from].tid < parent)
		from++;
	while (from + nr < t->nr_ended && t->ended[from + nr].tid == parent)
		nr++;
	if (nr)
		share_out(t, t->ended + from, nr, ns);
	else
		count_ns(t, TASK_UNKNOWN, PROFILE_CPU_REST, ns);
}

/*
 * Count the time of children that have ended unseen, or lived longer than their samples say, as
 * their parents have now, @limit at most: the rest is of a time before. Return the counted time.
 */
static double count_children(struct cpu_times *t, double limit)
{
	double all = read_missing(t), part = all > MAX(limit, 0.0) ? MAX(limit, 0.0) / all : 1;

	for (uint32_t i = 0; i < t->nr && all > 0; i++) {
		struct cpu_clock *c = &t->list[i];

		if (c->missing_ns <= CHILDREN_MIN_NS)
			continue;
		share_children(t, c->pid, c->missing_ns * part);
		c->children_ns += (uint64_t)c->missing_ns;
		c->missing_ns = 0;
	}
	return all * part;
}

/* Note @ns, counted by events, as time of children that the parents have a little of already. */
static void note_counted(struct cpu_times *t, double ns)
{
	double all = 0;

	for (uint32_t i = 0; i < t->nr; i++)
		all += t->list[i].missing_ns;
	for (uint32_t i = 0; i < t->nr && all > 0; i++)
		t->list[i].children_ns += (uint64_t)(t->list[i].missing_ns * MIN(ns / all, 1.0));
}

/* Return the number of ended processes, the first ones, with no parent that waits for them. */
static uint32_t orphans(const struct cpu_times *t)
{
	uint32_t nr = 0;

	while (nr < t->nr_ended && !t->ended[nr].tid)
		nr++;
	return nr;
}

/*
 * Count the rest of the time of all tasks: of tasks that have ended, shared by their samples, or of
 * none that is known. Clocks, events and CPUs are read one after the other, so that it may be less
 * than nothing for a while.
 */
static void count_left(struct cpu_times *t)
{
	double all = (double)(t->in->all_ns ? t->in->all_ns : t->in->busy_ns);
	uint32_t nr;
	double left = t->left_ns + all - t->counted_ns,
	       most = t->in->all_ns ? MISSED_MAX * left : left;

	t->since_ns = t->tick_ns ? t->tick_ns : t->in->begin_ns;
	t->until_ns = now_of(t);
	inherit(t);
	nr = t->nr_ended;
	t->left_ns = MAX(MIN(left, 0.0), -AHEAD_MAX_NS);
	left -= count_children(t, most);
	/* Samples of all CPUs miss no kind of task. Parents have the time of their own children. */
	if (!t->in->all_ns) {
		nr = orphans(t);
		left = MIN(left, sampled_ns(t->ended, nr));
	}
	if (left > 0 && nr)
		share_out(t, t->ended, nr, left);
	else if (left > 0)
		count_ns(t, TASK_UNKNOWN, PROFILE_CPU_REST, left);
	note_counted(t, MAX(left, 0.0));
	t->counted_ns = 0;
	t->nr_ended = 0;
	t->tick_ns = t->until_ns;
}

/*
 * Return the time of the ended children of a process that is counted already, or of before. All
 * children of one that began after us are counted.
 */
static uint64_t children_before(const struct cpu_times *t, pid_t pid)
{
	const struct process_note *note = find_note(t, pid);
	uint64_t birth_ns, ns;
	pid_t parent;

	if (!maps_birth(t->in->maps, pid, t->in->now_ns, &birth_ns, &parent))
		birth_ns = 0;
	if (note && birth_ns <= note->read_ns)
		return note->children_ns;
	if (birth_ns > t->floor_ns || !t->clocks.children ||
	    !t->clocks.children(t->clocks.ctx, pid, &ns))
		return 0;
	return ns;
}

/* Note the processes that forked: the time of their children up to now is not counted. */
static void note_parents(struct cpu_times *t)
{
	for (uint32_t i = 0; i < t->in->nr_parents && !t->in->threads; i++) {
		pid_t pid = t->in->parents[i];
		struct cpu_clock *c = t->in->cgroup ? find(t, pid, 0) : obtain(t, pid, 0);

		if (!c)
			continue;
		if (!c->sampled_ns && !c->forked_ns) {
			c->task = TASK_UNKNOWN;
			c->generation = t->in->generation;
			count_unsampled(t, c, PROFILE_CPU, take(t, c, 0));
		}
		if (!c->forked_ns && c->running)
			c->children_ns = children_before(t, c->pid);
		c->forked_ns = t->in->now_ns;
	}
}

void cpu_times_add(struct cpu_times *t, const struct cpu_times_input *in, struct count **counts,
		   uint32_t *nr)
{
	struct count *larger;

	t->in = in;
	t->nr_out = 0;
	t->nr_threads = 0;
	/* Ids of another table. */
	if (t->generation != in->generation)
		t->nr_ended = 0;
	t->generation = in->generation;
	if (!t->floor_ns || t->restarted)
		t->floor_ns = in->begin_ns;
	t->restarted = false;
	collect(t, *counts, *nr);
	for (uint32_t i = 0, n; i < t->nr_parts; i += n) {
		for (n = 1; i + n < t->nr_parts && t->parts[i + n].pid == t->parts[i].pid;)
			n++;
		count_process(t, t->parts + i, n);
	}
	note_parents(t);
	if (in->tick) {
		count_other_threads(t);
		count_other_processes(t);
		count_left(t);
		forget_old(t);
		renew_notes(t);
	}
	larger = t->nr_out ? realloc(*counts, ((size_t)*nr + t->nr_out) * sizeof(*larger)) : NULL;
	if (!larger)
		return;
	memcpy(larger + *nr, t->out, t->nr_out * sizeof(*larger));
	*counts = larger;
	*nr += t->nr_out;
	/* After a stop of seconds there are hundreds of thousands. */
	if (t->room_out > OUT_USUAL && t->nr_out < t->room_out / 4) {
		free(t->out);
		t->out = NULL;
		t->room_out = 0;
	}
}

static void forget_tick(struct cpu_times *t)
{
	t->nr_ended = 0;
	t->counted_ns = t->left_ns = 0;
	t->tick_ns = 0;
	t->restarted = true;
}

void cpu_times_restart(struct cpu_times *t)
{
	if (!t)
		return;
	t->nr = t->nr_notes = 0;
	hashset_clear(&t->set);
	hashset_clear(&t->noted);
	look_at_processes(t);
	forget_tick(t);
}

struct cpu_times *cpu_times_new(const struct cpu_times_clocks *clocks)
{
	const struct cpu_times_clocks kernel = { read_process,	read_thread, NULL,
						 read_children, read_now,    list_processes };
	struct cpu_times *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->clocks = clocks ? *clocks : kernel;
	if (!clocks && helpers_new(&t->helpers, -1))
		t->clocks.list = NULL;
	return t;
}

void cpu_times_free(struct cpu_times *t)
{
	if (!t)
		return;
	if (t->helpers)
		helpers_free(t->helpers, time_now_ns());
	hashset_fini(&t->set);
	hashset_fini(&t->noted);
	free(t->notes);
	free(t->list);
	free(t->parts);
	free(t->left);
	free(t->ended);
	free(t->out);
	free(t);
}

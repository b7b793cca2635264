// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loader: /proc of new processes by a thread that is replaced when it hangs; interpreters
 * described by helpers; results of helpers, then names.
 *
 * Runs on: the process reader and the loader thread, or the caller of loader_run(). Both threads
 * are registered with urcu-qsbr (they may free through it), but offline: a hanging read never
 * delays a grace period. They need no read side: objects are never freed, places by the loader
 * alone, the rest is private to them.
 */
#include "symbols/internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/code/code.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"

/*
 * One reader at a time works. One that hangs ends with its read; until then, its process is left
 * out by the next ones, and after some of them each process of its user.
 */

#define NICE	   -10
#define WAIT_MS	   200
#define STACK_SIZE (1UL << 20)

/* At the end, for threads that hang already. */
#define LEFT_NS 50000000ULL

struct reader {
	struct process_readers *of;
	pthread_t thread;
	struct proc_watch watch;
	atomic_bool ended; /* release by the thread */
};

struct process_readers {
	process_readers_fn serve;
	void *ctx;
	int event, done_fd;
	atomic_bool stop;
	struct reader *now; /* NULL: none works */
	struct reader *left[PROC_HUNG_MAX];
	struct proc_hung hung; /* the processes of @left, by index */
	pthread_mutex_t lock;  /* of @known */
	struct symbols_hung known;
};

int process_readers_new(struct process_readers **out, process_readers_fn serve, void *ctx,
			proc_user_fn user_of, int done_fd)
{
	struct process_readers *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return -ENOMEM;
	r->serve = serve;
	r->ctx = ctx;
	r->done_fd = done_fd;
	r->hung.user_of = user_of;
	r->event = wake_new();
	if (r->event < 0) {
		code = r->event;
		free(r);
		return code;
	}
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return 0;
}

static bool is_stopping(const struct process_readers *r)
{
	return atomic_load_explicit(&r->stop, memory_order_acquire);
}

static void *reader_main(void *arg)
{
	struct reader *own = arg;
	struct process_readers *r = own->of;
	struct pollfd fd = { .fd = r->event, .events = POLLIN };
	bool any;

	pthread_setname_np(pthread_self(), "proftop/proc");
	/* Small work that all samples of a new process wait for. Most users have no permission. */
	setpriority(PRIO_PROCESS, 0, NICE);
	rcu_register_thread();
	/* Offline forever: /proc may hang, and the maps are read under their mutex here. */
	rcu_thread_offline();
	proc_watch_use(&own->watch);
	while (!is_stopping(r) && proc_watch_is_mine()) {
		any = poll(&fd, 1, WAIT_MS) > 0 && wake_clear(r->event);
		if (is_stopping(r))
			break;
		any |= r->serve(r->ctx);
		/* A wake is for both threads. */
		if (any)
			wake_send(r->done_fd);
	}
	rcu_unregister_thread();
	atomic_store_explicit(&own->ended, true, memory_order_release);
	return NULL;
}

/* Start a thread in the place of @now, which is NULL. */
static int start(struct process_readers *r)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int code;

	if (!reader)
		return -ENOMEM;
	reader->of = r;
	reader->watch.hung = &r->hung;
	code = thread_start(&reader->thread, STACK_SIZE, reader_main, reader);
	if (code)
		free(reader);
	else
		r->now = reader;
	return code;
}

int process_readers_start(struct process_readers *r)
{
	atomic_store_explicit(&r->stop, false, memory_order_relaxed); /* no thread yet */
	return start(r);
}

void process_readers_wake(struct process_readers *r)
{
	wake_send(r->event);
}

/* Free the readers that no longer hang. */
static void tidy(struct process_readers *r)
{
	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++) {
		struct reader *reader = r->left[i];

		if (!reader || !atomic_load_explicit(&reader->ended, memory_order_acquire))
			continue;
		pthread_join(reader->thread, NULL);
		free(reader);
		r->left[i] = NULL;
		atomic_store_explicit(&r->hung.pids[i], 0, memory_order_relaxed);
	}
}

/* Put the reader aside that hangs in @pid since @since_ns. False: it does not any more. */
static bool leave(struct process_readers *r, uint32_t at, pid_t pid, uid_t user, uint64_t since_ns)
{
	if (!proc_watch_leave(&r->now->watch, since_ns))
		return false;
	r->left[at] = r->now;
	r->now = NULL;
	atomic_store_explicit(&r->hung.users[at], user, memory_order_relaxed);
	atomic_store_explicit(&r->hung.pids[at], pid, memory_order_relaxed);
	return true;
}

/* Note the threads that hang. @pid: the process of the newest one; 0: none is new. */
static void note_hung(struct process_readers *r, pid_t pid, uid_t user)
{
	/* There is no slot for the present one: none takes its place. */
	bool all = pid && r->now;
	uint32_t nr = all;

	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++)
		nr += r->left[i] != NULL;
	pthread_mutex_lock(&r->lock);
	r->known.nr = nr;
	if (pid) {
		r->known.pid = pid;
		r->known.user = user;
		r->known.left_out = all					? LEFT_OUT_ALL
				    : proc_hung_is_full(&r->hung, user) ? LEFT_OUT_USER
									: LEFT_OUT_HUNG;
	}
	pthread_mutex_unlock(&r->lock);
}

void process_readers_look(struct process_readers *r, uint64_t ns)
{
	uid_t user = (uid_t)-1;
	uint64_t since_ns;
	uint32_t at = 0;
	pid_t pid;

	tidy(r);
	pid = r->now ? proc_watch_hangs(&r->now->watch, ns, &since_ns) : 0;
	while (at < PROC_HUNG_MAX && r->left[at])
		at++;
	if (pid)
		user = r->hung.user_of(pid);
	if (pid && at < PROC_HUNG_MAX && !leave(r, at, pid, user, since_ns))
		pid = 0;
	note_hung(r, pid, user);
	/* Again at the next look, where there is no thread. */
	if (!r->now && !start(r))
		process_readers_wake(r);
}

void process_readers_hung(struct process_readers *r, struct symbols_hung *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->known;
	pthread_mutex_unlock(&r->lock);
}

/* Join a reader until @deadline_ns; false: it hangs. */
static bool join(struct reader *reader, uint64_t deadline_ns)
{
	bool ended = !reader || thread_join_until(reader->thread, deadline_ns);

	if (ended)
		free(reader);
	return ended;
}

bool process_readers_stop(struct process_readers *r, uint64_t deadline_ns)
{
	uint64_t left_ns;
	bool ended;

	/* Release: pairs with is_stopping(). */
	atomic_store_explicit(&r->stop, true, memory_order_release);
	wake_send(r->event);
	ended = join(r->now, deadline_ns);
	r->now = NULL;
	left_ns = MIN(deadline_ns, time_now_ns() + LEFT_NS);
	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++) {
		ended &= join(r->left[i], left_ns);
		r->left[i] = NULL;
	}
	return ended;
}

void process_readers_free(struct process_readers *r)
{
	if (!r)
		return;
	close(r->event);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/*
 * Interpreters of running processes, described in the background: kind,
 * version, layout of frames.
 *
 * Runs on: the loader; files and memory of others are read by its helpers.
 *
 * Jobs that describe interpreters, some at a time.
 *
 * Runs on: the loader.
 */

#define INTERPRETERS_JOBS 4U

struct interpreters {
	struct maps *maps; /* NULL: a recording, its processes are gone */
	struct objects *objects;
	struct helpers *helpers;
	struct interpreters_job {
		struct detect *detect; /* NULL: free */
		uint64_t since_ns;     /* of its last start */
		uint32_t tries;
		struct object *object; /* with a reference */
	} jobs[INTERPRETERS_JOBS];
	int news_fd;	     /* eventfd that each new description wakes; -1: none */
	atomic_uint nr_news; /* relaxed: a description is published with its process */
};

/* One that takes longer hangs: it is left behind. Calls of its worker have limits of their own. */
#define DETECT_NS 2000000000ULL

#define WORKER_NS 60000000000ULL

/* Large files are read one after another. */
#define AGAIN_NS 200000000ULL

#define TRIES_MAX 50U

/* Lend the description of @want out. False: no helper is free. */
static bool interpreters_start(struct interpreters *in, struct interpreters_job *job,
			       const struct maps_interpreter *want, uint64_t now_ns)
{
	const struct object *object = want->mapping.object;
	struct detect_where where = {
		.pid = want->pid,
		.process = want->process,
		.start = want->mapping.start,
		.end = want->mapping.end,
		.offset = want->mapping.offset,
		.maj = object->identity.maj,
		.min = object->identity.min,
		.ino = object->identity.ino,
	};
	struct object_sighting seen;

	/* Not the name of the last sighting: any process can map the file by another one. */
	where.kind = detect_kind(object);
	snprintf(where.name, sizeof(where.name), "%s", object->name.str);
	objects_sighting(in->objects, object, &seen);
	where.path = seen.path;
	job->detect = seen.path ? detect_new(&where) : NULL;
	if (!job->detect) {
		free(seen.path);
		object_put(want->mapping.object);
		return true;
	}
	job->since_ns = now_ns;
	job->tries = 0;
	job->object = want->mapping.object;
	if (!in->helpers)
		job->detect->job.run(&job->detect->job);
	else if (helpers_start(in->helpers, &job->detect->job)) {
		job->detect->job.drop(&job->detect->job);
		job->detect = NULL;
		object_put(want->mapping.object);
		return false;
	}
	return true;
}

/* Note why functions of the language have no names, or guessed ones. */
static void explain(struct object *object, const struct lang_process *p)
{
	const char *untried = p->untried ? lang_untried : NULL;
	const char *fix = !p->reason   ? untried ? lang_fix(p) : NULL
			  : p->refused ? "sudo proftop, or cap_sys_ptrace (make install SETCAP=1)"
				       : lang_fix(p);

	atomic_store_explicit(&object->language_version, lang_packed_version(p->kind, p->version),
			      memory_order_relaxed);
	atomic_store_explicit(&object->language_fix, fix, memory_order_relaxed);
	atomic_store_explicit(&object->language_reason, p->reason ? p->reason : untried,
			      memory_order_relaxed);
}

/* Publish a finished description. */
static void take(struct interpreters *in, struct interpreters_job *job)
{
	struct detect *d = job->detect;

	if (!d->rc && d->desc) {
		if (d->desc->info.kind != LANG_GO) {
			atomic_store_explicit(&job->object->interpreter, true,
					      memory_order_relaxed);
			explain(job->object, &d->desc->info);
		}
		maps_describe(in->maps, d->where.pid, d->where.process, d->desc);
		d->desc = NULL;
		atomic_fetch_add_explicit(&in->nr_news, 1, memory_order_relaxed);
		if (in->news_fd >= 0)
			wake_send(in->news_fd);
	}
	d->job.drop(&d->job);
	job->detect = NULL;
	object_put(job->object);
}

static bool hangs(const struct interpreters_job *job, uint64_t now_ns)
{
	struct detect *d = job->detect;

	if (watch_blocked_ns(&d->job.watch, now_ns) > DETECT_NS)
		return true;
	return now_ns - job->since_ns >
	       (atomic_load_explicit(&d->asks, memory_order_relaxed) ? WORKER_NS : DETECT_NS);
}

/* Start a finished job again that could not have memory yet. True: it runs, or is due later. */
static bool again(struct interpreters *in, struct interpreters_job *job, uint64_t now_ns)
{
	struct detect *d = job->detect;

	if (d->rc != -EAGAIN || !in->helpers || job->tries == TRIES_MAX)
		return false;
	if (now_ns - job->since_ns < AGAIN_NS || helpers_start(in->helpers, &d->job))
		return true;
	job->tries++;
	job->since_ns = now_ns;
	return true;
}

/* Leave a job behind that hangs. */
static void interpreters_leave(struct interpreters_job *job)
{
	helper_job_leave(&job->detect->job);
	job->detect = NULL;
	object_put(job->object);
}

/* Look at the processes that map objects which turned out to be interpreters. */
static void interpreters_note(struct interpreters *in, struct image_cache *images)
{
	uint32_t id;

	while ((id = image_cache_take_loop(images)) != OBJECT_ID_UNKNOWN)
		if (in->maps)
			maps_note_object(in->maps, objects_at(in->objects, id));
}

/* Start jobs for new interpreters, publish finished descriptions. True: there is more to do. */
static bool interpreters_work(struct interpreters *in, uint64_t now_ns)
{
	struct maps_interpreter want;
	bool more = false;

	if (!in->maps)
		return false;
	for (uint32_t i = 0; i < INTERPRETERS_JOBS; i++) {
		struct interpreters_job *job = &in->jobs[i];

		if (job->detect && (!in->helpers || helper_job_done(&job->detect->job))) {
			if (again(in, job, now_ns))
				continue;
			take(in, job);
			more = true;
		} else if (job->detect && hangs(job, now_ns)) {
			interpreters_leave(job);
		}
		if (!job->detect && maps_next_interpreter(in->maps, &want))
			more |= interpreters_start(in, job, &want, now_ns);
	}
	return more;
}

/* Return whether a helper is reading one. */
static bool interpreters_busy(const struct interpreters *in)
{
	for (uint32_t i = 0; i < INTERPRETERS_JOBS; i++)
		if (in->jobs[i].detect)
			return true;
	return false;
}

static void interpreters_fini(struct interpreters *in)
{
	for (uint32_t i = 0; i < INTERPRETERS_JOBS; i++)
		if (in->jobs[i].detect)
			interpreters_leave(&in->jobs[i]);
}

/* Of the loader: while there was work in the last round, and after a round without. */
#define LOADER_WAIT_MS 50

#define WAIT_IDLE_MS 100

/* A read of one process in /proc hangs. */
#define HANG_NS 2000000000ULL

#define STOP_WAIT_NS	  2000000000ULL
#define DETAILS_A_TURN	  16U
#define HELPERS_WAIT_NS	  300000000ULL
#define PASS_MS		  4
#define LOADER_STACK_SIZE (2UL * DEMANGLE_STACK)

struct worker {
	pthread_t thread;
	int event; /* eventfd: work is available */
	bool started;
};

struct loader {
	struct places *places;
	struct maps *maps;
	struct details *details; /* NULL without maps, or for a recording */
	struct helpers *helpers;
	struct image_cache images;
	struct naming naming;
	struct inlines *chains;
	struct lines lines;
	struct interpreters interpreters;
	struct script_functions *codes;
	struct symtab *symtab;
	struct code_desk code;
	struct fetch_desk fetch;
	struct process_readers *readers;
	struct worker loader;
	struct place_names names;
	_Atomic(struct places_move *) move; /* to take over; release by the builder */
	atomic_bool stop;		    /* release by loader_stop, acquire by the threads */
	bool left_behind;
	/* Written by the loader, read by any thread, relaxed: statistics. */
	_Alignas(CACHELINE) atomic_ulong nr_left, memory;
};

static bool serve_processes(void *arg);

int loader_new(struct loader **out, struct places *places, struct objects *objects,
	       struct maps *maps, struct symtab *symtab, struct err *e)
{
	struct loader *l = aligned_alloc(CACHELINE, sizeof(*l));
	int rc;

	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	memset(l, 0, sizeof(*l));
	l->places = places;
	l->maps = maps;
	l->symtab = symtab;
	image_cache_init(&l->images, objects, NULL);
	naming_init(&l->naming, objects, symtab, &l->stop);
	l->naming.jit.jitdumps.maps = l->naming.jit.hotspots.maps = maps;
	code_init(&l->code, &l->images, symtab, &l->naming, &l->lines);
	fetch_init(&l->fetch, objects);
	l->details = maps ? details_new(maps) : NULL;
	l->loader.event = wake_new();
	rc = l->loader.event < 0 ? l->loader.event
				 : process_readers_new(&l->readers, serve_processes, l,
						       proc_user_of, l->loader.event);
	if (rc) {
		loader_free(l);
		return err_set(e, rc, "out of file descriptors: raise the limit (ulimit -n)");
	}
	l->codes = l->naming.codes = script_functions_new();
	if (!l->codes || ksyms_new(&l->naming.kernel.ksyms) || inlines_new(&l->chains) ||
	    helpers_new(&l->helpers, l->loader.event)) {
		loader_free(l);
		return err_set(e, -ENOMEM, "out of memory");
	}
	l->naming.jit.hotspots.log = codes_log(l->codes);
	l->images.helpers = l->fetch.helpers = l->naming.jit.hotspots.helpers = l->helpers;
	l->interpreters = (struct interpreters){
		.maps = maps, .objects = objects, .helpers = l->helpers, .news_fd = -1
	};
	l->names.script = objects_intern(objects,
					 &(struct object_identity){ .kind = OBJECT_SCRIPT },
					 "[script]", 8, 0, 0, 0)
				  ->id;
	l->names.wait = objects_intern(objects, &(struct object_identity){ .kind = OBJECT_WAIT },
				       "[wait]", 6, 0, 0, 0)
				->id;
	lines_init(&l->lines, &l->images, places, symtab, l->chains);
	l->names.places = places;
	l->names.objects = objects;
	l->names.symtab = symtab;
	l->names.naming = &l->naming;
	l->names.lines = &l->lines;
	l->names.chains = l->chains;
	l->names.codes = l->codes;
	l->names.stop = &l->stop;
	*out = l;
	return 0;
}

void loader_limit_memory(struct loader *l, size_t max)
{
	l->images.memory_max = max;
}

void loader_no_inline(struct loader *l)
{
	l->lines.off = true;
}

void loader_no_lines(struct loader *l)
{
	l->lines.no_lines = true;
}

void loader_no_java(struct loader *l)
{
	l->naming.jit.hotspots.off = true;
}

void loader_java_replay(struct loader *l, const struct object *memory, const struct code_text *text)
{
	struct jvm_table_kept kept;

	if (jvm_table_kept(text, &kept))
		jvm_table_replay(&l->naming.jit.hotspots, memory, text, &kept);
}

bool loader_java_settle(struct loader *l, uint64_t time_ns)
{
	return jvm_table_settle(&l->naming.jit.hotspots, time_ns);
}

const struct inlines *loader_chains(const struct loader *l)
{
	return l->chains;
}

void loader_recorded(struct loader *l, const char *root)
{
	l->images.no_proc = l->naming.jit.perfmaps.no_proc = true;
	l->naming.jit.jitdumps.no_proc = true;
	l->naming.jit.hotspots.recorded = true;
	l->images.root = l->naming.jit.perfmaps.root = l->naming.jit.jitdumps.root = root;
	details_free(l->details);
	l->details = NULL;
	l->interpreters.maps = NULL;
}

/* Read the symbols of the recorded machine's kernel from its files, if present. */
static bool take_list_of(struct loader *l, const char *root)
{
	bool present;
	char *list;

	if (!root || asprintf(&list, "%s/proc/kallsyms", root) < 0)
		return false;
	present = !access(list, R_OK);
	free(list);
	if (!present)
		return false;
	l->naming.kernel.root = root;
	l->code.kcore_below = true;
	return true;
}

enum kernel_match loader_recorded_kernel(struct loader *l, const struct kernel_identity *was)
{
	enum kernel_match match = recorded_kernel_match(was, "/sys/kernel/notes");

	l->images.no_vdso = match != KERNEL_SAME;
	if (match != KERNEL_SAME && take_list_of(l, l->images.root))
		match = KERNEL_SAME;
	l->naming.kernel.recorded.match = match;
	return match;
}

void loader_kernel_module(struct loader *l, const char *file, size_t size, uint64_t start,
			  uint64_t end)
{
	if (l->images.no_proc)
		recorded_modules_add(&l->naming.kernel.modules, file, size, start, end);
}

void loader_expect_kernel(struct loader *l)
{
	naming_kernel_expect(&l->naming.kernel, l->helpers);
}

void loader_kernel_was(struct loader *l, const struct recorded_kernel *told)
{
	if (l->images.no_proc)
		naming_kernel_was(&l->naming.kernel, told);
}

struct fetch_desk *loader_fetch(struct loader *l)
{
	return &l->fetch;
}

struct script_functions *loader_codes(struct loader *l)
{
	return l->codes;
}

void loader_watch_interpreters(struct loader *l, int fd)
{
	l->interpreters.news_fd = fd;
}

uint32_t loader_nr_interpreters(const struct loader *l)
{
	return atomic_load_explicit(&l->interpreters.nr_news, memory_order_relaxed);
}

uint32_t loader_script(const struct loader *l)
{
	return l->names.script;
}

uint32_t loader_wait(const struct loader *l)
{
	return l->names.wait;
}

struct ksyms *loader_ksyms(struct loader *l)
{
	return l->naming.kernel.ksyms;
}

void loader_other_clock(struct loader *l)
{
	l->naming.jit.jitdumps.other_clock = true;
}

static void update_figures(struct loader *l)
{
	atomic_store_explicit(&l->nr_left, place_names_left(&l->names), memory_order_relaxed);
	atomic_store_explicit(&l->memory, symtab_memory(l->symtab) + inlines_memory(l->chains),
			      memory_order_relaxed);
}

bool loader_takes_places(const struct loader *l)
{
	/* Acquire: it is done with the table before; pairs with take_places(). */
	return !atomic_load_explicit(&l->move, memory_order_acquire);
}

void loader_hand_places(struct loader *l, struct places_move *m)
{
	/* Release: all that was moved. */
	atomic_store_explicit(&l->move, m, memory_order_release);
	wake_send(l->loader.event);
}

/* Use the next generation of places, and free the one before. */
static void take_places(struct loader *l)
{
	/* Acquire: pairs with loader_hand_places(). */
	struct places_move *m = atomic_load_explicit(&l->move, memory_order_acquire);

	if (!m)
		return;
	place_names_move(&l->names, m);
	inlines_free(l->chains);
	l->chains = m->to_chains;
	l->places = m->to;
	places_free(m->from);
	places_move_free(m);
	update_figures(l);
	/* Release: pairs with loader_takes_places(). */
	atomic_store_explicit(&l->move, NULL, memory_order_release);
}

bool loader_free(struct loader *l)
{
	if (!l)
		return true;
	if (l->left_behind)
		return false;
	take_places(l);
	/* An abandoned helper keeps its job and uses nothing else of the loader. */
	image_cache_fini(&l->images);
	fetch_fini(&l->fetch);
	lines_fini(&l->lines);
	code_fini(&l->code);
	naming_jit_fini(&l->naming.jit);
	interpreters_fini(&l->interpreters);
	helpers_free(l->helpers, time_now_ns() + HELPERS_WAIT_NS);
	process_readers_free(l->readers);
	if (l->loader.event >= 0)
		close(l->loader.event);
	inlines_free(l->chains);
	script_functions_free(l->codes);
	naming_fini(&l->naming);
	details_free(l->details);
	place_names_fini(&l->names);
	free(l);
	return true;
}

struct details *loader_details(struct loader *l)
{
	return l->details;
}

struct code_desk *loader_code(struct loader *l)
{
	return &l->code;
}

void loader_wake(struct loader *l)
{
	if (l->maps)
		process_readers_wake(l->readers);
	else
		wake_send(l->loader.event);
}

static bool loader_is_stopping(const struct loader *l)
{
	return atomic_load_explicit(&l->stop, memory_order_acquire);
}

/* Sleep until woken, at most @wait_ms. Returns whether it was woken. */
static bool wait_event(int event, int wait_ms)
{
	struct pollfd pfd = { .fd = event, .events = POLLIN };

	return poll(&pfd, 1, wait_ms) > 0 && wake_clear(event);
}

enum effort {
	AS_IT_COMES, /* a better name may follow: places wait for it */
	TO_THE_END,
	NO_NAMES, /* objects only */
};

/* One round: images, then names. True: more work. */
static bool work(struct loader *l, enum effort effort)
{
	uint64_t now_ns = time_now_ns();
	struct jvm_table_chain chain;
	bool more;
	uint32_t late, fetched, jit = perfmaps_refresh(&l->naming.jit.perfmaps, now_ns);

	take_places(l);
	more = image_cache_work(&l->images, now_ns);
	if (loader_is_stopping(l))
		return false;
	place_names_note(&l->names, jvm_table_refresh(&l->naming.jit.hotspots, now_ns));
	while (jvm_table_take_chain(&l->naming.jit.hotspots, &chain))
		lines_java(&l->lines, &chain);
	place_names_note(&l->names, jitdumps_refresh(&l->naming.jit.jitdumps, now_ns));
	if (loader_is_stopping(l))
		return false;
	interpreters_note(&l->interpreters, &l->images);
	more |= interpreters_work(&l->interpreters, now_ns);
	place_names_rename_kernel(&l->names);
	fetched = fetch_serve(&l->fetch, now_ns);
	if (fetched != OBJECT_ID_UNKNOWN) {
		image_evict_reload(&l->images, fetched, now_ns);
		place_names_fetched(&l->names, fetched);
	}
	while ((late = image_cache_take_late(&l->images)) != OBJECT_ID_UNKNOWN)
		place_names_note(&l->names, late);
	place_names_note(&l->names, jit);
	place_names_rename(&l->names);
	code_serve(&l->code);
	if (loader_is_stopping(l))
		return false;
	if (effort != NO_NAMES)
		more = place_names_pass(&l->names, more, effort == TO_THE_END);
	if (loader_is_stopping(l))
		return false;
	update_figures(l);
	return more;
}

/* As process_readers_fn. */
static bool serve_processes(void *arg)
{
	struct loader *l = arg;
	bool any = false, more;

	/* Stacks wait for the maps: first. */
	do {
		any |= maps_load_asked(l->maps) > 0;
		any |= calls_serve() > 0;
		more = l->details && details_serve(l->details, DETAILS_A_TURN);
		any |= more;
	} while (more && !loader_is_stopping(l) && proc_watch_is_mine());
	return any;
}

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	int wait_ms = LOADER_WAIT_MS;

	pthread_setname_np(pthread_self(), "proftop/load");
	setpriority(PRIO_PROCESS, 0, HELPERS_NICE);
	rcu_register_thread();
	rcu_thread_offline();
	while (!loader_is_stopping(l)) {
		bool any = wait_event(l->loader.event, wait_ms);

		if (l->maps && !loader_is_stopping(l))
			process_readers_look(l->readers, HANG_NS);
		while (!loader_is_stopping(l) && work(l, AS_IT_COMES))
			any = true;
		wait_ms = l->names.held ? PASS_MS : any ? LOADER_WAIT_MS : WAIT_IDLE_MS;
	}
	rcu_unregister_thread();
	return NULL;
}

static int start_one(struct loader *l, struct worker *w, void *(*run)(void *))
{
	int rc = thread_start(&w->thread, LOADER_STACK_SIZE, run, l);

	w->started = !rc;
	return rc;
}

int loader_start(struct loader *l, struct err *e)
{
	int rc = 0;

	atomic_store_explicit(&l->stop, false, memory_order_relaxed); /* no thread yet */
	/* Files that hang delay no other name; a replay reads all of them first. */
	l->naming.jit.reads.helpers = l->images.no_proc ? NULL : l->helpers;
	if (l->maps)
		rc = process_readers_start(l->readers);
	if (!rc)
		rc = start_one(l, &l->loader, loader_main);
	if (rc) {
		loader_stop(l);
		return err_set(e, rc, "cannot create a thread: raise the limit (ulimit %s)",
			       rc == -ENOMEM ? "-v" : "-u");
	}
	return 0;
}

/* Join @w, until @deadline_ns; else abandon it. */
static void stop_one(struct loader *l, struct worker *w, uint64_t deadline_ns)
{
	if (!w->started)
		return;
	w->started = false;
	wake_send(w->event);
	l->left_behind |= !thread_join_until(w->thread, deadline_ns);
}

void loader_stop(struct loader *l)
{
	uint64_t deadline_ns = time_now_ns() + STOP_WAIT_NS;

	/* Pairs with loader_is_stopping(), and with objects.c after each file. */
	atomic_store_explicit(&l->stop, true, memory_order_release);
	/* First the thread that starts others. */
	stop_one(l, &l->loader, deadline_ns);
	l->left_behind |= l->readers && !process_readers_stop(l->readers, deadline_ns);
}

/* Return true if a helper has a job of the loader. */
static bool is_busy(struct loader *l, enum effort effort)
{
	return image_cache_busy(&l->images) || interpreters_busy(&l->interpreters) ||
	       (effort != NO_NAMES &&
		(lines_busy(&l->lines) || code_busy(&l->code) || fetch_busy(&l->fetch)));
}

static void run(struct loader *l, enum effort effort)
{
	bool more = true;

	while (more && !loader_is_stopping(l)) {
		more = l->maps && maps_load_asked(l->maps);
		more |= l->details && details_serve(l->details, DETAILS_A_TURN);
		more |= work(l, effort);
		if (!more && is_busy(l, effort)) {
			wait_event(l->loader.event, LOADER_WAIT_MS);
			more = true;
		}
	}
}

void loader_stop_run(struct loader *l)
{
	/* Pairs with loader_is_stopping(). */
	atomic_store_explicit(&l->stop, true, memory_order_release);
	loader_wake(l);
}

void loader_run(struct loader *l)
{
	run(l, TO_THE_END);
}

void loader_run_objects(struct loader *l)
{
	run(l, NO_NAMES);
}

void loader_stats(const struct loader *l, struct symbols_stats *out)
{
	out->nr_images = atomic_load_explicit(&l->images.nr_images, memory_order_relaxed);
	out->nr_evicted = atomic_load_explicit(&l->images.nr_evicted, memory_order_relaxed);
	out->image_memory = atomic_load_explicit(&l->images.memory, memory_order_relaxed);
	out->image_memory_max = l->images.memory_max;
	out->nr_failed = atomic_load_explicit(&l->images.nr_failed, memory_order_relaxed);
	out->nr_named = atomic_load_explicit(&l->names.nr_named, memory_order_relaxed);
	out->nr_unnamed = atomic_load_explicit(&l->names.nr_unnamed, memory_order_relaxed);
	out->nr_waiting = atomic_load_explicit(&l->nr_left, memory_order_relaxed);
	out->nr_lines = atomic_load_explicit(&l->lines.nr_found, memory_order_relaxed);
	process_readers_hung(l->readers, &out->hung);
	out->nr_lines_waiting = atomic_load_explicit(&l->lines.nr_waiting, memory_order_acquire);
	out->memory = atomic_load_explicit(&l->images.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.kernel.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.perfmaps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.jitdumps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.hotspots.memory, memory_order_relaxed) +
		      script_functions_memory(l->codes) +
		      atomic_load_explicit(&l->memory, memory_order_relaxed);
}

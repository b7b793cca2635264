// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Serve requests, load images, name places.
 *
 * Runs on: the process reader and the loader thread, or the caller of loader_run(). Both
 * threads are registered with urcu-qsbr (they may free through it), but offline:
 * a hanging read never delays a grace period. They need no read side: objects are never freed,
 * places by the loader alone, the rest is private to them.
 */
#include "symbols/loader.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "symbols/object/image_evict.h"
#include "symbols/jit/hotspots_record.h"
#include "symbols/place_names.h"
#include "symbols/process/proc_watch.h"
#include "symbols/process_readers.h"
#include "symbols/source/code.h"
#include "symbols/name/demangle.h"
#include "symbols/process/details.h"
#include "symbols/interpreters.h"
#include "symbols/object/fetch.h"

/* Of the loader: while there was work in the last round, and after a round without. */
#define WAIT_MS	     50
#define WAIT_IDLE_MS 100
/* A read of one process in /proc hangs. */
#define HANG_NS		2000000000ULL
#define STOP_WAIT_NS	2000000000ULL
#define DETAILS_A_TURN	16U
#define HELPERS_WAIT_NS 300000000ULL
#define PASS_MS		4
#define STACK_SIZE	(2UL * DEMANGLE_STACK)

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
	struct chains *chains;
	struct lines lines;
	struct interpreters interpreters;
	struct codes *codes;
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
	l->codes = l->naming.codes = codes_new();
	if (!l->codes || ksyms_new(&l->naming.kernel.ksyms) || chains_new(&l->chains) ||
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
	struct hotspots_kept kept;

	if (hotspots_kept(text, &kept))
		hotspots_replay(&l->naming.jit.hotspots, memory, text, &kept);
}

bool loader_java_settle(struct loader *l, uint64_t time_ns)
{
	return hotspots_settle(&l->naming.jit.hotspots, time_ns);
}

const struct chains *loader_chains(const struct loader *l)
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

struct codes *loader_codes(struct loader *l)
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
	atomic_store_explicit(&l->memory, symtab_memory(l->symtab) + chains_memory(l->chains),
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
	chains_free(l->chains);
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
	chains_free(l->chains);
	codes_free(l->codes);
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

static bool is_stopping(const struct loader *l)
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
	struct hotspots_chain chain;
	bool more;
	uint32_t late, fetched, jit = perfmaps_refresh(&l->naming.jit.perfmaps, now_ns);

	take_places(l);
	more = image_cache_work(&l->images, now_ns);
	if (is_stopping(l))
		return false;
	place_names_note(&l->names, hotspots_refresh(&l->naming.jit.hotspots, now_ns));
	while (hotspots_take_chain(&l->naming.jit.hotspots, &chain))
		lines_java(&l->lines, &chain);
	place_names_note(&l->names, jitdumps_refresh(&l->naming.jit.jitdumps, now_ns));
	if (is_stopping(l))
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
	if (is_stopping(l))
		return false;
	if (effort != NO_NAMES)
		more = place_names_pass(&l->names, more, effort == TO_THE_END);
	if (is_stopping(l))
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
		more = l->details && details_serve(l->details, DETAILS_A_TURN);
		any |= more;
	} while (more && !is_stopping(l) && proc_watch_is_mine());
	return any;
}

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	int wait_ms = WAIT_MS;

	pthread_setname_np(pthread_self(), "proftop/load");
	setpriority(PRIO_PROCESS, 0, HELPERS_NICE);
	rcu_register_thread();
	rcu_thread_offline();
	while (!is_stopping(l)) {
		bool any = wait_event(l->loader.event, wait_ms);

		if (l->maps && !is_stopping(l))
			process_readers_look(l->readers, HANG_NS);
		while (!is_stopping(l) && work(l, AS_IT_COMES))
			any = true;
		wait_ms = l->names.held ? PASS_MS : any ? WAIT_MS : WAIT_IDLE_MS;
	}
	rcu_unregister_thread();
	return NULL;
}

static int start_one(struct loader *l, struct worker *w, void *(*run)(void *))
{
	int rc = thread_start(&w->thread, STACK_SIZE, run, l);

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

	/* Pairs with is_stopping(), and with objects.c after each file. */
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

	while (more && !is_stopping(l)) {
		more = l->maps && maps_load_asked(l->maps);
		more |= l->details && details_serve(l->details, DETAILS_A_TURN);
		more |= work(l, effort);
		if (!more && is_busy(l, effort)) {
			wait_event(l->loader.event, WAIT_MS);
			more = true;
		}
	}
}

void loader_stop_run(struct loader *l)
{
	/* Pairs with is_stopping(). */
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
	out->nr_lines_waiting = atomic_load_explicit(&l->lines.nr_waiting, memory_order_relaxed);
	out->memory = atomic_load_explicit(&l->images.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.kernel.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.perfmaps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.jitdumps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.hotspots.memory, memory_order_relaxed) +
		      codes_memory(l->codes) +
		      atomic_load_explicit(&l->memory, memory_order_relaxed);
}

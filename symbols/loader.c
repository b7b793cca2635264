// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Serve requests, load images, name places.
 *
 * Runs on: the asker and the loader thread, or the caller of loader_run(). Both
 * threads are registered with urcu-qsbr (they may free through it), but offline:
 * a hanging read never delays a grace period. They need no read side: places and
 * objects are never freed, the rest is private to them.
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

#include "symbols/base/array.h"
#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "symbols/object/image_evict.h"
#include "symbols/source/code.h"
#include "symbols/name/demangle.h"
#include "symbols/process/details.h"
#include "symbols/interpreters.h"
#include "symbols/lang/pylines.h"
#include "symbols/object/fetch.h"

#define ASKER_NICE -10
/* Of the loader: while there was work in the last round, and after a round without. */
#define WAIT_MS		50
#define WAIT_IDLE_MS	100
#define ASKER_WAIT_MS	200
#define STOP_WAIT_NS	2000000000ULL
#define DETAILS_A_TURN	16U
#define HELPERS_WAIT_NS 300000000ULL
#define PLACES_A_PASS	4096U
/* Names are made together: a pass over a few new places waits so long after the one before. */
#define PASS_PLACES 256U
#define PASS_NS	    4000000ULL
#define PASS_MS	    4
#define STACK_SIZE  (2UL * DEMANGLE_STACK)

/* A place that has no name yet. */
struct waiting {
	uint32_t place;
	uint64_t since_ns;
};

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
	uint32_t script; /* object of all code of interpreters */
	uint32_t wait;	 /* object of the kinds of waits */
	struct symtab *symtab;
	struct code_desk code;
	char *kallsyms_path, *kcore_path; /* of the recorded machine; NULL: this one */
	struct fetch_desk fetch;
	struct worker asker, worker;
	struct waiting *waiting; /* loader's */
	uint32_t nr_waiting, max_waiting;
	uint32_t next_place; /* places below this id are done */
	uint64_t named_ns;   /* time of the last pass over the names */
	bool held;	     /* new places wait for the next pass */
	atomic_bool stop;    /* release by loader_stop, acquire by the threads */
	bool left_behind;
	/* Written by the loader, read by any thread, relaxed: statistics. */
	_Alignas(CACHELINE) atomic_ulong nr_named, nr_unnamed, nr_left, memory;
};

int loader_new(struct loader **out, struct places *places, struct objects *objects,
	       struct maps *maps, struct symtab *symtab, struct err *e)
{
	struct loader *l = aligned_alloc(CACHELINE, sizeof(*l));

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
	l->asker.event = wake_new();
	l->worker.event = wake_new();
	if (l->asker.event < 0 || l->worker.event < 0) {
		int rc = MIN(l->asker.event, l->worker.event);

		loader_free(l);
		return err_set(e, rc, "out of file descriptors: raise the limit (ulimit -n)");
	}
	l->codes = l->naming.codes = codes_new();
	if (!l->codes || ksyms_new(&l->naming.kernel.ksyms) || chains_new(&l->chains) ||
	    helpers_new(&l->helpers, l->worker.event)) {
		loader_free(l);
		return err_set(e, -ENOMEM, "out of memory");
	}
	l->images.helpers = l->fetch.helpers = l->naming.jit.hotspots.helpers = l->helpers;
	l->interpreters = (struct interpreters){
		.maps = maps, .objects = objects, .helpers = l->helpers, .news_fd = -1
	};
	l->script = objects_intern(objects, &(struct object_identity){ .kind = OBJECT_SCRIPT },
				   "[script]", 8, 0, 0, 0)
			    ->id;
	l->wait = objects_intern(objects, &(struct object_identity){ .kind = OBJECT_WAIT },
				 "[wait]", 6, 0, 0, 0)
			  ->id;
	lines_init(&l->lines, &l->images, places, symtab, l->chains);
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

void loader_no_java(struct loader *l)
{
	l->naming.jit.hotspots.off = true;
}

const struct chains *loader_chains(const struct loader *l)
{
	return l->chains;
}

void loader_recorded(struct loader *l, const char *root)
{
	l->images.no_proc = l->naming.jit.perfmaps.no_proc = true;
	l->naming.jit.jitdumps.no_proc = true;
	l->naming.jit.hotspots.maps = NULL; /* there are no processes to read */
	l->images.root = l->naming.jit.perfmaps.root = l->naming.jit.jitdumps.root = root;
	details_free(l->details);
	l->details = NULL;
	l->interpreters.maps = NULL;
}

/* Read the symbols of the recorded machine's kernel from its files, if present. */
static bool take_list_of(struct loader *l, const char *root)
{
	char *list = NULL, *core = NULL;

	if (!root || asprintf(&list, "%s/proc/kallsyms", root) < 0 ||
	    asprintf(&core, "%s/proc/kcore", root) < 0 || access(list, R_OK)) {
		free(list);
		free(core);
		return false;
	}
	l->naming.kernel.path = l->kallsyms_path = list;
	l->code.kcore_path = l->kcore_path = core;
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
	return l->script;
}

uint32_t loader_wait(const struct loader *l)
{
	return l->wait;
}

struct ksyms *loader_ksyms(struct loader *l)
{
	return l->naming.kernel.ksyms;
}

void loader_other_clock(struct loader *l)
{
	l->naming.jit.jitdumps.other_clock = true;
}

bool loader_free(struct loader *l)
{
	if (!l)
		return true;
	if (l->left_behind)
		return false;
	/* An abandoned helper keeps its job and uses nothing else of the loader. */
	image_cache_fini(&l->images);
	fetch_fini(&l->fetch);
	lines_fini(&l->lines);
	code_fini(&l->code);
	naming_jit_fini(&l->naming.jit);
	interpreters_fini(&l->interpreters);
	helpers_free(l->helpers, time_now_ns() + HELPERS_WAIT_NS);
	if (l->asker.event >= 0)
		close(l->asker.event);
	if (l->worker.event >= 0)
		close(l->worker.event);
	chains_free(l->chains);
	codes_free(l->codes);
	naming_fini(&l->naming);
	details_free(l->details);
	free(l->waiting);
	free(l->kallsyms_path);
	free(l->kcore_path);
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
	wake_send(l->maps ? l->asker.event : l->worker.event);
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

/* Keep @place for a later pass; without memory it never gets a name. */
static void keep_waiting(struct loader *l, const struct waiting *w)
{
	if (!array_reserve(&l->waiting, &l->max_waiting, l->nr_waiting + 1ull))
		return;
	l->waiting[l->nr_waiting++] = *w;
}

static void count_name(struct loader *l, bool by_name)
{
	atomic_fetch_add_explicit(by_name ? &l->nr_named : &l->nr_unnamed, 1, memory_order_relaxed);
}

/* Get the source of JIT code from a jitdump. */
static void add_jit_line(struct loader *l, uint32_t id, const struct place *place)
{
	struct object *object = objects_at(l->images.objects, place->object);
	const char *file;
	uint32_t line;

	if (object && object->identity.kind == OBJECT_ANON)
		hotspots_want_chain(&l->naming.jit.hotspots, object, place->offset, id);
	if (object && object->identity.kind == OBJECT_ANON &&
	    jitdumps_line(&l->naming.jit.jitdumps, object, place->offset, &file, &line))
		lines_told(&l->lines, id, file, line);
}

/* The source of code of an interpreter. */
static void add_script_line(struct loader *l, uint32_t id, const struct place *place)
{
	const struct code_text *t = codes_at(l->codes, lang_place_code(place->offset));
	uint32_t instr = lang_place_instr(place->offset), line = 0;
	char file[CODES_TEXT_MAX + 1];

	if (!t)
		return;
	if (t->language != LANG_PYTHON)
		line = instr >= LANG_INLINED ? 0 : instr;
	else if (instr < LANG_INLINED)
		line = pyline_of(t->version, t->table, t->table_size, t->first_line, instr);
	*(char *)mempcpy(file, t->file, t->file_size) = '\0';
	lines_told(&l->lines, id, file, line ? line : t->first_line);
}

/* Name one place; false if it has to be tried again. */
static bool name_place(struct loader *l, const struct waiting *w, bool now)
{
	const struct place *place = places_at(l->places, w->place);
	struct naming_question q = { .since_ns = w->since_ns, .now = now };
	bool by_name = false;
	uint32_t symbol;
	int rc;

	if (!place)
		return false; /* under construction */
	q.object = place->object;
	q.offset = place->offset;
	rc = naming_find(&l->naming, &q, &symbol, &by_name);
	if (rc == -EAGAIN || rc == -ECANCELED)
		return false;
	if (!rc) {
		places_name(l->places, w->place, symbol);
		if (place->object == l->wait) {
			; /* no code */
		} else if (place->object == l->script) {
			add_script_line(l, w->place, place);
		} else {
			lines_add(&l->lines, w->place);
			add_jit_line(l, w->place, place);
		}
	}
	count_name(l, !rc && by_name);
	return true;
}

/* Place @id is named next. */
static void prepare(struct loader *l, uint32_t id)
{
	const struct place *place = places_at(l->places, id);
	struct naming_question q;

	if (!place)
		return;
	q = (struct naming_question){ .object = place->object, .offset = place->offset };
	naming_prepare(&l->naming, &q);
}

/* Try the unnamed places again. Return the number of named ones. */
static uint32_t name_waiting(struct loader *l, bool now)
{
	uint32_t nr = l->nr_waiting, kept = 0;

	for (uint32_t i = 0; i < nr && !is_stopping(l); i++)
		prepare(l, l->waiting[i].place);
	naming_ready(&l->naming);
	for (uint32_t i = 0; i < nr; i++) {
		if (is_stopping(l) || !name_place(l, &l->waiting[i], now))
			l->waiting[kept++] = l->waiting[i];
	}
	l->nr_waiting = kept;
	return nr - kept;
}

/* Ids that were returned may make the table shorter than next. */
static uint32_t nr_unseen(const struct loader *l)
{
	uint32_t nr = places_nr(l->places);

	return nr > l->next_place ? nr - l->next_place : 0;
}

/* Name new places, a batch at a time. Return the number of places tried. */
static uint32_t name_new(struct loader *l, bool now)
{
	uint32_t nr = MIN(nr_unseen(l), PLACES_A_PASS);
	struct waiting w = { .since_ns = nr ? time_now_ns() : 0 };

	for (uint32_t i = 0; i < nr; i++)
		prepare(l, l->next_place + i);
	naming_ready(&l->naming);
	for (uint32_t i = 0; i < nr && !is_stopping(l); i++) {
		w.place = l->next_place++;
		if (!name_place(l, &w, now))
			keep_waiting(l, &w);
	}
	return nr;
}

/* Name @place again, which has a name. */
static void rename_place(struct loader *l, uint32_t id, const struct place *place)
{
	struct naming_question q = { .object = place->object,
				     .offset = place->offset,
				     .now = true };
	/* Pairs with nothing: only this thread writes it. */
	uint32_t before = atomic_load_explicit(&place->symbol, memory_order_relaxed), symbol;
	const struct symbol *old = symtab_at(l->symtab, before);
	bool by_name;

	if (!old || naming_find(&l->naming, &q, &symbol, &by_name) || !by_name || symbol == before)
		return;
	places_name(l->places, id, symbol);
	add_jit_line(l, id, place);
	if (!old->made_up)
		return;
	lines_add(&l->lines, id);
	atomic_fetch_sub_explicit(&l->nr_unnamed, 1, memory_order_relaxed);
	count_name(l, true);
}

/* @object has more symbols: name the places again that have only an address, or changed code. */
static void rename_places(struct loader *l, uint32_t object)
{
	for (uint32_t id = 0; id < l->next_place && !is_stopping(l); id++) {
		const struct place *place = places_at(l->places, id);

		if (place && place->object == object)
			rename_place(l, id, place);
	}
}

/* Kernel code was made where other code may have been. */
static void rename_kernel(struct loader *l)
{
	uint64_t start, end;

	if (!ksyms_take_news(l->naming.kernel.ksyms, &start, &end))
		return;
	for (uint32_t id = 0; id < l->next_place && !is_stopping(l); id++) {
		const struct place *place = places_at(l->places, id);

		if (place && place->object == OBJECT_ID_KERNEL && place->offset >= start &&
		    place->offset < end)
			rename_place(l, id, place);
	}
}

/* The debug file of @object arrived: read its image and the source of its places again. */
static void take_fetched(struct loader *l, uint32_t object, uint64_t now_ns)
{
	uint32_t nr;

	image_evict_reload(&l->images, object, now_ns);
	lines_again(&l->lines, object);
	for (uint32_t id = 0; id < l->next_place && !is_stopping(l); id++) {
		const struct place *place = places_at(l->places, id);
		const struct symbol *s =
			place && place->object == object
				?
				/* Pairs with nothing: only this thread writes it. */
				symtab_at(l->symtab, atomic_load_explicit(&place->symbol,
									  memory_order_relaxed))
				: NULL;

		/* The others get it when they are named. */
		if (s && !s->made_up && !chains_at(l->chains, id, &nr))
			lines_add(&l->lines, id);
	}
}

static void update_figures(struct loader *l)
{
	atomic_store_explicit(&l->nr_left, nr_unseen(l) + l->nr_waiting, memory_order_relaxed);
	atomic_store_explicit(&l->memory, symtab_memory(l->symtab) + chains_memory(l->chains),
			      memory_order_relaxed);
}

enum effort {
	AS_IT_COMES, /* a better name may follow: places wait for it */
	TO_THE_END,
	NO_NAMES, /* objects only */
};

/*
 * Name the places that waited for images, then new ones, then look up source
 * lines. True: more work.
 */
static bool name_places(struct loader *l, bool more, bool now)
{
	uint64_t now_ns = time_now_ns();
	uint32_t nr = nr_unseen(l);

	l->held = !now && nr && nr < PASS_PLACES && now_ns - l->named_ns < PASS_NS;
	if (!l->held) {
		l->named_ns = now_ns;
		/* Not only after the last image: the first rows need names soon. */
		more |= name_waiting(l, now) > 0;
		more |= name_new(l, now) > 0;
	}
	if (is_stopping(l))
		return false;
	if (!more)
		more = lines_work(&l->lines);
	return more;
}

/* One round: images, then names. True: more work. */
static bool work(struct loader *l, enum effort effort)
{
	uint64_t now_ns = time_now_ns();
	struct hotspots_chain chain;
	bool more = image_cache_work(&l->images, now_ns);
	uint32_t late, dumped, fetched, java,
		jit = perfmaps_refresh(&l->naming.jit.perfmaps, now_ns);

	if (is_stopping(l))
		return false;
	java = hotspots_refresh(&l->naming.jit.hotspots, now_ns);
	if (java != OBJECT_ID_UNKNOWN)
		rename_places(l, java);
	while (hotspots_take_chain(&l->naming.jit.hotspots, &chain))
		lines_java(&l->lines, &chain);
	dumped = jitdumps_refresh(&l->naming.jit.jitdumps, now_ns);
	if (is_stopping(l))
		return false;
	more |= interpreters_work(&l->interpreters, now_ns);
	if (dumped != OBJECT_ID_UNKNOWN)
		rename_places(l, dumped);
	rename_kernel(l);
	fetched = fetch_serve(&l->fetch, now_ns);
	if (fetched != OBJECT_ID_UNKNOWN)
		take_fetched(l, fetched, now_ns);
	while ((late = image_cache_take_late(&l->images)) != OBJECT_ID_UNKNOWN)
		rename_places(l, late);
	if (jit != OBJECT_ID_UNKNOWN)
		rename_places(l, jit);
	code_serve(&l->code);
	if (is_stopping(l))
		return false;
	if (effort != NO_NAMES)
		more = name_places(l, more, effort == TO_THE_END);
	if (is_stopping(l))
		return false;
	update_figures(l);
	return more;
}

static void *asker_main(void *arg)
{
	struct loader *l = arg;

	pthread_setname_np(pthread_self(), "proftop/proc");
	/* Small work that all samples of a new process wait for. Most users have no permission. */
	setpriority(PRIO_PROCESS, 0, ASKER_NICE);
	rcu_register_thread();
	/* Offline forever: /proc may hang, and the maps are read under their mutex here. */
	rcu_thread_offline();
	while (!is_stopping(l)) {
		bool any = wait_event(l->asker.event, ASKER_WAIT_MS), more;

		if (is_stopping(l))
			break;
		/* Stacks wait for the maps: first. */
		do {
			any |= maps_load_asked(l->maps) > 0;
			more = l->details && details_serve(l->details, DETAILS_A_TURN);
			any |= more;
		} while (more && !is_stopping(l));
		/* A wake is for both threads. */
		if (any)
			wake_send(l->worker.event);
	}
	rcu_unregister_thread();
	return NULL;
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
		bool any = wait_event(l->worker.event, wait_ms);

		while (!is_stopping(l) && work(l, AS_IT_COMES))
			any = true;
		wait_ms = l->held ? PASS_MS : any ? WAIT_MS : WAIT_IDLE_MS;
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
	int rc;

	atomic_store_explicit(&l->stop, false, memory_order_relaxed); /* no thread yet */
	/* Files that hang delay no other name; a replay reads all of them first. */
	l->naming.jit.reads.helpers = l->images.no_proc ? NULL : l->helpers;
	rc = start_one(l, &l->worker, loader_main);
	if (!rc && l->maps)
		rc = start_one(l, &l->asker, asker_main);
	if (rc) {
		loader_stop(l);
		return err_set(e, rc, "cannot create a thread: raise the limit (ulimit -u)");
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
	stop_one(l, &l->asker, deadline_ns);
	stop_one(l, &l->worker, deadline_ns);
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

	while (more) {
		more = l->maps && maps_load_asked(l->maps);
		more |= l->details && details_serve(l->details, DETAILS_A_TURN);
		more |= work(l, effort);
		if (!more && is_busy(l, effort)) {
			wait_event(l->worker.event, WAIT_MS);
			more = true;
		}
	}
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
	out->nr_named = atomic_load_explicit(&l->nr_named, memory_order_relaxed);
	out->nr_unnamed = atomic_load_explicit(&l->nr_unnamed, memory_order_relaxed);
	out->nr_waiting = atomic_load_explicit(&l->nr_left, memory_order_relaxed);
	out->nr_lines = atomic_load_explicit(&l->lines.nr_found, memory_order_relaxed);
	out->nr_lines_waiting = atomic_load_explicit(&l->lines.nr_waiting, memory_order_relaxed);
	out->memory = atomic_load_explicit(&l->images.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.kernel.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.perfmaps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&l->naming.jit.jitdumps.memory, memory_order_relaxed) +
		      codes_memory(l->codes) +
		      atomic_load_explicit(&l->memory, memory_order_relaxed);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From places to names, in the background: /proc of new processes by a thread that is replaced when
 * it hangs; interpreters described by helpers; results of helpers, then names.
 *
 * Runs on: the process reader and the loader thread, or the caller of symbols_run(). Both threads
 * are registered with urcu-qsbr (they may free through it), but offline: a hanging read never
 * delays a grace period. They need no read side: objects are never freed, places by the loader
 * alone, the rest is private to them. Other threads read the tables only, lock-free.
 */
#include "symbols/symbols.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/code/code.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/name/name.h"
#include "symbols/name/naming.h"

/*
 * Places on their way into another table, with their names and chains.
 *
 * Code that a JIT made in a process that has ended has names, and its addresses are of no use any
 * more: such places with one function and chain become one, of an object of their own. Else a
 * program that starts again and again fills the tables with the same stacks.
 *
 * Runs on: the builder, which moves the places that are in use; then the loader takes the new table
 * over, and frees the old one.
 */

/*
 * Begin to move to @to (borrowed), with a new table of chains. Later ids of @from do not move, if
 * it does not grow until all threads use @to. NULL: out of memory.
 */
static struct places_move *places_move_new(struct places *from, struct places *to,
					   const struct inlines *chains, struct objects *objects,
					   const struct symtab *symtab)
{
	/* No process has the id 0. */
	const struct object_identity identity = { .kind = OBJECT_ANON, .layer = UINT32_MAX };
	struct places_move *m = calloc(1, sizeof(*m));

	assert(from != to);
	if (!m)
		return NULL;
	*m = (struct places_move){
		.from = from, .to = to, .from_chains = chains, .objects = objects, .symtab = symtab
	};
	m->ended = objects_intern(objects, &identity, "//anon", 6, 0, 0, 0)->id;
	m->nr_ids = places_room(from);
	m->ids = calloc(MAX(m->nr_ids, 1u), sizeof(*m->ids));
	if (m->ids && !inlines_new(&m->to_chains))
		return m;
	free(m->ids);
	free(m);
	return NULL;
}

/* Return the new id of a file, which leaves the table with the last place that has it. */
static uint32_t move_file(struct places_move *m, uint32_t object, uint32_t file)
{
	if (file == SYMBOL_TAIL_CALL)
		return file;
	if (file == SYMBOL_NO_FILE || !array_reserve_zeroed(&m->files, &m->nr_files, file + 1ULL))
		return SYMBOL_NO_FILE;
	if (!m->files[file])
		m->files[file] = inlines_move_file(m->to_chains, object,
						   inlines_file(m->from_chains, file)) +
				 1;
	return m->files[file] - 1;
}

/* Move the chain of place @old. Return its new number; INLINES_NONE: it has none. */
static uint32_t move_chain(struct places_move *m, uint32_t object, uint32_t old)
{
	struct symbol_frame out[DWARF_FRAMES_MAX];
	const struct symbol_frame *frames;
	uint32_t nr;

	frames = inlines_at(m->from_chains, old, &nr);
	if (!frames)
		return INLINES_NONE;
	nr = MIN(nr, DWARF_FRAMES_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		out[i] = frames[i];
		out[i].file = move_file(m, object, frames[i].file);
	}
	return chains_intern(m->to_chains, out, nr);
}

static uint32_t symbol_of(const struct place *place)
{
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	return atomic_load_explicit(&place->symbol, memory_order_acquire);
}

/*
 * Return whether the place is code of a JIT in a process that has ended, and has the name that it
 * will keep. A jitdump has its code, which can still be shown by address.
 */
static bool is_ended(const struct places_move *m, const struct place *place)
{
	const struct object *object = objects_at(m->objects, place->object);
	const struct symbol *s = symtab_at(m->symtab, symbol_of(place));
	const char *source = object ? atomic_load_explicit(&object->source, memory_order_relaxed)
				    : NULL;

	if (!object || object->identity.kind != OBJECT_ANON || !s || s->made_up ||
	    m->ended == OBJECT_ID_UNKNOWN)
		return false;
	return object->id == m->ended ||
	       (!object_is_mapped(object) && !(source && !strcmp(source, "jitdump")) &&
		!atomic_load_explicit(&object->interpreter, memory_order_relaxed));
}

uint32_t places_move_one(struct places_move *m, uint32_t id)
{
	const struct place *place = id < m->nr_ids ? places_at(m->from, id) : NULL;
	uint32_t symbol, chain, to, nr;

	if (!place)
		return PLACE_NONE;
	if (m->ids[id])
		return m->ids[id] - 1;
	if (places_crowded(m->to))
		places_grow(m->to);
	symbol = symbol_of(place);
	chain = move_chain(m, place->object, id);
	to = is_ended(m, place) ? places_intern(m->to, m->ended, (uint64_t)symbol << 32 | chain)
				: places_intern(m->to, place->object, place->offset);
	if (to == PLACE_NONE)
		return to;
	m->ids[id] = to + 1;
	if (symbol != SYMBOL_NONE)
		places_name(m->to, to, symbol);
	if (chain != INLINES_NONE && !inlines_at(m->to_chains, to, &nr))
		inlines_set(m->to_chains, to, chain);
	return to;
}

/* Give place @id the name and chain that place @old got since it moved. */
static void move_late(struct places_move *m, uint32_t old, uint32_t id)
{
	const struct place *place = places_at(m->from, old);
	uint32_t symbol = symbol_of(place), chain, nr;

	/* Code of ended processes has both; it is one place for many. */
	if (places_at(m->to, id)->object == m->ended)
		return;
	if (symbol != SYMBOL_NONE)
		places_name(m->to, id, symbol);
	if (inlines_at(m->to_chains, id, &nr))
		return;
	chain = move_chain(m, place->object, old);
	if (chain != INLINES_NONE)
		inlines_set(m->to_chains, id, chain);
}

/* Loader: move the names and chains that the old tables got since. */
static void places_move_late(struct places_move *m)
{
	for (uint32_t i = 0; i < m->nr_ids; i++)
		if (m->ids[i])
			move_late(m, i, m->ids[i] - 1);
}

/* Free @m, and none of the tables. */
static void places_move_free(struct places_move *m)
{
	free(m->ids);
	free(m->files);
	free(m);
}

/*
 * Names of the sampled places: each place once, in the order of ids; again when there are better
 * symbols.
 *
 * One thread: the loader; the counters are read by any thread. Everything is borrowed.
 */

struct place_names {
	struct places *places;
	struct objects *objects;
	struct symtab *symtab;
	struct naming *naming;
	struct lines *lines;
	struct inlines *chains;
	const struct script_functions *codes;
	const atomic_bool *stop; /* release by symbols_stop() */
	uint32_t script;	 /* object of all code of interpreters */
	uint32_t wait;		 /* object of the kinds of waits */
	struct place_names_waiting {
		uint32_t place; /* without a name yet */
		uint64_t since_ns;
	} * waiting; /* owned */
	uint32_t nr_waiting, max_waiting;
	uint32_t next_waiting; /* where the next pass goes on */
	bool any_named;	       /* since it began with the first */
	uint32_t next_place;   /* places below this id are done */
	uint64_t named_ns;     /* time of the last pass */
	bool held;	       /* new places wait for the next pass */
	uint8_t *changed;      /* by object: 1: place_names_note(); owned */
	uint32_t max_changed;
	bool has_changed;
	/* Relaxed: statistics. */
	_Alignas(CACHELINE) atomic_ulong nr_named, nr_unnamed;
};

#define PLACES_A_PASS 4096U

/* Names are made together: a pass over a few new places waits so long after the one before. */
#define PASS_PLACES 256U

#define PASS_NS 4000000ULL

static bool names_are_stopped(const struct place_names *n)
{
	return atomic_load_explicit(n->stop, memory_order_acquire);
}

/* Keep @place for a later pass; without memory it never gets a name. */
static void keep_waiting(struct place_names *n, const struct place_names_waiting *w)
{
	assert(n->nr_waiting <= n->max_waiting);
	if (!array_reserve(&n->waiting, &n->max_waiting, n->nr_waiting + 1ull))
		return;
	n->waiting[n->nr_waiting++] = *w;
}

static void count_name(struct place_names *n, bool by_name)
{
	atomic_fetch_add_explicit(by_name ? &n->nr_named : &n->nr_unnamed, 1, memory_order_relaxed);
}

/* Get the source of JIT code from a jitdump. */
static void add_jit_line(struct place_names *n, uint32_t id, const struct place *place)
{
	struct object *object = objects_at(n->objects, place->object);
	const char *file;
	uint32_t line;

	if (object && object->identity.kind == OBJECT_ANON)
		jvm_table_want_chain(&n->naming->jit.hotspots, object, place->offset, id);
	if (object && object->identity.kind == OBJECT_ANON &&
	    jitdumps_line(&n->naming->jit.jitdumps, object, place->offset, &file, &line))
		lines_told(n->lines, id, file, line);
}

/* The source of code of an interpreter. */
static void add_script_line(struct place_names *n, uint32_t id, const struct place *place)
{
	const struct code_text *t = script_functions_at(n->codes, lang_place_code(place->offset));
	uint32_t instr = lang_place_instr(place->offset), line = 0;
	char file[SCRIPT_FUNCTIONS_TEXT_MAX + 1];

	if (!t)
		return;
	if (t->language == LANG_RUBY)
		line = instr >= LANG_INLINED ? 0 : rubyline_of(t->table, t->table_size, instr);
	else if (t->language != LANG_PYTHON)
		line = instr >= LANG_INLINED ? 0 : instr;
	else if (instr < LANG_INLINED)
		line = pyline_of(t->version, t->table, t->table_size, t->first_line, instr);
	*(char *)mempcpy(file, t->file, t->file_size) = '\0';
	lines_told(n->lines, id, file, line ? line : t->first_line);
}

/* Return the name of a place as of now; SYMBOL_NONE: none. */
static uint32_t place_names_symbol_of(const struct place *place)
{
	/* Pairs with nothing: only this thread writes it. */
	return atomic_load_explicit(&place->symbol, memory_order_relaxed);
}

/* A place that was moved has its name; look up what is not known. */
static void take_moved(struct place_names *n, uint32_t id, const struct place *place)
{
	const struct symbol *symbol = symtab_at(n->symtab, place_names_symbol_of(place));
	uint32_t nr;

	count_name(n, symbol && !symbol->made_up);
	if (!inlines_at(n->chains, id, &nr) && place->object != n->script)
		add_jit_line(n, id, place);
}

/* Name one place; false if it has to be tried again. */
static bool name_place(struct place_names *n, const struct place_names_waiting *w, bool now)
{
	const struct place *place = places_at(n->places, w->place);
	struct naming_question q = { .since_ns = w->since_ns, .now = now };
	struct naming_answer a = { .by_name = false };
	int rc;

	if (!place)
		return false; /* under construction */
	if (place_names_symbol_of(place) != SYMBOL_NONE) {
		take_moved(n, w->place, place);
		return true;
	}
	q.object = place->object;
	q.offset = place->offset;
	rc = naming_find(n->naming, &q, &a);
	if (rc == -EAGAIN || rc == -ECANCELED)
		return false;
	if (!rc) {
		places_name(n->places, w->place, a.symbol);
		if (place->object == n->wait) {
			; /* no code */
		} else if (place->object == n->script) {
			add_script_line(n, w->place, place);
		} else {
			lines_add(n->lines, w->place);
			add_jit_line(n, w->place, place);
		}
	}
	count_name(n, !rc && a.by_name);
	return true;
}

/* Place @id is named next. */
static void prepare(struct place_names *n, uint32_t id)
{
	const struct place *place = places_at(n->places, id);
	struct naming_question q;

	if (!place || place_names_symbol_of(place) != SYMBOL_NONE)
		return;
	q = (struct naming_question){ .object = place->object, .offset = place->offset };
	naming_prepare(n->naming, &q);
}

/*
 * Try the next PLACES_A_PASS unnamed places again: of many, each pass would else try all after each
 * image. Return whether some were named, or the others are to be tried.
 */
static bool name_waiting(struct place_names *n, bool now)
{
	uint32_t first = n->next_waiting < n->nr_waiting ? n->next_waiting : 0;
	uint32_t end = first + MIN(n->nr_waiting - first, PLACES_A_PASS), kept = first;

	for (uint32_t i = first; i < end && !names_are_stopped(n); i++)
		prepare(n, n->waiting[i].place);
	naming_ready(n->naming);
	/* In their order, which that of functions with equal shares depends on. */
	for (uint32_t i = first; i < end; i++) {
		if (names_are_stopped(n) || !name_place(n, &n->waiting[i], now))
			n->waiting[kept++] = n->waiting[i];
	}
	if (kept < end)
		memmove(n->waiting + kept, n->waiting + end,
			(n->nr_waiting - end) * sizeof(*n->waiting));
	n->any_named = (n->any_named && first) || kept < end;
	n->nr_waiting -= end - kept;
	n->next_waiting = kept < n->nr_waiting ? kept : 0;
	return n->any_named || n->next_waiting;
}

/* Ids that were returned may make the table shorter than next. */
static uint32_t nr_unseen(const struct place_names *n)
{
	uint32_t nr = places_nr(n->places);

	return nr > n->next_place ? nr - n->next_place : 0;
}

/* Name new places, a batch at a time. Return the number of places tried. */
static uint32_t name_new(struct place_names *n, bool now)
{
	uint32_t nr = MIN(nr_unseen(n), PLACES_A_PASS);
	struct place_names_waiting w = { .since_ns = nr ? time_now_ns() : 0 };

	for (uint32_t i = 0; i < nr; i++)
		prepare(n, n->next_place + i);
	naming_ready(n->naming);
	for (uint32_t i = 0; i < nr && !names_are_stopped(n); i++) {
		w.place = n->next_place++;
		if (!name_place(n, &w, now))
			keep_waiting(n, &w);
	}
	return nr;
}

/* Name @place again, which has a name. */
static void rename_place(struct place_names *n, uint32_t id, const struct place *place)
{
	struct naming_question q = { .object = place->object,
				     .offset = place->offset,
				     .now = true };
	uint32_t before = place_names_symbol_of(place);
	const struct symbol *old = symtab_at(n->symtab, before);
	struct naming_answer a;

	if (!old || naming_find(n->naming, &q, &a) || !a.by_name || a.symbol == before)
		return;
	places_name(n->places, id, a.symbol);
	add_jit_line(n, id, place);
	if (!old->made_up)
		return;
	lines_add(n->lines, id);
	if (id >= n->next_place)
		return; /* moved here with its name, and not counted yet */
	atomic_fetch_sub_explicit(&n->nr_unnamed, 1, memory_order_relaxed);
	count_name(n, true);
}

/* Note that @object has more symbols; without memory its places keep their names. */
static void place_names_note(struct place_names *n, uint32_t object)
{
	assert(n->max_changed >= (n->changed ? 1U : 0U));
	if (object == OBJECT_ID_UNKNOWN ||
	    !array_reserve_zeroed(&n->changed, &n->max_changed, object + 1ULL))
		return;
	n->changed[object] = 1;
	n->has_changed = true;
}

/* Name the places of noted objects again that have only an address, or changed code: in one pass.
 */
static void place_names_rename(struct place_names *n)
{
	uint32_t nr_places = n->has_changed ? places_nr(n->places) : 0;

	for (uint32_t id = 0; id < nr_places && !names_are_stopped(n); id++) {
		const struct place *place = places_at(n->places, id);

		if (place && place->object < n->max_changed && n->changed[place->object])
			rename_place(n, id, place);
	}
	if (n->has_changed)
		memset(n->changed, 0, n->max_changed);
	n->has_changed = false;
}

/* The same of kernel code that was made where other code may have been. */
static void place_names_rename_kernel(struct place_names *n)
{
	bool modules = naming_kernel_take_news(&n->naming->kernel);
	uint32_t nr_places = places_nr(n->places);
	uint64_t start, end;

	if (!ksyms_take_news(n->naming->kernel.ksyms, &start, &end) && !modules)
		return;
	if (modules) {
		start = 0;
		end = UINT64_MAX;
	}
	for (uint32_t id = 0; id < nr_places && !names_are_stopped(n); id++) {
		const struct place *place = places_at(n->places, id);

		if (place && place->object == OBJECT_ID_KERNEL && place->offset >= start &&
		    place->offset < end)
			rename_place(n, id, place);
	}
}

/* The debug file of @object arrived: look up the source of its places again. */
static void place_names_fetched(struct place_names *n, uint32_t object)
{
	const struct symbol_frame *frames;
	uint32_t nr_places = places_nr(n->places), nr;

	lines_again(n->lines, object);
	for (uint32_t id = 0; id < nr_places && !names_are_stopped(n); id++) {
		const struct place *place = places_at(n->places, id);
		const struct symbol *s =
			place && place->object == object
				? symtab_at(n->symtab, place_names_symbol_of(place))
				: NULL;

		/* The others get it when they are named. */
		/* Without a line: it only has tail calls so far. */
		if (s && !s->made_up &&
		    (!(frames = inlines_at(n->chains, id, &nr)) || !frames[nr - 1].line))
			lines_add(n->lines, id);
	}
}

/*
 * Name the places that waited for images, then new ones, then look up source lines. @more: an image
 * was read; @now: make up names instead of waiting for better ones. True: more work.
 */
static bool place_names_pass(struct place_names *n, bool more, bool now)
{
	uint64_t now_ns = time_now_ns();
	uint32_t nr = nr_unseen(n);

	n->held = !now && nr && nr < PASS_PLACES && now_ns - n->named_ns < PASS_NS;
	if (!n->held) {
		n->named_ns = now_ns;
		/* Not only after the last image: the first rows need names soon. */
		more |= name_waiting(n, now);
		more |= name_new(n, now) > 0;
	}
	if (names_are_stopped(n))
		return false;
	if (!more)
		more = lines_work(n->lines, now);
	return more;
}

static void mark(uint64_t *live, uint32_t nr, uint32_t symbol)
{
	if (symbol < nr)
		live[symbol / 64] |= 1ULL << symbol % 64;
}

/* Drop the functions that no place has. Without memory they are kept. */
static void drop_functions(struct place_names *n)
{
	uint32_t nr = symtab_nr(n->symtab), nr_places = places_nr(n->places), nr_frames = 0;
	uint64_t *live = calloc(nr / 64 + 1, sizeof(*live));

	for (uint32_t id = 0; live && id < nr_places; id++) {
		const struct place *place = places_at(n->places, id);
		const struct symbol_frame *frames = inlines_at(n->chains, id, &nr_frames);

		if (place)
			mark(live, nr, place_names_symbol_of(place));
		for (uint32_t i = 0; frames && i < nr_frames; i++)
			mark(live, nr, frames[i].symbol);
	}
	if (live)
		(void)symtab_keep(n->symtab, live);
	free(live);
}

/* Use the new table of @m, with what is known of the old one; all others are named again. */
static void place_names_move(struct place_names *n, struct places_move *m)
{
	places_move_late(m);
	lines_move(n->lines, m->to, m->to_chains, m->ids, m->nr_ids);
	n->places = m->to;
	n->chains = m->to_chains;
	n->nr_waiting = n->next_waiting = n->next_place = 0;
	drop_functions(n);
	atomic_store_explicit(&n->nr_named, 0, memory_order_relaxed);
	atomic_store_explicit(&n->nr_unnamed, 0, memory_order_relaxed);
}

/* Return the number of places without a name. */
static uint32_t place_names_left(const struct place_names *n)
{
	return nr_unseen(n) + n->nr_waiting;
}

static void place_names_fini(struct place_names *n)
{
	free(n->waiting);
	free(n->changed);
}

/*
 * One reader at a time works. One that hangs ends with its read; until then, its process is left
 * out by the next ones, and after some of them each process of its user.
 */

#define NICE	   -10
#define WAIT_MS	   200
#define STACK_SIZE (1UL << 20)

/* At the end, for threads that hang already. */
#define LEFT_NS 50000000ULL

/*
 * Do the requested work, each read between proc_watch_begin() and proc_watch_end(), until
 * proc_watch_is_mine() is false. Return whether there was any.
 */
typedef bool (*process_readers_fn)(void *ctx);

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

/* Prepare; after work, @done_fd is woken. @user_of: proc_user_of(). 0 or -errno. */
static int process_readers_new(struct process_readers **out, process_readers_fn serve, void *ctx,
			       proc_user_fn user_of, int done_fd)
{
	struct process_readers *r = calloc(1, sizeof(*r));
	int code;

	assert(serve && user_of);
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

	assert(!r->now);
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

/* Start the thread. 0 or -errno, as thread_start(). */
static int process_readers_start(struct process_readers *r)
{
	atomic_store_explicit(&r->stop, false, memory_order_relaxed); /* no thread yet */
	return start(r);
}

/* Announce work. Async-signal-safe. */
static void process_readers_wake(struct process_readers *r)
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
static bool leave_reader(struct process_readers *r, uint32_t at, pid_t pid, uid_t user,
			 uint64_t since_ns)
{
	assert(at < PROC_HUNG_MAX && !r->left[at]);
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

/* From time to time: start another thread if this one has hung for @ns. */
static void process_readers_look(struct process_readers *r, uint64_t ns)
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
	if (pid && at < PROC_HUNG_MAX && !leave_reader(r, at, pid, user, since_ns))
		pid = 0;
	note_hung(r, pid, user);
	/* Again at the next look, where there is no thread. */
	if (!r->now && !start(r))
		process_readers_wake(r);
}

/* Get the threads that hang. */
static void process_readers_hung(struct process_readers *r, struct symbols_hung *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->known;
	pthread_mutex_unlock(&r->lock);
}

/* Join a reader until @deadline_ns, and forget it; false: it hangs. */
static bool join(struct reader **reader, uint64_t deadline_ns)
{
	if (*reader && !thread_join_until((*reader)->thread, deadline_ns))
		return false;
	free(*reader);
	*reader = NULL;
	return true;
}

/* Stop until @deadline_ns. False: a thread still hangs, and uses @r. */
static bool process_readers_stop(struct process_readers *r, uint64_t deadline_ns)
{
	uint64_t left_ns;
	bool ended;

	/* Release: pairs with is_stopping(). */
	atomic_store_explicit(&r->stop, true, memory_order_release);
	wake_send(r->event);
	ended = join(&r->now, deadline_ns);
	left_ns = MIN(deadline_ns, time_now_ns() + LEFT_NS);
	for (uint32_t i = 0; i < PROC_HUNG_MAX; i++)
		ended &= join(&r->left[i], left_ns);
	return ended;
}

/* After a stop without such a thread, or before the start. NULL is allowed. */
static void process_readers_free(struct process_readers *r)
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

/* One that takes longer hangs: it is left behind. Calls of its worker have other limits. */
#define DETECT_NS 2000000000ULL

#define WORKER_NS 60000000000ULL

/* Large files are read one after another. */
#define AGAIN_NS 200000000ULL

/* The same after a worker without an answer. */
#define FAILED_NS  2000000000ULL
#define FAILED_MAX 3U

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
static void take_description(struct interpreters *in, struct interpreters_job *job)
{
	struct detect *d = job->detect;

	assert(job->detect);
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
	const struct detect *d = job->detect;
	/* Acquire: before the time; pairs with read_file(). */
	bool asks = atomic_load_explicit(&d->asks, memory_order_acquire);
	uint64_t since_ns =
		MAX(job->since_ns, atomic_load_explicit(&d->since_ns, memory_order_relaxed));

	assert(job->detect);
	if (watch_blocked_ns(&d->job.watch, now_ns) > DETECT_NS)
		return true;
	return now_ns > since_ns + (asks ? WORKER_NS : DETECT_NS);
}

/*
 * Return after how long a job is started again that ended with @rc after @tries more ones; 0: it is
 * not. -EAGAIN: the process is not as far yet. On a busy machine a worker may have no time, or be
 * killed: that hides no interpreter for good.
 */
static uint64_t again_ns(int rc, uint32_t tries)
{
	if (rc == -EAGAIN)
		return tries < TRIES_MAX ? AGAIN_NS : 0;
	return (rc == -ETIME || rc == -EPIPE || rc == -ENOMEM) && tries < FAILED_MAX ? FAILED_NS
										     : 0;
}

/* Start a finished job again that has no answer yet. True: it runs, or is due later. */
static bool again(struct interpreters *in, struct interpreters_job *job, uint64_t now_ns)
{
	struct detect *d = job->detect;
	uint64_t pause_ns = again_ns(d->rc, job->tries);

	if (!pause_ns || !in->helpers)
		return false;
	if (now_ns - job->since_ns < pause_ns || helpers_start(in->helpers, &d->job))
		return true;
	job->tries++;
	job->since_ns = now_ns;
	return true;
}

/* Leave a job behind that hangs. */
static void interpreters_leave(struct interpreters_job *job)
{
	assert(job->detect);
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
			take_description(in, job);
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

/*
 * The background of symbols: two threads, one loop each.
 *
 * "process reader" reads /proc/PID, because stacks wait for it; "loader" names places, and
 * has helpers (thread.h) read the files of objects: a large object, or a file
 * system that hangs, delays no stack and no name.
 */

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

struct symbols {
	struct objects *objects; /* borrowed, as the next two */
	struct places *places;
	struct maps *maps;
	struct details *details; /* NULL without maps, or for a recording */
	struct helpers *helpers;
	struct image_cache images;
	struct naming naming;
	struct inlines *chains;
	const struct inlines
		*shown; /* chains of the places of the builder; @chains may be of older ones */
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
	atomic_bool stop;		    /* release by symbols_stop, acquire by the threads */
	bool left_behind;
	/* Written by the loader, read by any thread, relaxed: statistics. */
	_Alignas(CACHELINE) atomic_ulong nr_left, memory;
	atomic_uint nr_seen; /* release, after the names */
};

static bool serve_processes(void *arg);

/* Create the threads' tools; the tables are in place. 0 or -errno with a sentence. */
static int begin(struct symbols *s, struct objects *objects, struct err *e)
{
	int rc;

	image_cache_init(&s->images, objects, NULL);
	naming_init(&s->naming, objects, s->symtab, &s->stop);
	s->naming.jit.jitdumps.maps = s->naming.jit.hotspots.maps = s->maps;
	code_init(&s->code, &s->images, s->symtab, &s->naming, &s->lines);
	fetch_init(&s->fetch, objects);
	s->details = s->maps ? details_new(s->maps) : NULL;
	s->loader.event = wake_new();
	rc = s->loader.event < 0 ? s->loader.event
				 : process_readers_new(&s->readers, serve_processes, s,
						       proc_user_of, s->loader.event);
	if (rc)
		return err_set(e, rc, "out of file descriptors: raise the limit (ulimit -n)");
	s->codes = s->naming.codes = script_functions_new();
	if (!s->codes || ksyms_new(&s->naming.kernel.ksyms) || inlines_new(&s->chains) ||
	    helpers_new(&s->helpers, s->loader.event))
		return err_set(e, -ENOMEM, "out of memory");
	s->shown = s->chains;
	s->naming.jit.hotspots.log = codes_log(s->codes);
	s->images.helpers = s->fetch.helpers = s->naming.jit.hotspots.helpers = s->helpers;
	s->interpreters = (struct interpreters){
		.maps = s->maps, .objects = objects, .helpers = s->helpers, .news_fd = -1
	};
	return 0;
}

/* Prepare the names of places. */
static void begin_names(struct symbols *s, struct objects *objects)
{
	const struct object_identity script = { .kind = OBJECT_SCRIPT },
				     wait = { .kind = OBJECT_WAIT };

	lines_init(&s->lines, &s->images, s->places, s->symtab, s->chains);
	s->names = (struct place_names){
		.places = s->places,
		.objects = objects,
		.symtab = s->symtab,
		.naming = &s->naming,
		.lines = &s->lines,
		.chains = s->chains,
		.codes = s->codes,
		.stop = &s->stop,
		.script = objects_intern(objects, &script, "[script]", 8, 0, 0, 0)->id,
		.wait = objects_intern(objects, &wait, "[wait]", 6, 0, 0, 0)->id,
	};
}

int symbols_new(struct symbols **out, struct places *places, struct objects *objects,
		struct maps *maps, struct err *e)
{
	struct symbols *s = aligned_alloc(CACHELINE, sizeof(*s));
	int rc;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	memset(s, 0, sizeof(*s));
	if (symtab_new(&s->symtab)) {
		free(s);
		return err_set(e, -ENOMEM, "out of memory");
	}
	s->objects = objects;
	s->places = places;
	s->maps = maps;
	rc = begin(s, objects, e);
	if (rc) {
		symbols_free(s);
		return rc;
	}
	begin_names(s, objects);
	*out = s;
	return 0;
}

void symbols_configure(struct symbols *s, const struct symbols_config *config)
{
	assert(!s->loader.started);
	if (config->memory_max)
		s->images.memory_max = config->memory_max;
	if (config->memory_idle)
		s->images.memory_idle = config->memory_idle;
	s->lines.off = config->no_inline;
	s->lines.no_lines = config->no_lines;
	s->naming.jit.hotspots.off = config->no_java;
	if (config->record_past)
		s->naming.jit.hotspots.keep_ns = JITREADS_KEEP_NS;
	if (config->no_recording)
		s->naming.jit.hotspots.log = NULL;
}

void symbols_java_replay(struct symbols *s, const struct object *memory,
			 const struct code_text *text)
{
	struct jvm_table_kept kept;

	if (jvm_table_kept(text, &kept))
		jvm_table_replay(&s->naming.jit.hotspots, memory, text, &kept);
}

bool symbols_java_settle(struct symbols *s, uint64_t time_ns)
{
	return jvm_table_settle(&s->naming.jit.hotspots, time_ns);
}

void symbols_recorded(struct symbols *s, const char *root)
{
	assert(!s->loader.started);
	s->images.no_proc = s->naming.jit.perfmaps.no_proc = true;
	s->naming.jit.jitdumps.no_proc = true;
	s->naming.jit.hotspots.recorded = true;
	s->images.root = s->naming.jit.perfmaps.root = s->naming.jit.jitdumps.root = root;
	details_free(s->details);
	s->details = NULL;
	s->interpreters.maps = NULL;
}

/* Read the symbols of the recorded machine's kernel from its files, if present. */
static bool take_list_of(struct symbols *s, const char *root)
{
	bool present;
	char *list;

	if (!root || asprintf(&list, "%s/proc/kallsyms", root) < 0)
		return false;
	present = !access(list, R_OK);
	free(list);
	if (!present)
		return false;
	s->naming.kernel.root = root;
	s->code.kcore_below = true;
	return true;
}

enum kernel_match symbols_recorded_kernel(struct symbols *s, const struct kernel_identity *was)
{
	enum kernel_match match = recorded_kernel_match(was, "/sys/kernel/notes");

	assert(s->images.no_proc && !s->loader.started);
	s->images.no_vdso = match != KERNEL_SAME;
	if (match != KERNEL_SAME && take_list_of(s, s->images.root))
		match = KERNEL_SAME;
	s->naming.kernel.recorded.match = match;
	return match;
}

void symbols_kernel_module(struct symbols *s, const char *file, size_t size, uint64_t start,
			   uint64_t end)
{
	if (s->images.no_proc)
		recorded_modules_add(&s->naming.kernel.modules, file, size, start, end);
}

void symbols_expect_kernel(struct symbols *s)
{
	naming_kernel_expect(&s->naming.kernel, s->helpers);
}

void symbols_kernel_was(struct symbols *s, const struct recorded_kernel *told)
{
	if (s->images.no_proc)
		naming_kernel_was(&s->naming.kernel, told);
}

struct script_functions *symbols_codes(struct symbols *s)
{
	return s->codes;
}

void symbols_watch_interpreters(struct symbols *s, int fd)
{
	assert(fd >= 0 && !s->loader.started);
	s->interpreters.news_fd = fd;
}

uint32_t symbols_nr_interpreters(const struct symbols *s)
{
	return atomic_load_explicit(&s->interpreters.nr_news, memory_order_relaxed);
}

uint32_t symbols_script(const struct symbols *s)
{
	return s->names.script;
}

uint32_t symbols_wait(const struct symbols *s)
{
	return s->names.wait;
}

void symbols_other_clock(struct symbols *s)
{
	assert(!s->loader.started);
	s->naming.jit.jitdumps.other_clock = true;
}

static void update_figures(struct symbols *s)
{
	atomic_store_explicit(&s->nr_left, place_names_left(&s->names), memory_order_relaxed);
	atomic_store_explicit(&s->nr_seen, s->names.next_place, memory_order_release);
	atomic_store_explicit(&s->memory, symtab_memory(s->symtab) + inlines_memory(s->chains),
			      memory_order_relaxed);
}

bool symbols_can_move(const struct symbols *s)
{
	/* Acquire: it is done with the table before; pairs with take_places(). */
	return !atomic_load_explicit(&s->move, memory_order_acquire);
}

void symbols_end_move(struct symbols *s, struct places_move *m)
{
	assert(symbols_can_move(s));
	s->shown = m->to_chains;
	/* Release: all that was moved. */
	atomic_store_explicit(&s->move, m, memory_order_release);
	wake_send(s->loader.event);
}

/* Use the next generation of places, and free the one before. */
static void take_places(struct symbols *s)
{
	/* Acquire: pairs with symbols_end_move(). */
	struct places_move *m = atomic_load_explicit(&s->move, memory_order_acquire);

	if (!m)
		return;
	place_names_move(&s->names, m);
	inlines_free(s->chains);
	s->chains = m->to_chains;
	s->places = m->to;
	places_free(m->from);
	places_move_free(m);
	update_figures(s);
	/* Release: pairs with symbols_can_move(). */
	atomic_store_explicit(&s->move, NULL, memory_order_release);
}

bool symbols_free(struct symbols *s)
{
	if (!s)
		return true;
	/* An abandoned thread still uses the tables: leak them. */
	if (s->left_behind)
		return false;
	take_places(s);
	/* An abandoned helper keeps its job and uses nothing else of the loader. */
	image_cache_fini(&s->images);
	fetch_fini(&s->fetch);
	lines_fini(&s->lines);
	code_fini(&s->code);
	naming_jit_fini(&s->naming.jit);
	interpreters_fini(&s->interpreters);
	helpers_free(s->helpers, time_now_ns() + HELPERS_WAIT_NS);
	process_readers_free(s->readers);
	if (s->loader.event >= 0)
		close(s->loader.event);
	inlines_free(s->chains);
	script_functions_free(s->codes);
	naming_fini(&s->naming);
	details_free(s->details);
	place_names_fini(&s->names);
	symtab_free(s->symtab);
	free(s);
	return true;
}

struct details *symbols_details(struct symbols *s)
{
	return s->details;
}

void symbols_wake(struct symbols *s)
{
	if (s->maps)
		process_readers_wake(s->readers);
	wake_send(s->loader.event);
}

static bool symbols_is_stopping(const struct symbols *s)
{
	return atomic_load_explicit(&s->stop, memory_order_acquire);
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
static bool work(struct symbols *s, enum effort effort)
{
	uint64_t now_ns = time_now_ns();
	struct jvm_table_chain chain;
	bool more;
	uint32_t late, fetched, jit = perfmaps_refresh(&s->naming.jit.perfmaps, now_ns);

	take_places(s);
	more = image_cache_work(&s->images, now_ns);
	if (symbols_is_stopping(s))
		return false;
	place_names_note(&s->names, jvm_table_refresh(&s->naming.jit.hotspots, now_ns));
	while (jvm_table_take_chain(&s->naming.jit.hotspots, &chain))
		lines_java(&s->lines, &chain);
	place_names_note(&s->names, jitdumps_refresh(&s->naming.jit.jitdumps, now_ns));
	if (symbols_is_stopping(s))
		return false;
	interpreters_note(&s->interpreters, &s->images);
	more |= interpreters_work(&s->interpreters, now_ns);
	place_names_rename_kernel(&s->names);
	fetched = fetch_serve(&s->fetch, now_ns);
	if (fetched != OBJECT_ID_UNKNOWN) {
		image_evict_reload(&s->images, fetched, now_ns);
		place_names_fetched(&s->names, fetched);
	}
	while ((late = image_cache_take_late(&s->images)) != OBJECT_ID_UNKNOWN)
		place_names_note(&s->names, late);
	place_names_note(&s->names, jit);
	place_names_rename(&s->names);
	code_serve(&s->code);
	if (symbols_is_stopping(s))
		return false;
	if (effort != NO_NAMES)
		more = place_names_pass(&s->names, more, effort == TO_THE_END);
	if (symbols_is_stopping(s))
		return false;
	update_figures(s);
	return more;
}

/* As process_readers_fn. */
static bool serve_processes(void *arg)
{
	struct symbols *s = arg;
	bool any = false, more;

	/* Stacks wait for the maps: first. */
	do {
		any |= maps_load_asked(s->maps) > 0;
		any |= calls_serve() > 0;
		more = s->details && details_serve(s->details, DETAILS_A_TURN);
		any |= more;
	} while (more && !symbols_is_stopping(s) && proc_watch_is_mine());
	return any;
}

static void *loader_main(void *arg)
{
	struct symbols *s = arg;
	int wait_ms = LOADER_WAIT_MS;

	pthread_setname_np(pthread_self(), "proftop/load");
	setpriority(PRIO_PROCESS, 0, HELPERS_NICE);
	rcu_register_thread();
	rcu_thread_offline();
	while (!symbols_is_stopping(s)) {
		bool any = wait_event(s->loader.event, wait_ms);

		if (s->maps && !symbols_is_stopping(s))
			process_readers_look(s->readers, HANG_NS);
		while (!symbols_is_stopping(s) && work(s, AS_IT_COMES))
			any = true;
		wait_ms = s->names.held ? PASS_MS : any ? LOADER_WAIT_MS : WAIT_IDLE_MS;
	}
	rcu_unregister_thread();
	return NULL;
}

static int start_one(struct symbols *s, struct worker *w, void *(*run)(void *))
{
	int rc = thread_start(&w->thread, LOADER_STACK_SIZE, run, s);

	w->started = !rc;
	return rc;
}

int symbols_start(struct symbols *s, struct err *e)
{
	int rc = 0;

	assert(!s->loader.started);
	atomic_store_explicit(&s->stop, false, memory_order_relaxed); /* no thread yet */
	/* Files that hang delay no other name; a replay reads all of them first. */
	s->naming.jit.reads.helpers = s->images.no_proc ? NULL : s->helpers;
	if (s->maps)
		rc = process_readers_start(s->readers);
	if (!rc)
		rc = start_one(s, &s->loader, loader_main);
	if (rc) {
		symbols_stop(s);
		return err_set(e, rc, "cannot create a thread: raise the limit (ulimit %s)",
			       rc == -ENOMEM ? "-v" : "-u");
	}
	return 0;
}

/* Join @w, until @deadline_ns; else abandon it. */
static void stop_one(struct symbols *s, struct worker *w, uint64_t deadline_ns)
{
	if (!w->started)
		return;
	w->started = false;
	wake_send(w->event);
	s->left_behind |= !thread_join_until(w->thread, deadline_ns);
}

void symbols_stop(struct symbols *s)
{
	uint64_t deadline_ns = time_now_ns() + STOP_WAIT_NS;

	/* Pairs with symbols_is_stopping(), and with image_cache.c after each file. */
	atomic_store_explicit(&s->stop, true, memory_order_release);
	/* First the thread that starts others. */
	stop_one(s, &s->loader, deadline_ns);
	s->left_behind |= s->readers && !process_readers_stop(s->readers, deadline_ns);
}

/* Return true if a helper has a job of the loader. */
static bool is_busy(struct symbols *s, enum effort effort)
{
	return image_cache_busy(&s->images) || interpreters_busy(&s->interpreters) ||
	       (effort != NO_NAMES &&
		(lines_busy(&s->lines) || code_busy(&s->code) || fetch_busy(&s->fetch)));
}

static void run(struct symbols *s, enum effort effort)
{
	bool more = true;

	while (more && !symbols_is_stopping(s)) {
		more = s->maps && maps_load_asked(s->maps);
		more |= s->details && details_serve(s->details, DETAILS_A_TURN);
		more |= work(s, effort);
		if (!more && is_busy(s, effort)) {
			wait_event(s->loader.event, LOADER_WAIT_MS);
			more = true;
		}
	}
}

void symbols_stop_run(struct symbols *s)
{
	/* Pairs with symbols_is_stopping(). */
	atomic_store_explicit(&s->stop, true, memory_order_release);
	symbols_wake(s);
}

void symbols_run(struct symbols *s)
{
	assert(!s->loader.started);
	run(s, TO_THE_END);
}

void symbols_run_objects(struct symbols *s)
{
	assert(!s->loader.started);
	run(s, NO_NAMES);
}

void symbols_stats(const struct symbols *s, struct symbols_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->nr_images = atomic_load_explicit(&s->images.nr_images, memory_order_relaxed);
	out->nr_evicted = atomic_load_explicit(&s->images.nr_evicted, memory_order_relaxed);
	out->image_memory = atomic_load_explicit(&s->images.memory, memory_order_relaxed);
	out->image_memory_max = s->images.memory_max;
	out->nr_failed = atomic_load_explicit(&s->images.nr_failed, memory_order_relaxed);
	out->nr_named = atomic_load_explicit(&s->names.nr_named, memory_order_relaxed);
	out->nr_unnamed = atomic_load_explicit(&s->names.nr_unnamed, memory_order_relaxed);
	out->nr_waiting = atomic_load_explicit(&s->nr_left, memory_order_relaxed);
	/* Acquire: their names. */
	out->nr_seen = atomic_load_explicit(&s->nr_seen, memory_order_acquire);
	out->nr_lines = atomic_load_explicit(&s->lines.nr_found, memory_order_relaxed);
	process_readers_hung(s->readers, &out->hung);
	out->nr_lines_waiting = atomic_load_explicit(&s->lines.nr_waiting, memory_order_acquire);
	out->memory = atomic_load_explicit(&s->images.memory, memory_order_relaxed) +
		      atomic_load_explicit(&s->naming.kernel.memory, memory_order_relaxed) +
		      atomic_load_explicit(&s->naming.jit.perfmaps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&s->naming.jit.jitdumps.memory, memory_order_relaxed) +
		      atomic_load_explicit(&s->naming.jit.hotspots.memory, memory_order_relaxed) +
		      script_functions_memory(s->codes) +
		      atomic_load_explicit(&s->memory, memory_order_relaxed);
}

#define CHECK_NS 2000000000ULL

void symbols_sandbox_readers(bool code,
			     const struct sandbox_reader *readers[static SANDBOX_NR_KINDS])
{
	readers[SANDBOX_DWARF] = &dwarf_sandbox_reader;
	readers[SANDBOX_DWARF_OTHERS] = &dwarf_sandbox_others;
	readers[SANDBOX_NAMES] = &demangler_reader;
	readers[SANDBOX_ELF] = &elffacts_reader;
	readers[SANDBOX_DESCRIBE] = &detect_reader;
	readers[SANDBOX_SERVICE] = &service_reader;
	readers[SANDBOX_PERFMAP] = &perfmap_reader;
	readers[SANDBOX_JITDUMP] = &jitdump_reader;
	readers[SANDBOX_DISASM] = code ? &disasm_reader : NULL;
	readers[SANDBOX_KERNEL] = &kernel_reader;
	for (int i = 0; i < IMAGE_READERS; i++)
		readers[SANDBOX_IMAGE + i] = &image_readers[i];
	for (unsigned int i = 0; i < JVM_READ_READERS; i++)
		readers[SANDBOX_HOTSPOT + i] = &jvm_read_readers[i];
}

int symbols_sandbox_check(void)
{
	const struct sandbox_reader *readers[SANDBOX_NR_KINDS] = { NULL };
	struct sandbox_answer a;
	int rc;

	symbols_sandbox_readers(false, readers);
	sandbox_start(readers);
	rc = sandbox_call(&demangler_reader, NULL, 0, NULL, 0, CHECK_NS, &a);
	free(a.bytes);
	sandbox_stop();
	return rc;
}

void symbols_on_kernel_code(struct symbols *s, uint64_t start, uint32_t size, bool bpf,
			    const char *name, size_t name_size)
{
	ksyms_add(s->naming.kernel.ksyms, start, size, bpf ? KSYMS_BPF : KSYMS_OUT_OF_LINE, name,
		  name_size);
}

void symbols_on_kernel_gone(struct symbols *s, uint64_t start, uint32_t size)
{
	ksyms_remove(s->naming.kernel.ksyms, start, size);
}

bool symbols_java_process(const struct code_text *text, pid_t *pid, uint64_t *addr,
			  uint64_t *time_ns)
{
	struct jvm_table_kept kept;

	if (!jvm_table_kept(text, &kept))
		return false;
	*pid = (pid_t)kept.pid;
	*addr = kept.memory;
	*time_ns = kept.time_ns;
	return true;
}

struct places_move *symbols_begin_move(struct symbols *s, struct places *from, struct places *to)
{
	return symbols_can_move(s) ? places_move_new(from, to, s->shown, s->objects, s->symtab)
				   : NULL;
}

const struct symbol_frame *symbols_source(const struct symbols *s, uint32_t place, uint32_t *nr)
{
	return inlines_at(s->shown, place, nr);
}

struct safe_text symbols_file(const struct symbols *s, uint32_t id)
{
	return inlines_file(s->shown, id);
}

uint32_t symbols_nr_files(const struct symbols *s)
{
	return inlines_nr_files(s->shown);
}

/* Return the kind of the object with functions of kind letter @letter. */
static enum object_kind kept_kind(char letter)
{
	for (int kind = LANG_NONE + 1; kind < LANG_NR; kind++)
		if (letter == lang_letter((enum lang_kind)kind))
			return OBJECT_SCRIPT;
	return OBJECT_FILE;
}

/* Return the object that functions of a module are in: one for each name. */
static struct object *kept_module(struct objects *objects, const struct symbols_kept *f)
{
	const struct object_identity identity = { .kind = kept_kind(f->kind),
						  .ino = keyhash_name(f->module, f->module_size),
						  .maj = UINT32_MAX };

	struct object *object = f->kind == 'k' ? objects_at(objects, OBJECT_ID_KERNEL)
					       : objects_intern(objects, &identity, f->module,
								f->module_size, 0, 0, 0);

	object_explain(object, "names were kept, no code", "");
	/* Release: the reason; pairs with the acquire of readers. */
	atomic_store_explicit(&object->state, OBJECT_FAILED, memory_order_release);
	return object;
}

void symbols_keep_interpreter(struct objects *objects, const char *name, size_t size)
{
	const struct symbols_kept f = { .module = name, .module_size = size, .kind = 'u' };
	struct object *object = kept_module(objects, &f);

	if (object->id != OBJECT_ID_UNKNOWN)
		atomic_store_explicit(&object->interpreter, true, memory_order_relaxed);
}

/*
 * Find the kept function @text. The start of its place is a hash: when another function has the
 * same one, the next free start is taken. SYMBOL_NONE: it is new.
 */
static uint32_t find_kept(const struct symbols *s, struct symtab_key *key,
			  const struct symtab_text *text)
{
	uint32_t id;

	while ((id = symtab_find_named(s->symtab, key, text)) == SYMBOL_NONE &&
	       symtab_find(s->symtab, key) != SYMBOL_NONE)
		key->start++;
	return id;
}

/* Name the place @key of a kept function. Return it. */
static uint32_t keep_place(struct symbols *s, struct places *places, struct symtab_key *key,
			   const struct symtab_text *text)
{
	uint32_t id = find_kept(s, key, text), place;

	if (id == SYMBOL_NONE)
		id = symtab_add(s->symtab, key, text);
	place = places_intern(places, key->object, key->start);
	if (place == PLACE_NONE) {
		places_grow(places);
		place = places_intern(places, key->object, key->start);
	}
	if (place != PLACE_NONE && id != SYMBOL_NONE)
		places_name(places, place, id);
	return place;
}

uint32_t symbols_keep_wait(struct symbols *s, struct places *places, enum wait_kind kind)
{
	struct symtab_key key = { .object = symbols_wait(s), .start = kind };
	const char *name = wait_kind_name(kind >= WAIT_FOUND ? kind : MIN(kind, WAIT_OTHER));
	const struct symtab_text text = { name, "[wait]", strlen(name), 6, 'w', false };

	assert(!s->loader.started);
	return keep_place(s, places, &key, &text);
}

uint32_t symbols_keep_function(struct symbols *s, struct places *places, struct objects *objects,
			       const struct symbols_kept *f)
{
	struct symtab_key key = { .object = kept_module(objects, f)->id,
				  .variant = keyhash_name(f->name, f->name_size) + f->inlined,
				  .made_up = f->made_up };
	const struct symtab_text text = { f->name,	  f->module, f->name_size,
					  f->module_size, f->kind,   f->inlined };

	assert(!s->loader.started);
	key.start = key.variant;
	return keep_place(s, places, &key, &text);
}

const struct symbol *symbols_at(const struct symbols *s, uint32_t id)
{
	return symtab_at(s->symtab, id);
}

uint32_t symbols_nr(const struct symbols *s)
{
	return symtab_nr(s->symtab);
}

void symbols_fetch(struct symbols *s, uint32_t object)
{
	fetch_ask(&s->fetch, object);
	symbols_wake(s);
}

bool symbols_fetch_news(struct symbols *s, char *buf, size_t size)
{
	return fetch_news(&s->fetch, buf, size);
}

void symbols_want_code(struct symbols *s, uint32_t symbol, const struct listing_instance *instance)
{
	code_want(&s->code, symbol, instance);
	symbols_wake(s);
}

void symbols_want_lines(struct symbols *s, uint32_t symbol, const struct listing_lines *lines)
{
	code_want_lines(&s->code, symbol, lines);
	symbols_wake(s);
}

struct listing *symbols_code(struct symbols *s, uint32_t symbol)
{
	return code_take(&s->code, symbol);
}

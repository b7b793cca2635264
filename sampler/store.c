// SPDX-License-Identifier: GPL-2.0-or-later
/* The tables of a session, and their generations. */
#include "sampler/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/count/count.h"
#include "sampler/hot/hot.h"
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
#include "unwind/unwind.h"

/*
 * The tables of a session, and their generations.
 *
 * A batch uses the tables it found at its start; after a grace period the old ones have no user.
 * Their last counts go into the history; its stacks are then interned again, and its tasks get
 * other ids.
 */

#define MAX_PLACES     (1u << 22)
#define MAX_TASKS      (1u << 18)
#define LONG_CELLS_MAX (1u << 17)
#define HALF_LIFE_NS   10000000000ULL
#define STACKS_MAX     (1u << 20)
#define MEMORY_MAX     ((size_t)128 << 20)
#define MEMORY_LIVE    ((size_t)16 << 20)
#define MEMORY_PER_CPU ((size_t)512 << 10)

/*
 * Four stacks of 30 frames, most of them shared: the window takes a quarter of the memory in new
 * tables.
 */
#define MEMORY_PER_SAMPLE 320

#define TASKS_RENEWED (1u << 15)
#define TASKS_APART   (1u << 12)

/* 4 MiB with rules, names and lines; new ones are named and get their rules again. */
#define PLACES_RENEWED (1u << 15)

/* From one renewal to the next, if there are not twice the kept ones. */
#define PLACES_NS 600000000000ULL

/* The same for more than the memory has room for. */
#define PLACES_SOON_NS 60000000000ULL

/* Swapped and read ten times a second. */
#define CELLS_START (1u << 13)

/* Of one tick: of a task that waits for a second ten. */
#define CELLS_MAX (1u << 21)

/*
 * The memory of a live session: 3 % of the machine's, or of the least that a cgroup of proftop may
 * have, shared by all tables. A quarter is left for the tables and workers that have limits apart.
 * Below BUDGET_MIN no screen is useful; a smaller machine gives half of its memory.
 */

#define BUDGET_MIN	 ((uint64_t)96 << 20)
#define IMAGES_MAX	 ((uint64_t)512 << 20)
#define IMAGES_IDLE	 ((uint64_t)10 << 20)
#define HISTORY_MAX	 ((uint64_t)64 << 20)
#define BYTES_OF_A_PLACE 256 /* with rules, names, lines, and inlined functions of some */
#define CGROUPS		 "/sys/fs/cgroup"

struct store_budget {
	size_t images, images_idle; /* at most; while none is missed */
	size_t history, stacks;
	uint32_t places; /* more are renewed soon */
};

static struct store_budget store_share(uint64_t machine)
{
	uint64_t all = MAX(machine / 100 * 3, MIN(BUDGET_MIN, machine / 2));

	return (struct store_budget){
		.images = (size_t)MIN(all / 2, IMAGES_MAX),
		.images_idle = (size_t)MIN(all / 4, IMAGES_IDLE),
		.history = (size_t)MIN(all / 8, HISTORY_MAX),
		.stacks = (size_t)all / 8,
		.places = (uint32_t)MIN(all / 8 / BYTES_OF_A_PLACE, MAX_PLACES),
	};
}

/* Return the number in the file memory.max of the cgroup @path; UINT64_MAX: there is no limit. */
static uint64_t memory_max(const char *path, size_t size)
{
	char name[PATH_MAX], *text;
	uint64_t max = UINT64_MAX;
	size_t nr;
	int fd;

	snprintf(name, sizeof(name), "%.*s/memory.max", (int)size, path);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return max;
	if (!untrusted_read(fd, 64, &text, &nr)) {
		if (isdigit((unsigned char)*text))
			max = strtoull(text, NULL, 10);
		free(text);
	}
	close(fd);
	return max;
}

/*
 * Return the bytes that this machine has, or the least that the cgroup in @own, the text of
 * /proc/self/cgroup, or one above it may have; they are in the folder @root.
 */
static uint64_t store_machine(const char *root, const char *own)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	const char *line = strncmp(own, "0::/", 4) ? strstr(own, "\n0::/") : own;
	char path[PATH_MAX];
	size_t size;

	if (!line)
		return machine;
	line = strchr(line, '/');
	snprintf(path, sizeof(path), "%s%.*s", root, (int)strcspn(line, "\n"), line);
	for (size = strlen(path); size >= strlen(root); size--) {
		if (path[size] == '/' || !path[size])
			machine = MIN(machine, memory_max(path, size));
		if (!size)
			break;
	}
	return machine;
}

static struct store_budget store_budget(void)
{
	struct store_budget budget;
	char *own = NULL;
	size_t size;

	if (untrusted_read_proc(getpid(), "cgroup", 65536, &own, &size))
		own = NULL;
	budget = store_share(store_machine(CGROUPS, own ? own : ""));
	free(own);
	return budget;
}

/*
 * Return the usual caps for @nr_cpus, enough for a window of @nr_samples, each with another stack;
 * 0 CPUs: a recording, which has all its samples in one tick.
 */
static struct store_caps store_choose_caps(uint32_t nr_cpus, double nr_samples,
					   const struct store_budget *budget)
{
	struct store_caps caps = { STACKS_MAX, MEMORY_MAX, TASKS_RENEWED, 0, 0, 0, 0 };
	size_t usual = MIN(MEMORY_LIVE + nr_cpus * MEMORY_PER_CPU, budget->stacks);
	double memory = MAX((double)usual, MEMORY_PER_SAMPLE * nr_samples);

	if (nr_cpus) {
		caps.memory = (size_t)MIN(memory, (double)MEMORY_MAX);
		caps.places = PLACES_RENEWED;
		caps.places_soon = budget->places;
		caps.used = caps.memory / 4;
		caps.apart = TASKS_APART;
	}
	return caps;
}

/* Make empty tables for one generation. 0, or -ENOMEM: *stacks and *counts are NULL or as before.
 */
static int store_new_tables(const struct store_caps *caps, struct stacks **stacks,
			    struct counts **counts)
{
	int code = stacks_new(stacks, caps->stacks, caps->memory);

	if (code)
		return code;
	code = counts_new(counts, CELLS_START, CELLS_MAX);
	if (code) {
		stacks_free(*stacks);
		*stacks = NULL; /* the caller frees its members on any failure */
	}
	return code;
}

int store_open(struct store *st, const struct sampler_config *config, struct err *e)
{
	uint32_t nr_cpus = config->replay ? 0 : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t slices_ns = config->replay && !config->follow ? SLICES_ALL : config->window_ns;
	const struct store_budget budget = store_budget();
	int code = objects_new(&st->objects);

	st->history_memory = config->history_memory ? config->history_memory
			     : nr_cpus		    ? budget.history
						    : (size_t)HISTORY_MAX;
	st->caps = store_choose_caps(nr_cpus,
				     config->hz * nr_cpus * config->nr_events *
					     (double)config->window_ns / 1e9,
				     &budget);
	if (!code)
		code = maps_new(&st->maps, st->objects, MAX_TASKS);
	if (!code)
		code = places_new(&st->places, MAX_PLACES);
	if (!code)
		code = unwind_rows_new(&st->rows, MAX_PLACES);
	if (!code)
		code = store_new_tables(&st->caps, &st->stacks, &st->counts);
	if (!code && config->replay)
		code = places_begin_small(st->places);
	if (!code && config->replay)
		code = stacks_begin_small(st->stacks);
	if (!code)
		code = history_new(&st->history, slices_ns, HALF_LIFE_NS,
				   config->window_alone && !config->replay ? 0 : LONG_CELLS_MAX);
	if (code)
		return err_set(e, code, "no memory for the tables: %s", strerror(-code));
	if (nr_cpus || config->history_ns)
		history_keep(st->history, slices_ns, config->history_ns, st->history_memory);
	code = symbols_new(&st->symbols, st->places, st->objects, st->maps, e);
	if (!code && symbols_details(st->symbols))
		details_keep(symbols_details(st->symbols), config->history_ns);
	if (!code)
		symbols_configure(st->symbols,
				  &(struct symbols_config){
					  .memory_max = config->symbol_memory
								? config->symbol_memory
							: nr_cpus ? budget.images
								  : 0,
					  .memory_idle = budget.images_idle,
					  .no_inline = config->no_inline,
					  .no_lines = config->no_lines,
					  .no_java = !(config->languages & CONFIG_JAVA),
					  /* On a screen one may begin at any time. */
					  .record_past = config->saving.dir,
					  .no_recording = config->window_alone && !config->record &&
							  !config->saving.dir,
				  });
	return code;
}

void store_publish(struct store *st, struct sampler_thread_shared *shared,
		   const struct sampler_config *config, uint16_t machine, pid_t own_pid,
		   uint32_t chain_max)
{
	st->shared = shared;
	st->tables = xcalloc(1, sizeof(*st->tables));
	*st->tables = (struct pipeline_tables){
		.objects = st->objects,
		.maps = st->maps,
		.tasks = maps_tasks(st->maps),
		.places = st->places,
		.stacks = st->stacks,
		.counts = st->counts,
		.unwind = {
			.step_only = config->step_only,
			.verify_every = config->verify_every,
			.rows = st->rows,
			.machine = machine,
			.allowance = !config->replay,
			.ask_calls = !config->replay,
		},
		.own_pid = own_pid,
		.guard = config->guard,
		.recorded = config->replay != NULL,
		.chain_max = chain_max,
		.codes = symbols_codes(st->symbols),
		.script = symbols_script(st->symbols),
		.languages = config->languages,
		.wait = symbols_wait(st->symbols),
	};
	for (int i = 0; i < WAIT_NR; i++)
		st->tables->wait_places[i] = PLACE_NONE;
	shared->symbols = st->symbols;
	atomic_init(&shared->tables, st->tables);
}

void store_close(struct store *st)
{
	pairs_free(st->branches);
	pairs_free(st->accesses);
	history_free(st->history);
	counts_free(st->counts);
	stacks_free(st->stacks);
	if (symbols_free(st->symbols)) {
		maps_free(st->maps);
		places_free(st->places);
		unwind_rows_free(st->rows);
		objects_free(st->objects);
	}
	free(st->tables);
	waits_free(st->waits);
}

void store_close_waits(struct store *st)
{
	/* Relaxed: no thread runs that reads it. */
	atomic_store_explicit(&st->shared->waits, NULL, memory_order_relaxed);
	waits_free(st->waits);
	st->waits = NULL;
}

int store_open_waits(struct store *st, uint32_t nr_cpus, int latency)
{
	for (uint32_t i = WAIT_RUNNING; i < WAIT_NR; i++)
		st->tables->wait_places[i] = places_intern(st->places, st->tables->wait, i);
	st->waits = waits_new(nr_cpus, latency);
	if (!st->waits)
		return -ENOMEM;
	/* Release: the queues; pairs with the sampler threads. */
	atomic_store_explicit(&st->shared->waits, st->waits, memory_order_release);
	return 0;
}

struct waits_tables store_waits_tables(const struct store *st)
{
	return (struct waits_tables){
		.maps = st->maps,
		.tasks = st->tables->tasks,
		.stacks = st->stacks,
		.counts = st->counts,
		.kinds = st->tables->wait_places,
		.generation = st->tables->generation,
		.recorded = st->tables->recorded,
	};
}

/* Each tick: have enough tasks ended for a new generation? Are most stacks, places of the past? */
static bool store_has_old_tasks(const struct store *st)
{
	return maps_nr_tasks(st->maps) >=
	       MIN(MAX(st->caps.tasks, 2 * st->tasks_kept), maps_max_tasks(st->maps) / 8 * 7);
}

static bool store_has_old_stacks(const struct store *st)
{
	return st->caps.used &&
	       stacks_used(st->stacks) >= MAX(st->caps.used, st->used_kept + st->used_kept / 2);
}

static bool store_has_old_places(const struct store *st)
{
	/* The history moves with them: seldom, unless the table doubles. */
	bool lately =
		st->places_ns &&
		time_now_ns() - st->places_ns <
			(places_nr(st->places) < st->caps.places_soon ? PLACES_NS : PLACES_SOON_NS);
	uint32_t most = st->places_kept + (lately ? st->places_kept : st->places_kept / 4);

	return st->caps.places &&
	       places_nr(st->places) >= MIN(MAX(st->caps.places, most), MAX_PLACES / 8 * 7) &&
	       symbols_can_move(st->symbols);
}

struct move {
	const struct pipeline_tables *from;
	struct pipeline_tables *to;
	struct places_move *places; /* NULL: both have the same */
	const struct store_caps *caps;
	uint32_t *tasks; /* by old id the new one; 0: not moved yet */
	uint32_t nr_tasks, nr_moved;
	struct details *details;  /* of processes that have ended; NULL: none */
	struct text_arena *texts; /* theirs; NULL: tasks are moved one by one */
	uint32_t *stacks;	  /* by old id the new one + 1; 0: not moved yet */
	uint32_t nr_stacks;
	uint32_t stack[STACKS_PLACES_MAX]; /* scratch */
};

/* Return the places of a stack in the new table; NULL: it is full. */
static const uint32_t *move_places(const uint32_t *places, uint32_t nr, struct move *move)
{
	if (!move->places)
		return places;
	assert(nr <= STACKS_PLACES_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		bool none = places[i] == PLACE_NONE;

		move->stack[i] = none ? PLACE_NONE : places_move_one(move->places, places[i]);
		if (!none && move->stack[i] == PLACE_NONE)
			return NULL;
	}
	return move->stack;
}

/* Intern a stack in the new table; STACK_NONE: it would have no space for new stacks. */
static uint32_t intern_moved(struct move *move, uint32_t stack)
{
	struct stacks *to = move->to->stacks;
	struct stacks_room room;
	uint32_t nr, id;
	const uint32_t *places = stacks_at(move->from->stacks, stack, &room, &nr);

	if (!places || !nr || stacks_nr(to) > move->caps->stacks / 8 * 5 ||
	    stacks_used(to) > move->caps->memory / 8 * 5)
		return STACK_NONE;
	places = move_places(places, nr, move);
	if (!places)
		return STACK_NONE;
	/* Room for the sampler threads also: no other thread makes it now. */
	if (stacks_crowded(to))
		stacks_grow(to);
	id = stacks_intern(to, places, nr);
	if (id != STACK_NONE)
		return id;
	/* The table grows by a chunk at a time. */
	stacks_grow(to);
	return stacks_intern(to, places, nr);
}

static uint32_t move_stack(void *ctx, uint32_t stack)
{
	struct move *move = ctx;

	if (stack >= move->nr_stacks)
		return STACK_NONE;
	if (!move->stacks[stack])
		move->stacks[stack] = intern_moved(move, stack) + 1;
	return move->stacks[stack] - 1;
}

static uint32_t move_task(void *ctx, uint32_t task)
{
	struct move *move = ctx;

	assert(move->from != move->to);
	if (task >= move->nr_tasks)
		return TASK_UNKNOWN;
	if (!move->tasks[task] && move->nr_moved < maps_max_tasks(move->to->maps) / 2) {
		move->tasks[task] = maps_move_task(move->to->maps, move->from->tasks, task);
		move->nr_moved++;
	}
	return move->tasks[task];
}

/* Of a task that only the total has. */
static uint32_t move_total_task(void *ctx, uint32_t task)
{
	struct move *move = ctx;

	assert(move->tasks);
	if (!move->texts || task >= move->nr_tasks || move->tasks[task])
		return move_task(ctx, task);
	move->tasks[task] = maps_merge_task(move->to->maps, move->from->tasks, task, move->details,
					    move->texts);
	return move->tasks[task];
}

/*
 * Return how many counts may move: their stacks, if like the old ones, fill half of the new table.
 */
static uint32_t cells_kept(const struct store *st, const struct stacks *old)
{
	size_t each = stacks_used(old) / MAX(stacks_nr(old), 1u) + 1;
	uint32_t keep = (uint32_t)MIN(st->caps.memory / 2 / each, st->caps.stacks / 2);

	/* All fit: many counts may share few stacks. */
	return stacks_nr(old) <= keep ? UINT32_MAX : keep;
}

/* End the move of places: the rules of the moved ones also move. The loader has the old table. */
static void end_places(struct store *st, const struct pipeline_tables *old, struct places_move *m)
{
	st->places_kept = 0;
	st->places_ns = time_now_ns();
	for (uint32_t i = 0; i < m->nr_ids; i++) {
		if (!m->ids[i])
			continue;
		unwind_rows_move(st->rows, m->ids[i] - 1, old->unwind.rows, i);
		st->places_kept++;
	}
	for (int i = 0; i < WAIT_NR; i++)
		places_move_one(m, old->wait_places[i]);
	unwind_rows_free(old->unwind.rows);
	symbols_end_move(st->symbols, m);
}

/* Move the history to the new tables. */
static int move_history(struct store *st, const struct pipeline_tables *old, struct places_move *m)
{
	struct move move = { .from = old,
			     .to = st->tables,
			     .places = m,
			     .caps = &st->caps,
			     .nr_tasks = tasks_nr(old->tasks),
			     .details = st->symbols ? symbols_details(st->symbols) : NULL,
			     .nr_stacks = stacks_nr(old->stacks) };
	const struct history_ids ids = { move_stack, move_task, move_total_task, &move };
	uint32_t keep = cells_kept(st, old->stacks);
	int code;

	if (st->caps.apart && move.nr_tasks > st->caps.apart)
		move.texts = text_arena_new();
	move.tasks = calloc(MAX(move.nr_tasks, 1u), sizeof(*move.tasks));
	move.stacks = calloc(MAX(move.nr_stacks, 1u), sizeof(*move.stacks));
	if (move.tasks && move.stacks) {
		if (st->waits)
			waits_remap(st->waits, &ids);
		code = history_remap(st->history, keep / 4, &ids);
	} else {
		history_reset(st->history);
		code = -ENOMEM;
	}
	if (stacks_crowded(st->stacks))
		stacks_grow(st->stacks);
	st->tasks_kept = maps_nr_tasks(st->maps);
	st->used_kept = stacks_used(st->stacks);
	text_arena_free(move.texts);
	free(move.tasks);
	free(move.stacks);
	return code;
}

/* Put new places with their rows into @tables, if most are old. NULL: the old ones continue. */
static struct places_move *next_places(const struct store *st, struct pipeline_tables *tables)
{
	struct places_move *move = NULL;
	struct unwind_rows *rows = NULL;
	struct places *places;

	if (!store_has_old_places(st) || places_new(&places, MAX_PLACES))
		return NULL;
	if (!unwind_rows_renew(&rows, st->rows))
		move = symbols_begin_move(st->symbols, st->places, places);
	if (!move) {
		unwind_rows_free(rows);
		places_free(places);
		return NULL;
	}
	for (int i = 0; i < WAIT_NR; i++)
		if (tables->wait_places[i] != PLACE_NONE)
			tables->wait_places[i] = places_intern(places, tables->wait, (uint64_t)i);
	tables->places = places;
	tables->unwind.rows = rows;
	return move;
}

/* Make tables beside the current ones; NULL: out of memory. */
static struct pipeline_tables *next_tables(const struct store *st, struct places_move **move)
{
	struct pipeline_tables *tables = malloc(sizeof(*tables));

	if (!tables)
		return NULL;
	*tables = *st->tables;
	if (store_new_tables(&st->caps, &tables->stacks, &tables->counts)) {
		free(tables);
		return NULL;
	}
	if (!maps_renew_tasks(st->maps)) {
		stacks_free(tables->stacks);
		counts_free(tables->counts);
		free(tables);
		return NULL;
	}
	counts_set_tick(tables->counts, counts_tick(st->counts));
	tables->tasks = maps_tasks(st->maps);
	tables->generation++;
	*move = next_places(st, tables);
	return tables;
}

/* Take the notes of switches: the ids of their stacks have no meaning in the new tables. */
static void take_notes(struct store *st)
{
	const struct waits_tables t = store_waits_tables(st);

	if (st->waits)
		waits_take(st->waits, &t, UINT64_MAX);
}

/*
 * Replace stacks, counts and tasks, and places if they are old. Waits for a grace period. 0, or
 * -ENOMEM: the old ones are kept, or the history had to be emptied.
 */
static int store_renew(struct store *st)
{
	struct places_move *move = NULL;
	struct pipeline_tables *old = st->tables, *tables = next_tables(st, &move);
	struct count *counts = NULL;
	uint32_t nr = 0;
	int code = 0;

	if (!tables)
		return -ENOMEM;
	assert(old == sampler_thread_tables(st->shared));
	assert(old->stacks == st->stacks && old->counts == st->counts);
	take_notes(st);
	/* Release: the new tables are there; pairs with sampler_thread_tables(). */
	atomic_store_explicit(&st->shared->tables, tables, memory_order_release);
	synchronize_rcu();
	grace_waited(st->shared);
	st->tables = tables;
	st->stacks = tables->stacks;
	st->counts = tables->counts;
	st->places = tables->places;
	st->rows = tables->unwind.rows;
	if (!counts_swap(old->counts, &counts, &nr))
		code = history_hold(st->history, counts, nr);
	if (!code)
		code = move_history(st, old, move);
	else
		history_reset(st->history);
	if (move)
		end_places(st, old, move);
	if (code && st->waits)
		waits_restart(st->waits);
	stacks_free(old->stacks);
	counts_free(old->counts);
	maps_drop_tasks(old->tasks);
	free(old);
	return code;
}

int store_keep_room(struct store *st)
{
	bool room = stacks_grow(st->stacks);

	places_grow(st->places);
	return !room || store_has_old_tasks(st) || store_has_old_stacks(st) ||
			       store_has_old_places(st)
		       ? store_renew(st)
		       : 0;
}

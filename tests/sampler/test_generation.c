// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * New tables for full ones: the shown history is the same before and after, sums and stacks and
 * names, and unused entries are gone.
 * Live: waits for threads or processes.
 */
#include "sampler/store.c"

#include "tests/prelude_rcu.h"

#include <dirent.h>
#include <sys/stat.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "unwind/internal.h"
#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "symbols/symbols.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/hot/hot.h"

#define SMALL 4096u

static const struct store_budget large = { .stacks = 128 << 20, .places = MAX_PLACES };

/* All shares are at most 3 % of the machine together, of a small one the need of proftop. */
TEST(test_memory_of_the_machine)
{
	static const struct {
		uint64_t machine, least, most; /* MiB */
	} cases[] = {
		{ 64, 16, 32 },	   { 512, 60, 96 },	{ 1024, 60, 96 },
		{ 4096, 80, 122 }, { 24576, 400, 737 }, { 1024000, 600, 1700 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct store_budget b = store_share(cases[i].machine << 20);
		const struct store_caps caps = store_choose_caps(2, 0, &b);
		uint64_t sum =
			b.images + b.history + caps.memory + (uint64_t)b.places * BYTES_OF_A_PLACE;

		assert_in_range(sum >> 20, cases[i].least, cases[i].most);
		assert_true(b.images_idle <= b.images / 2 && b.images_idle <= 10 << 20);
		assert_true(caps.used && caps.used <= caps.memory / 4);
		assert_int_equal(caps.places_soon, b.places);
	}
}

/* A cgroup may have less than the machine, and so may one above it. */
TEST(test_memory_of_a_cgroup)
{
	char root[] = "/tmp/test_generation.XXXXXX", folder[64], file[96];
	const uint64_t all = store_machine("/none", "");
	static const struct {
		const char *name, *text;
	} files[] = { { "a/b", "max\n" }, { "a", "1073741824\n" }, { "", "2147483648\n" } };

	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof(folder), "%s/a", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(folder, sizeof(folder), "%s/a/b", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		FILE *f;

		snprintf(file, sizeof(file), "%s/%s/memory.max", root, files[i].name);
		f = fopen(file, "w");
		assert_non_null(f);
		fputs(files[i].text, f);
		fclose(f);
	}
	assert_true(all >= 3ULL << 30);
	assert_int_equal(store_machine(root, "1:cpu:/a\n0::/a/b\n"), 1 << 30);
	assert_int_equal(store_machine(root, "0::/a"), 1 << 30);
	assert_int_equal(store_machine(root, "0::/\n"), 2ULL << 30);
	assert_int_equal(store_machine(root, "0::/gone\n"), 2ULL << 30);
	assert_int_equal(store_machine(root, "1:memory:/a\n"), all);
	assert_int_equal(store_machine(root, ""), all);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(file, sizeof(file), "%s/%s/memory.max", root, files[i].name);
		unlink(file);
		snprintf(file, sizeof(file), "%s/%s", root, files[i].name);
		rmdir(file);
	}
}

static void open_session(struct store *s, uint32_t max_cells)
{
	memset(s, 0, sizeof(*s));
	s->caps = (struct store_caps){ 8 * SMALL, 8 << 20, 256, 0, 0, 0, 0 };
	assert_int_equal(objects_new(&s->objects), 0);
	assert_int_equal(maps_new(&s->maps, s->objects, 4096), 0);
	maps_no_proc(s->maps);
	s->shared = aligned_alloc(CACHELINE, sizeof(*s->shared));
	memset(s->shared, 0, sizeof(*s->shared));
	s->tables = xcalloc(1, sizeof(*s->tables));
	assert_int_equal(stacks_new(&s->stacks, SMALL, 1 << 20), 0);
	assert_int_equal(counts_new(&s->counts, 1 << 14, 1 << 16), 0);
	assert_int_equal(history_new(&s->history, 5000000000ULL, 10000000000ULL, max_cells), 0);
	s->tables->stacks = s->stacks;
	s->tables->counts = s->counts;
	s->tables->maps = s->maps;
	s->tables->tasks = maps_tasks(s->maps);
	maps_on_comm(s->maps, 3, 3, "three", 6, true, 1);
	maps_publish(s->maps, 10, 1);
	atomic_init(&s->shared->tables, s->tables);
}

static void close_session(struct store *s)
{
	history_free(s->history);
	stacks_free(s->stacks);
	counts_free(s->counts);
	maps_free(s->maps);
	objects_free(s->objects);
	free(s->tables);
	free(s->shared);
}

/* Stack @i is (i, 7, i * 3). */
static uint32_t intern(struct stacks *stacks, uint32_t i)
{
	const uint32_t places[] = { i, 7, i * 3 };

	return stacks_intern(stacks, places, 3);
}

static uint32_t task_of(const struct store *s, pid_t pid, uint64_t time_ns)
{
	struct maps_hit hit;

	maps_find(s->maps, s->tables->tasks, pid, pid, time_ns, &hit);
	return hit.task;
}

/* Fill the stacks until they are full; returns how many went in, each counted (i % 5 + 1) times. */
static uint32_t fill(struct store *s)
{
	uint32_t i = 0, id, task = task_of(s, 3, 5);

	while ((id = intern(s->stacks, i)) != STACK_NONE || stacks_grow(s->stacks)) {
		for (uint32_t k = 0; id != STACK_NONE && k < i % 5 + 1; k++)
			assert_true(counts_add(s->counts, id, task, 1, 10, 0));
		i += id != STACK_NONE;
	}
	return i;
}

static void check(const struct store *s, enum profile_window window, uint32_t nr_stacks)
{
	struct history_cell *counts;
	uint64_t covers;
	uint32_t nr;
	bool *seen = xcalloc(nr_stacks, sizeof(*seen));

	assert_int_equal(history_get(s->history, window, &counts, &nr, &covers), 0);
	assert_int_equal(nr, nr_stacks);
	for (uint32_t i = 0; i < nr; i++) {
		struct stacks_room room;
		uint32_t len;
		const uint32_t *places = stacks_at(s->stacks, counts[i].stack, &room, &len);

		assert_non_null(places);
		assert_int_equal(len, 3);
		assert_true(places[0] < nr_stacks && !seen[places[0]]);
		seen[places[0]] = true;
		assert_int_equal(places[2], places[0] * 3);
		assert_int_equal(maps_task(s->maps, counts[i].task)->pid, 3);
		assert_int_equal(counts[i].event, 1);
		if (window != PROFILE_DECAY) {
			assert_true(counts[i].count == places[0] % 5 + 1);
			assert_true(counts[i].weight == 10 * counts[i].count);
		}
	}
	free(counts);
	free(seen);
}

/* In a process of so little memory; returns false when it all went in. */
static bool fails_within(rlim_t more)
{
	const struct store_caps caps = store_choose_caps(2, 0, &large);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct rlimit limit = { more, more };
		struct stacks *stacks = NULL;
		struct counts *counts = NULL;
		int code;

		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_AS, &limit);
		code = store_new_tables(&caps, &stacks, &counts);
		/* As the owner does, for every result. */
		stacks_free(stacks);
		counts_free(counts);
		_exit(code ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 1;
}

/* Bytes of address space in use. */
static rlim_t space_in_use(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* First: later on, freed memory is left to be used again. */
TEST(test_out_of_memory_frees_once)
{
	rlim_t used = space_in_use(), more = 0;

	/* Sanitizers reserve terabytes: a limit says nothing there. */
	if (used > (rlim_t)1 << 40)
		skip_test("not on this machine: a limit of memory (sanitizer)");
	while (more < 64 << 20 && fails_within(used + more))
		more += 64 << 10;
	assert_in_range(more, 1 << 20, 64 << 20);
}

TEST(test_history_moves_along)
{
	struct stacks *old;
	struct count *counts;
	struct store s;
	uint32_t nr, nr_stacks;

	open_session(&s, 1 << 16);
	nr_stacks = fill(&s);
	assert_true(nr_stacks > SMALL / 2);
	/* Half is in a tick already, the rest is in the cells still: both must move. */
	assert_int_equal(counts_swap(s.counts, &counts, &nr), 0);
	assert_int_equal(nr, nr_stacks);
	assert_int_equal(history_add(s.history, counts, nr, 1000000000), 0);
	old = s.stacks;
	assert_int_equal(store_renew(&s), 0);
	assert_ptr_not_equal(s.stacks, old);
	assert_ptr_equal(sampler_thread_tables(s.shared)->stacks, s.stacks);
	check(&s, PROFILE_WINDOW, nr_stacks);
	check(&s, PROFILE_TOTAL, nr_stacks);
	check(&s, PROFILE_DECAY, nr_stacks);
	/* There is room again. */
	assert_int_not_equal(intern(s.stacks, nr_stacks + 1), STACK_NONE);
	close_session(&s);
}

/* Threads that sample in the meantime have room for new stacks, however many move. */
TEST(test_room_while_moving)
{
	enum { NR = 50000 };
	struct store s;
	uint32_t task;

	open_session(&s, 1 << 18);
	s.caps = (struct store_caps){ 1 << 17, 64 << 20, 256, 0, 0, 0, 0 };
	stacks_free(s.stacks);
	counts_free(s.counts);
	assert_int_equal(store_new_tables(&s.caps, &s.stacks, &s.counts), 0);
	s.tables->stacks = s.stacks;
	s.tables->counts = s.counts;
	task = task_of(&s, 3, 5);
	for (uint32_t i = 0; i < NR; i++) {
		if (stacks_crowded(s.stacks))
			stacks_grow(s.stacks);
		if (counts_crowded(s.counts))
			counts_grow(s.counts);
		assert_true(counts_add(s.counts, intern(s.stacks, i), task, 1, 10, 0));
	}
	assert_int_equal(store_renew(&s), 0);
	assert_int_equal(stacks_nr(s.stacks), NR);
	assert_false(stacks_crowded(s.stacks));
	close_session(&s);
}

TEST(test_cells_in_flight_move)
{
	struct store s;
	uint32_t nr_stacks;

	open_session(&s, 1 << 16);
	nr_stacks = fill(&s);
	assert_int_equal(store_renew(&s), 0);
	check(&s, PROFILE_TOTAL, nr_stacks);
	close_session(&s);
}

/* Entries that only reset history used are not copied. */
TEST(test_forgotten_stacks_are_gone)
{
	struct store s;

	open_session(&s, 1 << 16);
	fill(&s);
	assert_int_equal(store_renew(&s), 0);
	history_reset(s.history);
	assert_int_equal(store_renew(&s), 0);
	assert_int_equal(stacks_nr(s.stacks), 0);
	close_session(&s);
}

/* One second of a storm: processes begin, are sampled under different names, and end. */
static void storm_tick(struct store *s, pid_t first, uint32_t nr, uint64_t now_ns)
{
	struct count *counts;
	uint32_t nr_counts;

	for (uint32_t i = 0; i < nr; i++) {
		pid_t pid = first + (pid_t)i;
		char comm[16];
		int size = snprintf(comm, sizeof(comm), "p%d", pid);

		maps_on_comm(s->maps, pid, pid, comm, (size_t)size + 1, true, now_ns + 1);
	}
	maps_publish(s->maps, now_ns + 10, 10);
	for (uint32_t i = 0; i < nr; i++) {
		pid_t pid = first + (pid_t)i;

		assert_true(counts_add(s->counts, intern(s->stacks, (uint32_t)pid % 100),
				       task_of(s, pid, now_ns + 5), 0, (uint64_t)pid, 0));
		maps_on_exit(s->maps, pid, pid, now_ns + 20);
	}
	assert_true(counts_add(s->counts, intern(s->stacks, 7), task_of(s, 3, now_ns), 0, 1, 0));
	maps_publish(s->maps, now_ns + 30, 10);
	assert_int_equal(counts_swap(s->counts, &counts, &nr_counts), 0);
	assert_int_equal(history_add(s->history, counts, nr_counts, 1000000000), 0);
}

/* Every process of the window is there under its name: its weight is its pid. */
static void check_names(const struct store *s, uint32_t nr)
{
	struct history_cell *counts;
	uint64_t covers;
	uint32_t nr_counts, seen = 0;

	assert_int_equal(history_get(s->history, PROFILE_WINDOW, &counts, &nr_counts, &covers), 0);
	for (uint32_t i = 0; i < nr_counts; i++) {
		const struct task *task = maps_task(s->maps, counts[i].task);
		char comm[16];

		assert_non_null(task);
		if (task->pid == 3)
			continue;
		snprintf(comm, sizeof(comm), "p%d", task->pid);
		assert_string_equal(task->comm.str, comm);
		assert_true(counts[i].weight == task->pid);
		seen++;
	}
	assert_int_equal(seen, nr);
	free(counts);
}

#define TICK_FORKS 300

/* Many times more processes than the table of tasks holds: names are right, memory bounded.
 */
TEST(test_storm_beyond_the_caps)
{
	uint32_t generations = 0, most = 0, number, nr;
	struct history_cell *counts;
	double all = 0, found = 0;
	uint64_t covers;
	struct store s;

	open_session(&s, 1 << 10);
	number = maps_task(s.maps, task_of(&s, 3, 5))->number;
	for (int tick = 0; tick < 100; tick++) {
		storm_tick(&s, 1000 + tick * TICK_FORKS, TICK_FORKS, (uint64_t)(tick + 1) * 1000);
		if (store_has_old_tasks(&s)) {
			assert_int_equal(store_renew(&s), 0);
			generations++;
		}
		most = MAX(most, maps_nr_tasks(s.maps));
		check_names(&s, (uint32_t)MIN(tick + 1, 5) * TICK_FORKS);
		all += TICK_FORKS + 1;
	}
	assert_true(generations > 3);
	assert_true(most < 4096);
	assert_int_equal(maps_task(s.maps, task_of(&s, 3, 5))->number, number);
	/* No counted sample is lost, though most are folded away. */
	assert_int_equal(history_get(s.history, PROFILE_TOTAL, &counts, &nr, &covers), 0);
	for (uint32_t i = 0; i < nr; i++)
		found += counts[i].count;
	assert_true(found == all);
	free(counts);
	close_session(&s);
}

/* Processes of two names, each in five stacks, that end in this tick. */
static void builds_tick(const struct store *s, pid_t first, uint32_t nr, uint64_t now_ns)
{
	static const char *const names[] = { "cc", "as" };
	struct count *counts;
	uint32_t nr_counts;

	for (uint32_t i = 0; i < nr; i++)
		maps_on_comm(s->maps, first + (pid_t)i, first + (pid_t)i, names[i % 2], 3, true,
			     now_ns + 1);
	maps_publish(s->maps, now_ns + 10, 10);
	for (uint32_t i = 0; i < nr; i++) {
		pid_t pid = first + (pid_t)i;

		assert_true(counts_add(s->counts, intern(s->stacks, i / 2 % 5),
				       task_of(s, pid, now_ns + 5), 0, 1, 0));
		maps_on_exit(s->maps, pid, pid, now_ns + 20);
	}
	assert_true(counts_add(s->counts, intern(s->stacks, 7), task_of(s, 3, now_ns), 0, 1, 0));
	maps_publish(s->maps, now_ns + 30, 10);
	assert_int_equal(counts_swap(s->counts, &counts, &nr_counts), 0);
	assert_int_equal(history_add(s->history, counts, nr_counts, 1000000000), 0);
}

/* Check the total of @all samples; return the process that "cc" is merged to. */
static uint32_t check_merged(const struct store *s, double all)
{
	struct history_cell *counts;
	double found = 0, merged = 0;
	uint32_t nr, process = 0;
	uint64_t covers;

	assert_int_equal(history_get(s->history, PROFILE_TOTAL, &counts, &nr, &covers), 0);
	for (uint32_t i = 0; i < nr; i++) {
		const struct task *task = maps_task(s->maps, counts[i].task);

		found += counts[i].count;
		/* More counts than there is room for if each process had some. */
		assert_int_not_equal(counts[i].stack, STACK_NONE);
		assert_non_null(task);
		if (task->pid >= 0)
			continue;
		merged += counts[i].count;
		assert_true(!strcmp(task->comm.str, "cc") || !strcmp(task->comm.str, "as"));
		assert_string_equal(task->process_comm.str, task->comm.str);
		if (!strcmp(task->comm.str, "as"))
			continue;
		assert_true(!process || process == task->process);
		process = task->process;
	}
	free(counts);
	assert_true(found == all);
	/* Tasks of the window, of five ticks, are apart. */
	assert_true(merged >= all - 10.0 * (TICK_FORKS + 1));
	return process;
}

/* Of a session of many short processes, the total has the stacks of all, by name. */
TEST(test_ended_are_merged)
{
	uint32_t process = 0, most = 0;
	struct store s;

	open_session(&s, 1 << 13);
	s.caps.apart = 64;
	for (int tick = 0; tick < 200; tick++) {
		builds_tick(&s, 1000 + tick * TICK_FORKS, TICK_FORKS, (uint64_t)(tick + 1) * 1000);
		if (tick % 5 == 4) {
			uint32_t before = process;

			assert_int_equal(store_renew(&s), 0);
			process = check_merged(&s, (tick + 1.0) * (TICK_FORKS + 1));
			assert_true(tick < 5 || process);
			assert_true(!before || process == before);
			most = MAX(most, maps_nr_tasks(s.maps));
		}
	}
	/* Tasks of the decaying sum, half of the table; two merged names, the one that lives, the
	 * unknown one. */
	assert_in_range(most, 5 * TICK_FORKS, 2048 + 4);
	close_session(&s);
}

/* Places of the kernel at these addresses; a stack of two of them is counted. */
static uint32_t count_places(const struct store *s, uint32_t leaf, uint32_t outer)
{
	uint32_t places[2], stack;

	places[0] = places_intern(s->places, OBJECT_ID_KERNEL, leaf);
	places[1] = places_intern(s->places, OBJECT_ID_KERNEL, outer);
	stack = stacks_intern(s->stacks, places, 2);
	assert_int_not_equal(stack, STACK_NONE);
	assert_true(counts_add(s->counts, stack, 0, 0, leaf, 0));
	return places[0];
}

static void open_places(struct store *s, uint32_t cap)
{
	const struct sampler_config config = { .hz = 99, .nr_events = 1, .window_ns = 5000000000 };
	struct err e;

	memset(s, 0, sizeof(*s));
	if (store_open(s, &config, &e))
		fail_msg("%s", e.text);
	s->caps.places = cap;
	s->shared = aligned_alloc(CACHELINE, sizeof(*s->shared));
	memset(s->shared, 0, sizeof(*s->shared));
	store_publish(s, s->shared, &config, 0, -1, 0);
}

static void close_places(struct store *s)
{
	struct sampler_thread_shared *shared = s->shared;

	store_close(s);
	free(shared);
}

enum { FIRST = 0x1000, KEPT = 300, OUTER = 0x900000 };

/* Return the counts of the total, each of a stack of its leaf and OUTER. */
static double sum_of_places(const struct store *s)
{
	struct history_cell *counts;
	double sum = 0;
	uint64_t covers;
	uint32_t nr;

	assert_int_equal(history_get(s->history, PROFILE_TOTAL, &counts, &nr, &covers), 0);
	for (uint32_t i = 0; i < nr; i++) {
		struct stacks_room room;
		uint32_t len;
		const uint32_t *places = stacks_at(s->stacks, counts[i].stack, &room, &len);

		assert_int_equal(len, 2);
		assert_true(places_at(s->places, places[0])->offset ==
			    (uint64_t)(counts[i].weight / counts[i].count));
		assert_int_equal(places_at(s->places, places[1])->offset, OUTER);
		sum += counts[i].count;
	}
	free(counts);
	return sum;
}

/* Places that no count is of are gone; the others have their names, rules and counts. */
TEST(test_places_are_renewed)
{
	struct store s;
	struct places *old;
	const struct pipeline_tables *tables;
	uint32_t serial, leaf = 0;

	open_places(&s, 10 * KEPT);
	tables = sampler_thread_tables(s.shared);
	for (int i = 0; i < WAIT_NR; i++)
		assert_int_equal(tables->wait_places[i], PLACE_NONE);
	assert_int_equal(store_open_waits(&s, 1, 0), 0);
	for (uint32_t i = 0; i < KEPT; i++)
		leaf = count_places(&s, FIRST + i, OUTER);
	symbols_run(s.symbols);
	rows_put(s.rows, leaf, 0x123401);
	rows_prove(s.rows, 99);
	assert_false(store_has_old_places(&s));
	assert_int_equal(store_keep_room(&s), 0);
	assert_int_equal(s.tables->generation, 0);
	for (uint32_t i = 0; places_nr(s.places) < 10 * KEPT; i++)
		places_intern(s.places, OBJECT_ID_KERNEL, 2 * OUTER + i);
	old = s.places;
	serial = places_serial(old);
	assert_true(store_has_old_places(&s));
	assert_int_equal(store_keep_room(&s), 0);
	tables = sampler_thread_tables(s.shared);
	assert_int_equal(tables->generation, 1);
	assert_ptr_equal(tables->places, s.places);
	assert_ptr_equal(tables->unwind.rows, s.rows);
	assert_int_not_equal(places_serial(s.places), serial);
	assert_int_equal(places_nr(s.places), KEPT + 1 + WAIT_NR - WAIT_RUNNING);
	assert_true(sum_of_places(&s) == KEPT);
	leaf = places_intern(s.places, OBJECT_ID_KERNEL, FIRST + KEPT - 1);
	assert_int_not_equal(atomic_load(&places_at(s.places, leaf)->symbol), SYMBOL_NONE);
	assert_int_equal(rows_get(s.rows, leaf), 0x123401);
	assert_true(rows_proven(s.rows, 99));
	for (uint32_t i = WAIT_RUNNING; i < WAIT_NR; i++) {
		const struct place *place = places_at(s.places, tables->wait_places[i]);

		assert_int_equal(place->object, tables->wait);
		assert_int_equal(place->offset, i);
		assert_int_not_equal(atomic_load(&place->symbol), SYMBOL_NONE);
	}
	/* Not until the loader has taken these. */
	for (uint32_t i = 0; places_nr(s.places) < 10 * KEPT; i++)
		places_intern(s.places, OBJECT_ID_KERNEL, 2 * OUTER + i);
	assert_false(store_has_old_places(&s));
	serial = places_serial(s.places);
	assert_int_equal(store_renew(&s), 0);
	assert_int_equal(places_serial(s.places), serial);
	assert_true(sum_of_places(&s) == KEPT);
	symbols_run(s.symbols);
	assert_true(store_has_old_places(&s));
	close_places(&s);
}

/*
 * Kept places do not make each tick a generation: the double does, or after a while a quarter
 * more. A recording keeps all.
 */
TEST(test_places_beside_the_kept)
{
	struct store s;

	open_places(&s, 100);
	for (uint32_t i = 0; i < KEPT; i++)
		count_places(&s, FIRST + i, OUTER);
	assert_true(store_has_old_places(&s));
	assert_int_equal(store_renew(&s), 0);
	symbols_run(s.symbols);
	assert_false(store_has_old_places(&s));
	s.places_ns = 0;
	assert_false(store_has_old_places(&s));
	for (uint32_t i = 0; i < KEPT / 4; i++)
		places_intern(s.places, OBJECT_ID_KERNEL, 2 * OUTER + i);
	assert_true(store_has_old_places(&s));
	s.places_ns = time_now_ns();
	assert_false(store_has_old_places(&s));
	/* More than the memory has room for need no ten minutes. */
	s.places_ns = time_now_ns() - PLACES_SOON_NS;
	s.caps.places_soon = MAX_PLACES;
	assert_false(store_has_old_places(&s));
	s.caps.places_soon = KEPT;
	assert_true(store_has_old_places(&s));
	s.places_ns = time_now_ns();
	assert_false(store_has_old_places(&s));
	for (uint32_t i = 0; i < KEPT + 10; i++)
		places_intern(s.places, OBJECT_ID_KERNEL, 2 * OUTER + i);
	assert_true(store_has_old_places(&s));
	close_places(&s);
	assert_int_equal(store_choose_caps(0, 1e9, &large).places, 0);
	assert_int_not_equal(store_choose_caps(2, 1e9, &large).places, 0);
}

/* Intern stacks that no count has, until @size bytes are in use. */
static void fill_past(const struct store *s, size_t size)
{
	for (uint32_t i = 0; stacks_used(s->stacks) < size; i++) {
		const uint32_t places[] = { i % KEPT, i / KEPT, 0 };

		assert_int_not_equal(stacks_intern(s->stacks, places, 3), STACK_NONE);
	}
}

/* Stacks of the past leave long before the memory is full, but not the counted ones each tick. */
TEST(test_stacks_at_twice_the_kept)
{
	enum { USED = 1 << 16 };
	struct store s;
	size_t kept;

	open_places(&s, 0);
	s.caps.used = USED;
	for (uint32_t i = 0; i < KEPT; i++)
		count_places(&s, FIRST + i, OUTER);
	kept = stacks_used(s.stacks);
	assert_true(kept < USED);
	assert_int_equal(store_keep_room(&s), 0);
	assert_int_equal(s.tables->generation, 0);
	fill_past(&s, USED);
	assert_int_equal(store_keep_room(&s), 0);
	assert_int_equal(s.tables->generation, 1);
	assert_int_equal(stacks_nr(s.stacks), KEPT);
	assert_int_equal(stacks_used(s.stacks), kept);
	assert_true(sum_of_places(&s) == KEPT);
	s.caps.used = kept / 2;
	assert_false(store_has_old_stacks(&s));
	fill_past(&s, 2 * kept);
	assert_true(store_has_old_stacks(&s));
	close_places(&s);
	assert_int_equal(store_choose_caps(0, 1e9, &large).used, 0);
	assert_in_range(store_choose_caps(2, 0, &large).used, 1,
			store_choose_caps(2, 0, &large).memory / 4);
}

/* Return all counts of a window. */
static double sum_of(const struct store *s, enum profile_window window)
{
	struct history_cell *counts;
	double sum = 0;
	uint64_t covers;
	uint32_t nr;

	assert_int_equal(history_get(s->history, window, &counts, &nr, &covers), 0);
	for (uint32_t i = 0; i < nr; i++)
		sum += counts[i].count;
	free(counts);
	return sum;
}

/* Count a sample of a stack of one place, in a new slice. Return the stack's id. */
static uint32_t add_slice(struct store *s, uint32_t place)
{
	uint32_t stack = stacks_intern(s->stacks, &place, 1), nr;
	struct count *counts;

	assert_true(counts_add(s->counts, stack, 0, 0, 1, 0));
	assert_int_equal(counts_swap(s->counts, &counts, &nr), 0);
	assert_int_equal(history_add(s->history, counts, nr, 100000000), 0);
	return stack;
}

/* Counts of a slice that is not over are in it when it ends: there is one slice, as long as ever.
 */
TEST(test_slice_of_two_generations)
{
	const struct slice *slice;
	struct count *counts;
	struct slices *slices;
	struct store s;
	uint32_t place, stack, nr;

	open_places(&s, 0);
	history_begin(s.history, 1000);
	place = places_intern(s.places, OBJECT_ID_KERNEL, 1);
	stack = stacks_intern(s.stacks, &place, 1);
	assert_true(counts_add(s.counts, stack, 0, 0, 1, 0));
	stacks_intern(s.stacks, (const uint32_t[]){ place, place }, 2); /* gone with it */
	assert_int_equal(store_renew(&s), 0);
	assert_int_equal(store_renew(&s), 0);
	place = places_intern(s.places, OBJECT_ID_KERNEL, 2);
	stack = stacks_intern(s.stacks, &place, 1);
	assert_int_equal(stack, 1);
	assert_true(counts_add(s.counts, stack, 0, 0, 1, 0));
	assert_int_equal(counts_swap(s.counts, &counts, &nr), 0);
	assert_int_equal(history_add(s.history, counts, nr, 100000000), 0);
	slices = history_slices(s.history);
	assert_int_equal(slices_nr(slices), 1);
	slice = slices_at(slices, 0);
	assert_int_equal(slice->count, 2);
	assert_int_equal(slice->begin_ns, 1000);
	assert_int_equal(slice->end_ns, 100001000);
	for (int window = 0; window < PROFILE_NR_WINDOWS; window++)
		assert_true(sum_of(&s, (enum profile_window)window) > 1.99 &&
			    sum_of(&s, (enum profile_window)window) < 2.01);
	/* They are of the tick that a reset drops. */
	assert_true(counts_add(s.counts, stack, 0, 0, 1, 0));
	assert_int_equal(store_renew(&s), 0);
	history_restart(s.history);
	assert_int_equal(history_add(s.history, NULL, 0, 100000000), 0);
	assert_int_equal(slices_at(slices, slices_nr(slices) - 1)->count, 0);
	close_places(&s);
}

static struct assemble_input tables_of(const struct store *s)
{
	return (struct assemble_input){
		.stacks = s->stacks,
		.places = s->places,
		.symbols = s->symbols,
		.maps = s->maps,
		.objects = s->objects,
	};
}

/* Make generations until the stacks are at the address of the first ones; maybe never. */
static void renew_to_same(struct store *s)
{
	const uintptr_t was = (uintptr_t)s->stacks;

	for (int i = 0; i < 2 || (i < 200 && (uintptr_t)s->stacks != was); i++)
		assert_int_equal(store_renew(s), 0);
}

static uint32_t nr_segments(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);
	uint32_t nr = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		nr += strstr(e->d_name, ".keep") != NULL;
	closedir(d);
	return nr;
}

/* Return the bytes of all segments. */
static uint64_t segment_bytes(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);
	uint64_t bytes = 0;
	struct stat st;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (strstr(e->d_name, ".keep") && !fstatat(dirfd(d), e->d_name, &st, 0))
			bytes += (uint64_t)st.st_size;
	closedir(d);
	return bytes;
}

static void keep_slices(struct keep *k, const char *dir, const struct store *s)
{
	const struct assemble_input tables = tables_of(s);
	const struct event events[1] = { 0 };
	const double hz[1] = { 99 };
	const uint64_t before = segment_bytes(dir);
	struct err e;

	/* Until the writer has it: one that is behind takes no more. */
	for (int i = 0; i < 1000 && segment_bytes(dir) == before; i++) {
		keep_tick(k, &(struct keep_input){ history_slices(s->history), &tables, events, hz,
						   1, NULL, 0, UINT64_MAX });
		usleep(10000);
	}
	assert_int_equal(keep_check(k, &e), 0);
}

/* Ids of stacks in a segment are of one table, also after generations between two ticks. */
TEST(test_generations_begin_a_segment)
{
	char dir[] = "/tmp/test_generation.XXXXXX", command[64];
	struct keep_config config = { dir, 64 << 20, 3600000000000ULL };
	struct store s;
	struct keep *k;
	struct err e;

	assert_non_null(mkdtemp(dir));
	open_places(&s, 0);
	assert_int_equal(keep_open(&k, &config, &e), 0);
	add_slice(&s, places_intern(s.places, OBJECT_ID_KERNEL, 1));
	keep_slices(k, dir, &s);
	renew_to_same(&s);
	add_slice(&s, places_intern(s.places, OBJECT_ID_KERNEL, 2));
	keep_slices(k, dir, &s);
	keep_close(k);
	assert_int_equal(nr_segments(dir), 2);
	close_places(&s);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Return the highest peak of the strip of @f. */
static double strip_max(struct strip_filter *f, const struct store *s)
{
	const struct assemble_input tables = tables_of(s);
	const uint8_t events[] = { 0 };
	const struct strip_input in = { history_slices(s->history), &tables, events, 1, 0 };
	struct strip *strip = strip_make(f, &in);
	double max;

	assert_non_null(strip);
	max = strip->max;
	free(strip);
	return max;
}

/* A stack that has the id of one without the function is looked at again. */
TEST(test_strip_after_generations)
{
	struct strip_query *q = xcalloc(1, sizeof(*q));
	struct strip_filter f = { 0 };
	uint32_t other, wanted, stack;
	struct store s;

	open_places(&s, 0);
	other = places_intern(s.places, OBJECT_ID_KERNEL, 1);
	wanted = places_intern(s.places, OBJECT_ID_KERNEL, 2);
	*q = (struct strip_query){ .columns = 10,
				   .process = STRIP_ALL,
				   .thread = STRIP_ALL,
				   .function = ASSEMBLE_PLACE | wanted };
	strip_filter_set(&f, q);
	stacks_intern(s.stacks, &wanted, 1); /* not counted: gone with this generation */
	stack = add_slice(&s, other);
	assert_true(strip_max(&f, &s) == 0);
	renew_to_same(&s);
	assert_int_equal(add_slice(&s, wanted), stack);
	assert_true(strip_max(&f, &s) > 0);
	strip_filter_fini(&f);
	close_places(&s);
}

/* Switches and samples that the builder did not take before have their stacks. */
TEST(test_notes_in_flight)
{
	const struct switch_note notes[] = {
		{ .time_ns = 5, .pid = 1, .tid = 1, .step = STEP_IN, .stack = STACK_NONE },
		{ .time_ns = 8, .tid = 1, .step = STEP_SAMPLE, .period = 7 },
		{ .time_ns = 10, .pid = 1, .tid = 1, .step = STEP_OUT, .period = 1 },
	};
	struct waits_tables t;
	struct profile_waits sums;
	uint64_t latency = 0;
	struct count *counts;
	struct history_cell *cells;
	struct store s;
	uint64_t covers;
	uint32_t nr;

	open_places(&s, 0);
	assert_int_equal(store_open_waits(&s, 1, 0), 0);
	assert_int_equal(stacks_intern(s.stacks, &s.tables->wait_places[WAIT_ASLEEP], 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
		switch_queue_put(waits_queue(s.waits, 0), &notes[i]);
	switch_queue_done(waits_queue(s.waits, 0), 20);
	assert_int_equal(store_renew(&s), 0);
	t = store_waits_tables(&s);
	waits_count(s.waits, &t, 1, 20, &sums);
	assert_int_equal(sums.with_stack, 1);
	assert_int_equal(counts_swap(s.counts, &counts, &nr), 0);
	assert_int_equal(history_add(s.history, counts, nr, 100), 0);
	assert_int_equal(history_get(s.history, PROFILE_TOTAL, &cells, &nr, &covers), 0);
	for (uint32_t i = 0; i < nr; i++)
		latency += cells[i].event == PROFILE_LATENCY ? (uint64_t)cells[i].weight : 0;
	assert_int_equal(latency, 7);
	free(cells);
	close_places(&s);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}

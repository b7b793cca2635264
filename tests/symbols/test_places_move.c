// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Another table of places: places that are moved have their names and source, whatever the loader
 * was doing; others are named when they are sampled again.
 * Live: waits for threads or processes.
 */
#include "symbols/dwarf/lines.c"
#include "symbols/symbols.c"

#include "tests/prelude_rcu.h"
#include "tests/symbols/with_symbols.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/name/name.h"

extern const char test_move_spot[];

static inline __attribute__((always_inline)) int inlined_function(int x)
{
	__asm__ volatile(".globl test_move_spot\ntest_move_spot: nop" : "+r"(x));
	return x + 1;
}

__attribute__((noinline, noclone)) static int caller_of_inlined(int x)
{
	return inlined_function(x) * 5;
}

static uint32_t place_in(struct fixture *f, struct places *places, const void *code)
{
	uint64_t offset = 0;
	struct object *object = object_at(f, (uint64_t)(uintptr_t)code, &offset);

	assert_non_null(object);
	return places_intern(places, object->id, offset);
}

static const char *name_of(const struct fixture *f, const struct places *places, uint32_t place)
{
	uint32_t symbol = atomic_load(&places_at(places, place)->symbol);

	return symbol == SYMBOL_NONE ? "" : symbols_at(f->symbols, symbol)->name.str;
}

/* Replace the table of @f; the test has it from then on. */
static struct places_move *begin_move(struct fixture *f, struct places **to)
{
	struct places_move *m;

	assert_int_equal(places_new(to, 1 << 20), 0);
	assert_true(symbols_can_move(f->symbols));
	m = symbols_begin_move(f->symbols, f->places, *to);
	assert_non_null(m);
	return m;
}

static void end(struct fixture *f, struct places_move *m)
{
	f->places = m->to;
	symbols_end_move(f->symbols, m);
}

static void check_spot(const struct fixture *f, uint32_t place)
{
	const struct symbol_frame *frames;
	uint32_t nr = 0;

	assert_string_equal(name_of(f, f->places, place), "caller_of_inlined");
	frames = symbols_source(f->symbols, place, &nr);
	assert_int_equal(nr, 2);
	assert_string_equal(symbols_at(f->symbols, frames[0].symbol)->name.str, "inlined_function");
	assert_non_null(strstr(symbols_file(f->symbols, frames[1].file).str, "test_places_move.c"));
}

/* Names and source are there at once; a place that was left behind gets them again. */
TEST(test_named_places_move, setup, teardown)
{
	struct fixture *f = *state;
	struct symbols_stats stats;
	struct places_move *m;
	struct places *to;
	uint32_t other, spot, moved, left;

	assert_int_equal(caller_of_inlined(1), 10);
	other = place_in(f, f->places, (const void *)(uintptr_t)&place_in);
	spot = place_in(f, f->places, test_move_spot);
	symbols_run(f->symbols);
	check_spot(f, spot);
	left = atomic_load(&places_at(f->places, other)->symbol);
	assert_string_equal(symbols_at(f->symbols, left)->name.str, "place_in");
	m = begin_move(f, &to);
	moved = places_move_one(m, spot);
	assert_int_equal(places_move_one(m, spot), moved);
	assert_int_equal(places_move_one(m, 1000), PLACE_NONE);
	assert_int_equal(places_move_one(m, PLACE_NONE), PLACE_NONE);
	end(f, m);
	assert_int_equal(moved, 0);
	assert_int_not_equal(moved, spot);
	assert_int_equal(places_nr(f->places), 1);
	check_spot(f, moved);
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_named, 2);
	/* The loader is late. */
	assert_false(symbols_can_move(f->symbols));
	assert_null(symbols_begin_move(f->symbols, f->places, f->places));
	other = place_in(f, f->places, (const void *)(uintptr_t)&place_in);
	assert_string_equal(name_of(f, f->places, other), "");
	symbols_run(f->symbols);
	assert_true(symbols_can_move(f->symbols));
	check_spot(f, moved);
	assert_string_equal(name_of(f, f->places, other), "place_in");
	/* Its function had no place for a while: it is another one. */
	assert_null(symbols_at(f->symbols, left));
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_named, 2);
	assert_int_equal(stats.nr_unnamed + stats.nr_waiting, 0);
}

/* Names that come into the old table between the move and the loader's take-over are not lost. */
TEST(test_late_names_move, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t spot = place_in(f, f->places, test_move_spot), moved;
	struct places *to;
	struct places_move *m = begin_move(f, &to);

	moved = places_move_one(m, spot);
	assert_string_equal(name_of(f, to, moved), "");
	symbols_run(f->symbols);
	assert_string_equal(name_of(f, f->places, spot), "caller_of_inlined");
	end(f, m);
	assert_string_equal(name_of(f, f->places, moved), "");
	symbols_run(f->symbols);
	check_spot(f, moved);
}

/* A perf map that is read when the loader has the table, and before it has looked at the places. */
TEST(test_better_name_after_move, setup, teardown)
{
	struct fixture *f = *state;
	struct object_identity id = { .kind = OBJECT_ANON, .owner = 77 };
	struct object *anon = objects_intern(f->objects, &id, "//anon", 6, getpid(), 0, 0);
	uint32_t place = places_intern(f->places, anon->id, 0x5008);
	struct symbols_stats stats;
	struct places_move *m;
	struct places *to;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	symbols_run(f->symbols);
	assert_string_not_equal(name_of(f, f->places, place), "one");
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs("5000 10 one\n", file) >= 0);
	fclose(file);
	usleep(1100000);
	m = begin_move(f, &to);
	place = places_move_one(m, place);
	end(f, m);
	symbols_run(f->symbols);
	unlink(path);
	assert_string_equal(name_of(f, f->places, place), "one");
	symbols_stats(f->symbols, &stats);
	assert_int_equal(stats.nr_named, 1);
	assert_int_equal(stats.nr_unnamed, 0);
}

/*
 * Code that a JIT made in processes that have ended is one place for each function and chain; that
 * of one that runs, and code without a name, keeps its address.
 */
TEST(test_ended_processes, setup, teardown)
{
	enum { NR = 5 };
	struct fixture *f = *state;
	struct symbol_frame frame = { SYMBOL_NONE, SYMBOL_NO_FILE, 7 };
	uint32_t other = place_in(f, f->places, (const void *)(uintptr_t)&place_in), symbol;
	struct object *objects[NR];
	uint32_t was[NR + 1], is[NR + 1], nr;
	struct places_move *m;
	struct places *to;

	for (uint32_t i = 0; i < NR; i++) {
		struct object_identity id = { .kind = OBJECT_ANON, .owner = 7700 + i };

		/* The last one is mapped. */
		objects[i] = objects_hold(f->objects, &id, "//anon", 6, getpid(), 0, 0);
		atomic_store(&objects[i]->used, 1);
		was[i] = places_intern(f->places, objects[i]->id, 0x5008 + 16 * i);
		if (i + 1 < NR)
			object_put(objects[i]);
	}
	was[NR] = places_intern(f->places, objects[0]->id, 0x9000);
	symbols_run(f->symbols);
	symbol = atomic_load(&places_at(f->places, other)->symbol);
	for (uint32_t i = 0; i < NR; i++)
		places_name(f->places, was[i], symbol);
	for (int round = 0; round < 2; round++) {
		/* The third one has a chain. */
		m = begin_move(f, &to);
		if (!round)
			inlines_put((struct inlines *)(uintptr_t)m->from_chains, was[2], &frame, 1);
		for (uint32_t i = 0; i <= NR; i++) {
			is[i] = places_move_one(m, was[i]);
			assert_int_not_equal(is[i], PLACE_NONE);
		}
		end(f, m);
		symbols_run(f->symbols);
		assert_true(is[0] == is[1] && is[1] == is[3]);
		assert_true(is[2] != is[0] && is[4] != is[0] && is[4] != is[2] && is[5] != is[0]);
		for (uint32_t i = 0; i < NR; i++)
			assert_string_equal(name_of(f, f->places, is[i]), "place_in");
		assert_int_equal(symbols_source(f->symbols, is[2], &nr)->line, 7);
		assert_null(symbols_source(f->symbols, is[0], &nr));
		assert_int_equal(places_at(f->places, is[4])->offset, 0x5008 + 16 * 4);
		assert_int_equal(places_at(f->places, is[5])->offset, 0x9000);
		memcpy(was, is, sizeof(was));
	}
	object_put(objects[NR - 1]);
}

/* The table is not taken before the end: both are freed. */
TEST(test_end_before_taken, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t spot = place_in(f, f->places, test_move_spot);
	struct places *to;
	struct places_move *m;

	symbols_run(f->symbols);
	m = begin_move(f, &to);
	assert_int_not_equal(places_move_one(m, spot), PLACE_NONE);
	end(f, m);
}

TEST(test_cancel, setup, teardown)
{
	struct fixture *f = *state;
	uint32_t spot = place_in(f, f->places, test_move_spot);
	struct places *to;
	struct places_move *m = begin_move(f, &to);

	places_move_one(m, spot);
	inlines_free(m->to_chains);
	places_move_free(m);
	places_free(to);
	symbols_run(f->symbols);
	check_spot(f, spot);
}

static uint32_t nr_unnamed(const struct fixture *f)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < places_nr(f->places); i++)
		nr += !*name_of(f, f->places, i);
	return nr;
}

static bool has_source(const struct fixture *f, uint32_t place)
{
	uint32_t nr;

	return symbols_source(f->symbols, place, &nr) != NULL;
}

/* Generations one after the other, while the loader names on its thread and takes lines. */
TEST(test_loader_in_a_pass, setup, teardown)
{
	enum { ROUNDS = 60, NEW = 300 };
	struct fixture *f = *state;
	const char *code = (const char *)(uintptr_t)&place_in;
	uint32_t spot = place_in(f, f->places, test_move_spot), nr_moves = 0;
	struct err e;

	assert_int_equal(symbols_start(f->symbols, &e), 0);
	for (int round = 0; round < ROUNDS || !nr_moves; round++) {
		struct places_move *m;
		struct places *to;

		for (int i = 0; i < NEW; i++)
			place_in(f, f->places, code + (round * NEW + i) % 4096);
		symbols_wake(f->symbols);
		usleep(round % 7 * 1000);
		if (!symbols_can_move(f->symbols))
			continue;
		m = begin_move(f, &to);
		for (uint32_t i = 0; i < places_nr(f->places); i += 3)
			assert_int_not_equal(places_move_one(m, i), PLACE_NONE);
		spot = places_move_one(m, spot);
		end(f, m);
		nr_moves++;
	}
	assert_true(nr_moves > 5);
	/* Names first, then source. */
	for (int i = 0; i < 2000 && (nr_unnamed(f) || !has_source(f, spot)); i++)
		usleep(10000);
	symbols_stop(f->symbols);
	check_spot(f, spot);
	assert_int_equal(nr_unnamed(f), 0);
}

/* Code of virtual machines is kept for recordings, which a session without a screen may exclude. */
TEST(test_no_recording, setup, teardown)
{
	struct fixture *f = *state;

	assert_non_null(f->symbols->naming.jit.hotspots.log);
	symbols_configure(f->symbols, &(struct symbols_config){ .no_java = true });
	assert_non_null(f->symbols->naming.jit.hotspots.log);
	symbols_configure(f->symbols,
			  &(struct symbols_config){ .no_java = true, .no_recording = true });
	assert_null(f->symbols->naming.jit.hotspots.log);
	/* One that begins in the past has samples of JVMs that ended minutes ago. */
	assert_true(f->symbols->naming.jit.hotspots.keep_ns < JITREADS_KEEP_NS);
	symbols_configure(f->symbols,
			  &(struct symbols_config){ .no_java = true, .record_past = true });
	assert_int_equal(f->symbols->naming.jit.hotspots.keep_ns, JITREADS_KEEP_NS);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * assemble: ids of the real tables into a profile that outlives them. Names are from this very
 * program, read as the loader reads it.
 * Live: waits for threads or processes.
 */
#include "sampler/profile/assemble.c"
#include "sampler/annotate.c"
#include "sampler/profile/internal.h"

#include "tests/prelude.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/script/script.h"
#include "tests/unhash.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/process/maps.c"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "symbols/symbols.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"

/* Beyond PID_MAX_LIMIT of Linux: no process has these. */
#define PID_A	       5000001
#define PID_B	       5000002
#define THREAD_A       5000003
#define KERNEL_ADDRESS 0xfffffffffffff123ULL

struct tables {
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct stacks *stacks;
	struct symbols *symbols;
};

static void tables_init(struct tables *t)
{
	assert_int_equal(objects_new(&t->objects), 0);
	assert_int_equal(maps_new(&t->maps, t->objects, 1000), 0);
	assert_int_equal(places_new(&t->places, 10000), 0);
	assert_int_equal(stacks_new(&t->stacks, 1000, 1 << 20), 0);
	assert_int_equal(symbols_new(&t->symbols, t->places, t->objects, t->maps, NULL), 0);
}

static void tables_fini(struct tables *t)
{
	symbols_free(t->symbols);
	stacks_free(t->stacks);
	places_free(t->places);
	maps_free(t->maps);
	objects_free(t->objects);
}

static struct assemble_input input_of(const struct tables *t, const struct history_cell *counts,
				      uint32_t nr)
{
	return (struct assemble_input){
		.counts = counts,
		.nr_counts = nr,
		.stacks = t->stacks,
		.places = t->places,
		.symbols = t->symbols,
		.maps = t->maps,
		.objects = t->objects,
	};
}

static struct profile *assembled_as(const struct tables *t, const struct history_cell *counts,
				    uint32_t nr, enum profile_frames frames)
{
	struct profile *p = xcalloc(1, sizeof(*p));
	struct assemble_input in = input_of(t, counts, nr);

	in.shown_frames = frames;
	assert_int_equal(assemble(p, &in), 0);
	assert_int_equal(p->nr_counts, nr);
	return p;
}

static struct profile *assembled(const struct tables *t, const struct history_cell *counts,
				 uint32_t nr)
{
	return assembled_as(t, counts, nr, FRAMES_LANGUAGE);
}

/* A profile starts with the room that the last one needed: more and fewer functions fit too. */
TEST(test_sizes_of_last)
{
	static const uint32_t nr[] = { 200, 300, 100, 100 };
	struct assemble_sizes sizes = { 0 };
	uint32_t places[300];
	struct tables t;

	tables_init(&t);
	for (uint32_t i = 0; i < ARRAY_SIZE(places); i++)
		places[i] = places_intern(t.places, OBJECT_ID_UNKNOWN, 16ULL * i);
	for (uint32_t i = 0; i < ARRAY_SIZE(nr); i++) {
		const struct history_cell cell = { .stack = stacks_intern(t.stacks, places, nr[i]),
						   .count = 1,
						   .weight = 1 };
		struct assemble_input in = input_of(&t, &cell, 1);
		struct profile *p = xcalloc(1, sizeof(*p));

		in.sizes = &sizes;
		assert_int_equal(assemble(p, &in), 0);
		assert_int_equal(p->nr_functions, nr[i]);
		assert_int_equal(p->nr_frames, nr[i]);
		for (uint32_t k = 0; k < nr[i]; k++)
			assert_int_equal(p->functions[p->frames[k]].id, ASSEMBLE_PLACE | places[k]);
		assert_int_equal(sizes.functions, nr[i]);
		assert_int_equal(sizes.frames, nr[i]);
		assert_int_equal(sizes.shown, nr[i]);
		/* The third has the room of the second. */
		if (i == 2) {
			assert_in_range(malloc_usable_size(p->functions),
					300 * sizeof(*p->functions), SIZE_MAX);
			assert_in_range(malloc_usable_size(p->frames), 300 * sizeof(*p->frames),
					SIZE_MAX);
		}
		profile_free(p);
	}
	tables_fini(&t);
}

static uint32_t file_of(struct tables *t, const char *path)
{
	const struct object_identity identity = {
		.kind = OBJECT_FILE, .maj = 1, .min = 2, .ino = 1000 + strlen(path)
	};

	return objects_intern(t->objects, &identity, path, strlen(path), PID_A, 0x1000, 0x2000)->id;
}

static uint32_t stack_of(struct tables *t, uint32_t nr, const uint32_t *places)
{
	uint32_t id = stacks_intern(t->stacks, places, nr);

	assert_int_not_equal(id, STACK_NONE);
	return id;
}

/* The function of frame @frame of cell @cell. */
static const struct profile_function *function_at(const struct profile *p, uint32_t cell,
						  uint32_t frame)
{
	const struct profile_stack *s = &p->stacks[p->counts[cell].stack];

	assert_true(frame < s->nr && s->first + s->nr <= p->nr_frames);
	return &p->functions[p->frames[s->first + frame]];
}

static uint32_t t_task_of(struct tables *t, pid_t pid, pid_t tid)
{
	struct maps_hit hit;

	maps_find(t->maps, maps_tasks(t->maps), pid, tid, 5000, &hit);
	assert_int_not_equal(hit.task, TASK_UNKNOWN);
	return hit.task;
}

TEST(test_nothing)
{
	struct tables t;
	struct profile *p;

	tables_init(&t);
	p = assembled(&t, NULL, 0);
	assert_int_equal(p->nr_functions + p->nr_processes + p->nr_tasks + p->nr_stacks +
				 p->nr_frames,
			 0);
	profile_free(p);
	tables_fini(&t);
}

TEST(test_places_without_symbols)
{
	struct tables t;
	uint32_t places[3];
	struct history_cell cell = { .count = 2, .weight = 20 };
	const struct profile_function *f;
	struct profile *p;

	tables_init(&t);
	places[0] = places_intern(t.places, OBJECT_ID_KERNEL, KERNEL_ADDRESS);
	places[1] = places_intern(t.places, file_of(&t, "/usr/lib/libfoo.so"), 0x1234);
	places[2] = places_intern(t.places, OBJECT_ID_UNKNOWN, 0x7fff00001000);
	cell.stack = stack_of(&t, 3, places);
	p = assembled(&t, &cell, 1);
	/* All names are the profile's own by now. */
	tables_fini(&t);

	assert_int_equal(p->nr_functions, 3);
	assert_int_equal(p->nr_frames, 3);
	f = function_at(p, 0, 0);
	assert_string_equal(f->name.str, "0xfffffffffffff123");
	assert_string_equal(f->module.str, "[kernel]");
	assert_true(f->kind == '?' && f->kernel);
	f = function_at(p, 0, 1);
	assert_string_equal(f->name.str, "libfoo.so+0x1234");
	assert_string_equal(f->module.str, "libfoo.so");
	assert_int_equal(f->id, ASSEMBLE_PLACE | places[1]);
	assert_true(f->kind == '?' && !f->kernel);
	assert_int_equal(f->name.size, strlen(f->name.str));
	f = function_at(p, 0, 2);
	assert_string_equal(f->name.str, "0x7fff00001000");

	assert_int_equal(p->nr_modules, 3);
	assert_string_equal(p->modules[0].name.str, "[unknown]");
	assert_int_equal(p->modules[0].state, PROFILE_MODULE_FAILED);
	assert_string_equal(p->modules[1].name.str, "[kernel]");
	assert_string_equal(p->modules[2].path.str, "/usr/lib/libfoo.so");
	assert_int_equal(p->modules[2].state, PROFILE_MODULE_LOADING);
	assert_string_equal(p->modules[2].reason, "still loading");
	assert_int_equal(function_at(p, 0, 0)->module_index, 1);
	assert_int_equal(function_at(p, 0, 1)->module_index, 2);
	assert_int_equal(function_at(p, 0, 2)->module_index, 0);
	assert_true(function_at(p, 0, 1)->unnamed);
	assert_string_equal(function_at(p, 0, 1)->reason, "still loading");
	/* Names that were not searched yet are not missing. */
	assert_true(p->window_samples == 2);
	assert_true(p->window_unnamed == 0);
	profile_free(p);
}

/* Samples of a stack that is not kept have no function, and are counted as such. */
TEST(test_stacks_not_kept)
{
	struct tables t;
	uint32_t place;
	struct history_cell cells[2] = { { .count = 2, .weight = 20 },
					 { .stack = STACK_NONE, .count = 3, .weight = 30 } };
	struct profile *p;

	tables_init(&t);
	place = places_intern(t.places, OBJECT_ID_KERNEL, KERNEL_ADDRESS);
	cells[0].stack = stack_of(&t, 1, &place);
	p = assembled(&t, cells, 2);
	assert_true(p->window_samples == 5 && p->window_no_stack == 3);
	profile_free(p);
	p = assembled(&t, cells, 1);
	assert_true(p->window_samples == 2 && p->window_no_stack == 0);
	profile_free(p);
	tables_fini(&t);
}

static uint32_t script_place(struct tables *t)
{
	const struct code_key key = { .process = 1, .address = 0x1000 };
	const struct code_text text = {
		.language = LANG_PYTHON,
		.name = "Cart.total",
		.name_size = 10,
		.file = "/srv/shop.py",
		.file_size = 12,
		.first_line = 7,
	};
	const struct lang_frame frame = {
		.code = script_functions_add(symbols_codes(t->symbols), &key, &text),
		.instr = LANG_NO_INSTR,
	};

	assert_int_not_equal(frame.code, CODE_NONE);
	return places_intern(t->places, symbols_script(t->symbols), lang_place(&frame));
}

/* Expect the frames of both stacks, by name. */
static void expect_frames(const struct tables *t, const struct history_cell counts[2],
			  enum profile_frames frames, const char *const expected[5])
{
	struct profile *p = assembled_as(t, counts, 2, frames);
	uint32_t nr = 0;

	for (; expected[nr]; nr++) {
		assert_true(nr < p->stacks[p->counts[0].stack].nr);
		assert_string_equal(function_at(p, 0, nr)->name.str, expected[nr]);
	}
	assert_int_equal(p->stacks[p->counts[0].stack].nr, nr);
	/* Without code of a language there is nothing to fold away, nor to leave out. */
	assert_int_equal(p->stacks[p->counts[1].stack].nr, 2);
	profile_free(p);
}

/* A C extension called by a function of a script: libfoo.so, loop, Cart.total, main. */
TEST(test_frames_of_languages)
{
	struct tables t;
	uint32_t places[4];
	struct history_cell counts[2] = { { .count = 1 }, { .count = 1 } };

	tables_init(&t);
	places[0] = places_intern(t.places, file_of(&t, "/usr/lib/libfoo.so"), 1);
	places[1] = places_intern(t.places, file_of(&t, "/usr/bin/python3"), 2);
	places[2] = script_place(&t);
	places[3] = places_intern(t.places, file_of(&t, "/usr/bin/python3"), 3);
	atomic_store(&objects_at(t.objects, file_of(&t, "/usr/bin/python3"))->interpreter, true);
	counts[0].stack = stack_of(&t, 4, places);
	counts[1].stack = stack_of(&t, 2, places);
	symbols_run(t.symbols);
	expect_frames(&t, counts, FRAMES_LANGUAGE,
		      (const char *[5]){ "libfoo.so+0x1", "Cart.total" });
	expect_frames(&t, counts, FRAMES_BOTH,
		      (const char *[5]){ "libfoo.so+0x1", "python3+0x2", "Cart.total",
					 "python3+0x3" });
	expect_frames(&t, counts, FRAMES_NATIVE,
		      (const char *[5]){ "libfoo.so+0x1", "python3+0x2", "python3+0x3" });
	tables_fini(&t);
}

/* The functions by which a program begins are shown, also of one that is an interpreter. */
TEST(test_begin_of_interpreter)
{
	struct tables t;
	const struct place *place;
	struct symbol symbol = { .kind = 'u' };

	tables_init(&t);
	place = places_at(t.places, places_intern(t.places, file_of(&t, "/usr/bin/python3"), 2));
	atomic_store(&objects_at(t.objects, place->object)->interpreter, true);
	for (size_t i = 0; i < 4; i++) {
		const struct assemble_input in = { .objects = t.objects };
		const char *name = (const char *[]){ "_start", "main", "mainly", "main" }[i];

		symbol.name.str = name;
		symbol.name.size = (uint32_t)strlen(name);
		symbol.made_up = i == 3;
		assert_int_equal(assemble_frame_of(&in, place, &symbol),
				 i < 2 ? ASSEMBLE_OTHER : ASSEMBLE_INTERPRETER);
	}
	assert_int_equal(assemble_frame_of(&(struct assemble_input){ .objects = t.objects }, place,
					   NULL),
			 ASSEMBLE_INTERPRETER);
	tables_fini(&t);
}

static uint32_t made_place(struct tables *t, uint64_t at)
{
	const struct object_identity made = { .kind = OBJECT_ANON, .owner = 1 };

	return places_intern(t->places,
			     objects_intern(t->objects, &made, "[anon]", 6, PID_A, 0, 0x2000)->id,
			     at);
}

/* Code of the interpreter's compiler works for its function; that of a library does not. */
TEST(test_code_of_languages)
{
	struct tables t;
	uint32_t places[5];
	struct history_cell counts[2] = {
		{ .count = 1, .weight = 10, .task = TASK_UNKNOWN },
		{ .count = 2, .weight = 20, .task = TASK_UNKNOWN },
	};
	struct profile_annotate a = { 0 };
	struct listing_lines lines;
	struct assemble_input in;
	struct profile *p;

	tables_init(&t);
	places[0] = made_place(&t, 1);
	places[1] = made_place(&t, 4096);
	places[2] = script_place(&t);
	places[3] = places_intern(t.places, file_of(&t, "/usr/bin/python3"), 3);
	atomic_store(&objects_at(t.objects, file_of(&t, "/usr/bin/python3"))->interpreter, true);
	counts[0].stack = stack_of(&t, 4, places);
	places[4] = places[3];
	places[3] = places[2];
	places[2] = places_intern(t.places, file_of(&t, "/usr/lib/libfoo.so"), 1);
	counts[1].stack = stack_of(&t, 5, places);
	symbols_run(t.symbols);
	p = assembled_as(&t, counts, 2, FRAMES_LANGUAGE);
	assert_int_equal(p->stacks[p->counts[0].stack].nr, 1);
	assert_string_equal(function_at(p, 0, 0)->name.str, "Cart.total");
	assert_int_equal(p->stacks[p->counts[1].stack].nr, 4);
	profile_free(p);
	in = (struct assemble_input){ .counts = counts,
				      .nr_counts = 2,
				      .stacks = t.stacks,
				      .places = t.places,
				      .symbols = t.symbols,
				      .maps = t.maps,
				      .objects = t.objects };
	a.function = atomic_load(&places_at(t.places, places[3])->symbol);
	assert_int_equal(annotate_lines(&a, &in, &lines), 0);
	assert_true(a.nr_points == 1 && a.points[0].count == 1 && a.points[0].total == 30);
	free(a.points);
	tables_fini(&t);
}

/* Lines of Cart.total: in the function, through the interpreter, and in calls. */
TEST(test_lines_of_languages)
{
	struct tables t;
	struct listing_lines lines;
	struct profile_annotate a = { 0 };
	struct assemble_input in;
	uint32_t places[4], file;
	struct history_cell counts[4] = {
		{ .count = 1, .weight = 10, .task = TASK_UNKNOWN },
		{ .count = 2, .weight = 20, .task = TASK_UNKNOWN },
		{ .count = 4, .weight = 40, .task = TASK_UNKNOWN },
		{ .count = 8, .weight = 80, .task = TASK_UNKNOWN },
	};

	tables_init(&t);
	file = file_of(&t, "/usr/bin/python3");
	atomic_store(&objects_at(t.objects, file)->interpreter, true);
	places[0] = places_intern(t.places, file_of(&t, "/usr/lib/libfoo.so"), 1);
	places[1] = places_intern(t.places, file, 2);
	places[2] = script_place(&t);
	places[3] = places_intern(t.places, file, 3);
	counts[0].stack = stack_of(&t, 3, places + 1); /* the interpreter works for it */
	counts[1].stack = stack_of(&t, 4, places);     /* it calls a library */
	counts[2].stack = stack_of(&t, 2, places + 2);
	counts[3].stack = stack_of(&t, 2, places); /* not in it */
	symbols_run(t.symbols);
	in = (struct assemble_input){
		.counts = counts,
		.nr_counts = 4,
		.stacks = t.stacks,
		.places = t.places,
		.symbols = t.symbols,
		.maps = t.maps,
		.objects = t.objects,
	};
	a.function = atomic_load(&places_at(t.places, places[2])->symbol);
	assert_true(annotate_lines_has(symbols_at(t.symbols, a.function)));
	assert_false(annotate_lines_has(
		symbols_at(t.symbols, atomic_load(&places_at(t.places, places[0])->symbol))));
	assert_int_equal(annotate_lines(&a, &in, &lines), 0);
	assert_int_equal(a.nr_points, 1);
	assert_int_equal(a.points[0].vaddr, 7);
	assert_true(a.points[0].count == 5 && a.points[0].weight == 50 && a.points[0].total == 70);
	assert_int_equal(lines.first, 7);
	assert_int_equal(lines.last, 7);
	assert_int_equal(lines.code, lang_place_code(places_at(t.places, places[2])->offset));
	free(a.points);
	tables_fini(&t);
}

/* Indices are handed out once for each id, and only for ids that the cells name. */
TEST(test_shared_ids)
{
	struct tables t;
	uint32_t object, a[2], b[2];
	struct history_cell counts[] = {
		{ .count = 1 },
		{ .count = 2, .event = 1 },
		{ .count = 4 },
	};
	struct profile *p;

	tables_init(&t);
	object = file_of(&t, "/bin/x");
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t place = places_intern(t.places, object, i);

		stack_of(&t, 1, &place);
	}
	a[0] = places_intern(t.places, object, 7);
	a[1] = b[1] = places_intern(t.places, object, 9);
	b[0] = places_intern(t.places, object, 11);
	counts[0].stack = counts[1].stack = stack_of(&t, 2, a);
	counts[2].stack = stack_of(&t, 2, b);
	p = assembled(&t, counts, 3);
	assert_int_equal(p->nr_stacks, 2);
	assert_int_equal(p->nr_frames, 4);
	assert_int_equal(p->nr_functions, 3);
	assert_int_equal(p->nr_tasks, 1);
	assert_int_equal(p->counts[0].stack, p->counts[1].stack);
	assert_int_equal(p->counts[1].event, 1);
	assert_ptr_equal(function_at(p, 0, 1), function_at(p, 2, 1));
	assert_string_equal(function_at(p, 2, 0)->name.str, "x+0xb");
	assert_true(p->counts[2].count == 4);
	profile_free(p);
	tables_fini(&t);
}

/* Cells are in order of stack, in whatever order they were given; equal ones keep their order. */
TEST(test_order)
{
	struct history_cell counts[100];
	struct tables t;
	struct profile *p;
	uint32_t object, ids[10];

	tables_init(&t);
	object = file_of(&t, "/bin/x");
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t place = places_intern(t.places, object, i);

		ids[i] = stack_of(&t, 1, &place);
	}
	for (uint32_t i = 0; i < 100; i++)
		counts[i] = (struct history_cell){ ids[i * 7 % 10], TASK_UNKNOWN, 0, i, 2 * i };
	p = assembled(&t, counts, 100);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t given = (uint32_t)p->counts[i].count;
		char name[16];

		snprintf(name, sizeof(name), "x+0x%x", given * 7 % 10);
		assert_string_equal(function_at(p, i, 0)->name.str, name);
		assert_true(p->counts[i].weight == 2 * given);
		if (i && p->counts[i].stack == p->counts[i - 1].stack)
			assert_true(p->counts[i].count > p->counts[i - 1].count);
		else if (i)
			assert_true(p->counts[i].stack > p->counts[i - 1].stack);
	}
	profile_free(p);
	tables_fini(&t);
}

/* Folded-away cells, and ids that the tables never gave out: counted, without frames. */
TEST(test_no_stack)
{
	struct tables t;
	const struct history_cell counts[] = {
		{ STACK_NONE, TASK_UNKNOWN, 0, 3, 30 },
		{ 12345, 999999, 0, 4, 40 },
		{ STACK_NONE - 1, COUNTS_TASKS_MAX - 1, 0, 5, 50 },
	};
	struct profile *p;
	double count = 0;

	tables_init(&t);
	p = assembled(&t, counts, ARRAY_SIZE(counts));
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		assert_int_equal(p->stacks[p->counts[i].stack].nr, 0);
		assert_in_range(p->counts[i].task, 0, p->nr_tasks - 1);
		assert_in_range(p->tasks[p->counts[i].task].process, 0, p->nr_processes - 1);
		assert_non_null(p->tasks[p->counts[i].task].comm.str);
		count += p->counts[i].count;
	}
	assert_true(count == 12);
	assert_int_equal(p->nr_frames, 0);
	profile_free(p);
	tables_fini(&t);
}

static const struct profile_task *find_task(const struct profile *p, pid_t tid)
{
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (p->tasks[i].tid == tid)
			return &p->tasks[i];
	fail_msg("no task %d", tid);
	return NULL;
}

TEST(test_processes)
{
	struct tables t;
	struct history_cell counts[3] = { { .count = 1 }, { .count = 2 }, { .count = 4 } };
	const struct profile_process *process;
	const struct profile_task *task;
	struct profile *p;

	tables_init(&t);
	maps_on_comm(t.maps, PID_A, PID_A, "alpha", 5, true, 1000);
	maps_on_fork(t.maps, PID_A, PID_A, THREAD_A, PID_A, 1100);
	maps_on_comm(t.maps, PID_A, THREAD_A, "wor\033ker", 7, false, 1200);
	maps_on_comm(t.maps, PID_B, PID_B, "beta", 4, true, 1300);
	maps_publish(t.maps, 2000, 1000000);
	for (uint32_t i = 0; i < 3; i++)
		counts[i].stack = STACK_NONE;
	/* The thread's task is first: its process shows as the main thread nevertheless. */
	counts[0].task = t_task_of(&t, PID_A, THREAD_A);
	counts[1].task = t_task_of(&t, PID_B, PID_B);
	counts[2].task = t_task_of(&t, PID_A, PID_A);

	p = assembled(&t, counts, 3);
	assert_int_equal(p->nr_tasks, 3);
	assert_int_equal(p->nr_processes, 2);
	task = find_task(p, THREAD_A);
	process = &p->processes[task->process];
	assert_int_equal(process->pid, PID_A);
	assert_string_equal(process->comm.str, "alpha");
	assert_null(strchr(task->comm.str, '\033'));
	assert_ptr_equal(&p->processes[find_task(p, PID_A)->process], process);
	assert_int_not_equal(p->processes[find_task(p, PID_B)->process].id, process->id);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(p->tasks[p->counts[i].task].id,
				 maps_task(t.maps, counts[i].task)->number);
	profile_free(p);

	/* The main thread of a pool of workers has no samples, and names the process. */
	p = assembled(&t, counts, 1);
	tables_fini(&t);
	assert_int_equal(p->nr_processes, 1);
	assert_int_equal(p->processes[0].pid, PID_A);
	assert_string_equal(p->processes[0].comm.str, "alpha");
	assert_string_not_equal(p->tasks[0].comm.str, "alpha");
	assert_true(p->processes[0].comm_is_old);
	profile_free(p);
}

/* A main thread that was never seen: the name of a worker is all there is. */
TEST(test_process_without_main_thread)
{
	struct tables t;
	struct history_cell count = { .count = 1, .stack = STACK_NONE };
	struct profile *p;

	tables_init(&t);
	maps_on_comm(t.maps, PID_A, THREAD_A, "worker", 6, false, 1200);
	maps_publish(t.maps, 2000, 1000000);
	count.task = t_task_of(&t, PID_A, THREAD_A);
	p = assembled(&t, &count, 1);
	tables_fini(&t);
	assert_string_equal(p->processes[0].comm.str, "worker");
	profile_free(p);
}

/* Names in this program for the loader to find. */
__attribute__((noinline, noclone)) static int sample_me(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3;
}

static uint32_t place_of_code(struct tables *t, const void *code)
{
	struct maps_hit hit;
	const struct mapping *m;
	uint64_t address = (uintptr_t)code;

	maps_find(t->maps, maps_tasks(t->maps), getpid(), getpid(), time_now_ns(), &hit);
	assert_non_null(hit.space);
	m = space_find(hit.space, address, time_now_ns());
	assert_non_null(m);
	return places_intern(t->places, m->object->id, address - m->start + m->offset);
}

/* The view was opened on an address; by now it is known to be code of sample_me(). */
TEST(test_annotate_follows_the_name)
{
	struct annotate an = { .in = { SYMBOL_NONE, SYMBOL_NONE }, .replay = true };
	struct places *next;
	struct tables t;
	struct profile *p = xcalloc(1, sizeof(*p));
	struct history_cell cell = { .count = 3, .weight = 3 };
	struct assemble_input in;
	uint32_t place;

	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	place = place_of_code(&t, (const char *)(uintptr_t)sample_me);
	cell.stack = stack_of(&t, 1, &place);
	in = input_of(&t, &cell, 1);
	atomic_init(&an.function, ASSEMBLE_PLACE | place);
	annotate_fill(&an, t.symbols, p, &in);
	assert_non_null(p->annotate->why);
	assert_string_equal(p->annotate->name, "");
	profile_free(p);

	symbols_run(t.symbols);
	p = xcalloc(1, sizeof(*p));
	annotate_fill(&an, t.symbols, p, &in);
	assert_null(p->annotate->why);
	assert_int_equal(p->annotate->function, ASSEMBLE_PLACE | place);
	assert_string_equal(p->annotate->name, "sample_me");
	assert_non_null(p->annotate->listing);
	assert_int_equal(p->annotate->nr_points, 1);
	assert_true(p->annotate->points[0].count == 3);
	profile_free(p);

	/* In the next table of places the id is that of another place. */
	assert_int_equal(places_new(&next, 64), 0);
	while (places_nr(next) <= place)
		places_intern(next, OBJECT_ID_KERNEL, places_nr(next));
	in.places = next;
	p = xcalloc(1, sizeof(*p));
	annotate_fill(&an, t.symbols, p, &in);
	assert_null(p->annotate->why);
	assert_string_equal(p->annotate->name, "sample_me");
	profile_free(p);
	places_free(next);
	tables_fini(&t);
}

/* The view is open while all samples of the function leave, and the function with them. */
TEST(test_annotate_forgotten)
{
	struct annotate an = { .in = { SYMBOL_NONE, SYMBOL_NONE }, .replay = true };
	struct profile *p = xcalloc(1, sizeof(*p));
	struct places_move *m;
	struct assemble_input in;
	struct places *next;
	struct tables t;
	uint32_t place;

	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	place = place_of_code(&t, (const char *)(uintptr_t)sample_me);
	symbols_run(t.symbols);
	in = (struct assemble_input){ .stacks = t.stacks,
				      .places = t.places,
				      .symbols = t.symbols,
				      .maps = t.maps,
				      .objects = t.objects };
	atomic_init(&an.function, atomic_load(&places_at(t.places, place)->symbol));
	annotate_fill(&an, t.symbols, p, &in);
	assert_null(p->annotate->why);
	profile_free(p);

	assert_int_equal(places_new(&next, 64), 0);
	m = symbols_begin_move(t.symbols, t.places, next);
	symbols_end_move(t.symbols, m);
	symbols_run(t.symbols);
	in.places = t.places = next;
	p = xcalloc(1, sizeof(*p));
	annotate_fill(&an, t.symbols, p, &in);
	assert_string_equal(p->annotate->why, "forgotten: no sample of the function is left");
	profile_free(p);
	tables_fini(&t);
}

/* Let process @pid have a function @made of 32 bytes at @start; return the place of its byte 8. */
static uint32_t place_made_by(struct tables *t, pid_t pid, uint64_t start)
{
	const struct object_identity id = { .kind = OBJECT_ANON, .owner = (uint64_t)pid };
	struct object *anon = objects_intern(t->objects, &id, "//anon", 6, pid, 0, 0);
	uint32_t place = places_intern(t->places, anon->id, start + 8);
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	map = fopen(path, "w");
	fprintf(map, "%" PRIx64 " 20 made\n", start);
	fclose(map);
	symbols_run(t->symbols);
	unlink(path);
	assert_string_equal(
		symbols_at(t->symbols, atomic_load(&places_at(t->places, place)->symbol))->name.str,
		"made");
	return place;
}

static struct profile *annotated(struct annotate *an, const struct tables *t,
				 const struct history_cell *cells, uint32_t nr)
{
	const struct assemble_input in = {
		.counts = cells,
		.nr_counts = nr,
		.stacks = t->stacks,
		.places = t->places,
		.symbols = t->symbols,
		.maps = t->maps,
		.objects = t->objects,
	};
	struct profile *p = xcalloc(1, sizeof(*p));

	annotate_fill(an, t->symbols, p, &in);
	assert_non_null(p->annotate->listing);
	return p;
}

/* Two processes have a function of one name: samples of one are never shown in the other's code. */
TEST(test_annotate_one_process)
{
	struct annotate an = { .in = { SYMBOL_NONE, SYMBOL_NONE }, .replay = true };
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)code;
	struct history_cell cells[2] = { { .count = 3, .weight = 3 }, { .count = 1, .weight = 1 } };
	uint32_t ours, theirs;
	char process[32];
	struct tables t;
	struct profile *p;
	pid_t child = fork();

	assert_true(child >= 0);
	/* Not for ever: an assertion may end the test before the child. */
	if (!child) {
		sleep(60);
		_exit(0);
	}
	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	assert_int_equal(maps_load(t.maps, child), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	ours = place_made_by(&t, getpid(), at);
	theirs = place_made_by(&t, child, at + 16);
	cells[0].stack = stack_of(&t, 1, &ours);
	cells[1].stack = stack_of(&t, 1, &theirs);
	for (int i = 0; i < 2; i++) {
		struct maps_hit hit;
		pid_t pid = i ? child : getpid();

		maps_find(t.maps, maps_tasks(t.maps), pid, pid, time_now_ns(), &hit);
		cells[i].task = hit.task;
	}
	atomic_init(&an.function, atomic_load(&places_at(t.places, ours)->symbol));
	p = annotated(&an, &t, cells, 2);
	assert_int_equal(p->annotate->listing->vaddr, at);
	assert_int_equal(p->annotate->nr_points, 1);
	assert_int_equal(p->annotate->points[0].vaddr, at + 8);
	snprintf(process, sizeof(process), "process %d", (int)getpid());
	assert_string_equal(p->annotate->inside, process);
	assert_true(p->annotate->inside_share > 0.74 && p->annotate->inside_share < 0.76);
	profile_free(p);

	/* It does not change while it has samples. */
	cells[1].weight = 9;
	p = annotated(&an, &t, cells, 2);
	assert_int_equal(p->annotate->listing->vaddr, at);
	assert_true(p->annotate->inside_share > 0.24 && p->annotate->inside_share < 0.26);
	profile_free(p);
	p = annotated(&an, &t, cells + 1, 1);
	assert_int_equal(p->annotate->listing->vaddr, at + 16);
	assert_int_equal(p->annotate->points[0].vaddr, at + 24);
	assert_string_equal(p->annotate->inside, "");
	profile_free(p);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(code, 4096);
	tables_fini(&t);
}

TEST(test_names_from_the_loader)
{
	const char *code = (const char *)(uintptr_t)sample_me;
	struct tables t;
	uint32_t places[3];
	struct history_cell cell = { .count = 1 };
	const struct profile_function *f;
	struct profile *p;

	assert_int_equal(sample_me(14), 42);
	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	places[0] = place_of_code(&t, code);
	places[1] = place_of_code(&t, code + 1);
	symbols_run(t.symbols);
	/* Not looked at yet. */
	places[2] = place_of_code(&t, code + 2);
	cell.stack = stack_of(&t, 3, places);
	p = assembled(&t, &cell, 1);
	symbols_run(t.symbols);
	profile_free(p);
	p = assembled(&t, &cell, 1);
	assert_int_equal(p->nr_frames, 3);
	assert_int_equal(p->nr_functions, 1);
	profile_free(p);

	cell.stack = stack_of(&t, 2, places);
	p = assembled(&t, &cell, 1);
	tables_fini(&t);
	assert_int_equal(p->nr_functions, 1);
	f = function_at(p, 0, 0);
	assert_ptr_equal(function_at(p, 0, 1), f);
	assert_string_equal(f->name.str, "sample_me");
	assert_true(f->kind == 'u' && !f->kernel && !(f->id & ASSEMBLE_PLACE));
	assert_non_null(strstr(f->module.str, "test_assemble"));
	assert_int_equal(p->nr_modules, 1);
	assert_int_equal(f->module_index, 0);
	assert_true(!f->unnamed && !f->reason);
	assert_int_equal(p->modules[0].state, PROFILE_MODULE_READY);
	assert_string_equal(p->modules[0].source, ".symtab");
	assert_string_equal(p->modules[0].reason, "with debug information");
	assert_true(p->modules[0].nr_symbols > 10);
	profile_free(p);
}

extern const char test_assemble_spot[];
enum { LINE_OF_SPOT = __LINE__ + 4, LINE_OF_CALL = __LINE__ + 9 };

static inline __attribute__((always_inline)) int inlined_one(int x)
{
	__asm__ volatile("nop\n.globl test_assemble_spot\ntest_assemble_spot: nop" : "+r"(x));
	return x + 1;
}
__attribute__((noinline, noclone)) static int caller_of_inlined(int x)
{
	return inlined_one(x) * 5;
}

/* One place of code, two functions of the source: the stack has both, with their lines. */
TEST(test_inlined)
{
	struct tables t;
	uint32_t places[2];
	struct history_cell cell = { .count = 1 };
	const struct profile_function *inner, *outer;
	const struct profile_line *line;
	struct profile *p;

	assert_int_equal(caller_of_inlined(1), 10);
	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	places[0] = place_of_code(&t, test_assemble_spot);
	places[1] = place_of_code(&t, (const char *)(uintptr_t)sample_me);
	symbols_run(t.symbols);
	cell.stack = stack_of(&t, 2, places);
	p = assembled(&t, &cell, 1);
	tables_fini(&t);
	assert_int_equal(p->nr_frames, 3);
	assert_int_equal(p->nr_functions, 3);
	inner = function_at(p, 0, 0);
	outer = function_at(p, 0, 1);
	assert_string_equal(inner->name.str, "inlined_one");
	assert_true(inner->inlined && !inner->unnamed && inner->kind == 'u');
	assert_string_equal(outer->name.str, "caller_of_inlined");
	assert_false(outer->inlined);
	assert_string_equal(function_at(p, 0, 2)->name.str, "sample_me");
	assert_int_equal(inner->module_index, outer->module_index);
	assert_non_null(p->frame_lines);
	line = &p->lines[p->frame_lines[0]];
	assert_int_equal(line->line, LINE_OF_SPOT);
	assert_non_null(strstr(p->files[line->file].str, "test_assemble.c"));
	line = &p->lines[p->frame_lines[1]];
	assert_int_equal(line->line, LINE_OF_CALL);
	assert_int_equal(p->nr_files, 1);
	assert_true(p->has_source);
	/* Both are at the sampled instruction. */
	assert_true(line->address > outer->start && line->address < outer->start + 64);
	assert_int_equal(p->lines[p->frame_lines[0]].address, line->address);
	assert_int_equal(p->lines[p->frame_lines[2]].address, function_at(p, 0, 2)->start);
	assert_in_range(line->address, p->modules[0].code[0].start, p->modules[0].code[0].end);
	profile_free(p);
}

/* Frames before the first one with a line have none; each stack has the frames of its places. */
TEST(test_lines_of_later_stacks)
{
	struct tables t;
	uint32_t places[41];
	struct history_cell cells[2] = { { .count = 1 }, { .count = 1 } };
	const struct profile_stack *first, *second;
	struct profile *p;

	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	for (uint32_t i = 0; i < 40; i++)
		places[i + 1] = places_intern(t.places, OBJECT_ID_UNKNOWN, 16ULL * i);
	places[0] = place_of_code(&t, test_assemble_spot);
	symbols_run(t.symbols);
	cells[0].stack = stack_of(&t, 40, places + 1);
	cells[1].stack = stack_of(&t, 41, places);
	p = assembled(&t, cells, 2);
	tables_fini(&t);
	first = &p->stacks[p->counts[0].stack];
	second = &p->stacks[p->counts[1].stack];
	assert_int_equal(first->first, 0);
	assert_int_equal(first->nr, 40);
	assert_int_equal(second->first, 40);
	assert_int_equal(second->nr, 42);
	assert_int_equal(p->nr_frames, 82);
	assert_non_null(p->frame_lines);
	for (uint32_t i = 0; i < p->nr_frames; i++)
		assert_int_equal(p->frame_lines[i] == PROFILE_NO_LINE, i != 40 && i != 41);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(p->frames[i], p->frames[42 + i]);
	profile_free(p);
}

#if defined(__x86_64__)
extern const char test_assemble_jump[], test_assemble_after[];
__asm__(".pushsection .text\n.type only_jumps, @function\n"
	"only_jumps: nop\ntest_assemble_jump: jmp sample_me\n.size only_jumps, . - only_jumps\n"
	".type calls_it, @function\ncalls_it: call only_jumps\ntest_assemble_after: ret\n"
	".size calls_it, . - calls_it\n.popsection");

/* A function that only jumps to the next one is a caller of that; sampled itself, it is there once.
 */
TEST(test_tail_call)
{
	struct tables t;
	uint32_t places[2][2];
	struct history_cell cells[2] = { { .count = 1 }, { .count = 1 } };
	struct profile *p;

	tables_init(&t);
	assert_int_equal(maps_load(t.maps, getpid()), 0);
	maps_publish(t.maps, time_now_ns(), UINT64_MAX);
	places[0][0] = place_of_code(&t, (const char *)(uintptr_t)sample_me);
	places[1][0] = place_of_code(&t, test_assemble_jump);
	places[0][1] = places[1][1] = place_of_code(&t, test_assemble_after - 1);
	symbols_run(t.symbols);
	for (int i = 0; i < 2; i++)
		cells[i].stack = stack_of(&t, 2, places[i]);
	p = assembled(&t, cells, 2);
	tables_fini(&t);
	assert_int_equal(p->nr_functions, 3);
	assert_int_equal(p->nr_frames, 5);
	assert_string_equal(function_at(p, 0, 0)->name.str, "sample_me");
	assert_string_equal(function_at(p, 0, 1)->name.str, "only_jumps");
	assert_string_equal(function_at(p, 0, 2)->name.str, "calls_it");
	assert_string_equal(function_at(p, 1, 0)->name.str, "only_jumps");
	assert_string_equal(function_at(p, 1, 1)->name.str, "calls_it");
	profile_free(p);
}
#endif

/*
 * Kinds of long waits: found in the stack, or known from /proc. In poll they are idle, in a lock
 * they are not; shorter ones never are.
 */
TEST(test_idle_waits)
{
	const struct object_identity identity = { .kind = OBJECT_WAIT };
	uint32_t wait_places[WAIT_NR], i = 0;
	struct history_cell cells[5] = { { .event = 0 } };
	struct tables t;
	struct profile *p;

	tables_init(&t);
	i = objects_intern(t.objects, &identity, "[wait]", 6, -1, 0, 0)->id;
	for (int k = WAIT_RUNNING; k < WAIT_NR; k++)
		wait_places[k] = places_intern(t.places, i, (uint64_t)k);
	for (i = 0; i < 5; i++) {
		static const enum wait_kind stacks[5][2] = { { WAIT_LONG, WAIT_POLL },
							     { WAIT_LONG, WAIT_LOCK },
							     { WAIT_POLL, WAIT_NO },
							     { WAIT_LONG, WAIT_NO },
							     { WAIT_KTHREAD, WAIT_NO } };
		const uint32_t places[] = { wait_places[stacks[i][0]],
					    wait_places[stacks[i][1] ? stacks[i][1] : WAIT_POLL] };

		cells[i].count = 1;
		cells[i].weight = 10;
		cells[i].stack = stack_of(&t, stacks[i][1] ? 2 : 1, places);
	}
	p = xcalloc(1, sizeof(*p));
	assert_int_equal(
		assemble(p,
			 &(struct assemble_input){
				 .counts = cells,
				 .nr_counts = 5,
				 .stacks = t.stacks,
				 .places = t.places,
				 .symbols = t.symbols,
				 .maps = t.maps,
				 .objects = t.objects,
				 .wait = places_at(t.places, wait_places[WAIT_POLL])->object,
				 .wait_places = wait_places }),
		0);
	assert_non_null(p->stack_waits);
	assert_non_null(p->stack_idle);
	for (i = 0; i < 5; i++) {
		static const struct {
			enum wait_kind kind;
			enum profile_idle idle;
		} want[5] = { { WAIT_POLL, PROFILE_IDLE },
			      { WAIT_LOCK, PROFILE_BUSY },
			      { WAIT_POLL, PROFILE_BUSY },
			      { WAIT_OTHER, PROFILE_BUSY },
			      { WAIT_KTHREAD, PROFILE_IDLE_KTHREAD } };
		uint32_t stack = p->counts[i].stack;

		assert_int_equal(p->stack_waits[stack], want[i].kind);
		assert_int_equal(p->stack_idle[stack], want[i].idle);
		assert_int_equal(p->stacks[stack].nr, 1);
	}
	profile_free(p);
	tables_fini(&t);
}

/* Fork a process that forks another one; both wait. Return the pid of the first, *@below: the
 * other.
 */
static pid_t fork_two(pid_t *below)
{
	int pipe_fds[2];
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pid = fork();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pid && write(pipe_fds[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipe_fds[0], below, sizeof(*below)), sizeof(*below));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return pid;
}

/* The tree of a command begins with it: not with proftop, and the shells that started that. */
TEST(test_ancestors)
{
	struct profile p = { .nr_processes = 1, .names = text_arena_new() };
	struct assemble_input in;
	struct maps_hit hit;
	struct tables t;
	pid_t below, pid = fork_two(&below);

	tables_init(&t);
	in = (struct assemble_input){ .maps = t.maps, .details = details_new(t.maps) };
	p.processes = xcalloc(1, sizeof(*p.processes));
	assert_int_equal(maps_load(t.maps, below), 0);
	maps_find(t.maps, maps_tasks(t.maps), below, below, time_now_ns(), &hit);
	p.processes[0] = (struct profile_process){ .id = maps_task(t.maps, hit.task)->process,
						   .pid = below };
	/* Each is known when it was requested. */
	for (int i = 0; i < 8; i++) {
		p.nr_ancestors = 0;
		free(p.ancestors);
		p.ancestors = NULL;
		assert_int_equal(processes_fill(&p, &in), 0);
		details_serve(in.details, 100);
	}
	assert_int_equal(p.processes[0].parent, pid);
	assert_int_equal(p.nr_ancestors, 1);
	assert_int_equal(p.ancestors[0].pid, pid);
	assert_int_equal(p.ancestors[0].parent, getpid());
	/* The other one may not have set its signal yet. */
	kill(below, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(p.processes);
	free(p.ancestors);
	text_arena_free(p.names);
	details_free(in.details);
	tables_fini(&t);
}

#define CHAINED 16384

static uint64_t fill_ns(bool chosen)
{
	struct profile p = { .nr_processes = CHAINED, .names = text_arena_new() };
	struct assemble_input in;
	uint64_t begin_ns;
	struct tables t;
	pid_t pid = 0;

	tables_init(&t);
	in = (struct assemble_input){ .maps = t.maps, .details = details_new(t.maps) };
	assert_non_null(in.details);
	p.processes = xcalloc(CHAINED, sizeof(*p.processes));
	for (uint32_t i = 0; i < CHAINED; i++)
		p.processes[i] = (struct profile_process){
			.id = i + 1, .pid = pid = unhash_pid(pid, 4 * CHAINED, 0, chosen)
		};
	begin_ns = time_thread_ns();
	assert_int_equal(processes_fill(&p, &in), 0);
	begin_ns = time_thread_ns() - begin_ns;
	free(p.processes);
	text_arena_free(p.names);
	details_free(in.details);
	tables_fini(&t);
	return begin_ns;
}

/* Processes with pids that hash_u64() has in one chain cost as much as others. */
TEST(test_chosen_pids)
{
	unhash_compare_pids("processes of a profile", fill_ns);
}

int main(void)
{
	int ret;

	urcu_qsbr_register_thread();
	ret = run_unit_tests(NULL, NULL);
	urcu_qsbr_unregister_thread();
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hotspots: sampled JVMs while they run and after their end.
 * Live: waits for threads or processes.
 */
#include "symbols/java/java.c"

#include "tests/prelude.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/script/internal.h"
#include "tests/makers/jvm_table.h"
#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/jit/jit.h"

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* A child with code that was sampled, and its entry; read once. */
static struct jvm_table_entry *sample_child(struct jvm_table *h, pid_t pid)
{
	const struct object_identity id = { .kind = OBJECT_ANON, .owner = 1 };
	struct object *memory_of =
		objects_intern(h->objects, &id, "//anon", 6, (uint32_t)pid, 4096, 8192);
	struct jvm_table_symbol symbol;
	struct jvm_table_entry *e;

	jvm_table_find(h, memory_of, 4096, &symbol);
	e = jvm_table_find_entry(h, memory_of);
	assert_non_null(e);
	e->wanted = true;
	jvm_table_refresh(h, time_now_ns());
	assert_true(e->runs);
	for (int i = 0; e->runs && i < 1000; i++) {
		usleep(10000);
		jvm_table_refresh(h, time_now_ns());
	}
	assert_false(e->runs);
	return e;
}

/* What was read of a process is kept while it runs, and its descriptors closed after its end. */
TEST(test_ended_process)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct jvm_table_entry *e;
	uint64_t now_ns, keep_ns;
	struct jvm_table h;
	int before;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	open_table(&h);
	keep_ns = h.keep_ns;
	assert_int_equal(helpers_new(&h.helpers, event), 0);
	before = count_descriptors();
	e = sample_child(&h, pid);
	/* The folder of the process, and its memory. */
	assert_int_equal(count_descriptors(), before + 2);
	/* no samples for a while */
	e->wanted = false;
	now_ns = time_now_ns() + 60000000000ULL;
	jvm_table_refresh(&h, now_ns);
	/* The folder of the process, and its memory. */
	assert_int_equal(count_descriptors(), before + 2);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	jvm_table_refresh(&h, now_ns + 60000000000ULL);
	assert_int_equal(count_descriptors(), before);
	assert_null(e->reading);
	/* Its code is freed ten minutes after its end was seen where recordings begin in the past.
	 */
	h.keep_ns = JITREADS_KEEP_NS;
	jvm_table_refresh(&h, now_ns + 659 * 1000000000ULL);
	assert_int_equal(h.nr_entries, 1);
	/* Else a minute. */
	h.keep_ns = keep_ns;
	jvm_table_refresh(&h, now_ns + 119 * 1000000000ULL);
	assert_int_equal(h.nr_entries, 1);
	jvm_table_refresh(&h, now_ns + 121 * 1000000000ULL);
	assert_int_equal(h.nr_entries, 0);
	assert_int_equal(helpers_free(h.helpers, time_now_ns() + 10000000000ULL), 0);
	close_table(&h);
	close(event);
}

/* A table full of processes that have ended makes room for the next one. */
TEST(test_room)
{
	struct jvm_table h;
	struct object *first = NULL;
	struct script_log_copy copy;
	struct script_functions *functions = script_functions_new();
	uint64_t last = 0;
	uint32_t nr = 0;

	(void)state;
	open_table(&h);
	assert_non_null(functions);
	h.log = codes_log(functions);
	for (uint32_t i = 0; i < JVM_TABLE_MAX + 2; i++) {
		const struct object_identity id = { .kind = OBJECT_ANON, .owner = i + 1 };
		struct object *o = objects_intern(h.objects, &id, "//anon", 6, 1, 4096, 8192);
		struct jvm_table_entry *e;

		/* The first one was sampled last. */
		atomic_store(&o->used, i ? i : JVM_TABLE_MAX);
		first = i ? first : o;
		e = jvm_table_add_entry(&h, o);
		/* All of the first ones run. */
		assert_true(e ? i != JVM_TABLE_MAX : i == JVM_TABLE_MAX);
		script_log_add(h.log, &(struct code_key){ .process = i + 1 },
			       &(struct code_text){ .language = LANG_JAVA });
		if (e)
			e->uid = i % 2;
		if (i < JVM_TABLE_MAX)
			continue;
		for (uint32_t k = 0; k < 2 && !e; k++) {
			jvm_read_job_drop(&h.entries[k]->reading->job);
			h.entries[k]->reading = NULL;
		}
	}
	assert_int_equal(h.nr_entries, JVM_TABLE_MAX);
	assert_non_null(jvm_table_find_entry(&h, first));
	/* Its code for recordings has left with it. */
	while (script_log_next(h.log, &last, &copy))
		nr++;
	assert_int_equal(nr, JVM_TABLE_MAX + 1);
	close_table(&h);
	script_functions_free(functions);
}

#define SECOND 1000000000ULL

static void end_now(struct job *job)
{
	(void)job;
}

/* A JVM that makes its reading expensive, or slow, is read seldom: a tenth of a CPU at most. */
TEST(test_rest)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct jvm_table_entry *e;
	struct jvm_table h;

	(void)state;
	open_table(&h);
	for (int rc = 0; rc >= -EFAULT; rc -= EFAULT) {
		e = add_read(&h, 1, 1000);
		e->began_ns = 95 * SECOND;
		e->reading->rc = rc;
		e->reading->scan = true;
		e->reading->scan_ns = 4 * SECOND;
		e->reading->cost_ns = 5 * SECOND;
		jvm_table_refresh(&h, 100 * SECOND);
		assert_in_range(e->due_ns, 110 * SECOND, 140 * SECOND);
		assert_in_range(e->scan_due_ns, 140 * SECOND, 160 * SECOND);
		h.nr_entries--;
		jvm_table_discount(&h, e);
		jvm_read_job_drop(&e->reading->job);
		jitcode_free(e->code);
		jitcode_free(e->methods);
		free(e->ranges);
		codemap_publish(objects_at(h.objects, e->object), NULL);
		codemap_reclaim(e->map);
		free(e);
	}
	/* It waits, and needs no CPU time. */
	e = add_read(&h, 1, 1000);
	e->began_ns = 50 * SECOND;
	jvm_table_refresh(&h, 100 * SECOND);
	assert_in_range(e->due_ns, 150 * SECOND, 150 * SECOND);
	/* One that is cheap is read as before. */
	e->runs = true;
	e->began_ns = 200 * SECOND - SECOND / 50;
	e->reading->scan = true;
	e->reading->scan_ns = SECOND / 100;
	e->reading->cost_ns = SECOND / 50;
	jvm_table_refresh(&h, 200 * SECOND);
	assert_in_range(e->due_ns, 200 * SECOND + SECOND / 10, 200 * SECOND + SECOND / 10);
	assert_in_range(e->scan_due_ns, 201 * SECOND, 201 * SECOND);
	/* After few addresses the next ones wait for more. */
	e->runs = true;
	e->began_ns = 210 * SECOND - SECOND / 50;
	e->reading->scan = false;
	e->reading->scan_ns = 0;
	e->reading->cost_ns = SECOND / 50;
	e->reading->pcs = calloc(1, sizeof(uint64_t));
	e->reading->nr_pcs = 1;
	jvm_table_refresh(&h, 210 * SECOND);
	assert_in_range(e->due_ns, 210 * SECOND + 4 * SECOND / 5, 210 * SECOND + 4 * SECOND / 5);
	/* Once, after a JVM was opened, its code is looked up at once. */
	e->runs = true;
	e->scanned_ns = 0;
	e->began_ns = 219 * SECOND;
	e->reading->scan = true;
	jvm_table_refresh(&h, 220 * SECOND);
	assert_in_range(e->due_ns, 220 * SECOND, 220 * SECOND);
	/* A cheap scan, which is due earlier, does not look up code. */
	e->reading->job.run = end_now;
	e->pcs = calloc(1, sizeof(*e->pcs));
	e->nr_pcs = e->max_pcs = 1;
	e->due_ns = 300 * SECOND;
	assert_int_equal(helpers_new(&h.helpers, event), 0);
	jvm_table_refresh(&h, 250 * SECOND);
	assert_true(e->runs);
	assert_int_equal(e->nr_pcs, 1);
	assert_true(helpers_wait(h.helpers, &e->reading->job, time_now_ns() + 10 * SECOND));
	assert_int_equal(e->reading->nr_pcs, 0);
	assert_int_equal(helpers_free(h.helpers, time_now_ns() + 10 * SECOND), 0);
	close(event);
	close_table(&h);
}

static atomic_bool is_open;

/* A reading that waits until it is allowed to end. */
static void wait_for_gate(struct job *job)
{
	while (!atomic_load(&is_open))
		usleep(1000);
	((struct jvm_read_job *)job)->rc = -ENODATA;
}

/* The JVMs of one user do not take all helpers, and each one is read in the end. */
TEST(test_turns)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct jvm_table_entry *e[40];
	struct jvm_table h;
	unsigned int nr[2] = { 0, 0 }, nr_tried = 0;

	(void)state;
	open_table(&h);
	assert_int_equal(helpers_new(&h.helpers, event), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++) {
		e[i] = add_read(&h, i + 1, i < 30 ? 1000 : 1001);
		e[i]->runs = false;
		e[i]->wanted = true;
		e[i]->reading->job.run = wait_for_gate;
	}
	jvm_table_refresh(&h, SECOND);
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++)
		nr[i / 30] += e[i]->runs;
	print_message("%u of 30 and %u of 10 are read\n", nr[0], nr[1]);
	assert_in_range(nr[0], 4, 6);
	assert_in_range(nr[1], 1, 8);
	assert_in_range(nr[0] + nr[1], 4, 8);
	/* Ones that hang keep their helpers. */
	jvm_table_refresh(&h, SECOND + 61 * SECOND);
	assert_int_equal(jvm_read_job_nr_left(), nr[0] + nr[1]);
	jvm_table_refresh(&h, SECOND + 62 * SECOND);
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++)
		assert_false(e[i]->runs);
	atomic_store(&is_open, true);
	for (int i = 0; nr_tried < ARRAY_SIZE(e) && i < 1000; i++) {
		usleep(10000);
		jvm_table_refresh(&h, 100 * SECOND + (uint64_t)i);
		nr_tried = 0;
		for (unsigned int k = 0; k < ARRAY_SIZE(e); k++)
			nr_tried += !e[k]->reading || e[k]->tries;
	}
	assert_int_equal(nr_tried, ARRAY_SIZE(e));
	assert_int_equal(jvm_read_job_nr_left(), 0);
	assert_int_equal(helpers_free(h.helpers, time_now_ns() + 10 * SECOND), 0);
	close_table(&h);
	close(event);
}

/* The JVMs of one user do not take all places. */
TEST(test_room_of_user)
{
	struct jvm_table h;
	uint32_t nr = 0;

	(void)state;
	open_table(&h);
	for (uint32_t i = 0; i <= JVM_TABLE_MAX; i++) {
		const struct object_identity id = { .kind = OBJECT_ANON, .owner = i + 1 };
		/* None with such a pid: all of one unknown user, then one of ours. */
		pid_t pid = i < JVM_TABLE_MAX ? 0x70000000 : getpid();
		struct object *o = objects_intern(h.objects, &id, "//anon", 6, pid, 4096, 8192);
		const struct jvm_table_entry *e = jvm_table_add_entry(&h, o);

		nr += e != NULL;
		assert_true(i < JVM_TABLE_MAX || (e && e->uid == geteuid()));
	}
	assert_int_equal(nr, JVM_TABLE_MAX / 4 * 3 + 1);
	close_table(&h);
}

#define EACH (20UL << 20)

/* The bytes of all JVMs are counted and have a limit, and one user does not take all of them. */
TEST(test_memory_of_all)
{
	struct jvm_table_entry *e[80];
	struct jvm_table h;
	unsigned int nr[2] = { 0, 0 };

	(void)state;
	open_table(&h);
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++) {
		e[i] = add_read(&h, i + 1, i < 40 ? 1000 : 1001);
		e[i]->reading->vm.memory = EACH;
	}
	jvm_table_refresh(&h, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++) {
		nr[i / 40] += !strcmp(reason_of(&h, e[i]), "");
		if (strcmp(reason_of(&h, e[i]), ""))
			assert_string_equal(reason_of(&h, e[i]), "code of JVMs takes too much "
								 "memory");
		assert_non_null(e[i]->reading);
	}
	print_message("%u and %u of 40 processes of 20 MiB\n", nr[0], nr[1]);
	assert_int_equal(nr[0], JVM_TABLE_USER_MEMORY / EACH);
	assert_int_equal(nr[0] + nr[1], JVM_TABLE_MEMORY_MAX / EACH);
	assert_in_range(atomic_load(&h.memory), JVM_TABLE_MEMORY_MAX - EACH, JVM_TABLE_MEMORY_MAX);
	/* Those that leave make room. */
	while (h.nr_entries) {
		h.nr_entries--;
		jvm_table_discount(&h, h.entries[h.nr_entries]);
	}
	assert_int_equal(atomic_load(&h.memory), 0);
	h.nr_entries = ARRAY_SIZE(e);
	close_table(&h);
}

/* A large JVM is below the limit of one process; one that invents names is not, and it says so. */
TEST(test_memory_of_one)
{
	struct jvm_table_entry *e;
	struct jvm_table h;
	uint32_t nr;

	(void)state;
	open_table(&h);
	e = add_read(&h, 1, 1000);
	e->runs = false;
	for (uint32_t version = 0; version < 2; version++) {
		make_code(e, 60000, 60, version);
		jvm_table_take_code(&h, e, 1 + version);
	}
	jvm_table_count(&h, e);
	print_message("60,000 methods, compiled twice: %.1f MiB, %.1f of them are read\n",
		      (double)e->memory / (1 << 20), (double)e->reading->vm.memory / (1 << 20));
	assert_string_equal(reason_of(&h, e), "");
	assert_int_equal(jitcode_nr(e->code), 120000);
	assert_in_range(e->reading->vm.memory, 1 << 20, JVM_READ_MEMORY_MAX / 3);
	for (uint32_t version = 2; version < 6; version++) {
		make_code(e, 50000, 500, version);
		jvm_table_take_code(&h, e, 1 + version);
	}
	assert_string_equal(reason_of(&h, e), "the JVM has too much code: some has no names");
	nr = jitcode_nr(e->code);
	jvm_table_take_code(&h, e, 99);
	assert_int_equal(jitcode_nr(e->code), nr);
	jvm_table_count(&h, e);
	print_message("with invented names: %.1f MiB\n", (double)e->memory / (1 << 20));
	assert_in_range(jitcode_memory(e->code), 1 << 20, JVM_TABLE_NAMES_MEMORY + (1 << 20));
	assert_in_range(e->memory, 1 << 20, 96 << 20);
	assert_int_equal(atomic_load(&h.memory), e->memory);
	close_table(&h);
}

/* Return address @i of the code that make_code() makes. */
static uint64_t address_in_code(uint32_t i)
{
	return (1ULL << 30) + i / 2048 * 4096 + i % 2048;
}

/* Make a JVM with code at the first @nr addresses. */
static struct jvm_table_entry *open_with_code(struct jvm_table *h, uint32_t nr)
{
	struct jvm_table_entry *e;

	open_table(h);
	e = add_read(h, 1, 1000);
	e->runs = false;
	make_code(e, nr / 2048 + 1, 60, 1);
	jvm_table_take_code(h, e, 1);
	return e;
}

/* A worker refuses a job with more chains, and then all of its names are missing. */
TEST(test_chains_wanted)
{
	const uint32_t nr = JVM_READ_WANTS_MAX + 1000;
	const int event = eventfd(0, EFD_CLOEXEC);
	struct jvm_table h;
	struct jvm_table_entry *e = open_with_code(&h, nr);
	const struct object *memory = objects_at(h.objects, e->object);

	(void)state;
	assert_int_equal(helpers_new(&h.helpers, event), 0);
	for (uint32_t i = 0; i < nr; i++)
		jvm_table_want_chain(&h, memory, address_in_code(i), i);
	assert_int_equal(e->nr_chains, JVM_READ_WANTS_MAX);
	assert_int_equal(helpers_free(h.helpers, time_now_ns() + 10 * SECOND), 0);
	close_table(&h);
	close(event);
}

/* Read @nr chains with the longest names; returns how many were kept. */
static uint32_t read_long_chains(struct jvm_read_job *r, uint32_t nr)
{
	uint32_t nr_kept = 0;

	r->chains = calloc(nr, sizeof(*r->chains));
	r->nr_chains = nr;
	assert_int_equal(jvm_read_job_begin_chains(r), 0);
	for (uint32_t i = 0; i < JVM_READ_FRAMES_MAX; i++) {
		memset(r->frames[i].name, 'x', sizeof(r->frames[i].name) - 1);
		memset(r->frames[i].file, 'y', sizeof(r->frames[i].file) - 1);
	}
	for (uint32_t i = 0; i < nr; i++) {
		r->chains[i].addr = address_in_code(i);
		jvm_read_job_add_chain(r, &r->chains[i], JVM_READ_FRAMES_MAX, true);
		nr_kept += r->chains[i].nr != 0;
	}
	return nr_kept;
}

/* The chains of one reading have a limit of bytes, and are counted until they are handed out. */
TEST(test_chains_memory)
{
	const uint32_t nr = 1000, each = JVM_READ_FRAMES_MAX * (JVM_READ_NAME_MAX + 64);
	struct jvm_table h;
	struct jvm_table_entry *e = open_with_code(&h, nr);
	struct jvm_table_chain chain;
	uint32_t nr_kept = read_long_chains(e->reading, nr), nr_taken = 0;
	size_t before;

	(void)state;
	assert_in_range(nr_kept * each, 7 << 20, 8 << 20);
	jvm_table_count(&h, e);
	before = e->memory;
	jvm_table_keep_chains(e, e->reading);
	jvm_table_count(&h, e);
	assert_in_range(e->memory - before, nr_kept * each, 9 << 20);
	assert_int_equal(atomic_load(&h.memory), e->memory);
	while (jvm_table_take_chain(&h, &chain))
		nr_taken++;
	assert_int_equal(nr_taken, nr_kept);
	jvm_table_count(&h, e);
	assert_in_range(e->memory - before, 0, 64 << 10); /* calls that they describe */
	close_table(&h);
}

/* A JVM with more calls that its code describes: the first ones are known. */
TEST(test_calls)
{
	const uint32_t nr = JVM_TABLE_CALLS_MAX + 1000;
	struct jvm_table h;
	struct jvm_table_entry *e = open_with_code(&h, nr);

	(void)state;
	for (uint32_t i = 0; i < nr; i++)
		jvm_table_take_call(e, address_in_code(i));
	assert_int_equal(e->nr_calls, JVM_TABLE_CALLS_MAX);
	assert_int_equal(e->calls[e->nr_calls - 1].pc, address_in_code(JVM_TABLE_CALLS_MAX - 1));
	close_table(&h);
}

/* Code, methods and chains for a recording, each once; cut ones are refused. */
TEST(test_kept)
{
	struct jvm_read_job_frame chain[] = { { "A.small", "A.java", 7 }, { "A.big", "", 0 } };
	const struct jvm_read_blob b = { .start = 4096,
					 .end = 8192,
					 .frame_words = 6,
					 .kind = JVM_READ_COMPILED,
					 .name = (char[]){ "A.big" } };
	struct script_functions *functions = script_functions_new();
	struct jvm_table_keeper k = { .untried = true,
				      .log = codes_log(functions),
				      .process = 3,
				      .time_ns = 99,
				      .memory = 4096,
				      .pid = 42 };
	struct jvm_read_job_frame *frames;
	struct jvm_table_kept kept;
	struct script_log_copy copy;
	struct code_text text;
	uint64_t last = 0;

	(void)state;
	jvm_table_keep_code(&k, &b);
	jvm_table_keep_code(&k, &b);
	jvm_table_keep_method(&k, 640, "A.small", 800, 12);
	jvm_table_keep_chain(
		&k, &(struct jvm_read_job_chain){
			    .addr = 5000, .layer = 1, .nr = 2, .exact = true, .frames = chain });
	assert_true(script_log_next(k.log, &last, &copy));
	text = copy.text;
	assert_int_equal(text.language, LANG_JAVA);
	assert_true(jvm_table_kept(&text, &kept));
	assert_int_equal(kept.end - kept.start, 4096);
	assert_int_equal(kept.flags, JVM_TABLE_KEPT_UNTRIED);
	assert_int_equal(kept.pid + kept.time_ns + kept.frame_words, 42 + 99 + 6);
	text.table_size--;
	assert_false(jvm_table_kept(&text, &kept));
	assert_true(script_log_next(k.log, &last, &copy));
	assert_true(jvm_table_kept(&copy.text, &kept));
	assert_int_equal(kept.start + kept.bytecodes_size, 640 + 12);
	assert_true(script_log_next(k.log, &last, &copy));
	text = copy.text;
	assert_true(jvm_table_kept(&text, &kept));
	frames = jvm_table_kept_frames(&text, &kept);
	assert_true(kept.flags & JVM_TABLE_KEPT_EXACT);
	assert_string_equal(frames[0].file, "A.java");
	assert_int_equal(frames[0].line, 7);
	assert_string_equal(frames[1].name, "A.big");
	assert_string_equal(frames[1].file, "");
	free(frames);
	text.table_size--;
	assert_true(jvm_table_kept(&text, &kept));
	assert_null(jvm_table_kept_frames(&text, &kept));
	assert_false(script_log_next(k.log, &last, &copy));
	script_functions_free(functions);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

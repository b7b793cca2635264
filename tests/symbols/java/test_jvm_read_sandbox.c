// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A JVM read in the sandbox: the same as without one; workers that were taken over, end, have
 * senseless questions or too many; readings that hang and are left.
 * Live: takes about a second of CPU time, or more.
 */
#include "symbols/java/jvm_read.c"
#include "symbols/java/java_sandbox.c"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>

#include "symbols/sandbox/sandbox.h"
#include "tests/makers/jvm.h"
#include "tests/jvm_sane.h"
#include "symbols/base/base.h"
#include "symbols/elf/internal.h"
#include "symbols/process/process.h"

#define NR_ROUNDS 2000U

/* How the workers behave: shared with them. */
enum mode {
	HONEST,
	CHANGED,
	DIES,
	NO_PIECES,
	MANY_PIECES,
	LARGE_PIECE,
	SHORT,
	ENDLESS,
	UNREADABLE
};
static struct shared {
	enum mode mode;
	uint32_t seed, nr_questions, nr_results;
	uint32_t nr_served; /* by the worker that served last */
	uint8_t got;	    /* of an unreadable piece */
	uint8_t bytes[8];
} * shared;

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Change the result, at its head more often than elsewhere. */
static void change(struct sandbox_reply *r)
{
	uint32_t seed = shared->seed, nr = 1 + next_random(&seed) % 4;

	for (uint32_t i = 0; i < nr && r->size; i++) {
		size_t at = next_random(&seed) % r->size;

		if (next_random(&seed) % 3 == 0 && r->size > sizeof(struct jvm_read_wire_result))
			at = r->size - sizeof(struct jvm_read_wire_result) + at % 32;
		r->bytes[at] = next_random(&seed) % 4 ? (uint8_t)next_random(&seed) : 0xff;
	}
	if (next_random(&seed) % 8 == 0)
		r->size = next_random(&seed) % (r->size + 1);
}

static void put_question(struct sandbox_call *c, uint32_t nr, uint32_t size, uint64_t addr,
			 uint32_t nr_addrs)
{
	const struct jvm_read_wire_ask ask = { nr, size };

	sandbox_put(&c->reply, &ask, sizeof(ask));
	for (uint32_t i = 0; i < nr_addrs; i++)
		sandbox_put(&c->reply, &addr, sizeof(addr));
}

/* Put the question of the mode. */
static int put_senseless(struct sandbox_call *c)
{
	switch (shared->mode) {
	case NO_PIECES:
		put_question(c, 0, 8, 0, 0);
		break;
	case MANY_PIECES:
		put_question(c, REMOTE_PIECES_MAX + 1, 8, 4096, REMOTE_PIECES_MAX + 1);
		break;
	case LARGE_PIECE:
		put_question(c, 2, JVM_READ_WIRE_SIZE, 4096, 2);
		break;
	case SHORT:
		put_question(c, 2, 8, 4096, 1);
		break;
	default:
		put_question(c, 1, 8, 4096, 1);
		break;
	}
	shared->nr_questions++;
	return sandbox_ask(c);
}

static int t_serve(struct sandbox_call *c)
{
	static uint32_t nr_served;
	int rc;

	shared->nr_served = ++nr_served;
	if (shared->mode == DIES)
		__builtin_trap();
	if (shared->mode == HONEST || shared->mode == CHANGED) {
		rc = jvm_read_readers[0].serve(c);
		shared->nr_results++;
		if (shared->mode == CHANGED)
			change(&c->reply);
		return rc;
	}
	do
		rc = put_senseless(c);
	while (!rc && shared->mode == ENDLESS);
	shared->got = ((const uint8_t *)c->request)[0];
	memcpy(shared->bytes, (const uint8_t *)c->request + 1, sizeof(shared->bytes));
	return -ENODATA;
}

static struct jvm_read_tables tables;

/* Make the JVM of most tests, and find its tables. */
static struct blob *make(struct jvm *j, uint8_t scopes[static 64])
{
	struct blob *b;

	jvm_init(j);
	vmstructs_want(tables.vars);
	elfvar_find(&j->elf, tables.vars, VMSTRUCTS_VARIABLES);
	tables.bias = j->bias;
	b = put_inlined(scopes, 64);
	put_blob(10, 2, "Interpreter", NULL, 0);
	put_blob(12, 2, "nmethod", &method_put, 9);
	return b;
}

/* Make a job with a chain, methods, and addresses to look up. */
static struct jvm_read_job *make_job(const struct blob *b, bool scan)
{
	struct jvm_read_job *j = jvm_read_job_new(getpid(), jvm_read_sandbox_run);

	assert_non_null(j);
	j->remote.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	j->scan = scan;
	j->nr_methods = 2;
	j->methods = calloc(2, sizeof(*j->methods));
	j->methods[0].method = (uintptr_t)&method_get;
	j->methods[1].method = 16;
	j->nr_chains = 2;
	j->chains = calloc(2, sizeof(*j->chains));
	j->chains[0].addr = (uintptr_t)b->begin + 17;
	j->chains[1].addr = 4096;
	return j;
}

static void check_same(const struct jvm_read_job *a, const struct jvm_read_job *b)
{
	assert_int_equal(a->vm.nr_blobs, b->vm.nr_blobs);
	assert_int_equal(a->vm.nr_new, b->vm.nr_new);
	assert_int_equal(a->vm.memory, b->vm.memory);
	assert_int_equal(a->vm.call_return, b->vm.call_return);
	assert_memory_equal(&a->vm.vm, &b->vm.vm, sizeof(a->vm.vm));
	for (uint32_t i = 0; i < a->vm.nr_blobs; i++) {
		struct jvm_read_blob x = a->vm.blobs[i], y = b->vm.blobs[i];

		assert_string_equal(x.name, y.name);
		assert_int_equal(x.start, y.start);
		assert_int_equal(x.end, y.end);
		assert_true(jvm_read_blobs_same(&x, &y));
		assert_int_equal(x.frame_words, y.frame_words);
		assert_int_equal(x.complete, y.complete);
		assert_int_equal(x.fresh, y.fresh);
		assert_int_equal(x.inlines, y.inlines);
		assert_int_equal(x.blind, y.blind);
		assert_int_equal(x.name_size, y.name_size);
	}
	for (uint32_t i = 0; i < a->nr_methods; i++) {
		assert_int_equal(a->methods[i].rc, b->methods[i].rc);
		assert_int_equal(a->methods[i].code_size, b->methods[i].code_size);
		assert_true(!a->methods[i].name == !b->methods[i].name);
		if (a->methods[i].name)
			assert_string_equal(a->methods[i].name, b->methods[i].name);
	}
	for (uint32_t i = 0; i < a->nr_chains; i++) {
		assert_int_equal(a->chains[i].nr, b->chains[i].nr);
		assert_int_equal(a->chains[i].exact, b->chains[i].exact);
		for (uint32_t k = 0; k < a->chains[i].nr; k++) {
			assert_string_equal(a->chains[i].frames[k].name,
					    b->chains[i].frames[k].name);
			assert_string_equal(a->chains[i].frames[k].file,
					    b->chains[i].frames[k].file);
			assert_int_equal(a->chains[i].frames[k].line, b->chains[i].frames[k].line);
		}
	}
}

/* A worker and the reader itself return the same. */
TEST(test_same)
{
	struct jvm_read_job *direct, *caged;
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes);

	shared->mode = HONEST;
	direct = make_job(b, true);
	caged = make_job(b, true);
	assert_int_equal(jvm_read_job_read(direct, &tables), 0);
	assert_int_equal(jvm_read_sandbox_read(caged, &tables), 0);
	assert_int_equal(caged->vm.nr_blobs, 3);
	assert_int_equal(caged->vm.nr_new, 3);
	assert_string_equal(caged->vm.blobs[0].name, "pkg.Class.get");
	assert_string_equal(caged->methods[0].name, "pkg.Class.get");
	assert_int_equal(caged->methods[1].rc, -EFAULT);
	assert_int_equal(caged->chains[0].nr, 2);
	check_same(direct, caged);
	/* Known code keeps its name and is not new; other code in its place is. */
	b->compile_id++;
	jvm_read_job_forget(direct);
	jvm_read_job_forget(caged);
	assert_int_equal(jvm_read_job_read(direct, &tables), 0);
	assert_int_equal(jvm_read_sandbox_read(caged, &tables), 0);
	assert_int_equal(caged->vm.nr_new, 1);
	assert_string_equal(caged->vm.blobs[2].name, "pkg.Class.put");
	check_same(direct, caged);
	assert_true(caged->worker_ns > 0);
	jvm_read_job_drop(&direct->job);
	jvm_read_job_drop(&caged->job);
	jvm_fini(&jvm);
}

/* A worker reads one JVM, as often as it is there: another JVM has another one. */
TEST(one_jvm)
{
	struct jvm_read_job *jobs[JVM_READ_READERS + 1];
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes);

	shared->mode = HONEST;
	for (uint32_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		jobs[i] = make_job(b, true);
		for (uint32_t k = 1; k <= 2; k++) {
			assert_int_equal(jvm_read_sandbox_read(jobs[i], &tables), 0);
			assert_int_equal(shared->nr_served, k);
			jvm_read_job_forget(jobs[i]);
		}
	}
	/* There is one more than workers: the one that was read last has its worker, not the first.
	 */
	assert_int_equal(jvm_read_sandbox_read(jobs[JVM_READ_READERS], &tables), 0);
	assert_int_equal(shared->nr_served, 3);
	assert_int_equal(jvm_read_sandbox_read(jobs[0], &tables), 0);
	assert_int_equal(shared->nr_served, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		jvm_read_sandbox_end(jobs[i]);
		jvm_read_job_drop(&jobs[i]->job);
	}
	jvm_fini(&jvm);
}

/* Code that is looked up takes its place among the known one. */
TEST(test_look_up)
{
	struct jvm_read_job *direct, *caged;
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes), *later;

	shared->mode = HONEST;
	direct = make_job(b, true);
	caged = make_job(b, true);
	assert_int_equal(jvm_read_job_read(direct, &tables), 0);
	assert_int_equal(jvm_read_sandbox_read(caged, &tables), 0);
	later = put_blob(20, 2, "nmethod", &method_put, 11);
	for (int i = 0; i < 2; i++) {
		struct jvm_read_job *j = i ? caged : direct;

		jvm_read_job_forget(j);
		j->scan = false;
		j->nr_pcs = 3;
		j->pcs = malloc(3 * sizeof(*j->pcs));
		j->pcs[0] = (uintptr_t)later->begin + 1;
		j->pcs[1] = (uintptr_t)b->begin + 1; /* known */
		j->pcs[2] = 4096;		     /* nowhere */
	}
	assert_int_equal(jvm_read_job_read(direct, &tables), 0);
	assert_int_equal(jvm_read_sandbox_read(caged, &tables), 0);
	assert_int_equal(caged->vm.nr_blobs, 4);
	assert_int_equal(caged->vm.nr_new, 1);
	check_same(direct, caged);
	jvm_read_job_drop(&direct->job);
	jvm_read_job_drop(&caged->job);
	jvm_fini(&jvm);
}

/* Changed results are refused or harmless. */
TEST(test_changed)
{
	uint32_t nr_refused = 0;
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes);

	for (uint32_t i = 0; i < NR_ROUNDS; i++) {
		struct jvm_read_job *j = make_job(b, true);

		j->id = 1; /* one worker for all */
		shared->mode = CHANGED;
		shared->seed = i;
		nr_refused += jvm_read_sandbox_read(j, &tables) != 0;
		assert_true(jvm_is_sane(j));
		jvm_read_job_drop(&j->job);
	}
	print_message("%u of %u results were refused\n", nr_refused, NR_ROUNDS);
	assert_in_range(nr_refused, NR_ROUNDS / 10, NR_ROUNDS - 10);
	jvm_fini(&jvm);
}

/* Questions that make no sense end the reading, and their worker. */
TEST(test_questions)
{
	static const struct {
		enum mode mode;
		int rc;
	} cases[] = {
		{ NO_PIECES, -EBADMSG }, { MANY_PIECES, -EBADMSG }, { LARGE_PIECE, -EBADMSG },
		{ SHORT, -EBADMSG },	 { ENDLESS, -E2BIG },	    { DIES, -EPIPE },
	};
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct jvm_read_job *j = make_job(b, true);

		shared->mode = cases[i].mode;
		shared->nr_questions = 0;
		j->remote.nr_reads_max = 1000;
		assert_int_equal(jvm_read_sandbox_read(j, &tables), cases[i].rc);
		assert_int_equal(shared->nr_questions,
				 cases[i].mode == ENDLESS ? 1001 : cases[i].mode != DIES);
		/* The next reading has a new worker. */
		shared->mode = HONEST;
		j->remote.nr_reads_max = JVM_READ_READS_MAX;
		j->remote.nr_reads = 0;
		assert_int_equal(jvm_read_sandbox_read(j, &tables), 0);
		assert_int_equal(j->vm.nr_blobs, 3);
		jvm_read_job_drop(&j->job);
	}
	jvm_fini(&jvm);
}

/* Bytes that cannot be read are zero for the worker. */
TEST(test_unreadable)
{
	uint8_t scopes[64];
	struct jvm jvm;
	struct jvm_read_job *j = make_job(make(&jvm, scopes), true);

	shared->mode = UNREADABLE;
	memset(shared->bytes, 1, sizeof(shared->bytes));
	shared->got = 1;
	assert_int_equal(jvm_read_sandbox_read(j, &tables), -ENODATA);
	assert_int_equal(shared->got, 0);
	for (size_t i = 0; i < sizeof(shared->bytes); i++)
		assert_int_equal(shared->bytes[i], 0);
	jvm_read_job_drop(&j->job);
	jvm_fini(&jvm);
}

#define LINE	  8U
#define LINES_MAX 4096U

/* Memory in small lines, as far as it was fetched. */
static struct {
	uint64_t lines[LINES_MAX], late[LINES_MAX];
	uint32_t nr, nr_late, nr_rounds;
} fetched;

static bool has_line(uint64_t line)
{
	for (uint32_t i = 0; i < fetched.nr; i++)
		if (fetched.lines[i] == line)
			return true;
	return false;
}

/* Read lines of this process that were fetched; defer the others. */
static int read_lines(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	bool has = true;

	for (uint64_t at = addr / LINE; at <= (addr + size - 1) / LINE; at++) {
		if (has_line(at))
			continue;
		assert_true(fetched.nr_late < LINES_MAX);
		fetched.late[fetched.nr_late++] = at;
		has = false;
	}
	if (!has) {
		*(bool *)(uintptr_t)&r->missed = true;
		return -EAGAIN;
	}
	memcpy(buf, (const void *)(uintptr_t)addr, size);
	return 0;
}

static int fetch_lines(struct remote *r)
{
	(void)r;
	for (uint32_t i = 0; i < fetched.nr_late; i++) {
		assert_true(fetched.nr < LINES_MAX);
		fetched.lines[fetched.nr++] = fetched.late[i];
	}
	fetched.nr_late = 0;
	fetched.nr_rounds++;
	return 0;
}

static struct jvm_read_frame frames[JVM_READ_FRAMES_MAX];
static uint64_t chain_pc;
static int nr_frames;

static int t_read_chain(void *of, uint32_t i)
{
	const struct jvm_read_job *j = of;
	bool exact;

	(void)i;
	nr_frames = jvm_read_chain(&j->vm, (struct remote *)(uintptr_t)&j->remote, chain_pc, frames,
				   &exact);
	return 0;
}

/* Count the rounds of reads of the chain at @pc. */
static uint32_t count_rounds(struct jvm_read_job *j, uint64_t pc, int nr)
{
	memset(&fetched, 0, sizeof(fetched));
	chain_pc = pc;
	j->remote.read = read_lines;
	j->remote.fetch = fetch_lines;
	assert_int_equal(remote_for_each(&j->remote, 1, t_read_chain, j), 0);
	assert_int_equal(nr_frames, nr);
	j->remote.read = NULL;
	j->remote.fetch = NULL;
	return fetched.nr_rounds;
}

/* Reads that do not depend on each other are deferred together: of all inlined methods. */
TEST(test_rounds)
{
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes);
	struct jvm_read_job *j = make_job(b, true);
	uint32_t one, two;

	assert_int_equal(jvm_read_job_read(j, &tables), 0);
	one = count_rounds(j, (uintptr_t)b->begin + 15, 1);
	assert_string_equal(frames[0].name, "pkg.Class.get");
	two = count_rounds(j, (uintptr_t)b->begin + 17, 2);
	assert_string_equal(frames[0].name, "pkg.Class.put");
	assert_string_equal(frames[1].name, "pkg.Class.get");
	assert_string_equal(frames[1].file, "Class.java");
	print_message("%u rounds for one method, %u for two\n", one, two);
	/* The scope of the other one, and the pointer to its method. */
	assert_int_equal(two, one + 2);
	jvm_read_job_drop(&j->job);
	jvm_fini(&jvm);
}

static sem_t begun, gate;

/* Read, once a test lets it: as of a process with memory of a file system that hangs. */
static int read_late(const struct remote *r, uint64_t addr, void *buf, size_t size)
{
	const struct remote now = { .fd = r->fd };

	sem_post(&begun);
	sem_wait(&gate);
	sem_post(&gate);
	return remote_read((struct remote[]){ now }, addr, buf, size);
}

static void *read_job(void *of)
{
	return (void *)(intptr_t)jvm_read_sandbox_read(of, &tables);
}

/* Readings that hang have all workers until they are left; then others have them. */
TEST(test_left)
{
	pthread_t threads[JVM_READ_READERS];
	struct jvm_read_job *hanging[JVM_READ_READERS], *j;
	uint8_t scopes[64];
	struct jvm jvm;
	struct blob *b = make(&jvm, scopes);
	void *rc;

	shared->mode = HONEST;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	for (uint32_t i = 0; i < JVM_READ_READERS; i++) {
		hanging[i] = make_job(b, true);
		hanging[i]->remote.read = read_late;
		assert_int_equal(pthread_create(&threads[i], NULL, read_job, hanging[i]), 0);
		sem_wait(&begun);
	}
	j = make_job(b, true);
	assert_int_equal(jvm_read_sandbox_read(j, &tables), -EAGAIN);
	jvm_read_sandbox_leave(hanging[3]);
	assert_int_equal(jvm_read_sandbox_read(j, &tables), 0);
	assert_int_equal(j->vm.nr_blobs, 3);
	/* The one that was left does not disturb others, and comes to nothing. */
	sem_post(&gate);
	for (uint32_t i = 0; i < JVM_READ_READERS; i++) {
		pthread_join(threads[i], &rc);
		assert_int_equal((intptr_t)rc, i == 3 ? -ESTALE : 0);
		assert_int_equal(hanging[i]->vm.nr_blobs, i == 3 ? 0 : 3);
		jvm_read_job_drop(&hanging[i]->job);
	}
	jvm_read_job_forget(j);
	assert_int_equal(jvm_read_sandbox_read(j, &tables), 0);
	jvm_read_job_drop(&j->job);
	jvm_fini(&jvm);
}

static int set_up(void **state)
{
	static const struct sandbox_reader *readers[SANDBOX_NR_KINDS];
	static struct sandbox_reader all[JVM_READ_READERS];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	for (uint32_t i = 0; i < JVM_READ_READERS; i++) {
		all[i] = jvm_read_readers[i];
		all[i].serve = t_serve;
		readers[SANDBOX_HOTSPOT + i] = &all[i];
	}
	return shared == MAP_FAILED ? -1 : sandbox_start(readers);
}

static int tear_down(void **state)
{
	sandbox_stop();
	return 0;
}

int main(void)
{
	return run_unit_tests(set_up, tear_down);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording that is read in the sandbox: the same as in this thread; answers that were changed at
 * random are refused or harmless; a reader that ends, or finds nothing, is a message; waiting for
 * one that hangs can be stopped.
 * Live: waits for threads or processes.
 */
#include "tests/sampler/perfdata/from_memory.h"

#include "tests/prelude.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler/perfdata/internal.h"
#include "symbols/sandbox/sandbox.h"

#define FILE_SIZE 32768
#include "tests/makers/perfdata.h"
#include "symbols/base/base.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"

#define NR_SAMPLES 300U
#define NR_ROUNDS  1000U

/* How the workers behave: shared with them. */
enum mode { HONEST, CHANGED, DIES, IDLE, WRITES, HANGS };
static struct shared {
	enum mode mode;
	uint32_t seed;
	int result; /* of a write to the file */
	uint32_t nr_closed;
} * shared;

/* Read before the sandbox: in this thread. */
static struct file file;
static uint64_t expected;

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Change the honest reply as a worker that was taken over may: bytes, its size. */
static void change(struct sandbox_reply *r)
{
	uint32_t nr = 1 + next_random(&shared->seed) % 4;
	bool high;

	for (uint32_t i = 0; i < nr && r->size; i++) {
		high = next_random(&shared->seed) % 2;
		r->bytes[next_random(&shared->seed) % r->size] =
			high ? 0xff : (uint8_t)next_random(&shared->seed);
	}
	if (next_random(&shared->seed) % 8 == 0 && r->size)
		r->size = next_random(&shared->seed) % r->size;
}

/* Answer that there is more, and nothing was found. */
static void find_nothing(struct sandbox_call *c)
{
	const struct perfdata_answer a = { .found.version = 1 };

	c->reply.size = 0;
	sandbox_put(&c->reply, &a, sizeof(a));
}

static int serve(struct sandbox_call *c)
{
	const struct perfdata_request *r = c->request;
	int rc;

	shared->nr_closed += r->call == PERFDATA_CLOSE;
	if (shared->mode == DIES && r->call == PERFDATA_MORE)
		__builtin_trap();
	while (shared->mode == HANGS && (r->call == PERFDATA_MORE || r->call == PERFDATA_FEED))
		__asm__ volatile("" ::: "memory");
	if (shared->mode == WRITES && r->call == PERFDATA_OPEN)
		shared->result = pwrite(c->fds[0], "", 1, 0) < 0 ? -errno : 0;
	rc = perfdata_readers[0].serve(c);
	if (!rc && shared->mode == CHANGED && r->call != PERFDATA_OPEN)
		change(&c->reply);
	if (!rc && shared->mode == IDLE && r->call == PERFDATA_MORE)
		find_nothing(c);
	return rc;
}

/* Sum up all that is found, and use each look-up. */
static uint64_t walk(struct perfdata *pd)
{
	uint64_t sum = perfdata_info(pd).nr_events, first, last;

	first = perfdata_info(pd).found->first_sample_ns;
	last = perfdata_info(pd).found->last_sample_ns;
	sum = sum * 31 + first;
	sum = sum * 31 + last;
	for (const char *p = perfdata_info(pd).found->note; *p; p++)
		sum = sum * 31 + (uint8_t)*p;
	sum = sum * 31 + (uint64_t)perfdata_event_of(pd, 7);
	sum = sum * 31 + strlen(perfdata_info(pd).machine) + strlen(perfdata_info(pd).host);
	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *layout;
		struct record r;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);

		assert_non_null(bytes);
		if (record_decode(&r, layout, bytes, size))
			continue;
		sum = sum * 31 + r.time_ns;
		if (r.type == PERF_RECORD_MMAP2)
			perfdata_identify(pd, &r.mmap);
	}
	return sum;
}

static void make(struct file *f)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);

	f->size = 0;
	put(f, "PERFILE2", 8);
	put_u64(f, 16);
	put_header(f, 64, 8 + sizeof(attr) + 2 * 8);
	put(f, &attr, sizeof(attr));
	put_u64(f, 7);
	put_u64(f, 8);
	for (uint64_t i = 0; i < NR_SAMPLES; i++)
		put_sample(f, 7 + i % 2, 0x1000 + i, 100, 1000 + (i % 4) * 200 + i);
}

static int open_file(struct perfdata **pd, struct err *e)
{
	return perfdata_from_memory(pd, file.bytes, file.size, e);
}

TEST(test_same)
{
	struct perfdata *pd, *others[PERFDATA_READERS + 1];
	struct err e;

	shared->mode = HONEST;
	assert_int_equal(open_file(&pd, &e), 0);
	assert_int_equal(perfdata_info(pd).nr_records, NR_SAMPLES);
	assert_true(walk(pd) == expected);
	perfdata_close(pd);
	/* Its worker is ended without a call, which may hang. */
	assert_int_equal(shared->nr_closed, 0);
	/* A reader is in use only while a file is opened. */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(open_file(&others[i], &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(walk(others[i]) == expected);
		perfdata_close(others[i]);
	}
}

TEST(test_changed)
{
	uint32_t nr_refused = 0, nr_other = 0;

	shared->mode = CHANGED;
	shared->seed = 1;
	for (uint32_t round = 0; round < NR_ROUNDS; round++) {
		struct perfdata *pd;
		struct err e;

		if (open_file(&pd, &e)) {
			assert_true(strstr(e.text, "its reader failed") || strstr(e.text, "header "
											  "is "
											  "damage"
											  "d"));
			nr_refused++;
			continue;
		}
		nr_other += walk(pd) != expected;
		perfdata_close(pd);
	}
	print_message("%u of %u refused, %u with other contents\n", nr_refused, NR_ROUNDS,
		      nr_other);
	assert_true(nr_refused > NR_ROUNDS / 10 && nr_other > NR_ROUNDS / 20);
}

TEST(test_failing_reader)
{
	struct perfdata *pd;
	struct err e;

	shared->mode = DIES;
	assert_int_equal(open_file(&pd, &e), -EPIPE);
	assert_non_null(strstr(e.text, "cannot replay recording: its reader failed"));
	shared->mode = IDLE;
	assert_int_equal(open_file(&pd, &e), -EBADMSG);
	/* The next one has another worker. */
	shared->mode = HONEST;
	assert_int_equal(open_file(&pd, &e), 0);
	assert_true(walk(pd) == expected);
	perfdata_close(pd);
}

/* The reader gets a descriptor that it can only read, also of a file that is open for writing. */
TEST(test_not_writable)
{
	char path[] = "/tmp/proftop-test-XXXXXX";
	struct perfdata *pd;
	struct err e;
	int fd = mkstemp(path), was = dup(STDIN_FILENO);

	assert_int_equal(write(fd, file.bytes, file.size), (ssize_t)file.size);
	assert_true(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	shared->mode = WRITES;
	for (int i = 0; i < 3; i++) {
		shared->result = 0;
		assert_int_equal(i == 0	  ? perfdata_open_step(&pd, path, NULL, &e)
				 : i == 1 ? perfdata_open_step(&pd, "-", NULL, &e)
					  : open_file(&pd, &e),
				 0);
		assert_int_equal(shared->result, -EBADF);
		assert_true(walk(pd) == expected);
		perfdata_close(pd);
	}
	assert_true(dup2(was, STDIN_FILENO) == STDIN_FILENO);
	close(was);
	close(fd);
	unlink(path);
}

static uint32_t nr_steps;

/* Give up after a third of a second. */
static enum file_reading give_up(uint64_t bytes)
{
	return ++nr_steps > 3 ? FILE_READING_CANCEL : FILE_READING_GO;
}

/* A hanging reader of a file is given up when the user does so. */
TEST(test_hanging_reader)
{
	char path[] = "/tmp/proftop-test-XXXXXX";
	uint64_t begin_ns = time_now_ns();
	int fd = mkstemp(path);
	struct perfdata *pd;
	struct err e;

	assert_int_equal(write(fd, file.bytes, file.size), (ssize_t)file.size);
	nr_steps = 0;
	shared->mode = HANGS;
	assert_int_equal(perfdata_open_step(&pd, path, give_up, &e), -ECANCELED);
	assert_non_null(strstr(e.text, "interrupted"));
	print_message("%u ms\n", (unsigned int)((time_now_ns() - begin_ns) / 1000000));
	assert_true(time_now_ns() - begin_ns < 10000000000ULL);
	/* Its worker has ended: the next one is another. */
	shared->mode = HONEST;
	assert_int_equal(perfdata_open_step(&pd, path, NULL, &e), 0);
	assert_true(walk(pd) == expected);
	perfdata_close(pd);
	close(fd);
	unlink(path);
}

static void *stop_later(void *arg)
{
	usleep(300000);
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

/* Reading a pipe can be given up while its first bytes, or more of them, are with the reader. */
TEST(test_hanging_stream)
{
	const struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	int was = dup(STDIN_FILENO), fds[2];
	atomic_bool stopped = false;
	uint64_t begin_ns = time_now_ns();
	static struct file stream;
	struct perfdata *pd;
	pthread_t thread;
	struct err e;

	put_pipe(&stream, &attr);
	put_sample(&stream, 7, 0x1000, 100, 1000);
	assert_int_equal(pipe(fds), 0);
	assert_true(dup2(fds[0], STDIN_FILENO) == STDIN_FILENO);
	assert_int_equal(write(fds[1], stream.bytes, stream.size), (ssize_t)stream.size);
	nr_steps = 0;
	shared->mode = HANGS;
	assert_int_equal(perfdata_open_stream(&pd, "-", give_up, &e), -ECANCELED);
	assert_int_equal(write(fds[1], stream.bytes, stream.size), (ssize_t)stream.size);
	nr_steps = 0;
	shared->mode = HONEST;
	assert_int_equal(perfdata_open_stream(&pd, "-", give_up, &e), 0);
	perfdata_stop_by(pd, &stopped);
	shared->mode = HANGS;
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(pthread_create(&thread, NULL, stop_later, &stopped), 0);
	assert_false(perfdata_more(pd, false));
	assert_string_equal(perfdata_info(pd).found->note, "reading stopped: interrupted");
	pthread_join(thread, NULL);
	perfdata_close(pd);
	print_message("%u ms\n", (unsigned int)((time_now_ns() - begin_ns) / 1000000));
	assert_true(time_now_ns() - begin_ns < 10000000000ULL);
	assert_true(dup2(was, STDIN_FILENO) == STDIN_FILENO);
	close(was);
	close(fds[0]);
	close(fds[1]);
}

static int set_up(void **state)
{
	static const struct sandbox_reader *readers[SANDBOX_NR_KINDS];
	static struct sandbox_reader own[PERFDATA_READERS];
	struct perfdata *pd;
	struct err e;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return -1;
	for (unsigned int i = 0; i < PERFDATA_READERS; i++) {
		own[i] = perfdata_readers[i];
		own[i].serve = serve;
		readers[SANDBOX_RECORDING + i] = &own[i];
	}
	make(&file);
	if (open_file(&pd, &e))
		return -1;
	expected = walk(pd);
	perfdata_close(pd);
	return sandbox_start(readers);
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

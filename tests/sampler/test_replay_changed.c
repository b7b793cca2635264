// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A recording that changes while it is replayed: its samples are still in the account.
 * Live: waits for threads or processes.
 */
#include "sampler/replay.c"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_SIZE (1 << 18)
#include "tests/makers/perfdata.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/hot/hot.h"

#define NR_SAMPLES 40U
#define COPY	   5000U /* more than is read at first */

static struct file file;
static struct change {
	uint64_t at[NR_SAMPLES]; /* of each sample */
	uint32_t nr, nr_changed;
	uint32_t to;	     /* the type of a sample that is read again */
	struct replay *stop; /* at the first read of a sample; else NULL */
	uint64_t last;	     /* the last one that was read */
} change;

/* Read, instead of the C library: a sample that is read twice running has another type then. */
ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	ssize_t got = syscall(SYS_pread64, fd, bytes, size, offset);
	const uint32_t sample = PERF_RECORD_SAMPLE;

	if (change.stop)
		replay_stop(change.stop);
	for (uint32_t i = 0; i < change.nr && change.to; i++) {
		if ((uint64_t)offset != change.at[i] || got < 8 || memcmp(bytes, &sample, 4))
			continue;
		if (change.last == (uint64_t)offset) {
			memcpy(bytes, &change.to, sizeof(change.to));
			change.nr_changed++;
		}
		change.last = (uint64_t)offset;
	}
	return got;
}

/* A sample with a stack that ends nowhere: it is read again with all of its copy. */
static void put_copied(uint64_t time)
{
	static const uint8_t copy[COPY];
	const uint32_t ids[2] = { 100, 100 };

	change.at[change.nr++] = file.size;
	put_header(&file, PERF_RECORD_SAMPLE, 8 + 5 * 8 + 4 * 8 + COPY + 2 * 8);
	put_u64(&file, 7);
	put_u64(&file, 0x1000);
	put(&file, ids, sizeof(ids));
	put_u64(&file, time);
	put_u64(&file, 1);
	put_u64(&file, PERF_SAMPLE_REGS_ABI_64);
	put_u64(&file, 0x7000); /* frame pointer, stack pointer, instruction */
	put_u64(&file, 0x7000);
	put_u64(&file, 0x1000);
	put_u64(&file, COPY);
	put(&file, copy, COPY);
	put_u64(&file, COPY);
}

static void make(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);

	change = (struct change){ .to = 0 };
	attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr.sample_regs_user = 7ULL << 6;
	attr.sample_stack_user = COPY;
	put_pipe(&file, &attr);
	for (uint64_t i = 0; i < NR_SAMPLES; i++)
		put_copied(1000 + i);
}

/* Open the file. The caller frees the result, and removes @path. */
static struct sampler *open_file(char *path)
{
	struct sampler_config config = { .tick_ns = 1000000000, .window_ns = 5000000000 };
	struct err e = { "" };
	struct sampler *s;
	int fd = mkstemp(path);

	make();
	assert_int_equal(write(fd, file.bytes, file.size), file.size);
	close(fd);
	config.replay = path;
	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	return s;
}

/* A sample that is a mapping or a switch when it is read again has no stack of either. */
TEST(test_changed_type)
{
	struct pipeline_stats stats = { 0 };
	struct replay_result result;
	char path[] = "/tmp/proftop-test-XXXXXX";
	struct sampler *s;

	s = open_file(path);
	change.to = PERF_RECORD_MMAP2;
	assert_int_equal(replay_run(s->replay, &s->store, &result), 0);
	for (uint32_t i = 0; i < result.nr_cpus; i++)
		pipeline_add_stats(&stats, &result.cpus[i].samples);
	print_message("%u of %u samples changed\n", change.nr_changed, NR_SAMPLES);
	assert_true(change.nr_changed);
	assert_int_equal(stats.taken, NR_SAMPLES);
	assert_int_equal(stats.dropped[DROP_BAD_RECORD], change.nr_changed);
	sampler_free(s);
	unlink(path);
}

/* A replay that is stopped does not read on. */
TEST(test_stopped)
{
	struct replay_result result;
	char path[] = "/tmp/proftop-test-XXXXXX";
	struct sampler *s = open_file(path);

	change.stop = s->replay;
	assert_int_equal(replay_run(s->replay, &s->store, &result), -ECANCELED);
	assert_int_equal(s->replay->cpus[0].samples.taken, 1);
	change.stop = NULL;
	sampler_free(s);
	unlink(path);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

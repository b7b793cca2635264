// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Throughput of decode -> unwind -> tables: bench_replay FILE [row|step] [ROUNDS]
 *
 * Reads a perf.data into memory, replays it once (mappings, objects, names,
 * rows: all caches are warm then), and runs all samples through the pipeline ROUNDS times on this
 * one thread. Times are CPU times of the thread; a round's three passes do decoding only, decoding
 * and unwinding, and all three.
 */
#include "tests/sampler/perfdata/from_memory.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu-qsbr.h>

#include "sampler/perfdata/internal.h"
#include "sampler/replay.c"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/hot/internal.h"

#define ROUNDS_MAX 1000
/* As the live hot loop: a batch, then a quiescent state. */
#define BATCH 16

enum pass { DECODE, UNWIND, ALL, NR_PASSES };

static const char *const pass_names[] = { "decode", "decode, unwind", "decode, unwind, count" };

/* One sample's record, found before the clock runs. */
struct replay_job {
	const uint8_t *bytes;
	size_t size;
	const struct record_layout *layout;
};

struct bench {
	struct sampler *sampler;
	struct perfdata *data;
	struct pipeline *pipeline;
	struct replay_job *jobs;
	uint64_t nr_jobs, nr_frames, nr_kernel;
	struct pipeline_stats stats;
	uint64_t sink;
	uint8_t *bytes;
	size_t size;
};

static void fail(const struct err *e)
{
	fprintf(stderr, "bench_replay: %s\n", e->text);
	exit(1);
}

static double thread_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Keep all of the recording in memory: reading is not measured. */
static void read_file(struct bench *b, const char *path)
{
	FILE *file = fopen(path, "re");
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(file);
	b->bytes = xcalloc(1, (size_t)size + 1);
	b->size = fread(b->bytes, 1, (size_t)size, file);
	fclose(file);
}

/* The recording through the tables once, as --replay does it. */
static void warm_up(struct bench *b, const char *path, bool step_only)
{
	const struct sampler_config config = {
		.replay = path,
		.step_only = step_only,
		.tick_ns = 1000000000,
		.window_ns = 5000000000,
	};
	struct replay_result result;
	struct err e = { "" };

	read_file(b, path);
	if (sampler_new(&b->sampler, &config, &e) ||
	    perfdata_from_memory(&b->data, b->bytes, b->size, &e))
		fail(&e);
	free(b->bytes);
	rcu_register_thread();
	if (replay_run(b->sampler->replay, &b->sampler->store, &result) ||
	    pipeline_new(&b->pipeline, sampler_thread_tables(b->sampler->store.shared), &e))
		fail(&e);
}

static void find_samples(struct bench *b)
{
	uint64_t nr = perfdata_info(b->data).nr_records;

	b->jobs = xcalloc(nr, sizeof(*b->jobs));
	for (uint64_t i = 0; i < nr; i++) {
		struct replay_job *job = &b->jobs[b->nr_jobs];
		struct perf_event_header h;

		job->bytes = perfdata_record(b->data, i, &job->size, &job->layout);
		memcpy(&h, job->bytes, sizeof(h));
		b->nr_jobs += h.type == PERF_RECORD_SAMPLE;
	}
}

static void run_one(struct bench *b, const struct replay_job *job, enum pass pass)
{
	struct record r;
	int event;

	if (record_decode(&r, job->layout, job->bytes, job->size)) {
		pipeline_bad_record(&b->stats);
		return;
	}
	event = perfdata_event_of(b->data, r.id);
	switch (pass) {
	case DECODE:
		b->sink += (uint64_t)event + r.sample.stack_dyn;
		break;
	case UNWIND:
		pipeline_resolve(b->pipeline, &r.sample, job->layout->regs_mask);
		break;
	default:
		pipeline_sample(b->pipeline, &b->stats, &r.sample, event, job->layout->regs_mask,
				false);
		break;
	}
}

static double run_pass(struct bench *b, enum pass pass)
{
	double start = thread_seconds();

	for (uint64_t i = 0; i < b->nr_jobs; i++) {
		run_one(b, &b->jobs[i], pass);
		if (i % BATCH == BATCH - 1)
			rcu_quiescent_state();
	}
	return thread_seconds() - start;
}

/* The pipeline's own unwinder has no open ends after this, and the frames are counted. */
static void count_frames(struct bench *b)
{
	struct pipeline_stack stack;
	struct record r;

	for (uint64_t i = 0; i < b->nr_jobs; i++) {
		const struct replay_job *job = &b->jobs[i];

		if (record_decode(&r, job->layout, job->bytes, job->size))
			continue;
		pipeline_resolve(b->pipeline, &r.sample, job->layout->regs_mask);
		pipeline_stack(b->pipeline, &stack);
		b->nr_frames += stack.nr;
		b->nr_kernel += stack.nr_kernel;
	}
}

static int compare_times(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* One line that a person and a script can read. */
static void print_pass(const struct bench *b, enum pass pass, double *seconds, int rounds)
{
	double median, samples = (double)b->nr_jobs, frames = (double)b->nr_frames;

	qsort(seconds, (size_t)rounds, sizeof(*seconds), compare_times);
	median = seconds[rounds / 2];
	printf("%-22s %10.0f samples/s  %7.1f ns/frame  (%.1f to %.1f)  %8.0f ns/sample\n",
	       pass_names[pass], samples / median, 1e9 * median / frames, 1e9 * seconds[0] / frames,
	       1e9 * seconds[rounds - 1] / frames, 1e9 * median / samples);
}

int main(int argc, char **argv)
{
	static double seconds[NR_PASSES][ROUNDS_MAX];
	bool step_only = argc > 2 && !strcmp(argv[2], "step");
	int rounds = argc > 3 ? atoi(argv[3]) : 21;
	struct bench b = { 0 };

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_replay FILE [row|step] [ROUNDS]\n");
		return 2;
	}
	warm_up(&b, argv[1], step_only);
	find_samples(&b);
	count_frames(&b);
	if (!b.nr_jobs || !b.nr_frames) {
		fprintf(stderr, "bench_replay: %s has no samples\n", argv[1]);
		return 1;
	}
	for (int i = 0; i < rounds; i++)
		for (enum pass pass = DECODE; pass < NR_PASSES; pass++)
			seconds[pass][i] = run_pass(&b, pass);
	printf("%s: %llu samples, %.1f frames each (%.1f of the kernel), %.1f %% complete, "
	       "unwinder %s, "
	       "%d rounds\n",
	       argv[1], (unsigned long long)b.nr_jobs, (double)b.nr_frames / (double)b.nr_jobs,
	       (double)b.nr_kernel / (double)b.nr_jobs,
	       100.0 * (double)(b.stats.complete + b.stats.guessed) / (double)b.stats.taken,
	       step_only ? "step" : "row", rounds);
	for (enum pass pass = DECODE; pass < NR_PASSES; pass++)
		print_pass(&b, pass, seconds[pass], rounds);
	free(b.jobs);
	pipeline_free(b.pipeline);
	rcu_unregister_thread();
	perfdata_close(b.data);
	sampler_free(b.sampler);
	return 0;
}

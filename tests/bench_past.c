// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From key to screen for ranges of a full history: a folder of --keep with 10 minutes of 2 busy
 * CPUs at 999 Hz and 5,000 stacks (nightsize) is opened, and random ranges are shown in the views 1
 * to 4, as the keys do: the UI requests a range, the builder sums its slices, the UI draws.
 *
 *	bench_past DIR [RANGES]
 *
 * Prints p50, p99 and the maximum of the time that passed, of the CPU time of all threads, which is
 * that of a machine that does nothing else, and of the CPU time of the UI thread alone.
 */
#include "ui/app.c"
#include "ui/rewind.c"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sampler/sampler.h"
#include "ui/draw/draw.h"
#include "symbols/base/base.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "ui/key/key.h"
#include "ui/cli/cli.h"
#include "ui/state/state.h"

#define COLS	   100
#define ROWS	   30
#define SECOND	   1000000000ULL
#define RANGES_MAX 100000
#define LIMIT_NS   100000000ULL

enum clock_kind { PASSED, ALL_THREADS, UI_THREAD, CLOCKS };

struct past_bench {
	struct sampler *sampler;
	struct ui_state st;
	struct canvas canvas;
	uint64_t seed;
	uint64_t *times[CLOCKS];
	uint32_t nr;
};

static uint64_t now(enum clock_kind kind)
{
	static const clockid_t ids[CLOCKS] = { CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
					       CLOCK_THREAD_CPUTIME_ID };
	struct timespec ts;

	clock_gettime(ids[kind], &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static uint64_t upto(struct past_bench *b, uint64_t n)
{
	b->seed = b->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (b->seed >> 20) % n;
}

static void die(const char *why)
{
	fprintf(stderr, "bench_past: %s\n", why);
	exit(2);
}

/* Take the newest range and strip. True: a range arrived and was drawn. */
static bool take(struct past_bench *b)
{
	struct pollfd fd = { .fd = sampler_past_fd(b->sampler), .events = POLLIN };
	struct profile *p = NULL;
	struct strip *strip = NULL;

	if (poll(&fd, 1, 10000) <= 0)
		die("the builder does not answer");
	sampler_take_past(b->sampler, &p, &strip);
	if (!p && !strip)
		return false;
	rewind_take(&b->st, p, strip);
	if (p)
		screen_draw(&b->st, &b->canvas);
	return p != NULL;
}

/* Wait for the profile of the whole folder, and its strip. */
static void read_all(struct past_bench *b)
{
	struct pollfd fd = { .fd = sampler_fd(b->sampler), .events = POLLIN };
	struct profile *p = NULL;

	while (!p) {
		if (poll(&fd, 1, 60000) <= 0)
			die("the folder is not read");
		p = sampler_take(b->sampler);
	}
	model_take(&b->st, p);
	screen_draw(&b->st, &b->canvas);
	rewind_refresh(&b->st);
	while (!b->st.rewind.strip)
		take(b);
}

/* Show one random range: of all lengths, from a slice to the whole past. */
static void show_range(struct past_bench *b)
{
	const struct strip *s = b->st.rewind.strip;
	uint64_t all = s->last_ns - s->first_ns, length = all >> upto(b, 13);
	uint64_t begin, from[CLOCKS];

	length = length / 2 + upto(b, length / 2 + 1);
	begin = s->first_ns + upto(b, all - length + 1);
	input_key(&b->st, &(struct key){ .code = (uint32_t)('1' + b->nr % 4) });
	screen_draw(&b->st, &b->canvas);
	for (int i = 0; i < CLOCKS; i++)
		from[i] = now((enum clock_kind)i);
	rewind_to(&b->st, begin, begin + length);
	while (!take(b))
		;
	for (int i = 0; i < CLOCKS; i++)
		b->times[i][b->nr] = now((enum clock_kind)i) - from[i];
	b->nr++;
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Print the times. Return whether the CPU time of 99 of 100 ranges is within the limit. */
static bool report(struct past_bench *b)
{
	static const char *const names[CLOCKS] = { "time passed", "CPU time, all threads",
						   "CPU time, UI thread" };

	printf("%u ranges of %.0f s, %u stacks, %.0f samples:\n", b->nr,
	       (double)(b->st.rewind.strip->last_ns - b->st.rewind.strip->first_ns) / 1e9,
	       b->st.latest->nr_stacks, (double)b->st.latest->account.taken);
	for (int i = 0; i < CLOCKS; i++) {
		qsort(b->times[i], b->nr, sizeof(*b->times[i]), by_size);
		printf("  %-22s p50 %6.2f ms  p99 %6.2f ms  max %6.2f ms\n", names[i],
		       (double)b->times[i][b->nr / 2] / 1e6,
		       (double)b->times[i][b->nr * 99 / 100] / 1e6,
		       (double)b->times[i][b->nr - 1] / 1e6);
	}
	return b->times[ALL_THREADS][b->nr * 99 / 100] <= LIMIT_NS;
}

int main(int argc, char **argv)
{
	struct sampler_config sampled = { .hz = 999,
					  .tick_ns = SECOND,
					  .window_ns = 5 * SECOND,
					  .history_ns = 600 * SECOND,
					  .history_memory = 64 << 20 };
	static struct past_bench b = { .seed = 1 };
	uint32_t ranges = argc > 2 ? (uint32_t)atoi(argv[2]) : 1000;
	struct ui_config config;
	struct err e;
	bool good;

	if (argc < 2 || !ranges || ranges > RANGES_MAX)
		die("usage: bench_past DIR [RANGES]");
	sampled.replay = argv[1];
	ui_config_init(&config);
	config.replayed = true;
	sampler_sandbox_start(false);
	if (sampler_new(&b.sampler, &sampled, &e) || sampler_start(b.sampler, &e))
		die(e.text);
	for (int i = 0; i < CLOCKS; i++)
		b.times[i] = xcalloc(ranges, sizeof(*b.times[i]));
	model_init(&b.st, b.sampler, &config, false);
	canvas_init(&b.canvas, false);
	if (canvas_resize(&b.canvas, ROWS, COLS))
		die("out of memory");
	read_all(&b);
	while (b.nr < ranges)
		show_range(&b);
	good = report(&b);
	model_fini(&b.st);
	canvas_fini(&b.canvas);
	sampler_free(b.sampler);
	sampler_sandbox_stop();
	for (int i = 0; i < CLOCKS; i++)
		free(b.times[i]);
	return !good;
}

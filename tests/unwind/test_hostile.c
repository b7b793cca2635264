// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An object with unwind tables that cost time or mislead, beside an honest process in the same
 * unwinder: no sample takes more CPU time than the budget allows, and the honest stacks are
 * complete. The bytes are generated here.
 * Live: waits for threads or processes.
 */
#include "unwind/internal.h"

#include "tests/prelude.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#include "tests/unwind/hostile.h"
#include "tests/makers/eh_frame.h"
#include "tests/unwind/shot.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/elf/elf.h"
#include "symbols/process/process.h"

#define NR_FDES	    512u
#define FDE_RANGE   0x100u
#define SIZE_MAX_EH (8u << 20)
#define NR_SAMPLES  300
#define NR_ROUNDS   3
#define SP	    0x7ffe00000000ULL

struct bytes {
	uint8_t *at;
	size_t size;
};

static struct unwind_result result;
static struct shot shot;

static uint64_t random_next(uint64_t *seed)
{
	*seed += 0x9e3779b97f4a7c15ULL;
	return hash_u64(*seed);
}

static void put(struct bytes *b, uint64_t v, unsigned int size)
{
	memcpy(b->at + b->size, &v, size);
	b->size += size;
}

static void end_record(struct bytes *b, size_t start)
{
	uint32_t size;

	while ((b->size - start) % 8 != 4)
		put(b, 0, 1);
	size = (uint32_t)(b->size - start - 4);
	memcpy(b->at + start, &size, 4);
}

static void put_cie(struct bytes *b)
{
	put(b, 0, 8);
	put(b, 1, 1);
	put(b, 'z' | 'R' << 8, 3);
	put(b, 1, 1);
	put(b, 0x78, 1);
	put(b, 16, 1);
	put(b, 1, 1);
	put(b, 0x1b, 1);
	memcpy(b->at + b->size, eh_usual, sizeof(eh_usual));
	b->size += sizeof(eh_usual);
	end_record(b, 0);
}

/* Programs that cost: long, full of states, of expressions that read; and plausible nonsense. */
static void put_program(struct bytes *b, unsigned int kind, uint64_t *seed)
{
	static const uint8_t likely[] = { 0x41, 0x0e, 0x0c, 7,	  6,	8,    0x86, 2,	  0x0a,
					  0x0b, 0x10, 0x0f, 0x16, 3,	1,    0x06, 0x77, 0x70,
					  0x08, 0x12, 0x22, 0x96, 0x09, 0x07, 0x90 };
	size_t start = b->size, nr;

	switch (kind) {
	case 0: /* as long as the gate allows */
		nr = CFI_INSNS_MAX - 16;
		for (size_t i = 0; i < nr; i += 2)
			put(b, 0x080e, 2);
		break;
	case 1: /* states, to the last byte */
		for (size_t i = 0; i < 8000; i++)
			put(b, 0x0b0a, 2);
		break;
	case 2: /* each register an expression of reads */
		for (unsigned int reg = 0; reg < 16; reg++) {
			put(b, 0x10 | reg << 8, 2);
			put(b, 0x01fe, 2); /* 254 bytes: sleb of two bytes */
			put(b, 0x0077, 2); /* breg7 0 */
			for (size_t i = 0; i < 252 / 2; i++)
				put(b, 0x9612, 2); /* dup, nop */
		}
		break;
	case 3: /* a few states each: below the counted cost */
		for (size_t i = 0; i < 16; i++)
			put(b, 0x0b0a, 2);
		break;
	case 4: /* nothing: frames up to the limit */
		break;
	default:
		for (nr = random_next(seed) % 300; b->size - start < nr;) {
			uint64_t r = random_next(seed);

			put(b, r & 0x700 ? likely[(r >> 16) % sizeof(likely)] : (uint8_t)r, 1);
		}
	}
}

/* One object of many such functions, in a separate image. */
static struct image *make_image(uint64_t *seed)
{
	struct image *image = xcalloc(1, sizeof(*image));
	struct bytes b = { .at = xcalloc(1, SIZE_MAX_EH), .size = 0 };

	put_cie(&b);
	for (unsigned int i = 0; i < NR_FDES; i++) {
		size_t at = b.size;

		put(&b, 0, 4);
		put(&b, at + 4, 4);
		put(&b, (uint32_t)(i * FDE_RANGE + 0x1000 - (EH_VADDR + b.size)), 4);
		put(&b, FDE_RANGE, 4);
		put(&b, 0, 1);
		put_program(&b, i % 8, seed);
		end_record(&b, at);
	}
	assert_true(b.size < SIZE_MAX_EH);
	assert_int_equal(ehframe_init(&image->eh, b.at, b.size, EH_VADDR, EM_X86_64), 0);
	assert_int_equal(image->eh.nr_fdes, NR_FDES);
	image->machine = EM_X86_64;
	image->elf_class = ELFCLASS64;
	image->segments = xcalloc(1, sizeof(*image->segments));
	image->nr_segments = 1;
	image->segments[0] = (struct image_segment){ 0, 0, 1 << 20, 1 << 20, true };
	return image;
}

__attribute__((noinline)) static int honest(int n)
{
	volatile int keep[2] = { n, n };

	if (n) {
		keep[1] = honest(n - 1);
	} else {
		shot_regs(&shot);
		shot_stack(&shot);
	}
	return keep[0] + keep[1];
}

/* A stack full of return addresses into the object: frames up to the limit. */
static void hostile_sample_at(struct unwinder *u, const struct space *space, uint64_t *seed,
			      uint32_t pid, uint64_t time_ns)
{
	static uint64_t words[2048], regs[SHOT_NR];
	const struct unwind_input in = {
		.regs = regs,
		.regs_mask = SHOT_MASK,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.stack = (const uint8_t *)words,
		.stack_size = sizeof(words),
		.stack_full = true,
		.space = space,
		.time_ns = time_ns,
		.pid = pid,
	};
	/* Functions of all kinds, or of one kind only. */
	unsigned int kind = (unsigned int)(random_next(seed) % 16);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t fde = random_next(seed) % NR_FDES;

		if (kind < 8)
			fde = fde / 8 * 8 + kind;
		words[i] = HOSTILE + 0x1000 + fde * FDE_RANGE + 1 +
			   random_next(seed) % (FDE_RANGE - 2);
	}
	for (size_t i = 0; i < ARRAY_SIZE(regs); i++)
		regs[i] = SP + 8 * (random_next(seed) % 1024);
	regs[SHOT_SP] = SP;
	regs[SHOT_IP] = words[77];
	unwind_sample(u, &in, &result);
	assert_in_range(result.nr, 1, UNWIND_FRAMES_MAX);
}

static void hostile_sample(struct unwinder *u, const struct space *space, uint64_t *seed)
{
	hostile_sample_at(u, space, seed, 0, time_now_ns());
}

static bool honest_sample_at(struct unwinder *u, const struct space *space, uint64_t time_ns)
{
	const struct unwind_input in = SHOT_INPUT(shot, space, time_ns);

	unwind_sample(u, &in, &result);
	return result.stop == UNWIND_COMPLETE && result.nr > 20 && !result.nr_guessed;
}

static bool honest_sample(struct unwinder *u, const struct space *space)
{
	return honest_sample_at(u, space, time_now_ns());
}

struct outcome {
	uint64_t ns[NR_SAMPLES]; /* the shortest of all rounds: noise only adds */
	uint64_t nr_stop[UNWIND_NR_STOPS], nr_frames;
	int honest, honest_complete;
};

/* All rounds are the same, each in a separate world. */
static void round_of(struct outcome *o, bool step_only)
{
	uint64_t seed = 11;
	struct world w;
	const struct space *mine, *theirs;
	struct unwinder *u;
	const struct unwind_config config = { .step_only = step_only };

	world_new(&w);
	world_load(&w, getpid());
	theirs = hostile_map(&w, make_image(&seed));
	world_find(&w, getpid());
	mine = w.space;
	assert_int_equal(unwind_new_with(&u, w.places, w.objects, &config, NULL), 0);
	for (int i = 0; i < NR_SAMPLES; i++) {
		uint64_t start = yardstick_cpu_ns();

		hostile_sample(u, theirs, &seed);
		o->ns[i] = MIN(o->ns[i], yardstick_cpu_ns() - start);
		o->nr_stop[result.stop]++;
		o->nr_frames += result.nr;
		o->honest++;
		o->honest_complete += honest_sample(u, mine);
	}
	unwind_free(u);
	world_free(&w);
}

static void check(bool step_only)
{
	struct outcome *o = xcalloc(1, sizeof(*o));
	uint64_t worst = 0, sum = 0;

	memset(o->ns, 0xff, sizeof(o->ns));
	shot.stack_end = shot_stack_end();
	honest(20);
	for (int i = 0; i < NR_ROUNDS; i++)
		round_of(o, step_only);
	for (int i = 0; i < NR_SAMPLES; i++) {
		worst = MAX(worst, o->ns[i]);
		sum += o->ns[i];
	}
	print_message("worst %" PRIu64 " us, mean %" PRIu64 " us, %" PRIu64
		      " frames; over budget %" PRIu64 ", refused %" PRIu64 "; honest: %d of %d "
		      "complete\n",
		      worst / 1000, sum / NR_SAMPLES / 1000, o->nr_frames,
		      o->nr_stop[UNWIND_BUDGET], o->nr_stop[UNWIND_CFI_REFUSED], o->honest_complete,
		      o->honest);
	assert_int_equal(o->honest_complete, o->honest);
	assert_true(o->nr_stop[UNWIND_BUDGET] > 10); /* it did try */
	assert_true(o->nr_frames > 10000);
	assert_true((double)worst <= hostile_limit_ns());
	free(o);
}

TEST(test_rows)
{
	check(false);
}

TEST(test_step)
{
	check(true);
}

#define NR_VERIFIED   1000U
#define NR_OF_PROCESS 3000

/* Count the stacks of one process in one second that ended over budget, and their frames by step.
 */
static uint64_t over_budget(bool allowance, uint64_t *nr_steps, unsigned int *nr_honest)
{
	const struct unwind_config config = { .allowance = allowance };
	uint64_t seed = 11, nr = 0, second;
	struct unwind_stats stats;
	const struct space *mine, *theirs;
	struct unwinder *u;
	struct world w;

	/* So few places that most frames have none, and no row: each of them needs reads. */
	world_new_with(&w, 1U << 14);
	world_load(&w, getpid());
	theirs = hostile_map(&w, make_image(&seed));
	world_find(&w, getpid());
	mine = w.space;
	assert_int_equal(unwind_new_with(&u, w.places, w.objects, &config, NULL), 0);
	*nr_honest = 0;
	/* Of samples after the mapping. */
	second = time_now_ns() / 1000000000 * 1000000000 + 1000000000;
	for (unsigned int i = 0; i < NR_OF_PROCESS; i++) {
		hostile_sample_at(u, theirs, &seed, 7, second + i);
		nr += i >= NR_OF_PROCESS / 2 && result.stop == UNWIND_BUDGET;
		*nr_honest += honest_sample(u, mine);
	}
	unwind_stats(u, &stats);
	*nr_steps = stats.nr_steps;
	/* Another second, another allowance. */
	for (unsigned int i = 0; i < 20; i++)
		hostile_sample_at(u, theirs, &seed, 7, second + 1000000000);
	unwind_stats(u, &stats);
	assert_true(stats.nr_steps > *nr_steps + 50);
	unwind_free(u);
	world_free(&w);
	return nr;
}

/* A process that spends its allowance gets short stacks; others lose nothing. */
TEST(test_allowance)
{
	unsigned int honest_with, honest_without;
	uint64_t steps_with, steps_without, with, without;

	shot.stack_end = shot_stack_end();
	honest(20);
	without = over_budget(false, &steps_without, &honest_without);
	with = over_budget(true, &steps_with, &honest_with);
	print_message("over budget %" PRIu64 ", with allowance %" PRIu64 "; steps %" PRIu64
		      ", with allowance %" PRIu64 "\n",
		      without, with, steps_without, steps_with);
	assert_int_equal(honest_without, NR_OF_PROCESS);
	assert_int_equal(honest_with, NR_OF_PROCESS);
	assert_true(with > without);
	assert_true(steps_with < steps_without / 4);
}

/*
 * A process that has spent its allowance, by tables that also push its honest rules out of
 * libunwind's cache: libunwind alone needs more than is left, and finds the same stacks. So it does
 * in tables that are refused, of which the beginnings are known from others.
 */
TEST(test_verified_beyond_allowance)
{
	const struct unwind_config config = { .allowance = true, .verify_every = 1 };
	uint64_t seed = 11, second;
	unsigned int nr_good = 0;
	const struct space *mine, *theirs;
	struct unwind_stats stats;
	struct unwinder *u;
	struct world w;

	shot.stack_end = shot_stack_end();
	honest(20);
	world_new(&w);
	world_load(&w, getpid());
	theirs = hostile_map(&w, make_image(&seed));
	world_find(&w, getpid());
	mine = w.space;
	assert_int_equal(unwind_new_with(&u, w.places, w.objects, &config, NULL), 0);
	second = time_now_ns() / 1000000000 * 1000000000 + 1000000000;
	for (unsigned int i = 0; i < NR_VERIFIED; i++) {
		hostile_sample_at(u, theirs, &seed, 0, second);
		nr_good += honest_sample_at(u, mine, second);
	}
	unwind_stats(u, &stats);
	print_message("%" PRIu64 " verified, %" PRIu64 " differ, %" PRIu64 " over budget\n",
		      stats.nr_verified, stats.nr_verify_differ, stats.nr_stop[UNWIND_BUDGET]);
	assert_int_equal(nr_good, NR_VERIFIED);
	assert_int_equal(stats.nr_verified, 2 * NR_VERIFIED);
	assert_int_equal(stats.nr_verify_differ, 0);
	unwind_free(u);
	world_free(&w);
}

int main(void)
{
	int rc;

	if (arch_native() != &arch_x86_64) {
		puts("not on this machine: x86-64");
		return 77;
	}
	urcu_qsbr_register_thread();
	rc = run_unit_tests(NULL, NULL);
	urcu_qsbr_unregister_thread();
	return rc;
}

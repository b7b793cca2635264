// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames that would each cost time, up to the limit of a stack, sample after sample: in tables that
 * libunwind cannot read, by rules that it has in its cache, in a file of thousands of segments.
 * No sample takes more CPU time than the budget allows. Also frames that need a register which the
 * frame before them has dropped.
 * Live: waits for threads or processes.
 */
#include "unwind/internal.h"

#include "tests/prelude_rcu.h"

#include <elf.h>
#include <inttypes.h>
#include <linux/perf_event.h>

#include "tests/unwind/hostile.h"
#include "tests/makers/eh_frame.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/elf/elf.h"
#include "symbols/process/process.h"

#define SP	   0x7ffe00000000ULL
#define START	   0x1000u /* of the function */
#define RANGE	   0xf000u
#define NR_SAMPLES 6
#define NR_ROUNDS  3
#define LONG	   (CFI_INSNS_MAX - 512) /* bytes: so long may a program be */
#define FAR	   (1ULL << 38)		 /* vaddrs that libunwind cannot read */

struct program {
	uint8_t bytes[CFI_INSNS_MAX];
	size_t size;
};

/* A file with one function, and stacks of nothing but its frames. */
struct kind {
	const char *name;
	uint16_t machine;
	uint64_t base;			/* vaddr of the file's first byte */
	void (*cie)(struct program *p); /* after the usual rules */
	void (*fde)(struct program *p);
	uint32_t nr_segments; /* 0: one */
	bool scattered;	      /* each frame is at another place, in another row */
	uint32_t nr_frames;   /* at least, in the last sample */
	uint32_t most_frames; /* there is budget for no more; 0: for all */
};

static struct unwind_result result;

static void put(struct program *p, uint64_t insns, unsigned int size)
{
	memcpy(p->bytes + p->size, &insns, size);
	p->size += size;
}

/* Repeat instructions of @size bytes in @room bytes. */
static void put_many(struct program *p, uint64_t insns, unsigned int size, size_t room)
{
	for (; room >= size; room -= size)
		put(p, insns, size);
}

/* CFA offsets that are overwritten. */
static void put_long(struct program *p)
{
	put_many(p, 0x080e, 2, LONG);
}

/* CFA = register 0 + 8: no row can express it. */
static void put_complex(struct program *p)
{
	put(p, 0x08000c, 3);
}

static void put_long_complex(struct program *p)
{
	put_long(p);
	put_complex(p);
}

/* A row every two bytes of code. */
static void put_rows(struct program *p)
{
	put_complex(p);
	put_many(p, 0x080e42, 3, LONG);
}

static void put_nothing(struct program *p)
{
}

static void put_states(struct program *p, int nr)
{
	for (int i = 0; i < nr; i++)
		put(p, 0x0b0a, 2); /* remember, restore */
}

/* CFA = r12, saved below: read by libunwind once, as long as it may, then in its cache. */
static void put_readable(struct program *p)
{
	put_many(p, 0x080e, 2, 59000);
	put(p, 0x000c0c, 3);
	put(p, 0x028c, 2);
}

/* More states than are free to count. */
static void put_few_states(struct program *p)
{
	put_states(p, 17);
	put_readable(p);
}

/* More than the budget has room for, but behind the frames. */
static void put_late_states(struct program *p)
{
	put_readable(p);
	put(p, 0xe00003, 3); /* advance */
	put_states(p, 600);
}

/* CFA = rbp + 16; rbp is saved at CFA + 120000, outside of each copy: the next frame lacks it. */
static void put_lost_fp(struct program *p)
{
	put(p, 0x10060c, 3);
	put(p, 0x7f8ae80611, 5);
}

/* CFA = sp + 16, the return address in its register, which only the first frame has. */
static void put_lost_ra(struct program *p)
{
	put(p, 0x100e, 2);
	put(p, 0x1e08, 2);
}

/* CFA = the expression rsp + 16. */
static void put_expression(struct program *p)
{
	put(p, 0x1077020f, 4);
}

static struct image *make_image(const struct kind *kind)
{
	static struct eh_section section;
	static struct program cie, fde;
	struct image *image = xcalloc(1, sizeof(*image));
	bool arm = kind->machine == EM_AARCH64;
	uint8_t *bytes;

	section.size = cie.size = fde.size = 0;
	put(&cie, arm ? 0x001f0c : 0x08070c, 3); /* CFA = sp + 0, rsp + 8 */
	put(&cie, arm ? 0x019e : 0x0190, 2);	 /* a slot of the return address */
	kind->cie(&cie);
	kind->fde(&fde);
	eh_cie(&section, false, cie.bytes, cie.size);
	section.bytes[14] = arm ? 30 : 16; /* the column of the return address */
	eh_fde(&section, 0, START, RANGE, fde.bytes, fde.size);
	bytes = xcalloc(1, section.size);
	memcpy(bytes, section.bytes, section.size);
	assert_int_equal(ehframe_init(&image->eh, bytes, section.size, kind->base + EH_VADDR,
				      kind->machine),
			 0);
	assert_int_equal(image->eh.nr_fdes, 1);
	image->machine = kind->machine;
	image->elf_class = ELFCLASS64;
	image->nr_segments = MAX(kind->nr_segments, 1u);
	image->segments = xcalloc(image->nr_segments, sizeof(*image->segments));
	for (uint32_t i = 0; i < image->nr_segments; i++)
		image->segments[i] = (struct image_segment){ 1 << 30, kind->base, 1, 1, false };
	image->segments[image->nr_segments - 1] =
		(struct image_segment){ 0, kind->base, 1 << 20, 1 << 20, true };
	return image;
}

/* Frames by frame pointers, and by any register: each pointer leads to a higher one. */
static void sample(struct unwinder *u, const struct kind *kind, const struct space *space,
		   uint64_t time_ns, uint64_t *seed)
{
	static uint64_t words[4096], regs[33];
	bool arm = kind->machine == EM_AARCH64;
	const struct unwind_input in = {
		.regs = regs,
		.regs_mask = arm ? 0x1ffffffffULL : 0xff01ffULL,
		.regs_abi = PERF_SAMPLE_REGS_ABI_64,
		.stack = (const uint8_t *)words,
		.stack_size = sizeof(words),
		.stack_full = true,
		.space = space,
		.time_ns = time_ns,
		.pid = HOSTILE_PID,
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i += 2) {
		uint64_t at = RANGE / 2;

		*seed += 0x9e3779b97f4a7c15ULL;
		if (kind->scattered)
			at += hash_u64(*seed) % (RANGE / 4);
		words[i] = SP + 8 * (i + 4);
		words[i + 1] = HOSTILE + START + at;
	}
	for (size_t i = 0; i < ARRAY_SIZE(regs); i++)
		regs[i] = SP + 16;
	if (arm)
		regs[30] = words[1];
	regs[arm ? 31 : 7] = SP;
	regs[arm ? 32 : 8] = words[1];
	unwind_sample(u, &in, &result);
}

static void check(const struct kind *kind)
{
	uint64_t ns[NR_SAMPLES], worst = 0, begin, seed = 11;
	const struct unwind_config config = { .machine = kind->machine,
					      .allowance = kind->machine == EM_X86_64 };
	uint32_t nr_frames = 0;

	memset(ns, 0xff, sizeof(ns));
	for (int round = 0; round < NR_ROUNDS; round++) {
		const struct space *space;
		struct unwinder *u;
		struct world w;

		world_new(&w);
		space = hostile_map(&w, make_image(kind));
		assert_int_equal(unwind_new_with(&u, w.places, w.objects, &config, NULL), 0);
		for (int i = 0; i < NR_SAMPLES; i++) {
			begin = yardstick_cpu_ns();
			sample(u, kind, space, time_now_ns(), &seed);
			/* The shortest of all rounds: noise only adds. */
			ns[i] = MIN(ns[i], yardstick_cpu_ns() - begin);
			nr_frames = result.nr;
		}
		unwind_free(u);
		world_free(&w);
	}
	for (int i = 0; i < NR_SAMPLES; i++)
		worst = MAX(worst, ns[i]);
	print_message("first %" PRIu64 " us, last %" PRIu64 " us, worst %" PRIu64 " us, the last "
		      "has %u frames: "
		      "%s\n",
		      ns[0] / 1000, ns[NR_SAMPLES - 1] / 1000, worst / 1000, nr_frames,
		      unwind_stop_name(result.stop));
	assert_true((unsigned int)result.stop < UNWIND_NR_STOPS);
	assert_true(nr_frames >= kind->nr_frames);
	assert_true(!kind->most_frames || nr_frames <= kind->most_frames);
	assert_true((double)worst <= hostile_limit_ns());
}

static const struct kind kinds[] = {
	/* A long CIE and a long FDE, at addresses where libunwind cannot read them. */
	{ .name = "far",
	  .machine = EM_X86_64,
	  .base = FAR,
	  .cie = put_long,
	  .fde = put_long_complex,
	  .nr_frames = UNWIND_FRAMES_MAX },
	/* Each frame has another row, which is read for the first time. */
	{ .name = "far rows",
	  .machine = EM_X86_64,
	  .base = FAR,
	  .cie = put_long,
	  .fde = put_rows,
	  .scattered = true },
	/* The same in the recording of another CPU. */
	{ .name = "foreign",
	  .machine = EM_AARCH64,
	  .cie = put_long,
	  .fde = put_long_complex,
	  .nr_frames = UNWIND_FRAMES_MAX },
	{ .name = "foreign rows",
	  .machine = EM_AARCH64,
	  .cie = put_long,
	  .fde = put_rows,
	  .scattered = true },
	/* Each step of libunwind is free, but the states were counted before. */
	{ .name = "states",
	  .machine = EM_X86_64,
	  .cie = put_nothing,
	  .fde = put_few_states,
	  .nr_frames = UNWIND_FRAMES_MAX },
	{ .name = "late states", .machine = EM_X86_64, .cie = put_nothing, .fde = put_late_states },
	/* A walk without rows lacks the same register. */
	{ .name = "lost frame pointer",
	  .machine = EM_X86_64,
	  .base = FAR,
	  .cie = put_nothing,
	  .fde = put_lost_fp,
	  .nr_frames = 2,
	  .most_frames = 2 },
	{ .name = "lost return address",
	  .machine = EM_AARCH64,
	  .cie = put_nothing,
	  .fde = put_lost_ra,
	  .nr_frames = 2,
	  .most_frames = 2 },
	/* The segment of each frame is the last one. */
	{ .name = "segments",
	  .machine = EM_X86_64,
	  .cie = put_nothing,
	  .fde = put_expression,
	  .nr_segments = 4096,
	  .nr_frames = 16,
	  .most_frames = 128 },
};

/* Return whether @kind can be checked here: a kind of x86-64 needs that CPU. */
static bool is_checkable(const struct kind *kind)
{
	bool yes = kind->machine != EM_X86_64 || arch_native() == &arch_x86_64;

	print_message("%s: %s", kind->name, yes ? "" : "not on this machine: x86-64\n");
	return yes;
}

TEST(test_kinds)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (is_checkable(&kinds[i]))
			check(&kinds[i]);
}

#define NR_OF_SECOND 400

/* Return the CPU time of the samples of a process that has spent its allowance of this second. */
static uint64_t beyond_allowance(const struct kind *kind)
{
	const struct unwind_config config = { .allowance = true };
	uint64_t seed = 11, second, begin = 0, took;
	const struct space *space;
	struct unwinder *u;
	struct world w;

	world_new(&w);
	space = hostile_map(&w, make_image(kind));
	assert_int_equal(unwind_new_with(&u, w.places, w.objects, &config, NULL), 0);
	/* Of samples after the mapping. */
	second = time_now_ns() / 1000000000 * 1000000000 + 1000000000;
	for (int i = 0; i < NR_OF_SECOND; i++) {
		if (i == NR_OF_SECOND / 2)
			begin = yardstick_cpu_ns();
		sample(u, kind, space, second, &seed);
	}
	took = yardstick_cpu_ns() - begin;
	assert_int_equal(result.stop, UNWIND_BUDGET);
	unwind_free(u);
	world_free(&w);
	return took;
}

/* Then long tables are not read at all. */
TEST(test_beyond_allowance)
{
	static const struct kind rows[] = {
		{ .name = "beyond the allowance, rows",
		  .machine = EM_X86_64,
		  .cie = put_long,
		  .fde = put_rows,
		  .scattered = true },
		{ .name = "beyond the allowance, far rows",
		  .machine = EM_X86_64,
		  .base = FAR,
		  .cie = put_long,
		  .fde = put_rows,
		  .scattered = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t took;

		if (!is_checkable(&rows[i]))
			continue;
		took = beyond_allowance(&rows[i]);
		print_message("%" PRIu64 " us a sample\n", took / (NR_OF_SECOND / 2) / 1000);
		assert_true((double)took <= NR_OF_SECOND / 2 * hostile_limit_ns() / 50);
	}
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}

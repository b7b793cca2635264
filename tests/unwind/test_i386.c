// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stack of a 32-bit process, made by hand: tables of i386, registers of a sample with ABI_32.
 */
#include "unwind/internal.h"

#include <elf.h>
#include <linux/perf_event.h>

#include "tests/prelude_rcu.h"
#include "tests/unwind/make_eh.h"
#include "tests/unwind/world.h"

#define PID  4321
#define BASE 0x56550000ULL
#define SP   0xffffd000ULL

enum { LEAF = 0x1000, FRAMED = 0x2000, MAIN = 0x3000, START = 0x4000 };

/* push %ebp; mov %esp,%ebp */
static const uint8_t framed[] = { 0x41, 0x0e, 8, 0x85, 2, 0x42, 0x0d, 5 };
/* As gcc aligns the stack of main(): CFA = *(ebp - 4), the saved ebp is at ebp. */
static const uint8_t aligned[] = { 0x0f, 3, 0x75, 0x7c, 0x06, 0x10, 5, 2, 0x75, 0 };
static const uint8_t root[] = { 0x07, 8 };

static struct image *make_image(void)
{
	static const uint8_t cie[] = { 0x14, 0,	   0, 0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
				       1,    0x7c, 8, 1, 0x1b, 0x0c, 4, 4, 0x88, 1,   0,   0 };
	static struct eh_section section;
	struct image *image = xcalloc(1, sizeof(*image));
	uint8_t *bytes;

	memcpy(section.bytes, cie, sizeof(cie));
	section.size = sizeof(cie);
	eh_fde(&section, 0, LEAF, 0x100, NULL, 0);
	eh_fde(&section, 0, FRAMED, 0x100, framed, sizeof(framed));
	eh_fde(&section, 0, MAIN, 0x100, aligned, sizeof(aligned));
	eh_fde(&section, 0, START, 0x100, root, sizeof(root));
	eh_put(&section, 0, 4);
	bytes = xcalloc(1, section.size);
	memcpy(bytes, section.bytes, section.size);
	assert_int_equal(ehframe_init(&image->eh, bytes, section.size, EH_VADDR, EM_386), 0);
	assert_int_equal(image->eh.nr_fdes, 4);
	image->machine = EM_386;
	image->elf_class = ELFCLASS32;
	image->segments = xcalloc(1, sizeof(*image->segments));
	image->nr_segments = 1;
	image->segments[0] = (struct image_segment){ 0, 0, 1 << 21, 1 << 21, true };
	return image;
}

TEST(test_stack)
{
	static const uint64_t ips[] = { LEAF + 0x20, FRAMED + 0x2f, MAIN + 0x3f, START + 0x4f };
	const struct unwind_config config = { .machine = EM_X86_64 };
	/* Below main's ebp is the CFA that it saved; 40 bytes above, that frame. */
	uint32_t stack[32] = {
		[0] = BASE + FRAMED + 0x30, [4] = SP + 4 * 10, [5] = BASE + MAIN + 0x40,
		[9] = SP + 4 * 21,	    [10] = 0,	       [20] = BASE + START + 0x50,
	};
	uint64_t regs[17] = { [6] = SP + 4 * 4, [7] = SP, [8] = BASE + LEAF + 0x20 };
	static struct unwind_result result;
	struct unwinder *u;
	struct world w;
	struct unwind_input in;

	world_new(&w);
	in = (struct unwind_input){
		.regs = regs,
		.regs_mask = 0xff01ff,
		.regs_abi = PERF_SAMPLE_REGS_ABI_32,
		.stack = (const uint8_t *)stack,
		.stack_size = sizeof(stack),
		.space = world_map(&w, make_image(), PID, BASE, 1 << 21),
		.time_ns = time_now_ns(),
	};
	world_must(unwind_new_with(&u, w.places, w.objects, &config, NULL));
	/* Read, then cached; between two samples of 64-bit processes. */
	for (int n = 0; n < 3; n++) {
		struct unwind_input wide = in;

		unwind_sample(u, &in, &result);
		assert_int_equal(result.stop, UNWIND_COMPLETE);
		assert_int_equal(result.nr_guessed, 0);
		assert_int_equal(result.nr, ARRAY_SIZE(ips));
		for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
			assert_int_equal(result.ip[i] - BASE, ips[i]);
		wide.regs_abi = PERF_SAMPLE_REGS_ABI_64;
		regs[8] = BASE + LEAF + 0x80;
		wide.stack_size = 0;
		unwind_sample(u, &wide, &result);
		regs[8] = BASE + LEAF + 0x20;
		assert_int_equal(result.nr, 1);
	}
	unwind_free(u);
	world_free(&w);
}

int main(void)
{
	return run_rcu_tests(NULL, NULL);
}

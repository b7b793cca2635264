// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libunwind behind the gate, on made objects: plain frames, expressions,
 * the root, addresses outside the copy, unknown registers, budgets, and
 * generated CFI that must neither crash nor take long.
 */
#include "unwind/internal.h"

#include "tests/prelude.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <libunwind.h>

#include "tests/makers/eh_frame.h"
#include "tests/yardstick.h"
#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"

/* Times are of the plain build: sanitizers cost several times as much. */
#ifdef __SANITIZE_ADDRESS__
#define TEST_SLOWNESS 8
#else
#define TEST_SLOWNESS 1
#endif

#define START 0x2000ULL
#define SP    0x7ffe00000000ULL

static struct eh_section section;
static struct image image;
static struct object object;
static uint32_t next_object = OBJECT_ID_FIRST;
static uint64_t words[64];
static struct stack_copy copy;
static struct step *step;
static struct arch_frame frame;
static bool signal_seen;

#define NAME_OF(name) #name
#define NAME(name)    NAME_OF(name)

static unsigned int nr_behind;

/* In front of libunwind's: count the functions behind the last that our headers declare. */
unw_addr_space_t unw_create_addr_space(unw_accessors_t *a, int byte_order)
{
	unw_addr_space_t (*create)(unw_accessors_t *, int) =
		(unw_addr_space_t(*)(unw_accessors_t *, int))dlsym(RTLD_NEXT,
								   NAME(unw_create_addr_space));
	void *const *behind = (void *const *)(a + 1);

	for (int i = 0; i < 3; i++)
		nr_behind += behind[i] != NULL;
	return create(a, byte_order);
}

static int set_up(void **state)
{
	assert_int_equal(step_new(&step, &arch_x86_64, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = 0x1000 + i;
	copy = (struct stack_copy){ SP, (const uint8_t *)words, sizeof(words), true, { 0 }, NULL };
	return 0;
}

static int tear_down(void **state)
{
	step_free(step);
	return 0;
}

/* libunwind 1.8 copies three functions more than the headers of 1.6 have, and calls the last. */
TEST(test_functions_of_newer_libunwind, set_up, tear_down)
{
	assert_int_equal(nr_behind, 0);
}

/* The FDE of the object made here. */
static const struct ehframe_fde *only_fde(void)
{
	static struct ehframe_fde fde;

	assert_true(ehframe_at(&image.eh, 0, &fde));
	return &fde;
}

/* Let libunwind do the frame at START + 0x10 of an object with @insns in its FDE. */
static enum step_result run_with(bool signal, bool first, const void *insns, size_t size)
{
	enum step_result result;
	struct step_input in;
	uint32_t cie;

	section.size = 0;
	cie = eh_cie(&section, signal, eh_usual, sizeof(eh_usual));
	eh_fde(&section, cie, START, 0x100, insns, size);
	assert_int_equal(ehframe_init(&image.eh, section.bytes, section.size, EH_VADDR, EM_X86_64),
			 0);
	object.id = next_object++; /* a new object: nothing is cached */
	frame.valid = 0;
	for (unsigned int reg = 0; reg < 16; reg++)
		arch_set(&frame, reg, reg == 7 ? SP : 100 + reg);
	arch_set(&frame, 16, 0x555500002010);
	in = (struct step_input){
		.copy = &copy,
		.object = &object,
		.image = &image,
		.vaddr = START + 0x10,
		.pc_vaddr = START + 0x10,
		.first = first,
		.fde = only_fde(),
	};
	step_begin(step);
	result = step_gate(step, &in, &signal_seen);
	if (result == STEP_CALLER)
		result = step_frame(step, &in, &frame);
	ehframe_fini(&image.eh);
	return result;
}

#define RUN(...)                                                                                   \
	run_with(false, true, (const uint8_t[]){ __VA_ARGS__ },                                    \
		 sizeof((const uint8_t[]){ __VA_ARGS__ }))

TEST(test_plain_frame, set_up, tear_down)
{
	assert_int_equal(RUN(0x0e, 32, 0x83, 2, 0x86, 3), STEP_CALLER);
	assert_false(signal_seen);
	assert_int_equal(frame.reg[16], 0x1003);
	assert_int_equal(frame.reg[7], SP + 32);
	assert_int_equal(frame.reg[3], 0x1002);
	assert_int_equal(frame.reg[6], 0x1001);
	assert_int_equal(frame.reg[12], 112);
}

TEST(test_root, set_up, tear_down)
{
	assert_int_equal(RUN(0x07, 16), STEP_ROOT);
	words[0] = 0;
	assert_int_equal(RUN(0), STEP_ROOT);
}

TEST(test_expressions, set_up, tear_down)
{
	/* CFA = *(rsp + 8); the word there points back into the copy. */
	words[1] = SP + 64;
	assert_int_equal(RUN(0x0f, 3, 0x77, 8, 0x06), STEP_CALLER);
	assert_int_equal(frame.reg[7], SP + 64);
	assert_int_equal(frame.reg[16], 0x1007);
	/* The PLT's, which looks at the pc: 0x10 & 15 < 11. */
	assert_int_equal(RUN(0x0f, 0x0b, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
			     0x22),
			 STEP_CALLER);
	assert_int_equal(frame.reg[7], SP + 8);
	assert_int_equal(frame.reg[16], 0x1000);
	/* CFA = r10 + 16 */
	assert_int_equal(RUN(0x0c, 10, 16), STEP_BELOW);
}

TEST(test_signal_frame, set_up, tear_down)
{
	static const uint8_t insns[] = { 0x0e, 24 };

	assert_int_equal(run_with(true, false, insns, sizeof(insns)), STEP_CALLER);
	assert_true(signal_seen);
	assert_int_equal(frame.reg[16], 0x1002);
}

TEST(test_outside_the_dump, set_up, tear_down)
{
	static const uint8_t popped[] = { 0x0e, 8, 0x86, 2 };

	assert_int_equal(RUN(0x0e, 0x80, 0x04), STEP_CALLER); /* the last word */
	assert_int_equal(frame.reg[16], 0x1000 + 63);
	assert_int_equal(RUN(0x0e, 0x88, 0x04), STEP_BEYOND);
	assert_int_equal(RUN(0x0e, 0), STEP_BELOW);
	/* rbp's slot is below sp: in frame 0 its value is in the register, else unknown. */
	assert_int_equal(run_with(false, true, popped, sizeof(popped)), STEP_CALLER);
	assert_int_equal(frame.reg[6], 106);
	assert_int_equal(run_with(false, false, popped, sizeof(popped)), STEP_CALLER);
	assert_false(arch_has(&frame, 6));
}

TEST(test_unknown_register, set_up, tear_down)
{
	struct step_input in = { .copy = &copy,
				 .object = &object,
				 .image = &image,
				 .vaddr = START + 0x10,
				 .pc_vaddr = START + 0x10 };
	static const uint8_t insns[] = { 0x0c, 10, 16 };
	uint32_t cie;

	section.size = 0;
	cie = eh_cie(&section, false, eh_usual, sizeof(eh_usual));
	eh_fde(&section, cie, START, 0x100, insns, sizeof(insns));
	assert_int_equal(ehframe_init(&image.eh, section.bytes, section.size, EH_VADDR, EM_X86_64),
			 0);
	object.id = next_object++;
	in.fde = only_fde();
	frame.valid = 1ULL << 16 | 1ULL << 7 | 1ULL << 6;
	frame.reg[7] = SP;
	step_begin(step);
	assert_int_equal(step_gate(step, &in, &signal_seen), STEP_CALLER);
	assert_int_equal(step_frame(step, &in, &frame), STEP_NEED_REGS);
	ehframe_fini(&image.eh);
}

TEST(test_gate_refuses, set_up, tear_down)
{
	assert_int_equal(RUN(0x09, 3, 0xff, 0xff, 0x03), STEP_REFUSED);
	assert_int_equal(RUN(0x0f, 3, 0x2f, 0xfd, 0xff), STEP_REFUSED);
	assert_int_equal(RUN(0x0b), STEP_REFUSED);
}

TEST(test_absolute_addresses, set_up, tear_down)
{
	struct step_input in = { .copy = &copy,
				 .object = &object,
				 .image = &image,
				 .vaddr = START + 0x10,
				 .pc_vaddr = START + 0x10,
				 .first = true };
	size_t start;

	section.size = 0; /* augmentation "": 8-byte absolute addresses */
	eh_put(&section, 0, 8);
	eh_put(&section, 1, 1);
	eh_put(&section, 0, 1);
	eh_put(&section, 1 | 0x78 << 8 | 16 << 16, 3);
	memcpy(section.bytes + section.size, eh_usual, sizeof(eh_usual));
	section.size += sizeof(eh_usual);
	eh_end(&section, 0);
	start = section.size;
	eh_put(&section, 0, 4);
	eh_put(&section, start + 4, 4);
	eh_put(&section, START, 8);
	eh_put(&section, 0x100, 8);
	eh_put(&section, 0x0e | 16 << 8, 2);
	eh_end(&section, start);
	assert_int_equal(ehframe_init(&image.eh, section.bytes, section.size, EH_VADDR, EM_X86_64),
			 0);
	object.id = next_object++;
	in.fde = only_fde();
	frame.valid = 0;
	arch_set(&frame, 16, 1);
	arch_set(&frame, 7, SP);
	arch_set(&frame, 6, 0);
	step_begin(step);
	assert_int_equal(step_gate(step, &in, &signal_seen), STEP_CALLER);
	assert_int_equal(step_frame(step, &in, &frame), STEP_CALLER);
	assert_int_equal(frame.reg[16], 0x1001);
	ehframe_fini(&image.eh);
}

TEST(test_same_pc_in_two_objects, set_up, tear_down)
{
	for (int i = 0; i < 3; i++) {
		assert_int_equal(RUN(0x0e, 16), STEP_CALLER);
		assert_int_equal(frame.reg[16], 0x1001);
		assert_int_equal(RUN(0x0e, 24), STEP_CALLER);
		assert_int_equal(frame.reg[16], 0x1002);
	}
}

/* An FDE far longer than a sample's budget of reads. */
TEST(test_budget, set_up, tear_down)
{
	static uint8_t insns[CFI_INSNS_MAX - 64];

	assert_int_equal(run_with(false, true, insns, sizeof(insns)), STEP_BUDGET);
	assert_int_equal(RUN(0x0e, 16), STEP_CALLER);
}

static enum step_result run_long(size_t size, size_t nr_remembers)
{
	static uint8_t insns[CFI_INSNS_MAX];

	memset(insns, 0, sizeof(insns));
	for (size_t i = 0; i < nr_remembers; i++)
		memcpy(insns + 2 * i, (const uint8_t[]){ 0x0a, 0x0b }, 2);
	return run_with(false, true, insns, size);
}

/* As long as the longest of millions that compilers made (cc1, lto1, node): not cut. */
TEST(test_budget_of_honest_code, set_up, tear_down)
{
	assert_int_equal(run_long(22000, 150), STEP_CALLER);
	assert_int_equal(run_long(4000, 450), STEP_CALLER);
}

/* Each remembered state is four system calls of libunwind: few bytes can cost much. */
TEST(test_dear_instructions, set_up, tear_down)
{
	static uint8_t insns[CFI_INSNS_MAX - 64];
	uint64_t start;

	for (size_t i = 0; i < sizeof(insns); i += 2)
		memcpy(insns + i, (const uint8_t[]){ 0x0a, 0x0b }, 2);
	start = yardstick_cpu_ns();
	assert_int_equal(run_with(false, true, insns, sizeof(insns)), STEP_BUDGET);
	print_message("refused after %" PRIu64 " us\n", (yardstick_cpu_ns() - start) / 1000);
	for (size_t n = 2; n < sizeof(insns); n *= 2) {
		uint64_t best = UINT64_MAX;

		for (int i = 0; i < 3; i++) {
			start = yardstick_cpu_ns();
			run_with(false, true, insns, n);
			best = MIN(best, yardstick_cpu_ns() - start);
		}
		/* Emulated CPUs are not slower at all things alike. */
		assert_true((double)best < 4e6 * TEST_SLOWNESS * yardstick_slowness());
	}
}

/*
 * A function that ends with the return address in a register may already have rewritten its frame.
 */
TEST(test_rewritten_frame, set_up, tear_down)
{
	static const uint8_t far[] = {
		0x0e, 16, 0x02, 0xf0, 0x0c, 7, 0, 0x09, 16, 2, /* 0xf0 bytes on: rip in rcx */
	};
	static const uint8_t near[] = { 0x0e, 16, 0x02, 0x40, 0x0c, 7, 0, 0x09, 16, 2 };

	assert_int_equal(run_with(false, true, far, sizeof(far)), STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_SURE);
	assert_int_equal(run_with(false, true, near, sizeof(near)), STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_DOUBTFUL);
	assert_int_equal(RUN(0x0e, 16), STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_SURE);
	/* A leaf without a frame, as vfork(): CFA is sp itself. */
	assert_int_equal(RUN(0x0c, 7, 0, 0x09, 16, 2), STEP_CALLER);
	assert_int_equal(frame.reg[16], 102);
	assert_int_equal(frame.reg[7], SP);
	assert_int_equal(step_doubt(step), CFI_SURE);
	assert_int_equal(RUN(0x48, 0x0c, 7, 0, 0x09, 16, 2), STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_DOUBTFUL);
	/* __builtin_eh_return: CFA by way of rcx, then rip in rcx. */
	assert_int_equal(RUN(0x42, 0x0c, 2, 8, 0x43, 0x0c, 7, 8, 0x41, 0x0c, 7, 0, 0x09, 16, 2),
			 STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_LANDING);
	assert_int_equal(RUN(0x02, 0x20, 0x0c, 2, 8, 0x43, 0x0c, 7, 0, 0x09, 16, 2), STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_REWRITING);
	/* longjmp(): both together. */
	assert_int_equal(RUN(0x02, 0x20, 0x0c, 5, 8, 0x09, 16, 2), STEP_CALLER);
	assert_int_equal(step_doubt(step), CFI_DOUBTFUL);
}

static uint64_t random_next(uint64_t *seed)
{
	*seed += 0x9e3779b97f4a7c15ULL;
	return hash_u64(*seed);
}

/* Programs of plausible bytes through gate and libunwind: no crash, and never long. */
TEST(test_generated_programs, set_up, tear_down)
{
	static const uint8_t likely[] = {
		0x41, 0x0e, 0x0c, 7,	6,    8,    0x86, 2,	0x0a, 0x0b, 0x10, 0x0f, 0x16,
		3,    1,    0x06, 0x77, 0x70, 0x08, 0x12, 0x22, 0x96, 0x09, 0x07, 0x90,
	};
	uint64_t seed = 7, worst = 0, results[STEP_FAILED + 1] = { 0 };

	for (int n = 0; n < 40000; n++) {
		uint8_t insns[64];
		uint64_t start;

		for (size_t i = 0; i < sizeof(insns); i++) {
			uint64_t r = random_next(&seed);

			insns[i] = r & 0x700 ? likely[(r >> 16) % sizeof(likely)] : (uint8_t)r;
		}
		start = yardstick_cpu_ns();
		results[run_with(n % 5 == 0, n & 1, insns, 1 + (size_t)n % sizeof(insns))]++;
		worst = MAX(worst, yardstick_cpu_ns() - start);
	}
	print_message("found %" PRIu64 ", root %" PRIu64 ", refused %" PRIu64 ", worst %" PRIu64
		      " us\n",
		      results[STEP_CALLER], results[STEP_ROOT], results[STEP_REFUSED],
		      worst / 1000);
	assert_true(results[STEP_CALLER] > 100);
	assert_true(results[STEP_REFUSED] > 100);
	assert_true(results[STEP_BEYOND] + results[STEP_BELOW] > 100);
}

int main(void)
{
	if (arch_native() != &arch_x86_64) {
		puts("not on this machine: x86-64");
		return 77;
	}
	return run_unit_tests(NULL, NULL);
}

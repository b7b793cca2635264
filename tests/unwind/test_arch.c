// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Register numbers: perf's order against the kernel's own header, DWARF's
 * against libunwind's, packing by mask, registers that the kernel did not save.
 */
#include "unwind/internal.h"

#include "tests/prelude.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <libunwind.h>
#include <stddef.h>
#include <sys/user.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"

TEST(test_native)
{
	const struct arch_ops *arch = arch_native();

	assert_non_null(arch);
	assert_true(arch == &arch_x86_64 || arch == &arch_aarch64);
}

#if defined(__aarch64__)
TEST(test_native_numbers)
{
	assert_int_equal(PERF_REG_ARM64_X0, UNW_AARCH64_X0);
	assert_int_equal(arch_aarch64.dwarf_of_perf[PERF_REG_ARM64_X29], UNW_AARCH64_X29);
	assert_int_equal(arch_aarch64.dwarf_of_perf[PERF_REG_ARM64_LR], UNW_AARCH64_X30);
	assert_int_equal(arch_aarch64.fp, UNW_AARCH64_X29);
	assert_int_equal(arch_aarch64.ra, UNW_AARCH64_X30);
	assert_int_equal(arch_aarch64.sp, UNW_AARCH64_SP);
	assert_int_equal(arch_aarch64.pc, UNW_AARCH64_PC);
	assert_int_equal(arch_aarch64.dwarf_of_perf[PERF_REG_ARM64_SP], UNW_AARCH64_SP);
	assert_int_equal(arch_aarch64.dwarf_of_perf[PERF_REG_ARM64_PC], UNW_AARCH64_PC);
}
#else
TEST(test_native_numbers)
{
	static const struct {
		unsigned int perf, dwarf;
	} pairs[] = {
		{ PERF_REG_X86_AX, UNW_X86_64_RAX },  { PERF_REG_X86_BX, UNW_X86_64_RBX },
		{ PERF_REG_X86_CX, UNW_X86_64_RCX },  { PERF_REG_X86_DX, UNW_X86_64_RDX },
		{ PERF_REG_X86_SI, UNW_X86_64_RSI },  { PERF_REG_X86_DI, UNW_X86_64_RDI },
		{ PERF_REG_X86_BP, UNW_X86_64_RBP },  { PERF_REG_X86_SP, UNW_X86_64_RSP },
		{ PERF_REG_X86_IP, UNW_X86_64_RIP },  { PERF_REG_X86_R8, UNW_X86_64_R8 },
		{ PERF_REG_X86_R9, UNW_X86_64_R9 },   { PERF_REG_X86_R10, UNW_X86_64_R10 },
		{ PERF_REG_X86_R11, UNW_X86_64_R11 }, { PERF_REG_X86_R12, UNW_X86_64_R12 },
		{ PERF_REG_X86_R13, UNW_X86_64_R13 }, { PERF_REG_X86_R14, UNW_X86_64_R14 },
		{ PERF_REG_X86_R15, UNW_X86_64_R15 },
	};
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(arch_x86_64.dwarf_of_perf[pairs[i].perf], pairs[i].dwarf);
		mask |= 1ULL << pairs[i].perf;
	}
	assert_int_equal(arch_x86_64.regs_mask, mask);
	assert_int_equal(arch_x86_64.pc, UNW_X86_64_RIP);
	assert_int_equal(arch_x86_64.sp, UNW_X86_64_RSP);
	assert_int_equal(arch_x86_64.fp, UNW_X86_64_RBP);
	assert_int_equal(arch_x86_64.machine, EM_X86_64);
}
#endif

/* The registers of ptrace(2) are packed as in a sample: by their offsets in the kernel's header. */
TEST(test_registers_of_ptrace)
{
	uint64_t user[UNWIND_USER_MAX], regs[UNWIND_REGS_MAX];
	const size_t size = sizeof(struct user_regs_struct);

	for (size_t i = 0; i < ARRAY_SIZE(user); i++)
		user[i] = 1000 + i;
	assert_true(unwind_regs_of_user(user, size, regs));
#if defined(__x86_64__)
#define USER(name) (1000 + offsetof(struct user_regs_struct, name) / 8)
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_RSP), USER(rsp));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_RIP), USER(rip));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_RBP), USER(rbp));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_RBX), USER(rbx));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_RAX), USER(rax));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_RDI), USER(rdi));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_R8), USER(r8));
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_X86_64_R15), USER(r15));
	/* Of a 32-bit program: 17 words of 4 bytes. */
	assert_false(unwind_regs_of_user(user, 68, regs));
#else
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_AARCH64_X29), 1029);
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_AARCH64_SP), 1031);
	assert_int_equal(unwind_register(regs, unwind_regs_mask(), UNW_AARCH64_PC), 1032);
	assert_false(unwind_regs_of_user(user, 72, regs));
#endif
}

TEST(test_aarch64_numbers)
{
	for (unsigned int i = 0; i < 33; i++)
		assert_int_equal(arch_aarch64.dwarf_of_perf[i], i);
	assert_int_equal(__builtin_popcountll(arch_aarch64.regs_mask), 33);
	assert_int_equal(arch_aarch64.ra, 30);
	assert_true(arch_aarch64.ra_in_register);
	/* A signed return address, stripped. */
	assert_true((0x002baaaad5541234ULL & ~arch_aarch64.ra_clear) == 0x0000aaaad5541234ULL);
}

/* DWARF numbers of x86-64. */
enum { RAX = 0, RBX = 3, RSP = 7, R8 = 8, R11 = 11, R12 = 12, R15 = 15, RIP = 16 };

TEST(test_load_is_packed_by_mask)
{
	const uint64_t mask = 1ULL << 1 | 1ULL << 7 | 1ULL << 9 | 1ULL << 16;
	const uint64_t words[] = { 0xb, 0x5, 0xf, 0x8 };
	struct arch_order order = { .arch = &arch_x86_64 };
	struct arch_frame f;
	char unaligned[sizeof(words) + 1];

	memcpy(unaligned + 1, words, sizeof(words));
	arch_load(&order, &f, mask, unaligned + 1);
	assert_int_equal(f.valid, 1ULL << RBX | 1ULL << RSP | 1ULL << R8);
	assert_int_equal(f.reg[RBX], 0xb);
	assert_int_equal(f.reg[RSP], 0x5);
	assert_int_equal(f.reg[R8], 0x8);
}

TEST(test_unsaved_registers_are_unavailable)
{
	uint64_t words[24];
	struct arch_order order = { .arch = &arch_x86_64 };
	struct arch_frame f = { .valid = 0 };

	memset(words, 0xff, sizeof(words));
	arch_load(&order, &f, arch_x86_64.regs_mask, words);
	assert_false(arch_has(&f, RBX));
	assert_false(arch_has(&f, R12));
	assert_false(arch_has(&f, R15));
	assert_true(arch_has(&f, RAX));
	assert_true(arch_has(&f, R11));
	arch_load(&order, &f, 0xffffff, words);
	assert_true(arch_has(&f, RIP));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

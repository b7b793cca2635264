// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * AArch64: "DWARF for the Arm 64-bit Architecture" (AADWARF64), section 4.1;
 * perf's order as in arch/arm64/include/uapi/asm/perf_regs.h (the same).
 */
#include "unwind/arch.h"

#include <elf.h>

static const uint8_t dwarf_of_perf[] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
};

const struct arch_ops arch_aarch64 = {
	.name = "aarch64",
	.machine = EM_AARCH64,
	.word = 8,
	.nr_regs = 33,
	.pc = 32,
	.sp = 31,
	.fp = 29,
	.ra = 30,
	.dwarf_max = 95, /* V31 */
	.ra_in_register = true,
	.regs_mask = 0x1ffffffffULL,
	.dwarf_of_perf = dwarf_of_perf,
	.nr_perf = sizeof(dwarf_of_perf),
	/* struct user_pt_regs has the same order: x0..x30, sp, pc. */
	.dwarf_of_user = dwarf_of_perf,
	.nr_user = 33,
	/* User addresses have 48 bits here; the signature is above them. */
	.ra_clear = 0xffff000000000000ULL,
	.nr_eh_data = 4,
	/*
	 * struct sigcontext: x0-x30, sp, pc, after siginfo (128), ucontext (176), fault_address
	 * (8).
	 */
	.java_bcp = ARCH_NO_REG,
	.sig_regs = dwarf_of_perf,
	.nr_sig_regs = sizeof(dwarf_of_perf),
	.sig_offset = 312,
	.call_reg = 8,
	.sig_call = 139,
};

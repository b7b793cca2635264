// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * x86-64: System V psABI, figure 3.36 "DWARF Register Number Mapping";
 * perf's order as in arch/x86/include/uapi/asm/perf_regs.h.
 */
#include "unwind/arch.h"

#include <elf.h>

#define NONE ARCH_NO_REG

/*
 * perf: AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8..R15
 * DWARF: RAX RDX RCX RBX RSI RDI RBP RSP R8..R15 RIP
 */
static const uint8_t dwarf_of_perf[] = {
	0,    3,    2,	  1,	4, 5, 6,  7,  16, NONE, NONE, NONE,
	NONE, NONE, NONE, NONE, 8, 9, 10, 11, 12, 13,	14,   15,
};

/* struct user_regs_struct: R15..R12 RBP RBX R11..R8 RAX RCX RDX RSI RDI ORIG_RAX RIP CS FLAGS RSP
 */
static const uint8_t dwarf_of_user[] = {
	15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, NONE, 16, NONE, NONE, 7,
};

/* struct sigcontext: R8..R15 RDI RSI RBP RBX RDX RAX RCX RSP RIP */
static const uint8_t sig_regs[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16 };

const struct arch_ops arch_x86_64 = {
	.name = "x86_64",
	.machine = EM_X86_64,
	.word = 8,
	.nr_regs = 17,
	.pc = 16,
	.sp = 7,
	.fp = 6,
	.ra = 16,
	.dwarf_max = 16,
	.regs_mask = 0xff01ff,
	.dwarf_of_perf = dwarf_of_perf,
	.nr_perf = sizeof(dwarf_of_perf),
	.dwarf_of_user = dwarf_of_user,
	.nr_user = sizeof(dwarf_of_user),
	/* rbx r12-r15: a sample taken by NMI inside the kernel does not have them. */
	.unavailable = 1ULL << 3 | 0xfULL << 12,
	.record_tells_sp = true,
	.java_bcp = 13, /* r13 */
	.sig_regs = sig_regs,
	.nr_sig_regs = sizeof(sig_regs),
	.sig_offset = 40, /* a ucontext: flags, link, stack_t */
	.call_reg = ARCH_NO_REG,
};

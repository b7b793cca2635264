// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Convert registers from perf's order to DWARF's; know the CPU of this machine.
 *
 * Any thread; no state. The only file of the project with conditional code for
 * CPUs.
 */
#include "unwind/internal.h"

#include <assert.h>
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

const struct arch_ops *arch_native(void)
{
#if defined(__x86_64__)
	return &arch_x86_64;
#elif defined(__aarch64__)
	return &arch_aarch64;
#else
	return NULL;
#endif
}

static void make_order(struct arch_order *o, uint64_t mask)
{
	*o = (struct arch_order){ .arch = o->arch, .mask = mask };
	for (uint8_t from = 0; mask; mask &= mask - 1, from++) {
		unsigned int perf = (unsigned int)__builtin_ctzll(mask);
		uint8_t reg = perf < o->arch->nr_perf ? o->arch->dwarf_of_perf[perf] : ARCH_NO_REG;

		if (reg == ARCH_NO_REG)
			continue;
		assert(o->nr < o->arch->nr_regs);
		o->kept[o->nr].from = from;
		o->kept[o->nr++].reg = reg;
		o->valid |= 1ULL << reg;
	}
}

void arch_load(struct arch_order *o, struct arch_frame *f, uint64_t mask, const void *regs)
{
	const uint8_t *p = regs;

	assert(o->arch && (regs || !mask));
	if (o->mask != mask)
		make_order(o, mask);
	f->valid = o->valid;
	for (uint32_t i = 0; i < o->nr; i++) {
		uint8_t reg = o->kept[i].reg;
		uint64_t value;

		memcpy(&value, p + sizeof(value) * o->kept[i].from, sizeof(value));
		if (value == UINT64_MAX && o->arch->unavailable >> reg & 1)
			f->valid &= ~(1ULL << reg);
		else
			f->reg[reg] = value;
	}
}

/*
 * x86-64: System V psABI, figure 3.36 "DWARF Register Number Mapping";
 * perf's order as in arch/x86/include/uapi/asm/perf_regs.h.
 */

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
	.red_zone = STACK_COPY_BELOW,
	.java_bcp = 13, /* r13 */
	.sig_regs = sig_regs,
	.nr_sig_regs = sizeof(sig_regs),
	.sig_offset = 40, /* a ucontext: flags, link, stack_t */
	.call_reg = ARCH_NO_REG,
};

/*
 * 32-bit processes of x86-64: System V psABI for i386, table 2.14; their samples have the registers
 * of x86-64 in perf's order, extended by zeros.
 */

/* DWARF: EAX ECX EDX EBX ESP EBP ESI EDI EIP */
static const uint8_t arch_i386_dwarf_of_perf[] = { 0, 3, 1, 2, 6, 7, 5, 4, 8 };

/* struct sigcontext_32 from edi on: EDI ESI EBP ESP EBX EDX ECX EAX, trapno, err, EIP */
static const uint8_t i386_sig_regs[] = { 7, 6, 5, 4, 3, 2, 1, 0, NONE, NONE, 8 };

const struct arch_ops arch_i386 = {
	.name = "i386",
	.machine = EM_386,
	.word = 4,
	.nr_regs = 9,
	.pc = 8,
	.sp = 4,
	.fp = 5,
	.ra = 8,
	.dwarf_max = 8,
	.dwarf_of_perf = arch_i386_dwarf_of_perf,
	.nr_perf = sizeof(arch_i386_dwarf_of_perf),
	.unavailable = 0,
	.record_tells_sp = true,
	.java_bcp = ARCH_NO_REG,
	.sig_regs = i386_sig_regs,
	.nr_sig_regs = sizeof(i386_sig_regs),
	.sig_offset = -12, /* from the word with ESP, in the table of the vdso */
	.call_reg = ARCH_NO_REG,
};

/*
 * AArch64: "DWARF for the Arm 64-bit Architecture" (AADWARF64), section 4.1;
 * perf's order as in arch/arm64/include/uapi/asm/perf_regs.h (the same).
 */

static const uint8_t arch_aarch64_dwarf_of_perf[] = {
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
	.dwarf_of_perf = arch_aarch64_dwarf_of_perf,
	.nr_perf = sizeof(arch_aarch64_dwarf_of_perf),
	/* struct user_pt_regs has the same order: x0..x30, sp, pc. */
	.dwarf_of_user = arch_aarch64_dwarf_of_perf,
	.nr_user = 33,
	/* User addresses have 48 bits here; the signature is above them. */
	.ra_clear = 0xffff000000000000ULL,
	.nr_eh_data = 4,
	/*
	 * struct sigcontext: x0-x30, sp, pc, after siginfo (128), ucontext (176), fault_address
	 * (8).
	 */
	.java_bcp = ARCH_NO_REG,
	.sig_regs = arch_aarch64_dwarf_of_perf,
	.nr_sig_regs = sizeof(arch_aarch64_dwarf_of_perf),
	.sig_offset = 312,
	.call_reg = 8,
	.sig_call = 139,
};

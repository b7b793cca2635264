/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differences between CPUs: register numbers and rules, as constants.
 *
 * Registers are kept in DWARF order (the psABI of each CPU); perf delivers them
 * packed in the order of asm/perf_regs.h. Every description compiles on every
 * host; arch_native() returns the one of this machine.
 *
 * Any thread: constants.
 */
#ifndef UNWIND_ARCH_H
#define UNWIND_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_REGS_MAX 33 /* most registers that are kept, with the pc */
#define ARCH_NO_REG   0xff

struct arch_ops {
	const char *name;	      /* as in uname(2) */
	uint16_t machine;	      /* e_machine */
	uint8_t word;		      /* bytes */
	uint8_t nr_regs;	      /* kept registers: DWARF numbers 0..nr_regs-1 */
	uint8_t pc, sp, fp;	      /* DWARF numbers */
	uint8_t ra;		      /* column of the return address */
	uint8_t dwarf_max;	      /* highest register number in CFI */
	bool ra_in_register;	      /* a call leaves the return address in ra, not in memory */
	uint64_t regs_mask;	      /* PERF_SAMPLE_REGS_USER */
	const uint8_t *dwarf_of_perf; /* by perf number; ARCH_NO_REG: not kept */
	uint8_t nr_perf;
	/* DWARF numbers of the words of NT_PRSTATUS, as ptrace(2) reads them. */
	const uint8_t *dwarf_of_user;
	uint8_t nr_user;
	uint64_t unavailable; /* DWARF registers: -1 means the kernel did not save it */
	uint64_t ra_clear;    /* bits of a return address that hold its signature (PAC) */
	bool record_tells_sp; /* a frame record is just below the caller's frame */
	/*
	 * __builtin_eh_return saves the registers 0 to nr_eh_data - 1 and no other register that a
	 * call may change; 0: unused.
	 */
	uint8_t nr_eh_data;
	/* The register with the bytecode pointer of HotSpot's interpreter; ARCH_NO_REG: unknown. */
	uint8_t java_bcp;
	/* Words that the kernel saves at sp + sig_offset for the return of a signal handler, in
	 * this order. */
	const uint8_t *sig_regs; /* DWARF numbers */
	uint8_t nr_sig_regs;
	uint16_t sig_offset;
	/* A register that has the number of a system call while the kernel executes it, and the
	 * number of rt_sigreturn(2); ARCH_NO_REG: perf samples no such register. */
	uint8_t call_reg, sig_call;
};

extern const struct arch_ops arch_x86_64, arch_aarch64;

/* Return the CPU of this machine; NULL if unknown. */
const struct arch_ops *arch_native(void);

/* Find a CPU by its e_machine or by its name in uname(2); NULL if unknown. */
const struct arch_ops *arch_of(uint16_t machine);
const struct arch_ops *arch_named(const char *name);

/* Registers of one frame. A value is known if its bit in @valid is set. */
struct arch_frame {
	uint64_t reg[ARCH_REGS_MAX];
	uint64_t valid;
};

static inline bool arch_has(const struct arch_frame *f, unsigned int reg)
{
	return f->valid >> reg & 1;
}

static inline void arch_set(struct arch_frame *f, unsigned int reg, uint64_t value)
{
	f->reg[reg] = value;
	f->valid |= 1ULL << reg;
}

/* Positions of the registers in samples of one mask; all zero but arch at first. */
struct arch_order {
	const struct arch_ops *arch;
	uint64_t mask;
	uint64_t valid; /* kept registers */
	uint32_t nr;
	struct {
		uint8_t from, reg;
	} kept[ARCH_REGS_MAX]; /* word of the sample, DWARF number */
};

/* Unpack the registers of a sample: @regs are popcount(@mask) words, may be unaligned. */
void arch_load(struct arch_order *o, struct arch_frame *f, uint64_t mask, const void *regs);

#endif

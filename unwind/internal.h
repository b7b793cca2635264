/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations for the files of unwind/ and their tests; no other room includes them. A struct
 * unwinder and its parts are owned by one sampler thread; the counters are read by any thread.
 */
#ifndef UNWIND_INTERNAL_H
#define UNWIND_INTERNAL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"
#include "unwind/unwind.h"

struct codemap;
struct codemap_code;
struct ehframe_fde;
struct image;
struct mapping;
struct object;
struct places;
struct space;
struct step;
struct unwind_input;
struct unwind_result;

/*
 * The differences between CPUs: register numbers and rules, as constants.
 *
 * Registers are kept in DWARF order (the psABI of each CPU); perf delivers them
 * packed in the order of <asm/perf_regs.h>. Every description compiles on every
 * host; arch_native() returns the one of this machine.
 *
 * Any thread: constants.
 */

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
	uint8_t red_zone;     /* bytes below sp that signal handlers leave alone */
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
	int16_t sig_offset;
	/* A register that has the number of a system call while the kernel executes it, and the
	 * number of rt_sigreturn(2); ARCH_NO_REG: perf samples no such register. */
	uint8_t call_reg, sig_call;
};

extern const struct arch_ops arch_x86_64, arch_aarch64, arch_i386;

/* Return the CPU of this machine; NULL if unknown. */
const struct arch_ops *arch_native(void);
/* Find a CPU by its e_machine; NULL if unknown. */
static inline const struct arch_ops *arch_of(uint16_t machine)
{
	return machine == arch_x86_64.machine	 ? &arch_x86_64
	       : machine == arch_aarch64.machine ? &arch_aarch64
						 : NULL;
}

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

/* Rows and rules of call frame information. */

#define CFI_INSNS_MAX (64u << 10) /* bytes of instructions in one FDE or CIE */

enum cfi_kind {
	CFI_ROW,     /* CFA = sp or fp + number, or from the word there; slots below the CFA */
	CFI_END,     /* the return address is undefined: the root */
	CFI_SWITCH,  /* so is sp: the stack goes on elsewhere */
	CFI_SIGNAL,  /* of i386: the caller's registers are around the word at sp + cfa_off */
	CFI_PLT,     /* of i386: CFA = sp + 4, and 4 more from byte cfa_off of each 16 on */
	CFI_COMPLEX, /* expressions, other registers, signal frames */
};

enum cfi_where {
	CFI_SAME,   /* still in its register */
	CFI_AT_CFA, /* in memory at CFA + offset */
	CFI_AT_FP,  /* of fp: in memory at fp + offset */
	CFI_LOST,   /* of fp: overwritten; the caller has it elsewhere, or does not need it */
};

struct cfi_row {
	uint8_t kind;			 /* enum cfi_kind; the rest is for CFI_ROW */
	bool cfa_is_fp;			 /* else sp */
	bool cfa_is_word;		 /* the CFA is the word at that address */
	bool cfa_is_above;		 /* one word above that */
	uint8_t ra_where, fp_where;	 /* enum cfi_where */
	uint8_t above;			 /* distance of the caller's sp from the CFA of the CFI */
	int32_t cfa_off, ra_off, fp_off; /* from the caller's sp */
};

enum cfi_doubt {
	CFI_SURE,
	CFI_EARLY,     /* may have been rewritten: libgcc's context in the frame shows it */
	CFI_DOUBTFUL,  /* may have been rewritten, by an unknown function */
	CFI_REWRITING, /* may have been rewritten, by libgcc */
	CFI_LEAVING,   /* the return address is the landing pad; sp is not set yet */
	CFI_LANDING,   /* the return address is the landing pad, not behind a call */
};

/* A row and the code that it is for. */
struct cfi_rule {
	uint64_t start, end; /* vaddrs, up to before @end */
	/*
	 * Hash of the instructions of CIE and FDE that made the row: the last ones for each of its
	 * registers, and whether any rule was restored. Overwritten instructions are left out.
	 * Places with equal programs have equal rows.
	 */
	uint64_t program;
	struct cfi_row row;
	bool sure; /* set by cfi_rule_at(): no frame is rewritten here */
};

static inline bool cfi_covers(const struct cfi_rule *rule, uint64_t pc)
{
	return pc - rule->start < rule->end - rule->start;
}

/*
 * Recent look-ups of an unwinder: (address space, address) -> mapping and place.
 * They spare most frames the search in the space and in the table of places.
 *
 * Used by one thread. Invariant: an entry has the results of space_find() and
 * places_intern(), and its mapping has not ended. A space never changes and serial
 * numbers are never used again, so an entry with the serial of the current space
 * points into that space, which the caller holds.
 */

#define RECENT_BITS 12

struct recent_entry {
	uint64_t pc, serial; /* serial 0: empty */
	const struct mapping *mapping;
	uint32_t place;
};

struct recent {
	struct recent_entry entries[1u << RECENT_BITS];
};

/* Return true if @e is valid for @pc at @time_ns. Before its mapping, space_find() is needed. */
static inline bool recent_answers(const struct recent_entry *e, uint64_t serial, uint64_t pc,
				  uint64_t time_ns)
{
	return e->pc == pc && e->serial == serial && e->mapping->birth_ns <= time_ns;
}

/*
 * The bytes of a user stack that the kernel copied into a sample, from sp upwards. Any thread: the
 * bytes are borrowed from the sample.
 */

struct stack_copy {
	uint64_t sp; /* address of the first byte */
	const uint8_t *bytes;
	uint64_t size; /* valid bytes */
	bool full;     /* the stack may continue beyond them */
	struct unwind_interrupted interrupted;
	/* Gets an address outside that a frame is found by, or below sp in the second copy; NULL:
	 * none */
	uint64_t *wanted;
};

/* Most bytes below sp that code may use (System V psABI of x86-64: the red zone). */
#define STACK_COPY_BELOW 128U

/* The usual limit of a stack (RLIMIT_STACK). */
#define STACK_COPY_GAP_MAX (8u << 20)

/*
 * Return true if @addr may be in the same stack behind a gap: the kernel copies no page that was
 * never used. A thread of Ruby has 1 MiB of such pages below its first functions. A function that
 * has not used its large frame yet has no copy at all.
 */
static inline bool stack_copy_gap(const struct stack_copy *d, uint64_t addr)
{
	uint64_t end = d->sp + d->size;

	return !d->full && (!d->size || !(end & 4095)) && addr - end < STACK_COPY_GAP_MAX;
}

/* Return the @size bytes at @addr of the second copy, of which parts may be bad; NULL: not there.
 */
static inline const uint8_t *stack_copy_second(const struct unwind_interrupted *in, uint64_t addr,
					       uint64_t size)
{
	struct lang_other_part part = { in->sp, in->size - MIN(in->rest, in->size) };
	const uint8_t *bytes = in->bytes;
	uint64_t left = MIN(in->rest, in->size);

	for (uint32_t i = 0; i < LANG_OTHER_PARTS; i++) {
		if (size <= part.size && addr - part.sp <= part.size - size)
			return bytes + (addr - part.sp);
		if (left < sizeof(part))
			break;
		bytes += part.size;
		memcpy(&part, bytes, sizeof(part));
		bytes += sizeof(part);
		left -= sizeof(part);
		part.size = MIN(part.size, left);
		left -= part.size;
	}
	return NULL;
}

/* Read the word at @addr; false outside the copy. */
static inline bool stack_copy_read(const struct stack_copy *d, uint64_t addr, uint64_t *value)
{
	const uint64_t at = addr - d->sp;
	const uint8_t *bytes;

	if (d->size >= sizeof(*value) && at <= d->size - sizeof(*value)) {
		bytes = d->bytes + at;
	} else {
		bytes = stack_copy_second(&d->interrupted, addr, sizeof(*value));
		if (!bytes)
			return false;
		if (d->wanted && d->sp - addr - 1 < STACK_COPY_BELOW)
			*d->wanted = addr;
	}
	memcpy(value, bytes, sizeof(*value));
	return true;
}

/* The same of a word of 4 bytes. */
static inline bool stack_copy_read32(const struct stack_copy *d, uint64_t addr, uint64_t *value)
{
	const uint64_t at = addr - d->sp;
	const uint8_t *bytes;
	uint32_t word;

	if (d->size >= sizeof(word) && at <= d->size - sizeof(word)) {
		bytes = d->bytes + at;
	} else {
		bytes = stack_copy_second(&d->interrupted, addr, sizeof(word));
		if (!bytes)
			return false;
	}
	memcpy(&word, bytes, sizeof(word));
	*value = word;
	return true;
}

/*
 * Guess the caller where there is no CFI: JIT code, hand-written assembly, Go,
 * 32-bit processes. Every frame found here is marked as guessed.
 *
 * A guess is accepted only if it reads inside the stack copy, the stack grows,
 * and the return address is in an executable mapping. Pure; sampler threads.
 */

struct fp_input {
	const struct arch_ops *arch;
	const struct stack_copy *copy;
	const struct space *space;
	uint64_t time_ns;
	uint8_t word;	      /* 8, or 4 in a 32-bit process */
	bool first;	      /* the innermost frame, or one that a signal interrupted */
	bool frames_kept;     /* all code here keeps frame pointers: use them first */
	bool called_from_any; /* JIT: callers may use fp for any value */
};

enum fp_result {
	FP_FOUND,  /* @f is the caller */
	FP_ROOT,   /* the chain ends here */
	FP_BEYOND, /* the chain continues beyond the stack copy */
	FP_NONE,   /* no guess is acceptable */
};

/* Return true if @pc may be a return address: the byte before it is code. */
bool fp_is_code(const struct fp_input *in, uint64_t pc);
/*
 * Replace @f by its caller: pc, sp and fp; all other registers become unknown.
 * Where a record does not give sp, the value is a lower bound and marked invalid.
 */
enum fp_result fp_step(const struct fp_input *in, struct arch_frame *f);

/*
 * The caller of a frame of JIT code with a layout that its runtime describes
 * (symbols/jit/jit.h): HotSpot's compiled code and interpreter.
 *
 * Compiled code: CFA = sp + 8 * frame_words, return address and frame pointer
 * just below (JDK source: frame_x86.cpp, x86_64.ad). Interpreter: method,
 * bytecode pointer and the caller's sp in slots below the frame pointer
 * (frame_x86.hpp). Pure; sampler threads.
 */

struct java_caller {
	bool found;
	bool guessed; /* the layout does not prove it */
	uint64_t pc, sp, fp;
	uint64_t method; /* interpreted by the frame itself; 0: none, or not certain */
};

/*
 * Find the caller of frame @f at @pc in @code of @map; in->first: innermost or interrupted.
 * @leaf: the innermost frame of Java, which calls a function of the JVM.
 */
struct java_caller java_step(const struct fp_input *in, const struct codemap *map,
			     const struct codemap_code *code, uint64_t pc,
			     const struct arch_frame *f, bool leaf);

/*
 * The rule of each place, in one word, shared by all sampler threads.
 *
 * Indexed by place id: finding the place finds its row. A place is (object,
 * offset), so a row serves every process. A rule is admitted only after libunwind
 * computed the same pc, sp and fp, at that pc or at another one with a rule made
 * by the same instructions (cfi_rule.program). libunwind's result depends on
 * nothing else, and functions begin and end in similar ways: of many thousand
 * places it unwinds some hundred.
 *
 * Lock-free: a row is one atomic word; relaxed order is enough, since no other
 * data is published by it. Two threads that fill the same row write the same
 * word. Memory: 8 bytes a place, reserved at set-up, allocated by the kernel page
 * by page; places beyond the end have no row and are unwound by libunwind each
 * time.
 */

enum row_kind {
	ROW_UNKNOWN, /* not read yet */
	ROW_SIMPLE,  /* apply */
	ROW_END,     /* the root */
	ROW_STEP,    /* libunwind each time */
	ROW_NO_CFI,  /* guess */
	ROW_REFUSED, /* refused by the gate */
	ROW_ENTRY,   /* no code, but a function begins after it: not a return from a call */
	ROW_SIGNAL,  /* a signal handler returns here: use the kernel's frame */
};

#define ROWS_PROGRAMS 16384 /* a power of two */

struct unwind_rows {
	_Atomic uint64_t *rows;
	uint32_t nr;
	_Atomic uint64_t
		programs[ROWS_PROGRAMS]; /* accepted by libunwind; old ones are overwritten */
};

/*
 * The word: bits 0-2 kind, 3 CFA is fp, 4 return address at CFA, 5 fp at CFA, 6
 * CFA is the word there, 7 the caller is a guess, 8 the row was derived from code, 9 CFA is above
 * that word, 10 fp at fp (with 5: fp is lost), 11-31 offset of the CFA (bytes), 32-47 of the return
 * address (4 bytes), 48-63 of fp (4 bytes).
 */
static inline enum row_kind row_kind(uint64_t row)
{
	return (enum row_kind)(row & 7);
}

#define ROW_GUESS   (1U << 7)
#define ROW_DERIVED (1U << 8)
/* Of ROW_END: the stack goes on elsewhere. */
#define ROW_SWITCH (1U << 3)

/* Return true if the row is to be applied, and the caller that it finds needs no proof. */
static inline bool row_is_certain(uint64_t row)
{
	return (row & (7 | ROW_GUESS | ROW_DERIVED)) == ROW_SIMPLE;
}

static inline bool row_cfa_is_fp(uint64_t row)
{
	return row >> 3 & 1;
}

static inline bool row_ra_at_cfa(uint64_t row)
{
	return row >> 4 & 1;
}

static inline bool row_fp_at_cfa(uint64_t row)
{
	return row >> 5 & 1;
}

static inline bool row_cfa_is_word(uint64_t row)
{
	return row >> 6 & 1;
}

static inline bool row_cfa_is_above(uint64_t row)
{
	return row >> 9 & 1;
}

static inline bool row_fp_at_fp(uint64_t row)
{
	return row >> 10 & 1;
}

/* Of one with row_fp_at_cfa(). */
static inline bool row_fp_is_lost(uint64_t row)
{
	return row_fp_at_fp(row);
}

static inline int64_t row_cfa_off(uint64_t row)
{
	return (int32_t)(uint32_t)row >> 11;
}

static inline int64_t row_ra_off(uint64_t row)
{
	return (int64_t)(int16_t)(row >> 32) * 4;
}

static inline int64_t row_fp_off(uint64_t row)
{
	return (int64_t)(int16_t)(row >> 48) * 4;
}

/* Return whether an offset of a slot fits. */
static inline bool row_packs(int32_t off)
{
	return off % 4 == 0 && off / 4 == (int16_t)(off / 4);
}

/* Pack a row: a word is either 0 or complete; ROW_STEP when its numbers do not fit. */
static inline uint64_t row_pack(const struct cfi_row *row)
{
	uint64_t word;

	if (row->kind == CFI_END)
		return ROW_END;
	if (row->kind == CFI_SWITCH)
		return ROW_END | ROW_SWITCH;
	if (row->kind != CFI_ROW || row->cfa_off < -(1 << 20) || row->cfa_off >= 1 << 20 ||
	    !row_packs(row->ra_off) || !row_packs(row->fp_off))
		return ROW_STEP;
	word = ROW_SIMPLE;
	word |= (uint64_t)row->cfa_is_fp << 3;
	word |= (uint64_t)(row->ra_where == CFI_AT_CFA) << 4;
	word |= (uint64_t)(row->fp_where == CFI_AT_CFA || row->fp_where == CFI_LOST) << 5;
	word |= (uint64_t)row->cfa_is_word << 6;
	word |= (uint64_t)row->cfa_is_above << 9;
	word |= (uint64_t)(row->fp_where == CFI_AT_FP || row->fp_where == CFI_LOST) << 10;
	word |= (uint64_t)((uint32_t)row->cfa_off << 11);
	word |= (uint64_t)(uint16_t)(row->ra_off / 4) << 32;
	word |= (uint64_t)(uint16_t)(row->fp_off / 4) << 48;
	assert(row_kind(word) == ROW_SIMPLE && row_cfa_off(word) == row->cfa_off);
	return word;
}

static inline uint64_t rows_get(const struct unwind_rows *t, uint32_t place)
{
	return place < t->nr ? atomic_load_explicit(&t->rows[place], memory_order_relaxed) : 0;
}

static inline void rows_put(struct unwind_rows *t, uint32_t place, uint64_t row)
{
	if (place < t->nr)
		atomic_store_explicit(&t->rows[place], row, memory_order_relaxed);
}

/* Return true if libunwind accepted a row of this program. */
static inline bool rows_proven(const struct unwind_rows *t, uint64_t program)
{
	return program && atomic_load_explicit(&t->programs[program & (ROWS_PROGRAMS - 1)],
					       memory_order_relaxed) == program;
}

static inline void rows_prove(struct unwind_rows *t, uint64_t program)
{
	atomic_store_explicit(&t->programs[program & (ROWS_PROGRAMS - 1)], program,
			      memory_order_relaxed);
}

/*
 * Unwind one frame by libunwind, over a remote address space made of a frame's
 * registers, the stack copy, and one object's .eh_frame.
 *
 * Code addresses given to libunwind are canonical: 1 << 62 | serial of the image
 * << 38 | vaddr. They are the same in every process, so one address space (and
 * its cache of rules) serves all processes of the machine. The look-up pc is
 * given as the current one (the instruction, or the call before a return
 * address), so that steps do not depend on each other and cached rules have one
 * meaning.
 *
 * Threads: one struct step per thread. libunwind takes a lock of its address
 * space and changes the signal mask in each step.
 */

enum step_result {
	STEP_CALLER,  /* @f is the caller */
	STEP_ROOT,    /* the return address is undefined, or 0 */
	STEP_REFUSED, /* refused by the gate */
	/* accepted by the gate, but of another CPU or at far addresses: libunwind cannot read it */
	STEP_NO_LIBUNWIND,
	STEP_BEYOND,	/* needs a word above the stack copy */
	STEP_GAP,	/* the same, and the copy ended at a page that was never used */
	STEP_BELOW,	/* needs a word below the stack copy */
	STEP_NEED_REGS, /* needs a register that is unknown */
	STEP_BUDGET,
	STEP_FAILED,
};

/* Return the result of a step that needs the word at @addr, outside @copy. */
static inline enum step_result step_outside(const struct stack_copy *copy, uint64_t addr)
{
	const bool below = addr < copy->sp;

	if (copy->wanted && (!below || copy->sp - addr > STACK_COPY_BELOW))
		*copy->wanted = addr;
	if (below)
		return STEP_BELOW;
	return stack_copy_gap(copy, addr) ? STEP_GAP : STEP_BEYOND;
}

struct step_input {
	const struct stack_copy *copy;
	const struct object *object;
	const struct image *image;
	const struct ehframe_fde *fde; /* covers vaddr */
	uint64_t vaddr;		       /* look-up pc */
	uint64_t pc_vaddr;	       /* pc */
	bool once;		       /* this vaddr is probably not looked up again */
	bool first;		       /* the innermost frame: slots below sp have been popped */
};

/* @arch of another CPU: libunwind reads none of its FDEs, STEP_NO_LIBUNWIND. */
int step_new(struct step **out, const struct arch_ops *arch, struct err *e);
void step_free(struct step *s);
/* Begin a sample: fill the budget. A second walk of the sample uses the rest. */
void step_begin(struct step *s);
/* The same within the allowance of process @pid at @time_ns. */
void step_begin_of(struct step *s, uint32_t pid, uint64_t time_ns);
/* End a sample: its reads are charged to the process. */
void step_end(struct step *s);
/* Spend budget on other work; false: there was less. */
bool step_spend(struct step *s, uint32_t cost);
/*
 * Check the FDE of @in by the gate: STEP_CALLER, or the reason that libunwind does not read it.
 * Results are cached; the first check costs budget.
 */
enum step_result step_gate(struct step *s, const struct step_input *in, bool *signal);
/* After step_gate(): return how far the CFI can be believed; callers found in doubt are guesses. */
enum cfi_doubt step_doubt(const struct step *s);
/*
 * Read the rule without libunwind; valid until the next call. Other results than STEP_CALLER:
 * STEP_REFUSED (unreadable), STEP_BUDGET. The last rule of an FDE is cached; others cost budget.
 */
enum step_result step_rule(struct step *s, const struct step_input *in,
			   const struct cfi_rule **rule);
/* Replace @f by its caller; pc as found on the stack. Only if step_gate() says STEP_CALLER. */
enum step_result step_frame(struct step *s, const struct step_input *in, struct arch_frame *f);

/*
 * Find the caller of a function that is replacing its frame
 * (__builtin_eh_return): libgcc on its way to the frame that catches an
 * exception.
 *
 * Its CFI describes the old frame, but the slots may hold the registers of the
 * new one. Pure; sampler threads.
 */

/*
 * x86-64: correct @to, the caller by CFI. If the return address was already
 * overwritten, set sp to the sp of the frame that catches; else restore fp if it
 * was overwritten and its source is found. @from is the frame of the function.
 * The result is a guess.
 */
void landing_pad_undo(const struct fp_input *in, const struct arch_frame *from,
		      struct arch_frame *to);
/*
 * Return true if @to, the caller of @from at @depth (1: the innermost frame), is certain: by the
 * contexts that libgcc keeps in the frame.
 *
 * AArch64, where a called function writes: one has the original CFA and return address. Set @to to
 * that caller; an fp that may be overwritten becomes unknown.
 *
 * x86: they show whether the return address was overwritten, and of which frame it is then. It is
 * overwritten last: where the frame pointer may be without it, and is the same in both frames or
 * lost, @to becomes the frame that catches. If false, @to is not changed.
 */
bool landing_pad_check(const struct fp_input *in, enum cfi_doubt doubt, unsigned int depth,
		       const struct arch_frame *from, struct arch_frame *to);

#define WALK_TRIED 1024 /* a power of two */

/*
 * Results of a frame other than the reasons to stop: go on; apply the row, which
 * is known now; walk the stack again without rows (the only one that walk_stack()
 * returns).
 */
enum { WALK_ON = UNWIND_NR_STOPS, WALK_AGAIN, WALK_REDO };

/* Written by the owning thread, read by any (relaxed; each is independent). */
struct walk_counters {
	atomic_ullong samples, frames, guessed, stop[UNWIND_NR_STOPS];
	atomic_ullong row_hits, steps, rows, rows_differ, redone, verified, verify_differ;
};

struct unwinder {
	const struct arch_ops *arch;
	struct places *places;
	uint32_t serial; /* of the places */
	struct step *step;
	struct unwind_rows *rows;
	struct arch_order order; /* order of the registers in recent samples */
	/* The same three of 32-bit processes; exchanged with them at their samples. */
	struct {
		const struct arch_ops *arch; /* NULL: not on this CPU */
		struct step *step;
		struct arch_order order;
	} other;
	bool own_rows, step_only, allowance, ask_calls;
	uint32_t verify_every, verify_in;
	uint32_t tried[WALK_TRIED];   /* ids of recent places that libunwind unwound */
	struct unwind_result scratch; /* result of a verification */
	_Alignas(CACHELINE) struct recent recent;
	_Alignas(CACHELINE) struct walk_counters count;
};

static inline void unwinder_count(atomic_ullong *c, uint64_t n)
{
	/* One writer: a plain add, without the cost of a locked one. */
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* The walk over one stack, on the sampler thread that owns the unwinder. */

/*
 * Walk from frame to frame until there is a reason to stop. Return the reason, or
 * with @rows WALK_REDO (a row dropped a register that libunwind needs: walk again
 * without).
 */
int walk_stack(struct unwinder *u, const struct unwind_input *in, struct unwind_result *out,
	       bool rows);

#endif

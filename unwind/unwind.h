/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers + stack bytes + address space -> places: the frames of one user stack.
 *
 * The caller owes: one struct unwinder per thread, which is a registered urcu-qsbr reader and
 * passes no quiescent state inside unwind_sample(); registers and stack as perf_event_open(2)
 * samples them (PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER), borrowed during the call; a space
 * that it holds.
 *
 * The room does: find the caller of each frame by a cached row; at a new place, and where no row
 * is enough, by libunwind, over registers, stack copy and .eh_frame bytes of the object, after each
 * FDE has passed the gate (cfi.c); in code of Java and V8 by its layout; else by a guess (return
 * address, frame pointer), which is marked. Code addresses given to libunwind are the same in all
 * processes (object id and vaddr), so that one address space per thread serves all. Each sample
 * has a budget of memory reads. Frames of scripts are interleaved with native ones.
 *
 * Not for: names of places (symbols/name), reading memory or files: unwind_sample() takes no lock,
 * opens no file and makes no system call.
 */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

struct lang_process;
struct lang_slot;
struct objects;
struct places;
struct script_functions;
struct space;
struct unwind_rows;
struct unwinder;

/* The input of one walk over a stack, and its result: frames, and the reason to stop. */

/* Most frames of a user stack (perf's kernel.perf_event_max_stack is 127). */
#define UNWIND_FRAMES_MAX 512

/* Why a stack ended. Each sample has exactly one reason. */
enum unwind_stop {
	UNWIND_COMPLETE,    /* the root: undefined return address, pc 0, or a known entry */
	UNWIND_NO_USER,	    /* no user stack: kernel thread */
	UNWIND_TRUNCATED,   /* the next frame is beyond the stack copy */
	UNWIND_DEPTH,	    /* UNWIND_FRAMES_MAX reached */
	UNWIND_PENDING,	    /* process or object not loaded yet */
	UNWIND_NO_MAP,	    /* pc outside all mappings */
	UNWIND_NO_CFI,	    /* no CFI and no acceptable guess */
	UNWIND_CFI_REFUSED, /* the gate refused the FDE */
	UNWIND_BAD_FRAME,   /* libunwind failed, or the stack did not grow */
	UNWIND_BUDGET,	    /* too many memory reads, of the sample or of its process */
	UNWIND_BAD_REGS,    /* registers missing or unusable */
	UNWIND_OUTSIDE,	    /* user code of a task outside our PID namespace */
	UNWIND_GAP,	    /* truncated: the copy ended at a page that was never used */
	UNWIND_SWITCHED,    /* truncated: the stack goes on elsewhere, in no copy */
	UNWIND_PROBE,	    /* the return address is that of a return probe (uprobes) */
	UNWIND_NO_CALL,	    /* the address found without tables is not behind a call */
	UNWIND_NR_STOPS,
};

/*
 * A second copy of a stack: of the one that a signal handler on another stack interrupted, of the
 * one that a function has left for the sampled one, or of the sampled one around the kernel's copy.
 */
struct unwind_interrupted {
	uint64_t sp; /* address of the first byte; with @from, of the return address */
	const uint8_t *bytes;
	size_t size;   /* 0: none */
	uint64_t from; /* stack pointer of the function that has left it; 0: a handler, or the same
			  stack */
	bool guessed;  /* it may be another one by now */
	size_t rest;   /* of @size, the last: parts of the same stack, each a struct lang_other_part
			  with its bytes */
};

/* Borrowed from the record in the ring. */
struct unwind_input {
	const uint64_t *regs; /* packed in mask order; may be unaligned: read with memcpy */
	uint64_t regs_mask;   /* PERF_SAMPLE_REGS_USER mask */
	uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_{NONE,32,64} */
	const uint8_t *stack; /* from sp upwards */
	size_t stack_size;    /* valid bytes: min(dyn_size, size) */
	bool stack_full;      /* dyn_size == size: the stack may continue beyond the copy */
	const struct space *space;
	uint64_t time_ns;
	uint32_t pid;			 /* shares one allowance of reads among its samples */
	const struct lang_process *v8;	 /* V8 in the process; NULL: none */
	const struct lang_process *ruby; /* the same of Ruby */
	struct unwind_interrupted interrupted;
};

/* A frame in code of V8, by its index, with the frame pointer in it. */
struct unwind_v8 {
	uint64_t fp;
	uint64_t on_top; /* of the innermost frame: a return address into V8's code; 0: none */
	uint32_t frame;
	bool compiled;	 /* a function's own code; no builtin */
	bool javascript; /* at the frame pointer is a frame of JavaScript */
};

struct unwind_result {
	uint32_t nr;	     /* frames, innermost first */
	uint32_t nr_guessed; /* of these, guessed */
	uint32_t guessed_by; /* if there are any: the frame with the first guessed caller */
	enum unwind_stop stop;
	/* Truncated: an address in the stack outside its copies, or below sp; 0: not known. */
	uint64_t wanted;
	bool asked;	 /* something is being read: wake the loader after the batch, walk again */
	bool maps_stale; /* pc outside all mappings: call maps_ask() */
	uint32_t place[UNWIND_FRAMES_MAX];
	/* Look-up pcs, as perf script prints them: the pc, then return addresses minus one. */
	uint64_t ip[UNWIND_FRAMES_MAX];
	/* The stack pointer in each frame; the next one's is this one's CFA. 0: not known. */
	uint64_t sp[UNWIND_FRAMES_MAX];
	uint32_t nr_v8, nr_v8_guessed; /* guessed: also in nr_guessed */
	struct unwind_v8 v8[UNWIND_FRAMES_MAX];
	uint32_t nr_loop_guessed; /* in nr_guessed: the loop of Ruby, of compiled code */
	uint32_t nr_java;	  /* frames of Java methods, inlined ones aside */
	bool new_code;		  /* it ends in JIT code that was not read yet */
	bool unread_code;	  /* of a runtime whose other code was read */
	bool probed;		  /* a return probe was passed: the caller there is a guess */
	bool fiber;		  /* complete: the stack was started by hand, not the thread's */
};

/* Counted over the life of the unwinder; read by any thread (relaxed). */
struct unwind_stats {
	uint64_t nr_samples, nr_frames, nr_guessed;
	uint64_t nr_stop[UNWIND_NR_STOPS];
	uint64_t nr_row_hits;	   /* frames by a cached row */
	uint64_t nr_steps;	   /* frames by libunwind */
	uint64_t nr_rows;	   /* rows admitted */
	uint64_t nr_rows_differ;   /* rows not admitted: libunwind had another result */
	uint64_t nr_redone;	   /* samples walked again: a row had dropped a register */
	uint64_t nr_verified;	   /* samples also unwound by libunwind alone */
	uint64_t nr_verify_differ; /* of these, with another result */
};

/* Create rows for the places 0..@max_places-1; memory is allocated as it is used. 0 or -ENOMEM. */
int unwind_rows_new(struct unwind_rows **out, uint32_t max_places);
/* Create rows for another table of places, without any; accepted programs as in @old. */
int unwind_rows_renew(struct unwind_rows **out, const struct unwind_rows *old);
/* Use the row of @place in @from, if there is one, for @to_place. Any thread. */
void unwind_rows_move(struct unwind_rows *to, uint32_t to_place, const struct unwind_rows *from,
		      uint32_t place);
void unwind_rows_free(struct unwind_rows *rows);

struct unwind_config {
	bool step_only;		  /* use libunwind for every frame: no rows */
	uint32_t verify_every;	  /* verify one sample in N by libunwind alone; 0: none */
	struct unwind_rows *rows; /* NULL: private ones */
	uint16_t machine;	  /* e_machine of the recording; 0: this machine */
	bool allowance; /* limit libunwind's reads for one process, and for all (libunwind_step) */
	bool ask_calls; /* callers found without tables have to be behind a call: call_ask() */
};

/*
 * Create an unwinder; both tables are borrowed; @config may be NULL (all zero). 0
 * or -errno with a sentence.
 */
int unwind_new_with(struct unwinder **out, struct places *places, struct objects *objects,
		    const struct unwind_config *config, struct err *e);
/*
 * Use other tables from now on; the ones before may be freed already. False: it uses these. Not of
 * an unwinder with private rows.
 */
bool unwind_use(struct unwinder *u, struct places *places, struct unwind_rows *rows);
void unwind_free(struct unwinder *u);
void unwind_sample(struct unwinder *u, const struct unwind_input *in, struct unwind_result *out);
void unwind_stats(const struct unwinder *u, struct unwind_stats *out);
/* Return the reason as the ledger shows it: "truncated", "no unwind tables". */
const char *unwind_stop_name(enum unwind_stop stop);
/*
 * Return the e_machine of a CPU by its name in uname(2); 0 if its stacks cannot
 * be unwound. Stacks of another CPU than this one are unwound by CFI alone.
 */
uint16_t unwind_machine(const char *name);
/* Get the stack pointer from packed registers, which may be unaligned; false: it is not there. */
bool unwind_stack_pointer(const void *regs, uint64_t regs_mask, uint64_t *sp);
/* Get a register by its DWARF number, as above; 0: it is not there. */
uint64_t unwind_register(const void *regs, uint64_t regs_mask, unsigned int number);
/* Return the registers to sample on this machine (PERF_SAMPLE_REGS_USER mask). */
uint64_t unwind_regs_mask(void);

/* Most words of registers in that mask, and of NT_PRSTATUS. */
#define UNWIND_REGS_MAX 33
#define UNWIND_USER_MAX 64

/*
 * Pack the registers of a stopped task, @size bytes of NT_PRSTATUS (ptrace(2)), as in a sample with
 * unwind_regs_mask(). False: too few.
 */
bool unwind_regs_of_user(const uint64_t *user, size_t size, uint64_t regs[static UNWIND_REGS_MAX]);
/* The same of the stack pointer and the pc alone, in this order. */
uint64_t unwind_regs_mask_of_stack(void);

/*
 * Native frames and frames of an interpreter's language -> one stack.
 *
 * Each C frame of the interpreter's loop runs a group of frames of the
 * language, innermost first; the k-th group belongs to the k-th C frame. The
 * group is put behind (outside of) its C frame. Pure; hostile numbers.
 */

#define INTERLEAVE_FRAMES_MAX (UNWIND_FRAMES_MAX + 256U)
/* In a merged frame: the rest is the index of a language frame, else of a native one. */
#define INTERLEAVE_LANG (1U << 31)

enum interleave_verdict {
	INTERLEAVE_CERTAIN,
	INTERLEAVE_GUESSED,
	INTERLEAVE_NONE, /* they do not fit: the native frames alone */
};

/* Why a result is a guess: bits. */
enum interleave_doubt {
	INTERLEAVE_CUT = 1 << 0,       /* the native stack is not whole, or has guesses */
	INTERLEAVE_UNALIGNED = 1 << 1, /* groups and C frames of the loop do not match one to one */
	INTERLEAVE_ENTERING = 1 << 2,  /* the loop may not have stored its frame yet */
	INTERLEAVE_LATE = 1 << 3,      /* other threads may have run between sample and read */
	INTERLEAVE_BROKEN = 1 << 4,    /* frames are not in order on their stack */
	INTERLEAVE_CHANGED = 1 << 5,   /* the stack was not that of the sample any more */
	INTERLEAVE_UNTRIED = 1 << 6,   /* a version that was never compared with the truth */
};

#define INTERLEAVE_DOUBTS 7

struct interleave_result {
	enum interleave_verdict verdict;
	uint32_t doubts;
	bool deep; /* there are more frames of the language; native ones beyond them are left out */
	bool whole; /* the root is the language's: the end of the native stack says nothing */
	uint32_t nr;
	uint32_t frame[INTERLEAVE_FRAMES_MAX];
	uint64_t place[INTERLEAVE_FRAMES_MAX]; /* of frames of a language: lang_place() */
};

/*
 * @native as it was unwound. Certain: both stacks are whole, each group is in its C frame, all
 * checks of the slot held, and the stack was that of the sample beyond the innermost C frame of
 * the loop.
 */
void interleave_stacks(const struct lang_process *p, const struct unwind_result *native,
		       const struct lang_slot *slot, struct interleave_result *out);
/*
 * The same for V8: each frame of JavaScript is that of the native frame with its frame pointer;
 * compiled code is replaced by its function and inlined ones, as the table of the code in
 * @codes has them, a builtin keeps its name and is put before it.
 * Certain: the native stack is whole, each frame of JavaScript in it was read, all checks held,
 * the stack was that of the sample beyond the innermost of them, and the sampled code is known to
 * be in the body of its function.
 */
void interleave_v8(const struct lang_process *p, const struct script_functions *codes,
		   const struct unwind_result *native, const struct lang_slot *slot,
		   struct interleave_result *out);

#endif

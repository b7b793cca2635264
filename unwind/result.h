/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input of one walk over a stack, and its result: frames, and the reason to stop.
 */
#ifndef UNWIND_RESULT_H
#define UNWIND_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct space;
struct lang_process;

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
	UNWIND_NR_STOPS,
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
	uint32_t pid;		       /* shares one allowance of reads among its samples */
	const struct lang_process *v8; /* V8 in the process; NULL: none */
};

/* A frame in code of V8, by its index, with the frame pointer in it. */
struct unwind_v8 {
	uint64_t fp;
	uint32_t frame;
	bool compiled;	 /* a function's own code; no builtin */
	bool javascript; /* at the frame pointer is a frame of JavaScript */
};

struct unwind_result {
	uint32_t nr;	     /* frames, innermost first */
	uint32_t nr_guessed; /* of these, guessed */
	uint32_t guessed_by; /* if there are any: the frame with the first guessed caller */
	enum unwind_stop stop;
	bool asked;	 /* a new object was requested: wake the loader after the batch */
	bool maps_stale; /* pc outside all mappings: call maps_ask() */
	uint32_t place[UNWIND_FRAMES_MAX];
	/* Look-up pcs, as perf script prints them: the pc, then return addresses minus one. */
	uint64_t ip[UNWIND_FRAMES_MAX];
	/* The stack pointer in each frame; the next one's is this one's CFA. 0: not known. */
	uint64_t sp[UNWIND_FRAMES_MAX];
	uint32_t nr_v8, nr_v8_guessed; /* guessed: also in nr_guessed */
	struct unwind_v8 v8[UNWIND_FRAMES_MAX];
	uint32_t nr_java; /* frames of Java methods, inlined ones aside */
	bool new_code;	  /* it ends in JIT code that was not read yet */
	bool unread_code; /* of a runtime whose other code was read */
};

#endif

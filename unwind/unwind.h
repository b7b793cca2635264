/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers + stack bytes + address space -> places.
 *
 * The caller of a frame is computed by a cached row (rows.h); at a new place, and where no row can
 * say it, by libunwind, over a remote address space made of the sample's registers, its stack copy,
 * and the object's .eh_frame bytes; code addresses given to it are the same in all processes
 * ("canonical": object id and vaddr), so that one address space per thread serves all processes.
 * Each FDE passes the gate (cfi.h) before libunwind reads it, and each sample has a budget of
 * memory reads. Where there is no CFI, the caller is guessed by return address or frame pointer,
 * and the frame is marked as guessed.
 *
 * Threads: one struct unwinder per thread; the thread is a registered urcu-qsbr
 * reader and passes no quiescent state inside unwind_sample(), which takes no
 * lock, opens no file and makes no system call.
 */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/process/maps.h"
#include "symbols/name/places.h"
#include "unwind/result.h"

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

/* Cached rules, shared by the unwinders of all threads. Must outlive them. */
struct unwind_rows;

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
};

struct unwinder;

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

#endif

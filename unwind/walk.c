// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loop over the frames of one stack, until there is a reason to stop.
 *
 * Runs on the sampler thread that owns the unwinder. Invariant: there are at most
 * UNWIND_FRAMES_MAX frames, so a walk ends.
 */
#include "unwind/internal.h"

#include <assert.h>
#include <elf.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/process/process.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/jit/jit.h"
#include "symbols/name/name.h"

/*
 * The caller of a frame of V8's code: compiled functions and builtins, which have
 * no CFI but keep the frame pointer (V8 source: frame-constants.h).
 *
 * A frame that has made a call has a record at its frame pointer. The innermost
 * one may have none: builtins such as the handlers of bytecodes leave it out, and
 * functions make it and leave it. Pure; sampler threads.
 */

/* Return true if the code at @offset of @m's object is V8's; @p: of the process. */
static bool v8_is_code(const struct lang_process *p, const struct mapping *m, uint64_t offset)
{
	const struct object *object = m->object;

	if (object->identity.kind == OBJECT_ANON)
		return m->exec;
	/* Relaxed: set once, before the process has a description. */
	return atomic_load_explicit(&object->interpreter, memory_order_relaxed) &&
	       offset - p->code_offset < p->code_size;
}

/* Return whether @pc is a return address into V8's code. */
static bool returns_to(const struct fp_input *in, const struct lang_process *p, uint64_t pc)
{
	const struct mapping *m = pc ? space_find(in->space, pc - 1, in->time_ns) : NULL;

	return m && v8_is_code(p, m, m->offset + (pc - 1 - m->start));
}

/* Read the record {caller's frame pointer, return address} at @at. */
static bool read_record(const struct fp_input *in, uint64_t at, uint64_t *fp, uint64_t *pc)
{
	return stack_copy_read(in->copy, at, fp) && stack_copy_read(in->copy, at + 8, pc) &&
	       fp_is_code(in, *pc);
}

/* Find the caller of an innermost frame that has no record (yet). */
static bool find_on_top(const struct fp_input *in, const struct lang_process *p, bool compiled,
			uint64_t sp, uint64_t *fp, uint64_t *pc, uint64_t *caller_sp)
{
	uint64_t top, next;

	if (!stack_copy_read(in->copy, sp, &top))
		return false;
	/* Behind the first instruction: the frame pointer is pushed. */
	if (top == *fp && stack_copy_read(in->copy, sp + 8, &next) && returns_to(in, p, next)) {
		*pc = next;
		*caller_sp = sp + 16;
		return true;
	}
	if (compiled || !returns_to(in, p, top))
		return false;
	*pc = top;
	*caller_sp = sp + 8;
	return true;
}

/*
 * Replace @f by its caller; false: there is none. in->first: the innermost frame; then *guessed.
 * @compiled: it is in memory, no builtin.
 */
static bool v8_step(const struct fp_input *in, const struct lang_process *p, bool compiled,
		    struct arch_frame *f, bool *guessed)
{
	const struct arch_ops *arch = in->arch;
	uint64_t fp = f->reg[arch->fp], sp = f->reg[arch->sp], caller_fp, pc, caller_sp = fp + 16;

	*guessed = in->first;
	if (!arch_has(f, arch->fp) || !arch_has(f, arch->sp))
		return false;
	caller_fp = fp;
	if (!in->first || !find_on_top(in, p, compiled, sp, &caller_fp, &pc, &caller_sp)) {
		if (fp < sp || fp & 7 || !read_record(in, fp, &caller_fp, &pc))
			return false;
		caller_sp = fp + 16;
	}
	f->valid = 0;
	arch_set(f, arch->pc, pc);
	arch_set(f, arch->sp, caller_sp);
	arch_set(f, arch->fp, caller_fp);
	return true;
}

/* Return true if the frame at @fp is one of JavaScript: with a function and its context. */
static bool v8_is_javascript(const struct fp_input *in, const struct lang_process *p, uint64_t fp)
{
	uint64_t context, function;

	return stack_copy_read(in->copy, fp + (uint64_t)(int64_t)p->v8.number[V8_FP_CONTEXT],
			       &context) &&
	       stack_copy_read(in->copy, fp + (uint64_t)(int64_t)p->v8.number[V8_FP_FUNCTION],
			       &function) &&
	       (context & 3) == 1 && (function & 3) == 1;
}

/*
 * Find the caller of a frame by its row: most frames are found so.
 *
 * Inline, on the sampler thread. A row uses three registers, so a frame is only
 * these as long as row follows row.
 */

/* Return true if @place has a row in the table. */
static inline bool rows_hold(const struct unwind_rows *t, uint32_t place)
{
	return place < t->nr;
}

/* Frames from the innermost one that are searched: such a function calls few others. */
#define LANDING_PAD_FRAMES 3

static inline struct recent_entry *recent_slot(struct recent *r, uint64_t serial, uint64_t pc)
{
	return &r->entries[(pc ^ serial << 32) * 0x9e3779b97f4a7c15ULL >> (64 - RECENT_BITS)];
}

struct row_frame {
	uint64_t pc, sp, fp;
	uint64_t ra; /* return address, if calls leave it in a register */
	bool has_sp, has_fp, has_ra;
};

static inline struct row_frame apply_begin(const struct arch_ops *arch, const struct arch_frame *f)
{
	return (struct row_frame){
		.pc = f->reg[arch->pc],
		.sp = f->reg[arch->sp],
		.fp = f->reg[arch->fp],
		.ra = f->reg[arch->ra],
		.has_sp = arch_has(f, arch->sp),
		.has_fp = arch_has(f, arch->fp),
		.has_ra = arch_has(f, arch->ra),
	};
}

/* Set @f to a caller found by rows; all other registers are unknown. */
static inline void apply_end(const struct row_frame *from, const struct arch_ops *arch,
			     struct arch_frame *f)
{
	f->valid = 0;
	arch_set(f, arch->pc, from->pc);
	arch_set(f, arch->sp, from->sp);
	if (from->has_fp)
		arch_set(f, arch->fp, from->fp);
}

/* Read a word of @arch. */
static inline bool read_slot(const struct arch_ops *arch, const struct stack_copy *copy,
			     uint64_t addr, uint64_t *value)
{
	return arch->word == 4 ? stack_copy_read32(copy, addr, value)
			       : stack_copy_read(copy, addr, value);
}

/*
 * Replace @f by its caller according to @row (ROW_SIMPLE). Results other than
 * STEP_CALLER and STEP_ROOT leave @f unchanged. @first: the innermost frame, which
 * may have popped slots below sp.
 */
static inline __attribute__((always_inline)) enum step_result
apply_row(uint64_t row, const struct arch_ops *arch, const struct stack_copy *copy, bool first,
	  struct row_frame *f)
{
	uint64_t cfa = (row_cfa_is_fp(row) ? f->fp : f->sp) + (uint64_t)row_cfa_off(row);
	uint64_t pc = f->ra;

	if (!(row_cfa_is_fp(row) ? f->has_fp : f->has_sp) || (!row_ra_at_cfa(row) && !f->has_ra))
		return STEP_NEED_REGS;
	if (row_cfa_is_word(row)) {
		uint64_t at = cfa;

		if (!read_slot(arch, copy, at, &cfa))
			return step_outside(copy, at);
		cfa += row_cfa_is_above(row) ? arch->word : 0;
	}
	if (row_ra_at_cfa(row) && !read_slot(arch, copy, cfa + (uint64_t)row_ra_off(row), &pc))
		return step_outside(copy, cfa + (uint64_t)row_ra_off(row));
	if (row_fp_at_cfa(row) && row_fp_is_lost(row)) {
		f->has_fp = false;
	} else if (row_fp_at_cfa(row) || (row_fp_at_fp(row) && f->has_fp)) {
		uint64_t slot = (row_fp_at_fp(row) ? f->fp : cfa) + (uint64_t)row_fp_off(row);

		/* In frame 0 a slot below sp has been popped: the register has the value again. */
		if (read_slot(arch, copy, slot, &f->fp))
			f->has_fp = true;
		else if (!first || slot >= copy->sp)
			f->has_fp = false;
	}
	f->pc = pc & ~arch->ra_clear;
	f->sp = cfa;
	f->has_sp = true;
	f->has_ra = false;
	return f->pc ? STEP_CALLER : STEP_ROOT;
}

/*
 * Find the caller of one frame: by its row first, then by the CFI of the object and libunwind, or
 * by the layout of Java's or V8's code; a guess is last. Invariant: sp grows with each frame except
 * across a signal frame.
 */

/* The state of one walk over a stack. Everything in it is borrowed from the caller of walk_stack().
 */
struct walk {
	struct unwinder *u;
	const struct unwind_input *in;
	struct unwind_result *out;
	struct stack_copy copy;
	const struct mapping *mapping; /* of the current frame */
	uint64_t serial;	       /* of the space */
	uint64_t pc;		       /* look-up pc of the current frame */
	uint64_t offset;	       /* of pc in its object */
	uint32_t place;
	uint32_t row_hits, steps;
	uint32_t clock;	     /* time stamp for object_touch() */
	uint8_t rewrites;    /* frames that may have been rewritten */
	uint8_t word;	     /* of the process: 8 or 4 */
	bool exact;	     /* pc is the instruction itself, not a return address */
	bool guessed;	     /* the current frame was found by a guess */
	bool ended;	     /* the current frame has no caller */
	bool crossed;	     /* a signal frame was passed: this may be another stack */
	bool away;	     /* a table has led to a stack below the sampled one */
	bool dropped;	     /* rows have dropped registers that a step may need */
	bool rows;	     /* use them */
	bool unproven;	     /* the current frame was found without tables */
	bool by_memory;	     /* ... by a table that has its stack pointer in memory */
	bool loop;	     /* ... as the loop of Ruby */
	bool likely;	     /* ... by a guess, and the frame pointer of @below may be another */
	bool by_register;    /* the current frame calls by register, perhaps another function */
	uint64_t expected;   /* the pc of the next frame, if the current one is right; 0: any */
	struct arch_frame f; /* the current frame; last, since it is loaded, not cleared */
	struct arch_frame below;
};

/* Add the current frame to the result; not beyond UNWIND_FRAMES_MAX. */
static inline void caller_add_frame(struct walk *w, uint64_t pc, uint64_t sp, uint32_t place,
				    const struct mapping *mapping)
{
	struct unwind_result *out = w->out;

	assert(out->nr < UNWIND_FRAMES_MAX);
	if (mapping)
		object_touch(mapping->object, w->clock);
	out->ip[out->nr] = pc;
	out->sp[out->nr] = sp;
	out->place[out->nr++] = place;
}

/* Return the recent look-up of @pc in this space, or NULL. */
static inline const struct recent_entry *caller_recent(const struct walk *w, uint64_t pc)
{
	const struct recent_entry *r = recent_slot(&w->u->recent, w->serial, pc);

	return recent_answers(r, w->serial, pc, w->in->time_ns) ? r : NULL;
}

/* Segments of a file: the number that is searched for free, and the number that costs one read. */
#define SEGMENTS_FREE 64

#define SEGMENTS_A_READ 4

/* Words above a return address of 0 among which the true one may be. */
#define ABOVE_ROOT 4U

/* Largest copy of a stack: no other has the words above it. */
#define COPY_MAX (64U << 10)

/* Return true if a signal frame has led to a stack that is in no copy. */
static bool is_elsewhere(const struct walk *w)
{
	uint64_t sp = w->f.reg[w->u->arch->sp], at = sp - w->copy.sp;

	return w->crossed && arch_has(&w->f, w->u->arch->sp) &&
	       sp - w->in->interrupted.sp >= MAX(w->in->interrupted.size, COPY_MAX) &&
	       at >= (w->copy.full ? MAX(w->copy.size, COPY_MAX) : w->copy.size);
}

static int stop_beyond(const struct walk *w)
{
	if (is_elsewhere(w))
		return UNWIND_SWITCHED;
	return w->copy.full || w->crossed ? UNWIND_TRUNCATED : UNWIND_BAD_FRAME;
}

/* Return the reason to stop after a failed step. */
static int stop_of(const struct walk *w, enum step_result result)
{
	switch (result) {
	case STEP_CALLER:
		return WALK_ON;
	case STEP_ROOT:
		return UNWIND_COMPLETE;
	case STEP_REFUSED:
		return UNWIND_CFI_REFUSED;
	case STEP_BEYOND:
		return stop_beyond(w);
	case STEP_GAP:
		return w->crossed ? stop_beyond(w) : UNWIND_GAP;
	case STEP_BELOW:
		/* Code that moves sp often keeps the place of its frame below it. */
		if (w->out->nr == 1 && w->word == w->u->arch->word && w->u->arch->red_zone)
			w->out->wanted = w->copy.sp - w->word;
		if (w->away)
			return UNWIND_SWITCHED;
		return w->crossed ? stop_beyond(w) : UNWIND_BAD_FRAME;
	case STEP_NEED_REGS:
		/* Where libunwind cannot read, a walk without rows drops registers as well. */
		return w->dropped && w->rows ? WALK_REDO : UNWIND_BAD_REGS;
	case STEP_BUDGET:
		return UNWIND_BUDGET;
	case STEP_NO_LIBUNWIND:
	case STEP_FAILED:
		break;
	}
	return UNWIND_BAD_FRAME;
}

/*
 * Return true if a frame is on another stack, which no larger copy has: a table has the CFA in the
 * frame pointer @fp, which a function that switched stacks left there (gcc -fsplit-stack).
 */
static bool is_left(const struct walk *w, enum step_result result, uint64_t fp)
{
	return result == STEP_BEYOND && w->out->nr > 1 && !w->out->nr_guessed &&
	       fp % w->word == 0 && fp - w->copy.sp >= COPY_MAX;
}

/* Return true if a table that has the CFA in memory leads to a stack below the sampled one. */
static bool is_lower(const struct walk *w, enum step_result result)
{
	return result == STEP_BELOW && w->out->nr > 1 && !w->out->nr_guessed && w->out->wanted;
}

/*
 * Check that the stack grows; only a signal frame may lead to another stack, or a table that has
 * the CFA in memory: OCaml 5 calls C on another stack than its own, which is below.
 */
static bool has_grown(const struct walk *w, uint64_t old_pc, uint64_t old, bool signal)
{
	const struct arch_ops *arch = w->u->arch;
	uint64_t new = w->f.reg[arch->sp];

	if (signal)
		return new != old || w->f.reg[arch->pc] != old_pc;
	/*
	 * An innermost or interrupted leaf may have no frame: its return address is in a register.
	 */
	return new > old || (new == old && (w->out->nr == 1 || (w->exact && arch->ra_in_register)));
}

/* Accept the current frame as the caller of the one with @old_pc and @old_sp. */
static int go_on(struct walk *w, enum step_result result, uint64_t old_pc, uint64_t old_sp,
		 bool signal)
{
	if (result != STEP_CALLER)
		return stop_of(w, result);
	if (!has_grown(w, old_pc, old_sp, signal)) {
		if (!w->by_memory || w->f.reg[w->u->arch->sp] >= w->copy.sp || w->out->nr_guessed)
			return UNWIND_BAD_FRAME;
		w->away = true;
	}
	w->exact = signal;
	w->crossed |= signal;
	w->guessed = false;
	return WALK_ON;
}

static struct fp_input guess_input(const struct walk *w)
{
	return (struct fp_input){
		.arch = w->u->arch,
		.copy = &w->copy,
		.space = w->in->space,
		.time_ns = w->in->time_ns,
		.word = w->word,
		.first = w->exact,
		.frames_kept = w->word == 4,
		.called_from_any = w->mapping->object->identity.kind == OBJECT_ANON,
	};
}

/* Unwind in code of V8 by its frame pointers. False: it is no such code, or has no caller. */
static bool by_v8(struct walk *w, const struct fp_input *in)
{
	const struct arch_ops *arch = w->u->arch;
	const struct lang_process *p = w->in->v8;
	struct unwind_result *out = w->out;
	uint64_t fp = w->f.reg[arch->fp], on_top;
	bool compiled = w->mapping->object->identity.kind == OBJECT_ANON, guessed;

	if (!p || arch->machine != EM_X86_64 || w->word != 8 ||
	    !v8_is_code(p, w->mapping, w->offset) || !arch_has(&w->f, arch->fp))
		return false;
	if (!in->first || !compiled || !stack_copy_read(in->copy, w->f.reg[arch->sp], &on_top) ||
	    !returns_to(in, p, on_top))
		on_top = 0;
	out->v8[out->nr_v8++] = (struct unwind_v8){ .fp = fp,
						    .on_top = on_top,
						    .frame = out->nr - 1,
						    .compiled = compiled,
						    .javascript = v8_is_javascript(in, p, fp) };
	if (!v8_step(in, p, compiled, &w->f, &guessed))
		return false;
	out->nr_v8_guessed += guessed;
	w->exact = false;
	w->guessed = guessed;
	return true;
}

/*
 * The frame pointer says that there is no caller. That is no proof in a file without its tables,
 * nor in an innermost frame: compilers and assemblers use the register for other values. Where
 * tables have led to 0, as it is when a process starts, it is one.
 */
static int by_fp_root(struct walk *w)
{
	const struct object *object = w->mapping->object;
	struct unwind_result *out = w->out;

	if (object->identity.kind == OBJECT_FILE && !out->nr_guessed &&
	    (out->nr == 1 ||
	     atomic_load_explicit(&object->state, memory_order_relaxed) >= OBJECT_FAILED)) {
		out->guessed_by = out->nr - 1;
		out->nr_guessed = 1;
	}
	return UNWIND_COMPLETE;
}

/* Put the question @q of code of the process: until it has an answer, walk again. */
static void ask(const struct walk *w, struct call_question q)
{
	q.pid = (pid_t)w->in->pid;
	q.machine = w->u->arch->machine;
	call_ask(&q);
	w->out->asked = true;
}

/* Return the image of the code at a return address, with its object @m; NULL: there is none yet. */
static const struct image *image_there(const struct walk *w, const struct mapping *m)
{
	/* Acquire: pairs with the loader's release of a finished image. */
	const struct image *image = atomic_load_explicit(&m->object->image, memory_order_acquire);

	if (image && !image->away)
		return image;
	if (m->object->identity.kind == OBJECT_FILE &&
	    atomic_load_explicit(&m->object->state, memory_order_relaxed) < OBJECT_FAILED) {
		object_want(m->object);
		w->out->asked = true;
	}
	return NULL;
}

static bool has_rows(const struct image *image, uint64_t vaddr, struct ehframe_fde *fde)
{
	return ehframe_find(&image_rows(image, vaddr)->eh, vaddr, fde);
}

static bool begins_behind(const struct image *image, uint64_t vaddr)
{
	struct ehframe_fde next;

	return has_rows(image, vaddr + 1, &next) && next.start == vaddr + 1;
}

/* Return true if a function with a table may have called another one that returns to @pc. */
static bool returns_into_function(const struct walk *w, uint64_t pc)
{
	const struct mapping *m = pc ? space_find(w->in->space, pc - 1, w->in->time_ns) : NULL;
	const struct image *image = m && m->exec ? image_there(w, m) : NULL;
	struct ehframe_fde fde;
	uint64_t vaddr;

	return image && image->machine == w->u->arch->machine &&
	       image_vaddr(image, m->offset + (pc - 1 - m->start), &vaddr) &&
	       has_rows(image, vaddr, &fde) && !begins_behind(image, vaddr);
}

/* Words above sp among which YJIT's code has its return address: three registers, and arguments. */
#define LOOP_WORDS 8U

/* Return whether @pc is in the file with the loop of @p. */
static bool in_file_of_loop(const struct walk *w, const struct lang_process *p, uint64_t pc)
{
	const struct mapping *loop = space_find(w->in->space, p->eval[0].start, w->in->time_ns);

	return loop && pc - loop->start < loop->end - loop->start && returns_into_function(w, pc);
}

/*
 * Find the function of Ruby that called this code, which its compiler made without tables: such
 * code keeps the frame pointer, and pushes three registers at its entry.
 */
static bool by_loop(struct walk *w)
{
	const struct arch_ops *arch = w->u->arch;
	uint64_t at = w->f.reg[arch->sp], pc;

	if (!w->in->ruby || w->word != 8 || arch->ra_in_register || !arch_has(&w->f, arch->sp) ||
	    w->mapping->object->identity.kind != OBJECT_ANON)
		return false;
	for (uint32_t i = 0; i < LOOP_WORDS; i++, at += 8) {
		if (!stack_copy_read(&w->copy, at, &pc))
			return false;
		if (!in_file_of_loop(w, w->in->ruby, pc))
			continue;
		w->f.valid &= 1ULL << arch->fp;
		arch_set(&w->f, arch->pc, pc);
		arch_set(&w->f, arch->sp, at + 8);
		w->exact = false;
		w->guessed = w->unproven = w->loop = true;
		return true;
	}
	return false;
}

#define THUNK_NEAR 32U /* bytes from the call in a thunk to its end */

/*
 * Find the caller of a thunk (gcc -mfunction-return=thunk, clang -mretpoline): it calls itself and
 * removes that return address, or replaces it by its target, of which tables say nothing, or to the
 * last instruction. @popped: the word on top may be the caller's. False: it is none.
 */
static bool by_thunk(struct walk *w, bool popped)
{
	const struct arch_ops *arch = w->u->arch;
	const uint64_t pc = w->f.reg[arch->pc], sp = w->f.reg[arch->sp];
	uint64_t key, words, back;

	if (!w->exact || !w->u->ask_calls || w->word != 8 || arch->ra_in_register ||
	    !arch_has(&w->f, arch->sp) || !stack_copy_read(&w->copy, sp, &back) ||
	    (!popped && pc - back > THUNK_NEAR))
		return false;
	key = hash_u64(pc ^ hash_u64(CALL_THUNK ^ hash_u64(w->serial))) | 8;
	switch (call_site(key, &words)) {
	case CALL_UNKNOWN:
		ask(w, (struct call_question){ .key = key, .address = pc, .kind = CALL_THUNK });
		return false;
	case CALL_REACHES:
		break;
	default:
		return false;
	}
	words -= CALL_THUNK_WORDS;
	if (!stack_copy_read(&w->copy, sp + 8 * words, &back))
		return false;
	w->f.valid &= 1ULL << arch->fp;
	arch_set(&w->f, arch->pc, back);
	arch_set(&w->f, arch->sp, sp + 8 * (words + 1));
	w->exact = w->guessed = false;
	return true;
}

/* Guess: the frame-pointer chain, or the return address on top of the stack. */
static int by_guess(struct walk *w)
{
	const struct fp_input in = guess_input(w);

	if (by_v8(w, &in) || by_loop(w) ||
	    by_thunk(w, w->mapping->object->identity.kind == OBJECT_FILE))
		return WALK_ON;
	w->likely = w->exact;
	if (w->likely)
		w->below = w->f;
	switch (fp_step(&in, &w->f)) {
	case FP_FOUND:
		w->exact = false;
		w->guessed = w->unproven = true;
		return WALK_ON;
	case FP_ROOT:
		return by_fp_root(w);
	case FP_BEYOND:
		return UNWIND_TRUNCATED;
	case FP_NONE:
		break;
	}
	return UNWIND_NO_CFI;
}

/* A row that is a guess has led from w->below to the current frame, with the result @next. */
static int by_likely(struct walk *w, int next)
{
	w->guessed = true;
	w->likely = next == WALK_ON;
	if (w->likely)
		return next;
	w->f = w->below;
	return by_guess(w);
}

/* Go on on the stack that the current function has left. False: it has not left the one copied. */
static bool by_other_stack(struct walk *w)
{
	const struct arch_ops *arch = w->u->arch;
	const struct unwind_interrupted *other = &w->in->interrupted;
	uint64_t pc;

	if (!other->size || !other->from || !arch_has(&w->f, arch->sp) ||
	    w->f.reg[arch->sp] != other->from || arch->ra_in_register ||
	    !stack_copy_read(&w->copy, other->sp, &pc))
		return false;
	/* It has no frame there, and keeps the frame pointer of its caller. */
	w->f.valid &= 1ULL << arch->fp;
	arch_set(&w->f, arch->pc, pc);
	arch_set(&w->f, arch->sp, other->sp + w->word);
	w->exact = false;
	w->crossed = true;
	w->guessed = other->guessed;
	return true;
}

/*
 * A function that goes on on another stack: its caller is there. As the innermost frame it may not
 * have done so yet.
 */
static int by_switch(struct walk *w)
{
	int stop;

	if (by_other_stack(w))
		return WALK_ON;
	stop = by_guess(w);

	return stop == UNWIND_NO_CFI ? UNWIND_SWITCHED : stop;
}

/* The first function of a stack: of a goroutine that C has called, C goes on on another one. */
static int by_root(struct walk *w, const struct arch_frame *root)
{
	w->f = *root;
	if (!by_other_stack(w))
		return UNWIND_COMPLETE;
	w->f.valid &= ~(1ULL << w->u->arch->fp);
	return WALK_ON;
}

/* Return true if CFI needs the sp that a guess before did not find. */
static bool lacks_sp(const struct walk *w, enum step_result result)
{
	return result == STEP_NEED_REGS && !arch_has(&w->f, w->u->arch->sp);
}

/*
 * A return address of 0 at @root ends a stack that was made so. Where the return address is some
 * words above it, the table is wrong: that of LuaJIT's interpreter has one row, which is not true
 * below its calls. Then go on from there, by a guess. False: a root.
 */
static bool by_word_above(struct walk *w, const struct row_frame *root)
{
	const struct arch_ops *arch = w->u->arch;
	uint64_t pc;

	for (uint32_t i = 0; i < ABOVE_ROOT && !arch->ra_in_register; i++) {
		uint64_t at = root->sp + (uint64_t)i * w->word;

		if (!stack_copy_read(&w->copy, at, &pc))
			return false;
		if (!returns_into_function(w, pc))
			continue;
		apply_end(&(struct row_frame){ .pc = pc,
					       .sp = at + w->word,
					       .fp = root->fp,
					       .has_fp = root->has_fp },
			  arch, &w->f);
		w->exact = false;
		w->guessed = true;
		return true;
	}
	return false;
}

/* The same of the frame @from with its row. */
static bool is_zero_no_root(struct walk *w, uint64_t row, const struct arch_frame *from)
{
	struct row_frame root = apply_begin(w->u->arch, from);

	return row_kind(row) == ROW_SIMPLE &&
	       apply_row(row, w->u->arch, &w->copy, w->out->nr == 1, &root) == STEP_ROOT &&
	       by_word_above(w, &root);
}

/* Return the start of the function with the address @pc, by its FDE; 0: not known. */
static uint64_t function_start(const struct walk *w, uint64_t pc)
{
	const struct mapping *m = space_find(w->in->space, pc, w->in->time_ns);
	const struct image *image = NULL;
	struct ehframe_fde fde;
	uint64_t vaddr;

	if (m && m->object->identity.kind == OBJECT_FILE)
		image = image_there(w, m);
	return image && image_vaddr(image, m->offset + (pc - m->start), &vaddr) &&
			       has_rows(image, vaddr, &fde)
		       ? pc - (vaddr - fde.start)
		       : 0;
}

#define LOCAL_NEAR (64U << 10) /* bytes around a call in which its target is looked for */
#define LOCAL_DEEP 4

/*
 * Return whether @pc, with this stack pointer, is in a part of its function that the function
 * calls: the word there is behind a call of an address between the start of the function and @pc.
 */
static bool is_called_inside(struct walk *w, uint64_t pc, uint64_t sp, uint64_t *back)
{
	uint64_t start, key, to;

	if (!stack_copy_read(&w->copy, sp, back) || *back - pc + LOCAL_NEAR > 2 * LOCAL_NEAR)
		return false;
	start = function_start(w, pc);
	if (!start || function_start(w, *back - 1) != start)
		return false;
	key = hash_u64(*back ^ hash_u64(CALL_INSIDE ^ hash_u64(w->serial))) | 8;
	switch (call_site(key, &to)) {
	case CALL_UNKNOWN:
		ask(w, (struct call_question){ .key = key, .address = *back, .kind = CALL_INSIDE });
		return false;
	case CALL_REACHES:
		return to > start && to <= pc;
	default:
		return false;
	}
}

/*
 * Functions of assembler call parts of themselves, and the row of both is that of the caller, as in
 * LuaJIT's interpreter: leave the return addresses of such calls out of the innermost frame.
 */
static void leave_inner_calls(struct walk *w, uint64_t row, struct row_frame *f)
{
	uint64_t cfa = (row_cfa_is_fp(row) ? f->fp : f->sp) + (uint64_t)row_cfa_off(row);
	uint64_t pc = f->pc;

	if (!w->u->ask_calls || w->word != 8 || !f->has_sp || !row_ra_at_cfa(row))
		return;
	for (int nr = 0; nr < LOCAL_DEEP && cfa + (uint64_t)row_ra_off(row) != f->sp &&
			 is_called_inside(w, pc, f->sp, &pc);
	     nr++)
		f->sp += w->word;
}

/* Return whether @row is by a table that says which words thunks have on the stack. */
static bool knows_thunks(const struct walk *w, uint64_t row)
{
	/* Acquire: pairs with the loader's release of a finished image. */
	const struct image *image =
		atomic_load_explicit(&w->mapping->object->image, memory_order_acquire);

	return image && image->thunks && !(row & ROW_DERIVED);
}

/*
 * Find the caller of the end of a thunk of which @row says nothing. The word of the thunk may have
 * left the stack if the return address is above one word, as which the word on top may be one.
 */
static bool by_unknown_thunk(struct walk *w, uint64_t row)
{
	uint64_t top;

	if (!w->exact || knows_thunks(w, row))
		return false;
	return by_thunk(w, row_kind(row) == ROW_SIMPLE && !row_cfa_is_fp(row) &&
				   !row_cfa_is_word(row) && row_ra_at_cfa(row) &&
				   row_cfa_off(row) + row_ra_off(row) == w->word &&
				   stack_copy_read(&w->copy, w->f.reg[w->u->arch->sp], &top) &&
				   returns_into_function(w, top));
}

/*
 * Apply row after row, as long as callers are recent and have rows: a warm
 * unwinder spends its time here. The last caller is not entered yet.
 */
static int by_rows(struct walk *w, uint64_t row)
{
	const struct arch_ops *arch = w->u->arch;
	struct row_frame f = apply_begin(arch, &w->f), below;
	bool guessed;
	int next;

	assert(row_kind(row) == ROW_SIMPLE);
	if (by_unknown_thunk(w, row))
		return WALK_ON;
	if (w->out->nr == 1)
		leave_inner_calls(w, row, &f);
	for (;;) {
		const struct recent_entry *met;
		enum step_result result;

		below = f;
		result = apply_row(row, arch, &w->copy, w->out->nr == 1, &f);
		if (result == STEP_NEED_REGS && !f.has_sp) /* not found by a guess before */
			return by_guess(w);
		w->dropped = true;
		w->row_hits++;
		if (result == STEP_ROOT && by_word_above(w, &f))
			return WALK_ON;
		if (result != STEP_CALLER && row & ROW_GUESS && result != STEP_ROOT)
			return by_guess(w);
		if (row_cfa_is_word(row) ? is_lower(w, result)
					 : row_cfa_is_fp(row) && is_left(w, result, below.fp))
			return UNWIND_SWITCHED;
		if (result != STEP_CALLER)
			return stop_of(w, result);
		met = f.sp > below.sp && !w->expected && w->out->nr + 1 < UNWIND_FRAMES_MAX
			      ? caller_recent(w, f.pc - 1)
			      : NULL;
		guessed = row & ROW_GUESS;
		w->by_memory = row_cfa_is_word(row);
		w->unproven = row & ROW_DERIVED;
		row = met && !w->unproven ? rows_get(w->u->rows, met->place) : 0;
		if (!row_is_certain(row))
			break;
		caller_add_frame(w, f.pc - 1, f.sp, met->place, met->mapping);
		w->exact = false;
	}
	apply_end(&f, arch, &w->f);
	next = go_on(w, STEP_CALLER, below.pc, below.sp, false);
	if (!guessed)
		return next;
	apply_end(&below, arch, &w->below);
	return by_likely(w, next);
}

/*
 * Return from a signal handler: the kernel saved all registers of the interrupted frame, some
 * at sp + @offset.
 */
static int by_signal(struct walk *w, int64_t offset)
{
	const struct arch_ops *arch = w->u->arch;
	const struct arch_frame from = w->f;
	uint64_t at = from.reg[arch->sp] + (uint64_t)offset, value;

	if (!arch_has(&from, arch->sp))
		return UNWIND_BAD_REGS;
	w->f.valid = 0;
	for (unsigned int i = 0; i < arch->nr_sig_regs; i++, at += arch->word) {
		if (arch->sig_regs[i] == ARCH_NO_REG)
			continue;
		if (!read_slot(arch, &w->copy, at, &value)) {
			w->out->wanted = at;
			return stop_beyond(w);
		}
		arch_set(&w->f, arch->sig_regs[i], value);
	}
	return go_on(w, STEP_CALLER, from.reg[arch->pc], from.reg[arch->sp], true);
}

static bool same_frame(const struct arch_ops *arch, const struct row_frame *a,
		       const struct arch_frame *b)
{
	return a->pc == b->reg[arch->pc] && a->sp == b->reg[arch->sp] &&
	       a->has_fp == arch_has(b, arch->fp) && (!a->has_fp || a->fp == b->reg[arch->fp]);
}

/* Return true if the rule of this place is unknown and the table has an entry for it. */
static bool wants_row(const struct walk *w)
{
	return w->rows && rows_hold(w->u->rows, w->place) &&
	       row_kind(rows_get(w->u->rows, w->place)) == ROW_UNKNOWN;
}

/*
 * Return true if libunwind will unwind this place only once: a row will follow.
 * False if it was unwound before without a row as the result.
 */
static bool requests_once(const struct walk *w)
{
	uint32_t *tried = &w->u->tried[w->place & (WALK_TRIED - 1)];
	bool again = *tried == w->place;

	*tried = w->place;
	return !again && wants_row(w);
}

static void admit(struct walk *w, uint64_t row)
{
	rows_put(w->u->rows, w->place, row);
	unwinder_count(&w->u->count.rows, 1);
}

/*
 * libunwind unwound @from with @result: admit the row if its result is the same. @flags: of a
 * derived one.
 */
static void learn(struct walk *w, const struct cfi_rule *rule, const struct arch_frame *from,
		  enum step_result result, uint64_t flags)
{
	struct unwinder *u = w->u;
	struct row_frame by_row = apply_begin(u->arch, from);
	uint64_t word = row_pack(&rule->row);
	bool same;

	if (result != STEP_CALLER && result != STEP_ROOT)
		return;
	if (row_kind(word) == ROW_SIMPLE)
		same = apply_row(word, u->arch, &w->copy, w->out->nr == 1, &by_row) == result &&
		       (result == STEP_ROOT || same_frame(u->arch, &by_row, &w->f));
	else
		same = row_kind(word) == ROW_STEP || result == STEP_ROOT;
	if (!same) {
		unwinder_count(&u->count.rows_differ, 1);
		rows_put(u->rows, w->place, ROW_STEP);
		return;
	}
	admit(w, word | (row_kind(word) == ROW_SIMPLE ? flags : 0));
	/* At a return address of 0 only that is compared. */
	if (row_kind(word) == ROW_SIMPLE ? result == STEP_CALLER : row_kind(word) == ROW_END)
		rows_prove(u->rows, rule->program);
}

/*
 * Correct the caller of @from, which may have been replacing its frame or leaving
 * for a landing pad.
 */
static void after_rewrite(struct walk *w, enum cfi_doubt doubt, const struct arch_frame *from)
{
	const struct fp_input in = guess_input(w);

	if (doubt == CFI_SURE)
		return;
	w->guessed = true;
	w->exact |= doubt == CFI_LANDING || doubt == CFI_LEAVING;
	if (w->u->arch->nr_eh_data)
		w->guessed = w->rewrites++ >= LANDING_PAD_FRAMES ||
			     !landing_pad_check(&in, doubt, w->out->nr, from, &w->f);
	else if (doubt == CFI_LANDING)
		w->guessed = w->out->nr != 1; /* sp is in a register */
	else if (doubt != CFI_EARLY && doubt != CFI_REWRITING)
		return;
	else if ((doubt == CFI_EARLY && w->out->nr > LANDING_PAD_FRAMES) ||
		 landing_pad_check(&in, doubt, w->out->nr, from, &w->f))
		w->guessed = false;
	else if (w->out->nr <= LANDING_PAD_FRAMES)
		landing_pad_undo(&in, from, &w->f);
}

/* Apply a row that is not kept: the frame may have been rewritten. */
static int by_doubtful_row(struct walk *w, uint64_t row, enum cfi_doubt doubt)
{
	const struct arch_ops *arch = w->u->arch;
	const struct arch_frame from = w->f;
	struct row_frame f = apply_begin(arch, &from);
	enum step_result result = apply_row(row, arch, &w->copy, w->out->nr == 1, &f);
	int next;

	if (lacks_sp(w, result))
		return by_guess(w);
	if (result != STEP_CALLER)
		return stop_of(w, result);
	w->dropped = true;
	apply_end(&f, arch, &w->f);
	next = go_on(w, result, from.reg[arch->pc], from.reg[arch->sp], false);
	if (next == WALK_ON)
		after_rewrite(w, doubt, &from);
	return next;
}

/* Return the flags of rows by an FDE: it may be derived from code, which other jumps may reach. */
static uint64_t derived_flags(const struct ehframe *eh, const struct ehframe_fde *fde)
{
	if (!eh->derived || fde->offset < eh->derived)
		return 0;
	return ROW_DERIVED | (eh->guessed && fde->offset >= eh->guessed ? ROW_GUESS : 0);
}

/* Return the row of an entry of the PLT of i386, which pushes a word before it jumps on. */
static uint64_t plt_row(const struct cfi_row *rule, uint64_t vaddr)
{
	const struct cfi_row row = { .kind = CFI_ROW,
				     .cfa_off = vaddr % 16 >= (uint64_t)rule->cfa_off ? 8 : 4,
				     .ra_where = CFI_AT_CFA,
				     .ra_off = -4 };

	return row_pack(&row);
}

/*
 * Unwind by the rule as proftop reads it, where libunwind cannot. A place with a rule that no row
 * expresses is guessed, from then on without a look into the CFI.
 */
static int by_cfi(struct walk *w, const struct step_input *in)
{
	struct unwinder *u = w->u;
	const struct cfi_rule *rule;
	enum step_result result = step_rule(u->step, in, &rule);
	enum cfi_doubt doubt = step_doubt(u->step);
	uint64_t word;

	if (result == STEP_REFUSED)
		rows_put(u->rows, w->place, ROW_REFUSED);
	if (result != STEP_CALLER)
		return stop_of(w, result);
	if (rule->row.kind == CFI_SIGNAL)
		return by_signal(w, (int64_t)rule->row.cfa_off + u->arch->sig_offset);
	word = rule->row.kind == CFI_PLT ? plt_row(&rule->row, in->vaddr) : row_pack(&rule->row);
	if (doubt != CFI_SURE && row_kind(word) == ROW_SIMPLE)
		return by_doubtful_row(w, word, doubt);
	if (row_kind(word) == ROW_SIMPLE)
		word |= derived_flags(&in->image->eh, in->fde);
	rows_put(u->rows, w->place, row_kind(word) == ROW_STEP ? ROW_NO_CFI : word);
	if (row_kind(word) == ROW_SIMPLE)
		return by_rows(w, word);
	if (word & ROW_SWITCH && row_kind(word) == ROW_END)
		return by_switch(w);
	return row_kind(word) == ROW_END ? UNWIND_COMPLETE : by_guess(w);
}

/* Admit the row of a program that libunwind agreed with before. */
static bool admit_proven(struct walk *w, const struct cfi_rule *rule, uint64_t flags)
{
	uint64_t word = row_pack(&rule->row);

	if (!rule->sure || rule->row.kind == CFI_COMPLEX || !rows_proven(w->u->rows, rule->program))
		return false;
	admit(w, word | (row_kind(word) == ROW_SIMPLE ? flags : 0));
	return true;
}

/*
 * libunwind fails if the frame pointer of the caller is undefined, as in functions of assembler
 * with registers of their own. Return the row of the place, with @flags, if @rule says no more than
 * that; else 0.
 */
static uint64_t row_without_fp(struct walk *w, const struct cfi_rule *rule, uint64_t flags)
{
	uint64_t word = row_pack(&rule->row) | flags;

	if (step_doubt(w->u->step) != CFI_SURE || rule->row.fp_where != CFI_LOST ||
	    row_kind(word) != ROW_SIMPLE)
		return 0;
	if (wants_row(w))
		admit(w, word);
	return word;
}

/* Return true if the rule may have the CFA in memory. */
static bool is_by_memory(const struct cfi_rule *rule)
{
	return rule->row.kind == CFI_COMPLEX ||
	       (rule->row.kind == CFI_ROW && rule->row.cfa_is_word);
}

/*
 * Return the reason to stop after @result. A rule that gets the CFA from memory and leads far away
 * from here, or below, is that of a function that has switched stacks (OCaml 5 runs main() on its
 * heap).
 */
static int stop_of_rule(const struct walk *w, const struct cfi_rule *rule, enum step_result result)
{
	bool far = result == STEP_BELOW
			   ? w->out->nr > 1
			   : result == STEP_BEYOND && w->out->wanted - w->copy.sp >= COPY_MAX;

	if (rule && rule->row.kind == CFI_ROW && rule->row.cfa_is_fp)
		far = is_left(w, result, w->f.reg[w->u->arch->fp]);
	else
		far = far && rule && is_by_memory(rule);
	return far ? UNWIND_SWITCHED : stop_of(w, result);
}

/*
 * Go on to the caller of @from that a step of @in has found; @flags: of a row derived from code.
 */
static int to_caller(struct walk *w, const struct step_input *in, const struct arch_frame *from,
		     bool signal, uint64_t flags)
{
	struct unwinder *u = w->u;
	const struct cfi_rule *rule;
	int next;

	w->by_memory = !signal && w->f.reg[u->arch->sp] <= from->reg[u->arch->sp] &&
		       step_rule(u->step, in, &rule) == STEP_CALLER && is_by_memory(rule);
	next = go_on(w, STEP_CALLER, from->reg[u->arch->pc], from->reg[u->arch->sp], signal);

	if (next == WALK_ON)
		after_rewrite(w, step_doubt(u->step), from);
	w->unproven = flags != 0;
	if (!(flags & ROW_GUESS))
		return next;
	w->below = *from;
	return by_likely(w, next);
}

/*
 * Before a step of @in from an innermost or interrupted frame, of which the tables may not say all:
 * leave out return addresses of its inner calls. True: it was a thunk, its caller is current now.
 */
static bool by_exact(struct walk *w, const struct step_input *in)
{
	struct row_frame f = apply_begin(w->u->arch, &w->f);
	const struct cfi_rule *rule;
	uint64_t row;

	if (!w->exact || step_rule(w->u->step, in, &rule) != STEP_CALLER)
		return false;
	row = row_pack(&rule->row) | derived_flags(&in->image->eh, in->fde);
	if (by_unknown_thunk(w, row))
		return true;
	if (w->out->nr == 1 && row_kind(row) == ROW_SIMPLE && f.has_sp) {
		leave_inner_calls(w, row, &f);
		arch_set(&w->f, w->u->arch->sp, f.sp);
	}
	return false;
}

/*
 * Unwind by libunwind with the FDE that covers the look-up pc; or admit a row of
 * a proven program.
 */
static int by_step(struct walk *w, const struct image *image, uint64_t vaddr,
		   const struct ehframe_fde *fde)
{
	struct unwinder *u = w->u;
	struct arch_frame from;
	const struct step_input in = {
		.copy = &w->copy,
		.object = w->mapping->object,
		.image = image,
		.fde = fde,
		.vaddr = vaddr,
		.pc_vaddr = vaddr + (w->f.reg[u->arch->pc] - w->pc),
		.once = requests_once(w),
		.first = w->out->nr == 1,
	};
	uint64_t flags = derived_flags(&image->eh, fde), word;
	const struct cfi_rule *rule = NULL;
	enum step_result result;
	bool signal = false;

	if (wants_row(w))
		step_rule(u->step, &in, &rule);
	if (rule && admit_proven(w, rule, flags))
		return WALK_AGAIN;
	if (by_exact(w, &in))
		return WALK_ON;
	from = w->f;
	if (rule && rule->row.kind == CFI_SWITCH) {
		admit(w, row_pack(&rule->row));
		return by_switch(w);
	}
	result = step_gate(u->step, &in, &signal);
	if (result == STEP_NO_LIBUNWIND)
		return by_cfi(w, &in);
	if (result == STEP_REFUSED)
		rows_put(u->rows, w->place, ROW_REFUSED);
	if (result != STEP_CALLER)
		return stop_of(w, result);
	result = step_frame(u->step, &in, &w->f);
	if (lacks_sp(w, result))
		return by_guess(w);
	w->steps++;
	/* The rule tells why libunwind ends. */
	if (result != STEP_CALLER && !rule)
		step_rule(u->step, &in, &rule);
	if (result == STEP_ROOT && rule && rule->row.kind == CFI_SWITCH)
		return by_switch(w);
	word = result == STEP_FAILED && rule ? row_without_fp(w, rule, flags) : 0;
	if (word)
		return by_rows(w, word);
	if (rule && step_doubt(u->step) == CFI_SURE)
		learn(w, rule, &from, result, flags);
	if (result == STEP_ROOT && rule && is_zero_no_root(w, row_pack(&rule->row), &from))
		return WALK_ON;
	if (result == STEP_ROOT)
		return by_root(w, &from);
	if (result != STEP_CALLER)
		return flags & ROW_GUESS ? by_guess(w) : stop_of_rule(w, rule, result);
	return to_caller(w, &in, &from, signal, flags);
}

/*
 * Return true if the function that begins at the current frame was put at the end of a stack: there
 * is no return address for it.
 */
static bool has_no_caller(const struct walk *w)
{
	const struct arch_ops *arch = w->u->arch;
	const struct fp_input in = guess_input(w);
	uint64_t ra;

	if (arch->ra_in_register || !arch_has(&w->f, arch->sp))
		return false;
	if (!read_slot(arch, &w->copy, w->f.reg[arch->sp], &ra))
		/* The last word before unused memory: a caller would have written above it. */
		return w->f.reg[arch->sp] == w->copy.sp + w->copy.size &&
		       stack_copy_gap(&w->copy, w->f.reg[arch->sp]);
	return !fp_is_code(&in, ra);
}

/*
 * The return address is the start of a function, with no code before it: it was
 * not pushed by a call, but put on the stack to be returned to (makecontext() and
 * others). Take it for the instruction itself. The first function of a fiber returns to one
 * that ends the fiber: the root.
 */
static int by_entry(struct walk *w)
{
	w->out->nr--;
	w->out->nr_guessed -= w->guessed;
	w->exact = true;
	w->ended = w->out->fiber = !w->guessed && has_no_caller(w);
	w->guessed = !w->ended;
	return WALK_ON;
}

/* Return true if a signal handler returns to @pc, or @pc is in the return itself. */
static bool is_sigreturn(const struct image *image, uint64_t pc)
{
	return image->sigreturn_size && pc - image->sigreturn < image->sigreturn_size;
}

/*
 * Return true if the kernel executes the return from a signal handler: the pc of the innermost
 * frame is behind the system call, where another function may begin.
 */
static bool caller_in_sigreturn(const struct walk *w)
{
	const struct arch_ops *arch = w->u->arch;
	uint64_t pc = w->f.reg[arch->pc] - 1, vaddr;
	const struct image *image;
	const struct mapping *m;

	if (arch->call_reg == ARCH_NO_REG || w->f.reg[arch->call_reg] != arch->sig_call)
		return false;
	m = space_find(w->in->space, pc, w->in->time_ns);
	if (!m || !m->exec)
		return false;
	/* Acquire: pairs with the loader's release of a finished image. */
	image = atomic_load_explicit(&m->object->image, memory_order_acquire);
	return image && !image->away && image->machine == arch->machine &&
	       image_vaddr(image, m->offset + (pc - m->start), &vaddr) &&
	       is_sigreturn(image, vaddr);
}

/*
 * Unwind in a stub that a runtime copies for each of its functions and that has no tables: its
 * code is compared with the known ones. False: it is none, or not compared yet.
 */
static bool by_stub(struct walk *w)
{
	const struct arch_ops *arch = w->u->arch;
	const uint64_t key = hash_u64(~(w->place ^ hash_u64(w->u->serial))) | 8;
	const uint64_t sp = w->f.reg[arch->sp];
	const struct fp_input in = guess_input(w);
	uint64_t frame, pc, fp;

	if (!w->u->ask_calls || w->in->v8 || w->exact || w->word != 8 || !arch_has(&w->f, arch->sp))
		return false;
	switch (call_site(key, &frame)) {
	case CALL_UNKNOWN:
		ask(w,
		    (struct call_question){ .key = key, .address = w->pc + 1, .kind = CALL_STUB });
		return false;
	case CALL_REACHES:
		break;
	default:
		return false;
	}
	if (!stack_copy_read(&w->copy, sp, &fp) ||
	    !stack_copy_read(&w->copy, sp + (frame & CALL_STUB_SIZE) - 8, &pc) ||
	    !fp_is_code(&in, pc & ~arch->ra_clear))
		return false;
	arch_set(&w->f, arch->pc, pc & ~arch->ra_clear);
	arch_set(&w->f, arch->sp, sp + (frame & CALL_STUB_SIZE));
	if (frame & CALL_STUB_FP)
		arch_set(&w->f, arch->fp, fp);
	w->guessed = false;
	return true;
}

/* Unwind in code of a JIT that was derived, from now on by a row; @code: NULL: there is none. */
static int by_derived(struct walk *w, const struct codemap_code *code)
{
	struct object *object = w->mapping->object;
	struct cfi_row row = { .kind = CFI_ROW };
	uint64_t word;

	/* Samples of code without frames request them. Relaxed: it is set once. */
	if (!code) {
		if (!w->in->v8 && w->word == 8 &&
		    !atomic_load_explicit(&object->codemap_wanted, memory_order_relaxed))
			atomic_store_explicit(&object->codemap_wanted, true, memory_order_relaxed);
		return by_stub(w) ? WALK_ON : by_guess(w);
	}
	if (code->kind != CODEMAP_DERIVED || w->in->v8 || w->word != 8)
		return by_guess(w);
	row.cfa_is_fp = code->derived.by_fp;
	row.cfa_off = code->derived.cfa;
	row.ra_where = code->derived.ra ? CFI_AT_CFA : CFI_SAME;
	row.ra_off = code->derived.ra;
	row.fp_where = code->derived.fp ? CFI_AT_CFA : CFI_SAME;
	row.fp_off = code->derived.fp;
	word = row_pack(&row);
	if (row_kind(word) != ROW_SIMPLE)
		return by_guess(w);
	if (w->rows)
		rows_put(w->u->rows, w->place, word | ROW_DERIVED);
	return by_rows(w, word | ROW_DERIVED);
}

/* Unwind in memory of a JIT: by the frame layout, if its runtime describes one. */
static int by_codemap(struct walk *w)
{
	struct object *object = w->mapping->object;
	const struct arch_ops *arch = w->u->arch;
	/* Acquire: pairs with codemap_publish(). */
	const struct codemap *map = atomic_load_explicit(&object->codemap, memory_order_acquire);
	const struct codemap_code *code = map ? codemap_find(map, w->pc) : NULL;
	uint64_t sp = w->f.reg[arch->sp];
	struct fp_input in;
	struct java_caller c;

	w->out->new_code = !code;
	w->out->unread_code = map && !map->derived && !code;
	if (!map || map->derived)
		return by_derived(w, code);
	if (w->word != 8 || arch->java_bcp == ARCH_NO_REG)
		return by_guess(w);
	/* Code that was made lately. The runtime uses the frame pointer for other values. */
	if (!code)
		return UNWIND_NO_CFI;
	in = guess_input(w);
	c = java_step(&in, map, code, w->pc, &w->f, !in.first && !w->out->nr_java);
	w->out->nr_java += code->java;
	if (!c.found)
		return by_guess(w);
	if (c.method && map->methods_object)
		w->out->place[w->out->nr - 1] =
			places_intern(w->u->places, map->methods_object, c.method);
	w->f.valid = 0;
	arch_set(&w->f, arch->pc, c.pc);
	arch_set(&w->f, arch->sp, c.sp);
	arch_set(&w->f, arch->fp, c.fp);
	if (c.sp <= sp)
		return UNWIND_BAD_FRAME;
	w->exact = false;
	w->guessed = c.guessed;
	return WALK_ON;
}

/* Spend on the search in the segments; false: over budget. Few files have more than ten. */
static bool spend_segments(const struct walk *w, const struct image *image)
{
	return image->nr_segments <= SEGMENTS_FREE ||
	       step_spend(w->u->step, image->nr_segments / SEGMENTS_A_READ);
}

/*
 * Return whether the kernel may execute a system call of the vdso, as the return from a signal
 * handler of a 32-bit process, behind which its code ends.
 */
static bool in_kernel_call(const struct walk *w)
{
	return w->word == 4 && w->exact && w->mapping->object->identity.kind == OBJECT_VDSO;
}

#define SITE_WORDS 1024U /* of the stack above, in which callers are looked for */

/* Return the site of large code that has no rows yet at @offset of its file; IMAGE_SITES: none. */
static unsigned int site_left(const struct image *image, uint64_t offset)
{
	unsigned int site;
	uint64_t vaddr;

	if (!image->sites.cut || !image_vaddr(image, offset, &vaddr))
		return IMAGE_SITES;
	site = image_site(image, vaddr);
	return site < IMAGE_SITES && image_of_site(image, site) ? IMAGE_SITES : site;
}

/*
 * Return whether the current place is in large code that is derived once samples are in it. The
 * first one requests the code of its callers too: any word above may be a return address.
 */
static bool waits_for_site(struct walk *w, const struct image *image)
{
	const struct arch_ops *arch = w->u->arch;
	const struct mapping *m = w->mapping;
	unsigned int site = site_left(image, w->offset);
	const uint64_t wanted = w->out->wanted;
	uint64_t at = w->f.reg[arch->sp], word;

	if (site == IMAGE_SITES || !object_has_sites(m->object))
		return false;
	if (!object_want_site(m->object, site))
		return true;
	w->out->asked = true;
	for (uint32_t i = 0; i < SITE_WORDS && arch_has(&w->f, arch->sp); i++, at += w->word) {
		if (!read_slot(arch, &w->copy, at, &word))
			break;
		site = word - m->start < m->end - m->start
			       ? site_left(image, m->offset + (word - m->start))
			       : IMAGE_SITES;
		if (site < IMAGE_SITES)
			object_want_site(m->object, site);
	}
	w->out->wanted = wanted;
	return true;
}

/* No row: unwind by the object's tables. */
static int by_object(struct walk *w)
{
	struct object *object = w->mapping->object;
	const struct image *image;
	struct ehframe_fde fde;
	uint64_t vaddr;
	bool found = false;

	if (object->identity.kind == OBJECT_ANON)
		return by_codemap(w);
	/* The copy of an instruction with a probe, or the way back of a return probe. */
	if (object->identity.kind == OBJECT_UNKNOWN && !(w->pc >> 63)) /* [vsyscall] is above */
		return UNWIND_PROBE;
	if (object->identity.kind != OBJECT_FILE && object->identity.kind != OBJECT_VDSO)
		return by_guess(w);
	/* Acquire: pairs with the loader's release of a finished image. */
	image = atomic_load_explicit(&object->image, memory_order_acquire);
	if (!image || image->away) {
		if (atomic_load_explicit(&object->state, memory_order_relaxed) >= OBJECT_FAILED)
			return by_guess(w);
		w->out->asked |= object_want(object);
		object_wait(object);
		return UNWIND_PENDING;
	}
	if (!spend_segments(w, image))
		return UNWIND_BUDGET;
	if (image->machine == w->u->arch->machine && image_vaddr(image, w->offset, &vaddr)) {
		if (is_sigreturn(image, vaddr + !w->exact) || is_sigreturn(image, vaddr)) {
			rows_put(w->u->rows, w->place, ROW_SIGNAL);
			return by_signal(w, w->u->arch->sig_offset);
		}
		found = has_rows(image, vaddr, &fde) ||
			(in_kernel_call(w) && has_rows(image, --vaddr, &fde));
		if (!found && !w->exact && begins_behind(image, vaddr)) {
			rows_put(w->u->rows, w->place, ROW_ENTRY);
			return by_entry(w);
		}
	}
	if (found)
		return by_step(w, image_rows(image, vaddr), vaddr, &fde);
	if (!waits_for_site(w, image))
		rows_put(w->u->rows, w->place, ROW_NO_CFI);
	return by_guess(w);
}

/* Return true in a builtin of V8: rows that were derived from its code know no JavaScript. */
static bool in_builtin(const struct walk *w)
{
	return w->in->v8 && w->mapping->object->identity.kind != OBJECT_ANON &&
	       v8_is_code(w->in->v8, w->mapping, w->offset);
}

/*
 * Replace the current frame by that of its caller. Return WALK_ON; WALK_AGAIN (call again: the
 * place has a row now), WALK_REDO, or the reason to stop.
 */
static int caller_find(struct walk *w)
{
	uint64_t row = w->rows ? rows_get(w->u->rows, w->place) : 0;

	/* Code of V8 that was read before its process was described: rows know no JavaScript. */
	if (row & ROW_DERIVED && w->in->v8 && w->mapping->object->identity.kind == OBJECT_ANON)
		row = 0;
	if (w->ended)
		return UNWIND_COMPLETE;
	if (in_builtin(w))
		return by_guess(w);
	switch (row_kind(row)) {
	case ROW_SIMPLE:
		return by_rows(w, row);
	case ROW_END:
		w->row_hits++;
		return row & ROW_SWITCH ? by_switch(w) : by_root(w, &w->f);
	case ROW_NO_CFI:
		return by_guess(w);
	case ROW_REFUSED:
		return UNWIND_CFI_REFUSED;
	case ROW_ENTRY:
		return w->exact ? by_guess(w) : by_entry(w);
	case ROW_SIGNAL:
		return by_signal(w, w->u->arch->sig_offset);
	case ROW_UNKNOWN:
	case ROW_STEP:
		break;
	}
	return by_object(w);
}

/* Look up the current pc. False: not in code. */
static bool find_place(struct walk *w)
{
	const struct mapping *m = space_find(w->in->space, w->pc, w->in->time_ns);
	bool code = m && m->exec;

	w->mapping = m;
	/* All addresses outside the mappings are one place: junk must not fill the table. */
	w->offset = m ? m->offset + (w->pc - m->start) : 0;
	if (code || !w->out->nr)
		w->place = places_intern(w->u->places, m ? m->object->id : OBJECT_ID_UNKNOWN,
					 w->offset);
	return code;
}

/*
 * The current frame is none, for the reason @stop. If a guess has led here, the code of the frame
 * below is not that of the function it was taken for, or the word on top of the stack was no return
 * address: follow its frame pointer, which files without tables are often built with.
 */
static int by_frame_below(struct walk *w, int stop)
{
	if (!w->likely)
		return stop;
	w->f = w->below;
	w->pc = w->out->ip[w->out->nr - 1];
	w->exact = false;
	if (!find_place(w) || by_guess(w) != WALK_ON)
		return stop;
	w->out->maps_stale = false;
	return WALK_ON;
}

/*
 * Return true if the kernel put a return address on the stack: a return probe is set on
 * the function, and the address of its caller is known to the kernel alone.
 */
static bool in_return_probe(const struct walk *w)
{
	uint64_t pc = w->f.reg[w->u->arch->pc];
	const struct mapping *m =
		w->out->nr && !w->exact ? space_find(w->in->space, pc, w->in->time_ns) : NULL;

	return m && m->exec && m->start == pc && m->object->identity.kind == OBJECT_UNKNOWN;
}

#define PROBE_WORDS 512U /* of the stack above a return probe */
#define PROBE_ASKS  4U	 /* questions of one walk */

/*
 * Look for the caller of @function, which returns to a probe, at the words further up: see
 * leave_probe(). CALL_UNKNOWN: some code is to be read first.
 */
static enum call_verdict find_caller(struct walk *w, uint64_t function, enum call_kind kind)
{
	const uint64_t sp = w->f.reg[w->u->arch->sp], probe = w->f.reg[w->u->arch->pc];
	unsigned int asks = 0, depth = 0;
	uint64_t word, site, at;

	for (unsigned int i = 0; i < PROBE_WORDS; i++) {
		const struct mapping *m;
		uint64_t key;

		if (!stack_copy_read(&w->copy, sp + 8 * i, &word))
			break;
		depth += word == probe && depth < CALL_DEPTH_MAX;
		m = space_find(w->in->space, word - 1, w->in->time_ns);
		if (!m || !m->exec || m->object->identity.kind != OBJECT_FILE)
			continue;
		key = hash_u64(w->serial) ^ (unsigned int)kind << 8 ^ depth;
		key = hash_u64(word ^ hash_u64(function ^ hash_u64(key))) | 8;
		switch (call_site(key, &site)) {
		case CALL_UNKNOWN:
			if (asks++ < PROBE_ASKS)
				ask(w, (struct call_question){
					       .key = key,
					       .address = word,
					       .function = function,
					       .depth = (uint8_t)depth,
					       .kind = kind,
				       });
			break;
		case CALL_REACHES:
			at = site & ((1ULL << CALL_SITE_BITS) - 1);
			if (function_start(w, at - 1) != at - (site >> CALL_SITE_BITS))
				break;
			arch_set(&w->f, w->u->arch->pc, at);
			w->expected = depth ? probe : word;
			w->guessed = w->out->probed = true;
			w->by_register = kind == CALL_BY;
			return CALL_REACHES;
		default:
			break;
		}
	}
	return asks ? CALL_UNKNOWN : CALL_NONE;
}

/*
 * Leave the return probe on the function before: its caller is a function with a call of it, which
 * is called itself before a return address further up. That code leads to this very address by its
 * tables, or the stack ends there: see enter_frame(). Where other probes are in between, their
 * functions called one another, and the next one is led to. A call by register may be of any
 * function: it is the last to be looked for. False: none is known.
 */
static bool leave_probe(struct walk *w)
{
	const uint64_t last = w->out->ip[w->out->nr - 1];
	uint64_t function = w->u->ask_calls ? function_start(w, last) : 0;
	enum call_verdict v = function ? find_caller(w, function, CALL_SITE) : CALL_UNKNOWN;

	if (v == CALL_NONE)
		v = find_caller(w, function, CALL_BY);
	return v == CALL_REACHES;
}

/* The caller of a function with a return probe is another one: drop it. */
static int refuse_caller(struct walk *w)
{
	w->out->nr--;
	w->out->nr_guessed--;
	return UNWIND_PROBE;
}

/* Return a number of the function with the frame before: all its instructions share an answer. */
static uint64_t callee_key(const struct walk *w)
{
	const uint32_t id = w->out->place[w->out->nr - 1];
	const uint64_t pc = w->out->ip[w->out->nr - 1], start = function_start(w, pc);
	const struct place *place = start ? places_at(w->u->places, id) : NULL;

	return place ? hash_u64(place->offset - (pc - start)) ^ place->object : id;
}

/*
 * The current frame was found without tables: it is one if its address is behind a call, and no
 * guess if that call leads to the function before. Until that is known it is a guess.
 */
static int prove_call(struct walk *w)
{
	enum row_kind kind = row_kind(rows_get(w->u->rows, w->place));
	uint64_t key = w->place ^ hash_u64(w->u->serial);

	w->unproven = false;
	/* Nothing calls the first function of a stack, nor the return from a signal handler. */
	if (!w->u->ask_calls || w->exact || kind == ROW_END || kind == ROW_ENTRY ||
	    kind == ROW_SIGNAL)
		return WALK_ON;
	key = hash_u64(w->guessed ? key ^ hash_u64(callee_key(w)) : key) | 8;
	switch (call_verdict(key)) {
	case CALL_UNKNOWN:
		ask(w,
		    (struct call_question){
			    .key = key,
			    .address = w->pc + 1,
			    .function = w->guessed ? function_start(w, w->out->ip[w->out->nr - 1])
						   : 0,
		    });
		w->guessed = true;
		break;
	case CALL_NONE:
		return UNWIND_NO_CALL;
	case CALL_REACHES:
		w->guessed = false;
		break;
	case CALL_UNREADABLE:
	case CALL_SOME:
		break;
	}
	return WALK_ON;
}

/* Find the place of the current pc and add it to the result. */
static int enter_frame(struct walk *w)
{
	struct unwind_result *out = w->out;
	const struct recent_entry *r;

	if (w->expected && w->expected != w->f.reg[w->u->arch->pc])
		return refuse_caller(w);
	w->expected = 0;
	w->pc = w->f.reg[w->u->arch->pc] - !w->exact;
	r = caller_recent(w, w->pc);
	if (r) {
		w->mapping = r->mapping;
		w->offset = r->mapping->offset + (w->pc - r->mapping->start);
		w->place = r->place;
	} else if (find_place(w)) {
		if (w->place != PLACE_NONE && !space_has_ended(w->in->space, w->mapping))
			*recent_slot(&w->u->recent, w->serial, w->pc) =
				(struct recent_entry){ w->pc, w->serial, w->mapping, w->place };
	} else if (in_return_probe(w)) {
		if (!leave_probe(w))
			return UNWIND_PROBE;
		w->pc = w->f.reg[w->u->arch->pc] - 1;
		if (!find_place(w))
			return UNWIND_PROBE;
	} else {
		out->maps_stale = true;
		if (out->nr)
			return UNWIND_NO_MAP;
	}
	if (w->unproven && prove_call(w) != WALK_ON)
		return UNWIND_NO_CALL;
	caller_add_frame(w, w->pc, arch_has(&w->f, w->u->arch->sp) ? w->f.reg[w->u->arch->sp] : 0,
			 w->place, w->mapping);
	if (w->guessed && !out->nr_guessed)
		out->guessed_by = MAX(out->nr, 2u) - 2;
	out->nr_guessed += w->guessed;
	out->nr_loop_guessed += w->guessed && w->loop;
	w->loop = w->likely = false;
	if (out->maps_stale)
		return UNWIND_NO_MAP;
	return out->nr == UNWIND_FRAMES_MAX ? UNWIND_DEPTH : WALK_ON;
}

static bool is_below(const struct walk *w, uint64_t addr)
{
	return w->copy.sp - addr - 1 < STACK_COPY_BELOW;
}

/*
 * The outer frames may be of another time than the sample: each with a return address in the second
 * copy of the same stack is a guess, all of them if the first is found by a word below sp there.
 */
static void doubt_outer(const struct walk *w)
{
	const struct unwind_interrupted *more = &w->copy.interrupted;
	struct unwind_result *out = w->out;
	uint32_t inner = 1;

	if (!more->size || !more->guessed || more->from)
		return;
	while (!is_below(w, out->wanted) && inner < out->nr &&
	       !stack_copy_second(more, out->sp[inner] - w->word, w->word))
		inner++;
	if (inner >= out->nr)
		return;
	if (!out->nr_guessed || out->guessed_by >= inner)
		out->guessed_by = inner - 1;
	out->nr_guessed = MAX(out->nr_guessed, out->nr - inner);
	out->nr_loop_guessed = 0;
}

#define STARTED_FRAMES 4 /* of the outermost ones, at which a stack may have begun */

/*
 * Return true if frame @i returns to the first byte of a function that was put there by hand: no
 * call is before it, or one of that very function (glibc's abort()), which is not the one below.
 * The one of glibc's makecontext() for i386 has no table, and is the outermost.
 */
static bool is_put_there(struct walk *w, uint32_t i)
{
	const uint64_t pc = w->out->ip[i] + 1, key = hash_u64(pc ^ hash_u64(~w->serial)) | 8;
	const uint64_t start = function_start(w, pc);
	const bool bare = !start && w->word == 4 && i + 1 == w->out->nr;
	enum call_verdict v = call_verdict(key);

	if (!bare && (start != pc || function_start(w, w->out->ip[i - 1]) == pc))
		return false;
	if (v == CALL_UNKNOWN)
		ask(w, (struct call_question){ .key = key, .address = pc, .function = pc });
	return v == CALL_NONE || (v == CALL_REACHES && !bare);
}

/*
 * A walk failed: return true if one of its last frames returns to a function that ends a stack
 * started by hand, as the first one of libcoro does to abort(). Frames behind it were found in the
 * function before that.
 */
static bool was_started_by_hand(struct walk *w)
{
	struct unwind_result *out = w->out;
	uint32_t i = MAX(out->nr, STARTED_FRAMES + 1) - STARTED_FRAMES;

	if (!w->u->ask_calls || out->nr_guessed)
		return false;
	while (i < out->nr && !is_put_there(w, i))
		i++;
	if (i >= out->nr)
		return false;
	w->pc = out->ip[i] + 1;
	if (!find_place(w))
		return false;
	out->nr = i;
	out->wanted = 0;
	out->maps_stale = false;
	out->fiber = true;
	caller_add_frame(w, w->pc, out->sp[i], w->place, w->mapping);
	return true;
}

#define START_FRAMES 4U /* the last ones: of _start, and of the C library up to main() */

/*
 * Add main() to a whole stack if it does no more than jump to the function that the C library's
 * start seems to have called.
 */
static void put_main(struct walk *w)
{
	struct unwind_result *out = w->out;
	/* Acquire: pairs with the loader's release of a finished image. */
	const struct image *image =
		w->mapping && w->mapping->object->identity.kind == OBJECT_FILE
			? atomic_load_explicit(&w->mapping->object->image, memory_order_acquire)
			: NULL;
	uint32_t i = MAX(out->nr, START_FRAMES) - START_FRAMES;
	uint64_t bias, vaddr;

	if (!image || !image->main_to || image->away || out->nr == UNWIND_FRAMES_MAX ||
	    !image_vaddr(image, w->offset, &vaddr))
		return;
	bias = w->pc - vaddr;
	while (i < out->nr && function_start(w, out->ip[i]) != bias + image->main_to)
		i++;
	w->pc = bias + image->main_end - 1;
	if (++i >= out->nr || !find_place(w))
		return;
	for (uint32_t k = out->nr++; k > i; k--) {
		out->ip[k] = out->ip[k - 1];
		out->sp[k] = out->sp[k - 1];
		out->place[k] = out->place[k - 1];
	}
	out->ip[i] = w->pc;
	out->place[i] = w->place;
	out->guessed_by += out->guessed_by >= i;
}

int walk_stack(struct unwinder *u, const struct unwind_input *in, struct unwind_result *out,
	       bool rows)
{
	struct walk w;
	int stop = WALK_ON;

	memset(&w, 0, offsetof(struct walk, f));
	w.u = u;
	w.in = in;
	w.out = out;
	w.clock = object_clock(in->time_ns);
	out->nr = out->nr_guessed = 0;
	out->wanted = 0;
	out->nr_v8 = out->nr_v8_guessed = out->nr_loop_guessed = 0;
	out->nr_java = 0;
	out->new_code = out->unread_code = out->probed = out->fiber = false;
	arch_load(&u->order, &w.f, in->regs_mask, in->regs);
	if (!arch_has(&w.f, u->arch->pc) || !arch_has(&w.f, u->arch->sp))
		return UNWIND_BAD_REGS;
	w.serial = space_serial(in->space);
	w.word = in->regs_abi == PERF_SAMPLE_REGS_ABI_32 ? 4 : 8;
	w.rows = rows && w.word == u->arch->word;
	w.copy = (struct stack_copy){ w.f.reg[u->arch->sp], in->stack,	     in->stack_size,
				      in->stack_full,	    in->interrupted, &out->wanted };
	w.exact = !caller_in_sigreturn(&w);
	while (stop == WALK_ON) {
		stop = enter_frame(&w);
		if (stop == UNWIND_NO_MAP || stop == UNWIND_NO_CALL)
			stop = by_frame_below(&w, stop);
		else if (stop == WALK_ON)
			stop = caller_find(&w);
		if (stop == WALK_AGAIN) /* the place has a row now */
			stop = caller_find(&w);
	}
	if (stop == UNWIND_COMPLETE && w.expected && w.by_register)
		stop = refuse_caller(&w);
	assert(stop < UNWIND_NR_STOPS || (stop == WALK_REDO && w.rows));
	if (stop < UNWIND_NR_STOPS && stop != UNWIND_COMPLETE && stop != UNWIND_PENDING &&
	    was_started_by_hand(&w))
		stop = UNWIND_COMPLETE;
	if (stop == UNWIND_COMPLETE)
		put_main(&w);
	space_read(in->space);
	doubt_outer(&w);
	if (out != &u->scratch) {
		unwinder_count(&u->count.row_hits, w.row_hits);
		unwinder_count(&u->count.steps, w.steps);
	}
	return stop;
}

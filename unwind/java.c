// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames of HotSpot. Runs on sampler threads. */
#include "unwind/internal.h"

#include "symbols/jit/jit.h"

/* Slots of an interpreter frame, in bytes from the frame pointer (JDK 11 to 25, x86-64). */
#define SLOT_SENDER_SP (-8)

#define SLOT_LAST_SP (-16)
#define SLOT_METHOD  (-24)
#define SLOT_BCP     (-64)

/*
 * Words that C2's code for some methods pushes below its frame: String.compareTo() one,
 * BigInteger.multiplyToLen() five (MacroAssembler::string_compare(), multiply_to_len()).
 */
#define PUSHED_MAX 6

/* Return whether @pc is a return address into code that calls Java: of the map, or of the JVM. */
static bool returns_to(const struct fp_input *in, uint64_t pc)
{
	return pc && fp_is_code(in, pc);
}

/* Read {frame pointer, return address} at @at; false: no such frame. */
static bool read_record(const struct fp_input *in, uint64_t at, struct java_caller *c)
{
	return stack_copy_read(in->copy, at, &c->fp) && stack_copy_read(in->copy, at + 8, &c->pc) &&
	       returns_to(in, c->pc);
}

/* In a prologue or epilogue: the return address is on top, or below the pushed frame pointer. */
static bool find_on_top(const struct fp_input *in, const struct arch_frame *f,
			struct java_caller *c)
{
	uint64_t sp = f->reg[in->arch->sp];

	c->fp = f->reg[in->arch->fp];
	c->sp = sp + 8;
	if (stack_copy_read(in->copy, sp, &c->pc) && returns_to(in, c->pc))
		return true;
	c->sp = sp + 16;
	return read_record(in, sp, c);
}

/* Bytes from the removal of a frame to the return, or the jump. */
#define EXIT_BYTES 32U

/* Return whether the frame may be removed already at @offset, but for its return address. */
static bool may_be_at_exit(const struct codemap_code *code, uint64_t offset)
{
	for (uint64_t exits = code->exits; exits; exits >>= 16)
		if (offset - (exits & 0xffff) < EXIT_BYTES)
			return true;
	return !code->exits;
}

/*
 * Return whether the frame of recursive code may be removed already, but for the return address:
 * the frame of its caller, of the same size, would be taken for it.
 */
static bool may_leave(const struct fp_input *in, const struct codemap_code *code, uint64_t sp)
{
	uint64_t word;

	for (uint32_t i = 0; i < 2 && i + 1 < code->frame_words; i++)
		if (stack_copy_read(in->copy, sp + 8 * i, &word) &&
		    word - 1 - code->start < code->size)
			return true;
	return false;
}

static struct java_caller step_of(const struct fp_input *in, const struct codemap *map,
				  const struct codemap_code *code, uint64_t pc,
				  const struct arch_frame *f);

/* Find the caller of the frame of @c, which is in @code. */
static struct java_caller caller_of(const struct fp_input *in, const struct codemap *map,
				    const struct codemap_code *code, const struct java_caller *c)
{
	struct arch_frame f = { .valid = 0 };
	struct fp_input next = *in;

	next.first = false;
	arch_set(&f, in->arch->sp, c->sp);
	arch_set(&f, in->arch->fp, c->fp);
	return step_of(&next, map, code, c->pc - 1, &f);
}

/* Return whether the frame of @c may have a caller: an old return address on a stack has none. */
static bool may_be_frame(const struct fp_input *in, const struct codemap *map,
			 const struct java_caller *c)
{
	const struct codemap_code *code = codemap_find(map, c->pc - 1);

	return !code || caller_of(in, map, code, c).found;
}

/* Return whether the frame of @c has a caller, for certain. */
static bool is_frame(const struct fp_input *in, const struct codemap *map,
		     const struct java_caller *c)
{
	const struct codemap_code *code = codemap_find(map, c->pc - 1);
	struct java_caller caller = { .found = false };

	if (code)
		caller = caller_of(in, map, code, c);
	return caller.found && !caller.guessed;
}

/*
 * Find the frame record above words that an instruction sequence has pushed. Returns their number;
 * 0: no such record.
 */
static uint32_t find_pushed(const struct fp_input *in, const struct codemap *map,
			    const struct codemap_code *code, uint64_t sp, struct java_caller *c)
{
	for (uint32_t i = 1; i <= PUSHED_MAX; i++) {
		c->sp = sp + 8ULL * (code->frame_words + i);
		if (read_record(in, c->sp - 16, c) && is_frame(in, map, c))
			return i;
	}
	return 0;
}

/*
 * Find the caller of the innermost frame, which is not complete, or has pushed words below it.
 * @complete: it may be.
 */
static struct java_caller by_words(const struct fp_input *in, const struct codemap *map,
				   const struct codemap_code *code, const struct arch_frame *f,
				   bool complete)
{
	struct java_caller top = { .guessed = true }, pushed = { .guessed = true };
	uint32_t nr;

	top.found = find_on_top(in, f, &top);
	if (!complete || (top.found && may_be_frame(in, map, &top)))
		return top;
	nr = find_pushed(in, map, code, f->reg[in->arch->sp], &pushed);
	pushed.found = nr;
	/* Below several words an old record may have been found. */
	pushed.guessed = nr != 1;
	return pushed.found ? pushed : top;
}

/* Return whether the frame may be removed but for its return address: layout finds one above it. */
static bool may_be_removed(const struct fp_input *in, const struct codemap *map,
			   const struct arch_frame *f)
{
	struct java_caller top;

	return find_on_top(in, f, &top) && is_frame(in, map, &top);
}

static struct java_caller fixed_frame(const struct fp_input *in, const struct codemap *map,
				      const struct codemap_code *code, uint64_t pc,
				      const struct arch_frame *f)
{
	uint64_t sp = f->reg[in->arch->sp], offset = pc - code->start;
	bool early = in->first && code->complete < code->size && offset < code->complete;
	bool exits = in->first && may_be_at_exit(code, offset);
	struct java_caller c = { .guessed = in->first };

	if (!arch_has(f, in->arch->sp))
		return c;
	if (exits)
		early |= may_leave(in, code, sp);
	if (!early) {
		c.sp = sp + 8ULL * code->frame_words;
		c.found = read_record(in, c.sp - 16, &c);
		/* Layout proves the middle of the body; at its ends, the bytes found there. */
		c.guessed = !c.found || (in->first && !codemap_find(map, c.pc - 1));
	}
	if (!c.found && in->first)
		c = by_words(in, map, code, f, !early);
	else if (exits && !c.guessed)
		c.guessed = may_be_removed(in, map, f);
	/* Interpreted from here on: the innermost of several methods is not known. */
	c.guessed |= code->deopt && pc + 1 == code->deopt;
	return c;
}

/*
 * Return whether the slots at @fp belong to a frame of @m that is executed, or to its direct
 * caller's while a method is entered. @bcp: the register, for the innermost frame.
 */
static bool is_interpreted(const struct fp_input *in, const struct codemap_method *m, uint64_t fp,
			   uint64_t bcp)
{
	uint64_t saved, last_sp;

	if (!stack_copy_read(in->copy, fp + (uint64_t)SLOT_BCP, &saved))
		return false;
	/* A native method has no bytecodes. */
	if (!m->size)
		return !saved;
	if (!in->first)
		return saved - m->start < m->size;
	if (bcp - m->start < m->size)
		return true;
	/* At the entry of a method the register has its sender's sp: as address, or from JDK 22 on
	 * in words from the frame pointer. */
	return saved - m->start < m->size &&
	       stack_copy_read(in->copy, fp + (uint64_t)SLOT_LAST_SP, &last_sp) && last_sp &&
	       (last_sp == bcp || fp + 8 * last_sp == bcp);
}

static struct java_caller interpreter_frame(const struct fp_input *in, const struct codemap *map,
					    const struct arch_frame *f)
{
	const struct arch_ops *arch = in->arch;
	uint64_t fp = f->reg[arch->fp], method = 0;
	const struct codemap_method *m;
	struct java_caller c = { .guessed = true };

	if (!arch_has(f, arch->fp) || fp < f->reg[arch->sp] || !read_record(in, fp, &c) ||
	    !stack_copy_read(in->copy, fp + (uint64_t)SLOT_SENDER_SP, &c.sp) || c.sp <= fp ||
	    !stack_copy_read(in->copy, fp + (uint64_t)SLOT_METHOD, &method) || method % 8)
		return c;
	c.found = true;
	m = codemap_method(map, method);
	c.guessed = !m || !is_interpreted(in, m, fp, f->reg[arch->java_bcp]);
	c.method = !m || !c.guessed || !in->first ? method : 0;
	return c;
}

/* Stubs that are called from are frames with a frame pointer; certain is that one that calls Java.
 */
static struct java_caller stub_frame(const struct fp_input *in, const struct codemap *map,
				     uint64_t pc, const struct arch_frame *f)
{
	uint64_t fp = f->reg[in->arch->fp];
	struct java_caller c = { .sp = fp + 16, .guessed = pc + 1 != map->call_return };

	c.found = !in->first && arch_has(f, in->arch->fp) && fp >= f->reg[in->arch->sp] &&
		  read_record(in, fp, &c);
	return c;
}

static struct java_caller step_of(const struct fp_input *in, const struct codemap *map,
				  const struct codemap_code *code, uint64_t pc,
				  const struct arch_frame *f)
{
	switch (code->kind) {
	case CODEMAP_FIXED:
		return fixed_frame(in, map, code, pc, f);
	case CODEMAP_INTERPRETER:
		return interpreter_frame(in, map, f);
	case CODEMAP_DERIVED:
	case CODEMAP_OTHER:
		break;
	}
	return stub_frame(in, map, pc, f);
}

struct java_caller java_step(const struct fp_input *in, const struct codemap *map,
			     const struct codemap_code *code, uint64_t pc,
			     const struct arch_frame *f, bool leaf)
{
	struct java_caller c = step_of(in, map, code, pc, f);

	c.guessed |= code->retired || map->untried;
	/* Calls that cannot stop the thread are not described: its inlined methods are not known.
	 */
	c.guessed |= leaf && code->inlines && !codemap_describes(map, pc);
	/* So are those in a loop without safepoints. */
	c.guessed |= in->first && code->blind;
	return c;
}

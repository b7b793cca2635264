// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames of HotSpot. Runs on sampler threads.
 */
#include "unwind/jit.h"

/* Slots of an interpreter frame, in bytes from the frame pointer (JDK 11 to 22, x86-64). */
#define SLOT_SENDER_SP (-8)
#define SLOT_METHOD    (-24)
#define SLOT_BCP       (-64)

/* Is @pc a return address into code that calls Java: of the map, or the JVM's own? */
static bool returns_to(const struct fp_input *in, uint64_t pc)
{
	return pc && fp_is_code(in, pc);
}

/* Read {frame pointer, return address} at @at; false: no such frame. */
static bool read_record(const struct fp_input *in, uint64_t at, struct jit_caller *c)
{
	return stack_copy_read(in->copy, at, &c->fp) && stack_copy_read(in->copy, at + 8, &c->pc) &&
	       returns_to(in, c->pc);
}

/* In a prologue or epilogue: the return address is on top, or below the pushed frame pointer. */
static bool find_on_top(const struct fp_input *in, const struct arch_frame *f, struct jit_caller *c)
{
	uint64_t sp = f->reg[in->arch->sp];

	c->fp = f->reg[in->arch->fp];
	c->sp = sp + 8;
	if (stack_copy_read(in->copy, sp, &c->pc) && returns_to(in, c->pc))
		return true;
	c->sp = sp + 16;
	return read_record(in, sp, c);
}

/*
 * May the frame of recursive code be removed already, but for the return address? Then the frame
 * of its caller, of the same size, would be taken for it.
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

static struct jit_caller fixed_frame(const struct fp_input *in, const struct codemap *map,
				     const struct codemap_code *code, uint64_t pc,
				     const struct arch_frame *f)
{
	uint64_t sp = f->reg[in->arch->sp], offset = pc - code->start;
	bool early = in->first && code->complete < code->size && offset < code->complete;
	struct jit_caller c = { .guessed = in->first };

	if (!arch_has(f, in->arch->sp))
		return c;
	if (in->first)
		early |= may_leave(in, code, sp);
	if (!early) {
		c.sp = sp + 8ULL * code->frame_words;
		c.found = read_record(in, c.sp - 16, &c);
		/* Layout proves the middle of the body; at its ends, the bytes found there. */
		c.guessed = !c.found || (in->first && !codemap_find(map, c.pc - 1));
	}
	if (!c.found && in->first)
		c.found = find_on_top(in, f, &c);
	return c;
}

static struct jit_caller interpreter_frame(const struct fp_input *in, const struct codemap *map,
					   const struct arch_frame *f)
{
	const struct arch_ops *arch = in->arch;
	uint64_t fp = f->reg[arch->fp], bcp = 0, method = 0;
	const struct codemap_method *m;
	struct jit_caller c = { .guessed = true };

	if (!arch_has(f, arch->fp) || fp < f->reg[arch->sp] || !read_record(in, fp, &c) ||
	    !stack_copy_read(in->copy, fp + (uint64_t)SLOT_SENDER_SP, &c.sp) || c.sp <= fp ||
	    !stack_copy_read(in->copy, fp + (uint64_t)SLOT_METHOD, &method) || method % 8)
		return c;
	c.found = true;
	if (in->first)
		bcp = f->reg[arch->java_bcp];
	else
		stack_copy_read(in->copy, fp + (uint64_t)SLOT_BCP, &bcp);
	m = codemap_method(map, method);
	/* At entry and exit of a method the frame pointer is the caller's. */
	c.guessed = !m || bcp - m->start >= m->size;
	c.method = !m || !c.guessed || !in->first ? method : 0;
	return c;
}

/* Stubs that are called from are frames with a frame pointer (call_stub). */
static struct jit_caller stub_frame(const struct fp_input *in, const struct arch_frame *f)
{
	uint64_t fp = f->reg[in->arch->fp];
	struct jit_caller c = { .sp = fp + 16 };

	c.found = !in->first && arch_has(f, in->arch->fp) && fp >= f->reg[in->arch->sp] &&
		  read_record(in, fp, &c);
	return c;
}

struct jit_caller jit_step(const struct fp_input *in, const struct codemap *map,
			   const struct codemap_code *code, uint64_t pc, const struct arch_frame *f)
{
	switch (code->kind) {
	case CODEMAP_FIXED:
		return fixed_frame(in, map, code, pc, f);
	case CODEMAP_INTERPRETER:
		return interpreter_frame(in, map, f);
	case CODEMAP_OTHER:
		break;
	}
	return stub_frame(in, f);
}

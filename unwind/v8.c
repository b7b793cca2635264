// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames of V8. Runs on sampler threads. */
#include "unwind/internal.h"

#include "symbols/script/script.h"
#include "symbols/image/image.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/process/process.h"

bool v8_is_code(const struct lang_process *p, const struct mapping *m, uint64_t offset)
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

bool v8_step(const struct fp_input *in, const struct lang_process *p, bool compiled,
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

bool v8_is_javascript(const struct fp_input *in, const struct lang_process *p, uint64_t fp)
{
	uint64_t context, function;

	return stack_copy_read(in->copy, fp + (uint64_t)(int64_t)p->v8.number[V8_FP_CONTEXT],
			       &context) &&
	       stack_copy_read(in->copy, fp + (uint64_t)(int64_t)p->v8.number[V8_FP_FUNCTION],
			       &function) &&
	       (context & 3) == 1 && (function & 3) == 1;
}

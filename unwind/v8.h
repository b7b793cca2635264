/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The caller of a frame of V8's code: compiled functions and builtins, which have
 * no CFI but keep the frame pointer (V8 source: frame-constants.h).
 *
 * A frame that has made a call has a record at its frame pointer. The innermost
 * one may have none: builtins such as the handlers of bytecodes leave it out, and
 * functions make it and leave it. Pure; sampler threads.
 */
#ifndef UNWIND_V8_H
#define UNWIND_V8_H

#include "symbols/lang/lang.h"
#include "unwind/guess.h"

/* Return true if the code at @offset of @m's object is V8's; @p: of the process. */
bool v8_is_code(const struct lang_process *p, const struct mapping *m, uint64_t offset);

/*
 * Replace @f by its caller; false: there is none. in->first: the innermost frame; then *guessed.
 * @compiled: it is in memory, no builtin.
 */
bool v8_step(const struct fp_input *in, const struct lang_process *p, bool compiled,
	     struct arch_frame *f, bool *guessed);

/* Return true if the frame at @fp is one of JavaScript: with a function and its context. */
bool v8_is_javascript(const struct fp_input *in, const struct lang_process *p, uint64_t fp);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The caller of a frame of JIT code with a layout that its runtime describes
 * (symbols/jit/codemap.h): HotSpot's compiled code and interpreter.
 *
 * Compiled code: CFA = sp + 8 * frame_words, return address and frame pointer
 * just below (JDK source: frame_x86.cpp, x86_64.ad). Interpreter: method,
 * bytecode pointer and the caller's sp in slots below the frame pointer
 * (frame_x86.hpp). Pure; sampler threads.
 */
#ifndef UNWIND_JAVA_H
#define UNWIND_JAVA_H

#include "symbols/jit/codemap.h"
#include "unwind/guess.h"

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

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sample as the kernel would take it: registers in perf's order and the
 * bytes of the stack, of this thread (shot_take) or of a stopped child.
 */
#ifndef TESTS_SHOT_H
#define TESTS_SHOT_H

#include <asm/perf_regs.h>
#include <stdint.h>
#include <string.h>

#define SHOT_STACK (64u << 10)
#define SHOT_MASK  0xff01ffULL

struct shot {
	uint64_t regs[17];		/* packed: AX BX CX DX SI DI BP SP IP R8..R15 */
	uint64_t stack_end;		/* of the memory that holds the stack */
	size_t size;
	uint8_t stack[SHOT_STACK];
};

enum { SHOT_BP = 6, SHOT_SP = 7, SHOT_IP = 8 };

/* Must run in the frame that is to be the innermost one. */
#define shot_regs(s)                                                                            \
	__asm__ volatile("movq %%rax, 0(%0)\n\tmovq %%rbx, 8(%0)\n\tmovq %%rcx, 16(%0)\n\t"         \
			 "movq %%rdx, 24(%0)\n\tmovq %%rsi, 32(%0)\n\tmovq %%rdi, 40(%0)\n\t"        \
			 "movq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r8, 72(%0)\n\t"         \
			 "movq %%r9, 80(%0)\n\tmovq %%r10, 88(%0)\n\tmovq %%r11, 96(%0)\n\t"         \
			 "movq %%r12, 104(%0)\n\tmovq %%r13, 112(%0)\n\tmovq %%r14, 120(%0)\n\t"     \
			 "movq %%r15, 128(%0)\n\tleaq 0f(%%rip), %%rax\n0:\tmovq %%rax, 64(%0)"      \
			 :                                                                          \
			 : "r"((s)->regs)                                                           \
			 : "rax", "memory")

/* Copy the stack from sp up; word by word, since sanitizers guard parts of it. */
__attribute__((no_sanitize("address"), noinline, unused))
static void shot_stack(struct shot *s)
{
	uint64_t sp = s->regs[SHOT_SP], size = s->stack_end - sp;

	s->size = size < SHOT_STACK ? size & ~7ULL : SHOT_STACK;
	for (size_t i = 0; i < s->size; i += 8) {
		volatile uint64_t *from = (volatile uint64_t *)(sp + i);
		volatile uint64_t *to = (volatile uint64_t *)(s->stack + i);

		*to = *from;
	}
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sample as the kernel would take it: registers in perf's order and the
 * bytes of the stack, of this thread (shot_take) or of a stopped child.
 */
#ifndef TESTS_SHOT_H
#define TESTS_SHOT_H

#include <asm/perf_regs.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define SHOT_STACK (64u << 10)
#if defined(__aarch64__)
#define SHOT_MASK 0x1ffffffffULL
#define SHOT_NR	  33 /* x0..x30, sp, pc */
enum { SHOT_FP = 29, SHOT_SP = 31, SHOT_IP = 32 };
#else
#define SHOT_MASK 0xff01ffULL
#define SHOT_NR	  17 /* packed: AX BX CX DX SI DI BP SP IP R8..R15 */
enum { SHOT_FP = 6, SHOT_SP = 7, SHOT_IP = 8 };
#endif

struct shot {
	uint64_t regs[SHOT_NR];
	uint64_t stack_end; /* of the memory that holds the stack */
	size_t size;
	uint8_t stack[SHOT_STACK];
};

/* Must run in the frame that is to be the innermost one. */
#if defined(__aarch64__)
#define shot_regs(s)                                                                               \
	__asm__ volatile("stp x0, x1, [%0]\n\tstp x2, x3, [%0, 16]\n\tstp x4, x5, [%0, 32]\n\t"    \
			 "stp x6, x7, [%0, 48]\n\tstp x8, x9, [%0, 64]\n\tstp x10, x11, [%0, "     \
			 "80]\n\t"                                                                 \
			 "stp x12, x13, [%0, 96]\n\tstp x14, x15, [%0, 112]\n\tstp x16, x17, "     \
			 "[%0, 128]\n\t"                                                           \
			 "stp x18, x19, [%0, 144]\n\tstp x20, x21, [%0, 160]\n\tstp x22, x23, "    \
			 "[%0, 176]\n\t"                                                           \
			 "stp x24, x25, [%0, 192]\n\tstp x26, x27, [%0, 208]\n\tstp x28, x29, "    \
			 "[%0, 224]\n\t"                                                           \
			 "mov x9, sp\n\tstp x30, x9, [%0, 240]\n\tadr x9, 0f\n0:\tstr x9, [%0, "   \
			 "256]"                                                                    \
			 :                                                                         \
			 : "r"((s)->regs)                                                          \
			 : "x9", "memory")
#else
#define shot_regs(s)                                                                               \
	__asm__ volatile("movq %%rax, 0(%0)\n\tmovq %%rbx, 8(%0)\n\tmovq %%rcx, 16(%0)\n\t"        \
			 "movq %%rdx, 24(%0)\n\tmovq %%rsi, 32(%0)\n\tmovq %%rdi, 40(%0)\n\t"      \
			 "movq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\tmovq %%r8, 72(%0)\n\t"       \
			 "movq %%r9, 80(%0)\n\tmovq %%r10, 88(%0)\n\tmovq %%r11, 96(%0)\n\t"       \
			 "movq %%r12, 104(%0)\n\tmovq %%r13, 112(%0)\n\tmovq %%r14, 120(%0)\n\t"   \
			 "movq %%r15, 128(%0)\n\tleaq 0f(%%rip), %%rax\n0:\tmovq %%rax, 64(%0)"    \
			 :                                                                         \
			 : "r"((s)->regs)                                                          \
			 : "rax", "memory")
#endif

/* Copy the stack from sp up; word by word, since sanitizers guard some words. */
__attribute__((no_sanitize("address"), noinline, unused)) static void shot_stack(struct shot *s)
{
	uint64_t sp = s->regs[SHOT_SP], size = s->stack_end - sp;

	s->size = size < SHOT_STACK ? size & ~7ULL : SHOT_STACK;
	for (size_t i = 0; i < s->size; i += 8) {
		volatile uint64_t *from = (volatile uint64_t *)(sp + i);
		volatile uint64_t *to = (volatile uint64_t *)(s->stack + i);

		*to = *from;
	}
}

/* The input of a walk over the shot. */
#define SHOT_INPUT(shot, its_space, its_time_ns)                                                   \
	{                                                                                          \
		.regs = (shot).regs, .regs_mask = SHOT_MASK, .regs_abi = PERF_SAMPLE_REGS_ABI_64,  \
		.stack = (shot).stack, .stack_size = (shot).size, .space = (its_space),            \
		.time_ns = (its_time_ns)                                                           \
	}

/* The end of the stack of this thread. */
__attribute__((unused)) static uint64_t shot_stack_end(void)
{
	pthread_attr_t attr;
	void *start;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &start, &size);
	pthread_attr_destroy(&attr);
	return (uint64_t)start + size;
}

#endif

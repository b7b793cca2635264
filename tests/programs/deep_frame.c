// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * deep_frame [SECONDS]: run for SECONDS (default: until killed), then print the CPU time per
 * caller, as "six NS three NS one NS" of all threads.
 *
 * Each calls an assembler function without unwind tables, with a frame of 40 KiB that is never
 * touched: the kernel's copy of the stack ends at its pages, whatever its size is. Under each is
 * some recursion. Three threads: the first has its stack from the kernel; the third works on a
 * stack of its own, as OCaml 5 does, and the functions before are on the thread's.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#define ROUNDS	 5000

struct run {
	uint64_t spent_ns[3];
	time_t end;
};

/*
 * It uses nothing of its frame. Many samples are the first ones at their address, until a tick
 * ends: all have names.
 */
void deep_frame(long n);
#if defined(__x86_64__)
__asm__(".text\n.p2align 4\n.globl deep_frame\n.type deep_frame,@function\ndeep_frame:\n"
	"	push %rbx\n	sub $40960, %rsp\n	mov %rdi, %rbx\n1:	dec %rbx\n"
	"	jnz 1b\n	.rept 4000\n	add $1, %rax\n	.endr\n"
	"	add $40960, %rsp\n	pop %rbx\n	ret\n.size deep_frame, .-deep_frame\n");
#elif defined(__aarch64__)
__asm__(".text\n.p2align 4\n.globl deep_frame\n.type deep_frame,%function\ndeep_frame:\n"
	"	stp x29, x30, [sp, #-16]!\n	sub sp, sp, #40960\n1:	subs x0, x0, #1\n"
	"	b.ne 1b\n	.rept 4000\n	add x1, x1, #1\n	.endr\n"
	"	add sp, sp, #40960\n	ldp x29, x30, [sp], #16\n	ret\n"
	".size deep_frame, .-deep_frame\n");
#endif

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

#define CALLER(name, i, times)                                                                     \
	static NOINLINE void name(struct run *r)                                                   \
	{                                                                                          \
		uint64_t begin_ns = cpu_ns();                                                      \
                                                                                                   \
		deep_frame((times)*ROUNDS);                                                        \
		r->spent_ns[i] += cpu_ns() - begin_ns;                                             \
	}

CALLER(six, 0, 6)
CALLER(three, 1, 3)
CALLER(one, 2, 1)

static NOINLINE void down(struct run *r, int depth)
{
	if (depth) {
		down(r, depth - 1);
	} else {
		six(r);
		three(r);
		one(r);
	}
	__asm__ volatile("" ::: "memory");
}

static void *work(void *arg)
{
	struct run *r = arg;
	struct timespec now;

	do {
		down(r, 5);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < r->end);
	return NULL;
}

#if defined(__x86_64__)
/* Call @fn on the stack that ends at @end; the caller's is found by a word on top of it. */
void on_heap(void *(*fn)(void *), void *arg, char *end);
__asm__(".text\n.p2align 4\n.globl on_heap\n.type on_heap,@function\non_heap:\n.cfi_startproc\n"
	"	sub $8, %rsp\n.cfi_def_cfa_offset 16\n"
	"	mov %rsp, -16(%rdx)\n	lea -16(%rdx), %rsp\n"
	".cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 16\n"
	"	mov %rdi, %rax\n	mov %rsi, %rdi\n	call *%rax\n"
	"	mov (%rsp), %rsp\n.cfi_def_cfa %rsp, 16\n"
	"	add $8, %rsp\n.cfi_def_cfa_offset 8\n	ret\n"
	".cfi_endproc\n.size on_heap, .-on_heap\n");
#else
static void on_heap(void *(*fn)(void *), void *arg, char *end)
{
	(void)end;
	fn(arg);
}
#endif

static NOINLINE void *work_elsewhere(void *arg)
{
	static _Alignas(16) char stack[1 << 18];

	on_heap(work, arg, stack + sizeof(stack));
	__asm__ volatile("" ::: "memory");
	return NULL;
}

#ifdef __x86_64__
/* main() is a jump to it. */
#define RUNS NOINLINE
#else
#define RUNS
#endif

static RUNS int runs(int argc, char **argv)
{
	struct timespec now;
	struct run r[3] = { 0 };
	pthread_t thread[2];
	uint64_t spent_ns[3] = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	r[0].end = r[1].end = r[2].end = now.tv_sec + (argc > 1 ? atoi(argv[1]) : 1000000);
	if (pthread_create(&thread[0], NULL, work, &r[1]) ||
	    pthread_create(&thread[1], NULL, work_elsewhere, &r[2]))
		return 1;
	work(&r[0]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 9; i++)
		spent_ns[i % 3] += r[i / 3].spent_ns[i % 3];
	printf("six %llu three %llu one %llu\n", (unsigned long long)spent_ns[0],
	       (unsigned long long)spent_ns[1], (unsigned long long)spent_ns[2]);
	return 0;
}

int main(int argc, char **argv)
{
	return runs(argc, argv);
}

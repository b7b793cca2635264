// SPDX-License-Identifier: GPL-2.0-or-later
/* truth_callers: three functions call the same code without unwind tables 60, 30 and 10 times, for
 * tests/truth_callers, until SIGTERM; prints the nanoseconds of CPU time that each had. GMP, BLAS,
 * SORT: which code; else memcpy(). FIBER: on a stack of makecontext(). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#if defined(GMP)
#include <gmp.h>
static mpz_t a, b, c;
static void begin(void)
{
	mpz_inits(a, b, c, NULL);
	mpz_ui_pow_ui(a, 7, 3000);
	mpz_ui_pow_ui(b, 5, 4000);
}
#define WORK() mpz_mul(c, a, b)
#elif defined(BLAS)
#include <cblas.h>
#define N 160
static double a[N * N], b[N * N], c[N * N];
static void begin(void)
{
	for (int i = 0; i < N * N; i++)
		a[i] = b[i] = i % 7;
}
#define WORK()                                                                                     \
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N)
#elif defined(SORT)
static int numbers[3000];
static int compare(const void *x, const void *y)
{
	return *(const int *)x - *(const int *)y;
}
static void begin(void)
{
}
static void work(void)
{
	for (unsigned int i = 0; i < 3000; i++)
		numbers[i] = (int)(i * 7919 % 3001);
	qsort(numbers, 3000, sizeof(*numbers), compare);
}
#define WORK() work()
#else
static char from[30000], to[30000];
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void begin(void)
{
}
#define WORK()                                                                                     \
	do                                                                                         \
		for (int k = 0; k < 20; k++)                                                       \
			copy(to, from, sizeof(to));                                                \
	while (0)
#endif

#define EACH(name, times)                                                                          \
	static __attribute__((noinline)) void name(void)                                           \
	{                                                                                          \
		for (int i = 0; i < (times); i++)                                                  \
			WORK();                                                                    \
		__asm__ volatile("");                                                              \
	}
EACH(six, 60)
EACH(three, 30)
EACH(one, 10)

static volatile sig_atomic_t ended;

static void end(int sig)
{
	ended = sig;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static __attribute__((noinline)) void run(void)
{
	void (*const all[])(void) = { six, three, one };
	long long had[3] = { 0 };

	while (!ended)
		for (int i = 0; i < 3; i++) {
			long long before = now();

			all[i]();
			had[i] += now() - before;
		}
	printf("six %lld three %lld one %lld\n", had[0], had[1], had[2]);
}

int main(void)
{
	signal(SIGTERM, end);
	begin();
#ifdef FIBER
	static ucontext_t inside, outside;
	static char stack[1 << 18];

	getcontext(&inside);
	inside.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) };
	inside.uc_link = &outside;
	makecontext(&inside, run, 0);
	swapcontext(&outside, &inside);
#else
	run();
#endif
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* truth_steps: call functions of a library that have no unwind tables, for tests/truth_steps. BLAS,
 * GMP: which one; else libc. */
#include <stdio.h>
#include <stdlib.h>

#if defined(GMP)
#include <gmp.h>

int main(void)
{
	gmp_randstate_t random;
	mpz_t a, b, c, m;

	gmp_randinit_default(random);
	mpz_inits(a, b, c, m, NULL);
	for (unsigned int i = 0;; i++) {
		unsigned int bits = 64u << i % 9;
		char *text;

		mpz_urandomb(a, random, bits);
		mpz_urandomb(b, random, bits);
		mpz_urandomb(m, random, bits);
		mpz_setbit(m, 0);
		mpz_add_ui(m, m, 2);
		mpz_mul(c, a, b);
		mpz_tdiv_q(c, c, m);
		mpz_gcd(c, a, b);
		mpz_invert(c, a, m);
		mpz_sqrt(c, a);
		mpz_mul_2exp(c, a, 5);
		mpz_sub(c, c, b);
		if (bits < 2048)
			mpz_powm(c, a, b, m);
		text = mpz_get_str(NULL, 10, a);
		mpz_set_str(b, text, 10);
		free(text);
	}
}
#elif defined(BLAS)
#include <cblas.h>

#define ALL 40

int main(void)
{
	static double a[ALL * ALL], b[ALL * ALL], c[ALL * ALL];
	static float x[ALL * ALL], y[ALL * ALL], z[ALL * ALL];

	for (int i = 0; i < ALL * ALL; i++) {
		a[i] = x[i] = (float)(i % 7);
		b[i] = y[i] = (float)(i % 5);
	}
	for (unsigned int i = 0;; i++) {
		int n = 4 + (int)(i % (ALL - 4));

		cblas_dgemm(CblasRowMajor, i & 1 ? CblasNoTrans : CblasTrans,
			    i & 2 ? CblasNoTrans : CblasTrans, n, n, n, 1, a, ALL, b, ALL, 0.5, c,
			    ALL);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, x, ALL, y, ALL,
			    0.5, z, ALL);
		cblas_dgemv(CblasRowMajor, CblasNoTrans, n, n, 1, a, ALL, b, 1, 0, c, 1);
		cblas_dtrsm(CblasRowMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasUnit, n, n, 1,
			    a, ALL, b, ALL);
		cblas_daxpy(n, 1.5, a, 1, c, 1);
		cblas_dscal(n, 0.5, c, 1);
		a[0] += cblas_ddot(n, a, 1, b, 1) > 0 ? 0.5 : cblas_dnrm2(n, a, 1);
	}
}
#else
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

static volatile double sink;
static jmp_buf back;
static char text[4096], copy[4096];
static int numbers[2000];

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *in_thread(void *arg)
{
	return arg;
}

static void on_signal(int signal)
{
	sink += signal;
}

static __attribute__((noinline)) void deep(int n)
{
	if (!n)
		longjmp(back, 1);
	deep(n - 1);
	sink += n;
}

static void sort_and_copy(unsigned int i)
{
	void *p[50];

	for (int k = 0; k < 2000; k++)
		numbers[k] = (int)((unsigned int)k * 7919 + i) % 2003;
	qsort(numbers, 200 + i % 1800, sizeof(*numbers), compare);
	memset(copy, (int)i & 127, 1000 + i % 3000);
	memcpy(copy + 1, text, 500 + i % 2000);
	memmove(copy + 5, copy, 1000);
	sink += (double)strlen(text) + (strstr(text, "hello wor") ? 1 : 0);
	sink += memchr(copy, 255, 4000) || strchr(text, 'z') || strcmp(text, copy);
	for (unsigned int k = 0; k < 50; k++)
		p[k] = malloc(16 + k * i % 5000);
	for (unsigned int k = 0; k < 50; k++)
		free(k & 1 ? realloc(p[k], 64 + k * i % 9000) : p[k]);
}

static void read_and_print(unsigned int i, FILE *f, const regex_t *re)
{
	time_t now = i * 1000L;
	wchar_t wide[64];
	struct tm tm;

	snprintf(text, sizeof(text), "%u %s %f %g %x %e %a %10.3s|%-5d", i, "hello", i / 3.,
		 i * 1e30, i, i / 7., i / 9., copy, 5);
	sink += strtod(text, NULL) + (double)strtol(text, NULL, 16);
	sink += regexec(re, text, 0, NULL, 0);
	strftime(text, 100, "%c %Y", gmtime_r(&now, &tm));
	sink += (double)mktime(&tm) + (double)mbstowcs(wide, text, 60);
	rewind(f);
	fprintf(f, "%u %s\n", i, text);
	rewind(f);
	sink += fscanf(f, "%d", &numbers[0]);
}

int main(void)
{
	FILE *f = tmpfile();
	regex_t re;

	if (!f || regcomp(&re, "a(b|c)*[0-9]+x", REG_EXTENDED))
		return 1;
	signal(SIGUSR1, on_signal);
	for (unsigned int i = 0;; i++) {
		pthread_t thread;

		sort_and_copy(i);
		read_and_print(i, f, &re);
		sink += sin(i) + exp(i % 10) + pow(i % 7, 1.5) + log(i + 1) + atan2(i, 3) +
			fmod(i, 7);
		sink += cbrt(i) + tgamma(i % 9 + .5) + (double)logl(i + 2.0L) + (double)expl(1.5L);
		if (i % 16 == 0 && !pthread_create(&thread, NULL, in_thread, NULL))
			pthread_join(thread, NULL);
		if (i % 16 == 8)
			raise(SIGUSR1);
		if (i % 8 == 0 && !setjmp(back))
			deep(5);
	}
}
#endif

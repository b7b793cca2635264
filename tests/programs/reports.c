// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs of doc/REPORTS.md: reports MODE FILE burns until it is killed, 70 % in hot() and 30 % in
 * warm(), and keeps in FILE how its own clock divides them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE	  __attribute__((noinline))
#define NOT_A_TAIL_CALL() __asm__ volatile("")

static int file;
static sem_t ended;
static volatile unsigned long sink;

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NOINLINE static void hot(void)
{
	for (unsigned long i = 0; i < 70000; i++)
		sink += i;
	NOT_A_TAIL_CALL();
}

NOINLINE static void warm(void)
{
	for (unsigned long i = 0; i < 30000; i++)
		sink += i;
	NOT_A_TAIL_CALL();
}

static void tell(double hot_s, double warm_s)
{
	char line[16];
	int n = snprintf(line, sizeof(line), "%.4f\n", hot_s / (hot_s + warm_s));

	if (pwrite(file, line, (size_t)n, 0) != n)
		exit(1);
}

/* @turns: 0: for ever */
NOINLINE static void work(int turns)
{
	static _Thread_local double hot_s, warm_s;

	for (int i = 1; !turns || i <= turns; i++) {
		double a = cpu_time();

		hot();
		double b = cpu_time();

		warm();
		hot_s += b - a;
		warm_s += cpu_time() - b;
		if (i % 50 == 0 || i == turns)
			tell(hot_s, warm_s);
	}
	NOT_A_TAIL_CALL();
}

/* Exported, for a program that loads this one as a library, with its file as standard input. */
void *works(void *unused);
NOINLINE void *works(void *unused)
{
	(void)unused;
	work(0);
	return NULL;
}

NOINLINE static void *works_a_little(void *unused)
{
	(void)unused;
	work(20);
	sem_post(&ended);
	return NULL;
}

NOINLINE static void *sleeps(void *unused)
{
	(void)unused;
	for (;;)
		usleep(200000);
}

/* The first thread ends, the process goes on without it. */
static void leader(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, works, NULL))
		exit(1);
	pthread_exit(NULL);
}

NOINLINE static void on_inner(int nr)
{
	(void)nr;
	work(0);
	NOT_A_TAIL_CALL();
}

NOINLINE static void on_outer(int nr)
{
	(void)nr;
	raise(SIGUSR2);
	NOT_A_TAIL_CALL();
}

NOINLINE static void interrupted(void)
{
	raise(SIGUSR1);
	NOT_A_TAIL_CALL();
}

/* A handler of a signal is interrupted by another one. */
static void nested(void)
{
	signal(SIGUSR1, on_outer);
	signal(SIGUSR2, on_inner);
	interrupted();
	NOT_A_TAIL_CALL();
}

NOINLINE static void touches(volatile int *p)
{
	*p = 1;
	NOT_A_TAIL_CALL();
}

/* The instruction that faults is the one of the frame, not the one before it. */
static void fault(void)
{
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	signal(SIGSEGV, on_inner);
	touches(page);
	NOT_A_TAIL_CALL();
}

/* A thread with another name. */
NOINLINE static void *works_by_name(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "another");
	work(0);
	return NULL;
}

static void named(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, works_by_name, NULL))
		exit(1);
	pthread_join(t, NULL);
}

/* Most of its time is in the kernel, below a function of libc. */
NOINLINE static void reads(void)
{
	static char buf[1 << 16];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (read(zero, buf, sizeof(buf)) > 0)
		;
	NOT_A_TAIL_CALL();
}

static void reading(void)
{
	reads();
	NOT_A_TAIL_CALL();
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void *locks(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

/* Two threads that do nothing but lock. */
static void locking(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, locks, NULL))
		exit(1);
	locks(NULL);
}

struct wrapped {
	void *(*start)(void *);
	void *arg;
};

/* As a preloaded library has it between pthread_create() and the thread's function. */
NOINLINE static void *starts(void *arg)
{
	const struct wrapped *w = arg;
	void *result = w->start(w->arg);

	NOT_A_TAIL_CALL();
	return result;
}

static void wrapped(void)
{
	static struct wrapped w = { works, NULL };
	pthread_t t;

	if (pthread_create(&t, NULL, starts, &w))
		exit(1);
	pthread_join(t, NULL);
}

/* Threads that nobody joins, of some milliseconds each, one after the other. */
static void detached(void)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sem_init(&ended, 0, 0);
	for (;;) {
		pthread_t t;

		if (pthread_create(&t, &attr, works_a_little, NULL))
			exit(1);
		sem_wait(&ended);
	}
}

static int cloned(void *unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left behind */
	works(unused);
	return 0;
}

/* A child by clone(2), with a stack that no library knows. */
static void clones(void)
{
	char *stack =
		mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int child = clone(cloned, stack + (1 << 18), SIGCHLD, NULL);

	waitpid(child, NULL, 0);
}

static void sleepers(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, sleeps, NULL))
			exit(1);
	}
	work(0);
	NOT_A_TAIL_CALL();
}

/* One call with a frame of three pages, which a small copy of the stack does not hold. */
NOINLINE static void bigframe(void)
{
	char frame[12000];

	memset(frame, 1, sizeof(frame));
	__asm__ volatile("" ::"r"(frame) : "memory");
	work(0);
	__asm__ volatile("" ::"r"(frame) : "memory");
}

/* Three functions with frame pointers, whose first instructions are most of their time. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void entry_leaf(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void entry_middle(void)
{
	entry_leaf();
	NOT_A_TAIL_CALL();
}

__attribute__((noinline)) static void entry_outer(void)
{
	for (int i = 0; i < 100000; i++)
		entry_middle();
	NOT_A_TAIL_CALL();
}

static void entry(void)
{
	for (;;)
		entry_outer();
}

#if defined(__x86_64__)
/* mov ecx, 40000000; dec ecx; jnz; ret */
static const unsigned char spin[] = { 0xb9, 0x00, 0x5a, 0x62, 0x02, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
#elif defined(__aarch64__)
/* movz w1, #0x262, lsl #16; subs w1, w1, #1; b.ne; ret */
static const unsigned char spin[] = { 0x41, 0x4c, 0xa0, 0x52, 0x21, 0x04, 0x00, 0x71,
				      0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#endif

static void map_row(const void *at, size_t size, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *f = fopen(path, "a");

	if (!f)
		exit(1);
	fprintf(f, "%lx %zx %s\n", (unsigned long)at, size, name);
	fclose(f);
}

static unsigned char *code_page(void)
{
	unsigned char *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page + 256, spin, sizeof(spin));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)page, (char *)page + 4096);
	return page;
}

static void run_code(unsigned char *page)
{
	((void (*)(void))(void *)(page + 256))();
}

/* A JIT compiler that uses an address again, for the same range or for a part of the old one. */
static void reuse(const char *mode)
{
	unsigned char *page = code_page();

	if (!strcmp(mode, "reuse"))
		map_row(page + 256, sizeof(spin), "old_block");
	else
		map_row(page, 4096, "old_block");
	map_row(page + 256, sizeof(spin), "new_block");
	for (;;)
		run_code(page);
}

/* A mapping for each of 2,000 functions. */
static void many(void)
{
	static unsigned char *pages[2000];

	for (int i = 0; i < 2000; i++) {
		pages[i] = code_page();
		/* The kernel merges neighbours. */
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		map_row(pages[i] + 256, sizeof(spin), "new_block");
	}
	for (int i = 0;; i = (i + 1) % 2000)
		run_code(pages[i]);
}

__attribute__((cold, noinline)) static void complain(void)
{
	sink++;
}

/* The call of a cold function is moved away: "divide.cold". */
NOINLINE static void divide(unsigned long nr)
{
	if (nr > 1) {
		complain();
		work(0);
	}
	sink += nr;
}

static void divided(void)
{
	divide(sink);
	divide(2);
	NOT_A_TAIL_CALL();
}

#ifdef _OPENMP
/* The team's threads are started by libgomp. */
static void team(void)
{
#pragma omp parallel num_threads(2)
	works(NULL);
}
#endif

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "leader", leader },	{ "nested", nested },	{ "fault", fault },
		      { "detached", detached }, { "clone", clones },	{ "sleepers", sleepers },
		      { "bigframe", bigframe }, { "entry", entry },	{ "many", many },
		      { "named", named },	{ "reading", reading }, { "locking", locking },
		      { "divided", divided },	{ "wrapped", wrapped },
#ifdef _OPENMP
		      { "team", team },
#endif
		      { "asan", nested } };

	if (argc != 3)
		return 2;
	file = open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		return 1;
	if (!strcmp(argv[1], "reuse") || !strcmp(argv[1], "inside"))
		reuse(argv[1]);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].name))
			modes[i].run();
	return 2;
}

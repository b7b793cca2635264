// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that block in known chains of functions, for --stacks: each in another system call, below
 * outer_X → middle_X → inner_X. The middle one has a frame pointer that no other register replaces
 * (alloca), so that its caller is found with all registers only.
 *
 * Goroutines as of Go 1.19, in a table of the name that the runtime gives it: number 1 is parked
 * on another stack, below three functions; 2 has ended, 3 runs on a thread.
 *
 * A call that returns early is disturbed: it is counted in a line on standard output at the end.
 * Usage: blocked SECONDS; prints "ready PID" when all threads have begun. SIGTERM ends it sooner.
 */
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <poll.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define PIPES	 9

static volatile int sink;
static atomic_int nr_disturbed;
static int pipes[2], epoll_fd, listen_fd;
static double seconds;
pthread_mutex_t blocked_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void check(const char *what, int is_right)
{
	if (is_right)
		return;
	atomic_fetch_add(&nr_disturbed, 1);
	printf("disturbed %s: %s\n", what, strerror(errno));
	fflush(stdout);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One chain: three functions with the name of the call. */
#define CHAIN(name, call)                                                                          \
	static NOINLINE void inner_##name(int n)                                                   \
	{                                                                                          \
		sink = n;                                                                          \
		call;                                                                              \
		sink = n + 1;                                                                      \
	}                                                                                          \
	static NOINLINE void middle_##name(int n)                                                  \
	{                                                                                          \
		char *room = alloca((size_t)n + 16);                                               \
                                                                                                   \
		memset(room, n, (size_t)n + 16);                                                   \
		inner_##name(n + 1);                                                               \
		sink = room[n];                                                                    \
	}                                                                                          \
	static NOINLINE void *outer_##name(void *arg)                                              \
	{                                                                                          \
		prctl(PR_SET_NAME, #name);                                                         \
		middle_##name(3);                                                                  \
		sink = 1;                                                                          \
		return arg;                                                                        \
	}

static void nap(void)
{
	double begin = now();
	struct timespec t = { .tv_sec = (time_t)seconds,
			      .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	check("nanosleep", !nanosleep(&t, NULL));
	check("nanosleep early", now() - begin >= seconds);
}

static void read_pipe(void)
{
	char c;

	check("read", read(pipes[0], &c, 1) == 1);
}

static void wait_poll(void)
{
	struct pollfd fd = { .fd = epoll_fd, .events = POLLIN };
	double begin = now();

	check("poll", !poll(&fd, 1, (int)(seconds * 1000)));
	check("poll early", now() - begin >= seconds - 0.002);
}

/* As man 7 signal warns of a stop, it may return EINTR: not counted. */
static void wait_epoll(void)
{
	struct epoll_event event;

	while (epoll_wait(epoll_fd, &event, 1, (int)(seconds * 1000)) < 0 && errno == EINTR)
		;
}

static void wait_mutex(void)
{
	pthread_mutex_lock(&blocked_mutex);
	pthread_mutex_unlock(&blocked_mutex);
}

static void wait_cond(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)seconds + 1;
	pthread_mutex_lock(&cond_mutex);
	check("condition", pthread_cond_timedwait(&never, &cond_mutex, &until) == ETIMEDOUT);
	pthread_mutex_unlock(&cond_mutex);
}

static void wait_accept(void)
{
	check("accept", accept(listen_fd, NULL, NULL) >= 0);
}

static void spin(void)
{
	for (double begin = now(); now() - begin < seconds;)
		sink++;
}

static NOINLINE void on_signal(int sig)
{
	usleep((useconds_t)(seconds * 1e6));
	sink = sig;
}

/* In a signal handler on another stack. */
static void wait_handler(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	check("sigaltstack", stack.ss_sp && !sigaltstack(&stack, NULL));
	sigaction(SIGUSR1, &action, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
}

CHAIN(nap, nap())
CHAIN(read, read_pipe())
CHAIN(poll, wait_poll())
CHAIN(epoll, wait_epoll())
CHAIN(mutex, wait_mutex())
/* A lock of PostgreSQL, which is none of glibc, by its name. */
static NOINLINE void LWLockAcquire(void)
{
	wait_cond();
	sink = 4;
}

CHAIN(cond, LWLockAcquire())
CHAIN(accept, wait_accept())
CHAIN(spin, spin())
CHAIN(handler, wait_handler())

/* The begin of struct g. */
struct goroutine {
	uintptr_t stack_lo, stack_hi, guards[2], panic, defer, m, sp, pc;
	struct goroutine *self;
	uint64_t others[8];
	uint32_t status, lock;
	uint64_t number, more[4];
};

static struct goroutine goroutines[3];
static struct goroutine *list[] = { &goroutines[0], &goroutines[1], &goroutines[2] };
struct {
	struct goroutine **list;
	uint64_t nr, max;
} go_table __asm__("runtime.allgs") = { list, 3, 3 };
static ucontext_t main_context, go_context;

/* It goes on behind the call of this. */
static NOINLINE void park(void)
{
	goroutines[0].sp = (uintptr_t)__builtin_dwarf_cfa();
	goroutines[0].pc = (uintptr_t)__builtin_return_address(0);
	swapcontext(&go_context, &main_context);
}

/* As Go's functions, they find their caller by the stack pointer. */
static NOINLINE void inner_go(void)
{
	park();
	sink = 1;
}

static NOINLINE void middle_go(void)
{
	inner_go();
	sink = 2;
}

static NOINLINE void outer_go(void)
{
	middle_go();
	sink = 3;
}

static void start_goroutines(void)
{
	static char stack[1 << 16];

	getcontext(&go_context);
	go_context.uc_stack.ss_sp = stack;
	go_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&go_context, outer_go, 0);
	swapcontext(&main_context, &go_context);
	for (uint64_t i = 0; i < 3; i++) {
		struct goroutine *g = &goroutines[i];

		*g = (struct goroutine){ .stack_lo = (uintptr_t)stack,
					 .stack_hi = (uintptr_t)stack + sizeof(stack),
					 .m = i == 2 ? 1 : 0,
					 .sp = goroutines[0].sp,
					 .pc = goroutines[0].pc,
					 .self = g,
					 .status = i == 0   ? 4
						   : i == 1 ? 6
							    : 2,
					 .number = i + 1 };
	}
}

/* The owner of the mutex sleeps. */
static NOINLINE void hold_mutex(void)
{
	usleep((useconds_t)(seconds * 1e6));
	sink = 2;
}

static void *hold(void *arg)
{
	prctl(PR_SET_NAME, "holder");
	pthread_mutex_lock(&blocked_mutex);
	sem_post(arg);
	hold_mutex();
	pthread_mutex_unlock(&blocked_mutex);
	return NULL;
}

static void finish_read_and_accept(struct sockaddr_un *addr, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (write(pipes[1], "x", 1) != 1 || connect(fd, (struct sockaddr *)addr, size))
		exit(1);
}

static void end_now(int signal)
{
}

int main(int argc, char **argv)
{
	void *(*const run[])(void *) = { outer_nap,    outer_read,  outer_poll,
					 outer_epoll,  outer_mutex, outer_cond,
					 outer_accept, outer_spin,  outer_handler };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(addr.sun_family);
	pthread_t threads[PIPES], holder;
	sigset_t end;
	sem_t held;

	/* To the first thread, of which no call is checked. */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	signal(SIGTERM, end_now);
	seconds = argc > 1 ? atof(argv[1]) : 5;
	listen_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	epoll_fd = epoll_create1(0);
	sem_init(&held, 0, 0);
	if (pipe(pipes) || epoll_fd < 0 || bind(listen_fd, (struct sockaddr *)&addr, size) ||
	    listen(listen_fd, 1))
		return 1;
	size = sizeof(addr);
	getsockname(listen_fd, (struct sockaddr *)&addr, &size);
	pthread_create(&holder, NULL, hold, &held);
	sem_wait(&held);
	for (int i = 0; i < PIPES; i++)
		if (pthread_create(&threads[i], NULL, run[i], NULL))
			return 1;
	start_goroutines();
	usleep(200000);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	sigprocmask(SIG_UNBLOCK, &end, NULL);
	if (usleep((useconds_t)(seconds * 1e6))) {
		printf("disturbed %d\n", atomic_load(&nr_disturbed));
		return 0;
	}
	finish_read_and_accept(&addr, size);
	for (int i = 0; i < PIPES; i++)
		pthread_join(threads[i], NULL);
	pthread_join(holder, NULL);
	printf("disturbed %d\n", atomic_load(&nr_disturbed));
	return 0;
}

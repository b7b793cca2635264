// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sleeping processes that hang a reader of their stacks: the memory behind the stack has unserved
 * faults (userfaultfd(2)).
 *
 * hung_sleeper NR: prints "ready" once NR children sleep. After SIGUSR1 their faults are served.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK (256 << 10)
#define TRAP  (64 << 10)

static int ready[2];
static sigset_t usr1;

static void *sleep_here(void *arg)
{
	if (write(ready[1], "x", 1) != 1)
		_exit(1);
	for (;;)
		sleep(1000);
	return NULL;
}

/* Sleep on a stack below the trap. */
static int child(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	char *stack = mmap(NULL, STACK + TRAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	int sig;

	if (fd < 0 || stack == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return 77;
	reg.range.start = (uint64_t)(uintptr_t)(stack + STACK);
	reg.range.len = TRAP;
	if (ioctl(fd, UFFDIO_REGISTER, &reg))
		return 77;
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack, STACK) ||
	    pthread_create(&thread, &attr, sleep_here, NULL))
		return 77;
	/* The other thread sleeps on. */
	sigwait(&usr1, &sig);
	ioctl(fd, UFFDIO_UNREGISTER, &reg.range);
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	pid_t pids[64];
	char c;
	int sig;

	if (nr > 64 || pipe(ready))
		return 1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	for (int i = 0; i < nr; i++)
		if (!(pids[i] = fork())) {
			close(ready[0]);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(child());
		}
	close(ready[1]);
	for (int i = 0; i < nr; i++)
		if (read(ready[0], &c, 1) != 1)
			return 77;
	puts("ready");
	fflush(stdout);
	sigwait(&usr1, &sig);
	for (int i = 0; i < nr; i++)
		kill(pids[i], SIGUSR1);
	for (;;)
		pause();
}

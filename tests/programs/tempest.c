// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tempest KIND [SECONDS [CGROUP]]: as fast as one CPU can: rename (the thread), fork, exec, thread
 * (starts), mmap (and munmap of code), memfd (run programs without a name), maps (20,000 mappings,
 * and work in them), children (after an mmap each, of a process that has had many), cgroup (moves
 * between two new groups in the folder CGROUP); prints how many there were.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long nr;
static char self[4096];

static void be_renamed(void)
{
	char name[16];

	snprintf(name, sizeof(name), "name-%lu", nr % 1000000);
	prctl(PR_SET_NAME, name);
}

static void do_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void do_exec(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl(self, "tempest", "end", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void *thread(void *arg)
{
	return arg;
}

static void start_thread(void)
{
	pthread_t t;

	if (!pthread_create(&t, NULL, thread, NULL))
		pthread_join(t, NULL);
}

static void map(void)
{
	static int fd = -1;
	void *p;

	if (fd < 0)
		fd = open(self, O_RDONLY | O_CLOEXEC);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (p != MAP_FAILED)
		munmap(p, 4096);
}

/* Copy this program into a memfd, and run that. */
static void run_memfd(void)
{
	static char *bytes;
	static ssize_t size;
	char name[32];
	pid_t pid;
	int fd;

	if (!bytes) {
		fd = open(self, O_RDONLY | O_CLOEXEC);
		bytes = malloc(1 << 20);
		size = bytes ? read(fd, bytes, 1 << 20) : -1;
		close(fd);
	}
	snprintf(name, sizeof(name), "program-%lu", nr);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (size < 0 || write(fd, bytes, (size_t)size) != size)
		exit(1);
	pid = fork();
	if (!pid) {
		char *argv[] = { name, "end", NULL };

		syscall(SYS_execveat, fd, "", argv, environ, 0x1000 /* AT_EMPTY_PATH */);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	close(fd);
}

/* Many mappings of code, made once; then one is replaced at a time. */
static void many_maps(void)
{
	static char *pages[20000];
	static int fd = -1;
	size_t i = nr % 20000;

	if (fd < 0) {
		fd = open(self, O_RDONLY | O_CLOEXEC);
		for (size_t k = 0; k < 20000; k++)
			pages[k] = mmap(NULL, 4096, k % 2 ? PROT_READ | PROT_EXEC : PROT_READ,
					MAP_PRIVATE, fd, 0);
	}
	for (volatile int k = 0; k < 100000; k++)
		;
	if (pages[i] != MAP_FAILED)
		mmap(pages[i], 4096, i % 2 ? PROT_READ | PROT_EXEC : PROT_READ,
		     MAP_PRIVATE | MAP_FIXED, fd, 0);
}

/* Map 64 files that are apart, one over 63 of them, and unmap all. */
static void map_group(char *base, int fd)
{
	for (size_t k = 0; k < 64; k++)
		mmap(base + k * 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	mmap(base + 8192, 63 * 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 4096);
	munmap(base, 64 * 8192);
}

/* Map a file and start a child, which has the memory of this process, and ends. */
static void map_and_fork(void)
{
	static char *space;
	static int fd = -1;
	pid_t pid;

	if (fd < 0) {
		fd = open(self, O_RDONLY | O_CLOEXEC);
		space = mmap(NULL, 4096ULL << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (fd < 0 || space == MAP_FAILED)
			exit(1);
		munmap(space, 4096ULL << 20);
	}
	if (nr % 16 == 0)
		map_group(space + (nr / 16 % 4000 << 20), fd);
	mmap(space + (4095UL << 20), 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
	     nr % 2 * 4096);
	pid = vfork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static const char *cgroup;
static char groups[2][4200];

/* Move this process to the other one of two groups. */
static void move(void)
{
	static int fds[2];

	for (int i = 0; i < 2 && !groups[i][0]; i++) {
		char path[4300];

		snprintf(groups[i], sizeof(groups[i]), "%s/tempest-%d-%d", cgroup, getpid(), i);
		snprintf(path, sizeof(path), "%s/cgroup.procs", groups[i]);
		if (mkdir(groups[i], 0755) || (fds[i] = open(path, O_WRONLY | O_CLOEXEC)) < 0)
			exit(1);
	}
	if (write(fds[nr % 2], "0", 1) != 1)
		exit(1);
}

/* Leave the groups and remove them. */
static void leave(void)
{
	char path[4300];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1 || rmdir(groups[0]) || rmdir(groups[1]))
		exit(1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*once)(void);
	} kinds[] = {
		{ "rename", be_renamed },   { "fork", do_fork }, { "exec", do_exec },
		{ "thread", start_thread }, { "mmap", map },	 { "memfd", run_memfd },
		{ "maps", many_maps },	    { "cgroup", move },	 { "children", map_and_fork },
	};
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 5);
	size_t i = 0;

	if (argc > 1 && !strcmp(argv[1], "end"))
		return 0;
	cgroup = argc > 3 ? argv[3] : NULL;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	while (i < sizeof(kinds) / sizeof(kinds[0]) && (argc < 2 || strcmp(kinds[i].name, argv[1])))
		i++;
	if (!cgroup && i < sizeof(kinds) / sizeof(kinds[0]) && kinds[i].once == move)
		return 2;
	if (i == sizeof(kinds) / sizeof(kinds[0]))
		return 2;
	for (; time(NULL) < end; nr++)
		kinds[i].once();
	if (groups[0][0])
		leave();
	printf("%lu\n", nr);
	return 0;
}

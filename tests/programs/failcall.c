/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * failcall CALL[,CALL] ERROR AT EVERY COMMAND...: run a command and let call number AT fail with
 * ERROR, of the named system calls of all its processes and threads; with EVERY also each EVERYth
 * after it; 0: none. Exit with its status, 128 + its signal, or 99 if a process is left 10 s later.
 * FAIL_COUNT=FILE: the number of calls is written there. FAIL_LOG=FILE: the calls that failed.
 *
 * By seccomp_unotify(2): also the calls of libraries fail, and no library is preloaded. Calls count
 * from the end of the dynamic loader's work, which crashes without memory. An eventfd has neither
 * device nor disk: a write to it fails by EINTR only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX   16
#define NOT_BEGUN   98
#define LEFT	    99
#define LEFT_MS	    10000
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	int nr;
} calls[] = {
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}
	CALL(openat),
	CALL(openat2),
	CALL(read),
	CALL(pread64),
	CALL(write),
	CALL(mmap),
	CALL(mprotect),
	CALL(munmap),
	CALL(brk),
	CALL(mremap),
	CALL(ioctl),
	CALL(fcntl),
	CALL(close),
	CALL(dup),
	CALL(perf_event_open),
	CALL(socketpair),
	CALL(pipe2),
	CALL(eventfd2),
	CALL(signalfd4),
	CALL(clone),
	CALL(clone3),
	CALL(ppoll),
	CALL(clock_nanosleep),
	CALL(newfstatat),
	CALL(fstat),
	CALL(fstatfs),
	CALL(readlinkat),
	CALL(getdents64),
	CALL(lseek),
	CALL(sendmsg),
	CALL(recvmsg),
	CALL(memfd_create),
	CALL(process_vm_readv),
	CALL(prctl),
	CALL(sched_setscheduler),
	CALL(setpriority),
	CALL(prlimit64),
	CALL(capget),
	CALL(capset),
	CALL(wait4),
	CALL(pidfd_open),
	CALL(pidfd_send_signal),
	CALL(ftruncate),
	CALL(rt_sigtimedwait),
	CALL(kill),
	CALL(unshare),
	CALL(chroot),
	CALL(chdir),
	CALL(getrandom),
	CALL(madvise),
	CALL(statx),
	CALL(fsync),
	CALL(renameat),
	CALL(unlinkat),
	CALL(close_range),
#ifdef SYS_open
	CALL(open),
	CALL(stat),
	CALL(lstat),
	CALL(poll),
	CALL(readlink),
	CALL(access),
	CALL(rename),
	CALL(unlink),
	CALL(fork),
	CALL(vfork),
	CALL(dup2),
	CALL(pipe),
#endif
};

static const struct {
	const char *name;
	int code;
} errors[] = {
#define ERROR(name)                                                                                \
	{                                                                                          \
#name, name                                                                        \
	}
	ERROR(EINTR),  ERROR(ENOMEM), ERROR(EMFILE), ERROR(EIO),   ERROR(EAGAIN), ERROR(EPERM),
	ERROR(EACCES), ERROR(ENOSPC), ERROR(EINVAL), ERROR(ESRCH), ERROR(ENOSYS), ERROR(EBUSY),
};

struct fault {
	bool begun, limits; /* the loader has ended; prlimit64 is one of the calls */
	unsigned long at, every, count;
	int error;
	FILE *log;
};

static int find_error(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(errors); i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].code;
	return 0;
}

static int find_calls(char *names, int nrs[CALLS_MAX])
{
	int nr = 0;

	for (char *name = strtok(names, ","); name; name = strtok(NULL, ","))
		for (size_t i = 0; i < COUNT_OF(calls) && nr < CALLS_MAX - 1; i++)
			if (!strcmp(calls[i].name, name))
				nrs[nr++] = calls[i].nr;
	return nr;
}

/* Install the filter in this process; return the descriptor that the calls are reported to. */
static int install(const int *nrs, int nr)
{
	struct sock_filter filter[CALLS_MAX + 3];
	struct sock_fprog program = { .filter = filter };
	int n = 0;
	long fd;

	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						   offsetof(struct seccomp_data, nr));
	for (int i = 0; i < nr; i++)
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned int)nrs[i],
							   (unsigned char)(nr - i), 0);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	program.len = (unsigned short)n;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &program);
	if (fd < 0 && errno == EACCES && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			     &program);
	return (int)fd;
}

static void log_call(struct fault *f, const struct seccomp_notif *call)
{
	char path[64], name[32] = "?\n";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%u/comm", call->pid);
	comm = fopen(path, "r");
	if (comm && !fgets(name, sizeof(name), comm))
		name[0] = '\0';
	if (comm)
		fclose(comm);
	fprintf(f->log, "%lu: call %d (%#llx, %#llx, %#llx) of %u %s", f->count, call->data.nr,
		call->data.args[0], call->data.args[1], call->data.args[2], call->pid, name);
	fflush(f->log);
}

/* Return whether the call is a write to an eventfd. */
static bool is_wake(const struct seccomp_notif *call)
{
	char path[64], target[64] = "";

	if (call->data.nr != SYS_write)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", call->pid, (int)call->data.args[0]);
	return readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "[eventfd]");
}

/* Count a call; return whether it fails. The dynamic loader ends by reading the size of the stack.
 */
static bool fails(struct fault *f, const struct seccomp_notif *call)
{
	if (!f->begun) {
		f->begun = call->data.nr == SYS_prlimit64;
		return false;
	}
	if (call->data.nr == SYS_prlimit64 && !f->limits)
		return false;
	f->count++;
	if (!f->at || f->count < f->at)
		return false;
	if (f->every ? (f->count - f->at) % f->every : f->count != f->at)
		return false;
	return f->error == EINTR || !is_wake(call);
}

/* Answer one call: it fails, or is made. */
static void answer(int listener, struct fault *f)
{
	struct seccomp_notif call;
	struct seccomp_notif_resp reply;

	memset(&call, 0, sizeof(call));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return;
	memset(&reply, 0, sizeof(reply));
	reply.id = call.id;
	if (fails(f, &call)) {
		reply.error = -f->error;
		if (f->log)
			log_call(f, &call);
	} else {
		reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Answer until all processes have ended; return the exit status of the first one. */
static int supervise(int listener, pid_t child, struct fault *f)
{
	struct pollfd in = { .fd = listener, .events = POLLIN };
	int status, code = -1, left_ms = LEFT_MS;

	for (;;) {
		int nr = poll(&in, 1, 20);

		if (nr > 0 && in.revents & POLLIN)
			answer(listener, f);
		if (code < 0 && waitpid(child, &status, WNOHANG) == child)
			code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (nr > 0 && !(in.revents & POLLIN)) {
			if (code < 0 && waitpid(child, &status, 0) == child)
				code = WIFEXITED(status) ? WEXITSTATUS(status)
							 : 128 + WTERMSIG(status);
			return code;
		}
		left_ms -= code >= 0 && !nr ? 20 : 0;
		if (left_ms <= 0) {
			fprintf(stderr, "failcall: a process is left\n");
			return LEFT;
		}
	}
}

static void write_count(unsigned long count)
{
	const char *path = getenv("FAIL_COUNT");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (f) {
		fprintf(f, "%lu\n", count);
		fclose(f);
	}
}

int main(int argc, char **argv)
{
	_Atomic int *listener = mmap(NULL, sizeof(*listener), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const char *log = getenv("FAIL_LOG");
	struct fault f = { 0 };
	int nrs[CALLS_MAX], nr, code;
	pid_t child;

	if (argc < 6 || listener == MAP_FAILED)
		return NOT_BEGUN;
	nr = find_calls(argv[1], nrs);
	for (int i = 0; i < nr; i++)
		f.limits |= nrs[i] == SYS_prlimit64;
	if (!f.limits)
		nrs[nr++] = SYS_prlimit64;
	f.error = find_error(argv[2]);
	f.at = strtoul(argv[3], NULL, 10);
	f.every = strtoul(argv[4], NULL, 10);
	f.log = log ? fopen(log, "we") : NULL;
	if (nr == !f.limits || !f.error) {
		fprintf(stderr, "failcall: unknown call or error: %s %s\n", argv[1], argv[2]);
		return NOT_BEGUN;
	}
	/* The descriptors are shared until the command is executed: the listener needs no message.
	 */
	child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child) {
		atomic_store(listener, install(nrs, nr));
		if (atomic_load(listener) >= 0)
			execvp(argv[5], argv + 5);
		_exit(NOT_BEGUN);
	}
	while (!atomic_load(listener) && child > 0)
		sched_yield();
	if (child < 0 || atomic_load(listener) < 0) {
		fprintf(stderr, "failcall: cannot install a filter: %s\n", strerror(errno));
		return NOT_BEGUN;
	}
	/* Signals are for the command: this process ends after it. */
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGCHLD)
			signal(sig, SIG_IGN);
	code = supervise(atomic_load(listener), child, &f);
	write_count(f.count);
	return code;
}

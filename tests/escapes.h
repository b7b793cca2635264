/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attempts of a process without rights that was taken over.
 */
#ifndef TESTS_ESCAPES_H
#define TESTS_ESCAPES_H

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Attempts of a reader that was taken over; each must fail with an error, or kill it. */
struct escape {
	const char *name;
	long (*try)(void);
};

static pid_t tester;

static long try_open(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

static long try_open_beside(void)
{
	return syscall(SYS_openat, 0, "../proc/self/mem", O_RDWR);
}

static long try_openat2(void)
{
	uint64_t how[3] = { O_RDONLY, 0, 0 };

	return syscall(437, AT_FDCWD, "/etc/passwd", how, sizeof(how));
}

static long try_create(void)
{
	return syscall(SYS_openat, AT_FDCWD, "/tmp/caged", O_CREAT | O_WRONLY, 0600);
}

static long try_unlink(void)
{
	return syscall(SYS_unlinkat, AT_FDCWD, "/tmp/caged", 0);
}

static long try_list(void)
{
	char names[256];

	return syscall(SYS_getdents64, 0, names, sizeof(names));
}

static long try_socket(void)
{
	return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static long try_unix_socket(void)
{
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
}

static long try_netlink(void)
{
	return syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0);
}

static long try_fork(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static long try_clone3(void)
{
	return syscall(435, NULL, 0);
}

static long try_exec(void)
{
	char *const argv[] = { "sh", NULL };

	return syscall(SYS_execve, "/bin/sh", argv, NULL);
}

static long try_kill(void)
{
	return syscall(SYS_kill, tester, 0);
}

static long try_ptrace(void)
{
	return syscall(SYS_ptrace, PTRACE_SEIZE, tester, 0, 0);
}

static long try_peek(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };

	return syscall(SYS_process_vm_readv, tester, &here, 1, &there, 1, 0);
}

static long try_poke(void)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	return syscall(SYS_process_vm_writev, tester, &here, 1, &there, 1, 0);
}

static long try_pidfd(void)
{
	return syscall(434, tester, 0);
}

static long try_setuid(void)
{
	return syscall(SYS_setuid, 0);
}

static long try_unshare(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long try_mount(void)
{
	return syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL);
}

static long try_bpf(void)
{
	return syscall(SYS_bpf, 5, NULL, 0);
}

static long try_perf(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static long try_userfault(void)
{
	return syscall(SYS_userfaultfd, 0);
}

static long try_uring(void)
{
	return syscall(425, 8, NULL);
}

static long try_exec_memory(void)
{
	return (long)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long try_exec_own_memory(void)
{
	static char page[8192];

	return syscall(SYS_mprotect, (uintptr_t)(page + 4095) & ~4095UL, 4096,
		       PROT_READ | PROT_EXEC);
}

static long try_no_filter(void)
{
	return syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long try_memfd(void)
{
	return syscall(SYS_memfd_create, "more", 0);
}

static long try_seal(void)
{
	return syscall(SYS_fcntl, 3, F_ADD_SEALS, F_SEAL_SEAL);
}

/* Pages that are unmapped from it remain, out of all limits. */
static long try_shared_memory(void)
{
	return (long)syscall(SYS_mmap, NULL, 1 << 20, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static long try_send(void)
{
	const struct msghdr none = { .msg_iov = NULL };

	return syscall(SYS_sendmsg, 3, &none, 0);
}

static long try_ioctl(void)
{
	return syscall(SYS_ioctl, 0, 0x5412, "x"); /* TIOCSTI */
}

static const struct escape escapes[] = {
	{ "open", try_open },
	{ "open beside a descriptor", try_open_beside },
	{ "openat2", try_openat2 },
	{ "create a file", try_create },
	{ "remove a file", try_unlink },
	{ "list a folder", try_list },
	{ "socket", try_socket },
	{ "socket of this machine", try_unix_socket },
	{ "netlink", try_netlink },
	{ "fork", try_fork },
	{ "clone3", try_clone3 },
	{ "exec", try_exec },
	{ "kill", try_kill },
	{ "ptrace", try_ptrace },
	{ "read memory of another process", try_peek },
	{ "write memory of another process", try_poke },
	{ "pidfd_open", try_pidfd },
	{ "setuid", try_setuid },
	{ "unshare", try_unshare },
	{ "mount", try_mount },
	{ "bpf", try_bpf },
	{ "perf_event_open", try_perf },
	{ "userfaultfd", try_userfault },
	{ "io_uring", try_uring },
	{ "executable memory", try_exec_memory },
	{ "executable data", try_exec_own_memory },
	{ "prctl", try_no_filter },
	{ "a file in memory", try_memfd },
	{ "seal a file", try_seal },
	{ "shared memory", try_shared_memory },
	{ "send a message", try_send },
	{ "ioctl", try_ioctl },
};

#endif

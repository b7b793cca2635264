// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bpf_hot SECONDS: a socket filter (bpf(2)) named hot_bpf that runs 1500 instructions for each
 * packet, and packets to this socket. Exits 1 with a reason if the kernel has no BPF.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NR_ROUNDS 20000

static int load(void)
{
	/* r0 = 1; r1 = NR_ROUNDS; do r0 *= 3 while (--r1); return r0 | 65535: accept the packet. */
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .imm = NR_ROUNDS },
		{ .code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 3 },
		{ .code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = 1, .imm = 1 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 1, .off = -3 },
		{ .code = BPF_ALU64 | BPF_OR | BPF_K, .imm = 65535 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = sizeof(code) / sizeof(code[0]);
	attr.license = (uintptr_t) "GPL";
	memcpy(attr.prog_name, "hot_bpf", 8);
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int fail(const char *what)
{
	fprintf(stderr, "bpf_hot: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0),
	    prog = load();
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	char byte = 0;

	if (prog < 0)
		return fail("bpf");
	if (bind(in, (struct sockaddr *)&at, sizeof(at)) ||
	    getsockname(in, (struct sockaddr *)&at, &size) ||
	    setsockopt(in, SOL_SOCKET, SO_ATTACH_BPF, &prog, sizeof(prog)))
		return fail("socket");
	while (time(NULL) < end)
		for (int i = 0; i < 1000; i++) {
			sendto(out, &byte, 1, 0, (struct sockaddr *)&at, size);
			recv(in, &byte, 1, MSG_DONTWAIT);
		}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A JIT compiler as profilers see it: three functions made at run time and named in a jitdump only,
 * one after the other at the same address, then moved. jitdump_writer FOLDER MILLISECONDS [ROUNDS]:
 * that long in each function.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
/* dec rdi; (nop;) jnz; ret */
static const uint8_t spin_a[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
static const uint8_t spin_b[] = { 0x48, 0xff, 0xcf, 0x90, 0x75, 0xfa, 0xc3 };
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
/* subs x0, x0, #1; (nop;) b.ne; ret */
static const uint32_t spin_a[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
static const uint32_t spin_b[] = { 0xf1000400, 0xd503201f, 0x54ffffc1, 0xd65f03c0 };
#else
#error "no code for this machine"
#endif

struct prefix {
	uint32_t id, size;
	uint64_t time;
};

static FILE *dump;
static uint64_t nr_functions;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void put(const void *bytes, size_t size)
{
	if (fwrite(bytes, 1, size, dump) != size)
		exit(1);
}

static void put_prefix(uint32_t id, size_t rest)
{
	const struct prefix p = { id, (uint32_t)(sizeof(p) + rest), now() };

	put(&p, sizeof(p));
}

static void write_header(void)
{
	const uint32_t head[6] = { 0x4a695444, 1, 40, MACHINE, 0, (uint32_t)getpid() };
	const uint64_t tail[2] = { now(), 0 };

	put(head, sizeof(head));
	put(tail, sizeof(tail));
	fflush(dump);
}

static void write_lines(const void *at, const char *file, uint32_t line)
{
	const uint64_t head[2] = { (uintptr_t)at, 1 };
	const uint32_t place[2] = { line, 0 };

	put_prefix(2, sizeof(head) + 8 + sizeof(place) + strlen(file) + 1);
	put(head, sizeof(head));
	put(&head[0], 8);
	put(place, sizeof(place));
	put(file, strlen(file) + 1);
}

static void write_load(const char *name, const void *code, const void *at, size_t size)
{
	const uint32_t ids[2] = { (uint32_t)getpid(), (uint32_t)syscall(SYS_gettid) };
	const uint64_t fields[4] = { (uintptr_t)at, (uintptr_t)at, size, ++nr_functions };

	put_prefix(0, sizeof(ids) + sizeof(fields) + strlen(name) + 1 + size);
	put(ids, sizeof(ids));
	put(fields, sizeof(fields));
	put(name, strlen(name) + 1);
	put(code, size);
	fflush(dump);
}

static void write_move(const void *from, const void *to, size_t size)
{
	const uint32_t ids[2] = { (uint32_t)getpid(), (uint32_t)syscall(SYS_gettid) };
	const uint64_t fields[5] = { (uintptr_t)to, (uintptr_t)from, (uintptr_t)to, size,
				     nr_functions };

	put_prefix(1, sizeof(ids) + sizeof(fields));
	put(ids, sizeof(ids));
	put(fields, sizeof(fields));
	fflush(dump);
}

static void run(void *code, uint64_t ms)
{
	void (*spin)(uint64_t) = (void (*)(uint64_t))(uintptr_t)code;
	uint64_t end = now() + ms * 1000000ULL;

	while (now() < end)
		spin(1000000);
}

static void compile(uint8_t *at, const void *code, size_t size)
{
	memcpy(at, code, size);
	__builtin___clear_cache((char *)at, (char *)at + size);
}

int main(int argc, char **argv)
{
	uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 10) : 500;
	unsigned int rounds = argc > 3 ? (unsigned int)atoi(argv[3]) : 1;
	char path[4096];
	uint8_t *code;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", argc > 1 ? argv[1] : ".", (int)getpid());
	dump = fopen(path, "w+");
	code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	/* Profilers see this mapping, and so the file. */
	if (!dump || code == MAP_FAILED ||
	    mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE,
		 fileno(dump), 0) == MAP_FAILED)
		return 1;
	write_header();
	while (rounds--) {
		compile(code, spin_a, sizeof(spin_a));
		write_lines(code, "/src/first.lang", 11);
		write_load("jit_first", spin_a, code, sizeof(spin_a));
		run(code, ms);
		compile(code, spin_b, sizeof(spin_b));
		write_lines(code, "/src/second.lang", 22);
		write_load("jit_second", spin_b, code, sizeof(spin_b));
		run(code, ms);
		compile(code + 4096, spin_b, sizeof(spin_b));
		write_move(code, code + 4096, sizeof(spin_b));
		run(code + 4096, ms);
	}
	put_prefix(3, 0);
	return fclose(dump) ? 1 : 0;
}

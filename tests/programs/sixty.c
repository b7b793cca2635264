// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sixty ROUNDS: two processes in sixty functions f00 to f59, some with an inlined one, under a
 * recursive one, in code made at run time with a perf map, and in the kernel.
 *
 * The paths of the two perf maps are printed: a replay needs the files, the caller removes them.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP(v) ((v)*6364136223846793005U + 1442695040888963407U)

__attribute__((always_inline)) static inline uint64_t mix(uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		v = STEP(v);
	return v;
}

/* Digits may be octal constants. */
#define NUMBER(digits) (1##digits - 100)
#define F(digits)                                                                                  \
	__attribute__((noinline)) static uint64_t f##digits(uint64_t v)                            \
	{                                                                                          \
		for (int i = 0; i < 3000 + 50 * NUMBER(digits); i++)                               \
			v = STEP(v);                                                               \
		return v;                                                                          \
	}
#define INLINED(digits)                                                                            \
	__attribute__((noinline)) static uint64_t f##digits(uint64_t v)                            \
	{                                                                                          \
		return mix(v, 3000 + 50 * NUMBER(digits)) + 1;                                     \
	}
#define TEN(t) F(t##0) F(t##1) F(t##2) F(t##3) F(t##4) F(t##5) F(t##6) INLINED(t##7) F(t##8) F(t##9)
#define NAMES(t)                                                                                   \
	f##t##0, f##t##1, f##t##2, f##t##3, f##t##4, f##t##5, f##t##6, f##t##7, f##t##8, f##t##9

/* clang-format off */
TEN(0) TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)
	/* clang-format on */

	static uint64_t (*const all[])(uint64_t) = { NAMES(0), NAMES(1), NAMES(2),
						     NAMES(3), NAMES(4), NAMES(5) };

__attribute__((noinline)) static uint64_t deeper(uint64_t v, int depth)
{
	if (depth)
		return deeper(v, depth - 1) + 1;
	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		v = all[i](v);
	return v;
}

#if defined(__x86_64__)
/* dec rdi; jnz; ret */
static const uint8_t loop[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
/* subs x0, x0, #1; b.ne; ret */
static const uint32_t loop[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#else
#error "no code for this machine"
#endif

/* Make a function that counts down, with @name in the perf map of this process. */
static void (*compile(const char *name))(uint64_t)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = at == MAP_FAILED ? NULL : fopen(path, "w");
	if (!map)
		exit(1);
	memcpy(at, loop, sizeof(loop));
	__builtin___clear_cache((char *)at, (char *)at + sizeof(loop));
	fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof(loop), name);
	fclose(map);
	printf("map %s\n", path);
	fflush(stdout);
	return (void (*)(uint64_t))(uintptr_t)at;
}

int main(int argc, char **argv)
{
	static char buf[1 << 20];
	int fd = open("/dev/zero", O_RDONLY), ends[2], failed = pipe(ends);
	volatile uint64_t v = 1;
	pid_t other = fork();
	void (*compiled)(uint64_t) = compile(other ? "compiled_parent" : "compiled_child");

	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
		v = deeper(v, 3);
		compiled(100000);
		if (read(fd, buf, sizeof(buf)) < 0)
			return 1;
	}
	/* The child ends 50 ms after the parent, which waits for it. */
	close(ends[1]);
	if (!other)
		return read(ends[0], buf, 1) || usleep(50000);
	return failed || waitpid(other, NULL, 0) != other;
}

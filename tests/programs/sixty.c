// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sixty ROUNDS: two processes in sixty functions f00 to f59, some with an inlined one, under a
 * recursive one, and in the kernel.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
	static char buf[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);
	volatile uint64_t v = 1;
	pid_t other = fork();

	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
		v = deeper(v, 3);
		if (read(fd, buf, sizeof(buf)) < 0)
			return 1;
	}
	return other && waitpid(other, NULL, 0) != other;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Three loops with a known number of instructions, run one after the other for @rounds rounds:
 * loop_4 has 4 instructions a turn, loop_8 8, loop_16 16, each TURNS turns.
 *
 * Prints the instructions of one round of each at the start: "loop_4 N", ...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TURNS 1000000

#ifdef __aarch64__
#define LOOP(name, fillers)                                                                        \
	__attribute__((noinline)) void name(uint64_t turns)                                        \
	{                                                                                          \
		__asm__ volatile(".p2align 4\n"                                                    \
				 "1: .rept " #fillers "\n"                                         \
				 "nop\n"                                                           \
				 ".endr\n"                                                         \
				 "subs %0, %0, #1\n"                                               \
				 "b.ne 1b\n"                                                       \
				 : "+r"(turns)                                                     \
				 :                                                                 \
				 : "cc");                                                          \
	}
#else
#define LOOP(name, fillers)                                                                        \
	__attribute__((noinline)) void name(uint64_t turns)                                        \
	{                                                                                          \
		__asm__ volatile(".p2align 4\n"                                                    \
				 "1: .rept " #fillers "\n"                                         \
				 "nop\n"                                                           \
				 ".endr\n"                                                         \
				 "sub $1, %0\n"                                                    \
				 "jnz 1b\n"                                                        \
				 : "+r"(turns)                                                     \
				 :                                                                 \
				 : "cc");                                                          \
	}
#endif

/* Two more instructions count down. */
LOOP(loop_4, 2)
LOOP(loop_8, 6)
LOOP(loop_16, 14)

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

	printf("loop_4 %d\nloop_8 %d\nloop_16 %d\n", 4 * TURNS, 8 * TURNS, 16 * TURNS);
	fflush(stdout);
	while (rounds--) {
		loop_4(TURNS);
		loop_8(TURNS);
		loop_16(TURNS);
	}
	return 0;
}

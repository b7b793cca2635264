/* SPDX-License-Identifier: GPL-2.0-or-later BUILD: -O1 -fno-omit-frame-pointer */
/*
 * Calls of three functions in random order, up to eleven deep, each chain with work or a system
 * call at its end, during SECONDS: frame_chain SECONDS. It has frame pointers.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;
static unsigned long seed = 1;

static unsigned int random_number(void)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (unsigned int)(seed >> 33);
}

NOINLINE static void work(void)
{
	for (unsigned int i = 0; i < 20000; i++)
		sink += i;
}

NOINLINE static void go(unsigned int depth);

NOINLINE static void one(unsigned int depth)
{
	go(depth);
	sink++;
}

NOINLINE static void two(unsigned int depth)
{
	go(depth);
	sink += 2;
}

NOINLINE static void three(unsigned int depth)
{
	go(depth);
	sink += 3;
}

NOINLINE static void go(unsigned int depth)
{
	static void (*const calls[])(unsigned int) = { one, two, three };

	if (depth)
		calls[random_number() % 3](depth - 1);
	else if (random_number() % 4)
		work();
	else
		syscall(SYS_getppid);
	sink++;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	while (time(NULL) < end)
		go(random_number() % 12);
	return 0;
}

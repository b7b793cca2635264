// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hostile_name: burn CPU under names meant to hurt programs that print them: an escape sequence, a
 * newline and the ')' that /proc/PID/stat ends a name with; also in argv[0] and a thread's name.
 * Runs until killed.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

/* A symbol name cannot be chosen freely in C, but an assembler name can. */
uint64_t hostile_work(uint64_t x) __asm__("\"evil\033[2J\302\233fn\"");

__attribute__((noinline)) uint64_t hostile_work(uint64_t x)
{
	for (int i = 0; i < 100000; i++)
		x = x * 6364136223846793005U + 1442695040888963407U;
	return x;
}

static void *burn(void *name)
{
	volatile uint64_t sink = 1;

	prctl(PR_SET_NAME, name);
	for (;;)
		sink = hostile_work(sink);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argc;
	memset(argv[0], '\033', strlen(argv[0]));
	if (pthread_create(&thread, NULL, burn,
			   "\x9b"
			   "2J\xff\xfe\xe2\x80\xae) S 1"))
		return 1;
	burn("\033]0;x\007\n) R\033[2J");
	return 0;
}

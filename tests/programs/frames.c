/* A chain of frame pointers: main, outer, middle, inner. BUILD: -fno-omit-frame-pointer */
// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * frames [SECONDS]: burn CPU in inner() (default: until killed), called through two others, each
 * with a frame pointer and none a tail call.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define ALONE __attribute__((noipa))

static volatile uint64_t sink;

static ALONE void inner(int rounds)
{
	/* A leaf sets up a frame only if its code needs one. */
	sink += (uintptr_t)__builtin_frame_address(0);
	for (int i = 0; i < rounds; i++)
		sink = sink * 6364136223846793005U + 1442695040888963407U;
}

static ALONE void middle(int rounds)
{
	inner(rounds);
	sink++;
}

static ALONE void outer(int rounds)
{
	middle(rounds);
	sink++;
}

int main(int argc, char **argv)
{
	time_t end = argc > 1 ? time(NULL) + atoi(argv[1]) : 0;

	while (!end || time(NULL) < end)
		outer(1000000);
	return 0;
}

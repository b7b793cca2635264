/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An object that the test makes, mapped by a process that does not exist, and the CPU time that one
 * sample may take.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include "symbols/elf/elf.h"
#include "tests/unwind/world.h"
#include "tests/yardstick.h"

/*
 * Without a budget the worst takes tens of ms; with it, less than one on the machines there are.
 * The limit for any machine is between the two: other machines are slower, and sanitizers several
 * times.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMIT_US 20000u
#else
#define LIMIT_US 4000u
#endif

#define HOSTILE_PID 0x3ffffff0
#define HOSTILE	    0x7e0000000000ULL /* address of the mapping */

/* HOSTILE_US=1000 asserts the promise of 1 ms, on a machine that is calm. */
static inline double hostile_limit_ns(void)
{
	const char *asked = getenv("HOSTILE_US");

	return asked ? strtod(asked, NULL) * 1e3 : LIMIT_US * 1e3 * yardstick_slowness();
}

/* A process that has the object mapped, and nothing else. */
static inline const struct space *hostile_map(struct world *w, struct image *image)
{
	return world_map(w, image, HOSTILE_PID, HOSTILE, 1 << 20);
}

#endif

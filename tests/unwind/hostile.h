/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An object that the test makes, mapped by a process that does not exist, and the CPU time that one
 * sample may take.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include "symbols/object/image.h"
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
	static const char path[] = "/made/by/this/test";
	const struct maps_mmap ev = {
		.pid = HOSTILE_PID,
		.tid = HOSTILE_PID,
		.start = HOSTILE,
		.size = 1 << 20,
		.time_ns = time_now_ns(),
		.prot = PROT_READ | PROT_EXEC,
		.identity = { .kind = OBJECT_FILE, .maj = 77, .ino = 1234567, .ino_generation = 1 },
		.filename = path,
		.filename_size = sizeof(path) - 1,
	};
	const struct mapping *m;
	struct maps_hit hit;

	maps_on_comm(w->maps, HOSTILE_PID, HOSTILE_PID, "hostile", 7, true, ev.time_ns - 1);
	maps_on_mmap(w->maps, &ev);
	maps_publish(w->maps, time_now_ns(), 0);
	maps_find(w->maps, maps_tasks(w->maps), HOSTILE_PID, HOSTILE_PID, time_now_ns(), &hit);
	m = hit.space ? space_find(hit.space, HOSTILE + 0x1000, time_now_ns()) : NULL;
	if (!m)
		abort();
	atomic_store_explicit(&m->object->image, image, memory_order_release);
	atomic_store_explicit(&m->object->state, OBJECT_READY, memory_order_relaxed);
	return hit.space;
}

#endif

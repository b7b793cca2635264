// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The set of requests. Runs on: any thread, lock-free.
 *
 * A request is only a pid, so relaxed order is enough: the loader is woken by an
 * eventfd, which orders memory.
 */
#include "symbols/process/requests.h"

#define PROBES	   32u
#define WAYS	   4u
#define UNIT_BITS  20
#define EVERY_UNIT (REQUESTS_EVERY_NS >> UNIT_BITS)

bool requests_due(_Atomic uint64_t *last, uint64_t now_ns)
{
	uint64_t then = atomic_load_explicit(last, memory_order_relaxed);

	/*
	 * Samples of two CPUs are not in order: a small step back in time is not a
	 * second.
	 */
	if (then && now_ns < then + REQUESTS_EVERY_NS && now_ns + REQUESTS_EVERY_NS > then)
		return false;
	return atomic_compare_exchange_strong_explicit(last, &then, now_ns ? now_ns : 1,
						       memory_order_relaxed, memory_order_relaxed);
}

bool requests_due_unknown(struct requests *a, pid_t pid, uint64_t now_ns)
{
	uint32_t set = (uint32_t)hash_u64((uint64_t)pid) & (REQUESTS_FILTERS - WAYS);
	uint32_t now = (uint32_t)(now_ns >> UNIT_BITS), longest = 0;
	_Atomic uint64_t *oldest = &a->filters[set];
	uint64_t old = 0;

	for (uint32_t i = 0; i < WAYS; i++) {
		uint64_t f = atomic_load_explicit(&a->filters[set + i], memory_order_relaxed);
		uint32_t age = now - (uint32_t)f;

		if (f >> 32 == (uint32_t)pid && (age < EVERY_UNIT || -age < EVERY_UNIT))
			return false;
		if (!f || f >> 32 == (uint32_t)pid)
			age = UINT32_MAX;
		if (age >= longest) {
			longest = age;
			oldest = &a->filters[set + i];
			old = f;
		}
	}
	/* The loser of the race leaves the request to the winner, or tries again later. */
	return atomic_compare_exchange_strong_explicit(oldest, &old, (uint64_t)pid << 32 | now,
						       memory_order_relaxed, memory_order_relaxed);
}

bool requests_put(struct requests *a, pid_t pid)
{
	uint32_t at = (uint32_t)hash_u64((uint64_t)pid);

	for (uint32_t i = 0; i < PROBES; i++) {
		atomic_int *slot = &a->slots[(at + i) & (REQUESTS_SLOTS - 1)];
		int there = atomic_load_explicit(slot, memory_order_relaxed);

		if (there == pid)
			return false;
		if (!there &&
		    atomic_compare_exchange_strong_explicit(slot, &there, pid, memory_order_relaxed,
							    memory_order_relaxed)) {
			/* Relaxed: the loader is woken after this. */
			atomic_fetch_add_explicit(&a->nr, 1, memory_order_relaxed);
			return true;
		}
		if (there == pid)
			return false;
	}
	return false;
}

pid_t requests_take(struct requests *a, uint32_t *pos)
{
	/* Mostly empty. */
	if (!atomic_load_explicit(&a->nr, memory_order_relaxed))
		return 0;
	for (; *pos < REQUESTS_SLOTS; (*pos)++) {
		pid_t pid;

		if (!atomic_load_explicit(&a->slots[*pos], memory_order_relaxed))
			continue;
		pid = atomic_exchange_explicit(&a->slots[*pos], 0, memory_order_relaxed);
		if (!pid)
			continue;
		atomic_fetch_sub_explicit(&a->nr, 1, memory_order_relaxed);
		return pid;
	}
	return 0;
}

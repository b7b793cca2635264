/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measure the share of due samples that the kernel takes on this machine, with a clock event per
 * CPU that has no reader. A test compares a rate with this share instead of the clock: when a
 * hypervisor or an interrupt holds a CPU up, the kernel takes fewer samples of every event.
 */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "tests/prelude.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REFERENCE_CPUS 512
/* The default. Never slower than the rate that is compared: of a slower event the kernel takes a
 * larger share. */
#define REFERENCE_HZ 3999

struct reference {
	int fds[REFERENCE_CPUS];
	const struct perf_event_mmap_page *rings[REFERENCE_CPUS];
	long nr_cpus;
	/* Of each CPU's event. */
	unsigned int hz;
	uint64_t seen, since_ns;
};

static inline uint64_t reference_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Count the records of a header each: the map is read-only, so the kernel overwrites the oldest. */
static inline uint64_t reference_count(const struct reference *r)
{
	uint64_t bytes = 0;

	for (long i = 0; i < r->nr_cpus; i++)
		if (r->rings[i])
			bytes += __atomic_load_n(&r->rings[i]->data_head, __ATOMIC_ACQUIRE);
	return bytes / sizeof(struct perf_event_header);
}

static inline unsigned int reference_nr_rings(const struct reference *r)
{
	unsigned int nr = 0;

	for (long i = 0; i < r->nr_cpus; i++)
		nr += r->rings[i] != NULL;
	return nr;
}

/* Return the number of samples taken since the last call; *@due: that were due. */
static inline double reference_taken(struct reference *r, double *due)
{
	uint64_t now_ns = reference_now_ns(), nr = reference_count(r);
	double taken = (double)(nr - r->seen);

	*due = reference_nr_rings(r) * (double)r->hz * (double)(now_ns - r->since_ns) / 1e9;
	r->seen = nr;
	r->since_ns = now_ns;
	return taken;
}

/* Return the share of samples taken since the last call, at most 1; 1 where nothing can be
 * measured. */
static inline double reference_share(struct reference *r)
{
	double due, taken = reference_taken(r, &due);

	return due > 0 && taken < due ? taken / due : 1;
}

static inline void reference_open_at(struct reference *r, unsigned int hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
	};

	r->hz = hz;
	r->nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	r->nr_cpus = r->nr_cpus < REFERENCE_CPUS ? r->nr_cpus : REFERENCE_CPUS;
	for (int i = 0; i < r->nr_cpus; i++) {
		void *ring = MAP_FAILED;

		r->fds[i] = (int)syscall(SYS_perf_event_open, &attr, -1, i, -1, 0);
		if (r->fds[i] >= 0)
			ring = mmap(NULL, 2 * (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
				    r->fds[i], 0);
		r->rings[i] = ring == MAP_FAILED ? NULL : ring;
	}
	r->seen = reference_count(r);
	r->since_ns = reference_now_ns();
}

static inline void reference_open(struct reference *r)
{
	reference_open_at(r, REFERENCE_HZ);
}

static inline void reference_close(struct reference *r)
{
	for (long i = 0; i < r->nr_cpus; i++) {
		if (r->rings[i])
			munmap((void *)r->rings[i], 2 * (size_t)sysconf(_SC_PAGESIZE));
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	}
	r->nr_cpus = 0;
}

#endif

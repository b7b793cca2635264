/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which share of the wanted rate to sample with: with --max-overhead to keep our cost and the
 * samples lost below their limits, without it to leave the CPUs to others, and always so that the
 * machine can run other work. Pure; the builder's.
 */
#ifndef SAMPLER_EVENT_GOVERNOR_H
#define SAMPLER_EVENT_GOVERNOR_H

#include "symbols/base/base.h"

/* More samples lost than this, and the rate is too high whatever it costs. */
#define GOVERNOR_LOSS_MAX 0.01

/* No rate up to this one delays ticks. */
#define GOVERNOR_STALL_HZ 10000
/* The most that interrupts may take of a CPU at a higher rate, or threads run too slowly. */
#define GOVERNOR_INTERRUPTS_MAX 0.25

/* The lowest rate while symbols are read. */
#define GOVERNOR_STARVED_HZ 19

/* Without --max-overhead: the most that proftop may use over GOVERNOR_CAP_NS, in percent of all
 * CPUs; */
#define GOVERNOR_CAP_PCT 25
#define GOVERNOR_CAP_NS	 3000000000ULL
/* and the lowest rate because of that: up to it, reading symbols at the start may cost more. */
#define GOVERNOR_CAP_HZ 1000

struct governor {
	double max_pct;	      /* of one CPU; 0: off */
	double least;	      /* the lowest factor because of the cost */
	bool is_cap;	      /* max_pct is that of GOVERNOR_CAP_PCT */
	bool capped;	      /* the factor is lower because of that */
	double factor;	      /* of the wanted rate, the ceiling at most */
	double ceiling;	      /* 1, or the highest that did not stall the machine */
	unsigned int starved; /* ticks in a row without the CPU time to read symbols */
	unsigned int fed;     /* ticks in a row with it, since */
	bool hungry;	      /* the factor is lower because of that */
	bool climbs;	      /* rises in steps to a rate above GOVERNOR_STALL_HZ */
	double fast;	      /* the factor of GOVERNOR_STALL_HZ; 1: no climb */
	double interrupts;    /* the part of a CPU that they take now; 0: not measured */
	unsigned int late;    /* ticks in a row that were much too late */
	unsigned int over;    /* steps in a row above the limit */
	uint64_t over_ns;     /* time in a row above the cap */
	unsigned int calm;    /* steps in a row well below the limits */
	double cost_ns;	      /* CPU time since the last step */
	uint64_t span_ns, taken, lost;
};

/*
 * Begin with the wanted rates. @max_pct: of --max-overhead, 0: the cap for @nr_cpus CPUs, if the
 * fastest event has a rate @hz.
 */
void governor_init(struct governor *g, double max_pct, uint32_t nr_cpus, double hz);
/*
 * Begin at GOVERNOR_STALL_HZ, if @hz is higher, and double that as long as the next step is within
 * the limits: a rate that stops the machine is never set, so that it need not be noticed.
 */
void governor_climb(struct governor *g, double hz);
/* Return how long the next tick may be, to see the cost of a high rate in time; UINT64_MAX: as
 * usual. */
uint64_t governor_patience(const struct governor *g);
/* Add the cost of one tick. True: the factor has changed. */
bool governor_tick(struct governor *g, uint64_t interval_ns, double cpu_pct, uint64_t taken,
		   uint64_t lost);
/*
 * A tick took @interval_ns instead of @tick_ns, with @hz wanted of the
 * fastest event. True: not the first in a row that was much too late; the
 * factor is lower, down to GOVERNOR_STALL_HZ, and will not rise again.
 */
bool governor_stall(struct governor *g, uint64_t interval_ns, uint64_t tick_ns, double hz);

/*
 * A tick was @starved: most stacks are pending, as other threads of proftop get too little CPU
 * time. True: the factor is lower, not below GOVERNOR_STARVED_HZ of @hz, or rises after some other
 * ticks.
 */
bool governor_starve(struct governor *g, bool starved, double hz);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One event as it is requested: type, levels, rate, group.
 */
#ifndef SAMPLER_EVENT_EVENT_TYPE_H
#define SAMPLER_EVENT_EVENT_TYPE_H

#include "symbols/base/base.h"

#define EVENT_NAME_MAX 256
#define EVENT_TEXT_MAX 256
#define EVENTS_MAX     8 /* sampled at the same time */

struct event {
	char name[EVENT_NAME_MAX]; /* as requested, modifiers included */
	uint32_t type;		   /* PERF_TYPE_* */
	uint64_t config, config1, config2;
	bool user, kernel, hv; /* levels that are counted */
	bool host, guest;      /* modifiers H, G; the host alone by default */
	uint8_t precise;       /* precise_ip, 0-3 */
	bool precise_max;      /* modifier P: as precise as this machine can, precise at most */
	bool clock;	       /* cpu-clock, task-clock: periods are nanoseconds */
	bool wait;	       /* waits: exact times of tasks, with stacks of switches */
	bool hardware;	       /* needs a PMU */
	uint32_t bp_type;      /* HW_BREAKPOINT_*; address and length are config1, config2 */
	uint32_t group;	       /* 0: none; members stand side by side, their leader first */
	bool read;	       /* "{a,b}:S": the leader's samples carry the counts of all members */
	bool counted;	       /* a member that takes no samples itself: all but one */
	uint64_t period;       /* of "name/period=1000/"; 0: by rate */
	double hz;	       /* of "name/freq=99/"; 0: the session's rate */
	char label[32];	       /* "cpu/event=0x3c,name=mine/"; "": none */
	char target[EVENT_TEXT_MAX]; /* of a probe: the file or kernel function; config1 points here
				      */
	char filter[EVENT_TEXT_MAX]; /* tracepoints: as in perf record --filter; "": none */
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the UI on their way to the builder.
 *
 * Threads: controls_send() by the UI, controls_take() by the builder.
 */
#ifndef SAMPLER_CONTROLS_H
#define SAMPLER_CONTROLS_H

#include <pthread.h>

#include "sampler/config.h"
#include "sampler/profile/strip.h"

#define CONTROLS_MAX 32

enum control_kind {
	CONTROL_RATE,
	CONTROL_ENABLE,
	CONTROL_EVENTS,
	CONTROL_WINDOW,
	CONTROL_TICK,
	CONTROL_RESET,
	CONTROL_ANNOTATE,
	CONTROL_FETCH,
	CONTROL_PROBE,
	CONTROL_EVENT_ENABLE,
	CONTROL_STACK,
	CONTROL_RING,
	CONTROL_TARGET,
	CONTROL_FOCUS,
	CONTROL_CALL_GRAPH,
	CONTROL_CPUS,
	CONTROL_STRIP,
	CONTROL_PAST,
	CONTROL_TRAP,
	CONTROL_TRAPS, /* report the rules */
	CONTROL_FRAMES,
	CONTROL_NR,
};

struct trap_rule;

/* One request. */
struct control {
	enum control_kind kind;
	uint32_t event; /* RATE, EVENT_ENABLE; else 0 */
	union {
		double hz;			  /* RATE */
		bool on;			  /* ENABLE, EVENT_ENABLE */
		size_t size;			  /* RING: bytes */
		enum call_graph call_graph;	  /* CALL_GRAPH */
		pid_t pid;			  /* FOCUS; 0: back */
		struct sampler_target_spec *spec; /* TARGET, CPUS: owned */
		enum profile_window window;	  /* WINDOW */
		enum profile_frames frames;	  /* FRAMES */
		uint64_t tick_ns;		  /* TICK */
		struct strip_query *strip;	  /* STRIP: owned */
		struct trap_rule *rule;		  /* TRAP: owned; NULL: remove all */
		struct {			  /* STACK: bytes, or more as needed */
			uint32_t size;
			bool is_auto;
		} stack;
		struct { /* PAST; both 0: none */
			uint64_t begin_ns, end_ns;
		} past;
		struct { /* EVENTS */
			struct event list[EVENTS_MAX];
			uint32_t nr;
		} events;
	};
};

/* The lock is held for a copy only. */
struct controls {
	pthread_mutex_t lock;
	struct control items[CONTROLS_MAX];
	uint32_t nr;
	bool busy; /* until controls_settle(): a request may be answered yet */
	int fd;	   /* eventfd: requests are queued, the tables fill up, or stop */
};

/* Prepare an empty queue. 0 or -errno with a sentence. */
int controls_open(struct controls *q, struct err *e);
void controls_close(struct controls *q);
/*
 * Queue a request, taken over, as the newest one; one of the same kind and event that is still
 * queued is dropped, but for TRAP: each adds a rule.
 */
void controls_send(struct controls *q, const struct control *c);
/* Move all requests into @items, oldest first. Returns how many there were. */
uint32_t controls_take(struct controls *q, struct control items[static CONTROLS_MAX]);
/* Note that all requests that were taken are answered. */
void controls_settle(struct controls *q);
/* Return whether a request is queued or taken, and not answered. Any thread. */
bool controls_are_busy(struct controls *q);
/* Wake the builder. */
void controls_wake(struct controls *q);
/* Free the memory of a request. */
void controls_free(const struct control *c);

#endif

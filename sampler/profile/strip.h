/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heat strip: the past of a session as one row of columns, each a span of time, with the amount
 * of the selected samples in it. Made by the builder, handed over whole, freed by the UI.
 */
#ifndef SAMPLER_PROFILE_STRIP_H
#define SAMPLER_PROFILE_STRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/text.h"

#define STRIP_COLUMNS_MAX 1000
#define STRIP_FILTER_MAX  128
#define STRIP_ALL	  UINT32_MAX

/* Bits: incidents in a column. */
enum strip_mark {
	STRIP_LOST = 1,
	STRIP_THROTTLED = 2,
	STRIP_RATE = 4,	  /* the rate was changed */
	STRIP_EVENTS = 8, /* other events since then */
	STRIP_TRAP = 16,  /* a rule of --trap matched */
	STRIP_RESET = 32, /* the counts were reset */
};

/* The name of a function, or of a task: without module and kind. */
struct strip_name {
	struct safe_text name, module;
	char kind; /* as profile_function.kind; 0: a task */
};

/* A filter by name, compiled and used by the builder. */
struct strip_matcher {
	void *(*make)(const char *text); /* NULL: no memory */
	bool (*finds)(const void *made, const struct strip_name *name);
	void (*free)(void *made);
};

/* The samples to show: of one event, and of all the rest. */
struct strip_query {
	uint32_t seq;	   /* of the query; copied to its strips */
	uint32_t columns;  /* 0: no strip */
	uint64_t span_ns;  /* the newest part of the past; 0: all */
	uint32_t event;	   /* index in the events of the newest profile */
	uint32_t process;  /* profile_process.id, or STRIP_ALL */
	uint32_t thread;   /* profile_task.id, or STRIP_ALL */
	uint32_t function; /* stacks with this profile_function.id, or STRIP_ALL */
	/* Stacks with a function that @matcher finds, and tasks. */
	char filter[STRIP_FILTER_MAX]; /* "": all */
	const struct strip_matcher *matcher;
	bool inverted;	 /* all others */
	bool only_tasks; /* compare the names of tasks alone */
};

struct strip_column {
	double peak; /* of the slice with most of the selected samples: their weight per second */
	uint64_t begin_ns, end_ns; /* of that slice; 0: no slice is in this column */
	uint32_t marks;
};

struct strip {
	uint64_t begin_ns, column_ns; /* column i is at begin_ns + i * column_ns */
	uint32_t nr;
	uint64_t first_ns, last_ns; /* all the past that is kept */
	uint64_t last_real_ns;	    /* CLOCK_REALTIME at last_ns; 0: a recording */
	uint32_t seq;		    /* of its query */
	bool answer;		    /* to a query; else the newest slices were added */
	bool merged;		    /* old slices are longer than 100 ms: the memory is used up */
	bool dropped;		    /* samples older than first_ns were counted */
	double max;		    /* the highest peak */
	struct strip_column columns[];
};

/* Return the index of the column of @time_ns, the nearest if it is outside. */
uint32_t strip_column_at(const struct strip *s, uint64_t time_ns);
/*
 * Find the next moment with much of the selected samples before @time_ns, or after it with @later:
 * a local maximum of at least half of the highest one and 1.5 times the mean. Return its column;
 * @nr: there is none.
 */
uint32_t strip_peak(const struct strip *s, uint64_t time_ns, bool later);
/* Return a copy of a query; malloc'ed, NULL: no memory. */
struct strip_query *strip_copy_query(const struct strip_query *q);
/* Return whether the same samples are in both. */
bool strip_same_samples(const struct strip_query *a, const struct strip_query *b);
bool strip_same_query(const struct strip_query *a, const struct strip_query *b);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Profiles without a screen: one block of text or one JSON object a tick.
 *
 * A sink gets a tick: the profile and, for each event, its rows sorted,
 * filtered and cut. Pure but for the stream and batch_run(). Runs on: the
 * main thread.
 */
#ifndef UI_CLI_BATCH_H
#define UI_CLI_BATCH_H

#include <stdio.h>

#include "sampler/profile/fold.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/config.h"

/* One function of one event. Borrows from the profile. */
struct batch_row {
	const struct profile_function *function;
	struct safe_text comm;	    /* of the task with most of it */
	double self, total;	    /* samples */
	double self_pct, total_pct; /* of the event's samples, by weight */
};

struct batch_table {
	uint32_t event; /* index in the profile's events */
	double count;	/* all samples of the event, shown or not */
	struct batch_row *rows;
	uint32_t nr_rows;     /* that are shown */
	uint32_t nr_matching; /* that pass the filter */
};

struct batch_tick {
	const struct profile *profile;
	struct batch_table tables[EVENTS_MAX];
	uint32_t nr_tables;
};

/* Writes a tick; 0, -ENOMEM or -errno of the stream. */
typedef int (*batch_sink_fn)(FILE *out, const struct batch_tick *tick);

int batch_text(FILE *out, const struct batch_tick *tick);
int batch_ndjson(FILE *out, const struct batch_tick *tick);

struct batch_config {
	batch_sink_fn sink;
	enum ui_config_sort sort;
	const char *filter; /* as in ui/match.h; NULL: none */
	uint32_t rows;	    /* per event; 0: all */
	uint64_t nr_ticks;  /* 0: until the target or a signal ends it */
};

/* The rows of a profile. 0, -ENOMEM. Free with batch_tick_fini(). */
int batch_tick_init(struct batch_tick *tick, const struct profile *p,
		    const struct batch_config *config);
void batch_tick_fini(struct batch_tick *tick);

/* Print one profile and flush. 0 or -errno (-EPIPE: the reader has left). */
int batch_print(FILE *out, const struct profile *p, const struct batch_config *config);

/* "no_map", …: the key of a reason a stack broke for (index in broken_by); NULL: none. */
const char *batch_broken_key(uint32_t stop);

/*
 * Block the signals that batch_run() reads. Call before the first thread
 * starts, and before sampler_new(): libraries start threads of their own.
 */
void batch_block_signals(void);

/*
 * Print every profile until the ticks are done, the target is gone or the
 * reader has left (0), a signal comes (its number, all printed so far
 * flushed), or something fails (-errno with a sentence).
 */
int batch_run(struct sampler *s, FILE *out, const struct batch_config *config, struct err *e);

/* The samples of a recording in perf script's layout. 0 or -errno with a sentence. */
int batch_script(struct sampler *s, FILE *out, struct err *e);

#endif

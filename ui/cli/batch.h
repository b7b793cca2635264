/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Print profiles without a screen: one block of text or one JSON object per
 * tick.
 *
 * A sink gets a tick: the profile and, for each event, its rows, sorted,
 * filtered and cut. Pure except for the stream and batch_run(). Runs on: the
 * main thread.
 */
#ifndef UI_CLI_BATCH_H
#define UI_CLI_BATCH_H

#include <stdio.h>

#include "sampler/profile/fold.h"
#include "sampler/profile/ratios.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "ui/cli/config.h"
#include "ui/cli/pushed.h"

/* One function of one event. Borrows from the profile. */
struct batch_row {
	const struct profile_function *function;
	struct safe_text comm;		 /* of the process with most of its samples */
	const struct profile_line *line; /* the hottest one; NULL: not known */
	double self, total;		 /* samples */
	double self_pct, total_pct;	 /* of the event's samples, by weight */
	double ratios[RATIOS_MAX];	 /* in the order of the tick's; NAN: not known */
};

struct batch_table {
	uint32_t event;	 /* index in the profile's events */
	bool latency;	 /* shares are weighted with 1 / running tasks */
	bool with_waits; /* samples of waits are in the table also */
	double count;	 /* all samples of the event, shown or not */
	double seconds;	 /* of an event that counts time: the time of all samples */
	struct batch_row *rows;
	uint32_t nr_rows;     /* shown rows */
	uint32_t nr_matching; /* rows that pass the filter */
};

struct batch_tick {
	const struct profile *profile;
	unsigned int cols; /* of the terminal that it is printed on; 0: not on a terminal */
	bool ascii;	   /* as in the configuration */
	struct batch_table tables[EVENTS_MAX];
	uint32_t nr_tables;
	const struct pushed *pushed; /* NULL: no push */
	const char *only, *range;    /* as in the configuration */
	struct ratio_use ratios[RATIOS_MAX];
	uint32_t nr_ratios;
};

/* Write a tick. Return 0, -ENOMEM or -errno of the stream. */
typedef int (*batch_sink_fn)(FILE *out, const struct batch_tick *tick);

int batch_text(FILE *out, const struct batch_tick *tick);
int batch_ndjson(FILE *out, const struct batch_tick *tick);

struct batch_config {
	batch_sink_fn sink; /* NULL: nothing is printed */
	enum ui_config_sort sort;
	const char *filter;		 /* as in ui/match.h; NULL: none */
	uint32_t rows;			 /* per event; 0: all */
	bool latency;			 /* shares are weighted with 1 / running tasks */
	bool ascii;			 /* cut names end with '~', not with an ellipsis */
	uint64_t nr_ticks;		 /* 0: until the target or a signal ends it */
	const struct fold_filter *scope; /* rows of these samples, of each event; NULL: all */
	bool one_module;		 /* rows of one module: */
	uint32_t module;		 /* its profile_module.id */
	const char *only;  /* of an export: scope and module in words; NULL: all samples */
	const char *range; /* of an export: the span of its rows in words; NULL: the tick */
	/*
	 * Called with each profile before it is printed, of which there is no other owner; NULL:
	 * not. Returns 0 or -errno with a message.
	 */
	int (*each)(const struct batch_config *config, struct profile *p, struct err *e);
	void *each_context;
	const struct pushed *pushed; /* figures of --push, set by each(); NULL: no push */
};

/* Print one profile and flush. Return 0 or -errno (-EPIPE: the reader has exited). */
int batch_print(FILE *out, const struct profile *p, const struct batch_config *config);

/* Return the key ("no_map", …) of a reason for broken stacks (index in broken_by), or NULL. */
const char *batch_broken_key(uint32_t stop);

/*
 * Block the signals that batch_run() reads. Call before the first thread
 * starts, and before sampler_new(): libraries start threads.
 */
void batch_block_signals(void);

/*
 * Print every profile until all ticks are printed, the target is gone or the reader has
 * exited (return 0), on a signal (return its number, everything flushed), or on an error
 * (return -errno with a message).
 */
int batch_run(struct sampler *s, FILE *out, const struct batch_config *config, struct err *e);

/*
 * Print the samples of a recording in the layout of perf script, with the additional @fields;
 * missing ones are reported on standard error. Return 0 or -errno with a message.
 */
int batch_script(struct sampler *s, FILE *out, uint64_t fields, struct err *e);

#endif

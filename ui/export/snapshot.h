/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exported part of a profile, neutral of formats: frames, stacks and weights of the shown
 * event, process and filter. All writers read this, so that all formats have the same numbers.
 *
 * Texts and functions are borrowed from the profile, which must live as long. Pure; any thread.
 */
#ifndef UI_EXPORT_SNAPSHOT_H
#define UI_EXPORT_SNAPSHOT_H

#include "sampler/profile/fold.h"
#include "ui/text/text.h"

struct snapshot_label {
	const char *name, *value;
};

/* Which samples are exported, and facts that are not in the profile. */
struct snapshot_scope {
	struct fold_filter filter;
	/* Only stacks with such a function; as in ui/text/match.h, "": all. */
	char find[MATCH_MAX];
	uint32_t module; /* only stacks with code of this profile_module.id; UINT32_MAX: all */
	char host[65];	 /* clean; "": unknown */
	char range[64];	 /* clean: "last 5.0 s" */
	char title[160]; /* clean: the process drilled into; "": the target is enough */
	char only[384];	 /* clean: "user www-data, cgroup web"; "": of all */
	/* Of the sender of a pushed profile, for formats that have such; ASCII, borrowed. */
	const struct snapshot_label *labels;
	uint32_t nr_labels;
};

/* One place on a stack: a function, and its line if that is known. */
struct snapshot_frame {
	uint32_t function; /* index in the profile's functions */
	uint32_t line;	   /* index in its lines, or PROFILE_NO_LINE */
};

struct snapshot_stack {
	uint32_t first, nr; /* in calls; root first; 0: all frames are hidden */
	uint32_t task;	    /* index in the profile's tasks */
	double count, weight;
};

/* A function with its sums; as in the view of functions. */
struct snapshot_row {
	uint32_t function;
	double self, total; /* weight; recursion counted once */
};

/* Processes in order of their weight, each with its stacks side by side. */
struct snapshot_process {
	uint32_t process;   /* index in the profile's processes */
	uint32_t first, nr; /* in stacks */
	double weight;
};

struct snapshot {
	const struct profile *profile;
	struct snapshot_scope scope;
	const struct profile_event *event;
	struct safe_text type, unit;  /* of weights, in the words of pprof: "cpu", "nanoseconds" */
	bool nanoseconds;	      /* weights are time */
	double all_count, all_weight; /* the base of shares: samples that pass scope.filter */
	double count, weight;	      /* of the stacks that pass scope.find */

	struct snapshot_frame *frames;
	uint32_t nr_frames;
	uint32_t *calls; /* indices in frames */
	uint32_t nr_calls;
	struct snapshot_stack *stacks; /* by process, then task, hottest first */
	uint32_t nr_stacks;
	struct snapshot_process *processes;
	uint32_t nr_processes;
	struct snapshot_row *rows; /* hottest first */
	uint32_t nr_rows;
	uint32_t *lines; /* by function, its hottest line, or PROFILE_NO_LINE */
	/* By index in the profile's arrays: a stack has it. Names of others stay where they are. */
	uint8_t *has_function, *has_module, *has_file, *has_process;
	char event_name[EVENT_NAME_MAX];
	struct safe_text shown_event; /* clean: "cycles", "cpu-clock + waits" */
	char shown_event_text[EVENT_NAME_MAX * 2];
};

/* Make a snapshot of @p. Return 0, -ENOMEM, or -ENODATA: it has no events. */
int snapshot_make(struct snapshot *s, const struct profile *p, const struct snapshot_scope *scope);
void snapshot_fini(struct snapshot *s);

/* The function of a frame. */
static inline const struct profile_function *snapshot_function(const struct snapshot *s,
							       uint32_t frame)
{
	return &s->profile->functions[s->frames[frame].function];
}

/* Return texts of the profile's entries; "": no stack has it. */
struct safe_text snapshot_name(const struct snapshot *s, uint32_t function);
struct safe_text snapshot_module_of(const struct snapshot *s, uint32_t function);
struct safe_text snapshot_module(const struct snapshot *s, uint32_t module);
struct safe_text snapshot_file(const struct snapshot *s, uint32_t file);
struct safe_text snapshot_comm(const struct snapshot *s, uint32_t process);
/* Return the source file of a function's hottest line, and its number in *@number. */
struct safe_text snapshot_source(const struct snapshot *s, uint32_t function, uint32_t *number);
/* Return the source file of a line, and its number in *@number; "" and 0: unknown. */
struct safe_text snapshot_line(const struct snapshot *s, uint32_t line, uint32_t *number);
/* Return the process of a task, NULL: unknown. */
const struct profile_process *snapshot_process_of(const struct snapshot *s, uint32_t task);
/* Return the value of one sample, in units of weight; 0: it varies. */
double snapshot_period(const struct snapshot *s);
/*
 * Return a value as an integer; the rest is carried to the next call in *@rest (0 at first), so
 * that many small values of a decaying window keep their sum.
 */
int64_t snapshot_whole(double value, double *rest);
/* Return the period as an integer; 1 if it varies. */
int64_t snapshot_period_whole(const struct snapshot *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/export/, and by tests; no other room includes it. */
#ifndef UI_EXPORT_INTERNAL_H
#define UI_EXPORT_INTERNAL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/export/export.h"

struct profile;
struct profile_event;
struct profile_function;
struct profile_process;

/* Most bytes of an export. */
#define OUT_MAX (1ull << 30)

struct out;
struct snapshot_frame;
struct snapshot_process;
struct snapshot_scope;
struct snapshot_stack;

/* Dense numbers for keys of 64 bits, from 0 in the order of their first use. One thread. */

#define DENSE_NONE UINT32_MAX

struct dense {
	uint64_t *keys; /* by number */
	uint32_t nr;
	uint32_t *slots; /* number + 1; 0: empty */
	uint32_t nr_slots;
};

void dense_fini(struct dense *d);
/* Return the number of @key; DENSE_NONE: no memory. *@is_new: the key was added. */
uint32_t dense_add(struct dense *d, uint64_t key, bool *is_new);

void out_progress(struct out *o, uint64_t done, uint64_t all);

/*
 * The exported part of a profile, neutral of formats: frames, stacks and weights of the shown
 * event, process and filter. All writers read this, so that all formats have the same numbers.
 *
 * Texts and functions are borrowed from the profile, which must live as long. Pure; any thread.
 */

/* A function with its sums; as in the view of functions. */
struct snapshot_row {
	uint32_t function;
	double self, total; /* weight; recursion counted once */
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

/*
 * Make a snapshot of @p; @by_address: each instruction of a line is a frame.
 * Return 0, -ENOMEM, or -ENODATA: it has no events.
 */
int snapshot_make(struct snapshot *s, const struct profile *p, const struct snapshot_scope *scope,
		  bool by_address);
void snapshot_fini(struct snapshot *s);

/* The function of a frame. */
static inline const struct profile_function *snapshot_function(const struct snapshot *s,
							       uint32_t frame)
{
	return &s->profile->functions[s->frames[frame].function];
}

/* Return texts of the profile's entries; "": no stack has it. */
static inline struct safe_text snapshot_name(const struct snapshot *s, uint32_t function)
{
	assert(function < s->profile->nr_functions);
	return s->has_function[function] ? s->profile->functions[function].name : TEXT("");
}

static inline struct safe_text snapshot_module_of(const struct snapshot *s, uint32_t function)
{
	assert(function < s->profile->nr_functions);
	return s->has_function[function] ? s->profile->functions[function].module : TEXT("");
}

static inline struct safe_text snapshot_module(const struct snapshot *s, uint32_t module)
{
	assert(module < s->profile->nr_modules);
	return s->has_module[module] ? s->profile->modules[module].name : TEXT("");
}

static inline struct safe_text snapshot_file(const struct snapshot *s, uint32_t file)
{
	assert(file < s->profile->nr_files);
	return s->has_file[file] ? s->profile->files[file] : TEXT("");
}

static inline struct safe_text snapshot_comm(const struct snapshot *s, uint32_t process)
{
	assert(process < s->profile->nr_processes);
	return s->has_process[process] ? profile_process_name(&s->profile->processes[process])
				       : TEXT("");
}

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

/*
 * Facts about an export, as lines of text: where and when it was made, which samples it has, and
 * the account of the others. Pure; any thread.
 */

#define FACTS_MAX 24

struct fact {
	const char *name;
	char text[320]; /* clean */
	bool bad;	/* samples are missing or less sure */
};

/* Return the number of facts. */
uint32_t facts_make(const struct snapshot *s, struct fact facts[static FACTS_MAX]);
/* Return one line: "host: target, cpu-clock, last 5.0 s". */
struct safe_text facts_title(const struct snapshot *s, char buf[static 512]);

/*
 * The wire format of protobuf: https://protobuf.dev/programming-guides/encoding. Pure; any thread.
 */

/* Add a bare number: an element of a packed field. */
void proto_varint(struct out *o, uint64_t v);
/* Add a field of an integer, also if it is 0. */
void proto_number(struct out *o, int field, uint64_t v);
void proto_fixed64(struct out *o, int field, uint64_t v);
/* Add a field of a string, bytes or packed numbers. */
void proto_bytes(struct out *o, int field, const void *bytes, size_t size);
/* Add @part as a submessage, and empty it. */
void proto_message(struct out *o, int field, struct out *part);

/*
 * Numbers for the locations of stacks: a location is a function with the functions that are
 * inlined there, each with its line. One thread.
 */

struct locations {
	struct dense chains; /* (chain + 1, frame) -> chain: the frames of a location */
	struct dense ids;    /* chain -> number */
};

void locations_fini(struct locations *l);
/*
 * Return the number, from 0, of the location with the innermost frame calls[*@at], and set *@at to
 * its outermost frame; @first: the root. DENSE_NONE: no memory.
 */
uint32_t locations_add(struct locations *l, const struct snapshot *s, uint32_t first, uint32_t *at,
		       bool *is_new);

/* The table of strings of a protobuf message: each text once, by number. One thread. */

struct strings {
	struct out out; /* the fields of the table, in the order of their numbers */
	int field;	/* its number in the message */
	struct dense hashes;
	struct safe_text *texts; /* by number; borrowed */
	uint32_t nr_texts;
};

/* Begin a table: string 0 is empty. */
void strings_init(struct strings *s, int field);
void strings_fini(struct strings *s);
/* Return the number of @t, which is borrowed until the end. Without memory out.failed is set. */
uint64_t strings_add(struct strings *s, struct safe_text t);

/*
 * One writer for each format: snapshot → bytes. Pure; any thread.
 *
 * A writer returns 0, -ENOMEM, or -ENOENT: scope.baseline has not the event; it escapes all texts
 * for its format.
 */

/* pprof's profile.proto, with gzip. */
int pprof_write(struct out *o, const struct snapshot *s);
/* OpenTelemetry's ProfilesData; its layout still changes. */
int otlp_write(struct out *o, const struct snapshot *s);
/* speedscope's file format: one profile per process, and one of all. */
int speedscope_write(struct out *o, const struct snapshot *s);
/* The processed format 60 of the Firefox profiler: one thread per task. */
int firefox_write(struct out *o, const struct snapshot *s);

#endif

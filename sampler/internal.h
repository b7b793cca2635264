/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/, and by tests; no other room includes it. */
#ifndef SAMPLER_INTERNAL_H
#define SAMPLER_INTERNAL_H

#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/sampler.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"

struct control;
struct counters;
struct counts;
struct cpu_times;
struct deltas;
struct err;
struct event_table;
struct history;
struct keep;
struct keep_config;
struct keep_read;
struct maps;
struct objects;
struct pairs;
struct perfdata;
struct pipeline;
struct place;
struct places;
struct process_names;
struct procstat;
struct profile;
struct recorder;
struct recording;
struct replay;
struct replay_result;
struct sampler;
struct sampler_branch;
struct sampler_config;
struct sampler_event_state;
struct sampler_frame;
struct sampler_missing;
struct sampler_recorded;
struct sampler_target_spec;
struct sampler_thread;
struct saving;
struct script_functions;
struct sideband;
struct sleepers;
struct slices;
struct stacks;
struct strip;
struct symbol;
struct symbols;
struct trap_rule;
struct unwind_rows;
struct waits;

/* The samples of one function by address. Runs on: the builder. */

struct annotate {
	atomic_uint function; /* to show, or SYMBOL_NONE: set by the UI, relaxed */
	uint32_t in[2];	      /* an inlined function, and the function it is shown in */
	/* A place to show, the table that its id is of, and its function then. */
	struct annotate_place {
		uint32_t function, serial, symbol;
	} place;
	struct listing_instance at; /* of a function of many processes: the one that is shown */
	bool waits;		    /* its code was not there at the last tick */
	bool replay;		    /* there is no loader thread */
};

/* Fill p->annotate, if the UI requested a function; NULL without memory. */
void annotate_fill(struct annotate *an, struct symbols *symbols, struct profile *p,
		   const struct assemble_input *in);
/* Between ticks: report whether code that was missing in the last profile is read. */
bool annotate_is_due(struct annotate *an, struct symbols *symbols);

struct arrival {
	uint64_t newest_ns; /* time of the newest record; 0: none */
	int64_t least_ns;   /* the least difference between arrival and time of a record */
};

/* The builder thread: ends ticks, applies controls. Threads: start and stop by the owner. */

/* 0 or -errno with a sentence. */
int builder_start(struct sampler *s, struct err *e);
/*
 * Join the builder. False: it hangs in the kernel, and uses the session for the rest of this
 * process.
 */
bool builder_stop(struct sampler *s);

/*
 * CPU time of the sampled tasks, from clocks of the kernel: samples of tasks that run in short
 * pieces are too few, and say how the time is shared only. Each slice of the history gets it as
 * counts of PROFILE_CPU (of a task) and PROFILE_CPU_REST (of its process, and of no sampled task).
 *
 * The clocks of all processes are noted at the begin. Samples stand for the time where no clock
 * does: in the slice of the end of a process. The rest of the time of all tasks, by their events or
 * that of the CPUs, belongs to tasks that have ended, and the times of ended children, as their
 * parents have them, say how much that is. A process and each thread without samples in a slice has
 * its time at the end of a tick. No slice has more than the whole time of its CPUs.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */

/* Clocks of the kernel, replaceable by tests: set *ns to the CPU time so far. False: not known. */
struct cpu_times_clocks {
	bool (*process)(void *ctx, pid_t pid, uint64_t *ns);
	bool (*thread)(void *ctx, pid_t pid, pid_t tid, uint64_t *ns);
	void *ctx;
	/* Of the children that the process has waited for, and of theirs; NULL: not known. */
	bool (*children)(void *ctx, pid_t pid, uint64_t *ns);
	uint64_t (*now)(void *ctx); /* NULL: the end of the slice */
	/* Fill @pids with the processes of now, @max at most; NULL: none, else @children is set. */
	uint32_t (*list)(void *ctx, pid_t *pids, uint32_t max);
};

struct cpu_times_input {
	struct maps *maps;
	uint32_t generation; /* of the ids of tasks */
	uint64_t begin_ns, now_ns;
	int event;	  /* its samples stand for time; -1: none */
	double sample_ns; /* time of one sample; 0: its weight */
	int wait_slot;	  /* an event that is no running time; -1: none */
	bool threads;	  /* single threads are sampled: a process has the time of these */
	bool cgroup;	  /* forks are of all processes, and samples tell which are ours */
	bool tick;	  /* the slice is the last one of a tick */
	uint64_t all_ns;  /* of a tick: the time of all tasks, by their events; 0: not known */
	uint64_t busy_ns; /* of a tick, without @all_ns: the time of all tasks, by that of the CPUs
			   */
	uint32_t nr_cpus; /* a slice has their whole time at most; 0: no limit */
	const pid_t *parents; /* processes that forked since the last slice */
	uint32_t nr_parents;
};

/* @clocks NULL: of the kernel; else copied. NULL: out of memory. */
struct cpu_times *cpu_times_new(const struct cpu_times_clocks *clocks);
void cpu_times_free(struct cpu_times *t);
/* Append the CPU time of the tasks to the *@nr @counts of a slice (malloc'ed, reallocated). Without
 * memory nothing is appended. */
void cpu_times_add(struct cpu_times *t, const struct cpu_times_input *in, struct count **counts,
		   uint32_t *nr);
/* Begin again: the time up to now is of no slice. Costs 10 us for each process of the system. */
void cpu_times_restart(struct cpu_times *t);

/*
 * All events of this machine, and whether each can be opened.
 *
 * Threads: event_states_probe() by the builder, event_states_get() by the UI at any time.
 */

struct event_states {
	_Atomic(struct event_table *) table; /* NULL: not probed yet; release by the builder */
};

void event_states_free(struct event_states *es);
/*
 * List all events of this machine and try to open each once, on @pid and @cpu as for
 * perf_event_open(2). @kernel: kernel code included. Does nothing the second time.
 */
void event_states_probe(struct event_states *es, pid_t pid, int cpu, bool kernel);
/*
 * Copy up to @max states; returns how many there are. Before the probe these are the fixed names
 * alone, and *probed is false. The infos live until event_states_free().
 */
uint32_t event_states_get(struct event_states *es, struct sampler_event_state *out, uint32_t max,
			  bool *probed);

/* Tasks that join the target while it is sampled. Runs on: the builder. */

/*
 * Once a tick: open events on new tasks of the target, and on tasks that were hanging in an exec;
 * note the ends of others.
 */
void follow_target(struct sampler *s, uint64_t now_ns);

/* A search for tasks without events: its input. */
struct follow_search {
	struct task_set listed;	  /* found by the search before */
	struct task_set opened;	  /* with events */
	struct task_set left_out; /* without: they hang in an exec, and are listed */
	/* Return the process of a task; 0: it has ended. */
	pid_t (*process_of)(pid_t tid);
	/* Report whether the process inherited events from its parent. */
	bool (*has_inherited)(const struct follow_search *f, pid_t pid);
	const struct sampler *sampler; /* for has_inherited() */
};

/* The thread of a live session. */
void *builder_main(void *arg);
/* Wait for its end. False: it hangs. */
bool builder_join(struct sampler *s);
/* Apply all queued requests. True if one of them changes the newest profile. */
bool builder_apply(struct sampler *s);
/* Return when the tick after @now ends. */
uint64_t builder_next_tick(const struct sampler *s, uint64_t now);
/* The same for the first profiles after @first_ns; UINT64_MAX: they are all over. */
uint64_t builder_early_tick(uint64_t first_ns, uint64_t now);

struct lost {
	uint64_t total, throttled_total; /* since the start */
	uint64_t seen[EVENTS_MAX];	 /* the kernel's counts at the last tick */
};

/*
 * The data that the builder passes to the UI: the newest profile, and one line of text.
 *
 * Threads: mailbox_take() by the UI, everything else by the builder.
 */

struct mailbox {
	_Atomic(struct profile *) profile; /* exchanged whole: release by builder, acquire by UI */
	int fd;				   /* eventfd: readable while a profile is in it */
	/* The same for the past: a range, and the heat strip. */
	_Atomic(struct profile *) past;
	_Atomic(struct strip *) strip;
	int past_fd;
	char status[256];      /* clean text; "": none yet */
	uint32_t status_seq;   /* counts up with each status */
	uint32_t status_taken; /* of the newest one that a profile has */
};

/* Put @p in; one that was not taken is freed. */
void mailbox_post(struct mailbox *m, struct profile *p);
/* The same for a range of the past, and for the heat strip. */
void mailbox_post_past(struct mailbox *m, struct profile *p);
void mailbox_post_strip(struct mailbox *m, struct strip *s);
/* Take both out, each NULL if there is none. */
void mailbox_take_past(struct mailbox *m, struct profile **p, struct strip **s);
/* Set the status of the next profile, the answer to a request: the first line of the text, made
 * clean.
 */
void mailbox_say(struct mailbox *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add what was noticed at a tick, after "; " where no profile has the status yet. */
void mailbox_add(struct mailbox *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Copy the status to @text, of the size of @status; return its number. */
uint32_t mailbox_status(struct mailbox *m, char *text);

/*
 * The past of a session: the events of its slices, and incidents in them.
 *
 * Runs on: the builder.
 */

/* More sets of events in one session: the slices are dropped. */
#define PAST_SETS_MAX 64

/* Events that were sampled together; slices refer to a set by its index. */
struct past_events {
	struct event events[EVENTS_MAX];
	uint32_t nr;
};

struct past {
	struct past_events *sets;
	uint32_t nr_sets;
	struct strip_filter strip; /* the heat strip that the UI wants */
	uint64_t begin_ns, end_ns; /* the range that the UI shows; both 0: none */
	uint64_t nr_named;	   /* places with a name when it was posted */
};

void past_close(struct past *p);
/* The next slices are of the events that the session has now. */
void past_use_events(struct past *p, struct history *h, const struct sampler_config *config);

/*
 * Processes found by a regular expression, which matches the name of the first thread, or of the
 * program in the command line.
 *
 * The kernel reads a command line under the lock of the mappings of a process, which a file system
 * of any user can keep for ever. So a helper reads; one that hangs is left behind, and its process
 * then has the name of its thread alone, until the read ends.
 *
 * Threads: one owner at a time (set-up, then the builder), online for urcu-qsbr or not registered;
 * @read on helpers.
 */

/* Read a file of a process: see task_list_read(). */
typedef int (*process_names_read_fn)(pid_t pid, const char *name, char *text, size_t size);

/*
 * --record: a perf.data file written beside the live counts.
 *
 * Threads: set-up and end by the owner, changes by the builder.
 */

/*
 * Create the file @path, if there is one, or keep @memory bytes of records for the files of traps;
 * the events are open. 0 or -errno with a sentence.
 */
int recording_open(struct recording *r, const char *path, size_t memory, struct counters *counters,
		   struct sideband *sideband, const struct script_functions *codes, struct err *e);
/* Write the running processes: before the events are enabled. 0 or -errno with a message. */
int recording_start(struct recording *r, struct err *e);
/* Note the attributes of all events: after each change of these. Builder. */
void recording_note(struct recording *r, struct counters *counters);
/*
 * Of a stream: between these two the builder may open events; no record of them is written before
 * they are noted. Builder.
 */
void recording_hold(struct recording *r);
void recording_release(struct recording *r, struct counters *counters);
/* Add tasks that are followed since @since_ns only. Builder. */
void recording_add(struct recording *r, struct counters *counters, const pid_t *tids, uint32_t nr,
		   uint64_t since_ns);
/* Write new build-ids to a stream. Builder, online for urcu-qsbr. */
void recording_identify(struct recording *r, struct objects *objects);
/* Return the -errno that ended the recording, once; else 0. Builder. */
int recording_check(struct recording *r);
/*
 * Complete the file; all threads have ended. 0, or -errno with a message: the written part is kept.
 * @nr_events: of the session now.
 */
int recording_finish(struct recording *r, struct counters *counters, uint32_t nr_events,
		     struct objects *objects, struct sampler_recorded *out, struct err *e);
/* The same for a recording in the middle of a session. Builder, online for urcu-qsbr. */
int recording_end(struct recording *r, struct counters *counters, uint32_t nr_events,
		  struct objects *objects, struct sampler_recorded *out, struct err *e);
/* Record other rings of the same CPUs; no thread reads them yet. Set-up, or builder. */
void recording_move(struct recording *r, struct counters *counters, struct sideband *sideband);
void recording_close(struct recording *r);
/*
 * Where records are kept in memory: also write them, and all later ones, to @path; NULL: end that.
 * -EBUSY: another file is written, or none. Builder, online for urcu-qsbr.
 */
int recording_also(struct recording *r, const char *path, struct objects *objects);
/* Get a sentence about such a file that has ended, once. Builder. */
bool recording_also_ended(struct recording *r, char *text, size_t size);
/* Return the bytes in the file that is written. Builder. */
uint64_t recording_bytes(const struct recording *r);

/* Get the result of a request, once. True: a sentence is in @text. */
bool saving_check(struct saving *s, struct recorder *r, char *text, size_t size);

/*
 * The end of a tick: counts become a profile.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */

/* Cut a slice of the history within a tick. */
void tick_slice(struct sampler *s, uint64_t now_ns);
/* CPU time up to now is of no slice. */
void tick_restart_cpu(struct sampler *s);
/* Keep the slices that are not kept yet on disk (--keep): once a second, or at the end. */
void tick_keep(struct sampler *s, uint64_t now_ns, bool end);
/* End a tick: take the counts, make the profile, hand it over. */
void tick_end(struct sampler *s);
/* Grow the tables between two ticks, when the threads report that they fill up. */
void tick_make_room(struct sampler *s);
/* Forget the samples since the last tick, with @all of their account. */
void tick_skip(struct sampler *s, struct pipeline_stats *all);
/* Forget everything counted so far. */
void tick_discard(struct sampler *s);

/*
 * Profiles of ranges of the past, and the heat strip: made of the slices of the history.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */

/* Post the heat strip that the UI wants; nothing if it wants none. */
void tick_past_strip(struct sampler *s, bool answer);
/* Post the range of the past that the UI shows; nothing if it shows none. */
void tick_past_post(struct sampler *s);
/* Make a profile of the slices from @begin_ns to @end_ns, and hand it over as collected. */
void tick_past_collect(struct sampler *s, uint64_t begin_ns, uint64_t end_ns);

/*
 * The profile of a recording.
 *
 * Runs on: the builder, online for urcu-qsbr.
 */

/* Make the one profile of a replay, again for each window that the UI wants. */
void tick_replay(struct sampler *s, const struct replay_result *result);

/*
 * The traps of a session: tested with each slice as it ends, or with the slices of a recording.
 *
 * Runs on: the builder.
 */

/* Test all slices of a recording again, with the next profile. */
void trapping_again(struct sampler *s);

/*
 * The waits of a live session: begun and ended with their event, counted at the end of each tick.
 *
 * Threads: set-up, then the builder.
 */

/* After the events were enabled, or replaced: measure waits from now on, or no longer. */
void waiting_begin(struct sampler *s);
/* At the end of the builder. */
void waiting_end(struct sampler *s);
/* At the end of a tick, before its counts are taken: add the waits up to @now_ns. */
void waiting_count(struct sampler *s, uint64_t now_ns);
/* In a long tick: add the waits so far. */
void waiting_count_some(struct sampler *s, uint64_t now_ns);
/* Return the time before which all waits are counted; UINT64_MAX: none are measured. */
uint64_t waiting_counted_ns(const struct sampler *s);
/* The same where the counts are thrown away: those of before @begin_ns. */
void waiting_discard(struct sampler *s, uint64_t begin_ns);
/* After a tick, or when there are too many switches: take the stacks of all, or of some. */
void waiting_govern(struct sampler *s);
/*
 * Return when waiting_look() is due; UINT64_MAX: never. It opens or closes a window, and where no
 * stacks can be taken, looks at the kinds of waits in /proc.
 */
uint64_t waiting_due(const struct sampler *s);
void waiting_look(struct sampler *s, uint64_t now_ns);
/* While the queues fill up during a tick: empty them. */
void waiting_make_room(struct sampler *s);

/*
 * A profile of the next seconds, beside the ticks: for a request over the network.
 *
 * Threads: the builder, and one thread that requests and takes.
 */

struct collect {
	_Atomic uint64_t wanted_ns; /* requested span; 0: none */
	uint64_t begin_ns;	    /* of the builder */
	uint64_t due_ns;	    /* the same; UINT64_MAX: none is collected */
	struct mailbox mailbox;	    /* the result */
};

/*
 * --keep: the slices of the history on disk, in a ring of segments (keep.c). Once a tick the
 * builder packs the new slices, and a thread appends them to the newest segment: a killed proftop
 * loses the last tick. The oldest segments are removed beyond a size or an age.
 *
 * Threads: the builder; open and close by the owner.
 */

/* Open the folder for one session. NULL without a folder. 0 or -errno with a sentence. */
int keep_open(struct keep **out, const struct keep_config *config, struct err *e);
/*
 * Write the queued slices; no tick may follow. 0 or the -errno that ended it, with a sentence, also
 * if that was reported before. NULL is allowed.
 */
int keep_finish(struct keep *k, struct err *e);
/* The same, and close. NULL is allowed. */
void keep_close(struct keep *k);

struct keep_input {
	struct slices *slices;		     /* slices_keep() marks the queued ones */
	const struct assemble_input *tables; /* without counts */
	const struct event *events;
	const double *hz; /* wanted, of each event; 0: a fixed period */
	uint32_t nr_events;
	const struct past_events *sets; /* of the slices; NULL: all are of @events */
	uint64_t real_ns;		/* CLOCK_REALTIME minus the clock of the slices */
	uint64_t settled_ns;		/* later slices may get late samples, and wait */
};

/* Queue the slices that are new. */
void keep_tick(struct keep *k, const struct keep_input *in);
/* Return the number of samples that the history dropped before they could be queued. */
uint64_t keep_missing(const struct keep *k);
/* Return the -errno that ended it, with a sentence, once; else 0. */
int keep_check(struct keep *k, struct err *e);

/*
 * Readers of interpreters: one for each CPU that runs some, and only as long.
 *
 * Where a CPU has one, its events wake at each sample. A reader that hangs is left behind, its
 * process barred, and another takes its place.
 *
 * Threads: the builder, online for urcu-qsbr.
 */

/* Readers that incarnation @process of a program was read by when they hung, or were killed. */
struct langreaders_strikes {
	uint32_t process, nr;
	uint64_t last_ns;
};

struct langreaders {
	struct langreader_shared *shared; /* NULL: frames of interpreters are not wanted */
	uint32_t nr;			  /* that run */
	uint32_t nr_found;		  /* interpreters, of which readers were started */
	uint32_t nr_described;		  /* that readers know */
	uint64_t described_ns;		  /* the last one of these */
	uint8_t *quiet;			  /* by CPU: ticks in a row with hardly an interpreter */
	uint32_t nr_quiet;
	struct langreaders_strikes strikes[LANGREADER_BARRED];
	uint32_t next_strike;
	uint64_t next_try_ns; /* no reader is started before it */
	uint32_t nr_dead;     /* that were killed, or hung: DEAD_MAX at most */
	uint64_t forgiven_ns; /* time at which the last one of these was forgiven */
	bool said_slow;	      /* that message was shown */
	bool said_error;      /* also that one */
	bool said_dead;
	struct err error; /* why the last one could not be started */
};

/* 0 or -ENOMEM. @codes is borrowed, and the descriptors of @copier. */
int langreaders_open(struct langreaders *r, struct script_functions *codes, uint32_t languages,
		     const struct copier *copier);
/* After langreaders_stop(). */
void langreaders_close(struct langreaders *r);
/* The samples of CPU @index in the tick: @taken, and of these @lang of interpreters. */
void langreaders_note(struct langreaders *r, struct counters *c, struct sampler_thread *t,
		      uint32_t index, uint64_t taken, uint64_t lang);
/*
 * Start the readers that sampler threads wish for; replace hanging ones. @nr_found: interpreters
 * found in a target until now: at the first samples of a new one, readers run on all CPUs.
 * @nr_described: interpreters until now, which readers have to know.
 */
void langreaders_look(struct langreaders *r, struct counters *c, struct sampler_thread **threads,
		      uint32_t nr_threads, uint32_t nr_found, uint32_t nr_described,
		      struct mailbox *mailbox);

/*
 * Traps: rules that are tested with each slice of the history, as in
 * 'total:burst > 50 for 100ms'. A rule that matches marks the slice; it matches again after it did
 * not.
 *
 * Runs on: the builder.
 */

struct trap {
	struct trap_rule rule;
	struct trap_functions {
		uint64_t *bits; /* by symbol id: it has the name */
		uint32_t nr_words;
		bool any;
	} functions;
	uint64_t begin_ns; /* it has matched since then; 0: it does not */
	bool fired;	   /* and was reported */
	bool seen;	   /* TRAP_NEW: there was a sample */
};

struct traps {
	struct trap list[TRAP_RULES_MAX];
	uint32_t nr;
	uint32_t nr_symbols; /* compared with the names so far */
	uint64_t tested_ns;  /* end of the last slice that was tested */
};

/* Add a rule; it is armed now. 0 or -ENOSPC. */
int traps_add(struct traps *t, const struct trap_rule *rule);
void traps_clear(struct traps *t);
/* Write the number of rules, and the first rules that fit. Return @buf. */
const char *traps_list(const struct traps *t, char *buf, size_t size);

struct trap_input {
	const struct assemble_input *tables; /* without counts */
	const struct slice *slices;	     /* of the moment */
	uint32_t nr;
	struct slice sum; /* of them: times, samples, lost ones */
	bool clock;	  /* weights are ns */
	double hz;	  /* of the event, else */
	uint32_t nr_cpus;
	int wait_slot; /* event of waits; -1: none */
};

/* A match of a rule. */
struct trap_hit {
	const struct trap_rule *rule; /* borrowed */
	uint64_t begin_ns, end_ns;
	double percent;
	/* Other rules that began to match in the same slice. */
	struct trap_also {
		const struct trap_rule *rule;
		double percent;
	} also[TRAP_RULES_MAX];
	uint32_t nr_also;
};

/*
 * The configuration of a session: target, events, rates, stacks.
 *
 * Any thread: values; a copy of a target belongs to the caller.
 */

#define SAMPLER_SLICE_NS 100000000ULL /* of the history */
/* In sampler_config.languages, beside the bits of enum lang_kind. */
#define CONFIG_JAVA lang_bit(LANG_JAVA)

/* Return a copy of @spec that owns all it points to; config_free_spec() frees it. */
struct sampler_target_spec *config_copy_spec(const struct sampler_target_spec *spec);
/* Return the target and CPUs of @config as a spec. As config_copy_spec(). */
struct sampler_target_spec *config_get_spec(const struct sampler_config *config);
/* Set the target and CPUs of @config; it points into @spec afterwards. */
void config_set_spec(struct sampler_config *config, const struct sampler_target_spec *spec);
/* Replace the CPUs of @spec by a copy of @cpus. */
void config_set_spec_cpus(struct sampler_target_spec *spec, const int *cpus, uint32_t nr);
/* Free a copy. NULL is fine. */
void config_free_spec(struct sampler_target_spec *spec);
/* Return the index of the event of waits; -1: there is none. */
int config_wait_slot(const struct sampler_config *config);
/* Return the index of the first event with samples of running tasks; -1: there is none. */
int config_latency_slot(const struct sampler_config *config);

/* A remark about a session of config_user_only(). */
#define CONFIG_USER_ONLY "not permitted to see the kernel: user code only"

/*
 * Leave the kernel out of all events, for a user without the right to it. False: one is of the
 * kernel alone, or all are without it already.
 */
bool config_user_only(struct event *events, uint32_t nr);
/* Return the rate that @ev is opened with, in Hz; 0: a fixed period. */
double config_hz(const struct sampler_config *config, const struct event *ev);

/*
 * Requests of the UI on their way to the builder.
 *
 * Threads: controls_send() by the UI, controls_take() by the builder.
 */

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
	CONTROL_RECORD,
	CONTROL_NR,
};

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
		struct {			  /* WINDOW */
			enum profile_window kind;
			uint64_t span_ns; /* of PROFILE_WINDOW */
		} window;
		enum profile_frames frames; /* FRAMES */
		uint64_t tick_ns;	    /* TICK */
		struct strip_query *strip;  /* STRIP: owned */
		char *path;		    /* RECORD: owned; NULL: end */
		struct trap_rule *rule;	    /* TRAP: owned; NULL: remove all */
		struct {		    /* STACK: bytes, or more as needed */
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
/* Wake the builder. */
void controls_wake(struct controls *q);
/* Free the memory of a request. */
void controls_free(const struct control *c);

/* The events of a recording that are shown. Runs on: the thread that opens it. */

struct replay_events {
	/* Event of the file -> slot, COUNTERS_WAKING, or PIPELINE_EVENT_UNKNOWN, _LIMIT. */
	int slots[256];
	uint32_t nr;
	/* Events of wake-ups: by their names at the start, which may change in a stream. */
	bool wakes[256];
	bool waking;   /* there is one */
	bool switches; /* there are records of switches */
	int wait;      /* the slot of waits; -1: none */
};

/*
 * The tables that samples are resolved with and counted in.
 *
 * Tables that only grow are replaced whole by a new generation: when the stacks are full, or
 * thousands of tasks have ended, or most stacks or places are of the past, new tables take over,
 * and the entries that the history shows move along. So the memory of a session of days, in a
 * storm of forks, has a fixed cap, and no stack is refused for long.
 *
 * Threads: the builder, a registered and online urcu-qsbr thread; sampler threads see the tables
 * through @shared.
 */

/* The size at which tables are replaced. */
struct store_caps {
	uint32_t stacks;
	size_t memory; /* of the stacks */
	/* Ids; replaced at this number, or at twice the kept ones. 0 places: never. */
	uint32_t tasks, places;
	size_t used; /* bytes of stacks, the same; 0: when @memory is full */
	/* Of more tasks, ended ones that are in the total alone are merged (ended_task());
	 * 0: never. */
	uint32_t apart;
	uint32_t places_soon; /* above this number places are replaced sooner */
};

struct store {
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct unwind_rows *rows;
	struct symbols *symbols;
	struct history *history;
	/* The generation in use, published in @shared; the next two are its stacks and counts. */
	struct pipeline_tables *tables;
	struct stacks *stacks;
	struct counts *counts;
	struct sampler_thread_shared *shared; /* borrowed */
	struct store_caps caps;
	size_t history_memory;		   /* --history-memory, or the usual */
	struct pairs *branches, *accesses; /* of a recording that has them; else NULL */
	struct waits *waits;		   /* NULL: not measured */
	uint32_t tasks_kept, places_kept;  /* by the last change of generation */
	uint64_t places_ns;		   /* of the last change of places; 0: none */
	size_t used_kept;		   /* bytes of stacks, likewise */
};

/* Make empty tables. 0 or -errno with a sentence; store_close() in both cases. */
int store_open(struct store *st, const struct sampler_config *config, struct err *e);
/*
 * Publish the first generation to the sampler threads. @machine: e_machine of a recording, 0: this
 * one's. Samples of @own_pid are not counted; -1: all are. @chain_max: frames that the kernel
 * follows; 0: its default.
 */
void store_publish(struct store *st, struct sampler_thread_shared *shared,
		   const struct sampler_config *config, uint16_t machine, pid_t own_pid,
		   uint32_t chain_max);
void store_close(struct store *st);
/*
 * Keep room in the tables ahead of their writers: each tick, every few thousand samples of a
 * replay, and when the threads report that the stacks fill up. 0, or -ENOMEM: new stacks are not
 * counted.
 */
int store_keep_room(struct store *st);
/* Measure waits on @nr_cpus CPUs (@latency as for waits_new()): make queues, and places of the
 * kinds of waits. 0 or -ENOMEM. */
int store_open_waits(struct store *st, uint32_t nr_cpus, int latency);
/* No longer; no sampler thread runs. */
void store_close_waits(struct store *st);
/* The tables that waits are counted into now. */
struct waits_tables store_waits_tables(const struct store *st);

/*
 * The tasks that are sampled.
 *
 * Threads: set-up, then the builder. TARGET_COMMAND: the command is our child.
 */

struct target {
	enum sampler_target kind;
	pid_t *tids; /* of the tasks opened; NULL: every task */
	uint32_t nr_tids;
	uint32_t nr_named; /* TARGET_PIDS: the first of them, threads of the processes named */
	pid_t *pids;	   /* its end is the target's end */
	uint32_t nr_pids;
	int cgroup_fd; /* its folder; -1: none, or the root, which is every task */
	/* TARGET_NAME; else NULL: the search, and the compiled expression */
	struct process_names *names;
	regex_t *pattern;
	bool per_task;	   /* its events are of tasks also where whole CPUs may be sampled */
	bool brief;	   /* its tasks end before their samples: whole CPUs, where permitted */
	uint64_t brief_ns; /* when that was last looked for, */
	uint64_t ran_ns;   /* and their time in events then */
	bool wide;	/* they are of whole CPUs, of which its processes are chosen; tids: NULL */
	pid_t command;	/* child pid, 0: none */
	pid_t leader;	/* pid of the command, once started; kept after its end */
	int release_fd; /* write one byte: the child execs; -1: none */
	int failed_fd;	/* readable: the errno of a failed exec; -1: none */
	int command_fd; /* pidfd of the command, readable once it has ended; -1: none */
	uint64_t looked_ns; /* when new and busy tasks were last looked for */
	bool gone;	    /* all tasks have ended */
	pid_t busy;	    /* hangs in an exec, as was reported; 0: none */
	pid_t again;	    /* busy tasks above this one are tried next */
	char text[160];	    /* for the title: "system", "pid 42"; clean */
};

/* A remark about TARGET_NAME without the right to whole CPUs. */
#define TARGET_LONG_ONLY                                                                           \
	"not permitted to see all CPUs: --name misses processes that end within a second"

/* The same of other targets. */
#define TARGET_BRIEF_MISSED                                                                        \
	"not permitted to see all CPUs: threads and processes that end within a few ms are missed"

/* How often the tasks of a target are looked at in its first seconds: see is_brief() in builder.c.
 */
#define TARGET_BRIEF_NS 250000000ULL

/* Set @t to no target at all. */
void target_init(struct target *t);
/* Find the tasks of @config, or start its command. 0, -ESRCH, other -errno with a sentence. */
int target_open(struct target *t, const struct sampler_config *config, struct err *e);
/*
 * Find the tasks of @config for a target beside @old, which does not change. TARGET_COMMAND: that
 * of @old. 0 or -errno with a sentence.
 */
int target_find(struct target *t, const struct target *old, const struct sampler_config *config,
		struct err *e);
/* Free the result of target_find(). */
void target_drop(struct target *t);
/* Move the result of target_find() into @old; the command is kept. */
void target_replace(struct target *old, struct target *t);
/* Set the text of the title. */
void target_describe(struct target *t, const struct sampler_config *config);
/* Return whether single tasks or a cgroup are sampled, not all that a CPU runs. */
static inline bool target_is_part(const struct target *t)
{
	return t->tids || t->cgroup_fd >= 0;
}

/* Let the command exec. 0, or -errno with a sentence: the exec failed. */
int target_release(struct target *t, char *const *command, struct err *e);
/* Reap the command if it has ended. Returns true if that was the end of the target. */
bool target_reap(struct target *t);
/* End the command with SIGTERM if it still runs. */
void target_end_command(struct target *t);
/* The same, and free everything. */
void target_close(struct target *t);
/*
 * After live_open_counters(), before the threads start: where events are of whole CPUs, choose the
 * processes of the target (maps_choose_by()).
 */
void target_choose(struct sampler *s);

/*
 * --open: the segments of --keep into the tables of a replay. All bytes are hostile: a damaged
 * segment is read as far as it goes.
 *
 * Runs on: the builder, a registered urcu-qsbr reader; open and close by the owner.
 */

struct keep_read_result {
	uint64_t first_ns, last_ns; /* CLOCK_REALTIME */
	uint64_t samples, lost, throttled;
	uint32_t nr_damaged;   /* segments that end early, slices with which a sum is too large */
	uint64_t other_events; /* samples of other events, which are left out */
	uint64_t back;	       /* samples of slices that a clock that was set back had again */
	uint64_t nameless;     /* in the unknown task, the table is full */
	char note[200];	       /* the samples that are left out; "" */
};

/* Open a folder; its events go into @config. 0 or -errno with a sentence. */
int keep_read_open(struct keep_read **out, struct sampler_config *config, struct err *e);
void keep_read_close(struct keep_read *k);
/* Return how much of the folder is read. Any thread. */
uint32_t keep_read_permille(const struct keep_read *k);
/*
 * Read all segments into @st. 0, -ENOMEM, or -ECANCELED soon after another thread has set @stopped.
 */
int keep_read_run(struct keep_read *k, struct store *st, const atomic_bool *stopped,
		  struct keep_read_result *out);

/*
 * Rates: wanted, as opened, and measured from the counters of each tick.
 *
 * Runs on: the builder.
 */

/* A got rate in the making. */
struct rates_sum {
	double got;	   /* samples the kernel took, lost ones included */
	double seconds;	   /* of busy CPU time that they were taken in */
	uint64_t since_ns; /* begin of the stretch */
};

/* One CPU, between two ticks. */
struct rates_cpu {
	struct lost lost;
	/* At the last tick. */
	uint64_t running_seen[EVENTS_MAX], enabled_seen[EVENTS_MAX], count_seen[EVENTS_MAX];
	struct counters_value now[EVENTS_MAX]; /* at the end of this tick */
	bool known[EVENTS_MAX];		       /* they could be read */
	uint64_t written;		       /* bytes of the ring, at the same time */
	uint64_t handled;		       /* handled bytes */
	double bytes_a_sample;		       /* 0: not known yet */
	double queued[EVENTS_MAX]; /* samples taken when these were read, not handled yet */
	struct rates_sum sums[EVENTS_MAX];
	double got_hz[EVENTS_MAX]; /* NAN: not known */
};

struct rates {
	double hz[EVENTS_MAX];	     /* wanted; 0: a fixed period */
	double asked_hz[EVENTS_MAX]; /* before the governor lowered it */
	double got_hz[EVENTS_MAX];   /* NAN: not known */
	bool enabled, off[EVENTS_MAX];
	struct governor governor;
	struct procstat *procstat;
	uint64_t procstat_ns;					 /* when it was last read */
	struct rates_cpu *cpus;					 /* in the order of the counters' */
	uint64_t enabled_ns[EVENTS_MAX], running_ns[EVENTS_MAX]; /* all CPUs, now */
	double count[EVENTS_MAX]; /* of the events in the tick, on all CPUs */
	struct rates_sum sums[EVENTS_MAX];
	bool mixed;	      /* the sampling was changed in the current stretch */
	atomic_ullong max_hz; /* kernel.perf_event_max_sample_rate */
	uint64_t max_hz_top;  /* the highest seen */
};

/* The events sampled in this tick. */
struct rates_tick {
	uint32_t nr_events;
	size_t ring_size; /* of each CPU, bytes */
	bool is_part;	  /* target_is_part() */
	bool is_tasks;	  /* single tasks are sampled */
	bool lost_known;  /* the kernel counts lost samples */
};

/* Set the wanted rates of @config; nothing is measured. */
void rates_init(struct rates *r, const struct sampler_config *config);
/* Return @nr CPUs of which nothing is known yet; malloc'ed. */
struct rates_cpu *rates_new_cpus(uint32_t nr);
/* Begin to measure again, at @now_ns. */
void rates_restart(struct rates *r, uint64_t now_ns);

/* All zero at the start. */
struct replay_language {
	uint32_t *codes; /* of recorded functions by number; CODE_NONE: not known */
	uint32_t nr, max;
	struct lang_frames frames;	/* of the next sample */
	uint8_t stack[LANG_RECORD_MAX]; /* its bytes */
	bool java;			/* something of a JVM was taken, not settled */
};

struct replay_waits {
	int slot;		      /* of the event of waits; -1: they are not measured */
	int latency;		      /* the event with samples for PROFILE_LATENCY, or -1 */
	struct profile_waits account; /* since it was last cleared */
};

/*
 * A recording instead of the kernel: perf.data through the same decoding,
 * unwinding and tables as live samples.
 *
 * Objects that live sampling requests from the loader, and counts as pending, are read immediately
 * (symbols_run), so that a replay is complete and the same every time. /proc is never read:
 * processes are from the recording.
 *
 * Runs on: the builder thread, a registered urcu-qsbr reader.
 */

void replay_close(struct replay *r);

/* One CPU of the recording. */
struct replay_cpu {
	int cpu;
	struct pipeline_stats samples;
	uint64_t lost, throttled, throttled_ns;
	uint64_t throttled_since;
	uint64_t lost_shown, throttled_shown; /* of them, in earlier profiles */
};

struct replay_result {
	struct replay_cpu *cpus; /* borrowed until replay_close() */
	uint32_t nr_cpus;
	uint64_t span_ns;     /* first to last sample */
	uint64_t interval_ns; /* the same since the last result */
	uint64_t nr_records;
	struct unwind_stats unwind;
	struct profile_waits waits; /* since the last result */
	bool out_of_memory;	    /* new stacks were not counted */
	const char *host;  /* where it is from; "": unknown; borrowed until replay_close() */
	uint64_t date_ns;  /* CLOCK_REALTIME of its last sample; 0: unknown */
	uint64_t delay_ns; /* of a stream: from a sample to its arrival */
};

/* Get the samples that replay_each() had to leave out; after it. */
void replay_missing(const struct replay *r, struct sampler_missing *out);

/* A place occurs at its address, at the next one (of a caller), or elsewhere. */
#define FRAMES_WAYS 3

struct frames {
	struct sampler_frame *known; /* by frame id; 0 is the unknown one */
	uint32_t nr, room;
	struct frames_of_place {
		const struct place *place; /* NULL: did not occur yet */
		struct {
			uint32_t symbol, frame;
		} way[FRAMES_WAYS]; /* frame 0: not here */
	} * places;		    /* by place id */
	uint32_t room_places;
};

/*
 * The events of a live session, and the threads that read their rings.
 *
 * Threads: set-up, then the builder, offline for urcu-qsbr where threads are ended.
 */

struct live {
	struct counters *counters; /* NULL: a recording is replayed */
	struct sideband *sideband;
	struct sideband_parents parents;
	struct sampler_thread_shared *shared; /* as the threads see it */
	struct sampler_thread **threads;
	uint32_t nr_threads;
	struct langreaders readers;
	struct copier copier;
	/* When the events were opened, and when the previous ones were closed; 0: none before. */
	uint64_t opened_ns, alone_ns;
	uint64_t ended_ns;		  /* CPU time of threads that ended */
	struct unwind_stats ended_unwind; /* their statistics */
	uint64_t looked_ns;		  /* when the online CPUs were last read */
	uint8_t *online;		  /* by CPU number, at that time */
	bool only_chosen;		  /* for the threads: see sampler_thread_shared */
};

/*
 * Open the events of @config on @t, on its CPUs or all that are online, all of them off. 0 or
 * -errno with a sentence. Sets t->wide.
 */
int live_open_counters(const struct sampler_config *config, struct target *t, struct counters **out,
		       struct err *e);

#define LIVE_CPUS_MAX 65536 /* numbers of CPUs in the map below */

/* Return a map of the online CPUs, by number; malloc'ed. */
uint8_t *live_online(void);
/* Start a thread for each CPU. 0, or -errno with a sentence: some may run. */
int live_start_threads(struct live *l, struct err *e);
/* End the threads when their rings are empty; their counts are kept. */
void live_finish_threads(struct live *l);
/* End and free the threads. */
void live_stop_threads(struct live *l);
/* Add up how all threads unwound, since the start. */
void live_unwind_stats(const struct live *l, struct unwind_stats *out);
/* Sum of the CPU time of all threads since the start. */
uint64_t live_cpu_ns(const struct live *l);
/* Close events and side-band, free everything but the readers' part; the threads have ended. */
void live_close(struct live *l);

/* User chains that are in records of their own. */
struct replay_chains {
	struct replay_chain *list; /* sorted by task and number */
	uint32_t nr, max;
	bool collected;
	uint64_t *ips; /* of all */
	uint32_t nr_ips, max_ips;
	uint64_t *joined; /* the chain of the current sample */
	uint32_t max_joined;
};

struct replay {
	struct perfdata *data; /* NULL: a folder of --keep instead */
	struct keep_read *kept;
	struct keep_read_result kept_result;
	struct replay_events events;
	struct replay_waits waits;
	size_t part; /* bytes of a sample that were enough for most stacks; 0: read all */
	struct replay_cpu *cpus;
	uint32_t nr_cpus;
	bool has_cells;	       /* up to the number of samples */
	uint64_t nr_samples;   /* for room in the tables */
	uint64_t lost_records; /* samples, from LOST records */
	uint64_t lost_samples; /* from LOST_SAMPLES: the sum, or samples that hardware dropped */
	struct deltas *deltas; /* of groups that are read with their leader's samples */
	struct frames frames;  /* for replay_each */
	struct sampler_branch *branches; /* the same */
	uint64_t nr_objects;		 /* objects that the loader was shown */
	bool out_of_memory;		 /* new stacks were not counted */
	uint32_t nr_named;		 /* places up to here have been named, for replay_each */
	struct store *store;		 /* of replay_run(); borrowed */
	uint64_t slice_ns;		 /* length of a slice of the history */
	uint64_t cut_ns;		 /* the last slice ended then */
	struct pipeline *pipeline;	 /* from replay_begin() to replay_end() */
	uint64_t nr_records;
	uint64_t lost_extra;	/* samples that no LOST record has, in the figures of CPU 0 */
	uint64_t shown_ns;	/* the last result ended then */
	uint64_t fed_ns;	/* time of the last sample that was counted */
	struct arrival arrival; /* of a stream */
	bool sliced;		/* the first slice was begun */
	bool changed;		/* maps changed since they were published: until the next sample */
	struct replay_language language;
	struct replay_chains chains;
	bool stream;		   /* it was opened as a stream; also after its end */
	atomic_bool stopped;	   /* by replay_stop() */
	_Atomic uint32_t permille; /* of the records of a file that are counted; relaxed: shown */
};

/*
 * One session: its parts, each declared in another header.
 *
 * Threads: set-up and end by the owner; between, everything is the builder's, except controls,
 * mailbox and exceptions in their headers.
 */

/* The settings before one process alone was sampled. */
struct session_focus {
	pid_t pid; /* 0: none is */
	struct sampler_target_spec *spec;
	uint32_t stack_size;
	struct event events[EVENTS_MAX];
	uint32_t nr_events;
	double asked_hz[EVENTS_MAX];
};

/* CPU time of our threads. */
struct session_cost {
	uint64_t now_ns, all_ns, samplers_ns, builder_ns, ui_ns;
};

struct session_ticks {
	enum profile_window window;
	uint64_t period_ns;
	uint64_t seq, start_ns, reset_ns, last_ns;
	uint64_t slice_ns;    /* the last slice of the history ended then */
	uint64_t shown_ns;    /* the last one of the last tick ended then */
	uint64_t sampled_ns;  /* the last one with samples */
	uint64_t complete_ns; /* all samples before it are counted */
	uint64_t running_ns;  /* running time of all events so far */
	int64_t busy_ns;  /* time of all tasks so far, by that of the CPUs, from some moment on */
	uint64_t kept_ns; /* the last slices were given to --keep then */
	/* Of the last tick. */
	uint64_t span_ns;
	double own_pct;			/* CPU, of one, without answers to requests */
	uint64_t server_ns;		/* CPU time of these */
	struct profile_account account; /* of the tick, and since the start */
	struct profile_account total;
	uint64_t names_dropped;	   /* maps_stats.nr_names_dropped at the last tick */
	uint64_t programs_dropped; /* and nr_programs_dropped */
	uint64_t forks_shared;	   /* and nr_forks_shared */
	struct session_cost self;  /* at its end */
	pid_t hung_pid;		   /* symbols_hung.pid at the last tick */
	pthread_t ui;		   /* the caller of sampler_start() */
	bool starved;		   /* too little CPU time to read objects */
	bool crowded;		   /* the full table of counts was reported already */
	/* Of the last profile. */
	struct assemble_sizes sizes;
};

/* The moments in which switches are recorded. */
struct session_windows {
	bool on;	      /* wake-ups are not recorded, times are estimated */
	bool closed;	      /* no switches are recorded now */
	uint64_t turn_ns;     /* the begin of the next window, or its end */
	uint64_t opened_ns;   /* begin of this window */
	uint64_t seen_ns;     /* time in windows since the last tick */
	unsigned int nr_calm; /* ticks with few switches */
	uint32_t random;      /* state */
	/* While all switches are recorded: the last look at the rate. */
	uint64_t looked_ns; /* 0: none */
	uint32_t nr_notes;
	unsigned int nr_high; /* looks in a row with a high rate */
};

/* How many switches have a stack. */
struct session_waits {
	bool limited;	    /* some, at the rate; else all */
	uint64_t looked_ns; /* at the waits in /proc */
	bool sleepers_left; /* that slept before the start */
	bool look_failed;   /* the last look for kinds: no memory, no helper */
	struct sleepers *sleepers;
	unsigned int nr_calm; /* ticks with so few switches that all could have one */
	struct session_windows windows;
};

/*
 * A source of samples: the running system, or a recording. Nothing but the two files of the sources
 * depends on which of them it is; all that differs is here, or a fact.
 *
 * Runs on: the builder, but for open, start, each (before it), stop (after it), permille (the UI).
 */
struct source {
	/* Open events or a recording, and set the facts. 0 or -errno with a sentence. */
	int (*open)(struct sampler *s, struct err *e);
	/* Start the threads that take samples. 0 or -errno with a sentence. */
	int (*start)(struct sampler *s, struct err *e);
	/* Make profiles until builder.stop: the builder's thread. */
	void *(*run)(void *sampler);
	/* Wait for its end, after builder.stop. False: it hangs. */
	bool (*stop)(struct sampler *s);
	uint32_t (*nr_cpus)(const struct sampler *s);
	double (*hz)(const struct sampler *s, uint32_t event);
	/* Return CLOCK_REALTIME at @time_ns of the samples; 0: it is not known. */
	uint64_t (*real_ns)(const struct sampler *s, uint64_t time_ns);
	/* Return the part that is read; -1: it has no end. */
	int (*permille)(const struct sampler *s);
	/* Hand over the samples one by one. 0 or -errno with a sentence. */
	int (*each)(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e);
};

extern const struct source source_live, source_replay;

/* Constant once the source is open. */
struct source_facts {
	bool recorded;	    /* events cannot change, all of the past is there, no loader thread */
	bool kept;	    /* by --keep: counts without outcomes, names without code */
	uint16_t machine;   /* e_machine; 0: ours */
	uint32_t chain_max; /* frames of the kernel's chains; 0: as recorded */
};

struct session_builder {
	pthread_t id;
	bool runs;
	bool left; /* it hangs: this session has no end */
	atomic_bool stop;
};

struct sampler {
	struct sampler_config config;	  /* events and sizes as they are now */
	struct sampler_target_spec *spec; /* @config points into it since sampler_set_target() */
	char banner[256];		  /* the degraded part; "": none */
	struct target target;
	struct session_focus focus;
	const struct source *source;
	struct source_facts facts;
	struct replay *replay; /* of source_replay; else NULL */
	struct live live;
	struct store store;
	struct rates rates;
	struct cpu_times *cpu_times; /* NULL: a recording */
	struct recording recording;
	struct session_ticks ticks;
	struct past past;
	struct profile_waits waits; /* of the last tick */
	struct session_waits waiting;
	struct traps traps;
	struct profile_trap trapped; /* the last match */
	struct saving saving;
	struct keep *keep;	 /* NULL: nothing is kept */
	atomic_int server_clock; /* of sampler_leave_out(); 0: none */
	struct messages messages;
	struct annotate annotate;
	struct controls controls;
	struct mailbox mailbox;
	struct collect collect;
	struct event_states events;
	struct session_builder builder;
};

/* Add a sentence to the banner, in front. The builder, or before its start. */
void mailbox_add_banner(struct sampler *s, const char *text);

#endif

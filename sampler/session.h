/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one sampling session is made of: shared by the face (sampler.c), the
 * builder thread (builder.c, tick.c) and the target (target.c) of this room.
 */
#ifndef SAMPLER_SESSION_H
#define SAMPLER_SESSION_H

#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>

#include "sampler/event/counters.h"
#include "sampler/generation.h"
#include "sampler/event/governor.h"
#include "sampler/count/history.h"
#include "sampler/profile/notices.h"
#include "sampler/event/procstat.h"
#include "sampler/file/recorder.h"
#include "sampler/replay.h"
#include "sampler/sampler.h"
#include "sampler/pipeline/sideband.h"
#include "sampler/pipeline/sampler_thread.h"

/* One request of the UI. */
struct control {
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
	} kind;
	uint32_t event;			  /* RATE, EVENT_ENABLE */
	double hz;			  /* RATE */
	bool on;			  /* ENABLE, EVENT_ENABLE */
	size_t size;			  /* STACK, RING */
	enum call_graph call_graph;	  /* CALL_GRAPH */
	pid_t pid;			  /* FOCUS; 0: back */
	struct sampler_target_spec *spec; /* TARGET, CPUS: owned, with all it points to */
	enum profile_window window;
	uint64_t tick_ns;
	struct event events[EVENTS_MAX];
	uint32_t nr_events;
};

#define CONTROLS_MAX 32

/* Requests on their way to the builder. The lock is held for a copy only. */
struct control_queue {
	pthread_mutex_t lock;
	struct control items[CONTROLS_MAX];
	uint32_t nr;
};

/* Who is sampled. */
struct target {
	enum sampler_target kind;
	pid_t *tids; /* of the tasks opened; NULL: every task */
	uint32_t nr_tids;
	pid_t *pids; /* whose end is the target's end */
	uint32_t nr_pids;
	int cgroup_fd;	    /* its folder; -1: none, or the root, which is every task */
	regex_t *name;	    /* TARGET_NAME */
	pid_t command;	    /* child pid, 0: none */
	pid_t leader;	    /* pid of the command, once started; stays when it is gone */
	int release_fd;	    /* write one byte: the child execs; -1: none */
	int failed_fd;	    /* the errno of a failed exec comes here; -1: none */
	int command_fd;	    /* pidfd of the command, readable once it has ended; -1: none */
	atomic_int status;  /* of waitpid(2), -1 while it runs */
	uint64_t looked_ns; /* TARGET_USER: when we last looked for new tasks */
	bool gone;
};

/* All events of this machine, and what opening them said: as sampler_event_state.code. */
struct event_states {
	struct event_list list;
	atomic_int *codes; /* relaxed: each stands alone */
};

/* Per CPU, between two ticks: builder only. */
struct tick_cpu {
	uint64_t lost_total, throttled_total;
	uint64_t lost_seen[EVENTS_MAX]; /* counters' value at the last tick */
	uint64_t running_seen[EVENTS_MAX], enabled_seen[EVENTS_MAX];
	struct counters_value now[EVENTS_MAX]; /* at the end of this tick */
	bool known[EVENTS_MAX];		       /* they could be read */
	uint64_t written;		       /* bytes of the ring, at the same time */
	uint64_t handled;		       /* of these; the rest waits */
	double bytes_a_sample;		       /* there; 0: not known yet */
	double waiting[EVENTS_MAX]; /* samples taken when these were read, not handled yet */
	double got[EVENTS_MAX];	    /* as in tick_rate */
	double seconds[EVENTS_MAX], got_hz[EVENTS_MAX];
};

/* CPU time of our threads. */
struct self_times {
	uint64_t now_ns, all_ns, samplers_ns, builder_ns, ui_ns;
};

/* What was sampled before one process alone was. */
struct focus {
	pid_t pid; /* 0: none is */
	struct sampler_target_spec *spec;
	uint32_t stack_size;
	struct event events[EVENTS_MAX];
	uint32_t nr_events;
	double asked_hz[EVENTS_MAX];
};

/* The got rate in the making. */
struct tick_rate {
	uint64_t since_ns;
	bool mixed;		    /* in the middle of it something was changed */
	double got[EVENTS_MAX];	    /* samples the kernel took, lost ones included */
	double seconds[EVENTS_MAX]; /* of busy CPU time that they were taken in */
};

struct sampler {
	struct sampler_config config; /* events, hz as they are now */
	struct target target;
	char target_text[160];
	char banner[256];

	struct replay *replay; /* instead of counters, side-band and threads; else NULL */
	struct counters *counters;
	struct objects *objects;
	struct maps *maps;
	struct places *places;
	struct unwind_rows *rows;
	struct stacks *stacks;
	struct counts *counts;
	struct symbols *symbols;
	struct sideband *sideband;
	struct recorder *recorder;	/* --record, else NULL */
	bool crowded;			/* it was told that there is no more room for cells */
	bool record_failed;		/* it was told already */
	struct pipeline_tables *tables; /* the generation in use, of the tables above */
	struct generation_caps caps;
	uint32_t tasks_kept; /* by the last generation of those before */
	struct sampler_thread_shared *shared;
	struct sampler_thread **threads;
	uint32_t nr_threads;

	/* The builder's own. */
	struct history *history;
	struct procstat *procstat;
	struct tick_cpu *cpus;
	enum profile_window window;
	struct tick_rate rate;
	double hz[EVENTS_MAX]; /* wanted; 0: a fixed period */
	double got_hz[EVENTS_MAX];
	struct governor governor;
	double asked_hz[EVENTS_MAX]; /* before the governor lowered it */
	uint64_t enabled_ns[EVENTS_MAX], running_ns[EVENTS_MAX]; /* all CPUs, now */
	double tick_pct;					 /* own CPU in the last tick */
	struct self_times self_times;				 /* at the last tick */
	uint64_t samplers_base_ns; /* CPU time of threads that are gone */
	pthread_t ui;		   /* who called sampler_start() */
	uint64_t max_hz_top;
	uint64_t tick_span_ns;
	struct profile_account tick_account;
	char event_error[EVENTS_MAX][160];
	bool enabled, event_off[EVENTS_MAX];
	struct unwind_stats unwind_base;  /* of threads that are gone */
	struct sampler_target_spec *spec; /* what config points into since sampler_set_target() */
	struct focus focus;
	/* When the events were opened, and when those before them were gone; 0: there were none. */
	uint64_t opened_ns, alone_ns;
	uint64_t cpus_looked_ns;
	uint8_t *cpus_online; /* by CPU number, when last looked */
	struct notices notices;
	char message[256];
	uint32_t message_seq;
	uint64_t seq, start_ns, reset_ns, last_tick_ns, busy_ns, tick_ns;
	struct profile_account account_total;

	/* Between the UI and the builder. */
	struct control_queue controls;
	_Atomic(struct event_states *)
		event_states; /* NULL: not asked for yet; release by the builder */
	int control_fd;	      /* eventfd: controls wait, or stop */
	int profile_fd;	      /* eventfd: a profile waits */
	atomic_bool stop;
	_Atomic(struct profile *) mailbox; /* exchanged whole: release by builder, acquire by UI */
	uint32_t annotate_in[2]; /* builder's: an inlined function, and what it is shown in */
	bool annotate_waits;	 /* builder's: its code was not there at the last tick */
	atomic_uint annotate;	 /* function, or SYMBOL_NONE: by the UI, relaxed */
	atomic_ullong max_hz;
	pthread_t builder;
	bool builder_runs;
};

/* target.c */

/* Find or start who is sampled. 0, -ESRCH, other -errno with a sentence. */
int target_open(struct target *t, const struct sampler_config *config, struct err *e);
/* A target beside the one in use: nothing of that changes. TARGET_COMMAND: @old has it. */
int target_find(struct target *t, const struct target *old, const struct sampler_config *config,
		struct err *e);
/* Let go what target_find() found. */
void target_drop(struct target *t);
/* From now on @t, whose contents are taken over; the command stays. */
void target_replace(struct target *old, struct target *t);
/* Let the command exec; tells if that failed. */
int target_release(struct target *t, char *const *command, struct err *e);
/* Reap the command if it has ended. Return true if that was the end of the target. */
bool target_reap(struct target *t);
/* Once a tick: new tasks of the user, ends of processes, status of the command. */
void target_update(struct sampler *s, uint64_t now_ns);
void target_close(struct target *t);

/* recording.c */

/* Create the file of --record, if there is one; the events are open. */
int recording_open(struct sampler *s, struct err *e);
/* What runs already goes into the file: before the events are enabled. */
int recording_start(struct sampler *s, struct err *e);
/* After each change of the events. Builder. */
void recording_note(struct sampler *s);
/* Processes that are followed since @since_ns only. Builder. */
void recording_add(struct sampler *s, const pid_t *tids, uint32_t nr, uint64_t since_ns);
/* Once a tick: tell of a failure. Builder. */
void recording_check(struct sampler *s);

/* reopen.c */

/* Open the events of @config on @t, all of them off. */
int session_open_counters(const struct sampler_config *config, const struct target *t,
			  const int *cpus, uint32_t nr_cpus, struct counters **out, struct err *e);
/* The CPUs to sample: those asked for, or all; only those that are online. nr or -errno. */
int session_choose_cpus(const struct sampler_config *config, int **cpus, struct err *e);
/* What the title says about the target. */
void session_describe_target(struct sampler *s);
/* One control that needs the events opened anew; messages tell how it went. Builder. */
void reopen_stack(struct sampler *s, size_t size, const char *why); /* "": it was asked for */
void reopen_call_graph(struct sampler *s, enum call_graph mode);
void reopen_ring(struct sampler *s, size_t size);
void reopen_target(struct sampler *s, struct sampler_target_spec *spec);
void reopen_cpus(struct sampler *s, struct sampler_target_spec *cpus);
/* Process @pid alone, more closely: more samples, larger dumps. 0: as it was before. */
void reopen_focus(struct sampler *s, pid_t pid);
/* Each second: a CPU that came back, or is new, is sampled. Builder. */
void reopen_check_cpus(struct sampler *s, uint64_t now_ns);
struct sampler_target_spec *spec_copy(const struct sampler_target_spec *spec);
void spec_free(struct sampler_target_spec *spec);

/* builder.c */

/* The builder and the sampler threads end; what they counted stays. */
void session_stop(struct sampler *s);
int builder_start(struct sampler *s, struct err *e);
void builder_stop(struct sampler *s);

/* What @ev is sampled with when it is opened now; 0: a fixed period. */
double event_hz(const struct sampler *s, const struct event *ev);

/* tick.c */

/* End a tick: take what was counted, make the profile, hand it over. Builder only. */
void tick_end(struct sampler *s, uint64_t now_ns);
/* The one profile of a replay, made again when the UI asks for another window. */
void tick_replay(struct sampler *s, const struct replay_result *result);
/* Keep room in the tables ahead of their writers: each tick, and every so many samples of a replay.
 */
void tick_keep_room(struct sampler *s);
/* The same between two ticks, when the threads say that the tables fill up; the cells, too. */
void tick_make_room(struct sampler *s);
/* Nothing is known of @nr CPUs yet. */
struct tick_cpu *tick_new_cpus(uint32_t nr);
/* What is sampled changes now: the rates of this tick say nothing. */
void tick_mix_rate(struct sampler *s);
/* Forget everything counted so far. */
void tick_discard(struct sampler *s);
/* One line for the screen: the answer to a control. */
void tick_message(struct sampler *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

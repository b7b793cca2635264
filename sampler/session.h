/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One session: its parts, each declared in another header.
 *
 * Threads: set-up and end by the owner; between, everything is the builder's, except controls,
 * mailbox and exceptions in their headers.
 */
#ifndef SAMPLER_SESSION_H
#define SAMPLER_SESSION_H

#include "sampler/annotate.h"
#include "sampler/config.h"
#include "sampler/collect.h"
#include "sampler/controls.h"
#include "sampler/cpu_times.h"
#include "sampler/event_states.h"
#include "sampler/keep.h"
#include "sampler/live.h"
#include "sampler/mailbox.h"
#include "sampler/past.h"
#include "sampler/profile/assemble_input.h"
#include "sampler/profile/messages.h"
#include "sampler/rates.h"
#include "sampler/recording.h"
#include "sampler/replay.h"
#include "sampler/store.h"
#include "sampler/target.h"
#include "sampler/trap.h"

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
	uint64_t complete_ns; /* all samples before it are counted */
	uint64_t running_ns;  /* running time of all events so far */
	uint64_t kept_ns;     /* the last slices were given to --keep then */
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

/* The moments in which switches are recorded; see switch_windows.h. */
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
	struct replay *replay; /* instead of @live; else NULL */
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
void session_add_banner(struct sampler *s, const char *text);
/* Open events or recording, make the tables. 0 or -errno with a sentence. */
int session_new(struct sampler **out, const struct sampler_config *config, struct err *e);
/* Start the sampler threads and enable the events. 0 or -errno with a sentence. */
int session_start(struct sampler *s, struct err *e);
/* Close and free everything; builder and sampler threads have ended. */
void session_free(struct sampler *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration of a session: target, events, rates, stacks.
 *
 * Any thread: values; a copy of a target belongs to the caller.
 */
#ifndef SAMPLER_CONFIG_H
#define SAMPLER_CONFIG_H

#include <sys/types.h>

#include "sampler/event/event.h"
#include "sampler/file/reading.h"
#include "sampler/keep_config.h"
#include "sampler/profile/profile.h"
#include "sampler/saving.h"

enum sampler_target {
	TARGET_SYSTEM,
	TARGET_PIDS,	/* and their threads and children */
	TARGET_USER,	/* every task of one uid; new ones are searched each second */
	TARGET_COMMAND, /* started and sampled from its exec, children included */
	TARGET_TIDS,	/* these threads only */
	TARGET_CGROUP,	/* all tasks in a cgroup, including new ones */
	TARGET_NAME,	/* processes by name, including new ones; children included */
};

#define SAMPLER_STACK_SIZE_DEFAULT (16u << 10)
#define SAMPLER_STACK_SIZE_MAX	   65528u
#define SAMPLER_STACK_SIZE_AUTO	   (8u << 10) /* the first size of --stack-size=auto */
#define SAMPLER_RING_SIZE_MIN	   (8u << 10)
#define SAMPLER_RING_SIZE_MAX	   (256u << 20)
#define SAMPLER_HZ_DEFAULT	   999.0
#define SAMPLER_HZ_CPUS		   64 /* of more CPUs each has a lower rate: the sum stays */
#define SAMPLER_SLICE_NS	   100000000ULL /* of the history */

/* In sampler_config.languages, beside the bits of enum lang_kind. */
#define CONFIG_JAVA lang_bit(LANG_JAVA)

struct counters_sys;
struct trap_rule;

struct sampler_config {
	enum sampler_target target;
	const pid_t *pids; /* TARGET_PIDS, TARGET_TIDS */
	uint32_t nr_pids;
	uid_t uid;
	const char *cgroup;   /* a path below the cgroup mount, or the folder itself */
	const char *name;     /* extended regular expression, for comm and program */
	char *const *command; /* NULL-terminated argv */
	bool command_quiet;   /* its fds 0-2 are /dev/null; else stdout goes to stderr */
	const int *cpus;      /* NULL: all online ones */
	uint32_t nr_cpus;
	bool skip_offline; /* offline ones of @cpus are left out; else refused */
	struct event events[EVENTS_MAX];
	uint32_t nr_events;	 /* 0: cycles, else cpu-clock, and the banner says why */
	double hz;		 /* samples per second, CPU and event */
	double max_overhead_pct; /* of one CPU: the rate is lowered to remain below; 0: off */
	uint64_t period;	 /* not 0: one sample every N events */
	enum call_graph call_graph;
	uint32_t stack_size;   /* bytes per stack copy, CALL_GRAPH_DWARF; multiple of 8; 0:
				  CALL_GRAPH_OFF */
	bool stack_auto;       /* double stack_size while more than 2 % of stacks are truncated */
	bool step_only;	       /* --unwinder=step: libunwind for each frame */
	uint32_t verify_every; /* verify one sample in N with libunwind; 0: none */
	size_t ring_size;      /* bytes of data ring per CPU; 0: chosen within the mlock limit */
	uint64_t tick_ns;      /* one profile a tick; first ones sooner unless exact_ticks */
	bool exact_ticks;      /* batch: no early profiles */
	bool warm_up;	       /* one tick only: begin it when the code that runs is read */
	uint64_t window_ns;    /* of PROFILE_WINDOW */
	/* Rules that are tested with each slice; the first match of each stops the screen there. */
	const struct trap_rule *traps;
	uint32_t nr_traps;
	struct keep_config keep;     /* the history on disk */
	struct saving_config saving; /* perf.data files of the matches instead */
	bool include_self;	     /* sample proftop itself */
	pid_t guard;		     /* of the terminal: is not sampled; 0: none */
	enum profile_frames shown_frames;
	/* Slices are kept for this time, in this many bytes; 0: the window's only, one a tick. */
	uint64_t history_ns;
	size_t history_memory;
	uint32_t languages;   /* frames of these are shown: bits of config_language() */
	bool no_inline;	      /* no inlined functions, no source lines */
	bool no_lines;	      /* no source lines */
	size_t symbol_memory; /* bytes that images of objects may take; 0: the default */
	const char *replay;   /* perf.data file, "-": stdin; NULL: live */
	/* Called 10 times a second while a pipe is replayed; NULL: read to its end. */
	sampler_reading_fn reading;
	bool follow;	    /* replay of a pipe: make profiles while it is written */
	const char *symfs;  /* replay: folder with the recorded machine's files; NULL: / */
	const char *remark; /* added to the messages; NULL: none */
	const char *record; /* live: also write this perf.data file; NULL: none */
	const struct counters_sys *sys; /* the system calls, for tests; NULL: the kernel's */
};

/* Another target for a running session. */
struct sampler_target_spec {
	enum sampler_target target;
	const pid_t *pids;
	uint32_t nr_pids;
	uid_t uid;
	const char *cgroup, *name;
	const int *cpus; /* NULL: all online ones */
	uint32_t nr_cpus;
	bool same_cpus; /* the current CPUs instead of @cpus */
};

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
/* Return the bit of language @name; 0: unknown. */
uint32_t config_language(const char *name);
/* Return the index of the event of waits; -1: there is none. */
int config_wait_slot(const struct sampler_config *config);
/* Return the index of the first event with samples of running tasks; -1: there is none. */
int config_latency_slot(const struct sampler_config *config);
/* Return the default rate on @nr_cpus CPUs: odd, so that it does not keep step with timers. */
double config_default_hz(uint32_t nr_cpus);
/* A remark about a session of config_user_only(). */
#define CONFIG_USER_ONLY "not permitted to see the kernel: user code only"
/*
 * Leave the kernel out of all events, for a user without the right to it. False: one is of the
 * kernel alone, or all are without it already.
 */
bool config_user_only(struct event *events, uint32_t nr);
/* Return the rate that @ev is opened with, in Hz; 0: a fixed period. */
double config_hz(const struct sampler_config *config, const struct event *ev);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The face of sampling: configure, start, control, stop, take profiles.
 *
 * All calls come from one thread (the UI). None of them waits for a file or
 * for the kernel's answer to a control: that is done by the builder thread,
 * and the answer comes in a later profile (message, events[].error).
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <sys/types.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"

enum sampler_target {
	TARGET_SYSTEM,
	TARGET_PIDS,	/* and their threads and children */
	TARGET_USER,	/* every task of one uid; new ones are looked for each second */
	TARGET_COMMAND, /* started by us, sampled from its exec, children included */
	TARGET_TIDS,	/* these threads alone */
	TARGET_CGROUP,	/* every task of a cgroup, whenever it comes */
	TARGET_NAME,	/* processes by name, as they come and go; children included */
};

#define SAMPLER_STACK_SIZE_DEFAULT (16u << 10)
#define SAMPLER_STACK_SIZE_MAX	   65528u
#define SAMPLER_STACK_SIZE_AUTO	   (8u << 10) /* what --stack-size=auto begins with */
#define SAMPLER_HZ_DEFAULT	   999.0

struct counters_sys;

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
	struct event events[EVENTS_MAX];
	uint32_t nr_events;	 /* 0: cycles, else cpu-clock, and the banner says why */
	double hz;		 /* samples per second, CPU and event */
	double max_overhead_pct; /* of one CPU: the rate is lowered to stay below; 0: off */
	uint64_t period;	 /* not 0: every so many events instead */
	enum call_graph call_graph;
	uint32_t stack_size;   /* of a dump, CALL_GRAPH_DWARF; multiple of 8; 0: CALL_GRAPH_OFF */
	bool stack_auto;       /* double the dumps while more than 2 % of stacks are cut short */
	bool step_only;	       /* --unwinder=step: libunwind for each frame */
	uint32_t verify_every; /* one sample in so many by libunwind alone, too; 0: none */
	size_t ring_size;      /* bytes of data ring per CPU; 0: chosen within the mlock limit */
	uint64_t tick_ns;      /* one profile a tick; first ones sooner unless exact_ticks */
	bool exact_ticks;      /* batch: no early profiles */
	uint64_t window_ns;    /* of PROFILE_WINDOW */
	bool include_self;     /* sample proftop, too */
	bool no_inline;	       /* no inlined functions, no source lines */
	size_t symbol_memory;  /* bytes that images of objects may take; 0: the default */
	const char *replay;    /* perf.data file, "-": stdin; NULL: live */
	const char *symfs;     /* replay: objects are sought below this folder; NULL: here */
	const char *remark;    /* told with the messages; NULL: nothing */
	const char *record;    /* live: write a perf.data file, too; NULL: none */
	const struct counters_sys *sys; /* the system calls, for tests; NULL: the kernel's */
};

struct sampler;

/* Before any other thread: give up the capabilities that nothing here uses; a command gets them
 * again. */
void sampler_drop_caps(bool command);
/*
 * Open events and rings. 0; -EACCES/-EPERM (nothing may be sampled: exit 3);
 * -ESRCH (target not there: exit 4); other -errno. With the three-line sentence.
 */
int sampler_new(struct sampler **out, const struct sampler_config *config, struct err *e);
/* Start the threads and enable the events (a command is released). */
int sampler_start(struct sampler *s, struct err *e);
/* What a recording holds. */
struct sampler_recorded {
	uint64_t nr_samples;
	uint64_t nr_dropped; /* records that came faster than they could be written */
	uint64_t bytes;
};
/*
 * With config.record: end the session and complete the file; nothing but sampler_take() and
 * sampler_free() may follow. 0, or -errno with a sentence (disk full ...): what was written stays.
 */
int sampler_record_end(struct sampler *s, struct sampler_recorded *out, struct err *e);
/* Stop and join all threads, close everything. A command still running is left alone. */
void sampler_free(struct sampler *s);

/* Readable when a new profile waits: for poll(2). */
int sampler_fd(const struct sampler *s);
/* The newest profile, yours now (profile_free), or NULL. */
struct profile *sampler_take(struct sampler *s);

/* Controls: applied by the builder within a few ms; then a fresh profile comes at once. */
void sampler_set_rate(struct sampler *s, uint32_t event, double hz);
void sampler_set_enabled(struct sampler *s, bool on); /* all events (S) */
void sampler_set_events(struct sampler *s, const struct event *events, uint32_t nr);
void sampler_set_window(struct sampler *s, enum profile_window window);
void sampler_set_tick(struct sampler *s, uint64_t tick_ns);
void sampler_reset(struct sampler *s); /* counts from zero */
/*
 * Fetch the debug file of a module (profile_module.id) in the background; once
 * more, while it is under way: cancel. Messages of profiles tell how it goes.
 */
void sampler_fetch(struct sampler *s, uint32_t module);
/* Profiles tell where in this function (an id) its samples are; UINT32_MAX: of none. */
void sampler_set_annotate(struct sampler *s, uint32_t function);

/* One event off and on again: its fds stay, it costs nothing meanwhile. */
void sampler_set_event_enabled(struct sampler *s, uint32_t event, bool on);
/*
 * These need the events opened anew: tables and history stay, the gap of some ms is told in a
 * message, as is a refusal (then all goes on as before). Not while it is recorded.
 */
void sampler_set_call_graph(struct sampler *s, enum call_graph mode);
/* Dumps of this size, rounded down to 8, and CALL_GRAPH_DWARF; 0: CALL_GRAPH_OFF. */
void sampler_set_stack_size(struct sampler *s, uint32_t size);
void sampler_set_ring_size(struct sampler *s, size_t size); /* rounded up to a power of two */
/* Everything is copied. TARGET_COMMAND: back to the command that was started. */
struct sampler_target_spec {
	enum sampler_target target;
	const pid_t *pids;
	uint32_t nr_pids;
	uid_t uid;
	const char *cgroup, *name;
	const int *cpus; /* NULL: all online ones */
	uint32_t nr_cpus;
	bool same_cpus; /* those that are sampled now, whatever @cpus says */
};
void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec);
/* The same target on these CPUs alone; none: on all that are online. */
void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr);
/*
 * One process alone, its threads and children, at four times the rate and with twice the dumps, as
 * far as the kernel allows; and back to what was sampled before. As the above.
 */
void sampler_focus(struct sampler *s, pid_t pid);
void sampler_unfocus(struct sampler *s);

/* What can be opened here; filled in the background after the first ask. */
struct sampler_event_state {
	const struct event_info *info;
	int code; /* 0 usable, -errno, 1: not known yet */
};
/*
 * Copies up to @max states; returns how many there are. Starts the probing at the first call: that
 * has the fixed names, later ones have the PMUs' events and the tracepoints, too. @info lives as
 * long as the sampler.
 */
uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max);

/* The limits that the kernel has now: kernel.perf_event_max_sample_rate, read each tick. */
double sampler_max_hz(const struct sampler *s);

/* A frame of a replay's samples; the frame of one id never changes. */
struct sampler_frame {
	uint64_t file_offset;	 /* of its address; UINT64_MAX: kernel, anonymous, not known */
	struct safe_text name;	 /* "[unknown]" when there is none */
	uint64_t offset;	 /* into the function; UINT64_MAX: not known */
	struct safe_text module; /* path or [kernel.kallsyms] as perf script prints it */
};

/* One sample of a replay; borrowed for the call. */
struct sampler_sample {
	struct safe_text comm;
	pid_t pid, tid;
	uint32_t cpu;
	uint64_t time_ns, period;
	const char *event;
	const struct sampler_frame *known; /* frames by id */
	const uint32_t *frames;		   /* ids, innermost first, kernel before user */
	const uint64_t *ips;		   /* their raw addresses; 0: not known */
	uint32_t nr_frames;
	uint32_t nr_kernel;
	const char *stop; /* why the user stack ends: unwind_stop_name() */
};

typedef int (*sampler_sample_fn)(void *ctx, const struct sampler_sample *sample);

/* Replay only, instead of sampler_start(): every sample in time order. Blocks. 0 or what @fn
 * returned. */
int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e);

/* A command's exit status as of waitpid(2), -1 while it runs or if there is none. */
int sampler_command_status(const struct sampler *s);

#endif

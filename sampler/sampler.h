/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sampling: configure, start, control, stop, take profiles.
 *
 * The caller owes: all calls from one thread (the UI); profiles it took are freed by it.
 *
 * The room does: runs sampler threads, builder and loader; requests are done by the builder, and
 * none of the calls waits for a file, a task or a lock that is held for long.
 *
 * Not for: drawing, options.
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

struct counters_sys;
struct err;
struct recorder;
struct sampler;
struct text_arena;

struct sampler_event_state {
	const struct event_info *info;
	int code; /* 0 usable, -errno, 1: not tried yet */
};

/* The folder of --keep. */

struct keep_config {
	const char *dir; /* NULL: nothing is kept */
	uint64_t size;	 /* bytes of all segments */
	uint64_t time_ns;
};

struct recording {
	struct recorder *recorder; /* NULL: nothing is recorded */
	char *path;		   /* of the file that is written; NULL: none */
	bool memory;		   /* the recorder keeps records, also while no file is written */
	bool failed;		   /* its failure was reported already */
	bool *identified;	   /* by object: its build-id is written */
	uint32_t nr_identified, max_identified;
	bool kernel_identified;
};

/* The content of a recording. */
struct sampler_recorded {
	const char *path; /* NULL: nothing was recorded */
	bool counted;	  /* the samples are */
	uint64_t nr_samples;
	uint64_t nr_dropped;  /* records that arrived faster than they could be written */
	uint64_t nr_unmapped; /* processes that were there, but their mappings hang */
	uint64_t bytes;
};

/* Write "; 3 processes have no symbols: reading mappings hangs" for the user; "": @nr is 0. */
const char *recording_unmapped(uint64_t nr, char buf[static 80]);

/* The samples of a recording, one by one. */

/* A frame of a replay's samples; the frame of one id never changes. */
struct sampler_frame {
	uint64_t file_offset;	 /* of its address; UINT64_MAX: kernel, anonymous, not known */
	struct safe_text name;	 /* "[unknown]" when there is none */
	uint64_t offset;	 /* into the function; UINT64_MAX: not known */
	struct safe_text module; /* path or [kernel.kallsyms] as perf script prints it */
};

/* One branch of a sample. */
struct sampler_branch {
	struct record_branch branch;
	uint32_t from, to; /* ids of frames */
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
	const struct sampler_branch *branches; /* the newest first */
	uint32_t nr_branches;
	const struct record_memory *memory;
	const char *stop; /* why the user stack ends: unwind_stop_name() */
};

/* Damage of a recording, and the samples that it lacks. */
struct sampler_missing {
	const char *note;    /* on a recording that is cut short or damaged; "": whole; borrowed */
	uint64_t nr_dropped; /* damaged records */
	uint64_t nr_lost;    /* when it was recorded */
};

typedef int (*sampler_sample_fn)(void *ctx, const struct sampler_sample *sample);

/*
 * Files of the moments before and after a match of a trap, within a number and a size.
 *
 * Runs on: the builder.
 */

/* From the configuration; @dir NULL: matches are not saved. */
struct saving_config {
	const char *dir;
	uint32_t max_files;
	uint64_t max_bytes;
	size_t memory; /* of the records before a match */
};

struct saving {
	uint32_t nr;	/* files of this session */
	uint64_t bytes; /* in them */
};

/*
 * The rule of a trap: SUBJECT [> PERCENT] [for TIME], as in 'total:burst > 50 for 100ms'. Pure; any
 * thread.
 */

#define TRAP_RULES_MAX 16
#define TRAP_TEXT_MAX  128

enum trap_subject {
	TRAP_CPU,   /* busy CPUs, percent of all; with a name: of one CPU, by its threads */
	TRAP_SELF,  /* percent of the samples in a function */
	TRAP_TOTAL, /* in it or its callees */
	TRAP_NEW,   /* the first sample of a function */
	TRAP_LOST,  /* percent of the samples of a tick */
	TRAP_WAIT,  /* waiting time of all threads, or the ones of the name; 100: of one thread */
};

struct trap_rule {
	enum trap_subject subject;
	char name[TRAP_TEXT_MAX]; /* of the function or thread; "": none */
	bool below;		  /* "<" */
	double percent;
	uint64_t for_ns;
	char text[TRAP_TEXT_MAX]; /* as typed */
};

/* 0, or -EINVAL with a sentence. */
int trap_rule_parse(struct trap_rule *out, const char *text, struct err *e);

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

struct sampler_config {
	enum sampler_target target;
	const pid_t *pids; /* TARGET_PIDS, TARGET_TIDS */
	uint32_t nr_pids;
	uid_t uid;
	const char *user;     /* the name of @uid, as it was given; NULL: unknown */
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
	bool window_alone;     /* batch: no decaying sum and total is kept, unless replayed */
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
	size_t history_memory; /* bytes of the past; 0: the usual */
	uint32_t languages;    /* frames of these are shown: bits of config_language() */
	bool no_inline;	       /* no inlined functions, no source lines */
	bool no_lines;	       /* no source lines */
	size_t symbol_memory;  /* bytes that images of objects may take; 0: the default */
	const char *replay;    /* perf.data file, "-": stdin; NULL: live */
	/* Called 10 times a second while a pipe is replayed; NULL: read to its end. */
	file_reading_fn reading;
	bool follow;	    /* replay of a pipe: make profiles while it is written */
	const char *symfs;  /* replay: folder with the recorded machine's files; NULL: / */
	const char *remark; /* added to the messages; NULL: none */
	const char *record; /* live: also write this perf.data file; NULL: none */
	const struct counters_sys *sys; /* the system calls, for tests; NULL: the kernel's */
	int program_fd;			/* as in struct counters_config; the session's */
};

/* Another target for a running session. */
struct sampler_target_spec {
	enum sampler_target target;
	const pid_t *pids;
	uint32_t nr_pids;
	uid_t uid;
	const char *user, *cgroup, *name; /* @user: of @uid, NULL: unknown */
	const int *cpus;		  /* NULL: all online ones */
	uint32_t nr_cpus;
	bool same_cpus; /* the current CPUs instead of @cpus */
};

/* Return the bit of language @name; 0: unknown. */
uint32_t config_language(const char *name);
/* Return the default rate on @nr_cpus CPUs: odd, so that it does not keep step with timers. */
double config_default_hz(uint32_t nr_cpus);

/*
 * The stacks of the threads of one process at this moment, on request: whole, with functions of
 * languages, and of the kernel where that is permitted.
 *
 * A thread that sleeps is read from outside. Only where that does not reach the root, and with
 * leave, it is stopped for a moment (asleep.c); its stack is unwound after that.
 *
 * Any thread that may hang, not registered with urcu; beside a session or without one.
 */

#define TASK_STACKS_KERNEL 2048

struct task_stacks_want {
	pid_t pid;
	const pid_t *tids; /* of its threads; NULL: all */
	uint32_t nr_tids;
	bool stop;	    /* threads may be stopped */
	uint32_t languages; /* as in struct sampler_config */
	enum profile_frames frames;
	const atomic_bool *cancel; /* NULL: none */
};

enum task_stacks_state {
	TASK_STACKS_COMPLETE,
	TASK_STACKS_GUESSED, /* the root was reached by a guess */
	TASK_STACKS_CUT,     /* there are callers that are not known */
	TASK_STACKS_NONE,
};

struct task_stack {
	pid_t tid;	       /* 0: a goroutine that no thread runs */
	uint64_t goroutine;    /* its number; 0: a thread */
	struct safe_text comm; /* owned by the result */
	char state;	       /* as in /proc/PID/stat: S, R, D ...; P: parked; 0: not known */
	enum task_stacks_state result;
	uint32_t stack;	  /* index in the stacks of the profile; UINT32_MAX: none */
	uint64_t stop_ns; /* that it was stopped; 0: it was not */
	char why[128];	  /* there is no stack, or a cut one; "": not known */
	/* Static: a lock that it waits for, made by its program, and its holder; NULL. */
	const char *waits_for;
	/* Functions of the kernel, one a line; "": not permitted, or it is not in the kernel. */
	char kernel[TASK_STACKS_KERNEL];
};

struct task_stacks {
	pid_t pid;
	struct safe_text comm, command; /* command line; "": none */
	struct profile *profile;	/* each thread with a stack counts once */
	uint32_t nr;
	struct task_stack *list; /* by tid, the first thread first; then goroutines */
	char note[160];		 /* which goroutines are not shown; "": none is left out */
	struct text_arena *texts;
};

/*
 * Read them. 0; -ESRCH: no such process; -EPERM: none of its threads may be read; other -errno,
 * with a sentence.
 */
int task_stacks_read(struct task_stacks **out, const struct task_stacks_want *want, struct err *e);
/* NULL is fine. */
void task_stacks_free(struct task_stacks *t);
/* Return "complete", "guessed", "cut", "none". */
const char *task_stacks_state_name(enum task_stacks_state state);

/*
 * Drop capabilities that proftop does not use, before any other thread starts; a command gets them
 * back. A replay keeps the ones for files and the kernel's symbols.
 */
void sampler_drop_caps(bool command, bool replay);
/*
 * Start and stop the processes that read debug information; before any thread, and at the end.
 * @code: code may be annotated.
 */
void sampler_sandbox_start(bool code);
void sampler_sandbox_stop(void);
/* Start the processes that read the memory of interpreters: before any thread, for live sampling.
 * sampler_sandbox_stop() stops them. */
void sampler_readers_start(void);
/*
 * Open events and rings. 0; -EACCES/-EPERM (nothing may be sampled: exit 3); -ESRCH (no such
 * target: exit 4); other -errno. With a sentence of three lines.
 */
int sampler_new(struct sampler **out, const struct sampler_config *config, struct err *e);
/* Start the threads and enable the events (a command is released). */
int sampler_start(struct sampler *s, struct err *e);
/*
 * Give up the capabilities that sampling alone needs, in the calling thread and in threads that it
 * starts later. After sampler_start().
 */
void sampler_drop_thread_caps(void);
/*
 * End the session and complete the recording, if any; nothing but sampler_take() and
 * sampler_free() may follow. 0, or -errno with a message (disk full ...): the written part is kept.
 */
int sampler_record_end(struct sampler *s, struct sampler_recorded *out, struct err *e);
/*
 * With config.keep: end the session and write its last slices; as sampler_record_end(), which goes
 * before it if both are wanted.
 */
int sampler_keep_end(struct sampler *s, struct err *e);
/*
 * Stop and join all threads, close everything, end a command still running. Of a builder that hangs
 * for two seconds the session is left as it is until the end of this process.
 */
void sampler_free(struct sampler *s);
/* Return a file descriptor for poll(2), readable when there is a new profile. */
int sampler_fd(const struct sampler *s);
/* Take the newest profile, to be freed with profile_free(); NULL: none. */
struct profile *sampler_take(struct sampler *s);
/*
 * The past. sampler_set_strip(): post a heat strip now and with each profile; the query is copied.
 * sampler_show_past(): post a profile of a range of the past, and again when its names improve; 0
 * and 0: none. Times are of the clock of the strip.
 */
void sampler_set_strip(struct sampler *s, const struct strip_query *query);
void sampler_show_past(struct sampler *s, uint64_t begin_ns, uint64_t end_ns);
/* Add a rule, as of --trap; "": remove all. 0, or -EINVAL with a sentence. */
int sampler_trap(struct sampler *s, const char *rule, struct err *e);
/* Have the next profile's status list the rules. */
void sampler_list_traps(struct sampler *s);
/* Return a file descriptor for poll(2), readable when there is a strip or such a profile. */
int sampler_past_fd(const struct sampler *s);
/* Take them: profile_free(), free(); NULL: none. */
void sampler_take_past(struct sampler *s, struct profile **p, struct strip **strip);
/*
 * Collect a profile of the next @span_ns, beside the others: it is in sampler_take_collected() when
 * sampler_collected_fd() is readable. Live only, with config.history_ns of at least that span. One
 * at a time; callable from one other thread, as the next two.
 */
void sampler_collect(struct sampler *s, uint64_t span_ns);
/*
 * The thread with this CPU clock answers requests: the rate is not lowered for its time. Any
 * thread, once.
 */
void sampler_leave_out(struct sampler *s, clockid_t clock);
int sampler_collected_fd(const struct sampler *s);
struct profile *sampler_take_collected(struct sampler *s);
/* Controls: applied by the builder within a few ms, followed by a new profile. */
void sampler_set_rate(struct sampler *s, uint32_t event, double hz);
void sampler_set_enabled(struct sampler *s, bool on); /* all events (S) */
void sampler_set_events(struct sampler *s, const struct event *events, uint32_t nr);
/*
 * @span_ns: the time of PROFILE_WINDOW. A longer one grows as it goes: samples that are older than
 * the former one are of the past.
 */
void sampler_set_window(struct sampler *s, enum profile_window window, uint64_t span_ns);
/* Show frames of languages, of their interpreters, or both; also of samples already taken. */
void sampler_set_frames(struct sampler *s, enum profile_frames frames);
void sampler_set_tick(struct sampler *s, uint64_t tick_ns);
void sampler_reset(struct sampler *s); /* counts from zero */
/*
 * Fetch the debug file of a module (profile_module.id) in the background; a second call cancels it.
 * Messages of profiles report the result.
 */
void sampler_fetch(struct sampler *s, uint32_t module);
/* Add the instructions of this function (an id) to profiles; UINT32_MAX: of none. */
void sampler_set_annotate(struct sampler *s, uint32_t function);
/* Turn one event off and on again: its fds are kept open, it costs nothing while off. */
void sampler_set_event_enabled(struct sampler *s, uint32_t event, bool on);
/*
 * These open the events again: tables and history are kept, a message reports the gap of some ms or
 * a refusal (then nothing changes). Not while recording.
 */
void sampler_set_call_graph(struct sampler *s, enum call_graph mode);
/* @is_auto: @size or more, as needed. */
void sampler_set_stack_size(struct sampler *s, uint32_t size, bool is_auto);
void sampler_set_ring_size(struct sampler *s, size_t size); /* rounded up to a power of two */
/* Begin a recording to the file @path; NULL: complete it. */
void sampler_record(struct sampler *s, const char *path);
/* Sample another target. @spec is copied. TARGET_COMMAND: back to the command that was started. */
void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec);
/* Sample the same target on these CPUs only; none: on all online CPUs. */
void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr);
/*
 * Sample one process, its threads and children, at four times the rate and with twice the stack
 * copies, as far as the kernel allows; or return to the former target.
 */
void sampler_focus(struct sampler *s, pid_t pid);
void sampler_unfocus(struct sampler *s);
/*
 * Copy up to @max states; returns how many there are. The first call starts to probe, and has the
 * fixed names; later ones also have the PMUs' events and the tracepoints. @info lives as long as
 * the sampler.
 */
uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max);
/* Return how much of a recording is read before its first profile; -1: not known, or no recording.
 */
int sampler_reading_permille(const struct sampler *s);
/* Return whether a recording is read, and each request answered: no other profile follows. */
bool sampler_is_settled(struct sampler *s);
/* Return kernel.perf_event_max_sample_rate, read each tick. */
double sampler_max_hz(const struct sampler *s);
/*
 * Replay only, instead of sampler_start(): call @fn for each sample in time order. Blocks. 0 or the
 * result of @fn.
 */
int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e);
/* Get the samples that sampler_each() had to leave out; after it. */
void sampler_missing(const struct sampler *s, struct sampler_missing *out);

#endif

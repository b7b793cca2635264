/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One immutable profile for the UI: counts with names, account and messages.
 *
 * The caller owes: to free it once; nothing else: a profile has copies of all texts and outlives
 * the tables it was made from.
 *
 * The room does: holds functions, places, stacks, tasks, processes, modules, messages and the
 * account of every sample; folds into rows, trees and callers (fold.c, fold_tree.c).
 *
 * Not for: keeping the past (sampler/count).
 */
#ifndef SAMPLER_PROFILE_PROFILE_H
#define SAMPLER_PROFILE_PROFILE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/process/process.h"

struct details;
struct listing;
struct maps;
struct objects;
struct pairs;
struct place;
struct places;
struct slices;
struct stacks;
struct symbol;
struct symbols;

/* The way user stacks are found. */
enum call_graph {
	CALL_GRAPH_DWARF, /* from registers and a copy of the stack, unwound here */
	CALL_GRAPH_FP,	  /* by the kernel, along frame pointers: cheap, callers guessed */
	CALL_GRAPH_OFF,	  /* not at all: the innermost frame only */
	CALL_GRAPH_DEFER, /* as FP, at the return to user space, where pages can be read */
	CALL_GRAPH_NR,
};

/* "dwarf", "fp", "off". */
const char *profile_call_graph_name(enum call_graph mode);

/* Which frames a stack shows if code of a language ran in an interpreter there. */
enum profile_frames {
	FRAMES_LANGUAGE, /* frames of the language; frames of the interpreter are folded away */
	FRAMES_BOTH,
	FRAMES_NATIVE, /* frames of the interpreter alone */
	FRAMES_NR,
};

/* "language", "both", "native". */
const char *profile_frames_name(enum profile_frames frames);

/* A function: the identity that rows are kept by is @id. */
struct profile_function {
	uint32_t id; /* symbol id: the same from profile to profile */
	struct safe_text name;
	struct safe_text module;
	char kind;	       /* u k j v ?, or of a language: profile_language_name() */
	bool kernel;	       /* code of the kernel, named or not */
	bool inlined;	       /* without code: part of its callers */
	uint32_t module_index; /* in modules: the object it is code of */
	bool unnamed;	       /* the name is an address */
	uint32_t first_line;   /* in the source; 0: not known */
	uint64_t start;	       /* address: in a file as linked; 0: it has no code of its own */
	/* Static words: the reason for a missing name, and the fix ("": not known); NULL: named.
	 */
	const char *reason, *fix;
};

/* The memory of objects. */
struct profile_images {
	uint64_t nr, memory; /* that are loaded; their bytes */
	uint64_t memory_max; /* --symbol-memory */
	uint64_t nr_evicted; /* evictions */
};

enum profile_module_state {
	PROFILE_MODULE_LOADING, /* not read yet: names may follow */
	PROFILE_MODULE_READY,
	PROFILE_MODULE_FAILED, /* could not be read; the reason says why */
	PROFILE_MODULE_ASIDE,  /* tried again later; the reason says why */
	PROFILE_MODULE_AWAY,   /* evicted; loaded again on request */
	PROFILE_MODULE_KEPT,   /* of a folder of --keep: names without the object */
};

/* "loading", "ready", "failed", "aside", "away", "kept". */
const char *profile_module_state_name(enum profile_module_state state);

#define PROFILE_CODE_MAX 4U

/* A segment with code: addresses as linked, and its place in the file. */
struct profile_code {
	uint64_t start, end, offset;
};

/*
 * An object that functions are code of: a file, the kernel with its modules,
 * the vdso, a process's anonymous (JIT) memory, or all that is unknown. Its
 * samples are the sum over the functions with its index.
 */
struct profile_module {
	uint32_t id;		   /* object id: the same from profile to profile */
	struct safe_text name;	   /* as in lists: basename, [kernel], [anon] */
	struct safe_text path;	   /* as first seen; of memory: the name */
	struct safe_text build_id; /* in hexadecimal; str NULL or "": not known, or none */
	enum profile_module_state state;
	/* Static words, never NULL; "" where there is nothing to say. */
	const char *source; /* source of its names: ".symtab", "debug file" */
	const char *reason; /* why its code has no names: "stripped" */
	const char *fix;    /* how to get names: "install its debug package" */
	const char *debug;  /* is debug information read; it is the reason if names have none */
	/* Of an interpreter: why functions of its language have no names, or guessed ones; NULL:
	 * they have. */
	const char *language_reason, *language_fix;
	uint32_t language_version; /* lang_title() has it as text */
	double self;		   /* samples in its code, in the window */
	double unnamed;		   /* of them without a name that was searched */
	uint32_t nr_symbols;	   /* names it has to give */
	/* Functions of a file: with unwind tables, with derived rows, with neither. */
	uint32_t nr_tabled, nr_derived, nr_bare;
	uint32_t permille;   /* share read so far, while it is loading */
	uint32_t nr_evicted; /* evictions of this object */
	uint64_t memory;     /* bytes */
	/* Of a file that was read: its segments with code, the first ones. */
	struct profile_code code[PROFILE_CODE_MAX];
	uint32_t nr_code;
};

struct profile_process {
	uint32_t id; /* process incarnation: the same from profile to profile */
	pid_t pid;
	uid_t uid;
	bool comm_is_old; /* the main thread was not sampled: /proc may have a newer name */
	struct safe_text comm;
	/* From /proc, some ticks later; from a recording the parent alone. */
	pid_t parent;		    /* 0: none, or not known */
	uint64_t up_ns;		    /* since it began; 0: not known */
	struct safe_text command;   /* the command line; str NULL or "": not known, or none */
	struct safe_text cgroup;    /* the path, from its root */
	struct safe_text container; /* "docker:3fa1c2d4e5f6" */
	struct safe_text program;   /* the name of its file; str NULL or "": not known */
	struct safe_text service[SERVICE_NR]; /* str NULL or "": not known */
	uint32_t nr_more;   /* of processes that have ended, as one: how many but one */
	double cpu_rest_ns; /* CPU time in the window of its threads without samples */
};

/* Return the name of a process for the screen: of its service, else its comm. */
static inline struct safe_text profile_process_name(const struct profile_process *p)
{
	return p->service[SERVICE_NAME].size ? p->service[SERVICE_NAME] : p->comm;
}

/* Return the name of a fact for labels and JSON. */
static inline struct safe_text profile_service_label(unsigned int fact)
{
	static const struct safe_text labels[SERVICE_NR] = { TEXT("service"),
							     TEXT("service_namespace"),
							     TEXT("service_instance"),
							     TEXT("service_version") };

	assert(fact < SERVICE_NR);
	return labels[fact];
}

struct profile_task {
	uint32_t id; /* the same in all profiles; the later it began, the higher */
	pid_t tid;
	uint32_t process; /* index in processes */
	struct safe_text comm;
	double cpu_ns; /* CPU time in the window, where profile.cpu_known */
};

struct profile_stack {
	uint32_t first; /* index in frames; innermost first, kernel before user */
	uint32_t nr;
};

#define PROFILE_NO_LINE UINT32_MAX

/* Where a frame is: in the source, and in its object. */
struct profile_line {
	uint32_t file; /* index in files, or PROFILE_NO_LINE */
	uint32_t line; /* 0: not known */
	/* As profile_function.start; that of a caller is in its call; 0: not known. */
	uint64_t address;
};

/* In the place of an event: the time on a CPU, exact, where waits are measured. In nanoseconds. */
#define PROFILE_RUNNING EVENTS_MAX

/* Samples of one stack in one task for one event, over the window. */
struct profile_count {
	uint32_t stack; /* index in stacks */
	uint32_t task;	/* index in tasks */
	uint32_t event; /* index in events, or PROFILE_RUNNING */
	double count;	/* samples (fractional in decay) */
	double weight;	/* sum of periods: the base of percentages */
};

/*
 * Where every sample of the tick is:
 * taken = complete + guessed + truncated + broken + pending + dropped + lost.
 */
struct profile_account {
	uint64_t taken;
	uint64_t complete;  /* the user stack reached its root, or there was none */
	uint64_t guessed;   /* reached it with at least one guessed frame */
	uint64_t truncated; /* longer than the stack copy */
	uint64_t gaps;	    /* of truncated: a larger copy ends at the same place */
	uint64_t broken;    /* no caller found; by reason in broken_by[] */
	uint64_t pending;   /* taken before its process or object was loaded */
	uint64_t dropped;   /* dropped by us; by reason in dropped_by[] */
	uint64_t lost;	    /* lost by the kernel */
	uint64_t own;	    /* of proftop itself; outside "taken" */
	uint64_t filtered;  /* of processes without the name of the target; outside "taken" */
	bool no_outcomes; /* slices keep no outcomes of stacks: all but lost ones are "complete" */
};

/*
 * In the place of an event, beside PROFILE_RUNNING: the samples of one event (profile.latency),
 * each with its weight divided by the number of running tasks of the target. Serial parts of a
 * program weigh most. Where waits are measured.
 */
#define PROFILE_LATENCY (EVENTS_MAX + 1)
/*
 * In the place of an event, in counts of the history alone: the CPU time of a task, and that of its
 * process that no task with samples has, by clocks of the kernel (sampler/cpu_times.c). Without
 * samples and stack; a profile has it in its tasks and processes.
 */
#define PROFILE_CPU	 (EVENTS_MAX + 2)
#define PROFILE_CPU_REST (EVENTS_MAX + 3)

/*
 * The switches of the tick, where waits are measured. Each is timed, and counts with the stack
 * taken at it, or with stacks of the same task.
 */
struct profile_waits {
	uint64_t switched;	/* out of a CPU: with + without stack */
	uint64_t with_stack;	/* with a stack */
	uint64_t without_stack; /* not sampled, at this rate */
	uint64_t lost;		/* dropped by us: the queue was full */
	uint64_t odd;		/* steps without the one before, which was lost */
	uint64_t late;		/* steps out of order, ignored */
	uint64_t tasks;		/* known now */
	uint64_t queue_ns;	/* time of all tasks in a run queue */
	uint64_t slept_ns;	/* time of all tasks asleep; with unknown callers */
	uint64_t cut_ns;
	bool waking; /* the run queue is from the wake-up on, else after preemption alone */
	/*
	 * Switches are too frequent: the times of tasks are read from /proc/PID/schedstat, shared
	 * out to the stacks by the switches of @seen_ns of the tick.
	 */
	bool estimated;
	uint64_t seen_ns;
	/* Sleeping tasks are not read: that hung in this and other processes. 0: they are. */
	pid_t hung;
};

#define PROFILE_NR_LANG_NONE 16 /* indexed by enum lang_status */
#define PROFILE_NR_LANGUAGES 11
#define PROFILE_NR_DOUBTS    8

/* The key of a reason: "not_read". */
const char *profile_lang_status_name(unsigned int reason);
/* The language of a function by its kind letter, "python"; NULL: it is native. */
const char *profile_language_name(char kind);
/* Return the language that @text begins with, "python:"; NULL: none. *size: with the colon. */
const char *profile_language_prefix(const char *text, size_t *size);

/* The samples of interpreters in the tick: samples = certain + guessed + all of none_by. */
struct profile_lang {
	uint64_t certain; /* with the frames of their language as they were at the sample */
	uint64_t guessed; /* the same, but a check failed */
	uint64_t samples;
	uint64_t none_by[PROFILE_NR_LANG_NONE];
	/* The guessed ones by language, enum lang_kind, the last one Java; and by enum
	   interleave_doubt: the number of its bit, the last one not known. */
	uint64_t guessed_by[PROFILE_NR_LANGUAGES][PROFILE_NR_DOUBTS];
};

enum profile_drop {
	DROP_STACKS_FULL,
	DROP_CELLS_FULL,
	DROP_PLACES_FULL,
	DROP_BAD_RECORD,
	DROP_UNKNOWN_EVENT,
	DROP_EVENT_LIMIT,
	DROP_EVENT_GONE, /* the last samples before a change of events */
	DROP_NR,
};

const char *profile_drop_name(enum profile_drop reason);

#define PROFILE_NR_BROKEN 16 /* indexed by enum unwind_stop */

const char *profile_broken_name(unsigned int reason);

struct profile_cpu {
	int cpu;
	char core[24]; /* type of the core, "atom"; "": all are alike */
	bool online;
	double busy; /* 0..1 over the tick; from /proc/stat; NAN: of a recording */
	double busy_kernel, busy_steal; /* parts of it: of the kernel, and taken by the host */
	uint64_t samples;		/* in the tick, all events */
	uint64_t lost;			/* in the tick */
	uint64_t lost_total;		/* since start */
	uint64_t throttled;		/* times, in the tick */
	uint64_t throttled_ns;		/* duration in the tick */
	uint64_t throttled_total;
	uint64_t kernel;      /* of @samples: in the kernel */
	uint32_t hot;	      /* function id: that which the CPU was in most, in the tick */
	uint64_t hot_samples; /* in it, at least; 0: none is distinct */
	double ring_high;     /* 0..1: the fullest the ring was when read in the tick */
	uint64_t lag_max_ns, lag_median_ns; /* of the tick's samples: how long they waited for us */
};

/* One event on one CPU, in the tick. */
struct profile_cpu_event {
	uint64_t samples, lost;
	uint64_t enabled_ns, running_ns; /* less running: multiplexed; of tasks both are the same */
	double got_hz;			 /* NAN: it was not busy, or too short */
};

struct profile_event {
	struct event event;
	bool enabled;
	double want_hz;	      /* 0: a fixed period */
	double got_hz;	      /* per CPU while it was busy; NAN: none was, or too short */
	double running_share; /* of the time enabled, since it was opened; < 1: multiplexed */
	double count;	 /* in the tick, over all CPUs, multiplexed time added; NAN: not known */
	char error[160]; /* why it is not sampling, "" if it is */
};

struct profile_self {
	double cpu_pct; /* of one CPU, over the tick */
	uint64_t rss_kb;
	/* Of this the sampler threads, the builder, the UI (main); the loaders, folding and all
	 * others. */
	double samplers_pct, builder_pct, ui_pct, loaders_pct;
};

enum message_severity {
	MESSAGE_INFO,  /* good to know */
	MESSAGE_WARN,  /* the numbers are less sure than they look */
	MESSAGE_GRAVE, /* samples are missing or wrong */
};

/* The call of sampler.h or the view that the fix of a message needs. */
enum message_control {
	MESSAGE_NONE,	    /* nothing here helps */
	MESSAGE_RATE,	    /* sampler_set_rate(event, value) */
	MESSAGE_STACK_SIZE, /* sampler_set_stack_size(value) */
	MESSAGE_RING_SIZE,
	MESSAGE_CALL_GRAPH,
	MESSAGE_RESET,
	MESSAGE_EVENTS,	 /* the list of events */
	MESSAGE_MODULES, /* the views of that name */
	MESSAGE_CPUS,
};

/* Keys of the screen that help, beside the one for the control: data, as batch output has none. */
enum message_key {
	MESSAGE_KEY_PROCESSES = 1 << 0, /* the view of that name */
	MESSAGE_KEY_PICK = 1 << 1,	/* sample fewer processes */
	MESSAGE_KEY_RATE = 1 << 2,	/* a lower one */
	MESSAGE_KEY_STACKS = 1 << 3,	/* smaller copies */
	MESSAGE_KEY_FREQUENCY = 1 << 4, /* the list of rates */
};

/* One kind of trouble, once. */
struct profile_message {
	uint32_t id;  /* the same from profile to profile */
	char key[24]; /* a word for programs: "lost" */
	enum message_severity severity;
	bool active;		    /* in this tick, or still so */
	uint64_t count;		    /* samples, or times */
	uint64_t first_ns, last_ns; /* running time of the session */
	char brief[64];	  /* a few words, for the bottom line; clean text, as the next two */
	char detail[256]; /* the whole sentence */
	char fix[224];	  /* the fix, without keys; a control that changes the sampling is first */
	enum message_control control;
	unsigned int keys; /* enum message_key */
	uint32_t event;	   /* MESSAGE_RATE */
	uint32_t module;   /* the id of the module that it is about, plus 1; 0: none */
	double value;	   /* the setting */
};

/* Return the fix of @n in two or three words: "larger rings"; "" without a control. */
const char *profile_message_action(const struct profile_message *n);

/* How the frames were found, since the start. */
struct profile_unwind {
	uint64_t frames;   /* of user stacks */
	uint64_t row_hits; /* by a cached row */
	uint64_t steps;	   /* by libunwind */
	uint64_t guessed;
	uint64_t rows;		/* admitted: libunwind had the same result */
	uint64_t rows_differ;	/* not admitted */
	uint64_t verified;	/* samples also unwound by libunwind alone */
	uint64_t verify_differ; /* of these, with another result: a fault of ours */
};

/* Samples at one instruction: of the innermost frame. */
struct profile_point {
	uint64_t vaddr;
	uint32_t event; /* index in events */
	double count, weight;
	uint32_t task; /* id of the thread */
	double total;  /* weight with its callees; of instructions, as weight */
};

/* One function, instruction by instruction, or line by line: requested with sampler_set_annotate().
 */
struct profile_annotate {
	uint32_t function;   /* id */
	uint32_t code_of;    /* the containing function: the same, or the one it is inlined into */
	char name[160];	     /* of @function, if it was an address when requested; "" */
	char inside[160];    /* of @code_of, if it is another one; clean */
	double inside_share; /* and how much of the inlined one's samples is in there */
	struct profile_point *points; /* in order of event, vaddr, task; of @function alone */
	uint32_t nr_points;
	struct listing *listing; /* a reference; NULL while it is read, or see why */
	const char *why;	 /* static: why there is none; NULL */
};

/* One branch of the code, by the addresses of both ends; in the order of counts. */
struct profile_branch {
	uint32_t from, to;		 /* indices in functions */
	uint64_t from_offset, to_offset; /* in them; UINT64_MAX: not known */
	uint64_t count, mispredicted, predicted;
	uint64_t cycles; /* sum, since the branches before */
};

/* Samples of accesses to memory of one function and kind. */
struct profile_access {
	uint32_t function; /* index in functions */
	uint32_t kind;	   /* profile_access_kind() */
	uint64_t count;
	uint64_t latency; /* sum, in cycles */
};

/* Pack and unpack the kind of an access. */
static inline uint32_t profile_access_pack(const struct access_kind *kind)
{
	return (uint32_t)kind->op | (uint32_t)kind->level << 8 | (uint32_t)kind->miss << 16 |
	       (uint32_t)kind->tlb_miss << 17;
}

static inline struct access_kind profile_access_kind(uint32_t packed)
{
	return (struct access_kind){ .op = (enum access_op)(packed & 0xff),
				     .level = (enum access_level)(packed >> 8 & 0xff),
				     .miss = packed >> 16 & 1,
				     .tlb_miss = packed >> 17 & 1 };
}

/* Begins the part of a banner that says why the event is not cycles. */
#define PROFILE_NO_CYCLES "cpu-clock instead of cycles: "
#define PROFILE_NO_PMU	  "this machine has no PMU"

/* The last match of a rule of --trap. */
struct profile_trap {
	uint32_t seq;		   /* counts up; 0: there was none */
	uint64_t begin_ns, end_ns; /* of the slices that it matched */
	uint32_t nr;		   /* matches since the rules were last removed */
	char at[16];		   /* the time of the last one: "18:44:56" or "+2.5 s" */
	char what[160];		   /* "total:parse > 50 for 1s: 73.1%" */
};

/* Is a wait for work? */
enum profile_idle {
	PROFILE_BUSY,
	PROFILE_IDLE,	      /* in poll or for a condition variable, WAIT_LONG_NS and more */
	PROFILE_IDLE_KTHREAD, /* of a kernel thread, of any length */
};

struct profile {
	uint64_t seq;	      /* counts up */
	uint64_t time_ns;     /* CLOCK_REALTIME at the end of the tick, or of the recording; 0: not
				 known */
	uint64_t interval_ns; /* length of the tick */
	uint64_t running_ns;  /* since start or reset */
	uint64_t session_ns;  /* since start; 0: not known */
	uint64_t window_ns;   /* covered by the cells */
	enum profile_window window;
	/* A range of the past: its slices; 0: now. With figures of the counts only. */
	uint64_t past_begin_ns, past_end_ns;
	bool past_rates_differ; /* events[].want_hz is of its begin */
	uint64_t throttled;	/* times; of slices, which are of all CPUs together */
	struct profile_trap trap;
	bool past_merged;	    /* old slices are longer: --history-memory is used up */
	bool past_other_events;	    /* samples of other events in the range are left out */
	bool sampling;		    /* false: stopped (S) */
	pid_t focus;		    /* sampled alone, more closely; 0: no process is */
	bool target_gone;	    /* all target processes have exited */
	bool target_empty;	    /* the user has no process */
	enum call_graph call_graph; /* the next three: as it is sampled now */
	uint32_t stack_size;	    /* of a stack copy, in bytes; 0: none */
	enum profile_frames shown_frames;
	uint64_t ring_size;   /* of each CPU, in bytes; 0: a recording */
	uint64_t ring_wanted; /* size without a limit of locked memory */
	uint32_t nr_refused;  /* tasks of the target that are not sampled, */
	pid_t refused;	      /* one of them, and why: -errno */
	int refused_code;
	uint64_t max_hz, max_hz_top; /* kernel.perf_event_max_sample_rate: now, the highest seen */
	double rate_factor;  /* of the wanted rates: below 1 the governor holds them down, */
	double rate_ceiling; /* and not above this: more stalled the machine */
	bool rate_climbs;    /* it rises in steps */
	bool rate_capped;    /* because proftop used too much of all CPUs, without --max-overhead */
	bool starved;	  /* too little CPU time to read objects; the rates may be lower for it */
	char target[160]; /* "system", "pid 42", "user www-data", "command make" (clean text) */
	char banner[256]; /* one line: the degraded part and why, PROFILE_NO_CYCLES last; "" */
	struct {
		bool on;	/* a recording is written */
		bool failed;	/* and the disk is full, or alike */
		uint64_t bytes; /* of records in it */
	} recording;
	char status[256];    /* the answer to the last control; "" if none */
	uint32_t status_seq; /* changes when status does */

	struct profile_event events[EVENTS_MAX];
	uint32_t nr_events;
	struct profile_cpu *cpus;
	uint32_t nr_cpus;
	struct profile_cpu_event *cpu_events;  /* nr_cpus x nr_events; NULL: a recording */
	struct profile_account account;	       /* of the tick */
	struct profile_account account_total;  /* since start */
	uint64_t broken_by[PROFILE_NR_BROKEN]; /* of the tick */
	/* Ids of modules: where at least half of the stacks of that reason end. */
	uint32_t broken_in[PROFILE_NR_BROKEN];
	/* The module of the code with at least half of the guessed callers, */
	uint32_t guessed_in;
	bool guessed_in_jit; /* or they are of code generated at run time */
	uint64_t dropped_by[DROP_NR];
	struct profile_lang lang;
	uint64_t nr_nameless; /* of the counted ones: task table full, so [unknown] */
	/* Of the tick: names of threads renamed too often; their samples show another name. */
	uint64_t nr_names_dropped;
	/* Of the tick: programs of a process that executes too many; late samples show the next. */
	uint64_t nr_programs_dropped;
	/* Of the tick: children with older mappings of their parents, for all take too much memory.
	 */
	uint64_t nr_forks_shared;
	struct profile_waits waits; /* of the tick */
	/* The event with counts of PROFILE_LATENCY: its index + 1; 0: there are none. */
	uint32_t latency;
	struct procstat_pressure pressure; /* of the system; NAN: of a recording */
	struct profile_self self;
	struct profile_unwind unwind;
	double samples_per_s;
	uint64_t nr_places, nr_places_named;
	double window_samples, window_unnamed; /* of all cells; samples in code without a name */
	double window_no_stack;		       /* samples without a stack: in window_samples only */
	struct profile_images images;
	uint64_t nr_places_waiting; /* not looked at yet; the rest has no name */

	struct profile_function *functions;
	uint32_t nr_functions;
	struct profile_process *processes;
	uint32_t nr_processes;
	/* Their ancestors without samples; in no order. */
	struct profile_process *ancestors;
	uint32_t nr_ancestors;
	struct profile_task *tasks;
	uint32_t nr_tasks;
	double cpu_other_ns; /* CPU time in the window of tasks of processes without samples */
	bool cpu_known;	     /* CPU time of tasks is from clocks of the kernel, or from switches */
	struct profile_stack *stacks;
	uint32_t nr_stacks;
	uint8_t *stack_waits; /* by stack: enum wait_kind; NULL: none is of a wait */
	uint8_t *stack_idle;  /* by stack: enum profile_idle; NULL: all PROFILE_BUSY */
	uint32_t *frames;     /* indices in functions; inlined ones before their callers */
	/* Same number: indices in lines, or PROFILE_NO_LINE; NULL: all are. */
	uint32_t *frame_lines;
	uint32_t nr_frames;
	struct profile_line *lines;
	uint32_t nr_lines;
	bool has_source;	 /* one of the lines is in a file */
	struct safe_text *files; /* paths of source files */
	uint32_t nr_files;
	struct profile_count *counts;
	uint32_t nr_counts;
	struct profile_message *messages; /* in order of their first time */
	uint32_t nr_messages;
	struct profile_module *modules; /* in order of id */
	uint32_t nr_modules;
	/* Of a whole recording that has branch stacks, accesses to memory; else none. */
	struct profile_branch *branches;
	struct profile_access *accesses;
	uint32_t nr_branches, nr_accesses;
	double branches_all, accesses_all; /* counts, also of rows left out */
	struct profile_annotate *annotate; /* NULL: not requested */
	void *names;			   /* owns the texts: a text_arena, may be NULL */
	char *pool;		/* copies of texts that were clean already; may be NULL */
	atomic_uint nr_keepers; /* owners beside the first */
};

/* Add an owner: each calls profile_free(), on any thread. Return @p. */
struct profile *profile_keep(struct profile *p);
/* Free everything the profile owns, texts included, if this is the last owner. NULL is fine. */
void profile_free(struct profile *p);

/*
 * The heat strip: the past of a session as one row of columns, each a span of time, with the amount
 * of the selected samples in it. Made by the builder, handed over whole, freed by the UI. A grid
 * has the columns of each second below each other: 20 of 50 ms.
 */

#define STRIP_COLUMNS_MAX 1000
#define STRIP_FILTER_MAX  128
#define STRIP_GRID_ROWS	  20
#define STRIP_ALL	  UINT32_MAX

/* Bits: incidents in a column. */
enum strip_mark {
	STRIP_LOST = 1,
	STRIP_THROTTLED = 2,
	STRIP_RATE = 4,	  /* the rate was changed */
	STRIP_EVENTS = 8, /* other events since then */
	STRIP_TRAP = 16,  /* a rule of --trap matched */
	STRIP_RESET = 32, /* the counts were reset */
};

/* The name of a function, or of a task: without module and kind. */
struct strip_name {
	struct safe_text name, module;
	char kind; /* as profile_function.kind; 0: a task */
};

/* A filter by name, compiled and used by the builder. */
struct strip_matcher {
	void *(*make)(const char *text); /* NULL: no memory */
	bool (*finds)(const void *made, const struct strip_name *name);
	void (*free)(void *made);
};

/* The samples to show: of one event, and of all the rest. */
struct strip_query {
	uint32_t seq;	   /* of the query; copied to its strips */
	uint32_t columns;  /* 0: no strip */
	uint64_t span_ns;  /* the newest part of the past; 0: all */
	bool grid;	   /* each of @columns is a second */
	uint64_t until_ns; /* of a grid: its last second; 0: the newest */
	uint32_t event;	   /* index in the events of the newest profile */
	uint32_t process;  /* profile_process.id, or STRIP_ALL */
	uint32_t thread;   /* profile_task.id, or STRIP_ALL */
	uint32_t function; /* stacks with this profile_function.id, or STRIP_ALL */
	/* Stacks with a function that @matcher finds, and tasks. */
	char filter[STRIP_FILTER_MAX]; /* "": all */
	const struct strip_matcher *matcher;
	bool inverted;	 /* all others */
	bool only_tasks; /* compare the names of tasks alone */
};

struct strip_column {
	double peak; /* of the slice with most of the selected samples: their weight per second */
	uint64_t begin_ns, end_ns; /* of that slice; 0: no slice is in this column */
	uint32_t marks;
};

struct strip {
	uint64_t begin_ns, column_ns; /* column i is at begin_ns + i * column_ns */
	uint32_t nr;		      /* of a grid a multiple of STRIP_GRID_ROWS */
	bool grid;
	uint64_t first_ns, last_ns; /* all the past that is kept */
	uint64_t last_real_ns;	    /* CLOCK_REALTIME at last_ns; 0: a recording */
	uint32_t seq;		    /* of its query */
	bool answer;		    /* to a query; else the newest slices were added */
	bool merged;		    /* old slices are longer than 50 ms: the memory is used up */
	bool dropped;		    /* samples older than first_ns were counted */
	double max;		    /* the highest peak */
	struct strip_column columns[];
};

/* Return the index of the column of @time_ns, the nearest if it is outside. */
uint32_t strip_column_at(const struct strip *s, uint64_t time_ns);
/*
 * Find the next moment with much of the selected samples before @time_ns, or after it with @later:
 * a local maximum of at least half of the highest one and 1.5 times the mean. Return its column;
 * @nr: there is none.
 */
uint32_t strip_peak(const struct strip *s, uint64_t time_ns, bool later);
/* Return a copy of a query; malloc'ed, NULL: no memory. */
struct strip_query *strip_copy_query(const struct strip_query *q);
bool strip_same_query(const struct strip_query *a, const struct strip_query *b);

/*
 * Counts and tables that a profile is made from.
 *
 * Borrowed during assemble(). Runs on: the builder.
 */

/* Set in the id of a function that is a place; the rest is the place's id. */
#define ASSEMBLE_PLACE (1u << 31)

/* Elements of the last profile, that the next one starts with: arrays that grow leave holes. */
struct assemble_sizes {
	uint32_t functions, lines, frames; /* frames of places */
	uint32_t shown;			   /* frames of stacks */
};

struct assemble_input { /* all borrowed */
	const struct history_cell *counts;
	uint32_t nr_counts;
	const struct stacks *stacks;
	const struct places *places;
	const struct symbols *symbols;
	const struct maps *maps;
	const struct objects *objects;
	enum profile_frames shown_frames;
	uint32_t wait;				 /* the object of the kinds of waits */
	const uint32_t *wait_places;		 /* by enum wait_kind; NULL: no waits */
	const struct pairs *branches, *accesses; /* NULL: none */
	struct details *details;		 /* NULL: a recording */
	bool kept;				 /* names of --keep, without objects */
	struct assemble_sizes *sizes;		 /* NULL: not known */
};

/* The kind of a frame, in a stack with functions of languages. */
enum assemble_frame {
	ASSEMBLE_OTHER,
	ASSEMBLE_SCRIPT,      /* one of these functions */
	ASSEMBLE_INTERPRETER, /* its work counts for the function that it runs */
	ASSEMBLE_NAMELESS /* code made at run time: as that, if one of these two is its caller */
};

/* Return the kind of a frame. @symbol: of @place; NULL: it has none yet. */
enum assemble_frame assemble_frame_of(const struct assemble_input *in, const struct place *place,
				      const struct symbol *symbol);

/* A profile folded into rows: functions, processes. Pure; any thread. */

/* The samples that count. */
struct fold_filter {
	uint32_t event;	      /* index in events */
	uint32_t also;	      /* a second event, in the same unit, as index + 1; 0: none */
	uint32_t process;     /* index in processes, or UINT32_MAX: all */
	uint32_t task;	      /* index in tasks, or UINT32_MAX: all */
	const uint8_t *tasks; /* borrowed; by index in tasks: 0 does not count; NULL: all do */
	/* Borrowed; by index in processes: processes with equal values are one. NULL: none are. */
	const uint32_t *groups;
	bool hide_kernel; /* leave kernel functions out (their samples are in the total) */
	bool hide_user;
	uint8_t hide_idle; /* waits of this enum profile_idle and above do not count; 0: all do */
};

static inline bool fold_passes_task(const struct profile *p, const struct fold_filter *f,
				    uint32_t task)
{
	return (f->task == UINT32_MAX || task == f->task) &&
	       (f->process == UINT32_MAX || p->tasks[task].process == f->process) &&
	       (!f->tasks || f->tasks[task]);
}

static inline bool fold_hides(const struct profile *p, uint8_t hide_idle, uint32_t stack)
{
	return hide_idle && p->stack_idle && p->stack_idle[stack] >= hide_idle;
}

/* Return whether the count passes, its task not considered. */
static inline bool fold_passes_kind(const struct profile *p, const struct fold_filter *f,
				    const struct profile_count *c)
{
	return (c->event == f->event || (f->also && c->event == f->also - 1)) &&
	       !fold_hides(p, f->hide_idle, c->stack);
}

static inline bool fold_passes(const struct profile *p, const struct fold_filter *f,
			       const struct profile_count *c)
{
	return fold_passes_kind(p, f, c) && fold_passes_task(p, f, c->task);
}

struct fold_row {
	uint32_t function;  /* index in functions */
	double self, total; /* samples; recursion counted once */
	double self_weight, total_weight;
	uint32_t task;	       /* the task with the largest share (index in tasks) */
	uint32_t nr_processes; /* how many processes it ran in */
	uint32_t nr_tasks;     /* how many threads */
	bool mixed;	       /* not all of these are of one group */
};

struct fold_functions {
	struct fold_row *rows; /* unsorted */
	uint32_t nr_rows;
	double count, weight; /* of all samples that passed the event and process filter */
};

struct fold_process_row {
	uint32_t process; /* index in processes */
	double count, weight;
	double cpu_ns; /* CPU time, where profile.cpu_known */
	uint32_t nr_tasks;
	uint32_t top_function; /* most self weight; UINT32_MAX: none */
};

struct fold_processes {
	struct fold_process_row *rows; /* unsorted */
	uint32_t nr_rows;
	/* By the value of a group: its function with most self weight, as in rows; NULL: no groups.
	 */
	uint32_t *group_tops;
	double count, weight;
};

/* Sums of one task. */
struct fold_task {
	double count, weight;
	double kernel;	       /* weight of samples in the kernel */
	uint32_t top_function; /* most self weight; UINT32_MAX: none */
};

/* 0 or -ENOMEM. Free with the matching fini. */
int fold_functions(const struct profile *p, const struct fold_filter *f,
		   struct fold_functions *out);
void fold_functions_fini(struct fold_functions *out);
int fold_processes(const struct profile *p, const struct fold_filter *f,
		   struct fold_processes *out);
void fold_processes_fini(struct fold_processes *out);
/* Sum the samples of the events of @f (and not of idle waits) by task, into @tasks (one entry per
 * task). */
void fold_tasks(const struct profile *p, const struct fold_filter *f, struct fold_task *tasks);
/*
 * Sum the CPU time of the tasks that pass by process, in ns, into @processes (one entry per
 * process), where profile.cpu_known. Return the sum of all, without a filter also of processes
 * that have no samples.
 */
double fold_cpu(const struct profile *p, const struct fold_filter *f, double *processes);
/*
 * Sum the time of each task by kind, in nanoseconds: running, and waits by kind, into
 * @tasks (WAIT_NR of each task, by enum wait_kind). Zero where waits are not measured. @hide_idle:
 * as in a filter; hidden waits are under WAIT_NO.
 */
void fold_waits(const struct profile *p, uint8_t hide_idle, double *tasks);
/*
 * Find the hottest source line of each function (index in lines, or PROFILE_NO_LINE), into @lines
 * (one entry per function). 0 or -ENOMEM.
 */
int fold_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines);
/* The same; a function without self samples has the line of its heaviest count as a caller.
 */
int fold_all_lines(const struct profile *p, const struct fold_filter *f, uint32_t *lines);

#define MESSAGES_MAX 64
/* A larger share of truncated stacks in the window is a warning, and fixed by --stack-size=auto. */
#define MESSAGES_TRUNCATED_MAX 0.02
#define MESSAGES_PARTS	       8

struct messages {
	struct profile_message items[MESSAGES_MAX];
	uint32_t nr, next_id;
	bool recorded;		      /* of a recording: nothing can be changed */
	bool goes_first;	      /* the sampler threads have a real-time priority */
	const char *remark;	      /* borrowed: a note of the caller; NULL: none */
	struct profile_message spare; /* used when the table is full */
	uint64_t now_ns, before_ns; /* session time of the profile in hand, and of the one before */
	/* The accounts of the last window, in parts; @part is the one being filled. */
	struct messages_part {
		uint64_t span_ns;
		struct profile_account account;
	} parts[MESSAGES_PARTS];
	unsigned int part;
	struct profile_account window; /* their sum */
	uint64_t ring_refused;	       /* a size that the kernel refused; 0: none */
	char banner[256];	       /* the last one noted */
	uint32_t nr_trapped;	       /* matches of traps that were noted */
};

/* Begin the window again: older samples were taken in another way. */
void messages_restart(struct messages *n);
/*
 * Return the share of the window's stacks that are truncated and would be longer with larger
 * copies; -1: too few samples.
 */
double messages_truncated(const struct messages *n);

/*
 * Counts by id -> functions, modules, processes, tasks, stacks, frames and counts of a profile,
 * with copies of their names. A profile has only entries that its counts refer to, with indices in
 * order of id; counts are in order of their stacks. A place without a symbol becomes a function
 * "dso+0x…" (or the address alone), with ASSEMBLE_PLACE set in its id and kind '?'. A count without
 * a stack (count.h), or with an unreadable one, has a stack of zero frames. A process has the
 * name of its main thread if that was sampled, else of any of its threads. With debug information a
 * place becomes several frames: the functions inlined there, then the outer one. Runs on: the
 * builder, a registered urcu-qsbr thread; all others go on adding to the tables.
 */

/* Fill this part of @p, which is empty. 0, or -ENOMEM: it is still empty. */
int assemble(struct profile *p, const struct assemble_input *in);

/*
 * A profile folded into a call tree, and into the callers and callees of one
 * function. Pure; any thread.
 *
 * In a tree the sums are exact: total = self + hidden + the children's totals.
 * Frames that the filter hides are left out of a stack; its weight goes to the nearest frame that
 * is shown.
 */

#define FOLD_NONE UINT32_MAX

enum fold_order {
	FOLD_BY_WEIGHT, /* hottest first; equal ones by function id */
	FOLD_BY_ID,	/* by function id: the same from profile to profile */
};

/* The first level below the root. */
enum fold_first {
	FOLD_FUNCTIONS,
	FOLD_PROCESSES, /* not bottom-up: functions, then */
	FOLD_TASKS,
};

struct fold_tree_config {
	struct fold_filter filter;
	enum fold_order order;
	bool bottom_up; /* below a function its callers, not its callees */
	enum fold_first first;
	/*
	 * By index in tasks (FOLD_TASKS) or processes (FOLD_PROCESSES), the one that represents its
	 * group; NULL: no groups. FOLD_PROCESSES: of each, the id of the group.
	 */
	const uint32_t *leaders;
	const uint64_t *ids;
	bool fold_recursion; /* back to a function that is on the path: back to its node */
	/* Share, 0..1: lighter nodes are only summed in @hidden. Not 0: more than 2^20 nodes raise
	 * it. */
	double limit;
};

/* Node 0 is the root. Children lie side by side, in order. */
struct fold_tree_node {
	uint32_t function;	      /* index in functions; FOLD_NONE: root, process or task */
	uint32_t process;	      /* index in processes; FOLD_NONE: root or function */
	uint32_t task;		      /* index in tasks; FOLD_NONE: no task */
	uint32_t parent, child, next; /* nodes; FOLD_NONE: none */
	uint32_t nr_children;
	uint32_t nr_hidden;	    /* children under the limit */
	uint32_t depth;		    /* of the root: 0 */
	double self, total, hidden; /* weight; hidden: of children under the limit */
	double count;		    /* samples, of all */
};

struct fold_tree {
	struct fold_tree_node *nodes;
	uint32_t nr_nodes;
	double count, weight; /* of all samples that passed the event and process filter */
};

/* 0 or -ENOMEM. Free with the fini. */
int fold_tree(const struct profile *p, const struct fold_tree_config *config,
	      struct fold_tree *out);
void fold_tree_fini(struct fold_tree *out);

struct fold_neighbour {
	uint32_t function; /* index in functions; FOLD_NONE: none, the stack ends there */
	double count, weight;
};

/*
 * The callers and callees of a function, each sample counted once: its caller
 * is that of the outermost call, its callee that of the innermost. So the
 * callers sum to the total, and self and callees do.
 */
struct fold_callers {
	struct fold_neighbour *callers, *callees; /* hottest first; equal ones by id */
	uint32_t nr_callers, nr_callees;
	double self, total;	      /* weight */
	double count;		      /* samples with the function on the stack */
	double recursive;	      /* weight of the stacks that have it more than once */
	uint32_t depth_max;	      /* how often a stack has it at most */
	double all_count, all_weight; /* of all samples that passed the event and process filter */
};

/* Find callers and callees of functions[@function]. 0 or -ENOMEM. Free with the fini. */
int fold_callers(const struct profile *p, const struct fold_filter *f, uint32_t function,
		 struct fold_callers *out);
void fold_callers_fini(struct fold_callers *out);

/* The rules that make messages of a profile. Runs on: the builder. */

/* Apply all rules to @p, and give it a copy of all messages. @now_ns: since the session's start. */
void messages_apply(struct messages *n, struct profile *p, uint64_t now_ns, uint64_t window_ns);

/*
 * Ratios of events that are sampled together, under the names of perf's metrics: instructions per
 * cycle, miss rates, the top-down method's level 1. Pure; any thread.
 */

#define RATIOS_MAX 4 /* shown of one profile */

/* scale * (part - minus) / (whole + plus); the names are of events. */
struct ratio {
	const char *key;   /* of perf: "insn_per_cycle" */
	const char *title; /* of a column, and in the header: "IPC" */
	const char *help;
	const char *part, *minus, *whole, *plus; /* @minus and @plus may be NULL */
	double scale;
	uint8_t digits; /* behind the point */
};

/* A metric that the events of a profile give. */
struct ratio_use {
	const struct ratio *ratio;
	uint8_t part, minus, whole, plus; /* indices in events; RATIO_NONE: none */
};

/* Find the metrics of these events, the first RATIOS_MAX of the table. Returns how many. */
uint32_t ratios_find(const struct profile_event *events, uint32_t nr,
		     struct ratio_use uses[static RATIOS_MAX]);
/* Return whether event @index is part of one of @uses. */
bool ratios_has_event(const struct ratio_use *uses, uint32_t nr, uint32_t index);
/* Return the metric of the tick, by the counters of all CPUs. NAN: not known. */
double ratios_of_tick(const struct profile *p, const struct ratio_use *use);
/*
 * Compute the metrics of each function, of the samples in the function itself that pass @f, under
 * any event: @values[function * RATIOS_MAX + use]. NAN: too few samples, or none.
 */
void ratios_fold(const struct profile *p, const struct fold_filter *f, const struct ratio_use *uses,
		 uint32_t nr, double *values);
/* Set the counts of the events to the sums over the profile's samples: a recording has no counters.
 */
void ratios_count_samples(struct profile *p);

/*
 * Slices and tables -> a heat strip. The amount of each slice is computed once for a query and kept
 * with the slice, so that a strip costs no more than the slices that are new.
 *
 * Runs on: the builder.
 */

#define STRIP_NO_EVENT 255

/* Which samples count for a query, by id: 0 not known yet, 1 no, 2 yes. */
struct strip_filter {
	struct strip_query *query;		  /* owned; NULL: none */
	uint32_t seq;				  /* of the query; kept with each computed slice */
	uint8_t *stacks, *places, *tasks, *names; /* names: of tasks */
	uint32_t nr_stacks, nr_places, nr_tasks, nr_names;
	void *made;	   /* the filter of the query, by its matcher; NULL: none */
	uint32_t of;	   /* stacks_serial() of the tables that these ids are of; 0: none */
	uint64_t nr_named; /* places with a name then */
};

void strip_filter_fini(struct strip_filter *f);
/* Set the query, which is taken over. */
void strip_filter_set(struct strip_filter *f, struct strip_query *query);

struct strip_input {
	struct slices *slices;
	const struct assemble_input *tables; /* without counts */
	const uint8_t *events; /* by set of events: the slot of the queried event, or NO_EVENT */
	uint32_t nr_events;
	uint64_t nr_named; /* places */
};

/* Make the strip of the query; malloc'ed. NULL: no query, no slices or no memory. */
struct strip *strip_make(struct strip_filter *f, const struct strip_input *in);

#endif

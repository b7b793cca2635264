/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event names, and open events: how often, where and with which rights.
 *
 * The caller owes: names in perf's syntax (perf-list(1)); changes by one thread, the builder.
 *
 * The room does: parses names by the kernel's description, opens a sample ring and a side-band ring
 * for each CPU, changes rate, sizes and targets while they run, finds missing rights (--check).
 *
 * Not for: reading the rings (sampler/hot).
 *
 * Parsing reads the kernel's description of its events (/sys/bus/event_source, tracefs) and, for
 * probes by symbol, the file named. Any thread.
 */
#ifndef SAMPLER_EVENT_EVENT_H
#define SAMPLER_EVENT_EVENT_H

#include <linux/perf_event.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

struct counters;
struct perf_event_attr;
struct perf_event_header;
struct pollfd;
struct procstat;

/* One event as it is requested: type, levels, rate, group. */

#define EVENT_NAME_MAX 256
#define EVENT_TEXT_MAX 256
#define EVENTS_MAX     8 /* sampled at the same time */

struct event {
	char name[EVENT_NAME_MAX]; /* as requested, modifiers included */
	uint32_t type;		   /* PERF_TYPE_* */
	uint64_t config, config1, config2;
	uint64_t config3, config4; /* of newer kernels: pmu.c */
	bool user, kernel, hv;	   /* levels that are counted */
	bool host, guest;	   /* modifiers H, G; the host alone by default */
	uint8_t precise;	   /* precise_ip, 0-3 */
	bool precise_max;	   /* modifier P: as precise as this machine can, precise at most */
	bool clock;		   /* cpu-clock, task-clock: periods are nanoseconds */
	bool wait;		   /* waits: exact times of tasks, with stacks of switches */
	bool hardware;		   /* needs a PMU */
	uint32_t bp_type;	   /* HW_BREAKPOINT_*; address and length are config1, config2 */
	uint32_t group;		   /* 0: none; members stand side by side, their leader first */
	bool read;	 /* "{a,b}:S": the leader's samples carry the counts of all members */
	bool counted;	 /* a member that takes no samples itself: all but one */
	uint64_t period; /* of "name/period=1000/"; 0: by rate */
	double hz;	 /* of "name/freq=99/"; 0: the session's rate */
	char label[32];	 /* "cpu/event=0x3c,name=mine/"; "": none */
	char target[EVENT_TEXT_MAX]; /* of a probe: the file or kernel function; config1 points here
				      */
	char filter[EVENT_TEXT_MAX]; /* tracepoints: as in perf record --filter; "": none */
};

/*
 * Which share of the wanted rate to sample with: with --max-overhead to keep our cost and the
 * samples lost below their limits, without it to leave the CPUs to others, and always so that the
 * machine can run other work. Pure; the builder's.
 */

/* No rate up to this one delays ticks. */
#define GOVERNOR_STALL_HZ 10000
/* Without --max-overhead: the most that proftop may use over GOVERNOR_CAP_NS, in percent of all
 * CPUs; */
#define GOVERNOR_CAP_PCT 25

/* Why the factor has changed. */
enum governor_why {
	GOVERNOR_COST,	/* that of the last step is above or well below the limit */
	GOVERNOR_LOST,	/* too many samples were lost */
	GOVERNOR_FIXED, /* a lower rate did not save what it should: it is as before */
};

struct governor {
	double max_pct;	      /* of one CPU; 0: off */
	double least;	      /* the lowest factor because of the cost */
	bool is_cap;	      /* max_pct is that of GOVERNOR_CAP_PCT */
	bool capped;	      /* the factor is lower because of that */
	double factor;	      /* of the wanted rate, the ceiling at most */
	double ceiling;	      /* 1, or the highest that did not stall the machine */
	unsigned int starved; /* ticks in a row without the CPU time to read symbols */
	unsigned int fed;     /* ticks in a row with it, since */
	bool hungry;	      /* the factor is lower because of that */
	bool climbs;	      /* rises in steps to a rate above GOVERNOR_STALL_HZ */
	double fast;	      /* the factor of GOVERNOR_STALL_HZ; 1: no climb */
	double interrupts;    /* the part of a CPU that they take now; 0: not measured */
	unsigned int late;    /* ticks in a row that were much too late */
	unsigned int over;    /* steps in a row above the limit */
	uint64_t over_ns;     /* time in a row above the cap */
	unsigned int calm;    /* steps in a row well below the limits */
	double from; /* the factor before the last lower one, while the cost is too high; 0: none */
	double from_pct;       /* and the cost then */
	enum governor_why why; /* of the last change */
	double pct, loss;      /* cost and part of the samples lost, of the last step */
	unsigned int fixed;    /* steps for which the factor is not lowered: it did not help */
	double cost_ns;	       /* CPU time since the last step */
	uint64_t span_ns, taken, lost;
};

/*
 * Figures of /proc: how busy each CPU is, the cost of proftop itself, the kernel's limits for perf
 * events.
 *
 * One thread at a time (the builder). Missing or odd files give zeros.
 */

/* @root is put before /proc ("" but in tests). 0, or -errno with a sentence: no /proc. */
int procstat_new(struct procstat **out, const char *root, struct err *e);
void procstat_free(struct procstat *p);
/* Once a tick: read /proc/stat. 0 or -errno (the old values are kept). */
int procstat_update(struct procstat *p);
/* A CPU between the last two updates: shares of the time, 0..1. */
struct procstat_cpu {
	double busy;	      /* neither idle nor waiting for I/O */
	double kernel, steal; /* parts of @busy: of the kernel and interrupts; taken by the host */
	double tasks_ns; /* of tasks, in all updates: neither idle, nor of interrupts or the host */
	bool online;	 /* at the last update; if not, the shares are 0 */
};
struct procstat_cpu procstat_cpu(const struct procstat *p, int cpu);

/* How much of the time some task waited, 0..1 over the last ten seconds, from /proc/pressure. */
struct procstat_pressure {
	double cpu, io, memory;
};

/* At the last update. Zeros if the kernel has no such figures. */
struct procstat_pressure procstat_pressure(const struct procstat *p);
/* CPU of this process since the last call, in percent of one CPU, and its resident memory. */
void procstat_self(struct procstat *p, double *cpu_pct, uint64_t *rss_kb);
/* kernel.perf_event_max_sample_rate now; 0: not readable. */
uint64_t procstat_max_sample_rate(const struct procstat *p);
/* One number of /proc/sys/kernel. 0, -errno, or -EINVAL if it is none. Any thread. */
int procstat_sysctl(const char *root, const char *name, long *value);
/* Return whether proftop is in another PID namespace than the first: see pid_namespaces(7). */
bool procstat_pid_namespace(const char *root);

/*
 * The cgroup that is sampled: its folder in the hierarchy that perf events are of.
 *
 * Set-up, then the builder.
 */

#define TARGET_CGROUP_MOUNTS "/proc/self/mounts"

/*
 * Open the folder of @name: a path as it is written, or one below the mount of that hierarchy, by
 * @mounts. An fd, or -ESRCH with a message. @whole: it is the root, with every task.
 */
int task_list_open_cgroup(const char *mounts, const char *name, bool *whole, struct err *e);

/* Lists of tasks and of CPUs, read from /proc and /sys. Any thread. */

/* All threads of the processes that exist now. Returns nr, *tids malloc'ed; -ESRCH with a sentence.
 */
int task_list_threads(const pid_t *pids, uint32_t nr, pid_t **tids, struct err *e);
/* The threads of all these tasks' processes, and of their descendants. Returns nr, as above. */
int task_list_tree(const pid_t *tids, uint32_t nr, pid_t **out);
/* Read a small file of /proc/@pid as a string, cut at @size. Return 0 or -errno; -ENODATA: empty.
 */
int task_list_read(pid_t pid, const char *name, char *text, size_t size);
/* Set the message for a process that is not there. Return -ESRCH. */
int task_list_no_process(pid_t pid, struct err *e);
/* All tasks of a real uid. */
int task_list_user(uid_t uid, pid_t **tids, struct err *e);
int task_list_online_cpus(int **cpus, struct err *e);

/* Tasks in order of their tids, for many look-ups. One owner. */

struct task_set {
	pid_t *tids;
	uint32_t nr;
};

/* Copy @tids, in any order. */
void task_set_init(struct task_set *s, const pid_t *tids, uint32_t nr);
void task_set_fini(struct task_set *s);
bool task_set_has(const struct task_set *s, pid_t tid);
/* Find the place of @tid in a list, for few look-ups; @nr: it is not there. */
uint32_t task_find(const pid_t *tids, uint32_t nr, pid_t tid);

/* The files of the kernel's tracepoints. Any thread. */

enum tracefs_state {
	TRACEFS_MISSING,  /* not mounted, and no right to open it without a mount */
	TRACEFS_MOUNTED,  /* mounted and readable */
	TRACEFS_DETACHED, /* readable by a mount of our own that no path leads to */
	TRACEFS_CLOSED,	  /* mounted, but not readable by this user */
	TRACEFS_LOCKED,	  /* left empty by the kernel: lockdown */
};

/* Open the folder "events" of tracefs: *@fd, the caller's to close; -1 if it is not readable. */
enum tracefs_state tracefs_open(const char *root, int *fd);

/*
 * Machines with cores of several types, each with a PMU ("cpu_core" and "cpu_atom",
 * "armv8_cortex_a53" and "armv8_cortex_a72"), as /sys describes them. Reading: any thread.
 */

#define CORE_TYPES_MAX 8
#define CORE_CPUS_MAX  8192

struct core_type {
	char name[24];	   /* of the PMU, without "cpu_" or "armv8_": "core", "cortex_a53" */
	uint32_t pmu_type; /* PERF_TYPE of its events */
	uint64_t cpus[CORE_CPUS_MAX / 64];
};

struct core_types {
	uint32_t nr; /* 0: all cores are alike */
	struct core_type types[CORE_TYPES_MAX];
};

/* Read the types below @root ("" but in tests). */
void core_types_read(struct core_types *t, const char *root);

/* Shared by counters and the slots of their events: the system calls, one CPU, one value. */

/* System calls behind one seam, so that tests can fail the n-th of them. */
struct counters_sys {
	int (*perf_open)(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
			 unsigned long flags);
	int (*ioctl)(void *ctx, int fd, unsigned long request, uint64_t arg);
	ssize_t (*read)(void *ctx, int fd, void *buf, size_t size);
	int (*ring_open)(void *ctx, struct ring *ring, int fd, size_t size);
	int (*close)(void *ctx, int fd);
	int (*poll)(void *ctx, struct pollfd *fds, nfds_t nr); /* never waits */
	/* task_list_tree(), or the like: the tasks followed now. */
	int (*list_tasks)(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out);
	bool (*exists)(void *ctx, pid_t tid); /* never waits; called for busy tasks alone */
	/* waking_event(), or the like; NULL: there is none. */
	int (*waking)(struct event *ev);
	void *ctx;
};

struct counters_cpu {
	int cpu;
	struct ring data; /* poll(2) on data_fd: wakes at a watermark of a quarter */
	struct ring side; /* poll(2) on side_fd: wakes at an eighth */
	int data_fd, side_fd;
	uint64_t side_ns; /* how long the side-band event had been on, when it was last read */
	bool ended;	  /* the events of this CPU ended, and that was reported */
};

/* Since open, for one event on one CPU, over all tasks. */
struct counters_value {
	uint64_t count; /* of the event (ns for clocks) */
	uint64_t enabled_ns, running_ns;
	uint64_t lost; /* PERF_FORMAT_LOST (kernel 6.0), else 0: count LOST records */
};

/*
 * proftop --check: the rights and limits on this machine, and how to fix them.
 *
 * Facts are read once, findings are made of them alone. Any one thread.
 */

/* In order: the worst finding is the state of the whole. */
enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE,	 /* would be nice to have */
	DOCTOR_DEGRADED, /* part of the data is missing */
	DOCTOR_NOTHING,	 /* nothing can be sampled at all */
};

/* Facts of this machine, for this user. An unreadable value is -1. */
struct doctor_facts {
	uint64_t caps; /* effective */
	long paranoid, kptr_restrict, mlock_kb, max_rate;
	long files_hard; /* limit of open files */
	long nr_cpus;
	int seccomp;		     /* 0 none, 2 filter */
	int system_code;	     /* 0 or -errno of a clock on every process, with the kernel */
	int system_user_code;	     /* of every process, user code */
	int own_code, own_user_code; /* of our own process */
	int cycles_code;	     /* cycles of our own process, user code */
	bool kernel_symbols;	     /* /proc/kallsyms has addresses */
	enum tracefs_state tracefs;
	char lockdown[20]; /* "none", "integrity", "confidentiality"; "": not known */
	bool debug_files, debuginfod;
	bool other_processes; /* /proc shows other users' processes */
	long ptrace_scope;    /* of Yama: 0 to 3; -1: without it */
	int realtime_code;    /* 0 or -errno of a real-time priority */
	int sandbox_code;     /* 0 or -errno of a reader of foreign files */
	char release[64];     /* of the kernel */
	bool user_namespace;  /* its root has no rights outside */
	bool pid_namespace;   /* processes outside have no pid, so no names and no stacks */
	long memory_mb;	      /* limit of its cgroup; 0: none */
	long cpu_pct;	      /* 100: as much as one CPU gives; 0: no limit */
	uint32_t nr_jits;     /* processes with JIT code without names, the first of them */
	struct doctor_jit {
		pid_t pid;
		char program[32]; /* name of the process, clean */
		const char *fix;  /* static words: the option of its runtime */
	} jits[3];
};

struct doctor_finding {
	enum doctor_level level;
	char topic[24];
	char says[200];
	char fix[300]; /* least power first; "" where nothing is to be done */
};

#define DOCTOR_FINDINGS_MAX 32

/* Read the facts below @root ("" but in tests) and try to open events. */
void doctor_read(struct doctor_facts *f, const char *root);
/* Returns how many findings there are, in a fixed order. Pure. */
uint32_t doctor_judge(const struct doctor_facts *f, struct doctor_finding *out);
enum doctor_level doctor_worst(const struct doctor_finding *findings, uint32_t nr);

/*
 * Parse "cycles", "cpu-clock:u", "cycles:kpp", "r1a8", "cpu/event=0x3c,umask=1/u", "msr/tsc/",
 * "cycles/freq=99/", "sched:sched_switch", "mem:0x1000/4:rw", "uprobe:/bin/sh:main+4:u",
 * "kprobe:do_exit", "pfm:RETIRED_INSTRUCTIONS". 0 or -EINVAL with a sentence.
 */
int event_parse(struct event *ev, const char *text, struct err *e);
/*
 * Add the events of a list by commas to @events; a comma between slashes belongs to the event. With
 * groups: "{cycles,instructions}:u", "{cycles,cache-misses}:S"; "topdown" is one of them. 0 or
 * -EINVAL with a sentence.
 */
int event_parse_list(struct event *events, uint32_t *nr, uint32_t max, const char *text,
		     struct err *e);
/* Report whether parsing this list reads a file that it names: a program with a probe. */
bool event_list_reads_file(const char *text);
/*
 * Replace the modifiers of @ev, which was parsed, by "u", "kpp" or ""; its group and filter remain.
 * No file that it names is read again. 0 or -EINVAL with a sentence.
 */
int event_change_modifiers(struct event *ev, const char *modifiers, struct err *e);
/* After events were added or taken out: groups of one are none, the first of a group leads it. */
void event_groups_tidy(struct event *events, uint32_t nr);
/* Filter the samples of a tracepoint, as in "prev_pid == 0". -EINVAL with a sentence: not for this
 * one. */
int event_set_filter(struct event *ev, const char *filter, struct err *e);
/*
 * Return whether both are the same event, under any name and in any group. Of the same name the
 * rate may differ; of different names a rate in the name must be the same.
 */
bool event_same(const struct event *a, const struct event *b);
/* Return whether two lists have the same events in the same order. */
bool event_same_list(const struct event *a, uint32_t nr_a, const struct event *b, uint32_t nr_b);

/* The catalogue, for the picker and --list-events; ends with a NULL name. */
struct event_info {
	const char *name;  /* canonical, as perf stat prints it: "cycles" */
	const char *alias; /* the other name that is taken: "cpu-cycles"; may be NULL */
	const char *group; /* "hardware", "software", "cache" */
	const char *description;
};

const struct event_info *event_catalogue(void);
/* Return the catalogue's entry for @ev, under any name and modifiers; NULL for raw events.
 */
const struct event_info *event_info(const struct event *ev);

/*
 * All that this machine has: the catalogue, the PMUs' events, the tracepoints ("tracepoints") last.
 * Ends with a NULL name. Reads some thousand names: not for the main thread.
 */
struct event_list {
	struct event_info *infos;
	uint32_t nr;
	char **texts; /* owns the names that are not the catalogue's */
	uint32_t nr_texts;
};

void event_list_init(struct event_list *l, const char *root);
void event_list_fini(struct event_list *l);

#define EVENT_GROUP_TRACEPOINTS "tracepoints"
/* Waiting time: the records of all switches, and the stacks of some. */
#define EVENT_WAITS "waits"

/*
 * Can it be opened here, now (pid, cpu as in perf_event_open(2))? 0 or -errno.
 * Opens and closes one event: not for the main thread.
 */
int event_probe(const struct event *ev, pid_t pid, int cpu);
/* Return the meaning of an errno of perf_event_open in a few words. */
const char *event_errno(int code);

/*
 * The event of wake-ups, sched:sched_waking: with it the time from a wake-up to the switch in is
 * run-queue time, not sleep. Any thread; reads tracefs.
 */

#define WAKING_NAME "sched:sched_waking"
/* The offset of the woken task in the bytes of a sample, on all kernels since 2.6.30. */
#define WAKING_PID_OFFSET 24

/* The fields in the id block of side-band records. */
#define ATTR_SIDE_TYPE                                                                             \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* The call that was refused. */
struct limits_refusal {
	char event[EVENT_NAME_MAX]; /* "": the events that every session needs */
	bool kernel;		    /* kernel code was requested */
	bool filter;		    /* the filter was refused, not the event */
	bool hardware, probe;	    /* as in struct event; a uprobe or kprobe */
	bool pmu;		    /* ENOENT: this machine can count cycles */
	bool cgroup;		    /* ENOENT: the event opens without the cgroup */
	pid_t tid;		    /* -1: the whole CPU; 0: there was no task at all */
	int cpu;
	uint32_t nr_fds;    /* open by us at that moment */
	uint32_t nr_wanted; /* that the whole session takes */
};

/* * Give up the capabilities that proftop does not use, in this thread and its children. For good,
 * unless there is a @command to start: the kernel ends the sampling of a process that has more
 * after its exec.
 */
void limits_drop_caps(bool command, bool replay);

/* Threads that open no events and read no other process. */
enum limits_thread {
	LIMITS_UI,	/* and those it starts later: files, servers, folding */
	LIMITS_SAMPLER, /* decodes records and unwinds */
};

/* Give up, for good, the capabilities that this thread does not need. */
void limits_drop_thread_caps(enum limits_thread thread);
/* Return 0, or -EINVAL with a message for a rate not valid or above the kernel's limit. */
int limits_check_rate(double hz, struct err *e);

/*
 * All perf events of a session: opened, steered, read, closed.
 *
 * Per CPU one data ring, shared by every sampling event of that CPU
 * (PERF_EVENT_IOC_SET_OUTPUT onto a leader), and one side-band ring fed by
 * dummy events (MMAP2, COMM, FORK, EXIT), opened first, so that a flood of
 * samples never loses a mapping. The data ring belongs to a never-counting
 * dummy leader, so that sampling events can be opened and closed under it.
 * For a target of tasks the same is done once per task and CPU, inherited by
 * children. All events use CLOCK_MONOTONIC.
 *
 * Threads: everything is called by one thread (set-up, then the builder), but the rings, which
 * belong to that CPU's sampler thread (side-band rings: to the holder of the drain lock), and
 * counters_event_of(), lock-free.
 */

extern const struct counters_sys counters_kernel;

struct counters_config {
	const int *cpus; /* online ones to sample */
	uint32_t nr_cpus;
	const pid_t *tids; /* tasks, their future threads and children; NULL: every task */
	uint32_t nr_tids;
	uint32_t nr_named; /* one of the first @nr_named tasks has to be permitted; 0: any task */
	bool no_inherit;   /* these tasks alone */
	bool may_be_empty; /* no task is no error: see counters_add_tasks() */
	int cgroup_fd;	   /* with cgroup: only its tasks; tids is NULL */
	bool cgroup;
	bool enable_on_exec; /* the one tid is a command about to exec */
	const struct event *events;
	uint32_t nr_events;
	double hz; /* ignored if period */
	uint64_t period;
	uint32_t stack_size; /* 0: no stack copies, but the kernel's chains of user frames */
	bool no_chain;	     /* without stack copies: no chains either */
	bool deferred; /* chains of user frames at the return to user space, in the side-band */
	uint64_t regs_mask;
	size_t ring_size; /* 0: choose; the same on all CPUs, halved together on EPERM */
	bool exclude_idle;
	const struct core_types *cores; /* NULL: all cores are alike; copied */
	bool data_maps;			/* also mappings without code: perf's unwinder needs them */
	/* A BPF program that runs at each sample, where it can, and wakes a reader, but not at
	 * samples with a period of 1 (waits); 0: none. */
	int program_fd;
};

/*
 * Open everything, disabled; but side-band events count from here on, and enable_on_exec enables at
 * the exec without counters_enable(). Raises RLIMIT_NOFILE to the hard limit first. A task that is
 * gone or forbidden is left out if there are others (counters_nr_refused). The first two events of
 * a CPU belong to this process itself, so they never hang up while it lives.
 * 0 or -errno with the three-line sentence (EACCES/EPERM: the missing permission and the ways to
 * get it, from least to most power; EMFILE with numbers; -ENOLCK, EPERM from mmap, names
 * kernel.perf_event_mlock_kb).
 */
int counters_open(struct counters **out, const struct counters_config *config,
		  const struct counters_sys *sys, struct err *e);
void counters_close(struct counters *c);
/* Unmap the data rings, after their readers have ended: later samples are lost. */
void counters_unmap(struct counters *c);
uint32_t counters_nr_cpus(const struct counters *c);
struct counters_cpu *counters_cpu(struct counters *c, uint32_t index);
/* The layouts of the records in the data rings and in the side-band rings. */
const struct record_layout *counters_layout(const struct counters *c);
/* Return the layout of this sample: samples of groups that are read also have counts. Any thread.
 */
const struct record_layout *counters_layout_of(const struct counters *c,
					       const struct perf_event_header *h);
const struct record_layout *counters_side_layout(const struct counters *c);
size_t counters_ring_size(const struct counters *c);
size_t counters_ring_wanted(const struct counters *c); /* without limits of locked memory */
/* Return the type of the core of a CPU: "atom"; "": all are alike. */
const char *counters_core_type(const struct counters *c, uint32_t cpu_index);
bool counters_has_lost(const struct counters *c); /* PERF_FORMAT_LOST works here */
/* Return the number of requested tasks that run and are not sampled. */
uint32_t counters_nr_refused(const struct counters *c);
/* Return one of them, and -errno: EINTR: it hangs in an exec; 0: there is none. */
pid_t counters_refused(const struct counters *c, int *code);
/*
 * Event slot (0..EVENTS_MAX-1 of this generation, see below) of a sample's id, COUNTERS_WAKING,
 * COUNTERS_GONE, or -1. Any thread.
 * An id that was never ours is taken for that of the only software event, if there is only one:
 * the kernel mixes up ids when two sessions have the same software event. (Two such events of one
 * session, as page-faults:u and page-faults:k, it mixes up past help.)
 */
int counters_event_of(const struct counters *c, uint32_t cpu_index, uint64_t id);

/* In the place of a slot: of a wake-up, a sample with @raw alone. */
#define COUNTERS_WAKING EVENTS_MAX
/* The same: of an event that was sampled up to the last change of events. */
#define COUNTERS_GONE (-3)

/* Return whether wake-ups are recorded. The caller's thread of set-up. */
bool counters_has_waking(const struct counters *c);
/* Report whether switches of whole CPUs are recorded now. */
bool counters_has_switches(const struct counters *c);
/* Where waits are measured: record switches of whole CPUs, or not. 0 or -errno. */
int counters_set_switches(struct counters *c, bool on);
/* The same of wake-ups, where they may be recorded. */
void counters_set_waking(struct counters *c, bool on);
/* The slot of the event of waits; -1: there is none. Any thread. */
int counters_wait_slot(const struct counters *c);
/* Events that were disabled one by one are left disabled. */
int counters_enable(struct counters *c, bool on);
int counters_enable_event(struct counters *c, uint32_t event, bool on);
/*
 * Change the rate in the running event (PERF_EVENT_IOC_PERIOD: ns for clocks, Hz for the rest).
 * That does not reach events that children have inherited: for tasks the event is opened again on
 * all tasks followed now, and the old one closed; sums and ids go on. -EINVAL with a sentence above
 * kernel.perf_event_max_sample_rate.
 */
int counters_set_rate(struct counters *c, uint32_t event, double hz, struct err *e);
/* Sample every @period-th event instead of at a rate; opened again on all tasks. As above. */
int counters_set_period(struct counters *c, uint32_t event, uint64_t period, struct err *e);
/*
 * Replace the events; events in both sets keep their fds and counts. On failure
 * the old set goes on. Slots are positions in @events: the caller resets its counts.
 */
int counters_set_events(struct counters *c, const struct event *events, uint32_t nr, double hz,
			struct err *e);
/*
 * More tasks, each once (TARGET_USER looks for new ones). Tasks that are gone or forbidden are no
 * error. Not for tasks that descend from one already followed: they would be counted twice. A busy
 * task (see below) gets the events that it lacks, and no others. Also the moment at which fds of
 * tasks that are gone are closed, and busy tasks that are gone forgotten; @nr may be 0.
 */
int counters_add_tasks(struct counters *c, const pid_t *tids, uint32_t nr, struct err *e);
/*
 * Write up to @nr busy tasks to @tids, in the order of their numbers, above @after only; return how
 * many. Busy tasks lack events, as they were hanging in an exec when these were to be opened. They
 * may be added again, which takes time if they still hang (see in_time_begin() in rights.c); until
 * then they are among counters_nr_refused().
 */
uint32_t counters_busy(const struct counters *c, pid_t after, pid_t *tids, uint32_t nr);
/* Report whether @tid is a busy task. */
bool counters_is_busy(const struct counters *c, pid_t tid);
/* Return the busy tasks that have no event at all, which their children could inherit; borrowed. */
const pid_t *counters_left_out(const struct counters *c, uint32_t *nr);
/* Return the tasks that it was opened on, some of which may have ended, and how many; borrowed.
 * Inherited events do not count. */
const pid_t *counters_tasks(const struct counters *c, uint32_t *nr);

/* Called for each event. @ids are of all its fds open now; borrowed. */
typedef void (*counters_attr_fn)(void *ctx, const char *name, const struct perf_event_attr *attr,
				 const uint64_t *ids, size_t nr_ids);

/* Return the events with records in the rings now, side-band events last: for a file header.
 */
void counters_each_attr(const struct counters *c, counters_attr_fn fn, void *ctx);

enum counters_wake {
	COUNTERS_WAKE_NONE,
	COUNTERS_WAKE_ALL,
	COUNTERS_WAKE_OTHERS, /* the ones without a program that wakes at their samples */
};

/*
 * Wake the thread that polls the ring of a CPU at each sample of these events, instead of at the
 * watermark: each one there gives way to a twin that does. Sums, ids and whatever changes later go
 * on for both. -ENOTSUP: groups of events, which are not changed.
 */
int counters_wake(struct counters *c, uint32_t cpu_index, enum counters_wake wake);
int counters_read(struct counters *c, uint32_t cpu_index, uint32_t event, struct counters_value *v);
/*
 * Return, once, that the events of a CPU have ended since the last call. They end when it goes
 * offline, however short: in a suspend all CPUs but the first do. Events of tasks go on.
 */
bool counters_has_ended(struct counters *c, uint32_t cpu_index);

#endif

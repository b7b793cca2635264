/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/event/, and by tests; no other room includes it. */
#ifndef SAMPLER_EVENT_INTERNAL_H
#define SAMPLER_EVENT_INTERNAL_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"

struct core_type;
struct core_types;
struct counters;
struct counters_cpu;
struct counters_sys;
struct counters_value;
struct event;
struct idmap_table;
struct limits_refusal;
struct perf_event_attr;

/*
 * Event ids of the kernel -> event slots, looked up for each sample.
 *
 * Open addressing. One writer; idmap_find() from any thread, lock-free: an online urcu-qsbr reader.
 * A table is filled in place until it is crowded and then replaced as a whole, by one without the
 * ids of events that were closed some time ago; the old one is freed after a grace period.
 */

#define IDMAP_UNKNOWN (-2) /* never heard of, or forgotten */
#define IDMAP_KEPT_S  10   /* seconds; samples are handled within a fraction of one */

struct idmap {
	_Atomic(struct idmap_table *) table; /* release by the writer, acquire by readers */
	uint32_t closed_s;		     /* writer: when an event was last closed */
};

void idmap_init(struct idmap *m);
void idmap_fini(struct idmap *m);
/* Writer: one more id; 0 is not one. An id that is there gets the new slot. */
void idmap_add(struct idmap *m, uint64_t id, int slot);
/*
 * Writer: the event of @id is closed at @now_ns. Its last samples may still be in a ring: the id is
 * known for IDMAP_KEPT_S at least.
 */
void idmap_close(struct idmap *m, uint64_t id, uint64_t now_ns);
/* Writer: replace all ids. */
void idmap_replace(struct idmap *m, const uint64_t *ids, const int *slots, size_t nr);
/* The slot of @id, as given (negative: of no event), or IDMAP_UNKNOWN. Any thread. */
int idmap_find(const struct idmap *m, uint64_t id);

/*
 * Calls to the kernel about a task, which end after a while.
 *
 * perf_event_open(2) waits for an exec of its task, which may wait for a file system of any user.
 * It can be interrupted by a signal, which a timer sends.
 *
 * Any thread. The signal has a handler that does nothing, and is not blocked between the calls.
 */

/* The level of kernel lockdown: "none", "integrity", "confidentiality"; "" if unknown. Any thread.
 */
void procstat_lockdown(const char *root, char *dst, size_t size);

/* "0-3,5" of /sys/devices/system/cpu/online. Returns nr, *cpus malloc'ed. */
int task_list_cpus(const char *text, int **cpus);

/* Return the type of @cpu; NULL: all are alike, or it has none. */
const struct core_type *core_types_of(const struct core_types *t, int cpu);
/* Return whether @ev exists on @cpu. An event of one PMU exists on the CPUs of that PMU. */
bool core_types_has(const struct core_types *t, const struct event *ev, int cpu);
/*
 * Make @attr of the general event @ev (cycles, a cache event, rNNN) that of the core type of @cpu.
 * @plain: without the type in the config, which kernels of Arm before 6.6 refuse; they choose by
 * the CPU.
 */
void core_types_set(const struct core_types *t, const struct event *ev, int cpu, bool plain,
		    struct perf_event_attr *attr);

/* The first of the group that event @at belongs to, and how many it has; of an event alone:
 * itself, 1. */
uint32_t event_group_first(const struct event *events, uint32_t at);
uint32_t event_group_nr(const struct event *events, uint32_t nr, uint32_t first);

/* Each call of a kernel function: the kernel samples it without user frames only. */
#define EVENT_FUNCTION "ftrace:function"

/*
 * The parsers of the kinds of events, for event.c only: each parses a part of the text and fills in
 * the event. @root is put before /sys ("" but in tests).
 *
 * Any thread.
 */

/* "cpu" and "event=0x3c,umask=1": 0 or -EINVAL with a sentence. */
int pmu_parse(const char *root, struct event *ev, const char *pmu, const char *terms,
	      struct err *e);
/*
 * Write the group of events of the top-down method's level 1 that a PMU here has, as text. False:
 * none has them.
 */
bool pmu_topdown(const char *root, char *dst, size_t size);
/* Terms of any event: "period=1000", "freq=99", "name=x". */
int pmu_parse_terms(struct event *ev, const char *terms, struct err *e);
/* Read the first line of a small file. Return false if that fails. */
bool pmu_read_line(const char *path, char *dst, size_t size);
/* The same for a path below the open folder @dir. */
bool pmu_read_line_at(int dir, const char *path, char *dst, size_t size);
/* A word that may be part of a path: letters, digits, '_', '-', '.', no "..". */
bool pmu_is_word(const char *text);
/* Call @fn with "msr/tsc/", for each event of each PMU. */
void pmu_each(const char *root, void (*fn)(void *ctx, const char *name, const char *pmu),
	      void *ctx);
/*
 * "pfm:NAME:ATTRIBUTES", as libpfm4 has them; false: it is none. As probe_parse(); @text is cut
 * where modifiers begin that the library does not know.
 */
bool libpfm_parse(struct event *ev, char *text, const char **modifiers, int *code, struct err *e);

/* Call @fn with each event of this CPU that the library knows, and its description. */
typedef void libpfm_fn(void *ctx, const char *name, const char *description);

void libpfm_each(const char *root, libpfm_fn *fn, void *ctx);

/*
 * Fill in the event. 0, or -errno: its format is unreadable or unknown, or tasks have numbers of
 * another pid namespace than ours.
 */
int waking_event(struct event *ev);

/*
 * The perf_event_attr of our three kinds of events: sampling, side-band, and owner of a ring. Pure.
 */

/* The fields of samples of wake-ups. */
#define ATTR_WAKING_TYPE (ATTR_SIDE_TYPE | PERF_SAMPLE_RAW)

struct attr_config {
	bool tasks; /* of tasks, inherited by their children; else of a CPU */
	bool no_inherit;
	bool enable_on_exec;
	bool exclude_idle; /* clocks only */
	bool data_maps;	   /* side-band: also mappings without code */
	uint32_t stack_size;
	uint64_t regs_mask;
	bool no_chain;	 /* no call chains: without a stack copy a sample has only its address */
	bool deferred;	 /* user chains are in separate records, by the side-band */
	uint64_t period; /* 0: by rate */
};

/* PERF_SAMPLE_* of a sampling event. */
uint64_t attr_sample_type(const struct attr_config *config);
/* A sampling event. PERF_FORMAT_LOST is in; EINVAL on kernels before 6.0. */
void attr_sample(struct perf_event_attr *attr, const struct attr_config *config,
		 const struct event *ev, double hz);
/* Set a flag of @attr that older headers do not name: the number of its bit. */
static inline void attr_set_flag(struct perf_event_attr *attr, unsigned int bit)
{
	uint64_t flags;
	uint8_t *at = (uint8_t *)&attr->read_format + sizeof(attr->read_format);

	memcpy(&flags, at, sizeof(flags));
	flags |= 1ULL << bit;
	memcpy(at, &flags, sizeof(flags));
}

/* Set up the dummy that records mmap, comm, fork and exit from the moment it is opened. */
void attr_side(struct perf_event_attr *attr, const struct attr_config *config, size_t ring_size);
/*
 * Set up the event of wake-ups, of a whole CPU: an event of a task misses wake-ups while it
 * sleeps (seen on 6.18).
 */
void attr_waking(struct perf_event_attr *attr, const struct event *ev);
/* The dummy that records switches, of a whole CPU. */
void attr_switches(struct perf_event_attr *attr);
/* The dummy that never counts and owns a ring; it wakes at @watermark bytes. */
void attr_leader(struct perf_event_attr *attr, size_t watermark);
/* Return the value of PERF_EVENT_IOC_PERIOD for @hz: ns for clocks, Hz for the rest. */
uint64_t attr_rate(const struct event *ev, double hz);
/* The largest record a sampling event can write, in bytes. */
size_t attr_sample_max(const struct attr_config *config);

/* Raise the soft limit of open files to the hard one: events x CPUs are needed. */
void limits_raise_files(void);
/*
 * Return the bytes of a side-band ring, and of a data ring to try first; both powers of
 * two. @want: the bytes it should hold, if permitted.
 */
size_t limits_side_ring(bool deferred);
/*
 * Return the power of two that holds @want, limited by the sum over all CPUs. Rings of many CPUs
 * are smaller where @want is.
 */
size_t limits_wanted_ring(uint32_t nr_cpus, size_t want);
/* Return an equal share for each of our CPUs of perf_event_mlock_kb per online CPU. */
size_t limits_data_ring(uint32_t nr_cpus, size_t side_size, size_t want);
/* Set @e to the reason why perf_event_open failed with @code, and a fix. Return @code. */
int limits_explain_open(struct err *e, int code, const struct limits_refusal *r);
/* The same for the mmap of a ring. */
int limits_explain_ring(struct err *e, int code, size_t size, uint32_t nr_cpus);

/*
 * One event of a session: a file descriptor for each task (or the whole
 * machine) and CPU, all writing to that CPU's data ring.
 *
 * Internal to counters. One thread. An event keeps the counts of its closed fds, so that its sums
 * never go back when tasks end.
 */

/* Shared by all slots of a session. */
struct slot_env {
	struct counters_sys sys;
	struct counters_cpu *cpus; /* data_fd: the ring of samples */
	uint32_t nr_cpus;
	struct attr_config attr;
	bool no_lost;	 /* the kernel has no PERF_FORMAT_LOST */
	uint32_t nr_fds; /* open now */
	bool may_be_empty;
	uint32_t nr_named;
	int cgroup_fd;		       /* -1: no cgroup */
	int group_fd;		       /* the leader of the event being opened; -1: none */
	struct limits_refusal refusal; /* of the last failure */
	pid_t refused;		       /* the first task that was left out, and why: -errno */
	int refused_code;
	const struct core_types *cores;
	int program_fd;	     /* as in struct counters_config */
	struct idmap *ids;   /* of events that are open, or were lately */
	const uint8_t *wake; /* by CPU: enum counters_wake; NULL: nowhere */
};

struct slot_fd {
	int fd; /* -1: closed, or the event does not exist on this CPU */
	uint64_t id;
	/* Its twin, which wakes at each sample: one of both is on. -1: not open. */
	int wake_fd;
	uint64_t wake_id;
};

struct slot {
	struct event event;
	double hz;
	bool side;		     /* writes to the side-band rings, not to the data rings */
	bool whole;		     /* of whole CPUs whatever the target */
	struct perf_event_attr attr; /* as the kernel took it */
	bool off;		     /* disabled, independent of the others */
	bool settled;		     /* attr is known to open */
	bool programmed;     /* needs no twin: a program wakes the reader, or it is of waits */
	bool plain;	     /* the kernel takes no core type in the config */
	struct slot_fd *fds; /* nr_tasks x nr_cpus */
	pid_t *tids;	     /* nr_tasks; -1: the whole CPU */
	uint32_t nr_tasks, max_tasks;
	pid_t *busy; /* tasks that it lacks: they were hanging in an exec */
	uint32_t nr_busy, max_busy;
	struct counters_value *base; /* per CPU, counts of closed fds */
};

enum run_state {
	RUN_OFF,
	RUN_ON,
	RUN_AT_EXEC, /* the kernel turns it on */
};

struct counters {
	struct slot_env env;
	struct core_types cores;
	struct counters_cpu *cpus;
	struct slot side; /* of tasks; for the whole system the leaders do it */
	struct slot slots[EVENTS_MAX];
	uint32_t nr_slots;
	struct slot waking;   /* of wake-ups, while waits are measured */
	struct slot switches; /* of whole CPUs; else the event of waits has them */
	uint32_t nr_refused;
	size_t ring_size, ring_wanted, side_size;
	struct record_layout layout, side_layout;
	struct record_layout waking_layout;
	struct record_layout read_layout; /* of samples with the counts of a group */
	atomic_bool any_read; /* such samples are requested; relaxed: set before they are enabled */
	struct idmap ids;
	atomic_int shared_slot; /* the slot with samples under foreign ids, or -1; relaxed */
	atomic_int wait_slot;	/* the slot of waits, or -1; relaxed */
	/* There are or were wake-ups: relaxed, set before they are enabled. */
	atomic_bool any_waking;
	enum run_state run;
	uint8_t *wake; /* by CPU: see counters_wake() */
};

#endif

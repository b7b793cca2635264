// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event names -> perf_event_attr: one table of names, a parser, a probe.
 *
 * Any thread; no state. Invariant: an event that was parsed can be told to
 * the kernel without further checks.
 */
#include "sampler/event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HW(x)	      PERF_TYPE_HARDWARE, PERF_COUNT_HW_##x
#define SW(x)	      PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##x
#define CACHE(c, o, r) PERF_TYPE_HW_CACHE,                                                      \
	(PERF_COUNT_HW_CACHE_##c | PERF_COUNT_HW_CACHE_OP_##o << 8 |                            \
	 PERF_COUNT_HW_CACHE_RESULT_##r << 16)

/* Accesses and misses of one cache by one kind of operation. */
#define CACHE_PAIR(X, name, c, op, ops, o, text)                                                \
	X(name "-" ops, NULL, "cache", text ": all", CACHE(c, o, ACCESS))                       \
	X(name "-" op "-misses", NULL, "cache", text ": misses", CACHE(c, o, MISS))

/* X(name, alias, group, description, type, config) */
#define EVENTS(X)                                                                               \
	X("cycles", "cpu-cycles", "hardware", "CPU cycles; their rate follows the clock frequency", \
	  HW(CPU_CYCLES))                                                                       \
	X("instructions", NULL, "hardware", "instructions retired", HW(INSTRUCTIONS))           \
	X("cache-references", NULL, "hardware", "last-level cache accesses, usually",           \
	  HW(CACHE_REFERENCES))                                                                 \
	X("cache-misses", NULL, "hardware", "last-level cache misses, usually: waits for memory", \
	  HW(CACHE_MISSES))                                                                     \
	X("branches", "branch-instructions", "hardware", "branches retired",                    \
	  HW(BRANCH_INSTRUCTIONS))                                                              \
	X("branch-misses", NULL, "hardware", "mispredicted branches", HW(BRANCH_MISSES))        \
	X("bus-cycles", NULL, "hardware", "bus cycles", HW(BUS_CYCLES))                         \
	X("stalled-cycles-frontend", "idle-cycles-frontend", "hardware",                        \
	  "cycles in which no instruction could be issued", HW(STALLED_CYCLES_FRONTEND))        \
	X("stalled-cycles-backend", "idle-cycles-backend", "hardware",                          \
	  "cycles in which no instruction could retire", HW(STALLED_CYCLES_BACKEND))            \
	X("ref-cycles", NULL, "hardware", "cycles at a constant frequency", HW(REF_CPU_CYCLES)) \
	X("cpu-clock", NULL, "software", "time on the CPU by a timer; needs no PMU", SW(CPU_CLOCK)) \
	X("task-clock", NULL, "software", "time on the CPU of the tasks followed", SW(TASK_CLOCK)) \
	X("page-faults", "faults", "software", "page faults, minor and major", SW(PAGE_FAULTS)) \
	X("context-switches", "cs", "software", "switches to another task", SW(CONTEXT_SWITCHES)) \
	X("cpu-migrations", "migrations", "software", "tasks moved to another CPU",             \
	  SW(CPU_MIGRATIONS))                                                                   \
	X("minor-faults", NULL, "software", "page faults served from memory", SW(PAGE_FAULTS_MIN)) \
	X("major-faults", NULL, "software", "page faults that waited for a disk",               \
	  SW(PAGE_FAULTS_MAJ))                                                                  \
	X("alignment-faults", NULL, "software", "unaligned accesses fixed up by the kernel",    \
	  SW(ALIGNMENT_FAULTS))                                                                 \
	X("emulation-faults", NULL, "software", "instructions emulated by the kernel",          \
	  SW(EMULATION_FAULTS))                                                                 \
	X("dummy", NULL, "software", "counts nothing", SW(DUMMY))                               \
	X("bpf-output", NULL, "software", "what BPF programs put out", SW(BPF_OUTPUT))          \
	X("cgroup-switches", NULL, "software", "switches to a task of another cgroup",          \
	  SW(CGROUP_SWITCHES))                                                                  \
	CACHE_PAIR(X, "L1-dcache", L1D, "load", "loads", READ, "level 1 data cache, loads")     \
	CACHE_PAIR(X, "L1-dcache", L1D, "store", "stores", WRITE, "level 1 data cache, stores") \
	CACHE_PAIR(X, "L1-dcache", L1D, "prefetch", "prefetches", PREFETCH,                     \
		   "level 1 data cache, prefetches")                                            \
	CACHE_PAIR(X, "L1-icache", L1I, "load", "loads", READ, "level 1 instruction cache, loads") \
	CACHE_PAIR(X, "L1-icache", L1I, "prefetch", "prefetches", PREFETCH,                     \
		   "level 1 instruction cache, prefetches")                                     \
	CACHE_PAIR(X, "LLC", LL, "load", "loads", READ, "last-level cache, loads")              \
	CACHE_PAIR(X, "LLC", LL, "store", "stores", WRITE, "last-level cache, stores")          \
	CACHE_PAIR(X, "LLC", LL, "prefetch", "prefetches", PREFETCH, "last-level cache, prefetches") \
	CACHE_PAIR(X, "dTLB", DTLB, "load", "loads", READ, "data TLB, loads")                   \
	CACHE_PAIR(X, "dTLB", DTLB, "store", "stores", WRITE, "data TLB, stores")               \
	CACHE_PAIR(X, "dTLB", DTLB, "prefetch", "prefetches", PREFETCH, "data TLB, prefetches") \
	CACHE_PAIR(X, "iTLB", ITLB, "load", "loads", READ, "instruction TLB")                   \
	CACHE_PAIR(X, "branch", BPU, "load", "loads", READ, "branch prediction unit")           \
	CACHE_PAIR(X, "node", NODE, "load", "loads", READ, "memory of the NUMA node, loads")    \
	CACHE_PAIR(X, "node", NODE, "store", "stores", WRITE, "memory of the NUMA node, stores") \
	CACHE_PAIR(X, "node", NODE, "prefetch", "prefetches", PREFETCH,                         \
		   "memory of the NUMA node, prefetches")

#define AS_INFO(name, alias, group, text, ...)	  { name, alias, group, text },
#define AS_CODE(name, alias, group, text, ...)	  { __VA_ARGS__ },

static const struct event_info catalogue[] = { EVENTS(AS_INFO) { NULL, NULL, NULL, NULL } };

static const struct {
	uint32_t type;
	uint64_t config;
} codes[] = { EVENTS(AS_CODE) };

#define NR_EVENTS ARRAY_SIZE(codes)

const struct event_info *event_catalogue(void)
{
	return catalogue;
}

const struct event_info *event_info(const struct event *ev)
{
	for (size_t i = 0; i < NR_EVENTS; i++)
		if (codes[i].type == ev->type && codes[i].config == ev->config)
			return &catalogue[i];
	return NULL;
}

/* Find a name of the catalogue, in any case as perf does. */
static bool find_name(struct event *ev, const char *name)
{
	for (size_t i = 0; i < NR_EVENTS; i++) {
		const struct event_info *info = &catalogue[i];

		if (strcasecmp(info->name, name) &&
		    (!info->alias || strcasecmp(info->alias, name)))
			continue;
		ev->type = codes[i].type;
		ev->config = codes[i].config;
		ev->hardware = ev->type != PERF_TYPE_SOFTWARE;
		ev->clock = ev->type == PERF_TYPE_SOFTWARE && ev->config <= PERF_COUNT_SW_TASK_CLOCK;
		return true;
	}
	return false;
}

/* rNNN: the PMU's own code in hexadecimal. */
static bool find_raw(struct event *ev, const char *name)
{
	size_t digits = strspn(name + 1, "0123456789abcdefABCDEF");

	if (name[0] != 'r' || !digits || digits > 16 || name[1 + digits])
		return false;
	ev->type = PERF_TYPE_RAW;
	ev->config = strtoull(name + 1, NULL, 16);
	ev->hardware = true;
	return true;
}

/* How many letters to change, insert or drop (Levenshtein), both at most EVENT_NAME_MAX. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[EVENT_NAME_MAX + 1];
	size_t nr = strlen(b);

	for (size_t j = 0; j <= nr; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= nr; j++) {
			unsigned int change = diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);

			diagonal = row[j];
			row[j] = MIN(MIN(row[j], row[j - 1]) + 1, change);
		}
	}
	return row[nr];
}

/* The name most like @name: few letters off, else one that begins with it; NULL if none is near. */
static const char *nearest(const char *name)
{
	unsigned int best = (unsigned int)MAX(2, strlen(name) / 3) + 1;
	const char *found = NULL, *begins = NULL;

	for (size_t i = 0; i < NR_EVENTS; i++) {
		const char *names[] = { catalogue[i].name, catalogue[i].alias };

		for (size_t j = 0; j < ARRAY_SIZE(names) && names[j]; j++) {
			unsigned int d = distance(name, names[j]);

			if (d < best) {
				best = d;
				found = names[j];
			}
			if (!begins && strlen(name) > 2 && !strncasecmp(name, names[j], strlen(name)))
				begins = names[j];
		}
	}
	return found ? found : begins;
}

static int unknown_event(const char *name, struct err *e)
{
	const char *like = name[0] ? nearest(name) : NULL;

	if (!like)
		return err_set(e, -EINVAL,
			       "unknown event '%s'\n"
			       "  names are as in perf-list(1); rNNN is the PMU's own code\n"
			       "  'proftop --list-events' shows them all", name);
	return err_set(e, -EINVAL,
		       "unknown event '%s'\n"
		       "  did you mean '%s'?\n"
		       "  'proftop --list-events' shows them all", name, like);
}

/* Modifiers as in perf-list(1): giving any of u, k, h leaves out the others. */
static int parse_modifiers(struct event *ev, const char *text, struct err *e)
{
	bool user = false, kernel = false, hv = false;
	const char *p;

	for (p = text; *p; p++) {
		if (*p == 'u')
			user = true;
		else if (*p == 'k')
			kernel = true;
		else if (*p == 'h')
			hv = true;
		else if (*p == 'p' && ev->precise < 3 && !ev->precise_max)
			ev->precise++;
		else if (*p == 'P' && !ev->precise)
			ev->precise_max = true;
		else
			break;
	}
	if (*p || p == text)
		return err_set(e, -EINVAL,
			       "event '%s': modifier '%s' is not understood\n"
			       "  after the colon: u user, k kernel, h hypervisor; p, pp, ppp precise, "
			       "P as precise as possible\n"
			       "  'proftop --list-events' shows all events", ev->name, text);
	if (ev->precise_max)
		ev->precise = 3;
	if (user || kernel || hv) {
		ev->user = user;
		ev->kernel = kernel;
		ev->hv = hv;
	}
	return 0;
}

/* Parse one event: a name of the catalogue or a raw code, and modifiers. */
int event_parse(struct event *ev, const char *text, struct err *e)
{
	size_t size = strlen(text);
	char name[EVENT_NAME_MAX];
	char *colon;

	memset(ev, 0, sizeof(*ev));
	if (size >= sizeof(name))
		return err_set(e, -EINVAL,
			       "unknown event '%.32s…'\n"
			       "  no name is as long as this (%zu letters)\n"
			       "  'proftop --list-events' shows them all", text, size);
	memcpy(name, text, size + 1);
	memcpy(ev->name, text, size + 1);
	ev->user = ev->kernel = ev->hv = true;
	colon = strchr(name, ':');
	if (colon)
		*colon++ = '\0';
	if (!find_name(ev, name) && !find_raw(ev, name))
		return unknown_event(name, e);
	return colon ? parse_modifiers(ev, colon, e) : 0;
}

void event_attr(const struct event *ev, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = ev->type;
	attr->config = ev->config;
	attr->config1 = ev->config1;
	attr->config2 = ev->config2;
	attr->exclude_user = !ev->user;
	attr->exclude_kernel = !ev->kernel;
	attr->exclude_hv = !ev->hv;
	/* A guest's addresses are no places of ours; PEBS cannot be asked for guests at all. */
	attr->exclude_guest = ev->hardware;
	attr->precise_ip = ev->precise & 3;
}

/* Ask for samples, not only for a count: a PMU without interrupts can count, too. */
int event_probe(const struct event *ev, pid_t pid, int cpu)
{
	struct perf_event_attr attr;
	long fd;

	event_attr(ev, &attr);
	attr.disabled = 1;
	attr.sample_period = 10000000;
	attr.sample_type = PERF_SAMPLE_IP;
	for (;;) {
		fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			break;
		if (!ev->precise_max || !attr.precise_ip || (errno != EOPNOTSUPP && errno != EINVAL))
			return -errno;
		attr.precise_ip--;
	}
	close((int)fd);
	return 0;
}

const char *event_errno(int code)
{
	switch (code < 0 ? -code : code) {
	case 0:
		return "usable";
	case ENOENT:
		return "no such event on this machine (no PMU)";
	case EOPNOTSUPP:
		return "cannot be sampled here (no PMU interrupt, or not this precise)";
	case ENODEV:
		return "not on this CPU or not in this machine";
	case EINVAL:
		return "refused by the kernel as not valid here";
	case EACCES:
	case EPERM:
		return "not permitted";
	case EBUSY:
		return "in use by someone else (the PMU is taken)";
	case ENOSPC:
		return "no counter left";
	case EMFILE:
	case ENFILE:
		return "too many open files";
	case E2BIG:
		return "not known to this kernel";
	case ESRCH:
		return "no such process";
	case ENOSYS:
		return "this kernel has no perf events";
	case ENOMEM:
		return "out of memory";
	case EINTR:
		return "interrupted";
	case EOVERFLOW:
		return "the call chain would be too deep";
	default:
		return "not usable here";
	}
}

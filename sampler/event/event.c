// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event names -> perf_event_attr: one table of names, the kinds of names that
 * there are, a probe.
 *
 * Any thread; no state. Invariant: an event that was parsed can be opened without further checks.
 */
#include "sampler/event/event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/event/event_parse.h"
#include "symbols/base/text.h"

#define HW(x) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##x
#define SW(x) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##x
#define CACHE(c, o, r)                                                                             \
	PERF_TYPE_HW_CACHE, (PERF_COUNT_HW_CACHE_##c | PERF_COUNT_HW_CACHE_OP_##o << 8 |           \
			     PERF_COUNT_HW_CACHE_RESULT_##r << 16)

/* Accesses and misses of one cache by one kind of operation. */
#define CACHE_PAIR(X, name, c, op, ops, o, text)                                                   \
	X(name "-" ops, NULL, "cache", text ": all", CACHE(c, o, ACCESS))                          \
	X(name "-" op "-misses", NULL, "cache", text ": misses", CACHE(c, o, MISS))

/* X(name, alias, group, description, type, config) */
#define EVENTS(X)                                                                                  \
	X("cycles", "cpu-cycles", "hardware", "CPU cycles, as the clock runs", HW(CPU_CYCLES))     \
	X("instructions", NULL, "hardware", "instructions retired", HW(INSTRUCTIONS))              \
	X("cache-references", NULL, "hardware", "last-level cache accesses, usually",              \
	  HW(CACHE_REFERENCES))                                                                    \
	X("cache-misses", NULL, "hardware", "last-level cache misses, usually", HW(CACHE_MISSES))  \
	X("branches", "branch-instructions", "hardware", "branches retired",                       \
	  HW(BRANCH_INSTRUCTIONS))                                                                 \
	X("branch-misses", NULL, "hardware", "mispredicted branches", HW(BRANCH_MISSES))           \
	X("bus-cycles", NULL, "hardware", "bus cycles", HW(BUS_CYCLES))                            \
	X("stalled-cycles-frontend", "idle-cycles-frontend", "hardware",                           \
	  "cycles that issued no instruction", HW(STALLED_CYCLES_FRONTEND))                        \
	X("stalled-cycles-backend", "idle-cycles-backend", "hardware",                             \
	  "cycles that retired no instruction", HW(STALLED_CYCLES_BACKEND))                        \
	X("ref-cycles", NULL, "hardware", "cycles at a constant frequency", HW(REF_CPU_CYCLES))    \
	X("cpu-clock", NULL, "software", "time on the CPU by a timer; needs no PMU",               \
	  SW(CPU_CLOCK))                                                                           \
	X("task-clock", NULL, "software", "time on the CPU of the tasks followed", SW(TASK_CLOCK)) \
	X("page-faults", "faults", "software", "page faults, minor and major", SW(PAGE_FAULTS))    \
	X("context-switches", "cs", "software", "switches to another task", SW(CONTEXT_SWITCHES))  \
	X(EVENT_WAITS, NULL, "software", "time that tasks wait, by stack and kind",                \
	  SW(CONTEXT_SWITCHES))                                                                    \
	X("cpu-migrations", "migrations", "software", "tasks moved to another CPU",                \
	  SW(CPU_MIGRATIONS))                                                                      \
	X("minor-faults", NULL, "software", "page faults served from memory", SW(PAGE_FAULTS_MIN)) \
	X("major-faults", NULL, "software", "page faults that waited for a disk",                  \
	  SW(PAGE_FAULTS_MAJ))                                                                     \
	X("alignment-faults", NULL, "software", "unaligned accesses fixed up by the kernel",       \
	  SW(ALIGNMENT_FAULTS))                                                                    \
	X("emulation-faults", NULL, "software", "instructions emulated by the kernel",             \
	  SW(EMULATION_FAULTS))                                                                    \
	X("dummy", NULL, "software", "counts nothing", SW(DUMMY))                                  \
	X("bpf-output", NULL, "software", "output of BPF programs", SW(BPF_OUTPUT))                \
	X("cgroup-switches", NULL, "software", "switches to a task of another cgroup",             \
	  SW(CGROUP_SWITCHES))                                                                     \
	CACHE_PAIR(X, "L1-dcache", L1D, "load", "loads", READ, "level 1 data cache, loads")        \
	CACHE_PAIR(X, "L1-dcache", L1D, "store", "stores", WRITE, "level 1 data cache, stores")    \
	CACHE_PAIR(X, "L1-dcache", L1D, "prefetch", "prefetches", PREFETCH,                        \
		   "level 1 data cache, prefetches")                                               \
	CACHE_PAIR(X, "L1-icache", L1I, "load", "loads", READ, "level 1 instruction cache, loads") \
	CACHE_PAIR(X, "L1-icache", L1I, "prefetch", "prefetches", PREFETCH,                        \
		   "level 1 instruction cache, prefetches")                                        \
	CACHE_PAIR(X, "LLC", LL, "load", "loads", READ, "last-level cache, loads")                 \
	CACHE_PAIR(X, "LLC", LL, "store", "stores", WRITE, "last-level cache, stores")             \
	CACHE_PAIR(X, "LLC", LL, "prefetch", "prefetches", PREFETCH,                               \
		   "last-level cache, prefetches")                                                 \
	CACHE_PAIR(X, "dTLB", DTLB, "load", "loads", READ, "data TLB, loads")                      \
	CACHE_PAIR(X, "dTLB", DTLB, "store", "stores", WRITE, "data TLB, stores")                  \
	CACHE_PAIR(X, "dTLB", DTLB, "prefetch", "prefetches", PREFETCH, "data TLB, prefetches")    \
	CACHE_PAIR(X, "iTLB", ITLB, "load", "loads", READ, "instruction TLB")                      \
	CACHE_PAIR(X, "branch", BPU, "load", "loads", READ, "branch prediction unit")              \
	CACHE_PAIR(X, "node", NODE, "load", "loads", READ, "memory of the NUMA node, loads")       \
	CACHE_PAIR(X, "node", NODE, "store", "stores", WRITE, "memory of the NUMA node, stores")   \
	CACHE_PAIR(X, "node", NODE, "prefetch", "prefetches", PREFETCH,                            \
		   "memory of the NUMA node, prefetches")

#define AS_INFO(name, alias, group, text, ...) { name, alias, group, text },
#define AS_CODE(name, alias, group, text, ...) { __VA_ARGS__ },

static const struct event_info catalogue[] = { EVENTS(AS_INFO){ NULL, NULL, NULL, NULL } };

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
		if (codes[i].type == ev->type && codes[i].config == ev->config &&
		    ev->wait == !strcmp(catalogue[i].name, EVENT_WAITS))
			return &catalogue[i];
	return NULL;
}

/* Find a name of the catalogue, in any case as perf does. */
static bool find_name(struct event *ev, const char *name)
{
	for (size_t i = 0; i < NR_EVENTS; i++) {
		const struct event_info *info = &catalogue[i];

		if (strcasecmp(info->name, name) && (!info->alias || strcasecmp(info->alias, name)))
			continue;
		ev->type = codes[i].type;
		ev->config = codes[i].config;
		ev->wait = !strcmp(info->name, EVENT_WAITS);
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
	return true;
}

/* The name most like @name; NULL if none is near. */
static const char *nearest(const char *name)
{
	struct text_like like = { .text = name };

	for (size_t i = 0; i < NR_EVENTS; i++) {
		text_like(&like, catalogue[i].name);
		if (catalogue[i].alias)
			text_like(&like, catalogue[i].alias);
	}
	return like.found ? like.found : like.begins;
}

static int unknown_event(const char *name, struct err *e)
{
	const char *like = name[0] ? nearest(name) : NULL;

	if (!like)
		return err_set(e, -EINVAL,
			       "unknown event '%s'\n"
			       "  names are as in perf-list(1); rNNN is the PMU's own code\n"
			       "  'proftop --list-events' shows them all",
			       name);
	return err_set(e, -EINVAL,
		       "unknown event '%s'\n"
		       "  did you mean '%s'?\n"
		       "  'proftop --list-events' shows them all",
		       name, like);
}

/* One letter; giving any of u, k, h (H, G) leaves out the others of its kind. */
static bool parse_modifier(struct event *ev, char letter, bool *level, bool *machine)
{
	if (strchr("ukh", letter)) {
		if (!*level)
			ev->user = ev->kernel = ev->hv = false;
		*level = true;
		ev->user |= letter == 'u';
		ev->kernel |= letter == 'k';
		ev->hv |= letter == 'h';
		return true;
	}
	if (letter == 'H' || letter == 'G') {
		if (!*machine)
			ev->host = ev->guest = false;
		*machine = true;
		ev->host |= letter == 'H';
		ev->guest |= letter == 'G';
		return true;
	}
	if (letter == 'p' && ev->precise < 3 && !ev->precise_max) {
		ev->precise++;
		return true;
	}
	if (letter != 'P' || ev->precise)
		return false;
	ev->precise_max = true;
	return true;
}

int event_add_modifiers(struct event *ev, const char *text, struct err *e)
{
	bool level = !(ev->user && ev->kernel && ev->hv), machine = ev->guest || !ev->host;
	const char *p = text;

	while (*p && parse_modifier(ev, *p, &level, &machine))
		p++;
	if (*p || p == text)
		return err_set(e, -EINVAL,
			       "event '%.120s': modifier '%.60s' is not understood\n"
			       "  after the colon: u user, k kernel, h hypervisor; H host, G "
			       "guest; "
			       "p, pp, ppp precise, P as precise as possible\n"
			       "  'proftop --list-events' shows all events",
			       ev->name, text);
	if (ev->precise_max)
		ev->precise = 3;
	return 0;
}

/* "pmu/terms/modifiers", or terms behind a name of the catalogue. */
static int parse_terms(const char *root, struct event *ev, char *text, const char **modifiers,
		       struct err *e)
{
	char *terms = strchr(text, '/'), *end = strrchr(text, '/');

	*terms++ = '\0';
	if (end < terms)
		return err_set(e, -EINVAL,
			       "event '%.120s': the second slash is missing\n"
			       "  as in cpu/event=0x3c,umask=0/u or cycles/freq=99/\n"
			       "  'proftop --list-events' shows all events",
			       ev->name);
	*end++ = '\0';
	*modifiers = *end ? end + (*end == ':') : NULL;
	if (find_name(ev, text) || find_raw(ev, text))
		return pmu_parse_terms(ev, terms, e);
	return pmu_parse(root, ev, text, terms, e);
}

/* "sched:sched_switch" and its modifiers; else a name of the catalogue and its modifiers. */
static int parse_name(const char *root, struct event *ev, char *text, const char **modifiers,
		      struct err *e)
{
	char *colon = strchr(text, ':'), *second;
	int code;

	if (colon)
		*colon++ = '\0';
	*modifiers = colon;
	if (find_name(ev, text) || find_raw(ev, text))
		return 0;
	/* "cylces:u" is a slip of the pen, no tracepoint. */
	if (!colon || (strspn(colon, "ukhHGpP") == strlen(colon)))
		return unknown_event(text, e);
	second = strchr(colon, ':');
	if (second)
		*second++ = '\0';
	*modifiers = second;
	code = tracepoint_parse(root, ev, text, colon, e);
	return code == -ENOENT ? unknown_event(text, e) : code;
}

/* Set the members that follow from the type. */
static void set_kind(struct event *ev)
{
	ev->hardware = ev->type != PERF_TYPE_SOFTWARE && ev->type != PERF_TYPE_TRACEPOINT &&
		       ev->type != PERF_TYPE_BREAKPOINT && !ev->target[0];
	ev->clock = ev->type == PERF_TYPE_SOFTWARE && ev->config <= PERF_COUNT_SW_TASK_CLOCK;
}

int event_parse_at(const char *root, struct event *ev, const char *text, struct err *e)
{
	const char *modifiers = NULL;
	size_t size = strlen(text);
	char name[EVENT_NAME_MAX];
	int code;

	memset(ev, 0, sizeof(*ev));
	if (size >= sizeof(name))
		return err_set(e, -EINVAL,
			       "unknown event '%.32s…'\n"
			       "  no name is as long as this (%zu letters)\n"
			       "  'proftop --list-events' shows them all",
			       text, size);
	memcpy(name, text, size + 1);
	memcpy(ev->name, text, size + 1);
	ev->user = ev->kernel = ev->hv = ev->host = true;
	if (!probe_parse(root, ev, name, &modifiers, &code, e) &&
	    !libpfm_parse(ev, name, &modifiers, &code, e))
		code = strchr(name, '/') ? parse_terms(root, ev, name, &modifiers, e)
					 : parse_name(root, ev, name, &modifiers, e);
	if (code)
		return code;
	set_kind(ev);
	if (ev->wait)
		ev->period = ev->hz > 0 ? 0 : 1;
	return modifiers ? event_add_modifiers(ev, modifiers, e) : 0;
}

int event_parse(struct event *ev, const char *text, struct err *e)
{
	return event_parse_at("", ev, text, e);
}

/* Return the length of a name without its modifiers. */
static size_t without_modifiers(const char *name)
{
	bool in_file = !strncmp(name, "uprobe:", 7) || !strncmp(name, "uretprobe:", 10);
	bool probe = in_file || !strncmp(name, "kprobe:", 7) || !strncmp(name, "kretprobe:", 10);
	const char *slash = probe ? NULL : strrchr(name, '/'), *mark = strrchr(name, ':');
	unsigned int nr = 0;

	for (const char *p = name; *p; p++)
		nr += *p == ':';
	mark = slash ? slash + 1 : mark;
	/* A function may be named as modifiers are. */
	if (!mark || (probe && nr <= (in_file ? 2U : 1U)) ||
	    strspn(mark + (*mark == ':'), "ukhHGpP") != strlen(mark + (*mark == ':')))
		return strlen(name);
	return (size_t)(mark - name);
}

int event_change_modifiers(struct event *ev, const char *modifiers, struct err *e)
{
	const struct event was = *ev;
	size_t size = without_modifiers(ev->name);
	bool slash = size && ev->name[size - 1] == '/';
	char name[EVENT_NAME_MAX + 16];
	int code;

	snprintf(name, sizeof(name), "%.*s%s%s", (int)size, ev->name,
		 modifiers[0] && !slash ? ":" : "", modifiers);
	if (!event_list_reads_file(name) || strlen(name) >= sizeof(ev->name)) {
		code = event_parse(ev, name, e);
		ev->group = was.group;
		ev->read = was.read;
		ev->counted = was.counted;
		memcpy(ev->filter, was.filter, sizeof(ev->filter));
		return code;
	}
	memset(ev->name, 0, sizeof(ev->name));
	memcpy(ev->name, name, strlen(name));
	ev->user = ev->kernel = ev->hv = ev->host = true;
	ev->guest = ev->precise_max = false;
	ev->precise = 0;
	return modifiers[0] ? event_add_modifiers(ev, modifiers, e) : 0;
}

int event_set_filter(struct event *ev, const char *filter, struct err *e)
{
	if (ev->type != PERF_TYPE_TRACEPOINT)
		return err_set(e, -EINVAL,
			       "invalid filter: event '%.120s' is not a tracepoint\n"
			       "  --event-filter follows the -e of its tracepoint, as in\n"
			       "  -e sched:sched_switch --event-filter 'prev_pid == 0'",
			       ev->name);
	if (!filter[0] || strlen(filter) >= sizeof(ev->filter))
		return err_set(e, -EINVAL,
			       "invalid filter: %zu characters, must be 1 to %d\n"
			       "  --event-filter follows the -e of its tracepoint, as in\n"
			       "  -e sched:sched_switch --event-filter 'prev_pid == 0'",
			       strlen(filter), EVENT_TEXT_MAX - 1);
	memcpy(ev->filter, filter, strlen(filter) + 1);
	return 0;
}

bool event_same(const struct event *a, const struct event *b)
{
	struct event x = *a, y = *b;

	/* Zeroed by the parser, padding included; names and labels are for display. */
	memset(x.name, 0, sizeof(x.name));
	memset(y.name, 0, sizeof(y.name));
	memset(x.label, 0, sizeof(x.label));
	memset(y.label, 0, sizeof(y.label));
	x.group = y.group = 0;
	/* Of the same name it may have another rate by now. */
	if (!strcmp(a->name, b->name)) {
		x.period = y.period = 0;
		x.hz = y.hz = 0;
	}
	return !memcmp(&x, &y, sizeof(x));
}

bool event_same_list(const struct event *a, uint32_t nr_a, const struct event *b, uint32_t nr_b)
{
	bool same = nr_a == nr_b;

	for (uint32_t i = 0; same && i < nr_a; i++)
		same = event_same(&a[i], &b[i]);
	return same;
}

void event_attr(const struct event *ev, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = ev->type;
	attr->config = ev->config;
	attr->bp_type = ev->bp_type;
	attr->config1 = ev->target[0] ? (uint64_t)(uintptr_t)ev->target : ev->config1;
	attr->config2 = ev->config2;
	attr->exclude_user = !ev->user;
	attr->exclude_kernel = !ev->kernel;
	attr->exclude_hv = !ev->hv;
	/* Addresses of a guest cannot be resolved here; PEBS does not support guests. */
	attr->exclude_guest = !ev->guest;
	attr->exclude_host = !ev->host;
	attr->precise_ip = ev->precise & 3;
}

/* Request samples, not only a count: a PMU without interrupts can only count. */
int event_probe(const struct event *ev, pid_t pid, int cpu)
{
	struct perf_event_attr attr;
	int code;
	long fd;

	event_attr(ev, &attr);
	attr.disabled = 1;
	attr.sample_period = 10000000;
	attr.sample_type = PERF_SAMPLE_IP;
	for (;;) {
		fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0)
			break;
		if (!ev->precise_max || !attr.precise_ip ||
		    (errno != EOPNOTSUPP && errno != EINVAL))
			return -errno;
		attr.precise_ip--;
	}
	code = ev->filter[0] && ioctl((int)fd, PERF_EVENT_IOC_SET_FILTER, ev->filter) ? -errno : 0;
	close((int)fd);
	return code;
}

const char *event_errno(int code)
{
	switch (code < 0 ? -code : code) {
	case 0:
		return "usable";
	case ENOENT:
		return "no such event on this machine";
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

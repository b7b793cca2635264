// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Event names → perf_event_attr: tables of names, groups, the list of all events, attributes of the
 * three kinds of events; tracepoints, breakpoints and probes by their ids in tracefs.
 *
 * Any thread. Invariant: an event that was parsed can be opened without further checks.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"

/*
 * Tracepoints, breakpoints and probes: names → ids in tracefs, which is mounted or opened without a
 * mount; the event of wake-ups.
 *
 * Any thread; no state.
 */

static int no_tracefs(const struct event *ev, enum tracefs_state state, struct err *e)
{
	if (state == TRACEFS_CLOSED)
		return err_set(e, -EINVAL,
			       "event '%.100s': cannot read the tracepoints: permission denied\n"
			       "  only root may read /sys/kernel/tracing/events\n"
			       "  'sudo chgrp -R perf_users /sys/kernel/tracing/events', or run as "
			       "root; see proftop --list-events",
			       ev->name);
	if (state == TRACEFS_LOCKED)
		return err_set(e, -EINVAL,
			       "event '%.100s': no tracepoints: kernel lockdown is in force\n"
			       "  /sys/kernel/security/lockdown is 'confidentiality'; it forbids "
			       "tracefs to every user\n"
			       "  boot with lockdown=integrity or none; or choose another event "
			       "(proftop --list-events)",
			       ev->name);
	return err_set(e, -EINVAL,
		       "event '%.100s': the kernel's tracepoints are not mounted\n"
		       "  /sys/kernel/tracing is empty, and CAP_SYS_ADMIN is needed to read them "
		       "without a mount\n"
		       "  'sudo mount -t tracefs nodev /sys/kernel/tracing', then see "
		       "proftop --list-events",
		       ev->name);
}

/* Find the tracepoint below the open folder @events. */
static int find_tracepoint(int events, struct event *ev, const char *system, const char *name,
			   struct err *e)
{
	char path[256], line[32], *end;

	if (faccessat(events, system, F_OK, 0))
		return -ENOENT;
	snprintf(path, sizeof(path), "%.120s/%.120s/id", system, name);
	if (!pmu_read_line_at(events, path, line, sizeof(line)))
		return err_set(e, -EINVAL,
			       "event '%.100s': no tracepoint '%.60s' in '%.60s'\n"
			       "  the kernel has others there\n"
			       "  'proftop --list-events' shows all events",
			       ev->name, name, system);
	ev->type = PERF_TYPE_TRACEPOINT;
	ev->config = strtoull(line, &end, 10);
	/* Each one counts, as with perf: they are events, not a measure of time. */
	ev->period = 1;
	return end != line ? 0 : -ENOENT;
}

/* "sched:sched_switch". 0, -ENOENT: there is no such one (no sentence), -EINVAL with a sentence. */
static int tracepoint_parse(const char *root, struct event *ev, const char *system,
			    const char *name, struct err *e)
{
	enum tracefs_state state;
	int events, code;

	if (!pmu_is_word(system) || !pmu_is_word(name))
		return -ENOENT;
	state = tracefs_open(root, &events);
	if (events < 0)
		return no_tracefs(ev, state, e);
	code = find_tracepoint(events, ev, system, name, e);
	close(events);
	return code;
}

static int plain_entry(const struct dirent *d)
{
	return pmu_is_word(d->d_name);
}

/* Call @fn with each event of one system: its folders that have an id. */
static void each_of_system(int events, const char *system, void (*fn)(void *ctx, const char *name),
			   void *ctx)
{
	char path[512], name[EVENT_NAME_MAX];
	struct dirent **list;
	int nr = scandirat(events, system, &list, plain_entry, alphasort);

	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%.120s/%.120s/id", system, list[i]->d_name);
		if (!faccessat(events, path, F_OK, 0)) {
			snprintf(name, sizeof(name), "%.120s:%.120s", system, list[i]->d_name);
			fn(ctx, name);
		}
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
}

/* By folders: available_events has no ftrace events. */
static void tracepoint_each(const char *root, void (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent **list;
	int events, nr;

	tracefs_open(root, &events);
	if (events < 0)
		return;
	nr = scandirat(events, ".", &list, plain_entry, alphasort);
	for (int i = 0; i < nr; i++) {
		each_of_system(events, list[i]->d_name, fn, ctx);
		free(list[i]);
	}
	if (nr >= 0)
		free(list);
	close(events);
}

/*
 * The kernel's tracepoints: the mounted tracefs, else a private mount that is in no mount namespace
 * and ends with its descriptor.
 *
 * Any thread. The only state is that mount, which is kept: later there may be no right to make one.
 */

static atomic_int kept_tracefs = -1;

/* Open tracefs without a place in the file system (kernel 5.2, CAP_SYS_ADMIN). -1: refused. */
static int mount_detached(void)
{
	int config = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd = -1;

	if (config < 0)
		return -1;
	if (!syscall(SYS_fsconfig, config, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, config, FSMOUNT_CLOEXEC,
				  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					  MOUNT_ATTR_NOEXEC);
	close(config);
	return fd;
}

/* Return the mount, made at the first call that may; not the caller's to close. -1: refused. */
static int private_mount(void)
{
	int fd = atomic_load_explicit(&kept_tracefs, memory_order_acquire), none = -1;

	if (fd >= 0)
		return fd;
	fd = mount_detached();
	if (fd < 0 || atomic_compare_exchange_strong(&kept_tracefs, &none, fd))
		return fd;
	close(fd);
	return none;
}

static int open_events(int dir, const char *path)
{
	return openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The kernel leaves tracefs empty while lockdown forbids reading the kernel's memory. */
static enum tracefs_state missing(const char *root)
{
	char level[20];

	procstat_lockdown(root, level, sizeof(level));
	return strcmp(level, "confidentiality") ? TRACEFS_MISSING : TRACEFS_LOCKED;
}

enum tracefs_state tracefs_open(const char *root, int *fd)
{
	static const char *const places[] = {
		"/sys/kernel/tracing/events",
		"/sys/kernel/debug/tracing/events",
	};
	char path[512];
	int mount;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s%s", root, places[i]);
		*fd = open_events(AT_FDCWD, path);
		if (*fd >= 0)
			return TRACEFS_MOUNTED;
		/* Mounted, but closed to us: say so rather than look elsewhere. */
		if (errno == EACCES)
			return TRACEFS_CLOSED;
	}
	assert(*fd < 0);
	mount = root[0] ? -1 : private_mount();
	if (mount >= 0)
		*fd = open_events(mount, "events");
	return *fd >= 0 ? TRACEFS_DETACHED : missing(root);
}

/*
 * Events at an address: hardware breakpoints, user and kernel probes.
 *
 * Any thread, slow for a probe by symbol: the file is read, with the rights of the invoking user. A
 * uprobe is opened by a file and an offset in it, so the symbol is looked up here.
 */

#define MODIFIERS "ukhHGpP"

/* A decimal or hexadecimal number at *@text. */
static bool take_number(const char **text, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 0);
	*text = end;
	return !errno;
}

static int refuse_mem(const struct event *ev, struct err *e)
{
	return err_set(e, -EINVAL,
		       "event '%.100s': not a breakpoint\n"
		       "  give mem:ADDRESS[/LENGTH][:rwx], as in mem:0x7ffe1000/8:w\n"
		       "  lengths are 1, 2, 4, 8; see proftop --list-events",
		       ev->name);
}

/* "rw" of mem:…:rw; false for a letter that is invalid or repeated. */
static bool take_access(const char *text, size_t size, uint32_t *type)
{
	static const struct {
		char letter;
		uint32_t bit;
	} letters[] = { { 'r', HW_BREAKPOINT_R },
			{ 'w', HW_BREAKPOINT_W },
			{ 'x', HW_BREAKPOINT_X } };

	*type = 0;
	for (size_t i = 0; i < size; i++) {
		uint32_t bit = 0;

		for (size_t k = 0; k < ARRAY_SIZE(letters); k++)
			if (letters[k].letter == text[i])
				bit = letters[k].bit;
		if (!bit || *type & bit)
			return false;
		*type |= bit;
	}
	return *type;
}

/* mem:ADDRESS[/LENGTH][:rwx][:modifiers]; defaults are perf's. */
static int parse_mem(struct event *ev, const char *text, const char **modifiers, struct err *e)
{
	uint64_t address, len = 0;

	if (!take_number(&text, &address))
		return refuse_mem(ev, e);
	if (*text == '/') {
		text++;
		if (!take_number(&text, &len) || (len != 1 && len != 2 && len != 4 && len != 8))
			return refuse_mem(ev, e);
	}
	ev->bp_type = HW_BREAKPOINT_R | HW_BREAKPOINT_W;
	if (*text == ':' && strspn(text + 1, "rwx") == strcspn(text + 1, ":") && text[1] != ':') {
		size_t size = strcspn(text + 1, ":");

		if (!size || !take_access(text + 1, size, &ev->bp_type))
			return refuse_mem(ev, e);
		text += 1 + size;
	}
	if (*text && *text != ':')
		return refuse_mem(ev, e);
	if (!len)
		len = ev->bp_type == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	ev->type = PERF_TYPE_BREAKPOINT;
	ev->config1 = address;
	ev->config2 = len;
	ev->period = 1;
	*modifiers = *text ? text + 1 : NULL;
	return 0;
}

/* Open the file with the rights of the invoking user. The descriptor or -errno. */
static int open_program(const char *path, struct stat *st)
{
	struct invoker_saved saved;
	int fd, code;

	if (invoker_begin(&saved, NULL))
		return -EPERM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	code = fd < 0 || fstat(fd, st) ? -errno : S_ISREG(st->st_mode) ? 0 : -EINVAL;
	invoker_end(&saved);
	if (!code)
		return fd;
	if (fd >= 0)
		close(fd);
	return code;
}

/* Where @symbol begins in the file. */
static int symbol_offset(const struct event *ev, const char *path, const char *symbol,
			 uint64_t *offset, struct err *e)
{
	struct image *image = NULL;
	struct stat st;
	int code = -ENOENT, fd = open_program(path, &st);

	if (fd < 0)
		return err_set(e, -EINVAL,
			       "event '%.100s': cannot read '%.100s': %s\n"
			       "  a probe needs the program or library itself, by its full path\n"
			       "  uprobe:/path:symbol[+offset]; see proftop --list-events",
			       ev->name, path, strerror(-fd));
	if (!image_read_fd(&image, fd, (uint64_t)st.st_size, NULL)) {
		for (uint32_t i = 0; i < image->nr_symbols && code; i++) {
			const struct image_symbol *s = &image->symbols[i];

			if (image_symbol_is(image, s, symbol) &&
			    image_offset(image, s->vaddr, offset))
				code = 0;
		}
		image_free(image);
	}
	close(fd);
	return !code ? 0
		     : err_set(e, -EINVAL,
			       "event '%.100s': no function '%.60s' in '%.100s'\n"
			       "  the file has no such symbol, or is stripped\n"
			       "  'nm -D FILE' shows them; or give an offset in the file: "
			       "uprobe:/path:0x1234 (--list-events)",
			       ev->name, symbol, path);
}

/* Set the PMU of probes, and the bit for the return. */
static int probe_pmu(const char *root, struct event *ev, const char *pmu, bool ret, struct err *e)
{
	if (pmu_parse(root, ev, pmu, ret ? "retprobe" : "", NULL))
		return err_set(e, -EINVAL,
			       "event '%.100s': this kernel has no %ss\n"
			       "  /sys/bus/event_source/devices/%s is not there\n"
			       "  it needs CONFIG_%s_EVENTS; see proftop --list-events",
			       ev->name, pmu, pmu, pmu[0] == 'k' ? "KPROBE" : "UPROBE");
	ev->period = 1;
	return 0;
}

/* "symbol+0x10" or "0x1234" split; false if the number is none. */
static bool split_offset(char *text, uint64_t *offset)
{
	char *plus = strrchr(text, '+');
	const char *number = plus ? plus + 1 : text;

	*offset = 0;
	if (plus) {
		*plus = '\0';
		return take_number(&number, offset) && !*number && *text;
	}
	return *text;
}

/* The spec behind the prefix: where, and the modifiers after the last colon. */
static int split_spec(const struct event *ev, const char *text, char *where, size_t size,
		      const char **modifiers, unsigned int colons, struct err *e)
{
	const char *last = strrchr(text, ':');
	unsigned int found = 0;
	size_t length = strlen(text);

	for (const char *p = text; *p; p++)
		found += *p == ':';
	*modifiers = NULL;
	if (last && found > colons && strspn(last + 1, MODIFIERS) == strlen(last + 1)) {
		*modifiers = last + 1;
		length = (size_t)(last - text);
	}
	if (!length || length >= size)
		return err_set(e, -EINVAL,
			       "event '%.100s': not a probe\n"
			       "  uprobe:/path:symbol[+offset], kprobe:function[+offset]; "
			       "uretprobe, kretprobe\n"
			       "  see proftop --list-events",
			       ev->name);
	memcpy(where, text, length);
	where[length] = '\0';
	return 0;
}

static int parse_uprobe(const char *root, struct event *ev, const char *text, bool ret,
			const char **modifiers, struct err *e)
{
	char where[EVENT_TEXT_MAX], *colon;
	const char *number;
	uint64_t offset, start = 0;
	int code = split_spec(ev, text, where, sizeof(where), modifiers, 1, e);

	if (code)
		return code;
	colon = strrchr(where, ':');
	if (where[0] != '/' || !colon || !split_offset(colon + 1, &offset))
		return err_set(e, -EINVAL,
			       "event '%.100s': not a probe of a program\n"
			       "  give the full path and a function: uprobe:/bin/sh:main+4\n"
			       "  or an offset in the file: uprobe:/bin/sh:0x1234; see proftop "
			       "--list-events",
			       ev->name);
	*colon = '\0';
	number = colon + 1;
	if (!take_number(&number, &start) || *number)
		code = symbol_offset(ev, where, colon + 1, &start, e);
	if (!code)
		code = probe_pmu(root, ev, "uprobe", ret, e);
	if (code)
		return code;
	memcpy(ev->target, where, strlen(where) + 1);
	ev->config2 = start + offset;
	return 0;
}

static int parse_kprobe(const char *root, struct event *ev, const char *text, bool ret,
			const char **modifiers, struct err *e)
{
	char where[EVENT_TEXT_MAX];
	uint64_t offset;
	int code = split_spec(ev, text, where, sizeof(where), modifiers, 0, e);

	if (code)
		return code;
	if (!split_offset(where, &offset) || !pmu_is_word(where))
		return err_set(e, -EINVAL,
			       "event '%.100s': not a function of the kernel\n"
			       "  kprobe:do_exit, kretprobe:do_exit, kprobe:do_exit+4\n"
			       "  /proc/kallsyms has their names; see proftop --list-events",
			       ev->name);
	code = probe_pmu(root, ev, "kprobe", ret, e);
	if (code)
		return code;
	memcpy(ev->target, where, strlen(where) + 1);
	ev->config2 = offset;
	return 0;
}

/*
 * "mem:…", "uprobe:…", "uretprobe:…", "kprobe:…",
 * "kretprobe:…": true, *@code 0 or -EINVAL with a
 * sentence, and where its modifiers begin (NULL: none); false: it is none of these.
 */
static bool probe_parse(const char *root, struct event *ev, const char *text,
			const char **modifiers, int *code, struct err *e)
{
	*modifiers = NULL;
	if (!strncmp(text, "mem:", 4))
		*code = parse_mem(ev, text + 4, modifiers, e);
	else if (!strncmp(text, "uprobe:", 7))
		*code = parse_uprobe(root, ev, text + 7, false, modifiers, e);
	else if (!strncmp(text, "uretprobe:", 10))
		*code = parse_uprobe(root, ev, text + 10, true, modifiers, e);
	else if (!strncmp(text, "kprobe:", 7))
		*code = parse_kprobe(root, ev, text + 7, false, modifiers, e);
	else if (!strncmp(text, "kretprobe:", 10))
		*code = parse_kprobe(root, ev, text + 10, true, modifiers, e);
	else
		return false;
	return true;
}

/*
 * All events of this machine: the catalogue, then the kernel's, then libpfm4's for this CPU.
 *
 * Any thread but the UI's (thousands of names are read); no state.
 */

static void add(struct event_list *l, const struct event_info *info)
{
	/* One more than there are: the last one is empty. */
	if ((l->nr & (l->nr + 1)) == 0)
		l->infos = xrealloc_array(l->infos, 2 * ((size_t)l->nr + 1), sizeof(*l->infos));
	l->infos[l->nr++] = *info;
	l->infos[l->nr] = (struct event_info){ 0 };
}

static const char *keep(struct event_list *l, const char *text)
{
	if ((l->nr_texts & (l->nr_texts + 1)) == 0)
		l->texts =
			xrealloc_array(l->texts, 2 * ((size_t)l->nr_texts + 1), sizeof(*l->texts));
	l->texts[l->nr_texts] = xstrndup(text, strlen(text));
	return l->texts[l->nr_texts++];
}

static void add_pmu_event(void *ctx, const char *name, const char *pmu)
{
	struct event_list *l = ctx;

	add(l,
	    &(struct event_info){ keep(l, name), NULL, "PMU", "an event that the kernel names" });
}

static void add_libpfm_event(void *ctx, const char *name, const char *description)
{
	struct event_list *l = ctx;
	const char *kept = keep(l, name);

	add(l, &(struct event_info){ kept, NULL, "libpfm4", keep(l, description) });
}

static void add_tracepoint(void *ctx, const char *name)
{
	struct event_list *l = ctx;

	add(l, &(struct event_info){ keep(l, name), NULL, EVENT_GROUP_TRACEPOINTS,
				     strcmp(name, EVENT_FUNCTION) != 0 ? ""
								       : "calls of kernel "
									 "functions; needs -g fp "
									 "or -g off" });
}

static int by_name(const void *a, const void *b)
{
	const struct event_info *x = a, *y = b;

	return strcmp(x->name, y->name);
}

void event_list_init(struct event_list *l, const char *root)
{
	const struct event_info *info = event_catalogue();
	uint32_t first;

	*l = (struct event_list){ 0 };
	for (; info->name; info++)
		add(l, info);
	pmu_each(root, add_pmu_event, l);
	libpfm_each(root, add_libpfm_event, l);
	first = l->nr;
	tracepoint_each(root, add_tracepoint, l);
	qsort(&l->infos[first], l->nr - first, sizeof(*l->infos), by_name);
}

void event_list_fini(struct event_list *l)
{
	for (uint32_t i = 0; i < l->nr_texts; i++)
		free(l->texts[i]);
	free(l->texts);
	free(l->infos);
	*l = (struct event_list){ 0 };
}

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

/* Add "uk", "ppp" to the modifiers of the event. 0, or -EINVAL with a message. */
static int event_add_modifiers(struct event *ev, const char *text, struct err *e)
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

/* The same with @root before /sys: tests. */
static int event_parse_at(const char *root, struct event *ev, const char *text, struct err *e)
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
			       "  a filter is of the tracepoint before it, as in\n"
			       "  -e sched:sched_switch --event-filter 'prev_pid == 0'",
			       ev->name);
	if (!filter[0] || strlen(filter) >= sizeof(ev->filter))
		return err_set(e, -EINVAL,
			       "invalid filter: %zu characters, must be 1 to %d\n"
			       "  as in -e sched:sched_switch --event-filter 'prev_pid == 0'",
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

	assert((a || !nr_a) && (b || !nr_b));
	for (uint32_t i = 0; same && i < nr_a; i++)
		same = event_same(&a[i], &b[i]);
	return same;
}

/* Fill type, config, exclusion, precision; everything else zero. A probe's @ev must outlive @attr.
 */
static void event_attr(const struct event *ev, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = ev->type;
	attr->config = ev->config;
	attr->bp_type = ev->bp_type;
	attr->config1 = ev->target[0] ? (uint64_t)(uintptr_t)ev->target : ev->config1;
	attr->config2 = ev->config2;
#ifdef PERF_ATTR_SIZE_VER8
	attr->config3 = ev->config3;
#endif
#ifdef PERF_ATTR_SIZE_VER9
	attr->config4 = ev->config4;
#endif
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
		/* The last: mediated vPMU of Linux 7.0, for events that count guests as well. */
		return "not sampled here: no PMU interrupt, not this precise, or a guest has the "
		       "PMU";
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

/*
 * Lists of events, and groups: events that the kernel has on the CPU together
 * or not at all, in perf's syntax ("{cycles,instructions}:u").
 *
 * Any thread; no state. Invariant: the members of a group stand side by side,
 * its leader first, and a group has at least two.
 */

#define TOPDOWN "topdown"

/* In "mem:0x10/4:w" and "uprobe:/bin/sh:main" a slash opens nothing. */
static bool is_probe(const char *text)
{
	static const char *const prefixes[] = { "mem:", "uprobe:", "uretprobe:" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(text, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

bool event_list_reads_file(const char *text)
{
	return strstr(text, "uprobe:") || strstr(text, "uretprobe:");
}

/* How long the event at @text is: up to a comma or brace that is not between slashes. */
static size_t one_size(const char *text)
{
	bool slash = false, probe = is_probe(text);
	size_t n = 0;

	while (text[n] && (slash || !strchr(",}", text[n])))
		slash ^= text[n++] == '/' && !probe;
	return n;
}

static int parse_one(const char *root, struct event *events, uint32_t *nr, uint32_t max,
		     const char *text, size_t size, struct err *e)
{
	char name[EVENT_NAME_MAX];

	assert(*nr <= max);
	if (size >= sizeof(name))
		return err_set(e, -EINVAL,
			       "event name too long (%zu characters)\n"
			       "  the limit is %d\n"
			       "  'proftop --list-events' shows all events",
			       size, EVENT_NAME_MAX - 1);
	if (*nr == max)
		return err_set(e, -EINVAL,
			       "too many events: the limit is %u\n"
			       "  they are sampled at the same time\n"
			       "  give fewer (-e); 'e' changes them while proftop runs",
			       max);
	memcpy(name, text, size);
	name[size] = '\0';
	return event_parse_at(root, &events[(*nr)++], name, e);
}

static int refuse_group(const char *text, const char *why, struct err *e)
{
	return err_set(e, -EINVAL,
		       "group '%.120s': %s\n"
		       "  as in {cycles,instructions} or {cycles,cache-misses}:S\n"
		       "  'proftop --list-events' shows all events",
		       text, why);
}

/* Add the modifiers to the name: the event without them is another. */
static void name_modifiers(struct event *ev, const char *modifiers)
{
	const char *colon = strrchr(ev->name, ':');
	bool has = colon && colon[1] && strspn(colon + 1, "ukhHGpP") == strlen(colon + 1);
	size_t size = strlen(ev->name);

	snprintf(ev->name + size, sizeof(ev->name) - size, "%s%s", has ? "" : ":", modifiers);
}

/* Parse the modifiers behind the closing brace, for all members, and S. */
static int parse_tail(struct event *events, uint32_t nr, const char *text, size_t size, bool *read,
		      struct err *e)
{
	char modifiers[32];
	size_t kept = 0;

	*read = false;
	if (!size)
		return 0;
	if (text[0] != ':' || size >= sizeof(modifiers))
		return refuse_group(text, "only modifiers may follow the brace, after a colon", e);
	for (size_t i = 1; i < size; i++) {
		if (text[i] == 'S')
			*read = true;
		else
			modifiers[kept++] = text[i];
	}
	modifiers[kept] = '\0';
	for (uint32_t i = 0; i < nr && kept; i++) {
		int code = event_add_modifiers(&events[i], modifiers, e);

		if (code)
			return code;
		name_modifiers(&events[i], modifiers);
	}
	return 0;
}

/* "{a,b}:u" at @text, its size in *@size. */
static int parse_group(const char *root, struct event *events, uint32_t *nr, uint32_t max,
		       const char *text, size_t *size, struct err *e)
{
	uint32_t first = *nr;
	const char *s = text + 1;
	bool read;
	int code;

	for (;; s++) {
		size_t n = one_size(s);

		code = parse_one(root, events, nr, max, s, n, e);
		if (code)
			return code;
		s += n;
		if (!*s)
			return refuse_group(text, "the closing brace is missing", e);
		if (*s == '}')
			break;
	}
	s++;
	code = parse_tail(&events[first], *nr - first, s, strcspn(s, ","), &read, e);
	for (uint32_t i = first; i < *nr && !code; i++) {
		events[i].group = first + 1;
		events[i].read = read;
	}
	*size = (size_t)(s - text) + strcspn(s, ",");
	return code;
}

/* "topdown": the events of the top-down method that this machine has, as a group. */
static int parse_topdown(const char *root, struct event *events, uint32_t *nr, uint32_t max,
			 struct err *e)
{
	char group[1024];
	size_t size;

	if (!pmu_topdown(root, group, sizeof(group)))
		return err_set(e, -EINVAL,
			       "event 'topdown': no PMU of this machine has its events\n"
			       "  slots and topdown-retiring (Intel, from Ice Lake), or stall_slot "
			       "and "
			       "op_retired (Arm)\n"
			       "  'proftop --list-events' shows all events");
	return parse_group(root, events, nr, max, group, &size, e);
}

static bool is_topdown(const char *text, size_t size)
{
	return size == strlen(TOPDOWN) && !strncmp(text, TOPDOWN, size);
}

static int event_parse_list_at(const char *root, struct event *events, uint32_t *nr, uint32_t max,
			       const char *text, struct err *e)
{
	const char *s = text;

	for (;; s++) {
		size_t size = s[0] == '{' ? 0 : one_size(s);
		int code = s[0] == '{'		 ? parse_group(root, events, nr, max, s, &size, e)
			   : is_topdown(s, size) ? parse_topdown(root, events, nr, max, e)
						 : parse_one(root, events, nr, max, s, size, e);

		if (code)
			return code;
		s += size;
		if (*s == '}')
			return refuse_group(text, "a closing brace, but none that opens", e);
		if (!*s)
			break;
	}
	event_groups_tidy(events, *nr);
	return 0;
}

int event_parse_list(struct event *events, uint32_t *nr, uint32_t max, const char *text,
		     struct err *e)
{
	assert(events && nr && text);
	return event_parse_list_at("", events, nr, max, text, e);
}

uint32_t event_group_first(const struct event *events, uint32_t at)
{
	assert(events);
	while (at && events[at].group && events[at - 1].group == events[at].group)
		at--;
	return at;
}

uint32_t event_group_nr(const struct event *events, uint32_t nr, uint32_t first)
{
	uint32_t n = 1;

	assert(first < nr);
	while (events[first].group && first + n < nr &&
	       events[first + n].group == events[first].group)
		n++;
	return n;
}

/* "cpu_core/slots/": as a leader it takes no samples, or its metrics are refused. */
static bool is_slots(const struct event *ev)
{
	const char *slash = strchr(ev->name, '/');

	return slash && !strncmp(slash, "/slots/", 7);
}

static bool is_of_topdown(const struct event *ev)
{
	const char *slash = strchr(ev->name, '/');

	return is_slots(ev) || (slash && !strncmp(slash, "/topdown-", 9));
}

/* Return the member of a group that is read which takes the samples: the leader if it can. */
static uint32_t sampling_member(const struct event *events, uint32_t first, uint32_t n)
{
	uint32_t at = first;

	while (is_slots(&events[first]) && at < first + n && is_of_topdown(&events[at]))
		at++;
	return at;
}

void event_groups_tidy(struct event *events, uint32_t nr)
{
	assert(events || !nr);
	for (uint32_t first = 0, n; first < nr; first += n) {
		uint32_t sampling;

		n = event_group_nr(events, nr, first);
		sampling = sampling_member(events, first, n);
		for (uint32_t i = first; i < first + n; i++) {
			events[i].group = n > 1 ? first + 1 : 0;
			events[i].read &= n > 1;
			events[i].counted = events[i].read && i != sampling;
		}
	}
}

/*
 * The attributes of our events, in one place.
 *
 * Pure. Invariant: all events that share a ring have the same clock and the
 * same id block, or a reader could not distinguish their records.
 */

/* kernel.perf_event_max_stack, plus the context markers. */
#define CHAIN_MAX (127 + 8)

static void set_clock(struct perf_event_attr *attr)
{
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->sample_id_all = 1;
}

uint64_t attr_rate(const struct event *ev, double hz)
{
	double rate = ev->clock ? 1e9 / hz : hz;

	return rate < 1 ? 1 : (uint64_t)llround(rate);
}

/* Clocks get their period in ns: the kernel would convert a rate into one, rounded. */
static void set_rate(struct perf_event_attr *attr, const struct attr_config *config,
		     const struct event *ev, double hz)
{
	hz = ev->hz > 0 ? ev->hz : hz;
	if (ev->period || (config->period && !(ev->hz > 0))) {
		attr->sample_period = ev->period ? ev->period : config->period;
	} else if (ev->clock) {
		attr->sample_period = attr_rate(ev, hz);
	} else {
		attr->freq = 1;
		attr->sample_freq = attr_rate(ev, hz);
	}
}

uint64_t attr_sample_type(const struct attr_config *config)
{
	if (config->stack_size)
		return RECORD_SAMPLE_TYPE | RECORD_STACK_TYPE;
	return config->no_chain ? RECORD_SAMPLE_TYPE & ~(uint64_t)PERF_SAMPLE_CALLCHAIN
				: RECORD_SAMPLE_TYPE;
}

void attr_sample(struct perf_event_attr *attr, const struct attr_config *config,
		 const struct event *ev, double hz)
{
	event_attr(ev, attr);
	/* Without a chain a switch has no stack: each would cost the task, and its sample be
	 * useless. */
	if (ev->wait && config->no_chain)
		attr->config = PERF_COUNT_SW_DUMMY;
	set_clock(attr);
	if (!ev->counted)
		set_rate(attr, config, ev, hz);
	attr->disabled = 1;
	/*
	 * Switches, begins and ends of tasks, and exec, in order with the samples. Switches of
	 * whole CPUs have a separate event, as they may be recorded for a part of the time.
	 */
	attr->task = ev->wait;
	attr->comm = attr->comm_exec = ev->wait;
	attr->context_switch = ev->wait && config->tasks;
	/* A sample does not distinguish the counts of a task and of its children: as perf record.
	 */
	attr->inherit = config->tasks && !config->no_inherit && !ev->read;
	attr->enable_on_exec = config->enable_on_exec;
	attr->exclude_idle = config->exclude_idle && ev->clock;
	attr->sample_type = attr_sample_type(config);
	attr->exclude_callchain_kernel = !ev->kernel;
	if (config->stack_size) {
		attr->sample_regs_user = config->regs_mask;
		attr->sample_stack_user = config->stack_size;
		/* the stack copy has it all: the kernel's walk would only cost */
		attr->exclude_callchain_user = 1;
	}
	/* A task that is switched out returns to user space when its wait is over. */
	if (config->deferred && !ev->wait)
		attr_set_flag(attr, RECORD_DEFER_CHAIN);
	/* Refused otherwise. */
	if (!strcmp(ev->name, EVENT_FUNCTION))
		attr->exclude_callchain_user = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_ID | PERF_FORMAT_LOST;
	if (ev->read) {
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format |= PERF_FORMAT_GROUP;
	}
	/* The ring's watermark is its owner's; this keeps the event from waking at every sample. */
	attr->watermark = 1;
}

void attr_waking(struct perf_event_attr *attr, const struct event *ev)
{
	event_attr(ev, attr);
	set_clock(attr);
	attr->sample_period = 1;
	attr->sample_type = ATTR_WAKING_TYPE;
	attr->disabled = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			    PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr->watermark = 1;
}

void attr_leader(struct perf_event_attr *attr, size_t watermark)
{
	*attr = (struct perf_event_attr){
		.size = sizeof(*attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = ATTR_SIDE_TYPE,
		.disabled = 1,
		/* without these only root may open it */
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)watermark,
	};
	set_clock(attr);
}

void attr_switches(struct perf_event_attr *attr)
{
	attr_leader(attr, 0);
	attr->context_switch = 1;
}

void attr_side(struct perf_event_attr *attr, const struct attr_config *config, size_t ring_size)
{
	assert(ring_size >= 8);
	attr_leader(attr, ring_size / 8);
	attr->disabled = 0;
	attr->inherit = config->tasks;
	attr->mmap_data = config->data_maps;
	if (config->deferred)
		attr_set_flag(attr, RECORD_DEFER_OUTPUT);
	attr->mmap = attr->mmap2 = 1;
	attr->comm = attr->comm_exec = 1;
	attr->task = 1;
	attr->ksymbol = 1;
	attr->bpf_event = 1;
	/* It ends when its CPU goes offline. */
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
}

size_t attr_sample_max(const struct attr_config *config)
{
	size_t size = sizeof(struct perf_event_header);

	size += 7 * sizeof(uint64_t); /* identifier ... period */
	if (attr_sample_type(config) & PERF_SAMPLE_CALLCHAIN)
		size += (1 + CHAIN_MAX) * sizeof(uint64_t);
	size += (3 + 3 * EVENTS_MAX) * sizeof(uint64_t); /* counts of a group */
	if (config->stack_size)
		size += (1 + (size_t)__builtin_popcountll(config->regs_mask)) * sizeof(uint64_t) +
			2 * sizeof(uint64_t) + config->stack_size;
	assert(size >= sizeof(struct perf_event_header));
	return MIN(size, UINT16_MAX);
}

/*
 * sched:sched_waking: its format, checked.
 *
 * Any thread; no state.
 */

/* Return whether the text of a format file has the woken task at WAKING_PID_OFFSET. */
static bool is_expected(const char *text)
{
	const char *line = strstr(text, "field:pid_t pid;");
	unsigned int offset, size;

	return line && sscanf(line, "field:pid_t pid; offset:%u; size:%u;", &offset, &size) == 2 &&
	       offset == WAKING_PID_OFFSET && size == sizeof(int32_t);
}

static int check_format(void)
{
	char text[2048];
	ssize_t size;
	int events, fd;

	tracefs_open("", &events);
	if (events < 0)
		return -EACCES;
	fd = openat(events, "sched/sched_waking/format", O_RDONLY | O_CLOEXEC);
	close(events);
	if (fd < 0)
		return -errno;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(size, 0)] = '\0';
	return is_expected(text) ? 0 : -EBADMSG;
}

int waking_event(struct event *ev)
{
	struct err e = { .text = "" };
	int code;

	/* Tracepoints have the numbers of the first namespace, samples have ours. */
	if (procstat_pid_namespace(""))
		return -ENOTSUP;
	code = check_format();
	return code ? code : event_parse(ev, WAKING_NAME, &e);
}

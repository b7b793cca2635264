// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All events of a session: for each CPU a sample ring and a side-band ring; changes while they run.
 *
 * Runs on: set-up, then the builder; look-ups by id from any. Invariant: a counters_open() that
 * fails undoes everything.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"

/*
 * Limits of the kernel for this user, capabilities given up, messages of errors; system calls,
 * replaceable by tests.
 *
 * Set-up and builder; no state. Each message: the failure; its reason, with the value just read;
 * the fix, least power first.
 */

#define DATA_RING_MAX	  ((size_t)16 << 20)
#define DATA_RINGS_MAX	  ((size_t)256 << 20) /* all CPUs together */
#define DATA_RING_WANTED  (2u << 20)
#define DATA_RING_MANY	  (512u << 10) /* of hundreds of CPUs */
#define DATA_RING_MIN	  (64u << 10)
#define SIDE_RING_WANTED  (256u << 10)
#define SIDE_RING_SMALL	  (64u << 10)
#define SIDE_RING_CHAINS  (2u << 20) /* with deferred chains, of 4 KiB at most */
#define MLOCK_KB_FALLBACK 516

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* The capabilities of this thread. */
struct caps {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static bool get_caps(struct caps *c)
{
	*c = (struct caps){ .header.version = _LINUX_CAPABILITY_VERSION_3 };
	return !syscall(SYS_capget, &c->header, c->data);
}

/* Return whether @cap is in the effective set. */
static bool have_cap(unsigned int cap)
{
	struct caps c;

	return get_caps(&c) && (c.data[cap / 32].effective & (1u << cap % 32));
}

void limits_drop_caps(bool command, bool replay)
{
	/* The kernel's symbols and code, and the files of the user. */
	static const unsigned int replaying[] = { CAP_SYSLOG, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE,
						  CAP_SYS_RAWIO };
	static const unsigned int used[] = {
		CAP_PERFMON,
		CAP_SYS_PTRACE,
		CAP_SYSLOG,
		CAP_IPC_LOCK,
		CAP_SYS_NICE,
		/* kprobes and uprobes; everything, before there was CAP_PERFMON */
		CAP_SYS_ADMIN,
		/* other users' files and ours in their folders; map_files; kcore */
		CAP_DAC_READ_SEARCH,
		CAP_DAC_OVERRIDE,
		CAP_CHECKPOINT_RESTORE,
		CAP_SYS_RAWIO,
		/* to end an editor or command that has changed its user */
		CAP_KILL,
	};
	uint32_t keep[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct caps c;

	if (!get_caps(&c))
		return;
	for (size_t i = 0; !replay && i < ARRAY_SIZE(used); i++)
		keep[used[i] / 32] |= 1u << used[i] % 32;
	/* To write files as the invoking user, behind sudo. */
	if (invoker_is_other())
		keep[0] |= 1u << CAP_SETUID | 1u << CAP_SETGID;
	/* With file capabilities the first only: that user has no others. */
	for (size_t i = 0; replay && i < (getauxval(AT_SECURE) ? 1 : ARRAY_SIZE(replaying)); i++)
		keep[replaying[i] / 32] |= 1u << replaying[i] % 32;
	for (size_t i = 0; i < ARRAY_SIZE(keep); i++) {
		c.data[i].effective &= keep[i];
		if (command)
			continue;
		c.data[i].permitted &= keep[i];
		c.data[i].inheritable &= keep[i];
	}
	syscall(SYS_capset, &c.header, c.data);
}

/* Have tracepoints at hand while they may be opened without a mount: the screen lists and parses
 * them. */
static void keep_tracepoints(void)
{
	int fd;

	tracefs_open("", &fd);
	if (fd >= 0)
		close(fd);
}

void limits_drop_thread_caps(enum limits_thread thread)
{
	/*
	 * To end a command; to act as the invoking user; to read the state of a mutex (:lock); as
	 * root, files in the folders of others.
	 */
	uint32_t ui = 1u << CAP_KILL | 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SYS_PTRACE;
	uint32_t keep = 1u << CAP_SYS_NICE;
	struct caps c;

	if (!getauxval(AT_SECURE))
		ui |= 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
	if (thread == LIMITS_UI) {
		keep_tracepoints();
		keep |= ui;
	}
	if (!get_caps(&c))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(c.data); i++) {
		c.data[i].effective &= i ? 0 : keep;
		c.data[i].permitted &= i ? 0 : keep;
		c.data[i].inheritable = 0;
	}
	syscall(SYS_capset, &c.header, c.data);
}

static long paranoid(void)
{
	long level;

	return procstat_sysctl("", "perf_event_paranoid", &level) ? 2 : level;
}

/* Raise the soft limit of open files to the hard one: events x CPUs are needed. */
static void limits_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Return whether the kernel does not count locked memory for this user. */
static bool locks_freely(void)
{
	return have_cap(CAP_IPC_LOCK) || paranoid() < 0;
}

/* * Return the bytes of a side-band ring, and of a data ring to try first; both powers of
 * two. @want: the bytes it should hold, if permitted.
 */
static size_t limits_side_ring(bool deferred)
{
	if (!locks_freely())
		return SIDE_RING_SMALL;
	return deferred ? SIDE_RING_CHAINS : SIDE_RING_WANTED;
}

/*
 * Return the power of two that holds @want, limited by the sum over all CPUs. Rings of many CPUs
 * are smaller where @want is.
 */
static size_t limits_wanted_ring(uint32_t nr_cpus, size_t want)
{
	size_t size = DATA_RING_WANTED;

	while (size > DATA_RING_MANY && size * nr_cpus > DATA_RINGS_MAX && size / 2 >= want)
		size /= 2;
	while (size < want && size < DATA_RING_MAX && 2 * size * MAX(nr_cpus, 1) <= DATA_RINGS_MAX)
		size *= 2;
	assert(!(size & (size - 1)) && size <= DATA_RING_MAX);
	return size;
}

/* Return an equal share for each of our CPUs of perf_event_mlock_kb per online CPU. */
static size_t limits_data_ring(uint32_t nr_cpus, size_t side_size, size_t want)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), share,
	       size = limits_wanted_ring(nr_cpus, want);
	long kb;

	if (locks_freely())
		return size;
	if (procstat_sysctl("", "perf_event_mlock_kb", &kb) || kb < 0)
		kb = MLOCK_KB_FALLBACK;
	share = (size_t)kb * 1024 * (size_t)sysconf(_SC_NPROCESSORS_ONLN) / MAX(nr_cpus, 1);
	while (size > DATA_RING_MIN && size + side_size + 2 * page > share)
		size /= 2;
	return size;
}

int limits_check_rate(double hz, struct err *e)
{
	long limit;

	/* Not a number fails every comparison. */
	if (!(hz > 0 && hz <= 1e9))
		return err_set(e, -EINVAL,
			       "invalid frequency %g Hz: must be more than 0\n"
			       "  it is samples per second and CPU\n"
			       "  usual are 49 to 9973 Hz (-F)",
			       hz);
	if (procstat_sysctl("", "perf_event_max_sample_rate", &limit) || limit <= 0 ||
	    hz <= (double)limit)
		return 0;
	return err_set(e, -EINVAL,
		       "invalid frequency %.0f Hz: the kernel's limit is %ld Hz\n"
		       "  kernel.perf_event_max_sample_rate is %ld; the kernel lowers it "
		       "when sampling takes too long\n"
		       "  choose a lower rate (-F), or 'sudo sysctl "
		       "kernel.perf_event_max_sample_rate=%.0f'",
		       hz, limit, limit, hz);
}

/* Write the target of the refused call in words. */
static void name_target(char *dst, size_t size, const struct limits_refusal *r)
{
	if (r->tid < 0)
		snprintf(dst, size, "other users' processes");
	else if (r->kernel)
		snprintf(dst, size, "kernel code of process %d", r->tid);
	else
		snprintf(dst, size, "process %d", r->tid);
}

/* A probe needs more than the right to sample. */
static int explain_probe(struct err *e, int code, const struct limits_refusal *r)
{
	char level[20];

	if (!have_cap(CAP_SYS_ADMIN))
		return err_set(e, code,
			       "cannot set the probe '%.160s': perf_event_open: %s\n"
			       "  kprobes and uprobes need CAP_SYS_ADMIN; CAP_PERFMON is not "
			       "enough\n"
			       "  'sudo proftop'; or sample without probes",
			       r->event, strerror(-code));
	procstat_lockdown("", level, sizeof(level));
	return err_set(e, code,
		       "cannot set the probe '%.160s': perf_event_open: %s\n"
		       "  %s\n"
		       "  uprobes may still work; cpu-clock works on every machine",
		       r->event, strerror(-code),
		       strcmp(level, "confidentiality") ? "a security module or a container "
							  "forbids it"
							: "kernel lockdown (confidentiality) "
							  "forbids kprobes");
}

/* With the right to sample: some tracepoints are closed to all users. */
static int explain_tracepoint(struct err *e, int code, const char *event, const char *target)
{
	return err_set(e, code,
		       "cannot sample %s by event '%.100s': perf_event_open: %s\n"
		       "  the kernel refuses tracepoints that a sample would trigger again; or a "
		       "security module forbids it\n"
		       "  'proftop --list-events' shows other events; cpu-clock works on every "
		       "machine",
		       target, event, strerror(-code));
}

/* The process has another owner: kernel.perf_event_paranoid makes no difference. */
static int explain_owner(struct err *e, int code, const char *target, uid_t owner)
{
	char whose[32] = "root";

	if (owner)
		snprintf(whose, sizeof(whose), "user %u", owner);
	return err_set(e, code,
		       "cannot sample %s: perf_event_open: %s\n"
		       "  it belongs to %s; the kernel lets you, user %u, sample your own "
		       "processes\n"
		       "  least power first: 'proftop -p PID' for one of yours; CAP_PERFMON for "
		       "the binary "
		       "(make install SETCAP=1); 'sudo proftop'. See proftop(1), ACCESS.",
		       target, strerror(-code), whose, geteuid());
}

/* Not permitted: give the ways to get the right, from least to most power. */
static int explain_permission(struct err *e, int code, const struct limits_refusal *r)
{
	const char *name = code == -EPERM ? "EPERM" : "EACCES";
	long level = paranoid(), enough = r->tid < 0 ? 0 : r->kernel ? 1 : 2;
	bool able = have_cap(CAP_PERFMON) || have_cap(CAP_SYS_ADMIN);
	const char *colon = strchr(r->event, ':');
	char target[64], path[32];
	struct stat st;

	name_target(target, sizeof(target), r);
	snprintf(path, sizeof(path), "/proc/%d", r->tid);
	if (r->probe)
		return explain_probe(e, code, r);
	if (able && colon && strspn(colon + 1, "ukhHGpP") < strlen(colon + 1))
		return explain_tracepoint(e, code, r->event, target);
	if (!able && r->tid > 0 && level <= 2 && !stat(path, &st) && st.st_uid != geteuid())
		return explain_owner(e, code, target, st.st_uid);
	if (able || level <= enough)
		return err_set(e, code,
			       "cannot sample %s: perf_event_open: %s (%s)\n"
			       "  kernel.perf_event_paranoid is %ld and allows it: a container's "
			       "seccomp filter, a security module, or the process's other rights "
			       "(setuid) forbid it\n"
			       "  least power first: 'proftop -p PID' for your own process; run "
			       "outside the container; 'sudo proftop'",
			       target, strerror(-code), name, level);
	return err_set(e, code,
		       "cannot sample %s: perf_event_open: %s (%s)\n"
		       "  kernel.perf_event_paranoid is %ld; this user has no CAP_PERFMON.\n"
		       "  least power first: 'proftop -p PID' for your own process (needs paranoid "
		       "<= 2); "
		       "'sudo proftop'; 'sudo sysctl kernel.perf_event_paranoid=%ld' (all users, "
		       "until "
		       "reboot). See proftop(1), ACCESS.",
		       target, strerror(-code), name, level, enough);
}

static int explain_files(struct err *e, int code, const struct limits_refusal *r)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	return err_set(e, code,
		       "too many open files: %u of %u events are open, the limit is %" PRIu64 "%s\n"
		       "  one is needed for each event, CPU and task followed\n"
		       "  fewer events (-e), CPUs (-C) or processes (-p); or raise 'ulimit -n'",
		       r->nr_fds, r->nr_wanted, (uint64_t)limit.rlim_cur,
		       code == -ENFILE ? " (of the whole system: fs.file-max)" : "");
}

/* Return the reason in a few words, by the kind of event. */
static const char *refused_reason(int code, const struct limits_refusal *r)
{
	bool kprobe = r->probe && strncmp(r->event, "uprobe:", 7) &&
		      strncmp(r->event, "uretprobe:", 10);

	if (kprobe && code == -ENOENT)
		return "no such function in this kernel";
	if (kprobe && code == -EADDRNOTAVAIL)
		return "several functions have this name";
	if (kprobe && code == -EINVAL)
		return "the kernel allows no probe there";
	if (r->probe && code == -EILSEQ)
		return "not the start of an instruction";
	if (r->hardware && code == -ENOENT)
		return r->pmu ? "the PMU of this machine has no such event"
			      : "this machine has no PMU";
	return event_errno(code);
}

static int explain_refused(struct err *e, int code, const struct limits_refusal *r)
{
	if (code == -ENOENT && r->cgroup)
		return err_set(e, code,
			       "cannot open event '%s' for the cgroup: it has no perf_event "
			       "controller\n"
			       "  perf_event_open: %s; cgroup2 has it once any controller was "
			       "enabled\n"
			       "  'echo +pids | sudo tee /sys/fs/cgroup/cgroup.subtree_control'; "
			       "or "
			       "-p or -u instead of -G",
			       r->event, strerror(-code));
	return err_set(e, code,
		       "cannot open event '%s' on CPU %d: %s\n"
		       "  perf_event_open: %s\n"
		       "  %s",
		       r->event[0] ? r->event : "dummy", r->cpu, refused_reason(code, r),
		       strerror(-code),
		       r->probe ? "/proc/kallsyms has the kernel's functions, 'objdump -d' the "
				  "instructions of a program"
				: "'proftop --list-events' shows events; cpu-clock works on every "
				  "machine");
}

/* Append the name of a field as a format declares it: "char prev_comm[16];". */
static size_t add_field(const char *text, char *out, size_t at, size_t size)
{
	/* "__data_loc char[] filename;" */
	const char *end = text + strcspn(text, ";\n"), *name;

	if (end > text && end[-1] == ']')
		end = text + strcspn(text, "[");
	for (name = end; name > text && (isalnum((unsigned char)name[-1]) || name[-1] == '_');)
		name--;
	if (name == end || !strncmp(name, "common_", 7) || at + (size_t)(end - name) + 3 > size)
		return at;
	return at + (size_t)snprintf(out + at, size - at, "%s%.*s", at ? ", " : "",
				     (int)(end - name), name);
}

/* Write the fields of the tracepoint @event, as in "prev_comm, prev_pid"; "": unknown. */
static void fields_of(const char *event, char *out, size_t size)
{
	char path[2 * EVENT_NAME_MAX], text[8192];
	size_t system = strcspn(event, ":"), at = 0;
	ssize_t nr = -1;
	int dir, fd;

	*out = '\0';
	if (!event[system] || tracefs_open("", &dir) > TRACEFS_DETACHED)
		return;
	snprintf(path, sizeof(path), "%.*s/%.*s/format", (int)system, event,
		 (int)strcspn(event + system + 1, ":"), event + system + 1);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		nr = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	close(dir);
	text[MAX(nr, 0)] = '\0';
	for (const char *field = text; (field = strstr(field, "field:"));) {
		field += strlen("field:");
		at = add_field(field, out, at, size);
	}
}

static int explain_filter(struct err *e, int code, const struct limits_refusal *r)
{
	char fields[120];

	fields_of(r->event, fields, sizeof(fields));
	return err_set(e, code,
		       "invalid filter for '%.60s': %s\n"
		       "  fields are %s\n"
		       "  as in --event-filter 'prev_pid == 0 && next_comm ~ \"sh*\"'",
		       r->event, strerror(-code),
		       *fields ? fields : "in /sys/kernel/tracing/events/…/format");
}

/* Set @e to the reason why perf_event_open failed with @code, and a fix. Return @code. */
static int limits_explain_open(struct err *e, int code, const struct limits_refusal *r)
{
	assert(code < 0);
	if (r->filter)
		return explain_filter(e, code, r);
	switch (-code) {
	case EACCES:
	case EPERM:
		return explain_permission(e, code, r);
	case EMFILE:
	case ENFILE:
		return explain_files(e, code, r);
	case ESRCH:
		if (r->tid <= 0)
			return err_set(e, code,
				       "no process left to sample\n"
				       "  all processes of the target have exited\n"
				       "  start again with another target");
		return task_list_no_process(r->tid, e);
	case EINTR:
		return err_set(e, code,
			       "cannot sample pid %d: it hangs in an exec\n"
			       "  it waits for a file system that does not respond\n"
			       "  start again when it runs",
			       r->tid);
	case ENOSYS:
		return err_set(e, code,
			       "this kernel has no perf events\n"
			       "  it was built without CONFIG_PERF_EVENTS\n"
			       "  boot a kernel with CONFIG_PERF_EVENTS; distributions' kernels "
			       "have it");
	}
	if (code == -EINVAL && !strcmp(r->event, EVENT_FUNCTION))
		return err_set(e, code,
			       "cannot sample %s: the kernel refuses it together with stack "
			       "copies\n"
			       "  stack copies are taken with the samples of all events\n"
			       "  use -g fp or -g off (C); or choose another event",
			       r->event);
	return explain_refused(e, code, r);
}

/* The same for the mmap of a ring. */
static int limits_explain_ring(struct err *e, int code, size_t size, uint32_t nr_cpus)
{
	long kb = 0;

	assert(code < 0);
	procstat_sysctl("", "perf_event_mlock_kb", &kb);
	if (code == -EPERM)
		return err_set(e, -ENOLCK,
			       "cannot lock %zu KiB of ring for each of %u CPUs: mmap: %s\n"
			       "  kernel.perf_event_mlock_kb is %ld for each CPU, for all "
			       "profilers "
			       "of this user together\n"
			       "  end the other profiler; use a smaller --stack-size; raise "
			       "'ulimit "
			       "-l'; or 'sudo sysctl kernel.perf_event_mlock_kb=%zu'",
			       size >> 10, nr_cpus, strerror(-code), kb,
			       (size_t)kb + (size >> 10) + 128);
	return err_set(e, code,
		       "cannot map a ring of %zu KiB for each of %u CPUs: %s\n"
		       "  mmap of a perf event failed\n"
		       "  try a smaller --ring",
		       size >> 10, nr_cpus, strerror(-code));
}

/*
 * The real system calls behind counters: errno becomes a return value. -EINTR: a task that is held
 * up by its exec.
 *
 * Runs on: the thread of counters. No state.
 */

static int kernel_perf_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu,
			    int group_fd, unsigned long flags)
{
	bool task = pid > 0 && !(flags & PERF_FLAG_PID_CGROUP);
	long fd;
	int code;

	if (task)
		in_time_begin();
	fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
	code = fd < 0 ? -errno : (int)fd;
	if (task)
		in_time_end(code == -EINTR);
	return code;
}

static int kernel_ioctl(void *ctx, int fd, unsigned long request, uint64_t arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static ssize_t kernel_read(void *ctx, int fd, void *buf, size_t size)
{
	ssize_t nr = read(fd, buf, size);

	return nr < 0 ? -errno : nr;
}

static int kernel_ring_open(void *ctx, struct ring *ring, int fd, size_t size)
{
	return ring_open(ring, fd, size);
}

static int kernel_close(void *ctx, int fd)
{
	return close(fd) ? -errno : 0;
}

static int kernel_poll(void *ctx, struct pollfd *fds, nfds_t nr)
{
	int ready = poll(fds, nr, 0);

	return ready < 0 ? -errno : ready;
}

static int kernel_list_tasks(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out)
{
	return task_list_tree(tids, nr, out);
}

static bool kernel_exists(void *ctx, pid_t tid)
{
	return !kill(tid, 0) || errno != ESRCH;
}

const struct counters_sys counters_kernel = {
	.perf_open = kernel_perf_open,
	.ioctl = kernel_ioctl,
	.read = kernel_read,
	.ring_open = kernel_ring_open,
	.close = kernel_close,
	.poll = kernel_poll,
	.list_tasks = kernel_list_tasks,
	.exists = kernel_exists,
	.waking = waking_event,
};

/* ---- counters ---- */

/*
 * Which events the records in the rings belong to, for a recording's header.
 *
 * Runs on: set-up, then the builder. Events are added and closed: a recorder calls this after each
 * change.
 */

static void each_slot(const struct counters *c, const struct slot *s, counters_attr_fn fn,
		      void *ctx)
{
	size_t nr = (size_t)s->nr_tasks * c->env.nr_cpus, nr_ids = 0;
	uint64_t *ids = xcalloc(MAX(2 * nr, 1u), sizeof(*ids));

	for (size_t i = 0; i < nr; i++) {
		if (s->fds[i].fd >= 0)
			ids[nr_ids++] = s->fds[i].id;
		if (s->fds[i].wake_fd >= 0)
			ids[nr_ids++] = s->fds[i].wake_id;
	}
	fn(ctx, s->event.name, &s->attr, ids, nr_ids);
	free(ids);
}

/* For the whole system the owners of the side-band rings are the side-band events; read their ids.
 */
static void side_leaders(const struct counters *c, counters_attr_fn fn, void *ctx)
{
	const struct counters_sys *sys = &c->env.sys;
	uint64_t *ids = xcalloc(c->env.nr_cpus, sizeof(*ids)), id;
	struct perf_event_attr attr;
	size_t nr = 0;

	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		if (!sys->ioctl(sys->ctx, c->cpus[i].side_fd, PERF_EVENT_IOC_ID,
				(uint64_t)(uintptr_t)&id))
			ids[nr++] = id;
	attr_side(&attr, &c->env.attr, c->side_size);
	fn(ctx, "dummy:u", &attr, ids, nr);
	free(ids);
}

void counters_each_attr(const struct counters *c, counters_attr_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		each_slot(c, &c->slots[i], fn, ctx);
	if (c->waking.nr_tasks)
		each_slot(c, &c->waking, fn, ctx);
	if (c->switches.nr_tasks)
		each_slot(c, &c->switches, fn, ctx);
	if (c->env.attr.tasks)
		each_slot(c, &c->side, fn, ctx);
	else
		side_leaders(c, fn, ctx);
}

/* Get the events of tasks one by one: the side-band's, then slots 0 to nr_slots - 1. */
static inline struct slot *counters_slot(struct counters *c, uint32_t at)
{
	assert(at <= c->nr_slots);
	return at ? &c->slots[at - 1] : &c->side;
}

/* Beside the slot, in the table of ids: the event's samples have the read layout. */
#define ID_READ 0x100

#define ID_GONE	     (-3)
#define ID_GONE_READ (-4)
#define ID_WAKING    (-5)

#define SIDE_RING_MIN (16u << 10)

/* A data ring holds so much of a full rate: the reader may be kept waiting on a busy machine. */
#define RING_SECONDS 0.15

/* Close the rings, and the leaders that own them. */
static void close_rings(struct counters *c)
{
	for (uint32_t i = 0; i < c->env.nr_cpus; i++) {
		struct counters_cpu *cpu = &c->cpus[i];

		ring_close(&cpu->data);
		ring_close(&cpu->side);
		slot_close_fd(&c->env, &cpu->data_fd);
		slot_close_fd(&c->env, &cpu->side_fd);
	}
}

/*
 * The two owners of rings on one CPU. They are events of this process: they need no permission, and
 * they do not hang up. Side-band events of a whole CPU own their ring themselves.
 */
static int open_leaders(struct counters *c, struct counters_cpu *cpu)
{
	struct perf_event_attr attr;

	c->env.refusal.event[0] = '\0';
	attr_leader(&attr, c->side_size / 8);
	if (!c->env.attr.tasks)
		attr_side(&attr, &c->env.attr, c->side_size);
	cpu->side_fd = slot_perf_open(&c->env, &attr, c->env.attr.tasks ? getpid() : -1, cpu->cpu);
	if (cpu->side_fd < 0)
		return cpu->side_fd;
	attr_leader(&attr, c->ring_size / 4);
	cpu->data_fd = slot_perf_open(&c->env, &attr, getpid(), cpu->cpu);
	return cpu->data_fd < 0 ? cpu->data_fd : 0;
}

/* Open all rings with one size, or none. *@mapping: it was mmap that failed. */
static int open_rings(struct counters *c, bool *mapping)
{
	const struct counters_sys *sys = &c->env.sys;
	int code = 0;

	*mapping = false;
	for (uint32_t i = 0; i < c->env.nr_cpus && !code; i++) {
		struct counters_cpu *cpu = &c->cpus[i];

		code = open_leaders(c, cpu);
		if (code)
			break;
		*mapping = true;
		code = sys->ring_open(sys->ctx, &cpu->side, cpu->side_fd, c->side_size);
		if (!code)
			code = sys->ring_open(sys->ctx, &cpu->data, cpu->data_fd, c->ring_size);
		*mapping = code;
	}
	if (code)
		close_rings(c);
	return code;
}

static size_t power_of_two(size_t size)
{
	size_t p = (size_t)sysconf(_SC_PAGESIZE);

	while (p < size && p << 1)
		p <<= 1;
	return p;
}

/*
 * One size for all CPUs: more for one would be less for another. The
 * leaders are opened again for each size, as it sets their watermark.
 */
static int size_rings(struct counters *c, size_t min, struct err *e)
{
	bool mapping;
	int code;

	for (;;) {
		code = open_rings(c, &mapping);
		if (!code)
			return 0;
		if (!mapping)
			return limits_explain_open(e, code, &c->env.refusal);
		if (code != -EPERM && code != -ENOMEM)
			break;
		if (c->ring_size / 2 >= min)
			c->ring_size /= 2;
		else if (c->side_size / 2 >= SIDE_RING_MIN)
			c->side_size /= 2;
		else
			break;
	}
	return limits_explain_ring(e, code, c->ring_size + c->side_size, c->env.nr_cpus);
}

/*
 * After a loss the kernel writes the record about that with the next sample, and fills a ring to
 * all but one byte: in a ring without that room no sample is ever written again. The record: its
 * header, identifier and number; pid, time, identifier and CPU.
 */
#define LOSS_ROOM (3 * sizeof(uint64_t) + 5 * sizeof(uint64_t) + 1)

/* At least two samples, so that one can be written while one is read. */
static int choose_ring_size(struct counters *c, const struct counters_config *config, struct err *e)
{
	size_t sample = attr_sample_max(&c->env.attr);
	size_t min = power_of_two(2 * sample);

	c->side_size = limits_side_ring(config->deferred);
	if (!config->ring_size) {
		size_t want = (size_t)((double)sample * config->hz * RING_SECONDS);

		c->ring_wanted = MAX(limits_wanted_ring(config->nr_cpus, want), min);
		c->ring_size = MAX(limits_data_ring(config->nr_cpus, c->side_size, want), min);
		return size_rings(c, min, e);
	}
	if (config->ring_size < sample + LOSS_ROOM)
		return err_set(e, -EINVAL,
			       "a ring of %zu bytes cannot hold one sample of up to %zu bytes\n"
			       "  a sample carries %u bytes of stack, registers and the call "
			       "chain\n"
			       "  --ring %zu or more, or a smaller --stack-size",
			       config->ring_size, sample, config->stack_size,
			       power_of_two(sample + LOSS_ROOM));
	c->ring_size = c->ring_wanted = power_of_two(config->ring_size);
	return size_rings(c, MIN(min, c->ring_size), e);
}

/* Return the meaning of the ids of @slot, as number @at of the events. */
static int counters_id_value(struct counters *c, const struct slot *slot, uint32_t at)
{
	if (!slot->event.read)
		return (int)at;
	/* Known once the first of them is open; the same for all. */
	c->read_layout.read_format = slot->attr.read_format;
	atomic_store_explicit(&c->any_read, true, memory_order_relaxed);
	return (int)at | ID_READ;
}

/* Append the ids of @slot; room was made. */
static size_t put_ids(const struct slot *s, uint32_t nr_cpus, uint64_t *ids, int *values, size_t at,
		      int value)
{
	for (size_t i = 0; i < (size_t)s->nr_tasks * nr_cpus; i++) {
		if (s->fds[i].fd < 0)
			continue;
		ids[at] = s->fds[i].id;
		values[at++] = value;
		if (s->fds[i].wake_fd < 0)
			continue;
		ids[at] = s->fds[i].wake_id;
		values[at++] = value;
	}
	return at;
}

/*
 * Return the software event that other sessions may also have, if this one has just one. The kernel
 * (seen on 6.18) fills in a sample once for all events that the same fault or switch hits, so ours
 * may carry the id of another's. Timers are not shared, and hardware events have an interrupt each.
 */
static int find_shared_slot(const struct counters *c)
{
	int found = -1;

	for (uint32_t i = 0; i < c->nr_slots; i++) {
		const struct event *ev = &c->slots[i].event;

		if (ev->hardware || ev->clock)
			continue;
		if (ev->counted)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i | (ev->read ? ID_READ : 0);
	}
	return found;
}

bool counters_has_waking(const struct counters *c)
{
	return c->waking.nr_tasks > 0;
}

static int find_wait_slot(const struct counters *c)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (c->slots[i].event.wait)
			return (int)i;
	return -1;
}

int counters_wait_slot(const struct counters *c)
{
	return atomic_load_explicit(&c->wait_slot, memory_order_relaxed);
}

/* Fill in the ids of all slots and of the slots that are @gone, and no others. */
static void counters_fill_ids(struct counters *c, const struct slot *gone, uint32_t nr_gone)
{
	size_t nr = 0, at = 0;
	uint64_t *ids;
	int *slots;

	for (uint32_t i = 0; i < c->nr_slots; i++)
		nr += 2 * (size_t)c->slots[i].nr_tasks * c->env.nr_cpus;
	for (uint32_t i = 0; i < nr_gone; i++)
		nr += 2 * (size_t)gone[i].nr_tasks * c->env.nr_cpus;
	nr += 2 * (size_t)c->waking.nr_tasks * c->env.nr_cpus;
	ids = xcalloc(nr, sizeof(*ids));
	slots = xcalloc(nr, sizeof(*slots));
	for (uint32_t i = 0; i < nr_gone; i++)
		at = put_ids(&gone[i], c->env.nr_cpus, ids, slots, at,
			     gone[i].event.read ? ID_GONE_READ : ID_GONE);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		at = put_ids(&c->slots[i], c->env.nr_cpus, ids, slots, at,
			     counters_id_value(c, &c->slots[i], i));
	at = put_ids(&c->waking, c->env.nr_cpus, ids, slots, at, ID_WAKING);
	idmap_replace(&c->ids, ids, slots, at);
	atomic_store_explicit(&c->shared_slot, find_shared_slot(c), memory_order_relaxed);
	atomic_store_explicit(&c->wait_slot, find_wait_slot(c), memory_order_relaxed);
	free(ids);
	free(slots);
}

/* The fds that the session takes, for the sentence when there are too few. */
static uint32_t fds_wanted(const struct counters *c, uint32_t nr_events, uint32_t nr_tids)
{
	uint32_t per_cpu = 2 + (c->env.attr.tasks ? nr_tids * (nr_events + 1) : nr_events);

	return per_cpu * c->env.nr_cpus;
}

static int check_config(const struct counters_config *config, struct err *e)
{
	if (!config->nr_events || config->nr_events > EVENTS_MAX)
		return err_set(e, -EINVAL,
			       "invalid number of events: %u, must be 1 to %d\n  they are sampled "
			       "at the same time\n  choose fewer with -e",
			       config->nr_events, EVENTS_MAX);
	if (config->stack_size % 8 || config->stack_size > 65528)
		return err_set(e, -EINVAL,
			       "invalid stack size: %u bytes\n"
			       "  must be a multiple of 8 up to 65528\n  --stack-size 16384 is the "
			       "default",
			       config->stack_size);
	if (!config->nr_cpus || (config->tids && !config->nr_tids && !config->may_be_empty))
		return err_set(e, -EINVAL,
			       "there is nothing to sample\n"
			       "  no CPU, or no task\n  choose others");
	for (uint32_t i = 0; i < config->nr_events; i++) {
		int code = config->events[i].hz > 0 ? limits_check_rate(config->events[i].hz, e)
						    : 0;

		if (code)
			return code;
	}
	return config->period ? 0 : limits_check_rate(config->hz, e);
}

static struct counters *counters_new(const struct counters_config *config,
				     const struct counters_sys *sys)
{
	struct counters *c = xcalloc(1, sizeof(*c));

	c->cpus = xcalloc(config->nr_cpus, sizeof(*c->cpus));
	for (uint32_t i = 0; i < config->nr_cpus; i++)
		c->cpus[i] = (struct counters_cpu){ .cpu = config->cpus[i],
						    .data_fd = -1,
						    .side_fd = -1 };
	if (config->cores)
		c->cores = *config->cores;
	c->env = (struct slot_env){
		.cores = &c->cores,
		.ids = &c->ids,
		.sys = *sys,
		.cpus = c->cpus,
		.nr_cpus = config->nr_cpus,
		.may_be_empty = config->may_be_empty,
		.nr_named = config->nr_named,
		.cgroup_fd = config->cgroup ? config->cgroup_fd : -1,
		.group_fd = -1,
		.attr = {
			.tasks = config->tids,
			.no_inherit = config->no_inherit,
			.enable_on_exec = config->enable_on_exec,
			.exclude_idle = config->exclude_idle,
			.data_maps = config->data_maps,
			.stack_size = config->stack_size,
			.regs_mask = config->regs_mask,
			.no_chain = config->no_chain,
			.deferred = config->deferred,
			.period = config->period,
		},
	};
	c->layout = (struct record_layout){ .sample_type = attr_sample_type(&c->env.attr),
					    .id_all = true };
	if (config->stack_size)
		c->layout.regs_mask = config->regs_mask;
	c->waking_layout =
		(struct record_layout){ .sample_type = ATTR_WAKING_TYPE, .id_all = true };
	c->read_layout = c->layout;
	c->read_layout.sample_type |= PERF_SAMPLE_READ;
	atomic_init(&c->any_read, false);
	c->side_layout = (struct record_layout){ .sample_type = ATTR_SIDE_TYPE, .id_all = true };
	c->run = config->enable_on_exec ? RUN_AT_EXEC : RUN_OFF;
	idmap_init(&c->ids);
	atomic_init(&c->shared_slot, -1);
	atomic_init(&c->wait_slot, -1);
	atomic_init(&c->any_waking, false);
	return c;
}

/* Return the leader of the group of event @at of @events; NULL: it leads, or is alone. */
static const struct slot *counters_leader(const struct event *events, const struct slot *slots,
					  uint32_t at)
{
	uint32_t first = event_group_first(events, at);

	return first == at ? NULL : &slots[first];
}

/* Open the event of switches, disabled, if waits of whole CPUs are measured. 0 or -errno. */
static int counters_open_switches(struct counters *c)
{
	uint32_t opened;

	if (find_wait_slot(c) < 0 || c->switches.nr_tasks || c->env.attr.tasks)
		return 0;
	slot_init_switches(&c->switches);
	return slot_open(&c->switches, &c->env, NULL, NULL, 0, &opened);
}

/* Open the event of wake-ups, disabled, if waits are measured and it may be opened. */
static void counters_open_waking(struct counters *c)
{
	struct event ev;
	uint32_t refused;

	if (find_wait_slot(c) < 0 || c->waking.nr_tasks || !c->env.sys.waking ||
	    c->env.sys.waking(&ev))
		return;
	slot_init_waking(&c->waking, &c->env, &ev);
	/* Without the right to it a wait ends with the switch in. */
	if (slot_open(&c->waking, &c->env, NULL, NULL, 0, &refused) || !c->waking.nr_tasks)
		return;
	atomic_store_explicit(&c->any_waking, true, memory_order_relaxed);
	/* It has no task that could enable it. */
	if (c->run == RUN_AT_EXEC)
		slot_enable(&c->waking, &c->env, 0, true);
}

/*
 * Close both if waits are no longer measured; the last samples of wake-ups are still known by their
 * ids.
 */
static void counters_close_waits(struct counters *c)
{
	if (find_wait_slot(c) >= 0)
		return;
	slot_close(&c->waking, &c->env);
	slot_close(&c->switches, &c->env);
}

/*
 * Close what was opened on a task before it began to hang in an exec, or after: it gets all its
 * events together, so that its children inherit all of them or none.
 */
static void leave_busy(struct counters *c)
{
	for (pid_t tid = 0; counters_busy(c, tid, &tid, 1);)
		for (uint32_t i = 0; i <= c->nr_slots; i++)
			slot_leave(counters_slot(c, i), &c->env, tid);
}

/* Side-band first: no sample may precede the records of its process. */
static int open_events(struct counters *c, const struct counters_config *config, struct err *e)
{
	uint32_t refused;
	int code = 0;

	if (c->env.attr.tasks) {
		slot_init_side(&c->side, &c->env, c->side_size);
		code = slot_open(&c->side, &c->env, NULL, config->tids, config->nr_tids, &refused);
	}
	for (uint32_t i = 0; i < config->nr_events && !code; i++) {
		slot_init(&c->slots[i], &c->env, &config->events[i], config->hz);
		code = slot_open(&c->slots[i], &c->env,
				 counters_leader(config->events, c->slots, i), config->tids,
				 config->nr_tids, &refused);
		c->nr_slots += !code;
		c->nr_refused = MAX(c->nr_refused, refused);
	}
	code = code ? code : counters_open_switches(c);
	if (code)
		return limits_explain_open(e, code, &c->env.refusal);
	leave_busy(c);
	counters_open_waking(c);
	counters_fill_ids(c, NULL, 0);
	return 0;
}

/* Refuse deferred chains where the kernel does not know them: other refusals have no reason. */
static int check_deferred(struct counters *c, struct err *e)
{
	struct perf_event_attr attr;
	int fd;

	if (!c->env.attr.deferred)
		return 0;
	attr_leader(&attr, 0);
	attr_set_flag(&attr, RECORD_DEFER_CHAIN);
	fd = slot_perf_open(&c->env, &attr, getpid(), c->cpus[0].cpu);
	if (fd == -EINVAL)
		return err_set(e, -EOPNOTSUPP,
			       "-g defer: this kernel has no deferred call chains\n"
			       "  Linux 6.19 and newer have them\n"
			       "  use -g fp, or -g dwarf");
	slot_close_fd(&c->env, &fd);
	return 0;
}

int counters_open(struct counters **out, const struct counters_config *config,
		  const struct counters_sys *sys, struct err *e)
{
	struct counters *c;
	int code = check_config(config, e);

	if (code)
		return code;
	limits_raise_files();
	c = counters_new(config, sys);
	c->env.refusal.nr_wanted = fds_wanted(c, config->nr_events, config->nr_tids);
	code = check_deferred(c, e);
	if (!code)
		code = choose_ring_size(c, config, e);
	if (!code)
		code = open_events(c, config, e);
	if (code) {
		counters_close(c);
		return code;
	}
	c->env.nr_named = 0; /* they may exit */
	*out = c;
	return 0;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nr_slots; i++)
		slot_close(&c->slots[i], &c->env);
	slot_close(&c->waking, &c->env);
	slot_close(&c->switches, &c->env);
	slot_close(&c->side, &c->env);
	close_rings(c);
	idmap_fini(&c->ids);
	free(c->cpus);
	free(c->wake);
	free(c);
}

void counters_unmap(struct counters *c)
{
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		ring_close(&c->cpus[i].data);
}

uint32_t counters_nr_cpus(const struct counters *c)
{
	return c->env.nr_cpus;
}

struct counters_cpu *counters_cpu(struct counters *c, uint32_t index)
{
	assert(index < c->env.nr_cpus);
	return &c->cpus[index];
}

const struct record_layout *counters_layout(const struct counters *c)
{
	return &c->layout;
}

const struct record_layout *counters_side_layout(const struct counters *c)
{
	return &c->side_layout;
}

size_t counters_ring_size(const struct counters *c)
{
	return c->ring_size;
}

size_t counters_ring_wanted(const struct counters *c)
{
	return c->ring_wanted;
}

const char *counters_core_type(const struct counters *c, uint32_t cpu_index)
{
	const struct core_type *type;

	assert(cpu_index < c->env.nr_cpus);
	type = core_types_of(&c->cores, c->cpus[cpu_index].cpu);
	return type ? type->name : "";
}

bool counters_has_lost(const struct counters *c)
{
	return !c->env.no_lost;
}

uint32_t counters_nr_refused(const struct counters *c)
{
	uint32_t nr_busy = c->side.nr_busy;

	for (uint32_t i = 0; i < c->nr_slots; i++)
		nr_busy = MAX(nr_busy, c->slots[i].nr_busy);
	return c->nr_refused + nr_busy;
}

pid_t counters_refused(const struct counters *c, int *code)
{
	pid_t tid = c->env.refused;

	*code = c->env.refused_code;
	if (c->nr_refused)
		return tid;
	*code = -EINTR;
	return counters_busy(c, 0, &tid, 1) ? tid : 0;
}

/* Ids are unique in the whole system: one table serves all CPUs. */
static int value_of(const struct counters *c, uint64_t id)
{
	int value = idmap_find(&c->ids, id);

	/* Only our events write to our rings. */
	return value != IDMAP_UNKNOWN ? value
				      : atomic_load_explicit(&c->shared_slot, memory_order_relaxed);
}

int counters_event_of(const struct counters *c, uint32_t cpu_index, uint64_t id)
{
	int value = value_of(c, id);

	assert(cpu_index < c->env.nr_cpus);
	if (value == ID_WAKING)
		return COUNTERS_WAKING;
	if (value == ID_GONE || value == ID_GONE_READ)
		return COUNTERS_GONE;
	return value < 0 ? -1 : value & ~ID_READ;
}

const struct record_layout *counters_layout_of(const struct counters *c,
					       const struct perf_event_header *h)
{
	uint64_t id;
	int value;

	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + sizeof(id) ||
	    !(atomic_load_explicit(&c->any_read, memory_order_relaxed) ||
	      atomic_load_explicit(&c->any_waking, memory_order_relaxed)))
		return &c->layout;
	memcpy(&id, h + 1, sizeof(id));
	value = value_of(c, id);
	if (value == ID_WAKING)
		return &c->waking_layout;
	return value == ID_GONE_READ || (value >= 0 && value & ID_READ) ? &c->read_layout
									: &c->layout;
}

int counters_read(struct counters *c, uint32_t cpu_index, uint32_t event, struct counters_value *v)
{
	if (event >= c->nr_slots || cpu_index >= c->env.nr_cpus)
		return -EINVAL;
	return slot_read(&c->slots[event], &c->env, cpu_index, v);
}

bool counters_has_ended(struct counters *c, uint32_t cpu_index)
{
	struct counters_cpu *cpu = &c->cpus[cpu_index];
	uint64_t got[2] = { 0 }, was_ns = cpu->side_ns; /* a count, and the time */

	assert(cpu_index < c->env.nr_cpus);
	if (c->env.attr.tasks ||
	    c->env.sys.read(c->env.sys.ctx, cpu->side_fd, got, sizeof(got)) != sizeof(got))
		return false;
	cpu->side_ns = got[1];
	if (cpu->ended || !was_ns || was_ns != got[1])
		return false;
	cpu->ended = true;
	return true;
}

int counters_enable(struct counters *c, bool on)
{
	int code = 0;

	for (uint32_t i = 0; i < c->nr_slots; i++) {
		int rc = slot_enable(&c->slots[i], &c->env, 0, on && !c->slots[i].off);

		code = code ? code : rc;
	}
	slot_enable(&c->waking, &c->env, 0, on);
	slot_enable(&c->switches, &c->env, 0, on);
	c->run = on ? RUN_ON : RUN_OFF;
	assert(c->run == (on ? RUN_ON : RUN_OFF));
	return code;
}

/*
 * Changes while events run: their rate, their set, the tasks followed.
 *
 * Runs on: the builder. Invariant: the old events go on until the new ones are
 * all open; after a failure everything is as it was.
 */

/* Return whether the command is past its exec. Then its events have been enabled for some time. */
static bool is_running(const struct counters *c)
{
	struct counters_value v;

	if (c->run != RUN_AT_EXEC)
		return c->run == RUN_ON;
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		if (c->nr_slots && !slot_read(&c->slots[0], &c->env, i, &v) && v.enabled_ns)
			return true;
	return false;
}

/*
 * Events that are opened past the exec of a command are enabled by hand. Children inherit the flag,
 * and each exec of theirs would enable an event that was disabled since, or has a twin.
 */
static void forget_exec(const struct counters *c, struct slot *s)
{
	if (s->attr.enable_on_exec && (c->run != RUN_AT_EXEC || is_running(c)))
		s->attr.enable_on_exec = 0;
}

int counters_enable_event(struct counters *c, uint32_t event, bool on)
{
	if (event >= c->nr_slots)
		return -EINVAL;
	c->slots[event].off = !on;
	return slot_enable(&c->slots[event], &c->env, 0, on && is_running(c));
}

/* Bring the twins of all events in line with c->wake, after any change. 0 or the first -errno. */
static int counters_apply_wake(struct counters *c)
{
	int first = 0;

	for (uint32_t i = 0; c->wake && i < c->nr_slots; i++) {
		struct slot *s = &c->slots[i];
		int code;

		/* The reader's own switches would wake it again, and again. */
		if (s->event.wait && !c->env.attr.tasks)
			continue;
		code = slot_open_twins(s, &c->env);
		first = first ? first : code;
		/* Known before it can send a sample. */
		for (size_t k = 0; k < (size_t)s->nr_tasks * c->env.nr_cpus; k++)
			if (s->fds[k].wake_fd >= 0)
				idmap_add(&c->ids, s->fds[k].wake_id, counters_id_value(c, s, i));
		slot_wake(s, &c->env, is_running(c) && !s->off);
	}
	return first;
}

/*
 * List the tasks followed now: the side-band's tasks and their children, except tasks that have no
 * events yet: they get all of them together. NULL: the CPUs.
 */
static pid_t *followed(struct counters *c, uint32_t *nr)
{
	const struct counters_sys *sys = &c->env.sys;
	pid_t *tids = NULL;
	int found;

	*nr = 0;
	if (!c->env.attr.tasks)
		return NULL;
	found = c->env.attr.no_inherit
			? 0
			: sys->list_tasks(sys->ctx, c->side.tids, c->side.nr_tasks, &tids);
	if (found > 0) {
		for (int i = 0; i < found; i++)
			if (!slot_is_busy(&c->side, tids[i]))
				tids[(*nr)++] = tids[i];
		return tids;
	}
	free(tids);
	tids = xcalloc(c->side.nr_tasks, sizeof(*tids));
	memcpy(tids, c->side.tids, c->side.nr_tasks * sizeof(*tids));
	*nr = c->side.nr_tasks;
	return tids;
}

/* Open one more event, not enabled yet. */
static int open_slot(struct counters *c, struct slot *s, const struct slot *leader,
		     const struct event *ev, double hz, const pid_t *tids, uint32_t nr_tids,
		     struct err *e)
{
	uint32_t refused;
	int code = ev->hz > 0 ? limits_check_rate(ev->hz, e) : 0;

	if (code)
		return code;
	c->env.refusal.nr_wanted = c->env.nr_fds + MAX(nr_tids, 1) * c->env.nr_cpus;
	slot_init(s, &c->env, ev, hz);
	forget_exec(c, s);
	code = slot_open(s, &c->env, leader, tids, nr_tids, &refused);
	if (code)
		return limits_explain_open(e, code, &c->env.refusal);
	/* They lack the other events also. */
	for (uint32_t i = 0; i < c->side.nr_busy; i++)
		slot_note_busy(s, c->side.busy[i]);
	return 0;
}

/* Replace @old: its sums go on; its last samples may still be in the rings. */
static void take_place(struct counters *c, uint32_t event, struct slot *fresh, bool running)
{
	struct slot *old = &c->slots[event];

	assert(event < c->nr_slots);
	for (size_t i = 0; i < (size_t)fresh->nr_tasks * c->env.nr_cpus; i++)
		idmap_add(&c->ids, fresh->fds[i].id, counters_id_value(c, fresh, event));
	if (running) {
		slot_enable(old, &c->env, 0, false);
		slot_enable(fresh, &c->env, 0, !old->off);
	}
	fresh->off = old->off;
	slot_inherit_sums(fresh, old, &c->env);
}

/* The event with another rate, and all of its group with it: members cannot change their leader. */
static int reopen_slot(struct counters *c, uint32_t event, double hz, uint64_t period,
		       struct err *e)
{
	struct event events[EVENTS_MAX];
	struct slot fresh[EVENTS_MAX];
	bool running = is_running(c);
	uint32_t first, nr, nr_tids, i;
	pid_t *tids = followed(c, &nr_tids);
	int code = 0;

	assert(event < c->nr_slots);
	for (i = 0; i < c->nr_slots; i++)
		events[i] = c->slots[i].event;
	first = event_group_first(events, event);
	nr = event_group_nr(events, c->nr_slots, first);
	/* Its rate or period is no longer the requested one. */
	events[event].period = period;
	events[event].hz = 0;
	for (i = first; i < first + nr && !code; i++)
		code = open_slot(c, &fresh[i], counters_leader(events, fresh, i), &events[i],
				 i == event ? hz : c->slots[i].hz, tids, nr_tids, e);
	free(tids);
	if (code) {
		while (--i > first)
			slot_close(&fresh[i - 1], &c->env);
		return code;
	}
	for (i = first; i < first + nr; i++)
		take_place(c, i, &fresh[i], running);
	for (i = first; i < first + nr; i++) {
		slot_close(&c->slots[i], &c->env);
		c->slots[i] = fresh[i];
	}
	counters_apply_wake(c);
	return 0;
}

/*
 * Open the events again, on all tasks that are followed now. A twin is inherited by tasks that
 * start after it was opened: children that have inherited the event alone would be without both.
 */
static int reopen_all(struct counters *c, struct err *e)
{
	bool running = is_running(c);
	uint32_t nr_tids;
	pid_t *tids;
	int code = 0;

	if (!c->env.attr.tasks || c->env.attr.no_inherit)
		return 0;
	tids = followed(c, &nr_tids);
	for (uint32_t i = 0; i < c->nr_slots && !code; i++) {
		const struct event event = c->slots[i].event;
		struct slot fresh;

		code = open_slot(c, &fresh, NULL, &event, c->slots[i].hz, tids, nr_tids, e);
		if (code)
			break;
		take_place(c, i, &fresh, running);
		slot_close(&c->slots[i], &c->env);
		c->slots[i] = fresh;
	}
	free(tids);
	return code;
}

int counters_wake(struct counters *c, uint32_t cpu_index, bool each_sample)
{
	assert(cpu_index < c->env.nr_cpus);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (c->slots[i].event.group || c->slots[i].event.counted)
			return -ENOTSUP;
	/* One that is enabled by the exec of a command has no twin that is. */
	if (each_sample && !is_running(c))
		return -EAGAIN;
	/* None has a twin. */
	if (!c->wake && !each_sample)
		return 0;
	if (!c->wake) {
		struct err e = { .text = "" };
		int code = reopen_all(c, &e);

		if (code)
			return code;
		c->wake = xcalloc(c->env.nr_cpus, sizeof(*c->wake));
	}
	c->env.wake = c->wake;
	c->wake[cpu_index] = each_sample;
	return counters_apply_wake(c);
}

int counters_set_rate(struct counters *c, uint32_t event, double hz, struct err *e)
{
	int code;

	if (event >= c->nr_slots)
		return err_set(e, -EINVAL, "there is no event %u", event);
	if (c->slots[event].event.counted)
		return err_set(e, -EINVAL,
			       "%.100s is counted whenever its group is sampled\n"
			       "  its rate is that of the group\n  change the rate of the member "
			       "that "
			       "is sampled",
			       c->slots[event].event.name);
	code = limits_check_rate(hz, e);
	if (code)
		return code;
	/* From a fixed period there is no way back to a rate but a new event. */
	c->env.attr.period = 0;
	/*
	 * A clock's samples keep the period that it was opened with: the kernel sets
	 * hw.last_period of cpu-clock and task-clock at their start only, not in
	 * PERF_EVENT_IOC_PERIOD.
	 */
	if (c->env.attr.tasks || !c->slots[event].attr.freq)
		return reopen_slot(c, event, hz, 0, e);
	code = slot_set_rate(&c->slots[event], &c->env, hz);
	if (!code)
		c->slots[event].event.hz = c->slots[event].event.period = 0;
	return !code ? 0
		     : err_set(e, code,
			       "%s does not take %.0f Hz: %s\n"
			       "  PERF_EVENT_IOC_PERIOD was refused\n"
			       "  kernel.perf_event_max_sample_rate may have been lowered",
			       c->slots[event].event.name, hz, strerror(-code));
}

int counters_set_period(struct counters *c, uint32_t event, uint64_t period, struct err *e)
{
	if (event >= c->nr_slots)
		return err_set(e, -EINVAL, "there is no event %u", event);
	return reopen_slot(c, event, c->slots[event].hz, period, e);
}

static bool in_group(const struct counters *c, uint32_t at, uint32_t group)
{
	return group && at < c->nr_slots && c->slots[at].event.group == group;
}

/* From slot @at on, are there the same @nr events in the same order, and no others in their group?
 */
static bool same_group(const struct counters *c, uint32_t at, const struct event *events,
		       uint32_t nr)
{
	uint32_t group = c->slots[at].event.group;

	assert(at < c->nr_slots);
	if ((nr > 1) != !!group || at + nr > c->nr_slots || in_group(c, at + nr, group) ||
	    (at && in_group(c, at - 1, group)))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (c->slots[at + i].event.group != group ||
		    !event_same(&c->slots[at + i].event, &events[i]))
			return false;
	return true;
}

/* The slots that have the @nr events of a group (or the one alone) already; -1: none. */
static int find_slots(const struct counters *c, const struct event *events, uint32_t nr,
		      uint32_t taken)
{
	for (uint32_t i = 0; i < c->nr_slots; i++)
		if (!(taken & 1u << i) && same_group(c, i, events, nr))
			return (int)i;
	return -1;
}

/* Open the @nr events of a group, or the one; *@i is the one that failed. */
static int open_group(struct counters *c, struct slot *slots, const struct event *events,
		      uint32_t first, uint32_t nr, uint32_t *fresh, double hz, const pid_t *tids,
		      uint32_t nr_tids, struct err *e)
{
	for (uint32_t i = first; i < first + nr; i++) {
		int code = open_slot(c, &slots[i], counters_leader(events, slots, i), &events[i],
				     hz, tids, nr_tids, e);

		if (code)
			return code;
		*fresh |= 1u << i;
	}
	return 0;
}

/* Enable the events of switches and of wake-ups, if they are open. */
static void enable_waits(struct counters *c)
{
	slot_enable(&c->waking, &c->env, 0, true);
	slot_enable(&c->switches, &c->env, 0, true);
}

/* Open the new events; then, when nothing can fail any more, close the old ones. */
int counters_set_events(struct counters *c, const struct event *events, uint32_t nr, double hz,
			struct err *e)
{
	struct slot slots[EVENTS_MAX], gone[EVENTS_MAX];
	uint32_t kept = 0, fresh = 0, nr_gone = 0, nr_tids, i, size;
	bool running = is_running(c);
	pid_t *tids;
	int code = 0;

	if (!nr || nr > EVENTS_MAX)
		return err_set(e, -EINVAL, "invalid number of events: %u", nr);
	tids = followed(c, &nr_tids);
	for (i = 0; i < nr && !code; i += size) {
		int was;

		size = event_group_nr(events, nr, i);
		was = find_slots(c, &events[i], size, kept);
		for (uint32_t k = 0; was >= 0 && k < size; k++) {
			slots[i + k] = c->slots[(uint32_t)was + k];
			slots[i + k].event = events[i + k];
			kept |= 1u << ((uint32_t)was + k);
		}
		if (was < 0)
			code = open_group(c, slots, events, i, size, &fresh, hz, tids, nr_tids, e);
	}
	free(tids);
	for (i = 0; i < nr && code; i++)
		if (fresh & 1u << i)
			slot_close(&slots[i], &c->env);
	if (code)
		return code;
	for (i = 0; i < c->nr_slots; i++)
		if (!(kept & 1u << i))
			gone[nr_gone++] = c->slots[i];
	memcpy(c->slots, slots, nr * sizeof(slots[0]));
	c->nr_slots = nr;
	counters_open_switches(c);
	counters_open_waking(c);
	counters_fill_ids(c, gone, nr_gone);
	counters_close_waits(c);
	while (nr_gone)
		slot_close(&gone[--nr_gone], &c->env);
	for (i = 0; i < nr && running; i++)
		if (fresh & 1u << i)
			slot_enable(&c->slots[i], &c->env, 0, true);
	if (running)
		enable_waits(c);
	counters_apply_wake(c);
	return 0;
}

/* Add the ids of wake-ups to the table. */
static void add_waking_ids(struct counters *c)
{
	size_t nr = (size_t)c->waking.nr_tasks * c->env.nr_cpus;

	for (size_t i = 0; i < nr; i++)
		if (c->waking.fds[i].fd >= 0)
			idmap_add(&c->ids, c->waking.fds[i].id, ID_WAKING);
}

bool counters_has_switches(const struct counters *c)
{
	return c->switches.nr_tasks > 0;
}

int counters_set_switches(struct counters *c, bool on)
{
	int code;

	if (!on) {
		slot_close(&c->switches, &c->env);
		return 0;
	}
	code = counters_open_switches(c);
	if (!code && is_running(c))
		slot_enable(&c->switches, &c->env, 0, true);
	return code;
}

void counters_set_waking(struct counters *c, bool on)
{
	if (!on) {
		slot_close(&c->waking, &c->env);
		return;
	}
	if (c->waking.nr_tasks)
		return;
	counters_open_waking(c);
	add_waking_ids(c);
	if (is_running(c))
		slot_enable(&c->waking, &c->env, 0, true);
}

static const struct slot *leader_of(const struct counters *c, uint32_t at)
{
	uint32_t first = at;

	assert(at < c->nr_slots);
	while (first && c->slots[first - 1].event.group == c->slots[at].event.group)
		first--;
	return first == at ? NULL : &c->slots[first];
}

uint32_t counters_busy(const struct counters *c, pid_t after, pid_t *tids, uint32_t nr)
{
	uint32_t found = 0;

	assert(tids || !nr);
	for (; found < nr; found++) {
		pid_t next = 0;

		for (uint32_t i = 0; i <= c->nr_slots; i++) {
			const struct slot *s = i ? &c->slots[i - 1] : &c->side;

			for (uint32_t k = 0; k < s->nr_busy; k++)
				if (s->busy[k] > after && (!next || s->busy[k] < next))
					next = s->busy[k];
		}
		if (!next)
			break;
		tids[found] = after = next;
	}
	assert(found <= nr);
	return found;
}

const pid_t *counters_left_out(const struct counters *c, uint32_t *nr)
{
	*nr = c->side.nr_busy;
	return c->side.busy;
}

const pid_t *counters_tasks(const struct counters *c, uint32_t *nr)
{
	*nr = c->side.nr_tasks;
	return c->side.tids;
}

bool counters_is_busy(const struct counters *c, pid_t tid)
{
	pid_t next;

	return counters_busy(c, tid - 1, &next, 1) && next == tid;
}

/* Open one event on one more task. Its ids are known before it can send a sample. */
static int open_task(struct counters *c, uint32_t at, pid_t tid)
{
	struct slot *s = counters_slot(c, at);
	int code;

	forget_exec(c, s);
	code = slot_add_task(s, &c->env, s->event.group ? leader_of(c, at - 1) : NULL, tid);
	if (code || s->side)
		return code;
	for (uint32_t i = 0; i < c->env.nr_cpus; i++)
		idmap_add(&c->ids, s->fds[(size_t)(s->nr_tasks - 1) * c->env.nr_cpus + i].id,
			  counters_id_value(c, s, at - 1));
	if (is_running(c) && !s->off)
		slot_enable(s, &c->env, s->nr_tasks - 1, true);
	return 0;
}

/*
 * Open the events on a task that it lacks: all if it is new, else where it is busy. If it hangs in
 * an exec, leave it without any of them. @left_out: others were, so their threads and
 * children may have an event that was opened since.
 */
static int add_task(struct counters *c, const struct task_set *there, bool left_out, pid_t tid)
{
	bool is_new = !task_set_has(there, tid) && !counters_is_busy(c, tid);
	bool lacks[EVENTS_MAX + 1];
	int code = 0;

	for (uint32_t i = 0; i <= c->nr_slots; i++) {
		lacks[i] = is_new ? !left_out || !slot_has_task(counters_slot(c, i), tid)
				  : slot_is_busy(counters_slot(c, i), tid);
		if (lacks[i] && !code)
			code = open_task(c, i, tid);
	}
	for (uint32_t i = 0; i <= c->nr_slots; i++) {
		if (lacks[i] && code == -EINTR)
			slot_leave(counters_slot(c, i), &c->env, tid);
		else if (lacks[i])
			slot_forget_busy(counters_slot(c, i), tid);
	}
	return code;
}

/* Add the tasks that are not in @there. */
static int add_tasks(struct counters *c, const struct task_set *there, const pid_t *tids,
		     uint32_t nr, struct err *e)
{
	const bool left_out = c->side.nr_busy;
	uint32_t nr_fds = c->env.nr_fds;

	for (uint32_t i = 0; i < nr; i++) {
		int code = add_task(c, there, left_out, tids[i]);

		if (!code || code == -ESRCH || code == -EINTR)
			continue;
		if (code == -EACCES || code == -EPERM) {
			slot_refuse(&c->env, tids[i], code);
			c->nr_refused++;
			continue;
		}
		c->env.refusal.nr_wanted =
			c->env.nr_fds + (nr - i) * (c->nr_slots + 1) * c->env.nr_cpus;
		slot_refuse(&c->env, tids[i], code);
		/* Nor the others, except that busy ones may be added again. */
		for (; i < nr; i++)
			c->nr_refused += !counters_is_busy(c, tids[i]);
		return limits_explain_open(e, code, &c->env.refusal);
	}
	if (c->env.nr_fds > nr_fds)
		counters_apply_wake(c);
	return 0;
}

int counters_add_tasks(struct counters *c, const pid_t *tids, uint32_t nr, struct err *e)
{
	struct task_set there;
	int code;

	assert(tids || !nr);
	if (!c->env.attr.tasks)
		return nr ? err_set(e, -EINVAL, "the whole system is sampled already") : 0;
	slot_reap(&c->side, &c->env);
	for (uint32_t i = 0; i < c->nr_slots; i++)
		slot_reap(&c->slots[i], &c->env);
	if (!nr)
		return 0;
	task_set_init(&there, c->side.tids, c->side.nr_tasks);
	code = add_tasks(c, &there, tids, nr, e);
	task_set_fini(&there);
	return code;
}

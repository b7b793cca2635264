// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits of the kernel for this user, read when needed, and their sentences.
 *
 * Set-up and builder; no state. Each sentence: what failed; why, with the
 * value just read; what to do, least power first.
 */
#include "sampler/event/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/event/procstat.h"

#define DATA_RING_MAX	  ((size_t)16 << 20)
#define DATA_RINGS_MAX	  ((size_t)256 << 20) /* all CPUs together */
#define DATA_RING_WANTED  (2u << 20)
#define DATA_RING_MIN	  (64u << 10)
#define SIDE_RING_WANTED  (256u << 10)
#define SIDE_RING_SMALL	  (64u << 10)
#define MLOCK_KB_FALLBACK 516

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* Our own capabilities, or those to be ours. */
struct caps {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static bool get_caps(struct caps *c)
{
	*c = (struct caps){ .header.version = _LINUX_CAPABILITY_VERSION_3 };
	return !syscall(SYS_capget, &c->header, c->data);
}

/* Is @cap in our effective set? */
static bool have_cap(unsigned int cap)
{
	struct caps c;

	return get_caps(&c) && (c.data[cap / 32].effective & (1u << cap % 32));
}

void limits_drop_caps(bool command)
{
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
		/* to end an editor or command that became somebody else */
		CAP_KILL,
	};
	uint32_t keep[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct caps c;

	if (!get_caps(&c))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		keep[used[i] / 32] |= 1u << used[i] % 32;
	for (size_t i = 0; i < ARRAY_SIZE(keep); i++) {
		c.data[i].effective &= keep[i];
		if (command)
			continue;
		c.data[i].permitted &= keep[i];
		c.data[i].inheritable &= keep[i];
	}
	syscall(SYS_capset, &c.header, c.data);
}

static long paranoid(void)
{
	long level;

	return procstat_sysctl("", "perf_event_paranoid", &level) ? 2 : level;
}

void limits_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Locked memory is not counted for those who may lock at will. */
static bool locks_freely(void)
{
	return have_cap(CAP_IPC_LOCK) || paranoid() < 0;
}

size_t limits_side_ring(void)
{
	return locks_freely() ? SIDE_RING_WANTED : SIDE_RING_SMALL;
}

/* The power of two that holds @want, within what all CPUs together may cost. */
size_t limits_wanted_ring(uint32_t nr_cpus, size_t want)
{
	size_t size = DATA_RING_WANTED;

	while (size < want && size < DATA_RING_MAX && 2 * size * MAX(nr_cpus, 1) <= DATA_RINGS_MAX)
		size *= 2;
	return size;
}

/* What perf_event_mlock_kb, per online CPU, leaves for each of our CPUs: equal shares. */
size_t limits_data_ring(uint32_t nr_cpus, size_t side_size, size_t want)
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
			       "a rate of %g Hz cannot be\n"
			       "  samples per second and CPU, more than 0\n"
			       "  the usual rates are 49 to 9973 Hz",
			       hz);
	if (procstat_sysctl("", "perf_event_max_sample_rate", &limit) || limit <= 0 ||
	    hz <= (double)limit)
		return 0;
	return err_set(e, -EINVAL,
		       "%.0f Hz is above the kernel's limit of %ld samples per second\n"
		       "  kernel.perf_event_max_sample_rate is %ld; the kernel lowers it by itself "
		       "when "
		       "sampling takes too long\n"
		       "  choose a lower rate (-F), or 'sudo sysctl "
		       "kernel.perf_event_max_sample_rate=%.0f'",
		       hz, limit, limit, hz);
}

/* Who was to be sampled. */
static void name_target(char *dst, size_t size, const struct limits_refusal *r)
{
	if (r->tid < 0)
		snprintf(dst, size, "other users' processes");
	else if (r->kernel)
		snprintf(dst, size, "kernel code of process %d", r->tid);
	else
		snprintf(dst, size, "process %d", r->tid);
}

/* With the right to sample: events that the kernel keeps from those who have no other. */
static int explain_event(struct err *e, int code, const char *event, const char *target)
{
	bool probe = !strncmp(event, "kprobe:", 7) || !strncmp(event, "kretprobe:", 10) ||
		     !strncmp(event, "uprobe:", 7) || !strncmp(event, "uretprobe:", 10);

	if (probe && !have_cap(CAP_SYS_ADMIN))
		return err_set(e, code,
			       "cannot set the probe '%.160s': perf_event_open: %s\n"
			       "  kprobes and uprobes need CAP_SYS_ADMIN; CAP_PERFMON is not "
			       "enough\n"
			       "  'sudo proftop'; or sample without probes",
			       event, strerror(-code));
	return err_set(e, code,
		       "cannot sample %s by event '%.100s': perf_event_open: %s\n"
		       "  the kernel lets nobody sample some tracepoints, whose samples would "
		       "make them happen; or a security module forbids it\n"
		       "  choose another: 'proftop --list-events' shows events; cpu-clock works "
		       "on every machine",
		       target, event, strerror(-code));
}

/* It is somebody else's process, whatever kernel.perf_event_paranoid permits. */
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

/* Not permitted: the ways to get it, from least to most power. */
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
	if (able && colon && strspn(colon + 1, "ukhHGpP") < strlen(colon + 1))
		return explain_event(e, code, r->event, target);
	if (!able && r->tid > 0 && level <= 2 && !stat(path, &st) && st.st_uid != geteuid())
		return explain_owner(e, code, target, st.st_uid);
	if (able || (r->tid >= 0 && level <= enough))
		return err_set(e, code,
			       "cannot sample %s: perf_event_open: %s (%s)\n"
			       "  kernel.perf_event_paranoid is %ld and allows it: a container's "
			       "filter, a "
			       "security module, or that it runs with other rights (setuid) "
			       "forbids it\n"
			       "  least power first: 'proftop -p PID' for your own process; run "
			       "outside the "
			       "container; 'sudo proftop'",
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

int limits_explain_open(struct err *e, int code, const struct limits_refusal *r)
{
	if (r->filter)
		return err_set(e, code,
			       "the filter of '%.100s' was refused: %s\n"
			       "  it names fields of the tracepoint: see "
			       "/sys/kernel/tracing/events/…/format\n"
			       "  as in --filter 'prev_pid == 0 && next_comm ~ \"sh*\"'",
			       r->event, strerror(-code));
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
				       "nobody is left to be sampled\n"
				       "  all processes that were followed have exited\n"
				       "  start again with others");
		return err_set(e, code,
			       "no process with pid %d\n"
			       "  it has exited, or was never there\n"
			       "  'ps -e' lists what runs now",
			       r->tid);
	case ENOSYS:
		return err_set(e, code,
			       "this kernel has no perf events\n"
			       "  it was built without CONFIG_PERF_EVENTS\n"
			       "  use a kernel that has them; distributions' kernels do");
	}
	if (code == -EINVAL && !strcmp(r->event, EVENT_FUNCTION))
		return err_set(e, code,
			       "%s cannot be sampled: the kernel refuses it with dumps of user "
			       "stacks\n"
			       "  they are taken with each sample, whatever its event\n"
			       "  -g fp or -g off (C) goes without; or choose another event",
			       r->event);
	return err_set(e, code,
		       "cannot open event '%s' on CPU %d: %s\n"
		       "  perf_event_open: %s\n"
		       "  'proftop --list-events' shows events; cpu-clock works on every machine",
		       r->event[0] ? r->event : "dummy", r->cpu, event_errno(code),
		       strerror(-code));
}

int limits_explain_ring(struct err *e, int code, size_t size, uint32_t nr_cpus)
{
	long kb = 0;

	procstat_sysctl("", "perf_event_mlock_kb", &kb);
	if (code == -EPERM)
		return err_set(e, -ENOLCK,
			       "cannot lock %zu KiB of ring for each of %u CPUs: mmap: %s\n"
			       "  kernel.perf_event_mlock_kb is %ld for each CPU, all profilers of "
			       "this "
			       "user "
			       "together\n"
			       "  end the other profiler; a smaller --stack-size; raise 'ulimit "
			       "-l'; or "
			       "'sudo sysctl kernel.perf_event_mlock_kb=%zu'",
			       size >> 10, nr_cpus, strerror(-code), kb,
			       (size_t)kb + (size >> 10) + 128);
	return err_set(e, code,
		       "cannot map a ring of %zu KiB for each of %u CPUs: %s\n"
		       "  mmap of a perf event failed\n"
		       "  try a smaller --ring",
		       size >> 10, nr_cpus, strerror(-code));
}

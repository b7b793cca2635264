// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rights and limits of this user: capabilities given up, sizes of rings, files, rates, the reason
 * of a refusal with its fix; the system calls of counters, each with a limit of time.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"

/*
 * One timer for each thread. It fires again and again: the first signal may be just before the
 * call.
 */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* One that no library uses. */
#define SIGNAL (SIGRTMIN + 5)

/* Halved after each call that was interrupted, down to 1.5 ms. */
#define WAIT_NS 50000000U

#define HALVES_MAX 5U

/* Then calls have their full time again. */
#define FORGET_NS 10000000000ULL

static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local struct {
	timer_t timer;
	bool made;
	sigset_t before;
	unsigned int nr_late; /* interrupted calls, up to HALVES_MAX */
	uint64_t late_ns;     /* the last one */
} own;

static void do_nothing(int sig)
{
	(void)sig;
}

static void set_handler(void)
{
	const struct sigaction action = { .sa_handler = do_nothing };

	sigaction(SIGNAL, &action, NULL);
}

static void set_timer(unsigned int ns)
{
	const struct itimerspec time = { .it_interval.tv_nsec = ns, .it_value.tv_nsec = ns };

	timer_settime(own.timer, 0, &time, NULL);
}

/*
 * From now on, interrupt calls of this thread that take longer than 50 ms, less after some that did
 * in the last seconds: they fail with EINTR.
 */
static void in_time_begin(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	sigset_t set;

	pthread_once(&once, set_handler);
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, &own.before);
	event.sigev_signo = SIGNAL;
	event.sigev_notify_thread_id = gettid();
	/* Without a timer the call takes as long as it takes. */
	if (!own.made)
		own.made = !timer_create(CLOCK_MONOTONIC, &event, &own.timer);
	if (own.nr_late && time_now_ns() - own.late_ns > FORGET_NS)
		own.nr_late = 0;
	if (own.made)
		set_timer(WAIT_NS >> own.nr_late);
}

/* No longer. @interrupted: the call was. */
static void in_time_end(bool interrupted)
{
	if (own.made)
		set_timer(0);
	pthread_sigmask(SIG_SETMASK, &own.before, NULL);
	if (!interrupted)
		return;
	own.nr_late = MIN(own.nr_late + 1, HALVES_MAX);
	own.late_ns = time_now_ns();
}

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

#ifndef CAP_BPF
#define CAP_BPF 39
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
		CAP_BPF, /* copies of frames */
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

void limits_raise_files(void)
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

size_t limits_side_ring(bool deferred)
{
	if (!locks_freely())
		return SIDE_RING_SMALL;
	return deferred ? SIDE_RING_CHAINS : SIDE_RING_WANTED;
}

size_t limits_wanted_ring(uint32_t nr_cpus, size_t want)
{
	size_t size = DATA_RING_WANTED;

	while (size > DATA_RING_MANY && size * nr_cpus > DATA_RINGS_MAX && size / 2 >= want)
		size /= 2;
	while (size < want && size < DATA_RING_MAX && 2 * size * MAX(nr_cpus, 1) <= DATA_RINGS_MAX)
		size *= 2;
	assert(!(size & (size - 1)) && size <= DATA_RING_MAX);
	return size;
}

size_t limits_data_ring(uint32_t nr_cpus, size_t side_size, size_t want)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), share,
	       size = limits_wanted_ring(nr_cpus, want);
	long kb;

	assert(nr_cpus > 0);
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

int limits_explain_open(struct err *e, int code, const struct limits_refusal *r)
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

int limits_explain_ring(struct err *e, int code, size_t size, uint32_t nr_cpus)
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

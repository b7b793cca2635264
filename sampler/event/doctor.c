// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * proftop --check: the facts, and from facts to findings, each with its fix; the languages that are
 * read.
 *
 * Pure. A fix lists the ways from least to most power; a finding gives the value that was read.
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/jit/jit.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* Rings of 512 KiB and the side-band's 64 KiB for each CPU: enough for a usual rate. */
#define MLOCK_KB_WANTED 578

#define RATE_WANTED  999
#define FILES_WANTED 1024

/* Tables, rings and the default of --symbol-memory. */
#define MEMORY_MB_WANTED 768

#define CPU_PCT_WANTED 50

struct findings {
	struct doctor_finding *out;
	uint32_t nr;
};

static bool has(const struct doctor_facts *f, unsigned int cap)
{
	return f->caps >> cap & 1;
}

static bool may_perf(const struct doctor_facts *f)
{
	return has(f, CAP_PERFMON) || has(f, CAP_SYS_ADMIN);
}

static struct doctor_finding *add(struct findings *l, enum doctor_level level, const char *topic,
				  const char *fix)
{
	struct doctor_finding *d = &l->out[l->nr++];

	*d = (struct doctor_finding){ .level = level };
	snprintf(d->topic, sizeof(d->topic), "%s", topic);
	snprintf(d->fix, sizeof(d->fix), "%s", fix);
	return d;
}

static void __attribute__((format(printf, 2, 3)))
say(struct doctor_finding *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->says, sizeof(d->says), fmt, ap);
	va_end(ap);
}

/* Return the fix for a refusal: by perf_event_paranoid, or by something before it. */
static const char *refusal_fix(const struct doctor_facts *f, const char *usual)
{
	if (may_perf(f) && f->seccomp == 2)
		return "a container's filter forbids perf_event_open: run outside; or allow the "
		       "call in its "
		       "seccomp profile";
	if (may_perf(f))
		return "a security module or a container forbids it: run outside the container";
	return usual;
}

static void judge_access(struct findings *l, const struct doctor_facts *f)
{
	struct doctor_finding *d;

	if (!f->system_code) {
		d = add(l, DOCTOR_OK, "sampling", "");
		say(d, "every process, user and kernel code");
		return;
	}
	if (!f->system_user_code) {
		d = add(l, DOCTOR_DEGRADED, "sampling",
			refusal_fix(f, "CAP_PERFMON for the binary (make install SETCAP=1); sudo "
				       "proftop; "
				       "sudo sysctl kernel.perf_event_paranoid=-1"));
		say(d, "every process, but user code only: kernel code %s",
		    event_errno(f->system_code));
		return;
	}
	if (!f->own_code || !f->own_user_code) {
		d = add(l, DOCTOR_DEGRADED, "sampling",
			refusal_fix(f, "proftop -p PID for one of yours; CAP_PERFMON for the "
				       "binary "
				       "(make install SETCAP=1); sudo proftop; "
				       "sudo sysctl kernel.perf_event_paranoid=0"));
		say(d, "your own processes%s: others %s", f->own_code ? ", user code only" : "",
		    event_errno(f->system_user_code));
		return;
	}
	d = add(l, DOCTOR_NOTHING, "sampling",
		f->own_user_code == -ENOSYS ? "a kernel with CONFIG_PERF_EVENTS; distributions' "
					      "have it"
					    : refusal_fix(f, "CAP_PERFMON for the binary (make "
							     "install SETCAP=1); sudo proftop; "
							     "sudo sysctl "
							     "kernel.perf_event_paranoid=2"));
	say(d, "nothing: perf_event_open %s (%s)", event_errno(f->own_user_code),
	    strerror(-f->own_user_code));
}

static void judge_paranoid(struct findings *l, const struct doctor_facts *f)
{
	static const char *const means[] = {
		"every process, user and kernel code",
		"every process, user and kernel code, without raw tracepoints",
		"one's own processes, kernel code included",
		"one's own processes, user code only",
	};
	struct doctor_finding *d = add(l, DOCTOR_OK, "perf_event_paranoid", "");
	long level = MAX(f->paranoid, -1L);

	if (f->paranoid == -1 && f->own_user_code == -ENOSYS)
		say(d, "not there: this kernel has no perf events");
	else if (level > 2)
		say(d, "%ld: sampling needs CAP_PERFMON", level);
	else
		say(d, "%ld: without CAP_PERFMON %s%s", level, means[level + 1],
		    may_perf(f) ? "; this user has it" : "");
}

static void judge_caps(struct findings *l, const struct doctor_facts *f)
{
	static const struct {
		unsigned int cap;
		const char *name, *without;
	} caps[] = {
		{ CAP_PERFMON, "PERFMON", "" },
		{ CAP_SYS_PTRACE, "SYS_PTRACE", "other users' stacks and names" },
		{ CAP_SYSLOG, "SYSLOG", "kernel names where kptr_restrict is 1" },
		{ CAP_IPC_LOCK, "IPC_LOCK", "large rings" },
		{ CAP_SYS_NICE, "SYS_NICE", "priority for sampler threads on a busy machine" },
	};
	char have[96] = "", lack[160] = "";
	bool all = true;
	struct doctor_finding *d;

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		bool got = has(f, caps[i].cap) || (caps[i].cap == CAP_PERFMON && may_perf(f));
		char *list = got ? have : lack;
		size_t used = strlen(list), size = got ? sizeof(have) : sizeof(lack);

		all &= got;
		if (got || caps[i].without[0])
			snprintf(list + used, size - used, "%s%s", used ? ", " : "",
				 got ? caps[i].name : caps[i].without);
	}
	d = add(l, all ? DOCTOR_OK : DOCTOR_NOTE, "capabilities",
		all ? "" : "make install SETCAP=1 sets them on the binary; sudo proftop");
	say(d, "%s%s%s%s", have[0] ? have : "none", lack[0] ? "; without the rest no " : "", lack,
	    have[0] ? "; not in screen and sampler threads" : "");
}

static void judge_pmu(struct findings *l, const struct doctor_facts *f)
{
	bool none = f->cycles_code == -ENOENT || f->cycles_code == -ENODEV ||
		    f->cycles_code == -EOPNOTSUPP || f->cycles_code == -ENXIO;
	struct doctor_finding *d;

	if (!f->cycles_code || !none) {
		d = add(l, DOCTOR_OK, "hardware counters", "");
		say(d, "%s",
		    f->cycles_code ? "not tried: nothing may be sampled"
				   : "cycles and other events of the CPU");
		return;
	}
	d = add(l, DOCTOR_DEGRADED, "hardware counters",
		"in a virtual machine let its host pass the counters on (a virtual PMU); cpu-clock "
		"works "
		"without");
	say(d, "none: cpu-clock is used instead of cycles; no cache or branch events");
}

static void judge_limits(struct findings *l, const struct doctor_facts *f)
{
	bool free_lock = has(f, CAP_IPC_LOCK) || f->paranoid == -1;
	bool small = !free_lock && f->mlock_kb >= 0 && f->mlock_kb < MLOCK_KB_WANTED;
	struct doctor_finding *d;

	d = add(l, small ? DOCTOR_NOTE : DOCTOR_OK, "locked memory",
		small ? "a smaller --stack-size; raise 'ulimit -l'; sudo sysctl "
			"kernel.perf_event_mlock_kb=2048"
		      : "");
	if (free_lock)
		say(d, "no limit for rings");
	else
		say(d, "%ld KiB of ring a CPU%s", f->mlock_kb,
		    small ? ": small rings, samples may be lost at high rates" : "");
	small = f->files_hard >= 0 && f->files_hard < MAX(FILES_WANTED, 16 * f->nr_cpus);
	d = add(l, small ? DOCTOR_DEGRADED : DOCTOR_OK, "open files",
		small ? "fewer processes (-p) or CPUs (-C); raise the hard limit: nofile in "
			"/etc/security/limits.conf"
		      : "");
	say(d, "%ld at most, %ld CPUs%s", f->files_hard, f->nr_cpus,
	    small ? ": a process with many threads takes more" : "");
	small = f->max_rate >= 0 && f->max_rate < RATE_WANTED;
	d = add(l, small ? DOCTOR_DEGRADED : DOCTOR_OK, "sample rate",
		small ? "a lower rate: -F; sudo sysctl kernel.perf_event_max_sample_rate=100000"
		      : "");
	say(d, "up to %ld a second and CPU%s", f->max_rate,
	    small ? ": the kernel lowers it when interrupts are slow" : "");
}

static void judge_names(struct findings *l, const struct doctor_facts *f)
{
	/* With kptr_restrict 0 the right to profile the kernel shows them. */
	bool by_paranoid = f->kptr_restrict == 0 && f->paranoid > 1;
	struct doctor_finding *d;

	d = add(l, f->kernel_symbols ? DOCTOR_OK : DOCTOR_DEGRADED, "kernel names",
		f->kernel_symbols	? ""
		: f->kptr_restrict == 2 ? "sudo sysctl kernel.kptr_restrict=1 and CAP_SYSLOG; or "
					  "=0 for all users"
		: by_paranoid ? "CAP_SYSLOG for the binary (make install SETCAP=1); sudo proftop; "
				"sudo sysctl "
				"kernel.perf_event_paranoid=1 (all users)"
			      : "CAP_SYSLOG for the binary (make install SETCAP=1); sudo proftop; "
				"sudo sysctl "
				"kernel.kptr_restrict=0 (all users)");
	say(d, "%s (kernel.%s is %ld)",
	    f->kernel_symbols ? "readable" : "hidden: kernel code shows as addresses",
	    by_paranoid && !f->kernel_symbols ? "perf_event_paranoid" : "kptr_restrict",
	    by_paranoid && !f->kernel_symbols ? f->paranoid : f->kptr_restrict);
	d = add(l, f->debug_files || f->debuginfod ? DOCTOR_OK : DOCTOR_NOTE, "debug files",
		f->debug_files || f->debuginfod ? ""
						: "install the debug packages of your programs; or "
						  "set DEBUGINFOD_URLS");
	say(d, "%s",
	    f->debug_files  ? "some below /usr/lib/debug"
	    : f->debuginfod ? "DEBUGINFOD_URLS is set"
			    : "none: stripped functions are named by their addresses");
	d = add(l, f->other_processes ? DOCTOR_OK : DOCTOR_NOTE, "other processes",
		f->other_processes ? "" : "sudo mount -o remount,hidepid=0 /proc; or sudo proftop");
	say(d, "%s", f->other_processes ? "shown by /proc" : "hidden by /proc, or a container");
}

static void judge_tracefs(struct findings *l, const struct doctor_facts *f)
{
	static const char *const says[] = {
		[TRACEFS_MISSING] = "not mounted",
		[TRACEFS_MOUNTED] = "readable",
		[TRACEFS_DETACHED] = "readable (tracefs is not mounted: read without a mount)",
		[TRACEFS_CLOSED] = "not readable by this user",
		[TRACEFS_LOCKED] = "none: tracefs is empty under lockdown",
	};
	static const char *const fix[] = {
		[TRACEFS_MISSING] = "sudo mount -t tracefs nodev /sys/kernel/tracing (root reads "
				    "it); for a group: -o mode=750,gid=GROUP; or sudo proftop",
		[TRACEFS_MOUNTED] = "",
		[TRACEFS_DETACHED] = "",
		[TRACEFS_CLOSED] = "sudo mount -o remount,mode=750,gid=GROUP /sys/kernel/tracing; "
				   "or sudo proftop",
		[TRACEFS_LOCKED] = "boot with lockdown=integrity or none",
	};
	bool ok = f->tracefs == TRACEFS_MOUNTED || f->tracefs == TRACEFS_DETACHED;

	say(add(l, ok ? DOCTOR_OK : DOCTOR_NOTE, "tracepoints", fix[f->tracefs]), "%s",
	    says[f->tracefs]);
}

/* Lockdown is stronger than any capability. */
static void judge_lockdown(struct findings *l, const struct doctor_facts *f)
{
	bool closed = !strcmp(f->lockdown, "confidentiality");
	struct doctor_finding *d;

	d = add(l, closed ? DOCTOR_NOTE : DOCTOR_OK, "lockdown",
		closed ? "boot with lockdown=integrity or none" : "");
	if (closed)
		say(d, "confidentiality: no tracepoints, no kprobes, no kernel code in annotate");
	else
		say(d, "%s", f->lockdown[0] ? f->lockdown : "none, or not shown");
}

/* The names of JIT code are written by its runtime, most only on request. */
static void judge_jits(struct findings *l, const struct doctor_facts *f)
{
	uint32_t shown = MIN(f->nr_jits, (uint32_t)ARRAY_SIZE(f->jits));
	char list[120] = "", fix[sizeof(l->out->fix)] = "";
	struct doctor_finding *d;

	for (uint32_t i = 0; i < shown; i++) {
		const struct doctor_jit *j = &f->jits[i];
		size_t used = strlen(list), told = strlen(fix);

		snprintf(list + used, sizeof(list) - used, "%s%s (%d)", i ? ", " : "", j->program,
			 j->pid);
		if (!strstr(fix, j->fix))
			snprintf(fix + told, sizeof(fix) - told, "%s%s: %s", told ? "; " : "",
				 j->program, j->fix);
	}
	d = add(l, shown ? DOCTOR_NOTE : DOCTOR_OK, "JIT maps", fix);
	if (shown)
		say(d, "code without names in %s%s", list, f->nr_jits > shown ? " and others" : "");
	else
		say(d, "%s", "no process that can be read has JIT code without names");
}

/* The right to read the memory of other processes. */
enum memory_right { MEMORY_ALL, MEMORY_OWN, MEMORY_CHILDREN, MEMORY_NONE };

static enum memory_right memory_right(const struct doctor_facts *f)
{
	if (f->ptrace_scope > 2)
		return MEMORY_NONE;
	if (has(f, CAP_SYS_PTRACE))
		return MEMORY_ALL;
	return f->ptrace_scope == 2   ? MEMORY_NONE
	       : f->ptrace_scope == 1 ? MEMORY_CHILDREN
				      : MEMORY_OWN;
}

static void judge_memory(struct findings *l, const struct doctor_facts *f)
{
	static const char *const says[] = {
		[MEMORY_ALL] = "readable, of every process",
		[MEMORY_OWN] = "readable, of your own processes only",
		[MEMORY_CHILDREN] = ("readable, of commands that proftop starts only "
				     "(kernel.yama.ptrace_scope is 1)"),
		[MEMORY_NONE] = "not readable (kernel.yama.ptrace_scope)",
	};
	enum memory_right right = memory_right(f);
	const char *fix = "";

	if (f->ptrace_scope > 2)
		fix = "boot with kernel.yama.ptrace_scope=2 or less";
	else if (right == MEMORY_OWN)
		fix = "CAP_SYS_PTRACE for the binary (make install SETCAP=1); sudo proftop";
	else if (right != MEMORY_ALL)
		fix = "CAP_SYS_PTRACE for the binary (make install SETCAP=1); sudo proftop; "
		      "sudo sysctl kernel.yama.ptrace_scope=0 (your own processes)";
	say(add(l, right == MEMORY_ALL ? DOCTOR_OK : DOCTOR_NOTE, "process memory", fix), "%s",
	    says[right]);
}

static void judge_realtime(struct findings *l, const struct doctor_facts *f)
{
	struct doctor_finding *d =
		add(l, f->realtime_code ? DOCTOR_NOTE : DOCTOR_OK, "real-time priority",
		    f->realtime_code ? "CAP_SYS_NICE for the binary (make install SETCAP=1); sudo "
				       "proftop; raise 'ulimit -r'"
				     : "");

	if (f->realtime_code)
		say(d, "none (%s): more frames of scripts are guessed, and samples are read later",
		    event_errno(f->realtime_code));
	else
		say(d, "for sampler threads and readers of interpreters");
}

/* Readers of foreign files: symbols/sandbox. */
static void judge_sandbox(struct findings *l, const struct doctor_facts *f)
{
	struct doctor_finding *d = add(l, f->sandbox_code ? DOCTOR_DEGRADED : DOCTOR_OK,
				       "foreign files",
				       f->sandbox_code ? "allow fork, memfd_create, pidfd_open and "
							 "seccomp; raise 'ulimit -u'"
						       : "");

	if (f->sandbox_code)
		say(d, "cannot start their readers: %s: no names, unwind tables or recordings",
		    strerror(-f->sandbox_code));
	else
		say(d, "read by processes without rights");
}

#define JAVA_SHOWN "OpenJDK 17 to 28: methods and lines; 11 to 16: untested, guessed"

/* List the languages, and the rights that reading their frames needs. */
static void judge_languages(struct findings *l, const struct doctor_facts *f)
{
	static const struct {
		const char *topic;
		enum lang_kind kind;
	} all[] = {
		{ "Java", LANG_JAVA },	 { "Python", LANG_PYTHON }, { "PHP", LANG_PHP },
		{ "Ruby", LANG_RUBY },	 { "Perl", LANG_PERL },	    { "Lua", LANG_LUA },
		{ "Erlang", LANG_BEAM }, { "R", LANG_R },	    { "JavaScript", LANG_NODE },
	};
	static const char *const lacks[] = {
		[MEMORY_ALL] = "",
		[MEMORY_OWN] = "; your own processes only (process memory)",
		[MEMORY_CHILDREN] = "; commands that proftop starts only (process memory)",
		[MEMORY_NONE] = "; not readable (process memory)",
	};
	enum memory_right right = memory_right(f);

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		bool java = all[i].kind == LANG_JAVA;
		/* Without haste for Java: its code remains in memory. */
		bool late = f->realtime_code && !java;
		struct doctor_finding *d =
			add(l, right == MEMORY_ALL && !late ? DOCTOR_OK : DOCTOR_NOTE, all[i].topic,
			    "");

		say(d, "%s%s%s", java ? JAVA_SHOWN : lang_versions(all[i].kind), lacks[right],
		    late && right != MEMORY_NONE ? "; more guesses (real-time priority)" : "");
	}
}

/* Limits of the container or service that proftop runs in. */
static void judge_container(struct findings *l, const struct doctor_facts *f)
{
	bool filter = f->seccomp == 2, small = f->memory_mb && f->memory_mb < MEMORY_MB_WANTED;
	struct doctor_finding *d;
	const char *fix = "";

	if (f->system_code && filter)
		fix = "allow perf_event_open in its seccomp profile; or run proftop outside";
	else if (f->system_code && f->user_namespace)
		fix = "run proftop outside the namespace";
	else if (f->pid_namespace)
		fix = "docker run --pid=host; hostPID: true";
	d = add(l, filter || f->user_namespace || f->pid_namespace ? DOCTOR_NOTE : DOCTOR_OK,
		"container", fix);
	say(d, "%s%s%s%s",
	    filter ? "a filter of system calls is in force" : "no filter of system calls",
	    f->user_namespace ? "; a user namespace: its root has no right to sample others" : "",
	    f->user_namespace && f->system_code ? ", nor kernel code" : "",
	    f->pid_namespace ? "; a PID namespace: processes outside have no names or stacks" : "");
	d = add(l, small ? DOCTOR_NOTE : DOCTOR_OK, "memory",
		small ? "--symbol-memory, as in 64M; raise the limit of the cgroup" : "");
	if (f->memory_mb)
		say(d, "%ld MiB for its cgroup", f->memory_mb);
	else
		say(d, "no limit by a cgroup");
	small = f->cpu_pct && f->cpu_pct < CPU_PCT_WANTED;
	d = add(l, small ? DOCTOR_NOTE : DOCTOR_OK, "CPU time",
		small ? "a lower rate: -F; raise the limit of the cgroup" : "");
	if (f->cpu_pct)
		say(d, "%ld %% of one CPU for its cgroup%s", f->cpu_pct,
		    small ? ": samples are lost while it is held back" : "");
	else
		say(d, "no limit by a cgroup");
}

static void judge_kernel(struct findings *l, const struct doctor_facts *f)
{
	unsigned int major = 0, minor = 0;
	bool lost, old;
	struct doctor_finding *d;

	sscanf(f->release, "%u.%u", &major, &minor);
	lost = major >= 6;
	old = major < 5 || (major == 5 && minor < 10);
	d = add(l,
		old    ? DOCTOR_DEGRADED
		: lost ? DOCTOR_OK
		       : DOCTOR_NOTE,
		"kernel", lost ? "" : "kernel 6.0 or later");
	say(d, "%s%s", f->release,
	    old	   ? ": older than 5.10, not tested"
	    : lost ? ""
		   : ": lost samples are counted by LOST records, not exactly");
}

uint32_t doctor_judge(const struct doctor_facts *f, struct doctor_finding *out)
{
	struct findings l = { .out = out };

	judge_access(&l, f);
	judge_paranoid(&l, f);
	judge_caps(&l, f);
	judge_pmu(&l, f);
	judge_limits(&l, f);
	judge_names(&l, f);
	judge_tracefs(&l, f);
	judge_lockdown(&l, f);
	judge_jits(&l, f);
	judge_memory(&l, f);
	judge_realtime(&l, f);
	judge_sandbox(&l, f);
	judge_languages(&l, f);
	judge_kernel(&l, f);
	judge_container(&l, f);
	return l.nr;
}

enum doctor_level doctor_worst(const struct doctor_finding *findings, uint32_t nr)
{
	enum doctor_level worst = DOCTOR_OK;

	assert(findings || !nr);
	for (uint32_t i = 0; i < nr; i++)
		worst = MAX(worst, findings[i].level);
	return worst;
}

/*
 * The facts behind proftop --check: files of /proc and /sys, and tries.
 *
 * Any one thread; opens some events and closes them.
 */

static long sysctl_or(const char *root, const char *name)
{
	long value;

	return procstat_sysctl(root, name, &value) ? -1 : value;
}

static long ptrace_scope(const char *root)
{
	char path[512], line[16];

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/yama/ptrace_scope", root);
	return pmu_read_line(path, line, sizeof(line)) ? strtol(line, NULL, 10) : -1;
}

/* Try the priority of the readers, for a moment. */
static int try_realtime(void)
{
	struct sched_param realtime = { .sched_priority = 1 }, was;
	int policy = sched_getscheduler(0);

	if (policy < 0 || sched_getparam(0, &was) || sched_setscheduler(0, SCHED_RR, &realtime))
		return -errno;
	sched_setscheduler(0, policy, &was);
	return 0;
}

/* Lines of /proc/self/status and /proc/self/limits that matter. */
static void read_self(struct doctor_facts *f, const char *root)
{
	char path[512], line[256];
	FILE *file;

	f->files_hard = -1;
	snprintf(path, sizeof(path), "%s/proc/self/status", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %" SCNx64, &f->caps) == 1)
			continue;
		if (sscanf(line, "Seccomp: %d", &f->seccomp) == 1)
			continue;
	}
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "%s/proc/self/limits", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Max open files %*s %ld", &f->files_hard) == 1)
			break;
	if (file)
		fclose(file);
}

/* Hidden addresses are all zero. */
static bool has_kernel_symbols(const char *root)
{
	char path[512], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/kallsyms", root);
	file = fopen(path, "re");
	for (int i = 0; file && i < 64 && !found && fgets(line, sizeof(line), file); i++)
		found = strtoull(line, NULL, 16) != 0;
	if (file)
		fclose(file);
	return found;
}

static bool is_there(const char *root, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, name);
	return !access(path, R_OK);
}

/* Call @fn with the first line of @file of the cgroup at @path and of each of its parents. */
static void each_cgroup(const char *root, const char *path, const char *file,
			void (*fn)(struct doctor_facts *f, const char *line),
			struct doctor_facts *f)
{
	char at[256], full[768], line[64], *slash;

	snprintf(at, sizeof(at), "%.255s", path);
	do {
		snprintf(full, sizeof(full), "%s/sys/fs/cgroup%s/%s", root, at, file);
		if (pmu_read_line(full, line, sizeof(line)))
			fn(f, line);
		slash = strrchr(at, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
}

static void memory_limit(struct doctor_facts *f, const char *line)
{
	long long bytes;

	/* "max", and the page counter's end that version 1 has for it, are no limits. */
	if (sscanf(line, "%lld", &bytes) == 1 && bytes > 0 && bytes < 1LL << 50 &&
	    (!f->memory_mb || bytes >> 20 < f->memory_mb))
		f->memory_mb = MAX((long)(bytes >> 20), 1L);
}

static void cpu_limit(struct doctor_facts *f, const char *line)
{
	long quota, period, pct;

	if (sscanf(line, "%ld %ld", &quota, &period) != 2 || quota <= 0 || period <= 0)
		return;
	pct = MAX((long)(quota * 100.0 / (double)period), 1L);
	if (!f->cpu_pct || pct < f->cpu_pct)
		f->cpu_pct = pct;
}

/* "0::/user.slice/a", or with version 1 "4:memory:/docker/3f". */
static void read_cgroup(struct doctor_facts *f, const char *root)
{
	char path[512], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *name = strchr(line, ':'), *own = name ? strchr(name + 1, ':') : NULL;

		if (!own)
			continue;
		*own++ = '\0';
		own[strcspn(own, "\n")] = '\0';
		if (!name[1]) {
			each_cgroup(root, own, "memory.max", memory_limit, f);
			each_cgroup(root, own, "cpu.max", cpu_limit, f);
		} else if (!strcmp(name + 1, "memory")) {
			snprintf(path, sizeof(path), "/memory%.400s", own);
			each_cgroup(root, path, "memory.limit_in_bytes", memory_limit, f);
		}
	}
	if (file)
		fclose(file);
}

/* The first one maps all users to themselves. */
static bool is_user_namespace(const char *root)
{
	unsigned long inner, outer, nr;
	char path[512], line[128];

	snprintf(path, sizeof(path), "%s/proc/self/uid_map", root);
	return pmu_read_line(path, line, sizeof(line)) &&
	       sscanf(line, "%lu %lu %lu", &inner, &outer, &nr) == 3 && nr != UINT32_MAX;
}

static int try(const char *name, pid_t pid, int cpu)
{
	struct event ev;
	int code = event_parse(&ev, name, NULL);

	return code ? code : event_probe(&ev, pid, cpu);
}

static enum tracefs_state read_tracefs(const char *root)
{
	int fd;
	enum tracefs_state state = tracefs_open(root, &fd);

	if (fd >= 0)
		close(fd);
	return state;
}

void doctor_read(struct doctor_facts *f, const char *root)
{
	struct jitcheck jits[ARRAY_SIZE(f->jits)];
	char path[512];

	memset(f, 0, sizeof(*f));
	read_self(f, root);
	f->paranoid = sysctl_or(root, "perf_event_paranoid");
	f->kptr_restrict = sysctl_or(root, "kptr_restrict");
	f->mlock_kb = sysctl_or(root, "perf_event_mlock_kb");
	f->max_rate = sysctl_or(root, "perf_event_max_sample_rate");
	f->nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	f->kernel_symbols = has_kernel_symbols(root);
	f->tracefs = read_tracefs(root);
	procstat_lockdown(root, f->lockdown, sizeof(f->lockdown));
	f->debug_files = is_there(root, "/usr/lib/debug/.build-id");
	f->debuginfod = getenv("DEBUGINFOD_URLS") && getenv("DEBUGINFOD_URLS")[0];
	f->other_processes = is_there(root, "/proc/1/stat");
	snprintf(path, sizeof(path), "%s/proc/sys/kernel/osrelease", root);
	if (!pmu_read_line(path, f->release, sizeof(f->release)))
		f->release[0] = '\0';
	f->user_namespace = is_user_namespace(root);
	f->pid_namespace = procstat_pid_namespace(root);
	read_cgroup(f, root);
	f->nr_jits = jitcheck_find(root, jits, ARRAY_SIZE(jits));
	for (uint32_t i = 0; i < MIN(f->nr_jits, (uint32_t)ARRAY_SIZE(jits)); i++) {
		f->jits[i] = (struct doctor_jit){ .pid = jits[i].pid, .fix = jits[i].fix };
		memcpy(f->jits[i].program, jits[i].program, sizeof(f->jits[i].program));
	}
	f->ptrace_scope = ptrace_scope(root);
	f->realtime_code = try_realtime();
	f->sandbox_code = symbols_sandbox_check();
	f->system_code = try("cpu-clock", -1, 0);
	f->system_user_code = try("cpu-clock:u", -1, 0);
	f->own_code = try("cpu-clock", 0, -1);
	f->own_user_code = try("cpu-clock:u", 0, -1);
	f->cycles_code = try("cycles:u", 0, -1);
}

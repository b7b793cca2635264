// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The facts behind proftop --check: files of /proc and /sys, and tries.
 *
 * Any one thread; opens some events and closes them.
 */
#include "sampler/event/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/event/event_parse.h"
#include "sampler/event/procstat.h"
#include "symbols/symbols.h"

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
	f->nr_jits = jitcheck_find(root, f->jits, ARRAY_SIZE(f->jits));
	f->ptrace_scope = ptrace_scope(root);
	f->realtime_code = try_realtime();
	f->cage_code = symbols_cage_check();
	f->system_code = try("cpu-clock", -1, 0);
	f->system_user_code = try("cpu-clock:u", -1, 0);
	f->own_code = try("cpu-clock", 0, -1);
	f->own_user_code = try("cpu-clock:u", 0, -1);
	f->cycles_code = try("cycles:u", 0, -1);
}

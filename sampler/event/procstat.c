// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Busy CPUs, the overhead of proftop, limits of perf events, from /proc.
 *
 * Runs on: the builder. Invariant: shares are made of differences, and differences are never
 * negative (iowait may go back, CPUs go offline and return).
 */
#include "sampler/event/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

#define CPU_MAX	  65536 /* ids above are not believed */
#define BYTES_MAX (16u << 20)

/* The inode of the first pid namespace, PROC_PID_INIT_INO of the kernel. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

struct cpu {
	/* Clock ticks since boot, as last read. */
	uint64_t busy, idle, kernel, steal, interrupts;
	struct procstat_cpu shares;
	bool seen;
};

struct procstat {
	char *root;
	struct cpu *cpus; /* by id */
	size_t nr_cpus;
	char *text; /* of /proc/stat */
	size_t text_size;
	uint64_t self_cpu_us, self_time_ns;
	uint64_t stat_ns;  /* time of the last update; 0: none */
	double elapsed_ns; /* between the last two */
	struct procstat_pressure pressure;
};

/* Open @path below root; the caller closes. */
static int open_below(const char *root, const char *path)
{
	char full[512];
	int fd;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Read at most @size - 1 bytes and end them with a NUL. The number, or -errno. */
static ssize_t read_text(const char *root, const char *path, char *text, size_t size)
{
	int fd = open_below(root, path);
	size_t nr = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	while (n > 0 && nr < size - 1) {
		n = read(fd, text + nr, size - 1 - nr);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			nr += (size_t)n;
	}
	if (n < 0)
		n = -errno;
	close(fd);
	text[nr] = '\0';
	return n < 0 ? n : (ssize_t)nr;
}

int procstat_sysctl(const char *root, const char *name, long *value)
{
	char path[128], text[32], *end;
	ssize_t nr;

	if (snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	nr = read_text(root, path, text, sizeof(text));
	if (nr < 0)
		return (int)nr;
	errno = 0;
	*value = strtol(text, &end, 10);
	return errno || end == text || (*end && *end != '\n') ? -EINVAL : 0;
}

/* "none [integrity] confidentiality": the word in brackets. */
void procstat_lockdown(const char *root, char *dst, size_t size)
{
	char text[128], *word;

	assert(size);
	dst[0] = '\0';
	if (read_text(root, "/sys/kernel/security/lockdown", text, sizeof(text)) < 0)
		return;
	word = strchr(text, '[');
	if (word)
		snprintf(dst, size, "%.*s", (int)strcspn(word + 1, "]"), word + 1);
}

bool procstat_pid_namespace(const char *root)
{
	char path[512], text[64];
	unsigned int inode;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/self/ns/pid", root);
	n = readlink(path, text, sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	return sscanf(text, "pid:[%u]", &inode) == 1 && inode != FIRST_PID_NAMESPACE;
}

uint64_t procstat_max_sample_rate(const struct procstat *p)
{
	long rate;

	if (procstat_sysctl(p->root, "perf_event_max_sample_rate", &rate) || rate < 0)
		return 0;
	return (uint64_t)rate;
}

/* Read "some avg10=99.39 avg60=..." of one kind of pressure; 0: there is none. */
static double read_pressure(const struct procstat *p, const char *path)
{
	char text[256];
	double percent = 0;

	if (read_text(p->root, path, text, sizeof(text)) < 0 ||
	    sscanf(text, "some avg10=%lf", &percent) != 1 || !(percent >= 0))
		return 0;
	return MIN(percent, 100.0) / 100;
}

struct procstat_pressure procstat_pressure(const struct procstat *p)
{
	return p->pressure;
}

static double since(uint64_t was, uint64_t now)
{
	return now > was ? (double)(now - was) : 0;
}

/* A CPU that was not there a moment ago has no difference to show yet. */
static void set_cpu(struct procstat *p, uint64_t id, const struct cpu *now)
{
	struct cpu *cpu, was;
	double busy, all;

	if (id >= p->nr_cpus) {
		p->cpus = xrealloc_array(p->cpus, id + 1, sizeof(*p->cpus));
		memset(p->cpus + p->nr_cpus, 0, (id + 1 - p->nr_cpus) * sizeof(*p->cpus));
		p->nr_cpus = id + 1;
	}
	cpu = &p->cpus[id];
	was = *cpu;
	*cpu = *now;
	cpu->shares = was.shares;
	cpu->seen = true;
	busy = since(was.busy, now->busy);
	all = busy + since(was.idle, now->idle);
	if (!was.shares.online)
		cpu->shares = (struct procstat_cpu){ .busy = 0 };
	else if (all > 0)
		cpu->shares = (struct procstat_cpu){
			.busy = busy / all,
			.kernel = MIN(since(was.kernel, now->kernel), busy) / all,
			.steal = MIN(since(was.steal, now->steal), busy) / all,
		};
	/*
	 * Idle time is exact; user and system time is that of the moments of the timer. Less than
	 * nothing of an update, by whole clock ticks, is of others.
	 */
	cpu->shares.tasks_ns = was.shares.tasks_ns;
	if (was.shares.online)
		cpu->shares.tasks_ns += p->elapsed_ns - (since(was.idle, now->idle) +
							 since(was.interrupts, now->interrupts) +
							 since(was.steal, now->steal)) *
								1e9 / (double)sysconf(_SC_CLK_TCK);
}

/* "cpu3 user nice system idle iowait irq softirq steal …"; old kernels have fewer fields. */
static void parse_cpu(struct procstat *p, const char *line)
{
	uint64_t id, v[8] = { 0 };
	int nr = sscanf(line,
			"cpu%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			" %" SCNu64 " %" SCNu64 " %" SCNu64,
			&id, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);

	if (nr < 5 || id >= CPU_MAX)
		return;
	set_cpu(p, id,
		&(struct cpu){ .busy = v[0] + v[1] + v[2] + v[5] + v[6] + v[7],
			       .idle = v[3] + v[4],
			       .kernel = v[2] + v[5] + v[6],
			       .steal = v[7],
			       .interrupts = v[5] + v[6] });
}

/* The cpu lines are first; grow until the line behind them is seen. */
static int read_stat(struct procstat *p)
{
	for (;;) {
		ssize_t nr = read_text(p->root, "/proc/stat", p->text, p->text_size);

		if (nr < 0)
			return (int)nr;
		if ((size_t)nr < p->text_size - 1 || strstr(p->text, "\nintr") ||
		    p->text_size >= BYTES_MAX)
			return 0;
		p->text_size *= 2;
		p->text = xrealloc_array(p->text, p->text_size, 1);
	}
}

/* Each line at a time: sscanf() on the whole text would walk it to the end. */
int procstat_update(struct procstat *p)
{
	int code = read_stat(p);
	uint64_t now_ns = time_now_ns();
	char *line, *next;

	if (code)
		return code;
	p->elapsed_ns = p->stat_ns ? (double)(now_ns - p->stat_ns) : 0;
	p->stat_ns = now_ns;
	for (size_t i = 0; i < p->nr_cpus; i++)
		p->cpus[i].seen = false;
	for (line = p->text; !strncmp(line, "cpu", 3); line = next) {
		next = strchr(line, '\n');
		if (!next)
			break;
		*next++ = '\0';
		if (line[3] >= '0' && line[3] <= '9')
			parse_cpu(p, line);
	}
	for (size_t i = 0; i < p->nr_cpus; i++)
		p->cpus[i].shares.online = p->cpus[i].seen;
	p->pressure = (struct procstat_pressure){ read_pressure(p, "/proc/pressure/cpu"),
						  read_pressure(p, "/proc/pressure/io"),
						  read_pressure(p, "/proc/pressure/memory") };
	return 0;
}

struct procstat_cpu procstat_cpu(const struct procstat *p, int cpu)
{
	struct procstat_cpu shares = { .busy = 0 };

	if (cpu < 0 || (size_t)cpu >= p->nr_cpus)
		return shares;
	if (p->cpus[cpu].shares.online)
		return p->cpus[cpu].shares;
	shares.tasks_ns = p->cpus[cpu].shares.tasks_ns;
	return shares;
}

static uint64_t self_cpu_us(void)
{
	struct rusage ru;

	if (getrusage(RUSAGE_SELF, &ru))
		return 0;
	return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) +
	       (sandbox_cpu_ns() + sandbox_memory_cpu_ns()) / 1000;
}

/* statm counts pages; its second number is the resident ones. */
static uint64_t self_rss_kb(const struct procstat *p)
{
	uint64_t total, resident;
	char text[128];

	if (read_text(p->root, "/proc/self/statm", text, sizeof(text)) < 0 ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &total, &resident) != 2)
		return 0;
	return resident * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
}

void procstat_self(struct procstat *p, double *cpu_pct, uint64_t *rss_kb)
{
	uint64_t cpu = self_cpu_us(), now = time_now_ns();
	uint64_t ns = now - p->self_time_ns;

	*cpu_pct = ns && cpu > p->self_cpu_us ? (double)(cpu - p->self_cpu_us) * 1e5 / (double)ns
					      : 0;
	*rss_kb = self_rss_kb(p);
	p->self_cpu_us = cpu;
	p->self_time_ns = now;
}

int procstat_new(struct procstat **out, const char *root, struct err *e)
{
	struct procstat *p = xcalloc(1, sizeof(*p));
	int code;

	p->root = xstrndup(root, strnlen(root, 400));
	p->text_size = 16384;
	p->text = xcalloc(p->text_size, 1);
	p->self_cpu_us = self_cpu_us();
	p->self_time_ns = time_now_ns();
	code = procstat_update(p);
	if (code) {
		procstat_free(p);
		return err_set(e, code,
			       "cannot read /proc/stat: %s\n"
			       "  without /proc no process and no code can be named\n"
			       "  mount it: mount -t proc proc /proc",
			       strerror(-code));
	}
	*out = p;
	return 0;
}

void procstat_free(struct procstat *p)
{
	if (!p)
		return;
	free(p->root);
	free(p->cpus);
	free(p->text);
	free(p);
}

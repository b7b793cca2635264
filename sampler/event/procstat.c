// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Busy CPUs and overhead from /proc, and --max-overhead: the part of the wanted rate to sample
 * with.
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

	p->root = xstrndup(root, 400);
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

/*
 * The governor: down immediately, as far as the cost requires, up slowly and only after some calm
 * ticks, so that it does not swing.
 *
 * Pure; one caller at a time.
 */

/* More samples lost than this, and the rate is too high whatever it costs. */
#define GOVERNOR_LOSS_MAX 0.01

#define GOVERNOR_CAP_NS 3000000000ULL

/* Shorter stretches say little about the cost. */
#define SPAN_NS 500000000ULL

#define AIM	    0.8 /* of the limit: the cost swings */
#define CALM_BELOW  0.6
#define CALM_STEPS  6
#define RAISE	    1.25
#define STEP_MIN    0.2 /* the cost of one stretch may be a fluke */
#define FACTOR_MIN  0.001
#define HELPED	    0.25 /* of the expected saving, at least; less: samples are not the cost */
#define FIXED_STEPS 30
#define CLIMB	    2.0
#define CLIMB_MIN   1.05

/* Above GOVERNOR_STALL_HZ: how long a tick may be, and the cost be above the cap. */
#define FAST_NS 1000000000ULL

#define LATE_TIMES 3		 /* as long as a tick should be, */
#define LATE_NS	   1000000000ULL /* and this much longer at least, */
#define LATE_TICKS 2		 /* so often in a row */

void governor_init(struct governor *g, double max_pct, uint32_t nr_cpus, double hz)
{
	assert(max_pct >= 0 && hz >= 0);
	*g = (struct governor){
		.max_pct = max_pct, .factor = 1, .ceiling = 1, .over = 1, .fast = 1
	};
	if (max_pct > 0 || hz <= GOVERNOR_CAP_HZ)
		return;
	g->is_cap = true;
	g->max_pct = (double)GOVERNOR_CAP_PCT * nr_cpus;
	g->least = GOVERNOR_CAP_HZ / hz;
}

void governor_climb(struct governor *g, double hz)
{
	g->climbs = hz > GOVERNOR_STALL_HZ && g->max_pct > 0;
	if (g->climbs)
		g->factor = g->fast = GOVERNOR_STALL_HZ / hz;
}

static bool is_fast(const struct governor *g)
{
	return g->factor > g->fast;
}

uint64_t governor_patience(const struct governor *g)
{
	return g->climbs ? SPAN_NS : is_fast(g) ? FAST_NS : UINT64_MAX;
}

static bool set_factor(struct governor *g, double factor)
{
	double was = g->factor;

	g->factor = MIN(MAX(factor, FACTOR_MIN), g->ceiling);
	g->capped &= g->factor < g->ceiling;
	g->calm = 0;
	return g->factor < was || g->factor > was;
}

/* A step above the limit. A single costly tick is the loader at work, except at the start. */
static bool lasts(struct governor *g, uint64_t span_ns)
{
	if (!g->is_cap)
		return g->over++;
	g->over_ns += span_ns;
	if (g->over_ns < (is_fast(g) ? FAST_NS : GOVERNOR_CAP_NS))
		return false;
	g->over_ns = 0;
	return true;
}

/* The last step saved a part of the cost that it should have saved. */
static bool helped(const struct governor *g, double pct)
{
	return g->from_pct - pct >= HELPED * g->from_pct * (1 - g->factor / g->from);
}

/*
 * The cost is almost proportional to the number of samples; or it is not the samples that cost, but
 * the symbols of new programs, or records of their doings: then the last step is undone.
 */
static bool lower(struct governor *g, double pct)
{
	double factor = g->factor * MAX(AIM * g->max_pct / pct, STEP_MIN);
	double from = g->from;

	if (!g->is_cap && from > g->factor && !helped(g, pct)) {
		g->from = 0;
		g->fixed = FIXED_STEPS;
		g->why = GOVERNOR_FIXED;
		return set_factor(g, from);
	}
	if (g->fixed)
		return false;
	g->from = g->factor;
	g->from_pct = pct;
	g->capped |= g->is_cap && g->factor > g->least;
	return set_factor(g, MAX(factor, MIN(g->least, g->factor)));
}

/* Cost and interrupts are almost proportional to the rate: the next step is within the limits. */
static bool climb(struct governor *g, double pct)
{
	double times = pct > 0 ? MIN(AIM * g->max_pct / pct, CLIMB) : CLIMB;
	double limit = 1;

	/* The cost may fall later, interrupts will not. */
	if (g->interrupts > 0)
		limit = g->factor * GOVERNOR_INTERRUPTS_MAX / g->interrupts;
	g->ceiling = MIN(g->ceiling, MAX(limit, g->fast));
	if (times < CLIMB) {
		g->climbs = false;
		g->capped = g->is_cap;
	}
	if (g->factor * times >= g->ceiling)
		g->climbs = false;
	return times >= CLIMB_MIN && set_factor(g, g->factor * times);
}

static bool step(struct governor *g, uint64_t span_ns, double pct, double loss)
{
	g->why = GOVERNOR_COST;
	g->pct = pct;
	g->loss = loss;
	if (g->climbs)
		return climb(g, pct);
	g->fixed -= g->fixed > 0;
	if (pct > g->max_pct)
		return lasts(g, span_ns) && lower(g, pct);
	g->from = 0;
	g->over = 0;
	g->over_ns = 0;
	if (!g->is_cap && loss > GOVERNOR_LOSS_MAX) {
		g->why = GOVERNOR_LOST;
		return set_factor(g, g->factor * 0.7);
	}
	if (pct > CALM_BELOW * g->max_pct) {
		g->calm = 0;
		return false;
	}
	return ++g->calm >= CALM_STEPS && g->factor < g->ceiling &&
	       set_factor(g, g->factor * RAISE);
}

bool governor_tick(struct governor *g, uint64_t interval_ns, double cpu_pct, uint64_t taken,
		   uint64_t lost)
{
	uint64_t span_ns;
	double pct, loss;

	assert(g->factor > 0 && g->factor <= 1);
	if (!(g->max_pct > 0))
		return false;
	g->span_ns += interval_ns;
	g->cost_ns += cpu_pct * (double)interval_ns;
	g->taken += taken;
	g->lost += lost;
	if (g->span_ns < SPAN_NS)
		return false;
	pct = g->cost_ns / (double)g->span_ns;
	loss = g->taken ? (double)g->lost / (double)g->taken : 0;
	span_ns = g->span_ns;
	g->span_ns = g->taken = g->lost = 0;
	g->cost_ns = 0;
	return step(g, span_ns, pct, loss);
}

bool governor_stall(struct governor *g, uint64_t interval_ns, uint64_t tick_ns, double hz)
{
	assert(hz >= 0 && g->factor > 0);
	if (hz * g->factor <= GOVERNOR_STALL_HZ || interval_ns < LATE_TIMES * tick_ns ||
	    interval_ns < tick_ns + LATE_NS) {
		g->late = 0;
		return false;
	}
	if (++g->late < LATE_TICKS)
		return false;
	g->late = 0;
	g->climbs = false;
	g->ceiling = GOVERNOR_STALL_HZ / hz;
	return set_factor(g, g->factor);
}

bool governor_starve(struct governor *g, bool starved, double hz)
{
	double least = MIN(GOVERNOR_STARVED_HZ / hz, g->factor);

	assert(hz > 0 && g->factor > 0);
	if (starved) {
		g->fed = 0;
		/* The first tick starts with everything unread. */
		if (++g->starved < LATE_TICKS)
			return false;
		g->hungry |= g->factor > least;
		g->climbs = false;
		return set_factor(g, MAX(g->factor / 2, least));
	}
	g->starved = 0;
	if (!g->hungry || ++g->fed < CALM_STEPS)
		return false;
	g->fed = 0;
	/* Faster than after a cost that was too high: symbols are read once. */
	set_factor(g, g->factor * 2);
	g->hungry = g->factor < g->ceiling;
	return true;
}

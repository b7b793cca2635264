// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Machines of many CPUs, simulated: a whole session (sampler threads, tables, builder) on a kernel
 * made of arrays. Threads write the samples of a recording into the rings of N CPUs at a rate each;
 * the recorded processes must still run.
 *
 *	bench_cpus RECORDING HZ SECONDS N...
 *
 * The recording is made with -g fp, or with stack copies (ours follow it). Prints for each N:
 *samples a second written, handled and lost (the ring was full), CPU time of the sampler threads
 *for each sample, of the builder for each tick, and the memory of the process without the rings.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "sampler/event/event.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/profile/profile.h"

#define CPUS_MAX    1024
#define SAMPLES_MAX 4096
#define NR_WRITERS  4
#define STEP_NS	    10000000ULL
#define SECOND	    1000000000ULL
#define WARM_TICKS  4
#define ID_OF(fd)   (1000000ULL + (uint64_t)(fd))

/* A sample after its header and id: ip, pid and tid, time, CPU, ... (RECORD_SAMPLE_TYPE). */
enum { AT_ID = 8, AT_TIME = 32, AT_CPU = 40 };

struct simulated_cpu {
	struct perf_event_mmap_page *page; /* of the sample ring; the data follows */
	size_t size;
	uint64_t id; /* of the event with samples */
	uint64_t written, lost;
};

static struct {
	int nr_cpus;
	double hz;
	uint64_t sample_type;
	const struct perf_event_header *samples[SAMPLES_MAX];
	uint32_t nr_samples;
	struct simulated_cpu cpus[CPUS_MAX];
	/* By file descriptor. */
	int cpu_of[65536];
	bool sampling[65536];
	size_t rings; /* bytes */
	atomic_bool running, stop;
} sim;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* ---- the kernel ---- */

static int sim_open(void *ctx, struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0 || fd >= (int)ARRAY_SIZE(sim.cpu_of))
		return fd < 0 ? -errno : -EMFILE;
	sim.cpu_of[fd] = cpu;
	sim.sampling[fd] = attr->sample_period && attr->config != PERF_COUNT_SW_DUMMY;
	if (sim.sampling[fd] && cpu >= 0)
		sim.cpus[cpu].id = ID_OF(fd);
	return fd;
}

static int sim_ioctl(void *ctx, int fd, unsigned long request, uint64_t arg)
{
	if (request == PERF_EVENT_IOC_ID)
		*(uint64_t *)(uintptr_t)arg = ID_OF(fd);
	else if (request == PERF_EVENT_IOC_ENABLE && sim.sampling[fd])
		atomic_store(&sim.running, true);
	return 0;
}

static ssize_t sim_read(void *ctx, int fd, void *buf, size_t size)
{
	const struct simulated_cpu *c = &sim.cpus[sim.cpu_of[fd]];
	uint64_t now = now_ns(), v[5] = { c->written, now, now, ID_OF(fd), c->lost };

	memcpy(buf, v, MIN(size, sizeof(v)));
	return (ssize_t)MIN(size, sizeof(v));
}

/* The data ring of a CPU is opened after its side-band ring. */
static int sim_ring_open(void *ctx, struct ring *ring, int fd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct simulated_cpu *c = &sim.cpus[sim.cpu_of[fd]];

	if (map == MAP_FAILED)
		return -errno;
	ring_init(ring, map, (uint8_t *)map + page, size);
	ring->map_size = page + size;
	c->page = map;
	c->size = size;
	sim.rings += page + size;
	return 0;
}

static int sim_close(void *ctx, int fd)
{
	return close(fd);
}

static int sim_poll(void *ctx, struct pollfd *fds, nfds_t nr)
{
	return 0;
}

static int sim_list_tasks(void *ctx, const pid_t *tids, uint32_t nr, pid_t **out)
{
	return 0;
}

static const struct counters_sys sim_sys = {
	.perf_open = sim_open,
	.ioctl = sim_ioctl,
	.read = sim_read,
	.ring_open = sim_ring_open,
	.close = sim_close,
	.poll = sim_poll,
	.list_tasks = sim_list_tasks,
};

/* Linked in place of task_list_online_cpus() (Makefile). */
int __wrap_task_list_online_cpus(int **cpus, struct err *e);
int __wrap_task_list_online_cpus(int **cpus, struct err *e)
{
	*cpus = xcalloc((size_t)sim.nr_cpus, sizeof(**cpus));
	for (int i = 0; i < sim.nr_cpus; i++)
		(*cpus)[i] = i;
	return sim.nr_cpus;
}

/* ---- the samples ---- */

static void fail(const char *what)
{
	fprintf(stderr, "bench_cpus: %s\n", what);
	exit(1);
}

static void read_samples(const char *path)
{
	static uint8_t header[104];
	uint64_t at, end, attrs, type;
	uint8_t *data;
	FILE *f = fopen(path, "rb");

	if (!f || fread(header, 1, sizeof(header), f) != sizeof(header) ||
	    memcmp(header, "PERFILE2", 8))
		fail("not a perf.data file");
	memcpy(&attrs, header + 24, 8);
	memcpy(&at, header + 40, 8);
	memcpy(&end, header + 48, 8);
	data = malloc(end);
	if (!data || fseek(f, (long)attrs, SEEK_SET) || fread(data, 1, 64, f) != 64)
		fail("no attributes");
	memcpy(&type, data + 24, 8);
	sim.sample_type = type;
	if (fseek(f, (long)at, SEEK_SET))
		fail("no data");
	end = fread(data, 1, end, f);
	fclose(f);
	for (uint64_t i = 0; i + 8 <= end && sim.nr_samples < SAMPLES_MAX;) {
		const struct perf_event_header *h = (const void *)(data + i);

		if (h->size < 8)
			break;
		if (h->type == PERF_RECORD_SAMPLE && i + h->size <= end)
			sim.samples[sim.nr_samples++] = h;
		i += h->size;
	}
	if (!sim.nr_samples)
		fail("no samples (a recording of proftop --record, not compressed)");
}

static void copy_in(struct simulated_cpu *c, uint64_t at, const void *from, size_t size)
{
	uint8_t *data = (uint8_t *)c->page + sysconf(_SC_PAGESIZE);
	size_t first = MIN(size, c->size - (at & (c->size - 1)));

	memcpy(data + (at & (c->size - 1)), from, first);
	memcpy(data, (const uint8_t *)from + first, size - first);
}

/* Write one sample as the kernel does; a full ring loses it. */
static void put_sample(struct simulated_cpu *c, uint32_t cpu, uint32_t nr)
{
	_Atomic __u64 *head_of = (_Atomic __u64 *)&c->page->data_head;
	_Atomic __u64 *tail_of = (_Atomic __u64 *)&c->page->data_tail;
	const struct perf_event_header *h = sim.samples[nr % sim.nr_samples];
	uint64_t head = atomic_load_explicit(head_of, memory_order_relaxed), now = now_ns();
	uint64_t tail = atomic_load_explicit(tail_of, memory_order_acquire);
	uint32_t words[2] = { cpu, 0 };

	if (c->size - (head - tail) < h->size) {
		c->lost++;
		return;
	}
	copy_in(c, head, h, h->size);
	copy_in(c, head + AT_ID, &c->id, 8);
	copy_in(c, head + AT_TIME, &now, 8);
	copy_in(c, head + AT_CPU, words, 8);
	atomic_store_explicit(head_of, head + h->size, memory_order_release);
	c->written++;
}

/* Write for each CPU of this writer the samples that are due. */
static void *writer_main(void *arg)
{
	int first = (int)(intptr_t)arg;
	uint64_t begin = 0, due, nr = 0;
	struct timespec ts;

	while (!atomic_load(&sim.running) && !atomic_load(&sim.stop))
		usleep(1000);
	begin = now_ns();
	while (!atomic_load(&sim.stop)) {
		due = (uint64_t)((double)(now_ns() - begin) / 1e9 * sim.hz);
		for (int cpu = first; cpu < sim.nr_cpus; cpu += NR_WRITERS)
			for (uint64_t i = nr; i < due; i++)
				put_sample(&sim.cpus[cpu], (uint32_t)cpu,
					   (uint32_t)(i + (uint64_t)cpu * 7));
		nr = due;
		ts = (struct timespec){ 0, (long)STEP_NS };
		nanosleep(&ts, NULL);
	}
	return NULL;
}

/* ---- the measurement ---- */

struct totals {
	uint64_t ticks, taken, pending, lost, ns;
	double builder_ns, samplers_ns;
	uint64_t rss_kb;
};

static void add_tick(struct totals *s, const struct profile *p)
{
	s->ticks++;
	s->taken += p->account.taken + p->account.own;
	s->pending += p->account.pending;
	s->lost += p->account.lost;
	s->ns += p->interval_ns;
	s->builder_ns += p->self.builder_pct / 100 * (double)p->interval_ns;
	s->samplers_ns += p->self.samplers_pct / 100 * (double)p->interval_ns;
	s->rss_kb = p->self.rss_kb;
}

static void take_ticks(struct sampler *s, double seconds, struct totals *sums)
{
	struct pollfd fd = { .fd = sampler_fd(s), .events = POLLIN };
	uint32_t nr = 0;

	while (nr < WARM_TICKS || (double)sums->ns < seconds * 1e9) {
		struct profile *p;

		poll(&fd, 1, 1000);
		p = sampler_take(s);
		if (!p)
			continue;
		if (nr++ >= WARM_TICKS)
			add_tick(sums, p);
		profile_free(p);
	}
}

/* The rings count as memory where samples were written; they are the kernel's in life. */
static uint64_t rings_kb(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), resident = 0;
	unsigned char *in = malloc((64u << 20) / page);

	for (int i = 0; i < sim.nr_cpus && in; i++) {
		size_t nr = sim.cpus[i].size / page;

		if (!mincore((uint8_t *)sim.cpus[i].page + page, sim.cpus[i].size, in))
			for (size_t k = 0; k < nr; k++)
				resident += in[k] & 1;
	}
	free(in);
	return resident * page >> 10;
}

static void measure(int nr_cpus, double hz, double seconds)
{
	struct sampler_config config = { .target = TARGET_SYSTEM,
					 .nr_events = 1,
					 .hz = hz,
					 .tick_ns = SECOND,
					 .exact_ticks = true,
					 .window_ns = 5 * SECOND,
					 .sys = &sim_sys };
	bool copies = sim.sample_type & PERF_SAMPLE_STACK_USER;
	pthread_t writers[NR_WRITERS];
	struct totals sums = { 0 };
	struct err e = { "" };
	struct sampler *s;

	sim.nr_cpus = nr_cpus;
	sim.hz = hz;
	sim.rings = 0;
	memset(sim.cpus, 0, sizeof(sim.cpus));
	atomic_store(&sim.running, false);
	atomic_store(&sim.stop, false);
	config.call_graph = copies ? CALL_GRAPH_DWARF : CALL_GRAPH_FP;
	config.stack_size = copies ? 16384 : 0;
	if (event_parse(&config.events[0], "cpu-clock", &e) || sampler_new(&s, &config, &e) ||
	    sampler_start(s, &e))
		fail(e.text);
	for (intptr_t i = 0; i < NR_WRITERS; i++)
		pthread_create(&writers[i], NULL, writer_main, (void *)i);
	take_ticks(s, seconds, &sums);
	printf("%5d %9.0f %9.0f %7.0f %8.1f %9.2f %8.2f %8.1f %8.2f\n", nr_cpus, nr_cpus * hz,
	       (double)sums.taken * 1e9 / (double)sums.ns,
	       (double)sums.lost * 1e9 / (double)sums.ns,
	       100 * (double)sums.pending / (double)MAX(sums.taken, 1ULL),
	       sums.samplers_ns / 1e3 / (double)MAX(sums.taken, 1ULL),
	       sums.builder_ns / 1e6 / (double)sums.ticks,
	       (double)(sums.rss_kb - MIN(rings_kb(), sums.rss_kb)) / 1024,
	       (double)sim.rings / nr_cpus / (1 << 20));
	fflush(stdout);
	atomic_store(&sim.stop, true);
	for (int i = 0; i < NR_WRITERS; i++)
		pthread_join(writers[i], NULL);
	sampler_free(s);
}

int main(int argc, char **argv)
{
	struct rlimit files;

	if (argc < 5) {
		fputs("usage: bench_cpus RECORDING HZ SECONDS N...\n", stderr);
		return 2;
	}
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	read_samples(argv[1]);
	printf("%5s %9s %9s %7s %8s %9s %8s %8s %8s\n", "CPUs", "written/s", "handled/s", "lost/s",
	       "pending%", "us/sample", "tick ms", "MiB", "ring MiB");
	for (int i = 4; i < argc; i++)
		measure(MIN(MAX(atoi(argv[i]), 1), CPUS_MAX), atof(argv[2]), atof(argv[3]));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder: all input of lanes and of a fake /proc is in perfdata, every record once or counted
 * as lost; also when lanes are full, the disk is, or the recording is cut off.
 * Live: waits for threads or processes.
 */
#include "sampler/record/recorder.c"
#include "sampler/recording.c"

#include "tests/fake_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sampler/fake_kernel.h"

#include "sampler/event/internal.h"
#include "sampler/perfdata/internal.h"
#include "sampler/internal.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "unwind/unwind.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "sampler/ring/ring.h"

#define LANE_BYTES 65536

struct sample {
	struct perf_event_header h;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period, nr_chain, chain[4];
};

struct fixture {
	char dir[64], path[96], root[96];
	struct recorder *r;
};

static const struct record_layout layout = { .sample_type = RECORD_SAMPLE_TYPE, .id_all = true };

static void write_text(const char *dir, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/%s", name);
	fake_put(dir, path, text);
}

static void make_dir(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	strcpy(f.dir, "/tmp/test_recorder.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/out.data", f.dir);
	snprintf(f.root, sizeof(f.root), "%s", f.dir);
	make_dir(f.dir, "proc");
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	const struct fixture *f = *state;

	return fake_remove(f->dir);
}

static void fill_proc(const struct fixture *f)
{
	make_dir(f->root, "proc/42");
	make_dir(f->root, "proc/42/task");
	make_dir(f->root, "proc/42/task/42");
	make_dir(f->root, "proc/42/task/43");
	make_dir(f->root, "proc/self");
	write_text(f->root, "proc/42/task/42/comm", "first\n");
	write_text(f->root, "proc/42/task/43/comm", "a name longer than the kernel's\n");
	write_text(f->root, "proc/42/maps",
		   "1000-3000 r-xp 00002000 08:01 77                         /bin/a b\\012c\n"
		   "3000-4000 r--p 00004000 08:01 77                         /bin/a b\\012c\n"
		   "5000-6000 rw-p 00000000 00:00 0                          [heap]\n"
		   "7000-8000 r-xp 00000000 00:00 0 \n");
	write_text(f->root, "proc/kallsyms",
		   "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n"
		   "ffffffff81000000 T _text\nffffffff81400000 T _etext\n"
		   "ffffffffc0000000 t _etext\t[module]\n");
}

static void note_event(struct recorder *r, const char *name, double hz, const uint64_t *ids,
		       size_t nr)
{
	const struct attr_config config = { 0 };
	struct perf_event_attr attr;
	struct event ev;

	assert_int_equal(event_parse(&ev, name, NULL), 0);
	attr_sample(&attr, &config, &ev, hz);
	recorder_note(r, name, &attr, ids, nr);
}

static void note_side(struct recorder *r, uint64_t id)
{
	struct perf_event_attr attr;

	attr_side(&attr, &(struct attr_config){ .tasks = false }, 65536);
	recorder_note(r, "dummy:u", &attr, &id, 1);
}

static void t_start(struct fixture *f, uint32_t nr_cpus, size_t lane_size)
{
	const struct recorder_config config = {
		.path = f->path,
		.nr_cpus = nr_cpus,
		.lane_size = lane_size,
		.root = f->root,
		.round_ns = 1000000,
	};
	const uint64_t clock_ids[] = { 12, 11 }, fault_ids[] = { 21 };
	struct err e = { "" };

	assert_int_equal(recorder_open(&f->r, &config, &e), 0);
	note_event(f->r, "cpu-clock", 999, clock_ids, 2);
	note_event(f->r, "page-faults", 999, fault_ids, 1);
	note_side(f->r, 31);
	assert_int_equal(recorder_start(f->r, &e), 0);
}

static void put(struct recorder_lane *lane, const void *bytes)
{
	const struct perf_event_header *h = bytes;
	struct record r;

	assert_int_equal(record_decode(&r, &layout, h, h->size), 0);
	recorder_put(lane, h, &r);
}

/* Lengths differ, so that records wrap at all places of a lane. */
static void put_sample(struct recorder_lane *lane, uint64_t id, uint64_t ip, uint64_t time_ns)
{
	struct sample s = {
		.id = id,
		.ip = ip,
		.pid = 42,
		.tid = 43,
		.time_ns = time_ns,
		.cpu = 1,
		.period = 5,
		.nr_chain = ip % 5,
		.chain = { ip, ip, ip, ip },
	};

	s.h = (struct perf_event_header){ PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
					  (uint16_t)(sizeof(s) - 8 * (4 - s.nr_chain)) };
	put(lane, &s);
}

static void put_lost(struct recorder_lane *lane, uint64_t nr, uint64_t time_ns)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, lost;
		struct synth_id trailer;
	} l = { { PERF_RECORD_LOST, 0, sizeof(l) }, 11, nr, { 42, 43, time_ns, 0, 0, 11 } };

	put(lane, &l);
}

static void put_throttle(struct recorder_lane *lane, uint32_t type, uint64_t time_ns)
{
	const struct {
		struct perf_event_header h;
		uint64_t time_ns, id, stream;
		struct synth_id trailer;
	} t = { { type, 0, sizeof(t) }, time_ns, 11, 11, { 42, 43, time_ns, 0, 0, 11 } };

	put(lane, &t);
}

static void finish(struct fixture *f, uint64_t lost, struct recorder_stats *stats)
{
	assert_int_equal(recorder_finish(f->r, lost, stats), 0);
	recorder_close(f->r);
}

/* The content of a file, counted. */
struct counted {
	uint64_t samples, lost, lost_samples, throttles, comms, mmaps;
};

static struct counted count(struct perfdata *pd)
{
	struct counted c = { 0 };

	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *l;
		struct record r;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &l);

		assert_int_equal(record_decode(&r, l, bytes, size), 0);
		c.samples += r.type == PERF_RECORD_SAMPLE;
		c.lost += r.type == PERF_RECORD_LOST ? r.lost : 0;
		c.lost_samples += r.type == PERF_RECORD_LOST_SAMPLES ? r.lost : 0;
		c.throttles += r.type == PERF_RECORD_THROTTLE || r.type == PERF_RECORD_UNTHROTTLE;
		c.comms += r.type == PERF_RECORD_COMM;
		c.mmaps += r.type == PERF_RECORD_MMAP || r.type == PERF_RECORD_MMAP2;
	}
	assert_int_equal(perfdata_info(pd).found->nr_bad, 0);
	return c;
}

static struct perfdata *read_back(const struct fixture *f)
{
	struct perfdata *pd;
	struct err e = { "" };
	int code = perfdata_open_step(&pd, f->path, NULL, &e);

	if (code)
		fail_msg("%s", e.text);
	return pd;
}

TEST(test_round_trip, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	const uint64_t late[] = { 13 };
	struct perfdata *pd;
	struct counted c;
	struct stat st;

	t_start(f, 2, LANE_BYTES);
	put_sample(recorder_lane(f->r, 0), 11, 0x1000, 300);
	put_sample(recorder_lane(f->r, 1), 12, 0x2000, 200);
	put_throttle(recorder_lane(f->r, 0), PERF_RECORD_THROTTLE, 310);
	put_throttle(recorder_lane(f->r, 0), PERF_RECORD_UNTHROTTLE, 320);
	put_sample(recorder_lane(f->r, 1), 21, 0x3000, 400);
	note_event(f->r, "cpu-clock", 4000, late, 1); /* another rate: the same event */
	put_sample(recorder_lane(f->r, 1), 13, 0x4000, 500);
	finish(f, 0, &stats);
	assert_int_equal(stats.nr_samples, 4);
	assert_int_equal(stats.nr_dropped, 0);

	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	pd = read_back(f);
	assert_int_equal(perfdata_info(pd).nr_events, 3);
	assert_string_equal(perfdata_event(pd, 0)->event.name, "cpu-clock");
	assert_string_equal(perfdata_event(pd, 1)->event.name, "page-faults");
	assert_true(perfdata_event(pd, 2)->dummy);
	assert_int_equal(perfdata_event(pd, 0)->layout.sample_type, RECORD_SAMPLE_TYPE);
	assert_int_equal(perfdata_event(pd, 2)->layout.sample_type, ATTR_SIDE_TYPE);
	for (uint64_t id = 11; id <= 13; id++)
		assert_int_equal(perfdata_event_of(pd, id), 0);
	assert_int_equal(perfdata_event_of(pd, 21), 1);
	assert_int_equal(perfdata_event_of(pd, 31), 2);
	assert_int_equal(perfdata_event_of(pd, 99), -1);
	c = count(pd);
	assert_int_equal(c.samples, 4);
	assert_int_equal(c.throttles, 2);
	assert_int_equal(c.lost + c.lost_samples, 0);
	perfdata_close(pd);
}

/* Record number @nth of @type, counted from 0. */
static void find(struct perfdata *pd, uint32_t type, uint32_t nth, struct record *r)
{
	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *l;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &l);

		assert_int_equal(record_decode(r, l, bytes, size), 0);
		if (r->type == type && !nth--)
			return;
	}
	fail_msg("no record of type %u", type);
}

/* Mappings of data, which only other tools read back. */
static uint32_t nr_data_mappings(const struct fixture *f)
{
	struct {
		char magic[8];
		uint64_t size, attr_size, attrs[2], data[2];
	} header;
	struct {
		struct perf_event_header h;
		uint64_t fields[7];
		uint32_t prot, flags;
	} m;
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	uint32_t nr = 0;
	uint64_t at;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	for (at = header.data[0]; at < header.data[0] + header.data[1]; at += m.h.size) {
		assert_true(pread(fd, &m, sizeof(m), (off_t)at) >= (ssize_t)sizeof(m.h));
		nr += m.h.type == PERF_RECORD_MMAP2 && m.h.misc & PERF_RECORD_MISC_MMAP_DATA &&
		      m.prot == PROT_READ;
	}
	close(fd);
	return nr;
}

TEST(test_what_was_there, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct record r;

	fill_proc(f);
	t_start(f, 1, LANE_BYTES);
	finish(f, 0, &stats);
	pd = read_back(f);
	assert_int_equal(count(pd).comms, 2);
	assert_int_equal(count(pd).mmaps, 3); /* the kernel, code of an object, code of nothing */
	assert_int_equal(nr_data_mappings(f), 1);

	find(pd, PERF_RECORD_MMAP, 0, &r);
	assert_int_equal(r.mmap.pid, UINT32_MAX);
	assert_int_equal(r.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(r.mmap.start, 0xffffffff81000000);
	assert_int_equal(r.mmap.size, 0x400000);
	assert_int_equal(r.mmap.pgoff, 0xffffffff81000000);
	assert_string_equal(r.mmap.filename, "[kernel.kallsyms]_text");

	find(pd, PERF_RECORD_MMAP2, 0, &r);
	assert_int_equal(r.time_ns, 0);
	assert_int_equal(r.mmap.pid, 42);
	assert_int_equal(r.mmap.start, 0x1000);
	assert_int_equal(r.mmap.size, 0x2000);
	assert_int_equal(r.mmap.pgoff, 0x2000);
	assert_int_equal(r.mmap.identity.maj, 8);
	assert_int_equal(r.mmap.identity.min, 1);
	assert_int_equal(r.mmap.identity.ino, 77);
	assert_int_equal(r.mmap.prot, PROT_READ | PROT_EXEC);
	assert_string_equal(r.mmap.filename, "/bin/a b\nc");
	find(pd, PERF_RECORD_MMAP2, 1, &r);
	assert_string_equal(r.mmap.filename, "//anon");

	for (uint32_t i = 0; i < 2; i++) {
		find(pd, PERF_RECORD_COMM, i, &r);
		assert_int_equal(r.comm.pid, 42);
		assert_string_equal(r.comm.comm, r.comm.tid == 42 ? "first" : "a name longer t");
		assert_false(r.comm.exec);
	}
	perfdata_close(pd);
}

/* Text that the program has moved to other memory is its file's, if that is on both sides. */
TEST(test_text_was_moved, setup, teardown)
{
	static const struct {
		uint64_t start, pgoff;
		const char *name;
	} want[] = {
		{ 0x1000, 0x1000, "/bin/a" },
		{ 0x2000, 0x2000, "/bin/a" },
		{ 0x3000, 0x3000, "/bin/a" },
		{ 0x6000, 0x1000, "/bin/b" },
		{ 0x7000, 0, "//anon" },
		{ 0x9000, 0x1000, "/bin/b" },
		{ 0xa000, 0, "/memfd:c (deleted)" },
	};
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct record r;

	fill_proc(f);
	write_text(f->root, "proc/42/maps",
		   "1000-2000 r-xp 00001000 08:01 77 /bin/a\n"
		   "2000-3000 r-xp 00000000 00:00 0 \n"
		   "3000-4000 r-xp 00000000 00:01 9 /memfd:text (deleted)\n"
		   "4000-5000 r--p 00004000 08:01 77 /bin/a\n"
		   "6000-7000 r-xp 00001000 08:01 78 /bin/b\n"
		   "7000-8000 r-xp 00000000 00:00 0 \n" /* another part of b goes on */
		   "8000-9000 r--p 00001000 08:01 78 /bin/b\n"
		   "9000-a000 r-xp 00001000 08:01 78 /bin/b\n"
		   "a000-b000 r-xp 00000000 00:01 9 /memfd:c (deleted)\n");
	t_start(f, 1, LANE_BYTES);
	finish(f, 0, &stats);
	pd = read_back(f);
	assert_int_equal(count(pd).mmaps, 1 + ARRAY_SIZE(want));
	for (uint32_t i = 0; i < ARRAY_SIZE(want); i++) {
		find(pd, PERF_RECORD_MMAP2, i, &r);
		assert_int_equal(r.mmap.start, want[i].start);
		assert_int_equal(r.mmap.pgoff, want[i].pgoff);
		assert_string_equal(r.mmap.filename, want[i].name);
		assert_int_equal(r.mmap.prot, PROT_READ | PROT_EXEC);
	}
	perfdata_close(pd);
}

/* A task that is followed later: its mappings at that time. */
TEST(test_task_added, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct record r;

	t_start(f, 1, LANE_BYTES);
	fill_proc(f);
	write_text(f->root, "proc/42/status", "Name:\tfirst\nTgid:\t42\nPid:\t42\n");
	make_dir(f->root, "proc/43");
	write_text(f->root, "proc/43/status", "Name:\tsecond\nTgid:\t42\nPid:\t43\n");
	recorder_add_task(f->r, 42, 700);
	recorder_add_task(f->r, 43, 800);
	recorder_add_task(f->r, 4711, 900); /* gone */
	finish(f, 0, &stats);
	pd = read_back(f);
	assert_int_equal(count(pd).comms, 3);
	assert_int_equal(count(pd).mmaps, 2);
	assert_int_equal(nr_data_mappings(f), 1);
	find(pd, PERF_RECORD_MMAP2, 0, &r);
	assert_int_equal(r.time_ns, 700);
	find(pd, PERF_RECORD_COMM, 2, &r);
	assert_int_equal(r.time_ns, 800);
	assert_int_equal(r.comm.pid, 42);
	assert_int_equal(r.comm.tid, 43);
	perfdata_close(pd);
}

/* Mappings that hang are missing, which is reported; the others are there. */
TEST(test_maps_hang, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;
	char path[128];
	int fd;

	fill_proc(f);
	make_dir(f->root, "proc/41");
	write_text(f->root, "proc/41/status", "Name:\tx\nTgid:\t41\nUid:\t7\t7\t7\t7\n");
	snprintf(path, sizeof(path), "%s/proc/41/maps", f->root);
	assert_int_equal(mkfifo(path, 0600), 0);
	t_start(f, 1, LANE_BYTES);
	fd = open(path, O_WRONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	close(fd);
	finish(f, 0, &stats);
	assert_int_equal(stats.nr_unmapped, 1);
	pd = read_back(f);
	assert_int_equal(count(pd).mmaps, 1 + 2);
	perfdata_close(pd);
}

/* A write that hangs has the lock of the file; the builder that adds a task goes on. */
TEST(test_task_added_meanwhile, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;

	t_start(f, 1, LANE_BYTES);
	fill_proc(f);
	write_text(f->root, "proc/42/status", "Name:\tfirst\nTgid:\t42\nPid:\t42\n");
	pthread_mutex_lock(&f->r->file_lock);
	alarm(60);
	recorder_add_task(f->r, 42, 700);
	alarm(0);
	pthread_mutex_unlock(&f->r->file_lock);
	finish(f, 0, &stats);
	assert_int_equal(stats.nr_dropped, 0);
	pd = read_back(f);
	assert_int_equal(count(pd).mmaps, 2);
	perfdata_close(pd);
}

/* Nothing hidden, nothing counted twice: in the file or lost, and the file says how many. */
TEST(test_full_lane, setup, teardown)
{
	struct fixture *f = *state;
	const uint64_t nr = 20000;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct counted c;

	t_start(f, 1, 4096);
	for (uint64_t i = 0; i < nr; i++)
		put_sample(recorder_lane(f->r, 0), 11, i, 1000 + i);
	finish(f, 0, &stats);
	pd = read_back(f);
	c = count(pd);
	assert_true(stats.nr_dropped > 0);
	assert_int_equal(c.samples, stats.nr_samples);
	assert_int_equal(c.lost, stats.nr_dropped);
	assert_int_equal(c.samples + c.lost, nr);
	assert_int_equal(c.lost_samples, c.lost);
	perfdata_close(pd);
}

/* The kernel's total is more than the sum of its records: the total is reported at the end. */
TEST(test_lost_by_kernel, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct counted c;

	t_start(f, 1, LANE_BYTES);
	put_lost(recorder_lane(f->r, 0), 7, 100);
	put_lost(recorder_lane(f->r, 1), 1000, 100); /* side-band: no samples */
	finish(f, 10, &stats);
	assert_int_equal(stats.nr_kernel_lost, 7);
	pd = read_back(f);
	c = count(pd);
	assert_int_equal(c.lost, 1007);
	assert_int_equal(c.lost_samples, 10); /* the sum, as perf has it */
	perfdata_close(pd);
}

struct producer {
	struct recorder_lane *lane;
	uint64_t id, nr;
};

static void *produce(void *arg)
{
	const struct producer *p = arg;

	for (uint64_t i = 0; i < p->nr; i++)
		put_sample(p->lane, p->id, i, i);
	return NULL;
}

/* Two producers as fast as they can, against the writer: order and bytes are kept. */
TEST(test_producers, setup, teardown)
{
	struct fixture *f = *state;
	struct producer p[2];
	pthread_t threads[2];
	struct recorder_stats stats;
	uint64_t next[2] = { 0 }, missing = 0;
	struct perfdata *pd;

	t_start(f, 2, LANE_BYTES);
	for (int i = 0; i < 2; i++) {
		p[i] = (struct producer){ recorder_lane(f->r, (uint32_t)i), (uint64_t)(11 + i),
					  100000 };
		assert_int_equal(pthread_create(&threads[i], NULL, produce, &p[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	finish(f, 0, &stats);
	pd = read_back(f);
	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *l;
		struct record r;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &l);

		assert_int_equal(record_decode(&r, l, bytes, size), 0);
		if (r.type != PERF_RECORD_SAMPLE)
			continue;
		assert_in_range(r.id, 11, 12);
		/* Sorted by time, and stable: each lane's records in their order. */
		assert_true(r.sample.ip >= next[r.id - 11]);
		assert_int_equal(r.sample.nr_chain, r.sample.ip % 5);
		missing += r.sample.ip - next[r.id - 11];
		next[r.id - 11] = r.sample.ip + 1;
	}
	missing += 2 * 100000 - next[0] - next[1];
	assert_int_equal(missing, stats.nr_dropped);
	assert_int_equal(count(pd).lost, stats.nr_dropped);
	perfdata_close(pd);
}

static bool has_samples(struct perfdata *pd, uint64_t nr)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *l;
		struct record r;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &l);

		found += !record_decode(&r, l, bytes, size) && r.type == PERF_RECORD_SAMPLE;
	}
	return found >= nr;
}

/*
 * Copy the file of a running recording to @to until it has @nr samples: on a busy machine the
 * writer may be late, but it does not wait for the end.
 */
static void copy_running(const struct fixture *f, const struct fixture *to, uint64_t nr)
{
	uint64_t end_ns = time_now_ns() + 20000000000ULL;
	char command[400];
	bool found = false;

	snprintf(command, sizeof(command), "cp %s %s", f->path, to->path);
	while (!found && time_now_ns() < end_ns) {
		struct perfdata *pd;

		usleep(20000);
		assert_int_equal(system(command), 0);
		/* It may end within a record. */
		if (perfdata_open_step(&pd, to->path, NULL, NULL))
			continue;
		found = has_samples(pd, nr);
		perfdata_close(pd);
	}
	if (!found)
		fail_msg("no %lu samples in a copy within 20 s", nr);
}

/* Killed while it ran: no end was written, and the samples up to then are in the file. */
TEST(test_cut_off, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct fixture cut = *f;
	struct perfdata *pd;

	t_start(f, 1, LANE_BYTES);
	for (uint64_t i = 0; i < 100; i++)
		put_sample(recorder_lane(f->r, 0), 11, i, i + 1);
	snprintf(cut.path, sizeof(cut.path), "%s/cut.data", f->dir);
	copy_running(f, &cut, 100);
	finish(f, 0, &stats);
	pd = read_back(&cut);
	assert_int_equal(count(pd).samples, 100);
	assert_int_equal(perfdata_info(pd).nr_events, 3);
	perfdata_close(pd);
	/* Also in the middle of a record. */
	assert_int_equal(truncate(cut.path, 4000), 0);
	assert_int_equal(perfdata_open_step(&pd, cut.path, NULL, NULL), 0);
	assert_true(perfdata_info(pd).nr_records > 10);
	assert_true(perfdata_info(pd).found->nr_bad > 0);
	perfdata_close(pd);
}

/* The file may not grow: reported, and the part before is a whole file. */
TEST(test_disk_full, setup, teardown)
{
	struct fixture *f = *state;
	struct rlimit old, low;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct counted c;
	int tries = 0;

	t_start(f, 1, LANE_BYTES);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	low = (struct rlimit){ 100000, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	for (uint64_t i = 0; !recorder_error(f->r) && tries < 500; i++) {
		put_sample(recorder_lane(f->r, 0), 11, i, i + 1);
		if (i % 500 == 499) {
			usleep(10000);
			tries++;
		}
	}
	assert_int_equal(recorder_error(f->r), -EFBIG);
	assert_int_equal(recorder_finish(f->r, 0, &stats), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	recorder_close(f->r);
	pd = read_back(f);
	c = count(pd);
	assert_true(c.samples > 0);
	assert_true(c.samples < stats.nr_samples);
	perfdata_close(pd);
}

/* Never write through a link, into a device, or over a file that is no recording. */
TEST(test_names_refused, setup, teardown)
{
	struct fixture *f = *state;
	const struct recorder_config config = { .path = f->path, .nr_cpus = 1, .root = f->root };
	char target[128], text[8] = "";
	struct stat st;
	struct err e = { "" };
	FILE *file;

	snprintf(target, sizeof(target), "%s/target", f->dir);
	write_text(f->dir, "target", "mine");
	assert_int_equal(symlink(target, f->path), 0);
	assert_int_equal(recorder_open(&f->r, &config, &e), -EEXIST);
	assert_non_null(strstr(e.text, "not a regular file"));
	file = fopen(target, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "mine");
	assert_int_equal(unlink(f->path), 0);

	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(recorder_open(&f->r, &config, &e), -EEXIST);
	assert_int_equal(stat(f->path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(unlink(f->path), 0);

	snprintf(f->path, sizeof(f->path), "%s/none/out.data", f->dir);
	assert_int_equal(recorder_open(&f->r, &config, &e), -ENOENT);
	snprintf(f->path, sizeof(f->path), "%s", f->dir);
	assert_int_equal(recorder_open(&f->r, &config, &e), -EEXIST);
}

/* Expect the file @name of the fixture to begin with @text. */
static void expect_text(const struct fixture *f, const char *name, const char *text)
{
	char path[128], got[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(got, sizeof(got), file));
	fclose(file);
	assert_string_equal(got, text);
}

TEST(test_old_is_kept, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_stats stats;

	write_text(f->dir, "out.data", "PERFILE2older");
	t_start(f, 1, LANE_BYTES);
	finish(f, 0, &stats);
	expect_text(f, "out.data.old", "PERFILE2older");
	perfdata_close(read_back(f));
}

/* A file that is no recording is neither moved nor replaced by an older recording. */
TEST(test_others_are_kept, setup, teardown)
{
	struct fixture *f = *state;
	const struct recorder_config config = { .path = f->path, .nr_cpus = 1, .root = f->root };
	struct recorder_stats stats;
	struct err e = { "" };

	write_text(f->dir, "out.data", "thesis");
	assert_int_equal(recorder_open(&f->r, &config, &e), -EEXIST);
	assert_non_null(strstr(e.text, "out.data exists and is not a recording"));
	expect_text(f, "out.data", "thesis");
	write_text(f->dir, "out.data", "PERFILE2older");
	write_text(f->dir, "out.data.old", "thesis");
	assert_int_equal(recorder_open(&f->r, &config, &e), -EEXIST);
	assert_non_null(strstr(e.text, "out.data.old exists and is not a recording"));
	expect_text(f, "out.data", "PERFILE2older");
	expect_text(f, "out.data.old", "thesis");
	write_text(f->dir, "out.data", "");
	t_start(f, 1, LANE_BYTES);
	finish(f, 0, &stats);
	expect_text(f, "out.data.old", "thesis");
	perfdata_close(read_back(f));
}

/* FINISHED_ROUND records in the file so far. */
static unsigned int count_rounds(const struct fixture *f)
{
	struct perfdata_header file;
	struct perf_event_header h;
	unsigned int nr = 0;
	int fd = open(f->path, O_RDONLY);
	uint64_t at;

	assert_int_equal(pread(fd, &file, sizeof(file), 0), sizeof(file));
	for (at = file.data.offset; pread(fd, &h, sizeof(h), (off_t)at) == sizeof(h) && h.size;
	     at += h.size) {
		if (file.data.size && at >= file.data.offset + file.data.size)
			break;
		nr += h.type == PERFDATA_FINISHED_ROUND;
	}
	close(fd);
	return nr;
}

static uint64_t wait_written(const struct fixture *f, unsigned int rounds)
{
	const struct timespec nap = { .tv_nsec = 5000000 };

	for (int i = 0; i < 4000 && count_rounds(f) < rounds; i++)
		nanosleep(&nap, NULL);
	assert_true(count_rounds(f) >= rounds);
	return time_now_ns();
}

/* A round ends when each lane has all records up to the end of the one before. */
TEST(test_rounds, setup, teardown)
{
	struct fixture *f = *state;
	const struct timespec nap = { .tv_nsec = 100000000 };
	struct recorder_stats stats;
	uint64_t now_ns;

	t_start(f, 2, LANE_BYTES);
	put_sample(recorder_lane(f->r, 0), 11, 0x1000, 300);
	now_ns = time_now_ns() + 1000000000;
	recorder_drained(recorder_lane(f->r, 0), now_ns);
	recorder_drained(recorder_lane(f->r, 2), now_ns);
	nanosleep(&nap, NULL);
	assert_int_equal(count_rounds(f), 0);
	recorder_drained(recorder_lane(f->r, 1), time_now_ns());
	now_ns = wait_written(f, 1);
	/* Lane 1 has reported nothing since. */
	nanosleep(&nap, NULL);
	assert_int_equal(count_rounds(f), 1);
	recorder_drained(recorder_lane(f->r, 1), now_ns);
	wait_written(f, 2);
	finish(f, 0, &stats);
	assert_int_equal(stats.nr_samples, 1);
	assert_int_equal(count_rounds(f), 2);
	perfdata_close(read_back(f));
}

/* Objects in the header are found for their mappings; a name of two files is not. */
TEST(test_build_ids, setup, teardown)
{
	static const uint8_t one[20] = "one id of 20 bytes.", two[8] = "another";
	struct fixture *f = *state;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct record r;

	fill_proc(f);
	t_start(f, 1, LANE_BYTES);
	recorder_build_id(f->r, true, "[kernel.kallsyms]", two, sizeof(two));
	recorder_build_id(f->r, false, "/bin/a b\nc", one, sizeof(one));
	recorder_build_id(f->r, false, "//anon", one, sizeof(one));
	recorder_build_id(f->r, false, "//anon", two, sizeof(two));
	finish(f, 0, &stats);
	pd = read_back(f);
	assert_int_equal(perfdata_info(pd).kernel->build_id_size, sizeof(two));
	assert_memory_equal(perfdata_info(pd).kernel->build_id, two, sizeof(two));
	find(pd, PERF_RECORD_MMAP2, 0, &r);
	perfdata_identify(pd, &r.mmap);
	assert_int_equal(r.mmap.identity.build_id_size, sizeof(one));
	assert_memory_equal(r.mmap.identity.build_id, one, sizeof(one));
	find(pd, PERF_RECORD_MMAP2, 1, &r);
	perfdata_identify(pd, &r.mmap);
	assert_int_equal(r.mmap.identity.build_id_size, 0);
	perfdata_close(pd);
}

#define IDS 800000U

/* Ids of an event in any order and more than once, as a file may have them: each once, and in time.
 */
TEST(test_ids)
{
	const struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE };
	uint64_t *ids = xcalloc(IDS, sizeof(*ids)), begin_ns;
	struct perfdata_attrs attrs = { .nr = 0 };

	for (uint64_t i = 0; i < IDS; i++)
		ids[i] = IDS - i / 2;
	begin_ns = time_thread_ns();
	perfdata_attrs_add(&attrs, "cpu-clock", &attr, ids, IDS);
	perfdata_attrs_add(&attrs, "cpu-clock", &attr, (const uint64_t[]){ 7, IDS, IDS, 9 }, 4);
	perfdata_attrs_add(&attrs, "cpu-clock", &attr, (const uint64_t[]){ IDS + 1, IDS + 2 }, 2);
	assert_true(time_thread_ns() - begin_ns < 2000000000);
	assert_int_equal(attrs.nr, 1);
	assert_int_equal(attrs.events[0].nr_ids, IDS / 2 + 4);
	for (size_t i = 1; i < attrs.events[0].nr_ids; i++)
		assert_true(attrs.events[0].ids[i - 1] < attrs.events[0].ids[i]);
	perfdata_attrs_fini(&attrs);
	free(ids);
}

/* The folder of the file: the user may not remove it any more. */
static const char *taken;

static void take_folder(int sig)
{
	chmod(taken, 0755);
}

/* In a child behind sudo: write more than a file may have. */
static void fail_to_save(const struct fixture *f)
{
	static const uint8_t record[65528] = { 0 };
	const struct iovec piece = { (void *)(uintptr_t)record, sizeof(record) };
	const struct perfdata_attrs attrs = { .nr = 0 };
	struct rlimit low = { 20000, 20000 };
	struct slow_reads *reads = slow_reads_new(synth_read_file, 500000000);
	struct blackbox *box;
	struct err e = { "" };
	uint64_t bytes;

	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	invoker_init();
	taken = f->dir;
	signal(SIGXFSZ, take_folder);
	assert_int_equal(chmod(f->dir, 0777), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_int_equal(blackbox_new(&box, 1 << 20), 0);
	assert_int_equal(blackbox_add(box, false, &piece, 1), 0);
	assert_int_equal(blackbox_write(box, f->path, f->root, reads, NULL, &attrs, &bytes, &e),
			 -EFBIG);
	blackbox_free(box);
	slow_reads_free(reads);
}

/* A file that could not be saved is removed with the rights of the invoking user. */
TEST(test_failed_save, setup, teardown)
{
	const struct fixture *f = *state;
	struct stat st;
	pid_t child;
	int status;

	if (geteuid())
		skip();
	child = fork();
	if (!child) {
		fail_to_save(f);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_uid, 65534);
}

/* Save the memory to a new file, which is removed; @text gets the message. */
static void save(struct fixture *f, char text[static 256])
{
	struct saving saving = { 0 };
	char *path = strdup(f->path);

	assert_non_null(path);
	/* By then the writer has taken all records. */
	assert_int_equal(recorder_save(f->r, path, time_now_ns() + 300000000), 0);
	while (!saving_check(&saving, f->r, text, 256))
		usleep(1000);
	assert_int_equal(saving.nr, 1);
	unlink(f->path);
}

/* Records that do not fit into the memory are reported, with one file. */
TEST(test_unsaved, setup, teardown)
{
	struct fixture *f = *state;
	const struct recorder_config config = {
		.nr_cpus = 1, .lane_size = 1 << 20, .root = f->root, .memory = 4096
	};
	const uint64_t ids[] = { 11 };
	char text[256];

	assert_int_equal(recorder_open(&f->r, &config, NULL), 0);
	note_event(f->r, "cpu-clock", 999, ids, 1);
	assert_int_equal(recorder_start(f->r, NULL), 0);
	for (uint64_t i = 0; i < 5000; i++)
		put_sample(recorder_lane(f->r, 0), 11, i, 1000 + i);
	save(f, text);
	assert_non_null(strstr(text, " KiB of earlier records dropped: no memory"));
	save(f, text);
	assert_null(strstr(text, "dropped"));
	recorder_close(f->r);
}

static void open_with_memory(struct fixture *f)
{
	const struct recorder_config config = {
		.nr_cpus = 1, .lane_size = 1 << 20, .root = f->root, .memory = 1 << 20
	};
	const uint64_t ids[] = { 11 };

	assert_int_equal(recorder_open(&f->r, &config, NULL), 0);
	note_event(f->r, "cpu-clock", 999, ids, 1);
	assert_int_equal(recorder_start(f->r, NULL), 0);
	put_sample(recorder_lane(f->r, 0), 11, 0x1000, 300);
}

/* The size of the records in the header: 0 in a file that was not completed, which perf refuses. */
static uint64_t data_size(const struct fixture *f)
{
	struct perfdata_header h = { 0 };
	int fd = open(f->path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, &h, sizeof(h)), sizeof(h));
	close(fd);
	return h.data.size;
}

/* The file beside the memory is complete, however soon it is ended: by the builder, by the end. */
TEST(test_also_ended_soon, setup, teardown)
{
	struct fixture *f = *state;
	struct recorder_saved saved;
	struct recorder_stats stats;
	struct perfdata *pd;
	struct err e;

	for (int by_builder = 0; by_builder < 2; by_builder++) {
		open_with_memory(f);
		assert_int_equal(recorder_also(f->r, f->path), 0);
		if (by_builder) {
			assert_int_equal(recorder_also(f->r, NULL), 0);
			while (!recorder_also_ended(f->r, &saved, &e))
				usleep(1000);
			assert_string_equal(e.text, "");
		}
		finish(f, 0, &stats);
		assert_true(data_size(f));
		pd = read_back(f);
		assert_int_equal(count(pd).samples, 1);
		perfdata_close(pd);
		unlink(f->path);
	}
}

/* Events that were opened since the last tick are in the file as well. */
TEST(test_event_of_the_end, setup, teardown)
{
	struct event events[] = { parse("cpu-clock"), parse("page-faults") };
	struct counters_config config = system_config(events, 1);
	struct sampler_recorded recorded;
	struct fixture *f = *state;
	struct fake *kernel = fake_new();
	struct counters *c = open_fake(kernel, &config);
	struct recording recording = { .path = f->path };
	struct fake_fd *fds[MAX_FDS];
	struct perfdata *pd;
	struct err e;

	t_start(f, 2, LANE_BYTES);
	recording.recorder = f->r;
	recording_note(&recording, c);
	assert_int_equal(counters_set_events(c, events, 2, 999, NULL), 0);
	assert_int_equal(find_open(kernel, &events[1], fds), 2);
	assert_int_equal(complete(&recording, c, 2, &recorded, &e), 0);
	recorder_close(f->r);
	pd = read_back(f);
	for (int i = 0; i < 2; i++) {
		uint64_t id = (uint64_t)(fds[i] - kernel->fds + FIRST_FD) * 10;

		assert_true(perfdata_event_of(pd, id) >= 0);
	}
	perfdata_close(pd);
	counters_close(c);
	free(kernel);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

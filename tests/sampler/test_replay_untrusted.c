// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recordings with fields and events that proftop does not record itself: every
 * sample of the file is in the account.
 * Live: waits for threads or processes.
 */
#include "sampler/replay.c"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE (1 << 16)
#include "tests/makers/perfdata.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/image/image.h"
#include "symbols/script/script.h"
#include "symbols/process/process.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/hot/hot.h"

static struct file file;

/* Open the file. The caller frees the result. */
static struct sampler *opened(const char *symfs)
{
	struct sampler_config config = { .tick_ns = 1000000000,
					 .window_ns = 5000000000,
					 .symfs = symfs };
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct sampler *s;
	struct err e = { "" };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, file.bytes, file.size), file.size);
	config.replay = path;
	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	close(fd);
	return s;
}

/* The same, and replay it. */
static struct sampler *replayed(const char *symfs, struct replay_result *result)
{
	struct sampler *s = opened(symfs);

	assert_int_equal(replay_run(s->replay, &s->store, result), 0);
	return s;
}

/* Replay @file and return its account; @banner gets the banner. */
static struct pipeline_stats replay(char *banner, size_t size)
{
	struct pipeline_stats stats = { 0 };
	struct replay_result result;
	struct sampler *s = replayed(NULL, &result);

	for (uint32_t i = 0; i < result.nr_cpus; i++)
		pipeline_add_stats(&stats, &result.cpus[i].samples);
	snprintf(banner, size, "%s", s->banner);
	sampler_free(s);
	return stats;
}

/* A sample with @nr branches. */
static void put_branches(uint64_t nr, uint64_t time)
{
	const uint32_t ids[2] = { 100, 100 };

	put_header(&file, PERF_RECORD_SAMPLE, (uint16_t)(8 + 5 * 8 + 16 + 24 * nr));
	put_u64(&file, 7);
	put_u64(&file, 0x1000);
	put(&file, ids, sizeof(ids));
	put_u64(&file, time);
	put_u64(&file, 1);
	put_u64(&file, nr);
	put_u64(&file, 0); /* hw_idx */
	for (uint64_t i = 0; i < 3 * nr; i++)
		put_u64(&file, 0x2000);
}

TEST(test_branch_stacks)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats;
	char banner[256];

	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX;
	put_pipe(&file, &attr);
	for (uint64_t i = 0; i < 32; i++)
		put_branches(i, i);
	stats = replay(banner, sizeof(banner));
	assert_int_equal(stats.taken, 32);
	assert_int_equal(stats.by_event[0], 32);
	assert_int_equal(stats.dropped[DROP_BAD_RECORD], 0);
	assert_string_equal(banner, "");
}

static int pass(void *ctx, const struct sampler_sample *s)
{
	return 0;
}

/* Read the samples of @file one by one; check the account of missing ones. */
static void check_missing(uint64_t nr_dropped, uint64_t nr_lost, const char *note)
{
	struct sampler *s = opened(NULL);
	struct sampler_missing m;

	assert_int_equal(sampler_each(s, pass, NULL, NULL), 0);
	sampler_missing(s, &m);
	assert_int_equal(m.nr_dropped, nr_dropped);
	assert_int_equal(m.nr_lost, nr_lost);
	assert_non_null(strstr(m.note, note));
	sampler_free(s);
}

/* A sample is dropped by name when its fields do not fit; the banner names a file cut short. */
TEST(test_bad_samples)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats;
	char banner[256];

	put_pipe(&file, &attr);
	put_sample(&file, 7, 0x1000, 100, 1);
	put_header(&file, PERF_RECORD_SAMPLE, 40);
	for (int i = 0; i < 4; i++)
		put_u64(&file, 7);
	put_header(&file, PERF_RECORD_LOST_SAMPLES, 8 + 8 + 3 * 8);
	put_u64(&file, 4711);
	for (int i = 0; i < 3; i++)
		put_u64(&file, 7); /* id block */
	put_sample(&file, 7, 0x1000, 100, 2);
	file.size--;
	stats = replay(banner, sizeof(banner));
	assert_int_equal(stats.taken, 2);
	assert_int_equal(stats.dropped[DROP_BAD_RECORD], 1);
	assert_non_null(strstr(banner, "cut short"));
	check_missing(1, 4711, "cut short");
}

/* Sums of perf record --off-cpu have no time: they are of the end, and lengthen nothing. */
TEST(test_off_cpu)
{
	const uint64_t second = 1000000000;
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats = { 0 };
	struct replay_result result;
	struct sampler *s;

	put_pipe(&file, &attr);
	put_sample(&file, 7, 0x1000, 100, second);
	put_sample(&file, 7, 0x1000, 100, 2 * second);
	put_comm(&file, 7, 100, "x", 3 * second);
	for (uint64_t i = 0; i < 10; i++)
		put_sample(&file, 7, 0x1000, 100, (~0ULL << 32) + i);
	s = replayed(NULL, &result);
	for (uint32_t i = 0; i < result.nr_cpus; i++)
		pipeline_add_stats(&stats, &result.cpus[i].samples);
	assert_int_equal(stats.taken, 12);
	assert_int_equal(result.span_ns, 2 * second);
	assert_int_equal(result.interval_ns, 2 * second);
	sampler_free(s);
}

/* The event of put_read(). */
static struct perf_event_attr read_attr(void)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);

	attr.sample_type |= PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	return attr;
}

/* A sample with the count of an event of that id in one task. */
static void put_read(uint64_t id, uint32_t tid, uint64_t count)
{
	const uint32_t ids[2] = { 100, tid };

	put_header(&file, PERF_RECORD_SAMPLE, 8 + 5 * 8 + 3 * 8);
	put_u64(&file, id);
	put_u64(&file, 0x1000);
	put(&file, ids, sizeof(ids));
	put_u64(&file, 1000);
	put_u64(&file, 1);
	put_u64(&file, 1); /* events of the group */
	put_u64(&file, count);
	put_u64(&file, id);
}

/* Periods of samples, one after another. */
struct periods {
	uint64_t of[64];
	size_t nr;
};

static int add_period(void *ctx, const struct sampler_sample *s)
{
	struct periods *p = ctx;

	assert_true(p->nr < ARRAY_SIZE(p->of));
	p->of[p->nr++] = s->period;
	return 0;
}

static struct periods periods_of_file(void)
{
	struct periods p = { .nr = 0 };
	struct sampler *s = opened(NULL);

	assert_int_equal(sampler_each(s, add_period, &p, NULL), 0);
	sampler_free(s);
	return p;
}

/* Each id has a last count, however many are in no list of the file. */
TEST(test_unlisted_ids)
{
	const struct perf_event_attr attr = read_attr();
	struct periods p;

	put_pipe(&file, &attr);
	for (uint64_t i = 0; i < 64; i++)
		put_read(20 + i % 32, 100, 1000 + i);
	p = periods_of_file();
	assert_int_equal(p.nr, 64);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(p.of[i], i < 32 ? 1000 + i : 32);
}

/* An event that tasks inherit has separate counts for each task. */
TEST(test_counts_of_tasks)
{
	static const struct {
		uint32_t tid;
		uint64_t count, of_task, of_all;
	} samples[] = {
		{ 100, 1000, 1000, 1000 }, { 101, 1100, 1100, 100 }, { 100, 1300, 300, 200 },
		{ 101, 1700, 600, 400 },   { 102, 1900, 1900, 200 }, { 100, 2000, 700, 100 },
	};
	struct perf_event_attr attr = read_attr();

	for (int inherit = 0; inherit < 2; inherit++) {
		struct periods p;

		attr.inherit = inherit;
		put_pipe(&file, &attr);
		for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
			put_read(7, samples[i].tid, samples[i].count);
		p = periods_of_file();
		assert_int_equal(p.nr, ARRAY_SIZE(samples));
		for (size_t i = 0; i < p.nr; i++)
			assert_int_equal(p.of[i], inherit ? samples[i].of_task : samples[i].of_all);
	}
}

/* Of more events than slots, the ones with most samples are shown, the rest is dropped. */
TEST(test_many_events)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	struct pipeline_stats stats;
	uint64_t nr = 0;
	char banner[256];

	put_pipe(&file, &attr);
	for (uint64_t i = 0; i < 12; i++) {
		attr.config = PERF_COUNT_SW_PAGE_FAULTS;
		put_header(&file, 64, 8 + sizeof(attr) + 8);
		put(&file, &attr, sizeof(attr));
		put_u64(&file, 20 + i);
	}
	/* event 20 + i: 2 samples for odd i, else 10; event 7: none */
	for (uint64_t i = 0; i < 12; i++)
		for (uint64_t k = 0; k < (i % 2 ? 2 : 10); k++)
			put_sample(&file, 20 + i, 0x1000, 100, ++nr);
	put_sample(&file, 99, 0x1000, 100, ++nr);
	stats = replay(banner, sizeof(banner));
	assert_int_equal(stats.taken, nr);
	assert_int_equal(stats.dropped[DROP_EVENT_LIMIT], 4 * 2);
	assert_int_equal(stats.dropped[DROP_UNKNOWN_EVENT], 1);
	for (int i = 0; i < EVENTS_MAX; i++)
		assert_int_equal(stats.by_event[i], i < 4 && i % 2 ? 2 : 10);
}

#define MODULE_AT 0xffffffffc0000000ULL
#define OSRELEASE 4
#define ARCH	  6

/* A sample at @ip, in @mode. */
static void put_sample_of(uint16_t mode, uint64_t ip, uint64_t time)
{
	const size_t at = file.size;
	struct perf_event_header h;

	put_sample(&file, 7, ip, 100, time);
	memcpy(&h, file.bytes + at, sizeof(h));
	h.misc = mode;
	memcpy(file.bytes + at, &h, sizeof(h));
}

static void put_kernel_sample(uint64_t ip, uint64_t time)
{
	put_sample_of(PERF_RECORD_MISC_KERNEL, ip, time);
}

/* The module of @filename, of 4096 bytes. */
static void put_module(const char *filename, uint64_t start)
{
	const struct perf_event_header h = { PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL,
					     8 + 4 * 8 + 64 + 3 * 8 };
	const uint32_t ids[2] = { UINT32_MAX, 0 };
	char name[64] = "";

	snprintf(name, sizeof(name), "%s", filename);
	put(&file, &h, sizeof(h));
	put(&file, ids, sizeof(ids));
	put_u64(&file, start);
	put_u64(&file, 4096);
	put_u64(&file, 0);
	put(&file, name, sizeof(name));
	put(&file, ids, sizeof(ids));
	put_u64(&file, 0);
	put_u64(&file, 7);
}

/* A feature of the header, as a pipe has it. */
static void put_feature(uint64_t feature, const char *value)
{
	const uint32_t size = 64;
	char text[64] = "";

	snprintf(text, sizeof(text), "%s", value);
	put_header(&file, 80, 8 + 8 + 4 + sizeof(text));
	put_u64(&file, feature);
	put(&file, &size, sizeof(size));
	put(&file, text, sizeof(text));
}

/* Collect the name and module of the innermost frame of each sample. */
static int add_frame(void *ctx, const struct sampler_sample *s)
{
	const struct sampler_frame *f = &s->known[s->frames[0]];
	char *out = ctx;
	size_t used = strlen(out);

	snprintf(out + used, 512 - used, "%.*s(%.*s) ", (int)f->name.size, f->name.str,
		 (int)f->module.size, f->module.str);
	return 0;
}

static void frames_of_file(char *banner, char names[static 512])
{
	struct sampler *s = opened(NULL);
	struct err e = { "" };

	names[0] = '\0';
	assert_int_equal(sampler_each(s, add_frame, names, &e), 0);
	snprintf(banner, 256, "%s", s->banner);
	sampler_free(s);
}

/* Kernel code of another machine: the names of its modules, none of this kernel, and a banner. */
TEST(test_other_kernels)
{
	static const struct {
		const char *release, *banner;
	} cases[] = {
		{ "1.2.3-other", "recorded on another kernel, 1.2.3-other: no kernel symbols" },
		{ NULL, "not known which kernel it was recorded on: no kernel symbols" },
	};
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	char banner[256], names[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_pipe(&file, &attr);
		if (cases[i].release)
			put_feature(OSRELEASE, cases[i].release);
		put_module("/lib/modules/1.2.3-other/kernel/drivers/net/ena-x.ko.xz", MODULE_AT);
		put_module("[rtl8192ce]", MODULE_AT + 4096);
		put_module("[bad\033name]", MODULE_AT + 3 * 4096);
		put_kernel_sample(MODULE_AT + 4095, 1);
		put_kernel_sample(MODULE_AT + 4096, 2);
		put_kernel_sample(MODULE_AT + 2 * 4096, 3);
		put_kernel_sample(MODULE_AT + 3 * 4096, 4);
		put_kernel_sample(0xffffffff81000010ULL, 5);
		frames_of_file(banner, names);
		assert_string_equal(banner, cases[i].banner);
		assert_string_equal(names, "[ena_x]([ena_x]) [rtl8192ce]([rtl8192ce]) "
					   "[kernel]([kernel.kallsyms]) "
					   "[kernel]([kernel.kallsyms]) "
					   "[kernel]([kernel.kallsyms]) ");
	}
	/* no sample in the kernel: its names are not missing */
	put_pipe(&file, &attr);
	put_sample(&file, 7, 0x1000, 100, 1);
	frames_of_file(banner, names);
	assert_string_equal(banner, "");
}

/* Each event has its own rate; the date is that of the file. */
TEST(test_rates_and_date)
{
	static const double hz[] = { 999, 0, 1e9 / 2e6, 0 };
	const struct timespec times[2] = { { 1234567890, 0 }, { 1234567890, 0 } };
	struct sampler_config config = { .tick_ns = 1000000000, .window_ns = 5000000000 };
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct sampler *s;
	struct replay_result result;
	struct err e = { "" };
	char path[64];

	put_pipe(&file, &attr);
	for (uint64_t i = 1; i < ARRAY_SIZE(hz); i++) {
		attr.freq = 0;
		attr.config = i == 2 ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_PAGE_FAULTS;
		attr.sample_period = i == 3 ? 1 : 2000000;
		put_header(&file, 64, 8 + sizeof(attr) + 8);
		put(&file, &attr, sizeof(attr));
		put_u64(&file, 20 + i);
	}
	put_sample(&file, 7, 0x1000, 100, 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, file.bytes, file.size), file.size);
	assert_int_equal(futimens(fd, times), 0);
	config.replay = path;
	if (sampler_new(&s, &config, &e))
		fail_msg("%s", e.text);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(hz); i++)
		if (fabs(s->rates.hz[i] - hz[i]) > 0.01)
			fail_msg("event %zu: %g Hz, not %g", i, s->rates.hz[i], hz[i]);
	assert_int_equal(replay_run(s->replay, &s->store, &result), 0);
	assert_int_equal(result.date_ns, 1234567890ULL * 1000000000);
	sampler_free(s);
}

static const struct object *find_object(const struct objects *objects, const char *path)
{
	for (uint32_t i = 0; i < objects_nr(objects); i++)
		if (!strcmp(objects_at(objects, i)->path.str, path))
			return objects_at(objects, i);
	fail_msg("no object %s", path);
	return NULL;
}

/* A missing file of a recording is not to be looked for in its process, but below --symfs. */
TEST(test_missing_files)
{
	static const struct {
		const char *symfs, *reason;
	} cases[] = {
		{ NULL, "no such file on this machine" },
		{ "/proc/self/fdinfo", "no such file below --symfs" },
	};
	const uint32_t ids[2] = { 100, 100 };
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	const char name[32] = "/no/such/program";

	put_pipe(&file, &attr);
	put_header(&file, PERF_RECORD_MMAP, 8 + 4 * 8 + sizeof(name) + 3 * 8);
	put(&file, ids, sizeof(ids));
	put_u64(&file, 0x1000);
	put_u64(&file, 0x1000);
	put_u64(&file, 0);
	put(&file, name, sizeof(name));
	put(&file, ids, sizeof(ids));
	put_u64(&file, 0);
	put_u64(&file, 7);
	put_sample_of(PERF_RECORD_MISC_USER, 0x1010, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct replay_result result;
		struct sampler *s = replayed(cases[i].symfs, &result);
		const struct object *object = find_object(s->store.objects, name);

		assert_non_null(atomic_load(&object->reason));
		assert_string_equal(atomic_load(&object->reason), cases[i].reason);
		sampler_free(s);
	}
}

/* Open the file and close it again. 0 or -errno. */
static int open_file(struct err *e)
{
	struct sampler_config config = { .tick_ns = 1000000000, .window_ns = 5000000000 };
	int fd = memfd_create("perf.data", MFD_CLOEXEC), code;
	struct sampler *s = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(write(fd, file.bytes, file.size), file.size);
	config.replay = path;
	code = sampler_new(&s, &config, e);
	if (!code)
		sampler_free(s);
	close(fd);
	return code;
}

/* Copies of stacks of a CPU without unwinder are refused; without copies any CPU is read. */
TEST(test_other_machines)
{
	static const struct {
		const char *machine;
		bool stacks;
		const char *refused; /* the name in the message */
	} cases[] = {
		{ "riscv64", true, "recorded on riscv64:" },
		{ "riscv64", false, NULL },
		{ "ppc\033[2J64", true, "recorded on ppc" },
		{ "x86_64", true, NULL },
		{ "aarch64", true, NULL },
		{ NULL, true, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
		struct err e = { "" };

		attr.sample_type |= cases[i].stacks ? PERF_SAMPLE_STACK_USER : 0;
		attr.sample_stack_user = cases[i].stacks ? 8192 : 0;
		put_pipe(&file, &attr);
		if (cases[i].machine)
			put_feature(ARCH, cases[i].machine);
		assert_int_equal(open_file(&e), cases[i].refused ? -ENOTSUP : 0);
		if (!cases[i].refused)
			continue;
		assert_non_null(strstr(e.text, cases[i].refused));
		assert_non_null(strstr(e.text, "use perf report"));
		assert_null(strchr(e.text, '\033'));
	}
}

#define EVENT_DESC   12
#define EVENT_UPDATE 78
#define HOSTILE                                                                                    \
	"a\033]0;x\007\x9b"                                                                        \
	"2J" /* with control bytes of C0 and C1 */

/* Name the event by a record of its own, or in the features. */
static void put_event_name(bool update, const struct perf_event_attr *attr)
{
	const uint32_t desc[4] = { 1, sizeof(*attr), 0, 16 };
	const char name[16] = HOSTILE;

	if (update) {
		put_header(&file, EVENT_UPDATE, 8 + 16 + sizeof(name));
		put_u64(&file, 2);
		put_u64(&file, 7);
	} else {
		put_header(&file, 80, 8 + 8 + 8 + sizeof(*attr) + 8 + sizeof(name));
		put_u64(&file, EVENT_DESC);
		put(&file, desc, 8);
		put(&file, attr, sizeof(*attr));
		put(&file, desc + 2, 8);
	}
	put(&file, name, sizeof(name));
}

static void check_clean(const char *text, size_t size)
{
	assert_true(size && text[0] == 'a');
	for (size_t i = 0; i < size; i++)
		if ((uint8_t)text[i] < 0x20 || (uint8_t)text[i] == 0x9b)
			fail_msg("byte %#x in %s", (uint8_t)text[i], text);
}

/* Check each text of a sample that perf-script prints. */
static int check_texts(void *ctx, const struct sampler_sample *s)
{
	const struct sampler_frame *f = &s->known[s->frames[0]];
	unsigned int *nr = ctx;

	check_clean(s->event, strlen(s->event));
	check_clean(s->comm.str, s->comm.size);
	assert_true(f->module.size > 1 && f->module.str[0] == '/');
	check_clean(f->module.str + 1, f->module.size - 1U);
	++*nr;
	return 0;
}

/* No name of a file has control bytes in a sample: of events, threads and objects. */
TEST(test_clean_names)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	const uint32_t ids[2] = { 100, 100 };
	const char path[16] = "/" HOSTILE;
	struct err e = { "" };

	for (int update = 0; update < 2; update++) {
		unsigned int nr = 0;
		struct sampler *s;

		put_pipe(&file, &attr);
		put_event_name(update, &attr);
		put_comm(&file, 7, 100, HOSTILE, 1);
		put_header(&file, PERF_RECORD_MMAP, 8 + 4 * 8 + sizeof(path) + 3 * 8);
		put(&file, ids, sizeof(ids));
		put_u64(&file, 0x1000);
		put_u64(&file, 0x1000);
		put_u64(&file, 0);
		put(&file, path, sizeof(path));
		put(&file, ids, sizeof(ids));
		put_u64(&file, 2);
		put_u64(&file, 7);
		put_sample_of(PERF_RECORD_MISC_USER, 0x1010, 3);
		s = opened(NULL);
		assert_int_equal(sampler_each(s, check_texts, &nr, &e), 0);
		assert_int_equal(nr, 1);
		sampler_free(s);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

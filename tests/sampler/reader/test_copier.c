// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * copier: the kernel copies what the plan of a thread says, at each sample; copies find their
 * samples, old ones and other threads' are left out, a ring that went round begins again.
 * Live: a BPF program at samples of this thread.
 */
#include "sampler/reader/reader.c"

#include "tests/prelude.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "symbols/base/base.h"
#include "tests/makers/copy.h"

#define NR_FRAMES 200

/* A made-up interpreter in this process. */
struct frame {
	uint64_t code, none, previous, words[5];
};

static struct {
	uint64_t words[20], current;
	uint64_t cframe[3]; /* the last one: the innermost frame */
} thread;
static struct frame frames[NR_FRAMES];
/* The heads of their functions, and names. */
static struct head {
	uint64_t words[6], name, more;
} heads[NR_FRAMES];
static char names[NR_FRAMES][32];
static uint64_t watched;
static struct copy_maker maker;

/* Link @nr frames; the outermost one has @last behind it. */
static void link_frames(uint32_t nr, uint64_t last)
{
	for (uint32_t i = 0; i < nr; i++) {
		snprintf(names[i], sizeof(names[i]), "its name is %u, of all of them", i);
		heads[i] = (struct head){ { i, i + 1, i + 2, i + 3 }, (uintptr_t)names[i], i };
		frames[i] = (struct frame){
			.code = (uintptr_t)&heads[i],
			.previous = i + 1 < nr ? (uintptr_t)&frames[i + 1] : last,
			.words = { i, i * i },
		};
	}
	thread.current = (uintptr_t)&frames[0];
	thread.cframe[2] = (uintptr_t)&frames[0];
	watched = 4711;
}

static struct lang_plan plan_of(void)
{
	return (struct lang_plan){
		.state = (uintptr_t)&thread,
		.state_size = sizeof(thread),
		.current = (uintptr_t)&thread.current,
		.words = { (uintptr_t)&watched },
		.cframe_at = (uintptr_t)&thread.current,
		.frame_size = sizeof(frames[0]),
		.frame_previous = offsetof(struct frame, previous),
		.frame_code = offsetof(struct frame, code),
		.head_size = sizeof(struct head),
		.code_mask = ~0ULL,
		.name_at = 8,
		.head_words = { 8, 16, 24, 0 },
		.head_name = offsetof(struct head, name),
	};
}

static bool read_own(void *ctx, uint64_t addr, void *out, size_t size)
{
	struct iovec ours = { out, size }, theirs = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

static struct {
	struct copier copier;
	struct copies copies;
	int cpu, event, ring;
	bool waits; /* samples are of waits */
	struct perf_event_mmap_page *page;
} k;

#define PROCESS 7U /* an incarnation */

/* Load the program, for an event of this thread on its CPU. False: that is not permitted. */
static bool begin_sampling(bool wait)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 500000,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = 1,
	};
	cpu_set_t cpus;
	int rc = copier_load(&k.copier), fds[2];

	if (rc == -EPERM || rc == -ENOTSUP || rc == -ENOSYS)
		return false;
	k.waits = wait;
	if (wait) {
		attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
		attr.sample_period = 1;
	}
	assert_int_equal(rc, 0);
	k.cpu = sched_getcpu();
	CPU_ZERO(&cpus);
	CPU_SET(k.cpu, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	k.event = (int)syscall(SYS_perf_event_open, &attr, 0, k.cpu, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(k.event >= 0);
	assert_int_equal(ioctl(k.event, PERF_EVENT_IOC_SET_BPF, k.copier.program_fd), 0);
	k.page = mmap(NULL, 17 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, k.event, 0);
	assert_ptr_not_equal(k.page, MAP_FAILED);
	assert_int_equal(copier_set_cpu(&k.copier, k.cpu, fds), 0);
	k.copies = (struct copies){ .area = NULL };
	assert_true(copies_map(&k.copies, fds[0], fds[1]));
	close(fds[0]);
	k.ring = fds[1];
	return true;
}

/* Have some samples taken. */
static void take_samples(void)
{
	const uint64_t end_ns = time_thread_ns() + 8000000;

	ioctl(k.event, PERF_EVENT_IOC_ENABLE, 0);
	for (int i = 0; i < 20 && k.waits; i++)
		usleep(50);
	while (time_thread_ns() < end_ns && !k.waits)
		;
	ioctl(k.event, PERF_EVENT_IOC_DISABLE, 0);
}

static void end_sampling(void)
{
	close(k.event);
	munmap(k.page, 17 * 4096);
	munmap(k.copies.area, sizeof(*k.copies.area));
	munmap(k.copies.ring_read, 4096);
	munmap((void *)(uintptr_t)k.copies.ring_written, 4096);
	close(k.ring);
	assert_int_equal(copier_set_cpu(&k.copier, k.cpu, NULL), 0);
	copier_close(&k.copier);
}

struct sample {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t time_ns;
};

/*
 * Get some samples with the plan. Each has to have @moment as its copy, in the order of both;
 * returns their number. Times are not compared: an emulated CPU may be slow.
 */
static uint32_t expect_copies(const struct lang_plan *plan, const struct lang_moment *moment)
{
	const uint8_t *data = (uint8_t *)k.page + 4096;
	uint64_t tail = k.page->data_tail;
	struct copies *c = &k.copies;
	uint32_t nr = 0;

	copies_plan(c, gettid(), PROCESS, plan);
	take_samples();
	for (; tail < k.page->data_head && (nr < 10 || !moment); nr++) {
		const struct sample *s = (const void *)(data + (tail & (16 * 4096 - 1)));
		const uint8_t *copied = c->area->bytes + (c->at & (COPIES_RING - 1));
		struct copy_head head;

		tail += s->head.size;
		if (s->head.type != PERF_RECORD_SAMPLE || !moment)
			continue;
		assert_true(c->at < c->area->written);
		memcpy(&head, copied, sizeof(head));
		assert_int_equal(head.tid, gettid());
		assert_int_equal(head.size, sizeof(head) + moment->size);
		assert_memory_equal(copied + sizeof(head), moment->bytes, moment->size);
		c->at = behind(c->at, head.size);
	}
	if (!moment)
		assert_int_equal(c->at, c->area->written);
	c->at = c->area->written;
	k.page->data_tail = k.page->data_head;
	return nr;
}

/*
 * Chains of one frame, of some, of more than are copied; one that leads to memory that is not
 * there; one behind a C frame; and no plan: each is as this process would copy it.
 */
TEST(test_kernel_copies)
{
	const uint32_t lengths[] = { 0, 1, 3, NR_FRAMES };
	struct lang_plan plan = plan_of();
	struct lang_moment moment;

	if (!begin_sampling(false))
		skip();
	maker = (struct copy_maker){ .read = read_own,
				     .frames_max = COPIED_FRAMES_MAX,
				     .heads = true };
	for (size_t i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		link_frames(lengths[i / 2], i & 1 ? 4096 : 0);
		if (!lengths[i / 2])
			thread.current = i & 1 ? 8 : 0;
		moment = copy_make(&maker, &plan);
		assert_in_range(expect_copies(&plan, &moment), 1, 1000);
	}
	link_frames(3, 0);
	thread.current = (uintptr_t)&thread.cframe;
	plan.cframe_size = sizeof(thread.cframe);
	plan.cframe_mask = ~0ULL;
	plan.cframe_at = 16;
	moment = copy_make(&maker, &plan);
	assert_in_range(expect_copies(&plan, &moment), 1, 1000);
	expect_copies(NULL, NULL);
	/* Sizes that the program would cut. */
	plan.state_size = COPY_STATE_MAX + 1;
	expect_copies(&plan, NULL);
	end_sampling();
}

/* Return how many samples of this thread woke the reader, of *@nr. The ring is empty after it. */
static uint64_t count_wakes(uint32_t *nr)
{
	const uint64_t before = *k.copies.ring_written;
	struct pollfd wake = { .fd = k.ring, .events = POLLIN };
	uint64_t wakes;

	*nr = 0;
	take_samples();
	for (uint64_t at = k.page->data_tail; at < k.page->data_head;) {
		const struct perf_event_header *h =
			(const void *)((uint8_t *)k.page + 4096 + (at & (16 * 4096 - 1)));

		/* A throttled event has other records as well. */
		*nr += h->type == PERF_RECORD_SAMPLE;
		at += h->size;
	}
	k.page->data_tail = k.page->data_head;
	k.copies.at = k.copies.area->written;
	/* Records of the ring: a head of 8 bytes, and the 8 bytes that are put in. */
	wakes = (*k.copies.ring_written - before) / 16;
	assert_int_equal(poll(&wake, 1, 0), wakes > 0);
	copies_drop_wakes(&k.copies);
	assert_int_equal(poll(&wake, 1, 0), 0);
	return wakes;
}

/* All samples wake the reader, or none. */
static void expect_wakes(bool all)
{
	uint32_t nr;
	uint64_t wakes = count_wakes(&nr);

	assert_in_range(nr, 1, 200);
	assert_int_equal(wakes, all ? nr : 0);
}

/* Note the frames of the next copy as known, or not; @made: as functions of no file. */
static void note_frames(bool known, bool made)
{
	static struct lang_known of_no_file = { .made = true };
	static struct lang_work work;
	struct lang_moment m = { maker.bytes, maker.size, 0 };

	work.nr_codes = NR_FRAMES;
	for (uint32_t i = 0; i < NR_FRAMES; i++) {
		work.script_functions_of[i].address = (uintptr_t)&heads[i];
		work.script_functions_of[i].known = &of_no_file;
	}
	copies_note_codes(&k.copies, gettid(), &m, made ? &work : NULL, known);
}

/*
 * The reader is woken by code that is not in the table, and by threads without a plan of a process
 * that is to be read, or, if there are new ones, of one that is not in the table.
 */
TEST(test_kernel_wakes)
{
	struct lang_plan plan = plan_of();

	if (!begin_sampling(false))
		skip();
	maker = (struct copy_maker){ .read = read_own,
				     .frames_max = COPIED_FRAMES_MAX,
				     .heads = true };
	link_frames(20, 0);
	copy_make(&maker, &plan);
	/* No plan: nothing is known of the process. */
	expect_wakes(false);
	k.copies.area->any_new = 1;
	expect_wakes(true);
	copies_set_process(&k.copies, getpid(), false);
	expect_wakes(false);
	copies_set_process(&k.copies, getpid(), true);
	expect_wakes(true);
	copies_set_process(&k.copies, getpid() + (int)COPIES_PROCESSES, true);
	expect_wakes(true);
	k.copies.area->processes[(uint32_t)getpid() & (COPIES_PROCESSES - 1)] = 0;
	k.copies.area->any_new = 0;
	expect_wakes(false);
	copies_plan(&k.copies, gettid(), PROCESS, &plan);
	expect_wakes(true);
	note_frames(true, false);
	expect_wakes(false);
	/* Of another process. */
	copies_plan(&k.copies, gettid(), PROCESS + 1, &plan);
	expect_wakes(true);
	copies_plan(&k.copies, gettid(), PROCESS, &plan);
	expect_wakes(false);
	frames[19].code = (uintptr_t)&heads[25];
	expect_wakes(true);
	frames[19].code = (uintptr_t)&heads[19];
	expect_wakes(false);
	note_frames(false, false);
	expect_wakes(true);
	/* Functions that may be freed are known with their heads and names. */
	note_frames(true, true);
	expect_wakes(false);
	heads[11].words[2]++;
	expect_wakes(true);
	heads[11].words[2]--;
	expect_wakes(false);
	names[12][9] = 'N';
	expect_wakes(true);
	names[12][9] = 'm';
	names[13][23] = 'x';
	expect_wakes(true);
	names[13][23] = 'f';
	note_frames(false, true);
	expect_wakes(true);
	end_sampling();
}

/* Samples of waits have copies, and wake no reader. */
TEST(test_waits_do_not_wake)
{
	struct lang_plan plan = plan_of();
	struct lang_moment moment;

	if (!begin_sampling(true))
		skip();
	maker = (struct copy_maker){ .read = read_own,
				     .frames_max = COPIED_FRAMES_MAX,
				     .heads = true };
	link_frames(3, 0);
	k.copies.area->any_new = 1;
	expect_wakes(false);
	copies_set_process(&k.copies, getpid(), true);
	expect_wakes(false);
	moment = copy_make(&maker, &plan);
	assert_in_range(expect_copies(&plan, &moment), 1, 1000);
	expect_wakes(false);
	end_sampling();
}

/* ---- without the kernel ---- */

/* Put a copy of @size bytes behind its head. */
static void put_copy(struct copier_area *a, uint64_t time_ns, uint32_t tid, uint32_t size)
{
	struct copy_head head = { time_ns, tid, (uint32_t)sizeof(head) + size, 0 };

	memcpy(a->bytes + (a->written & (COPIES_RING - 1)), &head, sizeof(head));
	a->written = behind(a->written, head.size);
}

static uint32_t find(struct copies *c, uint64_t time_ns, int tid)
{
	struct lang_moment m;

	return copies_find(c, time_ns, tid, &m) ? m.size : 0;
}

/* The nearest in time of the thread, before or behind the sample; each once. */
TEST(test_find)
{
	struct copier_area *a = calloc(1, sizeof(*a));
	struct copies c = { .area = a };
	const uint64_t t = 1ULL << 40;

	assert_int_equal(find(&c, t, 5), 0);
	put_copy(a, t - 2 * COPY_NS, 5, 16);
	put_copy(a, t - 3000, 5, 24);
	put_copy(a, t + 2000, 5, 32);
	put_copy(a, t + 5000, 6, 40);
	put_copy(a, t + 4 * COPY_NS, 5, 48);
	assert_int_equal(find(&c, t, 5), 32);
	assert_int_equal(find(&c, t, 5), 0);
	assert_int_equal(find(&c, t + 1000, 6), 40);
	assert_int_equal(find(&c, t + 2 * COPY_NS, 5), 0);
	assert_int_equal(find(&c, t + 4 * COPY_NS - 2000, 5), 48);
	assert_int_equal(c.at, a->written);
	free(a);
}

/* Over the end of the ring, more than once; one that was not looked at for a round begins again. */
TEST(test_rounds)
{
	struct copier_area *a = calloc(1, sizeof(*a));
	struct copies c = { .area = a };
	uint64_t t = 1ULL << 40;

	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t size = 8 * (1 + i * 7919 % 4000);

		t += 4 * COPY_NS;
		put_copy(a, t, 5, size);
		assert_int_equal(find(&c, t + 2000, 5), size);
	}
	for (uint32_t i = 0; i < 100; i++)
		put_copy(a, t + i, 6, COPY_MAX - sizeof(struct copy_head));
	t += 4 * COPY_NS;
	put_copy(a, t, 5, 80);
	assert_int_equal(find(&c, t, 5), 80);
	/* A size that no copy has. */
	put_copy(a, t + 4 * COPY_NS, 5, COPY_MAX + 8);
	assert_int_equal(find(&c, t + 4 * COPY_NS, 5), 0);
	assert_int_equal(c.at, a->written);
	free(a);
}

/* The ring is half full at the latest: the next look is in time, unless others wake it sooner. */
TEST(test_wait)
{
	struct copier_area *a = calloc(1, sizeof(*a));
	struct copies c = { .area = a };
	uint64_t now = 1ULL << 40;

	assert_int_equal(copies_wait_ms(&c, now), -1);
	a->written += COPIES_RING / 4;
	assert_int_equal(copies_wait_ms(&c, now += 10000000), 20);
	a->written += COPIES_RING / 4;
	assert_int_equal(copies_wait_ms(&c, now += 100000000), -1);
	a->written += COPIES_RING;
	assert_int_equal(copies_wait_ms(&c, now += 3000000), 3);
	a->written += COPIES_RING / 100;
	assert_int_equal(copies_wait_ms(&c, now += 1000000), -1);
	free(a);
}

/* Two threads of one place keep theirs, a third one takes the place of the older one. */
TEST(test_plans)
{
	struct copier_area *a = calloc(1, sizeof(*a));
	struct copies c = { .area = a };
	struct lang_plan plan = plan_of();
	pid_t tids[3];
	uint32_t nr = 0;

	for (pid_t tid = 100; nr < 3; tid++)
		if (copies_slot((uint32_t)tid) == copies_slot(100))
			tids[nr++] = tid;
	assert_in_range(copies_slot(UINT32_MAX), 0, COPIES_THREADS - 2);
	for (uint32_t i = 0; i < 3; i++)
		copies_plan(&c, tids[i], PROCESS, &plan);
	copies_plan(&c, tids[0], PROCESS, NULL);
	assert_int_equal(a->threads[copies_slot(100)].tid, tids[2]);
	assert_int_equal(a->threads[copies_slot(100) + 1].tid, tids[1]);
	plan.state = 8;
	copies_plan(&c, tids[1], PROCESS, &plan);
	assert_int_equal(a->threads[copies_slot(100) + 1].plan.state, 8);
	copies_plan(&c, tids[2], PROCESS, NULL);
	assert_int_equal(a->threads[copies_slot(100)].tid, 0);
	free(a);
}

/*
 * The words of all frames of a copy, for its process, and no others; two of one place are kept, a
 * third one takes the place of the older. A piece that ends behind the copy, or is too short for a
 * frame, ends it.
 */
TEST(test_codes)
{
	struct copier_area *a = calloc(1, sizeof(*a));
	struct copies c = { .area = a };
	struct lang_plan plan = plan_of();
	struct lang_moment m;
	uint64_t same[3], key = copies_key(PROCESS, 64);
	uint32_t nr = 0, known = 0;

	maker = (struct copy_maker){ .read = read_own,
				     .frames_max = COPIED_FRAMES_MAX,
				     .heads = true };
	link_frames(20, 0);
	m = copy_make(&maker, &plan);
	copies_note_codes(&c, 100, &m, NULL, true);
	for (uint32_t i = 0; i < COPIES_CODES; i++)
		known += a->codes[i] != 0;
	/* The thread has no plan. */
	assert_int_equal(known, 0);
	copies_plan(&c, 100, PROCESS, &plan);
	for (uint32_t cut = 0; cut <= m.size; cut += 4) {
		struct lang_moment part = { m.bytes, cut, 0 };

		copies_note_codes(&c, 100, &part, NULL, true);
	}
	copies_note_codes(&c, 100, &m, NULL, true);
	for (uint32_t i = 0; i < COPIES_CODES; i++)
		known += a->codes[i] != 0;
	assert_int_equal(known, 20);
	for (uint64_t i = 0; i < 20; i++) {
		const uint64_t *pair =
			&a->codes[copies_code_slot(copies_key(PROCESS, (uintptr_t)&heads[i]))];

		assert_true(pair[0] == copies_key(PROCESS, (uintptr_t)&heads[i]) ||
			    pair[1] == copies_key(PROCESS, (uintptr_t)&heads[i]));
	}
	copies_note_codes(&c, 100, &m, NULL, false);
	for (uint32_t i = 0; i < COPIES_CODES; i++)
		assert_int_equal(a->codes[i], 0);
	for (uint64_t i = 16; nr < 3; i += 16)
		if (copies_code_slot(i) == copies_code_slot(key))
			same[nr++] = i;
	for (uint32_t i = 0; i < 3; i++)
		copies_set_code(a, same[i], true);
	copies_set_code(a, same[1], true);
	assert_int_equal(a->codes[copies_code_slot(key)], same[2]);
	assert_int_equal(a->codes[copies_code_slot(key) + 1], same[1]);
	copies_set_code(a, same[0], false);
	copies_set_code(a, same[2], false);
	assert_int_equal(a->codes[copies_code_slot(key)], 0);
	free(a);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

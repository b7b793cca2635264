// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data: files made here byte by byte, in file and pipe mode, whole, cut
 * and mutated.
 */
#include "tests/sampler/perfdata/from_memory.h"

#include "sampler/perfdata/internal.h"

#include "tests/prelude.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE 32768
#include "tests/makers/perfdata.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"

static void put_records(struct file *f)
{
	put_comm(f, 7, 100, "early", 0);
	put_sample(f, 7, 0x1000, 100, 50);
	put_sample(f, 9, 0x2000, 100, 30); /* another CPU's ring: earlier */
	put_sample(f, 8, 0x3000, 101, 40);
	put_comm(f, 9, 101, "late", 45);
}

/* An object with a build-id of that letter; 64 bytes. */
static void put_build_id(struct file *f, unsigned int misc, char letter, const char *path)
{
	struct perf_event_header h = { 67, (uint16_t)misc, 64 };
	char body[56] = { 0 };

	memset(body + 4, letter, 20);
	body[24] = 20;
	snprintf(body + 28, sizeof(body) - 28, "%s", path);
	put(f, &h, sizeof(h));
	put(f, body, sizeof(body));
}

/* Two events, cpu-clock with ids 7 and 8, page-faults with id 9; EVENT_DESC names the second. */
static void make_file(struct file *f)
{
	const struct perf_event_attr attrs[] = { attr_of(PERF_COUNT_SW_CPU_CLOCK),
						 attr_of(PERF_COUNT_SW_PAGE_FAULTS) };
	const uint64_t attrs_at = 104 + 24, entry = sizeof(attrs[0]) + 16;
	uint64_t data_at = attrs_at + 2 * entry, size;
	uint32_t desc[4] = { 1, sizeof(attrs[0]), 0, 16 };

	f->size = 0;
	put(f, "PERFILE2", 8);
	put_u64(f, 104);
	put_u64(f, entry);
	put_u64(f, attrs_at);
	put_u64(f, 2 * entry);
	put_u64(f, data_at);
	put_u64(f, 0); /* size of the data: set below */
	put_u64(f, 0);
	put_u64(f, 0);
	put_u64(f, 1ULL << 12 | 1 << 4 | 1 << 2); /* EVENT_DESC, OSRELEASE, BUILD_ID */
	for (int i = 0; i < 3; i++)
		put_u64(f, 0);
	put_u64(f, 7);
	put_u64(f, 8);
	put_u64(f, 9);
	put(f, &attrs[0], sizeof(attrs[0]));
	put_u64(f, 104);
	put_u64(f, 16);
	put(f, &attrs[1], sizeof(attrs[1]));
	put_u64(f, 120);
	put_u64(f, 8);
	assert_int_equal(f->size, data_at);
	put_records(f);
	size = f->size - data_at;
	memcpy(f->bytes + 48, &size, sizeof(size));
	size = f->size + 3 * 16; /* the features' sections */
	put_u64(f, size);
	put_u64(f, 3 * 64);
	put_u64(f, size + 3 * 64);
	put_u64(f, 4 + 12);
	put_u64(f, size + 3 * 64 + 16);
	put_u64(f, 8 + sizeof(attrs[0]) + 8 + 16);
	put_build_id(f, PERF_RECORD_MISC_USER, 'u', "/usr/bin/vmlinux-to-elf");
	put_build_id(f, PERF_RECORD_MISC_KERNEL, 'm', "[nf_tables]");
	put_build_id(f, PERF_RECORD_MISC_KERNEL | 1 << 15, 'k', "[kernel.kallsyms]");
	put(f,
	    "\x0c\0\0\0"
	    "6.1.0-test\0",
	    16);
	put(f, desc, 8);
	put(f, &attrs[0], sizeof(attrs[0]));
	put(f, desc + 2, 8);
	put(f, "my-clock:u\0\0\0\0\0", 16);
}

static void make_pipe(struct file *f)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);
	uint32_t extra = 5;

	f->size = 0;
	put(f, "PERFILE2", 8);
	put_u64(f, 16);
	put_header(f, 64, 8 + sizeof(attr) + 3 * 8);
	put(f, &attr, sizeof(attr));
	put_u64(f, 7);
	put_u64(f, 8);
	put_u64(f, 9);
	put_header(f, 66, 12); /* TRACING_DATA with 5 bytes behind it, padded to 8 */
	put(f, &extra, sizeof(extra));
	put(f, "\x09\0\0\0\0\0\x08\0", 8); /* looks like a record; must be skipped */
	put_records(f);
}

static void check_order(struct perfdata *pd)
{
	static const uint64_t ips[] = { 0x2000, 0x3000, 0x1000 };
	unsigned int nr = 0;

	for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
		const struct record_layout *layout;
		size_t size;
		const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);
		struct record r;

		assert_int_equal(record_decode(&r, layout, bytes, size), 0);
		if (r.type == PERF_RECORD_SAMPLE)
			assert_int_equal(r.sample.ip, ips[nr++]);
	}
	assert_int_equal(nr, 3);
}

TEST(test_file_mode)
{
	struct file f;
	struct perfdata *pd;
	struct err e;
	uint64_t first, last;

	make_file(&f);
	assert_int_equal(perfdata_from_memory(&pd, f.bytes, f.size, &e), 0);
	assert_int_equal(perfdata_info(pd).nr_events, 2);
	assert_string_equal(perfdata_event(pd, 0)->event.name, "my-clock:u");
	assert_string_equal(perfdata_event(pd, 1)->event.name, "page-faults");
	assert_int_equal(perfdata_event_of(pd, 8), 0);
	assert_int_equal(perfdata_event_of(pd, 9), 1);
	assert_int_equal(perfdata_event_of(pd, 10), -1);
	assert_int_equal(perfdata_info(pd).nr_records, 5);
	assert_int_equal(perfdata_info(pd).found->nr_bad, 0);
	assert_string_equal(perfdata_info(pd).kernel->release, "6.1.0-test");
	assert_int_equal(perfdata_info(pd).kernel->build_id_size, 20);
	assert_memory_equal(perfdata_info(pd).kernel->build_id, "kkkkkkkkkkkkkkkkkkkk", 20);
	first = perfdata_info(pd).found->first_sample_ns;
	last = perfdata_info(pd).found->last_sample_ns;
	assert_int_equal(first, 30);
	assert_int_equal(last, 50);
	check_order(pd);
	perfdata_close(pd);
}

TEST(test_pipe_mode)
{
	struct file f;
	struct perfdata *pd;
	struct err e;

	make_pipe(&f);
	assert_int_equal(perfdata_from_memory(&pd, f.bytes, f.size, &e), 0);
	assert_int_equal(perfdata_info(pd).nr_events, 1);
	assert_string_equal(perfdata_event(pd, 0)->event.name, "cpu-clock");
	assert_int_equal(perfdata_info(pd).nr_records, 5);
	check_order(pd);
	perfdata_close(pd);
}

/* A mapping of the file "f" at @time. */
static void put_mmap(struct file *f, uint32_t type, uint16_t misc, uint32_t prot, uint64_t time)
{
	struct perf_event_header h = { type, misc, 8 + 8 + 3 * 8 + 8 + 3 * 8 };
	const uint32_t ids[2] = { 100, 100 }, protection[2] = { prot, MAP_PRIVATE };

	h.size = (uint16_t)(h.size + (type == PERF_RECORD_MMAP2 ? 3 * 8 + 8 : 0));
	put(f, &h, sizeof(h));
	put(f, ids, sizeof(ids));
	for (int i = 0; i < 3; i++)
		put_u64(f, 0x1000);
	if (type == PERF_RECORD_MMAP2) {
		for (int i = 0; i < 3; i++)
			put_u64(f, 0);
		put(f, protection, sizeof(protection));
	}
	put(f, "f\0\0\0\0\0\0", 8);
	put(f, ids, sizeof(ids)); /* id block */
	put_u64(f, time);
	put_u64(f, 7);
}

/*
 * Data mappings are left out, except the one that describes the kernel's image. The protection that
 * perf inject --jit writes is the mode of a file: it is code.
 */
TEST(test_data_mappings)
{
	struct file f;
	struct perfdata *pd;
	const struct record_layout *layout;
	struct record r;
	size_t size;

	make_pipe(&f);
	f.size -= 3 * 48 + 2 * 56;
	put_mmap(&f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, PROT_READ, 1);
	put_mmap(&f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, PROT_READ | PROT_EXEC, 2);
	put_mmap(&f, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA, 0, 3);
	put_mmap(&f, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, 0, 4);
	put_mmap(&f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_KERNEL, PROT_READ, 5);
	put_mmap(&f, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL | PERF_RECORD_MISC_MMAP_DATA, 0, 6);
	put_mmap(&f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, S_IFREG | 0600, 7);
	assert_int_equal(perfdata_from_memory(&pd, f.bytes, f.size, NULL), 0);
	assert_int_equal(perfdata_info(pd).nr_records, 5);
	assert_int_equal(perfdata_info(pd).found->nr_bad, 0);
	for (uint64_t i = 0; i < 5; i++) {
		static const uint64_t times[] = { 2, 4, 5, 6, 7 };
		const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);

		assert_int_equal(record_decode(&r, layout, bytes, size), 0);
		assert_int_equal(r.time_ns, times[i]);
		assert_int_equal(!(r.mmap.prot & PROT_EXEC), i == 2 || i == 3);
	}
	perfdata_close(pd);
}

/* A mapping of the file with this inode number, or of memory. */
static void put_part(struct file *f, uint64_t start, uint64_t pgoff, uint32_t prot, uint64_t ino,
		     const char *name)
{
	struct perf_event_header h = { PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, 72 + 16 + 3 * 8 };
	const uint32_t ids[2] = { 100, 100 }, device[2] = { 8, 1 };
	const uint32_t protection[2] = { prot, MAP_PRIVATE };
	char padded[16] = { 0 };

	memcpy(padded, name, strlen(name));
	put(f, &h, sizeof(h));
	put(f, ids, sizeof(ids));
	put_u64(f, start);
	put_u64(f, 0x1000);
	put_u64(f, pgoff);
	put(f, device, sizeof(device));
	put_u64(f, ino);
	put_u64(f, 0);
	put(f, protection, sizeof(protection));
	put(f, padded, sizeof(padded));
	put(f, ids, sizeof(ids)); /* id block */
	put_u64(f, 0);
	put_u64(f, 7);
}

/*
 * Text that a program moved to memory before perf listed its mappings, between parts of its file:
 * of data above, of code above, of two pieces; not of another file, at other places, or with a gap.
 */
TEST(test_moved_text)
{
	static const struct {
		uint32_t nr, above; /* pieces of memory; protection of the part above */
		uint64_t pgoff, ino, gap;
		const char *memory;
		uint64_t start, size, offset; /* of the text; 0: none */
	} cases[] = {
		{ 1, PROT_READ, 0x2000, 5, 0, "//anon", 0x11000, 0x1000, 0x1000 },
		{ 1, PROT_READ | PROT_EXEC, 0x2000, 5, 0, "//anon", 0x11000, 0x2000, 0x1000 },
		{ 2, PROT_READ, 0x3000, 5, 0, "/memfd:text", 0x11000, 0x2000, 0x1000 },
		{ 1, PROT_READ, 0x2000, 6, 0, "//anon", 0, 0, 0 },
		{ 1, PROT_READ, 0x3000, 5, 0, "//anon", 0, 0, 0 },
		{ 1, PROT_READ, 0x3000, 5, 0x1000, "//anon", 0, 0, 0 },
		{ 1, PROT_READ, 0x2000, 5, 0, "/lib/other", 0, 0, 0 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		const struct record_layout *layout;
		const uint64_t end = 0x11000 + cases[k].nr * 0x1000 + cases[k].gap;
		struct perfdata *pd;
		struct record r;
		struct file f;
		size_t size;
		uint64_t nr = 0;

		make_pipe(&f);
		f.size -= 3 * 48 + 2 * 56;
		put_part(&f, 0x10000, 0, PROT_READ, 5, "/bin/f");
		for (uint32_t i = 0; i < cases[k].nr; i++)
			put_part(&f, 0x11000 + i * 0x1000, 0, PROT_READ | PROT_EXEC, 9,
				 cases[k].memory);
		put_part(&f, end, cases[k].pgoff, cases[k].above, cases[k].ino, "/bin/f");
		assert_int_equal(perfdata_from_memory(&pd, f.bytes, f.size, NULL), 0);
		for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
			const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);

			assert_int_equal(record_decode(&r, layout, bytes, size), 0);
			perfdata_identify(pd, &r.mmap);
			if (strcmp(r.mmap.filename, "/bin/f") || !(r.mmap.prot & PROT_EXEC))
				continue;
			nr++;
			assert_int_equal(r.mmap.start, cases[k].start);
			assert_int_equal(r.mmap.size, cases[k].size);
			assert_int_equal(r.mmap.pgoff, cases[k].offset);
		}
		assert_int_equal(nr, cases[k].size != 0);
		perfdata_close(pd);
	}
}

/* A recording that was killed: the header says that there are no data. */
TEST(test_unfinished)
{
	struct file f;
	struct perfdata *pd;

	make_file(&f);
	memset(f.bytes + 48, 0, 8);
	assert_int_equal(perfdata_from_memory(&pd, f.bytes, f.size, NULL), 0);
	assert_true(perfdata_info(pd).nr_records >= 5);
	perfdata_close(pd);
}

TEST(test_not_perf_data)
{
	struct perfdata *pd;
	struct err e;

	assert_int_equal(perfdata_from_memory(&pd, "", 0, &e), -EINVAL);
	assert_int_equal(perfdata_from_memory(&pd, "PERFILE2", 8, &e), -EINVAL);
	assert_int_equal(perfdata_from_memory(&pd, "#!/bin/sh\necho hello\n", 21, &e), -EINVAL);
	assert_non_null(strstr(e.text, "not a perf.data file"));
	assert_int_equal(perfdata_open_step(&pd, "/nonexistent/perf.data", NULL, &e), -ENOENT);
}

/* Cut anywhere: an error or fewer records, never a fault. */
TEST(test_every_cut)
{
	struct file f;
	struct perfdata *pd;

	make_file(&f);
	for (size_t size = 0; size < f.size; size++) {
		if (!perfdata_from_memory(&pd, f.bytes, size, NULL)) {
			assert_true(perfdata_info(pd).nr_records <= 5);
			perfdata_close(pd);
		}
	}
	make_pipe(&f);
	for (size_t size = 0; size < f.size; size++)
		if (!perfdata_from_memory(&pd, f.bytes, size, NULL))
			perfdata_close(pd);
}

TEST(test_mutations)
{
	struct file f;
	struct perfdata *pd;

	srand(1);
	for (int i = 0; i < 20000; i++) {
		if (i % 2)
			make_file(&f);
		else
			make_pipe(&f);
		for (int k = rand() % 4; k >= 0; k--)
			f.bytes[(size_t)rand() % f.size] = (uint8_t)rand();
		if (perfdata_from_memory(&pd, f.bytes, f.size, NULL))
			continue;
		for (uint64_t n = 0; n < perfdata_info(pd).nr_records; n++) {
			const struct record_layout *layout;
			size_t size;
			const uint8_t *bytes = perfdata_record(pd, n, &size, &layout);
			struct record r;

			record_decode(&r, layout, bytes, size);
		}
		perfdata_close(pd);
	}
}

/* The same bytes as a file, which is read piece by piece. */
struct on_disk {
	int fd;
	char path[64];
};

static void to_disk(struct on_disk *d, const struct file *f)
{
	d->fd = memfd_create("perf.data", MFD_CLOEXEC);
	assert_true(d->fd >= 0);
	assert_int_equal(pwrite(d->fd, f->bytes, f->size, 0), f->size);
	snprintf(d->path, sizeof(d->path), "/proc/self/fd/%d", d->fd);
}

static void check_same_records(struct perfdata *a, struct perfdata *b)
{
	const struct record_layout *layout;
	size_t size_a, size_b;

	assert_int_equal(perfdata_info(a).nr_records, perfdata_info(b).nr_records);
	assert_int_equal(perfdata_info(a).found->nr_bad, perfdata_info(b).found->nr_bad);
	for (uint64_t i = 0; i < perfdata_info(a).nr_records; i++) {
		const uint8_t *in_a = perfdata_record(a, i, &size_a, &layout);
		const uint8_t *in_b = perfdata_record(b, i, &size_b, &layout);

		assert_int_equal(size_a, size_b);
		assert_memory_equal(in_a, in_b, size_a);
	}
}

/* Whole, cut and mutated: a file gives the same records as its bytes in memory. */
TEST(test_on_disk)
{
	struct perfdata *in_memory, *in_file;
	struct on_disk d;
	struct file f;

	srand(2);
	for (int i = 0; i < 3000; i++) {
		if (i % 2)
			make_file(&f);
		else
			make_pipe(&f);
		if (i % 3 == 1)
			f.bytes[(size_t)rand() % f.size] = (uint8_t)rand();
		else if (i % 3 == 2)
			f.size = (size_t)rand() % f.size;
		to_disk(&d, &f);
		if (!perfdata_from_memory(&in_memory, f.bytes, f.size, NULL)) {
			assert_int_equal(perfdata_open_step(&in_file, d.path, NULL, NULL), 0);
			check_same_records(in_memory, in_file);
			perfdata_close(in_memory);
			perfdata_close(in_file);
		} else {
			assert_true(perfdata_open_step(&in_file, d.path, NULL, NULL) < 0);
		}
		close(d.fd);
	}
}

/* In every order of runs: sorted by time, records of equal time in their order in the file. */
TEST(test_order)
{
	const struct record_layout *layout;
	struct perfdata *pd;
	struct record r;
	struct file f;
	size_t size;

	srand(3);
	for (int round = 0; round < 500; round++) {
		uint64_t nr = (uint64_t)rand() % 150, time = 0, last_time = 0, last_ip = 0;
		int run = 1 + rand() % 20;

		make_pipe(&f);
		f.size -= 3 * 48 + 2 * 56;
		for (uint64_t i = 0; i < nr; i++) {
			time = i % (uint64_t)run ? time + (uint64_t)rand() % 3
						 : (uint64_t)rand() % 60;
			put_sample(&f, 7, 0x1000 + i, 100, time);
		}
		assert_int_equal(perfdata_from_memory(&pd, f.bytes, f.size, NULL), 0);
		assert_int_equal(perfdata_info(pd).nr_records, nr);
		for (uint64_t i = 0; i < nr; i++) {
			const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);

			assert_int_equal(record_decode(&r, layout, bytes, size), 0);
			assert_true(r.time_ns >= last_time);
			assert_true(r.time_ns > last_time || r.sample.ip > last_ip);
			last_time = r.time_ns;
			last_ip = r.sample.ip;
		}
		perfdata_close(pd);
	}
}

/* Records lie far apart, in an order that is not that of the file; then it is cut short. */
TEST(test_large_and_cut_short)
{
	static struct file f;
	const struct record_layout *layout;
	struct perfdata *pd;
	struct on_disk d;
	struct record r;
	size_t size;

	make_pipe(&f);
	f.size -= 3 * 48 + 2 * 56;
	for (uint64_t i = 0; i < 120; i++)
		put_sample(&f, 7, 0x1000 + i, 100, 1000 - (i % 4) * 200 + i);
	to_disk(&d, &f);
	assert_int_equal(perfdata_open_step(&pd, d.path, NULL, NULL), 0);
	assert_int_equal(perfdata_info(pd).nr_records, 120);
	for (uint64_t i = 0, last = 0; i < 120; i++) {
		const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);

		assert_non_null(bytes);
		assert_int_equal(record_decode(&r, layout, bytes, size), 0);
		assert_true(r.time_ns > last);
		assert_int_equal(r.time_ns,
				 1000 - ((r.sample.ip - 0x1000) % 4) * 200 + r.sample.ip - 0x1000);
		last = r.time_ns;
	}
	assert_int_equal(ftruncate(d.fd, 1024), 0);
	for (uint64_t i = 0, nr = 0; i < 120; i++) {
		nr += !perfdata_record(pd, i, &size, &layout);
		assert_true(i < 119 || nr > 0);
	}
	perfdata_close(pd);
	close(d.fd);
}

#define COPY_SIZE 2048

/* A sample with a stack copy of @stack_size bytes, @dyn of them valid, and a field behind it. */
static void put_stack(struct file *f, uint64_t stack_size, uint64_t dyn, uint64_t time)
{
	uint32_t ids[2] = { 100, 100 };

	put_header(f, PERF_RECORD_SAMPLE,
		   (uint16_t)(8 + 5 * 8 + 3 * 8 + 8 + stack_size + (stack_size ? 8 : 0) + 8));
	put_u64(f, 7);
	put_u64(f, 0x1000);
	put(f, ids, sizeof(ids));
	put_u64(f, time);
	put_u64(f, 1);
	put_u64(f, PERF_SAMPLE_REGS_ABI_64);
	put_u64(f, 11);
	put_u64(f, 12);
	put_u64(f, stack_size);
	for (uint64_t i = 0; i < stack_size / 8; i++)
		put_u64(f, time << 32 | i);
	if (stack_size)
		put_u64(f, dyn);
	put_u64(f, 1000 + time); /* data_src */
}

static void make_stacks(struct file *f)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_SW_CPU_CLOCK);

	attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_DATA_SRC;
	attr.sample_regs_user = 3;
	attr.sample_stack_user = COPY_SIZE;
	put_pipe(f, &attr);
	for (uint64_t i = 0; i < 6; i++)
		put_stack(f, i == 3 ? 0 : COPY_SIZE, i * 200 + 8, i < 4 ? 10 + i : 4 + i);
}

/* The record is @whole with less of the stack. */
static void check_part(const struct record *part, const struct record *whole)
{
	const struct record_sample *p = &part->sample, *w = &whole->sample;

	assert_true(p->stack_size && p->stack_size < w->stack_size);
	assert_int_equal(p->stack_dyn, MIN(w->stack_dyn, p->stack_size));
	assert_memory_equal(p->stack, (const char *)&(uint64_t){ p->time_ns << 32 }, 8);
	for (uint64_t i = 0, at; i < p->stack_size / 8; i++) {
		memcpy(&at, p->stack + 8 * i, sizeof(at));
		assert_int_equal(at, p->time_ns << 32 | i);
	}
	assert_int_equal(p->time_ns, w->time_ns);
	assert_int_equal(p->memory.data_src, 1000 + w->time_ns);
	assert_int_equal(part->id, whole->id);
}

/* A part of a sample is one with a smaller stack copy; other records are whole. */
TEST(test_part)
{
	const struct record_layout *layout;
	struct perfdata *in_file, *in_memory;
	struct record whole, part;
	struct on_disk d;
	struct file f;
	size_t size, nr = 0;
	bool is_part;

	make_stacks(&f);
	to_disk(&d, &f);
	assert_int_equal(perfdata_open_step(&in_file, d.path, NULL, NULL), 0);
	assert_int_equal(perfdata_from_memory(&in_memory, f.bytes, f.size, NULL), 0);
	assert_int_equal(perfdata_info(in_file).nr_records, 6);
	for (size_t begin = 0; begin < COPY_SIZE + 200; begin++)
		for (uint64_t i = 0; i < 6; i++) {
			const uint8_t *bytes = perfdata_record(in_memory, i, &size, &layout);

			assert_int_equal(record_decode(&whole, layout, bytes, size), 0);
			bytes = perfdata_record_part(in_file, i, begin, &size, &layout, &is_part);
			assert_int_equal(record_decode(&part, layout, bytes, size), 0);
			if (is_part)
				check_part(&part, &whole);
			else
				assert_int_equal(part.size, whole.size);
			nr += is_part;
		}
	/* Five have a stack: from its first word, at 80 of 2144 bytes, until 1024 are left. */
	assert_int_equal(nr, 5 * (2144 - 1024 - 88));
	assert_int_equal(ftruncate(d.fd, (off_t)f.size - 8), 0);
	assert_non_null(perfdata_record_part(in_file, 2, 400, &size, &layout, &is_part));
	assert_null(perfdata_record_part(in_file, 1, 400, &size, &layout, &is_part));
	perfdata_close(in_file);
	perfdata_close(in_memory);
}

/* The end of a part is read with the parts that are next in time and in the file, no others. */
TEST(test_parts_behind)
{
	const struct record_layout *layout;
	struct perfdata *pd;
	struct on_disk d;
	struct file f;
	size_t size;
	bool is_part;

	make_stacks(&f);
	put_stack(&f, COPY_SIZE, 8, 20);
	put_stack(&f, 0, 0, 21);
	put_stack(&f, COPY_SIZE, 8, 22);
	put_stack(&f, COPY_SIZE, 8, 19);
	to_disk(&d, &f);
	assert_int_equal(perfdata_open_step(&pd, d.path, NULL, NULL), 0);
	assert_int_equal(perfdata_info(pd).nr_records, 10);
	for (uint64_t i = 6; i < 10; i++) {
		const uint64_t behind = pd->bytes.window_at + pd->bytes.window_size;

		assert_non_null(perfdata_record_part(pd, i, 1000, &size, &layout, &is_part));
		/* Read with the sample before. */
		if (i == 8)
			assert_int_equal(pd->bytes.window_at + pd->bytes.window_size, behind);
		if (i == 9) {
			assert_true(pd->refs[9].at + 1000 <= behind);
			assert_in_range(pd->bytes.window_size, 1, 600);
		}
	}
	perfdata_close(pd);
	close(d.fd);
}

/* Samples with wrong sizes: the same records are refused in part and whole. */
TEST(test_damaged_part)
{
	const struct record_layout *layout;
	struct perfdata *pd;
	struct record r;
	struct on_disk d;
	struct file f;
	size_t size, nr = 0;
	bool is_part;

	srand(5);
	for (int round = 0; round < 3000; round++) {
		make_stacks(&f);
		for (int i = 0; i < 3; i++) {
			size_t sample = f.size - 6 * (COPY_SIZE + 96) + COPY_SIZE + 8, at;

			at = sample + (size_t)(rand() % 5) * (COPY_SIZE + 96) + (size_t)rand() % 96;
			f.bytes[MIN(at, f.size - 1)] = (uint8_t)rand();
		}
		to_disk(&d, &f);
		if (perfdata_open_step(&pd, d.path, NULL, NULL)) {
			close(d.fd);
			continue;
		}
		for (uint64_t i = 0; i < perfdata_info(pd).nr_records; i++) {
			const uint8_t *bytes = perfdata_record(pd, i, &size, &layout);
			int whole = record_decode(&r, layout, bytes, size);

			bytes = perfdata_record_part(pd, i, 300, &size, &layout, &is_part);
			nr += is_part;
			assert_int_equal(record_decode(&r, layout, bytes, size), whole);
		}
		perfdata_close(pd);
		close(d.fd);
	}
	assert_true(nr > 3000);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record: every layout field by field, every truncation refused, hostile
 * counts and sizes, in buffers of exactly the record's size (for ASan).
 */
#include "sampler/ring/ring.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/image/image.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

struct bytes {
	uint8_t data[8192];
	size_t size;
};

static void add(struct bytes *b, const void *src, size_t size)
{
	assert_true(b->size + size <= sizeof(b->data));
	memcpy(b->data + b->size, src, size);
	b->size += size;
}

static void add_u64(struct bytes *b, uint64_t v)
{
	add(b, &v, sizeof(v));
}

static void add_u32(struct bytes *b, uint32_t v)
{
	add(b, &v, sizeof(v));
}

static void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	b->size = 0;
	add(b, &header, sizeof(header));
}

static void set_size(struct bytes *b, size_t size)
{
	uint16_t s = (uint16_t)size;

	memcpy(b->data + offsetof(struct perf_event_header, size), &s, sizeof(s));
}

/* The copy decoded last: the target of the record's pointers. */
static uint8_t *copy;

/* Decode the first @size bytes from a heap block of just that size, at an odd address. */
static int decode_part(struct record *r, const struct record_layout *l, struct bytes *b,
		       size_t size)
{
	free(copy);
	copy = malloc(size + 1);
	assert_non_null(copy);
	if (size >= sizeof(struct perf_event_header))
		set_size(b, size);
	memcpy(copy + 1, b->data, size);
	return record_decode(r, l, copy + 1, size);
}

static int decode(struct record *r, const struct record_layout *l, struct bytes *b)
{
	return decode_part(r, l, b, b->size);
}

/*
 * Every shorter record is refused, and one with 8 bytes too many; behind a sample they are ignored.
 */
static void refuse_all_but(const struct record_layout *l, struct bytes *b)
{
	struct record r;
	size_t whole = b->size;

	for (size_t size = 0; size < whole; size++)
		if (decode_part(&r, l, b, size) != -EBADMSG)
			fail_msg("%zu of %zu bytes were accepted", size, whole);
	add_u64(b, 0);
	assert_int_equal(decode(&r, l, b), r.type == PERF_RECORD_SAMPLE ? 0 : -EBADMSG);
	b->size = whole;
}

static uint64_t word(const uint8_t *p, size_t i)
{
	uint64_t v;

	memcpy(&v, p + 8 * i, sizeof(v));
	return v;
}

static const struct record_layout ours = {
	.sample_type = RECORD_SAMPLE_TYPE | RECORD_STACK_TYPE,
	.regs_mask = 0xff0fff,
	.id_all = true,
};

static void add_head(struct bytes *b)
{
	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	add_u64(b, 77);	      /* identifier */
	add_u64(b, 0x401000); /* ip */
	add_u32(b, 100);
	add_u32(b, 101);
	add_u64(b, 123456789); /* time */
	add_u32(b, 3);	       /* cpu */
	add_u32(b, 0);
	add_u64(b, 1001001); /* period */
}

TEST(test_sample)
{
	struct bytes b;
	struct record r;

	add_head(&b);
	add_u64(&b, 3);
	add_u64(&b, PERF_CONTEXT_KERNEL);
	add_u64(&b, 0xffffffff81000000);
	add_u64(&b, 0xffffffff81000010);
	add_u64(&b, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < 20; i++)
		add_u64(&b, 1000 + i);
	add_u64(&b, 64);
	for (uint64_t i = 0; i < 8; i++)
		add_u64(&b, 2000 + i);
	add_u64(&b, 40);
	assert_int_equal(decode(&r, &ours, &b), 0);
	assert_int_equal(r.type, PERF_RECORD_SAMPLE);
	assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
	assert_int_equal(r.id, 77);
	assert_int_equal(r.time_ns, 123456789);
	assert_int_equal(r.cpu, 3);
	assert_int_equal(r.sample.id, 77);
	assert_int_equal(r.sample.ip, 0x401000);
	assert_int_equal(r.sample.pid, 100);
	assert_int_equal(r.sample.tid, 101);
	assert_int_equal(r.sample.cpu, 3);
	assert_int_equal(r.sample.period, 1001001);
	assert_int_equal(r.sample.nr_chain, 3);
	assert_int_equal(word(r.sample.chain, 0), PERF_CONTEXT_KERNEL);
	assert_int_equal(word(r.sample.chain, 2), 0xffffffff81000010);
	assert_int_equal(r.sample.regs_abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(word(r.sample.regs, 0), 1000);
	assert_int_equal(word(r.sample.regs, 19), 1019);
	assert_int_equal(r.sample.stack_size, 64);
	assert_int_equal(r.sample.stack_dyn, 40);
	assert_int_equal(word(r.sample.stack, 7), 2007);
	refuse_all_but(&ours, &b);
}

/* A kernel thread: no registers, a stack copy of size 0, and then no dyn_size either. */
TEST(test_sample_without_user)
{
	struct bytes b;
	struct record r;

	add_head(&b);
	add_u64(&b, 0);
	add_u64(&b, PERF_SAMPLE_REGS_ABI_NONE);
	add_u64(&b, 0);
	assert_int_equal(decode(&r, &ours, &b), 0);
	assert_null(r.sample.chain);
	assert_null(r.sample.regs);
	assert_null(r.sample.stack);
	assert_int_equal(r.sample.stack_size, 0);
	assert_int_equal(r.sample.stack_dyn, 0);
	refuse_all_but(&ours, &b);
}

TEST(test_dyn_size_is_clamped)
{
	static const uint64_t dyn[] = { 16, 17, 1ULL << 63, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(dyn); i++) {
		struct bytes b;
		struct record r;

		add_head(&b);
		add_u64(&b, 0);
		add_u64(&b, PERF_SAMPLE_REGS_ABI_NONE);
		add_u64(&b, 16);
		add_u64(&b, 1);
		add_u64(&b, 2);
		add_u64(&b, dyn[i]);
		assert_int_equal(decode(&r, &ours, &b), 0);
		assert_int_equal(r.sample.stack_dyn, 16);
	}
}

/* Counts and sizes with a product or sum that overflows. */
TEST(test_hostile_counts)
{
	static const uint64_t evil[] = {
		4,	    9,		1ULL << 60,    1ULL << 61, (1ULL << 61) + 1,
		1ULL << 63, UINT64_MAX, UINT64_MAX - 7
	};

	for (size_t i = 0; i < ARRAY_SIZE(evil); i++) {
		struct bytes b;
		struct record r;

		add_head(&b);
		add_u64(&b, evil[i]); /* chain */
		add_u64(&b, 0);
		add_u64(&b, 0);
		assert_int_equal(decode(&r, &ours, &b), -EBADMSG);
		add_head(&b);
		add_u64(&b, 0);
		add_u64(&b, PERF_SAMPLE_REGS_ABI_NONE);
		add_u64(&b, evil[i]); /* stack */
		add_u64(&b, 0);
		assert_int_equal(decode(&r, &ours, &b), -EBADMSG);
		if (evil[i] == PERF_SAMPLE_REGS_ABI_64)
			continue;
		add_head(&b);
		add_u64(&b, 0);
		add_u64(&b, evil[i]); /* abi */
		for (int j = 0; j < 20; j++)
			add_u64(&b, 0);
		add_u64(&b, 0);
		assert_int_equal(decode(&r, &ours, &b), -EBADMSG);
	}
}

TEST(test_header)
{
	struct perf_event_header h = { .type = PERF_RECORD_LOST_SAMPLES, .size = 16 };
	const struct record_layout plain = { 0 };
	struct {
		struct perf_event_header h;
		uint64_t lost;
	} rec = { h, 5 };
	struct record r;

	assert_int_equal(record_decode(&r, &plain, &rec, 16), 0);
	assert_int_equal(r.lost, 5);
	assert_int_equal(r.cpu, UINT32_MAX);
	rec.h.size = 24;
	assert_int_equal(record_decode(&r, &plain, &rec, 16), -EBADMSG);
	rec.h.size = 8;
	assert_int_equal(record_decode(&r, &plain, &rec, 16), -EBADMSG);
	assert_int_equal(record_decode(&r, &plain, &rec, 7), -EBADMSG);
	assert_int_equal(record_decode(&r, &plain, &rec, 0), -EBADMSG);
}

/* All fields that can be walked over, as a recording of others may have them. */
TEST(test_untrusted_layout)
{
	struct record_layout l = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW |
			       RECORD_STACK_TYPE,
		.regs_mask = 1,
	};
	struct bytes b;
	struct record r;

	for (uint32_t raw = 0; raw < 20; raw++) {
		begin(&b, PERF_RECORD_SAMPLE, 0);
		for (uint64_t i = 0; i < 8; i++)
			add_u64(&b, 10 + i);
		add_u32(&b, raw);
		for (uint32_t i = 0; i < raw || (b.size & 7); i++)
			add(&b, "x", 1);
		add_u64(&b, PERF_SAMPLE_REGS_ABI_32);
		add_u64(&b, 0xabc);
		add_u64(&b, 8);
		add_u64(&b, 0xdef);
		add_u64(&b, 8);
		assert_int_equal(decode(&r, &l, &b), 0);
		assert_int_equal(r.sample.ip, 10);
		assert_int_equal(r.time_ns, 12);
		assert_int_equal(r.id, 14);
		assert_int_equal(r.cpu, 16);
		assert_int_equal(r.sample.period, 17);
		assert_int_equal(r.sample.raw_size, raw);
		assert_true(!raw || *r.sample.raw == 'x');
		assert_int_equal(word(r.sample.regs, 0), 0xabc);
		assert_int_equal(word(r.sample.stack, 0), 0xdef);
		refuse_all_but(&l, &b);
	}
	/* later fields may follow */
	l.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
	add_u64(&b, 1);
	add_u64(&b, 2);
	assert_int_equal(decode(&r, &l, &b), 0);
}

/* Branches are behind the raw data and before the registers: @nr of them, as @branch_type has it.
 */
static void put_branches(struct bytes *b, uint64_t nr, uint64_t branch_type)
{
	add_u64(b, nr);
	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		add_u64(b, UINT64_MAX);
	for (uint64_t i = 0; i < 3 * nr; i++)
		add_u64(b, 0xb0b0 + i);
	for (uint64_t i = 0; branch_type & 1 << 19 && i < nr; i++)
		add_u64(b, 3);
}

/* Flags of a branch; and a sample for which the hardware has none lacks their index also. */
TEST(test_branch_flags)
{
	struct record_layout l = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT,
		.branch_type = PERF_SAMPLE_BRANCH_HW_INDEX | PERF_SAMPLE_BRANCH_CALL_STACK,
	};
	struct record_branch branch;
	struct bytes b;
	struct record r;

	begin(&b, PERF_RECORD_SAMPLE, 0);
	add_u64(&b, 0x1234);
	add_u64(&b, 1);
	add_u64(&b, 9);
	add_u64(&b, 0xf0);
	add_u64(&b, 0x70);
	add_u64(&b, 1 | 1 << 2 | 0x1234 << 4 | 1ULL << 60);
	add_u64(&b, 77);
	assert_int_equal(decode(&r, &l, &b), 0);
	assert_true(r.sample.lbr_calls);
	assert_int_equal(r.sample.memory.weight, 77);
	branch = record_branch(&r.sample, 0);
	assert_true(branch.mispredicted && branch.in_tx && !branch.predicted && !branch.abort);
	assert_int_equal(branch.cycles, 0x1234);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	add_u64(&b, 0x1234);
	add_u64(&b, 0);
	add_u64(&b, 77);
	assert_int_equal(decode(&r, &l, &b), 0);
	assert_int_equal(r.sample.memory.weight, 77);
	assert_int_equal(r.sample.ip, 0x1234);
	/* The index is there, and bytes of another profiler follow: they move no field. */
	begin(&b, PERF_RECORD_SAMPLE, 0);
	add_u64(&b, 0x1234);
	add_u64(&b, 0);
	add_u64(&b, 9);
	add_u64(&b, 77);
	add_u64(&b, 0xdead);
	assert_int_equal(decode(&r, &l, &b), 0);
	assert_int_equal(r.sample.memory.weight, 77);
	/* Not if there are branches. */
	begin(&b, PERF_RECORD_SAMPLE, 0);
	for (int i = 0; i < 6; i++)
		add_u64(&b, 1);
	assert_int_equal(decode(&r, &l, &b), -EBADMSG);
}

/* The fields behind the stack, in the kernel's order, alone and together. */
TEST(test_memory)
{
	static const uint64_t types[] = {
		PERF_SAMPLE_WEIGHT,	    PERF_SAMPLE_DATA_SRC,	PERF_SAMPLE_TRANSACTION,
		PERF_SAMPLE_REGS_INTR,	    PERF_SAMPLE_PHYS_ADDR,	PERF_SAMPLE_CGROUP,
		PERF_SAMPLE_DATA_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE, PERF_SAMPLE_AUX
	};
	struct record_layout l = { .intr_mask = 5 };
	struct bytes b;
	struct record r;

	for (uint32_t set = 0; set < 1 << ARRAY_SIZE(types); set++) {
		const struct record_memory *m = &r.sample.memory;

		l.sample_type = PERF_SAMPLE_IP;
		begin(&b, PERF_RECORD_SAMPLE, 0);
		add_u64(&b, 0x1234);
		for (uint32_t i = 0; i < ARRAY_SIZE(types); i++) {
			if (!(set >> i & 1))
				continue;
			l.sample_type |= types[i];
			if (types[i] == PERF_SAMPLE_AUX || types[i] == PERF_SAMPLE_REGS_INTR) {
				add_u64(&b, types[i] == PERF_SAMPLE_AUX ? 16 : 2);
				add_u64(&b, 1);
			}
			add_u64(&b, 100 + i);
		}
		assert_int_equal(decode(&r, &l, &b), 0);
		assert_int_equal(m->weight, set & 1 ? 100 : 0);
		assert_int_equal(m->data_src, set & 2 ? 101 : 0);
		assert_int_equal(m->phys_addr, set & 16 ? 104 : 0);
		assert_int_equal(m->page_size, set & 64 ? 106 : 0);
		assert_int_equal(m->code_page_size, set & 128 ? 107 : 0);
		if (!set)
			continue;
		b.size -= 8;
		assert_int_equal(decode(&r, &l, &b), -EBADMSG);
	}
	l.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT;
	begin(&b, PERF_RECORD_SAMPLE, 0);
	add_u64(&b, 0x1234);
	add_u64(&b, 0xadd);
	add_u64(&b, 7ULL << 32 | 40);
	assert_int_equal(decode(&r, &l, &b), 0);
	assert_int_equal(r.sample.memory.addr, 0xadd);
	assert_int_equal(r.sample.memory.weight, 40);
	assert_int_equal(r.sample.memory.fields, PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT);
}

/* The level that had the data: by number, else by bits, as older kernels and CPUs have it. */
TEST(test_access_kind)
{
	static const struct {
		union perf_mem_data_src d;
		const char *op, *level;
		bool miss, tlb_miss;
	} cases[] = {
		{ { .val = 0 }, "", "unknown", false, false },
		{ { .mem_op = PERF_MEM_OP_LOAD, .mem_lvl = PERF_MEM_LVL_L1 | PERF_MEM_LVL_HIT },
		  "load",
		  "L1",
		  false,
		  false },
		{ { .mem_op = PERF_MEM_OP_STORE,
		    .mem_lvl = PERF_MEM_LVL_L1 | PERF_MEM_LVL_MISS,
		    .mem_dtlb = PERF_MEM_TLB_MISS },
		  "store",
		  "L1",
		  true,
		  true },
		{ { .mem_op = PERF_MEM_OP_LOAD,
		    .mem_lvl = PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_HIT },
		  "load",
		  "remote RAM",
		  false,
		  false },
		{ { .mem_lvl = PERF_MEM_LVL_HIT, .mem_lvl_num = PERF_MEM_LVLNUM_RAM },
		  "",
		  "RAM",
		  false,
		  false },
		{ { .mem_lvl_num = PERF_MEM_LVLNUM_RAM, .mem_remote = 1 },
		  "",
		  "remote RAM",
		  false,
		  false },
		{ { .mem_op = PERF_MEM_OP_PFETCH,
		    .mem_lvl = PERF_MEM_LVL_NA,
		    .mem_lvl_num = PERF_MEM_LVLNUM_NA },
		  "prefetch",
		  "unknown",
		  false,
		  false },
		{ { .mem_lvl_num = PERF_MEM_LVLNUM_ANY_CACHE, .mem_remote = 1 },
		  "",
		  "remote cache",
		  false,
		  false },
		{ { .val = UINT64_MAX }, "store", "L1", true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct access_kind k = access_kind(cases[i].d.val);

		assert_string_equal(access_op_name(k.op), cases[i].op);
		assert_string_equal(access_level_name(k.level), cases[i].level);
		assert_int_equal(k.miss, cases[i].miss);
		assert_int_equal(k.tlb_miss, cases[i].tlb_miss);
	}
}

TEST(test_branches)
{
	static const uint64_t types[] = { 0, PERF_SAMPLE_BRANCH_HW_INDEX, 1 << 19,
					  PERF_SAMPLE_BRANCH_HW_INDEX | 1 << 19 };
	struct record_layout l = {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.regs_mask = 3,
	};
	struct bytes b;
	struct record r;

	for (size_t i = 0; i < 16; i++) {
		l.branch_type = types[i / 4];
		begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
		add_u64(&b, 0x1234);
		add_u64(&b, 1);
		add_u64(&b, 0x1234);
		put_branches(&b, i % 4, l.branch_type);
		add_u64(&b, PERF_SAMPLE_REGS_ABI_64);
		add_u64(&b, 11);
		add_u64(&b, 22);
		add_u64(&b, 8);
		add_u64(&b, 0xabcd);
		add_u64(&b, 8);
		assert_int_equal(decode(&r, &l, &b), 0);
		assert_int_equal(r.sample.ip, 0x1234);
		assert_int_equal(r.sample.nr_chain, 1);
		assert_int_equal(r.sample.stack_size, 8);
		assert_int_equal(r.sample.cpumode, PERF_RECORD_MISC_USER);
		assert_memory_equal(r.sample.regs + 8, "\x16\0\0\0\0\0\0\0", 8);
		assert_int_equal(r.sample.nr_branches, i % 4);
		for (uint32_t k = 0; k < i % 4; k++) {
			assert_int_equal(record_branch(&r.sample, k).from, 0xb0b0 + 3 * k);
			assert_int_equal(record_branch(&r.sample, k).to, 0xb0b1 + 3 * k);
		}
	}
	/* More branches than the record has bytes; their size overflows. */
	for (uint64_t nr = 1; nr; nr <<= 1) {
		begin(&b, PERF_RECORD_SAMPLE, 0);
		add_u64(&b, 0x1234);
		add_u64(&b, 0);
		add_u64(&b, nr);
		assert_int_equal(decode(&r, &l, &b), -EBADMSG);
	}
}

/* Counts of a group are between period and call chain; the read format gives their size. */
TEST(test_reads)
{
	struct record_layout l = {
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_READ |
			       PERF_SAMPLE_CALLCHAIN,
	};
	struct bytes b;
	struct record r;

	for (uint64_t format = 0; format < 32; format++) {
		bool group = format & PERF_FORMAT_GROUP, id = format & PERF_FORMAT_ID;
		uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
				 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
		uint64_t nr = group ? 3 : 1, words = 1 + id + !!(format & PERF_FORMAT_LOST);

		l.read_format = format;
		begin(&b, PERF_RECORD_SAMPLE, 0);
		add_u64(&b, 77);
		add_u64(&b, 0x1234);
		if (group)
			add_u64(&b, nr);
		for (uint64_t i = 0; i < times; i++)
			add_u64(&b, 1000 + i);
		for (uint64_t i = 0; i < nr * words; i++)
			add_u64(&b, 100 + i);
		add_u64(&b, 1);
		add_u64(&b, 0xabcd);
		assert_int_equal(decode(&r, &l, &b), 0);
		assert_int_equal(r.sample.nr_chain, 1);
		assert_int_equal(word(r.sample.chain, 0), 0xabcd);
		assert_int_equal(r.sample.nr_reads, group && id ? 3 : 0);
		if (group && id) {
			assert_int_equal(r.sample.read_size, 8 * words);
			assert_int_equal(word(r.sample.reads, words), 100 + words);
		}
		refuse_all_but(&l, &b);
	}
}

/* The trailer of RECORD_SAMPLE_TYPE: TID, TIME, CPU, IDENTIFIER. */
static void add_trailer(struct bytes *b, uint64_t time, uint32_t cpu, uint64_t id)
{
	add_u32(b, 900);
	add_u32(b, 901);
	add_u64(b, time);
	add_u32(b, cpu);
	add_u32(b, 0);
	add_u64(b, id);
}

static void check_trailer(const struct record *r)
{
	assert_int_equal(r->time_ns, 555);
	assert_int_equal(r->cpu, 2);
	assert_int_equal(r->id, 42);
}

static void add_range(struct bytes *b)
{
	add_u32(b, 7);
	add_u32(b, 8);
	add_u64(b, 0x7f0000000000);
	add_u64(b, 0x21000);
	add_u64(b, 0x1000);
}

static void check_range(const struct record *r)
{
	assert_int_equal(r->mmap.pid, 7);
	assert_int_equal(r->mmap.tid, 8);
	assert_int_equal(r->mmap.start, 0x7f0000000000);
	assert_int_equal(r->mmap.size, 0x21000);
	assert_int_equal(r->mmap.pgoff, 0x1000);
	assert_int_equal(r->mmap.filename_size, 11);
	assert_memory_equal(r->mmap.filename, "/lib/libc.6", 12);
}

TEST(test_mmap2)
{
	struct bytes b;
	struct record r;

	begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	add_range(&b);
	add_u32(&b, 254);
	add_u32(&b, 1);
	add_u64(&b, 123456);
	add_u64(&b, 99);
	add_u32(&b, PROT_READ | PROT_EXEC);
	add_u32(&b, MAP_PRIVATE);
	add(&b, "/lib/libc.6\0\0\0\0\0", 16);
	add_trailer(&b, 555, 2, 42);
	assert_int_equal(decode(&r, &ours, &b), 0);
	check_trailer(&r);
	check_range(&r);
	assert_int_equal(r.mmap.identity.maj, 254);
	assert_int_equal(r.mmap.identity.min, 1);
	assert_int_equal(r.mmap.identity.ino, 123456);
	assert_int_equal(r.mmap.identity.ino_generation, 99);
	assert_int_equal(r.mmap.identity.build_id_size, 0);
	assert_int_equal(r.mmap.prot, PROT_READ | PROT_EXEC);
}

TEST(test_mmap2_build_id)
{
	struct bytes b;
	struct record r;

	for (unsigned int size = 0; size < 256; size++) {
		uint8_t id[24] = { (uint8_t)size, 0, 0, 0 };

		for (int i = 0; i < 20; i++)
			id[4 + i] = (uint8_t)(0xa0 + i);
		begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
		add_range(&b);
		add(&b, id, sizeof(id));
		add_u32(&b, PROT_EXEC);
		add_u32(&b, 0);
		add(&b, "/lib/libc.6\0\0\0\0\0", 16);
		add_trailer(&b, 555, 2, 42);
		if (size > 20) {
			assert_int_equal(decode(&r, &ours, &b), -EBADMSG);
			continue;
		}
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_range(&r);
		assert_int_equal(r.mmap.identity.build_id_size, size);
		assert_memory_equal(r.mmap.identity.build_id, id + 4, size);
		assert_int_equal(r.mmap.identity.ino, 0);
		assert_int_equal(r.mmap.prot, PROT_EXEC);
	}
}

TEST(test_mmap)
{
	struct bytes b;
	struct record r;

	for (int data = 0; data < 2; data++) {
		begin(&b, PERF_RECORD_MMAP, data ? PERF_RECORD_MISC_MMAP_DATA : 0);
		add_range(&b);
		add(&b, "/lib/libc.6\0\0\0\0\0", 16);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_range(&r);
		assert_int_equal(!!(r.mmap.prot & PROT_EXEC), !data);
	}
}

/* Without its NUL a string would run into the trailer. */
TEST(test_unterminated_string)
{
	struct bytes b;
	struct record r;

	begin(&b, PERF_RECORD_COMM, 0);
	add_u64(&b, 5);
	add(&b, "ABCDEFGH", 8);
	add_trailer(&b, 555, 2, 42);
	assert_int_equal(decode(&r, &ours, &b), -EBADMSG);
	begin(&b, PERF_RECORD_COMM, 0);
	add_u64(&b, 5);
	add_trailer(&b, 555, 2, 42);
	assert_int_equal(decode(&r, &ours, &b), -EBADMSG);
}

TEST(test_comm)
{
	struct bytes b;
	struct record r;

	for (int exec = 0; exec < 2; exec++) {
		begin(&b, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
		add_u32(&b, 70);
		add_u32(&b, 71);
		add(&b, "\033[1m)\n\0\0", 8);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_trailer(&r);
		assert_int_equal(r.comm.pid, 70);
		assert_int_equal(r.comm.tid, 71);
		assert_int_equal(r.comm.comm_size, 6);
		assert_memory_equal(r.comm.comm, "\033[1m)\n", 7);
		assert_int_equal(r.comm.exec, exec);
	}
}

TEST(test_ksymbol)
{
	struct bytes b;
	struct record r;

	for (uint32_t gone = 0; gone < 2; gone++) {
		begin(&b, PERF_RECORD_KSYMBOL, 0);
		add_u64(&b, 0xffffffffc0001000);
		add_u32(&b, 300);
		add_u32(&b, PERF_RECORD_KSYMBOL_TYPE_BPF | gone << 16);
		add(&b, "bpf_prog_123_x\0", 16);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_trailer(&r);
		assert_int_equal(r.ksymbol.start, 0xffffffffc0001000);
		assert_int_equal(r.ksymbol.size, 300);
		assert_int_equal(r.ksymbol.type, PERF_RECORD_KSYMBOL_TYPE_BPF);
		assert_int_equal(r.ksymbol.gone, gone);
		assert_int_equal(r.ksymbol.name_size, 14);
		assert_string_equal(r.ksymbol.name, "bpf_prog_123_x");
	}
}

TEST(test_bpf)
{
	struct bytes b;
	struct record r;

	begin(&b, PERF_RECORD_BPF_EVENT, 0);
	add_u32(&b, PERF_BPF_EVENT_PROG_LOAD);
	add_u32(&b, 77);
	add_u64(&b, 0x1234567812345678);
	add_trailer(&b, 555, 2, 42);
	assert_int_equal(decode(&r, &ours, &b), 0);
	assert_int_equal(r.bpf.type, PERF_BPF_EVENT_PROG_LOAD);
	assert_int_equal(r.bpf.id, 77);
	for (size_t size = 0; size < b.size; size++)
		assert_int_equal(decode_part(&r, &ours, &b, size), -EBADMSG);
}

/* Beside other profilers, the kernel makes these records too long. */
TEST(test_too_long)
{
	static const char name[24] = "bpf_prog_123_long_name";
	struct bytes b;
	struct record r;
	size_t size;

	for (unsigned int i = 1; i < 10; i++) {
		begin(&b, PERF_RECORD_KSYMBOL, 0);
		add_u64(&b, 0xffffffffc0001000);
		add_u32(&b, 300);
		add_u32(&b, PERF_RECORD_KSYMBOL_TYPE_BPF);
		add(&b, name, sizeof(name));
		add_trailer(&b, 555, 2, 42);
		size = b.size;
		for (unsigned int j = 0; j < 3 * i; j++)
			add_u64(&b, 0xdeadbeef);
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_trailer(&r);
		assert_int_equal(r.size, size);
		assert_string_equal(r.ksymbol.name, name);

		begin(&b, PERF_RECORD_BPF_EVENT, 0);
		add_u32(&b, PERF_BPF_EVENT_PROG_LOAD);
		add_u32(&b, 77);
		add_u64(&b, 0x1234567812345678);
		add_trailer(&b, 555, 2, 42);
		size = b.size;
		for (unsigned int j = 0; j < i; j++)
			add_u64(&b, 0xdeadbeef);
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_trailer(&r);
		assert_int_equal(r.size, size);
		assert_int_equal(r.bpf.id, 77);
	}
}

TEST(test_task)
{
	static const uint32_t types[] = { PERF_RECORD_FORK, PERF_RECORD_EXIT };
	const struct record_layout plain = { 0 };
	struct bytes b;
	struct record r;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		begin(&b, types[i], 0);
		for (uint32_t v = 1; v <= 4; v++)
			add_u32(&b, v);
		add_u64(&b, 666);
		/* no trailer: the record's time is used */
		assert_int_equal(decode(&r, &plain, &b), 0);
		assert_int_equal(r.time_ns, 666);
		refuse_all_but(&plain, &b);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), 0);
		check_trailer(&r);
		assert_int_equal(r.task.pid, 1);
		assert_int_equal(r.task.ppid, 2);
		assert_int_equal(r.task.tid, 3);
		assert_int_equal(r.task.ptid, 4);
		assert_int_equal(r.task.time_ns, 666);
		refuse_all_but(&ours, &b);
	}
}

TEST(test_lost_and_throttle)
{
	const struct record_layout plain = { 0 };
	struct bytes b;
	struct record r;

	begin(&b, PERF_RECORD_LOST, 0);
	add_u64(&b, 13);
	add_u64(&b, UINT64_MAX);
	assert_int_equal(decode(&r, &plain, &b), 0);
	assert_int_equal(r.id, 13);
	assert_int_equal(r.lost, UINT64_MAX);
	add_trailer(&b, 555, 2, 42);
	assert_int_equal(decode(&r, &ours, &b), 0);
	check_trailer(&r);
	refuse_all_but(&ours, &b);
	for (uint32_t type = PERF_RECORD_THROTTLE; type <= PERF_RECORD_UNTHROTTLE; type++) {
		begin(&b, type, 0);
		add_u64(&b, 4711);
		add_u64(&b, 14);
		add_u64(&b, 15);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), 0);
		assert_int_equal(r.type, type);
		assert_int_equal(r.time_ns, 4711);
		assert_int_equal(r.throttle_id, 14);
		assert_int_equal(r.cpu, 2);
		refuse_all_but(&ours, &b);
	}
}

/* Samples that the BPF filter of perf record discarded are not lost. */
TEST(test_filtered)
{
	struct bytes b;
	struct record r;

	for (uint16_t misc = 0; misc <= 1; misc++) {
		begin(&b, PERF_RECORD_LOST_SAMPLES, (uint16_t)(misc << 15));
		add_u64(&b, 4711);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), 0);
		assert_int_equal(r.lost, misc ? 0 : 4711);
		refuse_all_but(&ours, &b);
	}
}

/* The user chain of samples that ended in its number. */
TEST(test_deferred_chain)
{
	struct bytes b;
	struct record r;

	begin(&b, RECORD_CHAIN_DEFERRED, PERF_RECORD_MISC_USER);
	add_u64(&b, 77);
	add_u64(&b, 2);
	add_u64(&b, (uint64_t)PERF_CONTEXT_USER);
	add_u64(&b, 0x401000);
	add_trailer(&b, 555, 2, 42);
	assert_int_equal(decode(&r, &ours, &b), 0);
	assert_int_equal(r.chain.cookie, 77);
	assert_int_equal(r.chain.nr, 2);
	assert_int_equal(bytes_u64(r.chain.ips + 8), 0x401000);
	check_trailer(&r);
	refuse_all_but(&ours, &b);
}

TEST(test_unknown_types)
{
	static const uint32_t types[] = {
		0,  PERF_RECORD_READ, PERF_RECORD_AUX, PERF_RECORD_NAMESPACES, 23,
		64, 0x80000000,	      UINT32_MAX
	};
	struct bytes b;
	struct record r;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		begin(&b, types[i], 0x1234);
		add_u64(&b, 1);
		add_trailer(&b, 555, 2, 42);
		assert_int_equal(decode(&r, &ours, &b), -ENOTSUP);
		assert_int_equal(r.type, types[i]);
		assert_int_equal(r.misc, 0x1234);
		check_trailer(&r);
	}
}

static int teardown(void **state)
{
	free(copy);
	copy = NULL;
	return 0;
}

int main(void)
{
	return run_unit_tests(NULL, teardown);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consumer's side of one perf ring, read in place; a record: bytes → fields.
 *
 * Runs on: a ring: its consumer (its CPU's sampler thread, or the holder of the drain lock);
 * ring_waiting(), ring_written() any; ring_copy_...(): a thread beside the consumer. A record: any
 * thread, pure.
 */
#include "sampler/ring/ring.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"

/*
 * A ring. Invariant: tail <= head <= tail + size, and the kernel's data_tail is never past a record
 * that is still being read.
 */

/* Acquire: the records up to the head are readable; pairs with the kernel's store of data_head. */
static uint64_t head_load(const struct ring *r)
{
	return atomic_load_explicit((_Atomic __u64 *)&r->page->data_head, memory_order_acquire);
}

/* Release: our reads precede the kernel's reuse of the space; pairs with its load of data_tail. */
static void tail_store(struct ring *r, uint64_t tail)
{
	atomic_store_explicit((_Atomic __u64 *)&r->page->data_tail, tail, memory_order_release);
}

/* Map page and data; the data area starts one page into the mapping. */
int ring_open(struct ring *r, int fd, size_t size)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	void *map;

	memset(r, 0, sizeof(*r));
	if (size < page_size || (size & (size - 1)))
		return -EINVAL;
	map = mmap(NULL, page_size + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	ring_init(r, map, (uint8_t *)map + page_size, size);
	r->map_size = page_size + size;
	return 0;
}

void ring_close(struct ring *r)
{
	if (r->map_size)
		munmap(r->page, r->map_size);
	free(r->scratch);
	memset(r, 0, sizeof(*r));
}

/* We no longer know where records start: the only safe place is the head. */
static void ring_resync(struct ring *r)
{
	r->nr_bad++;
	r->tail = r->last = r->head;
}

/* Fix the end of the batch, so that a fast producer cannot keep the consumer in it. */
bool ring_begin(struct ring *r)
{
	if (!r->page)
		return false;
	r->head = head_load(r);
	r->last = r->tail;
	if (r->head - r->tail > r->size) {
		ring_resync(r);
		tail_store(r, r->tail);
	}
	r->high = MAX(r->high, r->head - r->tail);
	assert(r->head - r->tail <= r->size);
	return r->head != r->tail;
}

void ring_copy_out(const struct ring *r, uint64_t pos, void *out, size_t size)
{
	uint64_t at = pos & (r->size - 1);
	size_t first = MIN(size, r->size - at);

	assert(size <= r->size);
	memcpy(out, r->data + at, first);
	memcpy((uint8_t *)out + first, r->data, size - first);
}

/* Return the next whole record: in place, or in scratch if it wraps or is not aligned. */
const struct perf_event_header *ring_next(struct ring *r)
{
	struct perf_event_header header;
	uint64_t left = r->head - r->tail;
	const uint8_t *in_place;

	assert(left <= r->size);
	if (!left)
		return NULL;
	if (left < sizeof(header)) {
		ring_resync(r);
		return NULL;
	}
	ring_copy_out(r, r->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > left) {
		ring_resync(r);
		return NULL;
	}
	in_place = r->data + (r->tail & (r->size - 1));
	r->last = r->tail;
	r->tail += header.size;
	if (in_place + header.size <= r->data + r->size &&
	    !((uintptr_t)in_place % _Alignof(struct perf_event_header)))
		return (const struct perf_event_header *)in_place;
	_Static_assert(UINT16_MAX <= RING_SCRATCH, "a record fits: its size has 16 bits");
	assert(r->tail - r->last == header.size);
	ring_copy_out(r, r->last, r->scratch, header.size);
	/* Whatever the ring says by now: the size that was checked goes with the copy. */
	memcpy(r->scratch, &header, sizeof(header));
	return (const struct perf_event_header *)r->scratch;
}

void ring_release(struct ring *r)
{
	assert(r->tail - r->last <= r->size);
	if (r->page)
		tail_store(r, r->last);
}

void ring_end(struct ring *r)
{
	assert(r->tail <= r->head);
	if (!r->page)
		return;
	r->last = r->tail;
	tail_store(r, r->tail);
}

double ring_take_high(struct ring *r)
{
	double high = r->size ? (double)r->high / (double)r->size : 0;

	r->high = 0;
	return high;
}

uint64_t ring_take_bad(struct ring *r)
{
	uint64_t nr_bad = r->nr_bad;

	r->nr_bad = 0;
	return nr_bad;
}

uint64_t ring_written(const struct ring *r)
{
	return r->page ? head_load(r) : 0;
}

uint64_t ring_waiting(const struct ring *r)
{
	uint64_t tail;

	if (!r->page)
		return 0;
	tail = atomic_load_explicit((_Atomic __u64 *)&r->page->data_tail, memory_order_relaxed);
	return MIN(head_load(r) - tail, r->size);
}

/*
 * One record, by a cursor that checks every step; taken branches and accesses to memory.
 *
 * Invariant: no byte outside [bytes, bytes + size) is read, and a record that is accepted was used
 * up exactly: after trim(), and but for bytes behind the fields of a sample.
 */

/* Fields of the trailer of records that are not samples (sample_id_all). */
#define ID_BLOCK                                                                                   \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* The fields of a sample with a fixed size; they are first. */
#define FIXED                                                                                      \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |             \
	 PERF_SAMPLE_PERIOD)

/* Bytes of BPF_EVENT between the header and the id block, and of KSYMBOL before the name. */
#define BPF_BODY 16

#define KSYMBOL_NAME 16

/* In misc of LOST_SAMPLES, set by perf: a filter of the user discarded them. */
#define MISC_LOST_FILTERED (1U << 15)

/* One taken branch: from, to, flags. */
#define BRANCH_SIZE 24

/* Since Linux 6.8, a bit of branch_sample_type: a word of counters for each branch, behind all. */
#define BRANCH_COUNTERS (1ULL << 19)

#define WEIGHTS (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)

/* The fields of the access to memory. */
#define MEMORY                                                                                     \
	(PERF_SAMPLE_ADDR | WEIGHTS | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR |               \
	 PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

/* The fields behind the copy of the user stack. */
#define TAIL                                                                                       \
	(((uint64_t)PERF_SAMPLE_WEIGHT_STRUCT * 2 - PERF_SAMPLE_STACK_USER * 2) &                  \
	 ~(uint64_t)PERF_SAMPLE_IDENTIFIER)

/* The bytes of a record not read yet. @bad sticks: check it once, after a run of steps. */
struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static const uint8_t *take(struct cursor *c, uint64_t size)
{
	const uint8_t *p = c->p;

	assert(c->p <= c->end);
	if (c->bad || size > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += size;
	return p;
}

/* Read a word of bytes that were taken before. */
static uint64_t next_u64(const uint8_t **p)
{
	uint64_t v;

	memcpy(&v, *p, sizeof(v));
	*p += sizeof(v);
	return v;
}

static uint32_t next_u32(const uint8_t **p)
{
	uint32_t v;

	memcpy(&v, *p, sizeof(v));
	*p += sizeof(v);
	return v;
}

static uint64_t take_u64(struct cursor *c)
{
	const uint8_t *p = take(c, sizeof(uint64_t));

	return p ? next_u64(&p) : 0;
}

static uint32_t take_u32(struct cursor *c)
{
	const uint8_t *p = take(c, sizeof(uint32_t));

	return p ? next_u32(&p) : 0;
}

/* Take an array of @nr u64s; NULL also when it is empty. */
static const uint8_t *take_array(struct cursor *c, uint64_t nr)
{
	if (nr > (uint64_t)(c->end - c->p) / sizeof(uint64_t)) {
		c->bad = true;
		return NULL;
	}
	return nr ? take(c, nr * sizeof(uint64_t)) : NULL;
}

/* Take the NUL-terminated, padded string that ends a record. */
static const char *take_string(struct cursor *c, size_t *size)
{
	size_t left = (size_t)(c->end - c->p);
	const char *str = (const char *)c->p;

	*size = strnlen(str, left);
	if (*size == left)
		c->bad = true;
	c->p = c->end;
	return str;
}

/* Take PERF_SAMPLE_RAW: its size word and its bytes together are padded to 8. */
static void take_raw(struct cursor *c, struct record_sample *s)
{
	uint64_t size = take_u32(c);

	s->raw = take(c, size);
	s->raw_size = s->raw ? (uint32_t)size : 0;
	if ((sizeof(uint32_t) + size) % 8)
		take(c, 8 - (sizeof(uint32_t) + size) % 8);
}

/* Take PERF_SAMPLE_BRANCH_STACK: a count, an index on request, the branches, their counters. */
static void take_branches(struct cursor *c, uint64_t branch_type, struct record_sample *s)
{
	uint64_t nr = take_u64(c), size = BRANCH_SIZE;

	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		take_u64(c);
	if (branch_type & BRANCH_COUNTERS)
		size += sizeof(uint64_t);
	if (nr > UINT16_MAX / size)
		c->bad = true;
	s->branches = take(c, nr * size);
	s->nr_branches = s->branches ? (uint32_t)nr : 0;
	s->lbr_calls = branch_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

struct record_branch record_branch(const struct record_sample *s, uint32_t index)
{
	const uint8_t *p = s->branches + (size_t)index * BRANCH_SIZE;
	struct record_branch b = { 0 };
	uint64_t flags;

	assert(index < s->nr_branches);
	b.from = next_u64(&p);
	b.to = next_u64(&p);
	flags = next_u64(&p);
	b.mispredicted = flags & 1;
	b.predicted = flags >> 1 & 1;
	b.in_tx = flags >> 2 & 1;
	b.abort = flags >> 3 & 1;
	b.cycles = (uint16_t)(flags >> 4);
	return b;
}

/* Take the copy of the user stack; the bytes past @stack_dyn are old ring content. */
static void take_stack(struct cursor *c, struct record_sample *s)
{
	uint64_t dyn;

	s->stack_size = take_u64(c);
	if (!s->stack_size)
		return;
	s->stack = take(c, s->stack_size);
	dyn = take_u64(c);
	s->stack_dyn = MIN(dyn, s->stack_size);
}

/* Take the fields of fixed size, up to the period: all of them, or none. */
static void take_fixed(struct cursor *c, uint64_t type, struct record_sample *s)
{
	const uint8_t *p = take(c, 8 * (uint64_t)__builtin_popcountll(type & FIXED));

	s->cpu = UINT32_MAX;
	if (!p)
		return;
	if (type & PERF_SAMPLE_IDENTIFIER)
		s->id = next_u64(&p);
	if (type & PERF_SAMPLE_IP)
		s->ip = next_u64(&p);
	if (type & PERF_SAMPLE_TID) {
		s->pid = next_u32(&p);
		s->tid = next_u32(&p);
	}
	if (type & PERF_SAMPLE_TIME)
		s->time_ns = next_u64(&p);
	if (type & PERF_SAMPLE_ADDR)
		s->memory.addr = next_u64(&p);
	if (type & PERF_SAMPLE_ID)
		s->id = next_u64(&p);
	if (type & PERF_SAMPLE_STREAM_ID)
		next_u64(&p);
	if (type & PERF_SAMPLE_CPU) {
		s->cpu = next_u32(&p);
		next_u32(&p);
	}
	if (type & PERF_SAMPLE_PERIOD)
		s->period = next_u64(&p);
}

/* Take the counts of the event or its group: kept where ids say which event each belongs to. */
static void take_reads(struct cursor *c, uint64_t format, struct record_sample *s)
{
	uint64_t nr = format & PERF_FORMAT_GROUP ? take_u64(c) : 1;
	uint64_t words = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	const uint8_t *p;

	if (!(format & PERF_FORMAT_GROUP)) {
		take(c, 8 * (words + times));
		return;
	}
	take(c, 8 * times);
	if (nr > UINT16_MAX / 8) {
		c->bad = true;
		return;
	}
	p = take_array(c, nr * words);
	if (!(format & PERF_FORMAT_ID))
		return;
	s->reads = p;
	s->nr_reads = p ? (uint32_t)nr : 0;
	s->read_size = (uint32_t)(8 * words);
}

/* Take the registers of a sample; false: no such ABI. */
static bool take_registers(struct cursor *c, uint64_t mask, uint64_t *abi, const uint8_t **regs)
{
	*abi = take_u64(c);
	*regs = NULL;
	if (*abi > PERF_SAMPLE_REGS_ABI_64)
		return false;
	if (*abi != PERF_SAMPLE_REGS_ABI_NONE)
		*regs = take_array(c, (uint64_t)__builtin_popcountll(mask));
	return true;
}

/* Take the fields behind the copy of the user stack. */
static bool take_tail(struct cursor *c, const struct record_layout *layout, struct record_sample *s)
{
	uint64_t type = layout->sample_type, abi;
	const uint8_t *regs;

	/* The struct of weights has the latency in its low half. */
	if (type & WEIGHTS)
		s->memory.weight = take_u64(c);
	if (type & PERF_SAMPLE_WEIGHT_STRUCT)
		s->memory.weight = (uint32_t)s->memory.weight;
	if (type & PERF_SAMPLE_DATA_SRC)
		s->memory.data_src = take_u64(c);
	if (type & PERF_SAMPLE_TRANSACTION)
		take_u64(c);
	if (type & PERF_SAMPLE_REGS_INTR && !take_registers(c, layout->intr_mask, &abi, &regs))
		return false;
	if (type & PERF_SAMPLE_PHYS_ADDR)
		s->memory.phys_addr = take_u64(c);
	if (type & PERF_SAMPLE_CGROUP)
		take_u64(c);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		s->memory.page_size = take_u64(c);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		s->memory.code_page_size = take_u64(c);
	if (type & PERF_SAMPLE_AUX)
		take(c, take_u64(c));
	return true;
}

/* Take the fields before the copy of the user stack. */
static bool take_front(struct cursor *c, const struct record_layout *layout,
		       struct record_sample *s)
{
	uint64_t type = layout->sample_type;

	take_fixed(c, type, s);
	if (type & PERF_SAMPLE_READ)
		take_reads(c, layout->read_format, s);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		s->nr_chain = take_u64(c);
		s->chain = take_array(c, s->nr_chain);
	}
	if (type & PERF_SAMPLE_RAW)
		take_raw(c, s);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_branches(c, layout->branch_type, s);
	return !(type & PERF_SAMPLE_REGS_USER) ||
	       take_registers(c, layout->regs_mask, &s->regs_abi, &s->regs);
}

/* Decode the fields in sample_type. */
static int decode_fields(struct record *r, const struct record_layout *layout, struct cursor *c)
{
	uint64_t type = layout->sample_type;
	struct record_sample *s = &r->sample;

	s->cpumode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	if (!take_front(c, layout, s))
		return -EBADMSG;
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(c, s);
	if (type & TAIL && !take_tail(c, layout, s))
		return -EBADMSG;
	s->memory.fields = type & MEMORY;
	if (c->bad)
		return -EBADMSG;
	r->time_ns = s->time_ns;
	r->id = s->id;
	r->cpu = s->cpu;
	return 0;
}

/*
 * Decode a PERF_RECORD_SAMPLE. Bytes behind its fields are ignored, as perf does: the events of one
 * page fault or context switch share a struct perf_sample_data, and the kernel (seen on 6.18) adds
 * the stack copy of another profiler to the size of a sample that has none. A sample for which the
 * hardware has no branches lacks their index even if it was requested.
 */
static int decode_sample(struct record *r, const struct record_layout *layout, struct cursor *c)
{
	const struct cursor begin = *c;
	int code = decode_fields(r, layout, c);
	struct record_layout bare;
	struct record with;

	if (!(layout->sample_type & PERF_SAMPLE_BRANCH_STACK) ||
	    !(layout->branch_type & PERF_SAMPLE_BRANCH_HW_INDEX) || (!code && c->p == c->end))
		return code;
	bare = *layout;
	bare.branch_type &= ~(uint64_t)PERF_SAMPLE_BRANCH_HW_INDEX;
	with = *r;
	*c = begin;
	memset(&r->sample, 0, sizeof(r->sample));
	/* Both may fit if bytes follow; then only fields that end with the record are evidence. */
	if (!decode_fields(r, &bare, c) && !r->sample.nr_branches && (code || c->p == c->end))
		return 0;
	*r = with;
	return code;
}

size_t record_stack_at(const struct record_layout *layout, const uint8_t *bytes, size_t size)
{
	struct cursor c = { .p = bytes, .end = bytes + size };
	struct perf_event_header header;
	struct record_sample s = { 0 };

	assert(bytes || !size);
	/* A sample may lack the index of its branches. */
	if (!(layout->sample_type & PERF_SAMPLE_STACK_USER) ||
	    layout->sample_type & PERF_SAMPLE_BRANCH_STACK || size < sizeof(header))
		return 0;
	memcpy(&header, take(&c, sizeof(header)), sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE || !take_front(&c, layout, &s) || c.bad ||
	    c.end - c.p < (ptrdiff_t)sizeof(uint64_t))
		return 0;
	return (size_t)(c.p - bytes);
}

static uint64_t id_block_size(uint64_t type)
{
	return 8 * (uint64_t)__builtin_popcountll(type & ID_BLOCK);
}

/*
 * Cut off the bytes after the id block. The kernel (seen on 6.18) does not reset the size of
 * KSYMBOL and BPF_EVENT records between the events that get them: beside another profiler, each
 * adds the size of an id block, and the bytes there are old ones of the ring.
 */
static void trim(uint32_t type, uint64_t id_block, struct cursor *c)
{
	uint64_t left = (uint64_t)(c->end - c->p), body = BPF_BODY;

	if (type == PERF_RECORD_KSYMBOL && left > KSYMBOL_NAME)
		body = KSYMBOL_NAME +
		       (strnlen((const char *)c->p + KSYMBOL_NAME, left - KSYMBOL_NAME) + 8) / 8 *
			       8;
	else if (type != PERF_RECORD_BPF_EVENT)
		return;
	if (left > body + id_block)
		c->end = c->p + body + id_block;
}

/* Cut the id block off the end of a record that is no sample. */
static bool take_id_block(struct record *r, uint64_t type, struct cursor *c)
{
	uint64_t size = id_block_size(type);
	struct cursor t = { .end = c->end };

	if (size > (uint64_t)(c->end - c->p))
		return false;
	c->end -= size;
	t.p = c->end;
	if (type & PERF_SAMPLE_TID) {
		r->pid = take_u32(&t);
		r->tid = take_u32(&t);
	}
	if (type & PERF_SAMPLE_TIME)
		r->time_ns = take_u64(&t);
	if (type & PERF_SAMPLE_ID)
		r->id = take_u64(&t);
	if (type & PERF_SAMPLE_STREAM_ID)
		take_u64(&t);
	if (type & PERF_SAMPLE_CPU) {
		r->cpu = take_u32(&t);
		take_u32(&t);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		r->id = take_u64(&t);
	return true;
}

static void decode_range(struct record_mmap *m, struct cursor *c)
{
	m->pid = take_u32(c);
	m->tid = take_u32(c);
	m->start = take_u64(c);
	m->size = take_u64(c);
	m->pgoff = take_u64(c);
}

/* MMAP has no protection; the kernel marks mappings that are not executable as data. */
static void decode_mmap(struct record *r, struct cursor *c)
{
	decode_range(&r->mmap, c);
	r->mmap.prot = PROT_READ | (r->misc & PERF_RECORD_MISC_MMAP_DATA ? 0 : PROT_EXEC);
	r->mmap.filename = take_string(c, &r->mmap.filename_size);
}

uint32_t record_prot(uint32_t prot)
{
	return prot & S_IFMT ? PROT_READ | PROT_EXEC : prot;
}

/* MMAP2 identifies the file by device and inode, or (per record) by its build-id. */
static void decode_mmap2(struct record *r, struct cursor *c)
{
	struct object_identity *id = &r->mmap.identity;
	const uint8_t *p;

	decode_range(&r->mmap, c);
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		p = take(c, 24);
		if (!p || p[0] > sizeof(id->build_id)) {
			c->bad = true;
			return;
		}
		id->build_id_size = p[0];
		memcpy(id->build_id, p + 4, p[0]);
	} else {
		id->maj = take_u32(c);
		id->min = take_u32(c);
		id->ino = take_u64(c);
		id->ino_generation = take_u64(c);
	}
	r->mmap.prot = record_prot(take_u32(c));
	r->mmap.is_private = take_u32(c) & MAP_PRIVATE;
	r->mmap.filename = take_string(c, &r->mmap.filename_size);
}

static void decode_comm(struct record *r, struct cursor *c)
{
	r->comm.pid = take_u32(c);
	r->comm.tid = take_u32(c);
	r->comm.exec = r->misc & PERF_RECORD_MISC_COMM_EXEC;
	r->comm.comm = take_string(c, &r->comm.comm_size);
}

static void decode_task(struct record *r, struct cursor *c)
{
	r->task.pid = take_u32(c);
	r->task.ppid = take_u32(c);
	r->task.tid = take_u32(c);
	r->task.ptid = take_u32(c);
	r->task.time_ns = take_u64(c);
	if (!r->time_ns)
		r->time_ns = r->task.time_ns;
}

static void decode_lost(struct record *r, struct cursor *c)
{
	uint64_t id = take_u64(c);

	r->lost = take_u64(c);
	if (!r->id)
		r->id = id;
}

static void decode_lost_samples(struct record *r, struct cursor *c)
{
	uint64_t lost = take_u64(c);

	r->lost = r->misc & MISC_LOST_FILTERED ? 0 : lost;
}

static void decode_throttle(struct record *r, struct cursor *c)
{
	r->time_ns = take_u64(c);
	r->throttle_id = take_u64(c);
	take_u64(c); /* stream_id */
}

static void decode_ksymbol(struct record *r, struct cursor *c)
{
	uint32_t type_flags;

	r->ksymbol.start = take_u64(c);
	r->ksymbol.size = take_u32(c);
	type_flags = take_u32(c);
	r->ksymbol.type = (uint16_t)type_flags;
	r->ksymbol.gone = type_flags >> 16 & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	r->ksymbol.name = take_string(c, &r->ksymbol.name_size);
}

static void decode_bpf(struct record *r, struct cursor *c)
{
	r->bpf.type = (uint16_t)take_u32(c);
	r->bpf.id = take_u32(c);
	take_u64(c); /* tag */
}

static void decode_switch(struct record *r, struct cursor *c)
{
	r->change.out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;
	r->change.preempt = r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	if (r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		take_u64(c); /* the other task */
}

static void decode_chain(struct record *r, struct cursor *c)
{
	r->chain.cookie = take_u64(c);
	r->chain.nr = take_u64(c);
	r->chain.ips = take_array(c, r->chain.nr);
}

static void (*const decoders[])(struct record *r, struct cursor *c) = {
	[PERF_RECORD_MMAP] = decode_mmap,
	[PERF_RECORD_LOST] = decode_lost,
	[PERF_RECORD_COMM] = decode_comm,
	[PERF_RECORD_EXIT] = decode_task,
	[PERF_RECORD_THROTTLE] = decode_throttle,
	[PERF_RECORD_UNTHROTTLE] = decode_throttle,
	[PERF_RECORD_FORK] = decode_task,
	[PERF_RECORD_MMAP2] = decode_mmap2,
	[PERF_RECORD_LOST_SAMPLES] = decode_lost_samples,
	[PERF_RECORD_SWITCH] = decode_switch,
	[PERF_RECORD_SWITCH_CPU_WIDE] = decode_switch,
	[PERF_RECORD_KSYMBOL] = decode_ksymbol,
	[PERF_RECORD_BPF_EVENT] = decode_bpf,
	[RECORD_CHAIN_DEFERRED] = decode_chain,
};

bool record_is_known(uint32_t type)
{
	return type == PERF_RECORD_SAMPLE || (type < ARRAY_SIZE(decoders) && decoders[type]);
}

/* Decode one record; see record.h. */
int record_decode(struct record *r, const struct record_layout *layout, const void *bytes,
		  size_t size)
{
	struct cursor c = { .p = bytes, .end = (const uint8_t *)bytes + size };
	struct perf_event_header header;

	assert(bytes || !size);
	memset(r, 0, sizeof(*r));
	r->cpu = UINT32_MAX;
	if (size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, take(&c, sizeof(header)), sizeof(header));
	r->type = header.type;
	r->misc = header.misc;
	r->size = header.size;
	if (header.size != size)
		return -EBADMSG;
	if (header.type == PERF_RECORD_SAMPLE)
		return decode_sample(r, layout, &c);
	if (layout->id_all) {
		trim(r->type, id_block_size(layout->sample_type), &c);
		r->size = (uint16_t)(c.end - (const uint8_t *)bytes);
		if (!take_id_block(r, layout->sample_type, &c))
			return -EBADMSG;
	}
	if (!record_is_known(header.type))
		return -ENOTSUP;
	decoders[header.type](r, &c);
	return c.bad || c.p != c.end ? -EBADMSG : 0;
}

/*
 * The kind of an access to memory. Pure; any thread.
 */

/* Levels by PERF_MEM_LVLNUM_*, since Linux 4.14. */
static enum access_level level_of_number(uint64_t number, bool remote)
{
	switch (number) {
	case PERF_MEM_LVLNUM_L1:
		return ACCESS_L1;
	case PERF_MEM_LVLNUM_L2:
		return ACCESS_L2;
	case PERF_MEM_LVLNUM_L3:
		return ACCESS_L3;
	case PERF_MEM_LVLNUM_L4:
		return ACCESS_L4;
	case PERF_MEM_LVLNUM_ANY_CACHE:
		return remote ? ACCESS_REMOTE_CACHE : ACCESS_CACHE;
	case PERF_MEM_LVLNUM_LFB:
		return ACCESS_LFB;
	case PERF_MEM_LVLNUM_RAM:
		return remote ? ACCESS_REMOTE_RAM : ACCESS_RAM;
	case PERF_MEM_LVLNUM_PMEM:
		return ACCESS_PMEM;
	default:
		return ACCESS_ANYWHERE;
	}
}

/* Levels by PERF_MEM_LVL_*: the first bit that is set, as several mean the nearest or others. */
static enum access_level level_of_bits(uint64_t bits)
{
	static const struct {
		uint64_t bits;
		enum access_level level;
	} levels[] = {
		{ PERF_MEM_LVL_L1, ACCESS_L1 },
		{ PERF_MEM_LVL_LFB, ACCESS_LFB },
		{ PERF_MEM_LVL_L2, ACCESS_L2 },
		{ PERF_MEM_LVL_L3, ACCESS_L3 },
		{ PERF_MEM_LVL_LOC_RAM, ACCESS_RAM },
		{ PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2, ACCESS_REMOTE_RAM },
		{ PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2, ACCESS_REMOTE_CACHE },
		{ PERF_MEM_LVL_IO, ACCESS_IO },
		{ PERF_MEM_LVL_UNC, ACCESS_UNCACHED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (bits & levels[i].bits)
			return levels[i].level;
	return ACCESS_ANYWHERE;
}

struct access_kind access_kind(uint64_t data_src)
{
	const union perf_mem_data_src d = { .val = data_src };
	struct access_kind k = { .op = d.mem_op & PERF_MEM_OP_STORE    ? ACCESS_STORE
				       : d.mem_op & PERF_MEM_OP_LOAD   ? ACCESS_LOAD
				       : d.mem_op & PERF_MEM_OP_PFETCH ? ACCESS_PREFETCH
								       : ACCESS_UNKNOWN };

	k.level = level_of_number(d.mem_lvl_num, d.mem_remote);
	if (k.level == ACCESS_ANYWHERE)
		k.level = level_of_bits(d.mem_lvl);
	k.miss = k.level != ACCESS_ANYWHERE && d.mem_lvl & PERF_MEM_LVL_MISS;
	k.tlb_miss = d.mem_dtlb & PERF_MEM_TLB_MISS;
	return k;
}

const char *access_op_name(enum access_op op)
{
	static const char *const names[] = { "", "load", "store", "prefetch" };

	return op < ARRAY_SIZE(names) ? names[op] : "";
}

const char *access_level_name(enum access_level level)
{
	static const char *const names[] = {
		[ACCESS_ANYWHERE] = "unknown",
		[ACCESS_L1] = "L1",
		[ACCESS_LFB] = "LFB",
		[ACCESS_L2] = "L2",
		[ACCESS_L3] = "L3",
		[ACCESS_L4] = "L4",
		[ACCESS_CACHE] = "cache",
		[ACCESS_REMOTE_CACHE] = "remote cache",
		[ACCESS_RAM] = "RAM",
		[ACCESS_REMOTE_RAM] = "remote RAM",
		[ACCESS_PMEM] = "PMEM",
		[ACCESS_IO] = "I/O",
		[ACCESS_UNCACHED] = "uncached",
	};

	return level < ARRAY_SIZE(names) ? names[level] : names[ACCESS_ANYWHERE];
}

/*
 * Copy a record in parts; after each, look whether the kernel has come round to it.
 */

/* Bytes of a record among which the size of its stack is, mostly. */
#define COPY_HEAD 1024U

static void copy_part(struct ring_copy *c, size_t begin, size_t end)
{
	ring_copy_out(c->ring, c->pos + begin, c->bytes + begin, end - begin);
	c->overwritten |= ring_written(c->ring) - c->pos > c->ring->size;
}

bool ring_copy_record(struct ring_copy *c, const struct ring *ring,
		      const struct record_layout *layout, uint64_t pos, size_t size)
{
	size_t head = MIN(size, COPY_HEAD), at;
	uint64_t stack_size = 0;

	if (size > sizeof(c->bytes))
		return false;
	c->ring = ring;
	c->pos = pos;
	c->rest_size = 0;
	c->overwritten = false;
	copy_part(c, 0, head);
	at = record_stack_at(layout, c->bytes, head);
	if (at) {
		memcpy(&stack_size, c->bytes + at, sizeof(stack_size));
		at += sizeof(stack_size);
	}
	if (stack_size > RING_COPY_STACK && stack_size <= size - at) {
		c->rest_at = at + RING_COPY_STACK;
		c->rest_size = stack_size - RING_COPY_STACK;
		copy_part(c, head, c->rest_at);
		copy_part(c, c->rest_at + c->rest_size, size);
	} else {
		copy_part(c, head, size);
	}
	return !c->overwritten;
}

void ring_copy_rest(struct ring_copy *c)
{
	copy_part(c, c->rest_at, c->rest_at + c->rest_size);
	c->rest_size = 0;
}

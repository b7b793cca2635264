/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring of perf_event_open(2) and its records.
 *
 * The caller owes: one consumer for each ring; bytes that it copies before it moves the tail.
 *
 * The room does: reads records in place, joins those that wrap, decodes each by a cursor that
 * checks every step.
 *
 * Not for: opening events (sampler/event).
 */
#ifndef SAMPLER_RING_RING_H
#define SAMPLER_RING_RING_H

#include <assert.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"

struct perf_event_header;
struct perf_event_mmap_page;

/*
 * Records of the hardware in a sample: a taken branch, an access to memory.
 *
 * Pure; any thread.
 */

/* One taken branch. */
struct record_branch {
	uint64_t from, to;
	bool mispredicted, predicted; /* neither: not known */
	bool in_tx, abort;
	uint32_t cycles; /* since the branch before; 0: not known */
};

/* One access to memory. Fields that were not recorded are 0. */
struct record_memory {
	uint64_t fields; /* PERF_SAMPLE_*: the recorded ones */
	uint64_t addr, phys_addr;
	uint64_t data_src;	 /* union perf_mem_data_src */
	uint64_t weight;	 /* latency in cycles */
	uint64_t page_size;	 /* of the page of @addr, in bytes */
	uint64_t code_page_size; /* of the page of the instruction */
};

enum access_op { ACCESS_UNKNOWN, ACCESS_LOAD, ACCESS_STORE, ACCESS_PREFETCH, ACCESS_OP_NR };

/* The memory that had the data. */
enum access_level {
	ACCESS_ANYWHERE, /* not known */
	ACCESS_L1,
	ACCESS_LFB,
	ACCESS_L2,
	ACCESS_L3,
	ACCESS_L4,
	ACCESS_CACHE,	     /* any cache */
	ACCESS_REMOTE_CACHE, /* of another node */
	ACCESS_RAM,
	ACCESS_REMOTE_RAM,
	ACCESS_PMEM,
	ACCESS_IO,
	ACCESS_UNCACHED,
	ACCESS_LEVEL_NR,
};

/* The kind of an access, from data_src. */
struct access_kind {
	enum access_op op;
	enum access_level level;
	bool miss;     /* it was not at that level */
	bool tlb_miss; /* nor its address in a TLB */
};

struct access_kind access_kind(uint64_t data_src);
/* "load"; "": unknown. */
const char *access_op_name(enum access_op op);
/* "L1", "remote RAM". */
const char *access_level_name(enum access_level level);

/*
 * The kernel's ring of one event: perf_event_open(2), "MMAP layout".
 *
 * One consumer. data_head is read with acquire (pairs with the kernel's
 * store after the record's bytes), data_tail written with release (the kernel may overwrite the
 * bytes before it).
 */

#define RING_SCRATCH (64u << 10)

struct ring {
	struct perf_event_mmap_page *page; /* NULL: closed */
	uint8_t *data;
	uint64_t size;	  /* of the data area; a power of two */
	uint64_t head;	  /* up to here this batch reads */
	uint64_t tail;	  /* next record */
	uint8_t *scratch; /* RING_SCRATCH: a record that wraps is copied here */
	uint64_t nr_bad;  /* invalid headers, each of which skipped the ring to its head */
	uint64_t high;	  /* most bytes seen waiting since ring_take_high() */
	uint64_t last;	  /* start of the record last returned */
	size_t map_size;  /* to unmap; 0: the memory is the caller's */
};

/*
 * A ring over memory (tests, replay): @page and @data are the caller's. ring_close() frees the
 * scratch buffer.
 */
static inline void ring_init(struct ring *r, struct perf_event_mmap_page *page, uint8_t *data,
			     uint64_t size)
{
	assert(size && !(size & (size - 1)));
	memset(r, 0, sizeof(*r));
	r->page = page;
	r->data = data;
	r->size = size;
	r->scratch = xcalloc(1, RING_SCRATCH);
	r->tail = atomic_load_explicit((_Atomic __u64 *)&page->data_tail, memory_order_relaxed);
	r->head = r->last = r->tail;
}

/* Map @fd's ring: 1 + @size/page pages. 0 or -errno; -EPERM is the mlock limit. */
int ring_open(struct ring *r, int fd, size_t size);
void ring_close(struct ring *r);
/* Begin a batch: look at data_head. True if there is anything to read. */
bool ring_begin(struct ring *r);
/*
 * The next record of the batch, whole and contiguous, NULL at its end. In
 * place unless it wraps; valid until the next call or ring_end(). On an invalid header (size 0,
 * beyond head) the rest is skipped and counted. The header returned is always aligned for reading
 * its fields.
 */
const struct perf_event_header *ring_next(struct ring *r);
/* Give the space of all records but the last one returned back to the kernel (mid-batch). */
void ring_release(struct ring *r);
/* End of the batch: give back everything returned; unread records are in the next batch. */
void ring_end(struct ring *r);
/* The fullest the ring was, 0..1, since the last call. */
double ring_take_high(struct ring *r);
/* Return the number of invalid headers since the last call. */
uint64_t ring_take_bad(struct ring *r);
/* Bytes written since it was opened: any thread. */
uint64_t ring_written(const struct ring *r);
/* Bytes waiting now: any thread. */
uint64_t ring_waiting(const struct ring *r);

/*
 * One perf record: bytes -> fields, as laid down in perf_event_open(2).
 *
 * Payload is hostile: everything is checked against header.size, parsed
 * forward, and borrowed (pointers go into the bytes given, which may be
 * unaligned: read u64 arrays with memcpy). Pure; any thread; no allocation.
 */

/* The fields of our own samples. */
#define RECORD_SAMPLE_TYPE                                                                         \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
/* Added for user stacks. */
#define RECORD_STACK_TYPE (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

struct record_layout {
	uint64_t sample_type; /* PERF_SAMPLE_* of the attr; IDENTIFIER must be in it */
	uint64_t regs_mask;   /* sample_regs_user */
	uint64_t branch_type; /* branch_sample_type, where PERF_SAMPLE_BRANCH_STACK is in
				 sample_type */
	uint64_t intr_mask;   /* sample_regs_intr */
	uint64_t read_format; /* PERF_FORMAT_*, where PERF_SAMPLE_READ is in sample_type */
	bool id_all;	      /* sample_id_all: other records end in the id block */
};

/* PERF_RECORD_CALLCHAIN_DEFERRED and PERF_CONTEXT_USER_DEFERRED of Linux 6.19: a chain ends in that
 * context and a number, its user part is in a record of its own.
 */
#define RECORD_CHAIN_DEFERRED	22
#define RECORD_CONTEXT_DEFERRED ((uint64_t)-640)
/* Its bits of perf_event_attr, which older headers do not have: defer_callchain, defer_output. */
#define RECORD_DEFER_CHAIN  38
#define RECORD_DEFER_OUTPUT 39

struct record_sample {
	uint64_t id, ip, time_ns, period;
	uint32_t pid, tid, cpu;
	uint16_t cpumode;     /* PERF_RECORD_MISC_KERNEL, _USER ...: where @ip is */
	const uint8_t *reads; /* a group's counts since its start, each {value, id[, lost]} */
	uint32_t nr_reads, read_size; /* bytes of one */
	const uint8_t *chain;	      /* nr_chain u64s, PERF_CONTEXT_* markers included */
	uint64_t nr_chain;
	const uint8_t *raw; /* of a tracepoint; NULL: none */
	uint32_t raw_size;
	uint64_t regs_abi;	 /* PERF_SAMPLE_REGS_ABI_* */
	const uint8_t *regs;	 /* popcount(regs_mask) u64s, NULL when abi is NONE */
	const uint8_t *stack;	 /* stack_size bytes; NULL when there is none */
	uint64_t stack_size;	 /* of the stack copy as reserved by the kernel */
	uint64_t stack_dyn;	 /* valid bytes, clamped to stack_size */
	const uint8_t *branches; /* taken ones, the newest first; see record_branch() */
	uint32_t nr_branches;
	bool lbr_calls; /* they are the calls that have not returned: the callers of @ip */
	struct record_memory memory;
};

/* Return the number behind the mark at the end of a chain; 0: the chain is whole. */
static inline uint64_t record_deferred(const struct record_sample *s)
{
	uint64_t end[2];

	if (s->nr_chain < 2)
		return 0;
	memcpy(end, s->chain + 8 * (s->nr_chain - 2), sizeof(end));
	return end[0] == RECORD_CONTEXT_DEFERRED ? end[1] : 0;
}

/*
 * Replace the number of a deferred chain by that chain, @nr addresses: in @joined, which has room
 * for them and for the chain of @s.
 */
static inline void record_join(struct record_sample *s, uint64_t *joined, const uint64_t *ips,
			       uint64_t nr)
{
	uint64_t own = s->nr_chain - 2;

	memcpy(joined, s->chain, own * sizeof(*joined));
	/* It begins with its context; of the user in any case. */
	joined[own] = (uint64_t)PERF_CONTEXT_USER;
	memcpy(joined + own + 1, ips, nr * sizeof(*joined));
	s->chain = (const uint8_t *)joined;
	s->nr_chain = own + 1 + nr;
}

/*
 * Return the offset of the copy of the user stack in a sample, that is of its size, which its bytes
 * follow. 0: it is not in the first @size bytes of the record, or the record has none.
 */
size_t record_stack_at(const struct record_layout *layout, const uint8_t *bytes, size_t size);
/* Return branch @index of @s, which is less than nr_branches. */
struct record_branch record_branch(const struct record_sample *s, uint32_t index);

struct record_mmap {
	uint32_t pid, tid;
	uint64_t start, size, pgoff;
	struct object_identity identity; /* device, inode, generation or build-id */
	uint32_t prot;
	bool is_private; /* false: shared, or not known */
	const char *filename;
	size_t filename_size;
};

struct record_comm {
	uint32_t pid, tid;
	const char *comm;
	size_t comm_size;
	bool exec; /* PERF_RECORD_MISC_COMM_EXEC */
};

struct record_task { /* FORK and EXIT */
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct record_ksymbol {
	uint64_t start;
	uint32_t size;
	uint16_t type; /* PERF_RECORD_KSYMBOL_TYPE_* */
	bool gone;     /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */
	const char *name;
	size_t name_size;
};

struct record_switch { /* SWITCH and SWITCH_CPU_WIDE, of the task in the id block */
	bool out;      /* else in */
	bool preempt;  /* out while it is runnable */
};

struct record_bpf {
	uint16_t type; /* PERF_BPF_EVENT_PROG_* */
	uint32_t id;   /* of the program; its name is in KSYMBOL */
};

struct record_chain {
	uint64_t cookie;    /* the number; of this task alone */
	const uint8_t *ips; /* nr u64s, PERF_CONTEXT_* markers included */
	uint64_t nr;
};

struct record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint16_t size;	   /* header.size, without bytes behind its end; see trim() */
	uint64_t time_ns;  /* of the id block or the sample; 0: none */
	uint64_t id;	   /* of the id block or the sample; 0: none */
	uint32_t cpu;	   /* the same; UINT32_MAX: none */
	uint32_t pid, tid; /* of the id block; 0: none */
	union {
		struct record_sample sample;
		struct record_mmap mmap;
		struct record_comm comm;
		struct record_task task;
		struct record_ksymbol ksymbol;
		struct record_bpf bpf;
		struct record_switch change;
		struct record_chain chain;
		uint64_t lost;	      /* LOST, LOST_SAMPLES: how many */
		uint64_t throttle_id; /* THROTTLE, UNTHROTTLE: event id; time in time_ns */
	};
};

/*
 * The kernel ends a pause of a throttled event at the next timer tick: there are 100 a second, or
 * more. If the end is later, or is not recorded, the event was closed, or its task slept or exited:
 * no sample of that time is missing.
 */
#define RECORD_PAUSE_MAX_NS 10000000ULL

/* Return the length of a pause from THROTTLE at @since_ns to UNTHROTTLE, or to now. */
static inline uint64_t record_pause_ns(uint64_t since_ns, uint64_t until_ns)
{
	return MIN(until_ns - MIN(since_ns, until_ns), RECORD_PAUSE_MAX_NS);
}

/*
 * Return the protection of a mapping, from that of MMAP2: perf inject --jit writes the mode of its
 * file in its place, whatever the umask, and maps code.
 */
uint32_t record_prot(uint32_t prot);
/* Return whether record_decode() decodes records of @type; others have no effect. */
bool record_is_known(uint32_t type);
/*
 * Decode the record in @bytes (header included, @size = header.size). 0;
 * -EBADMSG when fields do not fit into it; -ENOTSUP for a type that is not decoded here, never of a
 * sample (type and misc are set then).
 */
int record_decode(struct record *r, const struct record_layout *layout, const void *bytes,
		  size_t size);

/*
 * A copy of one record of a ring that another thread consumes: of a large stack only the first
 * bytes, until the rest is needed. Most chains need no more of it, and 16 KiB push the memory of
 * the sampled thread out of the first cache.
 *
 * Threads: one, beside the consumer. No allocation.
 */

#define RING_COPY_MAX	(64U << 10)
#define RING_COPY_STACK 4096U /* bytes of the stack that are copied at first */

struct ring_copy {
	const struct ring *ring; /* borrowed */
	uint64_t pos;		 /* of the record in it */
	size_t rest_at;		 /* of the bytes left out, in the record */
	size_t rest_size;	 /* 0: none */
	bool overwritten;	 /* by the kernel, before the copy was whole: not to be used */
	_Alignas(16) uint8_t bytes[RING_COPY_MAX];
};

/* Copy @size bytes at @pos to @out, across the end if need be. The kernel may overwrite them. */
void ring_copy_out(const struct ring *r, uint64_t pos, void *out, size_t size);
/* Copy the record at @pos, of @size bytes. False: it is too large, or overwritten. */
bool ring_copy_record(struct ring_copy *c, const struct ring *ring,
		      const struct record_layout *layout, uint64_t pos, size_t size);
/* Copy the rest of the stack, once; sets overwritten. */
void ring_copy_rest(struct ring_copy *c);

#endif

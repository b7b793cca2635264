/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings made byte by byte. */
#ifndef TESTS_MAKERS_PERFDATA_H
#define TESTS_MAKERS_PERFDATA_H

#include "tests/prelude.h"

#include <linux/perf_event.h>

#ifndef FILE_SIZE
#define FILE_SIZE 8192
#endif

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_PERIOD)

struct file {
	uint8_t bytes[FILE_SIZE];
	size_t size;
};

static inline void put(struct file *f, const void *p, size_t size)
{
	assert_true(f->size + size <= sizeof(f->bytes));
	memcpy(f->bytes + f->size, p, size);
	f->size += size;
}

static inline void put_u64(struct file *f, uint64_t v)
{
	put(f, &v, sizeof(v));
}

static inline struct perf_event_attr attr_of(uint64_t config)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.sample_type = SAMPLE_TYPE,
		.sample_freq = 999,
		.freq = 1,
		.sample_id_all = 1,
	};
}

static inline void put_header(struct file *f, uint32_t type, uint16_t size)
{
	struct perf_event_header h = { .type = type, .size = size };

	put(f, &h, sizeof(h));
}

static inline void put_sample(struct file *f, uint64_t id, uint64_t ip, uint32_t pid, uint64_t time)
{
	uint32_t ids[2] = { pid, pid };

	put_header(f, PERF_RECORD_SAMPLE, 8 + 5 * 8);
	put_u64(f, id);
	put_u64(f, ip);
	put(f, ids, sizeof(ids));
	put_u64(f, time);
	put_u64(f, 1001001);
}

static inline void put_comm(struct file *f, uint64_t id, uint32_t pid, const char *comm,
			    uint64_t time)
{
	uint32_t ids[2] = { pid, pid };
	char name[16] = "";

	snprintf(name, sizeof(name), "%s", comm);
	put_header(f, PERF_RECORD_COMM, 8 + 8 + 16 + 3 * 8);
	put(f, ids, sizeof(ids));
	put(f, name, sizeof(name));
	put(f, ids, sizeof(ids)); /* id block: TID, TIME, IDENTIFIER */
	put_u64(f, time);
	put_u64(f, id);
}

/* The start of a recording in pipe mode: an event of that attribute with ids 7 and 8. */
static inline void put_pipe(struct file *f, const struct perf_event_attr *attr)
{
	f->size = 0;
	put(f, "PERFILE2", 8);
	put_u64(f, 16);
	put_header(f, 64, (uint16_t)(8 + sizeof(*attr) + 16));
	put(f, attr, sizeof(*attr));
	put_u64(f, 7);
	put_u64(f, 8);
}

#endif

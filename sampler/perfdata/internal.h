/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/perfdata/, and by tests; no other room includes it. */
#ifndef SAMPLER_PERFDATA_INTERNAL_H
#define SAMPLER_PERFDATA_INTERNAL_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "symbols/base/base.h"
#include "symbols/kernel/kernel.h"

struct object_identity;
struct perf_event_attr;
struct perf_event_header;
struct perfdata;
struct perfdata_bytes;
struct perfdata_event;
struct perfdata_found;
struct perfdata_ref;
struct perfdata_section;
struct perfdata_stream;
struct perfdata_zstd;
struct sandbox_answer;

#define LANG_RECORD_TYPE 65u /* PERF_RECORD_HEADER_EVENT_TYPE */

/*
 * The build-ids of a recording's objects, by their names, from its header (or, in pipe mode, its
 * records): most mappings have none.
 *
 * One thread. Every byte of the file is hostile.
 */

/* More are left out: objects; bytes of their names. */
#define PERFDATA_BUILD_IDS_MAX (1u << 18)
#define PERFDATA_NAMES_MAX     (64u << 20)

/* Zero-initialised is empty. */
struct perfdata_build_ids {
	struct perfdata_build_id {
		uint32_t name, name_size; /* in names */
		uint8_t id[20];
		uint8_t size;
	} * ids;
	uint32_t nr, room;
	char *names;
	size_t names_size, names_room;
	bool sorted;
};

/*
 * Set @id to the build-id of the object of that name. False, @id unchanged: it has none, or two
 * (the file was replaced while it was recorded).
 */
bool perfdata_build_ids_find(struct perfdata_build_ids *t, const char *name, size_t size,
			     struct object_identity *id);

#define PERFDATA_HOST_MAX 65

/*
 * The layout of a perf.data file, for its reader and its writer: after
 * tools/perf/Documentation/perf.data-file-format.txt of the kernel.
 */

#define PERFDATA_MAGIC	       "PERFILE2" /* and no NUL */
#define PERFDATA_FEATURE_WORDS 4
/* Size of the header of pipe mode: magic and this size. */
#define PERFDATA_PIPE_HEADER 16
/* Ids in one HEADER_ATTR of --record -; a full one is continued by the next of the same event. */
#define PERFDATA_STREAM_IDS 8000

struct perfdata_header {
	char magic[8];
	uint64_t size, attr_size;
	struct perfdata_section attrs, data, event_types;
	uint64_t features[PERFDATA_FEATURE_WORDS];
};

/* Bits of perfdata_header.features; their sections are behind the data, in this order. */
enum perfdata_feature {
	PERFDATA_FEATURE_TRACING_DATA = 1,
	PERFDATA_BUILD_ID = 2,
	PERFDATA_HOSTNAME = 3,
	PERFDATA_OSRELEASE = 4,
	PERFDATA_VERSION = 5,
	PERFDATA_ARCH = 6,
	PERFDATA_NRCPUS = 7,
	PERFDATA_CMDLINE = 11,
	PERFDATA_EVENT_DESC = 12,
	PERFDATA_GROUP_DESC = 17,
};

/* In the header of a BUILD_ID entry: it has a size (tools/lib/perf/include/perf/event.h). */
#define PERFDATA_MISC_BUILD_ID_SIZE (1U << 15)

/* An entry of BUILD_ID, and a record of pipe mode. The object's name follows, padded with NULs. */
struct perfdata_build_id_record {
	struct perf_event_header h;
	int32_t pid;
	uint8_t id[20];
	uint8_t size, reserved[3];
};

/* The type of an EVENT_UPDATE: u64 type, u64 id, name[]. */
#define PERFDATA_UPDATE_NAME 2

/* Limit of all blocks of one file together; of a stream, of all blocks in memory. */
#define PERFDATA_ZSTD_MAX (8ULL << 30)

/*
 * Return the limit for blocks of @size bytes: far more than recordings compress. Without it a small
 * file could take all memory.
 */
static inline uint64_t perfdata_zstd_limit(uint64_t size)
{
	return (64ULL << 20) + 1000 * MIN(size, 1ULL << 50);
}

/*
 * The bytes of a recording: in memory, or read from its file piece by piece on demand. Never
 * mapped: a file that is cut short while it is read must not end the reader.
 *
 * One thread. Every offset and size may be hostile.
 */

/* Limit of the bytes kept in memory, when they are not of a regular file. */
#define PERFDATA_MEMORY_MAX (8ULL << 30)

/* Copy @size bytes. 0 or -errno. */
int perfdata_bytes_copy(struct perfdata_bytes *b, const void *bytes, size_t size);
/* Borrow @memory. */
void perfdata_bytes_borrow(struct perfdata_bytes *b, const void *memory, size_t size);
int perfdata_bytes_open(struct perfdata_bytes *b, int fd, const char *path, file_reading_fn step,
			struct err *e);
int perfdata_bytes_share(const struct perfdata_bytes *b);
void perfdata_bytes_begin(struct perfdata_bytes *b, int fd);
int64_t perfdata_bytes_more(struct perfdata_bytes *b, uint64_t keep);
int perfdata_bytes_wait(const struct perfdata_bytes *b, file_reading_fn step);
int perfdata_bytes_finish(struct perfdata_bytes *b, const char *path, file_reading_fn step,
			  struct err *e);
void perfdata_bytes_ahead(struct perfdata_bytes *b, uint64_t offset);
void perfdata_bytes_close(struct perfdata_bytes *b);
/* For perfdata_bytes_at(): move the window there. False: they are not all there. */
bool perfdata_bytes_move(struct perfdata_bytes *b, uint64_t offset, uint64_t size);

/* @size bytes at @offset, or NULL if they are not all there; valid until the next call. */
static inline const uint8_t *perfdata_bytes_at(struct perfdata_bytes *b, uint64_t offset,
					       uint64_t size)
{
	/* Before the window: a large number. */
	uint64_t at = offset - b->window_at;

	if (at > b->window_size || size > b->window_size - at) {
		if (!perfdata_bytes_move(b, offset, size))
			return NULL;
		at = 0;
	}
	return b->window + at;
}

/*
 * Findings in the bytes of a recording, beside its events: places of records, and totals. Made in
 * the sandbox, checked in perfdata.c.
 *
 * Plain numbers without padding: they are sent as they are.
 */

/*
 * Limits of one part: bytes of the file, decompressed bytes, records. It ends when one of them is
 * reached, or at the end of the recording.
 */
#define PERFDATA_PART_SIZE     (16ULL << 20)
#define PERFDATA_PART_INFLATED (1U << 20)
#define PERFDATA_PART_REFS     32768U

/* Of a pipe that is read as it is written. */
enum perfdata_kind {
	PERFDATA_KIND_UNKNOWN, /* not all of the header is there */
	PERFDATA_KIND_STREAM,
	PERFDATA_KIND_WHOLE, /* not readable before its end is there */
};

/*
 * The events of a recording and the ids that its records carry.
 *
 * One thread. Every byte of the file is hostile.
 */

#define PERFDATA_EVENTS_MAX 256
#define PERFDATA_IDS_MAX    (1u << 20) /* of all events */

struct perfdata_id {
	uint64_t id;
	uint32_t event;
};

/* Zero-initialised is empty. */
struct perfdata_events {
	struct perfdata_event *events;
	struct perf_event_attr *attrs;
	uint64_t *hashes; /* of all bytes of their attributes */
	uint32_t nr, room;
	struct perfdata_id *ids; /* sorted by id after perfdata_events_sort() */
	uint32_t nr_ids;
	uint64_t last_ids; /* in the last attribute of pipe mode */
	struct kernel_identity kernel;
	struct perfdata_build_ids build_ids;
	char machine[PERFDATA_MACHINE_MAX]; /* as uname(2) has it; "": not known, as the next */
	char host[PERFDATA_HOST_MAX];
};

/* Add the event of an attribute of the file, of @size bytes. 0, -E2BIG: too many, or -EINVAL. */
int perfdata_events_add(struct perfdata_events *t, const uint8_t *attr, size_t size,
			uint32_t *index);
/* Set the name, of foreign bytes: it is sanitised. @size: at most, with or without a NUL. */
void perfdata_events_name(struct perfdata_event *ev, const void *name, size_t size);
void perfdata_events_sort(struct perfdata_events *t);
/* Index of the event with that id, or -1. Without ids: 0. */
int perfdata_events_of(const struct perfdata_events *t, uint64_t id);
void perfdata_events_fini(struct perfdata_events *t);

/*
 * The messages between perfdata.h and its reader in the sandbox (perfdata_read.c). Both have the
 * same program.
 */

enum perfdata_call {
	PERFDATA_OPEN,	/* the file is descriptor 0 */
	PERFDATA_FEED,	/* bytes of a pipe follow; none: it has ended */
	PERFDATA_MORE,	/* go on */
	PERFDATA_FACTS, /* the answer is struct perfdata_facts */
	PERFDATA_CLOSE,
};

struct perfdata_request {
	uint32_t slot;	  /* of the reader */
	uint32_t call;	  /* enum perfdata_call */
	uint64_t size;	  /* OPEN: of the file */
	uint32_t stopped; /* OPEN: a pipe that was not read to its end */
	uint32_t fixed;	  /* FEED, MORE: no event can be added any more */
};

/* The end of the answer: decompressed bytes and refs are before it. */
struct perfdata_answer {
	uint64_t inflated, nr_refs;
	struct perfdata_found found;
};

/* The events, their ids, the build-ids and the names of their objects follow. */
struct perfdata_facts {
	uint32_t nr_events, nr_ids, nr_build_ids, names_size;
	struct kernel_identity kernel;
	char machine[PERFDATA_MACHINE_MAX], host[PERFDATA_HOST_MAX];
};

struct perfdata_fact_event {
	char name[EVENT_NAME_MAX];
	struct perf_event_attr attr;
	uint64_t nr_samples;
	uint32_t group, unused;
};

/*
 * The header of a perf.data file: events, features, the range of the records.
 *
 * One thread. Every byte is hostile.
 */

/* The range of the records. */
struct perfdata_extent {
	struct perfdata_section data; /* as much of them as the file has */
	uint64_t missing;	      /* bytes of records that the file should have */
	bool cut;		      /* facts behind the records are missing */
	bool unfinished;	      /* the header was never completed: the writer was killed */
};

/*
 * A recording that is open. One thread.
 */

/* Decompressed bytes of whole records. */
struct perfdata_chunk {
	uint64_t at; /* offset in all of them */
	uint64_t size;
	uint8_t *bytes; /* owned */
};

/* A part of a file that was mapped last, and memory right above: text that was moved there? */
struct perfdata_text {
	uint32_t pid;	      /* 0: none */
	uint64_t end, memory; /* of the memory, and its start; memory 0: none is above */
	uint64_t base;	      /* the address less the offset */
	struct object_identity identity;
};

struct perfdata {
	struct perfdata_bytes bytes;
	struct perfdata_chunk *chunks;
	uint32_t nr_chunks, room_chunks;
	uint64_t inflated; /* bytes in all chunks so far */
	uint64_t kept;	   /* bytes in these */
	struct perfdata_events events;
	struct perfdata_found found; /* checked */
	struct perfdata_ref *refs;   /* checked, then sorted by time */
	uint64_t nr_refs, room_refs;
	uint64_t nr_ready;  /* of a stream: records in order, with none to follow before them */
	uint64_t first_at;  /* of a stream: the first of them in its bytes; UINT64_MAX: none */
	uint64_t sorted_ns; /* found.flush_ns when they were sorted */
	bool streaming;
	int slot;		    /* of the reader; -1: none */
	uint32_t generation;	    /* of its worker; 0: not called yet */
	uint32_t version;	    /* of the facts that are here */
	uint64_t facts_size;	    /* of all answers with facts */
	file_reading_fn step;	    /* while it is opened; or NULL */
	uint64_t step_ns;	    /* time of its next call */
	const atomic_bool *stopped; /* by another thread; or NULL */
	bool cancelled;		    /* a call was, by one of them */
	struct perfdata_text text;  /* of the records of mappings that were identified */
	uint8_t part[UINT16_MAX];   /* the last record without most of its stack copy */
};

/* Test for memory, of no file on the disk, that may have the text of one. */
static inline bool perfdata_is_memory(const char *name, size_t size)
{
	static const char *const names[] = { "//anon", "/memfd:", "/anon_hugepage" };
	bool is = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		is |= size >= strlen(names[i]) && !memcmp(name, names[i], strlen(names[i]));
	return is;
}

/* The last PERF_RECORD_MMAP2, perf_event_open(2). */
struct perfdata_near {
	uint64_t at, end; /* its place; the end of the mapping */
	uint64_t base;	  /* its address less the offset; of memory that of the file below */
	uint32_t pid;	  /* 0: none */
	uint16_t size;	  /* of the record */
	bool left_out;	  /* so far */
	bool memory;	  /* executable memory right above a file, or above such memory */
};

struct perfdata_scan {
	struct perfdata_bytes bytes;
	struct perfdata_events events;
	struct perfdata_found found;
	struct perfdata_extent extent;
	struct perfdata_ref *refs; /* since perfdata_scan_clear() */
	uint64_t nr_refs, room_refs;
	uint64_t end;	/* of the records */
	uint64_t pause; /* end of the part that is walked now */
	bool full;	/* there is more to walk in this part */
	bool opened;	/* the header was read */
	bool has_refs;	/* there was a record behind the header's, since the start */
	bool fixed;	/* of a pipe: no event can be added any more */
	bool stopped;	/* a pipe that was not read to its end */
	bool aux;	/* it has traces of hardware, which are not decoded */
	struct perfdata_near near;
	uint64_t last_time_ns;
	uint64_t next_flush_ns;	    /* found.max_ns at the end of the last round */
	struct perfdata_zstd *zstd; /* NULL until a compressed record was met */
};

#endif

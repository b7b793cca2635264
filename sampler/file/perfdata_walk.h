/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a perf.data file, noted in one bounded walk. Private to perfdata.c.
 *
 * One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_WALK_H
#define SAMPLER_FILE_PERFDATA_WALK_H

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "symbols/base/base.h"

struct perfdata_zstd;

struct perfdata_ref {
	uint64_t time_ns;
	uint64_t at; /* offset in the file, or address of the inflated bytes */
	uint16_t event, size;
	bool inflated;
};

struct perfdata {
	struct perfdata_bytes bytes;
	uint8_t *copy; /* perfdata_from_memory */
	struct perfdata_events events;
	struct perfdata_ref *refs;
	uint64_t nr_refs, room_refs;
	uint64_t nr_bad;
	char note[PERFDATA_NOTE_MAX]; /* "": the file is whole */
	bool stop;		      /* damage was met: nothing behind it is read */
	bool has_kernel;	      /* samples in the kernel */
	bool aux;		      /* it has traces of hardware, which are not decoded */
	uint64_t last_time_ns;
	uint64_t first_sample_ns, last_sample_ns;
	/* Of a pipe that is read as it is written. */
	struct {
		bool on, begun;		/* there is a record behind the header's */
		uint64_t walked;	/* all records before this offset are noted */
		uint64_t nr_ready;	/* records in order, with none to follow before them */
		uint64_t max_ns;	/* of all records */
		uint64_t flush_ns;	/* the same at the end of the last round but one */
		uint64_t next_flush_ns; /* at the end of the last round */
	} stream;
	uint8_t part[UINT16_MAX];   /* the last record without most of its stack copy */
	struct perfdata_zstd *zstd; /* NULL until a compressed record was met */
};

/* The bytes that records are read from. */
struct perfdata_source {
	struct perfdata_bytes *bytes;
	bool inflated;
};

/*
 * Note every record in @size bytes from @offset. Return how many bytes were
 * whole records; a record cut at the end is left (compressed data goes on in
 * the next block).
 */
uint64_t perfdata_walk(struct perfdata *pd, const struct perfdata_source *src, uint64_t offset,
		       uint64_t size, struct err *e, int *code);
/* Note the first damage, for the user, and read no further. */
void perfdata_damage(struct perfdata *pd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings in the bytes of a recording, beside its events: places of records, and totals. Made in
 * the cage, checked by perfdata_accept.h.
 *
 * Plain numbers without padding: they are sent as they are.
 */
#ifndef SAMPLER_FILE_PERFDATA_FOUND_H
#define SAMPLER_FILE_PERFDATA_FOUND_H

#include <stdint.h>

#include "sampler/file/perfdata_event.h"

/*
 * Limits of one part: bytes of the file, decompressed bytes, records. It ends when one of them is
 * reached, or at the end of the recording.
 */
#define PERFDATA_PART_SIZE     (16ULL << 20)
#define PERFDATA_PART_INFLATED (1U << 20)
#define PERFDATA_PART_REFS     32768U

/* A record that counts. */
struct perfdata_ref {
	uint64_t time_ns;
	uint64_t at; /* offset in the file, or in the inflated bytes */
	uint16_t event, size;
	uint32_t inflated; /* 0 or 1 */
};

/* Of a pipe that is read as it is written. */
enum perfdata_kind {
	PERFDATA_KIND_UNKNOWN, /* not all of the header is there */
	PERFDATA_KIND_STREAM,
	PERFDATA_KIND_WHOLE, /* not readable before its end is there */
};

struct perfdata_found {
	char note[PERFDATA_NOTE_MAX]; /* "": the file is whole */
	uint32_t stop;		      /* damage was met: nothing behind it is read */
	uint32_t done;		      /* all records were found */
	uint32_t has_kernel;	      /* samples in the kernel */
	uint32_t begun;		      /* there is a record behind the header's */
	uint32_t kind;		      /* enum perfdata_kind */
	uint32_t version;	      /* of the facts about events and objects; it grows */
	uint64_t walked;	      /* all records before this offset are noted */
	uint64_t nr_bad;	      /* bytes at the end that are not read */
	uint64_t first_sample_ns, last_sample_ns;
	uint64_t max_ns;   /* the time of the newest record */
	uint64_t flush_ns; /* the same at the end of perf's last round but one */
};

#endif

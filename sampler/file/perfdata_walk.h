/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a perf.data file, noted in one bounded walk, and all that a scan knows
 * (perfdata_scan.h).
 *
 * One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_WALK_H
#define SAMPLER_FILE_PERFDATA_WALK_H

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_found.h"
#include "sampler/file/perfdata_header.h"

struct perfdata_zstd;

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
	uint64_t last_time_ns;
	uint64_t next_flush_ns;	    /* found.max_ns at the end of the last round */
	struct perfdata_zstd *zstd; /* NULL until a compressed record was met */
};

/*
 * Note the records from found.walked on, up to the end of a part. A record cut at the end is left.
 * 0 or -errno; s->full: there is more.
 */
int perfdata_walk(struct perfdata_scan *s);
/* Note the first damage, for the user, and read no further. */
void perfdata_damage(struct perfdata_scan *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif

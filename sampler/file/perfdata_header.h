/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The header of a perf.data file: events, features, the range of the records.
 *
 * One thread. Every byte is hostile.
 */
#ifndef SAMPLER_FILE_PERFDATA_HEADER_H
#define SAMPLER_FILE_PERFDATA_HEADER_H

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_format.h"

/* The range of the records. */
struct perfdata_extent {
	struct perfdata_section data; /* as much of them as the file has */
	uint64_t missing;	      /* bytes of records that the file should have */
	bool cut;		      /* facts behind the records are missing */
	bool unfinished;	      /* the header was never completed: the writer was killed */
};

/* Read the header. Events are added, except in pipe mode. 0,
 * -E2BIG or -EINVAL. */
int perfdata_header_read(struct perfdata_bytes *b, struct perfdata_events *events,
			 struct perfdata_extent *extent);

/*
 * Records of pipe mode. An attribute with the ids of one event: @late: behind other records,
 * @fixed: no event can be added any more; 0, -E2BIG or -EINVAL. A feature. A later addition to an
 * event.
 */
int perfdata_header_attr(struct perfdata_events *events, const uint8_t *at, size_t size, bool late,
			 bool fixed);
void perfdata_header_piped_feature(struct perfdata_events *events, const uint8_t *at, size_t size);
void perfdata_header_update(struct perfdata_events *events, const uint8_t *at, size_t size);

#endif

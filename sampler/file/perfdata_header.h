/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The header of a perf.data file: events, features, where the records are.
 *
 * One thread. Every byte is hostile.
 */
#ifndef SAMPLER_FILE_PERFDATA_HEADER_H
#define SAMPLER_FILE_PERFDATA_HEADER_H

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_format.h"

/* Where the records are; events are added where the header has them (not in pipe mode). 0 or
 * -EINVAL. */
int perfdata_header_read(struct perfdata_bytes *b, struct perfdata_events *events,
			 struct perfdata_section *data);

#endif

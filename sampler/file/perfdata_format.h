/* SPDX-License-Identifier: GPL-2.0-or-later */
/* * The layout of a perf.data file, for its reader and its writer: after
 * tools/perf/Documentation/perf.data-file-format.txt of the kernel.
 */
#ifndef SAMPLER_FILE_PERFDATA_FORMAT_H
#define SAMPLER_FILE_PERFDATA_FORMAT_H

#include <linux/perf_event.h>
#include <stdint.h>

#define PERFDATA_MAGIC	       "PERFILE2" /* and no NUL */
#define PERFDATA_FEATURE_WORDS 4
/* Size of the header of pipe mode: magic and this size. */
#define PERFDATA_PIPE_HEADER 16
/* Ids in one HEADER_ATTR of --record -; a full one is continued by the next of the same event. */
#define PERFDATA_STREAM_IDS 8000

struct perfdata_section {
	uint64_t offset, size;
};

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

/* Records that perf itself writes (tools/perf/util/event.h); never from a kernel. */
enum perfdata_record_type {
	PERFDATA_USER_FIRST = 64,
	PERFDATA_HEADER_ATTR = 64,
	PERFDATA_TRACING_DATA = 66,
	PERFDATA_HEADER_BUILD_ID = 67,
	PERFDATA_FINISHED_ROUND = 68,
	PERFDATA_AUXTRACE = 71,
	PERFDATA_EVENT_UPDATE = 78,
	PERFDATA_HEADER_FEATURE = 80, /* pipe mode: u64 bit, then the section's bytes */
	PERFDATA_COMPRESSED = 81,
	PERFDATA_COMPRESSED2 = 83, /* u64 size, then the compressed bytes and padding */
};

/* The type of an EVENT_UPDATE: u64 type, u64 id, name[]. */
#define PERFDATA_UPDATE_NAME 2

#endif

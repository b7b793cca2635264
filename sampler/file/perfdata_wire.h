/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between perfdata.h and its reader in the cage (perfdata_serve.c). Both have the same
 * program.
 */
#ifndef SAMPLER_FILE_PERFDATA_WIRE_H
#define SAMPLER_FILE_PERFDATA_WIRE_H

#include <linux/perf_event.h>

#include "sampler/file/perfdata_found.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/kernel/kernel.h"

/* As many recordings are opened at a time: of the session, and of --baseline. */
#define PERFDATA_READERS (CAGE_RECORDING_LAST - CAGE_RECORDING + 1U)

extern const struct cage_reader perfdata_readers[PERFDATA_READERS];

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

/* Bytes of a FEED. */
#define PERFDATA_FEED_MAX (CAGE_REQUEST_MAX - sizeof(struct perfdata_request))

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

#endif

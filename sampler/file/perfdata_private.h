/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording that is open. Private to perfdata.c, perfdata_call.c and perfdata_accept.c.
 *
 * One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_PRIVATE_H
#define SAMPLER_FILE_PERFDATA_PRIVATE_H

#include <stdatomic.h>

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_found.h"

/* Decompressed bytes of whole records. */
struct perfdata_chunk {
	uint64_t at; /* offset in all of them */
	uint64_t size;
	uint8_t *bytes; /* owned */
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
	sampler_reading_fn step;    /* while it is opened; or NULL */
	uint64_t step_ns;	    /* time of its next call */
	const atomic_bool *stopped; /* by another thread; or NULL */
	bool cancelled;		    /* a call was, by one of them */
	uint8_t part[UINT16_MAX];   /* the last record without most of its stack copy */
};

#endif

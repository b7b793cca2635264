/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording that is open. Private to perfdata.c, perfdata_call.c and perfdata_accept.c.
 *
 * One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_PRIVATE_H
#define SAMPLER_FILE_PERFDATA_PRIVATE_H

#include "sampler/file/perfdata_bytes.h"
#include "sampler/file/perfdata_events.h"
#include "sampler/file/perfdata_found.h"

struct perfdata {
	struct perfdata_bytes bytes;
	struct perfdata_bytes inflated; /* all decompressed bytes; inflated.own has them */
	struct perfdata_events events;
	struct perfdata_found found; /* checked */
	struct perfdata_ref *refs;   /* checked, then sorted by time */
	uint64_t nr_refs, room_refs;
	uint64_t nr_ready; /* of a stream: records in order, with none to follow before them */
	bool streaming;
	int slot;		  /* of the reader; -1: none */
	uint32_t generation;	  /* of its worker; 0: not called yet */
	uint32_t version;	  /* of the facts that are here */
	uint8_t part[UINT16_MAX]; /* the last record without most of its stack copy */
};

#endif

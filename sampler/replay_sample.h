/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The samples of a recording, one by one.
 */
#ifndef SAMPLER_REPLAY_SAMPLE_H
#define SAMPLER_REPLAY_SAMPLE_H

#include <stdint.h>
#include <sys/types.h>

#include "sampler/perf/access.h"
#include "symbols/base/text.h"

/* A frame of a replay's samples; the frame of one id never changes. */
struct sampler_frame {
	uint64_t file_offset;	 /* of its address; UINT64_MAX: kernel, anonymous, not known */
	struct safe_text name;	 /* "[unknown]" when there is none */
	uint64_t offset;	 /* into the function; UINT64_MAX: not known */
	struct safe_text module; /* path or [kernel.kallsyms] as perf script prints it */
};

/* One branch of a sample. */
struct sampler_branch {
	struct record_branch branch;
	uint32_t from, to; /* ids of frames */
};

/* One sample of a replay; borrowed for the call. */
struct sampler_sample {
	struct safe_text comm;
	pid_t pid, tid;
	uint32_t cpu;
	uint64_t time_ns, period;
	const char *event;
	const struct sampler_frame *known; /* frames by id */
	const uint32_t *frames;		   /* ids, innermost first, kernel before user */
	const uint64_t *ips;		   /* their raw addresses; 0: not known */
	uint32_t nr_frames;
	uint32_t nr_kernel;
	const struct sampler_branch *branches; /* the newest first */
	uint32_t nr_branches;
	const struct record_memory *memory;
	const char *stop; /* why the user stack ends: unwind_stop_name() */
};

/* Damage of a recording, and the samples that it lacks. */
struct sampler_missing {
	const char *note;    /* on a recording that is cut short or damaged; "": whole; borrowed */
	uint64_t nr_dropped; /* damaged records */
	uint64_t nr_lost;    /* when it was recorded */
};

typedef int (*sampler_sample_fn)(void *ctx, const struct sampler_sample *sample);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Progress and cancellation of a recording that is opened. */
#ifndef SAMPLER_FILE_READING_H
#define SAMPLER_FILE_READING_H

#include <stdint.h>

/* How to go on. */
enum sampler_reading {
	SAMPLER_READING_GO,
	SAMPLER_READING_DRAIN,	/* until there is no more data at the moment */
	SAMPLER_READING_STOP,	/* show the data so far */
	SAMPLER_READING_CANCEL, /* -ECANCELED */
};

/*
 * Decide how to go on after @bytes of a pipe. 0: there are none so far, or records are searched in
 * a file, or in what was read from the pipe; then only SAMPLER_READING_CANCEL ends that.
 */
typedef enum sampler_reading (*sampler_reading_fn)(uint64_t bytes);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Progress and cancellation of a recording that is read from a pipe. */
#ifndef SAMPLER_FILE_READING_H
#define SAMPLER_FILE_READING_H

#include <stdint.h>

/* How to go on reading a recording from a pipe. */
enum sampler_reading {
	SAMPLER_READING_GO,
	SAMPLER_READING_DRAIN,	/* until there is no more data at the moment */
	SAMPLER_READING_STOP,	/* show the data so far */
	SAMPLER_READING_CANCEL, /* -ECANCELED */
};

/* Decide how to go on after @bytes of a pipe. */
typedef enum sampler_reading (*sampler_reading_fn)(uint64_t bytes);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The folder of --keep. */
#ifndef SAMPLER_KEEP_CONFIG_H
#define SAMPLER_KEEP_CONFIG_H

#include <stdint.h>

struct keep_config {
	const char *dir; /* NULL: nothing is kept */
	uint64_t size;	 /* bytes of all segments */
	uint64_t time_ns;
};

#endif

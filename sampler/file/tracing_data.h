/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TRACING_DATA section of a recording: the formats of its tracepoints, without which perf
 * reads no file that has one.
 *
 * Any thread; no state.
 */
#ifndef SAMPLER_FILE_TRACING_DATA_H
#define SAMPLER_FILE_TRACING_DATA_H

#include <stdio.h>

#include "symbols/base/base.h"

struct perfdata_attrs;

/* Write the section to @out. False: no event is a tracepoint, or tracefs is not readable. */
bool tracing_data_write(FILE *out, const struct perfdata_attrs *attrs);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Write the messages that refuse a file. Any thread; no state. */
#ifndef SAMPLER_FILE_PERFDATA_REFUSE_H
#define SAMPLER_FILE_PERFDATA_REFUSE_H

#include "symbols/base/base.h"

/*
 * Set @e by the first @size bytes of the file, and return @code: -EINVAL, not a perf.data file or
 * one with a damaged header; -E2BIG, too many events; -ENOTSUP, built without libzstd; or another
 * one of its reader. @path: as the user gave it.
 */
int perfdata_refuse(struct err *e, int code, const char *path, const uint8_t *head, size_t size);

/* Set the message for a folder of perf record --threads. Return -EISDIR. */
int perfdata_refuse_folder(struct err *e, const char *path);

/* Return why reading ended, for a code of its reader. */
const char *perfdata_reason(int code);

#endif

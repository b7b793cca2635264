/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call the reader of a recording, in the cage; check and keep its findings. Private to
 * perfdata.c.
 *
 * One thread; it may wait.
 */
#ifndef SAMPLER_FILE_PERFDATA_CALL_H
#define SAMPLER_FILE_PERFDATA_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfdata;

/* Find everything in pd->bytes, a file or what was read from a pipe. 0 or -errno. */
int perfdata_call_all(struct perfdata *pd);
/*
 * Find the records in @size more bytes of a stream; 0: it has ended. @fixed: its events are in use.
 * 0 or -errno.
 */
int perfdata_call_feed(struct perfdata *pd, const uint8_t *bytes, size_t size, bool fixed);
/* End the reader. */
void perfdata_call_end(struct perfdata *pd);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scan of a perf.data file: events and facts of its header, the places of its records, and
 * decompressed bytes, a part of the file at a time.
 *
 * Every byte is hostile: a scan runs in the cage (perfdata_serve.c). One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_SCAN_H
#define SAMPLER_FILE_PERFDATA_SCAN_H

#include "sampler/file/perfdata_walk.h"

/* Make @s empty. */
void perfdata_scan_init(struct perfdata_scan *s);
void perfdata_scan_fini(struct perfdata_scan *s);
/* Read the header; s->bytes are there. 0, -E2BIG: too many events, or -EINVAL. */
int perfdata_scan_open(struct perfdata_scan *s);
/*
 * Find more records, until found.done. 0, -ENOTSUP: compressed, and built without libzstd, -ENOMEM,
 * -E2BIG or -EINVAL.
 */
int perfdata_scan_more(struct perfdata_scan *s);
/*
 * Add bytes of a pipe, and find their records. @size 0: this was the end. As perfdata_scan_more();
 * found.kind and found.stop tell whether to go on.
 */
int perfdata_scan_feed(struct perfdata_scan *s, const uint8_t *bytes, size_t size);
/*
 * Return the decompressed bytes of the records since perfdata_scan_clear(), whole ones; *@size may
 * be 0.
 */
const uint8_t *perfdata_scan_inflated(const struct perfdata_scan *s, size_t *size);
/* Forget the refs and the decompressed bytes. */
void perfdata_scan_clear(struct perfdata_scan *s);

#endif

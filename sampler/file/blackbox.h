/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The newest raw records in memory, and a perf.data file of them. Side-band records have a quarter
 * of the memory for themselves, so that the mappings of processes that have ended are older than
 * the samples.
 *
 * Runs on: the writer of the recorder.
 */
#ifndef SAMPLER_FILE_BLACKBOX_H
#define SAMPLER_FILE_BLACKBOX_H

#include <sys/uio.h>

#include "sampler/file/perfdata_attrs.h"
#include "symbols/base/base.h"

struct blackbox;
struct codes;
struct slow_reads;

/* @memory: bytes of all records. 0 or -ENOMEM. */
int blackbox_new(struct blackbox **out, size_t memory);
void blackbox_free(struct blackbox *s);
/* Add whole records; the oldest are dropped. 0, or -ENOMEM: these are dropped. */
int blackbox_add(struct blackbox *s, bool side_band, const struct iovec *pieces, int nr);
/*
 * Write a new file @path: the kernel and the running processes, from /proc below @root, their
 * mappings with @reads, functions of scripts (@codes: NULL: none), then all records. *bytes: its
 * size. 0 or -errno with a sentence; a part of the file is removed.
 */
int blackbox_write(const struct blackbox *s, const char *path, const char *root,
		   struct slow_reads *reads, const struct codes *codes,
		   const struct perfdata_attrs *attrs, uint64_t *bytes, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pipe mode of perf.data: the header's parts are records, so that a reader needs no end.
 *
 * One thread at a time, but perfdata_stream_stop().
 */
#ifndef SAMPLER_FILE_PERFDATA_STREAM_H
#define SAMPLER_FILE_PERFDATA_STREAM_H

#include <sys/uio.h>

#include "sampler/file/perfdata_attrs.h"
#include "symbols/base/base.h"

struct perfdata_stream;

/* Write to a copy of @fd, which must be no terminal. 0 or -errno with a sentence. */
int perfdata_stream_new(struct perfdata_stream **out, int fd, struct err *e);
/* A feature of the header, as enum perfdata_feature, with the bytes of its section. */
int perfdata_stream_feature(struct perfdata_stream *s, unsigned int bit, const void *bytes,
			    size_t size);
/* The formats of tracepoints. */
int perfdata_stream_tracing(struct perfdata_stream *s, const void *bytes, size_t size);
/* Events and ids that are not in the stream yet: before the records that have them. */
int perfdata_stream_attrs(struct perfdata_stream *s, const struct perfdata_attrs *attrs);
/* Append whole records. After the first -errno nothing is written any more. */
int perfdata_stream_append(struct perfdata_stream *s, const struct iovec *pieces, int nr);
/* From now on a reader that does not read ends the stream after some seconds. Any thread. */
void perfdata_stream_stop(struct perfdata_stream *s);
uint64_t perfdata_stream_written(const struct perfdata_stream *s);
void perfdata_stream_free(struct perfdata_stream *s);

#endif

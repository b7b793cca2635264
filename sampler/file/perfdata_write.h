/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing a perf.data file: created safely, records appended, header and
 * features put in at the end. Until then the size of the data in the header is
 * 0: a recording that was cut off is read to the end of the file.
 *
 * One thread at a time. The layout is that which perfdata.h reads.
 */
#ifndef SAMPLER_FILE_PERFDATA_WRITE_H
#define SAMPLER_FILE_PERFDATA_WRITE_H

#include <sys/uio.h>

#include "sampler/file/perfdata_attrs.h"
#include "symbols/base/base.h"

struct perfdata_writer;

/* Add the build-id of a sampled object, for the header; of a stream it is queued. @name: as in its
 * mappings. */
void perfdata_put_build_id(struct perfdata_writer *w, bool kernel, const char *name,
			   const uint8_t *id, uint8_t id_size);

/*
 * Create @path, mode 0600. A recording of that name becomes @path.old, as perf
 * does it; an empty file is replaced, any other refused. 0 or -errno with a sentence.
 */
int perfdata_create(struct perfdata_writer **out, const char *path, struct err *e);
/* Remove a created file, with the rights of the invoking user. */
void perfdata_remove(const char *path);
/* Write header and events, so that a recording that is cut off can be read. 0 or -errno. */
int perfdata_begin(struct perfdata_writer *w, const struct perfdata_attrs *attrs);
/* Return whether it is written to standard output, in pipe mode: path "-". */
bool perfdata_is_stream(const struct perfdata_writer *w);
/* Of a stream: write events and ids that are new, before the records that have them. */
int perfdata_add_attrs(struct perfdata_writer *w, const struct perfdata_attrs *attrs);
/*
 * Of a stream: records that wait for the writer. One thread queues and the writer takes, under a
 * lock of the caller; written without it, since a pipe may block. Taken ones are freed when
 * written.
 */
struct perfdata_queued {
	void *records;
	size_t size;
};
void perfdata_queue(struct perfdata_writer *w, const void *record, size_t size);
void perfdata_take_queue(struct perfdata_writer *w, struct perfdata_queued *out);
void perfdata_write_queue(struct perfdata_writer *w, struct perfdata_queued *q);
/* Of a stream: the end is near; a reader that does not read is no longer waited for. Any thread. */
void perfdata_stop(struct perfdata_writer *w);
/* Append whole records. After the first -errno nothing is written any more. */
int perfdata_append(struct perfdata_writer *w, const struct iovec *pieces, int nr);
/* Events as they are known now, features, header. 0 or the first -errno of all. */
int perfdata_finish(struct perfdata_writer *w, const struct perfdata_attrs *attrs);
/* Bytes of records in the file. */
uint64_t perfdata_written(const struct perfdata_writer *w);
void perfdata_writer_close(struct perfdata_writer *w);

#endif

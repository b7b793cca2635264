/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed blocks of perf.data (perf record -z): one zstd stream over all *
 * PERF_RECORD_COMPRESSED and _COMPRESSED2 records of a file. Without libzstd at build time every
 * call fails with a message.
 *
 * One thread. The decompressed bytes are valid until _free().
 */
#ifndef SAMPLER_FILE_PERFDATA_ZSTD_H
#define SAMPLER_FILE_PERFDATA_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

/* Limit of all blocks of one file together. */
#define PERFDATA_ZSTD_MAX (8ULL << 30)

struct perfdata_zstd;

/* * Decompress the next block. *@out: the bytes the last block left over (see
 * perfdata_zstd_keep), then the bytes of this one. *@z is made at the first call.
 * -EBADMSG: damaged, or larger than any recording; -ENOTSUP with a message: built without libzstd.
 */
int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size,
		      const uint8_t **out, size_t *out_size, struct err *e);
/* Of the last *@out, @used bytes were whole records; the rest is in the next *@out again. */
void perfdata_zstd_keep(struct perfdata_zstd *z, size_t used);
/* Return how many bytes of the last *@out were not whole records. @z may be NULL. */
size_t perfdata_zstd_left(const struct perfdata_zstd *z);
void perfdata_zstd_free(struct perfdata_zstd *z);

#endif

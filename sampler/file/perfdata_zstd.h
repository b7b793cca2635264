/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed blocks of perf.data (perf record -z): one zstd stream over all
 * PERF_RECORD_COMPRESSED and _COMPRESSED2 records of a file. Without libzstd at build time every
 * block fails.
 *
 * One thread. Bytes are borrowed until the next call.
 */
#ifndef SAMPLER_FILE_PERFDATA_ZSTD_H
#define SAMPLER_FILE_PERFDATA_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

/* Limit of all blocks of one file together; of a stream, of all blocks in memory. */
#define PERFDATA_ZSTD_MAX (8ULL << 30)

/*
 * Return the limit for blocks of @size bytes: far more than recordings compress. Without it a small
 * file could take all memory.
 */
static inline uint64_t perfdata_zstd_limit(uint64_t size)
{
	return (64ULL << 20) + 1000 * MIN(size, 1ULL << 50);
}

struct perfdata_bytes;
struct perfdata_zstd;

/*
 * Decompress the next block, behind the bytes that are there. *@z is made at the first call.
 * -EBADMSG: damaged, or larger than any recording; -EFBIG: all blocks are larger than @max bytes;
 * -ENOTSUP: built without libzstd; -ENOMEM.
 */
int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size, uint64_t max);
/* Borrow the bytes that were not walked yet, at their offset in all decompressed bytes. */
void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b);
/* Note that @size of these were whole records. */
void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size);
/* Return how many bytes were not walked. @z may be NULL, as in the next two. */
size_t perfdata_zstd_left(const struct perfdata_zstd *z);
/* Return the bytes that were walked since perfdata_zstd_clear(), and their number. */
const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size);
/* Forget these bytes. */
void perfdata_zstd_clear(struct perfdata_zstd *z);
void perfdata_zstd_free(struct perfdata_zstd *z);

#endif

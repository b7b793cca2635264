/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed blocks of perf.data (perf record -z): one zstd stream over all
 * PERF_RECORD_COMPRESSED records of a file. Without libzstd at build time
 * every call says so.
 *
 * One thread. What was decompressed stays where it is until _free().
 */
#ifndef SAMPLER_FILE_PERFDATA_ZSTD_H
#define SAMPLER_FILE_PERFDATA_ZSTD_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

/* Of all blocks of one file together: a bomb ends here. */
#define PERFDATA_ZSTD_MAX (8ULL << 30)

struct perfdata_zstd;

/*
 * Decompress the next block. *@out: what the last block left over (see
 * perfdata_zstd_keep) and what this one holds. *@z is made at the first call.
 */
int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size,
		      const uint8_t **out, size_t *out_size, struct err *e);
/* Of the last *@out, @used bytes were whole records; the rest comes again. */
void perfdata_zstd_keep(struct perfdata_zstd *z, size_t used);
void perfdata_zstd_free(struct perfdata_zstd *z);

#endif

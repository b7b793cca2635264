/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xz streams -> bytes, under limits (the .gnu_debugdata section of stripped
 * objects). Built without liblzma: always -EOPNOTSUPP.
 *
 * Pure; any thread. Hostile input: 50 kB can expand to gigabytes.
 */
#ifndef SYMBOLS_OBJECT_XZ_H
#define SYMBOLS_OBJECT_XZ_H

#include "symbols/base/base.h"

#define XZ_OUTPUT_MAX (64UL << 20)
#define XZ_MEMORY_MAX (128UL << 20) /* of the decoder: dictionaries */

/*
 * Decompress. 0 (the caller frees *out), -EFBIG beyond XZ_OUTPUT_MAX, -EBADMSG,
 * -ENOMEM, -EOPNOTSUPP.
 */
int xz_decode(const void *in, size_t in_size, void **out, size_t *out_size);

#endif

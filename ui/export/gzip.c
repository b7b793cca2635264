// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gzip by zlib.
 */
#include "ui/export/gzip.h"

#include <errno.h>
#include <zlib.h>

int gzip_write(struct out *to, const struct out *from)
{
	z_stream z = { 0 };
	uint8_t piece[64 << 10];
	int code = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
				MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);

	if (code != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)from->data;
	z.avail_in = (uInt)from->size;
	do {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		code = deflate(&z, Z_FINISH);
		out_bytes(to, piece, sizeof(piece) - z.avail_out);
		out_progress(to, from->size - z.avail_in, from->size);
	} while (code == Z_OK);
	deflateEnd(&z);
	return code == Z_STREAM_END && !to->failed ? 0 : -ENOMEM;
}

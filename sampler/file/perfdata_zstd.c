// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compressed blocks of perf.data, through libzstd, if it was found at build time.
 *
 * One buffer: bytes that were walked but not taken, then bytes that were not walked.
 */
#include "sampler/file/perfdata_zstd.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/file/perfdata_bytes.h"

#ifdef HAVE_ZSTD
#include <zstd.h>

#define ROOM_MIN ((size_t)1 << 16)

struct perfdata_zstd {
	ZSTD_DStream *stream;
	uint8_t *bytes;
	size_t size, room;
	size_t walked;	  /* of these, from the start */
	uint64_t at;	  /* offset of the first one in all decompressed bytes */
	uint64_t in, out; /* bytes of all blocks */
};

static int make(struct perfdata_zstd **zp)
{
	struct perfdata_zstd *z = xcalloc(1, sizeof(*z));

	z->stream = ZSTD_createDStream();
	if (!z->stream) {
		free(z);
		return -ENOMEM;
	}
	*zp = z;
	return 0;
}

static void make_room(struct perfdata_zstd *z, size_t more)
{
	if (z->room - z->size >= more)
		return;
	z->room = z->size + MAX(more, z->size);
	z->bytes = xrealloc_array(z->bytes, z->room, 1);
}

int perfdata_zstd_add(struct perfdata_zstd **zp, const uint8_t *block, size_t size, uint64_t max)
{
	ZSTD_inBuffer in = { .src = block, .size = size };
	int rc = *zp ? 0 : make(zp);
	struct perfdata_zstd *z = *zp;
	bool full;

	if (rc)
		return rc;
	z->in += size;
	make_room(z, MAX(8 * size, ROOM_MIN));
	do { /* a full buffer: the stream may hold more even if all input was taken */
		ZSTD_outBuffer o = { .dst = z->bytes + z->size, .size = z->room - z->size };
		size_t code = ZSTD_decompressStream(z->stream, &o, &in);

		z->out += o.pos;
		z->size += o.pos;
		full = o.pos == o.size;
		if (ZSTD_isError(code) || z->out > perfdata_zstd_limit(z->in) ||
		    (!o.pos && in.pos < in.size))
			return -EBADMSG;
		if (z->out > max) {
			/* The caller takes no more than @max bytes. */
			z->out -= o.pos;
			z->size -= o.pos;
			return -EFBIG;
		}
		if (full)
			make_room(z, ROOM_MIN);
	} while (in.pos < in.size || full);
	return 0;
}

void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b)
{
	perfdata_bytes_borrow(b, z->bytes + z->walked, z->size - z->walked);
	b->window_at = z->at + z->walked;
	b->size += b->window_at;
}

void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size)
{
	assert(size <= z->size - z->walked);
	z->walked += size;
}

size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return z ? z->size - z->walked : 0;
}

const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size)
{
	*size = z ? z->walked : 0;
	return z ? z->bytes : NULL;
}

void perfdata_zstd_clear(struct perfdata_zstd *z)
{
	if (!z)
		return;
	memmove(z->bytes, z->bytes + z->walked, z->size - z->walked);
	z->at += z->walked;
	z->size -= z->walked;
	z->walked = 0;
}

void perfdata_zstd_free(struct perfdata_zstd *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z->bytes);
	free(z);
}

#else

int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size, uint64_t max)
{
	return -ENOTSUP;
}

void perfdata_zstd_bytes(const struct perfdata_zstd *z, struct perfdata_bytes *b)
{
	perfdata_bytes_borrow(b, NULL, 0);
}

void perfdata_zstd_walked(struct perfdata_zstd *z, uint64_t size)
{
}

size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return 0;
}

const uint8_t *perfdata_zstd_new(const struct perfdata_zstd *z, size_t *size)
{
	*size = 0;
	return NULL;
}

void perfdata_zstd_clear(struct perfdata_zstd *z)
{
}

void perfdata_zstd_free(struct perfdata_zstd *z)
{
}
#endif

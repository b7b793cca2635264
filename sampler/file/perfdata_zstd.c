// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compressed blocks of perf.data, through libzstd, if it was found at build time.
 * * Each block gets a buffer, since records are borrowed from it;
 * the bytes left over from the block before are copied to its front.
 */
#include "sampler/file/perfdata_zstd.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZSTD
#include <zstd.h>

struct buffer {
	struct buffer *next;
	size_t size, used;
	uint8_t bytes[];
};

struct perfdata_zstd {
	ZSTD_DStream *stream;
	struct buffer *last; /* newest first */
	uint64_t in, out;    /* bytes of all blocks */
};

/* Far more than recordings compress; without it a small file could take all memory. */
static bool too_large(const struct perfdata_zstd *z)
{
	return z->out > PERFDATA_ZSTD_MAX || z->out > (64ULL << 20) + 1000 * z->in;
}

size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return z && z->last ? z->last->size - z->last->used : 0;
}

/* Make a buffer that begins with the bytes the last one left over. */
static struct buffer *next_buffer(struct perfdata_zstd *z, size_t room)
{
	size_t left = perfdata_zstd_left(z);
	struct buffer *b = xcalloc(1, sizeof(*b) + left + room);

	if (left)
		memcpy(b->bytes, z->last->bytes + z->last->used, left);
	b->size = left;
	b->next = z->last;
	z->last = b;
	return b;
}

int perfdata_zstd_add(struct perfdata_zstd **zp, const uint8_t *block, size_t size,
		      const uint8_t **out, size_t *out_size, struct err *e)
{
	ZSTD_inBuffer in = { .src = block, .size = size };
	struct perfdata_zstd *z = *zp;
	size_t room = MAX(8 * size, (size_t)1 << 16);
	struct buffer *b;
	bool full;
	if (!z) {
		z = *zp = xcalloc(1, sizeof(*z));
		z->stream = ZSTD_createDStream();
		if (!z->stream)
			return err_set(e, -ENOMEM, "no memory to decompress the file");
	}
	z->in += size;
	b = next_buffer(z, room);
	do { /* a full buffer: the stream may hold more even if all input was taken */
		ZSTD_outBuffer o = { .dst = b->bytes + b->size, .size = room };
		size_t code = ZSTD_decompressStream(z->stream, &o, &in);

		z->out += o.pos;
		b->size += o.pos;
		full = o.pos == o.size;
		if (ZSTD_isError(code) || too_large(z) || (!o.pos && in.pos < in.size))
			return -EBADMSG;
		room -= o.pos;
		if (full) {
			room = MAX(b->size, (size_t)1 << 16);
			b = z->last = xrealloc_array(b, 1, sizeof(*b) + b->size + room);
		}
	} while (in.pos < in.size || full);
	*out = b->bytes;
	*out_size = b->size;
	return 0;
}

void perfdata_zstd_keep(struct perfdata_zstd *z, size_t used)
{
	assert(used <= z->last->size);
	z->last->used = used;
}

void perfdata_zstd_free(struct perfdata_zstd *z)
{
	if (!z)
		return;
	while (z->last) {
		struct buffer *b = z->last;

		z->last = b->next;
		free(b);
	}
	ZSTD_freeDStream(z->stream);
	free(z);
}

#else

int perfdata_zstd_add(struct perfdata_zstd **z, const uint8_t *block, size_t size,
		      const uint8_t **out, size_t *out_size, struct err *e)
{
	return err_set(e, -ENOTSUP,
		       "the file is compressed, and this proftop was built without libzstd\n"
		       "  perf record -z wrote it\n"
		       "  build with libzstd-dev installed, or record without -z");
}

void perfdata_zstd_keep(struct perfdata_zstd *z, size_t used)
{
}

size_t perfdata_zstd_left(const struct perfdata_zstd *z)
{
	return 0;
}
void perfdata_zstd_free(struct perfdata_zstd *z)
{
}
#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * liblzma with limits of output and of memory.
 *
 * Runs on: a helper.
 */
#include "symbols/object/xz.h"

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_LZMA
#include <lzma.h>

#define FIRST_ROOM (256UL << 10)

/* Enlarge the output buffer; false at the limit (*code: the error). */
static bool grow(lzma_stream *s, uint8_t **buf, size_t *room, int *code)
{
	size_t used = *room - s->avail_out, more = MIN(*room * 2, XZ_OUTPUT_MAX);
	uint8_t *larger;

	if (*room == XZ_OUTPUT_MAX) {
		*code = -EFBIG;
		return false;
	}
	larger = realloc(*buf, more);
	if (!larger) {
		*code = -ENOMEM;
		return false;
	}
	*buf = larger;
	s->next_out = larger + used;
	s->avail_out = more - used;
	*room = more;
	return true;
}

static int code_of(lzma_ret ret)
{
	switch (ret) {
	case LZMA_STREAM_END:
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

int xz_decode(const void *in, size_t in_size, void **out, size_t *out_size)
{
	lzma_stream s = LZMA_STREAM_INIT;
	size_t room = FIRST_ROOM;
	uint8_t *buf = malloc(room);
	lzma_ret ret;
	int code = 0;

	if (!buf || lzma_stream_decoder(&s, XZ_MEMORY_MAX, 0) != LZMA_OK) {
		free(buf);
		return -ENOMEM;
	}
	s.next_in = in;
	s.avail_in = in_size;
	s.next_out = buf;
	s.avail_out = room;
	do {
		ret = lzma_code(&s, LZMA_FINISH);
	} while (ret == LZMA_OK && (s.avail_out || grow(&s, &buf, &room, &code)));
	lzma_end(&s);
	if (!code)
		code = code_of(ret);
	if (code) {
		free(buf);
		return code;
	}
	*out = buf;
	*out_size = (size_t)s.total_out;
	return 0;
}

#else

int xz_decode(const void *in, size_t in_size, void **out, size_t *out_size)
{
	return -EOPNOTSUPP;
}

#endif

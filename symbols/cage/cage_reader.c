// SPDX-License-Identifier: GPL-2.0-or-later
/* The reply of a reader: bytes that grow up to a limit. */
#include "symbols/sandbox/sandbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Make the buffer of @reply @max bytes. False: out of memory. */
static bool grow(struct cage_reply *reply, size_t max)
{
	uint8_t *grown = realloc(reply->bytes, max);

	if (!grown)
		return false;
	reply->bytes = grown;
	reply->max = max;
	return true;
}

static bool write_all(struct cage_reply *reply, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = pwrite(reply->file, bytes, size, (off_t)reply->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
		reply->written += (size_t)n;
	}
	return true;
}

bool cage_flush(struct cage_reply *reply)
{
	size_t size = reply->size;

	reply->size = 0;
	return write_all(reply, reply->bytes, size);
}

/* Append to the bytes in memory. */
static bool append(struct cage_reply *reply, const void *bytes, size_t size)
{
	if (reply->size + size > reply->max &&
	    !grow(reply, MAX(2 * reply->max, MAX(reply->size + size, 4096U))))
		return false;
	if (size)
		memcpy(reply->bytes + reply->size, bytes, size);
	reply->size += size;
	return true;
}

size_t cage_put(struct cage_reply *reply, const void *bytes, size_t size)
{
	size_t at = reply->written + reply->size;
	size_t limit = reply->limit ? reply->limit : CAGE_REPLY_MAX;

	if (!reply->full && size <= limit - at &&
	    (reply->to_file && size > CAGE_PACKET_MAX
		     ? cage_flush(reply) && write_all(reply, bytes, size)
		     : append(reply, bytes, size)))
		return at;
	reply->full = true;
	return 0;
}

int cage_take(const struct cage_call *c, unsigned int i, size_t size, uint8_t **out)
{
	uint8_t *bytes = malloc(size + 1);
	size_t done = 0;

	if (!bytes)
		return -ENOMEM;
	while (done < size) {
		ssize_t n = pread(c->fds[i], bytes + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(bytes);
			return -EIO;
		}
		done += (size_t)n;
	}
	bytes[size] = '\0';
	*out = bytes;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The reply of a reader: bytes that grow up to a limit. */
#include "symbols/cage/cage_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t cage_put(struct cage_reply *reply, const void *bytes, size_t size)
{
	size_t at = reply->size, limit = reply->limit ? reply->limit : CAGE_REPLY_MAX;

	if (reply->full || size > limit - reply->size) {
		reply->full = true;
		return 0;
	}
	if (reply->size + size > reply->max) {
		size_t max = MAX(2 * reply->max, MAX(reply->size + size, 4096U));
		uint8_t *grown = realloc(reply->bytes, max);

		if (!grown) {
			reply->full = true;
			return 0;
		}
		reply->bytes = grown;
		reply->max = max;
	}
	if (size)
		memcpy(reply->bytes + at, bytes, size);
	reply->size += size;
	return at;
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

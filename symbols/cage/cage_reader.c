// SPDX-License-Identifier: GPL-2.0-or-later
/* The reply of a reader: bytes that grow up to a limit. */
#include "symbols/cage/cage_reader.h"

#include <stdlib.h>
#include <string.h>

size_t cage_put(struct cage_reply *reply, const void *bytes, size_t size)
{
	size_t at = reply->size;

	if (reply->full || size > CAGE_REPLY_MAX - reply->size) {
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

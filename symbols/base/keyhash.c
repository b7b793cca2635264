// SPDX-License-Identifier: GPL-2.0-or-later
/* A hash with a secret key: the key, and bytes. */
#include "symbols/base/keyhash.h"

#include <string.h>
#include <sys/random.h>

#include "symbols/base/base.h"

struct keyhash_key keyhash_new_key(void)
{
	struct keyhash_key key;

	/* Before the kernel has random numbers: numbers that are hard to guess from outside. */
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		key = (struct keyhash_key){ hash_u64(time_now_ns()),
					    hash_u64((uintptr_t)&key ^ time_thread_ns()) };
	return key;
}

void keyhash_bytes(struct keyhash *h, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	keyhash_word(h, size);
	for (; size; p += MIN(size, 8), size -= MIN(size, 8)) {
		uint64_t word = 0;

		memcpy(&word, p, MIN(size, 8));
		keyhash_word(h, word);
	}
}

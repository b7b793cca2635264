// SPDX-License-Identifier: GPL-2.0-or-later
/* A hash with a secret key: the key, and bytes. */
#include "symbols/base/keyhash.h"

#include <pthread.h>
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
	uint64_t word;

	keyhash_word(h, size);
	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		keyhash_word(h, word);
	}
	if (!size)
		return;
	word = 0;
	memcpy(&word, p, size);
	keyhash_word(h, word);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct keyhash_key names_key, numbers_key;

static void make_keys(void)
{
	names_key = keyhash_new_key();
	numbers_key = keyhash_new_key();
}

uint64_t keyhash_name(const char *name, size_t size)
{
	struct keyhash h;
	uint64_t hash;

	pthread_once(&once, make_keys);
	h = keyhash_begin(&names_key);
	keyhash_bytes(&h, name, size);
	hash = keyhash_end(&h);
	return hash ? hash : 1;
}

uint64_t keyhash_number(uint64_t number)
{
	pthread_once(&once, make_keys);
	/* An odd factor: different numbers have different hashes. */
	return hash_u64((number ^ numbers_key.k0) * (numbers_key.k1 | 1));
}

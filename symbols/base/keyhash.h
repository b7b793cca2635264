/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash with a secret key: SipHash-1-3 (Aumasson and Bernstein 2012) over words.
 *
 * For tables of texts and numbers that another process chose: with hash_u64() it could choose a
 * million with one hash, and each look-up would compare all of them. The key is random, and another
 * one after each start: hashes are never stored in files, and no order depends on them.
 *
 * Pure, except the keys; any thread.
 */
#ifndef SYMBOLS_BASE_KEYHASH_H
#define SYMBOLS_BASE_KEYHASH_H

#include <stddef.h>
#include <stdint.h>

struct keyhash_key {
	uint64_t k0, k1;
};

/* The state of a hash. */
struct keyhash {
	uint64_t v0, v1, v2, v3;
};

/* Return a random key. */
struct keyhash_key keyhash_new_key(void);

/* Hash a name with one key for the whole process; never 0. */
uint64_t keyhash_name(const char *name, size_t size);
/* Hash a number, as a pid, with one key for the whole process: faster than SipHash, and weaker. */
uint64_t keyhash_number(uint64_t number);

static inline uint64_t keyhash_rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void keyhash_round(struct keyhash *h)
{
	h->v0 += h->v1;
	h->v1 = keyhash_rotate(h->v1, 13) ^ h->v0;
	h->v0 = keyhash_rotate(h->v0, 32);
	h->v2 += h->v3;
	h->v3 = keyhash_rotate(h->v3, 16) ^ h->v2;
	h->v0 += h->v3;
	h->v3 = keyhash_rotate(h->v3, 21) ^ h->v0;
	h->v2 += h->v1;
	h->v1 = keyhash_rotate(h->v1, 17) ^ h->v2;
	h->v2 = keyhash_rotate(h->v2, 32);
}

/* Begin a hash. */
static inline struct keyhash keyhash_begin(const struct keyhash_key *key)
{
	return (struct keyhash){ key->k0 ^ 0x736f6d6570736575ULL, key->k1 ^ 0x646f72616e646f6dULL,
				 key->k0 ^ 0x6c7967656e657261ULL, key->k1 ^ 0x7465646279746573ULL };
}

/* Append one word. */
static inline void keyhash_word(struct keyhash *h, uint64_t word)
{
	h->v3 ^= word;
	keyhash_round(h);
	h->v0 ^= word;
}

/* Append @size bytes, and their number. */
void keyhash_bytes(struct keyhash *h, const void *bytes, size_t size);

/* Return the hash of all that was appended. */
static inline uint64_t keyhash_end(const struct keyhash *begun)
{
	struct keyhash h = *begun;

	h.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		keyhash_round(&h);
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3;
}

#endif

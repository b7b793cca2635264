/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts and numbers that have one hash where a hash has no key: hash_u64() backwards. */
#ifndef TESTS_UNHASH_H
#define TESTS_UNHASH_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"
#include "tests/prelude.h"

/* Undo @shift of hash_u64(). */
static inline uint64_t unhash_shift(uint64_t x, int shift)
{
	uint64_t y = x;

	for (int i = 0; i <= 64 / shift; i++)
		y = x ^ y >> shift;
	return y;
}

/* Undo a product of hash_u64(). */
static inline uint64_t unhash_product(uint64_t x, uint64_t factor)
{
	uint64_t inverse = factor;

	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	return x * inverse;
}

/* Return the number with the hash @x. */
static inline uint64_t unhash_u64(uint64_t x)
{
	x = unhash_product(unhash_shift(x, 31), 0x94d049bb133111ebULL);
	x = unhash_product(unhash_shift(x, 27), 0xbf58476d1ce4e5b9ULL);
	return unhash_shift(x, 30);
}

/* Return one of the numbers of which the lower half of the hash is the same, xor @before. */
static inline uint64_t unhash_number(uint64_t before, uint32_t i)
{
	return before ^ unhash_u64((uint64_t)i << 32 | 77);
}

#define UNHASH_SIZE 16U

/*
 * Make name @i of UNHASH_SIZE bytes, of which all have the hash hash_u64(hash_u64(@begin ^ first
 * word) + @add ^ second word). The first word is 'pre' and a number. False: it has a byte 0.
 */
static inline bool unhash_name(char name[static UNHASH_SIZE + 1], const char pre[static 2],
			       uint32_t i, uint64_t begin, uint64_t add)
{
	uint64_t words[2];

	snprintf(name, UNHASH_SIZE + 1, "%.2s%06u", pre, i);
	memcpy(words, name, sizeof(words[0]));
	words[1] = 0x1234567 ^ (hash_u64(begin ^ words[0]) + add);
	memcpy(name, words, sizeof(words));
	name[UNHASH_SIZE] = 0;
	return strlen(name) == UNHASH_SIZE && !strchr(name, '/');
}

#define UNHASH_TWIN 12U

/* Append @byte to the hash FNV-1a; return by how much that changed it before the product. */
static inline int unhash_append(uint64_t *hash, int byte)
{
	int before = (uint8_t)*hash, after = before ^ byte;

	*hash = (*hash - (uint64_t)before + (uint64_t)after) * 0x100000001b3ULL;
	return after - before;
}

static inline bool unhash_is_printable(int byte)
{
	return byte > ' ' && byte <= '~' && byte != '/';
}

/*
 * Make two texts that have one hash FNV-1a after *@hash, which becomes that hash: what their bytes
 * add to it differs by numbers of which the sum, with the powers of the prime, is 0.
 */
static inline void unhash_twins(char a[static UNHASH_TWIN + 1], char b[static UNHASH_TWIN + 1],
				uint64_t *hash, uint64_t seed)
{
	static const int apart[UNHASH_TWIN] = { 1, 8, -2, -4, -10, -6, 14, 2, 18, 13, -15, 17 };
	uint64_t ha = *hash, hb = *hash;

	for (uint32_t i = 0, tries = 0; i < UNHASH_TWIN; tries++) {
		int before = (uint8_t)hb, byte = (int)((seed = hash_u64(seed + 1)) % 128);
		int after = before + ((uint8_t)ha ^ byte) - (uint8_t)ha + apart[i];

		/* After some bytes there is no next one: begin again. */
		if (tries == 3000) {
			i = tries = 0;
			ha = hb = *hash;
			continue;
		}
		if (!unhash_is_printable(byte) || after < 0 || after > 255 ||
		    !unhash_is_printable(after ^ before))
			continue;
		a[i] = (char)byte;
		b[i++] = (char)(after ^ before);
		unhash_append(&ha, byte);
		unhash_append(&hb, after ^ before);
	}
	a[UNHASH_TWIN] = b[UNHASH_TWIN] = 0;
	*hash = ha;
}

/*
 * Return the next pid after @pid of which hash_u64() is in the first of @buckets, a power of two;
 * of pid | @flag. Without @chosen: the next pid.
 */
static inline pid_t unhash_pid(pid_t pid, uint32_t buckets, uint32_t flag, bool chosen)
{
	do
		pid++;
	while (chosen && hash_u64((uint32_t)pid | flag) & (buckets - 1));
	return pid;
}

/*
 * Check that @work, which returns its CPU time, takes at most @times as long, and @more_ns. On a
 * busy machine one of three times does: a chain of all keys is many times as slow, each time.
 */
static inline void unhash_compare_by(const char *keys, uint64_t (*work)(bool chosen),
				     uint64_t times, uint64_t more_ns)
{
	uint64_t plain_ns, chosen_ns;

	for (int i = 0; i < 3; i++) {
		plain_ns = work(false);
		chosen_ns = work(true);
		print_message("%s: %.1f and %.1f ms\n", keys, (double)plain_ns / 1e6,
			      (double)chosen_ns / 1e6);
		if (chosen_ns <= times * plain_ns + more_ns)
			return;
	}
	fail_msg("%s: chosen keys take longer than others", keys);
}

/*
 * Check that @work, which returns its CPU time, is not much slower with keys that were chosen for
 * one hash than with others.
 */
static inline void unhash_compare(const char *keys, uint64_t (*work)(bool chosen))
{
	unhash_compare_by(keys, work, 10, 50000000);
}

/* The same of pids: fewer of them can be chosen. */
static inline void unhash_compare_pids(const char *keys, uint64_t (*work)(bool chosen))
{
	unhash_compare_by(keys, work, 4, 10000000);
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* keyhash: the published values of SipHash-1-3; keys differ; parts are not mixed up. */
#include "tests/prelude.h"

#include "symbols/base/table.h"

/* Return the hash of 15 or fewer bytes 0, 1, 2..., as SipHash has them: the number is at the end.
 */
static uint64_t hash_of(const struct keyhash_key *key, unsigned int size)
{
	struct keyhash h = keyhash_begin(key);
	uint64_t words[2] = { 0, 0 };

	for (unsigned int i = 0; i < size; i++)
		words[i / 8] |= (uint64_t)i << 8 * (i % 8);
	words[size / 8] |= (uint64_t)size << 56;
	for (unsigned int i = 0; i <= size / 8; i++)
		keyhash_word(&h, words[i]);
	return keyhash_end(&h);
}

TEST(test_published)
{
	const struct keyhash_key key = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };

	assert_true(hash_of(&key, 0) == 0xabac0158050fc4dcULL);
	assert_true(hash_of(&key, 15) == 0xd320d86d2a519956ULL);
}

TEST(test_parts)
{
	const struct keyhash_key key = keyhash_new_key(), other = keyhash_new_key();
	struct keyhash a = keyhash_begin(&key), b = keyhash_begin(&key), c = keyhash_begin(&other);

	assert_true(key.k0 != other.k0 && key.k1 != other.k1);
	keyhash_bytes(&a, "ab", 2);
	keyhash_bytes(&a, "c", 1);
	keyhash_bytes(&b, "a", 1);
	keyhash_bytes(&b, "bc", 2);
	keyhash_bytes(&c, "ab", 2);
	keyhash_bytes(&c, "c", 1);
	assert_true(keyhash_end(&a) != keyhash_end(&b));
	assert_true(keyhash_end(&a) != keyhash_end(&c));
	assert_true(keyhash_end(&a) == keyhash_end(&a));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

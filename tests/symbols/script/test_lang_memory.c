// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lang: no byte of an earlier sample, which may be another user's, is in or behind a piece.
 */
#include "tests/prelude.h"

#include <stdlib.h>

#include "symbols/script/internal.h"

#define STALE 0xaa
#define OURS  0x11
/* Cannot be read. */
#define GONE 0x20000U

static uint32_t nr_calls;

/* As process_vm_readv(2): a piece that cannot be read may have been read in part. */
static int read_ours(void *ctx, const struct lang_piece *pieces, uint32_t nr, uint8_t *bytes)
{
	(void)ctx;
	nr_calls++;
	for (uint32_t i = 0; i < nr; i++) {
		if (pieces[i].addr == GONE)
			return (int)i;
		memset(bytes + pieces[i].at, OURS, pieces[i].size);
	}
	return (int)nr;
}

/* Begin behind a sample that has left its bytes everywhere. */
static struct lang_memory *begin(void)
{
	struct lang_memory *m = calloc(1, sizeof(*m));

	m->read = read_ours;
	memset(m->bytes, STALE, sizeof(m->bytes));
	lang_memory_begin(m);
	nr_calls = 0;
	return m;
}

/* Expect that the bytes of a piece were read, and that none behind is stale. */
static void expect_clean(const struct lang_memory *m, int piece)
{
	const uint8_t *bytes = lang_memory_piece(m, piece);
	uint32_t size = m->pieces[piece].size;

	assert_non_null(bytes);
	for (uint32_t i = 0; i < size + LANG_BYTES_BEHIND; i++) {
		if (i < size)
			assert_int_equal(bytes[i], OURS);
		else
			assert_int_not_equal(bytes[i], STALE);
	}
}

TEST(test_behind_the_last)
{
	struct lang_memory *m = begin();
	int first = lang_memory_want(m, 0x10000, 24), second;

	assert_true(lang_memory_fetch(m));
	expect_clean(m, first);
	/* Pieces that are queued, and not read yet. */
	second = lang_memory_want(m, 0x11000, 100);
	lang_memory_want(m, 0x12000, 3);
	expect_clean(m, first);
	assert_true(lang_memory_fetch(m));
	expect_clean(m, first);
	expect_clean(m, second);
	free(m);
}

TEST(test_between_pieces)
{
	struct lang_memory *m = begin();

	for (uint32_t i = 0; i < 32; i++)
		lang_memory_want(m, 0x10000 + 64 * i, 1 + i);
	assert_true(lang_memory_fetch(m));
	for (int i = 0; i < 32; i++)
		expect_clean(m, i);
	free(m);
}

TEST(test_behind_unreadable)
{
	struct lang_memory *m = begin();
	int first = lang_memory_want(m, 0x10000, 8), gone = lang_memory_want(m, GONE, 200);
	int last = lang_memory_want(m, 0x11000, 8);

	assert_true(lang_memory_fetch(m));
	assert_null(lang_memory_piece(m, gone));
	expect_clean(m, first);
	expect_clean(m, last);
	free(m);
}

/* The last call has read a piece; none is left for the one behind it. */
TEST(test_without_calls)
{
	struct lang_memory *m = begin();
	int piece, unread;

	for (uint32_t i = 1; i < LANG_CALLS_MAX; i++)
		lang_memory_want(m, GONE, 8);
	piece = lang_memory_want(m, 0x10000, 8);
	lang_memory_want(m, GONE, 8);
	unread = lang_memory_want(m, 0x11000, 1000);
	assert_false(lang_memory_fetch(m));
	assert_int_equal(nr_calls, LANG_CALLS_MAX);
	assert_null(lang_memory_piece(m, unread));
	expect_clean(m, piece);
	free(m);
}

/* To the end of all bytes. */
TEST(test_full)
{
	struct lang_memory *m = begin();
	int piece = -1, next;

	for (uint64_t addr = 0x10000; (next = lang_memory_want(m, addr, LANG_PIECE_MAX)) >= 0;)
		addr += LANG_PIECE_MAX, piece = next;
	assert_int_equal(m->used_bytes, LANG_BYTES_MAX);
	assert_true(lang_memory_fetch(m));
	expect_clean(m, piece);
	free(m);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

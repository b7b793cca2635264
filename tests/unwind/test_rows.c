// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows survive their packing, or become ROW_STEP; places beyond the table have none.
 */
#include "unwind/internal.h"

#include "tests/prelude.h"

static void round_trip(int32_t cfa_off, int32_t ra_off, int32_t fp_off, bool fits)
{
	for (int bits = 0; bits < 128; bits++) {
		const struct cfi_row row = {
			.kind = CFI_ROW,
			.cfa_is_fp = bits & 1,
			.cfa_is_word = bits & 8,
			.cfa_is_above = bits & 16,
			.ra_where = bits & 2 ? CFI_AT_CFA : CFI_SAME,
			.fp_where = bits & 64	? CFI_LOST
				    : bits & 4	? CFI_AT_CFA
				    : bits & 32 ? CFI_AT_FP
						: CFI_SAME,
			.cfa_off = cfa_off,
			.ra_off = ra_off,
			.fp_off = fp_off,
		};
		uint64_t word = row_pack(&row);

		if (!fits) {
			assert_int_equal(word, ROW_STEP);
			continue;
		}
		assert_int_equal(row_kind(word), ROW_SIMPLE);
		assert_int_equal(row_cfa_is_fp(word), bits & 1);
		assert_int_equal(row_cfa_is_word(word), (bits & 8) != 0);
		assert_int_equal(row_cfa_is_above(word), (bits & 16) != 0);
		assert_int_equal(row_fp_at_fp(word), bits & 64 || (bits & 36) == 32);
		assert_int_equal(row_ra_at_cfa(word), (bits & 2) != 0);
		assert_int_equal(row_fp_at_cfa(word), (bits & (64 | 4)) != 0);
		assert_int_equal(row_cfa_off(word), cfa_off);
		assert_int_equal(row_ra_off(word), ra_off);
		assert_int_equal(row_fp_off(word), fp_off);
	}
}

TEST(test_pack)
{
	round_trip(8, -8, -16, true);
	round_trip(0, 0, 0, true);
	round_trip(-8, 8, 16, true);
	round_trip((1 << 20) - 1, 32767 * 4, -32768 * 4, true);
	round_trip(-(1 << 20), -32768 * 4, 32767 * 4, true);
	round_trip(1 << 20, -8, 0, false);
	round_trip(-(1 << 20) - 1, -8, 0, false);
	round_trip(16, -32769 * 4, 0, false);
	round_trip(16, -8, 32768 * 4, false);
	round_trip(16, -8, -14, false);
	round_trip(16, -2, -16, false);
	round_trip(INT32_MAX, INT32_MIN, INT32_MIN, false);
}

TEST(test_other_kinds)
{
	const struct cfi_row end = { .kind = CFI_END }, complex = { .kind = CFI_COMPLEX },
			     elsewhere = { .kind = CFI_SWITCH };

	assert_int_equal(row_pack(&end), ROW_END);
	assert_int_equal(row_pack(&complex), ROW_STEP);
	assert_int_equal(row_pack(&elsewhere), ROW_END | ROW_SWITCH);
	assert_int_equal(row_kind(ROW_END | ROW_SWITCH), ROW_END);
}

TEST(test_table)
{
	struct unwind_rows *t;

	assert_int_equal(unwind_rows_new(&t, 1000), 0);
	assert_int_equal(rows_get(t, 0), ROW_UNKNOWN);
	rows_put(t, 999, 7);
	rows_put(t, 1000, 7);
	rows_put(t, UINT32_MAX, 7);
	assert_int_equal(rows_get(t, 999), 7);
	assert_int_equal(rows_get(t, 1000), ROW_UNKNOWN);
	assert_int_equal(rows_get(t, UINT32_MAX), ROW_UNKNOWN);
	unwind_rows_free(t);
	unwind_rows_free(NULL);
}

/* A proven row is known; another row of the same slot replaces it. */
TEST(test_proven)
{
	const uint64_t program = 0x123456789abcdef0, other = program + (1ULL << 40);
	struct unwind_rows *t;

	assert_int_equal(unwind_rows_new(&t, 1000), 0);
	assert_false(rows_proven(t, program));
	assert_false(rows_proven(t, 0));
	rows_prove(t, program);
	assert_true(rows_proven(t, program));
	assert_false(rows_proven(t, other));
	rows_prove(t, other);
	assert_true(rows_proven(t, other));
	assert_false(rows_proven(t, program));
	unwind_rows_free(t);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

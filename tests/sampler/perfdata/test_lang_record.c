// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lang_record: functions and frames of languages in a recording and back; damaged and hostile
 * records are refused.
 */
#include "sampler/perfdata/lang_record.c"

#include "tests/prelude.h"

#include <errno.h>

#include "unwind/unwind.h"
#include "symbols/script/script.h"

static uint8_t buf[LANG_RECORD_MAX];

TEST(test_function)
{
	static const uint8_t table[] = { 1, 2, 3, 0, 5 };
	const struct code_text text = { .language = LANG_PYTHON,
					.version = 11,
					.name = "Cart.total",
					.name_size = 10,
					.file = "/srv/shop.py",
					.file_size = 12,
					.first_line = 40,
					.table = table,
					.table_size = sizeof(table) };
	size_t size = lang_record_put_function(buf, 77, &text);
	struct code_text back;
	uint64_t time_ns = 1;
	uint32_t number;

	assert_true(size && size % 8 == 0);
	assert_int_equal(lang_record_kind(buf, size, &time_ns), LANG_RECORD_FUNCTION);
	assert_int_equal(time_ns, 0); /* before all samples */
	assert_int_equal(lang_record_function(buf, size, &number, &back), 0);
	assert_int_equal(number, 77);
	assert_int_equal(back.language, LANG_PYTHON);
	assert_int_equal(back.version, 11);
	assert_int_equal(back.first_line, 40);
	assert_int_equal(back.name_size, 10);
	assert_memory_equal(back.name, "Cart.total", 10);
	assert_int_equal(back.file_size, 12);
	assert_memory_equal(back.file, "/srv/shop.py", 12);
	assert_int_equal(back.table_size, sizeof(table));
	assert_memory_equal(back.table, table, sizeof(table));
	/* Cut anywhere. */
	for (size_t cut = 0; cut < size - 7; cut++)
		assert_int_equal(lang_record_function(buf, cut, &number, &back), -EINVAL);
	size = lang_record_put_function(buf, SCRIPT_FUNCTIONS_MAX, &text);
	assert_int_equal(lang_record_function(buf, size, &number, &back), -EINVAL);
}

TEST(test_frames)
{
	struct lang_frames f = { .time_ns = 1234567890123, .pid = 42, .tid = 43 }, back;
	uint64_t time_ns;
	size_t size;

	f.language = LANG_RUBY;
	f.outcome = LANG_OUTCOME_CERTAIN;
	f.deep = true;
	f.nr_native = 2;
	f.nr = 3;
	f.entries[0] = 0;
	f.entries[1] = lang_entry(99, LANG_NO_INSTR);
	f.entries[2] = 1;
	size = lang_record_put_frames(buf, &f);
	assert_int_equal(lang_record_kind(buf, size, &time_ns), LANG_RECORD_FRAMES);
	assert_int_equal(time_ns, 1234567890123);
	assert_int_equal(lang_record_frames(buf, size, &back), 0);
	assert_int_equal(back.time_ns, f.time_ns);
	assert_int_equal(back.pid, 42);
	assert_int_equal(back.tid, 43);
	assert_int_equal(back.language, LANG_RUBY);
	assert_int_equal(back.outcome, LANG_OUTCOME_CERTAIN);
	assert_true(back.deep);
	assert_int_equal(back.nr_native, 2);
	assert_int_equal(back.nr, 3);
	assert_int_equal(back.entries[2], 1);
	assert_true(back.entries[1] & LANG_ENTRY);
	assert_int_equal(lang_entry_number(back.entries[1]), 99);
	assert_int_equal(lang_entry_instr(back.entries[1]), LANG_NO_INSTR);
	/* perf has an opinion on the smallest size. */
	assert_int_equal(size, 80);
	for (size_t cut = 0; cut < 72; cut++)
		assert_int_equal(lang_record_frames(buf, cut, &back), -EINVAL);
	assert_int_equal(lang_record_frames(buf, 72, &back), 0);
	/* Invalid: a language, an outcome, a number of frames. */
	f.language = LANG_NR;
	size = lang_record_put_frames(buf, &f);
	assert_int_equal(lang_record_frames(buf, size, &back), -EINVAL);
	f.language = LANG_PHP;
	f.outcome = 3;
	size = lang_record_put_frames(buf, &f);
	assert_int_equal(lang_record_frames(buf, size, &back), -EINVAL);
	f.nr = INTERLEAVE_FRAMES_MAX + 1;
	assert_int_equal(lang_record_put_frames(buf, &f), 0);
}

/* Records of old versions of perf with this type are not ours. */
TEST(test_untrusted)
{
	uint64_t time_ns;

	memset(buf, 0, sizeof(buf));
	buf[0] = LANG_RECORD_TYPE;
	assert_int_equal(lang_record_kind(buf, 64, &time_ns), LANG_RECORD_NONE);
	assert_int_equal(lang_record_kind(buf, 8, &time_ns), LANG_RECORD_NONE);
}

/* The stack copy of a sample that has no frames of a language; one that has them, too large. */
TEST(test_stack_copy)
{
	static uint8_t bytes[LANG_RECORD_MAX + 64], copy[LANG_RECORD_MAX];
	struct lang_frames f = { .time_ns = 5, .pid = 42, .tid = 43 }, back;
	uint64_t time_ns;
	size_t size;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	f.other = (struct unwind_interrupted){ 0x7000, bytes, 128, 0x9000, true, 48 };
	size = lang_record_put_frames(buf, &f);
	assert_int_equal(lang_record_kind(buf, size, &time_ns), LANG_RECORD_FRAMES);
	assert_int_equal(time_ns, 5);
	assert_int_equal(lang_record_frames(buf, size, &back), 0);
	assert_int_equal(back.language, LANG_NONE);
	assert_int_equal(back.nr, 0);
	assert_int_equal(back.other.sp, 0x7000);
	assert_int_equal(back.other.from, 0x9000);
	assert_true(back.other.guessed);
	assert_int_equal(back.other.size, 128);
	assert_int_equal(back.other.rest, 48);
	assert_memory_equal(back.other.bytes, bytes, 128);
	for (size_t cut = 0; cut < size; cut++) {
		memcpy(copy, buf, cut);
		assert_int_equal(lang_record_frames(copy, cut, &back), -EINVAL);
	}
	f.language = LANG_RUBY;
	f.nr = 2;
	f.entries[0] = 7;
	f.other.size = sizeof(bytes);
	f.other.rest = 4096;
	size = lang_record_put_frames(buf, &f);
	assert_int_equal(size, LANG_RECORD_MAX);
	assert_int_equal(lang_record_frames(buf, size, &back), 0);
	assert_int_equal(back.entries[0], 7);
	assert_in_range(back.other.size, LANG_RECORD_MAX - 128, LANG_RECORD_MAX);
	assert_int_equal(back.other.size - back.other.rest, sizeof(bytes) - 4096);
	assert_memory_equal(back.other.bytes, bytes, back.other.size);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

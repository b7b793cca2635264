// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Words laid over the memory of a Ruby, PHP or Perl of a version that no row is of: the members
 * that are sought in it are where readers of frames have room for them.
 * FUZZ: symbols
 * LIBFUZZER: -max_len=256
 * Live: reads the memory of a process.
 */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/require.h"
#include "tests/makers/interpreters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static union {
	uint64_t words[1];
	struct made_vm ruby;
	struct made_php php;
	struct made_perl perl;
} made;

/* Each 5 bytes: 2 of a word, 1 of how, 2 of a value; of a pointer it is another word, and a byte.
 */
static void lay_over(const uint8_t *data, size_t size)
{
	const size_t nr = sizeof(made) / sizeof(made.words[0]);

	for (; size >= 5; data += 5, size -= 5) {
		uint64_t *word = made.words + (data[0] | (size_t)data[1] << 8) % nr;
		uint64_t value = data[3] | (uint64_t)data[4] << 8;

		if (data[2] & 1)
			value = (uintptr_t)(made.words + value % nr) + (data[2] >> 5);
		if (data[2] & 2)
			memcpy((char *)word + (data[2] & 4), &value, 4);
		else
			*word = data[2] & 8 ? *word + (uint64_t)(int64_t)(int16_t)value : value;
	}
}

static void check_ruby(const struct ruby_layout *l, const struct ruby_layout *row)
{
	REQUIRE(l->frame_size % 8 == 0 && l->frame_size >= row->frame_size - 8 &&
		l->frame_size <= row->frame_size + 8 && l->frame_size >= l->frame_iseq + 8);
	REQUIRE(l->ec_c_stack % 8 == 0 && l->ec_c_stack < RUBY_CONTEXT_MAX &&
		l->ec_c_stack_size == l->ec_c_stack + row->ec_c_stack_size - row->ec_c_stack);
	REQUIRE(!l->ractor_threads && l->ractor_node && l->ractor_node < RUBY_SEEK);
	REQUIRE(l->native_tid == row->native_tid || l->native_tid < 4 * RUBY_NATIVE_MAX);
}

static void check_php(const struct php_layout *l)
{
	REQUIRE(l->stack % 8 == 0 && l->current == l->stack + 16 && l->current < SEEK_GLOBALS);
	/* A function is read up to its first line: the others are in front of that. */
	REQUIRE(l->line == l->file + 8 && l->line + 8U <= SEEK_FUNC);
	REQUIRE(l->ops % 8 == 0 && l->ops + 8 <= l->line && l->nr_ops % 4 == 0 &&
		l->nr_ops + 4 <= l->ops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const versions[] = { "4.0.9", "4.1.0", "5.0.2" };
	static uint16_t perl_size = 3800;
	struct detect_file d = { .machine = EM_X86_64, .nr_eval = 1 };
	struct lang_process p = { 0 };
	const struct ruby_layout *row = &ruby_version(0x04000600)->layout;
	bool early;

	if (size < 2)
		return 0;
	switch (data[0] % 3) {
	case 0:
		make_vm(&made.ruby, versions[data[1] % ARRAY_SIZE(versions)], row);
		d.version_at = (uintptr_t)made.ruby.version;
		d.runtime = (uintptr_t)&made.ruby.pointer;
		break;
	case 1:
		make_php(&made.php, &php_version(data[1] % ARRAY_SIZE(phps))->layout);
		d.version = 0x09000000;
		d.runtime = p.runtime = (uintptr_t)made.php.globals;
		break;
	default:
		make_perl(&made.perl);
		d.version_at = (uintptr_t)&perl_size;
		d.runtime = p.runtime = (uintptr_t)&made.perl.curinterp;
	}
	lay_over(data + 2, size - 2);
	early = (data[0] % 3 == 0   ? language_ruby.detect
		 : data[0] % 3 == 1 ? language_php.detect
				    : language_perl.detect)(&p, &d, getpid());
	/* Nothing was laid over it. */
	REQUIRE(size > 2 || (!early && !p.reason));
	if (early || p.reason)
		return 0;
	/* The version of a Ruby is in the memory too, and may be a known one. */
	REQUIRE(p.untried || !(data[0] % 3));
	if (data[0] % 3 == 0) {
		row = &ruby_version(p.version)->layout;
		if (memcmp(&p.ruby, row, sizeof(*row)) != 0)
			check_ruby(&p.ruby, row);
	}
	if (data[0] % 3 == 1)
		check_php(&p.php);
	return 0;
}

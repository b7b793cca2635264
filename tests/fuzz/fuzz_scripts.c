// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over the memory of a made-up PHP, Ruby or Perl: chains, functions and
 * texts keep their bounds in frames, calls and sizes.
 * FUZZ: symbols
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/check_chain.h"
#include "tests/symbols/pymake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pymake memory;
static struct lang_reader reader;
static struct lang_chain chain;

/* Each word a pointer to another one, in steps. */
static void fill(uint64_t step)
{
	for (uint64_t at = PYMAKE_BASE; at + 8 <= PYMAKE_BASE + PYMAKE_SIZE; at += 8)
		pymake_u64(&memory, at, PYMAKE_BASE + 4096 + ((at * step + 8 * step) & 0xfff8));
}

/* Each 11 bytes: 2 of a word, 1 of how, 8 to write there: a value, or a pointer to a word. */
static void lay_over(const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11) {
		uint32_t at = (data[0] | (uint32_t)data[1] << 8) * 8U % (PYMAKE_SIZE - 8);
		uint64_t value;

		memcpy(&value, data + 3, 8);
		if (data[2] & 1)
			value = PYMAKE_BASE + (value * 8 & (PYMAKE_SIZE - 1));
		memcpy(memory.bytes + at, &value, data[2] & 2 ? 4 : 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum lang_kind kinds[] = { LANG_PHP, LANG_RUBY, LANG_PERL };
	/* Another process each time: nothing of the last one is known. */
	static uint32_t process;
	struct lang_sample s = { .process = ++process,
				 .tid = 42,
				 .sp = PYMAKE_BASE + PYMAKE_STACK,
				 .stack_size = 4096,
				 .stack = memory.bytes + PYMAKE_STACK };

	if (size < 3)
		return 0;
	reader.codes = codes_new();
	if (!reader.codes)
		return 0;
	reader.memory.read = pymake_read;
	reader.memory.ctx = &memory;
	memory.process.kind = kinds[data[0] % ARRAY_SIZE(kinds)];
	memory.process.runtime = PYMAKE_BASE + 4096;
	fill(data[1] % 64);
	s.loop[0] = PYMAKE_BASE + 4096 + data[2] * 8U;
	s.loop[1] = s.loop[0] + 64;
	for (int round = 0; round < 3; round++) {
		lay_over(data + 3, round ? size - 3 : (size - 3) / 2);
		s.time_ns += 1000000000;
		if (!lang_chain(&reader, &memory.process, &s, &chain)) {
			lang_chain_find_thread(&reader, &memory.process, process, 42);
			lang_chain(&reader, &memory.process, &s, &chain);
		}
		check_chain(&reader, &chain);
	}
	codes_free(reader.codes);
	return 0;
}

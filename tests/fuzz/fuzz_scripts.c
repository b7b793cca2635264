// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over the memory of a made-up PHP, Ruby, Perl, Lua, R or BEAM: chains, functions and
 * texts keep their bounds in frames, calls and sizes.
 * FUZZ: symbols
 * LIBFUZZER: -max_len=512
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/check_chain.h"
#include "tests/fuzz/made.h"
#include "tests/makers/interpreters.h"
#include "symbols/base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS  64U
#define ENDED  16U /* steps of images in which lists end */
#define IMAGES (STEPS + 3 * ENDED)
#define SELDOM 256U
#define LOOP   0x400000ULL

static struct pymake memory, images[IMAGES];
static struct lang_reader reader;
static struct lang_chain chain;

/*
 * Each word a pointer to another one, in steps. Of three quarters of the choices some words are 0:
 * where lists have no end, most inputs meet a limit of the reader before anything else.
 */
static const struct pymake *image_of(uint8_t choice)
{
	uint64_t step = choice < STEPS ? choice : choice % ENDED;
	uint32_t ends = choice / STEPS;
	struct pymake *m = &images[ends ? STEPS + (ends - 1) * ENDED + step : step];

	if (m->end)
		return m;
	for (uint64_t at = PYMAKE_BASE; at + 8 <= PYMAKE_BASE + PYMAKE_SIZE; at += 8)
		if (!ends || hash_u64(at ^ step) % (SELDOM >> 2 * (ends - 1)))
			pymake_u64(m, at, PYMAKE_BASE + 4096 + ((at * step + 8 * step) & 0xfff8));
	m->end = PYMAKE_BASE + PYMAKE_SIZE;
	return m;
}

static uint32_t offset_of(const uint8_t *data)
{
	return (data[0] | (uint32_t)data[1] << 8) * 8U % (PYMAKE_SIZE - 8);
}

/* Each 11 bytes: 2 of a word, 1 of how, 8 to write there: a value, or a pointer to a word. */
static void lay_over(const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11) {
		uint64_t value;

		memcpy(&value, data + 3, 8);
		if (data[2] & 1)
			value = PYMAKE_BASE + (value * 8 & (PYMAKE_SIZE - 1));
		memcpy(memory.bytes + offset_of(data), &value, data[2] & 2 ? 4 : 8);
	}
}

static void undo(const struct pymake *image, const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11)
		made_undo(&memory, image, offset_of(data));
	made_end(&memory, image);
}

static uint32_t state_words[3]; /* offsets in the memory */

/* Have a state of Lua at @at of the second page that runs: its setjmp() is beside its address. */
static void put_state(uint32_t at)
{
	uint64_t address = PYMAKE_BASE + 4096 + at, error = PYMAKE_BASE + PYMAKE_STACK + 1024;

	state_words[0] = 4096 + at + 8;
	state_words[1] = 4096 + at + memory.process.lua.state_error;
	state_words[2] = PYMAKE_STACK + 1096;
	if (memory.process.kind != LANG_LUA)
		return;
	memory.bytes[state_words[0]] = 8;
	memcpy(memory.bytes + state_words[1], &error, 8);
	memcpy(memory.bytes + state_words[2], &address, 8);
}

static uint32_t beam_words[9];

/* Have a process of BEAM at @at of the second page that a scheduler runs. */
static void put_process(uint32_t at)
{
	uint64_t process = PYMAKE_BASE + 4096 + at, scheduler = PYMAKE_BASE + PYMAKE_STACK + 2048;
	const struct {
		uint64_t at, value;
	} words[] = {
		{ process + 80, PYMAKE_BASE + 8192 },
		{ process + 88, PYMAKE_BASE + 12288 },
		{ process + 128, PYMAKE_BASE + 4096 },
		{ process + 136, PYMAKE_BASE + 16384 },
		{ PYMAKE_BASE + 16376, PYMAKE_BASE + 8192 },
		{ process + 512, scheduler },
		{ scheduler, PYMAKE_BASE + PYMAKE_STACK + 1024 },
		{ scheduler + 72, process },
		{ PYMAKE_BASE + 8200, 3 },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(words); i++) {
		beam_words[i] = (uint32_t)(words[i].at - PYMAKE_BASE);
		if (memory.process.kind == LANG_BEAM)
			memcpy(memory.bytes + beam_words[i], &words[i].value, 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum lang_kind kinds[] = { LANG_PHP, LANG_RUBY, LANG_PERL,
						LANG_LUA, LANG_R,    LANG_BEAM };
	static const struct lua_layout luas[] = {
#define LUA_FIELD(name, value)
#define LUA_LAYOUT(major, minor, patch, compared, ...) { __VA_ARGS__ },
#include "symbols/script/lua_layouts.inc"
#undef LUA_FIELD
#undef LUA_LAYOUT
	};
	static const struct r_layout rs[] = {
#define R_FIELD(name, value)
#define R_LAYOUT(major, minor, compared, ...) { __VA_ARGS__ },
#include "symbols/script/r_layouts.inc"
#undef R_FIELD
#undef R_LAYOUT
	};
	static const uint32_t versions[] = { 0x03010200, 0x03030800, 0x04000600 };
	struct lang_sample s = { .process = 1,
				 .tid = 42,
				 .is_main = true,
				 .sp = PYMAKE_BASE + PYMAKE_STACK,
				 .stack_size = 4096,
				 .stack = memory.bytes + PYMAKE_STACK };

	const struct pymake *image;

	if (size < 3 || !made_reader(&reader, &memory))
		return 0;
	image = image_of(data[1]);
	made_begin(&memory, image);
	memory.process.kind = kinds[data[0] % ARRAY_SIZE(kinds)];
	memory.process.ruby = ruby_version(versions[data[0] / 4 % ARRAY_SIZE(versions)])->layout;
	memory.process.php = php_version(data[0] / 4 % ARRAY_SIZE(phps))->layout;
	/* As members that are sought differ from a row: see tests/fuzz/fuzz_seek.c. */
	memory.process.ruby.frame_size += 8 * (data[1] % 3) - 8;
	memory.process.php.file += 8 * (data[1] % 4);
	memory.process.php.line = memory.process.php.file + 8;
	memory.process.lua = luas[data[0] / 4 % ARRAY_SIZE(luas)];
	memory.process.r = rs[data[0] / 4 % ARRAY_SIZE(rs)];
	memory.process.runtime = PYMAKE_BASE + 4096;
	/* All of the stack may be of a loop. */
	memory.process.eval[0] = (struct lang_range){ LOOP, LOOP + 4096 };
	memory.process.nr_eval = 1;
	/* Its code is anywhere in the memory; of half of the samples the stack as well. */
	memory.process.code_type = PYMAKE_BASE + 12288;
	memory.process.beam = (struct beam_layout){ PYMAKE_BASE + 8192, 96, data[0] & 32 ? 14 : 0 };
	s.pc = LOOP + 64;
	if (memory.process.kind == LANG_BEAM) {
		s.r13 = PYMAKE_BASE + 4096 + data[2] * 8U;
		s.fp = PYMAKE_BASE + 12288 + data[1] * 8U;
	}
	if (memory.process.kind == LANG_BEAM && data[0] & 16) {
		memory.process.runtime = PYMAKE_BASE + 8192;
		s.pc = PYMAKE_BASE + 12288 + data[1];
		s.sp = PYMAKE_BASE + 12288;
		s.stack = memory.bytes + 12288;
	}
	s.loop[0] = PYMAKE_BASE + 4096 + data[2] * 8U;
	s.loop[1] = s.loop[0] + 64;
	put_state(data[2] * 8U);
	put_process(data[2] * 8U);
	for (int round = 0; round < 3; round++) {
		lay_over(data + 3, round ? size - 3 : (size - 3) / 2);
		s.time_ns += 1000000000;
		if (!lang_chain(&reader, &memory.process, &s, &chain)) {
			lang_chain_find_thread(&reader, &memory.process, &s);
			lang_chain(&reader, &memory.process, &s, &chain);
		}
		made_note(&reader);
		check_chain(&reader, &chain);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(state_words); i++)
		made_undo(&memory, image, state_words[i]);
	for (uint32_t i = 0; i < ARRAY_SIZE(beam_words); i++)
		made_undo(&memory, image, beam_words[i]);
	undo(image, data + 3, size - 3);
	script_functions_free(reader.codes);
	return 0;
}

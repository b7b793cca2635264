// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over the heap, the stack and the layout of a made-up V8: the reader keeps its
 * bounds, and the merge with any native stack has each frame once, in order.
 * FUZZ: unwind
 * LIBFUZZER: -max_len=1024
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/check_chain.h"
#include "tests/fuzz/made.h"
#include "tests/makers/v8.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/script/internal.h"
#include "symbols/process/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STACK 4096U
#define WASM  (PYMAKE_BASE + 0x15000)

static struct pymake memory, image;
static struct v8make v8;
static struct lang_reader reader;
static struct lang_chain chain;
static struct unwind_result native;
static struct interleave_result merged;

/* Optimised code of @function with a call of itself inlined. */
static void optimise(uint64_t function)
{
	uint64_t data = v8make_object(&v8, V8MAKE_OTHER, 96);
	uint64_t literals = v8make_object(&v8, V8MAKE_OTHER, 32);
	const int64_t calls[2] = { v8make_position(7, -1), 0 };
	struct v8make_table t = { .size = 0 };

	v8make_entry(&t, 0, v8make_position(5, -1), true);
	v8make_entry(&t, 16, v8make_position(11, 0), false);
	pymake_u64(&image, data + 24, v8make_smi(1));
	pymake_u64(&image, data + 32, literals + 1);
	pymake_u64(&image, data + 72, v8make_bytes(&v8, calls, sizeof(calls)) + 1);
	pymake_u64(&image, literals + 16, bytes_u64(pymake_at(&image, function + 24)));
	v8make_compiled(&v8, function, 13, data, v8make_bytes(&v8, t.bytes, t.size));
}

/* Baseline code of @function with two bytecodes. */
static void compile(uint64_t function)
{
	uint64_t bytecodes = v8make_bytecodes(&v8, "\2\4\2\6", 4);

	pymake_u64(&image, bytecodes + 8, v8make_smi(2));
	memcpy(pymake_at(&image, bytecodes + 54), "\x0c\xa9", 2);
	v8make_compiled(&v8, function, 11, bytecodes, v8make_bytes(&v8, "\x10\4\5", 3));
}

/* A module of WebAssembly with one function, which is where the pc is: its manager is at WASM. */
static void make_wasm(void)
{
	static const char module[] = "\0asm\1\0\0\0\7\7\1\3run\0\1\0\x0d\4name\1\6\1\1\3abc";
	static const uint64_t words[][2] = {
		{ 0, WASM + 64 },	    { 64 + 72 + 8, WASM + 256 }, /* manager, its map */
		{ 256 + 32, PYMAKE_BASE },  { 256 + 40, PYMAKE_BASE + 4096 },
		{ 256 + 48, WASM + 512 }, /* a node: the module */
		{ 512 + 200, WASM + 1104 }, { 512 + 320, WASM + 1400 },
		{ 512 + 352, WASM + 1600 }, { 512 + 360, WASM + 1608 },
		{ 1104, WASM + 1200 },	    { 1112, sizeof(module) - 1 }, /* its bytes */
		{ 1400 + 32, PYMAKE_BASE }, { 1400 + 40, WASM + 1504 },
		{ 1600, WASM + 1504 },	    { 1504, WASM + 512 }, /* its code */
		{ 1512, PYMAKE_BASE },	    { 1528, 4096 },
		{ 1544, 1ULL << 32 }, /* its index, 44 behind the begin */
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		pymake_u64(&image, WASM + words[i][0], words[i][1]);
	memcpy(pymake_at(&image, WASM + 1200), module, sizeof(module) - 1);
}

static void set_wasm(struct lang_process *p)
{
	p->code_type = WASM;
	p->v8.number[V8_WASM_MODULES] = 72;
	p->v8.number[V8_WASM_CODES] = 312;
	p->v8.number[V8_WASM_BYTES] = 200;
	p->v8.number[V8_WASM_SIZE] = 24;
	p->v8.number[V8_WASM_INDEX] = 44;
}

/* A true program: interpreted, compiled, a builtin; WebAssembly. */
static void make(void)
{
	uint64_t script, scope, function;

	if (image.end)
		return;
	v8make_init(&v8, &image);
	script = v8make_script(&v8, v8make_string(&v8, "/srv/a.js"));
	scope = v8make_scope(&v8, 1, v8make_string(&v8, "outer"), 0, 3);
	function = v8make_function(&v8, script, scope);
	optimise(function);
	v8make_frame(&v8, function, 0, 0);
	function = v8make_function(&v8, script, scope);
	compile(function);
	v8make_frame(&v8, function, 0, 0);
	v8make_frame(&v8, v8make_function(&v8, 0, v8make_string(&v8, "map")), 0, 0);
	scope = v8make_scope(&v8, 0, v8make_string(&v8, ""),
			     v8make_cons(&v8, v8make_string(&v8, "a"), v8make_string(&v8, ".b")),
			     40);
	v8make_frame(&v8, v8make_function(&v8, script, scope), v8make_bytecodes(&v8, "\1\2\3", 3),
		     2);
	make_wasm();
}

static uint32_t offset_of(const uint8_t *data)
{
	return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;
}

/* Each 11 bytes: 3 of an offset, 8 to write there; the last bit: numbers of the layout instead. */
static void spoil(const uint8_t *data, size_t size)
{
	bool nearest;

	for (; size >= 11; data += 11, size -= 11) {
		uint32_t at = offset_of(data);

		if (at & 0x800000)
			memcpy(&memory.process.v8.number[at % V8_NR], data + 3, 2);
		else
			memcpy(memory.bytes + at % (PYMAKE_SIZE - 8), data + 3, 8);
	}
	if (v8layout_complete(&memory.process.v8, 14U << 24, &nearest))
		memory.process.v8 = v8make_layout();
}

static void undo(const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11)
		if (!(offset_of(data) & 0x800000))
			made_undo(&memory, &image, offset_of(data) % (PYMAKE_SIZE - 8));
	made_end(&memory, &image);
}

static void check_merge(const uint8_t *data, size_t size)
{
	static union {
		struct lang_slot slot;
		uint8_t bytes[sizeof(struct lang_slot) + sizeof(chain.frames)];
	} u;
	uint32_t next[2] = { 0, 0 };

	u.slot = (struct lang_slot){ .same = chain.same, .checked = 1, .top = data[0] & 1 };
	u.slot.nr = (uint16_t)chain.nr;
	memcpy(u.slot.frames, chain.frames, chain.nr * sizeof(chain.frames[0]));
	native.nr = native.nr_v8 = 0;
	native.stop = size & 1 ? UNWIND_COMPLETE : UNWIND_TRUNCATED;
	for (size_t i = 0; i < size && native.nr < 64; i++, native.nr++) {
		native.ip[native.nr] = 0x12340 + data[i] % 0x90;
		if (!(data[i] & 1))
			continue;
		native.v8[native.nr_v8++] = (struct unwind_v8){
			.fp = data[i] & 2 && i < chain.nr ? chain.frames[i].boundary
							  : PYMAKE_BASE + data[i] * 8ULL,
			.frame = native.nr,
			.compiled = data[i] & 4,
			.javascript = data[i] & 8,
		};
	}
	interleave_v8(&memory.process, reader.codes, &native, &u.slot, &merged);
	if (merged.nr > INTERLEAVE_FRAMES_MAX || merged.verdict > INTERLEAVE_NONE)
		abort();
	for (uint32_t i = 0; i < merged.nr; i++) {
		bool lang = merged.frame[i] & INTERLEAVE_LANG;
		uint32_t index = merged.frame[i] & ~INTERLEAVE_LANG;

		/* A frame has several functions where some are inlined. */
		if (index >= (lang ? chain.nr : native.nr) || index < next[lang])
			abort();
		next[lang] = lang ? index : index + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lang_sample s = { .process = 1,
				 .tid = 42,
				 .sp = PYMAKE_BASE + PYMAKE_SIZE - STACK,
				 .stack_size = STACK,
				 .pc = PYMAKE_BASE + 64,
				 .fp = PYMAKE_BASE + PYMAKE_SIZE - 640,
				 .r9 = 55,
				 .r15 = PYMAKE_BASE + 8192 };

	if (size < 2 || !made_reader(&reader, &memory))
		return 0;
	s.stack = memory.bytes + PYMAKE_SIZE - STACK;
	make();
	made_begin(&memory, &image);
	set_wasm(&memory.process);
	memset(reader.wasm, 0, sizeof(reader.wasm));
	s.rdi = data[0] & 2 ? memory.end - 64 + 1 : 0;
	for (int round = 0; round < 2; round++) {
		lang_chain_find_thread(&reader, &memory.process, &s);
		lang_chain(&reader, &memory.process, &s, &chain);
		made_note(&reader);
		check_chain(&reader, &chain);
		check_merge(data, size);
		spoil(data + 1, size - 1);
	}
	undo(data + 1, size - 1);
	script_functions_free(reader.codes);
	return 0;
}

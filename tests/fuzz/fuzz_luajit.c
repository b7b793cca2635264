// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over the states, the functions, the C stack and the registers of a made-up LuaJIT:
 * the reader keeps its bounds in stacks, links, constants and names.
 * FUZZ: symbols
 * LIBFUZZER: -max_len=512
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/check_chain.h"
#include "tests/fuzz/made.h"
#include "tests/makers/luajit.h"
#include "symbols/base/base.h"
#include "symbols/script/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STACK 4096U
#define CODE  0x14000U /* of the loop, in memory: what it stored before a call */

static const struct luajit_layout layouts[] = {
#define LUAJIT_FIELD(name, value)
#define LUAJIT_LAYOUT(release, compared, ...) { __VA_ARGS__ },
#include "symbols/script/luajit_layouts.inc"
#undef LUAJIT_FIELD
#undef LUAJIT_LAYOUT
};

static struct pymake memory;
static struct made {
	struct pymake m;
	uint64_t base, pc;
	uint32_t used; /* bytes */
} images[ARRAY_SIZE(layouts)];
static struct lang_reader reader;
static struct lang_chain chain;

/* Name one function by an upvalue, and another one by a field. */
static void set_names(struct luajitmake *u, uint64_t upvalue, uint64_t field)
{
	const struct luajit_layout *l = u->l;
	uint64_t names = pymake_take(u->m, 64), proto = luajitmake_code(u, upvalue) - l->proto_size;
	uint64_t at = 4 * (LUAJITMAKE_CALL - 1UL);

	memcpy(pymake_at(u->m, names), "other\0deep", 11);
	pymake_u64(u->m, proto + l->proto_upvalues, names);
	*pymake_at(u->m, proto + l->proto_nr_upvalues) = 2;
	pymake_u32(u->m, luajitmake_code(u, upvalue) + at,
		   l->op_getupval | LUAJITMAKE_REG << 8 | 1U << 16);
	pymake_u32(u->m, luajitmake_code(u, field) + at, l->op_getfield | LUAJITMAKE_REG << 8);
}

/* A true program: a main chunk that resumed a coroutine, which calls C, which calls. */
static const struct made *image_of(uint32_t i)
{
	struct made *image = &images[i];
	uint64_t f[4];
	struct luajitmake u;

	if (image->m.end)
		return image;
	luajitmake_begin(&u, &image->m, &layouts[i]);
	image->m.process.eval[0] =
		(struct lang_range){ PYMAKE_BASE + CODE, PYMAKE_BASE + CODE + 4096 };
	for (uint32_t nr = 0; nr < ARRAY_SIZE(f); nr++)
		f[nr] = luajitmake_function(&u, nr & 1 ? "@/srv/a.lua" : "return 1\nx", 20 * nr,
					    "f");
	set_names(&u, f[1], f[2]);
	luajitmake_enter(&u, 2048);
	luajitmake_call(&u, f[0], true);
	luajitmake_call(&u, luajitmake_in_c(&u), false);
	luajitmake_state(&u);
	luajitmake_enter(&u, 1024);
	luajitmake_call(&u, f[1], true);
	luajitmake_call(&u, f[2], false);
	luajitmake_call(&u, luajitmake_in_c(&u), false);
	luajitmake_enter(&u, 0);
	luajitmake_call(&u, f[1], true);
	luajitmake_call(&u, f[2], false);
	luajitmake_call(&u, f[3], false);
	image->base = u.base;
	image->pc = luajitmake_code(&u, f[3]) + 8;
	/* In front of a call of C the loop has stored its frame. */
	pymake_u32(&image->m, PYMAKE_BASE + CODE + 80, 0x20558948);
	image->used = (uint32_t)(image->m.end - PYMAKE_BASE) - 4096;
	image->m.end = PYMAKE_BASE + PYMAKE_SIZE;
	return image;
}

/* Among the objects, or on the C stack. */
static uint32_t offset_of(const struct made *image, const uint8_t *data)
{
	uint32_t at = data[0] | (uint32_t)data[1] << 8;

	return data[2] & 16 ? PYMAKE_STACK + at % 2304 : 4096 + at % image->used;
}

/* Each 11 bytes: 3 of an offset and how, 8 to write there: a value, or a pointer to a word. */
static void lay_over(const struct made *image, const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11) {
		uint64_t value;

		memcpy(&value, data + 3, 8);
		if (data[2] & 1)
			value = PYMAKE_BASE + 4096 + value % image->used;
		if (data[2] & 2)
			value = (value & ((1ULL << 47) - 1)) | (uint64_t)-9 << 47;
		memcpy(memory.bytes + offset_of(image, data), &value, data[2] & 4 ? 1 : 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct made *image;
	struct lang_sample s = { .process = 1,
				 .tid = 42,
				 .is_main = true,
				 .sp = LUAJITMAKE_STACK,
				 .stack_size = STACK,
				 .stack = memory.bytes + PYMAKE_STACK };

	if (size < 2 || !made_reader(&reader, &memory))
		return 0;
	image = image_of(data[0] % ARRAY_SIZE(images));
	made_begin(&memory, &image->m);
	s.pc = data[0] & 2 ? PYMAKE_BASE + CODE + 64 : 0;
	s.loop[0] = image->base;
	s.loop[1] = image->pc + 4 * (data[1] & 7U);
	/* Below a call of C. */
	s.sp -= data[0] & 4 ? 8 : 0;
	s.stack -= data[0] & 4 ? 8 : 0;
	for (int round = 0; round < 3; round++) {
		s.time_ns += 1000000000;
		if (!lang_chain(&reader, &memory.process, &s, &chain)) {
			lang_chain_find_thread(&reader, &memory.process, &s);
			lang_chain(&reader, &memory.process, &s, &chain);
		}
		made_note(&reader);
		check_chain(&reader, &chain);
		/* Nothing was laid over it yet: true. */
		if (!round && (data[0] & 6) == 2 && (chain.nr != 6 || chain.broken))
			abort();
		lay_over(image, data + 2, round ? size - 2 : (size - 2) / 2);
	}
	for (const uint8_t *at = data + 2; size - (size_t)(at - data) >= 11; at += 11)
		made_undo(&memory, &image->m, offset_of(image, at));
	made_end(&memory, &image->m);
	script_functions_free(reader.codes);
	return 0;
}

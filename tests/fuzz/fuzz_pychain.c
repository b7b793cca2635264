// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes laid over the memory of a made-up CPython: threads, chains, code and
 * line tables keep their bounds, and the merge with any native stack has each
 * frame once, in order.
 * FUZZ: unwind
 * LIBFUZZER: -max_len=512
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/script/internal.h"
#include "tests/fuzz/check_chain.h"
#include "tests/fuzz/made.h"
#include "unwind/unwind.h"
#include "symbols/process/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VERSIONS 7U /* from 3.8 on */

static struct pymake memory, images[1 + VERSIONS];
static struct lang_reader reader;
static struct lang_chain chain;
static struct unwind_result native;
static struct interleave_result merged;

/* A true program of 3.11, or the same bytes seen as another version: 1 to VERSIONS. */
static const struct pymake *image_of(uint32_t version)
{
	struct pymake *m = &images[version];
	uint64_t code[3];

	if (m->end)
		return m;
	pymake_init(m, 42);
	code[0] = pymake_code(m, "<module>", "/srv/a.py", 1);
	code[1] = pymake_code(m, "total", "/srv/a.py", 20);
	code[2] = pymake_code(m, "leaf", "/srv/b.py", 7);
	pymake_loop(m, PYMAKE_BASE + PYMAKE_STACK + 0x800);
	pymake_call(m, code[0], true);
	pymake_call(m, code[1], false);
	pymake_loop(m, PYMAKE_BASE + PYMAKE_STACK + 0x200);
	pymake_call(m, code[2], true);
	if (version)
		m->process.py = *pylayout_of(0x03000000 | (7U + version) << 16);
	return m;
}

static uint32_t offset_of(const uint8_t *data)
{
	return (data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16) % (PYMAKE_SIZE - 8);
}

/* Each 11 bytes: 3 of an offset, 8 to write there. */
static void spoil(const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11)
		memcpy(memory.bytes + offset_of(data), data + 3, 8);
}

static void undo(const struct pymake *image, const uint8_t *data, size_t size)
{
	for (; size >= 11; data += 11, size -= 11)
		made_undo(&memory, image, offset_of(data));
	made_end(&memory, image);
}

/* Merge, and check that the frames of both are in order, and there. */
static void merge(const struct lang_process *p, const struct lang_slot *slot)
{
	uint32_t next[2] = { 0, 0 };

	interleave_stacks(p, &native, slot, &merged);
	if (merged.nr > INTERLEAVE_FRAMES_MAX || merged.verdict > INTERLEAVE_NONE)
		abort();
	for (uint32_t i = 0; i < merged.nr; i++) {
		bool lang = merged.frame[i] & INTERLEAVE_LANG;
		uint32_t index = merged.frame[i] & ~INTERLEAVE_LANG;

		if (index >= (lang ? slot->nr : native.nr) || index < next[lang])
			abort();
		next[lang] = index + 1;
	}
}

/* The same frames as Perl's, with its loops that are not one for each group. */
static void merge_perl(struct lang_slot *slot, const uint8_t *data, size_t size)
{
	static const struct lang_process perl = { .kind = LANG_PERL,
						  .eval = { { 0x500000, 0x502000 } },
						  .nr_eval = 1,
						  .main = { { 0x503000, 0x503800 } },
						  .nr_main = LANG_MAIN_MAX };

	slot->loops = (struct lang_loops){ .nr = data[0] >> (data[1] & 7) };
	slot->loops.lack = (enum lang_lack)(data[1] % (LANG_LACK_BEGUN + 1));
	slot->loops.call = PYMAKE_BASE + PYMAKE_STACK + data[0] * 64ULL;
	for (uint32_t i = 0; i < LANG_INNER_MAX && i < size; i++)
		slot->loops.inner[i] = PYMAKE_BASE + PYMAKE_STACK + data[i] * 64ULL;
	for (uint32_t i = 0; i < slot->nr; i++)
		slot->frames[i].boundary = data[i % size] & 3 ? data[i % size] >> 6
							      : data[i % size];
	slot->deep = data[1] >> 7;
	slot->rooted = data[1] >> 6 & 1;
	merge(&perl, slot);
}

static void check_merge(const uint8_t *data, size_t size)
{
	static union {
		struct lang_slot slot;
		uint8_t bytes[sizeof(struct lang_slot) + sizeof(chain.frames)];
	} u;

	u.slot = (struct lang_slot){ .same = chain.same, .checked = 1, .settled = 1 };
	u.slot.nr = (uint16_t)chain.nr;
	memcpy(u.slot.frames, chain.frames, chain.nr * sizeof(chain.frames[0]));
	native.nr = 0;
	native.stop = size & 1 ? UNWIND_COMPLETE : UNWIND_TRUNCATED;
	for (size_t i = 0; i < size && native.nr < 64; i++, native.nr++) {
		native.ip[native.nr] = data[i] & 3 ? 0x500000 + data[i] * 64U : 0x700000;
		native.sp[native.nr] = PYMAKE_BASE + PYMAKE_STACK + native.nr * 0x100ULL;
	}
	merge(&memory.process, &u.slot);
	merge_perl(&u.slot, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lang_sample s = { .process = 1,
				 .tid = 42,
				 .is_main = true,
				 .sp = PYMAKE_BASE + PYMAKE_STACK,
				 .stack_size = 8192 };

	const struct pymake *image;

	if (size < 2 || !made_reader(&reader, &memory))
		return 0;
	s.stack = memory.bytes + PYMAKE_STACK;
	image = image_of(data[0] ? 1 + data[0] % VERSIONS : 0);
	made_begin(&memory, image);
	for (int round = 0; round < 2; round++) {
		lang_chain_find_thread(&reader, &memory.process, &s);
		lang_chain(&reader, &memory.process, &s, &chain);
		made_note(&reader);
		check_chain(&reader, &chain);
		for (uint32_t i = 0; i < chain.nr; i++) {
			const struct code_text *t =
				script_functions_at(reader.codes, chain.frames[i].code);

			pyline_of(t->version, t->table, t->table_size, t->first_line,
				  chain.frames[i].instr);
		}
		check_merge(data, size);
		spoil(data + 1, size - 1);
	}
	undo(image, data + 1, size - 1);
	pyline_of(8 + data[0] % 7, data + 1, size - 1, data[1], size > 2 ? data[2] : 0);
	script_functions_free(reader.codes);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FUZZ: sampler
 *
 * The ring of a reader of interpreters: all of its bytes, from any position on. A slot that is
 * found is within its bounds, and each of its functions is known or unnamed, also inlined ones.
 */
#include "sampler/reader/frame_channel.c"

#include <stdlib.h>
#include <string.h>

#include "symbols/script/script.h"
#include "symbols/base/base.h"

#define TIMES  6U
#define ROUNDS 4096U /* with one table of functions */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inlined(const struct code_text *t, const struct script_functions *codes)
{
	struct v8_inlined call;

	if (!t || !t->compiled)
		return;
	for (uint32_t i = 0; v8table_inlined(t->table, t->table_size, i, &call); i++)
		if (call.code != CODE_NONE && !script_functions_at(codes, call.code))
			abort();
}

static void check(const struct lang_slot *s, const struct script_functions *codes)
{
	if (s->nr > LANG_FRAMES_MAX || s->nr_here > s->nr || s->none > LANG_OK ||
	    s->top > LANG_TOP_FRAMELESS)
		abort();
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->frames[i].code != CODE_UNNAMED &&
		    !script_functions_at(codes, s->frames[i].code))
			abort();
	for (uint32_t i = 0; i < s->nr; i++)
		for (uint32_t k = 0; k < LANG_COMPILED; k++)
			check_inlined(script_functions_at(codes, s->frames[i].compiled[k].code),
				      codes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frame_channel_ring ring;
	static struct script_functions *codes;
	static uint32_t rounds;
	struct frame_channel f;
	uint16_t start;
	uint64_t pos;

	if (size < sizeof(start))
		return 0;
	if (!codes || ++rounds % ROUNDS == 0) {
		script_functions_free(codes);
		codes = script_functions_new();
	}
	if (!codes || frame_channel_init(&f, &ring, codes))
		return 0;
	memcpy(&start, data, sizeof(start));
	data += sizeof(start);
	size = MIN(size - sizeof(start), FRAME_CHANNEL_SIZE);
	/* Before the end of the ring, or after it. */
	pos = 2ULL * FRAME_CHANNEL_SIZE - 8ULL * start;
	for (size_t i = 0; i < size; i++)
		ring.bytes[(pos + i) & (FRAME_CHANNEL_SIZE - 1)] = data[i];
	f.tail = pos;
	atomic_store(&ring.head, pos + size / 8 * 8);
	for (uint64_t time_ns = 1; time_ns <= TIMES; time_ns++) {
		const struct lang_slot *s = frame_channel_find(&f, time_ns, 1, 2);

		if (s)
			check(s, codes);
	}
	frame_channel_fini(&f);
	return 0;
}

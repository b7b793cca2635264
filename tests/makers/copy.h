/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The copy of the frames of a thread that the BPF program of sampler/reader/copier.c makes, made
 * here from any memory. For tests of the decoder, and to compare the kernel's with.
 */
#ifndef TESTS_MAKERS_COPY_H
#define TESTS_MAKERS_COPY_H

#include <string.h>

#include "symbols/base/base.h"
#include "symbols/script/script.h"

#define COPY_MAKER_MAX (64U << 10)

struct copy_maker {
	bool (*read)(void *ctx, uint64_t addr, void *out, size_t size);
	void *ctx;
	uint32_t frames_max;
	bool heads;    /* of functions as well: none of them is known to last */
	uint32_t size; /* of the copy */
	uint8_t bytes[COPY_MAKER_MAX];
};

static inline uint64_t copy_word(struct copy_maker *c, uint64_t addr)
{
	uint64_t word;

	return c->read(c->ctx, addr, &word, sizeof(word)) ? word : 0;
}

/* Append a piece, and return its bytes: zeros if they cannot be read. */
static inline const uint8_t *copy_piece_of(struct copy_maker *c, uint64_t addr, uint32_t size)
{
	uint8_t *at = c->bytes + c->size;
	struct lang_moment_piece piece = { addr, size, 0 };

	if (!c->read(c->ctx, addr, at + sizeof(piece), size)) {
		piece.error = -14;
		memset(at + sizeof(piece), 0, size);
	}
	memcpy(at, &piece, sizeof(piece));
	c->size += (uint32_t)sizeof(piece) + ((size + 7) & ~7U);
	return at + sizeof(piece);
}

/* Make the copy of a thread by its plan. */
static inline struct lang_moment copy_make(struct copy_maker *c, const struct lang_plan *plan)
{
	uint64_t frame;

	memset(c->bytes, 0, sizeof(c->bytes));
	c->size = 0;
	copy_piece_of(c, plan->state, plan->state_size);
	for (uint32_t i = 0; i < LANG_PLAN_WORDS; i++)
		copy_piece_of(c, plan->words[i], 8);
	frame = copy_word(c, plan->current);
	copy_piece_of(c, frame, plan->cframe_size);
	frame = copy_word(c, (frame & plan->cframe_mask) + plan->cframe_at);
	for (uint32_t i = 0; frame && i < c->frames_max; i++) {
		const uint8_t *f = copy_piece_of(c, frame, plan->frame_size);

		const uint64_t code = bytes_u64(f + plan->frame_code) & plan->code_mask;
		const uint8_t *head;

		frame = bytes_u64(f + plan->frame_previous);
		head = copy_piece_of(c, code + plan->head_at, c->heads ? plan->head_size : 0);
		copy_piece_of(c, c->heads ? bytes_u64(head + plan->head_name) + plan->name_at : 0,
			      c->heads ? 16 : 0);
	}
	return (struct lang_moment){ c->bytes, c->size, 0 };
}

#endif

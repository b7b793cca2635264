/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes → instructions as text, by the disassembler in the cage. Without one (HAVE_CAPSTONE), or
 * when its worker dies or is too slow, lines of bytes.
 *
 * The bytes are hostile: the disassembler gets them with their length, its output
 * is sanitised, and unknown bytes are shown as bytes, so that
 * instructions have no gaps.
 *
 * Pure; any thread, slow.
 */
#ifndef SYMBOLS_SOURCE_DISASM_H
#define SYMBOLS_SOURCE_DISASM_H

#include "symbols/code/code.h"
#include "symbols/base/text.h"

struct disasm_code {
	const uint8_t *bytes;
	uint32_t nr_bytes;
	uint64_t vaddr;
	uint16_t machine; /* e_machine */
	bool wide;	  /* 64 bits */
	/*
	 * Return the name of @vaddr, outside of these bytes, and its symbol, or LISTING_NONE. May
	 * be NULL.
	 */
	uint32_t (*name)(void *ctx, uint64_t vaddr, char *buf, size_t size);
	void *ctx;
};

/* Append the instructions of @c to @l, which has none yet. 0 or -ENOMEM. */
int disasm(struct listing *l, const struct disasm_code *c);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions as text: the only file that knows the disassembler. Without
 * one (HAVE_CAPSTONE), lines of bytes. The main thread.
 */
#ifndef UI_DISASM_H
#define UI_DISASM_H

#include "sampler/profile.h"

#define DISASM_NONE UINT32_MAX

struct disasm_line {
	uint64_t vaddr;
	uint32_t text;			/* offset in texts; NUL-terminated, printable ASCII */
	uint32_t target;		/* line that it may jump to; DISASM_NONE: none here */
	uint8_t size;			/* bytes */
	bool jump, call;
};

struct disasm {
	struct disasm_line *lines;	/* in order of address, without gaps */
	uint32_t nr, capacity;
	char *texts;
	size_t texts_size, texts_capacity;
	/* What it was made from. */
	uint64_t vaddr, hash;
	uint32_t nr_code;
};

/* Make the lines of @a's code, unless they are what is there already. 0 or -ENOMEM. */
int disasm_update(struct disasm *d, const struct profile_annotate *a);
void disasm_fini(struct disasm *d);
/* The line that @vaddr is in; DISASM_NONE outside. */
uint32_t disasm_at(const struct disasm *d, uint64_t vaddr);
static inline const char *disasm_text(const struct disasm *d, const struct disasm_line *line)
{
	return d->texts + line->text;
}

#endif

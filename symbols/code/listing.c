// SPDX-License-Identifier: GPL-2.0-or-later
/* One function to show. Built on the loader, then read anywhere. */
#include "symbols/code/internal.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

#define TEXTS_MAX (64u << 20)

struct listing *listing_new(uint32_t symbol)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	atomic_init(&l->refs, 1);
	l->symbol = symbol;
	listing_add_text(l, "", 0);
	return l;
}

struct listing *listing_get(struct listing *l)
{
	/* Relaxed: the caller has a reference. */
	if (l)
		atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
	return l;
}

void listing_put(struct listing *l)
{
	/* Pairs with itself: all reads are over before the last one frees. */
	if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1)
		return;
	free(l->insns);
	free(l->files);
	free(l->lines);
	free(l->texts);
	free(l);
}

uint32_t listing_add_text(struct listing *l, const char *text, size_t size)
{
	uint32_t at = l->texts_size;

	if (size >= TEXTS_MAX - at)
		return 0;
	if (!array_reserve(&l->texts, &l->texts_max, at + size + 1))
		return 0;
	memcpy(l->texts + at, text, size);
	l->texts[at + size] = '\0';
	l->texts_size += (uint32_t)size + 1;
	return at;
}

struct listing_insn *listing_add_insn(struct listing *l, uint64_t vaddr, uint8_t size)
{
	if (!array_reserve(&l->insns, &l->max_insns, l->nr_insns + 1ull))
		return NULL;
	l->insns[l->nr_insns] = (struct listing_insn){
		.vaddr = vaddr,
		.size = size,
		.target = LISTING_NONE,
		.callee = LISTING_NONE,
		.file = LISTING_NONE,
	};
	return &l->insns[l->nr_insns++];
}

uint32_t listing_at(const struct listing *l, uint64_t vaddr)
{
	uint32_t low = search_split(l->nr_insns, i, l->insns[i].vaddr <= vaddr);

	return low && vaddr - l->insns[low - 1].vaddr < l->insns[low - 1].size ? low - 1
									       : LISTING_NONE;
}

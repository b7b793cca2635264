// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as a jitdump, read in two steps; code of one layer must not overlap,
 * and a result must cover the requested address.
 * FUZZ: symbols
 */
#include "symbols/jit/jitdump.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/jit/internal.h"
#include "tests/fuzz/cage_copy.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* @layers: the ones with code, and one more. */
static void check_at(const struct jitdump *d, uint32_t layers, uint64_t addr)
{
	for (uint32_t layer = 0; layer < layers; layer++) {
		const struct jitcode_function *f = jitcode_find(d->code, layer, addr);
		const struct jitcode_line *l;

		if (!f)
			continue;
		if (addr - f->start >= f->size || f->layer != layer || !f->name_size ||
		    strlen(jitcode_text(d->code, f->name)) != f->name_size)
			abort();
		l = jitdump_line(d, f, addr);
		if (l && strlen(jitcode_text(d->code, l->file)) > JITCODE_NAME_MAX)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump_file file = { .fd = -1, .bytes = data, .size = size / 2 };
	const struct jitcode_function *f;
	uint32_t layers = 2;
	struct jitdump d;
	bool more;

	if (jitdump_init(&d))
		return 0;
	jitdump_read(&d, &file, 0, &more);
	file.size = size;
	jitdump_read(&d, &file, 0, &more);
	if (d.state.at > size)
		abort();
	while ((f = jitcode_next_over(d.code))) {
		if (!f->layer || jitcode_find(d.code, f->layer - 1, f->start) == f)
			abort();
		/* Each function above layer 0 is in this list. */
		layers = MAX(layers, f->layer + 2);
	}
	layers = MIN(layers, JITCODE_LAYERS);
	/* Some places: a find in each layer costs more than the parser. */
	for (size_t i = 0, step = MAX(size / 32, 4U); i + 8 <= size; i += step) {
		uint64_t addr;

		memcpy(&addr, data + i, 8);
		check_at(&d, layers, addr);
		check_at(&d, layers, addr + 1);
	}
	jitdump_fini(&d);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Locations by their frames.
 */
#include "ui/export/locations.h"

void locations_fini(struct locations *l)
{
	dense_fini(&l->chains);
	dense_fini(&l->ids);
}

uint32_t locations_add(struct locations *l, const struct snapshot *s, uint32_t first, uint32_t *at,
		       bool *is_new)
{
	uint32_t chain = 0;

	for (uint32_t i = *at;; i--) {
		uint32_t n = dense_add(&l->chains, (uint64_t)chain << 32 | s->calls[i], is_new);

		*at = i;
		if (n == DENSE_NONE)
			return n;
		chain = n + 1;
		if (i == first || !snapshot_function(s, s->calls[i])->inlined)
			break;
	}
	return dense_add(&l->ids, chain, is_new);
}

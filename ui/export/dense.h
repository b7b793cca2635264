/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dense numbers for keys of 64 bits, from 0 in the order of their first use. One thread.
 */
#ifndef UI_EXPORT_DENSE_H
#define UI_EXPORT_DENSE_H

#include <stdbool.h>
#include <stdint.h>

#define DENSE_NONE UINT32_MAX

struct dense {
	uint64_t *keys; /* by number */
	uint32_t nr;
	uint32_t *slots; /* number + 1; 0: empty */
	uint32_t nr_slots;
};

void dense_fini(struct dense *d);
/* Return the number of @key; DENSE_NONE: no memory. *@is_new: the key was added. */
uint32_t dense_add(struct dense *d, uint64_t key, bool *is_new);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes of an export in memory. After a failed allocation, or beyond @max, all calls do nothing
 * and @failed is set, so that a writer checks once, at its end.
 *
 * One thread; @permille may be read by others.
 */
#ifndef UI_EXPORT_OUT_H
#define UI_EXPORT_OUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUT_MAX (1ull << 30)

struct out {
	char *data;
	size_t size, capacity;
	size_t max; /* of size, below OUT_MAX; 0: OUT_MAX */
	bool failed;
	atomic_uint *permille; /* progress; NULL: of no interest */
};

void out_fini(struct out *o);
void out_bytes(struct out *o, const void *bytes, size_t size);
/* Add trusted text: ours, never a name. */
void out_text(struct out *o, const char *text);
void out_format(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add a number: an integer as such, others with up to @digits decimals; 0 for NaN. */
void out_number(struct out *o, double value, int digits);
void out_progress(struct out *o, uint64_t done, uint64_t all);

#endif

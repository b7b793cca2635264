/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile's functions kept to compare later ones with (B). The main thread;
 * comparing is pure.
 */
#ifndef UI_BASELINE_H
#define UI_BASELINE_H

#include "sampler/fold.h"

struct baseline_entry {
	uint32_t id;			/* function id */
	double share;			/* of the weight, 0..1 */
	double count;			/* samples */
	struct safe_text name;
};

struct baseline {
	struct baseline_entry *entries;	/* by id */
	uint32_t nr;
	double count;			/* all samples */
	uint64_t key;			/* event and process that it is of */
	uint64_t time_ns;		/* when */
	struct text_arena *names;	/* NULL: no baseline */
};

enum baseline_change {
	BASELINE_NONE,			/* not in either */
	BASELINE_UNSURE,		/* may be chance */
	BASELINE_SURE,			/* chance in less than one of a hundred */
	BASELINE_NEW,			/* was not there, and that is no chance */
};

/* Keep the functions of @fold; 0 or -ENOMEM (then there is no baseline). */
int baseline_set(struct baseline *b, const struct profile *p, const struct fold_functions *fold,
		 uint64_t key, uint64_t time_ns);
void baseline_fini(struct baseline *b);
static inline bool baseline_is_set(const struct baseline *b)
{
	return b->names;
}
const struct baseline_entry *baseline_find(const struct baseline *b, uint32_t id);
/*
 * How @count of @all samples compare with what the function had; *@delta gets
 * the change of @share.
 */
enum baseline_change baseline_compare(const struct baseline *b, uint32_t id, double share,
				      double count, double all, double *delta);
/* Can @k0 of @n0 and @k1 of @n1 be of one rate? True: hardly (|z| of two proportions > 2.576). */
bool baseline_differs(double k0, double n0, double k1, double n1);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/cli/, and by tests; no other room includes it. */
#ifndef UI_CLI_INTERNAL_H
#define UI_CLI_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"

struct settings;

/* Report whether the work of this thread was left, before a file is replaced. */
bool file_work_is_left(void);

/* Return the PERF_SAMPLE_* of a list of fields ("brstack,addr"), 0: unknown, which is *bad. */
uint64_t batch_fields_parse(const char *list, const char **bad);

/* One function of one event. Borrows from the profile. */
struct batch_row {
	const struct profile_function *function;
	struct safe_text comm;		 /* of the process with most of its samples */
	const struct profile_line *line; /* the hottest one; NULL: not known */
	double self, total;		 /* samples */
	double self_pct, total_pct;	 /* of the event's samples, by weight */
	double ratios[RATIOS_MAX];	 /* in the order of the tick's; NAN: not known */
};

/* Return the key ("no_map", …) of a reason for broken stacks (index in broken_by), or NULL. */
const char *batch_broken_key(uint32_t stop);

#endif

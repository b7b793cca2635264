/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records in the order of time.
 *
 * Any thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_ORDER_H
#define SAMPLER_FILE_PERFDATA_ORDER_H

#include "sampler/file/perfdata_found.h"

/* Sort by time, then as they were found. */
void perfdata_order_sort(struct perfdata_ref *refs, uint64_t nr);
/* Return the first of refs[from..to) that is later than @time_ns; they are in order. */
uint64_t perfdata_order_later(const struct perfdata_ref *refs, uint64_t from, uint64_t to,
			      uint64_t time_ns);

#endif

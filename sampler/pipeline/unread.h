/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of samples that end in JIT code that is being read: copied out of the ring, to be
 * handled again. Their room is fixed. One thread: the sampler thread.
 */
#ifndef SAMPLER_PIPELINE_UNREAD_H
#define SAMPLER_PIPELINE_UNREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unread;
struct perf_event_header;

struct unread *unread_new(void);
void unread_free(struct unread *h);

/* Copy @record, which is held from @now_ns on; false: no room. */
bool unread_put(struct unread *h, const struct perf_event_header *record, uint64_t now_ns);
bool unread_any(const struct unread *h);

/*
 * Handle each record once more: @handle returns whether it is done with it. @last: it was held for
 * long enough, and is removed in any case.
 */
typedef bool (*unread_fn)(void *ctx, const struct perf_event_header *record, bool last);
void unread_again(struct unread *h, uint64_t now_ns, bool last, unread_fn handle, void *ctx);

#endif

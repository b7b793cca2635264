/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times of the past as typed: "30s" ago, "14:03[:22]"; in a recording "5s" from its start and "-5s"
 * from its end; in a folder of --keep "3" is 03:00. Runs on: the main thread.
 */
#ifndef UI_REWIND_TIME_H
#define UI_REWIND_TIME_H

#include "ui/state/state.h"

/*
 * Parse a time, in ns of the strip's clock. @span_ns: the minute or second from that time on that
 * was typed; 0: a moment. 0; -EINVAL; -ERANGE: it is not in the history.
 */
int rewind_time_parse(const struct ui_state *st, const char *text, uint64_t *time_ns,
		      uint64_t *span_ns);
/* Write examples of times, or the meaning of @text. */
void rewind_time_hint(const struct ui_state *st, const char *text, char *buf, size_t size);

#endif

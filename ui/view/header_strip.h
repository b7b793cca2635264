/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heat strip: the past as one line of the header. Runs on: the main thread.
 */
#ifndef UI_VIEW_HEADER_STRIP_H
#define UI_VIEW_HEADER_STRIP_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

/* Return whether there is a strip to draw. */
bool header_strip_is_on(const struct ui_state *st);
/* Draw the strip; with @cpus after the CPUs in short. Return the rows used. */
unsigned int header_strip(struct ui_state *st, struct canvas *c, unsigned int row, bool cpus);
/* Return the columns of a strip on a screen of @cols. */
uint32_t header_strip_columns(unsigned int cols);
/* Write the position in the past: "32.4s ago", "+12.3s" in a recording; "" if it is now. */
const char *header_strip_ago(const struct ui_state *st, char *buf, size_t size);
/* Write a time of the past: "14:03:22", with "10-21 " before it if the past is of two days;
 * "+12.3s" from the start of a recording. */
const char *header_strip_moment(const struct ui_state *st, uint64_t time_ns, char *buf,
				size_t size);
/*
 * Get the range that is shown: with the whole slices in it, of which one may be longer than what
 * was asked for.
 */
void header_strip_range(const struct ui_state *st, uint64_t *begin_ns, uint64_t *end_ns);
/*
 * Return the step of the keys earlier and later: the shown range, so that no sample is skipped. The
 * first range is the window; a twentieth of the strip of a recording.
 */
uint64_t header_strip_step(const struct ui_state *st);
/* Write the position in the past and the keys that change it. */
const char *header_strip_hint(const struct ui_state *st, char *buf, size_t size);
/* Write the time of the day at the position: "14:03:22"; "" if it is unknown. */
const char *header_strip_time(const struct ui_state *st, char *buf, size_t size);

#endif

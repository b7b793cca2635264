/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How busy each CPU is: bars while they fit into a quarter of the screen, one
 * cell a CPU beyond.
 *
 * Runs on: the main thread.
 */
#ifndef UI_VIEW_HEADER_CPUS_H
#define UI_VIEW_HEADER_CPUS_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"

#define HEADER_TALL 30 /* lines of a screen with two lines of event and health */

/* Return how busy the online CPUs are, from 0 to 1; 0: it is not known. */
double header_cpus_mean(const struct profile *p);
/* Return the rows of the bars. */
unsigned int header_cpus_rows(const struct ui_state *st, const struct canvas *c);
/* Draw the bars. Return the rows used. */
unsigned int header_cpus(const struct ui_state *st, struct canvas *c, unsigned int row);

#endif

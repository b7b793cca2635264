/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The baseline: the profile shown when B was pressed, kept whole. Each view builds the rows of the
 * baseline like its shown rows, with the same scope. Runs on: the main thread.
 */
#ifndef UI_VIEW_BASELINE_H
#define UI_VIEW_BASELINE_H

#include "ui/view/view.h"

/* Return whether there is a baseline with the shown event. */
bool baseline_is_on(const struct ui_state *st);
/* Compare the rows of @list, as the view built them, with the baseline. */
void baseline_compare(struct ui_state *st, const struct view *v, struct list *list);

/* Return whether @k0 of @n0 and @k1 of @n1 samples differ surely (|z| of two proportions > 2.576).
 */
bool baseline_differs(double k0, double n0, double k1, double n1);
/* Classify the change from @k0 of @n0 samples to @k1 of @n1. */
enum row_change baseline_change(double k0, double n0, double k1, double n1);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What rows are compared with: the profile that was shown when B was pressed,
 * kept whole, so that each view makes its rows of then as it makes those of
 * now, whatever was drilled into or filtered since. The main thread.
 */
#ifndef UI_VIEW_BASELINE_H
#define UI_VIEW_BASELINE_H

#include "ui/view/view.h"

/* Is there one, and does it have the shown event? */
bool baseline_is_on(const struct ui_state *st);
/* The state with the baseline in the place of the shown profile; false: there is none. */
bool baseline_state(const struct ui_state *st, struct ui_state *then);
/* The rows of @list, as they came from the view, against those of then; and what is gone. */
void baseline_compare(const struct ui_state *st, const struct view *v, struct list *list);

/* Can @k0 of @n0 and @k1 of @n1 be of one rate? True: hardly (|z| of two proportions > 2.576). */
bool baseline_differs(double k0, double n0, double k1, double n1);
/* What @k1 samples of @n1 are to @k0 of @n0 then. */
enum row_change baseline_change(double k0, double n0, double k1, double n1);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code shared by the call tree and the flame graph. Runs on: the main thread.
 */
#include "ui/view/stacks.h"

#include <stdio.h>

#include "ui/view/folds.h"
#include "ui/view/table.h"

void stacks_turn(struct ui_state *st, enum action action)
{
	struct folds *s = st->folds;

	if (!s)
		return;
	if (action == ACT_INVERT) {
		s->bottom_up = !s->bottom_up;
		ui_state_say(st, false,
			     s->bottom_up ? "bottom-up: callers below each function"
					  : "top-down: callees below each function");
	} else {
		s->fold_recursion = !s->fold_recursion;
		ui_state_say(st, false,
			     s->fold_recursion ? "recursive calls folded"
					       : "recursive calls shown");
	}
	st->lists[st->view].pinned = false;
	table_rebuild(st, st->view);
}

size_t stacks_options(const struct ui_state *st, char *buf, size_t size)
{
	bool folded = st->folds && st->folds->fold_recursion;

	const char *by = st->by_thread			      ? "  by thread (H)"
			 : st->scope.drilled		      ? ""
			 : st->grouping == GROUPING_PID	      ? "  by PID (=)"
			 : st->grouping == GROUPING_CONTAINER ? "  by container (=)"
			 : st->grouping == GROUPING_UNIT      ? "  by unit (=)"
							      : "";

	return (size_t)snprintf(buf, size, "%s%s", by, folded ? "  recursion folded (X)" : "");
}

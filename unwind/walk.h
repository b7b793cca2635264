/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk over one stack; private to unwind/.
 *
 * Runs on the sampler thread that owns the unwinder.
 */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include "unwind/internal.h"

/*
 * Walk from frame to frame until there is a reason to stop. Return the reason, or
 * with @rows WALK_REDO (a row dropped a register that libunwind needs: walk again
 * without).
 */
int walk_stack(struct unwinder *u, const struct unwind_input *in, struct unwind_result *out,
	       bool rows);

#endif

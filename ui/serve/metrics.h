/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures of a session for Prometheus: never one per function. Pure; any thread.
 */
#ifndef UI_SERVE_METRICS_H
#define UI_SERVE_METRICS_H

#include "sampler/profile/profile.h"
#include "ui/cli/pushed.h"
#include "ui/export/out.h"

/*
 * @open: in the format of OpenMetrics 1.0; else Prometheus 0.0.4. @requests: answered so far.
 * @sending: bytes of answers.
 * @pushed: figures of --push; NULL: no push.
 */
void metrics_write(struct out *o, const struct profile *p, bool open, uint64_t requests,
		   uint64_t sending, const struct pushed *pushed);

#endif

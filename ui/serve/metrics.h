/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures of a session for Prometheus: never one per function. Pure; any thread.
 */
#ifndef UI_SERVE_METRICS_H
#define UI_SERVE_METRICS_H

#include "sampler/profile/profile.h"
#include "ui/export/out.h"

/* @open: in the format of OpenMetrics 1.0; else Prometheus 0.0.4. @requests: answered so far. */
void metrics_write(struct out *o, const struct profile *p, bool open, uint64_t requests);

#endif

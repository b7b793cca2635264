/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cgroup that is sampled: its folder in the hierarchy that perf events are of.
 *
 * Set-up, then the builder.
 */
#ifndef SAMPLER_EVENT_TARGET_CGROUP_H
#define SAMPLER_EVENT_TARGET_CGROUP_H

#include <stdbool.h>

#include "symbols/base/base.h"

#define TARGET_CGROUP_MOUNTS "/proc/self/mounts"

/*
 * Open the folder of @name: a path as it is written, or one below the mount of that hierarchy, by
 * @mounts. An fd, or -ESRCH with a message. @whole: it is the root, with every task.
 */
int target_cgroup_open(const char *mounts, const char *name, bool *whole, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks in order of their tids, for many look-ups. One owner.
 */
#ifndef SAMPLER_EVENT_TASK_SET_H
#define SAMPLER_EVENT_TASK_SET_H

#include <sys/types.h>

#include "symbols/base/base.h"

struct task_set {
	pid_t *tids;
	uint32_t nr;
};

/* Copy @tids, in any order. */
void task_set_init(struct task_set *s, const pid_t *tids, uint32_t nr);
void task_set_fini(struct task_set *s);
bool task_set_has(const struct task_set *s, pid_t tid);
/* Find the place of @tid in a list, for few look-ups; @nr: it is not there. */
uint32_t task_find(const pid_t *tids, uint32_t nr, pid_t tid);

#endif

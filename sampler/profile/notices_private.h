/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of notices, for notices.c, notices_kernel.c and notices_stacks.c only.
 */
#ifndef SAMPLER_PROFILE_NOTICES_PRIVATE_H
#define SAMPLER_PROFILE_NOTICES_PRIVATE_H

#include "sampler/profile/notices.h"

/* Below, too few samples to tell a share. */
#define NOTICES_TAKEN_MIN 50

/* Note it now, @count more times. Never NULL. */
struct profile_notice *notices_note(struct notices *n, const char *key,
				    enum notice_severity severity, uint64_t count, const char *fmt,
				    ...) __attribute__((format(printf, 5, 6)));
/* The count of a state, which is not something that happens: 1 when it begins. */
uint64_t notices_begins(const struct notices *n, const char *key);
/* What helps: as words, and as what its key does. */
void notices_fix(struct notices *n, struct profile_notice *e, enum notice_control control,
		 double value, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A lower rate, with @also after it. */
void notices_fix_rate(struct notices *n, const struct profile *p, struct profile_notice *e,
		      const char *also);

/* The rules of the other files. */
void notices_kernel(struct notices *n, const struct profile *p);
void notices_stacks(struct notices *n, const struct profile *p);

#endif

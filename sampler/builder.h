/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The builder thread: ends ticks, applies controls. Threads: start and stop by the owner.
 */
#ifndef SAMPLER_BUILDER_H
#define SAMPLER_BUILDER_H

#include <stdbool.h>

struct err;
struct sampler;

/* 0 or -errno with a sentence. */
int builder_start(struct sampler *s, struct err *e);
/*
 * Join the builder. False: it hangs in the kernel, and uses the session for the rest of this
 * process.
 */
bool builder_stop(struct sampler *s);

#endif

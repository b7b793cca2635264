/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which rate of an event to show. Pure.
 */
#ifndef UI_TEXT_EVENT_RATE_H
#define UI_TEXT_EVENT_RATE_H

#include "sampler/profile/profile.h"

/*
 * Test whether the got rate of @ev compares with a wanted one: it has one, and counts while a CPU
 * works. Tracepoints and software events happen when they happen: a rate per busy second says
 * nothing.
 */
bool event_rate_is_frequency(const struct profile_event *ev);

/* Return the samples of an event per second of the tick, on all CPUs; NAN for a recording. */
double event_rate_per_s(const struct profile *p, uint32_t index);

#endif

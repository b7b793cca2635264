/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sentence for a profile without samples. Pure.
 */
#ifndef UI_TEXT_IDLE_H
#define UI_TEXT_IDLE_H

#include "sampler/profile/profile.h"
#include "symbols/base/text.h"

#define IDLE_MAX 320

/* Return why @p has no samples, by the kind of its target; clean. */
struct safe_text idle_text(const struct profile *p, uint32_t event, char buf[static IDLE_MAX]);
/* Return the word for samples of the event: "samples", "waits", "page-faults". */
const char *idle_samples(const struct profile *p, uint32_t event);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread that folds a profile before it is shown, so that keys do not wait
 * for hundreds of thousands of stacks; and frees those that were shown.
 *
 * All calls come from the main thread. One profile is folded at a time: the
 * next one stays with the sampler meanwhile.
 */
#ifndef UI_VIEW_FOLDING_H
#define UI_VIEW_FOLDING_H

#include "sampler/profile/profile.h"

struct folds_of;
struct folding;

/* Starts the thread. NULL, which all below take: profiles are folded when they are shown. */
struct folding *folding_new(void);
/* Ends it; a profile that it has is freed, @of is left to its owner. */
void folding_free(struct folding *f);
/* Readable when folding_take() has something: for poll(2). -1: never. */
int folding_fd(const struct folding *f);
bool folding_is_busy(const struct folding *f);
/* Make what is wanted in @of, of @p: both are the thread's until folding_take(). False: no thread.
 */
bool folding_give(struct folding *f, struct profile *p, struct folds_of *of);
/* The same of a profile that is shown meanwhile: it stays the caller's, until it is discarded. */
bool folding_lend(struct folding *f, struct profile *p, struct folds_of *of);
/* The profile, with its folds made (@lent: it was lent); NULL: none is ready. */
struct profile *folding_take(struct folding *f, bool *lent);
/* profile_free(): some ms for a large one. */
void folding_discard(struct folding *f, struct profile *p);

#endif

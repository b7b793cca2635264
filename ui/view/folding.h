/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folding thread: folds a profile before it is shown, so that keys do not
 * wait for hundreds of thousands of stacks; and frees shown profiles.
 *
 * All calls are from the main thread. One profile is folded at a time: until then the sampler keeps
 * the next one.
 */
#ifndef UI_VIEW_FOLDING_H
#define UI_VIEW_FOLDING_H

#include "sampler/profile/profile.h"

struct folds_of;
struct folding;

/* Start the thread. Return NULL, valid for all functions below, if it cannot start: profiles are
 * then folded when they are shown. */
struct folding *folding_new(void);
/* End the thread, and free its profile unless that is lent. Does not free @of. */
void folding_free(struct folding *f);
/* Return a descriptor that is readable when folding_take() has a result; -1: never. */
int folding_fd(const struct folding *f);
bool folding_is_busy(const struct folding *f);
/* Make the wanted folds in @of, of @p: both belong to the thread until folding_take(). Return false
 * if there is no thread, or it is busy. */
bool folding_give(struct folding *f, struct profile *p, struct folds_of *of);
/* The same of the shown profile or the baseline: the caller keeps the ownership of @p. */
bool folding_lend(struct folding *f, struct profile *p, struct folds_of *of);
/* Take the profile with its folds made (*@lent: it was lent); NULL: none is ready. */
struct profile *folding_take(struct folding *f, bool *lent);
/* Free a profile on the thread: a large one takes some ms. */
void folding_discard(struct folding *f, struct profile *p);

#endif

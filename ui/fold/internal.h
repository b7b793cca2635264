/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/fold/, and by tests; no other room includes it. */
#ifndef UI_FOLD_INTERNAL_H
#define UI_FOLD_INTERNAL_H

#include "sampler/profile/profile.h"
#include "ui/fold/fold.h"
#include "ui/state/state.h"

struct folds_groups;
struct folds_of;
struct trend;

#define TREND_FUNCTIONS 4096 /* a power of two */

void trend_fini(struct trend *t);
/* Return whether a note is due at @time_ns: once a second. */
bool trend_wants(const struct trend *t, uint64_t key, uint64_t time_ns);
/* Note the self shares of all functions at @time_ns; an earlier time than before starts again. */
void trend_note(struct trend *t, uint64_t key, uint64_t time_ns, const struct profile *p,
		const struct fold_functions *fold);

void folds_make(const struct profile *p, struct folds_of *of);
void folds_forget_groups(struct folds_groups *groups);

#endif

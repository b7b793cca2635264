/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start and end of the state, and the profiles it takes in. Runs on: the main thread.
 */
#ifndef UI_MODEL_H
#define UI_MODEL_H

#include "ui/state/state.h"

void model_init(struct ui_state *st, struct sampler *s, const struct ui_config *config, bool ascii);
void model_fini(struct ui_state *st);
/* Take a new profile; the state owns it from now on. */
void model_take(struct ui_state *st, struct profile *p);
/* Show rows of folds that another thread made of the shown profile. */
void model_folded(struct ui_state *st);
/* Free @p unless the state still shows it or compares with it. */
void model_release(const struct ui_state *st, struct profile *p);

#endif

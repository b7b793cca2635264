/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function, many processes with code of it: which one is annotated. Runs on: the builder.
 */
#ifndef SAMPLER_ANNOTATE_INSTANCE_H
#define SAMPLER_ANNOTATE_INSTANCE_H

#include "sampler/profile/assemble_input.h"
#include "sampler/profile/profile.h"
#include "symbols/code/code.h"

/* Report whether many processes have @symbol, each at an address of its own. */
bool annotate_has_instances(const struct assemble_input *in, const struct symbol *symbol);
/*
 * Set *@at for @function: the code with most samples, but the one before while it has any.
 */
void annotate_choose_instance(struct listing_instance *at, struct symbols *symbols,
			      const struct assemble_input *in, uint32_t function);
/* Report whether @place is in @function in the process of @object, which is memory. */
bool annotate_is_instance(const struct assemble_input *in, const struct place *place,
			  uint32_t object, uint32_t function);
/* Set a->inside if other code than that of the listing has samples of the function. */
void annotate_tell_instance(struct profile_annotate *a, const struct assemble_input *in,
			    const struct listing_instance *at);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that went wrong since the start, each kind of it once: how
 * often, when first and last, and what helps. The main thread.
 *
 * Invariant: a kind has one entry; entries are never removed, so that row
 * numbers are identities.
 */
#ifndef UI_MESSAGES_H
#define UI_MESSAGES_H

#include "sampler/profile.h"
#include "symbols/base.h"

#define MESSAGES_MAX 48

struct message {
	char key[24];			/* what it is told from others by */
	char text[224];			/* clean text, as of the last time */
	const char *cure;		/* static; "" if nothing helps */
	uint64_t count;			/* times, or samples */
	uint64_t first_ns, last_ns;	/* running time of the session */
	bool grave;			/* samples are missing or wrong because of it */
};

struct messages {
	struct message items[MESSAGES_MAX];
	uint32_t nr;
	char banner[256];		/* the last one noted */
};

/* Note all that @p tells of; once a profile. */
void messages_note(struct messages *m, const struct profile *p);

#endif

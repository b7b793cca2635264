/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions and frames of languages in a recording. Runs on: the thread that replays.
 */
#ifndef SAMPLER_REPLAY_LANGUAGE_H
#define SAMPLER_REPLAY_LANGUAGE_H

#include "sampler/file/lang_record.h"
#include "sampler/hot/hot.h"
#include "sampler/store.h"

/* All zero at the start. */
struct replay_language {
	uint32_t *codes; /* of recorded functions by number; CODE_NONE: not known */
	uint32_t nr, max;
	struct lang_frames frames; /* of the next sample */
	bool java;		   /* something of a JVM was taken, not settled */
};

void replay_language_fini(struct replay_language *l);
/* Take a record of languages; false: it is another one. */
bool replay_language_take(struct replay_language *l, struct store *st, struct pipeline *p,
			  const uint8_t *bytes, size_t size);
/* Before a sample: let it find the Java code that was taken. True: the maps changed. */
bool replay_language_settle(struct replay_language *l, struct store *st, uint64_t time_ns);

#endif

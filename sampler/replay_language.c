// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records of languages in a recording of ours. They are foreign bytes: lang_record.h checks them.
 */
#include "sampler/replay_language.h"

#include <stdlib.h>

#include "symbols/base/array.h"

void replay_language_fini(struct replay_language *l)
{
	free(l->codes);
}

/* Add a function of a script. */
static void take_function(struct replay_language *l, struct store *st, const uint8_t *bytes,
			  size_t size)
{
	struct code_text text;
	struct code_key key = { 0 };
	uint32_t number;

	if (lang_record_function(bytes, size, &number, &text) ||
	    !array_reserve(&l->codes, &l->max, number + 1ull))
		return;
	while (l->nr <= number)
		l->codes[l->nr++] = CODE_NONE;
	key.process = number / CODES_PROCESS_MAX;
	key.address = number;
	if (l->codes[number] == CODE_NONE)
		l->codes[number] = codes_add(symbols_codes(st->symbols), &key, &text);
}

/* Take the frames of a coming sample; false: they make no sense. */
static bool take_frames(struct replay_language *l, const uint8_t *bytes, size_t size)
{
	struct lang_frames *f = &l->frames;

	if (lang_record_frames(bytes, size, f))
		return false;
	for (uint32_t i = 0; i < f->nr; i++) {
		uint32_t number = lang_entry_number(f->entries[i]);

		if (!(f->entries[i] & LANG_ENTRY))
			continue;
		number = number < l->nr ? l->codes[number] : CODE_NONE;
		/* A function that is not in the file: its frame is left out. */
		if (number == CODE_NONE)
			f->outcome = LANG_OUTCOME_GUESSED;
		f->entries[i] = lang_entry(MIN(number, CODES_MAX), lang_entry_instr(f->entries[i]));
	}
	return true;
}

bool replay_language_take(struct replay_language *l, struct store *st, struct pipeline *p,
			  const uint8_t *bytes, size_t size)
{
	uint64_t time_ns;

	switch (lang_record_kind(bytes, size, &time_ns)) {
	case LANG_RECORD_FUNCTION:
		take_function(l, st, bytes, size);
		return true;
	case LANG_RECORD_FRAMES:
		if (take_frames(l, bytes, size))
			pipeline_set_frames(p, &l->frames);
		return true;
	default:
		return false;
	}
}

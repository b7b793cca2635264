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

/* Take code, a method or a chain of a JVM. */
static void take_java(struct replay_language *l, struct store *st, const struct code_text *text)
{
	const struct mapping *m;
	struct maps_hit hit;
	uint64_t addr, time_ns;
	pid_t pid;

	if (!symbols_java_process(text, &pid, &addr, &time_ns))
		return;
	if (!l->java)
		maps_publish(st->maps, time_ns, UINT64_MAX);
	l->java = true;
	maps_find(st->maps, maps_tasks(st->maps), pid, pid, time_ns, &hit);
	m = hit.space ? space_find(hit.space, addr, time_ns) : NULL;
	if (m && m->object->identity.kind == OBJECT_ANON)
		symbols_java_replay(st->symbols, m->object, text);
}

bool replay_language_settle(struct replay_language *l, struct store *st, uint64_t time_ns)
{
	if (!l->java)
		return false;
	l->java = false;
	return symbols_java_settle(st->symbols, time_ns);
}

/* Add a function of a script. */
static void take_function(struct replay_language *l, struct store *st, const uint8_t *bytes,
			  size_t size)
{
	struct code_text text;
	struct code_key key = { 0 };
	uint32_t number;

	if (lang_record_function(bytes, size, &number, &text))
		return;
	if (text.language == LANG_JAVA) {
		take_java(l, st, &text);
		return;
	}
	if (!array_reserve(&l->codes, &l->max, number + 1ull))
		return;
	while (l->nr <= number)
		l->codes[l->nr++] = CODE_NONE;
	key.process = number / CODES_PROCESS_MAX;
	key.address = number;
	text.user = key.process; /* all of a recording have room */
	if (l->codes[number] == CODE_NONE)
		l->codes[number] = codes_add(symbols_codes(st->symbols), &key, &text);
}

/* Take the frames of the next sample; false: they make no sense. */
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
		f->entries[i] =
			lang_entry(MIN(number, CODE_UNNAMED), lang_entry_instr(f->entries[i]));
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

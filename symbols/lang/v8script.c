// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8: scripts of functions, and where their lines end.
 *
 * Runs on: a reader. Texts never change, so they are read in parts at several samples, each
 * while the thread is preempted.
 */
#include "symbols/lang/v8code.h"

/* Bytes of texts per sample. */
#define PART_BYTES LANG_PIECE_MAX
#define TEXT_UNITS (64U << 20)
/* Of an ExternalString: where its text is. */
#define EXTERNAL_DATA 24
/* Behind the name of a Script: the lines in front of its text. */
#define SCRIPT_LINE_OFFSET 8
#define NO_SCRIPT	   UINT8_MAX

/* A script of a sample; in order of its functions. */
static uint8_t find_script(struct lang_work *w, uint64_t address)
{
	for (uint32_t i = w->v8.nr_scripts; i-- > 0;)
		if (w->v8.scripts[i].address == address)
			return (uint8_t)i;
	return NO_SCRIPT;
}

void v8script_want(struct lang_reader *r, const struct lang_process *p, struct v8_types *t,
		   uint32_t first)
{
	uint32_t size = (uint32_t)p->v8.number[V8_SCRIPT_ENDS] + 16;
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = first; i < w->nr_codes; i++) {
		const uint8_t *f = lang_memory_piece(m, w->codes_of[i].header);
		uint64_t script = f ? bytes_u64(f + p->v8.number[V8_SHARED_SCRIPT]) : 0;

		v8objects_want_type(m, p, t, w->codes_of[i].header);
		w->codes_of[i].hash = -1;
		w->v8.script_of[i] = find_script(w, script);
		if (w->v8.script_of[i] == NO_SCRIPT && v8objects_is_tagged(script) &&
		    w->v8.nr_scripts < LANG_V8_SCRIPTS) {
			w->v8.script_of[i] = (uint8_t)w->v8.nr_scripts;
			w->v8.scripts[w->v8.nr_scripts++] = (struct lang_v8_script){
				.address = script,
				.head = lang_memory_want(m, script - 1, size),
				.source = -1,
			};
		}
		if (w->v8.script_of[i] != NO_SCRIPT)
			w->codes_of[i].hash = w->v8.scripts[w->v8.script_of[i]].head;
	}
}

static struct line_ends_key key_of(const struct lang_process *p, uint32_t process,
				   const struct lang_v8_script *s, const uint8_t *head)
{
	/* The number of the script is behind the ends of lines. */
	return (struct line_ends_key){ process, s->address,
				       bytes_u64(head + p->v8.number[V8_SCRIPT_ENDS] + 8) };
}

/* Find the texts that were read before, and queue the heads of the rest; returns how many. */
static uint32_t find_texts(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			   const struct v8_types *t)
{
	struct line_ends *ends = codes_line_ends(r->codes);
	struct lang_v8_work *v = &r->work.v8;
	struct lang_memory *m = &r->memory;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < v->nr_scripts; i++) {
		struct lang_v8_script *s = &v->scripts[i];
		const uint8_t *head = lang_memory_piece(m, s->head);
		uint64_t offset;

		s->is_script = v8objects_type(m, t, s->head) == p->v8.number[V8_TYPE_SCRIPT];
		if (!s->is_script)
			continue;
		s->key = key_of(p, process, s, head);
		s->text = line_ends_get(ends, &s->key, &s->from);
		offset = bytes_u64(head + p->v8.number[V8_SCRIPT_NAME] + SCRIPT_LINE_OFFSET);
		s->line_offset = v8objects_is_smi(offset) ? (int32_t)(offset >> 32) : 0;
		if (s->text)
			continue;
		v8objects_want_head(m, bytes_u64(head + p->v8.number[V8_SCRIPT_SOURCE]), V8_HEAD,
				    &s->source);
		nr++;
	}
	return nr;
}

/* Find the strings that have the texts. */
static bool find_sources(struct lang_reader *r, const struct lang_process *p, struct v8_types *t)
{
	struct lang_v8_work *v = &r->work.v8;
	struct lang_memory *m = &r->memory;
	bool again = true;

	for (int depth = 0; again; depth++) {
		if (!lang_memory_fetch(m))
			return false;
		for (uint32_t i = 0; i < v->nr_scripts; i++)
			v8objects_want_type(m, p, t, v->scripts[i].source);
		if (!lang_memory_fetch(m))
			return false;
		for (uint32_t i = 0; i < v->nr_scripts && !depth; i++)
			v->scripts[i].whole = v8objects_length(m, p, v->scripts[i].source);
		again = false;
		for (uint32_t i = 0; i < v->nr_scripts && depth < V8_STRING_DEPTH; i++)
			v8objects_follow(m, p, t, &v->scripts[i].source, &again);
	}
	return true;
}

/* Set the address of the characters of a script; false: in no form that can be read. */
static bool set_chars(const struct lang_memory *m, const struct lang_process *p,
		      const struct v8_types *t, struct lang_v8_script *s)
{
	const uint8_t *head = lang_memory_piece(m, s->source);
	int type = v8objects_type(m, t, s->source);

	s->length = v8objects_length(m, p, s->source);
	s->wide = !(type & V8_STRING_LATIN1);
	if (type < 0 || type >= V8_STRING_TYPES || s->length > TEXT_UNITS)
		return false;
	if (!(type & V8_STRING_SHAPE))
		s->chars = m->pieces[s->source].addr + (uint64_t)p->v8.number[V8_STRING_CHARS];
	else if ((type & V8_STRING_SHAPE) == V8_STRING_EXTERNAL)
		s->chars = bytes_u64(head + EXTERNAL_DATA);
	else
		return false;
	return true;
}

/* Queue the next parts of the texts. */
static void want_parts(struct lang_reader *r, const struct lang_process *p,
		       const struct v8_types *t)
{
	struct line_ends *ends = codes_line_ends(r->codes);
	struct lang_v8_work *v = &r->work.v8;
	uint32_t room = LANG_V8_PARTS;

	for (uint32_t i = 0; i < v->nr_scripts; i++) {
		struct lang_v8_script *s = &v->scripts[i];
		uint32_t unit, nr;

		s->nr_parts = 0;
		s->is_sized = false;
		if (!s->is_script || s->text)
			continue;
		/* While the collector moves a string, it has no type: later samples read it. */
		if (v8objects_type(&r->memory, t, s->source) < 0)
			continue;
		/* Two strings, which V8 makes one before it parses them. */
		if (v8objects_length(&r->memory, p, s->source) != s->whole)
			continue;
		if (!set_chars(&r->memory, p, t, s)) {
			line_ends_refuse(ends, &s->key);
			s->text = line_ends_get(ends, &s->key, &s->from);
			continue;
		}
		s->is_sized = true;
		unit = s->wide ? 2 : 1;
		for (uint32_t at = s->from; at < s->length && room; at += nr, room--) {
			int part;

			nr = MIN(s->length - at, PART_BYTES / unit);
			part = lang_memory_want(&r->memory, s->chars + (uint64_t)at * unit,
						nr * unit);
			/* Many other pieces are read at this sample. */
			if (part < 0)
				break;
			s->parts[s->nr_parts++] = part;
		}
	}
}

/* Keep the ends of lines in the parts of a script. */
static void add_parts(struct lang_reader *r, struct lang_v8_script *s)
{
	struct line_ends *ends = codes_line_ends(r->codes);
	const struct lang_memory *m = &r->memory;

	if (!s->length)
		line_ends_add(ends, &s->key, 0, 0, NULL, 0, true);
	for (uint32_t i = 0; i < s->nr_parts; i++) {
		const uint8_t *bytes = lang_memory_piece(m, s->parts[i]);
		uint32_t size = bytes ? m->pieces[s->parts[i]].size : 0, nr, used;
		uint32_t units = s->wide ? size / 2 : size;
		bool last = s->from + units == s->length;

		if (!bytes) {
			line_ends_refuse(ends, &s->key);
			break;
		}
		nr = line_ends_find(bytes, units, s->wide, last, s->from, r->work.v8.ends, &used);
		line_ends_add(ends, &s->key, s->from, s->from + used, r->work.v8.ends, nr, last);
		s->from += used;
		/* A part was not used to its end: the next one does not fit. */
		if (used < units)
			break;
	}
	s->text = line_ends_get(ends, &s->key, &s->from);
}

bool v8script_read(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		   struct v8_types *t)
{
	struct lang_v8_work *v = &r->work.v8;

	if (!find_texts(r, p, process, t))
		return true;
	if (!find_sources(r, p, t))
		return false;
	want_parts(r, p, t);
	if (!lang_memory_fetch(&r->memory))
		return false;
	for (uint32_t i = 0; i < v->nr_scripts; i++)
		if (v->scripts[i].is_sized)
			add_parts(r, &v->scripts[i]);
	return true;
}

bool v8script_is_whole(const struct lang_work *w, uint32_t code)
{
	uint8_t i = w->v8.script_of[code];

	return i == NO_SCRIPT || !w->v8.scripts[i].is_script || w->v8.scripts[i].text;
}

uint32_t v8script_line(const struct lang_work *w, uint32_t code, uint32_t position)
{
	uint8_t i = w->v8.script_of[code];
	const struct line_ends_text *text = i == NO_SCRIPT ? NULL : w->v8.scripts[i].text;
	uint32_t line = text && position < INT32_MAX ? line_ends_line(text, position) : 0;
	int64_t shown = line ? (int64_t)line + w->v8.scripts[i].line_offset : 0;

	return shown > 0 && shown <= INT32_MAX ? (uint32_t)shown : 0;
}

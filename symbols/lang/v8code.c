// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8 (Node.js): from candidates to functions with name, script and table of
 * positions.
 *
 * Runs on: a reader. The type of each object is checked. A function is known again by its
 * address, its number in its script and the number of the script, which a new one never gets: so
 * texts are read once although memory is reused.
 */
#include <string.h>

#include "symbols/lang/v8code.h"

/* Types of functions: plain ones, and constructors of built-in and other classes. */
#define FUNCTION_TYPES 20

/* Find the SharedFunctionInfo of each candidate. */
static void find_shared(struct lang_reader *r, const struct lang_process *p)
{
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *f = lang_memory_piece(&r->memory, w->v8.piece[i]);
		uint64_t shared = f ? bytes_u64(f + p->v8.number[V8_FUNCTION_SHARED]) : 0;

		if (!v8objects_is_tagged(shared))
			continue;
		w->address[nr] = shared - 1;
		w->v8.piece[nr] = w->v8.piece[i];
		w->v8.bytecodes[nr] = w->v8.bytecodes[i];
		w->v8.bytecodes_piece[nr] = w->v8.bytecodes_piece[i];
		w->boundary[nr] = w->boundary[i];
		w->instr[nr] = w->instr[i];
		nr++;
	}
	w->nr = nr;
}

static bool is_function(const struct lang_process *p, int type)
{
	int first = p->v8.number[V8_TYPE_FUNCTION];

	return type >= first && type < first + FUNCTION_TYPES;
}

/* Leave out codes without frames. */
static void keep_codes(struct lang_work *w)
{
	uint16_t to[LANG_FRAMES_MAX] = { 0 };
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++)
		to[w->code[i]] = 1;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		if (!to[i])
			continue;
		w->codes_of[nr] = w->codes_of[i];
		memcpy(w->v8.compiled[nr], w->v8.compiled[i], sizeof(w->v8.compiled[i]));
		w->v8.data[nr] = w->v8.data[i];
		w->v8.script_of[nr] = w->v8.script_of[i];
		to[i] = (uint16_t)nr++;
	}
	w->nr_codes = nr;
	for (uint32_t i = 0; i < w->nr; i++)
		w->code[i] = to[w->code[i]];
}

/* Keep the candidates with a function and a SharedFunctionInfo by their types. */
static void keep_functions(struct lang_reader *r, const struct lang_process *p,
			   const struct v8_types *t)
{
	const struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		bool bytecodes = v8objects_type(m, t, w->v8.bytecodes_piece[i]) ==
				 p->v8.number[V8_TYPE_BYTECODES];

		if (!is_function(p, v8objects_type(m, t, w->v8.piece[i])) ||
		    v8objects_type(m, t, w->codes_of[w->code[i]].header) !=
			    p->v8.number[V8_TYPE_SHARED])
			continue;
		w->boundary[nr] = w->boundary[i];
		w->code[nr] = w->code[i];
		w->instr[nr] = bytecodes ? w->instr[i] : LANG_NO_INSTR;
		w->v8.bytecodes[nr] = bytecodes ? w->v8.bytecodes[i] : 0;
		nr++;
	}
	w->nr = nr;
	keep_codes(w);
}

void v8code_want_headers(struct lang_reader *r, const struct lang_process *p, uint32_t first)
{
	uint32_t size = (uint32_t)p->v8.number[V8_SHARED_FLAGS] + 8;

	for (uint32_t i = first; i < r->work.nr_codes; i++)
		r->work.codes_of[i].header =
			lang_memory_want(&r->memory, r->work.codes_of[i].address, size);
}

/* Read functions and scripts of the frames, and check types; false: no call is left. */
static bool read_shared(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			struct v8_types *types)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	find_shared(r, p);
	functions_number(r, process);
	for (uint32_t i = 0; i < w->nr; i++) {
		v8objects_want_type(m, p, types, w->v8.piece[i]);
		v8objects_want_type(m, p, types, w->v8.bytecodes_piece[i]);
	}
	v8code_want_headers(r, p, 0);
	v8compiled_want(r);
	if (!lang_memory_fetch(m))
		return false;
	w->v8.nr_scripts = 0;
	v8script_want(r, p, types, 0);
	v8compiled_want_data(r, types, p);
	if (!lang_memory_fetch(m))
		return false;
	keep_functions(r, p, types);
	for (uint32_t i = 0; i < w->v8.nr_scripts; i++)
		v8objects_want_type(m, p, types, w->v8.scripts[i].head);
	functions_index(w);
	return true;
}

uint64_t v8code_bytecodes(const struct lang_work *w, uint32_t code)
{
	for (uint32_t i = 0; i < w->nr; i++)
		if (w->code[i] == code && w->v8.bytecodes[i])
			return w->v8.bytecodes[i];
	return 0;
}

/* Of a builtin: name and number. */
uint64_t v8code_identity(const struct lang_reader *r, const struct lang_process *p, uint32_t code)
{
	const struct lang_code_at *c = &r->work.codes_of[code];
	const int16_t *n = p->v8.number;
	const uint8_t *f = lang_memory_piece(&r->memory, c->header);
	const uint8_t *script = lang_memory_piece(&r->memory, c->hash);
	uint64_t s;

	s = hash_u64(bytes_u64(f + n[V8_SHARED_FLAGS])); /* and the number behind it */
	if (bytes_u64(f + n[V8_SHARED_FLAGS]) >> 63 || !script) {
		s = hash_u64(s ^ bytes_u64(f + n[V8_SHARED_NAME]));
		return hash_u64(s ^ bytes_u64(f + n[V8_SHARED_DATA]));
	}
	s = hash_u64(s ^ bytes_u64(f + n[V8_SHARED_SCRIPT]));
	return hash_u64(s ^ bytes_u64(script + n[V8_SCRIPT_ENDS] + 8));
}

/* A function is another one with a table of lines, and with its script's text. */
static void set_stamps(struct lang_reader *r, const struct lang_process *p)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		uint64_t known = (v8code_bytecodes(w, i) ? 1 : 0) |
				 (v8script_is_whole(w, i) ? 2 : 0);

		w->functions[i] = (struct lang_function){ .table = -1 };
		w->codes_of[i].stamp = hash_u64(v8code_identity(r, p, i) ^ known);
	}
}

/* Set the line of each interpreted frame from the byte in its bytecodes. */
static void set_frame_lines(struct lang_reader *r)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr; i++) {
		const struct code_text *t = codes_at(r->codes, w->codes_of[w->code[i]].id);
		uint64_t at = w->instr[i];
		struct v8_entry e;

		w->instr[i] = LANG_NO_INSTR;
		if (t && at < LANG_NO_INSTR &&
		    v8table_find(t->table, t->table_size, (uint32_t)at, &e) && e.line)
			w->instr[i] = e.line;
	}
}

enum lang_none v8code_find(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct v8_types types = { 0 };
	struct lang_work *w = &r->work;
	uint32_t fresh[V8_NEW_MAX], nr = 0;
	enum lang_none none;

	if (!read_shared(r, p, process, &types))
		return LANG_NONE_BAD_CHAIN;
	if (!w->nr)
		return LANG_NONE_NO_FRAMES;
	if (!v8compiled_find(r, p, process, &types) || !v8script_read(r, p, process, &types))
		return LANG_NONE_BAD_CHAIN;
	set_stamps(r, p);
	if (functions_find(r, process)) {
		for (uint32_t i = 0; i < w->nr_codes && nr < V8_NEW_MAX; i++)
			if (w->codes_of[i].id == CODE_NONE)
				fresh[nr++] = i;
		if (!v8names_read(r, p, fresh, nr, &types))
			return LANG_NONE_BAD_CHAIN;
	}
	none = functions_add(r, p, process);
	if (none != LANG_NONE_NR)
		return none;
	v8compiled_add(r, p, &types);
	set_frame_lines(r);
	return none;
}

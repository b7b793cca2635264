// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8: compiled code of functions, baseline and optimised, and its tables of lines.
 *
 * Runs on: a reader. Code is known again by its address, its function, and the number of
 * its optimisation, which is never given twice: a table is read and made once.
 */
#include <string.h>

#include "symbols/lang/v8code.h"

/* Elements of the data for leaving optimised code. */
#define DATA_ELEMENTS	  16
#define DATA_NR_INLINED	  1
#define DATA_LITERALS	  2
#define DATA_OPTIMISATION 5
#define DATA_POSITIONS	  7
#define DATA_SIZE	  (DATA_ELEMENTS + 8 * (DATA_POSITIONS + 1))
/* A call that was inlined: position, index of the function in the literals (-1: itself). */
#define CALL_SIZE     16
#define CALL_FUNCTION 8
#define ARRAY_HEAD    16

/* Compiled code as its object describes it. */
struct code {
	uint64_t start, data, table;
	uint32_t size;
	bool baseline, optimised;
};

static bool parse_code(const struct lang_memory *m, const struct lang_process *p,
		       const struct v8_types *t, int piece, struct code *out)
{
	const uint8_t *head = v8objects_whole(m, piece, V8_CODE_SIZE);
	uint32_t kind;

	if (!head || p->untried || v8objects_type(m, t, piece) != p->v8.number[V8_TYPE_CODE])
		return false;
	kind = bytes_u32(head + V8_CODE_FLAGS) & V8_CODE_KIND;
	out->baseline = kind == V8_CODE_BASELINE;
	out->optimised = kind == V8_CODE_MAGLEV || kind == V8_CODE_OPTIMISED;
	out->data = bytes_u64(head + V8_CODE_DATA);
	out->table = bytes_u64(head + V8_CODE_TABLE);
	if (p->version >> 24 == 10) {
		out->start = m->pieces[piece].addr + V8_CODE_BEGINS_10;
		out->size = bytes_u32(head + V8_CODE_BYTES_10);
	} else {
		out->start = bytes_u64(head + V8_CODE_BEGIN);
		out->size = bytes_u32(head + V8_CODE_BYTES);
	}
	return out->baseline || out->optimised;
}

void v8compiled_want(struct lang_reader *r)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->v8.compiled[i][0] = w->v8.compiled[i][1] = w->v8.data[i] = -1;
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *f = lang_memory_piece(m, w->v8.piece[i]);
		int *piece = &w->v8.compiled[w->code[i]][0];

		if (*piece < 0 && f)
			v8objects_want_head(m, bytes_u64(f + V8_FUNCTION_CODE), V8_CODE_SIZE,
					    piece);
	}
}

void v8compiled_want_data(struct lang_reader *r, struct v8_types *t, const struct lang_process *p)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const uint8_t *code = lang_memory_piece(m, w->v8.compiled[i][0]);
		const uint8_t *f = lang_memory_piece(m, w->codes_of[i].header);
		uint64_t baseline = f ? bytes_u64(f + p->v8.number[V8_SHARED_DATA]) : 0;

		v8objects_want_type(m, p, t, w->v8.compiled[i][0]);
		if (code)
			v8objects_want_head(m, bytes_u64(code + V8_CODE_DATA), DATA_SIZE,
					    &w->v8.data[i]);
		/* The function has optimised code by now, this frame may have baseline code. */
		v8objects_want_head(m, baseline, V8_CODE_SIZE, &w->v8.compiled[i][1]);
	}
}

static uint64_t element(const uint8_t *data, uint32_t index)
{
	return bytes_u64(data + DATA_ELEMENTS + (size_t)8 * index);
}

/* Set the address and the table of compiled code; returns if the table is new. */
static bool set_code(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     const struct v8_types *t, uint32_t code, uint32_t which)
{
	struct lang_work *w = &r->work;
	struct lang_compiled *c = &w->v8.compiled_of[code][which];
	int piece = w->v8.compiled[code][which];
	const uint8_t *data = which ? NULL
				    : v8objects_whole(&r->memory, w->v8.data[code], DATA_SIZE);
	struct code_key key = { .process = process };
	struct code about;
	uint64_t stamp;

	*c = (struct lang_compiled){ .code = CODE_NONE };
	if (!parse_code(&r->memory, p, t, piece, &about) || (which && !about.baseline))
		return false;
	c->start = about.start;
	c->size = about.size;
	c->inlined = about.optimised && !(data && !element(data, DATA_NR_INLINED));
	if (!about.baseline && !data)
		return false;
	stamp = v8code_identity(r, p, code) ^ about.start;
	stamp = hash_u64(stamp ^ (about.baseline ? 1 : element(data, DATA_OPTIMISATION)));
	key.address = r->memory.pieces[piece].addr;
	key.stamp = hash_u64(stamp ^ about.size);
	c->code = codes_find(r->codes, &key);
	if (c->code != CODE_NONE || w->v8.nr_new == LANG_V8_NEW)
		return false;
	w->v8.news[w->v8.nr_new] = (struct lang_v8_new){
		.code = code, .which = (uint8_t)which, .baseline = about.baseline, .key = key
	};
	return true;
}

/* Queue the elements of the array with its head in @piece, at most @max. */
static void want_array(struct lang_memory *m, int *piece, uint32_t unit, uint32_t max, int *out)
{
	const uint8_t *head = lang_memory_piece(m, *piece);
	uint64_t length = head ? bytes_u64(head + 8) : 0;

	*out = -1;
	if (!head || !v8objects_is_smi(length) || length >> 32 > max)
		return;
	length = (length >> 32) * unit;
	if (length)
		*out = lang_memory_want(m, m->pieces[*piece].addr + ARRAY_HEAD, (uint32_t)length);
}

/* Queue the heads of the objects of new code. */
static void want_heads(struct lang_reader *r, struct lang_v8_new *n)
{
	struct lang_work *w = &r->work;
	struct lang_memory *m = &r->memory;
	const uint8_t *code = lang_memory_piece(m, w->v8.compiled[n->code][n->which]);
	const uint8_t *data = lang_memory_piece(m, w->v8.data[n->code]);
	uint64_t nr;

	n->literals = n->calls = n->bytecodes = -1;
	n->calls_bytes = n->code_bytes = n->positions = n->positions_bytes = -1;
	v8objects_want_head(m, bytes_u64(code + V8_CODE_TABLE), ARRAY_HEAD, &n->table);
	if (n->baseline) {
		v8objects_want_head(m, bytes_u64(code + V8_CODE_DATA), V8_BYTECODES_HEAD,
				    &n->bytecodes);
		return;
	}
	nr = element(data, DATA_NR_INLINED);
	n->nr_functions = v8objects_is_smi(nr) ? (uint32_t)(nr >> 32) : UINT32_MAX;
	if (!n->nr_functions || n->nr_functions > LANG_V8_INLINED)
		return;
	v8objects_want_head(m, element(data, DATA_LITERALS), ARRAY_HEAD + 8 * n->nr_functions,
			    &n->literals);
	v8objects_want_head(m, element(data, DATA_POSITIONS), ARRAY_HEAD, &n->calls);
}

/* Queue tables and bytecodes. */
static void want_tables(struct lang_reader *r, const struct lang_process *p, struct v8_types *t,
			struct lang_v8_new *n)
{
	struct lang_memory *m = &r->memory;
	const uint8_t *bytecodes = lang_memory_piece(m, n->bytecodes);
	uint64_t length;

	v8objects_want_type(m, p, t, n->table);
	v8objects_want_type(m, p, t, n->calls);
	v8objects_want_type(m, p, t, n->bytecodes);
	want_array(m, &n->table, 1, LANG_PIECE_MAX, &n->table_bytes);
	want_array(m, &n->calls, 1, V8_INLINED_MAX * CALL_SIZE, &n->calls_bytes);
	if (!bytecodes)
		return;
	length = bytes_u64(bytecodes + 8);
	v8objects_want_head(m, bytes_u64(bytecodes + V8_BYTECODES_POSITIONS), ARRAY_HEAD,
			    &n->positions);
	if (v8objects_is_smi(length) && length && length >> 32 <= LANG_PIECE_MAX)
		n->code_bytes = lang_memory_want(m,
						 m->pieces[n->bytecodes].addr +
							 (uint64_t)p->v8.number[V8_BYTECODES_DATA],
						 (uint32_t)(length >> 32));
}

/*
 * Number the functions that are inlined in new code; false: not in this sample: they are too many,
 * or cannot be read.
 */
static bool number_inlined(struct lang_reader *r, uint32_t process, struct lang_v8_new *n)
{
	struct lang_work *w = &r->work;
	const uint8_t *literals;

	if (!n->nr_functions || n->nr_functions > LANG_V8_INLINED)
		return true;
	literals = v8objects_whole(&r->memory, n->literals, ARRAY_HEAD + 8 * n->nr_functions);
	if (!literals || w->nr_codes + n->nr_functions > LANG_FRAMES_MAX)
		return false;
	for (uint32_t i = 0; i < n->nr_functions; i++) {
		/* A weak pointer has bit 1 set. */
		uint64_t shared = element(literals, i) & ~2ULL;

		if (!v8objects_is_tagged(shared))
			return false;
		n->function[i] = (uint16_t)functions_code(r, process, shared - 1);
	}
	return true;
}

/* Read the tables of new code; drop code with too many functions inlined. */
static bool read_new(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     struct v8_types *t)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	struct lang_v8_new *n = w->v8.news;
	uint32_t first = w->nr_codes, nr = 0;

	for (uint32_t i = 0; i < w->v8.nr_new; i++)
		want_heads(r, &n[i]);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->v8.nr_new; i++)
		want_tables(r, p, t, &n[i]);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->v8.nr_new; i++) {
		v8objects_want_type(m, p, t, n[i].positions);
		want_array(m, &n[i].positions, 1, LANG_PIECE_MAX, &n[i].positions_bytes);
		if (w->nr_codes - first < V8_INLINED_A_SAMPLE && number_inlined(r, process, &n[i]))
			n[nr++] = n[i];
	}
	w->v8.nr_new = nr;
	v8code_want_headers(r, p, first);
	if (!lang_memory_fetch(m))
		return false;
	v8script_want(r, p, t, first);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->v8.nr_scripts; i++)
		v8objects_want_type(m, p, t, w->v8.scripts[i].head);
	for (uint32_t i = first; i < w->nr_codes; i++)
		if (v8objects_type(m, t, w->codes_of[i].header) != p->v8.number[V8_TYPE_SHARED])
			nr = UINT32_MAX;
	/* These are no functions: leave them all out. */
	if (nr == UINT32_MAX) {
		w->v8.nr_new = 0;
		w->nr_codes = first;
	}
	return lang_memory_fetch(m);
}

bool v8compiled_find(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     struct v8_types *t)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++)
		v8objects_want_type(&r->memory, p, t, w->v8.compiled[i][1]);
	if (!lang_memory_fetch(&r->memory))
		return false;
	w->v8.nr_new = 0;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		w->v8.nr_new += set_code(r, p, process, t, i, 0);
		w->v8.nr_new += set_code(r, p, process, t, i, 1);
	}
	return !w->v8.nr_new || read_new(r, p, process, t);
}

/* ---- tables ---- */

/* The bytes of a table, if its head in @piece is of an array of bytes. */
static const uint8_t *bytes_of(const struct lang_memory *m, const struct lang_process *p,
			       const struct v8_types *t, int piece, int bytes, uint32_t *size)
{
	const uint8_t *b = lang_memory_piece(m, bytes);

	*size = b ? m->pieces[bytes].size : 0;
	return v8objects_type(m, t, piece) == p->v8.number[V8_TYPE_BYTES] ? b : NULL;
}

/* The function, as an index of codes_of, that call @i is of; its own: not inlined. */
static uint32_t function_of(const struct lang_v8_new *n, const uint16_t *functions, uint32_t nr,
			    uint32_t i)
{
	return i < nr ? functions[i] : n->code;
}

/* Get the calls that were inlined, and the function of each; UINT32_MAX: they are not valid. */
static uint32_t get_calls(const struct lang_reader *r, const struct lang_process *p,
			  const struct v8_types *t, const struct lang_v8_new *n,
			  struct v8_inlined *out, uint16_t *functions)
{
	const struct lang_work *w = &r->work;
	uint32_t size, nr, position;
	const uint8_t *calls = bytes_of(&r->memory, p, t, n->calls, n->calls_bytes, &size);

	if (!n->nr_functions || n->nr_functions > LANG_V8_INLINED)
		return n->nr_functions ? UINT32_MAX : 0;
	nr = calls ? size / CALL_SIZE : UINT32_MAX;
	for (uint32_t i = 0; calls && i < nr; i++, calls += CALL_SIZE) {
		uint32_t f = bytes_u32(calls + CALL_FUNCTION);

		if (f != UINT32_MAX && f >= n->nr_functions)
			return UINT32_MAX;
		functions[i] = f == UINT32_MAX ? (uint16_t)n->code : n->function[f];
		v8table_position((int64_t)bytes_u64(calls), &position, &out[i].outer);
		/* An outer call has a lower number. */
		if (out[i].outer != V8_NOT_INLINED && out[i].outer >= i)
			return UINT32_MAX;
		out[i].code = w->codes_of[functions[i]].id;
		out[i].line =
			v8script_line(w, function_of(n, functions, i, out[i].outer), position);
	}
	return nr;
}

/* Lines of optimised code. */
static void add_optimised(struct lang_reader *r, const struct lang_process *p,
			  const struct v8_types *t, const struct lang_v8_new *n,
			  struct v8_table *table)
{
	struct v8_inlined calls[V8_INLINED_MAX];
	uint16_t functions[V8_INLINED_MAX];
	uint32_t nr = get_calls(r, p, t, n, calls, functions), size;
	const uint8_t *bytes = bytes_of(&r->memory, p, t, n->table, n->table_bytes, &size);
	struct v8_positions at;

	if (nr > V8_INLINED_MAX || !bytes || !v8table_begin(table, calls, nr))
		return;
	v8table_positions(&at, bytes, size);
	while (v8table_next_position(&at)) {
		uint32_t i = at.inlined < nr ? at.inlined : V8_NOT_INLINED;
		const struct v8_entry e = {
			.at = (uint32_t)MAX(at.code, 0),
			.line = v8script_line(&r->work, function_of(n, functions, nr, i),
					      at.position),
			.inlined = i,
		};

		if (!v8table_add(table, &e))
			return;
	}
}

/* Lines of baseline code: by its bytecodes. */
static void add_baseline(struct lang_reader *r, const struct lang_process *p,
			 const struct v8_types *t, const struct lang_v8_new *n,
			 struct v8_table *table)
{
	const struct lang_memory *m = &r->memory;
	uint32_t map_size, size, line = 0;
	const uint8_t *map = bytes_of(m, p, t, n->table, n->table_bytes, &map_size);
	const uint8_t *positions = bytes_of(m, p, t, n->positions, n->positions_bytes, &size);
	const uint8_t *bytecodes = lang_memory_piece(m, n->code_bytes);
	struct v8_positions at;
	struct v8_baseline b;
	bool more;

	if (!map || !positions || !bytecodes ||
	    v8objects_type(m, t, n->bytecodes) != p->v8.number[V8_TYPE_BYTECODES] ||
	    !v8table_baseline(&b, p->version >> 24, map, map_size, bytecodes,
			      m->pieces[n->code_bytes].size))
		return;
	v8table_positions(&at, positions, size);
	more = v8table_next_position(&at);
	while (v8table_next_bytecode(&b)) {
		for (; more && at.code <= b.bytecode; more = v8table_next_position(&at))
			line = v8script_line(&r->work, n->code, at.position);
		if (!v8table_add(table, &(struct v8_entry){ b.pc, line, V8_NOT_INLINED }))
			return;
	}
	if (!v8table_fits(&b))
		v8table_begin(table, NULL, 0);
}

/* Return whether the texts of all scripts of the code are read. */
static bool is_whole(const struct lang_work *w, const struct lang_v8_new *n)
{
	for (uint32_t i = 0; !n->baseline && n->literals >= 0 && i < n->nr_functions; i++)
		if (!v8script_is_whole(w, n->function[i]))
			return false;
	return v8script_is_whole(w, n->code);
}

void v8compiled_add(struct lang_reader *r, const struct lang_process *p, const struct v8_types *t)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->v8.nr_new; i++) {
		const struct lang_v8_new *n = &w->v8.news[i];
		const struct code_text *function = codes_at(r->codes, w->codes_of[n->code].id);
		struct v8_table table = { .bytes = w->v8.table, .room = sizeof(w->v8.table) };
		struct code_text text;

		if (!function || !is_whole(w, n) || !v8table_begin(&table, NULL, 0))
			continue;
		if (n->baseline)
			add_baseline(r, p, t, n, &table);
		else
			add_optimised(r, p, t, n, &table);
		text = *function;
		text.compiled = true;
		text.table = table.bytes;
		text.table_size = table.size;
		w->v8.compiled_of[n->code][n->which].code = codes_add(r->codes, &n->key, &text);
	}
}

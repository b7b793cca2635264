// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8: names, files and tables of lines of new functions.
 *
 * Runs on: a reader.
 */
#include <string.h>

#include "symbols/lang/v8code.h"
#include "symbols/lang/v8rope.h"

/* Of a ScopeInfo: bits of its flags, and words behind the locals. */
#define SCOPE_CLASS_VARIABLE (1U << 10)
#define SCOPE_FUNCTION	     (3U << 12)
#define SCOPE_INFERRED	     (1U << 14)
#define SCOPE_WORDS	     8
/* From this number on locals are in a hash table, and only their attributes in the ScopeInfo. */
#define SCOPE_INLINE_LOCALS 75U

/* A bundle of modules may have some thousands in one function. */
#define SCOPE_LOCALS_MAX (1U << 20)

/* A new function: pieces of the objects that describe it. */
struct fresh {
	uint32_t code;
	int name, script_name;		 /* heads of the objects in the function and its script */
	int scope;			 /* words behind the locals */
	struct v8_rope strings[2], file; /* name, name by assignment */
	int bytecodes, positions, table; /* heads; bytes */
	uint64_t words[SCOPE_WORDS];	 /* of the scope */
};

/* Queue the objects that a new function and its script point to. */
static void want_objects(struct lang_reader *r, const struct lang_process *p, struct fresh *f)
{
	const struct lang_code_at *c = &r->work.codes_of[f->code];
	struct lang_memory *m = &r->memory;
	const uint8_t *shared = lang_memory_piece(m, c->header);
	const uint8_t *script = lang_memory_piece(m, c->hash);

	f->scope = f->positions = -1;
	f->strings[0] = f->strings[1] = v8rope_of(-1);
	v8objects_want_head(m, bytes_u64(shared + p->v8.number[V8_SHARED_NAME]), V8_HEAD, &f->name);
	f->script_name = -1;
	if (script)
		v8objects_want_head(m, bytes_u64(script + p->v8.number[V8_SCRIPT_NAME]), V8_HEAD,
				    &f->script_name);
	f->file = v8rope_of(f->script_name);
	v8objects_want_head(m, v8code_bytecodes(&r->work, f->code) + 1, V8_BYTECODES_HEAD,
			    &f->bytecodes);
}

/* Queue their types, the words of the scope that have the name, and the table of positions. */
static void want_words(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
		       struct v8_types *t)
{
	const struct lang_code_at *c = &r->work.codes_of[f->code];
	struct lang_memory *m = &r->memory;
	const int16_t *n = p->v8.number;
	const uint8_t *head = lang_memory_piece(m, f->name);
	const uint8_t *bytecodes = lang_memory_piece(m, f->bytecodes);
	uint64_t locals, at;

	v8objects_want_type(m, p, t, f->name);
	v8objects_want_type(m, p, t, f->script_name);
	v8objects_want_type(m, p, t, c->hash);
	if (bytecodes)
		v8objects_want_head(m, bytes_u64(bytecodes + V8_BYTECODES_POSITIONS), V8_HEAD,
				    &f->positions);
	/* A name is a head as well: these words are used only if it is a scope. */
	if (!head)
		return;
	locals = bytes_u64(head + 8 * (1 + n[V8_SCOPE_LOCALS]));
	if (!v8objects_is_smi(locals) || locals >> 32 > SCOPE_LOCALS_MAX)
		return;
	locals >>= 32;
	at = 1 + (uint64_t)n[V8_SCOPE_FIRST] + locals;
	at += locals < SCOPE_INLINE_LOCALS ? locals : 1;
	f->scope = v8objects_want(m,
				  bytes_u64(lang_memory_piece(m, c->header) + n[V8_SHARED_NAME]) -
					  1 + 8 * at,
				  8 * SCOPE_WORDS);
}

/* Parse the words of a scope: where its names are, and the position of the function. */
static bool parse_scope(struct lang_reader *r, const struct lang_process *p, struct fresh *f)
{
	struct lang_function *function = &r->work.functions[f->code];
	struct lang_memory *m = &r->memory;
	const uint8_t *head = lang_memory_piece(m, f->name);
	const uint8_t *words = lang_memory_piece(m, f->scope);
	const uint8_t *shared = lang_memory_piece(m, r->work.codes_of[f->code].header);
	uint64_t flags = bytes_u64(head + 8) >> 32, at = 0, start;
	uint16_t token;
	int name;

	if (!words)
		return false;
	if (flags & SCOPE_CLASS_VARIABLE)
		at++;
	if (flags & SCOPE_FUNCTION) {
		v8objects_want_head(m, bytes_u64(words + 8 * at), V8_HEAD, &name);
		f->strings[0] = v8rope_of(name);
		at += 2;
	}
	if (flags & SCOPE_INFERRED) {
		v8objects_want_head(m, bytes_u64(words + 8 * at++), V8_HEAD, &name);
		f->strings[1] = v8rope_of(name);
	}
	start = bytes_u64(words + 8 * at);
	if (!v8objects_is_smi(start) || start >> 63)
		return true;
	memcpy(&token, shared + p->v8.number[V8_SHARED_TOKEN], sizeof(token));
	start >>= 32;
	function->position = (uint32_t)(token < start ? start - token : start);
	function->first_line = v8script_line(&r->work, f->code, function->position);
	return true;
}

/*
 * Queue the strings of names: of the function, or of its scope. False: the scope is unreadable.
 */
static bool want_names(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
		       struct v8_types *t)
{
	struct lang_memory *m = &r->memory;
	int type = v8objects_type(m, t, f->name);

	v8objects_want_type(m, p, t, f->positions);
	if (type >= 0 && type < V8_STRING_TYPES)
		f->strings[0] = v8rope_of(f->name);
	else if (type == p->v8.number[V8_TYPE_SCOPE])
		return parse_scope(r, p, f);
	return true;
}

static void want_string_types(struct lang_memory *m, const struct lang_process *p,
			      const struct fresh *f, struct v8_types *t)
{
	v8rope_want_types(m, p, t, &f->strings[0]);
	v8rope_want_types(m, p, t, &f->strings[1]);
	v8rope_want_types(m, p, t, &f->file);
}

/* Set the name: the function's, or else the one it was assigned to. */
static bool set_name(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
		     const struct v8_types *t)
{
	struct lang_text *name = &r->work.functions[f->code].name;
	int type = v8objects_type(&r->memory, t, f->name);

	/* While the collector moves objects, they have no type. */
	if (f->name >= 0 && type < 0)
		return false;
	if (!v8rope_want_text(&r->memory, p, t, &f->strings[0], name))
		return false;
	if (!name->size) {
		f->strings[0] = f->strings[1];
		if (!v8rope_want_text(&r->memory, p, t, &f->strings[0], name))
			return false;
	}
	if (!name->size)
		name->fixed = "(anonymous)";
	return true;
}

/* Queue the table of positions, if there is one. */
static void want_table(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
		       const struct v8_types *t)
{
	struct lang_memory *m = &r->memory;
	const uint8_t *positions = lang_memory_piece(m, f->positions);
	uint64_t size;

	f->table = -1;
	if (!positions || v8objects_type(m, t, f->positions) != p->v8.number[V8_TYPE_BYTES])
		return;
	size = bytes_u64(positions + 8);
	if (v8objects_is_smi(size) && size >> 32 <= CODES_TABLE_MAX)
		f->table = lang_memory_want(m, m->pieces[f->positions].addr + 16,
					    (uint32_t)(size >> 32));
}

/* Make the table of lines from that of positions. */
static void set_lines(struct lang_reader *r, const struct fresh *f)
{
	struct lang_function *function = &r->work.functions[f->code];
	struct lang_v8_work *v = &r->work.v8;
	const uint8_t *bytes = lang_memory_piece(&r->memory, f->table);
	struct v8_table table = { .bytes = v->lines + v->used,
				  .room = MIN((uint32_t)sizeof(v->lines) - v->used, V8_TABLE_MAX) };
	struct v8_positions at;

	if (!bytes || !v8script_is_whole(&r->work, f->code) || !v8table_begin(&table, NULL, 0))
		return;
	v8table_positions(&at, bytes, r->memory.pieces[f->table].size);
	while (v8table_next_position(&at)) {
		const struct v8_entry e = {
			.at = (uint32_t)MAX(at.code, 0),
			.line = v8script_line(&r->work, f->code, at.position),
			.inlined = V8_NOT_INLINED,
		};

		/* The rest has no lines. */
		if (!v8table_add(&table, &e))
			break;
	}
	function->lines = table.bytes;
	function->lines_size = table.size;
	v->used += table.size;
}

/* Set name and file of a new function, queue its table; false: unreadable now. */
static bool set_function(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
			 const struct v8_types *t)
{
	struct lang_function *function = &r->work.functions[f->code];
	int script = r->work.codes_of[f->code].hash;
	int type = v8objects_type(&r->memory, t, script);

	if (!set_name(r, p, f, t) || (script >= 0 && type < 0))
		return false;
	if (type != p->v8.number[V8_TYPE_SCRIPT])
		function->file.fixed = "[internal]";
	else if (!v8rope_want_text(&r->memory, p, t, &f->file, &function->file))
		return false;
	else if (!function->file.size)
		function->file.fixed = "[eval]";
	want_table(r, p, f, t);
	return true;
}

/* Read names, files and tables of new functions, step by step. */
static bool read_fresh(struct lang_reader *r, const struct lang_process *p, struct fresh *fresh,
		       uint32_t nr, struct v8_types *t)
{
	struct lang_memory *m = &r->memory;
	char *room = r->work.v8.texts;
	bool again = true;

	for (uint32_t i = 0; i < nr; i++)
		want_objects(r, p, &fresh[i]);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		want_words(r, p, &fresh[i], t);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!want_names(r, p, &fresh[i], t))
			return false;
	for (int depth = 0; again; depth++) {
		if (!lang_memory_fetch(m))
			return false;
		for (uint32_t i = 0; i < nr; i++)
			want_string_types(m, p, &fresh[i], t);
		if (!lang_memory_fetch(m))
			return false;
		again = false;
		for (uint32_t i = 0; i < nr && depth < V8_ROPE_DEPTH; i++) {
			v8rope_follow(m, p, t, &fresh[i].strings[0], &again);
			v8rope_follow(m, p, t, &fresh[i].strings[1], &again);
			v8rope_follow(m, p, t, &fresh[i].file, &again);
		}
	}
	for (uint32_t i = 0; i < nr; i++)
		if (!set_function(r, p, &fresh[i], t))
			return false;
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_function *function = &r->work.functions[fresh[i].code];

		v8rope_set_text(m, p, t, &fresh[i].strings[0], &room, &function->name);
		v8rope_set_text(m, p, t, &fresh[i].file, &room, &function->file);
		set_lines(r, &fresh[i]);
	}
	return true;
}

bool v8names_read(struct lang_reader *r, const struct lang_process *p, const uint32_t *codes,
		  uint32_t nr, struct v8_types *t)
{
	struct fresh fresh[V8_NEW_MAX];

	r->work.v8.used = 0;
	nr = MIN(nr, V8_NEW_MAX);
	for (uint32_t i = 0; i < nr; i++)
		fresh[i].code = codes[i];
	return read_fresh(r, p, fresh, nr, t);
}

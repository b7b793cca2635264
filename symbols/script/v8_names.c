// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8's heap: types by maps, strings and ropes, names of functions, scripts. Read in steps: pieces
 * are there after the next read.
 *
 * Runs on: a reader. Hostile memory.
 *
 * Heads, types and strings of V8's heap. Runs on: a reader.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"

/* The kinds of strings, in the lower bits of their types; sequential ones are 0. */
#define V8_STRING_TYPES 128

#define V8_STRING_SHAPE	   7
#define V8_STRING_CONS	   1
#define V8_STRING_EXTERNAL 2
#define V8_STRING_THIN	   5
#define V8_STRING_LATIN1   8

/* How many strings stand for another one. */
#define V8_STRING_DEPTH 2

/* Queue the type of an object with this map. */
static void want_type(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
		      uint64_t map)
{
	for (uint32_t i = t->nr; i-- > 0;)
		if (t->map[i] == map)
			return;
	if (t->nr == V8_MAPS_MAX || !v8objects_is_tagged(map))
		return;
	t->map[t->nr] = map;
	t->piece[t->nr++] = lang_memory_want(m, map - 1 + (uint64_t)p->v8.number[V8_MAP_TYPE], 2);
}

void v8objects_want_type(struct lang_memory *m, const struct lang_process *p, struct v8_types *t,
			 int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	if (head)
		want_type(m, p, t, bytes_u64(head));
}

/* The type of an object with this map; -1: unknown. */
static int type_of(const struct lang_memory *m, const struct v8_types *t, uint64_t map)
{
	for (uint32_t i = t->nr; i-- > 0;) {
		const uint8_t *bytes = t->map[i] == map ? lang_memory_piece(m, t->piece[i]) : NULL;

		if (bytes)
			return bytes[0] | bytes[1] << 8;
	}
	return -1;
}

int v8objects_type(const struct lang_memory *m, const struct v8_types *t, int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	return head ? type_of(m, t, bytes_u64(head)) : -1;
}

static int v8objects_want(struct lang_memory *m, uint64_t addr, uint32_t size);

void v8objects_want_head(struct lang_memory *m, uint64_t tagged, uint32_t size, int *piece)
{
	*piece = v8objects_is_tagged(tagged) ? v8objects_want(m, tagged - 1, size) : -1;
}

/*
 * Queue @size bytes, but none of the next page of the heap, which may not be mapped: no object is
 * in both. The rest is then of another piece, or 0, and no part of an object.
 */
static int v8objects_want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint64_t left = V8_PAGE - addr % V8_PAGE;

	return lang_memory_want(m, addr, (uint32_t)MIN((uint64_t)size, left));
}

const uint8_t *v8objects_whole(const struct lang_memory *m, int piece, uint32_t size)
{
	const uint8_t *bytes = lang_memory_piece(m, piece);

	return bytes && m->pieces[piece].size >= size ? bytes : NULL;
}

/*
 * Follow a string that refers to another one (*again: its head was queued), or to the first of the
 * two that it is: if the second is not empty, its length is another one.
 */
static void v8objects_follow(struct lang_memory *m, const struct lang_process *p,
			     const struct v8_types *t, int *piece, bool *again)
{
	int type = v8objects_type(m, t, *piece);
	const int16_t *n = p->v8.number;
	int at;

	if (type < 0 || type >= V8_STRING_TYPES)
		return;
	if ((type & V8_STRING_SHAPE) == V8_STRING_THIN)
		at = n[V8_THIN_ACTUAL];
	else if ((type & V8_STRING_SHAPE) == V8_STRING_CONS)
		at = n[V8_CONS_FIRST];
	else
		return;
	v8objects_want_head(m, bytes_u64(lang_memory_piece(m, *piece) + at), V8_HEAD, piece);
	*again = true;
}

bool v8objects_is_bytes(const struct lang_memory *m, const struct lang_process *p,
			const struct v8_types *t, int piece)
{
	int type = v8objects_type(m, t, piece);

	return type > 0 &&
	       (type == p->v8.number[V8_TYPE_BYTES] || type == p->v8.number[V8_TYPE_TRUSTED_BYTES]);
}

/* The length of the string with its head in @piece. */
static uint32_t v8objects_length(const struct lang_memory *m, const struct lang_process *p,
				 int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	return head ? bytes_u32(head + p->v8.number[V8_STRING_LENGTH]) : 0;
}

/*
 * Names and paths of V8: strings that may be two others, which may be two others again, as names by
 * assignment are ("Controller" and ".handle"). Read in steps, as internal.h has them.
 *
 * Runs on: a reader. Hostile memory.
 *
 * Strings of V8 in parts. Runs on: a reader.
 */

#define V8_ROPE_MAX   8U /* flat strings */
#define V8_ROPE_DEPTH 7

struct v8_rope {
	int head[V8_ROPE_MAX], bytes[V8_ROPE_MAX]; /* pieces of the flat strings, in order */
	uint32_t nr;
	bool is_cut; /* it goes on */
};

/* Begin with one string, by the piece of its head; -1: none. */
static struct v8_rope v8rope_of(int piece)
{
	return (struct v8_rope){ .head = { piece }, .nr = piece >= 0 };
}

/* Queue the types of its strings. */
static void v8rope_want_types(struct lang_memory *m, const struct lang_process *p,
			      struct v8_types *t, const struct v8_rope *rope)
{
	for (uint32_t i = 0; i < rope->nr; i++)
		v8objects_want_type(m, p, t, rope->head[i]);
}

/* Put the two strings of part @i in its place. Return how many they are. */
static uint32_t split(struct lang_memory *m, const struct lang_process *p, struct v8_rope *rope,
		      uint32_t i)
{
	const uint8_t *head = lang_memory_piece(m, rope->head[i]);
	uint64_t first = bytes_u64(head + p->v8.number[V8_CONS_FIRST]);
	uint64_t second = bytes_u64(head + p->v8.number[V8_CONS_SECOND]);

	assert(i + 1 < V8_ROPE_MAX);
	v8objects_want_head(m, first, V8_HEAD, &rope->head[i]);
	if (rope->nr == V8_ROPE_MAX) {
		rope->nr = i + 1;
		rope->is_cut = true;
		return 1;
	}
	memmove(rope->head + i + 2, rope->head + i + 1, (rope->nr - i - 1) * sizeof(rope->head[0]));
	rope->nr++;
	v8objects_want_head(m, second, V8_HEAD, &rope->head[i + 1]);
	return 2;
}

/* Put the parts of strings in their places; *again: their heads were queued. */
static void v8rope_follow(struct lang_memory *m, const struct lang_process *p,
			  const struct v8_types *t, struct v8_rope *rope, bool *again)
{
	for (uint32_t i = 0, nr; i < rope->nr; i += nr) {
		int type = v8objects_type(m, t, rope->head[i]);

		nr = 1;
		if (type >= 0 && type < V8_STRING_TYPES &&
		    (type & V8_STRING_SHAPE) == V8_STRING_CONS) {
			nr = split(m, p, rope, i);
			*again = true;
		} else {
			v8objects_follow(m, p, t, &rope->head[i], again);
		}
	}
}

/* Set @text to a flat string; an empty one for another object. False: it is not flat. */
static bool set_flat(const struct lang_memory *m, const struct lang_process *p,
		     const struct v8_types *t, int piece, struct lang_text *text)
{
	int type = v8objects_type(m, t, piece);
	uint32_t length = MIN(v8objects_length(m, p, piece), (uint32_t)SCRIPT_FUNCTIONS_TEXT_MAX);

	text->size = 0;
	if (piece < 0 || type >= V8_STRING_TYPES)
		return true;
	if (type < 0 || type & V8_STRING_SHAPE)
		return false;
	text->addr = m->pieces[piece].addr + (uint64_t)p->v8.number[V8_STRING_CHARS];
	text->encoding = type & V8_STRING_LATIN1 ? LANG_LATIN1 : LANG_UTF16;
	text->size = type & V8_STRING_LATIN1 ? length : 2 * length;
	return true;
}

/*
 * Set @text: to the string if it is flat, else to its size, and queue the bytes of the parts. Size
 * 0: an empty string, or another object. False: unreadable now, as while the collector moves it.
 */
static bool v8rope_want_text(struct lang_memory *m, const struct lang_process *p,
			     const struct v8_types *t, struct v8_rope *rope, struct lang_text *text)
{
	uint32_t size = 0;

	for (uint32_t i = 0; i < rope->nr; i++) {
		if (rope->head[i] >= 0 && v8objects_type(m, t, rope->head[i]) < 0)
			return false;
		if (!set_flat(m, p, t, rope->head[i], text)) {
			/* Too deep, or not in this heap. */
			rope->nr = i;
			rope->is_cut = true;
			break;
		}
		size += text->size;
	}
	if (rope->nr == 1 && !rope->is_cut)
		return true;
	for (uint32_t i = 0; i < rope->nr; i++) {
		set_flat(m, p, t, rope->head[i], text);
		rope->bytes[i] = text->size ? lang_memory_want(m, text->addr, text->size) : -1;
	}
	text->size = size;
	return true;
}

/* Set the text of a rope that is not flat, with its bytes in *@room, which is cut by them. */
static void v8rope_set_text(const struct lang_memory *m, const struct lang_process *p,
			    const struct v8_types *t, const struct v8_rope *rope, char **room,
			    struct lang_text *text)
{
	static const struct lang_text dots = { .fixed = "..." };
	uint16_t size = 0;
	char *out = *room;

	if ((rope->nr <= 1 && !rope->is_cut) || !text->size || text->fixed)
		return;
	for (uint32_t i = 0; i < rope->nr; i++) {
		struct lang_text part = { .piece = rope->bytes[i] };

		set_flat(m, p, t, rope->head[i], &part);
		size = functions_put_text(m, &part, out, size);
	}
	if (rope->is_cut)
		size = functions_put_text(m, &dots, out, size);
	out[size] = '\0';
	text->fixed = out;
	text->size = 0;
	*room += size + 1;
}

uint64_t v8code_bytecodes(const struct lang_work *w, uint32_t code)
{
	for (uint32_t i = 0; i < w->nr; i++)
		if (w->code[i] == code && w->v8.bytecodes[i])
			return w->v8.bytecodes[i];
	return 0;
}

/*
 * V8: names, files and tables of lines of new functions.
 *
 * Runs on: a reader.
 */

/* Of a ScopeInfo: bits of its flags, and words behind the locals. */
#define SCOPE_CLASS_VARIABLE (1U << 10)

#define SCOPE_FUNCTION (3U << 12)
#define SCOPE_INFERRED (1U << 14)
#define SCOPE_WORDS    8
#define SCOPE_HEAD     48

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
	uint32_t first, last;		 /* positions in the text */
	bool wrong;			 /* these, or the name, are not valid */
	uint64_t words[SCOPE_WORDS];	 /* of the scope */
};

/* Queue the objects that a new function and its script point to. */
static void want_objects(struct lang_reader *r, const struct lang_process *p, struct fresh *f)
{
	const struct lang_code_at *c = &r->work.script_functions_of[f->code];
	struct lang_memory *m = &r->memory;
	const uint8_t *shared = lang_memory_piece(m, c->header);
	const uint8_t *script = lang_memory_piece(m, c->hash);

	f->scope = f->positions = -1;
	f->wrong = false;
	f->first = f->last = 0;
	f->strings[0] = f->strings[1] = v8rope_of(-1);
	v8objects_want_head(m, bytes_u64(shared + p->v8.number[V8_SHARED_NAME]), SCOPE_HEAD,
			    &f->name);
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
	const struct lang_code_at *c = &r->work.script_functions_of[f->code];
	struct lang_memory *m = &r->memory;
	const int16_t *n = p->v8.number;
	const uint8_t *head = lang_memory_piece(m, f->name);
	const uint8_t *bytecodes = lang_memory_piece(m, f->bytecodes);
	uint64_t locals, at;

	v8objects_want_type(m, p, t, f->name);
	v8objects_want_type(m, p, t, f->script_name);
	v8objects_want_type(m, p, t, c->hash);
	if (bytecodes)
		v8objects_want_head(m, bytes_u64(bytecodes + n[V8_BYTECODES_POSITIONS]), V8_HEAD,
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
	const uint8_t *shared = lang_memory_piece(m, r->work.script_functions_of[f->code].header);
	const int16_t *n = p->v8.number;
	uint32_t flags = bytes_u32(head + n[V8_SCOPE_FLAGS]);
	uint64_t at = 0, start, end;
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
	words = n[V8_SCOPE_POSITION] ? head + 8 * (1 + n[V8_SCOPE_POSITION]) : words + 8 * at;
	start = bytes_u64(words);
	end = bytes_u64(words + 8);
	f->wrong = !v8objects_is_smi(start) || !v8objects_is_smi(end) ||
		   (int64_t)start > (int64_t)end;
	f->first = (uint32_t)(start >> 32);
	f->last = (uint32_t)(end >> 32);
	if (!v8objects_is_smi(start) || start >> 63)
		return true;
	memcpy(&token, shared + n[V8_SHARED_TOKEN], sizeof(token));
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

	f->wrong |= v8objects_type(&r->memory, t, f->strings[0].head[0]) >= V8_STRING_TYPES;
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
	if (!positions || !v8objects_is_bytes(m, p, t, f->positions))
		return;
	size = bytes_u64(positions + 8);
	if (v8objects_is_smi(size) && size >> 32 <= SCRIPT_FUNCTIONS_TABLE_MAX)
		f->table = lang_memory_want(m, m->pieces[f->positions].addr + 16,
					    (uint32_t)(size >> 32));
}

/* Make the table of lines from that of positions. */
static void set_lines(struct lang_reader *r, const struct lang_process *p, struct fresh *f)
{
	struct lang_function *function = &r->work.functions[f->code];
	struct lang_v8_work *v = &r->work.v8;
	const uint8_t *bytes = lang_memory_piece(&r->memory, f->table);
	struct v8_table table = { .bytes = v->lines + v->used,
				  .room = MIN((uint32_t)sizeof(v->lines) - v->used, V8_TABLE_MAX) };
	const uint8_t *bytecodes = lang_memory_piece(&r->memory, f->bytecodes);
	uint64_t size = bytecodes ? bytes_u64(bytecodes + 8) >> 32 : 0;
	struct v8_positions at;

	if (!bytes || !v8script_is_whole(&r->work, f->code) || !v8table_begin(&table, NULL, 0))
		return;
	v8table_positions(&at, bytes, r->memory.pieces[f->table].size,
			  p->v8.number[V8_POSITION_BITS]);
	while (v8table_next_position(&at)) {
		f->wrong |= at.code >= (int64_t)size || at.position < f->first ||
			    at.position > f->last;
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
	int script = r->work.script_functions_of[f->code].hash;
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

struct lang_proof *v8names_proof(struct lang_reader *r, uint32_t process)
{
	struct lang_proof *proof = &r->proofs[hash_u64(process) & (LANG_SEARCHES - 1)];

	if (proof->process != process)
		*proof = (struct lang_proof){ .process = process };
	return proof;
}

/* Note whether the parts of a new function fit together. Builtins have no scope. */
static void note_proof(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		       const struct fresh *f, const struct v8_types *t)
{
	struct lang_proof *proof = v8names_proof(r, process);

	if (v8objects_type(&r->memory, t, f->name) != p->v8.number[V8_TYPE_SCOPE])
		return;
	if (f->wrong)
		proof->wrong++;
	else if (f->last)
		proof->right++;
}

/* Read names, files and tables of new functions, step by step. */
static bool read_fresh(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		       struct fresh *fresh, uint32_t nr, struct v8_types *t)
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
		set_lines(r, p, &fresh[i]);
		note_proof(r, p, process, &fresh[i], t);
	}
	return true;
}

bool v8names_read(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		  const uint32_t *codes, uint32_t nr, struct v8_types *t)
{
	struct fresh fresh[V8_NEW_MAX];

	r->work.v8.used = 0;
	nr = MIN(nr, V8_NEW_MAX);
	for (uint32_t i = 0; i < nr; i++)
		fresh[i].code = codes[i];
	return read_fresh(r, p, process, fresh, nr, t);
}

/*
 * V8: scripts of functions, and where their lines end.
 *
 * Runs on: a reader. Texts never change, so they are read in parts at several samples, each
 * while the thread is preempted.
 */

/* Bytes of texts per sample. */
#define PART_BYTES LANG_PIECE_MAX

#define TEXT_UNITS (64U << 20)

/* Of an ExternalString: where its text is. */
#define EXTERNAL_DATA 24

/* Behind the name of a Script: the lines in front of its text. */
#define SCRIPT_LINE_OFFSET 8

#define NO_SCRIPT UINT8_MAX

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
		const uint8_t *f = lang_memory_piece(m, w->script_functions_of[i].header);
		uint64_t script = f ? bytes_u64(f + p->v8.number[V8_SHARED_SCRIPT]) : 0;

		v8objects_want_type(m, p, t, w->script_functions_of[i].header);
		w->script_functions_of[i].hash = -1;
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
			w->script_functions_of[i].hash = w->v8.scripts[w->v8.script_of[i]].head;
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
	struct line_ends *ends = script_functions_line_ends(r->codes);
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
	struct line_ends *ends = script_functions_line_ends(r->codes);
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
	struct line_ends *ends = script_functions_line_ends(r->codes);
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

	assert(code < w->nr_codes);
	return i == NO_SCRIPT || !w->v8.scripts[i].is_script || w->v8.scripts[i].text;
}

uint32_t v8script_line(const struct lang_work *w, uint32_t code, uint32_t position)
{
	uint8_t i = w->v8.script_of[code];
	const struct line_ends_text *text = i == NO_SCRIPT ? NULL : w->v8.scripts[i].text;
	uint32_t line = text && position < INT32_MAX ? line_ends_line(text, position) : 0;
	int64_t shown = line ? (int64_t)line + w->v8.scripts[i].line_offset : 0;

	assert(code < w->nr_codes);
	return shown > 0 && shown <= INT32_MAX ? (uint32_t)shown : 0;
}

/*
 * Tables of lines. See src/codegen/source-position-table.cc and
 * src/baseline/bytecode-offset-iterator.h of V8.
 *
 * Runs on: a reader (making), sampler threads (look-up).
 */

struct head {
	uint32_t nr_inlined, nr_entries;
};

/* ---- our table: head, calls, entries ---- */

static bool get_head(const uint8_t *table, uint32_t size, struct head *h)
{
	if (size < sizeof(*h))
		return false;
	memcpy(h, table, sizeof(*h));
	size -= sizeof(*h);
	return h->nr_inlined <= V8_INLINED_MAX &&
	       h->nr_inlined * sizeof(struct v8_inlined) <= size &&
	       (size - h->nr_inlined * sizeof(struct v8_inlined)) / sizeof(struct v8_entry) >=
		       h->nr_entries;
}

static struct v8_entry entry_at(const uint8_t *table, const struct head *h, uint32_t i)
{
	struct v8_entry e;

	memcpy(&e, table + sizeof(*h) + h->nr_inlined * sizeof(struct v8_inlined) + i * sizeof(e),
	       sizeof(e));
	return e;
}

bool v8table_find(const uint8_t *table, uint32_t size, uint32_t at, struct v8_entry *out)
{
	uint32_t after;
	struct head h;

	assert(out && (table || !size));
	if (!get_head(table, size, &h))
		return false;
	after = search_split(h.nr_entries, i, entry_at(table, &h, i).at <= at);
	if (!after)
		return false;
	*out = entry_at(table, &h, after - 1);
	return true;
}

bool v8table_inlined(const uint8_t *table, uint32_t size, uint32_t i, struct v8_inlined *out)
{
	struct head h;

	assert(out && (table || !size));
	if (!get_head(table, size, &h) || i >= h.nr_inlined)
		return false;
	memcpy(out, table + sizeof(h) + i * sizeof(*out), sizeof(*out));
	return true;
}

void v8table_translate(uint8_t *table, uint32_t size, const uint32_t *ids, uint32_t nr,
		       uint32_t none)
{
	uint8_t *at = table + sizeof(struct head);
	struct v8_inlined call;
	struct head h;

	assert(ids || !nr);
	if (!get_head(table, size, &h))
		return;
	for (uint32_t i = 0; i < h.nr_inlined; i++, at += sizeof(call)) {
		memcpy(&call, at, sizeof(call));
		call.code = call.code < nr ? ids[call.code] : none;
		memcpy(at, &call, sizeof(call));
	}
}

bool v8table_begin(struct v8_table *t, const struct v8_inlined *inlined, uint32_t nr)
{
	const struct head h = { .nr_inlined = nr };

	t->size = (uint32_t)(sizeof(h) + nr * sizeof(*inlined));
	t->last = (struct v8_entry){ .inlined = V8_NOT_INLINED };
	if (nr > V8_INLINED_MAX || t->size > t->room)
		return false;
	memcpy(t->bytes, &h, sizeof(h));
	if (nr)
		memcpy(t->bytes + sizeof(h), inlined, nr * sizeof(*inlined));
	return true;
}

bool v8table_add(struct v8_table *t, const struct v8_entry *e)
{
	const bool is_last = t->room - t->size < 2 * sizeof(*e);
	struct v8_entry entry = *e;
	struct head h;

	memcpy(&h, t->bytes, sizeof(h));
	if (h.nr_entries && e->line == t->last.line && e->inlined == t->last.inlined)
		return true;
	if (t->room - t->size < sizeof(*e))
		return false;
	/* Entries at one byte: the last one counts. */
	if (h.nr_entries && e->at <= t->last.at) {
		t->size -= (uint32_t)sizeof(*e);
		h.nr_entries--;
	}
	if (is_last) {
		entry.line = 0;
		entry.inlined = V8_NOT_INLINED;
	}
	memcpy(t->bytes + t->size, &entry, sizeof(entry));
	t->size += (uint32_t)sizeof(entry);
	t->last = entry;
	h.nr_entries++;
	memcpy(t->bytes, &h, sizeof(h));
	return !is_last;
}

/* ---- V8's positions ---- */

/* Read a number of groups of 7 bits, the lowest first; false: the table ends in it. */
static bool read_unsigned(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		if (shift < 64)
			*value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return true;
	}
	return false;
}

static uint64_t to_signed(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static bool read_signed(const uint8_t **at, const uint8_t *end, int64_t *value)
{
	uint64_t v;

	if (!read_unsigned(at, end, &v))
		return false;
	*value = (int64_t)to_signed(v);
	return true;
}

void v8table_positions(struct v8_positions *p, const uint8_t *bytes, uint32_t size, int bits)
{
	*p = (struct v8_positions){ .at = bytes, .end = bytes + size, .bits = bits, .code = -1 };
}

void v8table_position(int64_t raw, uint32_t *position, uint32_t *inlined)
{
	/* Both numbers are one more; bit 0: not of JavaScript. */
	*position = raw & 1 ? UINT32_MAX : ((uint32_t)(raw >> 1) & ((1U << 30) - 1)) - 1;
	*inlined = (uint32_t)((uint64_t)raw >> 31 & 0xffff) - 1;
}

bool v8table_next_position(struct v8_positions *p)
{
	uint64_t step, code;
	int64_t raw;

	if (!read_unsigned(&p->at, p->end, &step) || !read_signed(&p->at, p->end, &raw))
		return false;
	/* The other bits say whether a statement begins. A sum that is too large is negative. */
	code = step >> p->bits;
	if (!p->bits)
		code = step & 1 ? ~to_signed(step) : to_signed(step);
	p->code = (int64_t)((uint64_t)p->code + code);
	p->raw = (int64_t)((uint64_t)p->raw + (uint64_t)raw);
	v8table_position(p->raw, &p->position, &p->inlined);
	return p->code >= -1 && p->code < INT32_MAX;
}

/* ---- V8's baseline code ---- */

#define WIDE 0

/* Then EXTRA_WIDE; the same for debuggers. */
#define DEBUG_WIDE 2

#define DEBUG_EXTRA_WIDE 3

uint32_t v8table_bytecode_size(const uint8_t *sizes, const uint8_t *code, uint32_t room)
{
	uint32_t scale = 1, prefix = 0;

	if (room > 1 && code[0] <= DEBUG_EXTRA_WIDE) {
		scale = code[0] == WIDE || code[0] == DEBUG_WIDE ? 2 : 4;
		prefix = 1;
	}
	if (room <= prefix || !sizes[code[prefix]])
		return 0;
	return prefix + (sizes[code[prefix]] & 15U) + (sizes[code[prefix]] >> 4U) * (scale - 1);
}

bool v8table_baseline(struct v8_baseline *b, const uint8_t *sizes, const uint8_t *map,
		      uint32_t map_size, const uint8_t *bytecodes, uint32_t size)
{
	uint64_t pc;

	*b = (struct v8_baseline){ .at = map, .end = map + map_size, .bytecodes = bytecodes };
	b->size = size;
	b->sizes = sizes;
	if (!read_unsigned(&b->at, b->end, &pc) || pc > INT32_MAX)
		return false;
	b->next_pc = (uint32_t)pc;
	return true;
}

bool v8table_next_bytecode(struct v8_baseline *b)
{
	uint64_t pc;
	uint32_t size;

	if (b->next_bytecode >= b->size || !read_unsigned(&b->at, b->end, &pc) ||
	    pc > INT32_MAX - b->next_pc)
		return false;
	size = v8table_bytecode_size(b->sizes, b->bytecodes + b->next_bytecode,
				     b->size - b->next_bytecode);
	if (!size)
		return false;
	b->pc = b->next_pc;
	b->next_pc += (uint32_t)pc;
	b->bytecode = b->next_bytecode;
	b->next_bytecode += size;
	return true;
}

bool v8table_fits(const struct v8_baseline *b)
{
	return b->at == b->end && b->next_bytecode == b->size;
}

/*
 * V8: functions of WebAssembly. Their frames do not say which they are, and they may have none: so
 * their code is found by its address, as V8 finds it: the manager of all code has a std::map of
 * modules, and each module one of its code. Names are in the bytes of the module.
 *
 * Runs on: a reader. Each object has to point back to the one it was found in.
 */

/* A node of a std::map of libstdc++, and its head in the map. */
#define NODE_LEFT  16
#define NODE_RIGHT 24
#define NODE_KEY   32
#define NODE_VALUE 40
#define NODE_SIZE  56
#define MAP_ROOT   8
#define MAP_SIZE   40 /* as far as the number of nodes */

/* Behind the map of the code of a module. */
#define NEW_CODE (MAP_SIZE)

/* Of new code of a module, the last ones are looked at. */
#define WASM_NEW_MAX 512U

/* No more is begun at a sample with this many calls. */
#define WASM_CALLS (LANG_CALLS_MAX / 2)

/* Parts of the bytes of a module: names, and the heads of sections. */
#define WASM_CHUNK 4096U
#define WASM_HEAD  32U

#define WASM_EXPORTS	     7
#define WASM_CUSTOM	     0
#define WASM_NAMES_FUNCTIONS 1

/* Bytes of a module, read in parts. */
struct wasm_bytes {
	struct lang_memory *m;
	uint64_t base;
	uint32_t at, end;
	uint32_t part; /* how much is read at once */
	uint32_t first, size;
	const uint8_t *bytes; /* of these; NULL: none yet */
	bool failed;	      /* behind the end, or no call is left */
};

static uint8_t wasm_byte(struct wasm_bytes *b)
{
	if (b->failed || b->at >= b->end) {
		b->failed = true;
		return 0;
	}
	if (!b->bytes || b->at - b->first >= b->size) {
		int piece;

		b->first = b->at;
		b->size = MIN(b->part, b->end - b->at);
		piece = b->m->calls < WASM_CALLS
				? lang_memory_want_once(b->m, b->base + b->first, b->size)
				: -1;
		b->bytes = piece >= 0 && lang_memory_fetch(b->m) ? lang_memory_piece(b->m, piece)
								 : NULL;
		if (!b->bytes) {
			b->failed = true;
			return 0;
		}
	}
	return b->bytes[b->at++ - b->first];
}

static uint32_t wasm_number(struct wasm_bytes *b)
{
	uint32_t value = 0, shift = 0, byte;

	do {
		byte = wasm_byte(b);
		value |= (byte & 127) << shift;
		shift += 7;
	} while (byte & 128 && shift < 32);
	return value;
}

static void wasm_skip(struct wasm_bytes *b, uint32_t size)
{
	if (size > b->end - b->at)
		b->failed = true;
	else
		b->at += size;
}

/* Read a text, of which the first @max bytes are kept, and return its size there. */
static uint16_t wasm_text(struct wasm_bytes *b, char *out, uint32_t max)
{
	uint32_t size = wasm_number(b), nr = MIN(size, max);

	for (uint32_t i = 0; i < nr; i++)
		out[i] = (char)wasm_byte(b);
	wasm_skip(b, size - nr);
	return (uint16_t)nr;
}

static struct wasm_bytes wasm_from(struct lang_memory *m, const struct lang_wasm_module *module,
				   uint32_t at, uint32_t end, uint32_t part)
{
	return (struct wasm_bytes){
		.m = m, .base = module->bytes, .at = at, .end = end, .part = part
	};
}

/* Find the names of functions in a custom section from @b on. */
static void find_names(struct wasm_bytes *b, uint32_t end, struct lang_wasm_module *module)
{
	char name[5];

	b->end = end;
	if (wasm_text(b, name, sizeof(name)) != 4 || memcmp(name, "name", 4) != 0)
		return;
	while (!b->failed && b->at < end) {
		uint8_t kind = wasm_byte(b);
		uint32_t size = wasm_number(b);

		if (b->failed || size > end - b->at)
			return;
		if (kind == WASM_NAMES_FUNCTIONS) {
			module->names = b->at;
			module->names_end = b->at + size;
			return;
		}
		wasm_skip(b, size);
	}
}

/* Find the sections with names, some at a sample. Return whether all were found. */
static bool find_sections(struct lang_memory *m, struct lang_wasm_module *module)
{
	while (module->at < module->size) {
		struct wasm_bytes b = wasm_from(m, module, module->at, module->size, WASM_HEAD);
		uint8_t kind = wasm_byte(&b);
		uint32_t size = wasm_number(&b), end = b.at + size;

		if (b.failed && m->calls >= WASM_CALLS)
			return false;
		if (b.failed || size > module->size - b.at)
			end = module->size;
		else if (kind == WASM_EXPORTS) {
			module->exports = b.at;
			module->exports_end = end;
		} else if (kind == WASM_CUSTOM) {
			find_names(&b, end, module);
			if (b.failed && m->calls >= WASM_CALLS)
				return false;
		}
		module->at = end;
	}
	return true;
}

/*
 * Find the name of a function in a section: with its index in front, or, of an export, its kind and
 * its index behind. Returns its size; 0: there is none, or *again: not yet.
 */
static uint16_t find_name(struct lang_memory *m, const struct lang_wasm_module *module,
			  struct lang_wasm_code *code, char *out, bool *again)
{
	uint32_t from = code->exported ? module->exports : module->names;
	uint32_t end = code->exported ? module->exports_end : module->names_end;
	struct wasm_bytes b = wasm_from(m, module, code->at ? code->at : from, end, WASM_CHUNK);

	*again = false;
	if (!code->at)
		code->left = wasm_number(&b);
	for (; code->left && !b.failed; code->left--) {
		uint32_t index = code->exported ? 0 : wasm_number(&b);
		uint16_t size = wasm_text(&b, out, SCRIPT_FUNCTIONS_TEXT_MAX);
		bool is_function = !code->exported || !wasm_byte(&b);

		if (code->exported)
			index = wasm_number(&b);
		if (b.failed)
			break;
		code->at = b.at;
		if (is_function && index == code->index)
			return size;
	}
	*again = b.failed && m->calls >= WASM_CALLS;
	return 0;
}

/* Give a function its name: that in the module, of its export, or as V8 calls one without. */
static void name_code(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		      struct lang_wasm_module *module, struct lang_wasm_code *code)
{
	uint64_t stamp = hash_u64(module->size ^ (uint64_t)code->index << 32);
	const struct code_key key = { process, module->address, hash_u64(module->bytes ^ stamp) };
	char name[SCRIPT_FUNCTIONS_TEXT_MAX + 1];
	struct code_text text = { .language = (uint8_t)p->kind,
				  .user = p->user,
				  .position = code->index + 1,
				  .name = name,
				  .file = "[wasm]",
				  .file_size = 6 };
	bool again;

	code->id = script_functions_find(r->codes, &key);
	if (code->id != CODE_NONE || !find_sections(&r->memory, module))
		return;
	text.name_size = find_name(&r->memory, module, code, name, &again);
	if (!again && !text.name_size && !code->exported) {
		code->exported = true;
		code->at = 0;
		text.name_size = find_name(&r->memory, module, code, name, &again);
	}
	if (again)
		return;
	if (!text.name_size)
		text.name_size =
			(uint16_t)snprintf(name, sizeof(name), "wasm-function[%u]", code->index);
	code->id = functions_put(r, &key, &text);
}

/* Read the modules of a manager again: a small tree is whole, of a larger one the first ones. */
static void read_modules(struct lang_memory *m, const struct lang_process *p, struct lang_wasm *w,
			 const uint64_t map[4])
{
	uint64_t nodes[LANG_WASM_MODULES] = { map[0] };
	uint32_t nr = map[0] ? 1 : 0;

	w->nr_modules = 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_wasm_module *module = &w->modules[i];
		const uint8_t *node = lang_memory_read(m, nodes[i], NODE_SIZE), *bytes;
		uint64_t at;

		if (!node)
			return;
		*module = (struct lang_wasm_module){ .start = bytes_u64(node + NODE_KEY),
						     .end = bytes_u64(node + NODE_VALUE),
						     .address = bytes_u64(node + NODE_VALUE + 8),
						     .at = 8 };
		for (uint32_t side = NODE_LEFT; side <= NODE_RIGHT; side += 8)
			if (bytes_u64(node + side) && nr < LANG_WASM_MODULES)
				nodes[nr++] = bytes_u64(node + side);
		bytes = lang_memory_read(m, module->address + (uint64_t)p->v8.number[V8_WASM_BYTES],
					 8);
		at = bytes ? bytes_u64(bytes) : 0;
		bytes = lang_memory_read(m, at, 16);
		if (!bytes)
			return;
		module->bytes = bytes_u64(bytes);
		module->size = (uint32_t)MIN(bytes_u64(bytes + 8), (uint64_t)INT32_MAX);
	}
	w->nr_modules = nr;
	memcpy(w->map, map, sizeof(w->map));
}

/* Parse the object that describes code of a module. False: it is another object. */
static bool parse_wasm(const uint8_t *object, const struct lang_process *p, uint64_t module,
		       struct lang_wasm_code *out)
{
	if (!object || bytes_u64(object) != module)
		return false;
	out->module = module;
	out->start = bytes_u64(object + 8);
	out->size = bytes_u32(object + p->v8.number[V8_WASM_SIZE]);
	out->index = bytes_u32(object + p->v8.number[V8_WASM_INDEX]);
	return true;
}

/* Find the object of the code at @pc among the new ones of a module, which are in no order. */
static bool find_new(struct lang_memory *m, const struct lang_process *p,
		     const struct lang_wasm_module *module, const uint8_t *vector, uint64_t pc,
		     struct lang_wasm_code *out)
{
	uint64_t begin = bytes_u64(vector), end = bytes_u64(vector + 8);
	uint32_t nr = end - begin <= UINT32_MAX ? (uint32_t)(end - begin) / 8 : 0;
	const uint8_t *list;
	int first;

	nr = MIN(nr, WASM_NEW_MAX);
	if (!nr || !lang_memory_is_pointer(end))
		return false;
	list = lang_memory_read(m, end - 8 * nr, 8 * nr);
	first = (int)m->nr;
	for (uint32_t i = 0; list && i < nr; i++)
		if (lang_memory_queue(m, bytes_u64(list + (size_t)8 * i), V8_WASM_CODE,
				      PIECE_ONCE) < 0)
			return false;
	if (!list || !lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *object = lang_memory_piece(m, first + (int)i);

		out->address = bytes_u64(list + (size_t)8 * i);
		if (parse_wasm(object, p, module->address, out) && pc - out->start < out->size)
			return true;
	}
	return false;
}

/* Find the object of the code at @pc in a module. */
static bool find_wasm(struct lang_memory *m, const struct lang_process *p,
		      const struct lang_wasm_module *module, uint64_t pc,
		      struct lang_wasm_code *out)
{
	uint64_t at = module->address + (uint64_t)p->v8.number[V8_WASM_CODES], next;
	const uint8_t *map = lang_memory_read(m, at, NEW_CODE + 16), *node;

	if (!map)
		return false;
	next = bytes_u64(map + MAP_ROOT);
	out->address = 0;
	while (next && m->calls < WASM_CALLS + LANG_CALLS_MAX / 4) {
		node = lang_memory_read(m, next, NODE_SIZE);
		if (!node)
			return false;
		if (bytes_u64(node + NODE_KEY) <= pc)
			out->address = bytes_u64(node + NODE_VALUE);
		next = bytes_u64(node +
				 (bytes_u64(node + NODE_KEY) <= pc ? NODE_RIGHT : NODE_LEFT));
	}
	node = out->address ? lang_memory_read(m, out->address, V8_WASM_CODE) : NULL;
	if (parse_wasm(node, p, module->address, out) && pc - out->start < out->size)
		return true;
	return find_new(m, p, module, map + NEW_CODE, pc, out);
}

static struct lang_wasm_module *module_at(struct lang_wasm *w, uint64_t pc)
{
	for (uint32_t i = 0; i < w->nr_modules; i++)
		if (pc - w->modules[i].start < w->modules[i].end - w->modules[i].start)
			return &w->modules[i];
	return NULL;
}

/* Return whether code has no frame at its beginning: then it may make one for calls alone. */
static bool is_frameless(struct lang_memory *m, uint64_t start)
{
	const uint8_t *code = lang_memory_read(m, start, 16);
	bool frame = !code;

	for (uint32_t i = 0; code && i + 4 <= 16; i++)
		frame |= !memcmp(code + i, "\x55\x48\x8b\xec", 4) ||
			 !memcmp(code + i, "\x55\x48\x89\xe5", 4);
	return !frame;
}

/* The code at @pc, which is found once; one more at a sample (*more). NULL: there is none. */
static struct lang_wasm_code *code_at(struct lang_memory *m, const struct lang_process *p,
				      struct lang_wasm *w, uint64_t pc, bool *more)
{
	const struct lang_wasm_module *module = module_at(w, pc);
	struct lang_wasm_code code = { .id = CODE_NONE };

	for (uint32_t i = 0; i < w->nr_codes; i++)
		if (pc - w->codes[i].start < w->codes[i].size)
			return &w->codes[i];
	if (!module || !*more)
		return NULL;
	*more = false;
	/* Its stubs have no index. */
	if (!find_wasm(m, p, module, pc, &code) || code.index == UINT32_MAX)
		return NULL;
	code.frameless = is_frameless(m, code.start);
	if (w->nr_codes < LANG_WASM_CODES)
		w->next = w->nr_codes++;
	else
		w->next = (w->next + 1) % LANG_WASM_CODES;
	w->codes[w->next] = code;
	return &w->codes[w->next];
}

/* Put code with a name into the work, if its object is still the same. */
static void put_wasm(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     struct lang_wasm *w, struct lang_wasm_code *code, int object)
{
	struct lang_memory *m = &r->memory;
	struct lang_v8_work *v = &r->work.v8;
	struct lang_wasm_module *module = module_at(w, code->start);
	struct lang_wasm_code now;

	if (!module || !parse_wasm(lang_memory_piece(m, object), p, module->address, &now) ||
	    now.start != code->start || now.size != code->size || now.index != code->index) {
		code->size = 0;
		return;
	}
	if (code->id == CODE_NONE && m->calls < WASM_CALLS)
		name_code(r, p, process, module, code);
	v->wasm[v->nr_wasm++] = (struct lang_frame){
		.code = code->id,
		.instr = LANG_NO_INSTR,
		.boundary = LANG_WASM,
		.compiled = { { .start = code->start,
				.size = code->size,
				.code = CODE_NONE,
				.inlined = code->frameless },
			      { .code = CODE_NONE } },
	};
}

/* The modules of a process; NULL: none that can be read. */
static struct lang_wasm *wasm_of(struct lang_reader *r, const struct lang_process *p,
				 uint32_t process)
{
	struct lang_wasm *w = &r->wasm[hash_u64(process) & (LANG_WASM_PROCESSES - 1)];
	struct lang_memory *m = &r->memory;
	const uint8_t *bytes;
	uint64_t map[4];

	if (!p->code_type || !p->v8.number[V8_WASM_MODULES])
		return NULL;
	if (w->process != process)
		*w = (struct lang_wasm){ .process = process };
	if (!w->manager) {
		bytes = lang_memory_read(m, p->code_type, 8);
		w->manager = bytes ? bytes_u64(bytes) : 0;
	}
	bytes = w->manager
			? lang_memory_read(m, w->manager + (uint64_t)p->v8.number[V8_WASM_MODULES],
					   MAP_SIZE)
			: NULL;
	if (!bytes)
		return NULL;
	memcpy(map, bytes + MAP_ROOT, sizeof(map));
	if (memcmp(map, w->map, sizeof(map)) != 0)
		read_modules(m, p, w, map);
	return w->nr_modules ? w : NULL;
}

void v8wasm_read(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s)
{
	struct lang_wasm *w = wasm_of(r, p, s->process);
	struct lang_wasm_code *found[LANG_WASM_FRAMES];
	int object[LANG_WASM_FRAMES];
	uint32_t nr = 0;
	bool more = true;

	r->work.v8.nr_wasm = 0;
	if (!w)
		return;
	for (uint64_t at = 0; at + 8 <= s->stack_size && nr < LANG_WASM_FRAMES; at += 8) {
		uint64_t pc = at ? bytes_u64(s->stack + at - 8) - 1 : s->pc;
		struct lang_wasm_code *code =
			module_at(w, pc) ? code_at(&r->memory, p, w, pc, &more) : NULL;
		uint32_t i = 0;

		while (code && i < nr && found[i] != code)
			i++;
		if (code && i == nr)
			found[nr++] = code;
	}
	for (uint32_t i = 0; i < nr; i++)
		object[i] = lang_memory_want(&r->memory, found[i]->address, V8_WASM_CODE);
	if (!lang_memory_fetch(&r->memory))
		return;
	for (uint32_t i = 0; i < nr; i++)
		put_wasm(r, p, s->process, w, found[i], object[i]);
}

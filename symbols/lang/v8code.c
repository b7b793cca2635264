// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8 (Node.js): from candidates to functions with name, script and table of
 * positions.
 *
 * Runs on: a reader thread. The type of each object is checked. A function is known again by its
 * address, its number in its script and the number of the script, which a new one never gets: so
 * texts are read once although memory is reused.
 */
#include <string.h>

#include "symbols/lang/chain.h"

/* Types of functions: plain ones, and constructors of built-in and other classes. */
#define FUNCTION_TYPES 20
#define MAPS_MAX       128
/* New functions per sample; the rest is read at the next sample. */
#define NEW_MAX 48
/* Of a ScopeInfo: bits of its flags, and words behind the locals. */
#define SCOPE_CLASS_VARIABLE (1U << 10)
#define SCOPE_FUNCTION	     (3U << 12)
#define SCOPE_INFERRED	     (1U << 14)
#define SCOPE_WORDS	     8
/* So many locals are in a hash table, and only their attributes in the ScopeInfo. */
#define SCOPE_INLINE_LOCALS 75U
/* Of a BytecodeArray. */
#define BYTECODES_POSITIONS 32
#define BYTECODES_HEAD	    40
/* Of a string's type. */
#define STRING_TYPES  128
#define STRING_SHAPE  7
#define STRING_LATIN1 8
#define STRING_CONS   1
#define STRING_THIN   5
#define STRING_DEPTH  2

/* Types of objects by their maps, as they are queued. */
struct types {
	uint32_t nr;
	uint64_t map[MAPS_MAX];
	int piece[MAPS_MAX];
};

static bool is_tagged(uint64_t value)
{
	return lang_memory_is_pointer(value - 1);
}

static bool is_smi(uint64_t value)
{
	return !(value << 32);
}

/* Queue the type of an object with this map. */
static void want_type(struct lang_memory *m, const struct lang_process *p, struct types *t,
		      uint64_t map)
{
	for (uint32_t i = t->nr; i-- > 0;)
		if (t->map[i] == map)
			return;
	if (t->nr == MAPS_MAX || !is_tagged(map))
		return;
	t->map[t->nr] = map;
	t->piece[t->nr++] = lang_memory_want(m, map - 1 + (uint64_t)p->v8.number[V8_MAP_TYPE], 2);
}

/* The type of an object with this map; -1: unknown. */
static int type_of(const struct lang_memory *m, const struct types *t, uint64_t map)
{
	for (uint32_t i = t->nr; i-- > 0;) {
		const uint8_t *bytes = t->map[i] == map ? lang_memory_piece(m, t->piece[i]) : NULL;

		if (bytes)
			return bytes[0] | bytes[1] << 8;
	}
	return -1;
}

/* The type of the object with its head in @piece. */
static int type_of_piece(const struct lang_memory *m, const struct types *t, int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	return head ? type_of(m, t, lang_memory_u64(head)) : -1;
}

static void want_type_of_piece(struct lang_memory *m, const struct lang_process *p, struct types *t,
			       int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	if (head)
		want_type(m, p, t, lang_memory_u64(head));
}

/* Queue the head of the object at @tagged. */
static void want_head(struct lang_memory *m, uint64_t tagged, uint32_t size, int *piece)
{
	*piece = is_tagged(tagged) ? lang_memory_want(m, tagged - 1, size) : -1;
}

/* Find the SharedFunctionInfo of each candidate. */
static void find_shared(struct lang_reader *r, const struct lang_process *p)
{
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *f = lang_memory_piece(&r->memory, w->v8.piece[i]);
		uint64_t shared = f ? lang_memory_u64(f + p->v8.number[V8_FUNCTION_SHARED]) : 0;

		if (!is_tagged(shared))
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
		w->v8.compiled[nr] = w->v8.compiled[i];
		w->v8.inlined[nr] = w->v8.inlined[i];
		to[i] = (uint16_t)nr++;
	}
	w->nr_codes = nr;
	for (uint32_t i = 0; i < w->nr; i++)
		w->code[i] = to[w->code[i]];
}

/* Keep the candidates with a function and a SharedFunctionInfo by their types. */
static void keep_functions(struct lang_reader *r, const struct lang_process *p,
			   const struct types *t)
{
	const struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		bool bytecodes = type_of_piece(m, t, w->v8.bytecodes_piece[i]) ==
				 p->v8.number[V8_TYPE_BYTECODES];

		if (!is_function(p, type_of_piece(m, t, w->v8.piece[i])) ||
		    type_of_piece(m, t, w->codes_of[w->code[i]].header) !=
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

/* Queue the scripts of all functions. */
static void want_scripts(struct lang_memory *m, const struct lang_process *p, struct lang_work *w)
{
	uint32_t size = (uint32_t)p->v8.number[V8_SCRIPT_ENDS] + 16;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const uint8_t *f = lang_memory_piece(m, w->codes_of[i].header);
		uint64_t script = f ? lang_memory_u64(f + p->v8.number[V8_SHARED_SCRIPT]) : 0;

		/* Mostly that of the function before. */
		if (i && w->functions[i - 1].file.addr == script)
			w->codes_of[i].hash = w->codes_of[i - 1].hash;
		else if (is_tagged(script))
			w->codes_of[i].hash = lang_memory_want(m, script - 1, size);
		w->functions[i].file.addr = script;
	}
}

/* Queue the compiled code of each function. */
static void want_compiled(struct lang_memory *m, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->v8.compiled[i] = w->v8.inlined[i] = -1;
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *f = lang_memory_piece(m, w->v8.piece[i]);
		int *piece = &w->v8.compiled[w->code[i]];

		if (*piece < 0 && f)
			want_head(m, lang_memory_u64(f + V8_FUNCTION_CODE), V8_CODE_SIZE, piece);
	}
}

static bool is_optimised(const uint8_t *code)
{
	return (lang_memory_u32(code + V8_CODE_FLAGS) & V8_CODE_KIND) == V8_CODE_OPTIMISED;
}

static void want_inlined(struct lang_memory *m, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const uint8_t *code = lang_memory_piece(m, w->v8.compiled[i]);

		if (code && is_optimised(code))
			want_head(m, lang_memory_u64(code + V8_CODE_DATA), V8_HEAD,
				  &w->v8.inlined[i]);
	}
}

/* Set where the compiled code of each function is, and whether others are inlined in it. */
static void set_compiled(struct lang_reader *r, const struct lang_process *p)
{
	const struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_compiled *c = &w->v8.compiled_of[i];
		const uint8_t *code = lang_memory_piece(m, w->v8.compiled[i]);
		const uint8_t *data = lang_memory_piece(m, w->v8.inlined[i]);

		*c = (struct lang_compiled){ .size = 0 };
		if (!code || p->untried)
			continue;
		if (p->version >> 24 == 10) {
			c->start = m->pieces[w->v8.compiled[i]].addr + V8_CODE_BEGINS_10;
			c->size = lang_memory_u32(code + V8_CODE_BYTES_10);
		} else {
			c->start = lang_memory_u64(code + V8_CODE_BEGIN);
			c->size = lang_memory_u32(code + V8_CODE_BYTES);
		}
		c->inlined = is_optimised(code) &&
			     !(data && !lang_memory_u64(data + V8_DATA_INLINED));
	}
}

/* Read functions and scripts of the frames, and check types; false: no call is left. */
static bool read_shared(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			struct types *types)
{
	uint32_t size = (uint32_t)p->v8.number[V8_SHARED_FLAGS] + 8;
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	find_shared(r, p);
	functions_number(r, process);
	for (uint32_t i = 0; i < w->nr; i++) {
		want_type_of_piece(m, p, types, w->v8.piece[i]);
		want_type_of_piece(m, p, types, w->v8.bytecodes_piece[i]);
	}
	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->codes_of[i].header = lang_memory_want(m, w->codes_of[i].address, size);
	want_compiled(m, w);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++)
		want_type_of_piece(m, p, types, w->codes_of[i].header);
	want_scripts(m, p, w);
	want_inlined(m, w);
	if (!lang_memory_fetch(m))
		return false;
	keep_functions(r, p, types);
	return true;
}

/* Which bytecodes a function has in a frame, for its table of positions; 0: none. */
static uint64_t bytecodes_of(const struct lang_work *w, uint32_t code)
{
	for (uint32_t i = 0; i < w->nr; i++)
		if (w->code[i] == code && w->v8.bytecodes[i])
			return w->v8.bytecodes[i];
	return 0;
}

/*
 * The identity of a function: its number in its script, and the script's; of a builtin: name and
 * number. With a table of positions it is another one.
 */
static uint64_t stamp_of(const struct lang_reader *r, const struct lang_process *p, uint32_t code)
{
	const struct lang_code_at *c = &r->work.codes_of[code];
	const int16_t *n = p->v8.number;
	const uint8_t *f = lang_memory_piece(&r->memory, c->header);
	const uint8_t *script = lang_memory_piece(&r->memory, c->hash);
	uint64_t s = bytecodes_of(&r->work, code) != 0;

	s = hash_u64(s ^ lang_memory_u64(f + n[V8_SHARED_FLAGS])); /* and the number behind it */
	if (lang_memory_u64(f + n[V8_SHARED_FLAGS]) >> 63 || !script) {
		s = hash_u64(s ^ lang_memory_u64(f + n[V8_SHARED_NAME]));
		return hash_u64(s ^ lang_memory_u64(f + n[V8_SHARED_DATA]));
	}
	s = hash_u64(s ^ lang_memory_u64(f + n[V8_SHARED_SCRIPT]));
	return hash_u64(s ^ lang_memory_u64(script + n[V8_SCRIPT_ENDS] + 8));
}

/* A new function: pieces of the objects that describe it. */
struct fresh {
	uint32_t code;
	int name, script_name;	     /* heads of the objects in the function and its script */
	int scope, strings[2];	     /* words behind the locals; heads: name, name by assignment */
	int bytecodes, positions;    /* heads */
	uint64_t words[SCOPE_WORDS]; /* of the scope */
};

/* Queue the objects that a new function and its script point to. */
static void want_objects(struct lang_reader *r, const struct lang_process *p, struct fresh *f)
{
	const struct lang_code_at *c = &r->work.codes_of[f->code];
	struct lang_memory *m = &r->memory;
	const uint8_t *shared = lang_memory_piece(m, c->header);
	const uint8_t *script = lang_memory_piece(m, c->hash);

	f->scope = f->strings[0] = f->strings[1] = f->positions = -1;
	want_head(m, lang_memory_u64(shared + p->v8.number[V8_SHARED_NAME]), V8_HEAD, &f->name);
	f->script_name = -1;
	if (script)
		want_head(m, lang_memory_u64(script + p->v8.number[V8_SCRIPT_NAME]), V8_HEAD,
			  &f->script_name);
	want_head(m, bytecodes_of(&r->work, f->code) + 1, BYTECODES_HEAD, &f->bytecodes);
}

/* Queue their types, the words of the scope that have the name, and the table of positions. */
static void want_words(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
		       struct types *t)
{
	const struct lang_code_at *c = &r->work.codes_of[f->code];
	struct lang_memory *m = &r->memory;
	const int16_t *n = p->v8.number;
	const uint8_t *head = lang_memory_piece(m, f->name);
	const uint8_t *bytecodes = lang_memory_piece(m, f->bytecodes);
	uint64_t locals, at;

	want_type_of_piece(m, p, t, f->name);
	want_type_of_piece(m, p, t, f->script_name);
	want_type_of_piece(m, p, t, c->hash);
	if (bytecodes)
		want_head(m, lang_memory_u64(bytecodes + BYTECODES_POSITIONS), V8_HEAD,
			  &f->positions);
	/* A name is a head as well: these words are used only if it is a scope. */
	if (!head)
		return;
	locals = lang_memory_u64(head + 8 * (1 + n[V8_SCOPE_LOCALS]));
	if (!is_smi(locals) || locals >> 32 > 4096)
		return;
	locals >>= 32;
	at = 1 + (uint64_t)n[V8_SCOPE_FIRST] + locals;
	at += locals < SCOPE_INLINE_LOCALS ? locals : 1;
	f->scope = lang_memory_want(
		m,
		lang_memory_u64(lang_memory_piece(m, c->header) + n[V8_SHARED_NAME]) - 1 + 8 * at,
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
	uint64_t flags = lang_memory_u64(head + 8) >> 32, at = 0, start;
	uint16_t token;

	if (!words)
		return false;
	if (flags & SCOPE_CLASS_VARIABLE)
		at++;
	if (flags & SCOPE_FUNCTION) {
		want_head(m, lang_memory_u64(words + 8 * at), V8_HEAD, &f->strings[0]);
		at += 2;
	}
	if (flags & SCOPE_INFERRED)
		want_head(m, lang_memory_u64(words + 8 * at++), V8_HEAD, &f->strings[1]);
	start = lang_memory_u64(words + 8 * at);
	if (!is_smi(start) || start >> 63)
		return true;
	memcpy(&token, shared + p->v8.number[V8_SHARED_TOKEN], sizeof(token));
	start >>= 32;
	function->first_line = (uint32_t)(token < start ? start - token : start);
	return true;
}

/*
 * Queue the strings of names: of the function itself, or of its scope. False: the scope cannot be
 * read.
 */
static bool want_names(struct lang_reader *r, const struct lang_process *p, struct fresh *f,
		       struct types *t)
{
	struct lang_memory *m = &r->memory;
	int type = type_of_piece(m, t, f->name);

	want_type_of_piece(m, p, t, f->positions);
	if (type >= 0 && type < STRING_TYPES)
		f->strings[0] = f->name;
	else if (type == p->v8.number[V8_TYPE_SCOPE])
		return parse_scope(r, p, f);
	return true;
}

static void want_string_types(struct lang_memory *m, const struct lang_process *p,
			      const struct fresh *f, struct types *t)
{
	want_type_of_piece(m, p, t, f->strings[0]);
	want_type_of_piece(m, p, t, f->strings[1]);
	want_type_of_piece(m, p, t, f->script_name);
}

static uint32_t string_length(const struct lang_memory *m, const struct lang_process *p, int piece)
{
	const uint8_t *head = lang_memory_piece(m, piece);

	return head ? lang_memory_u32(head + p->v8.number[V8_STRING_LENGTH]) : 0;
}

/*
 * Follow a string that stands for another one (*again: its head was queued), or is two strings of
 * which the second is empty.
 */
static void follow(struct lang_memory *m, const struct lang_process *p, const struct types *t,
		   int *piece, bool *again)
{
	int type = type_of_piece(m, t, *piece);
	const int16_t *n = p->v8.number;
	int at;

	if (type < 0 || type >= STRING_TYPES)
		return;
	if ((type & STRING_SHAPE) == STRING_THIN)
		at = n[V8_THIN_ACTUAL];
	else if ((type & STRING_SHAPE) == STRING_CONS)
		at = n[V8_CONS_FIRST];
	else
		return;
	want_head(m, lang_memory_u64(lang_memory_piece(m, *piece) + at), V8_HEAD, piece);
	*again = true;
}

/*
 * Set the text of a flat string, none where another object is in its place. False: it cannot be
 * read, or is no flat string.
 */
static bool set_text(const struct lang_memory *m, const struct lang_process *p,
		     const struct types *t, int piece, struct lang_text *text)
{
	int type = type_of_piece(m, t, piece);
	uint32_t length = MIN(string_length(m, p, piece), (uint32_t)CODES_TEXT_MAX);

	text->size = 0;
	if (piece < 0 || type >= STRING_TYPES)
		return true;
	if (type < 0 || type & STRING_SHAPE)
		return false;
	text->addr = m->pieces[piece].addr + (uint64_t)p->v8.number[V8_STRING_CHARS];
	text->encoding = type & STRING_LATIN1 ? LANG_LATIN1 : LANG_UTF16;
	text->size = type & STRING_LATIN1 ? length : 2 * length;
	return true;
}

/* Set the name: the function's, or else the one it was assigned to. */
static bool set_name(struct lang_reader *r, const struct lang_process *p, const struct fresh *f,
		     const struct types *t)
{
	struct lang_text *name = &r->work.functions[f->code].name;
	int type = type_of_piece(&r->memory, t, f->name);

	/* While the collector moves objects, they have no type. */
	if (f->name >= 0 && type < 0)
		return false;
	if (!set_text(&r->memory, p, t, f->strings[0], name))
		return false;
	if (!name->size && !set_text(&r->memory, p, t, f->strings[1], name))
		return false;
	if (!name->size)
		name->fixed = "(anonymous)";
	return true;
}

/* Set the table of positions, if there is one. */
static void set_table(struct lang_reader *r, const struct lang_process *p, const struct fresh *f,
		      const struct types *t)
{
	struct lang_function *function = &r->work.functions[f->code];
	struct lang_memory *m = &r->memory;
	const uint8_t *positions = lang_memory_piece(m, f->positions);
	uint64_t size;

	if (!positions || type_of_piece(m, t, f->positions) != p->v8.number[V8_TYPE_BYTES])
		return;
	size = lang_memory_u64(positions + 8);
	if (!is_smi(size) || size >> 32 > CODES_TABLE_MAX)
		return;
	function->table_size = (uint32_t)(size >> 32);
	function->table =
		lang_memory_want(m, m->pieces[f->positions].addr + 16, function->table_size);
}

/* Set name, file and table of a new function; false: they cannot be read now. */
static bool set_function(struct lang_reader *r, const struct lang_process *p, const struct fresh *f,
			 const struct types *t)
{
	struct lang_function *function = &r->work.functions[f->code];
	int script = r->work.codes_of[f->code].hash;
	int type = type_of_piece(&r->memory, t, script);

	function->positions = true;
	if (!set_name(r, p, f, t) || (script >= 0 && type < 0))
		return false;
	if (type != p->v8.number[V8_TYPE_SCRIPT])
		function->file.fixed = "[internal]";
	else if (!set_text(&r->memory, p, t, f->script_name, &function->file))
		return false;
	else if (!function->file.size)
		function->file.fixed = "[eval]";
	set_table(r, p, f, t);
	return true;
}

/* Read names, files and tables of new functions, step by step. */
static bool read_fresh(struct lang_reader *r, const struct lang_process *p, struct fresh *fresh,
		       uint32_t nr, struct types *t)
{
	struct lang_memory *m = &r->memory;
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
		for (uint32_t i = 0; i < nr && depth < STRING_DEPTH; i++) {
			follow(m, p, t, &fresh[i].strings[0], &again);
			follow(m, p, t, &fresh[i].strings[1], &again);
			follow(m, p, t, &fresh[i].script_name, &again);
		}
	}
	for (uint32_t i = 0; i < nr; i++)
		if (!set_function(r, p, &fresh[i], t))
			return false;
	return true;
}

enum lang_none v8code_find(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct types types = { 0 };
	struct lang_work *w = &r->work;
	struct fresh fresh[NEW_MAX];
	uint32_t nr = 0;

	if (!read_shared(r, p, process, &types))
		return LANG_NONE_BAD_CHAIN;
	if (!w->nr)
		return LANG_NONE_NO_FRAMES;
	set_compiled(r, p);
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		w->functions[i] = (struct lang_function){ .table = -1 };
		w->codes_of[i].stamp = stamp_of(r, p, i);
	}
	if (functions_find(r, process)) {
		for (uint32_t i = 0; i < w->nr_codes && nr < NEW_MAX; i++)
			if (w->codes_of[i].id == CODE_NONE)
				fresh[nr++].code = i;
		if (!read_fresh(r, p, fresh, nr, &types))
			return LANG_NONE_BAD_CHAIN;
	}
	return functions_add(r, p, process);
}

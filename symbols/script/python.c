// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPython: the code objects of a chain, their names and line tables.
 *
 * Runs on: a reader. The header of each is read at each sample: freed
 * memory may be another function by now. Strings are read once.
 */
#include <string.h>

#include "symbols/script/script.h"

#define TYPE_AT	 8  /* of each object */
#define SIZE_AT	 16 /* of a string or of bytes */
#define HASH_AT	 24 /* of a string */
#define STATE_AT 32 /* of a string */
/* Of the chunks of a stack of frames: their alignment, and the bytes before the first frame. */
#define CHUNK_ALIGN 4096U
#define CHUNK_HEAD  32U
#define STR_HEAD    40
#define BYTES_HEAD  32
/* New functions per sample; the rest is read at the next sample. */
#define NEW_MAX 64
/* Not a hash of a function, which is odd. */
#define FUNCTIONS_DIFFER 2

/* One string, from its head to its bytes. */
struct string {
	uint64_t addr;
	int head, bytes; /* pieces */
	uint32_t length, unit;
};

/* A function that is met for the first time. */
struct fresh {
	struct lang_code_at *code;
	struct string name, file, table;
	uint32_t first_line;
};

/* Return the size of a header with all of its members: a process may choose their offsets. */
static uint32_t header_size(const struct py_layout *l)
{
	const uint8_t members[] = { TYPE_AT,	      l->code_first_line, l->code_filename,
				    l->code_name,     l->code_qualname,	  l->code_table,
				    l->code_consts,   l->code_version,	  l->code_nlocals,
				    l->code_stacksize };
	uint32_t last = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		last = MAX(last, members[i]);
	return last + 8U;
}

static uint64_t name_of(const struct py_layout *l, const uint8_t *header)
{
	return bytes_u64(header + (l->code_qualname ? l->code_qualname : l->code_name));
}

static uint32_t *replaces_of(struct lang_reader *r, uint32_t process)
{
	return &r->replaces[hash_u64(process) & (LANG_REPLACES - 1)];
}

static bool is_same(const struct lang_known *k, uint32_t process, const struct lang_code_at *c)
{
	return k->process == process && k->address == c->address;
}

/* Return whether it is an old function of a file: its header is not read at each sample. */
static bool is_old(const struct lang_known *k, uint64_t now_ns)
{
	return now_ns > k->born_ns + LANG_YOUNG_NS && !k->made;
}

/* Return whether the code at @c is usable without its header, now or (@soon) for as long again. */
static bool is_fresh(struct lang_reader *r, uint32_t process, const struct lang_code_at *c,
		     bool soon)
{
	const struct lang_known *k = c->known;
	uint64_t now_ns = r->work.time_ns, limit_ns;

	if (!is_same(k, process, c) || !is_old(k, now_ns) || *replaces_of(r, process) == process)
		return false;
	limit_ns = MIN((now_ns - k->born_ns) / LANG_CHECK_SHARE, LANG_CHECK_MAX_NS);
	if (c->function & 1 && c->function == k->function)
		limit_ns *= LANG_SAME_FACTOR;
	return now_ns < k->checked_ns + (soon ? limit_ns / 2 : limit_ns);
}

static void number_codes(struct lang_reader *r, uint32_t process)
{
	struct lang_work *w = &r->work;
	bool any_due = false;

	functions_number(r, process);
	for (uint32_t i = 0; i < w->nr; i++) {
		struct lang_code_at *c = &w->codes_of[w->code[i]];

		if (!c->function)
			c->function = w->function[i];
		else if (c->function != w->function[i])
			c->function = FUNCTIONS_DIFFER;
	}
	/* With one that is due read all that will be due soon: the call costs most. */
	for (uint32_t i = 0; i < w->nr_codes && !any_due; i++)
		any_due = !is_fresh(r, process, &w->codes_of[i], false);
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->codes_of[i];

		c->fresh = is_fresh(r, process, c, any_due);
		c->words = c->known->words;
	}
}

/* Queue the header, and the hash of the name of known code. */
static void want_header(struct lang_reader *r, uint32_t size, uint32_t process,
			struct lang_code_at *c)
{
	bool known = is_same(c->known, process, c);
	/* That of old code is not needed at the next samples. */
	int (*want)(struct lang_memory * m, uint64_t addr, uint32_t size) =
		known && is_old(c->known, r->work.time_ns) && *replaces_of(r, process) != process
			? lang_memory_want_once
			: lang_memory_want;

	c->header = want(&r->memory, c->address, size);
	if (!known)
		return;
	c->name = c->known->name;
	c->hash = want(&r->memory, c->name + SIZE_AT, 16);
}

/* Read the headers, and the hashes of the names of known code. */
static bool read_headers(struct lang_reader *r, const struct py_layout *l, uint32_t process)
{
	struct lang_work *w = &r->work;
	uint32_t size = header_size(l);

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->codes_of[i];

		c->header = -1;
		if (!c->fresh)
			want_header(r, size, process, c);
	}
	if (!lang_memory_fetch(&r->memory))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->codes_of[i];
		const uint8_t *header = lang_memory_piece(&r->memory, c->header);

		if (c->fresh)
			continue;
		if (!header)
			return false;
		if (l->code_stacksize)
			c->words = bytes_u32(header + l->code_nlocals) +
				   bytes_u32(header + l->code_stacksize);
		if (c->hash >= 0 && c->name == name_of(l, header))
			continue;
		c->name = name_of(l, header);
		c->hash = lang_memory_is_pointer(c->name)
				  ? lang_memory_want(&r->memory, c->name + SIZE_AT, 16)
				  : -1;
	}
	return lang_memory_fetch(&r->memory);
}

/* Compute the stamp of a code object; false: it is none. */
static bool stamp(const struct lang_memory *m, const struct lang_process *p, struct lang_code_at *c)
{
	const uint8_t *header = lang_memory_piece(m, c->header),
		      *hash = lang_memory_piece(m, c->hash);
	const struct py_layout *l = &p->py;
	uint64_t s;

	if (!header || !hash || bytes_u64(header + TYPE_AT) != p->code_type)
		return false;
	s = hash_u64(bytes_u64(hash) ^ hash_u64(bytes_u64(hash + HASH_AT - SIZE_AT)));
	s = hash_u64(s ^ bytes_u64(header + l->code_consts));
	s = hash_u64(s ^ bytes_u64(header + l->code_filename));
	s = hash_u64(s ^ bytes_u64(header + l->code_table));
	s = hash_u64(s ^ c->name);
	s = hash_u64(s ^ bytes_u32(header + l->code_first_line));
	if (l->code_version)
		s = hash_u64(s ^ bytes_u32(header + l->code_version));
	c->stamp = s;
	return true;
}

/* The end of frame @i on the stack of frames. */
static uint64_t frame_end(const struct lang_reader *r, const struct py_layout *l, uint32_t i)
{
	const struct lang_work *w = &r->work;

	return w->base[i] + l->frame_size + 8ULL * w->codes_of[w->code[i]].words;
}

/* Return whether this is the first frame in a chunk of the stack of frames. */
static bool begins_chunk(uint64_t base)
{
	return (base & (CHUNK_ALIGN - 1)) <= CHUNK_HEAD;
}

/*
 * Frames of a thread follow each other without a gap. A chain with a gap goes through frames that
 * have ended: the thread is in the middle of a call.
 */
static void check_stack(struct lang_reader *r, const struct py_layout *l)
{
	struct lang_work *w = &r->work;
	uint64_t above = 0;

	w->broken = false;
	w->settled = l->one_frame_each;
	if (!l->ts_top)
		return;
	w->settled = w->base[0] && frame_end(r, l, 0) == w->top;
	for (uint32_t i = 0; i < w->nr; i++) {
		if (!w->base[i])
			continue;
		if (above && !begins_chunk(above) && frame_end(r, l, i) != above)
			w->broken = true;
		above = w->base[i];
	}
}

/* From a pointer or an index to bytes. */
static void set_instructions(struct lang_work *w, const struct py_layout *l)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		if (l->instr_unit)
			w->instr[i] *= l->instr_unit;
		else
			w->instr[i] -= w->address[i] + l->code_instructions;
	}
}

static void want_head(struct lang_memory *m, struct string *s, uint64_t addr, uint32_t size)
{
	*s = (struct string){ .addr = addr, .bytes = -1 };
	s->head = lang_memory_is_pointer(addr) ? lang_memory_want_once(m, addr, size) : -1;
}

/* Queue the bytes of a string or bytes object after its head. */
static void want_bytes(struct lang_memory *m, const struct py_layout *l, struct string *s,
		       bool text)
{
	const uint8_t *head = lang_memory_piece(m, s->head);
	uint64_t length = head ? bytes_u64(head + SIZE_AT) : 0;
	uint32_t state, kind, at = BYTES_HEAD;

	s->unit = 1;
	if (!head || !length)
		return;
	if (!text) {
		if (length > CODES_TABLE_MAX)
			return;
	} else {
		state = bytes_u32(head + STATE_AT);
		kind = state >> 2 & 7;
		if (!(state & 1U << 5) || (kind != 1 && kind != 2 && kind != 4))
			return;
		s->unit = kind;
		at = state & 1U << 6 ? l->str_ascii : l->str_other;
		length = MIN(length, (uint64_t)CODES_TEXT_MAX);
	}
	s->length = (uint32_t)length;
	s->bytes = lang_memory_want_once(m, s->addr + at, s->length * s->unit);
}

/* Write code point @c; returns its bytes, 0: it does not fit. */
static uint32_t put_utf8(char *out, uint32_t max, uint32_t c)
{
	uint32_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (size > max)
		return 0;
	if (size == 1) {
		out[0] = (char)c;
		return 1;
	}
	for (uint32_t i = size - 1; i; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(0xf00U >> size | c);
	return size;
}

/*
 * The text of a string as UTF-8, cut at CODES_TEXT_MAX; @empty for an empty one. False: it was not
 * read.
 */
static bool to_text(const struct lang_memory *m, const struct string *s, const char *empty,
		    char *out, uint16_t *size)
{
	const uint8_t *bytes = lang_memory_piece(m, s->bytes);
	const uint8_t *head = lang_memory_piece(m, s->head);
	uint32_t used = 0;

	if (head && !bytes_u64(head + SIZE_AT)) {
		*size = (uint16_t)strlen(empty);
		memcpy(out, empty, *size);
		return true;
	}
	for (uint32_t i = 0; bytes && i < s->length; i++) {
		uint32_t c = 0, n;

		memcpy(&c, bytes + (size_t)i * s->unit, s->unit);
		n = put_utf8(out + used, CODES_TEXT_MAX - used, MIN(c, 0x10ffffU));
		if (!n)
			break;
		used += n;
	}
	*size = (uint16_t)used;
	return bytes && used;
}

static void add_fresh(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		      const struct fresh *f)
{
	const struct lang_memory *m = &r->memory;
	const struct code_key key = { process, f->code->address, f->code->stamp };
	char name[CODES_TEXT_MAX], file[CODES_TEXT_MAX];
	struct code_text text = {
		.language = LANG_PYTHON,
		.version = p->py.minor,
		.user = p->user,
		.first_line = f->first_line,
		.name = name,
		.file = file,
		.table = lang_memory_piece(m, f->table.bytes),
	};

	/* As of compile(source, "", "eval"). */
	if (!to_text(m, &f->name, "(anonymous)", name, &text.name_size) ||
	    !to_text(m, &f->file, "<unknown>", file, &text.file_size))
		return;
	text.table_size = text.table ? f->table.length : 0;
	f->code->id = functions_put(r, &key, &text);
}

/* Read the strings of functions that are new, and put them into the table. */
static bool read_fresh(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		       struct fresh *fresh, uint32_t nr)
{
	struct lang_memory *m = &r->memory;
	const struct py_layout *l = &p->py;

	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *header = lang_memory_piece(m, fresh[i].code->header);

		want_head(m, &fresh[i].name, fresh[i].code->name, STR_HEAD);
		want_head(m, &fresh[i].file, bytes_u64(header + l->code_filename), STR_HEAD);
		want_head(m, &fresh[i].table, bytes_u64(header + l->code_table), BYTES_HEAD);
		fresh[i].first_line = bytes_u32(header + l->code_first_line);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		want_bytes(m, l, &fresh[i].name, true);
		want_bytes(m, l, &fresh[i].file, true);
		want_bytes(m, l, &fresh[i].table, false);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		add_fresh(r, p, process, &fresh[i]);
	return true;
}

/* The id of the function, if it was met before. */
static bool is_known(struct lang_reader *r, uint32_t process, struct lang_code_at *c)
{
	const struct code_key key = { process, c->address, c->stamp };
	const struct lang_known *k = c->known;
	bool same = is_same(k, process, c);

	if (same && (c->fresh || k->stamp == c->stamp))
		c->id = k->id;
	else
		c->id = codes_find(r->codes, &key);
	/* Code that was used without its header gave way: that is not done again in this process.
	 */
	if (same && !c->fresh && k->stamp != c->stamp && is_old(k, k->checked_ns))
		*replaces_of(r, process) = process;
	return c->id != CODE_NONE;
}

/* Return whether the code is of no file: made by exec() or eval(), with a name as "<string>". */
static bool is_made(const struct codes *codes, uint32_t id)
{
	static const char frozen[] = "<frozen ";
	const struct code_text *text = codes_at(codes, id);

	return text && text->file_size && text->file[0] == '<' &&
	       (text->file_size < sizeof(frozen) || memcmp(text->file, frozen, sizeof(frozen) - 1));
}

static void keep_known(const struct codes *codes, const struct lang_code_at *c, uint32_t process,
		       uint64_t now_ns)
{
	struct lang_known *k = c->known;

	if (c->fresh)
		return;
	if (k->process != process || k->address != c->address || k->stamp != c->stamp) {
		k->born_ns = now_ns;
		k->made = is_made(codes, c->id);
	}
	k->checked_ns = now_ns;
	k->function = c->function;
	k->words = c->words;
	k->address = c->address;
	k->stamp = c->stamp;
	k->name = c->name;
	k->process = process;
	k->id = c->id;
}

enum lang_none pycode_find(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_work *w = &r->work;
	struct fresh fresh[NEW_MAX];
	uint32_t nr = 0;

	number_codes(r, process);
	if (!read_headers(r, &p->py, process))
		return LANG_NONE_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		if (!w->codes_of[i].fresh && !stamp(&r->memory, p, &w->codes_of[i]))
			return LANG_NONE_BAD_CHAIN;
		if (!is_known(r, process, &w->codes_of[i]) && nr < NEW_MAX)
			fresh[nr++].code = &w->codes_of[i];
	}
	check_stack(r, &p->py);
	set_instructions(w, &p->py);
	if (nr && !read_fresh(r, p, process, fresh, nr))
		return LANG_NONE_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->codes_of[i];

		if (c->id == CODE_NONE)
			return LANG_NONE_NO_ROOM;
		keep_known(r->codes, c, process, w->time_ns);
	}
	return LANG_NONE_NR;
}

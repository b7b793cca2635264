// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the code of a chain to functions in the table of codes.
 *
 * Runs on: a reader. The decoder of a language reads the stamps at each
 * sample, since freed memory may be another function by now; texts are read once.
 */
#include <assert.h>
#include <string.h>

#include "symbols/script/script.h"

/* New functions per sample; the rest is read at the next sample. */
#define NEW_MAX 96

/* Return the slot of the code at @address: empty if it is new. */
static uint16_t *slot_of(struct lang_work *w, uint64_t address)
{
	uint32_t at = (uint32_t)hash_u64(address) & (ARRAY_SIZE(w->slots) - 1);

	while (w->slots[at] && w->codes_of[w->slots[at] - 1].address != address)
		at = (at + 1) & (ARRAY_SIZE(w->slots) - 1);
	return &w->slots[at];
}

uint32_t functions_code(struct lang_reader *r, uint32_t process, uint64_t address)
{
	struct lang_work *w = &r->work;
	uint16_t *slot = slot_of(w, address);
	struct lang_code_at *c;

	if (*slot)
		return *slot - 1;
	assert(w->nr_codes < LANG_FRAMES_MAX);
	c = &w->codes_of[w->nr_codes++];
	*c = (struct lang_code_at){ .address = address, .id = CODE_NONE, .hash = -1 };
	c->known = &r->known[hash_u64(address ^ (uint64_t)process << 48) & (LANG_KNOWN - 1)];
	w->functions[w->nr_codes - 1] = (struct lang_function){ .table = -1 };
	*slot = (uint16_t)w->nr_codes;
	return w->nr_codes - 1;
}

void functions_number(struct lang_reader *r, uint32_t process)
{
	struct lang_work *w = &r->work;

	memset(w->slots, 0, sizeof(w->slots));
	for (uint32_t i = 0; i < w->nr; i++)
		w->code[i] = (uint16_t)functions_code(r, process, w->address[i]);
}

void functions_index(struct lang_work *w)
{
	memset(w->slots, 0, sizeof(w->slots));
	for (uint32_t i = 0; i < w->nr_codes; i++)
		*slot_of(w, w->codes_of[i].address) = (uint16_t)(i + 1);
}

/* Set the id of a function that was met before. */
static bool find(struct lang_reader *r, uint32_t process, struct lang_code_at *c)
{
	const struct code_key key = { process, c->address, c->stamp };
	const struct lang_known *k = c->known;

	if (k->process == process && k->address == c->address && k->stamp == c->stamp)
		c->id = k->id;
	else
		c->id = codes_find(r->codes, &key);
	return c->id != CODE_NONE;
}

uint32_t functions_find(struct lang_reader *r, uint32_t process)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->work.nr_codes; i++)
		nr += !find(r, process, &r->work.codes_of[i]);
	return nr;
}

/* Queue the bytes of a text; a longer one is cut. */
static void want_text(struct lang_memory *m, struct lang_text *t)
{
	t->size = MIN(t->size, CODES_TEXT_MAX);
	t->piece = t->size ? lang_memory_want(m, t->addr, t->size) : -1;
}

/* Append one character as UTF-8; 0: it does not fit. */
static uint16_t put_utf8(char *out, uint16_t room, uint32_t c)
{
	uint16_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (size > room)
		return 0;
	for (int i = size - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[size] | c);
	return size;
}

/* Append the text @t of Latin-1 or UTF-16; surrogates are paired, one alone is replaced. */
static uint16_t add_encoded(const uint8_t *bytes, const struct lang_text *t, char *out,
			    uint16_t used)
{
	uint32_t unit = t->encoding == LANG_UTF16 ? 2 : 1;

	for (uint32_t i = 0; i + unit <= t->size; i += unit) {
		uint32_t c = bytes[i], low;
		uint16_t size;

		if (unit == 2)
			c |= (uint32_t)bytes[i + 1] << 8;
		if (c >= 0xd800 && c < 0xe000) {
			low = i + 4 <= t->size ? bytes[i + 2] | (uint32_t)bytes[i + 3] << 8 : 0;
			if (c < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i += 2;
			} else {
				c = 0xfffd;
			}
		}
		size = put_utf8(out + used, (uint16_t)(CODES_TEXT_MAX - used), c);
		if (!size)
			break;
		used += size;
	}
	return used;
}

/* Text @i of three of each function. */
static struct lang_text *text_of(struct lang_work *w, uint32_t i)
{
	struct lang_function *f = &w->functions[i / 3];

	return i % 3 == 0 ? &f->scope : i % 3 == 1 ? &f->name : &f->file;
}

uint16_t functions_put_text(const struct lang_memory *m, const struct lang_text *t, char *out,
			    uint16_t used)
{
	const uint8_t *bytes = t->fixed ? (const uint8_t *)t->fixed
					: lang_memory_piece(m, t->piece);
	uint16_t size;

	if (!bytes)
		return used;
	if (t->encoding != LANG_BYTES && !t->fixed)
		return add_encoded(bytes, t, out, used);
	size = (uint16_t)MIN(t->fixed ? (uint32_t)strlen(t->fixed) : t->size,
			     (uint32_t)CODES_TEXT_MAX - used);
	memcpy(out + used, bytes, size);
	return used + size;
}

uint32_t functions_put(struct lang_reader *r, const struct code_key *key,
		       const struct code_text *text)
{
	uint32_t id = codes_add(r->codes, key, text);

	return id == CODE_NONE ? CODE_UNNAMED : id;
}

/* Put a function into the table. */
static void add_function(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			 struct lang_code_at *c, const struct lang_function *f)
{
	static const struct lang_text colons = { .fixed = "::" };
	const struct lang_memory *m = &r->memory;
	const struct code_key key = { process, c->address, c->stamp };
	char name[CODES_TEXT_MAX], file[CODES_TEXT_MAX];
	struct code_text text = {
		.language = (uint8_t)p->kind,
		.user = p->user,
		.position = f->position,
		.first_line = f->first_line,
		.name = name,
		.file = file,
		.table = f->lines ? f->lines : lang_memory_piece(m, f->table),
		.table_size = f->lines ? f->lines_size : f->table_size,
	};
	uint16_t scope = functions_put_text(m, &f->scope, name, 0);

	if (scope)
		scope = functions_put_text(m, &colons, name, scope);
	if (!text.table)
		text.table_size = 0;
	text.name_size = functions_put_text(m, &f->name, name, scope);
	text.file_size = functions_put_text(m, &f->file, file, 0);
	if (text.name_size > scope && text.file_size)
		c->id = functions_put(r, &key, &text);
}

/* Add bytes of texts to the stamps: the memory of one that was freed may have another. */
static bool stamp_contents(struct lang_reader *r)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < 3 * w->nr_codes; i++)
		if (text_of(w, i)->content)
			want_text(m, text_of(w, i));
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < 3 * w->nr_codes; i++) {
		const struct lang_text *t = text_of(w, i);
		const uint8_t *bytes = t->content ? lang_memory_piece(m, t->piece) : NULL;
		uint64_t s = w->codes_of[i / 3].stamp;

		for (uint32_t at = 0; bytes && at < t->size; at++)
			s = (s ^ bytes[at]) * 0x100000001b3ULL;
		w->codes_of[i / 3].stamp = s;
	}
	return true;
}

/*
 * Queue the parts of a table of lines. False: no room for them at this sample; the first new
 * function has none then.
 */
static bool want_parts(struct lang_reader *r, struct lang_function *f, uint32_t *used, bool first)
{
	bool room = f->lines_size <= sizeof(r->work.ruby_lines) - *used;

	for (uint32_t i = 0; i < ARRAY_SIZE(f->parts) && f->parts[i].size && room; i++) {
		struct lang_text *t = &f->parts[i];

		t->piece = lang_memory_want_once(&r->memory, t->addr, t->size);
		room = t->piece >= 0 || !lang_memory_is_pointer(t->addr);
	}
	if (room)
		*used += f->lines_size;
	else
		f->parts[0].size = 0;
	return room || first;
}

enum lang_none functions_add(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_work *w = &r->work;
	uint32_t fresh[NEW_MAX], nr = 0, used = 0;

	if (!stamp_contents(r))
		return LANG_NONE_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];

		if (find(r, process, &w->codes_of[i]) || nr == NEW_MAX ||
		    !want_parts(r, f, &used, !nr))
			continue;
		fresh[nr++] = i;
		want_text(&r->memory, &f->scope);
		want_text(&r->memory, &f->name);
		want_text(&r->memory, &f->file);
	}
	if (nr && !lang_memory_fetch(&r->memory))
		return LANG_NONE_BAD_CHAIN;
	used = 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_function *f = &w->functions[fresh[i]];

		if (f->parts[0].size)
			ruby_set_lines(&r->memory, f, w->ruby_lines + used);
		used += f->parts[0].size ? f->lines_size : 0;
	}
	for (uint32_t i = 0; i < nr; i++)
		add_function(r, p, process, &w->codes_of[fresh[i]], &w->functions[fresh[i]]);
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->codes_of[i];

		if (c->id == CODE_NONE)
			return LANG_NONE_NO_ROOM;
		*c->known = (struct lang_known){
			.address = c->address, .stamp = c->stamp, .process = process, .id = c->id
		};
	}
	return LANG_NONE_NR;
}

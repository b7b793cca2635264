// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions of scripts: name, file, line table, in a table with one id for equal ones; ends of
 * lines; code that JVMs have had, for recordings.
 *
 * Runs on: a reader. The decoder of a language reads the stamps at each sample, since freed memory
 * may be another function by now; texts are read once.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"

/* New functions per sample; the rest is read at the next sample. */
#define NEW_MAX 96

/* Return the slot of the code at @address: empty if it is new. */
static uint16_t *slot_of(struct lang_work *w, uint64_t address)
{
	uint32_t at = (uint32_t)hash_u64(address) & (ARRAY_SIZE(w->slots) - 1);

	while (w->slots[at] && w->script_functions_of[w->slots[at] - 1].address != address)
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
	c = &w->script_functions_of[w->nr_codes++];
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
		*slot_of(w, w->script_functions_of[i].address) = (uint16_t)(i + 1);
}

/* Set the id of a function that was met before. */
static bool find(struct lang_reader *r, uint32_t process, struct lang_code_at *c)
{
	const struct code_key key = { process, c->address, c->stamp };
	const struct lang_known *k = c->known;

	if (k->process == process && k->address == c->address && k->stamp == c->stamp)
		c->id = k->id;
	else
		c->id = script_functions_find(r->codes, &key);
	return c->id != CODE_NONE;
}

uint32_t functions_find(struct lang_reader *r, uint32_t process)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->work.nr_codes; i++)
		nr += !find(r, process, &r->work.script_functions_of[i]);
	return nr;
}

/* Queue the bytes of a text; a longer one is cut. */
static void want_text(struct lang_memory *m, struct lang_text *t)
{
	t->size = MIN(t->size, SCRIPT_FUNCTIONS_TEXT_MAX);
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
		size = put_utf8(out + used, (uint16_t)(SCRIPT_FUNCTIONS_TEXT_MAX - used), c);
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

	assert(i / 3 < LANG_FRAMES_MAX);
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
			     (uint32_t)SCRIPT_FUNCTIONS_TEXT_MAX - used);
	memcpy(out + used, bytes, size);
	return used + size;
}

uint32_t functions_put(struct lang_reader *r, const struct code_key *key,
		       const struct code_text *text)
{
	uint32_t id = script_functions_add(r->codes, key, text);

	return id == CODE_NONE ? CODE_UNNAMED : id;
}

/* Put a function into the table. */
static void add_function(struct lang_reader *r, const struct lang_process *p, uint32_t process,
			 struct lang_code_at *c, const struct lang_function *f)
{
	static const struct lang_text colons = { .fixed = "::" };
	const struct lang_memory *m = &r->memory;
	const struct code_key key = { process, c->address, c->stamp };
	char name[SCRIPT_FUNCTIONS_TEXT_MAX], file[SCRIPT_FUNCTIONS_TEXT_MAX];
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
		uint64_t s = w->script_functions_of[i / 3].stamp;

		for (uint32_t at = 0; bytes && at < t->size; at++)
			s = (s ^ bytes[at]) * 0x100000001b3ULL;
		w->script_functions_of[i / 3].stamp = s;
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

#define PLACE_NAME_MAX 96U

/* Name a function that has no name, as Lua does: by its file and line. */
static void set_place_name(const struct lang_memory *m, struct lang_work *k, uint32_t i)
{
	struct lang_function *f = &k->functions[i];
	const uint8_t *file = f->file.size ? lang_memory_piece(m, f->file.piece) : NULL;
	const uint8_t *slash = file ? memrchr(file, '/', f->file.size) : NULL;
	uint32_t skip = slash ? (uint32_t)(slash - file) + 1 : 0;
	char *out = (char *)k->ruby_lines + (size_t)PLACE_NAME_MAX * i;

	assert(i < k->nr);
	_Static_assert(sizeof(k->ruby_lines) >= PLACE_NAME_MAX * LANG_FRAMES_MAX, "room");
	snprintf(out, PLACE_NAME_MAX, "<%.*s:%u>", (int)(file ? MIN(f->file.size - skip, 64U) : 1),
		 file ? (const char *)file + skip : "?", f->first_line);
	f->name.fixed = out;
}

void functions_name_lua(const struct lang_memory *m, struct lang_work *k)
{
	for (uint32_t i = 0; i < k->nr_codes; i++) {
		struct lang_function *f = &k->functions[i];

		if (!f->first_line)
			f->name.fixed = "main chunk";
		else if (!f->name.size)
			set_place_name(m, k, i);
	}
}

enum lang_status functions_add(struct lang_reader *r, const struct lang_process *p,
			       uint32_t process, functions_lines_fn lines)
{
	struct lang_work *w = &r->work;
	uint32_t fresh[NEW_MAX], nr = 0, used = 0;

	if (!stamp_contents(r))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];

		if (find(r, process, &w->script_functions_of[i]) || nr == NEW_MAX ||
		    !want_parts(r, f, &used, !nr))
			continue;
		fresh[nr++] = i;
		want_text(&r->memory, &f->scope);
		want_text(&r->memory, &f->name);
		want_text(&r->memory, &f->file);
	}
	if (nr && !lang_memory_fetch(&r->memory))
		return LANG_BAD_CHAIN;
	used = 0;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_function *f = &w->functions[fresh[i]];

		if (f->parts[0].size)
			lines(&r->memory, f, w->ruby_lines + used);
		used += f->parts[0].size ? f->lines_size : 0;
	}
	for (uint32_t i = 0; i < nr; i++)
		add_function(r, p, process, &w->script_functions_of[fresh[i]],
			     &w->functions[fresh[i]]);
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->script_functions_of[i];

		if (c->id == CODE_NONE)
			return LANG_NO_ROOM;
		*c->known = (struct lang_known){
			.address = c->address, .stamp = c->stamp, .process = process, .id = c->id
		};
	}
	return LANG_OK;
}

/* Hash a key. The process chooses its addresses, and the bytes that a stamp is of. */
static inline uint64_t code_key_hash(const struct keyhash_key *secret, const struct code_key *k)
{
	struct keyhash h = keyhash_begin(secret);

	keyhash_word(&h, k->process);
	keyhash_word(&h, k->address);
	keyhash_word(&h, k->stamp);
	return keyhash_end(&h);
}

#define PROCESS_SLOTS 4096U /* counts of a process, by its hash */

/*
 * Entries in the order of serial numbers, which are for good, one behind the other in large pages:
 * tens of thousands of small blocks that leave after minutes would have the heap grow between other
 * blocks. An array of them, and a set by key. A process leaves minutes after its end: then the
 * whole array is gone through, and entries move up. Runs on: the loader, the writer of a recording.
 */

#define PAGE_BYTES (256UL << 10)

struct entry {
	uint64_t serial;
	struct code_key key;
	struct code_text text;
	char bytes[];
};

static_assert(PAGE_BYTES >= sizeof(struct entry) + sizeof((struct script_log_copy *)0)->bytes,
	      "a page holds the largest entry");

struct page {
	struct page *next;
	size_t used; /* bytes */
	struct entry first;
};

#define PAGE_SIZE (offsetof(struct page, first) + PAGE_BYTES)

struct script_log {
	pthread_mutex_t lock;
	struct keyhash_key secret;
	struct page *first_page, *last_page;
	struct entry **entries; /* in the pages */
	uint32_t nr, max;
	struct hashset by_key;
	uint64_t last;		       /* serial number */
	uint32_t nr_of[PROCESS_SLOTS]; /* entries, by the hash of their process */
	atomic_ulong memory;
};

/* NULL when out of memory. */
static struct script_log *script_log_new(void)
{
	struct script_log *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->secret = keyhash_new_key();
	return l;
}

static void free_pages(struct page *p)
{
	while (p) {
		struct page *next = p->next;

		free_sparse(p, PAGE_SIZE);
		p = next;
	}
}

/* NULL is fine */
static void script_log_free(struct script_log *l)
{
	if (!l)
		return;
	free_pages(l->first_page);
	free(l->entries);
	hashset_fini(&l->by_key);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Return the size of an entry with @t. */
static size_t size_of(const struct code_text *t)
{
	size_t size = sizeof(struct entry) + t->name_size + t->file_size + t->table_size;

	return (size + _Alignof(struct entry) - 1) / _Alignof(struct entry) *
	       _Alignof(struct entry);
}

static struct entry *entry_in(struct page *p, size_t at)
{
	return (struct entry *)((char *)&p->first + at);
}

/* Append @size bytes to @to; NULL: none. */
static void *append(void *to, const void *from, size_t size)
{
	return size ? mempcpy(to, from, size) : to;
}

/* The texts of @t are at @bytes. */
static void set_texts(struct code_text *t, const char *bytes)
{
	t->name = bytes;
	t->file = bytes + t->name_size;
	t->table = (const uint8_t *)bytes + t->name_size + t->file_size;
}

/* Copy @from to @to with its texts, which are put to @bytes. */
static void copy_text(struct code_text *to, char *bytes, const struct code_text *from)
{
	*to = *from;
	set_texts(to, bytes);
	bytes = append(bytes, from->name, from->name_size);
	bytes = append(bytes, from->file, from->file_size);
	append(bytes, from->table, from->table_size);
}

static bool has(const struct script_log *l, const struct code_key *key, uint64_t hash)
{
	uint32_t at = 0, i;

	while ((i = hashset_next(&l->by_key, hash, &at)) != HASHSET_NONE) {
		const struct code_key *k = &l->entries[i]->key;

		if (k->address == key->address && k->stamp == key->stamp &&
		    k->process == key->process)
			return true;
	}
	return false;
}

static uint32_t *nr_of(struct script_log *l, uint32_t process)
{
	return &l->nr_of[hash_u64(process) & (PROCESS_SLOTS - 1)];
}

/* Count the entry @i, which is new in the array. */
static void enter(struct script_log *l, uint32_t i)
{
	const struct code_key *key = &l->entries[i]->key;

	assert(i < l->nr);
	hashset_add(&l->by_key, code_key_hash(&l->secret, key), i);
	++*nr_of(l, key->process);
}

/* Return room for @size bytes in the last page; NULL: out of memory. */
static struct entry *get_room(struct script_log *l, size_t size)
{
	struct page *p = l->last_page;

	if (!p || p->used + size > PAGE_BYTES) {
		p = alloc_sparse(PAGE_SIZE);
		if (!p)
			return NULL;
		*(l->last_page ? &l->last_page->next : &l->first_page) = p;
		l->last_page = p;
	}
	p->used += size;
	return entry_in(p, p->used - size);
}

static size_t script_log_memory(const struct script_log *l)
{
	return atomic_load_explicit(&l->memory, memory_order_relaxed);
}

static void add_code_log(struct script_log *l, const struct code_key *key,
			 const struct code_text *text)
{
	size_t size = size_of(text);
	struct entry *e;

	if (has(l, key, code_key_hash(&l->secret, key)) ||
	    *nr_of(l, key->process) == SCRIPT_LOG_PROCESS_MAX ||
	    script_log_memory(l) + size > SCRIPT_LOG_MEMORY_MAX ||
	    !array_reserve(&l->entries, &l->max, l->nr + 1ULL) || hashset_reserve(&l->by_key, 1))
		return;
	e = get_room(l, size);
	if (!e)
		return;
	e->serial = ++l->last;
	e->key = *key;
	copy_text(&e->text, e->bytes, text);
	l->entries[l->nr] = e;
	enter(l, l->nr++);
	atomic_fetch_add_explicit(&l->memory, size, memory_order_relaxed);
}

void script_log_add(struct script_log *l, const struct code_key *key, const struct code_text *text)
{
	pthread_mutex_lock(&l->lock);
	add_code_log(l, key, text);
	pthread_mutex_unlock(&l->lock);
}

/* Free the pages behind @size bytes of @p, which is the last one then. */
static void cut(struct script_log *l, struct page *p, size_t size)
{
	free_pages(p->next);
	p->next = NULL;
	p->used = size;
	l->last_page = p;
	if (size)
		return;
	assert(p == l->first_page);
	free_sparse(p, PAGE_SIZE);
	l->first_page = l->last_page = NULL;
}

/*
 * Drop the entries of @process: the others move up to the first free place. None moves to a later
 * one: where an entry does not fit behind the ones before it, it did not with more of them either.
 */
static void drop(struct script_log *l, uint32_t process)
{
	struct page *to = l->first_page;
	size_t size, used = 0, end;

	l->nr = 0;
	for (struct page *from = l->first_page; from; from = from->next) {
		end = from->used;
		for (size_t at = 0; at < end; at += size) {
			struct entry *e = entry_in(from, at);

			size = size_of(&e->text);
			if (e->key.process == process) {
				atomic_fetch_sub_explicit(&l->memory, size, memory_order_relaxed);
				continue;
			}
			if (used + size > PAGE_BYTES) {
				to->used = used;
				to = to->next;
				used = 0;
			}
			e = memmove(entry_in(to, used), e, size);
			set_texts(&e->text, e->bytes);
			used += size;
			l->entries[l->nr] = e;
			enter(l, l->nr++);
		}
	}
	cut(l, to, used);
}

void script_log_forget(struct script_log *l, uint32_t process)
{
	pthread_mutex_lock(&l->lock);
	/* Most processes have no code here, and any user has many end. */
	if (!*nr_of(l, process)) {
		pthread_mutex_unlock(&l->lock);
		return;
	}
	hashset_clear(&l->by_key);
	memset(l->nr_of, 0, sizeof(l->nr_of));
	drop(l, process);
	pthread_mutex_unlock(&l->lock);
}

bool script_log_next(struct script_log *l, uint64_t *last, struct script_log_copy *out)
{
	uint32_t i;
	bool found;

	pthread_mutex_lock(&l->lock);
	i = search_split(l->nr, n, l->entries[n]->serial <= *last);
	found = i < l->nr;
	if (found) {
		copy_text(&out->text, out->bytes, &l->entries[i]->text);
		*last = l->entries[i]->serial;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

/*
 * Scripts by (process, address, stamp), in two tables: a full one replaces the old one, whose
 * scripts are freed unless they were looked up. Ends of lines by content, for good.
 *
 * Runs on: readers.
 */

struct script {
	struct line_ends_key key;
	const struct line_ends_text *text; /* NULL: not read to its end */
	uint32_t read;			   /* positions */
	struct keyhash hash;		   /* of the ends so far */
	uint32_t *ends;			   /* so far; then they are in the text */
	uint32_t nr, max_ends;
};

struct scripts {
	struct script **list; /* NULL: in the newer table */
	uint32_t nr, max;
	struct hashset by_key;
};

struct line_ends {
	pthread_mutex_t lock;
	struct keyhash_key secret; /* against scripts that were chosen for one bucket */
	struct scripts scripts, old;
	struct line_ends_text **texts;
	uint32_t nr_texts, max_texts;
	struct hashset by_ends;
	size_t memory;
	size_t by_process[PROCESS_SLOTS]; /* the same, by the hash of the process */
};

static const struct line_ends_text no_lines = { .refused = true };

/* NULL when out of memory. */
static struct line_ends *line_ends_new(void)
{
	struct line_ends *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	mutex_init_urgent(&l->lock);
	l->secret = keyhash_new_key();
	return l;
}

static size_t *memory_of(struct line_ends *l, uint32_t process)
{
	return &l->by_process[hash_u64(process) & (PROCESS_SLOTS - 1)];
}

/* Return whether there is no memory for @more bytes of @process. */
static bool is_full(struct line_ends *l, uint32_t process, size_t more)
{
	return l->memory + more > LINE_ENDS_MEMORY_MAX ||
	       *memory_of(l, process) + more > LINE_ENDS_PROCESS_MEMORY;
}

static void count(struct line_ends *l, const struct script *s, size_t bytes)
{
	l->memory += bytes;
	*memory_of(l, s->key.process) += bytes;
}

static void discount(struct line_ends *l, const struct script *s, size_t bytes)
{
	l->memory -= bytes;
	*memory_of(l, s->key.process) -= bytes;
}

static void scripts_fini(struct line_ends *l, struct scripts *t)
{
	for (uint32_t i = 0; i < t->nr; i++) {
		struct script *s = t->list[i];

		if (!s)
			continue;
		discount(l, s, sizeof(*s) + s->max_ends * sizeof(*s->ends));
		free(s->ends);
		free(s);
	}
	free(t->list);
	hashset_fini(&t->by_key);
}

static void line_ends_free(struct line_ends *l)
{
	if (!l)
		return;
	scripts_fini(l, &l->scripts);
	scripts_fini(l, &l->old);
	for (uint32_t i = 0; i < l->nr_texts; i++) {
		free((void *)l->texts[i]->ends);
		free(l->texts[i]);
	}
	free(l->texts);
	hashset_fini(&l->by_ends);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static uint64_t key_hash(const struct line_ends *l, const struct line_ends_key *k)
{
	struct keyhash h = keyhash_begin(&l->secret);

	keyhash_word(&h, k->process);
	keyhash_word(&h, k->address);
	keyhash_word(&h, k->stamp);
	return keyhash_end(&h);
}

/* Return the script in @t, or NULL. */
static struct script **line_ends_slot_of(const struct scripts *t, const struct line_ends_key *key,
					 uint64_t hash)
{
	uint32_t at = 0, i;

	while ((i = hashset_next(&t->by_key, hash, &at)) != HASHSET_NONE) {
		const struct script *s = t->list[i];

		if (s && s->key.process == key->process && s->key.address == key->address &&
		    s->key.stamp == key->stamp)
			return &t->list[i];
	}
	return NULL;
}

/* Make room for one more script. False: out of memory. */
static bool make_room(struct line_ends *l)
{
	if (l->scripts.nr == LINE_ENDS_SCRIPTS_MAX) {
		scripts_fini(l, &l->old);
		l->old = l->scripts;
		l->scripts = (struct scripts){ .nr = 0 };
	}
	return !hashset_reserve(&l->scripts.by_key, 1) &&
	       array_reserve(&l->scripts.list, &l->scripts.max, l->scripts.nr + 1ULL);
}

static void put(struct line_ends *l, struct script *s)
{
	hashset_add(&l->scripts.by_key, key_hash(l, &s->key), l->scripts.nr);
	l->scripts.list[l->scripts.nr++] = s;
}

static struct script *find_line_ends(struct line_ends *l, const struct line_ends_key *key)
{
	uint64_t hash = key_hash(l, key);
	struct script **slot = line_ends_slot_of(&l->scripts, key, hash), *s;

	if (slot)
		return *slot;
	slot = line_ends_slot_of(&l->old, key, hash);
	s = slot ? *slot : NULL;
	/* With a full table the old one leaves: the script is read again. */
	if (s && l->scripts.nr < LINE_ENDS_SCRIPTS_MAX && make_room(l)) {
		put(l, s);
		*slot = NULL;
	}
	return s;
}

/* Find a script, or add it; NULL: the table is full. */
static struct script *add_line_ends(struct line_ends *l, const struct line_ends_key *key)
{
	struct script *s = find_line_ends(l, key);

	if (s)
		return s;
	/* Also if its process has no memory for lines: then it is known that there are none. */
	if (!make_room(l) || l->memory + sizeof(*s) > LINE_ENDS_MEMORY_MAX)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->key = *key;
	s->hash = keyhash_begin(&l->secret);
	count(l, s, sizeof(*s));
	put(l, s);
	return s;
}

const struct line_ends_text *line_ends_get(struct line_ends *l, const struct line_ends_key *key,
					   uint32_t *from)
{
	const struct line_ends_text *text;
	struct script *s;

	pthread_mutex_lock(&l->lock);
	s = find_line_ends(l, key);
	*from = s ? s->read : 0;
	text = s ? s->text : NULL;
	pthread_mutex_unlock(&l->lock);
	return text;
}

/* Return the text with the ends of @s, which are taken or freed; NULL: out of memory. */
static const struct line_ends_text *line_ends_keep_text(struct line_ends *l, struct script *s)
{
	size_t size = s->nr * sizeof(*s->ends);
	uint64_t hash = keyhash_end(&s->hash);
	struct line_ends_text *t;
	uint32_t at = 0, i;

	while ((i = hashset_next(&l->by_ends, hash, &at)) != HASHSET_NONE) {
		t = l->texts[i];
		if (t->nr == s->nr && (!size || !memcmp(t->ends, s->ends, size)))
			return t;
	}
	t = hashset_reserve(&l->by_ends, 1) ||
			    !array_reserve(&l->texts, &l->max_texts, l->nr_texts + 1ULL)
		    ? NULL
		    : malloc(sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct line_ends_text){ s->ends, s->nr, false };
	count(l, s, sizeof(*t) + s->max_ends * sizeof(*s->ends));
	s->ends = NULL;
	hashset_add(&l->by_ends, hash, l->nr_texts);
	l->texts[l->nr_texts++] = t;
	return t;
}

static void end(struct line_ends *l, struct script *s, bool refused)
{
	s->text = refused ? NULL : line_ends_keep_text(l, s);
	if (!s->text)
		s->text = &no_lines;
	discount(l, s, s->max_ends * sizeof(*s->ends));
	free(s->ends);
	s->ends = NULL;
	s->nr = s->max_ends = 0;
}

/* Append the ends; false: there is no memory for them. */
static bool line_ends_append(struct line_ends *l, struct script *s, const uint32_t *ends,
			     uint32_t nr)
{
	uint32_t before = s->max_ends;

	if (is_full(l, s->key.process, nr * sizeof(*ends)) ||
	    !array_reserve(&s->ends, &s->max_ends, (uint64_t)s->nr + nr))
		return false;
	count(l, s, (s->max_ends - before) * sizeof(*ends));
	if (nr)
		memcpy(s->ends + s->nr, ends, nr * sizeof(*ends));
	s->nr += nr;
	for (uint32_t i = 0; i < nr; i++)
		keyhash_word(&s->hash, ends[i]);
	return true;
}

void line_ends_add(struct line_ends *l, const struct line_ends_key *key, uint32_t from, uint32_t to,
		   const uint32_t *ends, uint32_t nr, bool last)
{
	struct script *s;

	pthread_mutex_lock(&l->lock);
	s = add_line_ends(l, key);
	if (s && !s->text && s->read == from) {
		s->read = to;
		if (!line_ends_append(l, s, ends, nr))
			end(l, s, true);
		else if (last)
			end(l, s, false);
	}
	pthread_mutex_unlock(&l->lock);
}

void line_ends_refuse(struct line_ends *l, const struct line_ends_key *key)
{
	struct script *s;

	pthread_mutex_lock(&l->lock);
	s = add_line_ends(l, key);
	if (s && !s->text)
		end(l, s, true);
	pthread_mutex_unlock(&l->lock);
}

uint32_t line_ends_line(const struct line_ends_text *t, uint32_t position)
{
	uint32_t before = search_split(t->nr, i, t->ends[i] < position);

	return t->refused ? 0 : before + 1;
}

static uint32_t char_at(const uint8_t *text, uint32_t i, bool wide)
{
	return wide ? text[2 * i] | (uint32_t)text[2 * i + 1] << 8 : text[i];
}

/* As ECMAScript has it: LF, CR, CR LF, and two more characters. */
static bool is_line_end(const uint8_t *text, uint32_t i, uint32_t nr, bool wide)
{
	uint32_t c = char_at(text, i, wide);

	if (c == '\r')
		return i + 1 == nr || char_at(text, i + 1, wide) != '\n';
	return c == '\n' || c == 0x2028 || c == 0x2029;
}

/* Lines that end with LF alone. */
static uint32_t find_plain(const uint8_t *text, uint32_t nr, uint32_t from, uint32_t *ends)
{
	const uint8_t *stop = text + nr, *at = text;
	uint32_t found = 0;

	while (at < stop && (at = memchr(at, '\n', (size_t)(stop - at))))
		ends[found++] = from + (uint32_t)(at++ - text);
	return found;
}

uint32_t line_ends_find(const uint8_t *text, uint32_t nr, bool wide, bool last, uint32_t from,
			uint32_t *ends, uint32_t *used)
{
	uint32_t found = 0;

	if (nr > 1 && !last && char_at(text, nr - 1, wide) == '\r')
		nr--;
	*used = nr;
	if (!wide && !memchr(text, '\r', nr))
		return find_plain(text, nr, from, ends);
	for (uint32_t i = 0; i < nr; i++)
		if (is_line_end(text, i, nr, wide))
			ends[found++] = from + i;
	return found;
}

/*
 * Ids by (process, address, stamp), in two tables: a full one replaces the old one, and keys that
 * are looked up move from the old one to the new one. Texts by content, for good.
 *
 * Runs on: readers (find, add), the loader and others (by id).
 */

#define CHUNK_BITS  10
#define CHUNK_SIZE  (1U << CHUNK_BITS)
#define NR_CHUNKS   (SCRIPT_FUNCTIONS_MAX >> CHUNK_BITS)
#define FIRST_SLOTS 1024U
#define KEYS_SLOTS  (2 * SCRIPT_FUNCTIONS_KEYS_MAX) /* of one table */

/* A text with its bytes behind it. */
struct kept {
	struct kept *next;
	struct code_text text;
	uint64_t hash;
	uint32_t id, process;
	char bytes[];
};

struct key_slot {
	struct code_key key;
	uint32_t id; /* + 1, 0: empty */
};

/* Linear probing, at most half full. */
struct keys {
	struct key_slot *slots;
	uint32_t nr_slots, nr;
};

/* New functions of a process or user, and their bytes. */
struct codes_part {
	uint32_t nr;
	size_t memory;
};

struct script_functions {
	pthread_mutex_t lock;
	struct keyhash_key secret; /* against texts that were chosen for one bucket */
	struct keys keys, old_keys;
	struct kept **texts; /* chains by hash */
	uint32_t nr_chains;
	struct codes_part *by_process; /* by the hash of the process */
	struct codes_part *by_user;    /* the same */
	struct line_ends *line_ends;
	struct script_log *log;
	atomic_ulong memory;
	atomic_uint nr; /* release by script_functions_add(), acquire by script_functions_at() */
	_Atomic(const struct code_text **) chunks[NR_CHUNKS]; /* published by nr */
};

#define USER_SLOTS 1024U

struct script_functions *script_functions_new(void)
{
	struct script_functions *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	mutex_init_urgent(&c->lock);
	c->secret = keyhash_new_key();
	c->nr_chains = FIRST_SLOTS;
	c->texts = calloc(c->nr_chains, sizeof(*c->texts));
	c->by_process = calloc(PROCESS_SLOTS, sizeof(*c->by_process));
	c->by_user = calloc(USER_SLOTS, sizeof(*c->by_user));
	c->line_ends = line_ends_new();
	c->log = script_log_new();
	if (!c->texts || !c->by_process || !c->by_user || !c->line_ends || !c->log) {
		script_functions_free(c);
		return NULL;
	}
	return c;
}

void script_functions_free(struct script_functions *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->texts && i < c->nr_chains; i++) {
		while (c->texts[i]) {
			struct kept *next = c->texts[i]->next;

			free(c->texts[i]);
			c->texts[i] = next;
		}
	}
	/* They are made in order. */
	for (uint32_t i = 0; i < NR_CHUNKS; i++) {
		void *chunk = atomic_load_explicit(&c->chunks[i], memory_order_relaxed);

		if (!chunk)
			break;
		free(chunk);
	}
	free(c->keys.slots);
	free(c->old_keys.slots);
	free(c->texts);
	free(c->by_process);
	free(c->by_user);
	line_ends_free(c->line_ends);
	script_log_free(c->log);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static const struct code_text **text_at(const struct script_functions *c, uint32_t id)
{
	assert(id >> CHUNK_BITS < NR_CHUNKS);
	/* Stored before the release of nr that made the id known. */
	return &atomic_load_explicit(&c->chunks[id >> CHUNK_BITS],
				     memory_order_relaxed)[id & (CHUNK_SIZE - 1)];
}

/* Return the slot of @key, or the empty one where it would be. */
static struct key_slot *script_functions_slot_of(const struct keys *t,
						 const struct keyhash_key *secret,
						 const struct code_key *key)
{
	uint32_t i = (uint32_t)code_key_hash(secret, key) & (t->nr_slots - 1);

	for (; t->slots[i].id; i = (i + 1) & (t->nr_slots - 1)) {
		const struct code_key *have = &t->slots[i].key;

		if (have->address == key->address && have->stamp == key->stamp &&
		    have->process == key->process)
			break;
	}
	return &t->slots[i];
}

/* Double the slots of @t. False: out of memory. */
static bool grow_keys(struct keys *t, const struct keyhash_key *secret)
{
	struct keys grown = { .nr_slots = MAX(t->nr_slots * 2, FIRST_SLOTS), .nr = t->nr };

	grown.slots = calloc(grown.nr_slots, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (t->slots[i].id)
			*script_functions_slot_of(&grown, secret, &t->slots[i].key) = t->slots[i];
	free(t->slots);
	*t = grown;
	return true;
}

/* Set the id of @key, which is not in the new table. Without memory it is read again. */
static void put_key(struct script_functions *c, const struct code_key *key, uint32_t id)
{
	struct keys *t = &c->keys;

	if (t->nr == SCRIPT_FUNCTIONS_KEYS_MAX) {
		free(c->old_keys.slots);
		c->old_keys = *t;
		*t = (struct keys){ .nr = 0 };
	}
	if (t->nr * 2 >= t->nr_slots && !grow_keys(t, &c->secret))
		return;
	assert(t->nr_slots <= KEYS_SLOTS);
	*script_functions_slot_of(t, &c->secret, key) = (struct key_slot){ *key, id + 1 };
	t->nr++;
}

static uint32_t find_codes(struct script_functions *c, const struct code_key *k)
{
	uint32_t id = c->keys.slots ? script_functions_slot_of(&c->keys, &c->secret, k)->id : 0;

	if (!id && c->old_keys.slots) {
		id = script_functions_slot_of(&c->old_keys, &c->secret, k)->id;
		if (id)
			put_key(c, k, id - 1);
	}
	return id ? id - 1 : CODE_NONE;
}

uint32_t script_functions_find(struct script_functions *c, const struct code_key *key)
{
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = find_codes(c, key);
	pthread_mutex_unlock(&c->lock);
	return id;
}

static uint64_t text_hash(const struct script_functions *c, const struct code_text *t)
{
	struct keyhash h = keyhash_begin(&c->secret);

	keyhash_word(&h, (uint64_t)t->first_line << 16 | t->language << 8 | t->version);
	keyhash_word(&h, (uint64_t)t->position << 1 | t->compiled);
	keyhash_bytes(&h, t->name, t->name_size);
	keyhash_bytes(&h, t->file, t->file_size);
	keyhash_bytes(&h, t->table, t->table_size);
	return keyhash_end(&h);
}

static bool same_text(const struct code_text *a, const struct code_text *b)
{
	return a->language == b->language && a->version == b->version &&
	       a->compiled == b->compiled && a->first_line == b->first_line &&
	       a->position == b->position && a->name_size == b->name_size &&
	       a->file_size == b->file_size && a->table_size == b->table_size &&
	       !memcmp(a->name, b->name, a->name_size) && !memcmp(a->file, b->file, a->file_size) &&
	       (!a->table_size || !memcmp(a->table, b->table, a->table_size));
}

/* Return the id of the text @t with @hash, or CODE_NONE. */
static uint32_t find_text(const struct script_functions *c, const struct code_text *t,
			  uint64_t hash)
{
	for (const struct kept *k = c->texts[hash & (c->nr_chains - 1)]; k; k = k->next)
		if (k->hash == hash && same_text(&k->text, t))
			return k->id;
	return CODE_NONE;
}

/* Double the chains of texts when there is one for two texts. */
static bool grow_chains(struct script_functions *c, uint32_t nr)
{
	uint32_t nr_chains = c->nr_chains * 2;
	struct kept **texts;

	if (nr * 2 < c->nr_chains)
		return true;
	texts = calloc(nr_chains, sizeof(*texts));
	if (!texts)
		return false;
	for (uint32_t i = 0; i < c->nr_chains; i++) {
		while (c->texts[i]) {
			struct kept *k = c->texts[i], **head = &texts[k->hash & (nr_chains - 1)];

			c->texts[i] = k->next;
			k->next = *head;
			*head = k;
		}
	}
	free(c->texts);
	c->texts = texts;
	c->nr_chains = nr_chains;
	return true;
}

/* Reserve @id; false: out of memory. */
static bool reserve(struct script_functions *c, uint32_t id)
{
	const struct code_text **chunk;

	assert(id >> CHUNK_BITS < NR_CHUNKS);
	if (!grow_chains(c, id))
		return false;
	if (atomic_load_explicit(&c->chunks[id >> CHUNK_BITS], memory_order_relaxed))
		return true;
	chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
	if (!chunk)
		return false;
	atomic_fetch_add_explicit(&c->memory, CHUNK_SIZE * sizeof(*chunk), memory_order_relaxed);
	atomic_store_explicit(&c->chunks[id >> CHUNK_BITS], chunk, memory_order_relaxed);
	return true;
}

/* Return whether a part has room for @size bytes; tables leave a quarter to names alone. */
static bool has_room(const struct codes_part *part, size_t size, size_t max,
		     const struct code_text *t)
{
	return part->memory + size <= (t->table_size ? max / 4 * 3 : max);
}

/*
 * Copy @t, which is new. Return its id, or CODE_NONE: the part of @process or of its user, or the
 * table, is full.
 */
static uint32_t keep_text(struct script_functions *c, uint32_t process, const struct code_text *t,
			  uint64_t hash)
{
	struct codes_part *part = &c->by_process[hash_u64(process) & (PROCESS_SLOTS - 1)];
	struct codes_part *user = &c->by_user[hash_u64(t->user) & (USER_SLOTS - 1)];
	uint32_t id = atomic_load_explicit(&c->nr, memory_order_relaxed);
	size_t size = sizeof(struct kept) + t->name_size + t->file_size + t->table_size;
	struct kept **head, *k;

	if (part->nr >= SCRIPT_FUNCTIONS_PROCESS_MAX ||
	    !has_room(part, size, SCRIPT_FUNCTIONS_PROCESS_MEMORY, t) ||
	    !has_room(user, size, SCRIPT_FUNCTIONS_USER_MEMORY, t) ||
	    atomic_load_explicit(&c->memory, memory_order_relaxed) + size >
		    SCRIPT_FUNCTIONS_MEMORY_MAX ||
	    id >= SCRIPT_FUNCTIONS_MAX || !reserve(c, id))
		return CODE_NONE;
	k = malloc(size);
	if (!k)
		return CODE_NONE;
	part->nr++;
	part->memory += size;
	user->memory += size;
	atomic_fetch_add_explicit(&c->memory, size, memory_order_relaxed);
	k->text = *t;
	k->hash = hash;
	k->id = id;
	k->process = process;
	k->text.name = memcpy(k->bytes, t->name, t->name_size);
	k->text.file = memcpy(k->bytes + t->name_size, t->file, t->file_size);
	k->text.table = (uint8_t *)k->bytes + t->name_size + t->file_size;
	if (t->table_size)
		memcpy(k->bytes + t->name_size + t->file_size, t->table, t->table_size);
	head = &c->texts[hash & (c->nr_chains - 1)];
	k->next = *head;
	*head = k;
	*text_at(c, id) = &k->text;
	/* Publishes the text and its chunk; pairs with script_functions_at(). */
	atomic_store_explicit(&c->nr, id + 1, memory_order_release);
	return id;
}

/* Return the id of @text, old or new; without its table of lines if there is no room for that. */
static uint32_t add_text(struct script_functions *c, uint32_t process, const struct code_text *text,
			 uint64_t hash)
{
	struct code_text bare = *text;
	uint32_t id = find_text(c, text, hash);

	if (id == CODE_NONE)
		id = keep_text(c, process, text, hash);
	if (id != CODE_NONE || !text->table_size || text->compiled)
		return id;
	bare.table_size = 0;
	hash = text_hash(c, &bare);
	id = find_text(c, &bare, hash);
	return id == CODE_NONE ? keep_text(c, process, &bare, hash) : id;
}

static uint32_t add(struct script_functions *c, const struct code_key *key,
		    const struct code_text *text, uint64_t hash)
{
	uint32_t id = find_codes(c, key);

	if (id != CODE_NONE)
		return id;
	id = add_text(c, key->process, text, hash);
	if (id != CODE_NONE)
		put_key(c, key, id);
	return id;
}

uint32_t script_functions_add(struct script_functions *c, const struct code_key *key,
			      const struct code_text *text)
{
	/* Not under the lock: a text may have a table of 16 KiB. */
	uint64_t hash = text_hash(c, text);
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = add(c, key, text, hash);
	pthread_mutex_unlock(&c->lock);
	return id;
}

uint32_t script_functions_add_text(struct script_functions *c, uint32_t process,
				   const struct code_text *text)
{
	uint64_t hash = text_hash(c, text);
	uint32_t id;

	pthread_mutex_lock(&c->lock);
	id = add_text(c, process, text, hash);
	pthread_mutex_unlock(&c->lock);
	return id;
}

const struct code_text *script_functions_at(const struct script_functions *c, uint32_t id)
{
	/* Pairs with the release in add(). */
	if (id >= atomic_load_explicit(&c->nr, memory_order_acquire))
		return NULL;
	return *text_at(c, id);
}

uint32_t script_functions_process(const struct script_functions *c, uint32_t id)
{
	const struct code_text *t = script_functions_at(c, id);

	return t ? ((const struct kept *)(const void *)((const char *)t -
							offsetof(struct kept, text)))
			       ->process
		 : 0;
}

uint32_t script_functions_nr(const struct script_functions *c)
{
	return atomic_load_explicit(&c->nr, memory_order_acquire);
}

size_t script_functions_memory(const struct script_functions *c)
{
	return atomic_load_explicit(&c->memory, memory_order_relaxed) + script_log_memory(c->log);
}

struct script_log *codes_log(const struct script_functions *c)
{
	return c->log;
}

struct line_ends *script_functions_line_ends(struct script_functions *c)
{
	return c->line_ends;
}

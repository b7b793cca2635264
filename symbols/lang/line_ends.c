// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scripts by (process, address, stamp), in two tables: a full one replaces the old one, whose
 * scripts are freed unless they were looked up. Ends of lines by content, for good.
 *
 * Runs on: readers.
 */
#include "symbols/lang/line_ends.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"
#include "symbols/base/search.h"

struct script {
	struct line_ends_key key;
	const struct line_ends_text *text; /* NULL: not read to its end */
	uint32_t read;			   /* positions */
	struct keyhash hash;		   /* of the ends so far */
	uint32_t *ends;			   /* so far; then they are in the text */
	uint32_t nr, max_ends;
};

#define PROCESS_SLOTS 4096U

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

struct line_ends *line_ends_new(void)
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

void line_ends_free(struct line_ends *l)
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
static struct script **slot_of(const struct scripts *t, const struct line_ends_key *key,
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

static struct script *find(struct line_ends *l, const struct line_ends_key *key)
{
	uint64_t hash = key_hash(l, key);
	struct script **slot = slot_of(&l->scripts, key, hash), *s;

	if (slot)
		return *slot;
	slot = slot_of(&l->old, key, hash);
	s = slot ? *slot : NULL;
	/* With a full table the old one leaves: the script is read again. */
	if (s && l->scripts.nr < LINE_ENDS_SCRIPTS_MAX && make_room(l)) {
		put(l, s);
		*slot = NULL;
	}
	return s;
}

/* Find a script, or add it; NULL: the table is full. */
static struct script *add(struct line_ends *l, const struct line_ends_key *key)
{
	struct script *s = find(l, key);

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
	s = find(l, key);
	*from = s ? s->read : 0;
	text = s ? s->text : NULL;
	pthread_mutex_unlock(&l->lock);
	return text;
}

/* Return the text with the ends of @s, which are taken or freed; NULL: out of memory. */
static const struct line_ends_text *keep_text(struct line_ends *l, struct script *s)
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
	s->text = refused ? NULL : keep_text(l, s);
	if (!s->text)
		s->text = &no_lines;
	discount(l, s, s->max_ends * sizeof(*s->ends));
	free(s->ends);
	s->ends = NULL;
	s->nr = s->max_ends = 0;
}

/* Append the ends; false: there is no memory for them. */
static bool append(struct line_ends *l, struct script *s, const uint32_t *ends, uint32_t nr)
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
	s = add(l, key);
	if (s && !s->text && s->read == from) {
		s->read = to;
		if (!append(l, s, ends, nr))
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
	s = add(l, key);
	if (s && !s->text)
		end(l, s, true);
	pthread_mutex_unlock(&l->lock);
}

size_t line_ends_memory(struct line_ends *l)
{
	size_t memory;

	pthread_mutex_lock(&l->lock);
	memory = l->memory;
	pthread_mutex_unlock(&l->lock);
	return memory;
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
static bool ends_line(const uint8_t *text, uint32_t i, uint32_t nr, bool wide)
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
		if (ends_line(text, i, nr, wide))
			ends[found++] = from + i;
	return found;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scripts by (process, address, stamp). Runs on: readers.
 */
#include "symbols/lang/line_ends.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"
#include "symbols/base/hashset.h"

struct script {
	struct line_ends_key key;
	struct line_ends_text text;
	uint32_t read; /* positions */
	uint32_t *ends;
	uint32_t max_ends;
	bool whole;
};

struct line_ends {
	pthread_mutex_t lock;
	struct script **scripts;
	uint32_t nr_scripts, max_scripts;
	struct hashset by_key;
	size_t memory;
};

struct line_ends *line_ends_new(void)
{
	struct line_ends *l = calloc(1, sizeof(*l));

	if (l)
		mutex_init_urgent(&l->lock);
	return l;
}

void line_ends_free(struct line_ends *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->nr_scripts; i++) {
		free(l->scripts[i]->ends);
		free(l->scripts[i]);
	}
	free(l->scripts);
	hashset_fini(&l->by_key);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static uint64_t key_hash(const struct line_ends_key *k)
{
	return hash_u64(hash_u64(k->address ^ (uint64_t)k->process << 40) ^ k->stamp);
}

static struct script *find(const struct line_ends *l, const struct line_ends_key *key)
{
	uint32_t at = 0, i;

	while ((i = hashset_next(&l->by_key, key_hash(key), &at)) != HASHSET_NONE) {
		const struct line_ends_key *k = &l->scripts[i]->key;

		if (k->process == key->process && k->address == key->address &&
		    k->stamp == key->stamp)
			return l->scripts[i];
	}
	return NULL;
}

/* Find a script, or add it; NULL: the table is full. */
static struct script *add(struct line_ends *l, const struct line_ends_key *key)
{
	struct script *s = find(l, key);

	if (s)
		return s;
	if (l->memory + sizeof(*s) > LINE_ENDS_MEMORY_MAX || hashset_reserve(&l->by_key, 1) ||
	    !array_reserve(&l->scripts, &l->max_scripts, l->nr_scripts + 1ULL))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->key = *key;
	l->memory += sizeof(*s);
	hashset_add(&l->by_key, key_hash(key), l->nr_scripts);
	l->scripts[l->nr_scripts++] = s;
	return s;
}

const struct line_ends_text *line_ends_get(struct line_ends *l, const struct line_ends_key *key,
					   uint32_t *from)
{
	const struct line_ends_text *text = NULL;
	struct script *s;

	pthread_mutex_lock(&l->lock);
	s = find(l, key);
	*from = s ? s->read : 0;
	if (s && s->whole)
		text = &s->text;
	pthread_mutex_unlock(&l->lock);
	return text;
}

static void end(struct script *s, bool refused)
{
	s->whole = true;
	s->text = (struct line_ends_text){ s->ends, refused ? 0 : s->text.nr, refused };
}

/* Append the ends; false: there is no memory for them. */
static bool append(struct line_ends *l, struct script *s, const uint32_t *ends, uint32_t nr)
{
	uint32_t before = s->max_ends;

	if (l->memory + nr * sizeof(*ends) > LINE_ENDS_MEMORY_MAX ||
	    !array_reserve(&s->ends, &s->max_ends, (uint64_t)s->text.nr + nr))
		return false;
	l->memory += (s->max_ends - before) * sizeof(*ends);
	if (nr)
		memcpy(s->ends + s->text.nr, ends, nr * sizeof(*ends));
	s->text.nr += nr;
	return true;
}

void line_ends_add(struct line_ends *l, const struct line_ends_key *key, uint32_t from, uint32_t to,
		   const uint32_t *ends, uint32_t nr, bool last)
{
	struct script *s;

	pthread_mutex_lock(&l->lock);
	s = add(l, key);
	if (s && !s->whole && s->read == from) {
		s->read = to;
		if (!append(l, s, ends, nr))
			end(s, true);
		else if (last)
			end(s, false);
	}
	pthread_mutex_unlock(&l->lock);
}

void line_ends_refuse(struct line_ends *l, const struct line_ends_key *key)
{
	struct script *s;

	pthread_mutex_lock(&l->lock);
	s = add(l, key);
	if (s && !s->whole)
		end(s, true);
	pthread_mutex_unlock(&l->lock);
}

uint32_t line_ends_line(const struct line_ends_text *t, uint32_t position)
{
	uint32_t low = 0, high = t->nr;

	/* The number of lines that end before it. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->ends[middle] < position)
			low = middle + 1;
		else
			high = middle;
	}
	return t->refused ? 0 : low + 1;
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

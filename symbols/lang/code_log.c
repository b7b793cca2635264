// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An array in the order of serial numbers, which are for good, and a set by key. A process leaves
 * minutes after its end: then the whole array is gone through. Runs on: the loader, the writer of
 * a recording.
 */
#include "symbols/lang/code_log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/hashset.h"
#include "symbols/base/search.h"

#define PROCESS_SLOTS 4096U

struct entry {
	uint64_t serial;
	struct code_key key;
	struct code_text text;
	char bytes[];
};

struct code_log {
	pthread_mutex_t lock;
	struct keyhash_key secret;
	struct entry **entries;
	uint32_t nr, max;
	struct hashset by_key;
	uint64_t last;		       /* serial number */
	uint32_t nr_of[PROCESS_SLOTS]; /* entries, by the hash of their process */
	atomic_ulong memory;
};

struct code_log *code_log_new(void)
{
	struct code_log *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->secret = keyhash_new_key();
	return l;
}

void code_log_free(struct code_log *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; i < l->nr; i++)
		free(l->entries[i]);
	free(l->entries);
	hashset_fini(&l->by_key);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static size_t bytes_of(const struct code_text *t)
{
	return (size_t)t->name_size + t->file_size + t->table_size;
}

/* Append @size bytes to @to; NULL: none. */
static void *append(void *to, const void *from, size_t size)
{
	return size ? mempcpy(to, from, size) : to;
}

/* Copy @from to @to with its texts, which are put to @bytes. */
static void copy_text(struct code_text *to, char *bytes, const struct code_text *from)
{
	*to = *from;
	to->name = bytes;
	to->file = bytes + from->name_size;
	to->table = (uint8_t *)bytes + from->name_size + from->file_size;
	bytes = append(bytes, from->name, from->name_size);
	bytes = append(bytes, from->file, from->file_size);
	append(bytes, from->table, from->table_size);
}

static bool has(const struct code_log *l, const struct code_key *key, uint64_t hash)
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

static uint32_t *nr_of(struct code_log *l, uint32_t process)
{
	return &l->nr_of[hash_u64(process) & (PROCESS_SLOTS - 1)];
}

/* Count the entry @i, which is new in the array. */
static void enter(struct code_log *l, uint32_t i)
{
	const struct code_key *key = &l->entries[i]->key;

	hashset_add(&l->by_key, code_key_hash(&l->secret, key), i);
	++*nr_of(l, key->process);
}

static void add(struct code_log *l, const struct code_key *key, const struct code_text *text)
{
	size_t size = sizeof(struct entry) + bytes_of(text);
	struct entry *e;

	if (has(l, key, code_key_hash(&l->secret, key)) ||
	    *nr_of(l, key->process) == CODE_LOG_PROCESS_MAX ||
	    code_log_memory(l) + size > CODE_LOG_MEMORY_MAX ||
	    !array_reserve(&l->entries, &l->max, l->nr + 1ULL) || hashset_reserve(&l->by_key, 1))
		return;
	e = malloc(size);
	if (!e)
		return;
	e->serial = ++l->last;
	e->key = *key;
	copy_text(&e->text, e->bytes, text);
	l->entries[l->nr] = e;
	enter(l, l->nr++);
	atomic_fetch_add_explicit(&l->memory, size, memory_order_relaxed);
}

void code_log_add(struct code_log *l, const struct code_key *key, const struct code_text *text)
{
	pthread_mutex_lock(&l->lock);
	add(l, key, text);
	pthread_mutex_unlock(&l->lock);
}

void code_log_forget(struct code_log *l, uint32_t process)
{
	uint32_t nr = 0;

	pthread_mutex_lock(&l->lock);
	/* Most processes have no code here, and any user has many end. */
	if (!*nr_of(l, process)) {
		pthread_mutex_unlock(&l->lock);
		return;
	}
	hashset_clear(&l->by_key);
	memset(l->nr_of, 0, sizeof(l->nr_of));
	for (uint32_t i = 0; i < l->nr; i++) {
		struct entry *e = l->entries[i];

		if (e->key.process == process) {
			atomic_fetch_sub_explicit(&l->memory, sizeof(*e) + bytes_of(&e->text),
						  memory_order_relaxed);
			free(e);
			continue;
		}
		l->entries[nr] = e;
		enter(l, nr++);
	}
	l->nr = nr;
	pthread_mutex_unlock(&l->lock);
}

bool code_log_next(struct code_log *l, uint64_t *last, struct code_log_copy *out)
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

size_t code_log_memory(const struct code_log *l)
{
	return atomic_load_explicit(&l->memory, memory_order_relaxed);
}

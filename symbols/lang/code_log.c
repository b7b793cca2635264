// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Entries in the order of serial numbers, which are for good, one behind the other in large pages:
 * tens of thousands of small blocks that leave after minutes would have the heap grow between other
 * blocks. An array of them, and a set by key. A process leaves minutes after its end: then the
 * whole array is gone through, and entries move up. Runs on: the loader, the writer of a recording.
 */
#include "symbols/lang/code_log.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/base/hashset.h"
#include "symbols/base/search.h"

#define PROCESS_SLOTS 4096U
#define PAGE_BYTES    (256UL << 10)

struct entry {
	uint64_t serial;
	struct code_key key;
	struct code_text text;
	char bytes[];
};
static_assert(PAGE_BYTES >= sizeof(struct entry) + sizeof((struct code_log_copy *)0)->bytes,
	      "a page holds the largest entry");

struct page {
	struct page *next;
	size_t used; /* bytes */
	struct entry first;
};
#define PAGE_SIZE (offsetof(struct page, first) + PAGE_BYTES)

struct code_log {
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

struct code_log *code_log_new(void)
{
	struct code_log *l = calloc(1, sizeof(*l));

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

void code_log_free(struct code_log *l)
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

/* Return room for @size bytes in the last page; NULL: out of memory. */
static struct entry *get_room(struct code_log *l, size_t size)
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

static void add(struct code_log *l, const struct code_key *key, const struct code_text *text)
{
	size_t size = size_of(text);
	struct entry *e;

	if (has(l, key, code_key_hash(&l->secret, key)) ||
	    *nr_of(l, key->process) == CODE_LOG_PROCESS_MAX ||
	    code_log_memory(l) + size > CODE_LOG_MEMORY_MAX ||
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

void code_log_add(struct code_log *l, const struct code_key *key, const struct code_text *text)
{
	pthread_mutex_lock(&l->lock);
	add(l, key, text);
	pthread_mutex_unlock(&l->lock);
}

/* Free the pages behind @size bytes of @p, which is the last one then. */
static void cut(struct code_log *l, struct page *p, size_t size)
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
static void drop(struct code_log *l, uint32_t process)
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

void code_log_forget(struct code_log *l, uint32_t process)
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

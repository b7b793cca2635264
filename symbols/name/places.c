// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * (object, file offset) → place id; the symbol of a place; symbols by id.
 *
 * Runs on: any thread; places_grow() on the builder, places_name() on the loader. Invariant: the
 * builder keeps a million entries ahead of the used ids (their memory is not resident until then),
 * for the minutes in which it may have no CPU; a hot thread that outruns them gets PLACE_NONE. It
 * wakes the builder before (places_crowded()).
 */
#include "symbols/name/name.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"

#define CHUNK_BITS  18
#define CHUNK_SIZE  (1u << CHUNK_BITS)
#define AHEAD	    (4 * CHUNK_SIZE)
#define SLOTS_FIRST (1u << 16)
#define SLOTS_SMALL (1u << 12) /* half of them used, a sample with all frames new still fits */

/* In symbol of an entry that was never written: no function has this id. */
#define SYMBOL_UNBUILT 0

struct places {
	struct intern intern;
	uint32_t serial;
	uint32_t nr_chunks; /* existing ones; builder only */
	uint32_t max_chunks;
	uint32_t nr_before;	/* places at the last places_grow() */
	atomic_uint crowded_at; /* places at which to call it again; relaxed: a hint */
	_Atomic(struct place *) chunk[];
};

struct places_key {
	uint64_t offset;
	uint32_t object;
};

/*
 * Hash a place with two secret words: at each frame of a sample keyhash() would cost too much, and
 * no process sees which slots are full.
 */
static uint64_t place_hash(const struct keyhash_key *secret, uint32_t object, uint64_t offset)
{
	return hash_u64((offset ^ hash_u64(object ^ secret->k0)) * secret->k1);
}

static struct place *entry(const struct places *p, uint32_t id)
{
	/* Acquire: the entries as chunk_add() made them. */
	struct place *chunk =
		atomic_load_explicit(&p->chunk[id >> CHUNK_BITS], memory_order_acquire);

	return chunk ? &chunk[id & (CHUNK_SIZE - 1)] : NULL;
}

static bool same(const void *store, uint32_t id, const void *key)
{
	const struct place *place = entry(store, id);
	const struct places_key *k = key;

	return place->offset == k->offset && place->object == k->object;
}

static bool room(const void *store, uint32_t id, const void *key)
{
	return entry(store, id);
}

static bool write_place(void *store, uint32_t id, const void *key)
{
	struct place *place = entry(store, id);
	const struct places_key *k = key;

	if (!place)
		return false;
	place->offset = k->offset;
	place->object = k->object;
	/* Release: the place is complete; pairs with the acquire in places_at(). */
	atomic_store_explicit(&place->symbol, SYMBOL_NONE, memory_order_release);
	return true;
}

static const struct intern_ops ops = { same, room, write_place };

static int chunk_add(struct places *p)
{
	struct place *chunk = alloc_sparse(CHUNK_SIZE * sizeof(*chunk));

	if (!chunk)
		return -ENOMEM;
	/* Release: the empty entries; pairs with the acquire in entry(). */
	atomic_store_explicit(&p->chunk[p->nr_chunks++], chunk, memory_order_release);
	return 0;
}

/* Half of the entries ahead are used, or the slots are half full. */
static void set_crowded(struct places *p)
{
	uint64_t all = p->nr_chunks * (uint64_t)CHUNK_SIZE, chunks = all - MIN(all, AHEAD) / 2;
	uint64_t slots = intern_slots_nr(&p->intern) / 2;
	uint64_t at = MIN(p->nr_chunks < p->max_chunks ? chunks : UINT32_MAX - 1, slots);
	uint32_t nr = places_nr(p);

	/* Still crowded: out of memory, which is not retried at each place. */
	at = at >= nr ? at + 1 : nr + AHEAD / 1024;
	atomic_store_explicit(&p->crowded_at, (unsigned int)MIN(at, UINT32_MAX),
			      memory_order_relaxed);
}

int places_new(struct places **out, uint32_t max_places)
{
	static atomic_uint nr_tables;
	uint32_t max = MIN(MAX(max_places, 1u), 1u << 31);
	uint32_t max_chunks = (max + CHUNK_SIZE - 1) / CHUNK_SIZE;
	size_t size = sizeof(struct places) + max_chunks * sizeof(((struct places *)0)->chunk[0]);
	struct places *p;
	int ret;

	size = (size + CACHELINE - 1) / CACHELINE * CACHELINE;
	p = aligned_alloc(CACHELINE, size);
	if (!p)
		return -ENOMEM;
	memset(p, 0, size);
	/* Relaxed: only unique. */
	p->serial = atomic_fetch_add_explicit(&nr_tables, 1, memory_order_relaxed) + 1;
	p->max_chunks = max_chunks;
	ret = intern_init(&p->intern, MIN(SLOTS_FIRST, 2 * max), max);
	if (!ret)
		ret = places_grow(p);
	if (ret) {
		places_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

int places_begin_small(struct places *p)
{
	uint32_t nr_slots = (uint32_t)MIN(intern_slots_nr(&p->intern), SLOTS_SMALL);
	int ret;

	assert(!places_nr(p));
	intern_fini(&p->intern);
	ret = intern_init(&p->intern, nr_slots, p->intern.max_ids);
	if (!ret)
		set_crowded(p);
	return ret;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->nr_chunks; i++)
		free_sparse(atomic_load_explicit(&p->chunk[i], memory_order_relaxed),
			    CHUNK_SIZE * sizeof(struct place));
	intern_fini(&p->intern);
	free(p);
}

uint32_t places_intern(struct places *p, uint32_t object, uint64_t offset)
{
	struct places_key key = { offset, object };

	return intern_get(&p->intern, &ops, p, place_hash(&p->intern.secret, object, offset), &key);
}

const struct place *places_at(const struct places *p, uint32_t id)
{
	const struct place *place = id < p->intern.max_ids ? entry(p, id) : NULL;

	/* Acquire: offset and dso; pairs with the release in write_place(). */
	if (!place || atomic_load_explicit(&place->symbol, memory_order_acquire) == SYMBOL_UNBUILT)
		return NULL;
	return place;
}

uint32_t places_nr(const struct places *p)
{
	return intern_nr(&p->intern);
}

void places_name(struct places *p, uint32_t id, uint32_t symbol)
{
	assert(symbol != SYMBOL_UNBUILT);
	if (!places_at(p, id))
		return;
	/* Release: the loader's symbol; pairs with the acquire in places_at(). */
	atomic_store_explicit(&entry(p, id)->symbol, symbol, memory_order_release);
}

/* Keep AHEAD entries ahead of the writers, or twice their use since the last call. */
int places_grow(struct places *p)
{
	uint32_t nr = places_nr(p);
	/* A returned id may make it fewer than before. */
	uint64_t used = nr > p->nr_before ? nr - p->nr_before : 0;
	uint64_t ahead = MAX((uint64_t)AHEAD, 2 * used);

	assert(p->nr_chunks <= p->max_chunks);
	int ret = 0;

	p->nr_before = nr;
	while (!ret && p->nr_chunks < p->max_chunks &&
	       p->nr_chunks * (uint64_t)CHUNK_SIZE < nr + ahead)
		ret = chunk_add(p);
	if (!ret)
		ret = intern_grow(&p->intern);
	set_crowded(p);
	return ret;
}

bool places_crowded(const struct places *p)
{
	return places_nr(p) >= atomic_load_explicit(&p->crowded_at, memory_order_relaxed);
}

uint32_t places_room(const struct places *p)
{
	return (uint32_t)MIN(p->nr_chunks * (uint64_t)CHUNK_SIZE, p->intern.max_ids);
}

uint32_t places_serial(const struct places *p)
{
	return p->serial;
}

/*
 * Functions by id, in chunks, and by (object, start). When functions are dropped, the others are
 * copied, with their texts: chunks and texts are freed as a whole.
 *
 * The hash set is private to the loader; readers use the chunked store alone.
 */

/* Small: the functions that remain are spread over all ids. */
#define SYMTAB_CHUNK_BITS 4

#define SYMBOLS_MAX (1U << 23)

struct names {
	struct reclaim rcu;
	struct text_arena *texts;
	struct safe_text module; /* of the last symbol: most follow one of the same module */
	struct chunked symbols;	 /* struct symbol, complete when published; with holes */
};

struct symtab {
	struct keyhash_key secret; /* against functions that were chosen for one bucket */
	struct hashset set;
	_Atomic(struct names *) names; /* released by the writer, acquired by readers */
};

static uint64_t key_hash(const struct symtab *t, const struct symtab_key *key)
{
	struct keyhash h = keyhash_begin(&t->secret);

	keyhash_word(&h, (uint64_t)key->object << 1 | key->made_up);
	keyhash_word(&h, key->variant);
	keyhash_word(&h, key->start);
	return keyhash_end(&h);
}

static void names_free(struct names *n)
{
	chunked_fini(&n->symbols);
	text_arena_free(n->texts);
	free(n);
}

/* NULL when out of memory. */
static struct names *names_new(void)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->texts = text_arena_new();
	if (n->texts &&
	    !chunked_init(&n->symbols, sizeof(struct symbol), SYMTAB_CHUNK_BITS, SYMBOLS_MAX) &&
	    chunked_reserve(&n->symbols, SYMBOL_UNBUILT)) {
		chunked_publish(&n->symbols, SYMBOL_UNBUILT + 1);
		return n;
	}
	names_free(n);
	return NULL;
}

/* The writer's view. */
static struct names *names_of(const struct symtab *t)
{
	return atomic_load_explicit(&t->names, memory_order_relaxed);
}

int symtab_new(struct symtab **out)
{
	struct symtab *t = calloc(1, sizeof(*t));
	struct names *n = names_new();

	if (!t || !n) {
		if (n)
			names_free(n);
		free(t);
		return -ENOMEM;
	}
	t->secret = keyhash_new_key();
	atomic_init(&t->names, n);
	*out = t;
	return 0;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	names_free(names_of(t));
	hashset_fini(&t->set);
	free(t);
}

/* The texts of a look-up, sanitised for its first candidate. */
struct wanted {
	const struct symtab_text *text; /* NULL: any */
	struct safe_text name, module;	/* .str NULL: not yet */
	char name_bytes[TEXT_MAX + 1], module_bytes[TEXT_MAX + 1];
};

static bool is_text(struct safe_text a, struct safe_text b)
{
	return a.size == b.size && !memcmp(a.str, b.str, a.size);
}

static bool is_named(const struct symbol *s, struct wanted *w)
{
	const struct symtab_text *t = w->text;

	if (!t)
		return true;
	if (!w->name.str) {
		w->name =
			text_sanitise(w->name_bytes, sizeof(w->name_bytes), t->name, t->name_size);
		w->module = text_sanitise(w->module_bytes, sizeof(w->module_bytes), t->module,
					  t->module_size);
	}
	return s->kind == t->kind && s->inlined == t->inlined && is_text(s->name, w->name) &&
	       is_text(s->module, w->module);
}

static uint32_t find(const struct symtab *t, const struct symtab_key *key,
		     const struct symtab_text *text)
{
	uint64_t hash = key_hash(t, key);
	uint32_t at = 0, id;
	struct wanted w;

	w.text = text;
	w.name.str = NULL;

	while ((id = hashset_next(&t->set, hash, &at)) != HASHSET_NONE) {
		const struct symbol *s = chunked_at(&names_of(t)->symbols, id);

		if (s->object == key->object && s->start == key->start &&
		    s->variant == key->variant && s->made_up == key->made_up && is_named(s, &w))
			return id;
	}
	return SYMBOL_NONE;
}

uint32_t symtab_find(const struct symtab *t, const struct symtab_key *key)
{
	return find(t, key, NULL);
}

uint32_t symtab_find_named(const struct symtab *t, const struct symtab_key *key,
			   const struct symtab_text *text)
{
	return find(t, key, text);
}

/* Copy a text to the module of @n, unless it is the same as that of the last symbol. */
static struct safe_text module_text(struct names *n, const char *text, size_t size)
{
	if (!n->module.str || n->module.size != size || memcmp(n->module.str, text, size))
		n->module = text_arena_add(n->texts, text, size);
	return n->module;
}

uint32_t symtab_add(struct symtab *t, const struct symtab_key *key, const struct symtab_text *text)
{
	struct names *n = names_of(t);
	uint32_t id = chunked_nr(&n->symbols);
	struct symbol *s = chunked_reserve(&n->symbols, id);

	assert(text->name || !text->name_size);
	if (!s || hashset_reserve(&t->set, 1))
		return SYMBOL_NONE;
	*s = (struct symbol){
		.name = text_arena_add(n->texts, text->name, text->name_size),
		.module = module_text(n, text->module, text->module_size),
		.object = key->object,
		.start = key->start,
		.variant = key->variant,
		.kind = text->kind,
		.made_up = key->made_up,
		.inlined = text->inlined,
	};
	hashset_add(&t->set, key_hash(t, key), id);
	chunked_publish(&n->symbols, id + 1);
	return id;
}

void symtab_set_line(struct symtab *t, uint32_t id, uint32_t line)
{
	const struct symbol *s = symtab_at(t, id);

	if (s)
		atomic_store_explicit(&((struct symbol *)(uintptr_t)s)->line, line,
				      memory_order_relaxed);
}

static void free_later(struct reclaim *r)
{
	reclaim_grace_over();
	names_free(caa_container_of(r, struct names, rcu));
}

/* Copy @s to @id of @to, and add it to @set, which has room. False: out of memory. */
static bool copy(const struct symtab *t, struct names *to, struct hashset *set, uint32_t id,
		 const struct symbol *s)
{
	struct symbol *out = chunked_reserve(&to->symbols, id);
	const struct symtab_key key = { s->object, s->start, s->variant, s->made_up };

	if (!out)
		return false;
	*out = *s;
	out->name = text_arena_add(to->texts, s->name.str, s->name.size);
	out->module = module_text(to, s->module.str, s->module.size);
	hashset_add(set, key_hash(t, &key), id);
	return true;
}

static bool is_live(const uint64_t *live, uint32_t id)
{
	return live[id / 64] >> id % 64 & 1;
}

int symtab_keep(struct symtab *t, const uint64_t *live)
{
	struct names *from = names_of(t), *to = names_new();
	uint32_t nr = chunked_nr(&from->symbols), nr_live = 0;
	struct hashset set = { 0 };
	bool ok;

	for (uint32_t id = 0; id < nr; id++)
		nr_live += is_live(live, id);
	ok = to && !hashset_reserve(&set, nr_live);
	for (uint32_t id = 0; ok && id < nr; id++) {
		const struct symbol *s = is_live(live, id) ? symtab_at(t, id) : NULL;

		ok = !s || copy(t, to, &set, id, s);
	}
	/* The next id is in a chunk that readers may look into for a dropped one. */
	if (!ok || (nr < SYMBOLS_MAX && !chunked_reserve(&to->symbols, nr))) {
		hashset_fini(&set);
		if (to)
			names_free(to);
		return -ENOMEM;
	}
	hashset_fini(&t->set);
	t->set = set;
	chunked_publish(&to->symbols, nr);
	/* Release: the whole table. */
	atomic_store_explicit(&t->names, to, memory_order_release);
	reclaim_later(&from->rcu, free_later);
	return 0;
}

const struct symbol *symtab_at(const struct symtab *t, uint32_t id)
{
	const struct names *n = atomic_load_explicit(&t->names, memory_order_acquire);
	const struct symbol *s = id < chunked_nr(&n->symbols) ? chunked_find(&n->symbols, id)
							      : NULL;

	return s && s->name.str ? s : NULL;
}

uint32_t symtab_nr(const struct symtab *t)
{
	return chunked_nr(&atomic_load_explicit(&t->names, memory_order_acquire)->symbols);
}

size_t symtab_memory(const struct symtab *t)
{
	const struct names *n = names_of(t);

	return sizeof(*t) + sizeof(*n) + hashset_memory(&t->set) + chunked_memory(&n->symbols) +
	       text_arena_size(n->texts);
}

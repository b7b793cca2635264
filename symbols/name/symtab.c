// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions by id, in chunks, and by (object, start). When functions are dropped, the others are
 * copied, with their texts: chunks and texts are freed as a whole.
 *
 * The hash set is private to the loader; readers use the chunked store alone.
 */
#include "symbols/name/symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/chunked.h"
#include "symbols/base/hashset.h"
#include "symbols/base/keyhash.h"
#include "symbols/base/reclaim.h"

/* Small: the functions that remain are spread over all ids. */
#define CHUNK_BITS  4
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
	if (n->texts && !chunked_init(&n->symbols, sizeof(struct symbol), CHUNK_BITS, SYMBOLS_MAX))
		return n;
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions by id, in chunks that never move, and by (object, start).
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

#define CHUNK_BITS  10
#define SYMBOLS_MAX (1U << 23)

struct symtab {
	struct text_arena *texts;
	struct hashset set;
	struct safe_text module; /* of the last symbol: most follow one of the same module */
	struct chunked symbols;	 /* struct symbol, complete when published */
};

static uint64_t key_hash(const struct symtab_key *key)
{
	return hash_u64(hash_u64(((uint64_t)key->object << 1 | key->made_up) ^ key->variant) ^
			key->start);
}

int symtab_new(struct symtab **out)
{
	struct symtab *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->texts = text_arena_new();
	if (chunked_init(&t->symbols, sizeof(struct symbol), CHUNK_BITS, SYMBOLS_MAX) ||
	    !t->texts) {
		symtab_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	chunked_fini(&t->symbols);
	hashset_fini(&t->set);
	text_arena_free(t->texts);
	free(t);
}

static bool is_text(struct safe_text kept, const char *text, size_t size)
{
	char buf[TEXT_MAX + 1];
	struct safe_text t = text_sanitise(buf, sizeof(buf), text, size);

	return t.size == kept.size && !memcmp(t.str, kept.str, t.size);
}

static bool is_named(const struct symbol *s, const struct symtab_text *text)
{
	return s->kind == text->kind && s->inlined == text->inlined &&
	       is_text(s->name, text->name, text->name_size) &&
	       is_text(s->module, text->module, text->module_size);
}

static uint32_t find(const struct symtab *t, const struct symtab_key *key,
		     const struct symtab_text *text)
{
	uint64_t hash = key_hash(key);
	uint32_t at = 0, id;

	while ((id = hashset_next(&t->set, hash, &at)) != HASHSET_NONE) {
		const struct symbol *s = chunked_at(&t->symbols, id);

		if (s->object == key->object && s->start == key->start &&
		    s->variant == key->variant && s->made_up == key->made_up &&
		    (!text || is_named(s, text)))
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

static struct safe_text module_text(struct symtab *t, const struct symtab_text *text)
{
	if (!t->module.str || t->module.size != text->module_size ||
	    memcmp(t->module.str, text->module, text->module_size))
		t->module = text_arena_add(t->texts, text->module, text->module_size);
	return t->module;
}

uint32_t symtab_add(struct symtab *t, const struct symtab_key *key, const struct symtab_text *text)
{
	uint32_t id = chunked_nr(&t->symbols);
	struct symbol *s = chunked_reserve(&t->symbols, id);

	if (!s || hashset_reserve(&t->set, 1))
		return SYMBOL_NONE;
	*s = (struct symbol){
		.name = text_arena_add(t->texts, text->name, text->name_size),
		.module = module_text(t, text),
		.object = key->object,
		.start = key->start,
		.variant = key->variant,
		.kind = text->kind,
		.made_up = key->made_up,
		.inlined = text->inlined,
	};
	hashset_add(&t->set, key_hash(key), id);
	chunked_publish(&t->symbols, id + 1);
	return id;
}

const struct symbol *symtab_at(const struct symtab *t, uint32_t id)
{
	return id < chunked_nr(&t->symbols) ? chunked_at(&t->symbols, id) : NULL;
}

uint32_t symtab_nr(const struct symtab *t)
{
	return chunked_nr(&t->symbols);
}

size_t symtab_memory(const struct symtab *t)
{
	return sizeof(*t) + hashset_memory(&t->set) + chunked_memory(&t->symbols) +
	       text_arena_size(t->texts);
}

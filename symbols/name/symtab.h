/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that were named: dense ids, append-only, never moved.
 *
 * One writer (the loader); readers by id from any thread, lock-free.
 */
#ifndef SYMBOLS_NAME_SYMTAB_H
#define SYMBOLS_NAME_SYMTAB_H

#include "symbols/name/symbol.h"

struct symtab;

int symtab_new(struct symtab **out);
void symtab_free(struct symtab *t);

/*
 * What makes a function: its object and start, and where code changes in place
 * or has no start of its own, its name. Made-up ones are apart.
 */
struct symtab_key {
	uint32_t object;
	uint64_t start;
	uint64_t variant; /* hash_name() of the name; 0: the start is enough */
	bool made_up;
};

/* Writer. The id of @key, or SYMBOL_NONE. */
uint32_t symtab_find(const struct symtab *t, const struct symtab_key *key);
/*
 * Writer. Add @key, not there before; texts are foreign bytes and are copied,
 * cleaned. SYMBOL_NONE when there is no room or no memory.
 */
struct symtab_text {
	const char *name, *module;
	size_t name_size, module_size;
	char kind;
	bool inlined;
};
uint32_t symtab_add(struct symtab *t, const struct symtab_key *key, const struct symtab_text *text);

/* Any thread. */
const struct symbol *symtab_at(const struct symtab *t, uint32_t id);
uint32_t symtab_nr(const struct symtab *t);
/* Writer. */
size_t symtab_memory(const struct symtab *t);

#endif

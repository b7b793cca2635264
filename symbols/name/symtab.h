/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The named functions, by ids that are for good. Those that nothing refers to may be dropped; their
 * ids are not given out again.
 *
 * One writer (the loader); readers by id from any thread, lock-free: inside an RCU read-side
 * section where functions are dropped.
 */
#ifndef SYMBOLS_NAME_SYMTAB_H
#define SYMBOLS_NAME_SYMTAB_H

#include "symbols/name/symbol.h"

struct symtab;

int symtab_new(struct symtab **out);
void symtab_free(struct symtab *t);

/*
 * Identity of a function: its object and start, and its name if code changes in
 * place or has no start. Made-up names are separate. Functions of scripts and JITs are
 * in no process's object: many processes have them.
 */
struct symtab_key {
	uint32_t object;
	uint64_t start;
	uint64_t variant; /* keyhash_name() of the name; 0: the start is enough */
	bool made_up;
};

struct symtab_text {
	const char *name, *module;
	size_t name_size, module_size;
	char kind;
	bool inlined;
};
/* Writer. Return the id of @key, or SYMBOL_NONE. */
uint32_t symtab_find(const struct symtab *t, const struct symtab_key *key);
/*
 * The same of a function that many processes have: kind and texts are compared too, for names of
 * several users may have one hash.
 */
uint32_t symtab_find_named(const struct symtab *t, const struct symtab_key *key,
			   const struct symtab_text *text);
/*
 * Writer. Add @key, which must be new; texts are foreign bytes and are copied,
 * sanitised. SYMBOL_NONE when the table is full or out of memory.
 */
uint32_t symtab_add(struct symtab *t, const struct symtab_key *key, const struct symtab_text *text);

/*
 * Writer. Drop the functions without a bit in @live, which has one for each id below symtab_nr();
 * their memory is freed after a grace period. 0; -ENOMEM: all are kept.
 */
int symtab_keep(struct symtab *t, const uint64_t *live);

/* Any thread. NULL: not known, or dropped. */
const struct symbol *symtab_at(const struct symtab *t, uint32_t id);
/* Any thread. Return the number of ids given out. */
uint32_t symtab_nr(const struct symtab *t);
/* Writer. */
size_t symtab_memory(const struct symtab *t);

#endif

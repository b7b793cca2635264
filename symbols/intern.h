/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insert-only lock-free interning: a key gets a dense u32 id, once.
 *
 * The table holds slots only; the caller stores the entries (in chunks, so
 * that ids stay where they are) and compares keys. Open addressing; a slot is
 * (tag << 32 | id + 1), 0 when empty, and is published with release after the
 * entry is complete, so whoever finds an id (acquire) can read its entry.
 *
 * Threads: find and insert from any thread, lock-free. intern_grow() from one
 * thread (the builder): it fills a larger slot array from the dense entries
 * and publishes it; an insert that races with it may give one key two ids,
 * which every user of this table tolerates (counts are summed by symbol).
 * Old slot arrays are freed through urcu-qsbr: callers are registered readers.
 *
 * Full is a normal state: INTERN_FULL, counted by the caller.
 */
#ifndef SYMBOLS_INTERN_H
#define SYMBOLS_INTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INTERN_FULL UINT32_MAX

struct intern_slots;

struct intern {
	_Atomic(struct intern_slots *) slots;
	_Alignas(64) atomic_uint next;	/* ids handed out (may pass max_ids while full) */
	uint32_t max_ids;
};

struct intern_ops {
	/* Does entry @id hold @key? Called only for published ids. */
	bool (*same)(const void *store, uint32_t id, const void *key);
	/* Write @key into entry @id; false when its storage is out (then: full). */
	bool (*write)(void *store, uint32_t id, const void *key);
	/* The hash of entry @id, for growing; 0 if the entry was never completed. */
	uint64_t (*hash)(const void *store, uint32_t id);
};

int intern_init(struct intern *t, uint32_t nr_slots, uint32_t max_ids);
void intern_fini(struct intern *t);

/* The id of @key, inserted if new. @hash: all 64 bits well mixed, not 0. */
uint32_t intern_get(struct intern *t, const struct intern_ops *ops, void *store, uint64_t hash,
		    const void *key);
/* Ids handed out; entries below may still be under construction. */
uint32_t intern_nr(const struct intern *t);
/* Double the slots when over half full. Builder only; 0 or -ENOMEM (stay as is). */
int intern_grow(struct intern *t, const struct intern_ops *ops, void *store);

#endif

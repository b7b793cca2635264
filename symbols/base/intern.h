/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insert-only lock-free interning: each key gets one dense u32 id.
 *
 * The table holds slots only; the caller stores the entries (in chunks, so
 * that they never move) and compares keys. Open addressing; a slot is
 * (tag << 32 | id + 1), 0 when empty, and is published with release after the
 * entry is complete: a thread that finds an id (acquire) can read its entry. The
 * tag is the upper half of the hash and decides the home slot, so growing reads
 * no entry.
 *
 * Threads: find and insert from any thread, lock-free. intern_grow() from one
 * thread (the builder) at the same time. Old slot arrays are freed after a grace
 * period of urcu-qsbr, so callers of intern_get() are registered readers.
 *
 * When two threads insert one key at the same time, one id is wasted: its entry
 * is complete, but never found.
 *
 * A full table is a normal state: INTERN_FULL, counted by the caller. Probes are bounded, so a long
 * run of full slots acts as a full table, also for keys of other processes: a hash of keys that a
 * process can choose must use the table's secret.
 */
#ifndef SYMBOLS_BASE_INTERN_H
#define SYMBOLS_BASE_INTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/keyhash.h"

#define INTERN_FULL UINT32_MAX

struct intern_slots;

struct intern {
	_Atomic(struct intern_slots *) slots;
	struct keyhash_key secret;     /* for the caller's hash; k1 is odd: to multiply with */
	_Alignas(64) atomic_uint next; /* ids handed out */
	uint32_t max_ids;
};

struct intern_ops {
	/* Compare entry @id with @key. Called only for published ids. */
	bool (*same)(const void *store, uint32_t id, const void *key);
	/*
	 * Test whether entry @id has storage. Called before an id is taken, so that
	 * a full table costs no ids.
	 */
	bool (*room)(const void *store, uint32_t id, const void *key);
	/*
	 * Write @key into entry @id. False: no storage, and nothing was written: the
	 * id may be used again.
	 */
	bool (*write)(void *store, uint32_t id, const void *key);
};

int intern_init(struct intern *t, uint32_t nr_slots, uint32_t max_ids);
void intern_fini(struct intern *t);

/* Return the id of @key, inserted if new. @hash: its upper 32 bits are used, well mixed. */
uint32_t intern_get(struct intern *t, const struct intern_ops *ops, void *store, uint64_t hash,
		    const void *key);
/* Return the number of ids handed out; the last entries may be incomplete. */
uint32_t intern_nr(const struct intern *t);
/* Double the slots when over half full. Builder only. 0 or -ENOMEM: unchanged. */
int intern_grow(struct intern *t);
/* Return the number of slots. Builder only. */
uint64_t intern_slots_nr(const struct intern *t);
/* Return the bytes of the slots. Builder only. */
size_t intern_memory(const struct intern *t);
/* Return the bytes that the next intern_grow() will add. Builder only. */
size_t intern_growth(const struct intern *t);

/*
 * ThreadSanitizer does not see the grace periods of liburcu. A lock-free reader ends
 * with grace_reader_done(table), and the writer calls grace_waited(table) after
 * waiting, before it frees. No code without SAN=thread.
 */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define GRACE_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define GRACE_TSAN
#endif
#ifdef GRACE_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define grace_reader_done(table) __tsan_release(table)
#define grace_waited(table)	 __tsan_acquire(table)
#else
#define grace_reader_done(table) ((void)(table))
#define grace_waited(table)	 ((void)(table))
#endif

#endif

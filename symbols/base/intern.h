/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Insert-only lock-free interning: a key gets a dense u32 id, once.
 *
 * The table holds slots only; the caller stores the entries (in chunks, so
 * that ids stay where they are) and compares keys. Open addressing; a slot is
 * (tag << 32 | id + 1), 0 when empty, and is published with release after the
 * entry is complete, so whoever finds an id (acquire) can read its entry. The
 * tag is the upper half of the key's hash and says where it belongs, too: to
 * grow, no entry is looked at.
 *
 * Threads: find and insert from any thread, lock-free. intern_grow() from one
 * thread (the builder), beside them: a key has one id all the same. Old slot
 * arrays are freed after a grace period of urcu-qsbr: callers of intern_get()
 * that run beside intern_grow() are registered readers.
 *
 * Of two threads that insert one key at once, the loser's id is wasted: its
 * entry is complete, but nobody ever finds it.
 *
 * Full is a normal state: INTERN_FULL, counted by the caller.
 */
#ifndef SYMBOLS_BASE_INTERN_H
#define SYMBOLS_BASE_INTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERN_FULL UINT32_MAX

struct intern_slots;

struct intern {
	_Atomic(struct intern_slots *) slots;
	_Alignas(64) atomic_uint next; /* ids handed out (may pass max_ids while full) */
	uint32_t max_ids;
};

struct intern_ops {
	/* Does entry @id hold @key? Called only for published ids. */
	bool (*same)(const void *store, uint32_t id, const void *key);
	/*
	 * Is there storage for @key as entry @id? Asked before an id is taken, so
	 * that threads that meet a full table do not burn ids on it.
	 */
	bool (*room)(const void *store, uint32_t id, const void *key);
	/*
	 * Write @key into entry @id; false when its storage is out after all
	 * (then: full), with nothing written: the id may be handed out again.
	 */
	bool (*write)(void *store, uint32_t id, const void *key);
};

int intern_init(struct intern *t, uint32_t nr_slots, uint32_t max_ids);
void intern_fini(struct intern *t);

/* The id of @key, inserted if new. @hash: its upper 32 bits are used, well mixed. */
uint32_t intern_get(struct intern *t, const struct intern_ops *ops, void *store, uint64_t hash,
		    const void *key);
/* Ids handed out; entries below may still be under construction. */
uint32_t intern_nr(const struct intern *t);
/* Double the slots when over half full. Builder only; 0 or -ENOMEM (stay as is). */
int intern_grow(struct intern *t);
/* Slots now; it grows when more ids are out than half of them. Builder only. */
uint64_t intern_slots_nr(const struct intern *t);
/* Bytes of slots. Builder only. */
size_t intern_memory(const struct intern *t);
/* Bytes that the next intern_grow() will add, 0 if it has nothing to do. Builder only. */
size_t intern_growth(const struct intern *t);

/*
 * liburcu's grace periods are invisible to ThreadSanitizer. A lock-free reader
 * ends with grace_reader_done(table), the writer that waited says
 * grace_waited(table) before it frees: nothing outside SAN=thread.
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

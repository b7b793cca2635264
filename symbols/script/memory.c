// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of a process, for the languages: in pieces, read ahead for the next sample, and compared
 * at the end; which state a thread has; words for a description.
 *
 * Runs on: a reader; words: a helper.
 */
#include "symbols/script/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "symbols/base/base.h"

/*
 * Invariants: pieces below m->fetched were requested; they, and
 * LANG_BYTES_BEHIND bytes behind each, have no byte of an earlier sample, which may be another
 * user's.
 */

#define PROBES 8

void lang_memory_begin(struct lang_memory *m)
{
	m->nr = m->fetched = m->used_bytes = m->calls = 0;
	m->error = 0;
	m->any_ahead = false;
	m->tail_first = m->tail_end = 0;
	memset(m->tail, 0, sizeof(m->tail));
}

int lang_memory_queue(struct lang_memory *m, uint64_t addr, uint32_t size,
		      enum lang_piece_kind kind)
{
	if (m->nr == LANG_PIECES_MAX || !size || size > LANG_PIECE_MAX ||
	    size > LANG_BYTES_MAX - m->used_bytes || addr < 4096 || addr >= 1ULL << 56)
		return -1;
	m->pieces[m->nr] = (struct lang_piece){ addr, size, m->used_bytes };
	m->read_whole[m->nr] = false;
	m->kind[m->nr] = (uint8_t)kind;
	/* A piece may end inside a word: the rest of that must not be of an earlier sample. */
	if (size & 7)
		memset(m->bytes + m->used_bytes + (size & ~7U), 0, 8);
	m->used_bytes += (size + 7) & ~7U;
	if (m->used_bytes > LANG_BYTES_MAX)
		m->used_bytes = LANG_BYTES_MAX;
	return (int)m->nr++;
}

static uint32_t slot_of(uint64_t addr)
{
	return (uint32_t)hash_u64(addr) & (LANG_MEMORY_SLOTS - 1);
}

/* Queue a piece that a later lang_memory_want() may need; as lang_memory_want(). */
static int lang_memory_want_ahead(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint32_t at = slot_of(addr);
	int piece = lang_memory_queue(m, addr, size, PIECE_AHEAD);

	if (piece < 0)
		return piece;
	if (!m->any_ahead)
		memset(m->slots, 0, sizeof(m->slots));
	m->any_ahead = true;
	/* A piece without a slot would only be read twice. */
	for (int i = 0; i < PROBES && m->slots[at]; i++)
		at = (at + 1) & (LANG_MEMORY_SLOTS - 1);
	m->slots[at] = (uint16_t)(piece + 1);
	return piece;
}

static int find_ahead(const struct lang_memory *m, uint64_t addr, uint32_t size)
{
	uint32_t at = slot_of(addr);

	for (int i = 0; i <= PROBES && m->slots[at]; i++) {
		int piece = m->slots[at] - 1;

		if (m->pieces[piece].addr == addr && m->pieces[piece].size == size)
			return piece;
		at = (at + 1) & (LANG_MEMORY_SLOTS - 1);
	}
	return -1;
}

static int want(struct lang_memory *m, uint64_t addr, uint32_t size, enum lang_piece_kind kind)
{
	int piece = m->any_ahead ? find_ahead(m, addr, size) : -1;

	if (piece < 0)
		return lang_memory_queue(m, addr, size, kind);
	m->kind[piece] = (uint8_t)kind;
	return piece;
}

int lang_memory_want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return want(m, addr, size, PIECE_NEEDED);
}

int lang_memory_want_once(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return want(m, addr, size, PIECE_ONCE);
}

/* Set a piece of the tail. */
static void lang_memory_set_tail(struct lang_memory *m, int i, uint64_t addr, uint32_t size)
{
	m->tail[i].addr = addr;
	m->tail[i].size = size;
}

static void queue_tail(struct lang_memory *m)
{
	m->tail_first = m->nr;
	for (int i = 0; i < LANG_TAIL; i++)
		lang_memory_queue(m, m->tail[i].addr, m->tail[i].size, PIECE_TAIL);
	m->tail_end = m->nr;
}

/* Clear a piece that could not be read: decoders may look at it behind the piece before. */
static void clear(struct lang_memory *m, uint32_t piece)
{
	memset(m->bytes + m->pieces[piece].at, 0, m->pieces[piece].size);
}

/* Read all pieces that are queued. */
static bool fetch(struct lang_memory *m)
{
	if (m->fetched < m->nr)
		memset(m->bytes + m->used_bytes, 0, LANG_BYTES_BEHIND);
	while (m->fetched < m->nr) {
		const int wanted = (int)MIN(m->nr - m->fetched, LANG_READ_MAX);
		int nr;

		if (m->calls == LANG_CALLS_MAX) {
			memset(m->bytes + m->pieces[m->fetched].at, 0, LANG_BYTES_BEHIND);
			return false;
		}
		m->calls++;
		nr = m->read(m->ctx, m->pieces + m->fetched, (uint32_t)wanted, m->bytes);
		m->error = nr < 0 ? nr : 0;
		nr = MAX(MIN(nr, wanted), 0);
		memset(m->read_whole + m->fetched, true, (size_t)nr);
		m->fetched += (uint32_t)nr;
		if (nr < wanted)
			clear(m, m->fetched++);
	}
	return true;
}

bool lang_memory_fetch(struct lang_memory *m)
{
	if (m->fetched == m->nr)
		return true;
	queue_tail(m);
	return fetch(m);
}

/* Read the tail again, alone. */
static bool lang_memory_fetch_tail(struct lang_memory *m)
{
	queue_tail(m);
	return fetch(m);
}

const uint8_t *lang_memory_piece(const struct lang_memory *m, int piece)
{
	return piece >= 0 && (uint32_t)piece < m->fetched && m->read_whole[piece]
		       ? m->bytes + m->pieces[piece].at
		       : NULL;
}

/* The bytes at @addr if they are in a piece from number @first to @end; NULL. */
static const uint8_t *lang_memory_bytes(const struct lang_memory *m, uint32_t first, uint32_t end,
					uint64_t addr, uint32_t size)
{
	for (uint32_t i = first; i < end; i++) {
		const struct lang_piece *p = &m->pieces[i];
		uint64_t at = addr - p->addr; /* too large if it is below */

		if (at < p->size && size <= p->size - at && m->read_whole[i])
			return m->bytes + p->at + at;
	}
	return NULL;
}

const uint8_t *lang_memory_read(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	int piece = lang_memory_want(m, addr, size);

	return piece >= 0 && lang_memory_fetch(m) ? lang_memory_piece(m, piece) : NULL;
}

/* The ways in which a thread may be kept. */
static struct lang_thread *thread_ways(struct lang_reader *r, uint32_t process, pid_t tid)
{
	uint64_t hash = hash_u64((uint64_t)process << 32 ^ (uint32_t)tid);

	return &r->threads[hash & (LANG_THREADS - LANG_WAYS)];
}

struct lang_thread *lang_memory_thread(struct lang_reader *r, uint32_t process, pid_t tid)
{
	struct lang_thread *ways = thread_ways(r, process, tid);

	for (uint32_t i = 0; i < LANG_WAYS; i++)
		if (ways[i].process == process && ways[i].tid == tid)
			return &ways[i];
	return NULL;
}

/* Return a way that is free, or gives way: each time another one. */
static struct lang_thread *free_thread(struct lang_reader *r, uint32_t process, pid_t tid)
{
	struct lang_thread *ways = thread_ways(r, process, tid);

	for (uint32_t i = 0; i < LANG_WAYS; i++)
		if (!ways[i].process)
			return &ways[i];
	return &ways[r->next_way++ & (LANG_WAYS - 1)];
}

void lang_chain_keep_thread(struct lang_reader *r, uint32_t process, pid_t tid, uint64_t state,
			    uint64_t id)
{
	struct lang_thread *t = lang_memory_thread(r, process, tid);

	if (t && t->state == state && t->id == id)
		return;
	if (!t)
		t = free_thread(r, process, tid);
	t->process = process;
	t->tid = tid;
	t->state = state;
	t->id = id;
	t->nr_ahead = t->nr_more = t->compared = 0;
	memset(t->again, 0, sizeof(t->again));
}

/* ---- the tail ---- */

static const uint8_t *in_tail(const struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return lang_memory_bytes(m, m->tail_first, m->tail_end, addr, size);
}

/* Read last: the state again, and @size bytes of the stack. */
void prefetch_set_tail(struct lang_reader *r, const struct lang_sample *s, uint32_t size)
{
	const struct lang_work *w = &r->work;

	for (int i = 0; i < 2; i++)
		lang_memory_set_tail(&r->memory, i, w->again[i].addr,
				     w->first_read[i] ? w->again[i].size : 0);
	lang_memory_set_tail(&r->memory, 2, s->sp, size);
}

/* Return whether nothing was read after the last tail, and it has all that is needed. */
static bool is_tail_enough(const struct lang_reader *r, const struct lang_sample *s, uint32_t size)
{
	const struct lang_memory *m = &r->memory;
	const struct lang_work *w = &r->work;

	if (m->nr != m->tail_end || (size && !in_tail(m, s->sp, size)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(w->again); i++)
		if (w->first_read[i] && !in_tail(m, w->again[i].addr, w->again[i].size))
			return false;
	return true;
}

/*
 * How far the live stack equals the copy: the address behind the last equal word. 0 when the state
 * of the thread has changed since it was read.
 */
uint64_t prefetch_same_up_to(struct lang_reader *r, const struct lang_sample *s, uint32_t size)
{
	struct lang_memory *m = &r->memory;
	const struct lang_work *w = &r->work;
	const uint8_t *live;
	uint32_t at = 0;

	if (!is_tail_enough(r, s, size) && !lang_memory_fetch_tail(m))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(w->again); i++) {
		const uint8_t *now = in_tail(m, w->again[i].addr, w->again[i].size);

		if (w->first_read[i] && (!now || memcmp(now, w->first_read[i], w->again[i].size)))
			return 0;
	}
	live = size ? in_tail(m, s->sp, size) : NULL;
	lang_chain_need(s, size);
	while (live && at < size && bytes_u64(live + at) == bytes_u64(s->stack + at))
		at += 8;
	return s->sp + at;
}

/*
 * Memory read ahead: at a sample, the pieces that the thread's last samples needed are
 * read in the first call. If nothing else is needed, one call is all.
 */

#define PAGE 4096ULL

/* Larger pieces are texts, which are needed once. */
#define MORE_SIZE 256U

/* A piece that this many samples did not need is not read ahead. */
#define PREFETCH_IDLE_MAX 2

void prefetch_want(struct lang_reader *r, struct lang_thread *t, const struct lang_sample *s)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_ahead; i++) {
		lang_memory_queue(m, t->ahead[i].addr, t->ahead[i].size, PIECE_WINDOW);
		if (++t->idle_ahead[i] > PREFETCH_IDLE_MAX)
			continue;
		t->ahead[nr] = t->ahead[i];
		t->idle_ahead[nr++] = t->idle_ahead[i];
	}
	t->nr_ahead = nr;
	for (uint32_t i = 0; i < t->nr_more; i++)
		w->more[i] = lang_memory_want_ahead(m, t->more[i].addr, t->more[i].size);
	w->first_new = m->nr;
	for (int i = 0; i < 2; i++)
		lang_memory_set_tail(m, i, t->again[i].addr, t->again[i].size);
	lang_memory_set_tail(m, 2, s->sp, (uint32_t)MIN(t->compared, s->stack_size) & ~7U);
}

/* Move the last of @nr pieces to its place by address: near ones are read as one. */
static void insert_sorted(struct lang_ahead *pieces, uint8_t *idle, uint32_t nr)
{
	struct lang_ahead last = pieces[nr - 1];
	uint32_t at = search_split(nr - 1, i, pieces[i].addr <= last.addr);

	memmove(pieces + at + 1, pieces + at, (nr - 1 - at) * sizeof(*pieces));
	memmove(idle + at + 1, idle + at, nr - 1 - at);
	pieces[at] = last;
	idle[at] = 0;
}

/* Read this piece ahead at the next sample. */
static void keep_window(const struct lang_memory *m, struct lang_thread *t, uint32_t piece)
{
	const struct lang_piece *p = &m->pieces[piece];

	for (uint32_t i = 0; i < t->nr_ahead; i++) {
		if (t->ahead[i].addr != p->addr)
			continue;
		t->ahead[i].size = MAX(t->ahead[i].size, p->size);
		t->idle_ahead[i] = 0;
		return;
	}
	if (t->nr_ahead == LANG_AHEAD)
		return;
	t->ahead[t->nr_ahead++] = (struct lang_ahead){ p->addr, p->size };
	insert_sorted(t->ahead, t->idle_ahead, t->nr_ahead);
}

/* Find the bytes of a frame in the windows read so far. */
static const uint8_t *find_frame(const struct lang_memory *m, struct lang_thread *t, uint64_t addr,
				 uint32_t size)
{
	for (uint32_t i = 0; i < m->fetched; i++) {
		const uint8_t *bytes;

		if (m->kind[i] != PIECE_WINDOW)
			continue;
		bytes = lang_memory_bytes(m, i, i + 1, addr, size);
		if (!bytes)
			continue;
		keep_window(m, t, i);
		return bytes;
	}
	return NULL;
}

const uint8_t *prefetch_frame(struct lang_reader *r, struct lang_thread *t, uint64_t addr,
			      uint32_t size, bool alone)
{
	struct lang_memory *m = &r->memory;
	uint32_t page = (uint32_t)(addr & (PAGE - 1));
	const uint8_t *bytes = find_frame(m, t, addr, size);

	if (bytes)
		return bytes;
	if (alone) {
		lang_memory_queue(m, addr, size, PIECE_WINDOW);
	} else {
		/* Its callers are below it, mostly. */
		lang_memory_queue(m, addr - page, page + size, PIECE_WINDOW);
		if (page < PAGE / 2)
			lang_memory_queue(m, addr - page - PAGE, PAGE, PIECE_WINDOW);
	}
	return lang_memory_fetch(m) ? find_frame(m, t, addr, size) : NULL;
}

/* The piece to read for the bytes @a: the window on them, if there is one. */
static struct lang_ahead around(const struct lang_thread *t, const struct lang_ahead *a)
{
	for (uint32_t i = 0; i < t->nr_ahead; i++)
		if (a->addr >= t->ahead[i].addr &&
		    a->addr + a->size <= t->ahead[i].addr + t->ahead[i].size)
			return t->ahead[i];
	return *a;
}

static void keep_more(const struct lang_memory *m, const struct lang_work *w, struct lang_thread *t)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->nr_more; i++) {
		bool needed = w->more[i] >= 0 && m->kind[w->more[i]] == PIECE_NEEDED;
		uint8_t idle = needed ? 0 : (uint8_t)(t->idle_more[i] + 1);

		if (idle > PREFETCH_IDLE_MAX)
			continue;
		t->more[nr] = t->more[i];
		t->idle_more[nr++] = idle;
	}
	for (uint32_t i = w->first_new; i < m->nr && nr < LANG_MORE; i++) {
		if (m->kind[i] != PIECE_NEEDED || m->pieces[i].size > MORE_SIZE)
			continue;
		t->more[nr++] = (struct lang_ahead){ m->pieces[i].addr, m->pieces[i].size };
		insert_sorted(t->more, t->idle_more, nr);
	}
	t->nr_more = nr;
}

/* Note the pieces that this sample needed. @compared: bytes of the stack that had to be compared.
 */
void prefetch_keep(const struct lang_reader *r, struct lang_thread *t, uint32_t compared)
{
	const struct lang_work *w = &r->work;

	keep_more(&r->memory, w, t);
	for (size_t i = 0; i < ARRAY_SIZE(t->again); i++)
		t->again[i] = w->first_read[i] ? around(t, &w->again[i])
					       : (struct lang_ahead){ 0, 0 };
	/* Follow a deeper stack now, a flatter one slowly: another call costs more than 1 KiB. */
	t->compared = compared > t->compared ? compared
					     : t->compared - (t->compared - compared) / 128;
}

/* ---- words for a description ---- */

bool lang_memory_copy(pid_t pid, uint64_t addr, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Set the reason by errno. */
void lang_memory_refused(struct lang_process *p)
{
	p->refused = errno == EPERM || errno == EACCES;
	p->reason = p->refused ? "no permission to read its memory" : "its memory cannot be read";
}

/* Return a word of the process; 0: it cannot be read. */
uint64_t lang_memory_word(pid_t pid, uint64_t addr)
{
	uint64_t word;

	return lang_memory_is_pointer(addr) && lang_memory_copy(pid, addr, &word, 8) ? word : 0;
}

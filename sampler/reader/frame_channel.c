// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames on their way from a reader to its sampler thread, which checks all of them; the memory
 * that both have; one record of a ring that another thread consumes.
 *
 * Runs on: a reader (put), a sampler thread (find).
 */
#include "sampler/reader/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/process/process.h"
#include "symbols/script/script.h"

enum kind { PADDING, FUNCTION, SLOT };

/* The head of each part of the ring. */
struct part {
	uint32_t kind;
	uint32_t size; /* with the head; a multiple of 8 */
};

/* A function; its name, file and table follow. Ids are 0, 1, and so on. */
struct function {
	uint32_t id;
	uint32_t process, user; /* that it was read in */
	uint32_t first_line, position, table_size;
	uint16_t name_size, file_size;
	uint8_t language, version, compiled, none;
};

_Static_assert(V8_TABLE_MAX >= SCRIPT_FUNCTIONS_TABLE_MAX, "a table of V8 is the largest");

#define FRAME_CHANNEL_TEXT_MAX (2 * SCRIPT_FUNCTIONS_TEXT_MAX + V8_TABLE_MAX)

/*
 * What one call takes at most: a slot costs 1, a function, which is hashed and copied, COST. The
 * ring of an honest reader is far from it.
 */
#define BUDGET 16384U

#define COST 16U

struct frame_channel_copy {
	uint8_t text[FRAME_CHANNEL_TEXT_MAX];
	_Alignas(8) uint8_t slot[sizeof(struct lang_slot) +
				 LANG_FRAMES_MAX * sizeof(struct lang_frame) + LANG_OTHER_MAX];
};

static uint8_t *at(struct frame_channel_ring *ring, uint64_t pos)
{
	return ring->bytes + (pos & (FRAME_CHANNEL_SIZE - 1));
}

static uint64_t left_at(uint64_t pos)
{
	return FRAME_CHANNEL_SIZE - (pos & (FRAME_CHANNEL_SIZE - 1));
}

/* ---- the reader ---- */

/* Begin a part of @size bytes at *@head. Return its bytes; NULL: the ring is full. */
static uint8_t *begin_part(struct frame_channel_ring *ring, uint64_t *head, enum kind kind,
			   uint64_t size)
{
	/* Acquire: the consumer's reads of this space precede our writes. */
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint64_t left = left_at(*head), skip;
	struct part p = { PADDING, (uint32_t)left };

	size = (sizeof(p) + size + 7) & ~7ULL;
	skip = left < size ? left : 0;
	if (*head + skip + size - tail > FRAME_CHANNEL_SIZE)
		return NULL;
	if (skip)
		memcpy(at(ring, *head), &p, sizeof(p));
	*head += skip;
	p = (struct part){ kind, (uint32_t)size };
	memcpy(at(ring, *head), &p, sizeof(p));
	*head += size;
	return at(ring, *head - size) + sizeof(p);
}

static bool put_function(struct frame_channel_ring *ring, uint64_t *head,
			 const struct script_functions *codes, uint32_t id)
{
	const struct code_text *t = script_functions_at(codes, id);
	const struct function f = {
		.id = id,
		.process = script_functions_process(codes, id),
		.user = t->user,
		.first_line = t->first_line,
		.position = t->position,
		.table_size = t->table_size,
		.name_size = t->name_size,
		.file_size = t->file_size,
		.language = t->language,
		.version = t->version,
		.compiled = t->compiled,
	};
	uint8_t *out = begin_part(ring, head, FUNCTION,
				  sizeof(f) + t->name_size + t->file_size + t->table_size);

	if (!out)
		return false;
	memcpy(out, &f, sizeof(f));
	out += sizeof(f);
	memcpy(out, t->name, t->name_size);
	memcpy(out + t->name_size, t->file, t->file_size);
	if (t->table_size)
		memcpy(out + t->name_size + t->file_size, t->table, t->table_size);
	return true;
}

bool frame_channel_put(struct frame_channel_writer *w, const struct lang_slot *slot,
		       const void *frames, const void *other)
{
	uint64_t head = atomic_load_explicit(&w->ring->head, memory_order_relaxed);
	const size_t size = slot->nr * sizeof(struct lang_frame);
	uint32_t nr = script_functions_nr(w->codes);
	uint8_t *out;

	assert((frames || !slot->nr) && (other || !slot->other.size));
	while (w->nr_sent < nr && put_function(w->ring, &head, w->codes, w->nr_sent)) {
		w->nr_sent++;
		/* Release: the function; pairs with frame_channel_find(). */
		atomic_store_explicit(&w->ring->head, head, memory_order_release);
	}
	out = w->nr_sent == nr
		      ? begin_part(w->ring, &head, SLOT, sizeof(*slot) + size + slot->other.size)
		      : NULL;
	if (!out)
		return false;
	memcpy(out, slot, sizeof(*slot));
	if (size)
		memcpy(out + sizeof(*slot), frames, size);
	if (slot->other.size)
		memcpy(out + sizeof(*slot) + size, other, slot->other.size);
	/* Release: the slot; pairs with frame_channel_find(). */
	atomic_store_explicit(&w->ring->head, head, memory_order_release);
	return true;
}

/* ---- the sampler thread ---- */

int frame_channel_init(struct frame_channel *f, struct frame_channel_ring *ring,
		       struct script_functions *codes)
{
	*f = (struct frame_channel){ .ring = ring, .codes = codes };
	f->copy = malloc(sizeof(*f->copy));
	f->ids = alloc_sparse(SCRIPT_FUNCTIONS_MAX * sizeof(*f->ids));
	if (f->copy && f->ids)
		return 0;
	frame_channel_fini(f);
	return -ENOMEM;
}

void frame_channel_fini(struct frame_channel *f)
{
	free_sparse(f->ids, SCRIPT_FUNCTIONS_MAX * sizeof(*f->ids));
	free(f->copy);
	*f = (struct frame_channel){ .ring = NULL };
}

/* Return whether @in, of @size bytes with its texts, makes sense. */
static bool is_sane(const struct function *in, size_t size)
{
	const uint32_t table_max = in->language == LANG_NODE ? V8_TABLE_MAX
							     : SCRIPT_FUNCTIONS_TABLE_MAX;

	return in->name_size <= SCRIPT_FUNCTIONS_TEXT_MAX &&
	       in->file_size <= SCRIPT_FUNCTIONS_TEXT_MAX && in->table_size <= table_max &&
	       (size_t)in->name_size + in->file_size + in->table_size <= size - sizeof(*in) &&
	       in->language > LANG_NONE && in->language < LANG_NR;
}

/* Add function @in to @f->codes, with a copy of its @texts. Return its id there, or CODE_NONE. */
static uint32_t add_function(struct frame_channel *f, const struct function *in,
			     const uint8_t *texts)
{
	uint8_t *text = f->copy->text, *table = text + in->name_size + in->file_size;
	const struct code_text t = {
		.language = in->language,
		.version = in->version,
		.compiled = in->language == LANG_NODE && in->compiled,
		.name_size = in->name_size,
		.file_size = in->file_size,
		.first_line = in->first_line,
		.position = in->position,
		.table_size = in->table_size,
		.user = in->user,
		.name = (const char *)text,
		.file = (const char *)text + in->name_size,
		.table = table,
	};

	/* The reader may change them at any time. */
	memcpy(text, texts, (size_t)in->name_size + in->file_size + in->table_size);
	if (t.compiled)
		v8table_translate(table, in->table_size, f->ids, f->nr_ids, CODE_NONE);
	return script_functions_add_text(f->codes, in->process, &t);
}

/*
 * Take a function of @size bytes at @bytes. False: it makes no sense. It has an id even so: those
 * of later ones are true.
 */
static bool take_function(struct frame_channel *f, const uint8_t *bytes, size_t size)
{
	struct function in;
	bool sane;

	if (size < sizeof(in))
		return false;
	memcpy(&in, bytes, sizeof(in));
	if (in.id != f->nr_ids || in.id >= SCRIPT_FUNCTIONS_MAX)
		return false;
	sane = is_sane(&in, size);
	f->ids[f->nr_ids] = sane ? add_function(f, &in, bytes + sizeof(in)) : CODE_NONE;
	f->nr_ids++;
	return sane;
}

/* Set the id of @f->codes. False: there is none. */
static bool translate(const struct frame_channel *f, uint32_t *code)
{
	*code = *code < f->nr_ids ? f->ids[*code] : CODE_NONE;
	return *code != CODE_NONE;
}

/* Copy a slot of @size bytes, and check it. NULL: it makes no sense. */
static const struct lang_slot *take_slot(struct frame_channel *f, const uint8_t *bytes, size_t size)
{
	struct lang_slot *s = (struct lang_slot *)(void *)f->copy->slot;

	memcpy(s, bytes, sizeof(*s));
	if (s->nr > LANG_FRAMES_MAX || s->nr_here > s->nr || s->none > LANG_OK ||
	    s->top > LANG_TOP_BODY || s->other.size > LANG_OTHER_MAX ||
	    s->nr * sizeof(s->frames[0]) + s->other.size > size - sizeof(*s))
		return NULL;
	memcpy(s->frames, bytes + sizeof(*s), s->nr * sizeof(s->frames[0]) + s->other.size);
	for (uint32_t i = 0; i < s->nr; i++) {
		/* A function that found no room: one place for all of these, others have names. */
		if (!translate(f, &s->frames[i].code)) {
			atomic_store_explicit(&f->refused, true, memory_order_relaxed);
			s->frames[i].code = CODE_UNNAMED;
			s->frames[i].instr = LANG_NO_INSTR;
		}
		for (uint32_t k = 0; k < LANG_COMPILED; k++)
			translate(f, &s->frames[i].compiled[k].code);
	}
	return s;
}

static void note_bad(struct frame_channel *f)
{
	atomic_fetch_add_explicit(&f->nr_bad, 1, memory_order_relaxed);
}

/* Find the part at the tail, before @head. NULL: the rest of the ring was dropped. */
static const uint8_t *next_part(struct frame_channel *f, uint64_t head, struct part *p)
{
	const uint8_t *bytes = at(f->ring, f->tail);

	memcpy(p, bytes, sizeof(*p));
	if (p->size >= sizeof(*p) && p->size % 8 == 0 && p->size <= left_at(f->tail) &&
	    p->size <= head - f->tail && (p->kind != PADDING || p->size == left_at(f->tail)))
		return bytes + sizeof(*p);
	note_bad(f);
	f->tail = head;
	return NULL;
}

const struct lang_slot *frame_channel_find(struct frame_channel *f, uint64_t time_ns, uint32_t pid,
					   uint32_t tid)
{
	uint64_t head = atomic_load_explicit(&f->ring->head, memory_order_acquire);
	const struct lang_slot *slot = NULL;
	uint32_t cost = 0;
	struct part p;

	if (head % 8 || head - f->tail > FRAME_CHANNEL_SIZE) {
		note_bad(f);
		head &= ~7ULL;
		f->tail = head;
	}
	/* The rest is for the next sample. */
	while (f->tail != head && cost < BUDGET) {
		const uint8_t *bytes = next_part(f, head, &p);
		size_t size = p.size - sizeof(p);

		if (!bytes)
			break;
		if (p.kind == SLOT && size >= sizeof(*slot)) {
			struct lang_slot s;

			memcpy(&s, bytes, sizeof(s));
			if (s.time_ns >= time_ns) {
				if (s.time_ns != time_ns || s.pid != pid || s.tid != tid)
					break;
				slot = take_slot(f, bytes, size);
				if (!slot)
					note_bad(f);
				break;
			}
		} else if (p.kind != PADDING &&
			   (p.kind != FUNCTION || !take_function(f, bytes, size))) {
			note_bad(f);
		}
		cost += p.kind == FUNCTION ? COST : 1;
		f->tail += p.size;
	}
	/* Release: our reads precede the producer's writes to this space. */
	atomic_store_explicit(&f->ring->tail, f->tail, memory_order_release);
	return slot;
}

/*
 * Facts from the owner to a reader, and ids of threads.
 *
 * Runs on: a reader (find), the sampler thread of its CPU (set), the builder (answer).
 */

#define WAYS	    8U
#define EVENT_WAYS  8U
#define THREAD_WAYS 8U
#define KIND_BITS   2
#define PID_BITS    22 /* the kernel's PID_MAX_LIMIT */
#define PID_MASK    ((1U << PID_BITS) - 1)
#define ANSWERS_MAX 64U /* of one call: files of /proc */

static uint32_t ways_of(pid_t pid)
{
	return (uint32_t)hash_u64((uint32_t)pid) & (SHARE_PROCESSES - WAYS);
}

static uint32_t event_slot(uint64_t id)
{
	return (uint32_t)hash_u64(id) & (SHARE_EVENTS - EVENT_WAYS);
}

bool share_knows(const struct share_known *t, pid_t pid, uint32_t process, bool reads)
{
	uint32_t first = ways_of(pid);

	assert(first + WAYS <= SHARE_PROCESSES);
	for (uint32_t i = first; i < first + WAYS; i++)
		if (t->processes[i].pid == pid)
			return t->processes[i].process == process && t->processes[i].reads == reads;
	return false;
}

/* Return the entry for @pid: its own, a free one, or that of another one, which is forgotten. */
static uint32_t take_way(struct share_known *t, pid_t pid)
{
	uint32_t first = ways_of(pid);

	for (uint32_t i = first; i < first + WAYS; i++)
		if (t->processes[i].pid == pid)
			return i;
	for (uint32_t i = first; i < first + WAYS; i++)
		if (!t->processes[i].pid)
			return i;
	return first + t->next_way++ % WAYS;
}

void share_set_process(struct share_known *t, pid_t pid, uint32_t process,
		       const struct lang_process *info)
{
	uint64_t words[SHARE_WORDS] = { 0 };
	struct share_process *p;
	uint32_t way, sequence;

	if (share_knows(t, pid, process, info != NULL))
		return;
	way = take_way(t, pid);
	t->processes[way].pid = pid;
	t->processes[way].process = process;
	t->processes[way].reads = info != NULL;
	if (info) {
		memcpy(words, info, sizeof(*info));
		/* Of this address space. */
		((struct lang_process *)(void *)words)->reason = NULL;
	}
	p = &t->share->processes[way];
	sequence = atomic_load_explicit(&p->sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&p->sequence, sequence, memory_order_relaxed);
	/* Release: the number is odd before any of these; pairs with copy(). */
	atomic_store_explicit(&p->pid, (int)pid, memory_order_release);
	atomic_store_explicit(&p->process, process, memory_order_release);
	atomic_store_explicit(&p->reads, info != NULL, memory_order_release);
	for (size_t i = 0; i < SHARE_WORDS && info; i++)
		atomic_store_explicit(&p->words[i], words[i], memory_order_release);
	/* Release: all of these; pairs with copy(). */
	atomic_store_explicit(&p->sequence, sequence + 1, memory_order_release);
}

void share_refuse(struct share_known *t, uint32_t process)
{
	for (uint32_t i = 0; i < SHARE_PROCESSES; i++)
		if (t->processes[i].process == process && t->processes[i].reads)
			share_set_process(t, t->processes[i].pid, process, NULL);
	for (uint32_t i = 0; i < SHARE_FAR; i++)
		if (t->far[i].process == process)
			atomic_store_explicit(&t->share->far[i].thread, t->far[i].thread = 0,
					      memory_order_relaxed);
}

/* Copy an entry of @pid. False: it was written at that time, or is not to be read. */
static bool copy(const struct share_process *p, uint32_t slot, pid_t pid, struct share_found *found)
{
	uint64_t words[SHARE_WORDS];
	uint32_t sequence = atomic_load_explicit(&p->sequence, memory_order_acquire);
	bool same;

	if (found->slot == slot && found->sequence == sequence && sequence)
		return found->pid == pid;
	/* Acquire: these are before the second look; pairs with share_set_process(). */
	same = atomic_load_explicit(&p->pid, memory_order_acquire) == pid &&
	       atomic_load_explicit(&p->reads, memory_order_acquire);
	found->process = atomic_load_explicit(&p->process, memory_order_acquire);
	for (size_t i = 0; i < SHARE_WORDS; i++)
		words[i] = atomic_load_explicit(&p->words[i], memory_order_acquire);
	memcpy(&found->info, words, sizeof(found->info));
	found->slot = slot;
	found->sequence = sequence;
	found->pid = pid;
	if (same && !(sequence & 1) &&
	    atomic_load_explicit(&p->sequence, memory_order_relaxed) == sequence)
		return true;
	found->sequence = 0;
	return false;
}

int share_find(const struct reader_share *s, pid_t pid, struct share_found *found)
{
	uint32_t first = ways_of(pid);

	for (uint32_t i = first; i < first + WAYS; i++) {
		const struct share_process *p = &s->processes[i];

		if (atomic_load_explicit(&p->pid, memory_order_relaxed) != pid)
			continue;
		/* Most samples are of no interpreter: the copy of the last one stays. */
		if (!atomic_load_explicit(&p->reads, memory_order_relaxed))
			return 0;
		return copy(p, i, pid, found);
	}
	return -ENOENT;
}

void share_set_event(struct share_known *t, uint64_t id, enum share_event is)
{
	uint64_t value = id << KIND_BITS | is;
	uint32_t first = event_slot(id), at = SHARE_EVENTS;

	assert(first + EVENT_WAYS <= SHARE_EVENTS);
	for (uint32_t i = first; i < first + EVENT_WAYS; i++)
		if (t->events[i] == value)
			return;
	for (uint32_t i = first + EVENT_WAYS; i-- > first;)
		if (!t->events[i] || t->events[i] >> KIND_BITS == id)
			at = i;
	/* In turn, or two that are used would displace each other. */
	if (at == SHARE_EVENTS)
		at = first + t->next_event++ % EVENT_WAYS;
	t->events[at] = value;
	atomic_store_explicit(&t->share->events[at], value, memory_order_relaxed);
}

enum share_event share_event_of(const struct reader_share *s, uint64_t id)
{
	uint32_t first = event_slot(id);

	for (uint32_t i = first; i < first + EVENT_WAYS; i++) {
		uint64_t value = atomic_load_explicit(&s->events[i], memory_order_relaxed);

		if (value && value >> KIND_BITS == id)
			return (enum share_event)(value & ((1U << KIND_BITS) - 1));
	}
	return SHARE_UNKNOWN;
}

/* A thread of an incarnation of a process, of which the low bits do. */
static uint64_t thread_key(pid_t pid, pid_t tid, uint32_t process)
{
	return (uint64_t)pid << (64 - PID_BITS) |
	       ((uint64_t)tid & PID_MASK) << (64 - 2 * PID_BITS) |
	       (process & ((1U << (64 - 2 * PID_BITS)) - 1));
}

/* Get the answer for @key; false: it is not there. */
static bool get_answer(const struct share_thread *t, uint64_t key, pid_t *inner)
{
	/* Acquire: the id; pairs with share_answer(). */
	if (atomic_load_explicit(&t->answered, memory_order_acquire) != key)
		return false;
	/* Acquire: before the second look. */
	*inner = atomic_load_explicit(&t->inner, memory_order_acquire);
	return atomic_load_explicit(&t->answered, memory_order_relaxed) == key;
}

pid_t share_inner(struct reader_share *s, pid_t pid, pid_t tid, uint32_t process)
{
	uint64_t key = thread_key(pid, tid, process);
	uint32_t first = (uint32_t)hash_u64(key) & (SHARE_THREADS - THREAD_WAYS);
	uint32_t nr = atomic_load_explicit(&s->nr_questions, memory_order_relaxed);
	uint32_t way = first + nr % THREAD_WAYS;
	pid_t inner;

	assert(first + THREAD_WAYS <= SHARE_THREADS);
	for (uint32_t i = first; i < first + THREAD_WAYS; i++) {
		struct share_thread *t = &s->threads[i];
		uint64_t question = atomic_load_explicit(&t->question, memory_order_relaxed);

		if (get_answer(t, key, &inner))
			return inner;
		if (question == key)
			return -1;
		way = question ? way : i;
	}
	atomic_store_explicit(&s->threads[way].question, key, memory_order_relaxed);
	/* Release: the question; pairs with the owner's look at the number. */
	atomic_store_explicit(&s->nr_questions, nr + 1, memory_order_release);
	return -1;
}

/* Read the thread's id in the namespace of its process: the last of NSpid. */
static pid_t read_inner(pid_t pid, pid_t tid)
{
	char text[4096];
	uint64_t inner = (uint64_t)tid;

	procfs_status_inner(text, untrusted_read_task(text, sizeof(text), pid, tid, "status"),
			    &inner);
	return (pid_t)inner;
}

bool share_answer(struct reader_share *s)
{
	uint32_t left = ANSWERS_MAX;

	for (uint32_t i = 0; i < SHARE_THREADS; i++) {
		struct share_thread *t = &s->threads[i];
		uint64_t question = atomic_load_explicit(&t->question, memory_order_relaxed);

		if (!question ||
		    question == atomic_load_explicit(&t->answered, memory_order_relaxed))
			continue;
		if (!left--)
			return false;
		atomic_store_explicit(&t->answered, 0, memory_order_relaxed);
		/* Release: there is no answer now; pairs with get_answer(). */
		atomic_store_explicit(&t->inner,
				      read_inner((pid_t)(question >> (64 - PID_BITS)),
						 (pid_t)(question >> (64 - 2 * PID_BITS) &
							 PID_MASK)),
				      memory_order_release);
		/* Release: the id; pairs with share_inner(). */
		atomic_store_explicit(&t->answered, question, memory_order_release);
	}
	return true;
}

/*
 * Copy a record in parts; after each, look whether the kernel has come round to it.
 *
 * Runs on: a reader.
 */

/* Bytes of a record among which the size of its stack is, mostly. */
#define HEAD 1024U

void ring_copy_out(const struct ring *ring, uint64_t pos, void *out, size_t size)
{
	uint64_t at = pos & (ring->size - 1);
	size_t first = MIN(size, ring->size - at);

	assert(size <= ring->size);
	memcpy(out, ring->data + at, first);
	memcpy((uint8_t *)out + first, ring->data, size - first);
}

static void copy_part(struct ring_copy *c, size_t begin, size_t end)
{
	ring_copy_out(c->ring, c->pos + begin, c->bytes + begin, end - begin);
	c->overwritten |= ring_written(c->ring) - c->pos > c->ring->size;
}

bool ring_copy_record(struct ring_copy *c, const struct ring *ring,
		      const struct record_layout *layout, uint64_t pos, size_t size)
{
	size_t head = MIN(size, HEAD), at;
	uint64_t stack_size = 0;

	if (size > sizeof(c->bytes))
		return false;
	c->ring = ring;
	c->pos = pos;
	c->rest_size = 0;
	c->overwritten = false;
	copy_part(c, 0, head);
	at = record_stack_at(layout, c->bytes, head);
	if (at) {
		memcpy(&stack_size, c->bytes + at, sizeof(stack_size));
		at += sizeof(stack_size);
	}
	if (stack_size > RING_COPY_STACK && stack_size <= size - at) {
		c->rest_at = at + RING_COPY_STACK;
		c->rest_size = stack_size - RING_COPY_STACK;
		copy_part(c, head, c->rest_at);
		copy_part(c, c->rest_at + c->rest_size, size);
	} else {
		copy_part(c, head, size);
	}
	return !c->overwritten;
}

void ring_copy_rest(struct ring_copy *c)
{
	copy_part(c, c->rest_at, c->rest_at + c->rest_size);
	c->rest_size = 0;
}

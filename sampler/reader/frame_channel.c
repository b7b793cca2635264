// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames on their way from a reader to its sampler thread, which checks all of them; the memory
 * that both have; one record of a ring that another thread consumes.
 *
 * Runs on: a reader (put), a sampler thread (find).
 */
#include "sampler/reader/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
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
#define COST   16U

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

/*
 * Put a copy of @slot with its frames in, and with the bytes of the other stack, behind the
 * functions that were not sent yet. False: it is full.
 */
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

void frame_channel_fini(struct frame_channel *f)
{
	free_sparse(f->ids, SCRIPT_FUNCTIONS_MAX * sizeof(*f->ids));
	free(f->copy);
	*f = (struct frame_channel){ .ring = NULL };
}

/* 0 or -ENOMEM. */
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
	    s->top > LANG_TOP_FRAMELESS || s->other.size > LANG_OTHER_MAX ||
	    s->other.rest > s->other.size ||
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPython: from a thread's state along its frames.
 *
 * Runs on: a reader. Invariant: each step costs a frame of the bound,
 * so a chain that bites its tail ends.
 */
#include <string.h>

#include "symbols/script/script.h"

#define PAGE 4096ULL
/* Bytes of a part of the stack of frames. */
#define CHUNK (16ULL << 10)
/* Most steps of a walk: frames, and ends of C frames. */
#define PASSED_MAX (2 * LANG_FRAMES_MAX)

struct walk {
	struct lang_reader *r;
	const struct py_layout *l;
	const struct lang_sample *s;
	struct lang_thread *t;
	uint64_t cframe;   /* of the C frame of the loop in hand; 0: not known */
	uint64_t current;  /* address of the innermost frame */
	uint64_t on_stack; /* latest address known to be on the stack of frames */
};

static const uint8_t *in_copy(const struct lang_sample *s, uint64_t addr, uint32_t size)
{
	uint64_t at = addr - s->sp;

	if (size > s->stack_size || at > s->stack_size - size)
		return NULL;
	lang_chain_need(s, at + size);
	return s->stack + at;
}

/* Queue the thread's state and the pieces of its last chain. Returns the piece of the state. */
static int want_ahead(struct walk *w)
{
	struct lang_memory *m = &w->r->memory;
	uint32_t size = MAX(MAX(w->l->ts_top, w->l->ts_native_id),
			    MAX(w->l->ts_thread_id, w->l->ts_current)) +
			8U;
	int state = lang_memory_want(m, w->t->state, size);

	ahead_want(w->r, w->t, w->s);
	return state;
}

/* Find the innermost frame. LANG_NONE_NR: go on. */
static enum lang_none begin(struct walk *w)
{
	const struct py_layout *l = w->l;
	struct lang_memory *m = &w->r->memory;
	int state = want_ahead(w);
	const uint8_t *ts, *c;

	if (!lang_memory_fetch(m) || !(ts = lang_memory_piece(m, state)))
		return LANG_NONE_NO_THREAD;
	if (bytes_u64(ts + (l->ts_native_id ? l->ts_native_id : l->ts_thread_id)) != w->t->id)
		return LANG_NONE_NO_THREAD;
	w->current = bytes_u64(ts + l->ts_current);
	w->r->work.again[0] = (struct lang_ahead){ w->t->state + l->ts_current, 8 };
	w->r->work.first_read[0] = ts + l->ts_current;
	w->on_stack = w->r->work.top = l->ts_top ? bytes_u64(ts + l->ts_top) : 0;
	if (l->cframe_size) {
		w->cframe = w->current;
		/* That of a thread that runs no frames is in its state. */
		if (w->cframe - w->t->state < PAGE)
			return LANG_NONE_NO_FRAMES;
		c = in_copy(w->s, w->cframe, l->cframe_size);
		if (!c)
			c = lang_memory_read(m, w->cframe, l->cframe_size);
		if (!c)
			return LANG_NONE_BAD_CHAIN;
		w->current = bytes_u64(c + l->cframe_current);
	}
	return w->current ? LANG_NONE_NR : LANG_NONE_NO_FRAMES;
}

/*
 * The bytes of the frame at @addr. Frames on the stack of frames are near each other; a generator's
 * frame is alone, and one that ends a C frame is on the C stack.
 */
static const uint8_t *frame_at(struct walk *w, uint64_t addr)
{
	uint32_t size = w->l->frame_size;
	bool alone = w->l->one_frame_each || (w->on_stack && w->on_stack - addr > CHUNK);
	const uint8_t *f = in_copy(w->s, addr, size);

	if (!lang_memory_is_pointer(addr))
		return NULL;
	return f ? f : ahead_frame(w->r, w->t, addr, size, alone);
}

/* End the C frame of the latest frame, at @at, or at its cframe; 0: not known. */
static void end_c_frame(struct walk *w, uint64_t at)
{
	struct lang_work *k = &w->r->work;
	const uint8_t *c;

	if (!k->nr || k->boundary[k->nr - 1])
		return;
	if (!at && w->cframe) {
		at = w->cframe;
		c = in_copy(w->s, w->cframe, w->l->cframe_size);
		w->cframe = c ? bytes_u64(c + w->l->cframe_previous) : 0;
	}
	k->boundary[k->nr - 1] = at ? at : 1;
	k->nr_boundaries++;
}

/* Hash the function object and the globals of a frame, as in struct lang_known. */
static uint64_t function_of(const uint8_t *globals)
{
	uint64_t function = bytes_u64(globals - 8);

	return function ? hash_u64(hash_u64(function) ^ bytes_u64(globals)) | 1 : 0;
}

static bool add_frame(struct walk *w, uint64_t addr, const uint8_t *f)
{
	struct lang_work *k = &w->r->work;
	const struct py_layout *l = w->l;
	uint64_t code = bytes_u64(f + l->frame_code);

	if (l->tagged)
		code &= ~7ULL;
	if (!lang_memory_is_pointer(code))
		return false;
	/* The owner: a thread, which has it on its stack of frames, or a generator. */
	k->base[k->nr] = l->ts_top && !f[l->frame_owner] ? addr : 0;
	if (!k->nr) {
		k->again[1] = (struct lang_ahead){ addr, l->frame_size };
		k->first_read[1] = f;
	}
	k->address[k->nr] = code;
	k->function[k->nr] = l->frame_globals ? function_of(f + l->frame_globals) : 0;
	k->instr[k->nr] = l->instr_unit ? bytes_u32(f + l->frame_instr)
					: bytes_u64(f + l->frame_instr);
	k->boundary[k->nr] = 0;
	if (k->base[k->nr])
		w->on_stack = addr;
	k->nr++;
	if (l->one_frame_each || (l->frame_is_entry && f[l->frame_is_entry]))
		end_c_frame(w, 0);
	return true;
}

/*
 * Return whether frames that are alone on the heap, those of 3.8 to 3.10 and of generators, have
 * used up the windows that are read ahead, and half of the calls: the codes need the others.
 */
static bool is_costly(const struct walk *w)
{
	return w->r->work.nr && w->t->nr_ahead == LANG_AHEAD &&
	       w->r->memory.calls >= LANG_CALLS_MAX / 2;
}

enum lang_none pychain_read(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s, struct lang_thread *t)
{
	struct walk w = { .r = r, .l = &p->py, .s = s, .t = t };
	struct lang_work *k = &r->work;
	enum lang_none none;
	uint64_t addr;

	k->nr = k->nr_boundaries = 0;
	k->top = 0;
	none = begin(&w);
	addr = w.current;
	for (uint32_t passed = 0; none == LANG_NONE_NR && addr; passed++) {
		const uint8_t *f;

		k->deep = passed == PASSED_MAX || is_costly(&w);
		if (k->deep)
			break;
		f = frame_at(&w, addr);
		if (f && p->py.frame_owner && !p->py.frame_is_entry && f[p->py.frame_owner] >= 3) {
			end_c_frame(&w, addr);
		} else if (k->nr == LANG_FRAMES_MAX) {
			k->deep = true;
			break;
		} else if (!f || !add_frame(&w, addr, f)) {
			return LANG_NONE_BAD_CHAIN;
		}
		addr = bytes_u64(f + p->py.frame_previous);
	}
	if (none == LANG_NONE_NR && !k->nr)
		none = k->deep ? LANG_NONE_NO_ROOM : LANG_NONE_NO_FRAMES;
	return none;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Align frames of JavaScript with native frames by their frame pointers.
 *
 * Runs on: sampler threads. Invariant: the output has the frames of either side
 * in order, each at most once.
 */
#include "symbols/lang/codes.h"
#include "symbols/lang/v8table.h"
#include "unwind/interleave.h"

struct merge {
	const struct codes *codes;
	const struct unwind_result *native;
	const struct lang_slot *slot;
	struct merge_result *out;
	uint32_t next;	    /* frame of the slot to be looked at */
	uint64_t innermost; /* frame pointer of the innermost frame of JavaScript; 0: none */
	bool exact;
};

static void put_place(struct merge *m, uint32_t frame, uint64_t place)
{
	if (m->out->nr == MERGE_FRAMES_MAX) {
		m->exact = false;
		return;
	}
	m->out->place[m->out->nr] = place;
	m->out->frame[m->out->nr++] = frame;
}

static void put(struct merge *m, uint32_t frame)
{
	put_place(m, frame, 0);
}

/* Put frame @frame of the slot at @instr: function @code, the compiled one or one inlined in it. */
static void put_at(struct merge *m, uint32_t frame, uint32_t code, uint32_t instr)
{
	put_place(m, MERGE_LANG | frame, lang_place_at(code, instr));
}

/* Find the frame of the slot with this frame pointer; they grow. False: it has none. */
static bool find(struct merge *m, uint64_t fp, uint32_t *frame)
{
	for (; m->next < m->slot->nr && m->slot->frames[m->next].boundary <= fp; m->next++) {
		if (m->slot->frames[m->next].boundary != fp || !fp)
			continue;
		*frame = m->next++;
		return true;
	}
	return false;
}

static uint32_t line_or_none(uint32_t line)
{
	return line ? line : LANG_NO_INSTR;
}

/* Put frame @frame at byte @at of its compiled code; false: the code has no table. */
static bool put_compiled(struct merge *m, uint32_t frame, const struct lang_compiled *c,
			 uint32_t at)
{
	const struct code_text *t = m->codes ? codes_at(m->codes, c->code) : NULL;
	struct v8_inlined call;
	struct v8_entry e;

	if (!t || !t->compiled || !v8table_find(t->table, t->table_size, at, &e))
		return false;
	/* Each call is in one of a lower number, so this ends. */
	while (v8table_inlined(t->table, t->table_size, e.inlined, &call)) {
		/* The function that was inlined did not fit into the table of all. */
		if (call.code == CODE_NONE)
			m->exact = false;
		else
			put_at(m, frame, call.code, line_or_none(e.line));
		e.line = call.line;
		e.inlined = call.outer < e.inlined ? call.outer : V8_NOT_INLINED;
	}
	put_at(m, frame, m->slot->frames[frame].code, line_or_none(e.line));
	return true;
}

/*
 * Put a frame of the slot with compiled code at @ip. Code other than its function's own replaced a
 * running loop, or was replaced: then functions may be inlined as well.
 */
static void put_function(struct merge *m, uint32_t frame, uint64_t ip)
{
	const struct lang_frame *f = &m->slot->frames[frame];

	for (uint32_t i = 0; i < LANG_COMPILED; i++) {
		const struct lang_compiled *c = &f->compiled[i];

		if (ip - c->start >= c->size)
			continue;
		if (!put_compiled(m, frame, c, (uint32_t)(ip - c->start)))
			put_at(m, frame, f->code, c->inlined ? LANG_INLINED : LANG_NO_INSTR);
		return;
	}
	put_at(m, frame, f->code, LANG_INLINED);
}

/* Return whether the next native frame is at the same frame pointer. JavaScript's is behind that
 * one. */
static bool goes_on(const struct merge *m, uint32_t v8)
{
	const struct unwind_result *native = m->native;

	return v8 + 1 < native->nr_v8 && native->v8[v8 + 1].fp == native->v8[v8].fp &&
	       native->v8[v8 + 1].frame == native->v8[v8].frame + 1;
}

/*
 * Put the innermost native frame, in compiled code: mostly the function of the frame at the frame
 * pointer. Where that is not known, the function may be about to make its frame: then it is in a
 * register, as the first frame of the slot.
 */
static bool put_innermost(struct merge *m, const struct unwind_v8 *v8)
{
	const struct lang_slot *slot = m->slot;

	if (slot->top == LANG_TOP_BODY || v8->frame || !v8->compiled)
		return true;
	m->exact = false;
	if (!slot->nr || slot->frames[0].boundary)
		return true;
	put_function(m, 0, m->native->ip[0]);
	return false;
}

static void put_v8(struct merge *m, uint32_t index)
{
	const struct unwind_v8 *v8 = &m->native->v8[index];
	bool whole = put_innermost(m, v8);
	uint32_t frame;

	if (goes_on(m, index) || !v8->javascript) {
		if (whole)
			put(m, v8->frame);
		return;
	}
	if (!m->innermost)
		m->innermost = v8->fp;
	if (!find(m, v8->fp, &frame)) {
		m->exact = false;
		if (whole)
			put(m, v8->frame);
		return;
	}
	if (v8->compiled && whole) {
		put_function(m, frame, m->native->ip[v8->frame]);
		return;
	}
	if (whole)
		put(m, v8->frame);
	put_at(m, frame, m->slot->frames[frame].code, m->slot->frames[frame].instr);
}

void merge_v8(const struct lang_process *p, const struct codes *codes,
	      const struct unwind_result *native, const struct lang_slot *slot,
	      struct merge_result *out)
{
	struct merge m = { codes, native, slot, out, .exact = true };
	uint32_t v8 = 0;
	bool any = false, whole;

	out->nr = out->doubts = 0;
	out->verdict = MERGE_NONE;
	out->deep = false; /* a frame of JavaScript is a native one */
	if (!slot->nr || slot->nr > LANG_FRAMES_MAX)
		return;
	for (uint32_t i = 0; i < native->nr; i++) {
		if (v8 < native->nr_v8 && native->v8[v8].frame == i)
			put_v8(&m, v8++);
		else
			put(&m, i);
	}
	for (uint32_t i = 0; i < out->nr; i++)
		any |= (out->frame[i] & MERGE_LANG) != 0;
	if (!any) {
		out->nr = 0;
		return;
	}
	whole = native->stop == UNWIND_COMPLETE && native->nr_guessed == native->nr_v8_guessed;
	out->doubts = (whole ? 0 : MERGE_CUT) | (m.exact ? 0 : MERGE_UNALIGNED) |
		      merge_doubts(p, slot) | (slot->same >= m.innermost + 16 ? 0 : MERGE_CHANGED);
	out->verdict = out->doubts ? MERGE_GUESSED : MERGE_CERTAIN;
}

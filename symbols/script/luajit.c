// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LuaJIT 2.1: the calls of the states that run on the C stack of a thread.
 *
 * Runs on: a reader. The C frame of the interpreter has the address of its state, and the state
 * has that of its last C frame: this finds the states among the words of the copied stack. The
 * interpreter has its frame and its instruction in registers (rdx, rbx), and stores them before it
 * calls C, but for functions without a use for them: the code at the call shows it. Compiled code
 * keeps the frame in which it began: its functions are guesses. x86-64.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"

#define STATES_MAX    16U
#define WORDS_MAX     64U /* of the stack that may be states */
#define C_STACK_MAX   (16ULL << 20)
#define C_FRAMES_MAX  1024U
#define C_FRAME_SIZE  40U
#define FLAGS	      3ULL /* of the address of a C frame */
#define CALLS_MAX     (2 * LANG_FRAMES_MAX)
#define INSNS_MAX     128U
#define STEP_MAX      (1U << 20) /* bytes of a frame on the stack of Lua */
#define STACK_PAGE    4096ULL
#define STACK_ROUND   256ULL
#define CODE_BEFORE   64U /* a call */
#define FUNCTION_HEAD 40U
#define LINES_MAX     256U /* innermost frames with lines; others have none */
#define NAMED_MAX     32U  /* new functions of a sample that get the names of their calls */
#define WINDOW	      32U  /* instructions before a call */
#define STRING_HEAD   32U  /* and the first bytes of the text */
#define SOURCE_MAX    64U  /* bytes of a chunk without a file */
#define NAMES_SIZE    512U
#define SLOT	      8U
#define INSN_SIZE     4U
#define UNKNOWN_PC    UINT64_MAX

/* Values have a type above 47 bits of address. Objects have the other one. */
#define ADDRESS(value) ((value) & ((1ULL << 47) - 1))
#define TYPE(value)    ((int64_t)(value) >> 47)
#define VALUE_FUNCTION (-9)
#define TYPE_AT	       9U
#define TYPE_STRING    4U
#define TYPE_THREAD    6U
#define TYPE_PROTO     7U
#define TYPE_FUNCTION  8U

/* Links of frames: an instruction of the caller, or one of these and the size. */
#define LINK_KIND	   7U
#define LINK_C		   1U /* below 4: with another bit as well */
#define LINK_CONTINUATION  2U
#define LINK_VARARG	   3U
#define CONTINUES_CALLBACK 1U

/* A call of a state. */
struct call {
	uint64_t function, pc; /* its next instruction */
	uint64_t c_frame;
	int head, proto; /* pieces */
	bool called;	 /* by the instruction of the caller before the pc of that */
};

struct walk {
	struct lang_reader *r;
	struct lang_memory *m;
	struct lang_work *k;
	struct lang_thread *t;
	const struct lang_process *p;
	const struct luajit_layout *l;
	const struct lang_sample *s;
	uint32_t nr_states, nr, nr_insns, nr_c_frames;
	struct state {
		uint64_t at, c_frame, global, base, low, high; /* the bounds of its stack */
	} states[STATES_MAX];
	/* The part of the stack of Lua that was read last. */
	uint64_t page, page_end, high;
	const uint8_t *bytes;
	struct {
		uint64_t at;
		int piece;
	} insns[INSNS_MAX];
	uint64_t global; /* the interpreter's state, and its pieces */
	int global_main, global_vm, global_base;
	uint64_t base, link; /* of the innermost frame */
	bool in_loop;	     /* its base is of the registers */
	struct call calls[CALLS_MAX];
};

/* ---- states ---- */

/* Return @size bytes at @addr of the C stack; NULL. */
static const uint8_t *c_stack(struct walk *w, uint64_t addr, uint32_t size)
{
	uint64_t here = addr - w->s->sp;

	if (here < w->s->stack_size && w->s->stack_size - here >= size)
		return w->s->stack + here;
	return lang_memory_is_pointer(addr) ? lang_memory_read(w->m, addr, size) : NULL;
}

static bool is_c_stack(const struct walk *w, uint64_t addr)
{
	return !(addr & 7) && addr >= w->s->sp && addr - w->s->sp < C_STACK_MAX;
}

/* Add the state with @head at @at if it runs on this stack; states are in order of the stack. */
static bool add_state(struct walk *w, uint64_t at, const uint8_t *head)
{
	const struct luajit_layout *l = w->l;
	struct state s = { .at = at };
	const uint8_t *frame;
	uint32_t i = w->nr_states;

	if (!head || head[TYPE_AT] != TYPE_THREAD || i == STATES_MAX)
		return false;
	s.c_frame = bytes_u64(head + l->state_frame) & ~FLAGS;
	s.global = bytes_u64(head + l->state_global);
	s.base = bytes_u64(head + l->state_base);
	s.low = bytes_u64(head + l->state_stack);
	s.high = s.low + (uint64_t)SLOT * bytes_u32(head + l->state_stack_size);
	if (!is_c_stack(w, s.c_frame) || s.low & 7 || !lang_memory_is_pointer(s.low))
		return false;
	frame = c_stack(w, s.c_frame, C_FRAME_SIZE);
	if (!frame || bytes_u64(frame + l->frame_state) != at)
		return false;
	for (; i && w->states[i - 1].c_frame > s.c_frame; i--)
		w->states[i] = w->states[i - 1];
	w->states[i] = s;
	w->nr_states++;
	return true;
}

/* Return whether the words at @at of the copied stack may be a C frame, which has a state. */
static bool may_be_frame(const struct walk *w, uint64_t at)
{
	const uint8_t *frame = w->s->stack + at;
	uint64_t state = bytes_u64(frame + w->l->frame_state);
	uint64_t previous = bytes_u64(frame + w->l->frame_previous) & ~FLAGS;

	return lang_memory_is_pointer(state) && !(state & 7) && state >> 47 == 0 &&
	       state - w->s->sp >= C_STACK_MAX &&
	       (!previous || (is_c_stack(w, previous) && previous > w->s->sp + at));
}

static bool is_known(const uint64_t words[static WORDS_MAX], uint32_t nr, uint64_t word)
{
	for (uint32_t i = 0; i < nr; i++)
		if (words[i] == word)
			return true;
	return false;
}

/* Find the states among the words of the stack up to @end, but for the known ones. */
static void find_states(struct walk *w, uint64_t end)
{
	const struct lang_sample *s = w->s;
	uint64_t words[WORDS_MAX];
	uint32_t nr = 0, first;
	int pieces[WORDS_MAX];

	for (uint32_t i = 0; i < w->nr_states; i++)
		words[nr++] = w->states[i].at;
	first = nr;
	for (uint64_t at = 0; at + C_FRAME_SIZE <= s->stack_size && s->sp + at < end; at += 8) {
		uint64_t word = bytes_u64(s->stack + at + w->l->frame_state);

		if (nr == WORDS_MAX || !may_be_frame(w, at) || is_known(words, nr, word))
			continue;
		words[nr] = word;
		pieces[nr++] = lang_memory_want_once(w->m, word, w->l->state_size);
	}
	lang_memory_fetch(w->m);
	for (uint32_t i = first; i < nr; i++)
		add_state(w, words[i], lang_memory_piece(w->m, pieces[i]));
}

/* Read the words of the interpreter of a state. */
static void want_global(struct walk *w, const struct state *s)
{
	if (w->global == s->global || !lang_memory_is_pointer(s->global))
		return;
	w->global = s->global;
	w->global_main = lang_memory_want(w->m, s->global + w->l->global_main, 8);
	w->global_vm = lang_memory_want(w->m, s->global + w->l->global_vm, 4);
	w->global_base = lang_memory_want(w->m, s->global + w->l->global_base, 8);
	lang_memory_fetch(w->m);
}

/* Return whether the thread runs the loop itself in the C frame of the state. */
static bool is_in_frame(const struct walk *w, const struct state *s)
{
	/* Its inner functions have no C frames. */
	return lang_is_eval(w->p, w->s->pc) &&
	       (w->s->sp == s->c_frame || w->s->sp == s->c_frame - 8);
}

/*
 * Try the state of the last sample. Return whether it runs, is the first one of its interpreter,
 * and no other one does: that would have called the loop from there.
 */
static bool try_last(struct walk *w)
{
	const struct lang_sample *s = w->s;
	const struct state *state = &w->states[0];
	const uint8_t *main;

	if (!lang_memory_is_pointer(w->t->state) || w->t->state == w->p->runtime ||
	    !add_state(w, w->t->state, lang_memory_read(w->m, w->t->state, w->l->state_size)) ||
	    !lang_memory_is_pointer(state->global))
		return false;
	want_global(w, state);
	main = lang_memory_piece(w->m, w->global_main);
	if (!main || bytes_u64(main) != state->at)
		return false;
	if (lang_is_eval(w->p, s->pc))
		return is_in_frame(w, state);
	for (uint64_t at = 0; at + 8 <= s->stack_size && s->sp + at + 8 < state->c_frame; at += 8)
		if (lang_is_eval(w->p, bytes_u64(s->stack + at)))
			return false;
	return true;
}

/* ---- calls ---- */

static bool is_in(uint64_t at, uint64_t low, uint64_t high)
{
	return at >= low && at < high && !(at & 7);
}

/* Queue the instructions at which calls were made, by the words of the part that was read. */
static void want_insns(struct walk *w)
{
	for (uint64_t at = w->page_end - SLOT; at >= w->page + SLOT && w->nr_insns < INSNS_MAX / 2;
	     at -= SLOT) {
		uint64_t link = bytes_u64(w->bytes + (at - w->page));
		uint64_t function = bytes_u64(w->bytes + (at - SLOT - w->page));

		if (TYPE(function) != VALUE_FUNCTION || link & 3 ||
		    !lang_memory_is_pointer((link - INSN_SIZE) & ~7ULL))
			continue;
		w->insns[w->nr_insns].at = (link - INSN_SIZE) & ~7ULL;
		w->insns[w->nr_insns].piece = lang_memory_want(w->m, (link - INSN_SIZE) & ~7ULL, 8);
		w->nr_insns++;
	}
}

/* Return the word at @at of the stack of Lua; *bad: it is not there. */
static uint64_t slot(struct walk *w, const struct state *s, uint64_t at, bool *bad)
{
	if (!is_in(at, s->low, s->high)) {
		*bad = true;
		return 0;
	}
	if (at < w->page || at >= w->page_end) {
		uint64_t page = MAX(at & ~(STACK_PAGE - 1), s->low);
		uint64_t top = (w->high + STACK_ROUND - 1) & ~(STACK_ROUND - 1);
		uint64_t end = MIN((at & ~(STACK_PAGE - 1)) + STACK_PAGE, MIN(top, s->high));

		w->page = page;
		w->page_end = end > at ? end : at + SLOT;
		w->bytes = prefetch_frame(w->r, w->t, page, (uint32_t)(w->page_end - page), true);
		if (w->bytes)
			want_insns(w);
		else
			w->page = w->page_end = 0;
	}
	*bad |= !w->page_end;
	return w->page_end ? bytes_u64(w->bytes + (at - w->page)) : 0;
}

/* Return the instruction before @pc; *bad: it is not there. */
static uint32_t insn_before(struct walk *w, uint64_t pc, bool *bad)
{
	uint64_t at = pc - INSN_SIZE;
	const uint8_t *bytes = NULL;

	if (!lang_memory_is_pointer(at & ~7ULL) || at & 3) {
		*bad = true;
		return 0;
	}
	lang_memory_fetch(w->m);
	for (uint32_t i = 0; i < w->nr_insns && !bytes; i++)
		if (w->insns[i].at == (at & ~7ULL))
			bytes = lang_memory_piece(w->m, w->insns[i].piece);
	if (!bytes && w->nr_insns < INSNS_MAX) {
		int piece = lang_memory_want(w->m, at & ~7ULL, 8);

		lang_memory_fetch(w->m);
		bytes = lang_memory_piece(w->m, piece);
		w->insns[w->nr_insns].at = at & ~7ULL;
		w->insns[w->nr_insns++].piece = piece;
	}
	*bad |= !bytes;
	return bytes ? bytes_u32(bytes + (at & 4)) : 0;
}

static uint32_t argument_a(uint32_t insn)
{
	return insn >> 8 & 255;
}

static bool is_call(const struct luajit_layout *l, uint32_t insn)
{
	return (insn & 255) == l->op_call || (insn & 255) == l->op_calls;
}

/* Get the C frame before *@at, 0: there is none; false: it is none of this state. */
static bool previous_c_frame(struct walk *w, const struct state *s, uint64_t *at)
{
	const uint8_t *frame = is_c_stack(w, *at) && w->nr_c_frames++ < C_FRAMES_MAX
				       ? c_stack(w, *at, C_FRAME_SIZE)
				       : NULL;
	uint64_t previous = frame ? bytes_u64(frame + w->l->frame_previous) & ~FLAGS : 0;

	if (!frame || bytes_u64(frame + w->l->frame_state) != s->at ||
	    (previous && previous <= *at))
		return false;
	*at = previous;
	return true;
}

/* Leave out C frames that ran no frame of the stack up to @at. Set the instruction saved there. */
static bool find_c_frame(struct walk *w, const struct state *s, uint64_t at, uint64_t *c_frame,
			 uint64_t *pc)
{
	*pc = 0;
	while (*c_frame) {
		const uint8_t *frame = is_c_stack(w, *c_frame) ? c_stack(w, *c_frame, C_FRAME_SIZE)
							       : NULL;
		int32_t results = frame ? (int32_t)bytes_u32(frame + w->l->frame_results) : 0;

		if (!frame)
			return false;
		*pc = bytes_u64(frame + w->l->frame_pc);
		if (results >= 0 || at >= s->low + (uint64_t) - (int64_t)results)
			return true;
		if (!previous_c_frame(w, s, c_frame))
			return false;
	}
	return true;
}

/* A frame on the stack of Lua: the address of its link, and the next instruction of its function.
 */
struct frame {
	uint64_t at, pc, c_frame;
	bool called, skip;
};

/* Go to the caller of a frame. */
static bool next_frame(struct walk *w, const struct state *s, struct frame *f, uint64_t link)
{
	uint64_t size = link & ~(uint64_t)LINK_KIND;
	bool bad = false, left = (link & 3) == LINK_C;

	f->skip = (link & LINK_KIND) == LINK_VARARG;
	f->called = !(link & 3);
	f->pc = 0;
	if (f->called) {
		uint32_t insn = insn_before(w, link, &bad);

		size = (uint64_t)SLOT * (2 + argument_a(insn));
		f->called = is_call(w->l, insn);
		f->pc = link;
	} else if ((link & LINK_KIND) == LINK_CONTINUATION) {
		f->pc = slot(w, s, f->at - 2UL * SLOT, &bad);
		left |= slot(w, s, f->at - 3UL * SLOT, &bad) == CONTINUES_CALLBACK;
	}
	if (bad || !size || size > STEP_MAX || size > f->at)
		return false;
	f->at -= size;
	if (!left)
		return true;
	return previous_c_frame(w, s, &f->c_frame) &&
	       find_c_frame(w, s, f->at, &f->c_frame, &f->pc);
}

/* Add the calls of a state, from the frame with @base on, which is at @pc. */
static bool add_calls(struct walk *w, const struct state *s, uint64_t base, uint64_t pc)
{
	struct frame f = { .at = base - SLOT, .c_frame = s->c_frame };
	uint64_t saved;
	bool bad = false;

	w->page = w->page_end = 0;
	w->high = base;
	if (!is_in(f.at, s->low, s->high) || !find_c_frame(w, s, f.at, &f.c_frame, &saved))
		return false;
	f.pc = pc ? pc : saved;
	while (f.at > s->low + SLOT) {
		uint64_t link = slot(w, s, f.at, &bad), function = slot(w, s, f.at - SLOT, &bad);

		if (bad)
			return false;
		if (!w->base) {
			w->base = base;
			w->link = link;
		}
		w->k->deep = w->nr == CALLS_MAX;
		if (w->k->deep)
			return true;
		/* A frame with the state in place of a function is none. */
		if (ADDRESS(function) != s->at && TYPE(function) != VALUE_FUNCTION)
			return false;
		if (!f.skip && ADDRESS(function) != s->at)
			w->calls[w->nr++] =
				(struct call){ ADDRESS(function), f.pc, f.c_frame, -1, -1, false };
		if (!next_frame(w, s, &f, link))
			return false;
		/* Whether the instruction of the caller is the call of the last one. */
		if (w->nr && !f.skip)
			w->calls[w->nr - 1].called = f.called;
	}
	return true;
}

/* Read the functions of the calls. */
static bool read_functions(struct walk *w)
{
	const struct luajit_layout *l = w->l;

	for (uint32_t i = 0; i < w->nr; i++)
		if (lang_memory_is_pointer(w->calls[i].function))
			w->calls[i].head =
				lang_memory_want(w->m, w->calls[i].function, FUNCTION_HEAD);
	if (!lang_memory_fetch(w->m))
		return false;
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *head = lang_memory_piece(w->m, w->calls[i].head);

		if (!head || head[TYPE_AT] != TYPE_FUNCTION)
			return false;
		if (!head[l->function_kind])
			w->calls[i].proto =
				lang_memory_want(w->m,
						 bytes_u64(head + l->function_pc) - l->proto_size,
						 l->proto_size);
	}
	return lang_memory_fetch(w->m);
}

/*
 * Return the number of the instruction before @pc, of the function at @address, which is in front
 * of its code; UINT32_MAX: another one's.
 */
static uint32_t number_of(const struct luajit_layout *l, const uint8_t *proto, uint64_t address,
			  uint64_t pc)
{
	uint64_t at = pc - (address + l->proto_size);

	return at && !(at & 3) && at <= (uint64_t)INSN_SIZE * bytes_u32(proto + l->proto_nr_code)
		       ? (uint32_t)at / INSN_SIZE - 1
		       : UINT32_MAX;
}

/* Return whether the function of @call may be about to be called by itself at @pc. */
static bool may_call_itself(struct walk *w, const struct state *s, const struct call *call,
			    uint64_t pc)
{
	const uint8_t *head = lang_memory_piece(w->m, call->head), *other;
	bool bad = false;
	uint32_t insn = insn_before(w, pc, &bad);
	uint64_t value;

	if (bad || !is_call(w->l, insn))
		return bad;
	value = slot(w, s, w->base - SLOT * (4ULL + argument_a(insn)), &bad);
	if (bad || TYPE(value) != VALUE_FUNCTION || !lang_memory_is_pointer(ADDRESS(value)))
		return false;
	if (ADDRESS(value) == call->function)
		return true;
	other = lang_memory_read(w->m, ADDRESS(value), FUNCTION_HEAD);
	return !other ||
	       bytes_u64(other + w->l->function_pc) == bytes_u64(head + w->l->function_pc);
}

/*
 * Return whether the innermost call is certain: the instruction is one of its function. While a
 * call is being made or ends, it is one of another.
 */
static bool is_settled(struct walk *w, const struct state *s)
{
	const struct call *call = &w->calls[0];
	const uint8_t *head = lang_memory_piece(w->m, call->head);
	const uint8_t *proto = lang_memory_piece(w->m, call->proto);
	uint64_t code = bytes_u64(head + w->l->function_pc);

	/* A function of C has one instruction. */
	if (!proto)
		return !w->in_loop || call->pc == code + INSN_SIZE;
	if (number_of(w->l, proto, code - w->l->proto_size, call->pc) == UINT32_MAX)
		return false;
	return !w->in_loop || w->link == call->pc || !may_call_itself(w, s, call, call->pc);
}

/* Add the frames of Lua. */
static bool add_frames(struct walk *w)
{
	struct lang_work *k = w->k;
	uint64_t c_frame = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		const struct call *c = &w->calls[i];
		const uint8_t *head = lang_memory_piece(w->m, c->head);
		const uint8_t *proto = lang_memory_piece(w->m, c->proto);

		if (!head[w->l->function_kind] && (!proto || proto[TYPE_AT] != TYPE_PROTO))
			return false;
		if (!proto)
			continue;
		k->deep |= k->nr == LANG_FRAMES_MAX;
		if (k->nr == LANG_FRAMES_MAX)
			return true;
		if (k->nr && c->c_frame != c_frame)
			k->boundary[k->nr - 1] = c_frame;
		c_frame = c->c_frame;
		k->address[k->nr] = bytes_u64(head + w->l->function_pc) - w->l->proto_size;
		k->instr[k->nr] = c->pc;
		k->function[k->nr] = (uint64_t)c->proto;
		k->base[k->nr] = c->called && i + 1 < w->nr && w->calls[i + 1].proto >= 0;
		k->boundary[k->nr++] = 0;
	}
	if (k->nr)
		k->boundary[k->nr - 1] = c_frame;
	return true;
}

/* ---- the innermost frame ---- */

/* Return whether the loop stored its frame before the call that the code in @piece ends with. */
static bool is_stored(const struct walk *w, int piece)
{
	const uint8_t *code = lang_memory_piece(w->m, piece);
	bool stored = false;

	for (uint32_t at = 0; code && at + 4 <= CODE_BEFORE; at++) {
		const uint8_t *c = code + at;

		/* mov [state + base], rdx; then mov rbp, rdx: rdx is kept elsewhere. */
		if ((c[0] & 0xfe) == 0x48 && c[1] == 0x89 && (c[2] & 0xf8) == 0x50 &&
		    (c[2] & 7) != 4 && c[3] == w->l->state_base)
			stored = true;
		else if (c[0] == 0x48 &&
			 ((c[1] == 0x89 && c[2] == 0xd5) || (c[1] == 0x8b && c[2] == 0xea)))
			stored = false;
	}
	return stored;
}

/* Return the base of the frame in which compiled code began, if such runs; 0. */
static uint64_t compiled_base(struct walk *w, const struct state *s)
{
	const uint8_t *vm, *base;

	want_global(w, s);
	vm = lang_memory_piece(w->m, w->global_vm);
	base = lang_memory_piece(w->m, w->global_base);
	/* The number of its trace; below 0 it is not that. */
	return vm && base && (int32_t)bytes_u32(vm) >= 0 ? bytes_u64(base) : 0;
}

/* Add the calls of the innermost state. */
static bool add_innermost(struct walk *w)
{
	const struct state *s = &w->states[0];
	const uint8_t *frame = c_stack(w, s->c_frame, C_FRAME_SIZE);
	uint64_t base = s->base, pc = 0, compiled = compiled_base(w, s), to = s->c_frame - 8;
	bool check = false;
	int code = -1;

	if (!frame)
		return false;
	w->in_loop = is_in_frame(w, s) && is_in(w->s->loop[0], s->low + 2UL * SLOT, s->high);
	if (w->in_loop) {
		base = w->s->loop[0];
		pc = w->s->loop[1];
	} else if (compiled) {
		base = compiled;
		pc = UNKNOWN_PC;
		w->k->broken = true;
	} else if (lang_is_eval(w->p, w->s->pc)) {
		w->k->broken = true;
	} else if ((int32_t)bytes_u32(frame + w->l->frame_results) >= 0) {
		/* Not below a C function that was called without a frame. */
		const uint8_t *at = to >= w->s->sp ? c_stack(w, to, 8) : NULL;
		uint64_t back = at ? bytes_u64(at) : 0;

		check = true;
		if (lang_is_eval(w->p, back))
			code = lang_memory_want(w->m, back - CODE_BEFORE, CODE_BEFORE);
	}
	if (!add_calls(w, s, base, pc))
		return false;
	w->k->broken |= check && !is_stored(w, code);
	return true;
}

/* Note the innermost frame: read again at the end, with the frame of the state. */
static void note_top(struct walk *w)
{
	const struct state *s = &w->states[0];
	bool bad = false;

	w->k->again[0] = (struct lang_ahead){ w->base - 2UL * SLOT, 2 * SLOT };
	slot(w, s, w->base - 2UL * SLOT, &bad);
	if (!bad && w->base <= w->page_end)
		w->k->first_read[0] = w->bytes + (w->base - 2UL * SLOT - w->page);
}

/* Add the frames of all states. */
static enum lang_status add_all(struct walk *w)
{
	const struct lang_work *k = w->k;

	if (!add_innermost(w))
		return LANG_BAD_CHAIN;
	note_top(w);
	for (uint32_t i = 1; i < w->nr_states && !k->deep; i++)
		if (!add_calls(w, &w->states[i], w->states[i].base, 0))
			return LANG_BAD_CHAIN;
	if (!read_functions(w) || !add_frames(w))
		return LANG_BAD_CHAIN;
	return k->nr ? LANG_OK : k->deep ? LANG_NO_ROOM : LANG_NO_FRAMES;
}

static enum lang_status chain(struct lang_reader *r, const struct lang_process *p,
			      const struct lang_sample *s, struct lang_thread *t)
{
	struct walk w = { .r = r,
			  .m = &r->memory,
			  .k = &r->work,
			  .t = t,
			  .p = p,
			  .l = &p->luajit,
			  .s = s,
			  .global_main = -1,
			  .global_vm = -1,
			  .global_base = -1 };
	enum lang_status none;

	w.k->broken = w.k->deep = false;
	w.k->settled = true;
	prefetch_want(r, t, s);
	if (!try_last(&w))
		find_states(&w, UINT64_MAX);
	none = w.nr_states ? add_all(&w) : LANG_NO_FRAMES;
	if (none != LANG_OK)
		return none;
	t->state = w.states[0].at;
	w.k->broken |= !is_settled(&w, &w.states[0]);
	return LANG_OK;
}

/* ---- functions ---- */

static const uint8_t *proto_at(const struct lang_memory *m, const struct lang_work *k,
			       uint32_t code)
{
	assert(code < k->nr_codes);
	return lang_memory_piece(m, k->script_functions_of[code].header);
}

/* Set the text of a string with its head in its piece. */
static void set_string(const struct lang_memory *m, const struct luajit_layout *l,
		       struct lang_text *t)
{
	const uint8_t *head = lang_memory_piece(m, t->piece);

	t->size = head && head[TYPE_AT] == TYPE_STRING
			  ? MIN(bytes_u32(head + l->string_length), SCRIPT_FUNCTIONS_TEXT_MAX)
			  : 0;
	t->addr += l->string_text;
}

static int want_string(struct lang_memory *m, uint64_t addr)
{
	return lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, STRING_HEAD) : -1;
}

/* Set the file of each function: "@file", "=name", or the first line of the chunk itself. */
static bool read_sources(struct lang_memory *m, struct lang_work *k, const struct luajit_layout *l)
{
	bool chunk[LANG_FRAMES_MAX];

	for (uint32_t i = 0; i < k->nr_codes; i++) {
		struct lang_text *t = &k->functions[i].file;

		t->addr = bytes_u64(proto_at(m, k, i) + l->proto_source);
		t->piece = want_string(m, t->addr);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < k->nr_codes; i++) {
		struct lang_text *t = &k->functions[i].file;
		const uint8_t *head = lang_memory_piece(m, t->piece);

		set_string(m, l, t);
		chunk[i] = t->size < 2 ||
			   (head[l->string_text] != '@' && head[l->string_text] != '=');
		t->addr += !chunk[i];
		t->size = chunk[i] ? MIN(t->size, SOURCE_MAX) : t->size - 1;
		t->piece = t->size ? lang_memory_want(m, t->addr, t->size) : -1;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < k->nr_codes; i++) {
		struct lang_text *t = &k->functions[i].file;
		const uint8_t *bytes = lang_memory_piece(m, t->piece);
		const uint8_t *end = bytes && chunk[i] ? memchr(bytes, '\n', t->size) : NULL;

		t->size = !bytes ? 0 : end && end > bytes ? (uint32_t)(end - bytes) : t->size;
		t->fixed = t->size ? NULL : "?";
	}
	return true;
}

/* Set the stamp of a function: of its addresses and sizes, and its file's name. */
static void set_stamp(const struct lang_memory *m, struct lang_work *k,
		      const struct luajit_layout *l, uint32_t i)
{
	const uint8_t *proto = proto_at(m, k, i), *file;
	struct lang_function *f = &k->functions[i];
	uint64_t s = hash_u64(bytes_u64(proto + l->proto_source));

	assert(i < k->nr_codes);
	file = f->file.size ? lang_memory_piece(m, f->file.piece) : NULL;
	f->name.piece = -1;
	f->first_line = bytes_u32(proto + l->proto_line);
	s = hash_u64(s ^ bytes_u64(proto + l->proto_constants));
	s = hash_u64(s ^ (uint64_t)f->first_line << 32 ^ bytes_u32(proto + l->proto_nr_code));
	for (uint32_t at = 0; file && at < f->file.size; at++)
		s = (s ^ file[at]) * 0x100000001b3ULL;
	k->script_functions_of[i].stamp = s;
}

/*
 * Set the lines of the frames in place of their instructions: a table has their distances, of one,
 * two or four bytes.
 */
static bool read_lines(struct lang_memory *m, struct lang_work *k, const struct luajit_layout *l)
{
	int pieces[LINES_MAX];
	uint32_t at[LINES_MAX], size[LINES_MAX];

	for (uint32_t i = 0; i < MIN(k->nr, LINES_MAX); i++) {
		const uint8_t *proto = proto_at(m, k, k->code[i]);
		uint32_t nr_lines = bytes_u32(proto + l->proto_nr_lines);

		at[i] = number_of(l, proto, k->address[i], k->instr[i]);
		size[i] = nr_lines < 256 ? 1 : nr_lines < 65536 ? 2 : 4;
		pieces[i] = at[i] && at[i] != UINT32_MAX
				    ? lang_memory_want(m,
						       bytes_u64(proto + l->proto_lines) +
							       (uint64_t)size[i] * (at[i] - 1),
						       size[i])
				    : -1;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < k->nr; i++) {
		const uint8_t *proto = proto_at(m, k, k->code[i]);
		const uint8_t *p = i < LINES_MAX ? lang_memory_piece(m, pieces[i]) : NULL;
		uint32_t line = LANG_NO_INSTR, first = bytes_u32(proto + l->proto_line);

		if (p)
			line = first + (size[i] == 1   ? p[0]
					: size[i] == 2 ? p[0] | (uint32_t)p[1] << 8
						       : bytes_u32(p));
		else if (i < LINES_MAX && !at[i])
			line = first;
		k->instr[i] = line && line <= INT32_MAX ? line : LANG_NO_INSTR;
	}
	return true;
}

/* ---- names: a function has that of the variable or field by which it is called ---- */

struct naming {
	uint32_t code, at; /* of the function; the call in its caller */
	uint32_t first;	   /* instruction of the window */
	uint32_t skip;	   /* names in front of that of an upvalue */
	const uint8_t *caller;
	int piece; /* the window; then the constant, or the names of upvalues */
	bool upvalues;
};

/* Find the new functions that are called by others in the chain, and queue the code before the
 * calls.
 */
static uint32_t want_windows(struct lang_memory *m, struct lang_work *k,
			     const struct luajit_layout *l,
			     const uint64_t pc[static LANG_FRAMES_MAX],
			     struct naming names[static NAMED_MAX])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i + 1 < k->nr && nr < NAMED_MAX; i++) {
		uint32_t code = k->code[i];
		const uint8_t *caller = proto_at(m, k, k->code[i + 1]);
		uint32_t at = number_of(l, caller, k->address[i + 1], pc[i + 1]);

		if (!k->base[i] || at == UINT32_MAX ||
		    k->script_functions_of[code].id != CODE_NONE || k->functions[code].name.addr)
			continue;
		k->functions[code].name.addr = 1;
		names[nr] = (struct naming){ .code = code, .at = at, .caller = caller };
		names[nr].first = at - MIN(at, WINDOW - 1);
		names[nr].piece =
			lang_memory_want_once(m,
					      k->address[i + 1] + l->proto_size +
						      (uint64_t)INSN_SIZE * names[nr].first,
					      INSN_SIZE * (at - names[nr].first + 1));
		nr++;
	}
	return nr;
}

/*
 * Return the instruction that sets the function which the last one of the window calls; 0: another
 * one does, or there may be two.
 */
static uint32_t find_setter(const struct luajit_layout *l, const struct naming *n,
			    const uint8_t *window)
{
	uint32_t reg = argument_a(bytes_u32(window + (size_t)INSN_SIZE * (n->at - n->first)));

	for (uint32_t at = n->at; at-- > n->first;) {
		uint32_t insn = bytes_u32(window + (size_t)INSN_SIZE * (at - n->first));
		uint32_t op = insn & 255;

		if (op >= l->op_calls && argument_a(insn) <= reg)
			return 0;
		if (argument_a(insn) == reg)
			return insn;
	}
	return 0;
}

/* Queue the part that has the name: by the instruction that set the function. */
static void want_name(struct lang_memory *m, const struct luajit_layout *l, struct naming *n,
		      uint32_t insn)
{
	uint32_t op = insn & 255, d = insn >> 16;

	n->piece = -1;
	if (op == l->op_getglobal || op == l->op_getfield) {
		uint64_t constants = bytes_u64(n->caller + l->proto_constants);

		d = op == l->op_getfield ? d & 255 : d;
		if (lang_memory_is_pointer(constants))
			n->piece = lang_memory_want(m, constants - SLOT * (d + 1ULL), SLOT);
	} else if (op == l->op_getupval && d < n->caller[l->proto_nr_upvalues]) {
		uint64_t upvalues = bytes_u64(n->caller + l->proto_upvalues);

		n->upvalues = true;
		n->skip = d;
		if (lang_memory_is_pointer(upvalues & ~7ULL))
			n->piece = lang_memory_want_once(m, upvalues, NAMES_SIZE);
	}
}

/* Set the name to one of the names of upvalues, which follow each other. */
static void set_upvalue(const struct lang_memory *m, const struct luajit_layout *l,
			const struct naming *n, struct lang_text *t)
{
	const uint8_t *names = lang_memory_piece(m, n->piece), *end = NULL;
	uint32_t at = 0;

	for (uint32_t i = 0; names && i <= n->skip && at < NAMES_SIZE; i++) {
		at = end ? (uint32_t)(end - names) + 1 : 0;
		end = memchr(names + at, 0, NAMES_SIZE - at);
		if (!end)
			return;
	}
	if (!end || at >= NAMES_SIZE)
		return;
	t->addr = bytes_u64(n->caller + l->proto_upvalues) + at;
	t->size = (uint32_t)(end - names) - at;
}

/* Name the new functions. */
static bool read_names(struct lang_memory *m, struct lang_work *k, const struct luajit_layout *l,
		       const uint64_t pc[static LANG_FRAMES_MAX])
{
	struct naming names[NAMED_MAX];
	uint32_t nr = want_windows(m, k, l, pc, names);

	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *window = lang_memory_piece(m, names[i].piece);

		want_name(m, l, &names[i], window ? find_setter(l, &names[i], window) : 0);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_text *t = &k->functions[names[i].code].name;
		const uint8_t *bytes = lang_memory_piece(m, names[i].piece);

		t->piece = -1;
		t->addr = bytes && !names[i].upvalues ? bytes_u64(bytes) : 0;
		if (names[i].upvalues)
			set_upvalue(m, l, &names[i], t);
		else
			t->piece = want_string(m, t->addr);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!names[i].upvalues)
			set_string(m, l, &k->functions[names[i].code].name);
	return true;
}

static enum lang_status codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;
	const struct luajit_layout *l = &p->luajit;
	uint64_t pc[LANG_FRAMES_MAX];

	functions_number(r, process);
	for (uint32_t i = 0; i < k->nr; i++)
		k->script_functions_of[k->code[i]].header = (int)k->function[i];
	memcpy(pc, k->instr, k->nr * sizeof(pc[0]));
	if (!read_sources(m, k, l) || !read_lines(m, k, l))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < k->nr_codes; i++)
		set_stamp(m, k, l, i);
	if (functions_find(r, process) && !read_names(m, k, l, pc))
		return LANG_BAD_CHAIN;
	functions_name_lua(m, k);
	return functions_add(r, p, process, NULL);
}

/* ---- its files and processes ---- */

#define IDENT	    "LuaJIT 2."
#define IDENT_SIZE  32U
#define CALLER_SIZE (4U << 10)
#define LOOP_SIZE   4096U
#define CODE_SIZE   (64UL << 20)
#define CALLED_MAX  16U
#define CALLS_MIN   4U

static const struct luajit_version {
	uint32_t release;
	bool compared;
	struct luajit_layout layout;
} luajits[] = {
#define LUAJIT_FIELD(name, value)
#define LUAJIT_LAYOUT(release, compared, ...) { release, compared, { __VA_ARGS__ } },
#include "symbols/script/luajit_layouts.inc"
#undef LUAJIT_FIELD
#undef LUAJIT_LAYOUT
};

static void on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	if (!strcmp(name, "lua_call"))
		search->entry = s->st_value;
}

/* Find the loop: lua_call() calls, or jumps, into its middle. */
static void find_loop(struct detect_search *search, const struct elffile *f,
		      const struct ehframe *eh)
{
	struct ehframe_fde caller, loop;
	uint64_t offset;
	void *bytes;

	if (!ehframe_find(eh, search->entry, &caller) || caller.start != search->entry ||
	    caller.size > CALLER_SIZE || !elffile_offset(f, caller.start, caller.size, &offset) ||
	    elffile_read_alloc(f, offset, caller.size, &bytes))
		return;
	for (uint64_t at = 0; at + 5 <= caller.size; at++) {
		const uint8_t *code = (const uint8_t *)bytes + at;
		uint64_t to =
			caller.start + at + 5 + (uint64_t)(int64_t)(int32_t)bytes_u32(code + 1);

		if ((code[0] != 0xe8 && code[0] != 0xe9) || !ehframe_find(eh, to, &loop) ||
		    loop.start == to || loop.start == caller.start || loop.size < LOOP_SIZE)
			continue;
		search->out->eval[0] = (struct lang_range){ loop.start, loop.start + loop.size };
		search->out->nr_eval = 1;
	}
	free(bytes);
}

/* Functions into whose middle others call. */
struct called {
	struct ehframe_fde functions[CALLED_MAX];
	uint32_t nr_calls[CALLED_MAX], nr;
};

/* Note the calls in the @size bytes of @code at @vaddr. */
static void note_calls(struct called *c, const struct ehframe *eh, const uint8_t *code,
		       uint64_t vaddr, uint64_t size)
{
	struct ehframe_fde to;

	for (uint64_t at = 0; at + 5 <= size; at++) {
		uint64_t target =
			vaddr + at + 5 + (uint64_t)(int64_t)(int32_t)bytes_u32(code + at + 1);
		uint32_t i = 0;

		if (code[at] != 0xe8 || target - vaddr >= size || !ehframe_find(eh, target, &to) ||
		    to.start == target || to.size < LOOP_SIZE || vaddr + at - to.start < to.size)
			continue;
		while (i < c->nr && c->functions[i].start != to.start)
			i++;
		if (i == CALLED_MAX)
			continue;
		if (i == c->nr) {
			c->functions[c->nr] = to;
			c->nr_calls[c->nr++] = 0;
		}
		c->nr_calls[i]++;
	}
}

/* Find the loop of a file without symbols: many functions call into its middle, and no other's. */
static void search_loop(struct detect_search *search, const struct elffile *f,
			const struct ehframe *eh)
{
	struct called c = { .nr = 0 };
	uint32_t most = 0;
	void *code;

	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_filesz > CODE_SIZE ||
		    elffile_read_alloc(f, p->p_offset, p->p_filesz, &code))
			continue;
		note_calls(&c, eh, code, p->p_vaddr, p->p_filesz);
		free(code);
	}
	for (uint32_t i = 1; i < c.nr; i++)
		most = c.nr_calls[i] > c.nr_calls[most] ? i : most;
	if (!c.nr || c.nr_calls[most] < CALLS_MIN)
		return;
	search->out->eval[0] =
		(struct lang_range){ c.functions[most].start,
				     c.functions[most].start + c.functions[most].size };
	search->out->nr_eval = 1;
}

static int on_file(struct detect_search *search, const struct elffile *f)
{
	struct image *image;

	search->out->runtime = detect_find_text(f, IDENT);
	/* A stub beside its library has no loop. */
	if (!search->entry && !search->out->runtime)
		return -ENOENT;
	if (f->machine != EM_X86_64 || image_build(&image, &(struct image_parts){ .file = f }) ||
	    !image)
		return search->entry ? 1 : -ENOENT;
	if (search->entry)
		find_loop(search, f, &image->eh);
	else
		search_loop(search, f, &image->eh);
	image_free(image);
	return search->entry || search->out->nr_eval ? 1 : -ENOENT;
}

/* Set the version, from "LuaJIT 2.1.0-beta3" or "LuaJIT 2.1.1761786044", and its layout. */
static bool detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	const size_t minor = strlen(IDENT);
	const struct luajit_version *row = NULL;
	char said[IDENT_SIZE + 1] = "";
	uint64_t release;

	errno = 0;
	if (!d->runtime || !lang_memory_copy(pid, p->runtime, said, IDENT_SIZE)) {
		p->reason = "a build without its version";
		if (d->runtime)
			lang_memory_refused(p);
		return false;
	}
	if (!strncmp(said, IDENT, minor) && said[minor] >= '0' && said[minor] <= '9')
		p->version = 2U << 24 | (uint32_t)(said[minor] - '0') << 16;
	release = said[minor + 1] == '.' ? strtoull(said + minor + 2, NULL, 10) : 0;
	for (size_t i = 0; i < ARRAY_SIZE(luajits); i++)
		if (luajits[i].release <= release)
			row = &luajits[i];
	if (p->version >> 16 != (2U << 8 | 1) || !row) {
		p->reason = "not supported (2.1 is)";
	} else if (d->machine != EM_X86_64) {
		p->reason = "not supported on this kind of CPU (x86-64 is)";
	} else if (!p->nr_eval) {
		p->reason = "its interpreter was not found in the file";
	} else {
		p->luajit = row->layout;
		p->untried |= !row->compared;
	}
	return false;
}

const struct language language_luajit = {
	.name = "lua",
	.title = "LuaJIT",
	.letter = 'a',
	.program = "luajit",
	.library = "libluajit",
	.shown = "luaJIT_setmode",
	.on_symbol = on_symbol,
	.on_file = on_file,
	.detect = detect,
	.stack = chain,
	.functions = codes,
	.fix = "build it with XCFLAGS=-DLUAJIT_USE_PERFTOOLS: its compiled code has names then",
};

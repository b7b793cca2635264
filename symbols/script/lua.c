// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lua 5.1 to 5.4: the calls of the states that run on the C stack of a thread.
 *
 * Runs on: a reader. No variable leads to the state. One that runs has the address of its last
 * setjmp(), which is on the C stack, beside a word with the address of the state: this finds it
 * among the words of the copied stack, and proves it. A coroutine is another state, nearer to
 * the top than the one that resumed it. C functions have calls too, which only end a run of the
 * loop here: their frames are native ones. Offsets are of 64-bit CPUs.
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
#define WORDS_MAX     192U  /* of the stack that may be states */
#define WORD_SLOTS    1024U /* a power of two */
#define C_STACK_MAX   (16ULL << 20)
#define CALLS_MAX     (2 * LANG_FRAMES_MAX)
#define SAVED_BELOW   256U /* bytes around the setjmp() in which its function keeps the state */
#define SAVED_SIZE    768U
#define LINES_MAX     256U /* innermost frames with lines; others have none */
#define NAMED_MAX     32U  /* new functions of a sample that get the names of their calls */
#define WINDOW	      256U /* instructions before a call, or deltas of lines */
#define LOCALS_MAX    256U
#define MARKS_READ    64U
#define STRING_HEAD   32U /* and the first bytes of the text */
#define SOURCE_MAX    64U /* bytes of a chunk without a file */
#define TYPE_AT	      8U
#define TYPE_THREAD   8U
#define TYPE_FUNCTION 6U
#define CLOSURE_IS_C  10U /* of 5.1 */
#define VALUE_SIZE    16U
#define LOCAL_SIZE    16U
#define INSN_SIZE     4U
#define NONE	      0xffffU

/* A call of a state. */
struct call {
	uint64_t function, pc, slot, base;
	uint32_t status;
	bool tail, adjacent; /* called by a tail call; by the call that follows, without C */
	bool fresh;	     /* the last of its run of the loop */
	int value, closure, proto, insn; /* pieces */
};

struct walk {
	struct lang_reader *r;
	struct lang_memory *m;
	struct lang_work *k;
	struct lang_thread *t;
	const struct lang_process *p;
	const struct lua_layout *l;
	const struct lang_sample *s;
	uint32_t nr_states, nr;
	struct state {
		uint64_t at, error, global;
	} states[STATES_MAX];
	struct call calls[CALLS_MAX];
};

static uint32_t head_size(const struct lua_layout *l)
{
	return l->state_error + 8U;
}

/* ---- states ---- */

/* Return whether the function that called setjmp() at @error has the address of the state. */
static bool is_saved(struct walk *w, uint64_t state, uint64_t error)
{
	uint64_t from = MAX(error - SAVED_BELOW, w->s->sp), here = from - w->s->sp;
	const uint8_t *bytes;

	if (here < w->s->stack_size && w->s->stack_size - here >= SAVED_SIZE)
		bytes = w->s->stack + here;
	else
		bytes = lang_memory_read(w->m, from, SAVED_SIZE);
	for (uint32_t at = 0; bytes && at < SAVED_SIZE; at += 8)
		if (bytes_u64(bytes + at) == state)
			return true;
	return false;
}

/* Add the state with @head at @at if it runs on this stack; states are in order of the stack. */
static bool add_state(struct walk *w, uint64_t at, const uint8_t *head)
{
	uint64_t error = head ? bytes_u64(head + w->l->state_error) : 0;
	uint32_t i = w->nr_states;

	if (!head || head[TYPE_AT] != TYPE_THREAD || error & 7 || error < w->s->sp ||
	    error - w->s->sp > C_STACK_MAX || !is_saved(w, at, error) || i == STATES_MAX)
		return false;
	for (; i && w->states[i - 1].error > error; i--)
		w->states[i] = w->states[i - 1];
	w->states[i] = (struct state){ at, error, bytes_u64(head + w->l->state_global) };
	w->nr_states++;
	return true;
}

/* Return whether the word is new, and put it into @slots. */
static bool is_new(uint64_t slots[static WORD_SLOTS], uint64_t word)
{
	uint32_t at = (uint32_t)hash_u64(word) & (WORD_SLOTS - 1);

	while (slots[at] && slots[at] != word)
		at = (at + 1) & (WORD_SLOTS - 1);
	if (slots[at])
		return false;
	slots[at] = word;
	return true;
}

/* Find the states among the words of the stack up to @end, but for the known ones. */
static void find_states(struct walk *w, uint64_t end)
{
	const struct lang_sample *s = w->s;
	uint64_t slots[WORD_SLOTS] = { 0 }, words[WORDS_MAX];
	uint32_t size = head_size(w->l), nr = 0;
	int pieces[WORDS_MAX];

	for (uint32_t i = 0; i < w->nr_states; i++)
		is_new(slots, w->states[i].at);
	for (uint64_t at = 0; at + 8 <= s->stack_size && s->sp + at < end && nr < WORDS_MAX;
	     at += 8) {
		uint64_t word = bytes_u64(s->stack + at);

		if (!lang_memory_is_pointer(word) || word >> 47 || word < 65536 ||
		    word - s->sp < C_STACK_MAX || !is_new(slots, word))
			continue;
		words[nr] = word;
		pieces[nr++] = lang_memory_want_once(w->m, word, size);
	}
	lang_memory_fetch(w->m);
	for (uint32_t i = 0; i < nr; i++)
		add_state(w, words[i], lang_memory_piece(w->m, pieces[i]));
}

/* Try the state of the last sample. Return whether it runs, as the first one of its interpreter. */
static bool try_last(struct walk *w)
{
	const uint8_t *head, *main;

	if (!lang_memory_is_pointer(w->t->state) || w->t->state == w->p->runtime)
		return false;
	head = lang_memory_read(w->m, w->t->state, head_size(w->l));
	if (!add_state(w, w->t->state, head))
		return false;
	main = lang_memory_is_pointer(w->states[0].global)
		       ? lang_memory_read(w->m, w->states[0].global + w->l->global_main, 8)
		       : NULL;
	return main && bytes_u64(main) == w->t->state;
}

/* ---- calls ---- */

static uint32_t status_of(const struct lua_layout *l, const uint8_t *ci)
{
	return l->ci_status == NONE	? 0
	       : l->ci_status_size == 1 ? ci[l->ci_status]
					: ci[l->ci_status] | (uint32_t)ci[l->ci_status + 1] << 8;
}

static bool has(uint32_t status, uint32_t bit)
{
	return bit && status & bit;
}

static bool add_call(struct walk *w, const uint8_t *ci, uint64_t pc)
{
	const struct lua_layout *l = w->l;
	uint32_t status = status_of(l, ci);

	if (w->nr == CALLS_MAX)
		return false;
	w->calls[w->nr++] = (struct call){
		.function = bytes_u64(ci + l->ci_function),
		.slot = bytes_u64(ci + l->ci_function),
		.base = l->ci_base == NONE ? bytes_u64(ci + l->ci_function) + VALUE_SIZE
					   : bytes_u64(ci + l->ci_base),
		.pc = pc,
		.status = status,
		.tail = has(status, l->is_tail) ||
			(l->ci_tail_calls != NONE && bytes_u32(ci + l->ci_tail_calls)),
		.fresh = l->is_fresh ? has(status, l->is_fresh) : !has(status, l->is_reentry),
		.closure = -1,
		.proto = -1,
		.insn = -1,
	};
	return true;
}

/* Note the innermost call: read again at the end, with the call of its state. */
static void note_top(struct walk *w, uint64_t state, const uint8_t *head, uint64_t ci,
		     const uint8_t *bytes)
{
	if (w->k->first_read[0])
		return;
	w->k->again[0] = (struct lang_ahead){ state + w->l->state_ci, 8 };
	w->k->first_read[0] = head + w->l->state_ci;
	w->k->again[1] = (struct lang_ahead){ ci + w->l->ci_pc, 8 };
	w->k->first_read[1] = bytes + w->l->ci_pc;
}

/* Add the calls of a state of 5.1: an array. */
static bool add_array(struct walk *w, uint64_t state, const uint8_t *head)
{
	const struct lua_layout *l = w->l;
	uint64_t ci = bytes_u64(head + l->state_ci), base = bytes_u64(head + l->state_base_ci);
	uint64_t pc = bytes_u64(head + l->state_pc);

	if (!lang_memory_is_pointer(base) || ci < base || (ci - base) % l->ci_size)
		return false;
	for (; ci > base; ci -= l->ci_size) {
		const uint8_t *bytes = prefetch_frame(w->r, w->t, ci, l->ci_size, false);

		if (!bytes)
			return false;
		note_top(w, state, head, ci, bytes);
		w->k->deep = !add_call(w, bytes, pc ? pc : bytes_u64(bytes + l->ci_pc));
		if (w->k->deep)
			return true;
		pc = 0;
	}
	return true;
}

/* Add the calls of a state: a list, which ends in the state. */
static bool add_list(struct walk *w, uint64_t state, const uint8_t *head)
{
	const struct lua_layout *l = w->l;
	uint64_t ci = bytes_u64(head + l->state_ci);

	while (ci != state + l->state_base_ci) {
		const uint8_t *bytes = lang_memory_is_pointer(ci)
					       ? prefetch_frame(w->r, w->t, ci, l->ci_size, false)
					       : NULL;

		if (!bytes)
			return false;
		note_top(w, state, head, ci, bytes);
		w->k->deep = !add_call(w, bytes, bytes_u64(bytes + l->ci_pc));
		if (w->k->deep)
			return true;
		ci = bytes_u64(bytes + l->ci_previous);
	}
	return true;
}

static int want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, size) : -1;
}

/* Return the function of a call if it is Lua's; 0: it is in C. *bad: it is none. */
static uint64_t proto_of(const struct walk *w, const struct call *c, bool *bad)
{
	const uint8_t *closure = lang_memory_piece(w->m, c->closure);

	if (w->l->ci_status != NONE && w->l->is_lua && !has(c->status, w->l->is_lua))
		return 0;
	if (has(c->status, w->l->is_c))
		return 0;
	if (!closure) {
		/* Light C functions of 5.1 do not exist. */
		*bad = true;
		return 0;
	}
	if (w->l->ci_status == NONE && closure[CLOSURE_IS_C])
		return 0;
	*bad |= closure[TYPE_AT] != TYPE_FUNCTION;
	return bytes_u64(closure + w->l->closure_proto);
}

/* Read the closures of the calls from @first on. */
static bool read_closures(struct walk *w, uint32_t first)
{
	for (uint32_t i = first; i < w->nr; i++)
		w->calls[i].value = want(w->m, w->calls[i].function, VALUE_SIZE);
	if (!lang_memory_fetch(w->m))
		return false;
	for (uint32_t i = first; i < w->nr; i++) {
		const uint8_t *value = lang_memory_piece(w->m, w->calls[i].value);

		/* That of a light C function is code. */
		if (value && !(w->l->ci_status != NONE && has(w->calls[i].status, w->l->is_c)))
			w->calls[i].closure =
				want(w->m, bytes_u64(value), w->l->closure_proto + 8U);
	}
	return lang_memory_fetch(w->m);
}

/* Leave calls of C out, and read the functions of the others. */
static bool read_protos(struct walk *w, uint32_t first)
{
	uint32_t nr = first;
	bool bad = false, lua = false;

	for (uint32_t i = first; i < w->nr && !bad; i++) {
		struct call *c = &w->calls[i];
		uint64_t proto = proto_of(w, c, &bad);

		/* The call inside is of this one, if nothing in C is between. */
		if (lua)
			w->calls[nr - 1].adjacent = proto != 0;
		lua = proto != 0;
		if (!proto)
			continue;
		c->proto = want(w->m, proto, w->l->proto_size);
		c->function = proto;
		c->insn = want(w->m, (c->pc - INSN_SIZE) & ~7ULL, 8);
		w->calls[nr++] = *c;
	}
	w->nr = nr;
	return !bad && lang_memory_fetch(w->m);
}

static uint32_t op_of(const struct lua_layout *l, uint32_t insn)
{
	return insn & ((1U << l->op_bits) - 1);
}

/* Return the instruction of a call that its pc is behind. */
static uint32_t insn_of(const struct walk *w, const struct call *c)
{
	const uint8_t *bytes = lang_memory_piece(w->m, c->insn);

	return bytes ? bytes_u32(bytes + ((c->pc - INSN_SIZE) & 4)) : UINT32_MAX;
}

static bool is_call(const struct lua_layout *l, uint32_t insn)
{
	return op_of(l, insn) == l->op_call || op_of(l, insn) == l->op_tailcall;
}

static uint32_t argument_a(const struct lua_layout *l, uint32_t insn)
{
	return insn >> l->op_bits & 255;
}

/* Return whether call @i is by an instruction of its caller, which is the call that follows. */
static bool is_called(const struct walk *w, uint32_t i)
{
	assert(i < w->nr);
	return w->calls[i].adjacent && i + 1 < w->nr && is_call(w->l, insn_of(w, &w->calls[i + 1]));
}

/*
 * Return whether the function of such a call is in the register of that instruction; one with a
 * variable number of arguments may have moved up. Otherwise the call is being made: its parts are
 * of an earlier one.
 */
static bool is_made(const struct walk *w, uint32_t i, const uint8_t *proto)
{
	const struct call *c = &w->calls[i], *caller = &w->calls[i + 1];
	uint64_t slot = caller->base + VALUE_SIZE * (uint64_t)argument_a(w->l, insn_of(w, caller));

	assert(i + 1 < w->nr);
	return c->slot == slot ||
	       (w->l->ci_base == NONE && proto[w->l->proto_variable] && c->slot > slot);
}

static bool is_in_code(const struct lua_layout *l, const uint8_t *proto, uint64_t pc)
{
	uint64_t at = pc - bytes_u64(proto + l->proto_code);

	return at && at <= (uint64_t)INSN_SIZE * bytes_u32(proto + l->proto_nr_code) && !(at & 3);
}

/*
 * Check the functions of the calls from @first on, and add their frames. In 5.1 a call does not
 * say that it began a run of the loop: one from C did, and one of a metamethod, which is at another
 * instruction than a call.
 */
static bool add_frames(struct walk *w, uint32_t first)
{
	struct lang_work *k = w->k;

	for (uint32_t i = first; i < w->nr; i++) {
		struct call *c = &w->calls[i];
		const uint8_t *proto = lang_memory_piece(w->m, c->proto);
		bool called = is_called(w, i), made;

		if (!proto || proto[TYPE_AT] != w->l->proto_type)
			return false;
		k->deep |= k->nr == LANG_FRAMES_MAX;
		if (k->nr == LANG_FRAMES_MAX)
			return true;
		made = called && is_made(w, i, proto);
		/* The bit is set when the call has been made. */
		if (w->l->ci_status == NONE || (w->l->is_reentry && made))
			c->fresh = !called;
		/* A caller that a tail call replaces has the function of that already. */
		if ((!c->fresh && !made) || (i > first && !is_in_code(w->l, proto, c->pc))) {
			k->broken = true;
			if (i > first || !k->nr)
				continue;
		}
		k->address[k->nr] = c->function;
		k->instr[k->nr] = c->pc;
		k->function[k->nr] = (uint64_t)c->proto;
		/* Whether the frame that follows has the instruction that called this one. */
		k->base[k->nr] = called && !c->tail;
		k->boundary[k->nr++] = c->fresh;
	}
	return true;
}

/* Add the frames of state @i. *in_c: the innermost call is of C. */
static bool add_state_frames(struct walk *w, uint32_t i, bool *in_c)
{
	const struct state *s = &w->states[i];
	const uint8_t *head = lang_memory_read(w->m, s->at, head_size(w->l));
	uint32_t first = w->nr, frames = w->k->nr;
	bool bad = false;

	if (!head ||
	    !(w->l->ci_previous == NONE ? add_array(w, s->at, head) : add_list(w, s->at, head)))
		return false;
	if (!read_closures(w, first))
		return false;
	*in_c = w->nr == first || !proto_of(w, &w->calls[first], &bad);
	if (bad || !read_protos(w, first) || !add_frames(w, first))
		return false;
	/* Its first call is from C, whatever its state is. */
	if (w->k->nr > frames)
		w->k->boundary[w->k->nr - 1] = 1;
	return true;
}

/* ---- the innermost instruction ---- */

/*
 * Set the instruction of the innermost frame, which runs in the loop or in C code of the loop: most
 * versions have it in a register, which a function that the loop has called may have saved.
 */
static void set_innermost(struct walk *w)
{
	const struct lang_sample *s = w->s;
	const uint8_t *proto = lang_memory_piece(w->m, (int)w->k->function[0]);
	uint64_t found = 0;

	if (w->l->keeps_pc)
		return;
	if (is_in_code(w->l, proto, s->loop[1])) {
		w->k->instr[0] = s->loop[1];
		return;
	}
	w->k->instr[0] = LANG_NO_INSTR;
	if (lang_is_eval(w->p, s->pc))
		return;
	for (uint64_t at = 0; at + 8 <= s->stack_size; at += 8) {
		uint64_t word = bytes_u64(s->stack + at);

		if (lang_is_eval(w->p, word))
			break;
		if (!is_in_code(w->l, proto, word))
			continue;
		if (found && found != word)
			return;
		found = word;
	}
	w->k->instr[0] = found ? found : LANG_NO_INSTR;
}

/* Return whether the copied stack has a place in the loop. */
static bool runs_loop(const struct walk *w)
{
	const struct lang_sample *s = w->s;
	bool runs = lang_is_eval(w->p, s->pc);

	for (uint64_t at = 0; at + 8 <= s->stack_size && !runs; at += 8)
		runs = lang_is_eval(w->p, bytes_u64(s->stack + at));
	return runs;
}

/* Add the frames of all states. @first_only: of the innermost one. */
static enum lang_status add_all(struct walk *w, bool *in_c)
{
	w->nr = w->k->nr = 0;
	w->k->deep = false;
	w->k->first_read[0] = w->k->first_read[1] = NULL;
	for (uint32_t i = 0; i < w->nr_states && !w->k->deep; i++) {
		bool c;

		if (!add_state_frames(w, i, &c))
			return LANG_BAD_CHAIN;
		*in_c = i ? *in_c : c;
	}
	return w->k->nr ? LANG_OK : w->k->deep ? LANG_NO_ROOM : LANG_NO_FRAMES;
}

static enum lang_status chain(struct lang_reader *r, const struct lang_process *p,
			      const struct lang_sample *s, struct lang_thread *t)
{
	struct walk w = {
		.r = r, .m = &r->memory, .k = &r->work, .t = t, .p = p, .l = &p->lua, .s = s
	};
	bool alone, in_c = true;
	enum lang_status none;

	w.k->broken = false;
	w.k->settled = true;
	if (!runs_loop(&w))
		return LANG_NO_FRAMES;
	prefetch_want(r, t, s);
	alone = try_last(&w);
	if (!alone)
		find_states(&w, UINT64_MAX);
	none = w.nr_states ? add_all(&w, &in_c) : LANG_NO_THREAD;
	/* A C function may have resumed another one. */
	if (alone && none == LANG_OK && in_c) {
		uint32_t nr = w.nr_states;

		find_states(&w, w.states[0].error);
		none = w.nr_states > nr ? add_all(&w, &in_c) : none;
	}
	if (none != LANG_OK)
		return none;
	t->state = w.states[0].at;
	if (!in_c && !w.k->broken)
		set_innermost(&w);
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
static void set_string(const struct lang_memory *m, const struct lua_layout *l, struct lang_text *t)
{
	const uint8_t *head = lang_memory_piece(m, t->piece);
	uint64_t size;

	t->size = 0;
	if (!head || (head[TYPE_AT] & 15) != 4)
		return;
	/* The types of long strings are 20. */
	size = l->string_short_size == NONE || head[TYPE_AT] & 16 ? bytes_u64(head + l->string_size)
								  : head[l->string_short_size];
	t->size = (uint32_t)MIN(size, (uint64_t)SCRIPT_FUNCTIONS_TEXT_MAX);
	t->addr += l->string_text;
}

/* Set the file of each function: "@file", "=name", or the first line of the chunk itself. */
static bool read_sources(struct lang_memory *m, struct lang_work *k, const struct lua_layout *l)
{
	bool chunk[LANG_FRAMES_MAX];

	for (uint32_t i = 0; i < k->nr_codes; i++) {
		struct lang_text *t = &k->functions[i].file;

		t->addr = bytes_u64(proto_at(m, k, i) + l->proto_source);
		t->piece = want(m, t->addr, STRING_HEAD);
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
static void set_stamp(const struct lang_memory *m, struct lang_work *k, const struct lua_layout *l,
		      uint32_t i)
{
	const uint8_t *proto = proto_at(m, k, i), *file;
	struct lang_function *f = &k->functions[i];
	uint64_t s = hash_u64(bytes_u64(proto + l->proto_source));

	assert(i < k->nr_codes);
	file = f->file.size ? lang_memory_piece(m, f->file.piece) : NULL;
	f->name.piece = -1;
	f->first_line = bytes_u32(proto + l->proto_line);
	s = hash_u64(s ^ bytes_u64(proto + l->proto_code));
	s = hash_u64(s ^ (uint64_t)f->first_line << 32 ^ bytes_u32(proto + l->proto_nr_code));
	for (uint32_t at = 0; file && at < f->file.size; at++)
		s = (s ^ file[at]) * 0x100000001b3ULL;
	k->script_functions_of[i].stamp = s;
}

/* Return the number of the instruction in front of @pc; UINT32_MAX: it is none of the function. */
static uint32_t number_of(const struct lua_layout *l, const uint8_t *proto, uint64_t pc)
{
	return is_in_code(l, proto, pc)
		       ? (uint32_t)(pc - bytes_u64(proto + l->proto_code)) / INSN_SIZE - 1
		       : UINT32_MAX;
}

/* Return the line of a mark for instruction @at; LANG_NO_INSTR: there is none. */
static uint32_t marked_line(const uint8_t *marks, uint32_t nr, uint32_t at)
{
	for (uint32_t i = 0; marks && i < nr; i++)
		if (bytes_u32(marks + 8UL * i) == at)
			return bytes_u32(marks + 8UL * i + 4);
	return LANG_NO_INSTR;
}

struct line {
	int deltas, marks; /* pieces; of 5.1 to 5.3 the first one has the line */
	uint32_t at, first, nr_marks;
};

/* Queue the part of the table of lines for instruction @at: lines, or deltas and marks from 5.4 on.
 */
static void want_line(struct lang_memory *m, const struct lua_layout *l, const uint8_t *proto,
		      struct line *line)
{
	uint64_t lines = bytes_u64(proto + l->proto_lines);
	uint32_t at = line->at, nr = bytes_u32(proto + l->proto_nr_lines), all;

	line->deltas = line->marks = -1;
	if (at >= nr || nr > INT32_MAX)
		return;
	if (l->proto_marks == NONE) {
		line->deltas = lang_memory_want(m, lines + 4ULL * at, 4);
		return;
	}
	line->first = at - MIN(at, WINDOW - 1);
	line->deltas = lang_memory_want(m, lines + line->first, at - line->first + 1);
	/* There is one at least every 128 instructions. */
	all = bytes_u32(proto + l->proto_nr_marks);
	nr = line->first / 128 ? line->first / 128 - 1 : 0;
	line->nr_marks = nr < all ? MIN(all - nr, MARKS_READ) : 0;
	if (line->nr_marks)
		line->marks = lang_memory_want(m, bytes_u64(proto + l->proto_marks) + 8ULL * nr,
					       8 * line->nr_marks);
}

/* Return the line; LANG_NO_INSTR: it is not known. */
static uint32_t line_of(const struct lang_memory *m, const struct lua_layout *l,
			const uint8_t *proto, const struct line *line)
{
	const uint8_t *deltas = lang_memory_piece(m, line->deltas);
	uint32_t sum = 0;

	if (!deltas)
		return LANG_NO_INSTR;
	if (l->proto_marks == NONE)
		return bytes_u32(deltas) <= INT32_MAX ? bytes_u32(deltas) : LANG_NO_INSTR;
	for (uint32_t at = line->at + 1; at-- > line->first;) {
		int8_t delta = (int8_t)deltas[at - line->first];

		if (delta == -128) {
			uint32_t base =
				marked_line(lang_memory_piece(m, line->marks), line->nr_marks, at);

			return base <= INT32_MAX ? base + sum : LANG_NO_INSTR;
		}
		sum += (uint32_t)(int32_t)delta;
	}
	return line->first ? LANG_NO_INSTR : bytes_u32(proto + l->proto_line) + sum;
}

/* Set the lines of the frames in place of their instructions. */
static bool read_lines(struct lang_memory *m, struct lang_work *k, const struct lua_layout *l)
{
	struct line lines[LINES_MAX];

	for (uint32_t i = 0; i < MIN(k->nr, LINES_MAX); i++) {
		lines[i].at = number_of(l, proto_at(m, k, k->code[i]), k->instr[i]);
		want_line(m, l, proto_at(m, k, k->code[i]), &lines[i]);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < k->nr; i++) {
		uint32_t line = i < LINES_MAX ? line_of(m, l, proto_at(m, k, k->code[i]), &lines[i])
					      : LANG_NO_INSTR;

		k->instr[i] = line ? line : LANG_NO_INSTR;
	}
	return true;
}

/* ---- names: a function has that of the variable or field by which it is called ---- */

struct naming {
	uint32_t code, at; /* of the function; the call in its caller */
	uint32_t first;	   /* instruction of the window */
	uint32_t local;	   /* number of the variable + 1; 0: none */
	const uint8_t *caller;
	int piece;     /* the window; then the constant, the upvalue or the variables */
	bool indirect; /* the piece has an address of the name, not a value */
};

static bool sets_a(const struct lua_layout *l, uint32_t op)
{
	const uint16_t sets[] = {
		l->sets_0, l->sets_1, l->sets_2, l->sets_3, l->sets_4, l->sets_5
	};

	return op < 96 && sets[op / 16] >> op % 16 & 1;
}

/* Return the number behind an instruction at @at that it jumps to, as far as that is forward. */
static uint32_t jump_target(const struct lua_layout *l, uint32_t insn, uint32_t at)
{
	int64_t by = l->op_bits == 6 ? (int64_t)(insn >> 14) - 131071
				     : (int64_t)(insn >> 7) - 16777215;
	int64_t to = (int64_t)at + 1 + by;

	return to > at && to <= INT32_MAX ? (uint32_t)to : 0;
}

/* Return the instruction that sets the function which the last one of the window calls; 0: none. */
static uint32_t find_setter(const struct lua_layout *l, const struct naming *n,
			    const uint8_t *window)
{
	uint32_t reg = argument_a(l, bytes_u32(window + (size_t)INSN_SIZE * (n->at - n->first)));
	uint32_t found = 0, until = 0;

	for (uint32_t at = n->first; at < n->at; at++) {
		uint32_t insn = bytes_u32(window + (size_t)INSN_SIZE * (at - n->first));
		uint32_t op = op_of(l, insn), a = argument_a(l, insn);

		if (op == l->op_jump) {
			uint32_t to = jump_target(l, insn, at);

			until = to <= n->at ? MAX(until, to) : until;
		} else if (is_call(l, insn) ? reg >= a : sets_a(l, op) && reg == a) {
			/* Before the end of a jump it is not the only one. */
			found = at < until || is_call(l, insn) ? 0 : insn;
		}
	}
	return found;
}

/* Queue constant @i of the caller. */
static void want_constant(struct lang_memory *m, const struct lua_layout *l, struct naming *n,
			  uint32_t i)
{
	if (i < bytes_u32(n->caller + l->proto_nr_constants))
		n->piece =
			want(m,
			     bytes_u64(n->caller + l->proto_constants) + VALUE_SIZE * (uint64_t)i,
			     VALUE_SIZE);
}

/* Queue the part that has the name: by the instruction that set the function. */
static void want_name(struct lang_memory *m, const struct lua_layout *l, struct naming *n,
		      uint32_t insn)
{
	uint32_t op = op_of(l, insn), bits = l->op_bits == 6 ? 9 : 8;
	uint32_t b = insn >> l->pos_b & ((1U << bits) - 1);
	uint32_t c = insn >> l->pos_c & ((1U << bits) - 1);
	/* Whether C is a constant, not a register: a bit of C, or of the instruction. */
	bool constant = l->op_bits == 6 ? c & 256 : insn >> 15 & 1;

	n->piece = -1;
	n->local = 0;
	n->indirect = false;
	if (!insn)
		return;
	if (op == l->op_getglobal)
		want_constant(m, l, n, insn >> 14);
	else if (l->op_bits == 7 && (op == l->op_getfield || op == l->op_gettabup))
		want_constant(m, l, n, c);
	else if (op == l->op_getfield || op == l->op_gettabup || op == l->op_self) {
		if (constant)
			want_constant(m, l, n, l->op_bits == 6 ? c & 255 : c);
	} else if (op == l->op_getupval && b < bytes_u32(n->caller + l->proto_nr_upvalues)) {
		n->indirect = true;
		n->piece = want(m,
				bytes_u64(n->caller + l->proto_upvalues) +
					(uint64_t)l->upvalue_size * b,
				8);
	} else if (op == l->op_move && b >= n->caller[l->proto_parameters]) {
		/* A parameter is called by the name of many functions. */
		n->local = b + 1;
		n->piece = want(m, bytes_u64(n->caller + l->proto_locals),
				LOCAL_SIZE *
					MIN(bytes_u32(n->caller + l->proto_nr_locals), LOCALS_MAX));
	}
}

/* Return the address of the name of the variable that lives at the call. */
static uint64_t local_name(const struct naming *n, const uint8_t *locals, uint32_t nr)
{
	uint32_t left = n->local;

	for (uint32_t i = 0; i < nr && bytes_u32(locals + (size_t)LOCAL_SIZE * i + 8) <= n->at; i++)
		if (n->at < bytes_u32(locals + (size_t)LOCAL_SIZE * i + 12) && !--left)
			return bytes_u64(locals + (size_t)LOCAL_SIZE * i);
	return 0;
}

/* Queue the string that is the name. */
static void want_string(struct lang_memory *m, const struct lua_layout *l, const struct naming *n,
			struct lang_text *t)
{
	const uint8_t *bytes = lang_memory_piece(m, n->piece);

	t->piece = -1;
	if (!bytes)
		return;
	if (n->local)
		t->addr = local_name(n, bytes,
				     MIN(bytes_u32(n->caller + l->proto_nr_locals), LOCALS_MAX));
	/* A value with another type than that of a string. */
	else if (!n->indirect && (bytes[8] & 15) != 4)
		return;
	else
		t->addr = bytes_u64(bytes);
	t->piece = want(m, t->addr, STRING_HEAD);
}

/* Find the new functions that are called by others in the chain, and queue what precedes the calls.
 */
static uint32_t want_windows(struct lang_memory *m, struct lang_work *k, const struct lua_layout *l,
			     const uint64_t pc[static LANG_FRAMES_MAX],
			     struct naming names[static NAMED_MAX])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i + 1 < k->nr && nr < NAMED_MAX; i++) {
		uint32_t code = k->code[i];
		const uint8_t *caller = proto_at(m, k, k->code[i + 1]);
		uint32_t at = number_of(l, caller, pc[i + 1]);

		if (!k->base[i] || at == UINT32_MAX ||
		    k->script_functions_of[code].id != CODE_NONE || k->functions[code].name.addr)
			continue;
		k->functions[code].name.addr = 1;
		names[nr] = (struct naming){ .code = code, .at = at, .caller = caller };
		names[nr].first = at - MIN(at, WINDOW - 1);
		names[nr].piece =
			lang_memory_want_once(m,
					      bytes_u64(caller + l->proto_code) +
						      (uint64_t)INSN_SIZE * names[nr].first,
					      INSN_SIZE * (at - names[nr].first + 1));
		nr++;
	}
	return nr;
}

/* Name the new functions. */
static bool read_names(struct lang_memory *m, struct lang_work *k, const struct lua_layout *l,
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
	for (uint32_t i = 0; i < nr; i++)
		want_string(m, l, &names[i], &k->functions[names[i].code].name);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		set_string(m, l, &k->functions[names[i].code].name);
	return true;
}

static enum lang_status codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;
	const struct lua_layout *l = &p->lua;
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

#define IDENT_SIZE	  64U
#define FUNCTIONS_MAX	  128U
#define FUNCTION_SIZE	  (128U << 10)
#define LOOP_SIZE	  2048U
#define STORES_MIN	  8U
#define PC_IN_NO_REGISTER 0xffU

static const struct lua_version {
	uint32_t version;
	bool compared;
	struct lua_layout layout;
} luas[] = {
#define LUA_FIELD(name, value)
#define LUA_LAYOUT(major, minor, patch, compared, ...)                                             \
	{ (major) << 24 | (minor) << 16 | (patch) << 8, compared, { __VA_ARGS__ } },
#include "symbols/script/lua_layouts.inc"
#undef LUA_FIELD
#undef LUA_LAYOUT
};

static const struct lua_version *version_of(uint32_t version)
{
	const struct lua_version *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(luas); i++)
		if (luas[i].version <= version && luas[i].version >> 16 == version >> 16)
			found = &luas[i];
	return found;
}

static void on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	if (!strcmp(name, "lua_call") || !strcmp(name, "lua_callk"))
		search->entry = s->st_value;
}

/* Functions that lua_call() reaches by direct calls. */
struct reached {
	const struct elffile *f;
	const struct ehframe *eh;
	struct ehframe_fde functions[FUNCTIONS_MAX];
	uint32_t nr;
};

static void reach(struct reached *r, uint64_t vaddr)
{
	struct ehframe_fde fde;

	if (r->nr == FUNCTIONS_MAX || !ehframe_find(r->eh, vaddr, &fde) || fde.start != vaddr ||
	    fde.size > FUNCTION_SIZE)
		return;
	for (uint32_t i = 0; i < r->nr; i++)
		if (r->functions[i].start == vaddr)
			return;
	r->functions[r->nr++] = fde;
}

/* Get the target of a call or jump at @code, of which 5 bytes are there. False: there is none. */
static bool read_call(uint16_t machine, const uint8_t *code, uint64_t vaddr, uint64_t *target)
{
	uint32_t word;

	if (machine == EM_X86_64) {
		if (code[0] != 0xe8 && code[0] != 0xe9)
			return false;
		*target = vaddr + 5 + (uint64_t)(int64_t)(int32_t)bytes_u32(code + 1);
		return true;
	}
	word = bytes_u32(code);
	if (machine != EM_AARCH64 || vaddr & 3 || (word & 0x7c000000) != 0x14000000) /* b, bl */
		return false;
	*target = vaddr + (uint64_t)(int64_t)((int32_t)(word << 6) >> 4);
	return true;
}

/* Read the code of a function. NULL: it is not there. */
static uint8_t *read_code(const struct elffile *f, uint64_t vaddr, uint64_t size)
{
	uint64_t offset;
	void *code;

	return elffile_offset(f, vaddr, size, &offset) &&
			       !elffile_read_alloc(f, offset, size, &code)
		       ? code
		       : NULL;
}

/* Add the functions that functions @first to @end call. */
static void reach_calls(struct reached *r, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const struct ehframe_fde fde = r->functions[i];
		uint8_t *code = read_code(r->f, fde.start, fde.size);
		uint64_t target;

		for (uint32_t at = 0; code && at + 5 <= fde.size; at++)
			if (read_call(r->f->machine, code + at, fde.start + at, &target))
				reach(r, target);
		free(code);
	}
}

/*
 * Find the loop of a stripped file: of the functions that lua_call() reaches in two or three calls
 * it is the largest by far.
 */
static void find_loop(struct detect_search *search, const struct elffile *f,
		      const struct ehframe *eh)
{
	struct reached r = { .f = f, .eh = eh };
	uint32_t end = 0;

	reach(&r, search->entry);
	for (int depth = 0; depth < 3; depth++) {
		const struct ehframe_fde *most = NULL, *next = NULL;
		uint32_t first = end;

		end = r.nr;
		reach_calls(&r, first, end);
		for (uint32_t i = 1; i < r.nr; i++) {
			if (!most || r.functions[i].size > most->size) {
				next = most;
				most = &r.functions[i];
			} else if (!next || r.functions[i].size > next->size) {
				next = &r.functions[i];
			}
		}
		if (!most || most->size < LOOP_SIZE || (next && most->size < 2 * next->size))
			continue;
		search->out->eval[0] = (struct lang_range){ most->start, most->start + most->size };
		search->out->nr_eval = 1;
		return;
	}
}

/*
 * Return the register, as DWARF has it, in which the loop has its instruction: it stores that in
 * many places at @offset of the call or the state. PC_IN_NO_REGISTER: none.
 */
static uint8_t find_register(const uint8_t *code, uint64_t size, uint32_t offset,
			     uint32_t *nr_stores)
{
	static const uint8_t dwarf[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };
	uint32_t nr[16] = { 0 }, most = 0, all = 0;

	for (uint64_t at = 0; code && at + 5 <= size; at++) {
		const uint8_t *c = code + at;
		/* mov of 64 bits to memory at a register and a byte. */
		bool sib = (c[2] & 7) == 4;

		if ((c[0] & 0xf8) != 0x48 || c[1] != 0x89 || c[2] >> 6 != 1 ||
		    c[3 + sib] != offset || (sib && !(c[0] & 1)))
			continue;
		nr[(c[2] >> 3 & 7) | (c[0] & 4) << 1]++;
		all++;
	}
	for (uint32_t i = 1; i < 16; i++)
		most = nr[i] > nr[most] ? i : most;
	*nr_stores = nr[most];
	return nr[most] >= STORES_MIN && 4 * nr[most] >= 3 * all ? dwarf[most] : PC_IN_NO_REGISTER;
}

/* Return the version in "$LuaVersion: Lua 5.4.4  Copyright"; 0: it has none. */
static uint32_t read_version(const char *said)
{
	static const char begin[] = "Lua 5.";
	const char *at = strstr(said, begin);
	uint32_t version;
	char *end;

	if (!at || at[6] < '0' || at[6] > '9')
		return 0;
	version = 5U << 24 | (uint32_t)(strtoul(at + 6, &end, 10) & 255) << 16;
	return version | (*end == '.' ? (uint32_t)(strtoul(end + 1, NULL, 10) & 255) << 8 : 0);
}

/* Return the offset at which the loop stores its instruction. */
static uint32_t pc_offset(const struct lua_layout *l)
{
	return l->state_pc == NONE ? l->ci_pc : l->state_pc;
}

/*
 * Find the loop of a file without symbols: it stores one register at the place of the instruction
 * by far most often.
 */
static void search_loop(struct detect_search *search, const struct elffile *f,
			const struct ehframe *eh)
{
	char said[IDENT_SIZE + 1] = "";
	const struct lua_version *row;
	uint32_t most = 0, next = 0;

	if (!elffile_read_at(f, search->out->runtime, said, IDENT_SIZE) || f->machine != EM_X86_64)
		return;
	row = version_of(read_version(said));
	/* All are missed in one call, not piece by piece. */
	for (uint32_t i = 0; i < f->nr_phdrs; i++)
		if (f->phdrs[i].p_flags & PF_X &&
		    elffile_expect(f, f->phdrs[i].p_offset, f->phdrs[i].p_filesz))
			return;
	for (uint32_t i = 0; row && !row->layout.keeps_pc && i < eh->nr_fdes; i++) {
		struct ehframe_fde fde;
		uint32_t nr = 0;
		uint8_t *code;

		if (!ehframe_find(eh, ehframe_start(eh, i), &fde) || fde.size < LOOP_SIZE ||
		    fde.size > FUNCTION_SIZE || !(code = read_code(f, fde.start, fde.size)))
			continue;
		if (find_register(code, fde.size, pc_offset(&row->layout), &nr) ==
		    PC_IN_NO_REGISTER)
			nr = 0;
		free(code);
		if (nr > most)
			search->out->eval[0] =
				(struct lang_range){ fde.start, fde.start + fde.size };
		next = MAX(next, MIN(nr, most));
		most = MAX(nr, most);
	}
	search->out->nr_eval = most && most >= 2 * next;
}

static int on_file(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	struct image *image;

	if (!out->runtime)
		out->runtime = detect_find_text(f, "$LuaVersion: Lua 5.");
	if (!out->runtime)
		return -ENOENT;
	if (!out->nr_eval && !image_build(&image, &(struct image_parts){ .file = f }) && image) {
		if (search->entry)
			find_loop(search, f, &image->eh);
		else
			search_loop(search, f, &image->eh);
		image_free(image);
	}
	if (search->entry || out->nr_eval)
		return 0;
	/* The text alone is of no use. */
	out->runtime = 0;
	return -ENOENT;
}

/* Find the register by the code of the process, once the version is known. */
static void set_register(struct lang_process *p, const struct lua_layout *l, pid_t pid)
{
	uint64_t size = p->eval[0].end - p->eval[0].start;
	uint8_t *code = size <= FUNCTION_SIZE ? malloc(size) : NULL;
	uint32_t nr;

	p->pc_register = PC_IN_NO_REGISTER;
	if (code && !l->keeps_pc && lang_memory_copy(pid, p->eval[0].start, code, size))
		p->pc_register = find_register(code, size, pc_offset(l), &nr);
	free(code);
}

/* Set the version, from "$LuaVersion: Lua 5.4.4  Copyright", and its layout. */
static bool detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	const struct lua_version *row;
	char said[IDENT_SIZE + 1] = "";

	errno = 0;
	if (!lang_memory_copy(pid, p->runtime, said, IDENT_SIZE)) {
		lang_memory_refused(p);
		return false;
	}
	p->version = read_version(said);
	row = version_of(p->version);
	if (!row) {
		p->reason = "not supported (" LUA_READ ")";
		return false;
	}
	p->lua = row->layout;
	p->untried |= !row->compared;
	if (d->machine == EM_X86_64)
		set_register(p, &row->layout, pid);
	return false;
}

const struct language language_lua = {
	.name = "lua",
	.title = "Lua",
	.versions = LUA_SHOWN,
	.letter = 'a',
	.program = "lua",
	.library = "liblua",
	.shown = "lua_newstate",
	.runtime = "lua_ident",
	.eval = "luaV_execute",
	.on_symbol = on_symbol,
	.on_file = on_file,
	.detect = detect,
	.stack = chain,
	.functions = codes,
};

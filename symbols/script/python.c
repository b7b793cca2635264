// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPython: which state a thread has, along its frames, its code objects and line tables; offsets by
 * version, or as the interpreter describes itself.
 *
 * Runs on: a reader. Invariant: each step costs a frame of the bound, so a chain that bites its
 * tail ends.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"

#define PAGE 4096ULL

/* Bytes of a part of the stack of frames. */
#define CHUNK (16ULL << 10)

/* Most steps of a walk: frames, and ends of C frames. */
#define PASSED_MAX (2 * LANG_FRAMES_MAX)

/* Chunks of a deep stack that are gone through, and the ones that are read together. */
#define CHUNKS_MAX   64U
#define CHUNKS_AHEAD 8U

/* Of a chunk: the one before it, its size, and its first frame, if it is not the first chunk. */
#define CHUNK_BEFORE	  0U
#define CHUNK_SIZE	  8U
#define CHUNK_FIRST_FRAME 24U

struct walk {
	struct lang_reader *r;
	const struct py_layout *l;
	const struct lang_sample *s;
	struct lang_thread *t;
	uint64_t cframe;   /* of the C frame of the loop in hand; 0: not known */
	uint64_t current;  /* address of the innermost frame */
	uint64_t on_stack; /* latest address known to be on the stack of frames */
	uint64_t chunk;	   /* the last one of this stack; 0: unknown */
	bool cut;	   /* frames in the middle were left out */
};

static const uint8_t *in_copy(const struct lang_sample *s, uint64_t addr, uint32_t size)
{
	uint64_t at = addr - s->sp;

	if (size > s->stack_size || at > s->stack_size - size)
		return NULL;
	lang_chain_need(s, at + size);
	return s->stack + at;
}

/* Pieces of the states of a thread, and of the words that are watched. */
struct begin {
	int state[LANG_OTHERS + 1];
	int watched[LANG_WATCHED];
};

/* Return the bytes of a state that are read. */
static uint32_t state_size(const struct py_layout *l)
{
	return MAX(MAX(l->ts_top, l->ts_native_id), MAX(l->ts_thread_id, l->ts_current)) + 8U;
}

/* Queue the states of the thread, the words that are watched, and the pieces of its last chain. */
static void want_ahead(struct walk *w, struct begin *b)
{
	struct lang_memory *m = &w->r->memory;
	uint32_t size = state_size(w->l);

	b->state[0] = lang_memory_want(m, w->t->state, size);
	for (uint32_t i = 0; i < w->t->nr_others; i++)
		b->state[i + 1] = lang_memory_want(m, w->t->others[i], size);
	for (uint32_t i = 0; i < w->t->nr_watched; i++)
		b->watched[i] = lang_memory_want(m, w->t->watched[i].addr, 8);
	prefetch_want(w->r, w->t, w->s);
}

/* Note the first interpreter, which is the latest one. False: there are others. */
static bool watch_first(struct walk *w, const struct lang_process *p)
{
	struct lang_memory *m = &w->r->memory;
	const uint64_t addr = p->runtime + w->l->interpreters;
	const uint8_t *bytes = lang_memory_read(m, addr, 8);
	const uint64_t first = bytes ? bytes_u64(bytes) : 0;

	if (!lang_memory_is_pointer(first))
		return true;
	bytes = lang_memory_read(m, first + w->l->interp_next, 8);
	if (!bytes)
		return true;
	if (bytes_u64(bytes))
		return false;
	w->t->watched[w->t->nr_watched++] = (struct lang_word){ addr, first };
	return true;
}

/* Read the states. False: the thread may have others, in other interpreters. */
static bool read_states(struct walk *w, const struct lang_process *p, const struct begin *b)
{
	const struct lang_memory *m = &w->r->memory;

	if (!lang_memory_fetch(&w->r->memory))
		return false;
	for (uint32_t i = 0; i < w->t->nr_watched; i++) {
		const uint8_t *now = lang_memory_piece(m, b->watched[i]);

		if (!now || bytes_u64(now) != w->t->watched[i].value)
			return false;
	}
	return w->t->nr_watched || watch_first(w, p);
}

/* Find the innermost frame of state @state, in piece @piece. LANG_OK: go on. */
static enum lang_status begin(struct walk *w, uint64_t state, int piece)
{
	const struct py_layout *l = w->l;
	struct lang_memory *m = &w->r->memory;
	const uint8_t *ts = lang_memory_piece(m, piece), *c;

	if (!ts)
		return LANG_NO_THREAD;
	if (bytes_u64(ts + (l->ts_native_id ? l->ts_native_id : l->ts_thread_id)) != w->t->id)
		return LANG_NO_THREAD;
	w->current = bytes_u64(ts + l->ts_current);
	w->on_stack = l->ts_top ? bytes_u64(ts + l->ts_top) : 0;
	w->chunk = l->ts_top ? bytes_u64(ts + l->ts_top - 8) : 0;
	if (!w->r->work.nr) {
		w->r->work.again[0] = (struct lang_ahead){ state + l->ts_current, 8 };
		w->r->work.first_read[0] = ts + l->ts_current;
		w->r->work.top = w->on_stack;
	}
	if (l->cframe_size) {
		w->cframe = w->current;
		/* That of a thread that runs no frames is in its state. */
		if (w->cframe - state < PAGE)
			return LANG_NO_FRAMES;
		c = in_copy(w->s, w->cframe, l->cframe_size);
		if (!c)
			c = lang_memory_read(m, w->cframe, l->cframe_size);
		if (!c)
			return LANG_BAD_CHAIN;
		w->current = bytes_u64(c + l->cframe_current);
	}
	return w->current ? LANG_OK : LANG_NO_FRAMES;
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
	return f ? f : prefetch_frame(w->r, w->t, addr, size, alone);
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
 * used up the windows that are read ahead, and half of the calls: the codes need the others. So do
 * the outermost frames of a deep stack.
 */
static bool is_costly(const struct walk *w)
{
	if (w->cut && w->r->memory.calls >= LANG_OUTER_CALLS_MAX)
		return true;
	return w->r->work.nr && w->t->nr_ahead == LANG_AHEAD &&
	       w->r->memory.calls >= LANG_CALLS_MAX / 2;
}

/*
 * Return the frame in the first chunk that called the ones in the others: the first frame of the
 * second chunk says it. 0: not known, or the frames are in the first chunk by now.
 */
static uint64_t outer_caller(const struct walk *w)
{
	const uint32_t size = CHUNK_FIRST_FRAME + w->l->frame_previous + 8U;
	struct lang_memory *m = &w->r->memory;
	uint64_t chunk = w->chunk, caller = 0, stride = 0;
	int ahead[CHUNKS_AHEAD];
	uint32_t nr_ahead = 0, next = 0;

	for (uint32_t i = 0; i < CHUNKS_MAX && m->calls < LANG_OUTER_CALLS_MAX; i++) {
		const uint8_t *c = next < nr_ahead ? lang_memory_piece(m, ahead[next++]) : NULL;
		uint64_t before;

		if (!c && lang_memory_is_pointer(chunk))
			c = lang_memory_read(m, chunk, size);
		if (!c)
			return 0;
		before = bytes_u64(c + CHUNK_BEFORE);
		if (!before)
			return w->on_stack - chunk < bytes_u64(c + CHUNK_SIZE) ? 0 : caller;
		caller = bytes_u64(c + CHUNK_FIRST_FRAME + w->l->frame_previous);
		/* Most are one behind the other: these are read together. */
		if (before - chunk != stride)
			nr_ahead = next = 0;
		else if (next == nr_ahead)
			for (nr_ahead = next = 0; nr_ahead < CHUNKS_AHEAD; nr_ahead++)
				ahead[nr_ahead] =
					lang_memory_want(m, before + nr_ahead * stride, size);
		if (nr_ahead && !next && !lang_memory_fetch(m))
			return 0;
		stride = before - chunk;
		chunk = before;
	}
	return 0;
}

/* Leave out frames in the middle, in front of the one at @addr. Return the next one to read. */
static uint64_t leave_out(struct walk *w, uint64_t addr)
{
	uint64_t caller = w->cut ? 0 : outer_caller(w);

	w->cut = true;
	lang_leave_out(&w->r->work, caller ? 0 : LANG_OUTER_LEAST);
	return caller ? caller : addr;
}

/* End a chain, the root of which was reached, or not. */
static void end_chain(struct walk *w, bool root)
{
	struct lang_work *k = &w->r->work;

	k->deep |= !root || w->cut;
	if (!w->cut)
		return;
	/* Without the root these are frames of the middle. */
	if (!root)
		k->nr = LANG_INNER;
	/* They do not follow the ones in front of them. */
	for (uint32_t i = LANG_INNER; i < k->nr; i++)
		k->base[i] = 0;
}

/* Add the frames of the state. */
static enum lang_status read_frames(struct walk *w)
{
	const struct py_layout *l = w->l;
	struct lang_work *k = &w->r->work;
	uint64_t addr = w->current;

	w->cut = false;
	for (uint32_t passed = 0; addr; passed++) {
		const uint8_t *f;

		if (passed == PASSED_MAX || is_costly(w))
			break;
		if (k->nr == LANG_FRAMES_MAX)
			addr = leave_out(w, addr);
		f = frame_at(w, addr);
		if (f && l->frame_owner && !l->frame_is_entry && f[l->frame_owner] >= 3) {
			end_c_frame(w, addr);
		} else if (!f || !add_frame(w, addr, f)) {
			/* Frames beyond the innermost ones are worth no chain. */
			if (!w->cut)
				return LANG_BAD_CHAIN;
			break;
		}
		addr = bytes_u64(f + l->frame_previous);
	}
	end_chain(w, !addr);
	return LANG_OK;
}

/*
 * Return whether the frames from number @first on, of a state that called the one before, are
 * further from the top of the C stack than the others.
 */
static bool is_outside(const struct lang_work *k, uint32_t first)
{
	uint64_t inner = first ? k->boundary[first - 1] : 0, outer = 0;

	for (uint32_t i = first; i < k->nr && !outer; i++)
		outer = k->boundary[i];
	return inner <= 1 || outer <= 1 || inner < outer;
}

/* Have the first of the other states in front of the first one at the next sample. */
static void swap_states(struct lang_thread *t, uint32_t other)
{
	uint64_t state = t->state;

	assert(other < t->nr_others);
	t->state = t->others[other];
	t->others[other] = state;
}

/*
 * Return whether the thread may run frames of a state that was not kept, as it has too many. They
 * are searched again then, if that is allowed by now.
 */
static bool runs_another(const struct lang_reader *r, const struct lang_sample *s,
			 const struct lang_thread *t)
{
	const struct lang_search *search = &r->searches[hash_u64(s->process) & (LANG_SEARCHES - 1)];

	return t->searched_ns && s->time_ns >= t->searched_ns + LANG_SEARCH_NS &&
	       (search->process != s->process || s->time_ns >= search->until_ns);
}

static enum lang_status pychain_read(struct lang_reader *r, const struct lang_process *p,
				     const struct lang_sample *s, struct lang_thread *t)
{
	struct walk w = { .r = r, .l = &p->py, .s = s, .t = t };
	struct lang_work *k = &r->work;
	struct begin b;

	k->nr = k->nr_boundaries = 0;
	k->top = 0;
	want_ahead(&w, &b);
	if (!read_states(&w, p, &b))
		return LANG_NO_THREAD;
	for (uint32_t i = 0; i <= t->nr_others; i++) {
		uint32_t first = k->nr;
		enum lang_status none = begin(&w, i ? t->others[i - 1] : t->state, b.state[i]);

		if (none == LANG_OK)
			none = read_frames(&w);
		if (none == LANG_NO_THREAD || none == LANG_BAD_CHAIN)
			return none;
		if (!is_outside(k, first)) {
			swap_states(t, i - 1);
			return LANG_BAD_CHAIN;
		}
	}
	if (k->nr)
		return LANG_OK;
	return k->deep ? LANG_NO_ROOM : runs_another(r, s, t) ? LANG_NO_THREAD : LANG_NO_FRAMES;
}

/*
 * CPython: which PyThreadState belongs to which thread.
 *
 * Runs on: a reader. From 3.11 on a state has the thread's id; before that pthread_self(), where
 * the C library keeps the id: at an offset that glibc and musl have not changed for x86-64. A
 * process that was forked may have the parent's id in its states: 3.11.0 and 3.11.1 do not set it
 * again, later ones only where Python itself forks. The C library has the true one.
 */

#define INTERPRETERS_MAX 256
#define STATES_MAX	 1024

/* Frames of a state that are gone through for the one that is on the C stack. */
#define INNER_MAX 64

/* Each state takes a call: more than the bound of one sample. */
static const uint8_t *read_state(struct lang_reader *r, uint64_t addr, uint32_t size)
{
	lang_memory_begin(&r->memory);
	return lang_memory_is_pointer(addr) ? lang_memory_read(&r->memory, addr, size) : NULL;
}

static uint64_t read_word(struct lang_reader *r, uint64_t addr)
{
	const uint8_t *bytes = read_state(r, addr, 8);

	return bytes ? bytes_u64(bytes) : 0;
}

/*
 * Return whether the state at @addr, with @current, has no frames: an address in the state itself
 * is of one that runs nothing.
 */
static bool is_idle(uint64_t addr, uint64_t current)
{
	return !current || current - addr < PAGE;
}

/*
 * Get the thread of the state at @addr, and keep it if it is not that of the sample: that may have
 * @many states. Returns the next state; 0: none.
 */
static uint64_t look_at(struct lang_reader *r, const struct lang_process *p,
			const struct lang_sample *s, uint64_t addr, bool many, pid_t *tid,
			uint64_t *id, uint64_t *current)
{
	const struct py_layout *l = &p->py;
	uint32_t size =
		MAX(MAX(l->ts_native_id, l->ts_thread_id), MAX(l->ts_next, l->ts_current)) + 8U;
	const uint8_t *ts = read_state(r, addr, size);
	uint64_t next, self;

	*tid = -1;
	if (!ts)
		return 0;
	next = bytes_u64(ts + l->ts_next);
	*current = bytes_u64(ts + l->ts_current);
	self = bytes_u64(ts + l->ts_thread_id);
	*id = l->ts_native_id ? bytes_u64(ts + l->ts_native_id) : self;
	*tid = l->ts_native_id ? (pid_t)*id : lang_tid_of_pthread(r, self);
	if (l->ts_native_id && *tid != s->tid && s->is_main &&
	    lang_tid_of_pthread(r, self) == s->tid)
		*tid = s->tid;
	if (*tid > 0 && *tid != s->tid && !many)
		lang_chain_keep_thread(r, s->process, *tid, addr, *id);
	return next;
}

/* The word at @addr, which is watched: that of the thread of the sample. */
static uint64_t watch(struct lang_reader *r, struct lang_thread *found, uint64_t addr)
{
	uint64_t value = read_word(r, addr);

	if (found->nr_watched < LANG_WATCHED)
		found->watched[found->nr_watched++] = (struct lang_word){ addr, value };
	return value;
}

/* The states of a thread, one in each interpreter; the first of them are kept, or ones with frames.
 */
struct states {
	uint64_t id, addr[1 + LANG_OTHERS];
	bool idle[1 + LANG_OTHERS];
	uint32_t nr;
	bool more;
};

static void add_state(struct states *found, uint64_t addr, uint64_t id, bool idle, bool here)
{
	uint32_t at;

	if (found->nr && id != found->id) {
		found->more = true;
		if (!here)
			return;
		/* The thread runs this one. */
		found->nr = 0;
	}
	at = found->nr;
	found->id = id;
	if (found->nr < ARRAY_SIZE(found->addr)) {
		found->nr++;
	} else {
		found->more = true;
		while (at && !found->idle[at - 1])
			at--;
		if (idle || !at--)
			return;
	}
	found->addr[at] = addr;
	found->idle[at] = idle;
}

static void keep_states(struct lang_reader *r, const struct lang_sample *s,
			const struct states *states, const struct lang_thread *watched)
{
	struct lang_thread *t;

	if (!states->nr)
		return;
	t = lang_chain_keep_thread(r, s->process, s->tid, states->addr[0], states->id);
	t->nr_others = states->nr - 1;
	t->nr_watched = watched->nr_watched;
	t->searched_ns = states->more ? r->work.time_ns : 0;
	memcpy(t->others, states->addr + 1, sizeof(t->others));
	memcpy(t->watched, watched->watched, sizeof(t->watched));
}

/*
 * Return whether the state of @current runs in the C frame of a loop that is on the stack of the
 * sample. Up to 3.12 it is the C frame, later the innermost frame that ends one is in it.
 */
static bool runs_here(struct lang_reader *r, const struct py_layout *l, const struct lang_sample *s,
		      uint64_t current, bool many)
{
	if (l->cframe_size || !l->frame_owner)
		return l->cframe_size && current - s->sp < s->stack_size;
	for (uint32_t i = 0; many && i < INNER_MAX && current; i++) {
		const uint8_t *f;

		if (current - s->sp < s->stack_size)
			return true;
		f = read_state(r, current, l->frame_size);
		if (!f || f[l->frame_owner] >= 3)
			return false;
		current = bytes_u64(f + l->frame_previous);
	}
	return false;
}

/*
 * Find the state of the thread among the ones of an interpreter, from @state on, at most @max. One
 * that was made by another thread, as uwsgi does, has the id of that: it is found by its C frame of
 * the loop, on the stack of the sample. Return how many were looked at.
 */
static uint32_t find_state(struct lang_reader *r, const struct lang_process *p,
			   const struct lang_sample *s, uint64_t state, bool many, uint32_t max,
			   struct states *states)
{
	uint64_t first = 0, first_id = 0;
	bool first_idle = true, here = false, idle;
	uint32_t nr = 0, nr_same = 0;
	pid_t tid = -1;

	while (state && nr < max) {
		uint64_t at = state, id = 0, current = 0;

		nr++;
		state = look_at(r, p, s, at, many, &tid, &id, &current);
		idle = is_idle(at, current);
		here = !idle && runs_here(r, &p->py, s, current, many);
		nr_same += tid == s->tid;
		if (!here && (tid != s->tid || first))
			continue;
		first = at;
		first_id = id;
		first_idle = idle;
		if (here || !(p->py.cframe_size || many))
			break;
	}
	/* It may run ones with its id later. */
	states->more |= here && tid != s->tid;
	/* One of several with this id that runs frames elsewhere is another thread's. */
	if (first && !here && !first_idle && nr_same > 1)
		states->more = true;
	else if (first)
		add_state(states, first, first_id, first_idle, here);
	return nr;
}

/* Find the states of the thread, one in each interpreter: the latest interpreters are first. */
static void pythread_find(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s)
{
	const struct py_layout *l = &p->py;
	struct lang_thread found = { .nr_watched = 0 };
	struct states states = { .nr = 0 };
	uint64_t interp = watch(r, &found, p->runtime + l->interpreters), next;
	uint32_t nr = 0;

	for (int i = 0; i < INTERPRETERS_MAX && interp; i++, interp = next) {
		uint64_t state;
		bool many;

		next = read_word(r, interp + l->interp_next);
		many = i || next;
		state = many ? watch(r, &found, interp + l->interp_threads)
			     : read_word(r, interp + l->interp_threads);
		nr += find_state(r, p, s, state, many, STATES_MAX - nr, &states);
	}
	keep_states(r, s, &states, &found);
}

/*
 * CPython: the code objects of a chain, their names and line tables.
 *
 * Runs on: a reader. The header of each is read at each sample: freed
 * memory may be another function by now. Strings are read once.
 */

#define TYPE_AT	 8  /* of each object */
#define SIZE_AT	 16 /* of a string or of bytes */
#define HASH_AT	 24 /* of a string */
#define STATE_AT 32 /* of a string */

/* Of the chunks of a stack of frames: their alignment, and the bytes before the first frame. */
#define CHUNK_ALIGN 4096U

#define CHUNK_HEAD 32U
#define STR_HEAD   40
#define BYTES_HEAD 32

/* New functions per sample; the rest is read at the next sample. */
#define NEW_MAX 64

/* Not a hash of a function, which is odd. */
#define FUNCTIONS_DIFFER 2

/* One string, from its head to its bytes. */
struct string {
	uint64_t addr;
	int head, bytes; /* pieces */
	uint32_t length, unit;
};

/* A function that is met for the first time. */
struct fresh {
	struct lang_code_at *code;
	struct string name, file, table;
	uint32_t first_line;
};

/* Return the size of a header with all of its members: a process may choose their offsets. */
static uint32_t header_size(const struct py_layout *l)
{
	const uint8_t members[] = { TYPE_AT,	      l->code_first_line, l->code_filename,
				    l->code_name,     l->code_qualname,	  l->code_table,
				    l->code_consts,   l->code_version,	  l->code_nlocals,
				    l->code_stacksize };
	uint32_t last = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		last = MAX(last, members[i]);
	return last + 8U;
}

static uint64_t name_of(const struct py_layout *l, const uint8_t *header)
{
	return bytes_u64(header + (l->code_qualname ? l->code_qualname : l->code_name));
}

static uint32_t *replaces_of(struct lang_reader *r, uint32_t process)
{
	return &r->replaces[hash_u64(process) & (LANG_REPLACES - 1)];
}

static bool is_same(const struct lang_known *k, uint32_t process, const struct lang_code_at *c)
{
	return k->process == process && k->address == c->address;
}

/* Return whether it is an old function of a file: its header is not read at each sample. */
static bool is_old(const struct lang_known *k, uint64_t now_ns)
{
	return now_ns > k->born_ns + LANG_YOUNG_NS && !k->made;
}

/* Return whether the code at @c is usable without its header, now or (@soon) for as long again. */
static bool is_fresh(struct lang_reader *r, uint32_t process, const struct lang_code_at *c,
		     bool soon)
{
	const struct lang_known *k = c->known;
	uint64_t now_ns = r->work.time_ns, limit_ns;

	if (!is_same(k, process, c) || !is_old(k, now_ns) || *replaces_of(r, process) == process)
		return false;
	limit_ns = MIN((now_ns - k->born_ns) / LANG_CHECK_SHARE, LANG_CHECK_MAX_NS);
	if (c->function & 1 && c->function == k->function)
		limit_ns *= LANG_SAME_FACTOR;
	return now_ns < k->checked_ns + (soon ? limit_ns / 2 : limit_ns);
}

static void number_codes(struct lang_reader *r, uint32_t process)
{
	struct lang_work *w = &r->work;
	bool any_due = false;

	functions_number(r, process);
	for (uint32_t i = 0; i < w->nr; i++) {
		struct lang_code_at *c = &w->script_functions_of[w->code[i]];

		if (!c->function)
			c->function = w->function[i];
		else if (c->function != w->function[i])
			c->function = FUNCTIONS_DIFFER;
	}
	/* With one that is due read all that will be due soon: the call costs most. */
	for (uint32_t i = 0; i < w->nr_codes && !any_due; i++)
		any_due = !is_fresh(r, process, &w->script_functions_of[i], false);
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->script_functions_of[i];

		c->fresh = is_fresh(r, process, c, any_due);
		c->words = c->known->words;
	}
}

/* That of old code is not needed at the next samples. */
static int want_head_of(struct lang_reader *r, uint32_t process, const struct lang_code_at *c,
			uint64_t addr, uint32_t size)
{
	bool once = is_same(c->known, process, c) && is_old(c->known, r->work.time_ns) &&
		    *replaces_of(r, process) != process;

	return (once ? lang_memory_want_once : lang_memory_want)(&r->memory, addr, size);
}

/* Queue the headers, and the hashes of names of known code. */
static void want_headers(struct lang_reader *r, const struct py_layout *l, uint32_t process)
{
	struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->script_functions_of[i];

		c->header = c->hash = -1;
		if (!c->fresh)
			c->header =
				want_head_of(r, process, c, c->address + l->head, header_size(l));
	}
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->script_functions_of[i];

		if (c->fresh || !is_same(c->known, process, c))
			continue;
		c->name = c->known->name;
		c->hash = want_head_of(r, process, c, c->name + l->head + SIZE_AT, 16);
	}
}

/* Read the headers, and the hashes of the names of known code. */
static bool read_headers(struct lang_reader *r, const struct py_layout *l, uint32_t process)
{
	struct lang_work *w = &r->work;

	want_headers(r, l, process);
	if (!lang_memory_fetch(&r->memory))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->script_functions_of[i];
		const uint8_t *header = lang_memory_piece(&r->memory, c->header);

		if (c->fresh)
			continue;
		if (!header)
			return false;
		if (l->code_stacksize)
			c->words = bytes_u32(header + l->code_nlocals) +
				   bytes_u32(header + l->code_stacksize);
		if (c->hash >= 0 && c->name == name_of(l, header))
			continue;
		c->name = name_of(l, header);
		c->hash = lang_memory_is_pointer(c->name)
				  ? lang_memory_want(&r->memory, c->name + l->head + SIZE_AT, 16)
				  : -1;
	}
	return lang_memory_fetch(&r->memory);
}

/* Compute the stamp of a code object; false: it is none. */
static bool stamp(const struct lang_memory *m, const struct lang_process *p, struct lang_code_at *c)
{
	const uint8_t *header = lang_memory_piece(m, c->header),
		      *hash = lang_memory_piece(m, c->hash);
	const struct py_layout *l = &p->py;
	uint64_t s;

	if (!header || !hash || bytes_u64(header + TYPE_AT) != p->code_type)
		return false;
	s = hash_u64(bytes_u64(hash) ^ hash_u64(bytes_u64(hash + HASH_AT - SIZE_AT)));
	s = hash_u64(s ^ bytes_u64(header + l->code_consts));
	s = hash_u64(s ^ bytes_u64(header + l->code_filename));
	s = hash_u64(s ^ bytes_u64(header + l->code_table));
	s = hash_u64(s ^ c->name);
	s = hash_u64(s ^ bytes_u32(header + l->code_first_line));
	if (l->code_version)
		s = hash_u64(s ^ bytes_u32(header + l->code_version));
	c->stamp = s;
	return true;
}

/* The end of frame @i on the stack of frames. */
static uint64_t frame_end(const struct lang_reader *r, const struct py_layout *l, uint32_t i)
{
	const struct lang_work *w = &r->work;

	assert(w->code[i] < w->nr_codes);
	return w->base[i] + l->frame_size + 8ULL * w->script_functions_of[w->code[i]].words;
}

/* Return whether this is the first frame in a chunk of the stack of frames. */
static bool begins_chunk(uint64_t base)
{
	return (base & (CHUNK_ALIGN - 1)) <= CHUNK_HEAD;
}

/*
 * Frames of a thread follow each other without a gap. A chain with a gap goes through frames that
 * have ended: the thread is in the middle of a call.
 */
static void check_stack(struct lang_reader *r, const struct py_layout *l)
{
	struct lang_work *w = &r->work;
	uint64_t above = 0;

	/* That of a greenlet that does not run any more is linked without the ends of C frames. */
	w->broken = w->nr && !w->deep && !w->boundary[w->nr - 1];
	w->settled = l->one_frame_each;
	if (!l->ts_top)
		return;
	w->settled = w->base[0] && frame_end(r, l, 0) == w->top;
	for (uint32_t i = 0; i < w->nr; i++) {
		if (!w->base[i])
			continue;
		if (above && !begins_chunk(above) && frame_end(r, l, i) != above)
			w->broken = true;
		above = w->base[i];
	}
}

/* From a pointer or an index to bytes. */
static void set_instructions(struct lang_work *w, const struct py_layout *l)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		if (l->instr_unit)
			w->instr[i] *= l->instr_unit;
		else
			w->instr[i] -= w->address[i] + l->code_instructions;
	}
}

static void want_head(struct lang_memory *m, struct string *s, uint64_t addr, uint32_t size)
{
	*s = (struct string){ .addr = addr, .bytes = -1 };
	s->head = lang_memory_is_pointer(addr) ? lang_memory_want_once(m, addr, size) : -1;
}

/* Queue the bytes of a string or bytes object after its head. */
static void want_bytes(struct lang_memory *m, const struct py_layout *l, struct string *s,
		       bool text)
{
	const uint8_t *head = lang_memory_piece(m, s->head);
	uint64_t length = head ? bytes_u64(head + SIZE_AT) : 0;
	uint32_t state, kind, at = BYTES_HEAD;

	s->unit = 1;
	if (!head || !length)
		return;
	if (!text) {
		if (length > SCRIPT_FUNCTIONS_TABLE_MAX)
			return;
	} else {
		state = bytes_u32(head + STATE_AT);
		kind = state >> 2 & 7;
		if (!(state & 1U << 5) || (kind != 1 && kind != 2 && kind != 4))
			return;
		s->unit = kind;
		at = state & 1U << 6 ? l->str_ascii : l->str_other;
		length = MIN(length, (uint64_t)SCRIPT_FUNCTIONS_TEXT_MAX);
	}
	s->length = (uint32_t)length;
	s->bytes = lang_memory_want_once(m, s->addr + at, s->length * s->unit);
}

/* Write code point @c; returns its bytes, 0: it does not fit. */
static uint32_t put_utf8(char *out, uint32_t max, uint32_t c)
{
	uint32_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (size > max)
		return 0;
	if (size == 1) {
		out[0] = (char)c;
		return 1;
	}
	for (uint32_t i = size - 1; i; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(0xf00U >> size | c);
	return size;
}

/*
 * The text of a string as UTF-8, cut at SCRIPT_FUNCTIONS_TEXT_MAX; @empty for an empty one. False:
 * it was not read.
 */
static bool to_text(const struct lang_memory *m, const struct string *s, const char *empty,
		    char *out, uint16_t *size)
{
	const uint8_t *bytes = lang_memory_piece(m, s->bytes);
	const uint8_t *head = lang_memory_piece(m, s->head);
	uint32_t used = 0;

	if (head && !bytes_u64(head + SIZE_AT)) {
		*size = (uint16_t)strlen(empty);
		memcpy(out, empty, *size);
		return true;
	}
	for (uint32_t i = 0; bytes && i < s->length; i++) {
		uint32_t c = 0, n;

		memcpy(&c, bytes + (size_t)i * s->unit, s->unit);
		n = put_utf8(out + used, SCRIPT_FUNCTIONS_TEXT_MAX - used, MIN(c, 0x10ffffU));
		if (!n)
			break;
		used += n;
	}
	*size = (uint16_t)used;
	return bytes && used;
}

static void add_fresh(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		      const struct fresh *f)
{
	const struct lang_memory *m = &r->memory;
	const struct code_key key = { process, f->code->address, f->code->stamp };
	char name[SCRIPT_FUNCTIONS_TEXT_MAX], file[SCRIPT_FUNCTIONS_TEXT_MAX];
	struct code_text text = {
		.language = LANG_PYTHON,
		.version = p->py.minor,
		.user = p->user,
		.first_line = f->first_line,
		.name = name,
		.file = file,
		.table = lang_memory_piece(m, f->table.bytes),
	};

	/* As of compile(source, "", "eval"). */
	if (!to_text(m, &f->name, "(anonymous)", name, &text.name_size) ||
	    !to_text(m, &f->file, "<unknown>", file, &text.file_size))
		return;
	text.table_size = text.table ? f->table.length : 0;
	f->code->id = functions_put(r, &key, &text);
}

/* Return whether both headers are of one code object, by the members that its stamp is made of. */
static bool is_same_code(const struct py_layout *l, const uint8_t *a, const uint8_t *b)
{
	const uint8_t words[] = { TYPE_AT, l->code_consts, l->code_filename, l->code_table,
				  l->code_name };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (bytes_u64(a + words[i]) != bytes_u64(b + words[i]))
			return false;
	return name_of(l, a) == name_of(l, b) &&
	       bytes_u32(a + l->code_first_line) == bytes_u32(b + l->code_first_line) &&
	       (!l->code_version ||
		bytes_u32(a + l->code_version) == bytes_u32(b + l->code_version));
}

/*
 * Texts were read after the headers. Return whether each new code object is still there, and its
 * name with it: only then they belong together. Memory that was freed keeps most of its bytes.
 */
static bool is_code_there(struct lang_reader *r, const struct py_layout *l,
			  const struct fresh *fresh, uint32_t nr)
{
	struct lang_memory *m = &r->memory;
	int header[NEW_MAX], hash[NEW_MAX];

	for (uint32_t i = 0; i < nr; i++) {
		header[i] =
			lang_memory_want_once(m, fresh[i].code->address + l->head, header_size(l));
		hash[i] = lang_memory_want_once(m, fresh[i].code->name + l->head + SIZE_AT, 16);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *now = lang_memory_piece(m, header[i]);
		const uint8_t *name = lang_memory_piece(m, hash[i]);

		if (!now || !name ||
		    !is_same_code(l, lang_memory_piece(m, fresh[i].code->header), now) ||
		    memcmp(lang_memory_piece(m, fresh[i].code->hash), name, 16))
			return false;
	}
	return true;
}

/* Read the strings of functions that are new, and put them into the table. */
static bool read_fresh(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		       struct fresh *fresh, uint32_t nr)
{
	struct lang_memory *m = &r->memory;
	const struct py_layout *l = &p->py;

	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *header = lang_memory_piece(m, fresh[i].code->header);

		want_head(m, &fresh[i].name, fresh[i].code->name + l->head, STR_HEAD);
		want_head(m, &fresh[i].file, bytes_u64(header + l->code_filename) + l->head,
			  STR_HEAD);
		want_head(m, &fresh[i].table, bytes_u64(header + l->code_table) + l->head,
			  BYTES_HEAD);
		fresh[i].first_line = bytes_u32(header + l->code_first_line);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		want_bytes(m, l, &fresh[i].name, true);
		want_bytes(m, l, &fresh[i].file, true);
		want_bytes(m, l, &fresh[i].table, false);
	}
	if (!lang_memory_fetch(m) || !is_code_there(r, l, fresh, nr))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		add_fresh(r, p, process, &fresh[i]);
	return true;
}

/* The id of the function, if it was met before. */
static bool is_known(struct lang_reader *r, uint32_t process, struct lang_code_at *c)
{
	const struct code_key key = { process, c->address, c->stamp };
	const struct lang_known *k = c->known;
	bool same = is_same(k, process, c);

	if (same && (c->fresh || k->stamp == c->stamp))
		c->id = k->id;
	else
		c->id = script_functions_find(r->codes, &key);
	/* Code that was used without its header gave way: that is not done again in this process.
	 */
	if (same && !c->fresh && k->stamp != c->stamp && is_old(k, k->checked_ns))
		*replaces_of(r, process) = process;
	return c->id != CODE_NONE;
}

/* Return whether the code is of no file: made by exec() or eval(), with a name as "<string>". */
static bool is_made(const struct script_functions *codes, uint32_t id)
{
	static const char frozen[] = "<frozen ";
	const struct code_text *text = script_functions_at(codes, id);

	return text && text->file_size && text->file[0] == '<' &&
	       (text->file_size < sizeof(frozen) || memcmp(text->file, frozen, sizeof(frozen) - 1));
}

/* Return whether its header, and with it its name's hash, are as they were at the sample. */
static bool is_of_moment(const struct lang_memory *m, const struct lang_code_at *c)
{
	return c->header >= 0 && c->hash >= 0 && m->of_moment[c->header] && m->of_moment[c->hash];
}

static void keep_known(const struct script_functions *codes, const struct lang_code_at *c,
		       uint32_t process, uint64_t now_ns)
{
	struct lang_known *k = c->known;

	if (c->fresh)
		return;
	if (k->process != process || k->address != c->address || k->stamp != c->stamp) {
		k->born_ns = now_ns;
		k->made = is_made(codes, c->id);
	}
	k->checked_ns = now_ns;
	k->function = c->function;
	k->words = c->words;
	k->address = c->address;
	k->stamp = c->stamp;
	k->name = c->name;
	k->process = process;
	k->id = c->id;
}

/*
 * The frames are of the moment of the sample, but their code may be read later. Return whether each
 * function is known, and of a file if its header is not of that moment: code that was made may have
 * been freed since, and other code be in its place.
 */
static bool is_lasting(struct lang_reader *r, uint32_t nr_new)
{
	const struct lang_work *w = &r->work;

	r->memory.missed_code |= nr_new;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const struct lang_code_at *c = &w->script_functions_of[i];

		r->memory.missed |=
			c->id == CODE_NONE ||
			(!c->fresh && !is_of_moment(&r->memory, c) && is_made(r->codes, c->id));
	}
	return !r->memory.missed;
}

static enum lang_status pycode_find(struct lang_reader *r, const struct lang_process *p,
				    uint32_t process)
{
	struct lang_work *w = &r->work;
	struct fresh fresh[NEW_MAX];
	uint32_t nr = 0;

	number_codes(r, process);
	if (!read_headers(r, &p->py, process))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		if (!w->script_functions_of[i].fresh &&
		    !stamp(&r->memory, p, &w->script_functions_of[i]))
			return LANG_BAD_CHAIN;
		if (!is_known(r, process, &w->script_functions_of[i]) && nr < NEW_MAX)
			fresh[nr++].code = &w->script_functions_of[i];
	}
	check_stack(r, &p->py);
	set_instructions(w, &p->py);
	if (r->memory.moment.bytes && !is_lasting(r, nr))
		return LANG_BAD_CHAIN;
	if (nr && !read_fresh(r, p, process, fresh, nr))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_code_at *c = &w->script_functions_of[i];

		if (c->id == CODE_NONE)
			return LANG_NO_ROOM;
		keep_known(r->codes, c, process, w->time_ns);
	}
	return LANG_OK;
}

/*
 * Offsets by minor version.
 *
 * Runs on: any thread.
 */

/* Of 3.8 to 3.10 but for one field: frame objects in the heap, one C frame each. */
#define OLD(minor_, lasti, unit)                                                                   \
	{                                                                                          \
		.minor = minor_, .frame_size = 112, .interpreters = 32, .interp_next = 0,          \
		.interp_threads = 8, .ts_next = 8, .ts_current = 24, .ts_thread_id = 176,          \
		.frame_code = 32, .frame_previous = 24, .frame_instr = lasti,                      \
		.one_frame_each = true, .instr_unit = unit, .code_first_line = 40,                 \
		.code_consts = 56, .code_filename = 104, .code_name = 112, .code_table = 120,      \
		.code_instructions = 48, .str_ascii = 48, .str_other = 72,                         \
	}

/* Of 3.12 on but for some. */
#define NEW(minor_, interp_, threads_, current_, instructions_)                                    \
	.minor = minor_, .frame_size = 72, .interpreters = interp_, .interp_next = 0,              \
	.interp_threads = threads_, .ts_next = 8, .ts_current = current_, .ts_top = 240,           \
	.frame_code = 0, .frame_previous = 8, .frame_globals = 24, .frame_instr = 56,              \
	.frame_owner = 70, .code_first_line = 68, .code_consts = 24, .code_filename = 112,         \
	.code_name = 120, .code_qualname = 128, .code_table = 136,                                 \
	.code_instructions = instructions_, .code_version = 92, .code_nlocals = 72,                \
	.code_stacksize = 64, .str_ascii = 40, .str_other = 56

static const struct py_layout layouts[] = {
	OLD(8, 104, 1),
	OLD(9, 104, 1),
	OLD(10, 96, 2),
	{
		.minor = 11,
		.frame_size = 72,
		.interpreters = 40,
		.interp_next = 0,
		.interp_threads = 16,
		.ts_next = 8,
		.ts_current = 56,
		.ts_thread_id = 152,
		.ts_native_id = 160,
		.ts_top = 304,
		.cframe_size = 24,
		.cframe_current = 8,
		.cframe_previous = 16,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_globals = 8,
		.frame_instr = 56,
		.frame_is_entry = 68,
		.frame_owner = 69,
		.code_first_line = 72,
		.code_consts = 24,
		.code_filename = 112,
		.code_name = 120,
		.code_qualname = 128,
		.code_table = 136,
		.code_instructions = 184,
		.code_nlocals = 76,
		.code_stacksize = 68,
		.str_ascii = 48,
		.str_other = 72,
	},
	{
		NEW(12, 40, 72, 56, 192),
		.ts_thread_id = 136,
		.ts_native_id = 144,
		.cframe_size = 16,
		.cframe_current = 0,
		.cframe_previous = 8,
	},
	{ NEW(13, 632, 7344, 72, 200), .ts_thread_id = 152, .ts_native_id = 160 },
	{ NEW(14, 632, 7344, 72, 200), .ts_thread_id = 152, .ts_native_id = 160, .tagged = true },
	{ NEW(15, 936, 7336, 72, 208), .ts_thread_id = 176, .ts_native_id = 184, .tagged = true },
};

const struct py_layout *pylayout_of(uint32_t version)
{
	const struct py_layout *newest = &layouts[ARRAY_SIZE(layouts) - 1];

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (version >> 16 == (0x300U | layouts[i].minor))
			return &layouts[i];
	return version >> 24 == 3 && version >> 16 > (0x300U | newest->minor) ? newest : NULL;
}

/*
 * Where a number is among the words of 3.13 and of each later minor version, in the order of
 * Include/internal/pycore_debug_offsets.h: no patch level has changed that.
 */
#define FIRST_MINOR 13U

/* Bytes by which CPython's PyObject is longer in a free-threaded build. */
#define NO_GIL_HEAD 16U

#define NR_MINORS 3U

struct word {
	uint8_t at[NR_MINORS];
	uint8_t size; /* of the field: 1 or 2 bytes */
	size_t field;
};

#define FIELD(a, b, c, name)                                                                       \
	{                                                                                          \
		{ a, b, c }, sizeof(((struct py_layout *)0)->name),                                \
			offsetof(struct py_layout, name)                                           \
	}

static const struct word fields[] = {
	FIELD(5, 5, 5, interpreters),
	FIELD(8, 8, 8, interp_next),
	FIELD(9, 9, 9, interp_threads),
	FIELD(21, 24, 24, ts_next),
	FIELD(23, 26, 26, ts_current),
	FIELD(24, 27, 30, ts_thread_id),
	FIELD(25, 28, 31, ts_native_id),
	FIELD(26, 29, 32, ts_top), /* datastack_chunk, which datastack_top is behind */
	FIELD(29, 32, 40, frame_previous),
	FIELD(30, 33, 41, frame_code),
	FIELD(31, 34, 42, frame_instr),
	FIELD(32, 35, 43, frame_size), /* localsplus */
	FIELD(33, 36, 44, frame_owner),
	FIELD(35, 40, 48, code_filename),
	FIELD(36, 41, 49, code_name),
	FIELD(37, 42, 50, code_qualname),
	FIELD(38, 43, 51, code_table),
	FIELD(39, 44, 52, code_first_line),
	FIELD(43, 48, 56, code_instructions),
};

/*
 * Without the GIL an object's head is longer: make the offsets of code from _Py_DebugOffsets as if
 * it were not. From 3.14 on each thread has a copy of the instructions: not read.
 */
static const char *allow_no_gil(struct py_layout *l)
{
	uint8_t *const offsets[] = { &l->code_filename, &l->code_name, &l->code_qualname,
				     &l->code_table, &l->code_first_line };

	if (l->minor != 13)
		return "free-threaded build: not supported (3.13 is)";
	l->head = NO_GIL_HEAD;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		if (*offsets[i] < NO_GIL_HEAD)
			return "impossible offsets in _Py_DebugOffsets";
		*offsets[i] = (uint8_t)(*offsets[i] - NO_GIL_HEAD);
	}
	return NULL;
}

/* A frame is read up to its last field. */
static bool is_sane(const struct py_layout *l)
{
	return l->frame_owner < l->frame_size && l->frame_previous + 8U <= l->frame_size &&
	       l->frame_code + 8U <= l->frame_size && l->frame_instr + 8U <= l->frame_size &&
	       l->frame_globals + 8U <= l->frame_size;
}

/*
 * From 3.13 on: copy the offsets of @words, the first of _PyRuntime, to @layout.
 * NULL, or static words why not.
 */
static const char *pylayout_debug(struct py_layout *layout,
				  const uint64_t words[PY_DEBUG_OFFSETS_WORDS])
{
	uint32_t column = MIN(layout->minor - FIRST_MINOR, NR_MINORS - 1);

	assert(layout->minor >= FIRST_MINOR);
	if (memcmp(words, "xdebugpy", 8) != 0)
		return "no _Py_DebugOffsets in _PyRuntime";
	if (words[1] >> 16 != (0x300U | layout->minor))
		return "_Py_DebugOffsets of another version";
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t value = words[fields[i].at[column]];
		uint16_t wide = (uint16_t)value;
		uint8_t narrow = (uint8_t)value;

		if (value >> (8 * fields[i].size))
			return "impossible offsets in _Py_DebugOffsets";
		if (fields[i].size == 1)
			memcpy((char *)layout + fields[i].field, &narrow, 1);
		else
			memcpy((char *)layout + fields[i].field, &wide, 2);
	}
	layout->ts_top = (uint16_t)(layout->ts_top + 8);
	if (words[2]) {
		const char *reason = allow_no_gil(layout);

		if (reason)
			return reason;
	}
	return is_sane(layout) ? NULL : "impossible offsets in _Py_DebugOffsets";
}

/*
 * Line tables, one pass each. See Objects/lnotab_notes.txt of CPython 3.8 and
 * 3.10, Objects/locations.md of 3.11.
 *
 * Runs on: the loader.
 */

/* 3.8, 3.9: pairs of (bytes of code, lines), lines signed. */
static uint32_t line_of_lnotab(const uint8_t *t, size_t size, int64_t line, uint32_t instr)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		at += t[i];
		if (at > instr)
			break;
		line += (int8_t)t[i + 1];
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* 3.10: pairs of (bytes of code, lines); -128: no line. */
static uint32_t line_of_ranges(const uint8_t *t, size_t size, int64_t line, uint32_t instr)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t delta = (int8_t)t[i + 1];

		if (delta != -128)
			line += delta;
		at += t[i];
		if (instr < at)
			return delta != -128 && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	}
	return 0;
}

struct cursor {
	const uint8_t *at, *end;
};

static uint64_t varint(struct cursor *c)
{
	uint64_t value = 0;

	for (int shift = 0; c->at < c->end; shift += 6) {
		uint8_t byte = *c->at++;

		if (shift < 36)
			value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t svarint(struct cursor *c)
{
	uint64_t value = varint(c);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* 3.11 on: entries of 1 to 8 code units, each begins with a byte that has bit 7. */
static uint32_t line_of_locations(const uint8_t *t, size_t size, int64_t line, uint32_t instr)
{
	struct cursor c = { t, t + size };
	uint64_t at = 0;

	while (c.at < c.end) {
		uint8_t head = *c.at++, code = head >> 3 & 15;
		bool none = code == 15;

		at += 2 * ((uint64_t)(head & 7) + 1);
		if (code == 13 || code == 14)
			line += svarint(&c);
		else if (code >= 10 && code <= 12)
			line += code - 10;
		if (instr < at)
			return !none && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
		/* The rest are columns. */
		while (c.at < c.end && !(*c.at & 128))
			c.at++;
	}
	return 0;
}

uint32_t pyline_of(uint8_t minor, const uint8_t *table, size_t size, uint32_t first_line,
		   uint32_t instr)
{
	assert(table || !size);
	if (!size)
		return 0;
	if (minor < 10)
		return line_of_lnotab(table, size, first_line, instr);
	return minor == 10 ? line_of_ranges(table, size, first_line, instr)
			   : line_of_locations(table, size, first_line, instr);
}

/* ---- its files and processes ---- */

/* Return the minor version in "python3.11" or "libpython3.11.so.1.0"; -1: it is neither. */
static int minor_of(const char *name)
{
	static const char *const begins[] = { "libpython3.", "python3." };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		size_t size = strlen(begins[i]);
		char *end;
		long minor;

		if (strncmp(name, begins[i], size) != 0 || name[size] < '0' || name[size] > '9')
			continue;
		minor = strtol(name + size, &end, 10);
		return minor < 256 && (!*end || strchr(".dt- ", *end)) ? (int)minor : -1;
	}
	return -1;
}

static bool is_file(const char *name)
{
	return minor_of(name) >= 0;
}

/* Note the version of CPython that has a function of this name: 3.8 to 3.10 have no Py_Version. */
static void on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	static const struct {
		const char *name;
		uint32_t minor;
	} since[] = {
		{ "PyCode_NewWithPosOnlyArgs", 8 },
		{ "PyObject_GC_IsTracked", 9 },
		{ "Py_NewRef", 10 },
	};

	(void)s;
	for (size_t i = 0; i < ARRAY_SIZE(since); i++)
		if (!strcmp(name, since[i].name))
			search->python = MAX(search->python, 3U << 24 | since[i].minor << 16);
}

static int on_file(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	const Elf64_Shdr *runtime = elffile_section(f, ".PyRuntime");

	if (minor_of(search->name) >= 0)
		out->version = 3U << 24 | (uint32_t)minor_of(search->name) << 16;
	else if (!out->version_at)
		out->version = search->python;
	if (!out->runtime && runtime)
		out->runtime = runtime->sh_addr;
	return 0;
}

/* Set CPython's version and layout, checked against the memory of the process. */
static bool detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	uint64_t words[PY_DEBUG_OFFSETS_WORDS];
	const struct py_layout *layout;
	uint32_t version;

	if (!lang_memory_copy(pid, p->runtime, words, sizeof(words))) {
		lang_memory_refused(p);
		return false;
	}
	if (d->version_at) {
		if (lang_memory_copy(pid, d->version_at + d->bias, &version, sizeof(version)) &&
		    (!d->version || version >> 16 == d->version >> 16))
			p->version = version;
		else
			p->reason = "it says another version than its file's name";
	}
	layout = pylayout_of(p->version);
	if (!layout) {
		p->reason = "not supported (3.8 to 3.15 are)";
		return false;
	}
	p->py = *layout;
	if (p->version >> 16 > (0x300U | layout->minor)) {
		p->py.minor = (uint8_t)(p->version >> 16);
		p->untried = true;
	}
	if (layout->minor >= 13 && !p->reason)
		p->reason = pylayout_debug(&p->py, words);
	return false;
}

/* Say how the chains of a thread with one state can be copied. */
static bool plan(const struct lang_process *p, const struct lang_thread *t, struct lang_plan *out)
{
	const struct py_layout *l = &p->py;
	const uint64_t current = t->state + l->ts_current;

	if (t->nr_others || t->searched_ns || !t->nr_watched || t->nr_watched > LANG_PLAN_WORDS)
		return false;
	*out = (struct lang_plan){
		.state = t->state,
		.state_size = state_size(l),
		.current = current,
		.cframe_size = l->cframe_size,
		.cframe_mask = l->cframe_size ? ~0ULL : 0,
		.cframe_at = l->cframe_size ? l->cframe_current : current,
		.frame_size = l->frame_size,
		.frame_previous = l->frame_previous,
		.frame_code = l->frame_code,
		.head_size = header_size(l),
		.code_mask = l->tagged ? ~7ULL : ~0ULL,
		.head_at = l->head,
		.name_at = l->head + SIZE_AT,
		.head_words = { l->code_consts, l->code_table, l->code_first_line,
				l->code_version ? l->code_version : TYPE_AT },
		.head_name = l->code_qualname ? l->code_qualname : l->code_name,
	};
	for (uint32_t i = 0; i < t->nr_watched; i++)
		out->words[i] = t->watched[i].addr;
	return true;
}

const struct language language_python = {
	.name = "python",
	.title = "Python",
	.versions = "CPython 3.8 to 3.15: functions and lines",
	.letter = 'y',
	.program = "python",
	.library = "libpython",
	.shown = "_PyEval_EvalFrameDefault",
	.runtime = "_PyRuntime",
	.code_type = "PyCode_Type",
	.version = "Py_Version",
	.eval = "_PyEval_EvalFrameDefault",
	.is_file = is_file,
	.on_symbol = on_symbol,
	.on_file = on_file,
	.detect = detect,
	.stack = pychain_read,
	.plan = plan,
	.functions = pycode_find,
	.find_thread = pythread_find,
	.part_of_stack = true,
	/* It writes a perf map. */
	.fix = "python -X perf writes the names",
	.fix_since = 0x030c0000,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a sample to its chain, for all languages.
 *
 * Runs on: a reader. The order matters: the frames, their code, and the
 * live stack last. While it equals the kernel's copy of the sample, the thread
 * has not run on, and all earlier reads are of the moment of the sample.
 */
#include "symbols/script/script.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Bytes of the live stack that are compared. */
#define SAME_MAX LANG_PIECE_MAX
/* The same if the end of the innermost group is unknown, and beyond its end. */
#define SAME_UNKNOWN 4096U
#define SAME_BEYOND  1024U

/* An interpreter for the whole process: it is the state of each thread. */
static void find_process(struct lang_reader *r, const struct lang_process *p,
			 const struct lang_sample *s)
{
	lang_chain_keep_thread(r, s->process, s->tid, p->runtime, 0);
}

static const struct decoder {
	enum lang_none (*chain)(struct lang_reader *r, const struct lang_process *p,
				const struct lang_sample *s, struct lang_thread *t);
	/* Give each code an id, and each frame its instruction. */
	enum lang_none (*codes)(struct lang_reader *r, const struct lang_process *p,
				uint32_t process);
	void (*find_thread)(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s);
} decoders[LANG_NR] = {
	[LANG_PYTHON] = { pychain_read, pycode_find, pythread_find },
	[LANG_PHP] = { php_chain, php_codes, find_process },
	[LANG_RUBY] = { ruby_chain, ruby_codes, ruby_find_thread },
	[LANG_PERL] = { perl_chain, perl_codes, find_process },
	[LANG_NODE] = { v8chain_read, v8code_find, find_process },
};

/* The ways in which a thread may be kept. */
static struct lang_thread *thread_ways(struct lang_reader *r, uint32_t process, pid_t tid)
{
	uint64_t hash = hash_u64((uint64_t)process << 32 ^ (uint32_t)tid);

	return &r->threads[hash & (LANG_THREADS - LANG_WAYS)];
}

static struct lang_thread *find_thread(struct lang_reader *r, uint32_t process, pid_t tid)
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
	struct lang_thread *t = find_thread(r, process, tid);

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

/* Find the first word in the stack that may return to the loop: bytes from its top. */
static uint64_t return_to_loop(const struct lang_process *p, const struct lang_sample *s)
{
	if (lang_is_eval(p, s->pc))
		return 0;
	for (uint64_t at = 0; at + 8 <= s->stack_size; at += 8) {
		lang_chain_need(s, at + 8);
		if (lang_is_eval(p, bytes_u64(s->stack + at)))
			return at;
	}
	return 0;
}

/* Bytes of the stack to compare: the innermost C frame of the loop has to be in them. */
static uint32_t compared(const struct lang_reader *r, const struct lang_process *p,
			 const struct lang_sample *s)
{
	const struct lang_work *w = &r->work;
	uint64_t size = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		if (!w->boundary[i])
			continue;
		if (w->boundary[i] > s->sp)
			size = w->boundary[i] - s->sp + SAME_BEYOND;
		break;
	}
	if (!size)
		size = SAME_UNKNOWN + return_to_loop(p, s);
	return (uint32_t)MIN(MIN(size, s->stack_size), (uint64_t)SAME_MAX) & ~7U;
}

static const uint8_t *in_tail(const struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return lang_memory_bytes(m, m->tail_first, m->tail_end, addr, size);
}

/* Read last: the state again, and @size bytes of the stack. */
static void set_tail(struct lang_reader *r, const struct lang_sample *s, uint32_t size)
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
static uint64_t same_up_to(struct lang_reader *r, const struct lang_sample *s, uint32_t size)
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

static void put_frames(const struct lang_reader *r, const struct lang_process *p,
		       struct lang_chain *out)
{
	const struct lang_work *w = &r->work;

	for (uint32_t i = 0; i < w->nr; i++) {
		const struct lang_code_at *c = &w->codes_of[w->code[i]];
		uint64_t instr = w->instr[i];

		out->frames[i] = (struct lang_frame){
			.code = c->id,
			.instr = instr < LANG_NO_INSTR ? (uint32_t)instr : LANG_NO_INSTR,
			.boundary = w->boundary[i],
		};
		if (p->kind == LANG_NODE)
			memcpy(out->frames[i].compiled, w->v8.compiled_of[w->code[i]],
			       sizeof(out->frames[i].compiled));
	}
	out->nr = w->nr;
}

bool lang_chain(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s,
		struct lang_chain *out)
{
	struct lang_thread *t = find_thread(r, s->process, s->tid);
	uint32_t size;

	assert(p->kind > LANG_NONE && p->kind < LANG_NR); /* Java has no reader */
	out->nr = 0;
	out->same = 0;
	out->broken = out->settled = out->rooted = out->deep = false;
	out->top = LANG_TOP_UNKNOWN;
	lang_memory_begin(&r->memory);
	r->work.nr = r->work.nr_codes = 0;
	r->work.time_ns = s->time_ns;
	r->work.v8.top = LANG_TOP_UNKNOWN;
	r->work.rooted = r->work.deep = false;
	r->work.nr_here = 0;
	r->work.first_read[0] = r->work.first_read[1] = NULL;
	/* One interpreter for all threads is found without a search. */
	if (!t && decoders[p->kind].find_thread == find_process) {
		find_process(r, p, s);
		t = find_thread(r, s->process, s->tid);
	}
	if (!t) {
		out->none = LANG_NONE_NO_THREAD;
		return false;
	}
	if (p->kind != LANG_PYTHON)
		lang_chain_need(s, s->stack_size);
	out->none = decoders[p->kind].chain(r, p, s, t);
	size = compared(r, p, s);
	set_tail(r, s, size);
	if (out->none == LANG_NONE_NR)
		out->none = decoders[p->kind].codes(r, p, s->process);
	if (out->none != LANG_NONE_NR && (r->memory.error == -EPERM || r->memory.error == -ENOSYS))
		out->none = LANG_NONE_REFUSED;
	if (out->none == LANG_NONE_NO_THREAD)
		t->process = 0;
	if (out->none != LANG_NONE_NR)
		return out->none != LANG_NONE_NO_THREAD;
	out->broken = r->work.broken;
	out->settled = r->work.settled;
	out->top = r->work.v8.top;
	out->rooted = r->work.rooted;
	out->deep = r->work.deep;
	out->nr_here = r->work.nr_here;
	out->same = same_up_to(r, s, size);
	ahead_keep(r, t, size);
	put_frames(r, p, out);
	return true;
}

/* Double the pause until the next search, or end it. */
static void set_pause(struct lang_search *search, uint64_t now_ns, bool found)
{
	search->pause_ns =
		found ? 0 : MIN(MAX(2 * search->pause_ns, LANG_SEARCH_NS), LANG_SEARCH_MAX_NS);
	search->until_ns = now_ns + search->pause_ns;
}

bool lang_chain_find_thread(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s)
{
	struct lang_search *search = &r->searches[hash_u64(s->process) & (LANG_SEARCHES - 1)];

	assert(p->kind > LANG_NONE && p->kind < LANG_NR);
	if (search->process != s->process)
		*search = (struct lang_search){ .process = s->process };
	if (r->work.time_ns < search->until_ns)
		return false;
	lang_memory_begin(&r->memory);
	decoders[p->kind].find_thread(r, p, s);
	set_pause(search, r->work.time_ns, find_thread(r, s->process, s->tid));
	return true;
}

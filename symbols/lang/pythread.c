// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPython: which PyThreadState belongs to which thread.
 *
 * Runs on: a reader. From 3.11 on a state has the thread's id; before that pthread_self(), where
 * the C library keeps the id: at an offset that glibc and musl have not changed for x86-64. A
 * process that was forked may have the parent's id in its states: 3.11.0 and 3.11.1 do not set it
 * again, later ones only where Python itself forks. The C library has the true one.
 */
#include "symbols/script/script.h"

#define INTERPRETERS_MAX 16
#define STATES_MAX	 512

/* In struct pthread, which begins with a pointer to itself: at 16 in glibc, at 0 in musl. */
static const struct {
	uint16_t self, tid;
} pthreads[] = { { 16, 0x2d0 }, { 0, 0x30 } };

/* Each state takes a call: more than the bound of one sample. */
static const uint8_t *read_state(struct lang_reader *r, uint64_t addr, uint32_t size)
{
	lang_memory_begin(&r->memory);
	return lang_memory_is_pointer(addr) ? lang_memory_read(&r->memory, addr, size) : NULL;
}

static pid_t tid_of_pthread(struct lang_reader *r, uint64_t self)
{
	for (size_t i = 0; i < ARRAY_SIZE(pthreads); i++) {
		const uint8_t *bytes = read_state(r, self, pthreads[i].tid + 4U);

		if (bytes && bytes_u64(bytes + pthreads[i].self) == self)
			return (pid_t)bytes_u32(bytes + pthreads[i].tid);
	}
	return -1;
}

/* Keep the thread of the state at @addr. Returns the next state; 0: none. */
static uint64_t look_at(struct lang_reader *r, const struct lang_process *p,
			const struct lang_sample *s, uint64_t addr, pid_t *tid)
{
	const struct py_layout *l = &p->py;
	uint32_t size = MAX(MAX(l->ts_native_id, l->ts_thread_id), l->ts_next) + 8U;
	const uint8_t *ts = read_state(r, addr, size);
	uint64_t next, id, self;

	*tid = -1;
	if (!ts)
		return 0;
	next = bytes_u64(ts + l->ts_next);
	self = bytes_u64(ts + l->ts_thread_id);
	id = l->ts_native_id ? bytes_u64(ts + l->ts_native_id) : self;
	*tid = l->ts_native_id ? (pid_t)id : tid_of_pthread(r, self);
	if (l->ts_native_id && *tid != s->tid && s->is_main && tid_of_pthread(r, self) == s->tid)
		*tid = s->tid;
	if (*tid > 0)
		lang_chain_keep_thread(r, s->process, *tid, addr, id);
	return next;
}

void pythread_find(struct lang_reader *r, const struct lang_process *p, const struct lang_sample *s)
{
	const struct py_layout *l = &p->py;
	const uint8_t *bytes = read_state(r, p->runtime + l->interpreters, 8);
	uint64_t interp = bytes ? bytes_u64(bytes) : 0;
	uint32_t nr = 0;

	for (int i = 0; i < INTERPRETERS_MAX && interp; i++) {
		uint64_t state;

		bytes = read_state(r, interp + l->interp_threads, 8);
		state = bytes ? bytes_u64(bytes) : 0;
		while (state && nr++ < STATES_MAX) {
			pid_t found;

			state = look_at(r, p, s, state, &found);
			if (found == s->tid)
				return;
		}
		bytes = read_state(r, interp + l->interp_next, 8);
		interp = bytes ? bytes_u64(bytes) : 0;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of a made-up CPython 3.11: an interpreter with one thread, and
 * frames that run code objects of given names. For tests of the decoder.
 */
#ifndef TESTS_MAKERS_CPYTHON_H
#define TESTS_MAKERS_CPYTHON_H

#include <string.h>

#include "symbols/script/internal.h"
#include "symbols/base/base.h"

#define PYMAKE_BASE  0x7f0000000000ULL
#define PYMAKE_SIZE  0x20000U
#define PYMAKE_STACK 0x18000U /* the C stack, at its end */
#define PYMAKE_FRAME (72U + 8 * 5)

struct pymake {
	uint8_t bytes[PYMAKE_SIZE];
	uint64_t end;	 /* of the used part */
	uint64_t frames; /* of the stack of frames */
	uint64_t state, cframe;
	uint32_t nr_calls;
	uint64_t gone;	    /* address of a page that is unmapped, ... */
	uint32_t gone_from; /* ... from this call on; 0: never */
	struct lang_process process;
};

static inline uint8_t *pymake_at(struct pymake *m, uint64_t addr)
{
	return m->bytes + (addr - PYMAKE_BASE);
}

static inline void pymake_u64(struct pymake *m, uint64_t addr, uint64_t value)
{
	memcpy(pymake_at(m, addr), &value, sizeof(value));
}

static inline void pymake_u32(struct pymake *m, uint64_t addr, uint32_t value)
{
	memcpy(pymake_at(m, addr), &value, sizeof(value));
}

static inline uint64_t pymake_take(struct pymake *m, uint32_t size)
{
	uint64_t addr = m->end;

	m->end += (size + 15) & ~15U;
	return addr;
}

/* As process_vm_readv(2): whole pieces until one is outside. */
static inline int pymake_read(void *ctx, const struct lang_piece *pieces, uint32_t nr,
			      uint8_t *bytes)
{
	struct pymake *m = ctx;
	uint32_t i;

	m->nr_calls++;
	for (i = 0; i < nr; i++) {
		uint64_t at = pieces[i].addr - PYMAKE_BASE;

		if (at > PYMAKE_SIZE || pieces[i].size > PYMAKE_SIZE - at)
			break;
		if (m->gone_from && m->nr_calls >= m->gone_from &&
		    pieces[i].addr < m->gone + 4096 && pieces[i].addr + pieces[i].size > m->gone)
			break;
		memcpy(bytes + pieces[i].at, m->bytes + at, pieces[i].size);
	}
	return (int)i;
}

static inline uint64_t pymake_text(struct pymake *m, const char *text)
{
	const struct py_layout *l = &m->process.py;
	uint64_t addr = pymake_take(m, l->str_ascii + (uint32_t)strlen(text) + 1);

	pymake_u64(m, addr + 16, strlen(text));
	pymake_u64(m, addr + 24, hash_u64(strlen(text)) ^ (uint8_t)text[0]);
	pymake_u32(m, addr + 32, 1U << 6 | 1U << 5 | 1U << 2);
	memcpy(pymake_at(m, addr + l->str_ascii), text, strlen(text));
	return addr;
}

static inline uint64_t pymake_code(struct pymake *m, const char *name, const char *file,
				   uint32_t line)
{
	const struct py_layout *l = &m->process.py;
	uint64_t code = pymake_take(m, 256), table = pymake_take(m, 40);

	pymake_u64(m, code + 8, m->process.code_type);
	pymake_u64(m, code + l->code_filename, pymake_text(m, file));
	pymake_u64(m, code + l->code_qualname, pymake_text(m, name));
	pymake_u64(m, code + l->code_table, table);
	pymake_u32(m, code + l->code_first_line, line);
	pymake_u32(m, code + l->code_nlocals, 3);
	pymake_u32(m, code + l->code_stacksize, 2);
	/* One entry: 8 units, a line further. */
	pymake_u64(m, table + 16, 2);
	*pymake_at(m, table + 32) = 0x80 | 11 << 3 | 7;
	return code;
}

/* A new innermost frame; @entry: the last of its C frame. Returns its address. */
static inline uint64_t pymake_call(struct pymake *m, uint64_t code, bool entry)
{
	const struct py_layout *l = &m->process.py;
	uint64_t frame = m->frames, current;

	memcpy(&current, pymake_at(m, m->cframe + l->cframe_current), 8);
	m->frames += PYMAKE_FRAME;
	pymake_u64(m, frame + l->frame_code, code);
	pymake_u64(m, frame + l->frame_previous, current);
	pymake_u64(m, frame + l->frame_instr, code + l->code_instructions + 4);
	*pymake_at(m, frame + l->frame_is_entry) = entry;
	*pymake_at(m, frame + l->frame_owner) = 0;
	pymake_u64(m, m->cframe + l->cframe_current, frame);
	pymake_u64(m, m->state + l->ts_top, m->frames);
	return frame;
}

/* Begin a C frame of the loop; pymake_call() adds its frames. */
static inline void pymake_loop(struct pymake *m, uint64_t cframe)
{
	const struct py_layout *l = &m->process.py;
	uint64_t current;

	memcpy(&current, pymake_at(m, m->cframe + l->cframe_current), 8);
	pymake_u64(m, cframe + l->cframe_previous, m->cframe);
	pymake_u64(m, cframe + l->cframe_current, current);
	pymake_u64(m, m->state + l->ts_current, cframe);
	m->cframe = cframe;
}

static inline void pymake_init(struct pymake *m, pid_t tid)
{
	const struct py_layout *l = pylayout_of(0x030b0000);
	uint64_t interp;

	memset(m, 0, sizeof(*m));
	m->end = PYMAKE_BASE + 4096;
	m->process = (struct lang_process){ .kind = LANG_PYTHON, .py = *l };
	m->process.runtime = pymake_take(m, 512);
	m->process.code_type = pymake_take(m, 16);
	m->process.eval[0] = (struct lang_range){ 0x500000, 0x510000 };
	m->process.nr_eval = 1;
	interp = pymake_take(m, 512);
	m->state = pymake_take(m, 1024);
	m->cframe = m->state + 336; /* the root's is in the state */
	m->frames = PYMAKE_BASE + 0x10000 + 24;
	pymake_u64(m, m->process.runtime + l->interpreters, interp);
	pymake_u64(m, interp + l->interp_threads, m->state);
	pymake_u64(m, m->state + l->ts_native_id, (uint64_t)tid);
	pymake_u64(m, m->state + l->ts_current, m->cframe);
}

/* Make @r a reader of @m that knows nothing yet. False: out of memory. */
static inline bool pymake_reader(struct lang_reader *r, struct pymake *m)
{
	r->codes = script_functions_new();
	memset(r->threads, 0, sizeof(r->threads));
	memset(r->known, 0, sizeof(r->known));
	memset(r->searches, 0, sizeof(r->searches));
	r->memory.read = pymake_read;
	r->memory.ctx = m;
	return r->codes;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * V8 (Node.js): which functions of JavaScript the stack copy may have frames of.
 *
 * Runs on: a reader. Each frame of JavaScript has its function and context
 * at fixed places below its frame pointer, whether it is interpreted or compiled.
 * Words of the stack that look like such a frame are candidates; v8code.c keeps the ones
 * with a true function, by their frame pointers. The unwinder finds
 * the frames, so that a candidate too many does no harm.
 */
#include <string.h>

#include "symbols/script/script.h"

/* Candidates; two pieces each in the first call. */
#define FRAMES_MAX 400U
/* The frame of a caller is at most this far away. */
#define FRAME_MAX (1ULL << 20)
/* Bytes of code that are read before and behind the pc. */
#define CODE_BEFORE 32U
#define CODE_BEHIND 64U
/* The longest code between the end of a frame and the return of its function. */
#define EPILOGUE_MAX 28U
/* Code of the interpreter: for each bytecode, without prefixes; the longest one's bytes. */
#define HANDLERS    256U
#define HANDLER_MAX 4096U
/* Bytecodes that are read: one, and the bytes before. */
#define BYTECODES_BEFORE 8U

static uint64_t word_at(const struct lang_sample *s, uint64_t at)
{
	return bytes_u64(s->stack + at);
}

/* Return whether @value may be a pointer to an object of V8. */
static bool is_tagged(uint64_t value)
{
	return lang_memory_is_pointer(value - 1);
}

/* Add the frame with frame pointer @fp (0: none yet) if there is a function. */
static void add_candidate(struct lang_reader *r, uint64_t fp, uint64_t function)
{
	struct lang_work *w = &r->work;

	if (w->nr == FRAMES_MAX)
		return;
	w->v8.function[w->nr] = function - 1;
	w->v8.piece[w->nr] = lang_memory_want(&r->memory, function - 1, V8_FUNCTION_SIZE);
	w->v8.bytecodes[w->nr] = 0;
	w->v8.bytecodes_piece[w->nr] = -1;
	w->boundary[w->nr] = fp;
	w->instr[w->nr] = LANG_NO_INSTR;
	w->nr++;
}

/* An interpreted frame has its bytecodes and the position in them. */
static void add_bytecodes(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, uint64_t at)
{
	const int16_t *n = p->v8.number;
	struct lang_work *w = &r->work;
	uint64_t bytecodes = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_BYTECODES]);
	uint64_t offset = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_OFFSET]);
	uint64_t first = (uint64_t)n[V8_BYTECODES_DATA] - 1;

	if (!is_tagged(bytecodes) || offset << 32 || offset >> 32 < first)
		return;
	w->v8.bytecodes[w->nr - 1] = bytecodes - 1;
	w->v8.bytecodes_piece[w->nr - 1] = lang_memory_want(&r->memory, bytecodes - 1, 8);
	w->instr[w->nr - 1] = (offset >> 32) - first;
}

static void find_candidates(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s)
{
	const int16_t *n = p->v8.number;
	int below = MIN(MIN(n[V8_FP_CONTEXT], n[V8_FP_FUNCTION]),
			MIN(n[V8_FP_BYTECODES], n[V8_FP_OFFSET]));
	uint64_t first = (uint64_t)-MIN(n[V8_FP_CONTEXT], n[V8_FP_FUNCTION]);

	for (uint64_t at = first; at + 16 <= s->stack_size; at += 8) {
		uint64_t fp = s->sp + at, saved = word_at(s, at), context, function;

		if (saved <= fp || saved - fp > FRAME_MAX || saved & 7)
			continue;
		context = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_CONTEXT]);
		function = word_at(s, at + (uint64_t)(int64_t)n[V8_FP_FUNCTION]);
		if (!is_tagged(context) || !is_tagged(function))
			continue;
		if (r->work.nr == FRAMES_MAX)
			return;
		add_candidate(r, fp, function);
		if (at >= (uint64_t)-below)
			add_bytecodes(r, p, s, at);
	}
}

static bool contains(const uint8_t *code, uint32_t size, const char *bytes, uint32_t nr)
{
	return size >= nr && memmem(code, size, bytes, nr);
}

/*
 * Find out whether the frame at the frame pointer is the function's: not if it may still be made,
 * or has just been left. @code: around the pc.
 */
static enum lang_top top_of(const uint8_t *code)
{
	const uint8_t *pc = code + CODE_BEFORE;

	/* push %rbp; mov %rsp,%rbp (V8's encoding, and the assembler's); between them */
	if (contains(pc, CODE_BEHIND, "\x55\x48\x8b\xec", 4) ||
	    contains(pc, CODE_BEHIND, "\x55\x48\x89\xe5", 4) || !memcmp(pc, "\x48\x8b\xec", 3) ||
	    !memcmp(pc, "\x48\x89\xe5", 3))
		return LANG_TOP_UNKNOWN;
	/* mov %rbp,%rsp; pop %rbp */
	if (contains(pc - EPILOGUE_MAX, EPILOGUE_MAX, "\x48\x8b\xe5\x5d", 4))
		return LANG_TOP_UNKNOWN;
	return LANG_TOP_BODY;
}

/* The frame pointer of the innermost function: code of the interpreter may have a frame of itself.
 */
static uint64_t innermost_fp(const struct lang_sample *s)
{
	uint64_t at = s->fp - s->sp;

	if (at < 8 || at > s->stack_size - 8 || s->stack_size < 16)
		return s->fp;
	/* Instead of a context it has a number, its kind. */
	return word_at(s, at - 8) & 1 ? s->fp : word_at(s, at);
}

/*
 * The innermost function is interpreted: its frame has the byte of its last call, a register that
 * of the bytecode in hand. That is true if the pc is in the code for this bytecode; else the line
 * is not known.
 */
static int want_bytecode(struct lang_memory *m, const struct lang_process *p,
			 const struct lang_sample *s, int *handlers)
{
	uint64_t first = (uint64_t)p->v8.number[V8_BYTECODES_DATA] - 1, bytecodes;
	uint64_t at = innermost_fp(s) - s->sp + (uint64_t)(int64_t)p->v8.number[V8_FP_BYTECODES];

	*handlers = -1;
	if (s->stack_size < 8 || at > s->stack_size - 8 || s->r9 < first ||
	    s->r9 > first + LANG_PIECE_MAX || !lang_memory_is_pointer(s->r15))
		return -1;
	bytecodes = word_at(s, at);
	if (!is_tagged(bytecodes))
		return -1;
	*handlers = lang_memory_want(m, s->r15, HANDLERS * 8);
	return lang_memory_want(m, bytecodes + s->r9 + 1 - BYTECODES_BEFORE, BYTECODES_BEFORE);
}

/*
 * Find the bytecode that the pc is in the code for: the last one of @codes, or the one before, if
 * its code has gone on to the next. Returns by how many bytes; -1: it is another one.
 */
static int find_bytecode(const uint8_t *handlers, const uint8_t *codes, uint32_t major, uint64_t pc)
{
	const uint8_t *last = codes + BYTECODES_BEFORE - 1;
	uint64_t best = 0;

	for (uint32_t i = 0; i < HANDLERS; i++) {
		uint64_t at = bytes_u64(handlers + (size_t)8 * i);

		if (at <= pc && at > best)
			best = at;
	}
	if (pc - best >= HANDLER_MAX)
		return -1;
	if (best == bytes_u64(handlers + (size_t)8 * *last))
		return 0;
	for (uint32_t i = 1; i < BYTECODES_BEFORE; i++)
		if (best == bytes_u64(handlers + (size_t)8 * last[-(int)i]) &&
		    v8table_bytecode_size(major, last - i, i) == i)
			return (int)i;
	return -1;
}

/* Set the byte of the innermost frame, if it is interpreted. */
static void set_innermost(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, int handlers, int bytecode)
{
	const uint8_t *table = lang_memory_piece(&r->memory, handlers);
	const uint8_t *codes = lang_memory_piece(&r->memory, bytecode);
	uint64_t first = (uint64_t)p->v8.number[V8_BYTECODES_DATA] - 1;
	struct lang_work *w = &r->work;
	uint64_t fp = innermost_fp(s);
	int back = table && codes ? find_bytecode(table, codes, p->version >> 24, s->pc) : -1;

	for (uint32_t i = 0; i < w->nr; i++) {
		if (w->boundary[i] == fp && w->v8.bytecodes[i])
			w->instr[i] = back < 0 ? LANG_NO_INSTR : s->r9 - first - (uint64_t)back;
	}
}

enum lang_none v8chain_read(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s, struct lang_thread *t)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	int code = lang_memory_want(m, s->pc - CODE_BEFORE, CODE_BEFORE + CODE_BEHIND);
	int handlers, bytecode = want_bytecode(m, p, s, &handlers);
	const uint8_t *bytes;

	(void)t;
	w->broken = false;
	w->settled = true;
	/* At the entry of a function its frame is not made yet: it is in a register. */
	if (is_tagged(s->rdi))
		add_candidate(r, 0, s->rdi);
	find_candidates(r, p, s);
	if (!lang_memory_fetch(m))
		return LANG_NONE_REFUSED;
	bytes = lang_memory_piece(m, code);
	if (bytes)
		w->v8.top = top_of(bytes);
	set_innermost(r, p, s, handlers, bytecode);
	return w->nr ? LANG_NONE_NR : LANG_NONE_NO_FRAMES;
}

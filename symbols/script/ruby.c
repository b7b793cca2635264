// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ruby: the control frames of the thread's execution context, and its line tables.
 *
 * Runs on: a reader. Control frames grow downwards from the end of the VM stack. rb_vm_exec() runs
 * frames up to the first one with the flag FINISH. Methods in C are left out. Offsets were read in
 * the process itself (3.1.2) and agree with the sources, for 64-bit CPUs.
 */
#include "symbols/script/internal.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"

#define RACTORS_MAX	16
#define THREADS_MAX	512
#define VM_RACTORS	8 /* list of ractors, by their nodes */
#define RACTOR_NODE	568
#define RACTOR_THREADS	304 /* list of threads, which begin with their nodes */
#define THREAD_EC	40
#define THREAD_TID	88
#define THREAD_SIZE	96
#define EC_STACK	0
#define EC_STACK_WORDS	8
#define EC_CFP		16
#define EC_C_STACK	144 /* its end, the highest address */
#define EC_C_STACK_SIZE 160
#define EC_SIZE		168
#define FRAME_SIZE	64
#define PART		(LANG_PIECE_MAX / FRAME_SIZE) /* frames in one piece */
#define FRAME_PC	0
#define FRAME_ISEQ	16
#define FRAME_EP	32
#define FLAG_FINISH	0x20U
#define FLAG_CFRAME	0x80U /* of C code; a block in C has no iseq, but a pointer */
#define MAGIC_MASK	0x7fff0001U
#define MAGIC_DUMMY	0x79990001U
#define ISEQ_SIZE	24
#define ISEQ_BODY	16
#define BODY_WORDS	4 /* of instructions */
#define BODY_CODE	8
#define BODY_PATH	64
#define BODY_LABEL	80
#define BODY_FIRST_LINE 88  /* a small integer of Ruby: 2n + 1 */
#define BODY_ENTRIES	120 /* of the table of lines */
#define BODY_NR_ENTRIES 136
#define BODY_INDEX	144
#define BODY_SIZE	152
#define VALUE_SIZE	40
#define ENTRIES_MAX	(LANG_PIECE_MAX / RUBYLINES_ENTRY) /* in one piece */
#define TYPE_MASK	0x1fU
#define TYPE_STRING	0x05U
#define TYPE_ARRAY	0x07U
#define IMEMO_MASK	0xf01fU
#define IMEMO_ISEQ	0x701aU
#define FLAG_USER1	(1U << 13) /* strings: not embedded; arrays: embedded */
#define EMBED_SHIFT	14

/* Read the frames from @cfp to @end, with their flags: pieces of codes_of are set later. */
static enum lang_none add_frames(struct lang_memory *m, struct lang_work *k, uint64_t cfp,
				 uint32_t nr)
{
	int flags[LANG_FRAMES_MAX], parts[LANG_FRAMES_MAX / PART + 1];

	for (uint32_t i = 0; i < nr; i += PART)
		parts[i / PART] = lang_memory_want(m, cfp + (uint64_t)i * FRAME_SIZE,
						   MIN(nr - i, PART) * FRAME_SIZE);
	if (!lang_memory_fetch(m))
		return LANG_NONE_BAD_CHAIN;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *f = lang_memory_piece(m, parts[i / PART]);
		uint64_t iseq = f ? bytes_u64(f + i % PART * FRAME_SIZE + FRAME_ISEQ) : 0;

		if (!f || (iseq && !lang_memory_is_pointer(iseq)))
			return LANG_NONE_BAD_CHAIN;
		if (!iseq) /* of a method in C */
			continue;
		k->address[k->nr] = iseq;
		k->instr[k->nr] = bytes_u64(f + i % PART * FRAME_SIZE + FRAME_PC);
		flags[k->nr++] =
			lang_memory_want(m, bytes_u64(f + i % PART * FRAME_SIZE + FRAME_EP), 8);
	}
	if (!lang_memory_fetch(m))
		return LANG_NONE_BAD_CHAIN;
	nr = k->nr;
	k->nr = 0;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *bytes = lang_memory_piece(m, flags[i]);
		uint32_t set = bytes ? bytes_u32(bytes) : 0;

		if (!bytes || !(set & 1))
			return LANG_NONE_BAD_CHAIN;
		/* Of C code, or the root of a thread. */
		if (set & FLAG_CFRAME || (set & MAGIC_MASK) == MAGIC_DUMMY)
			continue;
		k->address[k->nr] = k->address[i];
		k->instr[k->nr] = k->instr[i];
		k->boundary[k->nr++] = set & FLAG_FINISH ? 1 : 0;
	}
	return k->nr ? LANG_NONE_NR : k->deep ? LANG_NONE_NO_ROOM : LANG_NONE_NO_FRAMES;
}

/*
 * Return whether the sampled thread runs on the C stack of the context @ec. Not while it changes to
 * another fiber. The stack of the VM of a thread is on its C stack, beyond the frames of the loop.
 */
static bool is_on_stack(struct lang_work *k, const struct lang_sample *s, const uint8_t *ec)
{
	uint64_t end = bytes_u64(ec + EC_C_STACK);

	k->rooted = end - s->sp < s->stack_size;
	return end - s->sp <= bytes_u64(ec + EC_C_STACK_SIZE);
}

enum lang_none ruby_chain(struct lang_reader *r, const struct lang_process *p,
			  const struct lang_sample *s, struct lang_thread *t)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;
	int thread = lang_memory_want(m, t->state, THREAD_SIZE);
	const uint8_t *th, *ec;
	uint64_t at, cfp, end, nr;

	(void)p;
	ahead_want(r, t, s);
	k->broken = false;
	k->settled = true;
	if (!lang_memory_fetch(m) || !(th = lang_memory_piece(m, thread)) ||
	    bytes_u32(th + THREAD_TID) != t->id)
		return LANG_NONE_NO_THREAD;
	at = bytes_u64(th + THREAD_EC);
	if (!at)
		return LANG_NONE_NO_THREAD;
	ec = lang_memory_is_pointer(at) ? ahead_frame(r, t, at, EC_SIZE, true) : NULL;
	if (!ec)
		return LANG_NONE_BAD_CHAIN;
	/* It has ended: Ruby up to 3.2 gives its task, and so its id, to the next thread. */
	if (!bytes_u64(ec + EC_STACK))
		return LANG_NONE_NO_THREAD;
	k->again[0] = (struct lang_ahead){ t->state + THREAD_EC, 8 };
	k->first_read[0] = th + THREAD_EC;
	k->again[1] = (struct lang_ahead){ at, EC_CFP + 8 };
	k->first_read[1] = ec;
	cfp = bytes_u64(ec + EC_CFP);
	end = bytes_u64(ec + EC_STACK) + 8 * bytes_u64(ec + EC_STACK_WORDS);
	if (cfp == end)
		return LANG_NONE_NO_FRAMES;
	if (!is_on_stack(k, s, ec))
		return LANG_NONE_MISMATCH;
	if (!lang_memory_is_pointer(cfp) || cfp > end || (end - cfp) % FRAME_SIZE)
		return LANG_NONE_BAD_CHAIN;
	nr = (end - cfp) / FRAME_SIZE;
	k->deep = nr > LANG_FRAMES_MAX;
	return add_frames(m, k, cfp, (uint32_t)MIN(nr, LANG_FRAMES_MAX));
}

static int want_value(struct lang_memory *m, uint64_t addr)
{
	return lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, VALUE_SIZE) : -1;
}

/* Find the text of a String; add the identity of the object to the stamp @s. */
static uint64_t set_text(const struct lang_memory *m, struct lang_text *t, uint64_t s)
{
	const uint8_t *v = lang_memory_piece(m, t->piece);
	uint32_t flags = v ? bytes_u32(v) : 0;

	if (!v || (flags & TYPE_MASK) != TYPE_STRING)
		return s;
	for (uint32_t i = 16; i < VALUE_SIZE; i += 8)
		s = hash_u64(s ^ bytes_u64(v + i));
	if (flags & FLAG_USER1) {
		t->size = (uint32_t)MIN(bytes_u64(v + 16), (uint64_t)CODES_TEXT_MAX);
		t->addr = bytes_u64(v + 24);
		t->content = true;
	} else {
		t->size = MIN(flags >> EMBED_SHIFT & 31, VALUE_SIZE - 16U);
		t->addr += 16;
	}
	return hash_u64(s ^ (uint64_t)t->size << 48 ^ t->addr);
}

/* Read iseqs and their bodies. */
static bool read_bodies(struct lang_memory *m, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->codes_of[i].header = lang_memory_want(m, w->codes_of[i].address, ISEQ_SIZE);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const uint8_t *iseq = lang_memory_piece(m, w->codes_of[i].header);

		if (!iseq || (bytes_u32(iseq) & IMEMO_MASK) != IMEMO_ISEQ)
			return false;
		w->codes_of[i].header = lang_memory_want(m, bytes_u64(iseq + ISEQ_BODY), BODY_SIZE);
	}
	return lang_memory_fetch(m);
}

/* Read the labels, and the paths: a String, or an Array that begins with it. */
static bool read_strings(struct lang_memory *m, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *body = lang_memory_piece(m, w->codes_of[i].header);

		if (!body)
			return false;
		f->first_line = (uint32_t)(bytes_u64(body + BODY_FIRST_LINE) >> 1);
		f->name.addr = bytes_u64(body + BODY_LABEL);
		f->name.piece = want_value(m, f->name.addr);
		f->file.addr = bytes_u64(body + BODY_PATH);
		f->file.piece = want_value(m, f->file.addr);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_text *t = &w->functions[i].file;
		const uint8_t *v = lang_memory_piece(m, t->piece);
		uint32_t flags = v ? bytes_u32(v) : 0;

		if (!v || (flags & TYPE_MASK) != TYPE_ARRAY || !(flags & FLAG_USER1))
			continue;
		t->addr = bytes_u64(v + 16);
		t->piece = want_value(m, t->addr);
	}
	return lang_memory_fetch(m);
}

/* Hash the first line and the sizes of the code: that of another eval() may have the same address.
 */
static uint64_t shape_of(const struct lang_function *f, const uint8_t *body)
{
	return hash_u64((uint64_t)bytes_u32(body + BODY_WORDS) << 32 |
			bytes_u32(body + BODY_NR_ENTRIES)) ^
	       f->first_line;
}

/* Find the table of lines of a function. */
static void set_parts(struct lang_function *f, const uint8_t *body)
{
	uint32_t nr = bytes_u32(body + BODY_NR_ENTRIES);
	uint32_t index = rubylines_index_size(bytes_u32(body + BODY_WORDS));
	uint64_t entries = bytes_u64(body + BODY_ENTRIES);

	if (!nr || nr > ENTRIES_MAX * (LANG_PARTS - 1) || !index ||
	    rubylines_size(nr, index) > CODES_TABLE_MAX)
		return;
	f->lines_size = rubylines_size(nr, index);
	f->parts[0] = (struct lang_text){ .addr = bytes_u64(body + BODY_INDEX), .size = index };
	for (uint32_t i = 1, n; nr; nr -= n, i++, entries += (uint64_t)n * RUBYLINES_ENTRY) {
		n = MIN(nr, ENTRIES_MAX);
		f->parts[i] = (struct lang_text){ .addr = entries, .size = n * RUBYLINES_ENTRY };
	}
}

/* From the address of the next instruction to the position of the last one, in words. */
static void set_instructions(const struct lang_memory *m, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *body = lang_memory_piece(m, w->codes_of[w->code[i]].header);
		uint64_t code = bytes_u64(body + BODY_CODE), at = w->instr[i] - code;

		if (!code || at % 8 || at / 8 > bytes_u32(body + BODY_WORDS))
			w->instr[i] = LANG_NO_INSTR;
		else
			w->instr[i] = at ? at / 8 - 1 : 0;
	}
}

void ruby_set_lines(const struct lang_memory *m, struct lang_function *f, uint8_t *out)
{
	const uint8_t *index = lang_memory_piece(m, f->parts[0].piece);
	uint32_t nr = (f->lines_size - f->parts[0].size) / 4 - 1;

	if (!index)
		return;
	rubylines_begin(out, nr, index, f->parts[0].size);
	for (uint32_t i = 1, at = 0; i < LANG_PARTS && f->parts[i].size; i++) {
		const uint8_t *entries = lang_memory_piece(m, f->parts[i].piece);

		if (!entries)
			return;
		for (uint32_t k = 0; k < f->parts[i].size / RUBYLINES_ENTRY; k++)
			rubylines_set(out, at++, entries + (size_t)k * RUBYLINES_ENTRY);
	}
	f->lines = out;
}

enum lang_none ruby_codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	functions_number(r, process);
	if (!read_bodies(m, w) || !read_strings(m, w))
		return LANG_NONE_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *body = lang_memory_piece(m, w->codes_of[i].header);

		set_parts(f, body);
		w->codes_of[i].stamp =
			set_text(m, &f->file, set_text(m, &f->name, shape_of(f, body)));
	}
	set_instructions(m, w);
	return functions_add(r, p, process);
}

/* Each step takes a call: more than the bound of one sample. */
static uint64_t read_word(struct lang_reader *r, uint64_t addr)
{
	const uint8_t *bytes;

	lang_memory_begin(&r->memory);
	bytes = lang_memory_is_pointer(addr) ? lang_memory_read(&r->memory, addr, 8) : NULL;
	return bytes ? bytes_u64(bytes) : 0;
}

static const uint8_t *read_thread(struct lang_reader *r, uint64_t th)
{
	lang_memory_begin(&r->memory);
	return lang_memory_is_pointer(th) ? lang_memory_read(&r->memory, th, THREAD_SIZE) : NULL;
}

/* Look through the threads of a ractor. True: that of @s is among them. */
static bool look_at(struct lang_reader *r, uint64_t ractor, const struct lang_sample *s,
		    uint32_t *nr)
{
	uint64_t head = ractor + RACTOR_THREADS, th = read_word(r, head);

	while (th && th != head && (*nr)++ < THREADS_MAX) {
		const uint8_t *bytes = read_thread(r, th);

		if (!bytes)
			return false;
		if ((pid_t)bytes_u32(bytes + THREAD_TID) == s->tid) {
			lang_chain_keep_thread(r, s->process, s->tid, th, (uint32_t)s->tid);
			return true;
		}
		th = bytes_u64(bytes);
	}
	return false;
}

/*
 * Keep the main thread, the first one of the first ractor: that of the sample, although it has
 * another id. In a forked process, Ruby before the fix of its bug 19873 has the parent's there.
 */
static void keep_main(struct lang_reader *r, uint64_t ractor, const struct lang_sample *s)
{
	uint64_t head = ractor + RACTOR_THREADS, th = read_word(r, head);
	const uint8_t *bytes = th == head ? NULL : read_thread(r, th);

	if (bytes)
		lang_chain_keep_thread(r, s->process, s->tid, th, bytes_u32(bytes + THREAD_TID));
}

void ruby_find_thread(struct lang_reader *r, const struct lang_process *p,
		      const struct lang_sample *s)
{
	uint64_t vm = read_word(r, p->runtime), head = vm + VM_RACTORS, first, node;
	uint32_t nr = 0;

	node = first = vm ? read_word(r, head) : 0;
	for (int i = 0; i < RACTORS_MAX && node && node != head; i++) {
		if (look_at(r, node - RACTOR_NODE, s, &nr))
			return;
		node = read_word(r, node);
	}
	if (s->is_main && first && first != head)
		keep_main(r, first - RACTOR_NODE, s);
}

/*
 * Line tables of Ruby 3.1: see succ_index_lookup() in its iseq.c.
 *
 * Runs on: readers (begin, set), the loader.
 */

#define FIRST	    54U /* positions with a rank of 7 bits each, 9 in a word */
#define FIRST_WORDS 6U
#define BLOCK_BITS  512U
#define BLOCK_SIZE  80U /* rank, ranks of the parts but the first, 8 words of bits */
#define BLOCK_RANKS 8U
#define BLOCK_PARTS 16U

uint32_t rubylines_index_size(uint32_t words)
{
	if (words < FIRST)
		return 8 * ((words + 8) / 9);
	if (words > CODES_TABLE_MAX * 8)
		return 0;
	return 8 * FIRST_WORDS + BLOCK_SIZE * ((words - FIRST + BLOCK_BITS - 1) / BLOCK_BITS);
}

uint32_t rubylines_size(uint32_t nr, uint32_t index_size)
{
	return 4 + 4 * nr + index_size;
}

void rubylines_begin(uint8_t *out, uint32_t nr, const uint8_t *index, uint32_t index_size)
{
	memcpy(out, &nr, 4);
	memcpy(out + 4 + 4ULL * nr, index, index_size);
}

void rubylines_set(uint8_t *out, uint32_t i, const uint8_t entry[RUBYLINES_ENTRY])
{
	memcpy(out + 4 + 4ULL * i, entry, 4);
}

/* Return how many instructions begin at or before @pos; 0: the index does not reach so far. */
static uint32_t rank_of(const uint8_t *index, size_t size, uint32_t pos)
{
	uint32_t bit = (pos - FIRST) % BLOCK_BITS, part = bit / 64;
	const uint8_t *block;
	uint64_t bits;

	if (pos < FIRST) {
		if (8ULL * (pos / 9) + 8 > size)
			return 0;
		return (uint32_t)(bytes_u64(index + 8ULL * (pos / 9)) >> 7 * (pos % 9)) & 0x7f;
	}
	block = index + 8ULL * FIRST_WORDS + (size_t)BLOCK_SIZE * ((pos - FIRST) / BLOCK_BITS);
	if ((size_t)(block - index) + BLOCK_SIZE > size)
		return 0;
	bits = bytes_u64(block + BLOCK_PARTS + 8ULL * part) << (63 - bit % 64);
	return bytes_u32(block) +
	       (part ? (uint32_t)(bytes_u64(block + BLOCK_RANKS) >> 9 * (part - 1)) & 0x1ff : 0) +
	       (uint32_t)__builtin_popcountll(bits);
}

uint32_t rubyline_of(const uint8_t *table, size_t size, uint32_t pos)
{
	uint32_t nr = size >= 4 ? bytes_u32(table) : 0, rank, line;

	if (!nr || nr > (size - 4) / 4)
		return 0;
	rank = nr == 1 ? 1 : rank_of(table + 4 + 4ULL * nr, size - 4 - 4ULL * nr, pos);
	if (!rank || rank > nr)
		return 0;
	line = bytes_u32(table + 4ULL * rank);
	return line <= INT32_MAX ? line : 0;
}

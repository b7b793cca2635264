// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ruby: the control frames of the thread's execution context, and its line tables.
 *
 * Runs on: a reader. Control frames grow downwards from the end of the VM stack. rb_vm_exec() runs
 * frames up to the first one with the flag FINISH. Methods in C are left out. Where a version
 * has what is read: ruby_layouts.inc.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symbols/base/base.h"

#define RACTORS_MAX   16
#define THREADS_MAX   512
#define FLAG_FINISH   0x20U
#define FLAG_CFRAME   0x80U /* of C code; a block in C has no iseq, but a pointer */
#define MAGIC_MASK    0x7fff0001U
#define MAGIC_DUMMY   0x79990001U
#define VALUE_SIZE    40U
#define STRING_LENGTH 16
#define ENTRIES_MAX   (LANG_PIECE_MAX / RUBYLINES_ENTRY) /* in one piece */
#define TYPE_MASK     0x1fU
#define TYPE_STRING   0x05U
#define TYPE_ARRAY    0x07U
#define FLAG_USER1    (1U << 13) /* strings: not embedded; arrays: embedded */
#define EMBED_SHIFT   14
#define FILE_MAX      (16U << 20) /* bytes around the loop that are surely no compiled code */
#define PUSH_CODE     48U	  /* bytes of code from a frame that is made to its function */

#define OUTER_FRAMES 64U /* of a deep stack, that are kept */

/*
 * Read the @nr frames from @cfp on, with their flags: pieces of script_functions_of are set later.
 * @left_out: more, in front of the outermost ones.
 */
static enum lang_status add_frames(struct lang_memory *m, const struct ruby_layout *l,
				   struct lang_work *k, uint64_t cfp, uint32_t nr,
				   uint64_t left_out)
{
	uint32_t part = LANG_PIECE_MAX / l->frame_size; /* frames in one piece */
	uint32_t inner = left_out ? (nr - OUTER_FRAMES) / part * part : nr;
	int flags[LANG_FRAMES_MAX], parts[LANG_FRAMES_MAX / (LANG_PIECE_MAX / RUBY_FRAME_MAX) + 1];

	for (uint32_t i = 0; i < nr; i += part)
		parts[i / part] =
			lang_memory_want(m, cfp + (i < inner ? i : i + left_out) * l->frame_size,
					 MIN(nr - i, part) * l->frame_size);
	if (!lang_memory_fetch(m))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *piece = lang_memory_piece(m, parts[i / part]);
		const uint8_t *f = piece ? piece + (size_t)(i % part) * l->frame_size : NULL;
		uint64_t iseq = f ? bytes_u64(f + l->frame_iseq) : 0;

		if (!f || (iseq && !lang_memory_is_pointer(iseq)))
			return LANG_BAD_CHAIN;
		if (!iseq) /* of a method in C */
			continue;
		k->address[k->nr] = iseq;
		k->instr[k->nr] = bytes_u64(f + l->frame_pc);
		flags[k->nr++] = lang_memory_want(m, bytes_u64(f + l->frame_ep), 8);
	}
	if (!lang_memory_fetch(m))
		return LANG_BAD_CHAIN;
	nr = k->nr;
	k->nr = 0;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *bytes = lang_memory_piece(m, flags[i]);
		uint32_t set = bytes ? bytes_u32(bytes) : 0;

		if (!bytes || !(set & 1))
			return LANG_BAD_CHAIN;
		/* Of C code, or the root of a thread. */
		if (set & FLAG_CFRAME || (set & MAGIC_MASK) == MAGIC_DUMMY)
			continue;
		k->address[k->nr] = k->address[i];
		k->instr[k->nr] = k->instr[i];
		k->boundary[k->nr++] = set & FLAG_FINISH ? 1 : 0;
	}
	return k->nr ? LANG_OK : k->deep ? LANG_NO_ROOM : LANG_NO_FRAMES;
}

/*
 * Return whether the sampled thread runs on the C stack of the context @ec. Not while it changes to
 * another fiber. The stack of the VM of a thread is on its C stack, beyond the frames of the loop.
 */
static bool is_on_stack(struct lang_work *k, const struct ruby_layout *l,
			const struct lang_sample *s, const uint8_t *ec)
{
	uint64_t end = bytes_u64(ec + l->ec_c_stack);

	k->rooted = end - s->sp < s->stack_size;
	return end - s->sp <= bytes_u64(ec + l->ec_c_stack_size);
}

/* Return the bytes of a thread that are read. */
static uint32_t thread_size(const struct ruby_layout *l)
{
	uint32_t id = l->thread_tid == RUBY_ABSENT ? l->thread_native : l->thread_tid;

	return MAX(MAX(MAX(l->thread_vm, l->thread_ec), l->thread_node), id) + 8U;
}

/*
 * Return the execution context of the thread @th, that the sampled task runs. NULL: another one
 * runs it, *@why, or it has ended.
 */
static const uint8_t *context_of(struct lang_reader *r, const struct ruby_layout *l,
				 struct lang_thread *t, const uint8_t *th, enum lang_status *why)
{
	uint64_t at = bytes_u64(th + l->thread_ec);
	const uint8_t *id = th + l->thread_tid, *ec;

	*why = LANG_NO_THREAD;
	if (l->thread_tid == RUBY_ABSENT) {
		uint64_t native = bytes_u64(th + l->thread_native);

		id = lang_memory_is_pointer(native)
			     ? prefetch_frame(r, t, native, l->native_tid + 8U, true)
			     : NULL;
		id = id ? id + l->native_tid : NULL;
	}
	if (!id || bytes_u32(id) != t->id || !at)
		return NULL;
	ec = lang_memory_is_pointer(at) ? prefetch_frame(r, t, at, l->ec_c_stack_size + 8U, true)
					: NULL;
	/* It has ended: Ruby up to 3.2 gives its task, and so its id, to the next thread. */
	if (ec && !bytes_u64(ec + l->ec_stack))
		return NULL;
	if (ec && bytes_u64(ec + l->ec_thread) == t->state)
		return ec;
	*why = LANG_BAD_CHAIN;
	return NULL;
}

/*
 * Return whether the innermost frame has its function. In code of YJIT 3.1 it is made first, and
 * may have the function of a frame before it: until a move of %rax or of 0 to 0x10(%r13), unless
 * "sub $0x40,%r13", which makes one, is before that. Of later versions it is not known.
 */
static bool is_whole(struct lang_memory *m, const struct lang_process *p, uint64_t pc)
{
	static const uint8_t make[] = { 0x49, 0x83, 0xed, 0x40 };
	static const uint8_t set[] = { 0x49, 0x89, 0x45, 0x10 },
			     clear[] = { 0x49, 0xc7, 0x45, 0x10 };
	const uint8_t *code;

	if (!pc || pc - p->eval[0].start + FILE_MAX < 2ULL * FILE_MAX)
		return true;
	if (p->version >> 16 != 0x0301)
		return false;
	code = lang_memory_read(m, pc, PUSH_CODE);
	for (uint32_t i = 0; code && i + sizeof(set) <= PUSH_CODE; i++)
		if (!memcmp(code + i, make, sizeof(make)))
			return true;
		else if (!memcmp(code + i, set, sizeof(set)) ||
			 !memcmp(code + i, clear, sizeof(clear)))
			return false;
	return code;
}

static enum lang_status stack_of(struct lang_reader *r, const struct lang_process *p,
				 const struct lang_sample *s, struct lang_thread *t)
{
	const struct ruby_layout *l = &p->ruby;
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;
	int thread = lang_memory_want(m, t->state, thread_size(l));
	const uint8_t *th, *ec;
	uint64_t cfp, end, nr;
	enum lang_status why;

	prefetch_want(r, t, s);
	k->broken = false;
	k->settled = is_whole(m, p, s->pc);
	if (!lang_memory_fetch(m) || !(th = lang_memory_piece(m, thread)))
		return LANG_NO_THREAD;
	ec = context_of(r, l, t, th, &why);
	if (!ec)
		return why;
	k->again[0] = (struct lang_ahead){ t->state + l->thread_ec, 8 };
	k->first_read[0] = th + l->thread_ec;
	k->again[1] = (struct lang_ahead){ bytes_u64(th + l->thread_ec), l->ec_cfp + 8U };
	k->first_read[1] = ec;
	cfp = bytes_u64(ec + l->ec_cfp);
	end = bytes_u64(ec + l->ec_stack) + 8 * bytes_u64(ec + l->ec_stack_words);
	if (cfp == end)
		return LANG_NO_FRAMES;
	if (!is_on_stack(k, l, s, ec))
		return LANG_MISMATCH;
	if (!lang_memory_is_pointer(cfp) || cfp > end || (end - cfp) % l->frame_size)
		return LANG_BAD_CHAIN;
	nr = (end - cfp) / l->frame_size;
	k->deep = nr > LANG_FRAMES_MAX;
	return add_frames(m, l, k, cfp, (uint32_t)MIN(nr, LANG_FRAMES_MAX),
			  nr - MIN(nr, LANG_FRAMES_MAX));
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

/* Return the bytes of the index for code of @words; 0: too much code for a table. */
static uint32_t rubylines_index_size(uint32_t words)
{
	if (words < FIRST)
		return 8 * ((words + 8) / 9);
	if (words > SCRIPT_FUNCTIONS_TABLE_MAX * 8)
		return 0;
	return 8 * FIRST_WORDS + BLOCK_SIZE * ((words - FIRST + BLOCK_BITS - 1) / BLOCK_BITS);
}

/* Return the bytes of the table of @nr entries. */
static uint32_t rubylines_size(uint32_t nr, uint32_t index_size)
{
	return 4 + 4 * nr + index_size;
}

/* Begin a table of rubylines_size() bytes: its number of entries, and the index of the process. */
static void rubylines_begin(uint8_t *out, uint32_t nr, const uint8_t *index, uint32_t index_size)
{
	memcpy(out, &nr, 4);
	memcpy(out + 4 + 4ULL * nr, index, index_size);
}

/* Set entry @i, as it is in the process. */
static void rubylines_set(uint8_t *out, uint32_t i, const uint8_t entry[RUBYLINES_ENTRY])
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

	assert(table || !size);
	if (!nr || nr > (size - 4) / 4)
		return 0;
	rank = nr == 1 ? 1 : rank_of(table + 4 + 4ULL * nr, size - 4 - 4ULL * nr, pos);
	if (!rank || rank > nr)
		return 0;
	line = bytes_u32(table + 4ULL * rank);
	return line <= INT32_MAX ? line : 0;
}

/* ---- functions: names, files, lines ---- */

static int want_value(struct lang_memory *m, uint64_t addr)
{
	return lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, VALUE_SIZE) : -1;
}

/* Find the text of a String; add the identity of the object to the stamp @s. */
static uint64_t set_text(const struct lang_memory *m, const struct ruby_layout *l,
			 struct lang_text *t, uint64_t s)
{
	const uint8_t *v = lang_memory_piece(m, t->piece);
	uint32_t flags = v ? bytes_u32(v) : 0;
	uint64_t length;

	if (!v || (flags & TYPE_MASK) != TYPE_STRING)
		return s;
	for (uint32_t i = 16; i < VALUE_SIZE; i += 8)
		s = hash_u64(s ^ bytes_u64(v + i));
	/* Up to 3.1 the flags have the length of an embedded text. */
	length = flags & FLAG_USER1 || l->string_text > STRING_LENGTH ? bytes_u64(v + STRING_LENGTH)
								      : flags >> EMBED_SHIFT & 31;
	t->size = (uint32_t)MIN(length, (uint64_t)SCRIPT_FUNCTIONS_TEXT_MAX);
	if (flags & FLAG_USER1) {
		t->addr = bytes_u64(v + STRING_LENGTH + 8);
		t->content = true;
	} else {
		t->addr += l->string_text;
		t->content = t->size > VALUE_SIZE - MIN(l->string_text, VALUE_SIZE);
	}
	return hash_u64(s ^ (uint64_t)t->size << 48 ^ t->addr);
}

/* Read iseqs and their bodies. */
static bool read_bodies(struct lang_memory *m, const struct ruby_layout *l, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->script_functions_of[i].header =
			lang_memory_want(m, w->script_functions_of[i].address, l->iseq_body + 8U);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		const uint8_t *iseq = lang_memory_piece(m, w->script_functions_of[i].header);

		if (!iseq || (bytes_u32(iseq) & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ)
			return false;
		w->script_functions_of[i].header =
			lang_memory_want(m, bytes_u64(iseq + l->iseq_body), l->body_index + 8U);
	}
	return lang_memory_fetch(m);
}

/* Read the labels, and the paths: a String, or an Array that begins with it. */
static bool read_strings(struct lang_memory *m, const struct ruby_layout *l, struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *body = lang_memory_piece(m, w->script_functions_of[i].header);

		if (!body)
			return false;
		/* Up to 3.1 a small integer of Ruby: 2n + 1. */
		f->first_line = l->first_line_size == 8
					? (uint32_t)(bytes_u64(body + l->body_first_line) >> 1)
					: bytes_u32(body + l->body_first_line);
		f->name.addr = bytes_u64(body + l->body_label);
		f->name.piece = want_value(m, f->name.addr);
		f->file.addr = bytes_u64(body + l->body_path);
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
static uint64_t shape_of(const struct ruby_layout *l, const struct lang_function *f,
			 const uint8_t *body)
{
	return hash_u64((uint64_t)bytes_u32(body + l->body_words) << 32 |
			bytes_u32(body + l->body_nr_entries)) ^
	       f->first_line;
}

/* Find the table of lines of a function. */
static void set_parts(const struct ruby_layout *l, struct lang_function *f, const uint8_t *body)
{
	uint32_t nr = bytes_u32(body + l->body_nr_entries);
	uint32_t index = rubylines_index_size(bytes_u32(body + l->body_words));
	uint64_t entries = bytes_u64(body + l->body_entries);

	if (!nr || nr > ENTRIES_MAX * (LANG_PARTS - 1) || !index ||
	    rubylines_size(nr, index) > SCRIPT_FUNCTIONS_TABLE_MAX)
		return;
	f->lines_size = rubylines_size(nr, index);
	f->parts[0] = (struct lang_text){ .addr = bytes_u64(body + l->body_index), .size = index };
	for (uint32_t i = 1, n; nr; nr -= n, i++, entries += (uint64_t)n * RUBYLINES_ENTRY) {
		n = MIN(nr, ENTRIES_MAX);
		f->parts[i] = (struct lang_text){ .addr = entries, .size = n * RUBYLINES_ENTRY };
	}
}

/* From the address of the next instruction to the position of the last one, in words. */
static void set_instructions(const struct lang_memory *m, const struct ruby_layout *l,
			     struct lang_work *w)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *body =
			lang_memory_piece(m, w->script_functions_of[w->code[i]].header);
		uint64_t code = bytes_u64(body + l->body_code), at = w->instr[i] - code;

		if (!code || at % 8 || at / 8 > bytes_u32(body + l->body_words))
			w->instr[i] = LANG_NO_INSTR;
		else
			w->instr[i] = at ? at / 8 - 1 : 0;
	}
}

static void set_lines(const struct lang_memory *m, struct lang_function *f, uint8_t *out)
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

static enum lang_status codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;
	const struct ruby_layout *l = &p->ruby;

	functions_number(r, process);
	if (!read_bodies(m, l, w) || !read_strings(m, l, w))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *body = lang_memory_piece(m, w->script_functions_of[i].header);

		set_parts(l, f, body);
		w->script_functions_of[i].stamp =
			set_text(m, l, &f->file, set_text(m, l, &f->name, shape_of(l, f, body)));
	}
	set_instructions(m, l, w);
	return functions_add(r, p, process, set_lines);
}

/* Each step takes a call: more than the bound of one sample. */
static uint64_t read_word(struct lang_reader *r, uint64_t addr)
{
	const uint8_t *bytes;

	lang_memory_begin(&r->memory);
	bytes = lang_memory_is_pointer(addr) ? lang_memory_read(&r->memory, addr, 8) : NULL;
	return bytes ? bytes_u64(bytes) : 0;
}

/*
 * Read the thread whose node of the list is at @node. Return its task as the process knows it; 0:
 * none.
 * *@next: the next node; 0: it cannot be read.
 */
static pid_t read_thread(struct lang_reader *r, const struct ruby_layout *l, uint64_t node,
			 uint64_t *next)
{
	uint64_t th = node - l->thread_node, id;
	const uint8_t *bytes;

	lang_memory_begin(&r->memory);
	bytes = lang_memory_is_pointer(th) ? lang_memory_read(&r->memory, th, thread_size(l))
					   : NULL;
	*next = bytes ? bytes_u64(bytes + l->thread_node) : 0;
	if (!bytes || l->thread_tid != RUBY_ABSENT)
		return bytes ? (pid_t)bytes_u32(bytes + l->thread_tid) : 0;
	id = bytes_u64(bytes + l->thread_native) + l->native_tid;
	/* Words are read. */
	return (pid_t)(read_word(r, id & ~7ULL) >> (8 * (id & 4)));
}

/* Look through the threads of a ractor. True: that of @s is among them. */
static bool look_at(struct lang_reader *r, const struct ruby_layout *l, uint64_t ractor,
		    const struct lang_sample *s, uint32_t *nr)
{
	uint64_t head = ractor + l->ractor_threads, node = read_word(r, head), next;

	for (; node && node != head && (*nr)++ < THREADS_MAX; node = next) {
		if (read_thread(r, l, node, &next) != s->tid)
			continue;
		lang_chain_keep_thread(r, s->process, s->tid, node - l->thread_node,
				       (uint32_t)s->tid);
		return true;
	}
	return false;
}

/*
 * Keep the main thread, the first one of the first ractor: that of the sample, although it has
 * another id. In a forked process, Ruby before the fix of its bug 19873 has the parent's there.
 */
static void keep_main(struct lang_reader *r, const struct ruby_layout *l, uint64_t ractor,
		      const struct lang_sample *s)
{
	uint64_t head = ractor + l->ractor_threads, node = read_word(r, head), next;
	pid_t tid = node && node != head ? read_thread(r, l, node, &next) : 0;

	if (tid)
		lang_chain_keep_thread(r, s->process, s->tid, node - l->thread_node, (uint32_t)tid);
}

static void find_thread(struct lang_reader *r, const struct lang_process *p,
			const struct lang_sample *s)
{
	const struct ruby_layout *l = &p->ruby;
	uint64_t vm = read_word(r, p->runtime), head = vm + l->ractors, first, node;
	uint32_t nr = 0;

	node = first = vm ? read_word(r, head) : 0;
	for (int i = 0; i < RACTORS_MAX && node && node != head; i++) {
		if (look_at(r, l, node - l->ractor_node, s, &nr))
			return;
		node = read_word(r, node);
	}
	if (s->is_main && first && first != head)
		keep_main(r, l, first - l->ractor_node, s);
}

/* ---- its files and processes ---- */

/* Outermost frames of Ruby of which one has a function, not C code. */
#define RUBY_PROOF_FRAMES 16U

/* Bytes in front of the node of a ractor in which its list of threads is sought; of a context. */
#define RUBY_SEEK	 1024U
#define RUBY_CONTEXT_MAX 320U
#define RUBY_NATIVE_MAX	 16U /* words of 4 bytes of a native thread */

/* Sizes that the C stack of the main thread may have. */
#define RUBY_STACK_MIN (64ULL << 10)
#define RUBY_STACK_MAX (64ULL << 30)

/* Bytes of a function of Ruby in which its first address is. */
#define RUBY_DECODE_SIZE 32U

static const struct ruby_version rubies[] = {
#define RUBY_FIELD(name, member)
#define RUBY_LAYOUT(major, minor, patch, compared, ...)                                            \
	{ (major) << 24 | (minor) << 16 | (patch) << 8, compared, { __VA_ARGS__ } },
#include "symbols/script/ruby_layouts.inc"
#undef RUBY_FIELD
#undef RUBY_LAYOUT
};

/* Return that of a version, of the newest one known for a later one; NULL: unknown. */
static const struct ruby_version *ruby_version(uint32_t version)
{
	const struct ruby_version *newest = &rubies[ARRAY_SIZE(rubies) - 1];
	const struct ruby_version *found = version > newest->version ? newest : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rubies); i++)
		if (rubies[i].version <= version && rubies[i].version >> 16 == version >> 16)
			found = &rubies[i];
	return found;
}

static void ruby_on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	if (!strcmp(name, "rb_during_gc"))
		search->entry = s->st_value;
}

/*
 * Return the address that code at @vaddr of x86-64 takes first: "lea X(%rip), reg", or the same
 * mov. Before it are parts of a prologue.
 */
static uint64_t first_address_x86(const uint8_t code[static RUBY_DECODE_SIZE], uint64_t vaddr)
{
	static const struct {
		uint8_t size, bytes[4];
	} prologue[] = {
		{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
		{ 1, { 0x55 } },		   /* push %rbp */
		{ 3, { 0x48, 0x89, 0xe5 } },	   /* mov %rsp, %rbp */
		{ 3, { 0x48, 0x83, 0xec } },	   /* sub $N, %rsp; its N is the next byte */
	};
	uint32_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(prologue); i++)
		if (!memcmp(code + at, prologue[i].bytes, prologue[i].size))
			at += prologue[i].size + (i == 3 ? 1U : 0U);
	/* REX.W, lea or mov, relative to the next instruction. */
	if ((code[at] & 0xfb) != 0x48 || (code[at + 1] != 0x8d && code[at + 1] != 0x8b) ||
	    (code[at + 2] & 0xc7) != 0x05)
		return 0;
	return vaddr + at + 7 + (uint64_t)(int32_t)bytes_u32(code + at + 3);
}

/* The same of AArch64: adrp, then an add of the rest, or a load with it as its offset. */
static uint64_t first_address_arm(const uint8_t code[static RUBY_DECODE_SIZE], uint64_t vaddr)
{
	uint64_t page = 0;
	uint32_t reg = 32;

	for (uint32_t at = 0; at + 4 <= RUBY_DECODE_SIZE; at += 4) {
		uint32_t insn = bytes_u32(code + at);

		if ((insn & 0x9f000000) == 0x90000000) {
			uint32_t pages = (insn >> 29 & 3) | (insn >> 5 & 0x7ffff) << 2;

			page = ((vaddr + at) & ~0xfffULL) +
			       ((uint64_t)(int64_t)(int32_t)(pages << 11) << 1);
			reg = insn & 31;
		} else if ((insn >> 5 & 31) == reg && (insn & 0xffc00000) == 0x91000000) {
			return page + (insn >> 10 & 0xfff);
		} else if ((insn >> 5 & 31) == reg && (insn & 0xffc00000) == 0xf9400000) {
			return page + 8 * (insn >> 10 & 0xfff);
		}
	}
	return 0;
}

/*
 * Ruby from 3.3 on exports no address of its VM. rb_during_gc(), which it exports, begins with it,
 * or with that of a pointer to it.
 */
static void find_ruby_vm(struct detect_search *search, const struct elffile *f)
{
	uint8_t code[RUBY_DECODE_SIZE];

	if (search->out->runtime || !search->entry ||
	    !elffile_read_at(f, search->entry, code, sizeof(code)))
		return;
	search->out->runtime = f->machine == EM_X86_64	  ? first_address_x86(code, search->entry)
			       : f->machine == EM_AARCH64 ? first_address_arm(code, search->entry)
							  : 0;
}

/* Without its loop, which is found by an address in it; or without its VM, for the reason. */
static int ruby_on_file(struct detect_search *search, const struct elffile *f)
{
	find_ruby_vm(search, f);
	return search->out->version_at ? 1 : 0;
}

/* Return the address of the first instruction of the function in a frame; 0: it has none. */
static uint64_t ruby_frame_code(pid_t pid, const struct ruby_layout *l, uint64_t frame)
{
	uint64_t iseq = lang_memory_word(pid, frame + l->frame_iseq), body, code, pc, size;

	if ((lang_memory_word(pid, iseq) & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ)
		return 0;
	body = lang_memory_word(pid, iseq + l->iseq_body);
	/* A word of two numbers. */
	size = lang_memory_word(pid, (body + l->body_words) & ~7ULL);
	size = l->body_words & 4 ? size >> 32 : size & UINT32_MAX;
	code = lang_memory_word(pid, body + l->body_code);
	pc = lang_memory_word(pid, frame + l->frame_pc);
	return code && pc - code <= 8 * size ? lang_memory_word(pid, code) : 0;
}

/*
 * Prove a layout on the main thread of the first ractor: its pointers lead back to it. Return an
 * instruction of its frames, an address in the loop; 0: it does not fit.
 */
static uint64_t ruby_prove(pid_t pid, const struct ruby_layout *l, uint64_t vm)
{
	uint64_t ractor = lang_memory_word(pid, vm + l->ractors) - l->ractor_node;
	uint64_t th = lang_memory_word(pid, ractor + l->ractor_threads) - l->thread_node;
	uint64_t ec = lang_memory_word(pid, th + l->thread_ec), cfp, end, found = 0;

	if (lang_memory_word(pid, th + l->thread_vm) != vm ||
	    lang_memory_word(pid, ec + l->ec_thread) != th)
		return 0;
	cfp = lang_memory_word(pid, ec + l->ec_cfp);
	end = lang_memory_word(pid, ec + l->ec_stack) +
	      8 * lang_memory_word(pid, ec + l->ec_stack_words);
	if (cfp > end || (end - cfp) % l->frame_size)
		return 0;
	/* The outermost frames, the same while the process runs. */
	for (uint64_t i = 1; i <= RUBY_PROOF_FRAMES && i * l->frame_size <= end - cfp && !found;
	     i++)
		found = ruby_frame_code(pid, l, end - i * l->frame_size);
	return found;
}

/*
 * Find the list of threads of the first ractor, in front of its node, which is at @node. Only the
 * distance between the two is needed: as in a structure that begins with the list.
 */
static bool ruby_seek_threads(pid_t pid, struct ruby_layout *l, uint64_t vm, uint64_t node)
{
	for (uint64_t head = node - 8; head != node - RUBY_SEEK; head -= 8) {
		uint64_t th = lang_memory_word(pid, head) - l->thread_node, ec;

		if (lang_memory_word(pid, th + l->thread_vm) != vm ||
		    lang_memory_word(pid, th + l->thread_node + 8) != head)
			continue;
		ec = lang_memory_word(pid, th + l->thread_ec);
		if (lang_memory_word(pid, ec + l->ec_thread) != th)
			continue;
		l->ractor_node = (uint16_t)(node - head);
		l->ractor_threads = 0;
		return true;
	}
	return false;
}

/* Return whether @ec has the begin, the end so far, and the size of a C stack at @at. */
static bool is_c_stack(pid_t pid, uint64_t ec, uint64_t at)
{
	uint64_t start = lang_memory_word(pid, ec + at), end = lang_memory_word(pid, ec + at + 8);
	uint64_t size = lang_memory_word(pid, ec + at + 16);

	return lang_memory_is_pointer(start) && size >= RUBY_STACK_MIN && size <= RUBY_STACK_MAX &&
	       (!end || start - end < size);
}

/* Find where a native thread has its task: that of the main one has the pid, if it is not forked.
 */
static void ruby_seek_tid(pid_t pid, struct ruby_layout *l, uint64_t th)
{
	uint64_t native = lang_memory_word(pid, th + l->thread_native);
	uint32_t tids[RUBY_NATIVE_MAX];

	if (l->thread_tid != RUBY_ABSENT || !lang_memory_is_pointer(native) ||
	    !lang_memory_copy(pid, native, tids, sizeof(tids)))
		return;
	for (uint16_t i = 0; i < RUBY_NATIVE_MAX && tids[l->native_tid / 4U] != (uint32_t)pid; i++)
		if (tids[i] == (uint32_t)pid)
			l->native_tid = (uint16_t)(4 * i);
}

/* Return whether the outermost frames of the context have functions of Ruby, or none. */
static bool are_frames(pid_t pid, const struct ruby_layout *l, uint64_t ec)
{
	uint64_t cfp = lang_memory_word(pid, ec + l->ec_cfp);
	uint64_t end = lang_memory_word(pid, ec + l->ec_stack) +
		       8 * lang_memory_word(pid, ec + l->ec_stack_words);

	for (uint64_t i = 1; i <= RUBY_PROOF_FRAMES && i * l->frame_size <= end - cfp; i++) {
		uint64_t frame = end - i * l->frame_size;
		uint64_t iseq = lang_memory_word(pid, frame + l->frame_iseq);

		if (iseq && (lang_memory_word(pid, iseq) & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ)
			return false;
	}
	return true;
}

/*
 * Find the members that differed between versions so far, for one that has no row, or another build
 * of one that has: the list of threads, their tasks, the C stack of a context, the size of frames.
 * ruby_prove() judges it.
 */
static uint64_t ruby_seek(pid_t pid, struct ruby_layout *l, uint64_t vm)
{
	const uint16_t size = l->frame_size;
	uint64_t node = lang_memory_word(pid, vm + l->ractors), th, ec, found = 0;

	if (!ruby_seek_threads(pid, l, vm, node))
		return 0;
	th = lang_memory_word(pid, node - l->ractor_node) - l->thread_node;
	ec = lang_memory_word(pid, th + l->thread_ec);
	ruby_seek_tid(pid, l, th);
	for (uint16_t at = l->ec_thread; !is_c_stack(pid, ec, l->ec_c_stack); at += 8) {
		if (at >= RUBY_CONTEXT_MAX)
			return 0;
		l->ec_c_stack_size = at + (l->ec_c_stack_size - l->ec_c_stack);
		l->ec_c_stack = at;
	}
	for (int i = 0; i < 3 && !found; i++) {
		/* The size itself, one word less, one more. */
		l->frame_size = (uint16_t)(size + (i ? 16 * i - 24 : 0));
		found = are_frames(pid, l, ec) ? ruby_prove(pid, l, vm) : 0;
	}
	return found;
}

/*
 * Prove a layout; exported functions may have the address of the VM, or that of its pointer.
 * @seek: one like it.
 */
static bool ruby_fits(struct lang_process *p, const struct detect_file *d, pid_t pid,
		      const struct ruby_layout *row, bool seek)
{
	uint64_t at = d->runtime + d->bias;

	for (int i = 0; i < 2; i++, at = lang_memory_word(pid, at)) {
		uint64_t vm = lang_memory_word(pid, at);

		p->ruby = *row;
		p->code_type = !vm    ? 0
			       : seek ? ruby_seek(pid, &p->ruby, vm)
				      : ruby_prove(pid, row, vm);
		if (!p->code_type)
			continue;
		p->runtime = at;
		return true;
	}
	return false;
}

/* Set Ruby's version, "3.3.8", and its layout. True: the process may have no frames yet. */
static bool ruby_detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	const struct ruby_version *row;
	char said[16], *end;
	bool later;

	errno = 0;
	if (!d->version_at || !lang_memory_copy(pid, d->version_at + d->bias, said, sizeof(said))) {
		lang_memory_refused(p);
		return false;
	}
	said[sizeof(said) - 1] = 0;
	p->version = (uint32_t)(strtoul(said, &end, 10) & 255) << 24;
	p->version |= (uint32_t)(strtoul(end + (*end == '.'), &end, 10) & 255) << 16;
	p->version |= (uint32_t)(strtoul(end + (*end == '.'), NULL, 10) & 255) << 8;
	row = ruby_version(p->version);
	later = row && p->version >> 16 != row->version >> 16;
	if (!row)
		p->reason = "not supported (" RUBY_READ " are)";
	else if (!d->runtime)
		p->reason = "the VM of this build is not found";
	else if (!later && ruby_fits(p, d, pid, &row->layout, false))
		p->untried |= !row->compared;
	else if (ruby_fits(p, d, pid, &row->layout, true))
		p->untried = true;
	else
		p->reason = "structures of this build differ from its version";
	return p->reason && row && d->runtime;
}

const struct language language_ruby = {
	.name = "ruby",
	.title = "Ruby",
	.versions = RUBY_SHOWN,
	.letter = 'r',
	.program = "ruby",
	.library = "libruby",
	.shown = "ruby_run_node",
	.runtime = "ruby_current_vm_ptr",
	.version = "ruby_version",
	.eval = "rb_vm_exec",
	.finds_loop = true,
	.on_symbol = ruby_on_symbol,
	.on_file = ruby_on_file,
	.detect = ruby_detect,
	.stack = stack_of,
	.functions = codes,
	.find_thread = find_thread,
};

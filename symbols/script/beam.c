// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Erlang and Elixir: processes of BEAM with its compiler for x86-64 (OTP 24 and later).
 *
 * Runs on: a reader. Compiled code runs on the stack of its process, which is the end of its heap,
 * and has the process in r13. C code runs on the stack of the scheduler, below its registers. Of
 * the words of the stack of a process all with two clear low bits are return addresses: the
 * collector of garbage relies on it, so no unwind tables are needed. They end with one to the code
 * by which processes end. Structures that differ by version are found by their contents.
 */
#include "symbols/script/internal.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"

#define C_STACK_MAX    (1U << 23)
#define STACK_MAX      (64U << 10) /* bytes of the stack of a process */
#define OUTER_MAX      (8U << 10)  /* of these, of the outermost frames of a deep one */
#define OUTER_FRAMES   96U
#define JOIN_FRAMES    16U	    /* frames among which one function is looked for */
#define FRAGMENTS      (64U << 10)  /* of shared code, in front of the modules */
#define CODE_MAX       (1ULL << 31) /* from one piece of code to another */
#define FRAGMENT_WORDS 4U	    /* on the stack while it runs */
#define RANGES	       3U	    /* tables of modules: one is active */
#define RANGES_SIZE    32U
#define RANGE	       16U
#define MODULES_MAX    8192U
#define FUNCTIONS_MAX  (LANG_PIECE_MAX / 8 - 1)
#define INFO_SIZE      40U /* of a function: its module, name and arity are the last */
#define INFO_MODULE    16U
#define PROCESS_SIZE   256U
#define PROCESS_TOP    80U /* of its heap; then the lower end of its stack */
#define PROCESS_STACK  88U
#define SCHEDULER_SIZE 256U /* begins with the address of its registers */
#define JUMP_MAX       16U
#define CALL_SIZE      5U
#define REGISTERS_MAX  8192U
#define CODE_BEFORE    256U
#define CODE_BEHIND    12U
#define PAGE_SIZE      4096U
#define NEW_MAX	       64U
#define NAME_MAX       128U
#define ATOM_SIZE      40U
#define ATOM_LENGTH    24U
#define ATOM_NAME      32U
#define ATOM_TAG       0x0bU
#define ATOM_BITS      6U
#define SEGMENT_BITS   10U

/* ---- from a word to a function ---- */

struct beam_walk {
	struct lang_reader *r;
	struct lang_work *k;
	struct lang_thread *t;
	const struct lang_process *p;
	const struct lang_sample *s;
	const uint8_t *process, *tables; /* bytes */
	uint64_t heap, end;		 /* of the heap and stack of the process */
	uint64_t shared;		 /* end of the code that modules share */
	bool in_code;			 /* the sample is on the stack of a process */
	uint32_t join; /* in front of this address others were left out; 0: none were */
	uint64_t pc[LANG_FRAMES_MAX], at[LANG_FRAMES_MAX];
	int entry[LANG_FRAMES_MAX], info[LANG_FRAMES_MAX]; /* pieces */
	uint64_t function[LANG_FRAMES_MAX];		   /* 0: none */
	uint32_t nr;
	uint64_t module[NEW_MAX];
	int header[NEW_MAX], functions[NEW_MAX];
	uint32_t nr_modules;
};

static struct lang_site *site_of(struct lang_reader *r, uint32_t process, uint64_t pc)
{
	return &r->sites[hash_u64(pc ^ (uint64_t)process << 48) & (LANG_SITES - 1)];
}

/* Look each address up as the last samples found it. */
static bool read_known(struct beam_walk *w)
{
	struct lang_memory *m = &w->r->memory;

	for (uint32_t i = 0; i < w->nr; i++) {
		const struct lang_site *site = site_of(w->r, w->s->process, w->pc[i]);
		bool known = site->process == w->s->process && site->pc == w->pc[i];

		w->entry[i] = known ? lang_memory_want(m, site->entry, 16) : -1;
		w->info[i] = known ? lang_memory_want(m, site->function, INFO_SIZE) : -1;
		w->function[i] = 0;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *entry = lang_memory_piece(m, w->entry[i]);
		uint64_t function = site_of(w->r, w->s->process, w->pc[i])->function;

		if (entry && bytes_u64(entry) == function && w->pc[i] >= function &&
		    w->pc[i] < bytes_u64(entry + 8))
			w->function[i] = function;
	}
	return true;
}

/* Return the module of @pc in the table; 0: none. */
static uint64_t module_of(const struct lang_memory *m, const int *pieces, uint32_t nr, uint64_t pc)
{
	const uint32_t each = LANG_PIECE_MAX / RANGE;
	uint32_t at = search_split(nr, i,
				   lang_memory_piece(m, pieces[i / each]) &&
					   bytes_u64(lang_memory_piece(m, pieces[i / each]) +
						     (size_t)RANGE * (i % each)) <= pc);
	const uint8_t *range;

	if (!at || !(range = lang_memory_piece(m, pieces[(at - 1) / each])))
		return 0;
	range += (size_t)RANGE * ((at - 1) % each);
	return pc < bytes_u64(range + 8) ? bytes_u64(range) : 0;
}

/* Read the longest table of modules: one that is made has none yet. Return how many there are. */
static uint32_t read_modules(struct beam_walk *w,
			     int pieces[static MODULES_MAX * RANGE / LANG_PIECE_MAX])
{
	uint64_t table = 0, nr = 0;

	for (uint32_t i = 0; i < RANGES; i++) {
		const uint8_t *one = w->tables + (size_t)i * RANGES_SIZE;

		if (bytes_u64(one + 8) <= nr || bytes_u64(one + 8) > MODULES_MAX)
			continue;
		table = bytes_u64(one);
		nr = bytes_u64(one + 8);
	}
	for (uint64_t at = 0; at < nr * RANGE; at += LANG_PIECE_MAX)
		pieces[at / LANG_PIECE_MAX] =
			lang_memory_want_once(&w->r->memory, table + at,
					      (uint32_t)MIN(nr * RANGE - at,
							    (uint64_t)LANG_PIECE_MAX));
	return nr && lang_memory_fetch(&w->r->memory) ? (uint32_t)nr : 0;
}

/* Queue the head of a module, each once. */
static uint32_t want_module(struct beam_walk *w, uint64_t module)
{
	uint32_t i = 0;

	while (i < w->nr_modules && w->module[i] != module)
		i++;
	if (i == w->nr_modules && i < NEW_MAX) {
		w->module[i] = module;
		w->header[i] = lang_memory_want_once(&w->r->memory, module, 8);
		w->nr_modules++;
	}
	return i;
}

/* Find @pc among the functions of a module. */
static void find_function(struct beam_walk *w, uint32_t frame, uint32_t module)
{
	struct lang_memory *m = &w->r->memory;
	const uint8_t *table = lang_memory_piece(m, w->functions[module]);
	uint32_t nr = table ? m->pieces[w->functions[module]].size / 8 - 1 : 0, at;
	uint64_t pc = w->pc[frame];

	at = search_split(nr, i, bytes_u64(table + 8UL * i) <= pc);
	if (!at || pc >= bytes_u64(table + 8UL * at))
		return;
	w->function[frame] = bytes_u64(table + 8UL * (at - 1));
	w->info[frame] = lang_memory_want(m, w->function[frame], INFO_SIZE);
	*site_of(w->r, w->s->process, pc) = (struct lang_site){
		.process = w->s->process,
		.pc = pc,
		.entry = w->module[module] + w->p->beam.functions + 8UL * (at - 1),
		.function = w->function[frame],
	};
}

/* Look the other addresses up in the tables of the process. */
static bool read_unknown(struct beam_walk *w)
{
	struct lang_memory *m = &w->r->memory;
	int pieces[MODULES_MAX * RANGE / LANG_PIECE_MAX];
	uint32_t of[LANG_FRAMES_MAX], nr = 0;
	bool any = false;

	for (uint32_t i = 0; i < w->nr; i++)
		any |= !w->function[i];
	if (!any)
		return true;
	nr = read_modules(w, pieces);
	if (!nr)
		return false;
	for (uint32_t i = 0; i < w->nr; i++) {
		uint64_t module = w->function[i] ? 0 : module_of(m, pieces, nr, w->pc[i]);

		of[i] = module ? want_module(w, module) : NEW_MAX;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr_modules; i++) {
		const uint8_t *header = lang_memory_piece(m, w->header[i]);
		uint64_t functions = header ? bytes_u64(header) : 0;

		w->functions[i] =
			functions && functions <= FUNCTIONS_MAX
				? lang_memory_want_once(m, w->module[i] + w->p->beam.functions,
							8 * (uint32_t)(functions + 1))
				: -1;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr; i++)
		if (of[i] < w->nr_modules)
			find_function(w, i, of[i]);
	return lang_memory_fetch(m);
}

/* ---- the stack of a process ---- */

/* The word at @addr, as of the sample if the copy of its stack has it. False: it is not there. */
static bool word_at(const struct beam_walk *w, uint64_t addr, uint64_t *out)
{
	uint64_t at = addr - w->s->sp;
	const uint8_t *bytes;

	if (at < w->s->stack_size && w->s->stack_size - at >= 8) {
		lang_chain_need(w->s, at + 8);
		*out = bytes_u64(w->s->stack + at);
		return true;
	}
	bytes = prefetch_frame(w->r, w->t, addr & ~(uint64_t)(PAGE_SIZE - 1), PAGE_SIZE, true);
	if (bytes)
		*out = bytes_u64(bytes + (addr & (PAGE_SIZE - 1)));
	return bytes;
}

static bool is_in_heap(const struct beam_walk *w, uint64_t addr)
{
	return addr > w->heap && addr < w->end && !(addr & 7);
}

static void add_address(struct beam_walk *w, uint64_t pc, uint64_t at)
{
	w->pc[w->nr] = pc;
	w->at[w->nr++] = at;
}

/*
 * Return whether a word of the stack may be a return address. With frame pointers there are such
 * too. @first: it may have any low bits: shared code was called so, and has no frame.
 */
static bool is_address(const struct beam_walk *w, uint64_t word, bool first)
{
	if (word < PAGE_SIZE || word >= 1ULL << 47 || is_in_heap(w, word) || (word & 3 && !first))
		return false;
	/* Of lists and tuples these are in heaps, which hold no code. */
	return !(word & 3) || word - w->shared + CODE_MAX < 2 * CODE_MAX;
}

/* Add the outermost addresses of a deep stack, in place of some in its middle. */
static bool add_outermost(struct beam_walk *w)
{
	uint64_t from = MAX(w->at[w->nr - 1] + 8, w->end - OUTER_MAX), word;
	uint64_t pc[OUTER_FRAMES], at[OUTER_FRAMES];
	uint32_t nr = 0;

	for (uint64_t i = w->end - 8; i >= from && nr < OUTER_FRAMES; i -= 8) {
		if (!word_at(w, i, &word))
			return false;
		if (!is_address(w, word, false))
			continue;
		pc[nr] = word - 1;
		at[nr++] = i;
	}
	w->nr = MIN(w->nr, LANG_FRAMES_MAX - nr);
	w->join = w->nr;
	while (nr--)
		add_address(w, pc[nr], at[nr]);
	return true;
}

/* Add the words from @low on that may be return addresses. */
static enum lang_status add_stack(struct beam_walk *w, uint64_t low)
{
	uint64_t high = MIN(w->end, low + STACK_MAX);

	for (uint64_t at = low; at < high && w->nr < LANG_FRAMES_MAX; at += 8) {
		uint64_t word;

		if (!word_at(w, at, &word))
			return LANG_BAD_CHAIN;
		if (is_address(w, word, at - low < 8UL * FRAGMENT_WORDS))
			add_address(w, word - 1, at);
	}
	w->k->deep = high < w->end || w->nr == LANG_FRAMES_MAX;
	return w->k->deep && w->nr && !add_outermost(w) ? LANG_BAD_CHAIN : LANG_OK;
}

/*
 * The outermost frames of a deep stack are kept if the first one is of a function that is among the
 * last ones in front too: a recursion, of which frames were left out.
 */
static void check_join(struct beam_walk *w)
{
	uint32_t before = w->join, after = w->join, cut;

	while (after < w->nr && !w->function[after])
		after++;
	if (!before || after == w->nr) {
		w->nr = before ? before : w->nr;
		return;
	}
	while (before && w->join - before < JOIN_FRAMES &&
	       w->function[before - 1] != w->function[after])
		before--;
	if (!before || w->function[before - 1] != w->function[after]) {
		w->nr = w->join;
		return;
	}
	cut = after - before;
	for (uint32_t i = after; i < w->nr; i++) {
		w->pc[i - cut] = w->pc[i];
		w->at[i - cut] = w->at[i];
		w->info[i - cut] = w->info[i];
		w->function[i - cut] = w->function[i];
	}
	w->nr -= cut;
}

/* Return whether @pc is in the code that modules share; the end of a process is there. */
static bool is_shared(const struct beam_walk *w, uint64_t pc)
{
	return w->shared - pc - 1 < FRAGMENTS;
}

/* Return the bytes of the frame that an instruction, of at most @size bytes, makes; 0: another one.
 */
static uint32_t frame_made(const uint8_t *code, uint32_t size)
{
	static const uint8_t sub8[] = { 0x48, 0x83, 0xec }, sub32[] = { 0x48, 0x81, 0xec };
	static const uint8_t lea8[] = { 0x48, 0x8d, 0x64, 0x24 };

	if (size >= 4 && !memcmp(code, sub8, sizeof(sub8)))
		return code[3] < 128 ? code[3] : 0;
	if (size >= 7 && !memcmp(code, sub32, sizeof(sub32)))
		return bytes_u32(code + 3);
	return size >= 5 && !memcmp(code, lea8, sizeof(lea8)) && code[4] >= 128 ? 256U - code[4]
										: 0;
}

/*
 * Return whether the frame of the innermost function is known: between the instruction that makes
 * it and the ones that set its words, these are of earlier functions. Shared code that was not
 * called has a frame of its caller.
 */
static bool is_settled(const struct beam_walk *w, const uint8_t *code, uint64_t low)
{
	/* From the begin of the function on. */
	uint64_t passed = w->pc[0] - w->function[0] - INFO_SIZE;
	uint32_t first = 1;

	while (first < w->nr && !w->function[first] && !is_shared(w, w->pc[first]))
		first++;
	if (!w->function[0])
		return first < w->nr && w->at[first] - low < 8UL * FRAGMENT_WORDS;
	if (!code)
		return w->at[0] != w->s->sp;
	for (uint32_t i = CODE_BEFORE - (uint32_t)MIN(passed, (uint64_t)CODE_BEFORE);
	     first < w->nr && i < CODE_BEFORE; i++)
		if (frame_made(code + i, CODE_BEFORE - i) > w->at[first] - low)
			return false;
	return true;
}

/*
 * Modules have jumps to shared code behind their last function: calls lead to them. Then that
 * function does not run.
 */
static void leave_jump(struct beam_walk *w, const uint8_t *call)
{
	uint64_t target;

	if (!call || call[0] != 0xe8 || w->nr < 2 || w->at[1] != w->at[0])
		return;
	target = w->pc[1] + 1 + (uint64_t)(int32_t)bytes_u32(call + 1);
	if (w->pc[0] - target < JUMP_MAX && target - w->function[0] > INFO_SIZE + JUMP_MAX)
		w->function[0] = 0;
}

/* Keep the frames of functions. Return whether each return address is one, to the last. */
static bool keep_functions(struct beam_walk *w)
{
	const struct lang_memory *m = &w->r->memory;
	struct lang_work *k = w->k;
	bool whole = k->deep || (w->at[w->nr - 1] == w->end - 8 && is_shared(w, w->pc[w->nr - 1]));

	for (uint32_t i = 0; i < w->nr; i++) {
		bool exact = !i || !((w->pc[i] + 1) & 3);

		if (!w->function[i] || !lang_memory_piece(m, w->info[i])) {
			whole &= !w->function[i] && (!i || is_shared(w, w->pc[i]) || !exact);
			continue;
		}
		k->address[k->nr] = w->function[i];
		k->function[k->nr] = (uint64_t)w->info[i];
		k->instr[k->nr] = LANG_NO_INSTR;
		k->boundary[k->nr++] = 0;
	}
	return whole;
}

/* ---- the process that a thread runs ---- */

/* Two offsets in its structures, as the id of a thread. */
static uint64_t packed(uint32_t current, uint32_t end)
{
	return end << 16 | current;
}

/* Take over the bounds of the process at @bytes. */
static void set_process(struct beam_walk *w, const uint8_t *bytes)
{
	uint32_t end = (uint32_t)(w->t->id >> 16);

	w->process = bytes;
	w->heap = bytes ? bytes_u64(bytes + end - 8) : 0;
	w->end = bytes ? bytes_u64(bytes + end) : 0;
}

/*
 * Find the stack of the process in a register that C functions may have saved: compilers save rbx
 * next to it, which has the address of the registers. Else it is the highest word into the heap;
 * one lower may be the top of the heap, more are in doubt.
 */
static uint64_t find_saved(struct beam_walk *w, uint64_t registers)
{
	uint64_t top = bytes_u64(w->process + PROCESS_TOP), found = 0, word, below = 0;
	uint32_t others = 0;

	if (is_in_heap(w, w->s->fp) && w->s->fp >= top)
		found = w->s->fp;
	for (uint64_t at = registers - 16; at >= w->s->sp; at -= 8) {
		if (!word_at(w, at, &word))
			return 0;
		if (is_in_heap(w, word) && word >= top && word != found) {
			if (at > w->s->sp && word_at(w, at - 8, &below) &&
			    below - registers < REGISTERS_MAX)
				return word;
			others += found != 0;
			found = MAX(found, word);
		}
	}
	w->k->broken |= others > 1;
	return found;
}

/*
 * Find the stack of the process that C code was called from, by the code behind the call: it is
 * taken back from the process, or from a register. 0: from neither.
 */
static uint64_t find_stack(struct beam_walk *w, const uint8_t *code, uint64_t registers)
{
	static const uint8_t of_process[] = { 0x49, 0x8b, 0x65, PROCESS_STACK };
	static const uint8_t of_register[][3] = { { 0x48, 0x89, 0xec }, { 0x48, 0x8b, 0xe5 } };

	for (uint32_t i = 0; code && i + 4 <= CODE_BEHIND; i++) {
		if (!memcmp(code + i, of_process, sizeof(of_process)))
			return bytes_u64(w->process + PROCESS_STACK);
		if (!memcmp(code + i, of_register[0], 3) || !memcmp(code + i, of_register[1], 3))
			return find_saved(w, registers);
	}
	return 0;
}

/*
 * Begin the walk of a sample in C code that was called from compiled code: the return address is
 * below the registers of the scheduler. Sets *@low, the end of the stack of the process.
 */
static enum lang_status begin_in_c(struct beam_walk *w, const uint8_t *scheduler, uint64_t *low)
{
	struct lang_memory *m = &w->r->memory;
	uint32_t current = (uint32_t)w->t->id & 0xffff;
	uint64_t process = bytes_u64(scheduler + current), registers = bytes_u64(scheduler), called;
	int piece, code;

	if (!process || registers <= w->s->sp || registers - w->s->sp > C_STACK_MAX)
		return LANG_VM;
	piece = lang_memory_want(m, process, PROCESS_SIZE);
	if (!lang_memory_fetch(m) || !lang_memory_piece(m, piece) ||
	    !word_at(w, registers - 8, &called))
		return LANG_BAD_CHAIN;
	code = lang_memory_want(m, called, CODE_BEHIND);
	if (!lang_memory_fetch(m))
		return LANG_BAD_CHAIN;
	set_process(w, lang_memory_piece(m, piece));
	*low = find_stack(w, lang_memory_piece(m, code), registers);
	/* The scheduler looks for a process to run: no code behind the call returns to one, or it
	 * has ended. */
	if ((!*low || *low == w->end) && is_shared(w, called - 1))
		return LANG_VM;
	if (!is_in_heap(w, *low))
		return LANG_BAD_CHAIN;
	add_address(w, called - 1, registers);
	w->k->again[0] = (struct lang_ahead){ process + PROCESS_TOP, 16 };
	w->k->first_read[0] = w->process + PROCESS_TOP;
	w->k->again[1] = (struct lang_ahead){ w->t->state + current, 8 };
	w->k->first_read[1] = scheduler + current;
	return LANG_OK;
}

static enum lang_status chain(struct lang_reader *r, const struct lang_process *p,
			      const struct lang_sample *s, struct lang_thread *t)
{
	struct beam_walk w = { .r = r, .k = &r->work, .t = t, .p = p, .s = s };
	struct lang_memory *m = &r->memory;
	int scheduler, tables, process = -1, code = -1, call = -1;
	enum lang_status none;
	uint64_t low = s->sp;

	w.shared = p->code_type;
	w.k->settled = w.k->broken = false;
	prefetch_want(r, t, s);
	scheduler = lang_memory_want(m, t->state, SCHEDULER_SIZE);
	tables = lang_memory_want(m, p->runtime, RANGES * RANGES_SIZE);
	if (lang_memory_is_pointer(s->r13))
		process = lang_memory_want(m, s->r13, PROCESS_SIZE);
	if (!lang_memory_fetch(m) || !lang_memory_piece(m, scheduler) ||
	    !lang_memory_piece(m, tables))
		return LANG_NO_THREAD;
	w.tables = lang_memory_piece(m, tables);
	set_process(&w, lang_memory_piece(m, process));
	if (is_in_heap(&w, low)) {
		add_address(&w, s->pc, low);
		code = lang_memory_want(m, s->pc - CODE_BEFORE, CODE_BEFORE);
		lang_chain_need(s, 8);
		if (s->stack_size >= 8)
			call = lang_memory_want(m, bytes_u64(s->stack) - CALL_SIZE, CALL_SIZE);
	} else {
		none = begin_in_c(&w, lang_memory_piece(m, scheduler), &low);
		if (none != LANG_OK)
			return none;
	}
	none = add_stack(&w, low);
	if (none != LANG_OK)
		return none;
	if (!read_known(&w) || !read_unknown(&w))
		return LANG_BAD_CHAIN;
	check_join(&w);
	leave_jump(&w, lang_memory_piece(m, call));
	w.k->broken |= !keep_functions(&w) || !is_settled(&w, lang_memory_piece(m, code), low);
	if (!w.k->nr)
		return LANG_NO_FRAMES;
	/* Odd: the sample is in code of the language. */
	w.k->boundary[w.k->nr - 1] = w.at[0] == s->sp ? s->sp + 1 : w.at[0];
	w.k->settled = w.end - s->sp <= s->stack_size;
	return LANG_OK;
}

/* ---- names ---- */

/* The atoms of the name of a function. */
struct beam_names {
	uint32_t atom[2]; /* index */
	int piece[2];
};

static const uint8_t *atom_text(const struct lang_memory *m, const struct beam_names *n, int which,
				uint32_t *size)
{
	const uint8_t *text = lang_memory_piece(m, n->piece[which]);

	*size = text ? m->pieces[n->piece[which]].size : 0;
	return text;
}

/* Put the name together: "lists:map/2", and "Enum.map/2" for a module of Elixir. */
static void put_name(const struct lang_memory *m, struct lang_work *k, const struct beam_names *n,
		     uint32_t i)
{
	static const char elixir[] = "Elixir.";
	const uint8_t *info = lang_memory_piece(m, k->script_functions_of[i].header);
	char *out = (char *)k->ruby_lines + (size_t)NAME_MAX * i;
	uint32_t size[2], skip = 0;
	const uint8_t *text[2];

	_Static_assert(sizeof(k->ruby_lines) >= NAME_MAX * LANG_FRAMES_MAX, "room");
	for (int which = 0; which < 2; which++)
		text[which] = atom_text(m, n, which, &size[which]);
	k->functions[i].file.fixed = "?";
	k->functions[i].name.fixed = "<unknown>";
	if (!info || !text[0] || !text[1])
		return;
	if (size[0] > sizeof(elixir) - 1 && !memcmp(text[0], elixir, sizeof(elixir) - 1))
		skip = sizeof(elixir) - 1;
	snprintf(out, NAME_MAX, "%.*s%c%.*s/%u", (int)(size[0] - skip),
		 (const char *)text[0] + skip, skip ? '.' : ':', (int)size[1],
		 (const char *)text[1], bytes_u32(info + INFO_MODULE + 16));
	k->functions[i].name.fixed = out;
}

/* Queue the part of an atom for a step: its segment, its place in that, itself, its text. */
static int want_atom(struct lang_memory *m, const struct lang_process *p, int step, uint32_t atom,
		     int piece)
{
	const uint8_t *bytes = step ? lang_memory_piece(m, piece) : NULL;
	const uint32_t in_segment = atom & ((1U << SEGMENT_BITS) - 1);
	uint32_t size;

	if (!step)
		return lang_memory_want_once(m, p->beam.atoms + 8UL * (atom >> SEGMENT_BITS), 8);
	if (!bytes)
		return -1;
	if (step == 1)
		return lang_memory_want_once(m, bytes_u64(bytes) + 8UL * in_segment, 8);
	if (step == 2)
		return lang_memory_want_once(m, bytes_u64(bytes), ATOM_SIZE);
	size = bytes_u32(bytes + ATOM_LENGTH) & 0x7fff;
	return size ? lang_memory_want_once(m, bytes_u64(bytes + ATOM_NAME) + p->beam.atom_text,
					    MIN(size, NAME_MAX))
		    : -1;
}

/* Read the names of new functions; the rest has none until the next sample. */
static bool read_names(struct lang_memory *m, const struct lang_process *p, struct lang_work *k)
{
	struct beam_names names[NEW_MAX];
	uint32_t fresh[NEW_MAX], nr = 0;

	for (uint32_t i = 0; i < k->nr_codes && nr < NEW_MAX; i++) {
		const uint8_t *info = lang_memory_piece(m, k->script_functions_of[i].header);

		if (k->script_functions_of[i].id != CODE_NONE || !info)
			continue;
		for (int which = 0; which < 2; which++)
			names[nr].atom[which] =
				bytes_u32(info + INFO_MODULE + 8UL * (unsigned)which) >> ATOM_BITS;
		fresh[nr++] = i;
	}
	for (int step = 0; step < 4; step++) {
		for (uint32_t i = 0; i < 2 * nr; i++) {
			struct beam_names *n = &names[i / 2];

			n->piece[i % 2] =
				want_atom(m, p, step, n->atom[i % 2], step ? n->piece[i % 2] : -1);
		}
		if (!lang_memory_fetch(m))
			return false;
	}
	for (uint32_t i = 0; i < nr; i++)
		put_name(m, k, &names[i], fresh[i]);
	return true;
}

static enum lang_status codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;

	functions_number(r, process);
	for (uint32_t i = 0; i < k->nr; i++)
		k->script_functions_of[k->code[i]].header = (int)k->function[i];
	for (uint32_t i = 0; i < k->nr_codes; i++) {
		const uint8_t *info = lang_memory_piece(m, k->script_functions_of[i].header);

		k->script_functions_of[i].stamp = hash_u64(bytes_u64(info + INFO_MODULE) << 32 ^
							   bytes_u64(info + INFO_MODULE + 8) << 8 ^
							   bytes_u64(info + INFO_MODULE + 16));
		k->functions[i].file.fixed = "?";
		k->functions[i].name.fixed = "<unknown>";
	}
	if (functions_find(r, process) && !read_names(m, p, k))
		return LANG_BAD_CHAIN;
	return functions_add(r, p, process, NULL);
}

/* ---- threads: which scheduler one is ---- */

#define CANDIDATES   256U
#define SEARCHED     8192U /* bytes of the stack */
#define PROCESS_MOST 1024U

/*
 * Return where a process keeps the end of its heap, which its stack ends at: the end is behind the
 * begin, and the outermost return address is that by which processes end. 0: it is no process.
 */
static uint32_t find_end(struct lang_memory *m, const struct lang_process *p, const uint8_t *bytes)
{
	uint64_t top = bytes_u64(bytes + PROCESS_TOP), low = bytes_u64(bytes + PROCESS_STACK);

	if (!lang_memory_is_pointer(top) || !lang_memory_is_pointer(low) || low < top)
		return 0;
	for (uint32_t at = PROCESS_STACK + 16; at + 8 <= PROCESS_SIZE; at += 8) {
		uint64_t heap = bytes_u64(bytes + at - 8), end = bytes_u64(bytes + at);
		const uint8_t *last;

		if (!lang_memory_is_pointer(heap) || heap > top || end <= low ||
		    end - heap > 1ULL << 40 || !lang_memory_is_pointer(end))
			continue;
		last = lang_memory_read(m, end - 8, 8);
		if (last && p->code_type - bytes_u64(last) < FRAGMENTS)
			return at;
	}
	return 0;
}

/*
 * Find the scheduler that runs the process at @addr, which has its address: it has that of the
 * process and, on the stack of its thread, of its registers.
 */
static bool find_scheduler(struct lang_reader *r, const struct lang_sample *s, uint64_t addr,
			   uint32_t end)
{
	struct lang_memory *m = &r->memory;
	const uint8_t *bytes = lang_memory_read(m, addr, PROCESS_MOST), *one;
	uint64_t at[PROCESS_MOST / 8];
	int piece[PROCESS_MOST / 8];
	uint32_t nr = 0;

	for (uint32_t i = 0; bytes && i < PROCESS_MOST; i += 8) {
		uint64_t word = bytes_u64(bytes + i);

		if (!lang_memory_is_pointer(word) || word & 63)
			continue;
		at[nr] = word;
		piece[nr++] = lang_memory_want_once(m, word, SCHEDULER_SIZE);
	}
	if (!nr || !lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		one = lang_memory_piece(m, piece[i]);
		if (!one || !lang_memory_is_pointer(bytes_u64(one)) || bytes_u64(one) & 63)
			continue;
		for (uint32_t k = 8; k < SCHEDULER_SIZE; k += 8) {
			if (bytes_u64(one + k) != addr)
				continue;
			if (s->r13 != addr &&
			    (bytes_u64(one) <= s->sp || bytes_u64(one) - s->sp > C_STACK_MAX))
				continue;
			lang_chain_keep_thread(r, s->process, s->tid, at[i], packed(k, end));
			return true;
		}
	}
	return false;
}

/* Find the process that a thread runs: in r13, which C functions may have saved on the stack. */
static void find_thread(struct lang_reader *r, const struct lang_process *p,
			const struct lang_sample *s)
{
	struct lang_memory *m = &r->memory;
	uint64_t at[CANDIDATES];
	int piece[CANDIDATES];
	uint32_t nr = 0;

	lang_chain_need(s, SEARCHED);
	for (uint64_t i = 0; i <= MIN(s->stack_size, (uint64_t)SEARCHED) / 8 && nr < CANDIDATES;
	     i++) {
		uint64_t word = i ? bytes_u64(s->stack + 8 * (i - 1)) : s->r13;

		/* An address on the stack is none of a process. */
		if (!lang_memory_is_pointer(word) || word - s->sp < C_STACK_MAX ||
		    word >= 1ULL << 47)
			continue;
		at[nr] = word;
		piece[nr++] = lang_memory_want_once(m, word, PROCESS_SIZE);
	}
	if (!lang_memory_fetch(m))
		return;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *bytes = lang_memory_piece(m, piece[i]);
		uint32_t end = bytes ? find_end(m, p, bytes) : 0;

		if (end && find_scheduler(r, s, at[i], end))
			return;
	}
}

/* ---- its files and processes ---- */

#define RODATA_MAX   (32U << 20)
#define DATA_MAX     (1U << 20)
#define VERSION_TEXT "Erlang/OTP "
#define PROVEN	     4U /* modules that are looked at */
#define HEADER_MAX   256U
#define CODE_LOOKED  4096U
#define SHARED_MIN   512U /* bytes: less is no gap between modules */
#define GAPS_MAX     64U

static const uint8_t compared[] = { 25, 27, 29 };

/* The version is in its banner; tables are in its data, and their symbols may be left out. */
static int on_file(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	const char *text;
	Elf64_Shdr s;
	void *bytes;

	/* The part that is zero in the file. */
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *h = &f->phdrs[i];

		if (h->p_type == PT_LOAD && h->p_flags & PF_W && h->p_memsz > h->p_filesz)
			out->main[0] = (struct lang_range){ (h->p_vaddr + h->p_filesz) & ~7ULL,
							    h->p_vaddr + h->p_memsz };
	}
	if (!elffile_constants(f, 0, &s) || !out->main[0].end)
		return -ENOENT;
	out->nr_main = 1;
	for (uint32_t i = 0; !out->version && elffile_constants(f, i, &s); i++) {
		if (s.sh_size > RODATA_MAX || elffile_read_alloc(f, s.sh_offset, s.sh_size, &bytes))
			continue;
		text = memmem(bytes, s.sh_size, VERSION_TEXT, sizeof(VERSION_TEXT) - 1);
		/* The bytes end with a NUL. */
		if (text)
			out->version =
				(uint32_t)(strtoul(text + sizeof(VERSION_TEXT) - 1, NULL, 10) & 255)
				<< 24;
		free(bytes);
	}
	return 1;
}

/* Return whether the table of modules at @addr is sorted, and set *@first. */
static bool is_table(pid_t pid, const uint8_t *table, uint64_t first[static PROVEN])
{
	uint64_t addr = bytes_u64(table), nr = bytes_u64(table + 8), room = bytes_u64(table + 16);
	uint64_t middle = bytes_u64(table + 24);
	uint8_t range[RANGE * PROVEN];

	if (!lang_memory_is_pointer(addr) || nr < PROVEN || nr > MODULES_MAX || room < nr ||
	    room > 2UL * MODULES_MAX || middle - addr >= nr * RANGE || (middle - addr) % RANGE ||
	    !lang_memory_copy(pid, addr, range, sizeof(range)))
		return false;
	for (uint32_t i = 0; i < PROVEN; i++) {
		first[i] = bytes_u64(range + (size_t)RANGE * i);
		if (!lang_memory_is_pointer(first[i]) ||
		    bytes_u64(range + (size_t)RANGE * i + 8) <= first[i] ||
		    (i && first[i] < bytes_u64(range + (size_t)RANGE * (i - 1) + 8)))
			return false;
	}
	return true;
}

/* Return whether the code of @module has a call of code between @low and it. */
static bool calls_before(pid_t pid, uint64_t module, uint64_t low)
{
	uint8_t code[CODE_LOOKED];
	uint64_t next = module + CALL_SIZE;

	if (!lang_memory_copy(pid, module, code, sizeof(code)))
		return false;
	for (uint32_t i = 0; i + CALL_SIZE <= sizeof(code); i++) {
		uint64_t target = next + i + (uint64_t)(int64_t)(int32_t)bytes_u32(code + i + 1);

		if (code[i] == 0xe8 && target >= low && target < module)
			return true;
	}
	return false;
}

/*
 * Return the module behind the code that modules share, which its code calls: mostly the lowest
 * one, @first. Memory for more modules may be below.
 */
static uint64_t find_shared(pid_t pid, const uint8_t *table, uint64_t first)
{
	uint64_t addr = bytes_u64(table), end = 0, nr = bytes_u64(table + 8), looked = 0;
	uint8_t range[RANGE * PROVEN];

	for (uint64_t i = 0; i < nr && looked < GAPS_MAX; i++) {
		uint64_t module;

		if (i % PROVEN == 0 && !lang_memory_copy(pid, addr + i * RANGE, range,
							 RANGE * MIN(nr - i, (uint64_t)PROVEN)))
			break;
		module = bytes_u64(range + i % PROVEN * RANGE);
		if (module - end >= SHARED_MIN && ++looked &&
		    calls_before(pid, module, MAX(end, module - FRAGMENTS)))
			return module;
		end = bytes_u64(range + i % PROVEN * RANGE + 8);
	}
	return first;
}

/* Return where a module keeps its functions: addresses that grow, each of equal modules. 0: none.
 */
static uint32_t find_functions(pid_t pid, uint64_t module)
{
	uint8_t header[HEADER_MAX], info[2][INFO_SIZE];

	if (!lang_memory_copy(pid, module, header, sizeof(header)))
		return 0;
	for (uint32_t at = 64; at + 16 <= HEADER_MAX; at += 8) {
		uint64_t one = bytes_u64(header + at), next = bytes_u64(header + at + 8), last;

		last = lang_memory_word(pid, module + at + 8 * bytes_u64(header));
		if (bytes_u64(header) - 2 >= FUNCTIONS_MAX || one <= module || next <= one ||
		    last < next || one - module > CODE_MAX || last - module > CODE_MAX ||
		    !lang_memory_copy(pid, one, info[0], INFO_SIZE) ||
		    !lang_memory_copy(pid, next, info[1], INFO_SIZE))
			continue;
		if ((info[0][INFO_MODULE] & ((1U << ATOM_BITS) - 1)) == ATOM_TAG &&
		    (info[0][INFO_MODULE + 8] & ((1U << ATOM_BITS) - 1)) == ATOM_TAG &&
		    bytes_u64(info[0] + INFO_MODULE) == bytes_u64(info[1] + INFO_MODULE) &&
		    bytes_u64(info[0] + INFO_MODULE + 16) < 256)
			return at;
	}
	return 0;
}

/* Return whether the first two atoms of the table at @addr are the ones that they always are. */
static bool has_atoms(struct lang_process *p, pid_t pid, uint64_t addr)
{
	static const char *const texts[] = { "false", "true" };
	uint64_t segment = lang_memory_word(pid, addr);

	for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++) {
		uint32_t size = (uint32_t)strlen(texts[i]);
		uint64_t atom = segment ? lang_memory_word(pid, segment + 8UL * i) : 0, name;
		uint8_t bytes[ATOM_SIZE];
		char text[8];

		if (!lang_memory_is_pointer(atom) ||
		    !lang_memory_copy(pid, atom, bytes, sizeof(bytes)) ||
		    (bytes_u32(bytes + ATOM_LENGTH) & 0x7fff) != size)
			return false;
		name = bytes_u64(bytes + ATOM_NAME);
		/* A pointer to the text; since 28 a binary, behind two words. */
		p->beam.atom_text = 0;
		if (lang_memory_copy(pid, name, text, size) && !memcmp(text, texts[i], size))
			continue;
		p->beam.atom_text = 14;
		if ((name & 3) != 2 || !lang_memory_copy(pid, name + 14, text, size) ||
		    memcmp(text, texts[i], size) != 0)
			return false;
	}
	p->beam.atoms = addr;
	return true;
}

/* Find the tables of modules and of atoms in the data of the process. */
static bool find_tables(struct lang_process *p, pid_t pid, const uint8_t *data, uint64_t size)
{
	uint64_t first[PROVEN];

	p->runtime = p->beam.atoms = 0;
	for (uint64_t at = 0; at + RANGES * RANGES_SIZE <= size; at += 8) {
		uint64_t word = bytes_u64(data + at);

		if (!lang_memory_is_pointer(word))
			continue;
		if (!p->runtime && is_table(pid, data + at, first)) {
			p->beam.functions = (uint16_t)find_functions(pid, first[0]);
			for (uint32_t i = 1; i < PROVEN && p->beam.functions; i++)
				if (find_functions(pid, first[i]) != p->beam.functions)
					p->beam.functions = 0;
			if (p->beam.functions) {
				p->runtime = p->main[0].start + at;
				p->code_type = find_shared(pid, data + at, first[0]);
			}
		}
		if (!p->beam.atoms)
			has_atoms(p, pid, word);
	}
	return p->runtime && p->beam.atoms;
}

static bool detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	uint64_t size = p->main[0].end - p->main[0].start;
	uint8_t *data;
	bool found;

	if (d->machine != EM_X86_64 || !d->nr_main || size > DATA_MAX) {
		p->reason = "not supported on this kind of CPU (x86-64 is)";
		return false;
	}
	p->untried |= !memchr(compared, (int)(p->version >> 24), sizeof(compared));
	data = malloc(size);
	if (!data) {
		p->reason = "out of memory";
		return true;
	}
	errno = 0;
	found = lang_memory_copy(pid, p->main[0].start, data, size);
	if (!found && (errno == EPERM || errno == EACCES))
		lang_memory_refused(p);
	found = found && find_tables(p, pid, data, size);
	free(data);
	p->nr_main = 0;
	if (!found && !p->reason)
		p->reason = "a build without its compiler, or with other tables, or one that "
			    "begins";
	return !found && !p->refused;
}

const struct language language_beam = {
	.name = "erlang",
	.title = "Erlang/OTP",
	.versions = "OTP 25, 27, 29 with its compiler: functions; others: untested, guessed",
	.letter = 'E',
	.program = "beam.smp",
	.library = "beam.jit.smp",
	.shown = "enif_alloc",
	.on_file = on_file,
	.detect = detect,
	.stack = chain,
	.functions = codes,
	.find_thread = find_thread,
	.part_of_stack = true,
};

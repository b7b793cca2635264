// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Perl 5.36 to 5.44 with threads: the contexts of subs on all stacks of the interpreter.
 *
 * Runs on: a reader. A sub without an op to return to was called from C, so
 * that it ends a Perl_runops_standard(). Three more kinds of loops are known: a block of sort(),
 * and code in a regular expression, have one without a sub; eval {} in code that C calls has one
 * that goes on with the frames of another; sort() and others leave the context of their code there
 * between two calls. An interpreter that runs on a thread has its address on
 * the C stack of that: the first one of the process is known, those of other threads are found
 * among the words there. Offsets are from the headers, for 64-bit CPUs.
 */
#include "symbols/script/internal.h"

#include <string.h>

#include "symbols/base/base.h"

#define STACKS_MAX   32
#define CONTEXTS_MAX 2048

/* Outermost contexts of a deep stack that are kept. */
#define OUTER_CONTEXTS 64

/* Lines of the innermost frames are read; others have none. */
#define LINES_MAX 256

#define FILE_MAX	 256U
#define PAGE		 4096U
#define WORDS_MAX	 128U /* of the C stack that may be interpreters */
#define TWICE_MAX	 16U
#define C_STACK_MAX	 (16ULL << 20)
#define STACK_MAX	 (1ULL << 32) /* bytes of values */
#define INTERP_SP	 0
#define INTERP_OP	 8
#define INTERP_BASE	 24
#define INTERP_END	 32
#define INTERP_CURCOP	 208
#define INTERP_STACKINFO 224
#define INTERP_ENVS	 704 /* the list of jump buffers begins behind it */
#define INTERP_ENVS_SIZE 160U
#define ENVS_MAX	 16U /* jump buffers */
#define STACK_CONTEXTS	 8
#define STACK_PREVIOUS	 16
#define STACK_TOP	 32
#define STACK_TYPE	 44
#define STACK_SIZE	 48
#define TYPE_SORT	 3
#define TYPE_MULTICALL	 10
#define TYPE_LAST	 16 /* and some more */
#define PROOF_TRIES	 4
#define LINE_LAST	 (1U << 24)
#define CONTEXTS_LAST	 (1 << 24)
#define CONTEXT_SIZE	 104
#define CONTEXT_OLDCOP	 16
#define CONTEXT_RETOP	 48
#define CONTEXT_CV	 72
#define CONTEXT_TOP_ENV	 96
#define CONTEXT_MASK	 15
#define CONTEXT_NULL	 0
#define CONTEXT_SUB	 9
#define CONTEXT_FAKE	 0x80 /* of a sub: code in a regular expression of the sub that runs */
#define CONTEXT_EVAL	 11
#define COP_LINE	 36
#define COP_FILE	 48
#define COP_SIZE	 56
#define SV_FLAGS	 12
#define SV_SIZE		 16
#define TYPE_MASK	 0xffU
#define TYPE_CV		 13U
#define FLAG_OOK	 0x02000000U
#define CV_STASH	 32
#define CV_GV		 56
#define CV_FILE		 64
#define CV_FLAGS	 92
#define CV_SIZE		 96
#define CV_NAMED	 0x8000U
#define GV_HEK		 32
#define GV_STASH	 40
#define GV_SIZE		 48
#define HV_NAME		 32
#define HV_NAMES	 60 /* not 0: the name is an array of names */
#define HV_SIZE		 64
#define HEK_SIZE	 4
#define HEK_TEXT	 8

struct walk {
	struct lang_reader *r;
	struct lang_memory *m;
	struct lang_work *k;
	struct lang_thread *t;
	uint64_t cop;	 /* the statement that runs in the frame in hand */
	bool after_base; /* the context inside this one is of a sub that C called */
	bool top_base;	 /* so is the innermost one */
	bool called;	 /* by C, as at least one is */
	bool cut;	 /* frames in the middle were left out */
	uint32_t room;	 /* for frames in front of these */
	uint32_t nr_caught;
	uint64_t caught[ENVS_MAX]; /* by calls from C: what catches in front of them */
};

/* Return whether @word is on the copy of the C stack. */
static bool is_on_stack(const struct lang_sample *s, uint64_t word)
{
	for (uint64_t at = 0; at + 8 <= s->stack_size; at += 8)
		if (bytes_u64(s->stack + at) == word)
			return true;
	return false;
}

/* Return whether the copied stack has a place in the loop. */
static bool runs_loop(const struct lang_process *p, const struct lang_sample *s)
{
	bool runs = lang_is_eval(p, s->pc);

	for (uint64_t at = 0; at + 8 <= s->stack_size && !runs; at += 8)
		runs = lang_is_eval(p, bytes_u64(s->stack + at));
	return runs;
}

/* Return whether @head begins an interpreter: its stack of values has bounds and an end in them. */
static bool is_interpreter(const uint8_t *head)
{
	uint64_t sp = head ? bytes_u64(head + INTERP_SP) : 0;
	uint64_t base = head ? bytes_u64(head + INTERP_BASE) : 0;

	return lang_memory_is_pointer(base) && !((sp | base) & 7) && sp >= base &&
	       bytes_u64(head + INTERP_END) >= sp &&
	       bytes_u64(head + INTERP_END) - base <= STACK_MAX &&
	       lang_memory_is_pointer(bytes_u64(head + INTERP_CURCOP)) &&
	       lang_memory_is_pointer(bytes_u64(head + INTERP_STACKINFO));
}

/*
 * Return the words that may be interpreters: each function of Perl has its interpreter as an
 * argument, so that it is on the stack more than once.
 */
static uint32_t find_words(const struct lang_sample *s, uint64_t twice[static TWICE_MAX])
{
	uint64_t words[WORDS_MAX];
	uint8_t times[WORDS_MAX];
	uint32_t nr = 0, nr_twice = 0;

	for (uint64_t at = 0; at + 8 <= s->stack_size && nr_twice < TWICE_MAX; at += 8) {
		uint64_t word = bytes_u64(s->stack + at);
		uint32_t i = 0;

		if (!lang_memory_is_pointer(word) || word & 7 || word >> 47 || word < PAGE ||
		    word - s->sp < C_STACK_MAX)
			continue;
		while (i < nr && words[i] != word)
			i++;
		if (i == WORDS_MAX)
			continue;
		times[i] = (uint8_t)(i < nr ? MIN(times[i] + 1, 3) : 1);
		words[i] = word;
		nr += i == nr;
		if (times[i] == 2)
			twice[nr_twice++] = word;
	}
	return nr_twice;
}

/* Return the interpreter that a thread other than the first runs; 0: none is found. */
static uint64_t find_interpreter(struct walk *w, const struct lang_process *p,
				 const struct lang_sample *s)
{
	const uint32_t size = INTERP_STACKINFO + 8;
	uint64_t words[TWICE_MAX], found = 0;
	int pieces[TWICE_MAX];
	uint32_t nr;

	if (!runs_loop(p, s))
		return 0;
	if (lang_memory_is_pointer(w->t->state) && is_on_stack(s, w->t->state) &&
	    is_interpreter(lang_memory_read(w->m, w->t->state, size)))
		return w->t->state;
	nr = find_words(s, words);
	for (uint32_t i = 0; i < nr; i++)
		pieces[i] = lang_memory_want_once(w->m, words[i], size);
	lang_memory_fetch(w->m);
	for (uint32_t i = 0; i < nr; i++) {
		if (!is_interpreter(lang_memory_piece(w->m, pieces[i])))
			continue;
		/* Of two the nearer one runs, perhaps. */
		w->k->broken |= found != 0;
		found = found ? found : words[i];
	}
	w->t->state = w->k->broken ? 0 : found;
	return found;
}

static const uint8_t *bytes_at(struct walk *w, uint64_t addr, uint32_t size)
{
	return lang_memory_is_pointer(addr) ? prefetch_frame(w->r, w->t, addr, size, true) : NULL;
}

static void add_frame(struct walk *w, uint64_t code, bool boundary)
{
	struct lang_work *k = w->k;

	k->address[k->nr] = code;
	k->instr[k->nr] = w->cop;
	k->boundary[k->nr++] = boundary;
	w->called |= boundary;
}

/* End a loop behind the first @nr frames. */
static void end_loop(struct walk *w, uint32_t nr)
{
	struct lang_work *k = w->k;

	w->called = true;
	if (!nr)
		k->loops.nr = (uint8_t)MIN(k->loops.nr + 1U, LANG_LOOPS_MAX);
	else
		k->boundary[nr - 1] = MIN(k->boundary[nr - 1] + 1, LANG_LOOPS_MAX);
}

/* Take context @c, as of a sub, or of code that C runs. False: it is none. */
static bool take_context(struct walk *w, const uint8_t *c)
{
	const unsigned int type = c[0] & CONTEXT_MASK;
	uint64_t cv = bytes_u64(c + CONTEXT_CV);

	/* A call from C that catches has a context of an eval in front of the sub's. */
	if (w->after_base && type == CONTEXT_EVAL && !bytes_u64(c + CONTEXT_RETOP) &&
	    w->nr_caught < ENVS_MAX)
		w->caught[w->nr_caught++] = bytes_u64(c + CONTEXT_TOP_ENV);
	if (type == CONTEXT_NULL || (type == CONTEXT_SUB && c[0] & CONTEXT_FAKE)) {
		/* A sub that is called last in a block has no op to return to either. */
		if (!w->after_base)
			end_loop(w, w->k->nr);
		w->after_base = false;
		return true;
	}
	w->after_base = false;
	/* Being pushed, or popped. */
	if (type != CONTEXT_SUB || !cv)
		return true;
	if (!lang_memory_is_pointer(cv))
		return false;
	w->k->deep = w->k->nr == LANG_FRAMES_MAX - 1;
	if (w->k->deep)
		return true;
	w->after_base = !bytes_u64(c + CONTEXT_RETOP);
	add_frame(w, cv, w->after_base);
	w->cop = bytes_u64(c + CONTEXT_OLDCOP);
	return true;
}

/*
 * Return how many of the outermost contexts are to be read: @left, or fewer if there is no room.
 */
static int32_t leave_out(struct walk *w, int32_t left, int32_t last)
{
	if (left <= OUTER_CONTEXTS || (left > last && w->k->nr < w->room))
		return left;
	w->room = LANG_FRAMES_MAX;
	w->cut = true;
	w->cop = 0;
	return OUTER_CONTEXTS;
}

/* Add the subs of the stack of contexts @si, innermost first. */
static enum lang_status add_stack(struct walk *w, const uint8_t *si)
{
	uint64_t base = bytes_u64(si + STACK_CONTEXTS);
	int32_t top = (int32_t)bytes_u32(si + STACK_TOP);
	const int32_t step = LANG_PIECE_MAX / CONTEXT_SIZE;
	int32_t last, begin;

	if (top < -1 || top == INT32_MAX)
		return LANG_BAD_CHAIN;
	/* Pieces begin at the same places whatever the depth is: they were read ahead then. */
	last = MAX(top + 1 - CONTEXTS_MAX, 0) / step * step;
	for (int32_t end = top + 1; end > 0; end = begin) {
		const uint8_t *contexts;
		uint32_t size;

		end = leave_out(w, end, last);
		begin = (end - 1) / step * step;
		size = (uint32_t)(end - begin) * CONTEXT_SIZE;
		contexts = bytes_at(w, base + (uint64_t)begin * CONTEXT_SIZE, size);
		if (!contexts)
			return LANG_BAD_CHAIN;
		for (const uint8_t *c = contexts + size; c > contexts;) {
			c -= CONTEXT_SIZE;
			if (!take_context(w, c))
				return LANG_BAD_CHAIN;
			if (w->k->deep)
				return LANG_OK;
			if (end == top + 1 && c == contexts + size - CONTEXT_SIZE)
				w->top_base = w->after_base;
			if (w->k->nr == w->room) {
				begin += (int32_t)((c - contexts) / CONTEXT_SIZE);
				break;
			}
		}
	}
	w->after_base = false;
	return LANG_OK;
}

/*
 * Set whether the innermost group may have no loop, of stack of contexts number @i, which has the
 * frames from @first on. If two may lack it, it is not known which one does.
 */
static void set_lack(struct walk *w, int i, const uint8_t *si, uint32_t first)
{
	struct lang_work *k = w->k;
	uint32_t type = bytes_u32(si + STACK_TYPE);
	bool again = type == TYPE_SORT || type == TYPE_MULTICALL;

	if (i) {
		if (again && k->nr <= first + 1)
			k->loops.lack = LANG_LACK_NONE;
		return;
	}
	if (again && k->nr + k->loops.nr == 1)
		k->loops.lack = LANG_LACK_IDLE;
	else if (w->top_base && !k->loops.nr)
		k->loops.lack = LANG_LACK_BEGUN;
}

/* Read a word of the C stack, or another one. */
static uint64_t word_at(struct walk *w, const struct lang_sample *s, uint64_t addr)
{
	const uint8_t *bytes;

	if (!(addr & 7) && addr >= s->sp && s->stack_size >= 8 && addr - s->sp <= s->stack_size - 8)
		return bytes_u64(s->stack + (addr - s->sp));
	bytes = bytes_at(w, addr, 8);
	return bytes ? bytes_u64(bytes) : 0;
}

/* Read the jump buffers from @env on. Returns their number if the last one is @last, else 0. */
static uint32_t read_envs(struct walk *w, const struct lang_sample *s, uint64_t env, uint64_t last,
			  uint64_t envs[static ENVS_MAX + 1])
{
	uint32_t nr = 0;

	for (; nr < ENVS_MAX && env && env != last; env = word_at(w, s, env))
		envs[nr++] = env;
	envs[nr] = last;
	return env == last ? nr : 0;
}

/*
 * Find the loops that eval {} began: in code that C calls, perl has a jump buffer for it on the C
 * stack, and goes on in that loop after the eval. Other buffers are of calls from C that catch, by
 * their contexts, and of functions that are no callers of a loop, or known. The list begins at a
 * place that differs by version, in front of its last buffer, which has none behind it.
 */
static void find_inner(struct walk *w, const struct lang_sample *s, uint64_t interp)
{
	const uint8_t *bytes = bytes_at(w, interp + INTERP_ENVS, INTERP_ENVS_SIZE);
	uint64_t words[INTERP_ENVS_SIZE / 8], envs[ENVS_MAX + 1];
	struct lang_work *k = w->k;
	uint32_t nr = 0, nr_inner = 0;

	if (!bytes)
		return;
	memcpy(words, bytes, sizeof(words));
	for (uint32_t i = 0; i + 1 < ARRAY_SIZE(words) && !nr; i++)
		if (!words[i + 1] && words[i] - s->sp < s->stack_size)
			nr = read_envs(w, s, words[i], interp + INTERP_ENVS + 8UL * (i + 1), envs);
	for (uint32_t i = 0; i < nr && nr_inner < LANG_INNER_MAX; i++) {
		bool caught = false;

		for (uint32_t j = 0; j < w->nr_caught; j++)
			caught |= w->caught[j] == envs[i + 1];
		if (!caught)
			k->loops.inner[nr_inner++] = envs[i];
	}
}

/* C calls a sub by an operation on its stack, the first one of the loop. */
static void find_call(struct walk *w, const struct lang_sample *s, uint64_t interp)
{
	uint64_t op = word_at(w, s, interp + INTERP_OP);

	if (op - s->sp < s->stack_size)
		w->k->loops.call = op;
}

static enum lang_status chain(struct lang_reader *r, const struct lang_process *p,
			      const struct lang_sample *s, struct lang_thread *t)
{
	struct walk w = { .r = r, .m = &r->memory, .k = &r->work, .t = t };
	int current = lang_memory_want(w.m, p->runtime, 8);
	const uint8_t *bytes;
	uint64_t interp, si;

	w.k->broken = false;
	w.k->settled = true;
	w.room = LANG_FRAMES_MAX - 1 - OUTER_CONTEXTS;
	prefetch_want(r, t, s);
	if (!lang_memory_fetch(w.m) || !(bytes = lang_memory_piece(w.m, current)))
		return LANG_NO_THREAD;
	interp = bytes_u64(bytes);
	if (!is_on_stack(s, interp))
		interp = find_interpreter(&w, p, s);
	if (!interp ||
	    !(bytes = bytes_at(&w, interp + INTERP_CURCOP, INTERP_STACKINFO + 8 - INTERP_CURCOP)))
		return LANG_NO_THREAD;
	w.k->again[0] = (struct lang_ahead){ interp + INTERP_CURCOP, 24 };
	w.k->first_read[0] = bytes;
	w.cop = bytes_u64(bytes);
	si = bytes_u64(bytes + INTERP_STACKINFO - INTERP_CURCOP);
	for (int i = 0; si; i++) {
		const uint32_t first = w.k->nr;
		enum lang_status none;

		w.k->deep = i == STACKS_MAX;
		if (w.k->deep)
			return w.k->nr ? LANG_OK : LANG_NO_ROOM;
		bytes = bytes_at(&w, si, STACK_SIZE);
		if (!bytes)
			return LANG_BAD_CHAIN;
		if (!i) {
			w.k->again[1] = (struct lang_ahead){ si, STACK_SIZE };
			w.k->first_read[1] = bytes;
		}
		none = add_stack(&w, bytes);
		if (none != LANG_OK)
			return none;
		if (w.k->deep)
			return w.k->nr ? LANG_OK : LANG_NO_ROOM;
		set_lack(&w, i, bytes, first);
		si = bytes_u64(bytes + STACK_PREVIOUS);
		w.called |= si != 0;
		/* A loop for each stack, also for one that a block of sort() began. */
		if (si && w.k->nr > first && !w.k->boundary[w.k->nr - 1])
			w.k->boundary[w.k->nr - 1] = 1;
	}
	if (w.called) {
		find_inner(&w, s, interp);
		find_call(&w, s, interp);
	}
	add_frame(&w, interp, true); /* the main program, which has no sub */
	w.k->deep = w.k->rooted = w.cut;
	return LANG_OK;
}

static int want(struct lang_memory *m, uint64_t addr, uint32_t size)
{
	return lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, size) : -1;
}

/* Queue the body of the SV in @piece; returns its piece. */
static int want_body(struct lang_memory *m, int piece, uint32_t size)
{
	const uint8_t *sv = lang_memory_piece(m, piece);

	return sv ? want(m, bytes_u64(sv), size) : -1;
}

/*
 * Queue a C string of unknown length. The next page may not be there: the bytes in it are
 * another piece, right behind in our memory, since the first one begins at a word and ends at the
 * page.
 */
static void want_file(struct lang_memory *m, struct lang_text *t, uint64_t addr)
{
	uint32_t begin = (uint32_t)(addr & 7), left = PAGE - (uint32_t)(addr & (PAGE - 1));

	t->addr = addr;
	if (left >= FILE_MAX) {
		t->piece = lang_memory_want(m, addr, FILE_MAX);
		return;
	}
	t->piece = lang_memory_queue(m, addr - begin, begin + left, PIECE_NEEDED);
	lang_memory_queue(m, addr + left, FILE_MAX - left, PIECE_NEEDED);
}

/* The bytes of the string; *size: the number of read ones. */
static const uint8_t *file_bytes(const struct lang_memory *m, const struct lang_text *t,
				 uint32_t *size)
{
	const uint8_t *bytes = lang_memory_piece(m, t->piece);

	*size = bytes ? m->pieces[t->piece].size : 0;
	if (!bytes || PAGE - (t->addr & (PAGE - 1)) >= FILE_MAX)
		return bytes;
	*size -= (uint32_t)(t->addr & 7);
	if (lang_memory_piece(m, t->piece + 1))
		*size += m->pieces[t->piece + 1].size;
	return bytes + (t->addr & 7);
}

static uint64_t set_file(const struct lang_memory *m, struct lang_text *t, uint64_t s)
{
	uint32_t size;
	const uint8_t *bytes = file_bytes(m, t, &size);

	t->size = bytes ? (uint32_t)strnlen((const char *)bytes, size) : 0;
	/* Of "(eval 1)" the next one may have the address. */
	for (uint32_t i = 0; i < t->size; i++)
		s = (s ^ bytes[i]) * 0x100000001b3ULL;
	return hash_u64(s ^ t->addr);
}

static uint64_t set_hek(const struct lang_memory *m, struct lang_text *t, uint64_t s)
{
	const uint8_t *head = lang_memory_piece(m, t->piece);

	if (!head)
		return s;
	t->size = MIN(bytes_u32(head + HEK_SIZE), SCRIPT_FUNCTIONS_TEXT_MAX);
	s = hash_u64(s ^ t->addr) ^ bytes_u64(head); /* hash and size */
	t->addr += HEK_TEXT;
	return s;
}

/* Return whether the last code, and the last frame, is the main program: not if there was no room.
 */
static bool has_main(const struct lang_work *w)
{
	return !w->deep || w->rooted;
}

static uint32_t subs_nr(const struct lang_work *w)
{
	return w->nr_codes - has_main(w);
}

/* Set the name of the main program, and its file: that of the statement @cop. */
static bool set_main(struct lang_memory *m, struct lang_work *w, const uint8_t *cop)
{
	struct lang_function *f = &w->functions[w->nr_codes - 1];

	if (!has_main(w))
		return true;
	if (!cop)
		return false;
	want_file(m, &f->file, bytes_u64(cop + COP_FILE));
	f->name.fixed = "{main}";
	return true;
}

/* Read the subs, and the statements of the frames: these are the lines. */
static bool read_subs(struct lang_memory *m, struct lang_work *w)
{
	int cops[LINES_MAX], last = want(m, w->instr[w->nr - 1], COP_SIZE);
	uint32_t nr = subs_nr(w);

	for (uint32_t i = 0; i < nr; i++)
		w->script_functions_of[i].header =
			want(m, w->script_functions_of[i].address, SV_SIZE);
	for (uint32_t i = 0; i < MIN(w->nr, LINES_MAX); i++)
		cops[i] = want(m, w->instr[i], COP_SIZE);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *cop = i < LINES_MAX ? lang_memory_piece(m, cops[i]) : NULL;

		w->instr[i] = cop ? bytes_u32(cop + COP_LINE) : LANG_NO_INSTR;
	}
	if (!set_main(m, w, lang_memory_piece(m, last)))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		const uint8_t *sv = lang_memory_piece(m, w->script_functions_of[i].header);

		/* A context that is being pushed has the bytes of the last one. */
		if (!sv || (bytes_u32(sv + SV_FLAGS) & TYPE_MASK) != TYPE_CV)
			return false;
		w->script_functions_of[i].header =
			want_body(m, w->script_functions_of[i].header, CV_SIZE);
	}
	return lang_memory_fetch(m);
}

/* Read the names of subs: of their globs, or of the subs. */
static bool read_names(struct lang_memory *m, struct lang_work *w)
{
	uint32_t nr = subs_nr(w);

	for (uint32_t i = 0; i < nr; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *cv = lang_memory_piece(m, w->script_functions_of[i].header);

		if (!cv)
			return false;
		want_file(m, &f->file, bytes_u64(cv + CV_FILE));
		f->name.addr = bytes_u64(cv + CV_GV);
		f->scope.addr = bytes_u64(cv + CV_STASH);
		f->name.piece =
			bytes_u32(cv + CV_FLAGS) & CV_NAMED ? -1 : want(m, f->name.addr, SV_SIZE);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		w->functions[i].name.piece = want_body(m, w->functions[i].name.piece, GV_SIZE);
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *gv = lang_memory_piece(m, f->name.piece);

		if (gv) {
			f->name.addr = bytes_u64(gv + GV_HEK);
			f->scope.addr = bytes_u64(gv + GV_STASH);
		}
		f->name.piece = lang_memory_want(m, f->name.addr, HEK_TEXT);
		f->scope.piece = want(m, f->scope.addr, SV_SIZE);
	}
	return lang_memory_fetch(m);
}

/* Read the names of packages. */
static bool read_packages(struct lang_memory *m, struct lang_work *w)
{
	uint32_t nr = subs_nr(w);

	for (uint32_t i = 0; i < nr; i++) {
		struct lang_text *t = &w->functions[i].scope;
		const uint8_t *hv = lang_memory_piece(m, t->piece);

		t->piece = hv && bytes_u32(hv + SV_FLAGS) & FLAG_OOK
				   ? want_body(m, t->piece, HV_SIZE)
				   : -1;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		struct lang_text *t = &w->functions[i].scope;
		const uint8_t *hv = lang_memory_piece(m, t->piece);

		t->addr = hv && !bytes_u32(hv + HV_NAMES) ? bytes_u64(hv + HV_NAME) : 0;
		t->piece = lang_memory_want(m, t->addr, HEK_TEXT);
	}
	return lang_memory_fetch(m);
}

static enum lang_status codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	functions_number(r, process);
	if (!read_subs(m, w) || !read_names(m, w) || !read_packages(m, w))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		uint64_t s = set_file(m, &f->file, 0);

		if (i < subs_nr(w))
			s = set_hek(m, &f->scope, set_hek(m, &f->name, s));
		w->script_functions_of[i].stamp = s;
	}
	return functions_add(r, p, process, NULL);
}

/* ---- its files and processes ---- */

/* struct interpreter with threads, of 5.36 to 5.42 and of 5.44: the same fields are read. */
#define PERL_INTERP_SIZE 3768

#define PERL_INTERP_SIZE_44 3776

/*
 * Add a function that runs Perl's main program. Perl compiles it, and runs its BEGIN and END
 * blocks, outside of any loop: its frame belongs to these functions then.
 */
static void on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	struct detect_file *d = search->out;
	static const char *const names[LANG_MAIN_MAX] = {
		"perl_run", "perl_parse", "perl_destruct", [LANG_MAIN_EVAL] = "Perl_eval_sv"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		d->main[i] = (struct lang_range){ s->st_value, s->st_value + s->st_size };
		d->nr_main = LANG_MAIN_MAX;
	}
}

/*
 * Prove the layout on the interpreter at @perl of another version: its stack of contexts, and the
 * line of the statement that runs. *@early: there is none yet.
 */
static bool is_layout(pid_t pid, uint64_t perl, bool *early)
{
	uint8_t head[INTERP_STACKINFO + 8], info[STACK_SIZE];
	int32_t top, last, type;
	uint32_t line;

	*early = !perl || !lang_memory_copy(pid, perl, head, sizeof(head)) || !is_interpreter(head);
	if (*early ||
	    !lang_memory_copy(pid, bytes_u64(head + INTERP_STACKINFO), info, sizeof(info)))
		return false;
	top = (int32_t)bytes_u32(info + STACK_TOP);
	last = (int32_t)bytes_u32(info + STACK_TOP + 4);
	type = (int32_t)bytes_u32(info + STACK_TYPE);
	line = (uint32_t)(lang_memory_word(pid, bytes_u64(head + INTERP_CURCOP) + COP_LINE - 4) >>
			  32);
	*early = !line;
	return lang_memory_is_pointer(bytes_u64(info + STACK_CONTEXTS)) && top >= -1 &&
	       top <= last && last < CONTEXTS_LAST && type > 0 && type <= TYPE_LAST && line &&
	       line < LINE_LAST;
}

/*
 * Check Perl's layout: the size of its interpreter differs by version and options. Another size is
 * proven on the process. True: it may run no statement yet.
 */
static bool detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	bool early = false;
	uint16_t size;

	errno = 0;
	if (!d->version_at ||
	    !lang_memory_copy(pid, d->version_at + d->bias, &size, sizeof(size))) {
		lang_memory_refused(p);
		return false;
	}
	p->untried = size != PERL_INTERP_SIZE && size != PERL_INTERP_SIZE_44;
	/* It runs on while it is read. */
	for (int i = 0; p->untried && i < PROOF_TRIES; i++)
		if (is_layout(pid, lang_memory_word(pid, p->runtime), &early))
			return false;
	if (p->untried)
		p->reason = "not supported (5.36 to 5.44 with threads are)";
	return early;
}

const struct language language_perl = {
	.name = "perl",
	.title = "Perl",
	.versions = "5.36 to 5.44 with threads: subs and lines; others: untested, guessed",
	.letter = 'l',
	.program = "perl",
	.library = "libperl",
	.shown = "Perl_runops_standard",
	.runtime = "PL_curinterp",
	.version = "PL_interp_size",
	.eval = "Perl_runops_standard",
	.on_symbol = on_symbol,
	.detect = detect,
	.stack = chain,
	.functions = codes,
};

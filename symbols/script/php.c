// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PHP: execute_data of the thread, along its callers.
 *
 * Runs on: a reader. With threads (ZTS) each thread has its globals, by an entry in a table of
 * TSRM; without (NTS) the process has one. execute_ex() runs frames up to the first one that
 * was entered from C (CALL_TOP). Functions in C have frames, but no file and no
 * lines. Offsets are from the headers, for 64-bit CPUs.
 */
#include "symbols/script/internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define PASSED_MAX (2 * LANG_FRAMES_MAX)

/*
 * Pages of the stack of frames that are gone through, the page before one, and where frames begin
 * in it; the part of the first page in which frames are sought, and steps of that.
 */
#define PAGES_MAX   64U
#define PAGE_BEFORE 16U
#define PAGE_HEAD   32U
#define PAGE_WINDOW LANG_PIECE_MAX
#define SLOT	    16U
#define STEPS_MAX   4096U

/* Frames that were found, from the last one on, which may not be trusted. */
#define DOUBTFUL 8U

/* Lines of the innermost frames are read; of others that of the function is shown. */
#define LINES_MAX 256

#define FRAME_SIZE	56 /* the part of zend_execute_data that is read */
#define FRAME_OPLINE	0
#define FRAME_FUNC	24
#define FRAME_CALL_INFO 40
#define FRAME_PREVIOUS	48
#define CALL_TOP	(1U << 17)
#define FUNC_TYPE	0
#define FUNC_NAME	8
#define FUNC_SCOPE	16
#define TYPE_INTERNAL	1
#define TYPE_USER	2
#define TYPE_EVAL	4
#define CLASS_NAME	8
/* Of a thread among others, by the register of the loop: which proof its innermost function needs.
 */
enum { PROOF_NONE, PROOF_STATEMENT, PROOF_IN_C };

#define OP_LINE	    24
#define OP_SIZE	    32
#define STRING_HEAD 24
#define STRING_HASH 8
#define STRING_SIZE 16

/*
 * An entry for a thread: its pthread_self(), and the next one in its slot of the table; bounds of
 * the slots, of entries that are gone through, of the globals behind the beginning of an entry, and
 * of the kinds of globals.
 */
#define ENTRY_THREAD   16
#define ENTRY_NEXT     24
#define ENTRY_SIZE     32
#define SLOTS_MAX      4096U
#define TS_ENTRIES_MAX 1024U
#define GLOBALS_MAX    (32U << 10)
#define GLOBALS_NR_MAX 128U

static bool php_add_frame(struct lang_work *k, const struct lang_sample *s, uint64_t addr,
			  const uint8_t *f)
{
	uint64_t func = bytes_u64(f + FRAME_FUNC);

	if (!func) /* of C code that calls a function */
		return true;
	if (!lang_memory_is_pointer(func))
		return false;
	if (!k->nr) {
		k->again[1] = (struct lang_ahead){ addr, FRAME_SIZE };
		k->first_read[1] = f;
	}
	k->address[k->nr] = func;
	k->function[k->nr] = k->nr ? bytes_u64(f + FRAME_OPLINE) : s->loop[1];
	/* The loop stores its statement before calls only. */
	k->instr[k->nr] = !k->nr && s->loop[0] == addr ? s->loop[1] : bytes_u64(f + FRAME_OPLINE);
	/* Whether the function is in C is known later. */
	k->boundary[k->nr] = bytes_u32(f + FRAME_CALL_INFO) & CALL_TOP ? 1 : 0;
	k->nr++;
	return true;
}

/* Return the first page of the stack of frames, the last one of which is at @last; 0: unknown. */
static uint64_t first_page(struct lang_memory *m, uint64_t last)
{
	const uint8_t *word = lang_memory_read(m, last, 8);
	uint64_t page = word ? bytes_u64(word) : 0;

	for (uint32_t i = 0; i < PAGES_MAX && m->calls < LANG_OUTER_CALLS_MAX; i++) {
		const uint8_t *before = lang_memory_is_pointer(page)
						? lang_memory_read(m, page + PAGE_BEFORE, 8)
						: NULL;

		if (!before)
			return 0;
		if (!bytes_u64(before))
			return page;
		page = bytes_u64(before);
	}
	return 0;
}

/* The frame before the one at @at of the first page; 0: it has none there. */
static uint32_t frame_before(const uint8_t *page, uint64_t start, uint32_t at)
{
	uint64_t before = bytes_u64(page + at + FRAME_PREVIOUS) - start;

	return before >= PAGE_HEAD && before < at && !(before % SLOT) ? (uint32_t)before : 0;
}

/*
 * Return a frame in the first page that called the one at @addr, which is beyond its beginning, by
 * way of others; 0: not found. The page begins with the first frame, and the last one in the part
 * that is read is the one that others lead to the first from. That one may have ended, and have
 * left its bytes among the variables of another: the callers of its callers run.
 */
static uint64_t outer_caller(struct lang_reader *r, struct lang_thread *t, uint64_t last,
			     uint64_t addr)
{
	uint64_t start = first_page(&r->memory, last);
	const uint8_t *page;
	uint32_t steps = 0;

	if (!start || addr - start < PAGE_WINDOW)
		return 0;
	page = prefetch_frame(r, t, start, PAGE_WINDOW, true);
	for (uint32_t top = PAGE_WINDOW - 5 * SLOT; page && top > PAGE_HEAD; top -= SLOT) {
		uint32_t chain[LANG_FRAMES_MAX - LANG_INNER], nr = 0, at = top;

		while (at > PAGE_HEAD && (at = frame_before(page, start, at)) &&
		       steps++ < STEPS_MAX)
			chain[nr++ % ARRAY_SIZE(chain)] = at;
		if (steps >= STEPS_MAX)
			break;
		if (at == PAGE_HEAD && nr > DOUBTFUL)
			return start +
			       chain[(nr < ARRAY_SIZE(chain) ? DOUBTFUL : nr) % ARRAY_SIZE(chain)];
	}
	return 0;
}

/*
 * Return whether the registers of the loop at the sample say that the innermost frame is not at
 * @addr any more: a thread among others may have run on, on another CPU, without a trace on its C
 * stack. While a call is made the frame register has the new frame, in a function in C that of its
 * caller; the caller has stored the statement. *@proof: the part that is left.
 */
static bool has_run_on(struct lang_reader *r, const struct lang_sample *s, struct lang_thread *t,
		       uint64_t addr, uint64_t *proof)
{
	const uint64_t frames[] = { addr, s->loop[0] };
	uint64_t previous[2], op[2];

	*proof = s->loop[0] && s->loop[0] == addr ? PROOF_STATEMENT : PROOF_NONE;
	if (!s->loop[0] || *proof)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		const uint8_t *f = lang_memory_is_pointer(frames[i])
					   ? prefetch_frame(r, t, frames[i], FRAME_SIZE, false)
					   : NULL;

		if (!f)
			return true;
		previous[i] = bytes_u64(f + FRAME_PREVIOUS);
		op[i] = bytes_u64(f + FRAME_OPLINE);
	}
	*proof = PROOF_IN_C;
	if (previous[0] == s->loop[0])
		return op[1] != s->loop[1];
	*proof = PROOF_NONE;
	return previous[1] != addr || op[0] != s->loop[1];
}

/* End a chain, the root of which was reached, or not: then the last ones may be of the middle. */
static void end_chain(struct lang_work *k, bool root, bool cut)
{
	k->deep = !root || cut;
	if (cut && !root)
		k->nr = LANG_INNER;
}

static enum lang_status php_chain(struct lang_reader *r, const struct lang_process *p,
				  const struct lang_sample *s, struct lang_thread *t)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;
	const uint64_t globals = t->state + p->php.current;
	int current = lang_memory_want(m, globals, 8);
	int self = t->id ? lang_memory_want(m, t->state + ENTRY_THREAD, 8) : -1;
	uint64_t addr, caller, proof = PROOF_NONE;
	const uint8_t *f;
	bool cut = false;

	prefetch_want(r, t, s);
	k->broken = false;
	k->settled = true;
	if (!lang_memory_fetch(m) || !(f = lang_memory_piece(m, current)))
		return LANG_NO_THREAD;
	if (t->id &&
	    (!lang_memory_piece(m, self) || bytes_u64(lang_memory_piece(m, self)) != t->id))
		return LANG_NO_THREAD;
	k->again[0] = (struct lang_ahead){ globals, 8 };
	k->first_read[0] = f;
	addr = bytes_u64(f);
	k->broken = t->id && !s->is_main && has_run_on(r, s, t, addr, &proof);
	for (uint32_t passed = 0; addr && passed < PASSED_MAX; passed++) {
		if (cut && m->calls >= LANG_OUTER_CALLS_MAX)
			break;
		if (k->nr == LANG_FRAMES_MAX) {
			caller = cut ? 0 : outer_caller(r, t, t->state + p->php.stack, addr);
			cut = true;
			lang_leave_out(k, caller ? 0 : LANG_OUTER_LEAST);
			addr = caller ? caller : addr;
		}
		f = lang_memory_is_pointer(addr) ? prefetch_frame(r, t, addr, FRAME_SIZE, false)
						 : NULL;
		if (!f || !php_add_frame(k, s, addr, f)) {
			if (!cut)
				return LANG_BAD_CHAIN;
			break;
		}
		addr = bytes_u64(f + FRAME_PREVIOUS);
	}
	end_chain(k, !addr, cut);
	k->base[0] = proof;
	return k->nr ? LANG_OK : k->deep ? LANG_NO_ROOM : LANG_NO_FRAMES;
}

/*
 * Keep the entries of a slot that belong to threads. True: that of the sample is among them.
 * @nr: entries that were looked at.
 */
static bool look_at_slot(struct lang_reader *r, const struct lang_sample *s, uint64_t entry,
			 uint32_t *nr)
{
	while (lang_memory_is_pointer(entry) && (*nr)++ < TS_ENTRIES_MAX) {
		const uint8_t *bytes;
		uint64_t at = entry, self;
		pid_t tid;

		lang_memory_begin(&r->memory);
		bytes = lang_memory_read(&r->memory, entry, ENTRY_SIZE);
		if (!bytes)
			return false;
		self = bytes_u64(bytes + ENTRY_THREAD);
		entry = bytes_u64(bytes + ENTRY_NEXT);
		tid = lang_tid_of_pthread(r, self);
		if (tid > 0)
			lang_chain_keep_thread(r, s->process, tid, at, self);
		if (tid == s->tid)
			return true;
	}
	return false;
}

/* Find the entry of the thread in the table; without threads the process has one state. */
static void php_find_thread(struct lang_reader *r, const struct lang_process *p,
			    const struct lang_sample *s)
{
	uint32_t slots, nr = 0;
	const uint8_t *bytes;
	uint64_t table;

	if (!p->code_type) {
		lang_chain_keep_thread(r, s->process, s->tid, p->runtime, 0);
		return;
	}
	lang_memory_begin(&r->memory);
	bytes = lang_memory_read(&r->memory, p->runtime, 4);
	slots = bytes ? MIN(bytes_u32(bytes), SLOTS_MAX) : 0;
	bytes = lang_memory_read(&r->memory, p->code_type, 8);
	table = bytes ? bytes_u64(bytes) : 0;
	for (uint32_t i = 0; i < slots && nr < TS_ENTRIES_MAX; i++) {
		lang_memory_begin(&r->memory);
		bytes = lang_memory_read(&r->memory, table + 8ULL * i, 8);
		if (!bytes || look_at_slot(r, s, bytes_u64(bytes), &nr))
			return;
	}
}

static void want_string(struct lang_memory *m, struct lang_text *t, uint64_t addr)
{
	t->addr = addr;
	t->piece = lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, STRING_HEAD) : -1;
}

/* Add the identity of a string to the stamp @s: its address, length and hash. */
static uint64_t stamp_string(const struct lang_memory *m, struct lang_text *t, uint64_t s)
{
	const uint8_t *head = lang_memory_piece(m, t->piece);

	t->size = 0;
	if (!head)
		return s;
	s = hash_u64(s ^ t->addr);
	s = hash_u64(s ^ bytes_u64(head + STRING_HASH));
	s = hash_u64(s ^ bytes_u64(head + STRING_SIZE));
	t->size = (uint32_t)MIN(bytes_u64(head + STRING_SIZE), (uint64_t)SCRIPT_FUNCTIONS_TEXT_MAX);
	t->addr += STRING_HEAD;
	/* Its hash may not be computed yet. */
	t->content = !bytes_u64(head + STRING_HASH);
	return s;
}

/* Return whether @op is a statement of the function. One that is being entered has none yet. */
static bool has_statement(const struct php_layout *l, const uint8_t *func, uint64_t op)
{
	uint64_t ops = bytes_u64(func + l->ops);

	return func[FUNC_TYPE] != TYPE_INTERNAL &&
	       op - ops < (uint64_t)OP_SIZE * bytes_u32(func + l->nr_ops);
}

static const uint8_t *func_of(const struct lang_memory *m, const struct lang_work *w,
			      uint32_t frame)
{
	assert(frame < w->nr && w->code[frame] < w->nr_codes);
	return lang_memory_piece(m, w->script_functions_of[w->code[frame]].header);
}

/*
 * Join the frames in C at the root of the C stack that has frames @first to @nr, as of a callback
 * of a shutdown function, with the group before: there is no loop that called them.
 */
static void join_root(const struct lang_memory *m, struct lang_work *w, uint32_t first, uint32_t nr)
{
	uint32_t i = nr;

	assert(nr && nr <= w->nr);
	while (i > first && func_of(m, w, i - 1)[FUNC_TYPE] == TYPE_INTERNAL)
		i--;
	if (i == first || i == nr)
		return;
	w->boundary[i - 1] = 0;
	w->boundary[nr - 1] = 1;
}

/*
 * Drop the frame at the root of a fiber: a function without a name, in C. The frames behind it are
 * on the C stack that resumed the fiber.
 */
static void drop_roots(const struct lang_memory *m, struct lang_work *w)
{
	uint32_t nr = 0, first = 0;

	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *func = func_of(m, w, i);

		if (func[FUNC_TYPE] == TYPE_INTERNAL && !bytes_u64(func + FUNC_NAME)) {
			join_root(m, w, first, nr);
			w->nr_here = w->nr_here ? w->nr_here : nr;
			first = nr;
			continue;
		}
		w->code[nr] = w->code[i];
		w->instr[nr] = w->instr[i];
		w->boundary[nr++] = w->boundary[i];
	}
	if (!w->deep)
		join_root(m, w, first, nr);
	w->nr = nr;
}

/*
 * Return whether the innermost function is not the one of the registers of the loop: the statement
 * is not in it, nor the one that calls it.
 */
static bool is_other(const struct lang_memory *m, const struct lang_work *w,
		     const struct php_layout *l)
{
	const uint8_t *func = func_of(m, w, 0);

	if (!func || w->base[0] == PROOF_NONE)
		return false;
	if (w->base[0] == PROOF_IN_C)
		return func[FUNC_TYPE] != TYPE_INTERNAL;
	return !has_statement(l, func, w->function[0]) &&
	       (w->nr < 2 || w->function[0] != w->function[1]);
}

/* Read the functions, and the lines of their frames. */
static bool read_functions(struct lang_memory *m, struct lang_work *w, const struct php_layout *l,
			   bool threads)
{
	int lines[LINES_MAX];

	for (uint32_t i = 0; i < w->nr_codes; i++)
		w->script_functions_of[i].header =
			lang_memory_want(m, w->script_functions_of[i].address, l->line + 8U);
	for (uint32_t i = 0; i < MIN(w->nr, LINES_MAX); i++)
		lines[i] = lang_memory_is_pointer(w->instr[i])
				   ? lang_memory_want(m, w->instr[i] + OP_LINE, 4)
				   : -1;
	if (!lang_memory_fetch(m))
		return false;
	w->broken |= threads && is_other(m, w, l);
	for (uint32_t i = 0; i < w->nr; i++) {
		const uint8_t *func =
			lang_memory_piece(m, w->script_functions_of[w->code[i]].header);
		const uint8_t *line = i < LINES_MAX ? lang_memory_piece(m, lines[i]) : NULL;

		if (!func || (func[FUNC_TYPE] != TYPE_INTERNAL && func[FUNC_TYPE] != TYPE_USER &&
			      func[FUNC_TYPE] != TYPE_EVAL))
			return false;
		w->instr[i] = line && has_statement(l, func, w->instr[i]) ? bytes_u32(line)
									  : LANG_NO_INSTR;
		/* C code is not run by execute_ex(): it goes with its caller. */
		if (func[FUNC_TYPE] == TYPE_INTERNAL)
			w->boundary[i] = 0;
	}
	drop_roots(m, w);
	return w->nr;
}

/* Read the names of classes, then the heads of all strings. */
static bool php_read_strings(struct lang_memory *m, struct lang_work *w, const struct php_layout *l)
{
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		uint64_t scope = bytes_u64(lang_memory_piece(m, w->script_functions_of[i].header) +
					   FUNC_SCOPE);

		w->functions[i].scope.piece = lang_memory_is_pointer(scope)
						      ? lang_memory_want(m, scope + CLASS_NAME, 8)
						      : -1;
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		const uint8_t *func = lang_memory_piece(m, w->script_functions_of[i].header);
		const uint8_t *scope = lang_memory_piece(m, f->scope.piece);

		want_string(m, &f->scope, scope ? bytes_u64(scope) : 0);
		want_string(m, &f->name, bytes_u64(func + FUNC_NAME));
		f->name.fixed = bytes_u64(func + FUNC_NAME) ? NULL : "{main}";
		f->file.fixed = func[FUNC_TYPE] == TYPE_INTERNAL ? "[internal]" : NULL;
		want_string(m, &f->file, f->file.fixed ? 0 : bytes_u64(func + l->file));
		f->first_line = f->file.fixed ? 0 : bytes_u32(func + l->line);
	}
	return lang_memory_fetch(m);
}

static enum lang_status php_functions(struct lang_reader *r, const struct lang_process *p,
				      uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *w = &r->work;

	functions_number(r, process);
	if (!read_functions(m, w, &p->php, p->code_type) || !php_read_strings(m, w, &p->php))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < w->nr_codes; i++) {
		struct lang_function *f = &w->functions[i];
		uint64_t s = stamp_string(m, &f->scope, f->first_line);

		s = stamp_string(m, &f->name, s);
		w->script_functions_of[i].stamp = stamp_string(m, &f->file, s);
	}
	return functions_add(r, p, process, NULL);
}

/* ---- its files and processes ---- */

#define RODATA_MAX (32U << 20)

/* Builds in which a version was compared with the frames of the interpreter. */
#define PHP_NTS 1U
#define PHP_ZTS 2U

static const struct php_version phps[] = {
#define PHP_FIELD(name, member)
#define PHP_LAYOUT(api, major, minor, compared, ...)                                               \
	{ api, (major) << 24 | (minor) << 16, compared, { __VA_ARGS__ } },
#include "symbols/script/php_layouts.inc"
#undef PHP_FIELD
#undef PHP_LAYOUT
};

/* Return row @i of them; NULL: there are no more. */
static const struct php_version *php_version(size_t i)
{
	return i < ARRAY_SIZE(phps) ? &phps[i] : NULL;
}

/* Bytes of "API420220829,NTS" before the part that differs with threads: "API420220829,TS". */
#define API_DATE 13U

/* Return whether the bytes have the API of a row, with threads or without. */
static bool has_api(const char *bytes, size_t size, const char *row, bool threads)
{
	char api[32];

	assert(strlen(row) < sizeof(api) && row[API_DATE] == 'N');
	snprintf(api, sizeof(api), "%.*s%s", (int)API_DATE, row, row + API_DATE + threads);
	return memmem(bytes, size, api, strlen(api) + 1);
}

/* Find the versions in @size bytes of constants, which end with a NUL. */
static void find_versions(struct detect_file *out, const char *bytes, size_t size)
{
	static const char header[] = "X-Powered-By: PHP/";
	const char *said = memmem(bytes, size, header, sizeof(header) - 1);
	const struct php_version *row;

	if (said && !out->php && said[18] >= '0' && said[18] <= '9' && said[19] == '.')
		out->version = (uint32_t)(said[18] - '0') << 24 |
			       (uint32_t)(strtoul(said + 20, NULL, 10) & 255) << 16;
	for (size_t i = 0; (row = php_version(i)); i++) {
		if (!has_api(bytes, size, row->api, out->version_at))
			continue;
		out->version = row->version;
		out->php = (uint32_t)i + 1;
	}
}

/*
 * With threads PHP has a variable for the offset of the globals in an entry, and ts_free_thread(),
 * which takes an entry from the table: by the rest of a division by the size of the table.
 */
static void php_on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	if (!strcmp(name, "executor_globals_offset"))
		search->out->version_at = s->st_value;
	else if (!strcmp(name, "ts_free_thread"))
		search->entry = s->st_value;
}

#define TS_CODE_SIZE 192U /* bytes of ts_free_thread() that are looked through */
#define TS_CODE_INSN 7U	  /* of an instruction with an address, which is relative to its end */

/* Return the address of the first REX.W @opcode in code at @vaddr, from @*at on; 0: none. */
static uint64_t next_address(const uint8_t code[static TS_CODE_SIZE], uint64_t vaddr,
			     uint8_t opcode, uint32_t *at)
{
	for (; *at + TS_CODE_INSN <= TS_CODE_SIZE; ++*at) {
		const uint8_t *c = code + *at;

		if ((c[0] & 0xfb) != 0x48 || c[1] != opcode || (c[2] & 0xc7) != 0x05)
			continue;
		*at += TS_CODE_INSN;
		return vaddr + *at + (uint64_t)(int32_t)bytes_u32(c + 3);
	}
	return 0;
}

/* Find the table of threads and its size: "movslq size(%rip), reg", then "mov table(%rip), reg". */
static void find_table(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	uint8_t code[TS_CODE_SIZE];
	uint32_t at = 0;
	uint64_t size;

	if (f->machine != EM_X86_64 || !search->entry ||
	    !elffile_read_at(f, search->entry, code, sizeof(code)))
		return;
	size = next_address(code, search->entry, 0x63, &at);
	out->code_type = size ? next_address(code, search->entry, 0x8b, &at) : 0;
	out->version_at = out->code_type ? size : out->version_at;
}

/* Find the version of PHP, and the one that extensions are checked against: "API420220829,NTS". */
static int php_on_file(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	Elf64_Shdr s;
	void *bytes;

	if (!out->runtime && out->version_at) {
		out->runtime = out->version_at;
		find_table(search, f);
	}
	if (!out->runtime || !out->nr_eval)
		return -ENOENT;
	for (uint32_t i = 0; elffile_constants(f, i, &s); i++) {
		if (s.sh_size > RODATA_MAX || elffile_read_alloc(f, s.sh_offset, s.sh_size, &bytes))
			continue;
		find_versions(out, bytes, s.sh_size);
		free(bytes);
	}
	return 0;
}

/* The place of an opcode in zend_op, and the ones at the end of a function (Zend's list of
 * opcodes). */
#define OP_CODE		 28
#define RETURN		 62
#define RETURN_BY_REF	 111
#define GENERATOR_RETURN 161

/* Bytes of executor_globals and of a function in which a later version's members are sought. */
#define SEEK_GLOBALS 1024U
#define SEEK_FUNC    256U
#define SEEK_FRAMES  64U

/* Where a function may have its statements; the most of them. */
#define SEEK_OPS     64U
#define SEEK_OPS_END 160U
#define OPS_MAX	     (1U << 20)

/*
 * Find the stack of frames in executor_globals: its end, its last page, which has the same end, the
 * size of pages, then the innermost frame, in this order in each version so far.
 */
static bool php_seek_stack(pid_t pid, struct php_layout *l, uint64_t globals)
{
	uint64_t words[SEEK_GLOBALS / 8];

	if (!lang_memory_copy(pid, globals, words, sizeof(words)))
		return false;
	for (uint16_t i = 1; i + 2U < ARRAY_SIZE(words); i++) {
		uint64_t end = words[i - 1], page = words[i], size = words[i + 1];

		if (size < 4096 || end <= page || (end - page) % size ||
		    lang_memory_word(pid, page + 8) != end)
			continue;
		l->stack = (uint16_t)(8 * i);
		l->current = (uint16_t)(8 * i + 16);
		return true;
	}
	return false;
}

/* Return the outermost function of a script that runs, and its statement; 0: none runs. */
static uint64_t php_outermost(pid_t pid, const struct php_layout *l, uint64_t globals, uint64_t *op)
{
	uint64_t frame = lang_memory_word(pid, globals + l->current), found = 0;

	for (uint32_t i = 0; i < SEEK_FRAMES && frame; i++) {
		uint64_t func = lang_memory_word(pid, frame + FRAME_FUNC);

		if ((lang_memory_word(pid, func) & 255) == TYPE_USER) {
			found = func;
			*op = lang_memory_word(pid, frame + FRAME_OPLINE);
		}
		frame = lang_memory_word(pid, frame + FRAME_PREVIOUS);
	}
	return found;
}

/* Return whether the statement @op is one of a function by this layout, the last one a return. */
static bool has_ops(pid_t pid, const struct php_layout *l, const uint8_t func[static SEEK_FUNC],
		    uint64_t op)
{
	uint64_t ops = bytes_u64(func + l->ops), at = op - ops;
	uint32_t nr = bytes_u32(func + l->nr_ops);
	uint8_t last[OP_SIZE];

	return nr && nr <= OPS_MAX && at < (uint64_t)OP_SIZE * nr && !(at % OP_SIZE) &&
	       lang_memory_copy(pid, ops + (uint64_t)OP_SIZE * (nr - 1), last, sizeof(last)) &&
	       (last[OP_CODE] == RETURN || last[OP_CODE] == RETURN_BY_REF ||
		last[OP_CODE] == GENERATOR_RETURN);
}

/* Return whether a function has a file and lines by this layout, with the line of @op in them. */
static bool has_file(pid_t pid, const struct php_layout *l, const uint8_t func[static SEEK_FUNC],
		     uint64_t op)
{
	uint32_t line = bytes_u32(func + l->line), last = bytes_u32(func + l->line + 4);
	uint64_t file = bytes_u64(func + l->file);
	uint64_t size = lang_memory_word(pid, file + STRING_SIZE), statement[OP_SIZE / 8];
	char text[PATH_MAX];

	return size && size < sizeof(text) && lang_memory_copy(pid, op, statement, OP_SIZE) &&
	       (uint32_t)statement[OP_LINE / 8] - line <= last - line && line <= last &&
	       lang_memory_copy(pid, file + STRING_HEAD, text, size + 1) &&
	       strnlen(text, size + 1) == size;
}

/* Find the members of a function in the outermost one that runs. False: none does, or not found. */
static bool php_seek_func(pid_t pid, struct php_layout *l, uint64_t globals)
{
	uint64_t op = 0, at = php_outermost(pid, l, globals, &op);
	struct php_layout try = *l;
	uint8_t func[SEEK_FUNC];

	if (!at || !lang_memory_copy(pid, at, func, sizeof(func)))
		return false;
	/* Their number is in front of them, with a gap or without. */
	for (uint16_t ops = SEEK_OPS; !has_ops(pid, &try, func, op); ops += 4) {
		if (ops >= SEEK_OPS_END)
			return false;
		try.ops = ops & ~7U;
		try.nr_ops = try.ops - (ops & 4 ? 4 : 8);
	}
	for (uint16_t file = try.ops + 8; !has_file(pid, &try, func, op); file += 8) {
		if (file + 16U > SEEK_FUNC)
			return false;
		try.file = file;
		try.line = file + 8;
	}
	*l = try;
	return true;
}

/* Return whether the layout has the stack of frames: its last page has its end. */
static bool has_stack(pid_t pid, const struct php_layout *l, uint64_t globals)
{
	uint64_t words[3]; /* end, page, size of pages */

	return lang_memory_copy(pid, globals + l->stack - 8, words, sizeof(words)) &&
	       words[2] >= 4096 && words[0] > words[1] && !((words[0] - words[1]) % words[2]) &&
	       lang_memory_word(pid, words[1] + 8) == words[0];
}

/* Return whether globals prove the layout. The members of a later version are sought in them. */
static bool are_globals(pid_t pid, struct php_layout *l, uint64_t globals, bool later)
{
	return later ? php_seek_stack(pid, l, globals) : has_stack(pid, l, globals);
}

/*
 * Set the offset of the globals from @entry; false: they do not prove the layout. The variable for
 * this is 0 where a program that uses it has a copy: then they are sought among all globals.
 */
static bool is_entry(pid_t pid, struct php_layout *l, uint64_t entry, bool later, uint64_t *offset)
{
	uint64_t storage = lang_memory_word(pid, entry);
	uint64_t nr = lang_memory_word(pid, entry + 8) & UINT32_MAX;

	if (*offset)
		return are_globals(pid, l, entry + *offset, later);
	for (uint64_t i = 0; i < MIN(nr, (uint64_t)GLOBALS_NR_MAX); i++) {
		uint64_t at = lang_memory_word(pid, storage + 8 * i) - entry;

		if (at < GLOBALS_MAX && are_globals(pid, l, entry + at, later)) {
			*offset = at;
			return true;
		}
	}
	return false;
}

/* Return an entry of the table with globals that prove the layout; 0: none does. */
static uint64_t find_entry(pid_t pid, struct lang_process *p, bool later, uint64_t *offset)
{
	uint64_t table = lang_memory_word(pid, p->code_type);
	uint32_t slots = 0, nr = 0;

	if (!lang_memory_copy(pid, p->runtime, &slots, sizeof(slots)))
		return 0;
	for (uint32_t i = 0; i < MIN(slots, SLOTS_MAX); i++) {
		uint64_t entry = lang_memory_word(pid, table + 8ULL * i);

		for (; entry && nr++ < TS_ENTRIES_MAX;
		     entry = lang_memory_word(pid, entry + ENTRY_NEXT)) {
			if (lang_memory_word(pid, entry + ENTRY_THREAD) % slots != i)
				return 0;
			if (is_entry(pid, &p->php, entry, later, offset))
				return entry;
		}
	}
	return 0;
}

/* The rest of php_detect() with threads: offsets are from the entry of a thread. */
static bool detect_threads(struct lang_process *p, const struct detect_file *d, pid_t pid,
			   bool later)
{
	uint64_t offset, entry;
	bool again = false;

	if (!d->code_type) {
		p->reason = "not supported with threads: the table of these is not found";
		return false;
	}
	if (!lang_memory_copy(pid, p->runtime, &offset, sizeof(offset))) {
		lang_memory_refused(p);
		return false;
	}
	p->runtime = d->version_at + d->bias;
	p->code_type = d->code_type + d->bias;
	entry = offset < GLOBALS_MAX ? find_entry(pid, p, later, &offset) : 0;
	if (!entry) {
		p->reason = "no thread runs a script, or its structures differ";
		return true;
	}
	if (later)
		again = !php_seek_func(pid, &p->php, entry + offset);
	p->php.current = (uint16_t)(p->php.current + offset);
	p->php.stack = (uint16_t)(p->php.stack + offset);
	return again;
}

/*
 * PHP's layout is that of its version. A later one is as the newest known one, but for members that
 * are sought in the process. True: no script runs yet to find them.
 */
static bool php_detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	const struct php_version *newest = php_version(ARRAY_SIZE(phps) - 1);
	const struct php_version *row = d->php ? php_version(d->php - 1) : NULL;
	bool later = !row && d->version > newest->version;

	row = later ? newest : row;
	p->code_type = 0;
	if (!row) {
		p->reason = "not supported (" PHP_READ " are)";
		return false;
	}
	p->php = row->layout;
	p->untried |= later || !(row->compared & (d->version_at ? PHP_ZTS : PHP_NTS));
	if (d->version_at)
		return detect_threads(p, d, pid, later);
	if (!later)
		return false;
	if (!php_seek_stack(pid, &p->php, p->runtime)) {
		p->reason = "not supported (" PHP_READ " are), and its structures differ";
		return true;
	}
	return !php_seek_func(pid, &p->php, p->runtime);
}

const struct language language_php = {
	.name = "php",
	.title = "PHP",
	.versions = PHP_SHOWN,
	.letter = 'h',
	.program = "php",
	.library = "libphp",
	.shown = "execute_ex",
	.runtime = "executor_globals",
	.eval = "execute_ex",
	.on_symbol = php_on_symbol,
	.on_file = php_on_file,
	.detect = php_detect,
	.stack = php_chain,
	.functions = php_functions,
	.find_thread = php_find_thread,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * GNU R: the contexts of calls of closures, which are on the C stack of the main thread.
 *
 * Runs on: a reader. R_GlobalContext leads to the innermost one. A context is in the C frame of the
 * function that runs the call. Since 4.4 compiled code calls compiled closures without one: their
 * contexts are on a stack of R's, and have the address of a variable in the C frame of the loop
 * that runs them. Contexts of C code, loops and built-in functions are left out. Offsets are of
 * 64-bit CPUs.
 */
#include "symbols/script/internal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"

#define CONTEXTS_MAX 2048U
#define C_STACK_MAX  (1ULL << 32)
#define BEING_MADE   512U /* bytes of Rf_begincontext() */
#define FLAG_CLOSURE 4U
#define NODE_SIZE    56U
#define TYPE_MASK    31U
#define TYPE_NIL     0
#define TYPE_SYMBOL  1U
#define TYPE_PAIR    2U
#define TYPE_CLOSURE 3U
#define TYPE_CALL    6U
#define TYPE_CHARS   9U
#define NAMED_MAX    64U /* new functions of a sample */
#define NAME_MAX     128U
#define NAME_PARTS   3U /* "stats", "::", "lm" */

/* ---- contexts ---- */

struct walk {
	struct lang_reader *r;
	struct lang_work *k;
	struct lang_thread *t;
	const struct r_layout *l;
	const struct lang_sample *s;
	uint64_t call[LANG_FRAMES_MAX], place[LANG_FRAMES_MAX]; /* of each frame */
};

static uint32_t context_size(const struct r_layout *l)
{
	return l->source + 8U;
}

static bool is_on_stack(const struct lang_sample *s, uint64_t addr)
{
	return addr >= s->sp && addr - s->sp < C_STACK_MAX;
}

/* The bytes of a context, as of the sample if the copy of its stack has them. */
static const uint8_t *context_at(const struct walk *w, uint64_t addr)
{
	const uint32_t size = context_size(w->l);
	uint64_t at = addr - w->s->sp;

	if (!lang_memory_is_pointer(addr))
		return NULL;
	if (is_on_stack(w->s, addr) && at < w->s->stack_size && size <= w->s->stack_size - at)
		return w->s->stack + at;
	return prefetch_frame(w->r, w->t, addr, size, is_on_stack(w->s, addr));
}

/* Add the call of a context; whether it is one of a closure is known later. */
static bool add_frame(struct walk *w, uint64_t addr, const uint8_t *context)
{
	struct lang_work *k = w->k;
	uint64_t function = bytes_u64(context + w->l->function);

	w->call[k->nr] = bytes_u64(context + w->l->call);
	if (!lang_memory_is_pointer(function) || !lang_memory_is_pointer(w->call[k->nr]))
		return false;
	w->place[k->nr] = is_on_stack(w->s, addr) ? addr : bytes_u64(context + w->l->place);
	k->function[k->nr++] = function;
	return true;
}

static enum lang_status add_contexts(struct walk *w, uint64_t addr)
{
	struct lang_work *k = w->k;

	for (uint32_t passed = 0; addr; passed++) {
		const uint8_t *context;
		uint64_t next;

		k->deep = k->nr == LANG_FRAMES_MAX || passed == CONTEXTS_MAX;
		if (k->deep)
			break;
		context = context_at(w, addr);
		if (!context || (bytes_u32(context + w->l->flag) & FLAG_CLOSURE &&
				 !add_frame(w, addr, context)))
			return LANG_BAD_CHAIN;
		next = bytes_u64(context + w->l->next);
		/* Outer ones are nearer to the root. */
		if (is_on_stack(w->s, addr) && is_on_stack(w->s, next) && next <= addr)
			return LANG_BAD_CHAIN;
		addr = next;
	}
	return LANG_OK;
}

static uint8_t type_of(const uint8_t *node)
{
	return node[0] & TYPE_MASK;
}

/* Leave out the calls of built-in functions, and find the code and the boundary of the others. */
static enum lang_status keep_closures(struct walk *w)
{
	struct lang_memory *m = &w->r->memory;
	struct lang_work *k = w->k;
	int function[LANG_FRAMES_MAX], call[LANG_FRAMES_MAX];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < k->nr; i++) {
		function[i] = lang_memory_want(m, k->function[i], NODE_SIZE);
		call[i] = lang_memory_want(m, w->call[i], NODE_SIZE);
	}
	if (!lang_memory_fetch(m))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < k->nr; i++) {
		const uint8_t *f = lang_memory_piece(m, function[i]);
		const uint8_t *c = lang_memory_piece(m, call[i]);

		if (!f || !c)
			return LANG_BAD_CHAIN;
		if (type_of(f) != TYPE_CLOSURE)
			continue;
		if (type_of(c) != TYPE_CALL)
			return LANG_BAD_CHAIN;
		/* A function has another name if another one calls it. */
		k->address[nr] = hash_u64(bytes_u64(f + w->l->node_second)) ^
				 bytes_u64(c + w->l->node_first);
		k->function[nr] = (uint64_t)call[i];
		k->instr[nr] = LANG_NO_INSTR;
		w->place[nr++] = w->place[i];
	}
	k->nr = nr;
	/* Calls without a C frame have the same place as the ones around them. */
	for (uint32_t i = 0; i < nr; i++)
		k->boundary[i] = i + 1 < nr && w->place[i] == w->place[i + 1] ? 0
				 : is_on_stack(w->s, w->place[i])	      ? w->place[i]
									      : 1;
	return nr ? LANG_OK : k->deep ? LANG_NO_ROOM : LANG_NO_FRAMES;
}

static enum lang_status chain(struct lang_reader *r, const struct lang_process *p,
			      const struct lang_sample *s, struct lang_thread *t)
{
	struct walk w = { .r = r, .k = &r->work, .t = t, .l = &p->r, .s = s };
	struct lang_memory *m = &r->memory;
	int current = lang_memory_want(m, p->runtime, 8);
	enum lang_status none;
	const uint8_t *f;

	prefetch_want(r, t, s);
	w.k->settled = true;
	w.k->broken = s->pc - p->code_type < BEING_MADE;
	/* R runs on one thread; others are of libraries. */
	if (!s->is_main)
		return LANG_NO_FRAMES;
	if (!lang_memory_fetch(m) || !(f = lang_memory_piece(m, current)))
		return LANG_NO_THREAD;
	w.k->again[0] = (struct lang_ahead){ p->runtime, 8 };
	w.k->first_read[0] = f;
	none = add_contexts(&w, bytes_u64(f));
	return none == LANG_OK ? keep_closures(&w) : none;
}

/* ---- names: a function has that by which it is called ---- */

/* The symbols of a name. */
struct naming {
	uint64_t symbol[NAME_PARTS];
	uint32_t nr;
	int piece[NAME_PARTS];
};

static int want_node(struct lang_memory *m, uint64_t addr)
{
	return lang_memory_is_pointer(addr) ? lang_memory_want(m, addr, NODE_SIZE) : -1;
}

/* Return the bytes of a node if it is of @type. */
static const uint8_t *node_of(const struct lang_memory *m, int piece, uint32_t type)
{
	const uint8_t *node = lang_memory_piece(m, piece);

	return node && type_of(node) == type ? node : NULL;
}

/*
 * Read the callee: a symbol, or a call of `::` or `$` with two. Of a part that is no symbol, as
 * in "f()$g()", and of a function without a name no symbol is kept.
 */
static bool read_called(struct lang_memory *m, struct lang_work *k, const struct r_layout *l,
			struct naming names[static LANG_FRAMES_MAX])
{
	int head[LANG_FRAMES_MAX], rest[LANG_FRAMES_MAX];

	for (uint32_t i = 0; i < k->nr_codes; i++) {
		const uint8_t *call = lang_memory_piece(m, k->script_functions_of[i].header);

		names[i] = (struct naming){ .symbol = { bytes_u64(call + l->node_first) } };
		head[i] = want_node(m, names[i].symbol[0]);
	}
	if (!lang_memory_fetch(m))
		return false;
	for (uint32_t i = 0; i < k->nr_codes; i++) {
		const uint8_t *node = node_of(m, head[i], TYPE_CALL);

		names[i].nr = node_of(m, head[i], TYPE_SYMBOL) != NULL;
		rest[i] = -1;
		if (!node)
			continue;
		names[i].symbol[1] = bytes_u64(node + l->node_first);
		rest[i] = want_node(m, bytes_u64(node + l->node_second));
	}
	for (uint32_t part = 0; part < 2; part++) {
		if (!lang_memory_fetch(m))
			return false;
		for (uint32_t i = 0; i < k->nr_codes; i++) {
			const uint8_t *node = node_of(m, rest[i], TYPE_PAIR);

			rest[i] = -1;
			if (!node)
				continue;
			names[i].symbol[2 * part] = bytes_u64(node + l->node_first);
			names[i].nr = part ? NAME_PARTS : 0;
			if (!part)
				rest[i] = want_node(m, bytes_u64(node + l->node_second));
		}
	}
	return true;
}

/* Put together the name of function @i from the texts of its symbols. */
static void put_name(const struct lang_memory *m, struct lang_work *k, const struct r_layout *l,
		     const struct naming *n, uint32_t i)
{
	char *out = (char *)k->ruby_lines + (size_t)NAME_MAX * i;
	uint32_t used = 0;

	_Static_assert(sizeof(k->ruby_lines) >= NAME_MAX * LANG_FRAMES_MAX, "room");
	for (uint32_t part = 0; part < n->nr; part++) {
		const uint8_t *text = lang_memory_piece(m, n->piece[part]);
		uint32_t size = text ? MIN(m->pieces[n->piece[part]].size - l->vector_data,
					   NAME_MAX - 1 - used)
				     : 0;

		if (!size) {
			used = 0;
			break;
		}
		memcpy(out + used, text + l->vector_data, size);
		used += size;
	}
	out[used] = 0;
	k->functions[i].name.fixed = used ? out : "<anonymous>";
}

/* Read the texts of the symbols of new functions; another object has none. */
static bool read_names(struct lang_memory *m, struct lang_work *k, const struct r_layout *l,
		       struct naming names[static LANG_FRAMES_MAX])
{
	uint32_t fresh[NAMED_MAX], nr = 0;

	for (uint32_t i = 0; i < k->nr_codes && nr < NAMED_MAX; i++)
		if (k->script_functions_of[i].id == CODE_NONE)
			fresh[nr++] = i;
	for (int step = 0; step < 3; step++) {
		for (uint32_t at = 0; at < nr * NAME_PARTS; at++) {
			struct naming *n = &names[fresh[at / NAME_PARTS]];
			uint32_t part = at % NAME_PARTS;
			int *piece = &n->piece[part];
			const uint8_t *node;

			if (part >= n->nr)
				continue;
			if (!step) {
				*piece = want_node(m, n->symbol[part]);
				continue;
			}
			node = node_of(m, *piece, step == 1 ? TYPE_SYMBOL : TYPE_CHARS);
			if (step == 1) {
				uint64_t addr = node ? bytes_u64(node + l->node_first) : 0;

				*piece = lang_memory_is_pointer(addr)
						 ? lang_memory_want_once(m, addr, l->vector_data)
						 : -1;
			} else {
				uint64_t size = node ? bytes_u64(node + l->vector_size) : 0;

				*piece = size ? lang_memory_want_once(
							m, m->pieces[*piece].addr,
							l->vector_data +
								(uint32_t)MIN(size, NAME_MAX))
					      : -1;
			}
		}
		if (!lang_memory_fetch(m))
			return false;
	}
	for (uint32_t at = 0; at < nr; at++)
		put_name(m, k, l, &names[fresh[at]], fresh[at]);
	return true;
}

static enum lang_status codes(struct lang_reader *r, const struct lang_process *p, uint32_t process)
{
	struct lang_memory *m = &r->memory;
	struct lang_work *k = &r->work;
	struct naming names[LANG_FRAMES_MAX];

	functions_number(r, process);
	for (uint32_t i = 0; i < k->nr; i++)
		k->script_functions_of[k->code[i]].header = (int)k->function[i];
	if (!read_called(m, k, &p->r, names))
		return LANG_BAD_CHAIN;
	for (uint32_t i = 0; i < k->nr_codes; i++) {
		uint64_t s = names[i].nr;

		for (uint32_t part = 0; part < names[i].nr; part++)
			s = hash_u64(s ^ names[i].symbol[part]);
		k->script_functions_of[i].stamp = s;
		k->functions[i].file.fixed = "?";
	}
	if (functions_find(r, process) && !read_names(m, k, &p->r, names))
		return LANG_BAD_CHAIN;
	return functions_add(r, p, process, NULL);
}

/* ---- its files and processes ---- */

#define RODATA_MAX (32U << 20)
#define FIRST_YEAR 2020U /* of 4.0; a minor version has a year, and patches in the next one */
#define NEAR	   32U
#define PROOFS	   8

static const struct r_version {
	uint32_t version;
	bool compared;
	struct r_layout layout;
} versions[] = {
#define R_FIELD(name, value)
#define R_LAYOUT(major, minor, compared, ...)                                                      \
	{ (major) << 24 | (minor) << 16, compared, { __VA_ARGS__ } },
#include "symbols/script/r_layouts.inc"
#undef R_FIELD
#undef R_LAYOUT
};

/*
 * Find the version among the parts of R.version: "minor", "2.2", "year", "2022". The major version,
 * a text of one character, is elsewhere; the year tells that it is 4. A NUL follows the text.
 */
static uint32_t find_version(const char *text, size_t size)
{
	static const char first[] = "major\0minor", second[] = "year";
	const char *minor = memmem(text, size, first, sizeof(first)), *year;
	uint32_t numbers[2] = { 0 };
	char *end;

	if (!minor)
		return 0;
	minor += sizeof(first);
	year = memmem(minor, MIN(NEAR, size - (size_t)(minor - text)), second, sizeof(second));
	if (!year)
		return 0;
	year += sizeof(second);
	numbers[0] = (uint32_t)(strtoul(minor, &end, 10) & 255);
	if (*end == '.')
		numbers[1] = (uint32_t)(strtoul(end + 1, NULL, 10) & 255);
	if (strtoul(year, NULL, 10) - FIRST_YEAR - numbers[0] > 1)
		return 0;
	return 4U << 24 | numbers[0] << 16 | numbers[1] << 8;
}

static int on_file(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	Elf64_Shdr s;
	void *bytes;

	/* The program is a stub beside its library. */
	if (!out->runtime || !out->code_type || !out->version_at || !out->nr_eval)
		return -ENOENT;
	for (uint32_t i = 0; !out->version && elffile_constants(f, i, &s); i++) {
		if (s.sh_size > RODATA_MAX || elffile_read_alloc(f, s.sh_offset, s.sh_size, &bytes))
			continue;
		/* The bytes end with a NUL. */
		out->version = find_version(bytes, s.sh_size);
		free(bytes);
	}
	return 0;
}

/*
 * Prove the layout: the chain of contexts ends with that of the top level, which has no function
 * and no call. It changes while it is read.
 */
static bool is_proven(const struct lang_process *p, const struct r_layout *l, uint64_t nil,
		      pid_t pid)
{
	uint8_t context[UINT8_MAX + 1 + UINT8_MAX];
	uint64_t addr = lang_memory_word(pid, p->runtime);

	for (uint32_t i = 0; i < CONTEXTS_MAX && context_size(l) <= sizeof(context); i++) {
		if (!lang_memory_is_pointer(addr) ||
		    !lang_memory_copy(pid, addr, context, context_size(l)))
			return false;
		addr = bytes_u64(context + l->next);
		if (!addr)
			return nil && !bytes_u32(context + l->flag) &&
			       bytes_u64(context + l->function) == nil &&
			       bytes_u64(context + l->call) == nil;
	}
	return false;
}

/* Set the layout of the version that the file says. */
static bool detect(struct lang_process *p, const struct detect_file *d, pid_t pid)
{
	const struct r_version *row = NULL;
	uint64_t nil;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].version == (p->version & 0xffff0000))
			row = &versions[i];
	if (!row || d->machine != EM_X86_64) {
		p->reason = row ? "not supported on this kind of CPU (x86-64 is)"
				: "not supported (" R_READ " are)";
		return false;
	}
	p->r = row->layout;
	p->untried |= !row->compared;
	errno = 0;
	nil = lang_memory_word(pid, d->version_at + d->bias);
	for (int i = 0; i < PROOFS; i++)
		if (is_proven(p, &row->layout, nil, pid))
			return false;
	if (errno == EPERM || errno == EACCES) {
		lang_memory_refused(p);
		return false;
	}
	p->reason = "a build with other contexts than its version has, or one that begins";
	return true;
}

const struct language language_r = {
	.name = "r",
	.title = "R",
	.versions = R_SHOWN,
	.letter = 'R',
	.program = "R",
	.library = "libR",
	.shown = "Rf_initEmbeddedR",
	.runtime = "R_GlobalContext",
	.code_type = "Rf_begincontext",
	.version = "R_NilValue",
	.eval = "Rf_eval",
	.on_file = on_file,
	.detect = detect,
	.stack = chain,
	.functions = codes,
};

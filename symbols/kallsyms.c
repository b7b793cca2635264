// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse /proc/kallsyms: "address type name [module]", one symbol a line.
 *
 * Runs on: the loader. Symbols of every type are sorted, so that data ends the
 * function before it; then only text symbols stay. Lines that are not of this
 * form are passed over.
 */
#include "symbols/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/fields.h"
#include "symbols/sort.h"

#define NO_MODULE	UINT32_MAX
#define PAGE		4096ULL
#define FUNCTION_MAX	(4ULL << 20)
/* Lines are read in pieces of this size; longer ones are none. */
#define PIECE_SIZE	(64U << 10)
#define TEXT_FIRST	(1U << 20)

struct symbol_entry {
	uint64_t start;
	uint32_t size;
	uint32_t name;			/* offset in text */
	uint32_t module;		/* offset in text, or NO_MODULE */
	uint16_t name_size;
	uint8_t module_size;
	uint8_t rank;			/* 0: not text */
};

struct kallsyms {
	struct symbol_entry *symbols;
	uint32_t nr, max;
	char *text;			/* a copy of the names and modules kept */
	size_t text_size, text_max;
	uint64_t begin[2];		/* _text, _stext */
	uint32_t nr_hidden;		/* lines whose address is 0 */
};

/* One line, cut into its fields. */
struct line {
	uint64_t start;
	const char *name, *module;
	size_t name_size, module_size;
	char type;
};

/* The last word, in brackets, is the module. */
static void cut_module(struct line *out, const char *end)
{
	const char *p = end;

	while (p > out->name && !fields_is_blank(p[-1]))
		p--;
	if (p == out->name || *p != '[' || end - p < 3 || end - p > 64)
		return;
	out->module = p;
	out->module_size = (size_t)(end - p);
	while (p > out->name && fields_is_blank(p[-1]))
		p--;
	out->name_size = (size_t)(p - out->name);
}

/* Cut [p, end) into fields; false if it is not a symbol's line. */
static bool parse_line(const char *p, const char *end, struct line *out)
{
	p = fields_hex(p, end, &out->start);
	if (!p || end - p < 4 || !fields_is_blank(p[0]) || !fields_is_blank(p[2]))
		return false;
	out->type = p[1];
	out->name = p + 3;
	out->name_size = (size_t)(end - out->name);
	out->module_size = 0;
	if (end[-1] == ']')
		cut_module(out, end);
	return out->name_size && out->name_size <= KALLSYMS_NAME_MAX;
}

/*
 * Of names for one address: global over weak over local, fewer underscores
 * first; that of a 32-bit system call only if there is no other.
 */
static uint8_t rank_of(const struct line *line)
{
	uint8_t underscores = 0, bind;

	switch (line->type) {
	case 'T':
		bind = 3;
		break;
	case 'W':
	case 'w':
		bind = 2;
		break;
	case 't':
	case 'i':
		bind = 1;
		break;
	default:
		return 0;
	}
	while (underscores < 14 && underscores < line->name_size && line->name[underscores] == '_')
		underscores++;
	if (line->name_size > 7 && !memcmp(line->name, "__ia32_", 7))
		underscores++;
	return (uint8_t)(bind << 4 | (15 - underscores));
}

/* The module's text, shared with the symbol before when that is of the same module. */
static uint32_t add_module(struct kallsyms *k, const struct line *line)
{
	const struct symbol_entry *last = k->nr ? &k->symbols[k->nr - 1] : NULL;
	uint32_t offset = (uint32_t)k->text_size;

	if (!line->module_size)
		return NO_MODULE;
	if (last && last->module != NO_MODULE && last->module_size == line->module_size &&
	    !memcmp(k->text + last->module, line->module, line->module_size))
		return last->module;
	memcpy(k->text + offset, line->module, line->module_size);
	k->text_size += line->module_size;
	return offset;
}

/* Make room for one more symbol and its texts. */
static int reserve(struct kallsyms *k, const struct line *line)
{
	size_t size = line->name_size + line->module_size;

	if (k->nr == k->max) {
		uint32_t max = k->max ? k->max * 2 : 1U << 16;
		struct symbol_entry *symbols;

		if (k->nr >= KALLSYMS_SYMBOLS_MAX)
			return -E2BIG;
		symbols = reallocarray(k->symbols, max, sizeof(*symbols));
		if (!symbols)
			return -ENOMEM;
		k->symbols = symbols;
		k->max = max;
	}
	if (k->text_max - k->text_size < size) {
		size_t max = k->text_max ? k->text_max * 2 : TEXT_FIRST;
		char *text = max > KALLSYMS_TEXT_MAX ? NULL : realloc(k->text, max);

		if (!text)
			return -ENOMEM;
		k->text = text;
		k->text_max = max;
	}
	return 0;
}

static bool is_named(const struct line *line, const char *name)
{
	return line->name_size == strlen(name) && !memcmp(line->name, name, line->name_size);
}

static int add_symbol(struct kallsyms *k, const struct line *line)
{
	struct symbol_entry *s;
	uint32_t module;
	int rc = reserve(k, line);

	if (rc)
		return rc;
	if (is_named(line, "_text") || is_named(line, "_stext"))
		k->begin[is_named(line, "_stext")] = line->start;
	module = add_module(k, line);
	s = &k->symbols[k->nr++];
	*s = (struct symbol_entry){
		.start = line->start, .module = module, .rank = rank_of(line),
		.module_size = (uint8_t)line->module_size,
	};
	if (!s->rank)
		return 0;
	s->name = (uint32_t)k->text_size;
	s->name_size = (uint16_t)line->name_size;
	memcpy(k->text + k->text_size, line->name, line->name_size);
	k->text_size += line->name_size;
	return 0;
}

/* At one address the best first, then in the kernel's order. */
static int compare(const void *a, const void *b)
{
	const struct symbol_entry *x = a, *y = b;

	if (x->rank != y->rank)
		return y->rank - x->rank;
	return (x->name > y->name) - (x->name < y->name);
}

/* Sort the symbols of each address. */
static void sort_ties(struct kallsyms *k)
{
	for (uint32_t i = 0, end; i < k->nr; i = end) {
		end = i + 1;
		while (end < k->nr && k->symbols[end].start == k->symbols[i].start)
			end++;
		if (end - i > 1)
			qsort(k->symbols + i, end - i, sizeof(*k->symbols), compare);
	}
}

/* By address. Without modules and BPF programs the kernel's list is in order. */
static int sort_symbols(struct kallsyms *k)
{
	int rc = sort_records(k->symbols, k->nr, sizeof(*k->symbols),
			      offsetof(struct symbol_entry, start));

	if (!rc)
		sort_ties(k);
	return rc;
}

/*
 * Where the function @s ends: at @next, the symbol at the next address (NULL:
 * none). The last one before another module's may be far from it; it gets its
 * own page and one more.
 */
static uint32_t size_of(const struct symbol_entry *s, const struct symbol_entry *next)
{
	uint64_t size = 2 * PAGE - s->start % PAGE;

	if (next)
		size = s->module == next->module ? next->start - s->start :
						   MIN(size, next->start - s->start);
	return (uint32_t)MIN(size, FUNCTION_MAX);
}

/* Size, and drop what is no text or not the best name of its address. */
static void finish(struct kallsyms *k)
{
	const struct symbol_entry *next = NULL;
	uint64_t last = 0;
	uint32_t kept = 0;

	for (uint32_t i = k->nr; i-- > 0;) {
		struct symbol_entry *s = &k->symbols[i];

		if (i + 1 < k->nr && s[1].start != s->start)
			next = s + 1;
		s->size = size_of(s, next);
	}
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct symbol_entry *s = &k->symbols[i];

		if (!s->rank || (kept && s->start == last))
			continue;
		last = s->start;
		k->symbols[kept++] = *s;
	}
	k->nr = kept;
}

/* Give back what parsing took too much of. */
static void shrink(struct kallsyms *k)
{
	void *symbols = reallocarray(k->symbols, MAX(k->nr, 1U), sizeof(*k->symbols));
	char *text = realloc(k->text, MAX(k->text_size, 1UL));

	k->symbols = symbols ? symbols : k->symbols;
	k->text = text ? text : k->text;
	k->max = k->nr;
}

/* Take the lines of @text; a last one without its newline only if @all. Bytes used up, or -errno. */
static ssize_t take_lines(struct kallsyms *k, const char *text, size_t size, bool all)
{
	const char *p = text, *end = text + size;

	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		struct line line;

		if (!eol && !all)
			break;
		eol = eol ? eol : end;
		if (parse_line(p, eol, &line)) {
			int rc = line.start ? add_symbol(k, &line) : 0;

			if (rc)
				return rc;
			k->nr_hidden += !line.start;
		}
		p = MIN(eol + 1, end);
	}
	return p - text;
}

/* All lines are taken, or it failed with @rc: sort and publish, or say why not. */
static int finish_or_free(struct kallsyms **out, struct kallsyms *k, int rc, struct err *e)
{
	if (!rc && !k->nr)
		rc = k->nr_hidden ? -EACCES : -ENODATA;
	if (!rc)
		rc = sort_symbols(k);
	if (rc) {
		kallsyms_free(k);
		return err_set(e, rc, rc == -EACCES ? "kptr_restrict hides kernel addresses" :
						      "the kernel's symbol list cannot be used");
	}
	finish(k);
	shrink(k);
	*out = k;
	return 0;
}

int kallsyms_parse(struct kallsyms **out, const char *text, size_t size, struct err *e)
{
	struct kallsyms *k;
	ssize_t rc = -ENOMEM;

	if (size > KALLSYMS_TEXT_MAX)
		return err_set(e, -E2BIG, "the kernel's symbol list is too large");
	k = calloc(1, sizeof(*k));
	if (k)
		rc = take_lines(k, text, size, true);
	return finish_or_free(out, k, rc < 0 ? (int)rc : 0, e);
}

/* Read @fd to its end through @piece. */
static int take_file(struct kallsyms *k, int fd, char *piece)
{
	size_t have = 0, total = 0;

	for (;;) {
		ssize_t nr = read(fd, piece + have, PIECE_SIZE - have), used;

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0)
			return -errno;
		have += (size_t)nr;
		total += (size_t)nr;
		if (total > KALLSYMS_TEXT_MAX)
			return -E2BIG;
		used = take_lines(k, piece, have, !nr);
		if (used < 0 || !nr)
			return used < 0 ? (int)used : 0;
		if (!used && have == PIECE_SIZE)
			return -EINVAL;
		have -= (size_t)used;
		memmove(piece, piece + used, have);
	}
}

int kallsyms_read(struct kallsyms **out, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	struct kallsyms *k;
	char *piece;

	if (fd < 0)
		return err_set(e, -errno, "the kernel's symbol list cannot be opened");
	k = calloc(1, sizeof(*k));
	piece = malloc(PIECE_SIZE);
	rc = k && piece ? take_file(k, fd, piece) : -ENOMEM;
	free(piece);
	close(fd);
	return finish_or_free(out, k, rc, e);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k->text);
	free(k);
}

bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out)
{
	const struct symbol_entry *s;
	uint32_t lo = 0, hi = k->nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (k->symbols[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return false;
	s = &k->symbols[lo - 1];
	if (addr - s->start >= s->size)
		return false;
	*out = (struct kallsyms_symbol){
		.start = s->start, .size = s->size,
		.name = k->text + s->name, .name_size = s->name_size,
		.module = s->module == NO_MODULE ? NULL : k->text + s->module,
		.module_size = s->module_size,
	};
	return true;
}

uint64_t kallsyms_begin(const struct kallsyms *k, bool stext)
{
	return k->begin[stext];
}

uint32_t kallsyms_nr(const struct kallsyms *k)
{
	return k->nr;
}

size_t kallsyms_memory(const struct kallsyms *k)
{
	return sizeof(*k) + k->max * sizeof(*k->symbols) + k->text_size;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parse /proc/kallsyms: "address type name [module]", one symbol per line.
 *
 * Runs on: a helper, or in the cage. The text is kept as it is, with a table of its lines by
 * address. Symbols of every type are in it, so that data ends the function before it, but only the
 * best of each address. Other lines are skipped.
 */
#include "symbols/kernel/kallsyms.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/array.h"
#include "symbols/base/fields.h"
#include "symbols/base/search.h"
#include "symbols/base/sort.h"

#define PAGE	     4096ULL
#define FUNCTION_MAX (4ULL << 20)
#define DIGITS	     16
#define LINE_MIN     21U /* 16 digits, " t x" and a newline */
#define LINE_MAX     4096
#define TEXT_FIRST   (16U << 20)
#define NR_FIRST     (1U << 18)

/* A symbol: where its line is. Its name is read when it is needed, for few of them are. */
struct symbol_entry {
	uint64_t start;
	uint32_t line; /* offset in text */
	uint16_t size; /* of the line */
	uint8_t bind;  /* 3 global, 2 weak, 1 local; 0: not text */
};

struct kallsyms {
	struct symbol_entry *symbols;
	uint32_t nr, max;
	uint32_t nr_functions; /* symbols of type text */
	bool unordered;	       /* while reading: not sorted */
	char *text;	       /* as read */
	size_t text_size, text_max;
	uint64_t begin[2];  /* _text, _stext */
	uint32_t nr_hidden; /* lines with address 0 */
	uint64_t upper;	    /* half of the last address, and its digits */
	char upper_digits[8];
};

/* The fields of a line. */
struct line {
	uint64_t start;
	const char *name, *module;
	size_t name_size, module_size;
	uint8_t type;
};

/* The source of the text: a file or memory. */
struct source {
	int fd; /* -1: memory */
	const char *text;
	size_t size;
};

/* Rank of a symbol by its type letter. */
static const uint8_t binds[256] = { ['T'] = 3, ['W'] = 2, ['w'] = 2, ['t'] = 1, ['i'] = 1 };

/* Take off the last word if it is a module in brackets. */
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

#define EACH_BYTE(x) (0x0101010101010101ULL * (x))

/*
 * Read exactly eight hex digits, all at a time: a kernel has 100,000 symbols and more. Digits that
 * are not as a kernel writes them, in lower case, are read one by one.
 */
static inline bool parse_half(const char *p, uint64_t *out)
{
	uint64_t text, digits, letters, again;

	memcpy(&text, p, 8);
	/* Bit 6 is set in letters; 'a' ends with 1. */
	digits = (text & EACH_BYTE(15)) + (text >> 6 & EACH_BYTE(1)) * 9;
	letters = (digits + EACH_BYTE(6)) >> 4 & EACH_BYTE(1);
	again = digits + EACH_BYTE('0') + letters * ('a' - '0' - 10);
	if (again != text || digits & EACH_BYTE(0xf0))
		return fields_hex(p, p + 8, out) == p + 8;
	digits = be64toh(digits);
	digits = (digits | digits >> 4) & 0x00ff00ff00ff00ffULL;
	digits = (digits | digits >> 8) & 0x0000ffff0000ffffULL;
	*out = (digits | digits >> 16) & 0xffffffffULL;
	return true;
}

/* Read the 16 digits of an address; neighbours mostly share the upper half. */
static inline const char *parse_address(struct kallsyms *k, const char *p, const char *end,
					uint64_t *out)
{
	if (end - p <= 16)
		return NULL;
	if (memcmp(p, k->upper_digits, 8)) {
		if (!parse_half(p, &k->upper))
			return NULL;
		memcpy(k->upper_digits, p, 8);
	}
	if (!parse_half(p + 8, out))
		return NULL;
	*out |= k->upper << 32;
	return p + 16;
}

/* Split [p, end), the line behind its address, into fields; false: not a line of a symbol. */
static inline bool split_rest(const char *p, const char *end, struct line *out)
{
	if (end - p < 4 || end - p > LINE_MAX || !fields_is_blank(p[0]) || !fields_is_blank(p[2]))
		return false;
	out->type = (uint8_t)p[1];
	out->name = p + 3;
	out->name_size = (size_t)(end - out->name);
	out->module = NULL;
	out->module_size = 0;
	if (end[-1] == ']')
		cut_module(out, end);
	return out->name_size && out->name_size <= KALLSYMS_NAME_MAX;
}

/* Split [p, end) into fields; false: not a line of a symbol. */
static bool parse_line(struct kallsyms *k, const char *p, const char *end, struct line *out)
{
	p = parse_address(k, p, end, &out->start);
	return p && split_rest(p, end, out);
}

/* Read the line of @s again. */
static bool line_of(const struct kallsyms *k, const struct symbol_entry *s, struct line *out)
{
	const char *p = k->text + s->line;

	out->start = s->start;
	return split_rest(p + DIGITS, p + s->size, out);
}

/*
 * Rank names of one address: global over weak over local, fewer underscores first;
 * the name of a 32-bit system call last.
 */
static unsigned int rank_of(const struct kallsyms *k, const struct symbol_entry *s)
{
	unsigned int underscores = 0;
	struct line line;

	if (!s->bind || !line_of(k, s, &line))
		return 0;
	while (underscores < 14 && underscores < line.name_size && line.name[underscores] == '_')
		underscores++;
	if (line.name_size > 7 && !memcmp(line.name, "__ia32_", 7))
		underscores++;
	return s->bind * 16U + 15 - underscores;
}

static void note_begin(struct kallsyms *k, const struct line *line)
{
	if (line->name_size == 5 && !memcmp(line->name, "_text", 5))
		k->begin[0] = line->start;
	if (line->name_size == 6 && !memcmp(line->name, "_stext", 6))
		k->begin[1] = line->start;
}

/*
 * Add the symbol behind the last one to the table; of two symbols at one address keep the better
 * one, of equal ones the first.
 */
static inline void keep(struct kallsyms *k)
{
	struct symbol_entry *s = &k->symbols[k->nr], *last = k->nr ? s - 1 : NULL;

	assert(k->nr < k->max);
	if (last && s->start == last->start) {
		if (rank_of(k, s) <= rank_of(k, last))
			return;
		k->nr_functions -= last->bind != 0;
		k->nr_functions += s->bind != 0;
		*last = *s;
		return;
	}
	k->unordered |= last && s->start < last->start;
	k->nr_functions += s->bind != 0;
	k->nr++;
}

/* Add the symbol of the line that ends before @eol. */
static void add_symbol(struct kallsyms *k, const struct line *line, const char *eol)
{
	const char *p = line->name - DIGITS - 3;

	k->symbols[k->nr] = (struct symbol_entry){
		.start = line->start,
		.line = (uint32_t)(p - k->text),
		.size = (uint16_t)(eol - p),
		.bind = binds[line->type],
	};
	note_begin(k, line);
	keep(k);
}

/*
 * Sort by address. Symbols of the kernel itself are in order, symbols of modules and BPF programs
 * are not, and symbols of one address may be apart.
 */
static int sort_symbols(struct kallsyms *k)
{
	uint32_t nr = k->nr;
	int rc;

	if (!k->unordered)
		return 0;
	rc = sort_by_number(k->symbols, nr, sizeof(*k->symbols));
	if (rc)
		return rc;
	k->nr = k->nr_functions = 0;
	for (uint32_t i = 0; i < nr; i++) {
		k->symbols[k->nr] = k->symbols[i];
		keep(k);
	}
	return 0;
}

/* Compare the modules of two lines. */
static bool same_module(const struct line *a, const struct line *b)
{
	return a->module_size == b->module_size &&
	       (!a->module_size || !memcmp(a->module, b->module, a->module_size));
}

/*
 * Return the size of @s, whose line is @line, up to @next, the symbol at the next address (NULL:
 * none). The last symbol before another module ends with the page after its start at the
 * latest.
 */
static uint32_t size_of(const struct kallsyms *k, const struct symbol_entry *s,
			const struct line *line, const struct symbol_entry *next)
{
	uint64_t size = 2 * PAGE - s->start % PAGE;
	struct line after;

	if (next)
		size = line_of(k, next, &after) && same_module(line, &after)
			       ? next->start - s->start
			       : MIN(size, next->start - s->start);
	return (uint32_t)MIN(size, FUNCTION_MAX);
}

/* Free unused memory. */
static void shrink(struct kallsyms *k)
{
	void *symbols = reallocarray(k->symbols, MAX(k->nr, 1U), sizeof(*k->symbols));
	char *text = realloc(k->text, MAX(k->text_size, 1UL));

	k->symbols = symbols ? symbols : k->symbols;
	k->text = text ? text : k->text;
	k->max = k->nr;
}

/* Parse all lines of @size bytes at @text, in the table; each has its newline. */
static int take_lines(struct kallsyms *k, const char *text, size_t size)
{
	const char *p = text, *end = text + size, *eol;

	if (k->nr >= KALLSYMS_SYMBOLS_MAX)
		return -E2BIG;
	if (!array_reserve(&k->symbols, &k->max, (uint64_t)k->nr + size / LINE_MIN + 1))
		return -ENOMEM;
	for (; p < end; p = eol + 1) {
		struct line line;

		eol = memchr(p, '\n', (size_t)(end - p));
		if (!parse_line(k, p, eol, &line))
			continue;
		if (line.start)
			add_symbol(k, &line, eol);
		else
			k->nr_hidden++;
	}
	return 0;
}

/* Sort and publish the table, or return why not (@rc: the result so far). */
static int finish_or_free(struct kallsyms **out, struct kallsyms *k, int rc, struct err *e)
{
	if (!rc && !k->nr)
		rc = k->nr_hidden ? -EACCES : -ENODATA;
	if (!rc)
		rc = sort_symbols(k);
	if (rc) {
		kallsyms_free(k);
		return err_set(e, rc,
			       rc == -EACCES ? "kptr_restrict hides kernel addresses"
					     : "cannot use the kernel symbol list");
	}
	shrink(k);
	*out = k;
	return 0;
}

/* Reserve the text for more bytes: one of them for the newline of the last line. */
static int reserve_text(struct kallsyms *k)
{
	size_t max = k->text_max * 2;
	char *text;

	if (k->text_max - k->text_size > 1)
		return 0;
	if (k->text_size >= KALLSYMS_TEXT_MAX)
		return -E2BIG;
	text = realloc(k->text, max);
	if (!text)
		return -ENOMEM;
	k->text = text;
	k->text_max = max;
	return 0;
}

/* Read more; 0 at the end, or -errno. */
static ssize_t read_source(struct source *from, char *to, size_t size)
{
	ssize_t nr;

	if (from->fd < 0) {
		size = MIN(size, from->size);
		memcpy(to, from->text, size);
		from->text += size;
		from->size -= size;
		return (ssize_t)size;
	}
	do
		nr = read(from->fd, to, size);
	while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : nr;
}

/* Read @from to its end. The kernel writes a page at a time, which is parsed while it is warm. */
static int take_source(struct kallsyms *k, struct source *from)
{
	bool end = false;
	size_t parsed = 0;
	int rc = 0;

	while (!rc && !end && !(rc = reserve_text(k))) {
		char *to = k->text + k->text_size, *eol;
		ssize_t nr = read_source(from, to, k->text_max - k->text_size - 1);

		if (nr < 0)
			return (int)nr;
		end = !nr;
		if (end)
			to[nr++] = '\n'; /* the last line may have none */
		k->text_size += (size_t)nr;
		eol = memrchr(to, '\n', (size_t)nr);
		if (!eol)
			continue;
		rc = take_lines(k, k->text + parsed, (size_t)(eol + 1 - k->text) - parsed);
		parsed = (size_t)(eol + 1 - k->text);
	}
	return rc;
}

static int make(struct kallsyms **out, struct source *from, struct err *e)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	bool sized = from->fd < 0; /* a file does not tell its size */
	int rc = -ENOMEM;

	if (k) {
		k->text_max = sized ? MIN(from->size, (size_t)KALLSYMS_TEXT_MAX) + 2 : TEXT_FIRST;
		k->max = sized ? (uint32_t)(k->text_max / LINE_MIN) + 1 : NR_FIRST;
		k->symbols = alloc_to_fill(k->max * sizeof(*k->symbols));
		k->text = alloc_to_fill(k->text_max);
	}
	if (k && k->symbols && k->text)
		rc = take_source(k, from);
	return finish_or_free(out, k, rc, e);
}

int kallsyms_parse(struct kallsyms **out, const char *text, size_t size, struct err *e)
{
	struct source from = { .fd = -1, .text = text, .size = size };

	return make(out, &from, e);
}

int kallsyms_read(struct kallsyms **out, int fd, struct err *e)
{
	struct source from = { .fd = fd };

	return make(out, &from, e);
}

/* ---- flat bytes: this head, the symbols, the text ---- */

struct flat {
	uint64_t begin[2];
	uint32_t nr, text_size;
};

void kallsyms_put(const struct kallsyms *k, struct cage_reply *reply)
{
	const struct flat flat = {
		.begin = { k->begin[0], k->begin[1] },
		.nr = k->nr,
		.text_size = (uint32_t)k->text_size,
	};

	cage_put(reply, &flat, sizeof(flat));
	cage_put(reply, k->symbols, k->nr * sizeof(*k->symbols));
	cage_put(reply, k->text, k->text_size);
}

/* Check the symbols: ascending, their lines inside, with that address. Count functions. */
static bool check_symbols(struct kallsyms *k)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct symbol_entry *s = &k->symbols[i];
		const char *p = k->text + s->line;
		struct line line;

		if ((i && s->start <= s[-1].start) || s->line > k->text_size ||
		    s->size > k->text_size - s->line || !parse_line(k, p, p + s->size, &line) ||
		    line.start != s->start || binds[line.type] != s->bind ||
		    memchr(p, '\n', s->size))
			return false;
		k->nr_functions += s->bind != 0;
	}
	return true;
}

int kallsyms_adopt(struct kallsyms **out, const uint8_t *bytes, size_t size)
{
	struct kallsyms *k;
	struct flat flat;
	uint64_t table;

	if (size < sizeof(flat))
		return -EBADMSG;
	memcpy(&flat, bytes, sizeof(flat));
	table = (uint64_t)flat.nr * sizeof(*k->symbols);
	if (!flat.nr || flat.text_size > KALLSYMS_TEXT_MAX ||
	    sizeof(flat) + table + flat.text_size != size)
		return -EBADMSG;
	k = calloc(1, sizeof(*k));
	if (k) {
		k->symbols = malloc(table);
		k->text = malloc(MAX(flat.text_size, 1U));
	}
	if (!k || !k->symbols || !k->text) {
		kallsyms_free(k);
		return -ENOMEM;
	}
	k->nr = k->max = flat.nr;
	k->text_size = k->text_max = flat.text_size;
	memcpy(k->begin, flat.begin, sizeof(k->begin));
	memcpy(k->symbols, bytes + sizeof(flat), table);
	memcpy(k->text, bytes + sizeof(flat) + table, flat.text_size);
	if (!check_symbols(k)) {
		kallsyms_free(k);
		return -EBADMSG;
	}
	*out = k;
	return 0;
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
	uint32_t lo = search_split(k->nr, i, k->symbols[i].start <= addr), size;
	const struct symbol_entry *s = lo ? &k->symbols[lo - 1] : NULL;
	struct line line;

	if (!s || !s->bind || !line_of(k, s, &line))
		return false;
	size = size_of(k, s, &line, lo < k->nr ? s + 1 : NULL);
	if (addr - s->start >= size)
		return false;
	*out = (struct kallsyms_symbol){
		.start = s->start,
		.size = size,
		.name = line.name,
		.name_size = (uint32_t)line.name_size,
		.module = line.module,
		.module_size = (uint32_t)line.module_size,
	};
	return true;
}

uint64_t kallsyms_begin(const struct kallsyms *k, bool stext)
{
	return k->begin[stext];
}

uint32_t kallsyms_nr(const struct kallsyms *k)
{
	return k->nr_functions;
}

size_t kallsyms_memory(const struct kallsyms *k)
{
	return sizeof(*k) + k->max * sizeof(*k->symbols) + k->text_size;
}

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

#define NO_MODULE	UINT32_MAX
#define PAGE		4096ULL
#define FUNCTION_MAX	(4ULL << 20)

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
	size_t text_size;
	uint32_t nr_hidden;		/* lines whose address is 0 */
};

/* One line, cut into its fields. */
struct line {
	uint64_t start;
	const char *name, *module;
	size_t name_size, module_size;
	char type;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Step over bytes that are not blank; their number. */
static size_t word_size(const char *p, const char *end)
{
	size_t size = 0;

	while (p + size < end && !is_blank(p[size]))
		size++;
	return size;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Read the address at *p, at most 16 digits. */
static bool parse_address(const char **p, const char *end, uint64_t *out)
{
	const char *start = *p;

	*out = 0;
	while (*p < end && *p - start < 16 && hex_digit(**p) >= 0)
		*out = *out << 4 | (uint64_t)hex_digit(*(*p)++);
	return *p > start && *p < end && is_blank(**p);
}

/* Cut [p, end) into fields; false if it is not a symbol's line. */
static bool parse_line(const char *p, const char *end, struct line *out)
{
	if (!parse_address(&p, end, &out->start) || end - p < 4 || !is_blank(p[2]))
		return false;
	out->type = p[1];
	p += 3;
	out->name = p;
	out->name_size = word_size(p, end);
	p += out->name_size;
	while (p < end && is_blank(*p))
		p++;
	out->module = p;
	out->module_size = word_size(p, end);
	if (out->module_size < 3 || out->module_size > 64 || p[0] != '[' ||
	    p[out->module_size - 1] != ']')
		out->module_size = 0;
	return out->name_size && out->name_size <= KALLSYMS_NAME_MAX;
}

/* Of names for one address: global over weak over local, fewer underscores first. */
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
	while (underscores < 15 && underscores < line->name_size && line->name[underscores] == '_')
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

/* Keep one symbol. k->text has room: it is as large as all input. */
static int add_symbol(struct kallsyms *k, const struct line *line)
{
	struct symbol_entry *s;
	uint32_t module;

	if (k->nr == k->max) {
		uint32_t max = k->max ? k->max * 2 : 1U << 16;

		if (k->nr >= KALLSYMS_SYMBOLS_MAX)
			return -E2BIG;
		s = reallocarray(k->symbols, max, sizeof(*s));
		if (!s)
			return -ENOMEM;
		k->symbols = s;
		k->max = max;
	}
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

/* By address; at one address the best first, then in the kernel's order. */
static int compare(const void *a, const void *b)
{
	const struct symbol_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return y->rank - x->rank;
	return (x->name > y->name) - (x->name < y->name);
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

/* Sort, size, and drop what is no text or not the best name of its address. */
static void finish(struct kallsyms *k)
{
	const struct symbol_entry *next = NULL;
	uint64_t last = 0;
	uint32_t kept = 0;

	qsort(k->symbols, k->nr, sizeof(*k->symbols), compare);
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

/* Take all lines of @text. */
static int parse_lines(struct kallsyms *k, const char *text, size_t size)
{
	const char *end = text + size;

	for (const char *p = text; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		struct line line;

		eol = eol ? eol : end;
		if (parse_line(p, eol, &line)) {
			int rc = line.start ? add_symbol(k, &line) : 0;

			if (rc)
				return rc;
			k->nr_hidden += !line.start;
		}
		p = eol + 1;
	}
	if (k->nr)
		return 0;
	return k->nr_hidden ? -EACCES : -ENODATA;
}

int kallsyms_parse(struct kallsyms **out, const char *text, size_t size, struct err *e)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int rc = -ENOMEM;

	if (size > KALLSYMS_TEXT_MAX) {
		free(k);
		return err_set(e, -E2BIG, "the kernel's symbol list is too large");
	}
	if (k)
		k->text = malloc(size + 1);
	if (k && k->text)
		rc = parse_lines(k, text, size);
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

/* Read all of @fd, a file of /proc whose size nobody tells beforehand. */
static int read_all(int fd, char **out, size_t *size)
{
	size_t max = 4U << 20;
	char *text = malloc(max);
	ssize_t nr;

	*out = NULL;
	*size = 0;
	while (text) {
		nr = read(fd, text + *size, max - *size);
		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0) {
			nr = -errno;
			free(text);
			return (int)nr;
		}
		if (nr == 0) {
			*out = text;
			return 0;
		}
		*size += (size_t)nr;
		if (*size == max) {
			char *more = max < KALLSYMS_TEXT_MAX ? realloc(text, max *= 2) : NULL;

			if (!more)
				free(text);
			text = more;
		}
	}
	return -ENOMEM;
}

int kallsyms_read(struct kallsyms **out, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text;
	size_t size;
	int rc;

	if (fd < 0)
		return err_set(e, -errno, "the kernel's symbol list cannot be opened");
	rc = read_all(fd, &text, &size);
	close(fd);
	if (rc)
		return err_set(e, rc, "the kernel's symbol list cannot be read");
	rc = kallsyms_parse(out, text, size, e);
	free(text);
	return rc;
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

uint32_t kallsyms_nr(const struct kallsyms *k)
{
	return k->nr;
}

size_t kallsyms_memory(const struct kallsyms *k)
{
	return sizeof(*k) + k->max * sizeof(*k->symbols) + k->text_size;
}

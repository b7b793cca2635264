// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Symbols of the kernel and its modules: the job that reads them, their copy and that of
 * /proc/kcore in the sandbox.
 *
 * Runs on: a helper, or in the sandbox. The text is kept as it is, with a table of its lines by
 * address. Symbols of every type are in it, so that data ends the function before it, but only the
 * best of each address. Other lines are skipped.
 */
#include "symbols/kernel/kernel.h"

#include <assert.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/sandbox/sandbox.h"

#define KALLSYMS_NAME_MAX    1024U
#define KALLSYMS_TEXT_MAX    (256U << 20)
#define KALLSYMS_SYMBOLS_MAX (4U << 20)
#define PAGE		     4096ULL
#define FUNCTION_MAX	     (4ULL << 20)
#define DIGITS		     16
#define LINE_MIN	     21U /* 16 digits, " t x" and a newline */
#define LINE_MAX	     4096
#define TEXT_FIRST	     (16U << 20)
#define NR_FIRST	     (1U << 18)

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
	uint64_t base;	    /* a stored list: of its addresses; 0: they are addresses */
	const void *stored; /* its file, mapped: symbols and text are in it; NULL: it was read */
	size_t stored_size;
	struct kallsyms *core; /* the kernel's, stored: the others are here; NULL: all are here */
	uint32_t nr_hidden;    /* lines with address 0 */
	uint64_t upper;	       /* half of the last address, and its digits */
	char upper_digits[8];
};

/* The fields of a line. */
struct kallsyms_line {
	uint64_t start;
	const char *name, *module;
	size_t name_size, module_size;
	uint8_t type;
};

/* Rank of a symbol by its type letter. */
static const uint8_t binds[256] = { ['T'] = 3, ['W'] = 2, ['w'] = 2, ['t'] = 1, ['i'] = 1 };

/* Take off the last word if it is a module in brackets. */
static void cut_module(struct kallsyms_line *out, const char *end)
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
static inline bool split_rest(const char *p, const char *end, struct kallsyms_line *out)
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
static bool parse_line(struct kallsyms *k, const char *p, const char *end,
		       struct kallsyms_line *out)
{
	p = parse_address(k, p, end, &out->start);
	return p && split_rest(p, end, out);
}

/* Read the line of @s again. One of a stored list has no digits, and may be damaged. */
static bool line_of(const struct kallsyms *k, const struct symbol_entry *s,
		    struct kallsyms_line *out)
{
	const char *p = k->text + s->line;

	out->start = s->start;
	if (s->line > k->text_size || s->size > k->text_size - s->line)
		return false;
	return split_rest(k->stored ? p : p + DIGITS, p + s->size, out);
}

/*
 * Rank names of one address: global over weak over local, fewer underscores first;
 * the name of a 32-bit system call last.
 */
static unsigned int rank_of(const struct kallsyms *k, const struct symbol_entry *s)
{
	unsigned int underscores = 0;
	struct kallsyms_line line;

	if (!s->bind || !line_of(k, s, &line))
		return 0;
	while (underscores < 14 && underscores < line.name_size && line.name[underscores] == '_')
		underscores++;
	if (line.name_size > 7 && !memcmp(line.name, "__ia32_", 7))
		underscores++;
	return s->bind * 16U + 15 - underscores;
}

static void note_begin(struct kallsyms *k, const struct kallsyms_line *line)
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
static void add_symbol(struct kallsyms *k, const struct kallsyms_line *line, const char *eol)
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
static bool same_module(const struct kallsyms_line *a, const struct kallsyms_line *b)
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
			const struct kallsyms_line *line, const struct symbol_entry *next)
{
	uint64_t size = 2 * PAGE - s->start % PAGE;
	struct kallsyms_line after;

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
		struct kallsyms_line line;

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
static ssize_t read_source(int fd, char *to, size_t size)
{
	ssize_t nr;

	do
		nr = read(fd, to, size);
	while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : nr;
}

/* Read @fd to its end. The kernel writes a page at a time, which is parsed while it is warm. */
static int take_source(struct kallsyms *k, int fd)
{
	bool end = false;
	size_t parsed = 0;
	int rc = 0;

	while (!rc && !end && !(rc = reserve_text(k))) {
		char *to = k->text + k->text_size, *eol;
		ssize_t nr = read_source(fd, to, k->text_max - k->text_size - 1);

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

/*
 * Read and parse the file @fd, a list of symbols, to its end. 0, -EACCES (all addresses hidden by
 * kptr_restrict), -ENODATA (no symbols), -ENOMEM, -E2BIG, or an error of reading.
 */
static int kallsyms_read(struct kallsyms **out, int fd, struct err *e)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int rc = -ENOMEM;

	assert(fd >= 0);
	if (k) {
		k->text_max = TEXT_FIRST; /* a file does not tell its size */
		k->max = NR_FIRST;
		k->symbols = alloc_to_fill(k->max * sizeof(*k->symbols));
		k->text = alloc_to_fill(k->text_max);
	}
	if (k && k->symbols && k->text)
		rc = take_source(k, fd);
	return finish_or_free(out, k, rc, e);
}

/* ---- flat bytes: this head, the symbols, the text ---- */

struct flat {
	uint64_t begin[2];
	uint32_t nr, text_size;
};

/* Append a table as flat bytes. */
static void kallsyms_put(const struct kallsyms *k, struct sandbox_reply *reply)
{
	const struct flat flat = {
		.begin = { k->begin[0], k->begin[1] },
		.nr = k->nr,
		.text_size = (uint32_t)k->text_size,
	};

	sandbox_put(reply, &flat, sizeof(flat));
	sandbox_put(reply, k->symbols, k->nr * sizeof(*k->symbols));
	sandbox_put(reply, k->text, k->text_size);
}

/* Check the symbols: ascending, their lines inside, with that address. Count functions. */
static bool check_symbols(struct kallsyms *k)
{
	for (uint32_t i = 0; i < k->nr; i++) {
		const struct symbol_entry *s = &k->symbols[i];
		const char *p = k->text + s->line;
		struct kallsyms_line line;

		if ((i && s->start <= s[-1].start) || s->line > k->text_size ||
		    s->size > k->text_size - s->line || !parse_line(k, p, p + s->size, &line) ||
		    line.start != s->start || binds[line.type] != s->bind ||
		    memchr(p, '\n', s->size))
			return false;
		k->nr_functions += s->bind != 0;
	}
	return true;
}

/* Make a table of a copy of foreign flat bytes, checked. 0, -EBADMSG or -ENOMEM. */
static int kallsyms_adopt(struct kallsyms **out, const uint8_t *bytes, size_t size)
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
	kallsyms_free(k->core);
	if (k->stored) {
		munmap((void *)k->stored, k->stored_size);
	} else {
		free(k->symbols);
		free(k->text);
	}
	free(k);
}

bool kallsyms_find(const struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *out)
{
	uint64_t at = addr - k->base;
	uint32_t lo = search_split(k->nr, i, k->symbols[i].start <= at), size;
	const struct symbol_entry *s = lo ? &k->symbols[lo - 1] : NULL;
	struct kallsyms_line line;

	if (k->core && kallsyms_find(k->core, addr, out))
		return true;
	if (!s || !s->bind || !line_of(k, s, &line))
		return false;
	size = size_of(k, s, &line, lo < k->nr ? s + 1 : NULL);
	if (at - s->start >= size)
		return false;
	*out = (struct kallsyms_symbol){
		.start = k->base + s->start,
		.size = size,
		.name = line.name,
		.name_size = (uint32_t)line.name_size,
		.module = line.module,
		.module_size = (uint32_t)line.module_size,
	};
	assert(at >= s->start && at - s->start < size);
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

size_t kallsyms_rest(const struct kallsyms *k)
{
	const struct kallsyms *file = k->core ? k->core : k;

	if (file->stored)
		madvise((void *)file->stored, file->stored_size, MADV_DONTNEED);
	return sizeof(*k) + (k->stored ? 0 : k->max * sizeof(*k->symbols) + k->text_size);
}

/*
 * The list of the kernel itself, stored: the kernel takes 30 to 40 ms to write its list, more than
 * a replay takes without it. The file has offsets from _text, no addresses, so it is valid after a
 * restart, for the kernel with its build-id, and does not tell the address of the kernel. Symbols
 * of modules and of generated code are not in it: for them the kernel's list is read, of which only
 * they are kept: 7 MB of 120,000 symbols are the kernel's own.
 *
 * Root writes it, others may use it. It is mapped: a new one replaces it, none is changed.
 */

#define STORE_MAGIC    "kernel 1"
#define STORE_HEAD_MAX (64U << 10) /* bytes of the kernel's list until _text, to compare */

static const char *store_parent = "/var/cache", *store_name = "proftop";

struct store_head {
	char magic[8];
	uint8_t build_id[20];
	uint32_t nr, nr_functions, text_size;
	uint64_t stext;
};

/* Open the folder; @make: make it first. A descriptor, or -1: none that only root can change. */
static int store_open(bool make_it)
{
	int parent = open(store_parent, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;

	if (parent < 0)
		return -1;
	if (make_it)
		mkdirat(parent, store_name, 0755);
	fd = openat(parent, store_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(parent);
	if (fd >= 0 && !fstat(fd, &st) && !st.st_uid && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Fill the head of the running kernel; false: its build-id is unknown. */
static bool store_begin(struct store_head *head)
{
	memset(head, 0, sizeof(*head));
	memcpy(head->magic, STORE_MAGIC, sizeof(head->magic)); /* without its NUL */
	return recorded_kernel_build_id("/sys/kernel/notes", head->build_id,
					sizeof(head->build_id)) == sizeof(head->build_id);
}

/* Map the file @fd into @k if it is one of the kernel of @want. */
static bool store_map(struct kallsyms *k, int fd, const struct store_head *want)
{
	const struct store_head *head;
	struct stat st;
	void *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid ||
	    st.st_mode & (S_IWGRP | S_IWOTH) || st.st_size < (off_t)sizeof(*head) ||
	    st.st_size > (off_t)KALLSYMS_TEXT_MAX)
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	head = map;
	k->stored = map;
	k->stored_size = (size_t)st.st_size;
	k->nr = k->max = head->nr;
	k->nr_functions = head->nr_functions;
	k->symbols = (struct symbol_entry *)(void *)((char *)map + sizeof(*head));
	k->text = (char *)(k->symbols + k->nr);
	k->text_size = head->text_size;
	k->begin[1] = head->stext;
	return !memcmp(head, want, offsetof(struct store_head, nr)) && k->nr &&
	       sizeof(*head) + k->nr * sizeof(*k->symbols) + k->text_size == k->stored_size;
}

/*
 * Find where _text is now in the list of the kernel, @text, and whether the addresses behind it in
 * @text are also in @k.
 */
static bool store_place(struct kallsyms *k, const char *text, size_t size)
{
	const char *p = text, *end = text + size, *eol;
	struct kallsyms now = { 0 };
	struct kallsyms_line line;
	uint32_t at;

	for (; (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1) {
		if (!parse_line(&now, p, eol, &line))
			return false;
		note_begin(&now, &line);
		if (!now.begin[0])
			continue;
		at = search_split(k->nr, i, k->symbols[i].start < line.start - now.begin[0]);
		if (at == k->nr || k->symbols[at].start != line.start - now.begin[0])
			return false;
	}
	k->base = now.begin[0];
	return k->base;
}

/* Use the stored list for the kernel of the list @fd. 0 or -ENOENT; then @fd is at its start. */
static int store_take(struct kallsyms **out, int fd)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	char *text = malloc(STORE_HEAD_MAX);
	int dir = store_open(false), file = -1;
	struct store_head head;
	bool found = false;
	size_t size = 0;
	ssize_t nr;

	if (dir >= 0)
		file = openat(dir, "kernel", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (k && text && file >= 0 && store_begin(&head) && store_map(k, file, &head)) {
		while (!found && size < STORE_HEAD_MAX &&
		       (nr = read(fd, text + size, STORE_HEAD_MAX - size)) > 0) {
			size += (size_t)nr;
			found = memmem(text, size, " _text\n", 7);
		}
		found = found && store_place(k, text, size);
	}
	free(text);
	if (file >= 0)
		close(file);
	if (dir >= 0)
		close(dir);
	if (found) {
		k->begin[0] = k->base;
		k->begin[1] += k->base;
		*out = k;
		return 0;
	}
	kallsyms_free(k);
	return lseek(fd, 0, SEEK_SET) ? -EIO : -ENOENT;
}

/* Write the symbols of the kernel itself in @k, their text behind them. */
static bool store_write(const struct kallsyms *k, struct store_head *head, FILE *file)
{
	uint64_t text = k->begin[0];
	struct kallsyms_line line;

	head->stext = k->begin[1] - text;
	fseek(file, sizeof(*head), SEEK_SET);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < k->nr; i++) {
			struct symbol_entry s = k->symbols[i];

			if (s.start < text || !line_of(k, &s, &line) || line.module)
				continue;
			s.size -= DIGITS;
			if (pass) {
				fwrite(k->text + s.line + DIGITS, s.size, 1, file);
				continue;
			}
			s.start -= text;
			s.line = head->text_size;
			fwrite(&s, sizeof(s), 1, file);
			head->text_size += s.size;
			head->nr_functions += s.bind != 0;
			head->nr++;
		}
	}
	rewind(file);
	fwrite(head, sizeof(*head), 1, file);
	return !fflush(file) && !ferror(file);
}

/* Store @k for the next start; without the right or the room for it none is stored. */
static void store_put(const struct kallsyms *k)
{
	struct store_head head;
	char path[32];
	FILE *file;
	int dir, fd;

	if (geteuid() || !k->begin[0] || k->begin[1] < k->begin[0] || !store_begin(&head))
		return;
	dir = store_open(true);
	fd = dir < 0 ? -1 : openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (file && !fchmod(fd, 0644) && store_write(k, &head, file)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		while (linkat(AT_FDCWD, path, dir, "kernel", AT_SYMLINK_FOLLOW) &&
		       errno == EEXIST && !unlinkat(dir, "kernel", 0))
			continue;
	}
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
}

/* Keep the symbols of @k that @core has not, with their lines; @core is borrowed. */
static int keep_others(struct kallsyms *k, const struct kallsyms *core)
{
	char *text = malloc(k->text_size);
	uint32_t nr = 0, at = 0;
	size_t size = 0;

	if (!text)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->nr; i++) {
		struct symbol_entry s = k->symbols[i];

		while (at < core->nr && core->base + core->symbols[at].start < s.start)
			at++;
		if (at < core->nr && core->base + core->symbols[at].start == s.start)
			continue;
		memcpy(text + size, k->text + s.line, s.size);
		s.line = (uint32_t)size;
		size += s.size;
		k->symbols[nr++] = s;
	}
	assert(size <= k->text_size);
	free(k->text);
	k->text = text;
	k->text_size = size;
	k->nr = nr;
	shrink(k);
	return 0;
}

/* Let @k, the whole list of @fd, have the kernel's own symbols in their stored list, if there is
 * one.
 */
static void store_share(struct kallsyms *k, int fd)
{
	struct kallsyms *core;

	if (!k->begin[0] || lseek(fd, 0, SEEK_SET) || store_take(&core, fd))
		return;
	if (keep_others(k, core)) {
		kallsyms_free(core);
		return;
	}
	k->core = core;
	/* All pages of its symbols were compared. */
	kallsyms_rest(k);
}

/*
 * Bytes of the running kernel. Runs on: a helper, or in the sandbox.
 *
 * elf.c cannot read this file: its size is that of the address space, and it
 * has no sections.
 */

#define PHDRS_MAX 4096u

/* Read @size bytes, or fewer at the end; -errno. */
static int read_at(int fd, uint64_t offset, void *buf, uint32_t size)
{
	uint32_t got = 0;

	if (offset > (uint64_t)INT64_MAX - size)
		return -EFAULT;
	while (got < size) {
		ssize_t n = pread(fd, (char *)buf + got, size - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !got)
			return -errno;
		if (n <= 0)
			break;
		got += (uint32_t)n;
	}
	return (int)got;
}

static int read_header(int fd, Elf64_Ehdr *h)
{
	int n = read_at(fd, 0, h, sizeof(*h));

	if (n < 0)
		return n;
	if (n < (int)sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) ||
	    h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_CORE ||
	    h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > PHDRS_MAX)
		return -ENOEXEC;
	return 0;
}

/*
 * Read up to @size bytes at @addr from the file @fd. Returns the number, or -EPERM, -ENOEXEC (not
 * such a file), -EFAULT (nothing at @addr), -EIO.
 */
static int kcore_read(int fd, uint64_t addr, void *buf, uint32_t size)
{
	Elf64_Ehdr h;
	int rc = read_header(fd, &h);

	assert(fd >= 0 && buf);
	for (uint32_t i = 0; !rc && i < h.e_phnum; i++) {
		Elf64_Phdr p;

		if (h.e_phoff > INT64_MAX / 2)
			return -ENOEXEC;
		if (read_at(fd, h.e_phoff + i * sizeof(p), &p, sizeof(p)) < (int)sizeof(p))
			return -ENOEXEC;
		if (p.p_type != PT_LOAD || addr < p.p_vaddr || addr - p.p_vaddr >= p.p_filesz)
			continue;
		if (p.p_offset > INT64_MAX || addr - p.p_vaddr > INT64_MAX - p.p_offset)
			return -ENOEXEC;
		size = (uint32_t)MIN(size, p.p_filesz - (addr - p.p_vaddr));
		rc = read_at(fd, p.p_offset + (addr - p.p_vaddr), buf, size);
		return rc ? rc : -EIO;
	}
	return rc ? rc : -EFAULT;
}

/*
 * The descriptor of a copy to a worker; its table, or a few bytes, back.
 *
 * Runs on: a helper; serve() in the worker.
 */

#define TIMEOUT_NS 8000000000ULL
#define MEMORY_MAX (64U << 10) /* bytes of the kernel's memory in one call */

struct kernel_sandbox_request {
	uint64_t addr;
	uint64_t size; /* of the memory at @addr; 0: the list of symbols */
};

/* Open a foreign file, @path below @root. */
static int open_below(const char *root, const char *path)
{
	const struct untrusted_want want = { .root = root, .path = path, .kernel = true };
	struct untrusted_file file;
	int rc = untrusted_open(&want, &file, NULL);

	return rc ? rc : file.fd;
}

/*
 * Open @path. *own: a file of this kernel. Return the descriptor; -EISDIR; -EINVAL for anything
 * else that is not a regular file; or another -errno.
 */
static int open_file(const char *root, const char *path, bool *own)
{
	int fd = root ? open_below(root, path)
		      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct statfs fs;
	struct stat st;
	int rc;

	if (fd < 0)
		return root ? fd : -errno;
	rc = fstatfs(fd, &fs) || fstat(fd, &st) ? -errno : 0;
	*own = !rc && fs.f_type == PROC_SUPER_MAGIC;
	if (!rc && !S_ISREG(st.st_mode))
		rc = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/*
 * As kallsyms_read() and kcore_read(), of any file; also the errors of untrusted_open() and
 * sandbox_call(). @root: @path is below that folder, which links do not leave; NULL: of this
 * machine.
 * @core: the kernel itself is enough, if its list is stored.
 */
static int kernel_sandbox_list(struct kallsyms **out, const char *root, const char *path, bool core,
			       struct err *e)
{
	const struct kernel_sandbox_request request = { .size = 0 };
	struct sandbox_answer a;
	bool own;
	int fds[SANDBOX_FDS_MAX] = { open_file(root, path, &own), -1 };
	int rc = fds[0];

	if (rc < 0)
		return err_set(e, rc, "cannot open the kernel symbol list");
	if (own) {
		rc = core ? store_take(out, fds[0]) : -ENOENT;
		if (rc) {
			rc = kallsyms_read(out, fds[0], e);
			if (!rc && core)
				store_put(*out);
			if (!rc)
				store_share(*out, fds[0]);
		}
		close(fds[0]);
		return rc;
	}
	rc = sandbox_call(&kernel_reader, &request, sizeof(request), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (!rc) {
		rc = kallsyms_adopt(out, a.bytes, a.size);
		sandbox_answer_free(&a);
	}
	return rc ? err_set(e, rc, "cannot use the kernel symbol list") : 0;
}

/* Read a piece of a copy in the sandbox. Return the number of bytes, or -errno. */
static int read_piece(int fd, uint64_t addr, void *buf, uint32_t size)
{
	const struct kernel_sandbox_request request = { .addr = addr, .size = size };
	const int fds[SANDBOX_FDS_MAX] = { fd, -1 };
	struct sandbox_answer a;
	int rc = sandbox_call(&kernel_reader, &request, sizeof(request), fds, 0, TIMEOUT_NS, &a);

	if (rc)
		return rc;
	if (a.size && a.size <= size) {
		memcpy(buf, a.bytes, a.size);
		rc = (int)a.size;
	}
	sandbox_answer_free(&a);
	return rc ? rc : -EIO;
}

int kernel_sandbox_memory(const char *root, const char *path, uint64_t addr, void *buf,
			  uint32_t size)
{
	bool own;
	int fd = open_file(root, path, &own), rc = 0;
	uint32_t done = 0;

	assert(path && (buf || !size));
	if (fd < 0)
		return fd;
	while (!own && done < size && rc >= 0) {
		uint32_t piece = MIN(size - done, MEMORY_MAX);

		rc = read_piece(fd, addr + done, (uint8_t *)buf + done, piece);
		done += rc > 0 ? (uint32_t)rc : 0;
		if (rc >= 0 && (uint32_t)rc < piece)
			break;
	}
	if (own)
		rc = kcore_read(fd, addr, buf, size);
	else if (done)
		rc = (int)done;
	close(fd);
	return rc;
}

static int serve_list(struct sandbox_call *c)
{
	struct kallsyms *k;
	int rc = kallsyms_read(&k, c->fds[0], NULL);

	if (rc)
		return rc;
	kallsyms_put(k, &c->reply);
	kallsyms_free(k);
	return 0;
}

static int serve_memory(struct sandbox_call *c, const struct kernel_sandbox_request *r)
{
	uint8_t bytes[MEMORY_MAX];
	int nr = kcore_read(c->fds[0], r->addr, bytes, (uint32_t)MIN(r->size, sizeof(bytes)));

	if (nr > 0)
		sandbox_put(&c->reply, bytes, (size_t)nr);
	return MIN(nr, 0);
}

static int serve(struct sandbox_call *c)
{
	struct kernel_sandbox_request r;

	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	return r.size ? serve_memory(c, &r) : serve_list(c);
}

const struct sandbox_reader kernel_reader = {
	.kind = SANDBOX_KERNEL,
	.name = "proftop-kernel",
	.serve = serve,
	.memory_max = 1ULL << 30,
	.reply_max = 2ULL * KALLSYMS_TEXT_MAX,
};

/*
 * A job for a helper: read the symbol list of the kernel.
 *
 * Runs on: the loader; run() on a helper. Invariant: the job shares no memory with
 * the loader.
 */

#define WAIT_NS 10000000000ULL

struct kallsyms_job {
	struct job job;
	struct helpers *helpers;
	char *root, *path;
	struct kallsyms_job_result result;
};

static void read_list(struct kallsyms_job_result *r, const char *root, const char *path, bool core)
{
	uint64_t cpu_ns = time_thread_ns();
	r->start_ns = time_now_ns();
	r->rc = kernel_sandbox_list(&r->list, root, path, core, NULL);
	r->core = !r->rc && r->list->stored;
	r->cost_ns = time_thread_ns() - cpu_ns;
}

static void run(struct job *job)
{
	struct kallsyms_job *j = (struct kallsyms_job *)job;

	read_list(&j->result, j->root, j->path, true);
}

static void drop(struct job *job)
{
	struct kallsyms_job *j = (struct kallsyms_job *)job;

	kallsyms_free(j->result.list);
	free(j->root);
	free(j->path);
	free(j);
}

struct kallsyms_job *kallsyms_job_start(const char *root, const char *path, struct helpers *helpers)
{
	struct kallsyms_job *j = xcalloc(1, sizeof(*j));

	assert(helpers && path);
	j->job.run = run;
	j->job.drop = drop;
	j->helpers = helpers;
	j->root = root ? strdup(root) : NULL;
	j->path = strdup(path);
	if (j->path && (!root || j->root) && !helpers_start(helpers, &j->job))
		return j;
	drop(&j->job);
	return NULL;
}

void kallsyms_job_take(struct kallsyms_job *j, const char *root, const char *path, bool core,
		       struct kallsyms_job_result *out)
{
	*out = (struct kallsyms_job_result){ .rc = -ETIME, .start_ns = time_now_ns() };
	if (!j) {
		read_list(out, root, path, core);
	} else if (helpers_wait(j->helpers, &j->job, time_now_ns() + WAIT_NS)) {
		*out = j->result;
		j->result.list = NULL;
		drop(&j->job);
	} else {
		helper_job_leave(&j->job);
	}
}

void kallsyms_job_leave(struct kallsyms_job *j)
{
	if (j)
		helper_job_leave(&j->job);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines of a source file; the source of a function of a script, found, read, and cut to the
 * function. Runs on: a helper.
 */
#include "symbols/code/internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"

#define TEXTS_MAX (64u << 20)

struct listing *listing_new(uint32_t symbol)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	atomic_init(&l->refs, 1);
	l->symbol = symbol;
	listing_add_text(l, "", 0);
	return l;
}

void listing_put(struct listing *l)
{
	/* Pairs with itself: all reads are over before the last one frees. */
	if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1)
		return;
	free(l->insns);
	free(l->files);
	free(l->lines);
	free(l->texts);
	free(l);
}

uint32_t listing_add_text(struct listing *l, const char *text, size_t size)
{
	uint32_t at = l->texts_size;

	if (size >= TEXTS_MAX - at)
		return 0;
	if (!array_reserve(&l->texts, &l->texts_max, at + size + 1))
		return 0;
	memcpy(l->texts + at, text, size);
	l->texts[at + size] = '\0';
	l->texts_size += (uint32_t)size + 1;
	return at;
}

struct listing_insn *listing_add_insn(struct listing *l, uint64_t vaddr, uint8_t size)
{
	if (!array_reserve(&l->insns, &l->max_insns, l->nr_insns + 1ull))
		return NULL;
	l->insns[l->nr_insns] = (struct listing_insn){
		.vaddr = vaddr,
		.size = size,
		.target = LISTING_NONE,
		.callee = LISTING_NONE,
		.file = LISTING_NONE,
	};
	return &l->insns[l->nr_insns++];
}

uint32_t listing_at(const struct listing *l, uint64_t vaddr)
{
	uint32_t low = search_split(l->nr_insns, i, l->insns[i].vaddr <= vaddr);

	return low && vaddr - l->insns[low - 1].vaddr < l->insns[low - 1].size ? low - 1
									       : LISTING_NONE;
}

#define SOURCE_SIZE_MAX	 (8u << 20)
#define SOURCE_LINES_MAX 8192u /* of one listing */
#define LINE_BYTES_MAX	 480u
#define TAB_COLS	 8u

/* Tabs become blanks; longer lines are cut. */
static uint32_t add_line(struct listing *l, const char *text, size_t size)
{
	char wide[LINE_BYTES_MAX], clean[LINE_BYTES_MAX * 2];
	size_t n = 0;
	struct safe_text is;

	if (size && text[size - 1] == '\r')
		size--;
	for (size_t i = 0; i < size && n < sizeof(wide); i++) {
		if (text[i] != '\t') {
			wide[n++] = text[i];
			continue;
		}
		do
			wide[n++] = ' ';
		while (n % TAB_COLS && n < sizeof(wide));
	}
	is = text_sanitise(clean, sizeof(clean), wide, n);
	return listing_add_text(l, is.str, is.size);
}

/* Read the lines from bytes in memory. */
static void source_parse(struct listing *l, struct listing_file *file,
			 const struct source_want *want, const char *text, size_t size)
{
	uint32_t room = SOURCE_LINES_MAX - MIN(SOURCE_LINES_MAX, l->nr_lines), line = 1;
	uint32_t nr = want->last >= want->first ? MIN(want->last - want->first + 1, room) : 0;
	uint32_t *lines = reallocarray(l->lines, l->nr_lines + nr + 1, sizeof(*lines));
	const char *at = text, *end = text + size;

	if (!lines) {
		file->why = "out of memory";
		return;
	}
	l->lines = lines;
	file->first = want->first;
	file->lines = l->nr_lines;
	for (; at < end && file->nr_lines < nr; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		if (line >= want->first) {
			l->lines[l->nr_lines++] = add_line(l, at, (size_t)(stop - at));
			file->nr_lines++;
		}
		at = stop + 1;
	}
	if (!file->nr_lines)
		file->why = room ? "has fewer lines: another version" : "too many lines";
}

static int open_source(const struct source_want *want, struct untrusted_file *out)
{
	struct untrusted_want f = {
		.path = want->path,
		.pid = want->pid,
		.root = want->root,
		.size_max = SOURCE_SIZE_MAX,
	};
	int rc = untrusted_open(&f, out, NULL);

	if (!rc || (!want->pid && !want->root))
		return rc;
	f.pid = 0;
	f.root = NULL;
	return untrusted_open(&f, out, NULL);
}

static const char *reason(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return "not found";
	case -EACCES:
	case -EPERM:
		return "not permitted";
	case -EFBIG:
		return "too large";
	default:
		return "unreadable";
	}
}

void source_read(struct listing *l, struct listing_file *file, const struct source_want *want)
{
	struct untrusted_file f;
	size_t size;
	char *text;
	int rc;

	if (getauxval(AT_SECURE)) {
		file->why = "not read while proftop has extra capabilities";
		return;
	}
	if (want->path[0] != '/') {
		file->why = "its folder is unknown";
		return;
	}
	rc = open_source(want, &f);
	if (rc) {
		file->why = reason(rc);
		return;
	}
	rc = untrusted_read(f.fd, SOURCE_SIZE_MAX, &text, &size);
	close(f.fd);
	if (rc) {
		file->why = reason(rc);
		return;
	}
	file->newer = want->built_ns && f.mtime_ns > want->built_ns;
	source_parse(l, file, want, text, size);
	free(text);
}

/*
 * The source of a function of a language. Runs on: a helper.
 */

/* ---- the lines of a function ---- */

struct script_line {
	const char *text; /* behind its blanks */
	size_t size;
	unsigned int indent; /* columns */
};

/* Walks over the lines of a text. */
struct walk {
	const char *at, *end;
	uint32_t nr; /* of the line returned last */
};

static bool next_line(struct walk *w, struct script_line *l)
{
	const char *stop;

	if (w->at >= w->end)
		return false;
	stop = memchr(w->at, '\n', (size_t)(w->end - w->at));
	stop = stop ? stop : w->end;
	l->indent = 0;
	for (l->text = w->at; l->text < stop && (*l->text == ' ' || *l->text == '\t'); l->text++)
		l->indent = *l->text == ' ' ? l->indent + 1 : (l->indent / TAB_COLS + 1) * TAB_COLS;
	l->size = (size_t)(stop - l->text);
	if (l->size && l->text[l->size - 1] == '\r')
		l->size--;
	w->at = stop + 1;
	w->nr++;
	return true;
}

static bool begins(const struct script_line *l, const char *word)
{
	size_t n = strlen(word);

	return l->size >= n && !memcmp(l->text, word, n);
}

/* "end" of Ruby, "};" and "})" of others: the block ends with this line. */
static bool closes(const struct script_line *l)
{
	return begins(l, "}") ||
	       (begins(l, "end") && (l->size == 3 || strchr(" \t.;)", l->text[3])));
}

static bool is_definition(const struct script_line *l)
{
	return begins(l, "def ") || begins(l, "async ") || begins(l, "class ");
}

/* A line that is not indented deeper than the first one, and still part of the head. */
static bool is_head(const struct script_line *l)
{
	return begins(l, "{") || begins(l, ")") || begins(l, "]");
}

/*
 * Find the lines of the function that begins at line @begin of @text, by indentation: up to the
 * line that closes the block. Pure.
 */
static struct script_span script_block(const char *text, size_t size, uint32_t begin)
{
	struct script_span span = { begin, begin };
	struct walk w = { text, text + size, 0 };
	unsigned int base = 0;
	bool decorated = false;
	struct script_line l;

	while (next_line(&w, &l) && w.nr < begin + SCRIPT_LINES_MAX) {
		if (w.nr == begin) {
			base = l.indent;
			decorated = begins(&l, "@");
		}
		/* Comments and blank lines belong to the code behind them. */
		if (w.nr <= begin || !l.size || begins(&l, "#") || begins(&l, "//"))
			continue;
		if (decorated) {
			decorated = l.indent > base || !is_definition(&l);
		} else if (l.indent <= base && closes(&l)) {
			span.last = w.nr;
			break;
		} else if (l.indent <= base && !is_head(&l)) {
			break;
		}
		span.last = w.nr;
	}
	return span;
}

/* Test if @l begins function @name: "sub name", or "name(" without a semicolon. */
static bool is_begin(const struct script_line *l, const char *name, size_t n)
{
	const char *at = memmem(l->text, l->size, name, n), *after = at + n;
	bool ends = at && after == l->text + l->size;

	if (!at || (at > l->text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
		return false;
	if (begins(l, "sub "))
		return ends || !(isalnum((unsigned char)*after) || *after == '_');
	return !ends && *after == '(' && !closes(l) && !memchr(l->text, ';', l->size);
}

/*
 * Find the line at which the function @name begins that has line @line: the last of the least
 * indented lines above with "sub name" or "name(". 0: none. Pure.
 */
static uint32_t script_begin(const char *text, size_t size, const char *name, uint32_t line)
{
	struct walk w = { text, text + size, 0 };
	size_t n = strlen(name);
	unsigned int indent = UINT32_MAX;
	uint32_t found = 0;
	struct script_line l;

	while (n && next_line(&w, &l) && w.nr < line) {
		if (!is_begin(&l, name, n) || l.indent > indent)
			continue;
		found = w.nr;
		indent = l.indent;
	}
	return found;
}

/* Return the lines to show: of the function, as far as known, with all sampled lines. */
static struct script_span span_of(const struct script_want *want, const char *text, size_t size)
{
	/* "com.example.Shop.total", "Shop::total" */
	const char *at = want->name + strlen(want->name);
	struct script_span span = { 1, UINT32_MAX };
	uint32_t begin = want->begin;

	while (at > want->name && at[-1] != '.' && at[-1] != ':')
		at--;
	if (begin <= 1 && want->first > 1)
		begin = script_begin(text, size, at, want->first);
	/* Code outside of functions begins at line 1: the whole file. */
	if (begin > 1)
		span = script_block(text, size, begin);
	if (want->first)
		span.first = MIN(span.first, want->first);
	span.last = MAX(span.last, want->last);
	span.last = (uint32_t)MIN((uint64_t)span.last, (uint64_t)span.first + SCRIPT_LINES_MAX - 1);
	return span;
}

/* ---- the file ---- */

static void refuse(struct listing *l, const char *why, const char *fix)
{
	l->why = why;
	l->fix = fix;
}

static void refuse_file(struct listing *l, const struct script_want *want, int code)
{
	if (code == -ENOENT || code == -ESRCH)
		refuse(l, "no such file: it was moved or deleted, or the process has ended",
		       want->pid ? "put it back below the root of the process, or restart that"
				 : "give the recorded files with --symfs");
	else if (code == -ENOTDIR)
		refuse(l, "no such file: it may be inside an archive", NULL);
	else if (code == -EACCES || code == -EPERM)
		refuse(l, "no permission to read the file", "run proftop as root or as its owner");
	else if (code == -EFBIG)
		refuse(l, "the file is too large", NULL);
	else
		refuse(l, "cannot read the file", NULL);
}

/* Return the time of the start of @pid, as stat(2) has times; 0: unknown. */
static int64_t started_ns(pid_t pid)
{
	uint64_t ticks = 0;
	char *text;
	size_t size;

	if (pid <= 0 || untrusted_read_proc(pid, "stat", 4096, &text, &size))
		return 0;
	if (!procfs_stat_field(text, size, 22, &ticks))
		ticks = 0;
	free(text);
	return procfs_start_ns(ticks);
}

static int open_path(const struct script_want *want, const char *path, struct untrusted_file *out)
{
	const struct untrusted_want f = {
		.path = path,
		.pid = want->pid,
		.root = want->root,
		.size_max = SOURCE_SIZE_MAX,
	};

	return untrusted_open(&f, out, NULL);
}

/* Get the current directory of the process, below its root. */
static bool folder_of(pid_t pid, char *path, size_t size)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	n = pid > 0 ? readlink(link, path, size - 1) : -1;
	if (n <= 0 || path[0] != '/')
		return false;
	path[n] = '\0';
	return true;
}

/* Open a relative path: from the current directory; of Java, also in the usual folders there. */
static int open_relative(const struct script_want *want, char *path, struct untrusted_file *out)
{
	static const char *const folders[] = { "", "src/", "src/main/java/", "src/test/java/",
					       "java/" };
	char cwd[PATH_MAX], package[SCRIPT_PATH_MAX] = "", *dot = NULL;
	int code = -ENOENT;

	if (!folder_of(want->pid, cwd, sizeof(cwd)))
		return -ENOENT;
	snprintf(package, sizeof(package), "%s", want->java ? want->name : "");
	/* "com.example.Shop.total" is in com/example/. */
	for (int i = 0; i < 2; i++) {
		dot = strrchr(package, '.');
		*(dot ? dot : package) = '\0';
	}
	for (char *at = package; *at; at++)
		*at = *at == '.' ? '/' : *at;
	for (size_t i = 0; i < (want->java ? ARRAY_SIZE(folders) : 1) && code == -ENOENT; i++) {
		int n = snprintf(path, PATH_MAX, "%s%s%s%s%s%s", cwd, cwd[1] ? "/" : "", folders[i],
				 package, package[0] ? "/" : "", want->path);

		code = n < PATH_MAX ? open_path(want, path, out) : -ENAMETOOLONG;
	}
	return code;
}

static int open_script(const struct script_want *want, char *path, struct untrusted_file *out)
{
	if (want->path[0] != '/')
		return open_relative(want, path, out);
	snprintf(path, PATH_MAX, "%s", want->path);
	return open_path(want, path, out);
}

/* Add the one file of @l, and an entry for each of its lines. */
static int add_lines(struct listing *l, const char *path, struct script_span span, const char *text,
		     size_t size)
{
	const struct source_want lines = { .first = span.first, .last = span.last };
	char clean[TEXT_MAX];
	struct safe_text is = text_sanitise(clean, sizeof(clean), path, strlen(path));

	l->files = calloc(1, sizeof(*l->files));
	if (!l->files)
		return -ENOMEM;
	l->nr_files = 1;
	l->files[0].path = listing_add_text(l, is.str, is.size);
	source_parse(l, &l->files[0], &lines, text, size);
	l->vaddr = span.first;
	l->size = l->files[0].nr_lines;
	for (uint32_t i = 0; i < l->files[0].nr_lines; i++) {
		struct listing_insn *insn = listing_add_insn(l, l->vaddr + i, 1);

		if (!insn)
			return -ENOMEM;
		insn->file = 0;
		insn->line = span.first + i;
	}
	if (!l->nr_insns)
		refuse(l, "the file has fewer lines: it is another version", NULL);
	return 0;
}

static void read_source_file(struct listing *l, const struct script_want *want)
{
	struct untrusted_file f;
	char path[PATH_MAX], *text;
	int64_t started;
	size_t size;
	int code = open_script(want, path, &f);

	if (!code) {
		code = untrusted_read(f.fd, SOURCE_SIZE_MAX, &text, &size);
		close(f.fd);
	}
	if (code) {
		refuse_file(l, want, code);
		return;
	}
	if (add_lines(l, path, span_of(want, text, size), text, size))
		refuse(l, "out of memory", NULL);
	started = started_ns(want->pid);
	if (l->files)
		l->files[0].newer = started && f.mtime_ns > started;
	free(text);
}

void listing_read_script(struct listing *l, const struct script_want *want)
{
	l->script = true;
	l->asked_last = want->last;
	l->vaddr = 0;
	l->size = UINT32_MAX;
	if (getauxval(AT_SECURE))
		refuse(l, "sources are not read while proftop has extra capabilities",
		       "sudo proftop");
	else if (!want->path[0] || strchr("<[(-", want->path[0]))
		refuse(l, "made from text at run time, or built in: it has no file", NULL);
	else
		read_source_file(l, want);
}

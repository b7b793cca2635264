// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The instructions and lines of one function, on request: the job that reads them from file, vdso,
 * kernel or process; instructions as text by the disassembler; lines of a source file.
 *
 * Runs on: the loader, except for want and take; helpers.
 */
#include "symbols/code/internal.h"

#include <assert.h>
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/name/naming.h"

/*
 * Lines of a source file; the source of a function of a script, found, read, and cut to the
 * function. Runs on: a helper.
 */

#define TEXTS_MAX (64u << 20)

/* Add clean text; return its offset, 0 ("") without memory. */
static uint32_t listing_add_text(struct listing *l, const char *text, size_t size)
{
	uint32_t at = l->texts_size;

	assert(text || !size);
	if (size >= TEXTS_MAX - at)
		return 0;
	if (!array_reserve(&l->texts, &l->texts_max, at + size + 1))
		return 0;
	memcpy(l->texts + at, text, size);
	l->texts[at + size] = '\0';
	l->texts_size += (uint32_t)size + 1;
	return at;
}

static struct listing *listing_new(uint32_t symbol)
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

/* Add an instruction; NULL without memory. */
static struct listing_insn *listing_add_insn(struct listing *l, uint64_t vaddr, uint8_t size)
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

/* Read the lines into @file of @l, or set the reason. */
static void source_read(struct listing *l, struct listing_file *file,
			const struct source_want *want)
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

static void refuse_source(struct listing *l, const char *why, const char *fix)
{
	l->why = why;
	l->fix = fix;
}

static void refuse_source_file(struct listing *l, const struct script_want *want, int code)
{
	if (code == -ENOENT || code == -ESRCH)
		refuse_source(l, "no such file: it was moved or deleted, or the process has ended",
			      want->pid ? "put it back below the root of the process, or restart "
					  "that"
					: "give the recorded files with --symfs");
	else if (code == -ENOTDIR)
		refuse_source(l, "no such file: it may be inside an archive", NULL);
	else if (code == -EACCES || code == -EPERM)
		refuse_source(l, "no permission to read the file",
			      "run proftop as root or as its owner");
	else if (code == -EFBIG)
		refuse_source(l, "the file is too large", NULL);
	else
		refuse_source(l, "cannot read the file", NULL);
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
		refuse_source(l, "the file has fewer lines: it is another version", NULL);
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
		refuse_source_file(l, want, code);
		return;
	}
	if (add_lines(l, path, span_of(want, text, size), text, size))
		refuse_source(l, "out of memory", NULL);
	started = started_ns(want->pid);
	if (l->files)
		l->files[0].newer = started && f.mtime_ns > started;
	free(text);
}

/* Read the lines into @l, or set the reason and the fix. */
static void listing_read_script(struct listing *l, const struct script_want *want)
{
	l->script = true;
	l->asked_last = want->last;
	l->vaddr = 0;
	l->size = UINT32_MAX;
	if (getauxval(AT_SECURE))
		refuse_source(l, "sources are not read while proftop has extra capabilities",
			      "sudo proftop");
	else if (!want->path[0] || strchr("<[(-", want->path[0]))
		refuse_source(l, "made from text at run time, or built in: it has no file", NULL);
	else
		read_source_file(l, want);
}

/*
 * Bytes → instructions as text: the call, the worker's side (the only user of the disassembler),
 * the messages.
 *
 * Runs on: the loader. No state between calls.
 */

#define INSTEAD "bytes instead of instructions: "

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>

#define NAME_OF(begin, major) begin #major
#define NAME(begin, major)    NAME_OF(begin, major)
#define SONAME		      NAME("libcapstone.so.", CS_API_MAJOR)
#define INSTALL		      NAME(INSTEAD "install libcapstone", CS_API_MAJOR)
#else
#define INSTALL INSTEAD "build it with libcapstone-dev"
#endif

/*
 * Messages between a caller and the worker. The bytes of the code are in a memfd.
 */

struct disasm_request {
	uint64_t vaddr;
	uint32_t nr_bytes;
	uint16_t machine; /* e_machine */
	uint16_t wide;	  /* 64 bits */
};

/* One instruction; its mnemonic and its operands follow, without NUL. */
struct disasm_insn {
	uint64_t target; /* of a direct jump or call; 0: unknown */
	uint8_t size;	 /* bytes of code */
	uint8_t mnemonic_size;
	uint8_t operands_size; /* both 0: no instruction */
	uint8_t jump : 1, call : 1;
	uint32_t reserved;
};

#define BYTES_A_LINE	 8u
#define LINE_MAX_TEXT	 512
#define DISASM_NAMES_MAX 4096u /* look-ups for one function */
#define TIMEOUT_NS	 3000000000ULL

__attribute__((format(printf, 3, 4))) static int
set_text(struct listing *l, struct listing_insn *insn, const char *fmt, ...)
{
	char text[LINE_MAX_TEXT], clean[LINE_MAX_TEXT];
	struct safe_text is;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	is = text_sanitise(clean, sizeof(clean), text, strlen(text));
	insn->text = listing_add_text(l, is.str, is.size);
	return insn->text ? 0 : -ENOMEM;
}

/* Show the bytes themselves. */
static int add_bytes(struct listing *l, const struct disasm_code *c, uint32_t at, uint8_t size)
{
	struct listing_insn *insn = listing_add_insn(l, c->vaddr + at, size);
	char text[8 + 5 * BYTES_A_LINE + 1];
	int n;

	assert(at + size <= c->nr_bytes);
	if (!insn)
		return -ENOMEM;
	n = snprintf(text, sizeof(text), ".byte  ");
	for (uint32_t i = 0; i < size && i < BYTES_A_LINE; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " 0x%02x", c->bytes[at + i]);
	return set_text(l, insn, "%s", text);
}

/* The state while the instructions of a worker are added. */
struct work {
	struct listing *l;
	const struct disasm_code *c;
	uint32_t nr_names;
};

/* One instruction, checked: its texts are in the reply. */
struct decoded {
	struct disasm_insn is;
	const char *mnemonic, *operands;
};

/* Write the text of a jump to a target outside of this function. */
static int set_callee(struct work *w, struct listing_insn *out, const struct decoded *d)
{
	char name[LINE_MAX_TEXT / 2];

	if (w->c->name && w->nr_names++ < DISASM_NAMES_MAX)
		out->callee = w->c->name(w->c->ctx, d->is.target, name, sizeof(name));
	if (out->callee == LISTING_NONE)
		return set_text(w->l, out, "%-7.*s %.*s", d->is.mnemonic_size, d->mnemonic,
				d->is.operands_size, d->operands);
	return set_text(w->l, out, "%-7.*s %s", d->is.mnemonic_size, d->mnemonic, name);
}

static uint64_t begin_of(const struct disasm_code *c)
{
	return c->begin ? c->begin : c->vaddr;
}

static int add_insn(struct work *w, uint32_t at, const struct decoded *d)
{
	const struct disasm_code *c = w->c;
	uint64_t to = d->is.target - begin_of(c);
	struct listing_insn *out;

	if (!d->is.mnemonic_size)
		return add_bytes(w->l, c, at, d->is.size);
	out = listing_add_insn(w->l, c->vaddr + at, d->is.size);
	if (!out)
		return -ENOMEM;
	out->jump = d->is.jump;
	out->call = d->is.call;
	if (d->is.target && d->is.target - c->vaddr >= c->nr_bytes &&
	    !listing_covers(w->l, d->is.target))
		return set_callee(w, out, d);
	if (d->is.target) {
		/*
		 * For now the offset from the start; becomes an instruction index when all are
		 * known.
		 */
		out->target = (uint32_t)to;
		return set_text(w->l, out, "%-7.*s %c0x%" PRIx64, d->is.mnemonic_size, d->mnemonic,
				(int64_t)to < 0 ? '-' : '+', (int64_t)to < 0 ? -to : to);
	}
	return set_text(w->l, out, d->is.operands_size ? "%-7.*s %.*s" : "%.*s%.*s",
			d->is.mnemonic_size, d->mnemonic, d->is.operands_size, d->operands);
}

/* Take the next instruction of a reply. Return false at the end of the reply. */
static bool take_insn(const struct sandbox_answer *a, size_t *at, struct decoded *out)
{
	const char *text = (const char *)a->bytes + *at + sizeof(out->is);

	if (a->size - *at < sizeof(out->is))
		return false;
	memcpy(&out->is, a->bytes + *at, sizeof(out->is));
	*at += sizeof(out->is);
	if (a->size - *at < (size_t)out->is.mnemonic_size + out->is.operands_size)
		return false;
	out->mnemonic = text;
	out->operands = text + out->is.mnemonic_size;
	*at += (size_t)out->is.mnemonic_size + out->is.operands_size;
	return true;
}

/* Test that a reply covers all bytes of the code, without gaps, and has nothing more. */
static bool is_whole(const struct sandbox_answer *a, uint32_t nr_bytes)
{
	struct decoded d;
	uint32_t done = 0;
	size_t at = 0;

	while (done < nr_bytes && take_insn(a, &at, &d) && d.is.size &&
	       d.is.size <= nr_bytes - done)
		done += d.is.size;
	return done == nr_bytes && at == a->size;
}

/* Disassemble everything in the sandbox. -ENOMEM; other errors: there are no instructions. */
static int decode(struct listing *l, const struct disasm_code *c)
{
	const struct disasm_request r = {
		.vaddr = c->vaddr, .nr_bytes = c->nr_bytes, .machine = c->machine, .wide = c->wide
	};
	int fds[SANDBOX_FDS_MAX] = { sandbox_wrap(c->bytes, c->nr_bytes), -1 };
	struct work w = { .l = l, .c = c };
	struct sandbox_answer a;
	struct decoded d;
	size_t at = 0;
	int rc;

	if (fds[0] < 0)
		return fds[0];
	rc = sandbox_call(&disasm_reader, &r, sizeof(r), fds, 0, TIMEOUT_NS, &a);
	close(fds[0]);
	if (rc)
		return rc;
	if (!is_whole(&a, c->nr_bytes))
		rc = -EBADMSG;
	for (uint32_t done = 0; !rc && done < c->nr_bytes; done += d.is.size) {
		rc = take_insn(&a, &at, &d) ? add_insn(&w, done, &d) : -EBADMSG;
	}
	sandbox_answer_free(&a);
	return rc;
}

/* Add lines of bytes. */
static int put_bytes(struct listing *l, const struct disasm_code *c)
{
	int rc = 0;

	for (uint32_t at = 0; at < c->nr_bytes && !rc; at += BYTES_A_LINE)
		rc = add_bytes(l, c, at, (uint8_t)MIN(c->nr_bytes - at, BYTES_A_LINE));
	return rc;
}

/* Convert offsets of jumps to instructions; a target in the middle of one: none. */
static void find_targets(struct listing *l, uint64_t begin)
{
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		struct listing_insn *insn = &l->insns[i];
		uint64_t to = begin + (uint64_t)(int64_t)(int32_t)insn->target;

		if (insn->target == LISTING_NONE)
			continue;
		insn->target = listing_at(l, to);
		if (insn->target != LISTING_NONE && l->insns[insn->target].vaddr != to)
			insn->target = LISTING_NONE;
	}
}

/*
 * Add the instructions of the @nr parts of a function, in order of address, to @l, which has none
 * yet. 0 or -ENOMEM.
 */
static int disasm(struct listing *l, const struct disasm_code *c, uint32_t nr)
{
	int rc = 0;

	for (uint32_t i = 0; i < nr && !rc; i++) {
		uint32_t nr_before = l->nr_insns;

		rc = decode(l, &c[i]);
		if (rc == -ENOPKG)
			l->fix = INSTALL;
		if (rc && rc != -ENOMEM) {
			l->nr_insns = nr_before;
			rc = put_bytes(l, &c[i]);
		}
	}
	if (nr)
		find_targets(l, begin_of(c));
	return rc;
}

/*
 * The worker's side: the only file that uses the disassembler.
 *
 * Bytes of code → instructions, by capstone.
 *
 * Runs in the worker of the sandbox, or in the thread of the call. The library is loaded before the
 * sandbox is locked; no other state between calls.
 */

#ifdef HAVE_CAPSTONE
static struct disasm_serve_functions {
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
	__typeof__(cs_insn_group) *insn_group;
} cs;
static bool loaded;

static void load(void)
{
	static const struct library_function list[] = {
		{ "cs_open", offsetof(struct disasm_serve_functions, open) },
		{ "cs_close", offsetof(struct disasm_serve_functions, close) },
		{ "cs_option", offsetof(struct disasm_serve_functions, option) },
		{ "cs_malloc", offsetof(struct disasm_serve_functions, malloc) },
		{ "cs_free", offsetof(struct disasm_serve_functions, free) },
		{ "cs_disasm_iter", offsetof(struct disasm_serve_functions, disasm_iter) },
		{ "cs_insn_group", offsetof(struct disasm_serve_functions, insn_group) },
	};

	if (!loaded)
		loaded = library_find(SONAME, &cs, list, ARRAY_SIZE(list));
}

/* Return the target of a direct jump or call; 0: unknown. */
static uint64_t target_of(const cs_insn *insn)
{
	const char *hex = insn->op_str[0] == '#' ? insn->op_str + 1 : insn->op_str;
	const char *comma = strrchr(hex, ' ');
	char *end;
	uint64_t target;

	/* "0x401136", "#0x401136"; the last operand, for cbz and similar. */
	if (comma)
		hex = comma + 1 + (comma[1] == '#');
	if (strncmp(hex, "0x", 2))
		return 0;
	target = strtoull(hex, &end, 16);
	return *end ? 0 : target;
}

static void put_insn(struct sandbox_reply *reply, csh handle, const cs_insn *insn)
{
	struct disasm_insn out = {
		.size = (uint8_t)insn->size,
		.mnemonic_size = (uint8_t)strnlen(insn->mnemonic, sizeof(insn->mnemonic)),
		.operands_size = (uint8_t)strnlen(insn->op_str, sizeof(insn->op_str)),
		.jump = cs.insn_group(handle, insn, CS_GRP_JUMP),
		.call = cs.insn_group(handle, insn, CS_GRP_CALL),
	};

	if (out.jump || out.call)
		out.target = target_of(insn);
	sandbox_put(reply, &out, sizeof(out));
	sandbox_put(reply, insn->mnemonic, out.mnemonic_size);
	sandbox_put(reply, insn->op_str, out.operands_size);
}

static int open_machine(csh *handle, const struct disasm_request *r)
{
	cs_err rc = CS_ERR_ARCH;

	load();
	if (!loaded)
		return -ENOPKG;
	if (r->wide && r->machine == EM_X86_64)
		rc = cs.open(CS_ARCH_X86, CS_MODE_64, handle);
	else if (r->wide && r->machine == EM_AARCH64)
		rc = cs.open(CS_ARCH_ARM64, CS_MODE_ARM, handle);
	if (rc)
		return -ENOTSUP;
	cs.option(*handle, CS_OPT_DETAIL, CS_OPT_ON);
	/* The form of perf annotate and objdump. */
	if (r->machine == EM_X86_64)
		cs.option(*handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	return 0;
}

static int disasm_serve_decode(struct sandbox_reply *reply, const struct disasm_request *r,
			       const uint8_t *code)
{
	uint8_t unit = r->machine == EM_AARCH64 ? 4 : 1;
	uint64_t vaddr = r->vaddr;
	size_t left = r->nr_bytes;
	cs_insn *insn;
	csh handle;
	int rc = open_machine(&handle, r);

	if (rc)
		return rc;
	insn = cs.malloc(handle);
	while (insn && left && !reply->full) {
		struct disasm_insn none = { .size = (uint8_t)MIN(left, unit) };

		if (cs.disasm_iter(handle, &code, &left, &vaddr, insn)) {
			put_insn(reply, handle, insn);
			continue;
		}
		sandbox_put(reply, &none, sizeof(none));
		code += none.size;
		vaddr += none.size;
		left -= none.size;
	}
	rc = insn ? 0 : -ENOMEM;
	if (insn)
		cs.free(insn, 1);
	cs.close(&handle);
	return rc;
}
#else
static void load(void)
{
}

static int disasm_serve_decode(struct sandbox_reply *reply, const struct disasm_request *r,
			       const uint8_t *code)
{
	return -ENOPKG;
}
#endif

static int serve(struct sandbox_call *c)
{
	struct disasm_request r;
	uint8_t *code;
	int rc;

	if (c->size != sizeof(r) || c->fds[0] < 0)
		return -EINVAL;
	memcpy(&r, c->request, sizeof(r));
	rc = sandbox_take(c, 0, r.nr_bytes, &code);
	if (rc)
		return rc;
	rc = disasm_serve_decode(&c->reply, &r, code);
	free(code);
	return rc;
}

const struct sandbox_reader disasm_reader = {
	.kind = SANDBOX_DISASM,
	.name = "proftop-disasm",
	.prepare = load,
	.serve = serve,
	.memory_max = 512ULL << 20,
};

/*
 * Read one function: its bytes, the line of each part, and the text of these
 * lines. A job for a helper: it holds copies of all its input.
 *
 * Read one function.
 *
 * Runs on: a helper; code_read_new() on the loader. The file is opened again by its
 * identity, so the code read is the code sampled, or nothing.
 */

#define CODE_SIZE_MAX  (256u << 10)
#define CODE_FILES_MAX 64u

/* From here on the code is of this line. */
struct reading_row {
	uint64_t vaddr;
	uint32_t file, line; /* LISTING_NONE and 0: no line */
};

struct reading {
	struct job job;
	/* Input. */
	struct load_where where; /* where.identity.kind is the kind of the code's home */
	uint64_t offset;	 /* in its file or the vdso; the kernel: its address now */
	bool no_lines;
	char *kcore_path; /* owned */
	bool kcore_below; /* below where.root */
	uint16_t machine; /* e_machine; EM_NONE: this machine's */
	bool wide;
	struct script_want script;		  /* where.identity.kind is OBJECT_SCRIPT */
	uint64_t part_offsets[LISTING_PARTS_MAX]; /* in its file, of the listing's parts */
	/* Result, partly set before; the listing has no instructions yet. */
	struct listing *l;
	uint8_t *bytes; /* of the function, then of its parts */
	uint32_t nr_bytes;
	uint32_t part_bytes[LISTING_PARTS_MAX];
	struct reading_row *rows; /* in order of address */
	uint32_t nr_rows, max_rows;
	int64_t built_ns;	     /* last change of the file */
	char *raw[CODE_FILES_MAX];   /* of l->files, raw */
	char *paths[CODE_FILES_MAX]; /* with their folder */
};

#define FILE_SPAN_MAX 4096u /* lines of one file */
#define ROWS_MAX      (1u << 20)
#define NOT_RUNNING   "the file on disk is not the running one"

static void refuse(struct reading *r, const char *why, const char *fix)
{
	r->l->why = why;
	r->l->fix = fix;
}

/* Allocate the code as far as it is shown; false without memory. */
static bool make_room(struct reading *r)
{
	uint64_t size;

	r->nr_bytes = (uint32_t)MIN(r->l->size, (uint64_t)CODE_SIZE_MAX);
	size = r->nr_bytes;
	for (uint32_t i = 0; i < r->l->nr_parts; i++) {
		r->part_bytes[i] = (uint32_t)MIN(r->l->parts[i].size, (uint64_t)CODE_SIZE_MAX);
		size += r->part_bytes[i];
	}
	r->bytes = malloc(MAX(size, 1u));
	if (!r->bytes)
		refuse(r, "out of memory", NULL);
	return r->bytes;
}

/* Keep only the bytes read; none: set the reason. */
static void cut(struct reading *r, ssize_t got, const char *why, const char *fix)
{
	r->nr_bytes = got > 0 ? (uint32_t)got : 0;
	if (!r->nr_bytes)
		refuse(r, why, fix);
}

static void refuse_file(struct reading *r, int code)
{
	if (code == -ESTALE)
		refuse(r, NOT_RUNNING,
		       "restart the program, or run proftop as root: it reads the mapped file");
	else if (code == -ENOENT || code == -ENOTDIR || code == -ESRCH)
		refuse(r, "the file is gone", "run proftop as root: it reads the mapped file");
	else if (code == -EACCES || code == -EPERM)
		refuse(r, "no permission to read the file", "run proftop as root or as its owner");
	else
		refuse(r, "cannot read the file", NULL);
}

/* Return true if the path still leads to the mapped file. */
static bool is_replaced(const struct load_where *where)
{
	struct load_where named = *where;
	struct untrusted_file file;
	int code;

	if (!where->seen.pid || !where->identity.ino || !where->seen.path)
		return false;
	named.seen.start = named.seen.end = 0;
	code = load_open(&named, NULL, &file);
	if (!code)
		close(file.fd);
	return code == -ESTALE || code == -ENOENT || code == -ENOTDIR;
}

/*
 * A recording may have no inode: then the build-id identifies the file. One that was written in
 * place has another than the image.
 */
static bool is_of_build(const struct reading *r, const struct untrusted_file *file)
{
	const struct object_identity *id = &r->where.identity;
	const struct elffacts_input in = { .fd = file->fd, .size = file->size };
	struct elffacts facts;
	const struct debugfile_names *is = &facts.names;

	if (!id->build_id_size && !r->where.build_id_size)
		return true;
	if (elffacts_read(&facts, &in) ||
	    !load_is_of_image(&r->where, is->build_id, is->build_id_size))
		return false;
	return !id->build_id_size || !is->build_id_size ||
	       (is->build_id_size == id->build_id_size &&
		!memcmp(is->build_id, id->build_id, id->build_id_size));
}

/* Read the code of the function in the file, and that of its parts. */
static void read_code(struct reading *r, int fd)
{
	uint8_t *at = r->bytes + r->nr_bytes;

	for (uint32_t i = 0; i < r->l->nr_parts; i++) {
		ssize_t got = pread(fd, at, r->part_bytes[i], (off_t)r->part_offsets[i]);

		r->part_bytes[i] = got > 0 ? (uint32_t)got : 0;
		at += r->part_bytes[i];
	}
	cut(r, pread(fd, r->bytes, r->nr_bytes, (off_t)r->offset), "cannot read the file", NULL);
}

static void read_file(struct reading *r)
{
	struct untrusted_file file;
	int code = load_open(&r->where, &r->job.watch, &file);

	if (code) {
		refuse_file(r, code);
		return;
	}
	if (!is_of_build(r, &file))
		refuse_file(r, -ESTALE);
	else if (make_room(r))
		read_code(r, file.fd);
	close(file.fd);
	r->built_ns = file.mtime_ns;
	if (is_replaced(&r->where))
		r->l->origin = "running code from /proc/PID/map_files: the file on disk was "
			       "replaced or removed";
}

/* This process's vdso is the same for all. */
static void read_vdso(struct reading *r)
{
	const uint8_t *base = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);

	if (!base)
		refuse(r, "no vdso on this machine", NULL);
	else if (make_room(r))
		memcpy(r->bytes, base + r->offset, r->nr_bytes);
	r->l->origin = "proftop's own vdso: the same code in all processes";
}

static void refuse_kernel(struct reading *r, int code)
{
	if (code == -ENOENT)
		refuse(r, "cannot read kernel code: no /proc/kcore",
		       "needs a kernel with CONFIG_PROC_KCORE");
	else if (code == -EACCES || code == -EPERM)
		refuse(r, "no permission to read kernel code",
		       "run proftop as root; not available while the kernel is locked down");
	else if (code == -EFAULT)
		refuse(r, "no kernel code at its address now", NULL);
	else
		refuse(r, "cannot read /proc/kcore", NULL);
}

/* Read running kernel code, with everything that the kernel has patched. */
static void read_kernel(struct reading *r)
{
	const char *root = r->kcore_below ? r->where.root : NULL;
	int got;

	if (!r->kcore_path || (r->kcore_below && !root) || !make_room(r))
		return;
	got = kernel_sandbox_memory(root, r->kcore_path, r->offset, r->bytes, r->nr_bytes);
	cut(r, got, NULL, NULL);
	if (got <= 0)
		refuse_kernel(r, got);
	r->l->origin = "/proc/kcore: current kernel memory";
}

/* Read code made at run time: only in the memory of its process. */
static void read_process(struct reading *r)
{
	struct iovec ours, theirs = { (void *)(uintptr_t)r->l->vaddr, 0 };
	ssize_t got;

	if (!r->where.seen.pid) {
		refuse(r, "a recording does not contain JIT code", NULL);
		return;
	}
	if (!make_room(r))
		return;
	ours = (struct iovec){ r->bytes, r->nr_bytes };
	theirs.iov_len = r->nr_bytes;
	got = process_vm_readv(r->where.seen.pid, &ours, 1, &theirs, 1, 0);
	if (got < 0 && errno == EPERM)
		cut(r, got, "no permission to read the memory of the process",
		    "run proftop as root or with cap_sys_ptrace");
	else if (got < 0 && errno == ESRCH)
		cut(r, got, "the process has ended", NULL);
	else
		cut(r, got, "no code at its address now", NULL);
	r->l->origin = "current memory of the process";
}

/* Return the index of a reported file, added if new. */
static uint32_t file_of(struct reading *r, const char *dir, const char *file)
{
	struct listing *l = r->l;
	char path[PATH_MAX], clean[TEXT_MAX];
	struct safe_text is;

	for (uint32_t i = 0; i < l->nr_files; i++)
		if (!strcmp(r->raw[i], file))
			return i;
	if (!l->files)
		l->files = calloc(CODE_FILES_MAX, sizeof(*l->files));
	if (!l->files || l->nr_files == CODE_FILES_MAX)
		return LISTING_NONE;
	dwarf_path(path, sizeof(path), dir, file);
	r->raw[l->nr_files] = strdup(file);
	r->paths[l->nr_files] = strdup(path);
	if (!r->raw[l->nr_files] || !r->paths[l->nr_files])
		return LISTING_NONE;
	is = text_sanitise(clean, sizeof(clean), path, strlen(path));
	l->files[l->nr_files].path = listing_add_text(l, is.str, is.size);
	return l->nr_files++;
}

/* While reading: from @vaddr on the code is of @line of @file, below @dir (may be NULL). */
static void code_read_add_row(struct reading *r, uint64_t vaddr, const char *dir, const char *file,
			      uint32_t line)
{
	struct reading_row row = { .vaddr = vaddr, .file = LISTING_NONE };

	if (r->nr_rows >= ROWS_MAX || !array_reserve(&r->rows, &r->max_rows, r->nr_rows + 1ull))
		return;
	if (file && line)
		row.file = file_of(r, dir, file);
	if (row.file != LISTING_NONE)
		row.line = line;
	r->rows[r->nr_rows++] = row;
}

static void tell_line(void *ctx, uint64_t vaddr, const struct dwarf_frame *told)
{
	code_read_add_row(ctx, vaddr, told->dir, told->file, told->line);
}

/* Read the reported lines of file @i. */
static void read_source(struct reading *r, uint32_t i)
{
	struct source_want want = {
		.path = r->paths[i],
		.pid = r->where.seen.pid,
		.root = r->where.root,
		.first = UINT32_MAX,
		.built_ns = r->built_ns,
	};

	for (uint32_t n = 0; n < r->nr_rows; n++) {
		const struct reading_row *row = &r->rows[n];

		if (row->file != i || !row->line)
			continue;
		want.first = MIN(want.first, row->line);
		want.last = MAX(want.last, row->line);
	}
	want.last = (uint32_t)MIN(want.last, want.first + (uint64_t)FILE_SPAN_MAX - 1);
	if (want.first <= want.last)
		source_read(r->l, &r->l->files[i], &want);
}

static const char *why_no_lines(int code)
{
	const char *words = dwarf_object_words(code);

	if (code == -ESTALE)
		return NOT_RUNNING;
	return words ? words
		     : "no debug information: install its -dbgsym package, or build with -g";
}

/* List the ranges of the function's code in order of address. Return their number. */
static uint32_t ranges_of(const struct listing *l, struct listing_part ranges[])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < l->nr_parts && l->parts[i].vaddr < l->vaddr; i++)
		ranges[nr++] = l->parts[i];
	ranges[nr++] = (struct listing_part){ l->vaddr, l->size };
	for (uint32_t i = nr - 1; i < l->nr_parts; i++)
		ranges[nr++] = l->parts[i];
	return nr;
}

/* Find the line of each part of the code. */
static void read_rows(struct reading *r)
{
	struct listing_part ranges[LISTING_PARTS_MAX + 1];
	struct dwarf_sandbox *file = NULL;
	int rc = dwarf_object_open(&r->where, false, NULL, &file);

	for (uint32_t i = 0, nr = ranges_of(r->l, ranges); i < nr && !rc; i++)
		rc = dwarf_sandbox_lines(file, ranges[i].vaddr, ranges[i].size, tell_line, r);
	dwarf_sandbox_close(file);
	if (rc)
		r->l->no_source = why_no_lines(rc);
	else if (!r->l->nr_files)
		r->l->no_source = "no lines in the debug information";
}

static void read_lines(struct reading *r)
{
	struct listing *l = r->l;
	enum object_kind kind = r->where.identity.kind;

	if (kind == OBJECT_KERNEL || kind == OBJECT_VDSO)
		l->no_source = "lines of kernel code are not supported";
	else if (kind != OBJECT_FILE && !r->nr_rows)
		l->no_source = "JIT code has lines only with a jitdump";
	else if (r->no_lines)
		l->no_source = "debug information is not read (--no-inline)";
	else if (kind == OBJECT_FILE)
		read_rows(r);
	for (uint32_t i = 0;
	     i < l->nr_files && !atomic_load_explicit(&r->job.watch.cancel, memory_order_relaxed);
	     i++)
		read_source(r, i);
}

static void run(struct job *job)
{
	struct reading *r = (struct reading *)job;

	switch (r->bytes ? OBJECT_UNKNOWN : r->where.identity.kind) {
	case OBJECT_UNKNOWN: /* present already */
		break;
	case OBJECT_FILE:
		read_file(r);
		break;
	case OBJECT_VDSO:
		read_vdso(r);
		break;
	case OBJECT_KERNEL:
		read_kernel(r);
		break;
	case OBJECT_SCRIPT:
		listing_read_script(r->l, &r->script);
		break;
	default:
		read_process(r);
	}
	if (r->nr_bytes && !r->l->why)
		read_lines(r);
}

static void drop(struct job *job)
{
	struct reading *r = (struct reading *)job;

	for (uint32_t i = 0; i < CODE_FILES_MAX; i++) {
		free(r->raw[i]);
		free(r->paths[i]);
	}
	load_where_fini(&r->where);
	free(r->kcore_path);
	listing_put(r->l);
	free(r->bytes);
	free(r->rows);
	free(r);
}

/* Create a job for the function of @l, taking over the reference. NULL when out of memory. */
static struct reading *code_read_new(struct listing *l)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->job.run = run;
	r->job.drop = drop;
	r->l = l;
	return r;
}

#define READ_MAX_NS 15000000000ULL /* a job that takes longer hangs */

void code_init(struct code_desk *d, const struct image_cache *images, const struct symtab *symtab,
	       struct naming *naming, const struct lines *lines)
{
	memset(d, 0, sizeof(*d));
	pthread_mutex_init(&d->lock, NULL);
	d->wanted = SYMBOL_NONE;
	d->images = images;
	d->symtab = symtab;
	d->naming = naming;
	d->lines = lines;
	d->kcore_path = "/proc/kcore";
}

void code_fini(struct code_desk *d)
{
	if (d->reading)
		helper_job_leave(&d->reading->job);
	listing_put(d->done);
	pthread_mutex_destroy(&d->lock);
}

void code_want(struct code_desk *d, uint32_t symbol, const struct listing_instance *instance)
{
	pthread_mutex_lock(&d->lock);
	d->wanted = symbol;
	d->instance = *instance;
	d->by_line = false;
	pthread_mutex_unlock(&d->lock);
}

void code_want_lines(struct code_desk *d, uint32_t symbol, const struct listing_lines *lines)
{
	pthread_mutex_lock(&d->lock);
	d->wanted = symbol;
	d->instance = (struct listing_instance){ 0 };
	d->by_line = true;
	d->lines_wanted = *lines;
	pthread_mutex_unlock(&d->lock);
}

static bool same(const struct listing_instance *a, const struct listing_instance *b)
{
	return a->object == b->object && a->addr == b->addr;
}

struct listing *code_take(struct code_desk *d, uint32_t symbol)
{
	struct listing *l = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->done && d->done->symbol == symbol &&
	    (symbol != d->wanted || same(&d->done->instance, &d->instance)))
		l = listing_get(d->done);
	pthread_mutex_unlock(&d->lock);
	return l;
}

/* Publish the result; the previous one is released. */
static void publish(struct code_desk *d, struct listing *l)
{
	struct listing *old;

	pthread_mutex_lock(&d->lock);
	old = d->done;
	d->done = l;
	pthread_mutex_unlock(&d->lock);
	listing_put(old);
}

/* ---- names and lines for the code ---- */

/* Context of the look-ups of names. */
struct answer {
	struct code_desk *d;
	const struct object *object;
	const struct image *image; /* may be NULL */
};

static uint32_t name_of(void *ctx, uint64_t vaddr, char *buf, size_t size)
{
	const struct answer *a = ctx;
	struct naming_question q = { .object = a->object->id, .offset = vaddr, .now = true };
	bool in_file = a->object->identity.kind == OBJECT_FILE ||
		       a->object->identity.kind == OBJECT_VDSO;
	const struct symbol *s;
	struct naming_answer found;

	if (in_file && (!a->image || !image_offset(a->image, vaddr, &q.offset)))
		return LISTING_NONE;
	if (naming_find(a->d->naming, &q, &found) || (!found.by_name && !in_file))
		return LISTING_NONE;
	s = symtab_at(a->d->symtab, found.symbol);
	if (!s)
		return LISTING_NONE;
	if (vaddr <= found.start || s->made_up) /* before it: in a part of the function */
		snprintf(buf, size, "%s", s->name.str);
	else
		snprintf(buf, size, "%s+0x%llx", s->name.str,
			 (unsigned long long)(vaddr - found.start));
	return found.symbol;
}

/* Return the machine of code without a file: this one, as in the kernel's object. */
static uint16_t our_machine(void)
{
	const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	return vdso && vdso->e_ident[EI_CLASS] == ELFCLASS64 ? vdso->e_machine : EM_NONE;
}

static void disassemble(struct code_desk *d, struct reading *r)
{
	struct answer a = { .d = d, .object = objects_at(d->images->objects, r->where.object) };
	struct disasm_code c[LISTING_PARTS_MAX + 1];
	struct listing_part ranges[LISTING_PARTS_MAX + 1];
	uint32_t nr = ranges_of(r->l, ranges), part = 0;
	const uint8_t *at = r->bytes + r->nr_bytes;

	for (uint32_t i = 0; i < nr; i++) {
		bool whole = ranges[i].vaddr == r->l->vaddr;

		c[i] = (struct disasm_code){
			.bytes = whole ? r->bytes : at,
			.nr_bytes = whole ? r->nr_bytes : r->part_bytes[part],
			.vaddr = ranges[i].vaddr,
			.begin = r->l->vaddr,
			.machine = r->machine ? r->machine : our_machine(),
			.wide = r->wide,
			.name = name_of,
			.ctx = &a,
		};
		if (!whole)
			at += r->part_bytes[part++];
	}

	/* Acquire: pairs with the releases of the loader. */
	a.image = atomic_load_explicit(&a.object->image, memory_order_acquire);
	r->l->nr_bytes = r->nr_bytes;
	if (disasm(r->l, c, nr))
		r->l->why = "out of memory";
}

/* Set the line of each instruction. */
static void put_lines(struct reading *r)
{
	uint32_t row = 0;

	for (uint32_t i = 0; i < r->l->nr_insns; i++) {
		struct listing_insn *insn = &r->l->insns[i];

		while (row < r->nr_rows && r->rows[row].vaddr <= insn->vaddr)
			row++;
		if (!row)
			continue;
		insn->file = r->rows[row - 1].file;
		insn->line = r->rows[row - 1].line;
	}
}

/* The code was read: the rest is done here, with the names. */
static void finish(struct code_desk *d, struct reading *r)
{
	struct listing *l = r->l;

	if (r->nr_bytes && !l->why)
		disassemble(d, r);
	put_lines(r);
	r->l = NULL;
	publish(d, l);
	r->job.drop(&r->job);
}

/* ---- requests ---- */

static uint64_t extent_in_image(const struct image *image, uint64_t vaddr)
{
	const struct image_symbol *symbol = image_find(image, vaddr);
	struct ehframe_fde fde;

	if (symbol && symbol->vaddr <= vaddr && vaddr - symbol->vaddr < symbol->size)
		return symbol->vaddr + symbol->size - vaddr;
	return ehframe_find(&image_rows(image, vaddr)->eh, vaddr, &fde)
		       ? fde.start + fde.size - vaddr
		       : 0;
}

/* Find the parts of the function in @image: parts right behind are joined. */
static void find_parts(struct reading *r, const struct image *image)
{
	struct listing *l = r->l;
	const struct image_symbol *function = image_find(image, l->vaddr), *s;

	for (uint32_t i = 0; function && i < image->nr_symbols; i++) {
		struct listing_part *last = l->nr_parts ? &l->parts[l->nr_parts - 1] : NULL;

		s = &image->symbols[i];
		if (!s->whole || image_whole(image, s) != function)
			continue;
		if (s->vaddr == l->vaddr + l->size)
			l->size += s->size;
		else if (last && s->vaddr == last->vaddr + last->size)
			last->size += s->size;
		else if (l->nr_parts < LISTING_PARTS_MAX &&
			 image_offset(image, s->vaddr, &r->part_offsets[l->nr_parts]))
			l->parts[l->nr_parts++] = (struct listing_part){ s->vaddr, s->size };
	}
}

/* Find kernel code made at run time: its extent, if it is still the sampled code. */
static uint64_t extent_made_at_run_time(const struct ksyms_symbol *told,
					const struct symbol *symbol, struct listing *l)
{
	if (told->gone)
		l->why = "its code was removed by the kernel";
	else if (keyhash_name(told->name, told->name_size) != symbol->variant)
		l->why = "another function is at its address now";
	return told->start + told->size - symbol->start;
}

static uint64_t extent_in_kernel(struct naming_kernel *n, const struct symbol *symbol,
				 struct listing *l)
{
	struct kallsyms_symbol k;

	if (n->ksyms && ksyms_find(n->ksyms, symbol->start, &n->ksym))
		return extent_made_at_run_time(&n->ksym, symbol, l);
	if (n->recorded.match != KERNEL_SAME) {
		l->why = recorded_kernel_reason(n->recorded.match);
		l->fix = "replay it on that machine";
	}
	return n->kallsyms && kallsyms_find(n->kallsyms,
					    recorded_kernel_now(&n->recorded, symbol->start), &k)
		       ? k.size
		       : 0;
}

/* Return the size of @symbol; 0: unknown. Its code may be gone: then @l has the reason. */
static uint64_t extent_of(struct code_desk *d, struct object *object, const struct image *image,
			  const struct symbol *symbol, struct listing *l)
{
	uint64_t vaddr = symbol->start;
	struct perfmap_symbol p;

	switch (object->identity.kind) {
	case OBJECT_KERNEL:
		return extent_in_kernel(&d->naming->kernel, symbol, l);
	case OBJECT_ANON:
		return perfmaps_find(&d->naming->jit.perfmaps, object, vaddr, &p)
			       ? 0
			       : p.start + p.size - vaddr;
	default:
		return image ? extent_in_image(image, vaddr) : 0;
	}
}

/* Return the reason why the code of @l is unreadable; NULL: it is readable. */
static const char *why_not(const struct listing *l, const struct symbol *symbol,
			   const struct object *object, const struct image *image, uint64_t *offset)
{
	bool in_file = object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_VDSO;

	if (l->why)
		return l->why;
	if (symbol->inlined)
		return "inlined: its code is part of its callers";
	if (in_file && !image)
		return "cannot load its object";
	if (object->identity.kind == OBJECT_UNKNOWN)
		return "the address of its code is unknown";
	if (!l->size)
		return "the end of its code is unknown";
	if (in_file && !image_offset(image, l->vaddr, offset))
		return "its code is not in the file";
	return NULL;
}

/* Return true while the object is being loaded, which is requested: it may be new, or evicted. */
static bool is_away(struct object *object, const struct image *image)
{
	/* Acquire: pairs with the releases of the loader. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	if (state == OBJECT_FAILED || (state == OBJECT_READY && (!image || !image->away)))
		return false;
	object_want(object);
	return true;
}

/* Add the lines of JIT code, one instruction after the other, from the jitdump. */
static void take_dumped_lines(struct code_desk *d, struct reading *r, struct object *object,
			      const struct symbol *symbol)
{
	const struct disasm_code c = { .bytes = r->bytes,
				       .nr_bytes = r->nr_bytes,
				       .vaddr = symbol->start,
				       .machine = r->machine,
				       .wide = r->wide };
	struct listing *l = listing_new(SYMBOL_NONE);

	if (!l || disasm(l, &c, 1)) {
		listing_put(l);
		return;
	}
	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const char *file = NULL;
		uint32_t line = 0;

		if (jitdumps_code_line(&d->naming->jit.jitdumps, object, symbol->start,
				       symbol->variant, l->insns[i].vaddr, &file, &line))
			code_read_add_row(r, l->insns[i].vaddr, NULL, file, line);
	}
	listing_put(l);
}

/* A jitdump has the code as it was sampled, even if the process has ended. */
static void take_dumped(struct code_desk *d, struct reading *r, struct object *object,
			const struct symbol *symbol)
{
	int nr = jitdumps_code(&d->naming->jit.jitdumps, object, symbol->start, symbol->variant,
			       &r->bytes, CODE_SIZE_MAX, &r->l->size, &r->machine);

	if (nr <= 0) {
		if (!nr)
			free(r->bytes);
		r->bytes = NULL;
		return;
	}
	r->nr_bytes = (uint32_t)nr;
	r->wide = true;
	r->l->origin = "the jitdump of the process";
	if (!d->lines->off)
		take_dumped_lines(d, r, object, symbol);
}

/*
 * Set the object and start of the function @id in a process. Return the reason why not; NULL: set,
 * or it has its own.
 */
static const char *set_place(struct code_desk *d, uint32_t id, struct symbol *symbol,
			     const struct listing_instance *in)
{
	struct objects *objects = d->images->objects;
	const struct object *shared = objects_at(objects, symbol->object);
	struct object *object = objects_at(objects, in->object);
	const struct naming_question q = { .object = in->object, .offset = in->addr, .now = true };
	struct naming_answer found;

	if (!shared || shared->identity.kind != OBJECT_SCRIPT)
		return NULL;
	if (!object || object->identity.kind != OBJECT_ANON)
		return "without samples the address of its code is unknown";
	if (naming_find(d->naming, &q, &found) || found.symbol != id)
		return "another function is at its address now, or its process has ended";
	symbol->object = jitdumps_base(&d->naming->jit.jitdumps, object)->id;
	symbol->start = found.start;
	return NULL;
}

/* Start to read @of, or set the reason why not. */
static void begin(struct code_desk *d, uint32_t id, const struct symbol *of,
		  const struct listing_instance *instance)
{
	struct symbol placed = *of, *symbol = &placed;
	const char *why = set_place(d, id, symbol, instance);
	struct object *object = objects_at(d->images->objects, symbol->object);
	const struct image *image =
		object ? atomic_load_explicit(&object->image, memory_order_acquire) : NULL;
	struct listing *l = object && !is_away(object, image) ? listing_new(id) : NULL;
	struct reading *r;
	uint64_t offset = 0;

	if (!l)
		return;
	l->instance = *instance;
	l->vaddr = symbol->start;
	l->why = why;
	if (!why)
		l->size = extent_of(d, object, image, symbol, l);
	r = code_read_new(l);
	if (!r) {
		listing_put(l);
		return;
	}
	if (!why && object->identity.kind == OBJECT_ANON)
		take_dumped(d, r, object, symbol);
	l->why = why_not(l, symbol, object, image, &offset);
	if (l->why) {
		finish(d, r);
		return;
	}
	if (object->identity.kind == OBJECT_FILE)
		find_parts(r, image);
	load_where(&r->where, d->images->objects, object, d->images->no_proc, d->images->root);
	r->offset = object->identity.kind == OBJECT_KERNEL
			    ? recorded_kernel_now(&d->naming->kernel.recorded, l->vaddr)
			    : offset;
	r->no_lines = d->lines->off;
	r->kcore_path = strdup(d->kcore_path);
	r->kcore_below = d->kcore_below;
	if (!r->bytes) {
		r->machine = image ? image->machine : EM_NONE;
		r->wide = !r->machine || image->elf_class == ELFCLASS64;
	}
	if (helpers_start(d->images->helpers, &r->job)) {
		r->job.drop(&r->job); /* all helpers are busy: at the next round */
		return;
	}
	d->reading = r;
	d->began_ns = time_now_ns();
}

/* Set the path, name and first line of the function. */
static void fill_script(struct code_desk *d, const struct listing_lines *lines,
			const struct symbol *symbol, struct script_want *w)
{
	const struct code_text *t =
		d->naming->codes ? script_functions_at(d->naming->codes, lines->code) : NULL;

	w->pid = d->images->no_proc ? 0 : lines->pid;
	w->root = d->images->root;
	w->first = lines->first;
	w->last = lines->last;
	if (t) {
		snprintf(w->path, sizeof(w->path), "%.*s", (int)t->file_size, t->file);
		w->begin = t->first_line;
	} else {
		snprintf(w->path, sizeof(w->path), "%s", lines->file);
		w->java = true;
	}
	snprintf(w->name, sizeof(w->name), "%s", symbol->name.str);
}

/* Start to read the source of a function of a language. */
static void begin_script(struct code_desk *d, uint32_t id, const struct symbol *symbol,
			 const struct listing_lines *lines)
{
	struct listing *l = listing_new(id);
	struct reading *r = l ? code_read_new(l) : NULL;

	if (!r) {
		listing_put(l);
		return;
	}
	r->where.identity.kind = OBJECT_SCRIPT;
	fill_script(d, lines, symbol, &r->script);
	if (helpers_start(d->images->helpers, &r->job)) {
		r->job.drop(&r->job); /* all helpers are busy: at the next round */
		return;
	}
	d->reading = r;
	d->began_ns = time_now_ns();
}

static void give_up(struct code_desk *d, uint32_t symbol)
{
	struct listing *l = listing_new(symbol);

	if (!l)
		return;
	l->instance = d->reading->l->instance;
	l->why = "reading its code or source hangs: file system does not respond";
	publish(d, l);
}

/* A request. */
struct question {
	uint32_t symbol; /* SYMBOL_NONE: none, or answered */
	struct listing_instance instance;
	bool by_line; /* its source only, with @lines */
	struct listing_lines lines;
};

/* Check the running job: true once it is over, or abandoned. */
static bool end_reading(struct code_desk *d, const struct question *q)
{
	struct reading *r = d->reading;

	if (helper_job_done(&r->job)) {
		finish(d, r);
	} else if (q->symbol != r->l->symbol || !same(&q->instance, &r->l->instance)) {
		helper_job_leave(&r->job);
	} else if (time_now_ns() - d->began_ns > READ_MAX_NS) {
		give_up(d, q->symbol);
		helper_job_leave(&r->job);
	} else {
		return false;
	}
	d->reading = NULL;
	return true;
}

/* Test if the result has the wanted lines, or never will. */
static bool has_lines(const struct code_desk *d)
{
	const struct listing *l = d->done;
	uint32_t first = d->lines_wanted.first, last = d->lines_wanted.last;

	return !d->by_line || l->why || !l->script || l->size >= SCRIPT_LINES_MAX || !last ||
	       (first >= l->vaddr && last - l->vaddr < l->size) || l->asked_last >= last;
}

/* Return what is wanted and not read yet. */
static struct question open_question(struct code_desk *d)
{
	struct question q;

	pthread_mutex_lock(&d->lock);
	q = (struct question){ d->wanted, d->instance, d->by_line, d->lines_wanted };
	if (d->done && d->done->symbol == d->wanted && same(&d->done->instance, &d->instance) &&
	    has_lines(d))
		q.symbol = SYMBOL_NONE;
	pthread_mutex_unlock(&d->lock);
	return q;
}

void code_serve(struct code_desk *d)
{
	struct question q = open_question(d);
	const struct symbol *symbol;

	if (d->reading && !end_reading(d, &q))
		return;
	q = open_question(d);
	symbol = q.symbol != SYMBOL_NONE ? symtab_at(d->symtab, q.symbol) : NULL;
	if (symbol && q.by_line)
		begin_script(d, q.symbol, symbol, &q.lines);
	else if (symbol)
		begin(d, q.symbol, symbol, &q.instance);
}

bool code_busy(struct code_desk *d)
{
	return d->reading;
}

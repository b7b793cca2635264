// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a file to the interpreter that it is: names of files and symbols, the job that describes a
 * process, the worker's side and the messages.
 *
 * Any thread; pure.
 */
#include "symbols/script/internal.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/sandbox/sandbox.h"

/* "php", "php8.2", "php-fpm8.2", "libphp.so"; not "phpize". */
static bool begins_with(const char *name, const char *word)
{
	size_t size = strlen(word);

	return !strncmp(name, word, size) && (!name[size] || strchr(".-0123456789", name[size]));
}

/* Return the language of files of this name; LANG_NONE. */
static enum lang_kind detect_names_find(const char *name)
{
	for (int i = LANG_NONE + 1; i < LANG_NR; i++) {
		const struct language *l = languages[i];

		if (l->is_file ? l->is_file(name)
			       : begins_with(name, l->program) || begins_with(name, l->library))
			return (enum lang_kind)i;
	}
	return LANG_NONE;
}

/*
 * Recognise and describe interpreters.
 *
 * Runs on: a helper. A job uses nothing but its struct, so that a hanging one
 * (file system, userfaultfd) can be abandoned.
 */

/* Tries until a process without frames of its language has another reason than its age: 6 s. */
#define DETECT_TRIES 30U

enum lang_kind detect_kind(const struct object *object)
{
	uint32_t loop = atomic_load_explicit(&object->loop, memory_order_relaxed);
	const char *symbol = elfloop_symbol((uint8_t)loop, NULL);
	enum lang_kind kind = detect_names_find(object->name.str);

	if (symbol && !strcmp(symbol, ELFLOOP_GO))
		return LANG_GO;

	for (int i = LANG_PYTHON; i < LANG_NR && symbol && kind == LANG_NONE; i++)
		if (languages[i]->shown && !strcmp(symbol, languages[i]->shown))
			kind = (enum lang_kind)i;
	return kind;
}

/*
 * Set the user, and whether it is in another pid namespace than ours: then it knows its threads by
 * other ids.
 */
static void read_status(pid_t pid, struct lang_process *p)
{
	char *text;
	size_t size;
	const char *line;

	p->user = UINT32_MAX;
	if (untrusted_read_proc(pid, "status", 64 << 10, &text, &size))
		return;
	line = strstr(text, "\nUid:");
	if (line)
		p->user = (uint32_t)strtoul(line + 5, NULL, 10);
	line = strstr(text, "\nNSpid:");
	if (line) {
		char *end;

		/* "NSpid:\t4711\t12": more than one number. */
		strtol(line + 7, &end, 10);
		p->nested = *end == '\t';
	}
	free(text);
}

/* Return whether the process executes a program with such a name, not one that embeds it. */
static bool runs_program(pid_t pid, const char *name)
{
	char link[32], path[PATH_MAX];
	ssize_t size;
	const char *slash;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	size = readlink(link, path, sizeof(path) - 1);
	if (size < 0)
		return false;
	path[size] = 0;
	slash = strrchr(path, '/');
	return begins_with(slash ? slash + 1 : path, name);
}

static void set_ranges(struct lang_range *out, const struct lang_range *in, uint32_t nr,
		       uint64_t bias)
{
	for (uint32_t i = 0; i < nr; i++)
		out[i] = (struct lang_range){ in[i].start + bias, in[i].end + bias };
}

static int detect_process(struct detect *job, const struct detect_file *d)
{
	const struct language *l = language_of(d->kind);
	struct lang_process *p;
	bool again;

	job->desc = calloc(1, sizeof(*job->desc));
	if (!job->desc)
		return -ENOMEM;
	atomic_init(&job->desc->refs, 1);
	p = &job->desc->info;
	p->kind = (enum lang_kind)d->kind;
	p->runtime = d->runtime + d->bias;
	p->code_type = d->code_type + d->bias;
	p->nr_eval = d->nr_eval;
	p->nr_main = d->nr_main;
	set_ranges(p->eval, d->eval, d->nr_eval, d->bias);
	set_ranges(p->main, d->main, d->nr_main, d->bias);
	p->program = l && runs_program(job->where.pid, l->program);
	read_status(job->where.pid, p);
	p->version = d->version;
	p->stripped = d->stripped;
	if (p->stripped)
		p->reason = "its interpreter has no symbols";
	again = l && !p->stripped && l->detect(p, d, job->where.pid);
	p->untried |= d->machine != EM_X86_64;
	if (!again || ++job->tries == DETECT_TRIES)
		return 0;
	lang_desc_put(job->desc);
	job->desc = NULL;
	return -EAGAIN;
}

static atomic_ullong last_serial; /* relaxed */

/* Check an answer and copy it to @out. False: invalid; the reader may have been taken over. */
static bool take_file(struct detect_file *out, const struct sandbox_answer *a, enum lang_kind kind)
{
	if (a->size != ELF_SANDBOX_ANSWER + sizeof(*out))
		return false;
	memcpy(out, a->bytes + ELF_SANDBOX_ANSWER, sizeof(*out));
	return out->kind == (uint32_t)kind && out->nr_eval <= LANG_EVAL_MAX &&
	       out->nr_main <= LANG_MAIN_MAX;
}

/* Have the file read in the sandbox; @code: as in the request. 0 or -errno. */
static int read_file(struct detect *d, const struct untrusted_file *opened, uint64_t code,
		     struct detect_file *out)
{
	const struct detect_where *w = &d->where;
	struct detect_request r = {
		.serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1,
		.start = w->start,
		.offset = w->offset,
		.code = code,
		.kind = (uint32_t)w->kind,
	};
	struct elf_sandbox *c = elf_sandbox_new();
	struct sandbox_answer a;
	int rc = c ? 0 : -ENOMEM;

	/* Without a reader of the language: not published, whatever the worker says. */
	if (w->kind == LANG_NONE)
		rc = -ENOENT;
	memcpy(r.name, w->name, sizeof(r.name));
	if (!rc) {
		c->watch = &d->job.watch;
		rc = elf_sandbox_open(c, 0, opened->fd, opened->size);
	}
	atomic_store_explicit(&d->asks, true, memory_order_relaxed);
	if (!rc)
		rc = elf_sandbox_ask(c, &detect_reader, &r, sizeof(r), &a);
	atomic_store_explicit(&d->since_ns, time_now_ns(), memory_order_relaxed);
	/* Release: the time; pairs with hangs(). */
	atomic_store_explicit(&d->asks, false, memory_order_release);
	if (!rc) {
		rc = take_file(out, &a, w->kind) ? 0 : elf_sandbox_refuse(c);
		sandbox_answer_free(&a);
	}
	if (c)
		elf_sandbox_free(c);
	return rc;
}

/* Find the loop of a stripped interpreter by an address in it, which the process has. */
static int find_loop(struct detect *d, const struct untrusted_file *opened,
		     struct detect_file *file)
{
	struct lang_process *p = &d->desc->info;
	int rc = read_file(d, opened, p->code_type - file->bias, file);

	if (rc)
		return rc;
	p->nr_eval = file->nr_eval;
	set_ranges(p->eval, file->eval, file->nr_eval, file->bias);
	if (!p->nr_eval)
		p->reason = "the loop of this build has no unwind table";
	return 0;
}

static int detect_run(struct detect *d)
{
	const struct language *l = language_of(d->where.kind);
	const struct detect_where *w = &d->where;
	const struct untrusted_want want = {
		.pid = w->pid,
		.start = w->start,
		.end = w->end,
		.path = w->path,
		.maj = w->maj,
		.min = w->min,
		.ino = w->ino,
	};
	struct detect_file file;
	struct untrusted_file opened;
	int rc = untrusted_open(&want, &opened, NULL);

	if (rc)
		return rc;
	rc = read_file(d, &opened, 0, &file);
	if (!rc)
		rc = detect_process(d, &file);
	if (!rc && l && l->finds_loop && !d->desc->info.reason && !file.nr_eval)
		rc = find_loop(d, &opened, &file);
	close(opened.fd);
	return rc;
}

static void run(struct job *job)
{
	struct detect *d = (struct detect *)job;

	atomic_store_explicit(&d->since_ns, time_now_ns(), memory_order_relaxed);
	/* Of a run before, without an answer. */
	lang_desc_put(d->desc);
	d->desc = NULL;
	d->rc = detect_run(d);
}

static void drop(struct job *job)
{
	struct detect *d = (struct detect *)job;

	lang_desc_put(d->desc);
	free(d->where.path);
	free(d);
}

struct detect *detect_new(const struct detect_where *where)
{
	struct detect *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->job.run = run;
	d->job.drop = drop;
	d->where = *where;
	return d;
}

/*
 * Find the symbols of an interpreter in its file.
 *
 * Runs in the worker, or in the thread of the call.
 */

#define SYMBOLS_MAX (1U << 20)

/* Constants that are searched for a text. */
#define TEXT_PART_MAX (32U << 20)

static void add_eval(struct detect_file *d, uint64_t start, uint64_t size, bool first)
{
	for (uint32_t i = 0; i < d->nr_eval; i++)
		if (d->eval[i].start == start)
			return;
	if (!size || d->nr_eval == LANG_EVAL_MAX || start + size < start)
		return;
	/* The function itself first, then its parts. */
	if (first)
		memmove(d->eval + 1, d->eval, d->nr_eval * sizeof(d->eval[0]));
	d->eval[first ? 0 : d->nr_eval] = (struct lang_range){ start, start + size };
	d->nr_eval++;
}

/*
 * Take the cold parts of the loop from the image of a stripped file, which finds them; a loop
 * without a symbol is the function with an unwind table that @code is in.
 */
static void add_parts(struct detect_file *d, const struct elffile *f, uint64_t code)
{
	const char *eval = languages[d->kind]->eval;
	size_t size = strlen(eval);
	struct ehframe_fde fde;
	struct image *image;

	if ((d->nr_eval ? elffile_section_of_type(f, SHT_SYMTAB) != NULL : !code) ||
	    image_build(&image, &(struct image_parts){ .file = f }) || !image)
		return;
	if (!d->nr_eval && ehframe_find(&image->eh, code, &fde))
		add_eval(d, fde.start, fde.size, true);
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *name = image->names + s->name;

		if (!strncmp(name, eval, size) && name[size] == '.')
			add_eval(d, s->vaddr, s->size, false);
	}
	image_free(image);
}

static void on_symbol(struct detect_search *search, const Elf64_Sym *s, const char *name)
{
	struct detect_file *d = search->out;
	const struct language *l = languages[d->kind];
	size_t eval = l->eval ? strlen(l->eval) : 0;

	if (!s->st_value || s->st_shndx == SHN_UNDEF)
		return;
	if (l->runtime && !strcmp(name, l->runtime))
		d->runtime = s->st_value;
	else if (l->code_type && !strcmp(name, l->code_type))
		d->code_type = s->st_value;
	else if (l->version && !strcmp(name, l->version))
		d->version_at = s->st_value;
	else if (eval && !strncmp(name, l->eval, eval) && (!name[eval] || name[eval] == '.'))
		add_eval(d, s->st_value, s->st_size, !name[eval]);
	else if (l->on_symbol)
		l->on_symbol(search, s, name);
}

/* Look through the symbols of one table. */
static void read_symbols(struct detect_search *search, const struct elffile *f, uint32_t type)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type), *strings;
	void *symbols = NULL, *names = NULL;
	size_t nr;

	if (!s || s->sh_link >= f->nr_shdrs || s->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX)
		return;
	strings = &f->shdrs[s->sh_link];
	if (strings->sh_type != SHT_STRTAB || strings->sh_size > 64U << 20)
		return;
	/* Both are missed in one call, and nothing is read without the other. */
	if (elffile_expect(f, s->sh_offset, s->sh_size) |
	    elffile_expect(f, strings->sh_offset, strings->sh_size))
		return;
	if (elffile_read_alloc(f, s->sh_offset, s->sh_size, &symbols))
		return;
	if (elffile_read_alloc(f, strings->sh_offset, strings->sh_size, &names)) {
		free(symbols);
		return;
	}
	nr = s->sh_size / sizeof(Elf64_Sym);
	for (size_t i = 0; i < nr; i++) {
		Elf64_Sym sym;

		memcpy(&sym, (char *)symbols + i * sizeof(sym), sizeof(sym));
		if (sym.st_name < strings->sh_size)
			on_symbol(search, &sym, (const char *)names + sym.st_name);
	}
	free(symbols);
	free(names);
}

/* Look through the symbols. 0 or -ENOENT: no file of an interpreter. */
static int find_symbols(struct detect_search *search, const struct elffile *f, enum lang_kind kind)
{
	struct detect_file *out = search->out;

	*out = (struct detect_file){ .kind = (uint32_t)kind, .machine = f->machine };
	if (f->elf_class != ELFCLASS64)
		return -ENOENT;
	if (kind == LANG_GO)
		return 0;
	if (kind <= LANG_NONE || kind >= LANG_NR)
		return -ENOENT;
	read_symbols(search, f, SHT_DYNSYM);
	if (languages[kind]->eval || !search->symbols.builtins.code)
		read_symbols(search, f, SHT_SYMTAB);
	return 0;
}

/*
 * Find the functions by which Go calls C, its runtime on the stack of the thread, and by which C
 * calls Go: by Go's own table if it is stripped. 0 or -ENOENT.
 */
static int find_go(struct detect_file *d, const struct elffile *f)
{
	static const char *const names[] = { "runtime.asmcgocall", "runtime.systemstack",
					     "runtime.cgocallback", "runtime.goexit" };
	struct image *image;

	if (f->machine != EM_X86_64 || image_build(&image, &(struct image_parts){ .file = f }) ||
	    !image)
		return -ENOENT;
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *name = image->names + s->name, *rest;

		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			rest = name + strlen(names[k]);
			if (strncmp(name, names[k], strlen(names[k])) != 0 ||
			    (*rest && strcmp(rest, ".abi0") != 0))
				continue;
			if (k < 2)
				add_eval(d, s->vaddr, s->size, false);
			else
				*(k == 2 ? &d->runtime : &d->code_type) = s->vaddr;
		}
	}
	image_free(image);
	return d->nr_eval ? 0 : -ENOENT;
}

uint64_t detect_find_text(const struct elffile *f, const char *text)
{
	uint64_t found = 0;
	Elf64_Shdr s;

	for (uint32_t i = 0; !found && elffile_constants(f, i, &s); i++) {
		const uint8_t *bytes, *at;
		void *copy;

		if (s.sh_size > TEXT_PART_MAX ||
		    !(bytes = elffile_bytes(f, s.sh_offset, s.sh_size, &copy)))
			continue;
		at = memmem(bytes, s.sh_size, text, strlen(text));
		if (at)
			found = s.sh_addr + (uint64_t)(at - bytes);
		free(copy);
	}
	return found;
}

/* Read the values of the symbols. 0 or -ENOENT: some symbols are missing. */
static int take_values(struct detect_search *search, const struct elffile *f)
{
	struct detect_file *out = search->out;
	const struct language *l = language_of(out->kind);
	int rc;

	if (out->kind == LANG_GO)
		return find_go(out, f);
	if (l->eval)
		add_parts(out, f, search->code);
	/* Of the functions that run a main program, code may belong to the others. */
	for (uint32_t i = 1; i < MIN(out->nr_main, (uint32_t)LANG_MAIN_EVAL); i++)
		add_eval(out, out->main[i].start, out->main[i].end - out->main[i].start, false);
	rc = l->on_file ? l->on_file(search, f) : 0;
	if (rc)
		return rc < 0 ? rc : 0;
	return out->runtime && out->nr_eval && (!l->code_type || out->code_type) ? 0 : -ENOENT;
}

/* Return whether the file has the texts by which its interpreter is known without symbols. */
static bool has_texts(const struct elffile *f, uint32_t kind)
{
	const struct language *l = language_of(kind);
	const char *const *texts = NULL;
	const char *name = "";

	for (uint8_t i = 1; l && l->shown && (name = elfloop_symbol(i, &texts)); i++)
		if (!strcmp(name, l->shown))
			break;
	for (uint32_t i = 0; texts && name && i < ELFLOOP_TEXTS; i++)
		if (!texts[i] || !detect_find_text(f, texts[i]))
			return false;
	return texts && name;
}

/* The same; 0 also for an interpreter that has none of them, known by its texts. */
static int read_symbol_values(struct detect_search *search, const struct elffile *f)
{
	int rc = take_values(search, f);

	search->out->stripped = rc == -ENOENT && !search->out->runtime &&
				has_texts(f, search->out->kind);
	return search->out->stripped ? 0 : rc;
}

/* Get the bias of the addresses in the file; false: the mapping is not of this file. */
static bool bias_of(const struct elffile *f, const struct detect_request *w, uint64_t *bias)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		/* Mappings begin at pages: before the segment, maybe. */
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) ||
		    w->offset + 65536 <= p->p_offset || w->offset >= p->p_offset + p->p_filesz)
			continue;
		*bias = w->start - (p->p_vaddr + (w->offset - p->p_offset));
		return true;
	}
	return false;
}

/* The symbols of the last file: it may take several calls until the bytes at them are there. */
static struct {
	uint64_t serial; /* of the request; 0: none */
	struct detect_file file;
	struct v8_symbols symbols;
	uint32_t python;
	uint64_t entry;
} kept;

/* Find the symbols of the file, or take the kept ones. */
static int have_symbols(struct detect_search *search, const struct elf_sandbox_serve *v,
			const struct detect_request *r)
{
	int rc;

	if (r->serial == kept.serial) {
		*search->out = kept.file;
		search->symbols = kept.symbols;
		search->python = kept.python;
		search->entry = kept.entry;
		return 0;
	}
	rc = find_symbols(search, &v->file[0], (enum lang_kind)r->kind);
	kept.serial = rc || elf_sandbox_serve_misses(v) ? 0 : r->serial;
	kept.file = *search->out;
	kept.symbols = search->symbols;
	kept.python = search->python;
	kept.entry = search->entry;
	return rc;
}

static int serve_file(struct elf_sandbox_serve *v, struct sandbox_call *c, const void *request)
{
	const struct detect_request *r = request;
	struct detect_file file = { .nr_eval = 0 };
	struct detect_search search = { .out = &file, .name = r->name, .code = r->code };
	int rc = memchr(r->name, 0, sizeof(r->name)) ? elf_sandbox_serve_open(v, c, 0) : -EINVAL;

	if (!rc)
		rc = have_symbols(&search, v, r);
	if (!rc && !elf_sandbox_serve_misses(v))
		rc = read_symbol_values(&search, &v->file[0]);
	if (!rc && !bias_of(&v->file[0], r, &file.bias))
		rc = -ESTALE;
	rc = elf_sandbox_serve_begin(v, c, rc);
	if (!rc && !elf_sandbox_serve_misses(v))
		sandbox_put(&c->reply, &file, sizeof(file));
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct detect_request r;

	return elf_sandbox_serve_call(c, &r, sizeof(r), serve_file);
}

const struct sandbox_reader detect_reader = {
	.kind = SANDBOX_DESCRIBE,
	.name = "proftop-lang",
	.serve = serve,
	.memory_max = 2ULL << 30,
};

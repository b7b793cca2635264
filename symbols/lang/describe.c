// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recognise and describe interpreters.
 *
 * Runs on: a helper. A job uses nothing but its struct, so that a hanging one
 * (file system, userfaultfd) can be abandoned.
 */
#include "symbols/lang/describe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/base/foreign.h"
#include "symbols/object/elffile.h"

#define SYMBOLS_MAX (1U << 20)
#define RODATA_MAX  (32U << 20)
/* struct interpreter of 5.36 with threads. */
#define PERL_INTERP_SIZE 3768

/* "python3.11", "libpython3.11.so.1.0": the minor version, -1: neither. */
static int python_minor(const char *name)
{
	static const char *const begins[] = { "libpython3.", "python3." };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		size_t size = strlen(begins[i]);
		char *end;
		long minor;

		if (strncmp(name, begins[i], size) != 0 || name[size] < '0' || name[size] > '9')
			continue;
		minor = strtol(name + size, &end, 10);
		return minor < 256 && (!*end || strchr(".dt- ", *end)) ? (int)minor : -1;
	}
	return -1;
}

/* Symbols of interpreters, by the names of their files. */
static const struct recipe {
	const char *program, *library;
	const char *runtime, *code_type, *version, *eval;
} recipes[LANG_NR] = {
	[LANG_PYTHON] = { "python", "libpython", "_PyRuntime", "PyCode_Type", "Py_Version",
			  "_PyEval_EvalFrameDefault" },
	[LANG_PHP] = { "php", "libphp", "executor_globals", NULL, NULL, "execute_ex" },
	[LANG_RUBY] = { "ruby", "libruby", "ruby_current_vm_ptr", NULL, "ruby_api_version",
			"rb_vm_exec" },
	[LANG_PERL] = { "perl", "libperl", "PL_curinterp", NULL, "PL_interp_size",
			"Perl_runops_standard" },
	[LANG_NODE] = { "node", "libnode", NULL, NULL, NULL, NULL }, /* describe_v8.h */
};

/* "php", "php8.2", "php-fpm8.2", "libphp.so"; not "phpize". */
static bool begins_with(const char *name, const char *word)
{
	size_t size = strlen(word);

	return !strncmp(name, word, size) && (!name[size] || strchr(".-0123456789", name[size]));
}

enum lang_kind describe_kind_of_name(const char *name)
{
	if (python_minor(name) >= 0)
		return LANG_PYTHON;
	for (int i = LANG_PYTHON + 1; i < LANG_NR; i++)
		if (begins_with(name, recipes[i].program) || begins_with(name, recipes[i].library))
			return (enum lang_kind)i;
	return LANG_NONE;
}

static void add_eval(struct describe_file *d, uint64_t start, uint64_t size, bool first)
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
 * Perl compiles the main program, and runs its BEGIN and END blocks, outside of any loop: its frame
 * belongs to these functions then.
 */
static bool is_root(const struct describe_file *d, const char *name)
{
	return d->kind == LANG_PERL && (!strcmp(name, "perl_parse") || !strcmp(name, "perl_"
										     "destruct"));
}

static void on_symbol(struct describe_file *d, const Elf64_Sym *s, const char *name)
{
	const struct recipe *r = &recipes[d->kind];
	size_t eval = r->eval ? strlen(r->eval) : 0;

	if (!s->st_value || s->st_shndx == SHN_UNDEF)
		return;
	if (d->kind == LANG_NODE)
		describe_v8_symbol(&d->symbols, name, s->st_value);
	else if (!strcmp(name, r->runtime))
		d->runtime = s->st_value;
	else if (r->code_type && !strcmp(name, r->code_type))
		d->code_type = s->st_value;
	else if (r->version && !strcmp(name, r->version))
		d->version_at = s->st_value;
	else if (!strncmp(name, r->eval, eval) && (!name[eval] || name[eval] == '.'))
		add_eval(d, s->st_value, s->st_size, !name[eval]);
	else if (is_root(d, name))
		add_eval(d, s->st_value, s->st_size, false);
}

/* Look through the symbols of one table. */
static void read_symbols(struct describe_file *d, const struct elffile *f, uint32_t type)
{
	const Elf64_Shdr *s = elffile_section_of_type(f, type), *strings;
	void *symbols = NULL, *names = NULL;
	size_t nr;

	if (!s || s->sh_link >= f->nr_shdrs || s->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX)
		return;
	strings = &f->shdrs[s->sh_link];
	if (strings->sh_type != SHT_STRTAB || strings->sh_size > 64U << 20 ||
	    elffile_read_alloc(f, s->sh_offset, s->sh_size, &symbols))
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
			on_symbol(d, &sym, (const char *)names + sym.st_name);
	}
	free(symbols);
	free(names);
}

/* Find the version that extensions are checked against: "API420220829,NTS". */
static void set_php_version(struct describe_file *out, const struct elffile *f)
{
	static const char api[] = "API420220829,NTS";
	const Elf64_Shdr *s = elffile_section(f, ".rodata");
	void *bytes;

	out->reason = "a version of PHP that is not supported (8.2 without threads is)";
	if (!s || s->sh_size > RODATA_MAX ||
	    elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes))
		return;
	if (memmem(bytes, s->sh_size, api, sizeof(api))) {
		out->version = 8U << 24 | 2U << 16;
		out->reason = NULL;
	}
	free(bytes);
}

int describe_read_file(struct describe_file *out, const struct elffile *f, const char *name)
{
	const Elf64_Shdr *runtime;

	*out = (struct describe_file){ .kind = describe_kind_of_name(name) };
	if (out->kind == LANG_NONE || f->elf_class != ELFCLASS64)
		return -ENOENT;
	if (out->kind == LANG_PYTHON)
		out->version = 3U << 24 | (uint32_t)python_minor(name) << 16;
	read_symbols(out, f, SHT_DYNSYM);
	if (out->kind != LANG_NODE)
		read_symbols(out, f, SHT_SYMTAB);
	if (out->kind == LANG_NODE) {
		describe_v8(&out->v8, &out->symbols, f);
		return out->symbols.number[V8_FP_FUNCTION] ? 0 : -ENOENT;
	}
	runtime = elffile_section(f, ".PyRuntime");
	if (!out->runtime && runtime && out->kind == LANG_PYTHON)
		out->runtime = runtime->sh_addr;
	if (!out->runtime || !out->nr_eval || (recipes[out->kind].code_type && !out->code_type))
		return -ENOENT;
	if (out->kind == LANG_PHP)
		set_php_version(out, f);
	return 0;
}

/* Get the bias of the addresses in the file; false: the mapping is not of this file. */
static bool bias_of(const struct elffile *f, const struct describe_where *w, uint64_t *bias)
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

static bool read_memory(pid_t pid, uint64_t addr, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* Another pid namespace than ours: then it knows its threads by other ids. */
static bool is_nested(pid_t pid)
{
	char *text;
	size_t size;
	const char *line;
	bool nested = false;

	if (foreign_read_proc(pid, "status", 64 << 10, &text, &size))
		return false;
	line = strstr(text, "\nNSpid:");
	if (line) {
		char *end;

		/* "NSpid:\t4711\t12": more than one number. */
		strtol(line + 7, &end, 10);
		nested = *end == '\t';
	}
	free(text);
	return nested;
}

/* Set the reason by errno. */
static void set_unreadable(struct lang_process *p)
{
	p->refused = errno == EPERM || errno == EACCES;
	p->reason = p->refused ? "no permission to read its memory" : "its memory cannot be read";
}

/* Set CPython's version and layout, checked against the memory of the process. */
static void set_python_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			       pid_t pid)
{
	uint64_t words[PY_DEBUG_OFFSETS_WORDS];
	const struct py_layout *layout;
	uint32_t version;

	if (!read_memory(pid, p->runtime, words, sizeof(words))) {
		set_unreadable(p);
		return;
	}
	if (d->version_at) {
		if (read_memory(pid, d->version_at + bias, &version, sizeof(version)) &&
		    version >> 16 == d->version >> 16)
			p->version = version;
		else
			p->reason = "it says another version than its file's name";
	}
	layout = pylayout_of(p->version);
	if (!layout) {
		p->reason = "a version of Python that is not supported (3.8 to 3.14 are)";
		return;
	}
	p->py = *layout;
	if (layout->minor >= 13 && !p->reason)
		p->reason = pylayout_debug(&p->py, words);
	p->untried = layout->minor > 13;
}

/* Set Ruby's version: three numbers in its memory. */
static void set_ruby_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			     pid_t pid)
{
	uint32_t api[3] = { 0 };

	errno = 0;
	if (!d->version_at || !read_memory(pid, d->version_at + bias, api, sizeof(api)))
		set_unreadable(p);
	else if (api[0] != 3 || api[1] != 1)
		p->reason = "a version of Ruby that is not supported (3.1 is)";
	else
		p->version = api[0] << 24 | api[1] << 16;
}

/* Check Perl's layout: the size of its interpreter differs by version and options. */
static void set_perl_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			     pid_t pid)
{
	uint16_t size;

	errno = 0;
	if (!d->version_at || !read_memory(pid, d->version_at + bias, &size, sizeof(size)))
		set_unreadable(p);
	else if (size != PERL_INTERP_SIZE)
		p->reason = "a version of Perl that is not supported (5.36 with threads is)";
	else
		p->version = 5U << 24 | 36U << 16;
}

/* V8's layout is that of its file. */
static void set_v8(struct lang_process *p, const struct v8_file *f)
{
	p->v8 = f->layout;
	p->version = f->version;
	p->reason = f->reason;
	p->untried = !f->tried;
	p->code_offset = f->blob_offset;
	p->code_size = f->blob_size;
}

static int describe_process(struct describe *job, const struct describe_file *d,
			    const struct elffile *f)
{
	struct lang_process *p;
	uint64_t bias;

	if (!bias_of(f, &job->where, &bias))
		return -ESTALE;
	job->desc = calloc(1, sizeof(*job->desc));
	if (!job->desc)
		return -ENOMEM;
	atomic_init(&job->desc->refs, 1);
	p = &job->desc->info;
	p->kind = d->kind;
	p->runtime = d->runtime + bias;
	p->code_type = d->code_type + bias;
	p->nr_eval = d->nr_eval;
	for (uint32_t i = 0; i < d->nr_eval; i++)
		p->eval[i] = (struct lang_range){ d->eval[i].start + bias, d->eval[i].end + bias };
	p->nested = is_nested(job->where.pid);
	p->version = d->version;
	p->reason = d->reason;
	if (d->kind == LANG_PYTHON)
		set_python_version(p, d, bias, job->where.pid);
	else if (d->kind == LANG_RUBY)
		set_ruby_version(p, d, bias, job->where.pid);
	else if (d->kind == LANG_PERL)
		set_perl_version(p, d, bias, job->where.pid);
	else if (d->kind == LANG_NODE)
		set_v8(p, &d->v8);
	p->untried |= f->machine != EM_X86_64;
	return 0;
}

static int describe_run(struct describe *d)
{
	const struct describe_where *w = &d->where;
	const struct foreign_want want = {
		.pid = w->pid,
		.start = w->start,
		.end = w->end,
		.path = w->path,
		.maj = w->maj,
		.min = w->min,
		.ino = w->ino,
	};
	const char *slash = strrchr(w->path, '/');
	struct describe_file file;
	struct foreign_file opened;
	struct elffile f;
	int rc = foreign_open(&want, &opened, NULL);

	if (rc)
		return rc;
	rc = elffile_open_watched(&f, opened.fd, opened.size, &d->job.watch, NULL);
	if (!rc) {
		rc = describe_read_file(&file, &f, slash ? slash + 1 : w->path);
		if (!rc)
			rc = describe_process(d, &file, &f);
		elffile_close(&f);
	}
	close(opened.fd);
	return rc;
}

static void run(struct job *job)
{
	struct describe *d = (struct describe *)job;

	d->rc = describe_run(d);
}

static void drop(struct job *job)
{
	struct describe *d = (struct describe *)job;

	lang_desc_put(d->desc);
	free(d->where.path);
	free(d);
}

struct describe *describe_new(const struct describe_where *where)
{
	struct describe *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->job.run = run;
	d->job.drop = drop;
	d->where = *where;
	return d;
}

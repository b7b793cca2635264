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
#define EVAL	    "_PyEval_EvalFrameDefault"

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

enum lang_kind describe_kind_of_name(const char *name)
{
	return python_minor(name) >= 0 ? LANG_PYTHON : LANG_NONE;
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

static void on_symbol(struct describe_file *d, const Elf64_Sym *s, const char *name)
{
	if (!s->st_value || s->st_shndx == SHN_UNDEF)
		return;
	if (!strcmp(name, "_PyRuntime"))
		d->runtime = s->st_value;
	else if (!strcmp(name, "PyCode_Type"))
		d->code_type = s->st_value;
	else if (!strcmp(name, "Py_Version"))
		d->version_at = s->st_value;
	else if (!strncmp(name, EVAL, sizeof(EVAL) - 1) &&
		 (!name[sizeof(EVAL) - 1] || name[sizeof(EVAL) - 1] == '.'))
		add_eval(d, s->st_value, s->st_size, !name[sizeof(EVAL) - 1]);
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

int describe_read_file(struct describe_file *out, const struct elffile *f, const char *name)
{
	const Elf64_Shdr *runtime;
	int minor = python_minor(name);

	*out = (struct describe_file){ .kind = LANG_PYTHON };
	if (minor < 0 || f->elf_class != ELFCLASS64)
		return -ENOENT;
	out->version = 3U << 24 | (uint32_t)minor << 16;
	read_symbols(out, f, SHT_DYNSYM);
	read_symbols(out, f, SHT_SYMTAB);
	runtime = elffile_section(f, ".PyRuntime");
	if (!out->runtime && runtime)
		out->runtime = runtime->sh_addr;
	return out->runtime && out->code_type && out->nr_eval ? 0 : -ENOENT;
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

/* Set version and layout, checked against the memory of the process. */
static void set_version(struct lang_process *p, const struct describe_file *d, uint64_t bias,
			pid_t pid)
{
	uint64_t words[PY_DEBUG_OFFSETS_WORDS];
	const struct py_layout *layout;
	uint32_t version;

	p->version = d->version;
	if (!read_memory(pid, p->runtime, words, sizeof(words))) {
		p->reason = errno == EPERM || errno == EACCES ? "no permission to read its memory "
								"(cap_sys_ptrace)"
							      : "its memory cannot be read";
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
	set_version(p, d, bias, job->where.pid);
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

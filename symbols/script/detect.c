// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Find the symbols of an interpreter in its file.
 *
 * Runs in the worker, or in the thread of the call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/lang/describe.h"
#include "symbols/lang/describe_names.h"
#include "symbols/lang/describe_v8.h"
#include "symbols/lang/describe_wire.h"
#include "symbols/object/elfcage_serve.h"
#include "symbols/object/image_read.h"

#define SYMBOLS_MAX (1U << 20)
#define RODATA_MAX  (32U << 20)

/* A file that is looked through. */
struct search {
	struct describe_file *out;
	struct v8_symbols symbols; /* of LANG_NODE */
	uint32_t python;	   /* version before 3.11, by its functions; 0: unknown */
};

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
 * Add a function that runs Perl's main program. Perl compiles it, and runs its BEGIN and END
 * blocks, outside of any loop: its frame belongs to these functions then.
 */
static void add_main(struct describe_file *d, const Elf64_Sym *s, const char *name)
{
	static const char *const names[LANG_MAIN_MAX] = { "perl_run", "perl_parse",
							  "perl_destruct" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		if (i)
			add_eval(d, s->st_value, s->st_size, false);
		for (uint32_t k = 0; k < d->nr_main; k++)
			if (d->main[k].start == s->st_value)
				return;
		if (d->nr_main < LANG_MAIN_MAX)
			d->main[d->nr_main++] =
				(struct lang_range){ s->st_value, s->st_value + s->st_size };
	}
}

/* Note the version of CPython that has a function of this name: 3.8 to 3.10 have no Py_Version. */
static void note_python(struct search *search, const char *name)
{
	static const struct {
		const char *name;
		uint32_t minor;
	} since[] = {
		{ "PyCode_NewWithPosOnlyArgs", 8 },
		{ "PyObject_GC_IsTracked", 9 },
		{ "Py_NewRef", 10 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(since); i++)
		if (!strcmp(name, since[i].name))
			search->python = MAX(search->python, 3U << 24 | since[i].minor << 16);
}

static void on_symbol(struct search *search, const Elf64_Sym *s, const char *name)
{
	struct describe_file *d = search->out;
	const struct describe_names *r = describe_names((enum lang_kind)d->kind);
	size_t eval = r->eval ? strlen(r->eval) : 0;

	if (!s->st_value || s->st_shndx == SHN_UNDEF)
		return;
	if (d->kind == LANG_NODE)
		describe_v8_symbol(&search->symbols, name, s->st_value);
	else if (!strcmp(name, r->runtime))
		d->runtime = s->st_value;
	else if (r->code_type && !strcmp(name, r->code_type))
		d->code_type = s->st_value;
	else if (r->version && !strcmp(name, r->version))
		d->version_at = s->st_value;
	else if (!strncmp(name, r->eval, eval) && (!name[eval] || name[eval] == '.'))
		add_eval(d, s->st_value, s->st_size, !name[eval]);
	else if (d->kind == LANG_PERL)
		add_main(d, s, name);
	else if (d->kind == LANG_PYTHON)
		note_python(search, name);
}

/* Take the cold parts of the loop from the image of a stripped file, which finds them. */
static void add_parts(struct describe_file *d, const struct elffile *f)
{
	const char *eval = describe_names((enum lang_kind)d->kind)->eval;
	size_t size = strlen(eval);
	struct image *image;

	if (!d->nr_eval || elffile_section_of_type(f, SHT_SYMTAB) ||
	    image_build(&image, &(struct image_parts){ .file = f }) || !image)
		return;
	for (uint32_t i = 0; i < image->nr_symbols; i++) {
		const struct image_symbol *s = &image->symbols[i];
		const char *name = image->names + s->name;

		if (!strncmp(name, eval, size) && name[size] == '.')
			add_eval(d, s->vaddr, s->size, false);
	}
	image_free(image);
}

/* Look through the symbols of one table. */
static void read_symbols(struct search *search, const struct elffile *f, uint32_t type)
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

/* Find the version of PHP, and the one that extensions are checked against: "API420220829,NTS". */
static void set_php_version(struct describe_file *out, const struct elffile *f)
{
	static const char header[] = "X-Powered-By: PHP/";
	const Elf64_Shdr *s = elffile_section(f, ".rodata");
	const struct describe_php *row;
	const char *said;
	void *bytes;

	if (!s || s->sh_size > RODATA_MAX ||
	    elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes))
		return;
	/* The bytes end with a NUL. */
	said = memmem(bytes, s->sh_size, header, sizeof(header) - 1);
	if (said && said[18] >= '0' && said[18] <= '9' && said[19] == '.')
		out->version = (uint32_t)(said[18] - '0') << 24 |
			       (uint32_t)(strtoul(said + 20, NULL, 10) & 255) << 16;
	for (size_t i = 0; (row = describe_php(i)); i++) {
		if (!memmem(bytes, s->sh_size, row->api, strlen(row->api) + 1))
			continue;
		out->version = row->version;
		out->php = (uint32_t)i + 1;
	}
	free(bytes);
}

/* Look through the symbols. 0 or -ENOENT: no file of an interpreter. */
static int find_symbols(struct search *search, const struct elffile *f, enum lang_kind kind,
			const char *name)
{
	struct describe_file *out = search->out;

	*out = (struct describe_file){ .kind = (uint32_t)kind, .machine = f->machine };
	if (kind <= LANG_NONE || kind >= LANG_NR || f->elf_class != ELFCLASS64)
		return -ENOENT;
	if (out->kind == LANG_PYTHON && describe_python_minor(name) >= 0)
		out->version = 3U << 24 | (uint32_t)describe_python_minor(name) << 16;
	read_symbols(search, f, SHT_DYNSYM);
	if (out->kind != LANG_NODE)
		read_symbols(search, f, SHT_SYMTAB);
	return 0;
}

/* Read the values of the symbols. 0 or -ENOENT: some symbols are missing. */
static int read_symbol_values(struct search *search, const struct elffile *f)
{
	struct describe_file *out = search->out;
	const Elf64_Shdr *runtime;

	if (out->kind == LANG_NODE) {
		describe_v8(out, &search->symbols, f);
		/* Debian's program "node" has none: they are in libnode.so. */
		return search->symbols.number[V8_FP_FUNCTION] ? 0 : -ENOENT;
	}
	add_parts(out, f);
	if (out->kind == LANG_PYTHON && !out->version && !out->version_at)
		out->version = search->python;
	runtime = elffile_section(f, ".PyRuntime");
	if (!out->runtime && runtime && out->kind == LANG_PYTHON)
		out->runtime = runtime->sh_addr;
	/* Stripped: its version is known, and the reason why it is not read. */
	if (out->kind == LANG_RUBY && out->version_at)
		return 0;
	if (!out->runtime || !out->nr_eval ||
	    (describe_names((enum lang_kind)out->kind)->code_type && !out->code_type))
		return -ENOENT;
	if (out->kind == LANG_PHP)
		set_php_version(out, f);
	return 0;
}

int describe_read_file(struct describe_file *out, const struct elffile *f, enum lang_kind kind,
		       const char *name)
{
	struct search search = { .out = out };
	int rc = find_symbols(&search, f, kind, name);

	return rc ? rc : read_symbol_values(&search, f);
}

/* Get the bias of the addresses in the file; false: the mapping is not of this file. */
static bool bias_of(const struct elffile *f, const struct describe_request *w, uint64_t *bias)
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
	struct describe_file file;
	struct v8_symbols symbols;
	uint32_t python;
} kept;

/* Find the symbols of the file, or take the kept ones. */
static int have_symbols(struct search *search, const struct elfcage_serve *v,
			const struct describe_request *r)
{
	int rc;

	if (r->serial == kept.serial) {
		*search->out = kept.file;
		search->symbols = kept.symbols;
		search->python = kept.python;
		return 0;
	}
	rc = find_symbols(search, &v->file[0], (enum lang_kind)r->kind, r->name);
	kept.serial = rc || elfcage_serve_misses(v) ? 0 : r->serial;
	kept.file = *search->out;
	kept.symbols = search->symbols;
	kept.python = search->python;
	return rc;
}

static int serve_file(struct elfcage_serve *v, struct cage_call *c, const void *request)
{
	const struct describe_request *r = request;
	struct describe_file file = { .nr_eval = 0 };
	struct search search = { .out = &file };
	int rc = memchr(r->name, 0, sizeof(r->name)) ? elfcage_serve_open(v, c, 0) : -EINVAL;

	if (!rc)
		rc = have_symbols(&search, v, r);
	if (!rc && !elfcage_serve_misses(v))
		rc = read_symbol_values(&search, &v->file[0]);
	if (!rc && !bias_of(&v->file[0], r, &file.bias))
		rc = -ESTALE;
	rc = elfcage_serve_begin(v, c, rc);
	if (!rc && !elfcage_serve_misses(v))
		cage_put(&c->reply, &file, sizeof(file));
	return rc;
}

static int serve(struct cage_call *c)
{
	struct describe_request r;

	return elfcage_serve_call(c, &r, sizeof(r), serve_file);
}

const struct cage_reader describe_reader = {
	.kind = CAGE_DESCRIBE,
	.name = "proftop-lang",
	.serve = serve,
	.memory_max = 2ULL << 30,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Facts about an ELF file (build-id, variables, debug information and its file): the call, the
 * worker's side and the messages; perf's cache of files by build-id.
 */
#include "symbols/elf/internal.h"

#include <assert.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/sandbox/sandbox.h"

#define ELFFACTS_VARS_MAX 16U

enum elffacts_file { ELFFACTS_OBJECT, ELFFACTS_DEBUG };

struct elffacts_request {
	uint64_t offset;
	uint32_t nr_vars;
	uint32_t by_link; /* how the debug file was found */
	uint64_t at;	  /* distance of a variable from the byte at @offset; 0: none wanted */
	char names[ELFFACTS_VARS_MAX][ELFFACTS_NAME_MAX];
};

/* Of the debug file, if there is one. */
struct elffacts_answer {
	struct elffacts facts;
	uint32_t match; /* enum debugfile_match */
	uint32_t unused;
	uint64_t bias;
	uint64_t at_begin;	    /* the same distance of its begin */
	char at[ELFFACTS_NAME_MAX]; /* its name; "": none */
	uint64_t vaddr[ELFFACTS_VARS_MAX], size[ELFFACTS_VARS_MAX]; /* of the symbols */
};

/*
 * The answers of the worker.
 */

static bool is_valid(const struct elffacts *f)
{
	const struct debugfile_names *n = &f->names;

	return n->build_id_size <= sizeof(n->build_id) && memchr(n->link, 0, sizeof(n->link)) &&
	       (!n->link[0] || debugfile_link_ok(n->link)) && f->alt.id_size <= sizeof(f->alt.id) &&
	       memchr(f->alt.link, 0, sizeof(f->alt.link)) && f->dwarf <= 0 && f->alt_rc <= 0 &&
	       f->dwarf_size <= ELFDWARF_SIZE_MAX && f->has_vaddr <= 1;
}

/* Call the reader with the files that are open, and check its answer. */
static int ask(struct elf_sandbox *c, const struct elffacts_request *r, struct elffacts_answer *out)
{
	struct sandbox_answer a;
	int rc = elf_sandbox_ask(c, &elffacts_reader, r, sizeof(*r), &a);

	if (rc)
		return rc;
	if (a.size == ELF_SANDBOX_ANSWER + sizeof(*out))
		memcpy(out, a.bytes + ELF_SANDBOX_ANSWER, sizeof(*out));
	else
		rc = -EBADMSG;
	sandbox_answer_free(&a);
	return !rc && is_valid(&out->facts) ? 0 : elf_sandbox_refuse(c);
}

int elffacts_read(struct elffacts *out, const struct elffacts_input *in)
{
	struct elffacts_request r = { .offset = in->offset, .nr_vars = in->nr_vars };
	struct elf_sandbox *c = elf_sandbox_new();
	struct elffacts_answer a;
	int rc = c ? 0 : -ENOMEM;

	assert(in->vars || !in->nr_vars);
	if (in->nr_vars > ELFFACTS_VARS_MAX)
		rc = -E2BIG;
	for (uint32_t i = 0; i < in->nr_vars && !rc; i++)
		strncpy(r.names[i], in->vars[i].name, sizeof(r.names[i]) - 1);
	if (!rc) {
		c->watch = in->watch;
		rc = elf_sandbox_open(c, ELFFACTS_OBJECT, in->fd, in->size);
	}
	if (!rc)
		rc = ask(c, &r, &a);
	if (c)
		elf_sandbox_free(c);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < in->nr_vars; i++) {
		in->vars[i].vaddr = a.vaddr[i];
		in->vars[i].size = a.size[i];
	}
	*out = a.facts;
	return 0;
}

int elffacts_variable(int fd, uint64_t size, uint64_t at, char name[static ELFFACTS_NAME_MAX],
		      uint64_t *begin)
{
	const struct elffacts_request r = { .at = at };
	struct elf_sandbox *c = elf_sandbox_new();
	struct elffacts_answer a;
	int rc = c ? elf_sandbox_open(c, ELFFACTS_OBJECT, fd, size) : -ENOMEM;

	if (!rc)
		rc = ask(c, &r, &a);
	if (c)
		elf_sandbox_free(c);
	if (rc || !a.at[0] || !memchr(a.at, 0, sizeof(a.at)))
		return rc ? rc : -ENOENT;
	memcpy(name, a.at, sizeof(a.at));
	*begin = a.at_begin;
	return 0;
}

/* Return whether a debug file has the CRC @wanted. Waits while the CRC of another is computed. */
static bool has_crc(struct elf_sandbox *c, const struct untrusted_file *file, uint32_t wanted)
{
	uint64_t end_ns = time_now_ns() + ELF_SANDBOX_TIME_NS;
	uint32_t crc;
	int rc;

	while ((rc = debugfile_crc(file->fd, file->size, c->watch, DEBUGFILE_CRC_NS, &crc)) ==
		       -EAGAIN &&
	       time_now_ns() < end_ns)
		usleep(20000);
	return !rc && crc == wanted;
}

/* Read the facts of a debug file, if it is the one of the object. 0, -ENOENT or -errno. */
static int read_debug(struct elf_sandbox *c, const struct elffacts *object,
		      const struct untrusted_file *file, bool by_link, struct elffacts *out,
		      uint64_t *bias)
{
	const struct elffacts_request r = { .by_link = by_link };
	struct elffacts_answer a;
	int rc = elf_sandbox_open(c, ELFFACTS_DEBUG, file->fd, file->size);

	if (!rc)
		rc = ask(c, &r, &a);
	elf_sandbox_close(c, ELFFACTS_DEBUG);
	if (rc)
		return rc;
	if (a.match == DEBUGFILE_CRC_DECIDES && has_crc(c, file, object->names.crc))
		a.match = DEBUGFILE_SAME;
	*out = a.facts;
	*bias = a.bias;
	return a.match == DEBUGFILE_SAME ? 0 : -ENOENT;
}

int elffacts_open_debug(const struct elffacts_input *object, const struct elffacts *facts,
			const struct debugfile_where *where, struct untrusted_file *file,
			struct elffacts *out, uint64_t *bias)
{
	struct elf_sandbox *c = elf_sandbox_new();
	bool by_link, found = false;
	int rc = c ? 0 : -ENOMEM;

	if (!rc) {
		c->watch = object->watch;
		rc = elf_sandbox_open(c, ELFFACTS_OBJECT, object->fd, object->size);
	}
	if (rc)
		rc = -ERANGE;
	for (unsigned int i = 0; rc != -ERANGE && !found; i++) {
		rc = debugfile_try(&facts->names, i, where, file, &by_link);
		if (rc)
			continue;
		found = !read_debug(c, facts, file, by_link, out, bias);
		if (!found)
			close(file->fd);
	}
	if (c)
		elf_sandbox_free(c);
	return found ? 0 : -ENOENT;
}

/*
 * Find data symbols by name. Runs on: a helper.
 */

/* One symbol table with its names, both in memory. */
struct table {
	Elf64_Sym *symbols;
	uint64_t nr;
	char *names; /* NUL-terminated as a whole */
	uint64_t names_size;
};

static int table_read(struct table *t, const struct elffile *f, const Elf64_Shdr *section)
{
	const Elf64_Shdr *strings;
	void *bytes;
	int rc;

	assert(section);
	if (section->sh_link >= f->nr_shdrs || f->elf_class != ELFCLASS64)
		return -ENOEXEC;
	strings = &f->shdrs[section->sh_link];
	if (section->sh_size / sizeof(Elf64_Sym) > ELFSYM_SYMBOLS_MAX ||
	    strings->sh_size > ELFSYM_NAMES_MAX)
		return -E2BIG;
	/* Both are missed together. */
	if (elffile_expect(f, section->sh_offset, section->sh_size) |
	    elffile_expect(f, strings->sh_offset, strings->sh_size))
		return -EAGAIN;
	rc = elffile_read_alloc(f, section->sh_offset, section->sh_size, &bytes);
	if (rc)
		return rc;
	t->symbols = bytes;
	t->nr = section->sh_size / sizeof(Elf64_Sym);
	rc = elffile_read_alloc(f, strings->sh_offset, strings->sh_size, &bytes);
	if (rc) {
		free(t->symbols);
		return rc;
	}
	t->names = bytes;
	t->names_size = strings->sh_size;
	return 0;
}

static void match(const struct table *t, const Elf64_Sym *s, struct elfvar *vars, uint32_t nr)
{
	if (s->st_shndx == SHN_UNDEF || s->st_name >= t->names_size)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		if (vars[i].vaddr || strcmp(t->names + s->st_name, vars[i].name))
			continue;
		vars[i].vaddr = s->st_value;
		vars[i].size = s->st_size;
	}
}

int elfvar_find(const struct elffile *f, struct elfvar *vars, uint32_t nr)
{
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	int found = 0, rc = 0;

	assert(vars || !nr);
	for (uint32_t i = 0; i < nr; i++)
		vars[i].vaddr = vars[i].size = 0;
	for (size_t k = 0; k < ARRAY_SIZE(types) && found < (int)nr; k++) {
		const Elf64_Shdr *section = elffile_section_of_type(f, types[k]);
		struct table t;

		if (!section)
			continue;
		rc = table_read(&t, f, section);
		if (rc == -EAGAIN)
			break;
		if (rc)
			continue;
		for (uint64_t i = 0; i < t.nr; i++)
			match(&t, &t.symbols[i], vars, nr);
		free(t.symbols);
		free(t.names);
		found = 0;
		for (uint32_t i = 0; i < nr; i++)
			found += vars[i].vaddr != 0;
	}
	return found ? found : rc;
}

/* Find the smallest variable of a table around @vaddr; NULL: none. */
static const Elf64_Sym *find_at(const struct table *t, uint64_t vaddr)
{
	const Elf64_Sym *best = NULL;

	for (uint64_t i = 0; i < t->nr; i++) {
		const Elf64_Sym *s = &t->symbols[i];

		if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_OBJECT ||
		    s->st_name >= t->names_size || !t->names[s->st_name] || vaddr < s->st_value ||
		    vaddr - s->st_value >= s->st_size || (best && s->st_size >= best->st_size))
			continue;
		best = s;
	}
	return best;
}

/*
 * Find the variable that @vaddr is in, in .symtab, else in .dynsym: its name, cut at @size - 1
 * bytes, foreign text, and its begin. False: none.
 */
static bool elfvar_at(const struct elffile *f, uint64_t vaddr, char *name, size_t size,
		      uint64_t *begin)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	const Elf64_Sym *found = NULL;

	assert(size > 1);
	for (size_t k = 0; k < ARRAY_SIZE(types) && !found; k++) {
		const Elf64_Shdr *section = elffile_section_of_type(f, types[k]);
		struct table t;

		if (!section || table_read(&t, f, section))
			continue;
		found = find_at(&t, vaddr);
		if (found) {
			*begin = found->st_value;
			strncpy(name, t.names + found->st_name, size - 1);
			name[size - 1] = '\0';
		}
		free(t.symbols);
		free(t.names);
	}
	return found;
}

/* The vaddr of the byte at file offset @offset, by the PT_LOAD segments; false outside of all. */
static bool elfvar_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr)
{
	for (uint32_t i = 0; i < f->nr_phdrs; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_LOAD || offset < p->p_offset ||
		    offset - p->p_offset >= p->p_filesz)
			continue;
		*vaddr = p->p_vaddr + (offset - p->p_offset);
		return true;
	}
	return false;
}

/*
 * Sizes and the link of debug sections.
 */

/* Sections that are read; of others, as of macros and variables, not even the size matters. */
static bool is_read(const char *name)
{
	static const char list[][20] = {
		"info", "types",    "line",   "abbrev",	  "aranges",	 "str",
		"addr", "line_str", "ranges", "rnglists", "str_offsets",
	};

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

/*
 * Get the size of section @s after decompression; false if unknown. @old: as GNU tools compressed
 * it before there was a flag: "ZLIB", and the size with the high byte first.
 */
static bool true_size(const struct elffile *f, const Elf64_Shdr *s, bool old, uint64_t *size)
{
	uint8_t head[ELFDWARF_OLD_HEAD];
	Elf64_Chdr wide;
	Elf32_Chdr small;

	*size = s->sh_size;
	if (old) {
		if (s->sh_size < sizeof(head) ||
		    elffile_read(f, s->sh_offset, head, sizeof(head)) || memcmp(head, "ZLIB", 4))
			return false;
		*size = elfdwarf_old_size(head);
		return true;
	}
	if (!(s->sh_flags & SHF_COMPRESSED))
		return true;
	if (f->elf_class == ELFCLASS64) {
		if (s->sh_size < sizeof(wide) || elffile_read(f, s->sh_offset, &wide, sizeof(wide)))
			return false;
		*size = wide.ch_size;
		return true;
	}
	if (s->sh_size < sizeof(small) || elffile_read(f, s->sh_offset, &small, sizeof(small)))
		return false;
	*size = small.ch_size;
	return true;
}

/* Sum up the sizes. 0, -ENODATA: no debug information, or -EFBIG. */
static int elfdwarf_size(const struct elffile *f, uint64_t *size)
{
	uint64_t inflated = 0;
	bool info = false;

	*size = 0;
	for (uint32_t i = 1; f->shstr && i < f->nr_shdrs; i++) {
		const Elf64_Shdr *s = &f->shdrs[i];
		const char *name = s->sh_name < f->shstr_size ? f->shstr + s->sh_name : "";
		bool old = !strncmp(name, ".zdebug_", 8);
		uint64_t here;

		if ((!old && strncmp(name, ".debug_", 7)) || s->sh_type == SHT_NOBITS ||
		    !is_read(name + 7 + old))
			continue;
		if (!true_size(f, s, old, &here) || here > ELFDWARF_SIZE_MAX - *size)
			return -EFBIG;
		*size += here;
		if (old || s->sh_flags & SHF_COMPRESSED)
			inflated += here;
		info |= !strcmp(name + 7 + old, "info");
	}
	return !info ? -ENODATA : inflated > ELFDWARF_INFLATED_MAX ? -EFBIG : 0;
}

/* Read .gnu_debugaltlink. 0, -ENOENT: it refers to none, or -EBADMSG. */
static int elfdwarf_alt(const struct elffile *f, struct elfdwarf_alt *alt)
{
	const Elf64_Shdr *s = elffile_section(f, ".gnu_debugaltlink");
	char link[ELFDWARF_LINK_MAX + 1] = "";
	size_t size;

	*alt = (struct elfdwarf_alt){ .id_size = 0 };
	if (!s)
		return -ENOENT;
	if (s->sh_size > ELFDWARF_LINK_MAX || elffile_read(f, s->sh_offset, link, s->sh_size))
		return -EBADMSG;
	size = strlen(link) + 1;
	if (size + 2 > s->sh_size || s->sh_size - size > sizeof(alt->id))
		return -EBADMSG;
	memcpy(alt->link, link, size);
	alt->id_size = (uint8_t)(s->sh_size - size);
	memcpy(alt->id, link + size, alt->id_size);
	return 0;
}

/*
 * Collect the facts of a file.
 *
 * Runs in the worker, or in the thread of the call.
 */

void elffacts_collect(struct elffacts *out, const struct elffile *f)
{
	assert(f->nr_phdrs <= ELFFILE_PHDRS_MAX);
	*out = (struct elffacts){ .vaddr = 0 };
	debugfile_names(&out->names, f);
	out->dwarf = elfdwarf_size(f, &out->dwarf_size);
	out->alt_rc = elfdwarf_alt(f, &out->alt);
}

static void find_vars(struct elffacts_answer *a, const struct elffile *f,
		      const struct elffacts_request *r)
{
	struct elfvar vars[ELFFACTS_VARS_MAX];

	for (uint32_t i = 0; i < r->nr_vars; i++)
		vars[i].name = r->names[i];
	elfvar_find(f, vars, r->nr_vars);
	for (uint32_t i = 0; i < r->nr_vars; i++) {
		a->vaddr[i] = vars[i].vaddr;
		a->size[i] = vars[i].size;
	}
}

static int serve_files(struct elf_sandbox_serve *v, struct sandbox_call *c, const void *request)
{
	const struct elffacts_request *r = request;
	const struct elffile *object = &v->file[ELFFACTS_OBJECT];
	const struct elffile *debug = &v->file[ELFFACTS_DEBUG];
	struct elffacts_answer a = { .match = DEBUGFILE_OTHER };
	bool pair = c->fds[ELFFACTS_DEBUG] >= 0;
	int rc = r->nr_vars <= ELFFACTS_VARS_MAX ? elf_sandbox_serve_open(v, c, ELFFACTS_OBJECT)
						 : -EINVAL;

	if (!rc && pair)
		rc = elf_sandbox_serve_open(v, c, ELFFACTS_DEBUG);
	if (!rc) {
		elffacts_collect(&a.facts, pair ? debug : object);
		a.facts.has_vaddr = elfvar_vaddr(object, r->offset, &a.facts.vaddr);
		if (pair)
			a.match = debugfile_match(object, debug, r->by_link, &a.bias);
		if (r->nr_vars)
			find_vars(&a, object, r);
		if (r->at && a.facts.has_vaddr &&
		    elfvar_at(object, a.facts.vaddr + r->at, a.at, sizeof(a.at), &a.at_begin))
			a.at_begin -= a.facts.vaddr;
	}
	rc = elf_sandbox_serve_begin(v, c, rc);
	if (!rc && !elf_sandbox_serve_misses(v))
		sandbox_put(&c->reply, &a, sizeof(a));
	return rc;
}

static int serve(struct sandbox_call *c)
{
	struct elffacts_request r;

	return elf_sandbox_serve_call(c, &r, sizeof(r), serve_files);
}

const struct sandbox_reader elffacts_reader = {
	.kind = SANDBOX_ELF,
	.name = "proftop-elf",
	.serve = serve,
	.memory_max = 2ULL << 30,
};

/*
 * perf's cache of files by build-id, ~/.debug: the programs of recordings as perf record saw them.
 * Runs on: helpers.
 */

/* Write the path of the cached file with this build-id. @old: as perf wrote it before Linux 4.9. */
static bool buildidcache_path(const char *home, const uint8_t *build_id, size_t size, bool old,
			      char *buf, size_t buf_size)
{
	int at = home && home[0] == '/' && size >= 2
			 ? snprintf(buf, buf_size, "%s/.debug/.build-id/", home)
			 : -1;

	assert(buf_size);
	if (at < 0 || (size_t)at + 2 * size + sizeof("//elf") > buf_size)
		return false;
	for (size_t i = 0; i < size; i++)
		at += sprintf(buf + at, i == 1 ? "/%02x" : "%02x", build_id[i]);
	if (!old)
		strcpy(buf + at, "/elf");
	return true;
}

/* The name is no proof: test for the build-id in the file. */
static bool has_build_id(const struct untrusted_file *file, const uint8_t *build_id, size_t size)
{
	const struct elffacts_input in = { .fd = file->fd, .size = file->size };
	struct elffacts facts;
	const struct debugfile_names *is = &facts.names;

	assert(size);
	/* Old recordings have 20 bytes, whatever the size. */
	return !elffacts_read(&facts, &in) && is->build_id_size && is->build_id_size <= size &&
	       !memcmp(is->build_id, build_id, is->build_id_size);
}

/* Open the file in the cache below @home, which @uid or root made. */
static int open_below(const char *home, uid_t uid, const uint8_t *build_id, size_t size,
		      struct untrusted_file *out)
{
	char path[PATH_MAX];

	for (int old = 0; old < 2; old++) {
		const struct untrusted_want want = {
			.path = path, .owned = true, .linked = true, .uid = uid
		};

		if (!buildidcache_path(home, build_id, size, old, path, sizeof(path)) ||
		    untrusted_open(&want, out, NULL))
			continue;
		if (has_build_id(out, build_id, size))
			return 0;
		close(out->fd);
	}
	return -ENOENT;
}

int buildidcache_open(const uint8_t *build_id, size_t size, struct untrusted_file *out)
{
	const char *home = getenv("HOME"), *own = invoker_home() ? invoker_home() : home;
	struct invoker_saved saved;
	int code = invoker_begin(&saved, NULL);

	if (!code) {
		code = open_below(own, invoker_uid(), build_id, size, out);
		invoker_end(&saved);
	}
	/* "sudo perf record" has the cache of root. */
	if (code && invoker_is_other() && !invoker_is_unprivileged())
		code = open_below(home, 0, build_id, size, out);
	return code;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Facts about an ELF file (build-id, variables, debug information and its file): the call, the
 * worker's side and the messages; perf's cache of files by build-id; Go's table of functions.
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
#include "symbols/elf/elf.h"
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

	if (file->size > DEBUGFILE_CRC_MAX)
		return false;
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

	assert(out && (build_id || !size));
	if (!code) {
		code = open_below(own, invoker_uid(), build_id, size, out);
		invoker_end(&saved);
	}
	/* "sudo perf record" has the cache of root. */
	if (code && invoker_is_other() && !invoker_is_unprivileged())
		code = open_below(home, 0, build_id, size, out);
	return code;
}

/*
 * Walk the function table of Go: sorted pairs of (offset of code, offset of the
 * description); the second word of a description is the offset of the name, the fifth that of the
 * depths of the stack.
 *
 * Runs in the sandbox. Every byte is hostile.
 */

#define TABLE_SIZE_MAX	(512UL << 20)
#define FRAMES_SIZE_MAX (256UL << 20)
#define MAGIC_1_18	0xfffffff0U
#define MAGIC_1_20	0xfffffff1U
#define HEADER_SIZE	(8 + 8 * 8)

/* The start of code: in the header, 0 since Go 1.26; then in runtime.moduledata. */
#define HEADER_TEXT (8 + 2 * 8)

#define MODULE_TEXT (22 * 8)

#define NOTE_TRIES    8U
#define NOTE_SIZE_MAX (64U << 10)

#define TABLE_ALIGN 16U
#define TABLE_TRIES 16U /* magic numbers in a section: each may cost a look at all relocations */

struct go_table {
	uint8_t *section;     /* it is in; malloc'ed, NUL-terminated */
	const uint8_t *bytes; /* NUL-terminated as a whole */
	uint64_t size;
	uint64_t nr, text, names, steps, functions;
	bool has_line; /* descriptions have the line of the function: since 1.20 */
};

static uint64_t word_at(const struct go_table *g, uint64_t offset, unsigned int size)
{
	uint64_t word = 0;

	if (offset > g->size || size > g->size - offset)
		return 0;
	memcpy(&word, g->bytes + offset, size); /* all supported machines are little-endian */
	return word;
}

static bool is_magic(uint32_t word)
{
	return word == MAGIC_1_18 || word == MAGIC_1_20;
}

/* Read the header; false: unknown version. */
static bool read_header(struct go_table *g)
{
	uint32_t magic = (uint32_t)word_at(g, 0, 4);

	if (g->size < HEADER_SIZE || !is_magic(magic) || g->bytes[4] || g->bytes[5] ||
	    g->bytes[7] != 8)
		return false;
	g->nr = word_at(g, 8, 8);
	g->text = word_at(g, HEADER_TEXT, 8);
	g->names = word_at(g, 8 + 3 * 8, 8);
	g->steps = word_at(g, 8 + 6 * 8, 8);
	g->has_line = magic == MAGIC_1_20;
	g->functions = word_at(g, 8 + 7 * 8, 8);
	return g->names < g->size && g->functions < g->size && g->nr < ELFSYM_SYMBOLS_MAX &&
	       (g->nr + 1) * 8 <= g->size - g->functions;
}

/* Add function @i, which ends at the begin of the next one. */
static int add_function(struct elfsym *t, const struct go_table *g, uint64_t i)
{
	uint64_t entry = g->functions + i * 8;
	uint64_t start = word_at(g, entry, 4), end = word_at(g, entry + 8, 4);
	uint64_t about = g->functions + word_at(g, entry + 4, 4);
	uint64_t name = g->names + word_at(g, about + 4, 4);
	size_t size;

	if (end <= start || about > g->size - 8 || name >= g->size)
		return 0;
	size = strnlen((const char *)g->bytes + name, IMAGE_NAME_MAX);
	return size ? elfsym_add_named(t, g->text + start, end - start,
				       (const char *)g->bytes + name, size)
		    : 0;
}

/* Find runtime.moduledata, which begins with the address of the table. 0: not found. */
struct module_search {
	uint64_t table, module;
};

static bool note_module(const Elf64_Rela *r, void *ctx)
{
	struct module_search *m = ctx;

	if ((uint64_t)r->r_addend == m->table)
		m->module = r->r_offset;
	return !m->module;
}

static uint64_t find_module(const struct elffile *f, uint64_t table)
{
	struct module_search m = { .table = table };
	const Elf64_Shdr *s = elffile_section(f, ".go.module");

	if (s)
		return s->sh_addr;
	elffile_relative(f, note_module, &m);
	for (uint32_t i = 0; i < f->nr_phdrs && !m.module; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];
		uint8_t *bytes;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W) || p->p_filesz > TABLE_SIZE_MAX ||
		    elffile_read_alloc(f, p->p_offset, p->p_filesz, (void **)&bytes))
			continue;
		for (uint64_t at = -p->p_vaddr % 8; at + 8 <= p->p_filesz && !m.module; at += 8)
			if (!memcmp(bytes + at, &table, 8))
				m.module = p->p_vaddr + at;
		free(bytes);
	}
	return m.module;
}

/*
 * Find the start of Go's code where the header at @vaddr has none: the loader writes it, or, since
 * Go 1.26, runtime.moduledata has it. It is not that of .text: an external linker puts startup code
 * before it.
 */
static bool find_text(const struct elffile *f, uint64_t vaddr, struct go_table *g)
{
	uint64_t module;

	if (elffile_pointer(f, vaddr + HEADER_TEXT, &g->text))
		return true;
	module = find_module(f, vaddr);
	return module && elffile_pointer(f, module + MODULE_TEXT, &g->text);
}

/* Read the table at @at of the section @s that is in g->section. */
static bool read_at(const struct elffile *f, const Elf64_Shdr *s, uint64_t at, struct go_table *g)
{
	g->bytes = g->section + at;
	g->size = s->sh_size - at;
	return read_header(g) && (g->text || find_text(f, s->sh_addr + at, g));
}

/* Read the table in section @s; @begins: at its begin. 0, -ENOENT or -errno. */
static int read_section(const struct elffile *f, const Elf64_Shdr *s, bool begins,
			struct go_table *g)
{
	unsigned int tries = TABLE_TRIES;
	uint64_t at = 0, last;
	void *bytes;
	int rc;

	if (s->sh_size > TABLE_SIZE_MAX || s->sh_size < HEADER_SIZE || s->sh_type == SHT_NOBITS)
		return -ENOENT;
	rc = elffile_read_alloc(f, s->sh_offset, s->sh_size, &bytes);
	if (rc)
		return rc;
	*g = (struct go_table){ .section = bytes };
	last = begins ? 0 : s->sh_size - HEADER_SIZE;
	for (; at <= last && tries; at += TABLE_ALIGN) {
		uint32_t word;

		memcpy(&word, g->section + at, sizeof(word));
		if (!is_magic(word))
			continue;
		tries--;
		if (read_at(f, s, at, g))
			return 0;
	}
	free(bytes);
	return -ENOENT;
}

/* Return whether a note tells that Go's linker made the file. */
static bool has_go_note(const struct elffile *f)
{
	static const char go[8] = "\4\0\0\0Go\0"; /* type and name */
	unsigned int tries = NOTE_TRIES;
	bool found = false;
	void *notes;

	for (uint32_t i = 0; i < f->nr_phdrs && !found && tries; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_NOTE || p->p_filesz > NOTE_SIZE_MAX || !tries-- ||
		    elffile_read_alloc(f, p->p_offset, p->p_filesz, &notes))
			continue;
		found = memmem(notes, p->p_filesz, go, sizeof(go));
		free(notes);
	}
	return found;
}

/* Search the table where the sections are gone or have other names: in the data segments. */
static int search_segments(const struct elffile *f, struct go_table *g)
{
	int rc = -ENOENT;

	for (uint32_t i = 0; i < f->nr_phdrs && rc == -ENOENT; i++) {
		const Elf64_Phdr *p = &f->phdrs[i];
		uint64_t skip = MIN(-p->p_vaddr % TABLE_ALIGN, p->p_filesz);
		const Elf64_Shdr s = { .sh_type = SHT_PROGBITS,
				       .sh_addr = p->p_vaddr + skip,
				       .sh_offset = p->p_offset + skip,
				       .sh_size = p->p_filesz - skip };

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_X))
			rc = read_section(f, &s, false, g);
	}
	return rc;
}

/*
 * Read the table of @f; the caller frees g->section. 0, -ENOENT without a known one, or -errno.
 * Where another linker made a position-independent program, the table is inside a section of that.
 */
static int read_table(const struct elffile *f, struct go_table *g)
{
	static const char *const own[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	const Elf64_Shdr *s;

	if (f->elf_class != ELFCLASS64)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if ((s = elffile_section(f, own[i])))
			return read_section(f, s, true, g);
	s = elffile_section(f, ".data.rel.ro");
	if (s && elffile_section(f, ".go.buildinfo"))
		return read_section(f, s, false, g);
	return has_go_note(f) ? search_segments(f, g) : -ENOENT;
}

int elfgo_add(struct elfsym *t, const struct elffile *f)
{
	struct go_table g;
	int rc = read_table(f, &g);

	if (rc)
		return rc;
	for (uint64_t i = 0; i < g.nr && !rc; i++)
		rc = add_function(t, &g, i);
	free(g.section);
	return rc;
}

/* ---- unwind tables: the depth of the stack at each instruction ---- */

#define STEPS_MAX     (4u << 20) /* of all functions */
#define FLAG_TOP      1		 /* the outermost frame of a stack */
#define FLAG_SP_WRITE 2		 /* changes to another stack, where its caller is not */
#define FLAG_ASM      4		 /* assembly: may not save the frame pointer */
#define DEPTH_MAX     (1 << 30)

/* DWARF 5, 7.24; registers of the x86-64 ABI. */
enum { CFA_NOP, CFA_ADVANCE4 = 4, CFA_UNDEFINED = 7, CFA_DEF_CFA = 0xc, CFA_DEF_CFA_OFFSET = 0xe };

enum { CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0, RBP = 6, RSP = 7, RIP = 16 };

struct writer {
	uint8_t *bytes;
	size_t size, capacity;
	uint32_t nr_steps; /* also of functions that are left out */
	bool failed;	   /* no memory */
};

static void put(struct writer *w, const void *bytes, size_t size)
{
	if (w->size + size > w->capacity && !w->failed) {
		size_t capacity = MAX(2 * w->capacity, w->size + size + 4096);
		uint8_t *grown = realloc(w->bytes, capacity);

		w->failed = !grown;
		w->bytes = grown ? grown : w->bytes;
		w->capacity = grown ? capacity : w->capacity;
	}
	if (w->failed)
		return;
	memcpy(w->bytes + w->size, bytes, size);
	w->size += size;
}

static void put_byte(struct writer *w, unsigned int byte)
{
	put(w, &(uint8_t){ (uint8_t)byte }, 1);
}

static void put_u32(struct writer *w, uint32_t word)
{
	put(w, &word, sizeof(word));
}

static void put_uleb(struct writer *w, uint64_t n)
{
	do {
		put_byte(w, (n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		n >>= 7;
	} while (n);
}

/* Complete the record that begins at @start: its length, and a multiple of 8 bytes. */
static void end_record(struct writer *w, size_t start)
{
	uint32_t length;

	while ((w->size - start) % 8)
		put_byte(w, CFA_NOP);
	length = (uint32_t)(w->size - start - 4);
	if (!w->failed)
		memcpy(w->bytes + start, &length, sizeof(length));
}

/* At the entry of each function: CFA is rsp + 8, the return address below it. */
static void put_cie(struct writer *w)
{
	put_u32(w, 0);
	put_u32(w, UINT32_MAX);
	put_byte(w, 3);	   /* version */
	put_byte(w, 0);	   /* no augmentation */
	put_byte(w, 1);	   /* code alignment */
	put_byte(w, 0x78); /* data alignment: -8 */
	put_byte(w, RIP);
	put_byte(w, CFA_DEF_CFA);
	put_byte(w, RSP);
	put_byte(w, 8);
	put_byte(w, CFA_OFFSET | RIP);
	put_byte(w, 1);
	end_record(w, 0);
}

/* Read a varint at *@at of the table. Return false at the end of the table. */
static bool read_varint(const struct go_table *g, uint64_t *at, uint32_t *n)
{
	*n = 0;
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (*at >= g->size)
			return false;
		byte = g->bytes[(*at)++];
		*n |= (uint32_t)((uint64_t)(byte & 0x7f) << shift);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The steps of one function: pairs of differences, of the depth and of the address after it. */
struct steps {
	const struct go_table *g;
	uint64_t at;
	uint32_t from, end; /* the range of addresses, from the entry */
	int64_t depth;
	bool first;
};

/* Read the next step. Return false at the end, or if it is wrong (@depth below zero then). */
static bool next_step(struct steps *s)
{
	uint32_t value, length;

	s->from = s->end;
	if (!read_varint(s->g, &s->at, &value) || (!value && !s->first))
		return false;
	s->depth += value & 1 ? -(int64_t)(value >> 1) - 1 : (int64_t)(value >> 1);
	s->first = false;
	if (!read_varint(s->g, &s->at, &length) || !length || length > DEPTH_MAX - s->end ||
	    s->depth < 0 || s->depth > DEPTH_MAX) {
		s->depth = -1;
		return false;
	}
	s->end += length;
	return true;
}

/* Advance from *@at to @to. */
static void put_advance(struct writer *w, uint32_t *at, uint32_t to)
{
	if (to == *at)
		return;
	put_byte(w, CFA_ADVANCE4);
	put_u32(w, to - *at);
	*at = to;
}

/*
 * Return how long after the begin of the first deeper step the frame pointer is in its slot, at
 * CFA-16: it is pushed (since Go 1.21), or moved there by the next instruction.
 */
static uint32_t save_length(const struct steps *s)
{
	return s->depth == 8 && s->end - s->from < 16 ? 0
	       : s->depth == 8			      ? 4
	       : s->depth < 136			      ? 5
						      : 8;
}

/* The place of the frame pointer, while the steps are written. */
struct saved {
	bool now, ever;
};

/* Write the place of the frame pointer from this step on. */
static void put_saved(struct writer *w, const struct steps *s, struct saved *saved, uint32_t *at)
{
	uint32_t later = saved->ever ? 0 : save_length(s);

	if (saved->now && !s->depth) {
		put_advance(w, at, s->from);
		put_byte(w, CFA_RESTORE | RBP);
		saved->now = false;
	} else if (!saved->now && s->depth && s->end - s->from > later) {
		put_advance(w, at, s->from + later);
		put_byte(w, CFA_OFFSET | RBP);
		put_byte(w, 2);
		saved->now = saved->ever = true;
	}
}

/* Write the steps of a function as instructions. Return false if they are not acceptable. */
static bool put_steps(struct writer *w, struct steps *s, unsigned int flags)
{
	struct saved saved = { false, false };
	uint32_t at = 0;
	int64_t depth = 0;

	while (w->nr_steps++ < STEPS_MAX && next_step(s)) {
		if (s->depth != depth) {
			put_advance(w, &at, s->from);
			put_byte(w, CFA_DEF_CFA_OFFSET);
			put_uleb(w, (uint64_t)s->depth + 8);
		}
		depth = s->depth;
		/* Of assembly the callers need the depth alone. */
		if (!(flags & FLAG_ASM))
			put_saved(w, s, &saved, &at);
	}
	return s->depth >= 0 && s->end;
}

/*
 * Return true for the function by which C calls Go. It goes on on the stack of the goroutine, but
 * with a frame of the same size there, which returns to the code that called C.
 */
static bool is_callback(const struct go_table *g, uint64_t about)
{
	static const char name[] = "runtime.cgocallback";
	uint64_t at = g->names + word_at(g, about + 4, 4);

	return at < g->size && g->size - at >= sizeof(name) &&
	       !memcmp(g->bytes + at, name, sizeof(name));
}

/* Write the record of function @i, unless its stack is not described. */
static void put_function(struct writer *w, const struct go_table *g, uint64_t i)
{
	uint64_t entry = g->functions + i * 8;
	uint64_t start = word_at(g, entry, 4), end = word_at(g, entry + 8, 4);
	uint64_t about = g->functions + word_at(g, entry + 4, 4);
	uint64_t steps = word_at(g, about + 16, 4);
	unsigned int flags = (unsigned int)word_at(g, about + (g->has_line ? 41 : 37), 1);
	struct steps s = { .g = g, .at = g->steps + steps, .depth = -1, .first = true };
	bool switches = flags & FLAG_SP_WRITE && !(flags & FLAG_TOP) && !is_callback(g, about);
	size_t begin = w->size;

	if (end <= start || about > g->size - 48 || !steps || g->steps >= g->size)
		return;
	put_u32(w, 0);
	put_u32(w, 0); /* the CIE */
	put(w, &(uint64_t){ g->text + start }, 8);
	put(w, &(uint64_t){ end - start }, 8);
	if (flags & FLAG_TOP || switches) {
		put_byte(w, CFA_UNDEFINED);
		put_byte(w, RIP);
	}
	if (switches) {
		put_byte(w, CFA_UNDEFINED);
		put_byte(w, RSP);
	}
	if (!put_steps(w, &s, flags)) {
		w->size = begin;
		return;
	}
	/* Padding follows the code. */
	if (!w->failed)
		memcpy(w->bytes + begin + 16, &(uint64_t){ MIN(s.end, end - start) }, 8);
	end_record(w, begin);
}

int elfgo_frames(const struct elffile *f, uint8_t **out, size_t *size)
{
	struct writer w = { .bytes = NULL };
	struct go_table g;
	int rc = f->machine == EM_X86_64 ? read_table(f, &g) : -ENOENT;

	assert(out && size);
	if (rc)
		return rc;
	put_cie(&w);
	for (uint64_t i = 0; i < g.nr && !w.failed && w.nr_steps < STEPS_MAX; i++)
		put_function(&w, &g, i);
	free(g.section);
	if (w.failed || w.size > FRAMES_SIZE_MAX) {
		free(w.bytes);
		return w.failed ? -ENOMEM : -EFBIG;
	}
	*out = w.bytes;
	*size = w.size;
	return 0;
}

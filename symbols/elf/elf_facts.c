// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Facts about an ELF file (build-id, symbols, debug information and its file): the call, the
 * worker's side and the messages.
 */
#include "symbols/elf/internal.h"

#include <errno.h>
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
 * The answers of elffacts_serve.c.
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
 * Collect the facts of a file.
 *
 * Runs in the worker, or in the thread of the call.
 */

void elffacts_collect(struct elffacts *out, const struct elffile *f)
{
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

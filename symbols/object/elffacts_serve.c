// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Collect the facts of a file.
 *
 * Runs in the worker, or in the thread of the call.
 */
#include <errno.h>
#include <string.h>

#include "symbols/object/elfcage_serve.h"
#include "symbols/object/elffacts.h"

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

static int serve_files(struct elfcage_serve *v, struct cage_call *c, const void *request)
{
	const struct elffacts_request *r = request;
	const struct elffile *object = &v->file[ELFFACTS_OBJECT];
	const struct elffile *debug = &v->file[ELFFACTS_DEBUG];
	struct elffacts_answer a = { .match = DEBUGFILE_OTHER };
	bool pair = c->fds[ELFFACTS_DEBUG] >= 0;
	int rc = r->nr_vars <= ELFFACTS_VARS_MAX ? elfcage_serve_open(v, c, ELFFACTS_OBJECT)
						 : -EINVAL;

	if (!rc && pair)
		rc = elfcage_serve_open(v, c, ELFFACTS_DEBUG);
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
	rc = elfcage_serve_begin(v, c, rc);
	if (!rc && !elfcage_serve_misses(v))
		cage_put(&c->reply, &a, sizeof(a));
	return rc;
}

static int serve(struct cage_call *c)
{
	struct elffacts_request r;

	return elfcage_serve_call(c, &r, sizeof(r), serve_files);
}

const struct cage_reader elffacts_reader = {
	.kind = CAGE_ELF,
	.name = "proftop-elf",
	.serve = serve,
	.memory_max = 2ULL << 30,
};

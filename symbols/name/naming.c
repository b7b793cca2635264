// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Place -> symbol, one rule for each kind of object.
 *
 * Runs on: the loader.
 */
#include "symbols/name/naming.h"

#include <errno.h>
#include <string.h>

#include "symbols/lang/lang.h"
#include "symbols/name/name.h"

void naming_init(struct naming *n, struct objects *objects, struct symtab *symtab,
		 const atomic_bool *stop)
{
	memset(n, 0, sizeof(*n));
	n->objects = objects;
	n->symtab = symtab;
	naming_kernel_init(&n->kernel);
	naming_jit_init(&n->jit, objects, stop);
}

void naming_fini(struct naming *n)
{
	naming_kernel_fini(&n->kernel);
	naming_jit_fini(&n->jit);
	demangler_fini(&n->demangler);
}

/* Name code of a file or the vdso: by its symbol, else its FDE, else its address. */
static int find_in_image(const struct object *object, const struct naming_question *q,
			 struct naming_found *f)
{
	/* Pairs with the release in image_cache.c. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	struct ehframe_fde fde;
	const struct image_symbol *s;
	uint64_t vaddr;

	f->text.kind = '?';
	naming_found_module(f, object->name.str, object->name.size);
	if (!image || !image_vaddr(image, q->offset, &vaddr)) {
		naming_found_made_up(f, object->name, "+0x", q->offset);
	} else if ((s = image_find(image, vaddr))) {
		f->key.start = s->vaddr;
		f->text.kind = object->identity.kind == OBJECT_VDSO ? 'v' : 'u';
		f->image = image;
		f->symbol = s;
		f->by_name = true;
	} else {
		naming_found_made_up(f, object->name, "+0x",
				     ehframe_find(&image->eh, vaddr, &fde) ? fde.start : vaddr);
	}
	return 0;
}

/* Mark a function with inlined ones: their samples count as its samples. */
static void set_inlined(struct naming *n, struct naming_found *f, const struct code_text *t)
{
	static const char mark[] = " +inlined";
	size_t size = MIN((size_t)t->name_size, sizeof(n->marked) - sizeof(mark));

	memcpy(mempcpy(n->marked, t->name, size), mark, sizeof(mark));
	size += sizeof(mark) - 1;
	naming_share(f, f->key.object, n->marked, size);
}

/*
 * A function of a script: the same in all processes that have the same file, line and name. Its
 * module is the script; without a text (CODE_UNNAMED) the object of all scripts.
 */
static int find_in_script(struct naming *n, struct object *object, const struct naming_question *q,
			  struct naming_found *f)
{
	const struct code_text *t = n->codes ? codes_at(n->codes, lang_place_code(q->offset))
					     : NULL;
	const struct object_identity identity = { .kind = OBJECT_SCRIPT };
	const struct object *script;

	if (!t) {
		if (n->codes)
			object_explain(object, "too many functions of interpreters",
				       "restart proftop if it lasts");
		f->text.kind = '?';
		naming_found_made_up(f, TEXT("[script]"), NULL, 0);
		naming_found_module(f, "[script]", 8);
		return 0;
	}
	script = objects_intern(n->objects, &identity, t->file, t->file_size, 0, 0, 0);
	f->key.object = script->id;
	f->key.start = t->position ? t->position : t->first_line;
	f->text.kind = lang_letter((enum lang_kind)t->language);
	f->plain = true;
	naming_found_module(f, script->name.str, script->name.size);
	if (lang_place_instr(q->offset) == LANG_INLINED)
		set_inlined(n, f, t);
	else
		naming_share(f, script->id, t->name, t->name_size);
	return 0;
}

/* The frame of a waiting task: its name is the kind of the wait. */
static int find_wait(const struct object *object, const struct naming_question *q,
		     struct naming_found *f)
{
	uint64_t kind = q->offset >= WAIT_FOUND ? MIN(q->offset, WAIT_CUT)
						: MIN(q->offset, WAIT_OTHER);
	const char *name = wait_kind_name((enum wait_kind)kind);

	f->key.start = q->offset;
	f->text.kind = 'w';
	f->by_name = f->plain = true;
	naming_found_module(f, object->name.str, object->name.size);
	naming_found_name(f, name, strlen(name));
	return 0;
}

static int find_unknown(const struct object *object, struct naming_found *f)
{
	f->text.kind = '?';
	naming_found_module(f, object->name.str, object->name.size);
	naming_found_made_up(f, TEXT("[unknown]"), NULL, 0);
	return 0;
}

/*
 * Return true if the object is loaded or failed; else request it: every sampled
 * place needs a name.
 */
static bool is_settled(struct object *object)
{
	/* Pairs with the releases in image_cache.c. */
	int state = atomic_load_explicit(&object->state, memory_order_acquire);

	object_want(object);
	return state >= OBJECT_READY;
}

static int find(struct naming *n, struct object *object, const struct naming_question *q,
		struct naming_found *f)
{
	if (!is_settled(object))
		return -EAGAIN;
	switch (object->identity.kind) {
	case OBJECT_KERNEL:
		return naming_kernel_find(&n->kernel, object, q, f);
	case OBJECT_FILE:
	case OBJECT_VDSO:
		return find_in_image(object, q, f);
	case OBJECT_ANON:
		return naming_jit_find(&n->jit, object, q, f);
	case OBJECT_SCRIPT:
		return find_in_script(n, object, q, f);
	case OBJECT_WAIT:
		return find_wait(object, q, f);
	default:
		return find_unknown(object, f);
	}
}

/* Put the name together, if that was postponed. */
static void complete(struct naming *n, struct naming_found *f)
{
	char *at;

	if (f->symbol) {
		f->text.name = image_symbol_name(f->image, f->symbol, n->stub, &f->text.name_size);
	} else if (f->head.str) {
		at = mempcpy(n->raw, f->head.str, f->head.size);
		if (f->join)
			at = text_put_hex(stpcpy(at, f->join), f->key.start, 0);
		f->text.name = n->raw;
		f->text.name_size = (size_t)(at - n->raw);
	}
}

/* Complete the texts of @f. */
static void finish(struct naming *n, struct naming_found *f)
{
	const char *clean;
	size_t size;

	complete(n, f);
	size = f->by_name && !f->plain
		       ? demangler_get(&n->demangler, f->text.name, f->text.name_size, &clean)
		       : 0;
	if (size) {
		f->text.name = clean;
		f->text.name_size = size;
	}
}

/* Return the id of @f. Its texts, and with them a mangled name, are made where they are needed. */
static uint32_t symbol_of(struct naming *n, struct naming_found *f)
{
	uint32_t id = f->shared ? SYMBOL_NONE : symtab_find(n->symtab, &f->key);

	if (id != SYMBOL_NONE)
		return id;
	finish(n, f);
	if (f->shared)
		id = symtab_find_named(n->symtab, &f->key, &f->text);
	if (id != SYMBOL_NONE)
		return id;
	id = symtab_add(n->symtab, &f->key, &f->text);
	if (f->shared && id != SYMBOL_NONE)
		atomic_fetch_add_explicit(&objects_at(n->objects, f->key.object)->nr_symbols, 1,
					  memory_order_relaxed);
	return id;
}

void naming_prepare(struct naming *n, const struct naming_question *q)
{
	const struct object *object = objects_at(n->objects, q->object);
	struct naming_found f = { .key.object = q->object };

	if (!object || object->identity.kind != OBJECT_FILE)
		return;
	find_in_image(object, q, &f);
	if (!f.symbol || symtab_find(n->symtab, &f.key) != SYMBOL_NONE)
		return;
	complete(n, &f);
	demangler_want(&n->demangler, f.text.name, f.text.name_size);
}

void naming_ready(struct naming *n)
{
	demangler_run(&n->demangler);
}

int naming_find(struct naming *n, const struct naming_question *q, struct naming_answer *out)
{
	struct object *object = objects_at(n->objects, q->object);
	struct naming_found f = { .key.object = q->object };
	int rc;

	if (!object)
		return -EAGAIN;
	rc = find(n, object, q, &f);
	if (rc)
		return rc;
	*out = (struct naming_answer){ .symbol = symbol_of(n, &f),
				       .by_name = f.by_name,
				       .start = f.shared ? f.start : f.key.start };
	return out->symbol == SYMBOL_NONE ? -ENOMEM : 0;
}

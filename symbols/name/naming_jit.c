// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Place in anonymous memory -> symbol, from the files and the memory of its process.
 *
 * Runs on: the loader.
 */
#include "symbols/name/naming_jit.h"

#include <errno.h>
#include <string.h>

#include "symbols/lang/lang.h"

void naming_jit_init(struct naming_jit *n, struct objects *objects, const atomic_bool *stop)
{
	n->objects = objects;
	hotspots_init(&n->hotspots, objects);
	jitdumps_init(&n->jitdumps, objects, NULL, &n->reads, stop);
	perfmaps_init(&n->perfmaps, objects, &n->reads, stop);
}

void naming_jit_fini(struct naming_jit *n)
{
	hotspots_fini(&n->hotspots);
	jitdumps_fini(&n->jitdumps);
	perfmaps_fini(&n->perfmaps);
}

/* Name code by a name that its process reported through @source; as a module it is @module. */
static void set_jit(const struct naming_jit *n, struct naming_found *f, const char *module,
		    const char *source, const char *name, size_t size)
{
	struct object *object = objects_at(n->objects, naming_shared_object(n->objects, module));

	object_credit(object, source,
		      atomic_load_explicit(&object->nr_symbols, memory_order_relaxed));
	naming_share(f, object->id, name, size);
	naming_found_module(f, module, strlen(module));
}

/* Name a Java method. Compiled twice, interpreted: it is one function without a single start. */
static void set_java(const struct naming_jit *n, struct naming_found *f,
		     const struct hotspots_symbol *s)
{
	set_jit(n, f, "[java]", "JVM", s->name, s->name_size);
	f->text.kind = LANG_JAVA;
	f->plain = true;
}

/*
 * Find the name that a process reported in a file. 0, -ENOENT, -EAGAIN while the
 * files are read, -ECANCELED.
 */
static int find_reported(struct naming_jit *n, struct object *object, struct object *base,
			 const struct naming_question *q, struct naming_found *f)
{
	struct jitdumps_symbol dumped;
	struct perfmap_symbol mapped = { .start = 0 };
	int in_dump, in_map = -ENOENT;

	in_dump = jitdumps_find(&n->jitdumps, object, q->offset, &dumped);
	/* A file may have hung: the tables may be freed. Pairs with the release in loader_stop().
	 */
	if (atomic_load_explicit(n->perfmaps.stop, memory_order_acquire))
		return -ECANCELED;
	if (in_dump)
		in_map = perfmaps_find(&n->perfmaps, base, q->offset, &mapped);
	if (atomic_load_explicit(n->perfmaps.stop, memory_order_acquire))
		return -ECANCELED;
	f->start = in_dump ? mapped.start : dumped.start;
	if (!in_dump)
		set_jit(n, f, "[jitdump]", "jitdump", dumped.name, dumped.name_size);
	else if ((in_dump == -EAGAIN || in_map == -EAGAIN) && !q->now)
		return -EAGAIN;
	else if (!in_map)
		set_jit(n, f, "[perf map]", "perf map", mapped.name, mapped.name_size);
	else
		return -ENOENT;
	return 0;
}

int naming_jit_find(struct naming_jit *n, struct object *object, const struct naming_question *q,
		    struct naming_found *f)
{
	struct object *base = jitdumps_base(&n->jitdumps, object);
	struct hotspots_symbol java;
	int rc = hotspots_find(&n->hotspots, object, q->offset, &java);

	f->key.object = base->id;
	f->text.kind = 'j';
	if (!rc) {
		set_java(n, f, &java);
		return 0;
	}
	if (rc == -EAGAIN && !q->now)
		return rc;
	if (object->identity.layer == HOTSPOTS_METHODS) {
		naming_found_module(f, "[java]", sizeof("[java]") - 1);
		naming_found_made_up(f, TEXT("[interpreter]"), NULL, 0);
		return 0;
	}
	rc = find_reported(n, object, base, q, f);
	if (rc == -ENOENT) {
		naming_found_module(f, base->name.str, base->name.size);
		naming_found_made_up(f, TEXT("[anon]"), " 0x", q->offset & ~(NAMING_PAGE - 1));
		return 0;
	}
	return rc;
}

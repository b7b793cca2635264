// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queues of places by object, and their debug files.
 *
 * Runs on: the loader.
 */
#include "symbols/lines.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/debugfile.h"
#include "symbols/demangle.h"
#include "symbols/dwarf.h"
#include "symbols/dwarf_open.h"
#include "symbols/image.h"

#define SLICE_NS	5000000ULL
#define IDLE_NS		10000000000ULL	/* a file of no use is closed after that */
#define OPEN_MAX	4U
#define OPEN_SIZE_MAX	(256ULL << 20)
#define LATE_MAX	3U		/* questions that took too long: no more of that file */
#define OBJECTS_MAX	65536U

struct lines_object {
	uint32_t dso;
	uint32_t *queue;
	uint32_t nr, max;
	struct dwarf *dwarf;		/* NULL: closed */
	struct elffile file;		/* while dwarf is open */
	uint64_t used_ns;
	uint32_t nr_late;
	bool refused;			/* for good */
};

void lines_init(struct lines *l, const struct objects *objects, struct places *places,
		struct symtab *symtab, struct chains *chains)
{
	memset(l, 0, sizeof(*l));
	l->objects = objects;
	l->places = places;
	l->symtab = symtab;
	l->chains = chains;
}

static void close_object(struct lines_object *o)
{
	if (!o->dwarf)
		return;
	dwarf_close(o->dwarf);
	debugfile_close(&o->file);
	o->dwarf = NULL;
	/* Megabytes in small pieces: without this the process keeps them. */
	malloc_trim(0);
}

void lines_fini(struct lines *l)
{
	for (uint32_t i = 0; i < l->nr_list; i++) {
		close_object(l->list[i]);
		free(l->list[i]->queue);
		free(l->list[i]);
	}
	free(l->list);
	free(l->by_dso);
	l->list = NULL;
	l->by_dso = NULL;
	l->nr_list = l->nr_by_dso = 0;
}

/* Make the index reach object @id. */
static int reserve(struct lines *l, uint32_t id)
{
	uint32_t nr = MAX(id + 1, l->nr_by_dso * 2), *by_dso;

	if (id < l->nr_by_dso)
		return 0;
	by_dso = reallocarray(l->by_dso, nr, sizeof(*by_dso));
	if (!by_dso)
		return -ENOMEM;
	memset(by_dso + l->nr_by_dso, 0, (nr - l->nr_by_dso) * sizeof(*by_dso));
	l->by_dso = by_dso;
	l->nr_by_dso = nr;
	return 0;
}

static struct lines_object *object_of(struct lines *l, uint32_t dso)
{
	struct lines_object **list, *o;

	if (dso < l->nr_by_dso && l->by_dso[dso])
		return l->list[l->by_dso[dso] - 1];
	if (l->nr_list == OBJECTS_MAX || reserve(l, dso))
		return NULL;
	list = reallocarray(l->list, l->nr_list + 1, sizeof(*list));
	if (!list)
		return NULL;
	l->list = list;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->dso = dso;
	list[l->nr_list++] = o;
	l->by_dso[dso] = l->nr_list;
	return o;
}

static void count_waiting(struct lines *l, long nr)
{
	atomic_fetch_add_explicit(&l->nr_waiting, (unsigned long)nr, memory_order_relaxed);
}

void lines_add(struct lines *l, uint32_t id)
{
	const struct place *place = l->off ? NULL : places_at(l->places, id);
	const struct dso *dso = place ? dsos_at(l->objects->dsos, place->dso) : NULL;
	struct lines_object *o;
	uint32_t *queue, max;

	if (!dso || dso->identity.kind != DSO_FILE)
		return;
	o = object_of(l, place->dso);
	if (!o || o->refused)
		return;
	if (o->nr == o->max) {
		max = o->max ? o->max * 2 : 64;
		queue = reallocarray(o->queue, max, sizeof(*queue));
		if (!queue)
			return;
		o->queue = queue;
		o->max = max;
	}
	o->queue[o->nr++] = id;
	count_waiting(l, 1);
}

/* Nothing more of @o. */
static void refuse(struct lines *l, struct lines_object *o)
{
	close_object(o);
	o->refused = true;
	count_waiting(l, -(long)o->nr);
	free(o->queue);
	o->queue = NULL;
	o->nr = o->max = 0;
}

/* Turn @o->file, the object, into the file that has its debug information. */
static int to_debug_file(struct lines_object *o, uint64_t *bias)
{
	struct elffile debug;
	uint64_t size;
	int rc = dwarf_open_check(&o->file, &size);

	*bias = 0;
	if (rc != -ENODATA)
		return rc;
	rc = debugfile_open(&o->file, &debug, bias);
	if (rc)
		rc = debugfile_open_link(&o->file, DEBUGFILE_ROOT, &debug, bias);
	if (rc)
		return rc;
	debugfile_close(&o->file);
	o->file = debug;
	return 0;
}

/* Open the debug information of @o. 0, -ECANCELED when stopping, -errno. */
static int open_object(struct lines *l, struct lines_object *o)
{
	struct foreign_file file;
	uint64_t bias;
	char *path;
	int rc = objects_open(l->objects, dsos_at(l->objects->dsos, o->dso), &file, &path);

	if (rc) {
		free(path);
		return rc;
	}
	rc = elffile_open(&o->file, file.fd, NULL, file.size, NULL);
	if (rc) {
		close(file.fd);
		free(path);
		return rc;
	}
	o->file.path = path;
	rc = to_debug_file(o, &bias);
	if (!rc)
		rc = dwarf_open(&o->dwarf, &o->file, bias);
	o->file.path = NULL;
	free(path);
	if (rc)
		debugfile_close(&o->file);
	/* Pairs with the release in loader_stop(). */
	return atomic_load_explicit(l->objects->stop, memory_order_acquire) ? -ECANCELED : rc;
}

/* Close what has been of no use for longest, until another file may be open. */
static void make_room(struct lines *l, uint64_t now_ns, bool for_one)
{
	for (;;) {
		struct lines_object *oldest = NULL;
		uint64_t size = 0;
		uint32_t nr = 0;

		for (uint32_t i = 0; i < l->nr_list; i++) {
			struct lines_object *o = l->list[i];

			if (!o->dwarf)
				continue;
			size += dwarf_size(o->dwarf);
			nr++;
			if (!oldest || o->used_ns < oldest->used_ns)
				oldest = o;
		}
		if (!oldest || (now_ns - oldest->used_ns < IDLE_NS &&
				!(for_one && (nr >= OPEN_MAX || size > OPEN_SIZE_MAX))))
			return;
		close_object(oldest);
	}
}

/* The symbol of an inlined function, made when it is new. */
static uint32_t inlined_symbol(struct lines *l, const struct dso *dso, const char *name)
{
	size_t size = strnlen(name, DEMANGLE_NAME_MAX), clean;
	const struct symtab_key key = {
		.dso = dso->id, .variant = symtab_variant(name, size),
	};
	struct symtab_text text = {
		.name = name, .name_size = size, .module = dso->name.str,
		.module_size = dso->name.size, .kind = 'u', .inlined = true,
	};
	uint32_t id = symtab_find(l->symtab, &key);

	if (id != SYMBOL_NONE)
		return id;
	clean = demangle(name, size, l->demangled, sizeof(l->demangled));
	if (clean) {
		text.name = l->demangled;
		text.name_size = clean;
	}
	return symtab_add(l->symtab, &key, &text);
}

/* Keep what @frames tell of place @id. */
static void keep(struct lines *l, const struct dso *dso, uint32_t id,
		 const struct dwarf_frame *frames, uint32_t nr)
{
	struct symbol_frame out[DWARF_FRAMES_MAX];

	for (uint32_t i = 0; i < nr; i++) {
		out[i].symbol = SYMBOL_NONE;
		if (frames[i].name) {
			out[i].symbol = inlined_symbol(l, dso, frames[i].name);
			if (out[i].symbol == SYMBOL_NONE)
				return;		/* the table is full */
		}
		out[i].line = frames[i].line;
		out[i].file = frames[i].file ? chains_intern_file(l->chains, frames[i].file) :
					       SYMBOL_NO_FILE;
	}
	if (nr == 1 && !out[0].line)
		return;
	if (!chains_put(l->chains, id, out, nr))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* Look one place of @o up; the object's image stands, for the place has a name. */
static void look_up(struct lines *l, struct lines_object *o, uint32_t id)
{
	const struct dso *dso = dsos_at(l->objects->dsos, o->dso);
	const struct image *image = atomic_load_explicit(&dso->image, memory_order_acquire);
	const struct place *place = places_at(l->places, id);
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	uint64_t vaddr;
	int nr;

	if (!image || !image_vaddr(image, place->offset, &vaddr))
		return;
	nr = dwarf_chain(o->dwarf, vaddr, frames);
	if (nr > 0)
		keep(l, dso, id, frames, (uint32_t)nr);
	else if (nr == -ETIME)
		o->nr_late++;
}

/* The object with the longest queue. */
static struct lines_object *choose(const struct lines *l)
{
	struct lines_object *best = NULL;

	for (uint32_t i = 0; i < l->nr_list; i++) {
		if (l->list[i]->nr && (!best || l->list[i]->nr > best->nr))
			best = l->list[i];
	}
	return best;
}

bool lines_work(struct lines *l)
{
	struct lines_object *o = choose(l);
	uint64_t now_ns = time_now_ns(), end_ns = now_ns + SLICE_NS;
	uint32_t done = 0;

	make_room(l, now_ns, o && !o->dwarf);
	if (!o)
		return false;
	if (!o->dwarf) {
		int rc = open_object(l, o);

		if (rc == -ECANCELED)
			return false;
		if (rc)
			refuse(l, o);
		o->used_ns = now_ns;
		return true;
	}
	while (done < o->nr && o->nr_late < LATE_MAX && time_now_ns() < end_ns)
		look_up(l, o, o->queue[done++]);
	o->nr -= done;
	memmove(o->queue, o->queue + done, o->nr * sizeof(*o->queue));
	count_waiting(l, -(long)done);
	o->used_ns = now_ns;
	if (o->nr_late >= LATE_MAX)
		refuse(l, o);
	return true;
}

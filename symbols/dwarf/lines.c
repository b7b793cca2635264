// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines and inlined functions of sampled places: look-up by object, result by place.
 *
 * Runs on: the loader; run_*() on a helper, for a debug file may hang as any other and its index
 * takes seconds. One job at a time.
 */
#include "symbols/dwarf/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

#define IDLE_NS 10000000000ULL /* an unused file is closed after that */

/*
 * The limit of a job: it hangs then, and its file is not read again. A call takes a quarter at
 * most, on a busy machine; a job may wait for calls of the code view.
 */
#define JOB_MAX_NS (4 * 2 * DWARF_SANDBOX_OPEN_NS)

#define JOB_PLACES	DWARF_SANDBOX_PLACES
#define OPEN_MAX	16U
#define OPEN_SIZE_MAX	(256ULL << 20)
#define LATE_MAX	3U /* look-ups that took too long: no more in that file */
#define LOST_MAX	3U /* workers that a file lost without a result in between */
#define IMAGE_CACHE_MAX 65536U

/* Fewer places wait for others: 1/20 of the age of the session, 500 ms at most. */
#define FEW_PLACES 64U

#define FEW_WAIT_NS    500000000ULL
#define FEW_WAIT_SHARE 20

struct lines_object {
	uint32_t object;
	uint32_t *queue;
	uint32_t nr, max;
	struct dwarf_sandbox
		*file; /* used by one thread at a time; NULL: closed, or lent to a job */
	uint64_t used_ns;
	int code; /* the object itself, with its calls; the same; -1: closed, or lent */
	uint32_t nr_late, nr_lost;
	bool refused; /* its debug information, permanently */
	bool left;    /* the object: it hangs, or is not there */
};

/* A job: open a file, look some places up, or close it. A job that hangs keeps its file. */
struct lines_job {
	struct job job;
	struct load_where where; /* to open */
	bool no_lines, code_only;
	struct dwarf_sandbox *file; /* to look up in, or just opened; NULL: none */
	int code;		    /* the same of the object; -1: none */
	struct lines_object *of;    /* the loader's, not used by the job */
	uint64_t began_ns;
	int rc;	   /* of opening, or of the look-up */
	bool lost; /* the worker that had the file open was replaced: open it again */
	uint32_t nr;
	uint32_t places[JOB_PLACES];
	uint64_t vaddrs[JOB_PLACES], offsets[JOB_PLACES];
	uint16_t machine;
	/* The result: of the first places; and functions that a call there leads through. */
	struct dwarf_chains chains;
	uint32_t nr_tails[JOB_PLACES];
	uint64_t tails[JOB_PLACES][TAIL_CALLS_MAX];
};

void lines_init(struct lines *l, const struct image_cache *images, struct places *places,
		struct symtab *symtab, struct inlines *chains)
{
	memset(l, 0, sizeof(*l));
	l->images = images;
	l->places = places;
	l->symtab = symtab;
	l->chains = chains;
	l->began_ns = time_now_ns();
}

static void drop_job(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	dwarf_sandbox_close(j->file);
	if (j->code >= 0)
		close(j->code);
	load_where_fini(&j->where);
	dwarf_chains_free(&j->chains);
	free(j);
}

static struct lines_job *new_job(void (*run)(struct job *job), struct dwarf_sandbox *file, int code)
{
	struct lines_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->job.run = run;
	j->job.drop = drop_job;
	j->file = file;
	j->code = code;
	return j;
}

static void run_close(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	dwarf_sandbox_close(j->file);
	j->file = NULL;
	if (j->code >= 0)
		close(j->code);
	j->code = -1;
}

static bool is_open(const struct lines_object *o)
{
	return o->file || o->code >= 0;
}

/* Have the files of @o closed, by a helper: even closing may hang. */
static void close_object(struct lines *l, struct lines_object *o)
{
	struct lines_job *j = is_open(o) ? new_job(run_close, o->file, o->code) : NULL;

	if (!j)
		return;
	o->file = NULL;
	o->code = -1;
	if (helpers_start(l->images->helpers, &j->job))
		j->job.drop(&j->job);
	else
		helper_job_leave(&j->job);
}

void lines_fini(struct lines *l)
{
	if (l->job)
		helper_job_leave(&l->job->job);
	l->job = NULL;
	for (uint32_t i = 0; i < l->nr_list; i++) {
		close_object(l, l->list[i]);
		free(l->list[i]->queue);
		free(l->list[i]);
	}
	free(l->list);
	free(l->by_object);
	demangler_fini(&l->demangler);
	l->list = NULL;
	l->by_object = NULL;
	l->nr_list = l->nr_by_object = 0;
}

static struct lines_object *object_of(struct lines *l, uint32_t object)
{
	struct lines_object **list, *o;

	if (object < l->nr_by_object && l->by_object[object])
		return l->list[l->by_object[object] - 1];
	if (l->nr_list == IMAGE_CACHE_MAX ||
	    !array_reserve_zeroed(&l->by_object, &l->nr_by_object, object + 1ULL))
		return NULL;
	list = reallocarray(l->list, l->nr_list + 1, sizeof(*list));
	if (!list)
		return NULL;
	l->list = list;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->object = object;
	o->code = -1;
	list[l->nr_list++] = o;
	l->by_object[object] = l->nr_list;
	return o;
}

static void count_waiting(struct lines *l, long nr)
{
	/* Pairs with symbols_stats(): of a place that waits no longer, the lines are there. */
	atomic_fetch_add_explicit(&l->nr_waiting, (unsigned long)nr, memory_order_release);
}

void lines_add(struct lines *l, uint32_t id)
{
	const struct place *place = l->off ? NULL : places_at(l->places, id);
	const struct object *object = place ? objects_at(l->images->objects, place->object) : NULL;
	struct lines_object *o;

	if (!object || object->identity.kind != OBJECT_FILE)
		return;
	o = object_of(l, place->object);
	if (!o || o->left)
		return;
	if (!array_reserve(&o->queue, &o->max, o->nr + 1ULL))
		return;
	o->queue[o->nr++] = id;
	count_waiting(l, 1);
}

static uint32_t moved(const uint32_t *ids, uint32_t nr_ids, uint32_t id)
{
	return id < nr_ids ? ids[id] - 1 : PLACE_NONE;
}

void lines_move(struct lines *l, struct places *places, struct inlines *chains, const uint32_t *ids,
		uint32_t nr_ids)
{
	_Static_assert(PLACE_NONE == 0U - 1, "0 in ids is no place");
	l->places = places;
	l->chains = chains;
	for (uint32_t i = 0; i < l->nr_list; i++) {
		struct lines_object *o = l->list[i];
		uint32_t nr = 0;

		for (uint32_t k = 0; k < o->nr; k++) {
			uint32_t id = moved(ids, nr_ids, o->queue[k]);

			if (id != PLACE_NONE)
				o->queue[nr++] = id;
		}
		count_waiting(l, (long)nr - (long)o->nr);
		o->nr = nr;
	}
	/* The helper does not use them. */
	for (uint32_t i = 0; l->job && i < l->job->nr; i++)
		l->job->places[i] = moved(ids, nr_ids, l->job->places[i]);
}

static int inlines_put(struct inlines *c, uint32_t place, const struct symbol_frame *frames,
		       uint32_t nr);

static uint32_t inlines_intern_file(struct inlines *c, uint32_t object, const char *path);

void lines_told(struct lines *l, uint32_t id, const char *file, uint32_t line)
{
	struct symbol_frame frame = { .symbol = SYMBOL_NONE, .line = line };
	const struct place *place = places_at(l->places, id);
	uint32_t nr;

	if (l->off || !place || inlines_at(l->chains, id, &nr))
		return;
	frame.file = inlines_intern_file(l->chains, place->object, file);
	if (!inlines_put(l->chains, id, &frame, 1))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* The function of a Java method: of any code compiled from it (naming's set_java()). */
static uint32_t java_symbol(struct lines *l, const char *name)
{
	struct naming_found f = { .text.kind = LANG_JAVA };
	uint32_t id;

	naming_share(&f, naming_shared_object(l->images->objects, "[java]"), name, strlen(name));
	naming_found_module(&f, "[java]", sizeof("[java]") - 1);
	id = symtab_find_named(l->symtab, &f.key, &f.text);
	return id == SYMBOL_NONE ? symtab_add(l->symtab, &f.key, &f.text) : id;
}

void lines_java(struct lines *l, const struct jvm_table_chain *chain)
{
	const struct place *place = places_at(l->places, chain->place);
	const struct objects *objects = l->images->objects;
	struct symbol_frame out[DWARF_FRAMES_MAX];
	uint32_t nr = MIN(chain->nr, DWARF_FRAMES_MAX), skip = chain->nr - nr, was;

	/* Since then the id may have become that of a place in another process. */
	if (l->off || !nr || !place || place->offset != chain->addr ||
	    objects_at(objects, place->object)->identity.owner !=
		    objects_at(objects, chain->object)->identity.owner ||
	    inlines_at(l->chains, chain->place, &was))
		return;
	/* Of a chain that is too long the outermost ones: the last is the place's symbol. */
	for (uint32_t i = 0; i < nr; i++) {
		const struct jvm_read_job_frame *f = &chain->frames[skip + i];

		out[i].symbol = i + 1 < nr ? java_symbol(l, f->name) : SYMBOL_NONE;
		if (i + 1 < nr && out[i].symbol == SYMBOL_NONE)
			return;
		out[i].line = f->line;
		out[i].file = *f->file ? inlines_intern_file(l->chains, place->object, f->file)
				       : SYMBOL_NO_FILE;
	}
	if (nr == 1 && !out[0].line)
		return;
	if (!inlines_put(l->chains, chain->place, out, nr))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* Give up the look-ups of @o. */
static void leave(struct lines *l, struct lines_object *o)
{
	close_object(l, o);
	o->left = true;
	count_waiting(l, -(long)o->nr);
	free(o->queue);
	o->queue = NULL;
	o->nr = o->max = 0;
}

void lines_again(struct lines *l, uint32_t object)
{
	struct lines_object *o = object_of(l, object);

	if (!o)
		return;
	close_object(l, o);
	o->refused = o->left = false;
	o->nr_late = o->nr_lost = 0;
}

static void run_open(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	j->rc = dwarf_object_open(&j->where, j->no_lines, &j->code, j->code_only ? NULL : &j->file);
}

/* Find the functions that the calls before the places lead through. */
static void find_tails(struct lines_job *j)
{
	struct derive_file f = { .fd = j->code, .machine = j->machine };

	for (uint32_t i = 0; j->code >= 0 && i < j->nr; i++) {
		f.bias = j->vaddrs[i] - j->offsets[i];
		j->nr_tails[i] = derive_tail_calls(&f, j->vaddrs[i] + 1, j->tails[i]);
	}
}

static void run_look_up(struct job *job)
{
	struct lines_job *j = (struct lines_job *)job;

	find_tails(j);
	if (!j->file) { /* no debug information: there are no chains */
		j->chains.nr = j->nr;
		return;
	}
	j->rc = dwarf_sandbox_chains(j->file, j->vaddrs, j->nr, &j->chains);
	/* Not of run_open(): there it is a file that was replaced on disk. */
	j->lost = j->rc == -ESTALE;
	/* Its worker is gone, and with it the open file. */
	if (j->rc) {
		dwarf_sandbox_close(j->file);
		j->file = NULL;
	}
}

/* Close the file unused for longest, until another one may be open. */
static void make_room(struct lines *l, uint64_t now_ns, bool for_one)
{
	for (;;) {
		struct lines_object *oldest = NULL;
		uint64_t size = 0;
		uint32_t nr = 0;

		for (uint32_t i = 0; i < l->nr_list; i++) {
			struct lines_object *o = l->list[i];

			if (!is_open(o))
				continue;
			size += o->file ? dwarf_sandbox_size(o->file) : 0;
			nr++;
			if (!oldest || o->used_ns < oldest->used_ns)
				oldest = o;
		}
		if (!oldest || (now_ns - oldest->used_ns < IDLE_NS &&
				!(for_one && (nr >= OPEN_MAX || size > OPEN_SIZE_MAX))))
			return;
		close_object(l, oldest);
	}
}

/* Return the symbol @key, added if new, with the name @text, which may be mangled. */
static uint32_t symbol_named(struct lines *l, const struct symtab_key *key, char dialect,
			     struct symtab_text *text)
{
	uint32_t id = symtab_find(l->symtab, key);
	const char *demangled;
	size_t clean;

	if (id != SYMBOL_NONE)
		return id;
	clean = demangler_get(&l->demangler, dialect, text->name, text->name_size, &demangled);
	if (clean) {
		text->name = demangled;
		text->name_size = clean;
	}
	return symtab_add(l->symtab, key, text);
}

/* Return the symbol of an inlined function, added if new. */
static uint32_t inlined_symbol(struct lines *l, const struct object *object,
			       const struct dwarf_frame *frame)
{
	const char *name = frame->name;
	size_t size = strnlen(name, DEMANGLE_NAME_MAX);
	const struct symtab_key key = {
		.object = object->id,
		.variant = keyhash_name(name, size) + frame->identity,
	};
	struct symtab_text text = {
		.name = name,
		.name_size = size,
		.module = object->name.str,
		.module_size = object->name.size,
		.kind = 'u',
		.inlined = true,
	};

	return symbol_named(l, &key, 0, &text);
}

/*
 * Return the function that begins at @vaddr and leads on to another one at @next; NULL: none, or
 * both are one. @bias: of the place with the call.
 */
static const struct image_symbol *tail_at(const struct image *image, uint64_t vaddr, uint64_t next,
					  uint64_t bias)
{
	const struct image_symbol *s = image_find(image, vaddr), *to = image_find(image, next);
	uint64_t offset;

	if (!s || !to || s->vaddr != vaddr || image_whole(image, s) == image_whole(image, to))
		return NULL;
	return image_offset(image, vaddr, &offset) && vaddr - offset == bias ? s : NULL;
}

/* Add the functions that the call before place @i of @j leads through, the last one first. */
static uint32_t add_tails(struct lines *l, const struct object *object, const struct lines_job *j,
			  uint32_t i, struct symbol_frame *out)
{
	assert(i < j->nr);
	/* Acquire: pairs with the release of publish(); only this thread removes it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	const uint64_t *tails = j->tails[i], bias = j->vaddrs[i] - j->offsets[i];
	const struct image_symbol *found[TAIL_CALLS_MAX];
	uint32_t nr = 0, nr_out = 0;

	while (image && nr + 1 < j->nr_tails[i] &&
	       (found[nr] = tail_at(image, tails[nr], tails[nr + 1], bias)))
		nr++;
	while (nr--) {
		struct symtab_key key = { .object = object->id, .start = found[nr]->vaddr };
		struct symtab_text text = {
			.module = object->name.str,
			.module_size = object->name.size,
			.kind = 'u',
		};
		char stub[IMAGE_STUB_MAX];
		uint32_t id;

		text.name = image_symbol_name(image, found[nr], stub, &text.name_size);
		id = symbol_named(l, &key, image->dialect, &text);
		if (id != SYMBOL_NONE)
			out[nr_out++] = (struct symbol_frame){ id, SYMBOL_TAIL_CALL, 0 };
	}
	return nr_out;
}

void dwarf_path(char *buf, size_t size, const char *dir, const char *file)
{
	bool below = file[0] != '/' && dir && *dir;

	snprintf(buf, size, "%s%s%s", below ? dir : "", below ? "/" : "", file);
}

static uint32_t file_id(struct lines *l, const struct object *object,
			const struct dwarf_frame *frame)
{
	char path[TEXT_MAX];

	if (!frame->file)
		return SYMBOL_NO_FILE;
	dwarf_path(path, sizeof(path), frame->dir, frame->file);
	return inlines_intern_file(l->chains, object->id, path);
}

/* Return the symbol of a frame: SYMBOL_NONE is the one of the place. */
static uint32_t symbol_at(const struct lines *l, uint32_t place, uint32_t symbol)
{
	const struct place *p = symbol == SYMBOL_NONE ? places_at(l->places, place) : NULL;

	return p ? atomic_load_explicit(&p->symbol, memory_order_relaxed) : symbol;
}

/* Keep the functions at place @at of @j. */
static void keep(struct lines *l, const struct object *object, const struct lines_job *j,
		 uint32_t at)
{
	const struct dwarf_frame *frames = j->chains.frames ? j->chains.frames + j->chains.first[at]
							    : NULL;
	struct symbol_frame all[DWARF_FRAMES_MAX + TAIL_CALLS_MAX], *out = all;
	uint32_t nr = (uint32_t)MAX(j->chains.nr_frames[at], 0), id = j->places[at];

	assert(at < j->nr);
	out += add_tails(l, object, j, at, all);
	for (uint32_t i = 0; i < nr; i++) {
		out[i].symbol = SYMBOL_NONE;
		if (frames[i].name) {
			out[i].symbol = inlined_symbol(l, object, &frames[i]);
			if (out[i].symbol == SYMBOL_NONE)
				return; /* the table is full */
		}
		if (frames[i].start)
			symtab_set_line(l->symtab, symbol_at(l, id, out[i].symbol),
					frames[i].start);
		out[i].line = frames[i].line;
		out[i].file = file_id(l, object, &frames[i]);
	}
	if (!nr)
		out[nr++] = (struct symbol_frame){ SYMBOL_NONE, SYMBOL_NO_FILE, 0 };
	nr += (uint32_t)(out - all);
	if (nr == 1 && !out[0].line)
		return;
	/* Of a chain that is too long the outermost ones: the last is the place's symbol. */
	out = all + nr - MIN(nr, DWARF_FRAMES_MAX);
	if (!inlines_put(l->chains, id, out, MIN(nr, DWARF_FRAMES_MAX)))
		atomic_fetch_add_explicit(&l->nr_found, 1, memory_order_relaxed);
}

/* Return the object with the longest queue. */
static struct lines_object *choose(const struct lines *l)
{
	struct lines_object *best = NULL;

	for (uint32_t i = 0; i < l->nr_list; i++) {
		if (l->list[i]->nr && (!best || l->list[i]->nr > best->nr))
			best = l->list[i];
	}
	return best;
}

/* Lend the file to @j for @o. */
static bool lend(struct lines *l, struct lines_object *o, struct lines_job *j, uint64_t now_ns)
{
	j->of = o;
	j->began_ns = now_ns;
	if (helpers_start(l->images->helpers, &j->job)) {
		for (uint32_t i = 0; i < j->nr; i++)
			lines_add(l, j->places[i]);
		count_waiting(l, -(long)j->nr);
		o->file = j->file;
		o->code = j->code;
		j->file = NULL;
		j->code = -1;
		j->job.drop(&j->job);
		return false;
	}
	l->job = j;
	return true;
}

static bool begin_open(struct lines *l, struct lines_object *o, uint64_t now_ns)
{
	struct lines_job *j = new_job(run_open, NULL, -1);

	if (!j)
		return false;
	close_object(l, o);
	j->no_lines = l->no_lines;
	j->code_only = o->refused;
	load_where(&j->where, l->images->objects, objects_at(l->images->objects, o->object),
		   l->images->no_proc, l->images->root);
	return lend(l, o, j, now_ns);
}

/*
 * Take some places of @o. Its image is loaded or has left its segments, for the
 * places have names.
 */
static bool begin_look_up(struct lines *l, struct lines_object *o, uint64_t now_ns)
{
	const struct object *object = objects_at(l->images->objects, o->object);
	/* Acquire: pairs with the release of publish(); only this thread removes it. */
	const struct image *image = atomic_load_explicit(&object->image, memory_order_acquire);
	struct lines_job *j = new_job(run_look_up, o->file, o->code);
	uint32_t taken = 0;

	if (!j)
		return false;
	o->file = NULL;
	o->code = -1;
	j->machine = image ? image->machine : 0;
	for (; taken < o->nr && j->nr < JOB_PLACES; taken++) {
		const struct place *place = places_at(l->places, o->queue[taken]);

		if (!image || !image_vaddr(image, place->offset, &j->vaddrs[j->nr]))
			continue;
		j->offsets[j->nr] = place->offset;
		j->places[j->nr++] = o->queue[taken];
	}
	o->nr -= taken;
	memmove(o->queue, o->queue + taken, o->nr * sizeof(*o->queue));
	/* The ones that are looked up wait until end_job(). */
	count_waiting(l, (long)j->nr - (long)taken);
	return lend(l, o, j, now_ns);
}

/* Demangle the functions of @c in one call. */
static void demangle_all(struct lines *l, const struct dwarf_chains *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		for (int k = 0; k < c->nr_frames[i]; k++) {
			const char *name = c->frames[c->first[i] + (uint32_t)k].name;

			if (name)
				demangler_want(&l->demangler, 0, name,
					       strnlen(name, DEMANGLE_NAME_MAX));
		}
	}
	demangler_run(&l->demangler);
}

/* Tell the user whether debug information of @o is read. */
static void tell(struct lines *l, const struct lines_object *o, int code)
{
	struct object *object = objects_at(l->images->objects, o->object);

	/* Its lines are read; a file that was closed is read again. */
	if (!code && o->file)
		code = dwarf_sandbox_split(o->file);
	atomic_store_explicit(&object->debug, dwarf_object_words(code), memory_order_relaxed);
}

/* A job is done: keep its results, and the file. */
static void take(struct lines *l, struct lines_job *j, uint64_t now_ns)
{
	struct lines_object *o = j->of;
	const struct object *object = objects_at(l->images->objects, o->object);

	demangle_all(l, &j->chains);
	for (uint32_t i = 0; i < j->chains.nr; i++) {
		keep(l, object, j, i);
		o->nr_late += j->chains.nr_frames[i] == -ETIME;
	}
	o->used_ns = now_ns;
	o->file = j->file;
	o->code = j->code;
	j->file = NULL;
	j->code = -1;
	for (uint32_t i = j->chains.nr; i < j->nr; i++)
		lines_add(l, j->places[i]);
	/* Not without end: a file may be the reason. */
	o->nr_lost = j->chains.nr ? 0 : o->nr_lost + j->lost;
	if (o->nr_late >= LATE_MAX)
		j->rc = -ETIME;
	else if (o->nr_lost >= LOST_MAX)
		j->rc = -EPIPE;
	else if (j->lost)
		j->rc = 0;
	if (!o->refused)
		tell(l, o, j->rc);
	o->refused |= j->rc != 0;
	if (o->refused && o->code < 0)
		leave(l, o);
	else if (o->refused && o->file) /* opened again for its calls alone */
		close_object(l, o);
	j->job.drop(&j->job);
}

/* Check the running job: done or abandoned. False: it continues. */
static bool end_job(struct lines *l, uint64_t now_ns)
{
	struct lines_job *j = l->job;
	uint32_t nr = j->nr;

	if (helper_job_done(&j->job)) {
		take(l, j, now_ns);
	} else if (now_ns - j->began_ns > JOB_MAX_NS) {
		tell(l, j->of, -ETIME);
		leave(l, j->of);
		helper_job_leave(&j->job);
	} else {
		return false;
	}
	count_waiting(l, -(long)nr);
	l->job = NULL;
	return true;
}

/* Return whether the queue is short and was empty lately: each job wakes four threads. */
static bool can_wait(const struct lines *l, uint64_t now_ns)
{
	uint64_t wait_ns = MIN((now_ns - l->began_ns) / FEW_WAIT_SHARE, FEW_WAIT_NS);

	return atomic_load_explicit(&l->nr_waiting, memory_order_relaxed) < FEW_PLACES &&
	       now_ns - l->emptied_ns < wait_ns;
}

/* Return whether all that is read of @o is open. */
static bool is_ready(const struct lines_object *o)
{
	return o->file || (o->refused && o->code >= 0);
}

bool lines_work(struct lines *l, bool now)
{
	uint64_t now_ns = time_now_ns();
	bool ended = l->job;
	struct lines_object *o;

	if (l->job && !end_job(l, now_ns))
		return false;
	o = choose(l);
	if (!o && ended)
		l->emptied_ns = now_ns;
	make_room(l, now_ns, o && !is_ready(o));
	if (!o || (!now && !ended && can_wait(l, now_ns)))
		return false;
	return is_ready(o) ? begin_look_up(l, o, now_ns) : begin_open(l, o, now_ns);
}

bool lines_busy(const struct lines *l)
{
	return l->job;
}

/*
 * Chains in a pool of blocks, found through chunks of pointers by place.
 *
 * A chain is written before its pointer is published (release), and never
 * changed after that. Equal chains are kept once: a program with a JIT that starts again and again
 * has the same ones at new addresses. Files are in a chunked store. Both are found by hash sets.
 */

#define CHUNK_BITS 12
#define CHUNK_SIZE (1U << CHUNK_BITS)
#define NR_CHUNKS  (1U << 14)
#define BLOCK_SIZE (64UL << 10)
#define BLOCKS_MAX (INLINES_MEMORY_MAX / BLOCK_SIZE)
#define WORD	   8U /* chains begin at multiples */
#define FILE_BITS  10
#define FILES_MAX  (1U << 20)

/* The bytes of files are counted by object, in slots by hash: one object may name millions. */
#define NR_SHARES 4096U

struct chain {
	uint32_t nr;
	struct symbol_frame frames[];
};

/* By place; the pointer is the release, acquired by inlines_at(). */
struct chunk {
	_Atomic(const struct chain *) chains[CHUNK_SIZE];
};

/* Chains by their number: the words before it in all blocks. */
struct pool {
	char *blocks[BLOCKS_MAX];
	uint32_t nr_blocks;
	size_t used; /* bytes of the last block */
	struct hashset set;
};

/* Clean texts, complete when published. */
struct files {
	struct text_arena *texts;
	struct keyhash_key secret; /* against texts that were chosen for one bucket */
	struct hashset set;
	struct chunked list; /* struct safe_text */
	uint32_t memory;     /* bytes, with each file's part of set and list */
	uint32_t shares[NR_SHARES];
};

struct inlines {
	struct pool pool;
	size_t memory;
	struct keyhash_key secret; /* against chains that were chosen for one bucket */
	struct files files;
	_Atomic(struct chunk *) chunks[NR_CHUNKS]; /* release, acquire in inlines_at() */
};

int inlines_new(struct inlines **out)
{
	struct inlines *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->secret = keyhash_new_key();
	c->files.secret = keyhash_new_key();
	c->files.texts = text_arena_new();
	if (!c->files.texts ||
	    chunked_init(&c->files.list, sizeof(struct safe_text), FILE_BITS, FILES_MAX)) {
		inlines_free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

void inlines_free(struct inlines *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->pool.nr_blocks; i++)
		free_sparse(c->pool.blocks[i], BLOCK_SIZE);
	hashset_fini(&c->pool.set);
	for (size_t i = 0; i < NR_CHUNKS; i++)
		free(atomic_load_explicit(&c->chunks[i], memory_order_relaxed));
	chunked_fini(&c->files.list);
	hashset_fini(&c->files.set);
	text_arena_free(c->files.texts);
	free(c);
}

static bool is_full(const struct inlines *c, size_t size)
{
	return c->memory + hashset_memory(&c->pool.set) + size > INLINES_MEMORY_MAX;
}

static struct chain *chain_of(const struct pool *p, uint32_t number)
{
	size_t at = (size_t)number * WORD;

	return (struct chain *)(p->blocks[at / BLOCK_SIZE] + at % BLOCK_SIZE);
}

/* Reserve @size bytes, which live as long as the table. Return their number; INLINES_NONE: the
 * limit. */
static uint32_t inlines_take(struct inlines *c, size_t size)
{
	struct pool *p = &c->pool;
	size_t at;

	size = (size + WORD - 1) / WORD * WORD;
	if (!p->nr_blocks || p->used + size > BLOCK_SIZE) {
		if (size > BLOCK_SIZE || p->nr_blocks == BLOCKS_MAX || is_full(c, BLOCK_SIZE))
			return INLINES_NONE;
		p->blocks[p->nr_blocks] = alloc_sparse(BLOCK_SIZE);
		if (!p->blocks[p->nr_blocks])
			return INLINES_NONE;
		p->nr_blocks++;
		p->used = 0;
		c->memory += BLOCK_SIZE;
	}
	at = (p->nr_blocks - 1) * BLOCK_SIZE + p->used;
	p->used += size;
	return (uint32_t)(at / WORD);
}

static uint64_t hash_chain(const struct inlines *c, const struct symbol_frame *frames, uint32_t nr)
{
	struct keyhash h = keyhash_begin(&c->secret);

	for (uint32_t i = 0; i < nr; i++) {
		keyhash_word(&h, (uint64_t)frames[i].symbol << 32 | frames[i].file);
		keyhash_word(&h, frames[i].line);
	}
	return keyhash_end(&h);
}

uint32_t chains_intern(struct inlines *c, const struct symbol_frame *frames, uint32_t nr)
{
	uint64_t hash = hash_chain(c, frames, nr);
	uint32_t number, at = 0;
	struct chain *chain;

	while ((number = hashset_next(&c->pool.set, hash, &at)) != HASHSET_NONE) {
		chain = chain_of(&c->pool, number);
		if (chain->nr == nr && !memcmp(chain->frames, frames, nr * sizeof(*frames)))
			return number;
	}
	if (hashset_reserve(&c->pool.set, 1))
		return INLINES_NONE;
	number = inlines_take(c, sizeof(*chain) + nr * sizeof(*frames));
	if (number == INLINES_NONE)
		return INLINES_NONE;
	chain = chain_of(&c->pool, number);
	chain->nr = nr;
	memcpy(chain->frames, frames, nr * sizeof(*frames));
	hashset_add(&c->pool.set, hash, number);
	return number;
}

int inlines_set(struct inlines *c, uint32_t place, uint32_t number)
{
	const struct chain *chain = chain_of(&c->pool, number);
	struct chunk *chunk;

	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return -ENOSPC;
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_relaxed);
	if (!chunk) {
		if (is_full(c, sizeof(*chunk)))
			return -ENOSPC;
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		c->memory += sizeof(*chunk);
		/* Publishes an empty chunk; pairs with inlines_at(). */
		atomic_store_explicit(&c->chunks[place >> CHUNK_BITS], chunk, memory_order_release);
	}
	/* Publishes the chain; pairs with inlines_at(). */
	atomic_store_explicit(&chunk->chains[place & (CHUNK_SIZE - 1)], chain,
			      memory_order_release);
	return 0;
}

/* Writer. Both. */
static int inlines_put(struct inlines *c, uint32_t place, const struct symbol_frame *frames,
		       uint32_t nr)
{
	uint32_t number = place >> CHUNK_BITS < NR_CHUNKS ? chains_intern(c, frames, nr)
							  : INLINES_NONE;

	return number == INLINES_NONE ? -ENOSPC : inlines_set(c, place, number);
}

const struct symbol_frame *inlines_at(const struct inlines *c, uint32_t place, uint32_t *nr)
{
	const struct chain *chain;
	struct chunk *chunk;

	assert(nr);
	*nr = 0;
	if (place >> CHUNK_BITS >= NR_CHUNKS)
		return NULL;
	/* Pair with the releases in inlines_put(). */
	chunk = atomic_load_explicit(&c->chunks[place >> CHUNK_BITS], memory_order_acquire);
	if (!chunk)
		return NULL;
	chain = atomic_load_explicit(&chunk->chains[place & (CHUNK_SIZE - 1)],
				     memory_order_acquire);
	if (!chain)
		return NULL;
	*nr = chain->nr;
	return chain->frames;
}

static uint64_t hash_text(const struct files *f, struct safe_text text)
{
	struct keyhash h = keyhash_begin(&f->secret);

	keyhash_bytes(&h, text.str, text.size);
	return keyhash_end(&h);
}

/* Return the id of a clean text; SYMBOL_NO_FILE: it is new. */
static uint32_t find_file(const struct files *f, uint64_t hash, struct safe_text text)
{
	uint32_t id, at = 0;

	while ((id = hashset_next(&f->set, hash, &at)) != HASHSET_NONE) {
		const struct safe_text *is = chunked_at(&f->list, id);

		if (is->size == text.size && !memcmp(is->str, text.str, text.size))
			return id;
	}
	return SYMBOL_NO_FILE;
}

/* Charge a new text to the table and to the share of @object. False: too little memory is left. */
static bool charge_text(struct files *f, uint32_t object, size_t size, bool moved)
{
	/* A set has four slots for each id at most. */
	uint32_t cost =
		(uint32_t)(size + 1 + sizeof(struct safe_text) + 4 * sizeof(struct hashset_slot));
	uint32_t left = INLINES_FILES_MEMORY_MAX - f->memory;
	uint32_t *share = &f->shares[hash_u64(object ^ f->secret.k0) % NR_SHARES];

	/* An eighth of the rest, not of the limit: later objects also get a share. */
	if (cost > left || (!moved && *share + cost > left / 8))
		return false;
	f->memory += cost;
	*share += cost;
	return true;
}

static uint32_t add_file(struct files *f, uint64_t hash, struct safe_text text)
{
	uint32_t id = chunked_nr(&f->list);
	struct safe_text *file = chunked_reserve(&f->list, id);

	if (!file || hashset_reserve(&f->set, 1))
		return SYMBOL_NO_FILE;
	*file = text_arena_add(f->texts, text.str, text.size);
	hashset_add(&f->set, hash, id);
	chunked_publish(&f->list, id + 1);
	return id;
}

/*
 * Writer. Return the id of a path (foreign bytes) that @object names; SYMBOL_NO_FILE when the
 * table is full, or @object has had its share.
 */
static uint32_t inlines_intern_file(struct inlines *c, uint32_t object, const char *path)
{
	char buf[TEXT_MAX + 1];
	struct safe_text text = text_sanitise(buf, sizeof(buf), path, strlen(path));
	uint64_t hash = hash_text(&c->files, text);
	uint32_t id = find_file(&c->files, hash, text);

	if (id != SYMBOL_NO_FILE || !charge_text(&c->files, object, text.size, false))
		return id;
	return add_file(&c->files, hash, text);
}

uint32_t inlines_move_file(struct inlines *c, uint32_t object, struct safe_text file)
{
	uint64_t hash = hash_text(&c->files, file);
	uint32_t id = find_file(&c->files, hash, file);

	if (id != SYMBOL_NO_FILE || !charge_text(&c->files, object, file.size, true))
		return id;
	return add_file(&c->files, hash, file);
}

struct safe_text inlines_file(const struct inlines *c, uint32_t id)
{
	const struct safe_text *file;

	if (id >= chunked_nr(&c->files.list))
		return TEXT("");
	file = chunked_at(&c->files.list, id);
	return *file;
}

uint32_t inlines_nr_files(const struct inlines *c)
{
	return chunked_nr(&c->files.list);
}

size_t inlines_memory(const struct inlines *c)
{
	return c->memory + hashset_memory(&c->pool.set) + sizeof(c->files) +
	       text_arena_size(c->files.texts) + hashset_memory(&c->files.set) +
	       chunked_memory(&c->files.list);
}

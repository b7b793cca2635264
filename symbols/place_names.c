// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Passes over the sampled places (new, waiting, renamed); places on their way into another table.
 * Runs on: the loader.
 *
 * Runs on: the loader, or the caller of loader_run().
 */
#include "symbols/internal.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/script/script.h"

/*
 * Names and chains of places, from one table to another.
 *
 * Runs on: the builder, until the loader takes over; then the loader.
 */

struct places_move *places_move_new(struct places *from, struct places *to,
				    const struct inlines *chains, struct objects *objects,
				    const struct symtab *symtab)
{
	/* No process has the id 0. */
	const struct object_identity identity = { .kind = OBJECT_ANON, .layer = UINT32_MAX };
	struct places_move *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct places_move){
		.from = from, .to = to, .from_chains = chains, .objects = objects, .symtab = symtab
	};
	m->ended = objects_intern(objects, &identity, "//anon", 6, 0, 0, 0)->id;
	m->nr_ids = places_room(from);
	m->ids = calloc(MAX(m->nr_ids, 1u), sizeof(*m->ids));
	if (m->ids && !inlines_new(&m->to_chains))
		return m;
	free(m->ids);
	free(m);
	return NULL;
}

/* Return the new id of a file, which leaves the table with the last place that has it. */
static uint32_t move_file(struct places_move *m, uint32_t object, uint32_t file)
{
	if (file == SYMBOL_NO_FILE || !array_reserve_zeroed(&m->files, &m->nr_files, file + 1ULL))
		return SYMBOL_NO_FILE;
	if (!m->files[file])
		m->files[file] = inlines_move_file(m->to_chains, object,
						   inlines_file(m->from_chains, file)) +
				 1;
	return m->files[file] - 1;
}

/* Move the chain of place @old. Return its new number; INLINES_NONE: it has none. */
static uint32_t move_chain(struct places_move *m, uint32_t object, uint32_t old)
{
	struct symbol_frame out[DWARF_FRAMES_MAX];
	const struct symbol_frame *frames;
	uint32_t nr;

	frames = inlines_at(m->from_chains, old, &nr);
	if (!frames)
		return INLINES_NONE;
	nr = MIN(nr, DWARF_FRAMES_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		out[i] = frames[i];
		out[i].file = move_file(m, object, frames[i].file);
	}
	return chains_intern(m->to_chains, out, nr);
}

static uint32_t symbol_of(const struct place *place)
{
	/* Acquire: the symbol's fields; pairs with the release in places_name(). */
	return atomic_load_explicit(&place->symbol, memory_order_acquire);
}

/*
 * Return whether the place is code of a JIT in a process that has ended, and has the name that it
 * will keep. A jitdump has its code, which can still be shown by address.
 */
static bool is_ended(const struct places_move *m, const struct place *place)
{
	const struct object *object = objects_at(m->objects, place->object);
	const struct symbol *s = symtab_at(m->symtab, symbol_of(place));
	const char *source = object ? atomic_load_explicit(&object->source, memory_order_relaxed)
				    : NULL;

	if (!object || object->identity.kind != OBJECT_ANON || !s || s->made_up ||
	    m->ended == OBJECT_ID_UNKNOWN)
		return false;
	return object->id == m->ended ||
	       (!object_is_mapped(object) && !(source && !strcmp(source, "jitdump")) &&
		!atomic_load_explicit(&object->interpreter, memory_order_relaxed));
}

uint32_t places_move_one(struct places_move *m, uint32_t id)
{
	const struct place *place = id < m->nr_ids ? places_at(m->from, id) : NULL;
	uint32_t symbol, chain, to, nr;

	if (!place)
		return PLACE_NONE;
	if (m->ids[id])
		return m->ids[id] - 1;
	if (places_crowded(m->to))
		places_grow(m->to);
	symbol = symbol_of(place);
	chain = move_chain(m, place->object, id);
	to = is_ended(m, place) ? places_intern(m->to, m->ended, (uint64_t)symbol << 32 | chain)
				: places_intern(m->to, place->object, place->offset);
	if (to == PLACE_NONE)
		return to;
	m->ids[id] = to + 1;
	if (symbol != SYMBOL_NONE)
		places_name(m->to, to, symbol);
	if (chain != INLINES_NONE && !inlines_at(m->to_chains, to, &nr))
		inlines_set(m->to_chains, to, chain);
	return to;
}

/* Give place @id the name and chain that place @old got since it moved. */
static void move_late(struct places_move *m, uint32_t old, uint32_t id)
{
	const struct place *place = places_at(m->from, old);
	uint32_t symbol = symbol_of(place), chain, nr;

	/* Code of ended processes has both; it is one place for many. */
	if (places_at(m->to, id)->object == m->ended)
		return;
	if (symbol != SYMBOL_NONE)
		places_name(m->to, id, symbol);
	if (inlines_at(m->to_chains, id, &nr))
		return;
	chain = move_chain(m, place->object, old);
	if (chain != INLINES_NONE)
		inlines_set(m->to_chains, id, chain);
}

/* Loader: move the names and chains that the old tables got since. */
static void places_move_late(struct places_move *m)
{
	for (uint32_t i = 0; i < m->nr_ids; i++)
		if (m->ids[i])
			move_late(m, i, m->ids[i] - 1);
}

void places_move_free(struct places_move *m)
{
	free(m->ids);
	free(m->files);
	free(m);
}

void places_move_cancel(struct places_move *m)
{
	if (!m)
		return;
	inlines_free(m->to_chains);
	places_move_free(m);
}

#define PLACES_A_PASS 4096U

/* Names are made together: a pass over a few new places waits so long after the one before. */
#define PASS_PLACES 256U

#define PASS_NS 4000000ULL

static bool is_stopping(const struct place_names *n)
{
	return atomic_load_explicit(n->stop, memory_order_acquire);
}

/* Keep @place for a later pass; without memory it never gets a name. */
static void keep_waiting(struct place_names *n, const struct place_names_waiting *w)
{
	if (!array_reserve(&n->waiting, &n->max_waiting, n->nr_waiting + 1ull))
		return;
	n->waiting[n->nr_waiting++] = *w;
}

static void count_name(struct place_names *n, bool by_name)
{
	atomic_fetch_add_explicit(by_name ? &n->nr_named : &n->nr_unnamed, 1, memory_order_relaxed);
}

/* Get the source of JIT code from a jitdump. */
static void add_jit_line(struct place_names *n, uint32_t id, const struct place *place)
{
	struct object *object = objects_at(n->objects, place->object);
	const char *file;
	uint32_t line;

	if (object && object->identity.kind == OBJECT_ANON)
		jvm_table_want_chain(&n->naming->jit.hotspots, object, place->offset, id);
	if (object && object->identity.kind == OBJECT_ANON &&
	    jitdumps_line(&n->naming->jit.jitdumps, object, place->offset, &file, &line))
		lines_told(n->lines, id, file, line);
}

/* The source of code of an interpreter. */
static void add_script_line(struct place_names *n, uint32_t id, const struct place *place)
{
	const struct code_text *t = script_functions_at(n->codes, lang_place_code(place->offset));
	uint32_t instr = lang_place_instr(place->offset), line = 0;
	char file[SCRIPT_FUNCTIONS_TEXT_MAX + 1];

	if (!t)
		return;
	if (t->language == LANG_RUBY)
		line = instr >= LANG_INLINED ? 0 : rubyline_of(t->table, t->table_size, instr);
	else if (t->language != LANG_PYTHON)
		line = instr >= LANG_INLINED ? 0 : instr;
	else if (instr < LANG_INLINED)
		line = pyline_of(t->version, t->table, t->table_size, t->first_line, instr);
	*(char *)mempcpy(file, t->file, t->file_size) = '\0';
	lines_told(n->lines, id, file, line ? line : t->first_line);
}

/* Return the name of a place as of now; SYMBOL_NONE: none. */
static uint32_t place_names_symbol_of(const struct place *place)
{
	/* Pairs with nothing: only this thread writes it. */
	return atomic_load_explicit(&place->symbol, memory_order_relaxed);
}

/* A place that was moved has its name; look up what is not known. */
static void take_moved(struct place_names *n, uint32_t id, const struct place *place)
{
	const struct symbol *symbol = symtab_at(n->symtab, place_names_symbol_of(place));
	uint32_t nr;

	count_name(n, symbol && !symbol->made_up);
	if (!inlines_at(n->chains, id, &nr) && place->object != n->script)
		add_jit_line(n, id, place);
}

/* Name one place; false if it has to be tried again. */
static bool name_place(struct place_names *n, const struct place_names_waiting *w, bool now)
{
	const struct place *place = places_at(n->places, w->place);
	struct naming_question q = { .since_ns = w->since_ns, .now = now };
	struct naming_answer a = { .by_name = false };
	int rc;

	if (!place)
		return false; /* under construction */
	if (place_names_symbol_of(place) != SYMBOL_NONE) {
		take_moved(n, w->place, place);
		return true;
	}
	q.object = place->object;
	q.offset = place->offset;
	rc = naming_find(n->naming, &q, &a);
	if (rc == -EAGAIN || rc == -ECANCELED)
		return false;
	if (!rc) {
		places_name(n->places, w->place, a.symbol);
		if (place->object == n->wait) {
			; /* no code */
		} else if (place->object == n->script) {
			add_script_line(n, w->place, place);
		} else {
			lines_add(n->lines, w->place);
			add_jit_line(n, w->place, place);
		}
	}
	count_name(n, !rc && a.by_name);
	return true;
}

/* Place @id is named next. */
static void prepare(struct place_names *n, uint32_t id)
{
	const struct place *place = places_at(n->places, id);
	struct naming_question q;

	if (!place || place_names_symbol_of(place) != SYMBOL_NONE)
		return;
	q = (struct naming_question){ .object = place->object, .offset = place->offset };
	naming_prepare(n->naming, &q);
}

/*
 * Try the next PLACES_A_PASS unnamed places again: of many, each pass would else try all after each
 * image. Return whether some were named, or the others are to be tried.
 */
static bool name_waiting(struct place_names *n, bool now)
{
	uint32_t first = n->next_waiting < n->nr_waiting ? n->next_waiting : 0;
	uint32_t end = first + MIN(n->nr_waiting - first, PLACES_A_PASS), kept = first;

	for (uint32_t i = first; i < end && !is_stopping(n); i++)
		prepare(n, n->waiting[i].place);
	naming_ready(n->naming);
	/* In their order, which that of functions with equal shares depends on. */
	for (uint32_t i = first; i < end; i++) {
		if (is_stopping(n) || !name_place(n, &n->waiting[i], now))
			n->waiting[kept++] = n->waiting[i];
	}
	if (kept < end)
		memmove(n->waiting + kept, n->waiting + end,
			(n->nr_waiting - end) * sizeof(*n->waiting));
	n->any_named = (n->any_named && first) || kept < end;
	n->nr_waiting -= end - kept;
	n->next_waiting = kept < n->nr_waiting ? kept : 0;
	return n->any_named || n->next_waiting;
}

/* Ids that were returned may make the table shorter than next. */
static uint32_t nr_unseen(const struct place_names *n)
{
	uint32_t nr = places_nr(n->places);

	return nr > n->next_place ? nr - n->next_place : 0;
}

/* Name new places, a batch at a time. Return the number of places tried. */
static uint32_t name_new(struct place_names *n, bool now)
{
	uint32_t nr = MIN(nr_unseen(n), PLACES_A_PASS);
	struct place_names_waiting w = { .since_ns = nr ? time_now_ns() : 0 };

	for (uint32_t i = 0; i < nr; i++)
		prepare(n, n->next_place + i);
	naming_ready(n->naming);
	for (uint32_t i = 0; i < nr && !is_stopping(n); i++) {
		w.place = n->next_place++;
		if (!name_place(n, &w, now))
			keep_waiting(n, &w);
	}
	return nr;
}

/* Name @place again, which has a name. */
static void rename_place(struct place_names *n, uint32_t id, const struct place *place)
{
	struct naming_question q = { .object = place->object,
				     .offset = place->offset,
				     .now = true };
	uint32_t before = place_names_symbol_of(place);
	const struct symbol *old = symtab_at(n->symtab, before);
	struct naming_answer a;

	if (!old || naming_find(n->naming, &q, &a) || !a.by_name || a.symbol == before)
		return;
	places_name(n->places, id, a.symbol);
	add_jit_line(n, id, place);
	if (!old->made_up)
		return;
	lines_add(n->lines, id);
	if (id >= n->next_place)
		return; /* moved here with its name, and not counted yet */
	atomic_fetch_sub_explicit(&n->nr_unnamed, 1, memory_order_relaxed);
	count_name(n, true);
}

void place_names_note(struct place_names *n, uint32_t object)
{
	if (object == OBJECT_ID_UNKNOWN ||
	    !array_reserve_zeroed(&n->changed, &n->max_changed, object + 1ULL))
		return;
	n->changed[object] = 1;
	n->has_changed = true;
}

void place_names_rename(struct place_names *n)
{
	uint32_t nr_places = n->has_changed ? places_nr(n->places) : 0;

	for (uint32_t id = 0; id < nr_places && !is_stopping(n); id++) {
		const struct place *place = places_at(n->places, id);

		if (place && place->object < n->max_changed && n->changed[place->object])
			rename_place(n, id, place);
	}
	if (n->has_changed)
		memset(n->changed, 0, n->max_changed);
	n->has_changed = false;
}

void place_names_rename_kernel(struct place_names *n)
{
	bool modules = naming_kernel_take_news(&n->naming->kernel);
	uint32_t nr_places = places_nr(n->places);
	uint64_t start, end;

	if (!ksyms_take_news(n->naming->kernel.ksyms, &start, &end) && !modules)
		return;
	if (modules) {
		start = 0;
		end = UINT64_MAX;
	}
	for (uint32_t id = 0; id < nr_places && !is_stopping(n); id++) {
		const struct place *place = places_at(n->places, id);

		if (place && place->object == OBJECT_ID_KERNEL && place->offset >= start &&
		    place->offset < end)
			rename_place(n, id, place);
	}
}

void place_names_fetched(struct place_names *n, uint32_t object)
{
	uint32_t nr_places = places_nr(n->places), nr;

	lines_again(n->lines, object);
	for (uint32_t id = 0; id < nr_places && !is_stopping(n); id++) {
		const struct place *place = places_at(n->places, id);
		const struct symbol *s =
			place && place->object == object
				? symtab_at(n->symtab, place_names_symbol_of(place))
				: NULL;

		/* The others get it when they are named. */
		if (s && !s->made_up && !inlines_at(n->chains, id, &nr))
			lines_add(n->lines, id);
	}
}

bool place_names_pass(struct place_names *n, bool more, bool now)
{
	uint64_t now_ns = time_now_ns();
	uint32_t nr = nr_unseen(n);

	n->held = !now && nr && nr < PASS_PLACES && now_ns - n->named_ns < PASS_NS;
	if (!n->held) {
		n->named_ns = now_ns;
		/* Not only after the last image: the first rows need names soon. */
		more |= name_waiting(n, now);
		more |= name_new(n, now) > 0;
	}
	if (is_stopping(n))
		return false;
	if (!more)
		more = lines_work(n->lines, now);
	return more;
}

static void mark(uint64_t *live, uint32_t nr, uint32_t symbol)
{
	if (symbol < nr)
		live[symbol / 64] |= 1ULL << symbol % 64;
}

/* Drop the functions that no place has. Without memory they are kept. */
static void drop_functions(struct place_names *n)
{
	uint32_t nr = symtab_nr(n->symtab), nr_places = places_nr(n->places), nr_frames = 0;
	uint64_t *live = calloc(nr / 64 + 1, sizeof(*live));

	for (uint32_t id = 0; live && id < nr_places; id++) {
		const struct place *place = places_at(n->places, id);
		const struct symbol_frame *frames = inlines_at(n->chains, id, &nr_frames);

		if (place)
			mark(live, nr, place_names_symbol_of(place));
		for (uint32_t i = 0; frames && i < nr_frames; i++)
			mark(live, nr, frames[i].symbol);
	}
	if (live)
		(void)symtab_keep(n->symtab, live);
	free(live);
}

void place_names_move(struct place_names *n, struct places_move *m)
{
	places_move_late(m);
	lines_move(n->lines, m->to, m->to_chains, m->ids, m->nr_ids);
	n->places = m->to;
	n->chains = m->to_chains;
	n->nr_waiting = n->next_waiting = n->next_place = 0;
	drop_functions(n);
	atomic_store_explicit(&n->nr_named, 0, memory_order_relaxed);
	atomic_store_explicit(&n->nr_unnamed, 0, memory_order_relaxed);
}

uint32_t place_names_left(const struct place_names *n)
{
	return nr_unseen(n) + n->nr_waiting;
}

void place_names_fini(struct place_names *n)
{
	free(n->waiting);
	free(n->changed);
}

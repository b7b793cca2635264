// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Passes over the sampled places: name new ones, try again the ones that wait for an image, rename.
 *
 * Runs on: the loader, or the caller of loader_run().
 */
#include "symbols/place_names.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/base/array.h"
#include "symbols/lang/pylines.h"
#include "symbols/lang/rubylines.h"

#define PLACES_A_PASS 4096U
/* Names are made together: a pass over a few new places waits so long after the one before. */
#define PASS_PLACES 256U
#define PASS_NS	    4000000ULL

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
		hotspots_want_chain(&n->naming->jit.hotspots, object, place->offset, id);
	if (object && object->identity.kind == OBJECT_ANON &&
	    jitdumps_line(&n->naming->jit.jitdumps, object, place->offset, &file, &line))
		lines_told(n->lines, id, file, line);
}

/* The source of code of an interpreter. */
static void add_script_line(struct place_names *n, uint32_t id, const struct place *place)
{
	const struct code_text *t = codes_at(n->codes, lang_place_code(place->offset));
	uint32_t instr = lang_place_instr(place->offset), line = 0;
	char file[CODES_TEXT_MAX + 1];

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
static uint32_t symbol_of(const struct place *place)
{
	/* Pairs with nothing: only this thread writes it. */
	return atomic_load_explicit(&place->symbol, memory_order_relaxed);
}

/* A place that was moved has its name; look up what is not known. */
static void take_moved(struct place_names *n, uint32_t id, const struct place *place)
{
	const struct symbol *symbol = symtab_at(n->symtab, symbol_of(place));
	uint32_t nr;

	count_name(n, symbol && !symbol->made_up);
	if (!chains_at(n->chains, id, &nr) && place->object != n->script)
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
	if (symbol_of(place) != SYMBOL_NONE) {
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

	if (!place || symbol_of(place) != SYMBOL_NONE)
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
	uint32_t before = symbol_of(place);
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
		const struct symbol *s = place && place->object == object
						 ? symtab_at(n->symtab, symbol_of(place))
						 : NULL;

		/* The others get it when they are named. */
		if (s && !s->made_up && !chains_at(n->chains, id, &nr))
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
		const struct symbol_frame *frames = chains_at(n->chains, id, &nr_frames);

		if (place)
			mark(live, nr, symbol_of(place));
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

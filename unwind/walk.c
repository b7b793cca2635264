// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loop over the frames of one stack, until there is a reason to stop.
 *
 * Runs on the sampler thread that owns the unwinder. Invariant: there are at most
 * UNWIND_FRAMES_MAX frames, so a walk ends.
 */
#include "unwind/walk.h"

#include <linux/perf_event.h>

#include "unwind/caller.h"

/* Look up the current pc. False: not in code. */
static bool find_place(struct walk *w)
{
	const struct mapping *m = space_find(w->in->space, w->pc, w->in->time_ns);
	bool code = m && m->exec;

	w->mapping = m;
	/* All addresses outside the mappings are one place: junk must not fill the table. */
	w->offset = m ? m->offset + (w->pc - m->start) : 0;
	if (code || !w->out->nr)
		w->place = places_intern(w->u->places, m ? m->object->id : OBJECT_ID_UNKNOWN,
					 w->offset);
	return code;
}

/* Find the place of the current pc and add it to the result. */
static int enter_frame(struct walk *w)
{
	struct unwind_result *out = w->out;
	const struct recent_entry *r;

	w->pc = w->f.reg[w->u->arch->pc] - !w->exact;
	r = caller_recent(w, w->pc);
	if (r) {
		w->mapping = r->mapping;
		w->offset = r->mapping->offset + (w->pc - r->mapping->start);
		w->place = r->place;
	} else if (find_place(w)) {
		if (w->place != PLACE_NONE && !space_has_ended(w->in->space, w->mapping))
			*recent_slot(&w->u->recent, w->serial, w->pc) =
				(struct recent_entry){ w->pc, w->serial, w->mapping, w->place };
	} else {
		out->maps_stale = true;
		if (out->nr)
			return UNWIND_NO_MAP;
	}
	caller_add_frame(w, w->pc, arch_has(&w->f, w->u->arch->sp) ? w->f.reg[w->u->arch->sp] : 0,
			 w->place, w->mapping);
	if (w->guessed && !out->nr_guessed)
		out->guessed_by = MAX(out->nr, 2u) - 2;
	out->nr_guessed += w->guessed;
	if (out->maps_stale)
		return UNWIND_NO_MAP;
	return out->nr == UNWIND_FRAMES_MAX ? UNWIND_DEPTH : WALK_ON;
}

int walk_stack(struct unwinder *u, const struct unwind_input *in, struct unwind_result *out,
	       bool rows)
{
	struct walk w;
	int stop = WALK_ON;

	memset(&w, 0, offsetof(struct walk, f));
	w.u = u;
	w.in = in;
	w.out = out;
	w.clock = object_clock(in->time_ns);
	out->nr = out->nr_guessed = 0;
	out->nr_v8 = out->nr_v8_guessed = 0;
	out->nr_java = 0;
	out->new_code = out->unread_code = false;
	arch_load(&u->order, &w.f, in->regs_mask, in->regs);
	if (!arch_has(&w.f, u->arch->pc) || !arch_has(&w.f, u->arch->sp))
		return UNWIND_BAD_REGS;
	w.serial = space_serial(in->space);
	w.word = in->regs_abi == PERF_SAMPLE_REGS_ABI_32 ? 4 : 8;
	w.rows = rows && w.word == 8;
	w.copy = (struct stack_copy){ w.f.reg[u->arch->sp], in->stack, in->stack_size,
				      in->stack_full };
	w.exact = !caller_in_sigreturn(&w);
	while (stop == WALK_ON) {
		stop = enter_frame(&w);
		if (stop == WALK_ON)
			stop = caller_find(&w);
		if (stop == WALK_AGAIN) /* the place has a row now */
			stop = caller_find(&w);
	}
	assert(stop < UNWIND_NR_STOPS || (stop == WALK_REDO && w.rows));
	space_read(in->space);
	if (out != &u->scratch) {
		unwinder_count(&u->count.row_hits, w.row_hits);
		unwinder_count(&u->count.steps, w.steps);
	}
	return stop;
}

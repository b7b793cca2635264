// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks of a profile: the frames of their places, without the frames that are not shown.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/assemble.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/profile/assemble_work.h"

/* Frames that a stack does not show. */
struct left_out {
	bool script, interpreter; /* as in spot */
};

/* Return the places of stack @id; none for newer ids. */
static const uint32_t *places_of(const struct assemble_work *w, uint64_t id, uint32_t *nr)
{
	return stacks_at(w->in->stacks, id < w->stacks.nr ? (uint32_t)id : STACK_NONE, nr);
}

/*
 * Find the frames that a stack does not show. Frames of an interpreter are left out of stacks with
 * frames of its language only: its work for a function counts for the function.
 */
static struct left_out find_left_out(const struct assemble_work *w, const uint32_t *places,
				     uint32_t nr)
{
	if (w->in->shown_frames != FRAMES_LANGUAGE)
		return (struct left_out){ .script = w->in->shown_frames == FRAMES_NATIVE };
	for (uint32_t i = 0; i < nr && w->has_scripts; i++)
		if (assemble_spot_at(w, places[i])->script)
			return (struct left_out){ .interpreter = true };
	return (struct left_out){ false, false };
}

static bool is_left_out(struct left_out out, const struct assemble_spot *spot)
{
	return (out.script && spot->script) || (out.interpreter && spot->interpreter);
}

/* The places of a stack as they are shown. */
struct shown {
	enum wait_kind wait; /* WAIT_NO: not of a wait */
	enum profile_idle idle;
	uint32_t lead; /* of a wait: the place of its kind, which is innermost */
	const uint32_t *places;
	uint32_t nr;
};

/* Return the kind of the wait that these functions show. */
static enum wait_kind look_at(const struct assemble_work *w, const uint32_t *places, uint32_t nr)
{
	struct wait_look look = { .kind = WAIT_NO };

	for (uint32_t i = 0; i < nr; i++)
		wait_look_at(&look, assemble_spot_at(w, places[i])->hint,
			     assemble_spot_at(w, places[i])->kernel);
	return look.kind ? look.kind : WAIT_OTHER;
}

/* Is it the stack of a kernel thread? Its outermost function is that of all of them. */
static bool is_kthread(const struct assemble_work *w, const uint32_t *places, uint32_t nr)
{
	for (uint32_t i = nr; i-- > 0 && assemble_spot_at(w, places[i])->kernel;)
		if (assemble_spot_at(w, places[i])->hint.kthread)
			return true;
	return false;
}

static enum profile_idle idle_of(enum wait_kind wait, bool is_long)
{
	if (wait == WAIT_KTHREAD)
		return PROFILE_IDLE_KTHREAD;
	return is_long && (wait == WAIT_POLL || wait == WAIT_CONDITION) ? PROFILE_IDLE
									: PROFILE_BUSY;
}

/* The frames of the scheduler are in each wait, and left out. */
static struct shown shown_of(const struct assemble_work *w, const uint32_t *places, uint32_t nr)
{
	struct shown s = { .places = places, .nr = nr };
	bool is_long;

	if (!nr || !w->in->wait_places || !assemble_spot_at(w, places[0])->wait)
		return s;
	is_long = assemble_spot_at(w, places[0])->long_wait;
	/* Its kind, if that is known without a stack. */
	if (is_long && nr > 1 && assemble_spot_at(w, places[1])->wait) {
		s.places++;
		s.nr--;
	}
	s.wait = (enum wait_kind)assemble_spot_at(w, *s.places)->wait;
	for (s.places++, s.nr--; s.nr && assemble_spot_at(w, *s.places)->hint.scheduler; s.nr--)
		s.places++;
	if (s.wait == WAIT_OTHER)
		s.wait = look_at(w, s.places, s.nr);
	/* Kernel threads wait for work in functions that have no meaning here. */
	if (s.wait == WAIT_OTHER && is_kthread(w, s.places, s.nr))
		s.wait = WAIT_KTHREAD;
	s.idle = idle_of(s.wait, is_long);
	s.lead = w->in->wait_places[s.wait];
	return s;
}

/* How many frames a stack has to show. */
static uint32_t stack_frames(const struct assemble_work *w, const struct shown *s)
{
	struct left_out out = find_left_out(w, s->places, s->nr);
	uint32_t frames = s->wait ? assemble_spot_at(w, s->lead)->nr : 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct assemble_spot *spot = assemble_spot_at(w, s->places[i]);

		frames += is_left_out(out, spot) ? 0 : spot->nr;
	}
	return frames;
}

/* Set one of @nr bytes, which are allocated for the first that is not zero. */
static int mark(uint8_t **bytes, uint32_t nr, ptrdiff_t at, uint8_t value)
{
	if (!value)
		return 0;
	if (!*bytes)
		*bytes = calloc(nr, 1);
	if (!*bytes)
		return -ENOMEM;
	(*bytes)[at] = value;
	return 0;
}

/* Get the frames of all places of a stack, and set its number of frames. */
static int lay_out_stack(struct assemble_work *w, struct profile_stack *stack,
			 const uint32_t *places, uint32_t nr)
{
	struct shown s;

	for (uint32_t i = 0; i < nr; i++)
		if (!assemble_spot_at(w, places[i])->first &&
		    assemble_spot(w, assemble_spot_at(w, places[i]), places[i]))
			return -ENOMEM;
	s = shown_of(w, places, nr);
	if (s.wait && !assemble_spot_at(w, s.lead)->first &&
	    assemble_spot(w, assemble_spot_at(w, s.lead), s.lead))
		return -ENOMEM;
	if (mark(&w->p->stack_waits, w->p->nr_stacks, stack - w->p->stacks, (uint8_t)s.wait) ||
	    mark(&w->p->stack_idle, w->p->nr_stacks, stack - w->p->stacks, s.idle))
		return -ENOMEM;
	stack->nr = stack_frames(w, &s);
	return 0;
}

/* Set the first frame of each stack, and the number of all frames. */
static int lay_out_stacks(struct assemble_work *w, uint64_t *nr_frames)
{
	*nr_frames = 0;
	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		struct profile_stack *stack;
		const uint32_t *places;
		uint32_t nr;

		if (!w->stacks.of[id])
			continue;
		stack = &w->p->stacks[w->stacks.of[id] - 1];
		stack->first = (uint32_t)*nr_frames;
		places = places_of(w, id, &nr);
		if (places && lay_out_stack(w, stack, places, nr))
			return -ENOMEM;
		*nr_frames += stack->nr;
	}
	return *nr_frames > UINT32_MAX ? -ENOMEM : 0;
}

/* Write the frames of one place; return the position after them. */
static uint32_t put_spot(const struct assemble_work *w, uint32_t at,
			 const struct assemble_spot *spot)
{
	for (uint32_t k = 0; k < spot->nr; k++, at++) {
		w->p->frames[at] = w->frames[spot->first - 1 + k].function;
		if (w->p->frame_lines)
			w->p->frame_lines[at] = w->frames[spot->first - 1 + k].line;
	}
	return at;
}

/* Write the frames of the @nr @places of a stack, from frame @at on. */
static void put_stack(const struct assemble_work *w, uint32_t at, const uint32_t *places,
		      uint32_t nr)
{
	const struct shown s = shown_of(w, places, nr);
	struct left_out out = find_left_out(w, s.places, s.nr);

	if (s.wait)
		at = put_spot(w, at, assemble_spot_at(w, s.lead));
	for (uint32_t i = 0; i < s.nr; i++)
		if (!is_left_out(out, assemble_spot_at(w, s.places[i])))
			at = put_spot(w, at, assemble_spot_at(w, s.places[i]));
}

int assemble_stacks(struct assemble_work *w)
{
	struct profile *p = w->p;
	uint64_t nr_frames;

	p->stacks = calloc(MAX(p->nr_stacks, 1u), sizeof(*p->stacks));
	if (!p->stacks || lay_out_stacks(w, &nr_frames))
		return -ENOMEM;
	p->frames = malloc(MAX(nr_frames, 1ULL) * sizeof(*p->frames));
	if (p->nr_lines)
		p->frame_lines = malloc(MAX(nr_frames, 1ULL) * sizeof(*p->frame_lines));
	if (!p->frames || (p->nr_lines && !p->frame_lines))
		return -ENOMEM;
	for (uint64_t id = 0; id <= w->stacks.nr; id++) {
		const struct profile_stack *stack;
		const uint32_t *places;
		uint32_t nr;

		if (!w->stacks.of[id])
			continue;
		stack = &p->stacks[w->stacks.of[id] - 1];
		places = places_of(w, id, &nr);
		/* A stack completed after the frames were counted has none. */
		if (places && stack->nr)
			put_stack(w, stack->first, places, nr);
	}
	p->nr_frames = (uint32_t)nr_frames;
	return 0;
}

uint32_t assemble_function_of(void *ctx, uint32_t place)
{
	struct assemble_work *w = ctx;
	struct assemble_spot *spot = assemble_spot_at(w, place);

	if (!spot->first && assemble_spot(w, spot, place))
		return UINT32_MAX;
	return w->frames[spot->first - 1 + spot->nr - 1].function;
}

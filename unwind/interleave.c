// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Align groups of language frames with C frames of the interpreter's loop.
 *
 * Runs on: sampler threads. Invariant: the output has the frames of either side
 * in order, each at most once.
 */
#include "unwind/unwind.h"

#include <assert.h>

#include "symbols/script/script.h"

/*
 * The loop stores its frames within the first bytes of its code (108 in Debian's
 * 3.11): in this range the frames may be of another call.
 */
#define PROLOGUE 256U

/* C frames between the loop and code that a compiler made for the language. */
#define STUBS_MAX 1U

/* Groups of a forged stack may be in none of many C frames. */
#define STEPS_MAX 16384U

struct interleave {
	const struct unwind_result *native;
	const struct lang_slot *slot;
	struct interleave_result *out;
	uint32_t nr; /* frames of the language */
	uint32_t nr_evals, nr_groups;
	uint32_t nr_here; /* groups on the sampled C stack; others: of resumers */
	bool entering;	  /* the innermost C frame of the loop has only begun */
	bool exact;	  /* no frame was left out on either side */
	bool compiled;	  /* the sample is in code that a compiler made for the language */
	bool begun;	  /* the first group has no C frame yet */
	uint32_t end;	  /* native frames from this one on are of other stacks of the language */
	uint32_t eval[LANG_FRAMES_MAX];	 /* indices of native frames */
	uint32_t begin[LANG_FRAMES_MAX]; /* of each group; its end is the next one's begin */
	uint32_t group[LANG_FRAMES_MAX]; /* of each eval; UINT32_MAX: none */
};

static bool is_entering(const struct lang_process *p, const struct unwind_result *native)
{
	return native->ip[0] - p->eval[0].start < PROLOGUE;
}

/* Return whether a boundary is an address in the C frame. */
static bool is_address(uint64_t boundary)
{
	return boundary > LANG_LOOPS_MAX;
}

/* Begin @nr groups with frame @frame; all but the last one have no frames. */
static void begin_groups(struct interleave *m, uint32_t frame, uint64_t nr)
{
	for (; nr && m->nr_groups < LANG_FRAMES_MAX; nr--) {
		m->nr_here += !m->slot->nr_here || frame < m->slot->nr_here;
		m->begin[m->nr_groups++] = frame;
	}
}

static void find_groups(struct interleave *m)
{
	uint64_t begins = m->slot->loops.nr + 1U;

	for (uint32_t i = 0; i < m->nr; i++) {
		begin_groups(m, i, begins);
		begins = m->slot->frames[i].boundary;
		begins = is_address(begins) ? 1 : begins;
	}
}

/*
 * Return whether the last group is a main program that does not run: C code that embeds Perl calls
 * subs without perl_run(). The chain of Perl has its frame at the end in any case. Alone it may be
 * code that perl_eval_pv() runs. Where the native stack does not say it, the program does.
 */
static bool is_main_idle(const struct interleave *m, const struct lang_process *p)
{
	const struct unwind_result *native = m->native;
	uint32_t nr = m->nr_groups < 2 ? LANG_MAIN_MAX : LANG_MAIN_EVAL;

	if (!p->nr_main || m->begin[m->nr_groups - 1] != m->nr - 1 ||
	    (m->slot->deep && !m->slot->rooted))
		return false;
	for (uint32_t i = 0; i < native->nr; i++)
		if (lang_is_main(p, nr, native->ip[i]))
			return false;
	return !p->program || (native->stop == UNWIND_COMPLETE && !native->nr_guessed);
}

static uint32_t group_end(const struct interleave *m, uint32_t group)
{
	assert(group < m->nr_groups);
	return group + 1 < m->nr_groups ? m->begin[group + 1] : m->nr;
}

static uint64_t boundary_of(const struct interleave *m, uint32_t group)
{
	uint32_t end = group_end(m, group);

	return end > m->begin[group] ? m->slot->frames[end - 1].boundary : 1;
}

/* Return whether the end of @group is in native frame @frame, by known addresses. */
static bool is_inside(const struct interleave *m, uint32_t group, uint32_t frame)
{
	const struct unwind_result *native = m->native;
	uint64_t low = native->sp[frame], at = boundary_of(m, group);

	assert(frame < native->nr);
	return low && is_address(at) && at >= low && frame + 1 < native->nr &&
	       at < native->sp[frame + 1];
}

/*
 * Return whether native frame @frame, of the loop, goes on with the frames of the next one: its
 * caller has the jump buffer of an eval {}. Others are of the main program.
 */
static bool is_inner(const struct interleave *m, const struct lang_process *p, uint32_t frame)
{
	const struct unwind_result *native = m->native;
	bool inner = false;

	if (frame + 2 >= native->nr || !native->sp[frame + 1])
		return false;
	for (uint32_t i = 0; i < LANG_INNER_MAX && m->slot->loops.inner[i]; i++)
		inner |= m->slot->loops.inner[i] >= native->sp[frame + 1] &&
			 m->slot->loops.inner[i] < native->sp[frame + 2];
	return inner && !lang_is_main(p, LANG_MAIN_MAX, native->ip[frame + 1]);
}

/* Find the C frames of the loop. Any function of R's may run a call: it says which ones do.
 */
static void find_evals(struct interleave *m, const struct lang_process *p)
{
	uint32_t group = 0;

	m->nr_evals = 0;
	for (uint32_t i = 0; i < m->native->nr && m->nr_evals < LANG_FRAMES_MAX; i++) {
		bool is_eval = lang_is_eval(p, m->native->ip[i]);

		if (p->kind == LANG_R) {
			while (group < m->nr_groups && boundary_of(m, group) < m->native->sp[i])
				group++;
			is_eval = group < m->nr_groups && is_inside(m, group, i);
			group += is_eval;
		}
		if (p->kind == LANG_PERL && is_eval)
			is_eval = !is_inner(m, p, i);
		if (is_eval)
			m->eval[m->nr_evals++] = i;
	}
}

/* Test if the end of @group is in C frame number @eval; *known: false if that cannot be decided. */
static bool lies_in(const struct interleave *m, uint32_t group, uint32_t eval, bool *known)
{
	uint64_t at = boundary_of(m, group);
	uint32_t i = m->eval[eval];
	uint64_t low = m->native->sp[i], high = i + 1 < m->native->nr ? m->native->sp[i + 1] : 0;

	*known = is_address(at) && low && high > low;
	return !*known || (at >= low && at < high);
}

/* Align by the address of each group; groups outside all C frames are left out. */
static bool align_by_place(struct interleave *m)
{
	uint32_t group = 0, left = STEPS_MAX;
	bool any = false, known;

	for (uint32_t e = 0; e < m->nr_evals; e++) {
		m->group[e] = UINT32_MAX;
		for (uint32_t g = group; g < m->nr_groups && left; g++, left--) {
			if (!lies_in(m, g, e, &known) || !known)
				continue;
			m->group[e] = g;
			group = g + 1;
			any = true;
			break;
		}
	}
	return any;
}

/* Align by number: from the root if both have it, else from the innermost. */
static void align_by_number(struct interleave *m, bool whole)
{
	uint32_t skip_groups = whole && m->nr_groups > m->nr_evals ? m->nr_groups - m->nr_evals : 0;
	uint32_t skip_evals = whole && m->nr_evals > m->nr_groups ? m->nr_evals - m->nr_groups : 0;

	for (uint32_t e = 0; e < m->nr_evals; e++) {
		uint32_t g = e - skip_evals + skip_groups;

		m->group[e] = e >= skip_evals && g < m->nr_groups ? g : UINT32_MAX;
	}
}

/* Put a group into each C frame but the innermost @skip ones. False: one is not in its frame. */
static bool align_from(struct interleave *m, uint32_t skip)
{
	bool known;

	for (uint32_t e = 0; e < m->nr_evals; e++) {
		m->group[e] = e >= skip && e - skip < m->nr_here ? e - skip : UINT32_MAX;
		if (m->group[e] != UINT32_MAX && !lies_in(m, m->group[e], e, &known))
			return false;
	}
	return true;
}

/*
 * Return whether the first group alone has no C frame: its code does not run at present, or is
 * about to.
 */
static bool lacks_loop(const struct interleave *m)
{
	return m->slot->loops.lack && m->native->stop == UNWIND_COMPLETE && !m->native->fiber &&
	       !m->slot->deep && m->nr_evals && m->nr_evals + 1 == m->nr_groups &&
	       m->nr_here == m->nr_groups;
}

/* Return whether the innermost C frame runs no frame yet: its caller's operation is about to. */
static bool is_starting(const struct interleave *m)
{
	const struct unwind_result *native = m->native;
	uint32_t caller = m->eval[0] + 1;

	return m->slot->loops.call && caller + 1 < native->nr && native->sp[caller] &&
	       m->slot->loops.call >= native->sp[caller] &&
	       m->slot->loops.call < native->sp[caller + 1];
}

/*
 * One group for each C frame, in it as far as that is known. An innermost C frame that is about to
 * make its first frame, or has just removed it, has none. Of a deep stack the outermost C frames
 * have no groups.
 */
static bool align_exactly(struct interleave *m, const struct lang_process *p)
{
	bool skip = m->nr_evals > m->nr_here &&
		    ((!m->eval[0] && !is_inside(m, 0, 0)) || is_starting(m));
	bool begun = skip && m->entering && !m->slot->settled;

	if (lacks_loop(m)) {
		m->begun = m->slot->loops.lack == LANG_LACK_BEGUN;
		for (uint32_t e = 0; e < m->nr_evals; e++)
			m->group[e] = e + 1;
		return true;
	}
	if (m->slot->deep)
		return m->nr_evals >= m->nr_here &&
		       (align_from(m, begun) || (skip && align_from(m, !begun)));
	/* Before 3.11 Python has no addresses: then a greenlet's looks the same. */
	if (skip && p->kind == LANG_PYTHON && !is_address(boundary_of(m, 0)))
		return false;
	return m->nr_evals == m->nr_here + skip && align_from(m, skip);
}

/*
 * The same if the copy of the stack ends before the native stack does, or code without tables ends
 * it, as a compiler's for the language: the addresses of the groups say that the rest is beyond it.
 */
static bool align_beginning(struct interleave *m)
{
	const struct unwind_result *native = m->native;
	bool known;

	if ((native->stop != UNWIND_TRUNCATED && native->stop != UNWIND_NO_CFI) || !m->nr_evals ||
	    m->nr_evals > m->nr_here)
		return false;
	for (uint32_t e = 0; e < m->nr_evals; e++) {
		m->group[e] = e;
		if (boundary_of(m, e) < native->sp[m->eval[e]] || !lies_in(m, e, e, &known))
			return false;
	}
	return m->nr_evals == m->nr_here ||
	       boundary_of(m, m->nr_evals) >= native->sp[native->nr - 1];
}

/*
 * The same if outer C frames of the loop have no group: a greenlet runs on the stack of the thread,
 * below frames of ones that wait, which its chain ends before. Each group is in place by its
 * address, and no native frame up to there is a guess.
 */
static bool align_greenlet(struct interleave *m, const struct lang_process *p)
{
	const struct unwind_result *native = m->native;
	uint32_t skip, end;

	if (p->kind != LANG_PYTHON || m->slot->deep || m->nr_here < m->nr_groups ||
	    m->nr_evals <= m->nr_groups)
		return false;
	/* An innermost C frame that runs no frame yet has no group. */
	skip = !m->eval[0] && !is_inside(m, 0, 0);
	if (m->nr_evals <= m->nr_groups + skip || !align_from(m, skip))
		return false;
	for (uint32_t g = 0; g < m->nr_groups; g++)
		if (!is_inside(m, g, m->eval[g + skip]))
			return false;
	end = m->eval[m->nr_groups + skip];
	if (native->nr_guessed && native->guessed_by + 1 < end)
		return false;
	m->nr_evals = m->nr_groups + skip;
	m->end = end;
	return true;
}

/*
 * The same if guesses have left C frames of the loop out: code that a compiler made for the
 * language, which the loop calls, may keep its frame pointer, and the loop's caller is taken for
 * the caller of that code. Then the end of the group is between the two.
 */
static bool align_hidden(struct interleave *m, const struct lang_process *p, bool *beginning)
{
	const struct unwind_result *native = m->native;
	uint32_t group = 0;

	if (!native->nr_guessed || m->slot->deep || m->nr_here < m->nr_groups)
		return false;
	m->nr_evals = 0;
	for (uint32_t i = 0; i < native->nr; i++) {
		bool inside = group < m->nr_groups && is_inside(m, group, i);

		if (!inside && lang_is_eval(p, native->ip[i]))
			return false;
		if (!inside)
			continue;
		m->eval[m->nr_evals] = i;
		m->group[m->nr_evals++] = group++;
	}
	*beginning = group < m->nr_groups;
	return group && (!*beginning || (native->stop == UNWIND_NO_CFI &&
					 boundary_of(m, group) >= native->sp[native->nr - 1]));
}

static void put(struct interleave *m, uint32_t frame, uint64_t place)
{
	if (m->out->nr == INTERLEAVE_FRAMES_MAX) {
		m->exact = false;
		return;
	}
	m->out->place[m->out->nr] = place;
	m->out->frame[m->out->nr++] = frame;
}

static void put_group(struct interleave *m, uint32_t group)
{
	assert(group < m->nr_groups);
	for (uint32_t i = m->begin[group]; i < group_end(m, group); i++)
		put(m, INTERLEAVE_LANG | i,
		    i || !m->compiled ? lang_place(&m->slot->frames[i])
				      : lang_place_at(m->slot->frames[i].code, LANG_NO_INSTR));
}

/*
 * Write both in order. @cut: the native stack ends early, the rest of the language goes last.
 * Native frames beyond a deep stack are left out: some are missing in front of them.
 */
static void put_all(struct interleave *m, bool cut)
{
	bool deep = m->slot->deep && m->nr_here == m->nr_groups &&
		    (m->nr_evals >= m->nr_groups || m->native->stop == UNWIND_COMPLETE);
	uint32_t e = 0, next = 0, last = 0;

	/* C frames up to the last one with a group. */
	for (uint32_t i = 0; deep && i < m->nr_evals; i++)
		if (m->group[i] != UINT32_MAX)
			last = i + 1;
	cut |= deep || m->nr_here < m->nr_groups;
	if (m->begun)
		put_group(m, 0);
	for (uint32_t i = 0; i < m->end; i++) {
		put(m, i, 0);
		if (e == m->nr_evals || m->eval[e] != i)
			continue;
		if (m->group[e] != UINT32_MAX) {
			put_group(m, m->group[e]);
			next = m->group[e] + 1;
		}
		if (++e == last)
			break;
	}
	for (; cut && next && next < m->nr_groups; next++)
		put_group(m, next);
}

/*
 * Return whether the stack is the sample's beyond the innermost C frame of the loop. That of R's
 * compiled code has 9 KiB: up to the address in it.
 */
static bool is_same(const struct interleave *m, const struct lang_process *p)
{
	uint32_t i = m->nr_evals ? m->eval[0] : 0;

	if (p->kind == LANG_R)
		return m->nr_evals && m->group[0] != UINT32_MAX &&
		       m->slot->same > boundary_of(m, m->group[0]);
	return m->nr_evals && i + 1 < m->native->nr && m->native->sp[i + 1] &&
	       m->slot->same >= m->native->sp[i + 1];
}

/*
 * Return whether each group is known to be in its C frame, by an address.
 * Then guesses about other native frames, as of a compiler's code, say nothing about groups.
 */
static bool is_in_place(const struct interleave *m)
{
	bool known = m->exact;

	for (uint32_t e = 0; known && e < m->nr_evals; e++)
		if (m->group[e] == UINT32_MAX || !lies_in(m, m->group[e], e, &known))
			return false;
	return known;
}

/*
 * Return whether the native stack ends where a greenlet's does: the words beyond are of others. It
 * has each group in its C frame then.
 */
static bool ends_with_greenlet(const struct interleave *m, const struct lang_process *p)
{
	enum unwind_stop stop = m->native->stop;

	return p->kind == LANG_PYTHON && is_in_place(m) &&
	       (stop == UNWIND_NO_MAP || stop == UNWIND_BAD_FRAME || stop == UNWIND_NO_CALL);
}

/*
 * Check that the native stack has all C frames of the loop, or all up to its end. A fiber's ends at
 * its first function. The stack of a thread of Ruby has that of its VM in the middle, mostly
 * without pages, and ends there for the kernel.
 */
static bool is_whole(const struct interleave *m, const struct lang_process *p, bool beginning)
{
	enum unwind_stop stop = m->native->stop;

	if (m->end < m->native->nr)
		return true;
	if (m->slot->deep ||
	    (m->native->nr_guessed > m->native->nr_loop_guessed && !is_in_place(m)))
		return false;
	return stop == UNWIND_COMPLETE || beginning || m->nr_here < m->nr_groups ||
	       ends_with_greenlet(m, p) ||
	       (m->slot->rooted && (stop == UNWIND_TRUNCATED || stop == UNWIND_GAP));
}

/* Return the doubts that do not depend on the native stack. */
static uint32_t interleave_doubts(const struct lang_process *p, const struct lang_slot *slot)
{
	uint32_t unchecked = slot->late ? INTERLEAVE_LATE : INTERLEAVE_BROKEN;

	return (slot->checked ? 0 : unchecked) |
	       (p->untried && slot->checked < 2 ? INTERLEAVE_UNTRIED : 0);
}

/* Return whether each group is in its C frame. */
static bool is_placed(const struct interleave *m)
{
	uint32_t nr = 0;

	for (uint32_t e = 0; e < m->nr_evals; e++)
		nr += m->group[e] != UINT32_MAX;
	return nr == m->nr_groups;
}

/* Align all groups. False: nothing fits. *@beginning: exact, to the end of the copied stack. */
static bool align(struct interleave *m, const struct lang_process *p, bool *beginning)
{
	m->exact = align_exactly(m, p);
	*beginning = !m->exact && align_beginning(m);
	m->exact |= *beginning;
	m->exact = m->exact || align_greenlet(m, p);
	if (m->exact)
		return true;
	m->exact = align_hidden(m, p, beginning);
	if (m->exact)
		return true;
	find_evals(m, p);
	if (!m->nr_evals)
		return false;
	if (align_by_place(m)) {
		/* C functions run in C frames of LuaJIT's loop too. */
		m->exact = (p->kind == LANG_LUAJIT || p->kind == LANG_R) && is_placed(m);
		return true;
	}
	if (is_address(boundary_of(m, 0)))
		return false;
	/* A chain that was cut has no root, nor one on a fiber, or of a greenlet: the first loops
	 * are elsewhere. */
	align_by_number(m, m->native->stop == UNWIND_COMPLETE && !m->native->fiber &&
				   !m->slot->deep &&
				   (p->kind != LANG_PYTHON ||
				    m->nr_evals <= m->nr_groups + m->entering));
	return true;
}

/*
 * Return whether the chain is that of the thread: PHP without a table of threads, and Perl, have
 * one for their process.
 */
static bool is_of_thread(const struct interleave *m, const struct lang_process *p)
{
	return (p->kind != LANG_PHP && p->kind != LANG_PERL) || m->slot->tid == m->slot->pid ||
	       (p->kind == LANG_PHP && p->code_type);
}

/*
 * Return whether the native stack ends before it reaches a C frame of the loop: code without unwind
 * tables, as that of a compiler of regular expressions, was called from the language then.
 */
static bool ends_before_loop(const struct interleave *m, const struct lang_process *p)
{
	return !m->nr_evals && m->native->stop != UNWIND_COMPLETE && is_of_thread(m, p);
}

/*
 * Return whether all groups are beyond the @nr native frames, none of which is a guess, and the
 * stack was the sample's as far as the innermost group.
 */
static bool is_beyond(const struct interleave *m, uint32_t nr)
{
	const struct unwind_result *native = m->native;
	uint64_t sp = native->sp[nr - 1], group = boundary_of(m, 0);

	assert(nr && nr <= native->nr);
	return !m->slot->deep && m->nr_here == m->nr_groups && (!m->nr_evals || m->eval[0] >= nr) &&
	       (!native->nr_guessed || native->guessed_by + 1 >= nr) && sp && is_address(group) &&
	       group >= sp && m->slot->same > group;
}

/*
 * Return whether the sample is in code without tables that the loop calls, itself or by a stub: a
 * compiler leaves out to store which instruction is next. Only Python has addresses of groups.
 */
static bool is_compiled(const struct interleave *m)
{
	const struct unwind_result *native = m->native;

	if (native->nr_loop_guessed && !native->guessed_by)
		return true;
	if (!is_address(boundary_of(m, 0)))
		return false;
	if (native->stop == UNWIND_NO_CFI && native->nr == 1)
		return true;
	return native->nr_guessed && !native->guessed_by &&
	       (is_inside(m, 0, 0) || (m->nr_evals && m->eval[0] <= STUBS_MAX + 1));
}

/* Put all groups after the first @nr native frames: a guess where addresses do not say so. */
static void put_after(struct interleave *m, const struct lang_process *p, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		put(m, i, 0);
	for (uint32_t group = 0; group < m->nr_groups; group++)
		put_group(m, group);
	m->out->doubts = (is_beyond(m, nr) ? 0 : INTERLEAVE_CUT) | interleave_doubts(p, m->slot);
	m->out->verdict = m->out->doubts ? INTERLEAVE_GUESSED : INTERLEAVE_CERTAIN;
	/* The native stack ended before that. */
	m->out->deep = false;
}

/*
 * BEAM: its code is on a stack of each process, and its frames are all in the slot, to the root. It
 * replaces the native frames from the one on that is in that code: the sampled one, or that which
 * called C code on the stack of the thread, at the address of the group.
 */
static void put_process(struct interleave *m, const struct lang_process *p)
{
	const struct unwind_result *native = m->native;
	uint64_t at = m->slot->frames[m->nr - 1].boundary;
	bool sampled = at == native->sp[0] + 1, exact;
	uint32_t nr = 0;

	while (!sampled && nr < native->nr && native->sp[nr] != at)
		nr++;
	exact = nr < native->nr && (!native->nr_guessed || native->guessed_by >= nr);
	for (uint32_t i = 0; i < nr; i++)
		put(m, i, 0);
	put_group(m, 0);
	m->out->doubts = (exact || sampled ? 0 : INTERLEAVE_CUT) |
			 (sampled && m->slot->settled && m->slot->late && m->slot->checked
				  ? 0
				  : interleave_doubts(p, m->slot)) |
			 (sampled || m->slot->same >= at ? 0 : INTERLEAVE_CHANGED);
	m->out->verdict = m->out->doubts ? INTERLEAVE_GUESSED : INTERLEAVE_CERTAIN;
	m->out->whole = m->out->verdict == INTERLEAVE_CERTAIN && !m->slot->deep;
}

void interleave_stacks(const struct lang_process *p, const struct unwind_result *native,
		       const struct lang_slot *slot, struct interleave_result *out)
{
	struct interleave m;
	bool beginning;

	m.native = native;
	m.slot = slot;
	m.out = out;
	m.nr_evals = m.nr_groups = m.nr_here = 0;
	m.begun = false;
	m.end = native->nr;
	m.entering = native->nr && p->nr_eval && is_entering(p, native);
	out->nr = out->doubts = 0;
	out->deep = slot->deep;
	out->whole = false;
	out->verdict = INTERLEAVE_NONE;
	if (p->kind == LANG_BEAM && native->nr && slot->nr && slot->nr <= LANG_FRAMES_MAX) {
		m.nr = slot->nr;
		m.compiled = false;
		find_groups(&m);
		put_process(&m, p);
		return;
	}
	if (!p->nr_eval || !native->nr || !slot->nr || slot->nr > LANG_FRAMES_MAX)
		return;
	m.nr = slot->nr;
	find_groups(&m);
	find_evals(&m, p);
	if (is_main_idle(&m, p)) {
		m.nr--;
		m.nr_groups--;
		m.nr_here -= m.nr_here != 0;
		if (!m.nr)
			return;
	}
	m.compiled = is_compiled(&m);
	m.entering |= native->nr_loop_guessed && !native->guessed_by;
	if (!align(&m, p, &beginning)) {
		if (ends_before_loop(&m, p))
			put_after(&m, p, native->nr);
		/* Guessed callers, of code that the interpreter compiled, are others' frames. */
		else if (native->nr_guessed && is_of_thread(&m, p))
			put_after(&m, p, MIN(native->guessed_by + 1, native->nr));
		/* The loop's innermost frame is about to end, or has only begun. */
		else if (native->stop == UNWIND_NO_CFI && is_address(boundary_of(&m, 0)))
			put_after(&m, p, native->nr);
		return;
	}
	put_all(&m, native->stop != UNWIND_COMPLETE || native->fiber);
	out->doubts = (is_whole(&m, p, beginning) ? 0 : INTERLEAVE_CUT) |
		      (m.exact ? 0 : INTERLEAVE_UNALIGNED) |
		      (!m.entering || slot->settled ? 0 : INTERLEAVE_ENTERING) |
		      interleave_doubts(p, slot) | (is_same(&m, p) ? 0 : INTERLEAVE_CHANGED);
	out->verdict = out->doubts ? INTERLEAVE_GUESSED : INTERLEAVE_CERTAIN;
	out->whole = m.end < native->nr && out->verdict == INTERLEAVE_CERTAIN;
}

/*
 * Align frames of JavaScript with native frames by their frame pointers.
 *
 * Runs on: sampler threads. Invariant: the output has the frames of either side
 * in order, each at most once.
 */

struct interleave_v8_merge {
	const struct script_functions *codes;
	const struct unwind_result *native;
	const struct lang_slot *slot;
	struct interleave_result *out;
	uint32_t next;	    /* frame of the slot to be looked at */
	uint64_t innermost; /* frame pointer of the innermost frame of JavaScript; 0: none */
	bool exact;
};

static void put_place(struct interleave_v8_merge *m, uint32_t frame, uint64_t place)
{
	if (m->out->nr == INTERLEAVE_FRAMES_MAX) {
		m->exact = false;
		return;
	}
	m->out->place[m->out->nr] = place;
	m->out->frame[m->out->nr++] = frame;
}

static void interleave_v8_put(struct interleave_v8_merge *m, uint32_t frame)
{
	put_place(m, frame, 0);
}

/* Put frame @frame of the slot at @instr: function @code, the compiled one or one inlined in it. */
static void put_at(struct interleave_v8_merge *m, uint32_t frame, uint32_t code, uint32_t instr)
{
	put_place(m, INTERLEAVE_LANG | frame, lang_place_at(code, instr));
}

/* Find the frame of the slot with this frame pointer; they grow. False: it has none. */
static bool find(struct interleave_v8_merge *m, uint64_t fp, uint32_t *frame)
{
	for (; m->next < m->slot->nr && m->slot->frames[m->next].boundary <= fp; m->next++) {
		if (m->slot->frames[m->next].boundary != fp || !fp)
			continue;
		*frame = m->next++;
		return true;
	}
	return false;
}

static uint32_t line_or_none(uint32_t line)
{
	return line ? line : LANG_NO_INSTR;
}

/* Put frame @frame at byte @at of its compiled code; false: the code has no table. */
static bool put_compiled(struct interleave_v8_merge *m, uint32_t frame,
			 const struct lang_compiled *c, uint32_t at)
{
	const struct code_text *t = m->codes ? script_functions_at(m->codes, c->code) : NULL;
	struct v8_inlined call;
	struct v8_entry e;

	assert(frame < m->slot->nr);
	if (!t || !t->compiled || !v8table_find(t->table, t->table_size, at, &e))
		return false;
	/* Each call is in one of a lower number, so this ends. */
	while (v8table_inlined(t->table, t->table_size, e.inlined, &call)) {
		/* The function that was inlined did not fit into the table of all. */
		if (call.code == CODE_NONE)
			m->exact = false;
		else
			put_at(m, frame, call.code, line_or_none(e.line));
		e.line = call.line;
		e.inlined = call.outer < e.inlined ? call.outer : V8_NOT_INLINED;
	}
	put_at(m, frame, m->slot->frames[frame].code, line_or_none(e.line));
	return true;
}

/*
 * Put a frame of the slot with compiled code at @ip. Code other than its function's own replaced a
 * running loop, or was replaced: then functions may be inlined as well.
 */
static void put_function(struct interleave_v8_merge *m, uint32_t frame, uint64_t ip)
{
	const struct lang_frame *f = &m->slot->frames[frame];

	assert(frame < m->slot->nr);
	for (uint32_t i = 0; i < LANG_COMPILED; i++) {
		const struct lang_compiled *c = &f->compiled[i];

		if (ip - c->start >= c->size)
			continue;
		if (!put_compiled(m, frame, c, (uint32_t)(ip - c->start)))
			put_at(m, frame, f->code, c->inlined ? LANG_INLINED : LANG_NO_INSTR);
		return;
	}
	put_at(m, frame, f->code, LANG_INLINED);
}

/* Return whether the next native frame is at the same frame pointer. JavaScript's is behind that
 * one. */
static bool goes_on(const struct interleave_v8_merge *m, uint32_t v8)
{
	const struct unwind_result *native = m->native;

	assert(v8 < native->nr_v8);
	return v8 + 1 < native->nr_v8 && native->v8[v8 + 1].fp == native->v8[v8].fp &&
	       native->v8[v8 + 1].frame == native->v8[v8].frame + 1;
}

/* Return whether frame @frame's function has its compiled code at @ip. */
static bool has_code_at(const struct interleave_v8_merge *m, uint32_t frame, uint64_t ip)
{
	const struct lang_compiled *c = m->slot->frames[frame].compiled;
	bool has = false;

	assert(frame < m->slot->nr);
	for (uint32_t i = 0; i < LANG_COMPILED; i++)
		has |= ip - c[i].start < c[i].size;
	return has;
}

/*
 * Put the innermost native frame, in compiled code: mostly the function of the frame at the frame
 * pointer. A function about to make its frame, or that has left it, is the first of the slot:
 * certain if it has code there. False: put.
 */
static bool put_innermost(struct interleave_v8_merge *m, const struct unwind_v8 *v8)
{
	const struct lang_slot *slot = m->slot;
	const uint64_t ip = m->native->ip[0];

	if (slot->top == LANG_TOP_BODY || v8->frame || !v8->compiled)
		return true;
	if (!slot->nr || slot->frames[0].boundary) {
		m->exact = false;
		return true;
	}
	m->exact &= slot->top == LANG_TOP_FRAMELESS && has_code_at(m, 0, ip);
	put_function(m, 0, ip);
	return false;
}

/* Put frame @frame, of the function that called the innermost one, which has no frame. */
static void put_caller(struct interleave_v8_merge *m, const struct unwind_v8 *v8, uint32_t frame)
{
	if (v8->on_top && has_code_at(m, frame, v8->on_top - 1)) {
		put_function(m, frame, v8->on_top - 1);
		return;
	}
	m->exact = false;
	put_at(m, frame, m->slot->frames[frame].code, m->slot->frames[frame].instr);
}

/* Put the code of WebAssembly at @ip, of native frame @native. False: there is none. */
static bool put_wasm_at(struct interleave_v8_merge *m, uint64_t ip, uint32_t native,
			const struct lang_compiled **code)
{
	const struct lang_slot *slot = m->slot;

	for (uint32_t i = slot->nr; i && slot->frames[i - 1].boundary == LANG_WASM; i--) {
		const struct lang_frame *f = &slot->frames[i - 1];

		*code = &f->compiled[0];
		if (ip - (*code)->start >= (*code)->size)
			continue;
		/* Its name was not read yet. */
		if (f->code == CODE_NONE)
			interleave_v8_put(m, native);
		else
			put_at(m, i - 1, f->code, LANG_NO_INSTR);
		return true;
	}
	return false;
}

/*
 * Put a native frame that is code of WebAssembly, and its caller if the innermost one has no frame:
 * then the frame at the frame pointer is the caller's. False: it is other code.
 */
static bool put_wasm(struct interleave_v8_merge *m, uint32_t index)
{
	const struct unwind_v8 *v8 = &m->native->v8[index];
	const struct lang_compiled *code, *caller;
	uint32_t frame;

	assert(index < m->native->nr_v8);
	if (!v8->compiled || !put_wasm_at(m, m->native->ip[v8->frame], v8->frame, &code))
		return false;
	if (v8->frame || !v8->on_top || goes_on(m, index) ||
	    (!code->inlined && m->slot->top != LANG_TOP_FRAMELESS) ||
	    put_wasm_at(m, v8->on_top - 1, v8->frame, &caller) || !v8->javascript)
		return true;
	m->innermost = v8->fp;
	if (find(m, v8->fp, &frame))
		put_caller(m, v8, frame);
	else
		m->exact = false;
	return true;
}

static void put_v8(struct interleave_v8_merge *m, uint32_t index)
{
	const struct unwind_v8 *v8 = &m->native->v8[index];
	bool whole, on = goes_on(m, index);
	uint32_t frame;

	assert(index < m->native->nr_v8);
	if (put_wasm(m, index))
		return;
	whole = put_innermost(m, v8);
	if (on || !v8->javascript) {
		if (whole)
			interleave_v8_put(m, v8->frame);
		else
			m->exact &= on;
		return;
	}
	if (!m->innermost)
		m->innermost = v8->fp;
	if (!find(m, v8->fp, &frame)) {
		m->exact = false;
		if (whole)
			interleave_v8_put(m, v8->frame);
		return;
	}
	if (!whole) {
		put_caller(m, v8, frame);
		return;
	}
	if (v8->compiled) {
		put_function(m, frame, m->native->ip[v8->frame]);
		return;
	}
	interleave_v8_put(m, v8->frame);
	put_at(m, frame, m->slot->frames[frame].code, m->slot->frames[frame].instr);
}

void interleave_v8(const struct lang_process *p, const struct script_functions *codes,
		   const struct unwind_result *native, const struct lang_slot *slot,
		   struct interleave_result *out)
{
	struct interleave_v8_merge m = { codes, native, slot, out, .exact = true };
	uint32_t v8 = 0;
	bool any = false, whole;

	out->nr = out->doubts = 0;
	out->verdict = INTERLEAVE_NONE;
	out->deep = out->whole = false; /* a frame of JavaScript is a native one */
	if (!slot->nr || slot->nr > LANG_FRAMES_MAX)
		return;
	for (uint32_t i = 0; i < native->nr; i++) {
		if (v8 < native->nr_v8 && native->v8[v8].frame == i)
			put_v8(&m, v8++);
		else
			interleave_v8_put(&m, i);
	}
	for (uint32_t i = 0; i < out->nr; i++)
		any |= (out->frame[i] & INTERLEAVE_LANG) != 0;
	if (!any) {
		out->nr = 0;
		return;
	}
	whole = native->stop == UNWIND_COMPLETE && native->nr_guessed == native->nr_v8_guessed;
	out->doubts = (whole ? 0 : INTERLEAVE_CUT) | (m.exact ? 0 : INTERLEAVE_UNALIGNED) |
		      interleave_doubts(p, slot) |
		      (slot->same >= m.innermost + 16 ? 0 : INTERLEAVE_CHANGED);
	out->verdict = out->doubts ? INTERLEAVE_GUESSED : INTERLEAVE_CERTAIN;
}

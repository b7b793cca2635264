// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What became of the samples, as notices: stacks that are not whole, samples
 * that are not counted, names that are missing.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/rules_stacks.h"

#include <stdio.h>
#include <string.h>

#include "symbols/object/object.h"
#include "unwind/unwind.h"

/* Shares of the window's samples from which on a kind of stack is a warning. */
#define BROKEN_LOUD  0.05
#define GUESSED_LOUD 0.25
#define PENDING_LOUD 0.5
#define NAMES_LOUD   0.05
/* At the start everything is new. */
#define START_NS       10000000000ULL
#define STACK_SIZE_MAX 65528u

static void note_truncated(struct notices *n, const struct profile *p)
{
	double share = notices_truncated(n), shown = share;
	struct profile_notice *e;

	if (!p->account.truncated)
		return;
	if (share < 0) /* too few to warn of, but no lie either */
		shown = (double)p->account.truncated /
			(double)MAX(p->account.taken, p->account.truncated);
	e = notices_note(n, "truncated", share > NOTICES_TRUNCATED_MAX ? NOTICE_WARN : NOTICE_INFO,
			 p->account.truncated,
			 "%.1f%% of the stacks are cut short: their outer callers are missing",
			 100 * shown);
	if (p->call_graph == CALL_GRAPH_FP)
		notices_fix(n, e, NOTICE_NONE, 0,
			    "'sudo sysctl kernel.perf_event_max_stack=1024', then start anew");
	else if (n->recorded)
		notices_fix(n, e, NOTICE_NONE, 0,
			    "record with larger dumps (--call-graph=dwarf,65528)");
	else if (p->stack_size < STACK_SIZE_MAX)
		notices_fix(n, e, NOTICE_STACK_SIZE, MIN(2 * p->stack_size, STACK_SIZE_MAX),
			    "double the stack dumps to %u bytes; --stack-size=auto does it by "
			    "itself",
			    MIN(2 * p->stack_size, STACK_SIZE_MAX));
	else
		notices_fix(n, e, NOTICE_CALL_GRAPH, CALL_GRAPH_FP,
			    "follow frame pointers (fp): any depth, but guessed; the kernel has "
			    "no larger dumps");
}

/* By reason: what they need differs. */
static void note_broken(struct notices *n, const struct profile *p)
{
	static const char *const fix[UNWIND_NR_STOPS] = {
		[UNWIND_DEPTH] = "see whose it is (6); the innermost 512 frames are kept",
		[UNWIND_NO_MAP] = "see whose it is (6); code that was unmapped, or a frame that is "
				  "none",
		[UNWIND_NO_CFI] = "see whose it is (6); build that with "
				  "-fasynchronous-unwind-tables",
		[UNWIND_CFI_REFUSED] = "see whose it is (6); its unwind tables make no sense: "
				       "build it anew",
		[UNWIND_BAD_FRAME] = "follow frame pointers (fp); a stack that was switched or "
				     "overwritten",
		[UNWIND_BUDGET] = "see whose it is (6); its unwind tables ask for too much: report "
				  "it",
		[UNWIND_BAD_REGS] = "follow frame pointers (fp); a process of another kind, as "
				    "32-bit ones",
	};
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= NOTICES_TAKEN_MIN &&
		    (double)w->broken > BROKEN_LOUD * (double)w->taken;

	for (unsigned int i = 0; i < UNWIND_NR_STOPS; i++) {
		bool fp = i == UNWIND_BAD_FRAME || i == UNWIND_BAD_REGS;
		struct profile_notice *e;
		char key[24];

		if (!p->broken_by[i])
			continue;
		snprintf(key, sizeof(key), "broken-%u", i);
		e = notices_note(n, key, loud ? NOTICE_WARN : NOTICE_INFO, p->broken_by[i],
				 "stacks that end early: %s", profile_broken_name(i));
		notices_fix(n, e, fp ? NOTICE_CALL_GRAPH : NOTICE_MODULES, CALL_GRAPH_FP, "%s",
			    fix[i] ? fix[i] : "see whose it is (6); no fix is known: report it");
	}
}

static void note_guessed(struct notices *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= NOTICES_TAKEN_MIN &&
		    (double)w->guessed > GUESSED_LOUD * (double)w->taken;
	bool fp = p->call_graph == CALL_GRAPH_FP;
	struct profile_notice *e;

	if (!p->account.guessed)
		return;
	e = notices_note(n, "guessed", loud ? NOTICE_WARN : NOTICE_INFO, p->account.guessed,
			 fp ? "stacks by frame pointers: callers may be missing or wrong"
			    : "stacks with guessed frames: code without unwind tables");
	if (fp)
		notices_fix(n, e, NOTICE_CALL_GRAPH, CALL_GRAPH_DWARF,
			    "take dumps of the stacks (dwarf): exact, dearer");
	else
		notices_fix(n, e, NOTICE_MODULES, 0,
			    "see whose it is (6); build that with "
			    "-fasynchronous-unwind-tables or -fno-omit-frame-pointer");
}

static void note_pending(struct notices *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= NOTICES_TAKEN_MIN && n->now_ns > START_NS &&
		    (double)w->pending > PENDING_LOUD * (double)w->taken;

	if (p->account.pending)
		notices_fix(n,
			    notices_note(n, "pending", loud ? NOTICE_WARN : NOTICE_INFO,
					 p->account.pending,
					 "samples of processes or objects that were not read yet: "
					 "no callers"),
			    NOTICE_MODULES, 0, "see what is being read (6); it goes by itself");
}

static void note_dropped(struct notices *n, const struct profile *p)
{
	for (int i = 0; i < DROP_NR; i++) {
		bool full = i == DROP_STACKS_FULL || i == DROP_CELLS_FULL;
		struct profile_notice *e;
		char key[24];

		if (!p->dropped_by[i])
			continue;
		snprintf(key, sizeof(key), "dropped-%d", i);
		e = notices_note(n, key, NOTICE_GRAVE, p->dropped_by[i],
				 "samples dropped by proftop: %s",
				 profile_drop_name((enum profile_drop)i));
		if (full)
			notices_fix(n, e, NOTICE_RESET, 0,
				    "count from zero with empty tables; or a lower rate ([)");
		else if (i == DROP_PLACES_FULL)
			notices_fix(n, e, NOTICE_NONE, 0,
				    "start proftop anew: code addresses are kept for a session");
		else if (i == DROP_EVENT_LIMIT)
			notices_fix(n, e, NOTICE_NONE, 0,
				    "the 8 events with most samples are shown; perf report shows "
				    "all");
		else if (i == DROP_UNKNOWN_EVENT)
			notices_fix(n, e, NOTICE_NONE, 0,
				    "end the other profiler: the kernel mixes up "
				    "the ids of software events that two have");
		else
			notices_fix(n, e, NOTICE_NONE, 0,
				    "a fault of proftop or of the kernel: please report it");
	}
}

static void note_nameless(struct notices *n, const struct profile *p)
{
	if (p->nr_nameless)
		notices_fix(n,
			    notices_note(n, "nameless", NOTICE_WARN, p->nr_nameless,
					 "samples of more processes and threads than there is "
					 "room for: "
					 "counted as [unknown]"),
			    NOTICE_RESET, 0,
			    "count from zero with empty tables; or fewer processes (p)");
}

/* Share of the window's samples in functions that are but an address. */
static void note_names(struct notices *n, const struct profile *p)
{
	double all = p->window_samples, unnamed = p->window_unnamed;
	struct profile_notice *e;

	/* Not while names are still coming. */
	if (!(unnamed > 0) || all < NOTICES_TAKEN_MIN || 20 * p->nr_places_waiting > p->nr_places)
		return;
	e = notices_note(n, "names", unnamed > NAMES_LOUD * all ? NOTICE_WARN : NOTICE_INFO, 0,
			 "%.1f%% of all samples are in code without names", 100 * unnamed / all);
	e->count = p->nr_places - p->nr_places_named - p->nr_places_waiting;
	notices_fix(n, e, NOTICE_MODULES, 0,
		    "see of each module why (6), and what would give it names");
}

/* Files that are not what the recording says they were: better no names than wrong ones. */
static void note_replaced(struct notices *n, const struct profile *p)
{
	const struct profile_module *first = NULL;
	struct profile_notice *e;
	uint64_t nr = 0;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		if (strcmp(p->modules[i].reason, OBJECT_REPLACED) != 0)
			continue;
		first = first ? first : &p->modules[i];
		nr++;
	}
	if (!nr)
		return;
	e = notices_note(n, "replaced", NOTICE_WARN, nr,
			 nr > 1 ? "%s and others were replaced since the recording"
				: "%s was replaced since the recording",
			 first->name.str);
	notices_fix(n, e, NOTICE_MODULES, 0,
		    "give the files as they were, with --symfs; see which (6)");
}

void rules_stacks(struct notices *n, const struct profile *p)
{
	note_truncated(n, p);
	note_broken(n, p);
	note_guessed(n, p);
	note_pending(n, p);
	note_dropped(n, p);
	note_nameless(n, p);
	note_names(n, p);
	note_replaced(n, p);
}

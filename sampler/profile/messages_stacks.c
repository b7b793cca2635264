// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages about samples: truncated and broken stacks, samples that are not counted, missing names.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/messages_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sampler/profile/messages_languages.h"
#include "symbols/jit/runtime.h"
#include "symbols/image/image.h"
#include "unwind/unwind.h"

/* A larger share of the window's samples is a warning. */
#define BROKEN_LOUD  0.05
#define GUESSED_LOUD 0.25
#define PENDING_LOUD 0.5
#define NAMES_LOUD   0.05
/* Until then everything is new. */
#define START_NS       10000000000ULL
#define STACK_SIZE_MAX 65528u

static void note_truncated(struct messages *n, const struct profile *p)
{
	uint64_t nr = p->account.truncated - p->account.gaps;
	double share = messages_truncated(n), shown = share;
	struct profile_message *e;
	char buf[16];

	if (!nr)
		return;
	if (share < 0) /* too few for a warning */
		shown = (double)nr / (double)MAX(p->account.taken, nr);
	e = messages_note(n, "truncated",
			  share > MESSAGES_TRUNCATED_MAX ? MESSAGE_WARN : MESSAGE_INFO, nr,
			  "%s of stacks truncated", messages_share(buf, shown));
	messages_detail(e, "%s of stacks truncated: callers missing", buf);
	if (n->recorded)
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "record larger stack copies (--call-graph=dwarf,65528)");
	else if (p->call_graph == CALL_GRAPH_FP)
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF,
			     "use DWARF unwinding; or 'sudo sysctl "
			     "kernel.perf_event_max_stack=1024' and restart proftop");
	else if (p->stack_size < STACK_SIZE_MAX)
		messages_fix(n, e, MESSAGE_STACK_SIZE, MIN(2 * p->stack_size, STACK_SIZE_MAX),
			     "copy %u bytes of stack per sample; --stack-size=auto grows while "
			     "proftop runs",
			     MIN(2 * p->stack_size, STACK_SIZE_MAX));
	else
		messages_fix(n, e, MESSAGE_NONE, 0,
			     "none: the kernel copies no more stack; the innermost callers are "
			     "right");
}

/* Note stacks with unused memory in them, as those of Ruby's threads: no copy contains the rest. */
static void note_gaps(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->account.gaps)
		return;
	e = messages_note(n, "gaps", MESSAGE_INFO, p->account.gaps,
			  "stacks truncated at unused memory");
	messages_detail(e, "stacks truncated at unused memory: the first callers of the thread are "
			   "missing");
	messages_fix(n, e, MESSAGE_NONE, 0,
		     "none: the kernel copies a stack up to a page that was never used, as threads "
		     "of Ruby have them; the innermost callers are right");
}

/* Find a module by its id; NULL: it has no self samples, or no name. */
static const struct profile_module *module_of(const struct profile *p, uint32_t id)
{
	for (uint32_t i = 0; i < p->nr_modules; i++)
		if (p->modules[i].id == id)
			return p->modules[i].name.size ? &p->modules[i] : NULL;
	return NULL;
}

static const char *path_of(const struct profile_module *m)
{
	return m->path.size ? m->path.str : m->name.str;
}

/* Return the fix of stacks that end for the reason @stop, most of them in @in; NULL: not known. */
static const char *broken_fix(unsigned int stop, const struct profile_module *in)
{
	static const char *const fix[UNWIND_NR_STOPS] = {
		[UNWIND_DEPTH] = "none: the innermost 512 frames are kept",
		[UNWIND_NO_MAP] = "none: code was unmapped, or the frame is wrong",
		[UNWIND_CFI_REFUSED] = "C and C++: build it again: its unwind tables are invalid; "
				       "others, as GHC: none",
		[UNWIND_BAD_FRAME] = "none: the stack was switched there (OCaml 5, coroutines), or "
				     "its unwind tables are wrong",
		[UNWIND_BUDGET] = "please report it: its unwind tables need too many reads",
		[UNWIND_BAD_REGS] = "32-bit code: sample that process alone with -g fp",
		[UNWIND_OUTSIDE] = "run proftop in the PID namespace of the host: docker run "
				   "--pid=host, hostPID: true",
	};

	/* Not of a file: nobody can build it again. */
	if (stop == UNWIND_NO_CFI && in && in->name.str[0] == '[')
		return "none: code generated at run time has no tables; its callers are unknown";
	if (stop == UNWIND_NO_CFI && !in)
		return "C and C++: build it with -fasynchronous-unwind-tables; code generated at "
		       "run time, as by a JIT, has none";
	if (stop == UNWIND_NO_CFI)
		return runtime_fix_in(RUNTIME_NO_CFI, path_of(in));
	return fix[stop] ? fix[stop] : "no fix is known: report it";
}

/* One message per reason, with the module where most of its stacks end. The fixes differ. */
static void note_broken(struct messages *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= MESSAGES_TAKEN_MIN &&
		    (double)w->broken > BROKEN_LOUD * (double)w->taken;

	for (unsigned int i = 0; i < UNWIND_NR_STOPS; i++) {
		const struct profile_module *in = module_of(p, p->broken_in[i]);
		struct profile_message *e;
		char key[24];

		if (!p->broken_by[i])
			continue;
		snprintf(key, sizeof(key), "broken-%u", i);
		/* A rare reason is not the cause. */
		e = messages_note(n, key,
				  loud && 4 * p->broken_by[i] >= p->account.broken ? MESSAGE_WARN
										   : MESSAGE_INFO,
				  p->broken_by[i],
				  in ? "broken stacks: %s in %.20s" : "broken stacks: %s",
				  profile_broken_name(i), in ? in->name.str : "");
		if (in) {
			messages_detail(e, "broken stacks: %s, most in %s", profile_broken_name(i),
					in->name.str);
			e->module = in->id + 1;
		}
		messages_fix(n, e, MESSAGE_MODULES, 0, "%s", broken_fix(i, in));
	}
}

/* Name the code from which callers are guessed. */
static void explain_guessed(struct messages *n, struct profile_message *e, const struct profile *p)
{
	const struct profile_module *in = module_of(p, p->guessed_in);

	if (p->guessed_in_jit) {
		messages_detail(e, "stacks with guessed frames: most callers of code generated at "
				   "run "
				   "time");
		messages_fix(n, e, MESSAGE_MODULES, 0,
			     "none: it has no unwind tables, so that frame pointers are followed");
		return;
	}
	if (in) {
		messages_detail(e,
				"stacks with guessed frames: most callers of %s, which has no "
				"unwind tables there",
				in->name.str);
		e->module = in->id + 1;
	} else {
		messages_detail(e, "stacks with guessed frames: code without unwind tables");
	}
	messages_fix(n, e, MESSAGE_MODULES, 0, "%s",
		     in ? runtime_fix_in(RUNTIME_NO_CFI, path_of(in))
			: "C and C++: build it with -fasynchronous-unwind-tables or "
			  "-fno-omit-frame-pointer");
}

static void note_guessed(struct messages *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= MESSAGES_TAKEN_MIN &&
		    (double)w->guessed > GUESSED_LOUD * (double)w->taken;
	bool fp = p->call_graph == CALL_GRAPH_FP;
	struct profile_message *e;

	if (!p->account.guessed)
		return;
	e = messages_note(n, "guessed", loud ? MESSAGE_WARN : MESSAGE_INFO, p->account.guessed,
			  fp ? "stacks by frame pointers: callers may be wrong"
			     : "stacks with guessed frames");
	if (fp) {
		messages_detail(e, "stacks by frame pointers: callers may be missing or wrong");
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF, "%s",
			     n->recorded ? "record copies of the stack (--call-graph=dwarf)"
					 : "use DWARF unwinding: exact, more overhead");
		return;
	}
	if (2 * p->lang.guessed > p->account.guessed) {
		messages_explain_guess(n, p, e, "stacks with guessed frames: most of");
		return;
	}
	explain_guessed(n, e, p);
}

static void note_pending(struct messages *n, const struct profile *p)
{
	const struct profile_account *w = &n->window;
	bool loud = w->taken >= MESSAGES_TAKEN_MIN && n->now_ns > START_NS &&
		    (double)w->pending > PENDING_LOUD * (double)w->taken;
	struct profile_message *e;

	if (!p->account.pending)
		return;
	e = messages_note(n, "pending", loud ? MESSAGE_WARN : MESSAGE_INFO, p->account.pending,
			  "stacks pending: symbols still loading");
	messages_detail(e, "stacks pending: their process or object is not read yet");
	messages_fix(n, e, MESSAGE_MODULES, 0, "none needed: symbols are still loading");
}

static const char *drop_fix(enum profile_drop reason)
{
	switch (reason) {
	case DROP_STACKS_FULL:
	case DROP_CELLS_FULL:
		return "count from zero with empty tables; or lower the rate (-F)";
	case DROP_PLACES_FULL:
		return "restart proftop: addresses of code are kept for the whole session";
	case DROP_EVENT_LIMIT:
		return "the 8 events with most samples are shown; perf report shows all";
	case DROP_UNKNOWN_EVENT:
		return "end the other profiler: the kernel confuses the ids of its software "
		       "events with ours";
	default:
		return "a bug in proftop or the kernel: please report it";
	}
}

static void note_dropped(struct messages *n, const struct profile *p)
{
	for (int i = 0; i < DROP_NR; i++) {
		bool full = i == DROP_STACKS_FULL || i == DROP_CELLS_FULL;
		struct profile_message *e;
		char key[24];

		/* A change of events is no trouble. */
		if (!p->dropped_by[i] || i == DROP_EVENT_GONE)
			continue;
		snprintf(key, sizeof(key), "dropped-%d", i);
		e = messages_note(n, key, MESSAGE_GRAVE, p->dropped_by[i], "samples dropped: %s",
				  profile_drop_name((enum profile_drop)i));
		messages_fix(n, e, full ? MESSAGE_RESET : MESSAGE_NONE, 0, "%s",
			     drop_fix((enum profile_drop)i));
		e->keys = full ? MESSAGE_KEY_RATE : 0;
	}
}

static void note_nameless(struct messages *n, const struct profile *p)
{
	struct profile_message *e;

	if (!p->nr_nameless)
		return;
	e = messages_note(n, "nameless", MESSAGE_WARN, p->nr_nameless, "task table full");
	messages_detail(e, "task table full: samples of new processes and threads are counted as "
			   "[unknown]");
	messages_fix(n, e, MESSAGE_RESET, 0,
		     "count from zero with empty tables; or sample fewer processes (-p)");
	e->keys = MESSAGE_KEY_PICK;
}

/* Note names, programs and mappings that are not kept: processes changed them too often. */
static void note_not_kept(struct messages *n, const struct profile *p)
{
	const struct {
		const char *key;
		uint64_t nr; /* goes before the texts */
		const char *brief, *detail, *fix;
	} kinds[] = {
		{ "renames", p->nr_names_dropped, "thread names dropped: renamed too often",
		  "thread names dropped: renamed too often; samples show the name before or after",
		  "none needed: the process and its PID are certain" },
		{ "programs", p->nr_programs_dropped, "programs dropped: executed too often",
		  "programs dropped: one process executed too many; late samples are named by the "
		  "next one",
		  "none needed: the PID is certain" },
		{ "children", p->nr_forks_shared,
		  "children share older mappings: too many mappings",
		  "children share older mappings, which their parents had a moment before: "
		  "mappings of all processes take 256 MiB",
		  "none needed: a sample in other code has its process read again" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct profile_message *e;

		if (!kinds[i].nr)
			continue;
		e = messages_note(n, kinds[i].key, MESSAGE_INFO, kinds[i].nr, "%" PRIu64 " %s",
				  kinds[i].nr, kinds[i].brief);
		messages_detail(e, "%" PRIu64 " %s", kinds[i].nr, kinds[i].detail);
		messages_fix(n, e, MESSAGE_NONE, 0, "%s", kinds[i].fix);
		e->keys = MESSAGE_KEY_PROCESSES;
	}
}

/*
 * Note samples without a stack: rare ones of a long window, old ones of which new tables have no
 * stack, and samples of a folder of --keep with a damaged stack.
 */
static void note_no_stack(struct messages *n, const struct profile *p)
{
	double all = p->window_samples, none = p->window_no_stack;
	struct profile_message *e;
	char buf[16];

	if (!(none > 0) || all < MESSAGES_TAKEN_MIN)
		return;
	e = messages_note(n, "no-stack", none > NAMES_LOUD * all ? MESSAGE_WARN : MESSAGE_INFO, 0,
			  "%s of samples have no stack", messages_share(buf, none / all));
	e->count = (uint64_t)none;
	messages_detail(e, "%s of samples have no stack (%s): they count for their process only",
			buf,
			p->window == PROFILE_WINDOW ? "damaged, or the stack table is full"
						    : "rare ones of a long time");
	messages_fix(n, e, MESSAGE_NONE, 0, "none: the shares of processes have them");
	e->keys = MESSAGE_KEY_PROCESSES;
}

/* Note code without names, once most places were looked up. */
static void note_names(struct messages *n, const struct profile *p)
{
	double all = p->window_samples, unnamed = p->window_unnamed;
	struct profile_message *e;
	char buf[16];

	if (!(unnamed > 0) || all < MESSAGES_TAKEN_MIN || 20 * p->nr_places_waiting > p->nr_places)
		return;
	e = messages_note(n, "names", unnamed > NAMES_LOUD * all ? MESSAGE_WARN : MESSAGE_INFO, 0,
			  "%s of samples have no symbol", messages_share(buf, unnamed / all));
	e->count = p->nr_places - p->nr_places_named - p->nr_places_waiting;
	messages_fix(n, e, MESSAGE_MODULES, 0,
		     "each module has a reason, and a fix of its symbols");
}

/* Note files that differ from the recorded ones: their names would be wrong. */
static void note_replaced(struct messages *n, const struct profile *p)
{
	const struct profile_module *first = NULL;
	struct profile_message *e;
	uint64_t nr = 0;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		if (strcmp(p->modules[i].reason, OBJECT_REPLACED) != 0)
			continue;
		first = first ? first : &p->modules[i];
		nr++;
	}
	if (!nr)
		return;
	e = messages_note(n, "replaced", MESSAGE_WARN, nr, "files differ from the recorded ones");
	messages_detail(e,
			nr > 1 ? "%s and others differ from the recorded files"
			       : "%s differs from the recorded file",
			first->name.str);
	messages_fix(n, e, MESSAGE_MODULES, 0, "give the recorded files with --symfs");
}

void messages_stacks(struct messages *n, const struct profile *p)
{
	note_truncated(n, p);
	note_gaps(n, p);
	note_broken(n, p);
	note_guessed(n, p);
	note_pending(n, p);
	note_dropped(n, p);
	note_nameless(n, p);
	note_not_kept(n, p);
	note_no_stack(n, p);
	note_names(n, p);
	note_replaced(n, p);
}

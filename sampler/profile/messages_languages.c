// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages about interpreters: why functions of scripts have no names, and the fix.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/messages_languages.h"

#include <inttypes.h>

#include "symbols/lang/lang.h"
#include "unwind/unwind.h"

/* Of the tick's samples: with fewer of interpreters, a reader need not run. */
#define SHARE_MIN 0.05
/* Of the samples of interpreters: a larger share is noted. */
#define NONE_MAX    0.1
#define GUESSED_MAX 0.25

#define FIX_REALTIME                                                                               \
	"a real-time priority for the readers: cap_sys_nice (make install SETCAP=1), "             \
	"or a lower rate (-F)"

/* Return the first interpreter without functions of scripts, or with guesses; NULL: none. */
static const struct profile_module *find_module(const struct profile *p, bool untried)
{
	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const char *reason = p->modules[i].language_reason;

		if (reason && (reason == lang_untried) == untried)
			return &p->modules[i];
	}
	return NULL;
}

/* Note interpreters that are not read at all. */
static void note_unread(struct messages *n, const struct profile *p)
{
	static const struct {
		enum lang_none why;
		const char *key, *text, *fix;
	} reasons[] = {
		{ LANG_NONE_VERSION, "lang-version", "interpreter of an unknown version or build",
		  "native frames are shown; 'proftop --check' lists the versions" },
		{ LANG_NONE_REFUSED, "lang-refused", "no permission to read interpreters",
		  "sudo proftop, or cap_sys_ptrace (make install SETCAP=1)" },
		{ LANG_NONE_NO_ROOM, "lang-room", "too many functions of interpreters",
		  "native frames are shown; restart proftop if it lasts" },
	};
	const struct profile_module *m = find_module(p, false);

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		uint64_t nr = p->lang.none_by[reasons[i].why];
		struct profile_message *e;

		if (!nr)
			continue;
		e = messages_note(n, reasons[i].key, MESSAGE_INFO, nr, "%s", reasons[i].text);
		if (m && reasons[i].why != LANG_NONE_NO_ROOM)
			messages_detail(e, "%s: no functions of scripts: %s", m->path.str,
					m->language_reason);
		messages_fix(n, e, MESSAGE_NONE, 0, "%s", reasons[i].fix);
	}
}

/* Return the most frequent reason for samples without frames that can change, and their sum. */
static enum lang_none find_most(const struct profile *p, uint64_t *sum)
{
	static const enum lang_none reasons[] = { LANG_NONE_NO_READER, LANG_NONE_NO_THREAD,
						  LANG_NONE_BAD_CHAIN, LANG_NONE_MISMATCH };
	enum lang_none most = LANG_NONE_NO_READER;

	*sum = 0;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		*sum += p->lang.none_by[reasons[i]];
		if (p->lang.none_by[reasons[i]] > p->lang.none_by[most])
			most = reasons[i];
	}
	return most;
}

/* Note a large share of samples without functions of scripts. */
static void note_none(struct messages *n, const struct profile *p)
{
	static const char *const words[LANG_NONE_NR] = {
		[LANG_NONE_NO_READER] = "the thread ran on before it was read",
		[LANG_NONE_NO_THREAD] = "threads that the interpreter does not know",
		[LANG_NONE_BAD_CHAIN] = "no valid chain of frames",
		[LANG_NONE_MISMATCH] = "the frames do not fit the native stack",
	};
	bool dwarf = p->call_graph == CALL_GRAPH_DWARF;
	struct profile_message *e;
	enum lang_none most;
	uint64_t nr;

	most = find_most(p, &nr);
	if ((double)nr <= NONE_MAX * (double)p->lang.samples)
		return;
	e = messages_note(n, "lang-none", MESSAGE_INFO, nr, "scripts without functions: %.0f%%",
			  100.0 * (double)nr / (double)p->lang.samples);
	messages_detail(e, "%.0f%% of samples of interpreters have no functions of scripts: %s",
			100.0 * (double)nr / (double)p->lang.samples,
			dwarf ? words[most] : "without stack copies they are not read");
	if (!dwarf)
		messages_fix(n, e, MESSAGE_CALL_GRAPH, CALL_GRAPH_DWARF, "%s",
			     n->recorded ? "record with proftop -g dwarf"
					 : "use DWARF unwinding: exact, more overhead");
	else
		messages_fix(n, e, MESSAGE_NONE, 0, "%s",
			     most == LANG_NONE_NO_READER ? FIX_REALTIME
							 : "none: native frames are shown there; "
							   "report it if it lasts");
}

static void note_guessed(struct messages *n, const struct profile *p)
{
	/* No check failed of a stack that is too deep. */
	uint64_t nr = p->lang.guessed - MIN(p->lang.guessed, p->broken_by[UNWIND_DEPTH]);
	double share = (double)nr / (double)p->lang.samples;
	const struct profile_module *untried = find_module(p, true);
	struct profile_message *e;

	if (!(share > GUESSED_MAX))
		return;
	e = messages_note(n, "lang-guessed", MESSAGE_INFO, nr,
			  "functions of scripts guessed: %.0f%%", 100 * share);
	if (untried) {
		messages_detail(e, "%s: %s", untried->path.str, lang_untried);
		messages_fix(n, e, MESSAGE_NONE, 0, "%s", "none: native frames are exact");
		return;
	}
	messages_detail(e,
			"%.0f%% of samples of interpreters have guessed functions of scripts: a "
			"check of their frames failed",
			100 * share);
	messages_fix(n, e, MESSAGE_NONE, 0, "%s", FIX_REALTIME);
}

void messages_languages(struct messages *n, const struct profile *p)
{
	note_unread(n, p);
	if (p->lang.samples < MESSAGES_TAKEN_MIN ||
	    (double)p->lang.samples < SHARE_MIN * (double)p->account.taken)
		return;
	note_none(n, p);
	note_guessed(n, p);
}

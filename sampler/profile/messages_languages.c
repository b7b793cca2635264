// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages about interpreters: why functions of scripts have no names, and the fix.
 *
 * Runs on: the builder.
 */
#include "sampler/profile/messages_languages.h"

#include <inttypes.h>
#include <stdio.h>

#include "symbols/jit/runtime.h"
#include "unwind/unwind.h"

/* Of the tick's samples: with fewer of interpreters, a reader need not run. */
#define SHARE_MIN 0.05
/* Of the samples of interpreters: a larger share is noted. */
#define NONE_MAX    0.1
#define GUESSED_MAX 0.25

/* Return whether no functions of scripts are read of any version of this interpreter. */
static bool is_unreadable(const struct profile_module *m)
{
	return m->language_reason && m->path.size &&
	       m->language_reason == runtime_fix_in(RUNTIME_SCRIPTS, m->path.str);
}

/* Return the first interpreter without functions of scripts, or with guesses; NULL: none. */
static const struct profile_module *find_module(const struct profile *p, bool untried)
{
	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const char *reason = p->modules[i].language_reason;

		if (reason && !is_unreadable(&p->modules[i]) && (reason == lang_untried) == untried)
			return &p->modules[i];
	}
	return NULL;
}

/* Return whether @nr samples of interpreters are enough to warn. */
static bool is_loud(const struct profile *p, uint64_t nr)
{
	return p->lang.samples >= MESSAGES_TAKEN_MIN &&
	       (double)nr >= SHARE_MIN * (double)p->account.taken;
}

/* Code without a symbol is no message of its own where an interpreter that is not read explains it.
 */
static void hide_names(struct messages *n, const struct profile *p, uint64_t nr)
{
	if (is_loud(p, nr) && (double)nr * (double)p->window_samples >=
				      (double)p->window_unnamed * (double)p->account.taken)
		messages_silence(n, "names");
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
	char title[LANG_TITLE_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		uint64_t nr = p->lang.none_by[reasons[i].why];
		struct profile_message *e;

		if (!nr)
			continue;
		e = messages_note(n, reasons[i].key, is_loud(p, nr) ? MESSAGE_WARN : MESSAGE_INFO,
				  nr, "%s", reasons[i].text);
		messages_fix(n, e, MESSAGE_NONE, 0, "%s", reasons[i].fix);
		if (!m || reasons[i].why == LANG_NONE_NO_ROOM)
			continue;
		messages_detail(e, "no functions of scripts: %s (%s): %s",
				lang_title(title, m->language_version), m->name.str,
				m->language_reason);
		if (m->language_fix)
			messages_fix(n, e, MESSAGE_NONE, 0, "%s", m->language_fix);
		hide_names(n, p, nr);
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

/* Return the fix of samples that are read too late. */
static const char *fix_late(const struct messages *n)
{
	return runtime_fix_in(n->goes_first ? RUNTIME_LATE_FIRST : RUNTIME_LATE, "");
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
			     most == LANG_NONE_NO_READER ? fix_late(n)
							 : "none: native frames are shown there; "
							   "report it if it lasts");
}

/* What most guesses are: of which language, and the doubt. */
struct guess {
	int language; /* index in guessed_by */
	int doubt;
};

static struct guess find_guess(const struct profile *p)
{
	struct guess most = { LANG_NONE, MERGE_DOUBTS };

	for (int i = 0; i < PROFILE_NR_LANGUAGES; i++)
		for (int k = 0; k < PROFILE_NR_DOUBTS; k++)
			if (p->lang.guessed_by[i][k] >
			    p->lang.guessed_by[most.language][most.doubt])
				most = (struct guess){ i, k };
	return most;
}

/* Return the fix of guesses of a language, and *why: what is in doubt. */
static const char *explain_doubt(const struct messages *n, struct guess g, const char **why)
{
	static const struct {
		enum runtime_problem problem;
		const char *why;
	} doubts[MERGE_DOUBTS] = {
		[0] = { RUNTIME_CUT, "the native stack is not whole" },
		[1] = { RUNTIME_UNALIGNED, "they do not match the native frames" },
		[2] = { RUNTIME_UNALIGNED, "a function was just called" },
		[3] = { RUNTIME_LATE, "other threads may have run before they were read" },
		[4] = { RUNTIME_UNALIGNED, "they are not in order" },
		[5] = { RUNTIME_LATE, "the thread ran on before it was read" },
		[6] = { RUNTIME_UNTRIED, "the version was never compared with the truth" },
	};
	enum runtime_problem problem;

	*why = n->recorded ? "they were guesses when they were recorded" : "a check failed";
	if (g.doubt >= MERGE_DOUBTS)
		return runtime_fix_in(RUNTIME_UNALIGNED, "");
	*why = doubts[g.doubt].why;
	problem = doubts[g.doubt].problem;
	if (problem == RUNTIME_LATE)
		return fix_late(n);
	return runtime_fix_in(problem, g.language == LANG_NR
					       ? lang_name(LANG_JAVA)
					       : lang_name((enum lang_kind)g.language));
}

void messages_explain_guess(struct messages *n, const struct profile *p, struct profile_message *e,
			    const char *text)
{
	static const char *const names[PROFILE_NR_LANGUAGES] = {
		"interpreters", "Python", "PHP", "Ruby", "Perl", "JavaScript", "Java",
	};
	struct guess g = find_guess(p);
	const char *why, *fix = explain_doubt(n, g, &why);

	_Static_assert(LANG_NR + 1 == PROFILE_NR_LANGUAGES, "the languages of guessed_by");
	messages_detail(e, "%s %s: %s", text, names[g.language], why);
	messages_fix(n, e, MESSAGE_MODULES, 0, "%s", fix);
}

static void note_guessed(struct messages *n, const struct profile *p)
{
	/* No check failed of a stack that is too deep. */
	uint64_t nr = p->lang.guessed - MIN(p->lang.guessed, p->broken_by[UNWIND_DEPTH]);
	double share = (double)nr / (double)p->lang.samples;
	const struct profile_module *untried = find_module(p, true);
	struct profile_message *e;
	char text[96];

	if (!(share > GUESSED_MAX))
		return;
	e = messages_note(n, "lang-guessed", MESSAGE_INFO, nr,
			  "functions of scripts guessed: %.0f%%", 100 * share);
	snprintf(text, sizeof(text), "%.0f%% of samples of interpreters have guessed functions,",
		 100 * share);
	messages_explain_guess(n, p, e, text);
	if (untried && MERGE_UNTRIED == 1 << find_guess(p).doubt)
		messages_detail(e, "%s: %s", untried->path.str, lang_untried);
}

/* Note samples in interpreters of which no functions of scripts are read. */
static void note_unreadable(struct messages *n, const struct profile *p)
{
	const struct profile_module *most = NULL;
	struct profile_message *e;
	char buf[16];

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const struct profile_module *m = &p->modules[i];

		if (is_unreadable(m) && (!most || m->self > most->self))
			most = m;
	}
	if (!most || most->self < SHARE_MIN * p->window_samples)
		return;
	e = messages_note(n, "lang-unread", MESSAGE_INFO, 0, "no functions of scripts: %.30s",
			  most->name.str);
	messages_detail(e, "%s, %s of samples: %s", most->path.str,
			messages_share(buf, most->self / p->window_samples), most->language_reason);
	messages_fix(n, e, MESSAGE_MODULES, 0, "none: functions of the interpreter are shown");
}

void messages_languages(struct messages *n, const struct profile *p)
{
	note_unread(n, p);
	note_unreadable(n, p);
	if (p->lang.samples < MESSAGES_TAKEN_MIN ||
	    (double)p->lang.samples < SHARE_MIN * (double)p->account.taken)
		return;
	note_none(n, p);
	note_guessed(n, p);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that the screen depends on, the time included: drawing is a
 * function of this state alone. The main thread owns it.
 */
#ifndef UI_STATE_STATE_H
#define UI_STATE_STATE_H

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/text.h"
#include "ui/cli/config.h"
#include "ui/cli/words.h"
#include "ui/draw/draw.h"
#include "ui/key/user_keys.h"
#include "ui/state/annotated.h"
#include "ui/state/list.h"
#include "ui/state/picker.h"
#include "ui/state/rewind.h"
#include "ui/state/scope.h"
#include "ui/state/view_id.h"

/* Lost or throttled samples of one CPU: shown for a while after the last. */
struct alarm {
	int cpu;
	uint64_t lost, throttled; /* in the last tick that had any */
	uint64_t until_ns;
};

struct module_only {
	bool on;
	uint32_t id;	   /* of the module */
	enum view_id from; /* where to go back to */
	char name[64];	   /* clean text */
};

/* A part of the screen, and the action of a mouse press in it. */
enum zone_kind { ZONE_ACTION, ZONE_COLUMN, ZONE_VIEW, ZONE_ROWS, ZONE_ENTRIES, ZONE_STRIP };
struct zone {
	uint16_t row, col, rows, cols;
	enum zone_kind kind;
	uint32_t value; /* action, column, view */
};
#define ZONES_MAX 64

#define UI_STATE_ANSWERS 16

struct ui_state {
	struct sampler *sampler;
	const struct ui_config *config;
	const struct glyphs *glyphs;
	const struct user_keys *user_keys; /* keys of the settings; NULL: none */
	char host[65];
	uint64_t now_ns;

	struct profile *latest;	   /* the newest; owned */
	struct profile *shown;	   /* source of the rows: the latest, or kept while frozen; owned */
	struct profile *baseline;  /* compared with (B); owned; NULL: none */
	const char *baseline_path; /* of its file; NULL: it was shown here */
	bool frozen;
	bool target_gone;     /* as it was in the last profile */
	bool whole_at_end;    /* the window became the total when the target ended */
	struct rewind rewind; /* a range of the past is shown */

	enum view_id view;
	enum view_id help_from, drill_from, tool_from;
	struct list lists[VIEW_NR];
	struct scope scope; /* which samples are shown */
	double asked_hz;    /* requested at asked_ns, until a profile confirms it */
	uint64_t asked_ns;
	enum profile_window asked_window; /* the same, at asked_window_ns; 0: none */
	uint64_t asked_window_ns;
	uint64_t tick_ns;
	bool full_names, follow, hide_header;
	double percent_limit;
	bool intervals;	     /* a column of error bars (~) */
	unsigned int scroll; /* cells that names are scrolled by */

	struct alarm *alarms;
	uint32_t nr_alarms;
	uint32_t worst;	   /* id + 1 of the sampler's message in the bottom line */
	uint64_t worst_ns; /* when it was a warning last */
	char message[256]; /* clean text */
	bool message_bad;
	uint64_t message_until_ns;
	uint64_t message_held_ns; /* an error: until then, or the next key, no other one is shown */
	uint32_t status_seq;	  /* profile.status_seq when it was last shown */

	/* Answers to keys and commands that are errors or longer than a line, the oldest first. */
	struct profile_message answers[UI_STATE_ANSWERS];
	uint32_t nr_answers, answer_seq;

	struct prompt prompt;
	struct words_list words; /* that the prompt completes */
	struct dialog dialog;
	struct zone zones[ZONES_MAX];
	uint32_t nr_zones;
	uint64_t click_ns; /* of the last press on a row, and where */
	uint16_t click_row;
	struct {
		bool on; /* the button was pressed on a row, and is held */
		uint16_t row, col;
	} press;

	unsigned int rows, cols; /* of the screen, when it was drawn */
	struct module_only only; /* code of one module alone (d) */
	struct annotated annotate;
	enum grouping grouping;	     /* processes that are one (=) */
	bool by_thread;		     /* processes split by thread (H) */
	bool process_tree;	     /* processes below their parents (t) */
	bool fold_threads;	     /* "worker-1", "worker-2" are one: "worker-*" */
	struct folds *folds;	     /* a cache that const readers fill; NULL: no memory */
	struct file_worker *files;   /* borrowed; NULL: the main thread writes files */
	struct file_worker *folders; /* the same, for Tab: it may hang without a file that waits */
	struct packages *packages;   /* borrowed; NULL: packages of files are not looked up */
	struct folding *folding;     /* borrowed; NULL: the main thread folds */

	char copy[TEXT_MAX + 4]; /* for the clipboard; "": nothing */
	int theme;		 /* enum theme, for the terminal */
	bool mouse;		 /* the same */
	/* Requests to the loop. */
	struct {
		char path[TEXT_MAX +
			  1]; /* the longest text is refused; for the editor; "": nothing */
		uint32_t line;
	} edit;
	bool quit, suspend, redraw;
	int quit_by; /* the signal of the key that quits, for the exit code; 0: none */
};

/* Show a message at the bottom for some seconds; it is cleaned. View 7 keeps errors and long ones.
 */
void ui_state_say(struct ui_state *st, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Return the index of the shown event in @p. */
uint32_t ui_state_event(const struct ui_state *st, const struct profile *p);
/* Return the index of the first event of waits, or of a clock; UINT32_MAX: there is none. */
uint32_t ui_state_find_time(const struct profile *p, bool waits);
/* Return the index + 1 of the event of waits, if shown with a clock; else 0. */
uint32_t ui_state_also(const struct ui_state *st, const struct profile *p);
/* Return whether waiting time is shown, alone or with a clock. */
bool ui_state_waits(const struct ui_state *st, const struct profile *p);
/* Return whether samples have the weights of latency. */
bool ui_state_latency(const struct ui_state *st, const struct profile *p);
/* Return which time is shown; show another one, if it is sampled. */
enum ui_config_time ui_state_time(const struct ui_state *st, const struct profile *p);
void ui_state_set_time(struct ui_state *st, enum ui_config_time time);
/* Return which idle waits are left out: enum profile_idle and above; 0: none. */
uint8_t ui_state_hides_idle(const struct ui_state *st, const struct profile *p);
/* Return the rate wanted now: requested, or of the newest profile. */
double ui_state_want_hz(const struct ui_state *st);
/* The same of the window. */
enum profile_window ui_state_want_window(const struct ui_state *st);
/* Have the profiles of another window made. */
void ui_state_ask_window(struct ui_state *st, enum profile_window window);
/* Index in @p of the process drilled into; UINT32_MAX: none, or it has no samples. */
uint32_t ui_state_process(const struct ui_state *st, const struct profile *p);
/* Index in @p of the thread drilled into; UINT32_MAX: all threads, or it has no samples. */
uint32_t ui_state_thread(const struct ui_state *st, const struct profile *p);
void ui_state_zone(struct ui_state *st, const struct zone *zone);

static inline struct list *ui_state_list(struct ui_state *st)
{
	return &st->lists[st->view];
}

/* The worst message of the last seconds, from warnings on; NULL: none. */
const struct profile_message *ui_state_worst(const struct ui_state *st);
/* Choose it, with each new profile. */
void ui_state_choose_worst(struct ui_state *st);
/* The active message with that @key (profile_message.key); NULL: none. */
const struct profile_message *ui_state_message(const struct ui_state *st, const char *key);
/* Return whether an error about the last key or command was shown just now. */
bool ui_state_is_held(const struct ui_state *st);
/* Show an error of several lines as one. */
void ui_state_say_error(struct ui_state *st, const struct err *e);

/* Clean a text into @buf. Return it with its width. */
struct safe_text ui_state_clean(char *buf, size_t size, const char *text);
/* Write the target, a recording without its folder, into @buf. */
struct safe_text ui_state_target(const struct profile *p, char *buf, size_t size);
/* Return whether the rows are of all samples of a recording. */
bool ui_state_whole(const struct ui_state *st);
/* Return a function's name for rows: short, unless full names are on (V). */
struct safe_text ui_state_name(const struct ui_state *st, char buf[static TEXT_MAX],
			       struct safe_text name);

#endif

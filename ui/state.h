/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that the screen depends on. The main thread owns it; drawing is
 * a function of this and of nothing else (the time, too, is in here).
 *
 * Rows are told apart by identity (function id, process id), never by their
 * place, so that the cursor stays on its function when rows change order.
 */
#ifndef UI_STATE_H
#define UI_STATE_H

#include "sampler/profile/fold.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/app.h"
#include "ui/bindings.h"
#include "ui/draw/canvas.h"
#include "ui/dialog.h"
#include "ui/text/format.h"
#include "ui/cli/file_work.h"
#include "ui/keys.h"
#include "ui/text/match.h"
#include "ui/prompt.h"
#include "ui/draw/theme.h"
#include "ui/cli/words.h"

enum view_id {
	VIEW_FUNCTIONS,
	VIEW_PROCESSES,
	VIEW_TREE,
	VIEW_FLAME,
	VIEW_CPUS,
	VIEW_MODULES,
	VIEW_MESSAGES,
	VIEW_HELP, /* the views up to here have tabs */
	VIEW_CALLERS,
	VIEW_ANNOTATE,
	VIEW_NR,
};

/* What is known of a row's @delta. */
enum row_change {
	CHANGE_UNKNOWN,
	CHANGE_WINDOW, /* against the window before */
	CHANGE_UNSURE, /* against the baseline; may be chance */
	CHANGE_SURE,
	CHANGE_NEW, /* was not in the baseline */
};

#define ROW_EVENTS 3 /* beside the shown one */

struct row {
	uint64_t id;		 /* function id, process id, path, or line */
	uint32_t index;		 /* in functions or processes of the shown profile */
	double self, total;	 /* shares of all weight, 0..1 */
	double count;		 /* samples */
	uint32_t task;		 /* index in tasks; UINT32_MAX: none */
	uint32_t nr;		 /* processes of a function, tasks of a process */
	uint32_t top_function;	 /* of a process; UINT32_MAX: none */
	float delta;		 /* change of self */
	float other[ROW_EVENTS]; /* self of other events (folds_other()); < 0: not known */
	uint8_t change;		 /* enum row_change */
	/* In a tree of rows. */
	uint8_t depth;
	bool parent, folded; /* it has rows below it; they are not shown */
	uint32_t rails;	     /* bit n: at level n the line goes on below */
};

struct list {
	struct row *rows;
	uint32_t nr, capacity;
	uint32_t nr_hidden;   /* by filter or limit */
	double count;	      /* samples that 100 % stands for */
	double most;	      /* the largest self share */
	uint32_t cursor, top; /* rows; @cursor is row @selected while it is there */
	uint32_t page;	      /* rows that the last draw had room for */
	uint64_t selected;
	bool pinned;	  /* moved by hand: stay with @selected */
	uint8_t sort;	  /* column */
	uint32_t columns; /* bit n: column n is shown; 0: as the width permits */
	bool inverted;
	struct match search, filter;
	char gone[480]; /* what the baseline has and the rows have not; clean */
};

/* Trouble of one CPU that was: shown for a while after it ended. */
struct alarm {
	int cpu;
	uint64_t lost, throttled; /* in the last tick that had any */
	uint64_t until_ns;
};

/* What the view of one function shows of it. */
enum annotate_mode { ANNOTATE_BOTH, ANNOTATE_SOURCE, ANNOTATE_ASSEMBLY, ANNOTATE_NR_MODES };

/* A function that was left by following a call. */
struct annotate_level {
	uint32_t function;
	uint64_t selected;
	char name[256]; /* clean text */
};
#define ANNOTATE_LEVELS 16

struct arrows;
struct annotated {
	uint32_t function;			     /* its id; UINT32_MAX: none */
	char name[256];				     /* clean text */
	enum view_id from;			     /* where to go back to, */
	struct annotate_level back[ANNOTATE_LEVELS]; /* but first to these */
	uint32_t nr_back;
	enum annotate_mode mode;
	struct arrows *arrows; /* of its jumps; owned; NULL before the first */
	bool hottest;	       /* put the cursor there once there is one */
};

struct module_only {
	bool on;
	uint32_t id;	   /* of the module */
	enum view_id from; /* where to go back to */
	char name[64];	   /* clean text */
};

/* What a press of the mouse means where. */
enum zone_kind { ZONE_ACTION, ZONE_COLUMN, ZONE_VIEW, ZONE_ROWS, ZONE_ENTRIES };
struct zone {
	uint16_t row, col, rows, cols;
	enum zone_kind kind;
	uint32_t value; /* action, column, view */
};
#define ZONES_MAX 64

struct ui_state {
	struct sampler *sampler;
	const struct app_config *config;
	const struct glyphs *glyphs;
	const struct bindings *bindings; /* keys over those of the table; NULL: none */
	char host[65];
	uint64_t now_ns;

	struct profile *latest;	  /* the newest; owned */
	struct profile *shown;	  /* what rows are made of: latest, or kept when frozen; owned */
	struct profile *baseline; /* what rows are compared with (B); owned; NULL: none */
	bool frozen;

	enum view_id view;
	enum view_id help_from, drill_from;
	struct list lists[VIEW_NR];
	bool drilled;		/* into one process */
	uint32_t process;	/* its id */
	char process_name[128]; /* clean text */

	char event_name[EVENT_NAME_MAX]; /* shown event; "" the first */
	double asked_hz;		 /* wanted since asked_ns, until a profile tells */
	uint64_t asked_ns;
	uint64_t tick_ns;
	bool hide_kernel, hide_user, full_names, follow, hide_header;
	double percent_limit;
	bool intervals;	     /* a column of error bars (~) */
	unsigned int scroll; /* cells that names are scrolled by */

	struct alarm *alarms;
	uint32_t nr_alarms;
	char message[256]; /* clean text */
	bool message_bad;
	uint64_t message_until_ns;
	uint32_t message_seq;

	struct prompt prompt;
	struct words_list words; /* that the prompt completes */
	struct dialog dialog;
	struct zone zones[ZONES_MAX];
	uint32_t nr_zones;
	uint64_t click_ns; /* of the last press on a row, and where */
	uint16_t click_row;
	struct {
		bool on; /* the button is held, and was pressed on a row */
		uint16_t row, col;
	} press;

	unsigned int rows, cols; /* of the screen, when it was drawn */
	struct module_only only; /* code of one module alone (d) */
	struct annotated annotate;
	bool by_thread;			   /* processes split by thread (H) */
	bool process_tree;		   /* processes below their parents (t) */
	bool fold_threads;		   /* "worker-1", "worker-2" are one: "worker-*" */
	bool in_thread;			   /* drilled further, into one thread */
	uint32_t thread;		   /* its id */
	char thread_group[FORMAT_MAX * 2]; /* or into a group of threads: "worker-*"; clean */
	struct match cgroup;		   /* only processes whose cgroup or container it finds */
	struct folds *folds;		   /* folds, and what is unfolded; NULL: no memory */
	struct file_worker *files;	   /* borrowed: writes files; NULL: the main thread does */
	struct folding *folding; /* borrowed: the thread that folds; NULL: this one does */

	char copy[TEXT_MAX + 4]; /* for the clipboard; "": nothing */
	int theme;		 /* enum theme: the terminal follows */
	bool mouse;		 /* the same */
	/* To the loop. */
	struct {
		char path[TEXT_MAX]; /* for the editor; "": nothing */
		uint32_t line;
	} edit;
	bool quit, suspend, redraw;
};

void ui_state_init(struct ui_state *st, struct sampler *s, const struct app_config *config,
		   bool ascii);
void ui_state_fini(struct ui_state *st);
/* A new profile, owned from now on. */
void ui_state_take(struct ui_state *st, struct profile *p);
/* Free @p, unless it is still one of the above. */
void ui_state_release(const struct ui_state *st, struct profile *p);
/* One line at the bottom for some seconds; cleaned. */
void ui_state_say(struct ui_state *st, bool bad, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Index of the shown event in @p. */
uint32_t ui_state_event(const struct ui_state *st, const struct profile *p);
/* The rate wanted now, as far as it is known here. */
double ui_state_want_hz(const struct ui_state *st);
/* Index of the process drilled into in the shown profile; UINT32_MAX if it is not there. */
uint32_t ui_state_process(const struct ui_state *st);
/* Index of the thread drilled into; UINT32_MAX: all threads, or it is not there. */
uint32_t ui_state_thread(const struct ui_state *st);
void ui_state_zone(struct ui_state *st, const struct zone *zone);

static inline struct list *ui_state_list(struct ui_state *st)
{
	return &st->lists[st->view];
}

/* Text that is clean already (the sampler's, or cleaned by us), with its width. */
struct safe_text ui_clean(char *buf, size_t size, const char *text);
/* A function's name as rows show it: short, unless names are wanted in full (V). */
struct safe_text ui_name(const struct ui_state *st, char buf[static TEXT_MAX],
			 struct safe_text name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Everything that the screen depends on, the time included: drawing is a function of this state
 * alone.
 *
 * The caller owes: the main thread, which owns it.
 *
 * The room does: holds view, scope, rows, cursor, lines and pickers.
 *
 * Not for: profiles: the model (ui/app.c) owns them.
 */
#ifndef UI_STATE_STATE_H
#define UI_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/text/text.h"

struct arrows;
struct file_worker;
struct folding;
struct folds;
struct glyphs;
struct packages;
struct sampler;
struct ui_state;
struct user_keys;

/*
 * Rows of a view, and the list that holds them. Runs on: the main thread.
 *
 * A row is identified by its id (function id, process id), never by its index: the cursor keeps its
 * function when rows change order.
 */

/* The meaning of a row's @delta. */
enum row_change {
	CHANGE_UNKNOWN,
	CHANGE_WINDOW, /* against the window before */
	CHANGE_UNSURE, /* against the baseline; may be chance */
	CHANGE_SURE,
	CHANGE_NEW, /* was not in the baseline */
};

#define ROW_EVENTS 3 /* beside the shown one */

struct row {
	uint64_t id;		  /* function id, process id, path, or line */
	uint32_t index;		  /* in functions or processes of the shown profile */
	double self, total;	  /* shares of all weight, 0..1 */
	double count;		  /* samples */
	double cpu_ns;		  /* of processes and threads: CPU time, where profile.cpu_known */
	double total_count;	  /* samples of @total, where @count is of @self */
	uint32_t task;		  /* index in tasks; UINT32_MAX: none */
	uint32_t nr;		  /* number of processes of a function, of tasks of a process */
	uint32_t nr_processes;	  /* in a row of several; 0: one */
	uint32_t nr_tasks;	  /* threads of a function */
	bool mixed;		  /* processes of a function: not all of one name */
	uint32_t top_function;	  /* of a process or CPU; UINT32_MAX: none */
	float delta;		  /* change of self */
	float other[ROW_EVENTS];  /* self of other events (folds_other()); < 0: not known */
	float ratios[RATIOS_MAX]; /* of events; NAN: not known */
	uint8_t change;		  /* enum row_change */
	float waits[WAIT_NR];	  /* of processes and threads: ns by enum wait_kind */
	/* In a tree of rows. */
	uint8_t depth;
	bool parent, folded; /* it has rows below it; they are not shown */
	uint32_t rails;	     /* bit n: at level n the line goes on below */
};

struct list {
	struct row *rows;
	uint32_t nr, capacity;
	struct row *sorted; /* for sorting */
	void *keys;
	uint32_t nr_sorted;   /* both are for that many rows */
	uint32_t nr_hidden;   /* by filter or limit */
	double count;	      /* samples of 100 % */
	double weight;	      /* the weight of 100 %; of processes, with weights in row->self */
	double most;	      /* the largest self share */
	float waits[WAIT_NR]; /* of all rows: ns by enum wait_kind */
	double loading;	      /* share of code with symbols still loading: no rows yet */
	uint32_t cursor, top; /* rows; @cursor is row @selected while it is there */
	uint32_t page;	      /* rows that fit the last drawn screen */
	uint64_t selected;
	bool pinned; /* moved by hand: follow @selected */
	/* Rows become others: select the one that has this process, or thread. */
	struct {
		bool on, found;
		uint64_t process, task; /* ids; task UINT64_MAX: none */
		uint64_t row;		/* that was selected for them */
	} sought;
	uint8_t sort;	  /* column */
	uint32_t columns; /* bit n: column n is shown; 0: automatic */
	bool inverted;
	struct match search, filter;
	uint64_t *slots; /* ids of the first rows, in the order of the profile before
			    (ui/view/order) */
	uint32_t nr_slots;
	uint64_t slots_key, slots_ns; /* what they are an order of; the time of their profile */
	bool by_share;		      /* rows are in the order of a share; order_is_tie() */
	char gone[480];		      /* rows of the baseline that disappeared; clean text */
};

/* Append a row, zeroed. Return NULL if there is no memory for it. */
struct row *list_add(struct list *list);
/* Return the row under the cursor; NULL if there are no rows. */
const struct row *list_current(const struct list *list);

/* The position of cursor and screen in a list. */
struct list_position {
	uint64_t selected;
	uint32_t cursor, top;
	bool pinned;
};

struct list_position list_position(const struct list *list);
/* Restore a position; the rows may have changed. */
void list_restore(struct list *list, const struct list_position *at);
void list_fini(struct list *list);

/* The position in the past: the heat strip, and the range that the views show. */

/* The samples that the strip shows. */
enum rewind_subject {
	REWIND_ALL, /* all in the scope: of the process drilled into, matching the filter */
	REWIND_ROW, /* of the selected row */
	REWIND_OFF, /* no strip */
	REWIND_NR,
};

struct rewind {
	struct strip *strip;	   /* the newest; owned; NULL: none yet */
	struct strip_query *query; /* of the last request; owned; NULL: none */
	enum rewind_subject subject;
	uint64_t span_ns;  /* of the strip; 0: all the past */
	uint32_t trap_seq; /* the last match of a trap that was seen */
	bool said_merged;  /* the merge of old slices was reported */
	bool said_kept;	   /* the times of --keep were */
	uint32_t seq;	   /* of the last request */
	bool peak_wanted;  /* by a key, when the strip of the last request arrives */
	bool on;	   /* the views show, or wait for, this range: */
	uint64_t begin_ns, end_ns;
	bool grid;	  /* a second is a column, of 20 slices */
	bool steers;	  /* the arrows choose slices in it: */
	uint64_t at_ns;	  /* the begin of one */
	uint64_t mark_ns; /* and of the other end of the range; 0: none */
	/* The strip as it was drawn, for the mouse. */
	uint16_t row, col, rows, cols;
	bool dragging; /* a press is held in columns @from to @to */
	uint32_t from, to;
};

/*
 * Which samples are shown: of which event, process, thread, cgroup and code. The
 * main thread.
 */

#define SCOPE_NAME_MAX 128

/* The process, or group of processes, in which a thread was opened. */
struct scope_outer {
	uint32_t process;
	char group[TEXT_MAX];
	enum grouping group_by;
	char name[SCOPE_NAME_MAX]; /* clean text; "": there is none */
};

struct scope {
	char event_name[EVENT_NAME_MAX]; /* "" the first */
	bool with_waits;		 /* the time of a clock and of waits together */
	bool latency;			 /* the weights of latency, if there are any */
	enum {
		IDLE_AUTO,
		IDLE_SHOWN,
		IDLE_HIDDEN
	} idle;		      /* waits; AUTO: hidden beside CPU time, else of kernel threads only */
	bool drilled;	      /* into one process */
	uint32_t process;     /* its id */
	char group[TEXT_MAX]; /* or into a group of processes: its whole name; "": none */
	enum grouping group_by;		   /* of that group */
	char process_name[SCOPE_NAME_MAX]; /* clean text */
	bool in_thread;			   /* drilled further, into one thread */
	uint32_t thread;		   /* its id */
	char thread_group[FORMAT_MAX * 2]; /* or into a group of threads: "worker-*"; clean */
	struct scope_outer outer;	   /* of that thread, or group of threads */
	bool by_user;			   /* only processes of one user */
	uid_t uid;
	struct match cgroup; /* only processes of a matching cgroup or container */
};

/* Return whether only samples of some processes are shown, of a user or of cgroups. */
static inline bool scope_chooses(const struct scope *s)
{
	return s->by_user || match_active(&s->cgroup);
}

/* The views, in the order of their tabs. */

enum view_id {
	VIEW_FUNCTIONS,
	VIEW_PROCESSES,
	VIEW_TREE,
	VIEW_FLAME,
	VIEW_CPUS,
	VIEW_MODULES,
	VIEW_MESSAGES,
	VIEW_HELP, /* views before this one have tabs */
	VIEW_CALLERS,
	VIEW_ANNOTATE,
	VIEW_BRANCHES,
	VIEW_MEMORY,
	VIEW_NR,
};

/* The annotated function, and the view to go back to. Runs on: the main thread. */

/* The mode of the annotate view. */
enum annotate_mode { ANNOTATE_BOTH, ANNOTATE_SOURCE, ANNOTATE_ASSEMBLY, ANNOTATE_NR_MODES };

/* A caller to go back to. */
struct annotate_level {
	uint32_t function;
	uint64_t selected;
	char name[256]; /* clean text */
};

#define ANNOTATE_LEVELS 16

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

/* A line being typed, and the prompt at the bottom that has one. Any thread. */

#define LINE_SIZE TEXT_MAX /* with the NUL */

/* Always valid UTF-8 of printable code points. */
struct line {
	char text[LINE_SIZE];
	size_t size, at; /* bytes; the cursor */
	size_t max;	 /* bytes that may be typed; 0: as many as fit */
	bool full;	 /* the last key did not fit */
};

/* Replace the text; it is cleaned. */
void line_set(struct line *l, const char *text);
/*
 * Edit by a key (text, arrows, Bksp, ^U ^W). Return false if the key is not for a line;
 * *changed: the text is another one.
 */
bool line_key(struct line *l, uint32_t code, bool *changed);

enum prompt_kind {
	PROMPT_NONE,
	PROMPT_SEARCH,
	PROMPT_FILTER,
	PROMPT_DELAY,
	PROMPT_LIMIT,
	PROMPT_COMMAND,
	PROMPT_REWIND,
	PROMPT_REPLACE, /* a file that exists: y or another key */
};

#define PROMPT_CANDIDATES 512

struct prompt {
	enum prompt_kind kind;
	struct line line;
	bool fresh;			    /* a number that the first digit replaces */
	bool missed;			    /* the search found nothing */
	char candidates[PROMPT_CANDIDATES]; /* how a command can continue; "": unknown */
	char before[MATCH_MAX];		    /* restored by Esc */
	char tabbed[LINE_SIZE]; /* the line at a Tab, while its words are being read; "" */
	struct list_position position_before;
};

/* A picker: entries over the screen that narrow while one types. Runs on: the main thread. */

struct dialog_entry {
	char name[EVENT_NAME_MAX]; /* typed text is compared with it; clean text */
	char detail[128];	   /* the same */
	uint64_t value;		   /* of the picker */
	bool heading;		   /* cannot be selected */
	bool used;		   /* in use now */
	bool first;		   /* the cursor starts here, not at the entry in use */
	bool refused;
};

/* One kind of picker. */
struct dialog_ops {
	const char *title;
	const char *hint; /* beside the empty input line */
	const char *foot; /* NULL: none */
	/* Write a line above @foot that changes; NULL: none. */
	void (*status)(const struct ui_state *st, char *buf, size_t size);
	/* Handle a key while nothing is typed. Return false if it is not for the picker. */
	bool (*key)(struct ui_state *st, uint32_t code);
	bool can_add; /* Tab */
	/* Write the second line as it is for @entry. Return false, with a message, if it has none.
	 * NULL: no second line. */
	bool (*field)(struct ui_state *st, const struct dialog_entry *entry, struct line *line);
	/* Fill st->dialog.entries; called at opening and with each profile. */
	void (*fill)(struct ui_state *st);
	/* Use an entry, or (NULL) the typed text if none matches. Return true to close. */
	bool (*use)(struct ui_state *st, const struct dialog_entry *entry, bool add);
};

/* The levels of the next picked event, in the event picker. */
struct dialog_levels {
	bool user, kernel;
	uint8_t precise;
};

struct dialog {
	const struct dialog_ops *ops; /* NULL: closed */
	void *data;		      /* of the picker; NULL: none */
	void (*drop)(void *data);
	bool typing; /* in the menu: keys are text after / */
	struct dialog_levels levels;
	struct line line;
	bool in_field; /* keys go to the second line, about the entry at the cursor: */
	struct line field;
	struct dialog_entry *entries;
	uint32_t nr, capacity;
	uint32_t *shown; /* indices of entries that match */
	uint32_t nr_shown;
	uint32_t cursor, top, page; /* in shown */
};

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

#define ZONES_MAX	 64
#define UI_STATE_ANSWERS 16

struct ui_state {
	struct sampler *sampler;
	const struct ui_config *config;
	struct settings set; /* the values now; some are of the profile: actions_settings() */
	const struct glyphs *glyphs;
	const struct user_keys *user_keys; /* keys of the settings; NULL: none */
	char host[65];
	uint64_t now_ns;

	struct profile *latest;	   /* the newest; owned */
	struct profile *shown;	   /* source of the rows: the latest, or kept while frozen; owned */
	struct profile *baseline;  /* compared with (B); owned; NULL: none */
	const char *baseline_path; /* of its file; NULL: it was shown here */
	bool frozen;
	bool target_gone;     /* as it was in the last profile; */
	uint64_t gone_ns;     /* the clock of the header when it became so */
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
	uint64_t recorded_kb; /* a second, of the recording that is written */
	bool full_names, follow, hide_header;
	unsigned int scroll; /* cells that names are scrolled by */

	struct alarm *alarms;
	uint32_t nr_alarms;
	uint32_t worst;	   /* id + 1 of the sampler's message in the bottom line */
	uint64_t worst_ns; /* when it was a warning last */
	uint64_t taken_ns; /* when the latest profile came */
	char message[256]; /* clean text */
	bool message_bad;
	uint64_t message_until_ns;
	uint64_t message_held_ns; /* an error: until then, or the next key, no other one is shown */
	uint32_t status_seq;	  /* profile.status_seq when it was last shown */

	/* Answers to keys and commands that are errors or longer than a line, the oldest first. */
	struct profile_message answers[UI_STATE_ANSWERS];
	uint32_t nr_answers, answer_seq;

	struct prompt prompt;
	/* The last file to be written, if it was not to replace one. */
	struct {
		char path[LINE_SIZE]; /* "": none */
		bool screen;
		bool over;  /* the command has a '!' */
		int format; /* enum export_format */
	} written;
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
	bool by_thread;		     /* processes split by thread (H) */
	bool process_tree;	     /* processes below their parents (t) */
	struct folds *folds;	     /* a cache that const readers fill; NULL: no memory */
	struct file_worker *files;   /* borrowed; NULL: the main thread writes files */
	struct file_worker *folders; /* the same, for Tab: it may hang without a file that waits */
	struct packages *packages;   /* borrowed; NULL: packages of files are not looked up */
	struct folding *folding;     /* borrowed; NULL: the main thread folds */

	char copy[TEXT_MAX + 4]; /* for the clipboard; "": nothing */
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
void ui_state_zone(struct ui_state *st, const struct zone *zone);

static inline struct list *ui_state_list(struct ui_state *st)
{
	return &st->lists[st->view];
}

/* The worst message of the last seconds, from warnings on; NULL: none. */
const struct profile_message *ui_state_worst(const struct ui_state *st);
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

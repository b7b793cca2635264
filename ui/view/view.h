/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The views: a table of columns over rows made from a profile, and the lines around it.
 *
 * The caller owes: a state and a canvas; the main thread.
 *
 * The room does: all that differs between views is a member of struct view; table.c does the rest:
 * rows, order, columns, drawing, mouse zones.
 *
 * Not for: changing the state on a key (ui/actions.c), but for moves inside a view.
 *
 * Runs on: the main thread.
 */
#ifndef UI_VIEW_VIEW_H
#define UI_VIEW_VIEW_H

#include "sampler/profile/profile.h"
#include "ui/state/state.h"

struct arrows;
struct canvas;
struct folds_tree;
struct match;

void arrows_fini(struct arrows *a);

struct flame_box {
	uint32_t node;	/* of the tree; of a rest, the parent */
	uint32_t level; /* of the zoomed node: 0 */
	uint16_t col, cols;
	uint32_t rest;	     /* number of nodes in it; 0: it is the node itself */
	uint32_t cut;	     /* number of frames it represents, @node the innermost; 0: one */
	double start, total; /* weight: at the left within the zoomed node, and its own */
};

/*
 * Lines below the rows of a view, about the selected row or all rows. Long
 * text is broken at blanks.
 *
 * Runs on: the main thread.
 */

struct foot {
	struct canvas *c;	      /* NULL: only count the lines */
	unsigned int row, rows, cols; /* where, and how many at most */
	unsigned int used;
};

/* Return the bytes of @text that fit on a line of @cols: up to two blanks, which separate values,
 * else up to one, but not that in "4 999". */
size_t foot_line_bytes(const char *text, unsigned int cols);

/*
 * The top of the screen: target, event, rate, losses. The figures are of the
 * newest profile, even when the rows are frozen.
 *
 * Runs on: the main thread.
 */

/* Draw it. Return the rows used, at least 1. */
unsigned int header_draw(struct ui_state *st, struct canvas *c);

/* The heat strip: the past as one line of the header. Runs on: the main thread. */

/* Return the columns of a strip on a screen of @cols. */
uint32_t header_strip_columns(unsigned int cols);
/* Return the lines of a grid on a screen of @rows: a divisor of its rows; 0: it is too low. */
static inline unsigned int header_grid_lines(unsigned int rows)
{
	return rows >= 44   ? STRIP_GRID_ROWS
	       : rows >= 22 ? STRIP_GRID_ROWS / 2
	       : rows >= 16 ? STRIP_GRID_ROWS / 4
			    : 0;
}
/* Write a time of the past: "14:03:22", with "10-21 " before it if the past is of two days;
 * "+12.3s" from the start of a recording. */
const char *header_strip_moment(const struct ui_state *st, uint64_t time_ns, char *buf,
				size_t size);
/*
 * Get the range that is shown: with the whole slices in it, of which one may be longer than what
 * was asked for.
 */
void header_strip_range(const struct ui_state *st, uint64_t *begin_ns, uint64_t *end_ns);
/*
 * Return the step of the keys earlier and later: the shown range, so that no sample is skipped. The
 * first range is the window; a twentieth of the strip of a recording.
 */
uint64_t header_strip_step(const struct ui_state *st);
/* Write the position in the past and the keys that change it. */
const char *header_strip_hint(const struct ui_state *st, char *buf, size_t size);

/* From view to view, into processes and threads and out again. Runs on: the main thread. */

/* Change the view. */
void navigate_to(struct ui_state *st, enum view_id view);
/* Drill into the process with that id; leave it. */
void navigate_into_process(struct ui_state *st, uint32_t id);
/* Merge the processes by name, container or unit, or do not. */
void navigate_by_group(struct ui_state *st, enum grouping by);
void navigate_out_of_process(struct ui_state *st);
/* Leave it without a change of the view. */
void navigate_close_process(struct ui_state *st);
/* Return the tab that the shown view was opened from. */
enum view_id navigate_tab(const struct ui_state *st);
/* Drill into a thread, or group of threads: a row of the view of threads. */
void navigate_into_thread(struct ui_state *st, const struct row *row);
/* Leave it for the process or group that it was opened in. Return false if there is none. */
bool navigate_out_of_thread(struct ui_state *st);
/* Show the functions of one module: an index in the shown profile's. */
void navigate_into_module(struct ui_state *st, uint32_t module);
/* Show the callers and callees of the function with that id. */
void navigate_to_callers(struct ui_state *st, uint32_t id);

/* Note the process or thread of the selected row; the next rows that are built have it selected. */
void process_rows_keep_selected(struct ui_state *st);

/*
 * The rows of a view: made, put in order, moved through and drawn. Code shared by all views. The
 * main thread.
 */

/* Make the rows of a view again; keep the cursor on its row. */
void table_rebuild(struct ui_state *st, enum view_id id);
/*
 * Rebuild after a change of order: the cursor keeps its line of the screen, or (F) its row, in
 * sight.
 */
void table_reorder(struct ui_state *st);
/*
 * Rebuild after a change of filter or limit: the top is in sight. The cursor keeps its row if that
 * is on the first page, else its line of the screen; with F its row, in sight.
 */
void table_narrow(struct ui_state *st);
/* Sort by a column; the same column again reverses the order. */
void table_sort_by(struct ui_state *st, uint8_t column);
void table_move_to(struct ui_state *st, uint32_t row);
/* Move to the next row that matches the search, starting at @from. Return false if none does. */
bool table_search(struct ui_state *st, uint32_t from, bool backwards);
/*
 * Write the outcome of a search that no row matches: "not found", or the share of the samples that
 * match, and their rows.
 */
void table_missed(struct ui_state *st, char *buf, size_t size);
/* Draw titles and rows into @rows lines, starting at line @row. */
void table_draw(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows);

/* Return its listing; NULL while it is loading. */
const struct listing *view_annotate_listing(const struct ui_state *st);
/* Find the source of a row. Return false if it has none. @file: index in files. */
bool view_annotate_source(const struct ui_state *st, const struct row *row, uint32_t *file,
			  uint32_t *line);
/* Request the function with that id, and show it; @name: clean. */
void view_annotate_open(struct ui_state *st, uint32_t function, const char *name);
/* Handle a new profile: the first with code selects the hottest instruction. */
void view_annotate_arrived(struct ui_state *st);

/* Where a cell is drawn. */
struct view_field {
	unsigned int row, col, cols;
};

struct view_column {
	struct safe_text title, ascii; /* @ascii: for terminals that cannot show the title */
	/* Return a title that changes, into @buf if need be. NULL: @title. */
	struct safe_text (*heading)(const struct ui_state *st, char buf[static TEXT_MAX]);
	const char *name; /* in the settings; NULL: the title */
	const char *help;
	uint8_t width, wide; /* cells; @wide from 100 columns on; 0: a part of the rest */
	uint16_t from;	     /* least width of the screen */
	bool right;	     /* aligned */
	bool ascending;	     /* the natural order: texts */
	bool one_way;	     /* never reversed */
	/* It orders by a figure with noise. */
	enum { COLUMN_EXACT, COLUMN_SELF, COLUMN_TOTAL, COLUMN_SAMPLES, COLUMN_CPU } share;
	bool extra;				   /* hidden while names are shown in full */
	bool (*always)(const struct ui_state *st); /* true: also on narrow screens */
	bool (*when)(const struct ui_state *st);   /* false: hidden */
	bool (*broad)(const struct ui_state *st);  /* true: names need 1.5 times the width */
	int (*compare)(const struct ui_state *st, const struct row *a, const struct row *b);
	void (*draw)(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at);
};

/* A label of the key bar in this view. */
struct view_label {
	enum action action;
	const char *label;
};

/* The columns of P, T and M. */
struct view_sorts {
	uint8_t self, total, module;
};

#define VIEW_NO_COLUMN UINT8_MAX

struct view {
	struct safe_text title;
	enum key_context context; /* CTX_LIST or CTX_HELP: the meaning of keys */
	bool stacks;	  /* rows or boxes are stacks: drilling and splitting keep this view */
	bool scoped;	  /* rows are of the process or thread drilled into; else of all */
	bool by_module;	  /* shows one module's functions while st->only is on */
	bool newest;	  /* made of the newest profile, though another one is kept */
	bool when_shown;  /* too expensive to build while another view is shown */
	const char *unit; /* text of the position at the right; NULL: rows and samples */
	/* Get that position, where rows are parts of what is counted; NULL: of rows. */
	void (*position)(const struct ui_state *st, const struct list *list, uint32_t *at,
			 uint32_t *nr);
	const struct view_label *labels; /* ends with ACT_NONE; NULL: none */
	const struct view_column *columns;
	uint8_t nr_columns;
	const struct view_sorts *sorts; /* NULL: none */
	/* Add all rows of the shown profile to @list, unsorted. Return 0 or -ENOMEM. */
	int (*build)(const struct ui_state *st, struct list *list);
	/* Set the figures of a row that is drawn which cost too much for all rows. NULL: none. */
	void (*finish)(const struct ui_state *st, struct row *row);
	/* Return whether @m matches the text of the row. */
	bool (*finds)(const struct ui_state *st, const struct row *row, const struct match *m);
	/*
	 * Return the place of the matches that no row shows, and the share of samples with them, 0:
	 * there are none. NULL: all are rows, unless the filter or limit hides them.
	 */
	const char *(*missed)(const struct ui_state *st, const struct match *m, double *share);
	bool search_opens; /* rows depend on the search: it opens folds */
	/* The share compared with the baseline; requires name or tree. */
	enum { COMPARED_NOT, COMPARED_SELF, COMPARED_TOTAL, COMPARED_WEIGHT } compared;
	/* Return the name of the row. */
	struct safe_text (*name)(const struct ui_state *st, const struct row *row, char *buf,
				 size_t size);
	/* Hash the parts of a row that survive a rebuild or restart. NULL: not compared. */
	uint64_t (*identity)(const struct ui_state *st, const struct row *row);
	/* Return the tree that rows are nodes of; NULL (also the result): none. */
	const struct folds_tree *(*tree)(const struct ui_state *st);
	/* Put the sorted rows in the order of a tree. NULL: not needed. */
	void (*arrange)(const struct ui_state *st, struct list *list);
	/* Draw a whole row (help). NULL: by columns. */
	void (*draw_row)(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at);
	/* Draw lines below the rows, about @row (NULL: none). Return their number. NULL: none. */
	unsigned int (*foot)(const struct ui_state *st, const struct row *row, struct foot *f);
	/* Draw everything below the header. NULL: rows. */
	void (*draw)(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows);
	/* Do an action in the way of this view. Return false for the general way. */
	bool (*act)(struct ui_state *st, enum action action, uint32_t code);
	/* Handle a press in the zone of rows. Return false if nothing is there. NULL: rows. */
	bool (*click)(struct ui_state *st, unsigned int row, unsigned int col);
	/* Handle the wheel over the rows; a drag by that many cells. NULL: none. */
	void (*wheel)(struct ui_state *st, bool up, unsigned int row, unsigned int col);
	void (*drag)(struct ui_state *st, int rows, int cols);
	/* Write the options of this view that are on, for the line of tabs. NULL: none. */
	size_t (*options)(const struct ui_state *st, char *buf, size_t size);
	/* Return the module of a row: index in modules. NULL: none. */
	uint32_t (*module)(const struct ui_state *st, const struct row *row);
	/* Return the text to copy of a row, into @buf if need be. NULL: its function's name. */
	const char *(*copied)(const struct ui_state *st, const struct row *row,
			      char buf[static TEXT_MAX]);
	/* Return the message of a row, with a fix that Enter applies. NULL: none. */
	const struct profile_message *(*message)(const struct ui_state *st, const struct row *row);
	/* Return the function of a row: index in functions, UINT32_MAX: none. NULL: never. */
	uint32_t (*function)(const struct ui_state *st, const struct row *row);
	bool own_rows;		/* build() applies filter and limit */
	bool own_order;		/* build() sorts the rows */
	struct safe_text empty; /* shown if there are no rows; "": the usual text */
};

extern const struct view view_cpus, view_modules, view_messages, view_annotate;

const struct view *view_of(enum view_id id);
/* The view that is shown, and the row under its cursor; NULL: none. */
const struct view *view_shown(const struct ui_state *st);
const struct row *view_row(const struct ui_state *st);

/* The samples that the rows of the shown view are of. */
enum view_scope {
	VIEW_ALL,	  /* of all processes: none is drilled into, or the view shows all */
	VIEW_ALL_THREADS, /* of all threads of the process drilled into */
	VIEW_DRILLED,	  /* of the process, thread or group drilled into */
};

enum view_scope view_scope(const struct ui_state *st);
/* Return whether they are of all processes: not of one, nor of a user or of cgroups. */
bool view_is_whole(const struct ui_state *st);
/* Where a key goes that is pressed now. */
enum key_context view_context(const struct ui_state *st);
/* Index of the selected row's function in the shown profile; UINT32_MAX: none. */
uint32_t view_function(const struct ui_state *st);
/* Its name as it is copied; "" if it has none. */
const char *view_row_name(const struct ui_state *st, char buf[static TEXT_MAX]);

/* Return whether there is a baseline with the shown event. */
bool baseline_is_on(const struct ui_state *st);

/* The columns a view shows: all that fit, or the picked ones. Runs on: the main thread. */

#define COLUMNS_NAME_MAX 24

/* Return the view of column setting @i (0 to CONFIG_COLUMN_VIEWS - 1). */
enum view_id columns_view(unsigned int i);
/* Return the name of a column in settings and picker: "self", "cpu", "command-line". */
const char *columns_name(const struct view_column *column, char buf[static COLUMNS_NAME_MAX]);
/* Convert "self,total" to bits, and back; unknown names are ignored. */
uint32_t columns_parse(const struct view *v, const char *text);
void columns_format(const struct view *v, uint32_t columns, char *out, size_t size);
/* Sort @list by "total" or "total reversed", and write how it is sorted. */
void columns_parse_sort(const struct view *v, const char *text, struct list *list);
void columns_format_sort(const struct view *v, const struct list *list, char *out, size_t size);
/* Return the title above a column, written into @buf if it changes. */
struct safe_text columns_heading(const struct ui_state *st, const struct view_column *column,
				 bool ascii, char buf[static TEXT_MAX]);
/* Return whether rows can be sorted by column @i now. */
bool columns_sortable(const struct ui_state *st, const struct view *v, int i);
/* Return whether column @i is shown on a screen of @cols. @picked: bits of columns; 0: automatic.
 */
bool columns_shown(const struct ui_state *st, const struct view *v, uint32_t picked, int i,
		   unsigned int cols);

/* Return the column for --sort. */
uint8_t function_columns_find(enum ui_config_sort sort);

#endif

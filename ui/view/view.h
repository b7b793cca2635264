/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A view: a table of columns over rows made from a profile. All that differs
 * between views is a member of struct view; table.c does the rest.
 *
 * Runs on: the main thread.
 */
#ifndef UI_VIEW_VIEW_H
#define UI_VIEW_VIEW_H

#include "ui/draw/canvas.h"
#include "ui/state/state.h"
#include "ui/view/foot.h"

/* Where a cell is drawn. */
struct view_field {
	unsigned int row, col, cols;
};

struct fold_filter;
struct folds_tree;
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
	enum { COLUMN_EXACT, COLUMN_SELF, COLUMN_TOTAL, COLUMN_SAMPLES } share;
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
extern const struct view view_functions, view_processes, view_help;
extern const struct view view_tree, view_flame, view_callers;
extern const struct view view_cpus, view_modules, view_messages, view_annotate;
extern const struct view view_branches, view_memory;
const struct view *view_of(enum view_id id);
/* Return whether the action is on the card of keys. */
bool view_help_has(enum action action);

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
/* The same as a filter. Return false if there are none. */
bool view_filter(const struct ui_state *st, struct fold_filter *f);
/* Where a key goes that is pressed now. */
enum key_context view_context(const struct ui_state *st);
/* Index of the selected row's function in the shown profile; UINT32_MAX: none. */
uint32_t view_function(const struct ui_state *st);
/* Index of its module; UINT32_MAX: none. */
uint32_t view_module(const struct ui_state *st);
/* Its name as it is copied; "" if it has none. */
const char *view_row_name(const struct ui_state *st, char buf[static TEXT_MAX]);

/* Drawing that several views share. */
void view_draw_percent(struct canvas *c, struct view_field at, double share);
void view_draw_bar(const struct ui_state *st, struct canvas *c, struct view_field at, double share,
		   enum theme_role role);

#endif

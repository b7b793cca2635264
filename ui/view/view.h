/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A view: a table of columns over rows made from a profile. What is the same
 * for all views (sorting, filtering, the cursor, drawing) is in list.c.
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

struct folds_tree;
struct view_column {
	struct safe_text title, ascii; /* @ascii: where the title cannot be shown */
	/* What stands above it instead of the title, into @buf if need be; NULL: the title. */
	struct safe_text (*heading)(const struct ui_state *st, char buf[static TEXT_MAX]);
	const char *name; /* in the settings, where the title is none */
	const char *help;
	uint8_t width, wide; /* cells; @wide from 100 columns on; 0: its part of the rest */
	uint16_t from;	     /* shown from so many columns of screen */
	bool right;	     /* aligned */
	bool ascending;	     /* the natural order: texts */
	bool one_way;	     /* an order that is never turned round */
	bool extra;	     /* leaves when names have the whole width */
	bool (*always)(const struct ui_state *st); /* true: on narrow screens, too */
	bool (*when)(const struct ui_state *st);   /* false: there is no such column now */
	int (*compare)(const struct ui_state *st, const struct row *a, const struct row *b);
	void (*draw)(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at);
};

/* What the key bar calls an action in this view; it may have none elsewhere. */
struct view_label {
	enum action action;
	const char *label;
};

struct view {
	struct safe_text title;
	enum key_context context; /* CTX_LIST or CTX_HELP: what keys mean */
	bool stacks;		  /* rows or boxes are stacks: drilling and splitting stay here */
	bool functions;		  /* about the functions of the process drilled into */
	bool by_module;		  /* shows one module's functions while st->only is on */
	bool newest;		  /* made of the newest profile, though another one is kept */
	bool when_shown;	  /* too expensive to build while another view is shown */
	const char *unit; /* what the position at the right counts; NULL: rows and samples */
	const struct view_label *labels; /* ends with ACT_NONE; NULL: none */
	const struct view_column *columns;
	uint8_t nr_columns;
	uint8_t sort_self, sort_total, sort_module; /* columns of P T M; UINT8_MAX: none */
	/* All rows of the shown profile into @list, unsorted; 0 or -ENOMEM. */
	int (*build)(const struct ui_state *st, struct list *list);
	/* Is @m found in what the row shows? */
	bool (*finds)(const struct ui_state *st, const struct row *row, const struct match *m);
	/* Which share is compared with the baseline; then name or tree is there. */
	enum { COMPARED_NOT, COMPARED_SELF, COMPARED_TOTAL, COMPARED_COUNT } compared;
	/* What the row is called. */
	struct safe_text (*name)(const struct ui_state *st, const struct row *row, char *buf,
				 size_t size);
	/* Rows are nodes of this tree; NULL (also the result): there is none. */
	const struct folds_tree *(*tree)(const struct ui_state *st);
	/* The sorted rows into the order of a tree; NULL: they stay so. */
	void (*arrange)(const struct ui_state *st, struct list *list);
	/* Instead of columns (help): a whole row. NULL otherwise. */
	void (*draw_row)(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at);
	/* Lines below the rows, about @row (NULL: there is none); how many. NULL: none. */
	unsigned int (*foot)(const struct ui_state *st, const struct row *row, struct foot *f);
	/* Everything below the header, instead of rows. NULL: rows. */
	void (*draw)(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows);
	/* What only this view does, or does in its own way; false: as everywhere. */
	bool (*act)(struct ui_state *st, enum action action, uint32_t code);
	/* A press in its zone of rows; false: nothing is there. NULL: rows. */
	bool (*click)(struct ui_state *st, unsigned int row, unsigned int col);
	/* The wheel, over its rows; the mouse let go by so many cells from where it was pressed. */
	void (*wheel)(struct ui_state *st, bool up, unsigned int row, unsigned int col);
	void (*drag)(struct ui_state *st, int rows, int cols);
	/* The options of this view that are on, appended to a list of what is hidden. NULL: none.
	 */
	size_t (*options)(const struct ui_state *st, char *buf, size_t size);
	/* The module of a row: index in modules. NULL: none. */
	uint32_t (*module)(const struct ui_state *st, const struct row *row);
	/* The text to copy of a row, into @buf if need be; NULL: its function's name. */
	const char *(*copied)(const struct ui_state *st, const struct row *row,
			      char buf[static TEXT_MAX]);
	/* The notice of a row, with a fix that Enter applies. NULL: none. */
	const struct profile_notice *(*notice)(const struct ui_state *st, const struct row *row);
	/* The function that a row is about: index in functions, UINT32_MAX: none. NULL: never. */
	uint32_t (*function)(const struct ui_state *st, const struct row *row);
	bool own_rows;		/* build() minds filter and limit itself */
	bool own_order;		/* and rows stay as it made them */
	struct safe_text empty; /* said where there are no rows; NULL: the usual */
};
extern const struct view view_functions, view_processes, view_help;
extern const struct view view_tree, view_flame, view_callers;
extern const struct view view_cpus, view_modules, view_messages, view_annotate;
const struct view *view_of(enum view_id id);
/* Column of the functions view that an app_sort means. */
uint8_t view_functions_column(enum ui_config_sort sort);

/* The view that is shown, and the row under its cursor; NULL: none. */
const struct view *view_shown(const struct ui_state *st);
const struct row *view_row(const struct ui_state *st);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A view: a table of columns over rows made from a profile. What is the same
 * for all views (sorting, filtering, the cursor, drawing) is in list.c.
 */
#ifndef UI_VIEW_VIEW_H
#define UI_VIEW_VIEW_H

#include "ui/view/foot.h"
#include "ui/state.h"

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
uint8_t view_functions_column(enum app_sort sort);

/* Make the rows anew; the cursor stays with what it is on. */
void list_rebuild(struct ui_state *st, enum view_id id);
/* A new row for build(), zeroed; NULL when memory is out. */
struct row *list_add(struct list *list);
/* Anew in another order, or fewer: the selected row stays in sight; without one, to the top. */
void list_reorder(struct ui_state *st);
void list_move(struct ui_state *st, int64_t by);
void list_move_to(struct ui_state *st, uint32_t row);
/* The cursor as it was; the rows may have changed since then. */
void list_restore(struct list *list, uint64_t selected, uint32_t cursor, bool pinned);
/* To the next row that matches the search, @from on, in either direction; false if none. */
bool list_search(struct ui_state *st, uint32_t from, bool backwards);
/* Draw head and rows into @rows lines from @row on. */
void list_draw(struct ui_state *st, struct canvas *c, unsigned int row, unsigned int rows);
/* Say in at most @rows lines why there are no rows, and what helps. */
void list_draw_empty(const struct ui_state *st, struct canvas *c, unsigned int row,
		     unsigned int rows);
void list_fini(struct list *list);

/* Drawing that several views share. */
void view_draw_percent(struct canvas *c, struct view_field at, double share);
void view_draw_bar(const struct ui_state *st, struct canvas *c, struct view_field at, double share,
		   enum theme_role role);

#endif

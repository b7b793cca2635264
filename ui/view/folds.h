/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the views of stacks share: folds of the shown profile and of the one it
 * is compared with, made once for a profile and a filter, and what a person
 * unfolded, zoomed into and came from. The main thread.
 *
 * What was asked for of the shown profile is made of the next one before that
 * is shown, on a thread of its own where there is one (ui/folding), so that a
 * key does not wait for it.
 *
 * Nodes are told apart by the hash of their path, which is the same from
 * profile to profile.
 */
#ifndef UI_VIEW_FOLDS_H
#define UI_VIEW_FOLDS_H

#include "sampler/profile/fold_tree.h"
#include "ui/state/state.h"
#include "ui/view/flame.h"
#include "ui/view/trend.h"

#define FOLDS_MARKS  4096 /* a power of two */
#define FOLDS_LEVELS 64

enum folds_which { FOLDS_TREE, FOLDS_FLAME, FOLDS_NR };
/* Functions as the rows show them; all of them, though the kernel's or others are hidden. */
enum folds_code { FOLDS_SEEN, FOLDS_ALL_CODE, FOLDS_NR_CODE };

/* What a person did to a node of the tree. */
enum folds_mark { MARK_NONE, MARK_OPEN, MARK_CLOSED, MARK_DEEP /* open with all below */ };

/* Of each fold: what it is made by is set from wanted on. */
enum folds_state { FOLDS_NOT, FOLDS_WANTED, FOLDS_MADE };

struct folds_rows {
	enum folds_state state;
	bool with_lines; /* they are wanted, too */
	struct fold_filter filter;
	struct fold_functions fold;
	uint32_t *lines; /* by function: its hottest; NULL: not made */
};

/* Of an event beside the shown one. */
struct folds_event {
	enum folds_state state;
	struct fold_filter filter;
	double *shares; /* by function: of the event's weight, in itself */
};

struct folds_tree {
	enum folds_state state;
	struct fold_tree_config config;
	struct fold_tree fold;
	uint32_t *ids;		   /* of each node */
	struct folds_index *index; /* id -> node */
};

struct folds_callers {
	enum folds_state state;
	uint32_t function; /* index in functions */
	struct fold_filter filter;
	struct fold_callers fold;
};

struct folds_processes {
	enum folds_state state;
	struct fold_filter filter;
	struct fold_processes fold;
};

struct folds_tasks {
	enum folds_state state;
	uint32_t event;
	struct fold_task *sums; /* by task */
};

/* What is made of one profile. */
struct folds_of {
	struct folds_rows rows[FOLDS_NR_CODE];
	struct folds_event events[ROW_EVENTS];
	struct folds_tree trees[FOLDS_NR];
	struct folds_callers callers;
	struct folds_processes processes;
	struct folds_tasks sums;

	/* By task, which samples count: of the cgroup; and of the group of threads. NULL: not made.
	 */
	uint8_t *tasks[2];
	uint32_t *leaders; /* by task: which one stands for those with names alike */
};

struct folds {
	struct folds_of shown, baseline;
	/* Of a profile that is folded before it is shown, on another thread meanwhile. */
	struct folds_of next;
	const struct profile *coming; /* NULL: there is none */
	bool outdated;		      /* what it is folded by has changed since then */
	uint32_t asked;		      /* bits: what was asked for since the shown one came */
	bool late;    /* something of it is not made, and too much to be made here */
	bool lent;    /* @shown is the thread's, which makes it: nothing of it is here */
	bool spoiled; /* it was forgotten meanwhile */

	/* Of functions: everything, and the process drilled into. */
	struct trend trends[2];

	bool fold_recursion; /* in the call tree and the flame graph */
	/* The call tree. */
	bool bottom_up;
	struct {
		uint32_t id;
		uint8_t mark;
	} marks[FOLDS_MARKS];
	uint32_t nr_marks;

	/* The flame graph. */
	bool root_below;
	bool by_module;		     /* colours tell modules apart; else kinds */
	bool by_change;		     /* or, with a baseline, what rose and what fell */
	uint32_t zoom[FOLDS_LEVELS]; /* ids, each below the one before */
	uint32_t nr_zoom;
	double left, width; /* the part in sight of what is zoomed into, 0..1; width 0: all */
	struct flame_box *boxes;
	uint32_t nr_boxes;
	unsigned int cols, rows;     /* of the graph, when it was drawn */
	uint32_t top;		     /* the first level shown */
	uint32_t path[FOLDS_LEVELS]; /* ids from the selected box up */
	uint32_t nr_path;

	/* Callers and callees. */
	uint32_t centres[FOLDS_LEVELS]; /* function ids; the last is shown */
	uint32_t nr_centres;
	enum view_id callers_from;
};

/* NULL when memory is out: the views are empty then. */
struct folds *folds_new(void);
void folds_free(struct folds *s);
/* Another profile is shown, or tasks are chosen otherwise; the baseline is another one. */
void folds_forget(struct folds *s);
void folds_forget_baseline(struct folds *s);
/* Those of the profile that @st shows. */
struct folds_of *folds_of(const struct ui_state *st);
/*
 * What @p, which comes next, should be folded into before it is shown: what was asked for of the
 * shown one. To be given to folds_make() on any thread, one at a time. NULL: nothing.
 */
struct folds_of *folds_plan(const struct ui_state *st, struct profile *p);
void folds_make(const struct profile *p, struct folds_of *of);
/* It is shown from now on, or (frozen) it is not. */
void folds_arrived(struct ui_state *st, struct profile *p);
/*
 * What a key asked for of a large profile that is shown: to be given to folds_make(), with the
 * shown profile; folds are not there until folds_returned(), which makes the rows. NULL: nothing.
 */
struct folds_of *folds_lend(const struct ui_state *st);
void folds_returned(struct ui_state *st);
/* Is it waited for? */
bool folds_is_late(const struct ui_state *st);

/* Parts of the above: made by the same tasks; the group of names alike that a task is in. */
bool folds_same_filter(const struct fold_filter *a, const struct fold_filter *b);
uint64_t folds_group(const struct profile *p, const struct profile_task *task);
/* A thread among others; for qsort(), groups side by side, each in order of its tasks. */
struct folds_member {
	uint64_t group;
	uint32_t task;
};
int folds_by_group(const void *a, const void *b);
/* By task, the first of those named alike; NULL: each for itself. */
const uint32_t *folds_leaders(const struct ui_state *st);
void folds_forget_masks(struct folds_of *of);
/* Ids for the nodes of a tree that was made, and their index; false: no memory for them. */
bool folds_number(const struct profile *p, struct folds_tree *t);
void folds_forget_numbers(struct folds_tree *t);

/* Remember the shares of the profile that is shown from now on. */
void folds_note(const struct ui_state *st);
/* The history that belongs to what is shown, and what tells it from others. */
struct trend *folds_trend(const struct ui_state *st);
uint64_t folds_key(const struct ui_state *st);
/* How a function's share changed against the window before, into the row. */
void folds_compare(const struct ui_state *st, struct row *row);
/* Which samples are shown; false: none. */
bool folds_filter(const struct ui_state *st, struct fold_filter *f);
/* The same without process and thread: all that the choice of a cgroup leaves. */
void folds_filter_all(const struct ui_state *st, struct fold_filter *f);
/* Borrowed until the profile, the filter or an option changes; NULL: nothing to show, or not yet.
 */
const struct fold_functions *folds_functions(const struct ui_state *st, enum folds_code code);
/* The @n-th event beside the shown one, as index in the profile's; UINT32_MAX: there is none. */
uint32_t folds_other(const struct ui_state *st, uint32_t n);
/* By function, the share of its samples that are in the function itself; NULL: there is none, or
 * not yet. */
const double *folds_other_shares(const struct ui_state *st, uint32_t n);
/* The source line that a function was in most; NULL: not known. */
const struct profile_line *folds_line(const struct ui_state *st, uint32_t function);
const struct folds_tree *folds_tree(const struct ui_state *st, enum folds_which kind);
/* Whoever cannot wait: made here, however much it is. */
const struct folds_tree *folds_tree_now(const struct ui_state *st, enum folds_which kind);
const struct fold_callers *folds_callers(const struct ui_state *st, uint32_t function);
/* Of all processes, drilled or not; and, by task, of all samples of the event. */
const struct fold_processes *folds_processes(const struct ui_state *st);
const struct fold_task *folds_tasks(const struct ui_state *st);

/* What a person did to the node, and doing it; false: no room to remember it. */
enum folds_mark folds_mark_of(const struct folds *s, uint32_t id);
bool folds_mark(struct folds *s, uint32_t id, enum folds_mark mark);

/* The node as text ("main", "nginx[812]", "worker-1[815]", "system") and its kind ('p': no
 * function). */
struct safe_text folds_text(const struct ui_state *st, const struct fold_tree_node *node, char *buf,
			    size_t size);
char folds_kind(const struct ui_state *st, const struct fold_tree_node *node);
/* Index in functions of the shown profile; FOLD_NONE: it is not there. */
uint32_t folds_function(const struct ui_state *st, uint32_t id);
/* Node by id; FOLD_NONE: it is not there. */
uint32_t folds_node(const struct folds_tree *t, uint32_t id);
/* A row's share of a node, for views whose rows are nodes. */
void folds_row(const struct folds_tree *t, uint32_t n, struct row *row);

#endif

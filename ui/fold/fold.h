/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folds of the shown profile: rows, trees, callers, kept while it is shown; shares over a minute.
 *
 * The caller owes: a profile that lives as long as its folds.
 *
 * The room does: makes each fold once, large ones on a thread; says which samples it counts.
 *
 * Not for: order of rows on the screen (ui/view/table.c).
 */
#ifndef UI_FOLD_FOLD_H
#define UI_FOLD_FOLD_H

#include "sampler/profile/profile.h"
#include "ui/state/state.h"

struct folds_index;
struct folds_of;

/*
 * Shares of each function in each of the last 60 seconds, by function id.
 * Bounded: light functions are left out when it is full. Runs on: the main thread.
 *
 * A history belongs to one event, rate, window, target and process or thread; for another one
 * it starts again.
 */

#define TREND_SECONDS 60

struct trend_entry {
	uint32_t id;
	bool used;
	float shares[TREND_SECONDS]; /* 0..1, at second % TREND_SECONDS */
};

struct trend {
	struct trend_entry *entries; /* TREND_FUNCTIONS of them, by hash; NULL: none yet */
	uint32_t nr;
	uint64_t key;	      /* of event, scope, window: folds_trend_key() */
	uint64_t first, last; /* known seconds; first > last: none */
	uint64_t begun;	      /* the second in which the history of this key began */
	uint64_t purged;      /* when functions without samples were removed */
};

/* Return the share of a function @ago seconds before the last; negative: unknown. */
double trend_share(const struct trend *t, uint32_t id, uint32_t ago);

/*
 * Folds of the shown profile and of the baseline, each made once for a profile and its input, and
 * kept; and the user's position: unfolded nodes, zoom, the previous view. The main thread, but for
 * folds_make().
 *
 * The folds requested of the shown profile are made of the next profile before it is shown, on the
 * folding thread, so that no key waits. Large ones of the shown profile and of
 * the baseline are left to that thread also.
 *
 * Nodes are identified by the hash of their path, which is the same from
 * profile to profile.
 */

#define FOLDS_MARKS    4096 /* a power of two */
#define FOLDS_LEVELS   64
#define FOLDS_SIBLINGS 64 /* children of a node that have an order */

/* The user's choice for a node of the tree. */
enum folds_mark { MARK_NONE, MARK_OPEN, MARK_CLOSED, MARK_DEEP /* open with all below */ };

enum folds_kind {
	FOLDS_SEEN,	/* functions as the rows show them */
	FOLDS_ALL_CODE, /* functions of all code, while the kernel's or others are hidden */
	FOLDS_LINES,	/* the hottest line of each function */
	FOLDS_TREE,
	FOLDS_FLAME,
	FOLDS_CALLERS, /* of one function */
	FOLDS_PROCESSES,
	FOLDS_TASKS,
	FOLDS_TIMES,
	FOLDS_RATIOS, /* of events, by function */
	FOLDS_EVENTS, /* ROW_EVENTS of them: shares of the events beside the shown one */
	FOLDS_NR = FOLDS_EVENTS + ROW_EVENTS,
};

/* The input of a fold beside the profile: equal inputs make equal folds. */
struct folds_input {
	struct fold_tree_config config; /* of other kinds than trees: its filter alone */
	uint32_t function;		/* FOLDS_CALLERS: index in functions */
};

struct folds_tree {
	struct fold_tree_config config;
	struct fold_tree fold;
	uint32_t *ids;		   /* of each node */
	struct folds_index *index; /* id -> node */
};

/* One fold. WANTED: its input is set; MADE: so is its result. */
struct folds_entry {
	enum { FOLDS_NONE, FOLDS_WANTED, FOLDS_MADE } state;
	struct folds_input input;
	union {
		struct fold_functions functions;
		uint32_t *lines; /* by function; PROFILE_NO_LINE: unknown */
		struct folds_tree tree;
		struct fold_callers callers;
		struct fold_processes processes;
		struct fold_task *tasks; /* by task */
		double *times;		 /* by task, WAIT_NR of each */
		double *shares;		 /* by function: of the event's weight, in itself */
		double *ratios;		 /* by function, RATIOS_MAX of each */
	};
};

/* Processes shown as one; by index in processes. */
struct folds_groups {
	enum grouping by;
	uint32_t *leaders; /* the first of its group; NULL: not made */
	uint64_t *ids;	   /* of the group: the same in all profiles; in order of names */
	uint32_t *sizes;   /* processes in the group, of the user and cgroup that are shown */
};

/* All that is made of one profile. */
struct folds_of {
	struct folds_entry entries[FOLDS_NR];
	/*
	 * By task, whether its samples count: by cgroup, and by cgroup and group of threads.
	 * Inputs borrow them. NULL: not made.
	 */
	uint8_t *tasks[2];
	uint32_t *leaders; /* by task: the first task of the same name */
	struct folds_groups groups;
	struct folds_of *old; /* to be freed when these folds are made; NULL: none */
};

/* Which thread may use which folds. The transitions are in folds.c. */
enum folds_phase {
	FOLDS_IDLE = 1,	   /* the main thread has all */
	FOLDS_AHEAD,	   /* @next is being made, of the next profile */
	FOLDS_AHEAD_STALE, /* the same, but the choice of tasks has changed: it will be dropped */
	FOLDS_LENT,	   /* @lent is the folding thread's, which makes the wanted folds */
	FOLDS_LENT_STALE,  /* the same, but it will be dropped */
	FOLDS_NR_PHASES,
};

struct folds {
	struct folds_of shown, baseline, next;
	struct folds_of old; /* of the profile before, until the next one is folded */
	enum folds_phase phase;
	struct folds_of *lent;	/* @shown or @baseline; NULL: none */
	bool comparing;		/* the baseline is in the place of the shown profile (baseline.c) */
	uint32_t requested;	/* bits: kinds that were requested since the profile is shown */
	struct folds_of drafts; /* of the shown profile, of some of its counts; no masks */
	uint32_t drafted;	/* bits: kinds that were last answered with a draft */

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
	bool by_change;		     /* or, with a baseline, by change */
	uint32_t zoom[FOLDS_LEVELS]; /* ids, each below the one before */
	uint32_t nr_zoom;
	double left, width; /* the visible part of the zoomed node, 0..1; width 0: all */
	bool uncut;	    /* frames that all samples share have a box each */
	bool low;	    /* few lines: cut chains of frames */
	unsigned int tall;  /* lines of a box, when it was drawn */
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

/* The input of folds, and the state of the screen. */
struct folds_subject {
	const struct ui_state *st;
	const struct profile *p;
	struct folds_of *of;
};

/* Return NULL if there is no memory: the views are empty then. */
struct folds *folds_new(void);
/* End the thread, and free all folds. */
void folds_free(struct ui_state *st);

/*
 * The folding thread: folds a profile before it is shown, so that keys do not wait for hundreds of
 * thousands of stacks; and frees shown profiles. One profile is folded at a time: until then the
 * sampler keeps the next one.
 */

/* Start the thread. If it cannot start, profiles are folded when they are shown. */
void folds_start(struct ui_state *st);
/* Return a descriptor that is readable when folds_take() has a result; -1: nothing is folded. */
int folds_fd(const struct ui_state *st);
/*
 * Begin to fold @p, the next profile: the kinds that were requested of the shown one. It belongs to
 * the thread until folds_take(). Return false if there is nothing to fold, or no thread.
 */
bool folds_begin(struct ui_state *st, struct profile *p);
/*
 * Begin to make large folds that were requested of the shown profile or of the baseline, unless the
 * thread is busy. Until folds_take() the main thread has none of these folds.
 */
void folds_lend(struct ui_state *st);
/*
 * Take the next profile with its folds; NULL: it is not ready. @made: instead, the folds of
 * folds_lend() are made.
 */
struct profile *folds_take(struct ui_state *st, bool *made);
/* The next profile has arrived: show it, unless the screen is frozen. */
void folds_arrived(struct ui_state *st, struct profile *p);
/* Free @p on the thread, unless the state still shows it or compares with it. */
void folds_release(const struct ui_state *st, struct profile *p);

/* Forget all folds of the shown profile: it is another one, or other tasks count. */
void folds_forget(struct folds *s);
void folds_forget_baseline(struct folds *s);
/* Return whether the screen waits for a fold of the shown profile; while it is compared, the
 * comparison for one of the baseline. */
bool folds_is_late(const struct ui_state *st);
/*
 * The folds: made when they are first requested. If that takes too long, the thread will make them
 * (folds_lend()), and until then folds that walk stacks are of some of the counts, others NULL.
 * NULL also if there is nothing to show. Borrowed until the profile, the scope or an option
 * changes. struct folds is a cache: filling it does not change the state.
 */
const struct fold_functions *folds_functions(const struct ui_state *st);
/* The same with all code, though the kernel's or others are hidden. */
const struct fold_functions *folds_all_code(const struct ui_state *st);
/* By function, the share of an event's samples in itself: of the @n-th beside the shown one. */
const double *folds_other_shares(const struct ui_state *st, uint32_t n);
/* Return the ratios of each function, at [function * RATIOS_MAX]; NULL: none, or late. */
const double *folds_ratios(const struct ui_state *st);
/* That event, as index in the shown profile's; UINT32_MAX: none. */
uint32_t folds_other(const struct ui_state *st, uint32_t n);
/* The hottest source line of a function; NULL: unknown. */
const struct profile_line *folds_line(const struct ui_state *st, uint32_t function);
/* @kind: FOLDS_TREE or FOLDS_FLAME. */
const struct folds_tree *folds_tree(const struct ui_state *st, enum folds_kind kind);
/* Put the @nr children of a node into an order: indices of the order that they have. */
void folds_order_children(const struct ui_state *st, enum folds_kind kind, uint32_t node,
			  const uint32_t *order, uint32_t nr);
/* The same, made now however long that takes. */
const struct folds_tree *folds_tree_now(const struct ui_state *st, enum folds_kind kind);
/* The tree that the rows in sight were made of. */
const struct folds_tree *folds_tree_shown(const struct ui_state *st, enum folds_kind kind);
/* The callers and callees of the function in the centre. */
const struct fold_callers *folds_callers(const struct ui_state *st);
/* All processes, drilled or not. */
const struct fold_processes *folds_processes(const struct ui_state *st);
/* By task, all samples of the shown event. */
const struct fold_task *folds_tasks(const struct ui_state *st);
/* By task, WAIT_NR of each: its time by enum wait_kind, in nanoseconds; WAIT_NO: hidden idle waits.
 * Zero where waits are not measured. */
const double *folds_times(const struct ui_state *st);
/* The history, NULL: it is of another scope; and the key of the shown scope. */
const struct trend *folds_trend(const struct ui_state *st);
uint64_t folds_key(const struct ui_state *st, const struct profile *p);
/* Set the row's change of share against the window before. */
void folds_compare(const struct ui_state *st, struct row *row);
/* Which samples are shown, as a filter. Return false if none are. */
bool folds_filter(const struct ui_state *st, struct fold_filter *f);
/* The same for all threads of the process drilled into. */
bool folds_filter_threads(const struct ui_state *st, struct fold_filter *f);
/* The same without process and thread: event, cgroup and code alone. */
void folds_filter_all(const struct ui_state *st, struct fold_filter *f);
/* Of the shown profile by task, the first task of the same name; NULL: tasks are not merged. */
const uint32_t *folds_leaders(const struct ui_state *st);
/* The group of threads of one name that a task is in, as a hash. */
uint64_t folds_group(const struct profile *p, const struct profile_task *task);

/* A thread of a group; for qsort(): groups side by side, each in order of its tasks. */
struct folds_member {
	uint64_t group;
	uint32_t task;
};

static inline int folds_by_group(const void *pa, const void *pb)
{
	const struct folds_member *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group > b->group ? 1 : -1;
	return COMPARE(a->task, b->task);
}
/* Its groups of processes; NULL: each is alone, or there is no memory. */
const struct folds_groups *folds_groups(const struct ui_state *st);
/* Name the group of a process: "cc1", "docker:3fa1c2d4e5f6", "ssh.service". */
struct safe_text folds_group_name(enum grouping by, const struct profile_process *process,
				  char buf[static TEXT_MAX]);
/* Get and set the user's choice for a node. If too many nodes are marked, the choices of before
 * are dropped, with a message. */
enum folds_mark folds_mark_of(const struct folds *s, uint32_t id);
void folds_mark(struct ui_state *st, uint32_t id, enum folds_mark mark);
/* Return whether the name of the node matches. */
bool folds_finds(const struct ui_state *st, const struct fold_tree_node *node,
		 const struct match *m);
struct safe_text folds_text(const struct ui_state *st, const struct fold_tree_node *node, char *buf,
			    size_t size);
char folds_kind(const struct ui_state *st, const struct fold_tree_node *node);
/* Index in functions of @p by id; FOLD_NONE: unknown. */
uint32_t folds_function(const struct profile *p, uint32_t id);
/* Node by id; FOLD_NONE: it is not there. */
uint32_t folds_node(const struct folds_tree *t, uint32_t id);
/* Set a row's shares from a node, in views of nodes. */
void folds_row(const struct folds_tree *t, uint32_t n, struct row *row);

#endif

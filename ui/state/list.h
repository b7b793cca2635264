/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of a view, and the list that holds them. Runs on: the main thread.
 *
 * A row is identified by its id (function id, process id), never by its index: the cursor keeps its
 * function when rows change order.
 */
#ifndef UI_STATE_LIST_H
#define UI_STATE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/profile/ratios.h"
#include "ui/text/text.h"

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
/* Make space to sort the rows, with @size bytes of keys for each. Return false if there is no
 * memory. */
bool list_reserve_sorted(struct list *list, size_t size);
void list_fini(struct list *list);

#endif

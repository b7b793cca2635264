/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of the stacks of a few sleeping tasks, or the kinds of waits of many, read by a helper,
 * which may hang in one of them.
 *
 * Threads: one owner; the tasks are read on a helper.
 */
#ifndef SAMPLER_WAITS_SLEEP_READER_H
#define SAMPLER_WAITS_SLEEP_READER_H

#include <stdbool.h>

#include "sampler/waits/asleep.h"
#include "sampler/waits/waits.h"

/* Tasks that are read by one job: with stacks, and without. */
#define SLEEP_READER_TASKS 16
#define SLEEP_READER_KINDS 500

enum sleep_reader_state {
	SLEEP_READER_IDLE,
	SLEEP_READER_BUSY,
	SLEEP_READER_DONE,    /* there are copies */
	SLEEP_READER_HUNG,    /* in one process: there are copies of the tasks before it */
	SLEEP_READER_STOPPED, /* it hangs in too many processes: no job is started until one ends */
};

struct sleep_copy {
	struct waits_sleeper task;
	enum wait_kind kind; /* WAIT_NO: it ran */
	uint64_t time_ns;
	struct asleep *copy; /* NULL: the kind alone was read */
};

/* asleep_read() and asleep_kind(); a test has others. */
struct sleep_reader_calls {
	void (*read)(struct asleep *a);
	enum wait_kind (*kind_of)(pid_t tid);
};

struct sleep_reader;

/* NULL: out of memory. */
struct sleep_reader *sleep_reader_new(struct sleep_reader_calls calls);
/* NULL is allowed. A helper that hangs is left. */
void sleep_reader_free(struct sleep_reader *r);
/* Return the state at @now_ns. */
enum sleep_reader_state sleep_reader_look(struct sleep_reader *r, uint64_t now_ns);
/* Report whether it hangs in too many processes. */
bool sleep_reader_stopped(const struct sleep_reader *r);
/*
 * Return the processes that reads hang in, the last one last; borrowed until the next
 * sleep_reader_look() or sleep_reader_drop(), which leave out the ones that no longer do.
 */
struct waits_barred sleep_reader_hung(const struct sleep_reader *r);
/*
 * Return the @nr copies of a job that is done, or hangs, which are in the order of its tasks:
 * valid until sleep_reader_drop().
 */
const struct sleep_copy *sleep_reader_copies(const struct sleep_reader *r, uint32_t *nr);
/* Free the copies, or put a job aside that hangs, so that the next one can be started. */
void sleep_reader_drop(struct sleep_reader *r);
/*
 * Start a job for at most SLEEP_READER_TASKS tasks with @stacks, SLEEP_READER_KINDS without. False:
 * @nr is 0, out of memory, no helper is free.
 */
bool sleep_reader_start(struct sleep_reader *r, const struct waits_sleeper *tasks, uint32_t nr,
			bool stacks);

#endif

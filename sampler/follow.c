// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open events on new tasks of a user or with a name, and again on tasks that were hanging in an
 * exec. Runs on: the builder.
 */
#include "sampler/follow.h"

#include <stdlib.h>
#include <string.h>
#include <urcu-qsbr.h>

#include "sampler/event/task_list.h"
#include "sampler/process_names.h"
#include "sampler/session.h"
#include "symbols/process/procfs.h"

/* How often to search for new tasks. */
#define FOLLOW_NS 1000000000ULL
/* Tasks that are tried again together: each takes 1.5 ms if it still hangs, the first ones more. */
#define AGAIN_MAX 8

/* Return the process of a thread; 0: it has ended. */
static pid_t process_of(pid_t tid)
{
	char text[1024];
	uint64_t pid;

	if (task_list_read(tid, "status", text, sizeof(text)) ||
	    !procfs_status_number(text, strlen(text), "Tgid", &pid))
		return 0;
	return (pid_t)pid;
}

/* Report whether @pid inherited events from its parent: then its fork or exec was in our records.
 */
static bool has_inherited(const struct follow_search *f, pid_t pid)
{
	const struct sampler *s = f->sampler;
	uint64_t birth_ns;
	pid_t parent;

	if (!maps_birth(s->store.maps, pid, time_now_ns(), &birth_ns, &parent))
		return false;
	/* While events of another target were open, their records covered all processes. */
	return birth_ns >= s->live.alone_ns ||
	       (birth_ns >= s->live.opened_ns && task_set_has(&f->opened, parent));
}

/*
 * Report whether @tid has events already. Threads and children of our tasks inherit them, and
 * opening them again would count twice. New are tasks of a parent that never had events, and tasks
 * known from earlier events. *@left_out: its process, if that was left out.
 */
static bool is_followed(const struct follow_search *f, pid_t tid, pid_t *left_out)
{
	pid_t pid;

	*left_out = 0;
	if (task_set_has(&f->listed, tid) || task_set_has(&f->opened, tid))
		return true;
	pid = f->process_of(tid);
	/* Its threads and children inherit nothing before its events are open. */
	if (task_set_has(&f->left_out, pid)) {
		*left_out = pid;
		return false;
	}
	return task_set_has(&f->listed, pid) || task_set_has(&f->opened, pid) ||
	       f->has_inherited(f, pid);
}

uint32_t follow_search(const struct follow_search *f, const pid_t *tids, uint32_t nr, pid_t *fresh)
{
	uint32_t nr_fresh = 0;
	pid_t left_out;

	for (uint32_t i = 0; i < nr; i++) {
		if (is_followed(f, tids[i], &left_out))
			continue;
		/* With more than one thread, its exec is over. */
		if (left_out && task_find(fresh, nr_fresh, left_out) == nr_fresh &&
		    nr_fresh + 1 < nr)
			fresh[nr_fresh++] = left_out;
		fresh[nr_fresh++] = tids[i];
	}
	return nr_fresh;
}

/* Search @tids for tasks without events. Returns how many are @fresh. */
static uint32_t find_fresh(const struct sampler *s, const pid_t *tids, uint32_t nr, pid_t *fresh)
{
	struct follow_search f = { .process_of = process_of,
				   .has_inherited = has_inherited,
				   .sampler = s };
	uint32_t nr_opened, nr_left, nr_fresh;
	const pid_t *opened = counters_tasks(s->live.counters, &nr_opened);
	const pid_t *left = counters_left_out(s->live.counters, &nr_left);

	task_set_init(&f.listed, s->target.tids, s->target.nr_tids);
	task_set_init(&f.opened, opened, nr_opened);
	task_set_init(&f.left_out, left, nr_left);
	nr_fresh = follow_search(&f, tids, nr, fresh);
	task_set_fini(&f.listed);
	task_set_fini(&f.opened);
	task_set_fini(&f.left_out);
	return nr_fresh;
}

/* Open events on tasks of the user or name that are new. */
static void add_tasks(struct sampler *s, uint64_t since_ns)
{
	struct target *t = &s->target;
	pid_t *tids = NULL, *fresh;
	uint32_t nr_fresh;
	struct err e;
	int nr = target_list(t, &s->config, &tids);

	if (nr < 0) {
		free(tids);
		return;
	}
	/* Read forks of our tasks first: no thread drains the side-band while nothing is sampled.
	 */
	rcu_thread_offline();
	sideband_drain(s->live.sideband);
	rcu_thread_online();
	fresh = xcalloc((size_t)nr, sizeof(*fresh));
	nr_fresh = find_fresh(s, tids, (uint32_t)nr, fresh);
	if (nr_fresh) {
		if (counters_add_tasks(s->live.counters, fresh, nr_fresh, &e))
			mailbox_say(&s->mailbox, "%s", e.text);
		recording_add(&s->recording, s->live.counters, fresh, nr_fresh, since_ns);
	}
	free(fresh);
	free(t->tids);
	t->tids = tids;
	t->nr_tids = (uint32_t)nr;
}

/* Report a process of which the command line hangs. */
static void say_hung(struct sampler *s)
{
	uint32_t nr;
	pid_t pid = process_names_take_hung(s->target.names, &nr);
	char name[32];

	if (!pid)
		return;
	if (task_list_read(pid, "comm", name, sizeof(name)))
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	mailbox_add(&s->mailbox,
		    "cannot read the command line of pid %d (%s): it hangs, as %u do; --name "
		    "finds it by that name alone",
		    (int)pid, name, nr);
}

/*
 * List the busy tasks, each followed by the threads of its process that have no events, if it was
 * left out: they inherited nothing. Returns how many; *@out malloc'ed.
 */
static uint32_t with_threads(const struct sampler *s, const pid_t *busy, uint32_t nr, pid_t **out)
{
	uint32_t nr_opened, nr_left, nr_out = 0;
	const pid_t *opened = counters_tasks(s->live.counters, &nr_opened);
	const pid_t *left = counters_left_out(s->live.counters, &nr_left);

	*out = NULL;
	for (uint32_t i = 0; i < nr; i++) {
		bool whole = s->target.kind != TARGET_TIDS &&
			     task_find(left, nr_left, busy[i]) < nr_left;
		pid_t *threads = NULL;
		struct err e;
		int found = whole ? task_list_threads(&busy[i], 1, &threads, &e) : 0;

		*out = xrealloc_array(*out, nr_out + 1 + (uint32_t)MAX(found, 0), sizeof(**out));
		(*out)[nr_out++] = busy[i];
		for (int k = 0; k < found; k++)
			if (threads[k] != busy[i] &&
			    task_find(opened, nr_opened, threads[k]) == nr_opened)
				(*out)[nr_out++] = threads[k];
		free(threads);
	}
	return nr_out;
}

/*
 * Try some of the tasks again that were hanging in an exec, the next ones each time: none has to
 * wait for others that never go on.
 */
static void add_busy(struct sampler *s, uint64_t since_ns)
{
	struct target *t = &s->target;
	pid_t busy[AGAIN_MAX], *tids;
	uint32_t nr = counters_busy(s->live.counters, t->again, busy, AGAIN_MAX);
	struct err e;

	t->again = nr == AGAIN_MAX ? busy[nr - 1] : 0;
	if (!nr)
		return;
	nr = with_threads(s, busy, nr, &tids);
	if (counters_add_tasks(s->live.counters, tids, nr, &e))
		mailbox_say(&s->mailbox, "%s", e.text);
	for (uint32_t i = 0; i < nr; i++)
		if (!counters_is_busy(s->live.counters, tids[i]))
			recording_add(&s->recording, s->live.counters, &tids[i], 1, since_ns);
	free(tids);
}

/* Report a task without events, once. */
static void say_busy(struct sampler *s)
{
	pid_t tid = 0;

	if (counters_busy(s->live.counters, 0, &tid, 1) && tid != s->target.busy)
		mailbox_add(&s->mailbox, "cannot sample task %d: it hangs in an exec", (int)tid);
	s->target.busy = tid;
}

void follow_target(struct sampler *s, uint64_t now_ns)
{
	struct target *t = &s->target;

	if (now_ns - t->looked_ns >= FOLLOW_NS) {
		t->looked_ns = now_ns;
		if (t->kind == TARGET_USER || t->kind == TARGET_NAME)
			add_tasks(s, now_ns);
		if (t->names)
			say_hung(s);
		add_busy(s, now_ns);
	}
	say_busy(s);
	target_check(t);
}

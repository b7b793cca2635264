// SPDX-License-Identifier: GPL-2.0-or-later
/* Open events on new tasks of a user or with a name. Runs on: the builder. */
#include "sampler/follow.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"

/* How often to search for new tasks. */
#define FOLLOW_NS 1000000000ULL

static bool is_listed(const pid_t *tids, uint32_t nr, pid_t tid)
{
	for (uint32_t i = 0; i < nr; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

/* Return the process of a thread; 0: it has ended. */
static pid_t process_of(pid_t tid)
{
	char path[64], text[1024], *line;
	int pid = 0, fd;
	ssize_t nr;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	nr = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[MAX(nr, 0)] = '\0';
	line = strstr(text, "\nTgid:");
	return line && sscanf(line, "\nTgid: %d", &pid) == 1 ? pid : 0;
}

/* Report whether @pid inherited events from its parent: then its fork or exec was in our records.
 */
static bool has_inherited(struct sampler *s, pid_t pid)
{
	uint64_t birth_ns;
	pid_t parent;

	if (!maps_birth(s->store.maps, pid, time_now_ns(), &birth_ns, &parent))
		return false;
	/* While events of another target were open, their records covered all processes. */
	return birth_ns >= s->live.alone_ns ||
	       (birth_ns >= s->live.opened_ns && counters_has_task(s->live.counters, parent));
}

/*
 * Report whether @tid has events already. Threads and children of our tasks inherit them, and
 * opening them again would count twice. New are tasks of a parent that never had events, and tasks
 * known from earlier events.
 */
static bool is_followed(struct sampler *s, pid_t tid)
{
	pid_t pid = process_of(tid);

	return is_listed(s->target.tids, s->target.nr_tids, tid) ||
	       is_listed(s->target.tids, s->target.nr_tids, pid) ||
	       counters_has_task(s->live.counters, tid) ||
	       counters_has_task(s->live.counters, pid) || has_inherited(s, pid);
}

/* Open events on tasks of the user or name that are new. */
static void add_tasks(struct sampler *s, uint64_t since_ns)
{
	struct target *t = &s->target;
	pid_t *tids = NULL, *fresh;
	uint32_t nr_fresh = 0;
	struct err e;
	int nr = target_list(t, s->config.uid, &tids);

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
	for (int i = 0; i < nr; i++)
		if (!is_followed(s, tids[i]))
			fresh[nr_fresh++] = tids[i];
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

void follow_target(struct sampler *s, uint64_t now_ns)
{
	struct target *t = &s->target;

	if ((t->kind == TARGET_USER || t->kind == TARGET_NAME) &&
	    now_ns - t->looked_ns >= FOLLOW_NS) {
		t->looked_ns = now_ns;
		add_tasks(s, now_ns);
	}
	target_check(t);
}

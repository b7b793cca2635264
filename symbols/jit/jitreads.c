// SPDX-License-Identifier: GPL-2.0-or-later
/* Bounded jobs for the files of JIT compilers. Runs on: the loader. */
#include "symbols/jit/jitreads.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_CHECK_NS 10000000000ULL

/* Return the inode of a mount namespace; 0: unknown. */
static uint64_t namespace_of(const char *link)
{
	char text[64];
	ssize_t nr = readlink(link, text, sizeof(text) - 1);

	if (nr < 5)
		return 0;
	text[nr] = '\0';
	return strtoull(text + 5, NULL, 10); /* "mnt:[4026531840]" */
}

void jitreads_namespace(struct jitread *read, pid_t pid)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/ns/mnt", pid);
	read->source = namespace_of(link);
	read->foreign = read->source != namespace_of("/proc/self/ns/mnt");
}

void jitreads_device(struct jitread *read, uint32_t maj, uint32_t min)
{
	read->source = 1ULL << 63 | (uint64_t)maj << 32 | min;
	read->foreign = !maj; /* no disk: FUSE, NFS, tmpfs */
}

bool jitread_hangs(const struct jitread *read, uint64_t now_ns)
{
	return !helper_job_done(&read->job) &&
	       watch_blocked_ns(&read->job.watch, now_ns) > JITREADS_HANG_NS;
}

bool jitreads_has_room(const struct jitreads *r)
{
	uint64_t now_ns = time_now_ns();
	unsigned int nr_hanging = 0;

	for (unsigned int i = 0; i < r->nr; i++)
		nr_hanging += jitread_hangs(r->running[i], now_ns);
	return r->nr - nr_hanging < JITREADS_ACTIVE_MAX && r->nr < ARRAY_SIZE(r->running);
}

/* Test whether the source of @read answers, as far as is known: 0, -ETIME. */
static int admit(const struct jitreads *r, const struct jitread *read, uint64_t now_ns)
{
	unsigned int nr_hanging = 0, nr_foreign = 0;

	for (unsigned int i = 0; i < r->nr; i++) {
		if (!jitread_hangs(r->running[i], now_ns))
			continue;
		if (r->running[i]->source == read->source)
			return -ETIME;
		nr_hanging++;
		nr_foreign += r->running[i]->foreign;
	}
	return nr_hanging >= JITREADS_HANGING_MAX ||
			       (read->foreign && nr_foreign >= JITREADS_FOREIGN_MAX)
		       ? -ETIME
		       : 0;
}

int jitreads_start(struct jitreads *r, struct jitread *read)
{
	int rc = jitreads_has_room(r) ? admit(r, read, time_now_ns()) : -EAGAIN;

	if (rc)
		return rc;
	if (!r->helpers) {
		read->job.run(&read->job);
		atomic_store_explicit(&read->job.state, JOB_DONE, memory_order_relaxed);
		return 0;
	}
	rc = helpers_start(r->helpers, &read->job);
	if (rc)
		return rc;
	assert(r->nr < ARRAY_SIZE(r->running));
	r->running[r->nr++] = read;
	return 0;
}

static void forget(struct jitreads *r, const struct jitread *read)
{
	for (unsigned int i = 0; i < r->nr; i++) {
		if (r->running[i] == read) {
			r->running[i] = r->running[--r->nr];
			return;
		}
	}
}

bool jitreads_ended(struct jitreads *r, const struct jitread *read)
{
	if (!helper_job_done(&read->job))
		return false;
	forget(r, read);
	return true;
}

void jitreads_leave(struct jitreads *r, struct jitread *read)
{
	forget(r, read);
	helper_job_leave(&read->job);
}

uint32_t jitreads_user_of(pid_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return pid > 0 && !stat(path, &st) ? st.st_uid : UINT32_MAX;
}

uint32_t jitreads_user_with(struct objects *objects, const struct object *object)
{
	struct object_sighting seen;

	objects_sighting(objects, object, &seen);
	free(seen.path);
	return jitreads_user_of(seen.pid);
}

uint32_t jitreads_victim(const struct jitreads_candidate *candidates, uint32_t nr, uint32_t uid)
{
	uint32_t oldest = UINT32_MAX, nr_user = 0;

	for (uint32_t i = 0; i < nr; i++)
		nr_user += candidates[i].uid == uid;
	for (uint32_t i = 0; i < nr; i++) {
		if (candidates[i].pinned || (nr_user >= nr / 2 && candidates[i].uid != uid))
			continue;
		if (oldest == UINT32_MAX || candidates[i].used < candidates[oldest].used)
			oldest = i;
	}
	return oldest;
}

bool jitreads_expired(struct jitreads_end *e, pid_t pid, uint64_t now_ns)
{
	if (pid > 0 && now_ns >= e->check_ns) {
		e->check_ns = now_ns + END_CHECK_NS;
		/* Another process with this pid keeps the code a little longer. */
		if (!kill(pid, 0) || errno != ESRCH)
			e->since_ns = 0;
		else if (!e->since_ns)
			e->since_ns = now_ns;
	}
	return e->since_ns && now_ns - e->since_ns >= JITREADS_KEEP_NS;
}

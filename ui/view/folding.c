// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The folding thread. It runs folding_main(); all other functions run on the
 * main thread.
 *
 * Invariant: from begin() until the job is done, profile and folds belong to
 * the thread; the lock orders both handovers.
 */
#include "ui/view/folding.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbols/base/thread.h"
#include "symbols/base/wake.h"
#include "ui/fold/fold.h"

#define DISCARDS_MAX 4 /* more are freed by the caller */

struct folding {
	pthread_t thread;
	int fd;		 /* eventfd: a job is done */
	bool busy, lent; /* main thread: a job is given and not taken; its profile is lent */

	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t changed;
	struct profile *profile;
	struct folds_of *of;
	bool waits, done, stop; /* the job is queued; it is done; the thread is to end */
	struct profile
		*discards[DISCARDS_MAX + 1]; /* the last one is for the profile being folded */
	unsigned int nr_discards;
};

static void fold(struct folding *f)
{
	const struct profile *p = f->profile;

	f->waits = false;
	pthread_mutex_unlock(&f->lock);
	folds_make(p, f->of);
	pthread_mutex_lock(&f->lock);
	wake_send(f->fd);
	f->done = true;
}

static void discard(struct folding *f)
{
	struct profile *p;

	assert(f->nr_discards);
	p = f->discards[--f->nr_discards];

	pthread_mutex_unlock(&f->lock);
	profile_free(p);
	pthread_mutex_lock(&f->lock);
}

static void *folding_main(void *arg)
{
	struct folding *f = arg;

	prctl(PR_SET_NAME, "folding");
	/* Lower than the main thread (app.c), which must not wait for this one. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		if (f->waits)
			fold(f);
		else if (f->nr_discards)
			discard(f);
		else
			pthread_cond_wait(&f->changed, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

struct folding *folding_new(void)
{
	struct folding *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fd = wake_new();
	if (f->fd < 0) {
		free(f);
		return NULL;
	}
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	if (thread_start(&f->thread, 0, folding_main, f)) {
		close(f->fd);
		free(f);
		return NULL;
	}
	return f;
}

void folding_free(struct folding *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	while (f->nr_discards)
		profile_free(f->discards[--f->nr_discards]);
	if (!f->lent)
		profile_free(f->profile);
	close(f->fd);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

int folding_fd(const struct folding *f)
{
	return f ? f->fd : -1;
}

bool folding_is_busy(const struct folding *f)
{
	return f && f->busy;
}

static bool begin(struct folding *f, struct profile *p, struct folds_of *of, bool lent)
{
	if (!f || f->busy)
		return false;
	f->busy = true;
	f->lent = lent;
	pthread_mutex_lock(&f->lock);
	assert(!f->profile && !f->waits && !f->done);
	f->profile = p;
	f->of = of;
	f->waits = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return true;
}

bool folding_give(struct folding *f, struct profile *p, struct folds_of *of)
{
	return begin(f, p, of, false);
}

bool folding_lend(struct folding *f, struct profile *p, struct folds_of *of)
{
	return begin(f, p, of, true);
}

struct profile *folding_take(struct folding *f, bool *lent)
{
	struct profile *p = NULL;

	if (!f || !f->busy)
		return NULL;
	pthread_mutex_lock(&f->lock);
	if (f->done) {
		p = f->profile;
		assert(p && !f->waits);
		f->profile = NULL;
		wake_clear(f->fd);
		f->done = false;
		f->busy = false;
		*lent = f->lent;
	}
	pthread_mutex_unlock(&f->lock);
	return p;
}

void folding_discard(struct folding *f, struct profile *p)
{
	bool taken = false;

	if (f && p) {
		pthread_mutex_lock(&f->lock);
		/* A profile that is being folded is freed by the thread, after that. */
		taken = f->nr_discards < DISCARDS_MAX || p == f->profile;
		if (taken)
			f->discards[f->nr_discards++] = p;
		assert(f->nr_discards <= ARRAY_SIZE(f->discards));
		pthread_cond_signal(&f->changed);
		pthread_mutex_unlock(&f->lock);
	}
	if (!taken)
		profile_free(p);
}

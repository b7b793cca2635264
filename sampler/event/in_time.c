// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One timer for each thread. It fires again and again: the first signal may be just before the
 * call.
 */
#include "sampler/event/in_time.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbols/base/base.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* One that no library uses. */
#define SIGNAL (SIGRTMIN + 5)
/* Halved after each call that was interrupted, down to 1.5 ms. */
#define WAIT_NS	   50000000U
#define HALVES_MAX 5U
/* Then calls have their full time again. */
#define FORGET_NS 10000000000ULL

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local struct {
	timer_t timer;
	bool made;
	sigset_t before;
	unsigned int nr_late; /* interrupted calls, up to HALVES_MAX */
	uint64_t late_ns;     /* the last one */
} own;

static void do_nothing(int sig)
{
	(void)sig;
}

static void set_handler(void)
{
	const struct sigaction action = { .sa_handler = do_nothing };

	sigaction(SIGNAL, &action, NULL);
}

static void set_timer(unsigned int ns)
{
	const struct itimerspec time = { .it_interval.tv_nsec = ns, .it_value.tv_nsec = ns };

	timer_settime(own.timer, 0, &time, NULL);
}

void in_time_begin(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	sigset_t set;

	pthread_once(&once, set_handler);
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &set, &own.before);
	event.sigev_signo = SIGNAL;
	event.sigev_notify_thread_id = gettid();
	/* Without a timer the call takes as long as it takes. */
	if (!own.made)
		own.made = !timer_create(CLOCK_MONOTONIC, &event, &own.timer);
	if (own.nr_late && time_now_ns() - own.late_ns > FORGET_NS)
		own.nr_late = 0;
	if (own.made)
		set_timer(WAIT_NS >> own.nr_late);
}

void in_time_end(bool interrupted)
{
	if (own.made)
		set_timer(0);
	pthread_sigmask(SIG_SETMASK, &own.before, NULL);
	if (!interrupted)
		return;
	own.nr_late = MIN(own.nr_late + 1, HALVES_MAX);
	own.late_ns = time_now_ns();
}

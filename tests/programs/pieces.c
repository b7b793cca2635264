// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs in short pieces: WORK and SLEEP microseconds, one after the other, for LASTS seconds or
 * PIECES, in THREADS; FORK=1: each piece is a child that then ends; FORK=2: a thread. All are in
 * the environment.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t end_ns, work_ns, sleep_ns, nr_pieces;

static void piece(void)
{
	struct timespec pause = { 0, (long)sleep_ns };
	uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
	nanosleep(&pause, NULL);
}

static void *pieces(void *arg)
{
	for (uint64_t i = 0; i < nr_pieces && clock_ns(CLOCK_MONOTONIC) < end_ns; i++)
		piece();
	return NULL;
}

static void *one_piece(void *arg)
{
	piece();
	return arg;
}

static void children(bool threads)
{
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		pthread_t thread;
		pid_t pid;

		if (threads) {
			if (pthread_create(&thread, NULL, one_piece, NULL))
				exit(1);
			pthread_join(thread, NULL);
			continue;
		}
		pid = fork();
		if (!pid) {
			piece();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

int main(void)
{
	uint64_t nr = number("THREADS", 1);

	end_ns = clock_ns(CLOCK_MONOTONIC) + number("LASTS", 60) * 1000000000;
	work_ns = number("WORK", 60) * 1000;
	nr_pieces = number("PIECES", UINT64_MAX);
	sleep_ns = number("SLEEP", 60) * 1000;
	if (number("FORK", 0)) {
		children(number("FORK", 0) == 2);
		return 0;
	}
	for (uint64_t i = 1; i < nr; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, pieces, NULL))
			return 1;
	}
	pieces(NULL);
	return 0;
}

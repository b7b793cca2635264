/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Read a JVM in the cage: a worker parses its memory, which is read here, piece by piece, as the
 * worker requests it. The worker's result is checked like the memory of a JVM.
 *
 * A worker reads one JVM at a time. When a helper hangs in a read, the loader abandons its job and
 * gives the worker to other jobs.
 *
 * Threads: a helper; hotspot_cage_leave() of the loader.
 */
#ifndef SYMBOLS_JIT_HOTSPOT_CAGE_H
#define SYMBOLS_JIT_HOTSPOT_CAGE_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/jit/hotspot_job.h"

#define HOTSPOT_READERS 8U
extern const struct cage_reader hotspot_readers[HOTSPOT_READERS];

/*
 * Find the JVM of a struct hotspot_job and read it in a worker, or here if there is no cage: run()
 * of the job.
 */
void hotspot_cage_run(struct job *job);
/*
 * Do hotspot_job_read() in a worker. 0 or its -errno; -EAGAIN: all workers are busy; -EPIPE,
 * -ETIME, -EBADMSG, -ESTALE: the worker ended, was too slow, or its answer makes no sense.
 */
int hotspot_cage_read(struct hotspot_job *j, const struct hotspot_tables *t);
struct cage_answer;
/*
 * Take the result of a worker, foreign bytes, into the job; it took @cpu_ns. 0, -errno in it, or
 * -EBADMSG. Only for hotspot_cage_read() and its tests.
 */
int hotspot_cage_take(struct hotspot_job *j, const struct cage_answer *a, uint64_t cpu_ns);
/* End the worker that has read for @j, which does not run. The loader. */
void hotspot_cage_end(const struct hotspot_job *j);
/* Take the worker from a job that is abandoned. */
void hotspot_cage_leave(struct hotspot_job *j);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cage: readers of foreign bytes in processes without rights.
 *
 * A server is forked from the start of main(), before there are threads and foreign bytes. It forks
 * one worker for each kind of reader, at the first call. A worker has no file but the descriptors
 * of a call, no capability, no network, a limit of memory, and a list of allowed system
 * calls (cage_lock.h). It returns bytes, which the caller checks as it checks the file itself.
 * A worker that dies or is too slow is killed; the next call starts another one.
 *
 * Without cage_start() (unit tests, tools) a reader runs in the calling thread.
 *
 * Threads: cage_start() before any thread; calls from any thread that may wait. Calls of one kind
 * run one after another.
 */
#ifndef SYMBOLS_CAGE_CAGE_H
#define SYMBOLS_CAGE_CAGE_H

#include <sys/types.h>

#include "symbols/cage/cage_file.h"
#include "symbols/sandbox/sandbox.h"

/* Return whether readers run in workers: after cage_start(). */
bool cage_is_on(void);
/* Fork the server for these readers (static), by kind. 0 or -errno; then every call fails. */
int cage_start(const struct cage_reader *const readers[CAGE_NR_KINDS]);
/* End the server and all workers. */
void cage_stop(void);

struct cage_answer {
	uint8_t *bytes; /* malloc'ed unless mapped; foreign */
	size_t size;
	uint32_t generation; /* of the worker that answered */
	uint64_t took_ns;    /* wall time of the call, also of one that failed */
	uint64_t cpu_ns;     /* of the worker, in a call of a reader with questions; else 0 */
	bool asks;	     /* a question: the next call with this generation answers it */
	bool mapped;	     /* read-only pages of the reply file: only if reader->map_reply */
};

/* Free the bytes of an answer, which may be mapped. */
void cage_answer_free(struct cage_answer *a);

/*
 * Call @reader with @request and borrowed descriptors (-1: none). @generation: only the worker
 * of an earlier answer, which has state (0: any). Returns the result of the reader, or -ESTALE
 * (another worker has replaced that one), -ETIME (killed after @timeout_ns, on a busy machine twice
 * as long), -EPIPE (it died, or takes no calls), -EBADMSG (invalid answer; killed), -ENOSYS (no
 * worker starts). The answer is set only when 0 is returned; the caller frees its bytes.
 */
int cage_call(const struct cage_reader *reader, const void *request, size_t size,
	      const int fds[CAGE_FDS_MAX], uint32_t generation, uint64_t timeout_ns,
	      struct cage_answer *out);

/* How long a call waits. */
struct cage_wait {
	uint64_t timeout_ns;
	/* Called 10 times a second, in the thread of the call: true ends the call. */
	bool (*stopped)(void *ctx);
	void *ctx;
};

/* As cage_call(); also -ECANCELED: it was stopped, and its worker is killed. */
int cage_call_until(const struct cage_reader *reader, const void *request, size_t size,
		    const int fds[CAGE_FDS_MAX], uint32_t generation, const struct cage_wait *wait,
		    struct cage_answer *out);

/* End the worker of @reader: its state is not needed any more, or its call is given up. */
void cage_end(const struct cage_reader *reader);

/*
 * End the worker of @reader that gave an invalid answer, if it is still the one of @generation and
 * has no call.
 */
void cage_refuse(const struct cage_reader *reader, uint32_t generation);

/* Return a kind from @first to @last without a call at this moment, else @first. */
enum cage_kind cage_idle(enum cage_kind first, enum cage_kind last);

/* Return whether @pid is of the cage: its samples are of proftop. Any thread, wait-free. */
bool cage_has(pid_t pid);
/* Return the CPU time of all workers, ended ones included. */
uint64_t cage_cpu_ns(void);

#endif

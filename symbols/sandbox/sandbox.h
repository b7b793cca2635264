/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Readers of foreign bytes in processes without rights.
 *
 * The caller owes: bytes or descriptors of memory, a time limit, and a check of every answer.
 *
 * The room does: starts workers by a server before threads exist; a worker has no rights, no files
 * and no network (seccomp, Landlock, limits) and is replaced when it hangs or dies; processes that
 * read the memory of others, and nothing else.
 *
 * Not for: bytes that proftop wrote, and the hot loop.
 */
#ifndef SYMBOLS_SANDBOX_SANDBOX_H
#define SYMBOLS_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"

struct sandbox_link;

/*
 * Files in memory (memfd_create(2)) between proftop and the workers of the sandbox: copies that a
 * call sends, and replies. Any thread.
 */

/* Make an empty memfd. -errno. */
int sandbox_file(void);
/*
 * Make a memfd of @size bytes to send with a call: a copy, which does not change while it is read.
 * The caller closes it. -errno.
 */
int sandbox_wrap(const void *bytes, size_t size);
/* Fix the size of a memfd before it is sent: a worker that was taken over could let it grow. */
void sandbox_fix_size(int fd);

/*
 * Processes that read the memory of others, forked by a server, which is forked before there are
 * threads.
 *
 * A reader keeps CAP_SYS_PTRACE, for process_vm_readv(2). All other rights are given up by
 * seccomp(2) and capabilities(7): it has no file but the ones that it was given, and the memory
 * that it shares with proftop.
 *
 * Threads: start before any thread; pids and CPU time any; a reader has one owner.
 */

#define SANDBOX_MEMORY_START 256U /* bytes that a reader gets */
#define SANDBOX_MEMORY_FDS   6U	  /* descriptors */

/* In the new process: open and map all that is needed, lock it up, and read. It ends on return. */
typedef void (*sandbox_memory_fn)(const void *start, size_t size,
				  const int fds[SANDBOX_MEMORY_FDS]);

struct sandbox_memory_reader {
	pid_t pid; /* 0: none */
	int pidfd;
	uint32_t slot;
};

/*
 * Start the server, if this process may read the memory of processes of others. Without that right
 * it is of no use: a reader could read, at most, the memory that any program of the user can.
 */
void sandbox_memory_start(sandbox_memory_fn run);
void sandbox_memory_stop(void);
bool sandbox_memory_is_on(void);
/* Return whether it should be on, and could not be started: then there must be no reader. */
bool sandbox_memory_is_refused(void);
/* Kill readers that were forked after their request had timed out. */
void sandbox_memory_tidy(void);
/* Fork a reader. 0 or -errno: -EAGAIN: too many; -ETIME: the server does not answer. */
int sandbox_memory_fork(struct sandbox_memory_reader *out, const void *start, size_t size,
			const int fds[SANDBOX_MEMORY_FDS]);
/* Return whether it was killed, by itself or by others. */
bool sandbox_memory_is_dead(const struct sandbox_memory_reader *p);
/* Kill a reader. */
void sandbox_memory_end(struct sandbox_memory_reader *p);
/* Return whether @pid is the server, or a reader. Lock-free: for each sample. */
bool sandbox_memory_has(pid_t pid);
/* Return the CPU time of a reader so far. */
uint64_t sandbox_memory_reader_cpu_ns(const struct sandbox_memory_reader *p);
/* Return the CPU time of all readers so far. */
uint64_t sandbox_memory_cpu_ns(void);
/*
 * In a reader: as a worker, but it may wait for its descriptors and read the memory of processes
 * (process_vm_readv(2), CAP_SYS_PTRACE). 0 or -errno: it must not read then.
 */
int sandbox_memory_lock(uint64_t memory_max);
/* Map @size bytes for both; *@fd: their file, for fork; the caller closes it. NULL: no memory. */
void *sandbox_memory_share(size_t size, int *fd);

/*
 * A reader of foreign bytes: a function that serves calls, in a worker of the sandbox or, without
 * one, in the calling thread.
 */

#define SANDBOX_REQUEST_MAX (64U << 10)
#define SANDBOX_FDS_MAX	    2U

enum sandbox_kind {
	SANDBOX_DWARF,
	SANDBOX_DWARF_OTHERS, /* of files that other users can write: apart from ours and root's */
	SANDBOX_NAMES,	      /* mangled names */
	/* ELF files: unwind tables and symbols. Several, since a start needs hundreds of them. */
	SANDBOX_IMAGE,
	SANDBOX_IMAGE_LAST = SANDBOX_IMAGE + 3,
	SANDBOX_ELF,	  /* facts about ELF files */
	SANDBOX_DESCRIBE, /* files of interpreters */
	SANDBOX_SERVICE,  /* process contexts */
	SANDBOX_PERFMAP,
	SANDBOX_JITDUMP,
	SANDBOX_DISASM, /* machine code */
	SANDBOX_KERNEL, /* copies of /proc/kallsyms and /proc/kcore */
	/* Code caches of JVMs. One reading is by one worker. */
	SANDBOX_HOTSPOT,
	SANDBOX_HOTSPOT_LAST = SANDBOX_HOTSPOT + 7,
	/* Recordings of others (perf.data). One is read by one worker. */
	SANDBOX_RECORDING,
	SANDBOX_RECORDING_LAST = SANDBOX_RECORDING + 3,
	SANDBOX_NR_KINDS
};

/* The result in the making; sandbox_put() appends. */
struct sandbox_reply {
	uint8_t *bytes;
	size_t size, max;
	size_t limit; /* 0: SANDBOX_REPLY_MAX */
	bool full;    /* too large, or out of memory */
	/* In a worker large pieces are written to the file of the call, behind the bytes before
	 * them. */
	bool to_file;
	int file;
	size_t written;
};

/* One call, as the reader sees it. */
struct sandbox_call {
	const void *request;
	size_t size;
	int fds[SANDBOX_FDS_MAX]; /* -1: none; closed after the call unless the reader sets it to -1
				   */
	struct sandbox_reply reply;
	struct sandbox_link *link; /* to the caller, for sandbox_ask(); NULL: in its thread */
};

/*
 * Put a question to the caller in the middle of a call: send the reply so far, which is then empty,
 * and replace the request and the descriptors by those of the caller's answer. 0 or -errno: the
 * call is to end.
 */
int sandbox_ask(struct sandbox_call *c);
/* Append @size bytes; at the limit reply->full is set. Return their offset in all. */
size_t sandbox_put(struct sandbox_reply *reply, const void *bytes, size_t size);
/* Read @size bytes of descriptor @i of the call: *out is malloc'ed, a NUL follows. 0 or -errno. */
int sandbox_take(const struct sandbox_call *c, unsigned int i, size_t size, uint8_t **out);

/*
 * A reader: serve one call. 0 or -errno. In a worker it runs in one thread and may keep state
 * between calls.
 */
struct sandbox_reader {
	enum sandbox_kind kind;
	const char *name; /* of the process, 15 bytes at most */
	/* Load libraries, in the server before it gives up its files; NULL: none. */
	void (*prepare)(void);
	int (*serve)(struct sandbox_call *c);
	uint64_t memory_max; /* address space of the worker */
	size_t reply_max;    /* 0: SANDBOX_REPLY_MAX */
	/* Map a reply that is in the file, do not copy it. Only if all descriptors are copies, or
	 * of file systems that respond. */
	bool map_reply;
	/* Its calls build on each other: the worker is not replaced before sandbox_end(). */
	bool stateful;
	/* It has questions in the middle of a call, sandbox_ask(). */
	bool asks;
};

/*
 * The sandbox: readers of foreign bytes in processes without rights.
 *
 * A server is forked from the start of main(), before there are threads and foreign bytes. It forks
 * one worker for each kind of reader, at the first call. A worker has no file but the descriptors
 * of a call, no capability, no network, a limit of memory, and a list of allowed system
 * calls (worker.c). It returns bytes, which the caller checks as it checks the file itself.
 * A worker that dies or is too slow is killed; the next call starts another one.
 *
 * Without sandbox_start() (unit tests, tools) a reader runs in the calling thread.
 *
 * Threads: sandbox_start() before any thread; calls from any thread that may wait. Calls of one
 * kind run one after another.
 */

/* Return whether readers run in workers: after sandbox_start(). */
bool sandbox_is_on(void);
/* Fork the server for these readers (static), by kind. 0 or -errno; then every call fails. */
int sandbox_start(const struct sandbox_reader *const readers[SANDBOX_NR_KINDS]);
/* End the server and all workers. */
void sandbox_stop(void);

#define SANDBOX_WAITS 6

struct sandbox_answer {
	uint8_t *bytes; /* malloc'ed unless mapped; foreign */
	size_t size;
	uint32_t generation; /* of the worker that answered */
	uint64_t took_ns;    /* of timeout_ns, as the worker had CPUs; also of a call that failed */
	uint64_t cpu_ns;     /* of the worker, in a call of a reader with questions; else 0 */
	bool asks;	     /* a question: the next call with this generation answers it */
	bool mapped;	     /* read-only pages of the reply file: only if reader->map_reply */
};

/* Free the bytes of an answer, which may be mapped. */
void sandbox_answer_free(struct sandbox_answer *a);
/*
 * Call @reader with @request and borrowed descriptors (-1: none). @generation: only the worker
 * of an earlier answer, which has state (0: any). Returns the result of the reader, or -ESTALE
 * (another worker has replaced that one), -ETIME (killed after @timeout_ns, on a busy machine up to
 * SANDBOX_WAITS times as long), -EPIPE (it died, or takes no calls), -EBADMSG (invalid answer;
 * killed), -ENOSYS (no worker starts). The answer is set only when 0 is returned; the caller frees
 * its bytes.
 */
int sandbox_call(const struct sandbox_reader *reader, const void *request, size_t size,
		 const int fds[SANDBOX_FDS_MAX], uint32_t generation, uint64_t timeout_ns,
		 struct sandbox_answer *out);

/* How long a call waits. */
struct sandbox_wait {
	uint64_t timeout_ns;
	/* Called 10 times a second, in the thread of the call: true ends the call. */
	bool (*stopped)(void *ctx);
	void *ctx;
};

/* As sandbox_call(); also -ECANCELED: it was stopped, and its worker is killed. */
int sandbox_call_until(const struct sandbox_reader *reader, const void *request, size_t size,
		       const int fds[SANDBOX_FDS_MAX], uint32_t generation,
		       const struct sandbox_wait *wait, struct sandbox_answer *out);
/* End the worker of @reader: its state is not needed any more, or its call is given up. */
void sandbox_end(const struct sandbox_reader *reader);
/*
 * End the worker of @reader that gave an invalid answer, if it is still the one of @generation and
 * has no call.
 */
void sandbox_refuse(const struct sandbox_reader *reader, uint32_t generation);
/* Return a kind from @first to @last without a call at this moment, else @first. */
enum sandbox_kind sandbox_idle(enum sandbox_kind first, enum sandbox_kind last);
/* Return whether @pid is of the sandbox: its samples are of proftop. Any thread, wait-free. */
bool sandbox_has(pid_t pid);
/* Return the CPU time of all workers, ended ones included. */
uint64_t sandbox_cpu_ns(void);

#endif

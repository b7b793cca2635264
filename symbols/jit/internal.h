/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/jit/, and by tests; no other room includes it. */
#ifndef SYMBOLS_JIT_INTERNAL_H
#define SYMBOLS_JIT_INTERNAL_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/jit/jit.h"

struct helpers;
struct jitcode;
struct jitcode_function;
struct jitcode_line;
struct jitdump;
struct jitdump_job;
struct jitdump_state;
struct jitdumps;
struct jitread;
struct jitreads;
struct jitreads_end;
struct perfmap;
struct perfmap_symbol;
struct watch;

#define JITCODE_NAME_MAX 512U /* bytes of one; the rest is cut */

/* Add a file's name for lines. UINT32_MAX when the table is full. */
uint32_t jitcode_add_file(struct jitcode *c, const char *name, size_t size);

/*
 * A part of a file that others write, copied into a memfd for a reader in the sandbox. It does
 * not change while it is read, and a file system that hangs does not hang the reader.
 *
 * Runs on: a helper.
 */

/*
 * Copy up to @max bytes of @file from @at on; *size: the number there are. Return the memfd, which
 * the caller closes; -ECANCELED, or -errno. @watch: of the reads; may be NULL.
 */
int jitcopy(int file, uint64_t at, size_t max, struct watch *watch, size_t *size);

/*
 * The records of a part of a jitdump -> a flat list of events, in the sandbox: this is the only
 * code that sees its bytes. See jit.h.
 *
 * An answer is struct jitdump_answer, then events: each with its text, then its lines.
 */

#define JITDUMP_RECORD_MAX (64U << 20) /* bytes of one record; most are code */
#define JITDUMP_PART_MAX   (1U << 20)  /* more than a record has, but for code */

/* Read the part of the file at state.at: the descriptor of the call has @part_size bytes. */
struct jitdump_request {
	struct jitdump_state state;
	uint64_t part_size, file_size;
};

struct jitdump_answer {
	struct jitdump_state state;
	int32_t rc;    /* as jitdump_read() */
	uint32_t more; /* the rest begins behind this part */
};

/*
 * Jobs that read the files of JIT compilers: a few at a time, and one at a time
 * where a read hangs.
 *
 * A dead server with the files of a hundred processes must not hold a hundred
 * helpers. A *source* is the mount namespace of a process (perf maps) or a device
 * (jitdumps).
 *
 * One thread: the loader; the jobs run on helpers.
 */

#define JITREADS_NO_REPLY "its file system does not respond: will retry"

/* Set the source of files below the root of @pid. */
void jitreads_namespace(struct jitread *read, pid_t pid);
/* Set the source of files on a device. */
void jitreads_device(struct jitread *read, uint32_t maj, uint32_t min);
/* Test whether one more may run now. */
bool jitreads_has_room(const struct jitreads *r);
/*
 * Start @read. 0; -EAGAIN: too many run, try later; -ETIME: a read of its source
 * hangs, or too many do.
 */
int jitreads_start(struct jitreads *r, struct jitread *read);
/* Test whether a started @read has ended; then it can be started again. */
bool jitreads_ended(struct jitreads *r, const struct jitread *read);
/* Test whether @read hangs in one system call. */
bool jitread_hangs(const struct jitread *read, uint64_t now_ns);
/* Abandon a started @read: it is freed now, or when it ends. */
void jitreads_leave(struct jitreads *r, struct jitread *read);
/* Return the user of the process @pid, or with the memory @object; UINT32_MAX: not known. */
uint32_t jitreads_user_of(pid_t pid);

/* The entry of a process in a table, one of which is to be evicted. */
struct jitreads_candidate {
	uint32_t uid;
	uint32_t used; /* object_clock() of the latest sample */
	bool pinned;   /* not evicted: it is being read */
};

/*
 * Return the entry to evict for a process of @uid; UINT32_MAX: none. The least recently sampled
 * one: of all, or of this user alone if it has half of the table.
 */
uint32_t jitreads_victim(const struct jitreads_candidate *candidates, uint32_t nr, uint32_t uid);

/*
 * Return static words: the fix of @problem in a process with the program @exe, a path, and the
 * text @maps of /proc/PID/maps. Never NULL, but of RUNTIME_SCRIPTS.
 */
const char *runtime_fix(enum runtime_problem problem, const char *exe, const char *maps,
			size_t maps_size);
/* Return the words for the process with the /proc directory @dir_fd. */
const char *runtime_fix_of(enum runtime_problem problem, int dir_fd);

/* The fix of names that are missing at the end of a file: to wait helps only while new code is
 * made. */
#define JIT_LAST_BLOCK                                                                             \
	"the program writes it in blocks, the last one at its end: --record until then, and "      \
	"--replay"

#define PERFMAPS_MAX	    4096U /* processes */
#define PERFMAPS_MEMORY_MAX (256UL << 20)

#define JITDUMPS_MAX	    4096U /* processes */
#define JITDUMPS_OPEN_MAX   256U  /* processes with a jitdump */
#define JITDUMPS_MEMORY_MAX (512UL << 20)

/*
 * One process with JIT code. One thread: the loader.
 */

/* Frames of the code in one layer of its memory that samples are in. */
struct jitdump_frames {
	struct object *object;	    /* with a reference */
	const struct codemap *map;  /* the one that it has; NULL: none */
	struct codemap_code *codes; /* sorted by start */
	uint32_t nr, room;
	uint32_t published; /* codes in the map */
	bool closed;	    /* a JVM describes them */
	uint64_t due_ns;    /* publish codes then; 0: none are left */
};

struct jitdumps_entry {
	struct jitdump_job *r; /* the job's while it runs */
	uint32_t object;       /* the memory, layer 0 */
	uint32_t nr_found;     /* jitdumps found before the last search without a result */
	uint64_t due_ns;       /* not checked before */
	uint64_t tell_ns;      /* not reported before */
	uint64_t ask_ns;       /* not asked before whether the process has ended */
	uint64_t gone_ns;      /* when it had; 0: it runs */
	size_t memory;
	uint32_t uid; /* of the process */
	bool runs;    /* the job; it may hang */
	bool looked;  /* the first search has ended, or hangs */
	bool opened;  /* there is a jitdump, */
	bool held;    /* and its file is open */
	bool wanted;  /* addresses are missing */
	bool news;    /* sampled code is not in the jitdump */
	struct jitreads_end end;
	struct jitdump_frames *frames;
	uint32_t nr_frames;
	uint32_t nr_failed; /* functions of which no frames could be read */
};

#endif

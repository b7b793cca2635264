/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes, threads and mappings over time, and their files in /proc.
 *
 * The caller owes: side-band records in order of time by one writer; urcu-qsbr readers for
 * look-ups; frozen spaces given back.
 *
 * The room does: answers (pid, tid, address, time) with the mapping of that moment, merges /proc of
 * processes that ran before, keeps ended ones as long as they are shown.
 *
 * Not for: reading files of other users on the thread of a caller: the loader's helpers do.
 *
 * A struct process is one image of one pid: it begins with fork, exec, or the first record of the
 * pid. A struct process_thread is one of its threads, with its latest names. Processes and threads
 * are in hash chains, names in a list per thread; readers walk these without a lock. An incarnation
 * that was replaced or has ended can be found until processes_reap(), but of one pid or tid at most
 * INCARNATIONS_MAX: a process that executes programs in a loop must not make walks longer and
 * longer. Beyond that the oldest one is dropped, and counted: samples of it that are read later
 * belong to the next one.
 *
 * A rename costs the same however many there were: a thread keeps NAMES_MAX names. Beyond that,
 * names less than NAME_SPACING_NS apart replace each other, else the oldest leaves; the latest name
 * is always kept. Names that left while samples of their time may still arrive are counted.
 *
 * Threads: *_find() anywhere (urcu-qsbr readers); all else under the lock of the maps. Fields
 * marked W belong to the writer.
 */
#ifndef SYMBOLS_PROCESS_PROCESS_H
#define SYMBOLS_PROCESS_PROCESS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"

struct details;
struct lang_desc;
struct lang_process;
struct maps;
struct object;
struct objects;
struct sandbox_reader;
struct space;
struct tasks;
struct text_arena;
struct watch;

/*
 * Check the owner of files that name the code of a process: its user or root, with its pid in its
 * pid namespace (pid_namespaces(7)).
 *
 * Runs on: the loader. /proc may hang.
 */

struct code_owner {
	int dir_fd; /* of /proc/PID; -1: not open */
	uid_t uid;
	uint64_t start; /* field 22 of /proc/PID/stat */
	uint64_t inner_pid;
};

/* Read the owner of @pid from /proc. 0 or -errno; code_owner_done() closes dir_fd. */
int code_owner_ask(pid_t pid, struct code_owner *o);
/*
 * Owner for a recording (pids may be reused): files of this user and root, with that pid.
 */
void code_owner_ours(pid_t pid, struct code_owner *o);
/* Test whether the process is still alive. */
bool code_owner_lives(const struct code_owner *o);
void code_owner_done(struct code_owner *o);

/*
 * Details of a process from /proc beyond its mappings: command line, parent,
 * cgroup, start; also of its ancestors, sampled or not.
 *
 * The builder requests the processes of a profile and gets the details read so
 * far; the process reader reads. Entries that are not requested are dropped after ten to
 * twenty minutes, or earlier when there are too many.
 *
 * Threads: all functions take one mutex, never held while /proc is read.
 */

/* Why a task waits, found in its stack (name.h). */
enum wait_kind {
	WAIT_NO,	/* not a wait */
	WAIT_RUNNING,	/* on a CPU: exact times only, without a stack */
	WAIT_QUEUE,	/* runnable, in a run queue */
	WAIT_LOCK,	/* futex, kernel mutex */
	WAIT_CONDITION, /* condition variable, barrier */
	WAIT_POLL,	/* poll, epoll, select, io_uring: for an event */
	WAIT_SLEEP,	/* for a time */
	WAIT_PIPE,	/* pipe, socket, terminal */
	WAIT_DISK,
	WAIT_FAULT,   /* page fault */
	WAIT_CHILD,   /* wait4(), pthread_join() */
	WAIT_KTHREAD, /* a kernel thread waits for work */
	WAIT_OTHER,
	WAIT_ASLEEP, /* asleep; the kind is found in the stack */
	WAIT_LONG,   /* the same, WAIT_LONG_NS and more */
	WAIT_FOUND,  /* no kind: a mark below it, of a wait found in /proc */
	WAIT_CUT,    /* no kind: the outermost frame of a wait with unknown callers */
	WAIT_NR,
};

/* The name of a program, as in its process context (OpenTelemetry's OTEP 4719). */
enum service_fact {
	SERVICE_NAME,
	SERVICE_NAMESPACE,
	SERVICE_INSTANCE,
	SERVICE_VERSION,
	SERVICE_NR
};

/* Return the name of a fact in OpenTelemetry's semantic conventions. */
static inline const char *service_key(unsigned int fact)
{
	static const char *const keys[SERVICE_NR] = { "service.name", "service.namespace",
						      "service.instance.id", "service.version" };

	assert(fact < SERVICE_NR);
	return keys[fact];
}

struct process_details {
	pid_t parent;					   /* 0: none or unknown */
	uid_t uid;					   /* (uid_t)-1: unknown */
	uint64_t start_ns;				   /* CLOCK_BOOTTIME; 0: unknown */
	struct safe_text comm, command, cgroup, container; /* "": unknown or none */
	struct safe_text program;	      /* the name of its file, else of argv[0]; the same */
	struct safe_text service[SERVICE_NR]; /* the same; a recording has none */
	uint32_t nr;			      /* processes; 0: one */
};

/*
 * Make an empty table; NULL when out of memory. @maps is borrowed: it knows the
 * incarnation of each pid.
 */
struct details *details_new(struct maps *maps);
/* Before the start: keep details for @span_ns without a request, or ten minutes if that is longer.
 */
void details_keep(struct details *d, uint64_t span_ns);
void details_free(struct details *d);
/*
 * Builder: copy the details of an incarnation (@process 0: of the present process
 * with this pid, an ancestor), with texts in @arena. False: not read yet. Requests
 * missing and old details.
 */
bool details_get(struct details *d, uint32_t process, pid_t pid, uint64_t now_ns,
		 struct text_arena *arena, struct process_details *out);
/* The reader of process contexts, in the sandbox. */
extern const struct sandbox_reader service_reader;
/* Builder: test for requests; then wake the process reader. */
bool details_wanted(struct details *d);
/*
 * Return the name of a process: @comm, or that of its program where @comm says only that it is the
 * main thread. Runtimes name their main thread so: "MainThread", "node-MainThread" (Node.js 24,
 * 26).
 */
struct safe_text details_name(struct safe_text comm, struct safe_text program);
/* Asker: read at most @max requested processes; returns their number. */
unsigned int details_serve(struct details *d, unsigned int max);

/* One mapping of an address space. */

struct mapping {
	uint64_t start, end; /* addresses, end exclusive */
	uint64_t offset;     /* file offset of start; for anonymous memory: start itself */
	uint64_t birth_ns;   /* 0: before the start of proftop */
	struct object *object;
	bool exec;
	bool writable, copied; /* of a reading: also written to; a copy of the object's text */
};

/*
 * Whether a call leads to a function: questions of sampler threads about callers that were guessed
 * or that derived rows found, answered by the reader of processes from their memory.
 */

enum call_verdict {
	CALL_UNKNOWN,	 /* not answered yet */
	CALL_UNREADABLE, /* the code was not to be read */
	CALL_NONE,	 /* the address is not behind a call */
	CALL_SOME,	 /* it is, of something */
	CALL_REACHES,	 /* of this function, perhaps by a PLT stub or other jumps to it */
};

enum call_kind {
	CALL_TARGET, /* is the address behind a call, of @function? */
	CALL_SITE,   /* does the function that was called there call @function, and where? */
	CALL_BY,     /* has it a call by register or memory, which may be of @function? */
	CALL_STUB,   /* is it in a stub that a runtime copies, and where is the caller of that? */
	CALL_INSIDE, /* is it behind a direct call, and of which address? */
	CALL_THUNK,  /* is it in a thunk that returns or jumps, and where is the return address? */
};

struct call_question {
	uint64_t key;	   /* of the answer: a hash of both functions, not 0 */
	uint64_t address;  /* a return address */
	uint64_t function; /* the start of the function that returns there; 0: not known */
	pid_t pid;
	uint16_t machine; /* e_machine of the code */
	uint8_t depth;	  /* of a site: that many functions with a probe are in between */
	enum call_kind kind;
};

#define CALL_DEPTH_MAX 8U

#define CALL_STUB_SIZE 0xffU  /* the answer to CALL_STUB: bytes from sp to the CFA */
#define CALL_STUB_FP   0x100U /* and whether the caller's frame pointer is at sp */

#define CALL_THUNK_WORDS 1U /* the answer to CALL_THUNK: more than the words below it */

#define CALLS_KNOWN 16384 /* a power of two; newer answers replace older ones */

#define CALL_SITE_BITS                                                                             \
	48 /* of an address; above it the distance from the start of its function                  \
	    */

/* Answers: a key with the verdict in its low three bits; the address behind the call in the middle.
 */
extern struct call_answer {
	_Atomic uint64_t word, site;
} calls_known[CALLS_KNOWN];

static inline struct call_answer *call_slot(uint64_t key)
{
	return &calls_known[key >> 32 & (CALLS_KNOWN - 1)];
}

/* Return the answer to the question with @key. Any thread, lock-free. */
static inline enum call_verdict call_verdict(uint64_t key)
{
	/* Relaxed: a word is all of an answer. */
	uint64_t word = atomic_load_explicit(&call_slot(key)->word, memory_order_relaxed);

	return (word ^ key) >> 3 ? CALL_UNKNOWN : (enum call_verdict)(word & 7);
}

/* The same of a question for a site or stub: CALL_REACHES with *@site, else CALL_NONE. */
static inline enum call_verdict call_site(uint64_t key, uint64_t *site)
{
	/* Acquire: the word before the site; the second look sees a newer answer. */
	uint64_t word = atomic_load_explicit(&call_slot(key)->word, memory_order_acquire);

	*site = atomic_load_explicit(&call_slot(key)->site, memory_order_acquire);
	return (word ^ key) >> 3 || atomic_load_explicit(&call_slot(key)->word,
							 memory_order_relaxed) != word
		       ? CALL_UNKNOWN
		       : (enum call_verdict)(word & 7);
}

/* Hand in a question; false: it waits already, or too many do. Sampler threads, lock-free. */
bool call_ask(const struct call_question *q);
/* Reader of processes: answer the questions; returns their number. */
unsigned int calls_serve(void);

/*
 * Which process a thread reads from /proc, since when, and which ones are left out because another
 * thread hangs in them: an exec may hold up each reader of its process for as long as a file system
 * of any user does not respond.
 *
 * Threads: proc_watch_use() to proc_watch_is_mine() by the reader; proc_watch_hangs() and
 * proc_watch_leave() by one watcher; the others by both.
 */

/* Readers that hang; then none takes their place. */
#define PROC_HUNG_MAX 32U

/* Return the real uid of a process, without a read that may hang; (uid_t)-1: unknown. */
typedef uid_t (*proc_user_fn)(pid_t pid);

struct proc_hung {
	proc_user_fn user_of;
	/* Relaxed. */
	atomic_int pids[PROC_HUNG_MAX]; /* 0: free */
	atomic_uint users[PROC_HUNG_MAX];
};

struct proc_watch {
	atomic_ullong since_ns; /* of the read; 0: none; UINT64_MAX: left */
	atomic_int pid;		/* relaxed */
	bool left;		/* of the reader: another thread has its work */
	const struct proc_hung *hung;
};

/* As proc_user_fn, from its status. */
uid_t proc_user_of(pid_t pid);
/* Report whether PROC_HUNG_OF_USER processes of @user hang: its other ones are left out. */
bool proc_hung_is_full(const struct proc_hung *h, uid_t user);
/* Note the reads of this thread in @w; NULL: nowhere, as of a thread that did not call this. */
void proc_watch_use(struct proc_watch *w);
/* Report whether no other thread has the work. */
bool proc_watch_is_mine(void);
/* Return the process that is read for at least @ns; 0: none. *@since_ns: for the next call. */
pid_t proc_watch_hangs(const struct proc_watch *w, uint64_t ns, uint64_t *since_ns);
/* Take the work from the thread in the read since @since_ns; false: that has ended. */
bool proc_watch_leave(struct proc_watch *w, uint64_t since_ns);

/*
 * The texts of /proc/PID: maps, status, stat, comm; see proc(5).
 *
 * Hostile: a process chooses its paths and names. Bytes in, fields out, nothing
 * is copied. Pure; any thread.
 */

#define PROCFS_MAPS_SIZE_MAX (16u << 20) /* bytes read of /proc/PID/maps */

struct procfs_map {
	uint64_t start, end, offset;
	uint64_t ino;
	uint32_t maj, min;
	bool writable, exec, is_private; /* private: writing to it changes no file */
	const char *path;		 /* in the text; the kernel writes newlines as \012 */
	size_t path_size;		 /* 0: anonymous */
};

struct procfs_text {
	const char *at;
	const char *end;
	uint64_t nr_bad; /* invalid lines, skipped */
};

/*
 * Parse the next whole line of /proc/PID/maps; false at the end. A last line without
 * newline is ignored.
 */
bool procfs_next_map(struct procfs_text *text, struct procfs_map *out);
/* Copy @src without the \ooo escapes of the kernel: at most @dst_size bytes, no NUL. */
size_t procfs_unescape(char *dst, size_t dst_size, const char *src, size_t size);
/* Return the value of "Name:\tvalue" in /proc/PID/status as a number; false: absent. */
bool procfs_status_number(const char *text, size_t size, const char *name, uint64_t *value);
/*
 * Get the last number of "NSpid:\t" in /proc/PID/status, the id in the innermost namespace,
 * pid_namespaces(7). Return how many there are; 0: absent, *@pid is unchanged.
 */
unsigned int procfs_status_inner(const char *text, size_t size, uint64_t *pid);
/* Return the letter of "State:\t" in /proc/PID/status; 0: absent. */
char procfs_status_state(const char *text, size_t size);
/*
 * Return field @nr (from 4 on, not the last) of /proc/PID/stat as a number; false:
 * not one.
 */
bool procfs_stat_field(const char *text, size_t size, int nr, uint64_t *value);
/*
 * Convert field 22 of /proc/PID/stat, the start of a process in clock ticks, to the present
 * CLOCK_REALTIME in nanoseconds, as stat(2) has times; 0: @ticks is 0.
 */
int64_t procfs_start_ns(uint64_t ticks);
/* Return field 9 of /proc/PID/stat, PF_* flags. */
bool procfs_stat_flags(const char *text, size_t size, uint64_t *flags);

#define PROCFS_PF_KTHREAD 0x00200000u

/*
 * Read the memory of another process (/proc/PID/mem, proc(5)), bounded.
 *
 * Bytes are foreign: they may change between two reads and every pointer in
 * them may be wild. A read may hang (userfaultfd, FUSE): helpers only.
 */

struct remote {
	pid_t pid; /* of a job that reads a JVM */
	int fd;	   /* of /proc/PID/mem, where @read is NULL; -1: not open */
	/*
	 * NULL: the memory of @fd; else a test's image, or the caller of a worker. 0 or -errno,
	 * all of @size or nothing.
	 */
	int (*read)(const struct remote *r, uint64_t addr, void *buf, size_t size);
	/* With it: many pieces at a time, as remote_read_each(). NULL: one after another. */
	int (*read_each)(const struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
			 uint8_t *buf, bool *got);
	/*
	 * With it: read() may defer a read (@missed) until this fetches all deferred ones together.
	 * 0 or -errno.
	 */
	int (*fetch)(struct remote *r);
	bool may_defer, missed;
	struct watch *watch;   /* of the job that reads; may be NULL */
	uint64_t nr_reads;     /* so far */
	uint64_t nr_reads_max; /* -E2BIG beyond; 0: no limit */
};

/* Open the memory of the process of a folder, /proc/PID: a descriptor or -errno. */
int remote_open(int dir_fd);
/* Read @size bytes at @addr: 0, -EFAULT, -ESRCH, -EPERM, -ECANCELED, -E2BIG. */
int remote_read(struct remote *r, uint64_t addr, void *buf, size_t size);

#define REMOTE_PIECES_MAX 512U /* a call */

/*
 * Read @size bytes at each of @nr addresses, in order; @got says for each whether it was read. 0,
 * or an error as above except -EFAULT.
 */
int remote_read_each(struct remote *r, const uint64_t *addrs, uint32_t nr, size_t size,
		     uint8_t *buf, bool *got);
/*
 * Do @item for 0 to @nr - 1, and again after fetch() where a read was deferred: it has no result
 * then. 0, or the first error of @item or fetch().
 */
int remote_for_each(struct remote *r, uint32_t nr, int (*item)(void *of, uint32_t i), void *of);

/*
 * Begin a part of an item that does not depend on the parts before: its reads are deferred together
 * with theirs. @missed, at first false, remembers a deferred read of the parts before; after the
 * last part comes remote_end_parts().
 */
static inline void remote_begin_part(struct remote *r, bool *missed)
{
	*missed |= r->missed;
	r->missed = false;
}

/* Return whether a read of any part was deferred: then the item is not done. */
static inline bool remote_end_parts(struct remote *r, bool missed)
{
	return r->missed |= missed;
}

/* Read a pointer, a 32-bit or a 16-bit number. */
int remote_read_u64(struct remote *r, uint64_t addr, uint64_t *value);
int remote_read_u32(struct remote *r, uint64_t addr, uint32_t *value);
int remote_read_u16(struct remote *r, uint64_t addr, uint16_t *value);
/* Read a NUL-terminated string, cut at @size - 1 bytes. Its length or -errno. */
ssize_t remote_read_string(struct remote *r, uint64_t addr, char *buf, size_t size);

/* A task, and the table of tasks as its readers see it (internal.h is for the writer). */

/*
 * A task as shown: one thread under one name (comm). Ids are dense, given at the
 * first sample of a task, in a table that may be replaced. Task 0 is the
 * unknown task (pid -1).
 */
struct task {
	pid_t pid, tid;
	uint32_t number;    /* of this name, in all tables: the later the higher */
	uint32_t process;   /* dense id of the process incarnation (by exec and pid reuse) */
	uid_t uid;	    /* real uid, (uid_t)-1: unknown */
	pid_t parent;	    /* pid of the parent process; 0: unknown */
	uint64_t start_ns;  /* begin of this name; 0: before the start of proftop */
	uint8_t own_thread; /* if the process is a JVM or V8: lang_own_thread() */
	struct safe_text comm;
	struct safe_text process_comm; /* the main thread's, at the first sample; "": unknown */
};

#define TASK_UNKNOWN 0

/* Return the number of ids given out, wasted ones and TASK_UNKNOWN included. */
uint32_t tasks_nr(const struct tasks *t);

struct space_stats {
	uint64_t last_serial;	  /* of a space; under the lock of the maps */
	atomic_ulong nr_spaces;	  /* relaxed: figures only */
	atomic_ulong nr_mappings; /* of all spaces */
	atomic_ulong bytes;	  /* of all spaces, nodes that they share once */
};

/* Find the mapping of @addr at @time_ns; NULL: none. Any reader. */
const struct mapping *space_find(const struct space *s, uint64_t addr, uint64_t time_ns);
/* Test whether @m, which space_find() returned of @s, has ended: it is for its time only. */
bool space_has_ended(const struct space *s, const struct mapping *m);
/*
 * Return the number of a space: unique, also after its end. A cache of mappings by
 * number is valid only with that space in hand; space_read() after each
 * access is for ThreadSanitizer only.
 */
uint64_t space_serial(const struct space *s);
void space_read(const struct space *s);
/*
 * Request the images of all objects mapped there, so that a stack does not request
 * them one by one. True: wake the loader.
 */
bool space_want(const struct space *s);

/*
 * Processes, their threads and their mappings over time.
 *
 * A process is a list of address spaces; each exec starts one; fork copies
 * one; a mapping has a birth time. Look-ups take (pid, tid, time), so a record
 * that is handled late still finds the image it was taken in. PID reuse makes a
 * new process, distinguished by time. There is no munmap record: a pc outside
 * all maps requests a new read of /proc/PID/maps, at most once a second.
 *
 * Threads: writers (maps_on_*, from the side-band drain; maps_load, from the
 * loader) take an internal mutex. Readers (sampler threads, builder) are
 * registered urcu-qsbr threads and never block; results are valid until their
 * next quiescent state. Spaces are published whole, so a drain is a series of
 * maps_on_*() and one maps_publish().
 */

struct maps_hit {
	const struct space *space; /* NULL: kernel thread, or unknown */
	uint32_t task;		   /* id in the given table */
	bool full;		   /* the table is full: TASK_UNKNOWN instead */
	bool known;		   /* false: request with maps_ask() and count as pending */
	bool kernel_thread;
	bool outside; /* pid 0: a task outside our PID namespace, or the idle one */
	bool ask; /* its main thread, without uid, or code may have moved: maps_ask() corrects it */
	uint32_t process;		 /* id of its incarnation; 0: unknown */
	const struct lang_process *lang; /* its interpreter; NULL: none is known */
	uint8_t own_thread;		 /* of a JVM or V8: lang_own_thread() */
};

/* Make empty maps. @objects is borrowed for the life of the maps. */
int maps_new(struct maps **out, struct objects *objects, uint32_t max_tasks);
void maps_free(struct maps *m);
/*
 * Replay a recording: processes are from its records, and /proc is never read (its pids may be
 * reused). Before the first record.
 */
void maps_no_proc(struct maps *m);
/*
 * The events are opened in a PID namespace, pid_namespaces(7): all tasks outside have pid 0 in
 * their samples, as the idle task. Before the first record.
 */
void maps_in_namespace(struct maps *m);

/* One mapping of a PERF_RECORD_MMAP2 (perf_event_open(2)); @filename is foreign bytes. */
struct maps_mmap {
	pid_t pid, tid;
	uint64_t start, size, pgoff, time_ns;
	uint32_t prot;
	bool is_private;
	struct object_identity identity; /* kind is set by the filename */
	const char *filename;
	size_t filename_size;
};

void maps_on_mmap(struct maps *m, const struct maps_mmap *ev);
void maps_on_comm(struct maps *m, pid_t pid, pid_t tid, const char *comm, size_t size, bool exec,
		  uint64_t time_ns);
/*
 * Add code of @memory (OBJECT_ANON) in [start, end) that replaced other code at
 * @time_ns; in a recording perhaps in the future, see maps_due().
 */
void maps_on_code(struct maps *m, const struct object *memory, uint32_t layer, uint64_t start,
		  uint64_t end, uint64_t time_ns);
/* Set the user of a process that is not read from /proc, once its events are published. */
void maps_set_user(struct maps *m, pid_t pid, uid_t uid, uint64_t time_ns);
/* Publish the events so far without waiting for the next drain. */
void maps_settle(struct maps *m);
void maps_on_fork(struct maps *m, pid_t pid, pid_t ppid, pid_t tid, pid_t ptid, uint64_t time_ns);
void maps_on_exit(struct maps *m, pid_t pid, pid_t tid, uint64_t time_ns);
/*
 * Side-band records were lost: read every process again at its next request. In a storm
 * of losses a second after the last time, then 2, 4 and 8: until then known mappings
 * are used, and a pc outside them requests its process.
 */
void maps_on_lost(struct maps *m);
/* End a drain: publish all events to readers, drop history older than @keep_ns. */
void maps_publish(struct maps *m, uint64_t now_ns, uint64_t keep_ns);
/* Test for events or losses that are due at @now_ns: then publish before look-ups of that time. */
bool maps_due(const struct maps *m, uint64_t now_ns);
/*
 * Find a task. Always fills @hit; a new id is of @tasks (maps_tasks()). Readers,
 * lock-free.
 */
void maps_find(struct maps *m, struct tasks *tasks, pid_t pid, pid_t tid, uint64_t time_ns,
	       struct maps_hit *hit);
/*
 * Return the begin of the process @pid at @time_ns by fork or exec (0: before the
 * start of proftop), and the pid of its parent (0: unknown). False: unknown process.
 * Readers, lock-free.
 */
bool maps_birth(struct maps *m, pid_t pid, uint64_t time_ns, uint64_t *birth_ns, pid_t *parent);
/*
 * Choose processes by name, instead of the ones chosen before: the ones that execute a program, or
 * name their first thread, so that @match is true, and their children. A name that the kernel cuts,
 * to 15 bytes, is that of the program's file. NULL: none. @match is called under the lock of the
 * maps.
 */
typedef bool (*maps_match_fn)(const void *ctx, const char *name);
void maps_choose_by(struct maps *m, maps_match_fn match, const void *ctx);
/* Choose one process that runs. */
void maps_choose(struct maps *m, pid_t pid, uint64_t now_ns);
/* Return whether the process @pid at @time_ns is chosen. Readers, lock-free. */
bool maps_is_chosen(struct maps *m, pid_t pid, uint64_t time_ns);
/*
 * Request that the loader reads /proc/PID (once a second at most). True: wake the
 * loader. Readers, lock-free.
 */
bool maps_ask(struct maps *m, pid_t pid, uint64_t now_ns);
/* Loader: read the requested processes; returns their number. */
unsigned int maps_load_asked(struct maps *m);
/* Loader: @object is an interpreter, as its image shows: look at the processes that map it. */
void maps_note_object(struct maps *m, const struct object *object);
/* Report whether an interpreter that @pid has mapped is not described yet. Any thread. */
bool maps_is_undescribed(struct maps *m, pid_t pid);

/* The file of an interpreter that a process has mapped, not looked at yet. */
struct maps_interpreter {
	pid_t pid;
	uint32_t process; /* incarnation */
	struct mapping mapping;
};

/* Loader: the next one, with a reference of its object; false: there is none. */
bool maps_next_interpreter(struct maps *m, struct maps_interpreter *out);
/* Loader: the interpreter of incarnation @process of @pid is @desc; its reference is taken over.
 */
void maps_describe(struct maps *m, pid_t pid, uint32_t process, struct lang_desc *desc);
/*
 * Return the present table of tasks; only its owner, the builder, may keep it beyond
 * a batch.
 */
struct tasks *maps_tasks(const struct maps *m);
/* Return a task by id; NULL for ids never given out. */
const struct task *maps_task(const struct maps *m, uint32_t id);
uint32_t maps_nr_tasks(const struct maps *m);
uint32_t maps_max_tasks(const struct maps *m);
/*
 * Builder: put an empty table in place; returns the old one, NULL when memory is
 * out. The old table may be used for a grace period; then maps_move_task() moves the
 * tasks to keep, and maps_drop_tasks() frees it.
 */
struct tasks *maps_renew_tasks(struct maps *m);
uint32_t maps_move_task(struct maps *m, const struct tasks *from, uint32_t id);
/*
 * Builder: as maps_move_task(), but of a process that has ended, with all of its name as one
 * (ended_task()), of the cgroup and container that @details (NULL: none) has. @texts: for a while.
 */
uint32_t maps_merge_task(struct maps *m, const struct tasks *from, uint32_t id,
			 struct details *details, struct text_arena *texts);
/* Builder: get the details of a process that maps_merge_task() made. False: it is none. */
bool maps_merged(const struct maps *m, uint32_t process, struct process_details *out);
void maps_drop_tasks(struct tasks *old);

struct maps_stats {
	uint64_t nr_processes, nr_spaces, nr_mappings;
	uint64_t nr_reads, nr_read_failed; /* of /proc/PID */
	uint64_t nr_names_dropped;    /* of threads renamed too often; samples show another name */
	uint64_t nr_programs_dropped; /* of a process that executes too many; as above */
	uint64_t space_bytes;	      /* of all spaces */
	uint64_t nr_forks_shared;     /* above their limit: children with the parent's last space */
};

void maps_stats(const struct maps *m, struct maps_stats *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/java/, and by tests; no other room includes it. */
#ifndef SYMBOLS_JAVA_INTERNAL_H
#define SYMBOLS_JAVA_INTERNAL_H

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/elf/elf.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

struct sandbox_answer;
struct code_log;
struct code_text;
struct hotspot;
struct hotspot_blob;
struct hotspot_frame;
struct hotspot_heap;
struct hotspot_job;
struct hotspot_job_chain;
struct hotspot_job_frame;
struct hotspots;
struct hotspots_kept;
struct jitcode;
struct vmstructs;

/*
 * The internal structures that HotSpot exports for the serviceability agent: gHotSpotVMStructs,
 * gHotSpotVMTypes (JDK source: vmStructs.hpp). Offsets are taken from these tables, never assumed;
 * a field that is missing makes the
 * JVM one that is not read.
 *
 * Pure but for reading the process. Runs on: a helper.
 */

#define VMSTRUCTS_VARIABLES 12U

/* Fill in the names of the variables that describe the tables, to be found in libjvm.so. */
void vmstructs_want(struct elfvar vars[static VMSTRUCTS_VARIABLES]);
/*
 * Read the tables of a JVM with libjvm.so mapped with @bias (address - vaddr). 0, -ENOENT (no such
 * tables), -ENODATA (a field is missing: *missing is its name), -EBADMSG (tables make no sense),
 * -errno of reading.
 */
int vmstructs_read(struct vmstructs *v, struct remote *r,
		   const struct elfvar vars[static VMSTRUCTS_VARIABLES], uint64_t bias,
		   const char **missing);

/*
 * The table of the code of one JVM: sorted by start, without overlap.
 *
 * One thread: the owner of the struct hotspot.
 */

#define HOTSPOT_BLOBS_MAX (1U << 18)
/* Bytes of all blobs with names: 60,000 methods with names of 60 bytes take 8.5 MiB. */
#define HOTSPOT_MEMORY_MAX (32UL << 20)

void hotspot_close(struct hotspot *h);
/* Free the blobs: the next reading is to be a scan. */
void hotspot_forget_code(struct hotspot *h);
/* Return the bytes of @b with its name. */
size_t hotspot_blob_memory(const struct hotspot_blob *b);
/*
 * Put @nr blobs that a worker has read into @h: in place of all known ones (@all), or only of the
 * ones that they overlap. They are sorted. The same code as before keeps its name, other code is
 * fresh. Takes over the array. 0, -E2BIG or -ENOMEM.
 */
int hotspot_take(struct hotspot *h, struct hotspot_blob *blobs, uint32_t nr, bool all);
/* Free an array with the names in it. */
void hotspot_blobs_free(struct hotspot_blob *blobs, uint32_t nr);
/* Return the known blob that @pc is in; NULL: none. */
const struct hotspot_blob *hotspot_blobs_at(const struct hotspot *h, uint64_t pc);
/* Return whether two blobs at one address are the same code. */
bool hotspot_blobs_same(const struct hotspot_blob *a, const struct hotspot_blob *b);
/* Return whether the range and the kind of @b are possible. */
bool hotspot_blob_is_valid(const struct hotspot_blob *b);
/* Count the bytes and the retired blobs again; @nr_new of them are new. */
void hotspot_blobs_count(struct hotspot *h, uint32_t nr_new);

/*
 * The code cache of a HotSpot JVM (OpenJDK 11 and newer), read from outside:
 * which blob of code is where, how large its frame is, and which method it
 * was compiled from. JDK source: codeCache.hpp, heap.hpp, codeBlob.hpp.
 *
 * Compile ids are never used again, so a blob with the same address, method and
 * compile id is the same code. Bytes are foreign: every number is bounded,
 * names are cut at HOTSPOT_NAME_MAX.
 *
 * Runs on: a helper, one at a time. May hang.
 */

/* Where the tables of a JVM are: variables of its libjvm.so, mapped with @bias. */
struct hotspot_tables {
	struct elfvar vars[VMSTRUCTS_VARIABLES];
	uint64_t bias;
};

/* Find libjvm.so in process @r->pid, and its tables. 0; -ENOENT: no JVM; other -errno. */
int hotspot_find_tables(struct hotspot_tables *t, struct remote *r);
/*
 * Read the tables: the code cache can be read then. 0; -ENODATA: a field is missing (*missing);
 * other -errno.
 */
int hotspot_open(struct hotspot *h, struct remote *r, const struct hotspot_tables *t,
		 const char **missing);
/*
 * Return whether the loops of optimised code have safepoints, and so descriptions of the methods
 * inlined in them: the option UseCountedLoopSafepoints, which depends on the collector. False also
 * if reading fails.
 */
bool hotspot_polls_loops(const struct vmstructs *v, struct remote *r);
/* Return whether this version of Java was never compared with the truth: frames are guesses. */
bool hotspot_is_untried(const struct vmstructs *v, struct remote *r);
/*
 * Read the code cache again. Names of known blobs are kept; new methods get theirs by
 * hotspot_name(). 0, -E2BIG or -errno.
 */
int hotspot_scan(struct hotspot *h, struct remote *r);
/*
 * Read the code at each of @nr addresses, without a scan: code that was made since. It takes the
 * place of code that was there. 0 or -errno.
 */
int hotspot_look_up(struct hotspot *h, struct remote *r, const uint64_t *pcs, uint32_t nr);
/*
 * Read the name of blob @i, if it is the code of a method that a scan or a look-up has found; if
 * the reading fails, the name remains NULL. 0, or -E2BIG: too much for one JVM.
 */
int hotspot_name(struct hotspot *h, struct remote *r, uint32_t i);
/*
 * Test at each of @nr addresses whether the code there is unchanged: else chains that were read
 * before are invalid. 0 or -errno.
 */
int hotspot_test_current(const struct hotspot *h, struct remote *r, const uint64_t *pcs,
			 uint32_t nr, bool *current);

#define HOTSPOT_FRAMES_MAX 64U

/*
 * Find the methods inlined at @pc, an address in compiled code, innermost
 * first, the compiled method last. How many; 0: not known; -errno of reading.
 * *@exact: the code describes the call at look-up pc @pc; else they are of the
 * next description, which may be of other methods.
 */
int hotspot_chain(const struct hotspot *h, struct remote *r, uint64_t pc,
		  struct hotspot_frame frames[static HOTSPOT_FRAMES_MAX], bool *exact);
/*
 * The name of the Method at @method as "Class.name" in @name, and where its
 * bytecodes are. 0, -EBADMSG (makes no sense), -errno.
 */
int hotspot_method(const struct hotspot *h, struct remote *r, uint64_t method,
		   char name[static HOTSPOT_NAME_MAX], uint64_t *code, uint32_t *code_size);

/*
 * A job: read one JVM. It runs on a helper and uses nothing but its memory: it may hang and be
 * left.
 *
 * The loader owns the job while it does not run.
 */

#define HOTSPOT_READS_MAX 4000000U /* of pieces of memory, by one job */

/* Make a job for the process @pid; it does @run. NULL: no memory. */
struct hotspot_job *hotspot_job_new(pid_t pid, void (*run)(struct job *job));
/*
 * Read the tables, if the JVM is not open, then all that the job lists, by @j->remote: without a
 * sandbox, or in its worker. 0 or -errno.
 */
int hotspot_job_read(struct hotspot_job *j, const struct hotspot_tables *t);
/* Make room for the frames of one chain, j->frames. 0 or -ENOMEM. */
int hotspot_job_begin_chains(struct hotspot_job *j);
/* Store a copy of the first @nr of j->frames as the chain @c; none if the job has no memory left.
 */
void hotspot_job_add_chain(struct hotspot_job *j, struct hotspot_job_chain *c, int nr, bool exact);
/* Free a job that does not run; as the job's drop(). */
void hotspot_job_drop(struct job *job);
void hotspot_job_leave(struct hotspot_job *r);
/* Return how many abandoned jobs still have a helper. Any thread. */
unsigned int hotspot_job_nr_left(void);
/* Free the methods and addresses. */
void hotspot_job_forget(struct hotspot_job *r);
void hotspot_job_free_chains(struct hotspot_job_chain *chains, uint32_t nr);

/*
 * Read a JVM in the sandbox: a worker parses its memory, which is read here, piece by piece, as the
 * worker requests it. The worker's result is checked like the memory of a JVM.
 *
 * A worker reads one JVM at a time. When a helper hangs in a read, the loader abandons its job and
 * gives the worker to other jobs.
 *
 * Threads: a helper; hotspot_sandbox_leave() of the loader.
 */

/*
 * Find the JVM of a struct hotspot_job and read it in a worker, or here if there is no sandbox:
 * run() of the job.
 */
void hotspot_sandbox_run(struct job *job);
/*
 * Do hotspot_job_read() in a worker. 0 or its -errno; -EAGAIN: all workers are busy; -EPIPE,
 * -ETIME, -EBADMSG, -ESTALE: the worker ended, was too slow, or its answer makes no sense.
 */
int hotspot_sandbox_read(struct hotspot_job *j, const struct hotspot_tables *t);
/*
 * Take the result of a worker, foreign bytes, into the job; it took @cpu_ns. 0, -errno in it, or
 * -EBADMSG. Only for hotspot_sandbox_read() and its tests.
 */
int hotspot_sandbox_take(struct hotspot_job *j, const struct sandbox_answer *a, uint64_t cpu_ns);
/* End the worker that has read for @j, which does not run. The loader. */
void hotspot_sandbox_end(const struct hotspot_job *j);
/* Take the worker from a job that is abandoned. */
void hotspot_sandbox_leave(struct hotspot_job *j);

#define HOTSPOT_WIRE_SIZE (32U << 20) /* bytes of one question */
#define HOTSPOT_WANTS_MAX 4096U	      /* addresses of a kind in a job */

/* The state of a JVM: of struct hotspot all but the blobs. */
struct hotspot_wire_vm {
	struct vmstructs vm;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	uint64_t call_return;
	uint32_t nr_heaps;
	uint8_t polls, untried;
	uint8_t pad[2];
};

struct hotspot_wire_ask {
	uint32_t nr, size; /* pieces; bytes of each */
};

struct hotspot_wire_result {
	int32_t code;				/* 0 or -errno, of hotspot_job_read() */
	uint32_t nr_blobs, nr_frames, nr_texts; /* nr_texts: bytes */
	uint64_t cpu_ns, scan_ns;		/* CPU time of the worker: of all, of the scan */
	uint64_t first[HOTSPOT_FIRST_MAX];
	uint32_t nr_first, pad;
	struct hotspot_wire_vm vm;
};

/*
 * Java code in a recording. The results of reading a JVM are kept as functions of LANG_JAVA
 * (symbols/lang/code_log.h) until it is forgotten; details are in their line tables. A replay reads
 * them again.
 *
 * Threads: hotspots_keep_*() the loader. The rest is pure.
 */

enum hotspots_kept_kind {
	HOTSPOTS_KEPT_CODE = 1,
	HOTSPOTS_KEPT_METHOD, /* interpreted */
	HOTSPOTS_KEPT_CHAIN,
};

enum hotspots_kept_flag {
	HOTSPOTS_KEPT_RETIRED = 1 << 0,
	HOTSPOTS_KEPT_INLINES = 1 << 1,
	HOTSPOTS_KEPT_EXACT = 1 << 2, /* a chain: its code describes the call */
	HOTSPOTS_KEPT_BLIND = 1 << 3,
	HOTSPOTS_KEPT_UNTRIED = 1 << 4, /* the version of the JVM */
};

/* The process that something was read of. */
struct hotspots_keeper {
	struct code_log *log; /* NULL: nothing is kept */
	uint64_t process, time_ns, memory, call_return;
	uint32_t pid;
	bool untried;
};

void hotspots_keep_code(const struct hotspots_keeper *k, const struct hotspot_blob *b);
void hotspots_keep_method(const struct hotspots_keeper *k, uint64_t method, const char *name,
			  uint64_t bytecodes, uint32_t size);
void hotspots_keep_chain(const struct hotspots_keeper *k, const struct hotspot_job_chain *chain);
/* The frames of a chain, in one block for free(); NULL: they make no sense. */
struct hotspot_job_frame *hotspots_kept_frames(const struct code_text *text,
					       const struct hotspots_kept *kept);

#define HOTSPOTS_MAX 512U /* processes */
/*
 * Bytes of all JVMs, of the ones of one user, and of the names of one, old code included. The code
 * that one has now is limited by HOTSPOT_MEMORY_MAX, so that one takes 96 MiB at most.
 */
#define HOTSPOTS_MEMORY_MAX   (512UL << 20)
#define HOTSPOTS_USER_MEMORY  (HOTSPOTS_MEMORY_MAX / 4 * 3)
#define HOTSPOTS_NAMES_MEMORY (32UL << 20)

/*
 * One sampled JVM: shared by hotspots.c, hotspots_chain.c, hotspots_memory.c, hotspots_turn.c and
 * hotspots_replay.c. One thread: the loader, or a replay.
 */

#define HOTSPOTS_CALLS_MAX 65536U

/* A call at look-up pc @pc that the code with this compile id describes. */
struct hotspots_call {
	uint64_t pc;
	uint32_t compile_id;
};

struct hotspots_entry {
	uint32_t object;	     /* the memory, layer 0 */
	uint32_t methods_object;     /* OBJECT_ID_UNKNOWN: not made yet */
	struct hotspot_job *reading; /* NULL: barred, or not Java */
	bool runs;		     /* a helper has the reading */
	bool news, wanted;	     /* new names; some places have none */
	unsigned int tries;
	uint64_t due_ns;      /* of the next look-up */
	uint64_t scan_due_ns; /* of the whole code cache */
	uint64_t check_ns;    /* of the process's end */
	pid_t pid;
	uint32_t uid; /* of the process */
	struct jitreads_end end;
	uint64_t began_ns;
	uint64_t scanned_ns;	       /* code that a look-up finds new is younger than this */
	struct jitcode *code;	       /* compiled code */
	struct jitcode *methods;       /* by address of the method, one byte each */
	struct codemap_method *ranges; /* sorted by method */
	uint32_t nr_ranges;
	uint64_t *queue; /* methods to be read */
	uint32_t nr_queue;
	uint64_t *pcs; /* code to be read */
	uint32_t nr_pcs, max_pcs;
	struct hotspot_job_chain *chains; /* to be read */
	uint32_t nr_chains, max_chains;
	struct hotspot_job_chain *found; /* to be handed out, from the end */
	uint32_t nr_found, max_found;
	struct hotspots_call *calls; /* sorted by pc */
	uint32_t nr_calls, max_calls;
	bool new_calls; /* since the map was made */
	const struct codemap *map;
	size_t memory;	    /* as it is in the sum of all */
	size_t code_memory; /* of the reading */
	size_t found_memory;
	int refused; /* -errno of code that was left out for its memory; 0: none */
	struct object *layers[JITCODE_LAYERS]; /* also with that map; NULL: not used */
	/* Of a replay: */
	struct hotspot_job_chain *recorded; /* the first nr_sorted ones are sorted */
	uint32_t nr_recorded, max_recorded, nr_settled, nr_sorted;
	uint64_t recorded_size, methods_size;	 /* in bytes: frames; names that are not settled */
	uint32_t max_blobs, max_methods;	 /* in the reading */
	uint64_t nr_taken;			 /* records */
	int64_t spent_inserting, spent_settling; /* see hotspots_replay.c */
	bool left_out;				 /* there was more than is kept */
	bool pending; /* something was recorded since hotspots_settle() */
};

#define HOTSPOTS_METHODS_MAX 65536U

/* Find the JVM with the memory @object; NULL: none. */
struct hotspots_entry *hotspots_find_entry(const struct hotspots *h, const struct object *object);
struct hotspots_entry *hotspots_add_entry(struct hotspots *h, const struct object *object);
/* Count the bytes of @e in the sum of all. */
void hotspots_count(struct hotspots *h, struct hotspots_entry *e);
/* Take @e, which leaves, out of that sum. */
void hotspots_discount(struct hotspots *h, struct hotspots_entry *e);
/* Take the code and the methods of the reading that are new at @time_ns. */
void hotspots_take_code(struct hotspots *h, struct hotspots_entry *e, uint64_t time_ns);
/* Keep the chains that @r has read, to be returned, except of replaced code. */
void hotspots_keep_chains(struct hotspots_entry *e, struct hotspot_job *r);
/* Note that the newest code at look-up pc @pc describes the call there. */
void hotspots_take_call(struct hotspots_entry *e, uint64_t pc);
/* Put the recorded chain of @place at @addr, if there is one, among the found ones. */
void hotspots_find_recorded(struct hotspots_entry *e, uint32_t layer, uint64_t addr,
			    uint32_t place);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/java/, and by tests; no other room includes it. */
#ifndef SYMBOLS_JAVA_INTERNAL_H
#define SYMBOLS_JAVA_INTERNAL_H

#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"

struct code_text;
struct jitcode;
struct job;
struct jvm_read;
struct jvm_read_blob;
struct jvm_read_frame;
struct jvm_read_heap;
struct jvm_read_job;
struct jvm_read_job_chain;
struct jvm_read_job_frame;
struct jvm_table;
struct jvm_table_kept;
struct remote;
struct sandbox_answer;
struct script_log;
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
 * The table of the code of one JVM: sorted by start, without overlap.
 *
 * One thread: the owner of the struct jvm_read.
 */

#define JVM_READ_BLOBS_MAX (1U << 18)
/* Bytes of all blobs with names: 60,000 methods with names of 60 bytes take 8.5 MiB. */
#define JVM_READ_MEMORY_MAX (32UL << 20)

void jvm_read_close(struct jvm_read *h);
/* Free the blobs: the next reading is to be a scan. */
void jvm_read_forget_code(struct jvm_read *h);
/* Return the bytes of @b with its name. */
size_t jvm_read_blob_memory(const struct jvm_read_blob *b);
/*
 * Put @nr blobs that a worker has read into @h: in place of all known ones (@all), or only of the
 * ones that they overlap. They are sorted. The same code as before keeps its name, other code is
 * fresh. Takes over the array. 0, -E2BIG or -ENOMEM.
 */
int jvm_read_take(struct jvm_read *h, struct jvm_read_blob *blobs, uint32_t nr, bool all);
/* Free an array with the names in it. */
void jvm_read_blobs_free(struct jvm_read_blob *blobs, uint32_t nr);
/* Return the known blob that @pc is in; NULL: none. */
const struct jvm_read_blob *jvm_read_blobs_at(const struct jvm_read *h, uint64_t pc);
/* Return whether the range and the kind of @b are possible. */
bool jvm_read_blob_is_valid(const struct jvm_read_blob *b);
/* Count the bytes and the retired blobs again; @nr_new of them are new. */
void jvm_read_blobs_count(struct jvm_read *h, uint32_t nr_new);

/*
 * The code cache of a HotSpot JVM (OpenJDK 11 and newer), read from outside:
 * which blob of code is where, how large its frame is, and which method it
 * was compiled from. JDK source: codeCache.hpp, heap.hpp, codeBlob.hpp.
 *
 * Compile ids are never used again, so a blob with the same address, method and
 * compile id is the same code. Bytes are foreign: every number is bounded,
 * names are cut at JVM_READ_NAME_MAX.
 *
 * Runs on: a helper, one at a time. May hang.
 */

/* Where the tables of a JVM are: variables of its libjvm.so, mapped with @bias. */
struct jvm_read_tables {
	struct elfvar vars[VMSTRUCTS_VARIABLES];
	uint64_t bias;
};

/* Find libjvm.so in process @r->pid, and its tables. 0; -ENOENT: no JVM; other -errno. */
int jvm_read_find_tables(struct jvm_read_tables *t, struct remote *r);

#define JVM_READ_FRAMES_MAX 64U

/*
 * A job: read one JVM. It runs on a helper and uses nothing but its memory: it may hang and be
 * left.
 *
 * The loader owns the job while it does not run.
 */

#define JVM_READ_READS_MAX 4000000U /* of pieces of memory, by one job */

/* Make a job for the process @pid; it does @run. NULL: no memory. */
struct jvm_read_job *jvm_read_job_new(pid_t pid, void (*run)(struct job *job));
/*
 * Read the tables, if the JVM is not open, then all that the job lists, by @j->remote: without a
 * sandbox, or in its worker. 0 or -errno.
 */
int jvm_read_job_read(struct jvm_read_job *j, const struct jvm_read_tables *t);
/* Make room for the frames of one chain, j->frames. 0 or -ENOMEM. */
int jvm_read_job_begin_chains(struct jvm_read_job *j);
/* Store a copy of the first @nr of j->frames as the chain @c; none if the job has no memory left.
 */
void jvm_read_job_add_chain(struct jvm_read_job *j, struct jvm_read_job_chain *c, int nr,
			    bool exact);
/* Free a job that does not run; as the job's drop(). */
void jvm_read_job_drop(struct job *job);
void jvm_read_job_leave(struct jvm_read_job *r);
/* Return how many abandoned jobs still have a helper. Any thread. */
unsigned int jvm_read_job_nr_left(void);
/* Free the methods and addresses. */
void jvm_read_job_forget(struct jvm_read_job *r);
void jvm_read_job_free_chains(struct jvm_read_job_chain *chains, uint32_t nr);

/*
 * Read a JVM in the sandbox: a worker parses its memory, which is read here, piece by piece, as the
 * worker requests it. The worker's result is checked like the memory of a JVM.
 *
 * A worker reads one JVM at a time. When a helper hangs in a read, the loader abandons its job and
 * gives the worker to other jobs.
 *
 * Threads: a helper; jvm_read_sandbox_leave() of the loader.
 */

/*
 * Find the JVM of a struct jvm_read_job and read it in a worker, or here if there is no sandbox:
 * run() of the job.
 */
void jvm_read_sandbox_run(struct job *job);
/* End the worker that has read for @j, which does not run. The loader. */
void jvm_read_sandbox_end(const struct jvm_read_job *j);
/* Take the worker from a job that is abandoned. */
void jvm_read_sandbox_leave(struct jvm_read_job *j);

#define JVM_READ_WIRE_SIZE (32U << 20) /* bytes of one question */
#define JVM_READ_WANTS_MAX 4096U       /* addresses of a kind in a job */

/* The state of a JVM: of struct jvm_read all but the blobs. */
struct jvm_read_wire_vm {
	struct vmstructs vm;
	struct jvm_read_heap heaps[JVM_READ_HEAPS_MAX];
	uint64_t call_return;
	uint32_t nr_heaps;
	uint8_t polls, untried;
	uint8_t pad[2];
};

struct jvm_read_wire_ask {
	uint32_t nr, size; /* pieces; bytes of each */
};

struct jvm_read_wire_result {
	int32_t code;				/* 0 or -errno, of jvm_read_job_read() */
	uint32_t nr_blobs, nr_frames, nr_texts; /* nr_texts: bytes */
	uint64_t cpu_ns, scan_ns;		/* CPU time of the worker: of all, of the scan */
	uint64_t first[JVM_READ_FIRST_MAX];
	uint32_t nr_first, pad;
	struct jvm_read_wire_vm vm;
};

/*
 * Java code in a recording. The results of reading a JVM are kept as functions of LANG_JAVA
 * (struct script_log) until it is forgotten; details are in their line tables. A replay reads
 * them again.
 *
 * Threads: jvm_table_keep_*() the loader. The rest is pure.
 */

enum jvm_table_kept_kind {
	JVM_TABLE_KEPT_CODE = 1,
	JVM_TABLE_KEPT_METHOD, /* interpreted */
	JVM_TABLE_KEPT_CHAIN,
};

enum jvm_table_kept_flag {
	JVM_TABLE_KEPT_RETIRED = 1 << 0,
	JVM_TABLE_KEPT_INLINES = 1 << 1,
	JVM_TABLE_KEPT_EXACT = 1 << 2, /* a chain: its code describes the call */
	JVM_TABLE_KEPT_BLIND = 1 << 3,
	JVM_TABLE_KEPT_UNTRIED = 1 << 4, /* the version of the JVM */
};

/* The process that something was read of. */
struct jvm_table_keeper {
	struct script_log *log; /* NULL: nothing is kept */
	uint64_t process, time_ns, memory, call_return;
	uint32_t pid;
	bool untried;
};

#define JVM_TABLE_MAX 512U /* processes */
/*
 * Bytes of all JVMs, of the ones of one user, and of the names of one, old code included. The code
 * that one has now is limited by JVM_READ_MEMORY_MAX, so that one takes 96 MiB at most.
 */
#define JVM_TABLE_MEMORY_MAX   (512UL << 20)
#define JVM_TABLE_USER_MEMORY  (JVM_TABLE_MEMORY_MAX / 4 * 3)
#define JVM_TABLE_NAMES_MEMORY (32UL << 20)

/*
 * One sampled JVM: shared by java.c and jvm_read.c. One thread: the loader, or a replay.
 */

#define JVM_TABLE_CALLS_MAX 65536U

/* A call at look-up pc @pc that the code with this compile id describes. */
struct jvm_table_call {
	uint64_t pc;
	uint32_t compile_id;
};

struct jvm_table_entry {
	uint32_t object;	      /* the memory, layer 0 */
	uint32_t methods_object;      /* OBJECT_ID_UNKNOWN: not made yet */
	struct jvm_read_job *reading; /* NULL: barred, or not Java */
	bool runs;		      /* a helper has the reading */
	bool news, wanted;	      /* new names; some places have none */
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
	struct jvm_read_job_chain *chains; /* to be read */
	uint32_t nr_chains, max_chains;
	struct jvm_read_job_chain *found; /* to be handed out, from the end */
	uint32_t nr_found, max_found;
	struct jvm_table_call *calls; /* sorted by pc */
	uint32_t nr_calls, max_calls;
	bool new_calls; /* since the map was made */
	const struct codemap *map;
	size_t memory;	    /* as it is in the sum of all */
	size_t code_memory; /* of the reading */
	size_t found_memory;
	int refused; /* -errno of code that was left out for its memory; 0: none */
	struct object *layers[JITCODE_LAYERS]; /* also with that map; NULL: not used */
	/* Of a replay: */
	struct jvm_read_job_chain *recorded; /* the first nr_sorted ones are sorted */
	uint32_t nr_recorded, max_recorded, nr_settled, nr_sorted;
	uint64_t recorded_size, methods_size;	 /* in bytes: frames; names that are not settled */
	uint32_t max_blobs, max_methods;	 /* in the reading */
	uint64_t nr_taken;			 /* records */
	int64_t spent_inserting, spent_settling; /* see spend() */
	bool left_out;				 /* there was more than is kept */
	bool pending; /* something was recorded since jvm_table_settle() */
};

#define JVM_TABLE_METHODS_MAX 65536U

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code generated at run time: jitdumps, perf maps, layouts of frames, runtimes and their fixes.
 *
 * The caller owes: a thread of the loader for jobs; times of samples.
 *
 * The room does: finds, checks and follows the files that runtimes write, within limits for each
 * user; keeps code that replaced other code in layers; names the runtime of a process, its problem
 * and the fix.
 *
 * Not for: JVMs (symbols/java), interpreters (symbols/script).
 */
#ifndef SYMBOLS_JIT_JIT_H
#define SYMBOLS_JIT_JIT_H

#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"

struct helpers;
struct jitcode;
struct jitdumps_entry;
struct maps;
struct objects;
struct perfmaps_entry;
struct sandbox_reader;

/*
 * How the frames of a JIT's code are laid out, for the unwinder: an immutable
 * table, published on the object of the process's memory (object->codemap) by
 * the loader, freed after a grace period of urcu-qsbr.
 *
 * Threads: codemap_find() and codemap_method() from any urcu-qsbr reader; the
 * rest from the loader.
 */

enum codemap_kind {
	CODEMAP_FIXED,	     /* a frame of frame_words once it is complete */
	CODEMAP_INTERPRETER, /* frame pointer, method and bytecode pointer in slots */
	CODEMAP_DERIVED,     /* a part of a function: its frame is derived from its code */
	CODEMAP_OTHER,	     /* adapters and stubs: nothing is known of their frames */
};

struct codemap_code {
	uint64_t start;
	uint32_t size;
	uint32_t complete; /* offset from which the frame is complete */
	uint32_t frame_words;
	enum codemap_kind kind;
	bool retired;	/* other code may have taken its memory since */
	bool java;	/* a method, or the interpreter */
	bool inlines;	/* may have inlined methods */
	bool blind;	/* its loops may have inlined methods that no description has */
	uint64_t deopt; /* return address of deoptimised frames; 0: none */
	union {
		/*
		 * Four offsets of 16 bits from which the frame is removed, to the return; 0: not
		 * known.
		 */
		uint64_t exits;
		/* In bytes: the CFA from sp, or the frame pointer; slots from the CFA. */
		struct {
			int16_t cfa, ra, fp; /* 0: no slot, but in its register */
			bool by_fp;
		} derived;
	};
};

/* A method with interpreted frames. */
struct codemap_method {
	uint64_t method; /* its address in the process */
	uint64_t start;	 /* of its bytecodes */
	uint32_t size;	 /* 0: native */
};

struct codemap {
	struct reclaim rcu;
	uint32_t nr_codes, nr_methods, nr_calls;
	uint32_t methods_object; /* its offsets are addresses of methods */
	uint32_t nr_retired;
	bool derived;	      /* by a jitdump, of functions with samples alone */
	bool untried;	      /* all frames are guesses: the runtime's version is untested */
	uint64_t call_return; /* the return address in the stub that calls Java; 0: not known */
	const struct codemap_method *methods; /* behind codes; sorted by method */
	const uint64_t *calls; /* behind methods; look-up pcs that the code describes; sorted */
	struct codemap_code codes[]; /* sorted by start, no overlap */
};

/* Allocate a map of @nr_codes, @nr_methods and @nr_calls, to be filled in; NULL: no memory. */
struct codemap *codemap_new(uint32_t nr_codes, uint32_t nr_methods, uint32_t nr_calls);
static inline size_t codemap_memory(const struct codemap *map)
{
	return sizeof(*map) + map->nr_codes * sizeof(*map->codes) +
	       map->nr_methods * sizeof(*map->methods) + map->nr_calls * sizeof(*map->calls);
}
/* Publish @map (NULL: none) on @object; *old, if not shared with others, is to be freed. */
const struct codemap *codemap_publish(struct object *object, const struct codemap *map);
/* Free @map, which was published, once no reader can hold it. */
void codemap_reclaim(const struct codemap *map);
/* The code at @pc; NULL: none. */
const struct codemap_code *codemap_find(const struct codemap *map, uint64_t pc);
/* The method at @method; NULL: not known (yet). */
const struct codemap_method *codemap_method(const struct codemap *map, uint64_t method);
/* Is the call at look-up pc @pc known to be described by its code, with all inlined methods? */
bool codemap_describes(const struct codemap *map, uint64_t pc);

/*
 * Find running processes with code made at run time and without names for it: for
 * proftop --check.
 *
 * Reads /proc of all processes. Any one thread that may wait.
 */

struct jitcheck {
	pid_t pid;
	char program[32]; /* name of the process, clean */
	const char *fix;  /* static words: the option of its runtime */
};

/* Return the number of processes, the first @max of them in @out. @root: "" except in tests. */
uint32_t jitcheck_find(const char *root, struct jitcheck *out, uint32_t max);

/*
 * Code in the memory of one process over time: the function at each address, and
 * replaced functions.
 *
 * Code that overlaps older code is one layer above it, so that the code of one
 * layer never overlaps and (layer, address) always means the same function. Layer
 * 0 is the first code at its address. When all layers are used up, the top one
 * forgets replaced code.
 *
 * Pure; one thread. Numbers and texts are foreign, all is bounded.
 */

#define JITCODE_LAYERS	 64U
#define JITCODE_SIZE_MAX (64U << 20) /* bytes of one function */

/* The code from @offset bytes after the function's start is of @line of @file. */
struct jitcode_line {
	uint32_t offset;
	uint32_t line;
	uint32_t file; /* jitcode_add_file() */
};

struct jitcode_function {
	uint64_t start;
	uint32_t size;
	uint32_t layer;
	uint64_t time_ns;	  /* time of loading */
	uint64_t bytes_at;	  /* position of the instructions: an offset in the file */
	uint32_t serial;	  /* differs for code that was made again; 0: not known */
	uint32_t name, name_size; /* jitcode_text() */
	uint32_t first_line, nr_lines;
};

int jitcode_new(struct jitcode **out);
void jitcode_free(struct jitcode *c);

struct jitcode_load {
	uint64_t start, size, time_ns, bytes_at;
	uint32_t serial;
	const char *name; /* borrowed for the call */
	size_t name_size;
	const struct jitcode_line *lines; /* sorted by offset */
	uint32_t nr_lines;
};

/*
 * Add one function. The same function again (same range, name, serial) changes
 * nothing. 0, -EINVAL (impossible code), -ENOSPC, -ENOMEM.
 */
int jitcode_add(struct jitcode *c, const struct jitcode_load *load);
/*
 * Find the function with @addr in @layer; NULL when none. Borrowed until the next
 * call that adds.
 */
const struct jitcode_function *jitcode_find(const struct jitcode *c, uint32_t layer, uint64_t addr);
/* Find the newest function at @addr, of any layer. */
const struct jitcode_function *jitcode_latest(const struct jitcode *c, uint64_t addr);
/* Find the source of @addr, inside @f; NULL when unknown. */
const struct jitcode_line *jitcode_line(const struct jitcode *c, const struct jitcode_function *f,
					uint64_t addr);
/* Return the name of a function or file: NUL-terminated, foreign bytes. */
const char *jitcode_text(const struct jitcode *c, uint32_t at);
/* Return the next function that replaced other code, each once, or NULL. */
const struct jitcode_function *jitcode_next_over(struct jitcode *c);
uint32_t jitcode_nr(const struct jitcode *c);
size_t jitcode_memory(const struct jitcode *c);
/* Return the bytes that a function with a name of @name_size bytes needs; 0: they are there. */
size_t jitcode_growth(const struct jitcode *c, size_t name_size);

/* How far a jitdump was read. */
struct jitdump_state {
	uint64_t at;	       /* position; 0: not even the header was read */
	uint64_t early_at;     /* position of an incomplete record that is used already; 0: none */
	uint32_t nr_bad;       /* invalid records */
	uint32_t least_offset; /* see jitdump_line() */
	uint16_t machine;      /* e_machine */
	bool has_times;	       /* of CLOCK_MONOTONIC; else of an unknown clock */
	bool ended;	       /* reading has ended: closed, damaged, or full */
};

extern const struct sandbox_reader jitdump_reader;

#define JITREADS_ACTIVE_MAX  4U /* that do not hang */
#define JITREADS_HANGING_MAX 6U

struct jitread {
	struct job job;
	uint64_t source;
	bool untrusted; /* any user can make such a source */
};

struct jitreads {
	struct helpers *helpers; /* NULL: jobs run on the caller's thread */
	struct jitread *running[JITREADS_ACTIVE_MAX + JITREADS_HANGING_MAX];
	unsigned int nr;
};

uint32_t jitreads_user_with(struct objects *objects, const struct object *object);

/* The part of a table that one user may take. */
#define JITREADS_USER(max) ((max) / 4 * 3)

/* Whether a process has ended, and since when it is known. All zero at first. */
struct jitreads_end {
	uint64_t check_ns; /* not asked before */
	uint64_t since_ns; /* 0: it runs */
};

/* How long the code of a process that has ended is kept: as the default --history. */
#define JITREADS_KEEP_NS 600000000000ULL

/* Return true if @pid ended @keep_ns before @now_ns: its code can be freed. */
bool jitreads_expired(struct jitreads_end *e, pid_t pid, uint64_t now_ns, uint64_t keep_ns);

/* Borrowed from the map; the name is foreign bytes, not NUL-terminated. */
struct perfmap_symbol {
	uint64_t start, size;
	const char *name;
	uint32_t name_size;
};

/*
 * Recognise the language runtime of a process or of a file, and name the fix of a problem with it:
 * one table of problems and runtimes for all messages.
 *
 * Pure except for reading /proc/PID. Any thread.
 */

enum runtime_problem {
	RUNTIME_NO_MAP,	 /* code generated at run time has no names */
	RUNTIME_NO_CFI,	 /* a file of the runtime has no unwind tables */
	RUNTIME_SCRIPTS, /* functions of scripts are not read: the reason, for runtimes without a
			    reader */
	/* Functions of scripts are guesses: */
	RUNTIME_CUT,	    /* the native stack is not whole, or has guesses */
	RUNTIME_UNALIGNED,  /* they do not match the native frames one to one */
	RUNTIME_UNTRIED,    /* of a version that was never compared with the truth */
	RUNTIME_LATE,	    /* the thread may have run on before it was read */
	RUNTIME_LATE_FIRST, /* the same, though the readers have a real-time priority */
	RUNTIME_NR_PROBLEMS,
};

/* Return the words for code of the file @path, or of the language @path (lang_name()). */
const char *runtime_fix_in(enum runtime_problem problem, const char *path);

extern const struct sandbox_reader perfmap_reader;

struct jitdump {
	struct jitcode *code;
	struct jitdump_state state;
	uint64_t nr_more; /* parts that were not read to their end */
};

/*
 * The perf maps of the processes with sampled JIT code.
 *
 * A map is searched in the process's root, by its innermost pid
 * (pid_namespaces(7)), and trusted only if it is a regular file with one name,
 * owned by the process's user or by root. It is read when the first address of a
 * process is looked up, and again when it changed, at most once a second and only
 * while addresses are missing. It is freed ten minutes after the end of its process: the
 * places of its code have their names by then.
 *
 * One thread: the loader. Files are read by jobs. Without helpers they are read here
 * and may hang; afterwards check @stop before touching anything borrowed.
 */

struct perfmaps {
	struct objects *objects;
	struct jitreads *reads;
	const atomic_bool *stop;
	bool no_proc;	  /* a recording: /tmp/perf-PID.map here, owned by this user or root */
	const char *root; /* below this folder, as in struct images */
	struct perfmaps_entry **entries;
	uint32_t nr_entries;
	uint32_t *by_object; /* index in entries + 1; 0: none */
	uint32_t nr_by_object;
	uint32_t next;	     /* next entry to check */
	atomic_ulong memory; /* written here, relaxed */
};

void perfmaps_init(struct perfmaps *p, struct objects *objects, struct jitreads *reads,
		   const atomic_bool *stop);
void perfmaps_fini(struct perfmaps *p);
/*
 * Find the entry with @addr in the memory of @object (OBJECT_ANON), borrowed until
 * the next call. 0; -EAGAIN until the process's map was searched once; -ENOENT: then
 * the object has the reason.
 */
int perfmaps_find(struct perfmaps *p, struct object *object, uint64_t addr,
		  struct perfmap_symbol *out);
/* Take or start reads. Return the object with a new or changed map, or OBJECT_ID_UNKNOWN. */
uint32_t perfmaps_refresh(struct perfmaps *p, uint64_t now_ns);

/*
 * Jobs on one jitdump: search it and read its new records; read the instructions of one function.
 *
 * A job runs on a helper, or on the caller without helpers, and uses nothing but its memory: it may
 * hang and be left.
 */

/* An object with the name of a jitdump. */
struct jitdump_name {
	uint32_t object;
	pid_t first_pid;    /* first process that mapped it: later ones do not change it */
	uint64_t inner_pid; /* the one in its name */
};

/* A file that may be the jitdump of a process, as the job opens it. */
struct jitdump_candidate {
	struct jitdump_name file;
	struct object_identity identity;
	struct object_sighting seen; /* seen.path is owned */
};

/* A job: search a jitdump, or continue reading it. It uses nothing but this. */
struct jitdump_job {
	struct jitread read;
	pid_t pid;
	bool no_proc; /* as in struct jitdumps */
	bool full;    /* no memory for more code */
	char *root;   /* owned */
	struct jitdump_candidate *candidates;
	uint32_t nr_candidates;
	uint64_t process_start; /* field 22 of /proc/PID/stat when it was opened */
	bool asks;		/* whether the process has ended */
	bool closes;		/* the file: names are kept */
	struct jitdump dump;
	int fd;	       /* -1: no jitdump yet, or closed */
	uint64_t size; /* of the jitdump when it was last checked */
	/* Results of one run: */
	int rc;
	bool news; /* code was added */
	bool more; /* it was not read to its end */
	bool gone; /* the process has ended, and its jitdump was read to its end */
	bool closed;
	uint64_t cost_ns;
};

/*
 * The jitdumps of the processes with sampled JIT code.
 *
 * A JIT maps its jitdump executable only to make profilers notice it: an object
 * named jit-PID.dump, jit-TID-PID.dump or jit-TID-PID-XXXXXX that the process mapped is its
 * jitdump, if PID is the process's pid in its namespace. It is trusted by the rules of perf maps,
 * kept open, and read as it grows, all the time: code that replaces other code must be known before
 * it is sampled, so that counts of both are separate (maps_on_code()). Its code is freed ten
 * minutes after the end of its process: the places have their names by then.
 *
 * One thread: the loader. Files are read by jobs. Without helpers they are read here
 * and may hang; afterwards check @stop before touching anything borrowed.
 */

struct jitdumps {
	struct objects *objects;
	struct maps *maps; /* notified of reused memory; NULL: none */
	struct jitreads *reads;
	const atomic_bool *stop;
	bool no_proc;	  /* a recording: read immediately, and only files of this user or root */
	const char *root; /* below this folder, as in struct images */
	bool other_clock; /* sample times are not of CLOCK_MONOTONIC */
	struct jitdump_name *files;  /* objects that may be jitdumps, each with a reference */
	uint32_t nr_files, nr_found; /* listed; ever listed */
	struct jitdumps_entry **entries;
	uint32_t nr_entries, nr_open;
	uint32_t *by_object; /* index in entries + 1; 0: none */
	uint32_t nr_by_object;
	uint32_t next;	     /* next entry to check */
	atomic_ulong memory; /* written here, relaxed */
};

struct jitdumps_symbol {
	uint64_t start, size;
	const char *name; /* foreign bytes, NUL-terminated; borrowed until the next call */
	uint32_t name_size;
};

void jitdumps_init(struct jitdumps *j, struct objects *objects, struct maps *maps,
		   struct jitreads *reads, const atomic_bool *stop);
void jitdumps_fini(struct jitdumps *j);
/* Return the object of the memory that @object is a layer of: the same for all layers. */
struct object *jitdumps_base(struct jitdumps *j, struct object *object);
/*
 * Find the code at @addr in @object (OBJECT_ANON). 0; -EAGAIN while its jitdump is
 * being read; -ENOENT: no jitdump has it.
 */
int jitdumps_find(struct jitdumps *j, struct object *object, uint64_t addr,
		  struct jitdumps_symbol *out);
/* Find the source of @addr in the jitdump. */
bool jitdumps_line(struct jitdumps *j, struct object *object, uint64_t addr, const char **file,
		   uint32_t *line);
/*
 * Read the instructions of the function @variant at @start, at most @max bytes,
 * into *bytes (malloc'ed): return their size, or -errno. *size: all; *machine:
 * e_machine.
 */
int jitdumps_code(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
		  uint8_t **bytes, uint32_t max, uint64_t *size, uint16_t *machine);
/* Find the source of @addr in the function @variant at @start. */
bool jitdumps_code_line(struct jitdumps *j, struct object *object, uint64_t start, uint64_t variant,
			uint64_t addr, const char **file, uint32_t *line);
/* Continue reading the jitdumps. Return the object that got new names, or OBJECT_ID_UNKNOWN. */
uint32_t jitdumps_refresh(struct jitdumps *j, uint64_t now_ns);

#endif

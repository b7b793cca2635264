/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a place to a name, in the background: the interface of the rooms of symbols/.
 *
 * The caller owes: one loader for a session; ids of the same generation of tables.
 *
 * The room does: serves requests of /proc, images and names by two threads and helpers, so that
 * neither a sampler nor the UI ever waits for a file.
 *
 * Not for: anything on the thread of the caller but look-ups by id.
 *
 * The loader threads serve three kinds of requests, and neither a sampler nor the UI ever waits for
 * them: /proc/PID of a new process (maps_ask), the image of an object (object_want), the symbol of
 * a place (every place, in order of id). A symbol is a function: counts are summed by its id, and
 * the UI keeps its selection by it. Ids are dense and append-only.
 *
 * Code without a symbol gets a name from the FDE that covers it ("libfoo.so+0x1230"), else from the
 * address.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/kernel/kernel.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"

struct code_text;
struct details;
struct inlines;
struct listing;
struct listing_instance;
struct listing_lines;
struct maps;
struct object;
struct objects;
struct places;
struct script_functions;
struct symbol;
struct symbol_frame;
struct symbols;
struct symtab;

struct places_move {
	struct places *from, *to;
	const struct inlines *from_chains;
	struct inlines *to_chains;
	uint32_t *ids; /* by old id the new one + 1; 0: not moved */
	uint32_t nr_ids;
	uint32_t *files; /* by old id of a file the new one + 1; 0: not moved */
	uint32_t nr_files;
	const struct objects *objects;
	const struct symtab *symtab;
	uint32_t ended; /* the object of code of ended processes; OBJECT_ID_UNKNOWN: none */
};

/* Builder: return the new id of place @id, moved now if it was not; PLACE_NONE: the table is full.
 */
uint32_t places_move_one(struct places_move *m, uint32_t id);

/* Figures of symbols: filled by the loader, shown by the UI. */

/* Processes that are left out, as some hang their reader in /proc. */
enum symbols_left_out {
	LEFT_OUT_HUNG, /* no others */
	LEFT_OUT_USER, /* all of a user that has too many of them */
	LEFT_OUT_ALL,  /* all that are new: there are too many */
};

struct symbols_hung {
	uint32_t nr; /* threads that hang */
	/* When the newest one began to: */
	pid_t pid;  /* its process; 0: none yet */
	uid_t user; /* the real uid of that */
	enum symbols_left_out left_out;
};

struct symbols_stats {
	uint64_t nr_images, nr_failed;	       /* objects loaded, not loadable */
	uint64_t nr_evicted;		       /* evictions of images */
	size_t image_memory, image_memory_max; /* bytes used by images, and their limit */
	uint64_t nr_named, nr_unnamed;	       /* places with a name, with only an address */
	uint64_t nr_waiting;		       /* places without a symbol yet */
	uint32_t nr_seen;		       /* places below this id were tried once */
	uint64_t nr_lines, nr_lines_waiting;   /* places with source lines; not looked up yet */
	struct symbols_hung hung;	       /* readers of /proc */
	size_t memory;			       /* bytes of images and names */
};

/*
 * Fill in the readers of the sandbox (sandbox_start()) for names. @code: with the disassembler,
 * which takes 2 ms to load; without it no code is read.
 */
void symbols_sandbox_readers(bool code,
			     const struct sandbox_reader *readers[static SANDBOX_NR_KINDS]);
/* Start the sandbox, one call to a worker, and stop it. 0, or -errno: no foreign file can be read.
 */
int symbols_sandbox_check(void);
/*
 * Create the tables and the loader. All three tables are borrowed and must outlive the result; but
 * see symbols_end_move().
 */
int symbols_new(struct symbols **out, struct places *places, struct objects *objects,
		struct maps *maps, struct err *e);

struct symbols_config {
	size_t memory_max;  /* bytes of images (--symbol-memory); 0: the usual */
	size_t memory_idle; /* above this, images without samples leave sooner; 0: the usual */
	bool no_inline;	    /* read no debug information (--no-inline) */
	bool no_lines;	    /* read no source lines, only inlined functions */
	bool no_java;	    /* read no code cache of a JVM */
	bool no_recording;  /* none begins: keep no code of virtual machines for one */
	bool record_past;   /* one may begin in the past: it wants code of those that ended */
};

/* Before the start. */
void symbols_configure(struct symbols *s, const struct symbols_config *config);
/*
 * Before the start: a recording. Its pids may be of other processes by now, so
 * only files are read: here, or below @root (borrowed; NULL: here), a copy of the
 * files of the recorded machine.
 */
void symbols_recorded(struct symbols *s, const char *root);
/*
 * After symbols_recorded(), before the start: the recorded kernel. Returns KERNEL_SAME if its
 * symbols are known: from the running kernel, or from a list below the root.
 */
enum kernel_match symbols_recorded_kernel(struct symbols *s, const struct kernel_identity *was);
/* Side-band of a recording: the addresses of that kernel's code. */
void symbols_kernel_was(struct symbols *s, const struct recorded_kernel *told);
/* Side-band of a recording: a module of that kernel, of @file, foreign bytes. */
void symbols_kernel_module(struct symbols *s, const char *file, size_t size, uint64_t start,
			   uint64_t end);
/* Before the start: a recording with another clock than CLOCK_MONOTONIC. */
void symbols_other_clock(struct symbols *s);
/*
 * Side-band: the kernel made code (a BPF program, a trampoline) named @name,
 * foreign bytes; or removed it. Not after symbols_stop().
 */
void symbols_on_kernel_code(struct symbols *s, uint64_t start, uint32_t size, bool bpf,
			    const char *name, size_t name_size);
void symbols_on_kernel_gone(struct symbols *s, uint64_t start, uint32_t size);

/* A function as another session named it; foreign bytes. */
struct symbols_kept {
	const char *name, *module;
	size_t name_size, module_size;
	char kind;
	bool inlined, made_up; /* made_up: the name is an address */
};

/*
 * Only without symbols_start(): return the place of a kept function, named already; the same
 * function has one place. PLACE_NONE: the tables are full.
 */
uint32_t symbols_keep_function(struct symbols *s, struct places *places, struct objects *objects,
			       const struct symbols_kept *f);
/* The same of the frame of a wait. */
uint32_t symbols_keep_wait(struct symbols *s, struct places *places, enum wait_kind kind);
/* Only without symbols_start(): code of the kept module @name is an interpreter's. */
void symbols_keep_interpreter(struct objects *objects, const char *name, size_t size);
int symbols_start(struct symbols *s, struct err *e);
/* Stop and join the loader threads (bounded: a hanging thread is abandoned). */
void symbols_stop(struct symbols *s);
/* Free. False: a thread was abandoned; it keeps the maps, places and objects. */
bool symbols_free(struct symbols *s);
/* Wake the loader. Any thread, async-signal-safe (one eventfd write). */
void symbols_wake(struct symbols *s);
/* Do all requested work on the caller's thread (tests and replay; only without symbols_start()). */
void symbols_run(struct symbols *s);
/* Make symbols_run() return early from now on: its result is not needed. Any thread. */
void symbols_stop_run(struct symbols *s);
/* Load only the processes and objects that stacks need, not names. */
void symbols_run_objects(struct symbols *s);
/* Samples of the kernel will follow: read its symbols in the background. */
void symbols_expect_kernel(struct symbols *s);
/* Any thread; NULL for unused ids. */
const struct symbol *symbols_at(const struct symbols *s, uint32_t id);
uint32_t symbols_nr(const struct symbols *s);
/* Builder: return whether the loader has taken the last table; else symbols_begin_move() fails. */
bool symbols_can_move(const struct symbols *s);
/*
 * Builder: begin to replace the table of places by @to, which other threads may fill already.
 * places_move_one() moves one, with its name and source; the rest is left behind. NULL: out of
 * memory, or the loader has not taken the last table.
 */
struct places_move *symbols_begin_move(struct symbols *s, struct places *from, struct places *to);
/* Use the new table from now on. The old one is the loader's, which frees it. */
void symbols_end_move(struct symbols *s, struct places_move *m);
/*
 * Builder, lock-free: the functions at @place, innermost first, if debug
 * information is loaded; else NULL. Available later than the name; valid as long
 * as the table.
 */
const struct symbol_frame *symbols_source(const struct symbols *s, uint32_t place, uint32_t *nr);
/* Builder: a source file's path; TEXT("") for unused ids. */
struct safe_text symbols_file(const struct symbols *s, uint32_t id);
uint32_t symbols_nr_files(const struct symbols *s);
/*
 * A replay, before the start: get the process that @text, a recorded function of LANG_JAVA, is of,
 * and an address in its code. False: it makes no sense.
 */
bool symbols_java_process(const struct code_text *text, pid_t *pid, uint64_t *addr,
			  uint64_t *time_ns);
/* Take it, with the memory at that address. */
void symbols_java_replay(struct symbols *s, const struct object *memory,
			 const struct code_text *text);
/* Before the next sample. True: the maps changed. */
bool symbols_java_settle(struct symbols *s, uint64_t time_ns);
void symbols_stats(const struct symbols *s, struct symbols_stats *out);
/* Code of interpreters, and the object of its places. */
struct script_functions *symbols_codes(struct symbols *s);
uint32_t symbols_script(const struct symbols *s);
/* Before the start: wake eventfd @fd whenever a process is found to be an interpreter. */
void symbols_watch_interpreters(struct symbols *s, int fd);
/* Return how many were found. */
uint32_t symbols_nr_interpreters(const struct symbols *s);
/* The object of the kinds of waits: enum wait_kind is the offset in it. */
uint32_t symbols_wait(const struct symbols *s);
/* Return the source of process details (process.h); NULL in a recording. */
struct details *symbols_details(struct symbols *s);
/*
 * Any thread: fetch the debug file of an object from debuginfod in the
 * background; a second call cancels.
 */
void symbols_fetch(struct symbols *s, uint32_t object);
/* Any thread: get the message about a fetch; false: no new one. */
bool symbols_fetch_news(struct symbols *s, char *buf, size_t size);
/*
 * Any thread: request the instructions of a function, of @instance if many processes have it; a
 * newer request replaces this one.
 */
void symbols_want_code(struct symbols *s, uint32_t symbol, const struct listing_instance *instance);
/* Any thread: the same for a function of a language: its source. */
void symbols_want_lines(struct symbols *s, uint32_t symbol, const struct listing_lines *lines);
/* Return the instructions, the caller's reference; NULL: not yet. */
struct listing *symbols_code(struct symbols *s, uint32_t symbol);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines and inlined functions, by libdw in the sandbox.
 *
 * The caller owes: an object with debug information; the loader's thread.
 *
 * The room does: checks sizes before libdw opens a file, answers many addresses in a call, keeps
 * the results by place.
 *
 * Not for: unwind tables (symbols/elf).
 */
#ifndef SYMBOLS_DWARF_DWARF_H
#define SYMBOLS_DWARF_DWARF_H

#include "symbols/image/image.h"
#include "symbols/name/name.h"

struct dwarf_sandbox;
struct inlines;
struct jvm_table_chain;
struct lines_job;
struct lines_object;
struct places;
struct sandbox_reader;
struct symtab;

/*
 * Functions and lines that the source has at places: chains of functions by place
 * id, and the source files' paths by id. Both append-only; each generation of places has another
 * table, with the chains and files of the places that moved.
 *
 * One writer (the loader; chains of a new generation of places are written by the builder before);
 * readers from any thread, lock-free.
 */

int inlines_new(struct inlines **out);
void inlines_free(struct inlines *c);

#define INLINES_NONE UINT32_MAX

/* Writer. Return the number of a chain, the same for equal ones; INLINES_NONE: the table is full.
 */
uint32_t chains_intern(struct inlines *c, const struct symbol_frame *frames, uint32_t nr);
/* Writer. Set the chain of @place, once, by its number. 0, -ENOSPC, -ENOMEM. */
int inlines_set(struct inlines *c, uint32_t place, uint32_t number);
/* Writer. The same of a file of the table before: it is not refused for the share of @object. */
uint32_t inlines_move_file(struct inlines *c, uint32_t object, struct safe_text file);
/* Any thread. */
const struct symbol_frame *inlines_at(const struct inlines *c, uint32_t place, uint32_t *nr);
struct safe_text inlines_file(const struct inlines *c, uint32_t id);
uint32_t inlines_nr_files(const struct inlines *c);
/* Writer. */
size_t inlines_memory(const struct inlines *c);

#define DWARF_FRAMES_MAX 32U

/* One function of the chain at an address; texts are foreign, borrowed from the dwarf. */
struct dwarf_frame {
	const char *name;  /* maybe mangled; NULL: the function that is not inlined, of a symbol */
	const char *file;  /* NULL: unknown */
	const char *dir;   /* folder of a relative file; may be NULL */
	uint32_t line;	   /* 0: unknown */
	uint32_t start;	   /* first line of the function; 0: unknown */
	uint64_t identity; /* of an inlined one: with its name; 0: the name is enough; else the
			      start */
};

/*
 * Call @fn for each start of a line in [vaddr, vaddr + size), in order of
 * address: its file and line (borrowed), both 0 where there is none. 0, or
 * -ETIME.
 */
typedef void (*dwarf_line_fn)(void *ctx, uint64_t vaddr, const struct dwarf_frame *at);

/* Join @dir and @file, unless @file is absolute, into @buf. */
void dwarf_path(char *buf, size_t size, const char *dir, const char *file);

extern const struct sandbox_reader dwarf_sandbox_reader, dwarf_sandbox_others;

/*
 * Look up inlined functions and lines of sampled places.
 *
 * Named places are added to the queue of their object; the object with the
 * longest queue is first. Debug files are kept open while they are used, few at a time. A file that
 * costs too much time is not used again.
 *
 * One thread: the loader. Helpers read; a helper that hangs is abandoned.
 */

struct lines {
	const struct image_cache *images;
	struct places *places;
	struct symtab *symtab;
	struct inlines *chains;
	struct lines_job *job;	       /* running; or NULL */
	bool off, no_lines;	       /* nothing is looked up; functions only */
	uint64_t began_ns, emptied_ns; /* when it was set up; when its queue was last empty */
	struct lines_object **list;
	uint32_t nr_list;
	uint32_t *by_object; /* index in list + 1; 0: none */
	uint32_t nr_by_object;
	atomic_ulong nr_found, nr_waiting; /* written here, relaxed and release */
	struct demangler demangler;
};

void lines_init(struct lines *l, const struct image_cache *images, struct places *places,
		struct symtab *symtab, struct inlines *chains);
void lines_fini(struct lines *l);
/* Place @id got its name: queue it. */
void lines_add(struct lines *l, uint32_t id);
/*
 * Use other tables from now on: @ids is by old id of a place the new one + 1, 0: it is not moved.
 */
void lines_move(struct lines *l, struct places *places, struct inlines *chains, const uint32_t *ids,
		uint32_t nr_ids);
/* The line of place @id is known from another source: a jitdump. */
void lines_told(struct lines *l, uint32_t id, const char *file, uint32_t line);
/* Keep the source of a place in compiled Java code, unless it is another place by now. */
void lines_java(struct lines *l, const struct jvm_table_chain *chain);
/* Object @object has more to read than before: try refused look-ups again. */
void lines_again(struct lines *l, uint32_t object);
/*
 * Take results, start the next look-up. Unless @now, few places wait for more. False: no work, or a
 * helper is busy.
 */
bool lines_work(struct lines *l, bool now);
/* Return true while a helper is busy. */
bool lines_busy(const struct lines *l);

void dwarf_sandbox_close(struct dwarf_sandbox *d);
/* As dwarf_lines(), at most DWARF_SANDBOX_ROWS rows. */
int dwarf_sandbox_lines(struct dwarf_sandbox *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn,
			void *ctx);

/*
 * Find the debug information of an object, in the object or in its debug file, and open it.
 *
 * Threads: any that may hang.
 */

/*
 * Open it for many look-ups: 0, -ESTALE (not the file of the image), or -errno as
 * dwarf_sandbox_open(); then the caller owns *out. @code, unless NULL: gets the object itself, also
 * without debug information; -1: it is not to be read. @out NULL: only that.
 */
int dwarf_object_open(const struct load_where *where, bool no_lines, int *code,
		      struct dwarf_sandbox **out);
/* Return the words for a result of dwarf_object_open(), as object->debug. Static. */
const char *dwarf_object_words(int code);

#endif

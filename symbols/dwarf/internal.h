/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/dwarf/, and by tests; no other room includes it. */
#ifndef SYMBOLS_DWARF_INTERNAL_H
#define SYMBOLS_DWARF_INTERNAL_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/dwarf/dwarf.h"
#include "symbols/sandbox/sandbox.h"

struct elffile;

#define DWARF_SANDBOX_ROWS 65536U /* rows of lines in one call */

struct dwarf;
struct dwarf_frame;
struct dwarf_sandbox;
struct inlines;

#define INLINES_MEMORY_MAX (128UL << 20)
/* Of the paths, beside the chains. */
#define INLINES_FILES_MEMORY_MAX (32U << 20)

/*
 * Source lines and inlined functions of one object, from its DWARF (DWARF 5,
 * 3.3.8 "Inlined Subroutines"), read with libdw through a descriptor.
 *
 * libdw is fast but trusting, so files of other users than root and this one have another
 * worker; no section is beyond ELFDWARF_SIZE_MAX, no path to open (the dwz file and split files are
 * opened by the client), and no request without a limit of CPU time.
 *
 * One thread: the loader.
 */

/* Bit of a place of which no symbol is known: the function itself has its name and start as well.
 */
#define DWARF_NAMELESS (1ULL << 63)
/* Return the linkage name, unique if it is external; NULL: there is none. */
static inline const char *dwarf_linkage_name(Dwarf_Die *die)
{
	static const unsigned int linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attr;
	const char *name;

	for (size_t i = 0; i < ARRAY_SIZE(linkage); i++) {
		/* Follows abstract origins, at most sixteen. */
		if (dwarf_attr_integrate(die, linkage[i], &attr) &&
		    (name = dwarf_formstring(&attr)) && *name)
			return name;
	}
	return NULL;
}

/* Names of functions with their scopes, by DIE (Dwarf_Die of libdw). One thread: that of the file.
 */
#define DWARF_SCOPE_BUCKETS 1024U

struct dwarf_scope {
	struct dwarf_scope *next;
	const void *die; /* address of its bytes: unique */
	char name[];
};

struct dwarf_scopes {
	struct dwarf_scope *buckets[DWARF_SCOPE_BUCKETS];
	uint32_t nr;
	size_t size; /* bytes of paths */
	uint64_t deadline_ns;
	uint32_t nr_steps;
};

/*
 * Return the name of the function @die, an inlined one's or its origin's, as in
 * the source; NULL when it has none. At most until @deadline_ns of this thread's
 * CPU time, then without its scopes. Valid as long as *@scopes, which is
 * made if it is NULL.
 */
const char *dwarf_scopes_name(struct dwarf_scopes **scopes, Dwarf_Die *die, uint64_t deadline_ns,
			      bool *damaged);

static inline void dwarf_scopes_free(struct dwarf_scopes *s)
{
	for (uint32_t i = 0; s && i < DWARF_SCOPE_BUCKETS; i++) {
		for (struct dwarf_scope *k = s->buckets[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	}
	free(s);
}

/*
 * Lines of a unit, copied from libdw: that keeps each row, of more than twice the size, until it
 * closes the file. Rows of one line are one here, up to the next row.
 */
#define DWARF_ROW_END UINT32_MAX /* as file: no line from here on */

struct dwarf_row {
	uint64_t at;
	uint32_t line, file;
};

struct dwarf_rows {
	size_t size; /* bytes, of paths too that were new */
	uint32_t nr, nr_files;
	struct dwarf_row *list;
	const char **files; /* the paths are in the scopes given to dwarf_rows_read() */
};

/*
 * Copy the lines of @unit to one block, for free(3); @paths is made if it is NULL. NULL: out of
 * memory.
 */
struct dwarf_rows *dwarf_rows_read(struct dwarf_scopes **paths, Dwarf_Die *unit);

/* Return the last row at or before @addr, else the first one. */
static inline uint32_t dwarf_rows_before(const struct dwarf_rows *r, uint64_t addr)
{
	uint32_t nr = search_split(r->nr, i, r->list[i].at <= addr);

	return nr ? nr - 1 : 0;
}

/* Return file @number; NULL: there is none. */
static inline const char *dwarf_rows_file(const struct dwarf_rows *r, uint64_t number)
{
	return number < r->nr_files ? r->files[number] : NULL;
}

/*
 * Requests and answers of DWARF in the sandbox. An answer is a head, then for chains the length of
 * each (int32_t) and their frames, for lines an address (uint64_t) and a frame for each row, then
 * texts.
 */

#define DWARF_SANDBOX_PLACES 64U /* addresses in one call */

enum dwarf_wire_kind {
	DWARF_WIRE_OPEN,
	DWARF_WIRE_CLOSE,
	DWARF_WIRE_CHAINS,
	DWARF_WIRE_LINES,
	DWARF_WIRE_SPLIT,  /* the split file of @unit, or none */
	DWARF_WIRE_PACKAGE /* the package of split files */
};

#define DWARF_WIRE_NONE UINT32_MAX /* no text */

struct dwarf_wire_request {
	uint32_t kind, handle;
	uint64_t bias, size; /* open: size of the file; lines: of the code */
	uint32_t nr;	     /* of vaddrs */
	uint32_t unit;	     /* of a split file */
	bool alt;	     /* open: the second descriptor is its dwz file */
	bool no_lines;	     /* open: functions only */
	uint64_t vaddrs[DWARF_SANDBOX_PLACES];
};

struct dwarf_wire_opened {
	uint32_t handle;
	uint32_t split; /* some functions are in split files */
};

struct dwarf_wire_head {
	uint32_t nr;	     /* chains or rows */
	uint32_t texts_size; /* the last byte is NUL */
	uint32_t wanted;     /* chains: the next address needs the split file of this unit - 1 */
	uint32_t wanted_name, wanted_dir; /* offsets in the texts */
	uint32_t damaged;		  /* 1: the file has damaged lines or names (for chains) */
};

struct dwarf_wire_frame {
	uint32_t name, file, dir; /* offsets in the texts */
	uint32_t line, start;
	uint32_t identity[2];
};

_Static_assert(sizeof(struct dwarf_wire_request) <= SANDBOX_REQUEST_MAX, "a request is one packet");

/*
 * DWARF, read in the sandbox: the functions of dwarf.h for a file that a worker has open.
 *
 * The caller opens the files and sends their descriptors; libdw and libelf run in the worker only.
 * Each answer is checked here: lengths, offsets, the order of addresses. The worker has a file open
 * until it is closed here, or until the worker is replaced (-ESTALE: open it again).
 *
 * Threads: one at a time for each struct; helpers only, since a call may wait.
 */

#define DWARF_SANDBOX_OPEN_NS 8000000000ULL /* limit of opening; other calls have less */

/* Chains at some addresses; the texts of @frames are in @texts. */
struct dwarf_chains {
	uint32_t nr;			      /* addresses done: the worker stops after its slice */
	int nr_frames[DWARF_SANDBOX_PLACES];  /* as dwarf_chain() */
	uint32_t first[DWARF_SANDBOX_PLACES]; /* of them, in frames */
	struct dwarf_frame *frames;
	uint8_t *texts;
};

/* Get the chains at @nr addresses. 0; -ESTALE, or another error of sandbox_call(). */
int dwarf_sandbox_chains(struct dwarf_sandbox *d, const uint64_t *vaddrs, uint32_t nr,
			 struct dwarf_chains *out);
void dwarf_chains_free(struct dwarf_chains *c);

#endif

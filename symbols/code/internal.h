/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/code/, and by tests; no other room includes it. */
#ifndef SYMBOLS_CODE_INTERNAL_H
#define SYMBOLS_CODE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/code/code.h"

struct listing;
struct listing_file;
struct listing_insn;

/* Create one, with one reference; NULL without memory. */
static inline struct listing *listing_get(struct listing *l)
{
	/* Relaxed: the caller has a reference. */
	if (l)
		atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
	return l;
}

/*
 * Bytes → instructions as text, by the disassembler in the sandbox. Without one (HAVE_CAPSTONE), or
 * when its worker dies or is too slow, lines of bytes.
 *
 * The bytes are hostile: the disassembler gets them with their length, its output
 * is sanitised, and unknown bytes are shown as bytes, so that
 * instructions have no gaps.
 *
 * Pure; any thread, slow.
 */

struct disasm_code {
	const uint8_t *bytes;
	uint32_t nr_bytes;
	uint64_t vaddr;
	uint64_t begin;	  /* of the function, from which offsets are counted; 0: @vaddr */
	uint16_t machine; /* e_machine */
	bool wide;	  /* 64 bits */
	/*
	 * Return the name of @vaddr, outside of these bytes, and its symbol, or LISTING_NONE. May
	 * be NULL.
	 */
	uint32_t (*name)(void *ctx, uint64_t vaddr, char *buf, size_t size);
	void *ctx;
};

/*
 * The source of a function of a language: its lines as a listing, one entry per
 * line instead of instructions.
 *
 * The path is from the memory of the process, so the process chose it: it is
 * opened below the root of the process. Runs on: a helper.
 */

#define SCRIPT_LINES_MAX 4096u /* of one function */
#define SCRIPT_PATH_MAX	 1024u

struct script_want {
	char path[SCRIPT_PATH_MAX]; /* as the language has it; Java: the file's name alone */
	char name[SCRIPT_PATH_MAX]; /* of the function: "com.example.Shop.total" */
	bool java;		    /* the name has the folder */
	const char *root;	    /* without a process: a folder to search first; NULL */
	pid_t pid;		    /* a process that runs it; 0: a recording */
	uint32_t begin;		    /* the line that the function begins at; 0: not known */
	uint32_t first, last;	    /* sampled lines; 0: none */
};

/* Lines of a function, from 1, both included. */
struct script_span {
	uint32_t first, last;
};

/*
 * Lines of a source file, to show beside the code.
 *
 * Its path is from debug information, and so chosen by others. It is opened as
 * the process sees it, else as proftop does, with the rights of the user only: a
 * proftop with extra capabilities reads none.
 *
 * Runs on: a helper. A file may hang; check the stop afterwards.
 */

struct source_want {
	const char *path;
	pid_t pid;	      /* use this process's root first; 0: only ours */
	const char *root;     /* a folder to search first; NULL */
	uint32_t first, last; /* lines, from 1 */
	int64_t built_ns;     /* when the program was built; 0: unknown */
};

#endif

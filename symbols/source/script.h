/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The source of a function of a language: its lines as a listing, one entry per
 * line instead of instructions.
 *
 * The path is from the memory of the process, so the process chose it: it is
 * opened below the root of the process. Runs on: a helper.
 */
#ifndef SYMBOLS_SOURCE_SCRIPT_H
#define SYMBOLS_SOURCE_SCRIPT_H

#include <stdbool.h>
#include <sys/types.h>

#include "symbols/code/code.h"

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

/* Read the lines into @l, or set the reason and the fix. */
void script_read(struct listing *l, const struct script_want *want);

/* Lines of a function, from 1, both included. */
struct script_span {
	uint32_t first, last;
};

/*
 * Find the lines of the function that begins at line @begin of @text, by indentation: up to the
 * line that closes the block. Pure.
 */
struct script_span script_block(const char *text, size_t size, uint32_t begin);

/*
 * Find the line at which the function @name begins that has line @line: the last of the least
 * indented lines above with "sub name" or "name(". 0: none. Pure.
 */
uint32_t script_begin(const char *text, size_t size, const char *name, uint32_t line);

#endif

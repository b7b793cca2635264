/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ends of the lines of scripts, for languages that have positions in the text instead of
 * lines. The text is read in parts, one at a sample, so that a large script takes several. Scripts
 * that are not looked up are forgotten; texts with equal ends, of any process, are one.
 *
 * Threads: any, under a mutex; a text does not change, and lives as long as the table.
 */
#ifndef SYMBOLS_LANG_LINE_ENDS_H
#define SYMBOLS_LANG_LINE_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_ENDS_MEMORY_MAX	 (64U << 20)
#define LINE_ENDS_PROCESS_MEMORY (LINE_ENDS_MEMORY_MAX / 8)
#define LINE_ENDS_SCRIPTS_MAX	 4096U /* at most twice as many */

struct line_ends;

/* A script: the stamp is another one if its memory has another script. */
struct line_ends_key {
	uint32_t process;
	uint64_t address, stamp;
};

struct line_ends_text {
	const uint32_t *ends; /* positions of the ends of lines, ascending */
	uint32_t nr;
	bool refused; /* too large, or in no form that can be read: there are no lines */
};

/* NULL when out of memory. */
struct line_ends *line_ends_new(void);
void line_ends_free(struct line_ends *l);

/* Return the text that was read to its end; else NULL, and how far it was read in *@from. */
const struct line_ends_text *line_ends_get(struct line_ends *l, const struct line_ends_key *key,
					   uint32_t *from);
/*
 * Add the @nr ends of lines from position @from to @to. Ignored if another thread was faster.
 * @last: the text ends there.
 */
void line_ends_add(struct line_ends *l, const struct line_ends_key *key, uint32_t from, uint32_t to,
		   const uint32_t *ends, uint32_t nr, bool last);
/* Give up: the script has no lines. */
void line_ends_refuse(struct line_ends *l, const struct line_ends_key *key);
/* Return the bytes in use. */
size_t line_ends_memory(struct line_ends *l);
/* Return the line of a position, from 1; 0: there are no lines. */
uint32_t line_ends_line(const struct line_ends_text *t, uint32_t position);

/*
 * Find the ends of lines in @nr characters of a text, from position @from: one byte each, or two
 * (@wide). Returns how many were written to @ends (@nr elements), and in *@used how many
 * characters were taken: not a last carriage return, unless @last.
 */
uint32_t line_ends_find(const uint8_t *text, uint32_t nr, bool wide, bool last, uint32_t from,
			uint32_t *ends, uint32_t *used);

#endif

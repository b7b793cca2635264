/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of interpreters: functions of scripts, by dense ids that are for good.
 *
 * A function is found by (process incarnation, address, stamp): the stamp is a hash of the
 * code object, so that other code at a reused address is another function. Its texts
 * were read while the thread that ran it was preempted; functions with equal texts, of any
 * process, have one id, so that the next process with the same scripts adds nothing. Keys that
 * are not used are forgotten; their functions are read again.
 *
 * Each reader has such a table, as it has no other memory of proftop. One more has the functions of
 * all readers, by their texts: the sampler threads put them there.
 *
 * Threads: codes_find(), codes_add(), codes_add_text() any, under a mutex; codes_at() any,
 * lock-free. Ids are append-only.
 */
#ifndef SYMBOLS_LANG_CODES_H
#define SYMBOLS_LANG_CODES_H

#include "symbols/lang/code_text.h"

#define CODES_MAX	     (1U << 20)
#define CODES_MEMORY_MAX     (64UL << 20)
#define CODES_USER_MEMORY    (CODES_MEMORY_MAX / 4 * 3)
#define CODES_PROCESS_MAX    (1U << 16)		    /* functions that no other process has */
#define CODES_PROCESS_MEMORY (CODES_MEMORY_MAX / 8) /* their bytes */
#define CODES_KEYS_MAX	     (1U << 17)		    /* found by their keys; at most twice as many */

#define CODE_NONE UINT32_MAX
/* In a frame: its function has no id, as the table was full. */
#define CODE_UNNAMED CODES_MAX

struct code_log;
struct codes;
struct line_ends;

/* NULL when out of memory. */
struct codes *codes_new(void);
void codes_free(struct codes *c);

/* The id, or CODE_NONE. */
uint32_t codes_find(struct codes *c, const struct code_key *key);
/*
 * Add a function; everything is copied. CODE_NONE: the table is full, or the part of its process or
 * user; a table of lines that does not fit is left out.
 */
uint32_t codes_add(struct codes *c, const struct code_key *key, const struct code_text *text);
/* Add a function without a key, which was read in @process. The same. */
uint32_t codes_add_text(struct codes *c, uint32_t process, const struct code_text *text);
/* Return the process in which function @id was read first; 0: there is no such id. */
uint32_t codes_process(const struct codes *c, uint32_t id);
/* NULL for an id never given out. Lives as long as the table. */
const struct code_text *codes_at(const struct codes *c, uint32_t id);
uint32_t codes_nr(const struct codes *c);
/* The ends of lines of scripts. */
struct line_ends *codes_line_ends(struct codes *c);
/* The code of virtual machines. */
struct code_log *codes_log(const struct codes *c);
/* With that. */
size_t codes_memory(const struct codes *c);

#endif

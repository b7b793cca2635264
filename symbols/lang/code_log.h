/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code that a virtual machine has had, for recordings alone: copies by (process, address, stamp),
 * in the order in which they were read. They leave with their process.
 *
 * Threads: any, under a mutex that is held for a copy only.
 */
#ifndef SYMBOLS_LANG_CODE_LOG_H
#define SYMBOLS_LANG_CODE_LOG_H

#include "symbols/lang/code_text.h"

#define CODE_LOG_MEMORY_MAX  (32UL << 20)
#define CODE_LOG_PROCESS_MAX (1U << 16) /* entries of one process */

struct code_log;

/* A copy: @text points into @bytes. */
struct code_log_copy {
	struct code_text text;
	char bytes[2 * CODES_TEXT_MAX + CODES_TABLE_MAX];
};

/* NULL when out of memory. */
struct code_log *code_log_new(void);
void code_log_free(struct code_log *l); /* NULL is fine */

/* Copy @text, unless its key is there. Without room or memory it is left out. */
void code_log_add(struct code_log *l, const struct code_key *key, const struct code_text *text);
/* Free what is of @process. */
void code_log_forget(struct code_log *l, uint32_t process);
/* Copy the first one after *@last (0: of all), and set *@last. False: there is none. */
bool code_log_next(struct code_log *l, uint64_t *last, struct code_log_copy *out);
size_t code_log_memory(const struct code_log *l);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * V8: from candidates for frames to functions, in steps of a reader: their scripts, names
 * and lines, and their compiled code. Hostile memory; the type of each object is checked.
 */
#ifndef SYMBOLS_LANG_V8CODE_H
#define SYMBOLS_LANG_V8CODE_H

#include "symbols/script/script.h"
#include "symbols/lang/v8objects.h"
#include "symbols/lang/v8table.h"

/* Of a BytecodeArray. */
#define V8_BYTECODES_POSITIONS 32
#define V8_BYTECODES_HEAD      40

/* Functions without frames may be added to w->codes_of: they are inlined in others. */
#define V8_INLINED_A_SAMPLE 64U

/* Queue the heads of functions from @first on: their SharedFunctionInfo. */
void v8code_want_headers(struct lang_reader *r, const struct lang_process *p, uint32_t first);
/* The bytecodes that a function has in a frame; 0: none. */
uint64_t v8code_bytecodes(const struct lang_work *w, uint32_t code);
/* The identity of a function: its number in its script, and the script's. */
uint64_t v8code_identity(const struct lang_reader *r, const struct lang_process *p, uint32_t code);

/*
 * Queue the heads of scripts of functions from @first on; find the scripts: the ends of their
 * lines, or the next part of their texts. False: no call is left.
 */
void v8script_want(struct lang_reader *r, const struct lang_process *p, struct v8_types *t,
		   uint32_t first);
bool v8script_read(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		   struct v8_types *t);
/* Return whether the text of the function's script is read, or there is none. */
bool v8script_is_whole(const struct lang_work *w, uint32_t code);
/* The line of a position in the script of a function; 0: not known. */
uint32_t v8script_line(const struct lang_work *w, uint32_t code, uint32_t position);

/* Read names, files and lines of new functions. False: not now. */
bool v8names_read(struct lang_reader *r, const struct lang_process *p, const uint32_t *codes,
		  uint32_t nr, struct v8_types *t);

/* Queue the heads of the functions' compiled code, and then of their data. */
void v8compiled_want(struct lang_reader *r);
void v8compiled_want_data(struct lang_reader *r, struct v8_types *t, const struct lang_process *p);
/*
 * Set where compiled code is, and which is known; queue the tables of the rest, and number
 * the functions inlined in it. False: no call is left.
 */
bool v8compiled_find(struct lang_reader *r, const struct lang_process *p, uint32_t process,
		     struct v8_types *t);
/* Make the tables of new compiled code; all functions have ids. */
void v8compiled_add(struct lang_reader *r, const struct lang_process *p, const struct v8_types *t);

#endif

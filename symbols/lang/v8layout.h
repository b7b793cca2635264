/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * V8's layout of frames and objects: numbers that its build stores in the file
 * as symbols v8dbg_* for debuggers of core files (gen-postmortem-metadata.py).
 *
 * All are bounded here: a decoder may use them as they are. Pure.
 */
#ifndef SYMBOLS_LANG_V8LAYOUT_H
#define SYMBOLS_LANG_V8LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of the names in v8layout.c. Offsets are from untagged pointers. */
enum v8_number {
	V8_FP_CONTEXT, /* from the frame pointer */
	V8_FP_FUNCTION,
	V8_FP_BYTECODES,
	V8_FP_OFFSET,
	V8_SMI_SHIFT, /* 31: pointers are not compressed */
	V8_MAP_TYPE,
	V8_FUNCTION_SHARED,
	V8_SHARED_DATA,
	V8_SHARED_NAME,
	V8_SHARED_SCRIPT,
	V8_SHARED_TOKEN, /* bytes from the function's first word to its parameters, 16 bits */
	V8_SHARED_FLAGS, /* 32 bits; behind it the number of the function in its script */
	V8_SCRIPT_NAME,
	V8_SCRIPT_SOURCE,
	V8_SCRIPT_ENDS, /* behind it the number of the script */
	V8_BYTECODES_DATA,
	V8_LENGTH, /* of a FixedArrayBase */
	V8_ARRAY_DATA,
	V8_STRING_LENGTH,
	V8_STRING_CHARS,
	V8_CONS_FIRST,
	V8_CONS_SECOND,
	V8_THIN_ACTUAL,
	V8_SCOPE_LOCALS, /* index of the number of locals in the context */
	V8_SCOPE_FIRST,	 /* index of the first of them */
	V8_TYPE_FUNCTION,
	V8_TYPE_SHARED,
	V8_TYPE_SCOPE,
	V8_TYPE_SCRIPT,
	V8_TYPE_BYTECODES,
	V8_TYPE_BYTES,
	V8_TYPE_CODE,
	V8_NR,
};

/* Bytes of an object that are read before its type is known. */
#define V8_HEAD 32

/*
 * Not among them, the same in 10.2 and 11.3: compiled code (of a function, and its kind), the data
 * for leaving it (of baseline code: its bytecodes), and its table of lines.
 */
#define V8_FUNCTION_CODE  48
#define V8_FUNCTION_SIZE  56
#define V8_CODE_DATA	  16
#define V8_CODE_TABLE	  24
#define V8_CODE_FLAGS	  48
#define V8_CODE_SIZE	  64
#define V8_CODE_KIND	  15U
#define V8_CODE_BASELINE  11U
#define V8_CODE_MAGLEV	  12U
#define V8_CODE_OPTIMISED 13U
/* Begin and size: in 10.2 of one object with its code, in 11.3 fields. */
#define V8_CODE_BEGINS_10 128
#define V8_CODE_BYTES_10  40
#define V8_CODE_BEGIN	  40
#define V8_CODE_BYTES	  56

struct v8_layout {
	int16_t number[V8_NR];
};

/* The number that the symbol @name has the value of; V8_NR: none. */
enum v8_number v8layout_number(const char *name);
/* Check all numbers; words why they cannot be used, NULL: they can. */
const char *v8layout_check(const struct v8_layout *l);
/* Return whether version @major.@minor of V8 was compared with the truth. */
bool v8layout_tried(int32_t major, int32_t minor);

#endif

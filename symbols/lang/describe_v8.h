/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of V8 in its file: the numbers for debuggers, and the place of the
 * code of its builtins. Hostile files; any thread.
 */
#ifndef SYMBOLS_LANG_DESCRIBE_V8_H
#define SYMBOLS_LANG_DESCRIBE_V8_H

#include "symbols/lang/describe_wire.h"
#include "symbols/lang/v8layout.h"
#include "symbols/elf/elf.h"
#include "symbols/object/elfv8.h"

/* Addresses of symbols; 0: missing. */
struct v8_symbols {
	uint64_t number[V8_NR];
	uint64_t major, minor;
	struct elfv8_symbols builtins;
};

/* Note a symbol if it is one of these. */
void describe_v8_symbol(struct v8_symbols *s, const char *name, uint64_t address);
/* Fill in the layout, the version and the place of the code. */
void describe_v8(struct describe_file *out, const struct v8_symbols *s, const struct elffile *f);

#endif

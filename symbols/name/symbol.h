/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A named function, and the functions that the source has at a place.
 */
#ifndef SYMBOLS_NAME_SYMBOL_H
#define SYMBOLS_NAME_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols/base/text.h"
#include "symbols/name/places.h"

/* kind: u user, k kernel, j JIT, v vdso, ? no name, J Java, or of a language (lang_letter()). */
struct symbol {
	struct safe_text name;	 /* demangled, as lists show it */
	struct safe_text module; /* basename, [kernel], [nf_tables], [vdso], [anon] */
	uint32_t object;	 /* of a JIT's function: naming_shared_object() */
	uint64_t start;		 /* vaddr (files), address (kernel, anon); of a JIT's function 0 */
	uint64_t variant; /* hash of the name where several functions have one start; mostly 0 */
	char kind;
	bool made_up; /* the name is only an address: the object has the reason */
	bool inlined; /* has no code; start is 0 */
};

/*
 * One of the functions that the source has at a place: the compiler made one
 * piece of code of all of them.
 */
struct symbol_frame {
	uint32_t symbol; /* SYMBOL_NONE: the symbol of the place, always the last */
	uint32_t file;	 /* id of a file, or SYMBOL_NO_FILE */
	uint32_t line;	 /* 0: unknown */
};

#define SYMBOL_NO_FILE UINT32_MAX

#endif

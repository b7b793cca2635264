/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of interpreters' files, and of their symbols. Private to describe.c and describe_serve.c.
 *
 * Any thread; pure.
 */
#ifndef SYMBOLS_LANG_DESCRIBE_NAMES_H
#define SYMBOLS_LANG_DESCRIBE_NAMES_H

#include "symbols/lang/lang.h"

struct describe_names {
	const char *program, *library;			  /* how files begin */
	const char *shown;				  /* a function that other files show */
	const char *runtime, *code_type, *version, *eval; /* symbols; NULL: none */
};

/* A version of PHP that is read. */
struct describe_php {
	const char *api; /* which extensions are checked against, in the file */
	uint32_t version;
	struct php_layout layout;
};

/* Return row @i of them; NULL: there are no more. */
const struct describe_php *describe_php(size_t i);
/* Return the language of files of this name; LANG_NONE. */
enum lang_kind describe_names_find(const char *name);
const struct describe_names *describe_names(enum lang_kind kind);
/* Return the minor version in "python3.11" or "libpython3.11.so.1.0"; -1: it is neither. */
int describe_python_minor(const char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Load libraries that few runs need: linking them would map and relocate them at
 * every start.
 *
 * Any thread. A loaded library is never unloaded.
 */
#ifndef SYMBOLS_BASE_LIBRARY_H
#define SYMBOLS_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function, and the offset of its pointer in the struct of the caller. */
struct library_function {
	const char *name;
	size_t at;
};

/*
 * Load the library @soname and store pointers to all @nr functions. False: not
 * installed, or a function is missing.
 */
bool library_find(const char *soname, void *functions, const struct library_function *list,
		  size_t nr);

#endif

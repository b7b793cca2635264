/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Libraries that few runs need: loaded when one does. What a program is linked
 * with is mapped and relocated at each of its starts, used or not, and the
 * tables of some are larger than the program.
 *
 * Any thread. Once loaded a library stays.
 */
#ifndef SYMBOLS_BASE_LIBRARY_H
#define SYMBOLS_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A function, and where in the caller's struct its pointer goes. */
struct library_function {
	const char *name;
	size_t at;
};

/* Find all @nr functions in the library of that soname. False: it is not there, or lacks one. */
bool library_find(const char *soname, void *functions, const struct library_function *list,
		  size_t nr);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions without a linkage name in DWARF (lambdas, members, functions
 * of one file): with the namespaces, classes and functions around them,
 * "deep::Box::each", "run::{lambda}::operator()".
 *
 * One thread: the owner of the dwarf.
 */
#ifndef SYMBOLS_SOURCE_DWARF_SCOPE_H
#define SYMBOLS_SOURCE_DWARF_SCOPE_H

#include <elfutils/libdw.h>
#include <stdint.h>

#define DWARF_SCOPE_NAME_MAX 1024U /* bytes of one; the rest is cut */

struct dwarf_scopes;

int dwarf_scopes_new(struct dwarf_scopes **out);
void dwarf_scopes_free(struct dwarf_scopes *s);

/*
 * Return the name of the function @die, an inlined one's or its origin's, as in
 * the source; NULL when it has none. At most until @deadline_ns of this thread's
 * CPU time, then without its scopes. Valid as long as @s.
 */
const char *dwarf_scopes_name(struct dwarf_scopes *s, Dwarf_Die *die, uint64_t deadline_ns);

#endif

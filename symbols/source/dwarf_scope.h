/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions that DWARF gives no linkage name (lambdas, members,
 * functions of one file): with the namespaces, classes and functions around
 * them, "deep::Box::each", "run::{lambda}::operator()".
 *
 * One thread: whoever has the dwarf.
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
 * The name of the function @die, an inlined one's or its origin's, as the
 * source has it; NULL when it has none. At most up to @deadline_ns of this
 * thread's CPU time, then without what is around it. Lives as long as @s.
 */
const char *dwarf_scopes_name(struct dwarf_scopes *s, Dwarf_Die *die, uint64_t deadline_ns);

#endif

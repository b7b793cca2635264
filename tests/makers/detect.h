/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks up the symbols of an interpreter in a file, without a process. */
#ifndef TESTS_MAKERS_DETECT_H
#define TESTS_MAKERS_DETECT_H

#include "symbols/script/detect.c"

/* Find the symbols of an interpreter of @kind in a file of this name, without the bias. 0 or
 * -ENOENT: some are missing. */
static inline int detect_read_file(struct detect_file *out, const struct elffile *f,
				   enum lang_kind kind, const char *name, uint64_t code)
{
	struct detect_search search = { .out = out, .name = name, .code = code };
	int rc = find_symbols(&search, f, kind);

	return rc ? rc : read_symbol_values(&search, f);
}

#endif

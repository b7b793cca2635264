/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of symbols/name/, and by tests; no other room includes it. */
#ifndef SYMBOLS_NAME_INTERNAL_H
#define SYMBOLS_NAME_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/name/name.h"
#include "symbols/sandbox/sandbox.h"

struct places;

/*
 * Demangle the @size bytes at @name (C++, Rust, D; without parameters and without
 * Rust's hash) into @buf, cut at the end, NUL-terminated. Return the bytes
 * written, or 0: not mangled, refused, or unknown syntax (show it raw).
 */
size_t demangle(const char *name, size_t size, char *buf, size_t buf_size);

struct demangler_name {
	uint32_t raw, raw_size; /* in the texts */
	uint32_t clean, clean_size;
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Demangle names under limits.
 *
 * A mangled name is hostile: 200 bytes of back references can expand to gigabytes
 * of output, and some cost time without any output. Here the output stops at the
 * size of the buffer (the demangler is left in the middle), and names with a
 * structure that could explode before that are refused.
 *
 * Any thread; no state, no heap. Needs up to DEMANGLE_STACK bytes of stack.
 */
#ifndef SYMBOLS_NAME_DEMANGLE_H
#define SYMBOLS_NAME_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_NAME_MAX 4096U /* longer mangled names are refused */
#define DEMANGLE_STACK	  (8U << 20)

/* Return false if the @size bytes at @name are no mangled name for sure. */
bool demangle_may(const char *name, size_t size);
/*
 * Demangle the @size bytes at @name (C++, Rust, D; without parameters and without
 * Rust's hash) into @buf, cut at the end, NUL-terminated. Return the bytes
 * written, or 0: not mangled, refused, or unknown syntax (show it raw).
 */
size_t demangle(const char *name, size_t size, char *buf, size_t buf_size);
/* Demangle a D name ("_D" and a digit), NUL-terminated, of at most DEMANGLE_NAME_MAX bytes. */
size_t demangle_d(const char *name, char *buf, size_t buf_size);

#endif

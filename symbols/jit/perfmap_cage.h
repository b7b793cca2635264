/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Perf maps in the cage: a worker parses the text, its table is checked here.
 *
 * Any thread that may wait: one call runs at a time.
 */
#ifndef SYMBOLS_JIT_PERFMAP_CAGE_H
#define SYMBOLS_JIT_PERFMAP_CAGE_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/jit/perfmap.h"

/* As perfmap_parse() for the first @size bytes of @fd; also the errors of cage_call(). */
int perfmap_cage_parse(struct perfmap **out, int fd, size_t size);

extern const struct cage_reader perfmap_reader;

#endif

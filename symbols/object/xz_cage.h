/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xz in the cage: liblzma sees foreign bytes in a worker only.
 *
 * Any thread that may wait: one call runs at a time.
 */
#ifndef SYMBOLS_OBJECT_XZ_CAGE_H
#define SYMBOLS_OBJECT_XZ_CAGE_H

#include "symbols/cage/cage_reader.h"

/* As xz_decode(); also the errors of cage_call(). */
int xz_cage_decode(const void *in, size_t in_size, void **out, size_t *out_size);

extern const struct cage_reader xz_cage_reader;

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code of an object that returns from signal handlers: the signal frame of the
 * kernel is at sp there. In glibc this code has unwind tables on x86-64; in the
 * arm64 vdso, in musl and in Go it has none, and is recognised by its instructions.
 *
 * Any thread; slow. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_ELFSIG_H
#define SYMBOLS_OBJECT_ELFSIG_H

#include "symbols/elf/elf.h"
#include "symbols/object/image.h"

/* Find the code in @f (segments and symbols: @image); false: none. */
bool elfsig_find(struct image *image, const struct elffile *f);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where an object returns from signal handlers: the kernel's frame lies at sp
 * there. glibc's code for it has unwind tables on x86-64; that of the arm64
 * vdso, of musl and of Go has none, and is known by its instructions alone.
 *
 * Any thread; slow. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_ELFSIG_H
#define SYMBOLS_OBJECT_ELFSIG_H

#include "symbols/object/elffile.h"
#include "symbols/object/image.h"

/* Find it in @f, whose segments and symbols @image has already; false: there is none. */
bool elfsig_find(struct image *image, const struct elffile *f);

#endif

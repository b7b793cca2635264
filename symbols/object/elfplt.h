/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names for PLT stubs, through which calls leave an object: "foo@plt".
 *
 * A stub is recognised by its code, not by its position: it jumps through a
 * slot of the GOT, and the relocation of that slot names the function (x86-64
 * psABI, 5.2; AArch64 ELF ABI). So all layouts (.plt, .plt.sec, .plt.got,
 * with or without endbr64 or bti) are the same.
 *
 * Any thread; slow. Every byte is hostile.
 */
#ifndef SYMBOLS_OBJECT_ELFPLT_H
#define SYMBOLS_OBJECT_ELFPLT_H

#include "symbols/object/elfsym.h"

/* Add the stubs of @f to @t, which is not finished yet. 0, -ENOENT (none), or -errno. */
int elfplt_add(struct elfsym *t, const struct elffile *f);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loops of interpreters: which symbols show one, and the cold part of its function, which
 * stripped files have without a name.
 *
 * Hostile files; any thread; slow.
 */
#ifndef SYMBOLS_OBJECT_ELFLOOP_H
#define SYMBOLS_OBJECT_ELFLOOP_H

#include "symbols/object/ehframe.h"
#include "symbols/object/elfsym.h"

/* Return the number of the interpreter that has a function of @t; 0: none. */
uint8_t elfloop_find(const struct elfsym *t);
/* Return the function of interpreter @loop; NULL: there is none of this number. */
const char *elfloop_symbol(uint8_t loop);
/*
 * Add the cold parts of the loops among the functions of @t, as "FUNCTION.cold". @eh: of the file.
 * 0 or -ENOMEM.
 */
int elfloop_add_parts(struct elfsym *t, const struct elffile *f, const struct ehframe *eh);

#endif

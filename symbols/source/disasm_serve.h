/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's side of disasm.h: the only file that uses the disassembler. */
#ifndef SYMBOLS_SOURCE_DISASM_SERVE_H
#define SYMBOLS_SOURCE_DISASM_SERVE_H

#include "symbols/sandbox/sandbox.h"

extern const struct cage_reader disasm_reader;

#endif

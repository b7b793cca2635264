/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of /proc/kallsyms and /proc/kcore, which have a recording or --symfs, read in the cage.
 * The files of this kernel are not foreign: they are read in the calling thread.
 *
 * Any thread that may wait: one call runs at a time.
 */
#ifndef SYMBOLS_KERNEL_KERNEL_CAGE_H
#define SYMBOLS_KERNEL_KERNEL_CAGE_H

#include "symbols/sandbox/sandbox.h"
#include "symbols/kernel/kallsyms.h"

/*
 * As kallsyms_read() and kcore_read(), of any file; also the errors of foreign_open() and
 * cage_call(). @root: @path is below that folder, which links do not leave; NULL: of this machine.
 */
int kernel_cage_list(struct kallsyms **out, const char *root, const char *path, struct err *e);
int kernel_cage_memory(const char *root, const char *path, uint64_t addr, void *buf, uint32_t size);

extern const struct cage_reader kernel_reader;

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A part of a file that others write, copied into a memfd for a reader in the cage. It does
 * not change while it is read, and a file system that hangs does not hang the reader.
 *
 * Runs on: a helper.
 */
#ifndef SYMBOLS_JIT_JITCOPY_H
#define SYMBOLS_JIT_JITCOPY_H

#include "symbols/base/watch.h"

/*
 * Copy up to @max bytes of @file from @at on; *size: the number there are. Return the memfd, which
 * the caller closes; -ECANCELED, or -errno. @watch: of the reads; may be NULL.
 */
int jitcopy(int file, uint64_t at, size_t max, struct watch *watch, size_t *size);

#endif

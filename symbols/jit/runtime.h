/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recognise the language runtime of a process by its program and libraries, and
 * name its option for a perf map.
 *
 * Pure except for reading /proc/PID. Runs on: the loader.
 */
#ifndef SYMBOLS_JIT_RUNTIME_H
#define SYMBOLS_JIT_RUNTIME_H

#include "symbols/base/base.h"

/* Return static words to show. @exe: the program's path; @maps: the text of /proc/PID/maps. */
const char *runtime_fix(const char *exe, const char *maps, size_t maps_size);
/* Return the words for the process with the /proc directory @dir_fd. */
const char *runtime_fix_of(int dir_fd);

#endif

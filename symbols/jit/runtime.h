/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which language runtime a process is, told by its program and libraries, and
 * how it is made to write a perf map.
 *
 * Pure but for reading /proc/PID. Runs on: the loader.
 */
#ifndef SYMBOLS_JIT_RUNTIME_H
#define SYMBOLS_JIT_RUNTIME_H

#include "symbols/base/base.h"

/* Static words for a person. @exe: the program's path; @maps: the text of /proc/PID/maps. */
const char *runtime_fix(const char *exe, const char *maps, size_t maps_size);
/* The same of the process whose /proc directory is @dir_fd. */
const char *runtime_fix_of(int dir_fd);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A reader as a process, see langreader.h. */
#ifndef SAMPLER_PIPELINE_LANGREADER_MAIN_H
#define SAMPLER_PIPELINE_LANGREADER_MAIN_H

#include "symbols/cage/cage_memory.h"

/* The descriptors that it gets: the event with the ring, the share, the sampler thread's eventfd.
 */
enum { LANGREADER_DATA, LANGREADER_SHARE, LANGREADER_KICK };

/* Read with the struct langreader_start in @bytes, until it is killed; returns if it cannot. */
void langreader_process(const void *bytes, size_t size, const int fds[CAGE_MEMORY_FDS]);

#endif

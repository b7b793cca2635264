/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures of symbols: filled by the loader, shown by the UI.
 */
#ifndef SYMBOLS_STATS_H
#define SYMBOLS_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbols_stats {
	uint64_t nr_images, nr_failed;	       /* objects loaded, not loadable */
	uint64_t nr_evicted;		       /* evictions of images */
	size_t image_memory, image_memory_max; /* bytes used by images, and their limit */
	uint64_t nr_named, nr_unnamed;	       /* places with a name, with only an address */
	uint64_t nr_waiting;		       /* places without a symbol yet */
	uint64_t nr_lines, nr_lines_waiting;   /* places with source lines; without a look-up yet */
	uint32_t nr_hung;		       /* threads that hang in /proc of a process */
	pid_t hung_pid;			       /* the newest such process; 0: none yet */
	size_t memory;			       /* bytes of images and names */
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures of symbols: filled by the loader, shown by the UI.
 */
#ifndef SYMBOLS_STATS_H
#define SYMBOLS_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes that are left out, as some hang their reader in /proc. */
enum symbols_left_out {
	LEFT_OUT_HUNG, /* no others */
	LEFT_OUT_USER, /* all of a user that has too many of them */
	LEFT_OUT_ALL,  /* all that are new: there are too many */
};

struct symbols_hung {
	uint32_t nr; /* threads that hang */
	/* When the newest one began to: */
	pid_t pid;  /* its process; 0: none yet */
	uid_t user; /* the real uid of that */
	enum symbols_left_out left_out;
};

struct symbols_stats {
	uint64_t nr_images, nr_failed;	       /* objects loaded, not loadable */
	uint64_t nr_evicted;		       /* evictions of images */
	size_t image_memory, image_memory_max; /* bytes used by images, and their limit */
	uint64_t nr_named, nr_unnamed;	       /* places with a name, with only an address */
	uint64_t nr_waiting;		       /* places without a symbol yet */
	uint64_t nr_lines, nr_lines_waiting;   /* places with source lines; without a look-up yet */
	struct symbols_hung hung;	       /* readers of /proc */
	size_t memory;			       /* bytes of images and names */
};

#endif

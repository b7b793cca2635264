/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of the kernel's tracepoints. Any thread. */
#ifndef SAMPLER_EVENT_TRACEFS_H
#define SAMPLER_EVENT_TRACEFS_H

enum tracefs_state {
	TRACEFS_MISSING,  /* not mounted, and no right to open it without a mount */
	TRACEFS_MOUNTED,  /* mounted and readable */
	TRACEFS_DETACHED, /* readable by a mount of our own that no path leads to */
	TRACEFS_CLOSED,	  /* mounted, but not readable by this user */
	TRACEFS_LOCKED,	  /* left empty by the kernel: lockdown */
};

/* Open the folder "events" of tracefs: *@fd, the caller's to close; -1 if it is not readable. */
enum tracefs_state tracefs_open(const char *root, int *fd);

#endif

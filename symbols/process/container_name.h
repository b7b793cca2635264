/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of containers, from the files in which docker and podman keep them.
 *
 * Hostile: users of these tools choose the names. Files of root only, of a limited size; names have
 * the letters that both tools allow.
 *
 * Threads: one owner, a thread that may read files of others.
 */
#ifndef SYMBOLS_PROCESS_CONTAINER_NAME_H
#define SYMBOLS_PROCESS_CONTAINER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_NAME_ID   64 /* digits */
#define CONTAINER_NAME_MAX  64 /* with the NUL */
#define CONTAINER_NAME_MEMO 32

/* Zero before the first use. */
struct container_names {
	struct container_memo {
		char id[CONTAINER_NAME_ID + 1], name[CONTAINER_NAME_MAX];
		uint64_t read_ns; /* 0: free */
	} memo[CONTAINER_NAME_MEMO];
	unsigned int next; /* overwritten next */
};

/*
 * Get the name of the container with the 64 digits of @id, "web"; "": unknown. @root: instead of /;
 * NULL: ours. Borrowed until the next call.
 */
const char *container_name(struct container_names *n, const char *root, const char *id,
			   uint64_t now_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files in memory (memfd_create(2)) between proftop and the workers of the cage: copies that a call
 * sends, and replies. Any thread.
 */
#ifndef SYMBOLS_CAGE_CAGE_FILE_H
#define SYMBOLS_CAGE_CAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Make an empty memfd. -errno. */
int cage_file(void);
/*
 * Make a memfd of @size bytes to send with a call: a copy, which does not change while it is read.
 * The caller closes it. -errno.
 */
int cage_wrap(const void *bytes, size_t size);
/* Fix the size of a memfd before it is sent: a worker that was taken over could let it grow. */
void cage_fix_size(int fd);

/* Return the bytes of a copy, after cage_fix_size(); 0: of another file, which is not looked at. */
size_t cage_file_copied(int fd);
/*
 * Seal a reply for good: from here on nothing can change it. False: it is larger than the @size
 * that the caller counts as memory, or smaller; or it has a hole: a read of that would allocate
 * memory here, or end this process.
 */
bool cage_file_seal(int fd, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wake a thread that polls: an eventfd that is readable (POLLIN) from
 * wake_send() until wake_clear(), however often it was sent. Stores before wake_send() are seen
 * after wake_clear(): the kernel orders both.
 *
 * Any thread; nothing blocks.
 */
#ifndef SYMBOLS_BASE_WAKE_H
#define SYMBOLS_BASE_WAKE_H

#include <stdbool.h>

/* Return a new descriptor, which the caller closes, or -errno. */
int wake_new(void);
/* Make @fd readable; keeps errno. */
void wake_send(int fd);
/* Make @fd unreadable; returns whether it was readable. */
bool wake_clear(int fd);

#endif

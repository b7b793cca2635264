/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server of the cage: a process with one thread, forked before all others. */
#ifndef SYMBOLS_CAGE_CAGE_SERVER_H
#define SYMBOLS_CAGE_CAGE_SERVER_H

#include <sys/types.h>

#include "symbols/sandbox/sandbox.h"

/* The server: serve until the other end of @sock is closed, or @parent ends. */
void __attribute__((noreturn))
cage_server_main(int sock, pid_t parent, const struct cage_reader *const readers[CAGE_NR_KINDS]);

#endif

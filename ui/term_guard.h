/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guard: a small parent that restores the terminal after any death of
 * proftop, SIGKILL included. It has no thread, no curses and no profile.
 */
#ifndef UI_TERM_GUARD_H
#define UI_TERM_GUARD_H

#include <sys/types.h>

/*
 * Fork. The child returns 0 and goes on as proftop; it gets SIGTERM when the
 * guard dies. The parent does not return: it passes on signals and job
 * control, waits, and exits as the child did (128 + n after signal n,
 * reported on stderr, with the terminal restored). Return -errno if fork
 * fails: proftop then runs unguarded. Call it before any thread exists and
 * before anything is printed.
 */
int term_guard_start(void);
/* Return the guard of this process; 0: it has none. */
pid_t term_guard_pid(void);
/*
 * Report to the guard, if there is one, that proftop ends with @code. A thread that hangs in
 * the kernel (a dead file system) keeps even a killed process from ending:
 * the guard then waits for half a second at most.
 */
void term_guard_end(int code);

#endif

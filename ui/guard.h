/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guard: a small parent that puts the terminal right whatever kills
 * proftop, SIGKILL included. It has no thread, no curses and no profile.
 */
#ifndef UI_GUARD_H
#define UI_GUARD_H

/*
 * Fork. The child returns 0 and goes on as proftop; it gets SIGTERM when the
 * guard dies. The parent never returns: it passes signals and job control
 * on, waits, and exits as the child did (128 + n after signal n, told on
 * stderr, with the terminal restored). -errno when there is no fork: go on
 * unguarded. Call before any thread exists and before anything is printed.
 */
int guard_start(void);
/*
 * The child's last words: it ends with @code. A thread of it that hangs in
 * the kernel (a file system that does not answer) keeps even a killed process
 * from ending: then the guard waits no longer than half a second.
 */
void guard_end(int code);

#endif

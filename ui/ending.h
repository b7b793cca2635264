/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ^C at the end of the program. A screen and batch mode take ^C as a request to end; while they do
 * so (a recording is written, threads are joined) it ends the process, as for any program.
 */
#ifndef UI_ENDING_H
#define UI_ENDING_H

/*
 * From here on ^C ends the process. After two seconds say so on stderr. A ^C from before is
 * discarded. Takes SIGALRM. The main thread; once.
 */
void ending_begin(void);

#endif

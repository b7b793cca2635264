/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion of the command line in shells. Runs on: the main thread, before any
 * other.
 */
#ifndef UI_CLI_COMPLETION_H
#define UI_CLI_COMPLETION_H

#include <stdio.h>

/* Print completion for @shell: "bash", "zsh" or "fish". */
void completion_print(FILE *out, const char *shell);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors and remarks of the program on standard error. */
#ifndef UI_CLI_COMPLAIN_H
#define UI_CLI_COMPLAIN_H

#include "symbols/base/base.h"

/* Print an error line by line, cleaned: it may have foreign text. Not while a screen is shown. */
void complain(const struct err *e);

#endif

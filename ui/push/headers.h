/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of --push-headers: lines "Name: value", for credentials and tenants. Empty lines and
 * lines that begin with '#' are skipped.
 *
 * Any thread; no state.
 */
#ifndef UI_PUSH_HEADERS_H
#define UI_PUSH_HEADERS_H

#include "symbols/base/base.h"

#define HEADERS_MAX	 16
#define HEADERS_LINE_MAX 4096

/* Return whether @line is a header that a user may add. */
bool headers_valid(const char *line);
/*
 * Read @path with the rights of the invoking user and call @add for each header, until it fails.
 * 0 or -errno with a message, which never has a header in it: it may be a secret.
 */
int headers_read(const char *path, int (*add)(void *ctx, const char *line), void *ctx,
		 struct err *e);

#endif

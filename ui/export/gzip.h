/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compression by gzip. Pure; any thread.
 */
#ifndef UI_EXPORT_GZIP_H
#define UI_EXPORT_GZIP_H

#include "ui/export/out.h"

/* Append @from to @to, compressed. Return 0 or -ENOMEM. */
int gzip_write(struct out *to, const struct out *from);

#endif

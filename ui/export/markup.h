/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The escaper of XML and HTML: for text and quoted attributes.
 *
 * Any thread.
 */
#ifndef UI_EXPORT_MARKUP_H
#define UI_EXPORT_MARKUP_H

#include "symbols/base/text.h"
#include "ui/export/out.h"

void markup_put(struct out *o, struct safe_text t);
/* Add at most @cols cells of @t, the last ones ".." if it is longer. */
void markup_put_clipped(struct out *o, struct safe_text t, unsigned int cols);

#endif

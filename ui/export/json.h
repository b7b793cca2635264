/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The JSON escaper: a string that is also harmless inside an HTML script element.
 *
 * Any thread.
 */
#ifndef UI_EXPORT_JSON_H
#define UI_EXPORT_JSON_H

#include "symbols/base/text.h"
#include "ui/export/out.h"

/* Add @t in quotes. */
void json_put(struct out *o, struct safe_text t);

#endif

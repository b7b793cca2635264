/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Escape a string for JSON, harmless also inside an HTML script element. (The format json of
 * --export is written by ui/cli/batch_ndjson.c.)
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

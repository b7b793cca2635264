/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of strings of a protobuf message: each text once, by number. One thread.
 */
#ifndef UI_EXPORT_STRINGS_H
#define UI_EXPORT_STRINGS_H

#include "symbols/base/text.h"
#include "ui/export/dense.h"
#include "ui/export/out.h"

struct strings {
	struct out out; /* the fields of the table, in the order of their numbers */
	int field;	/* its number in the message */
	struct dense hashes;
	struct safe_text *texts; /* by number; borrowed */
	uint32_t nr_texts;
};

/* Begin a table: string 0 is empty. */
void strings_init(struct strings *s, int field);
void strings_fini(struct strings *s);
/* Return the number of @t, which is borrowed until the end. Without memory out.failed is set. */
uint64_t strings_add(struct strings *s, struct safe_text t);

#endif

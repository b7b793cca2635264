/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts about an export, as lines of text: where and when it was made, which samples it has, and
 * the account of the others. Pure; any thread.
 */
#ifndef UI_EXPORT_FACTS_H
#define UI_EXPORT_FACTS_H

#include "ui/export/snapshot.h"

#define FACTS_MAX 24

struct fact {
	const char *name;
	char text[320]; /* clean */
	bool bad;	/* samples are missing or less sure */
};

/* Return the number of facts. */
uint32_t facts_make(const struct snapshot *s, struct fact facts[static FACTS_MAX]);
/* Return one line: "host: target, cpu-clock, last 5.0 s". */
struct safe_text facts_title(const struct snapshot *s, char buf[static 512]);

#endif

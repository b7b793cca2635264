// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <string.h>

#include "symbols/base/text.h"
#include "ui/cli/complain.h"

void complain(const struct err *e)
{
	const char *line = e->text, *before = "proftop: ";
	char clean[sizeof(e->text)];

	while (*line) {
		size_t size = strcspn(line, "\n");

		fprintf(stderr, "%s%s\n", before,
			text_sanitise(clean, sizeof(clean), line, size).str);
		before = "";
		line += size + (line[size] == '\n');
	}
}

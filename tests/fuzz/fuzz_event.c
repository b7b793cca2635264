// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FUZZ: sampler
 *
 * event_parse() on any text: an event that is accepted keeps its text as its
 * name and parses to the same again; one that is refused has a clean sentence.
 */
#include "sampler/event/event.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sentence(const struct err *e)
{
	size_t lines = 1;

	if (!e->text[0] || !memchr(e->text, 0, sizeof(e->text)))
		abort();
	for (const char *p = e->text; *p; p++) {
		lines += *p == '\n';
		if ((unsigned char)*p < 0x20 && *p != '\n')
			abort();
	}
	/* a newline of the text itself is kept, everything else is ours */
	if (lines < 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct perf_event_attr attr;
	struct event ev, again;
	struct err e = { "" };

	memcpy(text, data, size);
	text[size] = '\0';
	if (event_parse(&ev, text, &e)) {
		check_sentence(&e);
	} else {
		event_attr(&ev, &attr);
		if (strcmp(ev.name, text) || event_parse(&again, ev.name, NULL) ||
		    memcmp(&ev, &again, sizeof(ev)) || attr.size != sizeof(attr) ||
		    ev.precise > 3 || (!ev.user && !ev.kernel && !ev.hv))
			abort();
	}
	free(text);
	return 0;
}

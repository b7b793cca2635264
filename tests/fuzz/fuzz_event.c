// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FUZZ: sampler
 * LIBFUZZER: -max_len=512
 *
 * event_parse_at() on any text, on a machine of files: an event that is accepted keeps its text as
 * its name and parses to the same again; one that is refused has a clean sentence.
 */
#include "sampler/event/event.c"
#include "symbols/base/base.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE "tests/fuzz/machine"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is @text a probe by symbol? It opens any file of this machine, devices too. */
static bool opens_file(const char *text)
{
	if (strncmp(text, "uprobe:/", 8) && strncmp(text, "uretprobe:/", 11))
		return false;
	for (const char *p = strchr(text, '/'); (p = strchr(p, ':')); p++)
		if (isdigit((unsigned char)p[1]))
			return false;
	return true;
}

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
	if (opens_file(text)) {
		free(text);
		return 0;
	}
	if (event_parse_at(MACHINE, &ev, text, &e)) {
		check_sentence(&e);
	} else {
		event_attr(&ev, &attr);
		if (strcmp(ev.name, text) || event_parse_at(MACHINE, &again, ev.name, NULL) ||
		    memcmp(&ev, &again, sizeof(ev)) || attr.size != sizeof(attr) ||
		    ev.precise > 3 || (!ev.user && !ev.kernel && !ev.hv))
			abort();
	}
	free(text);
	return 0;
}

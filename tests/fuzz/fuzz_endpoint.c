// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines as URL, labels and headers of --push: accepted ones are harmless in a request.
 * FUZZ: ui
 * LIBFUZZER: -max_len=2048
 */
#include "ui/push/push.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "ui/export/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is @text printable ASCII without blanks? */
static bool is_plain(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

static void use_url(struct endpoint *to, const char *line)
{
	struct err e;

	if (endpoint_parse(to, line, &e)) {
		if (!e.text[0])
			abort();
		endpoint_parse(to, "http://h/profiles/writeraw", &e);
		return;
	}
	if (strpbrk(line, "?#@\\%") &&
	    (strpbrk(line, "?#\\%") || strchr(line, '@') < strchr(line + 8, '/')))
		abort();
	if (!is_plain(line, strlen(line)) || strncmp(line, "http", 4))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *line, *rest = text;
	struct out url = { .failed = false }, body = url, empty = url;
	struct endpoint to;
	struct err e;

	memcpy(text, data, size);
	text[size] = '\0';
	use_url(&to, strsep(&rest, "\n"));
	while ((line = strsep(&rest, "\n"))) {
		endpoint_add_label(&to, line, &e);
		endpoint_default_label(&to, "host", line);
		if (headers_valid(line) && strpbrk(line, "\r\n"))
			abort();
	}
	endpoint_put_url(&url, &to, 1, 2);
	/* Of OpenTelemetry it is the compressed profile alone, which is not of the input. */
	if (to.kind != ENDPOINT_OTLP)
		endpoint_put_body(&body, &to, "process_cpu", &empty);
	if (url.failed || !is_plain(url.data, url.size) || memchr(url.data, '#', url.size))
		abort();
	if (body.failed || (body.size && memchr(body.data, '\n', body.size)))
		abort();
	out_fini(&url);
	out_fini(&body);
	free(text);
	return 0;
}

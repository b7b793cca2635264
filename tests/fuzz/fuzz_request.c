// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as the path, arguments, Host and address of an HTTP request, in lines.
 * FUZZ: ui
 * LIBFUZZER: -max_len=512
 */
#include "ui/serve/serve.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Use a line in each place where a client's text arrives. */
static void use(struct request *r, char *line)
{
	char *value = strchr(line, '=');
	union request_address a;
	struct err e;
	int n = request_parse_address(&a, line, &e);

	if (n > (int)sizeof(a) || (n < 0 && !e.text[0]))
		abort();
	if (n > 0)
		request_address_is_local(&a);
	if (request_host_is_local(line) && strspn(line, "localhstLOCALHST127.[::]fF0123456789") < 5)
		abort();
	if (value)
		*value++ = '\0';
	request_argument(r, line, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *line, *rest;
	struct request r;

	memcpy(text, data, size);
	text[size] = '\0';
	rest = text;
	line = strsep(&rest, "\n");
	request_init(&r, line);
	while ((line = strsep(&rest, "\n&")))
		use(&r, line);
	if (r.seconds < 1 || r.seconds > REQUEST_SECONDS_MAX || r.pid < 0)
		abort();
	free(text);
	return 0;
}

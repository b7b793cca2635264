// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as the message of a process context: whole, and as the texts of a valid one, which are the
 * texts that are read.
 * FUZZ: symbols
 * LIBFUZZER: -max_len=2048
 */
#include "symbols/process/details.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct context_answer read_bytes(const uint8_t *data, size_t size)
{
	struct sandbox_answer answer;
	struct context_answer a;

	if (sandbox_call(&service_reader, data, size, NULL, 0, CONTEXT_TIMEOUT_NS, &answer) ||
	    answer.size != sizeof(a))
		abort();
	memcpy(&a, answer.bytes, sizeof(a));
	sandbox_answer_free(&answer);
	return a;
}

static size_t put_field(uint8_t *to, unsigned int field, const void *bytes, size_t size)
{
	to[0] = (uint8_t)(field << 3 | 2);
	to[1] = (uint8_t)(size | 0x80);
	to[2] = (uint8_t)(size >> 7);
	memcpy(to + 3, bytes, size);
	return size + 3;
}

/* Append an attribute to a resource. */
static size_t put_attribute(uint8_t *to, const char *key, const uint8_t *text, size_t size)
{
	uint8_t value[600], pair[700];
	size_t nr = put_field(value, 1, text, size), at = put_field(pair, 1, key, strlen(key));

	at += put_field(pair + at, 2, value, nr);
	return put_field(to, 1, pair, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t resource[SERVICE_NR * 700], message[sizeof(resource) + 3];
	struct context_answer a = read_bytes(data, size);
	size_t part = MIN(size / SERVICE_NR, 500u), nr = 0;

	for (unsigned int i = 0; i < SERVICE_NR; i++)
		if (a.sizes[i] > SERVICE_MAX ||
		    (a.sizes[i] && !memmem(data, size, a.texts[i], a.sizes[i])))
			abort();
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		nr += put_attribute(resource + nr, service_key(i), data + i * part, part);
	a = read_bytes(message, put_field(message, 1, resource, nr));
	for (unsigned int i = 0; i < SERVICE_NR; i++)
		if (a.sizes[i] != MIN(part, (size_t)SERVICE_MAX) ||
		    memcmp(a.texts[i], data + i * part, a.sizes[i]) != 0)
			abort();
	return 0;
}

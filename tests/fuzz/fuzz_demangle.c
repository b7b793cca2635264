// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as a mangled name: no crash, no overflow, and never slow.
 * FUZZ: symbols
 * Live: reads a clock.
 */
#include "symbols/name/demangle.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOW_NS 500000000ULL

/* The worker, with the first byte as dialect. */
static int serve_names(const uint8_t *data, size_t size)
{
	uint16_t written = (uint16_t)size;
	uint8_t *request = malloc(size + sizeof(written)); /* exact */
	struct sandbox_call c = { .request = request, .size = size + sizeof(written) };

	if (!request)
		return 0;
	memcpy(request, &written, sizeof(written));
	memcpy(request + sizeof(written), data, size);
	demangler_reader.serve(&c);
	free(c.reply.bytes);
	free(request);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of this thread: a busy machine is no finding. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size ? size : 1), out[1025]; /* exact: one byte more is seen */
	uint64_t start = cpu_ns();
	size_t nr;

	if (!name)
		return 0;
	memcpy(name, data, size);
	nr = demangle(name, size, out, sizeof(out));
	if (nr >= sizeof(out) || (nr && out[nr] != '\0') || cpu_ns() - start > SLOW_NS)
		abort();
	free(name);
	return serve_names(data, MIN(size, (size_t)DEMANGLE_NAME_MAX + 2));
}

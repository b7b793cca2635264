// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as /proc/PID/cgroup, and as the path in it.
 * FUZZ: symbols
 * LIBFUZZER: -max_len=512
 */
#include "symbols/process/details.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *path, *id;
	char out[CGROUP_CONTAINER_MAX];
	size_t n;

	if (cgroup_container(text, size, out, &id) >= sizeof(out))
		abort();
	if (!cgroup_path(text, size, &path, &n))
		return 0;
	if (!n || path[0] != '/' || path < text || path + n > text + size || memchr(path, '\n', n))
		abort();
	if (cgroup_container(path, n, out, &id) != strlen(out) && !memchr(path, '\0', n))
		abort();
	if (id && (id < path || id + 64 > path + n))
		abort();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as /proc/kcore.
 * FUZZ: symbols
 */
#include "symbols/kernel/kallsyms.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t fixed[] = { 0, 0xffffffff81000000, UINT64_MAX };
	static int fd = -1;
	uint8_t buf[64];

	/* One file for all inputs: it has these bytes and no others. */
	if (fd < 0)
		fd = memfd_create("kcore", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size))
		abort();
	for (size_t i = 0; i < 4; i++) {
		uint64_t addr = 0;

		if (i < 3)
			addr = fixed[i];
		else if (size > 88)
			memcpy(&addr, data + 80, 8); /* address in the first program header */
		if (kcore_read(fd, addr, buf, sizeof(buf)) > (int)sizeof(buf))
			abort();
	}
	return 0;
}

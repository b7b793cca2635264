// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes as /proc/kallsyms.
 * FUZZ: symbols
 */
#include "symbols/kernel/kallsyms.c"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse_text(struct kallsyms **out, const void *text, size_t size, struct err *e)
{
	int fd = sandbox_wrap(text, size), rc;

	if (fd < 0)
		abort();
	lseek(fd, 0, SEEK_SET);
	rc = kallsyms_read(out, fd, e);
	close(fd);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t fixed[] = { 0, 0xffffffff81000000, 0xffffffffc0100010, UINT64_MAX };
	struct kallsyms *k;
	uint64_t addr;

	if (parse_text(&k, data, size, NULL))
		return 0;
	for (size_t i = 0; i < 4 + size / 8; i++) {
		struct kallsyms_symbol s;

		if (i < 4)
			addr = fixed[i];
		else
			memcpy(&addr, data + (i - 4) * 8, 8);
		if (!kallsyms_find(k, addr, &s))
			continue;
		if (addr - s.start >= s.size || !s.name_size || memchr(s.name, '\n', s.name_size) ||
		    (s.module && s.module[0] != '['))
			abort();
	}
	kallsyms_free(k);
	return 0;
}

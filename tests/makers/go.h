/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small function table of Go, .gopclntab. */
#ifndef TESTS_MAKERS_GO_H
#define TESTS_MAKERS_GO_H

#include <stdint.h>
#include <string.h>

enum { GO_NAMES = 0x100, GO_FUNCTIONS = 0x200, GO_SIZE = 0x300 };

/* Two functions, main.main and main.leaf, as Go 1.20 writes them. */
static inline void make_go(uint8_t table[GO_SIZE], uint64_t text)
{
	const uint64_t header[] = { 2, 0, text, GO_NAMES, 0, 0, 0, GO_FUNCTIONS };
	const uint32_t functions[] = { 0x0, 0x40, 0x30, 0x48, 0x50, 0 };
	const uint32_t about[] = { 0x0, 0, 0x30, 10 };

	memset(table, 0, GO_SIZE);
	memcpy(table, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	memcpy(table + 8, header, sizeof(header));
	memcpy(table + GO_NAMES, "main.main\0main.leaf", 20);
	memcpy(table + GO_FUNCTIONS, functions, sizeof(functions));
	memcpy(table + GO_FUNCTIONS + 0x40, about, sizeof(about));
}

#endif

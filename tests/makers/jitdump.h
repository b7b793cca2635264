/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jitdumps in memory, for tests: records one after the other.
 */
#ifndef TESTS_MAKERS_JITDUMP_H
#define TESTS_MAKERS_JITDUMP_H

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

struct jitmake {
	uint8_t bytes[1 << 16];
	size_t size;
};

static inline void jit_put(struct jitmake *j, const void *bytes, size_t size)
{
	if (size > sizeof(j->bytes) - j->size)
		abort();
	memcpy(j->bytes + j->size, bytes, size);
	j->size += size;
}

static inline void jit_header(struct jitmake *j, uint64_t flags)
{
	const uint32_t head[6] = { 0x4a695444, 1, 40, EM_X86_64, 0, 4711 };
	const uint64_t tail[2] = { 0, flags };

	j->size = 0;
	jit_put(j, head, sizeof(head));
	jit_put(j, tail, sizeof(tail));
}

static inline void jit_prefix(struct jitmake *j, uint32_t id, size_t rest, uint64_t time_ns)
{
	const uint32_t head[2] = { id, (uint32_t)(16 + rest) };

	jit_put(j, head, sizeof(head));
	jit_put(j, &time_ns, sizeof(time_ns));
}

/* The code is bytes that count up from the first letter of the name. */
static inline void jit_load(struct jitmake *j, const char *name, uint64_t addr, uint32_t size,
			    uint64_t time_ns)
{
	const uint32_t ids[2] = { 4711, 4711 };
	const uint64_t fields[4] = { addr, addr, size, 1 };

	jit_prefix(j, 0, sizeof(ids) + sizeof(fields) + strlen(name) + 1 + size, time_ns);
	jit_put(j, ids, sizeof(ids));
	jit_put(j, fields, sizeof(fields));
	jit_put(j, name, strlen(name) + 1);
	for (uint32_t i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)((uint8_t)name[0] + i);

		jit_put(j, &byte, 1);
	}
}

static inline void jit_move(struct jitmake *j, uint64_t from, uint64_t to, uint64_t size,
			    uint64_t time_ns)
{
	const uint32_t ids[2] = { 4711, 4711 };
	const uint64_t fields[5] = { to, from, to, size, 1 };

	jit_prefix(j, 1, sizeof(ids) + sizeof(fields), time_ns);
	jit_put(j, ids, sizeof(ids));
	jit_put(j, fields, sizeof(fields));
}

struct jit_line {
	uint64_t addr;
	uint32_t line;
	const char *file;
};

static inline void jit_lines(struct jitmake *j, uint64_t code, const struct jit_line *lines,
			     uint64_t nr)
{
	size_t rest = 16;

	for (uint64_t i = 0; i < nr; i++)
		rest += 17 + strlen(lines[i].file);
	jit_prefix(j, 2, rest, 0);
	jit_put(j, &code, 8);
	jit_put(j, &nr, 8);
	for (uint64_t i = 0; i < nr; i++) {
		const uint32_t place[2] = { lines[i].line, 0 };

		jit_put(j, &lines[i].addr, 8);
		jit_put(j, place, sizeof(place));
		jit_put(j, lines[i].file, strlen(lines[i].file) + 1);
	}
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Version and options of a running JVM (JDK source: jvmFlag.hpp).
 *
 * Runs on: a helper. Every number is foreign.
 */
#include "symbols/jit/hotspot.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS_MAX 8192U
#define SIZE_MAX_ 256U
#define NAME_SIZE 25U /* of "UseCountedLoopSafepoints" with its NUL */

/* Find the entry of the table @entries with the name @name; returns its number, or @nr. */
static uint64_t find(struct remote *r, const uint64_t *names, uint64_t nr, const char *name)
{
	uint8_t *texts = calloc(nr, NAME_SIZE);
	bool *got = calloc(nr, sizeof(*got));
	uint64_t at = nr;

	if (texts && got && !remote_read_each(r, names, (uint32_t)nr, NAME_SIZE, texts, got))
		for (at = 0; at < nr; at++)
			if (got[at] && !memcmp(texts + at * NAME_SIZE, name, NAME_SIZE))
				break;
	free(texts);
	free(got);
	return at;
}

/* Read the value of the flag @name in the table @bytes of @nr entries. */
static bool read_flag(const struct vmstructs *v, struct remote *r, const uint8_t *bytes,
		      uint64_t nr, const char *name, uint8_t *value)
{
	uint64_t *names = calloc(nr, sizeof(*names)), at, addr;
	bool found = false;

	for (uint64_t i = 0; names && i < nr; i++)
		memcpy(&names[i], bytes + i * v->flag_size + v->flag_name, sizeof(*names));
	at = names ? find(r, names, nr, name) : nr;
	if (at < nr) {
		memcpy(&addr, bytes + at * v->flag_size + v->flag_addr, sizeof(addr));
		found = !remote_read(r, addr, value, 1);
	}
	free(names);
	return found;
}

bool hotspot_polls_loops(const struct vmstructs *v, struct remote *r)
{
	uint64_t table, nr;
	uint8_t *bytes, value = 0;

	if (v->flags == UINT64_MAX || v->nr_flags == UINT64_MAX || v->flag_name == UINT64_MAX ||
	    v->flag_addr == UINT64_MAX || v->flag_size == UINT64_MAX || v->flag_size > SIZE_MAX_ ||
	    v->flag_name + 8 > v->flag_size || v->flag_addr + 8 > v->flag_size ||
	    remote_read_u64(r, v->flags, &table) || remote_read_u64(r, v->nr_flags, &nr) || !nr ||
	    nr > FLAGS_MAX)
		return false;
	bytes = malloc(nr * v->flag_size);
	if (!bytes || remote_read(r, table, bytes, nr * v->flag_size) ||
	    !read_flag(v, r, bytes, nr, "UseCountedLoopSafepoints", &value))
		value = 0;
	free(bytes);
	return value;
}

bool hotspot_is_untried(const struct vmstructs *v, struct remote *r)
{
	uint32_t major;

	return v->vm_major == UINT64_MAX || remote_read_u32(r, v->vm_major, &major) ||
	       (major != 17 && major != 25); /* make truth-java */
}

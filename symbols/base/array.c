// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Growable arrays. Runs on: any thread.
 */
#include "symbols/base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/base/base.h"

#define ROOM_MIN 64u

bool array_reserve_size(void *array, uint32_t *room, uint64_t nr, size_t size)
{
	uint64_t larger = MAX(MAX(2ull * *room, nr), ROOM_MIN);
	void *p;

	assert(size);
	if (nr <= *room)
		return true;
	larger = MIN(larger, UINT32_MAX);
	if (nr > UINT32_MAX || larger > SIZE_MAX / size)
		return false;
	/* A pointer of any type is read and written by its bytes. */
	memcpy(&p, array, sizeof(p));
	p = realloc(p, larger * size);
	if (!p)
		return false;
	memcpy(array, &p, sizeof(p));
	*room = (uint32_t)larger;
	return true;
}

bool array_reserve_zeroed_size(void *array, uint32_t *room, uint64_t nr, size_t size)
{
	uint32_t before = *room;
	char *p;

	if (!array_reserve_size(array, room, nr, size))
		return false;
	memcpy(&p, array, sizeof(p));
	if (*room > before)
		memset(p + before * size, 0, (*room - before) * size);
	return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows and the cursor among them. Runs on: the main thread.
 */
#include "ui/state/list.h"

#include <assert.h>
#include <stdlib.h>

#include "symbols/base/array.h"
#include "symbols/base/base.h"

#define ROWS_MAX (1u << 22)

void list_fini(struct list *list)
{
	free(list->rows);
	free(list->sorted);
	free(list->keys);
	free(list->slots);
	match_fini(&list->search);
	match_fini(&list->filter);
	*list = (struct list){ 0 };
}

struct row *list_add(struct list *list)
{
	assert(list->nr <= list->capacity);
	if (list->nr == ROWS_MAX || !array_reserve(&list->rows, &list->capacity, list->nr + 1ULL))
		return NULL;
	list->rows[list->nr] = (struct row){ .task = UINT32_MAX, .top_function = UINT32_MAX };
	return &list->rows[list->nr++];
}

bool list_reserve_sorted(struct list *list, size_t size)
{
	if (list->nr_sorted == list->capacity && list->sorted)
		return true;
	free(list->sorted);
	free(list->keys);
	list->sorted = calloc(list->capacity, sizeof(*list->sorted));
	list->keys = calloc(list->capacity, size);
	list->nr_sorted = list->sorted && list->keys ? list->capacity : 0;
	return list->nr_sorted;
}

void list_restore(struct list *list, uint64_t selected, uint32_t cursor, bool pinned)
{
	list->selected = selected;
	list->cursor = list->nr ? MIN(cursor, list->nr - 1) : 0;
	list->pinned = pinned;
	for (uint32_t i = 0; pinned && i < list->nr; i++)
		if (list->rows[i].id == selected)
			list->cursor = i;
	assert(list->cursor < list->nr || !list->nr);
}

const struct row *list_current(const struct list *list)
{
	return list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
}

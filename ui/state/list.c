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

struct list_position list_position(const struct list *list)
{
	return (struct list_position){ list->selected, list->cursor, list->top, list->pinned };
}

void list_restore(struct list *list, const struct list_position *at)
{
	uint32_t page = MAX(list->page, 1u);

	list->selected = at->selected;
	list->cursor = at->cursor;
	list->top = at->top;
	/* Without rows, they may be on their way. */
	if (list->nr) {
		list->cursor = MIN(at->cursor, list->nr - 1);
		list->top = list->nr > page ? MIN(at->top, list->nr - page) : 0;
	}
	list->pinned = at->pinned;
	for (uint32_t i = 0; at->pinned && i < list->nr; i++)
		if (list->rows[i].id == at->selected)
			list->cursor = i;
	assert(list->cursor < list->nr || !list->nr);
}

const struct row *list_current(const struct list *list)
{
	return list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The columns of a view. Runs on: the main thread.
 */
#include "ui/view/columns.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum view_id columns_view(unsigned int i)
{
	static const enum view_id views[CONFIG_COLUMN_VIEWS] = {
		VIEW_FUNCTIONS, VIEW_PROCESSES, VIEW_TREE, VIEW_CALLERS, VIEW_CPUS, VIEW_MODULES,
	};

	return views[i < CONFIG_COLUMN_VIEWS ? i : 0];
}

const char *columns_name(const struct view_column *column, char buf[static COLUMNS_NAME_MAX])
{
	const char *title = column->name ? column->name : column->title.str;
	size_t n = 0;

	for (; *title && *title != '%' && n + 1 < COLUMNS_NAME_MAX; title++)
		buf[n++] = *title == ' ' ? '-' : (char)tolower((unsigned char)*title);
	buf[n] = '\0';
	return buf;
}

struct safe_text columns_heading(const struct ui_state *st, const struct view_column *column,
				 bool ascii, char buf[static TEXT_MAX])
{
	if (column->heading)
		return column->heading(st, buf);
	return ascii && column->ascii.size ? column->ascii : column->title;
}

uint32_t columns_parse(const struct view *v, const char *text)
{
	char name[COLUMNS_NAME_MAX];
	uint32_t columns = 0;

	while (text && *text) {
		size_t size = strcspn(text, ", ");

		for (int i = 0; i < v->nr_columns; i++)
			if (strlen(columns_name(&v->columns[i], name)) == size &&
			    !strncasecmp(name, text, size))
				columns |= 1u << i;
		text += size;
		text += strspn(text, ", ");
	}
	return columns;
}

void columns_format(const struct view *v, uint32_t columns, char *out, size_t size)
{
	char name[COLUMNS_NAME_MAX];
	size_t at = 0;

	*out = '\0';
	for (int i = 0; i < v->nr_columns && at < size; i++)
		if (columns & 1u << i)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "",
					       columns_name(&v->columns[i], name));
}

void columns_parse_sort(const struct view *v, const char *text, struct list *list)
{
	size_t size = text ? strcspn(text, " ") : 0;
	char name[COLUMNS_NAME_MAX];

	for (int i = 0; size && i < v->nr_columns; i++) {
		if (!v->columns[i].compare || strlen(columns_name(&v->columns[i], name)) != size ||
		    strncasecmp(name, text, size))
			continue;
		list->sort = (uint8_t)i;
		list->inverted = !strcmp(text + size, " reversed");
		return;
	}
}

void columns_format_sort(const struct view *v, const struct list *list, char *out, size_t size)
{
	char name[COLUMNS_NAME_MAX];

	*out = '\0';
	if (list->sort < v->nr_columns)
		snprintf(out, size, "%s%s", columns_name(&v->columns[list->sort], name),
			 list->inverted ? " reversed" : "");
}

bool columns_sortable(const struct ui_state *st, const struct view *v, int i)
{
	const struct view_column *column = &v->columns[i];

	assert(i >= 0 && i < v->nr_columns);
	return column->compare && !v->own_order && (!column->when || column->when(st));
}

bool columns_shown(const struct ui_state *st, const struct view *v, uint32_t picked, int i,
		   unsigned int cols)
{
	const struct view_column *column = &v->columns[i];

	assert(i >= 0 && i < v->nr_columns);
	if (column->when && !column->when(st))
		return false;
	if (picked)
		return picked & 1u << i;
	return (cols >= column->from || (column->always && column->always(st))) &&
	       !(column->extra && st->full_names);
}

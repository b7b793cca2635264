// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text of XML and HTML.
 */
#include "ui/export/markup.h"

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static void put(struct out *o, const char *text, size_t size)
{
	size_t from = 0;

	for (size_t i = 0; i < size; i++) {
		const char *name = entity(text[i]);

		if (!name)
			continue;
		out_bytes(o, text + from, i - from);
		out_text(o, name);
		from = i + 1;
	}
	out_bytes(o, text + from, size - from);
}

void markup_put(struct out *o, struct safe_text t)
{
	put(o, t.str, t.size);
}

void markup_put_clipped(struct out *o, struct safe_text t, unsigned int cols)
{
	unsigned int width;

	if (t.width <= cols) {
		put(o, t.str, t.size);
	} else if (cols >= 3) {
		put(o, t.str, text_clip(t, cols - 2, &width));
		out_text(o, "..");
	}
}

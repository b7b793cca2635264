// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Strings of JSON.
 */
#include "ui/export/json.h"

void json_put(struct out *o, struct safe_text t)
{
	size_t from = 0;

	out_text(o, "\"");
	for (size_t i = 0; i < t.size; i++) {
		unsigned char c = (unsigned char)t.str[i];

		/* '<' would end a script element as "</script>", or begin a comment in it. */
		if (c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&')
			continue;
		out_bytes(o, t.str + from, i - from);
		out_format(o, "\\u%04x", c);
		from = i + 1;
	}
	out_bytes(o, t.str + from, t.size - from);
	out_text(o, "\"");
}

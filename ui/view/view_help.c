// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The help page, made from the key table. The main thread; reads the state only.
 *
 * A row is one line; line numbers are identities.
 */
#include "ui/view/view.h"

#include <errno.h>
#include <string.h>

#include "ui/text/format.h"

#define KEYS_COLS 17u

static const struct safe_text notes[] = {
	TEXT("ROWS"),
	TEXT("  SELF%   share of the samples that were in the function itself"),
	TEXT("  TOTAL%  share of the samples with the function anywhere on the stack"),
	TEXT("  ~       differs from the row above by no more than noise (95 %)"),
	TEXT("  +/-     change of SELF% against the window before, or the baseline (B);"),
	TEXT("          ! significant (99 %)"),
	TEXT("  TREND60s  SELF% over the last minute, now at the right"),
	TEXT("  u user  k kernel  j JIT  v vdso  ? no name; code of languages:"),
	TEXT("  J Java  y Python  h PHP  r Ruby  l Perl  (\"python:\" finds or filters)"),
	TEXT("  call tree: a mark at the end of a row: on the hottest path (J opens it)"),
	TEXT("HEADER"),
	TEXT("  Freq       samples per second and CPU, wanted and got; 534!: too few, see 7"),
	TEXT("  Lost       samples lost by the kernel; use a larger --ring or a lower"),
	TEXT("             frequency; 0 (9!): none now, 9 in the last seconds; see 7"),
	TEXT("  Throttled  times the kernel paused an event that interrupted too often"),
	TEXT("  Stacks     complete: reached the root; guessed: with a guessed frame;"),
	TEXT("             truncated: longer than --stack-size; broken: ended early;"),
	TEXT("             pending: taken before the program was read"),
	TEXT("  Symbols    share of samples in code with a symbol"),
	TEXT("  00:03:12   since the counts were reset: at start, by r, or by other events;"),
	TEXT("             in Messages FIRST and LAST are since the start, COUNT is of samples"),
	TEXT("             if the message is about samples, else of occurrences"),
	TEXT("MOUSE"),
	TEXT("  click a row, a column title, a view or a key; double-click drills in;"),
	TEXT("  Shift-drag selects text"),
};

/* Find the content of line @n: a binding, a heading, a note, or (last) nothing. */
struct content {
	const struct key_binding *binding;
	struct safe_text text;
	bool heading;
};

/* Lines of the bindings, group by group, each with a heading and a blank line. */
static bool key_line(uint32_t *n, struct content *content)
{
	for (int g = 0; g < GROUP_NR; g++) {
		if ((*n)-- == 0) {
			const char *name = keys_group((enum key_group)g);
			uint16_t size = (uint16_t)strlen(name);

			content->heading = true;
			content->text = (struct safe_text){ name, size, size };
			return true;
		}
		for (const struct key_binding *b = keys_table(); b->action; b++) {
			if (b->group != (enum key_group)g || (*n)-- != 0)
				continue;
			content->binding = b;
			return true;
		}
		if ((*n)-- == 0)
			return true;
	}
	return false;
}

static bool line_content(uint32_t n, struct content *content)
{
	*content = (struct content){ .text = TEXT("") };
	if (key_line(&n, content))
		return true;
	if (n >= ARRAY_SIZE(notes))
		return false;
	content->text = notes[n];
	content->heading = notes[n].str[0] != ' ';
	return true;
}

static int build(const struct ui_state *st, struct list *list)
{
	struct content content;

	for (uint32_t n = 0; line_content(n, &content); n++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		row->id = row->index = n;
		row->total = 1;
	}
	return 0;
}

/* Return the line as text, in @buf if need be. */
static struct safe_text line_text(const struct ui_state *st, uint32_t n, char *buf, size_t size)
{
	struct content content;
	char keys[48];

	if (!line_content(n, &content))
		return TEXT("");
	if (!content.binding)
		return content.text;
	return text_format(buf, size, "  %-*s %s%s", (int)KEYS_COLS,
			   bindings_names(st->bindings, keys, sizeof(keys), content.binding),
			   content.binding->help, keys_where(content.binding));
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char buf[160];

	return match_finds(m, line_text(st, row->index, buf, sizeof(buf)));
}

static void draw_row(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	const struct match *search = &st->lists[VIEW_HELP].search;
	struct content content;
	struct style style = { ROLE_NORMAL, 0 };
	char buf[160];
	struct safe_text text = line_text(st, row->index, buf, sizeof(buf));

	if (!line_content(row->index, &content))
		return;
	if (content.heading)
		style.role = ROLE_TITLE;
	if (match_active(search) && match_finds(search, text) && text.size)
		style.flags |= CELL_UNDERLINE;
	canvas_elide(c, at.row, at.col, at.cols, text, style);
	if (content.binding)
		canvas_restyle(c, at.row, at.col, MIN(at.cols, KEYS_COLS + 2),
			       (struct style){ ROLE_KEY, style.flags }, false);
}

const struct view view_help = {
	.title = TEXT("Help"),
	.context = CTX_HELP,
	.unit = "line",
	.sort_self = UINT8_MAX,
	.sort_total = UINT8_MAX,
	.sort_module = UINT8_MAX,
	.build = build,
	.finds = finds,
	.draw_row = draw_row,
};

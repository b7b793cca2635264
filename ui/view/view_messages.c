// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 7: the messages, each kind once, with its fix. The main thread; reads
 * the state.
 */
#include "ui/view/view.h"

#include <errno.h>
#include <string.h>

#include "ui/text/format.h"

static const struct profile_message *message_of(const struct ui_state *st, const struct row *row)
{
	return &st->latest->messages[row->index];
}

/* Compare by severity, then active ones first. */
static int by_severity(const struct ui_state *st, const struct row *a, const struct row *b)
{
	const struct profile_message *x = message_of(st, a), *y = message_of(st, b);

	if (x->severity != y->severity)
		return x->severity > y->severity ? 1 : -1;
	return x->active - y->active;
}

/* By severity first: two lost samples matter more than a thousand guessed callers. */
static int by_count(const struct ui_state *st, const struct row *a, const struct row *b)
{
	bool x = message_of(st, a)->severity == MESSAGE_GRAVE,
	     y = message_of(st, b)->severity == MESSAGE_GRAVE;

	return x != y ? x - y : COMPARE(a->count, b->count);
}

static int by_first(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(message_of(st, a)->first_ns, message_of(st, b)->first_ns);
}

static int by_last(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(message_of(st, a)->last_ns, message_of(st, b)->last_ns);
}

static struct style style_of(const struct ui_state *st, const struct row *row)
{
	const struct profile_message *m = message_of(st, row);

	return (struct style){ m->severity == MESSAGE_INFO ? ROLE_DIM
			       : m->active		   ? ROLE_WARN
							   : ROLE_NORMAL,
			       0 };
}

static void draw_count(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count), style_of(st, row));
}

static void draw_time(struct canvas *c, struct view_field at, uint64_t ns)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_clock(buf, ns),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_first(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	draw_time(c, at, message_of(st, row)->first_ns);
}

static void draw_last(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	draw_time(c, at, message_of(st, row)->last_ns);
}

static void draw_text(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	const struct profile_message *m = message_of(st, row);
	char buf[sizeof(m->detail) + 2];

	canvas_elide(c, at.row, at.col, at.cols,
		     text_format(buf, sizeof(buf), "%s%s", m->severity == MESSAGE_GRAVE ? "! " : "",
				 m->detail),
		     style_of(st, row));
}

static void draw_fix(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	canvas_text(c, at.row, at.col, at.cols,
		    message_of(st, row)->control == MESSAGE_NONE ? TEXT("") : TEXT("Enter"),
		    (struct style){ ROLE_KEY_LABEL, 0 });
}

enum { COUNT, FIRST, LAST, KEY, WHAT };

static const struct view_column columns[] = {
	[COUNT] = { .title = TEXT("COUNT"),
		    .help = "times, or samples; most severe (!) first",
		    .width = 9,
		    .right = true,
		    .compare = by_count,
		    .draw = draw_count },
	[FIRST] = { .title = TEXT("FIRST"),
		    .help = "running time at the first",
		    .width = 9,
		    .from = 70,
		    .right = true,
		    .ascending = true,
		    .compare = by_first,
		    .draw = draw_first },
	[LAST] = { .title = TEXT("LAST"),
		   .help = "running time at the last",
		   .width = 9,
		   .from = 56,
		   .right = true,
		   .compare = by_last,
		   .draw = draw_last },
	[KEY] = { .title = TEXT("FIX"), .help = "Enter applies it", .width = 5, .draw = draw_fix },
	[WHAT] = { .title = TEXT("MESSAGE"),
		   .help = "message, most severe first",
		   .compare = by_severity,
		   .draw = draw_text },
};

static int build(const struct ui_state *st, struct list *list)
{
	for (uint32_t i = 0; st->latest && i < st->latest->nr_messages; i++) {
		struct row *row = list_add(list);

		if (!row)
			return -ENOMEM;
		row->id = st->latest->messages[i].id;
		row->index = i;
		row->total = 1;
		row->count = (double)st->latest->messages[i].count;
	}
	return 0;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char buf[sizeof(message_of(st, row)->detail)];

	return match_finds(m, ui_state_clean(buf, sizeof(buf), message_of(st, row)->detail));
}

/* Show the fix of the selected message. */
static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile_message *m = row ? message_of(st, row) : NULL;

	if (!m)
		return 0;
	foot_text(f, TEXT("What"), m->detail);
	foot_text(f, TEXT("Fix"), m->fix[0] ? m->fix : "none needed");
	if (m->control != MESSAGE_NONE)
		foot_line(f, TEXT("Enter"), TEXT("apply the suggested fix"));
	return f->used;
}

static const char *copied(const struct ui_state *st, const struct row *row,
			  char buf[static TEXT_MAX])
{
	return message_of(st, row)->detail;
}

static const struct view_label labels[] = { { ACT_OPEN, "Fix" }, { ACT_NONE, NULL } };

const struct view view_messages = {
	.title = TEXT("Messages"),
	.context = CTX_LIST,
	.newest = true,
	.unit = "message",
	.labels = labels,
	.empty = TEXT("no problems so far"),
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ COUNT, COUNT, VIEW_NO_COLUMN },
	.build = build,
	.finds = finds,
	.foot = foot,
	.message = message_of,
	.copied = copied,
};

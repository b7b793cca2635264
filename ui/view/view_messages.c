// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 7: the messages, each kind once, with its fix; then answers to keys. The main thread; reads
 * the state.
 */
#include "ui/view/internal.h"

#include <errno.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

static const struct profile_message *message_of(const struct ui_state *st, const struct row *row)
{
	uint32_t nr = st->latest ? st->latest->nr_messages : 0;

	return row->index < nr ? &st->latest->messages[row->index] : &st->answers[row->index - nr];
}

/* ---- lines ---- */

/* Below these sizes there is no space for the lines below the rows: message and fix are broken into
 * rows. */
#define NARROW_COLS 60u

#define NARROW_ROWS 16u
#define PARTS	    32u /* at most, of a message */
#define FIRST_AT    12u /* cells before the text in the first row */

static bool is_narrow(const struct ui_state *st)
{
	return st->cols < NARROW_COLS || st->rows < NARROW_ROWS;
}

/* Write the whole message. */
static struct safe_text whole(const struct ui_state *st, const struct profile_message *m,
			      char buf[static TEXT_MAX])
{
	return text_format(buf, TEXT_MAX, "%s%s%s%s", m->severity == MESSAGE_GRAVE ? "! " : "",
			   m->detail, is_narrow(st) ? ". Fix: " : "",
			   !is_narrow(st) ? ""
			   : m->fix[0]	  ? m->fix
					  : "none needed");
}

/* Write line @part of it; "": there is none. */
static struct safe_text line_of(const struct ui_state *st, const struct profile_message *m,
				uint32_t part, char buf[static TEXT_MAX])
{
	char text[TEXT_MAX];
	const char *at = whole(st, m, text).str;
	size_t n = 0;

	for (uint32_t i = 0; i <= part; i++) {
		at += n;
		at += strspn(at, " ");
		n = foot_line_bytes(at, MAX(st->cols, 30u) - (i ? 4 : FIRST_AT + 1));
	}
	return text_sanitise(buf, TEXT_MAX, at, n);
}

/* ---- columns ---- */

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

	if (!row->depth)
		canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
			     style_of(st, row));
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
	if (!row->depth)
		draw_time(c, at, message_of(st, row)->first_ns);
}

static void draw_last(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	if (!row->depth)
		draw_time(c, at, message_of(st, row)->last_ns);
}

static void draw_text(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	const struct profile_message *m = message_of(st, row);
	char buf[TEXT_MAX];

	if (row->depth) {
		at.cols += at.col - 3;
		at.col = 3;
	}
	canvas_elide(c, at.row, at.col, at.cols,
		     is_narrow(st) ? line_of(st, m, row->depth, buf) : whole(st, m, buf),
		     style_of(st, row));
}

static void draw_fix(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	canvas_text(c, at.row, at.col, at.cols,
		    message_of(st, row)->control == MESSAGE_NONE || row->depth ? TEXT("")
									       : TEXT("Enter"),
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
	[KEY] = { .title = TEXT("FIX"),
		  .help = "Enter applies it",
		  .width = 5,
		  .from = 56,
		  .draw = draw_fix },
	[WHAT] = { .title = TEXT("MESSAGE"),
		   .help = "message, most severe first",
		   .compare = by_severity,
		   .draw = draw_text },
};

static int add(struct list *list, const struct profile_message *m, uint32_t index, uint32_t part)
{
	struct row *row = list_add(list);

	if (!row)
		return -ENOMEM;
	row->id = (uint64_t)m->id * PARTS + part;
	row->index = index;
	row->depth = (uint8_t)part;
	row->total = 1;
	row->count = (double)m->count;
	return 0;
}

/* Add a row for each message; on small screens one for each line of it. */
static int build(const struct ui_state *st, struct list *list)
{
	uint32_t nr = st->latest ? st->latest->nr_messages : 0;
	char buf[TEXT_MAX];
	int code = 0;

	for (uint32_t i = 0; i < nr + st->nr_answers && !code; i++) {
		const struct profile_message *m = message_of(st, &(struct row){ .index = i });

		code = add(list, m, i, 0);
		for (uint32_t part = 1; is_narrow(st) && part < PARTS && !code; part++) {
			if (!line_of(st, m, part, buf).size)
				break;
			code = add(list, m, i, part);
		}
	}
	return code;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char buf[sizeof(message_of(st, row)->detail)];

	return match_finds(m, ui_state_clean(buf, sizeof(buf), message_of(st, row)->detail));
}

/* Show the keys that help, beside Enter. */
static void foot_keys(const struct ui_state *st, struct foot *f, unsigned int keys)
{
	static const struct {
		enum message_key key;
		enum action action;
		const char *what;
	} helps[] = {
		{ MESSAGE_KEY_PROCESSES, ACT_VIEW_PROCESSES, "show by process" },
		{ MESSAGE_KEY_PICK, ACT_PICK_PROCESS, "pick a process" },
		{ MESSAGE_KEY_RATE, ACT_SLOWER, "lower the rate" },
		{ MESSAGE_KEY_STACKS, ACT_SMALLER_STACKS, "smaller stack copies" },
		{ MESSAGE_KEY_FREQUENCY, ACT_PICK_FREQUENCY, "set the rate" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(helps); i++) {
		char name[8];

		if (!(keys & helps[i].key))
			continue;
		key_name_of(name, user_keys_first(st->user_keys, CTX_LIST, helps[i].action));
		foot_text(f,
			  (struct safe_text){ name, (uint16_t)strlen(name),
					      (uint16_t)strlen(name) },
			  helps[i].what);
	}
}

/* Show the fix of the selected message, and its keys. */
static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile_message *m = row && !is_narrow(st) ? message_of(st, row) : NULL;

	if (!m)
		return 0;
	foot_text(f, TEXT("What"), m->detail);
	foot_text(f, TEXT("Fix"), m->fix[0] ? m->fix : "none needed");
	if (m->control != MESSAGE_NONE)
		foot_text(f, TEXT("Enter"), profile_message_action(m));
	foot_keys(st, f, m->keys);
	return f->used;
}

static const char *copied(const struct ui_state *st, const struct row *row,
			  char buf[static TEXT_MAX])
{
	return message_of(st, row)->detail;
}

/* Count messages, not their lines. */
static void position(const struct ui_state *st, const struct list *list, uint32_t *at, uint32_t *nr)
{
	*at = *nr = 0;
	for (uint32_t i = 0; i < list->nr; i++) {
		*nr += !list->rows[i].depth;
		*at += !list->rows[i].depth && i <= list->cursor;
	}
}

static const struct view_label labels[] = { { ACT_OPEN, "Fix" }, { ACT_NONE, NULL } };

const struct view view_messages = {
	.title = TEXT("Messages"),
	.context = CTX_LIST,
	.newest = true,
	.unit = "message",
	.position = position,
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

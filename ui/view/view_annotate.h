/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function, instruction by instruction and line by line: in, out, and
 * about. The main thread.
 */
#ifndef UI_VIEW_VIEW_ANNOTATE_H
#define UI_VIEW_VIEW_ANNOTATE_H

#include "ui/state/state.h"

/* What a row of the view is; in the upper bits of its id, so that it stays the same row. */
enum annotate_kind {
	ANNOTATE_INSN,	/* low bits: offset in the function; index: instruction */
	ANNOTATE_ABOVE, /* the source of the instruction at that offset; the same */
	ANNOTATE_LINE,	/* low bits: file, line; index: file */
	ANNOTATE_FILE,	/* its heading: the same with line 0 */
	ANNOTATE_POINT, /* no code is there: low bits: offset */
};
#define ANNOTATE_SHIFT 60

static inline enum annotate_kind annotate_kind(uint64_t id)
{
	return (enum annotate_kind)(id >> ANNOTATE_SHIFT);
}

/* Which offset a row stands at. */
static inline uint64_t annotate_low(uint64_t id)
{
	return id & ((1ULL << ANNOTATE_SHIFT) - 1);
}

/* Its column by which instructions stand in their order. */
#define VIEW_ANNOTATE_BY_OFFSET 4

/* All rows of the shown profile, unsorted; 0 or -ENOMEM. */
int annotate_rows_build(const struct ui_state *st, struct list *list);
/* Do rows stand in the order of addresses? */
bool annotate_in_order(const struct ui_state *st);
/* The profile that knows the annotated function; NULL: none yet. */
const struct profile *annotate_profile(const struct ui_state *st);
/* What is known of the annotated function; NULL: nothing yet. */
const struct profile_annotate *annotate_of(const struct ui_state *st);
/* Its listing; NULL while it is read. */
const struct listing *annotate_listing(const struct ui_state *st);
/* The source of a row: false where it has none. @file: index in files. */
bool annotate_source(const struct ui_state *st, const struct row *row, uint32_t *file,
		     uint32_t *line);

/* Ask for the function (an id) and show it; @name: clean. */
void view_annotate_open(struct ui_state *st, uint32_t function, const char *name);
/* Back to where it was opened from: a caller that was followed, or a view. */
void view_annotate_close(struct ui_state *st);
/* Another view is shown: nothing more is asked for. */
void view_annotate_left(struct ui_state *st);
/* A jump or call: to where it goes. A line: to its instructions. */
void view_annotate_follow(struct ui_state *st);
/* To the next hottest row, or back. */
void view_annotate_hottest(struct ui_state *st, bool back);
/* Source and assembly, source, assembly. */
void view_annotate_mode(struct ui_state *st, enum annotate_mode mode);
/* A profile came: the first with code puts the cursor on the hottest instruction. */
void view_annotate_arrived(struct ui_state *st);

#endif

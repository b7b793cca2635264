/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function by instruction and source line. Runs on: the main thread.
 */
#ifndef UI_VIEW_VIEW_ANNOTATE_H
#define UI_VIEW_VIEW_ANNOTATE_H

#include "ui/state/state.h"

/* The kind of a row, in the upper bits of its id. */
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

/* Return the offset of a row. */
static inline uint64_t annotate_low(uint64_t id)
{
	return id & ((1ULL << ANNOTATE_SHIFT) - 1);
}

/* The column that sorts by address. */
#define VIEW_ANNOTATE_BY_OFFSET 5

/* All rows of the shown profile, unsorted; 0 or -ENOMEM. */
int annotate_rows_build(const struct ui_state *st, struct list *list);
/* Return whether rows are sorted by address. */
bool annotate_in_order(const struct ui_state *st);
/* Return the profile with the annotated function; NULL: none yet. */
const struct profile *annotate_profile(const struct ui_state *st);
/* Return the data of the annotated function; NULL: none yet. */
const struct profile_annotate *annotate_of(const struct ui_state *st);
/* Return its listing; NULL while it is loading. */
const struct listing *annotate_listing(const struct ui_state *st);
/* Return the mode in effect: a script has no instructions. */
enum annotate_mode annotate_shown(const struct ui_state *st);
/* Find the source of a row. Return false if it has none. @file: index in files. */
bool annotate_source(const struct ui_state *st, const struct row *row, uint32_t *file,
		     uint32_t *line);

/* Request the function with that id, and show it; @name: clean. */
void view_annotate_open(struct ui_state *st, uint32_t function, const char *name);
/* Go back to the caller, or to the view it was opened from. */
void view_annotate_close(struct ui_state *st);
/* Stop requesting the function: another view is shown. */
void view_annotate_left(struct ui_state *st);
/* Follow a jump or call; of a source line, go to its instructions. */
void view_annotate_follow(struct ui_state *st);
/* Select the next hottest row, or the previous one. */
void view_annotate_hottest(struct ui_state *st, bool back);
/* Set the mode: source and assembly, source, assembly. */
void view_annotate_mode(struct ui_state *st, enum annotate_mode mode);
/* Handle a new profile: the first with code selects the hottest instruction. */
void view_annotate_arrived(struct ui_state *st);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One function: its instructions, its source, or both. The main thread; reads
 * the state, and keeps the arrows of the code in st->annotate.
 *
 * A row's identity is its offset in the function, or its file and line: the cursor keeps its
 * instruction in every order.
 */
#include "ui/view/view_annotate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ui/text/format.h"
#include "ui/text/users.h"
#include "ui/view/arrows.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"

const struct profile *annotate_profile(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	/* Requested after the rows were frozen: in the newest profile. */
	if (!p || !p->annotate || p->annotate->function != st->annotate.function)
		p = st->latest;
	return p && p->annotate && p->annotate->function == st->annotate.function ? p : NULL;
}

const struct profile_annotate *annotate_of(const struct ui_state *st)
{
	const struct profile *p = annotate_profile(st);

	return p ? p->annotate : NULL;
}

enum annotate_mode annotate_shown(const struct ui_state *st)
{
	const struct listing *l = annotate_listing(st);

	return l && l->script ? ANNOTATE_SOURCE : st->annotate.mode;
}

const struct listing *annotate_listing(const struct ui_state *st)
{
	const struct profile_annotate *a = annotate_of(st);

	return a ? a->listing : NULL;
}

static const struct listing_insn *insn_of(const struct ui_state *st, const struct row *row)
{
	const struct listing *l = annotate_listing(st);
	bool has = annotate_kind(row->id) <= ANNOTATE_ABOVE;

	return l && has && row->index < l->nr_insns ? &l->insns[row->index] : NULL;
}

bool annotate_source(const struct ui_state *st, const struct row *row, uint32_t *file,
		     uint32_t *line)
{
	const struct listing *l = annotate_listing(st);
	const struct listing_insn *insn = insn_of(st, row);

	*file = insn ? insn->file : row->index;
	*line = insn ? insn->line : (uint32_t)row->id;
	if (annotate_kind(row->id) == ANNOTATE_POINT || !l)
		return false;
	return *file < l->nr_files && (*line || annotate_kind(row->id) == ANNOTATE_FILE);
}

static bool is_script(const struct ui_state *st)
{
	const struct listing *l = annotate_listing(st);

	return l && l->script;
}

/* Return the text of a source line; "": unknown. */
static const char *source_text(const struct listing *l, uint32_t file, uint32_t line)
{
	const struct listing_file *f = file < l->nr_files ? &l->files[file] : NULL;

	if (!f || line < f->first || line - f->first >= f->nr_lines)
		return "";
	return listing_text(l, l->lines[f->lines + line - f->first]);
}

static const char *base_name(const struct listing *l, uint32_t file)
{
	const char *path = listing_text(l, l->files[file].path), *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- columns ---- */

static int by_share(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(a->self, b->self);
}

/* In order of address, the source above its instruction; or of file and line. */
static int by_address(const struct ui_state *st, const struct row *a, const struct row *b)
{
	uint64_t x = annotate_low(a->id), y = annotate_low(b->id);

	if (x != y)
		return x < y ? -1 : 1;
	return (a->id < b->id) - (a->id > b->id);
}

static enum theme_role heat(double share)
{
	return share >= 0.10 ? ROLE_BAR_HOT : share >= 0.03 ? ROLE_BAR_WARM : ROLE_BAR;
}

static void draw_share(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	if (row->count > 0)
		view_draw_percent(c, at, row->self);
}

/* With its callees: of source lines alone. */
static void draw_total(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	if (row->other[0] > 0)
		view_draw_percent(c, at, row->other[0]);
}

static int by_total(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(a->other[0], b->other[0]);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	double share = is_script(st) ? row->other[0] : row->self;

	if (share > 0)
		view_draw_bar(st, c, at, share, heat(share));
}

static void draw_samples(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	char buf[FORMAT_MAX];

	if (row->count > 0)
		canvas_right(c, at.row, at.col, at.cols, format_count(buf, row->count),
			     (struct style){ ROLE_NORMAL, 0 });
}

/* "+0x1f" of an instruction, the number of a line of source. */
static void draw_offset(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	enum annotate_kind kind = annotate_kind(row->id);
	uint32_t file, line;
	char buf[24];

	if (kind == ANNOTATE_POINT && is_script(st))
		canvas_right(c, at.row, at.col, at.cols,
			     text_format(buf, sizeof(buf), "%" PRIu64, annotate_low(row->id)),
			     (struct style){ ROLE_TITLE, 0 });
	else if (kind == ANNOTATE_INSN || kind == ANNOTATE_POINT)
		canvas_right(c, at.row, at.col, at.cols,
			     text_format(buf, sizeof(buf), "+0x%" PRIx64, annotate_low(row->id)),
			     (struct style){ ROLE_DIM, 0 });
	else if (annotate_source(st, row, &file, &line) && line)
		canvas_right(c, at.row, at.col, at.cols, text_format(buf, sizeof(buf), "%u", line),
			     (struct style){ ROLE_TITLE, 0 });
}

static void draw_address(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	enum annotate_kind kind = annotate_kind(row->id);
	const struct listing *l = annotate_listing(st);
	char buf[24];

	if (l && !l->script && (kind == ANNOTATE_INSN || kind == ANNOTATE_POINT))
		canvas_right(c, at.row, at.col, at.cols,
			     text_format(buf, sizeof(buf), "%" PRIx64,
					 l->vaddr + annotate_low(row->id)),
			     (struct style){ ROLE_DIM, 0 });
}

/* ---- the column of texts ---- */

bool annotate_in_order(const struct ui_state *st)
{
	return view_annotate.columns[st->lists[VIEW_ANNOTATE].sort].compare == by_address;
}

static unsigned int nr_lanes(const struct ui_state *st, const struct canvas *c)
{
	if (!st->annotate.arrows || !st->annotate.arrows->nr || !annotate_in_order(st))
		return 0;
	return c->cols >= 100 ? ARROW_LANES : c->cols >= 60 ? 2 : 0;
}

/* Return whether the cell is part of the selected jump's arrow. */
static bool is_chosen(const struct ui_state *st, uint32_t i, unsigned int lane)
{
	const struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct listing_insn *insn = row ? insn_of(st, row) : NULL;
	uint32_t low, high;

	if (!insn || insn->target == LISTING_NONE || st->annotate.arrows->lane[row->index] != lane)
		return false;
	low = MIN(row->index, insn->target);
	high = MAX(row->index, insn->target);
	return i >= low && i <= high;
}

static struct safe_text lane_glyph(const struct glyphs *g, uint8_t cell, bool above_only)
{
	if (above_only)
		return cell & ARROW_ABOVE ? g->vline : TEXT(" ");
	if (!(cell & (ARROW_FROM | ARROW_TO)))
		return cell ? g->vline : TEXT(" ");
	return cell & ARROW_ABOVE ? cell & ARROW_BELOW ? g->tee : g->bottom_left : g->top_left;
}

/* Draw the lanes beside instruction @i, the outermost first; then the arrow head. */
static unsigned int draw_lanes(const struct ui_state *st, struct canvas *c, struct view_field at,
			       uint32_t i, bool above_only)
{
	const struct arrows *a = st->annotate.arrows;
	unsigned int nr = nr_lanes(st, c);
	bool pointed = false;
	struct style line = { ROLE_FRAME, 0 };

	for (unsigned int n = 0; n < nr; n++) {
		unsigned int lane = nr - 1 - n;
		uint8_t cell = a->cells[i][lane];
		bool ends = !above_only && cell & (ARROW_FROM | ARROW_TO);

		if (cell || !pointed)
			line.role = is_chosen(st, i, lane) ? ROLE_VALUE : ROLE_FRAME;
		canvas_text(c, at.row, at.col + n, 1,
			    cell || !pointed ? lane_glyph(st->glyphs, cell, above_only)
					     : st->glyphs->hline,
			    line);
		pointed |= ends;
		if (ends)
			canvas_text(c, at.row, at.col + nr, 1,
				    cell & ARROW_TO ? st->glyphs->right : st->glyphs->hline, line);
	}
	return nr;
}

/* A jump without an arrow: up or down. */
static void draw_sign(const struct ui_state *st, const struct listing_insn *insn, struct canvas *c,
		      struct view_field at, const struct row *row, unsigned int lanes)
{
	uint8_t lane = st->annotate.arrows && row->index < st->annotate.arrows->nr
			       ? st->annotate.arrows->lane[row->index]
			       : ARROW_NONE;

	if (insn->target != LISTING_NONE && lane >= lanes)
		canvas_text(c, at.row, at.col + lanes, 1,
			    insn->target > row->index ? st->glyphs->down : st->glyphs->up,
			    (struct style){ ROLE_FRAME, 0 });
}

/* Return the text of a row, in @buf if need be. */
static struct safe_text row_text(const struct ui_state *st, const struct row *row, char *buf,
				 size_t size)
{
	const struct listing *l = annotate_listing(st);
	const struct listing_insn *insn = insn_of(st, row);
	uint32_t file, line;

	if (l && insn && annotate_kind(row->id) == ANNOTATE_INSN)
		return ui_state_clean(buf, size, listing_text(l, insn->text));
	if (!l || !annotate_source(st, row, &file, &line))
		return TEXT("");
	if (line && l->files[file].nr_lines)
		return ui_state_clean(buf, size, source_text(l, file, line));
	if (line)
		return text_format(buf, size, "(%s:%u)", base_name(l, file), line);
	return text_format(buf, size, "%s%s%s", listing_text(l, l->files[file].path),
			   l->files[file].why ? ": " : "",
			   l->files[file].why ? l->files[file].why : "");
}

static struct style row_style(const struct ui_state *st, const struct row *row,
			      struct safe_text text)
{
	const struct match *search = &st->lists[VIEW_ANNOTATE].search;
	const struct listing_insn *insn = insn_of(st, row);
	struct style style = { ROLE_NORMAL, 0 };

	if (annotate_kind(row->id) == ANNOTATE_INSN && insn)
		style.role = insn->call ? ROLE_JIT : insn->jump ? ROLE_TITLE : ROLE_NORMAL;
	else if (annotate_kind(row->id) == ANNOTATE_FILE)
		style.role = ROLE_DIM;
	else
		style.role = annotate_shown(st) == ANNOTATE_BOTH ? ROLE_VALUE : ROLE_NORMAL;
	if (match_active(search) && match_finds(search, text) && text.size)
		style.flags |= CELL_UNDERLINE;
	return style;
}

static void draw_text(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	enum annotate_kind kind = annotate_kind(row->id);
	const struct listing_insn *insn = insn_of(st, row);
	unsigned int lanes = 0, used = 0;
	char buf[1024];
	struct safe_text text = row_text(st, row, buf, sizeof(buf));

	if (insn) {
		lanes = draw_lanes(st, c, at, row->index, kind == ANNOTATE_ABOVE);
		if (kind == ANNOTATE_INSN)
			draw_sign(st, insn, c, at, row, lanes);
		/* Source starts left of its instructions, as in objdump. */
		used = lanes + (kind == ANNOTATE_INSN || lanes ? 2 : 0);
	}
	if (at.cols > used)
		canvas_elide(c, at.row, at.col + used, at.cols - used, text_skip(text, st->scroll),
			     row_style(st, row, text));
}

enum { SHARE, TOTAL, BAR, SAMPLES, ADDRESS, OFFSET = VIEW_ANNOTATE_BY_OFFSET, CODE };

static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("SELF%"),
		    .help = "share of the function's samples; of source lines: without calls",
		    .width = 7,
		    .right = true,
		    .compare = by_share,
		    .draw = draw_share },
	[TOTAL] = { .title = TEXT("TOTAL%"),
		    .help = "of source lines: share of the function's samples, calls included",
		    .width = 7,
		    .right = true,
		    .when = is_script,
		    .compare = by_total,
		    .draw = draw_total },
	[BAR] = { .title = TEXT(""), .width = 6, .wide = 12, .from = 60, .draw = draw_bar },
	[SAMPLES] = { .title = TEXT("SAMPLES"),
		      .width = 8,
		      .from = 90,
		      .right = true,
		      .compare = by_share,
		      .draw = draw_samples },
	[ADDRESS] = { .title = TEXT("ADDRESS"),
		      .help = "as in the object",
		      .width = 16,
		      .from = 120,
		      .right = true,
		      .ascending = true,
		      .one_way = true,
		      .compare = by_address,
		      .draw = draw_address },
	[OFFSET] = { .title = TEXT("OFFSET"),
		     .help = "offset in the function; of source, the line number",
		     .width = 8,
		     .right = true,
		     .ascending = true,
		     .one_way = true,
		     .compare = by_address,
		     .draw = draw_offset },
	[CODE] = { .title = TEXT("CODE"), .draw = draw_text },
};

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	char buf[1024];

	return match_finds(m, row_text(st, row, buf, sizeof(buf)));
}

/* ---- the lines below the rows ---- */

static void foot_source(const struct ui_state *st, const struct listing *l, const struct row *row,
			struct foot *f)
{
	uint32_t file, line;
	char buf[640];

	if (!row || !annotate_source(st, row, &file, &line)) {
		if (l->no_source && annotate_shown(st) != ANNOTATE_ASSEMBLY)
			foot_line(f, TEXT("Source"),
				  ui_state_clean(buf, sizeof(buf), l->no_source));
		return;
	}
	foot_line(f, TEXT("Source"),
		  text_format(buf, sizeof(buf), "%s:%u%s%s%s", listing_text(l, l->files[file].path),
			      line, l->files[file].why ? ": " : "",
			      l->files[file].why ? l->files[file].why : "",
			      !l->files[file].newer ? ""
			      : l->script ? "  (changed since its process started: lines may not "
					    "fit)"
					  : "  (newer than the program: lines may not fit)"));
}

static void foot_code(const struct listing *l, struct foot *f)
{
	if (l->why)
		foot_text(f, TEXT("Code"), l->why);
	if (l->why && l->fix)
		foot_text(f, TEXT("Fix"), l->fix);
	if (!l->why && l->origin)
		foot_text(f, TEXT("Code"), l->origin);
}

/* Describe the processes of the counted samples, in @buf if need be. */
static const char *counted_text(const struct ui_state *st, char *buf, size_t size)
{
	bool cgroups = match_active(&st->scope.cgroup);
	char name[64];

	if (st->scope.drilled)
		return st->scope.process_name;
	if (!st->scope.by_user)
		return cgroups ? "the cgroups that are shown" : "all processes";
	snprintf(buf, size, "user %s%s",
		 users_name(st->config->users, st->scope.uid, name, sizeof(name)).str,
		 cgroups ? " in the cgroups that are shown" : "");
	return buf;
}

static void foot_samples(const struct ui_state *st, const struct listing *l, struct foot *f)
{
	static const char *const modes[] = { "source, assembly", "source", "assembly" };
	char buf[400], n[FORMAT_MAX], text[128];
	const char *counted = counted_text(st, text, sizeof(text));

	format_count(n, st->lists[VIEW_ANNOTATE].count);
	if (l->script)
		text_format(buf, sizeof(buf), "%s in the function itself, of %s; %u lines", n,
			    counted, l->nr_insns);
	else
		text_format(buf, sizeof(buf), "%s here, of %s; %" PRIu64 " bytes%s; showing %s (s)",
			    n, counted, l->size,
			    l->nr_insns && l->nr_bytes < l->size ? ", cut" : "",
			    l->nr_files ? modes[st->annotate.mode] : modes[ANNOTATE_ASSEMBLY]);
	foot_line(f, TEXT("Samples"), ui_state_clean((char[400]){ 0 }, 400, buf));
}

static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile_annotate *a = annotate_of(st);
	const struct listing *l = a ? a->listing : NULL;
	char buf[400];

	foot_text(f, TEXT("Function"), st->annotate.name);
	if (a && *a->inside)
		foot_line(f, TEXT("Inlined"),
			  text_format(buf, sizeof(buf),
				      "its part of %s, where %.0f%% of its samples are", a->inside,
				      100 * a->inside_share));
	if (a && a->why)
		foot_text(f, TEXT("Code"), a->why);
	if (!l) {
		if (!a || !a->why)
			foot_line(f, TEXT("Code"), TEXT("is being read"));
		return f->used;
	}
	foot_source(st, l, row, f);
	foot_code(l, f);
	foot_samples(st, l, f);
	return f->used;
}

static bool act(struct ui_state *st, enum action action, uint32_t code)
{
	switch (action) {
	case ACT_OPEN:
		view_annotate_follow(st);
		return true;
	case ACT_NEXT_VIEW:
	case ACT_PREVIOUS_VIEW:
		view_annotate_hottest(st, action == ACT_PREVIOUS_VIEW);
		return true;
	case ACT_ANNOTATE:
		return true;
	case ACT_BACK:
		view_annotate_close(st);
		return true;
	case ACT_DELAY:
		/* Only by its key: the command is still about the delay. */
		if (code == K_ENTER)
			return false;
		view_annotate_mode(st, (enum annotate_mode)((st->annotate.mode + 1) %
							    ANNOTATE_NR_MODES));
		return true;
	default:
		return false;
	}
}

/* All rows are of the annotated function. */
static uint32_t function(const struct ui_state *st, const struct row *row)
{
	return folds_function(st->shown, st->annotate.function);
}

static const char *copied(const struct ui_state *st, const struct row *row,
			  char buf[static TEXT_MAX])
{
	return st->annotate.name;
}

static const struct view_label labels[] = {
	{ ACT_OPEN, "Follow" },
	{ ACT_NEXT_VIEW, "Hottest" },
	{ ACT_DELAY, "Source" },
	{ ACT_NONE, NULL },
};

const struct view view_annotate = {
	.title = TEXT("Annotate"),
	.context = CTX_LIST,
	.scoped = true,
	.newest = true,
	.labels = labels,
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ SHARE, SHARE, VIEW_NO_COLUMN },
	.build = annotate_rows_build,
	.finds = finds,
	.foot = foot,
	.act = act,
	.function = function,
	.copied = copied,
	.empty = TEXT("no code to show yet"),
};

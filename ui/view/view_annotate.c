// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One function by instruction and source line: the view, its rows, its keys.
 *
 * Runs on: the main thread.
 *
 * One function: its instructions, its source, or both. The main thread; reads the state, and keeps
 * the arrows of the code in st->annotate.
 *
 * A row's identity is its offset in the function, or its file and line: the cursor keeps its
 * instruction in every order.
 */
#include "ui/view/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

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

/* Return the offset of an instruction; a part of the function may be before it. */
static inline int64_t annotate_offset(uint64_t id)
{
	return (int64_t)(id << (64 - ANNOTATE_SHIFT)) >> (64 - ANNOTATE_SHIFT);
}

/* The column that sorts by address. */
#define VIEW_ANNOTATE_BY_OFFSET 5

/* Return the profile with the annotated function; NULL: none yet. */
static const struct profile *annotate_profile(const struct ui_state *st)
{
	const struct profile *p = st->shown;

	/* Requested after the rows were frozen: in the newest profile. */
	if (!p || !p->annotate || p->annotate->function != st->annotate.function)
		p = st->latest;
	return p && p->annotate && p->annotate->function == st->annotate.function ? p : NULL;
}

/* Return the data of the annotated function; NULL: none yet. */
static const struct profile_annotate *annotate_of(const struct ui_state *st)
{
	const struct profile *p = annotate_profile(st);

	return p ? p->annotate : NULL;
}

/* Return the mode in effect: a script has no instructions. */
static enum annotate_mode annotate_shown(const struct ui_state *st)
{
	const struct listing *l = view_annotate_listing(st);

	return l && l->script ? ANNOTATE_SOURCE : st->annotate.mode;
}

const struct listing *view_annotate_listing(const struct ui_state *st)
{
	const struct profile_annotate *a = annotate_of(st);

	return a ? a->listing : NULL;
}

static const struct listing_insn *insn_of(const struct ui_state *st, const struct row *row)
{
	const struct listing *l = view_annotate_listing(st);
	bool has = annotate_kind(row->id) <= ANNOTATE_ABOVE;

	return l && has && row->index < l->nr_insns ? &l->insns[row->index] : NULL;
}

bool view_annotate_source(const struct ui_state *st, const struct row *row, uint32_t *file,
			  uint32_t *line)
{
	const struct listing *l = view_annotate_listing(st);
	const struct listing_insn *insn = insn_of(st, row);

	*file = insn ? insn->file : row->index;
	*line = insn ? insn->line : (uint32_t)row->id;
	if (annotate_kind(row->id) == ANNOTATE_POINT || !l)
		return false;
	return *file < l->nr_files && (*line || annotate_kind(row->id) == ANNOTATE_FILE);
}

static bool is_script(const struct ui_state *st)
{
	const struct listing *l = view_annotate_listing(st);

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

	assert(file < l->nr_files);
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
			     text_format(buf, sizeof(buf), "%c0x%" PRIx64,
					 annotate_offset(row->id) < 0 ? '-' : '+',
					 (uint64_t)llabs(annotate_offset(row->id))),
			     (struct style){ ROLE_DIM, 0 });
	else if (view_annotate_source(st, row, &file, &line) && line)
		canvas_right(c, at.row, at.col, at.cols, text_format(buf, sizeof(buf), "%u", line),
			     (struct style){ ROLE_TITLE, 0 });
}

static void draw_address(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	enum annotate_kind kind = annotate_kind(row->id);
	const struct listing *l = view_annotate_listing(st);
	char buf[24];

	if (l && !l->script && (kind == ANNOTATE_INSN || kind == ANNOTATE_POINT))
		canvas_right(c, at.row, at.col, at.cols,
			     text_format(buf, sizeof(buf), "%" PRIx64,
					 l->vaddr + (uint64_t)annotate_offset(row->id)),
			     (struct style){ ROLE_DIM, 0 });
}

/*
 * Layout of the arrows of jumps: short ones inside long ones, none crossing another. Short jumps
 * take the lanes next to the instructions. Jumps longer than any screen, or without a free lane,
 * get a sign instead.
 */

#define ARROW_LANES 4u /* 0 is next to the instructions */
#define ARROW_NONE  UINT8_MAX

enum arrow_cell {
	ARROW_ABOVE = 1, /* goes on to the instruction above */
	ARROW_BELOW = 2,
	ARROW_FROM = 4, /* the jump is here */
	ARROW_TO = 8,	/* the target of the jump */
};

struct arrows {
	const struct listing *of; /* borrowed, only compared */
	uint32_t nr;
	uint8_t (*cells)[ARROW_LANES]; /* by instruction: enum arrow_cell */
	uint8_t *lane;		       /* of the jump in an instruction; ARROW_NONE */
};

#define JUMP_MAX 250u

struct jump {
	uint32_t from, to, length;
};

static int by_length(const void *pa, const void *pb)
{
	const struct jump *a = pa, *b = pb;

	if (a->length != b->length)
		return a->length < b->length ? -1 : 1;
	return COMPARE(a->from, b->from);
}

/* Collect all jumps short enough to be seen whole; malloc'ed. */
static struct jump *collect(const struct listing *l, uint32_t *nr)
{
	struct jump *jumps = calloc(l->nr_insns + 1ULL, sizeof(*jumps));

	*nr = 0;
	for (uint32_t i = 0; jumps && i < l->nr_insns; i++) {
		uint32_t to = l->insns[i].target;
		uint32_t length = to > i ? to - i : i - to;

		if (to < l->nr_insns && length && length <= JUMP_MAX)
			jumps[(*nr)++] = (struct jump){ i, to, length };
	}
	if (jumps)
		qsort(jumps, *nr, sizeof(*jumps), by_length);
	return jumps;
}

static bool is_free(const struct arrows *a, uint32_t low, uint32_t high, unsigned int lane)
{
	assert(low <= high && high < a->nr && lane < ARROW_LANES);
	for (uint32_t i = low; i <= high; i++)
		if (a->cells[i][lane])
			return false;
	return true;
}

static void lay(struct arrows *a, const struct jump *j)
{
	uint32_t low = MIN(j->from, j->to), high = MAX(j->from, j->to);
	unsigned int lane = 0;

	while (lane < ARROW_LANES && !is_free(a, low, high, lane))
		lane++;
	if (lane == ARROW_LANES)
		return;
	a->lane[j->from] = (uint8_t)lane;
	for (uint32_t i = low; i <= high; i++)
		a->cells[i][lane] |= (i > low ? ARROW_ABOVE : 0) | (i < high ? ARROW_BELOW : 0);
	a->cells[j->from][lane] |= ARROW_FROM;
	a->cells[j->to][lane] |= ARROW_TO;
}

/* Lay out the arrows of @l, unless that is done. Return 0 or -ENOMEM (then there are none). */
static int arrows_update(struct arrows *a, const struct listing *l)
{
	struct jump *jumps;
	uint32_t nr;

	if (a->of == l && a->nr == l->nr_insns)
		return 0;
	arrows_fini(a);
	a->of = l;
	jumps = collect(l, &nr);
	a->cells = calloc(l->nr_insns + 1ULL, sizeof(*a->cells));
	a->lane = malloc(l->nr_insns + 1ULL);
	if (!jumps || !a->cells || !a->lane) {
		free(jumps);
		arrows_fini(a);
		return -ENOMEM;
	}
	a->nr = l->nr_insns;
	memset(a->lane, ARROW_NONE, l->nr_insns + 1ULL);
	for (uint32_t i = 0; i < nr; i++)
		lay(a, &jumps[i]);
	free(jumps);
	return 0;
}

void arrows_fini(struct arrows *a)
{
	free(a->cells);
	free(a->lane);
	*a = (struct arrows){ .nr = 0 };
}

/* ---- the column of texts ---- */

/* Return whether rows are sorted by address. */
static bool annotate_in_order(const struct ui_state *st)
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
	const struct listing *l = view_annotate_listing(st);
	const struct listing_insn *insn = insn_of(st, row);
	uint32_t file, line;

	if (l && insn && annotate_kind(row->id) == ANNOTATE_INSN)
		return ui_state_clean(buf, size, listing_text(l, insn->text));
	if (!l || !view_annotate_source(st, row, &file, &line))
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

	if (!row || !view_annotate_source(st, row, &file, &line)) {
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
	if (l->fix)
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

static void view_annotate_close(struct ui_state *st);
static void view_annotate_follow(struct ui_state *st);
static void view_annotate_hottest(struct ui_state *st, bool back);
static void view_annotate_mode(struct ui_state *st, enum annotate_mode mode);

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

static int annotate_rows_build(const struct ui_state *st, struct list *list);

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

/*
 * Keys in the annotate view. Runs on: the main thread.
 */

/* Show another function; the cursor goes to its hottest row. */
static void show(struct ui_state *st, uint32_t function, const char *name)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	if (!st->annotate.arrows)
		st->annotate.arrows = xcalloc(1, sizeof(*st->annotate.arrows));
	st->annotate.function = function;
	ui_state_clean(st->annotate.name, sizeof(st->annotate.name), name);
	list->pinned = false;
	list->top = 0;
	st->annotate.hottest = true;
	sampler_set_annotate(st->sampler, function);
	navigate_to(st, VIEW_ANNOTATE);
}

void view_annotate_open(struct ui_state *st, uint32_t function, const char *name)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	if (st->view != VIEW_ANNOTATE)
		st->annotate.from = st->view;
	st->annotate.nr_back = 0;
	list->sort = VIEW_ANNOTATE_BY_OFFSET;
	list->inverted = false;
	show(st, function, name);
}

/* Enter the called function; Esc leads back. */
static void enter(struct ui_state *st, uint32_t function, const char *name)
{
	const struct list *list = &st->lists[VIEW_ANNOTATE];
	struct annotate_level *level;

	if (st->annotate.nr_back == ANNOTATE_LEVELS) {
		memmove(st->annotate.back, st->annotate.back + 1,
			(ANNOTATE_LEVELS - 1) * sizeof(*st->annotate.back));
		st->annotate.nr_back--;
	}
	assert(st->annotate.nr_back < ANNOTATE_LEVELS);
	level = &st->annotate.back[st->annotate.nr_back++];
	level->function = st->annotate.function;
	level->selected = list->selected;
	memcpy(level->name, st->annotate.name, sizeof(level->name));
	show(st, function, name);
}

/* Go back to the caller, or to the view it was opened from. */
static void view_annotate_close(struct ui_state *st)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct annotate_level *level;

	if (!st->annotate.nr_back) {
		navigate_to(st, st->annotate.from);
		return;
	}
	level = &st->annotate.back[--st->annotate.nr_back];
	show(st, level->function, level->name);
	st->annotate.hottest = false;
	list->selected = level->selected;
	list->pinned = true;
}

/* Move the cursor to instruction @index. Return false if it is hidden. */
static bool go_to(struct ui_state *st, uint32_t index)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];

	for (uint32_t i = 0; i < list->nr; i++)
		if (annotate_kind(list->rows[i].id) == ANNOTATE_INSN &&
		    list->rows[i].index == index) {
			table_move_to(st, i);
			return true;
		}
	return false;
}

/* Move from a source line to its hottest instruction. */
static void open_line(struct ui_state *st, const struct row *row)
{
	const struct listing *l = view_annotate_listing(st);
	struct list *list = &st->lists[VIEW_ANNOTATE];
	uint32_t file, line, best = UINT32_MAX;

	if (!l || !view_annotate_source(st, row, &file, &line))
		return;
	if (l->script) {
		ui_state_say(st, false, "source only: no instructions (O: editor)");
		return;
	}
	if (annotate_shown(st) == ANNOTATE_SOURCE)
		view_annotate_mode(st, ANNOTATE_BOTH);
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *at = &list->rows[i];

		if (annotate_kind(at->id) == ANNOTATE_INSN && l->insns[at->index].file == file &&
		    l->insns[at->index].line == line &&
		    (best == UINT32_MAX || at->self > list->rows[best].self))
			best = i;
	}
	if (best != UINT32_MAX)
		table_move_to(st, best);
	else
		ui_state_say(st, false, "no instructions for this line");
}

/* Follow a jump or call; of a source line, go to its instructions. */
static void view_annotate_follow(struct ui_state *st)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	const struct listing *l = view_annotate_listing(st);
	const struct listing_insn *insn;
	const char *name;

	if (!row || !l || annotate_kind(row->id) == ANNOTATE_POINT)
		return;
	if (annotate_kind(row->id) != ANNOTATE_INSN) {
		open_line(st, row);
		return;
	}
	insn = &l->insns[row->index];
	if (insn->target != LISTING_NONE) {
		if (!go_to(st, insn->target))
			ui_state_say(st, false, "the target of the jump is hidden by the filter");
	} else if (insn->callee != LISTING_NONE) {
		name = strchr(listing_text(l, insn->text), ' ');
		enter(st, insn->callee, name ? name + strspn(name, " ") : "?");
	} else if (insn->call || insn->jump) {
		ui_state_say(st, false,
			     "indirect: target known at run time only (b shows callees)");
	} else {
		ui_state_say(st, false, "not a jump or call: nothing to follow");
	}
}

/* Return whether @a is hotter than @b. Lines of a script without own samples by total; ties by id.
 */
static bool hotter(const struct row *a, const struct row *b)
{
	if (a->self != b->self)
		return a->self > b->self;
	return a->other[0] > b->other[0] || (a->other[0] == b->other[0] && a->id < b->id);
}

/*
 * Select the next hottest row, or the previous one.
 * Start at the cursor; after the coldest row, the hottest again.
 */
static void view_annotate_hottest(struct ui_state *st, bool back)
{
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *at = list->pinned && list->cursor < list->nr ? &list->rows[list->cursor]
								       : NULL;
	uint32_t best = UINT32_MAX, first = UINT32_MAX;

	for (uint32_t i = 0; i < list->nr; i++) {
		const struct row *row = &list->rows[i];

		if (row->count <= 0 && row->other[0] <= 0)
			continue;
		if (first == UINT32_MAX || hotter(row, &list->rows[first]) != back)
			first = i;
		if (!at || (back ? !hotter(row, at) : !hotter(at, row)) || row == at)
			continue;
		if (best == UINT32_MAX || hotter(row, &list->rows[best]) != back)
			best = i;
	}
	if (best == UINT32_MAX)
		best = first;
	if (best != UINT32_MAX)
		table_move_to(st, best);
}

/* Set the mode: source and assembly, source, assembly. */
static void view_annotate_mode(struct ui_state *st, enum annotate_mode mode)
{
	static const char *const said[ANNOTATE_NR_MODES] = {
		[ANNOTATE_BOTH] = "source and assembly",
		[ANNOTATE_SOURCE] = "source only: samples by line",
		[ANNOTATE_ASSEMBLY] = "assembly only",
	};
	const struct listing *l = view_annotate_listing(st);
	struct list *list = &st->lists[VIEW_ANNOTATE];
	const struct row *row = list->cursor < list->nr ? &list->rows[list->cursor] : NULL;
	uint32_t file, line;
	bool known = row && view_annotate_source(st, row, &file, &line);

	assert((unsigned int)mode < ARRAY_SIZE(said));
	if (l && l->script) {
		ui_state_say(st, false, "source only: no instructions (O: editor)");
		return;
	}
	if (l && !l->nr_files) {
		ui_state_say(st, false, "only assembly: %s",
			     l->no_source ? l->no_source
			     : l->why	  ? l->why
					  : "no line information");
		return;
	}
	/* Keep the cursor on its line or instruction. */
	if (known && mode == ANNOTATE_SOURCE)
		list->selected = (uint64_t)ANNOTATE_LINE << ANNOTATE_SHIFT | (uint64_t)file << 32 |
				 line;
	if (known && mode == ANNOTATE_ASSEMBLY && annotate_kind(row->id) == ANNOTATE_ABOVE)
		list->selected = row->id & ((1ULL << ANNOTATE_SHIFT) - 1);
	st->annotate.mode = mode;
	table_rebuild(st, VIEW_ANNOTATE);
	if (known && st->view == VIEW_ANNOTATE && annotate_kind(list->selected) == ANNOTATE_LINE &&
	    mode != ANNOTATE_SOURCE && list->nr)
		open_line(st, &(struct row){ .id = list->selected, .index = file });
	else if (list->nr && list->pinned)
		table_move_to(st, list->cursor);
	ui_state_say(st, false, "%s", said[mode]);
}

void view_annotate_arrived(struct ui_state *st)
{
	if (st->view != VIEW_ANNOTATE || !st->annotate.hottest || !st->lists[VIEW_ANNOTATE].nr)
		return;
	st->annotate.hottest = false;
	view_annotate_hottest(st, false);
}

/*
 * The rows of an annotated function: instructions and source lines. The main
 * thread; reads the state.
 */

#define GAP_MAX 6u /* lines without code that are shown between lines with it */

static struct row *add_row(struct list *list, enum annotate_kind kind, uint64_t low, uint32_t index)
{
	struct row *row = list_add(list);

	if (!row)
		return NULL;
	row->id = (uint64_t)kind << ANNOTATE_SHIFT | annotate_low(low);
	row->index = index;
	/* The limit concerns shares of all samples, not of one function. */
	row->total = 1;
	return row;
}

/* Count samples of the process or thread drilled into, as in other views. */
struct seen {
	bool all;
	uint32_t *tasks; /* ids, in order; owned */
	uint32_t nr;
};

static int by_task(const void *pa, const void *pb)
{
	return COMPARE(*(const uint32_t *)pa, *(const uint32_t *)pb);
}

static int seen_make(struct seen *seen, const struct ui_state *st)
{
	const struct profile *p = st->shown;
	struct fold_filter filter;
	bool any = folds_filter(st, &filter);

	*seen = (struct seen){ .all = any && filter.process == UINT32_MAX &&
				      filter.task == UINT32_MAX && !filter.tasks };
	if (seen->all || !any)
		return 0;
	seen->tasks = malloc((p->nr_tasks + 1ULL) * sizeof(*seen->tasks));
	if (!seen->tasks)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		if (fold_passes_task(p, &filter, i))
			seen->tasks[seen->nr++] = p->tasks[i].id;
	qsort(seen->tasks, seen->nr, sizeof(*seen->tasks), by_task);
	return 0;
}

static bool counts(const struct seen *seen, const struct profile_point *pt, uint32_t event)
{
	return pt->event == event &&
	       (seen->all || (seen->nr && bsearch(&pt->task, seen->tasks, seen->nr,
						  sizeof(*seen->tasks), by_task)));
}

/*
 * Sum the samples of the shown event by instruction or line. Shares are of all samples with the
 * function on the stack, so that the share of a line itself is part of the line's total.
 */
static void add_points(const struct profile_annotate *a, const struct seen *seen, uint32_t event,
		       struct row *insns, struct list *list)
{
	double total = 0;

	for (uint32_t i = 0; i < a->nr_points; i++) {
		const struct profile_point *pt = &a->points[i];
		uint32_t at;

		if (!counts(seen, pt, event))
			continue;
		total += pt->total;
		list->count += pt->count;
		at = listing_at(a->listing, pt->vaddr);
		if (at == LISTING_NONE)
			continue;
		insns[at].count += pt->count;
		insns[at].self += pt->weight;
		insns[at].other[0] += (float)pt->total;
	}
	for (uint32_t i = 0; i < a->listing->nr_insns; i++) {
		insns[i].self /= total > 0 ? total : 1;
		insns[i].other[0] /= total > 0 ? (float)total : 1;
	}
}

/* Add the instructions, each below its source line if that changes. */
static int add_insns(const struct ui_state *st, const struct listing *l, const struct row *insns,
		     struct list *list)
{
	bool source = annotate_shown(st) == ANNOTATE_BOTH && annotate_in_order(st);
	uint32_t file = LISTING_NONE, line = 0;

	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];
		uint64_t offset = insn->vaddr - l->vaddr;
		struct row *row;

		if (source && insn->line && (insn->file != file || insn->line != line)) {
			if (!add_row(list, ANNOTATE_ABOVE, offset, i))
				return -ENOMEM;
			file = insn->file;
			line = insn->line;
		}
		row = add_row(list, ANNOTATE_INSN, offset, i);
		if (!row)
			return -ENOMEM;
		row->self = insns[i].self;
		row->count = insns[i].count;
	}
	return 0;
}

static int by_id(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	return COMPARE(a->id, b->id);
}

/* Add a source line, and the lines without code before it. */
static int add_line(const struct ui_state *st, const struct listing *l, const struct row *line,
		    struct list *list)
{
	const struct row *last = list->nr ? &list->rows[list->nr - 1] : NULL;
	uint64_t id = line->id;
	struct row *row;

	if (last && last->id == id) {
		row = &list->rows[list->nr - 1];
		row->self += line->self;
		row->other[0] += line->other[0];
		row->count += line->count;
		return 0;
	}
	if (!last || last->index != line->index) {
		if (!add_row(list, ANNOTATE_FILE, (uint64_t)line->index << 32, line->index))
			return -ENOMEM;
	} else if (annotate_in_order(st) && id - last->id <= GAP_MAX &&
		   l->files[line->index].nr_lines) {
		for (uint64_t between = last->id + 1; between < id; between++)
			if (!add_row(list, ANNOTATE_LINE, annotate_low(between), line->index))
				return -ENOMEM;
	}
	row = add_row(list, ANNOTATE_LINE, annotate_low(id), line->index);
	if (!row)
		return -ENOMEM;
	row->self = line->self;
	row->other[0] = line->other[0];
	row->count = line->count;
	return 0;
}

/* Add the source lines, file by file. */
static int add_lines(const struct ui_state *st, const struct listing *l, struct row *insns,
		     struct list *list)
{
	uint32_t nr = 0;
	int rc = 0;

	for (uint32_t i = 0; i < l->nr_insns; i++) {
		const struct listing_insn *insn = &l->insns[i];

		if (insn->file >= l->nr_files || !insn->line)
			continue;
		insns[nr] = insns[i];
		insns[nr].id = (uint64_t)ANNOTATE_LINE << ANNOTATE_SHIFT |
			       (uint64_t)insn->file << 32 | insn->line;
		insns[nr++].index = insn->file;
	}
	qsort(insns, nr, sizeof(*insns), by_id);
	for (uint32_t i = 0; i < nr && !rc; i++)
		rc = add_line(st, l, &insns[i], list);
	return rc;
}

/* Add rows by address: the code is unknown. */
static int add_bare_points(const struct profile_annotate *a, const struct seen *seen,
			   uint32_t event, struct list *list)
{
	double total = 0;

	for (uint32_t i = 0; i < a->nr_points; i++) {
		const struct profile_point *pt = &a->points[i];
		struct row *row = list->nr ? &list->rows[list->nr - 1] : NULL;

		if (!counts(seen, pt, event))
			continue;
		/* Samples of several threads at one address are adjacent. */
		if (!row || a->points[row->index].vaddr != pt->vaddr)
			row = add_row(list, ANNOTATE_POINT, pt->vaddr - a->listing->vaddr, i);
		if (!row)
			return -ENOMEM;
		row->self += pt->weight;
		row->other[0] += (float)pt->total;
		row->count += pt->count;
		total += pt->total;
		list->count += pt->count;
	}
	for (uint32_t i = 0; i < list->nr; i++) {
		list->rows[i].self /= total > 0 ? total : 1;
		list->rows[i].other[0] /= total > 0 ? (float)total : 1;
	}
	return 0;
}

/* Add rows by instruction or line: the code is known. */
static int add_code(const struct ui_state *st, const struct profile_annotate *a,
		    const struct seen *seen, uint32_t event, struct list *list)
{
	struct row *insns = calloc(a->listing->nr_insns, sizeof(*insns));
	int rc;

	if (!insns)
		return -ENOMEM;
	if (st->annotate.arrows)
		arrows_update(st->annotate.arrows, a->listing);
	add_points(a, seen, event, insns, list);
	if (annotate_shown(st) == ANNOTATE_SOURCE && a->listing->nr_files)
		rc = add_lines(st, a->listing, insns, list);
	else
		rc = add_insns(st, a->listing, insns, list);
	free(insns);
	return rc;
}

/* All rows of the shown profile, unsorted; 0 or -ENOMEM. */
static int annotate_rows_build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = annotate_profile(st);
	const struct profile_annotate *a = p ? p->annotate : NULL;
	struct seen seen;
	int rc;

	if (!a || !a->listing)
		return 0;
	rc = seen_make(&seen, st);
	if (!rc && a->listing->nr_insns)
		rc = add_code(st, a, &seen, ui_state_event(st, p), list);
	else if (!rc)
		rc = add_bare_points(a, &seen, ui_state_event(st, p), list);
	free(seen.tasks);
	return rc;
}

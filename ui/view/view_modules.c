// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * View 6: the modules, the source of their symbols, and how to get missing
 * ones. The main thread; reads the state.
 */
#include "ui/view/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile/profile.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

static const struct profile_module *module_of(const struct ui_state *st, const struct row *row)
{
	return &st->shown->modules[row->index];
}

static struct safe_text state_of(const struct profile_module *m)
{
	const char *name = profile_module_state_name(m->state);

	return (struct safe_text){ name, (uint16_t)strlen(name), (uint16_t)strlen(name) };
}

static int by_named(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(a->self, b->self);
}

static int by_symbols(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(module_of(st, a)->nr_symbols, module_of(st, b)->nr_symbols);
}

static int by_name(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcasecmp(module_of(st, a)->name.str, module_of(st, b)->name.str);
}

static int by_state(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcmp(state_of(module_of(st, a)).str, state_of(module_of(st, b)).str);
}

static int by_source(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return strcmp(module_of(st, a)->source, module_of(st, b)->source);
}

static void draw_bar(const struct ui_state *st, const struct row *row, struct canvas *c,
		     struct view_field at)
{
	view_draw_bar(st, c, at, row->total, row->total > 0.5 ? ROLE_BAR_HOT : ROLE_BAR);
}

/* Draw the share of samples with a symbol. */
static void draw_named(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols, format_share(buf, row->self),
		     (struct style){ row->self < 0.5 ? ROLE_WARN : ROLE_NORMAL, 0 });
}

/* Return the share of all samples that are in the module and have no symbol. */
static double unnamed_of(const struct row *row)
{
	return row->total * (1 - row->self);
}

static int by_unnamed(const struct ui_state *st, const struct row *a, const struct row *b)
{
	return COMPARE(unnamed_of(a), unnamed_of(b));
}

static void draw_unnamed(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	if (unnamed_of(row) > 0)
		view_draw_percent(c, at, unnamed_of(row));
}

static void draw_symbols(const struct ui_state *st, const struct row *row, struct canvas *c,
			 struct view_field at)
{
	const struct profile_module *m = module_of(st, row);
	char buf[FORMAT_MAX];

	canvas_right(c, at.row, at.col, at.cols,
		     m->state == PROFILE_MODULE_KEPT ? TEXT("-") : format_count(buf, m->nr_symbols),
		     (struct style){ ROLE_NORMAL, 0 });
}

static void draw_state(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	const struct profile_module *m = module_of(st, row);
	bool warn = m->state == PROFILE_MODULE_FAILED || m->state == PROFILE_MODULE_ASIDE;

	if (m->state == PROFILE_MODULE_LOADING && m->permille)
		view_draw_bar(st, c, at, m->permille / 1000.0, ROLE_BAR);
	else
		canvas_text(c, at.row, at.col, at.cols, state_of(m),
			    (struct style){ warn ? ROLE_WARN : ROLE_NORMAL, 0 });
}

/* Return the bytes at the end of @path with one folder more than @size. */
static size_t longer_tail(struct safe_text path, size_t size)
{
	const char *slash = size + 1 < path.size ? memrchr(path.str, '/', path.size - size - 1)
						 : NULL;

	return slash ? path.size - (size_t)(slash + 1 - path.str) : path.size;
}

static bool is_same(struct safe_text a, struct safe_text b)
{
	return a.size == b.size && !memcmp(a.str, b.str, a.size);
}

/* Return how many last bytes of @path tell it from @other. */
static size_t distinct_size(struct safe_text path, struct safe_text other)
{
	size_t most = MIN(path.size, other.size), same = 0;

	while (same < most && path.str[path.size - same - 1] == other.str[other.size - same - 1])
		same++;
	/* A whole path is not one with another folder before it. */
	return same < other.size ? same + 1 : same;
}

/* Return how long an end of the path has to be, so that no other file of that name has it; 0: any.
 */
static size_t least_tail(const struct profile *p, const struct profile_module *m)
{
	size_t least = 0;

	for (uint32_t i = 0; i < p->nr_modules; i++) {
		const struct profile_module *other = &p->modules[i];

		if (other == m || other->path.size <= m->name.size ||
		    !is_same(other->name, m->name) || is_same(other->path, m->path))
			continue;
		least = MAX(least, distinct_size(m->path, other->path));
	}
	return least;
}

/* Return the name; of files of one name the shortest end of the path that only one has. */
static struct safe_text distinct_name(const struct ui_state *st, const struct profile_module *m,
				      char buf[static TEXT_MAX])
{
	size_t size = m->name.size, least;

	if (!m->path.size || m->path.str[0] != '/' || size >= m->path.size)
		return m->name;
	least = least_tail(st->shown, m);
	if (least <= size)
		return m->name;
	while (size < m->path.size && size < least)
		size = longer_tail(m->path, size);
	return text_sanitise(buf, TEXT_MAX, m->path.str + m->path.size - size, size);
}

static void draw_name(const struct ui_state *st, const struct row *row, struct canvas *c,
		      struct view_field at)
{
	char buf[TEXT_MAX];

	canvas_elide(c, at.row, at.col, at.cols, distinct_name(st, module_of(st, row), buf),
		     (struct style){ ROLE_VALUE, 0 });
}

/* Draw the source of the names, or why there are none. */
static void draw_source(const struct ui_state *st, const struct row *row, struct canvas *c,
			struct view_field at)
{
	const struct profile_module *m = module_of(st, row);
	const char *why = m->language_reason ? m->language_reason : m->reason;
	bool reason = why[0] != '\0';
	char buf[128];

	canvas_elide(c, at.row, at.col, at.cols,
		     reason && m->source[0]
			     ? text_format(buf, sizeof(buf), "%s; %s%s", m->source,
					   m->language_reason ? "no functions of scripts: " : "",
					   why)
			     : ui_state_clean(buf, sizeof(buf), reason ? why : m->source),
		     (struct style){ reason ? ROLE_WARN : ROLE_NORMAL, 0 });
}

enum { SHARE, CHANGE, BAR, SAMPLES, UNNAMED, NAMED, SYMBOLS, STATE, NAME, SOURCE };

static void draw_share(const struct ui_state *st, const struct row *row, struct canvas *c,
		       struct view_field at)
{
	view_draw_percent(c, at, row->total);
}

static const struct view_column columns[] = {
	[SHARE] = { .title = TEXT("SELF%"),
		    .help = "share of all samples in its code",
		    .width = 7,
		    .right = true,
		    .share = COLUMN_TOTAL,
		    .compare = table_by_total,
		    .draw = draw_share },
	[CHANGE] = TABLE_CHANGE("SELF%"),
	[BAR] = { .title = TEXT(""),
		  .name = "bar",
		  .help = "the share as a bar",
		  .width = 8,
		  .wide = 12,
		  .from = 66,
		  .draw = draw_bar },
	[SAMPLES] = TABLE_SAMPLES(9, 90),
	[UNNAMED] = { .title = TEXT("UNNAMED"),
		      .help = "share of all samples that are here and have no symbol",
		      .width = 8,
		      .from = 60,
		      .right = true,
		      .compare = by_unnamed,
		      .draw = draw_unnamed },
	[NAMED] = { .title = TEXT("NAMED"),
		    .help = "share of its samples with a symbol",
		    .width = 6,
		    .right = true,
		    .compare = by_named,
		    .draw = draw_named },
	[SYMBOLS] = { .title = TEXT("SYMBOLS"),
		      .help = "symbols in it",
		      .width = 9,
		      .from = 110,
		      .right = true,
		      .compare = by_symbols,
		      .draw = draw_symbols },
	[STATE] = { .title = TEXT("STATE"),
		    .help = "state of loading",
		    .width = 8,
		    .from = 60,
		    .ascending = true,
		    .compare = by_state,
		    .draw = draw_state },
	[NAME] = { .title = TEXT("MODULE"),
		   .help = "file name",
		   .width = 16,
		   .wide = 24,
		   .ascending = true,
		   .compare = by_name,
		   .draw = draw_name },
	[SOURCE] = { .title = TEXT("NAMES FROM"),
		     .help = "source of the names, or why there are none",
		     .from = 50,
		     .ascending = true,
		     .compare = by_source,
		     .draw = draw_source },
};

/* Sum the self weight of each module, and its part with a symbol. */
struct view_modules_sums {
	double count, weight, named;
};

static int add_rows(const struct ui_state *st, struct list *list,
		    const struct view_modules_sums *sums, double all)
{
	for (uint32_t i = 0; i < st->shown->nr_modules; i++) {
		struct row *row;

		if (!sums[i].count)
			continue;
		row = list_add(list);
		if (!row)
			return -ENOMEM;
		row->id = st->shown->modules[i].id;
		row->index = i;
		/* The limit applies to the total: set it to the share. */
		row->total = all > 0 ? sums[i].weight / all : 0;
		row->self = sums[i].weight > 0 ? sums[i].named / sums[i].weight : 0;
		row->count = sums[i].count;
	}
	return 0;
}

/* Add one row per module with self samples. */
static int build(const struct ui_state *st, struct list *list)
{
	const struct profile *p = st->shown;
	const struct fold_functions *fold;
	struct view_modules_sums *sums;
	int rc;

	fold = p && p->nr_modules ? folds_all_code(st) : NULL;
	if (!fold)
		return 0;
	sums = calloc(p->nr_modules, sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	for (uint32_t i = 0; i < fold->nr_rows; i++) {
		const struct fold_row *f = &fold->rows[i];
		const struct profile_function *fn = &p->functions[f->function];

		if (fn->module_index >= p->nr_modules)
			continue;
		sums[fn->module_index].count += f->self;
		sums[fn->module_index].weight += f->self_weight;
		sums[fn->module_index].named += fn->unnamed ? 0 : f->self_weight;
	}
	list->count = fold->count;
	rc = add_rows(st, list, sums, fold->weight);
	free(sums);
	return rc;
}

static struct safe_text name(const struct ui_state *st, const struct row *row, char *buf,
			     size_t size)
{
	return module_of(st, row)->name;
}

static bool finds(const struct ui_state *st, const struct row *row, const struct match *m)
{
	return match_finds(m, module_of(st, row)->name) || match_finds(m, module_of(st, row)->path);
}

static void foot_memory(struct foot *f, const struct profile_module *m)
{
	char buf[128], n[FORMAT_MAX], times[FORMAT_MAX];
	struct safe_text size = format_memory(n, m->memory >> 10);

	if (!m->nr_evicted)
		foot_line(f, TEXT("Memory"), size);
	else
		foot_line(f, TEXT("Memory"),
			  text_format(buf, sizeof(buf), "%s; evicted %s times", size.str,
				      format_count(times, m->nr_evicted).str));
}

/* Show the ways to the debug symbols of a file: the key that fetches them, and their package. */
static void foot_symbols(const struct ui_state *st, struct foot *f, const struct profile_module *m)
{
	char text[PACKAGES_ARCHIVE_MAX + 128], key[8];
	char package[PACKAGES_NAME_MAX], archive[PACKAGES_ARCHIVE_MAX];
	enum packages_result found = packages_find(st->packages, m->path.str, package, archive);

	key_name_of(key, user_keys_first(st->user_keys, CTX_LIST, ACT_FETCH));
	foot_text(f, TEXT("Symbols"),
		  text_format(text, sizeof(text), "%s fetches them (debuginfod)%s%s", key,
			      found == PACKAGES_FOUND	  ? "; or: apt install "
			      : found == PACKAGES_PENDING ? "; looking for their package"
			      : st->packages		  ? "; the file is of no package"
							  : "",
			      package)
			  .str);
	if (*archive)
		foot_text(f, TEXT("First"),
			  text_format(text, sizeof(text),
				      "echo '%s' | sudo tee /etc/apt/sources.list.d/debug.list; "
				      "sudo apt update (the archive of debug symbols is not "
				      "enabled)",
				      archive)
				  .str);
}

/* How the callers of its functions are found. */
static void foot_tables(struct foot *f, const struct profile_module *m)
{
	char buf[160], n[3][FORMAT_MAX];

	if (m->nr_tabled + m->nr_derived + m->nr_bare)
		foot_line(f, TEXT("Unwinding"),
			  text_format(buf, sizeof(buf),
				      "%s functions by tables, %s by rows derived from code, %s by "
				      "neither",
				      format_count(n[0], m->nr_tabled).str,
				      format_count(n[1], m->nr_derived).str,
				      format_count(n[2], m->nr_bare).str));
}

static unsigned int foot(const struct ui_state *st, const struct row *row, struct foot *f)
{
	const struct profile_module *m = row ? module_of(st, row) : NULL;
	char buf[128], n[FORMAT_MAX];

	if (!m)
		return 0;
	foot_line(f, TEXT("Path"), m->path);
	if (m->state == PROFILE_MODULE_KEPT)
		foot_line(f, TEXT("Names"), TEXT("of --keep; the file was not read"));
	else
		foot_line(f, TEXT("Names"),
			  text_format(buf, sizeof(buf), "%s%s%s (%s)",
				      format_count(n, m->nr_symbols).str,
				      m->source[0] ? " from " : "", m->source, state_of(m).str));
	foot_tables(f, m);
	if (m->state == PROFILE_MODULE_LOADING && m->permille)
		foot_line(f, TEXT("Loading"),
			  text_format(buf, sizeof(buf), "%s loaded",
				      format_share(n, m->permille / 1000.0).str));
	if (m->memory >= 1024 || m->nr_evicted)
		foot_memory(f, m);
	if (m->reason[0])
		foot_text(f, TEXT("Reason"), m->reason);
	if (m->fix[0])
		foot_text(f, TEXT("Fix"), m->fix);
	if (m->path.str[0] == '/' && strstr(m->fix, "-dbgsym"))
		foot_symbols(st, f, m);
	if (m->language_reason) {
		foot_text(f, TEXT("Scripts"), m->language_reason);
		foot_text(f, TEXT("Fix"), m->language_fix ? m->language_fix : "");
	}
	return f->used;
}

static uint32_t module(const struct ui_state *st, const struct row *row)
{
	return row->index;
}

static const char *copied(const struct ui_state *st, const struct row *row,
			  char buf[static TEXT_MAX])
{
	return st->shown ? st->shown->modules[row->index].path.str : "";
}

static bool act(struct ui_state *st, enum action action, uint32_t code)
{
	const struct row *row = view_row(st);

	/* Enter shows its functions, as the key for one module alone (d) does. */
	if ((action != ACT_OPEN && action != ACT_MODULE_ONLY) || !row || !st->shown)
		return false;
	navigate_into_module(st, row->index);
	return true;
}

static uint64_t identity(const struct ui_state *st, const struct row *row)
{
	return baseline_match_text(module_of(st, row)->name);
}

static const struct view_label labels[] = { { ACT_OPEN, "Functions" }, { ACT_NONE, NULL } };

const struct view view_modules = {
	.title = TEXT("Modules"),
	.context = CTX_LIST,
	.scoped = true,
	.labels = labels,
	.columns = columns,
	.nr_columns = ARRAY_SIZE(columns),
	.sorts = &(const struct view_sorts){ SHARE, SHARE, NAME },
	.build = build,
	.compared = COMPARED_TOTAL,
	.name = name,
	.identity = identity,
	.finds = finds,
	.foot = foot,
	.module = module,
	.copied = copied,
	.act = act,
};

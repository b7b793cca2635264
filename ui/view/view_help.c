// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The help page, made from the key table. The main thread; reads the state only.
 *
 * On wide screens a card of all keys is first, in two columns: one screen of 100x30. Below it,
 * and on narrow screens alone, is the table with a line for each action, wrapped if need be. A row
 * is one line of the screen; line of the table and part are its identity.
 */
#include "ui/view/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/draw/draw.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/text/text.h"

#define KEYS_COLS   17u
#define KEYS_NARROW 10u /* on screens below NARROW */
#define NARROW	    60u
#define PARTS	    8u /* at most, of a wrapped line */

static const struct safe_text notes[] = {
	TEXT("ROWS"),
	TEXT("  SELF%   share of the samples that were in the function itself"),
	TEXT("  TOTAL%  share of the samples with the function anywhere on the stack"),
	TEXT("  ~       the difference to the row above may be noise (95 %)"),
	TEXT("  +/-     change of SELF% against the window before, or the baseline (B);"),
	TEXT("          ! significant (99 %); B while a moment or a range of the past is"),
	TEXT("          shown takes it as the baseline"),
	TEXT("  TREND60s  SELF% over the last minute, now at the right"),
	TEXT("  u user  k kernel  j JIT  v vdso  w wait  ? no name; code of languages:"),
	TEXT("  J Java  y Python  h PHP  r Ruby  l Perl  n JavaScript  a Lua  R R  E Erlang"),
	TEXT("          (\"python:\" finds or filters)"),
	TEXT("  call tree: a mark at the end of a row: on the hottest path (J opens it)"),
	TEXT("HEAT STRIP"),
	TEXT("  the level of each moment; a letter in its place: T a trap matched,"),
	TEXT("  ! samples were lost or throttled, e other events, f another frequency,"),
	TEXT("  r the counts were reset (one of several: the first of these)"),
	TEXT("HEADER"),
	TEXT("  Freq       samples per second and CPU, wanted and got; 534!: too few, see 7;"),
	TEXT("             shares are less exact then, CPU % is not: it is from the kernel's"),
	TEXT("             clocks, as in top; ~CPU % of a recording: by samples, too low then"),
	TEXT("  Lost       samples lost by the kernel; use a larger --ring or a lower"),
	TEXT("             frequency; 0 (9!): none now, 9 in the last seconds; see 7"),
	TEXT("  Throttled  times the kernel paused an event that interrupted too often"),
	TEXT("  Stacks     complete: reached the root; guessed: with a guessed frame;"),
	TEXT("             truncated: the copy ended; broken: no caller found;"),
	TEXT("             pending: taken before the program was read"),
	TEXT("  Symbols    share of samples in code with a symbol"),
	TEXT("  00:03:12   since the counts were reset: at start, by r, or by other events;"),
	TEXT("             in Messages FIRST and LAST are since the start, COUNT is of samples"),
	TEXT("             if the message is about samples, else of occurrences"),
	TEXT("MOUSE"),
	TEXT("  click a row, a column title, a view or a key; double-click drills in;"),
	TEXT("  Shift-drag selects text"),
};

/* ---- the card ---- */

#define CARD_COLS 100u /* least width of the screen */
#define CARD_KEYS 12u
#define CARD_MAX  4

/* A line: the first key of each action, and their effect; without actions a heading. */
struct card_line {
	const char *text;
	enum action actions[CARD_MAX];
};

static const struct card_line left[] = {
	{ "VIEWS", { 0 } },
	{ "functions, processes, call tree",
	  { ACT_VIEW_FUNCTIONS, ACT_VIEW_PROCESSES, ACT_VIEW_TREE } },
	{ "flame graph, CPUs, modules, messages",
	  { ACT_VIEW_FLAME, ACT_VIEW_CPUS, ACT_VIEW_MODULES, ACT_VIEW_MESSAGES } },
	{ "next and previous view", { ACT_NEXT_VIEW, ACT_PREVIOUS_VIEW } },
	{ "open: process, callers, zoom; back", { ACT_OPEN, ACT_BACK } },
	{ "ROW", { 0 } },
	{ "menu; follow; its lock; its stacks", { ACT_MENU, ACT_FOLLOW, ACT_LOCK, ACT_STACKS } },
	{ "callers, callees; flame from here", { ACT_CALLERS, ACT_FLAME_HERE } },
	{ "code; its source; branches; memory",
	  { ACT_ANNOTATE, ACT_EDITOR, ACT_VIEW_BRANCHES, ACT_VIEW_MEMORY } },
	{ "this module; fetch symbols; copy", { ACT_MODULE_ONLY, ACT_FETCH, ACT_COPY } },
	{ "MOVE AND FIND", { 0 } },
	{ "line", { ACT_LINE_UP, ACT_LINE_DOWN } },
	{ "page", { ACT_PAGE_UP, ACT_PAGE_DOWN } },
	{ "half a page; first and last line", { ACT_HALF_UP, ACT_HALF_DOWN, ACT_FIRST, ACT_LAST } },
	{ "scroll names; fold; sibling", { ACT_SCROLL_LEFT, ACT_SCROLL_RIGHT } },
	{ "search, next, previous", { ACT_SEARCH, ACT_SEARCH_NEXT, ACT_SEARCH_PREVIOUS } },
	{ "filter: regex, !: invert; by user", { ACT_FILTER, ACT_PICK_USER } },
	{ "TIME", { 0 } },
	{ "freeze; reset all counts", { ACT_FREEZE, ACT_RESET } },
	{ "window, decay, total; delay; compare", { ACT_WINDOW, ACT_DELAY, ACT_BASELINE } },
	{ "rewind, forward; to a time; now", { ACT_EARLIER, ACT_LATER, ACT_REWIND, ACT_LIVE } },
	{ "to the last peak; twice the range", { ACT_PEAK, ACT_WIDEN } },
	{ "heat strip; shorter, longer; 50 ms",
	  { ACT_STRIP, ACT_STRIP_IN, ACT_STRIP_OUT, ACT_STRIP_GRID } },
};

static const struct card_line right[] = {
	{ "ORDER", { 0 } },
	{ "sort by column; menu", { ACT_SORT_LEFT, ACT_SORT_RIGHT, ACT_SORT_MENU } },
	{ "by self, total, module; reverse",
	  { ACT_SORT_SELF, ACT_SORT_TOTAL, ACT_SORT_MODULE, ACT_INVERT } },
	{ "columns; hide below a percentage", { ACT_COLUMNS, ACT_LIMIT } },
	{ "tree; unfold, fold, unfold all", { ACT_TREE, ACT_UNFOLD, ACT_FOLD, ACT_UNFOLD_ALL } },
	{ "hottest path; fold recursion", { ACT_HOT_PATH, ACT_FOLD_RECURSION } },
	{ "group by ...; threads; worker-*", { ACT_GROUP_BY, ACT_BY_THREAD, ACT_FOLD_THREADS } },
	{ "full names; error bars", { ACT_FULL_NAMES, ACT_INTERVALS } },
	{ "SAMPLED", { 0 } },
	{ "event; the next one; CPU time, waits",
	  { ACT_PICK_EVENT, ACT_NEXT_EVENT, ACT_NEXT_TIME } },
	{ "frequency; lower, higher", { ACT_PICK_FREQUENCY, ACT_SLOWER, ACT_FASTER } },
	{ "pick a process; sample only it; pause", { ACT_PICK_PROCESS, ACT_FOCUS, ACT_SAMPLING } },
	{ "hide kernel, user, idle; languages",
	  { ACT_HIDE_KERNEL, ACT_HIDE_USER, ACT_HIDE_IDLE, ACT_FRAMES } },
	{ "unwinding; stack copies: half, twice",
	  { ACT_CALL_GRAPH, ACT_SMALLER_STACKS, ACT_LARGER_STACKS } },
	{ "ring buffers; fix the warning", { ACT_SMALLER_RINGS, ACT_LARGER_RINGS, ACT_FIX } },
	{ "PROGRAM", { 0 } },
	{ "help, settings, save them, export",
	  { ACT_HELP, ACT_SETTINGS, ACT_WRITE_CONFIG, ACT_EXPORT } },
	{ "any action by name; save the screen", { ACT_COMMAND, ACT_SAVE_SCREEN } },
	{ "hide the header; redraw; suspend", { ACT_HEADER, ACT_REDRAW, ACT_SUSPEND } },
	{ "quit; no key kills (htop: F9, k)", { ACT_QUIT } },
	{ "SYMBOLS", { 0 } },
	{ "~ noise ! sure u user k kernel j JIT v vdso w wait", { 0 } },
	{ "k* by a timer: or interrupts were off; ? no name", { 0 } },
	{ "J Java y Py h PHP r Ruby l Perl n JS a Lua R E Erl", { 0 } },
	{ "strip: T trap ! lost e event f rate r reset", { 0 } },
};

#define CARD_LINES (MAX(ARRAY_SIZE(left), ARRAY_SIZE(right)) + 1)

static bool has_card(const struct ui_state *st)
{
	return st->cols >= CARD_COLS;
}

/* Write the keys of a line: "1 2 3". */
static void card_keys(const struct ui_state *st, const struct card_line *line, char *out,
		      size_t size)
{
	size_t n = 0;
	char name[8];

	*out = '\0';
	for (int i = 0; i < CARD_MAX && line->actions[i] && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " " : "",
				      key_name_of(name, user_keys_first(st->user_keys, CTX_LIST,
									line->actions[i])));
}

static bool is_heading(const struct card_line *line)
{
	return !line->actions[0] && line->text[0] >= 'A' && line->text[0] <= 'Z' &&
	       line->text[1] != ' ';
}

static void draw_card_line(const struct ui_state *st, const struct card_line *line,
			   struct canvas *c, struct view_field at)
{
	char keys[32], buf[64];
	struct safe_text text = text_format(buf, sizeof(buf), "%s", line->text);

	if (!line->actions[0]) {
		canvas_elide(c, at.row, at.col, at.cols, text,
			     (struct style){ is_heading(line) ? ROLE_TITLE : ROLE_NORMAL, 0 });
		return;
	}
	card_keys(st, line, keys, sizeof(keys));
	canvas_text(c, at.row, at.col, at.cols, text_format(buf, sizeof(buf), "%s", keys),
		    (struct style){ ROLE_KEY, 0 });
	at.col += MAX(CARD_KEYS, (unsigned int)strlen(keys) + 1);
	canvas_elide(c, at.row, at.col, at.cols - MAX(CARD_KEYS, (unsigned int)strlen(keys) + 1),
		     text_format(buf, sizeof(buf), "%s", line->text),
		     (struct style){ ROLE_NORMAL, 0 });
}

/* Draw line @n of the card: one of each column. */
static void draw_card(const struct ui_state *st, uint32_t n, struct canvas *c, struct view_field at)
{
	unsigned int half = at.cols / 2;

	if (n < ARRAY_SIZE(left))
		draw_card_line(st, &left[n], c, (struct view_field){ at.row, at.col, half - 1 });
	if (n < ARRAY_SIZE(right))
		draw_card_line(st, &right[n], c,
			       (struct view_field){ at.row, at.col + half, at.cols - half });
}

/* ---- the table ---- */

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
			const char *name = key_group((enum key_group)g);
			uint16_t size = (uint16_t)strlen(name);

			content->heading = true;
			content->text = (struct safe_text){ name, size, size };
			return true;
		}
		for (const struct key_binding *b = key_table(); b->action; b++) {
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

static unsigned int keys_cols(const struct ui_state *st)
{
	return st->cols < NARROW ? KEYS_NARROW : KEYS_COLS;
}

/* Cut part @part of @cols cells at a blank. Return its size, and its start in @text. */
static size_t wrap(const char **text, unsigned int cols, unsigned int part)
{
	for (;; part--) {
		size_t size = strlen(*text), n = MIN(size, cols);

		while (n < size && n && (*text)[n] != ' ')
			n--;
		if (!n)
			n = MIN(size, cols);
		if (!part || n == size)
			return part ? 0 : n;
		*text += n + strspn(*text + n, " ");
	}
}

/* Write part @part of the line, "" behind the last one. */
static struct safe_text content_text(const struct ui_state *st, const struct content *content,
				     unsigned int part, char *buf, size_t size)
{
	const struct key_binding *b = content->binding;
	const char *text = b ? b->help : content->text.str;
	unsigned int keys = keys_cols(st), indent = b ? keys + 3 : (unsigned int)strspn(text, " ");
	char names[48], help[160];
	size_t n;

	snprintf(help, sizeof(help), "%s%s", text + (b ? 0 : indent), b ? key_where(b) : "");
	text = help;
	n = wrap(&text, MAX(st->cols, indent + 12) - indent - 1, part);
	if (part && !n)
		return TEXT("");
	if (!b || part)
		return text_format(buf, size, "%*s%.*s", (int)indent, "", (int)n, text);
	return text_format(buf, size, "  %-*s %.*s", (int)keys,
			   user_keys_names(st->user_keys, names, sizeof(names), b), (int)n, text);
}

static int add(struct list *list, uint32_t line, unsigned int part)
{
	struct row *row = list_add(list);

	if (!row)
		return -ENOMEM;
	row->id = row->index = line * PARTS + part;
	row->total = 1;
	return 0;
}

static int build(const struct ui_state *st, struct list *list)
{
	struct content content;
	char buf[160];
	int code = 0;

	for (uint32_t n = 0; !code && n < CARD_LINES && has_card(st); n++)
		code = add(list, n, 0);
	for (uint32_t n = 0; !code && line_content(n, &content); n++) {
		code = add(list, n + CARD_LINES, 0);
		for (unsigned int part = 1; !code && part < PARTS; part++) {
			if (!content_text(st, &content, part, buf, sizeof(buf)).size)
				break;
			code = add(list, n + CARD_LINES, part);
		}
	}
	return code;
}

/* Return the row as text, in @buf if need be. */
static struct safe_text line_text(const struct ui_state *st, uint32_t index, char *buf, size_t size)
{
	struct content content;
	uint32_t n = index / PARTS;

	if (n < CARD_LINES)
		return text_format(buf, size, "%s  %s", n < ARRAY_SIZE(left) ? left[n].text : "",
				   n < ARRAY_SIZE(right) ? right[n].text : "");
	if (!line_content(n - CARD_LINES, &content))
		return TEXT("");
	return content_text(st, &content, index % PARTS, buf, size);
}

static bool finds_key(const struct ui_state *st, const struct row *row, const struct match *m)
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

	if (row->index / PARTS < CARD_LINES) {
		draw_card(st, row->index / PARTS, c, at);
		return;
	}
	if (!line_content(row->index / PARTS - CARD_LINES, &content))
		return;
	if (content.heading)
		style.role = ROLE_TITLE;
	if (match_active(search) && match_finds(search, text) && text.size)
		style.flags |= CELL_UNDERLINE;
	canvas_elide(c, at.row, at.col, at.cols, text, style);
	if (content.binding && row->index % PARTS == 0)
		canvas_restyle(c, at.row, at.col, MIN(at.cols, keys_cols(st) + 2),
			       (struct style){ ROLE_KEY, style.flags }, false);
}

const struct view view_help = {
	.title = TEXT("Help"),
	.context = CTX_HELP,
	.unit = "line",
	.build = build,
	.finds = finds_key,
	.draw_row = draw_row,
};

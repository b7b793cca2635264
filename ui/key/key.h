/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys and actions: one table.
 *
 * The caller owes: a key as curses or a script gives it.
 *
 * The room does: finds the action of a key and the keys of an action, the user's own first.
 *
 * Not for: doing it (ui/actions.c).
 */
#ifndef UI_KEY_KEY_H
#define UI_KEY_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/base/base.h"

/*
 * The table of keys for input, key bar, help page and manual. Only actions
 * of the table can be reached; digits in the event picker are its input.
 *
 * Constant; any thread.
 */

/* A key is its Unicode code point (control keys: 1..31), or one of these. */
enum key_code {
	K_NONE = 0,
	K_TAB = 9,
	K_ENTER = 13,
	K_ESC = 27,
	K_BACKSPACE = 127,
	K_UP = 0x110000,
	K_DOWN,
	K_LEFT,
	K_RIGHT,
	K_PGUP,
	K_PGDN,
	K_HOME,
	K_END,
	K_DELETE,
	K_BACKTAB,
	K_MOUSE,	 /* button pressed at row, col */
	K_F0 = 0x111000, /* K_F(n) */
};

#define K_F(n)	  (K_F0 + (n))
#define K_CTRL(c) ((c)&31)

enum key_button { BUTTON_LEFT = 1, BUTTON_RELEASED = 3, BUTTON_UP = 4, BUTTON_DOWN = 5 };

struct key {
	uint32_t code;
	uint16_t row, col; /* K_MOUSE */
	uint8_t button;	   /* K_MOUSE: enum key_button */
};

/* Contexts of keys. */
enum key_context {
	CTX_LIST = 1, /* functions, processes */
	CTX_HELP = 2,
	CTX_PICKER = 4, /* text keys go into the input line */
	CTX_PROMPT = 8, /* the same */
};

#define CTX_PAGES  (CTX_LIST | CTX_HELP)
#define CTX_TYPING (CTX_PICKER | CTX_PROMPT)

enum key_group {
	GROUP_VIEW,
	GROUP_ROW,
	GROUP_SAMPLED,
	GROUP_FIND,
	GROUP_ORDER,
	GROUP_TIME,
	GROUP_MOVE,
	GROUP_PROGRAM,
	GROUP_NR,
};

/* clang-format off */
#define KEYS(...) { __VA_ARGS__ }
#define KEY_TABLE(X) \
	X(OPEN, "open", VIEW, "Open", "functions of a process, callers of a function", \
	  CTX_LIST, KEYS(K_ENTER), 0, KEYS(0)) \
	X(BACK, "back", VIEW, "", "go back one level; at the top, q quits", \
	  CTX_PAGES, KEYS(K_ESC, K_BACKSPACE, 'q'), 0, KEYS(0)) \
	X(VIEW_FUNCTIONS, "functions", VIEW, "", "the hottest functions", \
	  CTX_PAGES, KEYS('1'), 0, KEYS(0)) \
	X(VIEW_PROCESSES, "processes", VIEW, "", "the processes", \
	  CTX_PAGES, KEYS('2'), 0, KEYS(0)) \
	X(VIEW_TREE, "tree", VIEW, "", "the call tree", CTX_PAGES, KEYS('3'), 0, KEYS(0)) \
	X(VIEW_FLAME, "flame", VIEW, "", "the flame graph", CTX_PAGES, KEYS('4'), 0, KEYS(0)) \
	X(VIEW_CPUS, "cpus", VIEW, "", "CPUs, and the outcome of all samples", \
	  CTX_PAGES, KEYS('5'), 0, KEYS(0)) \
	X(VIEW_MODULES, "modules", VIEW, "", "modules and their symbols", \
	  CTX_PAGES, KEYS('6'), 0, KEYS(0)) \
	X(VIEW_MESSAGES, "messages", VIEW, "", "problems and their fixes", \
	  CTX_PAGES, KEYS('7', '!'), 0, KEYS(0)) \
	X(VIEW_BRANCHES, "branches", VIEW, "", "taken branches of a recording (perf record -b)", \
	  CTX_PAGES, KEYS('%'), 0, KEYS(0)) \
	X(VIEW_MEMORY, "memory", VIEW, "", "accesses to memory of a recording (perf mem record)", \
	  CTX_PAGES, KEYS('@'), 0, KEYS(0)) \
	X(NEXT_VIEW, "next-view", VIEW, "", "next view; in annotate: next hottest instruction", \
	  CTX_PAGES, KEYS(K_TAB), 0, KEYS(0)) \
	X(PREVIOUS_VIEW, "previous-view", VIEW, "", "previous view; in annotate: the hotter one", \
	  CTX_PAGES, KEYS(K_BACKTAB), 0, KEYS(0)) \
	X(MENU, "menu", ROW, "Menu", "menu of actions for the row", \
	  CTX_LIST, KEYS('m'), 0, KEYS(0)) \
	X(CALLERS, "callers", ROW, "", "callers and callees of the row; Esc: back", \
	  CTX_LIST, KEYS('b'), 0, KEYS(0)) \
	X(ANNOTATE, "annotate", ROW, "", "instructions with their samples", \
	  CTX_LIST, KEYS('a'), 0, KEYS(0)) \
	X(FLAME_HERE, "flame-here", ROW, "", "flame graph from here", \
	  CTX_LIST, KEYS('v'), 0, KEYS(0)) \
	X(EDITOR, "editor", ROW, "", "open the source in $VISUAL or $EDITOR", \
	  CTX_LIST, KEYS('O'), 0, KEYS(0)) \
	X(COPY, "copy", ROW, "", "copy the name to the terminal's clipboard", \
	  CTX_LIST, KEYS('y'), 0, KEYS(0)) \
	X(MODULE_ONLY, "module-only", ROW, "", "show only this module; again: all", \
	  CTX_LIST, KEYS('d'), 0, KEYS(0)) \
	X(FOLLOW, "follow", ROW, "", "keep the row in view, also in another order", \
	  CTX_LIST, KEYS('F'), 0, KEYS(0)) \
	X(FETCH, "fetch", ROW, "", "fetch debug symbols (debuginfod); again: cancel", \
	  CTX_LIST, KEYS('D'), 0, KEYS(0)) \
	X(LOCK, "lock", ROW, "", "with waits (^): the mutex it waits for, and its owner", \
	  CTX_LIST, KEYS('$'), 0, KEYS(0)) \
	X(STACKS, "stacks", ROW, "", "the stacks of its threads at this moment", \
	  CTX_LIST, KEYS(K_CTRL('w')), 0, KEYS(0)) \
	X(LINE_UP, "line-up", MOVE, "", "line up", \
	  CTX_PAGES, KEYS(K_UP, 'k'), CTX_PICKER, KEYS(K_UP, K_CTRL('p'))) \
	X(LINE_DOWN, "line-down", MOVE, "", "line down", \
	  CTX_PAGES, KEYS(K_DOWN, 'j'), CTX_PICKER, KEYS(K_DOWN, K_CTRL('n'))) \
	X(PAGE_UP, "page-up", MOVE, "", "page up", \
	  CTX_PAGES, KEYS(K_PGUP, K_CTRL('b')), CTX_PICKER, KEYS(K_PGUP)) \
	X(PAGE_DOWN, "page-down", MOVE, "", "page down", \
	  CTX_PAGES, KEYS(K_PGDN, K_CTRL('f')), CTX_PICKER, KEYS(K_PGDN)) \
	X(HALF_UP, "half-up", MOVE, "", "half a page up", \
	  CTX_PAGES, KEYS(K_CTRL('u')), 0, KEYS(0)) \
	X(HALF_DOWN, "half-down", MOVE, "", "half a page down", \
	  CTX_PAGES, KEYS(K_CTRL('d')), 0, KEYS(0)) \
	X(FIRST, "first", MOVE, "", "first line", \
	  CTX_PAGES, KEYS(K_HOME, 'g'), CTX_PICKER, KEYS(K_HOME)) \
	X(LAST, "last", MOVE, "", "last line", \
	  CTX_PAGES, KEYS(K_END, 'G'), CTX_PICKER, KEYS(K_END)) \
	X(SCROLL_LEFT, "scroll-left", MOVE, "", "scroll left; fold; previous sibling", \
	  CTX_LIST, KEYS(K_LEFT), 0, KEYS(0)) \
	X(SCROLL_RIGHT, "scroll-right", MOVE, "", "scroll right; unfold; next sibling", \
	  CTX_LIST, KEYS(K_RIGHT), 0, KEYS(0)) \
	X(HELP, "help", PROGRAM, "Help", "this page", \
	  CTX_PAGES, KEYS(K_F(1), '?', 'h'), 0, KEYS(0)) \
	X(SEARCH, "search", FIND, "Search", "search as you type", \
	  CTX_PAGES, KEYS(K_F(3), '/'), 0, KEYS(0)) \
	X(SEARCH_NEXT, "search-next", FIND, "", "next match", CTX_PAGES, KEYS('n'), 0, KEYS(0)) \
	X(SEARCH_PREVIOUS, "search-previous", FIND, "", "previous match", \
	  CTX_PAGES, KEYS('N'), 0, KEYS(0)) \
	X(FILTER, "filter", FIND, "Filter", \
	  "show matching rows only (regex; !: invert; Esc: clear)", \
	  CTX_LIST, KEYS(K_F(4), '\\', '&'), 0, KEYS(0)) \
	X(PICK_USER, "user", FIND, "", "show the processes of one user", \
	  CTX_LIST, KEYS('u'), 0, KEYS(0)) \
	X(SORT_MENU, "sort", ORDER, "Sort", "pick the column to sort by", \
	  CTX_LIST, KEYS(K_F(6)), 0, KEYS(0)) \
	X(COLUMNS, "columns", ORDER, "", \
	  "pick the columns; flame graph: colour by kind or module", \
	  CTX_LIST, KEYS('c'), 0, KEYS(0)) \
	X(SORT_LEFT, "sort-left", ORDER, "", "sort by the column to the left", \
	  CTX_LIST, KEYS('<'), 0, KEYS(0)) \
	X(SORT_RIGHT, "sort-right", ORDER, "", "sort by the column to the right", \
	  CTX_LIST, KEYS('>'), 0, KEYS(0)) \
	X(SORT_SELF, "sort-self", ORDER, "", "sort by self time; processes: by CPU", \
	  CTX_LIST, KEYS('P'), 0, KEYS(0)) \
	X(SORT_TOTAL, "sort-total", ORDER, "", "sort by total time; processes: by samples", \
	  CTX_LIST, KEYS('T'), 0, KEYS(0)) \
	X(SORT_MODULE, "sort-module", ORDER, "", "sort by module; processes: by name", \
	  CTX_LIST, KEYS('M'), 0, KEYS(0)) \
	X(INVERT, "invert", ORDER, "", "reverse the order; call tree, flame graph: invert", \
	  CTX_LIST, KEYS('I', 'R'), 0, KEYS(0)) \
	X(LIMIT, "limit", ORDER, "", "hide rows below a percentage", \
	  CTX_LIST, KEYS('L'), 0, KEYS(0)) \
	X(TREE, "tree-or-list", ORDER, "Tree", "call tree and back; processes: as a tree", \
	  CTX_LIST, KEYS(K_F(5), 't'), 0, KEYS(0)) \
	X(UNFOLD, "unfold", ORDER, "", "unfold the row; flame graph: zoom in", \
	  CTX_LIST, KEYS('+'), 0, KEYS(0)) \
	X(FOLD, "fold", ORDER, "", "fold it or go to the parent; flame graph: zoom out", \
	  CTX_LIST, KEYS('-'), 0, KEYS(0)) \
	X(UNFOLD_ALL, "unfold-all", ORDER, "", "unfold all below it; again: fold", \
	  CTX_LIST, KEYS('*'), 0, KEYS(0)) \
	X(HOT_PATH, "hot-path", ORDER, "", "follow the hottest path of the call tree", \
	  CTX_LIST, KEYS('J'), 0, KEYS(0)) \
	X(FOLD_RECURSION, "fold-recursion", ORDER, "", \
	  "fold recursion in call tree and flame graph", \
	  CTX_LIST, KEYS('X'), 0, KEYS(0)) \
	X(FULL_NAMES, "full-names", ORDER, "", \
	  "show full names, with template arguments (<> otherwise)", \
	  CTX_LIST, KEYS('V'), 0, KEYS(0)) \
	X(INTERVALS, "intervals", ORDER, "", "show the 95 % confidence interval of SELF%", \
	  CTX_LIST, KEYS('~'), 0, KEYS(0)) \
	X(GROUP_BY, "group-by", ORDER, "", \
	  "merge processes by name; by PID, thread, container, unit", \
	  CTX_LIST, KEYS('='), 0, KEYS(0)) \
	X(BY_THREAD, "threads", ORDER, "", "split processes, call tree and flame graph by thread", \
	  CTX_LIST, KEYS('H'), 0, KEYS(0)) \
	X(FOLD_THREADS, "fold-threads", ORDER, "", "merge threads with similar names: worker-*", \
	  CTX_LIST, KEYS(','), 0, KEYS(0)) \
	X(PICK_EVENT, "event", SAMPLED, "Event", "pick the event", \
	  CTX_LIST, KEYS(K_F(7), 'e'), 0, KEYS(0)) \
	X(NEXT_EVENT, "next-event", SAMPLED, "", "show the next event", \
	  CTX_LIST, KEYS('E'), 0, KEYS(0)) \
	X(NEXT_TIME, "next-time", SAMPLED, "", "CPU time, waiting time, both, or latency", \
	  CTX_LIST, KEYS('^'), 0, KEYS(0)) \
	X(HIDE_IDLE, "hide-idle", SAMPLED, "", \
	  "hide idle waits: poll, condition variables, 100 ms and more", \
	  CTX_LIST, KEYS('"'), 0, KEYS(0)) \
	X(PICK_FREQUENCY, "frequency", SAMPLED, "Freq", "pick the frequency", \
	  CTX_LIST, KEYS(K_F(8), 'f'), 0, KEYS(0)) \
	X(SLOWER, "slower", SAMPLED, "", "lower frequency", CTX_LIST, KEYS('['), 0, KEYS(0)) \
	X(FASTER, "faster", SAMPLED, "", "higher frequency", CTX_LIST, KEYS(']'), 0, KEYS(0)) \
	X(CALL_GRAPH, "call-graphs", SAMPLED, "", \
	  "unwinding: dwarf, fp (frame pointers) or off", \
	  CTX_LIST, KEYS('C'), 0, KEYS(0)) \
	X(SMALLER_STACKS, "smaller-stacks", SAMPLED, "", "copy half as much stack per sample", \
	  CTX_LIST, KEYS('{'), 0, KEYS(0)) \
	X(LARGER_STACKS, "larger-stacks", SAMPLED, "", "copy twice as much stack: deeper stacks", \
	  CTX_LIST, KEYS('}'), 0, KEYS(0)) \
	X(SMALLER_RINGS, "smaller-rings", SAMPLED, "", "halve the ring buffers", \
	  CTX_LIST, KEYS('('), 0, KEYS(0)) \
	X(LARGER_RINGS, "larger-rings", SAMPLED, "", \
	  "double the ring buffers: fewer lost samples", \
	  CTX_LIST, KEYS(')'), 0, KEYS(0)) \
	X(FIX, "fix", SAMPLED, "", "apply the fix for the warning at the bottom", \
	  CTX_LIST, KEYS('A'), 0, KEYS(0)) \
	X(SAMPLING, "sampling", SAMPLED, "", "pause or resume sampling", \
	  CTX_LIST, KEYS('S'), 0, KEYS(0)) \
	X(FOCUS, "focus", SAMPLED, "", "sample only this process, at a higher rate; Esc: undo", \
	  CTX_LIST, KEYS('x'), 0, KEYS(0)) \
	X(PICK_PROCESS, "process", SAMPLED, "", "pick a process", CTX_LIST, KEYS('p'), 0, KEYS(0)) \
	X(HIDE_KERNEL, "hide-kernel", SAMPLED, "", "hide kernel functions", \
	  CTX_LIST, KEYS('K'), 0, KEYS(0)) \
	X(HIDE_USER, "hide-user", SAMPLED, "", "hide user functions", \
	  CTX_LIST, KEYS('U'), 0, KEYS(0)) \
	X(FRAMES, "next-frames", SAMPLED, "", "frames of languages, both, or native only", \
	  CTX_LIST, KEYS('l'), 0, KEYS(0)) \
	X(FREEZE, "freeze", TIME, "Freeze", "freeze the rows; sampling continues", \
	  CTX_LIST, KEYS(' ', 'Z'), 0, KEYS(0)) \
	X(EARLIER, "earlier", TIME, "", "rewind: earlier, by the shown range", \
	  CTX_LIST, KEYS('i'), 0, KEYS(0)) \
	X(LATER, "later", TIME, "", "rewind: later, by the shown range", \
	  CTX_LIST, KEYS('o'), 0, KEYS(0)) \
	X(PEAK, "peak", TIME, "", "rewind to the peak before", CTX_LIST, KEYS('\''), 0, KEYS(0)) \
	X(REWIND, "rewind-to", TIME, "", "rewind to a time: 30s ago, 1403, 14:03:22", \
	  CTX_PAGES, KEYS(K_CTRL('r')), 0, KEYS(0)) \
	X(WIDEN, "widen", TIME, "", "rewind: show twice the range", \
	  CTX_LIST, KEYS('Y'), 0, KEYS(0)) \
	X(LIVE, "live", TIME, "", "back to now", CTX_LIST, KEYS('.'), 0, KEYS(0)) \
	X(STRIP, "strip", TIME, "", "heat strip: all samples, of the selected row, hidden", \
	  CTX_LIST, KEYS('|'), 0, KEYS(0)) \
	X(STRIP_IN, "strip-in", TIME, "", "heat strip: a shorter time", \
	  CTX_LIST, KEYS(';'), 0, KEYS(0)) \
	X(STRIP_OUT, "strip-out", TIME, "", "heat strip: a longer time", \
	  CTX_LIST, KEYS('_'), 0, KEYS(0)) \
	X(STRIP_GRID, "strip-grid", TIME, "", "heat strip: seconds by 50 ms", \
	  CTX_LIST, KEYS('`'), 0, KEYS(0)) \
	X(RESET, "reset", TIME, "", "reset all counts", CTX_LIST, KEYS('r'), 0, KEYS(0)) \
	X(WINDOW, "window", TIME, "", "window: last seconds, decaying, since reset", \
	  CTX_LIST, KEYS('z'), 0, KEYS(0)) \
	X(BASELINE, "baseline", TIME, "", "compare with the current profile; again: stop", \
	  CTX_LIST, KEYS('B'), 0, KEYS(0)) \
	X(DELAY, "delay", TIME, "", "set the delay; in annotate: source or assembly", \
	  CTX_LIST, KEYS('s'), 0, KEYS(0)) \
	X(SETTINGS, "settings", PROGRAM, "Setup", \
	  "theme, sort, rate, window and others; W saves them", \
	  CTX_LIST, KEYS(K_F(2)), 0, KEYS(0)) \
	X(COMMAND, "command", PROGRAM, "", "command line: any action by name", \
	  CTX_PAGES, KEYS(':'), 0, KEYS(0)) \
	X(EXPORT, "export", PROGRAM, "Export", "export the profile: page, picture, pprof, ...", \
	  CTX_PAGES, KEYS(K_F(9)), 0, KEYS(0)) \
	X(SAVE_SCREEN, "save-screen", PROGRAM, "", "save the screen as text", \
	  CTX_PAGES, KEYS('w'), 0, KEYS(0)) \
	X(WRITE_CONFIG, "write-config", PROGRAM, "", "save settings", \
	  CTX_PAGES, KEYS('W'), 0, KEYS(0)) \
	X(HEADER, "header", PROGRAM, "", "hide the header", CTX_LIST, KEYS('#'), 0, KEYS(0)) \
	X(REDRAW, "redraw", PROGRAM, "", "redraw the screen", \
	  CTX_PAGES, KEYS(K_CTRL('l')), CTX_TYPING, KEYS(K_CTRL('l'))) \
	X(SUSPEND, "suspend", PROGRAM, "", "back to the shell; fg returns", \
	  CTX_PAGES, KEYS(K_CTRL('z')), CTX_TYPING, KEYS(K_CTRL('z'))) \
	X(QUIT, "quit", PROGRAM, "Quit", "quit", \
	  CTX_PAGES, KEYS(K_F(10), 'Q', K_CTRL('c')), CTX_TYPING, KEYS(K_F(10), K_CTRL('c'))) \
	X(ACCEPT, "accept", PROGRAM, "Use", "accept the input or selection", \
	  0, KEYS(0), CTX_TYPING, KEYS(K_ENTER)) \
	X(ADD, "add", PROGRAM, "Add", "add or remove this event", \
	  0, KEYS(0), CTX_PICKER, KEYS(K_TAB)) \
	X(EVENT_USER, "event-user", SAMPLED, "", "include or exclude user code", \
	  0, KEYS(0), CTX_PICKER, KEYS(K_CTRL('u'))) \
	X(EVENT_KERNEL, "event-kernel", SAMPLED, "", "include or exclude kernel code", \
	  0, KEYS(0), CTX_PICKER, KEYS(K_CTRL('k'))) \
	X(EVENT_PRECISE, "event-precise", SAMPLED, "", "precision of the event, 0 to 3", \
	  0, KEYS(0), CTX_PICKER, KEYS(K_CTRL('t'))) \
	X(EVENT_FILTER, "event-fields", SAMPLED, "", "filter of a tracepoint, by its fields", \
	  0, KEYS(0), CTX_PICKER, KEYS(K_CTRL('f'))) \
	X(COMPLETE, "complete", PROGRAM, "", "complete the command", \
	  0, KEYS(0), CTX_PROMPT, KEYS(K_TAB)) \
	X(CANCEL, "cancel", PROGRAM, "Close", "close without accepting", \
	  0, KEYS(0), CTX_TYPING, KEYS(K_ESC))
#define KEY_ACTION(id, ...) ACT_##id,

enum action { ACT_NONE, KEY_TABLE(KEY_ACTION) ACT_NR };

#define KEYS_MAX 4

struct key_binding {
	enum action action;
	const char *name; /* for scripts and the manual */
	enum key_group group;
	const char *label; /* in the key bar; "" if not there */
	const char *help;
	unsigned int contexts;	  /* CTX_* */
	uint32_t codes[KEYS_MAX]; /* ends with 0 */
	unsigned int typing;	  /* CTX_* */
	uint32_t typing_codes[KEYS_MAX];
};

/* Return the table: one entry per action, in the order of the help page; ends with ACT_NONE. */
const struct key_binding *key_table(void);
const char *key_group(enum key_group group);
/* Return " (in a picker or prompt)" if the binding has no key elsewhere, else "". */
const char *key_where(const struct key_binding *binding);
enum action key_find(enum key_context context, uint32_t code);
/* Return the key with this name, or K_NONE. */
uint32_t key_code(const char *name, size_t size);
/* Return the name of a key: "F1", "^L", "Esc", "PgUp", "j", "Up". ASCII. */
const char *key_name_of(char buf[static 8], uint32_t code);
/* Write all keys of a binding, "Up k". Return @buf. */
const char *key_names_of(char *buf, size_t size, const struct key_binding *binding);

/*
 * Keys of the settings ([keys]), which take precedence over the key table.
 * They apply in views and the help page, not in text input. Pure; any thread.
 */

#define USER_KEYS_MAX 64

struct user_key {
	uint32_t code;
	enum action action;
	uint32_t file; /* number of its file */
};

struct user_keys {
	struct user_key items[USER_KEYS_MAX];
	uint32_t nr;
};

/*
 * Bind keys to an action, "threads = x ^T", both by the names of --list-keys. A later
 * @file takes keys from an earlier one. Return 0; -EINVAL with a message: unknown action
 * or key, a key bound twice in one file, or a key that cannot be bound.
 */
int user_keys_add(struct user_keys *b, const char *action, const char *keys, uint32_t file,
		  struct err *e);
/* Check that back, help and quit have a key. Return 0 or -EINVAL with a message. */
int user_keys_check(const struct user_keys *b, struct err *e);
/* Do as key_find() and key_names_of(), with the keys of the user first. @b NULL: none. */
enum action user_keys_find(const struct user_keys *b, enum key_context context, uint32_t code);
/* Return the key to show for an action: 0 if it has none in @context. */
uint32_t user_keys_first(const struct user_keys *b, enum key_context context, enum action action);
const char *user_keys_names(const struct user_keys *b, char *buf, size_t size,
			    const struct key_binding *binding);

#endif

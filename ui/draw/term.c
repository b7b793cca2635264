// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Drive the terminal with ncursesw. Runs on: the main thread.
 *
 * Invariant: @shown is the canvas that curses has, so that only changed cells
 * are drawn.
 */
#include "ui/draw/internal.h"

/* Before <term.h>, which has a macro key_find. */
#include "ui/key/key.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "symbols/base/base.h"

#define NCURSES_WIDECHAR 1

/* <term.h> defines these as macros. */
#undef columns

#undef lines

/* How long the answer about the background is expected: later bytes are keys. */
#define ANSWER_NS 2000000000ull

#define ANSWER_MAX  48 /* bytes */
#define ESCAPE_WAIT 25 /* ms, for the byte after an Esc */

/*
 * Screens on their way to the terminal: the output queue of a pty, of ssh and of the network has
 * no length that can be read. After each screen the status of the terminal is requested (DSR): its
 * answer shows that the screen has arrived.
 */
#define ON_WAY_MAX 4
/* Before the first answer, which a terminal may never give: the empty screen, and the first rows.
 */
#define ON_WAY_NEW 2

#define ON_WAY_NS    100000000ull   /* a screen that is on its way for longer stops the next one */
#define LOST_NS	     10000000000ull /* then its answer is lost */
#define LEAVE_NS     1000000000ull  /* for answers, before the shell gets the terminal */
#define LEAVE_NEW_NS 100000000ull   /* the same, of a terminal that never answered */
#define SLOW_NS	     300000000ull   /* no repairs on a line that needs so long for a screen */
#define KEY_ARRIVED  (KEY_MAX + 1)

struct terminal {
	SCREEN *screen;
	FILE *in, *out;
	struct canvas shown;
	bool wants_color, color;
	bool heats; /* pairs of colours for halves of cells */
	bool mouse;
	enum theme theme;
	bool light;	   /* its background */
	uint64_t query_ns; /* time of the query for the background; 0: none, or answered */
	uint64_t on_way[ON_WAY_MAX]; /* times of the screens without an answer, the oldest first */
	unsigned int nr_on_way;
	uint64_t took_ns;   /* of the last screen that was answered */
	bool answers, mute; /* it did; it did not in time */
	attr_t attrs[THEME_ROLES];
	bool plain[THEME_ROLES]; /* never bold */
};

/* With file capabilities, only the system's terminfo is read. */
static void drop_hostile_environment(void)
{
	static const char *const names[] = {
		"TERMINFO", "TERMINFO_DIRS", "TERMCAP", "TERMPATH",
		"LINES",    "COLUMNS",	     "HOME",	"NCURSES_TRACE",
	};

	if (!getauxval(AT_SECURE))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

static int refuse(struct err *e, const char *what)
{
	const char *term = getenv("TERM");

	return err_set(e, -ENOTSUP,
		       "cannot show a screen: %s (TERM=%.40s)\n"
		       "  the terminal needs cursor addressing: set TERM to its type, as in "
		       "TERM=xterm-256color\n"
		       "  or use 'proftop -b' for text output",
		       what, term ? term : "");
}

int term_check(struct err *e)
{
	const char *cup;
	int rc = 0;

	drop_hostile_environment();
	setlocale(LC_CTYPE, "");
	if (!isatty(STDOUT_FILENO))
		return refuse(e, "standard output is not a terminal");
	if (!getenv("TERM") || !*getenv("TERM"))
		return refuse(e, "TERM is not set");
	if (setupterm(NULL, STDOUT_FILENO, &rc) != OK)
		return refuse(e, rc == 1   ? "hard-copy terminal"
				 : rc == 0 ? "unknown terminal type"
					   : "no terminfo database");
	cup = tigetstr("cup");
	rc = cup && cup != (const char *)-1 ? 0 : refuse(e, "no cursor addressing");
	del_curterm(cur_term);
	return rc;
}

bool term_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* Open the keyboard: standard input, else the controlling terminal. */
static FILE *open_input(void)
{
	int fd = isatty(STDIN_FILENO) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				      : open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

static FILE *open_output(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

/* Return the number of a colour: of a terminal with 24 bits its red, green and blue. */
static int color_number(short color)
{
	uint32_t rgb;

	if (color < 16 || COLORS <= 256)
		return color;
	rgb = theme_rgb(color);
	/* Numbers below 256 may be the indexed colours; of these, bold black is grey. */
	return (int)(rgb < 256 ? rgb | 0x100 : rgb);
}

/* Compute the attribute of each role once. */
static void init_looks(struct terminal *t, bool color, enum theme theme)
{
	color &= theme != THEME_MONO;
	t->color = color && has_colors() && start_color() == OK && COLORS >= 8 &&
		   COLOR_PAIRS > ROLE_NR;
	if (t->color)
		use_default_colors();
	t->heats = t->color && COLORS >= 256 && COLOR_PAIRS > THEME_ROLES;
	for (int i = 0; i < (t->heats ? THEME_ROLES : ROLE_NR); i++) {
		struct theme_look look = theme_look(theme, t->light, (enum theme_role)i, COLORS);

		/* Many terminals show bold black as grey. */
		t->plain[i] = t->color && COLORS < 256 && look.fg == COLOR_BLACK && look.bg >= 0;
		look.bold &= !t->plain[i];
		if (t->color) {
			init_extended_pair(i + 1, color_number(look.fg), color_number(look.bg));
			t->attrs[i] = (attr_t)COLOR_PAIR(i + 1) | (look.bold ? A_BOLD : 0) |
				      (look.dim ? A_DIM : 0) | (look.reverse ? A_REVERSE : 0);
		} else {
			t->attrs[i] = (look.mono_bold ? A_BOLD : 0) | (look.mono_dim ? A_DIM : 0) |
				      (look.mono_reverse ? A_REVERSE : 0);
		}
	}
}

/* ---- the background: dark or light ---- */

/* Read COLORFGBG, "15;0" or "0;default;15": the last number is the background. */
static bool light_by_environment(void)
{
	const char *text = getenv("COLORFGBG"), *last = text ? strrchr(text, ';') : NULL;

	return last && (!strcmp(last, ";7") || !strcmp(last, ";15"));
}

/* Return whether this type of terminal answers, or ignores, a query of its colours. */
static bool may_be_queried(void)
{
	static const char *const types[] = { "xterm", "tmux",	 "screen",  "rxvt",  "alacritty",
					     "kitty", "foot",	 "konsole", "gnome", "vte",
					     "st-",   "wezterm", "putty",   "iterm", "mlterm" };
	const char *term = getenv("TERM");

	for (size_t i = 0; term && i < ARRAY_SIZE(types); i++)
		if (!strncmp(term, types[i], strlen(types[i])))
			return true;
	return false;
}

/* Return whether it knows DSR: its terminfo has the query for the cursor, which is also one. */
static bool knows_status(void)
{
	const char *query = tigetstr("u7");

	return (query && query != (const char *)-1 && !strcmp(query, "\033[6n")) ||
	       may_be_queried();
}

/* Query the background (OSC 11). The answer is among the keys; nothing waits for it. */
static void query_background(struct terminal *t)
{
	if (!t->color || !may_be_queried())
		return;
	fputs("\033]11;?\033\\", t->out);
	fflush(t->out);
	t->query_ns = time_now_ns();
}

/* Parse "11;rgb:ffff/ffff/ffff" (after "Esc ]"). Return false if it is another answer. */
static bool is_light(const char *text, bool *light)
{
	unsigned int rgb[3], most = 0xffff;
	int end = 0;

	if (sscanf(text, "11;rgb:%4x/%4x/%n%4x", &rgb[0], &rgb[1], &end, &rgb[2]) != 3)
		return false;
	/* Two digits for each or four. */
	if (strcspn(text + end, "/") <= 2)
		most = 0xff;
	*light = 0.30 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 0.5 * most;
	return true;
}

/* Read an answer that ends in BEL or Esc \, after "Esc ]". Return true if the colours change. */
static bool take_answer(struct terminal *t)
{
	char text[ANSWER_MAX + 1];
	bool light = t->light;
	size_t n = 0;
	wint_t c = 0;

	timeout(ESCAPE_WAIT);
	while (n < ANSWER_MAX && get_wch(&c) != ERR && c != '\a' && c != 27)
		text[n++] = c < 128 ? (char)c : '?';
	if (c == 27 && get_wch(&c) != ERR && c != '\\')
		unget_wch((wchar_t)c);
	nodelay(stdscr, TRUE);
	text[n] = '\0';
	t->query_ns = 0;
	if (!is_light(text, &light) || light == t->light)
		return false;
	t->light = light;
	init_looks(t, t->wants_color, t->theme);
	return true;
}

/* What begins with an Esc: a key, the answer to a question, or neither, which was read. */
enum escape { ESCAPE_KEY, ESCAPE_ANSWER, ESCAPE_OTHER };

#define SEQUENCE_MAX 64

/*
 * Read the rest of a control sequence (ECMA-48, 5.4) of no key that is known, as of another
 * terminal, of a mouse or of a paste: its bytes are no keys. Return false if there is none.
 */
static bool skip_sequence(wint_t kind)
{
	int nr_more = 0;
	wint_t c;

	if ((kind != '[' && kind != 'O') || get_wch(&c) != OK)
		return false;
	/* The place of a mouse, in bytes; function keys of Linux's console have one. */
	if (kind == '[')
		nr_more = c == 'M' ? 3 : c == '[';
	for (int n = 0; kind == '[' && n < SEQUENCE_MAX && c >= 0x20 && c < 0x40; n++)
		if (get_wch(&c) != OK)
			break;
	while (nr_more-- && get_wch(&c) == OK)
		;
	return true;
}

/* Look behind the Esc that was read. */
static enum escape read_escape(const struct terminal *t)
{
	bool asked = t->query_ns && time_now_ns() - t->query_ns <= ANSWER_NS;
	enum escape is = ESCAPE_KEY;
	wint_t next;
	int rc;

	timeout(ESCAPE_WAIT);
	rc = get_wch(&next);
	if (rc == OK && next == ']' && asked)
		is = ESCAPE_ANSWER;
	else if (rc == OK && skip_sequence(next))
		is = ESCAPE_OTHER;
	else if (rc == OK)
		unget_wch((wchar_t)next);
	else if (rc == KEY_CODE_YES)
		ungetch((int)next);
	nodelay(stdscr, TRUE);
	return is;
}

static void listen_to_mouse(const struct terminal *t)
{
	mousemask(t->mouse ? BUTTON1_PRESSED | BUTTON1_RELEASED | BUTTON4_PRESSED | BUTTON5_PRESSED
			   : 0,
		  NULL);
}

void term_set(struct terminal *t, enum theme theme, bool mouse)
{
	assert(theme < THEME_NR);
	if (mouse != t->mouse) {
		t->mouse = mouse;
		mouseinterval(0);
		listen_to_mouse(t);
	}
	if (theme == t->theme)
		return;
	t->theme = theme;
	init_looks(t, t->wants_color, theme);
	term_redraw(t, true);
}

/* Return false if the terminal keeps its mode: keys would be lines. */
static bool init_input(struct terminal *t)
{
	/* Raw mode: control keys are keys; signals are sent by other processes. */
	if (raw() == ERR)
		return false;
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	if (knows_status())
		define_key("\033[0n", KEY_ARRIVED);
	else
		t->mute = true;
	/* Or each refresh looks for keys several times. */
	typeahead(-1);
	if (t->mouse) {
		mouseinterval(0);
		listen_to_mouse(t);
	}
	return true;
}

/* Get the size that the terminal reports; false: none. */
static bool has_size(const struct terminal *t, struct winsize *size)
{
	*size = (struct winsize){ 0 };
	return !ioctl(fileno(t->out), TIOCGWINSZ, size) && size->ws_row && size->ws_col;
}

/* Get the current size from the kernel; at least 1 x 1. */
static void size_of(const struct terminal *t, unsigned int *rows, unsigned int *cols)
{
	struct winsize size;

	if (!has_size(t, &size)) {
		/* A serial line reports 0 x 0. */
		size.ws_row = size.ws_row ? size.ws_row : 24;
		size.ws_col = size.ws_col ? size.ws_col : 80;
	}
	*rows = MIN(MAX(size.ws_row, 1u), (unsigned int)CANVAS_MAX);
	*cols = MIN(MAX(size.ws_col, 1u), (unsigned int)CANVAS_MAX);
}

/* Apply a change of size. */
static void resize(struct terminal *t)
{
	unsigned int rows, cols;

	size_of(t, &rows, &cols);
	resizeterm((int)rows, (int)cols);
	term_redraw(t, true);
}

int term_open(struct terminal **out, const struct term_config *config, struct err *e)
{
	struct terminal *t;
	struct winsize size;
	bool sized;
	int rc = term_check(e);

	if (rc)
		return rc;
	t = xcalloc(1, sizeof(*t));
	t->mouse = config->mouse;
	t->theme = config->theme;
	t->wants_color = config->color;
	t->light = light_by_environment();
	canvas_init(&t->shown, false);
	t->in = open_input();
	t->out = open_output();
	if (!t->in || !t->out) {
		rc = refuse(e, "no keyboard: standard input is not a terminal");
		goto fail;
	}
	/*
	 * Query the terminal: LINES and COLUMNS of the shell may be stale, and terminfo has no size
	 * for some terminals (the text console). A serial line says 0 x 0, with which newterm() of
	 * ncurses 6.5 fails: then the environment has it, or terminfo.
	 */
	sized = has_size(t, &size);
	use_env(!sized);
	use_tioctl(sized);
	t->screen = newterm(NULL, t->out, t->in);
	if (!t->screen) {
		rc = refuse(e, "cannot start curses");
		goto fail;
	}
	set_term(t->screen);
	init_looks(t, config->color, config->theme);
	if (!init_input(t)) {
		endwin();
		rc = refuse(e, "cannot set the mode of the terminal");
		goto fail;
	}
	curs_set(0);
	/*
	 * Until the first endwin(), ncurses 6.4 writes its buffer after each movement of the
	 * cursor: some sixty calls for a screen instead of one. refresh() enters the screen again.
	 */
	endwin();
	query_background(t);
	resize(t);
	*out = t;
	return 0;
fail:
	term_close(t);
	return rc;
}

bool term_is_behind(struct terminal *t)
{
	uint64_t age = t->nr_on_way ? time_now_ns() - t->on_way[0] : 0;

	if (age > (t->answers ? LOST_NS : ANSWER_NS)) {
		t->nr_on_way = 0;
		t->mute = !t->answers;
	}
	if (!t->answers)
		return t->nr_on_way >= ON_WAY_NEW;
	return t->nr_on_way && (t->nr_on_way == ON_WAY_MAX || age > ON_WAY_NS);
}

/* Request the answer that the screen has arrived. */
static void follow_screen(struct terminal *t)
{
	if (t->mute || t->nr_on_way == ON_WAY_MAX)
		return;
	fputs("\033[5n", t->out);
	fflush(t->out);
	t->on_way[t->nr_on_way++] = time_now_ns();
}

static void take_arrival(struct terminal *t)
{
	t->answers = true;
	t->mute = false;
	if (!t->nr_on_way)
		return;
	t->took_ns = time_now_ns() - t->on_way[0];
	t->nr_on_way--;
	memmove(t->on_way, t->on_way + 1, t->nr_on_way * sizeof(*t->on_way));
}

/* Wait for the answers that are missing: the shell would take them for keys. */
static void take_answers(struct terminal *t)
{
	uint64_t until = time_now_ns() + (t->answers ? LEAVE_NS : LEAVE_NEW_NS), now;
	struct pollfd in = { .fd = fileno(t->in), .events = POLLIN };
	struct key key;

	while (t->nr_on_way && (now = time_now_ns()) < until &&
	       poll(&in, 1, (int)((until - now) / 1000000) + 1) == 1 && in.revents == POLLIN)
		term_key(t, &key);
	t->nr_on_way = 0;
}

void term_close(struct terminal *t)
{
	if (!t)
		return;
	if (t->screen) {
		take_answers(t);
		endwin();
		delscreen(t->screen);
	}
	if (t->in)
		fclose(t->in);
	if (t->out)
		fclose(t->out);
	canvas_fini(&t->shown);
	free(t);
}

int term_input_fd(const struct terminal *t)
{
	return fileno(t->in);
}

void term_copy(struct terminal *t, const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"
				     "9+/";
	size_t left = strlen(text);

	fputs("\033]52;c;", t->out);
	for (const unsigned char *p = (const unsigned char *)text; left; p += 3) {
		uint32_t bits = (uint32_t)p[0] << 16 | (left > 1 ? (uint32_t)p[1] << 8 : 0) |
				(left > 2 ? p[2] : 0);
		char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
				 left > 1 ? digits[bits >> 6 & 63] : '=',
				 left > 2 ? digits[bits & 63] : '=' };

		fwrite(four, 1, sizeof(four), t->out);
		left -= MIN(left, (size_t)3);
	}
	fputs("\033\\", t->out);
	fflush(t->out);
}

int term_output_fd(const struct terminal *t)
{
	return fileno(t->out);
}

void term_resized(struct terminal *t, unsigned int *rows, unsigned int *cols)
{
	resize(t);
	size_of(t, rows, cols);
}

void term_redraw(struct terminal *t, bool clear)
{
	if (clear) {
		clearok(stdscr, TRUE);
		erase();
		canvas_fini(&t->shown);
	} else if (t->took_ns < SLOW_NS) {
		redrawwin(stdscr);
	}
}

/* A run of cells in one row that differ. */
struct canvas_run {
	unsigned int row, col, cols;
};

static bool same_cell(const struct canvas *a, const struct canvas *b, unsigned int row,
		      unsigned int col)
{
	const struct cell *x = canvas_at(a, row, col), *y = canvas_at(b, row, col);

	return x->style.role == y->style.role && x->style.flags == y->style.flags &&
	       x->width == y->width && !strcmp(x->text, y->text);
}

/*
 * Find the next run at or after *@run (start with zeroes; cols adds up) where @c differs
 * from @old of the same size; false at the end.
 */
static bool canvas_diff(const struct canvas *old, const struct canvas *c, struct canvas_run *run)
{
	unsigned int col = run->col + run->cols;

	assert(old->rows == c->rows && old->cols == c->cols);
	for (unsigned int row = run->row; row < c->rows; row++, col = 0) {
		while (col < c->cols && same_cell(old, c, row, col))
			col++;
		if (col >= c->cols)
			continue;
		run->row = row;
		/* A run begins at a cell with a glyph. */
		run->col = col - (canvas_at(c, row, col)->width == 0 && col > 0);
		do
			col++;
		while (col < c->cols &&
		       (!same_cell(old, c, row, col) || canvas_at(c, row, col)->width == 0));
		run->cols = col - run->col;
		return true;
	}
	return false;
}

/* Copy all cells of a canvas of the same size. */
static void canvas_copy(struct canvas *to, const struct canvas *from)
{
	assert(to->rows == from->rows && to->cols == from->cols);
	memcpy(to->cells, from->cells, (size_t)from->rows * from->cols * sizeof(*from->cells));
	to->cursor_row = from->cursor_row;
	to->cursor_col = from->cursor_col;
}

/* Return the text of a cell as curses may draw it: dots if the C library has another width. */
static const char *cell_text(const struct cell *cell)
{
	mbstate_t state = { 0 };
	wchar_t wc;

	if ((unsigned char)cell->text[0] < 0x80)
		return cell->text;
	/* curses counts by wcwidth(3): of another age than utf8proc, it would shift the row. */
	if (mbrtowc(&wc, cell->text, sizeof(cell->text), &state) > sizeof(cell->text) ||
	    wcwidth(wc) != cell->width)
		return cell->width == 2 ? "\u00b7\u00b7" : "\u00b7";
	return cell->text;
}

/* Give curses the cells of one run. */
static void draw_run(struct terminal *t, const struct canvas *c, const struct canvas_run *run)
{
	for (unsigned int i = 0; i < run->cols; i++) {
		const struct cell *cell = canvas_at(c, run->row, run->col + i);
		unsigned int role = cell->style.role < THEME_ROLES ? cell->style.role : ROLE_NORMAL;
		attr_t attr = t->attrs[role];

		if (!cell->width)
			continue;
		if (cell->style.flags & CELL_BOLD && !t->plain[role])
			attr |= A_BOLD;
		/* A reversed role must be visible also when reversed again. */
		if (cell->style.flags & CELL_REVERSE)
			attr ^= A_REVERSE;
		if (cell->style.flags & CELL_UNDERLINE)
			attr |= A_UNDERLINE;
		attrset((int)attr);
		/* Position each cell: a terminal that disagrees on a width spoils one cell only. */
		mvaddstr((int)run->row, (int)(run->col + i), cell_text(cell));
	}
}

bool term_has_heats(const struct terminal *t)
{
	return t->heats;
}

void term_draw(struct terminal *t, const struct canvas *c)
{
	struct canvas_run run = { 0 };

	if (t->shown.rows != c->rows || t->shown.cols != c->cols) {
		if (canvas_resize(&t->shown, c->rows, c->cols))
			return;
		erase();
	}
	while (canvas_diff(&t->shown, c, &run))
		draw_run(t, c, &run);
	canvas_copy(&t->shown, c);
	if (c->cursor_row >= 0)
		move(c->cursor_row, c->cursor_col);
	curs_set(c->cursor_row >= 0);
	refresh();
	follow_screen(t);
}

/* Keys of curses and of ours. */
static const struct {
	wint_t curses;
	uint32_t code;
} key_map[] = {
	{ KEY_UP, K_UP },
	{ KEY_DOWN, K_DOWN },
	{ KEY_LEFT, K_LEFT },
	{ KEY_RIGHT, K_RIGHT },
	{ KEY_PPAGE, K_PGUP },
	{ KEY_NPAGE, K_PGDN },
	{ KEY_HOME, K_HOME },
	{ KEY_END, K_END },
	{ KEY_FIND, K_HOME },
	{ KEY_SELECT, K_END },
	{ KEY_DC, K_DELETE },
	{ KEY_BTAB, K_BACKTAB },
	{ KEY_BACKSPACE, K_BACKSPACE },
	{ KEY_ENTER, K_ENTER },
};

static bool read_mouse(struct key *key)
{
	MEVENT event;

	if (getmouse(&event) != OK || event.x < 0 || event.y < 0)
		return false;
	key->code = K_MOUSE;
	key->row = (uint16_t)event.y;
	key->col = (uint16_t)event.x;
	key->button = event.bstate & BUTTON1_PRESSED	? BUTTON_LEFT
		      : event.bstate & BUTTON1_RELEASED ? BUTTON_RELEASED
		      : event.bstate & BUTTON4_PRESSED	? BUTTON_UP
		      : event.bstate & BUTTON5_PRESSED	? BUTTON_DOWN
							: 0;
	return key->button != 0;
}

static bool map_function_key(wint_t wide, struct key *key)
{
	if (wide == KEY_MOUSE)
		return read_mouse(key);
	for (size_t i = 0; i < ARRAY_SIZE(key_map); i++) {
		if (key_map[i].curses == wide) {
			key->code = key_map[i].code;
			return true;
		}
	}
	for (int n = 1; n <= 12; n++) {
		if (wide == (wint_t)KEY_F(n)) {
			key->code = (uint32_t)K_F(n);
			return true;
		}
	}
	return false;
}

bool term_key(struct terminal *t, struct key *key)
{
	enum escape is;
	wint_t wide;
	int rc;

	/* Skip unknown keys. */
	while ((rc = get_wch(&wide)) != ERR) {
		*key = (struct key){ 0 };
		if (rc == KEY_CODE_YES && wide == KEY_ARRIVED) {
			take_arrival(t);
			continue;
		}
		if (rc == KEY_CODE_YES) {
			if (map_function_key(wide, key))
				return true;
			continue;
		}
		is = wide == 27 ? read_escape(t) : ESCAPE_KEY;
		if (is == ESCAPE_OTHER || (is == ESCAPE_ANSWER && !take_answer(t)))
			continue;
		/* The key that draws everything again. */
		if (is == ESCAPE_ANSWER)
			wide = K_CTRL('l');
		key->code = wide == '\n' ? K_ENTER : wide == '\b' ? K_BACKSPACE : (uint32_t)wide;
		if (key->code)
			return true;
	}
	return false;
}

bool term_foreground(const struct terminal *t)
{
	pid_t group = tcgetpgrp(fileno(t->out));

	/* A terminal without job control has no foreground job. */
	return group < 0 || group == getpgrp();
}

void term_leave(struct terminal *t)
{
	take_answers(t);
	if (t->mouse)
		mousemask(0, NULL);
	endwin();
}

/* Return whether another job changed the terminal while we were stopped. */
static bool taken_away(const struct terminal *t)
{
	struct termios now;

	return !tcgetattr(fileno(t->out), &now) && (now.c_lflag & (ICANON | ECHO));
}

void term_enter(struct terminal *t)
{
	/* Entering the alternate screen twice would lose the saved cursor position. */
	if (!isendwin() && taken_away(t)) {
		const char *smcup = tigetstr("smcup"), *smkx = tigetstr("smkx");

		reset_prog_mode();
		if (smcup && smcup != (const char *)-1)
			putp(smcup);
		if (smkx && smkx != (const char *)-1)
			putp(smkx);
		/* putp(3) is the one call of curses that writes by stdio. */
		fflush(stdout);
		mousemask(0, NULL);
	}
	if (t->mouse)
		listen_to_mouse(t);
	resize(t);
	refresh();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop of the live screen. Runs on: the main thread.
 *
 * It waits in poll(2) for keys, signals and profiles only. It draws when the
 * terminal accepts bytes and has received the screens before: a stalled or slow
 * terminal skips screens, and delays no key, sample or signal.
 */
#include "ui/app.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ui/actions_export.h"
#include "ui/actions_tools.h"
#include "ui/cli/file_work.h"
#include "ui/draw/term.h"
#include "ui/ui.h"
#include "ui/input.h"
#include "ui/model.h"
#include "ui/prompt_keys.h"
#include "ui/rewind.h"
#include "ui/screen.h"
#include "ui/cli/packages.h"
#include "ui/view/folding.h"
#include "ui/fold/fold.h"

#define APP_NICE     (-5)
#define REPAINT_NS   (10 * 1000000000ull) /* repairs output of other programs */
#define NOTE_MS	     500		  /* how late a message may disappear */
#define KEYS_A_TURN  256
#define FILE_WAIT_NS 1000000000ull /* for a file that is being written, at the end */
#define EDITOR_MS    50		   /* poll interval */

static const int signals[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT, SIGPIPE
};

struct app {
	struct ui_state st;
	struct terminal *term;
	struct canvas canvas;
	int signal_fd;
	int ended_by; /* signal; 0: none */
	bool dirty, gone;
	struct key held; /* kept until rows are folded; code K_NONE: none */
	bool background; /* another job has the terminal: do not draw */
	uint64_t repaint_ns;
};

int app_check(struct err *e)
{
	return term_check(e);
}

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(set, signals[i]);
}

/*
 * Pass a signal on to the main thread, which blocks it and reads it by
 * signalfd. Threads of libraries do not block it: they would swallow
 * SIGWINCH, or SIGTERM would kill the process.
 */
static void hand_over(int sig)
{
	int saved = errno;

	if (gettid() != getpid())
		tgkill(getpid(), getpid(), sig);
	errno = saved;
}

void app_block_signals(void)
{
	struct sigaction action = { .sa_handler = hand_over, .sa_flags = SA_RESTART };
	sigset_t set;

	signal_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
}

static bool wants_color(enum ui_config_color color)
{
	const char *no = getenv("NO_COLOR");

	return color == CONFIG_COLOR_ALWAYS || (color == CONFIG_COLOR_AUTO && !(no && *no));
}

/* Follow the terminal's size. */
static void resize(struct app *a)
{
	unsigned int rows, cols;

	term_resized(a->term);
	term_size(a->term, &rows, &cols);
	if (rows != a->canvas.rows || cols != a->canvas.cols)
		canvas_resize(&a->canvas, rows, cols);
	a->dirty = true;
}

/* Enter the screen if this job has the terminal; else a later draw does. */
static void come_back(struct app *a)
{
	a->background = !term_foreground(a->term);
	if (a->background)
		return;
	term_enter(a->term);
	resize(a);
}

/*
 * Stop, back to the shell. By SIGTSTP: the kernel ignores it if no shell
 * could continue us.
 */
static void suspend(struct app *a)
{
	struct sigaction stop = { .sa_handler = SIG_DFL }, before;
	sigset_t set;

	a->st.suspend = false;
	term_leave(a->term);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaction(SIGTSTP, &stop, &before);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	/* Stopped here until SIGCONT. */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGTSTP, &before, NULL);
	come_back(a);
}

static void show(struct app *a, struct profile *p)
{
	if (!p)
		return;
	model_take(&a->st, p);
	rewind_trapped(&a->st);
	a->dirty = true;
}

/* Give large folds that a key requested to the folding thread. */
static void lend(struct app *a)
{
	struct folds_of *of;
	struct profile *p;

	if (folding_is_busy(a->st.folding))
		return;
	of = folds_lend(&a->st, &p);
	if (of && !folding_lend(a->st.folding, p, of))
		model_folded(&a->st);
}

/* Show the profile that is ready; give the next one to the folding thread. */
static void take_profile(struct app *a)
{
	struct folding *folding = a->st.folding;
	struct folds_of *of;
	struct profile *p;
	bool lent = false;

	p = folding_take(folding, &lent);
	if (lent) {
		model_folded(&a->st);
		a->dirty = true;
	} else {
		show(a, p);
		/* Where the next profile is always ready, a baseline would never be folded. */
		lend(a);
	}
	if (folding_is_busy(folding))
		return;
	p = sampler_take(a->st.sampler);
	of = p ? folds_plan(&a->st, p) : NULL;
	if (!of || !folding_give(folding, p, of))
		show(a, p);
}

/* Take a range of the past, and the heat strip. */
static void take_past(struct app *a)
{
	struct profile *p;
	struct strip *strip;

	sampler_take_past(a->st.sampler, &p, &strip);
	if (!p && !strip)
		return;
	/* Newer slices are drawn with the next profile. */
	a->dirty |= p || strip->answer || !a->st.rewind.strip;
	rewind_take(&a->st, p, strip);
}

/* Return the descriptor of the next profile: of the folding thread if it has one, else of the
 * sampler. */
static int profile_fd(const struct app *a)
{
	bool busy = folding_is_busy(a->st.folding);

	return busy ? folding_fd(a->st.folding) : sampler_fd(a->st.sampler);
}

/* Handle signals while the editor has the screen: only the signals that end proftop. */
static void take_ends(struct app *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
			a->ended_by = (int)info.ssi_signo;
}

/* Wait for the editor. Profiles are still taken, for history and messages. */
static int wait_for_editor(struct app *a, struct editor *ed)
{
	int status = 0;

	while (!editor_ended(ed, &status)) {
		struct pollfd fds[] = {
			{ .fd = a->signal_fd, .events = POLLIN },
			{ .fd = profile_fd(a), .events = POLLIN },
		};

		poll(fds, ARRAY_SIZE(fds), EDITOR_MS);
		a->st.now_ns = time_now_ns();
		take_ends(a);
		take_profile(a);
		if (a->ended_by)
			editor_stop(ed);
	}
	return status;
}

/* Give the screen to the editor, and take it back. */
static void edit(struct app *a)
{
	const char *program = editor_program(), *path = a->st.edit.path;
	struct editor_command command;
	struct editor ed;
	struct err e;
	int rc;

	rc = program ? editor_command(&command, program, path, a->st.edit.line, &e) : 1;
	if (!rc) {
		term_leave(a->term);
		rc = editor_start(&ed, &command, term_input_fd(a->term), term_output_fd(a->term),
				  &e);
		if (!rc)
			rc = editor_result(wait_for_editor(a, &ed), program, path, &e);
		come_back(a);
	}
	if (rc < 0)
		ui_state_say(&a->st, true, "%s", e.text);
	a->st.edit.path[0] = '\0';
}

static void take_signals(struct app *a)
{
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGWINCH:
			resize(a);
			break;
		case SIGTSTP:
			suspend(a);
			break;
		case SIGCONT:
			come_back(a);
			break;
		case SIGPIPE:
			break;
		default:
			a->ended_by = (int)info.ssi_signo;
		}
	}
}

/* Get the next key. Return false if there is none, or if it waits for rows. */
static bool next_key(struct app *a, struct key *key)
{
	*key = a->held;
	if (!key->code && !term_key(a->term, key))
		return false;
	a->held = (struct key){ .code = K_NONE };
	if (!input_waits(&a->st, key))
		return true;
	a->held = *key;
	return false;
}

/* Handle the typed keys. A closed terminal is readable, with 0 bytes. */
static void take_keys(struct app *a, short events)
{
	struct key key;
	int waiting = 0;

	if (events & (POLLHUP | POLLERR | POLLNVAL) ||
	    (events & POLLIN && (ioctl(term_input_fd(a->term), FIONREAD, &waiting) || !waiting))) {
		a->gone = true;
		return;
	}
	for (int i = 0; i < KEYS_A_TURN && !a->st.quit && next_key(a, &key); i++) {
		input_key(&a->st, &key);
		a->dirty = true;
		if (a->st.suspend)
			suspend(a);
		if (a->st.edit.path[0])
			edit(a);
	}
}

static void draw(struct app *a)
{
	struct pollfd out = { .fd = term_output_fd(a->term), .events = POLLOUT };

	if (!term_foreground(a->term)) {
		a->background = true;
		return;
	}
	if (a->background)
		come_back(a);
	if (term_is_behind(a->term) || poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return;
	if (a->st.redraw || a->st.now_ns >= a->repaint_ns) {
		term_redraw(a->term, a->st.redraw);
		a->st.redraw = false;
		a->repaint_ns = a->st.now_ns + REPAINT_NS;
	}
	if (a->st.copy[0])
		term_copy(a->term, a->st.copy);
	a->st.copy[0] = '\0';
	term_set(a->term, (enum theme)a->st.theme, a->st.mouse);
	screen_draw(&a->st, &a->canvas);
	term_draw(a->term, &a->canvas);
	a->dirty = false;
}

/* Return the ms until the screen changes without an event. */
static int next_wake(const struct app *a)
{
	const struct ui_state *st = &a->st;
	bool note = st->message[0] && st->now_ns < st->message_until_ns;

	if (a->held.code && !input_waits(st, &a->held))
		return 0;
	/* The progress of a recording that is read. */
	note |= !st->latest && sampler_reading_permille(st->sampler) >= 0;
	for (uint32_t i = 0; i < st->nr_alarms; i++)
		note |= st->now_ns < st->alarms[i].until_ns;
	/* Pending output waits for the terminal, not for a timeout. */
	if (note || a->dirty || a->background || file_worker_permille(st->files, UINT64_MAX) >= 0)
		return NOTE_MS;
	return a->repaint_ns > st->now_ns ? (int)((a->repaint_ns - st->now_ns) / 1000000) + 1 : 0;
}

static void loop(struct app *a)
{
	while (!a->st.quit && !a->gone && !a->ended_by) {
		struct pollfd fds[] = {
			{ .fd = a->signal_fd, .events = POLLIN },
			{ .fd = term_input_fd(a->term),
			  .events = a->background || a->held.code ? 0 : POLLIN },
			{ .fd = profile_fd(a), .events = POLLIN },
			/* Only while output is pending. */
			{ .fd = a->dirty && !a->background && !term_is_behind(a->term)
					? term_output_fd(a->term)
					: -1,
			  .events = POLLOUT },
			{ .fd = file_worker_fd(a->st.files), .events = POLLIN },
			{ .fd = sampler_past_fd(a->st.sampler), .events = POLLIN },
			{ .fd = file_worker_fd(a->st.folders), .events = POLLIN },
		};
		int n = poll(fds, ARRAY_SIZE(fds), next_wake(a));

		a->st.now_ns = time_now_ns();
		if (n < 0 && errno != EINTR)
			return;
		if (n <= 0)
			a->dirty = true;
		if (fds[0].revents)
			take_signals(a);
		if (fds[1].revents || (!a->background && a->held.code))
			take_keys(a, fds[1].revents);
		if (fds[2].revents)
			take_profile(a);
		if (fds[5].revents)
			take_past(a);
		if (fds[4].revents ? actions_file_result(&a->st, a->st.files)
				   : actions_export_progress(&a->st))
			a->dirty = true;
		if (fds[6].revents && actions_file_result(&a->st, a->st.folders)) {
			prompt_keys_words(&a->st);
			a->dirty = true;
		}
		if (a->dirty && !a->gone && !a->st.quit && !a->ended_by)
			draw(a);
		lend(a);
		rewind_refresh(&a->st);
	}
}

/* Raise the priority: little CPU, but without delay on a busy machine. Most users may not. */
static void go_first(void)
{
	if (!getpriority(PRIO_PROCESS, 0))
		setpriority(PRIO_PROCESS, 0, APP_NICE);
}

int app_run(struct sampler *s, const struct ui_config *config, struct err *e)
{
	const struct term_config looks = { wants_color(config->color), (enum theme)config->theme,
					   config->mouse };
	struct app a = { .signal_fd = -1, .dirty = true };
	bool ascii = config->ascii || !term_utf8();
	sigset_t set;
	int rc;

	go_first();
	app_block_signals();
	signal_set(&set);
	a.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (a.signal_fd < 0)
		return err_set(e, -errno, "cannot wait for signals: signalfd: %s", strerror(errno));
	rc = term_open(&a.term, &looks, e);
	if (rc)
		goto out;
	canvas_init(&a.canvas, ascii);
	model_init(&a.st, s, config, ascii);
	a.st.folding = folding_new();
	a.st.files = file_worker_new();
	a.st.folders = file_worker_new();
	a.st.packages = config->replayed ? NULL : packages_new(NULL, NULL);
	a.st.now_ns = time_now_ns();
	a.repaint_ns = a.st.now_ns + REPAINT_NS;
	if (config->window != PROFILE_WINDOW)
		sampler_set_window(s, config->window);
	resize(&a);
	if (a.canvas.cells) {
		draw(&a);
		loop(&a);
	} else {
		rc = err_set(e, -ENOMEM, "out of memory for the screen");
	}
	term_close(a.term);
	folding_free(a.st.folding);
	a.st.folding = NULL;
	file_worker_free(a.st.files, FILE_WAIT_NS);
	file_worker_free(a.st.folders, 0);
	packages_free(a.st.packages);
	a.st.files = a.st.folders = NULL;
	model_fini(&a.st);
	canvas_fini(&a.canvas);
out:
	close(a.signal_fd);
	return rc ? rc : a.ended_by ? a.ended_by : a.st.quit_by;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The live screen: the event loop, the part that gets a key or a click, the profiles that it takes
 * in, the editor, its end; --script: keys in, screen out.
 *
 * Runs on: the main thread.
 *
 * It waits in poll(2) for keys, signals and profiles only. It draws when the terminal accepts bytes
 * and has received the screens before: a stalled or slow terminal skips screens, and delays no key,
 * sample or signal.
 */
#include "ui/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utf8proc.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/thread.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/export/export.h"
#include "ui/fold/fold.h"
#include "ui/key/key.h"
#include "ui/serve/serve.h"
#include "ui/state/state.h"
#include "ui/text/text.h"
#include "ui/view/view.h"

#define APP_NICE     (-5)
#define BUSY_NS	     50000000ull /* CPU of a turn after which it rests */
#define REST_MAX_NS  50000000ull
#define REPAINT_NS   (10 * 1000000000ull) /* repairs output of other programs */
#define NOTE_MS	     500		  /* how late a message may disappear */
#define KEYS_A_TURN  256
#define FILE_WAIT_NS 1000000000ull /* for a file that is being written, at the end */
#define EDITOR_MS    50		   /* poll interval */

static const int signals[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT, SIGPIPE
};

/*
 * Start and end of the state, and the profiles it takes in. Runs on: the main thread.
 */

#define ALARM_NS (5 * 1000000000ull)

/* A message of the sampler is shown for this time at least. */
#define WORST_NS (5 * 1000000000ull)

static void model_init(struct ui_state *st, struct sampler *s, const struct ui_config *config,
		       bool ascii)
{
	char host[65] = "";
	struct list *functions;

	memset(st, 0, sizeof(*st));
	st->sampler = s;
	st->config = config;
	st->glyphs = theme_glyphs(ascii);
	if (!config->host && gethostname(host, sizeof(host) - 1))
		host[0] = '\0';
	ui_state_clean(st->host, sizeof(st->host), config->host ? config->host : host);
	st->set = config->set;
	ui_state_set_time(st, (enum ui_config_time)config->set.time);
	st->user_keys = config->user_keys;
	for (unsigned int i = 0; i < CONFIG_COLUMN_VIEWS; i++)
		st->lists[columns_view(i)].columns =
			columns_parse(view_of(columns_view(i)), config->set.columns[i]);
	st->folds = folds_new();
	st->annotate.function = UINT32_MAX;
	st->baseline = config->baseline;
	st->baseline_path = config->baseline_path;
	if (st->folds)
		st->folds->by_change = st->baseline != NULL;
	functions = &st->lists[VIEW_FUNCTIONS];
	functions->sort = function_columns_find((enum ui_config_sort)config->set.sort);
	functions->inverted = config->sort_inverted;
	for (unsigned int i = 0; i < CONFIG_COLUMN_VIEWS; i++)
		columns_parse_sort(view_of(columns_view(i)), config->set.sorts[i],
				   &st->lists[columns_view(i)]);
	st->lists[VIEW_MESSAGES].sort = view_messages.sorts->self;
	if (config->set.filter) {
		match_set(&functions->filter, config->set.filter);
		match_set(&st->lists[VIEW_PROCESSES].filter, config->set.filter);
	}
	table_rebuild(st, VIEW_HELP);
}

static void model_fini(struct ui_state *st)
{
	dialog_close(st);
	words_fini(&st->words);
	folds_free(st);
	free(st->rewind.strip);
	free(st->rewind.query);
	for (int i = 0; i < VIEW_NR; i++)
		list_fini(&st->lists[i]);
	match_fini(&st->scope.cgroup);
	if (st->baseline != st->shown && st->baseline != st->latest)
		profile_free(st->baseline);
	if (st->shown != st->latest)
		profile_free(st->shown);
	profile_free(st->latest);
	free(st->alarms);
	if (st->annotate.arrows)
		arrows_fini(st->annotate.arrows);
	free(st->annotate.arrows);
}

/* Record lost and throttled samples of each CPU; they are shown for some seconds. */
static void note_alarms(struct ui_state *st, const struct profile *p)
{
	if (st->nr_alarms != p->nr_cpus) {
		struct alarm *alarms = calloc(p->nr_cpus ? p->nr_cpus : 1, sizeof(*alarms));

		if (!alarms)
			return;
		free(st->alarms);
		st->alarms = alarms;
		st->nr_alarms = p->nr_cpus;
	}
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		struct alarm *a = &st->alarms[i];

		a->cpu = p->cpus[i].cpu;
		if (!p->cpus[i].lost && !p->cpus[i].throttled)
			continue;
		a->lost = p->cpus[i].lost;
		a->throttled = p->cpus[i].throttled;
		a->until_ns = st->now_ns + ALARM_NS;
	}
}

/* Return the worst message of the newest tick, from warnings on; NULL: none. */
static const struct profile_message *worst_of_tick(const struct ui_state *st)
{
	const struct profile_message *worst = NULL;

	for (uint32_t i = 0; st->latest && i < st->latest->nr_messages; i++) {
		const struct profile_message *n = &st->latest->messages[i];

		if (n->active && n->severity > (worst ? worst->severity : MESSAGE_INFO))
			worst = n;
	}
	return worst;
}

/* Choose it, with each new profile. */
static void choose_worst(struct ui_state *st)
{
	const struct profile_message *shown = ui_state_worst(st), *worst = worst_of_tick(st);
	bool again = shown && shown->active && shown->severity > MESSAGE_INFO;

	/* Of two that alternate, or at a threshold, keep one. */
	if (again)
		st->worst_ns = st->now_ns;
	if (shown && st->now_ns - st->worst_ns < WORST_NS &&
	    (!worst || worst->severity <= MAX(shown->severity, MESSAGE_WARN)))
		return;
	st->worst = worst ? worst->id + 1 : 0;
	st->worst_ns = st->now_ns;
}

/* Show a new message of the sampler; an error about the last key or command is not cut short. */
static void take_status(struct ui_state *st, const struct profile *p)
{
	if (p->status_seq == st->status_seq || ui_state_is_held(st))
		return;
	if (p->status[0])
		ui_state_say(st, false, "%s", p->status);
	st->status_seq = p->status_seq;
}

/*
 * When all processes of the target have exited, show all samples: the last seconds would soon be an
 * empty screen.
 */
static void show_whole(struct ui_state *st, const struct profile *p)
{
	bool ends = p->target_gone && !st->target_gone && !st->config->replayed;
	char span[FORMAT_MAX];

	if (p->target_gone && !st->target_gone)
		st->gone_ns = MAX(p->running_ns, p->session_ns);
	st->target_gone = p->target_gone;
	if (st->whole_at_end && !p->target_gone) {
		/* Another target. */
		st->whole_at_end = false;
		ui_state_ask_window(st, PROFILE_WINDOW);
	}
	if (!ends || ui_state_want_window(st) != PROFILE_WINDOW)
		return;
	st->whole_at_end = true;
	ui_state_ask_window(st, PROFILE_TOTAL);
	ui_state_say(st, false,
		     "%.80s: all processes have exited; this is the whole run (z: its last %s)",
		     p->target, format_span(span, st->set.window_ns).str);
}

/* Return how much a recording of @before bytes has grown, in KiB a second. */
static uint64_t recorded_kb(const struct profile *p, uint64_t before)
{
	double bytes = (double)(p->recording.bytes - MIN(before, p->recording.bytes));

	return (uint64_t)(bytes / 1024 / ((double)p->interval_ns / 1e9));
}

/* Take a new profile; the state owns it from now on. */
static void model_take(struct ui_state *st, struct profile *p)
{
	struct profile *before = st->latest;

	if (!p)
		return;
	assert(p != before && p != st->shown && p != st->baseline);
	st->latest = p;
	st->taken_ns = st->now_ns;
	serve_publish(st->config->serve, p, NULL);
	folds_arrived(st, p);
	if (p->interval_ns)
		st->recorded_kb = recorded_kb(p, before && before->recording.on
							 ? before->recording.bytes
							 : 0);
	folds_release(st, before);
	note_alarms(st, p);
	choose_worst(st);
	take_status(st, p);
	show_whole(st, p);
	if (!before && st->baseline_path && !baseline_is_on(st))
		ui_state_say(st, true, "not compared: %.100s has no event %s", st->baseline_path,
			     p->nr_events ? p->events[ui_state_event(st, p)].event.name : "");
	if (p->nr_events && p->events[ui_state_event(st, p)].want_hz == st->asked_hz)
		st->asked_hz = 0;
	if (p->window == st->asked_window)
		st->asked_window_ns = 0;
	/* Other views are rebuilt when they are shown. */
	if (!st->frozen || view_shown(st)->newest)
		table_rebuild(st, st->view);
	view_annotate_arrived(st);
	if (st->dialog.ops)
		dialog_refresh(st);
}

/*
 * ^C at the end of the program.
 */

#define PATIENCE_SECONDS 2

static void say_ending(int sig)
{
	static const char text[] = "proftop: still ending: ^C leaves work that is not done\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
}

void shutdown_begin(void)
{
	const struct sigaction action = { .sa_handler = say_ending, .sa_flags = SA_RESTART };
	const struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Pressed twice: the first one was taken already. */
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	signal(SIGINT, SIG_DFL);
	sigaction(SIGALRM, &action, NULL);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm(PATIENCE_SECONDS);
}

/*
 * Keys and the mouse: which part of the screen gets them. Runs on: the main thread.
 */

#define CLICK_NS   400000000ull /* between two presses of a double click */
#define WHEEL_ROWS 3

/* Find the topmost zone at a cell. */
static const struct zone *zone_at(const struct ui_state *st, const struct key *key)
{
	for (uint32_t i = st->nr_zones; i-- > 0;) {
		const struct zone *z = &st->zones[i];

		if (key->row >= z->row && key->row - z->row < z->rows && key->col >= z->col &&
		    key->col - z->col < z->cols)
			return z;
	}
	return NULL;
}

static void click_row(struct ui_state *st, const struct key *key, const struct zone *z)
{
	const struct list *list = ui_state_list(st);
	const struct view *v = view_of(st->view);
	uint32_t row = list->top + key->row - z->row;
	bool twice = st->now_ns - st->click_ns < CLICK_NS && st->click_row == key->row &&
		     !(v->click && key->col != st->press.col);

	if (v->click) {
		if (!v->click(st, key->row - z->row, key->col))
			return;
	} else if (row < list->nr) {
		table_move_to(st, row);
	} else {
		return;
	}
	st->press.on = true;
	st->press.row = key->row;
	st->press.col = key->col;
	st->click_ns = twice ? 0 : st->now_ns;
	st->click_row = key->row;
	if (twice && v->context == CTX_LIST)
		actions_do(st, ACT_OPEN, K_ENTER);
}

static void input_key(struct ui_state *st, const struct key *key);

static void wheel(struct ui_state *st, const struct key *key, const struct zone *z, bool over)
{
	const struct view *v = view_of(st->view);
	struct key arrow = { .code = key->button == BUTTON_UP ? K_UP : K_DOWN };

	if (!over && v->wheel && z && z->kind == ZONE_ROWS) {
		v->wheel(st, key->button == BUTTON_UP, key->row - z->row, key->col);
		return;
	}
	for (int i = 0; i < WHEEL_ROWS; i++)
		input_key(st, &arrow);
}

/* Handle a release: at another cell than the press, the view was dragged. */
static void release(struct ui_state *st, const struct key *key, bool over)
{
	const struct view *v = view_of(st->view);
	int rows = (int)key->row - st->press.row, cols = (int)key->col - st->press.col;

	rewind_release(st, key->row, key->col);
	if (st->press.on && !over && v->drag && (rows || cols))
		v->drag(st, rows, cols);
	st->press.on = false;
}

static void handle_mouse(struct ui_state *st, const struct key *key)
{
	const struct zone *z = zone_at(st, key);
	bool over = st->dialog.ops || st->prompt.kind;

	assert(key->code == K_MOUSE);
	if (key->button == BUTTON_RELEASED) {
		release(st, key, over);
		return;
	}
	st->press.on = false;
	if (key->button != BUTTON_LEFT) {
		wheel(st, key, z, over);
		return;
	}
	if (!z)
		return;
	if (z->kind == ZONE_ENTRIES)
		dialog_click(st, key->row - z->row);
	else if (z->kind == ZONE_ACTION)
		input_key(st, &(struct key){ .code = user_keys_first(st->user_keys,
								     view_context(st), z->value) });
	else if (over)
		return;
	else if (z->kind == ZONE_STRIP)
		rewind_press(st, key->row, key->col);
	else if (z->kind == ZONE_COLUMN)
		table_sort_by(st, (uint8_t)z->value);
	else if (z->kind == ZONE_VIEW)
		navigate_to(st, z->value);
	else
		click_row(st, key, z);
}

/* Return whether the action is about rows. Changing the view, going back and quitting are not. */
static bool is_about_rows(enum action action)
{
	return action != ACT_QUIT && action != ACT_BACK && action != ACT_HELP &&
	       action != ACT_REDRAW && action != ACT_SUSPEND &&
	       !(action >= ACT_VIEW_FUNCTIONS && action <= ACT_PREVIOUS_VIEW);
}

/* Return whether the key is about rows that are still being folded. Then keep it until they are
 * there. */
static bool input_waits(const struct ui_state *st, const struct key *key)
{
	enum key_context context = view_context(st);

	return context == CTX_LIST && folds_is_late(st) && !st->lists[st->view].nr &&
	       is_about_rows(user_keys_find(st->user_keys, context, key->code));
}

/* Obey a key. */
static void input_key(struct ui_state *st, const struct key *key)
{
	enum key_context context = view_context(st);
	enum action action = user_keys_find(st->user_keys, context, key->code);

	if (key->code == K_MOUSE) {
		handle_mouse(st, key);
		return;
	}
	/* Clear the message of the key before. */
	st->message[0] = '\0';
	if (context == CTX_LIST && rewind_steer(st, key->code))
		return;
	/* Actions that are the same in all contexts. */
	if (action == ACT_QUIT || action == ACT_REDRAW || action == ACT_SUSPEND)
		actions_do(st, action, key->code);
	else if (context == CTX_PICKER)
		dialog_key(st, key);
	else if (context == CTX_PROMPT)
		prompt_keys_press(st, key);
	else if (action)
		actions_do(st, action, key->code);
	else if (key->code)
		ui_state_say(st, false, "no such key here (F1 lists them)");
	prompt_keys_refresh(st);
}

/*
 * The user's editor, at a line of a file. It owns the terminal, as a separate job, until it ends;
 * sampling goes on. Runs on: the main thread.
 *
 * A shell splits $EDITOR, as everywhere, and looks whether the file exists; its path and the line
 * are arguments, never part of the script.
 */

#define EDITOR_ARGS_MAX 10
#define EDITOR_NAME_MAX 80
#define NOT_FOUND	125 /* our script: the file is missing */
#define CANNOT_RUN	126 /* shells: cannot run a program; or 127 */

struct editor {
	pid_t pid;
	int tty; /* that it has, until it ends */
};

/*
 * The command: arguments for execv(3) that end with NULL, borrowed from @buf,
 * @program ("vi -n" as in $EDITOR; a shell splits it) and @path. @where: buffer for the line.
 */
struct editor_command {
	char script[2 * EDITOR_PATH_MAX], where[EDITOR_PATH_MAX + 32];
	char *argv[EDITOR_ARGS_MAX];
};

/* Editors that take "FILE:LINE" after an option, and need an option to wait. */
static const char *const with_goto[] = { "code", "codium", "code-insiders" };

/* Editors that end their options at "--". */
static const char *const with_dashes[] = { "vi", "vim", "nvim", "view", "nano" };

/* Return whether the program that @command runs is in @list. */
static bool is_one_of(const char *command, const char *const *list, size_t nr)
{
	size_t size = strcspn(command, " \t");
	const char *slash = memrchr(command, '/', size);
	const char *name = slash ? slash + 1 : command;

	size -= (size_t)(name - command);
	for (size_t i = 0; i < nr; i++)
		if (strlen(list[i]) == size && !memcmp(list[i], name, size))
			return true;
	return false;
}

/* 0 or -errno with a sentence: @program is too long, or actions_editor_refusal(). */
static int editor_command(struct editor_command *c, const char *program, const char *path,
			  uint32_t line, struct err *e)
{
	bool jump = is_one_of(program, with_goto, ARRAY_SIZE(with_goto));
	const char *why = actions_editor_refusal(path);
	unsigned int n = 0;

	if (why)
		return err_set(e, -EINVAL, "source not opened: %.400s: %s", path, why);
	if (strlen(program) >= EDITOR_PATH_MAX)
		return err_set(e, -E2BIG, "editor not started: $EDITOR is too long");
	/* $1: the file, the rest: the arguments of the editor. */
	snprintf(c->script, sizeof(c->script),
		 "test -f \"$1\" && test -r \"$1\" || exit %d; shift; exec %s \"$@\"", NOT_FOUND,
		 program);
	if (jump)
		snprintf(c->where, sizeof(c->where), "%s:%u", path, line);
	else
		snprintf(c->where, sizeof(c->where), "+%u", line);
	c->argv[n++] = "sh";
	c->argv[n++] = "-c";
	c->argv[n++] = c->script;
	c->argv[n++] = "proftop";
	c->argv[n++] = (char *)path;
	if (jump)
		c->argv[n++] = "--goto";
	c->argv[n++] = c->where;
	if (!jump && is_one_of(program, with_dashes, ARRAY_SIZE(with_dashes)))
		c->argv[n++] = "--";
	if (!jump)
		c->argv[n++] = (char *)path;
	c->argv[n] = NULL;
	return 0;
}

/* The child: async-signal-safe calls only, for proftop has threads. */
static void __attribute__((noreturn))
become(const struct editor_command *c, char **envp, int in, int out)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0); /* that of the screen is not for others */
	setpgid(0, 0);
	tcsetpgrp(in, getpid()); /* all signals are blocked here, SIGTTOU among them */
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &action, NULL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (invoker_become())
		execve("/bin/sh", c->argv, envp);
	_exit(CANNOT_RUN);
}

/* The environment of the invoking user: HOME, USER and LOGNAME are of root behind sudo. */
static char **environment(char home[EDITOR_PATH_MAX], char user[2][EDITOR_NAME_MAX])
{
	static const char *const replaced[] = { "HOME=", "USER=", "LOGNAME=" };
	size_t nr = 0, kept = 0;
	char **envp;

	while (environ[nr])
		nr++;
	envp = xcalloc(nr + ARRAY_SIZE(replaced) + 1, sizeof(*envp));
	for (size_t i = 0; i < nr; i++) {
		bool is = false;

		for (size_t j = 0; j < ARRAY_SIZE(replaced) && invoker_home() && invoker_name();
		     j++)
			is |= !strncmp(environ[i], replaced[j], strlen(replaced[j]));
		if (!is)
			envp[kept++] = environ[i];
	}
	if (!invoker_home() || !invoker_name())
		return envp;
	snprintf(home, EDITOR_PATH_MAX, "HOME=%s", invoker_home());
	snprintf(user[0], EDITOR_NAME_MAX, "USER=%s", invoker_name());
	snprintf(user[1], EDITOR_NAME_MAX, "LOGNAME=%s", invoker_name());
	envp[kept++] = home;
	envp[kept++] = user[0];
	envp[kept++] = user[1];
	return envp;
}

/*
 * Run the editor on the terminal @in, @out, which no other code may use until it has ended. Return
 * 0 or -errno with a message.
 */
static int editor_start(struct editor *ed, const struct editor_command *c, int in, int out,
			struct err *e)
{
	char home[EDITOR_PATH_MAX], user[2][EDITOR_NAME_MAX];
	char **envp = environment(home, user);
	sigset_t all, before;
	int code;

	assert(c->argv[0] && in >= 0 && out >= 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ed->tty = in;
	ed->pid = fork();
	code = -errno;
	if (!ed->pid)
		become(c, envp, in, out);
	/* Set by parent and child: the order of the two is not known. */
	if (ed->pid > 0)
		setpgid(ed->pid, ed->pid);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(envp);
	if (ed->pid < 0)
		return err_set(e, code, "cannot start the editor: %s", strerror(-code));
	return 0;
}

/* Make @group the terminal's foreground job, without being stopped for it. */
static void give_terminal(int tty, pid_t group)
{
	sigset_t ttou, before;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &ttou, &before);
	tcsetpgrp(tty, group);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Return whether it has ended. Then the terminal is ours again. One that stops itself is continued.
 */
static bool editor_ended(struct editor *ed, int *status)
{
	pid_t pid;

	assert(ed->pid > 0);
	pid = waitpid(ed->pid, status, WNOHANG | WUNTRACED);

	if (!pid || (pid < 0 && errno == EINTR))
		return false;
	if (pid > 0 && WIFSTOPPED(*status)) {
		/* There is no shell here that could continue it. */
		give_terminal(ed->tty, ed->pid);
		kill(-ed->pid, SIGCONT);
		return false;
	}
	if (pid < 0)
		*status = 0;
	give_terminal(ed->tty, getpgrp());
	return true;
}

/* Send SIGTERM to the editor. */
static void editor_stop(const struct editor *ed)
{
	/* Of -1 and 0 the signal would go to other processes. */
	assert(ed->pid > 1);
	kill(-ed->pid, SIGTERM);
	kill(-ed->pid, SIGCONT);
}

/* Return 0 if the exit status @status is a success, else -errno with a message. */
static int editor_result(int status, const char *program, const char *path, struct err *e)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	if (code == NOT_FOUND)
		return err_set(e, -ENOENT, "source not found: %.400s", path);
	if (code == CANNOT_RUN || code == CANNOT_RUN + 1)
		return err_set(e, -ENOENT, "cannot run the editor: %.100s", program);
	return 0;
}

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
	bool first; /* of all threads, on a busy machine */
};

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
static void follow_size(struct app *a)
{
	unsigned int rows, cols;

	term_resized(a->term, &rows, &cols);
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
	follow_size(a);
}

/*
 * Stop, back to the shell. By SIGTSTP: the kernel ignores it if no shell
 * could continue us.
 */
static void suspend_app(struct app *a)
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

static void show_profile(struct app *a, struct profile *p)
{
	if (!p)
		return;
	model_take(&a->st, p);
	rewind_trapped(&a->st);
	a->dirty = true;
}

/* Show the profile that is ready; give the next one to the folding thread. */
static void take_profile(struct app *a)
{
	bool made;
	struct profile *p = folds_take(&a->st, &made);

	if (made) {
		table_rebuild(&a->st, a->st.view);
		a->dirty = true;
	} else {
		show_profile(a, p);
		/* Where the next profile is always ready, a baseline would never be folded. */
		folds_lend(&a->st);
	}
	if (folds_fd(&a->st) >= 0)
		return;
	p = sampler_take(a->st.sampler);
	if (p && !folds_begin(&a->st, p))
		show_profile(a, p);
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
	int fd = folds_fd(&a->st);

	return fd >= 0 ? fd : sampler_fd(a->st.sampler);
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
static void edit_source(struct app *a)
{
	const char *program = actions_editor(), *path = a->st.edit.path;
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
			follow_size(a);
			break;
		case SIGTSTP:
			suspend_app(a);
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
			suspend_app(a);
		if (a->st.edit.path[0])
			edit_source(a);
	}
}

static void draw_app(struct app *a)
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
	term_set(a->term, (enum theme)a->st.set.theme, a->st.set.mouse);
	a->canvas.halves = term_has_heats(a->term) && !a->canvas.ascii;
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
	/* The next profile is overdue. */
	note |= st->latest && st->now_ns - st->taken_ns > st->set.tick_ns + 1000000000ull;
	/* Pending output waits for the terminal, not for a timeout. */
	if (note || a->dirty || a->background || file_worker_permille(st->files, UINT64_MAX) >= 0)
		return NOTE_MS;
	return a->repaint_ns > st->now_ns ? (int)((a->repaint_ns - st->now_ns) / 1000000) + 1 : 0;
}

/*
 * A key is answered soon on a busy machine as well: this thread needs less than a hundredth of a
 * CPU. After a turn of much work (@used_ns of CPU) it leaves the CPU to others for half as long: it
 * keeps its priority, as the next key would be answered late. A nice value that the user chose is
 * kept.
 */
static void rest(const struct app *a, uint64_t used_ns)
{
	const struct timespec time = { .tv_nsec = (long)MIN(used_ns / 2, REST_MAX_NS) };

	if (a->first && used_ns > BUSY_NS)
		nanosleep(&time, NULL);
}

/* Show the progress of a file that takes long. Return false if none does. */
static bool show_progress(struct ui_state *st)
{
	int permille = file_worker_permille(st->files, st->now_ns);
	const char *doing;

	/* An error remains for a moment. */
	if (permille < 0 || ui_state_is_held(st))
		return false;
	doing = file_worker_doing(st->files);
	if (permille)
		ui_state_say(st, false, "%s: %d %%", doing, permille / 10);
	else
		ui_state_say(st, false, "%s", doing);
	return true;
}

static void loop(struct app *a)
{
	uint64_t used_ns = time_thread_ns();

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
		if (fds[4].revents ? outputs_file_result(&a->st, a->st.files)
				   : show_progress(&a->st))
			a->dirty = true;
		if (fds[6].revents && outputs_file_result(&a->st, a->st.folders)) {
			prompt_keys_words(&a->st);
			a->dirty = true;
		}
		if (a->dirty && !a->gone && !a->st.quit && !a->ended_by)
			draw_app(a);
		folds_lend(&a->st);
		rewind_refresh(&a->st);
		rest(a, time_thread_ns() - used_ns);
		used_ns = time_thread_ns();
	}
}

int app_run(struct sampler *s, const struct ui_config *config, struct err *e)
{
	const struct term_config looks = { wants_color(config->set.color),
					   (enum theme)config->set.theme, config->set.mouse };
	struct app a = { .signal_fd = -1, .dirty = true };
	bool ascii = config->set.ascii || !term_utf8();
	sigset_t set;
	int rc;

	a.first = !getpriority(PRIO_PROCESS, 0) && thread_go_first(APP_NICE);
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
	folds_start(&a.st);
	a.st.files = file_worker_new();
	a.st.folders = file_worker_new();
	a.st.packages = config->replayed ? NULL : packages_new(NULL, NULL);
	a.st.now_ns = time_now_ns();
	a.repaint_ns = a.st.now_ns + REPAINT_NS;
	if (config->set.window != PROFILE_WINDOW)
		sampler_set_window(s, config->set.window, config->set.window_ns);
	follow_size(&a);
	if (a.canvas.cells) {
		draw_app(&a);
		loop(&a);
	} else {
		rc = err_set(e, -ENOMEM, "out of memory for the screen");
	}
	term_close(a.term);
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

/*
 * --script: keys in, screen out, without a terminal. Runs on: the main thread.
 *
 * The screen is drawn after each key, as in the loop: page size and mouse
 * zones are set by drawing.
 */

/* A long recording takes minutes to its first profile; a tick is at most a minute. */
#define FIRST_MS 600000

#define TICK_MS	       65000
#define REPLAY_MS      10000 /* a recording has one profile, and another for each answer */
#define NAME_MAX_BYTES 24

/* In the names of keys, and in sizes and places behind them. */
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789^,- "

/* "3,10" */
static bool cell_of(const char *text, size_t size, struct key *key)
{
	const char *comma = memchr(text, ',', size);
	uint64_t row, col;

	if (!comma || number_u64(text, (size_t)(comma - text), 0, CANVAS_MAX, &row) ||
	    number_u64(comma + 1, size - (size_t)(comma - text) - 1, 0, CANVAS_MAX, &col))
		return false;
	*key = (struct key){ .code = K_MOUSE, .row = (uint16_t)row, .col = (uint16_t)col };
	return true;
}

/* Parse "click 3,10". Return false if it is not a mouse step. */
static bool mouse_of(const char *text, size_t size, struct key *key)
{
	static const struct {
		const char *name;
		enum key_button button;
	} buttons[] = {
		{ "click ", BUTTON_LEFT },
		{ "release ", BUTTON_RELEASED },
		{ "wheel-up ", BUTTON_UP },
		{ "wheel-down ", BUTTON_DOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(buttons); i++) {
		size_t n = strlen(buttons[i].name);

		if (size <= n || strncmp(text, buttons[i].name, n))
			continue;
		if (!cell_of(text + n, size - n, key))
			return false;
		key->button = buttons[i].button;
		return true;
	}
	return false;
}

/* Parse the text between < and >. Return false if it is unknown. */
static bool step_of(const char *text, size_t size, struct app_script_step *step)
{
	if (size == 4 && !strncmp(text, "tick", 4)) {
		step->kind = SCRIPT_TICK;
		return true;
	}
	if (size > 5 && !strncmp(text, "size ", 5)) {
		step->kind = SCRIPT_SIZE;
		return number_screen_size(text + 5, size - 5, CANVAS_MAX, &step->cols, &step->rows);
	}
	step->kind = SCRIPT_KEY;
	if (mouse_of(text, size, &step->key))
		return true;
	step->key.code = size == 2 && !strncmp(text, "lt", 2) ? '<'
			 : size > 1			      ? key_code(text, size)
							      : K_NONE;
	return step->key.code != K_NONE;
}

/* Return whether this looks like the name of a key; a single letter is typed as it is. */
static bool is_name(const char *text, size_t size)
{
	return size > 1 && (isalpha((unsigned char)*text) || *text == '^') &&
	       strspn(text, NAME_BYTES) >= size;
}

/* Return the next step and advance *@at. Bytes that are not UTF-8 are skipped. Pure. */
static struct app_script_step app_script_next(const char **at)
{
	struct app_script_step step = { .kind = SCRIPT_END };
	const char *end = **at == '<' ? memchr(*at, '>', strnlen(*at, NAME_MAX_BYTES)) : NULL;
	utf8proc_int32_t code;
	utf8proc_ssize_t n;

	if (end && step_of(*at + 1, (size_t)(end - *at) - 1, &step)) {
		*at = end + 1;
		return step;
	}
	step = (struct app_script_step){ .kind = SCRIPT_END };
	for (; **at; ++*at) {
		n = utf8proc_iterate((const utf8proc_uint8_t *)*at, -1, &code);
		if (n <= 0 || code <= 0)
			continue;
		*at += n;
		step.kind = SCRIPT_KEY;
		step.key.code = code == '\n' ? K_ENTER : (uint32_t)code;
		return step;
	}
	return step;
}

int app_script_check(const char *keys, struct err *e)
{
	struct app_script_step step;

	do {
		const char *end = *keys == '<' ? strchr(keys, '>') : NULL;
		size_t size = end ? (size_t)(end - keys) - 1 : 0;

		if (end && is_name(keys + 1, size) &&
		    (size >= NAME_MAX_BYTES || !step_of(keys + 1, size, &step)))
			return err_set(e, -EINVAL,
				       "--script: <%.*s>: unknown key\n"
				       "  proftop(1) has the names; <lt> is the key '<'",
				       (int)MIN(size, 60U), keys + 1);
	} while (app_script_next(&keys).kind != SCRIPT_END);
	return 0;
}

/* Take the next profile. Return false if none arrived within @ms, or none will: a recording ended.
 */
static bool wait_profile(struct ui_state *st, int ms)
{
	struct pollfd fd = { .fd = sampler_fd(st->sampler), .events = POLLIN };
	uint64_t end = time_now_ns() + (uint64_t)ms * 1000000;
	struct profile *p = sampler_take(st->sampler);

	while (!p && time_now_ns() < end) {
		bool settled = sampler_is_settled(st->sampler);

		if (poll(&fd, 1, settled ? 0 : 100) < 0 && errno != EINTR)
			return false;
		p = sampler_take(st->sampler);
		if (settled)
			break;
	}
	st->now_ns = time_now_ns();
	model_take(st, p);
	return p != NULL;
}

/* Return whether the strip, and the range of the past if one is shown, are the wanted ones. */
static bool past_arrived(const struct ui_state *st)
{
	const struct rewind *r = &st->rewind;

	return r->strip && r->query && r->strip->seq == r->query->seq &&
	       (!r->on ||
		(st->shown->past_begin_ns < r->end_ns && st->shown->past_end_ns > r->begin_ns));
}

/* Request the past of a grid, and take it as far as it arrives in time. */
static void wait_past(struct ui_state *st)
{
	struct pollfd fd = { .fd = sampler_past_fd(st->sampler), .events = POLLIN };
	uint64_t end = time_now_ns() + REPLAY_MS * 1000000ULL;
	struct profile *p;
	struct strip *strip;

	rewind_refresh(st);
	while (!past_arrived(st) && time_now_ns() < end) {
		if (poll(&fd, 1, 100) < 0 && errno != EINTR)
			return;
		sampler_take_past(st->sampler, &p, &strip);
		rewind_take(st, p, strip);
	}
}

static int run_steps(struct ui_state *st, struct canvas *c, const char *keys, struct err *e)
{
	bool replayed = st->config->replayed;
	struct app_script_step step;

	while (!st->quit && (step = app_script_next(&keys)).kind != SCRIPT_END) {
		if (step.kind == SCRIPT_TICK && !wait_profile(st, replayed ? REPLAY_MS : TICK_MS) &&
		    !replayed)
			return err_set(e, -ETIMEDOUT, "--script: timeout: no profile for <tick>");
		if (step.kind == SCRIPT_TICK && st->rewind.grid)
			wait_past(st);
		if (step.kind == SCRIPT_SIZE && canvas_resize(c, step.rows, step.cols))
			return err_set(e, -ENOMEM, "out of memory for the screen");
		if (step.kind == SCRIPT_KEY)
			input_key(st, &step.key);
		if (st->edit.path[0])
			ui_state_say(st, false, "no terminal for an editor here: %s:%u",
				     st->edit.path, st->edit.line);
		st->edit.path[0] = '\0';
		st->now_ns = time_now_ns();
		screen_draw(st, c);
	}
	return 0;
}

static int print_screen(const struct canvas *c, FILE *out, struct err *e)
{
	char *text = canvas_dump(c);
	int code = 0;

	if (!text)
		return err_set(e, -ENOMEM, "out of memory for the screen");
	if (fputs(text, out) == EOF || fflush(out))
		code = err_set(e, -errno, "cannot write the screen: %s", strerror(errno));
	free(text);
	return code;
}

int app_script_run(struct sampler *s, const struct ui_config *app,
		   const struct app_script_config *config, FILE *out, struct err *e)
{
	struct ui_state st;
	struct canvas c;
	int code;

	canvas_init(&c, app->set.ascii);
	model_init(&st, s, app, app->set.ascii);
	st.now_ns = time_now_ns();
	if (app->set.window != PROFILE_WINDOW)
		sampler_set_window(s, app->set.window, app->set.window_ns);
	code = canvas_resize(&c, config->rows, config->cols);
	if (code)
		err_set(e, code, "out of memory for the screen");
	else if (!wait_profile(&st, FIRST_MS))
		code = err_set(e, -ETIMEDOUT, "--script: timeout: no profile");
	if (!code) {
		screen_draw(&st, &c);
		code = run_steps(&st, &c, config->keys, e);
	}
	if (!code)
		code = st.quit_by;
	if (!code && !st.quit)
		code = print_screen(&c, out, e);
	model_fini(&st);
	canvas_fini(&c);
	return code;
}

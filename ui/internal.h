/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of ui/, and by tests; no other room includes it. */
#ifndef UI_INTERNAL_H
#define UI_INTERNAL_H

#include <stdio.h>
#include <sys/types.h>

#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/key/key.h"
#include "ui/state/state.h"

struct canvas;
struct file_worker;
struct push;
struct sampler;
struct serve;
struct task_stacks;

/* The actions of keys, clicks, commands and scripts. Runs on: the main thread. */

/* Do an action, as if @code were pressed. */
void actions_do(struct ui_state *st, enum action action, uint32_t code);

/* Export of the shown profile. The main thread; a file is written on another one. */

/* Export to @path and show the result; @format EXPORT_NR: by the ending. */
void outputs_export(struct ui_state *st, const char *path, enum export_format format, bool replace);

/*
 * Stacks of threads at this moment, in a box: of the mutex that most threads of the selected row
 * wait for (if none of them waits for one, of all shown threads), or of a process. Runs on: the
 * main thread.
 */

/* The contents of a box. */
struct asked_stacks {
	pid_t pid;
	bool is_lock, stop; /* stop: threads could be stopped */
	struct lock lock;
	const char *holder;	    /* static: no mutex; a sentence about the holder; NULL */
	char more[48];		    /* "2 more mutexes" */
	struct task_stacks *stacks; /* NULL: not read yet */
};

/* Start to look for a mutex; the answer is a box, or a message. */
void outputs_lock(struct ui_state *st);
/* Open the box of the process of the selected row: how to read is chosen there. */
void outputs_stacks_now(struct ui_state *st);
/* Of a process that may have no samples: it may sleep. */
void outputs_stacks_of(struct ui_state *st, pid_t pid);
/* Read the stacks of @a again, which is freed before the answer. */
void outputs_stacks_again(struct ui_state *st, const struct asked_stacks *a, bool stop);

/*
 * Actions of the selected row: its menu, and its source in an editor. The
 * main thread.
 */

/* Return why @action is impossible for the selected row; NULL: it is possible. */
const char *actions_row_refusal(const struct ui_state *st, enum action action);

/*
 * Actions on views, threads, names, columns, settings and files. The main
 * thread.
 */

/* Get the settings as they are now. */
void actions_settings(const struct ui_state *st, struct settings *set);
int actions_save_screen(struct ui_state *st, const char *path, bool replace);
/* Report the result of a file. Of one that exists a prompt decides. */
void outputs_file_done(struct ui_state *st, int code, const struct err *e);
/* Report the result of a file that was being written; false: none yet. */
bool outputs_file_result(struct ui_state *st, struct file_worker *f);

/*
 * The live screen: shows the sampler's profiles and handles keys.
 *
 * Runs on the main thread. session_screen() calls, in this order: term_check() (before
 * anything costs time), term_guard_start(), app_block_signals(), sampler_new(),
 * sampler_start(), app_run().
 */

/*
 * Block the signals that app_run() reads by signalfd (INT, TERM, HUP, WINCH,
 * TSTP, CONT, PIPE). Call it before the first thread starts: all threads
 * inherit it; a command that is forked later has to unblock them.
 */
void app_block_signals(void);
/*
 * Show the screen until a key or a signal ends it, and restore the terminal.
 * Return 0 (a key, or the terminal was closed), the number of the signal
 * (SIGTERM, SIGINT, SIGHUP), or -errno with a sentence.
 */
int app_run(struct sampler *s, const struct ui_config *config, struct err *e);

/*
 * The command line (':'): every action by its name, and commands with an
 * argument. Runs on: the main thread.
 */

/* Change a setting to its next value. */
void command_set_next(struct ui_state *st, const struct setting *s);

/*
 * Pickers: a list over the screen that narrows while one types. An entry that cannot be used is
 * shown with the reason. Runs on: the main thread.
 */

extern const struct dialog_ops dialog_events, dialog_frequency, dialog_processes, dialog_sort,
	dialog_columns, dialog_menu, dialog_users, dialog_settings, dialog_export, dialog_lock,
	dialog_stacks;

/* Open a box. @data: for fill() and use(); dialog_close() calls @drop. Both may be NULL. */
void dialog_open(struct ui_state *st, const struct dialog_ops *ops, void *data,
		 void (*drop)(void *data));
void dialog_close(struct ui_state *st);
/* Fill the entries again; keep the cursor on its entry. */
void dialog_refresh(struct ui_state *st);
void dialog_key(struct ui_state *st, const struct key *key);
/* Select the entry in shown line @at; use it if it is selected already. */
void dialog_click(struct ui_state *st, uint32_t at);

/* The user's editor, at a line of a file; app.c runs it. Runs on: the main thread. */

#define EDITOR_PATH_MAX 1024

/*
 * Why @path must not be given to an editor, NULL: it may. Names of source files are foreign bytes
 * (DWARF, jitdumps): one that is not absolute could be an option or a command ("+!id"), or a file
 * of the current directory.
 */
const char *actions_editor_refusal(const char *path);
/* $VISUAL, else $EDITOR; NULL: neither says anything. */
const char *actions_editor(void);

/*
 * ^C at the end of the program. A screen and batch mode take ^C as a request to end; while they do
 * so (a recording is written, threads are joined) it ends the process, as for any program.
 */

/*
 * From here on ^C ends the process. After two seconds say so on stderr. A ^C from before is
 * discarded. Takes SIGALRM. The main thread; once.
 */
void shutdown_begin(void);

/* Uses of each tick without a screen: --export, --listen, --push. Runs on: the main thread. */

struct outputs {
	struct serve *serve; /* --listen; NULL: none */
	struct push *push;   /* --push; NULL: none */
	struct pushed pushed;
	enum export_format format;
	enum ui_config_time time;
	const char *path;	  /* --export; NULL: none */
	struct profile *baseline; /* --baseline; NULL: none */
	char against[64];	  /* its file; clean */
	char host[65];		  /* "": a recording, maybe of another machine */
};

/* Keys and the mouse: which part of the screen gets them. Runs on: the main thread. */

/* Start and end of the state, and the profiles it takes in. Runs on: the main thread. */

/* One line of input at the bottom of the screen. Runs on: the main thread. */

void prompt_open(struct ui_state *st, enum prompt_kind kind);

/* Keys in the prompt. Runs on: the main thread. */

void prompt_keys_press(struct ui_state *st, const struct key *key);
/* Words that were gathered may be there: complete the command if it is as it was at the Tab. */
void prompt_keys_words(struct ui_state *st);
/* Find how the command being typed can continue. */
void prompt_keys_refresh(struct ui_state *st);

/* The sampling rate of the shown event. Runs on: the main thread. */

/* Return the rates that [ and ] step through, and their number. */
size_t rate_ladder(const double **ladder);
/* Request another rate. */
void rate_set(struct ui_state *st, double hz);
/* Request the next rate up or down, within the limit of the kernel. */
void rate_step(struct ui_state *st, bool up);

/*
 * Rewind: the views show a range of the past while sampling goes on. Runs on: the main thread.
 */

/* Show the newest profile again. */
void rewind_live(struct ui_state *st);
/* Handle a press or release in the strip: a column, or a range of them. */
void rewind_press(struct ui_state *st, unsigned int row, unsigned int col);
void rewind_release(struct ui_state *st, unsigned int row, unsigned int col);
/* Handle a key of the grid, if the arrows choose slices. Return false if it is another one. */
bool rewind_steer(struct ui_state *st, uint32_t code);
/* Request the strip of the current scope and screen, if that is another one. */
void rewind_refresh(struct ui_state *st);
/* Take a profile of the past and a strip, each NULL or owned by the state from now on. */
void rewind_take(struct ui_state *st, struct profile *p, struct strip *strip);
/* Do an action of the past: a key of the strip, or a step in time. */
void rewind_do(struct ui_state *st, enum action action, uint32_t code);
/* Stop at the match of a trap, if the newest profile has a new one. */
void rewind_trapped(struct ui_state *st);
/* Set a trap, as of --trap; "off": remove all; "": list them. */
void rewind_trap(struct ui_state *st, const char *arg);
/* Go to a time: "30s" ago, or "14:03[:22]"; "": back to now. */
void rewind_command(struct ui_state *st, const char *arg);

/* Write examples of times, or the meaning of @text. */
void rewind_time_hint(const struct ui_state *st, const char *text, char *buf, size_t size);

/*
 * The sampled events, as the picker and the command line change them. Runs on: the main thread.
 */

/*
 * Sample the events of the list @text instead, or with @add these also (one alone that is sampled:
 * no longer). @filter: of the last one, a tracepoint; "": none. A program with a probe is read as
 * file work, and the events are changed later. False: refused, with a message.
 */
bool sampling_event_use(struct ui_state *st, const char *text, const char *filter, bool add);
/* Stop sampling event number @at. */
void sampling_event_take_out(struct ui_state *st, uint32_t at);
/*
 * Give event number @at the modifiers "u", "kpp" or "", and keep its rate; or, if @filter is not
 * NULL, that filter, "": none. False: refused, with a message.
 */
bool sampling_event_edit(struct ui_state *st, uint32_t at, const char *modifiers,
			 const char *filter);

/* Draw everything on @c; the zones of the mouse are noted in the state. */
void screen_draw(struct ui_state *st, struct canvas *c);

/*
 * --script: keys from the command line, the screen on standard output. No
 * terminal is needed, and the same keys give the same screen from a replay.
 *
 * A script is text: each character is that key. Between < and > stand keys by
 * the names of the help page (<Enter>, <F6>, <^D>, <Space>, <lt>), and
 *   <tick>          wait for the next profile
 *   <size 100x30>   another size of the screen
 *   <click 3,10>    press the left button in line 3, cell 10 (from 0)
 * A '<' without a name behind it is the key '<'.
 *
 * Runs on: the main thread.
 */

enum script_kind { SCRIPT_END, SCRIPT_KEY, SCRIPT_TICK, SCRIPT_SIZE };

struct app_script_step {
	enum script_kind kind;
	struct key key;
	unsigned int rows, cols; /* SCRIPT_SIZE */
};

/* Check the names of keys. 0, or -EINVAL with a message: one of them is not known. Pure. */
int app_script_check(const char *keys, struct err *e);

struct app_script_config {
	const char *keys;
	unsigned int rows, cols;
};

/*
 * Wait for the first profile, press the keys, and print the screen unless
 * they quit. Return 0, or -errno with a sentence. The main thread.
 */
int app_script_run(struct sampler *s, const struct ui_config *app,
		   const struct app_script_config *config, FILE *out, struct err *e);

/*
 * A run of proftop from its options to its exit code: with a screen, without, from keys of the
 * command line, or as the filter of a recording. Starts the sampler, --listen and the rest, and
 * ends them again.
 *
 * Order matters: the guard before any thread, and signals blocked before sampler_new(), as
 * libraries start threads in it that must not receive one.
 *
 * Runs on: the main thread, once. Each returns an exit code, with a message unless it is EXIT_DONE
 * or a signal. Remarks go to standard error.
 */

/*
 * The guard: a small parent that restores the terminal after any death of
 * proftop, SIGKILL included. It has no thread, no curses and no profile.
 */

/*
 * Fork. The child goes on as proftop, and returns the pid of the guard; it gets SIGTERM when the
 * guard dies. The parent does not return: it passes on signals and job
 * control, waits, and exits as the child did (128 + n after signal n,
 * reported on stderr, with the terminal restored). Return 0 if fork
 * fails: proftop then runs unguarded. Call it before any thread exists and
 * before anything is printed.
 */
pid_t term_guard_start(void);
/*
 * Report to the guard, if there is one, that proftop ends with @code. A thread that hangs in
 * the kernel (a dead file system) keeps even a killed process from ending:
 * the guard then waits for half a second at most.
 */
void term_guard_end(int code);

#endif

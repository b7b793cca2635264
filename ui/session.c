// SPDX-License-Identifier: GPL-2.0-or-later
/* FILE */
#include "ui/internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/ring/ring.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/export/export.h"
#include "ui/serve/serve.h"
#include "ui/text/text.h"

static int exit_of(int code)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
	case -ENOLCK:
		return EXIT_NOT_PERMITTED;
	case -ESRCH:
		return EXIT_NO_TARGET;
	default:
		return EXIT_FAILED;
	}
}

/* An address or a file of --listen and --push. */
static int exit_of_export(int code)
{
	return code == -EINVAL ? EXIT_USAGE : exit_of(code);
}

/* A command that does not start is a missing target. */
static int exit_of_start(const struct options *o, int code)
{
	if (o->config.command && (code == -ENOENT || code == -EACCES || code == -ENOEXEC))
		return EXIT_NO_TARGET;
	return exit_of(code);
}

/* Convert the result of a run (0, a signal, -errno) to an exit code. */
static int exit_of_run(int code)
{
	return code > 0 ? EXIT_SIGNAL + code : code < 0 ? exit_of(code) : EXIT_DONE;
}

/* In the child that becomes the command: unblock our signals. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int session_script(const struct options *o, struct err *e)
{
	struct sampler *s;
	int code;

	signal(SIGPIPE, SIG_IGN);
	sampler_sandbox_start(false);
	code = sampler_new(&s, &o->config, e);
	if (code)
		return exit_of(code);
	code = exit_of_run(batch_script(s, stdout, o->fields, e));
	sampler_free(s);
	return code;
}

int session_stacks(const struct options *o, struct err *e)
{
	const struct task_stacks_want want = { .pid = o->stacks,
					       .stop = !o->no_stop,
					       .languages = o->config.languages,
					       .frames = o->config.shown_frames };
	struct task_stacks *t;
	int code;

	signal(SIGPIPE, SIG_IGN);
	sampler_sandbox_start(false);
	sampler_readers_start();
	code = task_stacks_read(&t, &want, e);
	if (code)
		return exit_of(code);
	(o->format == OPTIONS_NDJSON ? stacks_print_ndjson : stacks_print_text)(stdout, t);
	task_stacks_free(t);
	return EXIT_DONE;
}

/* Complete the recording, if any, and report its size. @code: the result of the run. */
static int end_recording(const struct options *o, struct sampler *s, int code, struct err *e)
{
	struct sampler_recorded r;
	struct err note = { "" };
	char unmapped[80], samples[40];
	int rc;

	rc = sampler_record_end(s, &r, &note);
	/* The reader of the pipe has exited: it has all that it wants. */
	if (rc == -EPIPE)
		return code;
	if (rc) {
		*e = note;
		return code == EXIT_DONE ? exit_of(rc) : code;
	}
	if (!r.path)
		return code;
	snprintf(samples, sizeof(samples), "%llu samples, ", (unsigned long long)r.nr_samples);
	err_set(&note, 0, "%s: %s%.1f MiB%s%s", r.path, r.counted ? samples : "",
		(double)r.bytes / (1 << 20),
		r.nr_dropped ? "; samples were lost, the disk was too slow: see proftop --replay"
			     : "",
		recording_unmapped(r.nr_unmapped, unmapped));
	complain(&note);
	return code;
}

/* Complete the files of --record and --keep. @code: the result of the run. */
static int end_files(const struct options *o, struct sampler *s, int code, struct err *e)
{
	struct err why;

	code = end_recording(o, s, code, e);
	if (!sampler_keep_end(s, &why))
		return code;
	complain(&why);
	return code == EXIT_DONE ? EXIT_FAILED : code;
}

/* Start a session; a recording from a pipe can be interrupted. Sets *@ended: exit with the code. */
static int start_session(struct sampler **s, struct sampler_config *config, bool keys, bool *ended,
			 struct err *e)
{
	int code, end;

	*ended = false;
	sampler_sandbox_start(keys);
	if (!config->replay) {
		sampler_readers_start();
		return sampler_new(s, config, e);
	}
	config->reading = reading_step;
	reading_begin(keys);
	code = sampler_new(s, config, e);
	end = reading_end();
	if (!code || end < 0)
		return code;
	*ended = true;
	e->text[0] = '\0';
	return end ? EXIT_SIGNAL + end : EXIT_DONE;
}

bool session_is_piped(const struct options *o)
{
	return o->config.replay && !strcmp(o->config.replay, "-");
}

/* Start sampling, then answering. Return EXIT_DONE, or an exit code with a message. */
static int start_serving(struct sampler *s, struct serve *sv, const struct options *o,
			 const char *host, struct err *e)
{
	int code = sampler_start(s, e);

	if (code)
		return exit_of_start(o, code);
	sampler_drop_thread_caps();
	return serve_start(sv, s, !o->config.replay, host, e) ? EXIT_FAILED : EXIT_DONE;
}

int session_batch(struct options *o, struct err *e)
{
	struct outputs exporting;
	struct batch_config config = {
		.sink = o->quiet		      ? NULL
			: o->format == OPTIONS_NDJSON ? batch_ndjson
						      : batch_text,
		.each = outputs_tick,
		.each_context = &exporting,
		.pushed = o->push ? &exporting.pushed : NULL,
		.sort = (enum ui_config_sort)o->set.sort,
		.filter = o->set.filter,
		.rows = o->rows,
		.latency = o->set.time == CONFIG_TIME_LATENCY,
		.ascii = o->set.ascii || !term_utf8(),
		/* A recording is one tick. */
		.nr_ticks = o->config.replay ? 1 : o->nr_ticks,
	};
	struct sampler_config sampled = o->config;
	struct sampler *s;
	struct err note;
	bool ended;
	int code = outputs_init(&exporting, o, e);

	if (code)
		return code;
	/* With -d a tick is that long, else it is the recording. */
	sampled.follow = session_is_piped(o) && setting_given(&o->set, "delay");
	if (sampled.follow)
		config.nr_ticks = o->nr_ticks;
	batch_block_signals();
	pthread_atfork(NULL, NULL, unblock_signals);
	code = outputs_open(&exporting, o, e);
	if (code)
		return exit_of_export(code);
	if (o->remark[0]) {
		err_set(&note, 0, "%s", o->remark);
		complain(&note);
	}
	code = start_session(&s, &sampled, false, &ended, e);
	if (code || ended) {
		outputs_close(&exporting);
		return ended ? code : exit_of(code);
	}
	code = start_serving(s, exporting.serve, o, exporting.host, e);
	if (!code) {
		code = exit_of_run(batch_run(s, stdout, &config, e));
		shutdown_begin();
		code = end_files(o, s, code, e);
	}
	if (!outputs_finish(&exporting, &note) && code == EXIT_DONE)
		code = EXIT_FAILED;
	if (note.text[0])
		complain(&note);
	sampler_free(s);
	return code;
}

/*
 * If the guard is killed, the shell takes the terminal back before it is
 * restored; the kernel then requires SIGTTOU to be blocked.
 */
static void block_background_stop(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void configure(struct ui_config *config, const struct options *o)
{
	ui_config_init(config);
	config->set = o->set;
	config->set.hz = o->config.hz;
	config->automatic_hz = o->automatic_hz;
	config->replayed = o->config.replay != NULL;
	config->recording = o->config.replay;
	config->saves = true;
	/* It may be of another machine. */
	if (config->replayed)
		config->host = "";
}

/* Complete the saved settings where no option is given; for the live screen only. */
static int take_settings(struct options *o, struct err *e)
{
	const struct sampler_config before = o->config;
	int code, time = o->set.time;
	struct err why;

	o->set.given[setting_index("time")] |= setting_given(&o->set, "latency");
	code = settings_load(&o->set, e);
	if (code == -EINVAL)
		return code;
	/* Unreadable: report and ignore it. */
	if (code) {
		complain(e);
		snprintf(o->remark, sizeof(o->remark), "settings ignored: %.200s", e->text);
		o->config.remark = o->remark;
		e->text[0] = '\0';
	}
	if (o->set.max_hz > 0)
		o->set.hz = MIN(o->set.hz, o->set.max_hz);
	/* Events of -e are shown, and a recording has its events. */
	if (o->config.nr_events || o->config.replay) {
		o->set.time = time;
	} else if (o->set.time != time && options_add_time(o, &why)) {
		memcpy(o->config.events, before.events, sizeof(before.events));
		o->config.nr_events = before.nr_events;
		o->set.time = CONFIG_TIME_CPU;
	}
	options_apply(o);
	/* --sort is of the functions. */
	if (setting_given(&o->set, "sort"))
		o->set.sorts[0][0] = '\0';
	return 0;
}

int session_print_settings(struct options *o, struct err *e)
{
	if (take_settings(o, e))
		return EXIT_FAILED;
	if (o->config.hz == o->automatic_hz)
		o->set.hz = 0;
	if (setting_given(&o->set, "sort"))
		snprintf(o->set.sorts[0], sizeof(o->set.sorts[0]), "%s",
			 ui_config_sort_name((enum ui_config_sort)o->set.sort));
	settings_print(stdout, &o->set);
	return EXIT_DONE;
}

static unsigned int size_of(unsigned int given, const char *variable, unsigned int usual)
{
	const char *text = getenv(variable);
	uint64_t n;

	if (given)
		return given;
	return text && !number_u64(text, strlen(text), 1, CANVAS_MAX, &n) ? (unsigned int)n : usual;
}

/* Read the file of --baseline. Return EXIT_DONE, or an exit code with a message. */
static int take_baseline(struct ui_config *config, const struct options *o, struct err *e)
{
	int code = o->baseline ? baseline_file_read(&config->baseline, o->baseline, &o->config, e)
			       : 0;

	config->baseline_path = o->baseline;
	return code ? exit_of(code) : EXIT_DONE;
}

int session_keys(const struct options *o, struct err *e)
{
	const struct script_config script = {
		.keys = o->script,
		.rows = size_of(o->rows_of_screen, "LINES", 24),
		.cols = size_of(o->cols, "COLUMNS", 80),
	};
	struct sampler_config sampled = o->config;
	struct ui_config config;
	struct users *users;
	struct sampler *s;
	int code;

	if (script_check(o->script, e))
		return EXIT_USAGE;
	configure(&config, o);
	config.users = users = users_load(NULL);
	config.set.ascii |= !term_utf8();
	sampled.command_quiet = true;
	signal(SIGPIPE, SIG_IGN);
	sampler_sandbox_start(true);
	sampler_readers_start();
	code = sampler_new(&s, &sampled, e);
	if (code) {
		users_free(users);
		return exit_of(code);
	}
	code = take_baseline(&config, o, e);
	if (!code) {
		code = sampler_start(s, e);
		sampler_drop_thread_caps();
		code = code ? exit_of_start(o, code)
			    : end_files(o, s,
					exit_of_run(script_run(s, &config, &script, stdout, e)), e);
	}
	sampler_free(s);
	users_free(users);
	return code;
}

int session_screen(struct options *o, struct err *e)
{
	struct sampler_config sampled;
	struct ui_config config;
	struct users *users;
	struct sampler *s;
	char host[65];
	bool ended;
	int code = app_check(e);

	if (code)
		return EXIT_FAILED;
	if (take_settings(o, e))
		return EXIT_FAILED;
	configure(&config, o);
	config.user_keys = &o->set.user_keys;
	code = outputs_listen(&config.serve, o, e);
	if (code)
		return exit_of_export(code);
	if (o->remark[0])
		o->config.remark = o->remark;
	sampled = o->config;
	config.users = users = users_load(NULL);
	sampled.follow = session_is_piped(o);
	/* The command's output would be drawn over the screen. */
	sampled.command_quiet = true;
	term_guard_start();
	sampled.guard = term_guard_pid();
	app_block_signals();
	block_background_stop();
	pthread_atfork(NULL, NULL, unblock_signals);
	code = start_session(&s, &sampled, true, &ended, e);
	if (code || ended) {
		serve_free(config.serve);
		users_free(users);
		return ended ? code : exit_of(code);
	}
	code = take_baseline(&config, o, e);
	if (!code)
		code = start_serving(s, config.serve, o, config.replayed ? "" : outputs_host(host),
				     e);
	if (!code) {
		code = exit_of_run(app_run(s, &config, e));
		shutdown_begin();
		code = end_files(o, s, code, e);
	}
	serve_free(config.serve);
	sampler_free(s);
	users_free(users);
	return code;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Start of proftop: descriptors, environment, heap and options; then a list, or a session; errors
 * and remarks on standard error, progress while a recording is opened.
 * Descriptors 0-2 come before any file that is opened.
 */
#include "ui/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "ui/cli/cli.h"
#include "ui/draw/draw.h"
#include "ui/export/export.h"
#include "ui/serve/serve.h"
#include "ui/text/text.h"
#include "symbols/base/text.h"
#include "ui/push/push.h"
#include "ui/state/state.h"

/* Read the limits of this system. */
static void read_limits(struct options_limits *limits)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");

	limits->max_hz = 0;
	limits->nr_cpus = (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 0);
	if (!f)
		return;
	if (fscanf(f, "%lf", &limits->max_hz) != 1)
		limits->max_hz = 0;
	fclose(f);
}

/*
 * Opening a recording, which may take as long as a pipe is open, or minutes for a large file: a
 * line on the terminal, and the keys and signals that end it. Signals are blocked.
 */

#define SHOW_NS	 250000000ULL
#define DRAIN_NS 2000000000ULL

static struct {
	int tty; /* 0: none */
	bool keys, shown;
	struct termios before;
	uint64_t show_ns;  /* time of the next line */
	uint64_t drain_ns; /* ^C was pressed: stop then; 0: it was not */
	int ended_by;	   /* -1: not ended; 0: q; else a signal */
} reading;

/*
 * Begin. @keys: q on the terminal quits; else only signals are read, and the line goes to standard
 * error, if that is a terminal.
 */
static void reading_begin(bool keys)
{
	int fd = keys			 ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
		 : isatty(STDERR_FILENO) ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
					 : -1;
	struct termios raw;

	memset(&reading, 0, sizeof(reading));
	reading.ended_by = -1;
	reading.show_ns = time_now_ns() + SHOW_NS;
	if (fd < 0)
		return;
	reading.tty = fd;
	if (!keys || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &reading.before))
		return;
	raw = reading.before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	reading.keys = !tcsetattr(fd, TCSANOW, &raw);
}

/* Return the next pending signal; 0: none. */
static int next_signal(void)
{
	static const struct timespec now = { 0, 0 };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sig = sigtimedwait(&set, NULL, &now);
	return sig > 0 ? sig : 0;
}

/* Return whether q was pressed; other keys are left out. */
static bool is_quit_pressed(void)
{
	char keys[64];
	ssize_t nr = reading.keys ? read(reading.tty, keys, sizeof(keys)) : 0;

	return nr > 0 && memchr(keys, 'q', (size_t)nr);
}

static void show(uint64_t bytes)
{
	uint64_t now = time_now_ns();

	if (reading.tty <= 0 || now < reading.show_ns)
		return;
	reading.show_ns = now + SHOW_NS;
	reading.shown = true;
	if (!bytes) {
		dprintf(reading.tty, "\rreading   %s: quit\033[K", reading.keys ? "q" : "^C");
		return;
	}
	dprintf(reading.tty, "\rreading %.1f MB   %s%s\033[K", (double)bytes / 1e6,
		reading.drain_ns ? "stopping" : "^C: show it now",
		reading.keys ? "   q: quit" : "");
}

/*
 * For sampler_config.reading. The first ^C lets the rest of a pipe through for up to 2 s, since
 * it ends the writer also; the second one stops. q, SIGTERM and SIGHUP give up, and so does ^C when
 * no pipe is read.
 */
static enum file_reading reading_step(uint64_t bytes)
{
	int sig = next_signal();

	if (is_quit_pressed()) {
		reading.ended_by = 0;
		return FILE_READING_CANCEL;
	}
	if ((sig && sig != SIGINT) || (sig == SIGINT && !bytes)) {
		reading.ended_by = sig;
		return FILE_READING_CANCEL;
	}
	if (reading.drain_ns && (sig || time_now_ns() > reading.drain_ns))
		return FILE_READING_STOP;
	if (sig)
		reading.drain_ns = time_now_ns() + DRAIN_NS;
	show(bytes);
	return reading.drain_ns ? FILE_READING_DRAIN : FILE_READING_GO;
}

/* Clear the line. Returns the signal that ended proftop, 0: q, or -1: none. */
static int reading_end(void)
{
	if (reading.tty > 0) {
		if (reading.shown)
			dprintf(reading.tty, "\r\033[K");
		if (reading.keys)
			tcsetattr(reading.tty, TCSANOW, &reading.before);
		close(reading.tty);
	}
	reading.tty = 0;
	return reading.ended_by;
}

/* Print an error line by line, cleaned: it may have foreign text. Not while a screen is shown. */
static void complain(const struct err *e)
{
	const char *line = e->text, *before = "proftop: ";
	char clean[sizeof(e->text)];

	while (*line) {
		size_t size = strcspn(line, "\n");

		fprintf(stderr, "%s%s\n", before,
			text_sanitise(clean, sizeof(clean), line, size).str);
		before = "";
		line += size + (line[size] == '\n');
	}
}

/*
 * Uses of each tick without a screen: --export, --listen, --push.
 */

static const char *outputs_host(char host[static 65])
{
	char name[65] = "";

	if (gethostname(name, sizeof(name) - 1))
		name[0] = '\0';
	return text_format(host, 65, "%s", name).str;
}

static int outputs_init(struct outputs *x, const struct options *o, struct err *e)
{
	const char *slash = o->baseline ? strrchr(o->baseline, '/') : NULL;

	*x = (struct outputs){ .path = o->export_path, .time = (enum ui_config_time)o->set.time };
	if (o->baseline)
		text_format(x->against, sizeof(x->against), "%s",
			    slash && slash[1] ? slash + 1 : o->baseline);
	if (!o->config.replay)
		outputs_host(x->host);
	if (!o->export_path)
		return EXIT_DONE;
	x->format = o->export_format ? export_format_parse(o->export_format)
				     : export_format_of(o->export_path);
	if (x->format != EXPORT_NR && (!o->baseline || export_compares(x->format)))
		return EXIT_DONE;
	if (x->format != EXPORT_NR)
		err_set(e, -EINVAL,
			"--baseline does not apply to --export %s: %s has no changes\n"
			"  use .html, .svg or .folded",
			o->export_path, export_words(x->format).name);
	else if (o->export_format)
		err_set(e, -EINVAL,
			"--export-format=%s: unknown format\n"
			"  must be html, svg, pprof, speedscope, firefox, folded, json, text or "
			"otlp",
			o->export_format);
	else
		err_set(e, -EINVAL,
			"--export %s: the ending names no format\n"
			"  use .html, .svg, .pb.gz, .speedscope.json, .firefox.json, .folded, "
			".json, .txt or .otlp.pb, or --export-format",
			o->export_path);
	return EXIT_USAGE;
}

/* Write the file with the rights of the invoking user, as :export does. */
static int write_file(const char *path, const struct out *out, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e);

	if (code)
		return code;
	code = file_work_write_text(path, out->data ? out->data : "", out->size, true, e);
	invoker_end(&saved);
	return code;
}

static int outputs_tick(const struct batch_config *config, struct profile *p, struct err *e)
{
	struct outputs *x = config->each_context;
	struct snapshot_scope scope;
	struct out out = { .failed = false };
	int code;

	push_tick(x->push, p, &x->pushed);
	serve_publish(x->serve, p, config->pushed);
	if (!x->path)
		return 0;
	export_scope_all(&scope, export_event(p));
	export_scope_time(&scope, p, x->time);
	memcpy(scope.host, x->host, sizeof(scope.host));
	scope.baseline = x->baseline;
	memcpy(scope.against, x->against, sizeof(scope.against));
	if (config->filter)
		snprintf(scope.find, sizeof(scope.find), "%s", config->filter);
	code = export_write(&out, p, &scope, x->format, e);
	if (!code && strcmp(x->path, "-"))
		code = write_file(x->path, &out, e);
	else if (!code && (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout)))
		code = -errno;
	out_fini(&out);
	return code;
}

static int outputs_listen(struct serve **sv, struct options *o, struct err *e)
{
	size_t size = strlen(o->remark);

	*sv = NULL;
	if (!o->listen)
		return 0;
	if (size && size + 2 < sizeof(o->remark))
		size += (size_t)snprintf(o->remark + size, sizeof(o->remark) - size, "; ");
	return serve_new(sv, o->listen, (enum ui_config_time)o->set.time, o->remark + size,
			 sizeof(o->remark) - size, e);
}

/* Start the thread of --push; a warning is added to the remark. 0 or -errno with a message. */
static int open_push(struct outputs *x, struct options *o, struct err *e)
{
	size_t size = strlen(o->remark);
	char host[65];
	const struct push_config config = {
		.url = o->push,
		.labels = o->push_labels,
		.nr_labels = o->nr_push_labels,
		.headers = o->push_headers,
		.authority = o->push_ca,
		.timeout_ns = o->push_timeout_ns,
		.host = o->config.replay ? "" : outputs_host(host),
	};

	if (!o->push)
		return 0;
	if (size && size + 2 < sizeof(o->remark))
		size += (size_t)snprintf(o->remark + size, sizeof(o->remark) - size, "; ");
	return push_new(&x->push, &config, o->remark + size, sizeof(o->remark) - size, e);
}

static void outputs_close(struct outputs *x)
{
	serve_free(x->serve);
	push_free(x->push, &x->pushed);
	x->serve = NULL;
	x->push = NULL;
}

static int outputs_open(struct outputs *x, struct options *o, struct err *e)
{
	int code = outputs_listen(&x->serve, o, e);

	if (!code)
		code = open_push(x, o, e);
	if (code)
		outputs_close(x);
	return code;
}

static bool outputs_finish(struct outputs *x, struct err *note)
{
	const struct pushed *p = &x->pushed;
	bool pushing = x->push != NULL;
	struct pushed_sum dropped;

	note->text[0] = '\0';
	outputs_close(x);
	if (!pushing)
		return true;
	dropped = pushed_dropped(p);
	err_set(note, 0, "pushed %llu profiles, %llu samples",
		(unsigned long long)p->delivered.profiles,
		(unsigned long long)p->delivered.samples);
	if (p->taken.profiles != p->delivered.profiles)
		err_set(note, 0,
			"pushed %llu profiles, %llu samples; dropped %llu profiles, %llu "
			"samples%s%s",
			(unsigned long long)p->delivered.profiles,
			(unsigned long long)p->delivered.samples,
			(unsigned long long)dropped.profiles, (unsigned long long)dropped.samples,
			p->error[0] ? ": " : "", p->error);
	return !dropped.profiles;
}

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

static int session_script(const struct options *o, struct err *e)
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

static int session_stacks(const struct options *o, struct err *e)
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
	stacks_print(stdout, t, o->format == OPTIONS_NDJSON);
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

static bool session_is_piped(const struct options *o)
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

/* Read the file of --baseline. Return EXIT_DONE, or an exit code with a message. */
static int take_baseline(struct profile **out, const struct options *o, struct err *e)
{
	int code = o->baseline ? baseline_file_read(out, o->baseline, &o->config, e) : 0;

	return code ? exit_of(code) : EXIT_DONE;
}

static int session_batch(struct options *o, struct err *e)
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
	code = take_baseline(&exporting.baseline, o, e);
	if (!code)
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
	profile_free(exporting.baseline);
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
	config->baseline_path = o->baseline;
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

static int session_print_settings(struct options *o, struct err *e)
{
	if (take_settings(o, e))
		return EXIT_FAILED;
	if (o->config.hz == o->automatic_hz)
		o->set.hz = 0;
	if (setting_given(&o->set, "sort"))
		snprintf(o->set.sorts[0], sizeof(o->set.sorts[0]), "%s",
			 setting_at(setting_index("sort"))->words[o->set.sort]);
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

static int session_keys(const struct options *o, struct err *e)
{
	const struct app_script_config script = {
		.keys = o->script,
		.rows = size_of(o->rows_of_screen, "LINES", 24),
		.cols = size_of(o->cols, "COLUMNS", 80),
	};
	struct sampler_config sampled = o->config;
	struct ui_config config;
	struct users *users;
	struct sampler *s;
	int code;

	if (app_script_check(o->script, e))
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
	code = take_baseline(&config.baseline, o, e);
	if (!code) {
		code = sampler_start(s, e);
		sampler_drop_thread_caps();
		code = code ? exit_of_start(o, code)
			    : end_files(o, s,
					exit_of_run(app_script_run(s, &config, &script, stdout, e)),
					e);
	}
	sampler_free(s);
	users_free(users);
	return code;
}

static int session_screen(struct options *o, struct err *e)
{
	struct sampler_config sampled;
	struct ui_config config;
	struct users *users;
	struct sampler *s;
	char host[65];
	bool ended;
	int code = term_check(e);

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
	sampled.guard = term_guard_start();
	app_block_signals();
	block_background_stop();
	pthread_atfork(NULL, NULL, unblock_signals);
	code = start_session(&s, &sampled, true, &ended, e);
	if (code || ended) {
		serve_free(config.serve);
		users_free(users);
		return ended ? code : exit_of(code);
	}
	code = take_baseline(&config.baseline, o, e);
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

#define HEAPS		2
#define HEAP_PIECE	(16 << 10)
#define HEAP_PIECES_MAX 16384	    /* of vm.max_map_count, 65530 */
#define HEAP_KEPT	(256 << 10) /* free at its end */

/*
 * Open 0-2 if they are closed, or the next file opened would become "standard
 * output". Return the closed ones as bits.
 */
static unsigned int open_standard_fds(void)
{
	unsigned int closed = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		closed |= 1U << fd;
		if (open("/dev/null", O_RDWR) != fd)
			_exit(EXIT_FAILED);
	}
	return closed;
}

/*
 * Use few heaps instead of one per thread, each of which would keep freed
 * memory. Larger blocks, as the arrays of a profile, are mapped separately and
 * returned: among small blocks that stay, the holes they leave grow for hours.
 * Not the many slices of a long history, for maps have a limit. Sampler
 * threads add to memory apart (urgent_alloc()), so that none waits for a heap.
 */
static void set_up_heap(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, HEAPS);
	mallopt(M_MMAP_THRESHOLD, HEAP_PIECE);
	mallopt(M_MMAP_MAX, HEAP_PIECES_MAX);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
#endif
}

/* Finish output on standard output. Return @code, or an error if it could not be written. */
static int end_output(int code, struct err *e)
{
	/* The reader of a pipe has all that it wants. */
	if (!fflush(stdout) || errno == EPIPE)
		return code;
	err_set(e, -errno, "cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

/* Print the list or report of an option that starts no session. */
static int print_list(struct options *o, struct err *e)
{
	int code = EXIT_DONE;

	switch (o->action) {
	case OPTIONS_VERSION:
		printf("proftop %s\n", PROFTOP_VERSION);
		break;
	case OPTIONS_PRINT_CONFIG:
		code = session_print_settings(o, e);
		break;
	case OPTIONS_COMPLETION:
		completion_print(stdout, o->shell);
		break;
	default:
		code = options_print(stdout, o);
		break;
	}
	return end_output(code, e);
}

static bool has_tty(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Decide between screen and batch; report if the screen is impossible. */
static int run(struct options *o, unsigned int closed, struct err *e)
{
	int code;

	if (closed & 1U << STDOUT_FILENO) {
		err_set(e, -EBADF,
			"standard output is closed\n  run it in a terminal, or redirect the "
			"output, as in 'proftop -b -n 1 >file'");
		return EXIT_FAILED;
	}
	if (o->action == OPTIONS_STACKS)
		return end_output(session_stacks(o, e), e);
	if (o->action != OPTIONS_RUN) {
		signal(SIGPIPE, SIG_IGN);
		return print_list(o, e);
	}
	if (o->script)
		return session_keys(o, e);
	if (!o->batch && !isatty(STDOUT_FILENO)) {
		code = options_set_batch(o, e);
		if (code)
			return code;
	}
	if (o->batch)
		return o->format == OPTIONS_PERF_SCRIPT ? session_script(o, e)
							: session_batch(o, e);
	if (!isatty(STDIN_FILENO) && !(session_is_piped(o) && has_tty())) {
		err_set(e, -ENOTTY,
			"standard input is %s: no keys would reach the screen\n"
			"  run it from a terminal, or without a screen: 'proftop -b'",
			closed & 1U << STDIN_FILENO ? "closed" : "not a terminal");
		return EXIT_FAILED;
	}
	return session_screen(o, e);
}

/*
 * Forget the variables of a caller with fewer rights that let a library write a file: libcurl, and
 * so libdebuginfod, would make it with the rights of proftop.
 */
static void clean_environment(void)
{
	if (invoker_is_other() || invoker_is_unprivileged())
		unsetenv("SSLKEYLOGFILE");
}

int main(int argc, char **argv)
{
	unsigned int closed = open_standard_fds();
	struct options_limits limits;
	struct err e = { "" };
	/* Large: on the stack it would take the room of callers in the stack copies of samples. */
	static struct options o;
	int code;

	/* A parent may ignore it, which is inherited: then children cannot be waited for. */
	signal(SIGCHLD, SIG_DFL);
	invoker_init();
	clean_environment();
	invoker_set_cache();
	time_read_namespace("");
	set_up_heap();
	/* LC_CTYPE only: numbers are formatted in the C locale. */
	setlocale(LC_CTYPE, "");
	read_limits(&limits);
	code = options_parse(&o, argc, argv, &limits, &e);
	sampler_drop_caps(o.config.command != NULL, o.config.replay != NULL);
	if (code == EXIT_DONE)
		code = run(&o, closed, &e);
	if (e.text[0] && code != EXIT_DONE)
		complain(&e);
	options_fini(&o);
	/* Not all files: work that was left may hang with one. */
	fflush(stdout);
	sampler_sandbox_stop();
	term_guard_end(code);
	return code;
}

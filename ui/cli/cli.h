/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line, settings, and output without a screen.
 *
 * The caller owes: argv; the settings file of the user.
 *
 * The room does: parses and checks each value once, with one text for each error; prints batch
 * output with fields that are a contract (doc/, man page).
 *
 * Not for: keys (ui/key), views.
 */
#ifndef UI_CLI_CLI_H
#define UI_CLI_CLI_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "ui/key/key.h"

struct batch_row;
struct file_worker;
struct packages;
struct sampler;
struct serve;
struct user_keys;
struct users;

/*
 * --baseline: the profile of a recording or of a folder of --keep, which the rows are compared
 * with.
 *
 * The main thread, before the screen.
 */

/*
 * Read the profile of @path, with the folder of files and the frames of @config. Blocks; SIGINT,
 * SIGTERM and SIGHUP end it. 0, or -errno with a sentence; *@out is the caller's.
 */
int baseline_file_read(struct profile **out, const char *path, const struct sampler_config *config,
		       struct err *e);

/*
 * Completion of the command line in shells. Runs on: the main thread, before any
 * other.
 */

/* Print completion for @shell: "bash", "zsh" or "fish". */
void completion_print(FILE *out, const char *shell);

/* Configuration of the screen: its options and settings. */

/* Views with a choice of columns: their names in the settings. */
#define CONFIG_COLUMN_VIEWS 6
#define CONFIG_COLUMNS_MAX  160
#define CONFIG_SORT_MAX	    40

/* --color */
enum ui_config_color {
	CONFIG_COLOR_AUTO, /* unless NO_COLOR is set or the terminal has none */
	CONFIG_COLOR_ALWAYS,
	CONFIG_COLOR_NEVER,
};

/* --sort: the order of rows. */
enum ui_config_sort {
	CONFIG_SORT_SELF,
	CONFIG_SORT_TOTAL,
	CONFIG_SORT_SYMBOL,
	CONFIG_SORT_MODULE,
	CONFIG_SORT_COMM,
	CONFIG_SORT_NR,
};

/* --time: which time is shown. */
enum ui_config_time {
	CONFIG_TIME_CPU,
	CONFIG_TIME_WAIT,
	CONFIG_TIME_ALL,
	CONFIG_TIME_LATENCY, /* CPU time divided by the number of running tasks */
	CONFIG_TIME_NR
};

/* Processes that the views show as one. */
enum grouping {
	GROUPING_NAME, /* of one name */
	GROUPING_PID,  /* none: each alone */
	GROUPING_CONTAINER,
	GROUPING_UNIT, /* of systemd: a service, scope or slice */
	GROUPING_NR,
};

/*
 * The table of settings (settings.inc): all that can be set by an option, a command, a picker or
 * the file of settings, with one check and one error for a value wherever it is given. Runs on: the
 * main thread.
 */

#define SETTINGS_MAX 96
#define SETTING_MAX  CONFIG_COLUMNS_MAX

enum setting_type {
	SETTING_NONE,
	SETTING_SWITCH,	 /* bool */
	SETTING_WORD,	 /* int, enum or bool: a place in @words */
	SETTING_SECONDS, /* uint64_t, ns: "2.5" */
	SETTING_TIME,	 /* uint64_t, ns: "10m" */
	SETTING_SIZE,	 /* "64M" */
	SETTING_NUMBER,
	SETTING_REAL, /* double */
	SETTING_TEXT,
	SETTING_FOLDER, /* a text: a folder that exists */
	SETTING_ACTION, /* enum options_action: @to */
};

/* The values that are of the table alone; struct options begins with them. */
struct settings {
#define OWN(ctype, member, ...) ctype member;
#define SWITCH(member, ...)	bool member;
#define PLACE(...)
#define ROW(...)
#include "ui/cli/settings.inc"
#undef OWN
#undef SWITCH
#undef PLACE
#undef ROW
	enum profile_window window;			       /* shown at start, or now */
	char columns[CONFIG_COLUMN_VIEWS][CONFIG_COLUMNS_MAX]; /* "self,total"; "": by width */
	char sorts[CONFIG_COLUMN_VIEWS][CONFIG_SORT_MAX];      /* "total reversed"; "": by @sort */
	struct user_keys user_keys;
	uint32_t nr_files;	  /* number of files read */
	double max_hz;		  /* kernel.perf_event_max_sample_rate; 0: unknown */
	bool given[SETTINGS_MAX]; /* by an option, which the file does not override */
};

struct setting {
	const char *name;	  /* of the option, and of a command; NULL: none */
	int letter;		  /* of the option; 0: none */
	const char *arg;	  /* of its value: "SIZE"; NULL: none */
	int group;		  /* of --help: HELP_* */
	const char *help;	  /* of the option */
	const char *saved;	  /* in the file, and of a command; NULL: not saved */
	const char *values;	  /* the values for a person; NULL: "yes or no" */
	const char *label;	  /* in F2; NULL: not there */
	const char *about;	  /* the same */
	enum action action;	  /* that changes it there; ACT_NONE: setting_next() */
	const char *what, *must;  /* of the error: "invalid NOUN", "must be MUST" */
	const char *needs;	  /* the option without which it has no effect; NULL: none */
	const char *complete;	  /* its values for shells, if not @words */
	const char *const *words; /* ends with NULL */
	const char *initial;	  /* value at the start; NULL: 0 */
	double least, most;	  /* @most 0: any */
	enum setting_type type;
	size_t offset, size; /* of the member of struct options */
	int to;
	bool is_own;   /* a member of struct settings */
	bool off;      /* the option means no */
	bool power;    /* a power of two */
	bool sampling; /* not for a recording */
	bool batch;    /* implies -b */
	bool live;     /* a command changes it; */
	bool alone;    /* and without a value to the next one */
	int (*take)(const struct setting *s, void *base, const char *name, const char *text,
		    struct err *e);
	void (*show)(const struct setting *s, const struct settings *set, char *out);
};

/* Groups of --help. */
enum { HELP_TARGET = 1, HELP_DISPLAY, HELP_OUTPUT, HELP_STACKS, HELP_LISTS, HELP_NR };

/* Return row @i; NULL: no more. */
const struct setting *setting_at(size_t i);
/* Return the row of an option. It must be in the table. */
size_t setting_index(const char *name);
bool setting_given(const struct settings *set, const char *name);
/*
 * Set a value. @base: struct options, or struct settings if the row is saved. @name
 * is as typed: "--ring", "ring", "delay =". @text NULL: an option without a value. 0, or -errno
 * with a message that begins with name and value; then the value is unchanged.
 */
int setting_take(const struct setting *s, void *base, const char *name, const char *text,
		 struct err *e);
/* Write the value of a saved setting, as in the file. */
void setting_show(const struct setting *s, const struct settings *set,
		  char out[static SETTING_MAX]);
/* Change a switch or a word to its next value. */
void setting_next(const struct setting *s, struct settings *set);

struct ui_config {
	struct settings set;		   /* at the start */
	double automatic_hz;		   /* the rate without -F and settings */
	bool sort_inverted;		   /* of set.sort */
	const char *host;		   /* for the title; NULL: gethostname(2) */
	bool replayed;			   /* a recording: no information about this system */
	const char *recording;		   /* its path, borrowed; NULL: none */
	struct profile *baseline;	   /* of --baseline, for the screen to own; NULL: none */
	const char *baseline_path;	   /* borrowed */
	const struct users *users;	   /* borrowed; NULL: numbers */
	const struct user_keys *user_keys; /* borrowed; NULL: none */
	struct serve *serve;		   /* gets each profile; NULL: none */
	bool saves;			   /* F9 may make a file in the working directory */
};

/* "name", "PID", "container", "unit". */
const char *ui_config_grouping_name(enum grouping by);
/* Set defaults. */
void ui_config_init(struct ui_config *config);

/*
 * Write or read one file on a separate thread, so that the screen never blocks on a
 * file system: saved screens, settings, programs with probes. With the rights of the invoking user.
 *
 * The work has copies of all its data. A thread that hangs is abandoned with
 * its work; the process may exit before it ends.
 *
 * Threads: file_work_*() and finish() on the main thread; run() on the worker.
 */

struct file_work {
	/* Return 0, or -errno with a message in @e. */
	int (*run)(struct file_work *w, struct err *e);
	/*
	 * On the main thread, when run() succeeded: use its results. 0 or -errno, a message in @e.
	 * NULL: the message is @done.
	 */
	int (*finish)(struct file_work *w, struct err *e);
	void (*free)(struct file_work *w);
	char done[256];	   /* message when it succeeded */
	const char *doing; /* of the progress, static; NULL: "writing the file" */
	bool own_rights; /* run() reads no file of the invoking user: keep the rights of proftop */
	atomic_uint permille; /* progress, set by run(); any thread reads it */
	atomic_uint steps;    /* the same of what has no whole */
	atomic_bool left;     /* its result is of no interest any more: no file is replaced */
};

/* Return NULL without memory or descriptors: file_worker_start() then runs the work directly. */
struct file_worker *file_worker_new(void);
/* Wait at most @wait_ns for running work, then abandon it. */
void file_worker_free(struct file_worker *f, uint64_t wait_ns);
/* Return a descriptor that is readable when a result is available; -1: none. */
int file_worker_fd(const struct file_worker *f);
/*
 * Take over @w and start it at @now_ns; @f NULL: run it here. Return 0: started, result from
 * file_worker_take(); 1: done, message in @e; -errno with a message: failed, or -EBUSY:
 * previous work still running. Previous work without progress for 10 s is left instead, at most
 * eight times: file_worker_take() says that it hangs.
 */
int file_worker_start(struct file_worker *f, struct file_work *w, uint64_t now_ns, struct err *e);
/*
 * Wait 50 ms for a result, so that keys typed behind the one that started the work find it done.
 * False: it comes later.
 */
bool file_worker_wait(const struct file_worker *f);
/* Return the progress, 0 to 1000, of work that takes longer than half a second; -1: none. */
int file_worker_permille(const struct file_worker *f, uint64_t now_ns);
/* Return the words for the running work. */
const char *file_worker_doing(const struct file_worker *f);
/*
 * Take the result of the finished work: return false if there is none, else set *code and
 * the message in @e.
 */
bool file_worker_take(struct file_worker *f, int *code, struct err *e);
/*
 * Create @path with @text, atomically: a temporary file is renamed. @replace: replace a
 * regular file, else an existing path is refused with -EEXIST. Symbolic links are not
 * followed. Return 0 or -errno with a message.
 */
int file_work_write_text(const char *path, const char *text, size_t size, bool replace,
			 struct err *e);
/*
 * Make work for file_work_write_text(): copies @path, takes over @text (malloc). Return NULL:
 * no memory, @text is freed.
 */
struct file_work *file_work_text(const char *path, char *text, size_t size, bool replace,
				 const char *done);

/*
 * The Debian package that a file is from, by dpkg's lists of files. They are tens of megabytes: a
 * thread reads them, for one path at a time.
 *
 * Threads: packages_*() on the main thread. A thread that hangs is abandoned with its copies.
 */

#define PACKAGES_NAME_MAX    96
#define PACKAGES_ARCHIVE_MAX 256

/*
 * @dir: dpkg's folder, NULL: /var/lib/dpkg/info. @sources: apt's folder, NULL: /etc/apt. Return
 * NULL without memory.
 */
struct packages *packages_new(const char *dir, const char *sources);
/* NULL is fine. */
void packages_free(struct packages *p);

enum packages_result {
	PACKAGES_PENDING, /* being looked up: call again */
	PACKAGES_NONE,	  /* of no package, or this is not Debian */
	PACKAGES_FOUND,
};

/*
 * Find the package of the file @path, an absolute path. @name: the name of the package with its
 * debug symbols. @archive: the line for apt's sources.list that this package needs, "": none. @p
 * NULL: none.
 */
enum packages_result packages_find(struct packages *p, const char *path,
				   char name[static PACKAGES_NAME_MAX],
				   char archive[static PACKAGES_ARCHIVE_MAX]);

/*
 * Figures of pushed profiles since the start. Each queued profile is delivered, dropped for one
 * reason, or still queued.
 */

enum pushed_drop {
	PUSHED_REFUSED,	  /* by the server: 400, 401 ... */
	PUSHED_TOO_LARGE, /* 413, or larger than the whole queue */
	PUSHED_FULL,	  /* the oldest of a full queue */
	PUSHED_ENDED,	  /* queued when the session ended */
	PUSHED_DROP_NR,
};

struct pushed_sum {
	uint64_t profiles, samples;
};

struct pushed {
	struct pushed_sum taken, delivered, dropped[PUSHED_DROP_NR], queued;
	uint64_t retries;
	char error[160]; /* the last one, clean; "": the last attempt succeeded */
};

/* Return the name of a reason: "refused", "too_large", "queue_full", "ended". */
static inline const char *pushed_drop_name(enum pushed_drop drop)
{
	static const char *const names[] = { "refused", "too_large", "queue_full", "ended" };

	return names[drop];
}

/* Return all that was dropped. */
static inline struct pushed_sum pushed_dropped(const struct pushed *p)
{
	struct pushed_sum sum = { 0, 0 };

	for (int i = 0; i < PUSHED_DROP_NR; i++) {
		sum.profiles += p->dropped[i].profiles;
		sum.samples += p->dropped[i].samples;
	}
	return sum;
}

/*
 * --stacks PID: the stacks of all threads of a process, as text or NDJSON.
 *
 * Runs on: the main thread.
 */

/* Print all as text, or as objects of JSON: one a thread and line. */
void stacks_print(FILE *out, const struct task_stacks *t, bool ndjson);
/*
 * Write what is known of a thread besides its frames to @buf: "asleep", "running, stopped for
 * 0.31 ms", "asleep; callers unknown: no unwind tables".
 */
struct safe_text stacks_describe(const struct task_stack *s, char *buf, size_t size);

/* Find words for completion: files and events. Only when Tab is pressed. */

struct words_list {
	char **list; /* clean texts, in order */
	uint32_t nr, capacity;
	const void *of; /* the command of the last search; NULL: none */
};

void words_fini(struct words_list *w);
/*
 * Find the files with paths that begin with @word; directories end with a slash. Any thread: a
 * directory may hang.
 */
void words_files(struct words_list *w, const char *word);
/* Find the names of all available events. The main thread. */
void words_events(struct words_list *w, struct sampler *s);

/* The result of parsing the command line. */

/* Exit codes: proftop(1), EXIT STATUS. */
enum options_exit {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 3,
	EXIT_NO_TARGET = 4,
	EXIT_SIGNAL = 128, /* + the signal: 130 for ^C */
};

enum options_action {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_LIST_EVENTS,
	OPTIONS_LIST_COLUMNS,
	OPTIONS_LIST_KEYS,
	OPTIONS_COMPLETION,
	OPTIONS_PRINT_CONFIG,
	OPTIONS_CHECK,
	OPTIONS_STACKS,
};

enum options_format { OPTIONS_TEXT, OPTIONS_NDJSON, OPTIONS_PERF_SCRIPT };

struct options {
	struct settings set;	      /* first: setting_take() */
	struct sampler_config config; /* pids, cpus and command owned by this struct or by argv */
	enum options_action action;
	bool batch;	   /* -b, or implied by -n, --format, --rows */
	uint64_t nr_ticks; /* 0: endless */
	enum options_format format;
	uint64_t fields;     /* --fields: PERF_SAMPLE_* */
	uint32_t rows;	     /* 0: all */
	double automatic_hz; /* the rate without -F */
	char remark[256];    /* problem with the settings; "": none */
	pid_t stacks;	     /* --stacks */
	bool no_stop;	     /* with it: no thread is stopped */
	const char *shell;   /* --completion */
	const char *script;  /* NULL: none; borrowed from argv */
	const char *listen;  /* --listen; NULL: none; borrowed from argv */
	const char *push;    /* --push; NULL: none; borrowed from argv, as the next */
	const char *push_headers, *push_ca;
	uint64_t push_timeout_ns;
	const char **push_labels; /* owned array of borrowed texts */
	uint32_t nr_push_labels;
	const char *export_path;	   /* --export; NULL: none; borrowed from argv */
	bool quiet;			   /* --export, --push without -b and -n: print nothing */
	const char *export_format;	   /* --export-format; NULL: by ending */
	unsigned int cols, rows_of_screen; /* --size; 0: not given */
	const char *baseline;		   /* perf.data file or folder; NULL: none */

	pid_t *pids;		 /* storage of config.pids */
	int *cpus;		 /* storage of config.cpus */
	struct trap_rule *traps; /* storage of config.traps */
	char user[64];		 /* storage of config.user */
	bool tids_given;
	const struct setting
		*sampling; /* an option for live sampling alone; NULL: none was given */
};

/* Limits of the system for checks of arguments. */
struct options_limits {
	double max_hz;	  /* kernel.perf_event_max_sample_rate; 0: unknown */
	uint32_t nr_cpus; /* online; 0: unknown */
};

/*
 * Saved settings of the screen: "key = value" lines in
 * $XDG_CONFIG_HOME/proftop/config, which take precedence over the system's
 * file; under "[keys]" lines of "action = key key". Only the key W writes the
 * user's file. Runs on: the main thread.
 */

#define SETTINGS_PATH_MAX 1024

/* Get the path of the user's file. Return 0, or -ENOENT with a message: no home. */
int settings_path(char *path, size_t size, struct err *e);
/*
 * Read both files, the user's last, then check that required actions have a key. Errors as
 * settings_read(), but an unreadable file is skipped: @s is usable unless -EINVAL.
 */
int settings_load(struct settings *s, struct err *e);
/* Print all settings in the format of the file. */
void settings_print(FILE *out, const struct settings *s);
/* Make work (see struct file_work) for settings_write(), with copies; NULL: no memory. */
struct file_work *settings_work(const char *path, const struct settings *s);

/*
 * Print profiles without a screen: one block of text or one JSON object per
 * tick.
 *
 * A sink gets a tick: the profile and, for each event, its rows, sorted,
 * filtered and cut. Pure except for the stream and batch_run(). Runs on: the
 * main thread.
 */

struct batch_table {
	uint32_t event;	 /* index in the profile's events */
	bool latency;	 /* shares are weighted with 1 / running tasks */
	bool with_waits; /* samples of waits are in the table also */
	double count;	 /* all samples of the event, shown or not */
	double seconds;	 /* of an event that counts time: the time of all samples */
	struct batch_row *rows;
	uint32_t nr_rows;     /* shown rows */
	uint32_t nr_matching; /* rows that pass the filter */
};

struct batch_tick {
	const struct profile *profile;
	unsigned int cols; /* of the terminal that it is printed on; 0: not on a terminal */
	bool ascii;	   /* as in the configuration */
	struct batch_table tables[EVENTS_MAX];
	uint32_t nr_tables;
	const struct pushed *pushed; /* NULL: no push */
	const char *only, *range;    /* as in the configuration */
	struct ratio_use ratios[RATIOS_MAX];
	uint32_t nr_ratios;
};

/* Write a tick. Return 0, -ENOMEM or -errno of the stream. */
typedef int (*batch_sink_fn)(FILE *out, const struct batch_tick *tick);

int batch_text(FILE *out, const struct batch_tick *tick);
int batch_ndjson(FILE *out, const struct batch_tick *tick);

struct batch_config {
	batch_sink_fn sink; /* NULL: nothing is printed */
	enum ui_config_sort sort;
	const char *filter;		 /* as in ui/text/text.h; NULL: none */
	uint32_t rows;			 /* per event; 0: all */
	bool latency;			 /* shares are weighted with 1 / running tasks */
	bool ascii;			 /* cut names end with '~', not with an ellipsis */
	uint64_t nr_ticks;		 /* 0: until the target or a signal ends it */
	const struct fold_filter *scope; /* rows of these samples, of each event; NULL: all */
	bool one_module;		 /* rows of one module: */
	uint32_t module;		 /* its profile_module.id */
	const char *only;  /* of an export: scope and module in words; NULL: all samples */
	const char *range; /* of an export: the span of its rows in words; NULL: the tick */
	/*
	 * Called with each profile before it is printed, of which there is no other owner; NULL:
	 * not. Returns 0 or -errno with a message.
	 */
	int (*each)(const struct batch_config *config, struct profile *p, struct err *e);
	void *each_context;
	const struct pushed *pushed; /* figures of --push, set by each(); NULL: no push */
};

/* Print one profile and flush. Return 0 or -errno (-EPIPE: the reader has exited). */
int batch_print(FILE *out, const struct profile *p, const struct batch_config *config);
/*
 * Block the signals that batch_run() reads. Call before the first thread
 * starts, and before sampler_new(): libraries start threads.
 */
void batch_block_signals(void);
/*
 * Print every profile until all ticks are printed, the target is gone or the reader has
 * exited (return 0), on a signal (return its number, everything flushed), or on an error
 * (return -errno with a message).
 */
int batch_run(struct sampler *s, FILE *out, const struct batch_config *config, struct err *e);
/*
 * Print the samples of a recording in the layout of perf script, with the additional @fields;
 * missing ones are reported on standard error. Return 0 or -errno with a message.
 */
int batch_script(struct sampler *s, FILE *out, uint64_t fields, struct err *e);

/*
 * Parse the command line into target, sampling parameters and screen
 * configuration.
 *
 * Never exits: errors are a message and an exit code for main. Runs on: the UI
 * thread, before any other.
 */

/*
 * Parse. Return EXIT_DONE, or the exit code with a message in @e. @argv must live as long
 * as @o. Call options_fini() in either case.
 */
int options_parse(struct options *o, int argc, char **argv, const struct options_limits *limits,
		  struct err *e);
void options_fini(struct options *o);
/*
 * Add the events that @o->time needs. Return 0, or another number with a message.
 */
int options_add_time(struct options *o, struct err *e);
int options_set_batch(struct options *o, struct err *e);
/* Copy rate, delay, window and frames to the configuration of the sampler. */
void options_apply(struct options *o);
/*
 * Print the list or report that @o names. Return EXIT_DONE; of --check also EXIT_FAILED (a part
 * does not work) or EXIT_NOT_PERMITTED (no sampling possible).
 */
int options_print(FILE *out, const struct options *o);

#endif

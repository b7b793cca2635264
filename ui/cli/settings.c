// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The saved settings (W); completion for shells and for typed commands.
 *
 * Runs on: the main thread.
 *
 * One table of keys serves reading and writing, so that all written settings can be read.
 */
#include "ui/cli/internal.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/base/text.h"
#include "ui/cli/cli.h"
#include "ui/key/key.h"

#define FILE_MAX  (64u << 10)
#define NAME_SIZE 32
#define VALUE_MAX SETTING_MAX

int settings_path(char *path, size_t size, struct err *e)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	assert(path && size);
	/* Behind sudo they may be of root. */
	if (invoker_home()) {
		config = NULL;
		home = invoker_home();
	}
	if (config && *config == '/')
		n = snprintf(path, size, "%s/proftop/config", config);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.config/proftop/config", home);
	else
		return err_set(e, -ENOENT,
			       "no place for settings: neither HOME nor XDG_CONFIG_HOME is set");
	return n < 0 || (size_t)n >= size
		       ? err_set(e, -ENAMETOOLONG, "path of the settings too long")
		       : 0;
}

/* Get the path of the system's file: in the first of $XDG_CONFIG_DIRS, or /etc/xdg. */
static int settings_system_path(char *path, size_t size)
{
	const char *dirs = getenv("XDG_CONFIG_DIRS");
	int n;

	if (!dirs || *dirs != '/' || invoker_is_unprivileged())
		dirs = "/etc/xdg";
	n = snprintf(path, size, "%.*s/proftop/config", (int)strcspn(dirs, ":"), dirs);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Split "name = value # comment", without blanks. Return false if the line has another form. */
static bool split_line(const char *line, char name[static NAME_SIZE], char value[static VALUE_MAX])
{
	size_t begin = strspn(line, " \t"), size = strcspn(line + begin, " \t=#");
	const char *p = line + begin + size;
	size_t n;

	p += strspn(p, " \t");
	if (*p++ != '=' || size >= NAME_SIZE)
		return false;
	p += strspn(p, " \t");
	/* "#" as a value is no comment. */
	for (n = 0; p[n] && !strchr("\r\n", p[n]) && !(p[n] == '#' && n && p[n + 1] == ' '); n++)
		;
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	snprintf(name, NAME_SIZE, "%.*s", (int)size, line + begin);
	snprintf(value, VALUE_MAX, "%.*s", (int)MIN(n, (size_t)VALUE_MAX - 1), p);
	return true;
}

/* Return the setting in @line, and its value; NULL: unknown. */
static const struct setting *saved_in(const char *line, char value[static VALUE_MAX])
{
	const struct setting *s;
	char name[NAME_SIZE];

	if (!split_line(line, name, value))
		return NULL;
	for (size_t i = 0; (s = setting_at(i)); i++)
		if (s->saved && !strcmp(s->saved, name))
			return s;
	return NULL;
}

/* Return whether @line is a section header, and whether of [keys]. */
static bool is_section(const char *line, bool *of_keys)
{
	line += strspn(line, " \t");
	if (*line != '[')
		return false;
	*of_keys = !strncmp(line, "[keys]", 6);
	return true;
}

/* Apply one line of a file; @section: 0 settings, 1 keys, 2 unknown. */
static int take_line(struct settings *set, const char *line, int section, struct err *e)
{
	char name[NAME_SIZE], value[VALUE_MAX];
	const struct setting *s = section ? NULL : saved_in(line, value);
	struct settings other;

	if (section == 1 && split_line(line, name, value) && name[0])
		return user_keys_add(&set->user_keys, name, value, set->nr_files, e);
	if (!s)
		return 0;
	snprintf(name, sizeof(name), "%s =", s->saved);
	/* An option overrides it; an invalid value is one also then. The limit of the kernel is of
	 * this moment. */
	other = *set;
	other.max_hz = 0;
	if (setting_take(s, &other, name, value, e))
		return -EINVAL;
	other.max_hz = set->max_hz;
	if (!s->name || !setting_given(set, s->name))
		*set = other;
	return 0;
}

/* Return whether it may be read: a file, or /dev/null for no settings. */
static bool is_readable_kind(const struct stat *st)
{
	return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3));
}

/*
 * Open a file of settings for reading: one that never blocks. NULL and errno. The path may be of
 * another user, and to open some devices has effects.
 */
static FILE *open_file(const char *path)
{
	struct stat st;
	FILE *f = NULL;
	int fd;

	if (stat(path, &st))
		return NULL;
	if (!is_readable_kind(&st)) {
		errno = EINVAL;
		return NULL;
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !is_readable_kind(&st))
		errno = EINVAL;
	else
		f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/*
 * Read the settings in @path into @s; a missing file is no error. Return 0, or -EINVAL
 * with a message that names the line. Unknown keys are ignored.
 */
static int settings_read(const char *path, struct settings *s, struct err *e)
{
	FILE *f = open_file(path);
	int nr = 0, code = 0, section = 0;
	char line[512];
	struct err why;

	if (!f)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_set(e, -errno, "%s: %s", path, strerror(errno));
	s->nr_files++;
	while (!code && nr++ < 10000 && fgets(line, sizeof(line), f)) {
		bool of_keys;

		if (is_section(line, &of_keys))
			section = of_keys ? 1 : 2;
		else
			code = take_line(s, line, section, &why);
		if (code)
			err_set(e, code, "%s:%d: %s", path, nr, why.text);
	}
	fclose(f);
	return code;
}

/* Read a file with the rights of the invoking user. */
static int read_as_user(const char *path, struct settings *s, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e);

	if (code)
		return code;
	code = settings_read(path, s, e);
	invoker_end(&saved);
	return code;
}

int settings_load(struct settings *s, struct err *e)
{
	char path[SETTINGS_PATH_MAX];
	struct err none;
	int code = settings_system_path(path, sizeof(path)) ? 0 : read_as_user(path, s, e), bound,
	    own;

	if (code != -EINVAL && !settings_path(path, sizeof(path), &none)) {
		own = read_as_user(path, s, e);
		code = own ? own : code;
	}
	bound = code == -EINVAL ? 0 : user_keys_check(&s->user_keys, &none);
	if (bound)
		*e = none;
	return bound ? bound : code;
}

/* Write the keys that are not in the file yet, with their help. */
static void write_missing(FILE *out, const struct settings *s, bool *done)
{
	const struct setting *row;
	char value[VALUE_MAX];

	for (size_t i = 0; (row = setting_at(i)); i++) {
		if (!row->saved || done[i])
			continue;
		setting_show(row, s, value);
		fprintf(out, "# %s\n%s = %s\n", row->values ? row->values : "yes or no", row->saved,
			value);
		done[i] = true;
	}
}

/* Report whether all of the file is text that write_lines() keeps. */
static int check_old(FILE *old, const char *path, struct err *e)
{
	long size = 0;
	int c;

	while (size <= (long)FILE_MAX && (c = getc(old)) != EOF && c)
		size++;
	if (size > (long)FILE_MAX)
		return err_set(e, -EFBIG, "'%s' has more than %u bytes: not overwritten", path,
			       FILE_MAX);
	if (!feof(old))
		return err_set(e, -EINVAL, "'%s' is not a text file: not overwritten", path);
	rewind(old);
	return 0;
}

/* Write the old lines, with new values of known keys; then the missing keys. */
static void write_lines(FILE *out, FILE *old, const struct settings *s)
{
	bool done[SETTINGS_MAX] = { false };
	char line[512], value[VALUE_MAX];
	bool begin = true, of_keys, sections = false;
	ptrdiff_t at;

	while (old && fgets(line, sizeof(line), old)) {
		const struct setting *row = begin && !sections ? saved_in(line, value) : NULL;

		/* Our keys must be before the first section. */
		if (begin && !sections && is_section(line, &of_keys)) {
			write_missing(out, s, done);
			sections = true;
		}
		begin = strchr(line, '\n') != NULL;
		if (!row) {
			fputs(line, out);
			continue;
		}
		setting_show(row, s, value);
		at = row - setting_at(0);
		if (!done[at])
			fprintf(out, "%s = %s\n", row->saved, value);
		done[at] = true;
	}
	if (!begin)
		fputc('\n', out);
	write_missing(out, s, done);
}

void settings_print(FILE *out, const struct settings *s)
{
	bool done[SETTINGS_MAX] = { false };
	char name[8];

	write_missing(out, s, done);
	fputs("\n# action = key key; proftop --list-keys names both\n[keys]\n", out);
	for (const struct key_binding *k = key_table(); k->action; k++) {
		bool any = false;

		for (uint32_t i = 0; i < s->user_keys.nr; i++) {
			if (s->user_keys.items[i].action != k->action)
				continue;
			fprintf(out, "%s%s %s", any ? "" : k->name, any ? "" : " =",
				key_name_of(name, s->user_keys.items[i].code));
			any = true;
		}
		if (any)
			fputc('\n', out);
	}
}

/* Create the directories above @path. */
static void make_directories(const char *path)
{
	char part[SETTINGS_PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		/* Errors show when the file is created. */
		if (mkdir(part, 0700) && errno != EEXIST)
			return;
	}
}

/* Check that no link in @path is of a third user, who would choose the file that is replaced. */
static int check_links(const char *path, struct err *e)
{
	char part[SETTINGS_PATH_MAX];
	struct stat st;

	for (size_t n = 1; path[n - 1]; n++) {
		if ((path[n] && path[n] != '/') || n >= sizeof(part))
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		if (!lstat(part, &st) && S_ISLNK(st.st_mode) && st.st_uid &&
		    st.st_uid != invoker_uid())
			return err_set(e, -EPERM,
				       "'%s' is a link of user %u: settings not written\n"
				       "  save them in a folder of yours: XDG_CONFIG_HOME or HOME",
				       part, st.st_uid);
	}
	return 0;
}

/* Check that a file may be replaced: a regular one of the invoking user. */
static int check_file(const struct stat *st, const char *path, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EINVAL, "'%s' is not a regular file: not overwritten", path);
	if (st->st_uid != invoker_uid())
		return err_set(e, -EPERM,
			       "'%s' is a file of user %u: not overwritten\n"
			       "  save the settings in a folder of yours: XDG_CONFIG_HOME or HOME",
			       path, st->st_uid);
	return 0;
}

/* Open the file that is replaced: *@old is NULL if there is none. */
static int open_old(const char *path, FILE **old, struct stat *st, struct err *e)
{
	int fd, code;

	*old = NULL;
	/* To open some devices has effects. */
	if (lstat(path, st))
		return errno == ENOENT ? 0 : err_set(e, -errno, "%s: %s", path, strerror(errno));
	code = check_file(st, path, e);
	if (code)
		return code;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "cannot read '%s': %s: not overwritten", path,
			       strerror(errno));
	code = fstat(fd, st) ? err_set(e, -errno, "%s: %s", path, strerror(errno))
			     : check_file(st, path, e);
	*old = code ? NULL : fdopen(fd, "r");
	if (!*old) {
		close(fd);
		return code ? code : err_set(e, -ENOMEM, "out of memory");
	}
	return check_old(*old, path, e);
}

/* Write a file beside @target, then rename it. */
static int replace(const char *target, FILE *old, mode_t mode, const struct settings *s,
		   struct err *e)
{
	char temporary[SETTINGS_PATH_MAX + 16];
	FILE *out;
	int fd, code;

	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", target);
	fd = mkostemp(temporary, O_CLOEXEC);
	/* Keep the mode of the old file. */
	if (fd >= 0 && old)
		fchmod(fd, mode & 0777);
	out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!out)
		return err_set(e, -errno, "%s: %s", target, strerror(errno));
	write_lines(out, old, s);
	if (!(ferror(out) | fclose(out)) && !file_work_is_left() && !rename(temporary, target))
		return 0;
	code = err_set(e, errno ? -errno : -EIO, "%s: %s", target, strerror(errno));
	unlink(temporary);
	return code;
}

/*
 * Write the settings atomically; comments and unknown keys are kept. Symbolic links of the
 * invoking user and of root are followed; only a regular file of the user is replaced. Return 0 or
 * -errno with a message.
 */
static int settings_write(const char *path, const struct settings *s, struct err *e)
{
	char *real = NULL;
	const char *target = path;
	struct stat st;
	FILE *old = NULL;
	int code = check_links(path, e);

	if (!code) {
		real = realpath(path, NULL);
		target = real ? real : path;
		code = open_old(target, &old, &st, e);
	}
	if (!code) {
		make_directories(path);
		code = replace(target, old, old ? st.st_mode : 0, s, e);
	}
	if (old)
		fclose(old);
	free(real);
	return code;
}

struct settings_work {
	struct file_work work; /* first: the two are cast */
	char path[SETTINGS_PATH_MAX];
	struct settings settings;
};

static int run_work(struct file_work *w, struct err *e)
{
	const struct settings_work *s = (struct settings_work *)w;

	return settings_write(s->path, &s->settings, e);
}

static void free_saving(struct file_work *w)
{
	free(w);
}

struct file_work *settings_work(const char *path, const struct settings *s)
{
	struct settings_work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->work = (struct file_work){ .run = run_work, .free = free_saving };
	w->settings = *s;
	snprintf(w->path, sizeof(w->path), "%s", path);
	snprintf(w->work.done, sizeof(w->work.done), "saved the settings of F2 to %.200s", path);
	return &w->work;
}

/*
 * Find words for completion: see cli.h.
 */

#define ENTRIES_MAX 4096 /* in a directory; events */
#define WORDS_MAX   128

void words_fini(struct words_list *w)
{
	for (uint32_t i = 0; i < w->nr; i++)
		free(w->list[i]);
	free(w->list);
	*w = (struct words_list){ NULL, 0, 0, NULL };
}

/* Add @text, unless sanitising changes it: such a word cannot be typed. */
static void add(struct words_list *w, const char *text)
{
	char clean[TEXT_MAX];
	size_t size = strlen(text);

	assert(w->nr <= w->capacity);
	if (!array_reserve(&w->list, &w->capacity, w->nr + 1ULL))
		return;
	if (size >= sizeof(clean) ||
	    strcmp(text_sanitise(clean, sizeof(clean), text, size).str, text))
		return;
	w->list[w->nr] = strdup(text);
	w->nr += w->list[w->nr] != NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct words_list *w)
{
	if (w->nr)
		qsort(w->list, w->nr, sizeof(*w->list), by_text);
}

void words_files(struct words_list *w, const char *word)
{
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
	char folder[TEXT_MAX], path[TEXT_MAX + 260];
	unsigned int nr = 0;
	struct dirent *d;
	DIR *dir;

	words_fini(w);
	snprintf(folder, sizeof(folder), "%.*s", (int)(name - word), word);
	dir = opendir(*folder ? folder : ".");
	while (dir && nr++ < ENTRIES_MAX && (d = readdir(dir))) {
		/* Hidden files only after a typed dot. */
		if (strncmp(d->d_name, name, strlen(name)) || (*d->d_name == '.' && *name != '.'))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", folder, d->d_name,
			 d->d_type == DT_DIR ? "/" : "");
		add(w, path);
	}
	if (dir)
		closedir(dir);
	sort(w);
}

void words_events(struct words_list *w, struct sampler *s)
{
	struct sampler_event_state *states = calloc(ENTRIES_MAX, sizeof(*states));
	uint32_t nr = states ? sampler_event_states(s, states, ENTRIES_MAX) : 0;

	words_fini(w);
	for (uint32_t i = 0; i < MIN(nr, (uint32_t)ENTRIES_MAX); i++)
		if (states[i].code >= 0)
			add(w, states[i].info->name);
	free(states);
	sort(w);
}

/*
 * Print completion for shells, made from the table of options.
 *
 * Runs on: the main thread, before any other.
 */

/* Write the words that the value can be; lists from proftop are computed when completing. */
static const char *words_of(const struct setting *s, char out[static WORDS_MAX])
{
	size_t n = 0;

	if (s->complete)
		return s->complete;
	*out = '\0';
	for (int i = 0; s->words && s->words[i] && n < WORDS_MAX; i++)
		n += (size_t)snprintf(out + n, WORDS_MAX - n, "%s%s", i ? " " : "", s->words[i]);
	return out;
}

static bool takes_file(const struct setting *s)
{
	return s->arg && !strcmp(s->arg, "FILE");
}

/* Return the next option from *@i on; NULL: no more. */
static const struct setting *next_option(size_t *i)
{
	const struct setting *s;

	while ((s = setting_at((*i)++)) && !s->name)
		;
	return s;
}

static void print_bash(FILE *out)
{
	const struct setting *o;
	char buf[WORDS_MAX];

	fputs("_proftop()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tif [ \"$cur\" = = ]; then cur=; fi\n"
	      "\tif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	      "\tcase $prev in\n",
	      out);
	for (size_t i = 0; (o = next_option(&i));) {
		const char *words = words_of(o, buf);

		if (!o->arg)
			continue;
		fprintf(out, "\t--%s", o->name);
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
		if (takes_file(o))
			fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", out);
		else
			fprintf(out, ") COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n",
				words);
	}
	fputs("\tesac\n\tCOMPREPLY=($(compgen -W \"", out);
	for (size_t i = 0; (o = next_option(&i));)
		fprintf(out, "--%s ", o->name);
	fputs("\" -- \"$cur\"))\n}\ncomplete -F _proftop proftop\n", out);
}

/* Print text for single quotes, without zsh's special characters. */
static void print_quoted(FILE *out, const char *text)
{
	for (; *text; text++)
		if (!strchr("'[]:\\", *text))
			fputc(*text, out);
}

static void print_zsh(FILE *out)
{
	const struct setting *o;
	char buf[WORDS_MAX];

	fputs("#compdef proftop\n_arguments", out);
	for (size_t i = 0; (o = next_option(&i));) {
		const char *words = words_of(o, buf);

		fprintf(out, " \\\n  '--%s%s[", o->name, o->arg ? "=" : "");
		print_quoted(out, o->help);
		fputc(']', out);
		if (takes_file(o))
			fputs(":file:_files", out);
		else if (*words && *words != '$')
			fprintf(out, ":%s:(%s)", o->arg, words);
		else if (o->arg)
			fprintf(out, ":%s:", o->arg);
		fputc('\'', out);
	}
	fputs(" \\\n  '*::command:_normal'\n", out);
}

static void print_fish(FILE *out)
{
	const struct setting *o;
	char buf[WORDS_MAX];

	for (size_t i = 0; (o = next_option(&i));) {
		const char *words = words_of(o, buf);

		fprintf(out, "complete -c proftop -l %s", o->name);
		if (o->letter)
			fprintf(out, " -s %c", o->letter);
		if (takes_file(o))
			fputs(" -r", out);
		else if (o->arg)
			fputs(" -x", out);
		if (*words && *words != '$')
			fprintf(out, " -a '%s'", words);
		fputs(" -d '", out);
		print_quoted(out, o->help);
		fputs("'\n", out);
	}
}

void completion_print(FILE *out, const char *shell)
{
	if (!strcmp(shell, "bash"))
		print_bash(out);
	else if (!strcmp(shell, "zsh"))
		print_zsh(out);
	else
		print_fish(out);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is kept between sessions. The main thread.
 *
 * One table of keys serves reading and writing, so that what is written can be
 * read again.
 */
#include "ui/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/number.h"
#include "ui/theme.h"

#define FILE_MAX (64u << 10)
#define VALUE_MAX 64

static bool parse_bool(const char *text, bool *out)
{
	bool yes = !strcmp(text, "yes"), no = !strcmp(text, "no");

	if (yes || no)
		*out = yes;
	return yes || no;
}

static bool set_delay(struct settings *s, const char *text)
{
	double seconds;

	if (number_double(text, 0.1, 86400, &seconds))
		return false;
	s->tick_ns = (uint64_t)(seconds * 1e9 + 0.5);
	return true;
}

static void get_delay(const struct settings *s, char *out)
{
	snprintf(out, VALUE_MAX, "%.10g", (double)s->tick_ns / 1e9);
}

static bool set_limit(struct settings *s, const char *text)
{
	return !number_double(text, 0, 100, &s->percent_limit);
}

static void get_limit(const struct settings *s, char *out)
{
	snprintf(out, VALUE_MAX, "%.10g", s->percent_limit);
}

static bool set_theme(struct settings *s, const char *text)
{
	int theme = theme_parse(text);

	if (theme >= 0)
		s->theme = theme;
	return theme >= 0;
}

static void get_theme(const struct settings *s, char *out)
{
	snprintf(out, VALUE_MAX, "%s", theme_name((enum theme)s->theme));
}

#define BOOL_KEY(field)                                                                            \
	static bool set_##field(struct settings *s, const char *text)                              \
	{                                                                                          \
		return parse_bool(text, &s->field);                                                \
	}                                                                                          \
	static void get_##field(const struct settings *s, char *out)                               \
	{                                                                                          \
		snprintf(out, VALUE_MAX, s->field ? "yes" : "no");                                 \
	}
BOOL_KEY(hide_kernel)
BOOL_KEY(hide_user)
BOOL_KEY(mouse)
BOOL_KEY(ascii)

static const struct {
	const char *key, *help;
	bool (*set)(struct settings *s, const char *text);
	void (*get)(const struct settings *s, char *out);
} keys[] = {
	{ "delay", "seconds between updates, 0.1 to 86400", set_delay, get_delay },
	{ "limit", "rows under so many percent are hidden, 0 to 100", set_limit, get_limit },
	{ "hide-kernel", "yes or no", set_hide_kernel, get_hide_kernel },
	{ "hide-user", "yes or no", set_hide_user, get_hide_user },
	{ "theme", "default, 256, light, color-blind or mono", set_theme, get_theme },
	{ "mouse", "yes or no", set_mouse, get_mouse },
	{ "ascii", "yes or no", set_ascii, get_ascii },
};

int settings_path(char *path, size_t size, struct err *e)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (config && *config == '/')
		n = snprintf(path, size, "%s/proftop/config", config);
	else if (home && *home == '/')
		n = snprintf(path, size, "%s/.config/proftop/config", home);
	else
		return err_set(e, -ENOENT, "neither HOME nor XDG_CONFIG_HOME says where settings are");
	return n < 0 || (size_t)n >= size ? err_set(e, -ENAMETOOLONG, "the path of the settings is "
							"too long") : 0;
}

/* The index of the key that @line sets, and its value without blanks; -1: none that we know. */
static int key_of(const char *line, char value[static VALUE_MAX])
{
	size_t begin = strspn(line, " \t"), size = strcspn(line + begin, " \t=#");
	const char *p = line + begin + size;
	size_t n;

	p += strspn(p, " \t");
	if (*p++ != '=')
		return -1;
	p += strspn(p, " \t");
	n = strcspn(p, "\r\n#");
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	snprintf(value, VALUE_MAX, "%.*s", (int)MIN(n, (size_t)VALUE_MAX - 1), p);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].key) == size && !strncmp(keys[i].key, line + begin, size))
			return (int)i;
	return -1;
}

int settings_read(const char *path, struct settings *s, struct err *e)
{
	FILE *f = fopen(path, "re");
	char line[512], value[VALUE_MAX];
	int nr = 0, code = 0;

	if (!f)
		return errno == ENOENT || errno == ENOTDIR ?
			       0 : err_set(e, -errno, "%s: %s", path, strerror(errno));
	while (!code && nr < 10000 && fgets(line, sizeof(line), f)) {
		int key = key_of(line, value);

		nr++;
		if (key >= 0 && !keys[key].set(s, value))
			code = err_set(e, -EINVAL, "%s:%d: %s = %s: not a value for it\n  it is %s",
				       path, nr, keys[key].key, value, keys[key].help);
	}
	fclose(f);
	return code;
}

/* The old lines, those of our keys with new values; then the keys that had none. */
static void write_lines(FILE *out, FILE *old, const struct settings *s)
{
	bool done[ARRAY_SIZE(keys)] = { false };
	char line[512], value[VALUE_MAX];
	bool begin = true;

	while (old && ftell(old) < (long)FILE_MAX && fgets(line, sizeof(line), old)) {
		int key = begin ? key_of(line, value) : -1;

		begin = strchr(line, '\n') != NULL;
		if (key < 0) {
			fputs(line, out);
			continue;
		}
		keys[key].get(s, value);
		if (!done[key])
			fprintf(out, "%s = %s\n", keys[key].key, value);
		done[key] = true;
	}
	if (!begin)
		fputc('\n', out);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		keys[i].get(s, value);
		if (!done[i])
			fprintf(out, "# %s\n%s = %s\n", keys[i].help, keys[i].key, value);
	}
}

/* The directories above @path. */
static void make_directories(const char *path)
{
	char part[SETTINGS_PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		/* What cannot be made shows when the file is. */
		if (mkdir(part, 0700) && errno != EEXIST)
			return;
	}
}

int settings_write(const char *path, const struct settings *s, struct err *e)
{
	char *real = realpath(path, NULL), temporary[SETTINGS_PATH_MAX + 16];
	const char *target = real ? real : path;
	FILE *old, *out = NULL;
	int fd, code = 0;

	make_directories(path);
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", target);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd >= 0)
		out = fdopen(fd, "w");
	if (!out) {
		code = err_set(e, -errno, "%s: %s", target, strerror(errno));
		free(real);
		return code;
	}
	old = fopen(target, "re");
	write_lines(out, old, s);
	if (old)
		fclose(old);
	if (ferror(out) | fclose(out) || rename(temporary, target)) {
		code = err_set(e, errno ? -errno : -EIO, "%s: %s", target, strerror(errno));
		unlink(temporary);
	}
	free(real);
	return code;
}

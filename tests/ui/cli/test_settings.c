// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings: read as written, the rest of the file left alone; themes;
 * completion of every option.
 * Live: reads a clock.
 */
#include "ui/cli/settings.c"

#include "tests/ui/fake.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/draw/internal.h"
#include "ui/state/state.h"
#include "ui/view/view.h"

static const struct settings plain = { .tick_ns = 1000000000, .mouse = true };

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static char *get(const char *path)
{
	static char text[8192];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

TEST(test_round)
{
	char dir[] = "/tmp/proftop-settings-XXXXXX", path[64], deep[96];
	struct settings s = { .tick_ns = 2500000000,
			      .percent_limit = 0.5,
			      .hide_kernel = true,
			      .theme = THEME_LIGHT,
			      .frames = FRAMES_NATIVE,
			      .hz = 499.5,
			      .window = PROFILE_WINDOW,
			      .window_ns = 10500000000,
			      .time = CONFIG_TIME_ALL,
			      .intervals = true,
			      .sorts = { "total reversed", "cpu" },
			      .ascii = true },
			back = plain;
	struct err e;

	assert_non_null(mkdtemp(dir));
	snprintf(deep, sizeof(deep), "%s/a/b/config", dir);
	assert_int_equal(settings_write(deep, &s, &e), 0);
	assert_int_equal(settings_read(deep, &back, &e), 0);
	back.nr_files = 0;
	/* Rates, windows and the kind of time of F2 were lost. */
	assert_non_null(strstr(get(deep), "frequency = 499.5\n"));
	assert_non_null(strstr(get(deep), "window = last 10.5\n"));
	assert_non_null(strstr(get(deep), "time = all\n"));
	assert_non_null(strstr(get(deep), "error-bars = yes\n"));
	assert_non_null(strstr(get(deep), "sort-functions = total reversed\n"));
	assert_memory_equal(&back, &s, sizeof(s));
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink(deep, path), 0);
	/* Foreign content of the file is kept, and so is the link. */
	put(deep, "# mine\nfuture = 7\n theme=mono # dark room\nlast");
	assert_int_equal(settings_write(path, &s, &e), 0);
	assert_non_null(strstr(get(deep), "# mine\nfuture = 7\ntheme = light\nlast\n"));
	assert_non_null(strstr(get(deep), "delay = 2.5\n"));
	assert_int_equal(readlink(path, deep, 1), 1);
	unlink(path);
	snprintf(deep, sizeof(deep), "%s/a/b/config", dir);
	unlink(deep);
	snprintf(deep, sizeof(deep), "%s/a/b", dir);
	assert_int_equal(rmdir(deep), 0);
	snprintf(deep, sizeof(deep), "%s/a", dir);
	rmdir(deep);
	rmdir(dir);
}

TEST(test_refused)
{
	static const char *const lines[] = {
		"delay = 0\n",	      "delay = x\n",	"theme = pink\n",   "mouse = maybe\n",
		"limit = 101\n",      "limit =\n",	"frequency = 0\n",  "window = last 0\n",
		"window = total 5\n", "window = las\n", "time = all the\n", "sort-tree = a\033b\n",
	};
	char path[] = "/tmp/proftop-settings-XXXXXX";
	struct settings s = plain;
	struct err e;

	close(mkstemp(path));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char text[64];

		snprintf(text, sizeof(text), "# one\n%s", lines[i]);
		put(path, text);
		assert_int_equal(settings_read(path, &s, &e), -EINVAL);
		assert_non_null(strstr(e.text, ":2: "));
	}
	put(path, "\x01\xff = \n==\nmouse\nmouse = no");
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_false(s.mouse);
	unlink(path);
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_int_not_equal(settings_write("/proc/nowhere/config", &s, &e), 0);
	/* An unreadable file: reported, the other settings are kept, and it is not written over. */
	assert_int_equal(symlink(path, path), 0);
	assert_int_equal(settings_read(path, &s, &e), -ELOOP);
	/* A FIFO would block the start. */
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(60);
	assert_int_equal(settings_read(path, &s, &e), -EINVAL);
	alarm(0);
	/* No device is opened but the one for no settings. */
	assert_int_equal(settings_read("/dev/zero", &s, &e), -EINVAL);
	assert_int_equal(settings_read("/dev/null", &s, &e), 0);
	assert_false(s.mouse);
	assert_int_not_equal(settings_write(path, &s, &e), 0);
	unlink(path);
}

/* Columns have letters of names only: they are printed. Unknown names are for later versions. */
TEST(test_column_names)
{
	static const char *const bad[] = { "self\033[2J", "self\x9b", "\xc2\xb7",
					   "self\a",	  "self;x",   "self#" };
	char path[] = "/tmp/proftop-settings-XXXXXX", line[64];
	struct settings s = plain;
	struct err e;

	close(mkstemp(path));
	put(path, "columns-cpus = CPU,got/s  hottest-now, later_1.2\n");
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_string_equal(s.columns[4], "CPU,got/s  hottest-now, later_1.2");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(line, sizeof(line), "columns-cpus = %s\n", bad[i]);
		put(path, line);
		assert_int_equal(settings_read(path, &s, &e), -EINVAL);
		assert_string_equal(s.columns[4], "CPU,got/s  hottest-now, later_1.2");
	}
	put(path, "columns-cpus = automatic\n");
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_string_equal(s.columns[4], "");
	unlink(path);
}

/* A file that W would cut is left as it is: it is too long, or has a zero byte. */
TEST(test_kept_whole)
{
	static char text[(64 << 10) + 2], back[sizeof(text)];
	char path[] = "/tmp/proftop-settings-XXXXXX";
	const struct settings s = plain;
	struct err e;
	ssize_t size;
	int fd;

	assert_int_equal(close(mkstemp(path)), 0);
	for (int i = 0; i < 2; i++) {
		memset(text, '#', sizeof(text) - 1);
		if (i)
			text[40] = '\0';
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
		assert_int_equal(write(fd, text, i ? 60 : sizeof(text) - 1),
				 i ? 60 : sizeof(text) - 1);
		close(fd);
		assert_int_not_equal(settings_write(path, &s, &e), 0);
		assert_non_null(strstr(e.text, "not overwritten"));
		fd = open(path, O_RDONLY);
		size = read(fd, back, sizeof(back));
		assert_int_equal(size, i ? 60 : sizeof(text) - 1);
		assert_memory_equal(text, back, (size_t)size);
		close(fd);
	}
	unlink(path);
}

/* W replaces regular files of the user only, and follows no link of another user. */
TEST(test_untrusted_files)
{
	char dir[] = "/tmp/proftop-settings-XXXXXX", path[64], real[64];
	const struct settings s = plain;
	struct stat st;
	struct err e;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/config", dir);
	snprintf(real, sizeof(real), "%s/real", dir);
	assert_int_equal(symlink(real, path), 0);
	/* A link of the user to nothing; to a file of the user. */
	assert_int_equal(settings_write(path, &s, &e), -EINVAL);
	put(real, "# mine\n");
	assert_int_equal(settings_write(path, &s, &e), 0);
	assert_non_null(strstr(get(real), "# mine\n"));
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	if (!geteuid()) {
		assert_int_equal(lchown(path, 12345, 12345), 0);
		assert_int_equal(settings_write(path, &s, &e), -EPERM);
		assert_non_null(strstr(e.text, "/config' is a link of user 12345"));
		assert_int_equal(lchown(path, 0, 0), 0);
		assert_int_equal(chown(real, 12345, 12345), 0);
		assert_int_equal(settings_write(path, &s, &e), -EPERM);
		assert_non_null(strstr(e.text, "/real' is a file of user 12345"));
		/* As /dev/null. */
		unlink(real);
		assert_int_equal(mknod(real, S_IFCHR | 0600, 0x103), 0);
		assert_int_equal(settings_write(path, &s, &e), -EINVAL);
		assert_non_null(strstr(e.text, "not a regular file: not overwritten"));
		assert_int_equal(stat(real, &st), 0);
		assert_true(S_ISCHR(st.st_mode));
	}
	unlink(path);
	unlink(real);
	assert_int_equal(rmdir(dir), 0);
}

/* Keys of the table, overrides, and forbidden ones. */
TEST(test_keys)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "[keys]\nthreads = x\nfreeze = x\n", ":3: key 'x' is already bound to threads" },
		{ "[keys]\nfly = x\n", "unknown action" },
		{ "[keys]\nfreeze = F13\n", "unknown key" },
		{ "[keys]\nfreeze = Esc\n", "cannot be bound" },
		{ "[keys]\nfreeze = ^C\n", "cannot be bound" },
		{ "[keys]\nfreeze = F1 ? h\n", "no key left for help" },
	};
	char path[] = "/tmp/proftop-settings-XXXXXX", names[64];
	struct settings s = plain;
	const struct user_keys *b = &s.user_keys;
	struct err e;

	close(mkstemp(path));
	put(path, "delay = 2\n[keys]\nthreads = x ^T\nfreeze = r  # not reset\nheader = # Y\n"
		  "[other]\nfreeze = y\n");
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_int_equal(user_keys_check(b, &e), 0);
	assert_int_equal(user_keys_find(b, CTX_LIST, 'x'), ACT_BY_THREAD);
	assert_int_equal(user_keys_find(b, CTX_LIST, K_CTRL('T')), ACT_BY_THREAD);
	assert_int_equal(user_keys_find(b, CTX_LIST, 'H'), ACT_BY_THREAD);
	assert_int_equal(user_keys_find(b, CTX_LIST, 'r'), ACT_FREEZE);
	assert_int_equal(user_keys_find(b, CTX_LIST, 'Y'), ACT_HEADER);
	assert_int_equal(user_keys_find(b, CTX_LIST, 'y'), ACT_COPY);
	assert_int_equal(user_keys_first(b, CTX_LIST, ACT_FREEZE), 'r');
	/* Where keys are text, they are. */
	assert_int_equal(user_keys_find(b, CTX_PROMPT, 'x'), ACT_NONE);
	for (const struct key_binding *k = key_table(); k->action; k++) {
		if (k->action == ACT_BY_THREAD)
			assert_string_equal(user_keys_names(b, names, sizeof(names), k), "x ^T H");
		/* Its only key went to another: the name is left. */
		if (k->action == ACT_RESET)
			assert_string_equal(user_keys_names(b, names, sizeof(names), k), ":reset");
	}
	/* A later file may take a key from an earlier one. */
	put(path, "[keys]\nreset = x\n");
	assert_int_equal(settings_read(path, &s, &e), 0);
	assert_int_equal(user_keys_find(b, CTX_LIST, 'x'), ACT_RESET);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		s = plain;
		put(path, bad[i].text);
		assert_true(settings_read(path, &s, &e) || user_keys_check(b, &e));
		assert_non_null(strstr(e.text, bad[i].why));
	}
	unlink(path);
}

/* The user's file over the system's; the printed settings can be read; W keeps the sections. */
TEST(test_files)
{
	char dir[] = "/tmp/proftop-settings-XXXXXX", path[128], user[96], sys[96];
	struct settings s = plain, back = plain;
	struct err e;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(user, sizeof(user), "%s/user", dir);
	snprintf(sys, sizeof(sys), "%s/sys", dir);
	setenv("XDG_CONFIG_HOME", user, 1);
	setenv("XDG_CONFIG_DIRS", sys, 1);
	/* None of them is there. */
	assert_int_equal(settings_load(&s, &e), 0);
	s.fold_threads = true;
	s.grouping = GROUPING_UNIT;
	s.hide_user = true;
	strcpy(s.columns[1], "share,pid,cgroup");
	assert_int_equal(settings_system_path(path, sizeof(path)), 0);
	assert_int_equal(settings_write(path, &s, &e), 0);
	assert_int_equal(settings_path(path, sizeof(path), &e), 0);
	assert_int_equal(settings_write(path, &s, &e), 0);
	put(path, "hide-user = no\n[keys]\nfreeze = Y\ndelay = 99\n");
	assert_int_equal(settings_load(&back, &e), -EINVAL);
	put(path, "hide-user = no\n[keys]\nfreeze = Y\n");
	back = plain;
	assert_int_equal(settings_load(&back, &e), 0);
	assert_true(back.fold_threads);
	assert_int_equal(back.grouping, GROUPING_UNIT);
	assert_false(back.hide_user);
	assert_string_equal(back.columns[1], "share,pid,cgroup");
	assert_int_equal(user_keys_find(&back.user_keys, CTX_LIST, 'Y'), ACT_FREEZE);
	back.percent_limit = 3;
	assert_int_equal(settings_write(path, &back, &e), 0);
	assert_non_null(strstr(strstr(get(path), "limit = 3\n"), "[keys]\nfreeze = Y\n"));
	f = fopen(path, "w");
	settings_print(f, &back);
	fclose(f);
	s = plain;
	assert_int_equal(settings_load(&s, &e), 0);
	assert_true(s.percent_limit == 3);
	assert_int_equal(user_keys_find(&s.user_keys, CTX_LIST, 'Y'), ACT_FREEZE);
	unlink(path);
	assert_int_equal(settings_system_path(path, sizeof(path)), 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/proftop", user);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/proftop", sys);
	rmdir(path);
	rmdir(user);
	rmdir(sys);
	assert_int_equal(rmdir(dir), 0);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("XDG_CONFIG_DIRS");
}

/* The relative luminance of a colour, and the contrast of two: as in WCAG 2. */
static double luminance(uint32_t rgb)
{
	static const double parts[] = { 0.0722, 0.7152, 0.2126 };
	double sum = 0;

	for (int i = 0; i < 3; i++) {
		double c = (rgb >> 8 * i & 0xff) / 255.0;

		sum += parts[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static double contrast(uint32_t a, uint32_t b)
{
	double x = luminance(a), y = luminance(b);

	return (MAX(x, y) + 0.05) / (MIN(x, y) + 0.05);
}

/* Text is readable in each theme, with 256, 16 and 8 colours, on black and on white. */
TEST(test_contrast)
{
	static const int colors[] = { 8, 16, 256 };

	for (int t = 0; t < THEME_MONO; t++)
		for (size_t c = 0; c < ARRAY_SIZE(colors); c++)
			for (int r = 0; r < 2 * ROLE_NR; r++) {
				bool light = (r >= ROLE_NR && t != THEME_DARK) || t == THEME_LIGHT;
				struct theme_look l = theme_look((enum theme)t, light,
								 (enum theme_role)(r % ROLE_NR),
								 colors[c]);
				/* Terminals of 8 colours show bold ones bright. */
				short fg = l.fg, bright = (short)(fg + 8);
				uint32_t ground = l.bg >= 0 ? theme_rgb(l.bg)
						  : light   ? 0xffffff
							    : 0x000000;

				if (fg < 0)
					continue;
				if (colors[c] == 8 && l.bold && fg > 0 && l.bg < 0 && !light)
					fg = bright;
				if (contrast(theme_rgb(fg), ground) < 4.5)
					print_message("theme %s%s, %d colours, role %d: %.1f\n",
						      setting_at(setting_index("theme"))->words[t],
						      light ? " on white" : "", colors[c],
						      r % ROLE_NR, contrast(theme_rgb(fg), ground));
				assert_true(contrast(theme_rgb(fg), ground) >= 4.5);
			}
}

/* Boxes of one kind have two looks and more, with any number of colours. */
TEST(test_hues)
{
	static const int colors[] = { 8, 16, 256 };

	for (int t = 0; t < THEME_MONO; t++)
		for (size_t i = 0; i < 2 * ARRAY_SIZE(colors); i++)
			for (int r = ROLE_BOX_USER; r < ROLE_NR; r += THEME_HUES) {
				int nr = colors[i / 2];
				struct theme_look a, b;

				a = theme_look((enum theme)t, i % 2, (enum theme_role)r, nr);
				b = theme_look((enum theme)t, i % 2, (enum theme_role)(r + 1), nr);
				assert_true(a.bg != b.bg);
			}
	assert_true(theme_look(THEME_MONO, false, ROLE_BOX_USER, 8).mono_reverse !=
		    theme_look(THEME_MONO, false, ROLE_BOX_USER + 1, 8).mono_reverse);
}

static int theme_of(const struct setting *theme, const char *text)
{
	struct settings set = { .theme = -1 };
	struct err e;

	return setting_take(theme, &set, "--theme", text, &e) ? -1 : set.theme;
}

/* Names are read back; every look has colours that the terminal has. */
TEST(test_themes)
{
	static const int colors[] = { 8, 16, 256 };
	const struct setting *theme = setting_at(setting_index("theme"));

	assert_int_equal(theme_of(theme, "pink"), -1);
	assert_int_equal(theme_of(theme, "256"), THEME_DARK);
	assert_int_equal(theme_of(theme, "default"), THEME_AUTO);
	for (int t = 0; t < THEME_NR; t++) {
		assert_int_equal(theme_of(theme, theme->words[t]), t);
		for (size_t c = 0; c < ARRAY_SIZE(colors); c++) {
			for (int r = 0; r < ROLE_NR; r++) {
				struct theme_look l = theme_look((enum theme)t, false,
								 (enum theme_role)r, colors[c]);

				assert_true(l.fg >= -1 && l.fg < colors[c]);
				assert_true(l.bg >= -1 && l.bg < colors[c]);
				assert_true(l.fg != l.bg || l.fg == -1);
			}
		}
	}
	/* Kernel and user differ in each, except in mono, which shows a letter. */
	for (int t = 0; t < THEME_MONO; t++)
		assert_int_not_equal(theme_look((enum theme)t, false, ROLE_USER, 256).fg,
				     theme_look((enum theme)t, false, ROLE_KERNEL, 256).fg);
	/* The automatic one follows the terminal, dark and light do not. */
	assert_int_equal(theme_look(THEME_AUTO, true, ROLE_USER, 256).fg,
			 theme_look(THEME_LIGHT, false, ROLE_USER, 256).fg);
	assert_int_equal(theme_look(THEME_DARK, true, ROLE_USER, 256).fg,
			 theme_look(THEME_AUTO, false, ROLE_USER, 256).fg);
}

/* Against a baseline more is red or orange, less is blue, in each theme and number of colours. */
TEST(test_change_colours)
{
	static const int colors[] = { 8, 16, 256 };

	for (int i = 0; i < 2 * THEME_MONO * (int)ARRAY_SIZE(colors); i++) {
		enum theme t = (enum theme)(i / 2 % THEME_MONO);
		int nr = colors[i / 2 / THEME_MONO];
		uint32_t more = theme_rgb(theme_look(t, i % 2, ROLE_BOX_MORE, nr).bg);
		uint32_t less = theme_rgb(theme_look(t, i % 2, ROLE_BOX_LESS, nr).bg);
		uint32_t same = theme_rgb(theme_look(t, i % 2, ROLE_BOX_SAME, nr).bg);

		assert_true((more >> 16) > (more & 0xff) && (more >> 16) >= (more >> 8 & 0xff));
		assert_true((less & 0xff) > (less >> 16) && (less & 0xff) > (less >> 8 & 0xff));
		assert_true((same & 0xff) == same >> 16 && (same & 0xff) == (same >> 8 & 0xff));
	}
	/* Without colours more is reversed; signs distinguish less and the same. */
	assert_true(theme_look(THEME_MONO, false, ROLE_BOX_MORE, 8).mono_reverse);
	assert_false(theme_look(THEME_MONO, false, ROLE_BOX_LESS, 8).mono_reverse);
}

TEST(test_completion)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		char *text = NULL, want[64];
		size_t size;
		FILE *f = open_memstream(&text, &size);

		completion_print(f, shells[i]);
		fclose(f);
		for (size_t n = 0; setting_at(n); n++) {
			if (!setting_at(n)->name)
				continue;
			snprintf(want, sizeof(want), i == 2 ? "-l %s" : "--%s",
				 setting_at(n)->name);
			assert_non_null(strstr(text, want));
		}
		free(text);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

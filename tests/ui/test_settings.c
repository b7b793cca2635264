// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings: read as written, the rest of the file left alone; themes;
 * completion of every option.
 */
#include "fake.h"

#include <argp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/options.h"
#include "ui/settings.h"

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

static void test_round(void **state)
{
	char dir[] = "/tmp/proftop-settings-XXXXXX", path[64], deep[96];
	struct settings s = { .tick_ns = 2500000000, .percent_limit = 0.5, .hide_kernel = true,
			      .theme = THEME_LIGHT, .ascii = true }, back = plain;
	struct err e;

	assert_non_null(mkdtemp(dir));
	snprintf(deep, sizeof(deep), "%s/a/b/config", dir);
	assert_int_equal(settings_write(deep, &s, &e), 0);
	assert_int_equal(settings_read(deep, &back, &e), 0);
	assert_memory_equal(&back, &s, sizeof(s));
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink(deep, path), 0);
	/* What is not ours stays, and so does the link. */
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

static void test_refused(void **state)
{
	static const char *const lines[] = {
		"delay = 0\n", "delay = x\n", "theme = pink\n", "mouse = maybe\n", "limit = 101\n",
		"limit =\n",
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
}

/* Names come back; every look is of colours that the terminal has. */
static void test_themes(void **state)
{
	static const int colors[] = { 8, 16, 256 };

	assert_int_equal(theme_parse("pink"), -1);
	assert_null(theme_name(THEME_NR));
	for (int t = 0; t < THEME_NR; t++) {
		assert_int_equal(theme_parse(theme_name((enum theme)t)), t);
		for (size_t c = 0; c < ARRAY_SIZE(colors); c++) {
			for (int r = 0; r < ROLE_NR; r++) {
				struct theme_look l = theme_look((enum theme)t, (enum theme_role)r,
								 colors[c]);

				assert_true(l.fg >= -1 && l.fg < colors[c]);
				assert_true(l.bg >= -1 && l.bg < colors[c]);
				assert_true(l.fg != l.bg || l.fg == -1);
			}
		}
	}
	/* Kernel and user differ in each, but for mono, where the letter says it. */
	for (int t = 0; t < THEME_MONO; t++)
		assert_int_not_equal(theme_look((enum theme)t, ROLE_USER, 256).fg,
				     theme_look((enum theme)t, ROLE_KERNEL, 256).fg);
}

static void test_completion(void **state)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		char *text = NULL, want[64];
		size_t size;
		FILE *f = open_memstream(&text, &size);

		options_print_completion(f, shells[i]);
		fclose(f);
		for (const struct argp_option *o = options_table(); o->name || o->doc; o++) {
			if (!o->name)
				continue;
			snprintf(want, sizeof(want), i == 2 ? "-l %s" : "--%s", o->name);
			assert_non_null(strstr(text, want));
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_themes),
		cmocka_unit_test(test_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

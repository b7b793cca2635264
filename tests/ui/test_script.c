// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scripts, the command line, and the commands in reach of both.
 * Live: waits for threads or processes.
 */
#include "ui/command.c"

#include "ui/internal.h"
#include "tests/ui/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/cli/cli.h"
#include "ui/view/view.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/text/text.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/state/state.h"

static uint32_t key_at(const char **at)
{
	struct app_script_step step = app_script_next(at);

	assert_int_equal(step.kind, SCRIPT_KEY);
	return step.key.code;
}

TEST(test_keys)
{
	const char *at = "a<Enter><F6><^D><Space><lt><nonsense>\xe6\x97\xa5\n<Esc>";

	assert_int_equal(key_at(&at), 'a');
	assert_int_equal(key_at(&at), K_ENTER);
	assert_int_equal(key_at(&at), K_F(6));
	assert_int_equal(key_at(&at), K_CTRL('d'));
	assert_int_equal(key_at(&at), ' ');
	assert_int_equal(key_at(&at), '<');
	for (const char *p = "<nonsense>"; *p; p++)
		assert_int_equal(key_at(&at), *p);
	assert_int_equal(key_at(&at), 0x65e5);
	assert_int_equal(key_at(&at), K_ENTER);
	assert_int_equal(key_at(&at), K_ESC);
	assert_int_equal(app_script_next(&at).kind, SCRIPT_END);
	assert_int_equal(app_script_next(&at).kind, SCRIPT_END);
}

/* A name that is not known would be typed letter by letter: each is a key that does something. */
TEST(test_unknown_names)
{
	static const char *const right[] = {
		"",	    "<",
		"<<>>",	    "a<b>",
		"<lt>foo>", "<Enter><size 9x9",
		"< 1>",	    "<down><wheel-up 3,10>",
	};
	static const char *const wrong[] = {
		"<fo>",
		"j<foo>",
		"<size 0x9>",
		"<click>",
		"<<F99>",
		"<Enter2>",
		"<WithMoreBytesThanAnyNameHas>",
	};
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		if (app_script_check(right[i], &e))
			fail_msg("%s: %s", right[i], e.text);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (!app_script_check(wrong[i], &e))
			fail_msg("%s", wrong[i]);
	assert_int_equal(app_script_check("j<foo>", &e), -EINVAL);
	assert_memory_equal(e.text, "--script: <foo>: unknown key", 28);
}

TEST(test_steps)
{
	const char *at = "<tick><size 100x30><click 3,10><size 0x9><";
	struct app_script_step step = app_script_next(&at);

	assert_int_equal(step.kind, SCRIPT_TICK);
	step = app_script_next(&at);
	assert_int_equal(step.kind, SCRIPT_SIZE);
	assert_int_equal(step.cols, 100);
	assert_int_equal(step.rows, 30);
	step = app_script_next(&at);
	assert_int_equal(step.kind, SCRIPT_KEY);
	assert_int_equal(step.key.code, K_MOUSE);
	assert_int_equal(step.key.row, 3);
	assert_int_equal(step.key.col, 10);
	/* No such size: keys, one by one. */
	for (const char *p = "<size 0x9><"; *p; p++)
		assert_int_equal(key_at(&at), *p);
	assert_int_equal(app_script_next(&at).kind, SCRIPT_END);
}

/* Bytes that are no text end, and never yield a key that is not one. */
TEST(test_bytes)
{
	char text[64];

	srand(7);
	for (int round = 0; round < 2000; round++) {
		const char *at = text, *end = text + sizeof(text) - 1;
		int nr = 0;

		for (size_t i = 0; i < sizeof(text) - 1; i++)
			text[i] = (char)(rand() % 255 + 1);
		text[sizeof(text) - 1] = '\0';
		while (app_script_next(&at).kind != SCRIPT_END && nr < 1000)
			nr++;
		assert_true(nr < 64);
		assert_ptr_equal(at, end);
	}
}

TEST(test_complete)
{
	char out[MATCH_MAX], all[512], line[LINE_SIZE], long_name[301] = "";
	struct bench b;
	const struct ui_state *st = &b.st;

	bench_init(&b, 80, 24, false);
	assert_true(command_complete(st, "scr", out, sizeof(out)));
	assert_string_equal(out, "scr");
	assert_int_equal(command_candidates(st, "scr", all, sizeof(all)), 3);
	assert_true(command_complete(st, "scre", out, sizeof(out)));
	assert_string_equal(out, "screen ");
	assert_true(command_complete(st, "modules", out, sizeof(out)));
	assert_string_equal(out, "modules");
	assert_true(command_complete(st, "order to", out, sizeof(out)));
	assert_string_equal(out, "order total");
	assert_false(command_complete(st, "nothing", out, sizeof(out)));
	assert_false(command_complete(st, "screen /tmp/x", out, sizeof(out)));
	assert_true(command_complete(st, "", out, sizeof(out)));
	assert_string_equal(out, "");
	/* Words of the profile, each once. */
	model_take(&b.st, fake_profile(2, NULL));
	assert_true(command_complete(st, "pid 42", out, sizeof(out)));
	assert_string_equal(out, "pid 4242");
	b.st.shown->processes[0].container = TEXT("docker:aa11");
	b.st.shown->processes[1].container = TEXT("docker:aa11");
	b.st.shown->processes[2].cgroup = TEXT("/system.slice/backup.service");
	assert_int_equal(command_candidates(st, "cgroup d", all, sizeof(all)), 1);
	assert_true(command_complete(st, "cgroup b", out, sizeof(out)));
	assert_string_equal(out, "cgroup backup.service");
	/* Long words are completed as a whole, or not. */
	memset(long_name, 'x', sizeof(long_name) - 1);
	memcpy(long_name, "/long", 5);
	b.st.shown->processes[2].cgroup =
		(struct safe_text){ long_name, sizeof(long_name) - 1, sizeof(long_name) - 1 };
	assert_true(command_complete(st, "target cgroup /l", line, sizeof(line)));
	assert_string_equal(line + strlen("target cgroup "), long_name);
	assert_false(command_complete(st, "target cgroup /l", out, sizeof(out)));
	b.st.shown->processes[2].cgroup = TEXT("/system.slice/backup.service");
	/* A whole word is no candidate of itself, nor a process without a cgroup. */
	assert_int_equal(command_candidates(st, "cgroup", all, sizeof(all)), 0);
	assert_string_equal(command_hint("cgroup"), "TEXT");
	b.st.shown->processes[3].cgroup = TEXT("/");
	assert_int_equal(command_candidates(st, "cgroup ", all, sizeof(all)), 2);
	assert_true(command_complete(st, "cgroup backup", out, sizeof(out)));
	assert_string_equal(out, "cgroup backup.service");
	bench_fini(&b);
}

/* As by hand: type, Tab; the line as it is then. */
static const char *tab(struct bench *b, const char *text)
{
	press(b, K_ESC);
	press(b, ':');
	type(b, text);
	press(b, '\t');
	look(b);
	return b->st.prompt.line.text;
}

/* Files, events and kinds of targets. */
TEST(test_complete_words)
{
	const void *screen;
	char folder[] = "/tmp/proftop-words-XXXXXX", path[80], typed[120];
	static const char *const names[] = { "alpha.txt", "alphabet.txt", ".hidden", "bad\nname" };
	struct bench b;

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		f = fopen(path, "w");
		assert_non_null(f);
		fclose(f);
	}
	snprintf(path, sizeof(path), "%s/sub", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	bench_init(&b, 120, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	snprintf(typed, sizeof(typed), "screen %s", folder);
	tab(&b, typed);
	assert_int_equal(b.st.prompt.line.text[strlen(typed)], '/');
	snprintf(typed, sizeof(typed), "screen %s/a", folder);
	assert_non_null(strstr(tab(&b, typed), "/alpha"));
	assert_non_null(strstr(look(&b), "alphabet.txt"));
	snprintf(typed, sizeof(typed), "screen %s/alphab", folder);
	assert_non_null(strstr(tab(&b, typed), "/alphabet.txt"));
	snprintf(typed, sizeof(typed), "screen %s/s", folder);
	assert_non_null(strstr(tab(&b, typed), "/sub/"));
	/* Hidden ones on request; untypable ones never. */
	snprintf(typed, sizeof(typed), "screen %s/", folder);
	assert_string_equal(tab(&b, typed), typed);
	assert_int_equal(b.st.words.nr, 3);
	snprintf(typed, sizeof(typed), "screen %s/.h", folder);
	assert_non_null(strstr(tab(&b, typed), "/.hidden"));
	assert_string_equal(tab(&b, "screen /nothing/like/it"), "screen /nothing/like/it");
	/* A thread reads the folder. */
	b.st.folders = file_worker_new();
	snprintf(typed, sizeof(typed), "screen %s/alphab", folder);
	tab(&b, typed);
	/* It may take longer than Tab waits. */
	for (int i = 0; i < 1000 && !strstr(b.st.prompt.line.text, "/alphabet.txt"); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		if (outputs_file_result(&b.st, b.st.folders))
			prompt_keys_words(&b.st);
	}
	assert_non_null(strstr(b.st.prompt.line.text, "/alphabet.txt"));
	assert_string_equal(b.st.message, "");
	file_worker_free(b.st.folders, UINT64_MAX / 2);
	b.st.folders = NULL;
	/* Late words complete the line of their Tab alone. */
	screen = b.st.words.of;
	assert_non_null(screen);
	for (int same = 0; same < 2; same++) {
		snprintf(typed, sizeof(typed), "screen %s/alphab", folder);
		press(&b, K_ESC);
		press(&b, ':');
		type(&b, typed);
		words_files(&b.st.words, strchr(typed, '/'));
		b.st.words.of = screen;
		snprintf(b.st.prompt.tabbed, sizeof(b.st.prompt.tabbed), "%s%s", typed,
			 same ? "" : "et");
		prompt_keys_words(&b.st);
		assert_int_equal(!strcmp(b.st.prompt.line.text, typed), !same);
		/* Once. */
		line_set(&b.st.prompt.line, typed);
		prompt_keys_words(&b.st);
		assert_string_equal(b.st.prompt.line.text, typed);
	}
	assert_string_equal(tab(&b, "event page-f"), "event page-faults");
	assert_string_equal(tab(&b, "event cpu-clock,page-f"), "event cpu-clock,page-faults");
	/* No longer files, though Tab was not pressed: the kind of word. */
	press(&b, K_ESC);
	type(&b, ":screen ");
	assert_non_null(strstr(look(&b), "FILE"));
	assert_string_equal(tab(&b, "target us"), "target user ");
	assert_string_equal(tab(&b, "target pid 42"), "target pid 4242");
	assert_string_equal(tab(&b, "target pid 1,42"), "target pid 1,4242");
	assert_string_equal(tab(&b, "columns self,tot"), "columns self,total");
	assert_string_equal(tab(&b, "theme l"), "theme light");
	assert_string_equal(tab(&b, "cpus a"), "cpus all");
	bench_fini(&b);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/sub", folder);
	rmdir(path);
	rmdir(folder);
}

static void t_run(struct bench *b, const char *text)
{
	look(b);
	press(b, ':');
	type(b, text);
	press(b, K_ENTER);
}

/* Every action that has a name can be called by it. */
TEST(test_names)
{
	for (const struct key_binding *k = key_table(); k->action; k++) {
		struct bench b;

		if (!k->contexts)
			continue;
		bench_init(&b, 80, 24, false);
		model_take(&b.st, fake_profile(2, NULL));
		if (k->action != ACT_SAVE_SCREEN) {
			t_run(&b, k->name);
			assert_null(strstr(b.st.message, "unknown command"));
			look(&b);
		}
		bench_fini(&b);
	}
}

TEST(test_commands)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	t_run(&b, "messages");
	assert_int_equal(b.st.view, VIEW_MESSAGES);
	t_run(&b, "pid 812");
	assert_true(b.st.scope.drilled);
	assert_non_null(strstr(look(&b), "nginx[812]"));
	t_run(&b, "pid 4");
	assert_non_null(strstr(look(&b), "no samples of pid 4"));
	t_run(&b, "sort module");
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].sort,
			 function_columns_find(CONFIG_SORT_MODULE));
	t_run(&b, "hz 499");
	assert_true(b.sampler.rate == 499);
	t_run(&b, "hz nan");
	assert_true(b.sampler.rate == 499);
	t_run(&b, "find clock_get");
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].rows[b.st.lists[VIEW_FUNCTIONS].cursor].id, 18);
	t_run(&b, "frobnicate");
	assert_non_null(strstr(look(&b), "unknown command"));
	type(&b, ":save\r");
	assert_non_null(strstr(look(&b), "unknown command 'save'; did you mean save-screen?"));
	type(&b, ":event cyclesss\r");
	assert_non_null(strstr(look(&b), "did you mean 'cycles'?"));
	t_run(&b, "screen");
	assert_non_null(strstr(look(&b), "needs an argument"));
	t_run(&b, "trap");
	assert_int_equal(b.sampler.nr_lists, 1);
	assert_string_equal(b.sampler.trap, "");
	t_run(&b, "trap lost > 1");
	assert_string_equal(b.sampler.trap, "lost > 1");
	assert_int_equal(b.sampler.nr_lists, 1);
	assert_false(b.st.quit);
	t_run(&b, "q");
	assert_true(b.st.quit);
	bench_fini(&b);
}

/* The file has the content of the screen, without the line of the command. */
TEST(test_screen_file)
{
	char path[] = "/tmp/proftop-test-XXXXXX", text[64], *want;
	static char got[20000];
	struct bench b;
	int fd = mkstemp(path);
	ssize_t n;

	assert_true(fd >= 0);
	bench_init(&b, 80, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	want = strdup(look(&b));
	snprintf(text, sizeof(text), "screen! %s", path);
	t_run(&b, text);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC); /* a new file has the name */
	n = read(fd, got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, want);
	t_run(&b, "screen /nonexistent/file");
	assert_non_null(strstr(look(&b), "No such file"));
	free(want);
	close(fd);
	unlink(path);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

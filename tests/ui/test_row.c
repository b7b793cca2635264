// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The actions of a row: the menu lists and does each; the source of a row, and the editor that is
 * run for it.
 */
#include "ui/actions.c"

#include "tests/ui/golden.h"

#include <sys/wait.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/state/state.h"

/* A profile with function 12 at line 30 of b.cc twice as often as at line 7 of a.cc. */
static struct profile *profile_with_lines(void)
{
	struct profile *p = fake_profile(2, NULL);
	uint32_t nr = 0;

	p->files = calloc(2, sizeof(*p->files));
	p->files[0] = TEXT("/src/a.cc");
	p->files[1] = TEXT("/src/b.cc");
	p->nr_files = 2;
	p->lines = calloc(2, sizeof(*p->lines));
	p->lines[0] = (struct profile_line){ 0, 7, 0 };
	p->lines[1] = (struct profile_line){ 1, 30, 0 };
	p->nr_lines = 2;
	p->has_source = true;
	p->frame_lines = malloc(p->nr_frames * sizeof(*p->frame_lines));
	for (uint32_t i = 0; i < p->nr_frames; i++)
		p->frame_lines[i] = PROFILE_NO_LINE;
	for (uint32_t i = 0; i < p->nr_counts; i++) {
		uint32_t first = p->stacks[p->counts[i].stack].first;

		if (p->functions[p->frames[first]].id != 12)
			continue;
		p->frame_lines[first] = nr++ % 2 ? 0 : 1;
		p->frame_lines[first + 1] = 0; /* main called it from there */
	}
	assert_true(nr > 0);
	return p;
}

TEST(test_source)
{
	char path[EDITOR_PATH_MAX];
	uint32_t line = 0;
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	assert_false(actions_source(&b.st, path, sizeof(path), &line));
	unsetenv("VISUAL");
	setenv("EDITOR", " vi", 1);
	press(&b, 'O');
	assert_string_equal(b.st.edit.path, "");
	assert_non_null(strstr(look(&b), "unknown source"));
	model_take(&b.st, profile_with_lines());
	press(&b, 'j');
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].selected, 12);
	assert_true(actions_source(&b.st, path, sizeof(path), &line));
	assert_string_equal(path, "/src/b.cc");
	assert_int_equal(line, 30);
	press(&b, 'O');
	assert_string_equal(b.st.edit.path, "/src/b.cc");
	assert_int_equal(b.st.edit.line, 30);
	b.st.edit.path[0] = '\0';
	unsetenv("EDITOR");
	press(&b, 'O');
	assert_string_equal(b.st.edit.path, "");
	assert_non_null(strstr(look(&b), "set VISUAL or EDITOR"));
	/* Main was never itself on top: the lines of its calls count. */
	press(&b, 'G');
	while (b.st.lists[VIEW_FUNCTIONS].selected != 20 && b.st.lists[VIEW_FUNCTIONS].cursor)
		press(&b, 'k');
	assert_true(actions_source(&b.st, path, sizeof(path), &line));
	assert_string_equal(path, "/src/a.cc");
	bench_fini(&b);
}

TEST(test_menu)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	press(&b, 'm');
	assert_null(b.st.dialog.ops);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, 'j');
	press(&b, 'm');
	golden(&b, "menu-80x24");
	/* After / typing narrows the list, Enter runs the action that is left. */
	type(&b, "/callers");
	press(&b, K_ENTER);
	assert_null(b.st.dialog.ops);
	assert_int_equal(b.st.view, VIEW_CALLERS);
	press(&b, K_ESC);
	/* The keys on the left do the same; others do nothing, and say so. */
	press(&b, 'm');
	press(&b, 'x');
	assert_non_null(strstr(look(&b), "no such key in this menu"));
	press(&b, 'O');
	assert_non_null(strstr(look(&b), "unknown source"));
	press(&b, 'b');
	assert_null(b.st.dialog.ops);
	assert_int_equal(b.st.view, VIEW_CALLERS);
	press(&b, K_ESC);
	/* Unavailable actions are listed with the reason. */
	press(&b, 'm');
	type(&b, "/editor");
	press(&b, K_ENTER);
	assert_non_null(b.st.dialog.ops);
	assert_non_null(strstr(look(&b), "unknown source"));
	press(&b, K_ESC);
	assert_null(b.st.dialog.ops);
	bench_fini(&b);
}

/* Of a row without a name the menu says why, and how to fix it. */
TEST(test_reason)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	bench_init(&b, 80, 30, false);
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		if (p->functions[i].id != 17)
			continue;
		p->functions[i].unnamed = true;
		p->functions[i].reason = "stripped: no symbols";
		p->functions[i].fix = "install its debug symbols";
	}
	model_take(&b.st, p);
	while (b.st.lists[VIEW_FUNCTIONS].selected != 17)
		press(&b, 'j');
	press(&b, 'm');
	assert_non_null(strstr(look(&b), "stripped: no symbols"));
	type(&b, "/fix");
	assert_non_null(strstr(look(&b), "install its debug symbols"));
	press(&b, K_ENTER);
	assert_null(b.st.dialog.ops);
	assert_non_null(strstr(look(&b), "how to fix it: install"));
	bench_fini(&b);
}

/* Run the command as it is, without a terminal; return the output of "editor". */
static int run(const char *program, const char *path, uint32_t line, char *out, size_t size)
{
	struct editor_command c;
	int pipes[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(editor_command(&c, program, path, line, NULL), 0);
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		execv("/bin/sh", c.argv);
		_exit(99);
	}
	close(pipes[1]);
	while (n < size - 1 && (got = read(pipes[0], out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(pipes[0]);
	waitpid(pid, &status, 0);
	return status;
}

TEST(test_command)
{
	char out[512], path[] = "/tmp/test row; touch $HOME `id`.XXXXXX";
	struct err e;
	int fd = mkstemp(path), status;
	char want[600];

	assert_true(fd >= 0);
	close(fd);
	/* A path is never read as shell. */
	status = run("printf '%s|'", path, 12, out, sizeof(out));
	assert_int_equal(editor_result(status, "printf", path, &e), 0);
	snprintf(want, sizeof(want), "+12|%s|", path);
	assert_string_equal(out, want);
	/* The editor's arguments are first, split as a shell does. */
	run("printf '%s|' -w 'a b'", path, 3, out, sizeof(out));
	snprintf(want, sizeof(want), "-w|a b|+3|%s|", path);
	assert_string_equal(out, want);
	unlink(path);
	status = run("true", path, 3, out, sizeof(out));
	assert_int_not_equal(editor_result(status, "true", path, &e), 0);
	assert_non_null(strstr(e.text, "source not found"));
	status = run("/nowhere/to/be/run", "/etc/passwd", 3, out, sizeof(out));
	assert_int_not_equal(editor_result(status, "/nowhere/to/be/run", path, &e), 0);
	assert_non_null(strstr(e.text, "cannot run the editor"));
	/* One that was left with an error is no fault of ours. */
	status = run("false", "/etc/passwd", 3, out, sizeof(out));
	assert_int_equal(editor_result(status, "false", path, &e), 0);
}

TEST(test_goto)
{
	struct editor_command c;

	editor_command(&c, "/usr/bin/code --wait", "/a b", 4, NULL);
	assert_string_equal(c.argv[5], "--goto");
	assert_string_equal(c.argv[6], "/a b:4");
	editor_command(&c, "codex", "/a b", 4, NULL);
	assert_string_equal(c.argv[5], "+4");
	assert_string_equal(c.argv[6], "/a b");
	assert_null(c.argv[7]);
}

/* Names of source files are foreign bytes: none may reach the editor as an option or command. */
TEST(test_hostile_paths)
{
	static const char *const bad[] = { "+!id>x", "-c!id", "--cmd=x", "relative.c", "", "~/x" };
	char long_path[EDITOR_PATH_MAX + 8] = "/", program[EDITOR_PATH_MAX + 8];
	struct editor_command c;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(editor_command(&c, "vim", bad[i], 1, &e), -EINVAL);
		assert_non_null(strstr(e.text, "not absolute"));
	}
	memset(long_path + 1, 'a', EDITOR_PATH_MAX);
	long_path[EDITOR_PATH_MAX + 1] = '\0';
	assert_int_equal(editor_command(&c, "vim", long_path, 1, &e), -EINVAL);
	memset(program, 'a', EDITOR_PATH_MAX);
	program[EDITOR_PATH_MAX] = '\0';
	assert_int_equal(editor_command(&c, program, "/a", 1, &e), -E2BIG);
	assert_int_equal(editor_command(&c, "/usr/bin/vim -n", "/+a", 7, &e), 0);
	assert_string_equal(c.argv[5], "+7");
	assert_string_equal(c.argv[6], "--");
	assert_string_equal(c.argv[7], "/+a");
	assert_null(c.argv[8]);
}

/* The longest text of a profile is refused, not cut. */
TEST(test_longest_path)
{
	char longest[TEXT_MAX + 1];
	struct profile *p;
	struct bench b;

	setenv("EDITOR", "vim", 1);
	memset(longest, 'a', TEXT_MAX);
	longest[0] = '/';
	longest[TEXT_MAX] = '\0';
	bench_init(&b, 100, 30, false);
	p = profile_with_lines();
	p->files[1] = (struct safe_text){ longest, TEXT_MAX, TEXT_MAX };
	model_take(&b.st, p);
	press(&b, 'j');
	press(&b, 'O');
	assert_string_equal(b.st.edit.path, "");
	assert_non_null(strstr(look(&b), "source not opened: /aaa"));
	bench_fini(&b);
}

/* O on a row with a source of such a name starts no editor. */
TEST(test_hostile_row)
{
	struct profile *p;
	struct bench b;

	setenv("EDITOR", "vim", 1);
	bench_init(&b, 100, 30, false);
	p = profile_with_lines();
	p->files[1] = (struct safe_text)TEXT("+!touch pwned");
	model_take(&b.st, p);
	press(&b, 'j');
	press(&b, 'O');
	assert_string_equal(b.st.edit.path, "");
	assert_non_null(strstr(look(&b), "path is not absolute"));
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

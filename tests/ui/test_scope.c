// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The screen says whose rows it shows: header, tabs and the line at the foot, in each view, with
 * and without a process that is drilled into; Esc leads out of each.
 */
#include "ui/outputs.c"

#include "tests/ui/fake.h"
#include "ui/internal.h"
#include "ui/fold/fold.h"
#include "ui/view/view.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"
#include "ui/state/state.h"

#define PROCESS "\u25b8 api-server[4242]"
#define CLOSES	"(Esc closes api-server[4242])"

static void add_notice(struct profile *p, uint32_t id, const char *key, bool active)
{
	struct profile_message *n;

	p->messages = reallocarray(p->messages, p->nr_messages + 1, sizeof(*p->messages));
	n = &p->messages[p->nr_messages++];
	*n = (struct profile_message){
		.id = id, .severity = MESSAGE_WARN, .active = active, .control = MESSAGE_MODULES
	};
	snprintf(n->key, sizeof(n->key), "%s", key);
	snprintf(n->brief, sizeof(n->brief), "trouble with %s", key);
	snprintf(n->fix, sizeof(n->fix), "repair %s", key);
}

static struct profile *noticed(bool first, bool second)
{
	struct profile *p = fake_profile(2, NULL);

	fake_details(p);
	free(p->messages);
	p->messages = NULL;
	p->nr_messages = 0;
	add_notice(p, 0, "names", first);
	add_notice(p, 1, "stacks", second);
	return p;
}

static void drill(struct bench *b, unsigned int cols, unsigned int rows)
{
	bench_init(b, cols, rows, false);
	model_take(&b->st, noticed(true, false));
	press(b, '2');
	while (strcmp(b->st.shown->processes[view_row(&b->st)->index].comm.str, "api-server"))
		press(b, 'j');
	press(b, K_ENTER);
	assert_true(b->st.scope.drilled);
}

static bool shows(struct bench *b, const char *text)
{
	return strstr(look(b), text);
}

TEST(test_header)
{
	static const struct {
		uint32_t key;
		bool process;
	} views[] = { { '1', true },  { '2', false }, { '3', true }, { '4', true },
		      { '5', false }, { '6', true },  { '7', false } };
	struct bench b;

	drill(&b, 100, 30);
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		press(&b, views[i].key);
		assert_int_equal(shows(&b, PROCESS), views[i].process);
		assert_int_equal(shows(&b, CLOSES), !views[i].process);
		/* Its command line, or the CPUs of the system. */
		assert_int_equal(shows(&b, "\n api-server --config"), views[i].process);
		assert_int_equal(shows(&b, "\n   0\u2595"), !views[i].process);
		assert_int_equal(shows(&b, "Symbols 100%   All stacks"), views[i].process);
		assert_int_equal(shows(&b, "! all processes: trouble with names"),
				 views[i].process);
		assert_int_equal(shows(&b, "! trouble with names"), !views[i].process);
	}
	/* Threads: all of the process, also if one of them was opened. */
	press(&b, 'H');
	assert_true(shows(&b, PROCESS));
	press(&b, K_ENTER);
	assert_true(shows(&b, "api-server[4242] thread 4242"));
	press(&b, 'H');
	press(&b, 'H');
	assert_true(shows(&b, PROCESS));
	assert_false(shows(&b, "thread 4242"));
	bench_fini(&b);
}

/* Esc where the rows are of all processes closes the process, in the same view. */
TEST(test_back)
{
	struct bench b;

	drill(&b, 100, 30);
	press(&b, '5');
	press(&b, K_ESC);
	assert_false(b.st.scope.drilled);
	assert_int_equal(b.st.view, VIEW_CPUS);
	assert_true(shows(&b, "closed api-server[4242]"));
	assert_false(shows(&b, CLOSES));
	bench_fini(&b);
	/* Elsewhere it leads to where the process was opened. */
	drill(&b, 100, 30);
	press(&b, '3');
	press(&b, K_ESC);
	assert_false(b.st.scope.drilled);
	assert_int_equal(b.st.view, VIEW_PROCESSES);
	bench_fini(&b);
}

/* Views that lose their function lead to no dead end: Esc returns to the tab. */
TEST(test_back_to_tab)
{
	struct bench b;

	bench_init(&b, 100, 30, false);
	model_take(&b.st, noticed(false, false));
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_CALLERS);
	press(&b, 'p');
	press(&b, K_ENTER);
	assert_true(b.st.scope.drilled);
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_CALLERS);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	press(&b, K_ESC);
	assert_false(b.st.scope.drilled);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	press(&b, 'a');
	assert_int_equal(b.st.view, VIEW_ANNOTATE);
	press(&b, 'p');
	press(&b, K_ENTER);
	press(&b, K_ESC);
	assert_false(b.st.scope.drilled);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	bench_fini(&b);
}

/* Esc leads from a thread to the process or group that it was opened in, or out. */
TEST(test_back_from_thread)
{
	struct profile *p = noticed(false, false);
	struct bench b;

	drill(&b, 100, 30);
	press(&b, 'H');
	for (int i = 0; i < 2; i++) {
		press(&b, K_ENTER);
		assert_true(shows(&b, "api-server[4242] thread 4242"));
		press(&b, i ? K_ESC : '2');
		assert_int_equal(b.st.view, VIEW_PROCESSES);
		assert_int_equal(b.st.scope.in_thread, !i);
		assert_true(shows(&b, PROCESS) && !shows(&b, "thread 4242"));
		assert_int_equal(ui_state_list(&b.st)->nr, 1);
	}
	press(&b, K_ESC);
	assert_false(b.st.scope.drilled);
	assert_int_equal(b.st.view, VIEW_PROCESSES);
	/* Threads of the system: there is no process around. */
	press(&b, K_ENTER);
	assert_true(b.st.scope.in_thread);
	press(&b, K_ESC);
	assert_false(b.st.scope.drilled);
	bench_fini(&b);
	bench_init(&b, 100, 30, false);
	p->processes[3].comm = p->processes[0].comm;
	model_take(&b.st, p);
	press(&b, '2');
	while (strcmp(p->processes[view_row(&b.st)->index].comm.str, "api-server"))
		press(&b, 'j');
	press(&b, K_ENTER);
	assert_string_equal(b.st.scope.group, "api-server");
	press(&b, 'H');
	assert_int_equal(ui_state_list(&b.st)->nr, 2);
	press(&b, K_ENTER);
	assert_string_equal(b.st.scope.group, "");
	press(&b, K_ESC);
	assert_string_equal(b.st.scope.group, "api-server");
	assert_int_equal(ui_state_list(&b.st)->nr, 2);
	bench_fini(&b);
}

/* Of one user or cgroup, the figures of all processes are named so, and the others are of the
 * rows. */
TEST(test_chosen)
{
	struct bench b;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, noticed(true, false));
	assert_true(shows(&b, "Symbols 98%   Stacks"));
	type(&b, ":cgroup nginx\r");
	for (const char *view = "1234"; *view; view++) {
		press(&b, (unsigned char)*view);
		b.st.message[0] = '\0';
		assert_true(shows(&b, "Symbols 100%   All stacks"));
		assert_true(shows(&b, "! all processes: trouble with names"));
	}
	/* This view is of all CPUs. */
	press(&b, '5');
	assert_true(shows(&b, "Symbols 98%   Stacks"));
	assert_true(shows(&b, "! trouble with names"));
	type(&b, ":cgroup\r");
	press(&b, '1');
	b.st.scope.by_user = true;
	b.st.scope.uid = 33;
	folds_forget(b.st.folds);
	table_rebuild(&b.st, VIEW_FUNCTIONS);
	assert_true(shows(&b, "Symbols 100%   All stacks"));
	bench_fini(&b);
}

/* An export has the samples of the process that it names, and says who was left out. */
TEST(test_export)
{
	struct profile *p = noticed(false, false);
	struct snapshot_scope scope;
	struct bench b;

	drill(&b, 100, 30);
	assert_true(outputs_export_scope(&b.st, &scope));
	assert_string_equal(scope.title, "api-server[4242]");
	assert_string_equal(scope.only, "");
	b.st.shown->modules = calloc(1, sizeof(*b.st.shown->modules));
	b.st.shown->modules[0] = (struct profile_module){ .id = 7, .name = TEXT("libfoo.so") };
	b.st.shown->nr_modules = 1;
	navigate_into_module(&b.st, 0);
	b.st.scope.by_user = true;
	b.st.scope.uid = 4711;
	outputs_export_scope(&b.st, &scope);
	assert_string_equal(scope.only, "user 4711, module libfoo.so");
	assert_int_equal(scope.module, 7);
	/* The other views show all modules. */
	press(&b, '4');
	outputs_export_scope(&b.st, &scope);
	assert_string_equal(scope.only, "user 4711");
	assert_int_equal(scope.module, UINT32_MAX);
	/* Not all samples under the name of a process that has none. */
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i].id += 1000;
	model_take(&b.st, p);
	assert_false(outputs_export_scope(&b.st, &scope));
	outputs_export(&b.st, "/nowhere/x.folded", EXPORT_NR, false);
	assert_true(shows(&b, "nothing to export: no samples of api-server[4242]"));
	bench_fini(&b);
}

/* A notice is about all processes: so are the modules that its fix shows, the nameless first. */
TEST(test_fix)
{
	struct bench b;

	drill(&b, 100, 30);
	press(&b, 'A');
	assert_int_equal(b.st.view, VIEW_MODULES);
	assert_false(b.st.scope.drilled);
	assert_true(shows(&b, "UNNAMED\u25bc"));
	assert_true(shows(&b, "most samples without a symbol first"));
	bench_fini(&b);
}

/* A key for a row that has left opens no other row: it selects the one in that place first. */
TEST(test_row_that_left)
{
	struct bench b;
	struct list *list;

	bench_init(&b, 100, 30, false);
	model_take(&b.st, noticed(false, false));
	press(&b, '1');
	press(&b, 'j');
	list = &b.st.lists[VIEW_FUNCTIONS];
	assert_true(list->nr > 2 && list->cursor == 1);
	list->selected = 987654321;
	model_take(&b.st, noticed(false, false));
	assert_int_equal(list->cursor, 1);
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	assert_true(shows(&b, "the selected row has no samples now: this is "));
	assert_int_equal(list->selected, list->rows[1].id);
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_CALLERS);
	bench_fini(&b);
}

/* Threads have a TID; the time since the start goes on when counts begin again. */
TEST(test_titles)
{
	struct profile *p = noticed(false, false);
	struct bench b;

	p->running_ns = 5000000000;
	p->session_ns = 3723000000000;
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	assert_true(shows(&b, "run 01:02:03"));
	press(&b, '2');
	assert_true(shows(&b, " PID ") && !shows(&b, " TID "));
	press(&b, 'H');
	assert_true(shows(&b, " TID ") && !shows(&b, " PID "));
	bench_fini(&b);
}

/* Of two notices that alternate one is shown, until it is over for some seconds. */
TEST(test_notice_stays)
{
	struct bench b;

	bench_init(&b, 100, 30, false);
	for (int tick = 0; tick < 20; tick++) {
		b.st.now_ns += 1000000000;
		model_take(&b.st, noticed(tick % 2 == 0, tick % 2 == 1));
		assert_true(shows(&b, "! trouble with names"));
	}
	for (int tick = 0; tick < 5; tick++) {
		b.st.now_ns += 1000000000;
		model_take(&b.st, noticed(false, true));
	}
	assert_true(shows(&b, "! trouble with stacks"));
	/* A grave one does not wait. */
	b.st.now_ns += 1000000000;
	struct profile *p = noticed(true, true);

	p->messages[0].severity = MESSAGE_GRAVE;
	model_take(&b.st, p);
	assert_true(shows(&b, "! trouble with names"));
	bench_fini(&b);
}

/* Views without a tab are marked while they are shown, and Esc returns to the tab. */
TEST(test_tools)
{
	static const struct {
		uint32_t key;
		const char *tab;
	} tools[] = { { '%', "[%:Branches]" }, { '@', "[@:Memory]" } };
	struct bench b;

	bench_init(&b, 100, 30, false);
	model_take(&b.st, noticed(false, false));
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		press(&b, '5');
		press(&b, tools[i].key);
		assert_true(shows(&b, tools[i].tab));
		assert_false(shows(&b, "[5:CPUs]"));
		press(&b, K_ESC);
		assert_int_equal(b.st.view, VIEW_CPUS);
		press(&b, tools[i].key);
		press(&b, K_TAB);
		assert_int_equal(b.st.view, VIEW_MODULES);
	}
	press(&b, '1');
	press(&b, K_ENTER);
	assert_true(shows(&b, "[Callers]"));
	/* From one tool to the other, and out. */
	press(&b, '%');
	press(&b, '@');
	press(&b, 'q');
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	assert_false(b.st.quit);
	bench_fini(&b);
}

/* The search of the flame graph counts the boxes that it marks, processes also. */
TEST(test_flame_search)
{
	struct bench b;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, noticed(false, false));
	press(&b, '4');
	press(&b, '/');
	type(&b, "nginx");
	press(&b, K_ENTER);
	assert_true(shows(&b, "matches /nginx/"));
	assert_false(shows(&b, " 0.00% in all"));
	press(&b, '/');
	press(&b, K_CTRL('u'));
	type(&b, "nosuch");
	press(&b, K_ENTER);
	assert_true(shows(&b, " 0.00% in all"));
	bench_fini(&b);
}

/* Waits have no rate. */
TEST(test_rate_of_waits)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	fake_waits(p);
	bench_init(&b, 100, 30, false);
	model_take(&b.st, p);
	ui_state_set_time(&b.st, CONFIG_TIME_WAIT);
	press(&b, K_F(2));
	assert_false(shows(&b, "0 Hz"));
	assert_true(shows(&b, "each switch"));
	bench_fini(&b);
}

/* The letters of the bar are the first ones of the columns' titles, at each width those with most
 * time, and none is cut. */
TEST(test_time_columns)
{
	for (unsigned int cols = 80; cols <= 220; cols += 5) {
		struct profile *p = fake_profile(2, NULL);
		struct bench b;
		const char *head, *end, *last;
		char line[1024];

		fake_details(p);
		fake_waits(p);
		bench_init(&b, cols, 40, false);
		model_take(&b.st, p);
		ui_state_set_time(&b.st, CONFIG_TIME_ALL);
		press(&b, '2');
		head = strstr(look(&b), " SHARE%");
		assert_non_null(head);
		end = strchr(head, '\n');
		for (const char *name = "CPU   \0EVENT\0LOCK\0"; *name; name += strlen(name) + 1) {
			const char *at = strstr(head, name);

			assert_true(at && at < end);
		}
		/* The last column is whole. */
		snprintf(line, sizeof(line), "%.*s", (int)(end - head), head);
		last = strrchr(line, ' ');
		if (!strstr(" CPU RUNQ LOCK DISK PIPE EVENT SLEEP OTHER IDLE FUNCTION ", last))
			print_message("%u: %s\n", cols, line);
		assert_non_null(
			strstr(" CPU RUNQ LOCK DISK PIPE EVENT SLEEP OTHER IDLE FUNCTION ", last));
		bench_fini(&b);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The views around the functions: CPUs, modules, messages, threads; whole screens and their data.
 * GOLDEN=update writes the screens.
 * Live: waits for threads or processes.
 */
#include "ui/view/view_processes.c"

#include "tests/ui/golden.h"

#include <unistd.h>

#include "sampler/profile/profile.h"
#include "ui/text/text.h"
#include "tests/unhash.h"
#include "unwind/unwind.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/image/image.h"
#include "symbols/process/process.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/state/state.h"
#include "ui/internal.h"

static const struct {
	unsigned int cols, rows;
	bool ascii;
	const char *name;
} sizes[] = {
	{ 80, 24, false, "80x24" }, { 100, 30, false, "100x30" },    { 200, 60, false, "200x60" },
	{ 40, 8, false, "40x8" },   { 80, 24, true, "80x24-ascii" },
};

/* As the builder does it. */
static struct profile *with_messages(struct profile *p)
{
	static struct messages n;

	n = (struct messages){ .nr = 0 };
	messages_apply(&n, p, p->running_ns, p->window_ns);
	return p;
}

/* A profile with modules of all kinds, and trouble on a CPU. */
static struct profile *rich_profile(bool trouble)
{
	static const struct {
		const char *name, *path, *source, *reason, *fix;
		enum profile_module_state state;
		uint32_t nr_symbols;
	} specs[] = {
		{ "[kernel]", "[kernel]", "kallsyms", "", "", PROFILE_MODULE_READY, 121851 },
		{ "api-server", "/opt/api/bin/api-server", ".symtab", "", "", PROFILE_MODULE_READY,
		  8120 },
		{ "libvendor.so", "/opt/vendor/lib/libvendor.so", "", "stripped",
		  "install its debug package, or keep its symbols when it is built",
		  PROFILE_MODULE_READY, 0 },
		{ "[JIT node]", "[JIT node]", "", "no perf map", "node --perf-basic-prof",
		  PROFILE_MODULE_FAILED, 0 },
	};
	struct profile *p = fake_profile(2, NULL);

	p->modules = calloc(ARRAY_SIZE(specs), sizeof(*p->modules));
	p->nr_modules = ARRAY_SIZE(specs);
	for (uint32_t i = 0; i < ARRAY_SIZE(specs); i++)
		p->modules[i] = (struct profile_module){
			.id = 70 + i,
			.name = text_arena_add(p->names, specs[i].name, strlen(specs[i].name)),
			.path = text_arena_add(p->names, specs[i].path, strlen(specs[i].path)),
			.state = specs[i].state,
			.source = specs[i].source,
			.reason = specs[i].reason,
			.fix = specs[i].fix,
			.nr_symbols = specs[i].nr_symbols,
		};
	for (uint32_t i = 0; i < p->nr_functions; i++) {
		char kind = p->functions[i].kind;

		p->functions[i].module_index = kind == 'k'   ? 0
					       : kind == 'j' ? 3
					       : kind == '?' ? 2
							     : 1;
		p->functions[i].unnamed = kind == '?';
	}
	p->unwind = (struct profile_unwind){ .frames = 41000,
					     .row_hits = 40000,
					     .steps = 900,
					     .guessed = 100,
					     .rows = 812,
					     .rows_differ = 3 };
	p->broken_by[5] = 12;
	p->broken_by[8] = 6;
	p->cpus[0].ring_high = 0.04;
	p->cpus[0].kernel = 250;
	p->cpus[0].hot = 13;
	p->cpus[0].hot_samples = 310;
	if (!trouble)
		return with_messages(p);
	p->cpus[1].lost = 37;
	p->cpus[1].lost_total = 120;
	p->cpus[1].throttled = 2;
	p->cpus[1].throttled_total = 2;
	p->cpus[1].throttled_ns = 41000000;
	p->cpus[1].ring_high = 0.61;
	p->account.lost = 37;
	p->account.taken += 37;
	p->account_total.lost = 120;
	p->account_total.taken += 120;
	p->dropped_by[DROP_CELLS_FULL] = 4;
	p->nr_names_dropped = 5200;
	p->account.dropped = 4;
	p->account.taken += 4;
	return with_messages(p);
}

TEST(test_screens)
{
	static const struct {
		const char *name, *keys;
	} views[] = {
		{ "cpus", "5" }, { "modules", "6jj" }, { "messages", "7" }, { "threads", "H" }
	};
	char name[64];

	for (size_t v = 0; v < ARRAY_SIZE(views); v++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct bench b;

			bench_init(&b, sizes[i].cols, sizes[i].rows, sizes[i].ascii);
			model_take(&b.st, rich_profile(true));
			type(&b, views[v].keys);
			b.st.message[0] = '\0';
			snprintf(name, sizeof(name), "%s-%s", views[v].name, sizes[i].name);
			golden(&b, name);
			bench_fini(&b);
		}
	}
}

/* Shares of the modules add up to all samples, whatever has a name. */
TEST(test_modules)
{
	const struct list *list;
	double sum = 0, count = 0;
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, rich_profile(false));
	press(&b, '6');
	list = &b.st.lists[VIEW_MODULES];
	assert_int_equal(list->nr, 4);
	for (uint32_t i = 0; i < list->nr; i++) {
		sum += list->rows[i].total;
		count += list->rows[i].count;
		/* libvendor has no names at all. */
		if (list->rows[i].id == 72)
			assert_true(list->rows[i].self == 0);
		else
			assert_true(list->rows[i].self == 1);
	}
	assert_true(sum > 0.999999 && sum < 1.000001);
	assert_true(count == list->count);
	bench_fini(&b);
}

/* Modules against a baseline in which one was not and others had less or more. */
TEST(test_modules_baseline)
{
	struct profile *then = rich_profile(false);
	struct bench b;
	uint32_t other = then->functions[0].module_index ? 0 : 1;

	bench_init(&b, 100, 30, false);
	/* All of the first function's module was in another one. */
	for (uint32_t i = then->nr_functions; i-- > 0;)
		if (then->functions[i].module_index == then->functions[0].module_index)
			then->functions[i].module_index = other;
	model_take(&b.st, then);
	type(&b, "6B");
	model_take(&b.st, rich_profile(false));
	b.st.message[0] = '\0';
	golden(&b, "baseline-modules");
	assert_non_null(strstr(look(&b), "new!"));
	bench_fini(&b);
}

/* d shows the code of one module, and all again. */
TEST(test_only)
{
	struct bench b;
	uint32_t all;

	bench_init(&b, 100, 30, false);
	model_take(&b.st, rich_profile(false));
	all = b.st.lists[VIEW_FUNCTIONS].nr;
	press(&b, '6');
	press(&b, 'd');
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].nr, 6);
	assert_non_null(strstr(look(&b), "only api-server (d)"));
	/* It holds over ticks, and for a share of 100 %. */
	model_take(&b.st, rich_profile(false));
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].nr, 6);
	press(&b, 'd');
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].nr, all);
	/* Enter does the same, and Esc leads back. */
	press(&b, '6');
	press(&b, K_ENTER);
	assert_int_equal(b.st.lists[VIEW_FUNCTIONS].nr, 6);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_MODULES);
	assert_false(b.st.only.on);
	bench_fini(&b);
}

/* Each CPU shows the function hottest on it, also one that is hottest on another; an unknown one is
 * left out.
 */
TEST(test_hottest_of_cpus)
{
	struct profile *p = fake_profile(4, NULL);
	const struct profile_function *some = &p->functions[3], *other = &p->functions[1];
	const uint32_t ids[] = { some->id, other->id, some->id, UINT32_MAX - 1 };
	struct list *list;
	struct bench b;

	bench_init(&b, 100, 30, false);
	for (uint32_t i = 0; i < ARRAY_SIZE(ids); i++) {
		p->cpus[i].hot = ids[i];
		p->cpus[i].hot_samples = 1;
	}
	model_take(&b.st, p);
	press(&b, '5');
	look(&b);
	list = &b.st.lists[VIEW_CPUS];
	assert_int_equal(list->nr, ARRAY_SIZE(ids));
	for (uint32_t i = 0; i < list->nr; i++) {
		uint32_t cpu = list->rows[i].index;

		assert_int_equal(list->rows[i].top_function, cpu == 3	? UINT32_MAX
							     : cpu == 1 ? 1
									: 3);
	}
	bench_fini(&b);
}

static void cursor_on(struct bench *b, const char *text)
{
	type(b, "/");
	type(b, text);
	press(b, K_ENTER);
}

/* The mean is that of the online CPUs: the others are not idle. */
TEST(test_offline_cpus)
{
	struct profile *p = fake_profile(256, NULL);
	struct bench b;

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		p->cpus[i].online = i % 2;
		p->cpus[i].busy = i % 2;
	}
	bench_init(&b, 80, 24, false);
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "mean 100%"));
	bench_fini(&b);
}

/* On a small screen message and fix are broken into rows: each word can be read, and each row has
 * the fix. */
TEST(test_small_messages)
{
	char all[4000] = "";
	struct bench b;

	bench_init(&b, 40, 8, false);
	model_take(&b.st, rich_profile(true));
	press(&b, '7');
	for (int i = 0; i < 40; i++) {
		const char *screen = look(&b), *row = screen;

		for (int line = 0; line < 3; line++)
			row = strchr(row, '\n') + 1;
		assert_null(strstr(screen, "…"));
		while (*row != '\0' && strncmp(row, "▶", strlen("▶")) != 0)
			row = strchr(row, '\n') + 1;
		for (row += strlen("▶"); *row == ' ';)
			row++;
		strncat(all, row, strcspn(row, "\n"));
		strcat(all, " ");
		press(&b, 'j');
	}
	assert_non_null(strstr(all, "37 ! samples lost on CPU 1: the ring was full. Fix: double "
				    "the "
				    "rings to 4096 KiB; or lower the rate (-F), or copy less stack "
				    "(--stack-size)"));
	press(&b, 'g');
	press(&b, 'j');
	press(&b, 'j');
	press(&b, K_ENTER);
	assert_int_equal(b.sampler.ring_size, 4 << 20);
	bench_fini(&b);
}

/* The package of debug symbols, and the archive that it is in, as commands that can be typed. */
TEST(test_package_of_symbols)
{
	static const char *const files[][2] = {
		{ "gzip.list", "/usr/bin/gzip\n" },
		{ "sources.list", "deb http://x.org/debian bookworm main\n" },
	};
	struct profile *p = rich_profile(false);
	char dir[] = "/tmp/proftop-lists-XXXXXX", path[128];
	struct bench b;

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", dir, files[i][0]);
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(files[i][1], file);
		fclose(file);
	}
	p->modules[2].path = TEXT("/usr/bin/gzip");
	p->modules[2].fix = "install its debug symbols (-dbgsym)";
	bench_init(&b, 200, 40, false);
	b.st.packages = packages_new(dir, dir);
	model_take(&b.st, p);
	type(&b, "6");
	cursor_on(&b, "libvendor");
	for (int i = 0; i < 5000 && !strstr(look(&b), "; or: apt install"); i++)
		usleep(1000);
	if (!strstr(look(&b), "; or: apt install gzip-dbgsym"))
		fail_msg("%s", look(&b));
	if (!strstr(look(&b), "echo 'deb http://x.org/debian-debug bookworm-debug main' | sudo tee "
			      "/etc/apt/sources.list.d/debug.list; sudo apt update"))
		fail_msg("%s", look(&b));
	packages_free(b.st.packages);
	b.st.packages = NULL;
	bench_fini(&b);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i][0]);
		unlink(path);
	}
	rmdir(dir);
}

/* Files of one name have as much of their path as tells them from each other. */
TEST(test_modules_of_one_name)
{
	struct profile *p = rich_profile(false);
	struct bench b;

	assert_true(p->nr_modules > 3);
	p->modules[0].name = p->modules[1].name = p->modules[2].name = TEXT("libz.so");
	p->modules[0].path = TEXT("/opt/a/lib/libz.so");
	p->modules[1].path = TEXT("/opt/b/lib/libz.so");
	p->modules[2].path = TEXT("/usr/lib64/libz.so");
	bench_init(&b, 200, 30, false);
	model_take(&b.st, p);
	press(&b, '6');
	assert_non_null(strstr(look(&b), " a/lib/libz.so"));
	assert_non_null(strstr(look(&b), " b/lib/libz.so"));
	assert_non_null(strstr(look(&b), " lib64/libz.so"));
	p->modules[1].path = p->modules[2].path = p->modules[0].path;
	assert_null(strstr(look(&b), "lib/libz.so "));
	bench_fini(&b);
}

/*
 * Enter in Messages requests the fix of the sampler; A the one of the worst message, in any view.
 */
TEST(test_fixes)
{
	struct bench b;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, rich_profile(true));
	b.st.message[0] = '\0';
	assert_non_null(strstr(look(&b), "! samples lost on CPU 1 (A: larger rings)"));
	press(&b, 'A');
	assert_int_equal(b.sampler.ring_size, 4 << 20);
	press(&b, '7');
	cursor_on(&b, "throttled");
	press(&b, K_ENTER);
	assert_true(b.sampler.rate == 499 && b.sampler.rate_event == 0);
	cursor_on(&b, "count table");
	press(&b, K_ENTER);
	assert_int_equal(b.sampler.nr_resets, 1);
	cursor_on(&b, "stacks truncated");
	press(&b, K_ENTER);
	assert_int_equal(b.sampler.stack_size, 32768);
	cursor_on(&b, "guessed");
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_MODULES);
	bench_fini(&b);

	bench_init(&b, 120, 30, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, 'A');
	assert_non_null(strstr(look(&b), "no warning"));
	press(&b, '7');
	press(&b, K_ENTER);
	bench_fini(&b);
}

/* A names the module where stacks end, and selects it; it does not change the stacks. */
TEST(test_fix_names_module)
{
	struct profile *p = rich_profile(false);
	struct messages n = { .nr = 0 };
	const struct list *list;
	struct bench b;

	p->account.broken = p->account.taken / 4;
	p->broken_by[UNWIND_BAD_FRAME] = p->account.broken;
	p->broken_in[UNWIND_BAD_FRAME] = 72;
	free(p->messages);
	messages_apply(&n, p, p->running_ns, p->window_ns);
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	b.st.message[0] = '\0';
	assert_non_null(strstr(look(&b), "! broken stacks: bad frame in libvendor.so (A: show "
					 "by module)"));
	press(&b, 'A');
	list = &b.st.lists[VIEW_MODULES];
	assert_int_equal(b.st.view, VIEW_MODULES);
	assert_int_equal(list->rows[list->cursor].id, 72);
	assert_int_equal(b.sampler.call_graph, -1);
	bench_fini(&b);
}

/* Threads of a process add up to it; Enter goes into one. */
TEST(test_threads)
{
	struct profile *p = rich_profile(false);
	const struct list *list;
	struct bench b;
	double sum = 0;

	/* The cells of nginx now belong to a thread of api-server. */
	p->tasks[1].process = 0;
	p->tasks[1].tid = 4250;
	bench_init(&b, 100, 30, false);
	model_take(&b.st, p);
	press(&b, 'H');
	list = &b.st.lists[VIEW_PROCESSES];
	assert_int_equal(list->nr, NR_PROCESSES);
	for (uint32_t i = 0; i < list->nr; i++)
		sum += list->rows[i].total;
	assert_true(sum > 0.999999 && sum < 1.000001);
	while (list->rows[list->cursor].id != 901)
		press(&b, 'j');
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "api-server[4242] thread 4250"));
	/* Only the functions that the thread ran. */
	for (uint32_t i = 0; i < b.st.lists[VIEW_FUNCTIONS].nr; i++)
		assert_int_not_equal(b.st.lists[VIEW_FUNCTIONS].rows[i].id, 12);
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_PROCESSES);
	press(&b, 'H');
	assert_int_equal(list->nr, NR_PROCESSES - 1);
	bench_fini(&b);
}

/* Branches and accesses to memory have neither process nor time: the views say so. */
TEST(test_whole)
{
	static const enum view_id views[] = { VIEW_BRANCHES, VIEW_MEMORY };
	struct bench b;

	bench_init(&b, 100, 24, false);
	model_take(&b.st, rich_profile(false));
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		b.st.view = views[i];
		b.st.scope.drilled = b.st.rewind.on = false;
		assert_null(strstr(look(&b), "of all processes"));
		b.st.scope.drilled = true;
		b.st.scope.process = 1;
		assert_non_null(strstr(look(&b), "of all processes"));
		assert_null(strstr(look(&b), "whole time"));
		b.st.rewind.on = true;
		assert_non_null(strstr(look(&b), "of all processes, of the whole time"));
		b.st.scope.drilled = false;
		assert_non_null(strstr(look(&b), "of the whole time"));
	}
	b.st.rewind.on = false;
	bench_fini(&b);
}

/* Template arguments are left out until V. */
static void short_in(struct bench *b)
{
	if (!strstr(look(b), "Box<>::run"))
		fail_msg("whole names in view %u\n%s", b->st.view, look(b));
	press(b, 'V');
	if (strstr(look(b), "Box<>"))
		fail_msg("short names in view %u\n%s", b->st.view, look(b));
	press(b, 'V');
}

TEST(test_template_arguments)
{
	struct profile *p = fake_profile(4, NULL);
	struct bench b;

	for (uint32_t i = 0; i < p->nr_functions; i++)
		p->functions[i].name = TEXT("Box<int, std::less<int> >::run");
	p->cpus[2].hot = p->functions[3].id;
	p->cpus[2].hot_samples = 1;
	bench_init(&b, 160, 24, false);
	model_take(&b.st, p);
	press(&b, '5');
	short_in(&b);
	press(&b, '1');
	short_in(&b);
	/* A search finds the name as it is shown, and the whole one. */
	type(&b, "/Box<>::r");
	press(&b, K_ENTER);
	assert_null(strstr(look(&b), "not found"));
	type(&b, "/Box<int, std::l");
	press(&b, K_ENTER);
	assert_null(strstr(look(&b), "not found"));
	type(&b, "/Box<>::q");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "not found"));
	bench_fini(&b);
}

TEST(test_users)
{
	char path[] = "/tmp/proftop-users-XXXXXX", buf[64];
	int fd = mkstemp(path);
	struct users *u;

	assert_true(fd >= 0);
	dprintf(fd, "root:x:0:0::/root:/bin/sh\nbad line\nevil\033[31m:x:7:7::/:/bin/sh\n"
		    "www-data:x:33:33::/:/bin/false\n");
	close(fd);
	u = users_load(path);
	unlink(path);
	assert_non_null(u);
	assert_string_equal(users_name(u, 0, buf, sizeof(buf)).str, "root");
	assert_string_equal(users_name(u, 33, buf, sizeof(buf)).str, "www-data");
	assert_string_equal(users_name(u, 1234, buf, sizeof(buf)).str, "1234");
	assert_string_equal(users_name(u, (uid_t)-1, buf, sizeof(buf)).str, "?");
	assert_null(strchr(users_name(u, 7, buf, sizeof(buf)).str, '\033'));
	users_free(u);
	assert_null(users_load("/nonexistent/passwd"));
	assert_string_equal(users_name(NULL, 5, buf, sizeof(buf)).str, "5");
}

#define CHAINED 8192

static uint64_t tree_ns(bool chosen)
{
	struct profile p = { .nr_processes = CHAINED };
	struct process_tree tree;
	uint64_t begin_ns;
	pid_t pid = 0;

	p.processes = calloc(CHAINED, sizeof(*p.processes));
	assert_non_null(p.processes);
	for (int i = 0; i < CHAINED; i++)
		p.processes[i].pid = pid = unhash_pid(pid, 2 * CHAINED, 0, chosen);
	begin_ns = time_thread_ns();
	assert_int_equal(process_tree_make(&tree, &p), 0);
	begin_ns = time_thread_ns() - begin_ns;
	process_tree_fini(&tree);
	free(p.processes);
	return begin_ns;
}

/* Processes with pids that hash_u64() has in one chain cost as much as others. */
TEST(test_chosen_pids)
{
	unhash_compare_pids("tree of processes", tree_ns);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

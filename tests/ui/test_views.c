// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole screens from profiles made by hand, compared with files.
 * GOLDEN=update writes them; look at the difference before committing.
 * Live: reads a clock.
 */
#include "ui/view/view_help.c"
#include "ui/fold/fold.h"

#include "tests/ui/golden.h"
#include "ui/view/view_processes.c"

#include <math.h>
#include <unistd.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/internal.h"
#include "sampler/sampler.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/cli/cli.h"
#include "ui/state/state.h"
#include "ui/internal.h"

/* Return whether the action is on the card of keys. */
static bool view_help_has(enum action action)
{
	for (size_t i = 0; i < ARRAY_SIZE(left) + ARRAY_SIZE(right); i++) {
		const struct card_line *line = i < ARRAY_SIZE(left) ? &left[i]
								    : &right[i - ARRAY_SIZE(left)];

		for (int n = 0; n < CARD_MAX; n++)
			if (line->actions[n] == action)
				return true;
	}
	return false;
}

TEST(test_functions)
{
	static const struct {
		unsigned int cols, rows, cpus;
		bool ascii;
		const char *name;
	} cases[] = {
		{ 80, 24, 2, false, "functions-80x24" },
		{ 100, 30, 8, false, "functions-100x30" },
		{ 200, 60, 64, false, "functions-200x60" },
		{ 40, 8, 2, false, "functions-40x8" },
		{ 80, 24, 2, true, "functions-80x24-ascii" },
		{ 60, 12, 4, false, "functions-60x12" },
		{ 80, 24, 200, false, "functions-80x24-200cpus" },
		{ 39, 8, 2, false, "too-small-39x8" },
		{ 80, 7, 2, false, "too-small-80x7" },
	};
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bench_init(&b, cases[i].cols, cases[i].rows, cases[i].ascii);
		model_take(&b.st, fake_profile(cases[i].cpus, NULL));
		golden(&b, cases[i].name);
		bench_fini(&b);
	}
}

TEST(test_processes)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, '2');
	golden(&b, "processes-80x24");
	press(&b, 'j');
	press(&b, K_ENTER);
	golden(&b, "drilled-80x24");
	bench_fini(&b);
	for (int ascii = 0; ascii < 2; ascii++) {
		struct profile *p = fake_profile(2, NULL);

		bench_init(&b, ascii ? 80 : 120, 24, ascii);
		for (uint32_t i = 0; i < p->nr_processes; i++) {
			p->processes[i].command = TEXT("/usr/sbin/api-server --config /etc/api.yml "
						       "-v");
			p->processes[i].cgroup = TEXT("/system.slice/api.service");
			p->processes[i].up_ns = 266460 * 1000000000ull;
		}
		p->events[0].event.clock = true;
		model_take(&b.st, p);
		press(&b, '2');
		press(&b, K_ENTER);
		golden(&b, ascii ? "drilled-80x24-ascii" : "drilled-120x24");
		bench_fini(&b);
	}
	bench_init(&b, 40, 8, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, '2');
	golden(&b, "processes-40x8");
	bench_fini(&b);
}

/* Off by default; a column between SELF% and the bar, also on a narrow screen. */
TEST(test_intervals)
{
	struct bench b;

	bench_init(&b, 100, 30, false);
	model_take(&b.st, fake_profile(2, NULL));
	assert_null(strstr(look(&b), "95%"));
	press(&b, '~');
	b.st.message[0] = '\0';
	golden(&b, "intervals-100x30");
	press(&b, '~');
	assert_null(strstr(look(&b), "95%"));
	bench_fini(&b);
}

/* On a narrow screen names are readable beside error bars. */
TEST(test_narrow_intervals)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	fake_event(p, 1, "page-faults", 997, 10);
	p->counts[p->nr_counts - 1].event = 1;
	bench_init(&b, 80, 24, false);
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "page-f"));
	press(&b, '~');
	assert_non_null(strstr(look(&b), "95%"));
	assert_null(strstr(look(&b), "page-f"));
	b.st.message[0] = '\0';
	golden(&b, "intervals-80x24");
	bench_fini(&b);
}

/* Two events together: a column for the one that is not shown, whichever that is. */
TEST(test_other_event)
{
	struct profile *p = fake_profile(2, NULL);
	uint32_t i = 0;
	struct bench b;

	fake_event(p, 1, "page-faults", 997, 10);
	/* Of the other event there is one stack alone, and so one function with all samples. */
	while (i + 1 < p->nr_counts && p->counts[i].stack != p->counts[i + 1].stack)
		i++;
	assert_true(i + 1 < p->nr_counts);
	p->counts[i].event = 1;
	bench_init(&b, 100, 30, false);
	model_take(&b.st, p);
	golden(&b, "other-event-100x30");
	press(&b, 'E');
	assert_non_null(strstr(look(&b), "TOTAL%   cpu-clock "));
	/* Sorted by it, and with a window too narrow for it. */
	press(&b, 'E');
	press(&b, K_F(6));
	type(&b, "page-f");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "page-faul…▼"));
	assert_float_equal(b.st.lists[VIEW_FUNCTIONS].rows[0].other[0], 1, 1e-9);
	assert_float_equal(b.st.lists[VIEW_FUNCTIONS].rows[1].other[0], 0, 1e-9);
	bench_fini(&b);
}

/* The ratio of two events: in the header, and a column instead of the other event's share. */
TEST(test_ratio)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	fake_event(p, 0, "cycles", 997, 997);
	fake_event(p, 1, "instructions", 997, 997);
	p->events[0].count = 1e9;
	p->events[1].count = 1.5e9;
	for (uint32_t i = 0; i + 1 < p->nr_counts; i += 2) {
		p->counts[i + 1] = p->counts[i];
		p->counts[i + 1].event = 1;
		p->counts[i + 1].weight *= i ? 2 : 0.5;
	}
	bench_init(&b, 80, 24, false);
	model_take(&b.st, p);
	golden(&b, "ratio-80x24");
	/* Sorted by it: the functions without it are last. */
	press(&b, K_F(6));
	type(&b, "ipc");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "IPC▼"));
	assert_true(b.st.lists[VIEW_FUNCTIONS].rows[0].ratios[0] > 1.9);
	assert_true(isnan(b.st.lists[VIEW_FUNCTIONS].rows[0].ratios[1]));
	bench_fini(&b);
}

/* Cores of several types have a column in the CPUs view, and are sorted by it. */
TEST(test_cores)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	bench_init(&b, 80, 24, false);
	assert_true(p->nr_cpus > 1);
	model_take(&b.st, p);
	press(&b, '5');
	assert_null(strstr(look(&b), "CORE"));
	p = fake_profile(3, NULL);
	for (uint32_t i = 0; i < p->nr_cpus; i++)
		strcpy(p->cpus[i].core, i ? "atom" : "core");
	model_take(&b.st, p);
	if (!strstr(look(&b), "CPU▲ CORE "))
		fail_msg("%s", look(&b));
	press(&b, K_F(6));
	type(&b, "core");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "CORE"));
	assert_int_equal(b.st.shown->cpus[b.st.lists[VIEW_CPUS].rows[0].index].core[0], 'a');
	bench_fini(&b);
}

static struct profile *with_details(void)
{
	struct profile *p = fake_profile(2, NULL);

	fake_details(p);
	return p;
}

/* Command lines and cgroups; as a tree, in which a parent includes its descendants. */
TEST(test_process_tree)
{
	static const struct {
		unsigned int cols, rows;
		bool ascii;
		const char *list, *tree;
	} cases[] = {
		{ 80, 24, false, "processes-details-80x24", "process-tree-80x24" },
		{ 100, 30, true, "processes-details-100x30-ascii", "process-tree-100x30-ascii" },
		{ 200, 60, false, "processes-details-200x60", "process-tree-200x60" },
		{ 40, 8, false, "processes-details-40x8", "process-tree-40x8" },
	};
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bench_init(&b, cases[i].cols, cases[i].rows, cases[i].ascii);
		model_take(&b.st, with_details());
		press(&b, '2');
		golden(&b, cases[i].list);
		press(&b, 't');
		golden(&b, cases[i].tree);
		bench_fini(&b);
	}
}

static const struct row *row_of(struct bench *b, uint64_t id)
{
	const struct list *list = &b->st.lists[VIEW_PROCESSES];

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->rows[i].id == id)
			return &list->rows[i];
	return NULL;
}

/* A chain of processes, children first or last, has no more levels than can be drawn. */
TEST(test_process_tree_chain)
{
	const uint32_t nr = 200000;
	struct profile p = { .nr_processes = nr };
	struct process_tree t;

	p.processes = calloc(nr, sizeof(*p.processes));
	for (int last = 0; last < 2; last++) {
		uint32_t deepest = 0;

		for (uint32_t i = 0; i < nr; i++) {
			p.processes[i].pid = (pid_t)(i + 2);
			p.processes[i].parent = (pid_t)(last ? i + 1 : i + 3);
			p.processes[i].id = i;
		}
		assert_int_equal(process_tree_make(&t, &p), 0);
		for (uint32_t i = 0; i < nr; i++) {
			uint32_t level = 1;

			for (uint32_t at = t.parents[i]; at != UINT32_MAX; at = t.parents[at])
				assert_true(++level <= 64);
			deepest = MAX(deepest, level);
		}
		assert_int_equal(deepest, 64);
		process_tree_fini(&t);
	}
	free(p.processes);
}

TEST(test_process_tree_keys)
{
	const struct list *list;
	struct profile *p;
	struct bench b;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_PROCESSES];
	model_take(&b.st, with_details());
	press(&b, '2');
	press(&b, K_F(5));
	/* All is below the first process, which has the share of all. */
	assert_int_equal(list->nr, 6);
	assert_int_equal(list->rows[0].id, PROFILE_ANCESTOR | 1);
	assert_true(list->rows[0].total > 0.999 && list->rows[0].total < 1.001);
	assert_int_equal(row_of(&b, 503)->depth, 3);
	assert_int_equal(row_of(&b, 500)->depth, 2);
	/* Fold one: its descendants disappear, its share does not change. */
	press(&b, K_HOME);
	while (list->rows[list->cursor].id != 500)
		press(&b, 'j');
	press(&b, '-');
	assert_null(row_of(&b, 503));
	assert_true(row_of(&b, 500)->folded);
	press(&b, K_LEFT);
	assert_int_equal(list->rows[list->cursor].id, PROFILE_ANCESTOR | 700);
	press(&b, '*');
	assert_int_equal(list->nr, 6);
	press(&b, '*');
	assert_int_equal(list->nr, 1);
	/* Enter on a process without samples unfolds it. */
	press(&b, K_ENTER);
	assert_false(b.st.scope.drilled);
	assert_int_equal(list->nr, 4);
	press(&b, '*');
	/* A filter keeps the matches, also below the nearest kept ancestor. */
	press(&b, '\\');
	type(&b, "^node");
	press(&b, K_ENTER);
	assert_int_equal(list->nr, 1);
	assert_int_equal(list->rows[0].depth, 0);
	press(&b, K_ESC);
	/* With any pids, no parents form a circle. */
	p = with_details();
	p->processes[0].parent = 30121;
	p->ancestors[1].parent = 4242;
	p->processes[1].parent = 812;
	model_take(&b.st, p);
	assert_int_equal(list->nr, 6);
	press(&b, 't');
	assert_int_equal(list->nr, 4);
	bench_fini(&b);
}

/* The filter finds the text of the columns; :cgroup leaves out samples in every view. */
TEST(test_cgroup)
{
	static const char *const words[] = { "nightly", "backup.service", "^977$" };
	const struct list *list, *functions;
	struct bench b;
	double all;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_PROCESSES];
	functions = &b.st.lists[VIEW_FUNCTIONS];
	model_take(&b.st, with_details());
	all = functions->count;
	press(&b, '2');
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		press(&b, '\\');
		type(&b, words[i]);
		press(&b, K_ENTER);
		assert_int_equal(list->nr, 1);
		assert_int_equal(b.st.shown->processes[list->rows[0].index].id, 502);
		press(&b, K_ESC);
	}
	press(&b, ':');
	type(&b, "cgroup docker:3fa1");
	press(&b, K_ENTER);
	assert_int_equal(list->nr, 2);
	press(&b, '1');
	assert_true(functions->count > 0 && functions->count < all);
	assert_null(strstr(look(&b), "ZSTD_compress"));
	golden(&b, "cgroup-100x30");
	press(&b, '4');
	assert_null(strstr(look(&b), "ZSTD"));
	assert_non_null(strstr(look(&b), "parseObject"));
	press(&b, ':');
	type(&b, "cgroup");
	press(&b, K_ENTER);
	press(&b, '1');
	assert_true(functions->count == all);
	bench_fini(&b);
}

/* The selected row has one colour from the first cell to the last, in each table; others have more
 * than one. */
TEST(test_selected)
{
	static const char views[] = "1235b";
	struct bench b;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, fake_profile(2, NULL));
	for (const char *v = views; *v; v++) {
		const struct canvas *c = &b.canvas;
		unsigned int nr = 0;

		if (*v == 'b')
			press(&b, '1');
		press(&b, (unsigned char)*v);
		look(&b);
		for (unsigned int row = 0; row < c->rows; row++) {
			unsigned int same = 0;

			for (unsigned int col = 0; col < c->cols; col++)
				same += canvas_at(c, row, col)->style.role == ROLE_SELECTED;
			assert_true(!same || same == c->cols);
			nr += same > 0;
		}
		assert_int_equal(nr, 1);
	}
	bench_fini(&b);
}

/* Names of units that users and containers choose are not the system's: each is a row. */
TEST(test_units)
{
	static const struct {
		const char *cgroup, *container, *unit;
	} cases[] = {
		{ "/system.slice/nginx.service", "", "nginx.service" },
		{ "/system.slice/nginx.service/nginx.scope/app.service", "", "nginx.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service", "",
		  "nginx.service@1000" },
		{ "/user.slice/user-1000.slice/user@1000.service/user@0.service/nginx.service", "",
		  "user@0.service@1000" },
		{ "/user.slice/user-1000.slice/user@1000.service/nginx", "", "user@1000.service" },
		{ "/user.slice/user-1000.slice/session-3.scope", "", "session-3.scope" },
		{ "/lxc.payload.web/system.slice/nginx.service", "lxc:web",
		  "nginx.service@lxc:web" },
		{ "/system.slice/docker-3fa1c2d4e5f6.scope/nginx.service", "docker:web",
		  "nginx.service@docker:web" },
		{ "/system.slice/docker-3fa1c2d4e5f6.scope", "docker:web",
		  "docker-3fa1c2d4e5f6.scope" },
		{ "/docker/3fa1c2d4e5f6/lxc/web", "docker:web", "docker:web" },
		{ "/garden/system.slice/nginx.service", "", "system.slice/nginx.service" },
		{ "/system.slice/system-getty.slice", "", "system-getty.slice" },
		{ "/", "", "(no unit)" },
		{ "", "", "(no unit)" },
	};
	char buf[TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct profile_process p = {
			.cgroup = { cases[i].cgroup, (uint16_t)strlen(cases[i].cgroup), 0 },
			.container = { cases[i].container, (uint16_t)strlen(cases[i].container),
				       0 },
		};

		assert_string_equal(folds_group_name(GROUPING_UNIT, &p, buf).str, cases[i].unit);
	}
}

/* A service of a user and one of the system with its name: two rows. */
TEST(test_unit_of_user)
{
	struct profile *p = with_details();
	struct bench b;

	p->processes[0].cgroup = TEXT("/system.slice/nginx.service");
	p->processes[1].cgroup = TEXT("/user.slice/user-1000.slice/user@1000.service/app.slice/"
				      "nginx.service");
	p->processes[0].container = p->processes[1].container = TEXT("");
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	type(&b, "2====");
	assert_non_null(strstr(look(&b), "UNIT"));
	assert_non_null(strstr(look(&b), "nginx.service "));
	assert_non_null(strstr(look(&b), "nginx.service@1000 "));
	bench_fini(&b);
}

/* Services are rows by name, with the comm behind it, and found by it. */
TEST(test_services)
{
	struct profile *p = with_details();
	uint32_t nr_threads = 0;
	struct bench b;

	for (uint32_t i = 0; i < p->nr_tasks; i++)
		nr_threads += p->tasks[i].process == 1;
	p->processes[1].service[SERVICE_NAME] = TEXT("checkout");
	p->processes[1].service[SERVICE_NAMESPACE] = TEXT("eu");
	p->processes[1].service[SERVICE_VERSION] = TEXT("1.2");
	p->processes[1].service[SERVICE_INSTANCE] = TEXT("c-7");
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	type(&b, "2");
	assert_non_null(strstr(look(&b), "checkout "));

	type(&b, "/checkout\r");
	assert_non_null(strstr(look(&b), "eu/checkout 1.2 instance c-7"));
	/* A thread has the name of a thread, and is found by its service. */
	type(&b, "H\\checkout\r");
	look(&b);
	assert_int_equal(b.st.lists[VIEW_PROCESSES].nr, nr_threads);
	bench_fini(&b);
}

#define TWINS 300000u /* of which dozens have a hash of 32 bits in common */

/* Return the hash of a name that group ids had, without a key. */
static uint32_t public_hash(const char *name)
{
	uint64_t h = GROUPING_CONTAINER + 1;

	for (; *name; name++)
		h = hash_u64(h + (unsigned char)*name);
	return (uint32_t)h;
}

static uint32_t group_hash(const char *name)
{
	return (uint32_t)keyhash_name(name, strlen(name)) & INT32_MAX;
}

struct twin {
	uint32_t hash, i;
};

static int by_hash(const void *a, const void *b)
{
	const struct twin *one = a, *other = b;

	return (one->hash > other->hash) - (one->hash < other->hash);
}

/* Make two names of one @hash. */
static void make_twins(uint32_t (*hash)(const char *name), char names[2][16])
{
	struct twin *twins = xcalloc(TWINS, sizeof(*twins));
	uint32_t at = 1;

	for (uint32_t i = 0; i < TWINS; i++) {
		snprintf(names[0], sizeof(names[0]), "docker:%06x", i);
		twins[i] = (struct twin){ hash(names[0]), i };
	}
	qsort(twins, TWINS, sizeof(*twins), by_hash);
	while (at < TWINS && twins[at - 1].hash != twins[at].hash)
		at++;
	assert_true(at < TWINS);
	for (uint32_t i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), "docker:%06x", twins[at - i].i);
	free(twins);
}

/* Containers of which the names have one hash, by choice or by chance, are two rows. */
TEST(test_groups_of_one_hash)
{
	uint32_t (*const hashes[])(const char *name) = { public_hash, group_hash };

	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		struct profile *p = with_details();
		const struct folds_groups *g;
		char names[2][16];
		struct bench b;

		make_twins(hashes[i], names);
		for (uint32_t k = 0; k < 3; k++)
			p->processes[k].container = (struct safe_text){ names[k % 2], 13, 13 };
		bench_init(&b, 120, 30, false);
		model_take(&b.st, p);
		type(&b, "2===");
		assert_non_null(strstr(look(&b), names[0]));
		assert_non_null(strstr(look(&b), names[1]));
		g = folds_groups(&b.st);
		assert_int_equal(g->leaders[0], 0);
		assert_int_equal(g->leaders[1], 1);
		assert_int_equal(g->leaders[2], 0);
		assert_true(g->ids[0] == g->ids[2] && g->ids[0] != g->ids[1]);
		assert_int_equal(g->sizes[2], 2);
		bench_fini(&b);
	}
}

#define CROWD 120000U

/* Many processes of two names that have one id cost as much as others. */
TEST(test_groups_of_one_id)
{
	static const char *const names[] = { "work2488", "work10648" };
	struct profile *p = with_details();
	const struct folds_groups *g;
	uint64_t begin_ns;
	struct bench b;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	b.st.set.grouping = GROUPING_NAME;
	p->processes = reallocarray(p->processes, 2 * CROWD, sizeof(*p->processes));
	p->nr_processes = 2 * CROWD;
	for (uint32_t i = 0; i < 2 * CROWD; i++) {
		const char *name = names[i / CROWD];
		uint32_t size = (uint32_t)strlen(name);

		p->processes[i] = (struct profile_process){ .comm = { name, size, size } };
	}
	folds_forget(b.st.folds);
	begin_ns = time_thread_ns();
	g = folds_groups(&b.st);
	assert_true(time_thread_ns() - begin_ns < 1000000000);
	assert_int_equal(MAX(g->ids[0], g->ids[CROWD]) - MIN(g->ids[0], g->ids[CROWD]), 1);
	for (uint32_t i = 0; i < 2 * CROWD; i++) {
		assert_int_equal(g->leaders[i], i / CROWD * CROWD);
		assert_int_equal(g->sizes[i], CROWD);
	}
	p->nr_processes = 0;
	bench_fini(&b);
}

/* A group of which the name is longer than the title shows it can be opened. */
TEST(test_long_group)
{
	struct profile *p = with_details();
	char path[256] = "/system.slice/";
	struct bench b;

	memset(path + strlen(path), 'x', 200);
	strcat(path, ".scope");
	for (uint32_t i = 0; i < p->nr_processes; i++) {
		p->processes[i].cgroup = text_arena_add(p->names, path, strlen(path));
		p->processes[i].container = TEXT("");
	}
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	type(&b, "2====g");
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	look(&b);
	assert_true(b.st.lists[VIEW_FUNCTIONS].nr > 0);
	bench_fini(&b);
}

/* Processes of one name are one, in all views; = splits them, by PID and by other groups. */
TEST(test_groups)
{
	static const struct {
		const char *key, *has, *has_not;
	} cases[] = {
		{ "2", "api-server x2", "4242" },
		{ "3", "api-server x2", "api-server[4242]" },
		{ "4", "api-server x2", "api-server[4242]" },
		{ "=", "api-server[4242]", "api-server x2" }, /* PID */
		{ "2", "4242", "api-server x2" },
		{ "=", "api-server", "x2" }, /* thread */
		{ "=", "docker:3fa1c2d4e5f6 x2", "4242" },
		{ "2", "CONTAINER", "PID" },
		{ "=", "nginx.service", "4242" },
		{ "2", "UNIT", "PID" },
		{ "3", "docker-3fa1c2d4e5f6.scope x2", "api-server x2" },
		{ "=", "api-server x2", "api-server[4242]" },
	};
	struct profile *p = with_details();
	const struct list *functions;
	double sum = 0;
	struct bench b;

	/* nginx is a second api-server. */
	p->processes[1].comm = p->tasks[1].comm = p->processes[0].comm;
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		type(&b, cases[i].key);
		assert_non_null(strstr(look(&b), cases[i].has));
		assert_null(strstr(look(&b), cases[i].has_not));
	}
	type(&b, "2g");
	golden(&b, "groups-120x30");
	/* A cgroup that is not of systemd: its last parts. */
	p->processes[1].cgroup = TEXT("/build/farm/job-12");
	p->processes[2].cgroup = TEXT("/");
	folds_forget(b.st.folds);
	type(&b, "===");
	assert_null(strstr(look(&b), "(no unit)"));
	type(&b, "=");
	assert_non_null(strstr(look(&b), "farm/job-12 x1"));
	assert_non_null(strstr(look(&b), "(no unit)"));
	type(&b, "=");
	press(&b, K_ENTER);
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	assert_non_null(strstr(look(&b), "system \xe2\x96\xb8 api-server "));
	assert_non_null(strstr(look(&b), "Processes 2"));
	functions = &b.st.lists[VIEW_FUNCTIONS];
	for (uint32_t i = 0; i < functions->nr; i++)
		sum += functions->rows[i].self;
	assert_true(sum > 0.999 && sum < 1.001);
	assert_null(strstr(look(&b), "ZSTD"));
	assert_non_null(strstr(look(&b), "parseObject"));
	assert_non_null(strstr(look(&b), "copy_user"));
	assert_non_null(strstr(look(&b), "api-server x2"));
	press(&b, K_ESC);
	assert_int_equal(b.st.view, VIEW_PROCESSES);
	bench_fini(&b);
}

/* The selected process is still selected when rows become groups, threads or a tree. */
TEST(test_group_selection)
{
	static const char keys[] = "=====H" /* PID, thread, container, unit, name; threads */
				   ",,HFII";
	struct profile *p = with_details();
	const struct list *list;
	struct bench b;
	uint32_t id;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	type(&b, "2jj");
	list = &b.st.lists[VIEW_PROCESSES];
	assert_int_equal(list->cursor, 2);
	id = process_rows_process(&b.st, list_current(list))->id;
	for (const char *key = keys; *key; key++) {
		press(&b, (uint32_t)*key);
		assert_true(list->cursor < list->nr);
		assert_true(list->pinned);
		/* Of a container and unit the row may be named after a busier one. */
		if (b.st.set.grouping < GROUPING_CONTAINER)
			assert_int_equal(process_rows_process(&b.st, list_current(list))->id, id);
	}
	/* The tree, and back; a filter that shows the row. */
	id = process_rows_process(&b.st, list_current(list))->id;
	press(&b, K_F(5));
	assert_int_equal(process_rows_process(&b.st, list_current(list))->id, id);
	press(&b, K_F(5));
	type(&b, "\\");
	type(&b, process_rows_process(&b.st, list_current(list))->comm.str);
	press(&b, K_ENTER);
	press(&b, K_ESC);
	assert_int_equal(process_rows_process(&b.st, list_current(list))->id, id);
	/* Untouched, the cursor is at the top. */
	press(&b, K_ESC);
	assert_false(list->pinned);
	type(&b, "===");
	assert_int_equal(list->cursor, 0);
	assert_false(list->pinned);
	bench_fini(&b);
}

/* Ended ones of one name are a row without a PID, and count by their number. */
TEST(test_ended_processes)
{
	static const struct {
		const char *key, *has;
	} cases[] = {
		{ "2", "api-server x41" },
		{ "3", "api-server x41" },
		{ "=", "api-server[4242]" }, /* PID */
		{ "2", "api-server x40" },
	};
	struct profile *p = with_details();
	struct bench b;

	p->processes[1].comm = p->tasks[1].comm = p->processes[0].comm;
	p->processes[1].pid = p->tasks[1].tid = -1;
	p->processes[1].nr_more = 39;
	bench_init(&b, 120, 30, false);
	model_take(&b.st, p);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		type(&b, cases[i].key);
		assert_non_null(strstr(look(&b), cases[i].has));
		assert_null(strstr(look(&b), "-1"));
	}
	bench_fini(&b);
}

/* Threads of one pool are one row, and one can look into it. */
TEST(test_fold_threads)
{
	const struct list *list;
	struct profile *p;
	struct bench b;
	double all;

	bench_init(&b, 100, 30, false);
	list = &b.st.lists[VIEW_PROCESSES];
	p = with_details();
	/* Three threads of one process, by name a pool of two. */
	for (uint32_t i = 0; i < 3; i++)
		p->tasks[i].process = 0;
	p->tasks[0].comm = TEXT("worker-1");
	p->tasks[1].comm = TEXT("worker-12");
	p->tasks[2].comm = TEXT("gc");
	model_take(&b.st, p);
	press(&b, 'H');
	assert_int_equal(list->nr, 4);
	press(&b, ',');
	assert_int_equal(list->nr, 3);
	golden(&b, "threads-folded-100x30");
	assert_int_equal(list->rows[0].nr, 2);
	all = list->rows[0].count;
	press(&b, K_HOME);
	press(&b, K_ENTER);
	assert_true(b.st.scope.drilled);
	assert_true(b.st.lists[VIEW_FUNCTIONS].count == all);
	assert_non_null(strstr(look(&b), "threads worker-*"));
	press(&b, '1');
	assert_non_null(strstr(look(&b), "worker-*"));
	press(&b, K_ESC);
	press(&b, K_ESC);
	press(&b, ',');
	press(&b, '2');
	assert_int_equal(list->nr, 4);
	/* A thread is named with its process, unless that is open. */
	assert_non_null(strstr(look(&b), "worker-12 api-server"));
	assert_non_null(strstr(look(&b), " node     "));
	assert_null(strstr(look(&b), "node node"));
	press(&b, '/');
	type(&b, "api-s");
	press(&b, K_ENTER);
	press(&b, K_ENTER);
	assert_true(b.st.scope.drilled);
	press(&b, '2');
	assert_null(strstr(look(&b), "worker-12 api-server"));
	bench_fini(&b);
}

static void command(struct bench *b, const char *text)
{
	press(b, ':');
	type(b, text);
	press(b, K_ENTER);
}

/* Columns are picked by name, in any view; the shown columns are the ticked ones. */
TEST(test_columns)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, with_details());
	look(&b);
	press(&b, 'c');
	golden(&b, "picker-columns-80x24");
	for (int i = 0; i < 7; i++)
		press(&b, K_DOWN);
	press(&b, K_ENTER);
	press(&b, K_ESC);
	assert_non_null(strstr(look(&b), "SAMPLES"));
	assert_non_null(strstr(look(&b), "MODULE"));
	press(&b, 'c');
	type(&b, "modul");
	press(&b, K_ENTER);
	press(&b, K_ESC);
	assert_null(strstr(look(&b), "MODULE "));
	command(&b, "columns automatic");
	assert_non_null(strstr(look(&b), "MODULE "));
	press(&b, '2');
	command(&b, "columns cgroup,share,pid,command-line");
	golden(&b, "processes-columns-80x24");
	command(&b, "columns nothing");
	assert_non_null(strstr(look(&b), "unknown columns"));
	/* More than fit: the last ones leave. */
	command(&b, "columns share,cpu,samples,pid,user,tasks,command,cgroup,hottest-function");
	look(&b);
	canvas_resize(&b.canvas, 8, 40);
	look(&b);
	press(&b, '4');
	press(&b, 'c');
	assert_false(b.st.dialog.ops);
	bench_fini(&b);
}

TEST(test_switches)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, with_details());
	command(&b, "theme mono");
	assert_int_equal(b.st.set.theme, THEME_MONO);
	command(&b, "theme");
	assert_int_equal(b.st.set.theme, THEME_AUTO);
	command(&b, "theme pink");
	assert_int_equal(b.st.set.theme, THEME_AUTO);
	command(&b, "mouse");
	assert_false(b.st.set.mouse);
	command(&b, "mouse on");
	assert_true(b.st.set.mouse);
	bench_fini(&b);
}

/* A key that was bound does, and is shown, in place of the table's. */
TEST(test_bound_keys)
{
	struct user_keys mine = { .nr = 0 };
	struct bench b;
	struct err e;

	bench_init(&b, 80, 24, false);
	assert_int_equal(user_keys_add(&mine, "processes", "z 1", 1, &e), 0);
	b.st.user_keys = &mine;
	model_take(&b.st, with_details());
	press(&b, 'z');
	assert_int_equal(b.st.view, VIEW_PROCESSES);
	press(&b, '3');
	press(&b, '1');
	assert_int_equal(b.st.view, VIEW_PROCESSES);
	assert_non_null(strstr(look(&b), "[z:Processes]"));
	bench_fini(&b);
}

/* On wide screens all keys are on one screen of 100x30; no action is missing. */
TEST(test_help_card)
{
	struct bench b;

	for (const struct key_binding *k = key_table(); k->action; k++)
		if (k->contexts & CTX_LIST && k->codes[0] && !view_help_has(k->action))
			fail_msg("%s is not on the card of keys", k->name);
	bench_init(&b, 100, 30, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, '?');
	golden(&b, "help-100x30");
	assert_non_null(strstr(look(&b), "quit; no key kills"));
	assert_non_null(strstr(look(&b), "l Perl"));
	press(&b, '/');
	type(&b, "hottest path of the call tree\r");
	assert_non_null(strstr(look(&b), "follow the hottest path of the call tree"));
	bench_fini(&b);
}

/* u: the processes of one user, in all views. */
TEST(test_users)
{
	struct bench b;

	bench_init(&b, 100, 30, false);
	model_take(&b.st, fake_profile(2, NULL));
	type(&b, "2u");
	assert_non_null(strstr(look(&b), "all users"));
	type(&b, "1000\r");
	assert_int_equal(b.st.lists[VIEW_PROCESSES].nr, 1);
	assert_non_null(strstr(look(&b), "user 1000 (u)"));
	assert_non_null(strstr(look(&b), "node"));
	type(&b, "1");
	assert_null(strstr(look(&b), "ZSTD"));
	assert_non_null(strstr(look(&b), "LazyCompile"));
	type(&b, "uall\r");
	assert_non_null(strstr(look(&b), "ZSTD"));
	bench_fini(&b);
}

/* F2: Enter changes a setting or opens its picker. */
TEST(test_setup)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, K_F(2));
	golden(&b, "settings-80x24");
	press(&b, K_ENTER);
	assert_int_equal(b.st.set.theme, THEME_DARK);
	assert_non_null(strstr(look(&b), "theme         dark"));
	type(&b, "mouse\r");
	assert_false(b.st.set.mouse);
	assert_non_null(strstr(look(&b), "mouse         no"));
	press(&b, K_ESC);
	assert_null(b.st.dialog.ops);
	press(&b, K_F(2));
	type(&b, "freq\r");
	assert_ptr_equal(b.st.dialog.ops, &dialog_frequency);
	bench_fini(&b);
}

TEST(test_help)
{
	struct bench b;

	bench_init(&b, 80, 60, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, K_F(1));
	golden(&b, "help-80x60");
	press(&b, '/');
	type(&b, "baseline or freq");
	assert_non_null(strstr(look(&b), "Search: baseline or freq"));
	press(&b, K_ESC);
	press(&b, '/');
	type(&b, "higher");
	press(&b, K_ENTER);
	assert_non_null(strstr(look(&b), "higher frequency"));
	assert_int_equal(b.st.view, VIEW_HELP);
	press(&b, 'q');
	assert_int_equal(b.st.view, VIEW_FUNCTIONS);
	bench_fini(&b);
}

/* At 40 columns descriptions go on below, and none is cut. */
TEST(test_help_narrow)
{
	struct bench b;
	const char *text;

	bench_init(&b, 40, 400, false);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, '?');
	text = look(&b);
	assert_null(strstr(text, b.st.glyphs->more.str));
	assert_non_null(strstr(text, "   b          callers and callees of the\n"
				     "              row; Esc: back\n"));
	assert_non_null(strstr(text, "samples, else of\n"));
	for (const struct key_binding *k = key_table(); k->action; k++) {
		const char *last = strrchr(k->help, ' ');

		assert_non_null(strstr(text, last ? last + 1 : k->help));
	}
	bench_fini(&b);
}

/* Of a recording the folder is cut, not the process; nothing is "got", and all time is summed. */
TEST(test_recording)
{
	struct bench b;
	struct profile *p = fake_profile(2, NULL);

	bench_init(&b, 80, 24, false);
	b.config.replayed = true;
	p->window_ns = p->running_ns;
	for (uint32_t i = 0; i < p->nr_events; i++)
		p->events[i].got_hz = NAN;
	strcpy(p->target, "recording /var/lib/recordings/of/last/night/shop.data");
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "recording shop.data"));
	assert_null(strstr(look(&b), "got"));
	press(&b, K_F(2));
	assert_non_null(strstr(look(&b), "window        all"));
	press(&b, K_ESC);
	press(&b, '4');
	assert_non_null(strstr(look(&b), "▶recording shop.data"));
	press(&b, '2');
	press(&b, K_ENTER);
	assert_true(b.st.scope.drilled);
	assert_non_null(strstr(look(&b), "recording shop.data ▸ "));
	assert_non_null(strstr(look(&b), b.st.scope.process_name));
	press(&b, '?');
	assert_null(strstr(look(&b), b.st.scope.process_name));
	bench_fini(&b);
}

TEST(test_pickers)
{
	static const struct {
		uint32_t key;
		const char *name;
	} cases[] = {
		{ 'e', "picker-event-80x24" },
		{ 'f', "picker-frequency-80x24" },
		{ 'p', "picker-process-80x24" },
		{ K_F(6), "picker-sort-80x24" },
	};
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bench_init(&b, 80, 24, false);
		model_take(&b.st, fake_profile(2, NULL));
		press(&b, cases[i].key);
		golden(&b, cases[i].name);
		bench_fini(&b);
	}
	bench_init(&b, 40, 8, true);
	model_take(&b.st, fake_profile(2, NULL));
	press(&b, 'e');
	golden(&b, "picker-event-40x8-ascii");
	bench_fini(&b);
}

TEST(test_waiting)
{
	struct bench b;

	bench_init(&b, 80, 24, false);
	golden(&b, "waiting-80x24");
	b.config.replayed = true;
	b.config.recording = "/var/tmp/past";
	b.sampler.reading = 405;
	press(&b, 'i');
	assert_non_null(strstr(look(&b), "reading past: 40 %"));
	assert_non_null(strstr(look(&b), "the recording is still being read"));
	b.config.replayed = false;
	b.sampler.reading = 0;
	/* No key may fall over a profile that is not there. */
	for (uint32_t c = 1; c < 127; c++)
		press(&b, c);
	look(&b);
	bench_fini(&b);
}

/* Nothing to show: the reason and the fix, in the place of the rows. */
TEST(test_empty)
{
	static const char why[] = "not permitted to see other users' processes or the kernel: your "
				  "own "
				  "user code only";
	struct profile *p = fake_profile(2, NULL);
	struct profile_message *n = calloc(1, sizeof(*n));
	struct bench b;

	p->nr_counts = 0;
	free(p->messages);
	p->messages = n;
	p->nr_messages = 1;
	strcpy(n->key, "banner");
	strcpy(n->detail, why);
	strcpy(n->brief, "sampling is limited");
	strcpy(n->fix, "see 'proftop --check' and proftop(1), ACCESS");
	n->severity = MESSAGE_INFO;
	n->active = true;
	strcpy(p->banner, why);
	bench_init(&b, 80, 24, false);
	model_take(&b.st, p);
	golden(&b, "not-permitted-80x24");
	press(&b, 'A');
	assert_non_null(strstr(look(&b), "not possible from here: see 'proftop --check'"));
	bench_fini(&b);
}

/* The sentence of a table without rows names the filter, or limit, that hides them, and its key. */
TEST(test_hidden_rows)
{
	struct bench b;

	bench_init(&b, 80, 24, true);
	model_take(&b.st, fake_profile(2, NULL));
	for (const char *view = "1234"; *view; view++) {
		press(&b, (uint32_t)*view);
		type(&b, "\\nosuch\r");
		if (!strstr(look(&b), "no row matches the filter 'nosuch' (Esc clears it)"))
			fail_msg("view %c: %s", *view, look(&b));
		press(&b, K_ESC);
		assert_null(strstr(look(&b), "no row matches"));
	}
	/* Limit and filter; the filter is text of the user, and as long as it can be. */
	press(&b, '2');
	b.st.set.percent_limit = 100;
	type(&b, "\\sh");
	for (int i = 0; i < 100; i++)
		press(&b, 'x');
	press(&b, K_ENTER);
	if (!strstr(look(&b), "no row of 100% matches the filter 'shxxxx"))
		fail_msg("%s", look(&b));
	assert_non_null(strstr(look(&b), "xxx...'"));
	assert_non_null(strstr(look(&b), "the limit)"));
	press(&b, K_ESC);
	bench_fini(&b);
}

/* The sentence names the target: its user by name, and the command for another one. */
TEST(test_empty_targets)
{
	static const struct {
		const char *target, *says;
		bool empty;
	} cases[] = {
		{ "user www-data", "user www-data has no process (:target user: another one)",
		  true },
		{ "name nosuch",
		  "ran in the last 5 s (z z: the whole run; :target name: another one)", false },
		{ "cgroup web",
		  "no process of cgroup web ran in the last 5 s (z z: the whole run; ", false },
	};
	struct profile *p;
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		p = fake_profile(2, NULL);
		p->nr_counts = 0;
		p->target_empty = cases[i].empty;
		p->account_total.taken = cases[i].empty ? 0 : 1574;
		p->ring_size = 1 << 20;
		strcpy(p->target, cases[i].target);
		bench_init(&b, 120, 24, true);
		model_take(&b.st, p);
		assert_non_null(strstr(look(&b), cases[i].says));
		/* No word is lost on a narrow screen. */
		canvas_resize(&b.canvas, 24, 60);
		if (!strstr(look(&b), ": another one)"))
			fail_msg("%s", look(&b));
		bench_fini(&b);
	}
}

/* Without rows the screen names the reason: of the target or of the scope. */
TEST(test_lowered_rate)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	p->events[0].want_hz = p->events[0].got_hz = 250;
	p->rate_factor = 0.25;
	bench_init(&b, 110, 24, false);
	model_take(&b.st, p);
	if (!strstr(look(&b), "250 of 1,000 Hz, got 250"))
		fail_msg("%s", look(&b));
	bench_fini(&b);
}

/* All waits are idle ones, which are hidden: that is said, with the key. */
TEST(test_only_idle_waits)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	fake_waits(p);
	memset(p->stack_idle, PROFILE_IDLE, p->nr_stacks);
	bench_init(&b, 110, 24, false);
	ui_state_set_time(&b.st, CONFIG_TIME_WAIT);
	model_take(&b.st, p);
	assert_null(strstr(look(&b), "idle ones"));
	press(&b, '"');
	press(&b, '1');
	if (!strstr(look(&b), "no waits but idle ones, which are hidden (\" shows them)"))
		fail_msg("%s", look(&b));
	bench_fini(&b);
}

TEST(test_empty_reasons)
{
	static const struct {
		const char *target, *says;
		bool gone;
		const char *event;
	} cases[] = {
		{ "name redis", "no page-faults of name redis in the last 5 s", false,
		  "page-faults" },
		{ "system", "no sched:sched_switch in this window", false, "sched:sched_switch" },
		{ "pid 787", "pid 787 did not run in the last 5 s: asleep, stopped or waiting",
		  false, NULL },
		{ "pid 787", "pid 787: all processes have exited", true, NULL },
		{ "name nosuch", "no process that matches 'nosuch' ran in the last 5 s", false,
		  NULL },
		{ "user www-data",
		  "no process of user www-data ran in the last 5 s (z z: the whole ", false, NULL },
		{ "system", "no samples in this window", false, NULL },
	};
	struct profile *p;
	struct bench b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		p = fake_profile(2, NULL);
		p->nr_counts = 0;
		p->target_gone = cases[i].gone;
		p->ring_size = 1 << 20;
		strcpy(p->target, cases[i].target);
		if (cases[i].event)
			event_parse(&p->events[0].event, "page-faults", NULL);
		if (cases[i].event)
			strcpy(p->events[0].event.name, cases[i].event);
		bench_init(&b, 100, 24, true);
		model_take(&b.st, p);
		if (!strstr(look(&b), cases[i].says))
			fail_msg("%s", look(&b));
		assert_null(strstr(look(&b), " Why "));
		bench_fini(&b);
	}
	/* Programs of --name that have ended may start again: their profile is two keys away. */
	for (int has = 0; has < 2; has++) {
		p = fake_profile(2, NULL);
		p->nr_counts = 0;
		p->ring_size = 1 << 20;
		p->account_total.taken = has ? 1574 : 0;
		strcpy(p->target, "name make");
		bench_init(&b, 100, 24, true);
		model_take(&b.st, p);
		assert_non_null(strstr(look(&b), "'make' ran in the last 5 s"));
		assert_int_equal(!!strstr(look(&b), "(z z: the whole run"), has);
		press(&b, 'z');
		press(&b, 'z');
		assert_int_equal(b.sampler.window, PROFILE_TOTAL);
		bench_fini(&b);
	}
	p = fake_profile(2, NULL);
	p->window_samples = p->window_no_stack = 198019;
	p->window_unnamed = p->nr_frames = 0;
	for (uint32_t i = 0; i < p->nr_stacks; i++)
		p->stacks[i] = (struct profile_stack){ 0 };
	bench_init(&b, 100, 24, true);
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "198,019 samples, none with a stack (2: processes)"));
	assert_non_null(strstr(look(&b), "Symbols 0%"));
	bench_fini(&b);
	bench_init(&b, 100, 24, true);
	model_take(&b.st, fake_profile(2, NULL));
	type(&b, ":cgroup none\r");
	assert_non_null(strstr(look(&b), "no samples of cgroup 'none' (:cgroup shows all)"));
	assert_non_null(strstr(b.st.message, "no process with samples is in a cgroup or container "
					     "'none'"));
	bench_fini(&b);
	bench_init(&b, 100, 24, true);
	model_take(&b.st, fake_profile(2, NULL));
	type(&b, "KU");
	assert_non_null(strstr(look(&b), "all functions are hidden (K: of the kernel, U: of "));
	bench_fini(&b);
}

/* Most of our CPU is for symbols at the start: the header says so. */
TEST(test_own)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	bench_init(&b, 140, 30, false);
	p->self = (struct profile_self){ 32.7, 41000, 3, 1, 0.5, 12 };
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "Own 32.7% CPU 40 MB (28.2% to read symbols and "
					 "scripts)"));
	p->self.cpu_pct = 8;
	assert_null(strstr(look(&b), "to read symbols"));
	bench_fini(&b);
}

/* Of a target the header says how much of a CPU the rows share. */
TEST(test_target)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	strcpy(p->target, "name api");
	bench_init(&b, 100, 30, false);
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "CPU "));
	assert_non_null(strstr(look(&b), "% CPU"));
	assert_non_null(strstr(look(&b), "Processes 4   Threads "));
	/* By clocks, not by samples: programs that run in short pieces have too few. */
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].cpu_ns = i ? 0 : (double)p->window_ns / 10;
	assert_non_null(strstr(look(&b), "CPU 10.0%"));
	bench_fini(&b);
}

/* A process that executed another program is one, with one thread; the head has its new name. */
TEST(test_executed)
{
	struct profile *p = fake_profile(2, NULL);
	struct bench b;

	strcpy(p->target, "command make");
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i].pid = 77;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].tid = 77;
	bench_init(&b, 100, 30, false);
	model_take(&b.st, p);
	assert_null(strstr(look(&b), "Processes 4"));
	assert_non_null(strstr(look(&b), "Threads 1 "));
	assert_non_null(strstr(look(&b), "   user "));
	bench_fini(&b);
}

/* Addresses of an object that is being read, or of new code of one, are no rows: their share is in
 * a word. */
TEST(test_loading)
{
	static const enum profile_module_state states[] = { PROFILE_MODULE_LOADING,
							    PROFILE_MODULE_READY,
							    PROFILE_MODULE_FAILED };

	for (size_t s = 0; s < ARRAY_SIZE(states); s++) {
		bool shown = states[s] == PROFILE_MODULE_FAILED;
		struct profile *p = fake_profile(2, NULL);
		struct bench b;

		p->modules = calloc(1, sizeof(*p->modules));
		p->modules[0] = (struct profile_module){ .state = states[s],
							 .name = TEXT("libvendor.so"),
							 .path = TEXT("libvendor.so"),
							 .source = "",
							 .reason = "",
							 .fix = "" };
		p->nr_modules = 1;
		for (uint32_t i = 0; i < p->nr_functions; i++)
			if (p->functions[i].id == 17) {
				p->functions[i].unnamed = true;
				p->functions[i].id |= ASSEMBLE_PLACE;
			}
		bench_init(&b, 120, 30, false);
		model_take(&b.st, p);
		assert_int_equal(!!strstr(look(&b), "0x00007f31c2a41b60"), shown);
		assert_int_equal(!strstr(look(&b), "loading symbols: 2% of samples"), shown);
		bench_fini(&b);
	}
}

/* Loud while it happens, remembered, then calm but not forgotten. */
TEST(test_trouble)
{
	struct bench b;
	struct profile *p;

	bench_init(&b, 100, 30, false);
	p = fake_profile(4, NULL);
	p->cpus[1].lost = p->cpus[1].lost_total = 37;
	p->cpus[3].throttled = p->cpus[3].throttled_total = 2;
	p->cpus[3].throttled_ns = 41000000;
	strcpy(p->banner, "cycles: no hardware counters here; cpu-clock instead");
	model_take(&b.st, p);
	golden(&b, "trouble-100x30");
	assert_non_null(strstr(look(&b), "Lost 37!  cpu1 37"));
	assert_non_null(strstr(look(&b), "Throttled 2!  cpu3 2x 41ms"));
	p = fake_profile(4, NULL);
	p->cpus[1].lost_total = 37;
	p->cpus[3].throttled_total = 2;
	model_take(&b.st, p);
	assert_non_null(strstr(look(&b), "Lost 0 (37!)"));
	b.st.now_ns += 6000000000ull;
	assert_non_null(strstr(look(&b), "Lost 0 (37 in all)"));
	/* The smallest screen and the hidden header also report it. */
	p = fake_profile(4, NULL);
	p->cpus[1].lost = 12345;
	model_take(&b.st, p);
	press(&b, '#');
	assert_non_null(strstr(look(&b), "Lost 12,345!"));
	canvas_resize(&b.canvas, 8, 40);
	assert_non_null(strstr(look(&b), "Lost 12,345!"));
	bench_fini(&b);
}

/* Control bytes of a hostile name never reach a cell. */
TEST(test_hostile)
{
	struct bench b;
	const char *text;

	bench_init(&b, 120, 30, false);
	model_take(&b.st, fake_profile(2, NULL));
	text = look(&b);
	assert_non_null(strstr(text, "%s%n%n"));
	assert_null(strchr(text, '\033'));
	for (const char *p = text; *p; p++)
		assert_true((unsigned char)*p >= 0x20 || *p == '\n');
	bench_fini(&b);
}

/* At the end of the target all samples are shown, once; another target, or a key, is as before. */
TEST(test_end_of_target)
{
	struct profile *p = fake_profile(4, NULL);
	struct bench b;

	bench_init(&b, 100, 30, true);
	model_take(&b.st, p);
	assert_int_equal(b.sampler.window, PROFILE_WINDOW);
	p = fake_profile(4, NULL);
	p->target_gone = true;
	strcpy(p->target, "command make");
	model_take(&b.st, p);
	assert_int_equal(b.sampler.window, PROFILE_TOTAL);
	assert_non_null(strstr(look(&b), "make: all processes have exited; this is the whole run"));
	/* Once: a key changes it. */
	press(&b, 'z');
	assert_int_equal(b.sampler.window, PROFILE_WINDOW);
	p = fake_profile(4, NULL);
	p->target_gone = true;
	model_take(&b.st, p);
	assert_int_equal(b.sampler.window, PROFILE_WINDOW);
	/* Another target, which ends also. */
	for (int gone = 0; gone < 3; gone++) {
		p = fake_profile(4, NULL);
		p->target_gone = gone == 1;
		model_take(&b.st, p);
		assert_int_equal(b.sampler.window, gone == 1 ? PROFILE_TOTAL : PROFILE_WINDOW);
	}
	/* A window that was chosen is kept. */
	press(&b, 'z');
	p = fake_profile(4, NULL);
	p->target_gone = true;
	model_take(&b.st, p);
	assert_int_equal(b.sampler.window, PROFILE_DECAY);
	bench_fini(&b);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Batch: one literal profile, both sinks, read back field by field.
 * Live: takes about a second of CPU time, or more.
 */
#include "ui/cli/cli.h"
#include "ui/cli/internal.h"

#include "sampler/profile/profile.h"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/sampler.h"

#include <linux/perf_event.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pty.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

enum { MAIN, WALK, LEAF, KERNEL, NR_FUNCTIONS };

/* A profile over private arrays: 200 samples of cpu-clock, 10 of page-faults. */
struct fixture {
	struct profile p;
	struct profile_function functions[NR_FUNCTIONS];
	struct profile_process processes[2];
	struct profile_task tasks[2];
	struct profile_stack stacks[4];
	uint32_t frames[16];
	struct profile_count counts[5];
	struct profile_cpu cpus[2];
};

static void fill_counts(struct profile *p)
{
	p->account = (struct profile_account){ .taken = 220,
					       .complete = 190,
					       .guessed = 5,
					       .truncated = 4,
					       .broken = 3,
					       .pending = 2,
					       .dropped = 6,
					       .lost = 10,
					       .own = 1 };
	p->account_total = p->account;
	p->account_total.taken = 1234567890123;
	p->broken_by[5] = 2;  /* no_map */
	p->broken_by[15] = 1; /* a reason that has no key */
	p->dropped_by[DROP_CELLS_FULL] = 6;
	p->nr_names_dropped = 77;
	p->nr_programs_dropped = 78;
	p->nr_forks_shared = 79;
	p->self = (struct profile_self){ .cpu_pct = 0.71239, .rss_kb = 41000 };
}

static void fill_names(struct fixture *f)
{
	static const struct profile_function functions[NR_FUNCTIONS] = {
		{ 10, { "main", 4, 4 }, { "deep", 4, 4 }, .kind = 'u' },
		{ 11, { "walk", 4, 4 }, { "deep", 4, 4 }, .kind = 'u' },
		/* A name with an escape, as sanitised at the model's edge. */
		{ 12, { "Leaf\302\267[31m(\"x\")", 15, 14 }, { "libq.so.1", 9, 9 }, .kind = 'u' },
		{ 13, { "clear_page", 10, 10 }, { "[kernel]", 8, 8 }, .kind = 'k' },
	};

	memcpy(f->functions, functions, sizeof(functions));
	f->processes[0] = (struct profile_process){ .id = 1, .pid = 42, .comm = TEXT("deep") };
	f->tasks[0] = (struct profile_task){ 1, 42, 0, TEXT("deep"), 0 };
	f->tasks[1] = (struct profile_task){ 2, 43, 0, TEXT("worker 1"), 0 };
	f->cpus[0] = (struct profile_cpu){ .cpu = 0, .online = true, .busy = 0.5, .samples = 100 };
	f->cpus[1] = (struct profile_cpu){ .cpu = 3,
					   .online = true,
					   .busy = 1,
					   .samples = 110,
					   .lost = 10,
					   .lost_total = 20,
					   .throttled = 2,
					   .throttled_ns = 41000000,
					   .throttled_total = 3 };
}

/* Stacks innermost first: leaf<walk<walk<main, walk<main, main, clear_page<main. */
static void fill_samples(struct fixture *f)
{
	static const uint32_t frames[] = { LEAF, WALK, WALK, MAIN, WALK, MAIN, MAIN, KERNEL, MAIN };
	static const struct profile_stack stacks[] = { { 0, 4 }, { 4, 2 }, { 6, 1 }, { 7, 2 } };

	memcpy(f->frames, frames, sizeof(frames));
	memcpy(f->stacks, stacks, sizeof(stacks));
	f->counts[0] = (struct profile_count){ 0, 1, 0, 120, 1200 };
	f->counts[1] = (struct profile_count){ 1, 0, 0, 50, 500 };
	f->counts[2] = (struct profile_count){ 2, 0, 0, 20, 200 };
	f->counts[3] = (struct profile_count){ 3, 0, 0, 10, 100 };
	f->counts[4] = (struct profile_count){ 3, 0, 1, 10, 10 };
}

static void fixture_init(struct fixture *f)
{
	struct profile *p = &f->p;

	memset(f, 0, sizeof(*f));
	fill_names(f);
	fill_samples(f);
	fill_counts(p);
	p->seq = 7;
	p->time_ns = 1795000000000000000;
	p->interval_ns = 1000000000;
	p->window_ns = p->interval_ns;
	p->sampling = true;
	strcpy(p->target, "pid 42");
	strcpy(p->events[0].event.name, "cpu-clock");
	p->events[0].enabled = true;
	p->events[0].want_hz = 999;
	p->events[0].got_hz = 998.4;
	strcpy(p->events[1].event.name, "page-faults");
	p->nr_events = 2;
	p->cpus = f->cpus;
	p->nr_cpus = 2;
	p->functions = f->functions;
	p->nr_functions = NR_FUNCTIONS;
	p->processes = f->processes;
	p->nr_processes = 1;
	p->tasks = f->tasks;
	p->nr_tasks = 2;
	p->stacks = f->stacks;
	p->nr_stacks = 4;
	p->frames = f->frames;
	p->nr_frames = 9;
	p->counts = f->counts;
	p->nr_counts = 5;
}

static char *print(const struct profile *p, const struct batch_config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(batch_print(out, p, config), 0);
	fclose(out);
	assert_int_equal(strlen(text), size);
	return text;
}

static json_t *print_json(const struct profile *p, const struct batch_config *config)
{
	char *text = print(p, config);
	json_error_t error;
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!o)
		fail_msg("%s: %s", error.text, text);
	/* One object, one line. */
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	return o;
}

static long long integer(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		fail_msg("%s is no integer", key);
	return json_integer_value(v);
}

static double real(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_number(v))
		fail_msg("%s is no number", key);
	return json_number_value(v);
}

static const char *string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s)
		fail_msg("%s is no string", key);
	return s;
}

static const struct batch_config ndjson = { .sink = batch_ndjson };
static const struct batch_config text = { .sink = batch_text };

/* The keys of the contract are first and in its order. */
static void expect_keys(const json_t *o, const char *keys)
{
	json_t *object = (json_t *)o;
	void *it = json_object_iter(object);
	char *list = strdup(keys);

	for (char *key = strtok(list, " "); key; key = strtok(NULL, " ")) {
		assert_non_null(it);
		assert_string_equal(json_object_iter_key(it), key);
		it = json_object_iter_next(object, it);
	}
	free(list);
}

TEST(test_ndjson_keys)
{
	struct fixture f;
	json_t *o;

	(void)state;
	fixture_init(&f);
	o = print_json(&f.p, &ndjson);
	expect_keys(o, "schema tool version time_ns interval_ns target events cpus account self "
		       "pressure rows");
	expect_keys(json_array_get(json_object_get(o, "events"), 0), "name enabled want_hz got_hz "
								     "samples_per_s");
	expect_keys(json_array_get(json_object_get(o, "cpus"), 0), "cpu samples lost throttled "
								   "throttled_ns");
	expect_keys(json_object_get(o, "account"), "taken complete guessed truncated broken "
						   "pending dropped lost");
	expect_keys(json_object_get(o, "self"), "cpu_pct rss_kb");
	expect_keys(json_array_get(json_object_get(o, "rows"), 0), "symbol module kind comm self "
								   "total self_pct total_pct");
	json_decref(o);
}

TEST(test_ndjson_values)
{
	const json_t *account, *cpu, *event;
	struct fixture f;
	json_t *o;

	(void)state;
	fixture_init(&f);
	o = print_json(&f.p, &ndjson);
	assert_int_equal(integer(o, "schema"), 1);
	assert_string_equal(string(o, "tool"), "proftop");
	assert_true(integer(o, "time_ns") == 1795000000000000000LL);
	assert_int_equal(integer(o, "interval_ns"), 1000000000);
	assert_string_equal(string(o, "target"), "pid 42");
	event = json_array_get(json_object_get(o, "events"), 0);
	assert_int_equal(integer(event, "want_hz"), 999);
	assert_true(fabs(real(event, "got_hz") - 998.4) < 1e-9);
	assert_null(json_object_get(event, "error"));
	cpu = json_array_get(json_object_get(o, "cpus"), 1);
	assert_int_equal(integer(cpu, "cpu"), 3);
	assert_int_equal(integer(cpu, "lost"), 10);
	assert_int_equal(integer(cpu, "throttled_ns"), 41000000);
	account = json_object_get(o, "account");
	assert_int_equal(integer(account, "taken"), 220);
	assert_int_equal(integer(account, "own"), 1);
	assert_int_equal(integer(json_object_get(account, "broken_by"), "no_map"), 2);
	assert_int_equal(integer(json_object_get(account, "broken_by"), "other"), 1);
	assert_int_equal(json_object_size(json_object_get(account, "dropped_by")), 1);
	assert_int_equal(json_integer_value(json_object_get(account, "names_dropped")), 77);
	assert_int_equal(json_integer_value(json_object_get(account, "programs_dropped")), 78);
	assert_int_equal(json_integer_value(json_object_get(account, "forks_shared")), 79);
	assert_true(integer(json_object_get(o, "account_total"), "taken") == 1234567890123);
	assert_true(fabs(real(json_object_get(o, "self"), "cpu_pct") - 0.712) < 1e-9);
	json_decref(o);
}

/* The row that expect_row() requires. */
struct want {
	const char *symbol, *module, *kind, *comm, *event;
	int self, total;
	double self_pct, total_pct;
};

static void expect_rows(const json_t *o, const struct want *want, size_t nr)
{
	const json_t *rows = json_object_get(o, "rows");

	assert_int_equal(json_array_size(rows), nr);
	for (size_t i = 0; i < nr; i++) {
		const json_t *row = json_array_get(rows, i);

		assert_string_equal(string(row, "symbol"), want[i].symbol);
		assert_string_equal(string(row, "module"), want[i].module);
		assert_string_equal(string(row, "kind"), want[i].kind);
		assert_string_equal(string(row, "comm"), want[i].comm);
		assert_string_equal(string(row, "event"), want[i].event);
		assert_int_equal(integer(row, "self"), want[i].self);
		assert_int_equal(integer(row, "total"), want[i].total);
		assert_true(fabs(real(row, "self_pct") - want[i].self_pct) < 1e-9);
		assert_true(fabs(real(row, "total_pct") - want[i].total_pct) < 1e-9);
	}
}

#define LEAF_NAME "Leaf\302\267[31m(\"x\")"

TEST(test_ndjson_rows)
{
	static const struct want want[] = {
		{ LEAF_NAME, "libq.so.1", "u", "deep", "cpu-clock", 120, 120, 60, 60 },
		{ "walk", "deep", "u", "deep", "cpu-clock", 50, 170, 25, 85 },
		{ "main", "deep", "u", "deep", "cpu-clock", 20, 200, 10, 100 },
		{ "clear_page", "[kernel]", "k", "deep", "cpu-clock", 10, 10, 5, 5 },
		{ "clear_page", "[kernel]", "k", "deep", "page-faults", 10, 10, 100, 100 },
		{ "main", "deep", "u", "deep", "page-faults", 0, 10, 0, 100 },
	};
	struct fixture f;
	json_t *o;

	(void)state;
	fixture_init(&f);
	o = print_json(&f.p, &ndjson);
	expect_rows(o, want, ARRAY_SIZE(want));
	json_decref(o);
}

/* Language, file and line; the line by samples of the function, else by calls. */
TEST(test_lines)
{
	static struct safe_text files[] = { TEXT("/srv/shop/cart.py") };
	static struct profile_line lines[] = { { 0, 12, 0 }, { 0, 40, 0 } };
	uint32_t at[16];
	struct fixture f;
	char *printed;

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		at[i] = f.p.frames[i] == 1 ? 0 : f.p.frames[i] == 0 ? 1 : PROFILE_NO_LINE;
	f.functions[1].kind = 'y';
	f.p.frame_lines = at;
	f.p.lines = lines;
	f.p.nr_lines = ARRAY_SIZE(lines);
	f.p.has_source = true;
	f.p.files = files;
	f.p.nr_files = 1;
	printed = print(&f.p, &ndjson);
	assert_non_null(strstr(printed, "\"symbol\":\"walk\",\"module\":\"deep\",\"kind\":\"y\""));
	assert_non_null(strstr(printed, "\"lang\":\"python\",\"file\":\"/srv/shop/cart.py\","
					"\"line\":12}"));
	assert_non_null(strstr(printed, "\"file\":\"/srv/shop/cart.py\",\"line\":40}"));
	free(printed);
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, " K SYMBOL          MODULE     LINE        COMM\n"));
	assert_non_null(strstr(printed, " y walk            deep       cart.py:12  deep\n"));
	assert_non_null(strstr(printed, " k clear_page      [kernel]               deep\n"));
	free(printed);
}

/* A fix has the keys of the screen as data: batch output has its words alone. */
TEST(test_keys_of_fixes)
{
	static struct messages n;
	struct fixture f;
	char *printed;

	(void)state;
	fixture_init(&f);
	n = (struct messages){ .nr = 0 };
	f.p.dropped_by[DROP_CELLS_FULL] = f.p.account.dropped = 4;
	f.p.cpus[0].lost = f.p.account.lost = 37;
	f.p.ring_size = 1 << 20;
	messages_apply(&n, &f.p, 20000000000, f.p.window_ns);
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "\n  count from zero with empty tables; or lower the rate "
					"(-F)\n"));
	assert_non_null(strstr(printed, "\n  double the rings to 2048 KiB; or lower the rate (-F), "
					"or copy "
					"less stack (--stack-size)\n"));
	for (uint32_t i = 0; i < f.p.nr_messages; i++)
		if (!strcmp(f.p.messages[i].key, "lost"))
			assert_int_equal(f.p.messages[i].keys,
					 MESSAGE_KEY_RATE | MESSAGE_KEY_STACKS);
	free(f.p.messages);
	free(printed);
}

/* The sources of names, and the reasons for none. */
TEST(test_ndjson_modules)
{
	struct profile_module m = {
		.name = TEXT("libq.so.1"),
		.path = TEXT("/lib/libq.so.1"),
		.state = PROFILE_MODULE_READY,
		.source = ".dynsym",
		.reason = "stripped",
		.fix = "a\033debug package",
		.nr_symbols = 7,
		.nr_tabled = 4,
		.nr_derived = 2,
		.nr_bare = 1,
	};
	struct fixture f;
	const json_t *list, *module;
	json_t *o;

	(void)state;
	fixture_init(&f);
	f.p.modules = &m;
	f.p.nr_modules = 1;
	o = print_json(&f.p, &ndjson);
	list = json_object_get(o, "modules");
	assert_int_equal(json_array_size(list), 1);
	module = json_array_get(list, 0);
	assert_string_equal(string(module, "name"), "libq.so.1");
	assert_string_equal(string(module, "path"), "/lib/libq.so.1");
	assert_string_equal(string(module, "state"), "ready");
	assert_string_equal(string(module, "source"), ".dynsym");
	assert_string_equal(string(module, "reason"), "stripped");
	assert_null(strchr(string(module, "fix"), '\033'));
	assert_int_equal(integer(module, "symbols"), 7);
	assert_int_equal(integer(module, "tabled"), 4);
	assert_int_equal(integer(module, "derived"), 2);
	assert_int_equal(integer(module, "bare"), 1);
	json_decref(o);
}

static void expect_order(const struct batch_config *config, const char *first, size_t nr)
{
	struct fixture f;
	json_t *o, *rows;

	fixture_init(&f);
	f.p.nr_events = 1;
	f.p.nr_counts = 4;
	/* Other samples than the worker's are of a process that sorts first. */
	f.processes[1] = (struct profile_process){ .id = 2, .pid = 44, .comm = TEXT("alpha") };
	f.p.nr_processes = 2;
	f.tasks[0].process = 1;
	o = print_json(&f.p, config);
	rows = json_object_get(o, "rows");
	assert_int_equal(json_array_size(rows), nr);
	if (nr)
		assert_string_equal(string(json_array_get(rows, 0), "symbol"), first);
	json_decref(o);
}

TEST(test_sort_filter_limit)
{
	struct batch_config c = ndjson;

	(void)state;
	expect_order(&c, LEAF_NAME, 4);
	c.sort = CONFIG_SORT_TOTAL;
	expect_order(&c, "main", 4);
	c.sort = CONFIG_SORT_SYMBOL;
	expect_order(&c, LEAF_NAME, 4); /* 'L' before 'c': by bytes */
	c.sort = CONFIG_SORT_MODULE;
	expect_order(&c, "clear_page", 4);
	c.sort = CONFIG_SORT_COMM;
	expect_order(&c, "clear_page", 4);
	c.rows = 2;
	expect_order(&c, "clear_page", 2);
	c = ndjson;
	c.filter = "leaf";
	expect_order(&c, LEAF_NAME, 1);
	c.filter = "LEAF";
	expect_order(&c, "", 0);
	c.filter = "^(walk|main)$";
	expect_order(&c, "walk", 2);
	c.filter = "!deep"; /* also by module */
	expect_order(&c, LEAF_NAME, 2);
}

/* Equal profiles print equally, whatever order the fold found the rows in. */
TEST(test_total_order)
{
	struct fixture f;
	char *a, *b;

	(void)state;
	fixture_init(&f);
	f.functions[MAIN].name = f.functions[WALK].name = TEXT("same");
	for (int i = 0; i < 4; i++) {
		f.counts[i].count = f.counts[i].weight = 1;
		f.counts[i].task = 0; /* which of equal tasks a row names is not ours to say */
	}
	a = print(&f.p, &ndjson);
	for (int i = 0; i < 2; i++) {
		struct profile_count swap = f.counts[i];

		f.counts[i] = f.counts[3 - i];
		f.counts[3 - i] = swap;
	}
	b = print(&f.p, &ndjson);
	assert_string_equal(a, b);
	free(a);
	free(b);
}

/* Give the profile @nr processes with two tasks each, all first ones before all second ones. */
static void fill_processes(struct fixture *f, uint32_t nr)
{
	static uint8_t stack_waits[ARRAY_SIZE(f->stacks)] = { WAIT_RUNNING, WAIT_OTHER };

	f->p.processes = xcalloc(nr, sizeof(*f->p.processes));
	f->p.tasks = xcalloc(2ULL * nr, sizeof(*f->p.tasks));
	for (uint32_t i = 0; i < 2 * nr; i++) {
		f->p.processes[i % nr] = (struct profile_process){ .id = 1 + i % nr,
								   .pid = 10 + (int)(i % nr),
								   .comm = TEXT("a") };
		f->p.tasks[i] = (struct profile_task){
			.id = i, .tid = 10 + (int)i, .process = i % nr, .comm = TEXT("a")
		};
	}
	f->p.nr_processes = nr;
	f->p.nr_tasks = 2 * nr;
	f->p.stack_waits = stack_waits;
}

/* Return the least CPU time of printing a profile with waits of @nr processes, of three. */
static uint64_t waits_ns(uint32_t nr)
{
	uint64_t least = UINT64_MAX;
	struct fixture f;

	fixture_init(&f);
	fill_processes(&f, nr);
	for (int i = 0; i < 3; i++) {
		uint64_t begin_ns = time_thread_ns();

		free(print(&f.p, &ndjson));
		least = MIN(least, time_thread_ns() - begin_ns);
	}
	free(f.p.processes);
	free(f.p.tasks);
	return least;
}

/* Threads are below their processes, and processes cost as much each as they become more. */
TEST(test_waits_of_processes)
{
	uint64_t few_ns, many_ns;
	struct fixture f;
	json_t *o, *list;

	fixture_init(&f);
	fill_processes(&f, 3);
	o = print_json(&f.p, &ndjson);
	list = json_object_get(json_object_get(o, "waits"), "processes");
	assert_int_equal(json_array_size(list), 3);
	for (size_t i = 0; i < 3; i++) {
		json_t *process = json_array_get(list, i);
		json_t *threads = json_object_get(process, "threads");

		assert_int_equal(integer(process, "pid"), 10 + i);
		assert_int_equal(json_array_size(threads), 2);
		assert_int_equal(integer(json_array_get(threads, 0), "tid"), 10 + i);
		assert_int_equal(integer(json_array_get(threads, 1), "tid"), 13 + i);
	}
	json_decref(o);
	free(f.p.processes);
	free(f.p.tasks);
	few_ns = waits_ns(20000);
	many_ns = waits_ns(40000);
	print_message("%u ms, %u ms\n", (unsigned int)(few_ns / 1000000),
		      (unsigned int)(many_ns / 1000000));
	assert_true(many_ns <= 3 * few_ns);
}

/* Our messages may carry foreign text: no byte drives a terminal or breaks a line. */
static void spoil(struct fixture *f)
{
	strcpy(f->p.target, "command \033]0;x\007\nevil\302\233");
	strcpy(f->p.banner, "\xff\xfe\033[2J\r\n");
	strcpy(f->p.events[0].error, "no\033c");
	strcpy(f->p.events[1].event.name, "a\033b");
}

TEST(test_hostile)
{
	struct fixture f;
	char *printed;
	json_t *o;

	(void)state;
	fixture_init(&f);
	spoil(&f);
	snprintf(f.p.status, sizeof(f.p.status), "larger dumps");
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "\n! larger dumps\n"));
	for (const char *c = printed; *c; c++)
		assert_true(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
	assert_null(strstr(printed, "\nevil"));
	assert_null(strstr(printed, "\302\233"));
	free(printed);
	o = print_json(&f.p, &ndjson);
	assert_null(strpbrk(string(o, "target"), "\033\n\007"));
	assert_null(strchr(string(o, "banner"), '\033'));
	assert_string_equal(string(o, "message"), "larger dumps");
	json_decref(o);
}

TEST(test_text)
{
	static const char *const lines[] = {
		"  pid 42  tick 1.000 s\n",
		"event   cpu-clock  wanted 999 Hz  got 998.4 Hz\n",
		"samples 220 = complete 190 + guessed 5 + truncated 4 + broken 3 + pending 2 + "
		"dropped 6 + lost 10\n",
		"! broken  2 no_map\n",
		"! cpu 3  samples 110  lost 10  throttled 2 times, 41.0 ms\n",
		"   60.00   60.00      120 u " LEAF_NAME,
		"   10.00  100.00       20 u main            deep       deep\n",
	};
	struct fixture f;
	char *printed;

	(void)state;
	fixture_init(&f);
	printed = print(&f.p, &text);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strstr(printed, lines[i]))
			fail_msg("no '%s' in:\n%s", lines[i], printed);
	/* A CPU without trouble is no line. */ assert_null(strstr(printed, "cpu 0"));
	/* Waits with unknown callers are counted. */
	assert_null(strstr(printed, "callers unknown"));
	free(printed);
	f.p.waits.slept_ns = 10000000000;
	f.p.waits.cut_ns = 4000000000;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "! waits   callers unknown in 4.00 s of 10.00 s asleep\n"));
	free(printed);
	/* A counted member of a group takes no samples: it has no rate. */
	f.p.events[0].event.counted = true;
	f.p.events[0].want_hz = 0;
	f.p.events[0].got_hz = 0;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "event   cpu-clock  counted with the samples of its "
					"group\n"));
	free(printed);
}

/* Ratios of events: the tick's by counters, the functions' by samples; unknown ones are left out.
 */
TEST(test_ratios)
{
	struct fixture f;
	struct err e;
	char *printed;
	json_t *tick;

	(void)state;
	fixture_init(&f);
	assert_int_equal(event_parse(&f.p.events[0].event, "cycles", &e), 0);
	assert_int_equal(event_parse(&f.p.events[1].event, "instructions", &e), 0);
	f.p.events[0].count = 4000;
	f.p.events[1].count = 5000;
	f.counts[4] = (struct profile_count){ 0, 1, 1, 30, 2400 };
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "metrics IPC 1.25\n"));
	assert_non_null(strstr(printed, "  SELF%  TOTAL%  SAMPLES      IPC K SYMBOL"));
	assert_non_null(strstr(printed, "   60.00   60.00      120     2.00 u " LEAF_NAME));
	free(printed);
	f.counts[0].count = 9;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "   60.00   60.00        9        - u " LEAF_NAME));
	free(printed);
	tick = print_json(&f.p, &ndjson);
	assert_true(json_number_value(json_object_get(json_object_get(tick, "metrics"), "insn_per_"
											"cycle")) ==
		    1.25);
	assert_int_equal(json_object_size(
				 json_object_get(json_array_get(json_object_get(tick, "rows"), 0),
						 "metrics")),
			 0);
	json_decref(tick);
	/* The type of a core, where there are several. */
	strcpy(f.p.cpus[1].core, "atom");
	tick = print_json(&f.p, &ndjson);
	assert_null(json_object_get(json_array_get(json_object_get(tick, "cpus"), 0), "core"));
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(tick, "cpus"), 1), "core")),
			    "atom");
	json_decref(tick);
	f.p.events[1].count = NAN;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "metrics IPC -\n"));
	free(printed);
}

TEST(test_rows_left_out_are_told)
{
	struct batch_config c = text;
	struct fixture f;
	char *printed;

	(void)state;
	c.rows = 1;
	fixture_init(&f);
	printed = print(&f.p, &c);
	assert_non_null(strstr(printed, " 3 more rows (--rows)\n"));
	assert_null(strstr(printed, "no row matches"));
	free(printed);
	c.filter = "prev_pid != 0";
	printed = print(&f.p, &c);
	assert_non_null(strstr(printed, " no row matches --filter"));
	free(printed);
}

/* Print on a terminal of @cols columns. The text is freed by the caller. */
static char *print_on_terminal(const struct profile *p, unsigned short cols,
			       const struct batch_config *config)
{
	const struct winsize size = { .ws_row = 24, .ws_col = cols };
	struct termios raw = { .c_cflag = CS8 };
	char *printed = calloc(1, 4096);
	int master, slave;
	FILE *out;

	assert_int_equal(openpty(&master, &slave, NULL, &raw, &size), 0);
	out = fdopen(slave, "w");
	setvbuf(out, NULL, _IOFBF, 4096);
	assert_int_equal(batch_print(out, p, config), 0);
	fflush(out);
	assert_true(read(master, printed, 4095) > 0);
	fclose(out);
	close(master);
	return printed;
}

/* A row is one line of a terminal: its names are cut. In a file they are whole. */
TEST(test_rows_fit_the_terminal)
{
	static const char module[] = "libwith-a-long-name.so.6", symbol[] = "shop::Cart<std::basic_"
									    "string<char>>::total_"
									    "of_all_articles";
	struct fixture f;
	char *printed;

	fixture_init(&f);
	f.functions[LEAF].name = TEXT("shop::Cart<std::basic_string<char>>::total_of_all_articles");
	f.functions[LEAF].module = TEXT("libwith-a-long-name.so.6");
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, symbol));
	assert_non_null(strstr(printed, module));
	free(printed);
	for (unsigned short cols = 60; cols <= 120; cols += 20) {
		char *line;

		printed = print_on_terminal(&f.p, cols, &text);
		line = strstr(printed, "shop::Cart");
		assert_non_null(line);
		for (line = strstr(printed, "\n  "); line; line = strchr(line + 1, '\n')) {
			size_t size = strcspn(line + 1, "\n");
			char clean[TEXT_MAX];

			assert_true(text_sanitise(clean, sizeof(clean), line + 1, size).width <=
				    cols);
		}
		assert_int_equal(!strstr(printed, symbol), cols < 120);
		free(printed);
	}
	/* In a character set other than UTF-8, or with --ascii. */
	printed = print_on_terminal(&f.p, 60, &(struct batch_config){ batch_text, .ascii = true });
	assert_non_null(strstr(printed, "~  lib"));
	for (const char *c = printed; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	free(printed);
}

/* Events that do not count time have samples a second of the tick, not a rate while a CPU is busy.
 */
TEST(test_rate_of_events)
{
	static struct profile_cpu_event events[2 * 2];
	struct fixture f;
	char *printed;

	fixture_init(&f);
	f.p.cpu_events = events;
	f.p.interval_ns = 500000000;
	events[1].samples = 20; /* CPU 0 */
	events[3].samples = 3;	/* CPU 3 */
	f.p.events[1].got_hz = 4970.5;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "page-faults  fixed period  46.0 samples/s\n"));
	free(printed);
	f.p.events[1].want_hz = 999;
	f.p.events[1].event.type = PERF_TYPE_SOFTWARE;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "page-faults  wanted 999 Hz  46.0 samples/s\n"));
	assert_non_null(strstr(printed, "cpu-clock  wanted 999 Hz  got 998.4 Hz\n"));
	free(printed);
}

/* Without samples the table says of which target, and that it did not run. */
TEST(test_nothing_ran)
{
	struct fixture f;
	char *printed;

	fixture_init(&f);
	f.p.nr_counts = 0;
	f.p.nr_events = 1;
	f.p.ring_size = 1 << 20;
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "\n pid 42 did not run in the last 1.0 s: asleep, stopped "
					"or "
					"waiting\n"));
	assert_null(strstr(printed, "--filter"));
	free(printed);
	strcpy(f.p.target, "name nosuch");
	printed = print(&f.p, &text);
	assert_non_null(strstr(printed, "\n no process that matches 'nosuch' ran in the last 1.0 "
					"s\n"));
	free(printed);
	/* It may have run, without such an event. */
	strcpy(f.p.events[0].event.name, "page-faults");
	f.p.events[0].event.type = PERF_TYPE_SOFTWARE;
	f.p.events[0].event.config = PERF_COUNT_SW_PAGE_FAULTS;
	printed = print(&f.p, &text);
	if (!strstr(printed, "\n no page-faults of name nosuch in the last 1.0 s\n"))
		fail_msg("%s", printed);
	free(printed);
}

TEST(test_nothing_sampled)
{
	static const struct profile empty;
	char *printed = print(&empty, &text);
	json_t *o;

	(void)state;
	assert_non_null(strstr(printed, "samples 0 = complete 0"));
	free(printed);
	o = print_json(&empty, &ndjson);
	assert_int_equal(json_array_size(json_object_get(o, "rows")), 0);
	json_decref(o);
}

/* JSON has neither: they must not tear the object. */
TEST(test_not_a_number)
{
	struct fixture f;
	json_t *o;

	(void)state;
	fixture_init(&f);
	f.p.events[0].got_hz = NAN;
	f.p.self.cpu_pct = INFINITY;
	o = print_json(&f.p, &ndjson);
	assert_int_equal(integer(json_object_get(o, "self"), "cpu_pct"), 0);
	/* A rate that was not measured is not 0. */
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(o, "events"), 0), "got_hz")));
	json_decref(o);
}

TEST(test_write_errors)
{
	FILE *out = fopen("/dev/full", "w");
	struct fixture f;
	int fds[2];

	(void)state;
	fixture_init(&f);
	assert_non_null(out);
	assert_int_equal(batch_print(out, &f.p, &ndjson), -ENOSPC);
	fclose(out);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	out = fdopen(fds[1], "w");
	batch_block_signals(); /* SIGPIPE would end us */
	assert_int_equal(batch_print(out, &f.p, &text), -EPIPE);
	fclose(out);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

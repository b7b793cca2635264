// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Exports of profiles with hostile names, read back by small readers: the names are harmless and
 * whole, and the sums by function equal the view of functions.
 */
#include "ui/export/export.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define FUNCTIONS 40
#define ADDRESS	  0x500000u
#define ADDRESS	  0x500000u
#define STACKS	  300
#define DEPTH_MAX 30
#define COUNTS	  600

static const char *const hostile[] = {
	"std::vector<int, std::allocator<int> >::push_back(int&&)",
	"</script><script>alert(1)</script>",
	"<!-- ]]> &amp; \" ' ` -->",
	"a;b;c 12 34",
	"ends in a number 42",
	" blank ",
	"\033[31mred\033[0m\r\nnext line\t\1",
	"\xd1\x84\xd1\x83\xd0\xbd\xd0\xba\xd1\x86\xd0\xb8\xd1\x8f \xe6\x97\xa5\xe6\x9c\xac",
	"bad utf-8 \xff\xfe\x80 \xe2\x80\xae rtl",
	"back\\slash \\u0041 %s %n %d",
	"@DATA@ @TITLE@",
	"operator<< <char, \"x\">",
	"",
};

struct fixture {
	struct profile *p;
};

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = hash_u64(seed + 0x9e3779b97f4a7c15);
	return (uint32_t)(seed % n);
}

static void add_functions(struct profile *p)
{
	static const char kinds[] = "ukj?up";
	char name[4096 + 16];

	p->functions = calloc(FUNCTIONS, sizeof(*p->functions));
	p->modules = calloc(3, sizeof(*p->modules));
	p->nr_modules = 3;
	for (uint32_t i = 0; i < 3; i++) {
		const char *text = hostile[random_below(ARRAY_SIZE(hostile) - 1)];

		p->modules[i] = (struct profile_module){
			.id = i + 7,
			.name = text_arena_add(p->names, text, strlen(text)),
			.path = text_arena_add(p->names, text, strlen(text)),
			.build_id = i ? TEXT("0123456789abcdef0123456789abcdef01234567") : TEXT(""),
		};
	}
	p->nr_functions = FUNCTIONS;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		if (i < ARRAY_SIZE(hostile))
			snprintf(name, sizeof(name), "%s", hostile[i]);
		else
			snprintf(name, sizeof(name), "f%u", i);
		if (i == ARRAY_SIZE(hostile)) {
			memset(name, 'x', 4096);
			strcpy(name + 4096, "<b>;");
		}
		p->functions[i] = (struct profile_function){
			.first_line = 100 + i,
			.start = 0x1000 + i,
			.id = 1000 - i,
			.name = text_arena_add(p->names, name, strlen(name)),
			.module = p->modules[i % 3].name,
			.module_index = i % 3,
			.kind = kinds[i % 6],
			.kernel = kinds[i % 6] == 'k',
			.inlined = i % 7 == 3,
		};
	}
}

static void add_tasks(struct profile *p)
{
	p->nr_processes = 5;
	p->processes = calloc(p->nr_processes, sizeof(*p->processes));
	p->nr_tasks = 9;
	p->tasks = calloc(p->nr_tasks, sizeof(*p->tasks));
	for (uint32_t i = 0; i < p->nr_processes; i++)
		p->processes[i] = (struct profile_process){
			.id = i + 1,
			.pid = (pid_t)i * 100, /* 0 is a number, not "none" */
			.comm = text_arena_add(p->names, hostile[i], strlen(hostile[i])),
		};
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i] = (struct profile_task){ i + 1, (pid_t)i, i % p->nr_processes,
						     p->processes[i % 5].comm, 0 };
}

static void give_lines(struct profile *p)
{
	p->nr_files = 2;
	p->files = calloc(p->nr_files, sizeof(*p->files));
	p->files[0] = text_arena_add(p->names, hostile[1], strlen(hostile[1]));
	p->files[1] = TEXT("/src/main.c");
	p->nr_lines = 20;
	p->has_source = true;
	p->lines = calloc(p->nr_lines, sizeof(*p->lines));
	/* Each line of the source has two instructions, some without an address. */
	for (uint32_t i = 0; i < p->nr_lines; i++)
		p->lines[i] = (struct profile_line){ i % 2, i % 10, i % 5 ? ADDRESS + i : 0 };
}

static void add_samples(struct profile *p)
{
	p->nr_stacks = STACKS;
	p->stacks = calloc(STACKS, sizeof(*p->stacks));
	p->frames = calloc(STACKS * DEPTH_MAX, sizeof(*p->frames));
	p->frame_lines = calloc(STACKS * DEPTH_MAX, sizeof(*p->frame_lines));
	for (uint32_t i = 0; i < STACKS; i++) {
		/* The last stack is empty. */
		uint32_t nr = i + 1 < STACKS ? 1 + random_below(DEPTH_MAX) : 0;

		p->stacks[i] = (struct profile_stack){ p->nr_frames, nr };
		for (uint32_t k = 0; k < nr; k++, p->nr_frames++) {
			p->frames[p->nr_frames] = random_below(FUNCTIONS);
			p->frame_lines[p->nr_frames] = random_below(3) ? random_below(20)
								       : PROFILE_NO_LINE;
		}
	}
	p->nr_counts = COUNTS;
	p->counts = calloc(COUNTS, sizeof(*p->counts));
	for (uint32_t i = 0; i < COUNTS; i++) {
		uint32_t n = 1 + random_below(50);

		p->counts[i] = (struct profile_count){ random_below(STACKS), random_below(9),
						       random_below(2), n, n * 1001001.0 };
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct profile *p = calloc(1, sizeof(*p));

	seed = 20261122;
	f->p = p;
	p->names = text_arena_new();
	add_functions(p);
	add_tasks(p);
	give_lines(p);
	add_samples(p);
	strcpy(p->target, "pid 42 <b>\"x\"</b>");
	p->nr_events = 2;
	strcpy(p->events[0].event.name, "cpu-clock");
	p->events[0].event.clock = true;
	p->events[0].want_hz = 999;
	p->events[0].got_hz = NAN;
	strcpy(p->events[1].event.name, "page-faults");
	p->window_ns = 5000000000;
	p->time_ns = 1795000000000000000;
	p->account_total = (struct profile_account){ .taken = 100, .complete = 58, .lost = 42 };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	profile_free(f->p);
	free(f);
	return 0;
}

static struct snapshot_scope all_of(uint32_t event)
{
	struct snapshot_scope scope;

	export_scope_all(&scope, event);
	strcpy(scope.host, "host");
	return scope;
}

/* Export the clock's samples. */
static struct out export_all(const struct profile *p, enum export_format format)
{
	struct snapshot_scope scope = all_of(0);
	struct out o = { .failed = false };
	struct err e;

	if (export_write(&o, p, &scope, format, &e))
		fail_msg("%s: %s", export_words(format).name, e.text);
	out_bytes(&o, "", 1);
	o.size--;
	return o;
}

/* ---- sums ---- */

static void assert_same_rows(const struct profile *p, const struct snapshot_scope *scope)
{
	struct fold_functions fold;
	struct snapshot s;

	assert_int_equal(fold_functions(p, &scope->filter, &fold), 0);
	assert_int_equal(snapshot_make(&s, p, scope, false), 0);
	assert_int_equal(s.nr_rows, fold.nr_rows);
	assert_true(fabs(s.all_weight - fold.weight) < 1);
	assert_true(fabs(s.weight - fold.weight) < 1);
	for (uint32_t i = 0; i < fold.nr_rows; i++)
		for (uint32_t k = 0; k <= s.nr_rows; k++) {
			assert_true(k < s.nr_rows);
			if (s.rows[k].function != fold.rows[i].function)
				continue;
			assert_true(fabs(s.rows[k].self - fold.rows[i].self_weight) < 1);
			assert_true(fabs(s.rows[k].total - fold.rows[i].total_weight) < 1);
			break;
		}
	fold_functions_fini(&fold);
	snapshot_fini(&s);
}

TEST(test_rows_are_those_of_the_view, setup, teardown)
{
	const struct fixture *f = *state;

	for (unsigned int i = 0; i < 16; i++) {
		struct snapshot_scope scope = all_of(i & 1);

		scope.filter.hide_kernel = i & 2;
		scope.filter.process = i & 4 ? 2 : UINT32_MAX;
		scope.filter.task = (i & 12) == 12 ? 7 : UINT32_MAX;
		assert_same_rows(f->p, &scope);
	}
}

/* Text and JSON name the scope of their rows, and have rows of one module alone. */
TEST(test_scope_in_words, setup, teardown)
{
	const struct fixture *f = *state;
	const struct profile_function *fn = &f->p->functions[0];
	struct snapshot_scope scope = all_of(0);
	struct out text = { .failed = false }, json = { .failed = false };
	struct err e;

	strcpy(scope.title, "shop[7]");
	strcpy(scope.only, "user www-data");
	strcpy(scope.range, "last seconds");
	scope.module = f->p->modules[fn->module_index].id;
	assert_int_equal(export_write(&text, f->p, &scope, EXPORT_TEXT, &e), 0);
	assert_int_equal(export_write(&json, f->p, &scope, EXPORT_JSON, &e), 0);
	out_bytes(&text, "", 1);
	out_bytes(&json, "", 1);
	assert_non_null(strstr(text.data, "\nonly    shop[7], user www-data\nspan    last "
					  "seconds, "));
	assert_non_null(strstr(json.data, "\"only\":\"shop[7], user www-data\""));
	assert_non_null(strstr(json.data, "\"span\":\"last seconds\""));
	for (uint32_t i = ARRAY_SIZE(hostile) + 1; i < FUNCTIONS; i++) {
		char symbol[32];

		snprintf(symbol, sizeof(symbol), "\"symbol\":\"f%u\"", i);
		assert_int_equal(!!strstr(json.data, symbol),
				 f->p->functions[i].module_index == fn->module_index);
	}
	out_fini(&text);
	out_fini(&json);
}

static bool stack_has(const struct snapshot *s, const struct snapshot_stack *stack,
		      const char *name)
{
	for (uint32_t k = 0; k < stack->nr; k++)
		if (!strcmp(snapshot_function(s, s->calls[stack->first + k])->name.str, name))
			return true;
	return false;
}

/* A filter keeps the stacks with such a function; with '!' the others; shares keep their base. */
TEST(test_filter, setup, teardown)
{
	const struct fixture *f = *state;
	struct snapshot_scope scope = all_of(0);
	double with, all;
	struct snapshot s;

	strcpy(scope.find, "^f20$");
	assert_int_equal(snapshot_make(&s, f->p, &scope, false), 0);
	assert_true(s.nr_stacks > 0 && s.weight < s.all_weight);
	for (uint32_t i = 0; i < s.nr_stacks; i++)
		assert_true(stack_has(&s, &s.stacks[i], "f20"));
	with = s.weight;
	all = s.all_weight;
	snapshot_fini(&s);
	strcpy(scope.find, "!^f20$");
	assert_int_equal(snapshot_make(&s, f->p, &scope, false), 0);
	for (uint32_t i = 0; i < s.nr_stacks; i++)
		assert_false(stack_has(&s, &s.stacks[i], "f20"));
	assert_true(fabs(s.weight + with - all) < 1);
	snapshot_fini(&s);
	scope.find[0] = '\0';
	scope.module = 8;
	assert_int_equal(snapshot_make(&s, f->p, &scope, false), 0);
	assert_true(s.weight > 0 && s.weight < s.all_weight);
	snapshot_fini(&s);
}

/* Compare sums by function, self and total, with the view. */
struct sums {
	double self[FUNCTIONS], total[FUNCTIONS];
};

static void add_to_sums(struct sums *sums, const uint32_t *functions, uint32_t nr, double weight)
{
	bool seen[FUNCTIONS] = { false };

	for (uint32_t i = 0; i < nr; i++) {
		assert_true(functions[i] < FUNCTIONS);
		if (!seen[functions[i]])
			sums->total[functions[i]] += weight;
		seen[functions[i]] = true;
	}
	if (nr)
		sums->self[functions[nr - 1]] += weight;
}

static void assert_sums(const struct profile *p, const struct sums *sums)
{
	struct snapshot_scope scope = all_of(0);
	struct fold_functions fold;

	assert_int_equal(fold_functions(p, &scope.filter, &fold), 0);
	assert_int_equal(fold.nr_rows, FUNCTIONS);
	for (uint32_t i = 0; i < fold.nr_rows; i++) {
		assert_true(fabs(sums->self[fold.rows[i].function] - fold.rows[i].self_weight) < 1);
		assert_true(fabs(sums->total[fold.rows[i].function] - fold.rows[i].total_weight) <
			    1);
	}
	fold_functions_fini(&fold);
}

/* ---- JSON ---- */

static json_t *parse(const char *text, size_t size)
{
	json_error_t error;
	json_t *o = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);

	if (!o)
		fail_msg("%s at %d: %.80s", error.text, error.position, text + error.position);
	return o;
}

TEST(test_speedscope, setup, teardown)
{
	const struct fixture *f = *state;
	struct out o = export_all(f->p, EXPORT_SPEEDSCOPE);
	json_t *root = parse(o.data, o.size), *frames, *profile, *samples, *weights, *value;
	struct sums sums = { 0 };
	double sum = 0;
	size_t i;

	frames = json_object_get(json_object_get(root, "shared"), "frames");
	assert_int_equal(json_array_size(frames), FUNCTIONS + f->p->nr_processes);
	for (i = 0; i < FUNCTIONS; i++)
		assert_string_equal(json_string_value(
					    json_object_get(json_array_get(frames, i), "name")),
				    f->p->functions[i].name.str);
	assert_int_equal(json_array_size(json_object_get(root, "profiles")), 6);
	profile = json_array_get(json_object_get(root, "profiles"), 0);
	samples = json_object_get(profile, "samples");
	weights = json_object_get(profile, "weights");
	assert_int_equal(json_array_size(samples), json_array_size(weights));
	json_array_foreach(samples, i, value)
	{
		uint32_t stack[DEPTH_MAX], nr = (uint32_t)json_array_size(value) - 1;
		double weight = json_number_value(json_array_get(weights, i));

		assert_true(json_integer_value(json_array_get(value, 0)) >= FUNCTIONS);
		for (uint32_t k = 0; k < nr; k++)
			stack[k] = (uint32_t)json_integer_value(json_array_get(value, k + 1));
		add_to_sums(&sums, stack, nr, weight);
		sum += weight;
	}
	assert_true(fabs(sum - json_number_value(json_object_get(profile, "endValue"))) < 1);
	assert_sums(f->p, &sums);
	json_decref(root);
	out_fini(&o);
}

/* Every column of a table is as long as it says, and its numbers are below @limit. */
static void assert_column(json_t *table, const char *name, json_int_t limit)
{
	json_t *column = json_object_get(table, name), *value;
	size_t i;

	assert_non_null(column);
	assert_int_equal(json_array_size(column), json_integer_value(json_object_get(table, "lengt"
											    "h")));
	json_array_foreach(column, i, value)
	{
		if (json_is_null(value) || !limit)
			continue;
		assert_in_range(json_integer_value(value) + 1, 0, limit);
	}
}

static json_int_t length_of(json_t *table)
{
	return json_integer_value(json_object_get(table, "length"));
}

static void check_firefox_tables(json_t *shared, json_t *libs)
{
	json_t *stacks = json_object_get(shared, "stackTable"), *value;
	json_t *frames = json_object_get(shared, "frameTable");
	json_t *funcs = json_object_get(shared, "funcTable");
	json_t *resources = json_object_get(shared, "resourceTable");
	json_t *sources = json_object_get(shared, "sources");
	json_int_t strings = (json_int_t)json_array_size(json_object_get(shared, "stringArray"));
	size_t i;

	assert_column(stacks, "frame", length_of(frames));
	assert_column(stacks, "prefix", length_of(stacks));
	json_array_foreach(json_object_get(stacks, "prefix"), i, value) if (!json_is_null(value))
		assert_true((size_t)json_integer_value(value) < i);
	assert_column(frames, "func", length_of(funcs));
	assert_column(frames, "category", 5);
	for (i = 0; i < 7; i++)
		assert_column(frames,
			      (const char *const[]){ "address", "inlineDepth", "subcategory",
						     "nativeSymbol", "innerWindowID", "line",
						     "column" }[i],
			      0);
	assert_column(funcs, "name", strings);
	assert_column(funcs, "resource", length_of(resources));
	assert_column(funcs, "source", length_of(sources));
	for (i = 0; i < 4; i++)
		assert_column(funcs,
			      (const char *const[]){ "isJS", "relevantForJS", "lineNumber",
						     "columnNumber" }[i],
			      0);
	assert_column(resources, "lib", (json_int_t)json_array_size(libs));
	assert_column(resources, "name", strings);
	assert_column(resources, "host", 0);
	assert_column(resources, "type", 0);
	assert_column(sources, "filename", strings);
	assert_column(sources, "id", 0);
}

static void add_firefox_thread(struct sums *sums, json_t *shared, json_t *thread)
{
	json_t *samples = json_object_get(thread, "samples"), *value;
	json_t *prefix = json_object_get(json_object_get(shared, "stackTable"), "prefix");
	json_t *frame = json_object_get(json_object_get(shared, "stackTable"), "frame");
	json_t *func = json_object_get(json_object_get(shared, "frameTable"), "func");
	size_t i;

	assert_column(samples, "stack", length_of(json_object_get(shared, "stackTable")));
	assert_column(samples, "time", 0);
	assert_column(samples, "weight", 0);
	assert_true(json_is_string(json_object_get(thread, "pid")));
	json_array_foreach(json_object_get(samples, "stack"), i, value)
	{
		uint32_t stack[DEPTH_MAX], nr = 0, turned[DEPTH_MAX];

		while (!json_is_null(value)) {
			size_t at = (size_t)json_integer_value(value);

			turned[nr++] = (uint32_t)json_integer_value(json_array_get(
				func, (size_t)json_integer_value(json_array_get(frame, at))));
			value = json_array_get(prefix, at);
		}
		for (uint32_t k = 0; k < nr; k++)
			stack[k] = turned[nr - 1 - k];
		add_to_sums(sums, stack, nr,
			    1e6 * json_number_value(
					  json_array_get(json_object_get(samples, "weight"), i)));
	}
}

TEST(test_firefox, setup, teardown)
{
	const struct fixture *f = *state;
	struct out o = export_all(f->p, EXPORT_FIREFOX);
	json_t *root = parse(o.data, o.size), *shared = json_object_get(root, "shared"), *thread;
	json_t *strings = json_object_get(shared, "stringArray");
	struct sums sums = { 0 };
	size_t i;

	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "meta"), "preproc"
											   "essedPr"
											   "ofileVe"
											   "rsio"
											   "n")),
			 60);
	check_firefox_tables(shared, json_object_get(root, "libs"));
	for (i = 0; i < FUNCTIONS; i++)
		if (f->p->functions[i].name.size)
			assert_string_equal(json_string_value(json_array_get(strings, i)),
					    f->p->functions[i].name.str);
	assert_int_equal(json_array_size(json_object_get(root, "threads")), 9);
	json_array_foreach(json_object_get(root, "threads"), i, thread)
		add_firefox_thread(&sums, shared, thread);
	assert_sums(f->p, &sums);
	json_decref(root);
	out_fini(&o);
}

/* ---- text ---- */

/* Check a line as flamegraph.pl and difffolded.pl read it; return its count, and end its text. */
static long long folded_line(char *line, uint32_t nr_frames)
{
	char *end = strchr(line, '\n'), *number = end;
	uint32_t separators = 0;

	assert_non_null(end);
	*end = '\0';
	while (isdigit((unsigned char)number[-1]))
		number--;
	assert_true(number < end && number[-1] == ' ');
	/* No second number, which difffolded.pl would read. */
	assert_false(isdigit((unsigned char)number[-2]) && number[-3] == ' ');
	for (const char *at = line; at < end; at++) {
		assert_true((unsigned char)*at >= ' ');
		assert_false(*at == ';' && (at == line || at[1] == ';'));
		separators += *at == ';';
	}
	assert_true(nr_frames == UINT32_MAX || separators == nr_frames);
	number[-1] = '\0';
	return strtoll(number, NULL, 10);
}

/* A stack is one line, also of several threads and of several lines of one function. */
TEST(test_folded, setup, teardown)
{
	const struct fixture *f = *state;
	struct out all = export_all(f->p, EXPORT_FOLDED);
	struct snapshot_scope scope = all_of(0);
	struct snapshot s, alone;
	const char *before = "";
	uint32_t nr = 0;

	assert_int_equal(snapshot_make(&s, f->p, &scope, false), 0);
	alone = s;
	alone.nr_stacks = 1;
	for (char *line = all.data, *next; *line; line = next, nr++) {
		long long sum;

		next = strchr(line, '\n') + 1;
		sum = folded_line(line, UINT32_MAX);
		assert_true(strcmp(before, line) < 0);
		before = line;
		for (uint32_t i = 0; i < s.nr_stacks; i++) {
			struct out o = { .failed = false };
			long long count;

			alone.stacks = &s.stacks[i];
			assert_int_equal(folded_write(&o, &alone), 0);
			out_bytes(&o, "", 1);
			count = folded_line(o.data, s.stacks[i].nr);
			assert_int_equal(count, llround(s.stacks[i].weight));
			sum -= strcmp(o.data, line) ? 0 : count;
			out_fini(&o);
		}
		assert_int_equal(sum, 0);
	}
	assert_in_range(nr, 2, s.nr_stacks - 1);
	snapshot_fini(&s);
	out_fini(&all);
}

static uint32_t count_of(const char *text, const char *what)
{
	uint32_t nr = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		nr++;
	return nr;
}

static void assert_printable(const struct out *o)
{
	for (size_t i = 0; i < o->size; i++)
		assert_true((unsigned char)o->data[i] >= ' ' || o->data[i] == '\n');
}

/* The page itself forbids all that a browser would load: no rule allows a host, or a form. */
static void check_no_network(const char *page)
{
	static const char meta[] = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
	static const char *const allowed[] = {
		"default-src 'none'",	     "script-src 'unsafe-inline'",
		"style-src 'unsafe-inline'", "img-src data:",
		"base-uri 'none'",	     "form-action 'none'"
	};
	char rules[256] = "", *rest = rules, *rule;
	const char *at = strstr(page, meta), *head = strstr(page, "</head>");
	size_t nr = 0;

	assert_true(at && at < head && at < strstr(page, "<script") && at < strstr(page, "<link"));
	at += strlen(meta);
	assert_in_range(strcspn(at, "\""), 1, sizeof(rules) - 1);
	memcpy(rules, at, strcspn(at, "\""));
	while ((rule = strsep(&rest, ";"))) {
		rule += strspn(rule, " ");
		if (nr >= ARRAY_SIZE(allowed) || strcmp(rule, allowed[nr++]) != 0)
			fail_msg("a rule that allows more: %s", rule);
	}
	assert_int_equal(nr, ARRAY_SIZE(allowed));
}

TEST(test_markup, setup, teardown)
{
	const struct fixture *f = *state;
	struct out svg = export_all(f->p, EXPORT_SVG), html = export_all(f->p, EXPORT_HTML);
	char *data = strstr(html.data, "id=\"data\">") + strlen("id=\"data\">");
	char *end = strstr(data, "</script>");
	json_t *root;

	assert_printable(&svg);
	assert_printable(&html);
	assert_int_equal(count_of(svg.data, "<script"), 0);
	assert_int_equal(count_of(svg.data, "alert(1)") > 0, 1);
	assert_int_equal(count_of(svg.data, "<g>"), count_of(svg.data, "</g>"));
	assert_int_equal(count_of(svg.data, "<title>"), count_of(svg.data, "</title>"));
	/* Its two elements, and no more. */
	assert_int_equal(count_of(html.data, "<script"), 2);
	assert_int_equal(count_of(html.data, "</script>"), 2);
	assert_null(strstr(html.data, "http://"));
	check_no_network(html.data);
	root = parse(data, (size_t)(end - data));
	assert_string_equal(json_string_value(json_array_get(json_object_get(root, "names"), 1)),
			    f->p->functions[1].name.str);
	assert_int_equal(json_array_size(json_object_get(root, "rows")), FUNCTIONS);
	json_decref(root);
	out_fini(&svg);
	out_fini(&html);
}

/* ---- pprof ---- */

struct field {
	uint64_t number, value; /* value: of a varint */
	const uint8_t *bytes;	/* of a submessage or string; NULL: a varint */
	size_t size;
};

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		assert_true(*at < end && shift < 64);
		v |= (uint64_t)(**at & 127) << shift;
		if (!(*(*at)++ & 128))
			return v;
	}
}

static bool next_field(const uint8_t **at, const uint8_t *end, struct field *f)
{
	uint64_t tag;

	if (*at == end)
		return false;
	tag = varint(at, end);
	*f = (struct field){ .number = tag >> 3 };
	if ((tag & 7) == 1) {
		assert_true(end - *at >= 8);
		memcpy(&f->value, *at, 8);
		*at += 8;
		return true;
	}
	f->value = varint(at, end);
	if ((tag & 7) == 2) {
		assert_true(f->value <= (size_t)(end - *at));
		f->bytes = *at;
		f->size = f->value;
		*at += f->size;
	} else {
		assert_int_equal(tag & 7, 0);
	}
	return true;
}

#define EACH(f, from, size)                                                                        \
	for (const uint8_t *at_##f = (from), *end_##f = at_##f + (size);                           \
	     next_field(&at_##f, end_##f, &f);)

/* Return the last field @number of a message; .number is 0 if it has none. */
static struct field field_of(const struct field *message, uint64_t number)
{
	struct field f, found = { .number = 0 };

	EACH(f, message->bytes, message->size)
	if (f.number == number)
		found = f;
	return found;
}

static uint8_t *inflate_all(const struct out *o, size_t *size)
{
	uint8_t *bytes = malloc(8 << 20);
	z_stream z = { .next_in = (Bytef *)o->data,
		       .avail_in = (uInt)o->size,
		       .next_out = bytes,
		       .avail_out = 8 << 20 };

	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	*size = z.total_out;
	inflateEnd(&z);
	return bytes;
}

struct pprof {
	char *strings[4096];
	uint32_t nr_strings;
	uint32_t functions[STACKS * DEPTH_MAX][16]; /* by location: its lines, innermost first */
	uint32_t nr_lines[STACKS * DEPTH_MAX];
	uint64_t numbers[STACKS * DEPTH_MAX], mappings[STACKS * DEPTH_MAX]; /* of the last line */
	uint32_t nr_locations, nr_functions, nr_mappings, nr_samples;
	uint64_t build_ids[4], starts[4], limits[4], offsets[4];	    /* by mapping */
	uint64_t first_lines[FUNCTIONS + 1], addresses[STACKS * DEPTH_MAX]; /* by id */
	struct sums sums;
};

static void read_location(struct pprof *pp, const struct field *whole)
{
	uint64_t id = 0;
	struct field f;

	EACH(f, whole->bytes, whole->size)
	{
		if (f.number == 1)
			id = f.value;
		if (f.number == 2)
			pp->mappings[id] = f.value;
		if (f.number == 3)
			pp->addresses[id] = f.value;
		if (f.number != 4)
			continue;
		pp->functions[id][pp->nr_lines[id]++] = (uint32_t)field_of(&f, 1).value - 1;
		pp->numbers[id] = field_of(&f, 2).value;
	}
	/* Parca wants them in order. */
	assert_int_equal(id, ++pp->nr_locations);
	assert_true(pp->nr_lines[id] > 0);
}

static void read_sample(struct pprof *pp, const struct field *whole)
{
	uint32_t turned[DEPTH_MAX], stack[DEPTH_MAX], nr = 0, nr_values = 0;
	uint64_t values[2] = { 0, 0 };
	struct field f;

	EACH(f, whole->bytes, whole->size)
	{
		const uint8_t *at = f.bytes;

		while (f.number == 1 && at < f.bytes + f.size) {
			uint64_t id = varint(&at, f.bytes + f.size);

			assert_in_range(id, 1, STACKS * DEPTH_MAX - 1);
			for (uint32_t i = 0; i < pp->nr_lines[id]; i++)
				turned[nr++] = pp->functions[id][i];
		}
		while (f.number == 2 && at < f.bytes + f.size)
			values[nr_values++] = varint(&at, f.bytes + f.size);
	}
	assert_int_equal(nr_values, 2);
	assert_true(values[0] > 0 && values[1] > 0);
	for (uint32_t k = 0; k < nr; k++)
		stack[k] = turned[nr - 1 - k];
	add_to_sums(&pp->sums, stack, nr, (double)values[1]);
	pp->nr_samples++;
}

static void read_mapping(struct pprof *pp, const struct field *f)
{
	uint32_t n = pp->nr_mappings++;

	/* Some readers take the id for the position. */
	assert_int_equal(field_of(f, 1).value, n + 1);
	pp->starts[n] = field_of(f, 2).value;
	pp->limits[n] = field_of(f, 3).value;
	pp->offsets[n] = field_of(f, 4).value;
	pp->build_ids[n] = field_of(f, 6).value;
}

static void read_pprof(struct pprof *pp, const uint8_t *bytes, size_t size)
{
	struct field f;

	EACH(f, bytes, size)
	{
		if (f.number == 6)
			pp->strings[pp->nr_strings++] = strndup((const char *)f.bytes, f.size);
		if (f.number == 4)
			read_location(pp, &f);
		pp->nr_functions += f.number == 5;
		if (f.number == 5) {
			pp->first_lines[field_of(&f, 1).value] = field_of(&f, 5).value;
			/* Equal to the name it has pprof drop what is in brackets. */
			assert_int_equal(field_of(&f, 3).value, 0);
		}
		if (f.number == 3)
			read_mapping(pp, &f);
	}
	EACH(f, bytes, size) if (f.number == 2) read_sample(pp, &f);
}

static bool has_string(const struct pprof *pp, const char *text)
{
	for (uint32_t i = 0; i < pp->nr_strings; i++)
		if (!strcmp(pp->strings[i], text))
			return true;
	return false;
}

/* Readers take the first mapping for the main program: not the kernel, but that of the target. */
static void assert_program_first(const struct fixture *f, bool once)
{
	struct pprof *pp = calloc(1, sizeof(*pp));
	struct out o;
	size_t size;
	uint8_t *bytes;

	/* The names of the fixture are random, and may be equal. */
	f->p->modules[2].name = TEXT("server");
	for (uint32_t i = 0; i < f->p->nr_processes; i++)
		f->p->processes[i].program = once ? TEXT("") : TEXT("server");
	f->p->modules[0].name = TEXT("[kernel]");
	f->p->modules[1].name = TEXT("libserver.so.1");
	o = export_all(f->p, EXPORT_PPROF);
	bytes = inflate_all(&o, &size);
	read_pprof(pp, bytes, size);
	assert_int_equal(pp->nr_mappings, 3);
	assert_string_equal(pp->strings[pp->build_ids[0]], f->p->modules[2].build_id.str);
	assert_string_equal(pp->strings[pp->build_ids[1]], "");
	for (uint32_t i = 0; i < pp->nr_strings; i++)
		free(pp->strings[i]);
	free(bytes);
	free(pp);
	out_fini(&o);
}

TEST(test_pprof_program, setup, teardown)
{
	assert_program_first(*state, false);
	/* In the first tick the names of files are not known. */
	assert_program_first(*state, true);
}

/* Each instruction is a location, in the segment that has it. */
static void assert_locations(const struct pprof *pp)
{
	uint32_t nr[3] = { 0 };

	assert_true(pp->starts[1] == ADDRESS && pp->limits[1] == ADDRESS + 12);
	assert_true(pp->starts[2] == ADDRESS + 12 && pp->offsets[2] == 0x3000);
	assert_true(!pp->starts[0] && !pp->limits[3]);
	for (uint32_t id = 1; id <= pp->nr_locations; id++) {
		/* The last one of a location is its function, which has the code. */
		uint32_t function = pp->functions[id][pp->nr_lines[id] - 1];
		uint64_t address = pp->addresses[id], line = pp->numbers[id], mapping;

		mapping = function % 3 == 1 ? 2 + (address >= ADDRESS + 12) : 1 + function % 3;
		if (function % 3 == 1 && address < ADDRESS)
			mapping = 2;
		assert_int_equal(pp->mappings[id], mapping + (function % 3 == 2));
		nr[0] += address == 0x1000 + function;
		nr[1] += line && address == ADDRESS + line;
		nr[2] += line && address == ADDRESS + line + 10;
	}
	assert_int_equal(nr[0] + nr[1] + nr[2], pp->nr_locations);
	assert_true(nr[0] && nr[1] && nr[2]);
}

TEST(test_pprof, setup, teardown)
{
	const struct fixture *f = *state;
	struct profile_module *m = &f->p->modules[1];
	struct pprof *pp = calloc(1, sizeof(*pp));
	struct out o;
	size_t size;
	uint8_t *bytes;

	m->code[m->nr_code++] = (struct profile_code){ ADDRESS, ADDRESS + 12, 0x1000 };
	m->code[m->nr_code++] = (struct profile_code){ ADDRESS + 12, ADDRESS + 99, 0x3000 };
	o = export_all(f->p, EXPORT_PPROF);
	bytes = inflate_all(&o, &size);
	read_pprof(pp, bytes, size);
	assert_string_equal(pp->strings[0], "");
	assert_int_equal(pp->nr_functions, FUNCTIONS);
	assert_int_equal(pp->nr_mappings, 4);
	assert_string_equal(pp->strings[pp->build_ids[0]], "");
	for (uint32_t i = 1; i < 4; i++)
		assert_string_equal(pp->strings[pp->build_ids[i]], m->build_id.str);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		assert_true(has_string(pp, f->p->functions[i].name.str));
		assert_int_equal(pp->first_lines[i + 1], 100 + i);
	}
	assert_locations(pp);
	/* A pid of 0 is kept: it is text. */
	assert_true(has_string(pp, "0") && has_string(pp, "lost: 42"));
	assert_sums(f->p, &pp->sums);
	for (uint32_t i = 0; i < pp->nr_strings; i++)
		free(pp->strings[i]);
	free(pp);
	free(bytes);
	out_fini(&o);
}

/* ---- OpenTelemetry ---- */

enum {
	OTLP_MAPPINGS = 1,
	OTLP_LOCATIONS,
	OTLP_FUNCTIONS,
	OTLP_LINKS,
	OTLP_STRINGS,
	OTLP_ATTRIBUTES,
	OTLP_STACKS,
	OTLP_TABLES
};

struct otlp {
	struct field rows[OTLP_TABLES][4 * STACKS * DEPTH_MAX];
	uint32_t nr[OTLP_TABLES];
	struct field profiles[8], resources[4];
	uint32_t nr_profiles, nr_resources;
	struct sums sums[2];
	double whole[2];
};

static const struct field *row(const struct otlp *x, int table, uint64_t i)
{
	assert_in_range(i, 0, x->nr[table] - 1);
	return &x->rows[table][i];
}

/* Is this string of the table @text? */
static bool is_text(const struct otlp *x, uint64_t i, struct safe_text text)
{
	const struct field *f = row(x, OTLP_STRINGS, i);

	return f->size == text.size && !memcmp(f->bytes, text.str, f->size);
}

static void read_tables(struct otlp *x, const struct out *o)
{
	struct field f, r;

	EACH(f, (const uint8_t *)o->data, o->size)
	{
		assert_in_range(f.number, 1, 2);
		EACH(r, f.bytes, f.size)
		if (f.number == 2) {
			assert_in_range(r.number, OTLP_MAPPINGS, OTLP_STACKS);
			assert_true(x->nr[r.number] < ARRAY_SIZE(x->rows[0]));
			x->rows[r.number][x->nr[r.number]++] = r;
		} else if (r.number == 1) {
			assert_true(x->nr_resources < ARRAY_SIZE(x->resources));
			x->resources[x->nr_resources++] = r;
		} else {
			struct field scope;

			assert_int_equal(r.number, 2);
			EACH(scope, r.bytes, r.size)
			if (scope.number == 2) {
				assert_true(x->nr_profiles < ARRAY_SIZE(x->profiles));
				x->profiles[x->nr_profiles++] = scope;
			}
		}
	}
}

/* Entry 0 of each table is the zero value; of links with its identifiers. */
static void assert_zero_values(const struct otlp *x)
{
	static const uint8_t link[] = { 1 << 3 | 2, 16, [18] = 2 << 3 | 2, [19] = 8, [27] = 0 };

	for (int i = OTLP_MAPPINGS; i < OTLP_TABLES; i++) {
		assert_true(x->nr[i] > 0);
		if (i != OTLP_LINKS)
			assert_int_equal(x->rows[i][0].size, 0);
	}
	assert_int_equal(x->nr[OTLP_LINKS], 1);
	assert_int_equal(x->rows[OTLP_LINKS][0].size, sizeof(link));
	assert_memory_equal(x->rows[OTLP_LINKS][0].bytes, link, sizeof(link));
}

/* Find an attribute in packed indices: its value; no key is there twice. */
static struct field attribute_of(const struct otlp *x, const struct field *packed, const char *key)
{
	struct field found = { .number = 0 };
	uint64_t keys[64];
	uint32_t nr = 0;

	for (const uint8_t *at = packed->bytes, *end = at + packed->size; at < end;) {
		uint64_t i = varint(&at, end);
		const struct field *r = row(x, OTLP_ATTRIBUTES, i);
		struct field value = field_of(r, 2);

		assert_true(i > 0 && nr < ARRAY_SIZE(keys));
		keys[nr] = field_of(r, 1).value;
		for (uint32_t k = 0; k < nr; k++)
			assert_int_not_equal(keys[k], keys[nr]);
		if (is_text(x, keys[nr++], (struct safe_text){ key, (uint16_t)strlen(key), 0 }))
			found = field_of(&value, field_of(&value, 1).number ? 1 : 3);
	}
	return found;
}

/* Return the function of the profile that a line is of. */
static uint32_t function_of(const struct otlp *x, const struct profile *p, const struct field *line)
{
	const struct field *function = row(x, OTLP_FUNCTIONS, field_of(line, 1).value);
	uint64_t name = field_of(function, 1).value;

	assert_true(field_of(function, 1).number && field_of(function, 2).value == name);
	row(x, OTLP_STRINGS, field_of(function, 3).value);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		if (is_text(x, name, p->functions[i].name.size ? p->functions[i].name : TEXT("?")))
			return i;
	fail_msg("a name that no function has");
	return 0;
}

/* Append the functions of a location, innermost first. */
static uint32_t read_lines(const struct otlp *x, const struct profile *p, uint64_t location,
			   uint32_t *functions, uint32_t nr)
{
	const struct field *r = row(x, OTLP_LOCATIONS, location);
	struct field f, packed = field_of(r, 4), type;
	uint32_t last = 0;

	assert_true(location > 0);
	EACH(f, r->bytes, r->size)
	if (f.number == 3)
		functions[nr++] = last = function_of(x, p, &f);
	assert_int_equal(field_of(r, 1).number, 1);
	row(x, OTLP_MAPPINGS, field_of(r, 1).value);
	type = attribute_of(x, &packed, "profile.frame.type");
	if (p->functions[last].kernel)
		assert_memory_equal(type.bytes, "kernel", 6);
	return nr;
}

static void read_otlp_sample(struct otlp *x, const struct profile *p, uint32_t value,
			     const struct field *sample)
{
	const struct field *stack = row(x, OTLP_STACKS, field_of(sample, 1).value);
	struct field ids = field_of(stack, 1), attributes = field_of(sample, 2), f;
	struct field values = field_of(sample, 4);
	uint32_t turned[DEPTH_MAX], functions[DEPTH_MAX], nr = 0;
	const uint8_t *at = values.bytes;
	double sum = (double)varint(&at, at + values.size);

	assert_ptr_equal(at, values.bytes + values.size); /* one value only */
	for (at = ids.bytes; at < ids.bytes + ids.size;)
		nr = read_lines(x, p, varint(&at, ids.bytes + ids.size), turned, nr);
	for (uint32_t k = 0; k < nr; k++)
		functions[k] = turned[nr - 1 - k];
	add_to_sums(&x->sums[value], functions, nr, sum);
	x->whole[value] += sum;
	/* A pid of 0 is an attribute like others. */
	f = attribute_of(x, &attributes, "process.pid");
	assert_true(f.number == 3 && f.value % 100 == 0 && f.value < 500);
	assert_int_equal(attribute_of(x, &attributes, "thread.id").number, 3);
	assert_int_equal(attribute_of(x, &attributes, "thread.name").number, 1);
}

/* A sample is a stack with attributes: none is there twice. */
static void assert_identities(const struct field *profile)
{
	struct field f, g;

	EACH(f, profile->bytes, profile->size)
	{
		if (f.number != 2)
			continue;
		EACH(g, f.bytes + f.size,
		     (size_t)(profile->bytes + profile->size - f.bytes) - f.size)
		if (g.number == 2 && field_of(&f, 1).value == field_of(&g, 1).value &&
		    field_of(&f, 2).size == field_of(&g, 2).size)
			assert_memory_not_equal(field_of(&f, 2).bytes, field_of(&g, 2).bytes,
						field_of(&f, 2).size);
	}
}

static void check_otlp_profile(struct otlp *x, const struct profile *p, uint32_t i)
{
	const struct field *profile = &x->profiles[i];
	struct field type = field_of(profile, 1), period = field_of(profile, 5), f;
	struct field facts = field_of(profile, 11);

	assert_true(is_text(x, field_of(&type, 1).value, i ? TEXT("cpu") : TEXT("samples")));
	assert_true(is_text(x, field_of(&type, 2).value, i ? TEXT("nanoseconds") : TEXT("count")));
	assert_true(is_text(x, field_of(&period, 1).value, TEXT("cpu")));
	assert_int_equal(field_of(profile, 6).value, 1001001);
	assert_int_equal(field_of(profile, 3).value, p->time_ns - p->window_ns);
	assert_int_equal(field_of(profile, 4).value, p->window_ns);
	f = attribute_of(x, &facts, "proftop.lost");
	assert_true(f.size == 2 && !memcmp(f.bytes, "42", 2));
	EACH(f, profile->bytes, profile->size)
	if (f.number == 2)
		read_otlp_sample(x, p, i, &f);
	assert_identities(profile);
}

/* Return the sum of the first values of an export to pprof. */
/* Replace a compressed export by its bytes. */
static void unpack(struct out *o)
{
	size_t size;
	uint8_t *bytes = inflate_all(o, &size);

	o->size = 0;
	out_bytes(o, bytes, size);
	free(bytes);
}

/* Return whether a string of the file is @text: after a quote, or after its length. */
static bool has_text(const struct out *o, const char *text)
{
	char quoted[32], counted[32];

	snprintf(quoted, sizeof(quoted), "\"%s\"", text);
	snprintf(counted, sizeof(counted), "%c%s", (char)strlen(text), text);
	return memmem(o->data, o->size, quoted, strlen(quoted)) ||
	       memmem(o->data, o->size, counted, strlen(counted));
}

/* Names of functions that no exported stack has are not in the file. */
TEST(test_names_of_others, setup, teardown)
{
	static const enum export_format written[] = { EXPORT_HTML, EXPORT_SPEEDSCOPE,
						      EXPORT_FIREFOX, EXPORT_PPROF, EXPORT_OTLP };
	const struct fixture *f = *state;
	struct snapshot_scope scope = all_of(0);
	unsigned int nr_others = 0;
	struct snapshot s;
	struct err e;

	for (uint32_t i = 0; i < f->p->nr_counts; i++)
		f->p->counts[i].event = i >= 3;
	assert_int_equal(snapshot_make(&s, f->p, &scope, false), 0);
	for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
		struct out o = { .failed = false };

		assert_int_equal(export_write(&o, f->p, &scope, written[i], &e), 0);
		if (written[i] == EXPORT_PPROF)
			unpack(&o);
		for (uint32_t k = ARRAY_SIZE(hostile) + 1; k < FUNCTIONS; k++) {
			char name[16];

			snprintf(name, sizeof(name), "f%u", k);
			assert_int_equal(has_text(&o, name), s.has_function[k]);
			nr_others += !s.has_function[k];
		}
		out_fini(&o);
	}
	assert_true(nr_others > 0);
	snapshot_fini(&s);
}

static double pprof_whole(const struct profile *p)
{
	struct out o = export_all(p, EXPORT_PPROF);
	double whole = 0;
	size_t size;
	uint8_t *bytes = inflate_all(&o, &size);
	struct field f;

	EACH(f, bytes, size)
	if (f.number == 2) {
		struct field values = field_of(&f, 2);

		whole += (double)varint(&values.bytes, values.bytes + values.size);
	}
	free(bytes);
	out_fini(&o);
	return whole;
}

/* Counts of a decaying window are far below 1: their sum remains, and none is raised to 1. */
TEST(test_faded_counts, setup, teardown)
{
	const struct fixture *f = *state;
	double sum = 0, folded = 0;
	struct out o;

	for (uint32_t i = 0; i < f->p->nr_counts; i++) {
		struct profile_count *c = &f->p->counts[i];

		c->event = 0;
		c->count = c->weight = i % 10 ? 0.01 : 10;
		sum += c->count;
	}
	o = export_all(f->p, EXPORT_FOLDED);
	for (char *line = o.data, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		assert_true(strtod(strrchr(line, ' '), NULL) >= 1);
		folded += strtod(strrchr(line, ' '), NULL);
	}
	out_fini(&o);
	assert_true(fabs(folded - sum) < 1);
	assert_true(fabs(pprof_whole(f->p) - sum) < 1);
}

/* Two of the three modules have one. */
static void assert_build_ids(const struct otlp *x)
{
	uint32_t nr = 0;

	for (uint32_t i = 1; i < x->nr[OTLP_MAPPINGS]; i++) {
		struct field packed = field_of(row(x, OTLP_MAPPINGS, i), 5), id;

		id = attribute_of(x, &packed, "process.executable.build_id.gnu");
		nr += id.size == 40 && !memcmp(id.bytes, "01234567", 8);
	}
	assert_int_equal(nr, 2);
}

TEST(test_otlp, setup, teardown)
{
	const struct fixture *f = *state;
	struct out o = export_all(f->p, EXPORT_OTLP);
	struct otlp *x = calloc(1, sizeof(*x));

	read_tables(x, &o);
	assert_int_equal(x->nr_profiles, 2);
	assert_zero_values(x);
	assert_int_equal(x->nr[OTLP_FUNCTIONS], FUNCTIONS + 1);
	assert_int_equal(x->nr[OTLP_MAPPINGS], 3 + 1);
	assert_build_ids(x);
	for (uint32_t i = 0; i < 2; i++)
		check_otlp_profile(x, f->p, i);
	assert_sums(f->p, &x->sums[1]);
	assert_true(x->whole[0] == pprof_whole(f->p));
	free(x);
	out_fini(&o);
}

/* No two entries of a table are equal, and no number is written that is 0. */
static void assert_shortest(const struct otlp *x)
{
	for (int t = OTLP_MAPPINGS; t < OTLP_TABLES; t++)
		for (uint32_t i = 0; i < x->nr[t]; i++) {
			const struct field *r = &x->rows[t][i];
			struct field f;

			for (uint32_t k = 0; k < i; k++)
				if (r->size == x->rows[t][k].size && r->size)
					assert_memory_not_equal(r->bytes, x->rows[t][k].bytes,
								r->size);
				else
					assert_true(r->size || x->rows[t][k].size);
			if (t == OTLP_STRINGS)
				continue;
			EACH(f, r->bytes, r->size)
			assert_true(f.value || f.size);
		}
}

/*
 * A name that two functions have, a path that two modules have, a module without any: none is in
 * its table twice, nor are the locations and stacks of them. Types are the ones of the conventions.
 */
TEST(test_otlp_equal_entries, setup, teardown)
{
	const struct fixture *f = *state;
	struct profile *p = f->p;
	struct otlp *x = calloc(1, sizeof(*x));
	struct out o;

	for (uint32_t i = 20; i < FUNCTIONS; i++) {
		p->functions[i].name = p->functions[14 + i % 6].name;
		p->functions[i].inlined = p->functions[14 + i % 6].inlined;
	}
	for (uint32_t i = 0; i < p->nr_lines; i++)
		p->lines[i].file = 1;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		p->functions[i].kind = p->functions[i].kind == 'p' ? 'E' : p->functions[i].kind;
	p->modules[2].path = p->modules[1].path;
	p->modules[0].path = p->modules[0].name = TEXT("");
	o = export_all(p, EXPORT_OTLP);
	read_tables(x, &o);
	assert_zero_values(x);
	assert_shortest(x);
	assert_int_equal(x->nr[OTLP_MAPPINGS], 1 + 1);
	assert_true(has_text(&o, "beam") && !has_text(&o, "erlang"));
	free(x);
	out_fini(&o);
}

/* Labels are attributes of the resource; a host among them replaces ours. */
TEST(test_otlp_labels, setup, teardown)
{
	static const struct snapshot_label labels[] = { { "service.name", "a\"b</x>" },
							{ "host.name", "h" } };
	const struct fixture *f = *state;
	struct snapshot_scope scope = all_of(0);
	struct out o = { .failed = false };
	struct otlp *x = calloc(1, sizeof(*x));
	struct field pair, value;
	uint32_t nr = 0;
	struct err e;

	scope.labels = labels;
	scope.nr_labels = 2;
	assert_int_equal(export_write(&o, f->p, &scope, EXPORT_OTLP, &e), 0);
	read_tables(x, &o);
	EACH(pair, x->resources[0].bytes, x->resources[0].size)
	{
		struct field name = field_of(&pair, 1);

		value = field_of(&pair, 2);
		value = field_of(&value, 1);
		assert_in_range(nr, 0, 1);
		assert_int_equal(name.size, strlen(labels[nr].name));
		assert_memory_equal(name.bytes, labels[nr].name, name.size);
		assert_int_equal(value.size, strlen(labels[nr].value));
		assert_memory_equal(value.bytes, labels[nr].value, value.size);
		nr++;
	}
	assert_int_equal(nr, 2);
	free(x);
	out_fini(&o);
}

/* Return the text of an attribute of a resource; no key is there twice. */
static struct field resource_text(const struct field *resource, const char *key)
{
	struct field pair, name, value, found = { .number = 0 };

	EACH(pair, resource->bytes, resource->size)
	{
		name = field_of(&pair, 1);
		if (name.size != strlen(key) || memcmp(name.bytes, key, name.size) != 0)
			continue;
		assert_int_equal(found.number, 0);
		value = field_of(&pair, 2);
		found = field_of(&value, 1);
	}
	return found;
}

static uint32_t nr_samples(const struct field *profile)
{
	uint32_t nr = 0;
	struct field f;

	EACH(f, profile->bytes, profile->size)
	nr += f.number == 2;
	return nr;
}

/* A service that names itself has a resource with its samples; its name replaces the label. */
TEST(test_otlp_services, setup, teardown)
{
	static const struct snapshot_label label = { "service.name", "proftop" };
	const struct fixture *f = *state;
	struct snapshot_scope scope = all_of(0);
	struct out one = { .failed = false }, o = one, pprof;
	struct otlp *x = calloc(1, sizeof(*x)), *all = calloc(1, sizeof(*x));
	struct field name;
	struct err e;

	scope.labels = &label;
	scope.nr_labels = 1;
	assert_int_equal(export_write(&one, f->p, &scope, EXPORT_OTLP, &e), 0);
	read_tables(all, &one);
	assert_int_equal(all->nr_resources, 1);
	f->p->processes[1].service[SERVICE_NAME] = TEXT("till");
	f->p->processes[1].service[SERVICE_VERSION] = TEXT("1.2");
	assert_int_equal(export_write(&o, f->p, &scope, EXPORT_OTLP, &e), 0);
	read_tables(x, &o);
	assert_int_equal(x->nr_resources, 2);
	assert_int_equal(x->nr_profiles, 4);
	name = resource_text(&x->resources[0], "service.name");
	assert_true(name.size == 7 && !memcmp(name.bytes, "proftop", 7));
	name = resource_text(&x->resources[1], "service.name");
	assert_true(name.size == 4 && !memcmp(name.bytes, "till", 4));
	name = resource_text(&x->resources[1], "service.version");
	assert_true(name.size == 3 && !memcmp(name.bytes, "1.2", 3));
	assert_true(nr_samples(&x->profiles[2]) > 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(nr_samples(&x->profiles[i]) + nr_samples(&x->profiles[i + 2]),
				 nr_samples(&all->profiles[i]));
	pprof = export_all(f->p, EXPORT_PPROF);
	unpack(&pprof);
	assert_true(has_text(&pprof, "till") && has_text(&pprof, "service_version"));
	out_fini(&pprof);
	free(x);
	free(all);
	out_fini(&one);
	out_fini(&o);
}

/* ---- files ---- */

TEST(test_endings)
{
	assert_int_equal(export_format_of("a/b.speedscope.json"), EXPORT_SPEEDSCOPE);
	assert_int_equal(export_format_of("b.firefox.json"), EXPORT_FIREFOX);
	assert_int_equal(export_format_of("b.json"), EXPORT_JSON);
	assert_int_equal(export_format_of("b.pb.gz"), EXPORT_PPROF);
	assert_int_equal(export_format_of(".html"), EXPORT_NR);
	assert_int_equal(export_format_of("html"), EXPORT_NR);
	for (int i = 0; i < EXPORT_NR; i++) {
		char path[64];

		snprintf(path, sizeof(path), "x%s", export_words((enum export_format)i).ending);
		assert_int_equal(export_format_of(path), i);
		assert_int_equal(export_format_parse(export_words((enum export_format)i).name), i);
	}
	assert_int_equal(export_format_parse("xml"), EXPORT_NR);
}

/* The work is an owner of the profile: the screen may release it before the file is written. */
TEST(test_work_outlives_the_screen, setup, teardown)
{
	struct fixture *f = *state;
	struct snapshot_scope scope = all_of(0);
	char dir[] = "/tmp/proftop-export-XXXXXX", path[64];
	uint8_t *tasks = calloc(f->p->nr_tasks, 1);
	struct file_work *w;
	struct stat st;
	struct err e;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.folded", dir);
	tasks[3] = 1;
	scope.filter.tasks = tasks;
	w = export_work(f->p, &scope, EXPORT_FOLDED, path, true);
	free(tasks);
	profile_free(f->p);
	f->p = NULL;
	assert_int_equal(w->run(w, &e), 0);
	assert_string_equal(strchr(w->done, '('), "(folded)");
	w->free(w);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 0);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

/* The message has the place of the file, as a user can type it. */
TEST(test_place, setup, teardown)
{
	struct fixture *f = *state;
	struct snapshot_scope scope = all_of(0);
	char home[512], here[512];
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "x.folded", "exported to ~/x.folded (folded)" },
		{ "/tmp/x.folded", "exported to /tmp/x.folded (folded)" },
		{ "/a23456789/b23456789/c23456789/d23456789/e23456789/f23456789/proftop-1.html",
		  "exported to /a23456789/b23456789...89/e23456789/f23456789/proftop-1.html "
		  "(folded)" },
	};

	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(home, sizeof(home), "%s", getenv("HOME") ? getenv("HOME") : "/");
	setenv("HOME", here, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct file_work *w = export_work(f->p, &scope, EXPORT_FOLDED, cases[i].path, true);

		assert_string_equal(w->done, cases[i].want);
		w->free(w);
	}
	setenv("HOME", home, 1);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

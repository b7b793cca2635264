/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sampler that only records its requests, and profiles made by hand. For one test program each:
 * everything here is static or defined once.
 */
#ifndef TESTS_UI_FAKE_H
#define TESTS_UI_FAKE_H

#include "tests/prelude.h"

#include <errno.h>

#include "sampler/sampler.h"
#include "ui/app.c"
#include "ui/view/view.h"
#include "symbols/base/base.h"
#include "symbols/base/text.h"
#include "symbols/name/name.h"
#include "symbols/code/code.h"
#include "sampler/ring/ring.h"
#include "sampler/event/event.h"
#include "sampler/count/count.h"
#include "sampler/profile/internal.h"
#include "ui/key/key.h"
#include "ui/draw/draw.h"
#include "ui/cli/cli.h"
#include "ui/state/state.h"

struct sampler {
	double rate;
	uint32_t rate_event;
	int enabled, nr_resets, nr_sets;
	bool probing; /* which events this machine has is not known yet */
	struct event events[EVENTS_MAX];
	uint32_t nr_events;
	enum profile_window window;
	uint64_t span_ns;
	enum profile_frames frames;
	uint64_t tick_ns;
	uint32_t annotate, fetched;
	struct strip_query strip;
	uint64_t past_begin_ns, past_end_ns;
	int nr_strips, nr_pasts;
	char trap[64];
	unsigned int nr_lists; /* of traps */
	double max_hz;
	int reading;	/* permille + 1; 0: no recording */
	int call_graph; /* -1: no request */
	uint32_t stack_size;
	bool stack_auto;
	size_t ring_size;
	uint32_t switched; /* event turned on or off last */
	bool switched_on;
	int nr_switches;
	pid_t focus;
	int nr_focus;
	struct sampler_target_spec target; /* its pointers are void */
	pid_t target_pids[4];
	char target_text[64];
	int nr_targets;
	uint32_t nr_cpus;
	int last_cpu;
	char record[64]; /* the file of the last request; "-": to end it */
};

int sampler_fd(const struct sampler *s)
{
	return -1;
}

struct profile *sampler_take(struct sampler *s)
{
	return NULL;
}

void sampler_set_rate(struct sampler *s, uint32_t event, double hz)
{
	s->rate = hz;
	s->rate_event = event;
}

void sampler_set_enabled(struct sampler *s, bool on)
{
	s->enabled = on;
}

void sampler_set_events(struct sampler *s, const struct event *events, uint32_t nr)
{
	memcpy(s->events, events, nr * sizeof(*events));
	s->nr_events = nr;
	s->nr_sets++;
}

void sampler_record(struct sampler *s, const char *path)
{
	snprintf(s->record, sizeof(s->record), "%s", path ? path : "-");
}

void sampler_set_frames(struct sampler *s, enum profile_frames frames)
{
	s->frames = frames;
}

void sampler_set_window(struct sampler *s, enum profile_window window, uint64_t span_ns)
{
	s->span_ns = span_ns;
	s->window = window;
}

void sampler_set_strip(struct sampler *s, const struct strip_query *query)
{
	s->strip = *query;
	s->nr_strips++;
}

void sampler_show_past(struct sampler *s, uint64_t begin_ns, uint64_t end_ns)
{
	s->past_begin_ns = begin_ns;
	s->past_end_ns = end_ns;
	s->nr_pasts++;
}

int sampler_trap(struct sampler *s, const char *rule, struct err *e)
{
	snprintf(s->trap, sizeof(s->trap), "%s", rule);
	return strncmp(rule, "bad", 3) ? 0 : err_set(e, -EINVAL, "invalid rule");
}

void sampler_list_traps(struct sampler *s)
{
	s->nr_lists++;
}

int sampler_past_fd(const struct sampler *s)
{
	return -1;
}

void sampler_take_past(struct sampler *s, struct profile **p, struct strip **strip)
{
	*p = NULL;
	*strip = NULL;
}

/* Of perf-script output. */
int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e)
{
	fail_msg("replays");
	return -EINVAL;
}

void sampler_missing(const struct sampler *s, struct sampler_missing *out)
{
	fail_msg("replays");
}

/* The server's: no test of the screen starts one. */
void sampler_collect(struct sampler *s, uint64_t span_ns)
{
	fail_msg("collects %lu", (unsigned long)span_ns);
}

void sampler_leave_out(struct sampler *s, clockid_t clock)
{
}

int sampler_collected_fd(const struct sampler *s)
{
	return -1;
}

struct profile *sampler_take_collected(struct sampler *s)
{
	return NULL;
}

void sampler_set_tick(struct sampler *s, uint64_t tick_ns)
{
	s->tick_ns = tick_ns;
}

void sampler_set_annotate(struct sampler *s, uint32_t function)
{
	s->annotate = function;
}

void sampler_fetch(struct sampler *s, uint32_t module)
{
	s->fetched = module;
}

void sampler_set_call_graph(struct sampler *s, enum call_graph mode)
{
	s->call_graph = (int)mode;
}

void sampler_set_stack_size(struct sampler *s, uint32_t size, bool is_auto)
{
	s->stack_size = size;
	s->stack_auto = is_auto;
}

void sampler_set_ring_size(struct sampler *s, size_t size)
{
	s->ring_size = size;
}

void sampler_set_event_enabled(struct sampler *s, uint32_t event, bool on)
{
	s->switched = event;
	s->switched_on = on;
	s->nr_switches++;
}

void sampler_focus(struct sampler *s, pid_t pid)
{
	s->focus = pid;
	s->nr_focus++;
}

void sampler_unfocus(struct sampler *s)
{
	sampler_focus(s, 0);
}

void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec)
{
	s->target = *spec;
	memcpy(s->target_pids, spec->pids ? spec->pids : s->target_pids,
	       MIN(spec->nr_pids, ARRAY_SIZE(s->target_pids)) * sizeof(pid_t));
	snprintf(s->target_text, sizeof(s->target_text), "%s",
		 spec->cgroup ? spec->cgroup
		 : spec->name ? spec->name
		 : spec->user ? spec->user
			      : "");
	s->nr_targets++;
}

void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr)
{
	s->nr_cpus = nr;
	s->last_cpu = nr ? cpus[nr - 1] : -1;
}

void sampler_sandbox_start(bool code)
{
}

void sampler_drop_caps(bool command, bool replay)
{
	(void)command;
	(void)replay;
}

void sampler_drop_thread_caps(void)
{
}

void sampler_sandbox_stop(void)
{
}

void sampler_reset(struct sampler *s)
{
	s->nr_resets++;
}

uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max)
{
	const struct event_info *info = event_catalogue();
	uint32_t nr = 0;

	for (; info[nr].name; nr++)
		if (nr < max)
			out[nr] = (struct sampler_event_state){
				.info = &info[nr],
				.code = s->probing			     ? 1
					: strcmp(info[nr].group, "software") ? -ENOENT
									     : 0,
			};
	return nr;
}

int sampler_reading_permille(const struct sampler *s)
{
	return s->reading - 1;
}

bool sampler_is_settled(struct sampler *s)
{
	return false;
}

double sampler_max_hz(const struct sampler *s)
{
	return s->max_hz;
}

/* ---- profiles ---- */

struct function_spec {
	uint32_t id;
	const char *name, *module;
	char kind;
	double self;	  /* samples */
	uint32_t process; /* index in process_specs; 99: in all of them */
};

static const struct {
	const char *comm;
	pid_t pid;
	uid_t uid;
} process_specs[] = {
	{ "api-server", 4242, 33 },
	{ "nginx", 812, 33 },
	{ "backupd", 977, 0 },
	{ "node", 30121, 1000 },
};

static const struct function_spec function_specs[] = {
	{ 11, "copy_user_enhanced_fast_string", "[kernel]", 'k', 1842, 1 },
	{ 12, "json::Parser::parseObject(json::Node&, std::basic_string_view<char>)", "api-server",
	  'u', 1409, 0 },
	{ 13, "ZSTD_compressBlock_fast", "libzstd.so.1", 'u', 1107, 2 },
	{ 14, "LazyCompile:~handle app.js:88", "[JIT node]", 'j', 615, 3 },
	{ 15, "native_queued_spin_lock_slowpath", "[kernel]", 'k', 580, 99 },
	{ 16, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e_\xce\xbb", "api-server", 'u', 391, 0 },
	{ 17, "0x00007f31c2a41b60", "libvendor.so", '?', 120, 2 },
	{ 18, "clock_gettime", "[vdso]", 'v', 88, 99 },
	{ 19, "%s%n%n", "x\033[31mevil", 'u', 3, 0 },
};
#define NR_SPECS     ARRAY_SIZE(function_specs)
#define NR_PROCESSES ARRAY_SIZE(process_specs)

static inline void fake_account(struct profile *p)
{
	p->account = (struct profile_account){
		.taken = 1996, .complete = 1936, .guessed = 40, .truncated = 2, .broken = 18
	};
	p->account_total = p->account;
	p->samples_per_s = 1996;
	p->nr_places = 1000;
	p->nr_places_named = 981;
	p->window_samples = 1000;
	p->window_unnamed = 19;
	p->self = (struct profile_self){ .cpu_pct = 0.7,
					 .rss_kb = 41000,
					 .samplers_pct = 0.4,
					 .builder_pct = 0.1,
					 .ui_pct = 0.1,
					 .loaders_pct = 0.1 };
}

static inline void fake_cpus(struct profile *p, uint32_t nr)
{
	p->nr_cpus = nr;
	p->cpus = calloc(nr, sizeof(*p->cpus));
	for (uint32_t i = 0; i < nr; i++)
		p->cpus[i] = (struct profile_cpu){ .cpu = (int)i,
						   .online = true,
						   .samples = 998,
						   .busy = (double)(i * 37 % 101) / 100,
						   .busy_kernel = (double)(i * 37 % 101) / 300,
						   .busy_steal = i % 5 == 4 ? 0.05 : 0 };
}

static inline void fake_event(struct profile *p, uint32_t i, const char *name, double want,
			      double got)
{
	struct err e;

	assert_int_equal(event_parse(&p->events[i].event, name, &e), 0);
	p->events[i].enabled = true;
	p->events[i].want_hz = want;
	p->events[i].got_hz = got;
	p->nr_events = MAX(p->nr_events, i + 1);
}

/* One stack: the function, called by main of its process, called by _start. */
static inline void fake_stack(struct profile *p, struct text_arena *arena, uint32_t i)
{
	uint32_t first = p->nr_frames;

	p->frames[p->nr_frames++] = i;
	p->frames[p->nr_frames++] = NR_SPECS; /* main */
	p->stacks[p->nr_stacks++] = (struct profile_stack){ first, 2 };
}

/* The CPU time of the tasks is that of their samples. */
static inline void fake_cpu(struct profile *p)
{
	p->cpu_known = true;
	for (uint32_t i = 0; i < p->nr_tasks; i++)
		p->tasks[i].cpu_ns = 0;
	for (uint32_t i = 0; i < p->nr_counts; i++)
		if (!p->counts[i].event)
			p->tasks[p->counts[i].task].cpu_ns += p->counts[i].weight;
}

/* Counts of each function multiplied by @times[i] (NULL: 1). */
static inline struct profile *fake_profile(uint32_t nr_cpus, const double *times)
{
	struct profile *p = calloc(1, sizeof(*p));
	struct text_arena *arena = text_arena_new();

	p->names = arena;
	p->sampling = true;
	p->running_ns = 192 * 1000000000ull;
	p->window_ns = 5 * 1000000000ull;
	p->interval_ns = 1000000000ull;
	strcpy(p->target, "system");
	p->stack_size = 16384;
	p->ring_size = 2 << 20;
	fake_account(p);
	fake_cpus(p, nr_cpus);
	fake_event(p, 0, "cpu-clock", 997, 996.4);
	p->functions = calloc(NR_SPECS + 1, sizeof(*p->functions));
	p->processes = calloc(NR_PROCESSES, sizeof(*p->processes));
	p->tasks = calloc(NR_PROCESSES, sizeof(*p->tasks));
	p->stacks = calloc(NR_SPECS, sizeof(*p->stacks));
	p->frames = calloc(NR_SPECS * 2, sizeof(*p->frames));
	p->counts = calloc(NR_SPECS * NR_PROCESSES, sizeof(*p->counts));
	for (uint32_t i = 0; i < NR_PROCESSES; i++) {
		struct safe_text comm =
			text_arena_add(arena, process_specs[i].comm, strlen(process_specs[i].comm));

		p->processes[i] = (struct profile_process){ .id = 500 + i,
							    .pid = process_specs[i].pid,
							    .uid = process_specs[i].uid,
							    .comm = comm };
		p->tasks[i] = (struct profile_task){ 900 + i, process_specs[i].pid, i, comm, 0 };
	}
	p->nr_processes = p->nr_tasks = NR_PROCESSES;
	for (uint32_t i = 0; i < NR_SPECS; i++) {
		const struct function_spec *f = &function_specs[i];
		double n = f->self * (times ? times[i] : 1);

		p->functions[i] = (struct profile_function){
			.id = f->id,
			.name = text_arena_add(arena, f->name, strlen(f->name)),
			.module = text_arena_add(arena, f->module, strlen(f->module)),
			.kind = f->kind,
			.kernel = f->kind == 'k',
		};
		fake_stack(p, arena, i);
		for (uint32_t q = 0; q < NR_PROCESSES && n > 0; q++) {
			double share = f->process == q	  ? n
				       : f->process == 99 ? n / NR_PROCESSES
							  : 0;

			if (share > 0)
				p->counts[p->nr_counts++] =
					(struct profile_count){ i, q, 0, share, share };
		}
	}
	p->functions[NR_SPECS] = (struct profile_function){
		.id = 20,
		.name = text_arena_add(arena, "main", 4),
		.module = text_arena_add(arena, "api-server", 10),
		.kind = 'u',
	};
	p->nr_functions = NR_SPECS + 1;
	fake_cpu(p);
	return p;
}

/* Waits beside the samples of the clock: seconds in a window of 5, by process and kind. */
static const struct {
	enum wait_kind kind;
	double seconds[NR_PROCESSES];
} wait_specs[] = {
	{ WAIT_RUNNING, { 1.8, 1.9, 1.1, 0.6 } }, { WAIT_QUEUE, { 0.9, 0.1, 0.05, 0.2 } },
	{ WAIT_LOCK, { 14.2, 0, 0, 0 } },	  { WAIT_CONDITION, { 6.0, 0, 0, 4.1 } },
	{ WAIT_POLL, { 2.1, 27.5, 0, 5.1 } },	  { WAIT_SLEEP, { 0, 0, 1.25, 0 } },
	{ WAIT_PIPE, { 0, 0.5, 0, 0 } },	  { WAIT_DISK, { 0, 0, 2.6, 0 } },
	{ WAIT_FAULT, { 0, 0, 0, 0.01 } },
};

/* Add the event and the counts of waits, in nanoseconds; the clock's counts become nanoseconds. */
static inline void fake_waits(struct profile *p)
{
	uint32_t nr = ARRAY_SIZE(wait_specs);

	fake_event(p, 1, EVENT_WAITS, 0, 0);
	p->events[0].event.clock = true;
	p->functions = realloc(p->functions, (p->nr_functions + nr) * sizeof(*p->functions));
	p->stacks = realloc(p->stacks, (p->nr_stacks + nr) * sizeof(*p->stacks));
	p->frames = realloc(p->frames, (p->nr_frames + nr * 2) * sizeof(*p->frames));
	p->counts = realloc(p->counts, (p->nr_counts * 2 + nr * NR_PROCESSES) * sizeof(*p->counts));
	p->stack_waits = calloc(p->nr_stacks + nr, 1);
	p->stack_idle = calloc(p->nr_stacks + nr, 1);
	/* Of latency: kernel code ran beside another task, the rest alone. */
	p->latency = 1;
	for (uint32_t i = 0, clock = p->nr_counts; i < clock; i++) {
		struct profile_count *c = &p->counts[i], *half = &p->counts[p->nr_counts++];

		c->weight *= 1e9 / 997;
		*half = *c;
		half->event = PROFILE_LATENCY;
		half->weight /= p->functions[c->stack].kernel ? 2 : 1;
	}
	fake_cpu(p);
	p->waits.queue_ns = 250000000;
	p->pressure = (struct procstat_pressure){ .cpu = 0.12, .io = 0.031 };
	for (uint32_t i = 0; i < nr; i++) {
		enum wait_kind kind = wait_specs[i].kind;
		const char *name = wait_kind_name(kind);
		uint16_t size = (uint16_t)strlen(name);

		p->functions[p->nr_functions] =
			(struct profile_function){ .id = 40 + i,
						   .name = { name, size, size },
						   .module = TEXT("[wait]"),
						   .kind = 'w' };
		p->frames[p->nr_frames] = p->nr_functions++;
		p->frames[p->nr_frames + 1] = NR_SPECS; /* main */
		p->stack_waits[p->nr_stacks] = (uint8_t)kind;
		p->stack_idle[p->nr_stacks] = kind == WAIT_POLL;
		p->stacks[p->nr_stacks] = (struct profile_stack){ p->nr_frames, 2 };
		p->nr_frames += 2;
		for (uint32_t q = 0; q < NR_PROCESSES; q++)
			if (wait_specs[i].seconds[q] > 0)
				p->counts[p->nr_counts++] = (struct profile_count){
					p->nr_stacks, q, kind == WAIT_RUNNING ? PROFILE_RUNNING : 1,
					10 + q, wait_specs[i].seconds[q] * 1e9
				};
		p->nr_stacks++;
	}
}

/* Details of the processes from /proc, and their parents. */
static inline void fake_details(struct profile *p)
{
	static const struct {
		pid_t parent;
		struct safe_text command, cgroup, container;
	} details[NR_PROCESSES] = {
		{ 700, TEXT("api-server --config /etc/api.yml"),
		  TEXT("/system.slice/docker-3fa1c2d4e5f6.scope"), TEXT("docker:3fa1c2d4e5f6") },
		{ 1, TEXT("nginx: worker process"), TEXT("/system.slice/nginx.service"), TEXT("") },
		{ 1, TEXT("backupd --nightly"), TEXT("/system.slice/backup.service"), TEXT("") },
		{ 4242, TEXT("node app.js"), TEXT("/system.slice/docker-3fa1c2d4e5f6.scope"),
		  TEXT("docker:3fa1c2d4e5f6") },
	};

	for (uint32_t i = 0; i < NR_PROCESSES; i++) {
		p->processes[i].parent = details[i].parent;
		p->processes[i].command = details[i].command;
		p->processes[i].cgroup = details[i].cgroup;
		p->processes[i].container = details[i].container;
		p->processes[i].up_ns = (i + 1) * 3731000000000ull;
	}
	p->ancestors = calloc(2, sizeof(*p->ancestors));
	p->ancestors[0] = (struct profile_process){ .id = PROFILE_ANCESTOR | 700,
						    .pid = 700,
						    .parent = 1,
						    .comm = TEXT("containerd-shim"),
						    .command = TEXT("containerd-shim -id 3fa1"),
						    .cgroup = TEXT("/"),
						    .container = TEXT("") };
	p->ancestors[1] = (struct profile_process){ .id = PROFILE_ANCESTOR | 1,
						    .pid = 1,
						    .comm = TEXT("systemd"),
						    .command = TEXT("/sbin/init"),
						    .cgroup = TEXT("/init.scope"),
						    .container = TEXT("") };
	p->nr_ancestors = 2;
}

/* ---- a screen without a terminal ---- */

struct bench {
	struct sampler sampler;
	struct ui_config config;
	struct ui_state st;
	struct canvas canvas;
};

static inline void bench_init(struct bench *b, unsigned int cols, unsigned int rows, bool ascii)
{
	memset(b, 0, sizeof(*b));
	b->sampler.max_hz = 8000;
	b->sampler.enabled = -1;
	b->sampler.call_graph = -1;
	ui_config_init(&b->config);
	b->config.host = "web-07";
	model_init(&b->st, &b->sampler, &b->config, ascii);
	b->st.now_ns = 1000000000000ull;
	canvas_init(&b->canvas, ascii);
	assert_int_equal(canvas_resize(&b->canvas, rows, cols), 0);
}

static inline void bench_fini(struct bench *b)
{
	model_fini(&b->st);
	canvas_fini(&b->canvas);
}

static inline void press(struct bench *b, uint32_t code)
{
	input_key(&b->st, &(struct key){ .code = code });
}

static inline void type(struct bench *b, const char *text)
{
	for (; *text; text++)
		press(b, (unsigned char)*text);
}

/* The screen as text; valid until the next call. */
static inline const char *look(struct bench *b)
{
	static char *text;

	free(text);
	screen_draw(&b->st, &b->canvas);
	text = canvas_dump(&b->canvas);
	assert_non_null(text);
	return text;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The face of sampling: makes a session, starts it, passes controls on.
 *
 * Runs on: the UI thread. Everything that may wait is the builder's.
 */
#include "sampler/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu-qsbr.h>

#include "sampler/generation.h"
#include "sampler/event/limits.h"
#include "sampler/session.h"
#include "unwind/unwind.h"

#define MAX_PLACES     (1u << 22)
#define MAX_TASKS      (1u << 18)
#define LONG_CELLS_MAX (1u << 17)
#define HALF_LIFE_NS   10000000000ULL

static int make_tables(struct sampler *s, struct err *e)
{
	uint32_t nr_cpus = s->config.replay ? 0 : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	int code = objects_new(&s->objects);

	s->caps = generation_caps(nr_cpus, s->config.hz * nr_cpus * s->config.nr_events *
						   (double)s->config.window_ns / 1e9);
	if (!code)
		code = maps_new(&s->maps, s->objects, MAX_TASKS);
	if (!code)
		code = places_new(&s->places, MAX_PLACES);
	if (!code)
		code = unwind_rows_new(&s->rows, MAX_PLACES);
	if (!code)
		code = generation_new(&s->caps, &s->stacks, &s->counts);
	if (!code && s->config.replay)
		code = places_begin_small(s->places);
	if (!code && s->config.replay)
		code = stacks_begin_small(s->stacks);
	if (!code)
		code = history_new(&s->history, s->config.window_ns, HALF_LIFE_NS, LONG_CELLS_MAX);
	if (code)
		return err_set(e, code, "no memory for the tables: %s", strerror(-code));
	code = procstat_new(&s->procstat, "", e);
	if (code)
		return code;
	code = symbols_new(&s->symbols, s->places, s->objects, s->maps, e);
	if (!code && s->config.no_inline)
		symbols_no_inline(s->symbols);
	if (!code && s->config.symbol_memory)
		symbols_limit_memory(s->symbols, s->config.symbol_memory);
	return code;
}

/* cycles where there is a PMU, else the timer, and say so. */
static void choose_event(struct sampler *s)
{
	struct sampler_config *c = &s->config;
	int code;

	event_parse(&c->events[0], "cycles", NULL);
	c->nr_events = 1;
	code = event_probe(&c->events[0], 0, -1);
	if (code == -EACCES || code == -EPERM) {
		struct event user = c->events[0];

		user.kernel = user.hv = false;
		code = event_probe(&user, 0, -1);
	}
	if (code != -ENOENT && code != -ENODEV && code != -EOPNOTSUPP && code != -ENXIO)
		return;
	event_parse(&c->events[0], "cpu-clock", NULL);
	snprintf(s->banner, sizeof(s->banner), "cpu-clock instead of cycles: %s",
		 code == -ENOENT ? "this machine has no PMU" : event_errno(code));
}

static int open_counters(struct sampler *s, const int *cpus, uint32_t nr_cpus, struct err *e)
{
	return session_open_counters(&s->config, &s->target, cpus, nr_cpus, &s->counters, e);
}

static bool any_kernel(const struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		if (c->events[i].kernel && !c->events[i].user)
			return false; /* kernel only was asked for: there is no less */
	return c->events[0].kernel;
}

static void user_only(struct sampler_config *c)
{
	for (uint32_t i = 0; i < c->nr_events; i++)
		c->events[i].kernel = c->events[i].hv = false;
}

static bool refused(int code)
{
	return code == -EACCES || code == -EPERM;
}

/* Into the one line that says what is degraded, before what is there: what is not seen matters
 * most. */
static void add_banner(struct sampler *s, const char *text)
{
	char before[sizeof(s->banner)];

	memcpy(before, s->banner, sizeof(before));
	snprintf(s->banner, sizeof(s->banner), "%s%s%.150s", text, before[0] ? "; " : "", before);
}

/*
 * Open what was asked for; without the right to it, what is permitted, with a
 * banner: first without the kernel, then one's own processes instead of all.
 * If nothing is, the sentence is that of the first refusal.
 */
static int open_permitted(struct sampler *s, const int *cpus, uint32_t nr_cpus, struct err *e)
{
	struct sampler_config *c = &s->config;
	struct err later;
	int code = open_counters(s, cpus, nr_cpus, e), second;

	if (!refused(code))
		return code;
	if (c->target != TARGET_SYSTEM && any_kernel(c)) {
		user_only(c);
		second = open_counters(s, cpus, nr_cpus, &later);
		if (!second)
			add_banner(s, "not permitted to see the kernel: user code only");
		return second ? code : 0;
	}
	if (c->target != TARGET_SYSTEM)
		return code;
	c->target = TARGET_USER;
	c->uid = getuid();
	second = target_open(&s->target, c, &later);
	if (!second)
		second = open_counters(s, cpus, nr_cpus, &later);
	if (refused(second) && any_kernel(c)) {
		user_only(c);
		second = open_counters(s, cpus, nr_cpus, &later);
	}
	if (second)
		return code;
	add_banner(s, c->events[0].kernel ? "not permitted to see other users' processes: your own "
					    "only"
					  : "not permitted to see other users' processes or the "
					    "kernel: your own user code only");
	return 0;
}

static int make_fds(struct sampler *s, struct err *e)
{
	s->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->profile_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->control_fd < 0 || s->profile_fd < 0)
		return err_set(e, -errno, "eventfd: %s", strerror(errno));
	return 0;
}

/* How many frames the kernel follows. */
static uint32_t chain_max(void)
{
	long max;

	if (procstat_sysctl("", "perf_event_max_stack", &max) || max < 1 || max > UINT16_MAX)
		return PIPELINE_CHAIN_MAX;
	return (uint32_t)max;
}

/* What the sampler threads see. */
static void share(struct sampler *s)
{
	s->shared = aligned_alloc(CACHELINE, sizeof(*s->shared));
	if (!s->shared)
		abort();
	memset(s->shared, 0, sizeof(*s->shared));
	s->shared->counters = s->counters;
	s->shared->sideband = s->sideband;
	s->shared->symbols = s->symbols;
	s->shared->recorder = s->recorder;
	s->shared->builder_fd = s->control_fd;
	s->tables = xcalloc(1, sizeof(*s->tables));
	*s->tables = (struct pipeline_tables){
		.objects = s->objects,
		.maps = s->maps,
		.tasks = maps_tasks(s->maps),
		.places = s->places,
		.stacks = s->stacks,
		.counts = s->counts,
		.unwind = {
			.step_only = s->config.step_only,
			.verify_every = s->config.verify_every,
			.rows = s->rows,
			.machine = s->replay ? replay_machine(s->replay) : 0,
		},
		.own_pid = s->config.include_self || s->replay ? -1 : getpid(),
		.chain_max = s->replay ? 0 : chain_max(),
	};
	atomic_init(&s->shared->tables, s->tables);
}

static void init_config(struct sampler *s, const struct sampler_config *config)
{
	s->config = *config;
	s->notices.remark = config->remark;
	if (!config->stack_size && config->call_graph == CALL_GRAPH_DWARF)
		s->config.call_graph = CALL_GRAPH_OFF;
	s->window = PROFILE_WINDOW;
	s->tick_ns = config->tick_ns;
	atomic_init(&s->annotate, SYMBOL_NONE);
	s->annotate_in[0] = SYMBOL_NONE;
	s->enabled = true;
	pthread_mutex_init(&s->controls.lock, NULL);
	s->control_fd = s->profile_fd = -1;
	s->target.release_fd = s->target.failed_fd = -1;
	s->target.command_fd = s->target.cgroup_fd = -1;
	if (s->config.nr_events == 0 && !config->replay)
		choose_event(s);
	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		s->hz[i] = event_hz(s, &s->config.events[i]);
		s->got_hz[i] = NAN;
	}
}

/* Target, CPUs, events, side-band. */
static int open_live(struct sampler *s, struct err *e)
{
	int *cpus = NULL, nr_cpus, code = target_open(&s->target, &s->config, e);

	if (code)
		return code;
	nr_cpus = session_choose_cpus(&s->config, &cpus, e);
	code = nr_cpus < 0 ? nr_cpus : open_permitted(s, cpus, (uint32_t)nr_cpus, e);
	if (!code)
		code = sideband_new(&s->sideband, s->counters, s->maps, s->symbols);
	free(cpus);
	return code;
}

static int check_symfs(const char *symfs, struct err *e)
{
	struct stat st;

	if (!symfs || (!stat(symfs, &st) && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, -ENOTDIR,
		       "--symfs %.400s: no such folder\n"
		       "  give one that holds copies of the recorded machine's files, as in "
		       "DIR/usr/bin/app",
		       symfs);
}

static int open_recording(struct sampler *s, struct err *e)
{
	int code = check_symfs(s->config.symfs, e);

	if (!code)
		code = replay_open(&s->replay, &s->config, e);
	if (code)
		return code;
	for (uint32_t i = 0; i < EVENTS_MAX; i++)
		s->hz[i] = event_hz(s, &s->config.events[i]);
	maps_no_proc(s->maps);
	symbols_recorded(s->symbols, s->config.symfs);
	symbols_recorded_kernel(s->symbols, replay_kernel(s->replay));
	if (!replay_monotonic(s->replay))
		symbols_other_clock(s->symbols);
	return 0;
}

void sampler_drop_caps(bool command)
{
	limits_drop_caps(command);
}

int sampler_new(struct sampler **out, const struct sampler_config *config, struct err *e)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	int code;

	init_config(s, config);
	code = make_fds(s, e);
	if (!code)
		code = make_tables(s, e);
	if (!code)
		code = config->replay ? open_recording(s, e) : open_live(s, e);
	if (!code)
		code = recording_open(s, e);
	if (code) {
		sampler_free(s);
		return code;
	}
	session_describe_target(s);
	share(s);
	*out = s;
	return 0;
}

int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e)
{
	int code;

	if (!s->replay)
		return err_set(e, -ENOTSUP,
			       "samples one by one need a recording\n"
			       "  live sampling keeps counts, not samples\n"
			       "  use --replay FILE");
	rcu_register_thread();
	code = replay_each(s->replay, s, fn, ctx);
	rcu_unregister_thread();
	return code;
}

int sampler_start(struct sampler *s, struct err *e)
{
	uint32_t nr;
	int code;

	s->ui = pthread_self();
	if (s->replay)
		return builder_start(s, e);
	nr = counters_nr_cpus(s->counters);
	code = recording_start(s, e);
	if (!code)
		code = symbols_start(s->symbols, e);
	if (code)
		return code;
	/* Every profile has kernel code: let its names be read at once. */
	if (object_want(objects_at(s->objects, OBJECT_ID_KERNEL)))
		symbols_wake(s->symbols);
	s->cpus = tick_new_cpus(nr);
	s->threads = xcalloc(nr, sizeof(*s->threads));
	for (uint32_t i = 0; i < nr && !code; i++) {
		code = sampler_thread_start(&s->threads[i], s->shared, i, e);
		s->nr_threads += !code;
	}
	if (!code && s->config.target != TARGET_COMMAND)
		code = counters_enable(s->counters, true);
	if (code)
		return code;
	code = target_release(&s->target, s->config.command, e);
	return code ? code : builder_start(s, e);
}

static void free_event_states(struct sampler *s)
{
	struct event_states *es = atomic_load_explicit(&s->event_states, memory_order_acquire);

	if (!es)
		return;
	event_list_fini(&es->list);
	free(es->codes);
	free(es);
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	session_stop(s);
	if (s->symbols)
		symbols_stop(s->symbols);
	target_close(&s->target);
	sideband_free(s->sideband);
	recorder_close(s->recorder);
	if (s->counters)
		counters_close(s->counters);
	replay_close(s->replay);
	profile_free(atomic_exchange_explicit(&s->mailbox, NULL, memory_order_acquire));
	history_free(s->history);
	counts_free(s->counts);
	stacks_free(s->stacks);
	if (symbols_free(s->symbols)) {
		maps_free(s->maps);
		places_free(s->places);
		unwind_rows_free(s->rows);
		objects_free(s->objects);
	}
	procstat_free(s->procstat);
	if (s->control_fd >= 0)
		close(s->control_fd);
	if (s->profile_fd >= 0)
		close(s->profile_fd);
	pthread_mutex_destroy(&s->controls.lock);
	free_event_states(s);
	for (uint32_t i = 0; i < s->controls.nr; i++)
		spec_free(s->controls.items[i].spec);
	spec_free(s->spec);
	spec_free(s->focus.spec);
	free(s->cpus_online);
	free(s->threads);
	free(s->cpus);
	free(s->tables);
	free(s->shared);
	free(s);
}

int sampler_fd(const struct sampler *s)
{
	return s->profile_fd;
}

struct profile *sampler_take(struct sampler *s)
{
	uint64_t sink;

	if (read(s->profile_fd, &sink, sizeof(sink)) != sizeof(sink))
		return NULL;
	/* Acquire: pairs with the builder's exchange, the profile is complete. */
	return atomic_exchange_explicit(&s->mailbox, NULL, memory_order_acquire);
}

/* Queue a request; the newest of a kind that would be repeated replaces the older. */
static void send_control(struct sampler *s, const struct control *c)
{
	struct control_queue *q = &s->controls;
	const uint64_t one = 1;
	uint32_t i = 0;

	pthread_mutex_lock(&q->lock);
	while (i < q->nr && (q->items[i].kind != c->kind || q->items[i].event != c->event))
		i++;
	if (i < CONTROLS_MAX) {
		if (i < q->nr)
			spec_free(q->items[i].spec);
		q->items[i] = *c;
		q->nr = MAX(q->nr, i + 1);
	} else {
		spec_free(c->spec);
	}
	pthread_mutex_unlock(&q->lock);
	if (write(s->control_fd, &one, sizeof(one)) != sizeof(one))
		return; /* already readable */
}

void sampler_set_rate(struct sampler *s, uint32_t event, double hz)
{
	send_control(s, &(struct control){ .kind = CONTROL_RATE, .event = event, .hz = hz });
}

void sampler_set_enabled(struct sampler *s, bool on)
{
	send_control(s, &(struct control){ .kind = CONTROL_ENABLE, .on = on });
}

void sampler_set_event_enabled(struct sampler *s, uint32_t event, bool on)
{
	send_control(s,
		     &(struct control){ .kind = CONTROL_EVENT_ENABLE, .event = event, .on = on });
}

void sampler_set_stack_size(struct sampler *s, uint32_t size)
{
	send_control(s, &(struct control){ .kind = CONTROL_STACK, .size = size });
}

void sampler_set_call_graph(struct sampler *s, enum call_graph mode)
{
	send_control(s, &(struct control){ .kind = CONTROL_CALL_GRAPH, .call_graph = mode });
}

void sampler_set_ring_size(struct sampler *s, size_t size)
{
	send_control(s, &(struct control){ .kind = CONTROL_RING, .size = size });
}

void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec)
{
	send_control(s, &(struct control){ .kind = CONTROL_TARGET, .spec = spec_copy(spec) });
}

void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr)
{
	const struct sampler_target_spec spec = { .cpus = cpus, .nr_cpus = nr };

	send_control(s, &(struct control){ .kind = CONTROL_CPUS, .spec = spec_copy(&spec) });
}

void sampler_focus(struct sampler *s, pid_t pid)
{
	send_control(s, &(struct control){ .kind = CONTROL_FOCUS, .pid = pid });
}

void sampler_unfocus(struct sampler *s)
{
	sampler_focus(s, 0);
}

void sampler_set_events(struct sampler *s, const struct event *events, uint32_t nr)
{
	struct control c = { .kind = CONTROL_EVENTS, .nr_events = MIN(nr, (uint32_t)EVENTS_MAX) };

	memcpy(c.events, events, c.nr_events * sizeof(events[0]));
	event_groups_tidy(c.events, c.nr_events);
	send_control(s, &c);
}

void sampler_set_window(struct sampler *s, enum profile_window window)
{
	send_control(s, &(struct control){ .kind = CONTROL_WINDOW, .window = window });
}

void sampler_set_tick(struct sampler *s, uint64_t tick_ns)
{
	send_control(s, &(struct control){ .kind = CONTROL_TICK, .tick_ns = tick_ns });
}

void sampler_set_annotate(struct sampler *s, uint32_t function)
{
	/* Relaxed: the queue's lock orders it before the control is seen. */
	atomic_store_explicit(&s->annotate, function, memory_order_relaxed);
	send_control(s, &(struct control){ .kind = CONTROL_ANNOTATE });
}

void sampler_fetch(struct sampler *s, uint32_t module)
{
	symbols_fetch(s->symbols, module);
	send_control(s, &(struct control){ .kind = CONTROL_FETCH });
}

void sampler_reset(struct sampler *s)
{
	send_control(s, &(struct control){ .kind = CONTROL_RESET });
}

/* Until the builder has looked: what every machine has. */
static uint32_t fixed_states(struct sampler_event_state *out, uint32_t max)
{
	const struct event_info *info = event_catalogue();
	uint32_t nr = 0;

	for (; info[nr].name; nr++)
		if (nr < max)
			out[nr] = (struct sampler_event_state){ &info[nr], 1 };
	return nr;
}

uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max)
{
	/* Acquire: pairs with the builder's release, the list is complete. */
	const struct event_states *es =
		atomic_load_explicit(&s->event_states, memory_order_acquire);

	if (!es) {
		send_control(s, &(struct control){ .kind = CONTROL_PROBE });
		return fixed_states(out, max);
	}
	for (uint32_t i = 0; i < MIN(max, es->list.nr); i++)
		out[i] = (struct sampler_event_state){
			.info = &es->list.infos[i],
			.code = atomic_load_explicit(&es->codes[i], memory_order_relaxed),
		};
	return es->list.nr;
}

double sampler_max_hz(const struct sampler *s)
{
	return (double)atomic_load_explicit(&s->max_hz, memory_order_relaxed);
}

int sampler_command_status(const struct sampler *s)
{
	return atomic_load_explicit(&s->target.status, memory_order_relaxed);
}

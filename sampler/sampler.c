// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session from its configuration to its end, the door of sampling: its parts, the source of the
 * running system, controls passed on.
 *
 * Runs on: the main thread. Everything that may wait is the builder's.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/thread.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/symbols.h"

/* Open the eventfd. 0 or -errno with a sentence. */
static int mailbox_open(struct mailbox *m, struct err *e)
{
	m->fd = wake_new();
	m->past_fd = m->fd < 0 ? m->fd : wake_new();
	return m->past_fd < 0 ? err_set(e, m->past_fd, "cannot start sampling: eventfd: %s",
					strerror(-m->past_fd))
			      : 0;
}

/* Close it, and free a profile that was not taken. */
static void mailbox_close(struct mailbox *m)
{
	profile_free(atomic_exchange_explicit(&m->profile, NULL, memory_order_acquire));
	profile_free(atomic_exchange_explicit(&m->past, NULL, memory_order_acquire));
	free(atomic_exchange_explicit(&m->strip, NULL, memory_order_acquire));
	if (m->fd >= 0)
		close(m->fd);
	if (m->past_fd >= 0)
		close(m->past_fd);
	m->fd = m->past_fd = -1;
}

/* Take the profile out; NULL: there is none. */
static struct profile *mailbox_take(struct mailbox *m)
{
	if (!wake_clear(m->fd))
		return NULL;
	/* Acquire: pairs with mailbox_post(), the profile is complete. */
	return atomic_exchange_explicit(&m->profile, NULL, memory_order_acquire);
}

/* Return whether a request is queued or taken, and not answered. Any thread. */
static bool controls_are_busy(struct controls *q)
{
	bool busy;

	pthread_mutex_lock(&q->lock);
	busy = q->busy;
	pthread_mutex_unlock(&q->lock);
	return busy;
}

/*
 * A session from its configuration to its end: its parts, and the source of the running system.
 *
 * Runs on: the owner's thread.
 */

/* Choose cycles where there is a PMU, else cpu-clock with a banner. */
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
	snprintf(s->banner, sizeof(s->banner), PROFILE_NO_CYCLES "%s",
		 code == -ENOENT ? PROFILE_NO_PMU : event_errno(code));
}

static int open_counters(struct sampler *s, struct err *e)
{
	/*
	 * Where the kernel copies no frames, readers do. It may copy the memory of any process:
	 * that is for readers alone that may read it.
	 */
	if (s->config.languages & ~CONFIG_JAVA && !s->config.sys && sandbox_memory_is_on() &&
	    s->live.copier.program_fd <= 0 && !copier_load(&s->live.copier))
		s->config.program_fd = s->live.copier.program_fd;
	return live_open_counters(&s->config, &s->target, &s->live.counters, e);
}

static bool refused(int code)
{
	return code == -EACCES || code == -EPERM;
}

/*
 * Open the requested events; without the right to them, the permitted ones, with a banner: first
 * without the kernel, then one's own processes instead of all. If nothing is permitted, the message
 * is from the first refusal.
 */
static int open_permitted(struct sampler *s, struct err *e)
{
	struct sampler_config *c = &s->config;
	struct err later;
	int code = open_counters(s, e), second;

	if (!refused(code))
		return code;
	if (c->target != TARGET_SYSTEM && config_user_only(c->events, c->nr_events)) {
		second = open_counters(s, &later);
		if (!second)
			mailbox_add_banner(s, CONFIG_USER_ONLY);
		return second ? code : 0;
	}
	if (c->target != TARGET_SYSTEM)
		return code;
	c->target = TARGET_USER;
	c->uid = getuid();
	second = target_open(&s->target, c, &later);
	if (!second)
		second = open_counters(s, &later);
	if (refused(second) && config_user_only(c->events, c->nr_events))
		second = open_counters(s, &later);
	if (second)
		return code;
	mailbox_add_banner(s, c->events[0].kernel ? "not permitted to see other users' processes: "
						    "your own only"
						  : "not permitted to see other users' processes "
						    "or the kernel: your own user code only");
	return 0;
}

/* Return how many frames the kernel follows. */
static uint32_t chain_max(void)
{
	long max;

	if (procstat_sysctl("", "perf_event_max_stack", &max) || max < 1 || max > UINT16_MAX)
		return PIPELINE_CHAIN_MAX;
	return (uint32_t)max;
}

static int share(struct sampler *s, struct err *e)
{
	const bool all = s->config.include_self || s->facts.recorded;
	struct sampler_thread_shared *shared = aligned_alloc(CACHELINE, sizeof(*shared));

	if (!shared)
		return err_set(e, -ENOMEM, "out of memory");
	memset(shared, 0, sizeof(*shared));
	shared->counters = s->live.counters;
	shared->sideband = s->live.sideband;
	shared->recorder = s->recording.recorder;
	shared->builder_fd = s->controls.fd;
	s->live.shared = shared;
	store_publish(&s->store, shared, &s->config, s->facts.machine, all ? -1 : getpid(),
		      s->facts.chain_max);
	return 0;
}

static void init_config(struct sampler *s, const struct sampler_config *config)
{
	s->config = *config;
	s->source = config->replay ? &source_replay : &source_live;
	s->messages.remark = config->remark;
	if (!config->stack_size && config->call_graph == CALL_GRAPH_DWARF)
		s->config.call_graph = CALL_GRAPH_OFF;
	s->ticks.window = PROFILE_WINDOW;
	s->ticks.period_ns = config->tick_ns;
	atomic_init(&s->annotate.function, SYMBOL_NONE);
	s->annotate.in[0] = SYMBOL_NONE;
	s->annotate.replay = config->replay != NULL;
	s->rates.enabled = true;
	target_init(&s->target);
	if (s->config.nr_events == 0 && !config->replay)
		choose_event(s);
	rates_init(&s->rates, &s->config);
	for (uint32_t i = 0; i < config->nr_traps; i++)
		traps_add(&s->traps, &config->traps[i]);
}

/* Open target, CPUs, events and side-band. */
static int open_live(struct sampler *s, struct err *e)
{
	struct object_identity *kernel = &objects_at(s->store.objects, OBJECT_ID_KERNEL)->identity;
	int code = target_open(&s->target, &s->config, e);

	if (code)
		return code;
	if (history_use_moments(s->store.history))
		return err_set(e, -ENOMEM, "no memory for the tables: %s", strerror(ENOMEM));
	/* Before the events: a CPU that is online just after them is then one that came back. */
	s->live.online = live_online();
	if (procstat_pid_namespace(""))
		maps_in_namespace(s->store.maps);
	s->cpu_times = cpu_times_new(NULL);
	if (!s->cpu_times)
		return err_set(e, -ENOMEM, "out of memory");
	code = open_permitted(s, e);
	if (!code)
		target_choose(s);
	if (!code && s->target.kind == TARGET_NAME && !s->target.wide &&
	    config_wait_slot(&s->config) < 0)
		mailbox_add_banner(s, TARGET_LONG_ONLY);
	if (!code)
		code = sideband_new(&s->live.sideband, s->live.counters, s->store.maps,
				    s->store.symbols, &s->live.parents);
	kernel->build_id_size = (uint8_t)recorded_kernel_build_id("/sys/kernel/notes",
								  kernel->build_id,
								  sizeof(kernel->build_id));
	s->facts.chain_max = chain_max();
	return code;
}

static int rates_open(struct rates *r, struct err *e)
{
	return procstat_new(&r->procstat, "", e);
}

static int open_parts(struct sampler *s, const struct sampler_config *config, struct err *e)
{
	int code = controls_open(&s->controls, e), mailbox = mailbox_open(&s->mailbox, e);

	code = code ? code : mailbox;
	if (!code)
		code = mailbox_open(&s->collect.mailbox, e);
	s->collect.due_ns = UINT64_MAX;
	init_config(s, config);
	if (!code)
		code = store_open(&s->store, &s->config, e);
	if (!code)
		code = rates_open(&s->rates, e);
	if (!code)
		code = s->source->open(s, e);
	if (!code)
		code = keep_open(&s->keep, &config->keep, e);
	if (!code)
		code = recording_open(&s->recording, config->record,
				      config->saving.dir ? config->saving.memory : 0,
				      s->live.counters, s->live.sideband,
				      symbols_codes(s->store.symbols), e);
	return code ? code : share(s, e);
}

static void session_free(struct sampler *s);

/* Open events or recording, make the tables. 0 or -errno with a sentence. */
static int session_new(struct sampler **out, const struct sampler_config *config, struct err *e)
{
	struct sampler *s = xcalloc(1, sizeof(*s));
	int code = open_parts(s, config, e);

	if (code) {
		session_free(s);
		return code;
	}
	target_describe(&s->target, &s->config);
	*out = s;
	return 0;
}

/* Before the sampler threads start. */
static int open_waits(struct sampler *s, struct err *e)
{
	int code;

	if (config_wait_slot(&s->config) < 0)
		return 0;
	code = store_open_waits(&s->store, counters_nr_cpus(s->live.counters),
				config_latency_slot(&s->config));
	return code ? err_set(e, code, "no memory for the switches of tasks") : 0;
}

/* Start the sampler threads and enable the events. */
static int start_live(struct sampler *s, struct err *e)
{
	int code = recording_start(&s->recording, e);

	if (!code && s->config.record)
		mailbox_say(&s->mailbox, "recording to %s", s->config.record);
	symbols_watch_interpreters(s->store.symbols, s->controls.fd);
	if (!code)
		code = symbols_start(s->store.symbols, e);
	if (code)
		return code;
	/* Every profile has kernel code: its names are needed first. */
	if (object_want(objects_at(s->store.objects, OBJECT_ID_KERNEL)))
		symbols_wake(s->store.symbols);
	s->rates.cpus = rates_new_cpus(counters_nr_cpus(s->live.counters));
	if (s->config.languages & ~CONFIG_JAVA)
		langreaders_open(&s->live.readers, symbols_codes(s->store.symbols),
				 s->config.languages & ~CONFIG_JAVA, &s->live.copier);
	code = open_waits(s, e);
	code = code ? code : live_start_threads(&s->live, e);
	if (!code && s->config.target != TARGET_COMMAND) {
		code = counters_enable(s->live.counters, true);
		if (code)
			err_set(e, code, "cannot start sampling: %s", strerror(-code));
	}
	return code ? code : target_release(&s->target, s->config.command, e);
}

static uint32_t live_nr_cpus(const struct sampler *s)
{
	return s->live.nr_threads;
}

static double live_hz(const struct sampler *s, uint32_t event)
{
	assert(event < EVENTS_MAX);
	return s->rates.hz[event];
}

static uint64_t live_real_ns(const struct sampler *s, uint64_t time_ns)
{
	(void)s;
	return time_real_ns(time_ns);
}

static int live_permille(const struct sampler *s)
{
	(void)s;
	return -1;
}

static int live_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e)
{
	(void)s;
	(void)fn;
	(void)ctx;
	return err_set(e, -ENOTSUP,
		       "samples one by one need a recording\n"
		       "  live sampling keeps counts, not samples\n"
		       "  use --replay FILE");
}

const struct source source_live = {
	.open = open_live,
	.start = start_live,
	.run = builder_main,
	.stop = builder_join,
	.nr_cpus = live_nr_cpus,
	.hz = live_hz,
	.real_ns = live_real_ns,
	.permille = live_permille,
	.each = live_each,
};

static void rates_close(struct rates *r)
{
	procstat_free(r->procstat);
	free(r->cpus);
}

/* Close and free everything; builder and sampler threads have ended. */
static void session_free(struct sampler *s)
{
	assert(!s->builder.runs && !s->live.nr_threads);
	if (s->store.symbols)
		symbols_stop(s->store.symbols);
	target_close(&s->target);
	cpu_times_free(s->cpu_times);
	recording_close(&s->recording);
	live_close(&s->live);
	replay_close(s->replay);
	mailbox_close(&s->mailbox);
	mailbox_close(&s->collect.mailbox);
	rates_close(&s->rates);
	event_states_free(&s->events);
	keep_close(s->keep);
	past_close(&s->past);
	traps_clear(&s->traps);
	controls_close(&s->controls);
	config_free_spec(s->spec);
	config_free_spec(s->focus.spec);
	langreaders_close(&s->live.readers);
	copier_close(&s->live.copier);
	store_close(&s->store);
	free(s);
}

void sampler_sandbox_start(bool code)
{
	const struct sandbox_reader *readers[SANDBOX_NR_KINDS] = { NULL };

	symbols_sandbox_readers(code, readers);
	for (unsigned int i = 0; i < PERFDATA_READERS; i++)
		readers[SANDBOX_RECORDING + i] = &perfdata_readers[i];
	sandbox_start(readers);
}

void sampler_readers_start(void)
{
	sandbox_memory_start(langreader_process);
}

void sampler_sandbox_stop(void)
{
	sandbox_memory_stop();
	sandbox_stop();
}

void sampler_drop_caps(bool command, bool replay)
{
	limits_drop_caps(command, replay);
}

int sampler_new(struct sampler **out, const struct sampler_config *config, struct err *e)
{
	return session_new(out, config, e);
}

int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e)
{
	return s->source->each(s, fn, ctx, e);
}

void sampler_missing(const struct sampler *s, struct sampler_missing *out)
{
	replay_missing(s->replay, out);
}

int sampler_start(struct sampler *s, struct err *e)
{
	int code;

	s->ticks.ui = pthread_self();
	code = s->source->start(s, e);
	return code ? code : builder_start(s, e);
}

void sampler_drop_thread_caps(void)
{
	limits_drop_thread_caps(LIMITS_UI);
}

/*
 * End the builder and the sampler threads; keep their counts. False: the builder hangs. Then no
 * grace period ends, which the ends of other threads wait for: all of them go on.
 */
static bool stop(struct sampler *s)
{
	if (!builder_stop(s))
		return false;
	live_stop_threads(&s->live);
	return true;
}

int sampler_record_end(struct sampler *s, struct sampler_recorded *out, struct err *e)
{
	*out = (struct sampler_recorded){ 0 };
	if (!s->live.counters)
		return 0;
	counters_enable(s->live.counters, false);
	/* Until then the builder may begin or end one. */
	if (!stop(s) && s->config.record)
		return err_set(e, -ETIME,
			       "the recording %s is not complete: /proc does not respond\n"
			       "  a process waits for a file system, and proftop for that process\n"
			       "  proftop --replay reads the written part",
			       s->config.record);
	if (!s->config.record || s->builder.left)
		return 0;
	return recording_finish(&s->recording, s->live.counters, s->config.nr_events,
				s->store.objects, out, e);
}

int sampler_keep_end(struct sampler *s, struct err *e)
{
	struct err why;
	int code;

	if (!s->keep)
		return 0;
	if (!stop(s))
		return err_set(e, -ETIME,
			       "--keep is not complete: /proc does not respond\n"
			       "  a process waits for a file system, and proftop for that process\n"
			       "  --open shows the written part");
	code = keep_finish(s->keep, &why);
	return code ? err_set(e, code, "--keep has ended: %.300s\n  --open shows the written part",
			      why.text)
		    : 0;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	if (stop(s))
		session_free(s);
	else
		target_end_command(&s->target);
}

int sampler_fd(const struct sampler *s)
{
	return s->mailbox.fd;
}

struct profile *sampler_take(struct sampler *s)
{
	return mailbox_take(&s->mailbox);
}

void sampler_collect(struct sampler *s, uint64_t span_ns)
{
	/* Relaxed: see collect_begin(). */
	atomic_store_explicit(&s->collect.wanted_ns, span_ns, memory_order_relaxed);
	controls_wake(&s->controls);
}

void sampler_leave_out(struct sampler *s, clockid_t clock)
{
	/* Relaxed: a number that stays. */
	atomic_store_explicit(&s->server_clock, clock, memory_order_relaxed);
}

int sampler_collected_fd(const struct sampler *s)
{
	return s->collect.mailbox.fd;
}

struct profile *sampler_take_collected(struct sampler *s)
{
	return mailbox_take(&s->collect.mailbox);
}

static void send_control(struct sampler *s, const struct control *c)
{
	controls_send(&s->controls, c);
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

void sampler_set_stack_size(struct sampler *s, uint32_t size, bool is_auto)
{
	send_control(s, &(struct control){ .kind = CONTROL_STACK, .stack = { size, is_auto } });
}

void sampler_set_call_graph(struct sampler *s, enum call_graph mode)
{
	send_control(s, &(struct control){ .kind = CONTROL_CALL_GRAPH, .call_graph = mode });
}

void sampler_set_ring_size(struct sampler *s, size_t size)
{
	send_control(s, &(struct control){ .kind = CONTROL_RING, .size = size });
}

void sampler_record(struct sampler *s, const char *path)
{
	send_control(s, &(struct control){ .kind = CONTROL_RECORD,
					   .path = path ? xstrndup(path, strlen(path)) : NULL });
}

void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec)
{
	send_control(s,
		     &(struct control){ .kind = CONTROL_TARGET, .spec = config_copy_spec(spec) });
}

void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr)
{
	const struct sampler_target_spec spec = { .cpus = cpus, .nr_cpus = nr };

	assert(cpus || !nr);
	send_control(s, &(struct control){ .kind = CONTROL_CPUS, .spec = config_copy_spec(&spec) });
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
	struct control c = { .kind = CONTROL_EVENTS, .events.nr = MIN(nr, (uint32_t)EVENTS_MAX) };

	assert(events || !nr);
	memcpy(c.events.list, events, c.events.nr * sizeof(events[0]));
	event_groups_tidy(c.events.list, c.events.nr);
	send_control(s, &c);
}

void sampler_set_window(struct sampler *s, enum profile_window window, uint64_t span_ns)
{
	send_control(s, &(struct control){ .kind = CONTROL_WINDOW, .window = { window, span_ns } });
}

void sampler_set_frames(struct sampler *s, enum profile_frames frames)
{
	send_control(s, &(struct control){ .kind = CONTROL_FRAMES, .frames = frames });
}

void sampler_set_strip(struct sampler *s, const struct strip_query *query)
{
	struct strip_query *copy = strip_copy_query(query);

	if (copy)
		send_control(s, &(struct control){ .kind = CONTROL_STRIP, .strip = copy });
}

void sampler_show_past(struct sampler *s, uint64_t begin_ns, uint64_t end_ns)
{
	send_control(s, &(struct control){ .kind = CONTROL_PAST, .past = { begin_ns, end_ns } });
}

int sampler_trap(struct sampler *s, const char *text, struct err *e)
{
	struct control c = { .kind = CONTROL_TRAP };
	int code = 0;

	if (*text) {
		c.rule = xcalloc(1, sizeof(*c.rule));
		code = trap_rule_parse(c.rule, text, e);
	}
	if (code)
		free(c.rule);
	else
		send_control(s, &c);
	return code;
}

void sampler_list_traps(struct sampler *s)
{
	send_control(s, &(struct control){ .kind = CONTROL_TRAPS });
}

int sampler_past_fd(const struct sampler *s)
{
	return s->mailbox.past_fd;
}

void sampler_take_past(struct sampler *s, struct profile **p, struct strip **strip)
{
	mailbox_take_past(&s->mailbox, p, strip);
}

void sampler_set_tick(struct sampler *s, uint64_t tick_ns)
{
	send_control(s, &(struct control){ .kind = CONTROL_TICK, .tick_ns = tick_ns });
}

void sampler_set_annotate(struct sampler *s, uint32_t function)
{
	/* Relaxed: the queue's lock orders it before the control is seen. */
	atomic_store_explicit(&s->annotate.function, function, memory_order_relaxed);
	send_control(s, &(struct control){ .kind = CONTROL_ANNOTATE });
}

void sampler_fetch(struct sampler *s, uint32_t module)
{
	symbols_fetch(s->store.symbols, module);
	send_control(s, &(struct control){ .kind = CONTROL_FETCH });
}

void sampler_reset(struct sampler *s)
{
	send_control(s, &(struct control){ .kind = CONTROL_RESET });
}

uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max)
{
	bool probed;
	uint32_t nr = event_states_get(&s->events, out, max, &probed);

	if (!probed)
		send_control(s, &(struct control){ .kind = CONTROL_PROBE });
	return nr;
}

int sampler_reading_permille(const struct sampler *s)
{
	return s->source->permille(s);
}

bool sampler_is_settled(struct sampler *s)
{
	return s->facts.recorded && !controls_are_busy(&s->controls);
}

double sampler_max_hz(const struct sampler *s)
{
	return (double)atomic_load_explicit(&s->rates.max_hz, memory_order_relaxed);
}

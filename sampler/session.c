// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session from its configuration to its end: its parts, and the source of the running system.
 *
 * Runs on: the owner's thread.
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
#include "sampler/profile/profile.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/base/thread.h"
#include "symbols/code/code.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/symbols.h"
#include "unwind/unwind.h"

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
	return live_open_counters(&s->config, &s->target, &s->live.counters, e);
}

static bool refused(int code)
{
	return code == -EACCES || code == -EPERM;
}

/* Put @text before the banner: missing samples matter most. */
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

int session_new(struct sampler **out, const struct sampler_config *config, struct err *e)
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
				 s->config.languages & ~CONFIG_JAVA);
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

/* 0 or -errno with a sentence. */
static void rates_close(struct rates *r)
{
	procstat_free(r->procstat);
	free(r->cpus);
}

void session_free(struct sampler *s)
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
	store_close(&s->store);
	free(s);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session from its configuration to its end.
 *
 * Runs on: the owner's thread.
 */
#include "sampler/session.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
void session_add_banner(struct sampler *s, const char *text)
{
	char before[sizeof(s->banner)];

	memcpy(before, s->banner, sizeof(before));
	snprintf(s->banner, sizeof(s->banner), "%s%s%.150s", text, before[0] ? "; " : "", before);
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
			session_add_banner(s, CONFIG_USER_ONLY);
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
	session_add_banner(s, c->events[0].kernel ? "not permitted to see other users' processes: "
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
	const bool all = s->config.include_self || s->replay;
	struct sampler_thread_shared *shared = aligned_alloc(CACHELINE, sizeof(*shared));

	if (!shared)
		return err_set(e, -ENOMEM, "out of memory");
	memset(shared, 0, sizeof(*shared));
	shared->counters = s->live.counters;
	shared->sideband = s->live.sideband;
	shared->recorder = s->recording.recorder;
	shared->builder_fd = s->controls.fd;
	s->live.shared = shared;
	store_publish(&s->store, shared, &s->config, s->replay ? replay_machine(s->replay) : 0,
		      all ? -1 : getpid(), s->replay ? 0 : chain_max());
	return 0;
}

static void init_config(struct sampler *s, const struct sampler_config *config)
{
	s->config = *config;
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
		code = sideband_new(&s->live.sideband, s->live.counters, s->store.maps,
				    s->store.symbols);
	return code;
}

static int check_symfs(const char *symfs, struct err *e)
{
	struct stat st;

	if (!symfs || (!stat(symfs, &st) && S_ISDIR(st.st_mode)))
		return 0;
	return err_set(e, -ENOTDIR,
		       "--symfs %.400s: no such folder\n"
		       "  it has copies of the recorded machine's files, for example "
		       "DIR/usr/bin/app",
		       symfs);
}

/* Report kernel samples without symbols: the kernel is not the running one. */
static void note_kernel(struct sampler *s)
{
	const struct kernel_identity *was = replay_kernel(s->replay);
	enum kernel_match match = symbols_recorded_kernel(s->store.symbols, was);
	char text[160], release[2 * KERNEL_RELEASE_MAX];

	if (match == KERNEL_SAME || !replay_has_kernel(s->replay))
		return;
	text_sanitise(release, sizeof(release), was->release, strlen(was->release));
	snprintf(text, sizeof(text), "%s%s%s: no kernel symbols", recorded_kernel_reason(match),
		 release[0] ? ", " : "", release);
	session_add_banner(s, text);
}

static int open_recording(struct sampler *s, struct err *e)
{
	int code = check_symfs(s->config.symfs, e);

	if (!code)
		code = replay_open(&s->replay, &s->config, e);
	if (code)
		return code;
	rates_init(&s->rates, &s->config);
	maps_no_proc(s->store.maps);
	symbols_recorded(s->store.symbols, s->config.symfs);
	note_kernel(s);
	if (!replay_monotonic(s->replay))
		symbols_other_clock(s->store.symbols);
	if (replay_note(s->replay)[0])
		session_add_banner(s, replay_note(s->replay));
	return 0;
}

/* Set the build-id of the kernel, for exports; of a stream it may still be unknown. */
static void identify_kernel(struct sampler *s)
{
	struct object_identity *kernel = &objects_at(s->store.objects, OBJECT_ID_KERNEL)->identity;

	if (s->config.replay) {
		const struct kernel_identity *was = replay_kernel(s->replay);

		kernel->build_id_size = was->build_id_size;
		memcpy(kernel->build_id, was->build_id, sizeof(was->build_id));
	} else {
		kernel->build_id_size = (uint8_t)recorded_kernel_build_id("/sys/kernel/notes",
									  kernel->build_id,
									  sizeof(kernel->build_id));
	}
}

static int open_parts(struct sampler *s, const struct sampler_config *config, struct err *e)
{
	int code = controls_open(&s->controls, e), mailbox = mailbox_open(&s->mailbox, e);

	code = code ? code : mailbox;
	if (!code)
		code = collect_open(&s->collect, e);
	init_config(s, config);
	if (!code)
		code = store_open(&s->store, &s->config, e);
	if (!code)
		code = rates_open(&s->rates, e);
	if (!code)
		code = config->replay ? open_recording(s, e) : open_live(s, e);
	if (!code)
		identify_kernel(s);
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

int session_start(struct sampler *s, struct err *e)
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
	collect_close(&s->collect);
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The face of sampling: starts and ends a session, passes controls on.
 *
 * Runs on: the main thread. Everything that may wait is the builder's.
 */
#include "sampler/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/profile/profile.h"
#include "sampler/reader/reader.h"
#include "sampler/ring/ring.h"
#include "sampler/waits/waits.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"

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

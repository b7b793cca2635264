/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The face of sampling: configure, start, control, stop, take profiles.
 *
 * All calls come from one thread (the UI). None of them waits for a file or
 * for the kernel's answer to a control: that is done by the builder thread,
 * and the answer comes in a later profile (message, events[].error).
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <sys/types.h>

#include "sampler/config.h"
#include "sampler/event/event.h"
#include "sampler/event_states.h"
#include "sampler/profile/profile.h"
#include "sampler/recording.h"
#include "sampler/sample.h"
#include "symbols/base/base.h"

struct sampler;

/* Before any other thread: give up the capabilities that nothing here uses; a command gets them
 * again. */
void sampler_drop_caps(bool command);
/*
 * Open events and rings. 0; -EACCES/-EPERM (nothing may be sampled: exit 3);
 * -ESRCH (target not there: exit 4); other -errno. With the three-line sentence.
 */
int sampler_new(struct sampler **out, const struct sampler_config *config, struct err *e);
/* Start the threads and enable the events (a command is released). */
int sampler_start(struct sampler *s, struct err *e);
/*
 * With config.record: end the session and complete the file; nothing but sampler_take() and
 * sampler_free() may follow. 0, or -errno with a sentence (disk full ...): what was written stays.
 */
int sampler_record_end(struct sampler *s, struct sampler_recorded *out, struct err *e);
/* Stop and join all threads, close everything. A command still running is left alone. */
void sampler_free(struct sampler *s);

/* Readable when a new profile waits: for poll(2). */
int sampler_fd(const struct sampler *s);
/* The newest profile, yours now (profile_free), or NULL. */
struct profile *sampler_take(struct sampler *s);

/* Controls: applied by the builder within a few ms; then a fresh profile comes at once. */
void sampler_set_rate(struct sampler *s, uint32_t event, double hz);
void sampler_set_enabled(struct sampler *s, bool on); /* all events (S) */
void sampler_set_events(struct sampler *s, const struct event *events, uint32_t nr);
void sampler_set_window(struct sampler *s, enum profile_window window);
void sampler_set_tick(struct sampler *s, uint64_t tick_ns);
void sampler_reset(struct sampler *s); /* counts from zero */
/*
 * Fetch the debug file of a module (profile_module.id) in the background; once
 * more, while it is under way: cancel. Messages of profiles tell how it goes.
 */
void sampler_fetch(struct sampler *s, uint32_t module);
/* Profiles tell where in this function (an id) its samples are; UINT32_MAX: of none. */
void sampler_set_annotate(struct sampler *s, uint32_t function);

/* One event off and on again: its fds stay open, it costs nothing while off. */
void sampler_set_event_enabled(struct sampler *s, uint32_t event, bool on);
/*
 * These need the events opened anew: tables and history stay, the gap of some ms is told in a
 * message, as is a refusal (then all goes on as before). Not while it is recorded.
 */
void sampler_set_call_graph(struct sampler *s, enum call_graph mode);
/* Dumps of this size, rounded down to 8, and CALL_GRAPH_DWARF; 0: CALL_GRAPH_OFF. */
void sampler_set_stack_size(struct sampler *s, uint32_t size);
void sampler_set_ring_size(struct sampler *s, size_t size); /* rounded up to a power of two */
/* Sample another target. @spec is copied. TARGET_COMMAND: back to the command that was started. */
void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec);
/* The same target on these CPUs alone; none: on all that are online. */
void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr);
/*
 * One process alone, its threads and children, at four times the rate and with twice the dumps, as
 * far as the kernel allows; and back to what was sampled before. As the above.
 */
void sampler_focus(struct sampler *s, pid_t pid);
void sampler_unfocus(struct sampler *s);

/*
 * Copies up to @max states; returns how many there are. Starts the probing at the first call: that
 * has the fixed names, later ones have the PMUs' events and the tracepoints, too. @info lives as
 * long as the sampler.
 */
uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max);

/* The limits that the kernel has now: kernel.perf_event_max_sample_rate, read each tick. */
double sampler_max_hz(const struct sampler *s);

/* Replay only, instead of sampler_start(): every sample in time order. Blocks. 0 or what @fn
 * returned. */
int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e);

#endif

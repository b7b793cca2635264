/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of sampling: configure, start, control, stop, take profiles. All calls are from one
 * thread (the UI). None of them waits for a file or for the kernel's answer to a control: the
 * builder thread does, and the answer is in a later profile (message).
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <sys/types.h>

#include "sampler/config.h"
#include "sampler/event/event.h"
#include "sampler/event_states.h"
#include "sampler/profile/profile.h"
#include "sampler/profile/strip.h"
#include "sampler/recording.h"
#include "sampler/replay_sample.h"
#include "symbols/base/base.h"

struct sampler;

/*
 * Drop capabilities that proftop does not use, before any other thread starts; a command gets them
 * back. A replay keeps the ones for files and the kernel's symbols.
 */
void sampler_drop_caps(bool command, bool replay);
/*
 * Start and stop the processes that read debug information; before any thread, and at the end.
 * @code: code may be annotated.
 */
void sampler_cage_start(bool code);
void sampler_cage_stop(void);
/* Start the processes that read the memory of interpreters: before any thread, for live sampling.
 * sampler_cage_stop() stops them. */
void sampler_readers_start(void);
/*
 * Open events and rings. 0; -EACCES/-EPERM (nothing may be sampled: exit 3); -ESRCH (no such
 * target: exit 4); other -errno. With a sentence of three lines.
 */
int sampler_new(struct sampler **out, const struct sampler_config *config, struct err *e);
/* Start the threads and enable the events (a command is released). */
int sampler_start(struct sampler *s, struct err *e);
/*
 * Give up the capabilities that sampling alone needs, in the calling thread and in threads that it
 * starts later. After sampler_start().
 */
void sampler_drop_thread_caps(void);
/*
 * With config.record: end the session and complete the file; nothing but sampler_take() and
 * sampler_free() may follow. 0, or -errno with a message (disk full ...): the written part is kept.
 */
int sampler_record_end(struct sampler *s, struct sampler_recorded *out, struct err *e);
/*
 * With config.keep: end the session and write its last slices; as sampler_record_end(), which goes
 * before it if both are wanted.
 */
int sampler_keep_end(struct sampler *s, struct err *e);
/*
 * Stop and join all threads, close everything, end a command still running. Of a builder that hangs
 * for two seconds the session is left as it is until the end of this process.
 */
void sampler_free(struct sampler *s);

/* Return a file descriptor for poll(2), readable when there is a new profile. */
int sampler_fd(const struct sampler *s);
/* Take the newest profile, to be freed with profile_free(); NULL: none. */
struct profile *sampler_take(struct sampler *s);

/*
 * The past. sampler_set_strip(): post a heat strip now and with each profile; the query is copied.
 * sampler_show_past(): post a profile of a range of the past, and again when its names improve; 0
 * and 0: none. Times are of the clock of the strip.
 */
void sampler_set_strip(struct sampler *s, const struct strip_query *query);
void sampler_show_past(struct sampler *s, uint64_t begin_ns, uint64_t end_ns);
/* Add a rule, as of --trap; "": remove all. 0, or -EINVAL with a sentence. */
int sampler_trap(struct sampler *s, const char *rule, struct err *e);
/* Have the next profile's status list the rules. */
void sampler_list_traps(struct sampler *s);
/* Return a file descriptor for poll(2), readable when there is a strip or such a profile. */
int sampler_past_fd(const struct sampler *s);
/* Take them: profile_free(), free(); NULL: none. */
void sampler_take_past(struct sampler *s, struct profile **p, struct strip **strip);

/*
 * Collect a profile of the next @span_ns, beside the others: it is in sampler_take_collected() when
 * sampler_collected_fd() is readable. Live only, with config.history_ns of at least that span. One
 * at a time; callable from one other thread, as the next two.
 */
void sampler_collect(struct sampler *s, uint64_t span_ns);
/*
 * The thread with this CPU clock answers requests: the rate is not lowered for its time. Any
 * thread, once.
 */
void sampler_leave_out(struct sampler *s, clockid_t clock);
int sampler_collected_fd(const struct sampler *s);
struct profile *sampler_take_collected(struct sampler *s);

/* Controls: applied by the builder within a few ms, followed by a new profile. */
void sampler_set_rate(struct sampler *s, uint32_t event, double hz);
void sampler_set_enabled(struct sampler *s, bool on); /* all events (S) */
void sampler_set_events(struct sampler *s, const struct event *events, uint32_t nr);
void sampler_set_window(struct sampler *s, enum profile_window window);
/* Show frames of languages, of their interpreters, or both; also of samples already taken. */
void sampler_set_frames(struct sampler *s, enum profile_frames frames);
void sampler_set_tick(struct sampler *s, uint64_t tick_ns);
void sampler_reset(struct sampler *s); /* counts from zero */
/*
 * Fetch the debug file of a module (profile_module.id) in the background; a second call cancels it.
 * Messages of profiles report the result.
 */
void sampler_fetch(struct sampler *s, uint32_t module);
/* Add the instructions of this function (an id) to profiles; UINT32_MAX: of none. */
void sampler_set_annotate(struct sampler *s, uint32_t function);

/* Turn one event off and on again: its fds are kept open, it costs nothing while off. */
void sampler_set_event_enabled(struct sampler *s, uint32_t event, bool on);
/*
 * These open the events again: tables and history are kept, a message reports the gap of some ms or
 * a refusal (then nothing changes). Not while recording.
 */
void sampler_set_call_graph(struct sampler *s, enum call_graph mode);
/* Copy this much stack, rounded down to 8, and use CALL_GRAPH_DWARF; 0: CALL_GRAPH_OFF. */
/* @is_auto: @size or more, as needed. */
void sampler_set_stack_size(struct sampler *s, uint32_t size, bool is_auto);
void sampler_set_ring_size(struct sampler *s, size_t size); /* rounded up to a power of two */
/* Sample another target. @spec is copied. TARGET_COMMAND: back to the command that was started. */
void sampler_set_target(struct sampler *s, const struct sampler_target_spec *spec);
/* Sample the same target on these CPUs only; none: on all online CPUs. */
void sampler_set_cpus(struct sampler *s, const int *cpus, uint32_t nr);
/*
 * Sample one process, its threads and children, at four times the rate and with twice the stack
 * copies, as far as the kernel allows; or return to the former target.
 */
void sampler_focus(struct sampler *s, pid_t pid);
void sampler_unfocus(struct sampler *s);

/*
 * Copy up to @max states; returns how many there are. The first call starts to probe, and has the
 * fixed names; later ones also have the PMUs' events and the tracepoints. @info lives as long as
 * the sampler.
 */
uint32_t sampler_event_states(struct sampler *s, struct sampler_event_state *out, uint32_t max);

/* Return how much of a recording is read before its first profile; -1: not known, or no recording.
 */
int sampler_reading_permille(const struct sampler *s);
/* Return whether a recording is read, and each request answered: no other profile follows. */
bool sampler_is_settled(struct sampler *s);

/* Return kernel.perf_event_max_sample_rate, read each tick. */
double sampler_max_hz(const struct sampler *s);

/*
 * Replay only, instead of sampler_start(): call @fn for each sample in time order. Blocks. 0 or the
 * result of @fn.
 */
int sampler_each(struct sampler *s, sampler_sample_fn fn, void *ctx, struct err *e);
/* Get the samples that sampler_each() had to leave out; after it. */
void sampler_missing(const struct sampler *s, struct sampler_missing *out);

#endif

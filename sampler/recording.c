// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session that is recorded: the recorder's place in it.
 *
 * Runs on: set-up and end by the face, changes by the builder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <urcu-qsbr.h>

#include "sampler/session.h"
#include "symbols/object/image.h"
#include "symbols/kernel/recorded_kernel.h"

int recording_open(struct sampler *s, struct err *e)
{
	struct recorder_config config = { .path = s->config.record };
	int code;

	if (!s->config.record)
		return 0;
	if (!s->counters)
		return err_set(e, -EINVAL,
			       "a recording cannot be recorded again\n"
			       "  --record writes what is sampled live\n"
			       "  copy the file, or leave out --replay");
	config.nr_cpus = counters_nr_cpus(s->counters);
	code = recorder_open(&s->recorder, &config, e);
	if (code)
		return code;
	sideband_record(s->sideband, recorder_lane(s->recorder, config.nr_cpus));
	recording_note(s);
	return 0;
}

int recording_start(struct sampler *s, struct err *e)
{
	int code = s->recorder ? recorder_start(s->recorder, e) : 0;

	if (s->recorder && !code)
		tick_message(s, "recording to %s", s->config.record);
	return code;
}

void recording_note(struct sampler *s)
{
	if (s->recorder)
		counters_each_attr(s->counters, recorder_note, s->recorder);
}

void recording_add(struct sampler *s, const pid_t *tids, uint32_t nr, uint64_t since_ns)
{
	if (!s->recorder || !nr)
		return;
	recording_note(s);
	for (uint32_t i = 0; i < nr; i++)
		recorder_add_task(s->recorder, tids[i], since_ns);
}

void recording_check(struct sampler *s)
{
	int code = s->recorder ? recorder_error(s->recorder) : 0;

	if (!code || s->record_failed)
		return;
	s->record_failed = true;
	tick_message(s, "recording stopped: %s", strerror(-code));
}

/* Samples that the kernel lost, all events and CPUs; 0 where it does not count them. */
static uint64_t lost_in_all(struct sampler *s)
{
	struct counters_value v;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < counters_nr_cpus(s->counters); i++)
		for (uint32_t k = 0; k < s->config.nr_events; k++)
			if (!counters_read(s->counters, i, k, &v))
				lost += v.lost;
	return lost;
}

/* Who the sampled objects are: --replay and perf then know a file that was replaced. */
static void note_build_ids(struct sampler *s)
{
	uint8_t id[sizeof(((struct kernel_identity *)0)->build_id)];
	size_t size = kernel_build_id("/sys/kernel/notes", id, sizeof(id));

	rcu_register_thread();
	if (size)
		recorder_build_id(s->recorder, true, "[kernel.kallsyms]", id, (uint8_t)size);
	for (uint32_t i = OBJECT_ID_FIRST; i < objects_nr(s->objects); i++) {
		const struct object *object = objects_at(s->objects, i);
		/* Acquire: pairs with the release of a finished image in objects.c. */
		const struct image *image =
			atomic_load_explicit(&object->image, memory_order_acquire);
		struct object_sighting seen;

		if (!image || !image->build_id_size)
			continue;
		objects_sighting(s->objects, object, &seen);
		if (seen.path && *seen.path)
			recorder_build_id(s->recorder, false, seen.path, image->build_id,
					  image->build_id_size);
		free(seen.path);
	}
	rcu_unregister_thread();
}

int sampler_record_end(struct sampler *s, struct sampler_recorded *out, struct err *e)
{
	struct recorder_stats stats;
	int code;

	*out = (struct sampler_recorded){ 0 };
	if (!s->recorder)
		return 0;
	counters_enable(s->counters, false);
	session_stop(s);
	note_build_ids(s);
	code = recorder_finish(s->recorder, lost_in_all(s), &stats);
	*out = (struct sampler_recorded){ stats.nr_samples, stats.nr_dropped, stats.bytes };
	return !code ? 0
		     : err_set(e, code,
			       "the recording %s is not complete: %s\n"
			       "  %llu bytes of records were written before that\n"
			       "  proftop --replay reads what is there",
			       s->config.record, strerror(-code), (unsigned long long)stats.bytes);
}

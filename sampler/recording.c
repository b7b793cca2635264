// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder's place in a session.
 *
 * Runs on: set-up and end by the owner, changes by the builder.
 */
#include "sampler/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <urcu-qsbr.h>

#include "sampler/event/event.h"
#include "sampler/hot/hot.h"
#include "sampler/record/record.h"
#include "symbols/base/base.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/kernel/kernel.h"

int recording_open(struct recording *r, const char *path, size_t memory, struct counters *counters,
		   struct sideband *sideband, const struct script_functions *codes, struct err *e)
{
	struct recorder_config config = { .path = path, .memory = memory, .codes = codes };
	int code;

	if (!path && !memory)
		return 0;
	r->path = path ? xstrndup(path, strlen(path)) : NULL;
	r->memory = memory;
	if (!counters)
		return err_set(e, -EINVAL,
			       "a recording cannot be recorded again\n"
			       "  --record writes live samples\n"
			       "  copy the file, or leave out --replay");
	config.nr_cpus = counters_nr_cpus(counters);
	code = recorder_open(&r->recorder, &config, e);
	if (code)
		return code;
	recording_move(r, counters, sideband);
	return 0;
}

int recording_start(struct recording *r, struct err *e)
{
	return r->recorder ? recorder_start(r->recorder, e) : 0;
}

void recording_note(struct recording *r, struct counters *counters)
{
	if (r->recorder)
		counters_each_attr(counters, recorder_note, r->recorder);
}

const char *recording_unmapped(uint64_t nr, char buf[static 80])
{
	*buf = '\0';
	if (nr)
		snprintf(buf, 80, "; %" PRIu64 " process%s no symbols: reading mappings hangs", nr,
			 nr == 1 ? " has" : "es have");
	return buf;
}

void recording_hold(struct recording *r)
{
	if (r->recorder)
		recorder_hold(r->recorder);
}

void recording_release(struct recording *r, struct counters *counters)
{
	if (!r->recorder)
		return;
	if (recorder_is_stream(r->recorder))
		recording_note(r, counters);
	recorder_release(r->recorder);
}

void recording_add(struct recording *r, struct counters *counters, const pid_t *tids, uint32_t nr,
		   uint64_t since_ns)
{
	assert(tids || !nr);
	if (!r->recorder || !nr)
		return;
	recording_note(r, counters);
	/* Mappings may hang for a moment. */
	rcu_thread_offline();
	for (uint32_t i = 0; i < nr; i++)
		recorder_add_task(r->recorder, tids[i], since_ns);
	rcu_thread_online();
}

int recording_check(struct recording *r)
{
	int code = r->recorder ? recorder_error(r->recorder) : 0;

	if (!code || r->failed)
		return 0;
	r->failed = true;
	return code;
}

/* Count the samples that the kernel lost; 0 if it does not count them. */
static uint64_t lost_in_all(struct counters *counters, uint32_t nr_events)
{
	struct counters_value v;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < counters_nr_cpus(counters); i++)
		for (uint32_t k = 0; k < nr_events; k++)
			if (!counters_read(counters, i, k, &v))
				lost += v.lost;
	return lost;
}

static void identify_kernel(struct recording *r)
{
	uint8_t id[sizeof(((struct kernel_identity *)0)->build_id)];
	size_t size = recorded_kernel_build_id("/sys/kernel/notes", id, sizeof(id));

	if (size && !r->kernel_identified)
		recorder_build_id(r->recorder, true, "[kernel.kallsyms]", id, (uint8_t)size);
	r->kernel_identified = true;
}

/* Write the build-ids of sampled objects that are new: readers then detect a replaced file. */
static void identify(struct recording *r, struct objects *objects)
{
	uint32_t nr = objects_nr(objects);

	identify_kernel(r);
	if (!array_reserve(&r->identified, &r->max_identified, nr))
		return;
	while (r->nr_identified < nr)
		r->identified[r->nr_identified++] = false;
	for (uint32_t i = OBJECT_ID_FIRST; i < nr; i++) {
		const struct object *object = objects_at(objects, i);
		/* Acquire: pairs with the release of a finished image in image_cache.c. */
		const struct image *image =
			atomic_load_explicit(&object->image, memory_order_acquire);
		struct object_sighting seen;

		if (r->identified[i] || !image || !image->build_id_size)
			continue;
		objects_sighting(objects, object, &seen);
		if (seen.path && *seen.path)
			recorder_build_id(r->recorder, false, seen.path, image->build_id,
					  image->build_id_size);
		r->identified[i] = true;
		free(seen.path);
	}
}

void recording_identify(struct recording *r, struct objects *objects)
{
	if (r->recorder && recorder_is_stream(r->recorder))
		identify(r, objects);
}

/* Complete the file: its build-ids are there. */
static int complete(struct recording *r, struct counters *counters, uint32_t nr_events,
		    struct sampler_recorded *out, struct err *e)
{
	struct recorder_stats stats;
	int code;

	/* A reader may have opened events since the last tick. */
	recording_note(r, counters);
	code = recorder_finish(r->recorder, lost_in_all(counters, nr_events), &stats);
	*out = (struct sampler_recorded){ .path = r->path,
					  .counted = !r->memory,
					  .nr_samples = stats.nr_samples,
					  .nr_dropped = stats.nr_dropped,
					  .nr_unmapped = stats.nr_unmapped,
					  .bytes = stats.bytes };
	return !code ? 0
		     : err_set(e, code,
			       "the recording %s is not complete: %s\n"
			       "  %llu bytes of records were written before that\n"
			       "  proftop --replay reads the written part",
			       r->path, strerror(-code), (unsigned long long)stats.bytes);
}

int recording_finish(struct recording *r, struct counters *counters, uint32_t nr_events,
		     struct objects *objects, struct sampler_recorded *out, struct err *e)
{
	assert(r->recorder);
	rcu_register_thread();
	identify(r, objects);
	rcu_unregister_thread();
	return complete(r, counters, nr_events, out, e);
}

int recording_end(struct recording *r, struct counters *counters, uint32_t nr_events,
		  struct objects *objects, struct sampler_recorded *out, struct err *e)
{
	int code;

	assert(r->recorder);
	identify(r, objects);
	rcu_thread_offline();
	code = complete(r, counters, nr_events, out, e);
	rcu_thread_online();
	return code;
}

void recording_move(struct recording *r, struct counters *counters, struct sideband *sideband)
{
	if (!r->recorder)
		return;
	sideband_record(sideband, recorder_lane(r->recorder, counters_nr_cpus(counters)));
	recording_note(r, counters);
}

void recording_close(struct recording *r)
{
	recorder_close(r->recorder);
	free(r->identified);
	free(r->path);
	*r = (struct recording){ .recorder = NULL };
}

/* Write the build-ids to the next file. */
static void forget_identified(struct recording *r)
{
	r->nr_identified = 0;
	r->kernel_identified = false;
}

int recording_also(struct recording *r, const char *path, struct objects *objects)
{
	int code;

	if (!path)
		identify(r, objects);
	code = recorder_also(r->recorder, path);
	if (!code && path) {
		forget_identified(r);
		r->path = xstrndup(path, strlen(path));
	}
	return code;
}

bool recording_also_ended(struct recording *r, char *text, size_t size)
{
	struct recorder_saved saved;
	struct err e;

	assert(text && size);
	if (!r->memory || !recorder_also_ended(r->recorder, &saved, &e))
		return false;
	if (e.text[0])
		snprintf(text, size, "%s", e.text);
	else
		snprintf(text, size, "%s: %.1f MiB", r->path, (double)saved.bytes / (1 << 20));
	free(r->path);
	r->path = NULL;
	return true;
}

uint64_t recording_bytes(const struct recording *r)
{
	return r->path ? recorder_bytes(r->recorder) : 0;
}

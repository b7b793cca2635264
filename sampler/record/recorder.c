// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lanes from the sampler threads; their writer is recorder_writer.c.
 *
 * Threads: producers (one a lane), the builder. The file is written under a lock that no producer
 * takes.
 */
#include "sampler/record/record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/file/blackbox.h"
#include "sampler/file/recorder_private.h"
#include "symbols/base/array.h"
#include "symbols/base/thread.h"
#include "symbols/base/wake.h"

#define LANE_SIZE     ((size_t)8 << 20)
#define LANE_SIZE_MIN ((size_t)1 << 20)
#define LANES_SIZE    ((size_t)256 << 20)
/* Of a KSYMBOL record with a name of 512 bytes. */
#define SHORT_WORDS 80
/* Bytes of the builder's records that wait for a slow disk. */
#define QUEUED_MAX (16U << 20)
/* Not more often: tasks that are added bring records that are a little older. */
#define ROUND_EVERY_NS 2000000000ULL
/* Mappings that take longer hang. */
#define MAPS_HANG_NS 500000000ULL
/* Of a stream: a live reader shows a round when the next one ends. */
#define STREAM_ROUND_NS 250000000ULL

static size_t lane_size(const struct recorder_config *config)
{
	size_t size = LANE_SIZE;

	if (config->lane_size)
		return config->lane_size;
	while (size > LANE_SIZE_MIN && size * config->nr_cpus > LANES_SIZE)
		size /= 2;
	return size;
}

int recorder_open(struct recorder **out, const struct recorder_config *config, struct err *e)
{
	struct recorder *r = xcalloc(1, sizeof(*r));
	pthread_mutexattr_t recursive;
	int code = 0;

	pthread_mutex_init(&r->file_lock, NULL);
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&r->save_lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	sem_init(&r->ready, 0, 0);
	r->root = config->root ? config->root : "";
	r->codes = config->codes;
	r->every_ns = config->round_ns ? config->round_ns : ROUND_EVERY_NS;
	r->stop_fd = wake_new();
	r->reads = slow_reads_new(synth_read_file, MAPS_HANG_NS);
	r->lanes = aligned_alloc(CACHELINE, (config->nr_cpus + 1) * sizeof(*r->lanes));
	if (r->stop_fd < 0 || !r->reads || !r->lanes)
		code = err_set(e, -ENOMEM,
			       "cannot record: no memory or no file descriptor is left");
	while (!code && r->nr_lanes <= config->nr_cpus) {
		struct recorder_lane *lane = &r->lanes[r->nr_lanes];

		memset(lane, 0, sizeof(*lane));
		code = spool_init(&lane->spool, lane_size(config));
		if (code)
			err_set(e, code, "cannot record: no memory for buffers: %s",
				strerror(-code));
		lane->side = r->nr_lanes == config->nr_cpus;
		r->nr_lanes += !code;
	}
	if (!code && config->memory)
		code = blackbox_new(&r->blackbox, config->memory);
	else if (!code)
		code = perfdata_create(&r->file, config->path, e);
	r->stream = !code && r->file && perfdata_is_stream(r->file);
	if (r->stream && !config->round_ns)
		r->every_ns = STREAM_ROUND_NS;
	if (code) {
		recorder_close(r);
		return code;
	}
	*out = r;
	return 0;
}

void recorder_note(void *recorder, const char *name, const struct perf_event_attr *attr,
		   const uint64_t *ids, size_t nr_ids)
{
	struct recorder *r = recorder;

	pthread_mutex_lock(&r->save_lock);
	perfdata_attrs_add(&r->attrs, name, attr, ids, nr_ids);
	r->noted = true;
	pthread_mutex_unlock(&r->save_lock);
}

void recorder_hold(struct recorder *r)
{
	if (!r->stream)
		return;
	pthread_mutex_lock(&r->save_lock);
}

void recorder_release(struct recorder *r)
{
	if (r->stream)
		pthread_mutex_unlock(&r->save_lock);
}

struct recorder_lane *recorder_lane(struct recorder *r, uint32_t index)
{
	return &r->lanes[index];
}

/* Count a record that did not fit. */
static void refuse(struct recorder_lane *lane, const struct record *decoded)
{
	struct lost_record *lost = &lane->lost;

	if (decoded->type == PERF_RECORD_LOST) {
		lost->lost += decoded->lost;
	} else if (decoded->type == PERF_RECORD_SAMPLE || lane->side) {
		lost->lost++;
		lane->nr_dropped++;
	}
	lost->id = lost->trailer.id = decoded->id;
	lost->trailer.time_ns = decoded->time_ns;
	lost->trailer.cpu = decoded->cpu;
	if (decoded->type == PERF_RECORD_SAMPLE) {
		lost->trailer.pid = decoded->sample.pid;
		lost->trailer.tid = decoded->sample.tid;
	}
	lost->h = (struct perf_event_header){ PERF_RECORD_LOST, 0, sizeof(*lost) };
}

/* A copy of a record that is shorter than its header says. */
struct short_record {
	struct perf_event_header h;
	uint64_t words[SHORT_WORDS];
};

/* Return @h with its true size, in @copy if the kernel's is another one. */
static const struct perf_event_header *with_size(const struct perf_event_header *h, uint16_t size,
						 struct short_record *copy)
{
	if (size == h->size || size < sizeof(*h) || size > sizeof(*copy))
		return h;
	memcpy(copy, h, size);
	copy->h.size = size;
	return &copy->h;
}

void recorder_put(struct recorder_lane *lane, const struct perf_event_header *h,
		  const struct record *decoded)
{
	size_t first = lane->lost.lost ? sizeof(lane->lost) : 0;
	struct short_record copy;

	if (decoded->type == PERF_RECORD_LOST)
		lane->nr_kernel_lost += decoded->lost;
	/* As the kernel does: recorded when records fit again, for rounds have ended since. */
	lane->lost.trailer.time_ns = decoded->time_ns;
	h = with_size(h, decoded->size, &copy);
	if (!spool_put(&lane->spool, &lane->lost, first, h, h->size)) {
		refuse(lane, decoded);
		return;
	}
	lane->lost.lost = 0;
	lane->nr_samples += decoded->type == PERF_RECORD_SAMPLE;
}

void recorder_put_bytes(struct recorder_lane *lane, const void *record, size_t size)
{
	spool_put(&lane->spool, NULL, 0, record, size);
}

void recorder_drained(struct recorder_lane *lane, uint64_t now_ns)
{
	atomic_store_explicit(&lane->drained_ns, now_ns, memory_order_release);
}

bool recorder_is_stream(const struct recorder *r)
{
	return r->stream;
}

void recorder_build_id(struct recorder *r, bool kernel, const char *name, const uint8_t *id,
		       uint8_t id_size)
{
	pthread_mutex_t *lock = r->stream ? &r->save_lock : &r->file_lock;

	if (!r->file)
		return;
	/* Of a stream they are queued: its reader may stall the writer, never the builder. */
	pthread_mutex_lock(lock);
	perfdata_put_build_id(r->file, kernel, name, id, id_size);
	if (!kernel)
		atomic_store_explicit(&r->identified, true, memory_order_relaxed);
	pthread_mutex_unlock(lock);
}

/* Queue a record for the file. Under the lock. */
static void queue_for_file(struct recorder *r, const void *record, size_t size)
{
	if (r->queued_size + size > QUEUED_MAX ||
	    !array_reserve(&r->queued, &r->queued_room, r->queued_size + size)) {
		r->nr_unqueued++;
		return;
	}
	memcpy(r->queued + r->queued_size, record, size);
	r->queued_size += (uint32_t)size;
}

/* Queue a record on the builder, which does not wait for a slow disk or reader. */
static void queue_record(void *ctx, const void *record, size_t size)
{
	struct recorder *r = ctx;

	pthread_mutex_lock(&r->save_lock);
	if (r->stream)
		perfdata_queue(r->file, record, size);
	else
		queue_for_file(r, record, size);
	pthread_mutex_unlock(&r->save_lock);
}

void recorder_add_task(struct recorder *r, pid_t tid, uint64_t time_ns)
{
	const struct synth s = { r->root, time_ns, queue_record, r, r->reads };

	/* The black box reads /proc when it is written. */
	if (!r->blackbox)
		synth_task(&s, tid);
}

int recorder_save(struct recorder *r, char *path, uint64_t when_ns)
{
	int code = 0;

	pthread_mutex_lock(&r->save_lock);
	if (r->save_path || !r->blackbox) {
		code = -EBUSY;
	} else {
		r->save_path = path;
		r->save_ns = when_ns;
	}
	pthread_mutex_unlock(&r->save_lock);
	return code;
}

bool recorder_saved(struct recorder *r, struct recorder_saved *out, struct err *e)
{
	bool saved;

	pthread_mutex_lock(&r->save_lock);
	saved = r->saved;
	if (saved) {
		*out = (struct recorder_saved){ r->saved_bytes, r->saved_unmapped,
						r->saved_without };
		*e = r->saved_err;
		free(r->save_path);
		r->save_path = NULL;
		r->saved = false;
	}
	pthread_mutex_unlock(&r->save_lock);
	return saved;
}

int recorder_start(struct recorder *r, struct err *e)
{
	int code = thread_start(&r->writer, 0,
				r->blackbox ? recorder_writer_keep : recorder_writer_main, r);

	if (code)
		return err_set(e, code, "cannot start the recorder's thread: %s", strerror(-code));
	r->runs = true;
	while (sem_wait(&r->ready) && errno == EINTR)
		;
	code = recorder_error(r);
	/* The reader of a pipe that has exited ends the session. */
	return !code || code == -EPIPE
		       ? 0
		       : err_set(e, code, "cannot write the recording: %s", strerror(-code));
}

int recorder_error(const struct recorder *r)
{
	return atomic_load_explicit(&r->error, memory_order_relaxed);
}

static void stop_writer(struct recorder *r)
{
	if (!r->runs)
		return;
	if (r->file)
		perfdata_stop(r->file);
	wake_send(r->stop_fd);
	pthread_join(r->writer, NULL);
	r->runs = false;
}

int recorder_finish(struct recorder *r, uint64_t lost, struct recorder_stats *stats)
{
	r->lost = lost;
	stop_writer(r);
	*stats = (struct recorder_stats){ .bytes = r->file ? perfdata_written(r->file) : 0 };
	for (uint32_t i = 0; i < r->nr_lanes; i++) {
		stats->nr_samples += r->lanes[i].nr_samples;
		if (!r->lanes[i].side)
			stats->nr_kernel_lost += r->lanes[i].nr_kernel_lost;
		stats->nr_dropped += r->lanes[i].nr_dropped;
	}
	stats->nr_dropped += r->nr_unqueued;
	stats->nr_unmapped = slow_reads_left_out(r->reads);
	return recorder_error(r);
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	stop_writer(r);
	for (uint32_t i = 0; i < r->nr_lanes; i++)
		spool_fini(&r->lanes[i].spool);
	free(r->lanes);
	perfdata_attrs_fini(&r->attrs);
	perfdata_writer_close(r->file);
	blackbox_free(r->blackbox);
	slow_reads_free(r->reads);
	free(r->queued);
	free(r->save_path);
	pthread_mutex_destroy(&r->file_lock);
	pthread_mutex_destroy(&r->save_lock);
	sem_destroy(&r->ready);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	free(r);
}

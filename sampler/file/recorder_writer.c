// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The writer of a recording: moves the records of all lanes to the file, the stream or the black
 * box. Signals are blocked in its thread: a file-size limit is an error there, not a SIGXFSZ.
 */
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "sampler/file/blackbox.h"
#include "sampler/file/lang_record.h"
#include "sampler/file/perfdata_format.h"
#include "sampler/file/recorder_private.h"
#include "symbols/base/wake.h"

/* How often the writer looks: a lane of 8 MiB takes 400 MB/s then. */
#define WRITE_EVERY_MS 20
/* The first one waits for build-ids, so that its mappings have them; not longer. */
#define STREAM_HOLD_NS 1500000000ULL

struct lost_samples_record {
	struct perf_event_header h;
	uint64_t lost;
	struct synth_id trailer;
};

/* Under the lock. */
static void append(struct recorder *r, const struct iovec *pieces, int nr)
{
	int code = perfdata_append(r->file, pieces, nr);

	if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
}

void recorder_writer_append(void *ctx, const void *record, size_t size)
{
	const struct iovec piece = { (void *)(uintptr_t)record, size };
	struct recorder *r = ctx;

	/* The black box reads /proc when it is written. */
	if (r->blackbox)
		return;
	pthread_mutex_lock(&r->file_lock);
	append(r, &piece, 1);
	pthread_mutex_unlock(&r->file_lock);
}

/* Copy the events; under the lock. */
static void copy_attrs(const struct recorder *r, struct perfdata_attrs *out)
{
	*out = (struct perfdata_attrs){ 0 };
	for (uint32_t i = 0; i < r->attrs.nr; i++) {
		const struct perfdata_attr *a = &r->attrs.events[i];

		perfdata_attrs_add(out, a->name, &a->attr, a->ids, a->nr_ids);
	}
}

/* Write the builder's records to the file. */
static void write_queued(struct recorder *r)
{
	uint8_t *records;
	uint32_t size;

	pthread_mutex_lock(&r->save_lock);
	records = r->queued;
	size = r->queued_size;
	r->queued = NULL;
	r->queued_size = r->queued_room = 0;
	pthread_mutex_unlock(&r->save_lock);
	if (size)
		recorder_writer_append(r, records, size);
	free(records);
}

/*
 * Find the records of a lane. Write the builder's records first, and in a stream noted events.
 */
static int peek(struct recorder *r, struct recorder_lane *lane, struct iovec pieces[2])
{
	struct perfdata_attrs attrs = { 0 };
	struct perfdata_queued queued;
	int nr;

	if (!r->stream) {
		write_queued(r);
		return spool_peek(&lane->spool, pieces);
	}
	pthread_mutex_lock(&r->save_lock);
	nr = spool_peek(&lane->spool, pieces);
	if (r->noted)
		copy_attrs(r, &attrs);
	r->noted = false;
	perfdata_take_queue(r->file, &queued);
	pthread_mutex_unlock(&r->save_lock);
	perfdata_add_attrs(r->file, &attrs);
	perfdata_write_queue(r->file, &queued);
	perfdata_attrs_fini(&attrs);
	return nr;
}

/* Write the records of a lane to the file; after a failure discard them. */
static void write_lane(struct recorder *r, struct recorder_lane *lane)
{
	struct iovec pieces[2];
	int nr = peek(r, lane, pieces);

	if (!nr)
		return;
	if (r->blackbox) {
		if (blackbox_add(r->blackbox, lane->side, pieces, nr))
			for (int i = 0; i < nr; i++)
				lane->unsaved += pieces[i].iov_len;
		spool_drop(&lane->spool, pieces, nr);
		return;
	}
	pthread_mutex_lock(&r->file_lock);
	append(r, pieces, nr);
	pthread_mutex_unlock(&r->file_lock);
	spool_drop(&lane->spool, pieces, nr);
}

/* Everything older than this has been put into some lane. */
static uint64_t all_drained(const struct recorder *r)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < r->nr_lanes; i++)
		/* Acquire: the records put before; pairs with the release in recorder_drained(). */
		least = MIN(least,
			    atomic_load_explicit(&r->lanes[i].drained_ns, memory_order_acquire));
	return least;
}

/* Write the functions of scripts that are new. */
static void write_functions(struct recorder *r)
{
	lang_record_each_function(r->codes, &r->functions, recorder_writer_append, r);
}

/* Return whether it is too early for the first round of a stream. */
static bool is_held(const struct recorder *r, uint64_t now_ns)
{
	return r->stream && now_ns < r->start_ns + STREAM_HOLD_NS &&
	       !atomic_load_explicit(&r->identified, memory_order_relaxed);
}

/*
 * Write the records of all lanes. A FINISHED_ROUND marks that no later record is older than the
 * round before: readers need not keep the whole file to sort it.
 */
static void write_lanes(struct recorder *r)
{
	const struct perf_event_header round = { .type = PERFDATA_FINISHED_ROUND,
						 .size = sizeof(round) };
	uint64_t drained_ns = all_drained(r), now_ns;

	for (uint32_t i = 0; i < r->nr_lanes; i++)
		write_lane(r, &r->lanes[i]);
	write_functions(r);
	now_ns = time_now_ns();
	if (drained_ns < r->round_ns || now_ns < r->round_ns + r->every_ns || is_held(r, now_ns))
		return;
	recorder_writer_append(r, &round, sizeof(round));
	r->round_ns = now_ns;
}

/* The refusals that no record followed; then the sum of lost samples. */
static void write_lost(struct recorder *r)
{
	struct lost_samples_record sum = {
		.h = { PERF_RECORD_LOST_SAMPLES, 0, sizeof(sum) },
		.trailer = { .time_ns = time_now_ns() },
	};
	uint64_t told = 0, dropped = 0;

	for (uint32_t i = 0; i < r->nr_lanes; i++) {
		const struct recorder_lane *lane = &r->lanes[i];

		if (lane->lost.lost)
			recorder_writer_append(r, &lane->lost, sizeof(lane->lost));
		if (lane->side)
			continue;
		told += lane->nr_kernel_lost;
		dropped += lane->nr_dropped;
	}
	sum.lost = MAX(r->lost, told) + dropped;
	if (!sum.lost)
		return;
	if (r->attrs.nr && r->attrs.events[0].nr_ids)
		sum.trailer.id = r->attrs.events[0].ids[0];
	recorder_writer_append(r, &sum, sizeof(sum));
}

void *recorder_writer_main(void *arg)
{
	struct recorder *r = arg;
	const struct synth s = { r->root, 0, recorder_writer_append, r, r->reads };
	struct pollfd stop = { .fd = r->stop_fd, .events = POLLIN };
	int code = perfdata_begin(r->file, &r->attrs);
	prctl(PR_SET_NAME, "record");
	if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
	synth_kernel(&s);
	synth_processes(&s);
	sem_post(&r->ready);
	r->start_ns = r->round_ns = time_now_ns();
	do
		write_lanes(r);
	while (poll(&stop, 1, WRITE_EVERY_MS) <= 0);
	/* The records of the producers are visible from here on. */
	wake_clear(r->stop_fd);
	for (uint32_t i = 0; i < r->nr_lanes; i++)
		write_lane(r, &r->lanes[i]);
	write_functions(r);
	write_lost(r);
	code = perfdata_finish(r->file, &r->attrs);
	if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
	return NULL;
}

/* Return the bytes of records that are missing from a file. */
static uint64_t take_unsaved(struct recorder *r)
{
	uint64_t unsaved = 0;

	for (uint32_t i = 0; i < r->nr_lanes; i++) {
		unsaved += r->lanes[i].unsaved;
		r->lanes[i].unsaved = 0;
	}
	return unsaved;
}

/* Write a file of the black box that is due. */
static void save_due(struct recorder *r, bool now)
{
	struct perfdata_attrs attrs;
	struct err e = { "" };
	uint64_t bytes = 0, left_out = slow_reads_left_out(r->reads);
	char *path = NULL;
	int code;

	pthread_mutex_lock(&r->save_lock);
	if (r->save_path && !r->saved && (now || time_now_ns() >= r->save_ns))
		path = r->save_path;
	pthread_mutex_unlock(&r->save_lock);
	if (!path)
		return;
	pthread_mutex_lock(&r->save_lock);
	copy_attrs(r, &attrs);
	pthread_mutex_unlock(&r->save_lock);
	code = blackbox_write(r->blackbox, path, r->root, r->reads, r->codes, &attrs, &bytes, &e);
	perfdata_attrs_fini(&attrs);
	pthread_mutex_lock(&r->save_lock);
	r->saved_err = e;
	r->saved_bytes = code ? code : (int64_t)bytes;
	r->saved_unmapped = slow_reads_left_out(r->reads) - left_out;
	r->saved_without = take_unsaved(r);
	r->saved = true;
	pthread_mutex_unlock(&r->save_lock);
}

void *recorder_writer_keep(void *arg)
{
	struct recorder *r = arg;
	struct pollfd stop = { .fd = r->stop_fd, .events = POLLIN };
	bool end = false;

	prctl(PR_SET_NAME, "record");
	sem_post(&r->ready);
	while (!end) {
		end = poll(&stop, 1, WRITE_EVERY_MS) > 0;
		for (uint32_t i = 0; i < r->nr_lanes; i++)
			write_lane(r, &r->lanes[i]);
		save_due(r, end);
	}
	return NULL;
}

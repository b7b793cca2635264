// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lanes from the sampler threads, one writer to the file.
 *
 * Threads: producers (one a lane), the writer, the builder. The file is
 * written under a lock that no producer takes. Signals are blocked in the
 * writer: a file-size limit is an error there, not a SIGXFSZ.
 */
#include "sampler/file/recorder.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sampler/file/lang_record.h"
#include "sampler/file/perfdata_format.h"
#include "sampler/file/perfdata_write.h"
#include "sampler/file/blackbox.h"
#include "sampler/file/spool.h"
#include "sampler/file/synth.h"
#include "symbols/base/thread.h"
#include "symbols/lang/codes.h"
#include "symbols/base/wake.h"

#define LANE_SIZE     ((size_t)8 << 20)
#define LANE_SIZE_MIN ((size_t)1 << 20)
#define LANES_SIZE    ((size_t)256 << 20)
/* Of a KSYMBOL record with a name of 512 bytes. */
#define SHORT_WORDS 80
/* How often the writer looks: a lane of 8 MiB takes 400 MB/s then. */
#define WRITE_EVERY_MS 20
/* Not more often: tasks that are added bring records that are a little older. */
#define ROUND_EVERY_NS 2000000000ULL
/* Of a stream: a live reader shows a round when the next one ends. */
#define STREAM_ROUND_NS 250000000ULL
/* The first one waits for build-ids, so that its mappings have them; not longer. */
#define STREAM_HOLD_NS 1500000000ULL

struct lost_record {
	struct perf_event_header h;
	uint64_t id, lost;
	struct synth_id trailer;
};

struct lost_samples_record {
	struct perf_event_header h;
	uint64_t lost;
	struct synth_id trailer;
};

/* The producer's, but for the spool's tail; read by others when it is gone. */
struct recorder_lane {
	struct spool spool;
	struct lost_record lost; /* lost.lost: refused since the last record that went in */
	uint64_t nr_samples, nr_kernel_lost, nr_dropped;
	uint64_t nr_unsaved;	     /* the writer's: blocks without memory */
	bool side;		     /* no samples here: each record counts */
	_Atomic uint64_t drained_ns; /* release: earlier records are in; acquire by the writer */
};

struct recorder {
	struct perfdata_writer *file;
	pthread_mutex_t file_lock;
	struct perfdata_attrs attrs; /* builder; the writer before it starts and after it ended */
	struct recorder_lane *lanes;
	uint32_t nr_lanes; /* CPUs; the last one is the side-band's */
	const char *root;
	uint64_t lost;	   /* set before the writer is stopped */
	uint64_t every_ns; /* the shortest round */
	uint64_t round_ns; /* the writer's: the last round ended then */
	const struct codes *codes;
	uint32_t nr_codes; /* the writer's: functions in the file */

	pthread_t writer;
	bool runs;
	int stop_fd;
	sem_t ready;	  /* posted once: existing processes are in the file */
	atomic_int error; /* relaxed: a flag for the builder */
	bool stream;
	atomic_bool identified; /* relaxed: a build-id is in the stream */
	uint64_t start_ns;	/* the writer's */

	struct blackbox *blackbox; /* instead of @file; the writer's */
	/* Recursive, for recorder_hold(). */
	pthread_mutex_t save_lock; /* of the members below, and of @attrs with a blackbox */
	bool noted;		   /* events of @attrs are not in the stream yet */
	char *save_path;	   /* NULL: none is wanted, or it is done */
	uint64_t save_ns;
	bool saved;
	int64_t saved_bytes;
	struct err saved_err;
};

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
	r->lanes = aligned_alloc(CACHELINE, (config->nr_cpus + 1) * sizeof(*r->lanes));
	if (r->stop_fd < 0 || !r->lanes)
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

/* Under the lock. */
static void append(struct recorder *r, const struct iovec *pieces, int nr)
{
	int code = perfdata_append(r->file, pieces, nr);

	if (code)
		atomic_store_explicit(&r->error, code, memory_order_relaxed);
}

static void append_record(void *ctx, const void *record, size_t size)
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

/* Queue a record for the stream, on the builder. */
static void queue_record(void *ctx, const void *record, size_t size)
{
	struct recorder *r = ctx;

	pthread_mutex_lock(&r->save_lock);
	perfdata_queue(r->file, record, size);
	pthread_mutex_unlock(&r->save_lock);
}

void recorder_add_task(struct recorder *r, pid_t tid, uint64_t time_ns)
{
	const struct synth s = { r->root, time_ns, r->stream ? queue_record : append_record, r };

	synth_task(&s, tid);
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

/*
 * Find the records of a lane. In a stream, write noted events and the builder's records first.
 */
static int peek(struct recorder *r, struct recorder_lane *lane, struct iovec pieces[2])
{
	struct perfdata_attrs attrs = { 0 };
	struct perfdata_queued queued;
	int nr;

	if (!r->stream)
		return spool_peek(&lane->spool, pieces);
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
		/* Without memory the oldest moments are missing from a file. */
		if (blackbox_add(r->blackbox, lane->side, pieces, nr))
			lane->nr_unsaved++;
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
	r->nr_codes = lang_record_each_function(r->codes, r->nr_codes, append_record, r);
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
	append_record(r, &round, sizeof(round));
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
			append_record(r, &lane->lost, sizeof(lane->lost));
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
	append_record(r, &sum, sizeof(sum));
}

static void *writer_main(void *arg)
{
	struct recorder *r = arg;
	const struct synth s = { r->root, 0, append_record, r };
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

/* Write a file of the black box that is due. */
static void save_due(struct recorder *r, bool now)
{
	struct perfdata_attrs attrs;
	struct err e = { "" };
	uint64_t bytes = 0;
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
	code = blackbox_write(r->blackbox, path, r->root, r->codes, &attrs, &bytes, &e);
	perfdata_attrs_fini(&attrs);
	pthread_mutex_lock(&r->save_lock);
	r->saved_err = e;
	r->saved_bytes = code ? code : (int64_t)bytes;
	r->saved = true;
	pthread_mutex_unlock(&r->save_lock);
}

/* The writer, if the records are kept in memory. */
static void *memory_main(void *arg)
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

bool recorder_saved(struct recorder *r, int64_t *bytes, struct err *e)
{
	bool saved;

	pthread_mutex_lock(&r->save_lock);
	saved = r->saved;
	if (saved) {
		*bytes = r->saved_bytes;
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
	int code = thread_start(&r->writer, 0, r->blackbox ? memory_main : writer_main, r);

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
	free(r->save_path);
	pthread_mutex_destroy(&r->file_lock);
	pthread_mutex_destroy(&r->save_lock);
	sem_destroy(&r->ready);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	free(r);
}

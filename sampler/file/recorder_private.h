/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The members of a recorder, for recorder.c (sampler threads and builder) and recorder_writer.c
 * (its thread) only.
 */
#ifndef SAMPLER_FILE_RECORDER_PRIVATE_H
#define SAMPLER_FILE_RECORDER_PRIVATE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "sampler/file/lang_record.h"
#include "sampler/file/perfdata_write.h"
#include "sampler/file/slow_reads.h"
#include "sampler/file/spool.h"
#include "sampler/file/synth.h"

struct lost_record {
	struct perf_event_header h;
	uint64_t id, lost;
	struct synth_id trailer;
};

/* The producer's, but for the spool's tail; read by others when it is gone. */
struct recorder_lane {
	struct spool spool;
	struct lost_record lost; /* lost.lost: refused since the last record that went in */
	uint64_t nr_samples, nr_kernel_lost, nr_dropped;
	uint64_t unsaved;	     /* the writer's: bytes without memory, since the last file */
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
	struct lang_record_cursor functions; /* the writer's: in the file */

	/* The writer's, until @ready; then the builder's, with a blackbox the writer's. */
	struct slow_reads *reads;

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
	uint8_t *queued;	   /* the builder's records, for a file */
	uint32_t queued_size, queued_room;
	uint64_t nr_unqueued; /* the builder's: too many for the queue */
	char *save_path;      /* NULL: none is wanted, or it is done */
	uint64_t save_ns;
	bool saved;
	int64_t saved_bytes;
	uint64_t saved_unmapped; /* processes */
	uint64_t saved_without;	 /* bytes that are missing */
	struct err saved_err;
};

/* The writer's thread: to a file or stream, or (@blackbox) to memory; @arg: the recorder. */
void *recorder_writer_main(void *arg);
void *recorder_writer_keep(void *arg);
/* Append records to the file, on the writer; @ctx: the recorder. Ignored with a black box. */
void recorder_writer_append(void *ctx, const void *record, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of sampler/record/, and by tests; no other room includes it. */
#ifndef SAMPLER_RECORD_INTERNAL_H
#define SAMPLER_RECORD_INTERNAL_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "sampler/count/count.h"
#include "sampler/event/event.h"
#include "sampler/perfdata/perfdata.h"
#include "sampler/record/record.h"
#include "symbols/base/base.h"

struct blackbox;
struct script_functions;
struct iovec;
struct perf_event_header;
struct perfdata_writer;
struct slow_reads;

/*
 * The newest raw records in memory, and a perf.data file of them. Side-band records have a quarter
 * of the memory for themselves, so that the mappings of processes that have ended are older than
 * the samples.
 *
 * Runs on: the writer of the recorder.
 */

/* @memory: bytes of all records. 0 or -ENOMEM. */
int blackbox_new(struct blackbox **out, size_t memory);
void blackbox_free(struct blackbox *s);
/* Add whole records; the oldest are dropped. 0, or -ENOMEM: these are dropped. */
int blackbox_add(struct blackbox *s, bool side_band, const struct iovec *pieces, int nr);
/*
 * Write a new file @path: the kernel and the running processes, from /proc below @root, their
 * mappings with @reads, functions of scripts (@codes: NULL: none), then all records. *bytes: its
 * size. 0 or -errno with a sentence; a part of the file is removed.
 */
int blackbox_write(const struct blackbox *s, const char *path, const char *root,
		   struct slow_reads *reads, const struct script_functions *codes,
		   const struct perfdata_attrs *attrs, uint64_t *bytes, struct err *e);

/*
 * Mappings of processes in /proc, read by helpers: an exec holds up each reader of the mappings of
 * its process for as long as a file system of any user does not respond.
 *
 * Threads: one owner at a time.
 */

/* Reads that hang in processes of one real user; then its other ones are left out. */
#define SLOW_READS_OF_USER 8U
/* A read that hung counts for SLOW_READS_REST * @hang_ns at least, also if it ends before. */
#define SLOW_READS_REST 40U

/* Read a file up to @max bytes: malloc'ed, its size in *@size; NULL: not there. */
typedef char *(*slow_reads_fn)(const char *path, size_t max, size_t *size);

/* @hang_ns: a read that takes longer hangs. NULL: out of memory. */
struct slow_reads *slow_reads_new(slow_reads_fn read, uint64_t hang_ns);
/*
 * Read the mappings of a process, of which @process is the folder: malloc'ed, their size in *@size.
 * NULL: not there, or left out: that hangs, or too many of its user or of all do.
 */
char *slow_reads_maps(struct slow_reads *r, const char *process, size_t *size);
/* Return how many were left out. */
uint64_t slow_reads_left_out(const struct slow_reads *r);
/* Reads that hang are left behind. NULL is allowed. */
void slow_reads_free(struct slow_reads *r);

/*
 * Bytes on their way from one thread to another: a ring for whole records,
 * one producer, one consumer, no lock. A record that does not fit is refused, and the producer
 * counts it.
 */

struct spool {
	uint8_t *data;
	uint64_t size;				/* a power of two */
	_Alignas(CACHELINE) atomic_ullong head; /* producer: release; consumer: acquire */
	uint64_t seen_tail;			/* producer's: tail as it last read it */
	_Alignas(CACHELINE) atomic_ullong tail; /* consumer: release; producer: acquire */
};

/* @size is a power of two; its pages are touched now, not by the producer later. 0 or -errno. */
int spool_init(struct spool *s, size_t size);
void spool_fini(struct spool *s);
/* Consumer: get the bytes in it, in up to two pieces; returns their number. */
int spool_peek(struct spool *s, struct iovec pieces[2]);
/* Consumer: these have been used. */
void spool_drop(struct spool *s, const struct iovec *pieces, int nr);

/*
 * Records of the existing state: the kernel's code, the names and mappings of running processes,
 * from /proc, as perf record puts them in front.
 *
 * Reads files, allocates: never on a sampler thread. A process controls the content of /proc/PID:
 * names are cut, padded and copied, no more.
 */

/* The id block of all our records (sample_id_all), in the order of perf_event_open(2). */
struct synth_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Takes one whole record. */
typedef void (*synth_fn)(void *ctx, const void *record, size_t size);

struct synth {
	const char *root; /* "": /proc; else a folder of a test */
	uint64_t time_ns; /* in the id block; 0: before everything, as perf has it */
	synth_fn fn;
	void *ctx;
	struct slow_reads *reads; /* of mappings, made with synth_read_file(); it counts the ones
				   * that hang, which are left out */
};

/* As slow_reads_fn. */
char *synth_read_file(const char *path, size_t max, size_t *size);

/*
 * The members of a recorder, for its thread, sampler threads and the builder.
 */

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

/* A file that is written beside the black box: who does the next step. */
enum also {
	ALSO_NONE,
	ALSO_BEGINS, /* the writer */
	ALSO_ON,     /* the builder, or the writer after a failure */
	ALSO_ENDS,   /* the writer */
	ALSO_ENDED,  /* the builder takes the result */
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
	const struct script_functions *codes;
	struct lang_record_cursor functions; /* the writer's: in the file */

	struct slow_reads *reads;      /* the writer's */
	struct slow_reads *task_reads; /* the builder's */

	pthread_t writer;
	bool runs;
	int stop_fd;
	sem_t ready;		/* posted once: existing processes are in the file */
	atomic_int error;	/* relaxed: a flag for the builder */
	_Atomic uint64_t bytes; /* relaxed: of records in the file */
	bool stream;
	atomic_bool identified; /* relaxed: a build-id is in the stream */
	uint64_t start_ns;	/* the writer's */

	struct blackbox *blackbox; /* the writer's; @file: also written, while it is wanted */
	/* Recursive, for recorder_hold(). */
	pthread_mutex_t save_lock; /* of the members below, and of @attrs with a blackbox */
	bool noted;		   /* events of @attrs are not in the stream yet */
	uint8_t *queued;	   /* the builder's records, for a file */
	uint32_t queued_size, queued_room;
	uint64_t nr_unqueued; /* the builder's: too many for the queue */
	enum also also;	      /* of the file beside the black box */
	char *also_path;
	int also_code; /* the first failure to write it, -errno; the writer's */
	struct err also_err;
	char *save_path; /* NULL: none is wanted, or it is done */
	uint64_t save_ns;
	bool saved;
	int64_t saved_bytes;
	uint64_t saved_unmapped; /* processes */
	uint64_t saved_without;	 /* bytes that are missing */
	struct err saved_err;
};

#endif

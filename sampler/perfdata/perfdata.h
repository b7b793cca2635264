/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A perf.data file as perf record writes it: events and records in time order.
 *
 * File mode (attribute and data sections, features) and pipe mode; compressed
 * records where libzstd was at hand. Of a file only the records' places are
 * kept; it is never mapped, and everything in it is hostile and bounds-checked.
 *
 * One thread.
 */
#ifndef SAMPLER_FILE_PERFDATA_H
#define SAMPLER_FILE_PERFDATA_H

#include <stdatomic.h>

#include "sampler/file/perfdata_event.h"
#include "sampler/ring/ring.h"
#include "sampler/file/perfdata_bytes.h"
#include "symbols/base/base.h"
#include "symbols/kernel/kernel.h"

struct perfdata;

/* 0 or -errno with a sentence: not a perf.data file, truncated, compressed without zstd … */
int perfdata_open(struct perfdata **out, const char *path, struct err *e);
/* The same, with a call of @step 10 times a second; see reading.h. */
int perfdata_open_step(struct perfdata **out, const char *path, sampler_reading_fn step,
		       struct err *e);
/*
 * The same of a pipe, as soon as its first records are there: perfdata_more() reads on. Of another
 * file, or a recording that cannot be read as it is written: as perfdata_open_step().
 */
int perfdata_open_stream(struct perfdata **out, const char *path, sampler_reading_fn step,
			 struct err *e);
/* End the reading of a pipe soon after another thread has set @stopped. */
void perfdata_stop_by(struct perfdata *pd, const atomic_bool *stopped);
/* Return a descriptor that is readable when a pipe has more; -1: all is read. */
int perfdata_stream_fd(const struct perfdata *pd);
/*
 * Read on: the records that perfdata_nr_records() has then are in order, none is before them.
 * @idle: do not read, the writer is slow: all records so far are there then. False: this was the
 * end.
 */
bool perfdata_more(struct perfdata *pd, bool idle);
/* Forget the records of a pipe that perfdata_nr_records() has. */
void perfdata_drop(struct perfdata *pd);
/* The same from bytes in memory, copied (tests, fuzzing). */
int perfdata_from_memory(struct perfdata **out, const void *bytes, size_t size, struct err *e);
void perfdata_close(struct perfdata *pd);

uint32_t perfdata_nr_events(const struct perfdata *pd);
const struct perfdata_event *perfdata_event(const struct perfdata *pd, uint32_t index);
/* Return the CPU of the recorded machine, as in uname(2) ("x86_64"); "": not in the file. */
const char *perfdata_machine(const struct perfdata *pd);
/* Return the name of the recorded machine, foreign bytes; "": not in the file. */
const char *perfdata_host(const struct perfdata *pd);
/* Return the time of the newest record so far. */
uint64_t perfdata_newest_ns(const struct perfdata *pd);
/* Return the kernel of the recorded machine, as far as it is in the file. */
const struct kernel_identity *perfdata_kernel(const struct perfdata *pd);
/* Return when the file was written, CLOCK_REALTIME; 0: not known, it is a pipe. */
uint64_t perfdata_date_ns(const struct perfdata *pd);
/* Return whether any sample was taken in the kernel. */
bool perfdata_has_kernel(const struct perfdata *pd);
/* Add the build-id of the mapped object, if the file has it. */
void perfdata_identify(struct perfdata *pd, struct record_mmap *m);
/* Return the number of ids of all events in the file. */
uint32_t perfdata_nr_ids(const struct perfdata *pd);
/* Index of the event with that id, or -1. Without ids in the file: 0. */
int perfdata_event_of(const struct perfdata *pd, uint64_t id);
/* Return the number of records, without mappings of data, in which nothing is looked up. */
uint64_t perfdata_nr_records(const struct perfdata *pd);
uint64_t perfdata_nr_bad(const struct perfdata *pd); /* bytes at the end that are not read */
/* Return one line on a file that is cut short, damaged, or not finished; "" if it is whole. */
const char *perfdata_note(const struct perfdata *pd);

/*
 * Record @index in time order (bytes, perhaps unaligned; *@size), with the
 * layout to decode it by; valid until the next call. NULL: the file has become
 * shorter, or cannot be read any more.
 */
const uint8_t *perfdata_record(struct perfdata *pd, uint64_t index, size_t *size,
			       const struct record_layout **layout);

/*
 * The same of a sample with less of its stack copy, as if less had been copied: the record without
 * the rest of the copy behind its first @begin bytes. *@is_part: it is such a one; others are
 * whole.
 */
const uint8_t *perfdata_record_part(struct perfdata *pd, uint64_t index, size_t begin, size_t *size,
				    const struct record_layout **layout, bool *is_part);

/* Time stamps of the first and the last sample, at most PERFDATA_TIME_MAX. */
void perfdata_span(const struct perfdata *pd, uint64_t *first_ns, uint64_t *last_ns);

#endif

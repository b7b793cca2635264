/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf.data files and streams, read and written.
 *
 * The caller owes: a file or pipe; records in buffers that live during a call.
 *
 * The room does: reads headers and places of records in the sandbox, checks its answers, gives
 * records in order of time; writes files that perf opens; says in words why a file is refused.
 *
 * Not for: the meaning of records (sampler/replay.c).
 */
#ifndef SAMPLER_PERFDATA_PERFDATA_H
#define SAMPLER_PERFDATA_PERFDATA_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/uio.h>

#include "sampler/event/event.h"
#include "sampler/ring/ring.h"
#include "symbols/base/base.h"
#include "symbols/sandbox/sandbox.h"
#include "unwind/unwind.h"

struct code_text;
struct iovec;
struct kernel_identity;
struct perf_event_attr;
struct perfdata;
struct perfdata_writer;
struct script_functions;

/*
 * Frames of languages in a recording: records of a type that perf skips.
 *
 * perf ignores HEADER_EVENT_TYPE, which no perf since 3.2 writes. Ours begin
 * with a magic number behind the header; all numbers are in the byte order of the machine:
 *
 *   FUNCTION  a function of a script, by its number; anywhere in the file. Of Java: code read
 *             of a JVM at that time (symbols/java/java.h)
 *   FRAMES    the frames of one sample, before it: native frames by index, and
 *             frames of the language by number and instruction; and the bytes of its stack
 *             that the kernel did not copy, as far as they were read
 *
 * Pure; hostile bytes.
 */

#define LANG_RECORD_MAX (UINT16_MAX & ~7u) /* the largest size that a header has room for */
/* A frame of the language in lang_frames.entries; else the index of a native frame. */
#define LANG_ENTRY (1ULL << 63)

static inline uint64_t lang_entry(uint32_t number, uint32_t instr)
{
	return LANG_ENTRY | (uint64_t)number << 32 | instr;
}

static inline uint32_t lang_entry_number(uint64_t entry)
{
	return (uint32_t)((entry & ~LANG_ENTRY) >> 32);
}

static inline uint32_t lang_entry_instr(uint64_t entry)
{
	return (uint32_t)entry;
}

/*
 * The frames of one sample, or why there are none; and the stack copy beside the kernel's that it
 * was unwound with.
 */
struct lang_frames {
	uint64_t time_ns;
	uint32_t pid, tid;
	uint8_t language;   /* enum lang_kind; LANG_NONE: the stack copy alone */
	uint8_t outcome;    /* enum lang_outcome */
	uint8_t none;	    /* enum lang_status */
	bool deep;	    /* there were more frames; native ones beyond them are left out */
	uint16_t nr_native; /* native frames of the user stack */
	uint16_t nr;
	struct unwind_interrupted other; /* bytes: borrowed */
	uint64_t entries[INTERLEAVE_FRAMES_MAX];
};

enum lang_outcome { LANG_OUTCOME_NONE, LANG_OUTCOME_CERTAIN, LANG_OUTCOME_GUESSED };

enum lang_record_kind { LANG_RECORD_NONE, LANG_RECORD_FUNCTION, LANG_RECORD_FRAMES };

/* Return the kind of a record, and the time of its sample (0: none). */
enum lang_record_kind lang_record_kind(const uint8_t *bytes, size_t size, uint64_t *time_ns);
/* A stack copy that does not fit is cut. */
size_t lang_record_put_frames(uint8_t *buf, const struct lang_frames *f);

/* The functions that a file has. All zero: none. */
struct lang_record_cursor {
	uint32_t nr;	 /* of scripts */
	uint64_t logged; /* of virtual machines: the last one of codes_log() */
};

/* Call @fn with a record of each further function of @codes (NULL: none). */
void lang_record_each_function(const struct script_functions *codes,
			       struct lang_record_cursor *cursor,
			       void (*fn)(void *ctx, const void *record, size_t size), void *ctx);
/* Read a record. 0 or -EINVAL. Texts of a function and bytes of a stack point into @bytes. */
int lang_record_function(const uint8_t *bytes, size_t size, uint32_t *number,
			 struct code_text *text);
int lang_record_frames(const uint8_t *bytes, size_t size, struct lang_frames *f);

/*
 * The events of a recording that is written, with the ids that its records carry.
 *
 * One thread at a time.
 */

/* An event of the file, with the ids that its records carry. */
struct perfdata_attr {
	char name[EVENT_NAME_MAX];
	struct perf_event_attr attr;
	uint64_t *ids; /* sorted */
	size_t nr_ids, room_ids;
};

/* All events of the file; their number does not fall. Zero-initialised is empty. */
struct perfdata_attrs {
	struct perfdata_attr *events;
	uint32_t nr;
};

/* Add the event and its ids if they are new. Events that differ only in their rate are one. */
void perfdata_attrs_add(struct perfdata_attrs *attrs, const char *name,
			const struct perf_event_attr *attr, const uint64_t *ids, size_t nr_ids);
void perfdata_attrs_fini(struct perfdata_attrs *attrs);

/* One event of a recording that is read. */

#define PERFDATA_MACHINE_MAX 32
#define PERFDATA_NOTE_MAX    120
/* Later times count as this one, so that sums of times fit into 64 bits. */
#define PERFDATA_TIME_MAX (UINT64_MAX / 4)
/*
 * Samples from this time on have none: perf record --off-cpu gives such times to its sums, which it
 * writes behind all other records. They have the time of the newest record.
 */
#define PERFDATA_TIME_NONE (~0ULL << 32)

struct perfdata_event {
	struct event event; /* name from the file's EVENT_DESC, else from type and config */
	struct record_layout layout;
	double hz; /* 0: a fixed period */
	uint64_t period;
	uint64_t nr_samples; /* in the file */
	uint32_t stack_size; /* of a stack copy, in bytes; 0: none */
	bool user_chain;     /* the kernel followed the frame pointers of user code */
	bool dummy;	     /* side-band only */
	bool switches;	     /* with records of switches */
	bool by_task;	     /* counts in samples are of the sampled task alone */
	bool monotonic;	     /* times are of CLOCK_MONOTONIC, as live */
};

struct perfdata_section {
	uint64_t offset, size;
};

/* Records that perf itself writes (tools/perf/util/event.h); never from a kernel. */
enum perfdata_record_type {
	PERFDATA_USER_FIRST = 64,
	PERFDATA_HEADER_ATTR = 64,
	PERFDATA_TRACING_DATA = 66,
	PERFDATA_HEADER_BUILD_ID = 67,
	PERFDATA_FINISHED_ROUND = 68,
	PERFDATA_AUXTRACE = 71,
	PERFDATA_EVENT_UPDATE = 78,
	PERFDATA_HEADER_FEATURE = 80, /* pipe mode: u64 bit, then the section's bytes */
	PERFDATA_COMPRESSED = 81,
	PERFDATA_COMPRESSED2 = 83, /* u64 size, then the compressed bytes and padding */
};

/* Set the message for a folder of perf record --threads. Return -EISDIR. */
int perfdata_refuse_folder(struct err *e, const char *path);

struct perfdata_bytes {
	uint64_t size;
	int fd;		       /* -1: all of them are in memory */
	int pipe;	       /* that is read as it is written; else -1 */
	int memory;	       /* memfd of bytes that were read from a pipe, or copied; else -1 */
	const uint8_t *window; /* window_size bytes from window_at */
	uint64_t window_at, window_size;
	uint8_t *own; /* to be freed; a file's window, of room bytes */
	size_t room;
	bool stopped;	  /* a pipe that was not read to its end */
	uint64_t date_ns; /* when the file was written; 0: not known */
	uint64_t ahead;	  /* read ahead was requested up to here */
};

/* A record that counts. */
struct perfdata_ref {
	uint64_t time_ns;
	uint64_t at; /* offset in the file, or in the inflated bytes */
	uint16_t event, size;
	uint32_t inflated; /* 0 or 1 */
};

struct perfdata_found {
	char note[PERFDATA_NOTE_MAX]; /* the file is cut short, damaged or not finished; "": whole
				       */
	uint32_t stop;		      /* damage was met: nothing behind it is read */
	uint32_t done;		      /* all records were found */
	uint32_t has_kernel;	      /* samples in the kernel */
	uint32_t begun;		      /* there is a record behind the header's */
	uint32_t kind;		      /* enum perfdata_kind */
	uint32_t version;	      /* of the facts about events and objects; it grows */
	uint64_t walked;	      /* all records before this offset are noted */
	uint64_t nr_bad;	      /* bytes at the end that are not read */
	uint64_t first_sample_ns, last_sample_ns; /* at most PERFDATA_TIME_MAX */
	uint64_t max_ns;			  /* the time of the newest record */
	uint64_t flush_ns; /* the same at the end of perf's last round but one */
};

/*
 * Writing a perf.data file: created safely, records appended, header and
 * features put in at the end. Until then the size of the data in the header is
 * 0: a recording that was cut off is read to the end of the file.
 *
 * One thread at a time. The layout is that which perfdata.h reads.
 */

/* Add the build-id of a sampled object, for the header; of a stream it is queued. @name: as in its
 * mappings. */
void perfdata_put_build_id(struct perfdata_writer *w, bool kernel, const char *name,
			   const uint8_t *id, uint8_t id_size);
/*
 * Create @path, mode 0600. A recording of that name becomes @path.old, as perf
 * does it; an empty file is replaced, any other refused. 0 or -errno with a sentence.
 */
int perfdata_create(struct perfdata_writer **out, const char *path, struct err *e);
/* Remove a created file, with the rights of the invoking user. */
void perfdata_remove(const char *path);
/* Write header and events, so that a recording that is cut off can be read. 0 or -errno. */
int perfdata_begin(struct perfdata_writer *w, const struct perfdata_attrs *attrs);
/* Return whether it is written to standard output, in pipe mode: path "-". */
bool perfdata_is_stream(const struct perfdata_writer *w);
/* Of a stream: write events and ids that are new, before the records that have them. */
int perfdata_add_attrs(struct perfdata_writer *w, const struct perfdata_attrs *attrs);

/*
 * Of a stream: records that wait for the writer. One thread queues and the writer takes, under a
 * lock of the caller; written without it, since a pipe may block. Taken ones are freed when
 * written.
 */
struct perfdata_queued {
	void *records;
	size_t size;
};

void perfdata_queue(struct perfdata_writer *w, const void *record, size_t size);
void perfdata_take_queue(struct perfdata_writer *w, struct perfdata_queued *out);
void perfdata_write_queue(struct perfdata_writer *w, struct perfdata_queued *q);
/* Of a stream: the end is near; a reader that does not read is no longer waited for. Any thread. */
void perfdata_stop(struct perfdata_writer *w);
/* Append whole records. After the first -errno nothing is written any more. */
int perfdata_append(struct perfdata_writer *w, const struct iovec *pieces, int nr);
/* Events as they are known now, features, header. 0 or the first -errno of all. */
int perfdata_finish(struct perfdata_writer *w, const struct perfdata_attrs *attrs);
/* Bytes of records in the file. */
uint64_t perfdata_written(const struct perfdata_writer *w);
void perfdata_writer_close(struct perfdata_writer *w);

/* As many recordings are opened at a time: of the session, and of --baseline. */
#define PERFDATA_READERS (SANDBOX_RECORDING_LAST - SANDBOX_RECORDING + 1U)

extern const struct sandbox_reader perfdata_readers[PERFDATA_READERS];

/*
 * A perf.data file as perf record writes it: events and records in time order.
 *
 * File mode (attribute and data sections, features) and pipe mode; compressed
 * records where libzstd was at hand. Of a file only the records' places are
 * kept; it is never mapped, and everything in it is hostile and bounds-checked.
 *
 * One thread.
 */

/*
 * Open @path, with a call of @step (NULL: none) 10 times a second: see file_reading_fn. 0 or
 * -errno with a sentence: not a perf.data file, truncated, compressed without zstd …
 */
int perfdata_open_step(struct perfdata **out, const char *path, file_reading_fn step,
		       struct err *e);
/*
 * The same of a pipe, as soon as its first records are there: perfdata_more() reads on. Of another
 * file, or a recording that cannot be read as it is written: as perfdata_open_step().
 */
int perfdata_open_stream(struct perfdata **out, const char *path, file_reading_fn step,
			 struct err *e);
/* End the reading of a pipe soon after another thread has set @stopped. */
void perfdata_stop_by(struct perfdata *pd, const atomic_bool *stopped);
/*
 * Read on: the records that perfdata_info() has then are in order, none is before them.
 * @idle: do not read, the writer is slow: all records so far are there then. False: this was the
 * end.
 */
bool perfdata_more(struct perfdata *pd, bool idle);
/* Forget the records of a pipe that perfdata_info() has. */
void perfdata_drop(struct perfdata *pd);
void perfdata_close(struct perfdata *pd);

/* A recording as far as it is read. Pointers are borrowed; perfdata_more() changes their bytes. */
struct perfdata_info {
	const char *machine; /* its CPU, as in uname(2) ("x86_64"); "": not in the file */
	const char *host;    /* its name, foreign bytes; "": not in the file */
	const struct kernel_identity *kernel; /* as far as it is in the file */
	const struct perfdata_found *found;   /* checked */
	uint64_t date_ns;    /* when the file was written, CLOCK_REALTIME; 0: not known, a pipe */
	uint64_t nr_records; /* without mappings of data, in which nothing is looked up */
	uint32_t nr_events, nr_ids; /* ids: of all events */
	int stream_fd;		    /* readable when a pipe has more; -1: all is read */
};

struct perfdata_info perfdata_info(const struct perfdata *pd);
const struct perfdata_event *perfdata_event(const struct perfdata *pd, uint32_t index);
/*
 * Add the build-id of the mapped object, if the file has it, and the text that the program moved to
 * memory right below @m. Of all mappings, in order.
 */
void perfdata_identify(struct perfdata *pd, struct record_mmap *m);
/* Index of the event with that id, or -1. Without ids in the file: 0. */
int perfdata_event_of(const struct perfdata *pd, uint64_t id);
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

#endif

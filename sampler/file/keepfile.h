/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The segments of --keep: slices with the stacks, functions and tasks that they refer to. A segment
 * is a header and records, each with its size and a checksum, only ever appended to: one that was
 * cut short is read as far as it goes. A later record with the same id replaces the one
 * before. Reading treats all bytes as hostile.
 *
 * Pure; any thread.
 */
#ifndef SAMPLER_FILE_KEEPFILE_H
#define SAMPLER_FILE_KEEPFILE_H

#include "sampler/count/slices.h"
#include "sampler/event/event.h"
#include "symbols/base/base.h"

#define KEEPFILE_RECORD_MAX ((size_t)1 << 20) /* bytes of one record */
#define KEEPFILE_TEXT_MAX   4096
#define KEEPFILE_DEPTH_MAX  4096 /* functions of a stack */

/* Bytes that grow. Zero-initialised is empty. */
struct keepfile_out {
	uint8_t *bytes;
	size_t size, capacity;
	size_t begin; /* of the record that is written */
	bool failed;  /* no memory: the bytes are incomplete */
};

void keepfile_fini(struct keepfile_out *out);

struct keepfile_text {
	const char *str;
	size_t size;
};

/* One event of the slices that follow. */
struct keepfile_event {
	struct keepfile_text name;
	double hz;
	bool clock;
};

struct keepfile_function {
	uint32_t id;
	char kind; /* of the profile: u k j v ? ... */
	bool inlined, made_up;
	struct keepfile_text name, module;
};

struct keepfile_task {
	uint32_t id;
	uint32_t pid, tid;
	struct keepfile_text comm, process_comm;
	uint32_t uid; /* UINT32_MAX: unknown */
};

void keepfile_header(struct keepfile_out *out);
void keepfile_put_events(struct keepfile_out *out, const struct keepfile_event *events,
			 uint32_t nr);
void keepfile_put_function(struct keepfile_out *out, const struct keepfile_function *f);
/* The functions of @module are of an interpreter. */
void keepfile_put_interpreter(struct keepfile_out *out, struct keepfile_text module);
void keepfile_put_stack(struct keepfile_out *out, uint32_t id, const uint32_t *functions,
			uint32_t nr);
void keepfile_put_task(struct keepfile_out *out, const struct keepfile_task *t);
/* @slice: times are CLOCK_REALTIME. False: it is too large for a record, and left out. */
bool keepfile_put_slice(struct keepfile_out *out, const struct slice *slice);

/* A record of any type and content, for tests. */
void keepfile_put_raw(struct keepfile_out *out, uint8_t type, const void *bytes, size_t size);

/* Called for each record of a segment; texts and arrays are borrowed. */
struct keepfile_reader {
	void (*events)(void *ctx, const struct keepfile_event *events, uint32_t nr);
	void (*function)(void *ctx, const struct keepfile_function *f);
	void (*stack)(void *ctx, uint32_t id, const uint32_t *functions, uint32_t nr);
	void (*interpreter)(void *ctx, struct keepfile_text module);
	void (*task)(void *ctx, const struct keepfile_task *t);
	/* Its bytes were checked: the counts are in order, and their number is @slice->nr. */
	void (*slice)(void *ctx, const struct slice *slice);
	void *ctx;
	/* Called before each record: true ends the reading. NULL: it is read to the end. */
	bool (*stopped)(void *ctx);
};

/*
 * Read a segment up to its end, the first damaged record, or where @reader stops. Return the bytes
 * that were read; -EINVAL: it is no segment.
 */
int64_t keepfile_read(const uint8_t *bytes, size_t size, const struct keepfile_reader *reader);

#endif

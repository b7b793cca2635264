/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit-PID.dump: what a JIT compiler writes of its code, record after record
 * (Linux, tools/perf/Documentation/jitdump-specification.txt).
 *
 * Hostile: whoever runs the process writes it, while we read. Reading goes on
 * where it ended; a record that is not whole yet waits. The instructions stay
 * in the file, only where they are is kept.
 *
 * One thread.
 */
#ifndef SYMBOLS_JIT_JITDUMP_H
#define SYMBOLS_JIT_JITDUMP_H

#include "symbols/jit/jitcode.h"

#define JITDUMP_RECORD_MAX (64U << 20) /* bytes of one record; code is most of it */
#define JITDUMP_FILE_MAX   (16ULL << 30)

/* Where the bytes are: a descriptor, or memory. */
struct jitdump_file {
	int fd; /* -1: memory */
	const uint8_t *bytes;
	uint64_t size;
};

struct jitdump {
	struct jitcode *code;
	uint64_t at;	       /* read so far; 0: not even the header */
	uint64_t early_at;     /* the record there is taken already, though not whole; 0: none */
	uint16_t machine;      /* e_machine */
	bool has_times;	       /* of CLOCK_MONOTONIC; else of who knows what */
	bool ended;	       /* nothing more is taken: closed, damaged, or full */
	uint32_t nr_bad;       /* records that made no sense */
	uint32_t least_offset; /* see jitdump_line() */
	uint64_t lines_of;     /* lines told of the code at this address, loaded next */
	struct jitcode_line *lines;
	uint32_t nr_lines, max_lines;
	uint8_t *window; /* the part of the file in hand */
	uint64_t window_at;
	size_t window_size;
};

int jitdump_init(struct jitdump *d);
void jitdump_fini(struct jitdump *d);

/*
 * Take what is new in @file, at most @max_ns of it (0: all); *more: there is
 * some left. 0, -EAGAIN (the header is not written yet), -EBADMSG (no
 * jitdump), -ENOTSUP (of another byte order or version), -EIO, -ENOMEM.
 */
int jitdump_read(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns, bool *more);

/* The source line of @addr in @f. V8 tells addresses behind the ELF header that perf would add. */
const struct jitcode_line *jitdump_line(const struct jitdump *d, const struct jitcode_function *f,
					uint64_t addr);

#endif

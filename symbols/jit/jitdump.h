/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit-PID.dump: written by a JIT compiler about its code, record after record
 * (Linux, tools/perf/Documentation/jitdump-specification.txt).
 *
 * Hostile: the user of the process writes it during reading. Reading continues at
 * the last position; an incomplete record waits. Only the positions of the instructions in the file
 * are kept.
 *
 * One thread.
 */
#ifndef SYMBOLS_JIT_JITDUMP_H
#define SYMBOLS_JIT_JITDUMP_H

#include "symbols/jit/jitcode.h"

#define JITDUMP_RECORD_MAX (64U << 20) /* bytes of one record; most are code */
#define JITDUMP_FILE_MAX   (16ULL << 30)

/* Source of the bytes: a descriptor, or memory. */
struct jitdump_file {
	int fd; /* -1: memory */
	const uint8_t *bytes;
	uint64_t size;
};

struct jitdump {
	struct jitcode *code;
	uint64_t at;	       /* position; 0: not even the header was read */
	uint64_t early_at;     /* position of an incomplete record that is used already; 0: none */
	uint16_t machine;      /* e_machine */
	bool has_times;	       /* of CLOCK_MONOTONIC; else of an unknown clock */
	bool ended;	       /* reading has ended: closed, damaged, or full */
	uint32_t nr_bad;       /* invalid records */
	uint32_t least_offset; /* see jitdump_line() */
	uint64_t lines_of;     /* lines of the code at this address, loaded next */
	struct jitcode_line *lines;
	uint32_t nr_lines, max_lines;
	uint8_t *window; /* the window of the file */
	uint64_t window_at;
	size_t window_size;
};

int jitdump_init(struct jitdump *d);
void jitdump_fini(struct jitdump *d);

/*
 * Read new records of @file, for at most @max_ns (0: all); *more: some are left.
 * 0, -EAGAIN (the header is not written yet), -EBADMSG (no jitdump), -ENOTSUP (of
 * another byte order or version), -EIO, -ENOMEM.
 */
int jitdump_read(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns, bool *more);

/*
 * Find the source line of @addr in @f. V8's addresses include the ELF header that
 * perf would add.
 */
const struct jitcode_line *jitdump_line(const struct jitdump *d, const struct jitcode_function *f,
					uint64_t addr);

#endif

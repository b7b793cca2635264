/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit-PID.dump: written by a JIT compiler about its code, record after record
 * (Linux, tools/perf/Documentation/jitdump-specification.txt).
 *
 * Hostile: the user of the process writes it during reading. Reading continues at
 * the last position; an incomplete record waits. Only the positions of the instructions in the file
 * are kept.
 *
 * A part of the file after the other is copied and read in the cage (jitdump_scan.h); here its
 * events are checked and added.
 *
 * One thread.
 */
#ifndef SYMBOLS_JIT_JITDUMP_H
#define SYMBOLS_JIT_JITDUMP_H

#include "symbols/base/watch.h"
#include "symbols/jit/jit.h"
#include "symbols/jit/jitdump_scan.h"

#define JITDUMP_FILE_MAX (16ULL << 30)

/* Source of the bytes: a descriptor, or memory. */
struct jitdump_file {
	int fd; /* -1: memory */
	const uint8_t *bytes;
	uint64_t size;
	struct watch *watch; /* of the reads; may be NULL */
};

struct jitdump {
	struct jitcode *code;
	struct jitdump_state state;
	uint64_t nr_more; /* parts that were not read to their end */
};

int jitdump_init(struct jitdump *d);
void jitdump_fini(struct jitdump *d);

/*
 * Read new records of @file, for at most @max_ns (0: all); *more: some are left.
 * 0, -EAGAIN (the header is not written yet), -EBADMSG (no jitdump), -ENOTSUP (of
 * another byte order or version), -EIO, -ENOMEM, -ECANCELED; or an error of cage_call(): then it
 * is not read again (state.ended).
 */
int jitdump_read(struct jitdump *d, const struct jitdump_file *file, uint64_t max_ns, bool *more);

/*
 * Find the source line of @addr in @f. V8's addresses include the ELF header that
 * perf would add.
 */
const struct jitcode_line *jitdump_line(const struct jitdump *d, const struct jitcode_function *f,
					uint64_t addr);

#endif

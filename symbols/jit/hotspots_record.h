/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Java code in a recording. The results of reading a JVM are kept as functions of LANG_JAVA
 * (symbols/lang/code_log.h) until it is forgotten; details are in their line tables. A replay reads
 * them again.
 *
 * Threads: hotspots_keep_*() the loader. The rest is pure.
 */
#ifndef SYMBOLS_JIT_HOTSPOTS_RECORD_H
#define SYMBOLS_JIT_HOTSPOTS_RECORD_H

#include "symbols/jit/hotspot_job.h"
#include "symbols/jit/jit.h"
#include "symbols/lang/codes.h"

enum hotspots_kept_kind {
	HOTSPOTS_KEPT_CODE = 1,
	HOTSPOTS_KEPT_METHOD, /* interpreted */
	HOTSPOTS_KEPT_CHAIN,
};

enum hotspots_kept_flag {
	HOTSPOTS_KEPT_RETIRED = 1 << 0,
	HOTSPOTS_KEPT_INLINES = 1 << 1,
	HOTSPOTS_KEPT_EXACT = 1 << 2, /* a chain: its code describes the call */
	HOTSPOTS_KEPT_BLIND = 1 << 3,
	HOTSPOTS_KEPT_UNTRIED = 1 << 4, /* the version of the JVM */
};

/* One thing that was read. In the byte order of the machine. */
struct hotspots_kept {
	uint64_t time_ns;
	uint64_t memory; /* an address in the code cache of the process */
	uint32_t pid;
	uint32_t kind; /* enum hotspots_kept_kind */
	uint64_t call_return;
	/* Of a method: its address, its bytecodes. Of a chain: the place. */
	uint64_t start, end;
	uint64_t deopt;
	uint32_t compile_id, frame_words, complete;
	uint32_t code_kind;	     /* enum hotspot_kind */
	uint32_t flags;		     /* enum hotspots_kept_flag */
	uint32_t layer;		     /* of a chain */
	uint32_t bytecodes_size, nr; /* of a method; frames of a chain, which follow */
	uint64_t bytecodes;
};

/* The process that something was read of. */
struct hotspots_keeper {
	struct code_log *log; /* NULL: nothing is kept */
	uint64_t process, time_ns, memory, call_return;
	uint32_t pid;
	bool untried;
};

void hotspots_keep_code(const struct hotspots_keeper *k, const struct hotspot_blob *b);
void hotspots_keep_method(const struct hotspots_keeper *k, uint64_t method, const char *name,
			  uint64_t bytecodes, uint32_t size);
void hotspots_keep_chain(const struct hotspots_keeper *k, const struct hotspot_job_chain *chain);

/* Read a function of LANG_JAVA, foreign bytes. False: it makes no sense. */
bool hotspots_kept(const struct code_text *text, struct hotspots_kept *out);
/* Return the bytes of the frames of a chain. */
size_t hotspots_kept_size(const struct code_text *text, const struct hotspots_kept *kept);
/* The frames of a chain, in one block for free(); NULL: they make no sense. */
struct hotspot_job_frame *hotspots_kept_frames(const struct code_text *text,
					       const struct hotspots_kept *kept);

#endif

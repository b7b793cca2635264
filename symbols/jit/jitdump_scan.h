/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a part of a jitdump -> a flat list of events, in the cage: this is the only code
 * that sees its bytes. See jitdump.h.
 *
 * An answer is struct jitdump_answer, then events: each with its text, then its lines.
 */
#ifndef SYMBOLS_JIT_JITDUMP_SCAN_H
#define SYMBOLS_JIT_JITDUMP_SCAN_H

#include "symbols/sandbox/sandbox.h"

#define JITDUMP_RECORD_MAX (64U << 20) /* bytes of one record; most are code */
#define JITDUMP_PART_MAX   (1U << 20)  /* more than a record has, but for code */

/* How far a jitdump was read. */
struct jitdump_state {
	uint64_t at;	       /* position; 0: not even the header was read */
	uint64_t early_at;     /* position of an incomplete record that is used already; 0: none */
	uint32_t nr_bad;       /* invalid records */
	uint32_t least_offset; /* see jitdump_line() */
	uint16_t machine;      /* e_machine */
	bool has_times;	       /* of CLOCK_MONOTONIC; else of an unknown clock */
	bool ended;	       /* reading has ended: closed, damaged, or full */
};

/* Read the part of the file at state.at: the descriptor of the call has @part_size bytes. */
struct jitdump_request {
	struct jitdump_state state;
	uint64_t part_size, file_size;
};

struct jitdump_answer {
	struct jitdump_state state;
	int32_t rc;    /* as jitdump_read() */
	uint32_t more; /* the rest begins behind this part */
};

enum jitdump_event_kind { JITDUMP_FILE, JITDUMP_LOAD, JITDUMP_MOVE };

struct jitdump_event {
	uint32_t kind;
	uint32_t text_size; /* of the name of the file or function; follows */
	uint64_t time_ns, start, size;
	uint64_t from; /* load: position of the code; move: its address before */
	uint32_t nr_lines, unused;
};

struct jitdump_event_line {
	uint32_t offset, line;
	uint32_t file; /* number of the file event in this answer */
};

extern const struct cage_reader jitdump_reader;

#endif

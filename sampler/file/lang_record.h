/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of languages in a recording: records of a type that perf skips.
 *
 * perf ignores HEADER_EVENT_TYPE, which no perf since 3.2 writes. Ours begin
 * with a magic number behind the header; all numbers are in the byte order of the machine:
 *
 *   FUNCTION  a function of a script, by its number; anywhere in the file. Of Java: code read
 *             of a JVM at that time (symbols/jit/hotspots_record.h)
 *   FRAMES    the frames of one sample, before it: native frames by index, and
 *             frames of the language by number and instruction
 *
 * Pure; hostile bytes.
 */
#ifndef SAMPLER_FILE_LANG_RECORD_H
#define SAMPLER_FILE_LANG_RECORD_H

#include "symbols/base/base.h"
#include "symbols/lang/codes.h"
#include "unwind/unwind.h"

#define LANG_RECORD_TYPE 65u /* PERF_RECORD_HEADER_EVENT_TYPE */
#define LANG_RECORD_MAX	 (32u << 10)

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

/* The frames of one sample, or why there are none. */
struct lang_frames {
	uint64_t time_ns;
	uint32_t pid, tid;
	uint8_t language;   /* enum lang_kind */
	uint8_t outcome;    /* enum lang_outcome */
	uint8_t none;	    /* enum lang_none */
	bool deep;	    /* there were more frames; native ones beyond them are left out */
	uint16_t nr_native; /* native frames of the user stack */
	uint16_t nr;
	uint64_t entries[MERGE_FRAMES_MAX];
};

enum lang_outcome { LANG_OUTCOME_NONE, LANG_OUTCOME_CERTAIN, LANG_OUTCOME_GUESSED };

enum lang_record_kind { LANG_RECORD_NONE, LANG_RECORD_FUNCTION, LANG_RECORD_FRAMES };

/* Return the kind of a record, and the time of its sample (0: none). */
enum lang_record_kind lang_record_kind(const uint8_t *bytes, size_t size, uint64_t *time_ns);

/* Write a record to @buf of LANG_RECORD_MAX bytes; return its size, 0: it does not fit. */
size_t lang_record_put_function(uint8_t *buf, uint32_t number, const struct code_text *text);
size_t lang_record_put_frames(uint8_t *buf, const struct lang_frames *f);

/* The functions that a file has. All zero: none. */
struct lang_record_cursor {
	uint32_t nr;	 /* of scripts */
	uint64_t logged; /* of virtual machines: the last one of codes_log() */
};

/* Call @fn with a record of each further function of @codes (NULL: none). */
void lang_record_each_function(const struct codes *codes, struct lang_record_cursor *cursor,
			       void (*fn)(void *ctx, const void *record, size_t size), void *ctx);

/* Read a record. 0 or -EINVAL. The texts of a function point into @bytes. */
int lang_record_function(const uint8_t *bytes, size_t size, uint32_t *number,
			 struct code_text *text);
int lang_record_frames(const uint8_t *bytes, size_t size, struct lang_frames *f);

#endif

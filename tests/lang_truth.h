/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the program under test and the judging tool: chains by time. */
#ifndef TESTS_LANG_TRUTH_H
#define TESTS_LANG_TRUTH_H

#include <stdatomic.h>
#include <stdint.h>

#define TRUTH_FRAMES   128
#define TRUTH_ENTRIES  40000
#define TRUTH_SEED     0xcbf29ce484222325ULL
#define TRUTH_PRIME    0x100000001b3ULL
#define TRUTH_ANY_LINE (-2) /* the truth does not have it */
#define TRUTH_PROLOGUE 192  /* bytes of the loop's code before its frame is in the chain */

struct truth_entry {
	_Atomic uint64_t time_ns; /* 0: not written yet */
	uint64_t pc, sp;	  /* where the signal interrupted the thread */
	int tid;
	uint32_t nr;
	int entering; /* the loop may not have stored its frame yet */
	int cut;
	uint64_t hash[TRUTH_FRAMES]; /* truth_join() */
	int instr[TRUTH_FRAMES];
};

/* One value for the hash of line and name, and that of the file. */
static inline uint64_t truth_join(uint64_t name, uint64_t file)
{
	return name << 32 | (uint32_t)file;
}

struct truth {
	atomic_uint nr;
	struct truth_entry entries[TRUTH_ENTRIES];
};

#endif

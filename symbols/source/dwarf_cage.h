/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DWARF, read in the cage: the functions of dwarf.h for a file that a worker has open.
 *
 * The caller opens the files and sends their descriptors; libdw and libelf run in the worker only.
 * Each answer is checked here: lengths, offsets, the order of addresses. The worker has a file open
 * until it is closed here, or until the worker is replaced (-ESTALE: open it again).
 *
 * Threads: one at a time for each struct; helpers only, since a call may wait.
 */
#ifndef SYMBOLS_SOURCE_DWARF_CAGE_H
#define SYMBOLS_SOURCE_DWARF_CAGE_H

#include "symbols/object/elffacts.h"
#include "symbols/source/dwarf.h"
#include "symbols/source/dwarf_wire.h"

#define DWARF_CAGE_OPEN_NS 8000000000ULL /* limit of opening; other calls have less */

struct dwarf_cage;

/* As dwarf_open(); also the errors of cage_call(). */
int dwarf_cage_open(struct dwarf_cage **out, const struct foreign_file *file,
		    const struct elffacts *facts, uint64_t bias, bool no_lines);
void dwarf_cage_close(struct dwarf_cage *d);
/* Return the bytes of debug sections. */
uint64_t dwarf_cage_size(const struct dwarf_cage *d);

/* Chains at some addresses; the texts of @frames are in @texts. */
struct dwarf_chains {
	uint32_t nr;			   /* addresses done: the worker stops after its slice */
	int nr_frames[DWARF_CAGE_PLACES];  /* as dwarf_chain() */
	uint32_t first[DWARF_CAGE_PLACES]; /* of them, in frames */
	struct dwarf_frame *frames;
	uint8_t *texts;
};

/* Get the chains at @nr addresses. 0; -ESTALE, or another error of cage_call(). */
int dwarf_cage_chains(struct dwarf_cage *d, const uint64_t *vaddrs, uint32_t nr,
		      struct dwarf_chains *out);
void dwarf_chains_free(struct dwarf_chains *c);

/* As dwarf_lines(), at most DWARF_CAGE_ROWS rows. */
int dwarf_cage_lines(struct dwarf_cage *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn,
		     void *ctx);

#endif

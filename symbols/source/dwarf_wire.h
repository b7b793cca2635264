/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests and answers of DWARF in the cage. An answer is a head, then for chains the length of
 * each (int32_t) and their frames, for lines an address (uint64_t) and a frame for each row, then
 * texts.
 */
#ifndef SYMBOLS_SOURCE_DWARF_WIRE_H
#define SYMBOLS_SOURCE_DWARF_WIRE_H

#include "symbols/sandbox/sandbox.h"

#define DWARF_CAGE_PLACES 64U	 /* addresses in one call */
#define DWARF_CAGE_ROWS	  65536U /* rows of lines in one call */

enum dwarf_wire_kind { DWARF_WIRE_OPEN, DWARF_WIRE_CLOSE, DWARF_WIRE_CHAINS, DWARF_WIRE_LINES };

#define DWARF_WIRE_NONE UINT32_MAX /* no text */

struct dwarf_wire_request {
	uint32_t kind, handle;
	uint64_t bias, size; /* open: size of the file; lines: of the code */
	uint32_t nr;	     /* of vaddrs */
	bool alt;	     /* open: the second descriptor is its dwz file */
	bool no_lines;	     /* open: functions only */
	uint64_t vaddrs[DWARF_CAGE_PLACES];
};

struct dwarf_wire_opened {
	uint32_t handle;
};

struct dwarf_wire_head {
	uint32_t nr;	     /* chains or rows */
	uint32_t texts_size; /* the last byte is NUL */
};

struct dwarf_wire_frame {
	uint32_t name, file, dir; /* offsets in the texts */
	uint32_t line;
};

_Static_assert(sizeof(struct dwarf_wire_request) <= CAGE_REQUEST_MAX, "a request is one packet");

#endif

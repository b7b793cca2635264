/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between elfcage.h and its workers. Both have the same program.
 */
#ifndef SYMBOLS_OBJECT_ELFCAGE_WIRE_H
#define SYMBOLS_OBJECT_ELFCAGE_WIRE_H

#include "symbols/object/elfparts.h"

#define ELFCAGE_FILES 2

/* The lists of parts that are there follow, then the request of the reader. */
struct elfcage_request {
	uint64_t size[ELFCAGE_FILES];
	uint32_t nr_parts[ELFCAGE_FILES];
};

/* The missed parts follow, else the answer of the reader. */
struct elfcage_answer {
	_Alignas(16) uint32_t nr_missed[ELFCAGE_FILES];
};
#define ELFCAGE_ANSWER sizeof(struct elfcage_answer)

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One mapping of an address space.
 */
#ifndef SYMBOLS_PROCESS_MAPPING_H
#define SYMBOLS_PROCESS_MAPPING_H

#include "symbols/base/base.h"
#include "symbols/image/image.h"

struct mapping {
	uint64_t start, end; /* addresses, end exclusive */
	uint64_t offset;     /* file offset of start; for anonymous memory: start itself */
	uint64_t birth_ns;   /* 0: before the start of proftop */
	struct object *object;
	bool exec;
};

#endif

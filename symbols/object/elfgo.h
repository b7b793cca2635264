/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The function table that Go programs keep for their tracebacks, .gopclntab: present even in
 * stripped programs. The layout is that of Go 1.18 and later (go/src/internal/abi, debug/gosym).
 *
 * The reader, for the cage, and the messages between it and elfgo_cage.c. The table is in a memfd.
 */
#ifndef SYMBOLS_OBJECT_ELFGO_H
#define SYMBOLS_OBJECT_ELFGO_H

#include "symbols/cage/cage_reader.h"

#define ELFGO_SIZE_MAX	(512UL << 20)
#define ELFGO_REPLY_MAX (256UL << 20)

struct elfgo_request {
	uint64_t size;	 /* of the table */
	uint64_t text;	 /* the start of code if the header has none */
	uint64_t frames; /* 1: the reply is a .debug_frame; 0: functions */
};

/* One function; its name follows, without NUL. */
struct elfgo_function {
	uint64_t vaddr, size, name_size;
};

extern const struct cage_reader elfgo_reader;

#endif

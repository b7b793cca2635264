/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between describe.h and its reader in the cage (describe_serve.c). Both have the same
 * program.
 */
#ifndef SYMBOLS_LANG_DESCRIBE_WIRE_H
#define SYMBOLS_LANG_DESCRIBE_WIRE_H

#include "symbols/lang/lang.h"

struct describe_request {
	uint64_t serial;	  /* of the job, not 0 */
	uint64_t start, offset;	  /* of the mapping that holds the code, and in the file */
	uint32_t kind;		  /* enum lang_kind */
	char name[LANG_FILE_MAX]; /* of the file, without its folder */
};

/* The symbols of an interpreter's file, as addresses in the file. */
struct describe_file {
	uint64_t bias; /* to add to them in the process */
	uint64_t runtime, code_type, version_at;
	struct lang_range eval[LANG_EVAL_MAX];
	struct lang_range main[LANG_MAIN_MAX];
	uint32_t nr_eval, nr_main;
	uint32_t kind;	  /* enum lang_kind */
	uint32_t version; /* from the name of the file: 0x030b0000; PHP: from its bytes, or 0 */
	uint32_t php;	  /* number of its row + 1; 0: none */
	uint32_t machine;
	/* Of LANG_NODE. */
	uint32_t v8_version;
	struct v8_layout v8;
	uint64_t blob_offset, blob_size; /* in the file; size 0: not found */
};

#endif

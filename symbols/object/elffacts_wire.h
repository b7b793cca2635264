/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The facts, and the messages between elffacts.h and its worker. Both have the same program.
 */
#ifndef SYMBOLS_OBJECT_ELFFACTS_WIRE_H
#define SYMBOLS_OBJECT_ELFFACTS_WIRE_H

#include "symbols/object/debugfile.h"
#include "symbols/object/elfdwarf.h"

#define ELFFACTS_VARS_MAX 16U
#define ELFFACTS_NAME_MAX 64U

struct elffacts {
	struct debugfile_names names; /* with the build-id of the file */
	struct elfdwarf_alt alt;
	int32_t dwarf;	     /* elfdwarf_size() */
	int32_t alt_rc;	     /* elfdwarf_alt() */
	uint64_t dwarf_size; /* of all debug sections */
	uint64_t vaddr;	     /* of the byte at the offset that was given */
	uint32_t has_vaddr;
};

enum elffacts_file { ELFFACTS_OBJECT, ELFFACTS_DEBUG };

struct elffacts_request {
	uint64_t offset;
	uint32_t nr_vars;
	uint32_t by_link; /* how the debug file was found */
	uint64_t at;	  /* distance of a variable from the byte at @offset; 0: none wanted */
	char names[ELFFACTS_VARS_MAX][ELFFACTS_NAME_MAX];
};

/* Of the debug file, if there is one. */
struct elffacts_answer {
	struct elffacts facts;
	uint32_t match; /* enum debugfile_match */
	uint32_t unused;
	uint64_t bias;
	uint64_t at_begin;	    /* the same distance of its begin */
	char at[ELFFACTS_NAME_MAX]; /* its name; "": none */
	uint64_t vaddr[ELFFACTS_VARS_MAX], size[ELFFACTS_VARS_MAX]; /* of the symbols */
};

#endif

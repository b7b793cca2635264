/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A function that was read from the memory of a process. Pure; any thread. */
#ifndef SYMBOLS_LANG_CODE_TEXT_H
#define SYMBOLS_LANG_CODE_TEXT_H

#include "symbols/base/base.h"
#include "symbols/base/keyhash.h"

#define CODES_TEXT_MAX	512U	    /* bytes of a name or path; the rest is cut */
#define CODES_TABLE_MAX (16U << 10) /* bytes of a line table; a larger one is left out */

/* Name, file and line table of a function. Foreign bytes. */
struct code_text {
	uint8_t language; /* enum lang_kind */
	uint8_t version;  /* how the table is to be read: the minor version */
	bool compiled;	  /* code that was compiled from the function; the table is of its bytes */
	uint16_t name_size, file_size;
	uint32_t first_line; /* 0: not known */
	uint32_t
		position; /* in the text of the file: identifies the function; 0: first_line does */
	uint32_t table_size;
	uint32_t user; /* real uid of the process that it was read in; UINT32_MAX: unknown */
	const char *name, *file; /* not NUL-terminated */
	const uint8_t *table;
};

struct code_key {
	uint32_t process;
	uint64_t address, stamp;
};

/* Hash a key. The process chooses its addresses, and the bytes that a stamp is of. */
static inline uint64_t code_key_hash(const struct keyhash_key *secret, const struct code_key *k)
{
	struct keyhash h = keyhash_begin(secret);

	keyhash_word(&h, k->process);
	keyhash_word(&h, k->address);
	keyhash_word(&h, k->stamp);
	return keyhash_end(&h);
}

#endif

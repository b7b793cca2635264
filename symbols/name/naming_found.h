/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A place to name, and the symbol found for it, before that has an id.
 *
 * One thread: the loader.
 */
#ifndef SYMBOLS_NAME_NAMING_FOUND_H
#define SYMBOLS_NAME_NAMING_FOUND_H

#include "symbols/name/symtab.h"
#include "symbols/object/image.h"
#include "symbols/image/image.h"

/* Unnamed code in memory is named by its page. */
#define NAMING_PAGE 4096ULL

/* A place to name. */
struct naming_question {
	uint32_t object;
	uint64_t offset;
	uint64_t since_ns; /* time of the first try */
	bool now;	   /* do not wait for a better name */
};

/*
 * A symbol as found, before it has an id. Most places are in functions with an
 * id: the text of the name is made for the others only.
 */
struct naming_found {
	struct symtab_key key;
	struct symtab_text text; /* complete, or with a name from the fields below */
	const struct image *image;
	const struct image_symbol *symbol; /* one of the image's symbols; NULL: see below */
	struct safe_text head; /* a made-up name begins with this; .str NULL: not made up */
	const char *join;      /* and continues with this and the start; or NULL */
	uint64_t start;	       /* of a shared function: of its code at this place; 0: none */
	bool by_name;
	bool shared; /* one function in all processes that have it; see naming_share() */
	bool plain;  /* the name is as its author wrote it: not mangled */
};

/* Make @f a function of @object in all processes: its texts identify it. */
void naming_share(struct naming_found *f, uint32_t object, const char *name, size_t size);
/* Return the object of the functions that JITs report in @source, "[java]" or other. */
uint32_t naming_shared_object(struct objects *objects, const char *source);
/* The module as shown; the bytes are borrowed until the symbol is added. */
void naming_found_module(struct naming_found *f, const char *module, size_t size);
void naming_found_name(struct naming_found *f, const char *name, size_t size);
/* Make a name of a word, or with @join of a word and an address: "libfoo.so+0x1230". */
void naming_found_made_up(struct naming_found *f, struct safe_text head, const char *join,
			  uint64_t start);

#endif

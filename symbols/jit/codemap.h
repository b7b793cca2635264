/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the frames of a JIT's code are laid out, for the unwinder: an immutable
 * table, published on the object of the process's memory (object->codemap) by
 * the loader, freed after a grace period of urcu-qsbr.
 *
 * Threads: codemap_find() and codemap_method() from any urcu-qsbr reader; the
 * rest from the loader.
 */
#ifndef SYMBOLS_JIT_CODEMAP_H
#define SYMBOLS_JIT_CODEMAP_H

#include "symbols/base/reclaim.h"
#include "symbols/image/image.h"

enum codemap_kind {
	CODEMAP_FIXED,	     /* a frame of frame_words once it is complete */
	CODEMAP_INTERPRETER, /* frame pointer, method and bytecode pointer in slots */
	CODEMAP_OTHER,	     /* adapters and stubs: nothing is known of their frames */
};

struct codemap_code {
	uint64_t start;
	uint32_t size;
	uint32_t complete; /* offset from which the frame is complete */
	uint32_t frame_words;
	enum codemap_kind kind;
	bool retired;	/* other code may have taken its memory since */
	bool java;	/* a method, or the interpreter */
	bool inlines;	/* may have inlined methods */
	bool blind;	/* its loops may have inlined methods that no description has */
	uint64_t deopt; /* return address of deoptimised frames; 0: none */
};

/* A method with interpreted frames. */
struct codemap_method {
	uint64_t method; /* its address in the process */
	uint64_t start;	 /* of its bytecodes */
	uint32_t size;	 /* 0: native */
};

struct codemap {
	struct reclaim rcu;
	uint32_t nr_codes, nr_methods, nr_calls;
	uint32_t methods_object; /* its offsets are addresses of methods */
	uint32_t nr_retired;
	bool untried;	      /* all frames are guesses: the runtime's version is untested */
	uint64_t call_return; /* the return address in the stub that calls Java; 0: not known */
	const struct codemap_method *methods; /* behind codes; sorted by method */
	const uint64_t *calls; /* behind methods; look-up pcs that the code describes; sorted */
	struct codemap_code codes[]; /* sorted by start, no overlap */
};

/* Allocate a map of @nr_codes, @nr_methods and @nr_calls, to be filled in; NULL: no memory. */
struct codemap *codemap_new(uint32_t nr_codes, uint32_t nr_methods, uint32_t nr_calls);
size_t codemap_memory(const struct codemap *map);
/* Publish @map (NULL: none) on @object; *old, if not shared with others, is to be freed. */
const struct codemap *codemap_publish(struct object *object, const struct codemap *map);
/* Free @map, which was published, once no reader can hold it. */
void codemap_reclaim(const struct codemap *map);

/* The code at @pc; NULL: none. */
const struct codemap_code *codemap_find(const struct codemap *map, uint64_t pc);
/* The method at @method; NULL: not known (yet). */
const struct codemap_method *codemap_method(const struct codemap *map, uint64_t method);
/* Is the call at look-up pc @pc known to be described by its code, with all inlined methods? */
bool codemap_describes(const struct codemap *map, uint64_t pc);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of the code of one JVM: sorted by start, without overlap.
 *
 * One thread: the owner of the struct hotspot.
 */
#ifndef SYMBOLS_JIT_HOTSPOT_BLOBS_H
#define SYMBOLS_JIT_HOTSPOT_BLOBS_H

#include "symbols/jit/vmstructs.h"

#define HOTSPOT_CODE_MAX    (256U << 20) /* bytes of a blob */
#define HOTSPOT_FRAME_WORDS (1U << 16)	 /* of a frame: fewer */

#define HOTSPOT_BLOBS_MAX (1U << 18)
#define HOTSPOT_NAME_MAX  512U
/* Bytes of all blobs with names: 60,000 methods with names of 60 bytes take 8.5 MiB. */
#define HOTSPOT_MEMORY_MAX (32UL << 20)

enum hotspot_kind {
	HOTSPOT_STUB,	  /* runtime stubs, adapters */
	HOTSPOT_COMPILED, /* a method, or the wrapper of a native one */
	HOTSPOT_INTERPRETER,
};

struct hotspot_blob {
	uint64_t start, end; /* of its code */
	uint64_t blob;	     /* address of the CodeBlob */
	uint64_t method;     /* Method*; 0: none */
	uint32_t compile_id;
	uint32_t frame_words; /* 0: not fixed */
	uint32_t complete;    /* the frame is built from this offset on */
	enum hotspot_kind kind;
	bool fresh;   /* not known before the last scan or look-up */
	bool retired; /* no longer entered: other code may take its memory soon */
	bool inlines; /* may have inlined methods: not the wrapper of a native one */
	bool blind;   /* its loops may have inlined methods that no description has */
	uint16_t name_size;
	uint64_t deopt; /* return address of frames that are to be interpreted; 0: not known */
	char *name; /* owned; "java.util.HashMap.get", or of a stub; foreign bytes; NULL: unreadable
		     */
};

#define HOTSPOT_HEAPS_MAX 8U

/* A part of the code cache, in segments of 1 << log2 bytes. */
struct hotspot_heap {
	uint64_t low, segments; /* addresses: of the code, of its map */
	uint64_t nr_segments;
	uint32_t log2;
};

struct hotspot {
	struct vmstructs vm;
	bool polls;   /* hotspot_polls_loops() */
	bool untried; /* hotspot_is_untried() */
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	uint32_t nr_heaps;
	struct hotspot_blob *blobs; /* sorted by start, no overlap */
	uint32_t nr_blobs;
	uint32_t nr_new;      /* in the last scan or look-up */
	uint32_t nr_retired;  /* of all */
	size_t memory;	      /* of the blobs with their names */
	uint64_t call_return; /* where Java returns to the JVM; 0: not known */
};

void hotspot_close(struct hotspot *h);
/* Free the blobs: the next reading is to be a scan. */
void hotspot_forget_code(struct hotspot *h);
/* Return the bytes of @b with its name. */
size_t hotspot_blob_memory(const struct hotspot_blob *b);
/*
 * Put @nr blobs that a worker has read into @h: in place of all known ones (@all), or only of the
 * ones that they overlap. They are sorted. The same code as before keeps its name, other code is
 * fresh. Takes over the array. 0, -E2BIG or -ENOMEM.
 */
int hotspot_take(struct hotspot *h, struct hotspot_blob *blobs, uint32_t nr, bool all);

/* Free an array with the names in it. */
void hotspot_blobs_free(struct hotspot_blob *blobs, uint32_t nr);
/* Return the known blob that begins at @start; NULL: none. */
struct hotspot_blob *hotspot_blobs_known(const struct hotspot *h, uint64_t start);
/* Return the known blob that @pc is in; NULL: none. */
const struct hotspot_blob *hotspot_blobs_at(const struct hotspot *h, uint64_t pc);
/* Return whether two blobs at one address are the same code. */
bool hotspot_blobs_same(const struct hotspot_blob *a, const struct hotspot_blob *b);
/* Return whether the range and the kind of @b are possible. */
bool hotspot_blob_is_valid(const struct hotspot_blob *b);
/*
 * Put @nr found blobs, sorted, into the table; known ones that they overlap are freed. The table
 * then owns their names. 0 or -ENOMEM.
 */
int hotspot_blobs_merge(struct hotspot *h, const struct hotspot_blob *found, uint32_t nr_found);
/* Count the bytes and the retired blobs again; @nr_new of them are new. */
void hotspot_blobs_count(struct hotspot *h, uint32_t nr_new);

#endif

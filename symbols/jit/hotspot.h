/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code cache of a HotSpot JVM (OpenJDK 11 and newer), read from outside:
 * which blob of code is where, how large its frame is, and which method it
 * was compiled from. JDK source: codeCache.hpp, heap.hpp, codeBlob.hpp.
 *
 * Compile ids are never used again, so a blob with the same address, method and
 * compile id is the same code. Bytes are foreign: every number is bounded,
 * names are cut at HOTSPOT_NAME_MAX.
 *
 * Runs on: a helper, one at a time. May hang.
 */
#ifndef SYMBOLS_JIT_HOTSPOT_H
#define SYMBOLS_JIT_HOTSPOT_H

#include "symbols/jit/vmstructs.h"

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

/*
 * Find libjvm.so in process @r->pid and read its tables. 0; -ENOENT: no JVM;
 * -ENODATA: a field is missing (*missing); other -errno.
 */
int hotspot_open(struct hotspot *h, struct remote *r, const char **missing);
void hotspot_close(struct hotspot *h);
/* Free the blobs: the next reading is to be a scan. */
void hotspot_forget_code(struct hotspot *h);
/* Return the bytes of @b with its name. */
size_t hotspot_blob_memory(const struct hotspot_blob *b);

/*
 * Return whether the loops of optimised code have safepoints, and so descriptions of the methods
 * inlined in them: the option UseCountedLoopSafepoints, which depends on the collector. False also
 * if reading fails.
 */
bool hotspot_polls_loops(const struct vmstructs *v, struct remote *r);

/* Return whether this version of Java was never compared with the truth: frames are guesses. */
bool hotspot_is_untried(const struct vmstructs *v, struct remote *r);

/* Read the code cache again; names of blobs already known are kept. 0, -E2BIG or -errno. */
int hotspot_scan(struct hotspot *h, struct remote *r);

/*
 * Read the code at each of @nr addresses, without a scan: code that was made since. It takes the
 * place of code that was there. 0 or -errno.
 */
int hotspot_look_up(struct hotspot *h, struct remote *r, const uint64_t *pcs, uint32_t nr);

/* Return whether the code at @b is still the one of the last scan. */
bool hotspot_is_current(const struct hotspot *h, struct remote *r, const struct hotspot_blob *b);

/* Copy the text of the Symbol that constant @index of @pool is. Its length or -errno. */
int hotspot_constant(const struct hotspot *h, struct remote *r, uint64_t pool, uint16_t index,
		     char *text, size_t size);

#define HOTSPOT_FRAMES_MAX 64U

/* One method that the compiler made a piece of code of. */
struct hotspot_frame {
	uint64_t method;
	int32_t bci;
	uint32_t line;		     /* 0: not known */
	char name[HOTSPOT_NAME_MAX]; /* foreign bytes */
	char file[64];		     /* "HashMap.java"; "": not known; foreign bytes */
};

/*
 * Find the methods inlined at @pc, an address in compiled code, innermost
 * first, the compiled method last. How many; 0: not known; -errno of reading.
 * *@exact: the code describes the call at look-up pc @pc; else they are of the
 * next description, which may be of other methods.
 */
int hotspot_chain(const struct hotspot *h, struct remote *r, uint64_t pc,
		  struct hotspot_frame frames[static HOTSPOT_FRAMES_MAX], bool *exact);

/*
 * The name of the Method at @method as "Class.name" in @name, and where its
 * bytecodes are. 0, -EBADMSG (makes no sense), -errno.
 */
int hotspot_method(const struct hotspot *h, struct remote *r, uint64_t method,
		   char name[static HOTSPOT_NAME_MAX], uint64_t *code, uint32_t *code_size);

#endif

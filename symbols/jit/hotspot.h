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

#include "symbols/jit/hotspot_blobs.h"

/* Where the tables of a JVM are: variables of its libjvm.so, mapped with @bias. */
struct hotspot_tables {
	struct elfvar vars[VMSTRUCTS_VARIABLES];
	uint64_t bias;
};

/* Find libjvm.so in process @r->pid, and its tables. 0; -ENOENT: no JVM; other -errno. */
int hotspot_find_tables(struct hotspot_tables *t, struct remote *r);
/*
 * Read the tables: the code cache can be read then. 0; -ENODATA: a field is missing (*missing);
 * other -errno.
 */
int hotspot_open(struct hotspot *h, struct remote *r, const struct hotspot_tables *t,
		 const char **missing);

/*
 * Return whether the loops of optimised code have safepoints, and so descriptions of the methods
 * inlined in them: the option UseCountedLoopSafepoints, which depends on the collector. False also
 * if reading fails.
 */
bool hotspot_polls_loops(const struct vmstructs *v, struct remote *r);

/* Return whether this version of Java was never compared with the truth: frames are guesses. */
bool hotspot_is_untried(const struct vmstructs *v, struct remote *r);

/*
 * Read the code cache again. Names of known blobs are kept; new methods get theirs by
 * hotspot_name(). 0, -E2BIG or -errno.
 */
int hotspot_scan(struct hotspot *h, struct remote *r);

/*
 * Read the code at each of @nr addresses, without a scan: code that was made since. It takes the
 * place of code that was there. 0 or -errno.
 */
int hotspot_look_up(struct hotspot *h, struct remote *r, const uint64_t *pcs, uint32_t nr);

/*
 * Read the name of blob @i, if it is the code of a method that a scan or a look-up has found; if
 * the reading fails, the name remains NULL. 0, or -E2BIG: too much for one JVM.
 */
int hotspot_name(struct hotspot *h, struct remote *r, uint32_t i);

/*
 * Test at each of @nr addresses whether the code there is unchanged: else chains that were read
 * before are invalid. 0 or -errno.
 */
int hotspot_test_current(const struct hotspot *h, struct remote *r, const uint64_t *pcs,
			 uint32_t nr, bool *current);

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

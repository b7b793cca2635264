/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel of a recording: the running one, the same one at other addresses
 * (KASLR), or one of which nothing is known here.
 *
 * One thread: the loader.
 */
#ifndef SYMBOLS_KERNEL_RECORDED_KERNEL_H
#define SYMBOLS_KERNEL_RECORDED_KERNEL_H

#include "symbols/base/base.h"

#define KERNEL_RELEASE_MAX 65U

/* The kernel as recorded. */
struct kernel_identity {
	char release[KERNEL_RELEASE_MAX]; /* as uname -r; "": unknown */
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0: unknown */
};

enum kernel_match {
	KERNEL_SAME,
	KERNEL_OTHER,
	KERNEL_UNKNOWN, /* neither release nor build-id was recorded */
};

struct recorded_kernel {
	enum kernel_match match;
	bool stext;	     /* @mark is the address of _stext, else of _text */
	uint64_t mark;	     /* 0: unknown */
	uint64_t start, end; /* its code, as recorded */
	uint64_t shift;	     /* recorded address - address now, in that range */
};

/*
 * Copy the build-id of the running kernel from @notes ("/sys/kernel/notes"); return
 * its size, 0: none.
 */
size_t recorded_kernel_build_id(const char *notes, uint8_t *id, size_t max);
/* Compare with the running kernel, by @notes ("/sys/kernel/notes"), else by uname(2). */
enum kernel_match recorded_kernel_match(const struct kernel_identity *was, const char *notes);
/* Return why a kernel other than the running one has no names; NULL for KERNEL_SAME. */
const char *recorded_kernel_reason(enum kernel_match match);
/* Return the present address of code recorded at @addr. */
uint64_t recorded_kernel_now(const struct recorded_kernel *k, uint64_t addr);
/* Return the recorded address of code now at @addr. */
uint64_t recorded_kernel_then(const struct recorded_kernel *k, uint64_t addr);

#endif

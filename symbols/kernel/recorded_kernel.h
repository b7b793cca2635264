/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which kernel a recording's addresses are of: the one that runs here, the
 * same one moved elsewhere at a later boot (KASLR), or another one, of which
 * nothing here tells anything.
 *
 * One thread: the loader.
 */
#ifndef SYMBOLS_KERNEL_RECORDED_KERNEL_H
#define SYMBOLS_KERNEL_RECORDED_KERNEL_H

#include "symbols/base/base.h"

#define KERNEL_RELEASE_MAX 65U

/* What a recording says of its kernel. */
struct kernel_identity {
	char release[KERNEL_RELEASE_MAX]; /* as uname -r; "": not told */
	uint8_t build_id[20];
	uint8_t build_id_size; /* 0: not told */
};

struct recorded_kernel {
	bool other;	     /* none of ours */
	bool stext;	     /* @mark is where _stext was, else _text */
	uint64_t mark;	     /* 0: not told */
	uint64_t start, end; /* its code, as recorded */
	uint64_t shift;	     /* recorded address - address now, between them */
};

/* The build-id of the kernel that runs, by @notes ("/sys/kernel/notes"); its size, 0 when it has
 * none. */
size_t recorded_kernel_build_id(const char *notes, uint8_t *id, size_t max);
/* Is it another kernel than that of @notes ("/sys/kernel/notes") and uname(2)? */
bool recorded_kernel_is_other(const struct kernel_identity *was, const char *notes);
/* Where the code recorded at @addr is now. */
uint64_t recorded_kernel_now(const struct recorded_kernel *k, uint64_t addr);
/* And where what is at @addr now was then. */
uint64_t recorded_kernel_then(const struct recorded_kernel *k, uint64_t addr);

#endif

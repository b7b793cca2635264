/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines and inlined functions of one object, from its DWARF (DWARF 5,
 * 3.3.8 "Inlined Subroutines"), read with libdw through a descriptor.
 *
 * libdw is fast but trusting, so it gets no file of strangers (only root's and
 * our own), no section beyond DWARF_SIZE_MAX, no path to open by itself (of split
 * units there are lines, but no inlined functions; the dwz file is found here), and no question
 * without a limit of CPU time.
 *
 * One thread: the loader.
 */
#ifndef SYMBOLS_SOURCE_DWARF_H
#define SYMBOLS_SOURCE_DWARF_H

#include "symbols/object/elffile.h"

#define DWARF_SIZE_MAX	 (512ULL << 20) /* of all debug sections, decompressed */
#define DWARF_FRAMES_MAX 32U
#define DWARF_QUERY_NS	 200000000ULL  /* CPU time of one question */
#define DWARF_OPEN_NS	 2000000000ULL /* CPU time of the index of units */

struct dwarf;

/* One function of the chain at an address; texts are foreign, borrowed from the dwarf. */
struct dwarf_frame {
	const char *name; /* maybe mangled; NULL: the function that is not inlined */
	const char *file; /* NULL: not known */
	const char *dir;  /* what a relative file is below; may be NULL */
	uint32_t line;	  /* 0: not known */
};

/*
 * Open the DWARF of @f, whose descriptor stays the caller's and open;
 * @bias is what to add to its addresses to get the object's. 0, -ENODATA
 * (no DWARF), -EPERM (a stranger's file), -EFBIG, -ETIME, -ENOENT (its dwz file
 * is missing), -EBADMSG, -ENOMEM.
 */
int dwarf_open(struct dwarf **out, const struct elffile *f, uint64_t bias);
void dwarf_close(struct dwarf *d);

/*
 * The chain at @vaddr of the object, innermost first; the last one is the
 * function itself. Returns how many, 0 when nothing is known, or -ETIME.
 */
int dwarf_chain(struct dwarf *d, uint64_t vaddr, struct dwarf_frame out[DWARF_FRAMES_MAX]);
/*
 * Tell @fn where in [vaddr, vaddr + size) a line begins, in order of address:
 * its file and line (borrowed), both 0 where there is none. 0, or -ETIME.
 */
typedef void (*dwarf_line_fn)(void *ctx, uint64_t vaddr, const struct dwarf_frame *at);
int dwarf_lines(struct dwarf *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn, void *ctx);
/* @file below @dir, unless it is absolute, into @buf. */
void dwarf_path(char *buf, size_t size, const char *dir, const char *file);
/* Bytes of debug sections. */
uint64_t dwarf_size(const struct dwarf *d);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines and inlined functions of one object, from its DWARF (DWARF 5,
 * 3.3.8 "Inlined Subroutines"), read with libdw through a descriptor.
 *
 * libdw is fast but trusting, so it gets only files of root and of this user, no
 * section beyond DWARF_SIZE_MAX, no path to open (of split units there are lines,
 * but no inlined functions; the dwz file is opened here), and no request without
 * a limit of CPU time.
 *
 * One thread: the loader.
 */
#ifndef SYMBOLS_SOURCE_DWARF_H
#define SYMBOLS_SOURCE_DWARF_H

#include "symbols/elf/elf.h"

#define DWARF_FRAMES_MAX 32U
#define DWARF_QUERY_NS	 200000000ULL  /* CPU time of one request */
#define DWARF_OPEN_NS	 2000000000ULL /* CPU time of the index of units */

struct dwarf;

/* One function of the chain at an address; texts are foreign, borrowed from the dwarf. */
struct dwarf_frame {
	const char *name; /* maybe mangled; NULL: the function that is not inlined */
	const char *file; /* NULL: unknown */
	const char *dir;  /* folder of a relative file; may be NULL */
	uint32_t line;	  /* 0: unknown */
};

/*
 * Open the DWARF of @f; the caller keeps its descriptor, open; @bias is added to its addresses to
 * get the object's. 0, -ENODATA (no DWARF), -EPERM (owned by another user), -EFBIG, -ETIME, -ENOENT
 * (its dwz file is missing),
 * -EBADMSG, -ENOMEM.
 */
int dwarf_open(struct dwarf **out, const struct elffile *f, uint64_t bias);
/*
 * The same without checks, with the dwz file @alt_fd (-1: none), both borrowed: in the cage.
 * @no_lines: chains have functions only.
 */
int dwarf_open_fds(struct dwarf **out, const struct elffile *f, uint64_t bias, int alt_fd,
		   bool no_lines);
void dwarf_close(struct dwarf *d);

/*
 * Get the chain at @vaddr of the object, innermost first; the last one is the
 * function itself. Return its length, 0 when unknown, or -ETIME.
 */
int dwarf_chain(struct dwarf *d, uint64_t vaddr, struct dwarf_frame out[DWARF_FRAMES_MAX]);
/*
 * Call @fn for each start of a line in [vaddr, vaddr + size), in order of
 * address: its file and line (borrowed), both 0 where there is none. 0, or
 * -ETIME.
 */
typedef void (*dwarf_line_fn)(void *ctx, uint64_t vaddr, const struct dwarf_frame *at);
int dwarf_lines(struct dwarf *d, uint64_t vaddr, uint64_t size, dwarf_line_fn fn, void *ctx);
/* Join @dir and @file, unless @file is absolute, into @buf. */
void dwarf_path(char *buf, size_t size, const char *dir, const char *file);
/* Return the bytes of debug sections. */
uint64_t dwarf_size(const struct dwarf *d);

#endif

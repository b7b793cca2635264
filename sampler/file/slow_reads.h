/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of /proc that may hang, read by helpers: an exec holds up each reader of the mappings of
 * its process for as long as a file system of any user does not respond.
 *
 * Threads: one owner at a time.
 */
#ifndef SAMPLER_FILE_SLOW_READS_H
#define SAMPLER_FILE_SLOW_READS_H

#include <stddef.h>
#include <stdint.h>

struct slow_reads;

/* Read a file up to @max bytes: malloc'ed, its size in *@size; NULL: not there. */
typedef char *(*slow_reads_fn)(const char *path, size_t max, size_t *size);

/* NULL: out of memory. */
struct slow_reads *slow_reads_new(slow_reads_fn read);
/* As slow_reads_fn. NULL also if it hangs, or too many files do. */
char *slow_reads_file(struct slow_reads *r, const char *path, size_t max, size_t *size);
/* Reads that hang are left behind. NULL is allowed. */
void slow_reads_free(struct slow_reads *r);

#endif

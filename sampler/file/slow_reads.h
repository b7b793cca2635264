/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mappings of processes in /proc, read by helpers: an exec holds up each reader of the mappings of
 * its process for as long as a file system of any user does not respond.
 *
 * Threads: one owner at a time.
 */
#ifndef SAMPLER_FILE_SLOW_READS_H
#define SAMPLER_FILE_SLOW_READS_H

#include <stddef.h>
#include <stdint.h>

/* Reads that hang in processes of one real user; then its other ones are left out. */
#define SLOW_READS_OF_USER 8U
/* A read that hung counts for SLOW_READS_REST * @hang_ns at least, also if it ends before. */
#define SLOW_READS_REST 40U

struct slow_reads;

/* Read a file up to @max bytes: malloc'ed, its size in *@size; NULL: not there. */
typedef char *(*slow_reads_fn)(const char *path, size_t max, size_t *size);

/* @hang_ns: a read that takes longer hangs. NULL: out of memory. */
struct slow_reads *slow_reads_new(slow_reads_fn read, uint64_t hang_ns);
/*
 * Read the mappings of a process, of which @process is the folder: malloc'ed, their size in *@size.
 * NULL: not there, or left out: that hangs, or too many of its user or of all do.
 */
char *slow_reads_maps(struct slow_reads *r, const char *process, size_t *size);
/* Return how many were left out. */
uint64_t slow_reads_left_out(const struct slow_reads *r);
/* Reads that hang are left behind. NULL is allowed. */
void slow_reads_free(struct slow_reads *r);

#endif

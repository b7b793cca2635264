/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers as people type them, parsed strictly: the whole text, within a
 * range, no sign, no hexadecimal, no locale. Pure; any thread.
 */
#ifndef UI_TEXT_NUMBER_H
#define UI_TEXT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Decimal digits only, @size bytes of @text. 0 or -EINVAL (then *out is untouched). */
int number_u64(const char *text, size_t size, uint64_t min, uint64_t max, uint64_t *out);
/* "100x30": columns and rows, 1 to @max each. Return false if it is something else. */
bool number_screen_size(const char *text, size_t size, unsigned int max, unsigned int *cols,
			unsigned int *rows);
/* Digits with at most one point among them. */
int number_double(const char *text, double min, double max, double *out);
/* Seconds between updates: option, settings and screen. */
#define NUMBER_DELAY_MIN 0.1
#define NUMBER_DELAY_MAX 86400.0
/* Digits and at most one of K, M, G (powers of 1024, either case). */
int number_size(const char *text, uint64_t max, uint64_t *out);

/*
 * "12,345": appended to the @nr of *out, which is reallocated. 0; -EINVAL: not a list of process
 * ids; -E2BIG: more than NUMBER_PIDS_MAX. What came before the fault is in the list.
 */
#define NUMBER_PIDS_MAX 1024
int number_pids(const char *text, pid_t **out, uint32_t *nr);
/* "0-3,5": sorted, each once, in place of what *out was. 0; -EINVAL: nothing has changed. */
#define NUMBER_CPUS_MAX 4096
int number_cpus(const char *text, int **out, uint32_t *nr);

#endif

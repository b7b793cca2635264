/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parse typed numbers strictly: the whole text, within a range, no sign, no
 * hexadecimal, no locale. Pure; any thread.
 */
#ifndef UI_TEXT_NUMBER_H
#define UI_TEXT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Parse decimal digits, @size bytes of @text. Return 0 or -EINVAL (then *out is unchanged). */
int number_u64(const char *text, size_t size, uint64_t min, uint64_t max, uint64_t *out);
/* Parse "100x30", columns and rows, 1 to @max each. Return false if invalid. */
bool number_screen_size(const char *text, size_t size, unsigned int max, unsigned int *cols,
			unsigned int *rows);
/* Parse digits with at most one point. */
int number_double(const char *text, double min, double max, double *out);
/* Range of the delay in seconds: option, settings and screen. */
#define NUMBER_DELAY_MIN 0.1
#define NUMBER_DELAY_MAX 86400.0
/* Rates (-F) where the kernel has no limit, and windows in seconds. */
#define NUMBER_HZ_MAX	  1e6
#define NUMBER_WINDOW_MAX 3600.0
/* Parse digits with an optional K, M or G (powers of 1024, either case). */
int number_size(const char *text, uint64_t max, uint64_t *out);

/*
 * Parse "12,345" and append to the @nr ids of *out, which is reallocated. Return 0;
 * -EINVAL: invalid list; -E2BIG: more than NUMBER_PIDS_MAX. Ids before the error are in
 * the list.
 */
#define NUMBER_PIDS_MAX 1024
int number_pids(const char *text, pid_t **out, uint32_t *nr);
/*
 * Parse "0-3,5" and replace *out by the sorted CPUs without duplicates. Return 0 or
 * -EINVAL (then unchanged).
 */
#define NUMBER_CPUS_MAX 4096
int number_cpus(const char *text, int **out, uint32_t *nr);

#endif

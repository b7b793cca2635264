// SPDX-License-Identifier: GPL-2.0-or-later
/* The options of ASan in all fuzz targets: ASAN_OPTIONS has precedence. */

const char *__asan_default_options(void);

/*
 * quarantine_size_mb: an input frees all that it has allocated, mostly less than 1 MiB, so that a
 * use after free is found in 4 MiB as in 256 MiB. Memory that returns soon is in the cache, and
 * has its pages. Larger blocks are unmapped when they are freed: a use is a fault.
 * malloc_context_size: callers in a report, of the allocation and the free.
 */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=4:malloc_context_size=8";
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The additional fields of --format=perf-script, by the names of perf script -F.
 *
 * Any thread; no state.
 */
#ifndef UI_CLI_SCRIPT_FIELDS_H
#define UI_CLI_SCRIPT_FIELDS_H

#include <stdint.h>

/* Beside PERF_SAMPLE_*: branches by address; by symbol. */
#define SCRIPT_FIELDS_BRSTACK	 (1ULL << 62)
#define SCRIPT_FIELDS_BRSTACKSYM (1ULL << 63)

/* Return the PERF_SAMPLE_* of a list of fields ("brstack,addr"), 0: unknown, which is *bad. */
uint64_t script_fields_parse(const char *list, const char **bad);

#endif

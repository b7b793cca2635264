// SPDX-License-Identifier: GPL-2.0-or-later
/* The list of --fields. */
#include "ui/cli/script_fields.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "symbols/base/base.h"

uint64_t script_fields_parse(const char *list, const char **bad)
{
	static const struct {
		const char *name;
		uint64_t bits;
	} known[] = {
		{ "brstack", SCRIPT_FIELDS_BRSTACK },
		{ "brstacksym", SCRIPT_FIELDS_BRSTACKSYM },
		{ "addr", PERF_SAMPLE_ADDR },
		{ "data_src", PERF_SAMPLE_DATA_SRC },
		{ "weight", PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT },
		{ "phys_addr", PERF_SAMPLE_PHYS_ADDR },
		{ "data_page_size", PERF_SAMPLE_DATA_PAGE_SIZE },
		{ "code_page_size", PERF_SAMPLE_CODE_PAGE_SIZE },
	};
	uint64_t fields = 0;

	for (*bad = list;; *bad += strcspn(*bad, ",") + 1) {
		size_t size = strcspn(*bad, ","), i = 0;

		while (i < ARRAY_SIZE(known) &&
		       (strlen(known[i].name) != size || strncmp(known[i].name, *bad, size)))
			i++;
		if (i == ARRAY_SIZE(known))
			return 0;
		fields |= known[i].bits;
		if (!(*bad)[size])
			return fields;
	}
}

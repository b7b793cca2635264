/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limits that hold for every chain, of any bytes. */
#ifndef TESTS_FUZZ_CHECK_CHAIN_H
#define TESTS_FUZZ_CHECK_CHAIN_H

#include <stdlib.h>

#include "symbols/script/internal.h"

static inline void check_chain(const struct lang_reader *reader, const struct lang_chain *chain)
{
	if (chain->nr > LANG_FRAMES_MAX || reader->memory.calls > LANG_CALLS_MAX)
		abort();
	for (uint32_t i = 0; i < chain->nr; i++) {
		const struct code_text *t =
			script_functions_at(reader->codes, chain->frames[i].code);

		if (!t || t->name_size > SCRIPT_FUNCTIONS_TEXT_MAX ||
		    t->file_size > SCRIPT_FUNCTIONS_TEXT_MAX)
			abort();
	}
}

#endif
